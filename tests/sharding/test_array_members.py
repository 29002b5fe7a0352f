"""Attributes and methods of arrays on several devices, compared with jax's."""

import copy
import pickle

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.test_arrays import MATRIX, compare

SPECS = {"xy": ("x", "y"), "x": ("x",), "none": (), "second": (None, "y"), "both": (("x", "y"),)}

# What gives an array.
ARRAYS = {
    "pickle": lambda lib, a: pickle.loads(pickle.dumps(a)),
    "clone": lambda lib, a: a.clone(),
    "first row": lambda lib, a: next(iter(a)),
    "last row": lambda lib, a: list(a)[-1],
    "a[..., None]": lambda lib, a: a[..., None],
    "piece": lambda lib, a: a.addressable_data(0),
    "last piece": lambda lib, a: a.addressable_shards[-1].data,
    "asarray": lambda lib, a: lib.np.asarray(a),
    "asarray on mesh": lambda lib, a: lib.np.asarray(a, device=lib.named("x8", "x")),
    "to_device": lambda lib, a: a.to_device(lib.named("x8", "x")),
    "put": lambda lib, a: lib.put(a),
    "put on part": lambda lib, a: lib.put(
        a, lib.sharding.NamedSharding(lib.sharding.Mesh(lib.devices[2:6], "q"), lib.P("q"))
    ),
    "put src": lambda lib, a: lib.put(a, lib.named("x8", "x"), src=a.sharding),
    "copied": lambda lib, a: lib.put(a, a.sharding, may_alias=False),
    "aliased": lambda lib, a: lib.put(a, a.sharding, may_alias=True),
    "aliased elsewhere": lambda lib, a: lib.put(a, lib.named("x8", "x"), may_alias=True),
    "donated": lambda lib, a: lib.put(lib.put(MATRIX, a.sharding), lib.named("x8", "x"), donate=True),
    "donated in place": lambda lib, a: lib.put(lib.put(MATRIX, a.sharding), a.sharding, donate=True),
    "zeros": lambda lib, a: lib.np.zeros((16, 8), device=a.sharding),
    "full": lambda lib, a: lib.np.full((16, 8), 3, "bfloat16", device=a.sharding),
    "lax.full": lambda lib, a: lib.lax.full((16, 8), 2.0, sharding=a.sharding),
    "like": lambda lib, a: lib.np.ones_like(a, device=a.sharding),
}
# On explicit axes jax refuses these, or gives a type that is split on one device.
AUTO_ONLY = {
    "a[0]": lambda lib, a: a[0],
    "a[1, 2]": lambda lib, a: a[1, 2],
    "a[mask]": lambda lib, a: a[MATRIX > 120],
    "get": lambda lib, a: a.at[0].get(),
    "from numpy": lambda lib, a: lib.np.array(MATRIX.astype("d"), device=a.sharding),
    "from numpy, dtype": lambda lib, a: lib.np.asarray(MATRIX, "int8", device=a.sharding),
    "a[:4]": lambda lib, a: a[:4],
    "copy": lambda lib, a: copy.copy(a),
    "deepcopy": lambda lib, a: copy.deepcopy(a),
    "set": lambda lib, a: a.at[0].set(1),
    "add": lambda lib, a: a.at[1, 2].add(1),
    "put on device": lambda lib, a: lib.put(a, lib.devices[5]),
    "donated to device": lambda lib, a: lib.put(lib.put(MATRIX, a.sharding), lib.devices[5], donate=True),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    ("name", "kind"), [*[(n, k) for n in ARRAYS for k in ("Auto", "Explicit")], *[(n, "Auto") for n in AUTO_ONLY]]
)
def test_results(name, kind, spec):
    function = (ARRAYS | AUTO_ONLY)[name]
    compare(lambda lib: function(lib, lib.put(MATRIX, lib.named("x4y2", *SPECS[spec], kind=kind))))


def host(array):
    return type(array).__name__, array.dtype, array.tolist(), array.flags.writeable


def shards(shards):
    return [(str(s.device), s.index, s.replica_id, str(s.data.sharding), np.asarray(s.data).tolist()) for s in shards]


