"""Values of types that users define (`high_types.py`) at the boundaries of functions.

Every function passes here, so what only such values need is loaded when there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xtrace._src.core import pytree
from xtrace._src.core.avals import high_types, is_high
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.core import high_nodes

_Result = TypeVar("_Result")


def has_high_values(tree: Any) -> bool:
    """Whether there are values of types that users define among the leaves of a tree."""
    return bool(high_types) and any(map(is_high, pytree.tree_leaves(tree)))


def of_nodes(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return a function whose results are pytree nodes for one of values of types that users define."""
    return high_nodes.on_nodes(function)


def call_on_nodes(function: Callable[..., _Result], operands: tuple[Any, ...]) -> _Result:
    """Return the result of a function on pytree nodes in the place of values of types that users define."""
    return function(*high_nodes.lower_values(operands))


def lower_result(result: Any) -> Any:
    """Return a function's result with pytree nodes in the place of values of types that users define."""
    return high_nodes.lower_values(result) if has_high_values(result) else result


