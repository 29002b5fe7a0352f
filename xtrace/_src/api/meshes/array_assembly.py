"""Making arrays on meshes from their pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import canonical_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Shape
from xtrace._src.core.avals import ShapedArray, aval_of_value, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.memory_layout import Format
from xtrace._src.core.shardings.requested_shardings import requested_sharding
from xtrace._src.core.shardings.shardings import Sharding, SingleDeviceSharding
from xtrace._src.core.trace import Tracer
from xtrace._src.runtime import transfer
from xtrace._src.runtime.arrays import ConcreteArray, get_layout, new_array, placement
from xtrace._src.xla import clients, guards


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> Any:
    """Return an array whose pieces are the results of a function; each process makes only those of its own devices.

    Args:
        shape: the shape of the whole array.
        sharding: its sharding, a `Format`, or a `PartitionSpec` on the mesh in force.
        data_callback: a function from the slices of a piece, one for each axis, to its data: an array or a number. It
            is called for each device of this process, once if every device holds all of the array.
        dtype: the dtype of the data; needed only in a process without devices of the sharding.

    Returns:
        An array of shape `shape`.

    Raises:
        TypeError: `sharding` is no sharding, or `data_callback` returns no array.
        UnexpectedTracerError: `data_callback` returns a traced value.
        ValueError: a piece has another shape or dtype, or a dimension is not divisible.

    Example:
        >>> sharding = xtrace.NamedSharding(xtrace.make_mesh((1,), ("x",)), xtrace.P("x"))
        >>> xtrace.make_array_from_callback((4,), sharding, lambda index: np.arange(4)[index])
        Array([0, 1, 2, 3], dtype=int32)
    """
    name = "make_array_from_callback"
    if not callable(data_callback):
        raise TypeError(f"{name}: data_callback must be a function of slices, got {abbreviate(data_callback)}")
    whole, placed = canonical_shape(shape), _target(name, sharding, takes_layouts=True)
    _piece_shape(name, placed, whole)
    indices = dict(placed.addressable_devices_indices_map(whole))
    devices = list(indices)
    if placed.is_fully_replicated:
        parts = [data_callback(indices[device]) for device in devices[:1]] * len(devices)
    else:
        parts = [data_callback(indices[device]) for device in devices]
    array = _assemble(
        name, whole, placed, parts, devices, lambda i: f"data_callback({abbreviate(indices[devices[i]])})", dtype
    )
    return array if not isinstance(sharding, Format) else transfer.put_in_format(array, sharding)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """Return an array that consists of arrays on the devices of this process, whose memory it shares.

    Args:
        shape: the shape of the whole array.
        sharding: its sharding, or a `PartitionSpec` on the mesh in force.
        arrays: a list of arrays, one on each device of `sharding` in this process, in any order.
        dtype: the dtype of the arrays; needed only if there are none.

    Returns:
        An array of shape `shape`.

    Raises:
        TypeError: `arrays` is no list of arrays, or `sharding` no sharding.
        ValueError: the devices differ from those of `sharding`, or an array has another shape or dtype than the others.

    Example:
        >>> sharding = xtrace.NamedSharding(xtrace.make_mesh((1,), ("x",)), xtrace.P("x"))
        >>> xtrace.make_array_from_single_device_arrays((2,), sharding, [jnp.ones(2)])
        Array([1., 1.], dtype=float32)
    """
    name = "make_array_from_single_device_arrays"
    whole, placed = canonical_shape(shape), _target(name, sharding)
    _piece_shape(name, placed, whole)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name}: `arrays` argument must be a list or tuple of arrays, got {abbreviate(arrays)}")
    held: dict[Any, int] = {}
    for i, array in enumerate(arrays):
        if isinstance(array, Tracer):
            raise ValueError(f"{name}: arrays[{i}] is a traced value, which is on no device; got {abbreviate(array)}")
        if not isinstance(array, ConcreteArray):
            raise TypeError(
                f"{name}: Unsupported type for elements in `arrays`: arrays[{i}] must be an array on a device, got "
                f"{abbreviate(array)}; put it there with xtrace.device_put(x, device)"
            )
        if array.sharding.num_devices != 1:
            raise ValueError(
                f"{name}: the input arrays must have one shard each, and arrays[{i}] is on "
                f"{array.sharding.num_devices} devices; give the data of its addressable_shards"
            )
        (device,) = array.sharding.devices
        if device in held:
            raise ValueError(
                f"{name}: the input arrays must be from distinct devices; arrays[{held[device]}] and arrays[{i}] are "
                f"both on {device}"
            )
        held[device] = i
    devices = [device for device in placed.devices if device in placed.addressable_devices]
    if absent := [device for device in devices if device not in held]:
        raise ValueError(
            f"{name}: Expected {len(devices)} per-device arrays, one on each device of {abbreviate(placed)} in this "
            f"process, but got {len(held)}; none is on {', '.join(map(str, absent))}"
        )
    if extra := [device for device in held if device not in devices]:
        raise ValueError(
            f"{name}: arrays[{held[extra[0]]}] is on {extra[0]}, which is no device of {abbreviate(placed)} in this "
            "process"
        )
    places = [held[device] for device in devices]
    parts = [arrays[i] for i in places]
    return _assemble(name, whole, placed, parts, devices, lambda i: f"arrays[{places[i]}]", dtype)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """Return an array over all processes; each process gives the data for its own devices.

    Args:
        sharding: the sharding of the whole array, or a `PartitionSpec` on the mesh in force.
        local_data: the data of this process, or a tree of such data: along each axis either the parts of its devices,
            one after another, or the whole axis. Processes with the same part give the same data.
        global_shape: the shape of the whole array; None if `local_data` has only the parts of this process along each
            axis.

    Returns:
        An array of shape `global_shape`.

    Raises:
        TypeError: `local_data` is no array, or `sharding` no sharding.
        ValueError: `global_shape` does not follow from the shape of `local_data`, or a dimension is not divisible.

    Example:
        >>> sharding = xtrace.NamedSharding(xtrace.make_mesh((1,), ("x",)), xtrace.P("x"))
        >>> xtrace.make_array_from_process_local_data(sharding, np.arange(4))
        Array([0, 1, 2, 3], dtype=int32)
    """
    name = "make_array_from_process_local_data"
    leaves, tree = pytree.tree_flatten(local_data)
    if not pytree.is_one_leaf(tree):
        shardings = pytree.broadcast_prefix(sharding, local_data)
        shapes = [None] * len(leaves) if global_shape is None else tree.flatten_up_to(global_shape)
        arrays = map(make_array_from_process_local_data, shardings, leaves, shapes)
        return pytree.tree_unflatten(tree, list(arrays))
    placed = _target(name, sharding)
    try:
        aval = aval_of_value(local_data)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: local_data: {error}") from None
    given = (None,) * aval.ndim if global_shape is None else canonical_shape(global_shape)
    if len(given) != aval.ndim:
        raise ValueError(
            f"{name}: global_shape must have an entry for each axis of local_data, whose shape is {aval.shape}; got "
            f"{given}"
        )
    axes = [_local_axis(name, placed, aval.shape, axis, given[axis]) for axis in range(aval.ndim)]
    whole = tuple([size for size, _ in axes])
    _piece_shape(name, placed, whole)
    if placed.is_fully_addressable:
        with guards.mark_explicit("put"):
            return transfer.put_at(local_data, placed, aval)
    grid = _grid(placed, aval.ndim)
    devices = [device for device in placed.devices if device in placed.addressable_devices]
    slices = [
        tuple([slices_of[place] for (_, slices_of), place in zip(axes, grid[device], strict=True)])
        for device in devices
    ]
    data = local_data if isinstance(local_data, ConcreteArray) else np.asarray(local_data)
    parts = [data[index] for index in slices]
    return _assemble(name, whole, placed, parts, devices, lambda i: f"local_data[{abbreviate(slices[i])}]", aval.dtype)


def _local_axis(
    name: str, sharding: Sharding, shape: Shape, axis: int, given: int | None
) -> tuple[int, dict[int, slice]]:
    """Return the size of an axis of the whole array, and the slice of local data for each part of this process."""
    parts = sharding.tiles(len(shape)).parts[axis]
    held: dict[int, set[int]] = {}
    own = -1
    for device, places in _grid(sharding, len(shape)).items():
        held.setdefault(device.process_index, set()).add(places[axis])
        if device in sharding.addressable_devices:
            own = device.process_index
    mine = sorted(held.get(own, range(parts)))
    size = shape[axis]
    # Uniform: all processes have the same number of parts, and any two have the same parts or disjoint ones.
    is_uniform = all(len(h) == len(mine) and (h == set(mine) or h.isdisjoint(mine)) for h in held.values())
    inferred = size // len(mine) * parts if is_uniform and size % len(mine) == 0 else None
    if given is None and not is_uniform:
        raise ValueError(
            f"{name}: the processes hold different numbers of parts along axis {axis}, or parts that overlap, so the "
            "size of the whole array cannot be told; give global_shape, and local_data with all of this axis"
        )
    whole = inferred if given is None else given
    if whole is None or whole not in (size, inferred):
        fitting = f"{size}" if inferred is None or inferred == size else f"{size} or {inferred}"
        raise ValueError(
            f"{name}: local_data of shape {shape} has {size} elements along axis {axis}, where this process holds "
            f"{len(mine)} of {parts} parts; " + (
                f"the size must be a multiple of {len(mine)}" if whole is None
                else f"global_shape[{axis}] must be {fitting}, got {whole}"
            )
        )
    step = whole // parts
    starts = {part: part if whole == size else place for place, part in enumerate(mine)}
    return whole, {part: slice(start * step, (start + 1) * step) for part, start in starts.items()}


def _grid(sharding: Sharding, ndim: int) -> dict[Any, tuple[int, ...]]:
    """Return for each device the number of its part along each axis."""
    tiles = sharding.tiles(ndim)
    places = np.argsort(tiles.numbers) // tiles.copies
    coordinates = np.unravel_index(places, tiles.parts) if tiles.parts else ()
    return {device: tuple([int(c[i]) for c in coordinates]) for i, device in enumerate(sharding.devices)}


def _target(function: str, given: Any, takes_layouts: bool = False) -> Sharding:
    sharding = requested_sharding("sharding", given, function=function, takes_layouts=takes_layouts)
    if sharding is None:
        raise TypeError(f"{function}: sharding must be a sharding such as xtrace.NamedSharding(mesh, spec), got None")
    return sharding


def _piece_shape(function: str, sharding: Sharding, shape: Shape) -> Shape:
    """Return the shape of the pieces; ValueError, with the function's name, if the sharding does not fit the shape."""
    try:
        return sharding.shard_shape(shape)
    except ValueError as error:
        raise type(error)(f"{function}: {error}") from None


