"""Excerpts of the user's source: the lines of a position, with a marker under the expression.

Columns come from Python's own tables (PEP 657). Sources come from `linecache`, which knows the cells of notebooks too.
"""

from __future__ import annotations

import ast
import linecache
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._src.core.diagnostics.source import Position, resolve
from xtrace._src.core.tables import memoize
from xtrace._src.xla.source_locations import Location, name_file

# The number of lines shown of an expression.
_SHOWN_LINES = 4
_LONGEST_LINE = 160


class Span(NamedTuple):
    """A range of a file's text: lines from 1, columns from 0, in characters; the end is not part of it."""

    line: int
    column: int
    end_line: int
    end_column: int


class Expression(NamedTuple):
    """The expression at a position: its node, the nodes around it from the inside out, and the file's lines."""

    node: Any
    around: Sequence[Any]
    lines: Sequence[str]

    def text(self, node: Any = None) -> str:
        """Return the source of a node, by default of this one, on one line."""
        node = self.node if node is None else node
        if node.lineno == node.end_lineno:
            line = self.lines[int(node.lineno) - 1]
            return line.encode()[node.col_offset : node.end_col_offset].decode()
        return ast.unparse(node)


def excerpt(position: Position | None, indent: str = "  ") -> str:
    """Return ``FILE:LINE (function)`` and below it the source lines, the expression at `position` marked.

    Without source it is the place only; for None it is a phrase. Every line starts with `indent`, the last one does not
    end with a newline.
    """
    if position is None:
        return f"{indent}an unknown place"
    location = resolve(position)
    lines = source_lines(location.file)
    expression = expression_at(position)
    span = _find_span(expression.node, lines) if expression is not None else _span(location, lines)
    line = span.line if span is not None else location.line
    head = f"{indent}{name_file(location.file)}:{line} ({location.function})"
    return "\n".join([head, *(f"{indent}  {text}" for text in _mark_lines(lines, line, span))])


def expression_text(position: Position | None) -> str | None:
    """Return the source of the expression at a position, on one line; None if unknown."""
    expression = expression_at(position) if position is not None else None
    return expression.text() if expression is not None else None


def marked_span(position: Position) -> Span | None:
    """Return the range that `excerpt` marks, or None."""
    expression = expression_at(position)
    lines = source_lines(resolve(position).file)
    return _find_span(expression.node, lines) if expression is not None else _span(resolve(position), lines)


def source_lines(file: str) -> list[str]:
    """Return the lines of a file or a notebook's cell without line ends; an empty list if Python cannot find them."""
    linecache.checkcache(file)
    return [line.rstrip("\r\n") for line in linecache.getlines(file)]


@memoize(2)
def _parse(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def expression_at(position: Position) -> Expression | None:
    """Return the expression at a position; None without source, or if the source does not match Python's table."""
    location = resolve(position)
    if not location.end_column:
        return None
    lines = source_lines(location.file)
    if not lines:
        return None
    tree = _parse("\n".join(lines))
    wanted = location.line, location.column, location.end_line, location.end_column
    path = _path_to(tree, wanted) if tree is not None else []
    if not path:
        return None
    node, around = path[0], path[1:]
    # Before Python 3.12 the parts of f-strings have no positions.
    while around and isinstance(around[0], (ast.JoinedStr, ast.FormattedValue)) and _is_of_string(node):
        node, around = around[0], around[1:]
    while (inner := _evaluated_part(node, around, position)) is not None:
        node, around = inner, [node, *around]
    return Expression(node, around, lines)


def _get_range(node: Any) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _path_to(tree: Any, wanted: tuple[int, int, int, int]) -> list[Any]:
    """Return the innermost node with the range `wanted` and then the nodes around it; empty if there is none."""
    start, end = wanted[:2], wanted[2:]
    longest: list[Any] = []
    path: list[Any] = []
    node = tree
    while node is not None:
        path.insert(0, node)
        if hasattr(node, "lineno") and _get_range(node) == wanted:
            longest = list(path)
        node = next((child for child in _children(node) if _holds(child, start, end)), None)
    return longest


def _children(node: ast.AST) -> list[Any]:
    """Return the children of a node; children without positions are replaced by their children."""
    children: list[Any] = []
    for child in ast.iter_child_nodes(node):
        children += [child] if hasattr(child, "lineno") or isinstance(child, ast.comprehension) else _children(child)
    return children


def _holds(node: Any, start: tuple[int, int], end: tuple[int, int]) -> bool:
    if isinstance(node, ast.comprehension):
        return any(_holds(part, start, end) for part in ast.iter_child_nodes(node))
    first = min((part.lineno, part.col_offset) for part in (node, *getattr(node, "decorator_list", ())))
    return first <= start and end <= (node.end_lineno, node.end_col_offset)


def _evaluated_part(node: ast.AST, around: Sequence[Any], position: Position) -> Any:
    """Return the part of a node that Python was evaluating, None for the whole node.

    Jumps have the range of a whole statement, or of a whole ``a and b``, in some versions of Python.
    """
    if isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
        return node.test
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    if isinstance(node, (ast.Expr, ast.Return)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.BoolOp):
        return _last_evaluated(node.values, position)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return _last_evaluated([part for g in node.generators for part in (g.iter, *g.ifs)], position)
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store):
        return getattr(around[0], "value", None) or getattr(around[0], "iter", None)
    return None


