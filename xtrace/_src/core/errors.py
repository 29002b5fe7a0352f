"""Error classes. Each docstring says when the error is raised, and what to write instead."""

from __future__ import annotations

import numpy as np

__all__ = [
    "BroadcastError", "ConcretizationTypeError", "DuplicateSpecError", "InconclusiveDimensionOperation",
    "IndivisibleError", "JAXIndexError", "JAXTypeError", "JaxprTypeError", "KeyReuseError", "MatrixShapeError",
    "NoMeshError", "NonConcreteBooleanIndexError", "RecompilationWarning", "ShardingTypeError", "StaticArgumentError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError",
]


class JAXTypeError(TypeError):
    """Base class of the type errors below, so that handlers can tell them from type errors of other code."""


class JAXIndexError(IndexError):
    """Base class of the index errors below."""


class ConcretizationTypeError(JAXTypeError):
    """Python needed the value of a traced array.

    Mark the argument static, use a structured control-flow operation, or keep that part outside the transformation.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a condition: `if`, `while`, `and`, `bool()`.

    Use ``lax.cond``, ``lax.while_loop`` or ``numpy.where``, or mark the argument static.
    """


class TracerArrayConversionError(JAXTypeError):
    """NumPy was given a traced array. Use the ``xtrace.numpy`` function of the same name."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used where Python needs an integer: ``range``, a list index, a shape."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index; the result's shape would depend on values.

    Use ``numpy.where(mask, x, fill)``, or ``numpy.nonzero(mask, size=n)``.
    """


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its trace had ended: it leaked through a global, an attribute or a closure."""


class JaxprTypeError(TypeError):
    """A jaxpr broke a rule of the IR (scope, types, parameters)."""


class BroadcastError(ValueError, TypeError):
    """Shapes do not broadcast: a ValueError, as in NumPy, and a TypeError, as in JAX, for handlers of either."""


class MatrixShapeError(np.linalg.LinAlgError, TypeError):
    """An operand has fewer than two axes, or its matrices are not square.

    A LinAlgError and so a ValueError, as in NumPy, and a TypeError, as in JAX, for handlers of either.
    """


class StaticArgumentError(TypeError, ValueError):
    """An argument that decides what is compiled is an array or does not hash. Give a number, a string or a tuple.

    A TypeError, as in NumPy, and a ValueError, as of static arguments in JAX, for handlers of either.
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice. Split it, and use each of the new keys once."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic sizes has no answer for all of their values, or Python needed an integer."""


class RecompilationWarning(UserWarning):
    """A function is compiled again and again; the warning names the part that changes. Compiling is slow."""


def refusal_class(argument: object) -> type[TypeError]:
    """Return the error class for a static argument of a wrong type: StaticArgumentError if it does not hash."""
    try:
        hash(argument)
    except TypeError:
        return StaticArgumentError
    return TypeError


class DuplicateSpecError(ValueError):
    """A PartitionSpec splits two dimensions over the same mesh axis. Leave one of them whole, with None."""


class IndivisibleError(ValueError):
    """A dimension is not a multiple of the number of parts it is split into. Pad it, or leave it whole."""


class ShardingTypeError(TypeError, ValueError):
    """Operands on explicit mesh axes do not say how the result is split. Give `out_sharding`, or use `reshard`."""


class NoMeshError(RuntimeError, ValueError):
    """A PartitionSpec was given where no mesh is in force. Use `set_mesh`, or give a `NamedSharding`.

    A RuntimeError, as in JAX, and a ValueError, since the argument is wrong, for handlers of either.
    """


class ReferenceIndexError(IndexError, ValueError):
    """An index of a reference, or a value written there, does not fit. An IndexError, and a ValueError as in JAX."""


# Tracebacks name the public module, even before it is loaded.
for _name in __all__:
    globals()[_name].__module__ = "xtrace.errors"
