"""Kinds of memory in the shardings of compiled functions."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def evaluate(lib, expression):
    """The value of an expression of arrays in either memory, on one device (`s`, `h`) and on a mesh (`t`, `k`)."""
    def one(kind):
        return lib.sharding.SingleDeviceSharding(lib.devices[0], memory_kind=kind)

    def split(kind):
        return lib.named("x4y2", "x").with_memory_kind(kind)

    names = {
        "S": one, "N": split, "X": X, "jit": lib.jit, "np": lib.np, "m": lib.module, "P": lib.P,
        "s": lib.put(X, one("device")), "h": lib.put(X, one("pinned_host")), "t": lib.put(X, split("device")),
        "k": lib.put(X, split("pinned_host")),
    }
    return eval(expression, names)


HOST, TO_DEVICE = "'pinned_host'", "m.device_put(x, m.memory.Space.Device)"
RESULTS = [
    f"jit(lambda x: x, out_shardings=S({HOST}))(s)", f"jit(lambda x: x + 1, out_shardings=S({HOST}))(s)",
    f"jit(lambda x: x + 1, out_shardings=N({HOST}))(t)", f"jit(lambda x: x, out_shardings=N({HOST}))(X)",
    f"jit(lambda x: x, out_shardings=N({HOST}))(k)", f"jit(lambda x: x, in_shardings=S({HOST}))(h)",
    f"jit(lambda x: x + 1, in_shardings=S({HOST}))(h)", f"jit(lambda x: {TO_DEVICE} + 1, in_shardings=S({HOST}))(h)",
    f"jit(lambda x: {TO_DEVICE} + 1, in_shardings=N({HOST}))(k)",
    f"jit(lambda x: {TO_DEVICE} + 1, in_shardings=N({HOST}), out_shardings=N({HOST}))(k)",
    f"jit(lambda x: x * 2, in_shardings=N({HOST}), out_shardings=N('device'))(k)",
    f"jit(lambda x: x + 1, in_shardings=S({HOST}))(X)", f"jit(lambda x: x, in_shardings=N({HOST}))(X)",
    f"jit(lambda x: (x, x.T), out_shardings=(S({HOST}), None))(s)[0]",
    f"jit(lambda x: (x, x.T), out_shardings=(S({HOST}), None))(s)[1]",
    f"jit(lambda x: jit(lambda x: x + 1, out_shardings=N({HOST}))(x), out_shardings=N({HOST}))(t)",
]


@pytest.mark.parametrize("expression", RESULTS)
def test_results_are_in_the_memory_of_jaxs(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert (ours.sharding.memory_kind, ours.dtype) == (theirs.sharding.memory_kind, theirs.dtype)
    space = "<host>" if ours.sharding.memory_kind == "pinned_host" else ""
    assert xtrace.typeof(ours).str_short(True) == f"f32{space}[8,8]"
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


@pytest.mark.parametrize("expression", [
    f"jit(lambda x: x, in_shardings=S({HOST}))(s)", "jit(lambda x: x + 1, in_shardings=S('device'))(h)",
    f"jit(lambda x: x, in_shardings=N({HOST}))(t)", "jit(lambda x: x, in_shardings=N('device'))(k)",
])
def test_arguments_are_in_the_memory_that_is_given(expression):
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError, match=r"[Mm]emory kind"):
            evaluate(lib, expression)


def test_gradients_go_back_to_the_memory_of_arguments():
    weights = OURS.put(X, OURS.named("x4y2", "x").with_memory_kind("pinned_host"))

    def loss(w):
        return (xtrace.device_put(w, xtrace.memory.Space.Device) ** 2).sum()

    step = xtrace.jit(xtrace.grad(loss), in_shardings=weights.sharding, out_shardings=weights.sharding)
    gradient = step(weights)
    assert gradient.sharding == weights.sharding
    np.testing.assert_allclose(gradient, 2 * X)
