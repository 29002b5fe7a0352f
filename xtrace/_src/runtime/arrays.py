"""Concrete arrays: a type and a buffer on a device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractToken, ShapedArray, aval_rules, check_truth, own_aval, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.dtypes import DType
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.shardings.memory_layout import Format, Layout, is_default
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, SingleDeviceSharding, pieces
from xtrace._src.core.tables import memoize
from xtrace._src.xla import buffers
from xtrace._src.xla.buffers import Buffer
from xtrace._src.xla.clients import Device, lowering_platform
from xtrace._src.xla.shardings import DeviceSharding

with late_modules(globals()):
    from xtrace._src.core.shardings import sharding_pictures
    from xtrace._src.runtime import resharding
    from xtrace._src.runtime.callback_errors import find_callback_error


class Shard:
    """The piece of an array on one device.

    Args:
        device: the device.
        index: the slices of the whole array.
        replica_id: the number of this copy, 0 for the first one.
        data: the piece, an array; None for a device of another process.

    Example:
        >>> jnp.ones(2).addressable_shards[0].index
        (slice(None, None, None),)
    """

    __slots__ = ("device", "index", "replica_id", "data")

    def __init__(self, device: Device, index: tuple[slice, ...], replica_id: int, data: ConcreteArray | None) -> None:
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


class Placement:
    """A type and the place of the data; interned, as avals are.

    place: a device, or a sharding over the devices of a mesh. committed: whether the data was put there explicitly.
    layout: the layout in memory; None for the default one.
    """

    __slots__ = ("aval", "place", "committed", "layout", "__weakref__")

    def __init__(
        self, aval: ShapedArray, place: Device | Sharding, committed: bool, layout: Layout | None = None
    ) -> None:
        self.aval, self.place, self.committed, self.layout = aval, place, committed, layout

    def describe_place(self) -> str:
        """Return the text of the place in messages: the device, or the specification of an array on a mesh."""
        return str(self.place.spec if isinstance(self.place, NamedSharding) else self.place)


_placements: WeakValueDictionary[tuple[ShapedArray, Any, bool, Layout | None], Placement] = WeakValueDictionary()
_lock = threading.Lock()


def placement(
    aval: ShapedArray, place: Device | Sharding, committed: bool = True, layout: Layout | None = None
) -> Placement:
    """Return the one `Placement` of these fields; `place` is a device, or a sharding over several."""
    key = (aval, place, committed, layout)
    known = _placements.get(key)
    if known is None:
        with _lock:
            known = _placements.setdefault(key, Placement(*key))
    return known


class _Deleted:
    """The signature of arrays whose memory was freed. No cache has it, so these arrays never reach an executable."""

    def __repr__(self) -> str:
        return "<deleted>"


DELETED = _Deleted()


class ConcreteArray(Array, name_in_jax="jaxlib._jax.ArrayImpl"):
    """An immutable array on a device; its data may not be computed yet.

    `signature` is its key in caches: the aval if the array is in the default place, else a `Placement`; `DELETED` after
    its memory was freed.
    """

    # `__dict__` is for attributes that users set, as on arrays of JAX; it is made by the first one.
    __slots__ = ("aval", "buffer", "signature", "key_uses", "_host", "__weakref__", "__dict__")

    aval: ShapedArray
    buffer: Buffer
    signature: Any
    # The recorded uses of random keys, if their reuse is checked.
    key_uses: Any

    # A Python function here would take a fifth of the time of dispatch, so the makers of arrays set the attributes.
    if not TYPE_CHECKING:
        __init__ = object.__init__

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device explicitly; computations follow committed operands."""
        return type(self.signature) is Placement and self.signature.committed

    @property
    def _place(self) -> Any:
        """The mesh sharding of the array, or else its device."""
        return mesh_sharding(self) or self.buffer._sharding._device

    @property
    def device(self) -> Any:
        """The device of the array; for an array on several devices, its sharding."""
        sharding = self.sharding
        return sharding.devices[0] if sharding.num_devices == 1 else sharding

    def devices(self) -> set[Any]:
        """Return the devices of the array."""
        return self.sharding.device_set

    @property
    def sharding(self) -> Sharding:
        """The placement of the array's pieces on devices."""
        return mesh_sharding(self) or single_device_sharding(
            self.buffer._sharding._device, self.aval.memory_space.kind
        )

    @property
    def format(self) -> Format:
        """The layout of the elements in memory, and the sharding."""
        layout = None if self.is_deleted() else Layout(*buffers.get_layout(self.buffer))
        return Format(layout, self.sharding)

    @property
    def traceback(self) -> Any:
        """The Python traceback of the computation of the array, if the runtime recorded it."""
        return self._live_buffer().traceback

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._live_buffer().__cuda_array_interface__

    @property
    def addressable_shards(self) -> list[Shard]:
        """The pieces on devices of this process."""
        self._live_buffer()
        if mesh_sharding(self) is None:
            return [Shard(self.device, tuple(slice(None) for _ in self.shape), 0, self)]
        return [s for s in self.global_shards if s.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """The pieces on all devices; those of other processes have no data here."""
        sharding = mesh_sharding(self)
        if sharding is None:
            return self.addressable_shards
        aval = self.aval.update(shape=sharding.shard_shape(self.shape), sharding=None)
        arrays = {
            b._sharding._device: new_array(aval, b, placement(aval, b._sharding._device, layout=get_layout(self)))
            for b in buffers.get_pieces(self._live_buffer())
        }
        held = zip(sharding.devices, pieces(sharding, self.shape), strict=True)
        return [Shard(d, index, number, arrays.get(d)) for d, (index, number) in held]

    def addressable_data(self, index: int) -> ConcreteArray:
        """Return the data of one addressable shard."""
        data = self.addressable_shards[index].data
        assert data is not None
        return data

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read all of the array."""
        sharding = mesh_sharding(self)
        return sharding is None or sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        sharding = mesh_sharding(self)
        return sharding is None or sharding.is_fully_replicated

    def block_until_ready(self) -> ConcreteArray:
        """Wait until the data is computed, and return the array."""
        buffer = self._live_buffer()
        try:
            buffers.wait_for(buffer)
        except Exception as error:
            explain_failure(error, self._computation())
            raise
        return self

    def is_ready(self) -> bool:
        """Return whether the data is computed already."""
        return buffers.is_ready(self._live_buffer())

    def is_deleted(self) -> bool:
        """Return whether the memory was freed, by `delete` or by donation."""
        return bool(self.buffer.is_deleted())

    def delete(self) -> None:
        """Free the memory now; the array cannot be used any more."""
        self.buffer.delete()
        self.note_deletion()

    def note_deletion(self) -> None:
        """Keep the array out of compiled programs if its memory was freed, for example by a donation."""
        if self.buffer.is_deleted():
            self.signature = DELETED
            with contextlib.suppress(AttributeError):
                del self._host

    def _live_buffer(self) -> Buffer:
        if self.buffer.is_deleted():
            raise RuntimeError(deleted_message(self.aval))
        return self.buffer

    def platform(self) -> str:
        """Return the name of the array's platform."""
        return str(self.sharding.devices[0].platform)

    def clone(self) -> ConcreteArray:
        """Return a copy in new memory, with the same type and place."""
        return self.__deepcopy__({})

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the data on the device; it is invalid after the array is freed."""
        if self.sharding.num_devices > 1:
            raise ValueError(f"unsafe_buffer_pointer: {self._describe_pieces()}")
        return int(self._live_buffer().unsafe_buffer_pointer())

    def _describe_pieces(self) -> str:
        return (
            f"the array {self.aval.str_short(short_dtypes=False)} is in pieces on {len(self.sharding.devices)} "
            "devices; use one of x.addressable_shards"
        )

    def _computation(self) -> str:
        return f"computing the array {describe_types([self.aval])} on {self.device}"

    def copy_to_host_async(self) -> None:
        """Do nothing but check that the array is not deleted: reading it copies the data."""
        self._live_buffer()

    def on_device_size_in_bytes(self) -> int:
        """Return the bytes of memory of the array on its device."""
        return int(self._live_buffer().on_device_size_in_bytes())

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes; four-bit elements count a byte each, as NumPy stores them."""
        return int(self.size * self.dtype.itemsize)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes, as NumPy stores it."""
        return int(self.dtype.itemsize)

    def host(self) -> np.ndarray[Any, Any]:
        """Return the data as a read-only NumPy array; on CPU, a view that shares the memory."""
        buffer = self._live_buffer()
        with contextlib.suppress(AttributeError):
            return self._host
        if type(self.aval) is AbstractToken:
            raise TypeError("a token orders operations and has no value; pass it on to lax.after_all or return it")
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"an array of dtype {self.dtype.name} and shape {self.shape} cannot be converted to a NumPy array or a "
                "Python number; xtrace.random.key_data(keys) returns the integers behind random keys"
            )
        try:
            view = self._copy_to_host(buffer, self.aval.dtype)
        except Exception as error:
            explain_failure(error, self._computation())
            raise
        self._host: np.ndarray[Any, Any] = view
        return view

    @property
    def _value(self) -> np.ndarray[Any, Any]:
        """The data, under the name that programs for JAX read."""
        return self.host()

    def physical_array(self) -> np.ndarray[Any, Any]:
        """Return the result of `host`; for an extended dtype, the array of the storage."""
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            return self._copy_to_host(self._live_buffer(), self.aval.dtype.physical)
        return self.host()

    def _copy_to_host(self, buffer: Buffer, dtype: DType) -> np.ndarray[Any, Any]:
        """Return all of the data; the pieces of an array on a mesh are joined."""
        sharding = mesh_sharding(self)
        if sharding is None:
            return buffers.to_host(buffer, dtype)
        if sharding.is_unreduced:
            raise NotImplementedError(
                f"the array {self.aval.str_short(short_dtypes=False)} is the sum of its pieces over mesh axes, which "
                "has not been computed: read it after xtrace.reshard(x, spec) with a spec without unreduced axes"
            )
        if sharding.is_fully_replicated:
            if not sharding.is_fully_addressable:
                # A wait for one piece would not watch the other processes, on which the computation depends.
                buffers.wait_for(buffer)
            return buffers.to_host(buffers.get_pieces(buffer)[0], dtype)
        if not sharding.is_fully_addressable:
            raise RuntimeError(
                f"the array {self.aval.str_short(short_dtypes=False)} has pieces on devices of other processes, so "
                "this process cannot read all of it: read x.addressable_shards, or gather it with "
                "xtrace.experimental.multihost_utils.process_allgather(x)"
            )
        whole = np.empty(physical_aval(self.aval).shape, dtype)
        for (index, number), piece in zip(pieces(sharding, self.shape), buffers.get_pieces(buffer), strict=True):
            if number == 0:
                whole[index] = buffers.to_host(piece, dtype)
        whole.flags.writeable = False
        return whole.view()

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        view = self.host()
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"an array of {view.dtype} cannot be seen as {np.dtype(dtype)} without a copy")
            return view.astype(dtype)
        return view.copy() if copy else view

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.host())  # type: ignore[arg-type]

    def __dlpack__(
        self, *, stream: object = None, max_version: Shape | None = None, dl_device: Shape | None = None,
        copy: bool | None = None,
    ) -> Any:
        here, buffer = self.__dlpack_device__(), self._live_buffer()
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            raise BufferError(
                f"dlpack does not know {self.dtype.name}; share the integers, xtrace.random.key_data(keys), instead"
            )
        if dl_device is not None and tuple(dl_device) != here:
            raise BufferError(f"dlpack: the array is on {self.device}; move it with device_put before sharing it")
        if stream is not None and here[0] == 1:
            raise BufferError(f"dlpack: a CPU has no streams; stream must be None, got {abbreviate(stream)}")
        return buffers.to_dlpack(buffers.copy(buffer) if copy else buffer, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.sharding.num_devices > 1:
            raise BufferError(f"dlpack: {self._describe_pieces()}")
        platform = lowering_platform(self.device)
        for number, name in buffers.DLPACK_PLATFORMS.items():
            if name == platform:
                return number, self.device.local_hardware_id or 0
        raise BufferError(
            f"dlpack has no device type for the platform {abbreviate(platform)}; copy the array to a CPU first"
        )

    def __bool__(self) -> bool:
        try:
            check_truth(self.aval)
            return bool(self.host())
        except BaseException as error:
            hide_frames(error)
            raise

    def _scalar(self, function: str) -> Any:
        if self.ndim != 0:
            raise TypeError(f"{function}() needs a scalar; the array has shape {self.shape}. Index it first")
        return self.host().item()

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not dtypes.is_integer(self.dtype):
            raise TypeError(f"only integer arrays can be an index; the array has dtype {self.dtype.name}")
        return int(self._scalar("operator.index"))

    def __hash__(self) -> int:
        raise TypeError(
            "unhashable type: 'Array'. Arrays compare elementwise, so they cannot be dictionary keys or static "
            "arguments; use x.item() for a scalar or tuple(x.tolist())"
        )

    def item(self, *indices: int) -> Any:
        """Return one element as a Python scalar."""
        return self.host().item(*indices)

    def tolist(self) -> Any:
        """Return the elements as nested Python lists."""
        return self.host().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the elements' bytes."""
        return self.host().tobytes(order)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.aval)

    def __delitem__(self, index: int) -> None:
        raise TypeError(
            f"'{type(self)}' object does not support item deletion. Arrays are immutable. "
            "xtrace.numpy.delete(x, idx) returns an array without the elements"
        )

    def __repr__(self) -> str:
        return self._describe()

    def _repr_html_(self) -> str | None:
        """Return HTML for notebooks: for an array on several devices, its text and a picture of its pieces."""
        sharding = mesh_sharding(self)
        if sharding is None or sharding.num_devices < 2:
            return None
        return sharding_pictures.draw_html(sharding, repr(self))

    def __str__(self) -> str:
        is_extended = isinstance(self.aval.dtype, dtypes.ExtendedDType)
        return repr(self) if is_extended or not self._is_readable() else str(self.host())

    def _is_readable(self) -> bool:
        """Whether this process can read all elements."""
        sharding = mesh_sharding(self)
        return sharding is None or (
            not sharding.is_unreduced and (sharding.is_fully_addressable or sharding.is_fully_replicated)
        )

    def __format__(self, specification: str) -> str:
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            if specification:
                raise TypeError(
                    f"the format {abbreviate(specification)} is for numbers; this is an array of {self.dtype.name}"
                )
            return repr(self)
        if not (specification or self._is_readable()):
            return repr(self)
        return format(self.host()[()] if self.ndim == 0 else self.host(), specification)

    def _describe(self) -> str:
        if self.is_deleted():
            return f"Array(<deleted>, shape={self.shape}, dtype={self.dtype.name})"
        if type(self.aval) is AbstractToken:
            return f"<Token on {self.device!r}>"
        if not self._is_readable():
            summed = f", sharding={self.sharding}" if self.sharding.is_unreduced else ""
            return f"Array(shape={self.shape}, dtype={self.dtype.name}{summed})"
        if isinstance(self.aval.dtype, dtypes.ExtendedDType):
            return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.physical_array()}"
        weak = ", weak_type=True" if self.weak_type else ""
        tail = f"dtype={self.dtype.name}{weak})"
        if not self.size:
            return f"Array([], shape={self.shape}, {tail}"
        body = np.array2string(self.host(), separator=", ", prefix="Array(", suffix=",")
        # As in JAX: if the dtype does not fit, spaces precede it, but no newline.
        fits = len(body.rsplit("\n", 1)[-1]) + len(tail) + 3 <= np.get_printoptions()["linewidth"]
        return f"Array({body},{' ' if fits else ' ' * len('Array(')}{tail}"

    def __copy__(self) -> ConcreteArray:
        # Not the array itself, which may be donated or deleted.
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: object) -> ConcreteArray:
        if type(self.aval) is AbstractToken:
            return self
        if get_layout(self) is not None:
            # As in JAX, the copy has the default layout. Few arrays have another one.
            copied = resharding.relayout(self, None)
        else:
            copied = new_array(self.aval, buffers.copy(self._live_buffer()), self.signature)
        with contextlib.suppress(AttributeError):
            copied.key_uses = self.key_uses
        return copied


