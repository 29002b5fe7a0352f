"""Reading symbolic dimensions, shapes and constraints from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.symbolic_dimensions import choose, divide, variable

_TOKEN = re.compile(r"\s*(?:(?P<dots>\.\.\.)|(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<sign>>=|<=|==|.))", re.DOTALL)
_OPERATIONS = {
    "floordiv": lambda x, y: divide(x, y)[0], "mod": lambda x, y: divide(x, y)[1],
    "max": lambda x, y: choose("max", x, y), "min": lambda x, y: choose("min", x, y),
}
_LONGEST = 10000


class _Reader:
    """The tokens of a text one after the other."""

    def __init__(self, what: str, text: str, scope: Any) -> None:
        self.what, self.text, self.scope, self.position = what, text, scope, 0
        if len(text) > _LONGEST:
            raise ValueError(f"syntax error in {what}: it has {len(text)} characters; {_LONGEST} are allowed")

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
        while self.peek() in ("+", "-") and self.peek():
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
    """Return the size that a text stands for."""
    reader = _Reader("symbolic dimension", text, scope)
    size = reader.expression()
    if reader.peek():
        reader.fail("expected the end")
    return size


def parse_constraint(text: str, scope: Any) -> tuple[Any, str, Any]:
    """Return the two sides of a constraint, and ``==``, ``>=`` or ``<=`` between them."""
    reader = _Reader("symbolic constraint", text, scope)
    left = reader.expression()
    sign = reader.peek()
    if sign not in ("==", ">=", "<="):
        reader.fail("Constraint parsing error: must contain one of '==' or '>=' or '<='")
    reader.take()
    right = reader.expression()
    if reader.peek():
        reader.fail("expected the end")
    return left, sign, right


def parse_shape(text: str, like: Sequence[int | None] | None, scope: Any) -> tuple[Any, ...]:
    """Return the sizes that the text of a shape stands for; `like` has those of ``_`` and ``...``."""
    reader = _Reader("symbolic shape", text, scope)
    parenthesis = reader.accept("(")
    end = ")" if parenthesis else ""
    sizes: list[Any] = []
    while reader.peek() != end:
        start = reader.position
        if reader.accept("..."):
            if like is None:
                reader.position = start
                reader.fail("'...' stands for the sizes of an array, and no `like` was given")
            if len(like) < len(sizes):
                reader.fail(f"more dimensions than like={tuple(like)} has")
            sizes += [_given(reader, like, i) for i in range(len(sizes), len(like))]
            reader.accept(",")
            if reader.peek() != end:
                reader.fail("'...' must be the last dimension; expected the end")
            break
        if reader.accept("_"):
            if like is None:
                reader.position = start
                reader.fail("'_' stands for the size of an array, and no `like` was given")
            sizes.append(_given(reader, like, len(sizes)))
        else:
            size = reader.expression()
            known = like[len(sizes)] if like is not None and len(sizes) < len(like) else None
            if isinstance(size, int) and isinstance(known, int) and size != known:
                reader.position = start
                reader.fail(f"different size {size} for the known dimension {len(sizes)} of like={tuple(like or ())}")
            sizes.append(size)
        if not reader.accept(","):
            break
    if parenthesis:
        reader.expect(")")
    if reader.peek():
        reader.fail("expected ',' or one of the operators + - * ^")
    if like is not None and len(sizes) != len(like):
        raise ValueError(
            f"symbolic shape {abbreviate(text)} has {len(sizes)} dimensions, and like={tuple(like)} has {len(like)}"
        )
    return tuple(sizes)


def _given(reader: _Reader, like: Sequence[int | None], axis: int) -> Any:
    if axis >= len(like):
        reader.fail(f"more dimensions than like={tuple(like)} has")
    size = like[axis]
    if size is None:
        reader.fail(f"dimension {axis} of like={tuple(like)} is unknown; name it in the place of '_'")
    return size
