"""Spherical harmonics."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import check_broadcast, convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape, select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.errors import ConcretizationTypeError
from xtrace._src.core.integers import to_integer
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace._src.ops.elementwise.complex_numbers import complex as complex_of
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufuncs import abs, cos, maximum, minimum, sin, sqrt


@inline_jit
def _compute_harmonic(n: Array, m: Array, theta: Array, phi: Array, *, highest: int) -> Array:
    """Return the harmonic by recurrences of normalized associated Legendre functions (DLMF 14.10.3, 14.30.1)."""
    dtype = theta.dtype
    cosine, sine = cos(theta), sin(theta)
    # Reduce theta to the range from 0 to pi; the derivative at 0 is the one-sided derivative.
    sine = select_where(sine < 0, -sine, sine)
    degree, signed = convert_to(minimum(n, highest), dtype), convert_to(m, dtype)
    order = abs(signed)

    def step(i: Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
        one, two = state
        k = convert_to(i, dtype) + 1
        # Up to degree |m| step through the functions of equal degree and order.
        diagonal = -sine * sqrt((2 * k + 1) / (2 * k)) * one
        inside = maximum((k - order) * (k + order), 1)
        before = maximum((k - 1 - order) * (k - 1 + order), 0) / maximum(4 * (k - 1) ** 2 - 1, 1)
        next_degree = sqrt((4 * k * k - 1) / inside) * (cosine * one - sqrt(before) * two)
        follow = k <= order
        new = select_where(follow, diagonal, next_degree)
        kept = k > degree
        return select_where(kept, one, new), select_where(kept, two, select_where(follow, 0.0, one))

    start = 0 * theta + 0.5 / np.sqrt(np.pi)
    size, _ = fori_loop(0, highest, step, (start, 0 * theta))
    size = select_where(order > degree, 0.0, size)
    # Y(n, -m) is (-1)**m times the conjugate of Y(n, m).
    size = select_where((signed < 0) & (signed % 2 != 0), -size, size)
    angle = signed * phi
    return complex_of(size * cos(angle), size * sin(angle))


def sph_harm_y(
    n: RealLike, m: RealLike, theta: RealLike, phi: RealLike, diff_n: None = None, n_max: int | None = None
) -> Array:
    """Return spherical harmonics at a polar angle and an azimuth.

    Args:
        n, m: arrays of integers, degrees and orders; the result is 0 where |m| > n.
        theta: an array of float32 or float64, the polar angle in radians.
        phi: an array of float32 or float64, the azimuth in radians.
        diff_n: not supported; leave it at None.
        n_max: the largest degree, required for traced `n`; larger degrees are clipped to it.

    Returns:
        An array of the broadcast shape and a complex dtype.

    Raises:
        ConcretizationTypeError: `n` is traced and there is no `n_max`.
        NotImplementedError: `diff_n` is given.
        TypeError: `n` or `m` are not integers, or an angle has another dtype.

    Example:
        >>> scipy.special.sph_harm_y(jnp.array([0]), jnp.array([0]), jnp.zeros(1), jnp.zeros(1))
        Array([0.2820948+0.j], dtype=complex64)

    Reference:
        NIST Digital Library of Mathematical Functions, section 14.30.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; differentiate with grad instead")
    for position, (name, x) in enumerate((("n", n), ("m", m))):
        dtype = operand_aval(x, position).dtype
        if not dtypes.is_integer(dtype):
            raise TypeError(f"sph_harm_y: {name} must be of integer type, got {dtype.name}")
    theta, phi = [to_array(x) for x in promote(theta, phi, adjust=as_inexact)]
    if theta.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"sph_harm_y: angles must be float32 or float64, got {theta.dtype.name}; convert them")
    if n_max is None:
        if isinstance(n, Tracer):
            raise ConcretizationTypeError("sph_harm_y: n is traced, so the largest degree is unknown: give n_max")
        n_max = int(np.max(np.asarray(n), initial=0))
    arrays = [to_array(n), to_array(m), theta, phi]
    shape = check_broadcast([x.shape for x in arrays])
    highest = max(to_integer("n_max", n_max), 0)
    return _compute_harmonic(*[broadcast_to_shape(x, shape) for x in arrays], highest=highest)
