"""Internals for other libraries, as ``jax.extend`` has them: jaxprs, primitives, platforms, MLIR, generators."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.extend import (
        backend as backend, core as core, linear_util as linear_util, lowering as lowering, mlir as mlir,
        random as random, sharding as sharding, source_info_util as source_info_util,
    )

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.extend", {},
    submodules=(
        "backend", "core", "linear_util", "lowering", "mlir", "random", "sharding", "source_info_util",
    ),
)
