"""Types and operations of users, which run as operations on arrays."""

from xtrace._src.core.avals import AbstractRef as AbstractRef
from xtrace._src.core.avals import AbstractValue as AbstractValue
from xtrace._src.core.avals import ShapedArray as ShapedArray
from xtrace._src.core.high_types.high_types import *
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.gradient_accumulators import *
from xtrace._src.extension.high_primitives import *
from xtrace._src.ops.references.reference import TransformedRef as TransformedRef
from xtrace.interpreters.ad import Zero as Zero
from xtrace.interpreters.ad import instantiate_zeros as instantiate_zeros
from xtrace.interpreters.ad import is_undefined_primal as is_undefined_primal

# The name in newer JAX.
HiPrim = VJPHiPrimitive

_make_public(globals())
