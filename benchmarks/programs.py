"""The programs that are traced, lowered and run on both sides.

`build(library, name)` makes a new function object at every call, so that no cache that hangs off the function is warm.
"""

import importlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Library(NamedTuple):
    """The three modules a program reaches; `root` has `jit` and `device_put`."""

    root: Any
    numpy: Any
    lax: Any


class Program(NamedTuple):
    """A function with NumPy arguments for it, in pytrees; the function uses every argument."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def load(name: str) -> Library:
    """Import a library by name, `jax` or one with its interface."""
    return Library(*(importlib.import_module(name + suffix) for suffix in ("", ".numpy", ".lax")))


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    """Reproducible float32 values in [0.1, 1)."""
    return np.random.default_rng(seed).uniform(0.1, 1, shape).astype(np.float32)


def selu(library: Library, size: int = 12) -> Program:
    """The activation of Klambauer and others (2017): a comparison, a selection and four operations of arithmetic."""
    jnp = library.numpy

    def function(x: Any, alpha: float = 1.67, scale: float = 1.05) -> Any:
        return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    return Program(function, (uniform(size) - np.float32(0.5),))


def log2(library: Library) -> Program:
    """A logarithm in base two, with the logarithm of a constant inside."""
    jnp = library.numpy

    def function(x: Any) -> Any:
        return jnp.log(x) / jnp.log(2.0)

    return Program(function, (uniform(12),))


def straightline(library: Library, operations: int) -> Program:
    """A Python loop that emits exactly `operations` elementwise operations.

    Every intermediate value has one user: XLA recomputes shared values inside fusions, and its compile time explodes.
    """
    lax = library.lax
    steps = (
        lambda x, y: x - y,
        lambda x, y: lax.cos(x),
        lambda x, y: 0.25 * x,
        lambda x, y: lax.max(y, x),
        lambda x, y: x + y,
        lambda x, y: lax.logistic(x),
        lambda x, y: x * y,
        lambda x, y: -x,
    )

    def function(x: Any, *others: Any) -> Any:
        for index in range(operations):
            x = steps[index % len(steps)](x, others[index % len(others)])
        return x

    return Program(function, tuple(uniform(4, seed=seed) for seed in range(4)))


def mlp(library: Library, sizes: tuple[int, ...] = (64, 128, 128, 128, 10), batch: int = 32) -> Program:
    """A forward pass: dense layers with a rectifier, then log-probabilities."""
    jnp = library.numpy

    def function(layers: list[dict[str, Any]], x: Any) -> Any:
        *hidden, last = layers
        for layer in hidden:
            x = jnp.maximum(x @ layer["weights"] + layer["bias"], 0)
        logits = x @ last["weights"] + last["bias"]
        shifted = logits - jnp.max(logits, axis=1, keepdims=True)
        return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))

    layers = [
        {"weights": uniform(rows, columns) / np.float32(rows), "bias": uniform(columns)}
        for rows, columns in itertools.pairwise(sizes)
    ]
    return Program(function, (layers, uniform(batch, sizes[0])))


def transformer_gradient(library: Library, layers: int, width: int = 32, heads: int = 4, length: int = 16) -> Program:
    """The loss of a decoder-only transformer on random tokens, and its gradient; layers are unrolled."""
    jnp, lax, root = library.numpy, library.lax, library.root
    vocabulary, batch = 50, 2

    def normalised(parameters: dict[str, Any], x: Any) -> Any:
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * parameters["gain"] + parameters["bias"]

    def softmax(x: Any) -> Any:
        weights = jnp.exp(x - lax.stop_gradient(jnp.max(x, axis=-1, keepdims=True)))
        return weights / jnp.sum(weights, axis=-1, keepdims=True)

    def attention(parameters: dict[str, Any], x: Any) -> Any:
        parts = jnp.split(x @ parameters["in"], 3, axis=-1)
        query, key, value = (part.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3) for part in parts)
        scores = query @ jnp.swapaxes(key, -1, -2) / np.sqrt(width // heads)
        mask = jnp.tril(jnp.ones((length, length), dtype=bool))
        mixed = softmax(jnp.where(mask, scores, -1e9)) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ parameters["out"]

    def block(parameters: dict[str, Any], x: Any) -> Any:
        x = x + attention(parameters, normalised(parameters["first"], x))
        hidden = normalised(parameters["second"], x) @ parameters["up"]
        return x + hidden * lax.logistic(1.702 * hidden) @ parameters["down"]

    def loss(parameters: dict[str, Any], tokens: Any, targets: Any) -> Any:
        x = parameters["words"][tokens] + parameters["places"]
        for each in parameters["blocks"]:
            x = block(each, x)
        scores = x @ parameters["words"].T
        shifted = scores - lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
        chosen = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True))
        return -jnp.mean(jnp.sum(jnp.where(targets[..., None] == jnp.arange(vocabulary), chosen, 0), axis=-1))

    norm = {"gain": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}
    blocks = [
        {
            "first": norm, "second": norm, "in": uniform(width, 3 * width, seed=n) / width,
            "out": uniform(width, width, seed=n + 1) / width, "up": uniform(width, 4 * width, seed=n + 2) / width,
            "down": uniform(4 * width, width, seed=n + 3) / width,
        }
        for n in range(layers)
    ]
    parameters = {"words": uniform(vocabulary, width), "places": uniform(length, width, seed=1), "blocks": blocks}
    tokens = np.random.default_rng(2).integers(0, vocabulary, (batch, length + 1)).astype(np.int32)
    # `root` loads its differentiation when it is first asked for.
    function = lambda *arguments: root.value_and_grad(loss)(*arguments)  # noqa: E731
    return Program(function, (parameters, tokens[:, :-1].copy(), tokens[:, 1:].copy()))


def column_norm(library: Library) -> Program:
    """Columns shifted to mean 0 and scaled to deviation 1."""

    def function(x: Any) -> Any:
        x = x - x.mean(0)
        return x / x.std(0)

    return Program(function, (uniform(10_000, 10),))


def matmul(library: Library) -> Program:
    """One matrix product, nearly all of it XLA's own work."""
    return Program(lambda x, y: library.numpy.dot(x, y), (uniform(512, 512), uniform(512, 512, seed=1)))


PROGRAMS: dict[str, Callable[[Library], Program]] = {
    "selu": selu,
    "log2": log2,
    "straightline 1,000": lambda library: straightline(library, 1_000),
    "straightline 5,000": lambda library: straightline(library, 5_000),
    "straightline 20,000": lambda library: straightline(library, 20_000),
    "mlp": mlp,
    "gradient of a transformer, 12 layers": lambda library: transformer_gradient(library, 12),
    "gradient of a transformer, 48 layers": lambda library: transformer_gradient(library, 48),
    "selu of 1,000,000": lambda library: selu(library, 1_000_000),
    "mlp, batch 256": lambda library: mlp(library, (784, 512, 512, 10), 256),
    "column norm": column_norm,
    "matmul": matmul,
}


def build(library: Library, name: str) -> Program:
    """The program of that name, its function a new object."""
    return PROGRAMS[name](library)
