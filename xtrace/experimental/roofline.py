"""The work and the memory traffic of programs, counted without a run (``jax.experimental.roofline``)."""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.roofline.analysis import register_roofline as register_roofline
    from xtrace._src.roofline.analysis import register_standard_roofline as register_standard_roofline
    from xtrace._src.roofline.analysis import roofline as roofline
    from xtrace._src.roofline.analysis import roofline_and_grad as roofline_and_grad
    from xtrace._src.roofline.results import RooflineResult as RooflineResult
    from xtrace._src.roofline.results import RooflineRuleContext as RooflineRuleContext
    from xtrace._src.roofline.results import RooflineShape as RooflineShape
