"""Types, jaxprs and traces (``jax.core``). They load at their first use."""
# ruff: noqa: I001

from xtrace._src.core.public_modules import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.core.avals import ShapedArray as ShapedArray
    from xtrace._src.core.jax_core_names import (
        AbstractValue as AbstractValue, Atom as Atom, ParamDict as ParamDict, Trace as Trace, Tracer as Tracer,
        Value as Value, eval_context as eval_context, max_dim as max_dim, min_dim as min_dim,
    )
    from xtrace._src.api.scopes import ensure_compile_time_eval as ensure_compile_time_eval
    from xtrace._src.api.tracing import eval_jaxpr as eval_jaxpr

# Libraries use this name, which JAX deprecates.
with _late_imports(globals(), listed=False):
    from xtrace._src.core.avals import aval_rules as pytype_aval_mappings  # noqa: F401
