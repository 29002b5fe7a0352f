"""Products of matrices and vectors, with the argument names of the array API standard."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import cast, common_dtype
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.linalg.matrices import identity
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.linalg.solutions import inv
from xtrace.numpy.manipulation import rearrangement, shapes
from xtrace.numpy.products import contraction
from xtrace.numpy.products.contraction import dot

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return cross products of vectors of 3 elements.

    Args:
        x1, x2: arrays whose other axes broadcast.
        axis: the axis of the vectors.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the vectors have another length, or the other axes do not broadcast.

    Example:
        >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    sizes = [_get_length(x, axis, i) for i, x in enumerate((x1, x2))]
    if sizes != [3, 3]:
        raise ValueError(
            "cross: both arrays must hold 3-dimensional vectors, but their lengths along axis "
            f"{axis} are {sizes[0]} and {sizes[1]}; xtrace.numpy.cross takes vectors of 2 elements too"
        )
    return contraction.cross(x1, x2, axis=axis)


def _get_length(x: ArrayLike, axis: int, position: int) -> int:
    aval = operand_aval(x, position)
    return int(aval.shape[canonical_axis(axis, aval.ndim)])


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of every element of a vector with every element of another.

    Args:
        x1, x2: vectors.

    Returns:
        A matrix of the promoted dtype, with a row for each element of `x1`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an operand is not a vector.

    Example:
        >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    ranks = [operand_aval(x, i).ndim for i, x in enumerate((x1, x2))]
    if ranks != [1, 1]:
        raise ValueError(
            f"outer: arrays must be one-dimensional, but they have the ranks {ranks[0]} and {ranks[1]}; "
            "xtrace.numpy.outer flattens them"
        )
    return contraction.outer(x1, x2)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Return the matrix product, as `xtrace.numpy.matmul` does.

    Args:
        x1, x2: arrays of at least one axis; the last two are matrices, the axes before broadcast.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.

    Returns:
        An array of the leading axes, the rows of `x1` and the columns of `x2`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is not an array.
        ValueError: an operand is a scalar, or leading axes do not broadcast.

    Example:
        >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [10]]))
        Array([[21],
               [43]], dtype=int32)
    """
    return contraction.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Return the sums of conjugated `x1` times `x2` along an axis of both.

    Args:
        x1, x2: arrays whose other axes broadcast.
        axis: the axis to sum over.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.

    Returns:
        An array of the other axes.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the lengths along `axis` differ, an operand is a scalar, or the other axes do not broadcast.

    Example:
        >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4]))
        Array(11, dtype=int32)
    """
    return contraction.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return the sums of products over pairs of axes, as `xtrace.numpy.tensordot` does.

    Args:
        x1, x2: arrays.
        axes: the number of last axes of `x1` and first axes of `x2` that are summed, or a pair of axes, or of
            sequences of axes.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the remaining axes of `x1`, then of `x2`.

    Raises:
        TypeError: the summed axes have different lengths, or an operand is not an array.

    Example:
        >>> jnp.linalg.tensordot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]), axes=1)
        Array([21, 43], dtype=int32)
    """
    return contraction.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return matrices with rows and columns exchanged.

    Args:
        x: an array of matrices, of shape (..., m, n).

    Returns:
        An array of the dtype of `x`.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return shapes.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices.

    Args:
        x: an array of matrices, of shape (..., m, n).
        offset: the diagonal, above the main one if positive.

    Returns:
        An array of the leading axes, and the diagonals along the last one.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    return rearrangement.diagonal(x, offset, axis1=-2, axis2=-1)


