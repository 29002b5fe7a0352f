"""The transformation that applies functions to sparse arrays, as ``jax.experimental.sparse.transform`` has them."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.sparse.sparsification import SparseTracer, sparsify

__all__ = ["SparseTracer", "sparsify"]

_make_public(globals(), __all__)
