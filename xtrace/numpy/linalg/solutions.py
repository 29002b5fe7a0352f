"""Linear systems, exact and least squares, inverses and pseudo-inverses."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    check_broadcast,
    convert_to,
    operand_aval,
    reshape,
    transpose,
)
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import check_mapped_ranks
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic, largest
from xtrace._src.ops.arrays.creation import full_like
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, ge, gt, lt
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.linalg.lu import lu, lu_solve
from xtrace._src.ops.linalg.matrices import adjoint, as_column, conj_if_complex, identity, product
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace._src.ops.solvers import custom_linear_solve
from xtrace.numpy.linalg.factorizations import svd
from xtrace.numpy.linalg.operands import matrix_type, promote_to_inexact
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import broadcast_operand_to, scalar_of

__all__ = ["inv", "lstsq", "pinv", "solve", "tensorinv", "tensorsolve"]


def solve_by_factors(a: ArrayLike, factors: ArrayLike, permutation: ArrayLike, b: Array) -> Array:
    """Return a⁻¹ b for equal batch axes, by the LU factors of `a`; derivatives reuse the factors."""
    factors = stop_gradient(factors)

    def forwards(_: object, right: ArrayLike) -> Array:
        return lu_solve(factors, permutation, right)

    def backwards(_: object, right: ArrayLike) -> Array:
        # The transposed system is the conjugate of the adjoint one.
        return conj_if_complex(lu_solve(factors, permutation, conj_if_complex(right), adjoint=True))

    return custom_linear_solve(lambda x: product(a, x), b, forwards, backwards)


def solve_systems(a: ArrayLike, b: Array) -> Array:
    """Return a⁻¹ b for matrices with equal batch axes."""
    factors, _, permutation = lu(stop_gradient(a))
    return solve_by_factors(a, factors, permutation, b)


def _broadcast_batch(x: Array, batch: tuple[int, ...]) -> Array:
    aval = aval_of(x)
    return broadcast_operand_to(x, aval.shape, (*batch, *aval.shape[-2:]))


@inline_jit
def _solve(a: ArrayLike, b: ArrayLike) -> Array:
    a, b = promote_to_inexact(a, b)
    left, right = aval_of(a), aval_of(b)
    if right.ndim == 1:
        return squeeze(_solve(a, as_column(b)), (left.ndim - 1,))
    if left.ndim == 2 and right.ndim > 2:
        # One matrix: the batch of right-hand sides becomes columns of one system.
        moved = moveaxis(b, -2, 0)
        solution = solve_systems(a, reshape(moved, (left.shape[0], right.size // max(left.shape[0], 1))))
        return moveaxis(reshape(solution, aval_of(moved).shape), 0, -2)
    batch = check_broadcast((left.shape[:-2], right.shape[:-2]))
    return solve_systems(_broadcast_batch(a, batch), _broadcast_batch(b, batch))


@inline_jit(public=True)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve ``a x = b`` for square matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        b: one vector, or an array of matrices, of shape (..., n, k); the leading axes broadcast.

    Returns:
        An array of the shape of `b`, broadcast; infinities or NaN for singular matrices.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the matrices are not square, or the shapes do not fit.

    Example:
        >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4: LU with partial pivoting.
    """
    left = matrix_type(a, square=True)
    right = operand_aval(b, 1)
    if right.ndim == 0 or right.shape[-1 if right.ndim == 1 else -2] != left.shape[-1]:
        hint = ". Write solve(a, b[..., None])[..., 0] for vectors" if right.shape == left.shape[:-1] else ""
        raise ValueError(
            f"Invalid shapes for solve: {left.shape}, {right.shape}; b must have as many rows as a has columns{hint}"
        )
    check_mapped_ranks((left.shape, right.shape), (2, min(right.ndim, 2)))
    return _solve(a, b)


