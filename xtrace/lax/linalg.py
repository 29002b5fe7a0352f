"""Dense linear algebra on the matrices in the last two axes, as ``jax.lax.linalg`` has it."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
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
