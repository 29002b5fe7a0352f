"""Cholesky factorisation, and solutions of triangular systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import add_any, neg
from xtrace._src.algebra.vector_space import move_axis, operand_aval, reshape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import Split, leading
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import add, div
from xtrace._src.ops.linalg.ffi import character, flag, foreign_call, keep_valid, lapack_call
from xtrace._src.ops.linalg.matrices import (
    LEADING,
    adjoint,
    as_column,
    as_row,
    check_batch,
    check_matrices,
    identity,
    lower_triangle,
    product,
    symmetrize,
    transpose_matrices,
    upper_triangle,
    weak_as_operands,
)
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.xla.custom_calls import lapack

# Cholesky factorisation


@weak_as_operands
def _cholesky_abstract(x: ShapedArray) -> ShapedArray:
    check_matrices("cholesky", (x,), square=True)
    return ShapedArray(x.shape, x.dtype)


def _cholesky_emit(builder: FunctionBuilder, x: Value) -> Value:
    if builder.platform == "tpu":
        return builder.line(f"stablehlo.cholesky {x.name}, lower = true : {x.type}", builder.results[0])
    batch = x.aval.ndim - 2
    results = [builder.results[0], ShapedArray(x.aval.shape[:-2], dtypes.int32)]
    details: dict[str, Any] = {"batch": batch, "aliases": {0: 0}}
    if builder.platform == "cpu":
        factor, status = lapack_call(builder, "potrf", [x], results, options={"uplo": character("L")}, **details)
    else:
        target = "cusolver_potrf_ffi"
        factor, status = foreign_call(builder, target, [x], results, options={"lower": flag(True)}, **details)
    return keep_valid(builder, [factor], status)[0]


def _cholesky_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    # With A = L Lᴴ: L⁻¹ dA L⁻ᴴ = L⁻¹ dL + (L⁻¹ dL)ᴴ; its lower triangle with half the diagonal is L⁻¹ dL
    # (Murray 2016, Differentiation of the Cholesky decomposition).
    factor = lower_triangle(cholesky.bind_positional(primals))
    solved = triangular_solve(factor, tangents[0], transpose_a=True, conjugate_a=True, lower=True)
    solved = lower_triangle(triangular_solve(factor, solved, left_side=True, lower=True))
    aval = aval_of(solved)
    one = identity(aval.dtype, (*(1,) * (aval.ndim - 2), *aval.shape[-2:]))
    halved = div(solved, add(one, constant_like(one, 1)))
    return factor, product(factor, halved)


@primitive(
    abstract=_cholesky_abstract, emit=_cholesky_emit, jvp=_cholesky_jvp, batch=LEADING, sharding=leading(2)
)
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Factor Hermitian positive definite matrices as ``x = L Lᴴ`` with lower triangular L.

    Args:
        x: a floating or complex array of shape (..., n, n).
        symmetrize_input: whether half the sum of `x` and its adjoint replaces `x`; otherwise only the lower triangle is
            read.

    Returns:
        An array of the shape and dtype of `x`; NaN for matrices that are not positive definite.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more.
        ValueError: the matrices are not square.

    Example:
        >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
        Array([[2., 0.],
               [1., 1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.2.
    """
    check_matrices("cholesky", (operand_aval(x, "x"),), square=True)
    return lower_triangle(cholesky.bind_positional((symmetrize(x) if symmetrize_input else x,)))


# Triangular systems


@weak_as_operands
def _solve_abstract(a: ShapedArray, b: ShapedArray, *, left_side: bool, **_: object) -> ShapedArray:
    check_matrices("triangular_solve", (a, b))
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"The first input to triangular_solve must be a square matrix. Got shape {a.shape}.")
    check_batch("triangular_solve", (a, b), (2, 2))
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        side = "rows" if left_side else "columns"
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}; with "
            f"left_side={left_side} b must have as many {side} as a"
        )
    return ShapedArray(b.shape, b.dtype)


