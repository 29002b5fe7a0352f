"""What programs that look inside need, as ``jax.extend`` has it: the classes of jaxprs, and the primitives."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names("xtrace.extend", {}, submodules=("core",))
