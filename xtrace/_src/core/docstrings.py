"""Docstrings of families of operations: a row gives the contract and an example, the family gives the rest."""

from __future__ import annotations

from collections.abc import Mapping


def docstring(
    contract: str, arguments: Mapping[str, str], returns: str, raises: Mapping[str, str], example: tuple[str, str],
    reference: str = "",
) -> str:
    """Return a docstring in the template of public functions.

    Args:
        contract: the first line, one sentence.
        arguments: maps names, as in ``"x"`` or ``"x, y"``, to their descriptions.
        returns: the description of the result.
        raises: maps names of error classes to their conditions.
        example: an expression and the text that it prints.
        reference: the source of a numerical method.
    """
    sections = [
        contract, _section("Args", _entries(arguments)), _section("Returns", returns),
        _section("Raises", _entries(raises)), _section("Example", f">>> {example[0]}\n        {example[1]}"),
    ]
    if reference:
        sections.append(_section("Reference", reference))
    return "\n\n    ".join(sections) + "\n    "


def _section(name: str, body: str) -> str:
    return f"{name}:\n        {body}"


def _entries(descriptions: Mapping[str, str]) -> str:
    return "\n        ".join([f"{name}: {text}" for name, text in descriptions.items()])
