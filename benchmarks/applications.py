"""Whole programs, as users write them: models with their training steps, simulations, finance.

`build(root, name)` gives a function of arrays and its arguments; `root` is the module of the library, jax or xtrace,
and the function reaches everything through it. Results hold values and, where it makes sense, derivatives.
"""

import importlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.programs import PROGRAMS, Library, Program


class Application(NamedTuple):
    """A function with NumPy arguments for it, in pytrees.

    `roundings` bounds how many rounding errors lie, one upon the other, between an argument and a result.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    roundings: int


def normal(*shape: int, seed: int, scale: float = 1.0) -> Any:
    """float32 numbers of a normal distribution with mean 0 and deviation `scale`."""
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def language_model(root: Any, layers: int = 3, width: int = 16, heads: int = 2, length: int = 10) -> Application:
    """A decoder whose layers are scanned over and recomputed in the backward pass; its loss and gradient."""
    jnp, nn, lax = root.numpy, root.nn, root.lax
    vocabulary, batch = 23, 3

    def scaled(gain: Any, x: Any) -> Any:
        return gain * x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6)

    def attend(weights: Any, x: Any) -> Any:
        query, key, value = jnp.einsum("btd,dcnh->cbnth", x, weights["inward"])
        scores = jnp.einsum("bnth,bnsh->bnts", query, key) * (width // heads) ** -0.5
        past = jnp.arange(length)[:, None] >= jnp.arange(length)
        mixed = nn.softmax(scores, axis=-1, where=past) @ value
        return jnp.einsum("bnth,nhd->btd", mixed, weights["outward"])

    @root.checkpoint
    def layer(x: Any, weights: Any) -> tuple[Any, None]:
        x = x + attend(weights, scaled(weights["gains"][0], x))
        hidden = scaled(weights["gains"][1], x) @ weights["up"]
        return x + (nn.silu(hidden[..., 0::2]) * hidden[..., 1::2]) @ weights["down"], None

    def loss(parameters: Any, tokens: Any) -> Any:
        x = jnp.take(parameters["words"], tokens[:, :-1], axis=0) + parameters["places"]
        x, _ = lax.scan(layer, x, parameters["layers"])
        logits = scaled(parameters["gain"], x) @ parameters["words"].T
        likelihoods = nn.log_softmax(logits)
        return -jnp.take_along_axis(likelihoods, tokens[:, 1:, None], axis=-1).mean()

    parameters = {
        "words": normal(vocabulary, width, seed=1, scale=0.1),
        "places": normal(length, width, seed=2, scale=0.1),
        "gain": np.ones(width, np.float32),
        "layers": {
            "gains": np.ones((layers, 2, width), np.float32),
            "inward": normal(layers, width, 3, heads, width // heads, seed=3, scale=width**-0.5),
            "outward": normal(layers, heads, width // heads, width, seed=4, scale=width**-0.5),
            "up": normal(layers, width, 4 * width, seed=5, scale=width**-0.5),
            "down": normal(layers, 2 * width, width, seed=6, scale=(2 * width) ** -0.5),
        },
    }
    tokens = np.random.default_rng(7).integers(0, vocabulary, (batch, length + 1)).astype(np.int32)
    return Application(root.value_and_grad(loss), (parameters, tokens), roundings=layers * 10 * 2 * width)


def recurrent_network(root: Any, width: int = 12, steps: int = 9, batch: int = 4) -> Application:
    """A long short-term memory that predicts a series: error, last state and gradient through time."""
    jnp, nn, lax = root.numpy, root.nn, root.lax

    def cell(weights: Any, state: Any, x: Any) -> Any:
        hidden, memory = state
        joined = jnp.concatenate([x, hidden], axis=-1) @ weights["gates"] + weights["bias"]
        enter, leave, forget, new = jnp.split(joined, 4, axis=-1)
        memory = nn.sigmoid(forget + 1) * memory + nn.sigmoid(enter) * jnp.tanh(new)
        hidden = nn.sigmoid(leave) * jnp.tanh(memory)
        return (hidden, memory), hidden

    def error(weights: Any, series: Any) -> Any:
        start = (jnp.zeros((batch, width)), jnp.zeros((batch, width)))
        state, hidden = lax.scan(lambda s, x: cell(weights, s, x), start, series[:-1])
        return jnp.mean((hidden @ weights["read"] - series[1:]) ** 2), state

    weights = {
        "gates": normal(2 + width, 4 * width, seed=1, scale=0.3),
        "bias": np.zeros(4 * width, np.float32),
        "read": normal(width, 2, seed=2, scale=0.3),
    }
    series = np.sin(np.arange(steps + 1)[:, None, None] * np.linspace(0.1, 1, 2 * batch).reshape(batch, 2))
    function = root.value_and_grad(error, has_aux=True)
    return Application(function, (weights, series.astype(np.float32)), roundings=steps * 4 * width)


def residual_network(root: Any, width: int = 6, side: int = 8, batch: int = 3) -> Application:
    """Convolutions with a residual connection between poolings; loss and gradient."""
    jnp, nn, lax = root.numpy, root.nn, root.lax
    layout = ("NHWC", "HWIO", "NHWC")

    def convolved(x: Any, kernel: Any, stride: int = 1) -> Any:
        return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=layout)

    def standardised(x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift

    def block(weights: Any, x: Any) -> Any:
        y = nn.relu(standardised(convolved(x, weights["first"], 2), *weights["norm"][0]))
        y = standardised(convolved(y, weights["second"]), *weights["norm"][1])
        return nn.relu(y + convolved(x, weights["short"], 2))

    def loss(weights: Any, images: Any, labels: Any) -> Any:
        x = convolved(images, weights["stem"])
        x = lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
        x = block(weights["block"], x)
        x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        logits = x.reshape(batch, -1) @ weights["read"]
        return -jnp.sum(nn.one_hot(labels, 5) * nn.log_softmax(logits)) / batch

    weights = {
        "stem": normal(3, 3, 3, width, seed=1, scale=0.2),
        "block": {
            "first": normal(3, 3, width, 2 * width, seed=2, scale=0.2),
            "second": normal(3, 3, 2 * width, 2 * width, seed=3, scale=0.1),
            "short": normal(1, 1, width, 2 * width, seed=4, scale=0.4),
            "norm": np.stack([np.ones((2, 2 * width)), np.zeros((2, 2 * width))], axis=1).astype(np.float32),
        },
        "read": normal((side // 4) ** 2 * 2 * width, 5, seed=5, scale=0.2),
    }
    arguments = (weights, normal(batch, side, side, 3, seed=6), np.array([0, 3, 1], np.int32))
    # A sum in a convolution of the second kernel's gradient is over batch and positions.
    return Application(root.value_and_grad(loss), arguments, roundings=9 * 2 * width * 8)


def trained_perceptron(root: Any, steps: int = 4) -> Application:
    """A perceptron trained by Adam on minibatches drawn inside a scan: losses, parameters and moments."""
    jnp, nn, lax, random, tree = root.numpy, root.nn, root.lax, root.random, root.tree_util

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for layer in parameters[:-1]:
            x = nn.gelu(x @ layer["weights"] + layer["bias"])
        return jnp.mean((x @ parameters[-1]["weights"] + parameters[-1]["bias"] - y) ** 2)

    def train(parameters: Any, x: Any, y: Any, seed: Any) -> Any:
        def step(state: Any, inputs: Any) -> Any:
            parameters, first, second = state
            count, key = inputs
            rows = random.randint(key, (8,), 0, x.shape[0])
            value, gradient = root.value_and_grad(loss)(parameters, x[rows], y[rows])
            first = tree.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
            second = tree.tree_map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradient)

            def moved(p: Any, m: Any, v: Any) -> Any:
                return p - 0.01 * m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-3)

            return (tree.tree_map(moved, parameters, first, second), first, second), value

        zeros = tree.tree_map(jnp.zeros_like, parameters)
        keys = random.split(random.PRNGKey(seed), steps)
        return lax.scan(step, (parameters, zeros, zeros), (jnp.arange(1.0, steps + 1), keys))

    sizes = (5, 16, 16, 1)
    parameters = [
        {"weights": normal(m, n, seed=m, scale=m**-0.5), "bias": np.zeros(n, np.float32)}
        for m, n in itertools.pairwise(sizes)
    ]
    arguments = (parameters, normal(32, 5, seed=1), normal(32, 1, seed=2), np.int32(3))
    return Application(train, arguments, roundings=steps * 200)


def option_prices(root: Any) -> Application:
    """Prices by Black and Scholes's formula, their first and second derivatives, and volatilities found from prices."""
    jnp, lax, stats = root.numpy, root.lax, importlib.import_module(f"{root.__name__}.scipy.stats")

    def price(spot: Any, strike: Any, volatility: Any, rate: Any, years: Any) -> Any:
        spread = volatility * jnp.sqrt(years)
        upper = (jnp.log(spot / strike) + rate * years) / spread + spread / 2
        return spot * stats.norm.cdf(upper) - strike * jnp.exp(-rate * years) * stats.norm.cdf(upper - spread)

    def implied(target: Any, spot: Any, strike: Any, rate: Any, years: Any) -> Any:
        def newton(_: Any, volatility: Any) -> Any:
            value, slope = root.value_and_grad(price, 2)(spot, strike, volatility, rate, years)
            return jnp.clip(volatility - (value - target) / slope, 0.01, 2.0)

        return lax.fori_loop(0, 6, newton, 0.3)

    def function(spot: Any, strike: Any, volatility: Any, rate: Any, years: Any) -> Any:
        values = root.vmap(price)(spot, strike, volatility, rate, years)
        slopes = root.vmap(root.grad(price, (0, 2, 3, 4)))(spot, strike, volatility, rate, years)
        gamma = root.vmap(root.grad(root.grad(price)))(spot, strike, volatility, rate, years)
        return values, slopes, gamma, root.vmap(implied)(values, spot, strike, rate, years)

    count = 7
    arguments = (
        np.linspace(90, 110, count), np.full(count, 100), np.linspace(0.15, 0.4, count), np.full(count, 0.02),
        np.linspace(0.5, 2, count),
    )
    # Volatility comes from a price whose error, relative to the slope, is some tens of times its own.
    return Application(function, tuple(x.astype(np.float32) for x in arguments), roundings=300)


