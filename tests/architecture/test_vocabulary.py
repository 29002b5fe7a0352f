"""One word for one idea: names that the package has given up stay away."""

import ast

import pytest

from tests.architecture.source_tree import read_package

# The name that was given up, and the one that says it now.
GIVEN_UP = {
    "one_program": "inline_jit", "program_of_trees": "inline_jit",
    "inlined_strongly": "with_strong_results", "Recording": "EquationTemplate", "Linearized": "Subprogram",
    "Stack": "TraceStack", "written_out": "inline_calls", "without_groups": "inline_calls_in_jaxpr",
    "by_formula": "lower_fun", "per_jaxpr": "memoize_by_owner", "table_by_owner": "memoize_by_owner",
    "records_copies": "TraceStack.replay", "recordable": "replayable", "NEVER": "NOT_REPLAYABLE",
    "SplitJaxpr": "PartitionedJaxpr", "Known": "KnownResults", "dependence": "analyze_unknowns",
    "carry_dependence": "find_unknown_carry", "FLAT": "ZERO_DERIVATIVE",
    "Form": "EmissionTemplate", "form_of": "record_emission_template", "Forms": "CallShapes",
    "types_of_results": "abstract_eval", "evaluates": "fusion_level", "fuses": "fusion_level",
    "fused_from": "fusion_level", "under_name": "set_function_name",
    "spread_scalar": "broadcast_scalar", "spread_like": "broadcast_like", "spread_to": "broadcast_operand_to",
    "as_array": "to_array, to_array_operand", "conjugated": "conj_if_complex", "symmetrized": "symmetrize",
    "permuted_rows": "permute_rows", "unpermuted_rows": "unpermute_rows", "interned": "intern_jaxpr",
    "promoted_carry": "promote_carry", "moved_axis": "move_axis", "unscoped": "drop_scopes",
    "shown_scopes": "format_scopes", "shown_source": "format_source", "called_in_turn": "call_in_turn",
    "checked_jaxpr": "add_checks_to_jaxpr", "described_arguments": "find_described_arguments",
    "found": "the name of the thing", "constant_of": "constant_like",
    "declare_option": "declare_setting", "read_wishes": "read_requests", "mesh_place": "find_mesh_place",
    "linear_from": "linear_after_first",
    "on_storage": "stage_on_physical_types", "seen_as": "bitcast", "as_called": "move_constants_to_inputs",
}

# The module that was given up, and the one that has its contents.
GIVEN_UP_MODULES = {
    "_src.transforms.closed": "_src.transforms.jaxpr_transforms",
    "_src.transforms.storage": "_src.transforms.physical_types",
    "_src.transforms.templates": "_src.transforms.equation_templates",
    "_src.stablehlo.forms": "_src.stablehlo.emission_templates",
    "_src.ops.remat.saving": "_src.ops.remat.policy_splits",
    "_src.ops.placement": "_src.ops.shardings.device_put", "_src.ops.foreign": "_src.ops.calls.ffi",
    "_src.ops.linalg.foreign": "_src.ops.linalg.ffi", "_src.xla.foreign": "_src.xla.custom_calls.ffi",
    "_src.ops.approximate": "_src.ops.reductions.approx_top_k",
    "_src.xla.approximation": "_src.xla.custom_calls.approx_top_k",
    "_src.ops.linalg.updates": "_src.ops.linalg.rank_updates",
    "_src.api.split_derivative": "_src.api.differentiation.fwd_and_bwd",
    "_src.core.requests": "_src.core.settings.dtype_arguments",
    "_src.core.functions": "_src.core.function_names", "_src.api.arguments": "_src.api.jit.static_arguments",
    "_src.core.diagnostics.failures": "_src.core.diagnostics.rule_error_notes",
    "_src.api.failures": "_src.api.compilation.xla_errors",
    "_src.runtime.failures": "_src.runtime.callback_errors", "numpy.choices": "numpy.indexing.selection",
    "numpy.placing": "numpy.indexing.put_and_place",
    "numpy.index_makers": "numpy.indexing.index_tricks",
    "_src.core.key_uses": "_src.key_reuse.accounts", "_src.transforms.key_reuse": "_src.key_reuse.check",
    "_src.core.check_errors": "_src.checkify.errors", "_src.ops.checkify": "_src.checkify.trace",
    "_src.ops.checked_calls": "_src.checkify.rules", "_src.api.checkify": "_src.checkify.transformation",
    "_src.api.nonfinite": "_src.debug_nans.search", "_src.ops.call_attributes": "_src.ops.calls.ffi",
    "_src.api.custom_derivatives": "_src.api.custom_rules", "_src.api.custom_batching": "_src.api.custom_rules",
    "numpy.arguments": "numpy.operands", "random.arguments": "random.sampling",
    "numpy.updates": "numpy.indexing.indexed_updates", "random.trials": "random.binomial_family",
    "random.formulas": "random.transformed_distributions",
    "scipy.linalg.functions": "scipy.linalg.matrix_functions",
    "_src.core.collection": "_src.core.garbage_collection", "_src.core.layout": "_src.core.jaxprs.text_layout",
    "_src.core.flags": "_src.core.flag_parameters", "_src.core.names": "_src.core.shardings.axis_names",
    "_src.core.late": "_src.core.public_modules", "_src.api.memory_in_use": "_src.api.live_arrays",
    "_src.api.assignments": "_src.api.compilation.sharding_assignment",
    "_src.ops.random.random_bits": "_src.ops.random.xla_generators", "cli.arguments": "cli.argument_grammar",
    "_src.core.diagnostics.source": "_src.core.diagnostics.positions", "_src.core.values": "_src.core.value_objects",
    "_src.core.settings.options": "_src.core.settings.setting", "_src.api.scopes": "_src.api.contexts",
    "_src.api.custom_rules.functions": "_src.api.custom_rules.custom_function",
    "_src.api.trace_cache": "_src.api.kept_traces", "_src.api.caches": "_src.api.function_caches",
    "_src.api.jit.call_arguments": "_src.api.jit.static_arguments",
    "_src.core.boolean_parameters": "_src.core.flag_parameters", "_src.runtime.staging": "_src.runtime.staging_memory",
    "_src.sparse.coordinates": "_src.sparse.bcoo_primitives", "_src.xla.jaxlib_names": "_src.xla.jax_lib_names",
    "_src.xla.plugins.targets": "_src.xla.plugins.absent_devices",
    "_src.xla.mlir.mlir_rules": "_src.xla.mlir.mlir_objects",
    "_src.extension.lowering": "_src.extension.lowering_rules",
}


def names(tree):
    """Every name that a module defines, reads or imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.alias)):
            yield node.name


def test_names_that_were_given_up_stay_away():
    places = {}
    for module in read_package().values():
        for name in GIVEN_UP.keys() & set(names(module.tree)):
            places.setdefault(name, []).append(module.name)
    assert not places


def test_modules_that_were_given_up_stay_away():
    modules = read_package()
    assert not {old: new for old, new in GIVEN_UP_MODULES.items() if f"xtrace.{old}" in modules}


@pytest.mark.parametrize("text", ["Recording = 1", "x.recordable", "from a import NEVER", "def one_program(): pass"])
def test_a_name_is_found_wherever_it_stands(text):
    assert GIVEN_UP.keys() & set(names(ast.parse(text)))
