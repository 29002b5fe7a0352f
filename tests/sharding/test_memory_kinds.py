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
        "e": lib.put(X, lib.named("x4y2", "x", kind="Explicit").with_memory_kind("pinned_host")),
        "n": lib.put(np.float32(2), one("pinned_host")), "lax": lib.lax,
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
    # On explicit axes, too.
    "jit(lambda x: x)(e)", "jit(lambda x: (x * 2).sum(0))(e)", f"jit(lambda x: {TO_DEVICE} * 2)(e)", "e * 2",
    f"jit(lambda x: m.device_put({TO_DEVICE} * 2, m.memory.Space.Host))(e)",
    # Scalars are combined on the device; arrays decide otherwise.
    "n * np.float32(3)", "h.mean()", "h * np.float32(3)", "s * n", "np.where(h.sum() > 1, n, 0.0)",
    "jit(lambda x: x.sum() + 1.0)(h)", "lax.scan(lambda c, x: (c + x.sum(), x * 2), 0.0, h)[0]",
    "lax.scan(lambda c, x: (c + x.sum(), x * 2), 0.0, h)[1]",
    "lax.while_loop(lambda x: x.sum() < 1e4, lambda x: x * 2, h)",
    "lax.cond(h.sum() > 0, lambda x: x * 2, lambda x: x, h)", "lax.dynamic_slice(h, (n.astype(int), 0), (2, 2))",
    # A scatter is in the memory of its operand.
    "h.at[0].set(1.0)", "h.at[0].add(s[0])", "s.at[0].add(h[0])", "m.ops.segment_sum(h, np.zeros(8, int), 2)",
    # All results are in the memory of the operands.
    "np.split(h, 2)[1]", "np.linalg.svd(h)[1]", "lax.top_k(h, 2)[0]",
    "lax.reduce(h, 0.0, lambda x, y: x + y * y, (0,))",
    # A cotangent returns to the memory and the devices of the operand.
    "m.grad(lambda x: m.device_put(np.sin(x), m.memory.Space.Device).sum())(k)",
]


@pytest.mark.parametrize("expression", RESULTS)
def test_results_are_in_the_memory_of_jaxs(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert ours.shape == theirs.shape
    assert (ours.sharding.memory_kind, ours.dtype) == (theirs.sharding.memory_kind, theirs.dtype)
    space = "<host>" if ours.sharding.memory_kind == "pinned_host" else ""
    assert f"f32{space}[" in xtrace.typeof(ours).str_short(True)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6, atol=1e-4)


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


def test_operations_that_are_written_in_others():
    # jax refuses this one.
    results = evaluate(OURS, "np.linalg.qr(h)")
    assert [x.sharding.memory_kind for x in results] == ["pinned_host"] * 2
    np.testing.assert_allclose(np.asarray(results[0]) @ np.asarray(results[1]), X, atol=1e-4)
