"""Programs that return many equal draws, such as the initialisation of a model: one loop computes them.

XLA compiles the code of each draw anew, the body of a loop once. XLA's CPU compiler gives the body one thread, so only
draws that take little time are computed so. The numbers are the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.positions import call_at
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, are_cacheable
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.ops.arrays.concatenation import stack
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.control_flow.scan import bind_scan
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.random.keys import random_bits, random_fold_in
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.jaxpr_transforms import cast_weak_type, stage_to_jaxpr

# Half a million numbers take a millisecond or two.
_FEWEST_ELEMENTS, _MOST_ELEMENTS = 256, 2**19
# A search from each result of a large program must end soon.
_MOST_EQUATIONS = 100
# Arrays of more elements belong to a draw. Smaller ones, such as its scale, are its inputs.
_MOST_INPUT_ELEMENTS = 16


class _Draw(NamedTuple):
    """The equations of a draw, in order, the small values that they read, and the array that the program returns."""

    equations: list[JaxprEqn]
    inputs: list[Atom]
    result: Var


def loop_over_equal_draws(closed: ClosedJaxpr, many: int) -> ClosedJaxpr:
    """Return `closed`, which has no effects, with a loop for each group of `many` equal draws that it returns."""
    jaxpr = closed.jaxpr
    groups: dict[Any, list[_Draw]] = {}
    for draw in _Search(jaxpr).find_draws():
        groups.setdefault(_describe(draw), []).append(draw)
    chosen = [
        draws for draws in groups.values()
        if len(draws) >= many and len(draws) * math.prod(draws[0].result.aval.shape) <= _MOST_ELEMENTS
    ]
    if not chosen:
        return closed
    first = _find_equal_values(jaxpr)
    loops: list[JaxprEqn] = []
    replaced: set[int] = set()
    for draws in chosen:
        loop = call_at(draws[0].equations[0], _make_loop, draws, first)
        loops += loop
        replaced.update(id(e) for draw in draws for e in draw.equations if loop)
    kept = [e for e in jaxpr.eqns if id(e) not in replaced]
    # The loops read one of several equal values; the others are dead.
    live, _ = eliminate_dead_code(jaxpr.replace(eqns=[*kept, *loops]))
    return ClosedJaxpr(live, closed.consts)


def _find_equal_values(jaxpr: Jaxpr) -> dict[Atom, Atom]:
    """Return, for each small value that equations compute, the first value that is equal to it."""
    known: dict[Any, list[Var]] = {}
    first: dict[Atom, Atom] = {}
    for e in jaxpr.eqns:
        if all(_is_small(v) for v in e.outvars) and are_cacheable(e.parameters):
            operands = tuple([_describe_literal(x) if isinstance(x, Literal) else first.get(x, x) for x in e.invars])
            values = known.setdefault((e.primitive, e.parameters, operands), e.outvars)
            first.update(zip(e.outvars, values, strict=True))
    return first


class _Search:
    """The search for draws in a jaxpr."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.equations = jaxpr.eqns
        # The numbers of the equations that compute a variable, and that read it.
        self.origins = {v: i for i, e in enumerate(jaxpr.eqns) for v in e.outvars}
        self.readers: dict[Atom, set[int]] = {}
        for i, equation in enumerate(jaxpr.eqns):
            for x in equation.invars:
                self.readers.setdefault(x, set()).add(i)
        self.returned = dict.fromkeys(v for v in jaxpr.outvars if isinstance(v, Var))

    def find_draws(self) -> Iterator[_Draw]:
        """Yield the draws whose result the program returns and no equation reads."""
        for result in self.returned:
            if result in self.origins and result not in self.readers and _has_fitting_size(result):
                places = self._find_equations(result)
                equations = [self.equations[i] for i in sorted(places)]
                inner = {v for e in equations for v in e.outvars}
                is_alone = all(v is result or self._is_read_in(places, v) for v in inner)
                if is_alone and any(e.primitive is random_bits for e in equations):
                    yield _Draw(equations, [x for e in equations for x in e.invars if x not in inner], result)

    def _is_read_in(self, places: set[int], variable: Var) -> bool:
        return variable not in self.returned and self.readers.get(variable, places) <= places

    def _find_equations(self, result: Var) -> set[int]:
        """Return the numbers of the equations that compute `result` from small values; empty if there are others."""
        places: set[int] = set()
        waiting = [self.origins[result]]
        while waiting:
            place = waiting.pop()
            if place not in places:
                places.add(place)
                equation = self.equations[place]
                if len(places) > _MOST_EQUATIONS or not are_cacheable(equation.parameters):
                    return set()
                for x in equation.invars:
                    if isinstance(x, Literal):
                        continue
                    if x not in self.origins:
                        if not _is_small(x):
                            return set()
                    elif not _is_small(x) or self._is_own_key(places, x):
                        waiting.append(self.origins[x])
        return places

    def _is_own_key(self, places: set[int], key: Var) -> bool:
        """Return whether `key` was folded from another one and only the equations `places` read it."""
        return self.equations[self.origins[key]].primitive is random_fold_in and self._is_read_in(places, key)


