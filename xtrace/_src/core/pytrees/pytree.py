"""Pytrees: nested containers of leaves, which are flattened to a list and unflattened again.

A thin layer over jaxlib's C++ implementation, with a registry of xtrace's own. None is a node without children; dicts
are ordered by sorted key; list, tuple, namedtuple, dict, OrderedDict, defaultdict and `Partial` are nodes; an instance
of any other class is a leaf until the class is registered. `flatten` is the C++ method itself; the ``tree_*`` functions
explain errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees.key_paths import ignore_path
from xtrace._src.core.sentinels import UNSPECIFIED, Unspecified
from xtrace._src.xla import pytree_registry
from xtrace._src.xla.pytree_registry import (
    DictKey,
    FlattenedIndexKey,
    PyTreeDef,
    SequenceKey,
    flatten,
    flatten_with_path,
)

with late_modules(globals()):
    from xtrace._src.core.pytrees.pytree_differences import explain_flatten_error, structure_difference

default_registry = pytree_registry.registry


_IsLeaf = Callable[..., bool] | None
_Class = TypeVar("_Class", bound=type)


def tree_flatten(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Flatten a tree to its leaves and its structure.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        A pair of the list of leaves, in the order of keys and positions, and the `PyTreeDef`.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.flatten({"b": 2, "a": [1, None]})
        ([1, 2], PyTreeDef({'a': [*, None], 'b': *}))
    """
    try:
        return flatten(tree, is_leaf)
    except (SystemError, TypeError, ValueError) as error:
        explain_flatten_error(error, tree, is_leaf)
        raise


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        A list, in the order of keys and positions.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.leaves({"b": 2, "a": [1, None]})
        [1, 2]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of a tree.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        A `PyTreeDef`, which is hashable and compares by structure.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.structure({"b": 2, "a": [1, None]})
        PyTreeDef({'a': [*, None], 'b': *})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build a tree from a structure and its leaves.

    Args:
        treedef: a `PyTreeDef`.
        leaves: the leaves, in order; any objects.

    Returns:
        A pytree.

    Raises:
        TypeError: `treedef` is no `PyTreeDef`, or `leaves` cannot be iterated.
        ValueError: the number of leaves is wrong.

    Example:
        >>> xtrace.tree.unflatten(xtrace.tree.structure({"a": 0, "b": [0]}), [1, 2])
        {'a': 1, 'b': [2]}
    """
    _check_treedef(treedef, "treedef")
    _check_iterable(leaves, "leaves")
    return treedef.unflatten(leaves)


def tree_flatten_with_path(
    tree: object, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]:
    """Flatten a tree to its leaves, each with its key path, and its structure.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.
        is_leaf_takes_path: whether the predicate is called as ``is_leaf(path, node)``.

    Returns:
        A pair of the list of pairs (path, leaf) and the `PyTreeDef`. A path is a tuple of keys, which `keystr` formats.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.flatten_with_path([1, 2])[0]
        [((SequenceKey(idx=0),), 1), ((SequenceKey(idx=1),), 2)]
    """
    predicate = is_leaf
    if is_leaf is not None and callable(is_leaf) and not is_leaf_takes_path:
        predicate = ignore_path(is_leaf)
    try:
        return flatten_with_path(tree, predicate)
    except (SystemError, TypeError, ValueError) as error:
        explain_flatten_error(error, tree, is_leaf)
        raise


def leaf_paths(tree: PyTreeDef) -> list[tuple[Any, ...]]:
    """Return the key paths of the leaves of a structure.

    Only instances of a registered class have its keys. If an instance with numbers as leaves cannot be made, the
    positions of children are the keys.
    """
    positions = list(range(tree.num_leaves))
    try:
        paths_and_leaves = flatten_with_path(tree.unflatten(positions), None)[0]
        if [x for _, x in paths_and_leaves] == positions:
            return [path for path, _ in paths_and_leaves]
    except Exception:
        pass
    return _number_paths(tree)


def _number_paths(tree: PyTreeDef) -> list[tuple[Any, ...]]:
    data = tree.node_data()
    if data is None:
        return [()]
    kind, metadata = data
    paths: list[tuple[Any, ...]] = []
    for position, child in enumerate(tree.children()):
        key: Any = FlattenedIndexKey(position)
        if kind in (tuple, list):
            key = SequenceKey(position)
        elif kind is dict:
            key = DictKey(metadata[position])
        paths += [(key, *path) for path in _number_paths(child)]
    return paths


def tree_leaves_with_path(
    tree: object, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the leaves of a tree, each with its key path.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.
        is_leaf_takes_path: whether the predicate is called as ``is_leaf(path, node)``.

    Returns:
        A list of pairs (path, leaf); a path is a tuple of keys, which `keystr` formats.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.leaves_with_path({"a": [1]})
        [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map(f: Callable[..., Any], tree: object, *rest: object, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply a function to each leaf of a tree and the corresponding leaves of other trees.

    Args:
        f: a function of as many arguments as there are trees.
        tree: a pytree.
        rest: further pytrees, of which `tree` is a prefix: `f` gets whole subtrees where these are deeper.
        is_leaf: a predicate on nodes of `tree`; where it is true the node counts as a leaf.

    Returns:
        A pytree of the results of `f`, with the structure of `tree`.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: a tree of `rest` has another structure; the message lists the paths of the differences.

    Example:
        >>> xtrace.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}
    """
    check_function(f, "tree_map", "f")
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = _columns("tree_map", treedef, leaves, tree, rest, is_leaf, False)
    return treedef.unflatten([f(*row) for row in zip(*columns)])


