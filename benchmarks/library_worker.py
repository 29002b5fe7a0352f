"""Training steps of libraries in a process of one frontend: `benchmarks.libraries` starts it and asks for times.

It builds the step that its argument names, and answers each number on its input with the seconds that one of so many
steps takes, from Python's call to the results.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def equinox_step() -> Callable[[], Any]:
    """Return a step of Adam for a multilayer perceptron of equinox."""
    import equinox as eqx  # heavy third-party
    import optax  # heavy third-party

    optimizer = optax.adam(1e-3)
    model = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0))
    x, y = jnp.ones((8, 4)), jnp.ones((8, 2))

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradient = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, loss

    held = [model, optimizer.init(eqx.filter(model, eqx.is_array))]

    def run() -> Any:
        held[0], held[1], loss = step(held[0], held[1], x, y)
        return loss

    return run


def nnx_step() -> Callable[[], Any]:
    """Return a step of Adam for a multilayer perceptron of flax.nnx."""
    import optax  # heavy third-party
    from flax import nnx  # heavy third-party

    class Perceptron(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first, self.second = nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.second(nnx.relu(self.first(x)))

    model = Perceptron(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x, y = jnp.ones((8, 4)), jnp.ones((8, 2))

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, gradient = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, gradient)
        return loss

    return lambda: step(model, optimizer, x, y)


def transformer_step() -> Callable[[], Any]:
    """Return a step of Adam for a transformer of flax.linen, not compiled yet."""
    import flax.linen as nn  # heavy third-party
    import optax  # heavy third-party

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(32, 64)(tokens)
            for _ in range(4):
                x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x))
                x = x + nn.Dense(64)(nn.gelu(nn.Dense(256)(nn.LayerNorm()(x))))
            return nn.Dense(32)(nn.LayerNorm()(x))

    model, optimizer = Transformer(), optax.adam(1e-3)
    tokens = jnp.ones((4, 16), jnp.int32)

    @jax.jit
    def step(parameters: Any, state: Any, tokens: Any) -> Any:
        def loss(parameters: Any) -> Any:
            logits = model.apply(parameters, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

        value, gradient = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(parameters, updates), state, value

    parameters = jax.jit(model.init)(jax.random.key(0), tokens)
    state = jax.jit(optimizer.init)(parameters)
    return lambda: step(parameters, state, tokens)


def answer(name: str) -> None:
    """Answer questions for times until the input ends."""
    run = {"equinox": equinox_step, "nnx": nnx_step, "transformer": transformer_step}[name]()
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            result = run()
        jax.block_until_ready(result)
        print((time.perf_counter() - start) / int(line), flush=True)


if __name__ == "__main__":
    answer(sys.argv[1])
