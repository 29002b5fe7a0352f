"""Builders of operations in MLIR's dialects: ``jax.extend.mlir.dialects``. Its modules load on first touch."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.extend.mlir.dialects import (
        arith as arith, builtin as builtin, chlo as chlo, func as func, math as math, memref as memref, mpmd as mpmd,
        scf as scf, sdy as sdy, sparse_tensor as sparse_tensor, stablehlo as stablehlo, vector as vector,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.extend.mlir.dialects", {},
    submodules=(
        "arith", "builtin", "chlo", "func", "math", "memref", "mpmd", "scf", "sdy", "sparse_tensor", "stablehlo",
        "vector",
    ),
)
