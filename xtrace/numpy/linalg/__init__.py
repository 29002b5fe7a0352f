"""Linear algebra on the matrices in the last two axes."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.linalg.determinants import *
from xtrace.numpy.linalg.factorizations import *
from xtrace.numpy.linalg.norms import *
from xtrace.numpy.linalg.products import *
from xtrace.numpy.linalg.solutions import *

__all__ = _make_public(globals())
