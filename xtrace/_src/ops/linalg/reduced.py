"""Unitary reductions to Schur, Hessenberg and tridiagonal form, and solutions of tridiagonal systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import add_any, mul, neg
from xtrace._src.algebra.kinds import INEXACT, check_kind, check_same_dtype
from xtrace._src.algebra.vector_space import operand_aval, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.shardings.sharding_rules import leading
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.linalg import ffi
from xtrace._src.ops.linalg.matrices import LEADING, as_column, check_batch, check_matrices, weak_as_operands
from xtrace._src.ops.linalg.reflections import hessenberg_form, tridiagonal_form
from xtrace._src.ops.linalg.tridiagonal import solve_by_elimination
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla.custom_calls import lapack


@weak_as_operands
def _schur_abstract(
    x: ShapedArray, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: object
) -> list[ShapedArray]:
    check_matrices("schur", (x,), square=True)
    return [ShapedArray(x.shape, x.dtype)] * (2 if compute_schur_vectors else 1)


def _schur_emit(
    builder: FunctionBuilder, x: Value, *, compute_schur_vectors: bool, sort_eig_vals: bool, select_callable: object
) -> list[Value]:
    if builder.platform != "cpu":
        raise ffi.platform_error(builder, "schur")
    batch = x.aval.shape[:-2]
    form = ShapedArray(x.aval.shape, x.aval.dtype)
    eigenvalues = [ShapedArray(x.aval.shape[:-1], x.aval.dtype)] * (1 if dtypes.is_complex(x.aval.dtype) else 2)
    status = ShapedArray(batch, dtypes.int32)
    options = {"mode": ffi.character("V" if compute_schur_vectors else "N"), "sort": ffi.character("N")}
    results = [form, form, *eigenvalues, status, status]
    outputs = ffi.lapack_call(builder, "gees", [x], results, batch=len(batch), options=options, aliases={0: 0})
    return ffi.keep_valid(builder, outputs[: 2 if compute_schur_vectors else 1], outputs[-1])


@primitive(
    ("compute_schur_vectors", "sort_eig_vals", "select_callable"),
    abstract=_schur_abstract, emit=_schur_emit, batch=LEADING, sharding=leading(2), multiple_results=True,
    jvp=no_rule("Differentiation rule for 'schur' not implemented"),
)
def schur(
    x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Decompose square matrices as ``x = Z T Zᴴ`` with unitary Z and upper triangular T.

    For real matrices T has blocks of size 2 on its diagonal, one for each pair of complex eigenvalues.

    Args:
        x: a floating or complex array of shape (..., n, n).
        compute_schur_vectors: whether Z is returned.
        sort_eig_vals: must be False.
        select_callable: must be None.

    Returns:
        T and, with `compute_schur_vectors`, Z: arrays of the shape and dtype of `x`. They are NaN where LAPACK fails.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more.
        ValueError: the matrices are not square.
        NotImplementedError: sorted eigenvalues are requested, or the platform is not the CPU.

    Example:
        >>> lax.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
        Array([[1., 2.],
               [0., 3.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), sections 7.4 and 7.5.
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: sorting eigenvalues is not implemented; leave sort_eig_vals and select_callable at their defaults"
        )
    operand_aval(x, "x")
    return tuple(schur.bind_positional((x,), (bool(compute_schur_vectors), False, None)))


@weak_as_operands
def _hessenberg_abstract(a: ShapedArray) -> list[ShapedArray]:
    batch = check_matrices("hessenberg", (a,))
    size = a.shape[-1]
    if a.shape[-2] != size:
        raise ValueError(f"Argument to Hessenberg reduction must have shape [..., n, n], got shape {a.shape}")
    return [ShapedArray(a.shape, a.dtype), ShapedArray((*batch, max(size - 1, 0)), a.dtype)]


def _hessenberg_emit(builder: FunctionBuilder, a: Value) -> list[Value]:
    if builder.platform != "cpu":
        return lower_fun(hessenberg_form)(builder, a)
    size = a.aval.shape[-1]
    packed, taus = builder.results
    if not size:
        return [a, builder.constant(0, taus)]
    status = ShapedArray(a.aval.shape[:-2], dtypes.int32)
    options = {"low": "1 : i32", "high": f"{size} : i32"}
    details: dict[str, Any] = {"batch": a.aval.ndim - 2, "options": options, "aliases": {0: 0}}
    *outputs, outcome = ffi.lapack_call(builder, "gehrd", [a], [packed, taus, status], **details)
    return ffi.keep_valid(builder, outputs, outcome)


@primitive(
    abstract=_hessenberg_abstract, emit=_hessenberg_emit, batch=LEADING, sharding=leading(2),
    multiple_results=True,
    jvp=no_rule("Differentiation rule for 'hessenberg' not implemented"),
)
def hessenberg(a: ArrayLike) -> tuple[Any, Any]:
    """Reduce square matrices to upper Hessenberg form by unitary transformations.

    Args:
        a: a floating or complex array of shape (..., n, n).

    Returns:
        The Hessenberg form, of the shape of `a`, with the vectors of the reflections below its subdiagonal; and the
        factors of the reflections, of shape (..., n - 1). Pass the vectors to `householder_product` as
        ``packed[..., 1:, :-1]``.

    Raises:
        TypeError: `a` is no floating or complex array of rank 2 or more.
        ValueError: the matrices are not square.

    Example:
        >>> lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
        Array([[1., 2.],
               [3., 4.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.4.
    """
    packed, taus = hessenberg.bind_positional((a,))
    return packed, taus


@weak_as_operands
def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    batch = check_matrices("tridiagonal", (a,))
    size = a.shape[-1]
    if a.shape[-2] != size or not size:
        raise ValueError(f"The input to tridiagonal must be a square matrix, not empty. Got shape {a.shape}.")
    part = dtypes.real_part_dtype(a.dtype)
    return [
        ShapedArray(a.shape, a.dtype), ShapedArray((*batch, size), part), ShapedArray((*batch, size - 1), part),
        ShapedArray((*batch, size - 1), a.dtype),
    ]


def _tridiagonal_emit(builder: FunctionBuilder, a: Value, *, lower: bool) -> list[Value]:
    results = [*builder.results, ShapedArray(a.aval.shape[:-2], dtypes.int32)]
    details: dict[str, Any] = {"batch": a.aval.ndim - 2, "aliases": {0: 0}}
    if builder.platform == "cpu":
        routine = "hetrd" if dtypes.is_complex(a.aval.dtype) else "sytrd"
        details["options"] = {"uplo": ffi.character("L" if lower else "U")}
        *outputs, status = ffi.lapack_call(builder, routine, [a], results, **details)
    elif builder.platform == "cuda":
        details["options"] = {"lower": ffi.flag(lower)}
        *outputs, status = ffi.foreign_call(builder, "cusolver_sytrd_ffi", [a], results, **details)
    else:
        return lower_fun(tridiagonal_form)(builder, a, lower=lower)
    return ffi.keep_valid(builder, outputs, status)


@primitive(
    ("lower",), abstract=_tridiagonal_abstract, emit=_tridiagonal_emit, batch=LEADING,
    sharding=leading(2),
    multiple_results=True, jvp=no_rule("Differentiation rule for 'tridiagonal' not implemented"),
)
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Reduce Hermitian matrices to real symmetric tridiagonal form by unitary transformations.

    Args:
        a: a floating or complex array of shape (..., n, n) with n >= 1.
        lower: whether to read the lower triangle of `a`; otherwise the upper one.

    Returns:
        The matrices with the vectors of the reflections in that triangle; the diagonal, of shape (..., n); the
        subdiagonal and the factors of the reflections, both of shape (..., n - 1).

    Raises:
        TypeError: `a` is no floating or complex array of rank 2 or more.
        ValueError: the matrices are not square, or empty.

    Example:
        >>> lax.linalg.tridiagonal(jnp.array([[4.0, 2.0], [2.0, 3.0]]))[1]
        Array([4., 3.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 8.3.
    """
    packed, diagonal, below, taus = tridiagonal.bind_positional((a,), (bool(lower),))
    return packed, diagonal, below, taus


# Tridiagonal systems


@weak_as_operands
def _solve_abstract(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    avals = (dl, d, du, b)
    check_kind("tridiagonal_solve", avals, [INEXACT] * 4)
    check_same_dtype("tridiagonal_solve", avals)
    if b.ndim < 2 or d.ndim < 1:
        raise TypeError(
            "tridiagonal_solve takes diagonals of rank at least 1 and b of rank at least 2; got shapes "
            f"{d.shape} and {b.shape}. Write b[:, None] for one right-hand side."
        )
    if not dl.shape == d.shape == du.shape:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same shape; got "
            f"{dl.shape}, {d.shape} and {du.shape}. dl[0] and du[-1] are not read."
        )
    check_batch("tridiagonal_solve", (d, b), (1, 2))
    if d.shape[-1] != b.shape[-2]:
        raise TypeError(
            f"tridiagonal_solve: b must have as many rows as the diagonals have elements; got shapes {d.shape} and "
            f"{b.shape}"
        )
    return ShapedArray(b.shape, b.dtype)


def _solve_emit(builder: FunctionBuilder, dl: Value, d: Value, du: Value, b: Value, *, perturb_singular: bool) -> Value:
    operands = [dl, d, du, b]
    batch = b.aval.ndim - 2
    dtype = d.aval.dtype
    if perturb_singular and builder.platform != "tpu" and dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(
            f"tridiagonal_solve with perturb_singular=True is for float32 and float64, got {dtype.name}"
        )
    if builder.platform == "cuda":
        if perturb_singular:
            target = "cu_tridiagonal_solve_perturbed"
            return ffi.foreign_call(builder, target, operands, builder.results, batch=batch)[0]
        target = "cusparse_gtsv2_ffi"
        return ffi.foreign_call(builder, target, operands, builder.results, batch=batch, aliases={0: 3})[0]
    if builder.platform != "cpu":
        return lower_fun(solve_by_elimination)(builder, *operands, perturb_singular=perturb_singular)
    if perturb_singular:
        lapack.register()
        return ffi.foreign_call(builder, "tridiagonal_solve_perturbed_ffi", operands, builder.results, batch=batch)[0]
    results = [ShapedArray(x.aval.shape, x.aval.dtype) for x in operands]
    results.append(ShapedArray(b.aval.shape[:-2], dtypes.int32))
    aliases = {i: i for i in range(4)}
    *_, solution, status = ffi.lapack_call(builder, "gtsv", operands, results, batch=batch, aliases=aliases)
    return ffi.keep_valid(builder, [solution], status)[0]


def _shift_down(x: Any, axis: int) -> Any:
    """Return `x` shifted by one towards the end of `axis`, with a zero in front."""
    size = aval_of(x).shape[axis]
    kept = slice_in_dim(x, 0, max(size - 1, 0), 1, axis)
    return concatenate([zeros(aval_of(slice_in_dim(x, 0, min(size, 1), 1, axis))), kept], axis)


def _shift_up(x: Any, axis: int) -> Any:
    """Return `x` shifted by one towards the front of `axis`, with a zero at the end."""
    size = aval_of(x).shape[axis]
    kept = slice_in_dim(x, min(size, 1), size, 1, axis)
    return concatenate([kept, zeros(aval_of(slice_in_dim(x, 0, min(size, 1), 1, axis)))], axis)


def _solve_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, perturb_singular: bool) -> tuple[Any, Any]:
    # A x = b: dx = A⁻¹ (db - dA x).
    diagonals, moved = primals[:3], tangents[:3]
    solution = tridiagonal_solve.bind_positional(primals, (perturb_singular,))
    row = aval_of(solution).ndim - 2
    change = None
    shifts: tuple[Callable[[Array], Array], ...] = (
        lambda x: x, lambda x: _shift_down(x, row), lambda x: _shift_up(x, row)
    )
    for tangent, shift in zip((moved[1], moved[0], moved[2]), shifts, strict=True):
        if tangent is not None:
            term = mul(as_column(tangent), shift(solution))
            change = term if change is None else add(change, term)
    right = tangents[3]
    if change is not None:
        right = neg(change) if right is None else add_any(right, neg(change))
    return solution, tridiagonal_solve.bind_positional((*diagonals, right), (perturb_singular,))


def _solve_transpose(
    cotangent: Array, dl: object, d: Array, du: object, b: Array, *, perturb_singular: bool
) -> list[Any]:
    if any(type(x) is UndefinedPrimal for x in (dl, d, du)):
        raise NotImplementedError("tridiagonal_solve is linear in b only, not in the matrix")
    last = aval_of(d).ndim - 1
    operands = (_shift_down(du, last), d, _shift_up(dl, last), cotangent)
    return [None, None, None, tridiagonal_solve.bind_positional(operands, (perturb_singular,))]


@primitive(
    ("perturb_singular",), abstract=_solve_abstract, emit=_solve_emit,
    jvp=_solve_jvp, transpose=_solve_transpose, batch=LEADING, sharding=leading(1, 1, 1, 2),
)
def tridiagonal_solve(dl: object, d: ArrayLike, du: object, b: ArrayLike, *, perturb_singular: bool = False) -> Array:
    """Solve systems A x = b with tridiagonal matrices A.

    Args:
        dl: the diagonal below the main one, a floating or complex array of shape (..., n); ``dl[..., i]`` stands in row
            i, and ``dl[..., 0]`` is not read.
        d: the main diagonal, of the shape of `dl`.
        du: the diagonal above the main one, of the shape of `dl`; ``du[..., -1]`` is not read.
        b: right-hand sides as columns, of shape (..., n, k).
        perturb_singular: whether to change singular matrices slightly, so that the solution is not NaN.

    Returns:
        An array of the shape and dtype of `b`.

    Raises:
        TypeError: the dtypes or shapes do not agree, or an operand is no floating or complex array.

    Example:
        >>> lower, upper = jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0])
        >>> lax.linalg.tridiagonal_solve(lower, jnp.array([2.0, 2.0]), upper, jnp.array([[3.0], [3.0]]))
        Array([[1.],
               [1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.3; Gaussian elimination with row
        exchanges.
    """
    return tridiagonal_solve.bind_positional((dl, d, du, b), (bool(perturb_singular),))
