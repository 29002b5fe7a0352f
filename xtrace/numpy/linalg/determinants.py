"""Determinants, their logarithms, and the derivatives of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reduce_sum, zeros
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.ops.arrays.creation import broadcasted_iota, full_like
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq, lt, ne
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.linalg.lu import lu, unpermute_rows
from xtrace._src.ops.linalg.matrices import as_column, as_row, diagonal, identity, product, transpose_matrices
from xtrace._src.ops.linalg.qr import geqrf
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.ops.reductions.reductions import reduce_or, reduce_prod
from xtrace.numpy.linalg.operands import matrix_type, promote_to_inexact
from xtrace.numpy.linalg.solutions import solve_by_factors, solve_systems

__all__ = ["det", "slogdet"]


class SlogdetResult(NamedTuple):
    """The sign of a determinant, for complex matrices a number of absolute value 1, and the logarithm of its size."""

    sign: Any
    logabsdet: Any


def _mask_exchanges(pivots: Array) -> Array:
    """Return a mask of the steps at which a factorisation exchanged two rows."""
    shape = aval_of(pivots).shape
    return ne(pivots, broadcasted_iota(dtypes.int32, shape, len(shape) - 1))


def _split_product(main: Array, negated: Array) -> SlogdetResult:
    """Return sign and logarithm of the product of `main` along the last axis; `negated` factors change sign."""
    last = (aval_of(main).ndim - 1,)
    zero = constant_like(main, 0)
    singular = reduce_or(eq(main, zero), last)
    size = lax.abs(main)
    if dtypes.is_complex(aval_of(main).dtype):
        signs = lax.div(main, convert_to(size, aval_of(main).dtype))
        signs = select(negated, lax.neg(signs), signs)
    else:
        signs = select(ne(negated, lt(main, zero)), full_like(main, -1), full_like(main, 1))
    sign, logarithm = reduce_prod(signs, last), reduce_sum(lax.log(size), last)
    return SlogdetResult(
        select(singular, full_like(sign, 0), sign), select(singular, full_like(logarithm, -math.inf), logarithm)
    )


def _take_element(a: Array, row: int, column: int) -> Array:
    """Return an element of each matrix."""
    rank = aval_of(a).ndim
    element = slice_in_dim(slice_in_dim(a, row, row + 1, 1, rank - 2), column, column + 1, 1, rank - 1)
    return squeeze(element, (rank - 2, rank - 1))


def _expand_determinant(a: Array, columns: Sequence[int] | None = None) -> Array:
    """Return determinants of the last rows, three at most, and given columns, by expansion along the first row."""
    size = aval_of(a).shape[-1]
    columns = range(size) if columns is None else columns
    terms = [_take_element(a, size - len(columns), column) for column in columns]
    if len(columns) == 1:
        return terms[0]
    minors = [_expand_determinant(a, [*columns[:i], *columns[i + 1 :]]) for i in range(len(columns))]
    products = [lax.mul(term, minor) for term, minor in zip(terms, minors, strict=True)]
    total = lax.sub(products[0], products[1])
    return lax.add(total, products[2]) if len(products) == 3 else total


def _factor_and_sign(a: Array) -> tuple[SlogdetResult, Any, Any]:
    """Return sign and logarithm of determinants, and the LU factors and permutation."""
    factors, pivots, permutation = lu(a)
    return _split_product(diagonal(factors), _mask_exchanges(pivots)), factors, permutation


def _sum_diagonal(x: Array) -> Array:
    return reduce_sum(diagonal(x), (aval_of(x).ndim - 2,))


def _make_slogdet_tangents(sign: Array, relative: Array) -> SlogdetResult:
    """Return the tangents of sign and logarithm if the determinant changes by the factor 1 + `relative`."""
    if not dtypes.is_complex(aval_of(relative).dtype):
        return SlogdetResult(zeros(aval_of(sign)), relative)
    turn = complex_numbers.complex(zeros(aval_of(complex_numbers.imag(relative))), complex_numbers.imag(relative))
    return SlogdetResult(lax.mul(sign, turn), complex_numbers.real(relative))


@custom_jvp
def _slogdet_by_expansion(a: Array) -> SlogdetResult:
    determinant = _expand_determinant(a)
    return SlogdetResult(lax.sign(determinant), lax.log(lax.abs(determinant)))


@_slogdet_by_expansion.defjvp
def _slogdet_by_expansion_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[SlogdetResult, SlogdetResult]:
    (a,), (da,) = primals, tangents
    result = _slogdet_by_expansion(a)
    change = _take_element(da, 0, 0)
    if aval_of(a).shape[-1] == 2:
        change = lax.mul(change, _take_element(a, 1, 1))
        change = lax.sub(change, lax.mul(_take_element(da, 0, 1), _take_element(a, 1, 0)))
        change = lax.sub(change, lax.mul(_take_element(da, 1, 0), _take_element(a, 0, 1)))
        change = lax.add(change, lax.mul(_take_element(da, 1, 1), _take_element(a, 0, 0)))
    return result, _make_slogdet_tangents(result.sign, lax.div(change, _expand_determinant(a)))


@custom_jvp
def _slogdet_by_lu(a: Array) -> SlogdetResult:
    return _factor_and_sign(a)[0]


@_slogdet_by_lu.defjvp
def _slogdet_by_lu_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[SlogdetResult, SlogdetResult]:
    # d log det A = tr A⁻¹ dA.
    (a,), (da,) = primals, tangents
    result, factors, permutation = _factor_and_sign(a)
    return result, _make_slogdet_tangents(result.sign, _sum_diagonal(solve_by_factors(a, factors, permutation, da)))


@custom_jvp
def _slogdet_by_qr(a: Array) -> SlogdetResult:
    # Each reflection has determinant -1, but with factor 0 it is the identity.
    packed, factors = geqrf(a)
    return _split_product(diagonal(packed), ne(factors, constant_like(factors, 0)))


@_slogdet_by_qr.defjvp
def _slogdet_by_qr_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[SlogdetResult, SlogdetResult]:
    result = _slogdet_by_qr(*primals)
    return result, _make_slogdet_tangents(result.sign, _sum_diagonal(solve_systems(*primals, *tangents)))


_SLOGDET: dict[str, Callable[[Any], SlogdetResult]] = {"lu": _slogdet_by_lu, "qr": _slogdet_by_qr}


@inline_jit(static=("method",), public=True)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the signs and the logarithms of the absolute values of determinants.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        method: ``"lu"``, the default, or ``"qr"``, which is for real matrices.

    Returns:
        A pair (sign, logabsdet) of arrays of the leading axes; 0 and -inf for singular matrices.

    Raises:
        NotImplementedError: the method is ``"qr"`` and the matrices are complex.
        TypeError: `a` is not an array.
        ValueError: the matrices are not square, or `method` has another value.

    Example:
        >>> tuple(jnp.linalg.slogdet(jnp.eye(2)))
        (Array(1., dtype=float32), Array(0., dtype=float32))

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.2.
    """
    aval = matrix_type(a, square=True)
    method = "lu" if method is None else method
    if method not in _SLOGDET:
        raise ValueError(
            f"Unknown slogdet method {abbreviate(method)}. Supported methods are 'lu' (`None`), and 'qr'."
        )
    if method == "qr" and dtypes.is_complex(aval.dtype):
        raise NotImplementedError("slogdet method='qr' not implemented for complex inputs; use method='lu'")
    (a,) = promote_to_inexact(a)
    if method == "lu" and 1 <= aval.shape[-1] <= 2:
        return _slogdet_by_expansion(a)
    return _SLOGDET[method](a)


