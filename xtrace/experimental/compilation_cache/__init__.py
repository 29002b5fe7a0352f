"""Compiled programs that are kept on disk, as ``jax.experimental.compilation_cache`` has them."""

from xtrace._src.core.public_modules import late_imports as _late_imports

with _late_imports(globals()):
    from xtrace.experimental.compilation_cache import compilation_cache as compilation_cache
