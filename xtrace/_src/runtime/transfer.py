"""Transfers of data from host to device, between devices, and from device to host; the default device."""

from __future__ import annotations

import contextlib
import copyreg
import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import (
    ShapedArray,
    ShapeDtypeStruct,
    aval_of,
    aval_of_value,
    check_fits,
    physical_aval,
    scalar_aval,
)
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.memory_layout import Format, Layout, is_default, is_met
from xtrace._src.core.shardings.shardings import Sharding, SingleDeviceSharding, explicit_part, pieces
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.tables import Table, memoize
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.core.typed_numbers import with_dtype
from xtrace._src.runtime import staging_memory
from xtrace._src.runtime.arrays import (
    DELETED,
    ConcreteArray,
    device_sharding,
    get_layout,
    known_layout,
    mesh_sharding,
    new_array,
    placement,
)
from xtrace._src.xla import buffers, clients, guards
from xtrace._src.xla.buffers import Buffer
from xtrace._src.xla.clients import Device
from xtrace._src.xla.processes import distributed

with late_modules(globals()):
    from xtrace._src.runtime import resharding

clients.set_request(lambda: clients.Request(
    config.platforms.value or config.platform_name.value or config.xla_backend.value or None,
    config.num_cpu_devices.value, config.cpu_enable_async_dispatch.value, config.cuda_visible_devices.value,
    config.pjrt_client_create_options.value, config.cpu_collectives.value,
    (config.cpu_local_topology_timeout.value, config.cpu_global_topology_timeout.value),
    config.rocm_visible_devices.value,
))
config.num_cpu_devices.watch(
    lambda count, everywhere: clients.check_not_started("cpu", "jax_num_cpu_devices") if everywhere else None
)
for _guard, _setting in zip(
    guards.GUARDS, (*config.transfer_guards(), config.array_garbage_collection_guard), strict=True
):
    _setting.watch(functools.partial(guards.set_level, _guard))
config.transfer_guard_host_to_device.watch(staging_memory.note_guard)
config.thread_guard.watch(distributed.guard_thread)

_first_device: list[Device] = []


def first_device() -> Device:
    """Return the default device of data without the setting ``jax_default_device``."""
    if not _first_device:
        _first_device.append(clients.local_devices()[0])
    return _first_device[0]


def forget_first_device() -> None:
    """Forget the first device, before clients are made anew; existing arrays record their present device."""
    for array in gc.get_objects():
        if type(array) is ConcreteArray and hasattr(array, "signature") and isinstance(array.signature, ShapedArray):
            array.signature = placement(array.aval, array._place, False)
    _first_device.clear()


def signature_on(aval: ShapedArray, device: Device, committed: bool, layout: Layout | None = None) -> Any:
    """Return the `signature` of an array of type `aval` on `device`; `layout` is None for the default one."""
    if layout is None and not committed and device is first_device():
        return aval
    return placement(aval, device, committed, layout)


def current_device() -> Device:
    """Return the device of new uncommitted data: the setting ``jax_default_device``, or the first device."""
    chosen: Device | str | None = config.default_device.value
    if chosen is None:
        return first_device()
    return clients.local_devices(chosen)[0] if isinstance(chosen, str) else chosen


def committed_sharding(value: object) -> Sharding | None:
    """Return the sharding to which an array, or a description of one, is committed; None for other values."""
    if type(value) is ConcreteArray:
        return value.sharding if value.committed else None
    sharding = value.sharding if isinstance(value, ShapeDtypeStruct) else None
    return sharding.sharding if isinstance(sharding, Format) else sharding


def committed_layout(value: object) -> Layout | None:
    """Return the layout to which an array, or a description of one, is committed; None for the default one."""
    if type(value) is ConcreteArray:
        return get_layout(value) if value.committed else None
    layout: Any = value.format.layout if isinstance(value, ShapeDtypeStruct) else None
    return None if layout is None or is_default(layout) else layout


