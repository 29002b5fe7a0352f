"""Solvers of problems with sparse matrices: linear systems, and the largest eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.api.tracing import eval_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.sparse.direct_solution import spsolve_p
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import eye, zeros_like
from xtrace.numpy.elementwise.complex_parts import conj
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import sqrt
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg import eigh, norm, qr
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.rearrangement import diag
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.reductions import any as contains_true

_REORDERINGS = (0, 1, 2, 3, 4)


def spsolve(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """Solve a linear system with a sparse matrix in CSR format, by elimination on the host.

    Args:
        data: the elements of the matrix.
        indices: their columns.
        indptr: the starts of the rows, followed by the number of elements.
        b: the right side, a vector of the dtype of `data`.
        tol: without effect; a matrix without a nonzero pivot is singular.
        reorder: 0 to keep the order of rows and columns; 1 to 4 to move elements near the diagonal.

    Returns:
        The solution, a vector; NaN if the matrix is singular.

    Raises:
        TypeError: `indices` or `indptr` are not integers.
        ValueError: the shapes or dtypes do not fit, or `reorder` is out of range.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> sparse.linalg.spsolve(mat.data, mat.indices, mat.indptr, jnp.array([2.0, 9.0]))
        Array([1., 2.], dtype=float32)

    Reference:
        A. George and J. Liu, "Computer Solution of Large Sparse Positive Definite Systems", Prentice-Hall 1981, for the
        order; G. Golub and C. Van Loan, "Matrix Computations", 4th edition, section 4.3, for the elimination.
    """
    values, columns, pointers, right = asarray(data), asarray(indices), asarray(indptr), asarray(b)
    arrays = values, columns, pointers, right
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(
            f"spsolve: data, indices, indptr and b must be vectors; got shapes {[x.shape for x in arrays]}"
        )
    if values.shape != columns.shape or pointers.shape[0] != right.shape[0] + 1:
        raise ValueError(
            f"spsolve: data and indices must have the same length, and indptr one entry more than b; got shapes "
            f"{[x.shape for x in arrays]}"
        )
    for label, x in (("indices", columns), ("indptr", pointers)):
        if not dtypes.is_integer(x.dtype):
            raise TypeError(f"spsolve: {label} must be integers, got {x.dtype}")
    if values.dtype != right.dtype or not dtypes.is_inexact(values.dtype):
        raise ValueError(f"spsolve: data and b must have one inexact dtype; got {values.dtype} and {right.dtype}")
    if reorder not in _REORDERINGS:
        raise ValueError(f"spsolve: reorder must be one of {_REORDERINGS}, got {abbreviate(reorder)}")
    return spsolve_p.bind(values, columns, pointers, right, tol=float(tol), reorder=int(reorder))


def _multiply(x: Any, y: Any) -> Array:
    return matmul(x, y, precision="highest")


def _orthonormalize(block: Array, basis: Array) -> Array:
    """Return orthonormal columns that span the part of `block` orthogonal to `basis`; zero columns fill the rest."""
    small = dtypes.finfo(block.dtype).eps
    for _ in range(2):
        block = block - _multiply(basis, _multiply(conj(basis.T), block))
        lengths = norm(block, axis=0)
        block = where(lengths > small, block / where(lengths > small, lengths, 1), 0)
        values, vectors = eigh(_multiply(conj(block.T), block))
        kept = values > small * block.shape[0]
        block = where(kept, _multiply(block, vectors) / sqrt(where(kept, values, 1)), 0)
    return block


def _find_largest(basis: Array, image: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of the matrix restricted to a basis, and the eigenvectors' coordinates.

    Zero columns of the basis get an eigenvalue below all others.
    """
    restricted = _multiply(conj(basis.T), image)
    restricted = (restricted + conj(restricted.T)) / 2
    missing = ~absolute(basis).any(0)
    bound = norm(restricted) * 2 + 1
    values, vectors = eigh(restricted - diag(where(missing, bound, 0)).astype(restricted.dtype))
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def lobpcg_standard(
    A: Array | Callable[[Array], Array], X: Array, m: int = 100, tol: Any = None
) -> tuple[Array, Array, Array]:
    """Approximate the largest eigenvalues of a symmetric or Hermitian matrix by LOBPCG.

    Args:
        A: the matrix, dense or sparse, or a function that multiplies a matrix of columns by it.
        X: the first search directions, one column for each eigenvalue to compute; fewer columns than a fifth of the
            rows.
        m: the largest number of iterations.
        tol: the accepted residual, relative to ``10 n (|eigenvalue| + |A v|)``; None for the dtype's epsilon.

    Returns:
        The eigenvalues in descending order, the eigenvectors as columns, and the number of iterations.

    Raises:
        TypeError: `A` is neither an array nor a function.
        ValueError: the shapes do not fit, `A` has a wider dtype than `X`, or there are no columns or too many.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = jnp.diag(jnp.arange(1.0, 21.0))
        >>> values, vectors, _ = sparse.linalg.lobpcg_standard(mat, random.normal(random.key(0), (20, 2)))
        >>> values.round(3), vectors.shape
        (Array([20., 19.], dtype=float32), (20, 2))

    Reference:
        A. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23 (2001); J. Duersch and
        others, "A robust and efficient implementation of LOBPCG", arXiv:1704.07458.
    """
    x = asarray(X)
    if x.ndim != 2 or not dtypes.is_inexact(x.dtype):
        raise ValueError(f"lobpcg_standard: X must be a matrix of floating numbers, got {x.dtype} of shape {x.shape}")
    rows, count = x.shape
    if not count or 5 * count >= rows:
        raise ValueError(
            f"lobpcg_standard: X must have between 1 and {-(-rows // 5) - 1} columns for {rows} rows, got {count}"
        )
    if hasattr(A, "shape"):
        matrix: Any = A
        if tuple(matrix.shape) != (rows, rows):
            raise ValueError(f"lobpcg_standard: A must have shape {(rows, rows)} to fit X, got {tuple(matrix.shape)}")
        apply: Callable[[Array], Array] = lambda y: matrix @ y  # noqa: E731
    elif callable(A):
        apply = A
    else:
        raise TypeError(f"lobpcg_standard: A must be a matrix or a function, got {abbreviate(A)}")
    product = eval_shape(apply, x)
    if (product.shape, product.dtype) != (x.shape, x.dtype):
        raise ValueError(
            f"lobpcg_standard: A and X must have one dtype, and A X the shape of X: X has the type {x.aval}, and A X "
            f"the type {product.aval}"
        )
    limit = to_integer("m", m)
    accepted = dtypes.finfo(x.dtype).eps if tol is None else tol

    def rotate(basis: Array, image: Array) -> tuple[Array, Array, Array, Array]:
        values, coordinates = _find_largest(basis, image, count)
        vectors = _multiply(basis, coordinates)
        # A Newton-Schulz step: the vectors would otherwise lose orthogonality.
        straighten = 1.5 * eye(count, dtype=x.dtype) - 0.5 * _multiply(conj(vectors.T), vectors)
        vectors, image = (_multiply(y, straighten) for y in (vectors, _multiply(image, coordinates)))
        return values, vectors, image, coordinates

    def is_unfinished(values: Array, vectors: Array, image: Array) -> Array:
        residual = norm(image - vectors * values, axis=0)
        bound = accepted * 10 * rows * (absolute(values) + norm(image, axis=0))
        return contains_true(residual > bound)

    def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
        step, values, vectors, image, directions = state
        residual = _orthonormalize(image - vectors * values, concatenate([vectors, directions], 1))
        basis = concatenate([vectors, residual, directions], 1)
        values, vectors, image, coordinates = rotate(basis, apply(basis))
        # The next directions are the change of the vectors.
        added = _multiply(basis[:, count:], coordinates[count:])
        return step + 1, values, vectors, image, _orthonormalize(added, vectors)

    start = qr(x)[0]
    values, vectors, image, _ = rotate(start, apply(start))
    state = (asarray(0), values, vectors, image, zeros_like(vectors))
    step, values, vectors, _, _ = while_loop(lambda s: (s[0] < limit) & is_unfinished(*s[1:4]), advance, state)
    return values, vectors, step
