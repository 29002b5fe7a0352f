"""Conversion of Python's and NumPy's data to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.devices import device_put
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, check_unmasked, not_an_array, scalar_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import DType
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.mesh import context_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.elementwise.comparisons import ne
from xtrace._src.runtime.arrays import ConcreteArray, get_layout
from xtrace._src.runtime.transfer import array_from_dlpack, constant_from_host, dlpack_device, scalar_to_host
from xtrace.numpy.arrays.creation import SCALARS, python_value, warn_of_lost_part, zeros
from xtrace.numpy.operands import place_of, scalar_of

_ARRAYS_AND_SCALARS = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)


def array(
    object: Any, dtype: Any = None, *args: Any, copy: bool | None = True, order: str | None = "K", ndmin: int = 0,
    device: Any = None, out_sharding: Any = None,
) -> Array:
    """Return `object` as an array.

    Args:
        object: a scalar, an array, a NumPy array, or nested sequences of these; Python scalars give weakly typed
            arrays.
        dtype: the dtype of the result; None for the dtype of the object.
        args: `copy`, `order` and `ndmin` by position, which is deprecated.
        copy: whether NumPy's data are copied; None to copy only where needed.
        order: the order in memory, ``"K"``, since arrays have none of their own.
        ndmin: the least number of axes; axes of size 1 are added in front.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        NotImplementedError: `order` is not None, ``"K"``, ``"C"`` or ``"A"``.
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
    return _make_array(object, dtype, copy, order, ndmin, device, out_sharding)


