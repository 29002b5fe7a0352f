"""The few operations that differentiation and batching need: broadcast, reduce_sum, transpose, reshape, convert."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.kinds import NUMBER
from xtrace._src.algebra.monoids import SUM, Reduction
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, not_an_array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.errors import BroadcastError, InconclusiveDimensionOperation, refusal_class
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED, Literal
from xtrace._src.core.primitive import Derived, Primitive, primitive
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings import sharding_rules, sum_rules
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.sizes import to_sizes
from xtrace._src.core.tangents import UndefinedPrimal, is_differentiable
from xtrace._src.core.trace import Tracer, current_trace
from xtrace._src.runtime.transfer import array_from_host
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function

if TYPE_CHECKING:
    from xtrace._src.core.primitive import Operation

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _linear_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[Any, Any]:
    values = tuple(parameters.values())
    result = primitive.bind_positional(primals, values)
    if not is_differentiable(aval_of(result)):
        return result, None
    moved = [
        t if t is not None else zeros(aval_of(x)) if is_differentiable(aval_of(x)) else x
        for x, t in zip(primals, tangents, strict=True)
    ]
    return result, primitive.bind_positional(moved, values)


def _zero_derivative_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[Any, Any]:
    result = primitive.bind_positional(primals, tuple(parameters.values()))
    return result, [None] * len(result) if primitive.multiple_results else None


# jvp rules of operations that are linear in all their inexact operands together, and of those with derivative zero.
LINEAR, ZERO_DERIVATIVE = Derived(_linear_jvp, sum_rules.linear_in_all), Derived(_zero_derivative_jvp)


def shift_axes(*names: str) -> Derived:
    """Return the batch rule of an operation with results of its operands' rank; the parameters `names` hold axes.

    The mapped axis of all operands and results is where the first mapped operand has it.
    """

    def batch(
        primitive: Primitive, mapped: Any, operands: Sequence[Any], places: Sequence[Any], **values: Any
    ) -> tuple[Any, Any]:
        place = next(i for i in places if i is not None)
        if len(operands) > 1:
            operands = [mapped.place(x, i, place) for x, i in zip(operands, places, strict=True)]
        for name in names:
            value = values[name]
            values[name] = value + (value >= place) if isinstance(value, int) else shift_past(place, value)
        results = primitive.bind_positional(operands, tuple(values.values()))
        return results, [place] * len(results) if primitive.multiple_results else place

    return Derived(batch)


# The batch rule of operations that do the same with each element.
IN_PLACE = shift_axes()


def _axis_first_batch(
    primitive: Primitive, mapped: Any, operands: Sequence[Any], axes: Sequence[int], **parameters: object
) -> tuple[Any, int]:
    return primitive.bind_positional((move_axis(operands[0], axes[0], 0),), tuple(parameters.values())), 0


# The batch rule of operations of one operand that may change its last axes only.
AXIS_FIRST = Derived(_axis_first_batch)


def _same_type(operand: ShapedArray, **_: object) -> ShapedArray:
    return operand


def linear(
    parameters: Sequence[str] = (), *, transpose: Callable[..., Any], axes: Sequence[str] = (),
    abstract: Callable[..., ShapedArray] = _same_type, **rules: Any,
) -> Callable[[Callable[_Arguments, _Result]], Operation[_Arguments, _Result]]:
    """Decorate the public function of a linear operation of one operand; the result is the primitive.

    Args:
        parameters: the names of its parameters, in order.
        transpose: ``transpose(cotangent, operand, **parameters)`` returns the operand's cotangent, None for zero;
            `operand` is an `UndefinedPrimal`.
        axes: the parameters that hold an axis or a tuple of axes of the operand. The default `batch` rule shifts them;
            it is for results of the operand's rank.
        abstract: the abstract rule; the default returns the operand's type.
        rules: `emit` and the other rules of a primitive, and `name`, its name in the IR if it is not the function's.
    """

    def transpose_one(cotangent: Array, operand: UndefinedPrimal, **values: object) -> list[Any]:
        return [transpose(cotangent, operand, **values)]

    rules = dict[str, Any](batch=shift_axes(*axes), moves_elements=True) | rules
    return primitive(parameters, abstract=abstract, jvp=LINEAR, transpose=transpose_one, **rules)


def shift_past(axis: int, dimensions: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the axes `dimensions` after an axis is inserted at position `axis`."""
    return tuple([d + (d >= axis) for d in dimensions])


