"""Rules that evaluate operations with jaxprs one jaxpr at a time, to find bad numbers inside of them.

A rule is ``rule(run, operands, **parameters) -> results``. It computes a jaxpr by ``run(step, closed_jaxpr,
operands)``; `step` is a phrase for the step of a loop, else empty. An operation that calls its only jaxpr needs no
rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.collectives.shard_map import shard_map_p
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop, run_in_python
from xtrace._src.ops.control_flow.while_loop import WhileLoop, while_p
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.solvers import linear_solve, split_operands

Run = Callable[..., list[Any]]


def _cond(run: Run, operands: Sequence[Any], *, branches: Sequence[ClosedJaxpr], **_: object) -> list[Any]:
    return run("", branches[int(operands[0])], operands[1:])


def _scan(run: Run, operands: Sequence[Any], *, jaxpr: ClosedJaxpr, **details: Any) -> list[Any]:
    loop = Loop(**details)
    consts, carry, xs = loop.split(operands)
    numbers = itertools.count()

    def step(carried: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
        results = run(f"iteration {next(numbers)} of scan", jaxpr, [*consts, *carried, *rows])
        return results[: loop.num_carry], results[loop.num_carry :]

    if not loop.length:
        return carry
    last, ys = run_in_python(step, carry, xs, pytree.tree_structure([0] * len(xs)), loop.length, loop.reverse)
    return [*last, *ys]


def _while(run: Run, operands: Sequence[Any], **parameters: Any) -> list[Any]:
    loop = WhileLoop(**parameters)
    own, consts, carry = loop.split(operands)
    for i in itertools.count():
        (holds,) = run(f"the condition of while_loop before iteration {i}", loop.cond_jaxpr, [*own, *carry])
        continues = np.asarray(holds)
        if not continues.any():
            break
        after = run(f"iteration {i} of while_loop", loop.body_jaxpr, [*consts, *carry])
        carry = after if continues.all() else [_select(continues, x, y) for x, y in zip(after, carry, strict=True)]
    return carry


def _select(which: np.ndarray[Any, Any], x: Array, y: Array) -> Array:
    """Return `x` at the leading indices where `which` holds, `y` at the others."""
    shape = aval_of(x).shape
    return select_n(broadcast_in_dim(which, shape, range(which.ndim)), y, x)


def _linear_solve(run: Run, operands: Sequence[Any], *, const_lengths: Any, jaxprs: Any) -> list[Any]:
    consts, right = split_operands(const_lengths, operands)
    return run("", jaxprs.solve, [*consts.solve, *right])


RULES: dict[Primitive, Callable[..., list[Any]]] = {
    cond_p: _cond, scan_p: _scan, while_p: _while, linear_solve: _linear_solve,
    # Its devices compute together, so no step can be evaluated alone.
    shard_map_p: lambda run, operands, **_: [],
}