def sharding_like(value: object, shape: tuple[int, ...], weak_type: bool) -> Sharding | None:
    """Return the sharding of a new array like `value`, of the given shape and weak type; None for the default."""
    sharding = None if weak_type else committed_sharding(value)
    if sharding is None or value.shape == shape or sharding.is_fully_replicated:  # type: ignore[attr-defined]
        return sharding
    return None


def committed_device(value: object) -> Device | None:
    """Return the one device to which an array, or a description of one, is committed; None if there is none."""
    return getattr(committed_sharding(value), "device", None)


def array_from_host(
    value: np.ndarray[Any, Any], aval: ShapedArray, device: Device | None = None, *, copy: bool = True
) -> ConcreteArray:
    """Return a concrete array of type `aval` with the data of a NumPy array, copied unless `copy` is false.

    For an extended dtype, `value` is the array of the storage. For float0, which has no data, the result is a NumPy
    array.
    """
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)  # type: ignore[return-value]
    where = current_device() if device is None else device
    stored = physical_aval(aval)
    if value.dtype != stored.dtype:
        value = dtypes.cast(value, stored.dtype)
    if not (value.flags.c_contiguous and value.flags.aligned):
        value = np.ascontiguousarray(value)
    buffer = buffers.put(stored, value, where, copy=copy)
    return new_array(aval, buffer, signature_on(aval, where, device is not None))


def array_from_pieces(
    value: np.ndarray[Any, Any], aval: ShapedArray, sharding: Sharding, *, shared: bool = False
) -> ConcreteArray:
    """Return an array on a mesh with the data of a NumPy array; for an extended dtype, the array of the storage.

    shared: whether the array may share the memory of `value`, which nobody must change then.
    """
    stored = physical_aval(aval)
    if value.dtype != stored.dtype:
        value, shared = dtypes.cast(value, stored.dtype), True
    division = _divide(sharding, aval.shape)
    parts = [value[index] for index in division.indices]
    if division.numbers is not None:
        # The runtime accepts one piece for several devices only if it can share its memory.
        parts = [np.asarray(x, order="C") if shared else np.array(x, order="C") for x in parts]
        parts = [np.array(x) if x.ctypes.data % buffers.ALIGNMENT else x for x in parts] if shared else parts
        parts = [parts[i] for i in division.numbers]
    elif 0 in value.strides:
        # The runtime cannot read some arrays whose elements share memory.
        parts, shared = [np.array(x, order="C") for x in parts], True
    copy = division.numbers is None and not shared
    buffer = buffers.put_pieces(stored, device_sharding(sharding), parts, division.devices, copy=copy)
    return new_array(aval, buffer, placement(aval, sharding))


class _Division(NamedTuple):
    """The pieces of an array for the devices of this process.

    `indices` are the slices of the different pieces. `numbers` has the number of the piece of each device; None if each
    device has its own piece.
    """

    devices: list[Device]
    indices: list[tuple[slice, ...]]
    numbers: list[int] | None


@memoize(4096)
def _divide(sharding: Sharding, shape: Shape) -> _Division:
    """Return the pieces of an array of shape `shape`; IndivisibleError if its parts do not divide the shape."""
    sharding.shard_shape(shape)
    local = sharding.addressable_devices
    known: dict[Any, int] = {}
    indices: list[tuple[slice, ...]] = []
    devices, numbers = [], []
    for device, (index, _) in zip(sharding.devices, pieces(sharding, shape), strict=True):
        if device in local:
            key = tuple([s.start for s in index])
            if key not in known:
                known[key] = len(indices)
                indices.append(index)
            devices.append(device)
            numbers.append(known[key])
    return _Division(devices, indices, numbers if len(indices) < len(devices) else None)


def array_on_mesh(
    aval: ShapedArray, sharding: Sharding, parts: Sequence[Any], devices: Sequence[Device],
    layout: Layout | None = None,
) -> ConcreteArray:
    """Return the array with the given pieces on the devices of this process.

    parts: buffers, or NumPy arrays that nobody else uses. layout: the layout of all buffers.
    """
    buffer = buffers.put_pieces(physical_aval(aval), device_sharding(sharding), list(parts), list(devices))
    return new_array(aval, buffer, placement(aval, sharding, layout=layout))


