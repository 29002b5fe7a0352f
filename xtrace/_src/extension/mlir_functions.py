"""Functions of MLIR objects as text in xtrace's modules, and the reverse. Loading it loads jaxlib's MLIR bindings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.primitive import Primitive
from xtrace._src.extension.lowering import LoweringRuleContext, ModuleContext
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value
from xtrace._src.xla import mlir_rules


def emit_by_rule(
    builder: FunctionBuilder, primitive: Primitive, rule: Callable[..., Any], values: Sequence[Value],
    parameters: dict[str, Any],
) -> list[Value]:
    """Write the operations of a user's rule as a private function of the module, and the call of it."""
    results = list(builder.results)
    module = ModuleContext((builder.platform,), builder.module.num_partitions)
    context = LoweringRuleContext(module, primitive, tuple([v.aval for v in values]), tuple(results))
    functions = mlir_rules.functions_of_rule(
        primitive.name, lambda arguments: rule(context, *arguments, **parameters),
        [v.aval.mlir_type for v in values], [a.mlir_type for a in results],
    )
    names: dict[str, str] = {}
    for function in functions:
        names[function.name] = name = _add_function(builder.module, primitive.name, function, names)
    types = ", ".join([v.aval.mlir_type for v in values])
    outputs = ", ".join([a.mlir_type for a in results])
    outputs = outputs if len(results) == 1 else f"({outputs})"
    called = f"func.call @{name}({', '.join([v.name for v in values])}) : ({types}) -> {outputs}"
    return builder.line_of_many(called, results)


def _add_function(
    module: ModuleBuilder, base: str, function: mlir_rules.RuleFunction, names: Mapping[str, str]
) -> str:
    """Add a function that a rule made, under a name from `base`; `names` are the new ones of those that it calls."""
    written = FunctionBuilder(module, base, "")
    for kind in function.argument_types:
        written.argument(TextType(kind))  # type: ignore[arg-type]
    written.lines = [
        _CALLED.sub(lambda match: f"@{names.get(match[1], match[1])}(", line) for line in function.lines
    ]
    written.places = [None] * len(written.lines)
    pairs = zip(function.returned, function.result_types, strict=True)
    written.return_values([Value(value, TextType(kind)) for value, kind in pairs])  # type: ignore[arg-type]
    return module.add_private(written, base)


class TextType(NamedTuple):
    """The type of a value that a rule made, as MLIR writes it."""

    mlir_type: str


# The name of a function that is called.
_CALLED = re.compile(r"@([\w.$-]+)\(")


def call_text(
    emit: Callable[[FunctionBuilder, Sequence[Value]], Any], context: LoweringRuleContext, values: Sequence[Any]
) -> list[Any]:
    """Put operations that `emit` writes as text where MLIR objects are built now, and return their results."""
    module = ModuleBuilder("rule", context.module_context.platforms[0])
    function = FunctionBuilder(module, "rule", "", public=True)
    operands = [function.argument(aval) for aval in context.avals_in]
    function.results = list(context.avals_out)
    results = emit(function, operands)
    results = results if isinstance(results, list) else [results]
    function.return_values(results)
    module.functions.append(function)
    return mlir_rules.inline_text(module.text(), "rule", values)
