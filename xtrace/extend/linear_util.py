"""Functions with transformations around them (``jax.extend.linear_util``)."""

from xtrace._src.core.linear_functions import *
from xtrace._src.core.public_modules import make_public as _make_public

_make_public(globals())
