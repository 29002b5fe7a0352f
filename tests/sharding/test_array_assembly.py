"""Arrays that are put together from their pieces."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.test_arrays import MATRIX, compare

SPECS = {"xy": ("x", "y"), "x": ("x",), "none": (), "second": (None, "y"), "both": (("y", "x"),)}


def callback(lib, sharding, function=None, **options):
    return lib.module.make_array_from_callback((16, 8), sharding, function or (lambda index: MATRIX[index]), **options)


def joined(lib, sharding, shape=(16, 8), change=lambda arrays: arrays, **options):
    indices = sharding.addressable_devices_indices_map((16, 8))
    arrays = change([lib.put(MATRIX[index], device) for device, index in indices.items()])
    return lib.module.make_array_from_single_device_arrays(shape, sharding, arrays, **options)


def local(lib, sharding, data=MATRIX, shape=None):
    return lib.module.make_array_from_process_local_data(sharding, data, shape)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("make", [callback, joined, local], ids=lambda f: f.__name__)
def test_shardings(make, spec, kind):
    compare(lambda lib: make(lib, lib.named("x4y2", *SPECS[spec], kind=kind)))


SAME = {
    "one device": lambda lib: callback(lib, lib.sharding.SingleDeviceSharding(lib.devices[3])),
    "arrays": lambda lib: callback(lib, lib.named("x4y2", "x", "y"), lambda index: lib.np.asarray(MATRIX)[index]),
    "64 bits": lambda lib: callback(lib, lib.named("x8", "x"), lambda index: MATRIX[index].astype("d")),
    "weak": lambda lib: callback(lib, lib.named("x8"), lambda index: lib.np.full((16, 8), 3.0)),
    "number": lambda lib: lib.module.make_array_from_callback((), lib.named("x8"), lambda index: 3.0),
    "bfloat16": lambda lib: callback(lib, lib.named("x8", "x"), lambda i: MATRIX[i].astype(lib.np.bfloat16)),
    "int4": lambda lib: callback(lib, lib.named("x8", "x"), lambda i: (MATRIX[i] % 7).astype(lib.np.int4)),
    "dtype": lambda lib: callback(lib, lib.named("x8", "x"), dtype="float32"),
    "strided": lambda lib: callback(lib, lib.named("x8", "x"), lambda index: MATRIX[::-1][index]),
    "reversed": lambda lib: joined(lib, lib.named("x4y2", "x"), change=lambda arrays: arrays[::-1]),
    "tuple": lambda lib: joined(lib, lib.named("x4y2", "x"), change=tuple),
    "joined one": lambda lib: joined(lib, lib.sharding.SingleDeviceSharding(lib.devices[2]), dtype="float32"),
    "local one": lambda lib: local(lib, lib.sharding.SingleDeviceSharding(lib.devices[3])),
    "local number": lambda lib: local(lib, lib.named("x8"), np.float32(2)),
    "local shape": lambda lib: local(lib, lib.named("x8", "x"), shape=(16, 8)),
    "local array": lambda lib: local(lib, lib.named("x8", "x"), lib.np.asarray(MATRIX)),
    "local tree with None": lambda lib: local(lib, lib.named("x8", "x"), {"a": MATRIX, "b": None})["a"],
    "empty": lambda lib: lib.module.make_array_from_callback((0, 8), lib.named("x8", "x"), lambda i: MATRIX[:0]),
}


@pytest.mark.parametrize("name", SAME)
def test_pieces(name):
    compare(SAME[name])


@pytest.mark.parametrize("data", [None, (), {"a": None}])
def test_local_data_without_arrays(data):
    assert local(OURS, OURS.named("x8", "x"), data) == local(THEIRS, THEIRS.named("x8", "x"), data) == data


def test_the_function_is_called_for_each_device_and_once_for_copies_on_all():
    for spec, calls in ((("x",), 8), ((), 1)):
        seen = []
        callback(OURS, OURS.named("x4y2", *spec), lambda index, seen=seen: seen.append(index) or MATRIX[index])
        assert len(seen) == calls


def test_random_keys():
    keys = xtrace.random.split(xtrace.random.key(0), 8)
    made = [
        xtrace.make_array_from_callback((8,), OURS.named("x8", *spec), lambda index: keys[index])
        for spec in ((), ("x",))
    ]
    pieces = [shard.data for shard in made[1].addressable_shards]
    made.append(xtrace.make_array_from_single_device_arrays((8,), OURS.named("x8", "x"), pieces))
    for array in made:
        np.testing.assert_array_equal(xtrace.random.key_data(array), xtrace.random.key_data(keys))


def test_later_writes_to_the_data_are_not_seen():
    host = np.ones((16, 8), np.float32)
    sharding = OURS.named("x8", "x")
    arrays = [callback(OURS, sharding, lambda index: host[index]), local(OURS, sharding, host)]
    host[:] = 5
    assert [float(array.max()) for array in arrays] == [1, 1]


def test_the_mesh_in_force():
    with xtrace.set_mesh(OURS.mesh("x8")):
        assert callback(OURS, xtrace.P("x")).sharding == OURS.named("x8", "x")


SPLIT = OURS.named("x4y2", "x", "y")
BAD = [
    (lambda: callback(OURS, SPLIT, lambda index: MATRIX), ValueError,
     r"Expected shard shape \(4, 4\) doesn't match the single device array shape \(16, 8\) of data_callback\(\(slice"),
    (lambda: callback(OURS, SPLIT, lambda i: MATRIX[i].astype("f" if i[0].start else "i")), ValueError,
     "matching dtypes, and data_callback.* is of int32; .*for cpu:2, is of float32"),
    (lambda: callback(OURS, SPLIT, dtype="int8"), ValueError,
     "dtype. is provided, here int8, it must match the dtype of the addressable shards.*is of float"),
    (lambda: callback(OURS, SPLIT, lambda index: None), TypeError, "data_callback.*NoneType"),
    (lambda: callback(OURS, SPLIT, 3), TypeError, "data_callback must be a function of slices, got 3"),
    (lambda: callback(OURS, OURS.devices[0]), TypeError, "make_array_from_callback: sharding"),
    (lambda: callback(OURS, None), TypeError, "make_array_from_callback: sharding must be"),
    (lambda: callback(OURS, xtrace.P("x")), ValueError, "non-empty mesh in context"),
    (lambda: xtrace.make_array_from_callback((15, 8), SPLIT, lambda i: MATRIX[i]), ValueError,
     "make_array_from_callback: .*array axis 0 is partitioned 4 times"),
    (lambda: xtrace.make_array_from_callback((16,), SPLIT, lambda i: MATRIX[i]), ValueError, "rank at least 2"),
    (lambda: xtrace.jit(lambda x: callback(OURS, SPLIT, lambda i: x[i]))(MATRIX), xtrace.errors.UnexpectedTracerError,
     "is a traced value, .*; it must be an array with data, so call make_array_from_callback outside"),
    (lambda: joined(OURS, SPLIT, change=lambda a: a[:-1]), ValueError,
     "Expected 8 per-device arrays.*but got 7; none is on cpu:7"),
    (lambda: joined(OURS, SPLIT, change=lambda a: a[:1] * 8), ValueError,
     r"from distinct devices; arrays\[0\] and arrays\[1\]"),
    (lambda: joined(OURS, SPLIT, (32, 8)), ValueError, r"Expected shard shape \(8, 4\) .*\(4, 4\) of arrays\[0\]"),
    (lambda: joined(OURS, SPLIT, change=lambda a: [MATRIX] * 8), TypeError, r"arrays\[0\] must be an array on"),
    (lambda: joined(OURS, SPLIT, dtype="int32"), ValueError, "here int32, it must match.*is of float32"),
    (lambda: joined(OURS, SPLIT, change=lambda a: a[0]), TypeError, "must be a list or tuple"),
    (lambda: joined(OURS, SPLIT, change=lambda a: [OURS.put(MATRIX, SPLIT)]), ValueError, "one shard each.* is on 8"),
    (lambda: joined(OURS, SPLIT, change=lambda a: [a[0].delete(), *a][1:]), RuntimeError, "deleted"),
    (lambda: xtrace.make_array_from_single_device_arrays(
        (4,), xtrace.sharding.SingleDeviceSharding(OURS.devices[1]),
        [OURS.put(np.ones(4), OURS.devices[0]), OURS.put(np.ones(4), OURS.devices[1])]), ValueError,
     r"arrays\[0\] is on cpu:0, which is no device of"),
    (lambda: xtrace.jit(lambda x: xtrace.make_array_from_single_device_arrays((), OURS.named("x8"), [x]))(1.0),
     ValueError, r"arrays\[0\] is a traced value"),
    (lambda: local(OURS, SPLIT, shape=(32, 8)), ValueError, r"global_shape\[0\] must be 16, got 32"),
    (lambda: local(OURS, SPLIT, shape=(16,)), ValueError, "an entry for each axis of local_data"),
    (lambda: local(OURS, SPLIT, MATRIX[:15]), ValueError, "has 15 elements along axis 0, .* multiple of 4"),
    (lambda: local(OURS, SPLIT, object()), TypeError, "make_array_from_process_local_data: local_data: .*object"),
    (lambda: local(OURS, SPLIT, MATRIX[0]), ValueError, "make_array_from_process_local_data.*rank"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_bad_input(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_pieces_share_the_memory_of_the_arrays():
    array = joined(OURS, SPLIT)
    pieces = [shard.data for shard in array.addressable_shards]
    again = xtrace.make_array_from_single_device_arrays((16, 8), SPLIT, pieces)
    array.delete()
    assert again.is_deleted()
