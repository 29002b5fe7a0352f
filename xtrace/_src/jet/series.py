"""Taylor series as lists of derivatives, computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.tangents import tangent_aval

# For each value, flags of its terms from 1 on: False for a term that is known to be zero.
Patterns = tuple[tuple[bool, ...], ...]


class Derivation:
    """A differential equation under construction; until it is `closed`, its solution has only a first term.

    behind: the enclosing derivations that the solution needs, set with `closed`.
    """

    __slots__ = ("closed", "behind")

    def __init__(self) -> None:
        self.closed = False
        self.behind: frozenset[Derivation] = frozenset()


class Series:
    """A value, term 0, and its derivatives in a parameter; a zero term is None.

    The derivative of a series is the series without its first term. compute: returns term n from the earlier terms;
    None if all terms are known. pending: derivations that must be closed before the terms are computed.
    """

    __slots__ = ("aval", "known", "compute", "pending", "_derivative")

    def __init__(
        self, aval: ShapedArray, known: Sequence[Any], compute: Callable[[int], Any] | None = None,
        pending: frozenset[Derivation] = frozenset(),
    ) -> None:
        self.aval, self.known, self.compute, self.pending = aval, list(known), compute, pending
        self._derivative: Series | None = None

    def term(self, n: int) -> Any:
        """Return term n, None for zero."""
        known, compute = self.known, self.compute
        while len(known) <= n:
            if compute is None:
                return None
            known.append(compute(len(known)))
        return known[n]

    def terms(self, order: int) -> list[Any]:
        """Return the terms from 1 to `order`."""
        return [self.term(n) for n in range(1, order + 1)]

    def complete(self, order: int) -> None:
        """Compute all terms to `order`."""
        self.term(order)
        self.release()

    def release(self) -> None:
        """Drop `compute`, which has references to other series of a derivation."""
        self.compute, self.pending = None, frozenset()
        if self._derivative is not None:
            self._derivative.known = self.known[1:]
            self._derivative.release()

    def derivative(self) -> Series:
        """Return the derivative, the same object each time."""
        if self._derivative is None:
            compute = None if self.compute is None else self._next
            self._derivative = Series(tangent_aval(self.aval), self.known[1:], compute, self.pending)
        return self._derivative

    def _next(self, n: int) -> Any:
        return self.term(n + 1)

    @property
    def is_constant(self) -> bool:
        """Whether all terms after the first are known to be zero."""
        return self.compute is None and all(x is None for x in self.known[1:])


def get_value(series: Series) -> Any:
    """Return term 0 as an array, even if it is zero."""
    value = series.term(0)
    return zeros(series.aval) if value is None else value


def constant_series(value: Any) -> Series:
    """Return the series of a constant."""
    return Series(aval_of(value), [value])


def open_derivations(series: Iterable[Series]) -> frozenset[Derivation]:
    """Return the open derivations that must be closed before the terms of the series are computed."""
    still_open: set[Derivation] = set()
    seen: set[Derivation] = set()
    waiting = [d for s in series if s.compute is not None for d in s.pending]
    while waiting:
        derivation = waiting.pop()
        if derivation in seen:
            continue
        seen.add(derivation)
        if derivation.closed:
            waiting.extend(derivation.behind)
        else:
            still_open.add(derivation)
    return frozenset(still_open)


class Rows:
    """The terms of an operation's results: row n has term n of each result.

    compute: returns one or more rows from n on.
    """

    __slots__ = ("known", "_compute")

    def __init__(self, compute: Callable[[int], list[list[Any]]]) -> None:
        self.known: list[list[Any]] = []
        self._compute = compute

    def term(self, result: int, n: int) -> Any:
        """Return term n of a result."""
        while len(self.known) <= n:
            self.known += self._compute(len(self.known))
        return self.known[n][result]


def flatten_terms(values: Sequence[Any], terms: Sequence[Sequence[Any]]) -> list[Any]:
    """Return each value followed by its nonzero terms: the operands or results of a jaxpr of series."""
    return [x for value, own in zip(values, terms, strict=True) for x in (value, *[t for t in own if t is not None])]


def unflatten_terms(values: Iterable[Any], patterns: Patterns) -> tuple[list[Any], list[list[Any]]]:
    """Return the values and their terms; a term is None where its pattern has False."""
    rest = iter(values)
    pairs = [(next(rest), [next(rest) if p else None for p in pattern]) for pattern in patterns]
    return [x for x, _ in pairs], [terms for _, terms in pairs]


def find_patterns(terms: Sequence[Sequence[Any]]) -> Patterns:
    """Return for each value whether its terms are nonzero."""
    return tuple([tuple([t is not None for t in own]) for own in terms])


def fill_terms(terms: Sequence[Sequence[Any]], wanted: Patterns, avals: Sequence[ShapedArray]) -> list[list[Any]]:
    """Return the terms of values of the types `avals`, with zeros where `wanted` says so and a term is None."""
    return [
        [zeros(tangent_aval(a)) if t is None and p else t for t, p in zip(own, pattern, strict=True)]
        for own, pattern, a in zip(terms, wanted, avals, strict=True)
    ]
