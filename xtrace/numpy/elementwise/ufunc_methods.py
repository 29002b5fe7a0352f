"""Methods of NumPy's ufuncs with an operation of their own: `add` reduces by `sum`, accumulates by `cumsum`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import truth
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.dtypes import DType
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_or, bitwise_xor, eq
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.reductions import cumulative as scans
from xtrace._src.ops.reductions import reductions as operations
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.operands import axes_of, scalar_of, select_or_fill
from xtrace.numpy.reductions import cumulative, reductions
from xtrace.numpy.reductions.axes import keep_axes

_Method = Callable[..., Array]


def _make_at(update: str, update_booleans: str = "") -> _Method:
    """Return the method that scatters by ``x.at[indices].update(b)``, booleans by `update_booleans`."""

    def at(a: Any, indices: Any, b: Any) -> Any:
        if update_booleans and dtypes.is_boolean(a.dtype):
            return getattr(a.at[indices], update_booleans)(convert_to(b, dtypes.bool_, False))
        return getattr(a.at[indices], update)(b)

    return at


def _make_extremum_at(update: str) -> _Method:
    """Return the method of `maximum` or `minimum`: NotImplemented unless the common dtype is the dtype of `a`."""
    scatter = _make_at(update)

    def at(a: Any, indices: Any, b: Any) -> Any:
        if common_dtype((a, b), function=update)[1] != a.dtype:
            return NotImplemented
        return convert_to(scatter(a, indices, b), a.dtype, False)

    return at


def _make_accumulation(running: Callable[..., Array]) -> _Method:
    """Return the method that accumulates by the operation `running` along one axis."""

    def accumulate(a: ArrayLike, *, axis: int | None, dtype: DType) -> Any:
        a = to_array_operand(a)
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"accumulate does not allow multiple axes, got axis={axis}")
        wanted = requested_dtype(dtype) or a.dtype
        if dtypes.is_boolean(wanted):
            return NotImplemented
        return running(convert_to(a, wanted, False), canonical_axis(axis, a.ndim))

    return accumulate


def _make_extremum_reduction(reduction: Callable[..., Array]) -> _Method:
    def reduce(
        a: ArrayLike, *, axis: int | None, dtype: DType, keepdims: bool, initial: Array, where: ArrayLike | None
    ) -> Array:
        wanted = requested_dtype(dtype)
        if wanted is not None:
            a = convert_to(to_array_operand(a), wanted, False)
        return reduction(a, axis, keepdims=keepdims, initial=initial, where=where)

    return reduce


def _make_reduction(name: str, operation: Any, join: Any, identity: int, *, logical: bool = False) -> _Method:
    """Return the method that reduces by `operation`; `logical`: on booleans."""

    @inline_jit
    def combine(a: Any, mask: Any, initial: Any, *, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Array:
        a = truth(a) if logical else convert_to(a, a.dtype if dtype is None else dtype, False)
        neutral = bool(identity) if dtypes.is_boolean(a.dtype) else identity
        if mask is not None:
            a = select_or_fill(mask, a, neutral if neutral != -1 else _set_all_bits(a.dtype))
        reduced = operation(a, axes)
        if initial is not None:
            reduced = join(reduced, truth(initial) if logical else convert_to(initial, a.dtype, False))
        return keep_axes(reduced, axes, a.shape) if keepdims else reduced

    return _make_method(name, combine)


def _make_method(name: str, combine: Callable[..., Array]) -> _Method:
    """Return the method `reduce` of a ufunc, which calls ``combine(a, mask, initial)``."""

    def reduce(
        a: ArrayLike, *, axis: int, dtype: DType, keepdims: bool, initial: Array, where: ArrayLike | None
    ) -> Array:
        a = to_array_operand(a, function=name)
        mask, start = [None if x is None else asarray(x) for x in (where, initial)]
        return combine(
            a, mask, start, axes=axes_of(axis, a.ndim, function=f"{name}.reduce"), keepdims=keepdims,
            dtype=requested_dtype(dtype, function=f"{name}.reduce"),
        )

    return reduce


def _set_all_bits(dtype: np.dtype[Any]) -> int:
    return -1 if dtypes.is_signed(dtype) else int(dtypes.iinfo(dtype).max)


def _make_log_sum_exp(name: str, base: float) -> _Method:
    """Return the reduction of logaddexp to a base: the largest element is subtracted before the powers are summed."""
    scale = math.log(base)

    @inline_jit
    def combine(a: Array, mask: Any, initial: Any, *, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Array:
        dtype = as_inexact(dtype or a.dtype, False)[0]
        a = convert_to(a, dtype, False)
        if mask is not None:
            a = select_or_fill(mask, a, -math.inf)
        largest = stop_gradient(operations.reduce_max(a, axes))
        if initial is not None:
            start = broadcast_in_dim(convert_to(initial, dtype, False), largest.shape, ())
            largest = elementwise.max(largest, stop_gradient(start))
        infinite = eq(elementwise.abs(largest), scalar_of(math.inf, dtype))
        zero = broadcast_in_dim(scalar_of(0, dtype), largest.shape, ())
        shift = select_n(infinite, largest, zero)

        def power(x: ArrayLike, by: ArrayLike) -> Array:
            difference = elementwise.sub(x, by)
            if base != math.e:
                difference = elementwise.mul(difference, scalar_of(scale, dtype))
            return elementwise.exp(difference)

        total = operations.add_elements(power(a, _broadcast_axes(shift, a.shape, axes)), axes)
        if initial is not None:
            total = elementwise.add(total, power(start, shift))
        logarithm = elementwise.log(total)
        if base != math.e:
            logarithm = elementwise.div(logarithm, scalar_of(scale, dtype))
        logarithm = elementwise.add(logarithm, shift)
        return keep_axes(logarithm, axes, a.shape) if keepdims else logarithm

    return _make_method(name, combine)


def _broadcast_axes(x: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    return broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i not in axes])


METHODS: dict[str, dict[str, Any]] = {
    "add": {"identity": 0, "reduce": reductions.sum, "accumulate": cumulative.cumsum, "at": _make_at("add", "max")},
    "multiply": {
        "identity": 1, "reduce": reductions.prod, "accumulate": cumulative.cumprod, "at": _make_at("multiply", "min")
    },
    "subtract": {"at": _make_at("subtract")},
    "negative": {},
    "maximum": {
        "reduce": _make_extremum_reduction(reductions.max), "accumulate": _make_accumulation(scans.cummax),
        "at": _make_extremum_at("max"),
    },
    "minimum": {
        "reduce": _make_extremum_reduction(reductions.min), "accumulate": _make_accumulation(scans.cummin),
        "at": _make_extremum_at("min"),
    },
    "logaddexp": {"identity": -math.inf, "reduce": _make_log_sum_exp("logaddexp", math.e)},
    "logaddexp2": {"identity": -math.inf, "reduce": _make_log_sum_exp("logaddexp2", 2.0)},
    "bitwise_and": {
        "identity": -1, "reduce": _make_reduction("bitwise_and", operations.reduce_and, bitwise_and, -1)
    },
    "bitwise_or": {"identity": 0, "reduce": _make_reduction("bitwise_or", operations.reduce_or, bitwise_or, 0)},
    "bitwise_xor": {"identity": 0, "reduce": _make_reduction("bitwise_xor", operations.reduce_xor, bitwise_xor, 0)},
    "logical_and": {
        "identity": True,
        "reduce": _make_reduction("logical_and", operations.reduce_and, bitwise_and, 1, logical=True),
    },
    "logical_or": {
        "identity": False,
        "reduce": _make_reduction("logical_or", operations.reduce_or, bitwise_or, 0, logical=True),
    },
    "logical_xor": {
        "identity": False,
        "reduce": _make_reduction("logical_xor", operations.reduce_xor, bitwise_xor, 0, logical=True),
    },
}
