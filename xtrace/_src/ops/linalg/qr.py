"""QR factorisation, and products of Householder reflections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import mul
from xtrace._src.algebra.vector_space import convert_to, operand_aval, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.shardings.sharding_rules import leading
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.slicing import pad, slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.complex_numbers import complex, real
from xtrace._src.ops.elementwise.elementwise import add, sub
from xtrace._src.ops.linalg.ffi import flag, foreign_call, hybrid_call, lapack_call, xla_call
from xtrace._src.ops.linalg.lu import lu, lu_solve, permute_rows
from xtrace._src.ops.linalg.matrices import (
    LEADING,
    adjoint,
    check_batch,
    check_matrices,
    identity,
    lower_triangle,
    product,
    transpose_matrices,
    upper_triangle,
    weak_as_operands,
)
from xtrace._src.ops.linalg.reflections import apply_reflections, pivoted_qr
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


@weak_as_operands
def _geqrf_abstract(x: ShapedArray) -> list[ShapedArray]:
    batch = check_matrices("geqrf", (x,))
    return [ShapedArray(x.shape, x.dtype), ShapedArray((*batch, min(x.shape[-2:])), x.dtype)]


def _geqrf_emit(builder: FunctionBuilder, x: Value) -> list[Value]:
    results = builder.results
    if builder.platform == "tpu":
        return xla_call(builder, "Qr", [x], results)
    details: dict[str, Any] = {"batch": x.aval.ndim - 2, "aliases": {0: 0}}
    if builder.platform == "cpu":
        return lapack_call(builder, "geqrf", [x], results, **details)
    return foreign_call(builder, "cusolver_geqrf_ffi", [x], results, **details)


@primitive(
    abstract=_geqrf_abstract, emit=_geqrf_emit, batch=LEADING, sharding=leading(2), multiple_results=True,
    jvp=no_rule("geqrf has no derivative; use qr"),
)
def geqrf(x: ArrayLike) -> tuple[Any, Any]:
    """Return R in the upper triangle with the Householder vectors below it, and the reflections' factors tau."""
    packed, taus = geqrf.bind_positional((x,))
    return packed, taus


@weak_as_operands
def _geqp3_abstract(x: ShapedArray, pivots: ShapedArray, *, use_magma: bool | None) -> list[ShapedArray]:
    packed, taus = _geqrf_abstract(x)
    if pivots.shape != (*x.shape[:-2], x.shape[-1]) or pivots.dtype != dtypes.int32:
        raise ValueError(
            f"geqp3: pivots must be int32, one for each column of {x.str_short(True)}, got {abbreviate(pivots)}"
        )
    return [packed, ShapedArray(pivots.shape, pivots.dtype), taus]


def _geqp3_emit(builder: FunctionBuilder, x: Value, pivots: Value, *, use_magma: bool | None) -> list[Value]:
    packed, order, taus = builder.results
    details: dict[str, Any] = {"batch": x.aval.ndim - 2, "aliases": {0: 0, 1: 1}}
    if builder.platform == "cpu":
        results = lapack_call(builder, "geqp3", [x, pivots], [packed, order, taus], **details)
    elif builder.platform == "cuda":
        magma = '"auto"' if use_magma is None else '"on"' if use_magma else '"off"'
        details["options"] = {"magma": magma}
        results = hybrid_call(builder, "cuhybrid_geqp3", [x, pivots], [packed, order, taus], **details)
    else:
        return lower_fun(pivoted_qr)(builder, x, pivots)
    # LAPACK counts columns from 1.
    one, positions = builder.constant(1, order), results[1]
    results[1] = builder.elementwise("subtract", positions, one)
    return results