def _buffer_on(part: Any, device: clients.Device, space: MemorySpace) -> Any:
    """Return the buffer of a piece on a device: the piece's own if it is there already."""
    if type(part) is ConcreteArray and part._place == device and part.aval.memory_space is space:
        return part._live_buffer()
    return transfer.put_on(part, device, space)._live_buffer()


def _assemble(
    function: str, shape: Shape, sharding: Sharding, parts: Sequence[Any], devices: list[clients.Device],
    name_of: Callable[[int], str], dtype: Any,
) -> ConcreteArray:
    """Return the array of shape `shape` with the given pieces on `devices`, the devices of this process.

    name_of: a function that returns the name of the piece at a position, for messages.
    """
    wanted = requested_dtype(dtype, function=function)
    expected = _piece_shape(function, sharding, shape)
    element = wanted
    for i, part in enumerate(parts):
        if isinstance(part, Tracer):
            raise UnexpectedTracerError(
                f"{function}: {name_of(i)} is a traced value, {abbreviate(part)}; it must be an array with data, so "
                f"call {function} outside of the traced function"
            )
        try:
            aval = aval_of_value(part)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{function}: {name_of(i)}: {error}") from None
        if aval.shape != expected:
            raise ValueError(
                f"{function}: Expected shard shape {expected} doesn't match the single device array shape {aval.shape} "
                f"of {name_of(i)}, for an array of shape {shape} with {abbreviate(sharding)}"
            )
        if element is None:
            element = aval.dtype
        if aval.dtype != element:
            rule = (
                f"if `dtype` is provided, here {element.name}, it must match the dtype of the addressable shards"
                if wanted is not None
                else f"the pieces must have matching dtypes, and {name_of(0)} is of {element.name}"
            )
            raise ValueError(f"{function}: {rule}; {name_of(i)}, for {devices[i]}, is of {aval.dtype.name}")
    if element is None:
        raise ValueError(f"{function}: no device of {abbreviate(sharding)} is in this process; give dtype")
    aval = transfer.place_type(ShapedArray(shape, element), sharding)
    layouts = [get_layout(part) if isinstance(part, ConcreteArray) else None for part in parts]
    layout = layouts[0] if len({*layouts}) == 1 else None
    parts = [transfer.in_layout(part, layout) if isinstance(part, ConcreteArray) else part for part in parts]
    with guards.mark_explicit("put"):
        if isinstance(sharding, SingleDeviceSharding):
            held = _buffer_on(parts[0], sharding.device, aval.memory_space)
            return new_array(aval, held, placement(aval, sharding.device, layout=layout))
        if any(isinstance(part, ConcreteArray) for part in parts):
            moved = [_buffer_on(p, d, aval.memory_space) for p, d in zip(parts, devices, strict=True)]
            with guards.lift_guards():
                return transfer.array_on_mesh(aval, sharding, moved, devices, layout)
        host = [transfer.scalar_to_host(p, aval_of_value(p)) if np.ndim(p) == 0 else np.asarray(p) for p in parts]
        if sharding.is_fully_replicated:
            return transfer.array_from_pieces(host[0], aval, sharding)
        stored = physical_aval(aval)
        copies = [dtypes.cast(np.array(p, order="C"), stored.dtype) for p in host]
        return transfer.array_on_mesh(aval, sharding, copies, devices)
