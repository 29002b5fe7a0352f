"""Checking while computing: errors as values, which loops, branches and transformations carry along.

A trace notes for each operation what may have gone wrong, by the rule `checks` of the primitive, and hands everything
on to its parent. Operations that hold jaxprs are bound with jaxprs that return an error besides (the rule `checked`).
An error is a number, zero for none and otherwise that of the check that failed first, and the arrays that its message
shows; which checks there are is known while tracing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.algebra.vector_space import converted, reshape, with_axis, zeros
from xtrace._src.core import dtypes, explain, pytree
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.check_errors import (
    BatchedError,
    DivisionByZeroError,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
    Site,
    Slot,
)
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.effects import Effect
from xtrace._src.core.ir import NEVER_PRINTED, ClosedJaxpr, Literal
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.source import describe, user_position
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.ops.arrays.slicing import dynamic_index_in_dim, index_in_dim
from xtrace._src.ops.elementwise import add, constant_like, eq, gt, lt, ne, select_n
from xtrace._src.ops.elementwise import bitwise_or as either
from xtrace._src.ops.random.keys import random_unwrap
from xtrace._src.ops.reductions import argmax, reduce_or
from xtrace._src.ops.stop_gradient import stop_gradient
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_concrete
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import stage_to_jaxpr

Categories = frozenset[type[JaxException]]

_NUMBER = ShapedArray((), dtypes.int32)
_NONE = Literal(0, _NUMBER)


class Error:
    """Whether something went wrong in a checked function, and what: a pytree of arrays, to be returned from programs.

    code: the number of the check that failed first, from 1 on, 0 if none did; None if there is no check. payload: for
    each of `slots` an array. Mapped, all have the mapped axes at the front.
    """

    __slots__ = ("code", "payload", "sites", "slots")

    def __init__(self, code: Any, payload: Sequence[Any], sites: tuple[Site, ...], slots: tuple[Slot, ...]) -> None:
        self.code, self.payload, self.sites, self.slots = code, tuple(payload), sites, slots

    @boundary
    def get(self) -> str | None:
        """Return the message of the first error, None if there was none; of a mapped function, one line per index."""
        found = self.get_exception()
        return None if found is None else str(found)

    @boundary
    def get_exception(self) -> JaxException | None:
        """Return the first error as an exception, None if there was none; of a mapped function, a BatchedError.

        Under jit, where it is not known, TracerBoolConversionError.
        """
        if self.code is None:
            return None
        for value in (self.code, *self.payload):
            if isinstance(value, Tracer):
                raise explain.boolean_conversion(value)
        codes = np.asarray(self.code)
        if not codes.ndim:
            return self._report(int(codes), ()) if codes else None
        failed = [tuple(map(int, index)) for index in np.argwhere(codes)]
        return BatchedError({i: self._report(int(codes[i]), i) for i in failed}) if failed else None

    def _report(self, code: int, index: tuple[int, ...]) -> JaxException:
        site = self.sites[code - 1]
        values = dict(zip(self.slots, self.payload, strict=True))
        return site.report([to_concrete(np.asarray(values[s])[index]) for s in site.slots])

    @boundary
    def throw(self) -> None:
        """Raise JaxRuntimeError if there was an error; inside another checked function, make it that one's."""
        check_error(self)

    def __str__(self) -> str:
        known = self.code is None or isinstance(self.code, (ConcreteArray, np.ndarray, np.generic))
        return f"Error({self.get() if known else self.code})"

    __repr__ = __str__


def _flatten(error: Error) -> tuple[tuple[Any, ...], Any]:
    children = () if error.code is None else (error.code, *error.payload)
    return children, (error.sites, error.slots)


def _unflatten(static: Any, children: Sequence[Any]) -> Error:
    children = tuple(children)
    return Error(children[0] if children else None, children[1:], *static)


pytree.register_pytree_node(Error, _flatten, _unflatten)

init_error = Error(None, (), (), ())


# Finding errors


class _Finding(NamedTuple):
    """Whether one of `sites` failed; `code` has which one, None where there is one only."""

    failed: Any
    code: Any
    payload: dict[Slot, Any]
    sites: tuple[Site, ...]


class Checked(NamedTuple):
    """A jaxpr whose results come after the leaves of an error: its code, and what is in `slots`.

    Where `sites` is empty nothing can go wrong, and there are no leaves.
    """

    jaxpr: Any
    sites: tuple[Site, ...]
    slots: tuple[Slot, ...]

    @property
    def width(self) -> int:
        """How many leaves the error has."""
        return 1 + len(self.slots) if self.sites else 0

    def nothing(self) -> list[Any]:
        """Return the leaves of no error."""
        return [_NONE, *map(_nothing_of, self.slots)] if self.sites else []


