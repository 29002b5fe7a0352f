"""Updates of symmetric matrices: rank-1 updates of Cholesky factors, and symmetric products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import add_any, mul, neg
from xtrace._src.algebra.kinds import FLOAT, check_kind, check_same_dtype
from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.core.annotations import ArrayLike, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.shardings.sharding_rules import leading
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun, repeat_while
from xtrace._src.ops.elementwise.comparisons import eq, lt
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import abs, add, div, max, sqrt, sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg.matrices import (
    LEADING,
    as_row,
    check_batch,
    lower_triangle,
    product,
    transpose_matrices,
    weak_as_operands,
)


def _check_update(name: str, avals: Sequence[ShapedArray], square: ShapedArray, size: int, ranks: Shape) -> None:
    check_kind(name, avals, [(FLOAT,)] * 2)
    check_same_dtype(name, avals)
    if any(a.ndim < rank for a, rank in zip(avals, ranks, strict=True)) or square.shape[-2:] != (size, size):
        raise ValueError(
            f"{name} takes a square matrix and {'a vector' if 1 in ranks else 'another matrix'} with as many "
            f"{'elements' if 1 in ranks else 'rows'}; got shapes {avals[0].shape} and {avals[1].shape}"
        )
    check_batch(name, avals, ranks)


@weak_as_operands
def _update_abstract(r_matrix: ShapedArray, w_vector: ShapedArray) -> ShapedArray:
    size = w_vector.shape[-1] if w_vector.ndim else -1
    _check_update("cholesky_update", (r_matrix, w_vector), r_matrix, size, (2, 1))
    return ShapedArray(r_matrix.shape, r_matrix.dtype)


def _rotate_row(step: Array, factor: Array, vector: Array) -> list[Any]:
    """Rotate row `step` of the factor and the vector so that element `step` of the vector becomes zero."""
    axis = aval_of(factor).ndim - 2
    row = dynamic_slice_in_dim(factor, step, 1, axis, allow_negative_indices=False)
    first = dynamic_slice_in_dim(row, step, 1, axis + 1, allow_negative_indices=False)
    second = dynamic_slice_in_dim(vector, step, 1, axis + 1, allow_negative_indices=False)
    scale = max(abs(first), abs(second))
    x, y = div(first, scale), div(second, scale)
    inverse = div(constant_like(x, 1), sqrt(add(mul(x, x), mul(y, y))))
    settled = eq(second, constant_like(second, 0))
    cosine = select_n(settled, mul(x, inverse), add(mul(second, constant_like(x, 0)), constant_like(x, 1)))
    sine = select_n(settled, mul(neg(y), inverse), mul(second, constant_like(x, 0)))
    turned = sub(mul(cosine, row), mul(sine, vector))
    vector = add(mul(cosine, vector), mul(sine, row))
    factor = dynamic_update_slice_in_dim(factor, turned, step, axis)
    return [add(step, constant_like(step, 1)), factor, vector]


@lower_fun
def _update_emit(r_matrix: Array, w_vector: Array) -> Array:
    size = aval_of(r_matrix).shape[-1]
    if not size:
        return r_matrix
    state = [np.int32(0), r_matrix, as_row(w_vector)]
    return repeat_while(lambda step, *_: lt(step, constant_like(step, size)), _rotate_row, state)[1]


@primitive(
    abstract=_update_abstract, emit=_update_emit, batch=LEADING, sharding=leading(2),
    jvp=no_rule("Differentiation rule for 'cholesky_update' not implemented; differentiate cholesky instead"),
)
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Compute the Cholesky factor R of Rᵀ R + w wᵀ, from R and w.

    Args:
        r_matrix: an upper triangular floating matrix R of shape (n, n).
        w_vector: a vector w of shape (n,) and the dtype of R.

    Returns:
        The upper triangular matrix S with Sᵀ S = Rᵀ R + w wᵀ.

    Raises:
        TypeError: an operand is no floating array, or the dtypes differ.
        ValueError: `r_matrix` is not square, or `w_vector` is no vector of its size.

    Example:
        >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
        Array([[5.]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 6.5; computed by Givens rotations.
    """
    return cholesky_update.bind_positional((r_matrix, w_vector))


@weak_as_operands
def _product_abstract(a_matrix: ShapedArray, c_matrix: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    size = a_matrix.shape[-2] if a_matrix.ndim > 1 else -1
    _check_update("symmetric_product", (a_matrix, c_matrix), c_matrix, size, (2, 2))
    return ShapedArray(c_matrix.shape, c_matrix.dtype)


@lower_fun
def _product_emit(a: Array, c: Array, *, alpha: float, beta: float) -> Array:
    squared = product(a, transpose_matrices(a))
    return add(mul(constant_like(squared, alpha), squared), mul(constant_like(c, beta), c))


def _product_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, alpha: float, beta: float) -> tuple[Any, Any]:
    a, (da, dc) = primals[0], tangents
    result, total = symmetric_product.bind_positional(primals, (alpha, beta)), None
    if da is not None:
        half = product(da, transpose_matrices(a))
        total = mul(constant_like(half, alpha), add(half, transpose_matrices(half)))
    if dc is not None:
        term = mul(constant_like(dc, beta), dc)
        total = term if total is None else add_any(total, term)
    return result, total


@primitive(
    ("alpha", "beta"), abstract=_product_abstract, emit=_product_emit, jvp=_product_jvp,
    batch=LEADING, sharding=leading(2),
)
def symmetric_product(
    a_matrix: object, c_matrix: object, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """Compute ``alpha A Aᵀ + beta C`` for real matrices and symmetric C.

    Args:
        a_matrix: matrices A, a floating array of shape (..., n, k).
        c_matrix: symmetric matrices C of shape (..., n, n) and the same dtype.
        alpha: a Python number.
        beta: a Python number.
        symmetrize_output: whether the lower triangle of the result is mirrored into the upper one, in case C is not
            symmetric.

    Returns:
        An array of the shape and dtype of `c_matrix`.

    Raises:
        TypeError: an operand is no floating array, or the dtypes differ.
        ValueError: the shapes do not agree.

    Example:
        >>> lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.eye(2), beta=1.0)
        Array([[2., 2.],
               [2., 5.]], dtype=float32)
    """
    operand_aval(a_matrix, "a_matrix")
    product = symmetric_product.bind_positional((a_matrix, c_matrix), (float(alpha), float(beta)))
    if symmetrize_output:
        return add(lower_triangle(product), transpose_matrices(lower_triangle(product, -1)))
    return product
