"""Polar decomposition by dynamically weighted Halley iterations with QR and Cholesky factorisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.families import mul
from xtrace._src.algebra.kinds import INEXACT, check_kind
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, reduce_sum, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_not, eq, gt, lt
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import abs, add, rsqrt, sqrt, sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg.matrices import adjoint, identity, product, symmetrize
from xtrace._src.ops.linalg.qr import qr
from xtrace._src.ops.linalg.triangular import cholesky, triangular_solve
from xtrace._src.ops.reductions.reductions import reduce_max

# Above this weight c, steps with a Cholesky factorisation are inaccurate.
_LARGEST_WEIGHT = 100.0


def _step_weights(eps: float, tolerance: float, limit: int) -> list[tuple[float, float, float]]:
    """Return (a, b, c) of the steps x (a + b x²) / (1 + c x²) that map singular values in [eps, 1] to 1."""
    least = eps
    weights: list[tuple[float, float, float]] = []
    while least + tolerance < 1 and len(weights) < limit:
        square = least * least
        root = np.sqrt(1 + np.cbrt(4 * (1 / square - 1) / square))
        a = float(root + np.sqrt(8 - 4 * (root * root - 1) + 8 * (2 - square) / (square * root)) / 2)
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        least *= (a + b * square) / (1 + c * square)
    return weights


def _step(x: Array, a: float, b: float, c: float) -> Array:
    """Return x (a + b xᴴx) (1 + c xᴴx)⁻¹ of each matrix, without squaring `x` if c is large."""
    *batch, rows, columns = aval_of(x).shape
    one = identity(aval_of(x).dtype, (*batch, columns, columns))
    kept = b / c
    if c > _LARGEST_WEIGHT:
        row = len(batch)
        root = c**0.5
        q, _ = qr(concatenate([mul(constant_like(x, root), x), one], row), full_matrices=False)
        upper, lower = slice_in_dim(q, 0, rows, 1, row), slice_in_dim(q, rows, rows + columns, 1, row)
        change = mul(constant_like(x, (a - kept) / root), product(upper, adjoint(lower)))
    else:
        square = product(adjoint(x), x)
        factor = cholesky(add(mul(constant_like(square, c), square), one), symmetrize_input=False)
        solved = triangular_solve(factor, adjoint(x), left_side=True, lower=True)
        solved = triangular_solve(factor, solved, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
        change = mul(constant_like(x, a - kept), adjoint(solved))
    return add(mul(constant_like(x, kept), x), change)


def _normalize(x: Array) -> Array:
    """Return each matrix divided by a bound of its largest singular value: sqrt(1-norm * infinity norm)."""
    size = abs(x)
    row = aval_of(x).ndim - 2
    sums = [reduce_sum(size, (axis,)) for axis in (row, row + 1)]
    norms = [reduce_max(total, (row,)) for total in sums]
    scale = mul(rsqrt(norms[0]), rsqrt(norms[1]))
    scale = select_n(eq(norms[0], constant_like(norms[0], 0)), scale, constants_like(scale, 1))
    return mul(x, convert_to(broadcast_in_dim(scale, aval_of(x).shape, range(row)), aval_of(x).dtype))


def unitary_factors(x: Any) -> Array:
    """Return the factor U of the polar decomposition of each matrix; the number of steps depends on the dtype only.

    Singular values below the precision, relative to the largest, may stay below 1; their vectors are exact.
    """
    precision = float(dtypes.finfo(dtypes.real_part_dtype(aval_of(x).dtype)).eps)
    u = _normalize(x)
    for weights in _step_weights(precision, 5 * precision, 10):
        u = _step(u, *weights)
    return u


def _has_changed(x: Array, y: Array, tolerance: float) -> Array:
    """Return whether the Frobenius norm of the difference is above the tolerance."""
    size = abs(sub(x, y))
    norm = sqrt(reduce_sum(mul(size, size), (0, 1)))
    return gt(norm, constant_like(norm, tolerance))


def _mask_outside(x: Any, shape: Shape) -> Array:
    """Return `x` with zeros outside its first `shape` rows and columns."""
    aval = aval_of(x)
    rows, columns = [
        lt(broadcasted_iota(np.int32, aval.shape, axis), broadcast_in_dim(convert_to(n, dtypes.int32), aval.shape, ()))
        for axis, n in enumerate(shape)
    ]
    return select_n(bitwise_and(rows, columns), zeros(aval), x)


def qdwh(
    x: Any, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Decompose a matrix as ``x = u h`` with orthonormal columns of u and Hermitian positive semidefinite h.

    Args:
        x: a floating or complex matrix of shape (m, n) with m >= n.
        is_hermitian: whether `x` is Hermitian; this does not change the computation.
        max_iterations: the largest number of steps, at least 1; None for 10.
        eps: the precision of the result; None for the precision of the dtype.
        dynamic_shape: two int32 scalars, the size of the leading block of `x` to decompose; other elements count as
            zero.

    Returns:
        Four arrays: u of shape (m, n), h of shape (n, n), the number of steps, and whether the steps converged.

    Raises:
        TypeError: `x` is no floating or complex array.
        ValueError: `x` is no matrix with m >= n, or `max_iterations` is less than 1.

    Example:
        >>> lax.linalg.qdwh(jnp.array([[3.0, 0.0], [0.0, -2.0]]))[0]
        Array([[ 1.,  0.],
               [ 0., -1.]], dtype=float32)

    Reference:
        Nakatsukasa, Bai and Gygi, Optimizing Halley's iteration for computing the matrix polar decomposition, 2010.
    """
    aval = operand_aval(x, "x")
    check_kind("qdwh", (aval,), (INEXACT,))
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(f"qdwh: the input must be a matrix of shape M x N with M >= N, got shape {aval.shape}")
    limit = 10 if max_iterations is None else to_integer("max_iterations", max_iterations)
    if limit < 1:
        raise ValueError(f"qdwh: max_iterations must be at least 1, got {max_iterations}")
    precision = float(dtypes.finfo(dtypes.real_part_dtype(aval.dtype)).eps) if eps is None else float(eps)
    tolerance = 5 * precision
    if dynamic_shape is not None:
        pair = isinstance(dynamic_shape, (tuple, list))
        if not pair or len(dynamic_shape) != 2:
            message = f"qdwh: dynamic_shape must be a pair of integers, got {abbreviate(dynamic_shape)}"
            raise ValueError(message) if pair else TypeError(message)
        x = _mask_outside(x, dynamic_shape)
    u = _normalize(x)
    steps = _step_weights(precision, tolerance, limit)
    previous = u
    for weights in steps:
        previous, u = u, _step(u, *weights)
    moving = _has_changed(u, previous, tolerance ** (1 / 3))

    def has_steps_left(state: tuple[Any, Any, Any]) -> Array:
        count, _, moving = state
        return bitwise_and(moving, lt(count, constant_like(count, limit)))

    def advance(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        count, u, _ = state
        new = _step(u, 3, 1, 3)
        return add(count, constant_like(count, 1)), new, _has_changed(new, u, tolerance ** (1 / 3))

    count, u, moving = while_loop(has_steps_left, advance, (len(steps), u, moving))
    # A Newton-Schulz step makes the columns orthogonal to working precision.
    u = sub(mul(constant_like(u, 1.5), u), mul(constant_like(u, 0.5), product(u, product(adjoint(u), u))))
    return u, symmetrize(product(adjoint(u), x)), count, bitwise_not(moving)
