"""The other layers of equinox.nn, each with its gradient, under jit and vmap."""

import equinox as eqx
import jax
import jax.numpy as jnp
from surface import Surface

jax.config.update("jax_enable_x64", True)
surface = Surface(1e-8)
keys = iter(jax.random.split(jax.random.key(0), 200))


def draw(*shape):
    return jax.random.normal(next(keys), shape, jnp.float64)


def use(name, layer, *inputs, **options):
    """Record a layer's value, its gradients by parameters and inputs, and its value on a batch."""
    layer = jax.tree.map(lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x, layer)

    def total(parts):
        model, arguments = parts
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(model(*arguments, **options)))

    @eqx.filter_jit
    def run(model, arguments, batch):
        rows = jax.vmap(lambda *xs: model(*xs, **options))(*batch)
        return model(*arguments, **options), eqx.filter_grad(total)((model, arguments)), rows

    batch = jax.tree.map(lambda x: jnp.stack([x, 2 * x]) if jnp.issubdtype(x.dtype, jnp.inexact) else x[None], inputs)
    value, gradient, rows = run(layer, inputs, batch)
    surface.record(f"{name} value", value)
    surface.record(f"{name} gradient", gradient)
    surface.record(f"{name} batch", rows)


# Linear layers and those that hold functions.
use("Linear", eqx.nn.Linear(3, 4, key=next(keys)), draw(3))
use("Linear scalar", eqx.nn.Linear("scalar", "scalar", use_bias=False, key=next(keys)), draw())
use("Identity", eqx.nn.Identity(1, two=2), draw(3))
use("Lambda", eqx.nn.Lambda(jax.nn.softplus), draw(3))
use("PReLU", eqx.nn.PReLU(0.3), draw(5))
mlp = eqx.nn.MLP(3, 2, width_size=5, depth=2, activation=jax.nn.gelu, final_activation=jnp.tanh, key=next(keys))
use("MLP", mlp, draw(3))
use("MLP scalar", eqx.nn.MLP("scalar", "scalar", 4, 1, use_final_bias=False, key=next(keys)), draw())
sequential = eqx.nn.Sequential(
    [eqx.nn.Linear(3, 4, key=next(keys)), eqx.nn.Lambda(jnp.tanh), eqx.nn.Linear(4, 2, key=next(keys))]
)
use("Sequential", sequential, draw(3))
use("Sequential slice", sequential[1:], draw(4))
surface.record("Sequential length", [len(sequential), sequential.is_stateful()])
embedding = eqx.nn.Embedding(5, 3, key=next(keys))
surface.record("Embedding", jax.vmap(embedding)(jnp.array([0, 3, 4])))
surface.record("Embedding gradient", eqx.filter_grad(lambda e: jnp.sum(e(jnp.array(2)) ** 2))(embedding))
use("Embedding of weights", eqx.nn.Embedding(weight=draw(4, 2)), jnp.array(1))
surface.record_error("Linear of a wrong shape", "shape", eqx.nn.Linear(3, 4, key=next(keys)), draw(5))
surface.record_error("Embedding of a wrong shape", "scalar", embedding, jnp.array([1, 2]))
surface.record_error("Embedding without sizes", "Must provide", eqx.nn.Embedding)

# Normalisation that keeps no state.
use("LayerNorm", eqx.nn.LayerNorm((2, 3)), draw(2, 3))
use("LayerNorm plain", eqx.nn.LayerNorm(3, use_weight=False, use_bias=False), draw(3))
use("RMSNorm", eqx.nn.RMSNorm(4), draw(4))
use("GroupNorm", eqx.nn.GroupNorm(2, 4), draw(4, 3))
use("GroupNorm plain", eqx.nn.GroupNorm(3, channelwise_affine=False), draw(6, 2))
use("WeightNorm", eqx.nn.WeightNorm(eqx.nn.Linear(3, 4, key=next(keys))), draw(3))
use("WeightNorm of axis 1", eqx.nn.WeightNorm(eqx.nn.Conv1d(2, 3, 2, key=next(keys)), axis=1), draw(2, 5))
surface.record_error("LayerNorm of a wrong shape", "shape", eqx.nn.LayerNorm(3), draw(4))
surface.record_error("GroupNorm of wrong groups", "number of groups", lambda: eqx.nn.GroupNorm(2, 3))

# Recurrent cells and attention.
use("GRUCell", eqx.nn.GRUCell(3, 4, key=next(keys)), draw(3), draw(4))
use("LSTMCell", eqx.nn.LSTMCell(3, 4, use_bias=False, key=next(keys)), draw(3), (draw(4), draw(4)))
gru = jax.tree.map(lambda x: x.astype(jnp.float64), eqx.nn.GRUCell(2, 3, key=next(keys)))


@eqx.filter_jit
@eqx.filter_grad
def differentiate_scan(cell, xs):
    return jnp.sum(jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(3), xs)[0])


