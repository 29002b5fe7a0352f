"""Conversion of MLIR objects to text in xtrace's modules, and back. Its import loads jaxlib's MLIR bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.effects import Effect, Effects, ordered_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr
from xtrace._src.core.jaxprs.source_info import source_info
from xtrace._src.core.primitive import Primitive
from xtrace._src.extension.lowering_contexts import (
    LoweringRuleContext,
    ModuleContext,
    ShardingContext,
    SPMDAxisContext,
    TokenSet,
)
from xtrace._src.ops.calls.ffi import ForeignLowering
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value
from xtrace._src.transforms import effect_tokens, lower
from xtrace._src.xla.mlir import mlir_objects

create_token = mlir_objects.create_token


def make_surroundings(module: Any) -> mlir_objects.Surroundings:
    """Return the context, insertion point and symbols of a user's module; None for a new module."""
    return mlir_objects.new_surroundings(module)


def emit_by_rule(
    builder: FunctionBuilder, primitive: Primitive, rule: Callable[..., Any], values: Sequence[Value],
    parameters: dict[str, Any], effects: Effects,
) -> list[Value]:
    """Write the operations of a user's rule as a private function of the module, and a call of it."""
    module, results = builder.module, list(builder.results)
    # This raises while a template is recorded, because the functions of a rule belong to one module.
    devices = module.num_partitions
    ordered = ordered_effects(effects)

    def build(within: mlir_objects.Surroundings, arguments: Sequence[Any]) -> Any:
        context = _make_context(builder, primitive, values, results, within, devices)
        context.tokens_in = TokenSet(dict(zip(ordered, arguments, strict=False)))
        try:
            returned = rule(context, *arguments[len(ordered) :], **parameters)
        except TypeError as error:
            # An error with a deeper traceback comes from an operation in the rule, not from the call.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            named = f" and the parameters ({', '.join(parameters)})" if parameters else ""
            types = ", ".join([v.aval.str_short(True) for v in values])
            raise TypeError(
                f"the lowering rule of {primitive} is called with a context, values of types ({types}){named}: {error}"
            ) from None
        if not ordered:
            return returned
        if context.tokens_out is None:
            raise ValueError(
                f"the lowering rule of {primitive}, which has the ordered effects ({', '.join(map(str, ordered))}), "
                "must call ctx.set_tokens_out"
            )
        return [*[context.tokens_out.get(e) for e in ordered], *mlir_objects.flatten(returned)]

    operands = [*effect_tokens.get_tokens(builder, ordered), *values]
    outputs: list[ShapedArray] = [*[effect_tokens.TOKEN] * len(ordered), *results]
    functions = mlir_objects.write_rule_functions(
        primitive.name, build, [v.type for v in operands], [a.mlir_type for a in outputs]
    )
    called = emit_call_of_functions(builder, primitive.name, functions, operands, outputs)
    return effect_tokens.with_tokens(builder, ordered, called)


def emit_call_of_functions(
    builder: FunctionBuilder, base: str, functions: Sequence[mlir_objects.RuleFunction], operands: Sequence[Value],
    outputs: Sequence[ShapedArray],
) -> list[Value]:
    """Add functions to the module, the last one with a name from `base`, and write a call of the last one."""
    names: dict[str, str] = {}
    for function in functions:
        wanted = base if function is functions[-1] else function.name
        names[function.name] = name = _add_function(builder.module, wanted, function, names)
    types = ", ".join([v.type for v in operands])
    kinds = ", ".join([a.mlir_type for a in outputs])
    kinds = kinds if len(outputs) == 1 else f"({kinds})"
    called = f"func.call @{name}({', '.join([v.name for v in operands])}) : ({types}) -> {kinds}"
    return builder.line_of_many(called, outputs)


def _make_context(
    builder: FunctionBuilder, primitive: Primitive, values: Sequence[Value], results: Sequence[ShapedArray],
    within: mlir_objects.Surroundings, devices: int,
) -> LoweringRuleContext:
    module = builder.module
    axes = ShardingContext(devices) if module.mesh is None else SPMDAxisContext(
        module.mesh, frozenset(module.manual_mesh.axis_names) if module.manual_mesh is not None else frozenset()
    )
    context = ModuleContext(
        platforms=(builder.platform,), axis_context=axes, channel_iterator=iter(module.channel, None),
        context=within.context, module=within.module, ip=within.ip, symbol_table=within.symbol_table,
    )
    context.builder = module
    place = source_info(builder.place[0] if builder.place is not None else None)
    return LoweringRuleContext(
        context, place.name_stack, place.traceback, primitive, tuple([v.aval for v in values]), tuple(results),
        TokenSet(), None, {},
    )


def _add_function(
    module: ModuleBuilder, base: str, function: mlir_objects.RuleFunction, names: Mapping[str, str]
) -> str:
    """Add a function of a rule with a name from `base`; `names` renames the functions that it calls."""
    written = FunctionBuilder(module, base, "")
    for kind in function.argument_types:
        written.argument(TextType(kind))  # type: ignore[arg-type]
    written.lines = [mlir_objects.rename_symbols(line, names) for line in function.lines]
    written.places = [None] * len(written.lines)
    pairs = zip(function.returned, function.result_types, strict=True)
    written.return_values([Value(value, TextType(kind)) for value, kind in pairs])  # type: ignore[arg-type]
    return module.add_private(written, base)


class TextType(NamedTuple):
    """The type of a value of a rule, as MLIR text."""

    mlir_type: str


# Text as MLIR objects