@inline_jit(public=True)
def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.

    Returns:
        An array of the shape of `a`; infinities or NaN for singular matrices.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4: LU with partial pivoting.
    """
    matrix_type(a, square=True)
    (a,) = promote_to_inexact(a)
    aval = aval_of(a)
    return solve_systems(a, identity(aval.dtype, aval.shape))


# Least squares


def _invert_kept(values: Array, kept: Array) -> Array:
    one = full_like(values, 1)
    return select(kept, lax.div(one, select(kept, values, one)), full_like(values, 0))


def _solve_empty(a: ShapedArray, b: Array) -> tuple[Any, Any, Any, Any]:
    """Return the results of `lstsq` for a matrix without rows or columns: zeros, or an empty array."""
    size = lax.abs(b)
    real = aval_of(size).dtype
    solution = broadcast_in_dim(scalar_of(0, a.dtype), (a.shape[1], aval_of(b).shape[1]), ())
    return solution, add_elements(lax.mul(size, size), (0,)), None, broadcast_in_dim(scalar_of(0, real), (0,), ())


def _scale_largest(sizes: Sequence[Any], factor: float, dtype: Any) -> Any:
    """Return a factor times the largest of sizes."""
    size = functools.reduce(largest, sizes)
    if is_symbolic(size):
        return lax.mul(scalar_of(size, dtype), scalar_of(factor, dtype))
    return scalar_of(factor * size, dtype)


def _solve_least_squares(a: Array, b: Array, rcond: ArrayLike | None) -> tuple[Any, Any, Any, Any]:
    """Return the solution, squared residuals, a mask of the significant singular values, and all of them."""
    aval = aval_of(a)
    if not aval.size:
        return _solve_empty(aval, b)
    u, values, vh = svd(a, full_matrices=False)
    own = aval_of(values)
    eps = float(dtypes.finfo(own.dtype).eps)
    bound: Array | Literal
    if rcond is None:
        bound = _scale_largest(aval.shape, eps, own.dtype)
    else:
        given = convert_to(rcond, own.dtype)
        bound = select(lt(given, scalar_of(0, own.dtype)), scalar_of(eps, own.dtype), given)
    limit = lax.mul(broadcast_in_dim(bound, (1,), ()), slice_in_dim(values, 0, 1))
    positive = gt(values, scalar_of(0, own.dtype))
    kept = bitwise_and(positive, ge(values, broadcast_in_dim(limit, own.shape, (0,))))
    scale = convert_to(as_column(_invert_kept(values, kept)), aval.dtype)
    solution = product(adjoint(vh), lax.mul(scale, product(adjoint(u), b)))
    size = lax.abs(lax.sub(b, product(a, solution)))
    return solution, add_elements(lax.mul(size, size), (0,)), kept, values


@inline_jit
def _lstsq(a: ArrayLike, b: ArrayLike, rcond: Any, *, dtype: DType) -> tuple[Any, Any, Any, Any]:
    a, b = promote_to_inexact(a, b)
    vector = aval_of(b).ndim == 1
    solution, residuals, kept, values = _solve_least_squares(a, as_column(b) if vector else b, rcond)
    rank = scalar_of(0, dtype) if kept is None else add_elements(convert_to(kept, dtype), (0,))
    return squeeze(solution, (1,)) if vector else solution, residuals, convert_to(rank, dtype), values


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Any, Any, Any, Any]:
    """Compute the `x` of the smallest residual ``‖b - a x‖``, in the Euclidean norm.

    Args:
        a: a matrix.
        b: a vector or a matrix.
        rcond: singular values below `rcond` times the largest one count as zero; None for the machine epsilon times
            the longer side, a negative number for the machine epsilon.
        numpy_resid: whether to return no residuals where NumPy returns none; not possible under `jit`.

    Returns:
        A tuple of `x`, the sums of squares of ``b - a x``, the rank of `a` and its singular values.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `a` is not a matrix, `b` is neither a vector nor a matrix, or they differ in the number of rows.

    Example:
        >>> jnp.linalg.lstsq(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))[0].round(3)
        Array([1. , 0.5], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.5: by singular values.
    """
    left, right = operand_aval(a, 0), operand_aval(b, 1)
    if left.ndim != 2 or right.ndim not in (1, 2):
        error_class = ValueError if left.ndim != 2 else TypeError
        raise error_class(f"lstsq takes a matrix and a vector or a matrix; got shapes {left.shape} and {right.shape}")
    if left.shape[0] != right.shape[0]:
        raise ValueError(f"lstsq: leading dimensions must match; got shapes {left.shape} and {right.shape}")
    solution, residuals, rank, values = _lstsq(a, b, rcond, dtype=dtypes.default_int(config.enable_x64.value))
    if numpy_resid:
        rows, columns = left.shape
        if rows <= columns or rank != columns:
            residuals = residuals[:0]
    return solution, residuals, rank, values


def _compute_pinv(a: Array, rtol: object, hermitian: bool) -> Array:
    aval = aval_of(a)
    *batch, rows, columns = aval.shape
    if not rows or not columns:
        return broadcast_in_dim(scalar_of(0, aval.dtype), (*batch, columns, rows), ())
    u, values, vh = svd(a, full_matrices=False, hermitian=hermitian)
    own = aval_of(values)
    if rtol is None:
        rtol = _scale_largest((rows, columns), 10.0 * float(dtypes.finfo(own.dtype).eps), own.dtype)
    bound = convert_to(rtol, own.dtype)
    limit = broadcast_operand_to(bound, aval_of(bound).shape, tuple(batch))
    largest = squeeze(slice_in_dim(values, 0, 1, 1, own.ndim - 1), (own.ndim - 1,))
    kept = gt(values, broadcast_in_dim(lax.mul(limit, largest), own.shape, range(own.ndim - 1)))
    divisors = convert_to(select(kept, values, full_like(values, math.inf)), aval.dtype)
    return product(adjoint(vh), lax.div(adjoint(u), as_column(divisors)))


@custom_jvp
def _pinv_general(a: Array, rtol: Array | None) -> Array:
    return _compute_pinv(a, rtol, False)


@custom_jvp
def _pinv_hermitian(a: Array, rtol: object) -> Array:
    return _compute_pinv(a, rtol, True)


def _compute_pinv_tangent(a: Array, da: Array, p: Array) -> Array:
    # dP = -P dA P + P Pᴴ dAᴴ (1 - A P) + (1 - P A) dAᴴ Pᴴ P, where the rank does not change (Golub and Pereyra 1973,
    # The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate).
    right = product(product(p, adjoint(p)), adjoint(da))
    left = product(adjoint(da), product(adjoint(p), p))
    total = lax.sub(lax.add(right, left), product(product(p, da), p))
    return lax.sub(lax.sub(total, product(product(right, a), p)), product(p, product(a, left)))


@_pinv_general.defjvp
def _pinv_general_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    inverse = _pinv_general(*primals)
    return inverse, _compute_pinv_tangent(primals[0], tangents[0], inverse)


@_pinv_hermitian.defjvp
def _pinv_hermitian_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    inverse = _pinv_hermitian(*primals)
    return inverse, _compute_pinv_tangent(primals[0], tangents[0], inverse)


@inline_jit(static=("hermitian",), public=True)
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """Return the Moore-Penrose inverses of matrices.

    Args:
        a: an array of matrices, of shape (..., m, n).
        rtol: singular values up to `rtol` times the largest one count as zero; None for ten times the longer side
            times the machine epsilon. It may have the leading axes of `a`.
        hermitian: whether `a` is Hermitian; the singular values are then computed from its eigenvalues.
        rcond: the old name of `rtol`.

    Returns:
        An array with the last two axes exchanged.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `rtol` and `rcond` are given, or `a` has fewer than two axes.

    Example:
        >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 4.0]])).round(3)
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.5: by singular values.
    """
    matrix_type(a, square=bool(hermitian))
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    tolerance: Any = rcond if rtol is None else rtol
    (a,) = promote_to_inexact(a)
    return (_pinv_hermitian if hermitian else _pinv_general)(convert_to(a, aval_of(a).dtype), tolerance)


# Systems of tensors


@inline_jit(static=("ind",), public=True)
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of the linear map from the last axes of `a` to its first ones.

    Args:
        a: an array; the first `ind` axes have as many elements as the others.
        ind: the number of first axes, positive.

    Returns:
        An array of the last axes of `a`, then of the first ones.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `ind` is not positive, or the groups of axes differ in their numbers of elements.

    Example:
        >>> jnp.linalg.tensorinv(jnp.array([[2.0, 0.0], [0.0, 4.0]]), 1)
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)

    Reference:
        Defined as in ``numpy.linalg.tensorinv``.
    """
    aval = operand_aval(a, 0)
    count = to_integer("ind", ind)
    if count <= 0:
        raise ValueError(f"tensorinv: ind must be a positive integer; got ind={ind}")
    rows, columns = aval.shape[:count], aval.shape[count:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the remaining "
            f"dimensions; got shape {aval.shape} with ind={ind}"
        )
    return reshape(inv(reshape(a, (math.prod(rows), math.prod(columns)))), (*columns, *rows))


