"""Meshes, specifications and shardings say what jax's say."""

import copy
import itertools
import pickle
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, SHAPES, THEIRS
from xtrace._src.core.shardings import mesh
from xtrace.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

P = PartitionSpec
LIBRARIES = (OURS, THEIRS)


def both(expression):
    """The texts of an expression's value in either library, or of its error."""
    texts = []
    for lib in LIBRARIES:
        names = vars(lib) | vars(lib.sharding) | {"lib": lib, "np_": np, "D": lib.devices}
        try:
            texts.append(repr(eval(expression, names)))
        except Exception as error:
            texts.append(f"error: {error}")
    return texts


@pytest.mark.parametrize(
    "expression",
    [
        "mesh('x4y2')", "str(mesh('x4y2'))", "mesh('x4y2').shape", "mesh('x4y2').shape_tuple", "mesh('x4y2').size",
        "mesh('x4y2').axis_sizes", "mesh('x4y2', 'Explicit').abstract_mesh", "mesh('x4y2').empty",
        "mesh('x4y2').device_ids.tolist()", "mesh('x4y2').is_multi_process", "mesh('x4y2').local_mesh",
        "mesh('x4y2').auto_axes", "mesh('x4y2', 'Explicit').explicit_axes", "mesh('x4y2', 'Manual').manual_axes",
        "mesh('x4y2').are_all_axes_auto", "mesh('x4y2').update(axis_types=(AxisType.Explicit, AxisType.Auto))",
        "mesh('x4y2').update(axis_names=('a', 'b'))", "mesh('x4y2').local_devices", "mesh('x4y2').is_scalar",
        "mesh('x4y2').abstract_mesh.update_axis_types({'x': AxisType.Manual})", "Mesh(D, 'x')", "Mesh(list(D), 'x')",
        "Mesh(D, 'x') is Mesh(D, ('x',))", "Mesh(D, 'x') == Mesh(D[::-1], 'x')", "Mesh(D[0], ())",
        "Mesh(D[0], ()).size", "Mesh(D[0], ()).empty", "AbstractMesh((), ()).empty", "Mesh(D[:0], ('x',))",
        "Mesh(D[:0], ('x',)).size", "AbstractMesh((4, 2), ('x', 'y'))",
        "AbstractMesh((4,), 'x', axis_types=AxisType.Explicit)", "AbstractMesh((2,), 'x').size",
        "AbstractMesh((4, 2), ('x', 'y')) == mesh('x4y2').abstract_mesh", "get_mesh()", "get_abstract_mesh()",
        "AbstractMesh((2,), 'x') is AbstractMesh((2,), 'x')", "lib.module.make_mesh((4, 2), ('x', 'y'))",
        "lib.module.make_mesh((4,), ('x',)).device_ids.tolist()", "lib.module.make_mesh((8,), 'x')",
        "lib.module.make_mesh((2, 2), ('x', 'y'), devices=D[::-1]).device_ids.tolist()",
        "lib.module.make_mesh((2,), ('x',), axis_types=(AxisType.Auto,))",
        "P('x')", "P('x', None, ('a', 'b'))", "P()", "P(P.UNCONSTRAINED)", "P('x', unreduced={'y'})",
        "P('x', reduced={'y'})", "P(None) == P()", "P('x') == P('x', None)", "P(('x',)) == P('x')", "P(()) == P(None)",
        "tuple(P('x', None))", "isinstance(P(), tuple)", "len(P('x', 'y'))", "P('x') + P('y')", "('a',) + P('x')",
        "P('x') + ('a',)", "P('x', 'y')[0]", "P('x', None)[0:1]", "P('x') == ('x',)", "P('x').count('x')",
        "P('x', 'y').index('y')", "P('x', None).update(partitions=('y',))", "P('x').update(unreduced={'y'})",
        "P(None, unreduced={'y'}).to_ct_spec()", "P('x', reduced={'y'}).to_tangent_spec()", "P('x').to_lo()",
        "P(['x'])",
        "list(P('x', ('y', 'z')))", "P('x', None).partitions", "P(unreduced={'x'}).unreduced",
        "named('x4y2', 'x')", "named('x4y2', 'x').memory_kind", "named('x4y2', 'x').with_memory_kind('pinned_host')",
        "named('x4y2', 'x').num_devices", "named('x4y2', 'x').has_addressable_devices",
        "named('x4y2', 'x').replicated_axes", "named('x4y2', 'x').update(spec=P('y'))",
        "named('x4y2', P.UNCONSTRAINED).shard_shape((8,))", "named('x4y2', 'x') == named('x4y2', 'x', None)",
        "named('x4y2', 'x').is_equivalent_to(named('x4y2', 'x', None), 2)",
        "named('x4y2', 'x').is_equivalent_to(named('x8', 'x'), 1)", "named('x4y2', 'x').check_compatible_aval((8, 2))",
        "named('x4y2').is_equivalent_to(SingleDeviceSharding(D[0]), 2)", "SingleDeviceSharding(D[1])",
        "SingleDeviceSharding(D[1]) == SingleDeviceSharding(D[1])", "make_single_device_sharding(D[0])",
        "NamedSharding(mesh('x4y2').abstract_mesh, P('x'))",
        "NamedSharding(mesh('x4y2').abstract_mesh, P('x')).shard_shape((8,))",
        "named('x8', 'x', kind='Explicit')", "named('x8', 'x').is_fully_replicated", "named('x8').is_fully_replicated",
        "NamedSharding(Mesh(D[::-1], 'x'), P('x'))._device_assignment", "SingleDeviceSharding(D[1])._device_assignment",
        "NamedSharding(Mesh(D[::-1], 'x'), P('x'))._addressable_device_assignment",
        "SingleDeviceSharding(D[1])._addressable_device_assignment",
    ],
)
def test_values(expression):
    ours, theirs = both(expression)
    assert ours == theirs


