"""Where jax itself has changed since 0.10.2, whose behaviour xtrace follows.

The repeat of the fast tests on the newest jaxlib brings the jax of that release, since jax pins its jaxlib; there the
setting ``xtrace_jax_version`` is that of the installed jax (`tests/conftest.py`). The cases below compare with
something that jax does otherwise there, and no setting chooses; on jax 0.10 they run.
"""

from __future__ import annotations

import jax

IS_REFERENCE = jax.__version_info__[:2] == (0, 10)

# What newer jax has besides, by module: xtrace has it under every jax.
NEWER: dict[str, set[str]] = {
    "xtrace": {"CompilerEffortLevel", "Inline", "get_abstract_mesh", "get_mesh", "use_abstract_mesh"},
    "xtrace.extend.core.primitives": {"log2_p", "one_minus_square_p", "polynomial_p"},
    "xtrace.ffi": {"abstract_token"},
    "xtrace.lax": {"log2", "log2_p", "one_minus_square", "one_minus_square_p", "polynomial", "polynomial_p"},
    "xtrace.experimental.hijax": {
        "GradAccum", "HiPrim", "NullAccum", "RefAccum", "ValAccum", "jvp_from_lin", "linearize_from_jvp",
        "vjp_from_jvp", "vjp_from_lin",
    },
    "xtrace.numpy": {"minmax", "top_k"},
    "xtrace.random": {"Key"},
    "xtrace.scipy.special": {"erfcinv"},
}
# What newer jax has not.
DROPPED: dict[str, set[str]] = {
    "xtrace.experimental": {"cur_qdd"},
    "xtrace.experimental.compute_on": {"compute_on2"},
    "xtrace.experimental.hijax": {"AvalMutableQDD", "AvalQDD", "HiPrimitive", "MutableHiType", "VJPHiPrimitive"},
    "xtrace.extend.core": {"CallPrimitive", "call_impl"},
    "xtrace.lax": {"dce_sink_p"},
}
# Parameters that functions of newer jax have besides.
NEWER_PARAMETERS: dict[str, set[str]] = {"xtrace.vjp": {"saveable_args"}}

_ROOFLINE = "its roofline refuses arguments without shardings"
_COMPUTE_ON = "other parameters of compute_on"
_STATIC = "newer jax counts static_argnums and names debug information otherwise"

_SETTINGS = "newer jax has other settings"
_EFFORTS = "newer jaxlib has no efforts of compilation"
_LAYOUTS = "tests/experimental/test_layouts_of_arrays.py"
_LAYOUT_OF_RESULTS = "modules say the layout of a result that was constrained"
_AUTO_LAYOUT = "jaxprs say AutoLayout"