def _is_of_string(node: ast.AST) -> bool:
    return isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.Constant))


def _last_evaluated(parts: Sequence[Any], position: Position) -> Any:
    """Return the part among `parts` that the instructions before `position` evaluate."""
    code, offset, _ = position
    ranges = [_get_range(part) for part in parts]
    for line, end_line, column, end_column in reversed(list(code.co_positions())[: offset // 2]):
        if line is None or end_line is None or column is None or end_column is None:
            continue
        for part, (first, start, last, end) in zip(parts, ranges, strict=True):
            if (first, start) <= (line, column) and (end_line, end_column) <= (last, end):
                return part
    return None


def _find_span(node: ast.AST, lines: Sequence[str]) -> Span | None:
    return _convert_to_characters(*_get_range(node), lines)


def _span(location: Location, lines: Sequence[str]) -> Span | None:
    if not location.end_column:
        return None
    return _convert_to_characters(location.line, location.column, location.end_line, location.end_column, lines)


def _convert_to_characters(line: int, column: int, end_line: int, end_column: int, lines: Sequence[str]) -> Span | None:
    """Return a range in bytes as a range in characters; None if it is outside the file, which was changed."""
    if not 0 < line <= end_line <= len(lines):
        return None
    first, last = lines[line - 1].encode(), lines[end_line - 1].encode()
    if column > len(first) or end_column > len(last):
        return None
    start, end = len(first[:column].decode(errors="replace")), len(last[:end_column].decode(errors="replace"))
    return Span(line, start, end_line, end)


def _mark_lines(lines: Sequence[str], line: int, span: Span | None) -> list[str]:
    """Return the lines of a range without their common indentation, each followed by its marker."""
    if not 0 < line <= len(lines) or not lines[line - 1].strip():
        return []
    end_line = span.end_line if span is not None else line
    numbers = [n for n in range(line, end_line + 1) if lines[n - 1].strip()]
    shown = numbers if len(numbers) <= _SHOWN_LINES else [*numbers[: _SHOWN_LINES - 1], numbers[-1]]
    margin = min(len(lines[n - 1]) - len(lines[n - 1].lstrip()) for n in shown)
    text = []
    for number in shown:
        if number == shown[-1] and len(shown) < len(numbers):
            text.append("...")
        line_text = lines[number - 1].rstrip()
        start = span.column if span is not None and number == span.line else len(line_text) - len(line_text.lstrip())
        end = span.end_column if span is not None and number == span.end_line else len(line_text)
        cut = max(margin, start - _LONGEST_LINE // 2) if len(line_text) - margin > _LONGEST_LINE else margin
        visible, dots = line_text[cut : cut + _LONGEST_LINE], "... " if cut > margin else ""
        text.append(dots + visible)
        if span is not None and end > start:
            text.append(" " * len(dots) + _marker(visible, start - cut, min(end - cut, len(visible))))
    return text


def _marker(text: str, start: int, end: int) -> str:
    """Return carets that align with ``text[start:end]``: tabs stay tabs, wide characters get two carets."""
    before = "".join("\t" if c == "\t" else " " * _width(c) for c in text[:start])
    return before + "^" * sum(1 if c == "\t" else _width(c) for c in text[start:end])


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
