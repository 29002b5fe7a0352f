"""Arrays on disk: ``jax.experimental.array_serialization``, without TensorStore."""

from xtrace._src.core.public_modules import late_imports as _late_imports

with _late_imports(globals()):
    from xtrace.experimental.array_serialization import serialization as serialization
