"""The search for the operation that made a NaN or an infinity: ``jax_debug_nans`` and ``jax_debug_infs``.

The results of every program are checked. If one has a bad number, the program's jaxpr is evaluated again on the same
operands, equation by equation, into functions, branches and the steps of loops. Each bad value has a cause: an operand
of the program, a constant, or the first operation that made a bad number from good operands. A bad number that no
result depends on, such as one that ``where`` discards, is no error. The search may call a program's callbacks again.

Loaded when one of the settings is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.diagnostics.positions import Position, user_position
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, JaxprEqn, Literal, called_jaxpr
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.settings import config
from xtrace._src.core.trace import base_trace, use_trace
from xtrace._src.debug_nans.rules import RULES
from xtrace._src.ops.calls.calls import NO_PLACES, jit_call
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_concrete
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs
from xtrace._src.xla.pytree_registry import PyTreeDef


class _WantedKinds(NamedTuple):
    """The kinds of bad numbers to find."""

    nan: bool
    inf: bool

    def find(self, value: object) -> np.ndarray[Any, Any] | None:
        """Return a mask of the bad numbers in `value`; None if it has none."""
        dtype = aval_of(value).dtype
        if isinstance(dtype, dtypes.ExtendedDType) or not dtypes.is_inexact(dtype):
            return None
        data = _data(value)
        bad = np.zeros(data.shape, bool)
        if self.nan:
            bad |= np.isnan(data)
        if self.inf:
            bad |= np.isinf(data)
        return bad if bad.any() else None


def _data(value: object) -> Any:
    """Return an array or a literal as a NumPy array with a dtype of NumPy's own."""
    data = np.asarray(value.value if type(value) is Literal else value)
    return data if data.dtype.isbuiltin == 1 else data.astype(np.float32)


def _read_wanted_kinds() -> _WantedKinds:
    return _WantedKinds(config.debug_nans.value, config.debug_infs.value)


def check_results(
    run: Callable[..., Any], closed: ClosedJaxpr, name: str | None = None, out_tree: PyTreeDef | None = None,
    donated: Sequence[bool] = (), written_here: bool = False,
) -> Callable[..., Any]:
    """Return `run` with a check of its results: it computes `closed` on concrete values and returns a list of arrays.

    name: the name of the function; None for a single operation. out_tree: the structure of the function's results.
    donated: whether each value is deleted after a check that finds nothing. written_here: whether the program is the
    library's own, so that messages have the line of the call. FloatingPointError names the operation that made the
    first bad number.
    """

    program = _Program(closed, name, out_tree, written_here)

    def run_checked(values: Sequence[Any], *details: object) -> list[Array]:
        results: list[Array] = run(values, *details)
        wanted = _read_wanted_kinds()
        for position, result in enumerate(results):
            if wanted.find(result) is not None:
                raise FloatingPointError(_explain(program, values, result, position, wanted))
        for value, is_donated in zip(values, donated, strict=False):
            if is_donated and type(value) is ConcreteArray:
                value.delete()
        return results

    return run_checked


class _Program(NamedTuple):
    """The program whose results were checked; see `check_results`."""

    closed: ClosedJaxpr
    name: str | None
    out_tree: Any
    written_here: bool

    @property
    def title(self) -> str:
        """The program's name in messages: the name of the function, or of the only operation."""
        return self.name if self.name is not None else self.closed.eqns[0].primitive.name

    def describe_argument(self, i: int) -> str:
        """Return the name of an operand in messages."""
        if self.name is None or self.written_here:
            return f"argument {i}"
        info = self.closed.jaxpr.debug_info
        paths = info.argument_paths() if info is not None else ()
        return f"argument {paths[i] if i < len(paths) else i}"

    def describe_result(self, position: int) -> str:
        """Return the name of a result in messages."""
        count = len(self.closed.out_avals)
        if count == 1:
            return f"the result of {self.title}"
        if self.out_tree is None:
            return f"result {position} of {self.title}"
        path = pytree.leaf_paths(self.out_tree)[position]
        return f"result{key_paths.keystr(path)} of {self.title}"


class _Cause(NamedTuple):
    """The cause of a bad number: an input, or an equation with its operands.

    order: the number of the cause; inputs come before operations. input: a phrase for an input, None for an equation.
    value: the input, or the equation's result. steps: phrases for the steps of loops around it, outermost first.
    """

    order: int
    input: str | None
    value: Any
    equation: JaxprEqn | None = None
    operands: Sequence[Any] = ()
    steps: tuple[str, ...] = ()


