"""Write the lists of names that public modules import: `python -m tools.public_names`.

An import in the ``__init__.py`` of `lax` or `numpy` that ends in ``# every name`` has all public names that its module
defines. In `lax`, each primitive has its alias with ``_p`` as well. An operation is thus named once, where it stands.
"""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from pathlib import Path

from xtrace._src.core.primitive import Primitive

PACKAGE = Path(__file__).parents[1] / "xtrace"
MARK = "# every name"
LISTS = re.compile(rf"^    from (?P<module>\S+) import \(  {MARK}\n.*?^    \)$", re.DOTALL | re.MULTILINE)
LINE = 120


def defined_names(module: str) -> list[str]:
    """Return the names that a module assigns, and the functions and classes that it defines, without private ones."""
    path = importlib.import_module(module).__file__
    assert path is not None
    names = []
    for statement in ast.parse(Path(path).read_text()).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.append(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return sorted({name for name in names if not name.startswith("_")})


def write_list(module: str, with_aliases: bool) -> str:
    """Return the import of every public name of `module`."""
    values = vars(importlib.import_module(module))
    names = {name: name for name in defined_names(module)}
    if with_aliases:
        primitives = [name for name in names if isinstance(values[name], Primitive) and not name.endswith("_p")]
        names |= {f"{name}_p": name for name in primitives}
    listed = ", ".join(f"{name}\0as\0{public}" for public, name in sorted(names.items())) + ","
    lines = textwrap.wrap(listed, LINE, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join([f"    from {module} import (  {MARK}", *lines, "    )"]).replace("\0", " ")


def write_lists(text: str, with_aliases: bool) -> str:
    """Return the text of a module with its marked lists as they should be."""
    return LISTS.sub(lambda found: write_list(found["module"], with_aliases), text)


def written_modules() -> dict[Path, str]:
    """Map the files with marked lists to the texts they should have."""
    files = {name: PACKAGE / name / "__init__.py" for name in ("lax", "numpy")}
    return {path: write_lists(path.read_text(), with_aliases=name == "lax") for name, path in files.items()}


if __name__ == "__main__":
    for path, text in written_modules().items():
        path.write_text(text)
