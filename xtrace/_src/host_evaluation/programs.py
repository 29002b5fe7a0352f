"""Programs whose first calls NumPy evaluates.

XLA takes about 30 ms to compile a program of one operation. Many programs of the library run once or twice in a
process: zeros, new random keys, slices, sums of counters. NumPy evaluates their first calls operation by operation;
a later call compiles them. The same goes for programs of users that read no argument, such as the zeros that an
optimizer starts from.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.host_evaluation.rules import EXACT, MOVES, ROUNDED, Declined
from xtrace._src.ops.calls.calls import jit_call
from xtrace._src.ops.calls.lower_fun import emit_bitcast, find_formula_jaxpr
from xtrace._src.ops.elementwise.elementwise import div
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.execute import Assignment
from xtrace._src.runtime.transfer import array_from_host, to_input
from xtrace._src.xla import buffers

# The number of calls that are evaluated before the program is compiled.
_CALLS = 3
# The largest number of elements in all results of a program's operations together: NumPy takes about 1 ns each.
_MAX_ELEMENTS = 2**20

_Values = np.ndarray[Any, Any]
_Run = Callable[[Sequence[_Values]], list[_Values]]


class HostProgram:
    """A program that is evaluated `_CALLS` times; the next call compiles it, by ``compile(values)``.

    It has the interface of a `Task` whose result is the compiled program.
    """

    __slots__ = ("result", "error", "_evaluate", "_compile", "_left", "_lock")

    def __init__(
        self, evaluate: Callable[[Sequence[Any]], list[ConcreteArray]],
        compile: Callable[[Sequence[Any]], Callable[..., list[ConcreteArray]]],
    ) -> None:
        self._evaluate, self._compile, self._left, self._lock = evaluate, compile, _CALLS, threading.RLock()
        self.result: Callable[..., list[ConcreteArray]] | None = None
        self.error: BaseException | None = None

    def __call__(self, values: Sequence[Any], *names: Any) -> list[ConcreteArray]:
        if self.result is None and self._left > 0:
            self._left -= 1
            try:
                return self._evaluate(values)
            except Declined:
                self._left = 0
        with self._lock:
            if self.result is None:
                self.result = self._compile(values)
        return self.result(values, *names)

    def is_done(self) -> bool:
        """Whether the program is compiled."""
        return self.result is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Return True at once: only a call compiles the program."""
        return True


def host_program(
    closed: ClosedJaxpr, assignment: Assignment, compile: Callable[[Sequence[Any]], Any], reads: bool = True
) -> HostProgram | None:
    """Return the program of `closed` on the device of `assignment`; None if NumPy's results may differ from XLA's.

    reads: whether it reads its arguments; otherwise `closed` has none.
    """
    is_placed = assignment.mesh is not None or assignment.layouts is not None
    if is_placed or (closed.in_avals and assignment.platform != "cpu"):
        return None
    # XLA knows all numbers of a program that reads none, so that it may simplify any operation that rounds.
    run = _Plan(closed.jaxpr.invars, roundings=int(reads)).make(closed)
    if run is None:
        return None
    device, out_avals = assignment.device, closed.out_avals
    where = device if assignment.committed else None

    def evaluate(values: Sequence[Any]) -> list[ConcreteArray]:
        arrays = [to_input(x, device) for x in values] if reads else []
        is_there = all(x._place is device and buffers.is_ready(x.buffer) for x in arrays)
        if not is_there or any(guard.value not in (None, "allow") for guard in config.transfer_guards()):
            raise Declined
        with np.errstate(all="ignore"):
            results = run([_to_host(x) for x in arrays])
        # A transfer may hold its source for a while, and memory of an operand could not be donated meanwhile.
        owned = [np.array(x) if isinstance(x, np.ndarray) and x.base is not None else np.asarray(x) for x in results]
        return [array_from_host(x, aval, where) for x, aval in zip(owned, out_avals, strict=True)]

    return HostProgram(evaluate, compile)


def _to_host(x: Any) -> _Values:
    if type(x) is ConcreteArray:
        return buffers.to_host(x.buffer, physical_aval(x.aval).dtype)
    return np.asarray(x)


