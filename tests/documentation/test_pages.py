"""The pages of the documentation: their programs print what is shown, and what is made for them is whole."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tests.architecture.source_tree import LAYERS, ROOT
from tests.documentation.pages import blocks, compare, run_page, saved_pages
from tools.documentation import layers, notebooks, reference, surface

pytestmark = pytest.mark.thorough

PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md"))
NAMES = [str(path.relative_to(ROOT / "docs")) for path in PAGES]


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_programs_print_what_is_shown(path, tmp_path):
    run_page(path.read_text(encoding="utf-8"), tmp_path)


def test_guides_and_concepts_have_programs():
    without = [n for n, p in zip(NAMES, PAGES, strict=True) if "```python" not in p.read_text() and "/" in n]
    assert without == []


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_links_to_pages_of_the_explorer_lead_to_those_that_programs_save(path):
    page = path.read_text(encoding="utf-8")
    assert re.findall(r"\]\(([^/)]+\.html)\)", page) == saved_pages(page)


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```python\nprint(1)  # 2\n```\n", "prints"),
        ("```python\nprint(1)\n```\n", "prints"),
        ("```python\n1 / 0\n```\n\n```text\nZeroDivisionError: division by one\n```\n", "division by zero"),
        ('```python title="a.py"\nprint(1)\n```\n', "no command runs a.py"),
        ("```sh\nls\n```\n\n```text\na.py\n```\n", "nothing runs"),
    ],
)
def test_what_is_not_shown_is_a_fault(page, fault, tmp_path):
    with pytest.raises(AssertionError, match=fault):
        run_page(page, tmp_path)


def test_blocks_are_read_with_their_outputs():
    page = "```python\nprint(1)\n```\n\nprints\n\n```text\n1\n```\n\nOther text between.\n\n```text\n2\n```\n"
    assert [(block.language, block.output) for block in blocks(page)] == [("python", "1\n"), ("text", None)]


def test_numbers_may_differ_in_the_last_digits():
    compare("[0.3333333]", "[0.33333334]", "")
    compare("18 KiB of 3 GiB: fits", "18 KiB of …", "")
    with pytest.raises(AssertionError):
        compare("[0.3333]", "[0.33333334]", "")


MODULES = reference.public_modules()


def test_each_public_object_is_described_once():
    pages = {name: reference.page(module) for name, module in MODULES.items()}
    anchors = [a for page in pages.values() for a in re.findall(r"^## .* \{ #(\S+) \}$", page, re.MULTILINE)]
    assert sorted(anchors) == sorted(reference.homes().values()) and len(anchors) > 1500
    targets = {*anchors, *(a for page in pages.values() for a in re.findall(r'<a id="(\S+?)">', page))}
    for name, page in pages.items():
        links = re.findall(r"\]\((\S+?)\.md(?:#(\S+?))?\)|href=\"(xtrace\S*?)\.html#(\S+?)\"", page)
        for module, anchor, other_module, other_anchor in links:
            assert (module or other_module) in pages, f"{name} links to a page that is not there"
            assert {anchor, other_anchor} - {""} <= targets


def test_signatures_have_types_that_link():
    page = reference.page(MODULES["xtrace.numpy"])
    entry = page[page.index("{ #xtrace.numpy.dot }"):][:2000]
    assert 'a: <a href="xtrace.typing.html#xtrace.typing.ArrayLike">ArrayLike</a>' in entry
    assert '→ <a href="xtrace.html#xtrace.Array">Array</a>' in entry
    assert "```pycon\n>>> jnp.dot(" in entry and "- `TypeError`: " in entry


def test_the_picture_has_every_layer():
    picture = ElementTree.fromstring(layers.draw())
    shown = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {name.rpartition(".")[2] for name in LAYERS} <= set(shown)
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("api imports ops") for title in titles)


def test_names_are_compared_with_jaxs():
    table = surface.table()
    have, total = re.match(r"Of (\d+) names, (\d+) are there", table).groups()[::-1]
    assert 2190 <= int(have) <= int(total) and "| [`xtrace.numpy`](reference/xtrace.numpy.md) |" in table


def test_notebooks_become_pages_with_pictures():
    page, pictures = notebooks.convert(ROOT / "notebooks" / "03_derivatives.ipynb")
    assert len(pictures) >= 3 and all(f"]({name})" in page for name in pictures)
    assert "(wrong_programs" not in notebooks.convert(ROOT / "notebooks" / "06_errors.ipynb")[0]
