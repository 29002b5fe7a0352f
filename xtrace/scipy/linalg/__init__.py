"""Linear algebra with SciPy's names and arguments (``jax.scipy.linalg``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.linalg.factorizations import *
from xtrace.scipy.linalg.matrix_functions import *
from xtrace.scipy.linalg.solutions import *
from xtrace.scipy.linalg.special_matrices import *
from xtrace.scipy.linalg.tridiagonal import *

__all__ = _make_public(globals())
