"""COO matrices and their functions (``jax.experimental.sparse.coo``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.rows_and_columns import coo_fromdense_p, coo_matmat_p, coo_matvec_p, coo_todense_p
from xtrace.experimental.sparse.matrices import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense
from xtrace.experimental.sparse.sparse_arrays import JAXSparse

__all__ = [
    "COO", "JAXSparse", "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p", "coo_matvec",
    "coo_matvec_p", "coo_todense", "coo_todense_p",
]

_make_public(globals(), __all__)
