"""Functions of several operations that run eagerly as one compiled program."""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from xtrace.api.arguments import keyword_only_names
from xtrace.api.jit import Jitted, jit_for, jit_of_library, with_code_of
from xtrace.core import pytree
from xtrace.core.array_protocol import taking_objects
from xtrace.core.arrays import Array
from xtrace.core.avals import is_array_like
from xtrace.core.flags import check_flags, check_hashable, flags_of
from xtrace.core.ir import can_be_remembered
from xtrace.core.tables import Table
from xtrace.core.trace import base_trace, current_trace
from xtrace.runtime.transfer import to_operand
from xtrace.transforms import replay

_LIMIT = 1024
_SCALARS = frozenset((bool, int, float, complex))
_OF_NUMPY = frozenset(map(np.dtype, "?bhiqBHIQefdFD"))


def _with_numbers(
    function: Callable[..., Any], fixed: Sequence[tuple[int, Any]], /, *others: Any, **static: Any
) -> Any:
    arrays = list(others)
    for i, number in fixed:
        arrays.insert(i, number)
    return function(*arrays, **static)


def _operands_by_name(function: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the operands that can be given by keyword."""
    code = getattr(function, "__code__", None)
    return frozenset(code.co_varnames[code.co_posonlyargcount : code.co_argcount]) if code is not None else frozenset()


def _by_position(function: Any, arrays: tuple[Any, ...], static: dict[str, Any]) -> tuple[Any, ...]:
    """Return `arrays` with the operands that follow them and are in `static`, which they are taken from."""
    names = function.__code__.co_varnames[len(arrays) : function.__code__.co_argcount]
    return (*arrays, *[static.pop(name) for name in itertools.takewhile(static.__contains__, names)])


def _refused(function: Callable[..., Any], arrays: tuple[Any, ...], static: dict[str, Any]) -> Exception:
    """Return the error of a call with static arguments that are not hashable, or are no arguments of the function."""
    name = function.__name__
    try:
        inspect.signature(function).bind(*arrays, **static)
    except TypeError as error:
        return TypeError(f"{name}(): {error}")
    for argument, value in static.items():
        check_hashable(name, argument, value)
    return TypeError(f"{name}: the arguments {', '.join(static)} are not hashable")


def unit(function: Callable[..., Any], inline: bool = False) -> Callable[..., Any]:
    """Return ``function(*arrays, **static)`` as one compiled program for each choice of the hashable `static`.

    `static` are the parameters that can be given by keyword only. Where a program is traced its operations are recorded
    in place, as if the function were called; differentiated eagerly, its values are one program too, and what is linear
    is another one, or single operations if `inline`. It must depend on nothing but its operands' types, `static` and
    the settings: what it binds is remembered. Operands that are given by keyword are those by position; ValueError for
    a static argument that is not hashable.
    """
    names = keyword_only_names(inspect.unwrap(function))
    operands = _operands_by_name(function)
    compiled = jit_of_library(function, names, inline)
    jitted: Jitted = compiled._xtrace_jitted
    recordings = Table(_LIMIT)
    trace_of_thread = current_trace.get

    def call(arrays: tuple[Any, ...], static: dict[str, Any]) -> Any:
        if static:
            if not operands.isdisjoint(static):
                static = dict(static)
                arrays = _by_position(function, arrays, static)
            try:
                hash(tuple(static.items()))
            except TypeError:
                raise _refused(function, arrays, static) from None
        trace = trace_of_thread()
        if trace.evaluates:
            return jitted.call(arrays, static)
        fixed = [(i, x) for i, x in enumerate(arrays) if type(x) in _SCALARS]
        if not fixed:
            return replay.call(function, arrays, static, recordings)
        # A number is part of what the function does, as it may look at it.
        numbers = tuple([(i, type(x), repr(x)) for i, x in fixed])
        table = recordings.get(numbers)
        if table is None:
            table = Table(nested=True)
            recordings.remember(numbers, table)
        others = [x for x in arrays if type(x) not in _SCALARS]
        return replay.call(functools.partial(_with_numbers, function, fixed), others, static, table)

    return with_code_of(compiled, taking_objects(call), function)  # type: ignore[no-any-return]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` of arrays as one compiled program eagerly, recorded in place under a trace.

    Unlike a `unit`, it takes arrays by keyword too.
    """
    compiled = jit_of_library(function)
    return with_code_of(compiled, taking_objects(compiled._xtrace_jitted.call), function)  # type: ignore[no-any-return]


def to_number_operand(value: Any) -> Any:
    """Return `value`, if it is a Python number and no trace is on, as an array that a compiled program takes.

    A number that is part of a program XLA would compute with beforehand, and round otherwise.
    """
    return to_operand(value) if type(value) in _SCALARS and current_trace.get() is base_trace else value


def _is_array(value: Any) -> bool:
    """Whether `value` is an array or a tracer, or one of NumPy's arrays that jit takes as they are."""
    return isinstance(value, Array) or (type(value) is np.ndarray and value.dtype in _OF_NUMPY)


def one_program(
    *static: str, unless: Callable[[], bool] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of arrays, whose parameters `static` are no arrays, to run eagerly as one compiled program.

    Its checks are then part of what is compiled, and are not repeated for arguments of types and values met before.
    Under a trace what it binds is remembered. Where the first parameter gets no array, or others anything but arrays,
    numbers and None, the function is called as it is; so it is while `unless`, of settings in every cache key, is true.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        jitted = jit_of_library(function, static)
        numbers = frozenset(jitted._xtrace_jitted.static.numbers)
        trace_of_thread = current_trace.get

        def takes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
            if not trace_of_thread().evaluates or not args or not (0 in numbers or _is_array(args[0])):
                return False
            if unless is not None and unless():
                return False
            others = [x for i, x in enumerate(args) if i not in numbers]
            others += [x for name, x in kwargs.items() if name not in static]
            return all(x is None or type(x) in _SCALARS or _is_array(x) for x in others)

        return jit_for(jitted, takes, _remembering(function, numbers))  # type: ignore[no-any-return]

    return decorate


# Types of arguments that decide what a function binds by their value; those that they contain need not be hashable.
_PLAIN = (bool, int, str, tuple, type, type(None), np.dtype, enum.Enum)


def _remembering(function: Callable[..., Any], static_numbers: Collection[int]) -> Callable[[Any, Any], Any]:
    """Return how `function` is called: under a trace by a copy of what it bound for such arguments before.

    It is called as it is where arrays are followed by anything but plain arguments, or are given for static ones.
    """
    code, flags = function.__code__, flags_of(function)
    names, first = code.co_varnames[: code.co_argcount], code.co_posonlyargcount
    most = min(static_numbers, default=len(names))
    tables = Table(_LIMIT)
    trace_of_thread = current_trace.get

    def as_it_is(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        check_flags(function.__name__, flags, args, kwargs)
        return function(*args, **kwargs)

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trace = trace_of_thread()
        if trace is base_trace:
            return as_it_is(args, kwargs)
        arrays = tuple(itertools.takewhile(lambda x: isinstance(x, Array), args))
        count = len(arrays)
        static = kwargs
        if not first <= count <= most or not arrays or len(args) > len(names):
            return as_it_is(args, kwargs)
        if count < len(args):
            static = dict(zip(names[count:], args[count:], strict=False))
            if not static.keys().isdisjoint(kwargs):
                return as_it_is(args, kwargs)
            static |= kwargs
        # Equal numbers of unlike types are told apart.
        kinds = tuple([type(x) for x in static.values()])
        try:
            table = tables[kinds]
        except KeyError:
            table = Table(nested=True) if all(issubclass(kind, _PLAIN) for kind in kinds) else None
            tables.remember(kinds, table)
        if table is None or (tuple in kinds and not can_be_remembered(tuple(static.values()))):
            return as_it_is(args, kwargs)
        return replay.call(function, arrays, static, table)

    return call


def program_of_trees(*static: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function of trees of arrays, whose parameters `static` are none, to run eagerly as one program.

    It is found again for the same `static`, structures and types. Under a trace, and where other leaves are no arrays
    or static arguments do not hash, the function is called as it is.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        jitted = jit_of_library(function, static)
        numbers = frozenset(jitted._xtrace_jitted.static.numbers)
        trace_of_thread = current_trace.get

        def takes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
            if not trace_of_thread().evaluates:
                return False
            others = [x for i, x in enumerate(args) if i not in numbers]
            others += [x for name, x in kwargs.items() if name not in static]
            # What is said of numbers in the wrong places should show them.
            return all(type(x) not in _SCALARS and is_array_like(x) for x in pytree.tree_leaves(others))

        return jit_for(jitted, takes, lambda args, kwargs: function(*args, **kwargs))  # type: ignore[no-any-return]

    return decorate
