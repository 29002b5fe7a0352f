"""Tangents and cotangents: their types, and the mark of an operand that a transpose rule has no value for.

A tangent or cotangent that is known to be zero is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xtrace._src.core import dtypes, pytree_registration
from xtrace._src.core.avals import ShapedArray, aval_rules, own_aval
from xtrace._src.core.partition_spec import PartitionSpec


class UndefinedPrimal:
    """Stands in a transpose rule for an operand that the operation is linear in: it has a type and no value.

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
            f"an operation was transposed that is not linear in the operand of type {self.aval.str_short()}: its "
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
    """Whether values of this type have tangents other than zero: floating and complex ones, and some of users'."""
    return dtypes.tangent_dtype(aval.dtype) is not dtypes.float0


def cotangent_avals(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """Return the types of the cotangents of values of types `avals`."""
    return [a.to_cotangent_aval() for a in avals]


def as_terms(aval: ShapedArray, cotangent: ShapedArray) -> ShapedArray:
    """Return `aval` as the type of terms of a sum that is not formed, along the axes where `cotangent` is one."""
    sharding = cotangent.explicit_sharding
    if sharding is None or not sharding.spec.unreduced:
        return aval
    spec = PartitionSpec(*[None] * aval.ndim, unreduced=sharding.spec.unreduced)
    return aval.update(sharding=sharding.update(spec=spec))


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the tangents of values of type `aval`: its own, or float0 where it is not differentiable."""
    return aval.to_tangent_aval()
