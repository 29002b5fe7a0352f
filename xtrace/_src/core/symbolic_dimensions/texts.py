"""Parsing symbolic dimensions, shapes and constraints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.symbolic_dimensions.dimensions import choose, divide, variable

_TOKEN = re.compile(r"\s*(?:(?P<dots>\.\.\.)|(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<sign>>=|<=|==|.))", re.DOTALL)
_OPERATIONS = {
    "floordiv": lambda x, y: divide(x, y)[0], "mod": lambda x, y: divide(x, y)[1],
    "max": lambda x, y: choose("max", x, y), "min": lambda x, y: choose("min", x, y),
}
_MAX_LENGTH = 10000


class _Parser:
    """A recursive-descent parser of one text; errors say the position."""

    def __init__(self, what: str, text: str, scope: Any) -> None:
        self.what, self.text, self.scope, self.position = what, text, scope, 0
        if len(text) > _MAX_LENGTH:
            raise ValueError(f"syntax error in {what}: it has {len(text)} characters; {_MAX_LENGTH} are allowed")

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        return match[0].strip() if match is not None else ""

    def take(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            return ""
        self.position = match.end()
        return match[0].strip()

    def accept(self, token: str) -> bool:
        is_next = self.peek() == token
        if is_next:
            self.take()
        return is_next

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"expected '{token}'")

    def fail(self, why: str) -> NoReturn:
        token = self.peek()
        rest = self.text[self.position :]
        column = self.position + len(rest) - len(rest.lstrip())
        raise ValueError(
            f"syntax error in {self.what} {abbreviate(self.text)}, at position {column}: {why}, found "
            f"{abbreviate(token) if token else 'the end'}. Read {abbreviate(self.text[:column])}, remaining "
            f"{abbreviate(self.text[column:])}"
        )

    def expression(self) -> Any:
        negative = self.accept("-")
        total = self._product()
        total = -total if negative else total
        while self.peek() in ("+", "-"):
            total = total + self._product() if self.take() == "+" else total - self._product()
        return total

    def _product(self) -> Any:
        result = self._power()
        while self.accept("*"):
            result = result * self._power()
        return result

    def _power(self) -> Any:
        base = self._atom()
        if self.accept("^"):
            if not self.peek().isdecimal():
                self.fail("expected a number, the power")
            power = self.take()
            if len(power) > 2:
                self.fail("expected a power below 100")
            base = base ** int(power)
        return base

    def _atom(self) -> Any:
        token = self.peek()
        if token.isdecimal():
            self.take()
            if self.peek() == "." or len(token) > 18:
                self.fail("expected an integer of at most 18 digits")
            return int(token)
        if not token.isidentifier() or token == "_":
            self.fail("expected a name, a number or '-'")
        self.take()
        if self.peek() != "(":
            return variable(token, self.scope)
        if token == "non_negative":
            self.expect("(")
            size = self.expression()
            self.expect(")")
            return choose("max", size, 0)
        if token not in _OPERATIONS:
            self.fail(f"'{token}' is no operation, which are floordiv, mod, max, min and non_negative; expected '*'")
        self.expect("(")
        first = self.expression()
        self.expect(",")
        second = self.expression()
        self.expect(")")
        try:
            return _OPERATIONS[token](first, second)
        except ZeroDivisionError:
            return self.fail("a divisor is zero")


def parse_dimension(text: str, scope: Any) -> Any:
    """Return the size that a text denotes; ValueError for a syntax error."""
    parser = _Parser("symbolic dimension", text, scope)
    size = parser.expression()
    if parser.peek():
        parser.fail("expected the end")
    return size


def parse_constraint(text: str, scope: Any) -> tuple[Any, str, Any]:
    """Return the left side, the sign (``==``, ``>=`` or ``<=``) and the right side of a constraint."""
    parser = _Parser("symbolic constraint", text, scope)
    left = parser.expression()
    sign = parser.peek()
    if sign not in ("==", ">=", "<="):
        parser.fail("Constraint parsing error: must contain one of '==' or '>=' or '<='")
    parser.take()
    right = parser.expression()
    if parser.peek():
        parser.fail("expected the end")
    return left, sign, right


def parse_shape(text: str, like: Sequence[int | None] | None, scope: Any) -> tuple[Any, ...]:
    """Return the sizes that the text of a shape denotes; `like` has the sizes for ``_`` and ``...``."""
    parser = _Parser("symbolic shape", text, scope)
    parenthesis = parser.accept("(")
    end = ")" if parenthesis else ""
    sizes: list[Any] = []
    while parser.peek() != end:
        start = parser.position
        if parser.accept("..."):
            if like is None:
                parser.position = start
                parser.fail("'...' stands for the sizes of an array, and no `like` was given")
            if len(like) < len(sizes):
                parser.fail(f"more dimensions than like={tuple(like)} has")
            sizes += [_given(parser, like, i) for i in range(len(sizes), len(like))]
            parser.accept(",")
            if parser.peek() != end:
                parser.fail("'...' must be the last dimension; expected the end")
            break
        if parser.accept("_"):
            if like is None:
                parser.position = start
                parser.fail("'_' stands for the size of an array, and no `like` was given")
            sizes.append(_given(parser, like, len(sizes)))
        else:
            size = parser.expression()
            known = like[len(sizes)] if like is not None and len(sizes) < len(like) else None
            if isinstance(size, int) and isinstance(known, int) and size != known:
                parser.position = start
                parser.fail(f"different size {size} for the known dimension {len(sizes)} of like={tuple(like or ())}")
            sizes.append(size)
        if not parser.accept(","):
            break
    if parenthesis:
        parser.expect(")")
    if parser.peek():
        parser.fail("expected ',' or one of the operators + - * ^")
    if like is not None and len(sizes) != len(like):
        raise ValueError(
            f"symbolic shape {abbreviate(text)} has {len(sizes)} dimensions, and like={tuple(like)} has {len(like)}"
        )
    return tuple(sizes)


def _given(parser: _Parser, like: Sequence[int | None], axis: int) -> Any:
    if axis >= len(like):
        parser.fail(f"more dimensions than like={tuple(like)} has")
    size = like[axis]
    if size is None:
        parser.fail(f"dimension {axis} of like={tuple(like)} is unknown; name it in the place of '_'")
    return size