# What gives something else.
VALUES = {
    "device_get": lambda lib, a: host(lib.module.device_get(a)),
    "device_get tree": lambda lib, a: host(lib.module.device_get({"a": [a, 3]})["a"][0]),
    "asarray": lambda lib, a: host(np.asarray(a)),
    "array": lambda lib, a: host(np.array(a)),
    "_value": lambda lib, a: host(a._value),
    "another dtype": lambda lib, a: host(np.asarray(a, np.float64)),
    "repr": lambda lib, a: repr(a),
    "str": lambda lib, a: str(a),
    "layout": lambda lib, a: repr(a.format),
    "shards": lambda lib, a: shards(a.addressable_shards),
    "global shards": lambda lib, a: shards(a.global_shards),
    "sizes": lambda lib, a: (a.nbytes, a.itemsize, a.size, len(a), a.on_device_size_in_bytes()),
    "item": lambda lib, a: (a.item(3), a.tolist()),
    "devices": lambda lib, a: (sorted(map(str, a.devices())), str(a.device)),
    "flags": lambda lib, a: (a.is_fully_addressable, a.is_fully_replicated, a.committed, a.is_deleted()),
    "copy_to_host_async": lambda lib, a: a.copy_to_host_async(),
    "rows": lambda lib, a: [np.asarray(row).tolist() for row in a],
}


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", VALUES)
def test_values(name, spec, kind):
    ours, theirs = [
        VALUES[name](lib, lib.put(MATRIX, lib.named("x4y2", *SPECS[spec], kind=kind))) for lib in (OURS, THEIRS)
    ]
    assert ours == theirs


DLPACK = [np.from_dlpack, lambda a: a.__dlpack_device__(), lambda a: xtrace.numpy.from_dlpack(a)]


@pytest.mark.parametrize("call", DLPACK)
@pytest.mark.parametrize("spec", [(), ("x",)])
def test_dlpack_takes_pieces_only(call, spec):
    array = OURS.put(MATRIX, OURS.named("x8", *spec))
    with pytest.raises(BufferError, match=r"in pieces on 8 devices; use one of x.addressable_shards"):
        call(array)
    call(array.addressable_data(3))


# Of a program's result on a mesh of one device, whose buffer is its only piece.
ONE_DEVICE = {
    "shards": lambda a, lib: [(s.device, s.index, s.replica_id, s.data.tolist()) for s in a.addressable_shards],
    "global shards": lambda a, lib: [s.data.tolist() for s in a.global_shards],
    "device": lambda a, lib: str(a.device),
    "addressable_data": lambda a, lib: a.addressable_data(0).tolist(),
    "device of a shard": lambda a, lib: str(a.addressable_data(0).device),
    "put on its device": lambda a, lib: lib.put(a, lib.devices[1]).sharding,
    "put on another device": lambda a, lib: lib.put(a, lib.devices[2]).sharding,
    "in pinned memory": lambda a, lib: lib.put(a, a.sharding.with_memory_kind("pinned_host")).addressable_data(0).shape,
    "split otherwise": lambda a, lib: lib.put(a, a.sharding.update(spec=lib.P(None, "x"))).addressable_data(0).shape,
    "assembled": lambda a, lib: lib.module.make_array_from_single_device_arrays(
        a.shape, a.sharding, [a.addressable_data(0)]
    ).sharding,
    "keys": lambda a, lib: lib.jit(
        lambda: lib.module.random.split(lib.module.random.key(0), 2), out_shardings=a.sharding
    )().addressable_data(0).shape,
    "dlpack": lambda a, lib: np.from_dlpack(a).tolist(),
    "pointer": lambda a, lib: a.unsafe_buffer_pointer() == a.addressable_data(0).unsafe_buffer_pointer(),
}


@pytest.mark.parametrize("name", ONE_DEVICE)
def test_results_on_a_mesh_of_one_device(name):
    seen = []
    for lib in (OURS, THEIRS):
        sharding = lib.sharding.NamedSharding(lib.sharding.Mesh(lib.devices[1:2], ("x",)), lib.P("x"))
        seen.append(repr(ONE_DEVICE[name](lib.jit(lambda a: a + 1)(lib.put(MATRIX, sharding)), lib)))
    assert seen[0] == seen[1]


DELETED = [
    np.asarray, lambda a: next(iter(a)), lambda a: a.addressable_shards, lambda a: a.global_shards,
    lambda a: a.addressable_data(0), lambda a: a.copy_to_host_async(), pickle.dumps, copy.deepcopy,
    lambda a: OURS.put(a, OURS.devices[0]), xtrace.device_get, lambda a: a[0], lambda a: a + 1, lambda a: a.is_ready(),
]


