"""Functions that users give: their names and places in messages, and the check that they can be called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar, cast

from xtrace._late_imports import late_modules
from xtrace._src.core.avals import short_repr
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_Wrapper = TypeVar("_Wrapper")


def function_name(function: Callable[..., Any]) -> str:
    """Return the name a function goes by in jaxprs, modules and messages."""
    name = getattr(function, "__name__", None)
    if name is None and isinstance(function, functools.partial):
        return function_name(function.func)
    return name if isinstance(name, str) else type(function).__name__


def wraps(function: Callable[..., Any], updated: Sequence[str] = ("__dict__",)) -> Callable[[_Wrapper], _Wrapper]:
    """Return `functools.wraps` of a user's callable; it leaves out names that a function cannot have.

    Objects may have a ``__name__`` that is no string, or a module without one.
    """
    assigned: Sequence[str] = functools.WRAPPER_ASSIGNMENTS
    if type(function) is not FunctionType:
        assigned = [n for n in assigned if isinstance(getattr(function, n, None), (str, dict, tuple))]
    return cast(Any, functools.wraps(function, assigned, updated))  # type: ignore[no-any-return]


def innermost_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside wrappers and partials."""
    try:
        function = inspect.unwrap(function)
    except ValueError:  # a wrapper of itself
        return function
    while isinstance(function, functools.partial):
        function = function.func
    return function


def find_signature(function: Callable[..., Any] | None) -> inspect.Signature | None:
    """Return the signature of `function`; None if it has none."""
    if function is None:
        return None
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def positional_names(function: Callable[..., Any] | None, count: int) -> list[str]:
    """Return the names of the first `count` positional arguments: ``x``, or ``args[2]``."""
    names: list[str] = []
    rest = "args"
    if type(function) is FunctionType and not vars(function):
        # Most functions; `inspect` would take ten times longer.
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount])
        if code.co_flags & inspect.CO_VARARGS:
            rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
    elif (signature := find_signature(function)) is not None:
        for parameter in signature.parameters.values():
            if parameter.kind in POSITIONAL:
                names.append(parameter.name)
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                rest = parameter.name
    return names[:count] + [f"{rest}[{n - len(names)}]" for n in range(len(names), count)]


def name_rest_keywords(signature: inspect.Signature | None) -> str:
    """Return the name of the parameter for all other keyword arguments, ``kwargs`` if there is none."""
    parameters = signature.parameters.values() if signature is not None else ()
    return next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), "kwargs")


def describe_leaf_paths(names: Sequence[str], trees: Sequence[PyTreeDef]) -> list[str]:
    """Return the path of each leaf of the arguments `names` with these trees, such as ``c['w'][0]``."""
    paths = []
    for name, tree in zip(names, trees, strict=True):
        paths += [name + key_paths.keystr(path) for path in pytree.leaf_paths(tree)]
    return paths


def result_paths(tree: PyTreeDef) -> list[str]:
    """Return the users' expressions for the leaves of a result, such as ``result['a'][0]``."""
    return describe_leaf_paths(["result"], [tree])


def make_debug_info(
    transformation: str, function: Callable[..., Any], argument_paths: Callable[[], Sequence[str]] | None = None
) -> DebugInfo:
    """Return the function and the transformation of a jaxpr, for messages."""
    inner = innermost_function(function)
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else (None, None)
    return DebugInfo(transformation, function_name(function), file, line, argument_paths)


def check_callable(fun: object, *, function: str = "") -> None:
    """Raise TypeError if `fun` cannot be called, is a static method out of its class, or a generator function."""
    static = isinstance(fun, staticmethod)
    if callable(fun) and not static and not inspect.isgeneratorfunction(fun):
        return
    if static:
        problem = "staticmethod arguments are not supported: decorate the result, with @staticmethod above; got"
    elif callable(fun):
        problem = "Expected a function, got a generator function; return the values in a list. It is"
    else:
        problem = "Expected a callable value, got"
    raise TypeError(f"{function or called_function()}: {problem} {short_repr(fun)} of type {type(fun)}")


class LazySignature(inspect.Signature):
    """The signature of a jitted function, computed on demand from the wrapped function."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    # All other methods of a signature read these two.
    @property
    def _parameters(self) -> Any:
        return inspect.signature(self._function).parameters

    @property
    def _return_annotation(self) -> Any:
        return inspect.signature(self._function).return_annotation

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        """Return the signature with other parameters, or another annotation of the result."""
        return inspect.signature(self._function).replace(**changes)

    def __reduce__(self) -> Any:
        return LazySignature, (self._function,)
