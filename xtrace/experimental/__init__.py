"""What ``jax.experimental`` has besides the stable modules; each module loads when it is first asked for."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental", {"xtrace._src.ops.host.callbacks": ("io_callback",)}, submodules=("checkify", "ode")
)
