"""The options ``--mesh`` and ``--sharding``: a mesh of the target's devices, and the shardings of arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import xtrace
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.experimental import topologies
from xtrace.sharding import Mesh, NamedSharding, PartitionSpec


def parse_mesh(text: str) -> dict[str, int]:
    """Return the size of each axis in ``data=4,model=2``. Raises `CommandError`."""
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.strip().partition("=")
        if not (name.isidentifier() and equals and size.isdecimal() and int(size)) or name in axes:
            raise CommandError(f"--mesh {text}: write each axis once, as data=4,model=2", WRONG_COMMAND)
        axes[name] = int(size)
    return axes


def parse_sharding(text: str, axes: Mapping[str, int]) -> tuple[str, PartitionSpec]:
    """Return the argument and the specification in ``params=data,model``. Raises `CommandError`.

    The entry of a dimension is a mesh axis, several axes joined by ``+``, or ``-`` for none.
    """
    name, equals, dimensions = text.partition("=")
    if not (name and equals):
        raise CommandError(f"--sharding {text}: write NAME=AXIS,AXIS, such as params=-,model", WRONG_COMMAND)
    entries = [tuple(d.strip().split("+")) if d.strip() not in ("", "-") else None for d in dimensions.split(",")]
    unknown = [axis for entry in entries for axis in entry or () if axis not in axes]
    if unknown:
        raise CommandError(
            f"--sharding {text}: {unknown[0]} is not a mesh axis; the axes are {', '.join(axes)}", WRONG_COMMAND
        )
    try:
        return name, PartitionSpec(*entries)
    except ValueError as error:
        raise CommandError(f"--sharding {text}: {error}", WRONG_COMMAND) from None


def make_mesh(axes: Mapping[str, int], target: str | None) -> Mesh:
    """Return a mesh of all devices of a target, or of new CPU devices without a target. Raises `CommandError`."""
    sizes = tuple(axes.values())
    try:
        if target is not None:
            return topologies.make_mesh(topologies.get_topology_desc(target), sizes, tuple(axes))
        xtrace.config.update("jax_num_cpu_devices", math.prod(sizes))
        devices = xtrace.devices("cpu")[: math.prod(sizes)]
        return topologies.make_mesh(topologies.TopologyDescription(devices), sizes, tuple(axes))
    except (ValueError, ImportError, RuntimeError) as error:
        raise CommandError(f"--mesh: {error}", WRONG_COMMAND) from None


def place_arguments(
    names: Sequence[str], values: Sequence[Any], mesh: Mesh, specs: Mapping[str, PartitionSpec]
) -> list[Any]:
    """Return the arguments with a sharding for each array; an array without a specification is replicated.

    A specification names an argument or a part of it, such as ``params['w']``; the longest name counts. An array with
    fewer dimensions, such as a bias beside its weights, is replicated. Raises `CommandError` for a name without arrays,
    and for a size that the mesh axes do not divide.
    """
    used = set()

    def place(name: str, leaf: Any) -> Any:
        if not isinstance(leaf, xtrace.ShapeDtypeStruct):
            return leaf
        prefixes = [p for p in specs if name == p or name.startswith((f"{p}[", f"{p}."))]
        used.update(prefixes)
        spec = specs[max(prefixes, key=len)] if prefixes else PartitionSpec()
        try:
            sharding = NamedSharding(mesh, spec if len(spec) <= leaf.ndim else PartitionSpec())
            sharding.shard_shape(leaf.shape)
        except ValueError as error:
            raise CommandError(f"--sharding of {name}: {error}", WRONG_COMMAND) from None
        return leaf.update(sharding=sharding)

    placed = []
    for name, value in zip(names, values, strict=True):
        pairs, tree = xtrace.tree_util.tree_flatten_with_path(value)
        leaves = [place(name + xtrace.tree_util.keystr(path), leaf) for path, leaf in pairs]
        placed.append(xtrace.tree_util.tree_unflatten(tree, leaves))
    unknown = [name for name in specs if name not in used]
    if unknown:
        raise CommandError(
            f"--sharding {unknown[0]}: there is no such argument; the arguments are {', '.join(names)}", WRONG_COMMAND
        )
    return placed
