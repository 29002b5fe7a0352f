"""LU factorisation with partial pivoting, and permutations from pivots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import ZERO_DERIVATIVE, broadcast_in_dim, operand_aval, reduce_sum, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import leading
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice
from xtrace._src.ops.arrays.gather_scatter import gather
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.arrays.sorting import sort_key_val
from xtrace._src.ops.calls.lower_fun import lower_fun, repeat_while
from xtrace._src.ops.elementwise.comparisons import eq, lt
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg.ffi import foreign_call, keep_valid, lapack_call, xla_call
from xtrace._src.ops.linalg.matrices import (
    LEADING,
    as_column,
    check_matrices,
    identity,
    lower_triangle,
    product,
    upper_triangle,
    weak_as_operands,
)
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


@weak_as_operands
def _permutation_abstract(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != dtypes.int32:
        raise TypeError(f"lu_pivots_to_permutation takes pivots of dtype int32, got {pivots.dtype.name}")
    if pivots.ndim < 1:
        raise TypeError("lu_pivots_to_permutation takes pivots of rank at least 1, got a scalar")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of the pivots. "
            f"Got pivots size {pivots.shape[-1]}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), pivots.dtype)


def _exchange_at_pivot(step: Array, pivots: Array, permutation: Array) -> list[Any]:
    """Exchange the elements at `step` and at the pivot of this step in each permutation."""
    shape = aval_of(permutation).shape
    last = len(shape) - 1
    zero = np.int32(0)

    def at_step(x: ArrayLike) -> Array:
        start = [*[zero] * last, step]
        element = dynamic_slice(x, start, (*aval_of(x).shape[:-1], 1), allow_negative_indices=False)
        return broadcast_in_dim(element, shape, range(last + 1))

    positions = broadcasted_iota(np.int32, shape, last)
    at_pivot = eq(positions, at_step(pivots))
    chosen = reduce_sum(select_n(at_pivot, zeros(aval_of(permutation)), permutation), (last,))
    chosen = broadcast_in_dim(chosen, shape, range(last))
    here = eq(positions, broadcast_in_dim(step, shape, ()))
    permutation = select_n(at_pivot, select_n(here, permutation, chosen), at_step(permutation))
    return [add(step, constant_like(step, 1)), pivots, permutation]


@lower_fun
def _apply_exchanges(pivots: Array, *, permutation_size: int) -> Array:
    """Return the permutation that results from exchanges with the pivots."""
    shape, steps = (*aval_of(pivots).shape[:-1], permutation_size), aval_of(pivots).shape[-1]
    permutation = broadcasted_iota(np.int32, shape, len(shape) - 1)
    if not steps:
        return permutation
    state = [np.int32(0), pivots, permutation]
    return repeat_while(lambda step, *_: lt(step, constant_like(step, steps)), _exchange_at_pivot, state)[2]


def _permutation_emit(builder: FunctionBuilder, pivots: Value, *, permutation_size: int) -> Any:
    if builder.platform != "cuda":
        return _apply_exchanges(builder, pivots, permutation_size=permutation_size)
    aval = pivots.aval.update(shape=(*pivots.aval.shape[:-1], permutation_size))
    return foreign_call(builder, "cu_lu_pivots_to_permutation", [pivots], [aval], batch=aval.ndim - 1)[0]


@primitive(
    ("permutation_size",),
    abstract=_permutation_abstract, emit=_permutation_emit, jvp=ZERO_DERIVATIVE, batch=LEADING, sharding=leading(2),
)
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Convert the row exchanges of an LU factorization to a permutation.

    Args:
        pivots: the pivots of `lu`, int32 of shape (..., k): for i = 0, 1, …, row i was exchanged with row ``pivots[...,
            i]``.
        permutation_size: the number of rows, at least k.

    Returns:
        An array of shape (..., permutation_size) and dtype int32.

    Raises:
        TypeError: `pivots` is no int32 array of rank 1 or more.
        ValueError: `permutation_size` is less than k.

    Example:
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1]), 2)
        Array([1, 0], dtype=int32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4.
    """
    return lu_pivots_to_permutation.bind_positional((pivots,), (int(permutation_size),))


@weak_as_operands
def _lu_abstract(x: ShapedArray) -> list[ShapedArray]:
    batch = check_matrices("lu", (x,))
    rows, columns = x.shape[-2:]
    return [
        ShapedArray(x.shape, x.dtype), ShapedArray((*batch, min(rows, columns)), dtypes.int32),
        ShapedArray((*batch, rows), dtypes.int32),
    ]


