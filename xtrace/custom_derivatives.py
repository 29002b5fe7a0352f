"""Functions with derivatives of the user's own (``jax.custom_derivatives``)."""

from xtrace._late_imports import late_imports as _late_imports
from xtrace._src.api.custom_rules.closures import closure_convert
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.custom_rules.custom_vjp import (
    CustomVJPPrimal,
    custom_gradient,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from xtrace._src.api.custom_rules.linear_call import linear_call
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call as custom_jvp_call_p
from xtrace._src.ops.custom_rules.custom_vjp import custom_vjp_call as custom_vjp_call_p
from xtrace._src.ops.custom_rules.symbolic_zeros import SymbolicZero, zero_from_primal

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]

_make_public(globals(), __all__)

# It loads at its first use.
with _late_imports(globals()):
    from xtrace._src.ops.custom_rules.remat_opt import remat_opt as remat_opt_p  # noqa: F401
