"""Names in a block of `late_modules` load at their first use, and then stand in the namespace themselves."""

import sys
import types

import pytest

from xtrace._late_imports import late_modules


def test_a_late_module_loads_at_its_first_use(tmp_path, monkeypatch):
    (tmp_path / "late_package").mkdir()
    for name in ("__init__", "one", "two"):
        (tmp_path / "late_package" / f"{name}.py").write_text(f"value = {name!r}")
    (tmp_path / "user_of_late.py").write_text(
        "import types\nfrom xtrace._late_imports import late_modules\n"
        "with late_modules(globals()):\n    import late_package\n    from late_package import one, two as second\n"
        "def use():\n    return one.value, second.value\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import user_of_late

    def loaded():
        return {name for name in sys.modules if name.startswith("late_package")}

    assert not loaded() and isinstance(user_of_late.one, types.ModuleType)
    assert user_of_late.second.value == "two" and loaded() == {"late_package", "late_package.two"}
    assert user_of_late.use() == ("one", "two")
    assert user_of_late.one is sys.modules["late_package.one"] and user_of_late.late_package.value == "__init__"


@pytest.mark.parametrize("use", ["add(1, 2) == 3", "add.__code__.co_argcount == 2", "isinstance(0, Number)"])
def test_a_late_function_or_class_loads_at_its_first_use(use, tmp_path, monkeypatch):
    (tmp_path / "late_functions.py").write_text("Number = int\ndef add(x, y):\n    return x + y\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "late_functions", raising=False)
    namespace = {"late_modules": late_modules}
    exec("with late_modules(globals()):\n    from late_functions import Number, add\n", namespace)
    assert "late_functions" not in sys.modules
    assert eval(use, namespace)
    loaded = sys.modules["late_functions"]
    assert namespace["add"] is loaded.add or namespace["Number"] is loaded.Number


def test_imports_of_other_modules_are_those_of_python():
    namespace = {"__name__": "elsewhere"}
    with late_modules(namespace):
        import colorsys
    assert colorsys.rgb_to_hsv(0, 0, 0) == (0, 0, 0) and namespace == {"__name__": "elsewhere"}
