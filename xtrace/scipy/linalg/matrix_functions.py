"""Matrix functions and matrix equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to
from xtrace._src.api.differentiation.grad import jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.arrays.creation import broadcasted_iota, full_like, iota
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from xtrace._src.ops.control_flow.cond import cond
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import bitwise_not, bitwise_or, eq, gt, lt, ne
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.linalg import reduced, spectral
from xtrace._src.ops.linalg.matrices import adjoint, as_column, as_row, diagonal, identity, product, upper_triangle
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.ops.reductions.reductions import reduce_max, reduce_sum
from xtrace.numpy.arrays.conversion import asarray, from_sequence
from xtrace.numpy.linalg.operands import for_each_matrix, matrix_type, promote_to_inexact
from xtrace.numpy.linalg.solutions import solve_systems
from xtrace.scipy.linalg.factorizations import to_complex

__all__ = ["expm", "expm_frechet", "funm", "solve_sylvester", "sqrtm"]

# Padé approximants of exp by precision: the order, and the largest 1-norm for which they are exact to rounding (Higham,
# The scaling and squaring method for the matrix exponential revisited, 2005, table 2.3).
_ORDERS = {dtypes.float32: (7, 3.925724783138660), dtypes.float64: (13, 5.371920351148152)}


def _compute_coefficients(order: int) -> list[float]:
    """Return the integer coefficients of the numerator, the constant term first."""
    return [
        float(math.factorial(2 * order - k) * math.comb(order, k) // math.factorial(order)) for k in range(order + 1)
    ]


def _evaluate_pade_numerator(a: Array, order: int) -> tuple[Array, Array]:
    """Return the odd and the even part of the numerator; the denominator is even minus odd."""
    weights = _compute_coefficients(order)
    one = identity(aval_of(a).dtype, aval_of(a).shape)
    square = product(a, a)
    powers = [one, square]
    while len(powers) <= order // 2 and len(powers) < 4:
        powers.append(product(powers[-1], square))

    def combine(coefficients: list[float]) -> Array:
        terms = [lax.mul(constant_like(a, c), p) for c, p in zip(coefficients, powers, strict=False)]
        total = terms[0]
        for term in terms[1:]:
            total = lax.add(total, term)
        if len(coefficients) > len(powers):
            # Factor the sixth power out of the higher powers.
            high = [lax.mul(constant_like(a, c), p) for c, p in zip(coefficients[4:], powers[1:], strict=False)]
            rest = high[0]
            for term in high[1:]:
                rest = lax.add(rest, term)
            total = lax.add(total, product(powers[3], rest))
        return total

    return product(a, combine(weights[1::2])), combine(weights[0::2])


def _exponentiate(a: Array, upper_triangular: bool, most: int) -> Array:
    aval = aval_of(a)
    batch, last = aval.shape[:-2], aval.ndim - 1
    if not aval.size:
        return a
    order, bound = _ORDERS[np.dtype(dtypes.real_part_dtype(aval.dtype))]
    norm = reduce_max(reduce_sum(lax.abs(a), (last - 1,)), (last - 1,))
    needed = lax.ceil(lax.div(lax.log(lax.div(norm, constant_like(norm, bound))), constant_like(norm, math.log(2))))
    count = lax.max(constant_like(norm, 0), needed)

    def broadcast(x: ArrayLike) -> Array:
        return broadcast_in_dim(x, aval.shape, range(len(batch)))

    scale = broadcast(convert_to(lax.exp2(lax.neg(count)), aval.dtype))
    odd, even = _evaluate_pade_numerator(lax.mul(a, scale), order)
    right, left = lax.add(even, odd), lax.sub(even, odd)
    power = triangular_solve(left, right, left_side=True) if upper_triangular else solve_systems(left, right)
    # A matrix with NaN counts as 0, so that the other matrices keep their number of squarings.
    known = select(ne(count, count), full_like(count, 0), count)
    most_needed = reduce_max(known, tuple(range(len(batch))))

    def step(x: ArrayLike, done: ArrayLike) -> tuple[Array, None]:
        def square_waiting(x: ArrayLike) -> Array:
            waiting = broadcast(lt(broadcast_in_dim(done, batch, ()), count))
            return select(waiting, product(x, x), x)

        return cond(lt(done, most_needed), square_waiting, lambda x: x, x), None

    power, _ = scan(step, power, iota(aval_of(count).dtype, most))
    return select(broadcast(gt(count, constant_like(count, most))), full_like(power, math.nan), power)


@inline_jit(static=("upper_triangular", "max_squarings"), public=True)
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponentials of square matrices.

    Args:
        A: an array of square matrices, of shape (..., n, n); integers become floats.
        upper_triangular: whether the matrices are triangular, which saves a factorization.
        max_squarings: the largest number of squarings; matrices that need more give NaN.

    Returns:
        An array of the shape of `A`.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.expm(jnp.zeros((2, 2)))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)

    Reference:
        N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
    """
    matrix_type(A, square=True)
    (a,) = promote_to_inexact(A)
    if dtypes.bit_width(a.dtype) < 32:
        raise TypeError(f"expm: dtype {a.dtype.name} is not supported; convert A to float32 or float64")
    return _exponentiate(a, bool(upper_triangular), int(max_squarings))