def list_shape_entries(shape: Any) -> tuple[Any, ...]:
    """Return the entries of `shape`; one that is no sequence, such as an array without axes, is the only entry."""
    # Sets are no shapes, since they have no order.
    if isinstance(shape, Tracer) or not (hasattr(shape, "__getitem__") or isinstance(shape, Iterator)):
        return (shape,)
    try:
        return tuple(shape)
    except TypeError:
        return (shape,)


def canonical_shape(shape: Any, *, function: str = "") -> tuple[int, ...]:
    """Return `shape` as a tuple of ints; TypeError if an entry is no concrete, nonnegative integer."""
    entries = list_shape_entries(shape)
    if any(isinstance(n, Tracer) for n in entries):
        raise explain.traced_shape(next(n for n in entries if isinstance(n, Tracer)), entries, function=function)
    try:
        canonical = tuple(operator.index(n) for n in entries)
    except InconclusiveDimensionOperation:
        canonical = to_sizes(entries)
    except TypeError:
        raise TypeError(
            f"{function or called_function()}: shape must be an integer or a sequence of integers, got "
            f"{abbreviate(shape)}; divide sizes with //"
        ) from None
    if any(n < 0 for n in canonical):
        function = function or called_function()
        tip = "; xtrace.numpy.reshape works out one size given as -1" if function == "reshape" else ""
        raise TypeError(
            f"{function}: shape {abbreviate(canonical)} has a negative size; sizes must be nonnegative{tip}"
        )
    return canonical


def axis_error(axis: object, *, function: str = "") -> TypeError:
    """Return the error for an `axis` that is no integer; `function` is the operation it was given to."""
    if isinstance(axis, Tracer):
        return explain.concretization(axis, f"numpy.{function or called_function()} argument axis")
    return refusal_class(axis)(f"{function or called_function()}: axis must be an integer, got {abbreviate(axis)}")


def canonical_axis(axis: Any, ndim: int, *, function: str = "") -> int:
    """Return `axis` counted from the front.

    TypeError if it is no integer; NumPy's AxisError, a ValueError and an IndexError, if it is out of bounds.
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise axis_error(axis, function=function) from None
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(
            f"{function or called_function()}: axis {abbreviate(number)} is out of bounds for array of dimension {ndim}"
        )
    return number % ndim if ndim else number


def check_broadcast(shapes: Sequence[tuple[int, ...]], *, function: str = "") -> tuple[int, ...]:
    """Return the shape that `shapes` broadcast to by NumPy's rules; BroadcastError if there is none."""
    rank = max(map(len, shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            raise BroadcastError(
                f"{function or called_function()}: Incompatible shapes for broadcasting: "
                f"{', '.join(map(str, shapes))}; axis {axis} has the sizes "
                f"{', '.join(str(s[axis]) for s in shapes if len(s) >= -axis)}. Axes are matched from the "
                "last one, and those of size 1 are repeated; x[:, None] adds one at the end"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def operand_aval(value: object, argument: str | int = "operand", *, function: str = "") -> ShapedArray:
    """Return the aval of an array, a scalar or a literal; the error for other values names function and argument.

    argument: the argument's name, or its position for functions of NumPy, whose messages count arguments.
    """
    if isinstance(argument, int):
        if isinstance(value, Array):
            return value.aval
        try:
            return aval_of(value)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{function or called_function()} requires ndarray or scalar arguments; argument {argument}: {error}"
            ) from None
    aval: ShapedArray | None = getattr(value, "aval", None)
    if aval is not None:
        return aval
    try:
        return aval_of(value)
    except TypeError:
        raise TypeError(f"{function or called_function()}: {argument}: {not_an_array(value)}") from None


def _broadcast_abstract(
    operand: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], sharding: object
) -> ShapedArray:
    if len(broadcast_dimensions) != operand.ndim:
        raise TypeError(
            f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must have one entry for each of the "
            f"operand's {operand.ndim} axes"
        )
    if len(set(broadcast_dimensions)) < operand.ndim or any(not 0 <= d < len(shape) for d in broadcast_dimensions):
        raise TypeError(
            f"broadcast_in_dim: broadcast_dimensions {broadcast_dimensions} must be distinct axes of the result's "
            f"shape {shape}"
        )
    for axis, d in enumerate(broadcast_dimensions):
        if operand.shape[axis] not in (1, shape[d]):
            raise TypeError(
                f"broadcast_in_dim: operand axis {axis} has size {operand.shape[axis]}, which is neither 1 nor the "
                f"size {shape[d]} of axis {d} of the result; operand shape {operand.shape}, result shape {shape}"
            )
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def _broadcast_emit(builder: FunctionBuilder, x: Value, *, broadcast_dimensions: Shape, **_: object) -> Value:
    return builder.broadcast(x, builder.results[0].shape, broadcast_dimensions)


def _broadcast_transpose(
    cotangent: Array, operand: UndefinedPrimal, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...],
    **_: object,
) -> Array:
    own = operand.aval.shape
    repeated = [d for n, d in zip(own, broadcast_dimensions, strict=True) if n != shape[d]]
    summed = reduce_sum(cotangent, (*[d for d in range(len(shape)) if d not in broadcast_dimensions], *repeated))
    kept = [d for d in broadcast_dimensions if d not in repeated]
    # The summed cotangent has its axes in the result's order; the operand's order is broadcast_dimensions.
    summed = transpose(summed, [sorted(kept).index(d) for d in kept])
    if not repeated:
        return summed
    places = tuple([i for i, d in enumerate(broadcast_dimensions) if d not in repeated])
    return broadcast_in_dim.bind_positional((summed,), (own, places, None))


