"""Programs that draw random numbers in many places, where the generator is a large part of what is compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.applications import Application, normal


def dropout_network(root: Any, layers: int = 12, width: int = 16, batch: int = 8) -> Application:
    """The gradient of a network with dropout behind each layer, each with a key of its own."""
    jnp, random = root.numpy, root.random

    def loss(weights: Any, x: Any, seed: Any) -> Any:
        key = random.key(seed)
        for weight in weights:
            key, own = random.split(key)
            x = jnp.tanh(x @ weight)
            x = jnp.where(random.bernoulli(own, 0.9, x.shape), x / 0.9, 0.0)
        return jnp.mean(x * x)

    weights = [normal(width, width, seed=i, scale=width**-0.5) for i in range(layers)]
    return Application(root.value_and_grad(loss), (weights, normal(batch, width, seed=99), np.int32(3)), roundings=400)


def variational_autoencoder(root: Any, width: int = 32, hidden: int = 24, latent: int = 8) -> Application:
    """A step of training on a batch drawn from the data, with noise of the latent variables and of the images."""
    jnp, nn, random, batch = root.numpy, root.nn, root.random, 16

    def loss(weights: Any, images: Any, key: Any) -> Any:
        of_batch, of_noise, of_latent = random.split(key, 3)
        images = random.choice(of_batch, images, (batch,), replace=False)
        noisy = images + 0.1 * random.normal(of_noise, images.shape)
        coded = nn.relu(noisy @ weights["in"]) @ weights["code"]
        mean, scale = coded[:, :latent], nn.softplus(coded[:, latent:])
        drawn = mean + scale * random.normal(of_latent, mean.shape)
        shown = nn.sigmoid(nn.relu(drawn @ weights["out"]) @ weights["shown"])
        divergence = 0.5 * jnp.sum(scale**2 + mean**2 - 1 - 2 * jnp.log(scale))
        return jnp.sum((shown - images) ** 2) + divergence

    def step(weights: Any, images: Any, seed: Any) -> Any:
        value, gradient = root.value_and_grad(loss)(weights, images, random.key(seed))
        return value, root.tree_util.tree_map(lambda w, g: w - 1e-3 * g, weights, gradient)

    weights = {
        "in": normal(width, hidden, seed=1, scale=0.2), "code": normal(hidden, 2 * latent, seed=2, scale=0.2),
        "out": normal(latent, hidden, seed=3, scale=0.2), "shown": normal(hidden, width, seed=4, scale=0.2),
    }
    return Application(step, (weights, np.abs(normal(64, width, seed=5)), np.int32(1)), roundings=800)


def hamiltonian_sampler(root: Any, size: int = 5, steps: int = 4, samples: int = 10) -> Application:
    """Samples of a posterior by Hamiltonian dynamics of random length and direction, each accepted or refused."""
    jnp, lax, random = root.numpy, root.lax, root.random

    def density(x: Any, table: Any) -> Any:
        return -0.5 * jnp.sum(x * x) - jnp.sum(jnp.logaddexp(0.0, -(table @ x)))

    def sample(x: Any, key: Any, table: Any) -> Any:
        of_speed, of_length, of_direction, of_choice, of_slice = random.split(key, 5)
        speed = random.normal(of_speed, x.shape)
        length = random.randint(of_length, (), 1, steps + 1)
        sign = jnp.where(random.bernoulli(of_direction), 1.0, -1.0)
        bound = random.exponential(of_slice)

        def leap(_: Any, state: Any) -> Any:
            x, v = state
            v = v + 0.05 * sign * root.grad(density)(x, table)
            x = x + 0.1 * sign * v
            return x, v + 0.05 * sign * root.grad(density)(x, table)

        moved, faster = lax.fori_loop(0, length, leap, (x, speed))
        gain = density(moved, table) - 0.5 * faster @ faster - density(x, table) + 0.5 * speed @ speed
        accepted = (jnp.log(random.uniform(of_choice)) < gain) & (gain > -1000.0 - bound)
        return jnp.where(accepted, moved, x), accepted

    def run(x: Any, table: Any, seed: Any) -> Any:
        return lax.scan(lambda x, key: sample(x, key, table), x, random.split(random.key(seed), samples))

    return Application(run, (normal(size, seed=1), normal(20, size, seed=2), np.int32(7)), roundings=2000)


def distributions(root: Any) -> Application:
    """One draw from each of many distributions."""
    random = root.random

    def draw(seed: Any) -> Any:
        keys = random.split(random.key(seed), 10)
        return [
            random.normal(keys[0], (8,)), random.gumbel(keys[1], (8,)), random.randint(keys[2], (8,), 0, 10),
            random.permutation(keys[3], 20), random.categorical(keys[4], np.zeros((8, 4), np.float32)),
            random.truncated_normal(keys[5], -1.0, 1.0, (8,)), random.laplace(keys[6], (8,)),
            random.gamma(keys[7], 2.0, (8,)), random.beta(keys[8], 2.0, 3.0, (8,)), random.poisson(keys[9], 3.0, (8,)),
        ]

    return Application(draw, (np.int32(4),), roundings=400)


RANDOM_PROGRAMS: dict[str, Callable[[Any], Application]] = {
    "dropout, 12 layers": dropout_network,
    "variational autoencoder": variational_autoencoder,
    "Hamiltonian sampler": hamiltonian_sampler,
    "distributions": distributions,
}