def _make_nested_builder(context: ModuleContext) -> ModuleBuilder:
    """Return the builder of a module of text; the module of a rule will contain it."""
    if context.builder is not None:
        return context.builder.make_nested()
    module = ModuleBuilder("rule", context.platforms[0], num_partitions=count_devices(context.axis_context))
    context.builder = module
    return module.make_nested()


def count_devices(axis_context: Any) -> int:
    """Return the number of devices of an axis context."""
    if isinstance(axis_context, SPMDAxisContext):
        return int(axis_context.mesh.size)
    return int(getattr(axis_context, "num_devices", 1))


def add_function(context: ModuleContext, text: str, name: str) -> Any:
    """Add the functions of a module's text to the module of a rule, and return the function ``rule``."""
    with context.context:
        parsed = mlir_objects.ir.Module.parse(text)
        return mlir_objects.add_functions(parsed, context.module, context.symbol_table, {"rule": name})["rule"]


def inline_text(context: ModuleContext, text: str, operands: Sequence[Any]) -> list[Any]:
    """Insert the operations of the function ``rule`` of a module's text, and return the results."""
    with context.context:
        parsed = mlir_objects.ir.Module.parse(text)
        function = mlir_objects.add_functions(parsed, context.module, context.symbol_table, {}, "rule")["rule"]
        return mlir_objects.inline_function(function, operands)


def call_text(
    emit: Callable[[FunctionBuilder, Sequence[Value]], Any], context: LoweringRuleContext, name: str,
    values: Sequence[Any],
) -> list[Any]:
    """Insert a call of a function with the operations of `emit`, and return the results."""
    given = mlir_objects.flatten(values)
    if len(given) != len(context.avals_in):
        raise TypeError(
            f"a function that was lowered for the types ({', '.join([a.str_short(True) for a in context.avals_in])}) "
            f"of ctx.avals_in was given {len(given)} values; change them with ctx.replace(avals_in=…, avals_out=…)"
        )

    def write(function: FunctionBuilder) -> list[Value]:
        results = emit(function, function.arguments)
        return results if isinstance(results, list) else [results]

    text = function_text(context.module_context, context.avals_in, context.avals_out, write)
    return mlir_objects.call_function(add_function(context.module_context, text, name), given)


def function_text(
    context: ModuleContext, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
    write: Callable[[FunctionBuilder], list[Value]], describe: Callable[[FunctionBuilder], None] | None = None,
) -> str:
    """Return the text of a module whose function ``rule`` has the operations and results of ``write(builder)``.

    describe: writes the attributes of the arguments and results.
    """
    module = _make_nested_builder(context)
    function = FunctionBuilder(module, "rule", "", public=True)
    for aval in in_avals:
        function.argument(aval)
    function.results = list(out_avals)
    function.return_values(write(function))
    if describe is not None:
        function.results = list(out_avals)
        describe(function)
    module.functions.append(function)
    return module.inlined_text()


def jaxpr_text(
    context: ModuleContext, closed: ClosedJaxpr, effects: Sequence[Effect],
    describe: Callable[[FunctionBuilder], None] | None = None,
) -> str:
    """Return the text of a module whose function ``rule`` is `closed`, with tokens of `effects` before other values."""
    jaxpr = closed.jaxpr

    def write(function: FunctionBuilder) -> list[Value]:
        lower.count_occurrences_in(function.module, jaxpr)
        function.tokens = dict(zip(effects, function.arguments, strict=False))
        given = function.arguments[len(effects) :]
        values: dict[Atom, Value] = dict(zip(jaxpr.invars, given, strict=True))
        for variable, constant in zip(jaxpr.constvars, closed.consts, strict=True):
            values[variable] = lower.emit_program_constant(function, constant, variable.aval)
        results = lower.emit_equations(function, jaxpr, values)
        return [*effect_tokens.get_tokens(function, effects), *results]

    tokens = [effect_tokens.TOKEN] * len(effects)
    return function_text(context, [*tokens, *jaxpr.in_avals], [*tokens, *jaxpr.out_avals], write, describe)


def build_jaxpr_call(
    context: ModuleContext, closed: ClosedJaxpr, name: str, tokens: TokenSet, values: Sequence[Any], inline: bool
) -> tuple[list[Any], TokenSet]:
    """Insert a call of `closed`, or its operations; return the results and the new tokens."""
    effects = ordered_effects(closed.jaxpr.effects)
    text, operands = jaxpr_text(context, closed, effects), [*[tokens.get(e) for e in effects], *values]
    if inline:
        results = inline_text(context, text, operands)
    else:
        results = mlir_objects.call_function(add_function(context, text, name), operands)
    return results[len(effects) :], tokens.update_tokens(TokenSet(dict(zip(effects, results, strict=False))))


def build_foreign_call(
    foreign: ForeignLowering, context: LoweringRuleContext, operands: Sequence[Any], parameters: dict[str, Any]
) -> Any:
    """Build the call of a foreign function, and return the operation."""
    given = mlir_objects.flatten(operands)
    if len(given) != len(context.avals_in):
        raise TypeError(
            f"the call of {foreign.target_name} was given {len(given)} values, and ctx.avals_in has "
            f"{len(context.avals_in)} types; change them with ctx.replace(avals_in=…)"
        )
    texts = {"api_version": "1 : i32", "called_computations": "[]"}
    texts |= foreign.texts(context.avals_in, context.avals_out, parameters)
    return mlir_objects.custom_call(given, [a.mlir_type for a in context.avals_out], texts)
