"""The error and the warnings for inefficient layouts (``jax.experimental.sparse.util``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.layouts import *

_make_public(globals())
