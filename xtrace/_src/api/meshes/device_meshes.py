"""Arrays of devices for meshes, in which neighbours are linked by the fast network of the machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.core.shardings import torus
from xtrace._src.xla import clients

# Models whose chips can be two devices each, and models with a known ring for a few devices.
_TWO_CORES = ("TPU v2", "TPU v3", "TPU v5p", "TPU7", "TPU8i")
_TRAYS = ("TPU v2", "TPU v3")
_FLAT = ("TPU v5 lite", "TPU v6 lite")
_SQUARES = ("TPU v4 lite", "TPU8i")


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *, contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Return devices as an array for `Mesh`, in an order in which neighbours along its axes are linked.

    Args:
        mesh_shape: the size of each axis; the last axis should be the one with the most traffic.
        devices: the devices, all of them; None for `xtrace.devices`. On TPUs they fill a box of the machine's torus.
        contiguous_submeshes: whether the devices of each process must be a block of the array.
        allow_split_physical_axes: whether an axis of the torus may be shared by two axes of the array, which is slower.

    Returns:
        A NumPy array of devices of shape `mesh_shape`.

    Raises:
        NotImplementedError: on TPUs, `mesh_shape` needs an axis of the torus shared, and that is not allowed.
        TypeError: `mesh_shape` is no sequence of integers.
        ValueError: the number of devices is not the product of `mesh_shape`, they fill no box, or there are no blocks.

    Example:
        >>> xtrace.experimental.mesh_utils.create_device_mesh((1, 1), xtrace.devices()[:1]).shape
        (1, 1)
    """
    shape = _check_shape("create_device_mesh", "mesh_shape", mesh_shape)
    given = list(clients.devices() if devices is None else np.ravel(np.array(devices, object)))
    if math.prod(shape) != len(given) or min(shape, default=1) < 1:
        raise ValueError(
            f"create_device_mesh: Number of devices {len(given)} must equal the product of mesh_shape {shape}"
        )
    if given[0].platform != "tpu":
        ordered = given if given[0].platform == "cpu" else sorted(given, key=lambda device: device.id)
        return _check_blocks(_as_array(ordered).reshape(shape), contiguous_submeshes)
    ring = _ring(shape, given)
    if ring is not None:
        return _check_blocks(_as_array(ring).reshape(shape), contiguous_submeshes)
    box = _arrange_in_box(given)
    assignments = torus.assign_axes(box.shape, shape, allow_split_physical_axes)
    if assignments is None:
        raise NotImplementedError(
            f"create_device_mesh: the devices are a torus of shape {box.shape}, and mesh_shape {shape} cannot be made "
            "of whole axes of it: each size must be a product of some of them, and none may be used twice. Allow "
            "slower meshes with allow_split_physical_axes=True"
        )
    return _contiguous(box, assignments) if contiguous_submeshes else torus.lay_out(box, assignments)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
    process_is_granule: bool = False, should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray[Any, Any]:
    """Return devices of several slices as an array for `Mesh`, where each slice is a block.

    Args:
        mesh_shape: the shape of a slice's block, whose devices the fast network links.
        dcn_mesh_shape: the number of slices along each axis, which the slow network links.
        devices: the devices; None for `xtrace.devices`.
        process_is_granule: whether the devices of a process are a slice; otherwise their `slice_index` decides.
        should_sort_granules_by_key: whether slices are in the order of their numbers, or else in that of `devices`.
        allow_split_physical_axes: as in `create_device_mesh`.

    Returns:
        A NumPy array of devices; its shape is the product of both shapes.

    Raises:
        NotImplementedError: as `create_device_mesh` does.
        TypeError: a shape is no sequence of integers.
        ValueError: the number of slices, or of devices in one, is not the product of its shape; a device has no
            `slice_index`.

    Example:
        >>> one = xtrace.devices()[:1]
        >>> xtrace.experimental.mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), one, process_is_granule=True).shape
        (1, 1)
    """
    name = "create_hybrid_device_mesh"
    inner, outer = _check_shape(name, "mesh_shape", mesh_shape), _check_shape(name, "dcn_mesh_shape", dcn_mesh_shape)
    key = "process_index" if process_is_granule else "slice_index"
    slices: dict[Any, list[Any]] = {}
    for device in clients.devices() if devices is None else np.ravel(np.array(devices, object)):
        if not hasattr(device, key):
            raise ValueError(
                f"{name}: the device {abbreviate(device)} has no {key}; with process_is_granule=True the devices of "
                "each process are taken together"
            )
        slices.setdefault(getattr(device, key), []).append(device)
    if len(slices) != math.prod(outer):
        raise ValueError(
            f"{name}: Number of slices {len(slices)}, by {key}, must equal the product of dcn_mesh_shape {outer}"
        )
    keys = sorted(slices) if should_sort_granules_by_key else list(slices)
    rank = max(len(inner), len(outer))
    inner, outer = [(1,) * (rank - len(shape)) + shape for shape in (inner, outer)]
    blocks = [
        create_device_mesh(inner, slices[k], allow_split_physical_axes=allow_split_physical_axes) for k in keys
    ]
    stacked = np.array(blocks, object).reshape(*outer, *inner)
    pairs = [axis for i in range(rank) for axis in (i, rank + i)]
    return stacked.transpose(pairs).reshape([n * m for n, m in zip(outer, inner, strict=True)])


