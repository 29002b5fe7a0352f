"""The transformation of functions to functions of sparse arrays (``jax.experimental.sparse.transform``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.sparse.sparsification import *

_make_public(globals())