def _solve_emit(
    builder: FunctionBuilder, a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> Value:
    conjugate_a = conjugate_a and dtypes.is_complex(a.aval.dtype)
    if conjugate_a and not transpose_a:
        a, conjugate_a = builder.line(f"chlo.conj {a.name} : {a.type} -> {a.type}", a.aval), False
    if builder.platform == "cpu" and lapack.supports(a.aval.dtype):
        options = {
            "side": character("L" if left_side else "R"), "uplo": character("L" if lower else "U"),
            "trans_x": character("C" if conjugate_a else "T" if transpose_a else "N"),
            "diag": character("U" if unit_diagonal else "N"),
        }
        batch = b.aval.ndim - 2
        return lapack_call(builder, "trsm", [a, b], builder.results, batch=batch, options=options, aliases={0: 1})[0]
    transposition = "ADJOINT" if conjugate_a else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
    return builder.op(
        "stablehlo.triangular_solve", a, b, left_side=flag(left_side), lower=flag(lower),
        transpose_a=f"#stablehlo<transpose {transposition}>", unit_diagonal=flag(unit_diagonal),
    )


def _solve_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, left_side: bool, lower: bool, transpose_a: bool,
    conjugate_a: bool, unit_diagonal: bool,
) -> tuple[Any, Any]:
    # op(A) X = B: dX = op(A)⁻¹ (dB - op(dA) X), and likewise from the right. Unread elements of A have no tangent.
    a, b = primals
    da, db = tangents
    parameters = (left_side, lower, transpose_a, conjugate_a, unit_diagonal)

    def solve(x: Array) -> Array:
        return triangular_solve.bind_positional((a, x), parameters)

    result = solve(b)
    total = None
    if da is not None:
        k = 1 if unit_diagonal else 0
        da = neg(lower_triangle(da, -k) if lower else upper_triangle(da, k))
        if transpose_a:
            da = adjoint(da) if conjugate_a else transpose_matrices(da)
        elif conjugate_a:
            da = transpose_matrices(adjoint(da))
        rows, columns = aval_of(b).shape[-2:]
        if left_side:
            total = product(solve(da), result) if columns > rows else solve(product(da, result))
        else:
            total = product(result, solve(da)) if rows > columns else solve(product(result, da))
    if db is not None:
        moved = solve(db)
        total = moved if total is None else add_any(total, moved)
    return result, total


def _solve_transpose(
    cotangent: Array, a: Array, b: Array, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
    unit_diagonal: bool,
) -> list[Any]:
    # Only b can be linear. The transpose of op(A)⁻¹ is op(Aᵀ)⁻¹, with the same conjugation.
    parameters = (left_side, lower, not transpose_a, conjugate_a, unit_diagonal)
    return [None, triangular_solve.bind_positional((a, cotangent), parameters)]


def _solve_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, left_side: bool, **parameters: object
) -> tuple[Any, int]:
    a, b = operands
    values = (left_side, *parameters.values())
    if axes[0] is None:
        # One matrix for all indices: the right-hand sides become the columns of one system.
        assert axes[1] is not None
        ndim = aval_of(b).ndim
        b = move_axis(b, axes[1], ndim - 1 if left_side else ndim - 3)
        shape = aval_of(b).shape
        merged = (*shape[:-2], shape[-2] * shape[-1]) if left_side else (*shape[:-3], shape[-3] * shape[-2], shape[-1])
        solved = triangular_solve.bind_positional((a, reshape(b, merged)), values)
        return reshape(solved, shape), ndim - 1 if left_side else ndim - 3
    a, b = mapped.place(a, axes[0]), mapped.place(b, axes[1])
    return triangular_solve.bind_positional((a, b), values), 0


def _solve_split(
    name: str, operands: Sequence[Split], result: ShapedArray, *, left_side: bool, **_: object
) -> tuple[Any, ...]:
    """The sharding rule: right-hand sides keep their split, since each is solved independently."""
    a, b = operands
    place = result.ndim - 1 if left_side else result.ndim - 2
    entries = list(b.entries)
    entries[place] = None
    batches = list(leading(2)(name, (a, b._replace(entries=tuple(entries))), result))
    batches[place] = b.entries[place]
    return tuple(batches)


@primitive(
    ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"),
    abstract=_solve_abstract, emit=_solve_emit, jvp=_solve_jvp, transpose=_solve_transpose, batch=_solve_batch,
    sharding=_solve_split,
)
def triangular_solve(
    a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
    conjugate_a: bool = False, unit_diagonal: bool = False,
) -> Array:
    """Solve systems with triangular matrices: ``op(a) x = b``, or ``x op(a) = b``.

    Args:
        a: triangular matrices, a floating or complex array of shape (..., n, n).
        b: right-hand sides of the dtype of `a` and shape (..., n, k) if `left_side`, else (..., k, n); or a vector for
            each matrix, of shape (..., n).
        left_side: whether op(a) multiplies x from the left.
        lower: whether to read the lower triangle of `a`; otherwise the upper one.
        transpose_a: whether op transposes.
        conjugate_a: whether op conjugates.
        unit_diagonal: whether the diagonal of `a` is taken as ones and not read.

    Returns:
        An array of the shape and dtype of `b`; infinities or NaN for a zero on the diagonal.

    Raises:
        TypeError: an operand is no floating or complex array, or the dtypes or ranks do not agree.
        ValueError: the matrices are not square, or the shapes do not agree.

    Example:
        >>> a = jnp.array([[2.0, 0.0], [1.0, 1.0]])
        >>> lax.linalg.triangular_solve(a, jnp.array([1.0, 2.0]), left_side=True, lower=True)
        Array([0.5, 1.5], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.1.
    """
    matrix, right = operand_aval(a, "a"), operand_aval(b, "b")
    conjugate_a = conjugate_a and dtypes.is_complex(matrix.dtype)
    parameters = (left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    if right.ndim == matrix.ndim - 1 and right.ndim:
        solved = triangular_solve.bind_positional((a, as_column(b) if left_side else as_row(b)), parameters)
        return squeeze(solved, (right.ndim if left_side else right.ndim - 1,))
    return triangular_solve.bind_positional((a, b), parameters)
