"""Reverse mode in two functions, one for each direction, which can be compiled once and called apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.grad import argument_numbers, argument_positions, vjp
from xtrace._src.api.jit import jit
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.tracebacks import boundary


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``fwd(*args)``, which gives the result of `fun` and residuals, and ``bwd(residuals, cotangent)``.

    `bwd` gives the cotangents of the arguments `argnums`, a tuple where these are several. With `has_aux`, `fun`
    returns a pair, and `fwd` its second part as a third result. With `jitted` both are: unlike the function that `vjp`
    returns, `bwd` is then compiled once for many calls. TypeError if `fun` is not callable.
    """
    check_callable("fwd_and_bwd", fun)
    numbers, several = argument_numbers(argnums)

    @boundary
    def fwd(*args: Any) -> Any:
        chosen = argument_positions(fun, numbers, len(args))

        @functools.wraps(fun)
        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for n, value in zip(chosen, values, strict=True):
                full[n] = value
            return fun(*full)

        return vjp(of_chosen, *[args[n] for n in chosen], has_aux=has_aux)

    @boundary
    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents if several else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
