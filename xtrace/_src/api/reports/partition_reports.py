"""Reports of a program's costs on each of its devices: memory, replicated arguments, collectives, operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.api.reports.memory_reports import Memory, read_memory_statistics
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.text_tables import format_size, format_table
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.xla.hlo.hlo_collectives import Collective, read_collectives
from xtrace._src.xla.source_locations import name_file


class Replicated(NamedTuple):
    """An argument with a full copy on every device: its path, its type, and its bytes on each device."""

    name: str
    type: str
    size: int


class Exchange(NamedTuple):
    """A collective: its kind, the bytes of its larger side on each device, and its mesh axes.

    `times` is the number of executions in a run, a lower bound if `at_least`; `place` is the user's ``file:line``, or
    None.
    """

    kind: str
    size: int
    axes: tuple[Any, ...]
    times: int
    at_least: bool
    place: str | None


class PartitionReport(NamedTuple):
    """The costs of a compiled program on each of its devices; ``Compiled.report()`` returns it.

    Sizes are in bytes. `capacity` is the memory of a device, None if unknown. `flops` and `bytes_accessed` are XLA's
    estimates for one run. Printed, it is a table.
    """

    name: str
    device_kind: str
    devices: int
    mesh: BaseMesh | None
    memory: Memory
    capacity: int | None
    replicated: tuple[Replicated, ...]
    collectives: tuple[Exchange, ...]
    flops: float
    bytes_accessed: float

    @property
    def fits(self) -> bool | None:
        """Whether the program fits into a device's memory; None if the memory is not known."""
        return None if self.capacity is None else self.memory.total <= self.capacity

    def __repr__(self) -> str:
        axes = f", mesh {', '.join([f'{name}={n}' for name, n in self.mesh.shape_tuple])}" if self.mesh else ""
        devices = f"{self.devices} devices of kind {self.device_kind}" if self.devices > 1 else self.device_kind
        memory = self.memory
        verdict = {True: "fits", False: "DOES NOT FIT", None: "memory of the device not known"}[self.fits]
        of = f" of {format_size(self.capacity)}" if self.capacity is not None else ""
        lines = [
            f"{self.name}: {devices}{axes}",
            f"memory of each device   {format_size(memory.total)}{of}: {verdict}",
            *[f"  {what:<22}{format_size(n)}" for what, n in memory._asdict().items()],
            f"operations of each      {self.flops:,.0f} flops, {format_size(int(self.bytes_accessed))} accessed",
        ]
        lines += format_table("replicated arguments", ("bytes on each", "type", "argument"), [
            (format_size(r.size), r.type, r.name) for r in self.replicated
        ])
        lines += format_table("collectives", ("kind", "bytes", "times", "mesh axes", "line"), [
            (c.kind, format_size(c.size), f"{'at least ' if c.at_least else ''}{c.times}",
             ", ".join(map(str, c.axes)) or "-", c.place or "-")
            for c in self.collectives
        ])
        return "\n".join(lines)


def make_report(
    name: str, executable: Any, device_kind: str, mesh: BaseMesh | None, capacity: int | None, names: Sequence[str],
    avals: Sequence[ShapedArray], shardings: Sequence[Sharding | None],
) -> PartitionReport:
    """Return the report of an executable; `names`, `avals` and `shardings` describe its arguments."""
    devices = mesh.size if mesh is not None else 1
    memory = read_memory_statistics(executable.get_compiled_memory_stats())
    replicated = [
        Replicated(name, aval.str_short(short_dtypes=False), aval.size * physical_aval(aval).dtype.itemsize)
        for name, aval, sharding in zip(names, avals, shardings, strict=True)
        if devices > 1 and sharding is not None and sharding.is_fully_replicated
    ]
    text = "\n".join([module.to_string() for module in executable.hlo_modules()])
    collectives = read_collectives(text, devices) if mesh is not None else []
    cost = executable.cost_analysis()
    cost = cost[0] if isinstance(cost, (list, tuple)) else cost
    return PartitionReport(
        name, device_kind, devices, mesh, memory, capacity,
        tuple(sorted(replicated, key=lambda r: -r.size)), tuple([_exchange(c, mesh) for c in collectives]),
        float(cost.get("flops", 0.0)), float(cost.get("bytes accessed", 0.0)),
    )


def _exchange(collective: Collective, mesh: BaseMesh | None) -> Exchange:
    place = f"{name_file(collective.file)}:{collective.line}" if collective.file is not None else None
    axes = _find_axes(collective.groups, mesh) if mesh is not None else ()
    return Exchange(collective.kind, collective.size, axes, collective.times, collective.at_least, place)


def _find_axes(groups: Sequence[Sequence[int]], mesh: BaseMesh) -> tuple[Any, ...]:
    """Return the mesh axes along which devices of one group differ."""
    axes: set[int] = set()
    for group in groups:
        places = np.stack(np.unravel_index(np.array(group), mesh.axis_sizes))
        axes.update(np.flatnonzero((places != places[:, :1]).any(1)).tolist())
    return tuple([name for i, name in enumerate(mesh.axis_names) if i in axes])

