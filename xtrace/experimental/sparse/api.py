"""Sparse arrays of any format (``jax.experimental.sparse.api``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.sparse.creation import *

_make_public(globals())
