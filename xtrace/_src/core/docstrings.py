"""Docstrings of families of operations: each operation has the contract and an example, the family the rest."""

from __future__ import annotations

from collections.abc import Mapping

_EXAMPLE = "Example:\n"


def complete_docstring(
    given: str | None, arguments: Mapping[str, str], returns: str, raises: Mapping[str, str]
) -> str | None:
    """Return a docstring with the sections that it shares with its family, before its example.

    Args:
        given: the docstring, as it stands in the source; without an example it is returned unchanged.
        arguments: maps names, as in ``"x"`` or ``"x, y"``, to their descriptions.
        returns: the description of the result.
        raises: maps names of error classes to their conditions.
    """
    contract, example, rest = (given or "").partition(_EXAMPLE)
    if not example:
        return given
    # Python 3.13 removes the indentation of docstrings.
    indent = contract[len(contract.rstrip(" ")) :]
    line = f"\n{indent}    "
    sections = {"Args": line.join(_entries(arguments)), "Returns": returns, "Raises": line.join(_entries(raises))}
    shared = [f"{name}:{line}{body}\n\n{indent}" for name, body in sections.items()]
    return "".join([contract, *shared, example, rest])


def write_docstring(
    contract: str, arguments: Mapping[str, str], returns: str, raises: Mapping[str, str], example: tuple[str, str]
) -> str:
    """Return the docstring of a function that a loop makes; `example` is an expression and the text that it prints."""
    given = f"{contract}\n\n    Example:\n        >>> {example[0]}\n        {example[1]}\n    "
    return complete_docstring(given, arguments, returns, raises) or given


def _entries(descriptions: Mapping[str, str]) -> list[str]:
    return [f"{name}: {text}" for name, text in descriptions.items()]
