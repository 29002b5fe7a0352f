"""Reports of compiled programs: memory, replicated arguments and collectives on each of eight devices."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS
from xtrace import lax

BATCH, WIDTH, HIDDEN, STEPS = 16, 8, 32, 3
FLOAT = 4


def step(parameters, x):
    def loss(p):
        def layer(h, _):
            return jnp.tanh(h @ p["in"]) @ p["out"] + p["bias"], None

        return lax.scan(layer, x, None, length=STEPS)[0].sum()

    return xtrace.tree.map(lambda p, g: p - g, parameters, xtrace.grad(loss)(parameters))


def compiled():
    def put(shape, *entries):
        return OURS.put(np.ones(shape, "f"), OURS.named("x4y2", *entries))

    parameters = {
        "in": put((WIDTH, HIDDEN), None, "y"), "out": put((HIDDEN, WIDTH), "y", None), "bias": put((WIDTH,)),
    }
    return xtrace.jit(step, donate_argnums=0).lower(parameters, put((BATCH, WIDTH), "x")).compile()


def test_memory_and_replicated_arguments():
    report = compiled().report()
    assert (report.name, report.devices, report.device_kind) == ("step", 8, "cpu")
    weights = 2 * WIDTH * HIDDEN // 2 + WIDTH
    assert report.memory.arguments == FLOAT * (weights + BATCH // 4 * WIDTH)
    # CPUs add a pointer for each of the three results.
    assert report.memory.results == FLOAT * weights + 3 * 8 and report.memory.aliased == FLOAT * weights
    assert report.memory.total == sum(report.memory) - 2 * report.memory.aliased
    (bias,) = report.replicated
    assert bias == ("parameters['bias']", "float32[8]", FLOAT * WIDTH)
    assert report.capacity is None and report.fits is None and compiled().fits()
    assert report.flops > 0 < report.bytes_accessed


def test_collectives():
    """Contractions of the hidden dimension are summed along y, in both directions, and gradients along x."""
    report = compiled().report()
    assert {c.kind for c in report.collectives} == {"all-reduce"}
    along_y = [c for c in report.collectives if c.axes == ("y",)]
    assert [(c.size, c.times, c.at_least) for c in along_y] == [(FLOAT * BATCH // 4 * WIDTH, STEPS, False)] * 2
    gradients = FLOAT * (2 * WIDTH * HIDDEN // 2 + WIDTH)
    along_x = [c for c in report.collectives if c.axes == ("x",)]
    assert sum(c.size for c in along_x) == gradients
    places = {c.place.rpartition(":")[0] for c in report.collectives if c.place is not None}
    assert places == {__file__}


def test_the_report_is_a_table():
    lines = str(compiled().report()).splitlines()
    assert lines[0] == "step: 8 devices of kind cpu, mesh x=4, y=2"
    assert "replicated arguments:" in lines and "  32 B           float32[8]  parameters['bias']" in lines
    assert any(line.startswith("  all-reduce") and " y " in line for line in lines)


def test_programs_on_one_device():
    report = xtrace.jit(lambda x: x @ x).lower(np.ones((4, 4), "f")).compile().report()
    assert (report.devices, report.mesh, report.replicated, report.collectives) == (1, None, (), ())
    assert report.memory.arguments == 64 and "collectives: none" in str(report)


def test_unread_arguments_are_left_out():
    x = OURS.put(np.ones(8, "f"), OURS.named("x8"))
    report = xtrace.jit(lambda x, y: y * 2).lower(x, x).compile().report()
    assert [r.name for r in report.replicated] == ["y"]


@pytest.mark.parametrize("size", [1, 4])
def test_other_numbers_of_devices_are_refused(size):
    with pytest.raises((ValueError, ImportError), match=r"devices|pip install"):
        compiled_step = xtrace.jit(lambda x: x * 2).lower(OURS.put(np.ones(8, "f"), OURS.named("x8", "x")))
        compiled_step.compile(target=f"h200:{size}")
