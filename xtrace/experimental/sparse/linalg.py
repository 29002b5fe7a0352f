"""Solvers of problems with sparse matrices (``jax.experimental.sparse.linalg``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.direct_solution import spsolve_p
from xtrace.experimental.sparse.solvers import lobpcg_standard, spsolve

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]

_make_public(globals(), __all__)
