"""The notebook about meshes runs from top to bottom, draws its arrays, and prints the numbers that it promises."""

import pathlib
import re

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = pathlib.Path(__file__).parents[2]
PATH = REPOSITORY / "notebooks" / "02_many_devices.ipynb"

pytestmark = pytest.mark.slow

CONTAINED = {
    "copies": ["CPU 0,1", "[(2, 8), (2, 8), (2, 8)] False\n"], "product": ["P('data', 'model') True\n"],
    "report": ["sdy.mesh @mesh", "8 devices of kind cpu, mesh data=4, model=2", "all-reduce  256 B  1      data"],
    "random": ["P('model', 'data')\n", "True\n"],
    "types": ["float32[8@data,8@model] float32[8@model] float32[8@model,8@data]\n", "dot_general requires"],
    "out_sharding": ["float32[8@data,8@model]\n"], "ring": ["[224. 232. 240. 248. 256. 264. 272. 280.]"],
    "gradients": ["(8, 3) P()\n", "may vary along the mesh axes 'data'"],
}
PICTURES = ["put", "copies", "product"]


@pytest.fixture(scope="module")
def cells():
    """The executed code cells by id."""
    notebook = nbformat.read(PATH, as_version=4)
    resources = {"metadata": {"path": str(REPOSITORY)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def printed(cell):
    """What a cell shows, without the colours."""
    texts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
    return re.sub(r"\x1b\[[\d;]*m", "", "".join(texts))


def test_notebook_is_stored_without_outputs():
    notebook = nbformat.read(PATH, as_version=4)
    assert not any(cell.outputs or cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("cell", CONTAINED)
def test_cell_prints_the_parts_that_matter(cells, cell):
    for part in CONTAINED[cell]:
        assert part in printed(cells[cell])


@pytest.mark.parametrize("cell", PICTURES)
def test_cell_draws_an_array(cells, cell):
    assert "┌" in printed(cells[cell]) and "CPU" in printed(cells[cell])


def test_training_lowers_the_error(cells):
    first, last = map(float, re.search(r"([\d.]+) -> ([\d.]+)", printed(cells["training"])).groups())
    assert last < first / 3
