"""Zero tangents and cotangents as objects, in the rules of users; xtrace's own rules use None."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.pytrees import pytree_registration
from xtrace._src.core.tangents import tangent_aval


class Zero:
    """A zero tangent or cotangent, represented by its type.

    Args:
        aval: the type.

    Example:
        >>> xtrace.interpreters.ad.Zero(xtrace.typeof(jnp.ones(2)))
        Zero(float32[2])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> Zero:
        """Return the zero tangent of a value."""
        return Zero(tangent_aval(aval_of(val)))

    def instantiate(self) -> Any:
        """Return an array of zeros."""
        return zeros(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short(short_dtypes=False)})"


# A node without leaves, like `UndefinedPrimal`.
pytree_registration.register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
