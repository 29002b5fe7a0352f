"""Taylor-mode differentiation: ``jax.experimental.jet``.

`jet` returns a function's derivatives of all orders along a curve. `jet_rules` maps primitives to rules, and takes
users' rules; `zero_series` and `zero_term` stand for derivatives that are known to be zero.
"""

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.jet.registry import jet_rules as jet_rules
    from xtrace._src.jet.transformation import jet as jet
    from xtrace._src.jet.transformation import zero_series as zero_series
    from xtrace._src.jet.transformation import zero_term as zero_term

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental.jet",
    {
        "xtrace._src.jet.registry": ("jet_rules",),
        "xtrace._src.jet.transformation": ("jet", "zero_series", "zero_term"),
    },
)