def _move_axes_to_end(a: ArrayLike, axes: Sequence[Any], rank: int) -> Array:
    last = [canonical_axis(i, rank) for i in axes]
    return transpose(a, [i for i in range(rank) if i not in last] + last)


@inline_jit(static=("axes",), public=True)
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Any = None) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: an array whose shape begins with the shape of `b`; the remaining axes have as many elements as `b`.
        b: an array.
        axes: axes of `a` that are moved to its end first.

    Returns:
        An array of the last axes of `a`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shape of `a` does not begin with the shape of `b`, or the remaining axes have another number of
            elements.

    Example:
        >>> jnp.linalg.tensorsolve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
        Array([1. , 0.5], dtype=float32)

    Reference:
        Defined as in ``numpy.linalg.tensorsolve``.
    """
    left, right = operand_aval(a, 0), operand_aval(b, 1)
    if axes is not None:
        a = _move_axes_to_end(a, axes, left.ndim)
        left = aval_of(a)
    own, unknown = left.shape[: right.ndim], left.shape[right.ndim :]
    if own != right.shape:
        raise ValueError(
            "tensorsolve: the leading axes of a, after axes are moved to its end, must have the shape of b; got shapes "
            f"{left.shape} and {right.shape}"
        )
    if math.prod(own) != math.prod(unknown):
        raise ValueError(
            f"tensorsolve: the {right.ndim} first axes of a must have as many elements as the others; got shape "
            f"{left.shape}"
        )
    size = math.prod(own)
    return reshape(solve(reshape(a, (size, size)), reshape(b, (size,))), unknown)