@inline_jit(static=("offset", "dtype"), public=True)
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return the sums of the diagonals of matrices.

    Args:
        x: an array of matrices, of shape (..., m, n).
        offset: the diagonal, above the main one if positive.
        dtype: the dtype of the sums and the result; None for the dtype of `x`, for narrower
            integers the default one.

    Returns:
        An array of the leading axes.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` has fewer than two axes.

    Example:
        >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    return contraction.trace(x, offset, axis1=-2, axis2=-1, dtype=dtype)


@inline_jit(static=("n",), public=True)
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return a power of square matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n).
        n: the exponent, a Python integer; a negative one raises the inverse to -n.

    Returns:
        An array of the shape of `a`.

    Raises:
        TypeError: `n` is not an integer, or the matrices are not square.

    Example:
        >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
        Array([[1, 3],
               [0, 1]], dtype=int32)

    Reference:
        N. J. Higham, Functions of Matrices (2008), section 4.1: repeated squaring.
    """
    aval = operand_aval(a, 0)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise TypeError(f"matrix_power: the last two axes of the array must be square, got shape {aval.shape}")
    a, n = to_array_operand(a), to_integer("n", n)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return identity(aval.dtype, aval.shape)
    if n == 3:
        return contraction.matmul(contraction.matmul(a, a), a)
    while n % 2 == 0:
        a, n = contraction.matmul(a, a), n // 2
    power, n = a, n // 2
    while n:
        a = contraction.matmul(a, a)
        power = contraction.matmul(power, a) if n % 2 else power
        n //= 2
    return power


def _find_best_splits(sizes: Sequence[int]) -> list[list[int]]:
    """Return the split of each range of matrices that needs the fewest multiplications.

    Matrix i has `sizes[i]` rows and `sizes[i + 1]` columns (Cormen et al., Introduction to Algorithms, section 15.2).
    """
    count = len(sizes) - 1
    costs = [[0] * count for _ in range(count)]
    splits = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            options = [
                costs[start][middle] + costs[middle + 1][stop] + sizes[start] * sizes[middle + 1] * sizes[stop + 1]
                for middle in range(start, stop)
            ]
            costs[start][stop] = min(options)
            splits[start][stop] = start + options.index(costs[start][stop])
    return splits


@inline_jit
def _multi_dot(*arrays: ArrayLike, splits: tuple[tuple[int, ...], ...], precision: object) -> Array:
    avals, dtype, weak = common_dtype(arrays)
    operands: list[Array] = [cast(x, aval, dtype, weak) for x, aval in zip(arrays, avals, strict=True)]

    def multiply_range(start: int, stop: int) -> Array:
        if start == stop:
            return operands[start]
        middle = splits[start][stop]
        return dot(multiply_range(start, middle), multiply_range(middle + 1, stop), precision=precision)

    return multiply_range(0, len(operands) - 1)


def _check_chain(avals: Sequence[ShapedArray]) -> None:
    shapes = [aval.shape for aval in avals]
    ranks = {len(shape) for shape in shapes[1:-1]}
    if not ranks <= {2} or not {len(shapes[0]), len(shapes[-1])} <= {1, 2}:
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be 1 "
            f"or 2 dimensional. Got array shapes {shapes}"
        )
    if any(left[-1] != right[0] for left, right in itertools.pairwise(shapes)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. Got array shapes "
            f"{shapes}"
        )


def multi_dot(arrays: Sequence[ArrayLike], *, precision: object = None) -> Array:
    """Return the product of several matrices, in the order of the fewest multiplications.

    Args:
        arrays: a sequence of at least two matrices; the first and the last may be vectors.
        precision: a `lax.Precision` or its name; None for the default.

    Returns:
        A matrix, a vector or a scalar.

    Raises:
        TypeError: an operand is not an array.
        ValueError: there are fewer than two operands, an operand has another rank, or lengths differ.

    Example:
        >>> jnp.linalg.multi_dot([jnp.array([[1, 2]]), jnp.array([[3], [4]]), jnp.array([2])])
        Array([22], dtype=int32)

    Reference:
        T. H. Cormen et al., Introduction to Algorithms, 3rd ed. (2009), section 15.2.
    """
    operands = tuple(arrays)
    avals = [operand_aval(x, i) for i, x in enumerate(operands)]
    if len(avals) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(avals)}")
    _check_chain(avals)
    rows = 1 if avals[0].ndim == 1 else avals[0].shape[0]
    columns = 1 if avals[-1].ndim == 1 else avals[-1].shape[1]
    sizes = [rows, *[aval.shape[0] for aval in avals[1:]], columns]
    splits = tuple([tuple(row) for row in _find_best_splits(sizes)])
    return _multi_dot(*operands, splits=splits, precision=precision)
