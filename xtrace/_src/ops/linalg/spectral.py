"""Eigenvalues, singular values and their vectors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import mul, neg
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, reduce_sum, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.dtypes import DType
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import leading
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.complex_numbers import complex, conj, imag, real
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import abs, add, div, integer_pow, max, sign, sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg import ffi
from xtrace._src.ops.linalg.lu import lu, lu_solve
from xtrace._src.ops.linalg.matrices import (
    LEADING,
    adjoint,
    as_column,
    as_row,
    check_matrices,
    diagonal,
    identity,
    product,
    real_part,
    symmetrize,
    transpose_matrices,
    weak_as_operands,
)
from xtrace._src.ops.linalg.polar import unitary_factors
from xtrace._src.ops.linalg.qr import qr
from xtrace._src.ops.reductions.reductions import argmax
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


class EighImplementation(enum.Enum):
    """An algorithm for Hermitian eigenvalues.

    Attributes:
        QR: the QR algorithm, on CPU and GPU.
        JACOBI: Jacobi's rotations, on GPU and TPU.
        QDWH: spectral division by polar decompositions, on TPU.

    Example:
        >>> lax.linalg.eigh(jnp.eye(2), implementation=lax.linalg.EighImplementation.QR)[1]
        Array([1., 1.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """A library for eigenvalues of general matrices.

    Attributes:
        CUSOLVER: cuSOLVER, on GPU.
        MAGMA: MAGMA, for GPU.
        LAPACK: LAPACK, on CPU and for GPU.

    Example:
        >>> lax.linalg.eig(jnp.eye(1), implementation=lax.linalg.EigImplementation.LAPACK)[0]
        Array([1.+0.j], dtype=complex64)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class SvdAlgorithm(enum.Enum):
    """An algorithm for singular values.

    Attributes:
        QR: the QR algorithm, on CPU and GPU.
        JACOBI: Jacobi's rotations, on GPU.
        POLAR: a polar decomposition, on GPU and TPU.
        DIVIDE_AND_CONQUER: divide and conquer, on CPU.
        DEFAULT: the platform's usual algorithm.

    Example:
        >>> lax.linalg.svd(jnp.eye(2), compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)
        Array([1., 1.], dtype=float32)
    """

    QR, JACOBI, POLAR = "QR", "Jacobi", "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"
    DEFAULT = "default"


def _parse_enum(argument: str, kind: type[enum.Enum], value: object) -> Any:
    if value is not None and not isinstance(value, kind):
        members = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
        raise TypeError(f"{called_function()}: {argument} must be None or one of {members}; got {abbreviate(value)}")
    return value


def index_range(subset: object, size: int) -> tuple[int, int] | None:
    """Return `subset_by_index` as two ints, or None for the whole range."""
    if subset is None:
        return None
    try:
        start, stop = integer_tuple("subset_by_index", subset)
    except (TypeError, ValueError):
        raise TypeError(
            f"{called_function()}: subset_by_index must be None or a pair of integers, got {abbreviate(subset)}"
        ) from None
    if not 0 <= start <= stop <= size:
        raise ValueError(
            f"{called_function()}: subset_by_index {(start, stop)} must satisfy 0 <= start <= stop <= {size}"
        )
    return None if (start, stop) == (0, size) else (start, stop)


def _count(subset: tuple[int, int] | None, size: int) -> int:
    return size if subset is None else subset[1] - subset[0]


def _part(builder: FunctionBuilder, x: Value, axis: int, subset: tuple[int, int] | None) -> Value:
    """Write the slice `subset` of `x` along an axis; None for all."""
    shape = x.aval.shape
    axis %= len(shape)
    if subset is None or subset == (0, shape[axis]):
        return x
    return builder.slice(x, [subset if i == axis else (0, n) for i, n in enumerate(shape)])


def _gaps(values: Array, dtype: DType) -> Array:
    """Return 1 / (values[j] - values[i]) at row i and column j, 0 on the diagonal."""
    values = convert_to(values, dtype)
    ndim = aval_of(values).ndim
    one = identity(dtype, (*(1,) * (ndim - 1), *(aval_of(values).shape[-1],) * 2))
    return sub(integer_pow(sub(add(one, as_row(values)), as_column(values)), -1), one)


# Hermitian matrices


@weak_as_operands
def _eigh_abstract(
    x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, int] | None, algorithm: object
) -> list[ShapedArray]:
    batch = check_matrices("eigh", (x,), square=True)
    count = _count(subset_by_index, x.shape[-1])
    vectors = ShapedArray((*batch, x.shape[-1], count), x.dtype)
    return [vectors, ShapedArray((*batch, count), dtypes.real_part_dtype(x.dtype))]


def _eigh_emit(
    builder: FunctionBuilder, x: Value, *, lower: bool, sort_eigenvalues: bool,
    subset_by_index: tuple[int, int] | None, algorithm: EighImplementation | None,
) -> list[Value]:
    batch = x.aval.shape[:-2]
    values = ShapedArray(x.aval.shape[:-1], dtypes.real_part_dtype(x.aval.dtype))
    results = [ShapedArray(x.aval.shape, x.aval.dtype), values]
    uplo = "L" if lower else "U"
    if builder.platform == "tpu":
        if algorithm is EighImplementation.QR:
            raise NotImplementedError("eigh: the QR algorithm is not implemented on TPU; leave `implementation` None")
        outputs = ffi.xla_call(builder, "Eigh", [x], results, config=f"{int(lower)},{int(sort_eigenvalues)},100,1e-6")
        return [_part(builder, y, -1, subset_by_index) for y in outputs]
    details: dict[str, Any] = {"batch": len(batch), "aliases": {0: 0}}
    results.append(ShapedArray(batch, dtypes.int32))
    if builder.platform == "cpu":
        if algorithm not in (None, EighImplementation.QR):
            raise NotImplementedError(f"eigh: {algorithm} is not implemented on the CPU; use EighImplementation.QR")
        routine = "heevd" if dtypes.is_complex(x.aval.dtype) else "syevd"
        details["options"] = {"mode": ffi.character("V"), "uplo": ffi.character(uplo)}
        vectors, eigenvalues, status = ffi.lapack_call(builder, routine, [x], results, **details)
    else:
        numbers = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}
        if algorithm not in numbers:
            raise NotImplementedError(f"eigh: {algorithm} is implemented on TPU only; use QR or JACOBI")
        details["options"] = {"algorithm": f"{numbers[algorithm]} : ui8", "lower": ffi.flag(lower)}
        vectors, eigenvalues, status = ffi.foreign_call(builder, "cusolver_syevd_ffi", [x], results, **details)
    valid = ffi.keep_valid(builder, [vectors, eigenvalues], status)
    return [_part(builder, y, -1, subset_by_index) for y in valid]


def _eigh_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, lower: bool, sort_eigenvalues: bool,
    subset_by_index: tuple[int, int] | None, algorithm: EighImplementation | None,
) -> tuple[list[Any], list[Any]]:
    # With M = Vᴴ dA V: dw = diag(M), dV = V (F ∘ M), F = 1 / (wⱼ - wᵢ) off the diagonal (Giles 2008). The vectors of
    # equal eigenvalues have no derivative.
    if subset_by_index is not None:
        raise NotImplementedError(
            "Derivatives not defined for partial eigen decomposition: they depend on the vectors outside of the "
            "subset. Compute all of them and slice."
        )
    parameters = (lower, sort_eigenvalues, subset_by_index, algorithm)
    vectors, values = eigh.bind_positional((symmetrize(primals[0]),), parameters)
    moved = product(product(adjoint(vectors), tangents[0]), vectors)
    gaps = _gaps(values, aval_of(vectors).dtype)
    dvectors = product(vectors, mul(gaps, moved))
    return [vectors, values], [dvectors, diagonal(real_part(moved))]


@primitive(
    ("lower", "sort_eigenvalues", "subset_by_index", "algorithm"),
    abstract=_eigh_abstract, emit=_eigh_emit, jvp=_eigh_jvp, batch=LEADING, sharding=leading(2), multiple_results=True,
)
def eigh(
    x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None, implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Compute eigenvalues and orthonormal eigenvectors of Hermitian matrices.

    Args:
        x: a floating or complex array of shape (..., n, n).
        lower: whether to read the lower triangle, otherwise the upper one, if `symmetrize_input` is False.
        symmetrize_input: whether half the sum of `x` and its adjoint replaces `x`.
        sort_eigenvalues: whether the eigenvalues are in ascending order; only on TPUs they may be unsorted.
        subset_by_index: (start, stop), the positions of the eigenvalues to return; None for all.
        implementation: an `EighImplementation`; None for the platform's default.

    Returns:
        The eigenvectors as columns, of the shape and dtype of `x`, and the real eigenvalues of shape (..., n). They are
        NaN if the algorithm fails. The derivative of the vectors is infinite if eigenvalues coincide.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more, or `implementation` is no
            `EighImplementation`.
        ValueError: the matrices are not square, or `subset_by_index` is not in range.

    Example:
        >>> lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
        Array([1., 2.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), sections 8.3 and 8.5.
    """
    aval = operand_aval(x, "x")
    check_matrices("eigh", (aval,), square=True)
    subset = index_range(subset_by_index, aval.shape[-1])
    algorithm = _parse_enum("implementation", EighImplementation, implementation)
    parameters = (bool(lower), bool(sort_eigenvalues), subset, algorithm)
    vectors, values = eigh.bind_positional((symmetrize(x) if symmetrize_input else x,), parameters)
    return vectors, values


# Singular values


@weak_as_operands
def _svd_abstract(
    x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: tuple[int, int] | None, algorithm: object
) -> list[ShapedArray]:
    batch = check_matrices("svd", (x,))
    rows, columns = x.shape[-2:]
    count = _count(subset_by_index, min(rows, columns))
    values = ShapedArray((*batch, count), dtypes.real_part_dtype(x.dtype))
    if not compute_uv:
        return [values]
    left, right = (rows, columns) if full_matrices else (count, count)
    return [values, ShapedArray((*batch, rows, left), x.dtype), ShapedArray((*batch, right, columns), x.dtype)]


@lower_fun
def _empty_svd(x: Array, *, compute_uv: bool, full_matrices: bool) -> list[Any]:
    """Return the SVD of matrices without elements; square factors are identities."""
    aval = aval_of(x)
    *batch, rows, columns = aval.shape
    values = zeros(ShapedArray((*batch, 0), dtypes.real_part_dtype(aval.dtype)))
    if not compute_uv:
        return [values]
    left, right = (rows, columns) if full_matrices else (0, 0)
    return [values, identity(aval.dtype, (*batch, rows, left)), identity(aval.dtype, (*batch, right, columns))]


# The largest sizes for which cuSOLVER's Jacobi algorithm is the default, and for which it computes batches at once.
_JACOBI_SIZE, _JACOBI_BATCH_SIZE = 1024, 32


def _polar_svd(x: Array, *, full_matrices: bool, compute_uv: bool) -> list[Any]:
    """Return the SVD by the polar decomposition x = P H: the eigenvectors of H are the right vectors V.

    A QR factorisation of x V, whose columns are orthogonal, gives U, including the vectors of zero singular values
    (Nakatsukasa and Higham 2013, Stable and efficient spectral divide and conquer algorithms).
    """
    *batch, rows, columns = aval_of(x).shape
    row, column = len(batch), len(batch) + 1
    if rows < columns:
        values, *vectors = _polar_svd(adjoint(x), full_matrices=full_matrices, compute_uv=compute_uv)
        return [values, *[adjoint(v) for v in reversed(vectors)]]
    outer = None
    if rows > columns:
        outer, x = qr(x, full_matrices=full_matrices and compute_uv)
        x = slice_in_dim(x, 0, columns, 1, row)
    hermitian = symmetrize(product(adjoint(unitary_factors(x)), x))
    v, values = eigh(hermitian, symmetrize_input=False)
    values = max(rev(values, (row,)), constants_like(values, 0))
    if not compute_uv:
        return [values]
    v = rev(v, (column,))
    u, upper = qr(product(x, v))
    u = mul(u, as_row(_phase(diagonal(upper))))
    if outer is not None:
        inside = product(slice_in_dim(outer, 0, columns, 1, column), u)
        whole = aval_of(outer).shape[-1]
        u = concatenate([inside, slice_in_dim(outer, columns, whole, 1, column)], column)
    return [values, u, adjoint(v)]


def _phase(x: Array) -> Array:
    """Return x / |x|, 1 for zero."""
    return select_n(eq(x, constants_like(x, 0)), sign(x), constants_like(x, 1))


def _svd_emit(
    builder: FunctionBuilder, x: Value, *, full_matrices: bool, compute_uv: bool,
    subset_by_index: tuple[int, int] | None, algorithm: SvdAlgorithm | None,
) -> list[Value]:
    rows, columns = x.aval.shape[-2:]
    if not rows or not columns:
        return _empty_svd(builder, x, compute_uv=compute_uv, full_matrices=full_matrices)
    if builder.platform in ("cpu", "cuda"):
        run = _svd_on_cpu if builder.platform == "cpu" else _svd_on_gpu
        *outputs, status = run(builder, x, full_matrices, compute_uv, algorithm)
        outputs = ffi.keep_valid(builder, outputs if compute_uv else outputs[:1], status)
    elif algorithm in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.POLAR):
        outputs = lower_fun(_polar_svd)(builder, x, full_matrices=full_matrices, compute_uv=compute_uv)
    else:
        raise NotImplementedError(
            f"svd: {algorithm} is not implemented on the platform {builder.platform}; leave `algorithm` None, or use "
            "SvdAlgorithm.POLAR, its default"
        )
    return [_part(builder, y, axis, subset_by_index) for y, axis in zip(outputs, (-1, -1, -2), strict=False)]


def _svd_results(x: ShapedArray, left: int, right: int) -> list[ShapedArray]:
    """Return the result types of a library routine: scratch space, singular values, U, the right vectors, status."""
    *batch, rows, columns = x.shape
    return [
        ShapedArray(x.shape, x.dtype), ShapedArray((*batch, min(rows, columns)), dtypes.real_part_dtype(x.dtype)),
        ShapedArray((*batch, rows, left), x.dtype), ShapedArray((*batch, right, columns), x.dtype),
        ShapedArray(tuple(batch), dtypes.int32),
    ]


def _svd_on_cpu(
    builder: FunctionBuilder, x: Value, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None
) -> Sequence[Value]:
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError("The SVD Jacobi and Polar algorithms are not implemented on CPU.")
    rows, columns = x.aval.shape[-2:]
    inner = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (inner, inner)
    mode = ffi.character("N" if not compute_uv else "A" if full_matrices else "S")
    routine = "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"
    results = _svd_results(x.aval, left, right)
    batch = x.aval.ndim - 2
    return ffi.lapack_call(builder, routine, [x], results, batch=batch, options={"mode": mode}, aliases={0: 0})[1:]


def _svd_on_gpu(
    builder: FunctionBuilder, x: Value, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None
) -> Sequence[Value]:
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise NotImplementedError("svd: the divide-and-conquer algorithm is implemented on the CPU only")
    rows, columns = x.aval.shape[-2:]
    inner = min(rows, columns)
    larger = rows + columns - inner
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if larger <= _JACOBI_SIZE else SvdAlgorithm.QR
    whole = full_matrices
    if algorithm is SvdAlgorithm.JACOBI and larger <= _JACOBI_BATCH_SIZE:
        whole = True
    left, right = (rows, columns) if whole else (inner, inner)
    details: dict[str, Any] = {"batch": x.aval.ndim - 2, "aliases": {0: 0}}
    options = {"compute_uv": ffi.flag(compute_uv), "full_matrices": ffi.flag(whole)}
    results = _svd_results(x.aval, left, right)
    if algorithm is SvdAlgorithm.QR:
        # The routine needs at least as many rows as columns: wide matrices are passed row-major, as their transposes.
        wide = rows < columns
        options["transposed"] = ffi.flag(wide)
        if not compute_uv:
            results[2:4] = [results[2].update(shape=x.aval.shape[:-2])] * 2
        elif wide:
            results[2:4] = [results[3], results[2]]
        target = "cusolver_gesvd_ffi"
        _, values, one, other, status = ffi.foreign_call(
            builder, target, [x], results, options=options, row_major=wide, **details
        )
        return (values, other, one, status) if wide else (values, one, other, status)
    target = "cusolver_gesvdj_ffi" if algorithm is SvdAlgorithm.JACOBI else "cusolver_gesvdp_ffi"
    # These routines give V, not its adjoint.
    results[3] = results[3].update(shape=(*x.aval.shape[:-2], columns, right))
    _, values, u, v, status = ffi.foreign_call(builder, target, [x], results, options=options, **details)
    if not compute_uv:
        return values, u, v, status
    v = lower_fun(adjoint)(builder, v)
    inside = None if full_matrices else (0, inner)
    return values, _part(builder, u, -1, inside), _part(builder, v, -2, inside), status


def _svd_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, full_matrices: bool, compute_uv: bool,
    subset_by_index: tuple[int, int] | None, algorithm: SvdAlgorithm | None,
) -> tuple[list[Any], list[Any]]:
    # With D = Uᴴ dA V: ds is the real diagonal of D. With F = 1 / (sⱼ² - sᵢ²) off the diagonal, and within the columns
    # of U and V, dU = U (F ∘ (D S + S Dᴴ)) and dV = V (F ∘ (S D + Dᴴ S)); U gets the anti-Hermitian diagonal of D. The
    # components outside of these columns follow from dA (Giles 2008; Townsend 2016, Differentiating the singular value
    # decomposition).
    (x,), (dx,) = primals, tangents
    rows, columns = aval_of(x).shape[-2:]
    if subset_by_index is not None:
        raise NotImplementedError(
            "Derivatives not defined for partial singular value decomposition: they depend on the vectors outside "
            "of the subset. Compute all of them and slice."
        )
    if compute_uv and full_matrices and rows != columns:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices: the additional vectors are not "
            "determined. Use full_matrices=False."
        )
    values, u, vh = svd.bind_positional((x,), (False, True, None, algorithm))
    uh, v = adjoint(u), adjoint(vh)
    inner = product(product(uh, dx), v)
    dvalues = diagonal(real_part(inner))
    if not compute_uv:
        return [values], [dvalues]
    dtype = aval_of(x).dtype
    row, column = as_row(values), as_column(values)
    own = aval_of(values)
    one = identity(own.dtype, (*(1,) * (own.ndim - 1), own.shape[-1], own.shape[-1]))
    squares = mul(add(row, column), sub(row, column))
    squares = add(squares, one)
    weights = convert_to(sub(div(constant_like(squares, 1), squares), one), dtype)
    none = convert_to(eq(values, constant_like(values, 0)), own.dtype)
    filled = add(values, none)
    inverse = sub(div(constant_like(filled, 1), filled), none)
    turned = mul(constant_like(inner, 0.5), sub(inner, adjoint(inner)))
    turned = mul(turned, convert_to(mul(as_row(inverse), one), dtype))
    wide_row, wide_column = convert_to(row, dtype), convert_to(column, dtype)
    from_right, from_left = mul(inner, wide_row), mul(inner, wide_column)
    du = product(u, add(mul(weights, add(from_right, adjoint(from_right))), turned))
    dv = product(v, mul(weights, add(from_left, adjoint(from_left))))
    if rows > columns:
        image = product(dx, v)
        du = add(du, div(sub(image, product(u, product(uh, image))), wide_row))
    if columns > rows:
        image = product(adjoint(dx), u)
        dv = add(dv, div(sub(image, product(v, product(vh, image))), wide_row))
    return [values, u, vh], [dvalues, du, adjoint(dv)]


