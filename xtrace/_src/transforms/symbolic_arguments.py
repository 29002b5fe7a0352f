"""The variables of symbolic dimensions in a program: computed from the sizes of its arguments, with assertions."""

from __future__ import annotations

from collections.abc import Sequence

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.symbolic_dimensions.dimensions import list_variables
from xtrace._src.core.symbolic_dimensions.solver import Dimension, solve
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.stablehlo.symbolic_sizes import size_type, write_size

_INT32 = ShapedArray((), dtypes.int32)


def find_variables(main: FunctionBuilder, arguments: Sequence[Value], names: Sequence[str]) -> None:
    """Write the computation of the variables from the arguments' sizes, and assertions on them."""
    shapes = [x.aval.shape for x in arguments]
    solution = solve(shapes, lambda i: names[i] if i < len(names) else f"argument {i}")
    main.module.variables = tuple([step.variable for step in solution.steps])
    checks = _Checks(main, solution.specification)
    for step in solution.steps:
        size = _write_dimension_size(main, arguments, step.dimension)
        value = size
        if step.rest != 0:
            value = main.elementwise("subtract", size, write_size(main, step.rest))
        if step.coefficient != 1:
            factor = main.constant(step.coefficient, size_type())
            remainder = main.elementwise("remainder", value, factor)
            checks.require("EQ", remainder, main.constant(0, size_type()), (
                f"Division had remainder {{0}} when computing the value of '{step.variable}' from "
                f"{step.dimension.name} = {step.dimension.size}"
            ))
            value = main.elementwise("divide", value, factor)
        main.sizes[step.variable] = value
        checks.require("GE", value, main.constant(1, size_type()), (
            f"Expected value >= 1 for dimension variable '{step.variable}', found {{0}} from {step.dimension.name} = "
            f"{step.dimension.size}"
        ))
    for dimension in solution.checks:
        checks.require("EQ", _write_dimension_size(main, arguments, dimension), write_size(main, dimension.size), (
            f"Found inconsistency between dimension size {dimension.name} (= {{0}}) and the specification "
            f"'{dimension.size}' (= {{1}})"
        ))
    for left, sign, right, text in solution.scope.checks:
        if not (list_variables(left) | list_variables(right)) <= main.sizes.keys():
            # No argument has its variables, or a rule of the scope replaces one of them.
            continue
        x, y = write_size(main, left), write_size(main, right)
        checks.require({"==": "EQ", ">=": "GE", "<=": "LE"}[sign], x, y, (
            f"The symbolic shape constraint {text} does not hold: found {{0}} and {{1}}"
        ))


class _Checks:
    """Writes assertions, each with a message."""

    def __init__(self, main: FunctionBuilder, specification: str) -> None:
        self.main, self.specification = main, specification

    def require(self, direction: str, x: Value, y: Value, message: str) -> None:
        """Write the assertion of a comparison of two sizes; ``{0}`` and ``{1}`` in the message are their values."""
        holds = self.main.compare(direction, x, y)
        values = [holds, x, y] if "{1}" in message else [holds, x]
        message = (
            f"Input shapes do not match the polymorphic shapes specification. {message}. The shapes are "
            f"{self.specification}"
        )
        names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
        self.main.line_of_many(
            f"stablehlo.custom_call @shape_assertion({names}) {{api_version = 2 : i32, error_message = "
            f"{attributes.string(message)}, has_side_effect = true}} : ({types}) -> ()", [],
        )


def _write_dimension_size(main: FunctionBuilder, arguments: Sequence[Value], dimension: Dimension) -> Value:
    x = arguments[dimension.argument].to_physical()
    text = f"stablehlo.get_dimension_size {x.name}, dim = {dimension.axis} : ({x.type}) -> tensor<i32>"
    return main.convert(main.line(text, _INT32), size_type().dtype)