@pytest.mark.parametrize("call", DELETED)
def test_deleted_arrays(call):
    array = OURS.put(MATRIX, OURS.named("x4y2", "x", "y"))
    piece = array.addressable_data(0)
    array.delete()
    assert array.is_deleted() and piece.is_deleted()
    assert (array.sharding, array.format.layout) == (OURS.named("x4y2", "x", "y"), None)
    with pytest.raises(RuntimeError, match="has been deleted"):
        call(array)


# jax warns where it keeps a donated array.
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("spec", [(), ("x",)])
def test_donation_frees_the_memory_where_pieces_move_as_they_are(spec):
    for place in (("x8", "x"), ("x4y2", *spec), None):
        freed = []
        for lib in (OURS, THEIRS):
            array = lib.put(MATRIX, lib.named("x4y2", *spec))
            target = lib.named(*place, reverse=True) if place is not None else lib.devices[3]
            moved = lib.put(array, target, donate=True)
            np.testing.assert_array_equal(np.asarray(moved), MATRIX)
            freed.append(array.is_deleted())
        assert freed[0] == freed[1] == (place == ("x4y2", *spec))


def test_copies_have_memory_of_their_own():
    for array in (OURS.put(MATRIX, OURS.named("x4y2", "x")), OURS.put(MATRIX, OURS.devices[2])):
        copied = copy.deepcopy(array)
        array.delete()
        np.testing.assert_array_equal(copied, MATRIX)


@pytest.mark.parametrize("spec", [("x", "y"), ("x",), ()])
def test_arrays_whose_elements_share_memory(spec):
    for data in (np.broadcast_to(np.float32(3), (16, 8)), np.broadcast_to(np.arange(8, dtype="f"), (16, 8))):
        np.testing.assert_array_equal(OURS.put(data, OURS.named("x4y2", *spec)), data)


TREES = {
    "one": lambda lib: lib.named("x8", "x"),
    "dict": lambda lib: {"a": lib.named("x8", "x"), "b": lib.devices[3]},
    "prefix": lambda lib: {"a": lib.named("x4y2", "x"), "b": lib.named("x8", "x")},
    "none": lambda lib: {"a": None, "b": lib.named("x8")},
}


@pytest.mark.parametrize("name", TREES)
def test_trees_of_shardings(name):
    def put(lib):
        tree = {"a": (MATRIX, lib.np.ones(8)), "b": [np.arange(16)]}
        return lib.put(tree, TREES[name](lib), may_alias={"a": False, "b": None})

    compare(put)


def test_donated_prefixes():
    xs = [OURS.put(MATRIX, OURS.named("x8", "x")) for _ in range(3)]
    OURS.put((xs[0], xs[1:]), OURS.named("x8", "x", reverse=True), donate=(False, True))
    assert [x.is_deleted() for x in xs] == [False, True, True]


GUARDED = {
    "put host": lambda lib, a, one: lib.put(MATRIX, a.sharding),
    "put copies": lambda lib, a, one: lib.put(MATRIX, lib.named("x4y2")),
    "put number": lambda lib, a, one: lib.put(1.0, lib.named("x4y2")),
    "put from device": lambda lib, a, one: lib.put(one, a.sharding),
    "put device": lambda lib, a, one: lib.put(one, lib.devices[4]),
    "put in place": lambda lib, a, one: lib.put(a, a.sharding),
    "get": lambda lib, a, one: lib.module.device_get(a),
    "asarray": lambda lib, a, one: np.asarray(a),
    "repr": lambda lib, a, one: repr(a),
    "add host": lambda lib, a, one: a + MATRIX,
    "add": lambda lib, a, one: a + lib.put(MATRIX, a.sharding),
    "add from device": lambda lib, a, one: a + one,
    "sum": lambda lib, a, one: a.sum(),
    "jit": lambda lib, a, one: lib.jit(lib.np.sin)(a),
    "jit host": lambda lib, a, one: lib.jit(lib.np.sin, in_shardings=a.sharding)(MATRIX),
    "jit from device": lambda lib, a, one: lib.jit(lib.np.sin, in_shardings=a.sharding)(one),
    "rows": lambda lib, a, one: next(iter(a)),
    "shards": lambda lib, a, one: np.asarray(a.addressable_shards[3].data),
    "join": lambda lib, a, one: lib.module.make_array_from_single_device_arrays(
        a.shape, a.sharding, [s.data for s in a.addressable_shards]
    ),
    "local": lambda lib, a, one: lib.module.make_array_from_process_local_data(a.sharding, MATRIX),
    "deepcopy": lambda lib, a, one: copy.deepcopy(a),
    "constraint": lambda lib, a, one: lib.lax.with_sharding_constraint(a, lib.named("x4y2", "y")),
    "pickle": lambda lib, a, one: pickle.dumps(a),
}
KINDS = ["_host_to_device", "_device_to_device", "_device_to_host", ""]


