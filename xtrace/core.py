"""``jax.core``: types, jaxprs and traces, which load on first touch."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.core.avals import ShapedArray as ShapedArray
    from xtrace._src.core.public import (
        AbstractValue as AbstractValue, Atom as Atom, ParamDict as ParamDict, Trace as Trace, Tracer as Tracer,
        Value as Value, eval_context as eval_context, max_dim as max_dim, min_dim as min_dim,
    )
    from xtrace._src.api.scopes import ensure_compile_time_eval as ensure_compile_time_eval
    from xtrace._src.api.tracing import eval_jaxpr as eval_jaxpr

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
    deprecated={"xtrace._src.core.avals": ("aval_rules as pytype_aval_mappings",)},
)
