"""CSR and CSC matrices and their functions (``jax.experimental.sparse.csr``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.rows_and_columns import csr_fromdense_p, csr_matmat_p, csr_matvec_p, csr_todense_p
from xtrace.experimental.sparse.matrices import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense
from xtrace.experimental.sparse.sparse_arrays import JAXSparse

__all__ = [
    "CSC", "CSR", "JAXSparse", "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec",
    "csr_matvec_p", "csr_todense", "csr_todense_p",
]

_make_public(globals(), __all__)
