"""Drawn stacks of transformations with rules inside of rules: the same numbers as without the rules, in linear time."""

from __future__ import annotations

import random
import sys
from typing import Any

import jax
import numpy as np
import pytest

import xtrace
import xtrace.custom_batching
import xtrace.numpy
from tests.differential.compositions import OPERATIONS
from tests.differential.rule_nestings import RULES, drawn_stack, nested
from tests.support.sampling import number_of_draws

X = np.array([0.3125, -0.703125, 1.109375])
_TOGETHER = 6


def _innermost(lib: Any, operations: tuple[str, ...]) -> Any:
    def function(x: Any) -> Any:
        for name in operations:
            x = OPERATIONS[name](lib, x)
        return x

    return function


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("jitted", [False, True])
def test_rules_inside_of_rules_are_the_derivatives(part: int, jitted: bool, pytestconfig: pytest.Config) -> None:
    """Programs that are compiled together in jax, which takes all of them without their rules."""
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    draw = random.Random(f"{number} {part} {jitted}")
    drawn = [(drawn_stack(draw, 4), tuple(draw.choices(sorted(OPERATIONS), k=draw.randint(1, 2))))
             for _ in range(_TOGETHER)]
    with xtrace.enable_x64(True), jax.enable_x64(True):

        def results(lib: Any, rules: bool) -> Any:
            functions = [nested(lib, stack, _innermost(lib, operations), rules) for stack, operations in drawn]
            whole = lambda x: [f(x) for f in functions]  # noqa: E731
            return (lib.jit(whole) if jitted or lib is jax else whole)(lib.numpy.asarray(X))

        for (stack, operations), got, expected in zip(drawn, results(xtrace, True), results(jax, False), strict=True):
            assert got.shape == expected.shape and got.dtype == expected.dtype, (stack, operations)
            # tanh bounds results by 1; each transformation multiplies the operations, and their roundings, by a few.
            roundings = 64 * (len(operations) + 3) * 8 ** len(stack)
            np.testing.assert_allclose(got, expected, rtol=0, atol=roundings * np.finfo(np.float64).eps,
                                       err_msg=f"{number}: {stack} of {operations}")


def _equations(jaxpr: Any) -> int:
    """How many equations there are, those of inner programs included."""
    count = len(jaxpr.eqns)
    for equation in jaxpr.eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                count += _equations(inner) if hasattr(inner, "eqns") else 0
    return count


def _cost(lib: Any, name: str, depth: int, outer: str) -> tuple[int, int, int]:
    """How often the innermost function is called, calls of Python's and equations, of so many levels of a rule."""
    calls = steps = 0

    def innermost(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return lib.numpy.sin(x) * x

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal steps
        steps += event == "call"

    function = nested(lib, (name,) * depth + (outer,), innermost, True)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        closed = lib.make_jaxpr(function)(X.astype(np.float32))
    finally:
        sys.setprofile(before)
    return calls, steps, _equations(closed.jaxpr)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", RULES)
def test_rules_inside_of_rules_are_traced_in_linear_time(name):
    """No function is traced again for each level: its calls grow with the levels, and do not double with each."""
    for outer in ("grad",) if "pullback" in name else ("grad", "jvp"):
        # What is recorded once is not in the way.
        _cost(xtrace, name, 6, outer)
        costs = [_cost(xtrace, name, depth, outer) for depth in (2, 4, 6)]
        (first, *_), (middle, *_), (last, *_) = costs
        assert last - middle <= middle - first and last <= 12, (outer, costs)
        _, (_, steps, equations), (_, most, all_equations) = costs
        assert most / all_equations <= 1.5 * steps / equations, (outer, costs)
        if (name, outer) != ("custom_vmap", "grad"):  # jax has no transpose of these
            assert equations <= 1.25 * _cost(jax, name, 4, outer)[2]
