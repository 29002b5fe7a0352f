"""Shardy's text: meshes and shardings of values, by which XLA partitions programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.partition_spec import UNCONSTRAINED, full_entries, get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding
from xtrace._src.stablehlo import attributes


class Meshes:
    """The meshes of a module, each with its name, such as ``@mesh``; they are declared before the functions."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._shardings: dict[Any, str] = {}

    def name(self, axes: tuple[tuple[str, int], ...], numbers: tuple[int, ...] = ()) -> str:
        """Return the name of the mesh with these axes; `numbers` are its devices, () for 0, 1, 2, and so on.

        A mesh without axes is the one device in `numbers`, or with () each device by itself.
        """
        name = self._names.get((axes, numbers))
        if name is None:
            count = len([1 for axes, _ in self._names if axes])
            name = f"@mesh_{count - 1}" if count else "@mesh"
            if not axes:
                name = f"@maximal_mesh_{numbers[0]}" if numbers else "@empty_mesh"
            self._names[axes, numbers] = name
        return name

    def of(self, mesh: BaseMesh) -> str:
        """Return the name of a mesh."""
        return self.name(tuple([(str(name), size) for name, size in mesh.shape_tuple]))

    def declarations(self) -> list[str]:
        """Return the lines that declare the meshes."""
        return [f"  sdy.mesh {name} = {_axes_text(*mesh)}" for mesh, name in self._names.items()]

    def inline_sharding(self, sharding: NamedSharding, ndim: int, free: frozenset[Any] = frozenset()) -> str:
        """Return the result of `sharding` with the mesh instead of its name, for text in other modules."""
        return self.inline(self.sharding(sharding, ndim, free))

    def inline(self, text: str) -> str:
        """Return `text` with each mesh instead of its name."""
        for mesh, name in self._names.items():
            text = text.replace(f"<{name},", f"<mesh{_axes_text(*mesh)},")
        return text

    def sharding(self, sharding: Sharding, ndim: int, free: frozenset[Any] = frozenset()) -> str:
        """Return the text of a sharding of an array of `ndim` axes: ``<@mesh, [{"x"}, {}]>``.

        free: the dimensions that the compiler may split further.
        """
        key = sharding, ndim, free
        known = self._shardings.get(key)
        if known is None:
            known = self._shardings[key] = self._write(sharding, ndim, free)
        return known

    def _write(self, sharding: Sharding, ndim: int, free: frozenset[Any]) -> str:
        if isinstance(sharding, NamedSharding):
            mesh, spec = sharding.mesh, sharding.spec
            entries = [
                _entry(get_entry_axes(p), p is UNCONSTRAINED or i in free)
                for i, p in enumerate(full_entries(spec, ndim))
            ]
            unreduced = ", ".join([attributes.axis_name(a) for a in mesh.axis_names if a in spec.unreduced])
            rest = f", unreduced={{{unreduced}}}" if unreduced else ""
            return f"<{self.of(mesh)}, [{', '.join(entries)}]{rest}>"
        parts, numbers = sharding.tiles(ndim)
        axes = tuple([(f"dimension_{i}", n) for i, n in enumerate(parts) if n > 1])
        copies = len(numbers) // math.prod(parts)
        axes += (("copies", copies),) if copies > 1 else ()
        in_order = numbers == tuple(range(len(numbers)))
        name = self.name(axes, () if in_order else numbers)
        entries = [_entry((f"dimension_{i}",) if n > 1 else (), False) for i, n in enumerate(parts)]
        return f"<{name}, [{', '.join(entries)}]>"

    def attribute_on_device(self, ranks: Sequence[int], number: int | None) -> str:
        """Return the attribute of an operation that runs on the device `number`; None: on each device by itself.

        ranks: the ranks of its results.
        """
        name = self.name((), () if number is None else (number,))
        entries = [[] if number is not None else ["{}"] * rank for rank in ranks]
        places = [f"<{name}, [{', '.join(row)}]>" for row in entries or [[]]]
        return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(places)}]>"

    def attribute(self, sharding: Sharding | None, ndim: int) -> str:
        """Return the attribute of an argument or a result with a sharding; "" for None."""
        return f"sdy.sharding = #sdy.sharding{self.sharding(sharding, ndim)}" if sharding is not None else ""


def _axes_text(axes: tuple[tuple[str, int], ...], numbers: tuple[int, ...]) -> str:
    sizes = ", ".join([f"{attributes.axis_name(axis)}={size}" for axis, size in axes])
    return f"<[{sizes}]{f', device_ids={list(numbers)}' if numbers else ''}>"


def _entry(axes: tuple[Any, ...], free: bool) -> str:
    names = [attributes.axis_name(axis) for axis in axes]
    return f"{{{', '.join([*names, '?'] if free else names)}}}"

