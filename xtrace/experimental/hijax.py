"""Types and operations of users, which run as operations on arrays."""

from xtrace._src.core.avals import AbstractRef as AbstractRef
from xtrace._src.core.avals import AbstractValue as AbstractValue
from xtrace._src.core.avals import ShapedArray as ShapedArray
from xtrace._src.core.high_types import (
    AvalMutableQDD,
    AvalQDD,
    HiPspec,
    HiType,
    MutableHiType,
    aval_method,
    aval_property,
    control_flow_allowed_effects,
    register_hitype,
)
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.gradient_accumulators import GradAccum, NullAccum, RefAccum, ValAccum
from xtrace._src.extension.high_primitives import (
    HiPrimitive,
    VJPHiPrimitive,
    jvp_from_lin,
    linearize_from_jvp,
    vjp_from_jvp,
    vjp_from_lin,
)
from xtrace._src.ops.references.reference import TransformedRef as TransformedRef
from xtrace.interpreters.ad import Zero as Zero
from xtrace.interpreters.ad import instantiate_zeros as instantiate_zeros
from xtrace.interpreters.ad import is_undefined_primal as is_undefined_primal

# The name in newer JAX.
HiPrim = VJPHiPrimitive

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "GradAccum", "HiPrim", "HiPrimitive", "HiPspec",
    "HiType", "MutableHiType", "NullAccum", "RefAccum", "ShapedArray", "TransformedRef", "VJPHiPrimitive", "ValAccum",
    "Zero", "aval_method", "aval_property", "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal",
    "jvp_from_lin", "linearize_from_jvp", "register_hitype", "vjp_from_jvp", "vjp_from_lin",
]

_make_public(globals(), __all__)
