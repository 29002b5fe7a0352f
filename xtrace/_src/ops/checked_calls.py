"""Functions with rules of their own as `checkify` calls them: they return their errors besides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.ir import ClosedJaxpr
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs


def closed_over(name: str) -> str:
    """The message of a derivative with respect to what a function with rules of its own closes over."""
    return (
        f"Detected differentiation of the custom_jvp or custom_vjp function {name} with respect to a closed-over "
        "value. That is not supported because the custom rule only specifies how to differentiate the function with "
        "respect to explicit arguments. Pass the closed-over value as an argument and adapt the rule, or use "
        "closure_convert"
    )


def explicit(name: str, values: Sequence[Any], tangents: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """Return the arguments that rules are about, without the `count` closed-over values before them."""
    if any(t is not None for t in tangents[:count]):
        raise UnexpectedTracerError(closed_over(name))
    return list(values[count:]), list(tangents[count:])


class CheckedCall:
    """A function that has rules of its own, with the leaves of an error before its results.

    call: the function, as the parameter of an operation. `checked` says what is in the error, once it was called.
    Operands begin with `consts` constants, `skipped` values altogether that the user's rules do not take.
    """

    def __init__(self, checker: Any, name: str, call_jaxpr: Any, num_consts: int) -> None:
        self.name, self.consts = name, []
        if isinstance(call_jaxpr, ClosedJaxpr):
            self.checked = checker.of(call_jaxpr)
            self.call, self.consts = move_constants_to_inputs(self.checked.jaxpr), self.checked.jaxpr.consts
        else:
            self.call = call_jaxpr.batched(lambda *values: self._run(checker, call_jaxpr, values))
        self.skipped = len(self.consts) + num_consts

    def _run(self, checker: Any, call: Any, values: Sequence[Any]) -> list[Any]:
        self.checked, found = checker.run(call.function, values)
        return found

    def error(self, values: Sequence[Any]) -> list[Any]:
        """Return the leaves of the function's error."""
        if isinstance(self.call, ClosedJaxpr):
            found = evaluate(self.call.jaxpr, (), values)
        else:
            found = self.call.function(*values)
        return found[: self.checked.width]

    def jvp(self, rule: Any) -> Any:
        """Return the jvp rule of the function, given that of the function without errors."""

        def with_error(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            results, moved = rule.function(*explicit(self.name, primals, tangents, self.skipped))
            error = self.error(primals)
            return [*error, *results], [*[None] * len(error), *moved]

        return rule.batched(with_error)

    def fwd(self, rule: Any) -> Any:
        """Return the forward rule of the function, given that of the function without errors."""

        def with_error(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Any]:
            values, _ = explicit(self.name, primals, [n or None for n in nonzero], self.skipped)
            results, residuals, backward = rule.function(values, nonzero[self.skipped :])
            error = self.error(primals)

            def without_error(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
                return [None] * self.skipped + list(backward.function(residuals, cotangents[len(error) :]))

            return [*error, *results], residuals, backward.batched(without_error)

        return rule.batched(with_error)
