"""Solutions of differential equations: the steps of jax's odeint, exact solutions, and exact derivatives."""

import jax
import numpy as np
import pytest
from jax.experimental.ode import odeint as jax_odeint

import xtrace
import xtrace.numpy as jnp
from xtrace.experimental.ode import odeint

START = np.array([1.0, 2.0])
TIMES = np.array([0.0, 0.5, 1.0])


def _swinging(library):
    return lambda y, t, rate: -rate * y * library.numpy.sin(20 * t)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"rtol": 1e-3, "atol": 1e-3}, {"rtol": 1e-6, "atol": 1e-6, "hmax": 0.05}])
def test_steps_are_those_of_jax(options):
    # The tolerances are loose, so that what agrees to rounding are the steps, accepted and rejected.
    with jax.enable_x64(True):
        theirs = np.asarray(jax_odeint(_swinging(jax), START, TIMES, 50.0, **options))
    with xtrace.enable_x64(True):
        found = odeint(_swinging(xtrace), START, TIMES, 50.0, **options)
        np.testing.assert_allclose(found, theirs, rtol=1e-9)
        assert found.dtype == np.float64


@pytest.mark.slow
def test_trees_and_times():
    def motion(y, t):
        return {"a": -y["a"], "b": 1j * y["b"]}

    start = {"a": START.astype(np.float32), "b": np.complex64(1)}
    found = xtrace.jit(lambda y, t: odeint(motion, y, t, rtol=1e-6, atol=1e-6))(start, TIMES.astype(np.float32))
    assert (found["a"].dtype, found["b"].dtype) == (np.float32, np.complex64)
    # A step's error is at most 1e-6 of y, which is at most 2, plus 1e-6, and there are fewer than 30 steps.
    np.testing.assert_allclose(found["a"], START * np.exp(-TIMES)[:, None], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found["b"], np.exp(1j * TIMES), rtol=0, atol=1e-4)

    solved = xtrace.jit(lambda t: odeint(lambda y, t: -y, 1.0, t, mxstep=100))
    falling, repeated = solved(np.array([1, 0.5, 0], np.float32)), solved(np.array([0, 0, 1], np.float32))
    np.testing.assert_array_equal(np.isnan(falling), [False, True, True])
    np.testing.assert_allclose(repeated, np.exp([0, 0, -1.0]), rtol=1e-5)
    np.testing.assert_array_equal(odeint(lambda y, t: -y, START, TIMES[:1]), [START])


@pytest.mark.slow
def test_derivatives():
    # y = y0 exp(-n p t²/2 + c t), so that the derivatives of its sum over the times follow.
    def loss(y0, times, p, c):
        ys = odeint(lambda y, t, a: (c - a["n"] * a["p"] * t) * y, y0, times, {"p": p, "n": np.int32(2)})
        return jnp.sum(ys)

    def exact(y0, times, p, c):
        return jnp.sum(y0 * jnp.exp(c * (times - times[0]) - p * (times**2 - times[0] ** 2))[:, None])

    with xtrace.enable_x64(True):
        arguments = (START, np.array([0.1, 0.4, 1.0]), 0.7, 0.3)
        every = tuple(range(4))
        found, wanted = [xtrace.jit(xtrace.grad(f, every))(*arguments) for f in (loss, exact)]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_second_derivatives_in_a_batch():
    def second(p):
        return xtrace.grad(xtrace.grad(lambda p: odeint(lambda y, t: -p * y, 1.0, TIMES, rtol=1e-6, atol=1e-6)[-1]))(p)

    with xtrace.enable_x64(True):
        rates = np.array([0.5, 1.0])
        np.testing.assert_allclose(xtrace.vmap(second)(rates), np.exp(-rates), rtol=0, atol=1e-4)


def test_mistakes():
    def decay(y, t, *_):
        return -y

    with pytest.raises(TypeError, match=r"odeint \*args must be arrays or scalars, but got x"):
        odeint(decay, START, TIMES, "x")
    for times in (np.arange(3), [0.0, 1.0], TIMES[None], TIMES[:0]):
        with pytest.raises(TypeError, match="t must be an array of floats, with one axis"):
            odeint(decay, START, times)
    with pytest.raises(TypeError, match=r"y0 must have floating or complex dtypes, got i32\[2\]"):
        odeint(decay, np.array([1, 2], np.int32), TIMES)
    with pytest.raises(TypeError, match=r"with its tree and shapes .* of \[\(2,\)\]; it returned .* of \[\(\)\]"):
        odeint(lambda y, t: y[0], START, TIMES)
    with pytest.raises(TypeError, match="make y0 complex"):
        odeint(lambda y, t: 1j * y, START, TIMES)
    with pytest.raises(TypeError, match="forward-mode"):
        xtrace.jvp(lambda y: odeint(decay, y, TIMES), (START,), (START,))
    with pytest.raises(TypeError, match="callable"):
        odeint(3, START, TIMES)
    with pytest.raises(ValueError, match=r"odeint: rtol is compiled into the program .*, got Array\(0\.1"):
        odeint(decay, START, TIMES, rtol=jnp.asarray(0.1))


def test_eager_gradients_compile_once_for_a_function():
    def decay(y, t, p):
        return -p * y

    compiled = []
    xtrace.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiled.append(event))
    try:
        counts = []
        for rate in (0.5, 0.25, 0.125):
            xtrace.grad(lambda p: odeint(decay, START, TIMES, p)[-1].sum())(rate)
            counts.append(sum("backend_compile" in event for event in compiled))
    finally:
        xtrace.monitoring.clear_event_listeners()
    assert counts[0] > 0 and counts[1] == counts[2]
