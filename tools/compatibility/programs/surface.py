"""What the programs over whole libraries share: results by name, errors as results, and the names left unused."""

import ast
import json
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np


class Surface:
    """The results of a program that uses each public name of a library.

    Numbers of two frontends agree within `tolerance`, relative to the largest of a result.
    """

    def __init__(self, tolerance: float):
        self.tolerance = tolerance
        self.results: dict[str, Any] = {}

    def record(self, name: str, value: Any) -> None:
        """Keep a text, or the leaves of a pytree but for functions, under a name."""
        assert name not in self.results, name
        leaves = [leaf for leaf in jax.tree.leaves(value) if not callable(leaf)]
        self.results[name] = value if isinstance(value, str) else [_to_plain(leaf) for leaf in leaves]

    def record_error(self, name: str, part: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Keep the type of the error that a call raises, and whether its message has a part."""
        try:
            jax.block_until_ready(function(*arguments))
        except Exception as error:
            found = "says" if part in str(error) else "does not say"
            self.record(name, f"{type(error).__name__} {found} {part!r}")
        else:
            self.record(name, "no error")

    def finish(self, file: str, modules: Mapping[str, types.ModuleType], reasons: Mapping[str, str]) -> None:
        """Print the results, after a check that the programs of a library use each public name of the `modules`.

        The library is the first word of `file`'s name. Modules are given under the names that its programs have for
        them. `reasons` says why a name is not used.
        """
        used: set[str] = set()
        for path in Path(file).parent.glob(f"{Path(file).name.split('_')[0]}_*.py"):
            used |= _find_used_names(path)
        for alias, module in modules.items():
            public = {name for name in dir(module) if not name.startswith("_")}
            public = {name for name in public if not isinstance(getattr(module, name), types.ModuleType)}
            unused = {f"{alias}.{name}" for name in public} - used
            assert unused <= set(reasons), f"unused: {sorted(unused - set(reasons))}"
        assert not used & set(reasons), f"used and excused: {sorted(used & set(reasons))}"
        print(json.dumps({"tolerance": self.tolerance, "results": self.results}))


def _to_plain(leaf: Any) -> Any:
    if isinstance(leaf, (str, bool, int, float)):
        return leaf
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag])
    return array.tolist()


def _find_used_names(file: Path) -> set[str]:
    """Return the dotted names that a program reads."""
    nodes = ast.walk(ast.parse(file.read_text()))
    return {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
