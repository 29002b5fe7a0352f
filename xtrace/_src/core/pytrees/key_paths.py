"""Key paths: the keys and positions from the root of a pytree to a leaf."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from xtrace._src.xla.pytree_registry import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Return a key path as text.

    Args:
        keys: a key path, as `tree_flatten_with_path` gives.
        simple: whether each key is its bare name or number, without brackets and quotes.
        separator: the text between keys.

    Returns:
        A str, such as ``"['a'][0].x"``; simple, ``"a0x"``.

    Raises:
        TypeError: `keys` cannot be iterated.

    Example:
        >>> path = xtrace.tree.leaves_with_path({"a": [1]})[0][0]
        >>> xtrace.tree_util.keystr(path), xtrace.tree_util.keystr(path, simple=True, separator="/")
        ("['a'][0]", 'a/0')
    """
    return separator.join(_simple_key(key) if simple else str(key) for key in keys)


def _simple_key(key: object) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return key.name
        case _:
            return str(key)


def ignore_path(is_leaf: Callable[[Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a predicate on paths and nodes that ignores the path and calls `is_leaf` on the node."""
    return lambda path, node: is_leaf(node)