@primitive(
    ("full_matrices", "compute_uv", "subset_by_index", "algorithm"),
    abstract=_svd_abstract, emit=_svd_emit, jvp=_svd_jvp, batch=LEADING, sharding=leading(2), multiple_results=True,
)
def svd(
    x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, ...]:
    """Compute the singular value decomposition ``x = U diag(s) Vᴴ`` of matrices.

    Args:
        x: a floating or complex array of shape (..., m, n).
        full_matrices: whether U and V are square; otherwise they have min(m, n) columns.
        compute_uv: whether U and Vᴴ are returned.
        subset_by_index: (start, stop), the positions of the singular values to return; None for all.
        algorithm: an `SvdAlgorithm`; None for the platform's default.

    Returns:
        U, the singular values in descending order, real and of shape (..., min(m, n)), and Vᴴ; without `compute_uv` the
        singular values alone. They are NaN if the algorithm fails.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more, or `algorithm` is no `SvdAlgorithm`.
        ValueError: `subset_by_index` is not in range, or is given with `full_matrices`.

    Example:
        >>> lax.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.6.
    """
    aval = operand_aval(x, "x")
    check_matrices("svd", (aval,))
    inner = min(aval.shape[-2:])
    subset = index_range(subset_by_index, inner)
    if subset_by_index is not None and full_matrices:
        raise ValueError("svd: full_matrices and subset_by_index cannot both be set; pass full_matrices=False")
    algorithm = _parse_enum("algorithm", SvdAlgorithm, algorithm)
    results = svd.bind_positional((x,), (bool(full_matrices), bool(compute_uv), subset, algorithm))
    if not compute_uv:
        return results[0]
    values, u, vh = results
    return u, values, vh