def _check_shape(function: str, argument: str, given: Sequence[int]) -> Shape:
    if isinstance(given, int):
        raise TypeError(f"{function}: {argument} must be a sequence of integers, got {given}; write ({given},)")
    return tuple([to_integer(argument, n, function=function) for n in given])


def _as_array(devices: Sequence[Any]) -> np.ndarray[Any, Any]:
    # Not np.array(devices), which would examine the devices as sequences.
    array = np.empty(len(devices), object)
    array[:] = devices
    return array


def _ring(shape: Shape, devices: list[Any]) -> list[Any] | None:
    """Return the devices of a small TPU in the order of a ring; None if none is known for them."""
    kind, count = devices[0].device_kind, len(devices)
    tray = [devices[i + k] for i in range(0, count, 8) for k in torus.PAIRS_OF_A_TRAY] if count % 8 == 0 else []
    if kind in _TRAYS:
        # Without a known ring, the devices are in the given order.
        return tray if count == 8 or (tray and shape[-1] == 8) else devices
    if count == 4 and kind in _SQUARES:
        return [devices[i] for i in torus.RING_OF_SQUARE]
    sides = [max(c) - min(c) + 1 for c in zip(*[device.coords for device in devices], strict=True)]
    if kind.startswith("TPU7"):
        return tray if tray and count <= 32 and max(sides[:2]) <= 2 else None
    corner = max(tuple(device.coords) for device in devices)
    bounds = tuple([n + 1 for n in corner])
    places: Sequence[int] | None = None
    if count == 4 and bounds == (2, 2, 1) and kind in _FLAT:
        places = torus.RING_OF_SQUARE
    elif count == 8 and kind in _FLAT:
        places = torus.COLUMNS_OF_CUBE if bounds == (2, 2, 2) else torus.RING_OF_TWO_ROWS
    elif count == 8 and bounds == (2, 2, 2) and kind == "TPU v5p":
        places = torus.RING_OF_CUBE
    elif count == 16 and bounds == (4, 4, 1) and max(shape) == 16 and kind in _FLAT:
        places = torus.RING_OF_LARGE_SQUARE
    if places is None:
        return None
    in_rows = sorted(devices, key=lambda device: tuple(reversed(device.coords)))
    return [in_rows[i] for i in places]


def _arrange_in_box(devices: list[Any]) -> np.ndarray[Any, Any]:
    """Return the devices as an array by their coordinates; where a chip has two devices, the last axis is the core."""
    kind = devices[0].device_kind
    has_cores = kind.startswith(_TWO_CORES) and any(device.core_on_chip for device in devices)
    places = {}
    for device in devices:
        if device.core_on_chip and not has_cores:
            raise ValueError(
                f"create_device_mesh: the chips of {kind} must be one device each; {abbreviate(device)} is the core "
                f"{device.core_on_chip} of one"
            )
        places[(*device.coords, device.core_on_chip) if has_cores else tuple(device.coords)] = device
    low = np.min(list(places), axis=0)
    shape = tuple((np.max(list(places), axis=0) - low + 1).tolist())
    if len(places) != len(devices) or math.prod(shape) != len(devices):
        raise ValueError(
            f"create_device_mesh: the {len(devices)} devices must fill a box of the torus of TPUs; theirs has the "
            f"shape {shape}. Leave none out, and give none twice"
        )
    box = np.empty(shape, object)
    for place, device in places.items():
        box[tuple(np.subtract(place, low))] = device
    return box


def _contiguous(box: np.ndarray[Any, Any], assignments: list[Shape]) -> np.ndarray[Any, Any]:
    """Return a mesh in which each process has a block, in the first order of the torus's axes that gives one."""
    for order in itertools.permutations(range(box.ndim)):
        mesh = torus.lay_out(box.transpose(order), [tuple([a[i] for i in order]) for a in assignments])
        if _has_blocks(mesh):
            return mesh
    return _check_blocks(torus.lay_out(box, assignments), True)


def _check_blocks(mesh: np.ndarray[Any, Any], contiguous: bool) -> np.ndarray[Any, Any]:
    if contiguous and not _has_blocks(mesh):
        raise ValueError(
            f"create_device_mesh: contiguous_submeshes: no order was found in which the devices of each process are a "
            f"block of a mesh of shape {mesh.shape}; leave it out, which arrays do not need"
        )
    return mesh


def _has_blocks(mesh: np.ndarray[Any, Any]) -> bool:
    """Whether the devices of each process are a block of the mesh."""
    owners = np.array([device.process_index for device in mesh.flat]).reshape(mesh.shape)
    for process in np.unique(owners):
        places = np.argwhere(owners == process)
        if math.prod((places.max(0) - places.min(0) + 1).tolist()) != len(places):
            return False
    return True
