"""The notebooks run from top to bottom, and their cells show what is checked in."""

import pathlib
import re

import nbformat
import pytest

from tests.notebooks.execution import NOTEBOOKS, REPOSITORY, agree, code_cells, execute, printed

pytestmark = pytest.mark.thorough

NAMES = [path.stem for path in NOTEBOOKS]


def test_they_are_numbered():
    assert [name[:3] for name in NAMES] == [f"{number:02}_" for number in range(1, 14)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_cells_show_what_is_checked_in(path):
    stored, executed = nbformat.read(path, as_version=4), execute(path)
    for found, expected in zip(code_cells(executed), code_cells(stored), strict=True):
        assert agree(found, expected), (
            f"cell {expected.id} shows\n{printed(found)}\ninstead of\n{printed(expected)}\n"
            f"If it should, run python -m tests.notebooks {path.stem[:2]}"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_they_are_valid_and_draw(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    shown = [printed(cell) for cell in code_cells(notebook)]
    assert path.name.startswith(("06", "07")) or sum("[image/png]" in text for text in shown) >= 1
    assert not any(cell.execution_count for cell in code_cells(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_links_lead_to_files(path):
    for cell in nbformat.read(path, as_version=4).cells:
        links = re.findall(r"\]\(([^)#:]+)\)", cell.source) if cell.cell_type == "markdown" else []
        assert [link for link in links if not (REPOSITORY / "notebooks" / pathlib.Path(link)).exists()] == []


@pytest.mark.parametrize(
    ("found", "stored", "same"),
    [("[0.1 2.5]", "[0.1000001  2.5]", True), ("[0.1]", "[0.2]", False), ("a 1", "b 1", False), ("3", "4", False)],
)
def test_numbers_may_differ_in_last_digits(found, stored, same):
    cells = [nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("stream", text=t)]) for t in (found, stored)]
    assert agree(*cells) == same
