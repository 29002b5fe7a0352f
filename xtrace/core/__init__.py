"""Types, jaxprs, primitives and traces. As a public module, ``jax.core``: names that load on first touch."""

from xtrace.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.core",
    {
        "xtrace.core.avals": ("ShapedArray",),
        "xtrace.core.public": (
            "AbstractValue", "Atom", "ParamDict", "Trace", "Tracer", "Value", "eval_context", "max_dim", "min_dim",
        ),
        "xtrace.api.scopes": ("ensure_compile_time_eval",),
        "xtrace.api.tracing": ("eval_jaxpr",),
    },
)
