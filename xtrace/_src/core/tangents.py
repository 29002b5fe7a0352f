"""Tangents and cotangents: their types, and the placeholder of a linear operand in transpose rules.

A tangent or cotangent that is known to be zero is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_rules, own_aval
from xtrace._src.core.pytrees import pytree_registration
from xtrace._src.core.shardings.partition_spec import PartitionSpec


class UndefinedPrimal:
    """The placeholder of a linear operand in a transpose rule; it has a type and no value.

    Args:
        aval: the type.

    Example:
        >>> xtrace.interpreters.ad.UndefinedPrimal(xtrace.typeof(1.0))
        UndefinedPrimal(float32[])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        raise NotImplementedError(
            f"an operation was transposed that is not linear in the operand of type {self.aval.str_short(True)}: its "
            "transpose needs the operand's value, and only linear functions can be transposed"
        )

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval.str_short(short_dtypes=False)})"


aval_rules[UndefinedPrimal] = own_aval
# A node without leaves, so that users' rules pass it into `vmap` and `jit`.
pytree_registration.register_pytree_node(
    UndefinedPrimal, lambda value: ((), value.aval), lambda aval, _: UndefinedPrimal(aval)
)


def is_differentiable(aval: ShapedArray) -> bool:
    """Whether values of this type can have nonzero tangents: floating and complex dtypes, and some extended dtypes."""
    return dtypes.tangent_dtype(aval.dtype) is not dtypes.float0


def cotangent_avals(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the cotangents of values of types `avals`."""
    return [a.to_cotangent_aval() for a in avals]


def unreduced_aval(aval: ShapedArray, cotangent: ShapedArray) -> ShapedArray:
    """Return `aval`, unreduced along the axes along which `cotangent` is unreduced."""
    sharding = cotangent.explicit_sharding
    if sharding is None or not sharding.spec.unreduced:
        return aval
    spec = PartitionSpec(*[None] * aval.ndim, unreduced=sharding.spec.unreduced)
    return aval.update(sharding=sharding.update(spec=spec))


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the tangents of values of type `aval`: itself, or float0 if it is not differentiable."""
    return aval.to_tangent_aval()
