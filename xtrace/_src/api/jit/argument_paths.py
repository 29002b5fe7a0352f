"""The users' expressions for the leaves of a call's arguments, such as ``params['w'][0]``, for messages and reports."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any

from xtrace._src.api.jit.static_arguments import Static
from xtrace._src.core import callables
from xtrace._src.xla.pytree_registry import PyTreeDef


def list_argument_paths(function: Callable[..., Any] | None, static: Static, in_tree: Any) -> list[str]:
    """Return the path of each traced leaf, in the form users write: ``x``, ``params['w'][0]``, ``args[2]``."""
    args, kwargs = in_tree.children()
    fixed = {n for n, _ in static.positional}
    count = len(args.children()) + len(fixed)
    numbers = [n for n in range(count) if n not in fixed]
    names = callables.positional_names(function, count)
    known = callables.find_signature(function)
    keywords = kwargs.node_data()[1]
    rest = callables.name_rest_keywords(known)
    named = [name if known is None or name in known.parameters else f"{rest}[{name!r}]" for name in keywords]
    trees = [*args.children(), *kwargs.children()]
    return callables.describe_leaf_paths([*[names[n] for n in numbers], *named], trees)


def defer_argument_paths(function: Callable[..., Any], static: Static, in_tree: PyTreeDef) -> Callable[[], list[str]]:
    """Return a function that returns `list_argument_paths`; it does not keep `function` alive, whose caches hold it."""
    owner: Callable[[], Callable[..., Any] | None]
    try:
        owner = weakref.WeakMethod(function) if isinstance(function, MethodType) else weakref.ref(function)
    except TypeError:  # an object without weak references, whose caches live only as long as its wrapper
        return lambda: list_argument_paths(function, static, in_tree)
    return lambda: list_argument_paths(owner(), static, in_tree)
