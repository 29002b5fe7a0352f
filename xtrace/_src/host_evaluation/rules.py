"""Rules that compute operations with NumPy, bit for bit as XLA does.

A rule is ``rule(*arrays, **parameters)`` on NumPy arrays. Moves take elements of any dtype. Exact operations take
booleans and integers. Rounded operations take floating numbers. Both libraries round correctly, but XLA contracts
products with sums and flushes subnormal numbers: so a program has at most one rounded operation, and numbers that are
not normal are declined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert, reshape, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.arrays.concatenation import concatenate, split, stack, unstack
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from xtrace._src.ops.arrays.shape import copy, rev, squeeze
from xtrace._src.ops.arrays.slicing import pad
from xtrace._src.ops.arrays.slicing import slice as slice_p
from xtrace._src.ops.elementwise import comparisons, elementwise
from xtrace._src.ops.elementwise.selection import select_n

_Values = np.ndarray[Any, Any]
_Rules = dict[Primitive, Callable[..., Any]]


class Declined(Exception):
    """NumPy's result may differ from XLA's."""


def _broadcast(x: _Values, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], **_: object) -> _Values:
    order = sorted(range(x.ndim), key=broadcast_dimensions.__getitem__)
    sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
    aligned = x.transpose(order).reshape([sizes.get(d, 1) for d in range(len(shape))])
    return np.broadcast_to(aligned, shape)


def _reshape(x: _Values, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None, **_: object) -> _Values:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _slice(
    x: _Values, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...] | None
) -> _Values:
    return x[tuple(map(slice, start_indices, limit_indices, strides or (1,) * x.ndim))]


def _iota(*, dtype: np.dtype[Any], shape: tuple[int, ...], dimension: int, **_: object) -> _Values:
    counted = np.arange(shape[dimension], dtype=dtype)
    return _broadcast(counted, shape=shape, broadcast_dimensions=(dimension,))


def _clamp_window(sizes: tuple[int, ...], shape: tuple[int, ...], starts: tuple[_Values, ...]) -> tuple[slice, ...]:
    """Return the indices of a window, with starts clamped so that it lies inside of the array."""
    first = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple([slice(start, start + size) for start, size in zip(first, sizes, strict=True)])


def _dynamic_slice(x: _Values, *starts: _Values, slice_sizes: tuple[int, ...]) -> _Values:
    return x[_clamp_window(slice_sizes, x.shape, starts)]


def _dynamic_update_slice(x: _Values, update: _Values, *starts: _Values) -> _Values:
    result = x.copy()
    result[_clamp_window(update.shape, x.shape, starts)] = update
    return result


def _pad(x: _Values, value: _Values, *, padding_config: tuple[tuple[int, int, int], ...]) -> _Values:
    if any(low < 0 or high < 0 for low, high, _ in padding_config):
        raise Declined
    sizes = [
        low + high + n + inner * max(n - 1, 0) for n, (low, high, inner) in zip(x.shape, padding_config, strict=True)
    ]
    result = np.full(sizes, value, x.dtype)
    axes = zip(x.shape, padding_config, strict=True)
    result[tuple([slice(low, low + n * (inner + 1), inner + 1) for n, (low, _, inner) in axes])] = x
    return result


def _select(which: _Values, *cases: _Values) -> _Values:
    if which.dtype != bool:
        raise Declined
    return np.where(which, cases[-1], cases[0])


def _split(x: _Values, *, sizes: tuple[int, ...], axis: int) -> list[_Values]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _unstack(x: _Values, *, axis: int) -> list[_Values]:
    return list(np.moveaxis(x, axis, 0))


def _convert(x: _Values, *, new_dtype: np.dtype[Any], **_: object) -> _Values:
    """Convert numbers; Declined from floating numbers to other kinds, and from more bits to fewer."""
    if x.dtype == new_dtype:
        return x
    kinds = x.dtype.kind + new_dtype.kind
    if kinds == "ff" and new_dtype.itemsize >= x.dtype.itemsize >= 4:
        return _require_normal(x).astype(new_dtype)
    if kinds[0] in "biu" and (kinds[1] in "biu" or (kinds[1] == "f" and new_dtype.itemsize >= 4)):
        return x.astype(new_dtype)
    raise Declined


def _shift(function: Callable[..., _Values]) -> Callable[..., _Values]:
    def shift(x: _Values, count: _Values) -> _Values:
        if count.size and not (count.min() >= 0 and count.max() < dtypes.bit_width(x.dtype)):
            raise Declined
        return function(x, count)

    return shift


def _shift_right_as(kind: str) -> Callable[[_Values, _Values], _Values]:
    """Return the right shift of integers as signed (i) or unsigned (u) integers."""

    def shift(x: _Values, count: _Values) -> _Values:
        other = np.dtype(f"{kind}{x.dtype.itemsize}")
        return np.asarray(np.right_shift(x.view(other), count.view(other))).view(x.dtype)

    return shift


def _require_normal(x: _Values) -> _Values:
    """Return floating numbers; Declined if one is NaN or subnormal."""
    magnitudes = np.abs(x)
    if not np.all((magnitudes >= np.finfo(x.dtype).tiny) | (magnitudes == 0)):
        raise Declined
    return x


def _rounded(function: Callable[..., _Values]) -> Callable[..., _Values]:
    """Return the rule of an operation on normal floating numbers; its results must be normal as well."""

    exact = _exact(function)

    def compute(*operands: _Values, **parameters: object) -> _Values:
        result = exact(*map(_require_normal, operands), **parameters)
        return _require_normal(result) if result.dtype.kind == "f" else result

    return compute


def _exact(function: Callable[..., _Values]) -> Callable[..., _Values]:
    def compute(*operands: _Values, **parameters: object) -> _Values:
        # An accuracy, or another dtype of the result.
        if any(value is not None for value in parameters.values()):
            raise Declined
        return function(*operands)

    return compute


# The conversion declines pairs of dtypes that may round.
MOVES: _Rules = {
    convert: _convert,
    broadcast_in_dim: _broadcast, reshape: _reshape, transpose: lambda x, *, permutation: x.transpose(permutation),
    squeeze: lambda x, *, dimensions: np.squeeze(x, dimensions), copy: lambda x: x,
    rev: lambda x, *, dimensions: np.flip(x, dimensions), slice_p: _slice, select_n: _select, pad: _pad,
    concatenate: lambda *xs, dimension: np.concatenate(xs, dimension), stack: lambda *xs, axis: np.stack(xs, axis),
    unstack: _unstack, split: _split, dynamic_slice: _dynamic_slice, dynamic_update_slice: _dynamic_update_slice,
}

_COMPARISONS: _Rules = {
    comparisons.eq: np.equal, comparisons.ne: np.not_equal, comparisons.lt: np.less, comparisons.le: np.less_equal,
    comparisons.gt: np.greater, comparisons.ge: np.greater_equal,
}

_INTEGER_FUNCTIONS: _Rules = {
    elementwise.add: np.add, elementwise.sub: np.subtract, elementwise.mul: np.multiply,
    elementwise.neg: np.negative, elementwise.abs: np.abs, elementwise.sign: np.sign,
    elementwise.max: np.maximum, elementwise.min: np.minimum,
    comparisons.bitwise_and: np.bitwise_and, comparisons.bitwise_or: np.bitwise_or,
    comparisons.bitwise_xor: np.bitwise_xor, comparisons.bitwise_not: np.invert, **_COMPARISONS,
}

_FLOATING_FUNCTIONS: _Rules = {
    elementwise.add: np.add, elementwise.sub: np.subtract, elementwise.mul: np.multiply,
    elementwise.div: np.divide, elementwise.neg: np.negative, elementwise.abs: np.abs,
    elementwise.sqrt: np.sqrt, elementwise.floor: np.floor, elementwise.ceil: np.ceil, **_COMPARISONS,
}

EXACT: _Rules = {
    broadcasted_iota: _iota, comparisons.shift_left: _shift(np.left_shift),
    comparisons.shift_right_logical: _shift(_shift_right_as("u")),
    comparisons.shift_right_arithmetic: _shift(_shift_right_as("i")),
    **{primitive: _exact(function) for primitive, function in _INTEGER_FUNCTIONS.items()},
}

ROUNDED: _Rules = {primitive: _rounded(function) for primitive, function in _FLOATING_FUNCTIONS.items()}
