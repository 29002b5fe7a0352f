"""Windows over an array: reductions, and gathers and scatters at the extreme element of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.kinds import ANY, NUMBER, ORDERED, check_kind, check_same_dtype
from xtrace._src.algebra.monoids import MAXIMUM, MINIMUM, SUM, Monoid
from xtrace._src.algebra.vector_space import LINEAR, operand_aval, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr
from xtrace._src.core.primitive import ArrayPrimitive, Derived, Primitive, no_rule, primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.sharding_rules import resize
from xtrace._src.core.shardings.sum_rules import nonlinear
from xtrace._src.core.sizes import has_symbolic, is_symbolic
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.ops.arrays.slicing import pad, write_cropped, write_pad, zero_like
from xtrace._src.ops.contractions.convolution_shapes import dilated_size, padtype_to_pads
from xtrace._src.ops.elementwise.comparisons import ge, le
from xtrace._src.ops.reductions.reductions import is_value, reducer_jaxpr
from xtrace._src.stablehlo import attributes, symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.element_functions import emit_element_function
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.lower import emit_jaxpr
from xtrace._src.transforms.stage import stage


class Window(NamedTuple):
    """The geometry of windows along each axis of the operand; the fields are the parameters of window operations.

    window_dimensions: the sizes of a window. window_strides: the steps from window to window. padding: the numbers of
    neutral elements before and after the operand. base_dilation, window_dilation: the steps from element to element of
    the operand and of a window.
    """

    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def result_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of windows along the axes of an operand of this shape."""
        sizes = []
        for n, size, stride, (low, high), base, dilation in zip(shape, *self, strict=True):
            free = dilated_size(n, base) + low + high - dilated_size(size, dilation)
            sizes.append(free // stride + 1 if free >= 0 else 0)
        return tuple(sizes)

    def with_axis(self, axis: int) -> Window:
        """Return the window for an operand with an axis inserted; along it the window has size 1."""
        trivial: tuple[Any, ...] = (1, 1, (0, 0), 1, 1)
        return Window._make([(*values[:axis], one, *values[axis:]) for values, one in zip(self, trivial, strict=True)])

    def texts(self) -> dict[str, str]:
        """Return the StableHLO attributes as text."""
        return {
            "window_dimensions": attributes.integers(self.window_dimensions),
            "window_strides": attributes.integers(self.window_strides),
            "base_dilations": attributes.integers(self.base_dilation),
            "window_dilations": attributes.integers(self.window_dilation), "padding": _padding_text(self.padding),
        }


def _padding_text(padding: Sequence[tuple[int, int]]) -> str:
    if not padding:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<{[list(pair) for pair in padding]}> : tensor<{len(padding)}x2xi64>"


def _canonical_window(
    shape: Sequence[int], window_dimensions: object, window_strides: object, padding: Any,
    base_dilation: object = None, window_dilation: object = None
) -> Window:
    """Return the window for an operand of this shape; TypeError or ValueError for bad arguments."""
    rank = len(shape)
    given = {
        "window_dimensions": window_dimensions, "window_strides": window_strides, "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    entries = {}
    for argument, values in given.items():
        numbers = (1,) * rank if values is None else integer_tuple(argument, values)
        if len(numbers) != rank:
            raise TypeError(
                f"{called_function()}: {argument} must have one entry for each of the operand's {rank} axes, got "
                f"{numbers} for an operand of shape {tuple(shape)}"
            )
        if any(n < 1 for n in numbers):
            raise TypeError(f"{called_function()}: {argument} must be positive on every axis, got {numbers}")
        entries[argument] = numbers
    if isinstance(padding, str):
        # As in JAX, the operand's size before dilation determines the padding.
        dilations = entries["window_dilation"]
        windows = [dilated_size(n, d) for n, d in zip(entries["window_dimensions"], dilations, strict=True)]
        padding = padtype_to_pads(shape, windows, entries["window_strides"], padding)
    try:
        pads: list[tuple[int, ...]] = [integer_tuple("padding", pair) for pair in padding]
    except TypeError:
        pads = [()]
    if len(pads) != rank or any(len(pair) != 2 for pair in pads):
        raise TypeError(
            f"{called_function()}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or a pair (before, after) of "
            f"integers for each of the operand's {rank} axes, got {abbreviate(padding)}"
        )
    return Window(
        entries["window_dimensions"], entries["window_strides"], tuple([(low, high) for low, high in pads]),
        entries["base_dilation"], entries["window_dilation"],
    )


def reduce_window_shape_tuple(
    operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return the shape of the result of `reduce_window`.

    Args:
        operand_shape: the shape of the operand.
        window_dimensions: the sizes of the window.
        window_strides: the strides of the window.
        padding: pairs (low, high).
        base_dilation, window_dilation: the dilations of the operand and of the window; None for 1.

    Returns:
        A tuple of integers.

    Raises:
        TypeError: an argument does not have one entry for each axis.

    Example:
        >>> lax.reduce_window_shape_tuple((5,), (2,), (1,), [(0, 0)])
        (4,)
    """
    window = _canonical_window(
        operand_shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window.result_shape(operand_shape)


def write_windows(
    builder: FunctionBuilder, operands: Sequence[Value], start: Sequence[Value],
    region: Callable[[], tuple[FunctionBuilder, Sequence[Value]]], window: Window, results: Sequence[ShapedArray],
) -> list[Value]:
    """Write the reduction of each window from the values `start`; `region` writes the body."""
    if not results[0].size:
        return [builder.broadcast_operand(x, aval.shape) for x, aval in zip(start, results, strict=True)]
    if any(not is_symbolic(n) and n < 0 for pair in window.padding for n in pair):
        # XLA fails to simplify windows of one element that have negative padding (openxla/xla#48719).
        whole = [(*pair, d - 1) for pair, d in zip(window.padding, window.base_dilation, strict=True)]
        cropped = [write_cropped(builder, x, whole) for x in operands]
        operands, (left, *_) = [x for x, _ in cropped], [configuration for _, configuration in cropped]
        window = window._replace(padding=tuple([(low, high) for low, high, _ in left]))
    if any(map(has_symbolic, (window.window_dimensions, *window.padding))):
        return symbolic_sizes.write_reduce_window(
            builder, [*operands, *start], region(), results, dimensions=window.window_dimensions,
            strides=window.window_strides, base_dilations=window.base_dilation,
            window_dilations=window.window_dilation, padding=window.padding,
        )
    values, texts = [*operands, *start], window.texts()
    return builder.op_with_regions("stablehlo.reduce_window", values, [region()], results, **texts)


class WindowReduction(ArrayPrimitive):
    """The reduction of each window by a monoid; padding is its neutral element."""

    def __init__(self, name: str, monoid: Monoid, kinds: Sequence[str], doc: str, **rules: Any) -> None:
        super().__init__(
            name, Window._fields, abstract=self._abstract, emit=self._emit, batch=self._batch, sharding=resize, **rules
        )
        self.monoid, self.kinds = monoid, tuple(kinds)
        self.__doc__ = doc

    def _abstract(self, operand: ShapedArray, **window: Any) -> ShapedArray:
        check_kind(self.name, (operand,), (self.kinds,))
        return ShapedArray(Window(**window).result_shape(operand.shape), operand.dtype, operand.weak_type)

    def _emit(self, builder: FunctionBuilder, x: Value, **window: Any) -> Value:
        start = self.monoid.neutral_value(builder, x.aval.dtype)
        return write_windows(
            builder, [x], [start], lambda: self.monoid.region(builder, x.aval), Window(**window), builder.results
        )[0]

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], **window: Any
    ) -> tuple[Any, int]:
        return self.bind_positional(operands, Window(**window).with_axis(axes[0])), axes[0]


def _sum_transpose(cotangent: Array, operand: Any, **parameters: Any) -> list[Any]:
    # The cotangent of an element is the sum over the windows that contain it: a window sum of the cotangent, dilated by
    # the strides.
    window, shape = Window(**parameters), operand.aval.shape
    configuration = []
    for n, windows, size, stride, (low, _), base, dilation in zip(
        shape, aval_of(cotangent).shape, *window, strict=True
    ):
        extent = dilated_size(size, dilation)
        before = extent - 1 - low
        after = dilated_size(n, base) + extent - 1 - dilated_size(windows, stride) - before
        configuration.append((before, after, stride - 1))
    dilated = pad(cotangent, zero_like(cotangent), configuration)
    ones = (1,) * len(shape)
    back = Window(window.window_dimensions, window.base_dilation, ((0, 0),) * len(shape), ones, window.window_dilation)
    return [reduce_window_sum.bind_positional((dilated,), back)]


def _extreme_jvp(
    primitive: WindowReduction, primals: Sequence[Any], tangents: Sequence[Any], **window: Any
) -> tuple[Any, Any]:
    values = Window(**window)
    preferred = ge if primitive.monoid is MAXIMUM else le
    result = primitive.bind_positional(primals, values)
    (x,), (tangent,) = primals, tangents
    if any(d != 1 for d in values.base_dilation):
        # Gathering with dilation has no transpose, so the neutral elements are inserted explicitly.
        between = [(0, 0, d - 1) for d in values.base_dilation]
        x = pad(x, np.asarray(primitive.monoid.neutral(aval_of(x).dtype), aval_of(x).dtype), between)
        tangent = pad(tangent, zero_like(tangent), between)
        values = values._replace(base_dilation=(1,) * len(between))
    return result, select_and_gather_add.bind_positional((tangent, x), (preferred, *values))


reduce_window_sum = WindowReduction(
    "reduce_window_sum", SUM, NUMBER, "Sum of the elements in each window.", jvp=LINEAR, transpose=_sum_transpose,
    sums=nonlinear,
)
reduce_window_max = WindowReduction(
    "reduce_window_max", MAXIMUM, ANY, "Largest element in each window; NaN if there is one.", jvp=Derived(_extreme_jvp)
)
reduce_window_min = WindowReduction(
    "reduce_window_min", MINIMUM, ANY, "Smallest element in each window; NaN if there is one.",
    jvp=Derived(_extreme_jvp),
)


def _reduce_window_abstract(*avals: ShapedArray, jaxpr: Jaxpr, consts: Any, **window: Any) -> list[ShapedArray]:
    count = len(avals) // 2
    operands, initial = avals[:count], avals[count:]
    if any(x.shape != operands[0].shape for x in operands):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise TypeError(f"reduce_window: operands must have one shape, got {shapes}")
    for position, (x, start) in enumerate(zip(operands, initial, strict=True)):
        if start.shape or start.dtype != x.dtype:
            raise TypeError(
                f"reduce_window: init_value[{position}] must be a scalar of dtype {x.dtype.name}, got "
                f"{start.str_short(True)}"
            )
    shape = Window(**window).result_shape(operands[0].shape)
    return [ShapedArray(shape, a.dtype) for a in jaxpr.out_avals]


def _reduce_window_emit(
    builder: FunctionBuilder, *values: Value, jaxpr: Jaxpr, consts: Any, **window: Any
) -> list[Value]:
    count, results = len(values) // 2, builder.results
    return write_windows(
        builder, values[:count], values[count:], lambda: _region(builder, jaxpr), Window(**window), results
    )


def _region(builder: FunctionBuilder, jaxpr: Jaxpr) -> tuple[FunctionBuilder, list[Value]]:
    inner = builder.region(jaxpr.in_avals)
    return inner, emit_element_function(inner, jaxpr, "reduce_window")


@memoize_by_owner
def _jvp_computation(jaxpr: Jaxpr, smooth: tuple[bool, ...]) -> Jaxpr:
    """Return the jvp of a computation, as a computation on elements and the tangents of the `smooth` ones."""
    count = len(smooth)

    def both(*values: ArrayLike) -> list[Any]:
        primals: list[Any] = []
        tangents: list[Any] = []
        for half in (values[: len(values) // 2], values[len(values) // 2 :]):
            moved = iter(half[count:])
            primals += half[:count]
            tangents += [next(moved) if s else None for s in smooth]
        results, out_tangents = jvp(lambda *elements: evaluate(jaxpr, (), elements), primals, tangents)
        out_tangents = [zeros(aval_of(x)) if t is None else t for x, t in zip(results, out_tangents, strict=True)]
        return [*results, *[t for t, s in zip(out_tangents, smooth, strict=True) if s]]

    scalars = jaxpr.in_avals[:count]
    scalars = [*scalars, *[a for a, s in zip(scalars, smooth, strict=True) if s]]
    return stage(both, [*scalars, *scalars], jaxpr.debug_info or DebugInfo("jvp", "computation", None, None))[0]


def _reduce_window_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, consts: Any, **window: Any
) -> tuple[list[Any], list[Any]]:
    count = len(primals) // 2
    smooth = tuple([is_differentiable(aval_of(x)) for x in primals[:count]])
    operands: list[Any] = []
    for half in (slice(0, count), slice(count, None)):
        operands += primals[half]
        for x, tangent, wanted in zip(primals[half], tangents[half], smooth, strict=True):
            if wanted:
                aval = aval_of(x)
                operands.append(tangent if tangent is not None else zeros(aval) if aval.shape else zero_like(x))
    results = reduce_window.bind_positional(operands, (_jvp_computation(jaxpr, smooth), (), *Window(**window)))
    moved = iter(results[count:])
    return results[:count], [next(moved) if s else None for s in smooth]


def _reduce_window_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, jaxpr: Jaxpr, consts: Any, **window: Any
) -> tuple[list[Any], list[int]]:
    count = len(operands) // 2
    if any(i is not None for i in axes[count:]):
        raise NotImplementedError(
            "reduce_window cannot be mapped over init_value: it must be a neutral element of the computation, which "
            "is a constant. Combine with other values after the reduction"
        )
    arrays = [mapped.place(x, i) for x, i in zip(operands[:count], axes[:count], strict=True)]
    values = (jaxpr, consts, *Window(**window).with_axis(0))
    return reduce_window.bind_positional([*arrays, *operands[count:]], values), [0] * count


# The window operations that compute the same as these computations, if init_value is their neutral element.
_MONOIDS: dict[str, WindowReduction] = {"add": reduce_window_sum, "max": reduce_window_max, "min": reduce_window_min}


@primitive(
    ("jaxpr", "consts", *Window._fields),
    abstract=_reduce_window_abstract,
    emit=_reduce_window_emit,
    jvp=_reduce_window_jvp,
    linearize=no_rule(
        "reduce_window has a reverse-mode derivative only for the computations lax.add, lax.max and lax.min that start "
        "from their neutral element; forward mode (jvp, jacfwd) works for all"
    ),
    batch=_reduce_window_batch,
    sharding=resize,
    holds_jaxprs=False,
    multiple_results=True,
)
def reduce_window(
    operand: ArrayLike, init_value: ArrayLike, computation: Callable[[Any, Any], Any], window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce each window of an array by an associative function of two scalars.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: a scalar, or a tree of scalars, the neutral elements of the function; they are also the padding.
        computation: a function from two scalars to one, or from two trees of scalars to one.
        window_dimensions: for each axis the size of the window.
        window_strides: for each axis the step from window to window; None for 1.
        padding: "VALID", "SAME", "SAME_LOWER", or for each axis the numbers of elements (before, after).
        base_dilation: for each axis the step from element to element of `operand`; None for 1.
        window_dilation: for each axis the step from element to element of the window; None for 1.

    Returns:
        An array, or a tree of arrays, with one element for each window.

    Raises:
        TypeError: the window, strides or dilations do not have a positive number for each axis, or the dtypes differ.
        ValueError: shapes or structures do not agree.
        RuntimeError: `padding` is an unknown name.

    Example:
        >>> lax.reduce_window(jnp.array([1, 2, 3]), 0, lax.add, (2,))
        Array([3, 5], dtype=int32)
    """
    arrays, tree = pytree.tree_flatten(operand)
    initial, initial_tree = pytree.tree_flatten(init_value)
    if tree != initial_tree or not arrays:
        raise ValueError(
            f"reduce_window: operand and init_value must have one structure, got {tree} and {initial_tree}"
        )
    avals = [operand_aval(x) for x in arrays]
    window = _canonical_window(
        avals[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    monoid = _MONOIDS.get(computation.name) if isinstance(computation, Primitive) and len(arrays) == 1 else None
    if monoid is not None and is_value(initial[0], monoid.monoid.neutral(avals[0].dtype), avals[0].dtype):
        return pytree.tree_unflatten(tree, [monoid.bind_positional(arrays, window)])
    jaxpr = reducer_jaxpr("reduce_window", computation, tree, [ShapedArray((), a.dtype) for a in avals])
    return pytree.tree_unflatten(tree, reduce_window.bind_positional([*arrays, *initial], (jaxpr, (), *window)))


# The derivatives of window extremes, transposes of each other: a gather from, and a scatter to, the positions of the
# extremes.


def _gather_abstract(
    tangents: ShapedArray, operand: ShapedArray, *, select_prim: Primitive, **window: Any
) -> ShapedArray:
    """Return the element of `tangents` at the position of the extreme of `operand` in each window."""
    _check_selection("select_and_gather_add", tangents, operand)
    if tangents.shape != operand.shape:
        raise TypeError(
            f"select_and_gather_add: tangents and operand must have one shape, got {tangents.shape} and {operand.shape}"
        )
    weak = tangents.weak_type and operand.weak_type
    return ShapedArray(Window(**window).result_shape(operand.shape), tangents.dtype, weak)


def _check_selection(name: str, values: ShapedArray, operand: ShapedArray) -> None:
    check_same_dtype(name, (values, operand))
    check_kind(name, (operand,), (ORDERED,))


def _selection(select_prim: Primitive) -> tuple[str, Monoid]:
    """Return the direction of the comparison that selects its first operand, and the monoid of the extreme."""
    return ("GE", MAXIMUM) if select_prim is ge else ("LE", MINIMUM)


def _gather_emit(
    builder: FunctionBuilder, tangents: Value, operand: Value, *, select_prim: Primitive, **window: Any
) -> Value:
    direction, monoid = _selection(select_prim)
    result, dtype = builder.results[0], operand.aval.dtype
    scalar = ShapedArray((), dtype)
    start = [monoid.neutral_value(builder, dtype), builder.constant(0, scalar)]

    def region() -> tuple[FunctionBuilder, list[Value]]:
        inner = builder.region([scalar] * 4)
        x, t, y, s = inner.arguments
        first = inner.compare(direction, x, y)
        return inner, [inner.select(first, x, y), inner.select(first, t, s)]

    return write_windows(builder, [operand, tangents], start, region, Window(**window), [result, result])[1]


def _move_at_extremes(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[Any, Any]:
    values, moved = tuple(parameters.values()), tangents[0]
    result = primitive.bind_positional(primals, values)
    # The position of the extreme is constant almost everywhere.
    return result, None if moved is None else primitive.bind_positional((moved, primals[1]), values)


_EXTREMES_JVP = Derived(_move_at_extremes)


def _gather_transpose(
    cotangent: Array, tangents: Any, operand: Array, *, select_prim: Primitive, **parameters: Any
) -> list[Any]:
    window = Window(**parameters)
    if any(d != 1 for d in (*window.base_dilation, *window.window_dilation)):
        raise NotImplementedError(
            "the extremes of windows have a reverse-mode derivative only without dilation, got "
            f"base_dilation {window.base_dilation} and window_dilation {window.window_dilation}"
        )
    return [select_and_scatter_add.bind_positional((cotangent, operand), (select_prim, *window[:3])), None]


def _gather_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, select_prim: Primitive, **window: Any
) -> tuple[Any, int]:
    moved = [mapped.place(x, i) for x, i in zip(operands, axes, strict=True)]
    return select_and_gather_add.bind_positional(moved, (select_prim, *Window(**window).with_axis(0))), 0


select_and_gather_add = Primitive(
    "select_and_gather_add", ("select_prim", *Window._fields), abstract=_gather_abstract, emit=_gather_emit,
    jvp=_EXTREMES_JVP, transpose=_gather_transpose, batch=_gather_batch, sharding=resize,
)


def _make_undilated_window(window_dimensions: Shape, window_strides: Shape, padding: Any) -> Window:
    ones = (1,) * len(window_dimensions)
    return Window(window_dimensions, window_strides, padding, ones, ones)


def _scatter_abstract(
    source: ShapedArray, operand: ShapedArray, *, select_prim: Primitive, **window: Any
) -> ShapedArray:
    """Return zeros like `operand` with `source` added at the position of the extreme of each window."""
    _check_selection("select_and_scatter_add", source, operand)
    _check_source("select_and_scatter_add", source, operand, _make_undilated_window(**window))
    return ShapedArray(operand.shape, operand.dtype, source.weak_type and operand.weak_type)


def _check_source(name: str, source: ShapedArray, operand: ShapedArray, window: Window) -> None:
    if source.shape != window.result_shape(operand.shape):
        raise TypeError(
            f"{name}: source must have one element for each window, shape {window.result_shape(operand.shape)} on an "
            f"operand of shape {operand.shape}; got {source.shape}"
        )


def _scatter_emit(
    builder: FunctionBuilder, source: Value, operand: Value, *, select_prim: Primitive, **window: Any
) -> Value:
    direction, monoid = _selection(select_prim)
    result, values = builder.results[0], _make_undilated_window(**window)
    scalar = ShapedArray((), result.dtype)
    start = builder.constant(0, scalar)
    if not result.shape:  # XLA aborts on scalars, which have one window of one element
        return source
    if not source.aval.size:
        return builder.broadcast_operand(start, result.shape)
    pads = values.padding
    # Only on TPUs is padding neutral; for other platforms it is added before and removed after.
    if builder.platform != "tpu" or any(n < 0 for pair in pads for n in pair):
        edges = [(*pair, 0) for pair in pads]
        operand = write_pad(builder, operand, monoid.neutral_value(builder, result.dtype), edges)
        values = values._replace(padding=((0, 0),) * len(pads))
    inner = builder.region([scalar] * 2)
    x, y = inner.arguments
    chosen = inner, [inner.compare(direction, x, y)]
    scattered = _write_scatter(builder, operand, source, start, chosen, SUM.region(builder, result), values)
    if scattered.aval is result:
        return scattered
    return write_pad(builder, scattered, start, [(-low, -high, 0) for low, high in pads])


def _write_scatter(
    builder: FunctionBuilder, operand: Value, source: Value, start: Value, chosen: Any, scattered: Any, window: Window
) -> Value:
    texts = {k: v for k, v in window.texts().items() if "dilations" not in k}
    # XLA partitions overlapping windows wrongly: it leaves elements out.
    axes = [i for i, n in enumerate(window.window_dimensions) if n > 1]
    operand, source = builder.gather_along(operand, axes), builder.gather_along(source, axes)
    operands, regions = [operand, source, start], [chosen, scattered]
    (result,) = builder.op_with_regions("stablehlo.select_and_scatter", operands, regions, [operand.aval], **texts)
    return builder.gather_along(result, axes)


def _scatter_transpose(
    cotangent: ArrayLike, source: object, operand: ArrayLike, *, select_prim: Primitive, **window: Any
) -> list[Any]:
    return [select_and_gather_add.bind_positional(
        (cotangent, operand), (select_prim, *_make_undilated_window(**window))
    ), None]


def _scatter_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, select_prim: Primitive, **window: Any
) -> tuple[Any, int]:
    moved = [mapped.place(x, i) for x, i in zip(operands, axes, strict=True)]
    return select_and_scatter_add.bind_positional(
        moved, (select_prim, *_make_undilated_window(**window).with_axis(0)[:3])
    ), 0


select_and_scatter_add = Primitive(
    "select_and_scatter_add", ("select_prim", *Window._fields[:3]), abstract=_scatter_abstract, emit=_scatter_emit,
    jvp=_EXTREMES_JVP, transpose=_scatter_transpose, batch=_scatter_batch, sharding=resize,
)


def _select_and_scatter_abstract(
    operand: ShapedArray, source: ShapedArray, init_value: ShapedArray, *, select_jaxpr: Jaxpr, select_consts: Any,
    scatter_jaxpr: Jaxpr, scatter_consts: Any, **window: Any,
) -> ShapedArray:
    check_same_dtype("select_and_scatter", (operand, source, init_value))
    if init_value.shape:
        raise TypeError(f"select_and_scatter: init_value must be a scalar, got shape {init_value.shape}")
    if any(n < 0 for pair in window["padding"] for n in pair):
        raise TypeError(f"select_and_scatter: padding must not be negative, got {window['padding']}; slice the operand")
    _check_source("select_and_scatter", source, operand, _make_undilated_window(**window))
    return ShapedArray(operand.shape, operand.dtype)


def _select_and_scatter_emit(
    builder: FunctionBuilder, operand: Value, source: Value, start: Value, *, select_jaxpr: Jaxpr,
    select_consts: object, scatter_jaxpr: Jaxpr, scatter_consts: object, **window: Any
) -> Value:
    if not operand.aval.shape:  # XLA aborts on scalars, which have one window of one element
        return emit_jaxpr(builder, scatter_jaxpr, (start, source))[0]
    if not source.aval.size:
        return builder.broadcast_operand(start, operand.aval.shape)
    regions = _region(builder, select_jaxpr), _region(builder, scatter_jaxpr)
    return _write_scatter(builder, operand, source, start, *regions, _make_undilated_window(**window))


def _select_and_scatter_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, select_jaxpr: Jaxpr,
    select_consts: Any, scatter_jaxpr: Jaxpr, scatter_consts: Any, **window: Any,
) -> tuple[Any, int]:
    if axes[2] is not None:
        raise NotImplementedError(
            "select_and_scatter cannot be mapped over init_value: it must be the neutral element of scatter, which is "
            "a constant"
        )
    moved = [mapped.place(x, i) for x, i in zip(operands[:2], axes[:2], strict=True)]
    values = (
        select_jaxpr, select_consts, scatter_jaxpr, scatter_consts, *_make_undilated_window(**window).with_axis(0)[:3]
    )
    return select_and_scatter.bind_positional([*moved, operands[2]], values), 0


@primitive(
    ("select_jaxpr", "select_consts", "scatter_jaxpr", "scatter_consts", *Window._fields[:3]),
    abstract=_select_and_scatter_abstract, emit=_select_and_scatter_emit,
    jvp=no_rule("select_and_scatter has no derivative: select and scatter are any functions"),
    batch=_select_and_scatter_batch,
)
def select_and_scatter(
    operand: ArrayLike, select: Callable[[Any, Any], Any], window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: Sequence[tuple[int, int]], source: ArrayLike, init_value: ArrayLike,
    scatter: Callable[[Any, Any], Any],
) -> Array:
    """Scatter `source`, one element for each window, to the element of its window that ``select(x, y)`` prefers.

    ``scatter(x, y)`` combines elements with the same target. The result has the operand's shape; elements that are no
    target are `init_value`, the neutral element of `scatter`. TypeError if shapes or dtypes do not agree.
    """
    name = "select_and_scatter"
    aval = operand_aval(operand)
    window = _canonical_window(aval.shape, window_dimensions, window_strides, padding)
    check_callable(select)
    scalars, info = [ShapedArray((), aval.dtype)] * 2, DebugInfo(name, "select", None, None)
    select_jaxpr, constants = stage(lambda x, y: [select(x, y)], scalars, info)
    if constants:
        raise NotImplementedError(f"{name}: select closes over arrays; close over scalars only")
    if select_jaxpr.out_avals[0] is not ShapedArray((), dtypes.bool_):
        raise TypeError(f"{name}: select must return a boolean, got {select_jaxpr.out_avals[0].str_short(True)}")
    scatter_jaxpr = reducer_jaxpr(name, scatter, pytree.tree_structure(0), scalars[:1])
    return select_and_scatter.bind_positional(
        (operand, source, init_value), (select_jaxpr, (), scatter_jaxpr, (), *window[:3])
    )
