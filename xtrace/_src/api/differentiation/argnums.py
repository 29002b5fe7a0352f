"""The positions of the arguments with respect to which a function is differentiated, `argnums`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xtrace._src.core.callables import function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate


def read_argnums(argnums: Any) -> tuple[tuple[int, ...], bool]:
    """Return `argnums` as a tuple and whether it is a sequence; TypeError for other than ints, ValueError if empty."""
    several = not hasattr(argnums, "__index__") or bool(getattr(argnums, "ndim", 0))
    try:
        numbers = tuple([operator.index(n) for n in (argnums if several else (argnums,))])
    except TypeError:
        raise TypeError(
            f"differentiation: argnums must be an int or a sequence of ints, got {abbreviate(argnums)}. The arguments "
            "of the function are given to what is returned, as in grad(f)(x)"
        ) from None
    if not numbers:
        raise ValueError("differentiation: argnums names no argument; give the number of one, such as argnums=0")
    return numbers, several


def find_positions(
    fun: Callable[..., Any], numbers: Sequence[int], count: int, missing: type[Exception] = ValueError
) -> list[int]:
    """Return the positions `numbers` as nonnegative numbers, given the `count` of positional arguments.

    Raises `missing` for a position past the last argument, and ValueError for one before the first or for a repeated
    one.
    """
    for n in numbers:
        if not -count <= n < count:
            raise (missing if n >= 0 else ValueError)(
                f"differentiating with respect to argnums={n} requires at least {n + 1 if n >= 0 else -n} positional "
                f"arguments to be passed to {function_name(fun)}, but got only {count}"
            )
    chosen = [n % count for n in numbers]
    if len(set(chosen)) < len(chosen):
        raise ValueError(
            f"differentiation: argnums={tuple(numbers)} names an argument of {function_name(fun)} twice; "
            "give each number once"
        )
    return chosen


def restrict(
    fun: Callable[..., Any], chosen: Sequence[int], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return `fun` as a function of the arguments at the positions `chosen`."""

    @wraps(fun)
    def restricted(*values: object) -> Any:
        full = list(args)
        for n, value in zip(chosen, values, strict=True):
            full[n] = value
        return fun(*full, **kwargs)

    return restricted
