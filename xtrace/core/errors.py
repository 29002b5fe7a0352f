"""The classes of error that tracing raises. Each says in its docstring when it comes and what to write instead."""

from __future__ import annotations


class ConcretizationTypeError(TypeError):
    """Python needed the value of a traced array.

    Mark the argument static, use a structured control-flow operation, or keep that part outside the transformation.
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a condition: `if`, `while`, `and`, `bool()`.

    Use ``lax.cond``, ``lax.while_loop`` or ``numpy.where``, or mark the argument static.
    """


class TracerArrayConversionError(TypeError):
    """NumPy was given a traced array. Use the ``xtrace.numpy`` function of the same name."""


class TracerIntegerConversionError(TypeError):
    """A traced array was used where Python needs an integer: ``range``, a list index, a shape."""


class NonConcreteBooleanIndexError(IndexError):
    """A traced boolean mask was used as an index; the result's shape would depend on values.

    Use ``numpy.where(mask, x, fill)``, or ``numpy.nonzero(mask, size=n)``.
    """


class UnexpectedTracerError(TypeError):
    """A traced value was used after its trace had ended: it leaked through a global, an attribute or a closure."""


class JaxprTypeError(TypeError):
    """A jaxpr broke a rule of the IR (scope, types, parameters)."""


class MissingRuleError(NotImplementedError):
    """A transformation met a primitive that has no rule for it."""
