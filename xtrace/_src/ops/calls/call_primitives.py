"""Call primitives, for programs that build or traverse jaxprs; xtrace's own calls are `jit` equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.calls.calls import close_jaxpr, make_jit_rules
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs, stage_to_jaxpr


class CallPrimitive(Primitive):
    """A primitive that calls a function; its equations hold the function's jaxpr as `call_jaxpr`.

    Derivatives and batched calls are `jit` equations with the name of the primitive.

    Args:
        name: the name of the primitive.

    Example:
        >>> from xtrace.extend import core
        >>> closed = xtrace.make_jaxpr(lambda x: x * 2)(1.0)
        >>> core.primitives.closed_call_p.bind(3.0, call_jaxpr=closed)
        [Array(6., dtype=float32, weak_type=True)]
    """

    call_primitive = True

    def __init__(self, name: str) -> None:
        super().__init__(name, ("call_jaxpr",), **make_jit_rules(name, "call_jaxpr", "Call a function."))
        self.__doc__ = CallPrimitive.__doc__

    def bind(self, *operands: Any, subfuns: Sequence[Any] = (), call_jaxpr: Any = None, **_: object) -> Any:  # type: ignore[override]
        """Call a function of flat operands, given as the only one of `subfuns` or as a jaxpr."""
        if call_jaxpr is None:
            if len(subfuns) != 1 or not hasattr(subfuns[0], "call_wrapped"):
                raise TypeError(
                    f"{self.name} calls one function: give it as subfuns=(xtrace.extend.linear_util.wrap_init(f),) or "
                    f"its jaxpr as call_jaxpr=, got subfuns={abbreviate(subfuns)}"
                )
            info = DebugInfo(self.name, "function", None, None)
            call_jaxpr = stage_to_jaxpr(subfuns[0].call_wrapped, [aval_of(x) for x in operands], info)
        closed = close_jaxpr(call_jaxpr)
        return self.bind_positional([*closed.consts, *operands], (move_constants_to_inputs(closed),))


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a wrapped function of flat values.

    Args:
        f: a function that `linear_util.wrap_init` made.
        args: its arguments.
        params: ignored.

    Returns:
        The results of `f`.

    Raises:
        AttributeError: `f` is no wrapped function.

    Example:
        >>> from xtrace.extend import core, linear_util
        >>> core.call_impl(linear_util.wrap_init(lambda x: [x + 1], debug_info=None), 1)
        [2]
    """
    return f.call_wrapped(*args)


call_p = CallPrimitive("call")
closed_call_p = CallPrimitive("closed_call")
