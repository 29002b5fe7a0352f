"""Reads (`gather`) and writes (`scatter`) of windows of an array at indices that may be traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import add_any
from xtrace._src.algebra.kinds import ANY, EXTENDED, NUMBER, check_kind, check_same_dtype, kind_names
from xtrace._src.algebra.monoids import AND, MAXIMUM, MINIMUM, PRODUCT, SUM, Monoid, write_reduction
from xtrace._src.algebra.vector_space import (
    LINEAR,
    broadcast_in_dim,
    move_axis,
    operand_aval,
    reshape,
    shift_past,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import Jaxpr, scalar_literal
from xtrace._src.core.primitive import ArrayPrimitive, Derived, Primitive, primitive
from xtrace._src.core.shardings.sharding_rules import gather as gather_rule
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.sum_rules import linear_in, nonlinear
from xtrace._src.core.tangents import UndefinedPrimal, unreduced_aval
from xtrace._src.core.trace import current_trace
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.index_vectors import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    attribute_text,
    canonical_mode,
    canonical_numbers,
    check_axes,
    check_indices,
    check_slice_sizes,
    default_fill_value,
    widen,
    window_sizes,
    write_last_indices,
)
from xtrace._src.ops.arrays.shape import shift_over
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.stablehlo import symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.element_functions import emit_element_function


def _gather_abstract(
    operand: ShapedArray, indices: ShapedArray, *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...], **_: object,
) -> ShapedArray:
    numbers = dimension_numbers
    collapsed, batch = numbers.collapsed_slice_dims, numbers.operand_batching_dims
    check_indices(
        operand, indices, numbers.start_index_map, "start_index_map", batch,
        numbers.start_indices_batching_dims, "start_indices_batching_dims", function="gather",
    )
    check_axes("collapsed_slice_dims", collapsed, operand.ndim, "the operand", function="gather")
    if set(collapsed) & set(batch):
        raise TypeError(f"gather: collapsed_slice_dims {collapsed} and operand_batching_dims {batch} share an axis")
    check_slice_sizes("gather", slice_sizes, operand)
    gone = (*collapsed, *batch)
    if any(slice_sizes[i] > 1 for i in gone):
        raise TypeError(f"gather: slice_sizes must be 1 on collapsed and batching axes {gone}, got {slice_sizes}")
    window = [n for i, n in enumerate(slice_sizes) if i not in gone]
    ndim = len(numbers.offset_dims) + indices.ndim - 1
    check_axes("offset_dims", numbers.offset_dims, ndim, "the result", function="gather")
    if len(window) != len(numbers.offset_dims):
        raise TypeError(
            f"gather: offset_dims must have one axis for each operand axis that is neither collapsed nor batching, "
            f"{len(window)}; got {numbers.offset_dims}"
        )
    outer, inner = iter(indices.shape[:-1]), iter(window)
    shape = tuple([next(inner) if i in numbers.offset_dims else next(outer) for i in range(ndim)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _gather_sums(name: str, operands: Any, requested: Any, *, mode: object, fill_value: Any, **_: object) -> Any:
    # Each device would add the fill value; only zero and NaN are equal to the sum of several copies.
    fills = mode is GatherScatterMode.FILL_OR_DROP and fill_value is not None
    keeps_terms = not fills or fill_value == 0 or fill_value != fill_value
    return (linear_in(0) if keeps_terms else nonlinear)(name, operands, requested)


def _gather_emit(
    builder: FunctionBuilder, operand: Value, indices: Value, *, dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...], indices_are_sorted: bool, mode: GatherScatterMode, fill_value: Array, **_: object,
) -> Value:
    result, numbers = builder.results[0], dimension_numbers
    if result.size == 0:
        return builder.broadcast(builder.literal(0, result.update(shape=())), result.shape)
    if 0 in operand.aval.shape:
        # Every window of an empty operand is out of bounds.
        value = 0 if fill_value is None else fill_value
        return builder.broadcast(builder.literal(value, result.update(shape=())), result.shape)
    indices = widen(builder, indices)
    attribute = attribute_text(
        "gather", offset_dims=numbers.offset_dims, collapsed_slice_dims=numbers.collapsed_slice_dims,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=numbers.start_indices_batching_dims, start_index_map=numbers.start_index_map,
        index_vector_dim=indices.aval.ndim - 1,
    )
    windows = symbolic_sizes.write_gather(
        builder, operand, indices, slice_sizes, dimension_numbers=attribute,
        indices_are_sorted="true" if indices_are_sorted else "false",
    )
    if mode is not GatherScatterMode.FILL_OR_DROP or not numbers.start_index_map:
        return windows
    kind, truth = indices.aval, indices.aval.update(dtype=dtypes.bool_)
    windows = builder.keep_terms(windows, result)
    last = write_last_indices(builder, indices, operand.aval.shape, slice_sizes, numbers.start_index_map)
    inside = builder.compare("LE", indices, last)
    if dtypes.is_signed(kind.dtype):
        above = builder.compare("GE", indices, builder.constant(0, kind))
        inside = builder.elementwise("and", above, inside)
    inside = write_reduction(builder, AND, inside, [kind.ndim - 1], truth.update(shape=kind.shape[:-1]))
    outer = [i for i in range(result.ndim) if i not in numbers.offset_dims]
    inside = builder.broadcast(inside, result.shape, outer)
    return builder.select(inside, windows, builder.constant(fill_value, result))


def _gather_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, mode: GatherScatterMode, fill_value: Array, **others: object
) -> tuple[Any, Any]:
    # The fill value does not depend on the operand.
    outside = 0 if mode is GatherScatterMode.FILL_OR_DROP else None
    result = gather.bind(*primals, mode=mode, fill_value=fill_value, **others)
    return result, gather.bind(tangents[0], primals[1], mode=mode, fill_value=outside, **others)


def _gather_transpose(
    cotangent: Array, operand: Array, indices: Array, *, dimension_numbers: GatherDimensionNumbers,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, **_: object,
) -> list[Any]:
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    parameters = (numbers, indices_are_sorted, unique_indices, mode, None, ())
    empty = zeros(operand.aval.update(weak_type=False))
    return [scatter_add.bind_positional((empty, indices, cotangent), parameters), None]


def _gather_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *,
    dimension_numbers: GatherDimensionNumbers, slice_sizes: tuple[int, ...], indices_are_sorted: bool,
    unique_indices: bool, mode: GatherScatterMode, fill_value: Array,
) -> tuple[Any, int]:
    (operand, indices), (own, where) = operands, axes
    offset, collapsed, positioned, batch, indices_batch = dimension_numbers
    place = 0
    if own is None:
        assert where is not None
        indices_are_sorted = unique_indices = False
    else:
        collapsed, positioned, batch = [shift_past(own, d) for d in (collapsed, positioned, batch)]
        # With unmapped indices the mapped axis is a window axis of the operand, with mapped ones a batching axis.
        slice_sizes = shift_over(own, slice_sizes, mapped.size if where is None else min(1, mapped.size))
    if where is not None:
        indices = move_axis(indices, where, 0)
        offset, indices_batch = shift_past(0, offset), shift_past(0, indices_batch)
        if own is not None:
            batch, indices_batch = _add_batching_axis(own, batch, indices_batch)
    else:
        assert own is not None
        before = sum(i < own and i not in collapsed and i not in batch for i in range(own))
        place = offset[before] if before < len(offset) else offset[-1] + 1 if offset else 0
        offset = shift_over(before, shift_past(place, offset), place)
    numbers = GatherDimensionNumbers(offset, collapsed, positioned, batch, indices_batch)
    parameters = (numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value)
    return gather.bind_positional((operand, indices), parameters), place


def _add_batching_axis(
    axis: int, batch: tuple[int, ...], indices_batch: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sorted batching axes of the operand with `axis` added, and those of the indices with 0 added."""
    pairs = sorted([(axis, 0), *zip(batch, indices_batch, strict=True)])
    return tuple([i for i, _ in pairs]), tuple([i for _, i in pairs])