def _compute_cofactors(factors: Array, permutation: Array, sign: Array) -> Array:
    """Return the matrices of cofactors, also of singular matrices, from their LU factors and the rows' exchanges.

    Where U has zeros on its diagonal, at z₁ < … < zₘ, let V be U with ones there, and B its inverse. As
    U = V - E Eᵀ for the unit vectors E, adj U = det V · B E adj(1 - Eᵀ B E) Eᵀ B, and 1 - Eᵀ B E is strictly upper
    triangular, so its adjugate has one nonzero element: adj U = det V · ∏ B[zᵢ, zᵢ₊₁] · B[:, z₁] B[zₘ, :].
    """
    aval = aval_of(factors)
    last = aval.ndim - 1
    one = identity(aval.dtype, aval.shape)
    main = diagonal(factors)
    zero = eq(main, constant_like(main, 0))
    filled = select(zero, full_like(main, 1), main)
    shifted = lax.add(factors, lax.mul(one, as_row(convert_to(zero, aval.dtype))))
    inverse = triangular_solve(shifted, one, left_side=True)
    # Consecutive zeros have consecutive numbers.
    number = cumsum(convert_to(zero, dtypes.int32), last - 1)
    count = slice_in_dim(number, aval.shape[-1] - 1, aval.shape[-1], 1, last - 1)
    zeros_of_pairs = [broadcast_in_dim(x, aval.shape, axes) for x, axes in _orient_vectors(zero, aval.ndim)]
    places = [broadcast_in_dim(x, aval.shape, axes) for x, axes in _orient_vectors(number, aval.ndim)]
    neighbours = bitwise_and(bitwise_and(*zeros_of_pairs), eq(lax.add(places[0], constant_like(number, 1)), places[1]))
    chain = reduce_prod(select(neighbours, inverse, full_like(inverse, 1)), (last - 1, last))
    first = convert_to(bitwise_and(zero, eq(number, constant_like(number, 1))), aval.dtype)
    final = bitwise_and(zero, eq(number, broadcast_in_dim(count, aval.shape[:-1], range(last))))
    column = product(inverse, as_column(first))
    row = product(as_row(convert_to(final, aval.dtype)), inverse)
    corner = lax.mul(product(column, row), broadcast_in_dim(chain, aval.shape, range(last - 1)))
    regular = eq(count, constant_like(count, 0))
    regular = broadcast_in_dim(squeeze(regular, (last - 1,)), aval.shape, range(last - 1))
    scale = lax.mul(sign, reduce_prod(filled, (last - 1,)))
    adjugate = lax.mul(select(regular, inverse, corner), broadcast_in_dim(scale, aval.shape, range(last - 1)))
    # adj A = ± adj U · L⁻¹ P, transposed.
    cofactors = triangular_solve(
        factors, transpose_matrices(adjugate), left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    )
    return unpermute_rows(cofactors, permutation)


