"""A small transformer of flax.linen learns to reverse sequences."""

import json

import flax.linen as nn
import jax
import numpy as np
import optax
from flax.training import train_state

VOCABULARY, LENGTH = 12, 8


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, deterministic):
        attended = nn.MultiHeadDotProductAttention(num_heads=4, dropout_rate=0.1)(
            nn.LayerNorm()(x), deterministic=deterministic
        )
        x = x + attended
        hidden = nn.Dense(4 * self.width)(nn.LayerNorm()(x))
        hidden = nn.Dropout(0.1, deterministic=deterministic)(nn.gelu(hidden))
        return x + nn.Dense(self.width)(hidden)


class Transformer(nn.Module):
    width: int = 32
    depth: int = 2

    @nn.compact
    def __call__(self, tokens, deterministic=True):
        positions = self.param("positions", nn.initializers.normal(0.02), (LENGTH, self.width))
        x = nn.Embed(VOCABULARY, self.width)(tokens) + positions
        for _ in range(self.depth):
            x = Block(self.width)(x, deterministic)
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


model = Transformer()
tokens = np.random.default_rng(0).integers(0, VOCABULARY, (100, 32, LENGTH)).astype(np.int32)
variables = model.init(jax.random.key(0), tokens[0])
state = train_state.TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(3e-3))


@jax.jit
def step(state, batch, key):
    def loss(params):
        logits = state.apply_fn({"params": params}, batch, deterministic=False, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, ::-1]).mean()

    value, gradient = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=gradient), value


losses = []
for number, batch in enumerate(tokens):
    state, value = step(state, batch, jax.random.key(number))
    losses.append(float(value))

logits = model.apply({"params": state.params}, tokens[0])
results = {
    "losses": losses,
    "logits": np.asarray(logits[0]).tolist(),
    "parameters": [list(map(int, p.shape)) for p in jax.tree.leaves(state.params)],
    "table": model.tabulate(jax.random.key(0), tokens[0], console_kwargs={"width": 160}).count("float32"),
    "step": int(state.step),
}
assert losses[-1] < losses[0]
print(json.dumps({"tolerance": 2e-3, "results": results}))
