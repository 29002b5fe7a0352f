"""Constants in the dtype of an operand."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
)
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def constant_like(x: ArrayLike | Literal, value: object) -> Literal:
    """Return the scalar `value` in the dtype of `x`."""
    aval = aval_of(x)
    return scalar_literal(value, aval.dtype, aval.weak_type)


def number_like(x: ArrayLike | Literal, value: object) -> Literal:
    """Return the scalar `value` in the dtype of `x`, weakly typed only if `x` is a weakly typed scalar.

    As in JAX, derivatives of weakly typed arrays are strongly typed where such a number is a factor.
    """
    aval = aval_of(x)
    return scalar_literal(value, aval.dtype, aval.weak_type and not aval.shape)


def strong_scalar(example: Any, value: object) -> Literal:
    """Return the strongly typed scalar `value` of the dtype of `example`."""
    return scalar_literal(value, aval_of(example).dtype)


def constants_like(x: ArrayLike, value: Any) -> Any:
    """Return `value` in the shape and dtype of `x`."""
    aval = aval_of(x)
    if not aval.shape:
        return constant_like(x, value)
    return broadcast_in_dim.bind_positional((constant_like(x, value),), (aval.shape, (), aval.explicit_sharding))


def constant(builder: FunctionBuilder, value: int, like: Value) -> Value:
    """Write `value` in the shape and dtype of `like`."""
    return builder.broadcast_operand(builder.literal(value, like.aval.update(shape=())), like.aval.shape)
