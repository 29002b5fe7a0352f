"""Type checkers see the signatures of public functions through their decorators, and the members of arrays."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import xtrace
from xtrace._src.api.operators.late_methods import LateAttribute
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace.numpy.arrays import methods as array_methods

pytestmark = pytest.mark.thorough

_ROOT = Path(__file__).parents[2]
_CASES = Path(__file__).parent / "cases.py"
_STUB = _ROOT / "xtrace/_src/core/arrays.pyi"


_SETTINGS = {
    "include": [str(_CASES)], "extraPaths": [str(_ROOT)], "typeCheckingMode": "basic",
    "enableTypeIgnoreComments": True, "reportUnnecessaryTypeIgnoreComment": "error", "reportUnusedExpression": False,
}


# basedpyright is pyright with a Node.js of its own.
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_type_checkers_see_the_types(checker, tmp_path):
    if checker == "mypy":
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", str(_CASES)]
    else:
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps(_SETTINGS))
        command = [sys.executable, "-m", checker, "--pythonpath", sys.executable, "--project", str(settings)]
    run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def _array_members():
    [cls] = [n for n in ast.parse(_STUB.read_text()).body if isinstance(n, ast.ClassDef) and n.name == "Array"]
    return {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}


def test_arrays_have_the_declared_members_with_the_declared_parameters():
    for name in [*array_methods.METHODS, *array_methods.PROPERTIES]:
        if isinstance(inspect.getattr_static(xtrace.Array, name), LateAttribute) or name in array_methods.METHODS:
            array_methods.install_method(xtrace.Array, name)
    for name, declared in _array_members().items():
        member = inspect.getattr_static(ConcreteArray, name)
        assert isinstance(member, property) == bool(declared.decorator_list), name
        if isinstance(member, property) or name in ("__init__", "__init_subclass__"):
            continue
        parameters = list(inspect.signature(member).parameters)[1:]
        given = declared.args
        wanted = [a.arg for a in (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg) if a]
        assert parameters == wanted[1:], name


def test_public_members_of_arrays_are_declared():
    declared = _array_members().keys() | {"aval"}
    public = {name for name in dir(xtrace.Array) if not name.startswith("_")}
    assert public <= declared
    of_jax = {name for name in dir(jax.Array) if not name.startswith("_")}
    assert of_jax - {"clone"} <= declared
