"""Printing jaxprs as text. A jaxpr or a parameter list is on one line if it fits in 80 columns."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import physical_aval
from xtrace._src.core.diagnostics.positions import describe, format_scopes, get_scopes
from xtrace._src.core.jaxprs.ir import (
    NEVER_PRINTED,
    PRINTED_WIDTH,
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    find_jaxprs,
)
from xtrace._src.core.jaxprs.text_layout import Break, Document, Group, Nest, Remark, lay_out
from xtrace._src.core.sizes import is_symbolic

# An inner jaxpr with more equations is shown before the outer one, under a name.
_LONG = 10


class Style(NamedTuple):
    """The parts that `format_jaxpr` shows besides the equations."""

    source_info: bool = False
    name_stack: bool = False
    print_shapes: bool = True
    print_effects: bool = False
    all_parameters: bool = False
    width: int = PRINTED_WIDTH


_PLAIN = Style()


def format_jaxpr(jaxpr: Jaxpr, style: Style = _PLAIN) -> str:
    """Return the text of `jaxpr`; inner jaxprs that are long or used twice come first, as ``let NAME = … in``."""
    printer = _Printer(jaxpr, style)
    parts: list[Document] = []
    for inner, name in printer.definitions:
        parts += [f"let {name} = ", Group(printer.jaxpr(inner)), " in\n"]
    return lay_out([*parts, Group(printer.jaxpr(jaxpr))], style.width)


def format_equation(equation: JaxprEqn) -> str:
    """Return the text of one equation, its variables named from ``a`` on."""
    return lay_out(_Printer(Jaxpr([], [], [], [equation]), _PLAIN).equation(equation), PRINTED_WIDTH)


def format_equations(equations: Sequence[JaxprEqn], names: Mapping[Var, str]) -> list[str]:
    """Return each equation's text without inner jaxprs; variables that `names` lacks get names from ``a`` on."""
    printer = _Printer(Jaxpr([], [], [], []), _PLAIN)
    printer.names.update(names)
    printer.fresh = _names(frozenset(names.values()))
    printer.named = {inner: "..." for e in equations for inner in find_jaxprs(e.parameters)}
    return [lay_out(printer.equation(e), PRINTED_WIDTH) for e in equations]


def format_lines(jaxpr: Jaxpr, width: int = PRINTED_WIDTH) -> tuple[list[str], dict[int, JaxprEqn], dict[Var, str]]:
    """Return the lines of `jaxpr`, the equation that begins on a line by line number, and the names of variables."""
    printer = _LinePrinter(jaxpr, Style(source_info=True))
    parts: list[Document] = []
    for inner, name in printer.definitions:
        parts += [f"let {name} = ", Group(printer.jaxpr(inner)), " in\n"]
    lines, begun = [], {}
    for number, line in enumerate(lay_out([*parts, Group(printer.jaxpr(jaxpr))], width).split("\n")):
        text, mark, place = line.rpartition(_MARK)
        if mark:
            begun[number] = printer.begun[int(place)]
        lines.append(text.rstrip() if mark else line)
    return lines, begun, printer.names


def _names(taken: frozenset[str]) -> Iterator[str]:
    """Yield the names that are not `taken`: ``a`` to ``z``, then ``ba``, ``bb`` …, which are numbers to the base 26."""
    for number in itertools.count():
        name = ""
        while True:
            number, letter = divmod(number, 26)
            name = chr(ord("a") + letter) + name
            if not number:
                break
        if name not in taken:
            yield name