class _Plan:
    """Finds the rules of a jaxpr's equations, and counts the elements and the rounded operations that it may have."""

    def __init__(self, inputs: Sequence[Var], roundings: int) -> None:
        self.elements, self.roundings, self.inputs = 0, roundings, frozenset(inputs)

    def make(self, closed: ClosedJaxpr) -> _Run | None:
        """Return the function that evaluates a jaxpr; None if an equation has no rule or the jaxpr is too large."""
        jaxpr = closed.jaxpr
        variables = [*jaxpr.constvars, *jaxpr.invars]
        if jaxpr.effects or not all(_is_plain(v.aval) for v in variables):
            return None
        rules: list[_Run] = []
        for equation in jaxpr.eqns:
            self.elements += sum([v.aval.size for v in equation.outvars])
            rule = self._find_rule(equation) if self.elements <= _MAX_ELEMENTS else None
            if rule is None or self.roundings < 0:
                return None
            rules.append(rule)
        constants = [_to_host(x) for x in closed.consts]
        return functools.partial(_run, jaxpr, rules, constants)

    def _find_rule(self, equation: JaxprEqn) -> _Run | None:
        primitive = equation.primitive
        avals = [x.aval for x in equation.invars]
        if not all(_is_plain(a) for a in [*avals, *[v.aval for v in equation.outvars]]):
            return None
        if primitive is jit_call:
            return self.make(equation.params["jaxpr"])
        if primitive.emit is emit_bitcast:
            return list
        formula = find_formula_jaxpr(primitive, avals, equation.params)
        if formula is not None:
            return self.make(formula)
        rule = MOVES.get(primitive)
        if any(isinstance(x.aval.dtype, dtypes.ExtendedDType) for x in [*equation.invars, *equation.outvars]):
            if rule is None or primitive is convert:
                return None
            stored = [physical_aval(a).ndim - a.ndim for a in avals]
            return self._bind(_on_elements(rule, stored) if any(stored) else rule, equation)
        if rule is None and all(a.dtype.kind in "biu" for a in avals):
            rule = EXACT.get(primitive)
        if rule is None and primitive in ROUNDED and all(a.dtype.kind == "f" and a.dtype.itemsize >= 4 for a in avals):
            # XLA may simplify an operation on a constant: it drops a sum with zero.
            rule = None if any(type(x) is Literal for x in equation.invars) else ROUNDED[primitive]
            # It multiplies by the inverse of a broadcast divisor.
            if primitive is div:
                divisor, whole = equation.invars[1], equation.outvars[0].aval.shape
                rule = rule if divisor in self.inputs and divisor.aval.shape == whole else None
            self.roundings -= 1
        return None if rule is None else self._bind(rule, equation)

    def _bind(self, rule: Callable[..., Any], equation: JaxprEqn) -> _Run:
        """Return `rule` with an equation's parameters, as a function from operands to a list of results."""
        named = equation.params
        if equation.primitive.multiple_results:
            return lambda values: rule(*values, **named)
        return lambda values: [rule(*values, **named)]


def _on_elements(rule: Callable[..., Any], stored: Sequence[int]) -> Callable[..., Any]:
    """Return the rule of a move of keys: an element of operand i is a vector over its last ``stored[i]`` axes."""

    def compute(*operands: _Values, **parameters: Any) -> Any:
        words = next((x.shape[-n:], x.dtype) for x, n in zip(operands, stored, strict=True) if n)
        element = np.dtype((np.void, math.prod(words[0]) * words[1].itemsize))
        packed = [
            np.ascontiguousarray(x).reshape(*x.shape[:-n], -1).view(element)[..., 0] if n else x
            for x, n in zip(operands, stored, strict=True)
        ]
        results = rule(*packed, **parameters)
        several = isinstance(results, list)
        unpacked = [
            np.ascontiguousarray(r).reshape(*r.shape, 1).view(words[1]).reshape(*r.shape, *words[0])
            for r in (results if several else [results])
        ]
        return unpacked if several else unpacked[0]

    return compute


def _is_plain(aval: ShapedArray) -> bool:
    """Return whether NumPy can hold arrays of this type: whole bytes on one device, with known sizes."""
    return not (aval.is_placed or has_symbolic(aval.shape)) and dtypes.bit_width(physical_aval(aval).dtype) >= 8


def _run(jaxpr: Jaxpr, rules: Sequence[_Run], constants: Sequence[_Values], inputs: Sequence[_Values]) -> list[_Values]:
    values: dict[Any, _Values] = dict(zip(jaxpr.constvars, constants, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))

    def read(x: Any) -> _Values:
        return np.asarray(x.value, physical_aval(x.aval).dtype) if type(x) is Literal else values[x]

    for equation, rule in zip(jaxpr.eqns, rules, strict=True):
        values.update(zip(equation.outvars, rule([read(x) for x in equation.invars]), strict=True))
    return [read(x) for x in jaxpr.outvars]
