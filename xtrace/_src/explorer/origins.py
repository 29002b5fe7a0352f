"""Origins: the equations and arguments behind the lines of all stages.

An equation has the position of the user's code. The lines that its emission rule writes share one place, a position
and a path. Each place of a lowered module has a number. The number passes through the compiler as the line of an
invented caller of the user's code, with the file `ORIGINS`, because XLA keeps the callers of its instructions.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

from xtrace._src.core.diagnostics.source import Position, format_scopes, get_scopes, resolve
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, find_jaxprs
from xtrace._src.stablehlo.builder import Locations, location_text
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.xla.source_locations import Location

ORIGINS = "<xtrace origins>"


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The common origin of lines in several stages.

    kind: ``equation``, ``argument``, or ``operation`` for an operation of StableHLO without an equation. name: the name
    of the primitive or operation, or the path of the argument. scope: the named scopes around it. span: the expression
    in the user's code, None if unknown. type: the type of an argument.
    """

    kind: str
    name: str
    scope: str
    span: Location | None
    type: str = ""


def find_span(position: Position | None) -> Location | None:
    """Return the expression at a position."""
    return resolve(position) if position is not None else None


class Equations:
    """The numbered equations of a jaxpr and of the jaxprs inside of it, each jaxpr once."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.all: list[JaxprEqn] = []
        self._walk(jaxpr, {jaxpr})
        self.numbers = {id(equation): i for i, equation in enumerate(self.all)}
        self._by_name: dict[Any, list[int]] = {}
        self._by_source: dict[Any, list[int]] = {}
        self._by_position: dict[Any, list[int]] = {}
        for i, equation in enumerate(self.all):
            if equation.source is not None:
                source, name = equation.source, equation.primitive.name
                self._by_name.setdefault((id(source), name), []).append(i)
                self._by_source.setdefault(id(source), []).append(i)
                self._by_position.setdefault((*source[:2], name), []).append(i)

    def _walk(self, jaxpr: Jaxpr, seen: set[Jaxpr]) -> None:
        for equation in jaxpr.eqns:
            self.all.append(equation)
            for inner in find_jaxprs(equation.parameters):
                if inner not in seen:
                    seen.add(inner)
                    self._walk(inner, seen)

    def find(self, places: Sequence[tuple[Position | None, str]]) -> list[list[int]]:
        """Return the numbers of each place's equations; n places with the same n equations get one equation each."""
        by_place: list[list[int]] = []
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for number, (position, path) in enumerate(places):
            equations = self._find_one(position, path)
            by_place.append(equations)
            if len(equations) > 1:
                groups.setdefault(id(equations), (equations, []))[1].append(number)
        for equations, numbers in groups.values():
            if len(equations) == len(numbers):
                for number, equation in zip(numbers, equations, strict=True):
                    by_place[number] = [equation]
        return by_place

    def _find_one(self, position: Position | None, path: str) -> list[int]:
        if position is None:
            return []
        name = path.rpartition("/")[2]
        return (
            self._by_name.get((id(position), name)) or self._by_source.get(id(position))
            or self._by_position.get((*position[:2], name)) or []
        )


class NumberedLocations(Locations):
    """Locations with one alias for each place; the number of the place is the line of a caller."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[tuple[Position | None, str]] = []
        self._by_place: dict[int, int] = {}

    def alias(self, place: tuple[Position | None, str]) -> str:
        """Return the reference to `place`; equal places of different equations have different references."""
        number = self._by_place.get(id(place))
        if number is None:
            # The list keeps the place alive, so its id stays unique.
            self.places.append(place)
            number = self._by_place[id(place)] = len(self.places)
        return f"loc(#loc{number})"

    def definitions(self) -> list[str]:
        """Return the lines that define the references."""
        return [
            f"#loc{i} = " + location_text(place, f'"origin"("{ORIGINS}":{i}:1)')
            for i, place in enumerate(self.places, 1)
        ]


class NumberedModule(LoweredModule):
    """A lowered module whose locations contain the numbers of places."""

    __slots__ = ("places", "_text")

    def __init__(self, module: LoweredModule) -> None:
        super().__init__(module.builder, module.hidden, module.unusable_donations, module.effects)
        locations = NumberedLocations()
        self._text = self.builder.text_with(locations)
        self.places = locations.places

    def text(self, debug_info: bool = False) -> str:
        """Return the text, with locations if `debug_info`."""
        return self._text if debug_info else super().text()


def make_equation_origins(equations: Iterable[JaxprEqn]) -> list[Origin]:
    """Return the origin of each equation."""
    # Many equations share a position, and its columns are slow to look up.
    spans: dict[Any, Location | None] = {}
    origins = []
    for equation in equations:
        source = equation.source
        place = source and source[:2]
        if place not in spans:
            spans[place] = find_span(source)
        origins.append(Origin("equation", equation.primitive.name, format_scopes(get_scopes(source)), spans[place]))
    return origins


def make_argument_origins(closed: ClosedJaxpr, paths: Sequence[str], span: Location | None) -> list[Origin]:
    """Return the origin of each input; `span` is the definition of the function."""
    names = [*paths, *[f"input {i}" for i in range(len(paths), len(closed.jaxpr.invars))]]
    return [
        Origin("argument", name, "", span, v.aval.str_short(True))
        for name, v in zip(names, closed.jaxpr.invars, strict=False)
    ]


_LOCATION = re.compile(r" loc\(#loc(\d+)\)$")


def read_stablehlo(text: str) -> tuple[list[str], list[int]]:
    """Return a module's lines without locations, and the number of each line's place, 0 without one.

    The first line of an operation with regions has the place of its last line.
    """
    lines: list[str] = []
    places: list[int] = []
    begun: list[int] = []
    for line in text.splitlines():
        if line.startswith("#loc"):
            break
        match = _LOCATION.search(line)
        place = int(match[1]) if match is not None else 0
        line = line[: match.start()] if match is not None else line
        stripped = line.lstrip()
        if stripped.startswith("})") and begun:
            places[begun.pop()] = place
        if line.endswith("({"):
            begun.append(len(lines))
        lines.append(line)
        places.append(place)
    return lines, places
