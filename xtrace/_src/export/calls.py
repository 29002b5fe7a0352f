"""The call of an exported function: an equation of a jaxpr, and the program's functions in the caller's module."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.api.custom_rules.custom_vjp import custom_vjp
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import ListPrimitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.pytrees.pytree_differences import treedef_difference
from xtrace._src.core.shardings.partition_spec import full_entries
from xtrace._src.core.shardings.sharding_rules import Entries, Split
from xtrace._src.core.shardings.shardings import NamedSharding, explicit_part
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.export import symbolic_calls
from xtrace._src.export.checks import PLATFORM_INDEX, has_platform_index
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.ops.host.mapped_calls import call_in_turn
from xtrace._src.ops.references.binding import unwrap
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

with late_modules(globals()):
    from xtrace._src.extension import mlir_functions
    from xtrace._src.xla.mlir import artifacts


def call_exported(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an `Exported`; ValueError for arguments of other types."""
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    leaves = unwrap(leaves)
    difference = treedef_difference(exported.in_tree, in_tree)
    if difference is not None:
        raise ValueError(
            f"{exported.fun_name}: args and kwargs must have the same pytree structure as when the function was "
            f"exported; they differ {difference}"
        )
    avals = list(map(aval_of, leaves))
    _check_types(exported, avals)
    return pytree.tree_unflatten(exported.out_tree, call_program(exported, *leaves))


def _check_types(exported: Any, avals: Sequence[ShapedArray]) -> None:
    for i, (aval, expected) in enumerate(zip(avals, exported.in_avals, strict=True)):
        has_shape = symbolic_calls.fits(aval.shape, expected.shape)
        if has_shape and aval.dtype == expected.dtype:
            continue
        raise ValueError(
            f"{'Dtype' if has_shape else 'Shape'} mismatch for {symbolic_calls.name_argument(exported, i)} of "
            f"{exported.fun_name}: it was exported for {expected.str_short()} and is called with {aval.str_short()}. "
            "Convert it, or export the function for its type"
        )
    if symbolic_calls.has_symbolic_shapes(exported):
        symbolic_calls.find_symbolic_values(exported, avals)


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def call_program(exported: Any, *leaves: Any) -> list[Any]:
    """Return the leaves of the result of an `Exported`; its derivative is the exported derivative."""
    return call_exported_p.bind_positional(leaves, (exported,))


def _forward(exported: Any, *leaves: Any) -> tuple[list[Any], tuple[Any, ...]]:
    # Without a derivative this raises here, at the user's call.
    exported.vjp()
    return call_program(exported, *leaves), leaves


def _backward(exported: Any, leaves: tuple[Any, ...], cotangents: list[Any]) -> tuple[Any, ...]:
    derivative = exported.vjp()
    expected: Sequence[ShapedArray] = derivative.in_avals[len(leaves) :]
    if symbolic_calls.has_symbolic_shapes(exported):
        sizes = symbolic_calls.find_symbolic_values(exported, list(map(aval_of, leaves)))
        expected = symbolic_calls.substitute_sizes(expected, sizes)
    given = _fill_integer_cotangents(cotangents, expected)
    results = call_program(derivative, *leaves, *given)
    pairs = zip(results, derivative.out_avals, strict=True)
    return tuple([None if aval.dtype == dtypes.float0 else x for x, aval in pairs])


call_program.defvjp(_forward, _backward)


