"""Training steps on meshes, for xtrace and for jax: each function returns a step and its arguments.

`lib` is a library of `tests.sharding.meshes`; `kind` is the type of the mesh axes, or None for one device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, HIDDEN, BATCH, LAYERS = 8, 16, 16, 4


def arrays(*shapes, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape).astype(np.float32) / np.sqrt(shape[0]) for shape in shapes]


def put(lib, kind, x, *entries):
    """Return an array on the mesh of four by two devices, or on one device."""
    return lib.np.asarray(x) if kind is None else lib.put(x, lib.named("x4y2", *entries, kind=kind))


def momentum(lib, loss):
    """Return a step of gradient descent with momentum; its state are the parameters and their velocities."""

    def step(state, *batch):
        parameters, velocities = state
        value, gradients = lib.module.value_and_grad(loss)(parameters, *batch)
        tree_map = lib.module.tree.map
        velocities = tree_map(lambda v, g: 0.9 * v + g, velocities, gradients)
        parameters = tree_map(lambda p, v: p - 0.1 * v, parameters, velocities)
        return (parameters, velocities), value

    return step


def with_velocities(lib, parameters):
    return parameters, lib.module.tree.map(lambda p: p * 0, parameters)


def dense(lib, x, layer):
    return lib.np.tanh(x @ layer["in"]) @ layer["out"] + layer["bias"]


def data_parallel(lib, kind):
    """The batch is sharded over one axis, the parameters are replicated; with dropout."""
    inner, out, x, y = arrays((WIDTH, HIDDEN), (HIDDEN, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    layer = {"in": put(lib, kind, inner), "out": put(lib, kind, out), "bias": put(lib, kind, np.zeros(WIDTH, "f"))}

    def loss(layer, x, y, key):
        keep = lib.module.random.bernoulli(key, 0.8, x.shape)
        return ((dense(lib, lib.np.where(keep, x, 0.0), layer) - y) ** 2).mean()

    key = lib.module.random.key(3)
    return momentum(lib, loss), (with_velocities(lib, layer), put(lib, kind, x, "x"), put(lib, kind, y, "x"), key)


def tensor_parallel(lib, kind):
    """The hidden dimension is sharded over one axis, the batch over the other."""
    inner, out, x, y = arrays((WIDTH, HIDDEN), (HIDDEN, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    layer = {
        "in": put(lib, kind, inner, None, "y"), "out": put(lib, kind, out, "y", None),
        "bias": put(lib, kind, np.zeros(WIDTH, "f"), None),
    }

    def loss(layer, x, y):
        hidden = lib.np.tanh(x @ layer["in"])
        if kind == "Explicit":
            result = lib.np.einsum("bh,hw->bw", hidden, layer["out"], out_sharding=lib.P("x", None))
        else:
            result = hidden @ layer["out"]
        return ((result + layer["bias"] - y) ** 2).mean()

    return momentum(lib, loss), (with_velocities(lib, layer), put(lib, kind, x, "x"), put(lib, kind, y, "x"))


def fully_sharded(lib, kind):
    """Layers are sharded over the axis of the batch, and gathered one by one in a checkpointed scan."""
    inner, out, x, y = arrays((LAYERS, WIDTH, HIDDEN), (LAYERS, HIDDEN, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    layers = {
        "in": put(lib, kind, inner, None, "x"), "out": put(lib, kind, out, None, "x"),
        "bias": put(lib, kind, np.zeros((LAYERS, WIDTH), "f"), None, "x"),
    }

    def gather(x):
        if kind is None:
            return x
        whole = lib.named("x4y2", *[None] * x.ndim, kind=kind)
        return lib.module.reshard(x, whole) if kind == "Explicit" else lib.lax.with_sharding_constraint(x, whole)

    @lib.module.checkpoint
    def body(x, layer):
        return x + dense(lib, x, lib.module.tree.map(gather, layer)), None

    def loss(layers, x, y):
        return ((lib.lax.scan(body, x, layers)[0] - y) ** 2).mean()

    return momentum(lib, loss), (with_velocities(lib, layers), put(lib, kind, x, "x"), put(lib, kind, y, "x"))


def manual(lib, mapped, in_specs, out_specs):
    return lib.module.shard_map(mapped, mesh=lib.mesh("x4y2"), in_specs=in_specs, out_specs=out_specs)


def manual_data_parallel(lib, kind):
    """Each device computes the loss of its part of the batch; gradients are summed by the transposes."""
    inner, out, x, y = arrays((WIDTH, HIDDEN), (HIDDEN, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    layer = {"in": inner, "out": out, "bias": np.zeros(WIDTH, "f")}

    def total(layer, x, y):
        return ((dense(lib, x, layer) - y) ** 2).sum()

    def loss(layer, x, y):
        if kind is None:
            return total(layer, x, y) / y.size
        mapped = manual(
            lib, lambda *given: lib.lax.psum(total(*given), ("x", "y")),
            (lib.P(), lib.P(("x", "y")), lib.P(("x", "y"))), lib.P(),
        )
        return mapped(layer, x, y) / y.size

    layer = {name: put(lib, kind and "Auto", value) for name, value in layer.items()}
    places = ((("x", "y"),), (("x", "y"),))
    x, y = [put(lib, kind and "Auto", v, *place) for v, place in zip((x, y), places, strict=True)]
    return momentum(lib, loss), (with_velocities(lib, layer), x, y)


def pipelined(lib, kind):
    """Each of four devices has a layer; microbatches go round by ppermute in a scan."""
    inner, out, x, y = arrays((LAYERS, WIDTH, HIDDEN), (LAYERS, HIDDEN, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    layers = {"in": inner, "out": out, "bias": np.zeros((LAYERS, WIDTH), "f")}
    parts = 4

    def apply(x, layer):
        return lib.np.tanh(dense(lib, x, layer))

    def staged(layers, batches):
        layer, stage = lib.module.tree.map(lambda w: w[0], layers), lib.lax.axis_index("x")
        ring = [(i, (i + 1) % LAYERS) for i in range(LAYERS)]

        def tick(state, time):
            fresh = batches[lib.np.clip(time, 0, parts - 1)]
            result = apply(lib.np.where(stage == 0, fresh, state), layer)
            return lib.lax.ppermute(result, "x", ring), result

        start = lib.lax.pcast(lib.np.zeros_like(batches[0]), ("x",), to="varying")
        _, results = lib.lax.scan(tick, start, lib.np.arange(parts + LAYERS - 1))
        last = lib.np.where(stage == LAYERS - 1, results[LAYERS - 1 :], 0.0)
        return lib.lax.psum(last, "x")

    def loss(layers, x, y):
        batches = x.reshape(parts, -1, WIDTH)
        if kind is None:
            results = lib.lax.scan(lambda x, layer: (apply(x, layer), None), batches, layers)[0]
        else:
            results = manual(lib, staged, (lib.P("x"), lib.P()), lib.P())(layers, batches)
        return ((results.reshape(y.shape) - y) ** 2).mean()

    auto = kind and "Auto"
    layers = {name: put(lib, auto, value, "x") for name, value in layers.items()}
    return momentum(lib, loss), (with_velocities(lib, layers), put(lib, auto, x), put(lib, auto, y))


def expert_parallel(lib, kind):
    """Each device has two experts and a part of the tokens, which go to their expert and back by all_to_all."""
    experts, capacity, devices = 8, 6, 4
    inner, out, gate, x, y = arrays(
        (experts, WIDTH, HIDDEN), (experts, HIDDEN, WIDTH), (WIDTH, experts), (BATCH, WIDTH), (BATCH, WIDTH)
    )
    parameters = {"in": inner, "out": out, "gate": gate}

    def dispatch(x, gate):
        """Return tokens by expert, and the weights that put the results back: one expert, the best, for each token."""
        scores = lib.module.nn.softmax(x @ gate)
        weights, chosen = lib.lax.top_k(scores, 1)
        one_hot = lib.module.nn.one_hot(chosen[:, 0], experts)
        place = (lib.np.cumsum(one_hot, 0) * one_hot - 1).max(1).astype("int32")
        slots = one_hot[:, :, None] * lib.module.nn.one_hot(place, capacity)[:, None, :]
        return lib.np.einsum("tw,tec->ecw", x, slots), slots * weights[:, :, None]

    def compute(tokens, inner, out):
        return lib.np.einsum("ech,ehw->ecw", lib.np.tanh(lib.np.einsum("ecw,ewh->ech", tokens, inner)), out)

    def apply(x, parameters):
        tokens, combine = dispatch(x, parameters["gate"])
        tokens = lib.lax.all_to_all(tokens, "x", 0, 1, tiled=True)
        results = compute(tokens, parameters["in"], parameters["out"])
        results = lib.lax.all_to_all(results, "x", 1, 0, tiled=True)
        return lib.np.einsum("ecw,tec->tw", results, combine)

    def alone(x, parameters):
        parts = x.reshape(devices, -1, WIDTH)
        tokens, combine = lib.module.vmap(lambda part: dispatch(part, parameters["gate"]))(parts)
        results = lib.module.vmap(lambda t: compute(t, parameters["in"], parameters["out"]))(tokens)
        return lib.np.einsum("decw,dtec->dtw", results, combine).reshape(x.shape)

    def loss(parameters, x, y):
        if kind is None:
            result = alone(x, parameters)
        else:
            specs = {"in": lib.P("x"), "out": lib.P("x"), "gate": lib.P()}
            result = manual(lib, apply, (lib.P("x"), specs), lib.P("x"))(x, parameters)
        return ((x + result - y) ** 2).mean()

    auto = kind and "Auto"
    places = {"in": ("x",), "out": ("x",), "gate": ()}
    parameters = {name: put(lib, auto, value, *places[name]) for name, value in parameters.items()}
    return momentum(lib, loss), (with_velocities(lib, parameters), put(lib, auto, x, "x"), put(lib, auto, y, "x"))


STEPS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "data_parallel": (data_parallel, ("Auto", "Explicit")), "tensor_parallel": (tensor_parallel, ("Auto", "Explicit")),
    "fully_sharded": (fully_sharded, ("Auto", "Explicit")),
    "manual_data_parallel": (manual_data_parallel, ("Manual",)), "pipelined": (pipelined, ("Manual",)),
    "expert_parallel": (expert_parallel, ("Manual",)),
}
