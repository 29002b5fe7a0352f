"""One module for several platforms: the functions of each, and a choice by the number of the platform."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from xtrace._src.api.stages import ExportedTrace
from xtrace._src.core.avals import ShapedArray
from xtrace._src.export.checks import PLATFORM_INDEX
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value, symbol


def text_for_platforms(name: str, platforms: Sequence[str], lowered: ExportedTrace) -> str:
    """Return the text of a module that runs on each platform; for several it takes their number first."""
    modules = lowered.modules
    if len(modules) == 1:
        return modules[0].text(debug_info=True)
    first = modules[0].builder
    module = ModuleBuilder(f"jit_{symbol(name)}", platforms[0], num_partitions=first.num_partitions)
    main = FunctionBuilder(module, "main", "", public=True)
    index = main.argument(PLATFORM_INDEX, 'jax.global_constant = "_platform_index"')
    given = zip(first.functions[0].arguments, first.functions[0].argument_attributes, strict=True)
    operands = [main.argument(value.aval, first.meshes.inline(text)) for value, text in given]
    texts = [each.text() for each in modules]
    # A program that is the same on all platforms needs no choice.
    programs = texts[:1] if len(set(texts)) == 1 else texts
    results = _write_choice(main, index, platforms, programs, operands, lowered.traced.out_avals)
    main.result_names = first.functions[0].result_names
    main.return_values(results, [first.meshes.inline(text) for text in first.functions[0].result_attributes])
    module.functions.insert(0, main)
    return module.text()


def _write_choice(
    main: FunctionBuilder, index: Value, platforms: Sequence[str], programs: Sequence[str], operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
) -> list[Value]:
    """Write the call of the program with the number `index`."""
    if len(programs) == 1:
        return _write_call(main, "all", programs[0], operands, out_avals)
    regions = []
    for platform, program in zip(platforms, programs, strict=True):
        region = main.region([], platform)
        regions.append((region, _write_call(region, platform, program, operands, out_avals)))
    return main.op_with_regions("stablehlo.case", [index], regions, out_avals)


def _write_call(
    builder: FunctionBuilder, platform: str, program: str, operands: Sequence[Value], out_avals: Sequence[ShapedArray]
) -> list[Value]:
    # These load jaxlib's MLIR bindings, which most processes never need.
    parse: Any = importlib.import_module("xtrace._src.xla.modules").parse
    functions = importlib.import_module("xtrace._src.xla.artifacts").functions_of(parse(program))
    emit: Any = importlib.import_module("xtrace._src.extension.mlir_functions").emit_call_of_functions
    results: list[Value] = emit(builder, f"main_{platform}", functions, operands, out_avals)
    return results
