"""Products of matrices and vectors, with the argument names of the array API standard."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.promotion import cast, common_dtype
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.ops.linalg.matrices import identity
from xtrace.numpy import contraction, manipulation
from xtrace.numpy.contraction import dot
from xtrace.numpy.linalg.solutions import inv
from xtrace.numpy.operands import type_of

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace",
    "vecdot",
]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the cross product of vectors of 3 elements along `axis`. ValueError for other lengths."""
    sizes = [_length(x, axis, i) for i, x in enumerate((x1, x2))]
    if sizes != [3, 3]:
        raise ValueError(
            "cross: both arrays must hold 3-dimensional vectors, but their lengths along axis "
            f"{axis} are {sizes[0]} and {sizes[1]}; xtrace.numpy.cross takes vectors of 2 elements too"
        )
    return contraction.cross(x1, x2, axis=axis)


def _length(x: Any, axis: int, position: int) -> int:
    aval = type_of("cross", x, position)
    return int(aval.shape[canonical_axis("cross", axis, aval.ndim)])


def outer(x1: Any, x2: Any, /) -> Any:
    """Return the product of every element of a vector with every element of another. ValueError for other ranks."""
    ranks = [type_of("outer", x, i).ndim for i, x in enumerate((x1, x2))]
    if ranks != [1, 1]:
        raise ValueError(
            f"outer: arrays must be one-dimensional, but they have the ranks {ranks[0]} and {ranks[1]}; "
            "xtrace.numpy.outer flattens them"
        )
    return contraction.outer(x1, x2)


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the matrix product, as `xtrace.numpy.matmul` does."""
    return contraction.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the sum of conjugated `x1` times `x2` over `axis`, as `xtrace.numpy.vecdot` does."""
    return contraction.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any, x2: Any, /, *, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Return the sum over `axes` of both, as `xtrace.numpy.tensordot` does."""
    return contraction.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def matrix_transpose(x: Any, /) -> Any:
    """Return `x` with its last two axes exchanged. ValueError if it has fewer."""
    return manipulation.matrix_transpose(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return the diagonal `offset` of the matrices in the last two axes. ValueError for fewer axes."""
    return manipulation.diagonal(x, offset, axis1=-2, axis2=-1)


@inline_jit(static=("offset", "dtype"), public=True)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sum of the diagonal `offset` of the matrices in the last two axes. ValueError for fewer axes."""
    return contraction.trace(x, offset, axis1=-2, axis2=-1, dtype=dtype)


@inline_jit
def _matrix_power(a: Any, *, n: int) -> Any:
    if n < 0:
        a, n = inv(a), -n
    aval = aval_of(a)
    if n == 0:
        return identity(aval.dtype, aval.shape)
    if n == 3:
        return contraction.matmul(contraction.matmul(a, a), a)
    found = None
    while True:
        if n % 2:
            found = a if found is None else contraction.matmul(found, a)
        n //= 2
        if not n:
            return found
        a = contraction.matmul(a, a)


@inline_jit(static=("n",), public=True)
def matrix_power(a: Any, n: int) -> Any:
    """Return square matrices multiplied `n` times, by repeated squaring; inverted if `n` is negative.

    TypeError unless `n` is a Python integer and the matrices are square.
    """
    aval = type_of("matrix_power", a)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise TypeError(f"matrix_power: the last two axes of the array must be square, got shape {aval.shape}")
    try:
        count = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: the exponent must be an integer, got {abbreviated(n)}") from None
    return _matrix_power(a, n=count)


def _best_order(sizes: Sequence[int]) -> list[list[int]]:
    """Return for each range of matrices where to split it, for the fewest multiplications.

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
def _multi_dot(*arrays: Any, splits: tuple[tuple[int, ...], ...], precision: Any) -> Any:
    avals, dtype, weak = common_dtype("multi_dot", arrays)
    operands = [cast(x, aval, dtype, weak) for x, aval in zip(arrays, avals, strict=True)]

    def multiplied(start: int, stop: int) -> Any:
        if start == stop:
            return operands[start]
        middle = splits[start][stop]
        return dot(multiplied(start, middle), multiplied(middle + 1, stop), precision=precision)

    return multiplied(0, len(operands) - 1)


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


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """Return the product of several matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. ValueError for fewer than two arrays, other ranks and lengths that differ.
    """
    operands = tuple(arrays)
    avals = [type_of("multi_dot", x, i) for i, x in enumerate(operands)]
    if len(avals) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(avals)}")
    _check_chain(avals)
    rows = 1 if avals[0].ndim == 1 else avals[0].shape[0]
    columns = 1 if avals[-1].ndim == 1 else avals[-1].shape[1]
    sizes = [rows, *[aval.shape[0] for aval in avals[1:]], columns]
    splits = tuple([tuple(row) for row in _best_order(sizes)])
    return _multi_dot(*operands, splits=splits, precision=precision)
