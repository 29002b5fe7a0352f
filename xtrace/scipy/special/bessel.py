"""Bessel functions of the first kind, of integer orders."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.rearrangement import flip
from xtrace.numpy.manipulation.shapes import expand_dims
from xtrace.scipy.special.series import to_real_operands


@inline_jit
def _compute_orders(z: Array, *, highest: int, count: int) -> Array:
    """Return J by Miller's backward recurrence (DLMF 3.6.3) for J(k) / J(k - 1); that for J(k) would overflow."""
    (z,), dtype = to_real_operands(z)
    smallest = float(dtypes.finfo(z.dtype).tiny)

    def ratio(k: Array, above: Array) -> Array:
        divisor = 2 * k - z * above
        return z / select_where(divisor == 0, smallest, divisor)

    def step(i: Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
        k = count - i
        above, evens = state
        now = ratio(convert_to(k, z.dtype), above)
        # The sum of J(j) / J(k - 1) over even j >= k.
        return now, now * (evens + convert_to((k + 1) % 2, z.dtype))

    start = z / (2 * (count + 1))
    last, evens = fori_loop(0, max(count - highest, 0), step, (start, 0 * z))
    kept = min(highest, count)

    def step_and_keep(state: tuple[Any, Any], i: Array) -> tuple[Any, Any]:
        state = step(i, state)
        return state, state[0]

    (_, evens), ratios = scan(step_and_keep, (last, evens), arange(count - kept, count, dtype=dtypes.int32))
    # J(0) + 2 J(2) + 2 J(4) + … is 1.
    first = 1 / (1 + 2 * evens)
    _, results = scan(lambda below, factor: (below * factor,) * 2, first, ratios, reverse=True)
    missing = zeros((highest - kept, *z.shape), z.dtype)
    return convert_to(concatenate([expand_dims(first, 0), flip(results, 0), missing + expand_dims(0 * z, 0)]), dtype)


_bessel_jn = custom_jvp(
    lambda z, highest, count: _compute_orders(z, highest=highest, count=count), nondiff_argnums=(1, 2)
)


@_bessel_jn.defjvp
def _bessel_jn_jvp(highest: int, count: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (z,) = primals
    values = _bessel_jn(z, highest + 1, count)
    # J(k)' is (J(k - 1) - J(k + 1)) / 2, J(0)' is -J(1).
    slopes = concatenate([-values[1:2], (values[:highest] - values[2:]) / 2])
    return values[: highest + 1], slopes * expand_dims(tangents[0], 0)


@inline_jit(static=("v", "n_iter"), public=True)
def bessel_jn(z: RealLike, *, v: int, n_iter: int = 50) -> Array:
    """Return the Bessel functions of the first kind of the orders 0 to `v`.

    Args:
        z: an array of real numbers.
        v: the largest order, an integer.
        n_iter: the order at which the backward recurrence starts; it must exceed `v` and |z|.

    Returns:
        An array of shape (v + 1, *z.shape).

    Raises:
        TypeError: `v` or `n_iter` is not an integer.
        ValueError: one is negative, or `z` is complex.

    Example:
        >>> scipy.special.bessel_jn(0.5, v=1)
        Array([0.93846977, 0.24226844], dtype=float32)

    Reference:
        NIST Digital Library of Mathematical Functions, section 10.74(iv): Miller's algorithm.
    """
    highest, count = to_integer("v", v), to_integer("n_iter", n_iter)
    if highest < 0 or count < 0:
        raise ValueError(f"bessel_jn: v and n_iter must not be negative, got v={highest} and n_iter={count}")
    if isinstance(z, (list, tuple)):
        z = asarray(z)
    operand_aval(z, 0)
    return _bessel_jn(z, highest, count)
