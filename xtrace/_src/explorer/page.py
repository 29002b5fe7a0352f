"""The page of the explorer: data, style and script in one file of HTML that loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
from typing import Any

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page shows programs with JavaScript, which is turned off.</noscript>
<div id="app"></div>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def make_page(data: dict[str, Any]) -> str:
    """Return the page for the data of `combine`."""
    style, script = _read_asset("page.css"), _read_asset("page.js")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    title = html.escape(f"{', '.join([p['name'] for p in data['programs']])} · xtrace explorer")
    return _PAGE.format(policy=policy, title=title, style=style, script=script, data=_escape_json(data))


def make_frame(page: str) -> str:
    """Return a frame with the page, for a cell of a notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="xtrace explorer" width="100%" '
        'height="640" style="border: 1px solid #8884; border-radius: 6px"></iframe>'
    )


def _read_asset(name: str) -> str:
    folder = importlib.resources.files("xtrace._src.explorer").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _escape_json(data: dict[str, Any]) -> str:
    """Return JSON that is safe inside of a script element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode("utf-8", "replace").decode()
