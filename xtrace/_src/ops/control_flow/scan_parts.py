"""The split of a scan into a known scan and a linear (or unknown) scan over its residuals."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.jaxprs.effects import NO_EFFECTS
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import stack
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.control_flow.bodies import open_jaxpr
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.jaxpr_transforms import PartitionedJaxpr, filter_by_mask, find_fixpoint, or_masks

with late_modules(globals()):
    from xtrace._src.ops.arrays.dynamic_slicing import dynamic_index_in_dim


class Loop(NamedTuple):
    """The trip count, direction and unrolling of a scan, and the layout of its operands."""

    length: int
    reverse: bool
    unroll: int
    num_consts: int
    num_carry: int

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Split one value for each operand into the values of constants, of the carry and of scanned arrays."""
        carried = self.num_consts + self.num_carry
        return list(values[: self.num_consts]), list(values[self.num_consts : carried]), list(values[carried:])


def choose_unroll(unroll: Any, size: int) -> int:
    """Return the number of steps in one iteration of the loop; `size` is the trip count, used for True."""
    if isinstance(unroll, (bool, np.bool_)):
        return max(size, 1) if unroll else 1
    if isinstance(unroll, Tracer):
        raise explain.concretization(unroll, f"{called_function()} as unroll, which must be known while tracing")
    if not hasattr(unroll, "__index__") or unroll < 0:
        raise (ValueError if hasattr(unroll, "__index__") else TypeError)(
            f"{called_function()}: `unroll` must be a `bool` or a non-negative `int`, got {abbreviate(unroll)}."
        )
    return max(operator.index(unroll), 1)