def _find_named_jaxprs(jaxpr: Jaxpr) -> list[tuple[Jaxpr, str]]:
    """Return the inner jaxprs that are long or used more than once, each with its name, outermost first."""
    uses: dict[Jaxpr, int] = {}
    called: dict[Jaxpr, str] = {}
    left = deque([jaxpr])
    while left:
        for equation in left.popleft().eqns:
            for inner in find_jaxprs(equation.parameters):
                uses[inner] = uses.get(inner, 0) + 1
                called.setdefault(inner, str(_parameters(equation).get("name", "jaxpr")))
                # A second use repeats the jaxprs inside, too; further uses add nothing.
                if uses[inner] <= 2:
                    left.append(inner)
    definitions: dict[str, Jaxpr] = {}
    for inner, called_name in called.items():
        if uses[inner] > 1 or len(inner.eqns) > _LONG:
            base = "".join(c for c in called_name if c.isalnum() or c == "_")
            names = itertools.chain([base], (f"{base}{n}" for n in itertools.count(1)))
            definitions[next(n for n in names if n not in definitions)] = inner
    return [(inner, name) for name, inner in definitions.items()]


class _Printer:
    def __init__(self, jaxpr: Jaxpr, style: Style) -> None:
        self.style = style
        self.remarks = style.source_info or style.name_stack
        self.definitions = _find_named_jaxprs(jaxpr)
        self.named = dict(self.definitions)
        self.fresh = _names(frozenset(self.named.values()))
        self.names: dict[Var, str] = {}

    def name(self, variable: Var) -> str:
        printed = self.names.get(variable)
        if printed is None:
            printed = self.names[variable] = "_" if isinstance(variable, DropVar) else next(self.fresh)
        return printed

    def binder(self, variable: Var) -> str:
        name = self.name(variable)
        return f"{name}:{variable.aval.str_short(True)}" if self.style.print_shapes else name

    def atom(self, atom: Atom) -> str:
        return _literal(atom) if isinstance(atom, Literal) else self.name(atom)

    def jaxpr(self, jaxpr: Jaxpr) -> Document:
        constants, inputs = list(map(self.binder, jaxpr.constvars)), list(map(self.binder, jaxpr.invars))
        head = Nest(4, "{ lambda ", _fill(constants), "; ", _fill(inputs), ". let")
        equations = _separate([self.equation(e) for e in jaxpr.eqns], "; ")
        outputs = [self.atom(v) for v in jaxpr.outvars]
        results = Nest(4, _fill(outputs, ","), "," if len(outputs) == 1 else "")
        effects = f" : {{ {', '.join(map(str, jaxpr.effects))} }}" if self.style.print_effects else ""
        # Remarks end the lines of equations, so the results need a new line.
        last = Break(None) if self.remarks and equations else Break()
        return [head, Nest(4, Break(), equations), Nest(2, last), "in (", results, f"){effects} }}"]

    def equation(self, equation: JaxprEqn) -> Document:
        if equation.primitive.printed is not None:
            text = equation.primitive.printed(self, equation)
            if text is not None:
                return [self.remark(equation), text]
        parameters = _parameters(equation)
        inner = parameters.get("jaxpr") if equation.primitive.name == "jit" else None
        if isinstance(inner, ClosedJaxpr) and inner.jaxpr not in self.named:
            self.share_names(inner.jaxpr.invars, equation.invars)
            self.share_names(inner.jaxpr.outvars, equation.outvars)
        outputs = Nest(2, _fill(list(map(self.binder, equation.outvars))))
        defaults = {} if self.style.all_parameters else equation.primitive.unprinted
        shown = [(k, v) for k, v in parameters.items() if not (k in defaults and _is_hidden(v, defaults[k]))]
        shown.sort(key=lambda item: (item[0] != "name", item[0]))
        parts: list[Document] = [self.remark(equation), outputs, " = " if equation.outvars else ""]
        parts.append(equation.primitive.name)
        if shown:
            values: list[Document] = [[f"{key}=", self.value(value)] for key, value in shown]
            parts.append(Group("[", Nest(2, Break(""), _separate(values)), Break(""), "]"))
        if equation.invars or shown:
            parts.append(Nest(2, Group(Break()), _fill([self.atom(x) for x in equation.invars])))
        return parts

    def remark(self, equation: JaxprEqn) -> Document:
        """Return the remark behind an equation's first line."""
        if not self.remarks or equation.source is None:
            return ""
        parts = [describe(equation.source)] if self.style.source_info else []
        parts += [f"[{format_scopes(get_scopes(equation.source))}]"] if self.style.name_stack else []
        return Remark(f"# {' '.join(parts)}")

    def share_names(self, inner: Sequence[Atom], outer: Sequence[Atom]) -> None:
        """Give variables of a called jaxpr the names of the caller's variables; literals have no names."""
        used: set[Var] = set()
        for one, other in zip(inner, outer, strict=False):
            if isinstance(one, Var) and isinstance(other, Var) and one not in self.names and other not in used:
                used.add(other)
                self.names[one] = self.name(other)

    def value(self, value: Any) -> Document:
        if isinstance(value, ClosedJaxpr):
            value = value.jaxpr
        if isinstance(value, Jaxpr):
            return self.named.get(value) or Group(self.jaxpr(value))
        if isinstance(value, (tuple, list)) and find_jaxprs(value):
            return Group("(", Nest(2, Break(""), _separate([self.value(v) for v in value])), Break(""), ")")
        if isinstance(value, np.dtype):
            return str(value.name)
        if isinstance(value, frozenset):
            return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
        return value.__name__ if isinstance(value, FunctionType) else str(value)