# General matrices


@weak_as_operands
def _eig_abstract(
    x: ShapedArray, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool, implementation: object,
) -> list[ShapedArray]:
    batch = check_matrices("eig", (x,), square=True)
    dtype = _complex_dtype(x.dtype)
    vectors = ShapedArray(x.shape, dtype)
    count = bool(compute_left_eigenvectors) + bool(compute_right_eigenvectors)
    return [ShapedArray((*batch, x.shape[-1]), dtype), *[vectors] * count]


def _complex_dtype(dtype: DTypeLike) -> Any:
    if dtypes.is_complex(dtype):
        return dtype
    return dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64


def _eig_emit(
    builder: FunctionBuilder, x: Value, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool, implementation: EigImplementation | None,
) -> list[Value]:
    batch = x.aval.shape[:-2]
    is_complex, dtype = dtypes.is_complex(x.aval.dtype), _complex_dtype(x.aval.dtype)
    values = ShapedArray(x.aval.shape[:-1], dtype)
    vectors = ShapedArray(x.aval.shape, dtype)
    # For real matrices the real and imaginary parts of the eigenvalues are separate results.
    parts = [values] if is_complex else [values.update(dtype=x.aval.dtype)] * 2
    results = [*parts, vectors, vectors, ShapedArray(batch, dtypes.int32)]
    if builder.platform == "cpu":
        if implementation not in (None, EigImplementation.LAPACK):
            raise ValueError("eig: only the LAPACK implementation is supported on CPU; leave `implementation` None")
        wanted = {"compute_left": compute_left_eigenvectors, "compute_right": compute_right_eigenvectors}
        options = {name: ffi.character("V" if value else "N") for name, value in wanted.items()}
        outputs = ffi.lapack_call(builder, "geev", [x], results, batch=len(batch), options=options)
    elif builder.platform == "cuda" and implementation is not EigImplementation.CUSOLVER:
        magma = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}[implementation]
        options = {
            "left": ffi.flag(compute_left_eigenvectors), "right": ffi.flag(compute_right_eigenvectors),
            "magma": f'"{magma}"',
        }
        target = "cuhybrid_eig_comp" if is_complex else "cuhybrid_eig_real"
        outputs = ffi.hybrid_call(builder, target, [x], results, batch=len(batch), options=options)
    else:
        raise ffi.platform_error(builder, "eig")
    *eigenvalues, left, right, status = outputs
    spectrum = eigenvalues[0]
    if not is_complex:
        spectrum = builder.complex(eigenvalues[0], eigenvalues[1], values)
    kept = [spectrum, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]
    return ffi.keep_valid(builder, kept, status)


