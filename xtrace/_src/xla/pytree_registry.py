"""jaxlib's C++ pytrees: xtrace's registry, separate from jax's, and the classes of structures and keys."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from jaxlib import _jax

_pytree = _jax.pytree

registry = _pytree.PyTreeRegistry()
# A PyTreeDef pickles its registry by reference, as a global of this name.
registry.__module__ = __name__
registry.__name__ = "registry"

PyTreeDef = _pytree.PyTreeDef
SequenceKey = _pytree.SequenceKey
DictKey = _pytree.DictKey
GetAttrKey = _pytree.GetAttrKey
FlattenedIndexKey = _pytree.FlattenedIndexKey

# Bound C++ methods: (tree, leaf_predicate) -> (leaves, treedef), and the same with key paths.
flatten = registry.flatten
flatten_with_path = registry.flatten_with_path

# (tree) -> (children, metadata), None for a leaf.
flatten_one_level = registry.flatten_one_level
is_node = registry.is_node

# The functions, or the names of fields, of each registered class; the registry itself does not return them.
functions_of_nodes: dict[type, tuple[Any, ...]] = {}


def register_node(kind: type, *functions: Any) -> None:
    """Register a class with the functions that flatten and unflatten its instances."""
    registry.register_node(kind, *functions)
    functions_of_nodes[kind] = functions


def register_dataclass_node(kind: type, data: Any, metadata: Any) -> None:
    """Register a dataclass with the names of the fields that are children, and of those that are metadata."""
    registry.register_dataclass_node(kind, data, metadata)
    functions_of_nodes[kind] = (tuple(data), tuple(metadata))


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable] | None:
    """Return ((key, child) pairs, metadata) of the node `tree`, None for a leaf."""
    flattened = registry.flatten_one_level_with_keys(tree)
    kind: Any = type(tree)
    names = getattr(kind, "_fields", None)
    if flattened is not None and names is not None and flattened[1] is kind:
        # jaxlib 0.10 gives all children of an unregistered namedtuple the key of the first one.
        return [(GetAttrKey(name), child) for name, child in zip(names, tree)], flattened[1]
    return flattened


def all_leaves(iterable: Iterable[Any]) -> bool:
    """Whether no element of `iterable` is a node."""
    return _pytree.all_leaves(registry, iterable)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the given structures."""
    return _pytree.treedef_tuple(registry, list(treedefs))


def make_treedef(node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a node: its class with its metadata, and the structures of its children."""
    return PyTreeDef.from_node_data_and_children(registry, node_data, list(children))