def _lu_emit(builder: FunctionBuilder, x: Value) -> list[Value]:
    results = list(builder.results)
    if builder.platform == "tpu":
        return xla_call(builder, "LuDecomposition", [x], results, version=2)
    types = [*results[:2], ShapedArray(x.aval.shape[:-2], dtypes.int32)]
    details: dict[str, Any] = {"batch": x.aval.ndim - 2, "aliases": {0: 0}}
    if builder.platform == "cpu":
        factors, pivots, status = lapack_call(builder, "getrf", [x], types, **details)
    else:
        factors, pivots, status = foreign_call(builder, "cusolver_getrf_ffi", [x], types, **details)
    # LAPACK counts rows from 1.
    one = builder.constant(1, pivots.aval)
    pivots = builder.elementwise("subtract", pivots, one)
    (factors,) = keep_valid(builder, [factors], status, singular=True)
    return [factors, pivots, _permutation_emit(builder, pivots, permutation_size=x.aval.shape[-2])]


def permute_rows(x: Array, permutation: Any) -> Array:
    """Return matrices whose row i is row ``permutation[..., i]`` of `x`."""
    shape = aval_of(x).shape
    if 0 in shape:
        return x
    row, column = len(shape) - 2, len(shape) - 1
    batch = tuple(range(row))
    numbers = GatherDimensionNumbers(
        offset_dims=(column,), collapsed_slice_dims=(row,), start_index_map=(row,),
        operand_batching_dims=batch, start_indices_batching_dims=batch,
    )
    sizes = (*(1,) * (row + 1), shape[column])
    return gather(x, as_column(permutation), numbers, sizes, mode="promise_in_bounds")


def unpermute_rows(x: Array, permutation: Any) -> Array:
    """Return matrices whose row ``permutation[..., i]`` is row i of `x`."""
    shape = aval_of(permutation).shape
    positions = broadcasted_iota(np.int32, shape, len(shape) - 1)
    return permute_rows(x, sort_key_val(permutation, positions)[1])


def lu_solve(factors: Any, permutation: Any, b: Any, adjoint: bool = False) -> Array:
    """Return the solution of A x = b, or Aᴴ x = b if `adjoint`, from the factors and permutation of `lu`."""
    if adjoint:
        x = triangular_solve(factors, b, left_side=True, transpose_a=True, conjugate_a=True)
        x = triangular_solve(
            factors, x, left_side=True, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True
        )
        return unpermute_rows(x, permutation)
    x = triangular_solve(factors, permute_rows(b, permutation), left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, x, left_side=True)


def _complete_with_identity(x: Array, size: int) -> Array:
    """Return matrices extended along the shorter side to `size` with rows or columns of the identity."""
    aval = aval_of(x)
    *batch, rows, columns = aval.shape
    axis = aval.ndim - (1 if columns < size else 2)
    short = min(rows, columns)
    if short == size:
        return x
    whole = identity(aval.dtype, (*batch, size, size))
    return concatenate([x, slice_in_dim(whole, short, size, 1, axis)], axis)


def _lu_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    # P A = L U: L⁻¹ P dA U⁻¹ = L⁻¹ dL + dU U⁻¹, strictly lower plus upper triangular (Giles 2008, Collected matrix
    # derivative results). If the matrix is not square, L or U is extended with the identity.
    factors, pivots, permutation = lu.bind_positional(primals)
    aval = aval_of(factors)
    rows, columns = aval.shape[-2:]
    short = min(rows, columns)
    tall = slice_in_dim(factors, 0, short, 1, aval.ndim - 1)
    wide = slice_in_dim(factors, 0, short, 1, aval.ndim - 2)
    one = identity(aval.dtype, (*aval.shape[:-2], rows, rows))
    lower = add(lower_triangle(_complete_with_identity(tall, rows), -1), one)
    upper = upper_triangle(_complete_with_identity(wide, columns))
    moved = permute_rows(tangents[0], permutation)
    moved = triangular_solve(lower, moved, left_side=True, lower=True, unit_diagonal=True)
    moved = triangular_solve(upper, moved)
    tangent = add(product(lower, lower_triangle(moved, -1)), product(upper_triangle(moved), upper))
    return [factors, pivots, permutation], [tangent, None, None]


@primitive(
    abstract=_lu_abstract, emit=_lu_emit, jvp=_lu_jvp, batch=LEADING, sharding=leading(2), multiple_results=True
)
def lu(x: ArrayLike) -> tuple[Any, Any, Any]:
    """Factor matrices into triangular ones with row exchanges: ``x[permutation] = L U``.

    Args:
        x: a floating or complex array of shape (..., m, n).

    Returns:
        Three arrays: the factors, of the shape and dtype of `x`, with U in the upper triangle and L, whose diagonal is
        1, below it; the pivots, int32 of shape (..., min(m, n)): row i was exchanged with row ``pivots[..., i]``; and
        the permutation of the rows, int32 of shape (..., m).

    Raises:
        TypeError: `x` is no floating or complex array of rank 2 or more.

    Example:
        >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[2.0, 1.0], [4.0, 4.0]]))
        >>> factors
        Array([[ 4. ,  4. ],
               [ 0.5, -1. ]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4.
    """
    operand_aval(x, "x")
    factors, pivots, permutation = lu.bind_positional((x,))
    return factors, pivots, permutation
