"""Rules of primitives, for programs that add operations: ``jax.interpreters``. Its modules load on first touch."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.interpreters import (
        ad as ad, batching as batching, mlir as mlir, partial_eval as partial_eval, pxla as pxla, xla as xla,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.interpreters", {}, submodules=("ad", "batching", "mlir", "partial_eval", "pxla", "xla")
)
