"""Training steps on eight devices give the numbers of one device, and jax's shardings."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.training_steps import STEPS

CASES = [(name, kind) for name, (_, kinds) in STEPS.items() for kind in kinds]


def train(lib, name, kind, steps=3):
    """Return the state and the losses after some steps, whose state is donated."""
    build, _ = STEPS[name]
    step, (state, *batch) = build(lib, kind)
    jitted, losses = lib.jit(step, donate_argnums=0), []
    for _ in range(steps):
        state, loss = jitted(state, *batch)
        losses.append(loss)
    return state, losses


def train_on_mesh(lib, name, kind):
    if kind == "Manual":
        return train(lib, name, kind)
    with lib.module.set_mesh(lib.mesh("x4y2", kind)):
        return train(lib, name, kind)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_steps_give_the_numbers_of_one_device(name, kind):
    ours, theirs = train_on_mesh(OURS, name, kind), train_on_mesh(THEIRS, name, kind)
    single = train(OURS, name, None)
    assert np.asarray(single[1][-1]) < np.asarray(single[1][0])
    leaves = [lib.module.tree.leaves(x) for lib, x in ((OURS, ours), (THEIRS, theirs), (OURS, single))]
    for x, y, alone in zip(*leaves, strict=True):
        assert repr(x.sharding) == repr(y.sharding)
        # Three steps of sums of up to 16 * 8 products, in another order.
        np.testing.assert_allclose(x, alone, rtol=3e-4, atol=3e-5)
        np.testing.assert_allclose(x, y, rtol=3e-4, atol=3e-5)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_types_of_steps_are_those_of_jax(name, kind):
    seen = []
    for lib in (OURS, THEIRS):
        build, _ = STEPS[name]
        if kind == "Manual":
            step, arguments = build(lib, kind)
            seen.append([str(v.aval) for v in lib.module.make_jaxpr(step)(*arguments).jaxpr.outvars])
            continue
        with lib.module.set_mesh(lib.mesh("x4y2", kind)):
            step, arguments = build(lib, kind)
            seen.append([str(v.aval) for v in lib.module.make_jaxpr(step)(*arguments).jaxpr.outvars])
    assert seen[0] == seen[1]


def test_a_step_compiled_ahead_of_time_keeps_its_shardings():
    with xtrace.set_mesh(OURS.mesh("x4y2", "Auto")):
        step, arguments = STEPS["fully_sharded"][0](OURS, "Auto")
        described = xtrace.tree.map(xtrace.ShapeDtypeStruct.like, arguments)
        compiled = xtrace.jit(step).lower(*described).compile()
        state, _ = compiled(*arguments)
    for old, new in zip(xtrace.tree.leaves(arguments[0]), xtrace.tree.leaves(state), strict=True):
        assert old.sharding.is_equivalent_to(new.sharding, new.ndim)
