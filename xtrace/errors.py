"""The classes of error that tracing raises, as ``jax.errors`` has them."""

from xtrace.core.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from xtrace.xla.executables import CompileError as JaxRuntimeError

__all__ = [
    "ConcretizationTypeError", "JaxRuntimeError", "NonConcreteBooleanIndexError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError",
]  # fmt: skip
