"""Elementwise functions of bits and of truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.kinds import BOOL
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api import operators
from xtrace._src.api.elementwise_functions import INTEGERS, alias, as_number, elementwise_docstring, unary_function
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import truth
from xtrace._src.api.promotion import promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.ops import comparisons
from xtrace._src.ops import elementwise as lax
from xtrace._src.ops.comparisons import population_count
from xtrace.numpy.ufunc_objects import as_ufunc

# Bits

bitwise_and = as_ufunc(operators.bitwise_and)
bitwise_or = as_ufunc(operators.bitwise_or)
bitwise_xor = as_ufunc(operators.bitwise_xor)
invert = operators.invert
bitwise_invert = alias(invert, "bitwise_invert")
bitwise_not = alias(invert, "bitwise_not")
left_shift = operators.left_shift
bitwise_left_shift = alias(left_shift, "bitwise_left_shift")
right_shift = operators.right_shift
bitwise_right_shift = alias(right_shift, "bitwise_right_shift")


def _count_bits(x: Array) -> Array:
    size = lax.abs(x) if dtypes.is_signed(aval_of(x).dtype) else x
    return convert_to(population_count(size), dtypes.uint8)


bitwise_count = unary_function(
    "bitwise_count", _count_bits, "Return the numbers of bits that are set in the absolute values of elements.",
    adjust=as_number, domain=INTEGERS, returns="dtype uint8",
    example=("jnp.bitwise_count(-7)", "Array(3, dtype=uint8)"),
)


# Logic

def _define_logical(
    name: str, combine: Callable[[Any, Any], Array], contract: str, **documentation: Any
) -> Callable[..., Any]:
    def logical(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        left, right = promote(x1, x2, function=name)
        return combine(truth(left), truth(right))

    logical.__name__ = logical.__qualname__ = name
    logical.__doc__ = elementwise_docstring(contract, ("x1", "x2"), None, **documentation)
    return as_ufunc(inline_jit(logical))


logical_and = _define_logical(
    "logical_and", comparisons.bitwise_and, "Return whether both elements are true or not zero.", returns="dtype bool",
    example=("jnp.logical_and(jnp.array([True, False]), True)", "Array([ True, False], dtype=bool)"),
)

logical_or = _define_logical(
    "logical_or", comparisons.bitwise_or, "Return whether one or both elements are true or not zero.",
    returns="dtype bool",
    example=("jnp.logical_or(jnp.array([True, False]), False)", "Array([ True, False], dtype=bool)"),
)

logical_xor = _define_logical(
    "logical_xor", comparisons.bitwise_xor, "Return whether exactly one of the two elements is true or not zero.",
    returns="dtype bool",
    example=("jnp.logical_xor(jnp.array([True, False]), True)", "Array([False,  True], dtype=bool)"),
)

logical_not = unary_function(
    "logical_not", lambda x: comparisons.bitwise_not(truth(x)), "Return whether elements are false or zero.",
    cases={BOOL: comparisons.bitwise_not}, returns="dtype bool",
    example=("jnp.logical_not(jnp.array([True, False]))", "Array([False,  True], dtype=bool)"),
)
