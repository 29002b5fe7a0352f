"""Exported functions of several devices: their shardings in files, calls on meshes, and explicit axes."""

import jax
import jax.export
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.support.exports import read_golden as read
from xtrace import export
from xtrace._src.export import flatbuffers, schema
from xtrace._src.export.serialization import DIGEST_MARK, DIGEST_SIZE

X, Y = np.arange(16, dtype=np.float32).reshape(4, 4), np.ones(4, np.float32)


def mesh_of(library, kind="Auto"):
    sharding = library.sharding
    types = (getattr(sharding.AxisType, kind),) * 2
    return sharding.Mesh(library.devices[:4].reshape(2, 2), ("x", "y"), axis_types=types)


def named(library, mesh, *entries):
    return library.sharding.NamedSharding(mesh, library.P(*entries))


def exported_product(library, exporter):
    mesh = mesh_of(library)
    rows, everywhere = named(library, mesh, "x", None), named(library, mesh, ("x", "y"))
    jitted = library.jit(lambda x, y: (x @ x.T, y), in_shardings=(rows, None), out_shardings=(rows, everywhere))
    return exporter.export(jitted)(X, Y), mesh, rows


@pytest.fixture(params=["own", "restored", "of jax"])
def product(request):
    exported, mesh, rows = exported_product(OURS, export)
    if request.param == "restored":
        exported = export.deserialize(exported.serialize(vjp_order=1))
    if request.param == "of jax":
        exported = export.deserialize(read("shardings"))
    return exported, mesh, rows


def test_calls_on_a_mesh(product):
    exported, mesh, rows = product
    x = xtrace.device_put(X, rows)
    for call in (exported.call, xtrace.jit(exported.call)):
        z, y = call(x, Y)
        np.testing.assert_allclose(np.asarray(z), X @ X.T, 1e-6)
        assert z.sharding == rows and y.sharding == named(OURS, mesh, ("x", "y"))
    gradient = xtrace.grad(lambda x: exported.call(x, Y)[0].sum())(x)
    np.testing.assert_allclose(np.asarray(gradient), np.tile(2 * X.sum(0), (4, 1)), 1e-6)
    assert exported.in_shardings_jax(mesh) == (rows, None)
    assert exported.out_shardings_jax(mesh) == (rows, named(OURS, mesh, ("x", "y")))


def on_an_abstract_mesh(library, exporter):
    """What an export for an abstract mesh says, and where results of calls on two meshes are."""
    mesh = library.sharding.AbstractMesh((4,), ("a",))
    described = library.module.ShapeDtypeStruct((32,), np.int32, sharding=named(library, mesh, "a"))
    exported = exporter.export(library.jit(lambda x: x * 2))(described)
    rows = [exported.nr_devices, str(exported.in_shardings_jax(mesh)), str(exported._in_named_shardings)]
    for devices, axis in ((library.devices[:4], "a"), (library.devices[4:].reshape(2, 2), "b")):
        concrete = library.sharding.Mesh(devices, ("a",) if devices.ndim == 1 else ("b", "c"))
        result = exported.call(library.put(np.arange(32, dtype=np.int32), named(library, concrete, axis)))
        rows += [f"{s.device} {s.index} {np.asarray(s.data).tolist()}" for s in result.addressable_shards]
    return rows


def test_exports_for_an_abstract_mesh():
    ours, theirs = on_an_abstract_mesh(OURS, export), on_an_abstract_mesh(THEIRS, jax.export)
    assert [x.replace("TFRT_CPU_", "cpu:") if type(x) is str else x for x in theirs] == ours


def test_the_shardings_are_jaxs():
    mine, other = exported_product(OURS, export)[0], exported_product(THEIRS, jax.export)[0]
    assert mine.nr_devices == other.nr_devices == 4
    for name in ("_in_named_shardings", "_out_named_shardings", "in_shardings_hlo", "out_shardings_hlo"):
        assert str(getattr(mine, name)) == str(getattr(other, name)), name


def test_other_numbers_of_devices_and_meshes_are_refused(product):
    exported = product[0]
    with pytest.raises(ValueError, match="was exported for 4 devices and is called in a context with 1"):
        exported.call(X, Y)
    with pytest.raises(ValueError, match="exported for 4 devices and is called in a context with 8"):
        exported.call(xtrace.device_put(X, OURS.named("x8", None)), Y)
    with pytest.raises(ValueError, match=r"in_shardings_jax: .* does not match the mesh used for export"):
        exported.in_shardings_jax(OURS.mesh("x4y2"))


def test_a_program_of_one_device_is_called_on_meshes():
    exported = export.export(xtrace.jit(lambda x: x * 2))(X)
    x = xtrace.device_put(X, OURS.named("x4y2", "x"))
    np.testing.assert_array_equal(np.asarray(exported.call(x)), 2 * X)


def test_functions_of_shards():
    mesh = mesh_of(OURS)
    x = xtrace.device_put(X, named(OURS, mesh, "x"))
    function = xtrace.jit(xtrace.shard_map(
        lambda x: xtrace.lax.psum(x, "x"), mesh=mesh, in_specs=OURS.P("x"), out_specs=OURS.P()
    ))
    own = export.export(function)(x)
    for exported in (own, export.deserialize(own.serialize(vjp_order=1)), export.deserialize(read("shards"))):
        np.testing.assert_array_equal(np.asarray(exported.call(x)), X[:2] + X[2:])
        np.testing.assert_array_equal(np.asarray(xtrace.grad(lambda x: exported.call(x).sum())(x)), np.ones((4, 4)))  # noqa: B023


