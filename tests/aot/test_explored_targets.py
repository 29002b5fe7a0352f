"""The explorer's data of programs for devices that are not here: linked to lines, and counted as XLA counts."""

import importlib.util

import pytest

import xtrace
import xtrace.numpy as jnp

_HERE = all(importlib.util.find_spec(name) for name in ("libtpu", "jax_plugins"))
pytestmark = [
    pytest.mark.aot, pytest.mark.slow,
    pytest.mark.skipif(not _HERE, reason="the compilers of the extra `aot` are not installed"),
]


def loss(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).sum()


ARGUMENTS = [jnp.ones((128, 128))] * 2, jnp.ones((64, 128))


@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_programs_of_targets_are_linked_and_counted(target):
    lowered = xtrace.lower(xtrace.grad(loss), *ARGUMENTS)
    program = lowered.explore(target=target).to_json()["programs"][0]
    assert program["target"] == target and not program["device"]["assumed"]
    linked = sum(n for how, n in program["coverage"].items() if not how.startswith("none"))
    assert linked >= 0.95 * sum(program["coverage"].values())
    known = lowered.compile(target=target).cost_analysis()
    # The compilers count copies, reductions and calls of libraries in ways of their own.
    assert program["cost"]["flops"] == pytest.approx(known["flops"], rel=0.1)
    assert sum(row[5] for row in program["lines"]) == pytest.approx(1, rel=1e-3)


def test_collectives_have_their_line():
    mesh = xtrace.make_mesh((4, 2), ("data", "model"), target="tpu-v5e:4x2")

    def split(shape, *entries):
        sharding = xtrace.NamedSharding(mesh, xtrace.P(*entries))
        return xtrace.ShapeDtypeStruct(shape, "float32", sharding=sharding)

    arguments = [split((128, 128), None, "model")], split((64, 128), "data", None)
    program = xtrace.lower(xtrace.grad(loss), *arguments).explore().to_json()["programs"][0]
    assert program["collectives"] and all(c["file"] == __file__ for c in program["collectives"])
