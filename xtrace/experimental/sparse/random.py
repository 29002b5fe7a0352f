"""Random sparse arrays (``jax.experimental.sparse.random``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.sparse.random_arrays import *

_make_public(globals())