def planets(root: Any, bodies: int = 6, steps: int = 5) -> Application:
    """Bodies that attract each other, moved by leapfrog steps; the energy's gradient in where they started."""
    jnp, lax = root.numpy, root.lax

    def potential(places: Any, masses: Any) -> Any:
        between = places[:, None] - places[None]
        distance = jnp.sqrt(jnp.sum(between**2, axis=-1) + 0.05)
        return -jnp.sum(jnp.triu(masses[:, None] * masses / distance, 1))

    def travelled(places: Any, speeds: Any, masses: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            places, speeds = state
            speeds = speeds - 0.01 * root.grad(potential)(places, masses) / masses[:, None]
            return places + 0.01 * speeds, speeds

        return lax.fori_loop(0, steps, step, (places, speeds))

    def energy(places: Any, speeds: Any, masses: Any) -> Any:
        places, speeds = travelled(places, speeds, masses)
        return potential(places, masses) + jnp.sum(masses * jnp.sum(speeds**2, axis=1)) / 2, (places, speeds)

    arguments = (
        normal(bodies, 3, seed=1), normal(bodies, 3, seed=2, scale=0.1),
        np.linspace(0.5, 1.5, bodies).astype(np.float32),
    )
    function = root.value_and_grad(energy, (0, 1, 2), has_aux=True)
    return Application(function, arguments, roundings=steps * bodies * 20)


def heat_flow(root: Any, side: int = 12, steps: int = 8) -> Application:
    """A plate that cools at its edge, by finite differences: its history, and what it takes to reach a goal."""
    jnp, lax = root.numpy, root.lax

    def flow(plate: Any, conductivity: Any) -> Any:
        def step(plate: Any, _: Any) -> Any:
            padded = jnp.pad(plate, 1)
            neighbours = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
            plate = plate + conductivity * (neighbours - 4 * plate)
            return plate.at[0].set(0.0).at[:, -1].multiply(0.5), plate.max()

        return lax.scan(step, plate, None, length=steps)

    def distance(plate: Any, conductivity: Any, goal: Any) -> Any:
        last, warmest = flow(plate, conductivity)
        return jnp.linalg.norm(last - goal), (jnp.roll(last, 2, axis=1), warmest)

    arguments = (np.abs(normal(side, side, seed=1)), np.float32(0.2), np.zeros((side, side), np.float32))
    function = root.value_and_grad(distance, (0, 1), has_aux=True)
    return Application(function, arguments, roundings=steps * 20 + side * side)


def escape_times(root: Any, side: int = 12, limit: int = 15) -> Application:
    """How soon points of the plane leave the disk of the Mandelbrot set's definition, and how far from it they land.

    Each has a loop of its own; the slope of the distance in the point's real part is found in forward mode through it.
    """
    jnp, lax = root.numpy, root.lax

    def escape(x: Any, y: Any) -> Any:
        point = lax.complex(x, y)

        def inside(state: Any) -> Any:
            z, count = state
            return (jnp.real(z * jnp.conj(z)) < 4) & (count < limit)

        z, count = lax.while_loop(inside, lambda state: (state[0] ** 2 + point, state[1] + 1), (0 * point, 0))
        return jnp.log1p(jnp.abs(z)), count

    def function(xs: Any, ys: Any) -> Any:
        def sloped(x: Any, y: Any) -> Any:
            return root.jvp(lambda x: escape(x, y), (x,), (jnp.ones_like(x),))

        (sizes, counts), (slopes, _) = root.vmap(root.vmap(sloped, (0, None)), (None, 0))(xs, ys)
        return sizes, counts, jnp.where(counts < limit, slopes, 0)

    axes = np.linspace(-2, 0.5, side).astype(np.float32), np.linspace(-1.2, 1.2, side).astype(np.float32)
    # Each squaring doubles the relative error there is.
    return Application(function, axes, roundings=2**8)


def numpy_heavy(root: Any) -> Application:
    """A table described with many functions of numpy: what data analysis traces."""
    jnp = root.numpy

    def function(table: Any, weights: Any) -> Any:
        centred = table - jnp.average(table, axis=0, weights=weights)
        scaled = centred / jnp.std(centred, axis=0, ddof=1)
        bounded = jnp.clip(scaled, -2, 2)
        order = jnp.argsort(bounded[:, 0])
        ranked = jnp.take(bounded, order, axis=0)
        running = jnp.cumsum(ranked, axis=0) / jnp.arange(1, table.shape[0] + 1)[:, None]
        steps = jnp.diff(running, axis=0, prepend=running[:1])
        shifted = jnp.roll(jnp.pad(steps, ((1, 1), (0, 0)), mode="edge"), 1, axis=0)
        medians = jnp.median(shifted, axis=0)
        bounds = jnp.quantile(shifted, jnp.array([0.1, 0.9]), axis=0)
        groups = jnp.searchsorted(jnp.linspace(-2, 2, 9), ranked[:, 1])
        counts = jnp.bincount(groups, length=10)
        covariance = jnp.cov(table, rowvar=False)
        likeness = jnp.corrcoef(table, rowvar=False)
        lower = jnp.tril(likeness, -1) + jnp.eye(table.shape[1])
        product = jnp.einsum("ij,jk,lk->il", ranked, lower, shifted[1:-1])
        outer = jnp.tensordot(jnp.outer(weights, weights), product, axes=2)
        places = jnp.where(ranked > 0, jnp.sqrt(jnp.abs(ranked)), -jnp.square(ranked))
        line = jnp.interp(jnp.linspace(0, 1, 5), jnp.linspace(0, 1, table.shape[0]), running[:, 2])
        joined = jnp.concatenate([jnp.stack([medians, *bounds]), jnp.flip(covariance, 0), lower])
        norms = jnp.linalg.norm(jnp.nan_to_num(joined), axis=1)
        best = jnp.unravel_index(jnp.argmax(product), product.shape)
        return norms, counts, outer, line, places.at[best[0], 0].add(jnp.nanmax(norms)), jnp.trace(covariance)

    arguments = (normal(20, 4, seed=1), np.linspace(1, 2, 20).astype(np.float32))
    return Application(function, arguments, roundings=400)


APPLICATIONS: dict[str, Callable[[Any], Application]] = {
    "language model": language_model,
    "recurrent network": recurrent_network,
    "residual network": residual_network,
    "trained perceptron": trained_perceptron,
    "option prices": option_prices,
    "planets": planets,
    "heat flow": heat_flow,
    "escape times": escape_times,
    "numpy heavy": numpy_heavy,
}


def build(root: Any, name: str) -> Application:
    """The application of that name, its function a new object."""
    return APPLICATIONS[name](root)


def build_any(library: Library, name: str) -> Program:
    """The program or application of that name, its function a new object."""
    if name in PROGRAMS:
        return PROGRAMS[name](library)
    return Program(*build(library.root, name)[:2])
