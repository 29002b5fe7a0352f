"""Errors of compiled functions as values: ``jax.experimental.checkify``."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental.checkify",
    {
        "xtrace._src.checkify.transformation": (
            "ErrorCategory", "all_checks", "automatic_checks", "check", "checkify", "debug_check", "div_checks",
            "float_checks", "index_checks", "nan_checks", "user_checks",
        ),
        "xtrace._src.checkify.errors": ("JaxRuntimeError",),
        "xtrace._src.checkify.checks": ("Error", "check_error", "init_error"),
    },
)