@inline_jit(static=("method", "compute_expm"), public=True)
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Return the exponential of a matrix and its derivative in a direction.

    Args:
        A: a square matrix.
        E: the direction, a matrix of the same shape.
        method: None or ``"SPS"``: scaling, Padé approximant, squaring.
        compute_expm: whether the exponential is returned, too.

    Returns:
        A pair of the exponential and the derivative, or the derivative.

    Raises:
        ValueError: there is no such method, or the shapes do not agree.

    Example:
        >>> scipy.linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)

    Reference:
        A. H. Al-Mohy and N. J. Higham, "Computing the Frechet derivative of the matrix exponential" (2009).
    """
    A, E = map(from_sequence, (A, E))
    left, right = matrix_type(A, square=True), matrix_type(E, 1, square=True)
    if left.shape != right.shape:
        raise ValueError(f"expm_frechet: A and E must be the same shape; got {left.shape} and {right.shape}")
    if method not in (None, "SPS"):
        raise ValueError(f"expm_frechet: only the method 'SPS' (None) is implemented, got {abbreviate(method)}")
    a, e = promote_to_inexact(A, E)
    exponential, derivative = jvp(lambda x: _exponentiate(x, False, 16), (a,), (e,))
    return (exponential, derivative) if compute_expm else derivative


# Functions of triangular matrices, column by column


def _mask_before(index: Array, size: int) -> Array:
    """Return the mask of the positions before `index`."""
    positions = broadcasted_iota(aval_of(index).dtype, (size,), 0)
    return lt(positions, broadcast_in_dim(index, (size,), ()))


def _take_column(x: Array, index: Array) -> Array:
    return dynamic_slice_in_dim(x, index, 1, 1)


def _mask_column(mask: Array, x: Array) -> Array:
    """Return a column with zeros outside of `mask`."""
    return select(as_column(mask), x, full_like(x, 0))


def _solve_shifted(matrix: Array, shift: Array, right: Array, mask: Array) -> Array:
    """Solve (matrix + shift I) x = right in the rows and columns of `mask`, for an upper triangular matrix.

    Zeros on the shifted diagonal count as ones.
    """
    aval = aval_of(matrix)
    one = identity(aval.dtype, aval.shape)
    main = lax.add(diagonal(matrix), broadcast_in_dim(shift, aval.shape[:1], ()))
    unsound = bitwise_or(bitwise_not(mask), eq(main, constant_like(main, 0)))
    main = select(unsound, full_like(main, 1), main)
    rows = select(eq(one, constant_like(one, 1)), broadcast_in_dim(main, aval.shape, (0,)), matrix)
    return _mask_column(mask, triangular_solve(rows, _mask_column(mask, right), left_side=True))


def _add_to_column(x: Array, index: Array, column: Array) -> Array:
    return dynamic_update_slice_in_dim(x, lax.add(_take_column(x, index), column), index, 1)


def _make_diagonal(values: Array) -> Array:
    size = aval_of(values).shape[0]
    one = identity(aval_of(values).dtype, (size, size))
    return lax.mul(one, as_row(values))


def _take_element(values: Array, index: ArrayLike) -> Array:
    """Return the element of a vector at `index`, as a scalar."""
    return reduce_sum(broadcast_in_dim(dynamic_slice_in_dim(values, index, 1, 0), (1, 1), (0,)), (0, 1))


@inline_jit(static=("blocksize",), public=True)
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the principal square root of a square matrix, on the CPU.

    Args:
        A: a square matrix.
        blocksize: 1, the only size.

    Returns:
        A complex matrix.

    Raises:
        NotImplementedError: `blocksize` is above 1, or the platform is not the CPU.
        ValueError: the matrix is not square.

    Example:
        >>> scipy.linalg.sqrtm(jnp.diag(jnp.array([1.0, 4.0]))).real
        Array([[1., 0.],
               [0., 2.]], dtype=float32)

    Reference:
        A. Bjorck and S. Hammarling, "A Schur method for the square root of a matrix" (1983).
    """
    _check_single_matrix(A)
    if blocksize > 1:
        raise NotImplementedError("sqrtm: blocks are not implemented; leave blocksize at 1")
    form, vectors = reduced.schur(to_complex(*promote_to_inexact(A)))
    size = aval_of(form).shape[-1]
    roots = lax.sqrt(diagonal(form))

    # (R + rⱼⱼ) x = tⱼ gives the elements x of column j above the diagonal, where R is the part to the left of column j
    # (Björck and Hammarling, A Schur method for the square root of a matrix, 1983).
    def step(j: Array, root: Array) -> Array:
        column = _solve_shifted(root, _take_element(roots, j), _take_column(form, j), _mask_before(j, size))
        return _add_to_column(root, j, column)

    root = fori_loop(0, size, step, _make_diagonal(roots)) if size else form
    return product(product(vectors, root), adjoint(vectors))


