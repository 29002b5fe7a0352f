"""What is released: every file of the package is in the wheel, and what describes it is true."""

import fnmatch
import importlib.util
import tomllib

import pytest

import xtrace
from tests.architecture.source_tree import ROOT

SPECIFICATION = importlib.util.spec_from_file_location("wheel_contents", ROOT / ".ci" / "wheel_contents.py")
wheel_contents = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(wheel_contents)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_setuptools_is_told_of_every_file():
    told = []
    for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items():
        folder = "xtrace*" if package == "*" else package.replace(".", "/")
        told += ["*.py", *(f"{folder}/{pattern}" for pattern in patterns)]
    files = wheel_contents.package_files(ROOT)
    untold = [name for name in files if not any(fnmatch.fnmatch(name, pattern) for pattern in told)]
    assert untold == [], "these would not be in the wheel; see package-data in pyproject.toml"


def test_stubs_and_the_mark_of_types_are_files_of_the_package():
    assert {"xtrace/py.typed", "xtrace/_src/core/arrays.pyi"} <= wheel_contents.package_files(ROOT)


@pytest.mark.parametrize(
    ("wheel", "sdist", "fault"),
    [
        ({"xtrace/a.py", "xtrace-1.dist-info/RECORD"}, {"xtrace/a.py", "pyproject.toml", "README.md"}, None),
        (set(), {"xtrace/a.py", "pyproject.toml", "README.md"}, "the wheel lacks xtrace/a.py"),
        ({"xtrace/a.py"}, {"xtrace/a.py", "README.md"}, "the sdist lacks pyproject.toml"),
        ({"xtrace/a.py", "old.py"}, {"xtrace/a.py", "pyproject.toml", "README.md"}, "the wheel has old.py"),
    ],
)
def test_faults_of_a_wheel_are_found(wheel, sdist, fault):
    found = wheel_contents.faults(wheel, sdist, {"xtrace/a.py"})
    assert found == [] if fault is None else found[0].startswith(fault)


def test_the_version_is_stated_once():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert f"\n## {xtrace.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