@pytest.mark.parametrize("name", GUARDED)
def test_transfer_guards(name):
    """Each guard, at both of its strict levels, refuses what jax's refuses."""

    def refused(lib, kind, level):
        a = lib.put(MATRIX + 1, lib.named("x4y2", "x", "y"))
        one = lib.np.asarray(MATRIX)
        try:
            with getattr(lib.module, f"transfer_guard{kind}")(level):
                GUARDED[name](lib, a, one)
        except Exception as error:
            assert "isallowed" in str(error), error
            return True
        return False

    for lib in (OURS, THEIRS):
        refused(lib, "", "allow")
    for kind in KINDS:
        for level in ("disallow", "disallow_explicit"):
            assert refused(OURS, kind, level) == refused(THEIRS, kind, level), (kind, level)


def test_moves_between_meshes_are_moves_between_devices():
    """jax counts them as ones from the host, on CPU devices."""
    array = OURS.put(MATRIX, OURS.named("x4y2", "x"))
    with xtrace.transfer_guard_host_to_device("disallow_explicit"):
        OURS.put(array, OURS.named("x8", "x"))
        OURS.put(array, OURS.devices[2])
    refused = pytest.raises(xtrace.errors.JaxRuntimeError, match="Disallowed device-to-device transfer")
    with xtrace.transfer_guard_device_to_device("disallow_explicit"), refused:
        OURS.put(array, OURS.named("x8", "x"))


def put_on_host(lib, x):
    return lib.put(x, lib.named("x4y2", "x", "y").with_memory_kind("pinned_host"))


