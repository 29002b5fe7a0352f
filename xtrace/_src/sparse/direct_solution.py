"""The primitive of sparse linear systems."""

from __future__ import annotations

import functools
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapeDtypeStruct
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.host.callbacks import pure_callback
from xtrace._src.ops.solvers import custom_linear_solve
from xtrace._src.sparse.band_solver import solve_sparse
from xtrace._src.sparse.formula_primitives import formula_primitive
from xtrace._src.sparse.rows_and_columns import csr_matvec_p


def _spsolve(data: Array, indices: Array, indptr: Array, b: Array, *, tol: float, reorder: int) -> Array:
    """Solve a linear system with a CSR matrix on the host."""
    size = b.shape[0]
    known = stop_gradient(data)

    def multiply(x: Array) -> Any:
        return csr_matvec_p.bind(data, indices, indptr, x, shape=(size, size), transpose=False)

    def solve(transpose: bool, _: Any, right: Array) -> Any:
        call = functools.partial(solve_sparse, transpose=transpose, reorder=bool(reorder))
        result = ShapeDtypeStruct((size,), right.dtype)
        return pure_callback(call, result, known, indices, indptr, right, vmap_method="sequential")

    solution: Array = custom_linear_solve(
        multiply, b, functools.partial(solve, False), functools.partial(solve, True)
    )
    return solution


spsolve_p = formula_primitive("spsolve", ("tol", "reorder"), _spsolve)
