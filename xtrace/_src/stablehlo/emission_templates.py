"""Emission templates: the lines of an emission rule with gaps for names, filled in for each equation.

The lines depend on the operands' types, the parameters, the platform and the settings. An `EmissionRecorder` replaces
the builder while the rule runs once; a rule that reads more of the module has no template.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.stablehlo.builder import Constant, FunctionBuilder, Value

# A gap: the list of its name (operands, constants or new numbers) and the index in that list.
_GAP = re.compile("\0([ocn])([0-9]+)\0")


class _Unrecordable(Exception):
    """The rule depends on more than the key of its template."""


class _Module:
    """Stands for the module of a rule that is recorded; the rule may read its platform only."""

    def __init__(self, platform: str) -> None:
        self.platform = platform

    def __getattr__(self, name: str) -> Any:
        raise _Unrecordable(name)


class EmissionRecorder(FunctionBuilder):
    """A builder whose names are gaps."""

    __slots__ = ("constants", "numbers")

    def __init__(self, platform: str, results: Sequence[ShapedArray]) -> None:
        super().__init__(_Module(platform), "", "")  # type: ignore[arg-type]
        self.results = results
        self.place = (None, "")
        self.constants: dict[tuple[str, str, tuple[int, ...]], Value] = {}
        self.numbers = itertools.count()
        self.number = map("\0n{}\0".format, self.numbers).__next__  # type: ignore[assignment]

    def constant_line(self, text: str, aval: ShapedArray) -> Value:
        """Return a gap for the constant; the builder writes it when the template is filled in."""
        key = text, aval.mlir_type, aval.shape
        if key not in self.constants:
            self.constants[key] = Value(f"\0c{len(self.constants)}\0", aval)
        return self.constants[key]

    def find_constant_text(self, value: Value) -> str | None:
        """Return the text of a literal; whether another value is a constant depends on the builder."""
        if type(value) is Constant:
            return value.text
        raise _Unrecordable("constants")


class EmissionTemplate:
    """Lines with gaps, which `write` fills with names of operands, constants and new values."""

    __slots__ = ("lines", "placed", "named", "constants", "count", "results", "many", "single", "text", "pick")

    def __init__(self, recorder: EmissionRecorder, operands: Sequence[Value], emitted: Any) -> None:
        self.count, self.constants = next(recorder.numbers), [(t, v.aval) for (t, *_), v in recorder.constants.items()]
        self.placed = [p is not None for p in recorder.places]
        self.many = not isinstance(emitted, Value)
        written = [self._split(line) for line in recorder.lines]
        values = list(emitted) if self.many else [emitted]
        if any(type(v) is Constant or not v.name.startswith("%\0n") for v in values):
            raise _Unrecordable("a result that is an operand")
        results = [self._split(v.name) for v in values]
        self.named = [("o", i) in {gap for _, gaps in written for gap in gaps} for i in range(len(operands))]
        # `write` lists the names in this order: new numbers, operands, constants.
        order = [("n", i) for i in range(self.count)] + [("o", i) for i in range(len(operands))]
        order += [("c", i) for i in range(len(self.constants))]
        place = {gap: i for i, gap in enumerate(order)}

        def place_gaps(text: str, gaps: list[tuple[str, int]]) -> tuple[str, list[int]]:
            return text, [place[g] for g in gaps]

        self.lines = [place_gaps(*line) for line in written]
        self.results = [place_gaps(*name) for name in results]
        self.single = not self.many and self.count == len(self.lines) == 1 and self.placed == [True]
        if self.single:
            self.text, gaps = self.lines[0]
            self.pick = operator.itemgetter(*gaps)

    @staticmethod
    def _split(line: str) -> tuple[str, list[tuple[str, int]]]:
        gaps = [(kind, int(i)) for kind, i in _GAP.findall(line)]
        return _GAP.sub("%s", line.replace("%", "%%")), gaps

    def write(self, builder: FunctionBuilder, names: list[str]) -> Any:
        """Write the lines for operands called `names` and return the name of the result, or a list of several."""
        if self.constants:
            names = names + [builder.constant_line(text, aval).name for text, aval in self.constants]
        if self.single:
            number = builder.number()
            builder.lines.append(self.text % self.pick((number, *names)))
            builder.places.append(builder.place)
            return f"%{number}"
        fill: list[Any] = [*[builder.number() for _ in range(self.count)], *names]
        for text, gaps in self.lines:
            builder.lines.append(text % tuple([fill[i] for i in gaps]))
        place = builder.place
        builder.places += [place if placed else None for placed in self.placed]
        results = [text % tuple([fill[i] for i in gaps]) for text, gaps in self.results]
        return results if self.many else results[0]

    def write_values(self, builder: FunctionBuilder, operands: Sequence[Value], results: Sequence[ShapedArray]) -> Any:
        """Write the lines for values, some of them constants, and return values of the types `results`.

        Only operands with a gap are named: reading a constant's name writes it.
        """
        written = self.write(builder, [x.name if named else "" for x, named in zip(operands, self.named, strict=True)])
        return list(map(Value, written, results)) if self.many else Value(written, results[0])


def record_emission_template(
    emit: Callable[..., Any], platform: str, operands: Sequence[Value], results: Sequence[ShapedArray],
    parameters: dict[str, Any],
) -> EmissionTemplate | None:
    """Return the template of `emit` for operands of these types; None if the lines depend on more than these."""
    recorder = EmissionRecorder(platform, results)
    named = [
        Constant(recorder, x.text, x.aval) if type(x) is Constant else Value(f"\0o{i}\0", x.aval)
        for i, x in enumerate(operands)
    ]
    try:
        return EmissionTemplate(recorder, operands, emit(recorder, *named, **parameters))
    except _Unrecordable:
        return None
