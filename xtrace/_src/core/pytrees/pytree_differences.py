"""Messages about pytrees: differences between two, and reasons why one cannot be flattened, with the paths of nodes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees.key_paths import ignore_path, keystr
from xtrace._src.xla import pytree_registry
from xtrace._src.xla.pytree_registry import PyTreeDef, flatten

_IsLeaf = Callable[..., bool] | None

# How many differences a message lists.
_LISTED = 10


def explain_flatten_error(error: Exception, tree: object, is_leaf: object = None) -> None:
    """Raise a better error for a failed flattening of `tree` if the cause is a known one; otherwise return.

    For callers of `flatten`, whose C++ errors name neither the argument nor the place.
    """
    if isinstance(error, SystemError):
        if isinstance(error.__cause__, RecursionError):
            raise RecursionError("the pytree is nested too deeply, or contains itself") from None
        return
    if is_leaf is not None and not callable(is_leaf):
        raise TypeError(f"is_leaf must be a function; got {abbreviate(is_leaf)}") from None
    unsortable = _find_unsortable(tree, ())
    if unsortable is not None:
        path, keys = unsortable
        raise ValueError(
            f"the keys of the dict at {_place(path)} cannot be sorted, which gives its leaves their order: "
            f"{abbreviate(keys)}; use keys of one type, or an OrderedDict"
        ) from error


def _find_unsortable(tree: Any, path: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]] | None:
    """Return the path and the keys of the first dict whose keys cannot be sorted; None if there is none."""
    if type(tree) in (dict, defaultdict):
        try:
            sorted(tree)
        except Exception:
            return path, list(tree)
    try:
        node = pytree_registry.flatten_one_level_with_keys(tree)
        pairs = [] if node is None else list(node[0])
    except Exception:
        # A registered class failed to flatten; its own error is shown.
        return None
    for key, child in pairs:
        inner = _find_unsortable(child, (*path, key))
        if inner is not None:
            return inner
    return None


def _place(path: tuple[Any, ...]) -> str:
    return f"key path {keystr(path)}" if path else "the root"


def structure_difference(
    first: object, other: object, is_leaf: _IsLeaf = None, *, is_leaf_takes_path: bool = False, prefix: bool = True
) -> str | None:
    """Describe the differences of `other` from the structure of `first`; None if there are none.

    The text continues a sentence, such as ``at key path ['b'][1]: list of length 2 against list of length 3``; several
    places are a list, a line each. prefix: whether a leaf of `first` matches any subtree of `other`.
    """
    predicate = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        predicate = ignore_path(is_leaf)
    differences = [f"at {_place(path)}: {kinds}" for path, kinds in find_differences(first, other, predicate, prefix)]
    if len(differences) > 1:
        return f"at {len(differences)} places:\n{list_faults(differences)}\n"
    return differences[0] if differences else None


def list_faults(faults: Sequence[str]) -> str:
    """Return the first faults for a message, a line each, and the number of the others."""
    lines = [f"  * {fault}" for fault in faults[:_LISTED]]
    return "\n".join(lines + ([f"  * and {len(faults) - _LISTED} more"] if len(faults) > _LISTED else []))


def find_differences(
    first: object, other: object, is_leaf: Callable[[Any, Any], bool] | None, prefix: bool, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the path and the description of each difference of `other` from the structure of `first`."""
    stops = is_leaf is not None and is_leaf(path, first)
    node = None if stops else pytree_registry.flatten_one_level_with_keys(first)
    against = pytree_registry.flatten_one_level_with_keys(other)
    if node is None and (prefix or against is None):
        return
    if node is None or against is None or type(first) is not type(other):
        kinds = _kind(first, node), _kind(other, against)
        yield path, f"{kinds[0]} against {kinds[1]}"
        return
    (pairs, metadata), (others, other_metadata) = (list(node[0]), node[1]), (list(against[0]), against[1])
    if isinstance(first, dict) and isinstance(other, dict) and first.keys() != other.keys():
        missing, extra = [k for k in _keys(first) if k not in other], [k for k in _keys(other) if k not in first]
        faults = [f"{word} {abbreviate(keys)}" for word, keys in (("without", missing), ("with", extra)) if keys]
        # Programs search messages for jaxlib's words, "Dict key mismatch".
        yield path, f"{_kind(first, node)} against one {' and '.join(faults)} (Dict key mismatch)"
        return
    if len(pairs) != len(others):
        yield path, f"{_kind(first, node)} against {_kind(other, against)}"
        return
    try:
        comparable, same = True, bool(metadata == other_metadata)
    except Exception:
        comparable, same = False, False
    if not same:
        advice = "" if comparable else "; comparing them failed: metadata must be hashable and comparable, not an array"
        sides = f"{abbreviate(metadata)} against {abbreviate(other_metadata)}"
        yield path, f"{type(first).__name__} with metadata {sides}{advice}"
        return
    for (key, child), (_, other_child) in zip(pairs, others):
        yield from find_differences(child, other_child, is_leaf, prefix, (*path, key))


def _kind(tree: object, node: tuple[Iterable[Any], Hashable] | None) -> str:
    """Describe a node, or a leaf, for which `node` is None, by its type."""
    name = type(tree).__name__
    if node is None:
        return "a leaf" if type(tree) is _Placeholder else f"a leaf of type {name}"
    if tree is None:
        return "None"
    if isinstance(tree, dict):
        return f"{name} with keys {abbreviate(_keys(tree))}"
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
    """Describe the differences of two structures as `structure_difference` does; None if they are equal."""
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
    """Return a tree with a text in the place of each leaf, for messages; the structure if a class takes no texts."""
    try:
        described = treedef.unflatten(descriptions)
        return described if flatten(described)[0] == list(descriptions) else treedef
    except Exception:
        return treedef


class _Placeholder:
    """Stands for a leaf."""


_PLACEHOLDER = _Placeholder()
