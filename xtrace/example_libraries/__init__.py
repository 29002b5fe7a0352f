"""Small libraries on top of xtrace (``jax.example_libraries``); each loads at its first use."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.example_libraries import optimizers as optimizers, stax as stax
