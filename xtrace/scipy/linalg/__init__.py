"""Linear algebra with SciPy's names and arguments, as ``jax.scipy.linalg`` has it."""

from xtrace._src.core.late import make_public as _make_public
from xtrace.scipy.linalg.factorizations import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    hessenberg,
    inv,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    solve,
    solve_triangular,
    svd,
)
from xtrace.scipy.linalg.functions import expm, expm_frechet, funm, solve_sylvester, sqrtm
from xtrace.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from xtrace.scipy.linalg.tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det",
    "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard",
    "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor",
    "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz",
]

_make_public(globals(), __all__)