class CheckTrace(Trace):
    """Notes what goes wrong in the operations bound under it, in the `enabled` categories; its parent does them."""

    __slots__ = ("enabled", "findings")

    def __init__(self, parent: Trace, enabled: Categories) -> None:
        super().__init__(parent)
        self.enabled = enabled
        self.findings: list[_Finding] = []

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        if self.ended:
            raise RuntimeError("the checked function has ended; nothing can be checked in it")
        named = dict(zip(primitive.parameters, parameters, strict=True))
        token = current_trace.set(self.parent)
        try:
            if primitive.checked is not None:
                return primitive.checked(self, operands, **named)
            results = self.parent.process(primitive, operands, parameters)
            found = results if primitive.multiple_results else [results]
            if primitive.checks is not None:
                primitive.checks(self, operands, found, **named)
            elif not primitive.moves_elements:
                self.nan(primitive.name, found)
            return results
        finally:
            current_trace.reset(token)

    # What the rules of primitives ask

    def note(self, category: type[JaxException], failed: Any, message: str, arguments: Any = ((), {})) -> None:
        """Note a check: whether it `failed`, a boolean scalar, and the message, a format of `arguments`."""
        leaves, tree = pytree.tree_flatten(arguments)
        payload = placed([stop_gradient(x) for x in leaves])
        site = Site(category, message, tree, tuple(payload), user_position(2))
        self.findings.append(_Finding(failed, None, payload, (site,)))

    def nan(self, name: str, results: Sequence[Any]) -> None:
        """Ask whether a result of the operation `name` is NaN."""
        if NaNError not in self.enabled:
            return
        flags = [_any(ne(x, x)) for x in results if dtypes.is_inexact(aval_of(x).dtype) and aval_of(x).size]
        if flags:
            self.note(NaNError, _any_of(flags), f"nan generated by primitive: {name}.")

    def division(self, divisor: Any) -> None:
        """Ask whether a divisor is zero."""
        known = divisor.val if type(divisor) is Literal else divisor
        if DivisionByZeroError not in self.enabled or (isinstance(known, (int, float, complex)) and known):
            return
        aval = aval_of(divisor)
        if aval.size:
            self.note(DivisionByZeroError, _any(eq(divisor, constant_like(divisor, 0))), "division by zero")

    def bounds(self, index: Any, last: int, axis: int, shape: Sequence[int], place: int | None = None) -> None:
        """Ask whether an index, or one of several, along an axis of an array is negative or above `last`.

        place: of index vectors, along the last axis of `index`, the entry to look at.
        """
        known = index.val if type(index) is Literal else index
        if OOBError not in self.enabled or (isinstance(known, int) and 0 <= known <= last) or not aval_of(index).size:
            return
        if place is not None:
            index = index_in_dim(index, place, -1, False)
        if dtypes.bit_width(aval_of(index).dtype) < 32:
            index = converted(index, dtypes.int32)
        aval = aval_of(index).update(shape=(), weak_type=False)
        bound = Literal(min(last, int(dtypes.iinfo(aval.dtype).max)), aval)
        outside = gt(index, bound)
        if dtypes.is_signed(aval.dtype):
            outside = either(lt(index, Literal(0, aval)), outside)
        self.note(
            OOBError, _any(outside),
            f"out-of-bounds indexing for array of shape {tuple(shape)}: index {{}} is out of bounds for axis {axis} "
            f"with size {shape[axis]}.",
            ((_first(outside, index),), {}),
        )

    def of(self, closed: ClosedJaxpr) -> Checked:
        """Return a jaxpr with its error."""
        return checked_jaxpr(closed, self.enabled)

    def of_each(self, jaxprs: Sequence[ClosedJaxpr]) -> list[Checked]:
        """Return jaxprs with their errors, which are of one type: the sites and slots of all."""
        found = [self.of(c) for c in jaxprs]
        slots = tuple(dict.fromkeys(s for c in found for s in c.slots))
        sites = tuple([s for c in found for s in c.sites])
        if not sites:
            return found
        before, together = 0, []
        for closed, own in zip(jaxprs, found, strict=True):
            whole = checked_jaxpr(closed, self.enabled, before, slots)
            together.append(Checked(whole.jaxpr, sites, slots))
            before += len(own.sites)
        return together

    def take(self, checked: Checked, outputs: Sequence[Any]) -> list[Any]:
        """Note the error at the front of what a checked jaxpr gave, and return the results."""
        if checked.sites:
            self.adopt(outputs[: checked.width], checked.sites, checked.slots)
        return list(outputs[checked.width :])

    def adopt(self, leaves: Sequence[Any], sites: tuple[Site, ...], slots: tuple[Slot, ...]) -> None:
        """Note an error, given its leaves."""
        code, *values = leaves
        payload = dict(zip(slots, map(stop_gradient, values), strict=True))
        self.findings.append(_Finding(ne(code, _NONE), code, payload, sites))

    def run(self, function: Callable[..., Sequence[Any]], values: Sequence[Any]) -> tuple[Checked, list[Any]]:
        """Return what a flat function gives, its error at the front; the first result says what is in that."""
        error, results = run_checked(function, self.enabled, *values)
        leaves = [] if error.code is None else [error.code, *error.payload]
        return Checked(None, error.sites, error.slots), [*leaves, *results]

    def inline(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a jaxpr whose operations are checked one by one."""
        with use_trace(self):
            return evaluate(closed.jaxpr, closed.consts, operands)

    @staticmethod
    def first(*errors: Sequence[Any]) -> list[Any]:
        """Return the leaves of the first error, of several of one type in the order in which they may have occurred."""
        return _first_of(errors)

    # What was found

    def sites(self) -> tuple[Site, ...]:
        """The places of all checks."""
        return tuple([s for f in self.findings for s in f.sites])

    def slots(self) -> tuple[Slot, ...]:
        """What is needed for the messages of all checks."""
        return tuple(dict.fromkeys(s for f in self.findings for s in f.payload))

    def leaves(self, slots: tuple[Slot, ...], before: int = 0) -> list[Any]:
        """Return the leaves of the first error: its number, counted from `before`, and the contents of the slots."""
        code: Any = _NONE
        values: dict[Slot, Any] = {s: _nothing_of(s) for s in slots}
        number = before + len(self.sites())
        # From the last to the first: an earlier error takes the place of later ones.
        for finding in reversed(self.findings):
            number -= len(finding.sites)
            own: Any = Literal(number + 1, _NUMBER)
            if finding.code is not None:
                own = add(finding.code, Literal(number, _NUMBER)) if number else finding.code
            code = select_n(finding.failed, code, own)
            for slot, value in finding.payload.items():
                values[slot] = select_n(finding.failed, values[slot], value)
        return [code, *[values[s] for s in slots]]


def _nothing_of(slot: Slot) -> Any:
    aval = slot[0]
    return zeros(aval) if aval.shape else Literal(dtypes.scalar_type_of(aval.dtype)(0), aval)


def placed(leaves: Sequence[Any]) -> dict[Slot, Any]:
    """Return values by the slots that they are put into."""
    found: dict[Slot, Any] = {}
    for x in leaves:
        aval = aval_of(x)
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            x = random_unwrap(x)
            aval = aval_of(x)
        kind = ShapedArray(aval.shape, aval.dtype)
        found[kind, sum(a is kind for a, _ in found)] = converted(x, aval.dtype)
    return found


def _any(flags: Any) -> Any:
    rank = aval_of(flags).ndim
    return reduce_or(flags, tuple(range(rank))) if rank else flags


def _any_of(flags: Sequence[Any]) -> Any:
    found = flags[0]
    for flag in flags[1:]:
        found = either(found, flag)
    return found


def _first(flags: Any, values: Any) -> Any:
    """Return that of `values` for which the first of `flags` holds."""
    aval = aval_of(flags)
    if aval.size == 1:
        return reshape(values, ()) if aval.shape else values
    position = _first_position(flags)
    return dynamic_index_in_dim(reshape(values, (aval.size,)), position, 0, False, allow_negative_indices=False)


def _first_position(flags: Any) -> Any:
    """Return where, of all elements in a row, the first of `flags` holds."""
    row = reshape(converted(flags, dtypes.int32), (aval_of(flags).size,))
    return argmax(row, 0, dtypes.int32)


def _first_of(errors: Sequence[Sequence[Any]]) -> list[Any]:
    *before, found = [list(e) for e in errors]
    for error in reversed(before):
        failed = ne(error[0], _NONE)
        found = [select_n(failed, later, own) for own, later in zip(error, found, strict=True)]
    return found


@memoize_by_owner
def _checked_jaxpr(
    closed: ClosedJaxpr, enabled: Categories, before: int, slots: tuple[Slot, ...] | None
) -> Checked | None:
    found: list[Any] = []

    def checked(*values: Any) -> list[Any]:
        trace = CheckTrace(current_trace.get(), enabled)
        with use_trace(trace):
            results = evaluate(closed.jaxpr, closed.consts, values)
        kept = trace.slots() if slots is None else slots
        found[:] = [trace.sites(), kept]
        if not found[0] and slots is None:
            return results
        return [*trace.leaves(kept, before), *results]

    jaxpr = stage_to_jaxpr(checked, closed.in_avals, closed.jaxpr.debug_info)
    # Remembered with itself as its value, a jaxpr would never be freed.
    unchanged = not found[0] and slots is None and CHECK not in closed.effects
    return None if unchanged else Checked(jaxpr, *found)


def checked_jaxpr(
    closed: ClosedJaxpr, enabled: Categories, before: int = 0, slots: tuple[Slot, ...] | None = None
) -> Checked:
    """Return `closed` with an error, whose codes count from `before`; with `slots`, it has these in any case."""
    return _checked_jaxpr(closed, enabled, before, slots) or Checked(closed, (), ())


def run_checked(function: Callable[..., Any], enabled: Categories, *args: Any, **kwargs: Any) -> tuple[Error, Any]:
    """Return the error of ``function(*args, **kwargs)``, and its result."""
    trace = CheckTrace(current_trace.get(), enabled)
    try:
        with use_trace(trace):
            result = function(*args, **kwargs)
    finally:
        trace.end()
    sites, slots = trace.sites(), trace.slots()
    if not sites:
        return init_error, result
    code, *payload = trace.leaves(slots)
    return Error(code, payload, sites, slots), result


# Stated checks

CHECK = Effect("check")


def _abstract(code: ShapedArray, *_: ShapedArray, sites: tuple[Site, ...], **__: Any) -> list[ShapedArray]:
    """Nothing; an error, if one is given, is that of the checked function around it."""
    return []


def _emit(
    builder: FunctionBuilder, *_: Value, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool
) -> list[Value]:
    if debug:
        return []
    site = sites[0]
    raise ValueError(
        f"Cannot compile a checkify.check which was not functionalized: {abbreviated(site.message)} on line "
        f"{describe(site.source)}. A compiled program (jit, scan, while_loop, cond …) cannot raise; checkify makes the "
        "error a result of it. Write `err, out = xtrace.jit(checkify.checkify(f))(x)` and then `err.throw()` outside, "
        "or use checkify.debug_check, which does nothing in functions that are not checkified."
    )


def _evaluate(code: Any, *payload: Any, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool) -> list[Any]:
    found = None if debug else Error(code, payload, sites, slots).get_exception()
    if found is not None:
        error = JaxRuntimeError(str(found))
        if found.source is not None:
            error.add_note(f"what failed:\n{excerpt(found.source)}")
        raise error
    return []


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[Any]]:
    operands = [with_axis(x, i, mapped.size) for x, i in zip(operands, axes, strict=True)]
    return check_p.bind_positional(operands, tuple(parameters.values())), []


def _jvp(primals: Sequence[Any], _: Sequence[Any], **parameters: Any) -> tuple[list[Any], list[Any]]:
    return check_p.bind_positional(primals, tuple(parameters.values())), []


def _checked(
    checker: CheckTrace, operands: Sequence[Any], *, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool
) -> list[Any]:
    code, *payload = operands
    wanted = [i + 1 for i, site in enumerate(sites) if site.category in checker.enabled]
    if not wanted:
        return []
    shape = aval_of(code).shape
    if shape:
        # Of the indices along mapped axes, the first that failed.
        size = math.prod(shape)
        if not size:
            return []
        position = _first_position(ne(code, _NONE))
        code, *payload = [
            dynamic_index_in_dim(reshape(x, (size, *aval_of(x).shape[len(shape) :])), position, 0, False)
            for x in operands
        ]
    if len(wanted) < len(sites):
        code = select_n(_any_of([eq(code, Literal(i, _NUMBER)) for i in wanted]), _NONE, code)
    checker.adopt([code, *payload], sites, slots)
    return []


check_p = Primitive(
    "check",
    ("sites", "slots", "debug"),
    abstract=_abstract,
    emit=_emit,
    evaluate=_evaluate,
    effects=lambda **_: frozenset({CHECK}),
    jvp=_jvp,
    transpose=no_rule("a check has no results"),
    batch=_batch,
    checked=_checked,
    multiple_results=True,
    unprinted={"sites": NEVER_PRINTED, "slots": NEVER_PRINTED},
)


def check_error(error: Error) -> None:
    """Raise `error` if it is one, or make it that of the checked function around; TypeError if it is no Error."""
    if not isinstance(error, Error):
        raise TypeError(f"check_error: error must be what a checked function returned, an Error; got {type(error)}")
    if error.code is not None:
        check_p.bind_positional((error.code, *error.payload), (error.sites, error.slots, False))


def state_check(pred: Any, message: str, arguments: Any, debug: bool) -> None:
    """Bind the check that `pred` holds, a boolean scalar, with a message that is a format of `arguments`."""
    leaves, tree = pytree.tree_flatten(arguments)
    payload = placed(leaves)
    site = Site(FailedCheckError, message, tree, tuple(payload), user_position(2))
    code = select_n(pred, Literal(1, _NUMBER), _NONE)
    check_p.bind_positional((code, *payload.values()), ((site,), tuple(payload), debug))
