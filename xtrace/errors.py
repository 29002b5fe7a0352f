"""The classes of errors (``jax.errors``)."""

from xtrace._src.core.errors import (
    BroadcastError,
    ConcretizationTypeError,
    DuplicateSpecError,
    InconclusiveDimensionOperation,
    IndivisibleError,
    JAXIndexError,
    JaxprTypeError,
    JAXTypeError,
    KeyReuseError,
    NoMeshError,
    NonConcreteBooleanIndexError,
    RecompilationWarning,
    ShardingTypeError,
    StaticArgumentError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla.executables import CompileError as JaxRuntimeError

__all__ = [
    "BroadcastError", "ConcretizationTypeError", "DuplicateSpecError", "InconclusiveDimensionOperation",
    "IndivisibleError", "JAXIndexError", "JAXTypeError", "JaxRuntimeError", "JaxprTypeError", "KeyReuseError",
    "NoMeshError", "NonConcreteBooleanIndexError", "RecompilationWarning", "ShardingTypeError", "StaticArgumentError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError",
]

_make_public(globals(), __all__)