MEMORIES = {
    "put": put_on_host,
    "put back": lambda lib, x: lib.put(put_on_host(lib, x), lib.named("x4y2", "x", "y")),
    "space": lambda lib, x: lib.put(lib.put(x, lib.named("x8", "x")), lib.module.memory.Space.Host),
    "space back": lambda lib, x: lib.put(put_on_host(lib, x), lib.module.memory.Space.Device),
    "add": lambda lib, x: put_on_host(lib, x) + put_on_host(lib, x),
    "jit": lambda lib, x: lib.jit(lambda y: lib.put(y * 2, lib.module.memory.Space.Host))(
        lib.put(x, lib.named("x8", "x"))
    ),
    "jit back": lambda lib, x: lib.jit(lambda y: lib.put(y, lib.module.memory.Space.Device) * 2)(put_on_host(lib, x)),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_memories(name):
    compare(lambda lib: MEMORIES[name](lib, MATRIX))


@pytest.mark.parametrize("entries", [("x",), (None, "x")])
def test_unreduced_arrays(entries):
    """The first device along the unreduced axes has the data, and the others zeros."""
    def pieces(lib):
        spec = lib.P(*entries, unreduced={"y"})
        sharding = lib.sharding.NamedSharding(lib.mesh("x4y2", "Explicit"), spec)
        array = lib.put(MATRIX, sharding)
        assert repr(array).startswith("Array(shape=(16, 8), dtype=float32, sharding=NamedSharding(")
        assert not sharding.is_equivalent_to(lib.named("x4y2", *entries, kind="Explicit"), 2)
        assert not sharding.is_fully_replicated
        return [np.asarray(shard.data) for shard in array.addressable_shards]

    np.testing.assert_array_equal(pieces(OURS), pieces(THEIRS))
    whole, split = [xtrace.P(*entries, **more) for more in ({}, {"unreduced": {"y"}})]
    mesh = OURS.mesh("x4y2", "Explicit")
    with xtrace.set_mesh(mesh):
        for array in (OURS.put(MATRIX, split), xtrace.reshard(OURS.put(MATRIX, whole), split)):
            with pytest.raises(NotImplementedError, match="is the sum of its pieces over mesh axes"):
                np.asarray(array)
            results = [xtrace.reshard(array, whole), xtrace.jit(lambda x: xtrace.reshard(x, whole))(array)]
            results.append(OURS.put(array, OURS.named("x8", "x")))
            for result in results:
                for shard in result.addressable_shards:
                    np.testing.assert_array_equal(shard.data, MATRIX[shard.index])


def struct(lib, *entries, **options):
    return lib.module.ShapeDtypeStruct((16, 8), np.float32, sharding=lib.named("x4y2", *entries, **options))


STRUCTS = {
    "repr": lambda lib: struct(lib, "x", "y"),
    "typeof": lambda lib: str(lib.module.typeof(struct(lib, "x", "y", kind="Explicit"))),
    "typeof auto": lambda lib: str(lib.module.typeof(struct(lib, "x", "y"))),
    "eval_shape": lambda lib: lib.module.eval_shape(lambda x: x.T, struct(lib, "x", "y", kind="Explicit")),
    "update": lambda lib: struct(lib, "x").update(shape=(8, 8)),
    "update sharding": lambda lib: struct(lib, "x").update(sharding=lib.named("x8", "x")),
    "no sharding": lambda lib: struct(lib, "x").update(sharding=None),
    "like": lambda lib: lib.module.ShapeDtypeStruct.like(lib.put(MATRIX, lib.named("x8", "x"))),
    "format": lambda lib: struct(lib, "x").format,
    "given format": lambda lib: struct(lib).update(sharding=lib.put(MATRIX, lib.named("x8", "x")).format),
    "its sharding": lambda lib: struct(lib).update(sharding=lib.put(MATRIX, lib.named("x8", "x")).format).sharding,
    "equal": lambda lib: (struct(lib, "x") == struct(lib, "x"), struct(lib, "x") == struct(lib, "y")),
    "host": lambda lib: str(lib.module.typeof(struct(lib).update(sharding=put_on_host(lib, MATRIX).sharding))),
    "lowered": lambda lib: lib.jit(lib.np.sin).lower(struct(lib, "x")).compile().input_shardings,
}


@pytest.mark.parametrize("name", STRUCTS)
def test_structs(name):
    assert repr(STRUCTS[name](OURS)) == repr(STRUCTS[name](THEIRS))


def test_a_struct_on_the_mesh_in_force():
    described = xtrace.ShapeDtypeStruct((16, 8), np.float32, sharding=xtrace.P("x"))
    with pytest.raises(TypeError, match=r"P\('x',\) is a place on a mesh, and none is in force"):
        described.sharding  # noqa: B018
    with xtrace.set_mesh(OURS.mesh("x8")):
        assert described.sharding == OURS.named("x8", "x")


def test_bad_structs():
    for sharding in (OURS.devices[0], "x"):
        with pytest.raises(ValueError, match="sharding should be an instance of Sharding"):
            xtrace.ShapeDtypeStruct((8,), np.float32, sharding=sharding)
    with pytest.raises(ValueError, match="rank at least 2"):
        xtrace.ShapeDtypeStruct((8,), np.float32, sharding=OURS.named("x4y2", "x", "y"))


def test_a_constraint_on_an_abstract_mesh_takes_the_devices_of_a_concrete_one():
    for lib in (OURS, THEIRS):
        wanted = lib.named("x8", "x")
        abstract = lib.sharding.NamedSharding(wanted.mesh.abstract_mesh, lib.P("x"))
        with lib.sharding.set_mesh(wanted.mesh):
            assert lib.lax.with_sharding_constraint(lib.np.ones(8), abstract).sharding == wanted
        there = lib.put(np.ones(8, np.float32), lib.named("x8"))
        assert lib.lax.with_sharding_constraint(there, abstract).sharding == wanted
    with pytest.raises(ValueError, match="its mesh is abstract"):
        OURS.lax.with_sharding_constraint(
            OURS.np.ones(8), xtrace.NamedSharding(OURS.named("x8", "x").mesh.abstract_mesh, xtrace.P("x"))
        )