def _orient_vectors(x: Array, rank: int) -> list[tuple[Any, tuple[int, ...]]]:
    """Return vectors as the rows and as the columns of matrices, each with its axes for `broadcast_in_dim`."""
    batch = tuple(range(rank - 2))
    return [(x, (*batch, rank - 2)), (x, (*batch, rank - 1))]


def _restore_determinant(result: SlogdetResult) -> Array:
    return lax.mul(result.sign, convert_to(lax.exp(result.logabsdet), aval_of(result.sign).dtype))


@custom_jvp
def _det_by_lu(a: Array) -> Array:
    return _restore_determinant(_factor_and_sign(a)[0])


@_det_by_lu.defjvp
def _det_by_lu_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    # d det A is the sum of the cofactors times dA, also for singular A.
    factors, pivots, permutation = lu(primals[0])
    exchanged = _mask_exchanges(pivots)
    determinant = _restore_determinant(_split_product(diagonal(factors), exchanged))
    dtype, last = aval_of(determinant).dtype, aval_of(exchanged).ndim - 1
    flips = select(exchanged, full_like(exchanged, -1, dtype), full_like(exchanged, 1, dtype))
    cofactors = _compute_cofactors(factors, permutation, reduce_prod(flips, (last,)))
    return determinant, reduce_sum(lax.mul(cofactors, tangents[0]), (last, last + 1))


@inline_jit(public=True)
def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices; the derivative is right for singular ones, too.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.

    Returns:
        An array of the leading axes.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.det(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array(8., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.2.
    """
    size = matrix_type(a, square=True).shape[-1]
    (a,) = promote_to_inexact(a)
    return _expand_determinant(a) if 1 <= size <= 3 else _det_by_lu(a)
