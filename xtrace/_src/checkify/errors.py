"""The categories of errors, and the checks of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.source import Position, describe
from xtrace._src.core.pytrees import pytree


class JaxException(Exception):
    """A failed check as a value; its text is the message. `source`: its position in the program, if it has one."""

    source: Position | None = None


class FailedCheckError(JaxException):
    """A condition of ``check`` did not hold."""


class NaNError(JaxException):
    """An operation returned NaN."""


class OOBError(JaxException):
    """An index was out of bounds."""


class DivisionByZeroError(JaxException):
    """A divisor was zero."""


class BatchedError(JaxException):
    """The errors of a mapped function, by the indices along the mapped axes."""

    def __init__(self, error_mapping: Mapping[tuple[int, ...], JaxException]) -> None:
        super().__init__(error_mapping)
        self.error_mapping = dict(error_mapping)

    def __str__(self) -> str:
        return "\n".join(
            f"at mapped index {', '.join(map(str, index))}: {error}" for index, error in self.error_mapping.items()
        )


class JaxRuntimeError(ValueError):
    """The error of ``err.throw()``: a check failed while the program ran."""


# The values in messages are stored in slots: a type and a number. All checks share them.
Slot = tuple[ShapedArray, int]


class Site(NamedTuple):
    """A check in a program: the class of its errors, the format of its message, and its line.

    tree: the structure of the format's arguments, a tuple and a dictionary of trees of arrays. slots: the slots of the
    leaves.
    """

    category: type[JaxException]
    message: str
    tree: Any
    slots: tuple[Slot, ...]
    source: Position | None

    def report(self, leaves: Sequence[Any]) -> JaxException:
        """Return the error of this check; `leaves` are the values in its message."""
        positional, named = pytree.tree_unflatten(self.tree, leaves)
        try:
            text = self.message.format(*positional, **named)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            shown = ", ".join([*map(str, positional), *[f"{name}={value}" for name, value in named.items()]])
            text = f"{self.message} [with the arguments ({shown}), which the format does not fit: {error}]"
        if self.category is FailedCheckError:
            text += " (`check` failed)"
        exception = self.category(f"{text}{' On' if text.endswith('.') else ', on'} line {describe(self.source)}")
        exception.source = self.source
        return exception
