"""Internals for other libraries (``jax.extend``): jaxprs, primitives, platforms, MLIR, generators."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.extend import (
        backend as backend, core as core, ifrt_programs as ifrt_programs, linear_util as linear_util,
        lowering as lowering, mlir as mlir, random as random, sharding as sharding,
        source_info_util as source_info_util,
    )
