"""Programs partitioned for sixteen TPU chips and eight GPUs that are not here, against computations by hand."""

import importlib.util

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from xtrace.sharding import PartitionSpec as P

_HERE = all(importlib.util.find_spec(name) for name in ("libtpu", "jax_plugins"))
pytestmark = [
    pytest.mark.aot, pytest.mark.slow,
    pytest.mark.skipif(not _HERE, reason="the compilers of the extra `aot` are not installed"),
]

DATA, MODEL = 4, 4
BATCH, LENGTH, WIDTH, HEADS, HEAD, HIDDEN = 16, 128, 512, 8, 64, 2048
FLOAT = 4


def mesh_of(target, sizes):
    return xtrace.make_mesh(sizes, ("data", "model"), axis_types=(AxisType.Auto,) * 2, target=target)


def transformer_step(mesh):
    """Return one layer's training step, and descriptions of its arguments: batch by data, heads and hidden by model."""
    def describe(shape, *entries):
        return xtrace.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*entries)))

    layer = {name: describe((WIDTH, HEADS, HEAD), None, "model", None) for name in ("q", "k", "v")} | {
        "o": describe((HEADS, HEAD, WIDTH), "model", None, None), "in": describe((WIDTH, HIDDEN), None, "model"),
        "out": describe((HIDDEN, WIDTH), "model", None), "scale": describe((WIDTH,)),
    }

    def loss(layer, x):
        y = x * layer["scale"]
        q, k, v = [jnp.einsum("btd,dhk->bthk", y, layer[name]) for name in ("q", "k", "v")]
        weights = xtrace.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / HEAD**0.5)
        x = x + jnp.einsum("bthk,hkd->btd", jnp.einsum("bhts,bshk->bthk", weights, v), layer["o"])
        x = x + jnp.tanh(x @ layer["in"]) @ layer["out"]
        return (x**2).mean()

    def step(layer, x):
        return xtrace.tree.map(lambda p, g: p - 0.1 * g, layer, xtrace.grad(loss)(layer, x))

    return step, (layer, describe((BATCH, LENGTH, WIDTH), "data", None, None))


@pytest.fixture(scope="module")
def report():
    step, arguments = transformer_step(mesh_of("tpu-v5e:4x4", (DATA, MODEL)))
    shardings = xtrace.tree.map(lambda a: a.sharding, arguments[0])
    compiled = xtrace.jit(step, out_shardings=shardings).lower(*arguments).compile()
    assert compiled.input_shardings[0][0] == shardings == compiled.output_shardings
    return compiled.report()