def constant_from_host(value: np.ndarray[Any, Any], aval: ShapedArray, *, copy: bool = True) -> Array:
    """Return NumPy data as an array; under a trace, as a constant of the program."""
    trace = current_trace.get()
    if trace is not base_trace:
        with np.errstate(over="ignore"):
            constant: Array | None = trace.constant(value, aval)
        if constant is not None:
            return constant
    return array_from_host(value, aval, copy=copy)


def dlpack_device(source: Any) -> Device:
    """Return the device of the memory of an object with ``__dlpack_device__``; ValueError for an unknown device.

    Host memory belongs to the first CPU device, independently of the default device.
    """
    kind, number = source.__dlpack_device__()
    platform = buffers.DLPACK_PLATFORMS.get(int(kind))
    if platform == "cpu":
        return clients.local_devices("cpu")[0]
    try:
        devices = [] if platform is None else clients.local_devices(platform)
    except RuntimeError:
        devices = []
    for device in devices:
        if device.local_hardware_id == number:
            return device
    raise ValueError(
        f"from_dlpack: the memory is on the dlpack device ({int(kind)}, {number}), "
        f"{'a platform' if platform is None else f'a device of {platform}'} that xtrace does not use here; copy the "
        "data to the host first"
    )


def array_from_dlpack(source: Any, device: Device, copy: bool | None) -> ConcreteArray:
    """Return a concrete array with the memory of an object with ``__dlpack__`` on `device`, or a copy of it.

    Raises BufferError if XLA does not accept the memory, or needs a copy and `copy` is False.
    """
    buffer, shape, dtype = buffers.from_dlpack(source, device, copy)
    aval = ShapedArray(shape, dtype)
    layout = known_layout(buffer._pjrt_layout, aval.shape, aval.dtype, device)
    return new_array(aval, buffer, signature_on(aval, device, True, layout))


def scalar_to_host(value: bool | int | float | complex, aval: ShapedArray) -> np.ndarray[Any, Any]:
    """Return a Python scalar as a NumPy array of rank 0 and type `aval`; OverflowError if an integer does not fit.

    For an extended dtype, the result is the storage of an element, filled with the scalar; for float0, it is a boolean.
    """
    if aval.dtype == dtypes.float0:
        return np.zeros((), dtypes.bool_)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return np.full(aval.dtype.trailing_shape, value, aval.dtype.physical)
    # The four-bit types wrap around, as in JAX.
    if isinstance(value, int) and not isinstance(value, bool) and aval.dtype.kind in "iu":
        check_fits(value, aval.dtype)
    return dtypes.cast(value, aval.dtype)


_NUMBERS = bool, int, float, complex
_SCALARS = frozenset(_NUMBERS)
_scalars = Table(1024)
_SCALARS_PER_SIGNATURE = 64
# Maps Python types to the dtypes that jaxlib makes from their numbers.
_AS_PYTHON = {
    float: (np.dtype(np.float32), np.dtype(np.float64)), int: (np.dtype(np.int32), np.dtype(np.int64)),
    bool: (np.dtype(bool),),
}


def scalar_array(value: Any, aval: ShapedArray, device: Device) -> ConcreteArray:
    """Return a scalar on a device; it may be shared, so it must not be donated or given to users."""
    # True equals 1, so the type is a part of the key; 0.0 equals -0.0, so the key of a zero is its text.
    kind = type(value)
    cacheable = kind in _AS_PYTHON
    key = (value or repr(value), kind, aval, device)
    scalar = _scalars.get(key) if cacheable else None
    if scalar is None or scalar.signature is DELETED:
        if cacheable and aval.dtype in _AS_PYTHON[kind]:
            if kind is int:
                check_fits(value, aval.dtype)
            buffer = buffers.put_scalar(aval, value, device)
        else:
            buffer = buffers.put(physical_aval(aval), scalar_to_host(value, aval), device)
        scalar = new_array(aval, buffer, signature_on(aval, device, False))
        if cacheable:
            _scalars.remember(key, scalar)
    return scalar


