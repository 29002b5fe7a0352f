"""A perceptron with two layers learns handwritten digits, by Adam with a warm-up: optax and plain functions."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
train, test = slice(0, 1500), slice(1500, None)


def init(key):
    first, second = jax.random.split(key)
    return {
        "hidden": (jax.random.normal(first, (64, 64)) / 8, jnp.zeros(64)),
        "output": (jax.random.normal(second, (64, 10)) / 8, jnp.zeros(10)),
    }


def predict(params, x):
    weight, bias = params["hidden"]
    hidden = jax.nn.relu(x @ weight + bias)
    weight, bias = params["output"]
    return hidden @ weight + bias


def loss(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(predict(params, x), y).mean()


schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 20, 200)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4))


@jax.jit
def step(params, state, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, value


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(jnp.argmax(predict(params, x), axis=-1) == y)


params = init(jax.random.key(0))
state = optimizer.init(params)
order = np.random.default_rng(0).permutation(1500)
losses = []
for number in range(200):
    chosen = order[(number * 100) % 1500 :][:100]
    params, state, value = step(params, state, images[train][chosen], labels[train][chosen])
    losses.append(float(value))

results = {
    "losses": losses,
    "accuracy": float(accuracy(params, images[test], labels[test])),
    "weights": np.asarray(params["output"][0]).tolist(),
}
assert results["accuracy"] > 0.85
print(json.dumps({"tolerance": 1e-3, "results": results}))