def bind_with_sharding(
    primitive: Operation[..., _Result], operands: Sequence[Any], parameters: Sequence[Any], out_sharding: object
) -> _Result:
    """Bind a primitive whose last parameter is the result's sharding, with the sharding that a user requested."""
    sharding = requested_out_sharding(out_sharding, function=primitive.__name__)
    return primitive.bind_positional(operands, (*parameters, sharding))


def _broadcast_batch(
    mapped: Any, operands: Sequence[Any], axes: Sequence[int], *, shape: Shape, broadcast_dimensions: Shape,
    sharding: NamedSharding | None,
) -> tuple[Any, int]:
    dimensions = (0, *[d + 1 for d in broadcast_dimensions])
    x = move_axis(operands[0], axes[0], 0)
    sharding = sharding_rules.batch(mapped, x, 0, 0, sharding, len(shape))
    return broadcast_in_dim.bind_positional((x,), ((mapped.size, *shape), dimensions, sharding)), 0


@linear(
    ("shape", "broadcast_dimensions", "sharding"), abstract=_broadcast_abstract,
    sharding=sharding_rules.broadcast, sharding_parameter="sharding",
    emit=_broadcast_emit, transpose=_broadcast_transpose, batch=_broadcast_batch,
    unprinted={"shape": NEVER_PRINTED, "broadcast_dimensions": (), "sharding": NEVER_PRINTED},
)
def broadcast_in_dim(
    operand: ArrayLike | Literal, shape: ShapeLike, broadcast_dimensions: Sequence[int], *, out_sharding: object = None
) -> Array:
    """Expand an array to a shape by repeating it along new axes and along axes of size 1.

    Args:
        operand: an array.
        shape: the shape of the result, an integer or a sequence of integers.
        broadcast_dimensions: for each axis of `operand`, its position in the result.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of shape `shape` and the dtype of `operand`.

    Raises:
        TypeError: the dimensions are not distinct axes of the result, or a size is neither 1 nor the result's size.

    Example:
        >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
        Array([[1, 1, 1],
               [2, 2, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    dimensions = integer_tuple("broadcast_dimensions", broadcast_dimensions)
    if out_sharding is not None:
        return bind_with_sharding(broadcast_in_dim, (operand,), (shape, dimensions), out_sharding)
    if isinstance(operand, Array) and operand.shape == shape and dimensions == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim.bind_positional((operand,), (shape, dimensions, None))


def _reshape_abstract(
    operand: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: tuple[int, ...] | None, **_: object
) -> ShapedArray:
    if dimensions is not None and sorted(dimensions) != list(range(operand.ndim)):
        raise TypeError(
            f"reshape: dimensions {dimensions} is not a permutation of the axes of an array of shape {operand.shape}"
        )
    if math.prod(new_sizes) != operand.size:
        raise TypeError(
            f"reshape: total size must be unchanged, but shape {operand.shape} has {operand.size} elements and "
            f"{new_sizes} has {math.prod(new_sizes)}"
        )
    return ShapedArray(new_sizes, operand.dtype, operand.weak_type)


def _reshape_emit(builder: FunctionBuilder, x: Value, *, dimensions: tuple[int, ...] | None, **_: object) -> Value:
    aval = builder.results[0]
    if dimensions is not None:
        x = builder.transpose(x, dimensions)
    return builder.cast("reshape", x, aval)


def _reshape_transpose(
    cotangent: Array, operand: UndefinedPrimal, *, dimensions: tuple[int, ...] | None, **_: object
) -> Array:
    own, sharding = operand.aval.shape, operand.aval.explicit_sharding
    if dimensions is None:
        return reshape.bind_positional((cotangent,), (own, None, sharding))
    if sharding is not None:
        entries = sharding.spec.partitions
        sharding = sharding.update(spec=sharding.spec.update(partitions=tuple([entries[d] for d in dimensions])))
    permuted = reshape.bind_positional((cotangent,), (tuple([own[d] for d in dimensions]), None, sharding))
    return transpose(permuted, _inverse(dimensions))


def _reshape_batch(
    mapped: Any, operands: Sequence[Any], axes: Sequence[int], *, new_sizes: Shape, dimensions: Shape | None,
    sharding: NamedSharding | None,
) -> tuple[Any, int]:
    x = move_axis(operands[0], axes[0], 0)
    if dimensions is not None:
        dimensions = (0, *[d + 1 for d in dimensions])
    sharding = sharding_rules.batch(mapped, x, 0, 0, sharding, len(new_sizes))
    return reshape.bind_positional((x,), ((mapped.size, *new_sizes), dimensions, sharding)), 0


@linear(
    ("new_sizes", "dimensions", "sharding"), sharding=sharding_rules.reshape,
    sharding_parameter="sharding", abstract=_reshape_abstract, emit=_reshape_emit,
    transpose=_reshape_transpose, batch=_reshape_batch,
)
def reshape(
    operand: ArrayLike, new_sizes: ShapeLike, dimensions: Sequence[int] | None = None, *, out_sharding: object = None
) -> Array:
    """Reshape an array, with its elements in row-major order.

    Args:
        operand: an array.
        new_sizes: the shape of the result, an integer or a sequence of integers; no size is negative.
        dimensions: a permutation of the axes to apply first; None for none.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of shape `new_sizes` and the dtype of `operand`.

    Raises:
        TypeError: the number of elements differs, a size is negative, or `dimensions` is no permutation of the axes.

    Example:
        >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0))
        Array([1, 3, 2, 4], dtype=int32)
    """
    shape = canonical_shape(new_sizes)
    if dimensions is not None:
        dimensions = integer_tuple("dimensions", dimensions)
        if dimensions == tuple(range(operand_aval(operand).ndim)):
            dimensions = None
    if out_sharding is not None:
        return bind_with_sharding(reshape, (operand,), (shape, dimensions), out_sharding)
    if dimensions is None and shape and isinstance(operand, Array) and operand.shape == shape:
        return operand
    return reshape.bind_positional((operand,), (shape, dimensions, None))


def _transpose_abstract(operand: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(operand.ndim)):
        raise TypeError(
            f"transpose: permutation {permutation} is not a permutation of the axes of an operand of shape "
            f"{operand.shape}"
        )
    return ShapedArray(tuple([operand.shape[i] for i in permutation]), operand.dtype, operand.weak_type)


def _transpose_emit(builder: FunctionBuilder, x: Value, *, permutation: tuple[int, ...]) -> Value:
    return builder.transpose(x, permutation)


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_transpose(cotangent: Array, operand: UndefinedPrimal, *, permutation: tuple[int, ...]) -> Array:
    return transpose.bind_positional((cotangent,), (_inverse(permutation),))


def _transpose_batch(
    mapped: Any, operands: Sequence[Any], axes: Sequence[int], *, permutation: tuple[int, ...]
) -> tuple[Any, int]:
    return transpose.bind_positional(operands, ((axes[0], *shift_past(axes[0], permutation)),)), 0


@linear(
    ("permutation",), sharding=sharding_rules.permute, abstract=_transpose_abstract,
    emit=_transpose_emit, transpose=_transpose_transpose,
    batch=_transpose_batch,
)
def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Transpose an array by a permutation of its axes.

    Args:
        operand: an array.
        permutation: for each axis of the result, its position in `operand`.

    Returns:
        An array of the permuted shape and the dtype of `operand`.

    Raises:
        TypeError: `permutation` is no permutation of the axes.

    Example:
        >>> lax.transpose(jnp.array([[1, 2, 3]]), (1, 0))
        Array([[1],
               [2],
               [3]], dtype=int32)
    """
    permutation = integer_tuple("permutation", permutation)
    if isinstance(operand, Array) and permutation == tuple(range(operand.ndim)):
        return operand
    return transpose.bind_positional((operand,), (permutation,))


