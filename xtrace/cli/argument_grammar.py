"""The ``--arg`` and ``--static`` grammar: array types such as ``f32[3,4]`` inside Python literals."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xtrace
from xtrace._src.core.avals import ShapeDtypeStruct
from xtrace._src.core.diagnostics.name_suggestions import nearest_name
from xtrace.cli.errors import WRONG_COMMAND, CommandError

_SHORT_NAMES: dict[str, Any] = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": ml_dtypes.bfloat16, "c64": np.complex64, "c128": np.complex128, "i2": ml_dtypes.int2, "i4": ml_dtypes.int4,
    "u2": ml_dtypes.uint2, "u4": ml_dtypes.uint4, "f8_e3m4": ml_dtypes.float8_e3m4, "f8_e4m3": ml_dtypes.float8_e4m3,
    "f8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8_e5m2": ml_dtypes.float8_e5m2,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "f4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
_DTYPES = {name: np.dtype(scalar) for name, scalar in _SHORT_NAMES.items()}
_DTYPES |= {str(dtype): dtype for dtype in _DTYPES.values()}
_CONSTANTS = {"True": True, "False": False, "None": None}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WIDE = {"i64", "u64", "f64", "c128"} | {"int64", "uint64", "float64", "complex128"}

_MAX_DIGITS = 18  # a dimension must fit in 64 bits

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIMENSION = re.compile(r"[0-9]+(?![A-Za-z0-9_.])")
_NUMBER = re.compile(r"[+-]?(?:inf\b|nan\b|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?j?)")
_STRING = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")

ACCEPTED = """An argument is an array's type, a Python literal, or a list, tuple or dict of these:
    f32[128,128]    i32[]    bf16[8,0]    f8_e4m3fn[16]    3    2.5    True
    {"w": f32[3,4], "b": f32[4]}    [f32[2], i32[]]    (f32[2], None)"""


def parse_argument(text: str, option: str = "--arg") -> Any:
    """Return the pytree of a text, with array types as `ShapeDtypeStruct`.

    The message of a `CommandError` has the text, a caret below the wrong character, and the accepted syntax.
    """
    parser = _Parser(text, option)
    try:
        value = parser.parse_value()
    except RecursionError:
        raise parser.make_error("fewer containers inside each other") from None
    parser.check_end()
    return value


def parse_static(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``; the value has the syntax of ``--arg``."""
    name, equals, literal = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise CommandError(f"--static {text}: expected NAME=VALUE, such as --static n=3", WRONG_COMMAND)
    return name.strip(), parse_argument(literal, f"--static {name.strip()}")


class _Parser:
    """A recursive-descent parser of an argument's text; `position` is the position of the next character."""

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option, self.position = text, option, 0
        self.trailing_comma = False  # whether the last sequence ended in one

    def make_error(self, expected: str, position: int | None = None) -> CommandError:
        """Return an error with a caret below a character; tabs and newlines become blanks to align the caret."""
        at = self.position if position is None else position
        shown = re.sub(r"\s", " ", self.text)
        word = _WORD.match(self.text, at)
        problem = "the text ends here" if at >= len(self.text) else f"found {word[0] if word else self.text[at]!r}"
        return CommandError(
            f"{self.option} cannot be read:\n\n    {shown}\n    {' ' * at}^ {problem}; expected {expected}\n\n"
            f"{ACCEPTED}",
            WRONG_COMMAND,
        )

    def skip_space(self) -> None:
        """Move to the next nonblank character."""
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def peek(self) -> str:
        """Return the next nonblank character; the empty string at the end."""
        self.skip_space()
        return self.text[self.position : self.position + 1]

    def take(self, pattern: re.Pattern[str]) -> str | None:
        """Consume and return the match of `pattern` at the position; None without a match."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match.group()

    def check_end(self) -> None:
        """Raise an error unless the text ends here."""
        if self.peek():
            raise self.make_error("the end of the argument")

    def parse_value(self) -> Any:
        """Parse an array type, a literal or a container."""
        character = self.peek()
        if character in _CLOSING:
            self.position += 1
            return self.parse_mapping() if character == "{" else self.parse_sequence(character)
        start = self.position
        if (text := self.take(_STRING)) is not None:
            return self.parse_literal(text, start)
        if (text := self.take(_NUMBER)) is not None:
            return float(text) if text.lstrip("+-") in ("inf", "nan") else self.parse_literal(text, start)
        if (word := self.take(_WORD)) is not None:
            return _CONSTANTS[word] if word in _CONSTANTS else self.parse_array_type(word, start)
        raise self.make_error("an array type, a literal, or one of [ ( {")

    def parse_literal(self, text: str, start: int) -> Any:
        """Return the value of a Python number or string."""
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise self.make_error("a Python literal", start) from None

    def parse_array_type(self, word: str, start: int) -> ShapeDtypeStruct:
        """Parse ``[dimensions]`` after the dtype `word`."""
        dtype = _DTYPES.get(word)
        if dtype is None:
            near = nearest_name(word, _DTYPES)
            hint = f" (did you mean {near}?)" if near else ""
            raise self.make_error(f"a dtype{hint}, one of {' '.join(_SHORT_NAMES)}", start)
        if word in _WIDE and not xtrace.config.jax_enable_x64:
            raise CommandError(
                f"{self.option} {self.text}: {word} needs 64-bit types, which are off; "
                "set the environment variable XTRACE_ENABLE_X64=1",
                WRONG_COMMAND,
            )
        if self.peek() != "[":
            raise self.make_error(f"'[' and the shape, such as {word}[3,4], or {word}[] for a scalar")
        self.position += 1
        shape: list[int] = []
        for _ in self.iterate_items("]", "another dimension"):
            start = self.position
            dimension = self.take(_DIMENSION)
            if dimension is None:
                raise self.make_error("a dimension (a whole number) or ']'")
            if len(dimension) > _MAX_DIGITS:
                raise self.make_error("a dimension below 10**18", start)
            shape.append(int(dimension))
        return xtrace.ShapeDtypeStruct(tuple(shape), dtype)

    def iterate_items(self, closing: str, more: str) -> Iterator[None]:
        """Yield at the start of each item of a comma-separated sequence, then consume `closing`."""
        first, trailing_comma = True, False
        while self.peek() != closing:
            if not first:
                if self.peek() != ",":
                    raise self.make_error(f"',' and {more}, or '{closing}'")
                self.position += 1
                trailing_comma = self.peek() == closing
                if trailing_comma:
                    break
            first = False
            yield
        self.position += 1
        self.trailing_comma = trailing_comma

    def parse_sequence(self, opening: str) -> Any:
        """Parse a list or tuple after its opening; as in Python, ``(x)`` is x and ``(x,)`` a tuple."""
        items = [self.parse_value() for _ in self.iterate_items(_CLOSING[opening], "another item")]
        if opening == "[":
            return items
        return items[0] if len(items) == 1 and not self.trailing_comma else tuple(items)

    def parse_mapping(self) -> dict[Any, Any]:
        """Parse a dict after its opening; keys are strings or whole numbers."""
        items: dict[Any, Any] = {}
        for _ in self.iterate_items("}", "another key"):
            start = self.position
            text = self.take(_STRING) or self.take(_DIMENSION)
            if text is None:
                raise self.make_error("a key in quotes, such as \"w\", or '}'")
            key = self.parse_literal(text, start)
            if key in items:
                raise self.make_error(f"a new key; {key!r} is already there", start)
            if self.peek() != ":":
                raise self.make_error(f"':' and the value of {key!r}")
            self.position += 1
            items[key] = self.parse_value()
        return items
