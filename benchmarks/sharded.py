"""The measures on a mesh of eight CPU devices: calls, transfers, and a transformer's training step."""

import importlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Row, Sampler
from benchmarks.programs import Library, uniform

LAYERS, WIDTH, HEADS, HEAD, HIDDEN, BATCH, LENGTH = 12, 32, 4, 8, 64, 8, 16


class Mesh(NamedTuple):
    """A mesh of four by two devices, and the parts of the library that name it."""

    root: Any
    mesh: Any
    spec: Any

    def named(self, *entries: Any) -> Any:
        """Return the sharding with these entries."""
        return self.root.sharding.NamedSharding(self.mesh, self.spec(*entries))

    def put(self, x: Any, *entries: Any) -> Any:
        """Return an array with the sharding of these entries."""
        return self.root.device_put(x, self.named(*entries))


def make_mesh(library: Library, kind: str = "Auto") -> Mesh:
    """Return the mesh, whose axes have the type `kind`."""
    sharding = importlib.import_module(library.root.__name__ + ".sharding")
    devices = np.array(library.root.devices()).reshape(4, 2)
    types = (getattr(sharding.AxisType, kind),) * 2
    return Mesh(library.root, sharding.Mesh(devices, ("data", "model"), axis_types=types), sharding.PartitionSpec)


