"""The trace of checkify: errors are values that loops, branches and transformations carry along.

The trace collects the checks of each operation, by the rules in ``rules.py``, and passes the operation to its parent.
Operations with jaxprs are bound with jaxprs that also return an error. An error is the number of the first failed
check, zero for none, and the arrays in its message. The set of checks is known while tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.checkify.checks import CHECK, Error, init_error
from xtrace._src.checkify.errors import DivisionByZeroError, JaxException, NaNError, OOBError, Site, Slot
from xtrace._src.checkify.leaves import NO_ERROR, NUMBER, any_element, any_flag, assign_slots, first_element, make_empty
from xtrace._src.checkify.rules import CALLS, CHECKS, NEVER_MAKES_NAN, OPAQUE
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.positions import user_position
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Literal, called_jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import Trace, current_trace, use_trace
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.elementwise.comparisons import bitwise_or, eq, gt, lt, ne
from xtrace._src.ops.elementwise.constants import constant_like
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import stage_to_jaxpr

Categories = frozenset[type[JaxException]]


# Collecting checks


class _Finding(NamedTuple):
    """Whether one of `sites` failed, and its number in `code`; None for a single site."""

    failed: Any
    code: Any
    payload: dict[Slot, Any]
    sites: tuple[Site, ...]


class Checked(NamedTuple):
    """A jaxpr whose results begin with the leaves of an error: its code, and the values of `slots`.

    Without `sites` it has no checks, and no leaves of an error.
    """

    jaxpr: Any
    sites: tuple[Site, ...]
    slots: tuple[Slot, ...]

    @property
    def width(self) -> int:
        """The number of leaves of the error."""
        return 1 + len(self.slots) if self.sites else 0

    def make_no_error(self) -> list[Any]:
        """Return the leaves of no error."""
        return [NO_ERROR, *map(make_empty, self.slots)] if self.sites else []


class CheckTrace(Trace):
    """Collects the checks of the `enabled` categories for the operations bound under it; its parent computes them."""

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
        with use_trace(self.parent):
            if primitive in CALLS:
                return CALLS[primitive](self, operands, **named)
            if primitive.multiple_results and primitive not in OPAQUE:
                called = called_jaxpr(primitive, parameters, map(aval_of, operands))
                if called is not None:
                    return self.evaluate_inline(called, operands)
            results = self.parent.process(primitive, operands, parameters)
            if primitive in CHECKS:
                CHECKS[primitive](self, operands, **named)
            if not primitive.moves_elements and primitive not in NEVER_MAKES_NAN:
                self.check_nan(primitive.name, results if primitive.multiple_results else [results])
            return results

    # Methods for the rules of primitives

    def add_check(
        self, category: type[JaxException], failed: Array, message: str, arguments: object = ((), {})
    ) -> None:
        """Add a check: `failed`, a boolean scalar, and `message`, a format of `arguments`."""
        leaves, tree = pytree.tree_flatten(arguments)
        payload = assign_slots([stop_gradient(x) for x in leaves])
        site = Site(category, message, tree, tuple(payload), user_position(2))
        self.findings.append(_Finding(failed, None, payload, (site,)))

    def check_nan(self, name: str, results: Sequence[Any]) -> None:
        """Add the check that no result of the operation `name` is NaN."""
        if NaNError not in self.enabled:
            return
        flags = [any_element(ne(x, x)) for x in results if dtypes.is_inexact(aval_of(x).dtype) and aval_of(x).size]
        if flags:
            self.add_check(NaNError, any_flag(flags), f"nan generated by primitive: {name}.")

    def check_division(self, divisor: Array | Literal) -> None:
        """Add the check that no divisor is zero."""
        known = _get_literal_value(divisor)
        if DivisionByZeroError not in self.enabled or (isinstance(known, (int, float, complex)) and known):
            return
        aval = aval_of(divisor)
        if aval.size:
            self.add_check(DivisionByZeroError, any_element(eq(divisor, constant_like(divisor, 0))), "division by zero")

    def check_bounds(
        self, index: Any, last: int, axis: int, shape: Sequence[int], component: int | None = None
    ) -> None:
        """Add the check that the indices along an axis of an array are from 0 to `last`.

        component: for index vectors, the position to check along the last axis of `index`.
        """
        known = _get_literal_value(index)
        if OOBError not in self.enabled or (isinstance(known, int) and 0 <= known <= last) or not aval_of(index).size:
            return
        if component is not None:
            index = index_in_dim(index, component, -1, False)
        if dtypes.bit_width(aval_of(index).dtype) < 32:
            index = convert_to(index, dtypes.int32)
        aval = aval_of(index).update(shape=(), weak_type=False)
        bound = Literal(min(last, int(dtypes.iinfo(aval.dtype).max)), aval)
        outside = gt(index, bound)
        if dtypes.is_signed(aval.dtype):
            outside = bitwise_or(lt(index, Literal(0, aval)), outside)
        self.add_check(
            OOBError,
            any_element(outside),
            f"out-of-bounds indexing for array of shape {tuple(shape)}: index {{}} is out of bounds for axis {axis} "
            f"with size {shape[axis]}.",
            ((first_element(outside, index),), {}),
        )

    def add_checks(self, closed: ClosedJaxpr) -> Checked:
        """Return a jaxpr that also returns its error."""
        return add_checks_to_jaxpr(closed, self.enabled)

    def add_checks_to_all(self, jaxprs: Sequence[ClosedJaxpr]) -> list[Checked]:
        """Return jaxprs that also return their errors, of one type: the sites and slots of all."""
        checked = [self.add_checks(c) for c in jaxprs]
        slots = tuple(dict.fromkeys(s for c in checked for s in c.slots))
        sites = tuple([s for c in checked for s in c.sites])
        if not sites:
            return checked
        before, together = 0, []
        for closed, own in zip(jaxprs, checked, strict=True):
            whole = add_checks_to_jaxpr(closed, self.enabled, before, slots)
            together.append(Checked(whole.jaxpr, sites, slots))
            before += len(own.sites)
        return together

    def take_error(self, checked: Checked, outputs: Sequence[Any]) -> list[Any]:
        """Add the error at the front of a checked jaxpr's results, and return the other results."""
        if checked.sites:
            self.add_error(outputs[: checked.width], checked.sites, checked.slots)
        return list(outputs[checked.width :])

    def add_error(self, leaves: Sequence[Any], sites: tuple[Site, ...], slots: tuple[Slot, ...]) -> None:
        """Add an error by its leaves."""
        code, *values = leaves
        payload = dict(zip(slots, map(stop_gradient, values), strict=True))
        self.findings.append(_Finding(ne(code, NO_ERROR), code, payload, sites))

    def call_checked(self, function: Callable[..., Sequence[Any]], values: Sequence[Any]) -> tuple[Checked, list[Any]]:
        """Return the checks of a function of a list, and its results with the error's leaves at the front."""
        error, results = run_checked(function, self.enabled, *values)
        leaves = [] if error.code is None else [error.code, *error.payload]
        return Checked(None, error.sites, error.slots), [*leaves, *results]

    def evaluate_inline(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a jaxpr, and check each of its operations."""
        with use_trace(self):
            return evaluate(closed.jaxpr, closed.consts, operands)

    # The collected checks

    def all_sites(self) -> tuple[Site, ...]:
        """Return the sites of all checks."""
        return tuple([s for f in self.findings for s in f.sites])

    def all_slots(self) -> tuple[Slot, ...]:
        """Return the slots for the messages of all checks."""
        return tuple(dict.fromkeys(s for f in self.findings for s in f.payload))

    def make_leaves(self, slots: tuple[Slot, ...], before: int = 0) -> list[Any]:
        """Return the leaves of the first error: its number, counted from `before`, and the values of the slots."""
        code: Any = NO_ERROR
        values: dict[Slot, Any] = {s: make_empty(s) for s in slots}
        number = before + len(self.all_sites())
        # From the last to the first: an earlier error replaces a later one.
        for finding in reversed(self.findings):
            number -= len(finding.sites)
            own: Any = Literal(number + 1, NUMBER)
            if finding.code is not None:
                own = add(finding.code, Literal(number, NUMBER)) if number else finding.code
            code = select_n(finding.failed, code, own)
            for slot, value in finding.payload.items():
                values[slot] = select_n(finding.failed, values[slot], value)
        return [code, *[values[s] for s in slots]]


@memoize_by_owner
def _checked_jaxpr(
    closed: ClosedJaxpr, enabled: Categories, before: int, slots: tuple[Slot, ...] | None
) -> Checked | None:
    parts: list[Any] = []

    def checked(*values: object) -> list[Any]:
        trace = CheckTrace(current_trace.get(), enabled)
        with use_trace(trace):
            results = evaluate(closed.jaxpr, closed.consts, values)
        kept = trace.all_slots() if slots is None else slots
        parts[:] = [trace.all_sites(), kept]
        if not parts[0] and slots is None:
            return results
        return [*trace.make_leaves(kept, before), *results]

    jaxpr = stage_to_jaxpr(checked, closed.in_avals, closed.jaxpr.debug_info)
    # A jaxpr that is its own entry in the table would never be freed.
    unchanged = not parts[0] and slots is None and CHECK not in closed.effects
    return None if unchanged else Checked(jaxpr, *parts)


def add_checks_to_jaxpr(
    closed: ClosedJaxpr, enabled: Categories, before: int = 0, slots: tuple[Slot, ...] | None = None
) -> Checked:
    """Return `closed` with its error.

    before: the number of earlier checks. slots: the slots of the error, which then is never left out.
    """
    return _checked_jaxpr(closed, enabled, before, slots) or Checked(closed, (), ())


def run_checked(
    function: Callable[..., Any], enabled: Categories, *args: object, **kwargs: object
) -> tuple[Error, Any]:
    """Return the error of ``function(*args, **kwargs)``, and its result."""
    trace = CheckTrace(current_trace.get(), enabled)
    try:
        with use_trace(trace):
            result = function(*args, **kwargs)
    finally:
        trace.end()
    sites, slots = trace.all_sites(), trace.all_slots()
    if not sites:
        return init_error, result
    code, *payload = trace.make_leaves(slots)
    return Error(code, payload, sites, slots), result


def _get_literal_value(operand: object) -> object:
    return operand.value if type(operand) is Literal else operand
