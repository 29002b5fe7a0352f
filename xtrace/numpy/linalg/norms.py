"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.ops.arrays.creation import full_like
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_not, ne
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.reductions.reductions import reduce_or
from xtrace.numpy.linalg.factorizations import svd, svdvals
from xtrace.numpy.linalg.operands import matrix_type, promote_to_inexact
from xtrace.numpy.linalg.solutions import inv
from xtrace.numpy.manipulation.shapes import expand_dims, moveaxis
from xtrace.numpy.operands import axes_of, scalar_of
from xtrace.numpy.reductions.reductions import amax, amin
from xtrace.numpy.reductions.reductions import sum as summed

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

_Axes = tuple[int, ...]


def _to_order(ord: Any, kind: str) -> Any:
    """Return `ord` as a float or the name of a norm; ValueError for other values."""
    if ord is None or isinstance(ord, str):
        return ord
    try:
        return float(ord)
    except (TypeError, ValueError):
        raise ValueError(
            f"{called_function()}: Invalid order {abbreviate(ord)} for {kind} norm; give a number or a name"
        ) from None


def _to_inexact(x: ArrayLike) -> Array:
    (x,) = promote_to_inexact(x)
    return convert_to(x, aval_of(x).dtype)


def _compute_euclidean_norm(x: Array, axes: _Axes, keepdims: bool) -> Array:
    if dtypes.is_complex(aval_of(x).dtype):
        square = complex_numbers.real(lax.mul(x, complex_numbers.conj(x)))
    else:
        square = lax.mul(x, x)
    return lax.sqrt(summed(square, axes, keepdims=keepdims))


def _compute_vector_norm(x: Array, ord: Any, axes: _Axes, keepdims: bool) -> Array:
    if ord is None or ord == 2:
        return _compute_euclidean_norm(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(
            f"{called_function()}: Invalid order {abbreviate(ord)} for vector norm; give a number, or two axes for a "
            "norm of matrices"
        )
    if ord == 0:
        counted = ne(x, scalar_of(0, aval_of(x).dtype))
        return summed(convert_to(counted, dtypes.real_part_dtype(aval_of(x).dtype)), axes, keepdims=keepdims)
    size = lax.abs(x)
    if ord == math.inf:
        return _find_largest(size, axes, keepdims=keepdims)
    if ord == -math.inf:
        return amin(size, axes, keepdims=keepdims)
    if ord == 1:
        return summed(size, axes, keepdims=keepdims)
    dtype = aval_of(size).dtype
    total = summed(lax.pow(size, scalar_of(ord, dtype)), axes, keepdims=keepdims)
    return lax.pow(total, scalar_of(1 / ord, dtype))


_find_largest = functools.partial(amax, initial=0)
# By order of a matrix norm: whether to sum columns or rows, and the reduction of the sums.
_SUM_REDUCTIONS: dict[Any, tuple[bool, Callable[..., Array]]] = {
    1: (True, _find_largest), -1: (True, amin),
    math.inf: (False, _find_largest), -math.inf: (False, amin),
}
# By order of a matrix norm: the reduction of the singular values.
_SINGULAR_VALUE_REDUCTIONS: dict[Any, Callable[..., Any]] = {2: _find_largest, -2: amin, "nuc": summed}


def _compute_matrix_norm(x: Array, ord: object, axes: _Axes, keepdims: bool) -> Array:
    row, column = axes
    if ord in (None, "fro"):
        return _compute_euclidean_norm(x, axes, keepdims)
    if ord in _SUM_REDUCTIONS:
        down, reduce = _SUM_REDUCTIONS[ord]
        first, second = (row, column) if down else (column, row)
        totals = summed(lax.abs(x), first, keepdims=keepdims)
        return reduce(totals, second - (first < second and not keepdims), keepdims=keepdims)
    if ord in _SINGULAR_VALUE_REDUCTIONS:
        norm = _SINGULAR_VALUE_REDUCTIONS[ord](svdvals(moveaxis(x, axes, (-2, -1))), -1)
        return expand_dims(norm, axes) if keepdims else norm
    raise ValueError(
        f"{called_function()}: Invalid order {abbreviate(ord)} for matrix norm; it is one of 'fro', 'nuc', 1, -1, 2, "
        "-2, inf and -inf"
    )


@inline_jit(static=("axis", "keepdims", "ord"), public=True)
def vector_norm(x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: object = 2) -> Array:
    """Return norms of vectors.

    Args:
        x: an array or a scalar of numbers; integers become floats.
        axis: the axis of the vectors, or several; None for all elements.
        keepdims: whether these axes remain, with size 1.
        ord: the order, a number; inf and -inf for the largest and smallest absolute value, 0 for the number of
            nonzero elements.

    Returns:
        A real array of the other axes.

    Raises:
        TypeError: `x` is neither an array nor a scalar.
        ValueError: `ord` is a string, or `x` has no such axis.

    Example:
        >>> jnp.linalg.vector_norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 2.2.
    """
    aval = operand_aval(x, 0)
    axes = axes_of(axis, aval.ndim)
    kind = _to_order(ord, "vector")
    return _compute_vector_norm(_to_inexact(x), kind, axes, keepdims)


@inline_jit(static=("keepdims", "ord"), public=True)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: object = "fro") -> Array:
    """Return norms of matrices.

    Args:
        x: an array of matrices, of shape (..., m, n).
        keepdims: whether these axes remain, with size 1.
        ord: the order, ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf.

    Returns:
        A real array of the other axes.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `ord` is another order, or `x` has fewer than two axes.

    Example:
        >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
        Array(5., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 2.3.
    """
    rank = matrix_type(x).ndim
    kind = _to_order(ord, "matrix")
    return _compute_matrix_norm(_to_inexact(x), kind, (rank - 2, rank - 1), keepdims)


