"""Random sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.arrays.sorting import sort
from xtrace._src.sparse import index_rows
from xtrace.experimental.sparse.arrays import BCOO
from xtrace.random import choice, split, uniform

__all__ = ["random_bcoo"]


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: DTypeLike = float, indices_dtype: DTypeLike | None = None,
    nse: float = 0.2, n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = uniform, **kwds: Any,
) -> BCOO:
    """Draw a random BCOO array.

    Args:
        key: a key of random numbers.
        shape: the shape.
        dtype: the dtype of the elements.
        indices_dtype: the dtype of the indices; None for the default integer.
        nse: the number of stored elements of each batch, or the fraction of all elements, between 0 and 1.
        n_batch, n_dense: the numbers of batch and of dense axes.
        unique_indices: whether there are no duplicates.
        sorted_indices: whether the indices are in ascending order.
        generator: a function of a key, a shape and a dtype, which draws the stored elements.
        kwds: other arguments of `generator`.

    Returns:
        A BCOO array.

    Raises:
        TypeError: `key` is not a key.
        ValueError: `n_batch` and `n_dense` do not fit the shape, or `nse` is negative or too large.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.random_bcoo(random.key(0), (4, 5), nse=3)
        BCOO(float32[4, 5], nse=3)
    """
    sizes = integer_tuple("shape", shape)
    n_batch, n_dense = to_integer("n_batch", n_batch), to_integer("n_dense", n_dense)
    n_sparse = len(sizes) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"random_bcoo: n_batch={n_batch} and n_dense={n_dense} do not fit shape {sizes}")
    batch, sparse, dense = sizes[:n_batch], sizes[n_batch : n_batch + n_sparse], sizes[n_batch + n_sparse :]
    places = math.prod(sparse)
    if not isinstance(nse, int | float) or not 0 <= nse <= places:
        raise ValueError(f"random_bcoo: nse={abbreviate(nse)} must be between 0 and {places}")
    count = math.ceil(nse * places) if 0 < nse < 1 else int(nse)
    keys = split(key, 1 + math.prod(batch))
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=requested_dtype(dtype), **kwds)

    def draw(key: Any) -> Any:
        drawn = choice(key, places, (count,), replace=not unique_indices)
        drawn = sort(drawn) if sorted_indices else drawn
        return index_rows.unravel(drawn, sparse, requested_dtype(indices_dtype or int))

    indices = vmap(draw)(keys[1:]).reshape(*batch, count, n_sparse)
    return BCOO((data, indices), shape=sizes, indices_sorted=sorted_indices, unique_indices=unique_indices)
