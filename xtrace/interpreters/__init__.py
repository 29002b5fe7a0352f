"""Rules of primitives, for programs that add operations (``jax.interpreters``). Its modules load at their first use."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.interpreters import (
        ad as ad, batching as batching, mlir as mlir, partial_eval as partial_eval, pxla as pxla, xla as xla,
    )
