"""Values of high types at the boundaries of functions: a compiled function traces their arrays.

The caller replaces a value by a pytree node with its type and its arrays. Inside the function, the node becomes a value
again. After the call, the new arrays of a mutable value are written back to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from xtrace._src.core.avals import aval_of, is_high
from xtrace._src.core.high_types.high_types import cur_qdd
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.pytrees.pytree_registration import register_pytree_node

_Result = TypeVar("_Result")


class Node:
    """A value of a high type as a pytree node: its arrays are the children, its type and state are static.

    Unflattening a tree with nodes gives values in their place.
    """

    def __init__(self, value: Any) -> None:
        aval: Any = aval_of(value)
        self.aval = aval
        if aval.has_qdd:
            self.state = cur_qdd(value)
            self.arrays = tuple(aval.read_loval(self.state, value))
        else:
            self.state, self.arrays = None, tuple(aval.lower_val(value))


def _make_value(static: tuple[Any, Any], arrays: tuple[Any, ...]) -> Any:
    aval, state = static
    return aval.new_from_loval(state, *arrays) if aval.has_qdd else aval.raise_val(*arrays)


register_pytree_node(Node, lambda node: (node.arrays, (node.aval, node.state)), _make_value)


def lower_values(tree: Any) -> Any:
    """Return a tree in which nodes replace the values of high types."""
    return pytree.tree_map(lambda x: Node(x) if is_high(x) else x, tree)


def with_lowered_results(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return `function` with nodes in its results in the place of values of high types, for bodies of loops."""

    @functools.wraps(function)
    def with_nodes(*args: Any) -> Any:
        return lower_values(function(*args))

    return with_nodes


def with_written_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns the results of `function`, and its mutable arguments after the call."""

    @functools.wraps(function)
    def with_arguments(*args: Any, **kwargs: Any) -> Any:
        results = function(*args, **kwargs)
        return lower_values((results, _find_mutable((args, kwargs))))

    return with_arguments


def _find_mutable(tree: Any) -> list[Any]:
    values: list[Any] = [x for x in pytree.tree_leaves(tree) if is_high(x)]
    return [x for x in values if aval_of(x).has_qdd]


def call_and_write_back(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a compiled function of `with_written_arguments`, write mutable arguments back, and return its results."""
    given, named = lower_values((args, kwargs))
    results, written = function(*given, **named)
    for value, after in zip(_find_mutable((args, kwargs)), written, strict=True):
        node = Node(after)
        node.aval.update_from_loval(node.state, value, *node.arrays)
    return results
