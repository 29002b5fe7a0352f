"""Rows of tree_util, whose structures and paths are compared as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import operand, options, sampled
from tests.support.draws import Operand, Row

_LEAF = st.one_of(operand([np.dtype(np.float32)], [(), (2,)]), sampled(1, 2.5, None))


def trees(leaf: Any = _LEAF) -> st.SearchStrategy[Any]:
    """Return a strategy for lists, tuples and dictionaries in each other."""
    return st.recursive(leaf, lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(sampled("a", "b", "c d"), inner, max_size=2)), max_leaves=5)


@st.composite
def alike(draw: Any, count: int) -> Any:
    """Draw trees of one structure, mostly, and perhaps what counts as a leaf."""
    first = draw(trees())
    others = [draw(trees()) if draw(st.integers(0, 7)) == 0 else first for _ in range(count - 1)]
    return (first, *others), draw(options(is_leaf=sampled(_is_tuple, _is_none)))


@st.composite
def one(draw: Any, leaf: Any = _LEAF, **choices: Any) -> Any:
    """Draw a tree, and keyword arguments."""
    return (draw(trees(leaf)),), draw(options(**choices))


def _is_tuple(x: Any) -> bool:
    return isinstance(x, tuple)


def _is_none(x: Any) -> bool:
    return x is None


def _total(*values: Any) -> Any:
    """Return the sum of what are numbers."""
    return sum([1 if x is None or isinstance(x, (tuple, list, dict)) else 2 * x for x in values])


def _marked(package: Any) -> Callable[..., Any]:
    return lambda path, *values: (package.tree_util.keystr(path), _total(*values))


def _shown(x: Any) -> Any:
    """Return structures, paths and keys as text, within lists and tuples."""
    if type(x) in (list, tuple):
        return type(x)([_shown(item) for item in x])
    return str(x) if type(x).__name__.endswith(("PyTreeDef", "Key")) else x


def row(name: str, arguments: Any, first: Callable[[Any], Any] | None = None) -> Row:
    """Return the row of the function `name`, of `first` of the package and what is drawn; results are shown."""

    def called(package: Any) -> Callable[..., Any]:
        function = getattr(package.tree_util, name)
        own = () if first is None else (first(package),)
        return lambda *values, **keywords: _shown(function(*own, *values, **keywords))

    return Row(arguments, modes=("value", "vjp"), function=called)


def of_structures(name: str, count: int = 1) -> Row:
    """Return the row of a function of structures."""

    def called(package: Any) -> Callable[..., Any]:
        def function(*values: Any) -> Any:
            found = [package.tree_util.tree_structure(x) for x in values]
            return _shown(getattr(package.tree_util, name)(found if name == "treedef_tuple" else found[0]))

        return function

    return Row(st.tuples(*[trees()] * count).map(lambda a: (a, {})), modes=("value",), function=called)


def _rebuilt(package: Any) -> Callable[..., Any]:
    """Return a function that gives leaves the structure of a tree."""
    return lambda tree, leaves: package.tree_util.tree_unflatten(package.tree_util.tree_structure(tree), leaves)


def _transposed(package: Any) -> Callable[..., Any]:
    """Return a function that exchanges the structures of two trees in one tree of trees."""

    def function(outer: Any, inner: Any, tree: Any) -> Any:
        return package.tree_util.tree_transpose(*map(package.tree_util.tree_structure, (outer, inner)), tree)

    return function


def _paths(package: Any) -> Callable[..., Any]:
    """Return a function that gives the paths to the leaves of a tree as text."""

    def function(tree: Any, **keywords: Any) -> Any:
        return [package.tree_util.keystr(path, **keywords) for path, _ in package.tree_util.tree_leaves_with_path(tree)]

    return function


_pair = [[Operand(np.float32(1)), 2.0], [3.0, Operand(np.float32(4))], [5.0, 6.0]]
_leaves = st.lists(_LEAF, max_size=4)
_leaf_choice = {"is_leaf": sampled(_is_tuple, _is_none)}
_FLATTENING = ("tree_leaves", "tree_flatten", "tree_structure", "tree_leaves_with_path", "tree_flatten_with_path")
TREE_UTIL: dict[str, Row] = {
    "tree_map": row("tree_map", sampled(1, 2, 3).flatmap(alike), lambda package: _total),
    "tree_map_with_path": row("tree_map_with_path", sampled(1, 2).flatmap(alike), _marked),
    "tree_reduce": row("tree_reduce", st.tuples(trees(), *[sampled(0, 1.5)]).map(lambda a: (a, {})),
                       lambda package: lambda x, y: _total(x, y)),
    "tree_reduce_associative": row("tree_reduce_associative", one(identity=sampled(0, 1.5)),
                                   lambda package: lambda x, y: _total(x, y)),
    **{name: row(name, one(**_leaf_choice)) for name in _FLATTENING},
    "tree_all": row("tree_all", one(sampled(True, False, 1, 0), **_leaf_choice)),
    "all_leaves": row("all_leaves", st.tuples(_leaves | st.lists(trees(), max_size=2)).map(lambda a: (a, {}))),
    "is_tree_node": row("is_tree_node", sampled(list, tuple, dict, int, type(None)).map(lambda a: ((a,), {}))),
    "flatten_one_level": row("flatten_one_level", one()),
    "flatten_one_level_with_keys": row("flatten_one_level_with_keys", one()),
    "tree_broadcast": row("tree_broadcast", sampled(2).flatmap(alike)),
    "treedef_tuple": of_structures("treedef_tuple", 2),
    "treedef_children": of_structures("treedef_children"),
    "treedef_is_leaf": of_structures("treedef_is_leaf"),
    "tree_unflatten": Row(st.tuples(trees(), _leaves).map(lambda a: (a, {})), modes=("value",), function=_rebuilt),
    "tree_transpose": Row(
        st.tuples(sampled([0, 0, 0], [0, 0], (0,), {"a": 0}), sampled([0, 0], (0, 0), 0), st.just(_pair)).map(
            lambda a: (a, {})), modes=("value", "vjp"), function=_transposed),
    "keystr": Row(one(simple=st.booleans(), separator=sampled("/", "")), modes=("value",), function=_paths),
}
