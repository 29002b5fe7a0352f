"""A convolutional network learns handwritten digits, after the example of equinox's documentation."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)


class CNN(eqx.Module):
    layers: list

    def __init__(self, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.layers = [
            eqx.nn.Conv2d(1, 3, kernel_size=3, key=keys[0]),
            eqx.nn.MaxPool2d(kernel_size=2),
            jax.nn.relu,
            jnp.ravel,
            eqx.nn.Linear(75, 64, key=keys[1]),
            jax.nn.sigmoid,
            eqx.nn.Dropout(0.1),
            eqx.nn.Linear(64, 10, key=keys[2]),
            jax.nn.log_softmax,
        ]

    def __call__(self, x: Float[Array, "1 8 8"], key: PRNGKeyArray | None = None) -> Float[Array, "10"]:
        for layer in self.layers:
            x = layer(x, key=key, inference=key is None) if isinstance(layer, eqx.nn.Dropout) else layer(x)
        return x


def loss(model: CNN, x: Float[Array, "batch 1 8 8"], y: Int[Array, " batch"], key: PRNGKeyArray) -> Float[Array, ""]:
    predictions = jax.vmap(model)(x, jax.random.split(key, len(x)))
    return -jnp.mean(jnp.take_along_axis(predictions, y[:, None], axis=1))


optimizer = optax.adamw(3e-3)


@eqx.filter_jit
def step(model, state, x, y, key):
    value, gradient = eqx.filter_value_and_grad(loss)(model, x, y, key)
    updates, state = optimizer.update(gradient, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value


model = CNN(jax.random.key(1))
state = optimizer.init(eqx.filter(model, eqx.is_array))
losses = []
for number in range(200):
    chosen = slice((number * 64) % 1472, (number * 64) % 1472 + 64)
    model, state, value = step(model, state, images[chosen], labels[chosen], jax.random.key(number))
    losses.append(float(value))

predicted = jax.vmap(model)(images[1500:])
right = float(jnp.mean(jnp.argmax(predicted, axis=1) == labels[1500:]))
assert right > 0.7
leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
results = {
    "losses": losses,
    "accuracy": right,
    "means": [float(jnp.mean(leaf)) for leaf in leaves],
    "structure": str(jax.tree.structure(eqx.filter(model, eqx.is_array))).count("*"),
}
print(json.dumps({"tolerance": 1e-3, "results": results}))
