"""Errors of leaked tracers: the value, its origin, its function, and the object that holds it."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable
from types import CellType, CodeType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any

from xtrace._late_imports import get_namespace
from xtrace._src.core.diagnostics import advice
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.diagnostics.positions import Position, describe, is_internal, resolve
from xtrace._src.core.diagnostics.provenance import find_provenance
from xtrace._src.core.diagnostics.sites import Site
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.trace import Trace, Tracer
from xtrace._src.xla.source_locations import name_file

# The number of containers, one inside another, that are searched for the holder of a value.
_DEPTH = 8


def unexpected_tracer(tracer: Tracer, holder: str = "") -> UnexpectedTracerError:
    """The error of a tracer that is used after its trace ended, or whose holder was found when it ended."""
    made_at, info = _origin(tracer)
    owner = f"the function {info}" if info is not None else f"a function under {tracer.owner!r}"
    made = f", made on line {describe(made_at)}," if made_at is not None else _as_argument(tracer)
    happened = "is still held after" if holder else "was used after"
    leaker = resolve(made_at).function if made_at is not None else info.function if info is not None else "the function"
    parts = [
        f"Encountered an unexpected tracer. A traced value of type {tracer.aval.str_short(True)}{made} {happened} "
        f"the trace of {owner} had ended."
    ]
    if made_at is not None:
        parts.append(excerpt(made_at))
    if holder:
        parts.append(f"{leaker} leaked it: it is {holder}.")
        fixes = [f"return the value from {leaker} instead of storing it"]
    else:
        used = Site.here().excerpt()
        parts += ["It was used here:", used] if used else []
        parts.append(f"{leaker} leaked it by a side effect, such as a global, an attribute or a list outside of it.")
        fixes = [
            f"return the value from {leaker} instead of storing it",
            "`with xtrace.checking_leaks():` around the call says what holds it",
        ]
    return UnexpectedTracerError("\n".join([*parts, advice.text(fixes)]))


def _origin(tracer: Tracer) -> tuple[Position | None, DebugInfo | None]:
    """Return the place where a tracer was made, None for an argument, and the function of its trace."""
    trace: Any = tracer.owner
    if hasattr(trace, "find_origin"):
        return trace.find_origin(tracer), trace.debug_info
    made_at = None
    info: DebugInfo | None = trace.described() if getattr(trace, "described", None) is not None else None
    # Linearization records operations on tangents: a value with a tangent has a recorded place.
    for part in ("tangent", "primal", "value"):
        inner = getattr(tracer, part, None)
        if isinstance(inner, Tracer) and made_at is None:
            made_at, inner_info = _origin(inner)
            info = info or inner_info
    return made_at, info


def _as_argument(tracer: Tracer) -> str:
    provenance = find_provenance(tracer)
    if provenance is None or provenance.operations or len(provenance.arguments) != 1:
        return ""
    return f", the argument {provenance.arguments[0]},"


def check_leaks(trace: Trace) -> None:
    """Raise UnexpectedTracerError if the user's program still holds a tracer of `trace`, which has ended."""
    if sys.getrefcount(trace) <= _UNHELD:
        return
    gc.collect()
    frozen = gc.get_freeze_count() > 0
    if frozen:  # frozen objects are invisible to the collector
        gc.unfreeze()
    try:
        for tracer in gc.get_referrers(trace):
            if isinstance(tracer, Tracer) and tracer.owner is trace:
                holder = _Search().holder(tracer, _DEPTH)
                if holder:
                    raise unexpected_tracer(tracer, holder)
    finally:
        if frozen:
            gc.freeze()


def _references(value: object) -> int:
    return sys.getrefcount(value)


def _count_references_of_a_local() -> int:
    value: Any = []
    return _references(value)


# The reference count of a trace that only the checking function's variable refers to.
_UNHELD = _count_references_of_a_local()