surface.record("GRUCell scan gradient", differentiate_scan(gru, draw(6, 2)))
attention = eqx.nn.MultiheadAttention(2, 6, use_query_bias=True, use_output_bias=True, key=next(keys))
use("MultiheadAttention", attention, draw(4, 6), draw(5, 6), draw(5, 6), mask=jnp.tri(4, 5, dtype=bool))
small = eqx.nn.MultiheadAttention(
    2, 4, key_size=3, value_size=5, output_size=2, qk_size=4, vo_size=3, key=next(keys)
)
use("MultiheadAttention sizes", small, draw(3, 4), draw(3, 3), draw(3, 5))
dropping = eqx.nn.MultiheadAttention(2, 4, dropout_p=0.5, key=next(keys))
xs = draw(3, 4)
surface.record("MultiheadAttention dropout", dropping(xs, xs, xs, key=jax.random.key(1)))
surface.record("MultiheadAttention inference", dropping(xs, xs, xs, inference=True))
surface.record_error("MultiheadAttention without a key", "key", dropping, xs, xs, xs)
rotary = eqx.nn.RotaryPositionalEmbedding(4, theta=100.0, dtype=jnp.float64)
use("RotaryPositionalEmbedding", rotary, draw(5, 4))
rotated = jax.vmap(rotary, in_axes=1, out_axes=1)(draw(5, 2, 4))
surface.record("RotaryPositionalEmbedding of heads", rotated)
surface.record_error("RotaryPositionalEmbedding odd", "even", lambda: eqx.nn.RotaryPositionalEmbedding(3))

# Dropout and the mode of inference.
dropout = eqx.nn.Dropout(0.4)
surface.record("Dropout", jax.jit(dropout)(jnp.ones(20), key=jax.random.key(3)))
surface.record("Dropout inference", dropout(jnp.ones(3), inference=True))
surface.record("Dropout in inference mode", eqx.nn.inference_mode(dropout)(jnp.ones(3)))
surface.record("Dropout back in training", eqx.nn.inference_mode(eqx.nn.Dropout(inference=True), False).inference)
surface.record_error("Dropout without a key", "requires a key", dropout, jnp.ones(3))

# Layers with state.
batch = draw(6, 3)
for mode in ("ema", "batch"):
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode=mode, dtype=jnp.float64)

    def norm_loss(model, state, xs):
        ys, state = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(xs, state)
        return jnp.sum(ys**3), (ys, state)

    step = eqx.filter_jit(eqx.filter_value_and_grad(norm_loss, has_aux=True))
    for number in range(3):
        (_, (ys, state)), gradient = step(norm, state, batch + number)
        surface.record(f"BatchNorm {mode} {number}", [ys, gradient])
    evaluated = jax.vmap(eqx.nn.inference_mode(norm), in_axes=(0, None), out_axes=(0, None))(batch, state)[0]
    surface.record(f"BatchNorm {mode} inference", evaluated)
surface.record_error("BatchNorm without its axis", "batch", lambda: norm(batch[0], state))

spectral, state = eqx.nn.make_with_state(eqx.nn.SpectralNorm)(
    eqx.nn.Linear(3, 4, key=next(keys), dtype=jnp.float64), "weight", num_power_iterations=2, key=next(keys)
)
for number in range(2):
    value, state = eqx.filter_jit(spectral)(draw(3), state)
    surface.record(f"SpectralNorm {number}", value)


class Counter(eqx.nn.StatefulLayer):
    index: eqx.nn.StateIndex

    def __init__(self, start):
        self.index = eqx.nn.StateIndex(jnp.array(start, jnp.int32))

    def __call__(self, x, state, *, key=None):
        count = state.get(self.index)
        return x * count, state.set(self.index, count + 1)


counter, state = eqx.nn.make_with_state(Counter)(5)
assert isinstance(state, eqx.nn.State)
run = jax.jit(lambda x, state: counter(x, state))
for number in range(2):
    value, state = run(jnp.float64(2.0), state)
    surface.record(f"StatefulLayer {number}", value)
surface.record("StatefulLayer state", [state.get(counter.index), counter.is_stateful()])
part = state.substate(counter)
surface.record("State update", state.update(part.set(counter.index, jnp.array(9, jnp.int32))).get(counter.index))
surface.record_error("State of another shape", "shapes/dtypes", lambda: state.set(counter.index, jnp.zeros(3)))
surface.record_error("State used twice", "old state", lambda: (state.set(counter.index, 7), state.get(counter.index)))
counter, state = eqx.nn.make_with_state(Counter)(1)
scanned = jax.lax.scan(lambda s, x: counter(x, s)[::-1], state, jnp.arange(4.0))[1]
surface.record("State in scan", scanned)
stateful, state = eqx.nn.make_with_state(
    lambda: eqx.nn.Sequential([eqx.nn.Linear(2, 2, key=jax.random.key(4)), Counter(2)])
)()
value, state = eqx.filter_jit(stateful)(jnp.ones(2), state)
surface.record("Sequential with state", [value, stateful.is_stateful(), state])
surface.record("State of a model", eqx.nn.State(Counter(1)))
bare = eqx.nn.delete_init_state(Counter(3))
surface.record("delete_init_state", len(jax.tree.leaves(bare)))
surface.record_error("State of a deleted index", "make_with_state", lambda: eqx.nn.State(bare))

# Shared parameters.


class Tied(eqx.Module):
    shared: eqx.nn.Shared

    def __init__(self):
        embed = eqx.nn.Embedding(weight=draw(3, 4))
        head = eqx.nn.Linear(4, 3, use_bias=False, key=next(keys))
        self.shared = eqx.nn.Shared((embed, head), lambda pair: pair[1].weight, lambda pair: pair[0].weight)

    def __call__(self, token):
        embed, head = self.shared()
        return head(embed(token))


tied = Tied()
surface.record("Shared", tied(jnp.array(1)))
surface.record("Shared gradient", eqx.filter_jit(eqx.filter_grad(lambda m: jnp.sum(m(jnp.array(1)) ** 2)))(tied))

surface.finish(__file__, {"eqx.nn": eqx.nn}, {})
