"""Eigenvalues and eigenvectors of Hermitian tridiagonal matrices."""

from __future__ import annotations

import functools
from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import fori_loop, while_loop
from xtrace._src.ops.linalg.reduced import tridiagonal_solve
from xtrace.numpy.arrays.conversion import asarray, from_sequence
from xtrace.numpy.arrays.creation import ones, zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.elementwise.complex_parts import conj, real
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import maximum
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg.factorizations import qr
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.cumulative import cumprod
from xtrace.numpy.reductions.reductions import max as largest
from xtrace.numpy.reductions.reductions import sum as total
from xtrace.random import key as new_key
from xtrace.random import normal

__all__ = ["eigh_tridiagonal"]

_DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
# One step of inverse iteration usually reaches rounding error. The others correct unlucky starts.
_ITERATIONS = 3


def _bound_eigenvalues(d: Array, e: Array) -> Array:
    """Return a positive upper bound of the eigenvalues' moduli (Gershgorin)."""
    none, beside = zeros(1, e.dtype), absolute(e)
    sums = absolute(d) + concatenate([none, beside]) + concatenate([beside, none])
    return maximum(largest(sums), float(dtypes.finfo(d.dtype).tiny))


def _count_below(d: Array, squares: Array, smallest_pivot: float, shifts: Array) -> Array:
    """Count the eigenvalues below each shift x: the negative pivots of T - x (Sturm)."""

    def pivot(state: tuple[Array, ...], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        last, count = state
        diagonal, square = row
        new = diagonal - shifts - square / last
        new = where(absolute(new) < smallest_pivot, -smallest_pivot, new)
        return (new, count + convert_to(new < 0, count.dtype)), None

    start = ones(shifts.shape, d.dtype), zeros(shifts.shape, dtypes.int32)
    return scan(pivot, start, (d, concatenate([zeros(1, d.dtype), squares])))[0][1]


def _compute_eigenvalues(d: Array, e: Array, tol: Array, first: int, last: int) -> Array:
    """Compute eigenvalues `first` to `last` by bisection to an error of `tol`, at least eps times the largest."""
    info = dtypes.finfo(d.dtype)
    size = _bound_eigenvalues(d, e)
    # Dividing by the bound keeps squares from overflow. Squares that underflow are negligible.
    squares, scaled = (e / size) ** 2, d / size
    allowed = maximum(float(info.eps), tol / size)
    numbers = arange(first, last + 1, dtype=dtypes.int32)

    def halve(state: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high = state
        middle = (low + high) / 2
        beyond = _count_below(scaled, squares, float(info.tiny / info.eps), middle) <= numbers
        return where(beyond, middle, low), where(beyond, high, middle)

    bound = ones(numbers.shape, d.dtype) * (1 + 4 * d.size * float(info.eps))
    low, high = while_loop(lambda state: (state[1] - state[0] > allowed).any(), halve, (-bound, bound))
    return (low + high) / 2 * size


def _compute_eigenvectors(d: Array, e: Array, values: Array, key: Array) -> Array:
    """Compute orthonormal eigenvectors as columns, together, by inverse iteration from random vectors.

    Each step orthogonalizes the vectors. This separates clustered ones (Peters and Wilkinson, "Inverse
    iteration, ill-conditioned equations and Newton's method", 1979).
    """
    size = _bound_eigenvalues(d, e)
    count, rank = values.shape[0], d.shape[0]
    below, above = concatenate([zeros(1, e.dtype), e / size]), concatenate([e / size, zeros(1, e.dtype)])
    below, above = [broadcast_in_dim(x, (count, rank), (1,)) for x in (below, above)]
    diagonal = (d - values[:, None]) / size

    def improve(_: ArrayLike, vectors: Array) -> Array:
        solutions = tridiagonal_solve(below, diagonal, above, vectors.T[:, :, None], perturb_singular=True)[:, :, 0]
        # Only the directions of the solutions matter; scaling keeps them from overflow.
        return qr((solutions / largest(absolute(solutions), axis=1, keepdims=True)).T)[0]

    return fori_loop(0, _ITERATIONS, improve, normal(key, (rank, count), d.dtype))


@functools.partial(custom_jvp, nondiff_argnums=(4, 5, 6))
def _decompose(d: Array, e: Array, key: Array, tol: Array, first: int, last: int, vectors: bool) -> tuple[Array, ...]:
    """Return eigenvalues, and optionally eigenvectors, of the real matrix with diagonal `d` and off-diagonal `e`."""
    values = _compute_eigenvalues(d, e, tol, first, last)
    return (values, _compute_eigenvectors(d, e, values, key)) if vectors else (values,)


@_decompose.defjvp
def _decompose_jvp(
    first: int, last: int, vectors: bool, primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    # dλ = vᵀ dT v and dv = Σ u (uᵀ dT v) / (λ - μ), summed over the other eigenvectors u with eigenvalues μ.
    d, e, key, tol = primals
    dd, de = tangents[:2]
    parts = _decompose(d, e, key, tol, first, last, vectors)
    own = parts if vectors else _decompose(d, e, key, tol, first, last, True)
    every = _decompose(d, e, key, tol, 0, d.shape[0] - 1, True) if vectors else own
    v = own[1]
    moved = dd[:, None] * v
    moved = moved.at[:-1].add(de[:, None] * v[1:]).at[1:].add(de[:, None] * v[:-1])
    changes: tuple[Array, ...] = (total(v * moved, axis=0),)
    if vectors:
        gaps = own[0][None] - every[0][:, None]
        itself = arange(d.shape[0])[:, None] == arange(first, last + 1)[None]
        shares = matmul(every[1].T, moved, precision="highest") / where(itself, 1, gaps)
        changes += (matmul(every[1], where(itself, 0, shares), precision="highest"),)
    return parts, changes


@inline_jit
def _solve(d: Any, e: Any, key: Any, tol: ArrayLike, *, first: int, last: int, vectors: bool) -> tuple[Array, ...]:
    sizes, diagonal = e, real(d)
    if dtypes.is_complex(e.dtype):
        # T = D S Dᴴ with a real S; D is the cumulative product of the phases below the diagonal.
        sizes = absolute(e)
        phases = where(sizes == 0, 1, conj(e) / where(sizes == 0, 1, sizes))
    parts = _decompose(diagonal, sizes, key, asarray(tol, diagonal.dtype), first, last, vectors)
    if vectors and dtypes.is_complex(e.dtype):
        turned = cumprod(concatenate([ones(1, e.dtype), phases]))
        return parts[0], turned[:, None] * parts[1]
    return parts


def _parse_selection(select: str, select_range: tuple[float, float] | None, size: int) -> tuple[int, int]:
    """Return the indices of the first and the last wanted eigenvalue."""
    if select == "a":
        return 0, size - 1
    if select == "v":
        raise NotImplementedError(
            f"{called_function()}(..., select='v') is not implemented, since the number of results would depend on "
            "values; select indices, or take all and mask them"
        )
    if select != "i":
        raise ValueError(
            f"{called_function()}: select must have a value in {{'a', 'i', 'v'}}, got {abbreviate(select)}"
        )
    if select_range is None:
        raise ValueError(f"{called_function()}: for select='i', select_range must be specified, as (first, last)")
    if len(select_range) != 2:
        raise ValueError(f"{called_function()}: select_range must be (first, last), got {select_range}")
    first, last = map(int, select_range)
    if first > last:
        raise ValueError(f"{called_function()}: Got empty index range in select_range, {select_range}")
    if first < 0 or last >= size:
        raise ValueError(f"{called_function()}: select_range {select_range} is out of bounds for {size} eigenvalues")
    return first, last


def eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
    select_range: tuple[float, float] | None = None, tol: float | None = None, key: ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """Compute eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
        d: a vector, the diagonal.
        e: a vector, the elements above the diagonal, of the same dtype.
        eigvals_only: whether the eigenvalues alone are returned.
        select: ``"a"`` for all, ``"i"`` for those numbered by `select_range`.
        select_range: a pair of the first and the last number.
        tol: the absolute error of the eigenvalues; None or a negative number for rounding error.
        key: a random key for the first vectors of inverse iteration; None for a fixed one.

    Returns:
        A pair of the eigenvalues, increasing, and a matrix with the eigenvectors as columns; or the eigenvalues.

    Raises:
        NotImplementedError: `select` is ``"v"``.
        TypeError: the dtypes differ or are no 32- or 64-bit floating or complex ones.
        ValueError: the shapes do not agree, or the range is empty or too long.

    Example:
        >>> scipy.linalg.eigh_tridiagonal(jnp.zeros(2), jnp.ones(1), eigvals_only=True)
        Array([-1.        ,  0.99999994], dtype=float32)

    Reference:
        Barth, Martin and Wilkinson, "Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of
        bisection" (1967).
    """
    d, e = map(from_sequence, (d, e))
    diagonal, beside = operand_aval(d, 0), operand_aval(e, 1)
    if diagonal.ndim != 1 or beside.ndim != 1 or beside.size != max(diagonal.size - 1, 0):
        raise ValueError(
            f"{called_function()}: d and e must be vectors of n and n - 1 elements, got shapes {diagonal.shape} and "
            f"{beside.shape}"
        )
    if diagonal.dtype != beside.dtype:
        raise TypeError(
            f"{called_function()}: diagonal and off-diagonal values must have same dtype, got "
            f"{diagonal.dtype.name} and {beside.dtype.name}"
        )
    if diagonal.dtype not in _DTYPES:
        raise TypeError(
            f"Only float32 and float64 inputs and their complex forms are supported by {called_function()}, got "
            f"{diagonal.dtype.name}"
        )
    first, last = _parse_selection(select, select_range, diagonal.size)
    if diagonal.size == 0:
        none = zeros(0, dtypes.real_part_dtype(diagonal.dtype))
        return none if eigvals_only else (none, zeros((0, 0), diagonal.dtype))
    parts = _solve(
        d, e, new_key(0) if key is None else key, 0 if tol is None else max(tol, 0), first=first, last=last,
        vectors=not eigvals_only,
    )
    return parts[0] if eigvals_only else parts
