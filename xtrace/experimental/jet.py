"""Taylor-mode differentiation (``jax.experimental.jet``).

`jet` returns a function's derivatives of all orders along a curve. `jet_rules` maps primitives to rules, and takes
users' rules. `zero_series` and `zero_term` stand for zero derivatives.
"""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.jet.registry import jet_rules as jet_rules
    from xtrace._src.jet.transformation import jet as jet
    from xtrace._src.jet.transformation import zero_series as zero_series
    from xtrace._src.jet.transformation import zero_term as zero_term