class _Search:
    """Evaluates a jaxpr and records the cause of every bad value, by the identity of the array."""

    def __init__(self, wanted: _WantedKinds) -> None:
        self.wanted = wanted
        self.known: dict[int, tuple[Any, _Cause]] = {}
        self.number = 0
        self.steps: tuple[str, ...] = ()
        # For each equation entered, innermost last: the cause of its bad operands or None, and the causes met inside.
        self.entered: list[tuple[_Cause | None, list[_Cause]]] = []

    def record(self, value: object, cause: _Cause) -> None:
        self.known[id(value)] = value, cause
        if self.entered:
            self.entered[-1][1].append(cause)

    def find_cause(self, value: object) -> _Cause | None:
        """Return the recorded cause of a bad value; None for a good value."""
        entry = self.known.get(id(value))
        return entry[1] if entry is not None else None

    def find_first_cause(self, values: Sequence[Any]) -> _Cause | None:
        return min((c for v in values if (c := self.find_cause(v)) is not None), key=lambda c: c.order, default=None)

    def record_input(self, value: object, phrase: str) -> None:
        """Record an input as its own cause if it is bad; `phrase` names it."""
        if self.find_cause(value) is None and self.wanted.find(value) is not None:
            self.record(value, _Cause(-1, phrase, value))

    def evaluate(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a jaxpr, equation by equation."""
        jaxpr = closed.jaxpr
        for x in closed.consts:
            self.record_input(x, "an array that the function closes over")
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *operands], strict=True))
        for equation in jaxpr.eqns:
            if equation.outvars:  # equations without results have effects only, and the program has had these
                given = [x if type(x) is Literal else values[x] for x in equation.invars]  # type: ignore[index]
                values.update(zip(equation.outvars, self.evaluate_equation(equation, given), strict=True))
        for x in jaxpr.outvars:
            self.record_literal(x)
        return [x if type(x) is Literal else values[x] for x in jaxpr.outvars]  # type: ignore[index]

    def record_literal(self, x: object) -> None:
        if type(x) is Literal:
            self.record_input(x, f"the constant {x.value}")

    def evaluate_equation(self, equation: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results of an equation, and record the cause of each bad one."""
        for x in operands:
            self.record_literal(x)
        primitive = equation.primitive
        results: Sequence[Any] = base_trace.process(primitive, operands, equation.parameters)
        if not primitive.multiple_results:
            results = [results]
        bad = [i for i, x in enumerate(results) if self.wanted.find(x) is not None]
        if not bad:
            return results
        cause = self.find_first_cause(operands)
        with self._enter(cause) as met:
            inside = self.evaluate_inside(equation, operands)
        cause = min(met, key=lambda c: c.order, default=cause)
        if cause is None:
            self.number += 1
            cause = _Cause(self.number, None, results[bad[0]], equation, operands, self.steps)
        for i in bad:
            inner = self.find_cause(inside[i]) if i < len(inside) else None
            self.record(results[i], inner or cause)
        return results

    def evaluate_inside(self, equation: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
        """Return an equation's results as its jaxprs compute them; nothing if it has no jaxpr."""
        rule = RULES.get(equation.primitive)
        if rule is not None:
            return rule(self.run, operands, **equation.params)
        called = called_jaxpr(equation.primitive, equation.parameters, [aval_of(x) for x in operands])
        return () if called is None else self.run("", called, operands)

    @contextmanager
    def _enter(self, cause: _Cause | None) -> Iterator[list[_Cause]]:
        met: list[_Cause] = []
        self.entered.append((cause, met))
        try:
            yield met
        finally:
            self.entered.pop()

    def run(self, step: str, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the results of one jaxpr of the innermost entered equation.

        step: a phrase for a step of a loop, which is computed as one program if its results are good; else empty.
        """
        outer = self.entered[-1][0]
        for x in operands:
            # A part of a bad operand, such as an element of a scanned array.
            if self.find_cause(x) is None and self.wanted.find(x) is not None and outer is not None:
                self.record(x, outer)
        if not step:
            return self.evaluate(closed, operands)
        results = _run_as_program(closed, operands)
        bad = [x for x in results if self.wanted.find(x) is not None]
        if not bad:
            return results
        cause = self.find_first_cause(operands)
        if cause is not None:
            for x in bad:
                self.record(x, cause)
            return results
        outside, self.steps = self.steps, (*self.steps, step)
        for result, evaluated in zip(results, self.evaluate(closed, operands), strict=True):
            if (inner := self.find_cause(evaluated)) is not None:
                self.record(result, inner)
        self.steps = outside
        return results


def _run_as_program(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a jaxpr as one program."""
    if closed.consts:
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
    return list(base_trace.process(jit_call, operands, ("step", closed, (), False, None, False, *NO_PLACES)))


def _explain(program: _Program, values: Sequence[Any], result: Array, position: int, wanted: _WantedKinds) -> str:
    """Return the message about a bad number in `result`, the program's result at `position`."""
    caller = user_position()
    reaches = program.describe_result(position)
    try:
        cause = _find_cause(program, values, result, position, wanted)
    except Exception as error:
        why = f"evaluating them one by one failed: {error}"
        if any(type(x) is ConcreteArray and x.is_deleted() for x in values):
            why = "the arguments were donated; the jitted function keeps them while the setting is on"
        text = f"It is in {reaches}. Which operation made it cannot be said: {why}."
        return _message(_kind(result, wanted), program.title, text, caller)
    if cause is None:
        text = (
            f"It is in {reaches}, but no operation makes it when they are evaluated one by one: it comes from how XLA "
            "rearranges them."
        )
        return _message(_kind(result, wanted), program.title, text, caller)
    kind, equation = _kind(cause.value, wanted), cause.equation
    if equation is None:
        return _message(kind, program.title, _describe_input(cause, wanted, reaches), caller)
    source = None if program.written_here else equation.source
    text = _describe_operation(cause, equation.primitive.name, wanted)
    if program.name is not None and not program.written_here:
        text += f" It reaches {reaches}."
    return _message(kind, equation.primitive.name, text, source if source is not None else caller)


def _describe_input(cause: _Cause, wanted: _WantedKinds, reaches: str) -> str:
    kind = aval_of(cause.value).str_short(True)
    at = _describe_index(_first_index(cause.value, wanted))
    return f"No operation made it first: {cause.input}, {kind}, has it already{at}, and {reaches} depends on that."


def _describe_operation(cause: _Cause, operation: str, wanted: _WantedKinds) -> str:
    inside = f" in {', in '.join(reversed(cause.steps))}" if cause.steps else ""
    types = ", ".join(aval_of(x).str_short(True) for x in cause.operands)
    return f"{operation} of ({types}) made it{inside}: its operands have none{_describe_elements(cause, wanted)}."


def _message(kind: str, operation: str, text: str, position: Position | None) -> str:
    return f"invalid value ({kind}) encountered in {operation}\n{text}\n{excerpt(position)}"


def _find_cause(
    program: _Program, values: Sequence[Any], result: Array, position: int, wanted: _WantedKinds
) -> _Cause | None:
    """Return the cause of the bad number in the result at `position`; None if single operations make no bad number."""
    search = _Search(wanted)
    operands = [to_concrete(x, result.device) for x in values]
    for i, x in enumerate(operands):
        search.record_input(x, program.describe_argument(i))
    with ExitStack() as scopes:
        scopes.enter_context(use_trace(base_trace))
        for setting in (config.debug_nans, config.debug_infs, config.debug_key_reuse, config.disable_jit):
            scopes.enter_context(setting(False))
        return search.find_cause(search.evaluate(program.closed, operands)[position])


def _kind(value: object, wanted: _WantedKinds) -> str:
    return "nan" if wanted.nan and np.isnan(_data(value)).any() else "inf"


def _first_index(value: object, wanted: _WantedKinds) -> tuple[int, ...]:
    """Return the index of the first bad number."""
    bad = wanted.find(value)
    assert bad is not None
    return tuple(int(i) for i in np.argwhere(bad)[0])


def _describe_index(index: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, index))}]" if index else ""


def _describe_elements(cause: _Cause, wanted: _WantedKinds) -> str:
    """Return a phrase with the operands' elements at the bad element of an elementwise result."""
    index = _first_index(cause.value, wanted)
    at = _describe_index(index)
    shape = aval_of(cause.value).shape
    if not cause.operands or any(aval_of(x).shape not in ((), shape) for x in cause.operands):
        return f", its result {aval_of(cause.value).str_short(True)} has it{at}" if index else ""
    numbers = [str(_data(x)[index if aval_of(x).shape else ()]) for x in cause.operands]
    return f", they are ({', '.join(numbers)}){at}"
