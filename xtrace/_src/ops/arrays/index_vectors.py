"""Modes, dimension numbers and checks of index vectors, shared by `gather` and `scatter`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


class GatherScatterMode(enum.Enum):
    """The treatment of windows that do not lie inside of the operand.

    ``CLIP`` moves them inside. ``FILL_OR_DROP`` reads a fill value and writes nothing. ``PROMISE_IN_BOUNDS`` promises
    that there are none; otherwise the result is unspecified. `gather` and `scatter` refuse ``ONE_HOT``.

    Example:
        >>> lax.GatherScatterMode.from_any("clip")
        <GatherScatterMode.CLIP: 1>
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(value: object) -> GatherScatterMode:
        """Return the mode of a mode, a name ('clip', 'fill', 'drop', 'promise_in_bounds') or None."""
        if isinstance(value, GatherScatterMode):
            return value
        mode = _mode_names.get(value) if value is None or isinstance(value, str) else None
        if mode is None:
            raise ValueError(
                f"unknown gather/scatter mode {abbreviate(value)}; the modes are 'clip', 'fill', 'drop', "
                "'promise_in_bounds', 'one_hot', a GatherScatterMode or None"
            )
        return mode


_mode_names: dict[Any, GatherScatterMode] = {
    "clip": GatherScatterMode.CLIP, "fill": GatherScatterMode.FILL_OR_DROP, "drop": GatherScatterMode.FILL_OR_DROP,
    None: GatherScatterMode.FILL_OR_DROP, "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """The axes of a `gather`, as in StableHLO's gather.

    Args:
        offset_dims: the window axes of the result.
        collapsed_slice_dims: the operand's axes of window size 1 that the result lacks.
        start_index_map: for each entry of an index vector, the axis of the operand that it indexes.
        operand_batching_dims, start_indices_batching_dims: paired batch axes of the operand and of the indices.

    Example:
        >>> lax.GatherDimensionNumbers((1,), (0,), (0,)).offset_dims
        (1,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    # Paired batch axes of the operand and of the indices.
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The axes of a `scatter`, as in StableHLO's scatter.

    Args:
        update_window_dims: the window axes of the updates.
        inserted_window_dims: the operand's axes that the window lacks.
        scatter_dims_to_operand_dims: for each entry of an index vector, the axis of the operand that it indexes.
        operand_batching_dims, scatter_indices_batching_dims: paired batch axes of the operand and of the indices.

    Example:
        >>> lax.ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
        (0,)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def canonical_mode(mode: object, default: GatherScatterMode, *, function: str = "") -> GatherScatterMode:
    """Return `mode` as a GatherScatterMode, `default` for None; ValueError for one_hot."""
    canonical = default if mode is None else GatherScatterMode.from_any(mode)
    if canonical is GatherScatterMode.ONE_HOT:
        raise ValueError(
            f"{function or called_function()}: the mode one_hot is not supported; use 'clip', 'fill' or "
            "'promise_in_bounds'"
        )
    return canonical


_Numbers = TypeVar("_Numbers", GatherDimensionNumbers, ScatterDimensionNumbers)


def canonical_numbers(kind: type[_Numbers], numbers: Any, *, function: str = "") -> _Numbers:
    """Return dimension numbers of the class `kind` as tuples of ints; TypeError for another class or no integers."""
    if not isinstance(numbers, kind):
        raise TypeError(
            f"{function or called_function()}: dimension_numbers must be a lax.{kind.__name__}, got "
            f"{abbreviate(numbers)}"
        )
    fields = kind._fields
    return kind(*[integer_tuple(f"dimension_numbers.{f}", getattr(numbers, f), function=function) for f in fields])


def check_axes(
    field: str, axes: Sequence[int], ndim: int, of: str, *, ordered: bool = True, function: str = ""
) -> None:
    """Raise TypeError unless `axes` are distinct, in bounds and (if `ordered`) increasing."""
    if len(set(axes)) != len(axes) or (ordered and list(axes) != sorted(axes)):
        kind = "distinct and in increasing order" if ordered else "distinct"
        raise TypeError(f"{function or called_function()}: {field} must be {kind}, got {tuple(axes)}")
    if any(not 0 <= a < ndim for a in axes):
        raise TypeError(
            f"{function or called_function()}: {field} must be axes of {of}, 0 to {ndim - 1}; got {tuple(axes)}"
        )


def check_indices(
    operand: ShapedArray, indices: ShapedArray, mapped: tuple[int, ...], mapped_field: str,
    operand_batch: tuple[int, ...], indices_batch: tuple[int, ...], indices_batch_field: str, *, function: str = "",
) -> None:
    """Raise TypeError or ValueError unless the indices fit the operand and the dimension numbers."""
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(
            f"{function or called_function()}: indices must be integers, got dtype {indices.dtype.name}; convert "
            "them with astype"
        )
    if indices.ndim < 1:
        raise TypeError(
            f"{function or called_function()}: indices must have a last axis that holds index vectors, got a scalar"
        )
    if len(mapped) != indices.shape[-1]:
        raise TypeError(
            f"{function or called_function()}: {mapped_field} must have one operand axis for each entry of an index "
            f"vector; got {mapped} for indices of shape {indices.shape}, whose last axis has size {indices.shape[-1]}"
        )
    check_axes(mapped_field, mapped, operand.ndim, "the operand", ordered=False, function=function)
    check_axes("operand_batching_dims", operand_batch, operand.ndim, "the operand", function=function)
    check_axes(
        indices_batch_field, indices_batch, indices.ndim - 1, "the index vectors", ordered=False, function=function
    )
    if set(mapped) & set(operand_batch):
        raise TypeError(
            f"{function or called_function()}: operand_batching_dims {operand_batch} and {mapped_field} {mapped} "
            "share an axis"
        )
    sizes = [operand.shape[i] for i in operand_batch], [indices.shape[i] for i in indices_batch]
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"{function or called_function()}: batching axes must have the same sizes, got {sizes[0]} for operand "
            f"axes {operand_batch} and {sizes[1]} for indices axes {indices_batch}"
        )


def check_slice_sizes(name: str, sizes: Sequence[int], operand: ShapedArray) -> None:
    """Raise TypeError unless `sizes` are the sizes of a slice of the operand."""
    if len(sizes) != operand.ndim or any(not 0 <= n <= size for n, size in zip(sizes, operand.shape, strict=True)):
        raise TypeError(
            f"{name}: slice_sizes must have one entry for each axis of the operand, from 0 to its size; got "
            f"{sizes} for an operand of shape {operand.shape}"
        )


def default_fill_value(dtype: Any) -> Any:
    """Return the default of `gather` out of bounds: NaN, the smallest signed or largest unsigned integer, or True."""
    if dtypes.is_boolean(dtype):
        return True
    if dtypes.is_inexact(dtype):
        return np.nan
    stored = dtype.physical if isinstance(dtype, dtypes.ExtendedDType) else dtype
    bounds = dtypes.iinfo(stored)
    return int(bounds.min if dtypes.is_signed(stored) else bounds.max)


def widen(builder: FunctionBuilder, indices: Value) -> Value:
    """Return indices in a dtype of at least 32 bits, which can hold the bounds."""
    if dtypes.bit_width(indices.aval.dtype) >= 32:
        return indices
    return builder.convert(indices, dtypes.int32)


def write_last_indices(
    builder: FunctionBuilder, indices: Value, shape: Sequence[int], window: Sequence[int], mapped: Sequence[int]
) -> Value:
    """Write the largest index vector with a window in bounds, broadcast to the shape of `indices`."""
    dtype = indices.aval.dtype
    limits = [shape[a] - window[a] for a in mapped]
    if has_symbolic(limits):
        bounds = builder.convert(builder.sizes_vector(limits), dtype)
    else:
        limits = [min(n, int(dtypes.iinfo(dtype).max)) for n in limits]
        bounds = builder.constant(np.array(limits, dtype), ShapedArray((len(mapped),), dtype))
    return builder.broadcast(bounds, indices.aval.shape, [indices.aval.ndim - 1])


def attribute_text(name: str, **fields: Any) -> str:
    """Return the dimension numbers as an attribute; empty fields are omitted, as in MLIR."""
    texts = [
        f"{key} = {value if isinstance(value, int) else attributes.list_text(value)}"
        for key, value in fields.items()
        if value != ()
    ]
    return f"#stablehlo.{name}<{', '.join(texts)}>"


def window_sizes(shape: Sequence[int], updates: ShapedArray, numbers: ScatterDimensionNumbers) -> list[int]:
    """Return the sizes of a scatter's windows, one for each axis of the operand."""
    sizes = iter([updates.shape[d] for d in numbers.update_window_dims])
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    return [1 if i in gone else next(sizes) for i in range(len(shape))]
