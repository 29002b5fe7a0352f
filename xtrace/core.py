"""Types, jaxprs and traces (``jax.core``). They load at their first use."""
# ruff: noqa: I001

from xtrace._late_imports import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.core.avals import ShapedArray as ShapedArray
    from xtrace._src.core.jax_core_names import (
        AbstractValue as AbstractValue, Atom as Atom, ParamDict as ParamDict, Trace as Trace, Tracer as Tracer,
        Value as Value, eval_context as eval_context, max_dim as max_dim, min_dim as min_dim,
    )
    from xtrace._src.api.contexts import ensure_compile_time_eval as ensure_compile_time_eval
    from xtrace._src.api.tracing import eval_jaxpr as eval_jaxpr

# Libraries use these names, which JAX deprecates here.
with _late_imports(globals(), listed=False):
    from xtrace._src.core.jax_core_names import is_concrete, is_constant_dim, is_constant_shape  # noqa: F401
    from xtrace._src.core.avals import aval_rules as pytype_aval_mappings  # noqa: F401
    from xtrace.extend.core import (  # noqa: F401
        CallPrimitive, DebugInfo, DropVar, Effect, Effects, InconclusiveDimensionOperation, JaxprTypeError, check_jaxpr,
        concrete_or_error, find_top_trace, gensym, get_opaque_trace_state, jaxprs_in_params, new_jaxpr_eqn, no_effects,
        nonempty_axis_env_DO_NOT_USE, primal_dtype_to_tangent_dtype, unsafe_am_i_under_a_jit_DO_NOT_USE,
        unsafe_am_i_under_a_vmap_DO_NOT_USE, unsafe_get_axis_names_DO_NOT_USE, valid_jaxtype,
    )
