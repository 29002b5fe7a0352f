"""Objects for lowering rules (``jax.extend.lowering``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.lowering_contexts import LoweringRuleContext
from xtrace._src.xla.mlir import modules as _modules
from xtrace._src.xla.mlir.modules import JaxIrContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]

# jaxlib's registry of the dialects that are part of MLIR.
upstream_dialects = _modules.upstream_dialects()

_make_public(globals(), __all__)
