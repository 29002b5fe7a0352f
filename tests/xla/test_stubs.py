"""The stubs of jaxlib in `typings` declare what the installed jaxlib has."""

import ast
import importlib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2] / "typings"
_STUBS = sorted(_ROOT.rglob("*.pyi"))


def _check(declarations, owner):
    """Let each class, function and enum's member among `declarations` be an attribute of `owner`."""
    for node in declarations:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            assert hasattr(owner, node.name), f"{owner} lacks {node.name}"
            if isinstance(node, ast.ClassDef):
                _check(node.body, getattr(owner, node.name))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(owner, type):
            [target] = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            assert hasattr(owner, target.id), f"{owner} lacks {target.id}"


@pytest.mark.parametrize("stub", _STUBS, ids=[str(path.relative_to(_ROOT)) for path in _STUBS])
def test_jaxlib_has_what_the_stubs_declare(stub):
    parts = stub.relative_to(_ROOT).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        # A part of an extension module.
        above, _, last = name.rpartition(".")
        module = getattr(importlib.import_module(above), last)
    _check(ast.parse(stub.read_text()).body, module)
