"""Arrays on several devices: where they are, their pieces, and how they move."""

import copy
import itertools

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS, THEIRS
from tests.support.operands import assert_same_type

LIBRARIES = (OURS, THEIRS)
MATRIX = np.arange(128, dtype=np.float32).reshape(16, 8)
SPECS = [(), ("x",), (None, "x"), ("y", "x"), (("x", "y"),), (None, ("y", "x")), ("y",)]


def compare(function, *arguments):
    """Compare values, types and shardings of a function of a library."""
    ours, theirs = function(OURS, *arguments), function(THEIRS, *arguments)
    left, right = xtrace.tree.flatten(ours)[0], THEIRS.module.tree.flatten(theirs)[0]
    assert len(left) == len(right)
    for x, y in zip(left, right, strict=True):
        assert_same_type(x, y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        assert repr(x.sharding) == repr(y.sharding)
        assert x.committed == y.committed


@pytest.mark.parametrize("lib", LIBRARIES, ids=["xtrace", "jax"])
def test_an_array_on_a_mesh_is_among_the_arrays_in_memory(lib):
    x = lib.put(MATRIX, lib.named("x4y2", "x"))
    assert sum(found is x for found in lib.module.live_arrays()) == 1
    assert sum(found is x for found in lib.module.live_arrays("cpu")) == 1
    x.delete()
    assert not any(found is x for found in lib.module.live_arrays())


@pytest.mark.parametrize(("before", "after"), list(itertools.product(SPECS, SPECS[:5])))
def test_an_array_is_split_anew(before, after):
    compare(lambda lib: lib.put(lib.put(MATRIX, lib.named("x4y2", *before)), lib.named("x4y2", *after)))


@pytest.mark.parametrize("target", ["x8", "x2y2z2", "reversed", "device", "part", "none"])
def test_an_array_moves_to_another_mesh(target):
    def move(lib):
        x = lib.put(MATRIX, lib.named("x4y2", "x", "y"))
        places = {
            "x8": lambda: lib.named("x8", "x"), "x2y2z2": lambda: lib.named("x2y2z2", ("z", "x"), "y"),
            "reversed": lambda: lib.named("x4y2", "x", reverse=True), "device": lambda: lib.devices[3],
            "part": lambda: lib.sharding.NamedSharding(lib.sharding.Mesh(lib.devices[:2], "q"), lib.P("q")),
            "none": lambda: None,
        }
        return lib.put(x, places[target]())

    compare(move)


@pytest.mark.parametrize("spec", SPECS)
def test_pieces_move_to_the_same_places_of_another_mesh(spec):
    def move(lib, first):
        meshes = [
            lib.sharding.Mesh(lib.devices[places].reshape(2, 2), ("x", "y"))
            for places in ([0, 1, 2, 3], [first, 1, 7, 4])
        ]
        before, after = [lib.sharding.NamedSharding(mesh, lib.P(*spec)) for mesh in meshes]
        array = lib.put(MATRIX, before)
        moved = lib.put(array, after)
        array.delete()
        return moved

    for first in (5, 0):
        moved = move(OURS, first)
        np.testing.assert_array_equal(moved, MATRIX)
        assert [s.device.id for s in moved.addressable_shards] == [first, 1, 7, 4]
    assert repr(move(OURS, 5).sharding) == repr(move(THEIRS, 5).sharding)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "complex64", "float8_e4m3fn", "int4"])
def test_dtypes(dtype):
    compare(lambda lib: lib.put(lib.np.asarray(MATRIX > 3).astype(dtype), lib.named("x4y2", "x", "y")))


def test_members():
    x, y = [lib.put(MATRIX, lib.named("x4y2", "x", None)) for lib in LIBRARIES]
    for member in ("committed", "is_fully_addressable", "is_fully_replicated", "nbytes", "ndim", "size"):
        assert getattr(x, member) == getattr(y, member)
    assert repr(x.format) == repr(y.format)
    assert repr(x.device) == repr(y.device)
    assert (x.devices(), x.platform()) == (set(OURS.devices), "cpu")
    assert x.is_ready()
    assert x.on_device_size_in_bytes() == y.on_device_size_in_bytes()
    assert [repr(s.index) for s in x.global_shards] == [repr(s.index) for s in y.global_shards]
    assert repr(x) == repr(y)
    assert repr(x.addressable_data(3).sharding) == repr(y.addressable_data(3).sharding)
    np.testing.assert_array_equal(x.addressable_data(3), y.addressable_data(3))
    for clone in (copy.deepcopy(x), x.clone(), jnp.copy(x), jnp.array(x), jnp.asarray(x)):
        assert clone.sharding == x.sharding
        np.testing.assert_array_equal(clone, x)


