"""Matrices in the last two axes of arrays: triangles, products, transposes, and checks of operands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import INEXACT, check_kind, check_same_dtype
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    convert_to,
    reduce_sum,
    transpose,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.core.primitive import Derived, Primitive
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.contractions.contraction import Precision, dot_general
from xtrace._src.ops.elementwise.comparisons import eq, ge
from xtrace._src.ops.elementwise.complex_numbers import conj, real
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import add, div
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.transforms.batch import MappedAxis

_EXACT = (Precision.HIGHEST, Precision.HIGHEST)


def check_matrices(name: str, avals: Sequence[ShapedArray], *, square: bool = False) -> tuple[int, ...]:
    """Return the common batch shape of matrices of one inexact dtype; TypeError or ValueError for other operands."""
    check_kind(name, avals, [INEXACT] * len(avals))
    check_same_dtype(name, avals)
    for position, aval in enumerate(avals):
        if aval.ndim < 2:
            raise TypeError(f"Input {position} to {name} must have rank at least 2, but got shape={aval.shape}")
    if square:
        check_square(name, avals[0])
    return avals[0].shape[:-2]


def weak_as_operands(abstract: Callable[..., Any]) -> Callable[..., Any]:
    """Return the abstract rule with weakly typed results if all operands are weakly typed."""

    @functools.wraps(abstract)
    def with_weak_results(*avals: ShapedArray, **parameters: object) -> Any:
        avals_out = abstract(*avals, **parameters)
        if not all(a.weak_type for a in avals):
            return avals_out
        if isinstance(avals_out, list):
            return [a.update(weak_type=True) for a in avals_out]
        return avals_out.update(weak_type=True)

    return with_weak_results


def check_square(name: str, aval: ShapedArray) -> None:
    """Raise ValueError unless the last two axes have equal sizes."""
    if aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"The input to {name} must be a square matrix. Got shape {aval.shape}.")


def check_batch(name: str, avals: Sequence[ShapedArray], ranks: Sequence[int]) -> None:
    """Raise ValueError unless the batch axes, those before the last `ranks` axes of each operand, are equal."""
    shapes = [a.shape[: a.ndim - own] for a, own in zip(avals, ranks, strict=True)]
    if len(set(shapes)) > 1:
        raise ValueError(
            f"{name}: the leading axes, over the batch, must agree; got operands of shapes "
            f"{', '.join(str(a.shape) for a in avals)}. Broadcast them first."
        )


def transpose_matrices(x: ArrayLike) -> Array:
    """Return the transpose of each matrix."""
    ndim = aval_of(x).ndim
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def conj_if_complex(x: Any) -> Array:
    """Return the complex conjugate, or `x` itself if it is real."""
    return conj(x) if dtypes.is_complex(aval_of(x).dtype) else x


def real_part(x: Any) -> Array:
    """Return the real part, or `x` itself if it is real."""
    return real(x) if dtypes.is_complex(aval_of(x).dtype) else x


def adjoint(x: ArrayLike) -> Array:
    """Return the conjugate transpose of each matrix."""
    return conj_if_complex(transpose_matrices(x))


def symmetrize(x: Any) -> Any:
    """Return the Hermitian part, half the sum of each matrix and its adjoint."""
    total = add(x, adjoint(x))
    return div(total, constant_like(total, 2))


def product(x: ArrayLike, y: ArrayLike, precision: Any = _EXACT) -> Array:
    """Return the product of matrices with equal batch axes."""
    ndim = aval_of(x).ndim
    batch = tuple(range(ndim - 2))
    return dot_general(x, y, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)


def _lower_part(rows: int, columns: int, diagonal: int) -> Array:
    i = broadcasted_iota(np.int32, (rows, columns), 0)
    j = broadcasted_iota(np.int32, (rows, columns), 1)
    return ge(add(i, scalar_literal(np.int32(diagonal), dtypes.int32)), j)


def _select_by_mask(mask: Array, on_true: Array, on_false: Array, shape: tuple[int, ...]) -> Array:
    mask = broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))
    return select_n(mask, on_false, on_true)


def lower_triangle(x: Any, diagonal: int = 0) -> Array:
    """Return each matrix with zeros above its `diagonal`-th diagonal."""
    aval = aval_of(x)
    return _select_by_mask(_lower_part(aval.shape[-2], aval.shape[-1], diagonal), x, zeros(aval), aval.shape)


def upper_triangle(x: Any, diagonal: int = 0) -> Array:
    """Return each matrix with zeros below its `diagonal`-th diagonal."""
    aval = aval_of(x)
    return _select_by_mask(_lower_part(aval.shape[-2], aval.shape[-1], diagonal - 1), zeros(aval), x, aval.shape)


def _diagonal_mask(rows: int, columns: int) -> Array:
    return eq(broadcasted_iota(np.int32, (rows, columns), 0), broadcasted_iota(np.int32, (rows, columns), 1))


def identity(dtype: DTypeLike, shape: tuple[int, ...]) -> Array:
    """Return matrices with ones on the main diagonal and zeros elsewhere."""
    one = convert_to(_diagonal_mask(*shape[-2:]), dtype)
    return broadcast_in_dim(one, shape, (len(shape) - 2, len(shape) - 1))


def diagonal(x: Any) -> Array:
    """Return the main diagonal of each square matrix."""
    aval = aval_of(x)
    return reduce_sum(_select_by_mask(_diagonal_mask(*aval.shape[-2:]), x, zeros(aval), aval.shape), (aval.ndim - 1,))


def as_row(x: ArrayLike) -> Array:
    """Return vectors along the last axis as matrices of one row."""
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (*shape[:-1], 1, shape[-1]), (*range(len(shape) - 1), len(shape)))


def as_column(x: ArrayLike) -> Array:
    """Return vectors along the last axis as matrices of one column."""
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (*shape, 1), tuple(range(len(shape))))


def _batch_leading(
    primitive: Primitive, mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: object
) -> tuple[Any, Any]:
    moved = [mapped.place(x, axis) for x, axis in zip(operands, axes, strict=True)]
    results = primitive.bind_positional(moved, tuple(parameters.values()))
    return results, [0] * len(results) if primitive.multiple_results else 0


# The batch rule of operations on batches of matrices: the mapped axis becomes a leading batch axis.
LEADING = Derived(_batch_leading)
