"""Events of a program, and their listeners (``jax.monitoring``)."""

from xtrace._src.core.monitoring import *
from xtrace._src.core.public_modules import make_public as _make_public

_make_public(globals())
