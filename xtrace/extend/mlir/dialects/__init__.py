"""Builders of operations in MLIR's dialects (``jax.extend.mlir.dialects``). They load at their first use."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.extend.mlir.dialects import (
        arith as arith, builtin as builtin, chlo as chlo, func as func, math as math, memref as memref, mpmd as mpmd,
        scf as scf, sdy as sdy, sparse_tensor as sparse_tensor, stablehlo as stablehlo, vector as vector,
    )