@primitive(
    ("dimension_numbers", "slice_sizes", "indices_are_sorted", "unique_indices", "mode", "fill_value"),
    sharding=gather_rule, sums=_gather_sums,
    abstract=_gather_abstract, emit=_gather_emit, jvp=_gather_jvp, transpose=_gather_transpose,
    batch=_gather_batch,
    moves_elements=True,
)
def gather(
    operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers, slice_sizes: Sequence[int],
    *, unique_indices: bool = False, indices_are_sorted: bool = False, mode: object = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Gather windows of an array at indices that may be traced.

    Args:
        operand: an array.
        start_indices: an array of integers whose last axis holds index vectors.
        dimension_numbers: a `GatherDimensionNumbers`.
        slice_sizes: the sizes of the windows along each axis of `operand`.
        unique_indices: whether the caller promises that no two index vectors are equal.
        indices_are_sorted: whether the caller promises that the index vectors are in ascending order.
        mode: a `GatherScatterMode` or its name, for windows outside of the operand.
        fill_value: the elements of such windows in the mode "fill"; None for NaN, the smallest signed or the largest
            unsigned integer, or True.

    Returns:
        An array of the dtype of `operand`, with the axes of the index vectors and the axes of the windows.

    Raises:
        TypeError: the shapes and `dimension_numbers` do not agree, or the indices are no integers.
        ValueError: `mode` is none of the modes.

    Example:
        >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        >>> lax.gather(jnp.array([1, 2, 3]), jnp.array([[2], [0]]), numbers, (1,))
        Array([3, 1], dtype=int32)
    """
    numbers = canonical_numbers(GatherDimensionNumbers, dimension_numbers)
    canonical = canonical_mode(mode, GatherScatterMode.PROMISE_IN_BOUNDS)
    if canonical is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill_value(operand_aval(operand).dtype)
    elif not isinstance(fill_value, (bool, int, float, complex, np.generic)):
        raise TypeError(f"gather: fill_value must be a Python or NumPy scalar, got {abbreviate(fill_value)}")
    parameters = (
        numbers, integer_tuple("slice_sizes", slice_sizes), bool(indices_are_sorted), bool(unique_indices),
        canonical, fill_value,
    )
    return gather.bind_positional((operand, start_indices), parameters)


def _pad_empty_index_vectors(
    builder: FunctionBuilder, operand: Value, indices: Value, numbers: ScatterDimensionNumbers
) -> tuple[Value, Value, ScatterDimensionNumbers]:
    """Return the operands of a scatter with empty index vectors, with the vectors (0,) on a new axis of size 1.

    XLA assumes at most one empty vector: with several it sums the updates wrongly, or fails.
    """
    window, *axes, indices_batch = numbers
    inserted, _, batch = [shift_past(0, a) for a in axes]
    operand = builder.cast("reshape", operand, operand.aval.update(shape=(1, *operand.aval.shape)))
    indices = builder.constant(0, indices.aval.update(shape=(*indices.aval.shape[:-1], 1)))
    return operand, indices, ScatterDimensionNumbers(window, (0, *inserted), (0,), batch, indices_batch)


class Scatter(ArrayPrimitive):
    """An operation that combines windows of a copy of the operand with updates, by `monoid`.

    Without a monoid the updates replace the windows, or `update_jaxpr` computes the new elements. The order of updates
    to overlapping windows is unspecified.
    """

    PARAMETERS = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode", "update_jaxpr", "update_consts")

    def __init__(
        self, function: Callable[..., Any], monoid: Monoid | None, kinds: Sequence[str], *,
        jvp: Callable[..., Any] | Derived, transpose: Callable[..., Any] | None = None,
    ) -> None:
        is_linear = monoid is None or jvp is LINEAR
        super().__init__(
            function.__name__.replace("_", "-"), self.PARAMETERS, abstract=self._abstract, emit=self._emit,
            operation=self._operation, unprinted={"update_consts": ()}, jvp=jvp, transpose=transpose, batch=self._batch,
            moves_elements=monoid is None, sharding=same, memory_operand=0,
            sums=linear_in(0, 2) if is_linear else nonlinear,
        )
        self.monoid, self.kinds = monoid, tuple(kinds)
        arguments = {
            "operand": f"an array of {kind_names(kinds)}.",
            "scatter_indices": "an array of integers whose last axis holds index vectors.",
            "updates": "an array of the dtype of `operand`, a window for each index vector.",
            "dimension_numbers": "a `ScatterDimensionNumbers`.",
            "indices_are_sorted": "whether the caller promises that the index vectors are in ascending order.",
            "unique_indices": "whether the caller promises that no two windows overlap.",
            "mode": "a `GatherScatterMode` or its name, for windows outside of the operand; None drops these.",
        }
        errors = {
            "TypeError": "the shapes, dtypes and `dimension_numbers` do not agree.",
            "ValueError": "`mode` is none of the modes.",
        }
        self.declare(function, arguments, "An array of the shape and dtype of `operand`.", errors)

    def _operation(
        self, operand: Array, scatter_indices: Array, updates: Array, dimension_numbers: ScatterDimensionNumbers, *,
        indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
    ) -> Array:
        numbers = canonical_numbers(ScatterDimensionNumbers, dimension_numbers, function=self.__name__)
        flags = bool(indices_are_sorted), bool(unique_indices)
        canonical = canonical_mode(mode, GatherScatterMode.FILL_OR_DROP, function=self.__name__)
        parameters = (numbers, *flags, canonical, None, ())
        return current_trace.get().process(self, (operand, scatter_indices, updates), parameters)

    def _abstract(
        self, operand: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
        dimension_numbers: ScatterDimensionNumbers, **_: Any,
    ) -> ShapedArray:
        name, numbers = self.__name__, dimension_numbers
        check_same_dtype(name, (operand, updates))
        check_kind(name, (operand,), (self.kinds,))
        batch, inserted = numbers.operand_batching_dims, numbers.inserted_window_dims
        check_indices(
            operand, indices, numbers.scatter_dims_to_operand_dims, "scatter_dims_to_operand_dims", batch,
            numbers.scatter_indices_batching_dims, "scatter_indices_batching_dims", function=name,
        )
        check_axes("inserted_window_dims", inserted, operand.ndim, "the operand", function=name)
        if set(inserted) & set(batch):
            raise TypeError(f"{name}: inserted_window_dims {inserted} and operand_batching_dims {batch} share an axis")
        check_axes("update_window_dims", numbers.update_window_dims, updates.ndim, "updates", function=name)
        windowed = [i for i in range(operand.ndim) if i not in inserted and i not in batch]
        if len(numbers.update_window_dims) != len(windowed):
            raise TypeError(
                f"{name}: update_window_dims must have one axis for each operand axis that is neither inserted nor "
                f"batching, {len(windowed)}; got {numbers.update_window_dims}"
            )
        outer = tuple([n for i, n in enumerate(updates.shape) if i not in numbers.update_window_dims])
        if outer != indices.shape[:-1]:
            raise TypeError(
                f"{name}: updates of shape {updates.shape} must have the axes {indices.shape[:-1]} of the index "
                f"vectors besides the window's axes {numbers.update_window_dims}; they have {outer}"
            )
        for axis, d in zip(windowed, numbers.update_window_dims, strict=True):
            if updates.shape[d] > operand.shape[axis]:
                raise TypeError(
                    f"{name}: axis {d} of updates, with size {updates.shape[d]}, does not fit into axis {axis} of the "
                    f"operand, with size {operand.shape[axis]}"
                )
        return operand

    def _emit(
        self, builder: FunctionBuilder, operand: Value, indices: Value, updates: Value, *,
        dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
        mode: GatherScatterMode, update_jaxpr: Jaxpr | None, **_: Any,
    ) -> Value:
        if operand.aval.size == 0 or updates.aval.size == 0:
            return operand
        numbers, result = dimension_numbers, operand.aval
        indices = widen(builder, indices)
        if not numbers.scatter_dims_to_operand_dims:
            if math.prod(indices.aval.shape[:-1]) > 1:
                operand, indices, numbers = _pad_empty_index_vectors(builder, operand, indices, numbers)
        elif mode is GatherScatterMode.CLIP:
            indices = self._clip_indices(builder, operand.aval, indices, updates.aval, numbers)
        attribute = attribute_text(
            "scatter", update_window_dims=numbers.update_window_dims, inserted_window_dims=numbers.inserted_window_dims,
            input_batching_dims=numbers.operand_batching_dims,
            scatter_indices_batching_dims=numbers.scatter_indices_batching_dims,
            scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims, index_vector_dim=indices.aval.ndim - 1,
        )
        scalar = operand.aval.update(shape=())
        inner = builder.region([scalar, scalar])
        if self.monoid is not None:
            returned = self.monoid.combine(inner, *inner.arguments)
        elif update_jaxpr is not None:
            (returned,) = emit_element_function(inner, update_jaxpr, "scatter_apply")
        else:
            returned = inner.arguments[1]
        scattered = builder.op_with_regions(
            "stablehlo.scatter", [operand, indices, updates], [(inner, [returned])], [operand.aval],
            scatter_dimension_numbers=attribute, indices_are_sorted="true" if indices_are_sorted else "false",
            unique_indices="true" if unique_indices else "false",
        )[0]
        return scattered if operand.aval == result else builder.cast("reshape", scattered, result)

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *,
        dimension_numbers: ScatterDimensionNumbers, **others: Any,
    ) -> tuple[Any, int]:
        where = axes[1]
        operand, updates = [mapped.place(x, i) for x, i in zip(operands[::2], axes[::2], strict=True)]
        indices = operands[1] if where is None else move_axis(operands[1], where, 0)
        window, inserted, positioned, batch, indices_batch = dimension_numbers
        window, inserted, positioned, batch = [shift_past(0, d) for d in (window, inserted, positioned, batch)]
        if where is None:
            window = (0, *window)
        else:
            batch, indices_batch = (0, *batch), (0, *shift_past(0, indices_batch))
        numbers = ScatterDimensionNumbers(window, inserted, positioned, batch, indices_batch)
        return self.bind(operand, indices, updates, dimension_numbers=numbers, **others), 0

    @staticmethod
    def _clip_indices(
        builder: FunctionBuilder, operand: ShapedArray, indices: Value, updates: ShapedArray,
        numbers: ScatterDimensionNumbers,
    ) -> Value:
        window = window_sizes(operand.shape, updates, numbers)
        kind = indices.aval
        last = write_last_indices(builder, indices, operand.shape, window, numbers.scatter_dims_to_operand_dims)
        first = builder.constant(0, kind)
        return builder.elementwise("clamp", first, indices, last)


def _gather_windows(
    x: Array, indices: Array, updates: ShapedArray, parameters: dict[str, Any], *, dropped: int | None = 0
) -> Array:
    """Return the windows of `x` at the positions of a scatter with these parameters.

    Windows of dropped updates are filled with `dropped`; None leaves them unspecified.
    """
    numbers, mode = GatherDimensionNumbers(*parameters["dimension_numbers"]), parameters["mode"]
    shape, gone = aval_of(x).shape, (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    sizes = iter([updates.shape[d] for d in numbers.offset_dims])
    window = tuple([min(1, n) if i in gone else next(sizes) for i, n in enumerate(shape)])
    if mode is not GatherScatterMode.FILL_OR_DROP:
        dropped = None
    elif dropped is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    flags = parameters["indices_are_sorted"], parameters["unique_indices"]
    return gather.bind_positional((x, indices), (numbers, window, *flags, mode, dropped))


def _sum_transpose(
    cotangent: Array, operand: object, indices: Array, updates: Array | UndefinedPrimal, **parameters: object
) -> list[Any]:
    own = cotangent if type(operand) is UndefinedPrimal else None
    linear = type(updates) is UndefinedPrimal
    return [own, None, _gather_windows(cotangent, indices, updates.aval, parameters) if linear else None]


def _difference_transpose(cotangent: Any, *operands: Any, **parameters: Any) -> list[Any]:
    own, _, of_updates = _sum_transpose(cotangent, *operands, **parameters)
    return [own, None, None if of_updates is None else elementwise.neg(of_updates)]


def _set_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    if parameters["update_jaxpr"] is not None:
        raise NotImplementedError(
            "scatter_apply (x.at[i].apply) has no derivative; write x.at[i].set(function(x[i])) where the indices are "
            "unique"
        )
    (operand, indices, updates), (moved, _, moved_updates) = primals, tangents
    parameters["unique_indices"] = _are_unique(indices, parameters)
    if parameters["unique_indices"] or moved_updates is None:
        moved = zeros(aval_of(operand)) if moved is None else moved
        moved_updates = zeros(aval_of(updates)) if moved_updates is None else moved_updates
        return scatter.bind(*primals, **parameters), scatter.bind(moved, indices, moved_updates, **parameters)
    # If several updates write one element, the winner is unspecified. Scattering the updates' numbers tells the winner,
    # so that value and tangent come from the same update.
    numbers = _number_updates(updates, parameters["dimension_numbers"])
    empty = zeros(ShapedArray(aval_of(operand).shape, dtypes.uint32))
    left = scatter.bind(empty, indices, numbers, **parameters)
    untouched = eq(left, empty)
    # The number of a dropped update is not in `left`.
    stays = eq(numbers, _gather_windows(left, indices, aval_of(updates), parameters, dropped=None))

    def set_remaining(x: ArrayLike, u: ArrayLike) -> Any:
        nothing = zeros(aval_of(operand))
        x = nothing if x is None else select_n(untouched, nothing, x)
        return scatter_add.bind(x, indices, select_n(stays, zeros(aval_of(updates)), u), **parameters)

    return set_remaining(operand, updates), set_remaining(moved, moved_updates)


def _are_unique(indices: Array, parameters: dict[str, Any]) -> bool:
    """Return whether no element is written twice: the caller promises it, or there is at most one index vector."""
    return parameters["unique_indices"] or math.prod(aval_of(indices).shape[:-1]) <= 1


def _number_updates(updates: Array, numbers: ScatterDimensionNumbers) -> Array:
    """Return, for each element of `updates`, the number of its index vector, counted from 1."""
    shape, windows = aval_of(updates).shape, numbers.update_window_dims
    outer = tuple([1 if i in windows else n for i, n in enumerate(shape)])
    count = broadcasted_iota.bind_positional((), (dtypes.uint32, (math.prod(outer),), 0, None))
    count = elementwise.add(count, scalar_literal(1, dtypes.uint32))
    count = reshape.bind_positional((count,), (outer, None, None))
    return broadcast_in_dim.bind_positional((count,), (shape, tuple(range(len(shape))), None))


def _set_transpose(
    cotangent: Array, operand: Array | UndefinedPrimal, indices: Array, updates: Array | UndefinedPrimal,
    **parameters: object,
) -> list[Any]:
    own = of_updates = None
    if type(operand) is UndefinedPrimal:
        zero = zeros(unreduced_aval(aval_of(updates), aval_of(cotangent)))
        own = scatter.bind(cotangent, indices, zero, **parameters)
    if type(updates) is UndefinedPrimal:
        if not parameters["unique_indices"]:
            raise NotImplementedError("scatter: the updates can be transposed only where unique_indices=True")
        of_updates = _gather_windows(cotangent, indices, updates.aval, parameters)
    return [own, None, of_updates]


def _product_jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: object) -> tuple[Any, Any]:
    (operand, indices, updates), (moved, _, moved_updates) = primals, tangents
    parameters["unique_indices"] = _are_unique(indices, parameters)
    result, terms = scatter_mul.bind(*primals, **parameters), []
    if moved is not None:
        terms.append(scatter_mul.bind(moved, indices, updates, **parameters))
    if moved_updates is not None:
        if not parameters["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul: the derivative with respect to the updates is defined only where no element is "
                "multiplied twice; say so with unique_indices=True"
            )
        scattered = scatter_add.bind(zeros(aval_of(operand)), indices, moved_updates, **parameters)
        terms.append(elementwise.mul(operand, scattered))
    return result, terms[0] if len(terms) == 1 else add_any.bind_positional(terms)


def _product_transpose(
    cotangent: Array, operand: Any, indices: Array, updates: Array, **parameters: object
) -> list[Any]:
    if type(operand) is UndefinedPrimal:
        return [scatter_mul.bind(cotangent, indices, updates, **parameters), None, None]
    if not parameters["unique_indices"]:
        raise NotImplementedError("scatter_mul: the updates can be transposed only where unique_indices=True")
    return [None, None, _gather_windows(elementwise.mul(cotangent, operand), indices, updates.aval, parameters)]


def _extremal_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[Any, Any]:
    # The tangent of an element is the mean over the operand's element and updates that equal the result.
    (operand, indices, updates), (moved, _, moved_updates) = primals, tangents
    result = primitive.bind(*primals, **parameters)
    aval, none = aval_of(updates), zeros(aval_of(operand))
    one = scalar_literal(1, aval.dtype, True)
    ones, nothing = broadcast_in_dim.bind_positional((one,), (aval.shape, (), None)), zeros(aval)

    def read(x: Array) -> Array:
        # Terms of dropped updates are dropped as well, so their windows may be unspecified.
        return _gather_windows(x, indices, aval, parameters, dropped=None)

    def count(marks: ArrayLike) -> Array:
        return read(scatter_add.bind(none, indices, marks, **parameters))

    reached = read(result)
    wins, kept = eq(updates, reached), eq(read(operand), reached)
    winners = count(select_n(wins, nothing, ones))
    shared = elementwise.div(one, elementwise.add(winners, one))
    terms = []
    if moved is not None:
        # The operand's tangent is added in full below; each update subtracts an equal part of the surplus.
        lost = elementwise.sub(select_n(kept, nothing, shared), one)
        part = elementwise.div(lost, count(ones))
        terms.append(elementwise.mul(read(moved), part))
    if moved_updates is not None:
        share = select_n(kept, elementwise.div(one, winners), shared)
        terms.append(elementwise.mul(moved_updates, select_n(wins, nothing, share)))
    total = terms[0] if len(terms) == 1 else add_any.bind_positional(terms)
    return result, scatter_add.bind(none if moved is None else moved, indices, total, **parameters)


EXTREMAL = Derived(_extremal_jvp)


# Subtraction is no monoid, but repeated subtraction subtracts the sum of the updates, in any order.
DIFFERENCE = Monoid("stablehlo.subtract", SUM.neutral)


@Scatter.define(None, (*ANY, EXTENDED), jvp=_set_jvp, transpose=_set_transpose)
def scatter(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Replace windows of `operand` by updates.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([1, 5, 3], dtype=int32)
    """
    ...


@Scatter.define(SUM, NUMBER, jvp=LINEAR, transpose=_sum_transpose)
def scatter_add(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Add updates to windows of `operand`.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_add(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([1, 7, 3], dtype=int32)
    """
    ...


@Scatter.define(DIFFERENCE, NUMBER, jvp=LINEAR, transpose=_difference_transpose)
def scatter_sub(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Subtract updates from windows of `operand`.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_sub(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([ 1, -3,  3], dtype=int32)
    """
    ...


@Scatter.define(PRODUCT, NUMBER, jvp=_product_jvp, transpose=_product_transpose)
def scatter_mul(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Multiply windows of `operand` by updates.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_mul(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([ 1, 10,  3], dtype=int32)
    """
    ...


@Scatter.define(MINIMUM, ANY, jvp=EXTREMAL)
def scatter_min(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Take the smaller of windows of `operand` and updates.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_min(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([1, 2, 3], dtype=int32)
    """
    ...


@Scatter.define(MAXIMUM, ANY, jvp=EXTREMAL)
def scatter_max(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
) -> Array:
    """Take the larger of windows of `operand` and updates.

    Example:
        >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        >>> lax.scatter_max(jnp.array([1, 2, 3]), jnp.array([[1]]), jnp.array([5]), numbers)
        Array([1, 5, 3], dtype=int32)
    """
    ...
