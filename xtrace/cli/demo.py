"""``python -m xtrace demo``: a small network, with a jitted update step, learns to read handwritten digits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xtrace
import xtrace.numpy as jnp
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace.cli.colours import colour_program
from xtrace.cli.errors import CommandError
from xtrace.cli.results import Result

EPOCHS = 30
_SEED = 0
_PIXELS, _HIDDEN, _CLASSES = 64, 128, 10
_BATCH = 64
_LEARNING_RATE, _MOMENTUM = 0.1, 0.9
_FIRST_CALLS = 5  # programs of single operations are compiled up to the fourth
_HEAD, _WIDTH = 16, 116  # lines and columns shown of a long text

Parameters = dict[str, Array]


class State(NamedTuple):
    """The state of a training: the parameters and their velocity."""

    parameters: Parameters
    velocity: Parameters


def class_scores(parameters: Parameters, images: ArrayLike) -> Array:
    """Return the unnormalised log-probabilities f32[n,10] of images f32[n,64]."""
    hidden = jnp.tanh(jnp.dot(images, parameters["w1"]) + parameters["b1"])
    return jnp.dot(hidden, parameters["w2"]) + parameters["b2"]


def loss(parameters: Parameters, images: ArrayLike, labels: ArrayLike) -> Array:
    """Return the mean cross-entropy of images f32[n,64] and one-hot labels f32[n,10]."""
    scores = class_scores(parameters, images)
    shifted = scores - jnp.max(scores, axis=1, keepdims=True)
    log_probabilities = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))
    return -jnp.mean(jnp.sum(labels * log_probabilities, axis=1))


def update(state: State, images: ArrayLike, labels: ArrayLike) -> State:
    """Return the state after a step of gradient descent with momentum on images f32[n,64] and labels f32[n,10]."""
    gradient = xtrace.grad(loss)(state.parameters, images, labels)
    velocity = {name: _MOMENTUM * v - _LEARNING_RATE * gradient[name] for name, v in state.velocity.items()}
    return State({name: p + velocity[name] for name, p in state.parameters.items()}, velocity)


def initial_state(generator: np.random.Generator) -> State:
    """Return small random weights, zero biases and a zero velocity, as NumPy arrays of float32."""

    def layer(inputs: int, outputs: int) -> Any:
        return generator.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32)

    parameters = {
        "w1": layer(_PIXELS, _HIDDEN), "b1": np.zeros(_HIDDEN, np.float32), "w2": layer(_HIDDEN, _CLASSES),
        "b2": np.zeros(_CLASSES, np.float32),
    }
    return State(parameters, {name: np.zeros_like(p) for name, p in parameters.items()})


def step_arguments() -> tuple[State, np.ndarray, np.ndarray]:
    """Return arguments of `update` with the types of the training, all zero but the weights."""
    state = initial_state(np.random.default_rng(_SEED))
    return state, np.zeros((_BATCH, _PIXELS), np.float32), np.zeros((_BATCH, _CLASSES), np.float32)


class Digits(NamedTuple):
    """Images f32[n,64] between 0 and 1 and their labels i64[n], to train on and held out."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits(generator: np.random.Generator) -> Digits:
    """Return scikit-learn's 1,797 handwritten digits, shuffled, with a fifth held out; `CommandError` without it."""
    try:
        from sklearn import datasets  # heavy third-party
    except ImportError as error:
        raise _make_missing_error("scikit-learn", error) from error
    bunch: Any = datasets.load_digits()
    order = generator.permutation(len(bunch.target))
    images, labels = (bunch.data[order] / 16).astype(np.float32), bunch.target[order]
    held_out = len(labels) // 5
    return Digits(images[held_out:], labels[held_out:], images[:held_out], labels[:held_out])


def _make_missing_error(package: str, error: ImportError) -> CommandError:
    return CommandError(f"the demo needs {package} ({error}); install it with: pip install 'xtrace[demo]'")


