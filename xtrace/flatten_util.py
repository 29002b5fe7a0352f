"""Pytrees as vectors, as ``jax.flatten_util`` has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace.algebra.vector_space import converted, reshape
from xtrace.api.operators import as_array
from xtrace.api.promotion import operand_aval
from xtrace.api.units import unit
from xtrace.core import config, dtypes
from xtrace.core.late import make_public as _make_public
from xtrace.core.pytree import tree_flatten, tree_unflatten
from xtrace.numpy.creation import zeros
from xtrace.ops.shape import concatenate, split

__all__ = ["ravel_pytree"]


@unit
def _joined(*leaves: Any, dtype: Any, weak: bool) -> Any:
    parts = [converted(as_array(x), dtype, weak) for x in leaves]
    parts = [x if x.ndim == 1 else reshape(x, (x.size,)) for x in parts]
    return concatenate(parts, 0) if len(parts) > 1 else parts[0]


@unit
def _parts(vector: Any, *, shapes: tuple[tuple[int, ...], ...], types: Any) -> Any:
    """Return the vector taken apart into arrays of the given shapes, and of `types` if they are given."""
    found = split(as_array(vector), [math.prod(s) for s in shapes], 0)
    found = [x if s == x.shape else reshape(x, s) for x, s in zip(found, shapes, strict=True)]
    return found if types is None else [converted(x, t) for x, t in zip(found, types, strict=True)]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the leaves of `pytree` in one vector, and the function that makes such a tree of such a vector.

    The vector has the dtype that the leaves promote to. The function gives each leaf its own dtype back; where they
    differ it raises TypeError for a vector of another dtype, and always ValueError for one of another length.
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        return zeros((0,)), lambda vector: tree_unflatten(tree, [])
    avals = [operand_aval("ravel_pytree", i, x) for i, x in enumerate(leaves)]
    # Python scalars count as arrays of their default dtypes here.
    dtype, _ = dtypes.promote(tuple([(a.dtype, False) for a in avals]), config.enable_x64.value)
    weak = all(a.weak_type for a in avals)
    shapes, types = tuple([a.shape for a in avals]), tuple([a.dtype for a in avals])
    mixed = any(t != dtype for t in types)
    length = sum([a.size for a in avals])

    def unravel(vector: Any) -> Any:
        aval = operand_aval("unravel", 0, vector)
        if aval.shape != (length,):
            raise ValueError(
                f"unravel function given an array of shape {aval.shape}, but its leaves have {length} elements in "
                f"all; give it one of shape ({length},)"
            )
        if mixed and aval.dtype != dtype:
            raise TypeError(
                f"unravel function given array of dtype {aval.dtype.name}, but expected dtype {dtype.name}"
            )
        return tree_unflatten(tree, _parts(vector, shapes=shapes, types=types if mixed else None))

    return _joined(*leaves, dtype=dtype, weak=weak and not mixed), unravel

_make_public(globals(), __all__)