# Begins the number of an equation in a remark; it does not occur in the text of a program.
_MARK = "\0"


class _LinePrinter(_Printer):
    """A printer whose remarks are the numbers of equations, so that lines can be assigned to equations."""

    def __init__(self, jaxpr: Jaxpr, style: Style) -> None:
        super().__init__(jaxpr, style)
        self.begun: list[JaxprEqn] = []

    def remark(self, equation: JaxprEqn) -> Document:
        self.begun.append(equation)
        return Remark(f"{_MARK}{len(self.begun) - 1}")


def _parameters(equation: JaxprEqn) -> dict[str, Any]:
    # Not strict: the checker prints equations with too few or too many parameters.
    return equation.primitive.given_parameters(
        dict(zip(equation.primitive.parameters, equation.parameters, strict=False))
    )


def _is_hidden(value: object, default: object) -> bool:
    return default is NEVER_PRINTED or value is default or (type(value) is type(default) and bool(value == default))


def _separate(parts: Sequence[Document], text: str = " ") -> list[Document]:
    """Return the parts with a break between any two; on one line the break is `text`."""
    separated: list[Document] = []
    for part in parts:
        separated += [Break(text), part]
    return separated[1:]


def _fill(words: Sequence[str], comma: str = "") -> list[Document]:
    """Return words as running text: a line ends where the next word does not fit."""
    filled: list[Document] = []
    for word in words:
        filled += [comma, Group(Break()), word]
    return filled[2:]


def _literal(literal: Literal) -> str:
    """Return the value as Python writes it; a strongly typed float is rounded to its dtype first.

    A symbolic dimension is ``dim(n)``, because variables have such names, too.
    """
    value = literal.value
    if is_symbolic(value):
        return f"dim({value})"
    if isinstance(value, (float, complex)) and not literal.aval.weak_type:
        value = dtypes.cast(value, physical_aval(literal.aval).dtype)[()]
    return str(value.item() if isinstance(value, np.generic) else value)


# A keyword in its place, or the type of a variable.
_COLOURED = re.compile(r"(?<=\{ )lambda(?= )|(?<=\. )let\b|(?<=\s)in(?= \()|:~?\w+\[[^\]\s]*\]")
_BLUE, _MAGENTA, _PLAIN_AGAIN = "\x1b[34;1m", "\x1b[35m", "\x1b[39;22m"


def colour(text: str) -> str:
    """Return the text of a jaxpr with coloured keywords and types, by escape codes of terminals."""

    def replace(match: re.Match[str]) -> str:
        return f"{_MAGENTA if match[0].startswith(':') else _BLUE}{match[0]}{_PLAIN_AGAIN}"

    return _COLOURED.sub(replace, text)
