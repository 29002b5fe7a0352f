"""A variational autoencoder of flax.nnx learns handwritten digits."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

images = (load_digits().data / 16).astype(np.float32)


class Encoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(64, 32, rngs=rngs)
        self.mean = nnx.Linear(32, 4, rngs=rngs)
        self.log_deviation = nnx.Linear(32, 4, rngs=rngs)
        self.rngs = rngs

    def __call__(self, x):
        hidden = jax.nn.relu(self.hidden(x))
        mean, deviation = self.mean(hidden), jnp.exp(self.log_deviation(hidden))
        divergence = 0.5 * jnp.sum(mean**2 + deviation**2 - 1 - 2 * jnp.log(deviation), axis=-1)
        return mean + deviation * jax.random.normal(self.rngs.noise(), mean.shape), divergence


class VAE(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.encoder = Encoder(rngs)
        self.decoder = nnx.Sequential(nnx.Linear(4, 32, rngs=rngs), nnx.relu, nnx.Linear(32, 64, rngs=rngs))

    def __call__(self, x):
        code, divergence = self.encoder(x)
        return self.decoder(code), divergence


def loss(model: VAE, x):
    logits, divergence = model(x)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, x).sum(axis=-1) + 0.1 * divergence)


@nnx.jit
def step(model: VAE, optimizer: nnx.Optimizer, metrics: nnx.MultiMetric, x):
    value, gradient = nnx.value_and_grad(loss)(model, x)
    optimizer.update(model, gradient)
    metrics.update(loss=value)
    return value


model = VAE(nnx.Rngs(params=0, noise=1))
optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
losses = []
for number in range(100):
    start = (number * 128) % 1600
    losses.append(float(step(model, optimizer, metrics, images[start : start + 128])))

graph, state = nnx.split(model)
again = nnx.merge(graph, state)
results = {
    "losses": losses,
    "average": float(metrics.compute()["loss"]),
    "rebuilt": np.asarray(again.decoder(jnp.ones((2, 4)))).tolist(),
    "leaves": [list(map(int, x.shape)) for x in jax.tree.leaves(nnx.state(model, nnx.Param))],
}
assert losses[-1] < losses[0]
print(json.dumps({"tolerance": 2e-3, "results": results}))
