"""The structures of arguments and results as records, and the registered classes of their nodes."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree
from xtrace._src.export.flatbuffers import DamagedFileError, Record
from xtrace._src.export.schema import CUSTOM, DICT, LEAF, LIST, NONE, TUPLE
from xtrace._src.xla.pytree_registry import PyTreeDef, make_treedef

_Class = TypeVar("_Class", bound=type)


class _Node(NamedTuple):
    """The form of a class' nodes in files: the name of the class, and the conversion of metadata to bytes and back."""

    cls: type
    name: str
    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


# The registered nodes, by class and by name.
_by_class: dict[type, _Node] = {}
_by_name: dict[str, _Node] = {}


def register_pytree_node_serialization(
    nodetype: _Class, *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any], from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> _Class:
    """Register a pytree class for files: functions of its objects can then be serialized.

    Args:
        nodetype: the class, a registered pytree.
        serialized_name: the name of the class in files; a process that reads a file must register the same name.
        serialize_auxdata: converts the metadata of a node, such as the second result of ``tree_flatten``, to bytes.
        deserialize_auxdata: converts bytes to metadata.
        from_children: ``from_children(metadata, children)`` returns an object; None for the class' function of the
            pytree registry.

    Returns:
        The class.

    Raises:
        TypeError: `nodetype` is no class, `serialized_name` no string, or another argument no function.
        ValueError: the class is no pytree, or the class or the name is registered already.

    Example:
        >>> @xtrace.tree_util.register_pytree_node_class
        ... class Scale:
        ...     def __init__(self, factor, unit): self.factor, self.unit = factor, unit
        ...     def tree_flatten(self): return (self.factor,), self.unit
        ...     @classmethod
        ...     def tree_unflatten(cls, unit, children): return cls(*children, unit)
        >>> _ = xtrace.export.register_pytree_node_serialization(
        ...     Scale, serialized_name="example.Scale", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode)
        >>> exported = xtrace.export.export(xtrace.jit(lambda s: s.factor * 2.0))(Scale(1.0, "m"))
        >>> xtrace.export.deserialize(exported.serialize()).call(Scale(3.0, "m"))
        Array(6., dtype=float32)
    """
    function = "register_pytree_node_serialization"
    _check_names(function, nodetype, serialized_name)
    for name, given in (("serialize_auxdata", serialize_auxdata), ("deserialize_auxdata", deserialize_auxdata)):
        if not callable(given):
            raise TypeError(f"{function}: {name} must be a function, got {abbreviate(given)}")
    if from_children is not None and not callable(from_children):
        raise TypeError(f"{function}: from_children must be a function or None, got {abbreviate(from_children)}")
    if from_children is None and not _is_registered(nodetype):
        raise ValueError(
            f"{function}: {nodetype.__qualname__} is no pytree; register it first, with "
            "xtrace.tree_util.register_pytree_node, or give from_children"
        )
    _register(function, _Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: _Class, *, serialized_name: str) -> _Class:
    """Register a class of ``collections.namedtuple`` for files: functions of its objects can then be serialized.

    Args:
        nodetype: the class.
        serialized_name: the name of the class in files; a process that reads a file must register the same name.

    Returns:
        The class.

    Raises:
        TypeError: `nodetype` is no class, or `serialized_name` no string.
        ValueError: `nodetype` is no class of namedtuples, or the class or the name is registered already.

    Example:
        >>> import collections
        >>> Pair = collections.namedtuple("Pair", ["first", "second"])
        >>> _ = xtrace.export.register_namedtuple_serialization(Pair, serialized_name="example.Pair")
        >>> exported = xtrace.export.export(xtrace.jit(lambda p: p.first + p.second))(Pair(1.0, 2.0))
        >>> xtrace.export.deserialize(exported.serialize()).call(Pair(3.0, 4.0))
        Array(7., dtype=float32)
    """
    function = "register_namedtuple_serialization"
    _check_names(function, nodetype, serialized_name)
    names = getattr(nodetype, "_fields", None)
    if names is None or not issubclass(nodetype, tuple):
        raise ValueError(
            f"{function}: {nodetype.__qualname__} is no class of collections.namedtuple; use "
            "register_pytree_node_serialization for other classes"
        )
    fields = list(names)

    def deserialize(data: bytes) -> None:
        if json.loads(data) != fields:
            raise ValueError(f"the fields in the file are {bytes(data).decode()}, and the class has {fields}")

    _register(function, _Node(nodetype, serialized_name, lambda _: json.dumps(fields).encode(), deserialize, None))
    return nodetype


def _check_names(function: str, nodetype: object, serialized_name: object) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{function}: nodetype must be a class, got {abbreviate(nodetype)}")
    if not isinstance(serialized_name, str):
        raise TypeError(f"{function}: serialized_name must be a string, got {abbreviate(serialized_name)}")