def symbolic_shards(library, exporter, sizes, of_shards):
    """Return the result of a program for symbolic sizes, split over two devices, and the type of the export."""
    mesh = library.sharding.Mesh(library.devices[:2], ("x",))
    rows = named(library, mesh, "x", None)
    function = (lambda x: library.lax.ppermute(x, "x", [(0, 1), (1, 0)])) if of_shards else lambda x: x * 2
    if of_shards:
        function = library.module.shard_map(function, mesh=mesh, in_specs=library.P("x"), out_specs=library.P("x"))
    jitted = library.jit(function, in_shardings=rows, out_shardings=rows)
    exported = exporter.export(jitted)(*exporter.symbolic_args_specs((X,), sizes))
    result = exported.call(library.put(X, named(library, mesh)))
    return np.asarray(result), [str(a.shape) for a in exported.out_avals]


@pytest.mark.parametrize("of_shards", [False, True])
@pytest.mark.parametrize("sizes", ["2*b, _", "_, n", "4*b, n"])
def test_symbolic_sizes_are_split(sizes, of_shards):
    mine, other = [symbolic_shards(*each, sizes, of_shards) for each in ((OURS, export), (THEIRS, jax.export))]
    np.testing.assert_array_equal(mine[0], other[0])
    assert mine[1] == other[1]


def test_symbolic_sizes_that_may_not_be_divisible():
    for each in ((OURS, export), (THEIRS, jax.export)):
        with pytest.raises(ValueError, match=r"partitioned 2 times, but the dimension size is b"):
            symbolic_shards(*each, "b, _", False)


def test_explicit_axes():
    mesh = mesh_of(OURS, "Explicit")
    rows = named(OURS, mesh, "x", None)
    x = xtrace.device_put(X, rows)
    own = export.export(xtrace.jit(lambda x: xtrace.numpy.sin(x) + 1))(x)
    assert own.in_avals[0].str_short(True) == "f32[4@x,4]"
    for exported in (own, export.deserialize(own.serialize(vjp_order=1))):
        assert exported.call(x).sharding == rows and xtrace.typeof(exported.call(x)).str_short(True) == "f32[4@x,4]"
        gradient = xtrace.grad(lambda x: exported.call(x).sum())(x)  # noqa: B023
        np.testing.assert_allclose(np.asarray(gradient), np.cos(X), 1e-5)


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_files_go_to_jax_and_back(writer):
    library, exporter = (OURS, export) if writer == "ours" else (THEIRS, jax.export)
    reader, reading = (THEIRS, jax.export) if writer == "ours" else (OURS, export)
    exported = exported_product(library, exporter)[0]
    restored = reading.deserialize(bytearray(exported.serialize(vjp_order=1)))
    x = reader.put(X, named(reader, mesh_of(reader), "x", None))
    np.testing.assert_allclose(np.asarray(restored.call(x, Y)[0]), X @ X.T, 1e-6)
    gradient = reader.module.grad(lambda x: restored.call(x, Y)[0].sum())(x)
    np.testing.assert_allclose(np.asarray(gradient), np.tile(2 * X.sum(0), (4, 1)), 1e-6)


def older_file(**messages):
    """The file of `exported_product` as jax wrote it before version 6 of the format, with shardings in XLA's form."""
    data = exported_product(OURS, export)[0].serialize()
    record = flatbuffers.decode(
        schema.EXPORTED, bytes(data[:4] + bytes(4) + data[8 : -DIGEST_SIZE - len(DIGEST_MARK)])
    )
    for side in ("in", "out"):
        record[f"{side}_sharding_numbers"] = None
        record[f"{side}_shardings"] = [
            {} if each is None else {"kind": schema.HLO_SHARDING, "hlo_sharding": each} for each in messages[side]
        ]
    return bytes(flatbuffers.encode(schema.EXPORTED, record | {"unique_shardings": [], "unique_meshes": []}))


def test_shardings_in_the_form_of_xla():
    mesh = mesh_of(THEIRS)
    rows, columns, everywhere = [
        named(THEIRS, mesh, *entries)._to_xla_hlo_sharding(2).to_proto().SerializeToString()
        for entries in (("x", None), (None, "y"), ())
    ]
    data = older_file(**{"in": [rows, None], "out": [columns, everywhere]})
    ours, theirs = export.deserialize(data), jax.export.deserialize(bytearray(data))
    for name in ("_has_named_shardings", "_in_named_shardings", "in_shardings_hlo", "out_shardings_hlo"):
        assert str(getattr(ours, name)) == str(getattr(theirs, name)), name
    for library, exported in ((OURS, ours), (THEIRS, theirs)):
        mesh = mesh_of(library)
        assert exported.in_shardings_jax(mesh) == (named(library, mesh, "x"), None)
        assert exported.out_shardings_jax(mesh) == (named(library, mesh, None, "y"), named(library, mesh))
        z, y = exported.call(library.put(X, named(library, mesh, "x")), Y)
        np.testing.assert_allclose(np.asarray(z), X @ X.T, 1e-6)
        assert z.sharding == named(library, mesh, None, "y") and y.sharding.is_fully_replicated
        with pytest.raises(ValueError, match="shardings"):
            exported.serialize()
    with pytest.raises(ValueError, match=r"in_shardings_jax: .* which is for 4 devices"):
        ours.in_shardings_jax(OURS.mesh("x4y2"))
    for damaged in (b"x", rows[:-1], rows[:5] + b"\3" + rows[6:], b"\x08\4"):
        with pytest.raises(ValueError, match=r"deserialize: .* bytes are no sharding over 4 devices"):
            export.deserialize(older_file(**{"in": [damaged, None], "out": [None, None]}))
