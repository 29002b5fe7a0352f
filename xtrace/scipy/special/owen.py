"""Owen's T function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.settings import config
from xtrace._src.ops.elementwise.special import erf, erfc
from xtrace.numpy.elementwise.ufuncs import abs, exp, minimum
from xtrace.numpy.reductions.reductions import sum
from xtrace.scipy.special.primitive import refuse_complex, to_operands
from xtrace.scipy.special.series import extend_odd, split_square

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(36)


def _promote_to_wide(h: RealLike, a: RealLike) -> list[Any]:
    refuse_complex(h, a)
    arrays = to_operands(h, a)
    default = dtypes.default_float(config.enable_x64.value)
    wider = dtypes.bit_width(arrays[0].dtype) > dtypes.bit_width(default)
    return [convert_to(x, x.dtype if wider else default) for x in arrays]


def _integrate(h: Array, a: Array) -> Array:
    """Return T by Gauss-Legendre quadrature, for nonnegative h and `a` from 0 to 1."""
    # Beyond these limits the integrand is negligible.
    h = minimum(h, 200.0)
    end = minimum(a, 8.7 / h)
    half = (end / 2)[..., None]
    nodes, weights = (x.astype(h.dtype).reshape((1,) * h.ndim + (-1,)) for x in (_NODES, _WEIGHTS))
    square = (half * (nodes + 1)) ** 2
    integral = sum(half * weights * exp(-(h[..., None] ** 2) / 2 * square) / (1 + square), axis=-1)
    high, low = split_square(h)
    return exp(-high / 2) * exp(-low / 2) * integral / (2 * math.pi)


def _upper_tail(x: Array) -> Array:
    return erfc(x * math.sqrt(0.5)) / 2


@custom_jvp
@inline_jit(public=True)
def owens_t(h: RealLike, a: RealLike) -> Array:
    """Return Owen's T function, the integral of ``exp(-h**2 (1 + x**2) / 2) / (2 pi (1 + x**2))`` from 0 to a.

    Args:
        h, a: arrays of real numbers.

    Returns:
        An array of the broadcast shape, of the default floating dtype or a wider one.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.owens_t(1.0, 0.5)
        Array(0.04306469, dtype=float32)

    Reference:
        M. Patefield and D. Tandy, "Fast and accurate calculation of Owen's T function" (2000).
    """
    h, a = _promote_to_wide(h, a)
    size, slope = abs(h), abs(a)
    steep = slope > 1
    product = select_where(size == 0, 0.0, size * slope)
    inside = _integrate(select_where(steep, product, size), select_where(steep, 1 / slope, slope))
    # Patefield and Tandy, Fast and Accurate Calculation of Owen's T Function, 2000, equation 2, with upper tails.
    one, two = _upper_tail(size), _upper_tail(product)
    return extend_odd(a, select_where(steep, (one + two) / 2 - one * two - inside, inside))


@owens_t.defjvp
def _owens_t_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    h, a = _promote_to_wide(*primals)
    by_h = -exp(-h * h / 2) * erf(a * h * math.sqrt(0.5)) / math.sqrt(8 * math.pi)
    by_a = exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a))
    return owens_t(h, a), by_h * tangents[0] + by_a * tangents[1]
