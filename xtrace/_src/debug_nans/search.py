"""Which operation made a NaN or an infinity: what the settings ``jax_debug_nans`` and ``jax_debug_infs`` ask for.

The results of every program are looked at. If there is a bad number among them, the jaxpr of the program is evaluated
again, on the same operands and equation by equation, into functions, branches and the steps of loops. Every bad value
is followed to its cause: an operand of the program, a constant, or the first operation that made one of operands that
had none. A bad number that no result depends on, as one that ``where`` leaves out, is nobody's fault. What a program
calls back may be called again by this.

Loaded when one of the settings is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core import config, dtypes, key_paths, pytree
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.ir import ClosedJaxpr, JaxprEqn, Literal, called_jaxpr
from xtrace._src.core.source import Position, user_position
from xtrace._src.core.trace import base_trace, use_trace
from xtrace._src.debug_nans.rules import RULES
from xtrace._src.ops.calls import NO_PLACES, jit_call
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_concrete
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs
from xtrace._src.xla.pytree_registry import PyTreeDef


class _Wanted(NamedTuple):
    """Which numbers are looked for."""

    nan: bool
    inf: bool

    def among(self, value: object) -> np.ndarray[Any, Any] | None:
        """Return where `value` has such numbers, None if it has none."""
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
    """Return an array or a literal as NumPy's, of a dtype that NumPy computes with."""
    data = np.asarray(value.value if type(value) is Literal else value)
    return data if data.dtype.isbuiltin == 1 else data.astype(np.float32)


def _read_wanted() -> _Wanted:
    return _Wanted(config.debug_nans.value, config.debug_infs.value)


def check_results(
    run: Callable[..., Any], closed: ClosedJaxpr, name: str | None = None, out_tree: PyTreeDef | None = None,
    donated: Sequence[bool] = (), written_here: bool = False,
) -> Callable[..., Any]:
    """Return `run`, which computes a jaxpr on concrete values and returns a list of arrays, with its results checked.

    FloatingPointError says which operation made the first bad number. name: the function's name, None for a single
    operation. out_tree: the structure of its results. donated: which values are deleted once the results are good. Of
    programs that are `written_here`, the line is that which calls them.
    """

    program = _Program(closed, name, out_tree, written_here)

    def run_checked(values: Sequence[Any], *details: object) -> list[Array]:
        results: list[Array] = run(values, *details)
        wanted = _read_wanted()
        for position, result in enumerate(results):
            if wanted.among(result) is not None:
                raise FloatingPointError(_explain(program, values, result, position, wanted))
        for value, gone in zip(values, donated, strict=False):
            if gone and type(value) is ConcreteArray:
                value.delete()
        return results

    return run_checked


class _Program(NamedTuple):
    """What has been run; see `check_results`."""

    closed: ClosedJaxpr
    name: str | None
    out_tree: Any
    written_here: bool

    @property
    def what(self) -> str:
        """What messages call it: the function's name, or that of the only operation."""
        return self.name if self.name is not None else self.closed.eqns[0].primitive.name

    def argument(self, i: int) -> str:
        """What messages call an operand."""
        if self.name is None or self.written_here:
            return f"argument {i}"
        info = self.closed.jaxpr.debug_info
        paths = info.argument_paths() if info is not None else ()
        return f"argument {paths[i] if i < len(paths) else i}"

    def result(self, position: int) -> str:
        """What messages call a result."""
        count = len(self.closed.out_avals)
        if count == 1:
            return f"the result of {self.what}"
        if self.out_tree is None:
            return f"result {position} of {self.what}"
        path = pytree.leaf_paths(self.out_tree)[position]
        return f"result{key_paths.keystr(path)} of {self.what}"


class _Cause(NamedTuple):
    """Where a bad number comes from: a phrase for an input, or an equation with its operands and its result.

    order: causes are numbered, inputs before operations. where: the steps of loops, outermost first.
    """

    order: int
    given: str | None
    value: Any
    equation: JaxprEqn | None = None
    operands: Sequence[Any] = ()
    where: tuple[str, ...] = ()


