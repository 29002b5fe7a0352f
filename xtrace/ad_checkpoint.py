"""Rematerialization (``jax.ad_checkpoint``)."""

from xtrace._src.api.differentiation.checkpoint import checkpoint, print_saved_residuals, remat
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.remat.checkpoint_name import checkpoint_name
from xtrace._src.ops.remat.policies import Offloadable, Recompute, Saveable, checkpoint_policies

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat",
]

_make_public(globals(), __all__)
