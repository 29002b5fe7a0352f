"""Reverse mode as two functions, forward and backward; each is compiled once and called separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.differentiation.argnums import find_positions, read_argnums, restrict
from xtrace._src.api.differentiation.grad import vjp
from xtrace._src.api.jit.jit import jit
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.tracebacks import boundary


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return two functions, for the value and for the pullback of `fun`; both can be jitted.

    Args:
        fun: a function of pytrees of arrays.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of a result and auxiliary data.
        jitted: whether both functions are compiled.

    Returns:
        A pair: `fwd` takes the arguments of `fun` and returns a pair of its result and the residuals, with `has_aux`
        also the auxiliary data; `bwd` takes the residuals and a cotangent, and returns the cotangents of the arguments.

    Raises:
        TypeError: `fun` is not callable.
        ValueError: a position in `argnums` is out of range.

    Example:
        >>> fwd, bwd = xtrace.fwd_and_bwd(jnp.sin, 0)
        >>> y, residuals = fwd(0.0)
        >>> bwd(residuals, 1.0)
        Array(1., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    numbers, several = read_argnums(argnums)

    @boundary
    def fwd(*args: object) -> Any:
        chosen = find_positions(fun, numbers, len(args))

        return vjp(restrict(fun, chosen, args, {}), *[args[n] for n in chosen], has_aux=has_aux)

    @boundary
    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents if several else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
