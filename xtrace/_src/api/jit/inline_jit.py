"""The library's functions as programs: compiled when called eagerly, inlined when called while tracing."""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Iterator, MappingView, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.api.jit.jit import jit_library_function, with_code_of
from xtrace._src.api.jit.jitted import Jitted
from xtrace._src.api.jit.static_arguments import are_hashable, find_keyword_only_names
from xtrace._src.core.array_protocol import accept_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import is_array_like
from xtrace._src.core.flag_parameters import check_flags, check_hashable, find_flags
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.transfer import to_operand
from xtrace._src.transforms import replay

# The size of the table of subprograms of a function.
_LIMIT = 1024
_SCALARS = frozenset((bool, int, float, complex))
_NUMPY_DTYPES = frozenset(map(np.dtype, "?bhiqBHIQefdFD"))
# Arguments of these types are static: their values decide which equations are recorded.
_STATIC_TYPES = (bool, int, str, tuple, type, type(None), np.dtype, enum.Enum)
# Stands for an operand in the key of a call.
_OPERAND = object()

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def inline_jit(
    function: _Function, *, static: Sequence[str] | None = None, public: bool = False, trees: bool = False,
    unless: Callable[..., bool] | None = None, inline: bool = False,
) -> _Function: ...


@overload
def inline_jit(
    function: None = None, *, static: Sequence[str] | None = None, public: bool = False, trees: bool = False,
    unless: Callable[..., bool] | None = None, inline: bool = False,
) -> Callable[[_Function], _Function]: ...


def inline_jit(
    function: Callable[..., Any] | None = None, *, static: Sequence[str] | None = None, public: bool = False,
    trees: bool = False, unless: Callable[..., bool] | None = None, inline: bool = False,
) -> Any:
    """Return a function of the library as one program: compiled for eager calls, inlined while a program is traced.

    The function may depend only on the types of its operands, its static arguments and the settings.

    static: the names of the parameters that are no arrays. The default is the keyword-only parameters; for a public
    function it is empty.
    public: users call the function. The program takes valid arguments; others go to the function itself, which
    raises the error.
    trees: the function is public, and its operands are trees of arrays.
    unless: if it returns True for the arguments given by position, the function itself is called. It may depend on
    their types, and on settings of the cache key.
    inline: an eager derivative has the function's operations in its linear part, as JAX's elementwise functions do.
    """
    if function is None:
        return functools.partial(inline_jit, static=static, public=public, trees=trees, unless=unless, inline=inline)
    public = public or trees
    if static is None:
        static = () if public else find_keyword_only_names(inspect.unwrap(function))
    jitted = jit_library_function(function, tuple(static), inline)
    call = _make_call(function, jitted, public, trees, unless)
    return with_code_of(jitted, accept_objects(call), function)


