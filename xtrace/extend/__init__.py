"""What programs that look inside need, as ``jax.extend`` has it: the classes of jaxprs, and the primitives."""

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.extend import core as core
    from xtrace.extend import linear_util as linear_util
    from xtrace.extend import source_info_util as source_info_util

__all__, __getattr__, __dir__ = _late_names("xtrace.extend", {}, submodules=("core", "linear_util", "source_info_util"))
