"""References, which are mutable arrays, and the functions that read and write them (``jax.ref``)."""

from xtrace._src.core.avals import AbstractRef as AbstractRef
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.references.reference import *

_make_public(globals())
