"""Geometry, as ``jax.scipy.spatial`` has it; each module loads when it is first asked for."""

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.scipy.spatial import transform as transform

__all__, __getattr__, __dir__ = _late_names("xtrace.scipy.spatial", {}, submodules=("transform",))
