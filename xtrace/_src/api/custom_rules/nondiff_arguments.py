"""Arguments without derivatives (``nondiff_argnums``, ``nondiff_argnames``) of functions with custom rules."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.core.callables import POSITIONAL, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate


def find_positions(
    kind: str, name: str, signature: inspect.Signature | None, argnums: Any, argnames: Any
) -> tuple[int, ...]:
    """Return the positions of the arguments that `argnums` and `argnames` choose, sorted.

    kind and name: the decorator and the function, for errors. TypeError if `argnums` is no sequence of integers,
    ValueError for a name that is no parameter, IndexError for a position that no parameter has.
    """
    names = list(signature.parameters) if signature is not None else []
    try:
        numbers = tuple(map(operator.index, argnums))
    except TypeError:
        raise TypeError(
            f"{kind}: nondiff_argnums must be a sequence of positions, such as (0,), got {abbreviate(argnums)}"
        ) from None
    chosen = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    for parameter in chosen:
        if parameter not in names:
            raise ValueError(
                f"{kind}: nondiff_argnames has {abbreviate(parameter)}; the parameters of {name} are {', '.join(names)}"
            )
    kinds = [p.kind for p in signature.parameters.values()] if signature is not None else []
    count = sum(k in POSITIONAL for k in kinds)
    for n in numbers if signature is not None and inspect.Parameter.VAR_POSITIONAL not in kinds else ():
        if not -count <= n < count:
            raise IndexError(f"{kind}: nondiff_argnums has {n}, but {name} has {count} positional parameters")
    return tuple(sorted({*numbers, *map(names.index, chosen)}))


def list_positions(kind: str, name: str, positions: tuple[int, ...], count: int) -> list[int]:
    """Return `positions` in a call with `count` arguments, negative ones from the front; TypeError beyond the end."""
    for n in positions:
        if not -count <= n < count:
            raise TypeError(
                f"{kind}: {name} has nondiff_argnums={positions}, but was called with {count} positional arguments"
            )
    return [n % count for n in positions]


class Call(NamedTuple):
    """A call of a custom function: its fixed arguments, the number of all, and the structure of the others."""

    fixed: dict[int, Any]
    arity: int
    in_tree: Any

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` as a function of the arguments that are not fixed."""
        if not self.fixed:
            return function
        fixed, arity = self.fixed, self.arity

        @wraps(function)
        def call(*args: Any) -> Any:
            rest = iter(args)
            return function(*[fixed[i] if i in fixed else next(rest) for i in range(arity)])

        return call


class Same:
    """A hashable box, equal to boxes of the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
