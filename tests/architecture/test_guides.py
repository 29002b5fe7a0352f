"""The guides for those who change xtrace name paths and names of code that are there."""

import os
import re

import pytest

from tests.architecture.source_tree import ROOT

GUIDES = ("CONTRIBUTING.md", "docs/internals.md")
FOLDERS = ("xtrace", "tests", "tools", "benchmarks", "docs", "notebooks", ".ci")
IS_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(py|md)")


def list_paths():
    """Return the paths of the repository, each with a slash before it."""
    found = [f"/{name}" for name in os.listdir(ROOT)]
    for top in FOLDERS:
        for folder, folders, files in os.walk(ROOT / top):
            folders[:] = [name for name in folders if name not in ("node_modules", "__pycache__")]
            found += [f"/{os.path.relpath(os.path.join(folder, name), ROOT)}" for name in [*folders, *files]]
    return found


def read_quotations(text):
    """Yield the texts in backticks, outside of blocks of code."""
    for quoted in re.findall(r"``?([^`]+)``?", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        yield " ".join(quoted.split())


def find_missing(text, paths, words):
    """Return the paths and the names in the quotations of `text` that are not in the repository.

    A path may begin anywhere: guides leave out the folder that they are writing about.
    """
    missing = []
    for quoted in read_quotations(text):
        if IS_PATH.fullmatch(quoted):
            ending = f"/{quoted.strip('/')}"
            missing += [] if any(path.endswith(ending) for path in paths) else [quoted]
        else:
            missing += [name for name in re.findall(r"[A-Za-z_]\w+", quoted) if name not in words]
    return missing


@pytest.fixture(scope="module")
def repository():
    paths = list_paths()
    # Not this file, whose words are made up.
    sources = [path for path in paths if path.endswith((".py", ".pyi", ".toml")) and "test_guides" not in path]
    texts = [(ROOT / path[1:]).read_text(encoding="utf-8") for path in sources]
    return paths, {word for text in texts for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("guide", GUIDES)
def test_the_paths_and_names_in_a_guide_are_there(guide, repository):
    assert find_missing((ROOT / guide).read_text(encoding="utf-8"), *repository) == []


def test_each_layer_has_the_modules_to_read_first():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| layer | job |")[2].partition("\n\n")[0]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:4]] for row in table.splitlines()[2:]]
    rows = [(layers, modules) for layers, _, modules in rows if modules]
    assert len(rows) > 15
    for layers, modules in rows:
        for name in modules:
            assert any((ROOT / "xtrace" / "_src" / layer / name).is_file() for layer in layers), f"{name} in {layers}"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`core/trace.py` and\n`trace.py`, `a.b(c)`, ``a``", []),
        ("`ore/trace.py`, `jet/a.py`", ["ore/trace.py", "jet/a.py"]),
        ("`a.gone(b)`", ["gone"]),
        ("```sh\n`gone`\n```", []),
    ],
)
def test_a_missing_path_or_name_is_noticed(text, missing):
    assert find_missing(text, ["/xtrace/_src/core/trace.py"], {"a", "b", "c"}) == missing