def tree_map_with_path(
    f: Callable[..., Any], tree: object, *rest: object, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> Any:
    """Apply a function to each leaf of a tree and its key path.

    Args:
        f: a function of a path, a tuple of keys, and as many leaves as there are trees.
        tree: a pytree.
        rest: further pytrees, of which `tree` is a prefix.
        is_leaf: a predicate on nodes of `tree`; where it is true the node counts as a leaf.
        is_leaf_takes_path: whether the predicate is called as ``is_leaf(path, node)``.

    Returns:
        A pytree of the results of `f`, with the structure of `tree`.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: a tree of `rest` has another structure; the message lists the paths of the differences.

    Example:
        >>> xtrace.tree.map_with_path(lambda path, x: xtrace.tree_util.keystr(path) + str(x), {"a": [1]})
        {'a': ["['a'][0]1"]}
    """
    check_function(f, "tree_map_with_path", "f")
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    columns = _columns("tree_map_with_path", treedef, leaves, tree, rest, is_leaf, is_leaf_takes_path)
    return treedef.unflatten([f(*row) for row in zip(paths, *columns)])


def _columns(
    name: str, treedef: PyTreeDef, leaves: list[Any], tree: object, rest: Iterable[Any], is_leaf: _IsLeaf, path: bool
) -> list[list[Any]]:
    columns = [leaves]
    for position, other in enumerate(rest, 2):
        try:
            columns.append(treedef.flatten_up_to(other))
        except Exception as error:
            difference = structure_difference(tree, other, is_leaf, is_leaf_takes_path=path)
            if difference is None:
                raise
            message = f"{name}: tree {position} does not have the structure of tree 1 {difference}"
            raise ValueError(message) from error
    return columns


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: object, initializer: object = UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combine the leaves of a tree from the left.

    Args:
        function: a function of the present result and a leaf, which returns the next result.
        tree: a pytree.
        initializer: the first result; without it, the first leaf.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        The last result.

    Raises:
        TypeError: the tree has no leaves and there is no `initializer`, or `function` cannot be called.

    Example:
        >>> xtrace.tree.reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
        6
    """
    check_function(function, "tree_reduce", "function")
    leaves = tree_leaves(tree, is_leaf)
    if not isinstance(initializer, Unspecified):
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree_reduce of a tree without leaves needs an initializer")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: object, *, identity: object = UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combine the leaves of a tree as a balanced binary tree of calls.

    Args:
        operation: an associative function of two leaves.
        tree: a pytree.
        identity: the result for a tree without leaves.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        The combined leaves. The depth of nested calls is the logarithm of the number of leaves.

    Raises:
        TypeError: the tree has no leaves and there is no `identity`, or `operation` cannot be called.

    Example:
        >>> xtrace.tree.reduce_associative(lambda x, y: f"({x}{y})", list("abcd"))
        '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _combine_balanced(operation, leaves)
    if isinstance(identity, Unspecified):
        raise TypeError("tree_reduce_associative of a tree without leaves needs an identity")
    return identity


def _combine_balanced(operation: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return operation(_combine_balanced(operation, values[:middle]), _combine_balanced(operation, values[middle:]))


def tree_all(tree: object, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether all leaves of a tree are true.

    Args:
        tree: a pytree.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        A bool; True for a tree without leaves.

    Raises:
        ValueError: a dict in the tree has keys that cannot be sorted.

    Example:
        >>> xtrace.tree.all({"a": True, "b": [1, 0]})
        False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: object) -> Any:
    """Exchange the outer and the inner structure of a tree.

    Args:
        outer_treedef: the structure of the upper part of the tree.
        inner_treedef: the structure of each subtree; None for the structure of the first one.
        pytree_to_transpose: a pytree with a tree of the inner structure at each leaf of the outer one.

    Returns:
        A pytree of the inner structure, with a tree of the outer structure at each leaf.

    Raises:
        TypeError: an argument is no `PyTreeDef`, or the tree has another number of leaves.
        ValueError: `inner_treedef` is None, and the outer structure has no leaves.

    Example:
        >>> outer = xtrace.tree.structure([0, 0])
        >>> xtrace.tree.transpose(outer, None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': [1, 3], 'b': [2, 4]}
    """
    _check_treedef(outer_treedef, "outer_treedef")
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not subtrees:
            raise ValueError("tree_transpose: outer_treedef has no leaves to take the inner structure from; give it")
        inner_treedef = tree_structure(subtrees[0])
    _check_treedef(inner_treedef, "inner_treedef")
    outer_size, inner_size = outer_treedef.num_leaves, inner_treedef.num_leaves
    if len(leaves) != outer_size * inner_size:
        raise TypeError(
            f"tree_transpose: the tree has {len(leaves)} leaves where outer and inner structure make "
            f"{outer_size} x {inner_size}:\n{treedef}\nagainst\n{outer_treedef.compose(inner_treedef)}"
        )
    return inner_treedef.unflatten([outer_treedef.unflatten(leaves[i::inner_size]) for i in range(inner_size)])


def tree_broadcast(prefix_tree: object, full_tree: object, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Replace each leaf of a tree by the leaf above it in a prefix of the tree.

    Args:
        prefix_tree: a pytree whose leaves stand for subtrees of `full_tree`.
        full_tree: a pytree.
        is_leaf: a predicate on nodes of both trees; where it is true the node counts as a leaf.

    Returns:
        A pytree of the structure of `full_tree`.

    Raises:
        ValueError: `prefix_tree` is no prefix of `full_tree`; the message lists the paths of the differences.

    Example:
        >>> xtrace.tree.broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
        {'a': [1, 1], 'b': 2}
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    repeated = [
        structure.unflatten([leaf] * structure.num_leaves)
        for leaf, structure in zip(leaves, _structures_below(treedef, prefix_tree, full_tree, is_leaf))
    ]
    return treedef.unflatten(repeated)


def broadcast_prefix(prefix_tree: object, full_tree: object, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return, for every leaf of `full_tree`, the leaf of `prefix_tree` above it; ValueError if there is none."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    result: list[Any] = []
    below = _structures_below(treedef, prefix_tree, full_tree, is_leaf, "they differ")
    for leaf, structure in zip(leaves, below):
        result.extend([leaf] * structure.num_leaves)
    return result


def broadcast_prefix_to_structure(
    prefix_tree: object, structure: PyTreeDef, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """Return, for every leaf of a tree of `structure`, the leaf of `prefix_tree` above it; ValueError if there is none.

    No tree of the structure is built, unless for the message: users' classes may refuse leaves of other shapes.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    counts = _count_leaves_below(treedef, structure)
    if counts is None:
        return broadcast_prefix(prefix_tree, structure.unflatten([object()] * structure.num_leaves), is_leaf)
    return [leaf for leaf, count in zip(leaves, counts, strict=True) for _ in range(count)]


def _count_leaves_below(prefix: PyTreeDef, structure: PyTreeDef) -> list[int] | None:
    """Return how many leaves of `structure` are below each leaf of `prefix`; None where it seems to be no prefix."""
    if prefix.node_data() is None:
        return [structure.num_leaves]
    parts, whole = prefix.children(), structure.children()
    if prefix.node_data() != structure.node_data() or len(parts) != len(whole):
        return None
    counts = list(map(_count_leaves_below, parts, whole))
    return None if None in counts else [n for each in counts if each is not None for n in each]


def _structures_below(
    treedef: PyTreeDef, prefix_tree: object, full_tree: object, is_leaf: _IsLeaf,
    refusal: str = "tree_broadcast: prefix_tree is not a prefix of full_tree",
) -> list[PyTreeDef]:
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except (ValueError, TypeError, KeyError) as error:
        difference = structure_difference(prefix_tree, full_tree, is_leaf)
        if difference is None:
            raise
        raise ValueError(f"{refusal} {difference}") from error
    return [tree_structure(subtree) for subtree in subtrees]


def build_tree(treedef: PyTreeDef, iterables: object) -> Any:
    """Build a tree from a structure and iterables with the same nesting.

    Args:
        treedef: a `PyTreeDef`.
        iterables: an iterable of the children of each node, in order; a leaf is any object.

    Returns:
        A pytree.

    Raises:
        TypeError: `treedef` is no `PyTreeDef`, or a node's children cannot be iterated.
        ValueError: a node has another number of children.

    Example:
        >>> xtrace.tree_util.build_tree(xtrace.tree.structure({"a": 0, "b": (0, 0)}), [1, [2, 3]])
        {'a': 1, 'b': (2, 3)}
    """
    _check_treedef(treedef, "treedef")
    return treedef.from_iterable_tree(iterables)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether no element of an iterable is a node.

    Args:
        iterable: any objects.
        is_leaf: a predicate on nodes; where it is true the node counts as a leaf.

    Returns:
        A bool; False for None, which is a node without children.

    Raises:
        TypeError: `iterable` cannot be iterated.

    Example:
        >>> xtrace.tree_util.all_leaves([1, "a"]), xtrace.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    if is_leaf is None:
        return pytree_registry.all_leaves(iterable)
    return all(is_leaf(x) or pytree_registry.flatten_one_level(x) is None for x in iterable)


def is_tree_node(typ: type) -> bool:
    """Return whether the instances of a class are nodes.

    Args:
        typ: a class.

    Returns:
        A bool: True for built-in containers, None's class, and registered classes.

    Raises:
        TypeError: `typ` is not hashable.

    Example:
        >>> xtrace.tree_util.is_tree_node(dict), xtrace.tree_util.is_tree_node(set)
        (True, False)
    """
    return pytree_registry.is_node(typ)


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Hashable]:
    """Return the children and the metadata of a node.

    Args:
        tree: a node: a container, None, or an instance of a registered class.

    Returns:
        A pair of an iterable of children and the metadata, which is hashable.

    Raises:
        ValueError: `tree` is a leaf.

    Example:
        >>> xtrace.tree_util.flatten_one_level({"b": [2], "a": 1})
        ((1, [2]), ('a', 'b'))
    """
    children = pytree_registry.flatten_one_level(tree)
    if children is None:
        raise ValueError(f"a value of type {type(tree).__name__} is a leaf and has no children")
    return children


def flatten_one_level_with_keys(tree: object) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Return the children of a node with their keys, and its metadata.

    Args:
        tree: a node: a container, None, or an instance of a registered class.

    Returns:
        A pair of an iterable of pairs (key, child) and the metadata, which is hashable.

    Raises:
        ValueError: `tree` is a leaf.

    Example:
        >>> list(xtrace.tree_util.flatten_one_level_with_keys({"a": 1})[0])
        [(DictKey(key='a'), 1)]
    """
    children = pytree_registry.flatten_one_level_with_keys(tree)
    if children is None:
        raise ValueError(f"a value of type {type(tree).__name__} is a leaf and has no children")
    return children


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of the root.

    Args:
        treedef: a `PyTreeDef`.

    Returns:
        A list of `PyTreeDef`; empty for a leaf.

    Raises:
        TypeError: `treedef` is no `PyTreeDef`.

    Example:
        >>> xtrace.tree_util.treedef_children(xtrace.tree.structure([1, (2, 3)]))
        [PyTreeDef(*), PyTreeDef((*, *))]
    """
    _check_treedef(treedef, "treedef")
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether the root has no children.

    Args:
        treedef: a `PyTreeDef`.

    Returns:
        A bool: True for a leaf, and for a single empty node such as None.

    Raises:
        TypeError: `treedef` is no `PyTreeDef`.

    Example:
        >>> xtrace.tree_util.treedef_is_leaf(xtrace.tree.structure(1))
        True
    """
    _check_treedef(treedef, "treedef")
    return treedef.num_nodes == 1


def is_one_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a tree is a single leaf; False for an empty node such as None."""
    return treedef.num_nodes == treedef.num_leaves == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees.

    Args:
        treedefs: the structures of the elements.

    Returns:
        A `PyTreeDef`.

    Raises:
        TypeError: `treedefs` cannot be iterated, or an element is no `PyTreeDef`.

    Example:
        >>> xtrace.tree_util.treedef_tuple([xtrace.tree.structure(1), xtrace.tree.structure([2])])
        PyTreeDef((*, [*]))
    """
    _check_iterable(treedefs, "treedefs")
    listed = list(treedefs)
    for treedef in listed:
        _check_treedef(treedef, "every element of treedefs")
    return pytree_registry.treedef_tuple(listed)


def _check_treedef(treedef: PyTreeDef, name: str) -> None:
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(f"{name} must be a PyTreeDef, which tree_structure(tree) returns; got {abbreviate(treedef)}")


def _check_iterable(values: object, name: str) -> None:
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be an iterable; got {abbreviate(values)}")


def check_function(function: object, operation: str, name: str) -> None:
    """Raise TypeError if `function` cannot be called."""
    if not callable(function):
        raise TypeError(f"{operation}: {name} must be a function; got {abbreviate(function)}")
