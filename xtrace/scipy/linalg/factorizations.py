"""Matrix factorizations, with SciPy's arguments."""

from __future__ import annotations

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.control_flow.while_loop import fori_loop
from xtrace._src.ops.elementwise import complex_numbers
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.linalg import lu as lu_forms
from xtrace._src.ops.linalg import qr as qr_forms
from xtrace._src.ops.linalg import reduced, spectral, triangular
from xtrace._src.ops.linalg.matrices import (
    adjoint,
    as_column,
    conj_if_complex,
    identity,
    lower_triangle,
    product,
    upper_triangle,
)
from xtrace._src.ops.linalg.polar import qdwh
from xtrace.numpy import linalg
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.arrays.creation import zeros_like
from xtrace.numpy.linalg.operands import for_each_matrix, matrix_type, promote_to_inexact
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.products.contraction import matmul

__all__ = [
    "cho_factor", "cholesky", "eigh", "hessenberg", "lu", "lu_factor", "polar", "qr", "qr_multiply", "rsf2csf",
    "schur", "svd",
]


@inline_jit(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"), public=True)
def svd(
    a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> Array | tuple[Array, ...]:
    """Compute the singular value decomposition.

    Args:
        a: an array of matrices, of shape (..., m, n); integers become floats.
        full_matrices: whether U and Vh are square.
        compute_uv: whether U and Vh are returned.
        overwrite_a: without effect.
        check_finite: without effect.
        lapack_driver: ``"gesdd"`` for the divide-and-conquer algorithm, ``"gesvd"`` for the QR algorithm.

    Returns:
        A triple of U, the singular values, decreasing, and Vh; or the values alone.

    Raises:
        ValueError: there is no such driver, or `a` has fewer than two axes.

    Example:
        >>> scipy.linalg.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
        Array([2., 1.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.6.
    """
    a = from_sequence(a)
    matrix_type(a)
    if lapack_driver not in ("gesdd", "gesvd"):
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {abbreviate(lapack_driver)}")
    algorithm = spectral.SvdAlgorithm.QR if lapack_driver == "gesvd" else None
    full, vectors = bool(full_matrices), bool(compute_uv)
    return spectral.svd(*promote_to_inexact(a), full_matrices=full, compute_uv=vectors, algorithm=algorithm)


@inline_jit(
    static=("lower", "eigvals_only", "overwrite_a", "overwrite_b", "turbo", "eigvals", "type", "check_finite"),
    public=True,
)
def eigh(
    a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Array | tuple[Array, ...]:
    """Compute the eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        b: not supported; leave it at None.
        lower: whether the lower triangle is read.
        eigvals_only: whether the eigenvalues alone are returned.
        overwrite_a: without effect.
        overwrite_b, turbo: without effect.
        eigvals: not supported; leave it at None.
        type: 1, the only kind of problem.
        check_finite: without effect.

    Returns:
        A pair of the eigenvalues, increasing, and matrices with the eigenvectors as columns; or the eigenvalues.

    Raises:
        NotImplementedError: `b`, `eigvals` or another type is given.
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.eigh(jnp.array([[4.0, 2.0], [2.0, 5.0]]), eigvals_only=True)
        Array([2.4384472, 6.561553 ], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.3.
    """
    for name, given in (("b=None", b is not None), ("type=1", type != 1), ("eigvals=None", eigvals is not None)):
        if given:
            raise NotImplementedError(f"Only the {name} case of eigh is implemented")
    a, triangle = from_sequence(a), "L" if lower else "U"
    return linalg.eigvalsh(a, triangle) if eigvals_only else tuple(linalg.eigh(a, triangle))


@inline_jit(static=("lower", "overwrite_a", "check_finite"), public=True)
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Factor positive definite matrices as ``a = R.conj().T @ R`` with upper triangular R.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats. Only the triangle of the factor is
            read.
        lower: whether the adjoint of R is returned.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        An array of the shape of `a`; NaN where a matrix is not positive definite.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 1.],
               [0., 2.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.2.
    """
    a = from_sequence(a)
    matrix_type(a, square=True)
    (a,) = promote_to_inexact(a)
    if lower:
        return triangular.cholesky(a, symmetrize_input=False)
    return adjoint(triangular.cholesky(adjoint(a), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor positive definite matrices for `cho_solve`.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        lower: whether the factor is lower triangular.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        A pair of the factor, as `cholesky` gives it, and `lower`.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]))[1]
        False

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.2.
    """
    return cholesky(a, lower), lower


# LU

@inline_jit(static=("permute_l", "overwrite_a", "check_finite"), public=True)
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """Factor matrices as ``a = P @ L @ U``.

    Args:
        a: an array of matrices, of shape (..., m, n); integers become floats.
        permute_l: whether ``P @ L`` and U are returned.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        A triple of a permutation P, a unit lower triangular L and an upper triangular U; or a pair.

    Raises:
        ValueError: `a` has fewer than two axes.

    Example:
        >>> scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[2]
        Array([[2., 0.],
               [0., 1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4.
    """
    a = from_sequence(a)
    *batch, rows, columns = matrix_type(a).shape
    factors, _, permutation = lu_forms.lu(*promote_to_inexact(a))
    inner, last = min(rows, columns), len(batch) + 1
    dtype = aval_of(factors).dtype
    left = slice_in_dim(factors, 0, inner, 1, last)
    lower = lax.add(lower_triangle(left, -1), identity(dtype, aval_of(left).shape))
    upper = upper_triangle(slice_in_dim(factors, 0, inner, 1, last - 1))
    if permute_l:
        return lu_forms.unpermute_rows(lower, permutation), upper
    exchanges = lu_forms.unpermute_rows(identity(dtypes.real_part_dtype(dtype), (*batch, rows, rows)), permutation)
    return exchanges, lower, upper


@inline_jit(static=("overwrite_a", "check_finite"), public=True)
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Factor matrices for `lu_solve`.

    Args:
        a: an array of matrices, of shape (..., m, n); integers become floats.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        A pair of L and U in one matrix, and the row with which each row was exchanged.

    Raises:
        ValueError: `a` has fewer than two axes.

    Example:
        >>> scipy.linalg.lu_factor(jnp.array([[0.0, 1.0], [2.0, 0.0]]))[1]
        Array([1, 1], dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4.
    """
    a = from_sequence(a)
    matrix_type(a)
    factors, pivots, _ = lu_forms.lu(*promote_to_inexact(a))
    return factors, pivots


# QR

@inline_jit(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"), public=True)
def qr(
    a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Factor matrices as ``a = q @ r``, with orthonormal columns of q and upper triangular r.

    Args:
        a: an array of matrices, of shape (..., m, n); integers become floats.
        overwrite_a: without effect.
        lwork: without effect.
        mode: ``"full"``, ``"economic"`` for as many columns as the shorter side, or ``"r"`` for r alone.
        pivoting: whether columns are permuted; the permutation is returned last.
        check_finite: without effect.

    Returns:
        A tuple of the factors.

    Raises:
        ValueError: there is no such mode, or `a` has fewer than two axes.

    Example:
        >>> scipy.linalg.qr(jnp.array([[3.0], [4.0]]), mode="economic")[1]
        Array([[-5.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.2: Householder reflections.
    """
    a = from_sequence(a)
    matrix_type(a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"Unsupported QR decomposition mode {abbreviate(mode)}; it is 'full', 'economic' or 'r'")
    factors = qr_forms.qr(*promote_to_inexact(a), pivoting=bool(pivoting), full_matrices=mode != "economic")
    return factors[1:] if mode == "r" else factors


@inline_jit(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"), public=True)
def qr_multiply(
    a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False, conjugate: bool = False,
    overwrite_a: bool = False, overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Multiply a matrix by the orthonormal factor of another one.

    Args:
        a: the matrix that is factored, ``a = q @ r``.
        c: the matrix that is multiplied; a vector is one row or column.
        mode: ``"right"`` for ``c @ q``, ``"left"`` for ``q @ c``.
        pivoting: whether the columns of `a` are permuted; the permutation is returned last.
        conjugate: whether q is conjugated.
        overwrite_a, overwrite_c: without effect.

    Returns:
        A tuple of the product, r, and the permutation.

    Raises:
        TypeError: the lengths do not agree.
        ValueError: there is no such mode.

    Example:
        >>> scipy.linalg.qr_multiply(jnp.eye(2), jnp.ones(2))[1]
        Array([[1., 0.],
               [0., 1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.2.
    """
    matrix_type(a)
    if mode not in ("right", "left"):
        raise ValueError(f"qr_multiply: mode must be 'right' or 'left', got {abbreviate(mode)}")
    a, c = promote_to_inexact(a, c)
    q, *rest = qr_forms.qr(a, pivoting=bool(pivoting), full_matrices=False)
    q = conj_if_complex(q) if conjugate else q
    return (matmul(q, c) if mode == "left" else matmul(c, q)), *rest


# Unitary reductions

def to_complex(x: ArrayLike) -> ArrayLike:
    """Convert `x` to complex numbers of the same precision."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return x
    return convert_to(x, dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64)


@inline_jit(static=("output",), public=True)
def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Compute the Schur form ``a = Z @ T @ Z.conj().T``, on the CPU.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        output: ``"real"``, or ``"complex"`` for a triangular T of real matrices, too.

    Returns:
        A list of T, triangular, for real matrices with 2 by 2 blocks on its diagonal, and the unitary Z.

    Raises:
        NotImplementedError: the platform is not the CPU.
        ValueError: there is no such output, or the matrices are not square.

    Example:
        >>> scipy.linalg.schur(jnp.diag(jnp.array([1.0, 2.0])))[0]
        Array([[1., 0.],
               [0., 2.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.5.
    """
    matrix_type(a, square=True)
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got output={abbreviate(output)}.")
    (a,) = promote_to_inexact(a)
    return list(reduced.schur(to_complex(a) if output == "complex" else a))


def _make_rotation(block: Array) -> Array:
    """Return the unitary 2 by 2 matrix G with G block Gᴴ upper triangular."""
    a, b, c, d = [
        squeeze(slice_in_dim(slice_in_dim(block, i, i + 1), j, j + 1, 1, 1), (0, 1)) for i in (0, 1) for j in (0, 1)
    ]
    half = constant_like(a, 0.5)
    mean = lax.mul(half, lax.sub(a, d))
    root = lax.sqrt(lax.add(lax.mul(mean, mean), lax.mul(b, c)))
    # The rotation turns the vector (eigenvalue - d, c) into the first axis.
    first = lax.add(mean, root)
    size = to_complex(lax.sqrt(lax.add(*[lax.mul(lax.abs(x), lax.abs(x)) for x in (first, c)])))
    still = eq(c, constant_like(c, 0))
    one, zero = lax.add(zeros_like(c), constant_like(c, 1)), zeros_like(c)
    safe = select(still, one, size)
    cosine = select(still, one, lax.div(first, safe))
    sine = select(still, zero, lax.div(c, safe))
    rows = [[complex_numbers.conj(cosine), complex_numbers.conj(sine)], [lax.neg(sine), cosine]]
    return concatenate([concatenate([as_column(as_column(x)) for x in row], 1) for row in rows], 0)


def _triangularize(form: Array, vectors: Array) -> tuple[Array, Array]:
    size = aval_of(form).shape[-1]

    def step(count: ArrayLike, state: tuple[Array, Array]) -> tuple[Array, Array]:
        form, vectors = state
        first = lax.sub(constant_like(count, size - 2), count)
        turn = _make_rotation(dynamic_slice(form, (first, first), (2, 2)))
        zero = constant_like(first, 0)
        rows = product(turn, dynamic_slice(form, (first, zero), (2, size)))
        form = dynamic_update_slice(form, rows, (first, zero))
        columns = product(dynamic_slice(form, (zero, first), (size, 2)), adjoint(turn))
        form = dynamic_update_slice(form, columns, (zero, first))
        turned = product(dynamic_slice(vectors, (zero, first), (size, 2)), adjoint(turn))
        return form, dynamic_update_slice(vectors, turned, (zero, first))

    if size > 1:
        form, vectors = fori_loop(0, size - 1, step, (form, vectors))
    return upper_triangle(form), vectors


@inline_jit(static=("check_finite",), public=True)
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert the real Schur form to the complex one.

    Args:
        T: square matrices, triangular except for 2 by 2 blocks.
        Z: orthogonal matrices of the shape of `T`.
        check_finite: without effect.

    Returns:
        A pair of the triangular T and the unitary Z, complex.

    Raises:
        ValueError: an operand is not square, or the shapes differ.

    Example:
        >>> scipy.linalg.rsf2csf(jnp.eye(2), jnp.eye(2))[0].dtype
        dtype('complex64')

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.4.
    """
    T, Z = map(from_sequence, (T, Z))
    form, vectors = matrix_type(T, square=True), matrix_type(Z, 1, square=True)
    if form.shape != vectors.shape:
        raise ValueError(f"rsf2csf: T and Z must be matrices of one size; got shapes {form.shape} and {vectors.shape}")
    return for_each_matrix(_triangularize, *[to_complex(x) for x in promote_to_inexact(T, Z)])


@inline_jit(static=("calc_q", "overwrite_a", "check_finite"), public=True)
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Reduce square matrices to Hessenberg form, ``a = Q @ H @ Q.conj().T``, on the CPU.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        calc_q: whether Q is returned, too.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        H, zero below the subdiagonal; with `calc_q` a pair of H and the unitary Q.

    Raises:
        NotImplementedError: the platform is not the CPU.
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.hessenberg(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[4., 2.],
               [2., 5.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.4.3.
    """
    matrix_type(a, square=True)
    packed, factors = reduced.hessenberg(*promote_to_inexact(a))
    aval = aval_of(packed)
    form = upper_triangle(packed, -1)
    if not calc_q:
        return form
    size = aval.shape[-1]
    if size < 2:
        return form, identity(aval.dtype, aval.shape)
    row, column = aval.ndim - 2, aval.ndim - 1
    reflections = slice_in_dim(slice_in_dim(packed, 1, size, 1, row), 0, size - 1, 1, column)
    inner = qr_forms.householder_product(reflections, factors)
    one = identity(aval.dtype, aval.shape)
    right = concatenate([slice_in_dim(slice_in_dim(one, 0, 1, 1, row), 1, size, 1, column), inner], row)
    return form, concatenate([slice_in_dim(one, 0, 1, 1, column), right], column)


@inline_jit(static=("side", "method", "eps", "max_iterations"), public=True)
def polar(
    a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Factor a matrix as ``a = u @ p``, with orthonormal columns or rows of u and Hermitian p.

    Args:
        a: an array of matrices, of shape (..., m, n); integers become floats.
        side: ``"right"``, or ``"left"`` for ``a = p @ u``.
        method: ``"qdwh"``, for at least as many rows as columns (left: at most as many), or ``"svd"``.
        eps: the precision of ``"qdwh"``; None for the machine epsilon of the dtype.
        max_iterations: the largest number of steps of ``"qdwh"``; None for 10.

    Returns:
        A pair (u, p).

    Raises:
        ValueError: there is no such side or method, or the shape does not fit the method.

    Example:
        >>> scipy.linalg.polar(jnp.array([[0.0, -2.0], [2.0, 0.0]]))[1]
        Array([[2., 0.],
               [0., 2.]], dtype=float32)

    Reference:
        Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).
    """
    a = from_sequence(a)
    aval = matrix_type(a)
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {abbreviate(side)}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {abbreviate(method)}")
    rows, columns = aval.shape[-2:]
    if method == "qdwh" and (rows < columns if side == "right" else rows > columns):
        raise NotImplementedError(
            f"polar: method='qdwh' does not take an array of shape {aval.shape} with side={abbreviate(side)}; use "
            "method='svd'"
        )
    (a,) = promote_to_inexact(a)
    right = side == "right"
    if method == "qdwh":
        unitary, factor, _, _ = for_each_matrix(
            lambda a: qdwh(a, eps=eps, max_iterations=max_iterations), a if right else adjoint(a)
        )
        return (unitary if right else adjoint(unitary)), factor
    u, values, vh = spectral.svd(a, full_matrices=False)
    basis = adjoint(vh) if right else u
    scaled = lax.mul(basis, broadcast_to(convert_to(values, aval_of(basis).dtype)[..., None, :], aval_of(basis).shape))
    return product(u, vh), product(scaled, adjoint(basis))