@memoize(4096)
def device_sharding(sharding: Sharding) -> DeviceSharding:
    """Return jaxlib's form of a sharding over a mesh."""
    kind = None if find_memory_space(sharding.memory_kind) is MemorySpace.Device else sharding.memory_kind
    return DeviceSharding(sharding.devices, sharding.tiles, kind, sharding)


def mesh_sharding(array: ConcreteArray) -> Sharding | None:
    """Return the sharding of an array on a mesh; None for an array on a single device."""
    signature = array.signature
    if type(signature) is Placement:
        return signature.place if isinstance(signature.place, Sharding) else None
    sharding = array.buffer._sharding if signature is DELETED else None
    return sharding.described if type(sharding) is DeviceSharding else None


@memoize(1024)
def single_device_sharding(device: Device, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Return the one sharding of whole arrays on `device`."""
    return SingleDeviceSharding(device, memory_kind)


def get_layout(array: ConcreteArray) -> Layout | None:
    """Return the layout of an array, None for the default one."""
    signature = array.signature
    return signature.layout if type(signature) is Placement else None


def known_layout(layout: Any, shape: Shape, dtype: DType, device: Device) -> Layout | None:
    """Return jaxlib's layout as a `Layout`; None for the device's default one, which may be tiled."""
    known = Layout.from_pjrt_layout(layout)
    if is_default(known) or (known.tiling and str(layout) == str(buffers.default_layout(shape, dtype, device))):
        return None
    return known


def new_array(aval: ShapedArray, buffer: Buffer, signature: object = None) -> ConcreteArray:
    """Return an array of type `aval` with `buffer`; without `signature`, it is in the default place."""
    array = ConcreteArray()
    array.aval, array.buffer, array.signature = aval, buffer, aval if signature is None else signature
    return array


def describe_types(avals: Sequence[ShapedArray]) -> str:
    """Return the types of arrays and, in parentheses, their size in bytes."""
    stored = [physical_aval(a) for a in avals]
    size = sum([a.size * a.dtype.itemsize for a in stored if isinstance(a.dtype, np.dtype)])
    return f"{', '.join([a.str_short(short_dtypes=False) for a in avals])} ({size} bytes)"


def explain_failure(error: BaseException, what: str) -> None:
    """Add a note to the runtime's error if there was not enough memory for `what`.

    If a callback of the program caused the error, raise the callback's error instead.
    """
    cause = find_callback_error(error)
    if cause is not None:
        raise cause
    if is_out_of_memory(error):
        error.add_note(
            f"There is not enough memory for {what}. Free arrays with x.delete(), donate inputs that are no longer "
            "needed (donate_argnums), or work in smaller batches."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of the compiler or the runtime says that there is not enough memory."""
    return "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error)


def deleted_message(aval: ShapedArray) -> str:
    """Return the message that an array's memory was freed."""
    return (
        f"Array has been deleted with shape={aval.str_short(short_dtypes=False)}. Its memory was given back by "
        "delete() or donated to a jitted function (donate_argnums); keep a copy (x.copy()) if it is needed afterwards"
    )


aval_rules[ConcreteArray] = own_aval
