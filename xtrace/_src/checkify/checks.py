"""Errors as values, and the operation of a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.checkify.errors import (
    BatchedError,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    Site,
    Slot,
)
from xtrace._src.checkify.leaves import NO_ERROR, NUMBER, assign_slots
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.excerpts import excerpt
from xtrace._src.core.diagnostics.positions import describe, user_position
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED, Literal
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.pytrees import pytree, pytree_registration
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_concrete
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


class Error:
    """The first error of a checked function: a pytree of arrays that programs return.

    Args:
        code: the number of the first failed check, from 1 on; 0 if all held, None if there is no check.
        payload: an array for each of `slots`; a mapped function has its mapped axes at the front.
        sites: the checks.
        slots: the types of the values in messages.

    Example:
        >>> error, _ = xtrace.experimental.checkify.checkify(jnp.sin)(1.0)
        >>> error.get()
    """

    __slots__ = ("code", "payload", "sites", "slots")

    def __init__(self, code: Any, payload: Sequence[Any], sites: tuple[Site, ...], slots: tuple[Slot, ...]) -> None:
        self.code, self.payload, self.sites, self.slots = code, tuple(payload), sites, slots

    @boundary
    def get(self) -> str | None:
        """Return the message of the first error; None without an error. A mapped function has one line per index."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    @boundary
    def get_exception(self) -> JaxException | None:
        """Return the first error as an exception; None without an error. A mapped function has a BatchedError.

        Raises:
            TracerBoolConversionError: under jit, where the error is not known.
        """
        if self.code is None:
            return None
        for value in (self.code, *self.payload):
            if isinstance(value, Tracer):
                raise explain.boolean_conversion(value)
        codes = np.asarray(self.code)
        if not codes.ndim:
            return self._report(int(codes), ()) if codes else None
        failed = [tuple(map(int, index)) for index in np.argwhere(codes)]
        return BatchedError({i: self._report(int(codes[i]), i) for i in failed}) if failed else None

    def _report(self, code: int, index: tuple[int, ...]) -> JaxException:
        site = self.sites[code - 1]
        values = dict(zip(self.slots, self.payload, strict=True))
        return site.report([to_concrete(np.asarray(values[s])[index]) for s in site.slots])

    @boundary
    def throw(self) -> None:
        """Raise JaxRuntimeError if there is an error; inside another checked function, add it to that function's."""
        check_error(self)

    def __str__(self) -> str:
        known = self.code is None or isinstance(self.code, (ConcreteArray, np.ndarray, np.generic))
        return f"Error({self.get() if known else self.code})"

    __repr__ = __str__


def _flatten(error: Error) -> tuple[tuple[Any, ...], Any]:
    children = () if error.code is None else (error.code, *error.payload)
    return children, (error.sites, error.slots)


def _unflatten(static: Any, children: Sequence[Any]) -> Error:
    children = tuple(children)
    return Error(children[0] if children else None, children[1:], *static)


pytree_registration.register_pytree_node(Error, _flatten, _unflatten)

init_error = Error(None, (), (), ())
CHECK = Effect("check")


def _abstract(code: ShapedArray, *_: ShapedArray, sites: tuple[Site, ...], **__: Any) -> list[ShapedArray]:
    """A check has no results; the checked function around it has its error."""
    return []


def _emit(
    builder: FunctionBuilder, *_: Value, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool
) -> list[Value]:
    if debug:
        return []
    site = sites[0]
    raise ValueError(
        f"Cannot compile a checkify.check which was not functionalized: {abbreviate(site.message)} on line "
        f"{describe(site.source)}. A compiled program (jit, scan, while_loop, cond …) cannot raise; checkify makes the "
        "error a result of it. Write `err, out = xtrace.jit(checkify.checkify(f))(x)` and then `err.throw()` outside, "
        "or use checkify.debug_check, which does nothing in functions that are not checkified."
    )


def _evaluate(code: Array, *payload: Array, sites: tuple[Site, ...], slots: tuple[Slot, ...], debug: bool) -> list[Any]:
    exception = None if debug else Error(code, payload, sites, slots).get_exception()
    if exception is not None:
        error = JaxRuntimeError(str(exception))
        if exception.source is not None:
            error.add_note(f"what failed:\n{excerpt(exception.source)}")
        raise error
    return []


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[Any]]:
    operands = [mapped.place(x, i) for x, i in zip(operands, axes, strict=True)]
    return check_p.bind_positional(operands, tuple(parameters.values())), []


def _jvp(primals: Sequence[Any], _: Sequence[Any], **parameters: object) -> tuple[list[Any], list[Any]]:
    return check_p.bind_positional(primals, tuple(parameters.values())), []


check_p = Primitive(
    "check", ("sites", "slots", "debug"), abstract=_abstract, emit=_emit, evaluate=_evaluate,
    effects=lambda **_: frozenset({CHECK}), jvp=_jvp, transpose=no_rule("a check has no results"), batch=_batch,
    multiple_results=True, unprinted={"sites": NEVER_PRINTED, "slots": NEVER_PRINTED},
)


def check_error(error: Error) -> None:
    """Raise the error of a checked function; inside another checked function, add it to that function's.

    Args:
        error: an `Error`.

    Raises:
        JaxRuntimeError: a check failed.
        TypeError: `error` is no `Error`.
        ValueError: the call is in a compiled function without `checkify`.

    Example:
        >>> checkify = xtrace.experimental.checkify
        >>> checkify.check_error(checkify.checkify(jnp.sin)(1.0)[0])
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error: error must be an Error, the first result of a checked function; got {type(error)}"
        )
    if error.code is not None:
        check_p.bind_positional((error.code, *error.payload), (error.sites, error.slots, False))


def state_check(pred: Any, message: str, arguments: Any, debug: bool) -> None:
    """Bind the check that `pred`, a boolean scalar, holds; `message` is a format of `arguments`."""
    leaves, tree = pytree.tree_flatten(arguments)
    payload = assign_slots(leaves)
    site = Site(FailedCheckError, message, tree, tuple(payload), user_position(2))
    code = select_n(pred, Literal(1, NUMBER), NO_ERROR)
    check_p.bind_positional((code, *payload.values()), ((site,), tuple(payload), debug))
