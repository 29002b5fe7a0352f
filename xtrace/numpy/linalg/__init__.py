"""Linear algebra on the matrices in the last two axes, as ``jax.numpy.linalg`` has it."""

from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.linalg.determinants import det, slogdet
from xtrace.numpy.linalg.factorizations import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from xtrace.numpy.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from xtrace.numpy.linalg.products import (
    cross,
    diagonal,
    matmul,
    matrix_power,
    matrix_transpose,
    multi_dot,
    outer,
    tensordot,
    trace,
    vecdot,
)
from xtrace.numpy.linalg.solutions import inv, lstsq, pinv, solve, tensorinv, tensorsolve

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]

_make_public(globals(), __all__)