@inline_jit(static=("ord", "axis", "keepdims"), public=True)
def norm(x: ArrayLike, ord: object = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """Return norms of vectors along one axis, or of matrices along two.

    Args:
        x: an array of numbers.
        ord: an order of `vector_norm` or `matrix_norm`; None for the Euclidean or the Frobenius norm.
        axis: the axis, or a pair of axes; None for all axes, one or two unless `ord` is None.
        keepdims: whether these axes remain, with size 1.

    Returns:
        A real array of the other axes.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `ord` is unknown, `x` has no such axis, or the number of axes is neither one nor two.

    Example:
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), sections 2.2 and 2.3.
    """
    aval = operand_aval(x, 0)
    axes = axes_of(axis, aval.ndim)
    whole = ord is None and axis is None
    if not whole and len(axes) not in (1, 2):
        raise ValueError(
            f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, or two axes to "
            "compute a matrix-norm."
        )
    of_matrices = not whole and len(axes) == 2
    kind = _to_order(ord, "matrix" if of_matrices else "vector")
    compute = _compute_matrix_norm if of_matrices else _compute_vector_norm
    return compute(_to_inexact(x), kind, axes, keepdims)


@inline_jit(static=("p",), public=True)
def cond(x: ArrayLike, p: ArrayLike | None = None) -> Array:
    """Return condition numbers: the norms of matrices times the norms of their inverses.

    Args:
        x: an array of matrices, of shape (..., m, n).
        p: the order of the norm, ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf; None for 2. For 2 and -2 the
            matrices need not be square.

    Returns:
        A real array of the leading axes; inf for singular matrices. Matrices of zeros have NaN by the default order and
        2, and inf where ``xtrace_jax_version`` is 0.12.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` is empty, or `p` is unknown.

    Example:
        >>> jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array(2., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 2.6.
    """
    aval = operand_aval(x, 0)
    if aval.ndim < 2:
        raise ValueError(f"cond: the input array must be at least 2D; got shape {aval.shape}")
    if 0 in aval.shape[-2:]:
        raise ValueError(f"cond: the input array must not be empty; got shape {aval.shape}")
    order = _to_order(p, "matrix")
    if order not in (None, 2, -2) and aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"cond: for p={abbreviate(p)}, the array must be square; got shape {aval.shape}")
    (x,) = promote_to_inexact(x)
    axes = (aval.ndim - 2, aval.ndim - 1)
    if order in (None, 2, -2):
        values = svdvals(x)
        ends = [values[..., 0], values[..., -1]]
        condition = lax.div(*(reversed(ends) if order == -2 else ends))
    else:
        size = _compute_matrix_norm(x, order, axes, False)
        condition = lax.mul(size, _compute_matrix_norm(inv(x), order, axes, False))
    if order in (None, 2) and not is_newer():
        return condition
    # The condition number of a singular matrix is infinity.
    missing = reduce_or(ne(x, x), axes)
    undefined = bitwise_and(ne(condition, condition), bitwise_not(missing))
    return select(undefined, full_like(condition, math.inf), condition)


@inline_jit(static=("hermitian",), public=True)
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """Return the ranks of matrices: the numbers of singular values above a bound.

    Args:
        M: an array of matrices, of shape (..., m, n), or a vector.
        rtol: the bound on singular values, absolute as in JAX; None for the largest singular value times the longer
            side times the machine epsilon. It may have the leading axes of `M`.
        hermitian: whether `M` is Hermitian; the singular values are then computed from its eigenvalues.
        tol: another name of `rtol`.

    Returns:
        An array of integers, of the leading axes.

    Raises:
        TypeError: `M` is not an array.
        ValueError: `rtol` and `tol` are given, or `M` is empty.

    Example:
        >>> jnp.linalg.matrix_rank(jnp.ones((2, 2)))
        Array(1, dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.5.
    """
    aval = operand_aval(M, 0)
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    dtype = dtypes.default_int(config.enable_x64.value)
    if aval.ndim < 2:
        return convert_to(reduce_or(ne(M, scalar_of(0, aval.dtype)), tuple(range(aval.ndim))), dtype)
    if not min(aval.shape[-2:]) and rtol is None and tol is None:
        raise ValueError(f"matrix_rank: an empty matrix has no largest singular value; got shape {aval.shape}")
    (x,) = promote_to_inexact(M)
    values = svd(x, compute_uv=False, hermitian=hermitian)
    tolerance = tol if rtol is None else rtol
    if tolerance is None:
        own = aval_of(values).dtype
        share: Any = scalar_of(max(aval.shape[-2:]) * float(dtypes.finfo(own).eps), own)
        tolerance = amax(values, -1) * share
    return summed(values > expand_dims(tolerance, -1), -1, dtype)
