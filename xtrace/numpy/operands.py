"""Shared checks of operands, dtypes and axes, and a few steps on checked operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    check_broadcast,
    convert_to,
    operand_aval,
)
from xtrace._src.api.operators.promotion import cast_constant, scalar_value
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.shardings.partition_spec import full_entries
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise.comparisons import lt
from xtrace._src.ops.elementwise.elementwise import add, rem
from xtrace._src.ops.elementwise.selection import select_n

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function
    from xtrace._src.ops.arrays.slicing import slice_in_dim
    from xtrace._src.ops.elementwise import complex_numbers


def to_known_integer(argument: str, value: object, *, function: str = "") -> int:
    """Return an integer that a shape needs; ConcretizationTypeError if it is traced, TypeError for other values."""
    if isinstance(value, Tracer):
        raise explain.concretization(value, f"{function or called_function()} argument {argument}")
    return to_integer(argument, value, function=function)


def cast_to(value: object, aval: ShapedArray, dtype: DTypeLike) -> Array:
    """Return an operand of type `aval` converted to `dtype`, or itself if it has that dtype."""
    if aval.dtype == dtype and isinstance(value, Array):
        return value
    # NumPy converts constants, except floating ones to integers, where XLA's conversion differs.
    if isinstance(value, (np.ndarray, np.generic)) and dtypes.is_inexact(dtype) >= dtypes.is_inexact(aval.dtype):
        result: Array = cast_constant(value, aval, dtype)
        return result
    return convert_to(value, dtype, aval.weak_type and aval.dtype == dtype)


def axes_of(axis: Any, ndim: int, *, function: str = "") -> tuple[int, ...]:
    """Return the axes that `axis` names (None: all), counted from the front.

    ValueError for missing or repeated axes, TypeError unless it is an integer or a sequence of integers.
    """
    if axis is None:
        return tuple(range(ndim))
    axis = store_axes(axis)
    if is_sequence_of_axes(axis):
        axes = tuple([canonical_axis(a, ndim, function=function) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError(
                f"{function or called_function()}: duplicate value in axis: {abbreviate(tuple(axis))} for an array "
                f"of dimension {ndim}"
            )
        return axes
    return (canonical_axis(axis, ndim, function=function),)


def store_axes(axis: Any) -> Any:
    """Return the axes that an iterator yields as a tuple, and any other value unchanged."""
    return tuple(axis) if isinstance(axis, Iterator) else axis


def is_sequence_of_axes(axis: Axes) -> bool:
    """Return whether `axis` is a sequence or a set, such as a tuple or a range, or an array with one axis."""
    if isinstance(axis, (np.ndarray, Array)):
        return axis.ndim == 1
    return isinstance(axis, (Sequence, Set)) and not isinstance(axis, (str, bytes))


def only_axis(axis: Any) -> Any:
    """Unpack a sequence of one axis, and return any other value unchanged; ValueError for several axes."""
    if not is_sequence_of_axes(axis):
        return axis
    if len(axis) != 1:
        raise ValueError(f"{called_function()}: axis must be one axis, got {len(axis)} of them: {abbreviate(axis)}")
    (only,) = axis
    return only


def axis_as_index(axis: Axes, ndim: int) -> int:
    """Return the axis that `axis` names, an integer or a tuple of one, with JAX's classes of errors.

    IndexError for floats, complex numbers and strings; ValueError for None, booleans and lists; NumPy's AxisError,
    which is both, for a missing axis.
    """
    if type(axis) is tuple and len(axis) == 1:
        (axis,) = axis
    if axis is None or isinstance(axis, (bool, np.bool_, list, tuple)):
        raise ValueError(f"{called_function()}: axis must be an integer, got {abbreviate(axis)}")
    try:
        return canonical_axis(axis, ndim)
    except TypeError as error:
        raise (IndexError(str(error)) if type(error) is TypeError else error) from None


def refuse(*, function: str = "", **unsupported: object) -> None:
    """Raise NotImplementedError if a parameter of NumPy that immutable arrays lack is not None."""
    for name, value in unsupported.items():
        if value is not None:
            raise NotImplementedError(
                f"The '{name}' argument to xtrace.numpy.{function or called_function()} is not supported; leave it "
                "at None"
                + (" and use the result, since arrays are immutable" if name == "out" else "")
            )


def place_of(device: object, out_sharding: object, ndim: int) -> Any:
    """Return the sharding or device of a new array: ``out_sharding``, with all `ndim` entries, or else ``device``."""
    if out_sharding is None:
        return device
    place = requested_out_sharding(out_sharding)
    if place is None or len(place.spec) >= ndim:
        return place
    return place.update(spec=place.spec.update(partitions=full_entries(place.spec, ndim)))


def scalar_of(value: Any, dtype: Any, weak_type: bool = False) -> Literal:
    """Return a number as a literal of element type `dtype`, for operations that do not promote."""
    if is_symbolic(value):
        return Literal(value, ShapedArray((), dtype, weak_type))
    scalar = np.asarray(value).astype(dtype)
    return Literal(scalar.item() if dtype.isbuiltin == 1 else scalar[()], ShapedArray((), dtype, weak_type))


def broadcast_operand_to(x: ArrayLike, own: tuple[int, ...], shape: tuple[int, ...], *, function: str = "") -> Array:
    """Return `x`, of shape `own`, broadcast to `shape` as NumPy does; ValueError if it cannot be."""
    missing = len(shape) - len(own)
    if missing < 0:
        raise ValueError(
            f"{function or called_function()}: Cannot broadcast to shape with fewer dimensions: arr_shape={own} "
            f"shape={abbreviate(shape)}"
        )
    if not all(n in (1, m) for n, m in zip(own, shape[missing:], strict=True)):
        raise ValueError(
            f"{function or called_function()}: Incompatible types for broadcasting: an array of shape {own} does not "
            f"broadcast to {abbreviate(shape)}; sizes must be equal or 1, from the last axis on"
        )
    if own == shape and isinstance(x, Array):
        return x
    return broadcast_in_dim.bind_positional((x,), (shape, tuple(range(missing, len(shape))), None))


def slice_axis(x: Array, start: int, stop: int, axis: int) -> Array:
    """Return the elements of `x` from `start` to `stop`, not included, along `axis`."""
    return slice_in_dim(x, start, stop, axis=axis)


def wrap_indices(indices: Array, length: int) -> Array:
    """Return integer indices modulo `length`, never negative."""
    size = scalar_of(length, indices.dtype)
    remainder = rem(indices, size)
    return select_n(lt(remainder, scalar_of(0, indices.dtype)), remainder, add(remainder, size))


def select_or_fill(mask: ArrayLike, x: ArrayLike, other: ArrayLike) -> Array:
    """Return `x` where `mask` is true and the number `other` elsewhere, broadcast, in the dtype of `x`."""
    aval, own = operand_aval(x, 0, function="where"), operand_aval(mask, 0, function="where").shape
    shape = check_broadcast([own, aval.shape], function="where")
    fill = broadcast_in_dim.bind_positional((scalar_of(other, aval.dtype, aval.weak_type),), (shape, (), None))
    return select_n(
        broadcast_operand_to(mask, own, shape, function="where"), fill,
        broadcast_operand_to(x, aval.shape, shape, function="where"),
    )


def fill_as(x: ArrayLike, value: ArrayLike, dtype: np.dtype[Any] | None = None, weak: bool = False) -> Array:
    """Return `value` in the shape of `x`, in its dtype or another."""
    aval = aval_of(x)
    kind = aval.dtype if dtype is None else dtype
    literal = Literal(scalar_value(value, kind), ShapedArray((), kind, weak))
    return broadcast_in_dim.bind_positional((literal,), (aval.shape, (), None))


def refuse_complex(error: type[Exception] = TypeError, *, function: str = "") -> Callable[..., Any]:
    """Return an operation that raises `error`: `function` is not defined for complex numbers."""

    def refuse(*_: Array) -> Array:
        raise error(
            f"{function or called_function()} does not support complex dtypes; take the absolute value or a part "
            "first"
        )

    return refuse


def apply_to_parts(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function of complex numbers that applies `function` to both parts."""

    def by_parts(x: ArrayLike) -> Array:
        return complex_numbers.complex(function(complex_numbers.real(x)), function(complex_numbers.imag(x)))

    return by_parts
