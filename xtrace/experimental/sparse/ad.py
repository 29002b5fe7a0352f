"""Derivatives of functions of sparse arrays (``jax.experimental.sparse.ad``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.sparse.derivatives import *

_make_public(globals())