def _is_small(variable: Var) -> bool:
    return math.prod(variable.aval.shape) <= _MOST_INPUT_ELEMENTS


def _has_fitting_size(result: Var) -> bool:
    aval = result.aval
    return aval.memory_space is MemorySpace.Device and _FEWEST_ELEMENTS <= math.prod(aval.shape) <= _MOST_ELEMENTS


def _describe_literal(x: Literal) -> Any:
    # The text of a number tells 0.0 from -0.0.
    return repr(x.value), x.aval


def _describe(draw: _Draw) -> Any:
    """Return a value that is equal for draws that differ in the values of their inputs alone."""
    numbers: dict[Atom, int] = {}
    rows: list[Any] = [tuple(x.aval for x in draw.inputs)]
    for equation in draw.equations:
        # Inputs are numbered in the order in which the equations read them.
        rows.append((equation.primitive, equation.parameters, tuple([numbers.get(x) for x in equation.invars])))
        numbers.update(zip(equation.outvars, itertools.count(len(numbers)), strict=False))
    return tuple(rows)


def _make_loop(draws: Sequence[_Draw], first: Mapping[Atom, Atom]) -> list[JaxprEqn]:
    """Return the equations of a loop that computes the results of equal draws; none if their inputs are equal, too.

    first: the first of equal values.
    """
    count, equations = len(draws), draws[0].equations
    inputs: list[Atom] = []
    scanned: dict[tuple[Any, ...], Var] = {}
    for row in zip(*[[first.get(x, x) for x in draw.inputs] for draw in draws], strict=True):
        names = tuple([_describe_literal(x) if isinstance(x, Literal) else x for x in row])
        inputs.append(row[0] if len(set(names)) == 1 else scanned.setdefault(row, Var(row[0].aval)))
    if not scanned:
        return []
    fixed = list(dict.fromkeys(x for x in inputs if isinstance(x, Var) and x not in scanned.values()))
    inner, remaining = {v for e in equations for v in e.outvars}, iter(inputs)
    steps = [e.replace(invars=[x if x in inner else next(remaining) for x in e.invars]) for e in equations]
    body = ClosedJaxpr(Jaxpr([], [*fixed, *scanned.values()], [draws[0].result], steps), [])

    def compute(*values: Any) -> list[Any]:
        known: dict[Atom, Any] = dict(zip(operands, values, strict=True))
        stacks = []
        for row in scanned:
            parts = [dtypes.cast(x.value, x.aval.dtype) if isinstance(x, Literal) else known[x] for x in row]
            stacks.append(cast_weak_type(stack(parts), row[0].aval))
        loop = Loop(count, False, 1, num_consts=len(fixed), num_carry=0)
        (numbers,) = bind_scan(body, loop, [*values[: len(fixed)], *stacks])
        return [index_in_dim(numbers, i, keepdims=False) for i in range(count)]

    operands = list(dict.fromkeys([*fixed, *[x for row in scanned for x in row if isinstance(x, Var)]]))
    made = stage_to_jaxpr(compute, [v.aval for v in operands], None).jaxpr
    ends = [*operands, *[draw.result for draw in draws]]
    outer: dict[Atom, Var] = dict(zip([*made.invars, *made.outvars], ends, strict=True))
    return [
        e.replace(invars=[outer.get(x, x) for x in e.invars], outvars=[outer.get(v, v) for v in e.outvars])
        for e in made.eqns
    ]