def scalar_buffers(aval: ShapedArray, device: Any) -> Callable[[Any], Any]:
    """Return the function from Python numbers, which must fit, to buffers of their type `aval`, which may be shared."""
    known = Table(_SCALARS_PER_SIGNATURE, nested=True)

    def get_buffer(value: Any) -> Buffer:
        key = value or repr(value)
        buffer = known.get(key)
        if buffer is None:
            buffer = buffers.put_scalar(aval, value, device)
            known.remember(key, buffer)
        return buffer

    return get_buffer


def to_operand(value: Any) -> ConcreteArray:
    """Return `value` as `to_concrete` does, for a program that does not donate operands: scalars may be shared."""
    kind = type(value)
    if kind in _SCALARS:
        return scalar_array(value, scalar_aval(kind), current_device())
    if kind is Literal and type(value.value) in _SCALARS:
        return scalar_array(value.value, value.aval, current_device())
    return to_input(value)


def as_value(leaf: object) -> Any:
    """Return an argument as a value that can have a tangent: numbers become arrays, while tracing typed numbers."""
    if current_trace.get() is not base_trace:
        return with_dtype(leaf) if type(leaf) in _SCALARS else leaf
    return leaf if isinstance(leaf, Tracer) else to_operand(leaf)


def to_input(value: object, device: Device | None = None) -> ConcreteArray:
    """Return `value` as an input of a program: as `to_concrete` does, but float0 values become arrays of booleans."""
    concrete: Any = to_concrete(value, device)
    if type(concrete) is ConcreteArray:
        return concrete
    where, aval = current_device() if device is None else device, aval_of(concrete)
    buffer = buffers.put(physical_aval(aval), dtypes.cast(concrete, dtypes.bool_), where)
    return new_array(aval, buffer, signature_on(aval, where, False))


def to_concrete(value: Any, device: Device | None = None) -> ConcreteArray:
    """Return `value` (an array, a NumPy value, a Python scalar, a literal) as a concrete array on a device.

    A value of float0 becomes a NumPy array, which is on no device.
    """
    if type(value) is ConcreteArray:
        return value
    if isinstance(value, Tracer):
        raise TypeError(f"a concrete value is needed; got the traced value {abbreviate(value)}")
    if type(value) is Literal:
        value, aval = value.value, value.aval
    else:
        aval = aval_of_value(value)
    if isinstance(value, _NUMBERS) and not isinstance(value, np.generic) and aval.dtype != dtypes.float0:
        where = current_device() if device is None else device
        buffer = buffers.put(physical_aval(aval), scalar_to_host(value, aval), where)
        return new_array(aval, buffer, signature_on(aval, where, False))
    return array_from_host(np.asarray(value), aval, device)


def to_constant(value: object) -> ConcreteArray:
    """Return `value` as `to_concrete` does; while a function is traced, transfer guards allow it."""
    if current_trace.get() is base_trace or config.transfer_guard_host_to_device.value in (None, "allow"):
        return to_concrete(value)
    with guards.mark_explicit("put"):
        return to_concrete(value)


def to_array(value: object) -> Array:
    """Return an operand as an array: an array or a tracer unchanged, any other value as a constant."""
    if isinstance(value, Array):
        return value
    return value.to_array() if is_symbolic(value) else to_constant(value)


def constant_on(value: object, device: Device) -> ConcreteArray:
    """Return a constant of a program, committed to `device`; a NumPy array, which nobody changes, shares its memory."""
    if type(value) is np.ndarray and value.shape:
        return array_from_host(value, aval_of_value(value), device, copy=False)
    return in_layout(put_on(value, device), None)