def _check_single_matrix(a: ArrayLike, position: int = 0) -> ShapedArray:
    aval = matrix_type(a, position, square=True)
    if aval.ndim != 2:
        raise ValueError(f"{called_function()} takes one square matrix, got shape {aval.shape}; use vmap for several")
    return aval


def funm(A: ArrayLike, func: Callable[[Array], Any], disp: bool = True) -> Array | tuple[Array, Array]:
    """Evaluate a function of a square matrix, on the CPU.

    Args:
        A: a square matrix, whose eigenvalues should be distinct.
        func: the function of numbers; it takes and returns arrays.
        disp: True to return the result alone, False to return an estimate of the error, too.

    Returns:
        A complex matrix, or a pair.

    Raises:
        NotImplementedError: the platform is not the CPU.
        TypeError: `func` cannot be called.
        ValueError: the matrix is not square.

    Example:
        >>> scipy.linalg.funm(jnp.diag(jnp.array([1.0, 4.0])), jnp.sqrt).real
        Array([[1., 0.],
               [0., 2.]], dtype=float32)

    Reference:
        B. N. Parlett, "A recurrence among the elements of functions of triangular matrices" (1976).
    """
    A = from_sequence(A)
    _check_single_matrix(A)
    (a,) = promote_to_inexact(A)
    form, vectors = reduced.schur(to_complex(asarray(a)))
    size = aval_of(form).shape[-1]
    main = diagonal(form)
    values = convert_to(func(main), aval_of(form).dtype)

    # From F T = T F: (T - tⱼⱼ) x = F tⱼ - tⱼ fⱼⱼ gives the elements x of column j of F above the diagonal.
    def step(j: Array, image: Array) -> Array:
        above = _mask_column(_mask_before(j, size), _take_column(form, j))
        right = lax.sub(product(image, above), lax.mul(above, _take_element(values, j)))
        column = _solve_shifted(form, lax.neg(_take_element(main, j)), right, _mask_before(j, size))
        return _add_to_column(image, j, column)

    image = fori_loop(0, size, step, _make_diagonal(values)) if size else form
    result = product(product(vectors, image), adjoint(vectors))
    if disp:
        return result
    return result, _estimate_parlett_error(form, main)


