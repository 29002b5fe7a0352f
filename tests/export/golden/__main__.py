"""``python -m tests.export.golden`` writes the files, by jax, which needs the package flatbuffers."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

os.environ["JAX_NUM_CPU_DEVICES"] = "4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.sharding import NamedSharding, PartitionSpec

FOLDER = Path(__file__).parent
Pair = namedtuple("Pair", ["first", "second"])
export.register_namedtuple_serialization(Pair, serialized_name="golden.Pair")


def write(name: str, exported: export.Exported, vjp_order: int = 0) -> None:
    """Write the file of an exported function."""
    (FOLDER / f"{name}.bin").write_bytes(exported.serialize(vjp_order))


def main() -> None:
    """Write all files."""
    vector, square = np.ones(3, np.float32), np.eye(3, dtype=np.float32)
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    rows, all_devices = NamedSharding(mesh, PartitionSpec("x", None)), NamedSharding(mesh, PartitionSpec(("x", "y")))
    write("trees", export.export(jax.jit(lambda x, y: (jnp.sin(x) * y["a"], None, [y["b"]])))(
        vector, {"a": 2.0, "b": np.ones(2, np.int32)}), 2)
    write("pair", export.export(jax.jit(lambda p: Pair(p.second, p.first * 2)))(Pair(1.0, 2.0)))
    write("platforms", export.export(jax.jit(jnp.linalg.cholesky), platforms=["tpu", "cpu"])(square), 1)
    write("keys", export.export(jax.jit(lambda key: jax.random.uniform(key, (2,))))(jax.random.key(0)))
    write("shardings", export.export(jax.jit(
        lambda x, y: (x @ x.T, y), in_shardings=(rows, None), out_shardings=(rows, all_devices)
    ))(jnp.ones((4, 4)), jnp.ones(4)), 1)
    write("shards", export.export(jax.jit(jax.shard_map(
        lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec()
    )))(jax.device_put(jnp.ones((4, 4)), rows)), 1)
    (size,) = export.symbolic_shape("b")
    write("unknown_sizes", export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((size,), "float32")))
    shapes = export.symbolic_shape("b, 2*n + 1, max(b, n) - 1", constraints=["mod(b, 2) == 0", "n <= 8"])
    rows = shapes[0] // 2
    write("symbolic_sizes", export.export(jax.jit(
        lambda x, y: (jnp.cumsum(x.reshape(rows, 2, -1), axis=0) / x.shape[1], y * jnp.arange(y.shape[0]))
    ))(jax.ShapeDtypeStruct(shapes[:2], "float32"), jax.ShapeDtypeStruct(shapes[2:], "float32")), 1)
    jax.config.update("jax_export_calling_convention_version", 9)
    write("convention_9", export.export(jax.jit(lambda x: jnp.sin(x) * x.shape[0]), platforms=["cpu", "tpu"])(
        jax.ShapeDtypeStruct((size,), "float32")), 1)


if __name__ == "__main__":
    main()
