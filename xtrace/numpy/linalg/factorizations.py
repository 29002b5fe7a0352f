"""Factorisations of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from xtrace._src.algebra.vector_space import broadcast_in_dim
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.arrays.sorting import sort
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg import qr as qr_forms
from xtrace._src.ops.linalg import spectral, triangular
from xtrace._src.ops.linalg.lu import permute_rows
from xtrace._src.ops.linalg.matrices import adjoint, conj_if_complex, transpose_matrices
from xtrace.numpy.linalg.operands import matrix_type, promote_to_inexact
from xtrace.numpy.operands import scalar_of

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """Q with orthonormal columns and upper triangular R; for mode "raw", the packed reflections and their factors."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values, and right singular vectors as conjugated rows."""

    U: Any
    S: Any
    Vh: Any


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors, as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Real eigenvalues in ascending order, and orthonormal eigenvectors, as columns."""

    eigenvalues: Any
    eigenvectors: Any


@inline_jit(static=("upper", "symmetrize_input"), public=True)
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Factor positive definite matrices into L Lᴴ.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        upper: whether to return the adjoint of L, an upper triangular matrix.
        symmetrize_input: whether half the sum of `a` and its adjoint is factored; otherwise only the lower triangle
            is read.

    Returns:
        An array of the shape of `a`: lower triangular matrices with a positive diagonal, NaN for matrices that are
        not positive definite.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
        Array([[2., 0.],
               [1., 1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.2.
    """
    matrix_type(a, square=True)
    factor = triangular.cholesky(*promote_to_inexact(a), symmetrize_input=bool(symmetrize_input))
    return adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = ...) -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: str) -> Any: ...


@inline_jit(static=("mode",), public=True)
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Factor matrices into Q R, with orthonormal columns of Q and upper triangular R.

    Args:
        a: an array of matrices, of shape (..., m, n).
        mode: ``"reduced"``, or ``"full"``: Q has as many columns as the shorter side; ``"complete"``: Q is square;
            ``"r"``: R alone; ``"raw"``: LAPACK's reflections, transposed, and their factors.

    Returns:
        A pair (Q, R) of arrays, or R.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has fewer than two axes, or `mode` has another value.

    Example:
        >>> jnp.linalg.qr(jnp.eye(3, 2)).R.shape
        (2, 2)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.2.
    """
    matrix_type(a)
    if mode not in ("reduced", "complete", "r", "raw", "full"):
        raise ValueError(
            f"Unsupported QR decomposition mode {abbreviate(mode)}; it is one of 'reduced', 'complete', 'r', 'raw' "
            "and 'full'"
        )
    (a,) = promote_to_inexact(a)
    if mode == "raw":
        packed, factors = qr_forms.geqrf(a)
        return QRResult(transpose_matrices(packed), factors)
    q, r = qr_forms.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def _compute_hermitian_svd(a: Array, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    """Return the SVD of Hermitian matrices from eigenvalues: singular values are their sizes, V takes their signs."""
    vectors, eigenvalues = spectral.eigh(a)
    last = aval_of(eigenvalues).ndim - 1
    size = lax.abs(eigenvalues)
    if not compute_uv:
        return _take_subset(rev(sort(size), (last,)), last, subset)
    positions = broadcasted_iota("int32", aval_of(size).shape, last)
    negative = lt(eigenvalues, scalar_of(0, aval_of(size).dtype))
    values, order, negative = [
        _take_subset(rev(x, (last,)), last, subset) for x in sort((size, positions, negative), num_keys=1)
    ]
    rows = permute_rows(transpose_matrices(vectors), order)
    shape = aval_of(rows).shape
    turned = select_n(broadcast_in_dim(negative, shape, range(len(shape) - 1)), rows, lax.neg(rows))
    return SVDResult(transpose_matrices(rows), values, conj_if_complex(turned))


def _take_subset(x: Array, axis: int, subset: tuple[int, int] | None) -> Array:
    return x if subset is None else slice_in_dim(x, *subset, 1, axis)


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., *, compute_uv: Literal[False], hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Array: ...


@overload
def svd(
    a: ArrayLike, full_matrices: bool = ..., compute_uv: bool = ..., hermitian: bool = ...,
    subset_by_index: tuple[int, int] | None = ...,
) -> Any: ...


@inline_jit(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"), public=True)
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Factor matrices into U diag(S) Vᴴ, by singular values.

    Args:
        a: an array of matrices, of shape (..., m, n).
        full_matrices: whether U and Vᴴ are square.
        compute_uv: whether U and Vᴴ are returned; otherwise S alone.
        hermitian: whether `a` is Hermitian; the factors are then computed from its eigenvalues.
        subset_by_index: the range (start, stop) of the singular values to return; None for all.

    Returns:
        A triple (U, S, Vh) of arrays, or S; the singular values are in descending order.

    Raises:
        TypeError: `a` is not an array.
        ValueError: `a` has fewer than two axes or, if `hermitian`, is not square, or a subset and
            full matrices are requested.

    Example:
        >>> jnp.linalg.svd(jnp.array([[2.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Array([4., 2.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.6.
    """
    aval = matrix_type(a, square=bool(hermitian))
    subset = spectral.index_range(subset_by_index, min(aval.shape[-2:]))
    if subset_by_index is not None and full_matrices:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be set; pass full_matrices=False")
    (a,) = promote_to_inexact(a)
    if hermitian:
        return _compute_hermitian_svd(a, bool(compute_uv), subset)
    factors = spectral.svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), subset_by_index=subset)
    return SVDResult(*factors) if compute_uv else factors