def _operands_by_name(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the operands that can be given by keyword."""
    code = getattr(function, "__code__", None)
    return frozenset(code.co_varnames[code.co_posonlyargcount : code.co_argcount]) if code is not None else frozenset()


def _append_by_position(function: Any, arrays: tuple[Any, ...], static: dict[str, Any]) -> tuple[Any, ...]:
    """Return `arrays` and the operands after them, which are removed from `static`."""
    names = function.__code__.co_varnames[len(arrays) : function.__code__.co_argcount]
    return (*arrays, *[static.pop(name) for name in itertools.takewhile(lambda name: name in static, names)])


def _explain_refusal(function: Callable[..., Any], arrays: tuple[Any, ...], static: dict[str, Any]) -> Exception:
    """Return the error for static arguments that are not hashable or not parameters of the function."""
    name = function.__name__
    try:
        inspect.signature(function).bind(*arrays, **static)
    except TypeError as error:
        return TypeError(f"{name}(): {error}")
    for argument, value in static.items():
        check_hashable(name, argument, value)
    return TypeError(f"{name}: the arguments {', '.join(static)} are not hashable")


def _make_call(
    function: Callable[..., Any], jitted: Jitted, public: bool, trees: bool, unless: Callable[..., bool] | None
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return the function of ``(args, kwargs)`` for calls that no generated code serves."""
    static, subprograms = jitted.static, Table(_LIMIT)
    numbers, names = frozenset(static.numbers), frozenset(static.names)
    flags = find_flags(inspect.unwrap(function)) if public else {}
    by_name = frozenset() if public else _operands_by_name(function)
    trace_of_thread = current_trace.get

    def accepts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if not are_hashable(static, args, kwargs) or (unless is not None and unless(*args)):
            return False
        operands = [x for i, x in enumerate(args) if i not in numbers]
        operands += [x for name, x in kwargs.items() if name not in names]
        if trees:
            # jaxlib would warn about the view of a dict. A number in a wrong place is shown by the function's message.
            return not any(isinstance(x, MappingView) for x in operands) and all(
                type(x) not in _SCALARS and is_array_like(x) for x in pytree.tree_leaves(operands)
            )
        if names and not args:
            return False
        return all(x is None or type(x) in _SCALARS or _is_array(x) for x in operands)

    def call_itself(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stored = tuple([tuple(x) if i in numbers and isinstance(x, Iterator) else x for i, x in enumerate(args)])
        named = {name: tuple(x) if name in names and isinstance(x, Iterator) else x for name, x in kwargs.items()}
        if any(map(operator.is_not, (*stored, *named.values()), (*args, *kwargs.values()))):
            # The function may read its axes twice.
            return call(stored, named)
        if flags:
            check_flags(function.__name__, flags, args, kwargs)
        return function(*args, **kwargs)

    splits = public and "out_sharding" in names

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if splits and kwargs.get("out_sharding") is not None:
            kwargs = dict(kwargs)
            sharding = requested_out_sharding(kwargs.pop("out_sharding"), function=function.__name__)
            if sharding is not None and any(sharding.sums):
                return function(*args, out_sharding=sharding, **kwargs)
            return with_out_sharding(function, sharding, *args, **kwargs)
        if not public and kwargs:
            if not by_name.isdisjoint(kwargs):
                kwargs = dict(kwargs)
                args = _append_by_position(function, args, kwargs)
            try:
                hash(tuple(kwargs.values()))
            except TypeError:
                raise _explain_refusal(function, args, kwargs) from None
        trace = trace_of_thread()
        if trace.fusion_level:
            return jitted.call(args, kwargs) if not public or accepts(args, kwargs) else call_itself(args, kwargs)
        operands: list[Any] = []
        key = None if trees else _make_key(args, kwargs, numbers, names, public, operands)
        if key is None:
            return call_itself(args, kwargs)
        whole = len(operands) == len(args) and not kwargs
        return replay.call(function if whole else _with_operands(function, args, kwargs), operands, key, subprograms)

    return call


def _make_key(
    args: tuple[Any, ...], kwargs: dict[str, Any], numbers: frozenset[int], names: frozenset[str], public: bool,
    operands: list[Any],
) -> tuple[Any, ...] | None:
    """Return a hashable key of a call's static arguments, and append its operands to `operands`.

    Returns None for an argument that is neither an array nor of a static type, and for an array in place of a static
    argument: the function itself reports these.
    """
    key: list[Any] = []
    for i, x in enumerate(args):
        if isinstance(x, Array):
            if i in numbers:
                return None
            operands.append(x)
            key.append(_OPERAND)
        elif isinstance(x, _STATIC_TYPES) or (not public and type(x) in _SCALARS):
            if not _add_value(key, x):
                return None
        else:
            return None
    for name, x in kwargs.items():
        key.append(name)
        if isinstance(x, Array):
            if name in names:
                return None
            operands.append(x)
            key.append(_OPERAND)
        elif (public and not isinstance(x, _STATIC_TYPES)) or not _add_value(key, x):
            return None
    return tuple(key)


def _add_value(key: list[Any], value: object) -> bool:
    """Append a value to a key, distinguishing 0.0 from -0.0 and 1 from True; return whether it contains no array."""
    kind = type(value)
    if not isinstance(value, tuple):
        key.append(kind)
        key.append(repr(value) if kind is float or kind is complex else value)
        return True
    key.append(kind)
    key.append(len(value))
    for x in value:  # noqa: SIM110 - a generator costs a frame for each value
        if isinstance(x, Array) or not _add_value(key, x):
            return False
    return True


def _with_operands(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of the arrays among the arguments of ``function(*args, **kwargs)``."""

    def call(*operands: Any) -> Any:
        left = iter(operands)
        given = [next(left) if isinstance(x, Array) else x for x in args]
        return function(*given, **{name: next(left) if isinstance(x, Array) else x for name, x in kwargs.items()})

    return call


def _is_array(value: object) -> bool:
    """Whether `value` is an array, a tracer, or an array or scalar of NumPy that jit takes without conversion."""
    if isinstance(value, Array):
        return True
    return (type(value) is np.ndarray or isinstance(value, np.generic)) and value.dtype in _NUMPY_DTYPES


def to_number_operand(value: object) -> Any:
    """Return a Python number as an array if no trace is active; return every other value unchanged.

    XLA folds a number that is a constant of the program, and rounds the result differently.
    """
    return to_operand(value) if type(value) in _SCALARS and current_trace.get() is base_trace else value
