"""Registration of classes whose instances are nodes of pytrees, and the classes that are registered from the start."""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees.pytree import check_function
from xtrace._src.xla import pytree_registry
from xtrace._src.xla.pytree_registry import DictKey

_Class = TypeVar("_Class", bound=type)


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Register a class whose instances are nodes.

    Args:
        nodetype: a class.
        flatten_func: a function of an instance that returns (children, metadata); metadata is hashable and comparable.
        unflatten_func: a function of (metadata, children) that returns an instance.
        flatten_with_keys_func: a function of an instance that returns ((key, child) pairs, metadata); without it,
            children are named by their positions.

    Raises:
        TypeError: `nodetype` is no class.
        ValueError: the class is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, x, y): self.x, self.y = x, y
        >>> xtrace.tree_util.register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, c: Pair(*c))
        >>> xtrace.tree.leaves(Pair(1, (2, 3)))
        [1, 2, 3]
    """
    _check_class(nodetype, "register_pytree_node", "nodetype")
    check_function(flatten_func, "register_pytree_node", "flatten_func")
    check_function(unflatten_func, "register_pytree_node", "unflatten_func")
    if flatten_with_keys_func is not None:
        check_function(flatten_with_keys_func, "register_pytree_node", "flatten_with_keys_func")
    _check_unregistered(nodetype)
    pytree_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: _Class) -> _Class:
    """Register the decorated class, whose instances are nodes.

    Args:
        cls: a class with the method ``tree_flatten``, which returns (children, metadata), and the class method
            ``tree_unflatten``, which takes (metadata, children).

    Returns:
        The class.

    Raises:
        TypeError: the class has no such methods.
        ValueError: the class is registered already.

    Example:
        >>> class Box(list):
        ...     tree_flatten = lambda self: (list(self), None)
        ...     tree_unflatten = classmethod(lambda cls, _, children: cls(children))
        >>> xtrace.tree.map(lambda x: x + 1, xtrace.tree_util.register_pytree_node_class(Box)([1, 2]))
        [2, 3]
    """
    flatten_func, unflatten_func = _methods(cls, "register_pytree_node_class", "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, flatten_func, unflatten_func)
    return cls


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Register a class whose instances are nodes with named children.

    Args:
        nodetype: a class.
        flatten_with_keys: a function of an instance that returns ((key, child) pairs, metadata).
        unflatten_func: a function of (metadata, children) that returns an instance.
        flatten_func: a faster function without keys, which returns (children, metadata).

    Raises:
        TypeError: `nodetype` is no class.
        ValueError: the class is registered already.

    Example:
        >>> class Unit: x = 1
        >>> key = xtrace.tree_util.GetAttrKey("x")
        >>> xtrace.tree_util.register_pytree_with_keys(Unit, lambda u: (((key, u.x),), None), lambda _, c: Unit())
        >>> xtrace.tree.leaves_with_path(Unit())
        [((GetAttrKey(name='x'),), 1)]
    """
    check_function(flatten_with_keys, "register_pytree_with_keys", "flatten_with_keys")
    if flatten_func is None:
        flatten_func = _drop_keys(flatten_with_keys)
    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def _drop_keys(flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]) -> Callable[..., Any]:
    def flatten_func(value: object) -> tuple[list[Any], Hashable]:
        pairs, metadata = flatten_with_keys(value)
        return [child for _, child in pairs], metadata

    return flatten_func


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Register the decorated class, whose instances are nodes with named children.

    Args:
        cls: a class with the method ``tree_flatten_with_keys``, which returns ((key, child) pairs, metadata), and the
            class method ``tree_unflatten``, which takes (metadata, children). The optional method ``tree_flatten``
            returns (children, metadata) faster.

    Returns:
        The class.

    Raises:
        TypeError: the class has no such methods.
        ValueError: the class is registered already.

    Example:
        >>> class One(list):
        ...     tree_flatten_with_keys = lambda self: (((xtrace.tree_util.DictKey("one"), self[0]),), None)
        ...     tree_unflatten = classmethod(lambda cls, _, children: cls(children))
        >>> xtrace.tree.leaves_with_path(xtrace.tree_util.register_pytree_with_keys_class(One)([1]))
        [((DictKey(key='one'),), 1)]
    """
    names = ("tree_flatten_with_keys", "tree_unflatten")
    flatten_with_keys, unflatten_func = _methods(cls, "register_pytree_with_keys_class", *names)
    register_pytree_with_keys(cls, flatten_with_keys, unflatten_func, getattr(cls, "tree_flatten", None))
    return cls


def register_dataclass(
    nodetype: _Class, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _Class:
    """Register a class whose instances are nodes with fields as children.

    Args:
        nodetype: a class, usually a dataclass. Unflattening calls it with its fields by keyword.
        data_fields: the names of fields that are children; None for all fields of a dataclass that are not static.
        meta_fields: the names of fields that are metadata, hashable; None for the fields made by ``tree.static()``.
        drop_fields: the names of fields that keep their defaults.

    Returns:
        The class, so that this is a decorator.

    Raises:
        TypeError: the class is no dataclass and there are no lists, or only one of the lists is given.
        ValueError: the lists are not the fields of the constructor, or the class is registered already.

    Example:
        >>> import dataclasses
        >>> Point = xtrace.tree_util.register_dataclass(dataclasses.make_dataclass("Point", ["x", "y"]))
        >>> xtrace.tree.map(lambda v: v + 1, Point(1, 2))
        Point(x=2, y=3)
    """
    _check_class(nodetype, "register_dataclass", "nodetype")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None and meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {abbreviate(nodetype)} is not a dataclass; give data_fields and meta_fields"
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
    """Register the decorated class, whose instances are nodes without children.

    Args:
        cls: a class whose instances are hashable and comparable; each is its own metadata.

    Returns:
        The class.

    Raises:
        ValueError: the class is registered already.

    Example:
        >>> class Mode(str): pass
        >>> xtrace.tree.leaves([1, xtrace.tree_util.register_static(Mode)("train")])
        [1]
    """
    _check_class(cls, "register_static", "cls")
    register_pytree_node(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def static_field(**kwargs: Any) -> Any:
    """Return a dataclass field that `register_dataclass` takes as metadata.

    Args:
        kwargs: the arguments of ``dataclasses.field``.

    Returns:
        A ``dataclasses.Field``.

    Raises:
        TypeError: an argument is unknown to ``dataclasses.field``.

    Example:
        >>> import dataclasses
        >>> State = dataclasses.make_dataclass("State", [("x", float), ("name", str, xtrace.tree.static())])
        >>> xtrace.tree.leaves(xtrace.tree_util.register_dataclass(State)(1.0, "a"))
        [1.0]
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


