"""The work and the traffic of programs, counted without running them: ``jax.experimental.roofline``."""

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.roofline.analysis import register_roofline as register_roofline
    from xtrace._src.roofline.analysis import register_standard_roofline as register_standard_roofline
    from xtrace._src.roofline.analysis import roofline as roofline
    from xtrace._src.roofline.analysis import roofline_and_grad as roofline_and_grad
    from xtrace._src.roofline.results import RooflineResult as RooflineResult
    from xtrace._src.roofline.results import RooflineRuleContext as RooflineRuleContext
    from xtrace._src.roofline.results import RooflineShape as RooflineShape

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.experimental.roofline",
    {
        "xtrace._src.roofline.analysis": (
            "register_roofline", "register_standard_roofline", "roofline", "roofline_and_grad",
        ),
        "xtrace._src.roofline.results": ("RooflineResult", "RooflineRuleContext", "RooflineShape"),
    },
)
