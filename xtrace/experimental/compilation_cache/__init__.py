"""Compiled programs on disk (``jax.experimental.compilation_cache``)."""

from xtrace._late_names import late_imports as _late_imports

with _late_imports(globals()):
    from xtrace.experimental.compilation_cache import compilation_cache as compilation_cache