def put_on(value: object, device: Device, space: MemorySpace | None = None) -> ConcreteArray:
    """Return `value` committed to `device`, copied if necessary, in the memory `space`; None keeps the kind."""
    array = to_concrete(value, device)
    if type(array) is not ConcreteArray:
        return array
    aval = array.aval.update(sharding=None) if space is None else array.aval.update(memory_space=space, sharding=None)
    signature = placement(aval, device, layout=get_layout(array))
    if mesh_sharding(array) is not None:
        return _put_piece_on(array, aval, device)
    if array._place == device and aval is array.aval:
        return new_array(aval, array._live_buffer(), signature)
    if get_layout(array) is not None:
        # A copy between CPU devices has the default layout, although it reports another one.
        return in_layout(put_on(in_layout(array, None), device, space), get_layout(array))
    if array._place.client is device.client:
        return new_array(aval, buffers.move(physical_aval(aval), array._live_buffer(), device), signature)
    return array_from_host(array.physical_array(), aval, device)


def _put_piece_on(array: ConcreteArray, aval: ShapedArray, device: Device) -> ConcreteArray:
    """Return an array on a mesh, committed to one device; a replicated array gives its copy on the device."""
    if array.is_fully_replicated and aval.memory_space is array.aval.memory_space:
        for buffer in buffers.get_pieces(array._live_buffer()):
            if buffer._sharding._device == device:
                return new_array(aval, buffer, placement(aval, device, layout=get_layout(array)))
    with guards.between_devices():
        return array_from_host(array.physical_array(), aval, device)


def put_at(value: Any, sharding: Sharding, aval: ShapedArray | None = None) -> ConcreteArray:
    """Return `value`, of type `aval` if that is known, committed to `sharding`.

    Raises IndivisibleError if a dimension is not a multiple of its number of parts.
    """
    if isinstance(sharding, SingleDeviceSharding):
        return put_on(value, sharding.device, find_memory_space(sharding.memory_kind))
    own = mesh_sharding(value) if type(value) is ConcreteArray else None
    if sharding.is_unreduced and not (own is not None and own.is_equivalent_to(sharding, value.ndim)):
        return _put_unreduced(value, sharding, aval)
    if type(value) is not ConcreteArray:
        if type(value) is Literal:
            value, aval = value.value, value.aval
        if aval is None or type(value) is ShapeDtypeStruct:
            aval = aval_of_value(value)
        if isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
            host = scalar_to_host(value, aval)
        else:
            host = np.asarray(value)
        return array_from_pieces(host, place_type(aval, sharding), sharding)
    sharding.shard_shape(value.shape)
    aval = place_type(value.aval, sharding)
    if own is not None and own.is_equivalent_to(sharding, value.ndim):
        return new_array(aval, value._live_buffer(), placement(aval, sharding, layout=get_layout(value)))
    if own is not None and _has_same_pieces(own, sharding, value.ndim):
        copied = buffers.copy(in_layout(value, None)._live_buffer(), device_sharding(sharding))
        return in_layout(new_array(aval, copied, placement(aval, sharding)), get_layout(value))
    if own is not None and _needs_program(own, sharding):
        return new_array(aval, resharding.reshard(value, sharding), placement(aval, sharding))
    # An array joined from its pieces is new memory, which can be shared.
    is_joined = own is not None and not own.is_fully_replicated
    # Arrays of rank 0 may be numbers from the host, for which no guard is needed.
    with guards.between_devices() if aval.shape else contextlib.nullcontext():
        array = array_from_pieces(value.physical_array(), aval, sharding, shared=is_joined)
    # As in JAX, copies keep the layout, and pieces do not.
    return in_layout(array, get_layout(value)) if sharding.is_fully_replicated and own is None else array


def _put_unreduced(value: Any, sharding: Any, aval: ShapedArray | None) -> ConcreteArray:
    """Return `value` as an unreduced array: the first device along the axes has the piece, the others have zeros."""
    mesh, spec = sharding.mesh, sharding.spec
    value = in_layout(value, None) if type(value) is ConcreteArray else value
    array = put_at(value, sharding.update(spec=spec.update(unreduced=frozenset())), aval)
    first = set(mesh.devices[tuple([slice(1 if n in spec.unreduced else None) for n in mesh.axis_names])].flat)
    stored = physical_aval(array.aval)
    zeros = np.zeros(sharding.shard_shape(stored.shape), stored.dtype)
    held = [(piece, piece._sharding._device) for piece in buffers.get_pieces(array.buffer)]
    with guards.lift_guards():
        parts = [piece if device in first else buffers.put(stored, zeros, device) for piece, device in held]
        return array_on_mesh(place_type(array.aval, sharding), sharding, parts, [device for _, device in held])


