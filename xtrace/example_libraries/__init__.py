"""Small libraries on top of xtrace, as ``jax.example_libraries`` has them; each loads when it is first asked for."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.example_libraries import optimizers as optimizers, stax as stax

__all__, __getattr__, __dir__ = _late_names("xtrace.example_libraries", {}, submodules=("optimizers", "stax"))
