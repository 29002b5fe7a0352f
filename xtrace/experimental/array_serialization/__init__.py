"""Arrays on disk: ``jax.experimental.array_serialization``, without TensorStore."""

from xtrace._late_names import late_imports as _late_imports

with _late_imports(globals()):
    from xtrace.experimental.array_serialization import serialization as serialization
