"""Making arrays: from Python and NumPy data, filled, counted, spaced; and spreading them over a shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, canonical_shape, converted, reshape
from xtrace._src.api.devices import device_put
from xtrace._src.api.inline_jit import inline_jit, to_number_operand
from xtrace._src.api.operators import add, multiply, power, subtract, true_divide
from xtrace._src.api.promotion import as_inexact, cast_constant, check_broadcast, check_mapped_ranks
from xtrace._src.api.tracing import abstract_leaf
from xtrace._src.core import config, dtypes, explain
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.annotations import ArrayLike, DTypeLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, check_unmasked, not_an_array, scalar_aval
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.integers import to_integer
from xtrace._src.core.ir import Literal
from xtrace._src.core.requested_dtypes import requested_dtype
from xtrace._src.core.tables import memoize
from xtrace._src.core.trace import Tracer
from xtrace._src.ops import elementwise
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.runtime.transfer import array_from_dlpack, committed_device, constant_from_host, scalar_to_host
from xtrace._src.xla import clients
from xtrace.numpy.operands import broadcast_operand_to, cast_to, refuse, scalar_of, to_known_integer, type_of

__all__ = [
    "arange", "array", "asarray", "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "empty",
    "empty_like", "eye", "from_dlpack", "full", "full_like", "geomspace", "identity", "indices", "linspace",
    "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]

_SCALARS = frozenset((bool, int, float, complex))
_DLPACK_CPU = 1


def array(
    object: Any, dtype: Any = None, *args: Any, copy: bool | None = True, order: str | None = "K", ndmin: int = 0,
    device: Any = None, out_sharding: Any = None,
) -> Any:
    """Return `object` as an array.

    Args:
        object: a scalar, an array, a NumPy array, or nested sequences of these; Python scalars give weakly typed
            arrays.
        dtype: the dtype of the result; None for that of the object.
        args: `copy`, `order` and `ndmin` by position, which is deprecated.
        copy: whether NumPy's data are copied; None for only where needed.
        order: the order in memory, ``"K"``, since arrays have none of their own.
        ndmin: the least number of axes; axes of size 1 are added in front.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array.

    Raises:
        NotImplementedError: `order` is another one.
        OverflowError: an integer does not fit into the dtype.
        TypeError: `object` is text or another object without numbers.
        ValueError: nested sequences have different lengths, or hold None.

    Example:
        >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.float32)
        Array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    if len(args) > 3:
        raise TypeError(f"array: at most 5 arguments are given by position, got {2 + len(args)}")
    if args:
        warn_user("array: give copy, order and ndmin by keyword; by position they are deprecated", DeprecationWarning)
        given = dict(zip(("copy", "order", "ndmin"), args, strict=False))
        copy, order, ndmin = given["copy"], given.get("order", order), given.get("ndmin", ndmin)
    return _array("array", object, dtype, copy, order, ndmin, device, out_sharding)


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Return `a` as an array, itself if it is one of the dtype.

    Args:
        a: a scalar, an array, a NumPy array, or nested sequences of these.
        dtype: the dtype of the result; None for that of `a`.
        order: the order in memory, ``"K"`` or None, since arrays have none of their own.
        copy: True for a copy; False to share a NumPy array's memory where that is possible; None for a copy where
            needed.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array.

    Raises:
        NotImplementedError: `order` is another one.
        OverflowError: an integer does not fit into the dtype.
        TypeError: `a` is text or another object without numbers.
        ValueError: nested sequences have different lengths, or hold None.

    Example:
        >>> jnp.asarray(np.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return _array("asarray", a, dtype, copy, order, 0, device, out_sharding)


def _array(
    function: str, value: Any, dtype: Any, copy: bool | None, order: Any, ndmin: int, device: Any, out_sharding: Any
) -> Array:
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"{function}: order must be 'K'; arrays have no memory order of their own, got {abbreviated(order)}"
        )
    refuse(function, out_sharding=out_sharding)
    wanted = requested_dtype(function, dtype)
    if wanted is not None and isinstance(value, (Array, np.ndarray)):
        warn_of_lost_part(value.dtype, wanted)
    result = _from_value(function, value, wanted, copy)
    if ndmin > result.ndim:
        result = reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return result if device is None else device_put(result, device)


def _from_value(function: str, value: Any, dtype: np.dtype[Any] | None, copy: bool | None) -> Array:
    kind = type(value)
    if kind in _SCALARS:
        return _from_scalar(value, scalar_aval(kind), dtype)
    if isinstance(value, Array):
        wanted, weak = (value.dtype, value.weak_type) if dtype is None else (dtype, False)
        if copy:
            value = shapes.copy.bind(value)
        return _converted(value, wanted, weak)
    if value is None:
        raise ValueError(f"{function}: None is not a valid value; give a number, an array or a list of them")
    if hasattr(value, "__jax_array__"):
        return _from_value(function, value.__jax_array__(), dtype, copy)
    if isinstance(value, (np.ndarray, np.generic)):
        check_unmasked(value)
        return _from_numpy(function, np.asarray(value), dtype, copy)
    if isinstance(value, (bool, int, float, complex)):
        return _from_scalar(value, aval_of(value), dtype)
    if isinstance(value, (list, tuple)):
        return _from_list(function, value, dtype)
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{function}: {not_an_array(value)}")
    try:
        # Whatever has __array__, the buffer protocol or a length: what NumPy makes of it.
        data = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{function}: {not_an_array(value)} ({error})") from None
    return _from_numpy(function, data, dtype, copy, value)


