"""Pytrees: nested containers of leaves, taken apart into a list and put together again.

A thin layer over jaxlib's C++ implementation with a registry of xtrace's own. None is a node without children; dicts
are ordered by sorted key; list, tuple, namedtuple, dict, OrderedDict, defaultdict and `Partial` are nodes, any other
type is a leaf until it is registered. `flatten` is the C++ method itself; the ``tree_*`` functions explain errors.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.xla import pytree_registry
from xtrace._src.xla.pytree_registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    flatten,
    flatten_with_path,
)

__all__ = [
    "flatten", "flatten_with_path", "PyTreeDef", "default_registry",
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "SequenceKey", "KeyEntry", "KeyPath", "keystr",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_structure",
    "tree_unflatten", "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_all",
    "tree_transpose", "tree_broadcast", "broadcast_prefix", "build_tree", "all_leaves", "is_tree_node",
    "flatten_one_level", "flatten_one_level_with_keys", "treedef_children", "treedef_is_leaf", "treedef_tuple",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_dataclass", "register_static", "static_field", "Partial",
    "explain_flatten_error", "leaf_paths", "list_faults", "structure_difference", "treedef_difference",
]

default_registry = pytree_registry.registry

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]

_IsLeaf = Callable[..., bool] | None
_Class = TypeVar("_Class", bound=type)


class _Unspecified:
    """The default of an argument for which None is a value."""

    def __repr__(self) -> str:
        return "<unspecified>"


_UNSPECIFIED = _Unspecified()
# How many differences a message lists.
_LISTED = 10


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of `tree`, in order, and its structure.

    A node for which `is_leaf(node)` is true counts as a leaf. A ValueError names a dict whose keys cannot be sorted.
    """
    try:
        return flatten(tree, is_leaf)
    except (SystemError, TypeError, ValueError) as error:
        explain_flatten_error(error, tree, is_leaf)
        raise


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of `tree`, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of `tree`."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the pytree of structure `treedef` with the given leaves; a ValueError when their number is wrong."""
    _check_treedef(treedef, "treedef")
    if not isinstance(leaves, Iterable):
        raise TypeError(f"leaves must be an iterable of leaves; got {type(leaves).__name__}")
    return treedef.unflatten(leaves)


def tree_flatten_with_path(
    tree: Any, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]:
    """Return ((key path, leaf) pairs, structure) of `tree`.

    With `is_leaf_takes_path` the predicate is called as `is_leaf(path, node)`.
    """
    predicate = is_leaf
    if is_leaf is not None and callable(is_leaf) and not is_leaf_takes_path:
        predicate = _without_path(is_leaf)
    try:
        return flatten_with_path(tree, predicate)
    except (SystemError, TypeError, ValueError) as error:
        explain_flatten_error(error, tree, is_leaf)
        raise


def leaf_paths(tree: PyTreeDef) -> list[tuple[Any, ...]]:
    """Return the key paths of the leaves of a structure.

    Only objects say the keys of classes that are registered; where none can be made of numbers, children are counted.
    """
    positions = list(range(tree.num_leaves))
    try:
        paths_and_leaves = flatten_with_path(tree.unflatten(positions), None)[0]
        if [x for _, x in paths_and_leaves] == positions:
            return [path for path, _ in paths_and_leaves]
    except Exception:
        pass
    return _counted_paths(tree)


def _counted_paths(tree: PyTreeDef) -> list[tuple[Any, ...]]:
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
        paths += [(key, *path) for path in _counted_paths(child)]
    return paths


