"""``python -m xtrace demo``: it learns the digits, its gradient is right, and missing packages are named."""

import re
import sys
import time

import numpy as np
import pytest

import xtrace
from xtrace.cli import demo
from xtrace.cli.main import main

EPS = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module")
def batch():
    """A state and a batch of random images with one-hot labels."""
    generator = np.random.default_rng(3)
    state = demo.initial_state(generator)
    images = generator.random((64, 64), np.float32)
    labels = np.eye(10, dtype=np.float32)[generator.integers(0, 10, 64)]
    return state, images, labels


def float64_loss(parameters, images, labels):
    """The loss again, in NumPy and double precision."""
    p = {name: np.asarray(value, np.float64) for name, value in parameters.items()}
    scores = np.tanh(images @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    log_probabilities = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(np.sum(labels * log_probabilities, axis=1))


def test_the_gradient_agrees_with_differences(batch):
    state, images, labels = batch
    images, labels = images.astype(np.float64), labels.astype(np.float64)
    gradient = xtrace.jit(xtrace.grad(demo.loss))(state.parameters, *batch[1:])
    generator, step = np.random.default_rng(4), 1e-5
    for name, value in state.parameters.items():
        direction = generator.normal(size=value.shape)
        ends = [float64_loss(state.parameters | {name: value + s * direction}, images, labels) for s in (step, -step)]
        expected = (ends[0] - ends[1]) / (2 * step)
        found = np.vdot(np.asarray(gradient[name], np.float64), direction)
        # Each of the entries summed carries a relative error of some float32 roundings.
        scale = np.linalg.norm(gradient[name]) * np.linalg.norm(direction)
        assert abs(found - expected) < 64 * EPS * scale


def test_the_loss_agrees_with_numpy(batch):
    state, images, labels = batch
    found = float(xtrace.jit(demo.loss)(state.parameters, images, labels))
    assert found == pytest.approx(float64_loss(state.parameters, images, labels), rel=64 * EPS)


def test_the_step_agrees_jitted_and_op_by_op(batch):
    jitted, op_by_op = xtrace.jit(demo.update)(*batch), demo.update(*batch)
    for name, value in op_by_op.parameters.items():
        # The longest sums of a step are over 128 hidden units.
        np.testing.assert_allclose(jitted.parameters[name], value, rtol=0, atol=128 * EPS * np.max(np.abs(value)))


def test_the_step_traces_once(batch):
    traces = []

    def counted(*arguments):
        traces.append(arguments)
        return demo.update(*arguments)

    step = xtrace.jit(counted)
    state = xtrace.device_put(batch[0])
    for _ in range(3):
        state = step(state, *batch[1:])
    assert len(traces) == 1


@pytest.mark.slow
def test_the_demo(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "1438 handwritten digits to learn from, 359 held out" in out
    assert float(re.search(r"held-out accuracy: ([0-9.]+)%", out)[1]) >= 95
    assert "{ lambda ; a:f32[128]" in out
    assert "dot_general[" in out
    assert "module @jit_update" in out
    assert "stablehlo.dot_general" in out
    assert re.search(r"one step jitted: [0-9,]+ us; op by op: [0-9,]+ us \([0-9.]+ times as long\)", out)


def test_times_leave_out_the_calls_that_compile():
    calls = []

    def slow_at_first():
        calls.append(0)
        time.sleep(0.02 if len(calls) <= 4 else 0)

    assert demo.seconds_per_call(slow_at_first, (), budget=0) < 0.01


def test_fewer_epochs(capsys):
    assert main(["demo", "--epochs", "1"]) == 0
    assert "1/1 epochs" in capsys.readouterr().out


@pytest.mark.parametrize("epochs", ["0", "-1", "many", "1.5"])
def test_epochs_must_be_a_count(epochs, capsys):
    assert main(["demo", "--epochs", epochs]) == 2
    assert "is not a whole number above zero" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "package"), [("sklearn", "scikit-learn"), ("rich", "rich")])
def test_a_missing_package_is_named_with_the_command(module, package, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"the demo needs {package}" in captured.err
    assert "pip install 'xtrace[demo]'" in captured.err
    assert "Traceback" not in captured.err