def _from_scalar(value: Any, aval: ShapedArray, dtype: np.dtype[Any] | None) -> Array:
    if dtype is not None:
        aval = ShapedArray((), dtype)
    return constant_from_host(scalar_to_host(_python_value("array", value, aval.dtype), aval), aval)


def _python_value(function: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a Python scalar as the one whose class fits `dtype`; TypeError for a complex one made real."""
    if dtypes.is_boolean(dtype):
        return bool(value)
    if dtypes.is_complex(dtype):
        return complex(value)
    if isinstance(value, complex):
        raise TypeError(f"{function}: the complex number {value} cannot become {dtype.name}; take its .real")
    return int(value) if dtypes.is_integer(dtype) else float(value)


def _from_numpy(
    function: str, value: np.ndarray[Any, Any], dtype: np.dtype[Any] | None, copy: bool | None, given: Any = None
) -> Array:
    try:
        own = dtypes.canonicalize(value.dtype, config.enable_x64.value)
    except TypeError:
        raise TypeError(
            f"{function}: {not_an_array(value if given is None else given)}; its NumPy dtype is {value.dtype}"
        ) from None
    return constant_from_host(value, ShapedArray(value.shape, own if dtype is None else dtype), copy=copy is not False)


def _from_list(function: str, value: Any, dtype: np.dtype[Any] | None) -> Array:
    kinds: dict[Any, None] = {}
    traced = _collect(function, value, kinds)
    if dtype is None:
        x64 = config.enable_x64.value
        if kinds:
            pairs = tuple((x.dtype, x.weak_type) if isinstance(x, ShapedArray) else _pair(x) for x in kinds)
            dtype = dtypes.promote(pairs, *config.promotion())[0]
        else:
            dtype = dtypes.default_float(x64)
    if traced:
        return _stacked(function, value, dtype)
    try:
        data = np.asarray(value, dtype)
    except ValueError as error:
        raise ValueError(f"{function}: a nested list must be rectangular, all rows of one length: {error}") from None
    return constant_from_host(data, ShapedArray(data.shape, dtype))


def _pair(kind: Any) -> tuple[Any, bool]:
    aval = scalar_aval(kind)
    return aval.dtype, aval.weak_type


def _collect(function: str, value: Any, kinds: dict[Any, None]) -> bool:
    """Gather the types of the leaves of a nested list; return whether one of them is an array or tracer."""
    types = set(map(type, value))
    if types <= _SCALARS:
        kinds.update(dict.fromkeys(types))
        return False
    traced = False
    for item in value:
        kind = type(item)
        if kind in _SCALARS:
            kinds[kind] = None
        elif isinstance(item, (list, tuple)):
            traced |= _collect(function, item, kinds)
        elif isinstance(item, Array) or hasattr(item, "__jax_array__"):
            kinds[item.aval if isinstance(item, Array) else _from_value(function, item, None, None).aval] = None
            traced = True
        else:
            if not isinstance(item, (np.ndarray, np.generic, bool, int, float, complex)) and hasattr(item, "__array__"):
                item = np.asarray(item)
            try:
                check_unmasked(item)
                kinds[aval_of(item)] = None
            except TypeError as error:
                # As jax's: the class of an unusable value, not that of an unusable type.
                kind = ValueError if item is None else TypeError
                raise kind(f"{function}: a list element is no number or array: {error}") from None
    return traced


def _stacked(function: str, value: Any, dtype: Any) -> Array:
    """Return a nested list with arrays or tracers among its leaves as one array."""
    parts = [
        _stacked(function, item, dtype) if isinstance(item, (list, tuple)) else _from_value(function, item, dtype, None)
        for item in value
    ]
    if not parts:
        return zeros((0,), dtype)
    if len({p.shape for p in parts}) > 1:
        raise TypeError(
            f"{function}: a nested list must be rectangular; its elements have the shapes "
            f"{', '.join(str(p.shape) for p in parts)}"
        )
    return shapes.concatenate([reshape(p, (1, *p.shape)) for p in parts], 0)


def _converted(value: Any, dtype: np.dtype[Any], weak: bool) -> Array:
    if value.aval.dtype == dtype and value.aval.weak_type == weak:
        return value
    return converted(value, dtype, weak)


def to_array_operand(function: str, value: Any, position: int = 0) -> Array:
    """Return an operand as an array or tracer; a TypeError names the function and the argument that is none."""
    if isinstance(value, Array):
        return value
    type_of(function, value, position)
    return asarray(value)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """Return `x` with elements of another dtype; complex to real drops the imaginary part and warns.

    Args:
        x: an array or a scalar.
        dtype: the dtype; None for the default floating dtype.
        copy: whether a copy is made where the dtype is the same.
        device: the device or its position; None for the default device.

    Returns:
        An array of the shape of `x`.

    Raises:
        TypeError: `x` is no array and no scalar, or `dtype` is no dtype.

    Example:
        >>> jnp.astype(jnp.array([1.5, 2.5]), jnp.int32)
        Array([1, 2], dtype=int32)
    """
    return convert_array("astype", x, dtype, copy, device)


def convert_array(function: str, x: ArrayLike, dtype: DTypeLike, copy: bool = False, device: Any = None) -> Array:
    """Return `x` with elements of type `dtype`; what `astype` does, for a caller of any name."""
    aval = type_of(function, x)
    wanted = requested_dtype(function, float if dtype is None else dtype)
    if dtypes.is_complex(aval.dtype) and dtypes.is_boolean(wanted):
        # Unlike a conversion, which drops the imaginary part first.
        return _nonzero(x if isinstance(x, Array) else asarray(x))
    result = _from_value(function, x, wanted, copy)
    return result if device is None else device_put(result, device)


@inline_jit
def _nonzero(x: Array) -> Array:
    return elementwise.ne(x, scalar_of(0, x.dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return the array behind an object that speaks the DLPack protocol.

    Args:
        x: an object with ``__dlpack__``.
        device: the device or its position; None for the default device.
        copy: whether the memory is copied; None for only where XLA cannot use it: it is not aligned to 64 bytes, or
            has gaps.

    Returns:
        An array that shares host memory with `x`, or a copy.

    Raises:
        BufferError: the dtype is not known.
        TypeError: `x` has no ``__dlpack__``.
        ValueError: the memory is on another device, or `copy` is False and a copy is needed.

    Example:
        >>> jnp.from_dlpack(np.array([1.0, 2.0], np.float32))
        Array([1., 2.], dtype=float32)
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {type(x)} has no __dlpack__; xtrace.numpy.asarray copies any array-like")
    if x.__dlpack_device__()[0] != _DLPACK_CPU:
        raise ValueError(
            f"from_dlpack: only host memory can be shared, got the dlpack device {x.__dlpack_device__()}; copy the "
            "data to the host first"
        )
    try:
        view = np.from_dlpack(x)
    except (BufferError, RuntimeError):
        # A type that NumPy has not, such as bfloat16.
        return _array("from_dlpack", array_from_dlpack(x, copy), None, copy, None, 0, device, None)
    # The memory is that of the first CPU, whatever new data goes to.
    place = clients.local_devices("cpu")[0] if device is None else device
    array = _array("from_dlpack", view, None, bool(copy), None, 0, place, None)
    if copy is False and array.unsafe_buffer_pointer() != view.ctypes.data:
        raise ValueError(
            "from_dlpack: this memory cannot be shared, as it is not aligned to 64 bytes, has gaps, has a dtype that "
            "is narrowed, or is asked for on another device; copy=None copies where it must"
        )
    return array


def _fill(shape: tuple[int, ...], value: Any, dtype: np.dtype[Any], weak: bool, device: Any) -> Any:
    """Return the array whose elements are all the Python scalar `value`."""
    result = broadcast_in_dim.bind_positional((Literal(value, ShapedArray((), dtype, weak)),), (shape, (), None))
    return result if device is None else device_put(result, device)


def _zero_or_one(function: str, number: int, shape: Any, dtype: Any, device: Any, out_sharding: Any) -> Array:
    refuse(function, out_sharding=out_sharding)
    wanted = requested_dtype(function, float if dtype is None else dtype)
    return _fill(canonical_shape(function, shape), _python_value(function, number, wanted), wanted, False, device)


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of zeros.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is no integer or traced, or `dtype` is no dtype.

    Example:
        >>> jnp.zeros(2)
        Array([0., 0.], dtype=float32)
    """
    return _zero_or_one("zeros", 0, shape, dtype, device, out_sharding)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of ones.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is no integer or traced, or `dtype` is no dtype.

    Example:
        >>> jnp.ones(2)
        Array([1., 1.], dtype=float32)
    """
    return _zero_or_one("ones", 1, shape, dtype, device, out_sharding)


def empty(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of zeros, since there are no uninitialised arrays.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is no integer or traced, or `dtype` is no dtype.

    Example:
        >>> jnp.empty(2)
        Array([0., 0.], dtype=float32)
    """
    return _zero_or_one("empty", 0, shape, dtype, device, out_sharding)


def full(
    shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of one value.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        fill_value: the value, a scalar or an array that broadcasts to `shape`.
        dtype: the dtype; None for that of the value, with its weak type.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of `shape`.

    Raises:
        TypeError: a length is no integer or traced, or `dtype` is no dtype.
        ValueError: `fill_value` does not broadcast to `shape`.

    Example:
        >>> jnp.full((2, 2), 7)
        Array([[7, 7],
               [7, 7]], dtype=int32, weak_type=True)
    """
    refuse("full", out_sharding=out_sharding)
    aval = type_of("full", fill_value, 1)
    wanted = requested_dtype("full", dtype)
    weak = wanted is None and aval.weak_type
    return _filled("full", canonical_shape("full", shape), fill_value, aval, wanted or aval.dtype, weak, device)


def _filled(
    function: str, shape: tuple[int, ...], value: Any, aval: ShapedArray, dtype: np.dtype[Any], weak: bool, device: Any
) -> Array:
    if type(value) in _SCALARS:
        literal = _wrapped(function, value, dtype)
        if literal is not None:
            return _fill(shape, literal, dtype, weak, device)
    if aval.dtype != dtype or aval.weak_type != weak:
        warn_of_lost_part(aval.dtype, dtype)
        if isinstance(value, np.ndarray) and aval.shape:
            value = cast_constant(value, aval, dtype)
        value = converted(value, dtype, weak)
    result = broadcast_operand_to(function, value, aval.shape, shape)
    return result if device is None else device_put(result, device)


def _wrapped(function: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a Python scalar as one of the class of `dtype`, integers modulo its range; None if that loses a part."""
    if dtypes.is_integer(dtype) and isinstance(value, int):
        if config.enable_x64.value or -(2**63) <= value < 2**63:
            bits = dtypes.bit_width(dtype)
            value = int(value) & (2**bits - 1)
            return value - 2**bits if dtypes.is_signed(dtype) and value >> (bits - 1) else value
        raise OverflowError(f"{function}: Python int {value} too large to convert to {dtype.name}")
    if dtypes.is_integer(dtype) or (isinstance(value, complex) and dtypes.is_floating(dtype)):
        return None
    return _python_value(function, value, dtype)


def warn_of_lost_part(own: Any, wanted: Any) -> None:
    """Warn where complex numbers become real ones."""
    if dtypes.is_complex(own) and not dtypes.is_complex(wanted) and not dtypes.is_boolean(wanted):
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def _like(function: str, a: Any, value: Any, dtype: Any, shape: Shape | None, device: Any, out_sharding: Any) -> Array:
    refuse(function, out_sharding=out_sharding)
    try:
        model = abstract_leaf(a)
    except TypeError:
        model = type_of(function, a)
    wanted = requested_dtype(function, dtype)
    size = model.shape if shape is None else canonical_shape(function, shape)
    fill = type_of(function, value, 1)
    weak = wanted is None and model.weak_type and not fill.shape
    device = committed_device(a) if device is None else device
    return _filled(function, size, value, fill, wanted or model.dtype, weak, device)


def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of zeros in the shape and dtype of another one.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for that of `a`.
        shape: the shape; None for that of `a`.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array.

    Raises:
        TypeError: `a` is none of these, or the dtype or the shape is none.

    Example:
        >>> jnp.zeros_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of ones in the shape and dtype of another one.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for that of `a`.
        shape: the shape; None for that of `a`.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array.

    Raises:
        TypeError: `a` is none of these, or the dtype or the shape is none.

    Example:
        >>> jnp.ones_like(jnp.array([1, 2]))
        Array([1, 1], dtype=int32)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return an array of zeros, since there are no uninitialised arrays, in the shape and dtype of another one.

    Args:
        prototype: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for that of `prototype`.
        shape: the shape; None for that of `prototype`.
        device: the device or its position; None for the default device.

    Returns:
        An array.

    Raises:
        TypeError: `prototype` is none of these, or the dtype or the shape is none.

    Example:
        >>> jnp.empty_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(
    a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None
) -> Array:
    """Return an array of one value in the shape and dtype of another array.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        fill_value: the value, a scalar or an array that broadcasts to the shape.
        dtype: the dtype; None for that of `a`.
        shape: the shape; None for that of `a`.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        An array.

    Raises:
        TypeError: `a` is none of these, or the dtype or the shape is none.
        ValueError: `fill_value` does not broadcast to the shape.

    Example:
        >>> jnp.full_like(jnp.array([1, 2]), 7)
        Array([7, 7], dtype=int32)
    """
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def _size(function: str, name: str, value: Any) -> int:
    number = to_known_integer(function, name, value)
    if number < 0:
        raise ValueError(f"{function}: {name} must not be negative, got {number}")
    return number


def _static_or_array(function: str, name: str, value: Any) -> Any:
    """Return a diagonal's number: a Python int, or an integer array as it is; TypeError for anything else."""
    if isinstance(value, Array) and not value.shape and dtypes.is_integer(value.dtype):
        return value
    return to_integer(function, name, value)


@inline_jit
def diagonal_mask(offset: ArrayLike | None, *, rows: int, columns: int, below: bool) -> Array:
    """Where column - row equals `offset` or, with `below`, is at most that."""
    row = shapes.broadcasted_iota(dtypes.int32, (rows, columns), 0)
    column = shapes.broadcasted_iota(dtypes.int32, (rows, columns), 1)
    return (elementwise.ge if below else elementwise.eq)(add(row, offset), column)


@inline_jit
def _diagonal_ones(offset: ArrayLike, *, rows: int, columns: int, below: bool, dtype: np.dtype[Any]) -> Any:
    return converted(diagonal_mask(offset, rows=rows, columns=columns, below=below), dtype)


def eye(N: Any, M: ArrayLike | None = None, k: Any = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; None for `N`.
        k: the diagonal, above the main one if positive; it may be traced.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.

    Returns:
        An array of shape (N, M).

    Raises:
        TypeError: a size is no integer, or `dtype` is no dtype.
        ValueError: a size is negative.

    Example:
        >>> jnp.eye(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    wanted = requested_dtype("eye", float if dtype is None else dtype)
    rows = _size("eye", "N", N)
    columns = rows if M is None else _size("eye", "M", M)
    result = _diagonal_ones(_static_or_array("eye", "k", k), rows=rows, columns=columns, below=False, dtype=wanted)
    return result if device is None else device_put(result, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Return an identity matrix.

    Args:
        n: the number of rows and columns.
        dtype: the dtype; None for the default floating dtype.

    Returns:
        An array of shape (n, n).

    Raises:
        TypeError: `n` is no integer, or `dtype` is no dtype.
        ValueError: `n` is negative.

    Example:
        >>> jnp.identity(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    size = _size("identity", "n", n)
    wanted = requested_dtype("identity", float if dtype is None else dtype)
    return _diagonal_ones(0, rows=size, columns=size, below=False, dtype=wanted)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on and below a diagonal, and zeros above.

    Args:
        N: the number of rows.
        M: the number of columns; None for `N`.
        k: the diagonal, above the main one if positive.
        dtype: the dtype; None for float32.

    Returns:
        An array of shape (N, M).

    Raises:
        TypeError: a size is no integer, or `dtype` is no dtype.

    Example:
        >>> jnp.tri(2)
        Array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    wanted = dtypes.float32 if dtype is None else requested_dtype("tri", dtype)
    rows = _size("tri", "N", N)
    columns = rows if M is None else _size("tri", "M", M)
    return _diagonal_ones(_static_or_array("tri", "k", k), rows=rows, columns=columns, below=True, dtype=wanted)


@inline_jit
def _triangle(x: ArrayLike, *, offset: int, lower: bool) -> Array:
    aval = type_of("tril", x)
    mask = diagonal_mask(offset if lower else offset - 1, rows=aval.shape[-2], columns=aval.shape[-1], below=True)
    if aval.ndim > 2:
        mask = broadcast_in_dim(mask, aval.shape, (aval.ndim - 2, aval.ndim - 1))
    zero = _fill(aval.shape, _python_value("tril", 0, aval.dtype), aval.dtype, aval.weak_type, None)
    return elementwise.select_n(mask, zero, x) if lower else elementwise.select_n(mask, x, zero)


def _checked_triangle(function: str, m: ArrayLike, k: Any, lower: bool) -> Array:
    if type_of(function, m).ndim < 2:
        raise ValueError(
            f"Argument to xtrace.numpy.{function} must be at least 2D, got shape {type_of(function, m).shape}"
        )
    return _triangle(m, offset=to_integer(function, "k", k), lower=lower)


@inline_jit(static=("k",), public=True)
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with zeros above a diagonal.

    Args:
        m: an array of at least two axes; the last two are matrices.
        k: the diagonal, above the main one if positive.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` has fewer than two axes.

    Example:
        >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _checked_triangle("tril", m, k, True)


@inline_jit(static=("k",), public=True)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with zeros below a diagonal.

    Args:
        m: an array of at least two axes; the last two are matrices.
        k: the diagonal, above the main one if positive.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is no array.
        ValueError: `m` has fewer than two axes.

    Example:
        >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return _checked_triangle("triu", m, k, False)


def _concrete_number(function: str, name: str, value: Any) -> Any:
    """Return a Python or NumPy number; an error names the argument if it is traced, no scalar or complex."""
    if isinstance(value, Tracer):
        raise explain.concretization(value, f"numpy.{function} argument {name}")
    aval = type_of(function, value)
    if aval.shape:
        raise ValueError(f"{function}: arguments must be scalars; got {name} of shape {aval.shape}")
    if dtypes.is_complex(aval.dtype):
        raise ValueError(f"{function}: {name} must be real, got the dtype {aval.dtype.name}")
    if type(value) in _SCALARS:
        return value
    # NumPy's fixed-size integers would wrap in the arithmetic below; floats keep their rounding.
    return int(value) if dtypes.is_integer(aval.dtype) else np.asarray(value)[()]


def _steps(function: str, start: Any, stop: Any, step: Any) -> int:
    """Return how many values there are from `start` to before `stop`."""
    if step == 0:
        raise ZeroDivisionError(f"{function}: step must not be zero")
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    length = (stop - start) / step
    if not math.isfinite(length):
        kind = ValueError if math.isnan(length) else OverflowError
        raise kind(f"{function}: from {start} to {stop} in steps of {step} there is no finite number of values")
    return max(0, math.ceil(length))


def _ramp(first: Any, increment: Any, *, length: int, dtype: np.dtype[Any]) -> Array:
    # Not a unit: fused, the sum would be rounded once, and values that are exact in two steps would not be.
    return add(first, multiply(increment, shapes.iota(dtype, length)))


@inline_jit
def _counted_from(first: ArrayLike, *, length: int, dtype: np.dtype[Any]) -> Array:
    return add(first, shapes.iota(dtype, length))


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *, device: Any = None,
    out_sharding: Any = None
) -> Array:
    """Return evenly spaced numbers in an interval, the end not included.

    Args:
        start: the first number; the only argument is the end, and the first number is 0.
        stop: the end of the interval.
        step: the distance; None for 1.
        dtype: the dtype; None for the one that the arguments promote to.
        device: the device or its position; None for the default device.
        out_sharding: not supported; leave it at None.

    Returns:
        A vector.

    Raises:
        ConcretizationTypeError: an argument is traced.
        ValueError: an argument is no real scalar.
        ZeroDivisionError: `step` is 0.
        OverflowError: there are infinitely many numbers.

    Example:
        >>> jnp.arange(1, 6, 2)
        Array([1, 3, 5], dtype=int32)
    """
    refuse("arange", out_sharding=out_sharding)
    wanted = requested_dtype("arange", dtype)
    if start is None:
        raise TypeError("arange: start must be a number, got None")
    if stop is None:
        start, stop = None, start
    plain = all(x is None or type(x) in _SCALARS for x in (start, stop, step))
    count = _count_of_steps if plain else _count_of_steps.__wrapped__
    length, wanted, host = count(config.cache_key(), start, stop, step, wanted)
    if step is not None:
        result = _ramp(*host, length=length, dtype=wanted)
    elif host[0]:
        result = _counted_from(host[0], length=length, dtype=wanted)
    else:
        result = shapes.iota(wanted, length)
    return result if device is None else device_put(result, device)


@memoize(1024, typed=True)
def _count_of_steps(
    _: Any, start: Any, stop: ArrayLike, step: Any, dtype: np.dtype[Any] | None
) -> tuple[int, Any, list[Any]]:
    """Return how many numbers `arange` gives, their dtype, and the first and the step in it; settings come first."""
    given = {name: value for name, value in (("start", start), ("stop", stop), ("step", step)) if value is not None}
    numbers = {name: _concrete_number("arange", name, value) for name, value in given.items()}
    if dtype is None:
        pairs = tuple((a.dtype, a.weak_type) for a in map(aval_of, given.values()))
        dtype = dtypes.promote(pairs, *config.promotion())[0]
    if dtypes.is_boolean(dtype):
        raise TypeError("arange: does not accept dtype bool; count with integers and compare")
    first, increment = numbers.get("start", 0), numbers.get("step", 1)
    length = _steps("arange", first, numbers["stop"], increment)
    ends = [scalar_to_host(_python_value("arange", n, dtype), ShapedArray((), dtype)) for n in (first, increment)]
    return length, dtype, ends


@inline_jit
def _spaced(
    start: ArrayLike, stop: ArrayLike, *, num: int, endpoint: bool, axis: int, compute: np.dtype[Any],
    dtype: np.dtype[Any],
) -> Any:
    """Return the samples and their distance: start (1 - t) + stop t for t = 0, 1/div …, and `stop` itself last."""
    start, stop = (cast_to(x, type_of("linspace", x), compute) for x in (start, stop))
    avals = [type_of("linspace", x) for x in (start, stop)]
    bounds = check_broadcast("linspace", [a.shape for a in avals])
    start, stop = (
        broadcast_operand_to("linspace", x, a.shape, bounds) for x, a in zip((start, stop), avals, strict=True)
    )
    real = dtypes.real_part_dtype(compute)
    divisions = num - 1 if endpoint else num
    start_column, stop_column = (expand_at(x, bounds, axis) for x in (start, stop))
    if divisions > 0:
        distance = true_divide(subtract(stop, start), divisions)
    else:
        distance = _fill(bounds, _python_value("linspace", math.nan, compute), compute, False, None)
    if divisions <= 0 or num == 1:
        shape = (*bounds[:axis], num, *bounds[axis:])
        samples = broadcast_in_dim(start_column, shape, range(len(shape)))
    else:
        fractions = shapes.iota(real, divisions)
        fractions = elementwise.div(fractions, elementwise.constant_like(fractions, divisions))
        fractions = reshape(fractions, [divisions if i == axis else 1 for i in range(len(bounds) + 1)])
        fractions = converted(fractions, compute)
        samples = add(multiply(start_column, subtract(1, fractions)), multiply(stop_column, fractions))
        if endpoint:
            samples = shapes.concatenate([samples, stop_column], axis)
    if dtypes.is_integer(dtype) and not dtypes.is_integer(compute):
        samples = elementwise.floor(samples)
    return converted(samples, dtype), distance


def expand_at(x: ArrayLike, shape: tuple[int, ...], axis: int) -> Array:
    """Return `x`, of the given shape, with a new axis of size 1 at `axis`."""
    return reshape(x, (*shape[:axis], 1, *shape[axis:]))


def _inexact(*values: Any) -> np.dtype[Any]:
    """Return the inexact dtype that values and dtypes promote to."""
    x64, _, wide = config.promotion()
    pairs = tuple(dtypes.dtype_and_weak(x, x64, wide) for x in values)
    promoted = dtypes.promote(pairs, *config.promotion())[0]
    return as_inexact(promoted, False)[0]


def linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None,
) -> Any:
    """Return evenly spaced samples.

    Args:
        start, stop: the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether `stop` is a sample; otherwise it follows the last one.
        retstep: whether the distance is returned, too.
        dtype: the dtype; integers are rounded down. None for a floating dtype.
        axis: the place of the axis of samples.
        device: the device or its position; None for the default device.

    Returns:
        An array, or with `retstep` a pair of it and the distance.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.linspace(0, 1, 3)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    wanted = requested_dtype("linspace", dtype)
    spaced = _linspace(to_number_operand(start), to_number_operand(stop), num, endpoint, retstep, wanted, axis)
    if device is None:
        return spaced
    return (device_put(spaced[0], device), spaced[1]) if retstep else device_put(spaced, device)


@inline_jit(static=("num", "endpoint", "retstep", "dtype", "axis"), public=True)
def _linspace(
    start: ArrayLike, stop: ArrayLike, num: ArrayLike, endpoint: Any, retstep: Any, dtype: np.dtype[Any] | None,
    axis: int,
) -> Any:
    result, distance = _samples(start, stop, "linspace", num, endpoint, dtype, axis)
    return (result, distance) if retstep else result


def _samples(
    start: ArrayLike, stop: ArrayLike, function: str, num: ArrayLike, endpoint: Any, dtype: np.dtype[Any] | None,
    axis: int,
) -> tuple[Any, Any]:
    count = _size(function, "num", num)
    shapes_given = [type_of(function, x, i).shape for i, x in enumerate((start, stop))]
    rank = len(check_broadcast(function, shapes_given)) + 1
    check_mapped_ranks(function, shapes_given, (0, 0))
    compute = _inexact(start, stop) if dtype is None else _inexact(dtype)
    return _spaced(
        start, stop, num=count, endpoint=bool(endpoint), axis=canonical_axis(function, axis, rank), compute=compute,
        dtype=compute if dtype is None else dtype,
    )


@inline_jit
def _powers(exponents: Array, base: ArrayLike, *, dtype: np.dtype[Any]) -> Array:
    powers = power(cast_to(base, type_of("logspace", base), exponents.dtype), exponents)
    return cast_to(powers, powers.aval, dtype)


def logspace(
    start: ArrayLike, stop: int, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: DTypeLike | None = None,
    axis: int = 0
) -> Array:
    """Return samples that are evenly spaced on a logarithmic scale.

    Args:
        start, stop: the logarithms of the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether `stop` belongs to a sample.
        base: the base of the logarithms.
        dtype: the dtype; None for a floating dtype.
        axis: the place of the axis of samples.

    Returns:
        An array.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.logspace(0, 3, 4, base=2.0)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    wanted = requested_dtype("logspace", dtype)
    start, stop, base = map(to_number_operand, (start, stop, base))
    return _logspace(start, stop, base, num, endpoint, wanted, axis)


@inline_jit(static=("num", "endpoint", "dtype", "axis"), public=True)
def _logspace(
    start: ArrayLike, stop: ArrayLike, base: ArrayLike, num: Any, endpoint: Any, dtype: np.dtype[Any] | None, axis: int
) -> Array:
    compute = _inexact(start, stop) if dtype is None else _inexact(dtype)
    exponents, _ = _samples(start, stop, "logspace", num, endpoint, compute, axis)
    return _powers(exponents, base, dtype=compute if dtype is None else dtype)


def _log10(x: Array) -> Array:
    return multiply(elementwise.log(x), math.log10(math.e))


@inline_jit
def _geometric(
    start: ArrayLike, stop: ArrayLike, *, num: int, endpoint: bool, axis: int, compute: np.dtype[Any],
    dtype: np.dtype[Any],
) -> Array:
    start, stop = (cast_to(x, type_of("geomspace", x), compute) for x in (start, stop))
    # The samples keep the sign of `start`, which the logarithm must not see.
    signs = elementwise.sign(start)
    exponents, _ = _samples(
        _log10(true_divide(start, signs)), _log10(true_divide(stop, signs)), "geomspace", num, endpoint, compute, axis
    )
    bounds = (*exponents.shape[:axis], *exponents.shape[axis + 1 :])
    spread = expand_at(broadcast_operand_to("geomspace", signs, signs.shape, bounds), bounds, axis)
    powers = multiply(spread, _powers(exponents, 10.0, dtype=compute))
    return cast_to(powers, powers.aval, dtype)


@inline_jit(static=("num", "endpoint", "dtype", "axis"), public=True)
def geomspace(
    start: ArrayLike, stop: int, num: Any = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Array:
    """Return samples each of which is the same multiple of the one before.

    Args:
        start, stop: the first and the last sample, scalars or arrays that broadcast.
        num: the number of samples.
        endpoint: whether `stop` is a sample.
        dtype: the dtype; None for a floating dtype.
        axis: the place of the axis of samples.

    Returns:
        An array.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: `num` is negative.

    Example:
        >>> jnp.geomspace(1, 8, 4).round(3)
        Array([1., 2., 4., 8.], dtype=float32)
    """
    wanted = requested_dtype("geomspace", dtype)
    count = _size("geomspace", "num", num)
    rank = (
        len(check_broadcast("geomspace", [type_of("geomspace", x, i).shape for i, x in enumerate((start, stop))])) + 1
    )
    compute = _inexact(start, stop) if wanted is None else _inexact(wanted)
    return _geometric(
        start, stop, num=count, endpoint=bool(endpoint), axis=canonical_axis("geomspace", axis, rank), compute=compute,
        dtype=compute if wanted is None else wanted,
    )


def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """Return an array repeated to fill a shape.

    Args:
        array: an array or a scalar.
        shape: the lengths of the axes, integers, or one integer.
        out_sharding: not supported; leave it at None.

    Returns:
        An array of `shape` and the dtype of `array`.

    Raises:
        TypeError: `array` is no array and no scalar.
        ValueError: the array does not broadcast to `shape`.

    Example:
        >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    refuse("broadcast_to", out_sharding=out_sharding)
    return broadcast_operand_to(
        "broadcast_to", array, type_of("broadcast_to", array).shape, canonical_shape("broadcast_to", shape)
    )


def broadcast_arrays(*args: ArrayLike) -> list[Any]:
    """Return arrays broadcast to their common shape.

    Args:
        args: arrays or scalars.

    Returns:
        A list of arrays.

    Raises:
        TypeError: an operand is no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones(2), jnp.ones((3, 1)))]
        [(3, 2), (3, 2)]
    """
    own = [type_of("broadcast_arrays", x, i).shape for i, x in enumerate(args)]
    shape = check_broadcast("broadcast_arrays", own)
    return [broadcast_operand_to("broadcast_arrays", x, s, shape) for x, s in zip(args, own, strict=True)]


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that arrays of some shapes broadcast to.

    Args:
        shapes: tuples of integers, or integers.

    Returns:
        A tuple of integers.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.broadcast_shapes((2,), (3, 1))
        (3, 2)
    """
    return check_broadcast("broadcast_shapes", [canonical_shape("broadcast_shapes", s) for s in shapes])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Return a grid of coordinates for each of several vectors.

    Args:
        xi: vectors or scalars.
        copy: must be True.
        sparse: whether the grids have size 1 along the axes of the other vectors.
        indexing: ``"xy"``: the second vector runs along the first axis, as in images; ``"ij"``: the first one does.

    Returns:
        A list of arrays.

    Raises:
        TypeError: an operand is no array.
        ValueError: an operand has more than one axis, `copy` is False, or `indexing` is another text.

    Example:
        >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))[0]
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: Valid values for indexing are 'xy' and 'ij', got {abbreviated(indexing)}")
    if not copy:
        raise ValueError("meshgrid: only copy=True is supported, since arrays are immutable")
    own = [type_of("meshgrid", x, i).shape for i, x in enumerate(xi)]
    if any(len(s) != 1 for s in own):
        raise ValueError(f"meshgrid: arguments must be 1D, got shapes {own}")
    rank = len(own)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    full_shape = [0] * rank
    for i, axis in enumerate(order):
        full_shape[axis] = own[i][0]
    return [_along(x, own[i][0], order[i], rank, None if sparse else tuple(full_shape)) for i, x in enumerate(xi)]


def _along(x: Array, size: int, axis: int, rank: int, shape: tuple[int, ...] | None) -> Array:
    """Return the vector `x` along one axis of `rank`, spread over `shape` if that is given."""
    target = shape if shape is not None else tuple([size if i == axis else 1 for i in range(rank)])
    return broadcast_in_dim.bind_positional((x,), (target, (axis,), None))


def indices(dimensions: ShapeLike, dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Return the indices of all elements of an array of a shape.

    Args:
        dimensions: the lengths of the axes.
        dtype: the dtype; None for the default integer.
        sparse: whether arrays have size 1 along the other axes.

    Returns:
        An array with one more axis in front, for the axes; if `sparse`, a tuple of arrays.

    Raises:
        TypeError: a length is no integer.

    Example:
        >>> jnp.indices((2, 2))[0]
        Array([[0, 0],
               [1, 1]], dtype=int32)
    """
    wanted = requested_dtype("indices", int if dtype is None else dtype)
    shape = canonical_shape("indices", dimensions)
    rank = len(shape)
    if sparse:
        return tuple(_along(shapes.iota(wanted, n), n, i, rank, None) for i, n in enumerate(shape))
    return _all_indices(shape=shape, dtype=wanted)


@inline_jit
def _all_indices(*, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    if not shape:
        return _fill((0,), _python_value("indices", 0, dtype), dtype, False, None)
    return shapes.stack([_along(shapes.iota(dtype, n), n, i, len(shape), shape) for i, n in enumerate(shape)])
