"""Values of users enter messages through `core/diagnostics/abbreviation.py`: short, and whatever their repr does."""

import ast

from tests.architecture.source_tree import read_package, unit

# The layer below `core`, and the command line, whose values are words of the user's shell.
_APART = ("_src.xla", "cli")


def test_errors_abbreviate_values():
    whole = []
    for module in read_package().values():
        if unit(module.name) in _APART:
            continue
        for statement in ast.walk(module.tree):
            # Attributes are often asked for in vain, so those messages cost little.
            if isinstance(statement, ast.Raise) and "AttributeError" not in ast.unparse(statement):
                whole += [f"{module.name}:{node.lineno}: {ast.unparse(node.value)}" for node in ast.walk(statement)
                          if isinstance(node, ast.FormattedValue) and node.conversion == ord("r")]
    assert whole == [], "write {abbreviate(value)} in place of {value!r}"