def _without_path(is_leaf: Callable[[Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda path, node: is_leaf(node)


def tree_leaves_with_path(
    tree: Any, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the (key path, leaf) pairs of `tree`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Return a key path as text: ``['a'][0].x``, or ``a0x`` when `simple`, with `separator` between the steps."""
    return separator.join(_simple_key(key) if simple else str(key) for key in keys)


def _simple_key(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return key.name
        case _:
            return str(key)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return the tree of ``f(leaf, *leaves of rest)``, with the structure of `tree`.

    Where `tree` has a leaf, each tree of `rest` may have a subtree, which `f` gets whole. A ValueError shows the path
    of the first difference when one of them has another structure.
    """
    _check_callable(f, "tree_map", "f")
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = _columns("tree_map", treedef, leaves, tree, rest, is_leaf, False)
    return treedef.unflatten([f(*row) for row in zip(*columns)])


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None, is_leaf_takes_path: bool = False
) -> Any:
    """Return the tree of ``f(path, leaf, *leaves of rest)``, with the structure of `tree`; otherwise as `tree_map`."""
    _check_callable(f, "tree_map_with_path", "f")
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    columns = _columns("tree_map_with_path", treedef, leaves, tree, rest, is_leaf, is_leaf_takes_path)
    return treedef.unflatten([f(*row) for row in zip(paths, *columns)])


def _columns(
    name: str, treedef: PyTreeDef, leaves: list[Any], tree: Any, rest: Iterable[Any], is_leaf: _IsLeaf, path: bool
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
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the leaves combined from the left by `function`, starting from `initializer` when it is given.

    A TypeError tells that a tree without leaves needs an initializer.
    """
    leaves = tree_leaves(tree, is_leaf)
    if not isinstance(initializer, _Unspecified):
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree_reduce of a tree without leaves needs an initializer")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _UNSPECIFIED,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the leaves combined by the associative `operation` as a balanced binary tree; `identity` if there is none.

    A TypeError tells that a tree without leaves needs an identity.
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _balanced(operation, leaves)
    if isinstance(identity, _Unspecified):
        raise TypeError("tree_reduce_associative of a tree without leaves needs an identity")
    return identity


def _balanced(operation: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return operation(_balanced(operation, values[:middle]), _balanced(operation, values[middle:]))


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true; so for a tree without leaves."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Return the tree of structure inner(outer) made of the leaves of a tree of structure outer(inner).

    With `inner_treedef` None it is the structure found at the first leaf of `outer_treedef`. A TypeError shows both
    structures when the number of leaves does not fit; a ValueError when nothing says what the inner structure is.
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


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return `full_tree` with every leaf replaced by the leaf of `prefix_tree` that stands above it.

    A ValueError lists the paths of the differences when `prefix_tree` is no prefix of `full_tree`.
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    repeated = [
        structure.unflatten([leaf] * structure.num_leaves)
        for leaf, structure in zip(leaves, _structures_below(treedef, prefix_tree, full_tree, is_leaf))
    ]
    return treedef.unflatten(repeated)


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return, for every leaf of `full_tree`, the leaf of `prefix_tree` above it; errors as `tree_broadcast`."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    result: list[Any] = []
    for leaf, structure in zip(leaves, _structures_below(treedef, prefix_tree, full_tree, is_leaf)):
        result.extend([leaf] * structure.num_leaves)
    return result


def _structures_below(treedef: PyTreeDef, prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf) -> list[PyTreeDef]:
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except (ValueError, TypeError, KeyError) as error:
        difference = structure_difference(prefix_tree, full_tree, is_leaf)
        if difference is None:
            raise
        raise ValueError(f"tree_broadcast: prefix_tree is not a prefix of full_tree {difference}") from error
    return [tree_structure(subtree) for subtree in subtrees]


def build_tree(treedef: PyTreeDef, iterables: Any) -> Any:
    """Return the pytree of structure `treedef` from nested iterables with the same nesting, in order of children."""
    _check_treedef(treedef, "treedef")
    return treedef.from_iterable_tree(iterables)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether no element of `iterable` is a node; those for which `is_leaf` is true count as leaves."""
    if is_leaf is None:
        return pytree_registry.all_leaves(iterable)
    return all(is_leaf(x) or pytree_registry.flatten_one_level(x) is None for x in iterable)


def is_tree_node(typ: type) -> bool:
    """Whether values of the class `typ` are nodes: it is built in or registered."""
    return pytree_registry.is_node(typ)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Return (children, metadata) of the node `tree`; a ValueError when it is a leaf."""
    children = pytree_registry.flatten_one_level(tree)
    if children is None:
        raise ValueError(f"a value of type {type(tree).__name__} is a leaf and has no children")
    return children


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Return ((key, child) pairs, metadata) of the node `tree`; a ValueError when it is a leaf."""
    children = pytree_registry.flatten_one_level_with_keys(tree)
    if children is None:
        raise ValueError(f"a value of type {type(tree).__name__} is a leaf and has no children")
    return children


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of the root."""
    _check_treedef(treedef, "treedef")
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the root has no children: a leaf, or a single empty node such as None."""
    _check_treedef(treedef, "treedef")
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees of the given structures."""
    listed = list(treedefs)
    for treedef in listed:
        _check_treedef(treedef, "every element of treedefs")
    return pytree_registry.treedef_tuple(listed)


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make values of the class `nodetype` nodes.

    `flatten_func(value)` returns (children, metadata), `unflatten_func(metadata, children)` a value, and
    `flatten_with_keys_func(value)` ((key, child) pairs, metadata). Metadata must be hashable and comparable. A
    ValueError tells that the class is registered already.
    """
    _check_class(nodetype, "register_pytree_node", "nodetype")
    _check_callable(flatten_func, "register_pytree_node", "flatten_func")
    _check_callable(unflatten_func, "register_pytree_node", "unflatten_func")
    if flatten_with_keys_func is not None:
        _check_callable(flatten_with_keys_func, "register_pytree_node", "flatten_with_keys_func")
    _check_unregistered(nodetype)
    pytree_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: _Class) -> _Class:
    """Make values of the decorated class nodes, by its methods ``tree_flatten`` and classmethod ``tree_unflatten``."""
    flatten_func, unflatten_func = _methods(cls, "register_pytree_node_class", "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, flatten_func, unflatten_func)
    return cls


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make values of the class `nodetype` nodes whose children have keys.

    `flatten_with_keys(value)` returns ((key, child) pairs, metadata); `flatten_func`, when given, is the faster form
    without keys. Otherwise as `register_pytree_node`.
    """
    _check_callable(flatten_with_keys, "register_pytree_with_keys", "flatten_with_keys")
    if flatten_func is None:
        flatten_func = _drop_keys(flatten_with_keys)
    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def _drop_keys(flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]) -> Callable[..., Any]:
    def flatten_func(value: Any) -> tuple[list[Any], Hashable]:
        pairs, metadata = flatten_with_keys(value)
        return [child for _, child in pairs], metadata

    return flatten_func


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Make values of the decorated class nodes whose children have keys.

    The class has the method ``tree_flatten_with_keys`` and the classmethod ``tree_unflatten``; ``tree_flatten`` is used
    where no keys are needed if the class has it.
    """
    names = ("tree_flatten_with_keys", "tree_unflatten")
    flatten_with_keys, unflatten_func = _methods(cls, "register_pytree_with_keys_class", *names)
    register_pytree_with_keys(cls, flatten_with_keys, unflatten_func, getattr(cls, "tree_flatten", None))
    return cls


def register_dataclass(
    nodetype: _Class, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """Make values of the class `nodetype` nodes: `data_fields` are children, `meta_fields` metadata.

    Unflattening calls the class with both as keyword arguments; `drop_fields` are left to their defaults. A dataclass
    needs no field lists: fields made by ``tree.static()`` are metadata and the others children. Raises ValueError
    when the lists are not exactly the fields that the constructor takes, TypeError when they are missing.
    """
    _check_class(nodetype, "register_dataclass", "nodetype")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None and meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {abbreviated(nodetype)} is not a dataclass; give data_fields and meta_fields"
            )
        fields = [field for field in dataclasses.fields(nodetype) if field.name not in drop_fields]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
    elif data_fields is None or meta_fields is None:
        missing = "data_fields" if data_fields is None else "meta_fields"
        raise TypeError(f"register_dataclass: {missing} is missing; give both data_fields and meta_fields, or neither")
    data, meta = tuple(data_fields), tuple(meta_fields)
    listed = set(data) | set(meta)
    if len(listed) != len(data) + len(meta):
        twice = sorted(name for name in listed if (data + meta).count(name) > 1)
        raise ValueError(f"register_dataclass: {twice} listed twice; each field is either data or metadata")
    if is_dataclass:
        accepted = {field.name for field in dataclasses.fields(nodetype) if field.init} - set(drop_fields)
        if unexpected := sorted(listed - accepted):
            raise ValueError(
                f"register_dataclass: {unexpected} are no fields that the constructor of {nodetype.__name__} takes "
                "(unknown, init=False, or in drop_fields); leave them out of data_fields and meta_fields"
            )
        if forgotten := sorted(accepted - listed):
            raise ValueError(
                f"register_dataclass: the fields {forgotten} of {nodetype.__name__} are in neither data_fields nor "
                "meta_fields; name them in drop_fields if their defaults will do"
            )
    _check_unregistered(nodetype)
    pytree_registry.register_dataclass_node(nodetype, data, meta)
    return nodetype


def register_static(cls: _Class) -> _Class:
    """Make values of the decorated class nodes without children: the value itself, hashed and compared, is metadata."""
    _check_class(cls, "register_static", "cls")
    register_pytree_node(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def static_field(**kwargs: Any) -> Any:
    """Return a ``dataclasses.field(**kwargs)`` that `register_dataclass` takes as metadata."""
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


def _check_treedef(treedef: Any, name: str) -> None:
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(f"{name} must be a PyTreeDef, which tree_structure(tree) returns; got {abbreviated(treedef)}")


def _check_callable(function: Any, operation: str, name: str) -> None:
    if not callable(function):
        raise TypeError(f"{operation}: {name} must be a function; got {abbreviated(function)}")


def _check_class(cls: Any, operation: str, name: str) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"{operation}: {name} must be a class; got {abbreviated(cls)}")


def _methods(cls: type, operation: str, *names: str) -> list[Callable[..., Any]]:
    _check_class(cls, operation, "cls")
    methods = [getattr(cls, name, None) for name in names]
    for name, method in zip(names, methods):
        if not callable(method):
            raise TypeError(f"{operation}: the class {cls.__name__} has no method {name}")
    return methods  # type: ignore[return-value]


def _check_unregistered(cls: type) -> None:
    # Of named tuples that are not registered the registry says so as well, and it refuses those that are.
    if pytree_registry.is_node(cls) and not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise ValueError(f"{abbreviated(cls)} is a pytree node already; a class is registered once")


def explain_flatten_error(error: Exception, tree: Any, is_leaf: Any = None) -> None:
    """Raise what flattening `tree` really failed for, if it is one of the known causes; otherwise return.

    For callers of `flatten`, whose C++ errors name neither the argument nor the place.
    """
    if isinstance(error, SystemError):
        if isinstance(error.__cause__, RecursionError):
            raise RecursionError("the pytree is nested too deeply, or contains itself") from None
        return
    if is_leaf is not None and not callable(is_leaf):
        raise TypeError(f"is_leaf must be a function; got {abbreviated(is_leaf)}") from None
    unsortable = _unsortable(tree, ())
    if unsortable is not None:
        path, keys = unsortable
        raise ValueError(
            f"the keys of the dict at {_place(path)} cannot be sorted, which gives its leaves their order: "
            f"{abbreviated(keys)}; use keys of one type, or an OrderedDict"
        ) from error


def _unsortable(tree: Any, path: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """Return path and keys of the first dict whose keys cannot be sorted, None if there is none."""
    if type(tree) in (dict, defaultdict):
        try:
            sorted(tree)
        except Exception:
            return path, list(tree)
    try:
        node = pytree_registry.flatten_one_level_with_keys(tree)
        pairs = [] if node is None else list(node[0])
    except Exception:
        # A registered class failed to flatten; its own error is the one to show.
        return None
    for key, child in pairs:
        inner = _unsortable(child, (*path, key))
        if inner is not None:
            return inner
    return None


def _place(path: tuple[Any, ...]) -> str:
    return f"key path {keystr(path)}" if path else "the root"


def structure_difference(
    first: Any, other: Any, is_leaf: _IsLeaf = None, *, is_leaf_takes_path: bool = False, prefix: bool = True
) -> str | None:
    """Say where and how `other` departs from the structure of `first`; None when it does not.

    The text continues a sentence: ``at key path ['b'][1]: list of length 2 against list of length 3``, or it is a list
    of such places, a line each. With `prefix` a leaf of `first` matches any subtree of `other`.
    """
    predicate = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        predicate = _without_path(is_leaf)
    found = list(_differences(first, other, (), predicate, prefix))
    if len(found) > 1:
        return f"at {len(found)} places:\n{list_faults(found)}\n"
    return found[0] if found else None


def list_faults(faults: Sequence[str]) -> str:
    """Return the faults that a message is about, a line each: the first ones, and how many others there are."""
    lines = [f"  * {fault}" for fault in faults[:_LISTED]]
    return "\n".join(lines + ([f"  * and {len(faults) - _LISTED} more"] if len(faults) > _LISTED else []))


def _differences(
    first: Any, other: Any, path: tuple[Any, ...], is_leaf: Callable[[Any, Any], bool] | None, prefix: bool
) -> Iterator[str]:
    stops = is_leaf is not None and is_leaf(path, first)
    node = None if stops else pytree_registry.flatten_one_level_with_keys(first)
    against = pytree_registry.flatten_one_level_with_keys(other)
    if node is None and (prefix or against is None):
        return
    if node is None or against is None or type(first) is not type(other):
        kinds = _kind(first, node), _kind(other, against)
        yield f"at {_place(path)}: {kinds[0]} against {kinds[1]}"
        return
    (pairs, metadata), (others, other_metadata) = (list(node[0]), node[1]), (list(against[0]), against[1])
    if isinstance(first, dict) and isinstance(other, dict) and first.keys() != other.keys():
        missing, extra = [k for k in _keys(first) if k not in other], [k for k in _keys(other) if k not in first]
        faults = [f"{word} {abbreviated(keys)}" for word, keys in (("without", missing), ("with", extra)) if keys]
        yield f"at {_place(path)}: {_kind(first, node)} against one {' and '.join(faults)}"
        return
    if len(pairs) != len(others):
        yield f"at {_place(path)}: {_kind(first, node)} against {_kind(other, against)}"
        return
    try:
        comparable, same = True, bool(metadata == other_metadata)
    except Exception:
        comparable, same = False, False
    if not same:
        advice = "" if comparable else "; comparing them failed: metadata must be hashable and comparable, not an array"
        sides = f"{abbreviated(metadata)} against {abbreviated(other_metadata)}"
        yield f"at {_place(path)}: {type(first).__name__} with metadata {sides}{advice}"
        return
    for (key, child), (_, other_child) in zip(pairs, others):
        yield from _differences(child, other_child, (*path, key), is_leaf, prefix)


def _kind(tree: Any, node: tuple[Iterable[Any], Hashable] | None) -> str:
    """Describe one node, or a leaf (`node` None) by its type."""
    name = type(tree).__name__
    if node is None:
        return "a leaf" if type(tree) is _Placeholder else f"a leaf of type {name}"
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return f"{name} with keys {abbreviated(_keys(tree))}"
    size = len(list(node[0]))
    if type(tree) in (list, tuple):
        return f"{name} of length {size}"
    if isinstance(tree, tuple):
        return f"namedtuple {name} of length {size}"
    return f"{name} with {size} {'child' if size == 1 else 'children'}"


def _keys(tree: dict[Any, Any]) -> list[Any]:
    """Return the keys in the order of the leaves."""
    return list(tree) if isinstance(tree, OrderedDict) else sorted(tree)


def treedef_difference(first: PyTreeDef, other: PyTreeDef) -> str | None:
    """Say where and how two structures differ, as `structure_difference` does; None when they are equal."""
    if first == other:
        return None
    try:
        trees = [treedef.unflatten([_PLACEHOLDER] * treedef.num_leaves) for treedef in (first, other)]
        difference = structure_difference(*trees, prefix=False)
    except Exception:
        # A registered class may reject placeholders for its children.
        difference = None
    return difference if difference is not None else f"between {first} and {other}"


def describe_leaves(treedef: PyTreeDef, descriptions: Sequence[str]) -> Any:
    """Return the structure with a text for each leaf, for messages; as it is if a registered class takes no texts."""
    try:
        described = treedef.unflatten(descriptions)
        return described if tree_leaves(described) == list(descriptions) else treedef
    except Exception:
        return treedef


class _Placeholder:
    """Stands for a leaf."""


_PLACEHOLDER = _Placeholder()


class Partial(functools.partial[Any]):
    """``functools.partial`` as a pytree: positional and keyword arguments are children, the function is metadata.

    A partial given as `func` is kept whole, not merged, so that the arguments it holds stay part of the function.
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        if not callable(func):
            raise TypeError(f"Partial: func must be a function; got {abbreviated(func)}")
        if isinstance(func, functools.partial):
            func = _WholeFunction(func)
        return super().__new__(cls, func, *args, **kw)


class _WholeFunction:
    """A partial hidden from functools.partial, which would merge its arguments; equal when the partial is the same."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WholeFunction) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


register_pytree_node(
    OrderedDict, lambda tree: (tuple(tree.values()), tuple(tree)), lambda keys, values: OrderedDict(zip(keys, values)),
    lambda tree: (tuple((DictKey(key), value) for key, value in tree.items()), tuple(tree)),
)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = tuple(sorted(tree))
    return tuple(tree[key] for key in keys), (tree.default_factory, keys)


def _flatten_defaultdict_with_keys(tree: defaultdict[Any, Any]) -> tuple[tuple[tuple[Any, Any], ...], Hashable]:
    children, metadata = _flatten_defaultdict(tree)
    return tuple((DictKey(key), child) for key, child in zip(sorted(tree), children)), metadata


def _unflatten_defaultdict(metadata: tuple[Any, tuple[Any, ...]], children: Iterable[Any]) -> defaultdict[Any, Any]:
    default_factory, keys = metadata
    return defaultdict(default_factory, zip(keys, children))


register_pytree_node(defaultdict, _flatten_defaultdict, _unflatten_defaultdict, _flatten_defaultdict_with_keys)
register_pytree_node(
    Partial, lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)