def asarray(
    a: object, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return `a` as an array: `a` itself if it is an array of the dtype.

    Args:
        a: a scalar, an array, a NumPy array, or nested sequences of these.
        dtype: the dtype of the result; None for the dtype of `a`.
        order: the order in memory, ``"K"`` or None, since arrays have none of their own.
        copy: True for a copy; False to share a NumPy array's memory where possible; None to copy only where needed.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        NotImplementedError: `order` is not None, ``"K"``, ``"C"`` or ``"A"``.
        OverflowError: an integer does not fit into the dtype.
        TypeError: `a` is text or another object without numbers.
        ValueError: nested sequences have different lengths, or hold None.

    Example:
        >>> jnp.asarray(np.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    return _make_array(a, dtype, copy, order, 0, device, out_sharding)


def _make_array(
    value: object, dtype: object, copy: bool | None, order: object, ndmin: int, device: object,
    out_sharding: object,
) -> Array:
    check_memory_order(order)
    device = place_of(device, out_sharding, 0 if out_sharding is None else _count_axes(value))
    if device is None and config.mesh.value is not None and not isinstance(value, Array):
        # Arrays are made on the current mesh; lists may contain arrays.
        device = _find_current_sharding(value)
    wanted = requested_dtype(dtype)
    if wanted is not None and isinstance(value, (Array, np.ndarray)):
        warn_of_lost_part(value.dtype, wanted)
    if isinstance(device, NamedSharding) and _is_plain(value) and current_trace.get() is base_trace:
        # Copied shard by shard, since the whole array may not fit on one device.
        value, wanted, copy = device_put(value if wanted is None else dtypes.cast(value, wanted), device), None, None
    result = _convert_value(value, wanted, copy)
    if ndmin > result.ndim:
        result = shapes.expand_dims(result, range(ndmin - result.ndim))
    return result if device is None else device_put(result, place_of(device, out_sharding, result.ndim))


def check_memory_order(order: object) -> None:
    """Raise NotImplementedError for an order in memory other than row by row."""
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(
            f"{called_function()}: order must be 'K'; arrays have no memory order of their own, got {abbreviate(order)}"
        )


def _count_axes(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return 1 + (_count_axes(value[0]) if value else 0)
    return np.ndim(value)


def _is_plain(value: object) -> bool:
    return type(value) is np.ndarray and value.dtype.kind in "biufc"


def _find_current_sharding(value: object) -> NamedSharding | None:
    """Return the sharding of a new array on the current mesh; None if `value` holds arrays, or while tracing."""
    leaves = pytree.tree_leaves(value) if isinstance(value, (list, tuple)) else ()
    if current_trace.get() is not base_trace or any(isinstance(leaf, Array) for leaf in leaves):
        return None
    return NamedSharding(context_mesh(), PartitionSpec())


def _convert_value(value: Any, dtype: np.dtype[Any] | None, copy: bool | None, *, function: str = "") -> Array:
    kind = type(value)
    if kind in SCALARS:
        return _convert_scalar(value, scalar_aval(kind), dtype)
    if isinstance(value, Array):
        wanted, weak = (value.dtype, value.weak_type) if dtype is None else (dtype, False)
        if copy:
            value = shapes.copy.bind(value)
        return convert_to(value, wanted, weak)
    if value is None:
        raise ValueError(
            f"{function or called_function()}: None is not a valid value; give a number, an array or a list of them"
        )
    if hasattr(value, "__jax_array__"):
        return _convert_value(value.__jax_array__(), dtype, copy, function=function)
    if isinstance(value, (np.ndarray, np.generic)):
        check_unmasked(value)
        return _convert_numpy(np.asarray(value), dtype, copy, function=function)
    if isinstance(value, (bool, int, float, complex)):
        return _convert_scalar(value, aval_of(value), dtype)
    if is_symbolic(value):
        return _convert_value(value.to_array(), dtype, None, function=function)
    if isinstance(value, (list, tuple)):
        return _convert_list(value, dtype, function=function)
    if isinstance(value, (str, bytes)) and dtype is None:
        raise TypeError(f"{function or called_function()}: {not_an_array(value)}")
    try:
        # NumPy converts objects with __array__, the buffer protocol or a length; text and fractions to a given dtype.
        data = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{function or called_function()}: {not_an_array(value)} ({error})") from None
    return _convert_numpy(data, dtype, copy, value, function=function)


def _convert_scalar(value: object, aval: ShapedArray, dtype: np.dtype[Any] | None) -> Array:
    if dtype is not None:
        aval = ShapedArray((), dtype)
    return constant_from_host(scalar_to_host(python_value(value, aval.dtype), aval), aval)


def _convert_numpy(
    value: np.ndarray[Any, Any], dtype: np.dtype[Any] | None, copy: bool | None, given: object = None, *,
    function: str = "",
) -> Array:
    try:
        own = dtypes.canonicalize(value.dtype, config.enable_x64.value)
    except TypeError:
        if dtype is None:
            raise TypeError(
                f"{function or called_function()}: {not_an_array(value if given is None else given)}; its NumPy dtype "
                f"is {value.dtype}"
            ) from None
        own, value = dtype, _convert_objects(value if given is None else given, dtype, function=function)
    return constant_from_host(value, ShapedArray(value.shape, own if dtype is None else dtype), copy=copy is not False)


def _convert_objects(value: Any, dtype: np.dtype[Any], *, function: str = "") -> np.ndarray[Any, Any]:
    """Return what NumPy converts to a dtype: text is read, and fractions are divided."""
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError) as error:
        reason = f"{abbreviate(value)} does not convert to {dtype.name}"
        if "inhomogeneous" in str(error):
            reason = "a nested list must be rectangular, all rows of one length"
        raise type(error)(f"{function or called_function()}: {reason}: {error}") from None


def _convert_list(value: object, dtype: np.dtype[Any] | None, *, function: str = "") -> Array:
    kinds: dict[Any, None] = {}
    traced = _collect_types(value, kinds, dtype is not None, function=function)
    if dtype is None:
        x64 = config.enable_x64.value
        if kinds:
            pairs = tuple((x.dtype, x.weak_type) if isinstance(x, ShapedArray) else _find_scalar_type(x) for x in kinds)
            dtype = type_promotion.promote(pairs, *config.promotion_settings())[0]
        else:
            dtype = dtypes.default_float(x64)
    if traced:
        return _stack_nested(value, dtype, function=function)
    data = _convert_objects(value, dtype, function=function)
    return constant_from_host(data, ShapedArray(data.shape, dtype))


def _find_scalar_type(kind: Any) -> tuple[Any, bool]:
    aval = scalar_aval(kind)
    return aval.dtype, aval.weak_type


def _collect_types(value: Any, kinds: dict[Any, None], any_type: bool, *, function: str = "") -> bool:
    """Collect the types of the leaves of a nested list; return whether one of them is an array or tracer.

    any_type: whether objects that NumPy may convert to a dtype, such as text, are leaves, too.
    """
    types = set(map(type, value))
    if types <= SCALARS:
        kinds.update(dict.fromkeys(types))
        return False
    traced = False
    for item in value:
        kind = type(item)
        if kind in SCALARS:
            kinds[kind] = None
        elif isinstance(item, (list, tuple)):
            traced |= _collect_types(item, kinds, any_type, function=function)
        elif isinstance(item, Array) or hasattr(item, "__jax_array__") or is_symbolic(item):
            array = item if isinstance(item, Array) else _convert_value(item, None, None, function=function)
            kinds[array.aval] = None
            traced = True
        else:
            if not isinstance(item, _ARRAYS_AND_SCALARS) and (
                hasattr(item, "__array__") or isinstance(item, Sequence)
            ):
                item = np.asarray(item)
            try:
                check_unmasked(item)
                kinds[aval_of(item)] = None
            except TypeError as error:
                if any_type and item is not None:
                    continue
                # As in jax, the error class for a bad value, not for a bad type.
                error_class = ValueError if item is None else TypeError
                raise error_class(
                    f"{function or called_function()}: a list element is neither a number nor an array: {error}"
                ) from None
    return traced


def _stack_nested(value: Any, dtype: DType, *, function: str = "") -> Array:
    """Return a nested list with arrays or tracers among its leaves as one array."""
    parts = [
        _stack_nested(item, dtype, function=function) if isinstance(item, (list, tuple))
        else _convert_value(item, dtype, None, function=function)
        for item in value
    ]
    if not parts:
        return zeros((0,), dtype)
    if len({p.shape for p in parts}) > 1:
        raise TypeError(
            f"{function or called_function()}: a nested list must be rectangular; its elements have the shapes "
            f"{', '.join(str(p.shape) for p in parts)}"
        )
    return concatenate([shapes.expand_dims(p, (0,)) for p in parts], 0)


def from_sequence(value: Any) -> Any:
    """Return a list or a tuple as an array, and any other value unchanged."""
    return _make_array(value, None, None, None, 0, None, None) if isinstance(value, (list, tuple)) else value


def to_array_operand(value: Any, position: int = 0, *, function: str = "") -> Array:
    """Return an operand as an array or tracer; TypeError names the function and the bad argument."""
    if isinstance(value, Array):
        return value
    operand_aval(value, position, function=function)
    return asarray(value)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: object = None) -> Array:
    """Return `x` with elements of another dtype; complex to real drops the imaginary part and warns.

    Args:
        x: an array or a scalar.
        dtype: the dtype; None for the default floating dtype.
        copy: whether a copy is made where the dtype is the same.
        device: the device or its position; None for the default device.

    Returns:
        An array of the shape of `x`.

    Raises:
        TypeError: `x` is neither an array nor a scalar, or `dtype` is not a dtype.

    Example:
        >>> jnp.astype(jnp.array([1.5, 2.5]), jnp.int32)
        Array([1, 2], dtype=int32)
    """
    return convert_array(x, dtype, copy, device)


def convert_array(
    x: ArrayLike, dtype: DTypeLike, copy: bool = False, device: object = None, *, function: str = ""
) -> Array:
    """Return `x` converted to `dtype` as `astype` does; messages name `function`."""
    aval = operand_aval(x, 0, function=function)
    wanted = requested_dtype(float if dtype is None else dtype, function=function)
    if dtypes.is_complex(aval.dtype) and dtypes.is_boolean(wanted):
        # A conversion would drop the imaginary part first.
        return _nonzero(x if isinstance(x, Array) else asarray(x))
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(wanted):
        warn_user(
            f"{function or called_function()}: conversion from {aval.dtype.name} to {wanted.name} drops the imaginary "
            "part, and will be an error; take x.real or x.imag first", DeprecationWarning,
        )
    result = _convert_value(x, wanted, copy, function=function)
    return result if device is None else device_put(result, device)


@inline_jit
def _nonzero(x: Array) -> Array:
    return ne(x, scalar_of(0, x.dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return the array behind an object with the DLPack protocol.

    Args:
        x: an object with ``__dlpack__``.
        device: the device or its position; None for the device that the memory is on.
        copy: whether the memory is copied; None to copy only memory that XLA cannot use: not aligned to 64 bytes, or
            with gaps.

    Returns:
        An array that shares memory with `x`, on the host or on a GPU, or a copy.

    Raises:
        BufferError: the dtype is not known.
        TypeError: `x` has no ``__dlpack__``.
        ValueError: xtrace does not use the device of the memory, or `copy` is False and a copy is needed.

    Example:
        >>> jnp.from_dlpack(np.array([1.0, 2.0], np.float32))
        Array([1., 2.], dtype=float32)
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {type(x)} has no __dlpack__; xtrace.numpy.asarray copies any array-like")
    here = dlpack_device(x)
    place = here if device is None else device
    if here.platform != "cpu" or (type(x) is ConcreteArray and get_layout(x) is not None):
        if copy is False and place is not here:
            raise ValueError(f"from_dlpack: memory on {here} cannot be shared on {place}; copy=None copies it there")
        return _make_array(array_from_dlpack(x, here, copy), None, None, None, 0, place, None)
    try:
        view = np.from_dlpack(x)
    except (BufferError, RuntimeError):
        # NumPy lacks the dtype, such as bfloat16.
        return _make_array(array_from_dlpack(x, here, copy), None, copy, None, 0, device, None)
    array = _make_array(view, None, bool(copy), None, 0, place, None)
    if copy is False and array.unsafe_buffer_pointer() != view.ctypes.data:
        raise ValueError(
            "from_dlpack: this memory cannot be shared, as it is not aligned to 64 bytes, has gaps, has a dtype that "
            "is narrowed, or is asked for on another device; copy=None copies where it must"
        )
    return array