class _Search:
    """The search for the holder of a value: from the value through containers to an object of the user's program.

    Running functions of xtrace and their containers do not count, nor does a value without holders.
    """

    def __init__(self) -> None:
        self.seen: set[int] = set()
        # Lists of the search itself, which refer to all visited objects.
        self.own: set[int] = {id(self.seen)}
        self.locals = list(_running_locals())
        self.own.update(id(entry) for entry in self.locals)
        self.own.add(id(self.locals))

    def holder(self, value: object, depth: int) -> str:
        """Return a phrase for the holder of `value`, empty if there is none."""
        self.seen.add(id(value))
        for names, held in self.locals:
            if held is value:
                return names
        if depth == 0:
            return ""
        referrers = gc.get_referrers(value)
        self.own.add(id(referrers))
        others = [r for r in referrers if id(r) not in self.own and id(r) not in self.seen]
        self.own.add(id(others))
        for describe_holder in (self._as_name, self._as_container):
            for other in others:
                phrase = describe_holder(other, value, depth)
                if phrase:
                    return phrase
        return ""

    def _as_name(self, other: object, value: object, depth: int) -> str:
        """Return the phrase if `other` is the namespace of a module, which needs no further holder."""
        if type(other) is dict:
            modules = [each for each in list(sys.modules.values()) if isinstance(each, ModuleType)]
            module = next((each for each in modules if get_namespace(each) is other), None)
            if module is not None and not _is_internal_module(module.__name__):
                return f"the global {_describe_key(other, value)} of {_module(other)}"
        return ""

    def _as_container(self, other: Any, value: Any, depth: int) -> str:
        """Return the phrase if `other` is a container of the value and has a holder itself."""
        kind = type(other)
        if kind is CellType:
            return self._describe_closure(other, depth)
        if kind is tuple:
            for function in gc.get_referrers(other):
                if isinstance(function, FunctionType) and function.__defaults__ is other:
                    return f"a default argument of the function {function.__qualname__}"
        if kind in (list, tuple, deque):
            place = next((f"item {i}" for i, x in enumerate(list(other)) if x is value), "an item")
            return self._describe_inside(f"{place} of a {kind.__name__}", other, depth)
        if kind in (set, frozenset):
            return self._describe_inside(f"an element of a {kind.__name__}", other, depth)
        if isinstance(other, dict):
            return self._describe_dict(other, value, depth)
        if isinstance(other, FunctionType):
            return self._describe_inside(f"a default of the function {other.__qualname__}", other, depth)
        if isinstance(other, GeneratorType):
            return f"a local variable of the suspended generator {other.__qualname__}"
        if isinstance(other, (FrameType, ModuleType, CodeType)):
            return ""
        if isinstance(other, Tracer):
            return self.holder(other, depth - 1)
        if isinstance(other, type):
            name = next((n for n, x in vars(other).items() if x is value), "...")
            return f"the attribute {name} of the class {other.__qualname__}"
        if _is_internal_module(type(other).__module__):
            return ""
        name = _describe_attribute(other, value)
        return self._describe_inside(f"the attribute {name} of an instance of {_class(other)}", other, depth)

    def _describe_inside(self, phrase: str, container: object, depth: int) -> str:
        outer = self.holder(container, depth - 1)
        return f"{phrase}, {outer}" if outer else ""

    def _describe_dict(self, mapping: dict[Any, Any], value: object, depth: int) -> str:
        key = _describe_key(mapping, value)
        for owner in gc.get_referrers(mapping):
            if not isinstance(owner, (dict, ModuleType)) and getattr(owner, "__dict__", None) is mapping:
                if _is_internal_module(type(owner).__module__):
                    return ""
                return self._describe_inside(f"the attribute {key} of an instance of {_class(owner)}", owner, depth)
            if isinstance(owner, type):
                return f"the attribute {key} of the class {owner.__qualname__}"
            if isinstance(owner, FunctionType) and owner.__globals__ is mapping:
                return "" if is_internal(owner.__code__.co_filename) else f"the global {key} of {_module(mapping)}"
        return self._describe_inside(f"the value of the key {key!r} of a dict", mapping, depth)

    def _describe_closure(self, cell: CellType, depth: int) -> str:
        self.seen.add(id(cell))
        for closure in gc.get_referrers(cell):
            # By identity: cells compare by their contents.
            place = next((i for i, c in enumerate(closure) if c is cell), -1) if type(closure) is tuple else -1
            for function in gc.get_referrers(closure):
                if place < 0 or not isinstance(function, FunctionType) or function.__closure__ is not closure:
                    continue
                if not is_internal(function.__code__.co_filename) and self.holder(function, depth - 1):
                    name = function.__code__.co_freevars[place]
                    return f"the variable {name} that the function {function.__qualname__} closes over"
        return ""


def _running_locals() -> Iterable[tuple[str, Any]]:
    """Return the local variables of the user's running functions, which the collector does not see."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code, variables = frame.f_code, frame.f_locals
        if not is_internal(code.co_filename):
            where = f"{code.co_name} at {name_file(code.co_filename)}:{frame.f_lineno}"
            kind = "variable"
            if variables is frame.f_globals:
                kind, where = "global", _module(variables)
            for name, value in list(variables.items()):
                yield f"the {kind} {name} of {where}", value
        frame = frame.f_back


def _module(namespace: dict[str, Any]) -> str:
    return f"the module {namespace.get('__name__', '?')}"


def _is_internal_module(name: str) -> bool:
    return name == "xtrace" or name.startswith("xtrace.")


def _describe_key(mapping: dict[Any, Any], value: object) -> str:
    return next((key for key, x in list(mapping.items()) if x is value), "...")


def _describe_attribute(owner: object, value: object) -> str:
    slots: list[str] = [name for c in type(owner).__mro__ for name in getattr(c, "__slots__", ())]
    names = [*getattr(owner, "__dict__", {}), *slots]
    return next((name for name in names if getattr(owner, name, None) is value), "...")


def _class(value: object) -> str:
    return type(value).__qualname__
