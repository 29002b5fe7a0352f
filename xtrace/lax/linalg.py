"""Dense linear algebra on the matrices in the last two axes, as ``jax.lax.linalg`` has it."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace._src.ops.linalg.lu import (
        lu as lu, lu as lu_p, lu_pivots_to_permutation as lu_pivots_to_permutation,
        lu_pivots_to_permutation as lu_pivots_to_permutation_p,
    )
    from xtrace._src.ops.linalg.polar import qdwh as qdwh
    from xtrace._src.ops.linalg.qr import (
        geqp3 as geqp3_p, geqrf as geqrf_p, householder_product as householder_product,
        householder_product as householder_product_p, ormqr as ormqr, ormqr as ormqr_p, qr as qr, qr as qr_p,
    )
    from xtrace._src.ops.linalg.rank_updates import (
        cholesky_update as cholesky_update, cholesky_update as cholesky_update_p,
        symmetric_product as symmetric_product, symmetric_product as symmetric_product_p,
    )
    from xtrace._src.ops.linalg.reduced import (
        hessenberg as hessenberg, hessenberg as hessenberg_p, schur as schur, schur as schur_p,
        tridiagonal as tridiagonal, tridiagonal as tridiagonal_p, tridiagonal_solve as tridiagonal_solve,
        tridiagonal_solve as tridiagonal_solve_p,
    )
    from xtrace._src.ops.linalg.spectral import (
        EigImplementation as EigImplementation, EighImplementation as EighImplementation, SvdAlgorithm as SvdAlgorithm,
        eig as eig, eig as eig_p, eigh as eigh, eigh as eigh_p, svd as svd, svd as svd_p,
    )
    from xtrace._src.ops.linalg.triangular import (
        cholesky as cholesky, cholesky as cholesky_p, triangular_solve as triangular_solve,
        triangular_solve as triangular_solve_p,
    )

# Names load at their first use; one entry for each file.
_late, __getattr__, __dir__ = _late_names(
    "xtrace.lax.linalg",
    {
        "xtrace._src.ops.linalg.lu": (
            "lu", "lu as lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation as lu_pivots_to_permutation_p",
        ),
        "xtrace._src.ops.linalg.polar": ("qdwh",),
        "xtrace._src.ops.linalg.qr": (
            "geqp3 as geqp3_p", "geqrf as geqrf_p", "householder_product",
            "householder_product as householder_product_p", "ormqr", "ormqr as ormqr_p", "qr", "qr as qr_p",
        ),
        "xtrace._src.ops.linalg.rank_updates": (
            "cholesky_update", "cholesky_update as cholesky_update_p", "symmetric_product",
            "symmetric_product as symmetric_product_p",
        ),
        "xtrace._src.ops.linalg.reduced": (
            "hessenberg", "hessenberg as hessenberg_p", "schur", "schur as schur_p", "tridiagonal",
            "tridiagonal as tridiagonal_p", "tridiagonal_solve", "tridiagonal_solve as tridiagonal_solve_p",
        ),
        "xtrace._src.ops.linalg.spectral": (
            "EigImplementation", "EighImplementation", "SvdAlgorithm", "eig", "eig as eig_p", "eigh", "eigh as eigh_p",
            "svd", "svd as svd_p",
        ),
        "xtrace._src.ops.linalg.triangular": (
            "cholesky", "cholesky as cholesky_p", "triangular_solve", "triangular_solve as triangular_solve_p",
        ),
    },
)
__all__ = _late