def _solve(matrix: Array, right: object) -> Array:
    factors, _, permutation = lu(matrix)
    return lu_solve(factors, permutation, right)


def _eigenvector_tangents(values: Array, vectors: Array, dx: object) -> Array:
    """Return the tangent of eigenvectors in LAPACK's scaling: length 1, largest component real."""
    gaps = _gaps(values, aval_of(vectors).dtype)
    moved = product(vectors, mul(gaps, product(_solve(vectors, dx), vectors)))
    ndim = aval_of(vectors).ndim
    rows = (ndim - 2,)
    shape = aval_of(vectors).shape
    largest = argmax(abs(vectors), ndim - 2, dtypes.int32)
    positions = broadcasted_iota(dtypes.int32, shape, ndim - 2)
    chosen = convert_to(
        eq(positions, broadcast_in_dim(largest, shape, (*range(ndim - 2), ndim - 1))), aval_of(vectors).dtype
    )
    growth = neg(real(reduce_sum(mul(conj(vectors), moved), rows)))
    turn = div(neg(imag(reduce_sum(mul(chosen, moved), rows))), real(reduce_sum(mul(chosen, vectors), rows)))
    return add(moved, mul(vectors, broadcast_in_dim(complex(growth, turn), shape, (*range(ndim - 2), ndim - 1))))


