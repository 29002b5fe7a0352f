"""Structured matrices, made from vectors (Toeplitz, companion …) or from a size (Hilbert, Pascal …)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import absolute, equal, less, true_divide
from xtrace._src.api.operators.promotion import check_mapped_ranks
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import has_symbolic
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import eye, zeros, zeros_like
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.arrays.scalar_types import result_type
from xtrace.numpy.elementwise.complex_parts import conj
from xtrace.numpy.elementwise.logic import bitwise_and, bitwise_count
from xtrace.numpy.elementwise.ufuncs import add, maximum, multiply, negative, sqrt, subtract
from xtrace.numpy.fft import fft
from xtrace.numpy.indexing.indexing import getitem
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg.operands import promote_to_inexact
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.padding import pad
from xtrace.numpy.manipulation.shapes import atleast_1d, atleast_2d, expand_dims

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
    "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]

_KINDS = ("symmetric", "lower", "upper")

# The norm of `fft` for each scale of `dft`.
_NORMS = {None: "backward", "sqrtn": "ortho", "n": "forward"}


def _broadcast_vectors(*operands: ArrayLike) -> list[Any]:
    """Broadcast the leading axes of operands of at least one axis; ValueError if they do not broadcast."""
    arrays = [atleast_1d(to_array_operand(x, i)) for i, x in enumerate(operands)]
    try:
        batch = np.broadcast_shapes(*[x.shape[:-1] for x in arrays])
    except ValueError:
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ValueError(f"{called_function()}: the leading axes must broadcast, got shapes {shapes}") from None
    return [broadcast_to(x, (*batch, x.shape[-1])) for x in arrays]


def _place_values(values: Array, positions: Any) -> Array:
    """Return matrices whose element (i, j) is ``values[..., positions[i, j]]``."""
    known = isinstance(positions, np.ndarray)
    return getitem(values, (..., np.asarray(positions, np.int32) if known else positions))


def _check_size(n: int, least: int = 0) -> int:
    size = to_integer("n", n)
    if least and size < least:
        raise ValueError(f"{called_function()}: n must be a positive integer; got {n}.")
    return max(size, 0)


def _to_default_float(values: np.ndarray) -> Array:
    return asarray(np.asarray(values), _get_default_float())


def _make_grid(rows: int, columns: int | None = None) -> tuple[Any, Any]:
    columns = rows if columns is None else columns
    if has_symbolic((rows, columns)):
        return arange(rows, dtype=dtypes.int32)[:, None], arange(columns, dtype=dtypes.int32)[None, :]
    return np.arange(rows)[:, None], np.arange(columns)[None, :]


def _compute_grid(size: int, dtype: np.dtype[Any] = dtypes.int32) -> tuple[Any, Any]:
    """Compute `_make_grid` in the program, so that the program holds no matrix as a constant."""
    numbers = arange(size, dtype=dtype)
    return expand_dims(numbers, 1), expand_dims(numbers, 0)


def _get_default_float() -> np.dtype[Any]:
    return dtypes.default_float(config.enable_x64.value)


@inline_jit(public=True)
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Build the matrix with constant diagonals.

    Args:
        c: an array with the first column along the last axis.
        r: an array with the first row along the last axis; its first element is ignored. None for the conjugate of `c`.

    Returns:
        An array with matrices in the last two axes; the others broadcast.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes do not broadcast, or one is a scalar.

    Example:
        >>> scipy.linalg.toeplitz(jnp.array([1, 2]))
        Array([[1, 2],
               [2, 1]], dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.7.
    """
    if r is not None:
        check_mapped_ranks([operand_aval(x, i).shape for i, x in enumerate((c, r))], (1, 1))
    column, row = _broadcast_vectors(c, conj(to_array_operand(c)) if r is None else r)
    if r is not None:
        column = convert_to(column, column.dtype)
    i, j = _make_grid(column.shape[-1], row.shape[-1])
    values = concatenate([column, row[..., 1:]], axis=-1)
    above = column.shape[-1] - 1 + j - i
    select = np.where if isinstance(above, np.ndarray) else where
    return _place_values(values, select(i >= j, i - j, above))


