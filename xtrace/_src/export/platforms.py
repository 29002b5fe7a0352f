"""A module for several platforms: the functions of each, and a choice by the number of the platform."""

from __future__ import annotations

from collections.abc import Sequence

from xtrace._late_imports import late_modules
from xtrace._src.api.jit.stages import ExportedTrace
from xtrace._src.core.avals import ShapedArray
from xtrace._src.export.checks import PLATFORM_INDEX
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value, symbol

with late_modules(globals()):
    from xtrace._src.xla.mlir import mlir_objects


def write_platforms_module(name: str, platforms: Sequence[str], lowered: ExportedTrace) -> str:
    """Return the text of a module for all platforms; with several, its first argument is the platform's number."""
    modules = lowered.modules
    if len(modules) == 1:
        return modules[0].text(debug_info=True)
    first = modules[0].builder
    module = ModuleBuilder(f"jit_{symbol(name)}", platforms[0], num_partitions=first.num_partitions)
    main = FunctionBuilder(module, "main", "", public=True)
    index = main.argument(PLATFORM_INDEX, 'jax.global_constant = "_platform_index"')
    given = zip(first.functions[0].arguments, first.functions[0].argument_attributes, strict=True)
    operands = [main.argument(value.aval, first.meshes.inline(text)) for value, text in given]
    # Equal programs for all platforms need no choice.
    is_same = len({each.text() for each in modules}) == 1
    programs = [_add_functions(module, each.builder) for each in (modules[:1] if is_same else modules)]
    results = _write_choice(main, index, programs, operands, lowered.traced.out_avals)
    main.argument_names, main.result_names = first.functions[0].argument_names, first.functions[0].result_names
    main.return_values(results, [first.meshes.inline(text) for text in first.functions[0].result_attributes])
    module.functions.insert(0, main)
    return module.text(debug_info=True)


def _add_functions(module: ModuleBuilder, program: ModuleBuilder) -> str:
    """Add the functions of a platform's module, with their locations; return the new name of its ``main``."""
    names: dict[str, str] = {}
    main, *private = program.functions
    # A function comes after the functions that it calls.
    for function in (*private, main):
        copy = FunctionBuilder(module, function.name, function.scope)
        copy.arguments, copy.argument_attributes = function.arguments, [""] * len(function.arguments)
        copy.result_types, copy.result_attributes = function.result_types, [""] * len(function.result_types)
        copy.lines = [mlir_objects.rename_symbols(program.meshes.inline(line), names) for line in function.lines]
        copy.places = function.places
        base = f"main_{program.platform}" if function is main else function.name
        names[function.name] = module.add_private(copy, base)
    return names[main.name]


def _write_choice(
    main: FunctionBuilder, index: Value, programs: Sequence[str], operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
) -> list[Value]:
    """Write the call of the program with the number `index`."""
    if len(programs) == 1:
        return _write_call(main, programs[0], operands, out_avals)
    regions = []
    for program in programs:
        region = main.region([], program)
        regions.append((region, _write_call(region, program, operands, out_avals)))
    return main.op_with_regions("stablehlo.case", [index], regions, out_avals)


def _write_call(
    builder: FunctionBuilder, program: str, operands: Sequence[Value], out_avals: Sequence[ShapedArray]
) -> list[Value]:
    types = ", ".join([v.type for v in operands])
    results = ", ".join([aval.mlir_type for aval in out_avals])
    names = ", ".join([v.name for v in operands])
    return builder.line_of_many(f"func.call @{program}({names}) : ({types}) -> ({results})", out_avals)
