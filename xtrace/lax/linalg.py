"""Dense linear algebra on the matrices in the last two axes, as ``jax.lax.linalg`` has it."""

from xtrace._src.core.late import make_public as _make_public
from xtrace._src.ops.linalg.lu import lu, lu_pivots_to_permutation
from xtrace._src.ops.linalg.polar import qdwh
from xtrace._src.ops.linalg.qr import geqp3 as geqp3_p
from xtrace._src.ops.linalg.qr import geqrf as geqrf_p
from xtrace._src.ops.linalg.qr import householder_product, ormqr, qr
from xtrace._src.ops.linalg.reduced import hessenberg, schur, tridiagonal, tridiagonal_solve
from xtrace._src.ops.linalg.spectral import EighImplementation, EigImplementation, SvdAlgorithm, eig, eigh, svd
from xtrace._src.ops.linalg.triangular import cholesky, triangular_solve
from xtrace._src.ops.linalg.updates import cholesky_update, symmetric_product

cholesky_p = cholesky
cholesky_update_p = cholesky_update
eig_p = eig
eigh_p = eigh
hessenberg_p = hessenberg
householder_product_p = householder_product
lu_p = lu
lu_pivots_to_permutation_p = lu_pivots_to_permutation
ormqr_p = ormqr
qr_p = qr
schur_p = schur
svd_p = svd
symmetric_product_p = symmetric_product
triangular_solve_p = triangular_solve
tridiagonal_p = tridiagonal
tridiagonal_solve_p = tridiagonal_solve

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "geqp3_p", "geqrf_p", "hessenberg", "hessenberg_p",
    "householder_product", "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p",
    "symmetric_product", "symmetric_product_p", "triangular_solve", "triangular_solve_p", "tridiagonal",
    "tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve_p",
]

_make_public(globals(), __all__)
