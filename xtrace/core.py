"""``jax.core``: types, jaxprs and traces, which load on first touch."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.core",
    {
        "xtrace._src.core.avals": ("ShapedArray",),
        "xtrace._src.core.public": (
            "AbstractValue", "Atom", "ParamDict", "Trace", "Tracer", "Value", "eval_context", "max_dim", "min_dim",
        ),
        "xtrace._src.api.scopes": ("ensure_compile_time_eval",),
        "xtrace._src.api.tracing": ("eval_jaxpr",),
    },
)