def _eig_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool, enable_eigvec_derivs: bool, implementation: EigImplementation | None,
) -> tuple[list[Any], list[Any]]:
    # With M = V⁻¹ dA V: dw = diag(M) and dV = V (F ∘ M) plus a multiple of each column that keeps its scaling,
    # F = 1 / (wⱼ - wᵢ) off the diagonal (Giles 2008; Boeddeker et al. 2017, On the computation of complex-valued
    # gradients). The left vectors are the right vectors of the adjoint.
    wants_vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if wants_vectors and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid where the eigenvalues are distinct and the "
            "largest component of each vector is unique, which cannot be checked while tracing. Pass "
            "enable_eigvec_derivs=True to eig if both hold, or differentiate the eigenvalues alone "
            "(compute_left_eigenvectors=False, compute_right_eigenvectors=False)."
        )
    # The derivatives of eigenvalues do not depend on the scaling of the vectors, so they need no permission.
    factors = eig.bind_positional(primals, (compute_left_eigenvectors, True, True, implementation))
    values, right = factors[0], factors[-1]
    dx = convert_to(tangents[0], aval_of(values).dtype)
    dvalues = reduce_sum(mul(_solve(right, dx), transpose_matrices(right)), (aval_of(right).ndim - 1,))
    results, moved = [values], [dvalues]
    if compute_left_eigenvectors:
        results.append(factors[1])
        moved.append(_eigenvector_tangents(conj(values), factors[1], adjoint(dx)))
    if compute_right_eigenvectors:
        results.append(right)
        moved.append(_eigenvector_tangents(values, right, dx))
    return results, moved