def _is_registered(cls: type) -> bool:
    try:
        make_treedef((cls, None), [])
    except RuntimeError:
        return False
    except Exception:
        return True
    return True


def _register(function: str, node: _Node) -> None:
    known = _by_class.get(node.cls)
    if known is not None:
        raise ValueError(
            f"{function}: {node.cls.__qualname__} is registered already, by the serialized_name "
            f"{abbreviate(known.name)}"
        )
    other = _by_name.get(node.name)
    if other is not None:
        raise ValueError(
            f"{function}: the serialized_name {abbreviate(node.name)} belongs to {other.cls.__qualname__} already; "
            "use another name"
        )
    _by_class[node.cls] = _by_name[node.name] = node


_register("export", _Node(
    collections.OrderedDict, "collections.OrderedDict", lambda keys: json.dumps(keys).encode(),
    lambda data: tuple(json.loads(data)), None,
))


def make_tree_record(tree: PyTreeDef) -> Record:
    """Return the record of a structure; ValueError for an unregistered class, TypeError for a key that is no string."""
    data = tree.node_data()
    if data is None:
        return {"kind": LEAF}
    cls, metadata = data
    record: Record = {"children": [make_tree_record(child) for child in tree.children()]}
    if cls in (dict, collections.OrderedDict):
        other = [key for key in metadata if not isinstance(key, str)]
        if other:
            raise TypeError(
                f"serialize: the keys of dicts must be strings, and one in the arguments or results is "
                f"{abbreviate(other[0])}; use a string"
            )
    if cls is dict:
        return record | {"kind": DICT, "children_names": metadata}
    kinds = {tuple: TUPLE, list: LIST, type(None): NONE}
    if cls in kinds:
        return record | {"kind": kinds[cls]}
    node = _by_class.get(cls)
    if node is None:
        raise ValueError(
            f"serialize: an argument or result is a {cls.__module__}.{cls.__qualname__}, an unregistered type; "
            "register it with export.register_pytree_node_serialization or export.register_namedtuple_serialization"
        )
    auxdata = node.serialize(metadata)
    if not isinstance(auxdata, (bytes, bytearray)):
        raise TypeError(
            f"serialize: serialize_auxdata of {cls.__qualname__} must return bytes, got {abbreviate(auxdata)}"
        )
    return record | {"kind": CUSTOM, "custom_name": node.name, "auxdata": auxdata}


def read_tree(record: Record | None) -> PyTreeDef:
    """Return the structure of a record; DamagedFileError for an invalid record."""
    if record is None:
        raise DamagedFileError("it has no structure of arguments or results")
    kind, children = record["kind"], [read_tree(child) for child in record["children"] or []]
    if kind == LEAF and not children:
        return make_treedef(None, [])
    if kind == NONE and not children:
        return make_treedef((type(None), None), [])
    if kind == TUPLE:
        return make_treedef((tuple, None), children)
    if kind == LIST:
        return make_treedef((list, None), children)
    if kind == DICT:
        names = record["children_names"] or []
        if len(names) != len(children) or sorted(set(names)) != names:
            raise DamagedFileError("the keys of a dict in it do not fit its entries")
        return make_treedef((dict, names), children)
    if kind == CUSTOM:
        return _read_custom_tree(record, children)
    raise DamagedFileError(f"it has a node of the unknown kind {kind}")


def _read_custom_tree(record: Record, children: list[PyTreeDef]) -> PyTreeDef:
    name = record["custom_name"]
    node = _by_name.get(name)
    if node is None:
        raise ValueError(
            f"deserialize: an argument or result is a {abbreviate(name)}, which is not registered in this process; "
            "call export.register_pytree_node_serialization or export.register_namedtuple_serialization with this "
            "serialized_name first"
        )
    try:
        metadata = node.deserialize(record["auxdata"] or b"")
        if node.from_children is not None:
            objects = [child.unflatten([0] * child.num_leaves) for child in children]
            return pytree.tree_structure(node.from_children(metadata, objects))
        _check_child_count(node, metadata, len(children))
        return make_treedef((node.cls, metadata), children)
    except DamagedFileError:
        raise
    except Exception as error:
        raise ValueError(
            f"deserialize: the metadata of a {abbreviate(name)} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _check_child_count(node: _Node, metadata: Any, count: int) -> None:
    """Raise DamagedFileError if a namedtuple or an OrderedDict has another number of children."""
    fields = getattr(node.cls, "_fields", metadata if node.cls is collections.OrderedDict else None)
    if fields is not None and len(fields) != count:
        raise DamagedFileError(f"a {abbreviate(node.name)} in it has {count} children instead of {len(fields)}")
