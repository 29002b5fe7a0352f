"""Symbolic zeros, which rules with ``symbolic_zeros=True`` receive instead of arrays of zeros."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.ops.custom_rules.rule import make_zero


class SymbolicZero:
    """A zero tangent or cotangent without data, in rules with ``symbolic_zeros=True``.

    Args:
        aval: the type of the zero.

    Example:
        >>> xtrace.custom_derivatives.SymbolicZero(xtrace.typeof(1.0)).shape
        ()
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return "SymbolicZero"

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(value: object) -> SymbolicZero:
        """Return the zero tangent of `value`."""
        return symbolic_zero(aval_of(value))


def symbolic_zero(aval: ShapedArray) -> SymbolicZero:
    """Return the zero tangent of a value of type `aval`; for integers its dtype is float0."""
    return SymbolicZero(aval if is_differentiable(aval) else ShapedArray(aval.shape, dtypes.float0))


def is_zero(tangent: Any) -> bool:
    """Whether a tangent in a user's rule is a zero without data, or that of an integer."""
    return type(tangent) in (SymbolicZero, Zero) or aval_of(tangent).dtype == dtypes.float0


def zero_from_primal(val: object, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of a value.

    Args:
        val: a pytree of arrays.
        symbolic_zeros: whether tangents are `SymbolicZero` objects.

    Returns:
        A tree in the structure of `val`; the zeros of integers and booleans have dtype float0.

    Raises:
        TypeError: a leaf is no array.

    Example:
        >>> xtrace.custom_derivatives.zero_from_primal(jnp.ones(2))
        Array([0., 0.], dtype=float32)
    """
    zero = symbolic_zero if symbolic_zeros else make_zero
    return pytree.tree_map(lambda x: zero(aval_of(x)), val)