def _fill_integer_cotangents(cotangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Return cotangents with zeros of dtype float0 for integers, which no program reads."""
    return [
        np.zeros(aval.shape, dtypes.float0) if aval.dtype == dtypes.float0 else x
        for x, aval in zip(cotangents, avals, strict=True)
    ]


def _abstract(*avals: ShapedArray, exported: Any) -> list[ShapedArray]:
    """Call an exported function."""
    results = [aval.update(sharding=None) for aval in exported.out_avals]
    if not symbolic_calls.has_symbolic_shapes(exported):
        return results
    return symbolic_calls.substitute_sizes(results, symbolic_calls.find_symbolic_values(exported, avals))


def _split(name: str, operands: Sequence[Split], result: list[ShapedArray], *, exported: Any) -> list[Entries]:
    """Return the explicit mesh axes of the results, from the shardings of the export."""
    entries = []
    for aval, sharding in zip(result, exported._out_named_shardings, strict=True):
        explicit = None if sharding is None else explicit_part(sharding, aval.ndim)
        entries.append((None,) * aval.ndim if explicit is None else full_entries(explicit.spec, aval.ndim))
    return entries


def _emit(builder: FunctionBuilder, *values: Value, exported: Any) -> list[Value]:
    _check_devices(exported, builder.platform, builder.module.num_partitions)
    results, is_split = list(builder.results), builder.module.num_partitions > 1
    given, placed = [
        exported.placements(side, builder.module.mesh) if is_split else [None] * len(avals)
        for side, avals in (("in", values), ("out", results))
    ]
    operands = [_constrain(builder, values[i], given[i]) for i in exported.module_kept_var_idx]
    if symbolic_calls.has_symbolic_shapes(exported) and not builder.module.variables:
        program = _refine_program(exported, builder.platform, tuple([x.aval for x in operands]), tuple(results))
        returned = _emit_functions(builder, exported, program, operands, results)
    else:
        returned = _emit_program(builder, exported, operands, results)
    return [_constrain(builder, x, sharding) for x, sharding in zip(returned, placed, strict=True)]


def _emit_program(
    builder: FunctionBuilder, exported: Any, operands: Sequence[Value], results: Sequence[ShapedArray]
) -> list[Value]:
    """Write the call of the program itself; values are converted to its types, which have unknown sizes."""
    types = [exported.in_avals[i] for i in exported.module_kept_var_idx]
    given = [_retype(builder, x, aval) for x, aval in zip(operands, types, strict=True)]
    if has_platform_index(exported):
        number = exported.platforms.index(builder.platform) if builder.platform in exported.platforms else 0
        given.insert(0, builder.constant(np.int32(number), PLATFORM_INDEX))
    returned = _emit_functions(builder, exported, _read_functions(exported), given, exported.out_avals)
    return [_retype(builder, x, aval) for x, aval in zip(returned, results, strict=True)]


def _emit_functions(
    builder: FunctionBuilder, exported: Any, program: Any, operands: Sequence[Value], results: Sequence[ShapedArray]
) -> list[Value]:
    name = f"call_exported_{exported.fun_name}"
    return mlir_functions.emit_call_of_functions(builder, name, program, operands, results)


def _retype(builder: FunctionBuilder, x: Value, aval: ShapedArray) -> Value:
    """Return a value with a type that has more or fewer known sizes."""
    stored, kind = x.to_physical(), physical_aval(aval)
    return x if x.type == aval.mlir_type else builder.cast("convert", stored, kind).bitcast(aval)


@memoize_by_owner
def _read_functions(exported: Any) -> Any:
    return exported.functions()


@memoize_by_owner
def _refine_program(
    exported: Any, platform: str, operands: tuple[ShapedArray, ...], results: tuple[ShapedArray, ...]
) -> Any:
    """Return the functions of a program for symbolic shapes, refined for arguments of known shapes."""
    module = ModuleBuilder("refined", platform)
    main = FunctionBuilder(module, "main", "", public=True)
    main.return_values(_emit_program(main, exported, [main.argument(aval) for aval in operands], results))
    module.functions.append(main)
    try:
        return artifacts.read_functions(artifacts.refine(module.inlined_text()))
    except ValueError as error:
        types = ", ".join([aval.str_short() for aval in operands])
        raise ValueError(f"{exported.fun_name}, an Exported, cannot be called with ({types}): {error}") from None


def _constrain(builder: FunctionBuilder, value: Value, sharding: NamedSharding | None) -> Value:
    return value if sharding is None else builder.constrain(value, sharding)


def _check_devices(exported: Any, platform: str, devices: int) -> None:
    """Raise ValueError if a program is for other platforms, or for another number of devices."""
    if platform not in exported.platforms and DisabledSafetyCheck.platform() not in exported.disabled_safety_checks:
        raise ValueError(
            f"{exported.fun_name} was exported for the platforms {', '.join(exported.platforms)}, and is called on "
            f"{platform}. Export it with platforms=[..., {abbreviate(platform)}]; if its program runs there anyway, "
            "with disabled_checks=[export.DisabledSafetyCheck.platform()]"
        )
    if exported.nr_devices not in (1, devices):
        raise ValueError(
            f"{exported.fun_name} was exported for {exported.nr_devices} devices and is called in a context with "
            f"{devices}. Put its arguments on a mesh of {exported.nr_devices} devices with xtrace.device_put(x, "
            "NamedSharding(mesh, spec)); exported.in_shardings_jax(mesh) says how each is split"
        )


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, exported: Any
) -> tuple[list[Any], list[int]]:
    # The program is for fixed shapes or ranks, so it is called for one index after the other.
    results = call_in_turn(lambda *leaves: call_exported_p.bind_positional(leaves, (exported,)), operands, axes)
    return results, [0] * len(results)


call_exported_p = ListPrimitive(
    "call_exported", ("exported",), abstract=_abstract, emit=_emit, sharding=_split, multiple_results=True,
    memoised=False,
    jvp=no_rule(
        "an exported function has no forward-mode derivative; use reverse mode, such as xtrace.grad", TypeError,
    ),
    batch=_batch,
)