@inline_jit(public=True)
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Build the matrix with constant antidiagonals.

    Args:
        c: an array with the first column along the last axis.
        r: an array with the last row along the last axis; its first element is ignored. None for zeros.

    Returns:
        An array with matrices in the last two axes; the others broadcast.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes do not broadcast, or one is a scalar.

    Example:
        >>> scipy.linalg.hankel(jnp.array([1, 2]))
        Array([[1, 2],
               [2, 0]], dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.8.1.
    """
    c = to_array_operand(c)
    if not c.ndim:
        raise ValueError("hankel: c must be at least 1-dimensional, got a scalar")
    column, row = _broadcast_vectors(c, zeros_like(c) if r is None else r)
    if r is not None:
        column = convert_to(column, column.dtype)
    i, j = _make_grid(column.shape[-1], row.shape[-1])
    return _place_values(concatenate([column, row[..., 1:]], axis=-1), i + j)


@inline_jit(public=True)
def circulant(c: ArrayLike) -> Array:
    """Build the circulant matrix of a first column: each further column is shifted down by one place.

    Args:
        c: an array with the first column along the last axis.

    Returns:
        An array with matrices in the last two axes.

    Raises:
        TypeError: `c` is not an array.
        ValueError: it is a scalar, or empty.

    Example:
        >>> scipy.linalg.circulant(jnp.array([1, 2, 3]))
        Array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]], dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.8.2.
    """
    (column,) = _broadcast_vectors(c)
    i, j = _make_grid(column.shape[-1])
    return _place_values(column, (i - j) % max(column.shape[-1], 1))


@inline_jit(static=("n", "mode"), public=True)
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Build the matrix whose product with a vector is a convolution.

    Args:
        a: a vector, the other factor of the convolution.
        n: the number of elements of the vector.
        mode: ``"full"``, ``"same"`` or ``"valid"``, as in `numpy.convolve`.

    Returns:
        A matrix with `n` columns.

    Raises:
        TypeError: `n` is not an integer, or `a` no array.
        ValueError: there is no such mode, `a` is empty, or `n` is below 1.

    Example:
        >>> scipy.linalg.convolution_matrix(jnp.array([1.0, 2.0]), 2)
        Array([[1., 0.],
               [2., 1.],
               [0., 2.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.8: Toeplitz matrices.
    """
    columns = _check_size(n, 1)
    (vector,) = _broadcast_vectors(a)
    length = vector.shape[-1]
    if not length:
        raise ValueError(f"convolution_matrix: a must have at least one element; got shape {vector.shape}.")
    short, long = sorted((length, columns))
    kept = {"full": (0, length + columns - 1), "same": ((short - 1) // 2, long), "valid": (short - 1, long - short + 1)}
    if mode not in kept:
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {abbreviate(mode)}.")
    start, rows = kept[mode]
    offset = np.arange(start, start + rows)[:, None] - np.arange(columns)
    inside = (offset >= 0) & (offset < length)
    extended = concatenate([vector, zeros((*vector.shape[:-1], 1), vector.dtype)], axis=-1)
    return _place_values(extended, np.where(inside, offset, length))


def _prepend_constants(values: Array) -> Array:
    """Prepend a zero and a one to `values` along the last axis."""
    constants = broadcast_to(asarray(np.array([0, 1]), aval_of(values).dtype), (*values.shape[:-1], 2))
    return concatenate([constants, values], axis=-1)


def _normalize_polynomial(a: ArrayLike, least: int) -> Array:
    (a,) = promote_to_inexact(to_array_operand(a))
    if a.ndim < 1 or a.shape[-1] < least:
        raise ValueError(f"The length of `a` along the last axis must be at least {least}; got shape {a.shape}.")
    return -a[..., 1:] / a[..., :1]


@inline_jit(public=True)
def companion(a: ArrayLike) -> Array:
    """Build the matrix whose eigenvalues are the roots of a polynomial.

    Args:
        a: a vector of coefficients, the highest power first.

    Returns:
        A square matrix.

    Raises:
        TypeError: `a` is not an array.
        ValueError: it has fewer than two coefficients.

    Example:
        >>> scipy.linalg.companion(jnp.array([1.0, -3.0, 2.0]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.4.6.
    """
    row = _normalize_polynomial(a, 2)
    size = row.shape[-1]
    i, j = _make_grid(size)
    return _place_values(_prepend_constants(row), np.where(i == 0, 2 + j, i == j + 1))


@inline_jit(public=True)
def fiedler(a: ArrayLike) -> Array:
    """Build the symmetric matrix of the distances between elements.

    Args:
        a: an array of vectors, of shape (..., n).

    Returns:
        An array with matrices in the last two axes.

    Raises:
        TypeError: `a` is not an array.
        ValueError: it is a scalar.

    Example:
        >>> scipy.linalg.fiedler(jnp.array([1, 4]))
        Array([[0, 3],
               [3, 0]], dtype=int32)

    Reference:
        J. Todd, Basic Numerical Mathematics, vol. 2 (1977): Fiedler's matrix.
    """
    (vector,) = _broadcast_vectors(a)
    return absolute(subtract(expand_dims(vector, -1), expand_dims(vector, -2)))


@inline_jit(public=True)
def fiedler_companion(a: ArrayLike) -> Array:
    """Build a pentadiagonal matrix whose eigenvalues are the roots of a polynomial.

    Args:
        a: a vector of coefficients, the highest power first.

    Returns:
        A square matrix.

    Raises:
        TypeError: `a` is not an array.
        ValueError: it has no coefficients.

    Example:
        >>> scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)

    Reference:
        M. Fiedler, "A note on companion matrices" (2003).
    """
    terms = _normalize_polynomial(a, 1)
    size = terms.shape[-1]
    positions = np.zeros((size, size), np.int32)
    for k in range(size):
        if k == 0:
            positions[0, 0] = 2
        elif k % 2:
            positions[k - 1, k] = 2 + k
        else:
            positions[k, k - 1] = 2 + k
    if size > 1:
        positions[1, 0] = 1
    for k in range(2, size):
        positions[(k - 2, k) if k % 2 == 0 else (k, k - 2)] = 1
    return _place_values(_prepend_constants(terms), positions)


@inline_jit(public=True)
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Build the matrix for the growth of a population by ages.

    Args:
        f: a vector of the births of each age, the first row.
        s: a vector of the shares that survive, below the diagonal; one element fewer.

    Returns:
        A square matrix.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the lengths do not agree.

    Example:
        >>> scipy.linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
        Array([[1. , 2. ],
               [0.5, 0. ]], dtype=float32)

    Reference:
        P. H. Leslie, "On the use of matrices in certain population mathematics" (1945).
    """
    first, below = _broadcast_vectors(f, s)
    size = first.shape[-1]
    if below.shape[-1] != size - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less than the length of "
            f"f; got f shape {first.shape} and s shape {below.shape}."
        )
    if size < 2:
        raise ValueError(f"The length of f along the last axis must be at least 2; got shape {first.shape}.")
    i, j = _make_grid(size)
    positions = np.where(i == 0, 2 + j, np.where(i == j + 1, 2 + size + j, 0))
    values = concatenate([first, below], axis=-1)
    return convert_to(_place_values(_prepend_constants(values), positions), values.dtype, values.weak_type)


@inline_jit(public=True)
def block_diag(*arrs: ArrayLike) -> Array:
    """Build the matrix with matrices along its diagonal and zeros elsewhere.

    Args:
        arrs: matrices; vectors are rows, numbers matrices of one element.

    Returns:
        A matrix; one row without elements if there are no arguments.

    Raises:
        TypeError: an argument is not an array.
        ValueError: one has more than two axes.

    Example:
        >>> scipy.linalg.block_diag(jnp.ones((1, 2)), 3.0)
        Array([[1., 1., 0.],
               [0., 0., 3.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 1.3.
    """
    arrays = [to_array_operand(x, i) for i, x in enumerate(arrs)]
    for i, x in enumerate(arrays):
        if x.ndim > 2:
            raise ValueError(
                f"block_diag: arguments must have at most 2 dimensions, got shape {x.shape} at argument {i}."
            )
    if not arrays:
        return zeros((1, 0))
    blocks = [atleast_2d(x) for x in arrays]
    total, before = sum(x.shape[1] for x in blocks), 0
    rows = []
    for x in blocks:
        rows.append(pad(x, ((0, 0), (before, total - before - x.shape[1]))))
        before += x.shape[1]
    return concatenate(rows, axis=0).astype(result_type(*arrays))


# Matrices made from a size


@inline_jit(static=("n", "scale", "dtype"), public=True)
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Build the matrix of the Fourier transform `fft`.

    Args:
        n: the number of elements.
        scale: ``"n"`` or ``"sqrtn"`` to divide by n or its root; None for neither.
        dtype: a complex dtype; None for the default one.

    Returns:
        A complex matrix (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: there is no such scale, or the dtype is not complex.

    Example:
        >>> scipy.linalg.dft(2).real
        Array([[ 1.,  1.],
               [ 1., -1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 1.4.1.
    """
    size = _check_size(n)
    if scale not in _NORMS:
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {abbreviate(scale)}.")
    wanted = requested_dtype(complex if dtype is None else dtype)
    if not dtypes.is_complex(wanted):
        raise ValueError(f"dtype must be a complex floating-point type; got {wanted.name}.")
    unit_vectors = eye(size, dtype=wanted)
    return fft(unit_vectors, norm=_NORMS[scale]) if size else unit_vectors


@inline_jit(static=("n", "dtype"), public=True)
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Build Sylvester's matrix of 1 and -1 with orthogonal rows.

    Args:
        n: the number of rows, a power of 2.
        dtype: the dtype.

    Returns:
        A matrix (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: it is not a power of 2.

    Example:
        >>> scipy.linalg.hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)

    Reference:
        J. J. Sylvester, "Thoughts on inverse orthogonal matrices" (1867).
    """
    size = _check_size(n)
    if size < 1 or size & (size - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    wanted = requested_dtype(float if dtype is None else dtype)
    if dtypes.is_boolean(wanted):
        raise TypeError("hadamard: booleans have no -1; give a signed dtype.")
    # Each bit that is set in both the row's and the column's index changes the sign.
    common = bitwise_count(bitwise_and(*_compute_grid(size)))
    return where(equal(bitwise_and(common, 1), 0), 1, -1).astype(wanted)


@inline_jit(static=("n", "full"), public=True)
def helmert(n: int, full: bool = False) -> Array:
    """Build the orthogonal matrix of contrasts: row k compares element k with the mean of the elements before.

    Args:
        n: the number of elements.
        full: whether there is a first row of equal elements.

    Returns:
        A matrix (n - 1, n), or (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: it is below 1.

    Example:
        >>> scipy.linalg.helmert(2)
        Array([[ 0.70710677, -0.70710677]], dtype=float32)

    Reference:
        H. O. Lancaster, "The Helmert matrices" (1965).
    """
    size = _check_size(n, 1)
    i, j = _compute_grid(size, _get_default_float())
    contrasts = where(less(j, i), 1, where(equal(i, j), negative(i), 0))
    matrix = where(equal(i, 0), 1 / math.sqrt(size), true_divide(contrasts, sqrt(maximum(multiply(i, add(i, 1)), 1))))
    return matrix if full else getitem(matrix, slice(1, None))


@inline_jit(static=("n",), public=True)
def hilbert(n: int) -> Array:
    """Build the matrix with the elements ``1 / (i + j + 1)``.

    Args:
        n: the number of rows.

    Returns:
        A matrix (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: it is negative.

    Example:
        >>> scipy.linalg.hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)

    Reference:
        M.-D. Choi, "Tricks or treats with the Hilbert matrix" (1983).
    """
    i, j = _compute_grid(_check_size(n), _get_default_float())
    return true_divide(1, add(add(i, j), 1))


@inline_jit(static=("n",), public=True)
def invhilbert(n: int) -> Array:
    """Build the inverse of `hilbert`, whose elements are integers, as floats.

    Args:
        n: the number of rows.

    Returns:
        A matrix (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: it is negative.

    Example:
        >>> scipy.linalg.invhilbert(2)
        Array([[ 4., -6.],
               [-6., 12.]], dtype=float32)

    Reference:
        M.-D. Choi, "Tricks or treats with the Hilbert matrix" (1983).
    """
    size = _check_size(n)
    rows = range(size)

    def element(i: int, j: int) -> int:
        ways = math.comb(size + i, size - j - 1) * math.comb(size + j, size - i - 1) * math.comb(i + j, i) ** 2
        return (-1 if (i + j) % 2 else 1) * (i + j + 1) * ways

    return _to_default_float(np.array([[float(element(i, j)) for j in rows] for i in rows]).reshape(size, size))


def _check_kind(kind: str | None) -> str:
    if kind is not None and kind not in _KINDS:
        raise ValueError(f"{called_function()}: Expected kind to be one of: {list(_KINDS)}; got {abbreviate(kind)}")
    return kind or "symmetric"


def _compute_binomials(size: int) -> np.ndarray:
    return np.array([[math.comb(i, j) for j in range(size)] for i in range(size)], object).reshape(size, size)


def _choose_triangle(lower: np.ndarray, kind: str, symmetric: np.ndarray) -> np.ndarray:
    return {"symmetric": symmetric, "lower": lower, "upper": lower.T}[kind]


@inline_jit(static=("n", "kind"), public=True)
def pascal(n: int, kind: str | None = None) -> Array:
    """Build the matrix of binomial coefficients.

    Args:
        n: the number of rows.
        kind: None or ``"symmetric"``, ``"lower"`` or ``"upper"`` for a triangular one.

    Returns:
        A float32 matrix (n, n).

    Raises:
        TypeError: `n` is not an integer.
        ValueError: there is no such kind.

    Example:
        >>> scipy.linalg.pascal(3)
        Array([[1., 1., 1.],
               [1., 2., 3.],
               [1., 3., 6.]], dtype=float32)

    Reference:
        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. (2002), section 28.4.
    """
    kind = _check_kind(kind)
    lower = _compute_binomials(_check_size(n))
    return asarray(_choose_triangle(lower, kind, lower.dot(lower.T)).astype(np.float32))


@inline_jit(static=("n", "kind"), public=True)
def invpascal(n: int, kind: str | None = None) -> Array:
    """Build the inverse of `pascal`.

    Args:
        n: the number of rows.
        kind: None or ``"symmetric"``, ``"lower"`` or ``"upper"``.

    Returns:
        A matrix (n, n), exact as long as the dtype holds its integers.

    Raises:
        TypeError: `n` is not an integer.
        ValueError: there is no such kind.

    Example:
        >>> scipy.linalg.invpascal(2)
        Array([[ 2., -1.],
               [-1.,  1.]], dtype=float32)

    Reference:
        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. (2002), section 28.4.
    """
    kind = _check_kind(kind)
    size = _check_size(n)
    i, j = _make_grid(size)
    inverse = _compute_binomials(size) * np.where((i + j) % 2, -1, 1).astype(object)
    return _to_default_float(_choose_triangle(inverse, kind, inverse.T.dot(inverse)).astype(np.float64))