def _make_progress_bar() -> Any:
    try:
        from rich import progress  # heavy third-party
    except ImportError as error:
        raise _make_missing_error("rich", error) from error
    return progress.Progress(
        progress.TextColumn("training"), progress.BarColumn(), progress.MofNCompleteColumn(),
        progress.TextColumn("epochs, loss {task.fields[loss]}, held-out accuracy {task.fields[accuracy]}"),
        progress.TimeElapsedColumn(),
    )


def train(digits: Digits, epochs: int, generator: np.random.Generator, bar: Any) -> State:
    """Return the state after `epochs` passes over the data; `bar` is a progress bar of rich."""
    step, measured_loss, scores = xtrace.jit(update), xtrace.jit(loss), xtrace.jit(class_scores)
    one_hot = np.eye(_CLASSES, dtype=np.float32)
    images, labels = digits.train_images, one_hot[digits.train_labels]
    held_out = xtrace.device_put(digits.test_images)
    state: State = xtrace.device_put(initial_state(generator))
    task = bar.add_task("training", total=epochs, loss="-", accuracy="-")
    for _ in range(epochs):
        order = generator.permutation(len(labels))
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            batch = order[start : start + _BATCH]
            state = step(state, images[batch], labels[batch])
        value = float(measured_loss(state.parameters, images, labels))
        right = accuracy(scores(state.parameters, held_out), digits.test_labels)
        bar.update(task, advance=1, loss=f"{value:.4f}", accuracy=f"{right:.1%}")
    return state


def accuracy(scores: Any, labels: np.ndarray) -> float:
    """Return the fraction of rows of `scores` with the largest entry at the label."""
    return float(np.mean(np.argmax(np.asarray(scores), axis=1) == labels))


def seconds_per_call(function: Callable[..., Any], arguments: tuple[Any, ...], budget: float = 0.5) -> float:
    """Return the median time of a call with its results, over the calls that fit in `budget` seconds, at least 3."""
    for _ in range(_FIRST_CALLS):
        xtrace.block_until_ready(function(*arguments))
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        xtrace.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _format_head(title: str, text: str) -> str:
    lines = [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…" for line in text.rstrip().splitlines()]
    rest = [f"… {len(lines) - _HEAD} more lines"] if len(lines) > _HEAD else []
    shown = "\n".join(f"    {line}" for line in lines[:_HEAD] + rest)
    return f"\n{title}\n{colour_program(shown, sys.stdout)}"


def run_demo(epochs: int = EPOCHS) -> Result:
    """Train, print the compiled step, and return its accuracy and speedup. Raises `CommandError`."""
    generator = np.random.default_rng(_SEED)
    digits = load_digits(generator)
    bar = _make_progress_bar()
    print(f"{len(digits.train_labels)} handwritten digits to learn from, {len(digits.test_labels)} held out")
    with bar:
        state = train(digits, epochs, generator, bar)
    right = accuracy(xtrace.jit(class_scores)(state.parameters, digits.test_images), digits.test_labels)
    print(f"held-out accuracy: {right:.1%}")

    arguments = xtrace.device_put(step_arguments())
    jaxpr, text = str(xtrace.make_jaxpr(update)(*arguments)), xtrace.lower(update, *arguments).as_text()
    print(_format_head("The update step as a jaxpr:", jaxpr))
    print(_format_head("and as StableHLO:", text))

    jitted, op_by_op = seconds_per_call(xtrace.jit(update), arguments), seconds_per_call(update, arguments)
    speed = (
        f"\none step jitted: {jitted * 1e6:,.0f} us; op by op: {op_by_op * 1e6:,.0f} us "
        f"({op_by_op / jitted:.1f} times as long)"
    )
    return Result(speed, {
        "epochs": epochs, "accuracy": right, "jaxpr": jaxpr, "stablehlo": text, "seconds_jitted": jitted,
        "seconds_op_by_op": op_by_op,
    })
