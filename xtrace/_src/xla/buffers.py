"""Device buffers: putting host data on a device, viewing it from the host, sharing through dlpack."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client

from xtrace._src.xla import guards, versions
from xtrace._src.xla.clients import Device
from xtrace._src.xla.processes import distributed
from xtrace._src.xla.shardings import DeviceSharding

Buffer: TypeAlias = _jax.ArrayImpl
# The end of an execution, on which one can wait.
Token: TypeAlias = _jax.ShardedToken
_REPLICATED = xla_client.HloSharding.replicate()


class _OnDevice(_jax.SingleDeviceSharding):
    """An array on one device. jaxlib reads these members at every transfer, so they are cheap."""

    memory_kind: str | None = None

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _REPLICATED


@functools.cache  # interned
def transfer_sharding(device: Any, memory_kind: str | None = None) -> _jax.SingleDeviceSharding:
    """Return jaxlib's sharding for data in a device's own memory, or in memory of another kind."""
    sharding = _OnDevice(device) if memory_kind is None else _OnDevice(device, memory_kind=memory_kind)
    sharding.memory_kind = memory_kind
    return sharding


def _sharding_for(aval: Any, device: Device) -> _jax.SingleDeviceSharding:
    kind = aval.memory_space.kind
    return transfer_sharding(device) if kind == "device" else transfer_sharding(device, kind)


def get_layout(buffer: Buffer) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]:
    """Return a buffer's axes in memory order, the slowest first, its tiles, and the bits of a packed element, or 0."""
    return read_layout(buffer._pjrt_layout)


def read_layout(layout: Any) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]:
    """Return the parts of one of jaxlib's layouts, in the order of `get_layout`."""
    order, _, tiles = str(layout).strip("{}").partition(":")
    minor_to_major = tuple([int(n) for n in order.split(",") if n.strip()])
    bits = re.search(_PACKED, tiles)
    groups = re.findall(_TILES, re.sub(_PACKED, "", tiles))
    tiling = tuple([tuple([int(n) for n in group.split(",")]) for group in groups])
    return minor_to_major[::-1], tiling, int(bits[1]) if bits else 0


def default_layout(shape: Sequence[int], dtype: np.dtype[Any], device: Device) -> Any:
    """Return jaxlib's default layout of arrays on a device."""
    return device.client.get_default_layout(dtype, tuple(shape), device)


# As in {1,0:T(8,128)(2,1)E(4)}.
_TILES = r"\((\d+(?:,\d+)*)\)"
_PACKED = r"E\((\d+)\)"


def unstorable_error(name: str) -> TypeError:
    """Return the error for arrays of 6-bit floats: jaxlib's runtime lacks this dtype of NumPy and StableHLO."""
    return TypeError(
        f"arrays of dtype {name} cannot be put on a device: jaxlib's runtime does not know the type. Use "
        "float8_e4m3fn, float8_e5m2 or float4_e2m1fn, or integers for the bits"
    )


def put(aval: Any, array: np.ndarray[Any, Any], device: Device, *, copy: bool = True) -> Buffer:
    """Put a NumPy array of `aval`'s shape and dtype on `device`; without `copy`, its memory is shared if possible.

    Raises TypeError for a dtype that the runtime lacks.
    """
    if aval.dtype.kind == "V" and aval.dtype.name.startswith("float6"):
        raise unstorable_error(aval.dtype.name)
    return _jax.batched_device_put(
        aval, _sharding_for(aval, device), [array], [device], True, force_copy=copy, enable_x64=True
    )


def put_scalar(aval: Any, value: Any, device: Device) -> Buffer:
    """Put a Python float, int or bool on `device`; `aval` has rank 0, a dtype of the same kind, and 32 or 64 bits."""
    wide = aval.dtype.itemsize == 8
    return put_many(aval, transfer_sharding(device), [value], [device], True, True, ZERO_COPY, wide)


# For generated code: put_many(aval, sharding, [value], [device], committed, force_copy, ZERO_COPY, enable_x64).
put_many = _jax.batched_device_put
ZERO_COPY = _jax.HostBufferSemantics.ZERO_COPY

