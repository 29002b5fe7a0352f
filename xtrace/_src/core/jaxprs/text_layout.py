"""Laying out nested text within a width: a group that fits is on one line, otherwise its own breaks are newlines.

After Lindig, "Strictly Pretty" (2000): one pass, with at most a line of look-ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union


class Break:
    """A place where a line may end; elsewhere it is written as `text`. With None, the line always ends."""

    __slots__ = ("text",)

    def __init__(self, text: str | None = " ") -> None:
        self.text = text


class Nest:
    """`body`; lines that start inside it are indented by `indent` more."""

    __slots__ = ("indent", "body")

    def __init__(self, indent: int, *body: Document) -> None:
        self.indent, self.body = indent, list(body)


class Group:
    """`body` on one line if it fits there."""

    __slots__ = ("body",)

    def __init__(self, *body: Document) -> None:
        self.body = list(body)


class Remark:
    """`text` at the end of the line of this place; remarks are aligned in one column and take no width."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


Document = Union[str, "list[Document]", Break, Nest, Group, Remark]


def lay_out(document: Document, width: int) -> str:
    """Return the text of `document`, with groups wider than `width` broken. Text without breaks may be wider."""
    out: list[str] = []
    remarks: list[tuple[int, str]] = []
    column = 0
    # The rest of the work, last first: the indentation, whether breaks are newlines, the document.
    agenda: list[tuple[int, bool, Document]] = [(0, True, document)]
    while agenda:
        indent, broken, item = agenda.pop()
        if isinstance(item, str):
            out.append(item)
            newline = item.rfind("\n")
            column = column + len(item) if newline < 0 else len(item) - newline - 1
        elif isinstance(item, Break):
            if broken or item.text is None:
                out.append("\n" + " " * indent)
                column = indent
            else:
                out.append(item.text)
                column += len(item.text)
        elif isinstance(item, Group):
            agenda.append((indent, not _fits(item.body, width - column) if broken else False, item.body))
        elif isinstance(item, Nest):
            agenda.append((indent + item.indent, broken, item.body))
        elif isinstance(item, Remark):
            remarks.append((len(out), item.text))
        else:
            agenda.extend([(indent, broken, part) for part in reversed(item)])
    return _with_remarks(out, remarks) if remarks else "".join(out)


def _with_remarks(out: list[str], remarks: list[tuple[int, str]]) -> str:
    """Return the text of the pieces `out`, with each remark at the end of the line at its position in `out`."""
    lines = "".join(out).split("\n")
    remarks_by_line: dict[int, list[str]] = {}
    line = done = 0
    for position, text in remarks:
        line += sum(piece.count("\n") for piece in out[done:position])
        done = position
        remarks_by_line.setdefault(line, []).append(text)
    column = max(len(lines[n]) for n in remarks_by_line)
    for n, texts in remarks_by_line.items():
        lines[n] = f"{lines[n]:{column}}  {'  '.join(texts)}"
    return "\n".join(lines)


def _fits(document: Document, space: int) -> bool:
    """Return whether `document` takes at most `space` columns on one line."""
    left: list[Iterator[Document]] = [iter([document])]
    while left:
        for item in left[-1]:
            if isinstance(item, Break):
                if item.text is None:
                    return False
                item = item.text
            if isinstance(item, Remark):
                continue
            if not isinstance(item, str):
                left.append(iter(item if isinstance(item, list) else item.body))
                break
            space -= len(item)
            if space < 0 or "\n" in item:
                return False
        else:
            left.pop()
    return True
