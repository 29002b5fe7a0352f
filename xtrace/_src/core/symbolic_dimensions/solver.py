"""Solving for the values of variables, given the sizes of arguments: each symbolic dimension is an equation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.symbolic_dimensions.dimensions import build, check_scopes, divide, evaluate, list_variables
from xtrace._src.core.symbolic_dimensions.terms import Factor, Term


class Dimension(NamedTuple):
    """A dimension of an argument: its name for users, the positions of the argument and the axis, and the size."""

    name: str
    argument: int
    axis: int
    size: Any


class Step(NamedTuple):
    """The equation of a variable: ``coefficient * variable + rest`` is the size of the dimension."""

    variable: str
    dimension: Dimension
    coefficient: int
    rest: Any


class Solution(NamedTuple):
    """The steps that find all variables, the dimensions to compare afterwards, and the scope with its constraints."""

    steps: Sequence[Step]
    checks: Sequence[Dimension]
    scope: Any
    specification: str


def solve(shapes: Sequence[Sequence[Any]], name_of: Callable[[int], str]) -> Solution:
    """Return the steps that find the variables of the shapes of arguments; ValueError if a variable has none.

    name_of: a function that returns the name of an argument, such as ``args[0]``.
    """
    dimensions = [
        Dimension(f"{name_of(i)}.shape[{axis}]", i, axis, size)
        for i, shape in enumerate(shapes) for axis, size in enumerate(shape) if is_symbolic(size)
    ]
    specification = ", ".join([
        f"{name_of(i)}.shape = ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        for i, shape in enumerate(shapes) if any(map(is_symbolic, shape))
    ])
    scope = dimensions[0].size.scope if dimensions else None
    for dimension in dimensions:
        check_scopes(scope, dimension.size)
    known: set[str] = set()
    steps: list[Step] = []
    left = list(dimensions)
    while True:
        step = next(filter(None, [_step(d, known) for d in left]), None)
        if step is None:
            break
        left.remove(step.dimension)
        steps.append(step)
        known.add(step.variable)
    missing = set().union(*[list_variables(d.size) for d in left]) - known
    if missing:
        unsolved = ", ".join([f"{d.name} = {d.size}" for d in left if list_variables(d.size) - known])
        raise ValueError(
            f"Cannot solve for values of dimension variables {', '.join(sorted(missing))}: {unsolved}. A program finds "
            "them in the shapes of its arguments, of which one must be linear in the variable, such as n or 2 * n + 1. "
            f"The shapes are {specification}; give an argument that dimension alone"
        )
    return Solution(steps, left, scope, specification)


def _step(dimension: Dimension, known: set[str]) -> Step | None:
    """Return the step for a dimension that is linear in one unknown variable; None for others."""
    unknown = list_variables(dimension.size) - known
    if len(unknown) != 1:
        return None
    (name,) = unknown
    own: Term = ((Factor(name), 1),)
    coefficients = dict(dimension.size.terms)
    coefficient = coefficients.pop(own, 0)
    rest = build(coefficients.items(), dimension.size.scope)
    if not coefficient or name in list_variables(rest):
        return None
    return Step(name, dimension, coefficient, rest)


def find_values(
    solution: Solution, sizes: Callable[[Dimension], Any], fail: Callable[[Dimension | None, str], Exception]
) -> Mapping[str, Any]:
    """Return the values of the variables for the sizes of arguments.

    fail: a function that returns the error to raise, of a dimension (None for a constraint) and a message.
    """
    values: dict[str, Any] = {}

    def described() -> str:
        return ", ".join([f"{name} = {value}" for name, value in values.items()])

    for step in solution.steps:
        actual = sizes(step.dimension)
        whole, remainder = divide(actual - evaluate(step.rest, values), step.coefficient)
        if remainder != 0:
            raise fail(step.dimension, f"no integer {step.variable} makes {step.dimension.size} the size {actual}")
        if not is_symbolic(whole) and whole < 1:
            raise fail(
                step.dimension, f"the size {actual} means {step.variable} = {whole}, and dimension variables are 1 or "
                "more"
            )
        values[step.variable] = whole
    for dimension in solution.checks:
        expected, actual = evaluate(dimension.size, values), sizes(dimension)
        if expected != actual:
            raise fail(dimension, f"the size is {actual}, and {dimension.size} is {expected} for {described()}")
    for left, sign, right, text in solution.scope.checks if solution.scope is not None else ():
        if not (list_variables(left) | list_variables(right)) <= values.keys():
            continue
        x, y = evaluate(left, values), evaluate(right, values)
        if not (x == y if sign == "==" else x >= y if sign == ">=" else x <= y):
            raise fail(None, f"the constraint {text} does not hold for {described()}: {x} {sign} {y} is false")
    return values
