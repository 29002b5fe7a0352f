"""Jaxprs in notebooks: pointing at a name shows its type, pointing at an equation shows its place."""

from __future__ import annotations

import html
import re

from xtrace._src.core.diagnostics.source import describe
from xtrace._src.core.jaxprs.ir import Jaxpr
from xtrace._src.core.jaxprs.printer import format_lines

_MAX_LINES = 2000
# A variable with its type, an operation after the equals sign, a keyword, or another name.
_WORD = re.compile(
    r"(?P<bound>\b[a-z]+):(?P<type>~?[a-z_]+\d*(?:_\w+)?\[[^\]\s]*\](?:\{[^}\s]*\})?)|(?<== )(?P<operation>[a-z_]\w*)"
    r"|(?P<keyword>\b(?:lambda|let|in)\b(?=[ ;(]))|(?P<name>\b[a-z]+\b(?![=\[\w]))"
)
_STYLES = {"operation": "font-weight:600;color:#3565d8", "keyword": "color:#a03fb4", "type": "color:#0d8299"}


def write_jaxpr_html(jaxpr: Jaxpr) -> str:
    """Return the HTML of a jaxpr, cut after `_MAX_LINES` lines."""
    lines, begun, names = format_lines(jaxpr)
    types = {name: v.aval.str_short(True) for v, name in names.items()}
    shown = []
    for number, line in enumerate(lines[:_MAX_LINES]):
        place = html.escape(describe(begun[number].source), quote=True) if number in begun else ""
        shown.append(f'<span title="{place}">{_mark(line, types)}</span>' if place else _mark(line, types))
    rest = f"\n… {len(lines) - _MAX_LINES} more lines" if len(lines) > _MAX_LINES else ""
    return f'<pre style="line-height:1.35;overflow-x:auto;background:transparent">{chr(10).join(shown)}{rest}</pre>'


def _mark(line: str, types: dict[str, str]) -> str:
    parts, done = [], 0
    for match in _WORD.finditer(line):
        parts.append(html.escape(line[done : match.start()]))
        done = match.end()
        if match["bound"]:
            parts.append(f"{_span(match['bound'], match['type'], '')}:{_span(match['type'], '', 'type')}")
        elif match["operation"] or match["keyword"]:
            parts.append(_span(match[0], "", "operation" if match["operation"] else "keyword"))
        else:
            parts.append(_span(match[0], types[match[0]], "") if match[0] in types else html.escape(match[0]))
    return "".join([*parts, html.escape(line[done:])])


def _span(text: str, title: str, style: str) -> str:
    attributes = f' title="{html.escape(title, quote=True)}"' if title else ""
    attributes += f' style="{_STYLES[style]}"' if style else ""
    return f"<span{attributes}>{html.escape(text)}</span>"
