"""Pytrees as vectors (``jax.flatten_util``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import type_promotion
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.function_names import with_function_name
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees.pytree import tree_flatten, tree_unflatten
from xtrace._src.core.settings import config
from xtrace._src.ops.arrays.concatenation import concatenate, split
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.arrays.creation import zeros

__all__ = ["ravel_pytree"]


@inline_jit
def _join_leaves(*leaves: Array, dtype: np.dtype[Any], weak: bool) -> Array:
    parts = [convert_to(to_array(x), dtype, weak) for x in leaves]
    parts = [x if x.ndim == 1 else reshape(x, (x.size,)) for x in parts]
    return concatenate(parts, 0) if len(parts) > 1 else parts[0]


@inline_jit
def _split_vector(vector: Array, *, shapes: tuple[tuple[int, ...], ...], types: Any) -> list[Array]:
    """Split a vector into arrays of `shapes`, converted to `types` unless these are None."""
    parts = split(to_array(vector), [math.prod(s) for s in shapes], 0)
    parts = [x if s == x.shape else reshape(x, s) for x, s in zip(parts, shapes, strict=True)]
    return parts if types is None else [convert_to(x, t) for x, t in zip(parts, types, strict=True)]


class _Unravel:
    """Converts a vector to a tree with leaves of `shapes` and `types`. It is static: equal for equal trees."""

    __slots__ = ("tree", "shapes", "types", "dtype")

    def __init__(self, tree: Any, shapes: tuple[tuple[int, ...], ...], types: tuple[Any, ...], dtype: Any) -> None:
        self.tree, self.shapes, self.types, self.dtype = tree, shapes, types, dtype

    def _key(self) -> tuple[Any, ...]:
        return self.tree, self.shapes, self.types, self.dtype

    def __eq__(self, other: object) -> bool:
        return type(other) is _Unravel and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @with_function_name("unravel")
    def __call__(self, vector: Any) -> Any:
        try:
            return self._build_tree(vector)
        except BaseException as error:
            hide_frames(error)
            raise

    def _build_tree(self, vector: Any) -> Any:
        if not self.shapes:
            return tree_unflatten(self.tree, [])
        aval = operand_aval(vector, 0, function="unravel")
        length = sum(map(math.prod, self.shapes))
        if aval.shape != (length,):
            raise ValueError(
                f"unravel function given an array of shape {aval.shape}, but its leaves have {length} elements in "
                f"all; give it one of shape ({length},)"
            )
        mixed = any(t != self.dtype for t in self.types)
        if mixed and aval.dtype != self.dtype:
            raise TypeError(
                f"unravel function given array of dtype {aval.dtype.name}, but expected dtype {self.dtype.name}"
            )
        return tree_unflatten(self.tree, _split_vector(vector, shapes=self.shapes, types=self.types if mixed else None))


def ravel_pytree(pytree: object) -> tuple[Array, Callable[[Any], Any]]:
    """Flatten the leaves of a tree to one vector.

    Args:
        pytree: a tree of arrays and scalars.

    Returns:
        A pair: the vector, with the common dtype of the leaves, and the function that converts such a vector back to a
        tree. Functions for trees of the same structure and types are equal.

    Raises:
        TypeError: a leaf is not an array. The returned function raises it for a vector of another dtype if the leaves
            have several dtypes.
        ValueError: the returned function raises it for a vector of another length.

    Example:
        >>> vector, unravel = xtrace.flatten_util.ravel_pytree({"a": jnp.zeros(2), "b": 1.0})
        >>> vector, unravel(2 * vector)
        (Array([0., 0., 1.], dtype=float32), {'a': Array([0., 0.], dtype=float32), 'b': Array(2., dtype=float32)})
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        return zeros((0,)), _Unravel(tree, (), (), None)
    avals = [operand_aval(x, i) for i, x in enumerate(leaves)]
    # Python scalars count as arrays of their default dtypes here.
    dtype, _ = type_promotion.promote(tuple([(a.dtype, False) for a in avals]), config.keeps_wide_dtypes())
    types = tuple([a.dtype for a in avals])
    weak = all(a.weak_type for a in avals) and all(t == dtype for t in types)
    return _join_leaves(*leaves, dtype=dtype, weak=weak), _Unravel(tree, tuple([a.shape for a in avals]), types, dtype)


_make_public(globals(), __all__)