class _Search:
    """Evaluates a jaxpr and keeps the cause of every bad value, which is found by the identity of the array."""

    def __init__(self, wanted: _Wanted) -> None:
        self.wanted = wanted
        self.known: dict[int, tuple[Any, _Cause]] = {}
        self.number = 0
        self.where: tuple[str, ...] = ()
        # Of the equations entered, innermost last: the cause of its operands if one is bad; and the causes met inside.
        self.entered: list[tuple[_Cause | None, list[_Cause]]] = []

    def note(self, value: object, cause: _Cause) -> None:
        self.known[id(value)] = value, cause
        if self.entered:
            self.entered[-1][1].append(cause)

    def cause_of(self, value: object) -> _Cause | None:
        """Return the cause of a bad value that has been met, None for a good one."""
        entry = self.known.get(id(value))
        return entry[1] if entry is not None else None

    def first_cause(self, values: Sequence[Any]) -> _Cause | None:
        return min((c for v in values if (c := self.cause_of(v)) is not None), key=lambda c: c.order, default=None)

    def give(self, value: object, phrase: str) -> None:
        """Note an input as the cause of its value, if that is bad."""
        if self.cause_of(value) is None and self.wanted.among(value) is not None:
            self.note(value, _Cause(-1, phrase, value))

    def evaluate(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the results of a jaxpr, equation by equation."""
        jaxpr = closed.jaxpr
        for x in closed.consts:
            self.give(x, "an array that the function closes over")
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *operands], strict=True))
        for equation in jaxpr.eqns:
            if equation.outvars:  # those without results are there for their effects, which have been
                given = [x if type(x) is Literal else values[x] for x in equation.invars]  # type: ignore[index]
                values.update(zip(equation.outvars, self.results_of(equation, given), strict=True))
        for x in jaxpr.outvars:
            self.give_literal(x)
        return [x if type(x) is Literal else values[x] for x in jaxpr.outvars]  # type: ignore[index]

    def give_literal(self, x: object) -> None:
        if type(x) is Literal:
            self.give(x, f"the constant {x.value}")

    def results_of(self, equation: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results of an equation, each bad one with its cause."""
        for x in operands:
            self.give_literal(x)
        primitive = equation.primitive
        results: Sequence[Any] = base_trace.process(primitive, operands, equation.parameters)
        if not primitive.multiple_results:
            results = [results]
        bad = [i for i, x in enumerate(results) if self.wanted.among(x) is not None]
        if not bad:
            return results
        cause = self.first_cause(operands)
        with self._enter(cause) as met:
            inside = self.inner_results(equation, operands)
        cause = min(met, key=lambda c: c.order, default=cause)
        if cause is None:
            self.number += 1
            cause = _Cause(self.number, None, results[bad[0]], equation, operands, self.where)
        for i in bad:
            inner = self.cause_of(inside[i]) if i < len(inside) else None
            self.note(results[i], inner or cause)
        return results

    def inner_results(self, equation: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results of an equation computed by the jaxprs that it holds, none where it holds no jaxpr."""
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

    def run(self, where: str, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Compute one jaxpr of an equation that is being gone through."""
        around = self.entered[-1][0]
        for x in operands:
            # A part of a bad operand, such as an element that is scanned over.
            if self.cause_of(x) is None and self.wanted.among(x) is not None and around is not None:
                self.note(x, around)
        if not where:
            return self.evaluate(closed, operands)
        results = _results(closed, operands)
        bad = [x for x in results if self.wanted.among(x) is not None]
        if not bad:
            return results
        cause = self.first_cause(operands)
        if cause is not None:
            for x in bad:
                self.note(x, cause)
            return results
        outside, self.where = self.where, (*self.where, where)
        for result, evaluated in zip(results, self.evaluate(closed, operands), strict=True):
            if (inner := self.cause_of(evaluated)) is not None:
                self.note(result, inner)
        self.where = outside
        return results


def _results(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Return the results of a jaxpr as one program."""
    if closed.consts:
        closed, operands = move_constants_to_inputs(closed), [*closed.consts, *operands]
    result: list[Any] = base_trace.process(jit_call, operands, ("step", closed, (), False, None, False, *NO_PLACES))
    return result


def _explain(program: _Program, values: Sequence[Any], result: Array, position: int, wanted: _Wanted) -> str:
    """Return the message about a bad number in `result`, the one at `position`."""
    caller = user_position()
    reaches = program.result(position)
    try:
        cause = _cause(program, values, result, position, wanted)
    except Exception as error:
        why = f"evaluating them one by one failed: {error}"
        if any(type(x) is ConcreteArray and x.is_deleted() for x in values):
            why = "the arguments were donated; the jitted function keeps them while the setting is on"
        text = f"It is in {reaches}. Which operation made it cannot be said: {why}."
        return _message(_kind(result, wanted), program.what, text, caller)
    if cause is None:
        text = (
            f"It is in {reaches}, but no operation makes it when they are evaluated one by one: it comes from how XLA "
            "rearranges them."
        )
        return _message(_kind(result, wanted), program.what, text, caller)
    kind, equation = _kind(cause.value, wanted), cause.equation
    if equation is None:
        return _message(kind, program.what, _given_text(cause, wanted, reaches), caller)
    source = None if program.written_here else equation.source
    text = _made_text(cause, equation.primitive.name, wanted)
    if program.name is not None and not program.written_here:
        text += f" It reaches {reaches}."
    return _message(kind, equation.primitive.name, text, source if source is not None else caller)


def _given_text(cause: _Cause, wanted: _Wanted, reaches: str) -> str:
    kind = aval_of(cause.value).str_short()
    place = _place(cause.value, wanted)[1]
    return f"No operation made it first: {cause.given}, {kind}, has it already{place}, and {reaches} depends on that."


def _made_text(cause: _Cause, operation: str, wanted: _Wanted) -> str:
    inside = f" in {', in '.join(reversed(cause.where))}" if cause.where else ""
    types = ", ".join(aval_of(x).str_short() for x in cause.operands)
    return f"{operation} of ({types}) made it{inside}: its operands have none{_there(cause, wanted)}."


def _message(kind: str, what: str, text: str, position: Position | None) -> str:
    return f"invalid value ({kind}) encountered in {what}\n{text}\n{excerpt(position)}"


def _cause(program: _Program, values: Sequence[Any], result: Array, position: int, wanted: _Wanted) -> _Cause | None:
    """Return the cause of the bad number in the result at `position`, None if operations one by one make none."""
    search = _Search(wanted)
    operands = [to_concrete(x, result.device) for x in values]
    for i, x in enumerate(operands):
        search.give(x, program.argument(i))
    with ExitStack() as scopes:
        scopes.enter_context(use_trace(base_trace))
        for setting in (config.debug_nans, config.debug_infs, config.debug_key_reuse, config.disable_jit):
            scopes.enter_context(setting(False))
        return search.cause_of(search.evaluate(program.closed, operands)[position])


def _kind(value: object, wanted: _Wanted) -> str:
    return "nan" if wanted.nan and np.isnan(_data(value)).any() else "inf"


def _place(value: object, wanted: _Wanted) -> tuple[tuple[int, ...], str]:
    """Return the index of the first bad number, and how a sentence says it."""
    bad = wanted.among(value)
    assert bad is not None
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    return index, f" at [{', '.join(map(str, index))}]" if index else ""


def _there(cause: _Cause, wanted: _Wanted) -> str:
    """Return the operands at the bad element of an elementwise result, in words."""
    index, place = _place(cause.value, wanted)
    shape = aval_of(cause.value).shape
    if not cause.operands or any(aval_of(x).shape not in ((), shape) for x in cause.operands):
        return f", its result {aval_of(cause.value).str_short()} has it{place}" if index else ""
    numbers = [str(_data(x)[index if aval_of(x).shape else ()]) for x in cause.operands]
    return f", they are ({', '.join(numbers)}){place}"
