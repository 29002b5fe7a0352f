"""Blocks of late imports: nothing loads before its use, and Python's import function is left as it was."""

import builtins
import sys

import pytest

import xtrace
import xtrace.numpy
from xtrace._late_imports import late_imports

BLOCK = """
with late_imports(globals()):
    from wave import Error as Error, open as open_wave
with late_imports(globals(), listed=False):
    from sndhdr_that_is_not_there import what as old_name
"""


@pytest.fixture
def namespace(monkeypatch):
    module = type(sys)("late_example")
    monkeypatch.setitem(sys.modules, "late_example", module)
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    vars(module)["late_imports"] = late_imports
    return vars(module)


def test_names_load_at_their_first_use(namespace):
    exec(BLOCK, namespace)
    module = sys.modules["late_example"]
    assert "wave" not in sys.modules and namespace["__all__"] == dir(module) == ["Error", "open_wave"]
    assert module.open_wave is sys.modules["wave"].open and namespace["open_wave"] is module.open_wave
    with pytest.raises(AttributeError, match="module 'late_example' has no attribute 'other'"):
        module.other  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="sndhdr_that_is_not_there"):
        module.old_name  # noqa: B018


@pytest.mark.parametrize(("module", "name", "place"), [
    (xtrace.numpy, "softmax", "xtrace.nn.softmax and"), (xtrace, "tree_map", "xtrace.tree.map"),
    (xtrace, "scan", "xtrace.lax.scan"), (xtrace.lax, "sum", "xtrace.numpy.sum"),
])
def test_a_missing_name_says_which_module_has_it(module, name, place):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; there is {place}"):
        getattr(module, name)


def test_a_module_that_is_loaded_again_lists_each_name_once(namespace):
    for _ in range(2):
        exec(BLOCK, namespace)
    assert namespace["__all__"] == ["Error", "open_wave"]


def test_each_block_has_its_own_quick_names(namespace, monkeypatch):
    """Quick functions have no boundary; that a later block has none changes nothing."""
    given = {}
    monkeypatch.setattr(
        sys.modules[late_imports.__module__], "_make_public_form",
        lambda module, name, value, has_boundary: given.update({name: has_boundary}),
    )
    exec(
        "with late_imports(globals(), quick=('open_wave',)):\n"
        "    from wave import Error as Error, open as open_wave\n"
        "with late_imports(globals()):\n"
        "    from wave import Wave_read as Wave_read\n",
        namespace,
    )
    for name in ("open_wave", "Error", "Wave_read"):
        getattr(sys.modules["late_example"], name)
    assert given == {"open_wave": False, "Error": True, "Wave_read": True}


def test_the_import_function_is_python_s_again_after_an_error(namespace):
    before = builtins.__import__
    with pytest.raises(ZeroDivisionError):
        exec("with late_imports(globals()):\n    import json\n    1 / 0", namespace)
    assert builtins.__import__ is before
