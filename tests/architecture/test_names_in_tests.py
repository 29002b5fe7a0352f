"""Every public function of the numerical modules is named by a test, in code or in an expression in a string."""

from __future__ import annotations

import ast
import functools
import importlib
import pathlib
import pkgutil
import re

import pytest

import xtrace
import xtrace.scipy.stats

_TESTS = pathlib.Path(__file__).parents[1]
_WORD = re.compile(r"[A-Za-z_]\w*")
MODULES = [
    "numpy", "numpy.linalg", "numpy.fft", "random", "nn", "nn.initializers", "image", "ops", "flatten_util",
    "lax", "lax.linalg", "scipy.linalg", "scipy.special", "scipy.stats", "scipy.optimize", "scipy.sparse.linalg",
    "experimental.checkify", "experimental.ode", "experimental.rnn", "example_libraries.optimizers",
    "example_libraries.stax", "scipy.interpolate", "scipy.spatial.transform", "dlpack",
    "experimental.sparse",
    "experimental.key_reuse", "experimental.compute_on", "experimental.scheduling_groups", "experimental.xla_metadata",
    "experimental.random",
]
# Each distribution is a module with functions of its own.
_FILES = [m.name for m in pkgutil.iter_modules(xtrace.scipy.stats.__path__)]
_NESTED = {"scipy.stats": sorted({*_FILES} & {*dir(xtrace.scipy.stats)})}
# The classes of scalars of a dtype, which all are made alike, aliases of them, and names for annotations.
_TYPES = {
    "cdouble", "csingle", "float6_e2m3fn", "float6_e3m2fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "int_", "object_",
    "ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers", "PrecisionLike",
}


class _Names(ast.NodeVisitor):
    """Collects attributes, names and the words of strings that are not docstrings."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Expr(self, node: ast.Expr) -> None:
        # A statement that is a string alone is a docstring.
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.found.add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.found.add(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.update(_WORD.findall(node.value))


@functools.cache
def _names() -> frozenset[str]:
    visitor = _Names()
    for path in [*_TESTS.rglob("test_*.py"), _TESTS / "support" / "elementwise_operations.py"]:
        if path != pathlib.Path(__file__) and path.name != "test_array_api_names.py":
            visitor.visit(ast.parse(path.read_text()))
    return frozenset(visitor.found)


def public_functions(name: str) -> list[str]:
    """Return the public callables of a module: those in its list, else those that were defined in it."""
    module = importlib.import_module(f"xtrace.{name}")
    listed = getattr(module, "__all__", None)
    values = {n: getattr(module, n) for n in (dir(module) if listed is None else listed) if not n.startswith("_")}
    found = [
        n for n, v in values.items()
        if callable(v) and (listed is not None or getattr(v, "__module__", "").startswith(f"xtrace.{name}"))
    ]
    # Other names of operations, whose tests name the operations.
    found = [n for n in found if not n.endswith("_p")]
    return [*found, *(f for n in _NESTED.get(name, ()) for f in (n, *public_functions(f"{name}.{n}")))]


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_is_in_a_test(name: str) -> None:
    functions = public_functions(name)
    assert functions, f"no functions found in xtrace.{name} of {xtrace.__version__}"
    missing = sorted(set(functions) - _names() - _TYPES)
    assert missing == [], f"xtrace.{name}: no test names {missing}; add rows to a table of tests"
