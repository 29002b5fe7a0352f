"""The arrays that a traced function closes over: their names in the user's code, and the line that first reads them."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import get_namespace
from xtrace._src.core.avals import aval_of_value
from xtrace._src.core.diagnostics.positions import is_internal, resolve
from xtrace._src.core.diagnostics.text_tables import format_size
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, Var
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.transforms import dead_code
from xtrace._src.transforms.discharge import discharge_jaxpr, has_references
from xtrace._src.transforms.hidden_constants import is_hidden
from xtrace._src.xla.source_locations import Place


class CapturedConstant(NamedTuple):
    """An array that a function closes over: its name in the user's code, empty if unknown, its type and its bytes.

    place: the line that first reads it, or None. is_parameter: whether it is a hidden argument of the program.
    """

    name: str
    type: str
    size: int
    place: Place | None
    is_parameter: bool

    def __str__(self) -> str:
        at = f", read in {self.place} ({self.place.function})" if self.place is not None else ""
        return f"{self.name or 'an array without a name'}: {self.type}, {format_size(self.size)}{at}"


def find_captured_constants(closed: ClosedJaxpr, function: Callable[..., Any] | None) -> list[CapturedConstant]:
    """Return the constants of a traced function that its program reads, in order.

    function: the user's function, which is searched for their names; None for no names.
    """
    pure = discharge_jaxpr(closed) if has_references(closed.jaxpr) else closed
    jaxpr = dead_code.eliminate_dead_code(pure.jaxpr)[0]
    places = _first_places(jaxpr)
    kept = [(v, x) for v, x in zip(jaxpr.constvars, pure.consts, strict=True) if v in places]
    names = _find_names([x for _, x in kept], function) if function is not None else {}
    captured = []
    for variable, value in kept:
        aval = aval_of_value(value)
        size = aval.size * aval.dtype.itemsize
        captured.append(CapturedConstant(
            names.get(id(value), ""), aval.str_short(short_dtypes=True), size, places[variable], is_hidden(aval)
        ))
    return captured


def _first_places(jaxpr: Jaxpr) -> dict[Var, Place | None]:
    """Return, for each constant that is read, the first line that reads it, or None."""
    places: dict[Var, Place | None] = {v: None for v in jaxpr.outvars if v in jaxpr.constvars}
    constants = set(jaxpr.constvars)
    for equation in jaxpr.eqns:
        for operand in equation.invars:
            if operand in constants and places.get(operand) is None:
                at = resolve(equation.source) if equation.source is not None else None
                places[operand] = at.place if at is not None else None
    return places


# The limits of the search for names: objects, parts of each object, and steps from the function.
_MAX_OBJECTS, _MAX_PARTS, _MAX_DEPTH = 20_000, 1_000, 8


def _find_names(constants: list[Any], function: Callable[..., Any]) -> dict[int, str]:
    """Return names of constants, by identity: variables that the function, or a function that it calls, reads."""
    wanted: dict[Any, list[Any]] = {}
    for constant in constants:
        wanted.setdefault(tuple(np.shape(constant)), []).append(constant)
    names: dict[int, str] = {}
    seen: set[int] = set()
    left: deque[tuple[str, Any, int]] = deque([("", function, 0)])
    while left and len(seen) < _MAX_OBJECTS and len(names) < len(constants):
        name, value, depth = left.popleft()
        if id(value) in seen or depth > _MAX_DEPTH:
            continue
        seen.add(id(value))
        if isinstance(value, (np.ndarray, ConcreteArray)):
            for constant in wanted.get(value.shape, ()):
                if id(constant) not in names and _is_same(constant, value):
                    names[id(constant)] = name
        else:
            parts = itertools.islice(_parts(name, value), _MAX_PARTS)
            left.extend([(inner, part, depth + 1) for inner, part in parts])
    return names


def _is_same(constant: Any, value: Any) -> bool:
    """Whether a constant of a trace is a user's array, or an equal copy of it, which traces make of NumPy arrays."""
    if constant is value:
        return True
    if not (isinstance(constant, np.ndarray) and isinstance(value, np.ndarray)):
        return False
    return bool(np.array_equal(value.astype(constant.dtype, copy=False), constant))


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects to which a value refers, with names in the form users write."""
    if isinstance(value, FunctionType):
        yield from _variables(value)
    elif isinstance(value, MethodType):
        yield "self", value.__self__
        yield "", value.__func__
    elif isinstance(value, functools.partial):
        yield name, value.func
        yield from zip([f"an argument of {name or 'the function'}"] * len(value.args), value.args, strict=True)
        yield from value.keywords.items()
    elif isinstance(value, Mapping):
        yield from [(f"{name}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        yield from [(f"{name}[{i}]", part) for i, part in enumerate(value)]
    elif not isinstance(value, (type, ModuleType, str, bytes, int, float, complex)):
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            yield name, wrapped
        call = vars(type(value)).get("__call__")
        if isinstance(call, FunctionType) and not is_internal(call.__code__.co_filename):
            yield name, call
        slots = [key for kind in type(value).__mro__ for key in getattr(kind, "__slots__", ()) if isinstance(key, str)]
        attributes = {key: getattr(value, key) for key in slots if hasattr(value, key)} | getattr(value, "__dict__", {})
        yield from [(f"{name or 'self'}.{key}", part) for key, part in attributes.items()]


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a user's function: those it closes over, defaults, and globals that it reads."""
    code = function.__code__
    if is_internal(code.co_filename):
        # A wrapper of xtrace: the user's function is in its closure.
        yield from [("", cell.cell_contents) for cell in function.__closure__ or () if _is_full(cell)]
        if hasattr(function, "__wrapped__"):
            yield "", function.__wrapped__
        return
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if _is_full(cell):
            yield variable, cell.cell_contents
    parameters = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    read = _names_read(code)
    for variable in read:
        value = function.__globals__.get(variable)
        if isinstance(value, ModuleType):
            namespace = get_namespace(value)
            yield from [(f"{variable}.{part}", namespace[part]) for part in read if part in namespace]
        elif value is not None:
            yield variable, value


def _names_read(code: CodeType) -> list[str]:
    """Return the names of globals and attributes in a function's code, and in the code of functions inside it."""
    inner = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names_read(one)]
    return [*code.co_names, *inner]


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
