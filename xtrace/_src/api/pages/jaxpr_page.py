"""Jaxprs as HTML pages; beside each equation is the user's line that made it."""

from __future__ import annotations

import html
import re
from typing import Any

from xtrace._src.core.jaxprs.ir import ClosedJaxpr

# The comment that the printer writes after an equation.
_REMARK = re.compile(r"^(?P<code>.*?)\s*# (?P<place>(?P<file>.+):(?P<line>\d+) \(.*\)(?: \[.*\])?)$")
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.35 monospace; margin: 1em; counter-reset: line; }}
tr:hover, tr:target {{ background: #eef4ff; }}
td {{ padding: 0 1em 0 0; vertical-align: top; white-space: pre; }}
td.number, td.place {{ color: #777; }}
td.number {{ text-align: right; user-select: none; }}
tr.hidden {{ display: none; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p><input type="search" placeholder="show lines with" oninput="showLinesWith(this.value)"></p>
<table>
{rows}
</table>
<script>
function showLinesWith(text) {{
  for (const row of document.querySelectorAll("tr")) {{
    row.classList.toggle("hidden", !row.textContent.includes(text));
  }}
}}
</script>
</body>
</html>"""


def make_page(closed: ClosedJaxpr, title: str, address: str | None, places: bool) -> str:
    """Return the page of `closed`; with `places`, each equation's source line is beside it.

    address: the URL of a source line, a template with ``{file}`` and ``{line}``; places are links to it.
    """
    text: Any = closed.pretty_print(source_info=places, name_stack=places)
    rows = [_row(number, line, address) for number, line in enumerate(text.splitlines(), 1)]
    return _PAGE.format(title=html.escape(title), rows="\n".join(rows))


def _row(number: int, line: str, address: str | None) -> str:
    remark = _REMARK.match(line)
    code, place = (remark["code"], html.escape(remark["place"].removesuffix(" []"))) if remark else (line, "")
    if remark and address:
        target = address.replace("{file}", remark["file"]).replace("{line}", remark["line"])
        place = f'<a href="{html.escape(target)}">{place}</a>'
    return (
        f'<tr id="L{number}"><td class="number">{number}</td><td class="code">{html.escape(code)}</td>'
        f'<td class="place">{place}</td></tr>'
    )
