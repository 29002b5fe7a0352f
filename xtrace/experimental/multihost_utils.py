"""Exchange of data among the processes of a program (``jax.experimental.multihost_utils``)."""

from xtrace._src.api.processes.multihost import *
from xtrace._src.core.public_modules import make_public as _make_public

_make_public(globals())