def test_memory_of_a_chip(report):
    weights = 4 * WIDTH * HEADS * HEAD + 2 * WIDTH * HIDDEN
    arguments = FLOAT * (weights // MODEL + WIDTH + BATCH // DATA * LENGTH * WIDTH)
    assert arguments <= report.memory.arguments <= 1.01 * arguments
    results = FLOAT * (weights // MODEL + WIDTH)
    assert results <= report.memory.results <= 1.01 * results
    assert report.capacity == 16 << 30 and report.fits
    assert [r.name for r in report.replicated] == ["layer['scale']"]


def test_operations_of_a_chip(report):
    tokens = BATCH * LENGTH
    forward = 2 * tokens * (4 * WIDTH * HEADS * HEAD + 2 * WIDTH * HIDDEN) + 2 * 2 * BATCH * HEADS * LENGTH**2 * HEAD
    # Each product has two transposes but for that of the loss's input; elementwise operations add a few per cent.
    products = 3 * forward / (DATA * MODEL)
    assert 0.9 * products <= report.flops <= 1.15 * products


def test_bytes_of_collectives(report):
    activations = BATCH // DATA * LENGTH * WIDTH
    weights = (4 * WIDTH * HEADS * HEAD + 2 * WIDTH * HIDDEN) // MODEL
    along_data = sum(c.size * c.times for c in report.collectives if c.axes == ("data",))
    along_model = [c.size * c.times for c in report.collectives if c.axes == ("model",)]
    # Gradients of the weights, and of the scale, in bfloat16 at the least.
    assert FLOAT // 2 * weights <= along_data <= 1.05 * FLOAT * (weights + WIDTH)
    # The two contractions of sharded dimensions forward, their transposes, and those of the three projections.
    assert 2 * FLOAT // 2 * activations <= sum(along_model) <= 7.1 * FLOAT * activations
    assert {c.place.rpartition(":")[0] for c in report.collectives if c.place} == {__file__}


def test_a_mesh_of_cpus_is_moved_to_the_target():
    cpus = xtrace.devices()
    if len(cpus) < 4:
        pytest.skip("a mesh of four needs four CPU devices")
    mesh = Mesh(np.array(cpus[:4]).reshape(2, 2), ("data", "model"))
    step, arguments = transformer_step(mesh)
    lowered = xtrace.jit(step).lower(*arguments)
    report = lowered.compile(target="tpu-v5e:2x2").report()
    assert (report.devices, report.device_kind) == (4, "TPU v5 lite") and report.collectives
    with pytest.raises(ValueError, match=r"the target tpu-v5e:4x4 has 16 devices, and step is partitioned over"):
        lowered.compile(target="tpu-v5e:4x4")


def test_gpus():
    step, arguments = transformer_step(mesh_of("h200:8", (4, 2)))
    report = xtrace.jit(step).lower(*arguments).compile().report()
    assert (report.devices, report.device_kind) == (8, "NVIDIA H200") and report.fits
    assert {axis for c in report.collectives for axis in c.axes} == {"data", "model"}
    assert "NVIDIA H200" in str(report)


def test_a_program_that_does_not_fit():
    mesh = mesh_of("tpu-v5e:2x2", (2, 2))
    x = xtrace.ShapeDtypeStruct((1 << 17, 1 << 15), "float32", sharding=NamedSharding(mesh, P("data")))
    try:
        compiled = xtrace.jit(lambda x: x * 2).lower(x).compile()
    except xtrace.errors.JaxRuntimeError as error:
        assert "hbm" in str(error).lower()
    else:
        assert not compiled.fits() and "DOES NOT FIT" in str(compiled.report())


def test_a_mesh_without_devices_is_compiled_for_a_target(report):
    step, arguments = transformer_step(AbstractMesh((DATA, MODEL), ("data", "model")))
    lowered = xtrace.jit(step).lower(*arguments)
    planned = lowered.compile(target="tpu-v5e:4x4").report()
    assert planned.devices == 16 and planned.memory.arguments == report.memory.arguments
    assert sorted(c.kind for c in planned.collectives) == sorted(c.kind for c in report.collectives)
    with pytest.raises(ValueError, match=r"AbstractMesh, which has no devices to compile for.*target="):
        lowered.compile()
    with pytest.raises(ValueError, match=r"target tpu-v5e:2x2 has 4 devices.*16 devices"):
        lowered.compile(target="tpu-v5e:2x2")


def test_256_chips():
    mesh = mesh_of("tpu-v5e:16x16", (16, 16))
    step, arguments = transformer_step(mesh)
    with pytest.raises(ValueError, match=r"array axis 1 is partitioned 16 times, but the dimension size is 8"):
        xtrace.jit(step).lower(*arguments)
    step, arguments = transformer_step(mesh_of("tpu-v5e:16x16", (32, 8)))
    with pytest.raises(ValueError, match=r"array axis 0 is partitioned 32 times, but the dimension size is 16"):
        xtrace.jit(step).lower(*arguments)
    wide = xtrace.ShapeDtypeStruct((256, 4096), "float32", sharding=NamedSharding(mesh, P("data", "model")))
    found = xtrace.jit(lambda x: (x * x).sum()).lower(wide).compile().report()
    assert found.devices == 256 and found.memory.arguments == 4 * 16 * 256


def test_meshes_of_targets():
    assert xtrace.make_mesh((8,), ("data",), target="h200:8").devices.shape == (8,)
    with pytest.raises(ValueError, match="unknown target 'abacus'"):
        xtrace.make_mesh((1,), ("x",), target="abacus")
    with pytest.raises(TypeError, match="leave out devices, or target"):
        xtrace.make_mesh((1,), ("x",), target="h200", devices=xtrace.devices()[:1])
    with pytest.raises(ValueError, match=r"Number of devices 4 must be >= .* \(4, 4\)"):
        xtrace.make_mesh((4, 4), ("x", "y"), target="tpu-v5e:2x2")