ENTRIES = [None, "x", "y", ("x", "y"), ("y", "x")]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("entries", list(itertools.product(ENTRIES, ENTRIES)))
def test_pieces(entries, reverse):
    """The slices of each device, and the shapes of pieces, for all ways to split a matrix over two axes."""
    used = [axis for entry in entries for axis in (entry if isinstance(entry, tuple) else (entry,)) if axis]
    if len(set(used)) < len(used):
        with pytest.raises(ValueError, match="a mesh axis splits one dimension at most"):
            OURS.named("x4y2", *entries)
        return
    texts = []
    for lib in LIBRARIES:
        sharding = lib.named("x4y2", *entries, reverse=reverse)
        array = lib.put(np.arange(128).reshape(16, 8), sharding)
        shards = [(s.device.id, s.index, s.replica_id, np.asarray(s.data).tolist()) for s in array.addressable_shards]
        texts.append((repr(sharding.devices_indices_map((16, 8))), sharding.shard_shape((16, 8)), shards))
    assert texts[0] == texts[1]


ERRORS = [
    (lambda: Mesh(OURS.devices.reshape(4, 2), ("x",)), ValueError,
     "Mesh requires the ndim of its first argument .* to equal the length of its second"),
    (lambda: Mesh(OURS.devices.reshape(4, 2), ("x", None)), ValueError, "axis names cannot be None"),
    (lambda: Mesh(OURS.devices, "x", axis_types=(1,)), TypeError,
     r"axis_types passed to Mesh must be of type .*AxisType.*Got 1"),
    (lambda: Mesh(OURS.devices, "x", (AxisType.Auto,) * 2), ValueError,
     "Number of axis names should match the number of axis_types"),
    (lambda: AbstractMesh((2,), ("x", "y")), ValueError, "must have the same length"),
    (lambda: OURS.mesh("x8").abstract_mesh.devices, ValueError,
     "AbstractMesh does not implement devices: it describes axes only"),
    (lambda: xtrace.make_mesh((16,), ("x",)), ValueError, "Number of devices 8 must be >= the product of mesh_shape"),
    (lambda: xtrace.make_mesh((-1,), ("x",)), ValueError, "axis_shapes must be positive"),
    (lambda: xtrace.make_mesh((4, 2), ("x",)), ValueError, "a name for each axis, got"),
    (lambda: xtrace.make_mesh(8, "x"), TypeError, r"write \(8,\)"),
    (lambda: P("x", unreduced={"x"}), ValueError, "partitions cannot overlap with unreduced"),
    (lambda: P(unreduced="x"), TypeError, "unreduced must be a set of axis names"),
    (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "unreduced cannot overlap with reduced"),
    (lambda: P("x").index("z"), ValueError, "not in tuple"),
    (lambda: OURS.named("x8", "z"), ValueError, r"axis: z of P\('z',\) is not found in mesh: \('x',\)"),
    (lambda: OURS.named("x8", "x", "x"), ValueError, "used for dimensions 0 and 1"),
    (lambda: NamedSharding(OURS.mesh("x8"), ("x",)), TypeError, "spec must be a PartitionSpec"),
    (lambda: NamedSharding(None, P("x")), TypeError, "mesh must be a Mesh"),
    (lambda: NamedSharding(OURS.mesh("x8"), P(), "foo"), ValueError, "no memory of kind 'foo'; it has device"),
    (lambda: OURS.named("x8", "x").shard_shape((7,)), ValueError, "axis 0 is partitioned 8 times.*is 7.*'x' of size 8"),
    (lambda: OURS.named("x4y2", "x", "y").shard_shape((8,)), ValueError, "rank at least 2, but was applied to a value"),
    (lambda: pickle.dumps(SingleDeviceSharding(OURS.devices[0])), TypeError, "cannot be pickled"),
    (lambda: xtrace.set_mesh(3), ValueError, "Expected mesh of type .*sharding.Mesh"),
    (lambda: xtrace.jit(lambda: xtrace.set_mesh(OURS.mesh("x8")))(), ValueError, "a function is being traced"),
    (lambda: setattr(OURS.mesh("x8"), "shape", 3), AttributeError, "cannot assign to field 'shape'"),
    (lambda: setattr(OURS.mesh("x8").abstract_mesh, "axis_names", ()), AttributeError, "cannot assign to field"),
    (lambda: xtrace.sharding.use_abstract_mesh(3), ValueError, "Expected mesh of type .*AbstractMesh"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_pickles_and_copies():
    """Specifications and abstract meshes travel; devices do not."""
    for value in (P("x", None, ("y", "z"), P.UNCONSTRAINED), AbstractMesh((2,), "x"), AxisType.Explicit):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value
    abstract = NamedSharding(AbstractMesh((2,), "x"), P("x"))
    assert pickle.loads(pickle.dumps(abstract)) == abstract
    with pytest.raises(TypeError, match="has devices of this process and cannot be pickled"):
        pickle.dumps(OURS.mesh("x8"))


def test_meshes_in_force():
    for lib in LIBRARIES:
        mesh, outer = lib.mesh("x4y2"), lib.mesh("x8")
        with lib.module.set_mesh(outer):
            with lib.module.set_mesh(mesh):
                assert lib.sharding.get_mesh() is mesh
                assert lib.sharding.get_abstract_mesh() == mesh.abstract_mesh
            assert lib.sharding.get_mesh() is outer
        assert lib.sharding.get_mesh().empty
    with xtrace.sharding.use_abstract_mesh(AbstractMesh((3,), "q")) as axes:
        assert xtrace.sharding.get_abstract_mesh() is axes


@pytest.mark.parametrize("name", SHAPES)
def test_every_name_of_the_surface(name):
    """Members of a mesh that jax's has are there, and have its values."""
    ours, theirs = OURS.mesh(name), THEIRS.mesh(name)
    for member in ("axis_names", "axis_sizes", "empty", "size", "auto_axes", "explicit_axes", "manual_axes"):
        assert getattr(ours, member) == getattr(theirs, member)
    assert ours.shape == theirs.shape
    assert jax.tree.structure(ours) == jax.tree.structure(0)


def test_axis_names_of_a_mesh_differ():
    with pytest.raises(ValueError, match=r"each axis needs a name of its own; got \('x', 'x'\)"):
        xtrace.sharding.Mesh(OURS.devices.reshape(4, 2), ("x", "x"))


AXES = [{}, {"varying": {"x"}}, {"unreduced": {"x"}, "reduced": {"y"}}, {"varying": {"x"}, "unreduced": {"y", "z"}}]


@pytest.mark.parametrize("axes", AXES)
def test_manual_axis_types(axes):
    ours, theirs = [lib.sharding.ManualAxisType(**axes) for lib in (OURS, THEIRS)]
    for one in (ours, theirs):
        assert one == one.update() and hash(one) == hash(one.update()) and one != one.update(varying={"q"})
    for read in (
        lambda t: (t.varying, t.unreduced, t.reduced, t.vur, t.empty),
        lambda t: (t.to_ct_mat().varying, t.to_ct_mat().unreduced, t.to_ct_mat().reduced),
    ):
        assert read(ours) == read(theirs)
    if sum(map(len, axes.values())) < 2:
        assert repr(ours) == repr(theirs)
    manual = {"x": AxisType.Manual, "y": AxisType.Manual}
    assert ours.invarying(OURS.mesh("x4y2").abstract_mesh.update_axis_types(manual)) == {"x", "y"} - ours.vur


def test_a_mesh_axis_has_one_manual_type():
    with pytest.raises(ValueError, match="in one of varying, unreduced and reduced only"):
        xtrace.sharding.ManualAxisType(varying={"x"}, reduced={"x"})


def test_types_have_shardings():
    """An array on no explicit axis is whole, on the mesh in force."""
    for lib in (OURS, THEIRS):
        assert lib.module.typeof(np.ones((2, 3))).sharding.mesh.empty
    seen = []
    for lib in (OURS, THEIRS):
        types = []

        def note(x, lib=lib, types=types):
            types.extend([(str(t), str(t.sharding)) for t in map(lib.module.typeof, (x, lib.np.ones(3)))])
            return x

        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            lib.jit(note)(lib.put(np.ones(8), lib.P("x")))
        seen.append(types)
    assert seen[0] == seen[1]


def test_descriptions_of_arrays_have_shardings():
    def show(lib):
        description = lib.module.ShapeDtypeStruct
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            one = description((8, 8), "float32", sharding=lib.P("x"))
            shown = [one, lib.module.eval_shape(lambda x: lib.np.sin(x) * 2, one)]
            return [*map(str, shown), str(lib.module.make_jaxpr(lib.np.sin)(one)).replace(" ", "")]

    assert show(OURS) == show(THEIRS)
    with pytest.raises(TypeError, match=r"manual_axis_type must be an xtrace.sharding.ManualAxisType or None, got 'x'"):
        xtrace.ShapeDtypeStruct((8, 8), "float32", manual_axis_type="x")
    manual = xtrace.ShapeDtypeStruct((8,), "float32", manual_axis_type=xtrace.sharding.ManualAxisType(varying={"x"}))
    assert str(manual.aval) == "float32[8]{V:x}"


def test_meshes_in_force_are_named_at_the_top_too():
    for name in ("get_mesh", "get_abstract_mesh", "use_abstract_mesh"):
        assert getattr(xtrace, name) is getattr(xtrace.sharding, name)


class SlowDictionary(weakref.WeakValueDictionary):
    """A dictionary whose `setdefault` leaves other threads time between its two steps."""

    def setdefault(self, key, default=None):
        known = self.get(key)
        time.sleep(0.05)
        if known is None:
            self[key] = known = default
        return known


@pytest.mark.parametrize(
    "make", [lambda: Mesh(np.array(OURS.devices[:1]), ("raced",)), lambda: AbstractMesh((1,), ("raced",))]
)
def test_threads_that_make_the_same_mesh_get_one_object(make, monkeypatch):
    for name in ("_meshes", "_abstract_meshes"):
        monkeypatch.setattr(mesh, name, SlowDictionary())
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: make(), range(2))
    assert one is other
