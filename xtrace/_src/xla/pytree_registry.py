"""jaxlib's C++ pytrees: the one registry of xtrace, separate from jax's, and the classes that come with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from jaxlib import _jax

_pytree = _jax.pytree

registry: Any = _pytree.PyTreeRegistry()
# A PyTreeDef pickles its registry by reference, as a global of this name.
registry.__module__ = __name__
registry.__name__ = "registry"

if TYPE_CHECKING:

    class PyTreeDef:
        """The structure of a pytree: node types with their metadata, and where the leaves go."""

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: object) -> list[Any]: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        def from_iterable_tree(self, tree: object, /) -> Any: ...
        def walk(self, node: Callable[[Any, Any], Any], leaf: object, leaves: Iterable[Any], /) -> Any: ...

    class SequenceKey:
        """A step of a key path: position `idx` of a list or tuple."""

        idx: int

        def __init__(self, idx: int) -> None: ...

    class DictKey:
        """A step of a key path: the entry `key` of a dict."""

        key: Any

        def __init__(self, key: Any) -> None: ...

    class GetAttrKey:
        """A step of a key path: the attribute `name`."""

        name: str

        def __init__(self, name: str) -> None: ...

    class FlattenedIndexKey:
        """A step of a key path: child number `key` of a node registered without keys."""

        key: int

        def __init__(self, key: int) -> None: ...

else:
    PyTreeDef = _pytree.PyTreeDef
    SequenceKey = _pytree.SequenceKey
    DictKey = _pytree.DictKey
    GetAttrKey = _pytree.GetAttrKey
    FlattenedIndexKey = _pytree.FlattenedIndexKey

# Bound C++ methods, called as they are: (tree, leaf_predicate) -> (leaves, treedef), and the same with key paths.
flatten: Callable[..., tuple[list[Any], PyTreeDef]] = registry.flatten
flatten_with_path: Callable[..., tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]] = registry.flatten_with_path

# (tree) -> (children, metadata), None for a leaf.
flatten_one_level: Callable[[Any], tuple[Iterable[Any], Hashable] | None] = registry.flatten_one_level
is_node: Callable[[Any], bool] = registry.is_node
register_node: Callable[..., Any] = registry.register_node
register_dataclass_node: Callable[..., Any] = registry.register_dataclass_node


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable] | None:
    """Return ((key, child) pairs, metadata) of the node `tree`, None for a leaf."""
    flattened: tuple[Iterable[tuple[Any, Any]], Hashable] | None = registry.flatten_one_level_with_keys(tree)
    kind: Any = type(tree)
    names = getattr(kind, "_fields", None)
    if flattened is not None and names is not None and flattened[1] is kind:
        # jaxlib 0.10 gives every child of a namedtuple that is not registered the key of the first.
        return [(GetAttrKey(name), child) for name, child in zip(names, tree)], flattened[1]
    return flattened


def all_leaves(iterable: Iterable[Any]) -> bool:
    """Whether no element of `iterable` is a node."""
    return bool(_pytree.all_leaves(registry, iterable))


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the given structures."""
    made: PyTreeDef = _pytree.treedef_tuple(registry, list(treedefs))
    return made


def treedef_of(node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a node: its class with its metadata, and the structures of its children."""
    made: PyTreeDef = _pytree.PyTreeDef.from_node_data_and_children(registry, node_data, list(children))
    return made
