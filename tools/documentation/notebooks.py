"""Turns notebooks, as they are checked in, into pages of the documentation."""

from __future__ import annotations

import base64
import json
import pathlib
import re


def convert(path: pathlib.Path) -> tuple[str, dict[str, bytes]]:
    """Return the page of a notebook in Markdown, and its pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", source).replace("](wrong_", "](../wrong_"))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", "")))
            if "image/png" in data:
                name = f"{path.stem}-{cell['id']}-{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![The figure of the cell above]({name})")
            elif text.strip():
                plain = re.sub(r"\x1b\[[\d;]*m", "", text).rstrip()
                parts.append(f"````text\n{plain}\n````")
    return "\n\n".join(parts) + "\n", pictures
