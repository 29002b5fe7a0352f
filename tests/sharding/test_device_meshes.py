"""Orders of devices for meshes, compared with jax's on objects that look like devices."""

import math
import random

import jax
import numpy as np
import pytest
from jax.experimental import mesh_utils as theirs

import xtrace
from xtrace.experimental import mesh_utils as ours


class Device:
    """What the functions read of a device."""

    client = None

    def __init__(self, number, kind, coords=None, core=0, slice_index=0, process=0, platform="tpu"):
        self.id, self.device_kind, self.coords, self.core_on_chip = number, kind, coords, core
        self.slice_index, self.process_index, self.platform = slice_index, process, platform

    def __repr__(self):
        return f"d{self.id}"


def torus(kind, sides, cores=1, *, low=(0, 0, 0), first=0, slice_index=0):
    x, y, z = sides
    places = [(i, j, k, c) for k in range(z) for j in range(y) for i in range(x) for c in range(cores)]
    return [
        Device(first + n, kind, (i + low[0], j + low[1], k + low[2]), c, slice_index, n // 4)
        for n, (i, j, k, c) in enumerate(places)
    ]


def flat(module, *arguments, **options):
    """The numbers of the devices, or the class of the error."""
    try:
        mesh = module(*arguments, **options)
    except Exception as error:
        return type(error)
    return mesh.shape, [device.id for device in mesh.flat]


def shapes(count, axes):
    if axes == 1:
        return [(count,)]
    return [(n, *rest) for n in range(1, count + 1) if count % n == 0 for rest in shapes(count // n, axes - 1)]


KINDS = [
    "TPU v2", "TPU v3", "TPU v4", "TPU v4 lite", "TPU v5 lite", "TPU v5", "TPU v5p", "TPU v6 lite", "TPU7x", "TPU8i",
    "TPU v9",
]
SIDES = [
    (1, 1, 1), (2, 1, 1), (1, 4, 1), (2, 2, 1), (2, 4, 1), (4, 2, 1), (1, 8, 1), (8, 2, 1), (4, 4, 1), (2, 2, 2),
    (2, 2, 4), (4, 2, 2), (2, 4, 4), (4, 4, 2), (8, 8, 1), (2, 2, 3), (1, 1, 4),
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("kind", KINDS)
def test_orders_of_tpus(kind):
    cores = 2 if kind in ("TPU v2", "TPU v3", "TPU v5p", "TPU7x", "TPU8i") else 1
    drawn = random.Random(kind)
    for sides in SIDES:
        for count in {1, cores}:
            devices = torus(kind, sides, count)
            given = drawn.sample(devices, len(devices)) if drawn.random() < 0.3 else devices
            for axes in (1, 2, 3):
                every = shapes(len(devices), axes)
                for shape in drawn.sample(every, min(6, len(every))):
                    for split in (False, True):
                        options = {"allow_split_physical_axes": split}
                        expected = flat(theirs.create_device_mesh, shape, given, **options)
                        assert flat(ours.create_device_mesh, shape, given, **options) == expected, (sides, shape, split)


@pytest.mark.parametrize("sides", [(6, 4, 1), (12, 2, 1), (4, 6, 2), (2, 4, 8), (16, 1, 1), (4, 4, 8), (3, 5, 1)])
def test_shared_axes_of_the_torus(sides):
    devices = torus("TPU v4", sides)
    drawn = random.Random(str(sides))
    for axes in (2, 3, 4):
        every = shapes(math.prod(sides), axes)
        for shape in drawn.sample(every, min(25, len(every))):
            for split in (False, True):
                results = [
                    flat(m.create_device_mesh, shape, devices, allow_split_physical_axes=split) for m in (ours, theirs)
                ]
                assert results[0] == results[1], (shape, split)


@pytest.mark.parametrize("kind", ["TPU v4", "TPU v5 lite", "TPU v5p", "TPU7x"])
def test_a_part_of_a_machine(kind):
    for sides, low in (((2, 2, 1), (2, 4, 0)), ((4, 2, 1), (0, 2, 1)), ((2, 2, 2), (2, 0, 0)), ((4, 4, 1), (4, 0, 0))):
        devices = torus(kind, sides, low=low)
        for shape in ((len(devices),), (2, len(devices) // 2)):
            options = {"allow_split_physical_axes": True}
            results = [flat(m.create_device_mesh, shape, devices, **options) for m in (ours, theirs)]
            assert results[0] == results[1]


def test_other_platforms():
    for platform in ("cpu", "gpu"):
        devices = [Device(i, "x", platform=platform) for i in (3, 1, 0, 2)]
        assert flat(ours.create_device_mesh, (2, 2), devices) == flat(theirs.create_device_mesh, (2, 2), devices)
    assert ours.create_device_mesh((4, 2)).tolist() == np.array(xtrace.devices()).reshape(4, 2).tolist()


SLICES = [d for s in range(4) for d in torus("TPU v4", (2, 2, 1), slice_index=s, first=4 * s)]
PROCESSES = [Device(i, "H100", platform="gpu", process=i // 2) for i in range(8)]


@pytest.mark.parametrize(
    ("shape", "outer", "devices", "options"),
    [
        ((2, 2), (2, 2), SLICES, {}), ((1, 4), (4, 1), SLICES, {}), ((4, 1, 1), (1, 2, 2), SLICES, {}),
        ((4,), (4,), SLICES[::-1], {}), ((4,), (4,), SLICES[::-1], {"should_sort_granules_by_key": False}),
        ((2, 1), (2, 2), PROCESSES, {"process_is_granule": True}), ((4,), (2, 2), SLICES, {}),
        ((2, 2), (2, 1), SLICES, {}), ((2, 4), (2, 2), SLICES, {}), ((2,), (4,), PROCESSES, {}),
        ((2, 2, 1), (4, 1, 1), SLICES, {"allow_split_physical_axes": True}),
    ],
)
def test_several_slices(shape, outer, devices, options):
    results = [flat(m.create_hybrid_device_mesh, shape, outer, devices, **options) for m in (ours, theirs)]
    assert results[0] == results[1]


def test_blocks_of_processes():
    devices = torus("TPU v4", (4, 4, 1))
    for device in devices:
        device.process_index = device.coords[0] // 2 + 2 * (device.coords[1] // 2)
    mesh = ours.create_device_mesh((4, 4), devices, contiguous_submeshes=True)
    assert sorted(d.id for d in mesh.flat) == list(range(16))
    assert {d.process_index for d in mesh[:2, :2].flat} == {0}
    with pytest.raises(ValueError, match="contiguous_submeshes: no order was found"):
        ours.create_device_mesh((16,), devices, contiguous_submeshes=True)


@pytest.mark.parametrize(
    ("sides", "shape"), [((4, 4, 1), (16,)), ((4, 4, 1), (4, 4)), ((4, 4, 1), (2, 4)), ((2, 4, 1), (8, 1))]
)
def test_make_mesh(sides, shape):
    devices = torus("TPU v5 lite", sides)
    names = tuple("xyz"[: len(shape)])
    made = [
        module.make_mesh(shape, names, devices=devices, axis_types=(module.sharding.AxisType.Auto,) * len(names))
        for module in (xtrace, jax)
    ]
    assert made[0].devices.tolist() == made[1].devices.tolist()


FOUR = torus("TPU v4", (2, 2, 1))
BAD = [
    (lambda: ours.create_device_mesh((8,), FOUR), ValueError, r"Number of devices 4 must equal .* mesh_shape \(8,\)"),
    (lambda: ours.create_device_mesh((-1, -4), FOUR), ValueError, "must equal the product"),
    (lambda: ours.create_device_mesh(4, FOUR), TypeError, r"mesh_shape must be a sequence of integers, got 4"),
    (lambda: ours.create_device_mesh((2,), [FOUR[0], FOUR[3]]), ValueError, "must fill a box"),
    (lambda: ours.create_device_mesh((2,), [FOUR[0], FOUR[0]]), ValueError, "give none twice"),
    (lambda: ours.create_device_mesh((2, 8), torus("TPU v4", (4, 4, 1))), NotImplementedError,
     r"a torus of shape \(4, 4, 1\), and mesh_shape \(2, 8\) .*allow_split_physical_axes=True"),
    (lambda: ours.create_device_mesh((8,), torus("TPU v4", (2, 2, 1), 2)), ValueError, "must be one device each"),
    (lambda: ours.create_hybrid_device_mesh((4,), (2,), SLICES), ValueError, "Number of slices 4, by slice_index"),
    (lambda: ours.create_hybrid_device_mesh((4,), (2,), xtrace.devices()), ValueError, "process_is_granule=True"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_bad_input(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