def _convert_abstract(operand: ShapedArray, *, new_dtype: np.dtype[Any], weak_type: bool, **_: object) -> ShapedArray:
    if not dtypes.converts(operand.dtype, new_dtype):
        why = "is no array of numbers and " if isinstance(operand.dtype, dtypes.ExtendedDType) else ""
        raise TypeError(
            f"convert_element_type: {operand.str_short(True)} {why}does not convert to {dtypes.full_name(new_dtype)}"
        )
    return ShapedArray(operand.shape, new_dtype, weak_type)


def _convert_emit(builder: FunctionBuilder, x: Value, *, new_dtype: np.dtype[Any], **_: object) -> Value:
    if isinstance(new_dtype, dtypes.ExtendedDType) or isinstance(x.aval.dtype, dtypes.ExtendedDType):
        return x.bitcast(builder.results[0])
    if dtypes.is_complex(x.aval.dtype) and not dtypes.is_complex(new_dtype):
        x = builder.convert(x, dtypes.real_part_dtype(x.aval.dtype))
    if dtypes.is_boolean(new_dtype) and not dtypes.is_boolean(x.aval.dtype):
        return builder.compare("NE", x, builder.broadcast(builder.literal(0, x.aval.update(shape=())), x.aval.shape))
    return builder.convert(x, new_dtype)