@primitive(
    ("compute_left_eigenvectors", "compute_right_eigenvectors", "enable_eigvec_derivs", "implementation"),
    abstract=_eig_abstract, emit=_eig_emit, jvp=_eig_jvp, batch=LEADING, sharding=leading(2), multiple_results=True,
)
def eig(
    x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None, use_magma: bool | None = None,
) -> list[Any]:
    """Compute eigenvalues and eigenvectors of general square matrices, on CPU and GPU.

    Args:
        x: a floating or complex array of shape (..., n, n).
        compute_left_eigenvectors: whether to return left eigenvectors, the eigenvectors of the adjoint.
        compute_right_eigenvectors: whether to return right eigenvectors.
        enable_eigvec_derivs: whether eigenvectors have derivatives, which exist for distinct eigenvalues.
        implementation: an `EigImplementation`; None for the platform's default.
        use_magma: an older form of `implementation` for GPUs: True for MAGMA, False for LAPACK.

    Returns:
        A list of complex arrays: the eigenvalues of shape (..., n), then the left and the right eigenvectors, as
        columns of length 1 with a real largest component. They are NaN if the algorithm fails.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more, or `implementation` is no `EigImplementation`.
        ValueError: the matrices are not square, or both `implementation` and `use_magma` are given.

    Example:
        >>> lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        Array([0.+1.j, 0.-1.j], dtype=complex64)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.5.
    """
    operand_aval(x, "x")
    if use_magma is not None:
        if implementation is not None:
            raise ValueError("eig: pass implementation or use_magma, not both; they select the same option")
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    implementation = _parse_enum("implementation", EigImplementation, implementation)
    flags = (bool(compute_left_eigenvectors), bool(compute_right_eigenvectors), bool(enable_eigvec_derivs))
    return list(eig.bind_positional((x,), (*flags, implementation)))
