"""Functions of one sparse array, mapped over the batch axes of its buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.ops.arrays.shape import squeeze

_Result = TypeVar("_Result")


def map_over_batch(function: Callable[..., _Result], batch: Sequence[int], *operands: Any) -> _Result:
    """Return ``function(*operands)`` mapped over leading axes of the sizes `batch`; an operand may have size 1."""
    if not batch:
        return function(*operands)
    shared = [x.shape[0] == 1 != batch[0] for x in operands]
    operands = tuple([squeeze(x, (0,)) if s else x for x, s in zip(operands, shared, strict=True)])
    inner = lambda *values: map_over_batch(function, batch[1:], *values)  # noqa: E731
    axes = tuple([None if s else 0 for s in shared])
    return vmap(inner, axes, axis_size=batch[0])(*operands)


def common_batch(n_batch: int, *operands: Any) -> tuple[int, ...]:
    """Return the sizes of the leading `n_batch` axes; each operand has that size or 1."""
    sizes = [{x.shape[i] for x in operands} - {1} for i in range(n_batch)]
    return tuple([size.pop() if size else 1 for size in sizes])