# The runtime shares memory only at addresses that are multiples of this number of bytes.
ALIGNMENT = 16


def put_pieces(
    aval: Any, sharding: DeviceSharding, pieces: Sequence[np.ndarray[Any, Any] | Buffer], devices: list[Device], *,
    copy: bool = False,
) -> Buffer:
    """Put the pieces of an array of `aval`'s shape on `devices`, the devices of this process.

    Without `copy`, the memory of NumPy arrays is shared if possible, so nobody may change them later. An array for
    several devices needs memory that can be shared: in C's order, and aligned to `ALIGNMENT`.
    """
    return put_many(aval, sharding, pieces, devices, True, copy, ZERO_COPY, True)


def get_pieces(buffer: Buffer) -> list[Buffer]:
    """Return the pieces of a buffer on a mesh: one buffer for each device of this process."""
    sharding = buffer._sharding
    if sharding.num_devices == 1:
        # jaxlib's only piece is the buffer itself, whose sharding is that of the mesh.
        (device,) = sharding.device_set
        target = transfer_sharding(device, sharding.memory_kind)
        return [put_many(buffer.aval, target, [buffer], [device], True, enable_x64=True)]
    with _jax_hidden():
        return list(buffer._arrays)


def move(aval: Any, buffer: Buffer, device: Device) -> Buffer:
    """Copy a buffer to a device, into the memory space of `aval`."""
    # The kind is always given: with a sharding without one, the data would stay in its present memory.
    target = transfer_sharding(device, aval.memory_space.kind)
    return _jax.batched_device_put(aval, target, [buffer], [device], True, enable_x64=True)


# Without the interpreter's lock, jaxlib cannot release Python objects, such as the tracebacks of executions and waits.
# It keeps them in a list, which this function empties; it is called after each execution and wait.
collect_garbage = _jax.collect_garbage


def wait_for(awaited: Buffer | Token) -> None:
    """Wait until a buffer's data is ready, or a token's execution has ended; raise the error of the computation."""
    try:
        if distributed.connections:
            distributed.wait_for(awaited)
        else:
            awaited.block_until_ready()
    finally:
        collect_garbage()


def is_ready(buffer: Buffer) -> bool:
    """Return whether a buffer's data is ready."""
    ready = bool(buffer.is_ready())
    collect_garbage()
    return ready


def result_handler(aval: object, place: Device | DeviceSharding) -> Any:
    """Return the handler that makes a buffer of type `aval` from an executable's result, on one or several devices."""
    sharding = place if isinstance(place, DeviceSharding) else _sharding_for(aval, place)
    if versions.RESULT_HANDLER_SKIPS_CHECKS:
        return _jax.array_result_handler(aval, sharding, True, True)
    return _jax.array_result_handler(aval, sharding, True)


def to_host(buffer: Buffer, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Wait for a buffer's data, and return a read-only NumPy array of it; on CPU, a view that shares the memory."""
    # jaxlib ends the process if asked for the memory of a buffer for which there was none; waiting raises the error.
    wait_for(buffer)
    if dtype.kind in "biufc" and dtype.isbuiltin == 1 and buffer.platform() == "cpu":
        view = np.asarray(buffer)
        if view.dtype.kind == "O":
            # NumPy makes an array of objects if the axes are not in order.
            view = _view_buffer(buffer)
    else:
        # NumPy's buffer protocol supports neither small dtypes nor the memory of other devices.
        view = _view_buffer(buffer)
    view.flags.writeable = False
    # An array that owns its data can be made writeable again; a view of a read-only array cannot.
    return view if view.base is not None else view.view()


def _view_buffer(buffer: Buffer) -> np.ndarray[Any, Any]:
    """Return the data as a NumPy array, for any dtype, device and layout."""
    with _jax_hidden():
        view: np.ndarray[Any, Any] = buffer._single_device_array_to_np_array_did_copy()[0]
    return view


def copy(buffer: Buffer, target: DeviceSharding | None = None) -> Buffer:
    """Return a copy of a buffer, with the same pieces in new memory, on the same devices or on those of `target`."""
    sharding = buffer._sharding if target is None else target
    if isinstance(sharding, DeviceSharding) and not sharding.is_fully_addressable:
        # jaxlib copies to devices of this process only.
        copies = [copy(piece) for piece in get_pieces(buffer)]
        return put_pieces(buffer.aval, sharding, copies, [piece._sharding._device for piece in copies])
    with guards.lift_guards() if target is None else contextlib.nullcontext():
        (copied,) = _jax.batched_copy_array_to_devices_with_sharding(
            [buffer], [sharding._internal_device_list], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY]
        )
    return copied