def place_type(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    """Return the type of an array of type `aval` after it is put in `sharding`."""
    space = find_memory_space(sharding.memory_kind)
    return aval.update(sharding=explicit_part(sharding, aval.ndim), memory_space=space)


def _has_same_pieces(old: Sharding, new: Sharding, ndim: int) -> bool:
    """Whether each device has the same piece as the device at its position in the other sharding."""
    if len(old.devices) != len(new.devices) or not old.is_fully_addressable or old.is_unreduced:
        return False
    if old.memory_kind != new.memory_kind:
        return False
    return old.devices[0].client is new.devices[0].client and old.tiles(ndim) == new.tiles(ndim)


def _needs_program(old: Sharding, new: Sharding) -> bool:
    """Whether a compiled program reshards an array. On CPU the host does it, because it shares the devices' memory."""
    if old.devices != new.devices or old.memory_kind != new.memory_kind:
        return False
    return old.devices[0].platform != "cpu" or not old.is_fully_addressable or old.is_unreduced or new.is_unreduced


def in_memory(array: ConcreteArray, space: MemorySpace, committed: bool) -> ConcreteArray:
    """Return a copy of `array` in the memory `space` of its devices. committed: whether the copy is committed."""
    own = mesh_sharding(array)
    if own is not None:
        return put_at(array, own.with_memory_kind(space.kind))
    aval = array.aval.update(memory_space=space)
    buffer = buffers.move(physical_aval(aval), in_layout(array, None)._live_buffer(), array._place)
    return in_layout(new_array(aval, buffer, signature_on(aval, array._place, committed)), get_layout(array))


def in_layout(array: ConcreteArray, layout: Any) -> ConcreteArray:
    """Return an array in a layout, None for the default one; the array itself if it has this layout."""
    own = get_layout(array)
    if own is layout or isinstance(array.aval.dtype, dtypes.ExtendedDType):
        # Keys have the default layout, as in JAX.
        return array
    if layout is not None and has_layout(array, layout):
        return array
    return resharding.relayout(array, None if layout is not None and is_default(layout) else layout)


def has_layout(array: ConcreteArray, layout: Layout) -> bool:
    """Return whether an array has a layout."""
    own = get_layout(array)
    return (own is None and is_default(layout)) or is_met(layout, own or array.format.layout)  # type: ignore[arg-type]


def put_in_format(value: Any, format: Format, aval: ShapedArray | None = None) -> ConcreteArray:
    """Return `value` as `put_at` does, in the layout of a format; without one, in the default layout."""
    array = put_at(value, format.sharding, aval)  # type: ignore[arg-type]
    return in_layout(array, format.layout) if type(array) is ConcreteArray else array


def _restore_array(value: np.ndarray[Any, Any], weak_type: bool, extended: Any = None) -> ConcreteArray:
    """Return a pickled array; a 64-bit dtype becomes its 32-bit form unless 64-bit dtypes are enabled."""
    aval = ShapedArray(value.shape, dtypes.canonicalize(value.dtype, config.enable_x64.value), weak_type)
    if extended is not None:
        aval = ShapedArray(value.shape[: value.ndim - len(extended.trailing_shape)], extended)
    return array_from_host(value, aval)


def _reduce_array(array: ConcreteArray) -> Any:
    extended = array.dtype if isinstance(array.dtype, dtypes.ExtendedDType) else None
    return _restore_array, (array.physical_array(), array.weak_type, extended)


# Unpickling an array needs the default device, which is defined here.
copyreg.pickle(ConcreteArray, _reduce_array)