def _estimate_parlett_error(form: Array, main: Array) -> Array:
    """Estimate the error: eps times the norm of the part above the diagonal over the least gap of eigenvalues."""
    gaps = lax.abs(lax.sub(as_column(main), as_row(main)))
    size = aval_of(gaps).shape[0]
    own = eq(identity(aval_of(gaps).dtype, (size, size)), constant_like(gaps, 1))
    largest = lax.abs(broadcast_in_dim(_take_element(main, np.int32(0)), (size, size), ()))
    least = lax.neg(reduce_max(lax.neg(select(own, largest, gaps)), (0, 1)))
    eps = constant_like(least, float(dtypes.finfo(aval_of(least).dtype).eps))
    least = select(eq(least, constant_like(least, 0)), lax.add(least, eps), least)
    above = reduce_max(reduce_sum(lax.abs(upper_triangle(form, 1)), (0,)), (0,))
    return lax.min(constant_like(least, 1), lax.max(eps, lax.mul(lax.div(eps, least), above)))


def _solve_sylvester(a: Array, b: Array, c: Array, tol: float, method: str) -> Array:
    rows, columns = aval_of(c).shape
    if method == "eigen":
        (left, _, u), (right, _, v) = [spectral.eig(x) for x in (a, b)]
        inside = solve_systems(u, product(c, v))
        solution = lax.div(
            inside, lax.add(_broadcast_along(left, 0, rows, columns), _broadcast_along(right, 1, rows, columns))
        )
        solution = product(u, adjoint(solve_systems(adjoint(v), adjoint(solution))))
    else:
        (r, u), (s, v) = reduced.schur(a), reduced.schur(b)
        left, right = diagonal(r), diagonal(s)
        inside = product(product(adjoint(u), c), v)
        everything = eq(broadcasted_iota(dtypes.int32, (rows,), 0), broadcasted_iota(dtypes.int32, (rows,), 0))

        # From R Y + Y S = F: (R + sⱼⱼ) yⱼ = fⱼ - Y sⱼ, where only columns of Y before j contribute (Bartels and Stewart
        # 1972).
        def step(j: Array, solution: Array) -> Array:
            known = product(solution, _mask_column(_mask_before(j, columns), _take_column(s, j)))
            rest = lax.sub(_take_column(inside, j), known)
            column = _solve_shifted(r, _take_element(right, j), rest, everything)
            return _add_to_column(solution, j, column)

        solution = fori_loop(0, columns, step, full_like(inside, 0)) if rows and columns else inside
        solution = product(product(u, solution), adjoint(v))
    sums = lax.abs(lax.add(_broadcast_along(left, 0, rows, columns), _broadcast_along(right, 1, rows, columns)))
    if not rows or not columns:
        return solution
    least = lax.neg(reduce_max(lax.neg(sums), (0, 1)))
    unsolvable = broadcast_in_dim(lt(least, constant_like(least, tol)), (rows, columns), ())
    return select(unsolvable, full_like(solution, math.nan), solution)


def _broadcast_along(values: Array, axis: int, rows: int, columns: int) -> Array:
    return broadcast_in_dim(values, (rows, columns), (axis,))


@inline_jit(static=("method", "tol"), public=True)
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solve ``A @ X + X @ B = C``, on the CPU.

    Args:
        A, B: square matrices, or batches of them of one shape.
        C: matrices with the rows of `A` and the columns of `B`, of the same batch axes.
        method: ``"schur"``, or ``"eigen"`` for well separated eigenvalues.
        tol: the least absolute sum of an eigenvalue of `A` and one of `B`; below it the result is NaN.

    Returns:
        An array of the shape of `C`.

    Raises:
        NotImplementedError: the platform is not the CPU.
        ValueError: there is no such method, or the shapes do not agree.

    Example:
        >>> scipy.linalg.solve_sylvester(jnp.eye(2), jnp.eye(2), 2 * jnp.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.6.3: Bartels and Stewart's
        algorithm.
    """
    A, B, C = map(from_sequence, (A, B, C))
    left, right = [matrix_type(x, i, square=True).shape for i, x in enumerate((A, B))]
    shape = matrix_type(C, 2).shape
    if shape[-2:] != (left[-1], right[-1]) or not left[:-2] == right[:-2] == shape[:-2]:
        raise ValueError(
            f"solve_sylvester: C must have as many rows as A and columns as B; got {left}, {right}, {shape}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {abbreviate(method)}")
    operands = promote_to_inexact(A, B, C)
    solution = for_each_matrix(
        lambda a, b, c: _solve_sylvester(a, b, c, float(tol), method), *[to_complex(x) for x in operands]
    )
    return solution if dtypes.is_complex(aval_of(operands[0]).dtype) else complex_numbers.real(solution)