def _convert_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, new_dtype: Any, **others: object
) -> tuple[Any, Any]:
    result = convert.bind_positional(primals, (new_dtype, *others.values()))
    of_tangents = dtypes.tangent_dtype(new_dtype)
    if of_tangents is dtypes.float0:
        return result, None
    return result, convert.bind_positional(tangents, (of_tangents, *others.values()))


def _convert_transpose(cotangent: Array, operand: UndefinedPrimal, **_: object) -> list[Any]:
    return [convert_to(cotangent, operand.aval.dtype, operand.aval.weak_type)]


@primitive(
    ("new_dtype", "weak_type", "sharding"), sharding=sharding_rules.same,
    sums=sum_rules.linear_in_all,
    abstract=_convert_abstract, emit=_convert_emit,
    jvp=_convert_jvp, transpose=_convert_transpose, batch=IN_PLACE,
)
def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Convert an array to another dtype.

    Floats are rounded towards zero to integers and clipped to the dtype's range; NaN becomes 0. Integers wrap. Complex
    numbers lose their imaginary part, with a ComplexWarning. A number becomes the boolean x != 0.

    Args:
        operand: an array or a scalar.
        new_dtype: a dtype, its name, a scalar class, or Python's bool, int, float or complex.

    Returns:
        An array of the shape of `operand` and dtype `new_dtype`, strongly typed.

    Raises:
        TypeError: `operand` is no array, or `new_dtype` is no dtype.
        ValueError: `new_dtype` is None.

    Example:
        >>> lax.convert_element_type(jnp.array([1.5, -2.5]), jnp.int32)
        Array([ 1, -2], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: dtype must be specified")
    dtype = requested_dtype(new_dtype)
    if type(operand) in (bool, int, float, complex):
        if type(operand) is complex and not dtypes.is_complex(dtype):
            raise TypeError(f"convert_element_type: the complex number {operand} does not convert to {dtype.name}")
        if type(operand) is not float or not dtypes.is_integer(dtype):
            return array_from_host(np.asarray(operand).astype(dtype), ShapedArray((), dtype))
    elif dtypes.is_complex(aval_of(operand).dtype) and not dtypes.is_complex(dtype):
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
    return convert_to(operand, dtype)


convert = convert_element_type


def convert_to(operand: Any, dtype: Any, weak_type: bool = False) -> Array:
    """Return `operand` converted to a dtype; an array of that type is returned unchanged."""
    aval = aval_of(operand)
    if aval.dtype == dtype and aval.weak_type == weak_type and isinstance(operand, Array):
        return operand
    constant = not isinstance(operand, Array) and not aval.shape
    if constant and dtypes.is_integer(dtype) and dtypes.is_floating(aval.dtype):
        literal = _integer_constant(operand, ShapedArray((), dtype, weak_type))
        if literal is not None:
            return literal
    return convert.bind_positional((operand,), (dtype, weak_type, None))


def materialize_literal(value: Any) -> Array:
    """Return `value`, an array or a literal, as an array."""
    return convert_to(value, value.aval.dtype, value.aval.weak_type) if isinstance(value, Literal) else value


def _integer_constant(value: Any, aval: ShapedArray) -> Array | None:
    """Return a Python or NumPy float as an integer constant; None if a program has to convert it.

    NumPy converts constants, as in jax; floats outside the integer's range convert differently in XLA.
    """
    number = dtypes.cast(value, aval.dtype)
    constant: Array | None = current_trace.get().constant(number, aval)
    return array_from_host(number, aval) if constant is None and isinstance(value, np.generic) else constant


def _sum_transpose(cotangent: Array, operand: UndefinedPrimal, *, axes: tuple[int, ...], **_: object) -> list[Any]:
    shape = operand.aval.shape
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    return [broadcast_in_dim.bind_positional((cotangent,), (shape, kept, operand.aval.explicit_sharding))]


@Reduction.define(SUM, NUMBER, sharded=True, jvp=LINEAR, transpose=_sum_transpose, sums=sum_rules.summation)
def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Return the sum over axes.

    Example:
        >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
        Array([4, 6], dtype=int32)
    """
    ...


def zeros(aval: ShapedArray) -> Array:
    """Return an array of zeros of type `aval`; a user's dtype defines its own zero."""
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return broadcast_in_dim.bind_positional((aval.dtype.zero(),), (aval.shape, (), aval.explicit_sharding))
    scalar = ShapedArray((), aval.dtype, aval.weak_type, varying=aval.varying, manual_sums=aval.manual_sums)
    zero = Literal(dtypes.scalar_type_of(aval.dtype)(0) if aval.dtype.isbuiltin == 1 else aval.dtype.type(0), scalar)
    return broadcast_in_dim.bind_positional((zero,), (aval.shape, (), aval.explicit_sharding))


def broadcast_like(x: Array, example: Array) -> Array:
    """Return `x`, a scalar or an array of the rank of `example`, broadcast to the shape of `example`."""
    own, aval = aval_of(x).shape, aval_of(example)
    shape = aval.shape
    if own == shape:
        return x
    return broadcast_in_dim.bind_positional(
        (x,), (shape, tuple(range(len(shape))) if own else (), aval.explicit_sharding)
    )


def unbroadcast(cotangent: Array, aval: ShapedArray) -> Array:
    """Return `cotangent` summed to the shape of `aval`, the type of an operand that was broadcast."""
    shape = aval_of(cotangent).shape
    if shape == aval.shape:
        return cotangent
    if not aval.shape:
        return reduce_sum(cotangent, tuple(range(len(shape))))
    axes = tuple([i for i, (n, own) in enumerate(zip(shape, aval.shape, strict=True)) if n != own])
    return reshape.bind_positional((reduce_sum(cotangent, axes),), (aval.shape, None, aval.explicit_sharding))


def move_axis(x: Array, source: int, destination: int) -> Array:
    """Return `x` with one axis moved."""
    if source == destination:
        return x
    order = [i for i in range(aval_of(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose.bind_positional((x,), (tuple(order),))


def with_axis(
    x: Array, axis: int | None, size: int, destination: int = 0, sharding: NamedSharding | None = None
) -> Array:
    """Return `x` with its mapped axis at `destination`; an unmapped operand is repeated along a new axis.

    sharding: the sharding of the repeated operand over explicit mesh axes.
    """
    if axis is not None:
        return move_axis(x, axis, destination)
    shape = aval_of(x).shape
    repeated = (*shape[:destination], size, *shape[destination:])
    return broadcast_in_dim.bind_positional(
        (x,), (repeated, tuple([i for i in range(len(repeated)) if i != destination]), sharding)
    )