# The start of a test's name, and what newer jax does.
CHANGED: dict[str, str] = {
    "tests/export/test_shardings.py::test_shardings_in_the_form_of_xla": "it does not read files of old versions",
    "tests/api/test_derivative_types.py::test_derivatives_are_weakly_typed_as_in_jax": "other ones are weakly typed",
    "tests/export/test_members.py::test_members_are_those_of_jax": "its exports have other members",
    f"{_LAYOUTS}::test_layouts_are_as_in_jax[order(put(X, F(L((0, 1), ((2, 2),)), S)))": "its CPU takes no tiles",
    f"{_LAYOUTS}::test_layouts_are_as_in_jax[order(jit(lambda a: constrain(a, T))(X)), heads": _LAYOUT_OF_RESULTS,
    f"{_LAYOUTS}::test_layouts_are_as_in_jax[heads(jit(lambda a: constrain": _LAYOUT_OF_RESULTS,
    f"{_LAYOUTS}::test_layouts_are_as_in_jax[heads(jit(lambda a: lax.with_sharding_constraint": _LAYOUT_OF_RESULTS,
    f"{_LAYOUTS}::test_layouts_are_as_in_jax[source76]": "pieces are put together in another order of axes",
    f"{_LAYOUTS}::test_jaxprs_say_layouts[jit(lambda a: a * a, in_shardings=F(AUTO)": _AUTO_LAYOUT,
    f"{_LAYOUTS}::test_jaxprs_say_layouts[lambda a: j.vjp(": _AUTO_LAYOUT,
    **{
        f"tests/sharding/test_explicit_axes.py::test_reshard_drops_axes_that_are_not_there[entries{i}]": (
            "it refuses specifications that are longer than the shape"
        )
        for i in range(3)
    },
    "tests/api/test_optimized_forward_rules.py::test_equations_are_those_of_jax": "its rule calls a closed_call",
    "tests/core/test_ir.py::test_an_atom_is_a_variable_or_a_literal": "it writes the union with a bar",
    "tests/experimental/test_hijax.py::test_jaxprs_name_the_operation": "equations are named by their classes",
    "tests/ops/test_references.py::test_values_that_are_no_arrays_become_arrays": "references have no weak types",
    "tests/api/test_pickling.py::test_pickles_and_copies_are_equal[jax]": "its types differ from their copies",
    "tests/api/test_jit.py::test_positional_named_and_default_arguments[args10": _STATIC,
    "tests/api/test_jit_static.py::test_selections_infer_names_and_numbers_as_jax_does": _STATIC,
    "tests/ops/test_elementwise.py::test_values_and_types_agree[lgamma]": "another formula",
    "tests/numpy/test_ufuncs.py::test_values_and_types_agree[sinc]": "another formula",
    "tests/ops/test_control_flow_loops.py::test_jaxprs[": "other parameters of scan",
    "tests/ops/test_control_flow_loops.py::test_parameters_are_those_of_jax": "other parameters of scan",
    "tests/api/test_scopes.py::test_operations_of_transformed_programs_have_jaxs_names[layer]": "fewer operations",
    "tests/runtime/test_arrays.py::test_public_attributes_are_those_of_jax": "other names",
    "tests/numpy/test_quantiles.py::test_eager_values_are_those_of_jax[jnp.nanquantile(z, v[:0], axis=0)]":
        "no quantiles of nothing have no axis",
    "tests/scipy/test_special.py::test_zeta_by_its_exponent": "the derivative by an exponent below 1 is NaN",
    "tests/scipy/test_stats.py::test_beyond_the_domain": "other values at negative scales",
    "tests/core/test_config.py::test_every_setting_": _SETTINGS,
    "tests/core/test_config.py::test_settings_become_flags_of_absl": _SETTINGS,
    "tests/core/test_settings.py::test_options_of_a_build_may_be_given_to_jit": _EFFORTS,
    "tests/core/test_settings.py::test_settings_of_the_compiler_reach_it[exec_time": _EFFORTS,
    "tests/core/test_settings.py::test_settings_of_the_compiler_reach_it[memory_fitting_effort": _EFFORTS,
    "tests/api/test_public_names.py::test_functions_have_the_names_and_parameters_of_jax": "other parameters",
    "tests/ops/test_elementwise.py::test_operands_by_keyword": "erfc takes an accuracy",
    "tests/ops/test_elementwise.py::test_accuracy_is_an_attribute_of_the_operation[erfc]": "erfc takes an accuracy",
    "tests/ops/test_cond.py::test_jaxprs_read_as_those_of_jax[<lambda>3]": "another layout of inner jaxprs",
    "tests/api/test_checkpoint.py::test_policies_keep_what_those_of_jax_keep": "other numbers of kept values",
    "tests/api/test_checkpoint.py::test_policies_look_inside_of_loops_and_branches[_in_cond-everything]":
        "other numbers of kept values",
    "tests/api/test_checkpoint.py::test_with_scan[True-everything]": "other parameters of scan",
    "tests/ops/test_special.py::test_incomplete_gamma_at_the_ends_of_its_domain[igammac]": "another formula of lgamma",
    **{
        f"tests/numpy/test_derivatives_at_kinks.py::test_derivatives_are_those_of_jax[j.{case}": reason
        for case, reason in {
            "numpy.sinc(x)": "another formula of sinc", "lax.lgamma(x)": "another formula of lgamma",
            "numpy.hypot(x, ": "derivatives of hypot are NaN at the origin",
            "numpy.linalg.det(x * j.numpy.ones((2, 2)))": "second derivatives of det are NaN at singular matrices",
        }.items()
    },
    "tests/scipy/test_special.py::test_unary[gammaln]": "another formula of lgamma",
    "tests/scipy/test_special.py::test_unary[loggamma]": "another formula of lgamma",
    "tests/scipy/test_special.py::test_binary[betaln]": "another formula of lgamma",
    "tests/scipy/test_special.py::test_types": "another formula of lgamma",
    "tests/scipy/test_special.py::test_binary[kl_div]": "another formula where the arguments are close",
    "tests/scipy/test_special.py::test_binary[rel_entr]": "another formula where the arguments are close",
    "tests/scipy/test_special.py::test_binary[gammaincc]": "another formula of lgamma",
    "tests/nn/test_activations.py::test_derivatives[smooth]": "the derivative of expm1 far out",
    "tests/api/test_profiler.py::test_names_and_parameters_are_those_of_jax": "the folder of a trace has a default",
    "tests/core/test_avals.py::test_structs_keep_dtypes_of_64_bits[False": "it narrows dtypes of 64 bits",
    **{
        f"tests/api/test_scopes.py::test_operations_of_transformed_programs_have_jaxs_names[{case}": "names in loops"
        for case in ("loop", "map of a loop", "tangents of a loop", "gradient of a loop")
    },
    "tests/api/test_scopes.py::test_operations_of_transformed_programs_have_jaxs_names[root: ": "a scope eval_jaxpr",
    "tests/api/test_scopes.py::test_operations_of_transformed_programs_have_jaxs_names[choice: gradient of the map":
        "indices of branches are clamped",
    "tests/api/test_eager_derivatives.py::": "other formulas of derivatives, and so other bits",
    "tests/api/test_derivative_functions.py::test_residuals_of_pullbacks": "pullbacks keep other values",
    "tests/api/test_derivative_functions.py::test_members_of_pullbacks": "pullbacks keep other values",
    "tests/api/test_derivative_functions.py::test_pullbacks_are_pytrees": "pullbacks keep other values",
    "tests/differential/test_rule_nestings.py::test_rules_inside_of_rules_are_traced": "fewer equations",
    "tests/differential/test_rules_in_use.py::test_primitives_": "other parameters of primitives",
    "tests/core/test_settings.py::test_the_librarys_sums_of_16_bit_floats[float16-polyfit]": "it refuses float16",
    "tests/core/test_settings.py::test_the_librarys_sums_of_16_bit_floats[bfloat16-polyfit]": "it refuses bfloat16",
    "tests/sharding/test_operations.py::": "other formulas of operations, and so other shardings",
    "tests/sharding/test_array_members.py::test_transfer_guards": "copies to the host count otherwise",
    "tests/sharding/test_array_members.py::test_unreduced_arrays": "jax raises for unreduced arrays",
    "tests/sharding/test_manual_sums.py::test_values_types_and_jaxprs[x-P(unreduced={'x'})": "it refuses the result",
    "tests/sharding/test_sums.py::test_jaxprs_say_sums": "scalars stay weakly typed",
    "tests/sharding/test_programs.py::test_arrays_go_from_one_mesh_to_another[pieces(lambda x: x)(e)":
        "jax writes a module that MLIR refuses",
    "tests/sharding/test_shardings.py::test_manual_axis_types": "types of manual axes print otherwise",
    "tests/sharding/test_shardings.py::test_values[P('x', unreduced": "specifications have a kind of reduction",
    "tests/sharding/test_shardings.py::test_values[P('x').update(unreduced": "specifications have a kind of reduction",
    "tests/sharding/test_device_meshes.py::test_orders_of_tpus": "other orders of TPUs",
    "tests/sharding/test_ragged_exchanges.py::test_sending_is_printed_as_jax_prints_it": "psend is deprecated",
    "tests/sharding/test_custom_partitioning.py::test_shard_alike[": "there is no shard_alike",
    "tests/experimental/test_hijax.py::test_programs_give_jaxs_results": "high types have other names",
    "tests/experimental/test_hijax.py::test_operations_with_derivatives_of_their_own_": "high types have other names",
    "tests/experimental/test_roofline.py::test_collectives_": _ROOFLINE,
    "tests/experimental/test_roofline.py::test_permutations_": _ROOFLINE,
    "tests/experimental/test_roofline.py::test_gradients_count_as_in_jax": _ROOFLINE,
    "tests/experimental/test_roofline.py::test_programs_count_as_in_jax[exp2]": "exp2 is counted",
    "tests/api/test_frontend_attributes.py::test_operations_have_the_attributes_of_jax[": _COMPUTE_ON,
    "tests/api/test_frontend_attributes.py::test_results_of_units_are_placed": _COMPUTE_ON,
    "tests/api/test_cache_miss_reports.py::test_what_an_entry_is_keyed_on": "the release is a setting of its own",
    "tests/extension/test_lowering_rules.py::test_jaxprs_in_rules[by_function]": "other parameters",
    "tests/extension/test_lowering_rules.py::test_modules_of_jaxprs": "other parameters",
    "tests/extension/test_mlir_modules.py::test_wrong_modules[<lambda>-JaxRuntimeError-deserialize0]": "other words",
    "tests/extension/test_traces.py::test_axes_are_added_by_the_operation_that_users_rules_are_for[lexsort]":
        "lexsort has an operation that unstacks",
    "tests/extension/test_traces.py::test_users_traces_get_the_functions_of_custom_rules[make_reversed_product":
        "process_custom_vjp_call has other arguments",
    **{
        f"tests/extension/test_partial_rules.py::{name}": "other parameters, and jaxprs that are closed"
        for name in (
            "test_dead_code_goes_out_of_calls[closed_call", "test_rules_of_calls[dce_jaxpr_closed_call_rule]",
            "test_a_users_rule_for_dead_code", "test_jvp_of_trees", "test_linear_maps_of_trees",
            "test_names_of_operations_in_jvp",
        )
    },
    "tests/transforms/test_partial_evaluation.py::test_rules_may_pass_values_and_tangents_through_one_helper[custom_jvp]":
        "it refuses such rules",
}


def reason_to_skip(name: str) -> str | None:
    """Return what newer jax does otherwise in the test called `name`, None where it need not be left out."""
    if IS_REFERENCE:
        return None
    return next((why for start, why in CHANGED.items() if name.startswith(start)), None)