@primitive(
    ("use_magma",), abstract=_geqp3_abstract, emit=_geqp3_emit, batch=LEADING, sharding=leading(2, 1),
    multiple_results=True,
    jvp=no_rule("geqp3 has no derivative; use qr with pivoting=True"),
)
def geqp3(x: ArrayLike, pivots: object, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """Return `geqrf` of permuted columns, such that the diagonal of R decreases, with the permutation in the middle.

    pivots: int32, positive for columns that must stay in front, 0 for others.
    """
    packed, order, taus = geqp3.bind_positional((x, pivots), (use_magma,))
    return packed, order, taus


def _check_reflections(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    if taus.ndim != a.ndim - 1:
        raise ValueError(f"{name}: taus must have one axis less than a, got shapes {a.shape} and {taus.shape}")
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(
            f"The second argument to {name} must not have more rows than the minimum of the first argument's rows "
            f"and columns; got shapes {a.shape} and {taus.shape}"
        )


@weak_as_operands
def _householder_abstract(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    # The shared checks take matrices, so the factors of the reflections are passed as columns.
    check_matrices("householder_product", (a, taus.update(shape=(*taus.shape, 1))))
    if a.shape[-2] < a.shape[-1]:
        raise ValueError(
            f"The first argument to householder_product must have at least as many rows as columns, got shape {a.shape}"
        )
    _check_reflections("householder_product", a, taus)
    check_batch("householder_product", (a, taus), (2, 1))
    return ShapedArray(a.shape, a.dtype)


def _householder_emit(builder: FunctionBuilder, a: Value, taus: Value) -> Value:
    results = [builder.results[0]]
    if builder.platform == "tpu":
        return xla_call(builder, "ProductOfElementaryHouseholderReflectors", [a, taus], results)[0]
    details: dict[str, Any] = {"batch": a.aval.ndim - 2, "aliases": {0: 0}}
    if builder.platform == "cpu":
        routine = "ungqr" if dtypes.is_complex(a.aval.dtype) else "orgqr"
        return lapack_call(builder, routine, [a, taus], results, **details)[0]
    return foreign_call(builder, "cusolver_orgqr_ffi", [a, taus], results, **details)[0]


@primitive(
    abstract=_householder_abstract, emit=_householder_emit, batch=LEADING,
    sharding=leading(2, 1),
    jvp=no_rule("Differentiation rule for 'householder_product' not implemented; differentiate qr instead"),
)
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply Householder reflections, and return the first columns of the product.

    Reflection i is 1 - taus[i] v vᴴ, where v is column i of `a` below the diagonal, 1 on it and 0 above.

    Args:
        a: vectors of the reflections, a floating or complex array of shape (..., m, n) with m >= n.
        taus: factors of the reflections, of the dtype of `a` and shape (..., k) with k <= n.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        TypeError: an operand is no floating or complex array, or the dtypes or ranks do not agree.
        ValueError: `a` has more columns than rows, or there are more reflections than columns.

    Example:
        >>> lax.linalg.householder_product(jnp.array([[1.0], [1.0]]), jnp.array([1.0]))
        Array([[ 0.],
               [-1.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.1.
    """
    return householder_product.bind_positional((a, taus))


@weak_as_operands
def _ormqr_abstract(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    check_matrices("ormqr", (a, taus.update(shape=(*taus.shape, 1)), c))
    _check_reflections("ormqr", a, taus)
    check_batch("ormqr", (a, taus, c), (2, 1, 2))
    if a.shape[-2] < a.shape[-1]:
        raise ValueError(f"ormqr: a must have at least as many rows as columns, got shape {a.shape}")
    if c.shape[-2 if left else -1] != a.shape[-2]:
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of {'rows' if left else 'columns'} as the "
            f"Householder matrix a has rows. Got a shape {a.shape} and c shape {c.shape}."
        )
    return ShapedArray(c.shape, c.dtype)


def _ormqr_emit(builder: FunctionBuilder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    results = [builder.results[0]]
    options = {"left": flag(left), "transpose": flag(transpose)}
    details: dict[str, Any] = {"batch": a.aval.ndim - 2, "options": options, "aliases": {0: 2}}
    if builder.platform == "cpu":
        routine = "unmqr" if dtypes.is_complex(a.aval.dtype) else "ormqr"
        return lapack_call(builder, routine, [a, taus, c], results, **details)[0]
    if builder.platform == "cuda":
        return foreign_call(builder, "cusolver_ormqr_ffi", [a, taus, c], results, **details)[0]
    return lower_fun(apply_reflections)(builder, a, taus, c, left=left, transpose=transpose)


@primitive(
    ("left", "transpose"), abstract=_ormqr_abstract, emit=_ormqr_emit, batch=LEADING,
    sharding=leading(2, 1, 2),
    jvp=no_rule("Differentiation rule for 'ormqr' not implemented; differentiate qr instead"),
)
def ormqr(a: ArrayLike, taus: object, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply a matrix by the product Q of Householder reflections.

    Args:
        a: vectors of the reflections, a floating or complex array of shape (..., m, n), as in `householder_product`.
        taus: factors of the reflections, of shape (..., k) with k <= min(m, n).
        c: matrices of shape (..., m, p), or (..., p, m) if not `left`.
        left: whether Q multiplies `c` from the left; otherwise from the right.
        transpose: whether the adjoint of Q replaces Q.

    Returns:
        An array of the shape and dtype of `c`.

    Raises:
        TypeError: an operand is no floating or complex array, or the dtypes or ranks do not agree.
        ValueError: the shapes do not agree.

    Example:
        >>> lax.linalg.ormqr(jnp.array([[1.0], [1.0]]), jnp.array([1.0]), jnp.array([[2.0], [3.0]]))
        Array([[-3.],
               [-2.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.1.
    """
    return ormqr.bind_positional((a, taus, c), (left, transpose))


@weak_as_operands
def _qr_abstract(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[ShapedArray]:
    batch = check_matrices("qr", (x,))
    rows, columns = x.shape[-2:]
    inner = rows if full_matrices else min(rows, columns)
    avals = [ShapedArray((*batch, rows, inner), x.dtype), ShapedArray((*batch, inner, columns), x.dtype)]
    return [*avals, ShapedArray((*batch, columns), dtypes.int32)] if pivoting else avals


@lower_fun
def _qr_emit(x: ArrayLike, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Any]:
    aval = aval_of(x)
    *batch, rows, columns = aval.shape
    inner = rows if full_matrices else min(rows, columns)
    order = zeros(ShapedArray((*batch, columns), dtypes.int32)) if pivoting else None
    if not rows or not columns:
        factors = [identity(aval.dtype, (*batch, rows, inner)), zeros(aval.update(shape=(*batch, inner, columns)))]
        return [*factors, order] if pivoting else factors
    if pivoting:
        packed, order, taus = geqp3(x, order, use_magma)
    else:
        packed, taus = geqrf(x)
    last = aval.ndim - 1
    if rows < columns:
        vectors = slice_in_dim(packed, 0, rows, 1, last)
    elif inner > columns:
        zero = scalar_literal(0, aval.dtype)
        vectors = pad(packed, zero, [*[(0, 0, 0)] * last, (0, inner - columns, 0)])
    else:
        vectors = packed
    upper = upper_triangle(slice_in_dim(packed, 0, inner, 1, last - 1))
    factors = [householder_product(vectors, taus), upper]
    return [*factors, order] if pivoting else factors


def _thin_jvp(q: Array, r: ArrayLike, dx: Any) -> tuple[Any, Any]:
    """Return the tangents of Q and R for square R."""
    # Qᴴ dA R⁻¹ = Qᴴ dQ + dR R⁻¹: anti-Hermitian plus upper triangular with a real diagonal (Walter and Lehmann 2012,
    # Algorithmic differentiation of linear algebra functions with application in optimum experimental design).
    moved = triangular_solve(r, dx)
    within = product(adjoint(q), moved, None)
    lower = lower_triangle(within, -1)
    turning = sub(lower, adjoint(lower))
    aval = aval_of(within)
    if dtypes.is_complex(aval.dtype):
        part = real(within)
        imaginary = sub(within, complex(part, zeros(aval_of(part))))
        turning = add(turning, mul(identity(aval.dtype, (*(1,) * (aval.ndim - 2), *aval.shape[-2:])), imaginary))
    return add(product(q, sub(turning, within), None), moved), product(sub(within, turning), r, None)


def _completed_jvp(q: ArrayLike, columns: int, dq: Any) -> Any:
    """Return the tangent of a square Q; its first columns have the tangent `dq`."""
    # Q = 1 - V T Vᴴ is a product of reflections, so its first columns Q₁ determine the others, Q₂: with Q₁ = [E F] by
    # rows and S = F (E - 1)⁻¹, dQ₂ = dQ₁ Sᴴ - (Q₁ + Q₂ S) (dF - S dE)ᴴ.
    row, column = aval_of(q).ndim - 2, aval_of(q).ndim - 1
    size = aval_of(q).shape[-1]
    first, rest = slice_in_dim(q, 0, columns, 1, column), slice_in_dim(q, columns, size, 1, column)
    top, bottom = slice_in_dim(first, 0, columns, 1, row), slice_in_dim(first, columns, size, 1, row)
    dtop, dbottom = slice_in_dim(dq, 0, columns, 1, row), slice_in_dim(dq, columns, size, 1, row)
    factors, _, permutation = lu(sub(top, identity(aval_of(top).dtype, aval_of(top).shape)))
    slope = lu_solve(factors, permutation, adjoint(bottom), adjoint=True)
    change = sub(dbottom, product(adjoint(slope), dtop, None))
    whole = add(first, product(rest, adjoint(slope), None))
    moved = sub(product(dq, slope, None), product(whole, adjoint(change), None))
    return concatenate([dq, moved], column)


def _qr_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, pivoting: bool, full_matrices: bool, use_magma: bool | None
) -> tuple[Sequence[Any], list[Any]]:
    (x,), (dx,) = primals, tangents
    # As in JAX, tangents are strongly typed even if the matrix is weakly typed.
    dx = convert_to(dx, aval_of(x).dtype)
    results = qr.bind_positional(primals, (pivoting, full_matrices, use_magma))
    q, r = results[:2]
    rows, columns = aval_of(x).shape[-2:]
    row, column = aval_of(x).ndim - 2, aval_of(x).ndim - 1
    if pivoting:
        x, dx = [transpose_matrices(permute_rows(transpose_matrices(y), results[2])) for y in (x, dx)]
    if rows < columns:
        # The square block of leading columns determines Q; for the other columns R₂ = Qᴴ A₂.
        others, dothers = [slice_in_dim(y, rows, columns, 1, column) for y in (x, dx)]
        dq, dr = _thin_jvp(q, slice_in_dim(r, 0, rows, 1, column), slice_in_dim(dx, 0, rows, 1, column))
        further = add(product(adjoint(dq), others, None), product(adjoint(q), dothers, None))
        moved = [dq, concatenate([dr, further], column)]
    elif full_matrices and rows > columns:
        thin = slice_in_dim(q, 0, columns, 1, column)
        dq, dr = _thin_jvp(thin, slice_in_dim(r, 0, columns, 1, row), dx)
        below = zeros(aval_of(slice_in_dim(r, columns, rows, 1, row)))
        moved = [_completed_jvp(q, columns, dq), concatenate([dr, below], row)]
    else:
        moved = list(_thin_jvp(q, r, dx))
    return results, [*moved, None] if pivoting else moved


@primitive(
    ("pivoting", "full_matrices", "use_magma"), abstract=_qr_abstract, emit=_qr_emit, jvp=_qr_jvp,
    batch=LEADING, sharding=leading(2), multiple_results=True,
)
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Any, ...]:
    """Factor matrices as ``x = Q R`` with orthonormal columns of Q and upper triangular R.

    Args:
        x: a floating or complex array of shape (..., m, n).
        pivoting: whether columns are permuted so that the absolute values on the diagonal of R decrease.
        full_matrices: whether Q is square; otherwise it has min(m, n) columns.
        use_magma: whether a GPU computes the pivoted form with MAGMA; None uses MAGMA if it is installed.

    Returns:
        Q of shape (..., m, k) and R of shape (..., k, n), where k is m or min(m, n); with `pivoting` also the
        permutation of the columns, int32 of shape (..., n). The diagonal of R may have negative elements.

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more.

    Example:
        >>> q, r = lax.linalg.qr(jnp.array([[0.0, 2.0], [-3.0, 1.0]]))
        >>> jnp.abs(r)
        Array([[3., 1.],
               [0., 2.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.2, and 5.4.2 for pivoting.
    """
    operand_aval(x, "x")
    return tuple(qr.bind_positional((x,), (bool(pivoting), bool(full_matrices), use_magma)))
