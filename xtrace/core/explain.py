"""What errors say about a tracer: which function was being traced, what the value depends on, where it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xtrace.core.avals import is_array_like, not_an_array
from xtrace.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from xtrace.core.ir import Atom, DebugInfo, JaxprEqn, Literal, Var
from xtrace.core.printer import format_equation
from xtrace.core.source import Position, describe, resolve

if TYPE_CHECKING:
    from xtrace.core.trace import Tracer

_SHOWN_OPERATIONS = 5


class Provenance:
    """How a traced value came to be: the traced function, the arguments it depends on, the operations before it."""

    __slots__ = ("debug_info", "arguments", "operations")

    def __init__(self, debug_info: DebugInfo, arguments: Sequence[str], operations: Sequence[JaxprEqn]) -> None:
        self.debug_info, self.arguments, self.operations = debug_info, arguments, operations

    @classmethod
    def of(
        cls, variable: Atom, inputs: Sequence[Var], equations: Sequence[JaxprEqn], debug_info: DebugInfo
    ) -> Provenance:
        """Walk the equations backwards from `variable`."""
        needed: set[Atom] = {variable}
        operations = []
        for equation in reversed(equations):
            if any(v in needed for v in equation.outvars):
                operations.append(equation)
                needed.update(v for v in equation.invars if isinstance(v, Var))
        paths = debug_info.argument_paths() or [f"argument {i}" for i in range(len(inputs))]
        arguments = [path for path, v in zip(paths, inputs, strict=False) if v in needed]
        return cls(debug_info, arguments, operations[::-1])

    def __str__(self) -> str:
        text = f"The error occurred while tracing the function {self.debug_info}. "
        if self.arguments:
            names, plural = _listed(self.arguments), "s" if len(self.arguments) > 1 else ""
            return text + (
                "This concrete value was not available in Python because it depends on the "
                f"value{plural} of the argument{plural} {names}."
            )
        if not self.operations:
            return text + "This value is a constant made while tracing, by xtrace.numpy; numpy's values stay concrete."
        shown = self.operations[-_SHOWN_OPERATIONS:]
        lines = [f"  operation {format_equation(e)}\n    from line {describe(e.source)}" for e in shown]
        return text + (
            "This value became a tracer due to xtrace operations on these lines:\n\n" + "\n\n".join(lines)
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def provenance(tracer: Tracer) -> str:
    """Say where `tracer` came from, or nothing if its trace does not know."""
    found = getattr(tracer.owner, "provenance_of", None)
    return f"\n{found(tracer)}" if found is not None else ""


def check_operands(name: str, operands: Sequence[Any]) -> None:
    """Raise a TypeError that names the operand no operation accepts, if there is one."""
    for position, value in enumerate(operands):
        if not isinstance(value, Literal) and not is_array_like(value):
            raise TypeError(f"{name}: argument {position}: {not_an_array(value)}")


def boolean_conversion(tracer: Tracer) -> TracerBoolConversionError:
    """The error of a tracer used as a condition."""
    return TracerBoolConversionError(
        f"Attempted boolean conversion of traced array with shape {tracer.aval.str_short()}."
        f"{provenance(tracer)}\n"
        "A traced value has no data while Python runs. Choose with xtrace.numpy.where(condition, x, y) or "
        "xtrace.lax.cond, loop with xtrace.lax.while_loop, or mark the argument as static "
        "(static_argnums or static_argnames) if it has few values."
    )


def concretization(tracer: Tracer, asked_by: str) -> ConcretizationTypeError:
    """The error of a tracer whose value a Python function asked for."""
    return ConcretizationTypeError(
        f"Abstract tracer value encountered where concrete value is expected: {tracer!r}\n"
        f"The problem arose with the `{asked_by}` function.{provenance(tracer)}\n"
        f"Use x.astype(...) to change the type of a traced value; mark the argument as static if {asked_by}() "
        "must see its value."
    )


def integer_conversion(tracer: Tracer) -> TracerIntegerConversionError:
    """The error of a tracer used as a Python integer."""
    return TracerIntegerConversionError(
        f"The __index__() method was called on traced array with shape {tracer.aval.str_short()}: Python needed "
        f"its value as an integer (range(), a list index, a shape, a slice bound).{provenance(tracer)}\n"
        "Mark the argument as static, loop with xtrace.lax.fori_loop, or index an xtrace array instead of a list."
    )


def no_data(tracer: Tracer, what: str) -> ConcretizationTypeError:
    """The error of using a method or an attribute, `what`, that needs the data of a tracer, or where it is."""
    return ConcretizationTypeError(
        f"Abstract tracer value encountered where concrete value is expected: the {what} is not available on traced "
        f"array with shape {tracer.aval.str_short()}, which has no data while Python runs.{provenance(tracer)}\n"
        "Use it outside the traced function, on its arguments and results."
    )


def no_such_attribute(tracer: Tracer, what: str) -> AttributeError:
    """The error of asking a tracer for an attribute that only concrete arrays have."""
    return AttributeError(
        f"the {what} is not available on traced array with shape {tracer.aval.str_short()}, which is on no device "
        "while Python runs. Use it outside the traced function; xtrace.typeof(x) says what is known of a traced array"
    )


def array_conversion(tracer: Tracer) -> TracerArrayConversionError:
    """The error of a tracer given to NumPy."""
    return TracerArrayConversionError(
        "The numpy.ndarray conversion method __array__() was called on traced array with shape "
        f"{tracer.aval.str_short()}: a NumPy function was given a traced value.{provenance(tracer)}\n"
        "Use the function of the same name in xtrace.numpy, which can be traced."
    )


def unexpected_tracer(tracer: Tracer, made_at: Position | None, debug_info: DebugInfo | None) -> UnexpectedTracerError:
    """The error of a tracer used after its trace ended."""
    where = f" on line {describe(made_at)}" if made_at is not None else ""
    owner = f"the function {debug_info}" if debug_info is not None else f"a function under {tracer.owner!r}"
    made = f", made{where}," if where else ""
    leaker = f" ({resolve(made_at).function})" if made_at is not None else ""
    return UnexpectedTracerError(
        f"Encountered an unexpected tracer. A traced value of type {tracer.aval.str_short()}{made} "
        f"was used after the trace of {owner} had ended: it leaked{leaker} through a side effect, such as a global, "
        "an attribute or a list outside the function.\n"
        "Return the value from the function instead of storing it. "
        "`with xtrace.checking_leaks():` around the call finds the leak where it happens."
    )