def regroup_jaxpr(inputs: Sequence[Sequence[Var]], outputs: Sequence[Atom], jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return `jaxpr` with these inputs and outputs, without dead code."""
    moved = jaxpr.replace(invars=[v for group in inputs for v in group], outvars=outputs)
    return ClosedJaxpr(eliminate_dead_code(moved)[0], [])


def until_stable(
    results_of: Callable[[tuple[bool, ...]], tuple[bool, ...]], flags: tuple[bool, ...], loop: Loop
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Return the flags of inputs and results at the fixpoint, where a step adds no flag to the carry."""
    consts, carry, xs = loop.split(flags)

    def step(carry: tuple[bool, ...]) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        results = results_of((*consts, *carry, *xs))
        return results, or_masks(carry, results[: loop.num_carry])

    results, stable = find_fixpoint(step, carry)
    return (*consts, *stable, *xs), (*stable, *results[loop.num_carry :])


class _Forwarding(NamedTuple):
    """A body without forwarded values: unchanged carries (the mask `fixed`) have become constants.

    elements: for each result of a step, the index of the scanned array that it is an element of, or None.
    """

    body: ClosedJaxpr
    loop: Loop
    fixed: list[bool]
    elements: list[int | None]


@memoize_by_owner
def find_forwarding(closed: ClosedJaxpr, loop: Loop) -> _Forwarding | None:
    """Return the body without carries and elements that it returns unchanged; None if there are none."""
    jaxpr = closed.jaxpr
    consts, carry, xs = loop.split(jaxpr.invars)
    after, ys = jaxpr.outvars[: loop.num_carry], jaxpr.outvars[loop.num_carry :]
    fixed = [v is x for v, x in zip(carry, after, strict=True)]
    elements = [next((i for i, x in enumerate(xs) if x is y), None) for y in ys]
    if not any(fixed) and all(i is None for i in elements):
        return None
    varying = [not f for f in fixed]
    consts = [*filter_by_mask(carry, fixed), *consts]
    carry = filter_by_mask(carry, varying)
    outputs = [*filter_by_mask(after, varying), *filter_by_mask(ys, [i is None for i in elements])]
    body = ClosedJaxpr(jaxpr.replace(invars=[*consts, *carry, *xs], outvars=outputs), [])
    return _Forwarding(body, loop._replace(num_consts=len(consts), num_carry=len(carry)), fixed, elements)


# The source of a value: ("extra", i), a constant of the jaxprs; ("operand", i) or ("result", i) of the known scan;
# ("hoisted", i), a loop invariant that is computed before the scan.
Source = tuple[str, int]


class Split(NamedTuple):
    """A known scan, which also stacks the residuals, and a linear (or unknown) scan over them.

    hoisted: computes the loop invariants from the constants `extra` and the operands `fixed`. known_consts,
    linear_consts: the sources of each scan's constants. stacked: the sources of the residuals that the linear scan
    reads element by element. known_extra: the number of the known part's constants in `extra`. results: the number of
    results of the known scan that are results of the original scan.
    """

    known: ClosedJaxpr
    known_loop: Loop
    known_consts: list[Source]
    extra: list[Any]
    known_extra: int
    hoisted: ClosedJaxpr
    fixed: list[int]
    linear: ClosedJaxpr
    linear_loop: Loop
    linear_consts: list[Source]
    stacked: list[Source]
    results: int


class _Invariants:
    """The loop invariants of a body, the values that depend only on the inputs `fixed`, and the other equations."""

    def __init__(self, jaxpr: Jaxpr, fixed: Sequence[Var]) -> None:
        self.inputs = list(fixed)
        self.outputs: list[Atom] = []
        self.equations: list[JaxprEqn] = []
        self.others: list[JaxprEqn] = []
        constant: set[Atom] = set()
        self.variables: set[Atom] = set(fixed)
        for equation in jaxpr.eqns:
            if equation.effects or not all(isinstance(x, Literal) or x in self.variables for x in equation.invars):
                self.others.append(equation)
                continue
            self.equations.append(equation)
            self.variables.update(equation.outvars)
            # Equations without inputs also stay in the body, so that it takes no operands for their results.
            if all(isinstance(x, Literal) or x in constant for x in equation.invars):
                constant.update(equation.outvars)
                self.others.append(equation)
        read = [x for e in self.others for x in e.invars] + jaxpr.outvars
        self.read = [x for x in dict.fromkeys(read) if x in self.variables and x not in constant and x not in fixed]

    def position(self, atom: Atom) -> int:
        """Return the position of a value in the outputs, after appending a new value."""
        return _position(self.outputs, atom)


def _position(atoms: list[Atom], atom: Atom) -> int:
    if atom not in atoms:
        atoms.append(atom)
    return atoms.index(atom)


def split_scan(parts: PartitionedJaxpr, loop: Loop, moved_loop: Loop) -> Split:
    """Return the scans of a partitioned body; the loops are the layouts of the known and of the linear operands."""
    known, extra = open_jaxpr(parts.known)
    n = len(extra)
    inputs = known.invars[n:]
    consts, carry, xs = loop.split(inputs)
    # A carry that the body returns unchanged is a loop invariant.
    same = [i for i, v in enumerate(carry, loop.num_consts) if known.outvars[i - loop.num_consts] is v]
    fixed = [*range(loop.num_consts), *same]
    invariants = _Invariants(known, [*known.invars[:n], *[inputs[i] for i in fixed]])
    stacked: list[Atom] = []
    sources: list[Source] = []
    for kind, i in parts.residuals:
        atom = inputs[i] if kind == "input" else known.outvars[i]
        if kind == "input" and (i in fixed or i >= loop.num_consts + loop.num_carry):
            sources.append(("operand", i))
        elif isinstance(atom, Literal) or atom in invariants.variables:
            sources.append(("hoisted", invariants.position(atom)))
        elif kind == "output" and loop.num_carry <= i < parts.results:
            sources.append(("result", i))
        else:
            sources.append(("result", parts.results + _position(stacked, atom)))
    new = [("hoisted", invariants.position(x)) for x in invariants.read]
    candidates = [("extra", i) for i in range(n)] + [("operand", i) for i in range(loop.num_consts)] + new
    variables = [*known.invars[:n], *consts, *invariants.read]
    remaining = known.replace(eqns=invariants.others)
    outputs = [*known.outvars[: parts.results], *stacked]
    read = eliminate_dead_code(remaining.replace(invars=variables, outvars=outputs))[1]
    known_consts, variables = filter_by_mask(candidates, read), filter_by_mask(variables, read)
    before = known.replace(
        invars=invariants.inputs, outvars=invariants.outputs, eqns=invariants.equations, effects=NO_EFFECTS
    )

    linear, linear_extra = open_jaxpr(parts.unknown)
    m, count = len(linear_extra), len(sources)
    groups = list(moved_loop.split(linear.invars[m + count :]))
    in_every_step = [s[0] == "hoisted" or (s[0] == "operand" and s[1] in fixed) for s in sources]
    residuals = linear.invars[m : m + count]
    over = [not x for x in in_every_step]
    groups[0] = [*linear.invars[:m], *filter_by_mask(residuals, in_every_step), *groups[0]]
    groups[2] = [*filter_by_mask(residuals, over), *groups[2]]
    linear_consts = [*[("extra", n + i) for i in range(m)], *filter_by_mask(sources, in_every_step)]
    return Split(
        regroup_jaxpr([variables, carry, xs], outputs, remaining), loop._replace(num_consts=len(variables)),
        known_consts, [*extra, *linear_extra], n, ClosedJaxpr(eliminate_dead_code(before)[0], []), fixed,
        regroup_jaxpr(groups, linear.outvars, linear),
        loop._replace(num_consts=len(groups[0]), num_carry=len(groups[1])),
        linear_consts, filter_by_mask(sources, over), parts.results,
    )


def run_in_python(
    f: Callable[[Any, Any], Any], carry: object, elements: Sequence[Any], xs_tree: Any, size: int, reverse: bool
) -> tuple[Any, Any]:
    """Return the carry and stacked results of a scan, with steps run as Python calls."""
    if not size:
        raise ValueError("scan: zero-length scan is not supported in disable_jit() mode: the type of y is unknown")
    results = []
    for i in reversed(range(size)) if reverse else range(size):
        x = pytree.tree_unflatten(xs_tree, [_take_element(e, i) for e in elements])
        carry, y = f(carry, x)
        results.append(y)
    if reverse:
        results.reverse()
    return carry, pytree.tree_map(lambda *ys: stack(ys), *results)


def _take_element(element: ArrayLike, i: int) -> Array:
    """Return element `i`; for arrays the index is traced, so that one program serves all steps."""
    if isinstance(element, Tracer):
        return index_in_dim(element, i, 0, False)
    return dynamic_index_in_dim(element, i, 0, False)
