"""Polynomials, quotients, Chebyshev series and exact squares, for functions computed from fits."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_index_in_dim
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace._src.ops.elementwise.reinterpretation import reduce_precision
from xtrace._src.ops.elementwise.special import chebyshev
from xtrace.scipy.special.primitive import refuse_complex, to_operands


def evaluate_polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """Return the polynomial of two or more coefficients, from the constant term, at `x`."""
    *rest, second, leading = coefficients
    value = leading * x + second
    for coefficient in reversed(rest):
        value = value * x + coefficient
    return value


def evaluate_in_groups(x: Array, coefficients: tuple[float, ...], terms: int) -> Array:
    """Evaluate a polynomial in a loop over groups of `terms` coefficients; `terms` must divide their number."""
    table = np.reshape(np.asarray(coefficients[::-1], x.dtype), (-1, terms))

    def step(i: Array, value: Array) -> Array:
        row = dynamic_index_in_dim(table, i, keepdims=False)
        for k in range(terms):
            value = value * x + row[k]
        return value

    return fori_loop(0, len(table), step, 0 * x)


def evaluate_quotient(x: Array, pair: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    """Return the quotient of two polynomials at `x`."""
    return evaluate_polynomial(x, pair[0]) / evaluate_polynomial(x, pair[1])


def evaluate_chebyshev(x: ArrayLike, low: float, high: float, coefficients: tuple[float, ...]) -> Array:
    """Return the Chebyshev series on the interval from `low` to `high` at `x`."""
    return chebyshev((2 * x - (low + high)) * (2 / (high - low)), coefficients)


def split_square(x: Array) -> tuple[Array, Array]:
    """Return two numbers whose sum is x² to about twice the precision of the dtype; the first is exact."""
    wide = x.dtype == dtypes.float64
    # The high part has so few bits that its square is exact.
    high = reduce_precision(x, *((11, 25) if wide else (8, 11)))
    return high * high, (x - high) * (x + high)


def to_real_operands(*values: ArrayLike) -> tuple[list[Array], np.dtype[Any]]:
    """Convert values to one shape and a dtype of at least 32 bits; return them and the dtype of the result.

    ValueError for complex numbers; other errors as in `to_operands`.
    """
    refuse_complex(*values)
    arrays = to_operands(*values)
    dtype = arrays[0].dtype
    computed = dtypes.float32 if dtypes.bit_width(dtype) < 32 else dtype
    return [convert_to(x, computed) for x in arrays], dtype


def extend_odd(x: RealLike, value: Array) -> Array:
    """Return the value of an odd function at `x` from its value at |x|."""
    return select_where(x < 0, -value, value)