def _check_class(cls: object, operation: str, name: str) -> None:
    if not isinstance(cls, type):
        raise TypeError(f"{operation}: {name} must be a class; got {abbreviate(cls)}")


def _methods(cls: type, operation: str, *names: str) -> list[Callable[..., Any]]:
    _check_class(cls, operation, "cls")
    methods = [getattr(cls, name, None) for name in names]
    for name, method in zip(names, methods):
        if not callable(method):
            raise TypeError(f"{operation}: the class {cls.__name__} has no method {name}")
    return methods  # type: ignore[return-value]


def _check_unregistered(cls: type) -> None:
    # `is_node` is true of every named tuple; for a registered one, the registry itself raises.
    if pytree_registry.is_node(cls) and not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise ValueError(f"{abbreviate(cls)} is a pytree node already; a class is registered once")


class Partial(functools.partial[Any]):
    """A ``functools.partial`` that is a node: the arguments are children, the function is metadata.

    Args:
        func: a function.
        args: its first arguments, trees of arrays.
        kw: arguments by name, trees of arrays.

    Raises:
        TypeError: `func` cannot be called.

    Example:
        >>> xtrace.tree.leaves(xtrace.tree_util.Partial(jnp.add, 1.0))
        [1.0]
    """

    def __new__(cls, func: Callable[..., Any], /, *args: object, **kw: object) -> Partial:
        if not callable(func):
            raise TypeError(f"Partial: func must be a function; got {abbreviate(func)}")
        if isinstance(func, functools.partial):
            func = _WholeFunction(func)
        return super().__new__(cls, func, *args, **kw)


class _WholeFunction:
    """Hides a partial from functools.partial, which would merge its arguments; equal to that partial, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "function":  # while a copy or an unpickled object has no attributes
            raise AttributeError(name)
        return getattr(self.function, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.function == (other.function if isinstance(other, _WholeFunction) else other))

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> tuple[tuple[Any, ...], Hashable]:
    keys = tuple(sorted(tree))
    return tuple(tree[key] for key in keys), (tree.default_factory, keys)


def _flatten_defaultdict_with_keys(tree: defaultdict[Any, Any]) -> tuple[tuple[tuple[Any, Any], ...], Hashable]:
    children, metadata = _flatten_defaultdict(tree)
    return tuple((DictKey(key), child) for key, child in zip(sorted(tree), children)), metadata


def _unflatten_defaultdict(metadata: tuple[Any, tuple[Any, ...]], children: Iterable[Any]) -> defaultdict[Any, Any]:
    default_factory, keys = metadata
    return defaultdict(default_factory, zip(keys, children))


register_pytree_node(
    OrderedDict, lambda tree: (tuple(tree.values()), tuple(tree)), lambda keys, values: OrderedDict(zip(keys, values)),
    lambda tree: (tuple((DictKey(key), value) for key, value in tree.items()), tuple(tree)),
)
register_pytree_node(defaultdict, _flatten_defaultdict, _unflatten_defaultdict, _flatten_defaultdict_with_keys)
register_pytree_node(
    Partial, lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)