def test_what_one_device_can_do_only():
    x = OURS.put(MATRIX, OURS.named("x8", "x"))
    with pytest.raises(BufferError, match=r"is in pieces on 8 devices; use one of x.addressable_shards"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="unsafe_buffer_pointer: the array"):
        x.unsafe_buffer_pointer()


def test_a_deleted_array():
    x = OURS.put(MATRIX, OURS.named("x8", "x"))
    x.delete()
    assert x.is_deleted()
    assert x.sharding == OURS.named("x8", "x")
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_later_changes_of_a_numpy_array_do_not_show():
    for spec in ((), ("x",)):
        host = np.ones((8, 4), np.float32)
        x = OURS.put(host, OURS.named("x8", *spec))
        host[:] = 7
        assert np.asarray(x).max() == 1


EAGER = [
    "x + 1", "x @ x.T", "x.T", "x.sum(0)", "x.sum()", "x[0]", "x[2:4]", "x[:, 1]", "lib.np.sin(x)", "x * x.mean()",
    "x.reshape(4, 4, 8)", "lib.np.concatenate([x, x])", "lib.np.sort(x, axis=1)", "x.at[0].set(1)", "x.astype('int8')",
    "lib.np.where(x > 3, x, 0)", "lib.np.zeros_like(x)", "lib.np.full_like(x, 2)", "lib.np.stack([x, x])", "x > 3",
    "lib.np.cumsum(x, 0)", "lib.np.argmax(x, 1)", "lib.np.einsum('ij,kj->ik', x, x)", "x.max(1, keepdims=True)",
    "lib.module.nn.softmax(x)", "lib.module.vmap(lib.np.sin)(x)",
    "lib.module.jacfwd(lambda y: y[0] * 2)(x[:2])", "lib.np.linalg.norm(x)", "lib.np.asarray(x)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("spec", [("x", None), ("x",), (None, "y"), ()])
@pytest.mark.parametrize("expression", EAGER)
def test_operations_follow_their_operands(expression, spec):
    compare(lambda lib: eval(expression, {"lib": lib, "x": lib.put(MATRIX, lib.named("x4y2", *spec))}))


BAD = [
    (lambda: OURS.put(np.ones((7, 2)), OURS.named("x8", "x")), r"device_put: x: .*axis 0 is partitioned 8 times"),
    (lambda: OURS.put({"w": np.ones(8)}, OURS.named("x4y2", "x", "y")), r"device_put: x\['w'\]: .*rank at least 2"),
    (lambda: OURS.put(np.ones(8), OURS.P("x")), "non-empty mesh in context.*NamedSharding"),
    (lambda: OURS.put(np.ones(8), {"a": OURS.named("x8", "x")}),
     "device_put device specification must be a tree prefix of the corresponding value"),
    (lambda: OURS.put(np.ones(8), "x"), "device must be a device.*Received invalid value: 'x'"),
    (lambda: OURS.put(np.ones(8), OURS.named("x8")) + OURS.put(np.ones(8), OURS.devices[1]), "incompatible devices"),
    (lambda: OURS.put(np.ones(8), OURS.named("x8")) + OURS.put(np.ones(8), OURS.named("x8", reverse=True)),
     r"\[0, 1, 2, 3, 4, 5, 6, 7\] of platform cpu, and argument .*\[7, 6, 5"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("spec", [(), ("x",), ("x", "y"), (None, "y"), ("y", "x")])
@pytest.mark.parametrize("size", [8, 512])
def test_later_writes_to_a_numpy_array_are_not_seen(size, spec):
    host = np.ones((size, size), "f")
    array = OURS.put(host, OURS.named("x4y2", *spec))
    host[:] = 5
    assert set(np.unique(array)) == {1}


@pytest.mark.parametrize("specs", list(itertools.permutations([(), ("x",), ("x", "y"), (None, "y"), ("y", "x")], 2)))
def test_resharded_arrays_have_memory_of_their_own(specs):
    """Of their operand: it can be deleted or donated, and its memory used again."""
    old, new = [OURS.named("x4y2", *spec) for spec in specs]
    array = OURS.put(MATRIX, old)
    moved = OURS.put(array, new)
    xtrace.jit(lambda x: x * 0, donate_argnums=0)(array).block_until_ready()
    np.testing.assert_array_equal(moved, MATRIX)