_hiding = threading.Lock()
# jaxlib imports the second module for each piece of an array; hiding it, too, makes that import fail sooner.
_HIDDEN = ("jax", "jax._src.sharding_impls")


@contextlib.contextmanager
def _jax_hidden() -> Iterator[None]:
    """Keep jaxlib from importing jax inside the block: it tries to if jax is installed, and does not need it.

    If `jax` is xtrace, jaxlib would give pieces xtrace's shardings, so the module that has these is hidden then.
    """
    package = sys.modules.get("jax")
    if package is not None and package is not sys.modules["xtrace"]:
        yield
        return
    names = _HIDDEN if package is None else _HIDDEN[1:]
    modules: dict[str, Any] = sys.modules
    with _hiding:
        before = {name: modules[name] for name in names if name in modules}
        modules.update(dict.fromkeys(names))
        try:
            yield
        finally:
            for name in names:
                if modules.get(name, ...) is None:
                    del modules[name]
            modules.update(before)


def to_dlpack(buffer: Buffer, stream: Any = None) -> Any:
    """Return a dlpack capsule that shares the buffer's memory; BufferError for an element type that dlpack lacks."""
    try:
        # A clone is shared, because deleting a buffer whose memory is lent out aborts the process.
        return _jax.buffer_to_dlpack_managed_tensor(buffer.clone(), stream=stream)
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"dlpack cannot share this array: {error}") from None


# Maps numbers of dlpack.h to platforms.
DLPACK_PLATFORMS = {1: "cpu", 2: "cuda", 10: "rocm"}


def from_dlpack(
    source: Any, device: Any, must_copy: bool | None = None
) -> tuple[Buffer, tuple[int, ...], np.dtype[Any]]:
    """Return a buffer on `device` that shares the memory of an object with ``__dlpack__``, or has a copy of it.

    The other results are its shape and dtype, which the buffer lacks. Raises BufferError for data that XLA does not
    accept, and if a copy is needed although `must_copy` is False.
    """
    is_on_host = device.platform == "cpu"
    # The object gets XLA's stream, so that its pending work ends before XLA reads the memory.
    stream = None if is_on_host else device.get_stream_for_external_ready_events()
    try:
        capsule = source.__dlpack__() if is_on_host else source.__dlpack__(stream=stream)
        shape, dtype = _read_capsule_type(capsule)
        wanted_copy = (must_copy,) if is_on_host else ()
        with _jax_hidden():
            buffer = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, *wanted_copy)
        return (copy(buffer) if must_copy and not is_on_host else buffer), shape, dtype
    except (_jax.JaxRuntimeError, ValueError, LookupError) as error:
        raise BufferError(f"dlpack: XLA cannot take this memory: {error}") from None


class _DlpackTensor(ctypes.Structure):
    """The first fields of a dlpack tensor, from dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


# The kinds of elements, at their numbers in dlpack.h; the kinds after `bool` are names of whole dtypes.
_DLPACK_KINDS = (
    "int", "uint", "float", "", "bfloat", "complex", "bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn",
)
_read_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_read_capsule.restype, _read_capsule.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _read_capsule_type(capsule: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of the tensor in a dlpack capsule."""
    tensor = ctypes.cast(_read_capsule(capsule, b"dltensor"), ctypes.POINTER(_DlpackTensor)).contents
    kind = _DLPACK_KINDS[tensor.code]
    name = kind if kind == "bool" or "_" in kind else f"{kind}{tensor.bits}"
    return tuple(tensor.shape[: tensor.ndim]), np.dtype(getattr(ml_dtypes, name, name))