def loop(function: Callable[[], Any], root: Any) -> Sampler:
    """Time calls of a function by the wall's clock: other threads do the work."""

    def run(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            result = function()
        root.block_until_ready(result)
        return time.perf_counter() - start

    return Sampler(run)


def call_of_two(library: Library) -> Sampler:
    """Call a jitted sum of two arrays, sharded in two ways."""
    mesh = make_mesh(library)
    a, b = mesh.put(uniform(8, 8), "data", "model"), mesh.put(uniform(8, 8), "data")
    function = library.root.jit(lambda a, b: a + b)
    return loop(lambda: function(a, b), library.root)


def call_of_tree(library: Library) -> Sampler:
    """Call a jitted sum of the 200 leaves of a dictionary."""
    mesh = make_mesh(library)
    tree = {f"parameter {i}": mesh.put(uniform(8), "data") for i in range(200)}
    function = library.root.jit(lambda tree: sum(tree.values()))
    return loop(lambda: function(tree), library.root)


def call_of_shard_map(library: Library) -> Sampler:
    """Call a jitted sum over a mesh axis in `shard_map`."""
    mesh = make_mesh(library)
    mapped = library.root.shard_map(
        lambda x: library.lax.psum(x, "data"), mesh=mesh.mesh, in_specs=mesh.spec("data"), out_specs=mesh.spec()
    )
    function, x = library.root.jit(mapped), mesh.put(uniform(8, 8), "data")
    # With several calls in flight, XLA's threads for collectives can wait for each other for ever on few cores.
    return loop(lambda: library.root.block_until_ready(function(x)), library.root)


def put_of_host(library: Library, size: int, entries: tuple[Any, ...]) -> Sampler:
    """Put a square NumPy array on the mesh."""
    place, host = make_mesh(library).named(*entries), uniform(size, size)
    return loop(lambda: library.root.device_put(host, place), library.root)


def put_elsewhere(library: Library, size: int) -> Sampler:
    """Put a sharded array on the mesh with another sharding; a new array each time, since jax keeps the host's copy."""
    mesh = make_mesh(library)
    place, host = mesh.named("model"), uniform(size, size)
    return loop(lambda: library.root.device_put(mesh.put(host, "data", "model"), place), library.root)


def transformer(library: Library, kind: str) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    """Return a training step of a transformer, its arguments, and the mesh: data-parallel and tensor-parallel.

    Vaswani and others (2017), with normalization before each block; the heads and the hidden layer are sharded.
    """
    jnp, root, mesh = library.numpy, library.root, make_mesh(library, kind)
    explicit = kind == "Explicit"

    def activations(x: Any) -> Any:
        return x if explicit else library.lax.with_sharding_constraint(x, mesh.named("data", None, None))

    def project(expression: str, x: Any, w: Any) -> Any:
        """Contract a sharded dimension."""
        if explicit:
            return jnp.einsum(expression, x, w, out_sharding=mesh.spec("data", None, None))
        return activations(jnp.einsum(expression, x, w))

    def normalize(x: Any, scale: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return scale * centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)

    def block(x: Any, layer: Any) -> Any:
        y = normalize(x, layer["first"])
        q, k, v = [jnp.einsum("btd,dhk->bthk", y, layer[name]) for name in ("q", "k", "v")]
        weights = root.nn.softmax(jnp.einsum("bthk,bshk->bhts", q, k) / HEAD**0.5)
        x = x + project("bthk,hkd->btd", jnp.einsum("bhts,bshk->bthk", weights, v), layer["o"])
        hidden = root.nn.gelu(jnp.einsum("btd,df->btf", normalize(x, layer["second"]), layer["in"]))
        return x + project("btf,fd->btd", hidden, layer["out"])

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for layer in layers:
            x = block(x, layer)
        return ((x - y) ** 2).mean()

    def step(layers: Any, x: Any, y: Any) -> Any:
        value, gradients = root.value_and_grad(loss)(layers, x, y)
        return root.tree_util.tree_map(lambda p, g: p - 0.01 * g, layers, gradients), value

    attention = {name: mesh.put(uniform(WIDTH, HEADS, HEAD), None, "model", None) for name in ("q", "k", "v")}
    layer = attention | {
        "o": mesh.put(uniform(HEADS, HEAD, WIDTH), "model", None, None),
        "in": mesh.put(uniform(WIDTH, HIDDEN), None, "model"), "out": mesh.put(uniform(HIDDEN, WIDTH), "model", None),
        "first": mesh.put(uniform(WIDTH)), "second": mesh.put(uniform(WIDTH)),
    }
    batch = mesh.put(uniform(BATCH, LENGTH, WIDTH), "data", None, None)
    return step, ([layer] * LAYERS, batch, batch), mesh.mesh


def text_of_step(library: Library, kind: str) -> Sampler:
    """Trace and lower the training step, a new function each time."""

    def run(count: int) -> float:
        taken = 0.0
        for _ in range(count):
            step, arguments, mesh = transformer(library, kind)
            with library.root.set_mesh(mesh):
                start = time.thread_time()
                library.root.jit(step).trace(*arguments).lower().as_text()
                taken += time.thread_time() - start
        return taken

    return Sampler(run)


def row(name: str, measure: Callable[[Library], Sampler], target: float | None = None, unit: str = "us") -> Row:
    return Row(f"on 8 devices: {name}", measure, target, unit, devices=8)


ROWS = [
    row("dispatch 2 arrays", call_of_two, target=1.0),
    row("dispatch 200-leaf dict", call_of_tree, target=1.0),
    row("dispatch shard_map with psum", call_of_shard_map),
    row("device_put 8 x 8", partial(put_of_host, size=8, entries=("data", "model")), target=1.0),
    row("device_put 8 x 8, copies", partial(put_of_host, size=8, entries=("data",)), target=1.0),
    row("device_put 1,024 x 1,024", partial(put_of_host, size=1024, entries=("data", "model")), target=1.0),
    row("device_put 8 x 8 and again, otherwise", partial(put_elsewhere, size=8), target=1.0),
    row("device_put 1,024 x 1,024 and again, otherwise", partial(put_elsewhere, size=1024), target=1.0),
    row("trace+lower a transformer's step, Auto", partial(text_of_step, kind="Auto"), target=0.15, unit="ms"),
    row("trace+lower a transformer's step, Explicit", partial(text_of_step, kind="Explicit"), target=0.2, unit="ms"),
]
