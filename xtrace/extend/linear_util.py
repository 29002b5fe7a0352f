"""Functions with transformations around them (``jax.extend.linear_util``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.linear_functions import *

_make_public(globals())