def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values of matrices, the largest first.

    Args:
        x: an array of matrices, of shape (..., m, n).

    Returns:
        An array of the leading axes and the shorter of the last two.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.linalg.svdvals(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([4., 2.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.6.
    """
    return svd(x, compute_uv=False)


@overload
def _eig(a: ArrayLike, *, vectors: Literal[True]) -> EigResult: ...


@overload
def _eig(a: ArrayLike, *, vectors: Literal[False]) -> Array: ...


@inline_jit
def _eig(a: ArrayLike, *, vectors: bool) -> EigResult | Array:
    factors = spectral.eig(*promote_to_inexact(a), compute_left_eigenvectors=False, compute_right_eigenvectors=vectors)
    return EigResult(*factors) if vectors else factors[0]


@inline_jit(public=True)
def eig(a: ArrayLike) -> EigResult:
    """Compute the eigenvalues and eigenvectors of square matrices, on CPU and GPU.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.

    Returns:
        A pair (eigenvalues, eigenvectors) of complex arrays. The vectors are columns of length 1, whose largest
        component is real; only the eigenvalues have derivatives.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
        Array([2.+0.j, 4.+0.j], dtype=complex64)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.5.
    """
    matrix_type(a, square=True)
    return _eig(a, vectors=True)


@inline_jit(public=True)
def eigvals(a: ArrayLike) -> Array:
    """Return the complex eigenvalues of square matrices, on CPU and GPU.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.

    Returns:
        A complex array of the leading axes and the number of rows.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square.

    Example:
        >>> jnp.linalg.eigvals(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([2.+0.j, 4.+0.j], dtype=complex64)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.5.
    """
    matrix_type(a, square=True)
    return _eig(a, vectors=False)


@overload
def _compute_eigh(a: Any, triangle: Any, symmetrize: bool, vectors: Literal[True]) -> EighResult: ...


@overload
def _compute_eigh(a: Any, triangle: Any, symmetrize: bool, vectors: Literal[False]) -> Array: ...


def _compute_eigh(a: Any, triangle: Any, symmetrize: bool, vectors: bool) -> EighResult | Array:
    matrix_type(a, square=True)
    if triangle not in (None, "L", "U"):
        raise ValueError(f"{called_function()}: UPLO must be one of None, 'L', or 'U', got {abbreviate(triangle)}")
    (a,) = promote_to_inexact(a)
    eigenvectors, values = spectral.eigh(a, lower=triangle != "U", symmetrize_input=bool(symmetrize))
    return EighResult(values, eigenvectors) if vectors else values


@inline_jit(static=("UPLO", "symmetrize_input"), public=True)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute the eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        UPLO: the triangle to read without symmetrization, ``"L"`` or ``"U"``; None for ``"L"``.
        symmetrize_input: whether half the sum of `a` and its adjoint is used.

    Returns:
        A pair (eigenvalues, eigenvectors) of arrays: real values in ascending order, and vectors as columns.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square, or `UPLO` has another value.

    Example:
        >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
        Array([2., 4.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.3.
    """
    return _compute_eigh(a, UPLO, symmetrize_input, vectors=True)


@inline_jit(static=("UPLO", "symmetrize_input"), public=True)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the real eigenvalues of Hermitian matrices in ascending order.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        UPLO: the triangle to read without symmetrization, ``"L"`` or ``"U"``; None for ``"L"``.
        symmetrize_input: whether half the sum of `a` and its adjoint is used.

    Returns:
        A real array of the leading axes and the number of rows.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the matrices are not square, or `UPLO` has another value.

    Example:
        >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([2., 4.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.3.
    """
    return _compute_eigh(a, UPLO, symmetrize_input, vectors=False)
