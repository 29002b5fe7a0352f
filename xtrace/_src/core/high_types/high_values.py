"""Values of types that users define (`high_types.py`) at the boundaries of functions.

Every function passes here, so `high_nodes` loads only when there is such a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xtrace._src.core.avals import high_types, is_high
from xtrace._src.core.pytrees import pytree
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.core.high_types import high_nodes

_Result = TypeVar("_Result")


def has_high_values(tree: Any) -> bool:
    """Whether a leaf of a tree has a type that users define."""
    return bool(high_types) and any(map(is_high, pytree.tree_leaves(tree)))


def with_lowered_results(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return `function` with pytree nodes in its results in the place of values of high types."""
    return high_nodes.with_lowered_results(function)


def call_on_lowered(function: Callable[..., _Result], operands: tuple[Any, ...]) -> _Result:
    """Return the result of `function` on operands in which pytree nodes replace values of high types."""
    return function(*high_nodes.lower_values(operands))


def lower_result(result: Any) -> Any:
    """Return a function's result in which pytree nodes replace values of high types."""
    return high_nodes.lower_values(result) if has_high_values(result) else result
