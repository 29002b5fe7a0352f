"""Runs the notebooks as a reader would, and compares what their cells show with what is checked in."""

from __future__ import annotations

import pathlib
import re

import nbformat
import numpy as np
from nbclient import NotebookClient

from tests.support.reader_environment import reader_environment

REPOSITORY = pathlib.Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))

# The tag of cells whose numbers and programs depend on the machine: only that they show something is compared.
VARIES = "varies"

_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")
# What is not the same in two runs, or on two machines. Locations in modules have the temporary file of a cell.
_ACCIDENTAL = ((r"\x1b\[[\d;]*m", ""), (r"\S*/ipykernel_\d+/\d+\.py", "cell.py"), (r"0x[0-9a-f]{6,}", "0x…"))


def execute(path: pathlib.Path) -> nbformat.NotebookNode:
    """Return the notebook of `path` after a run from top to bottom; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}},
        record_timing=False, coalesce_streams=True,
    )
    client.execute(env=reader_environment(MPLBACKEND="module://matplotlib_inline.backend_inline"))
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if "text" in output:
                output.text = _clean(output.text)
    return notebook


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _clean(text: str) -> str:
    for pattern, replacement in _ACCIDENTAL:
        text = re.sub(pattern, replacement, text)
    return text


def printed(cell: nbformat.NotebookNode) -> str:
    """Return the text that a cell shows, a figure being the name of its format."""
    return "".join(_text(output) for output in cell.outputs)


def _text(output: nbformat.NotebookNode) -> str:
    data = output.get("data", {})
    return output.text if "text" in output else "[image/png]\n" if "image/png" in data else data.get("text/plain", "")


def agree(found: nbformat.NotebookNode, stored: nbformat.NotebookNode) -> bool:
    """Whether a cell shows what is checked in, up to the last digits of floating-point numbers."""
    texts = [printed(found), printed(stored)]
    if VARIES in stored.metadata.get("tags", ()):
        return bool(texts[0]) == bool(texts[1])
    words = [_NUMBER.sub("#", text).split() for text in texts]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in texts]
    return words[0] == words[1] and bool(np.allclose(*numbers, rtol=1e-4, atol=1e-6))
