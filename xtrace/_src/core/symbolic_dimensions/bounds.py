"""Lower and upper bounds of symbolic dimensions.

The first bound is that of interval arithmetic. A better one may follow from *facts*, polynomials that are at least 0:
the constraints of the scope, and properties of operations, such as ``max(a, b) - a``. Subtracting a multiple of a fact
can remove a term that has no bound. A maximum of two sizes equals one of them, so the smaller bound of the two cases is
also a bound. Bounds are never wrong; they may be infinite where a better search would find a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from xtrace._src.core.symbolic_dimensions.terms import Factor, Term, divide_terms, get_terms, multiply_terms

_Polynomial = dict[Term, int]
_Interval = tuple[Any, Any]

# The number of facts that are applied one after the other, and of polynomials that are visited for one bound.
_DEPTH = 4
_SEARCHED = 400
# The number of nested maxima and minima that are replaced by their operands.
_SPLITS = 3
_INFINITY = math.inf


def find_bounds(size: Any) -> _Interval:
    """Return a lower and an upper bound of a size; infinite if none is known."""
    if not hasattr(size, "terms"):
        return size, size
    scope = size.scope
    known = scope.bounds.get(size.key)
    if known is None:
        polynomial = dict(size.terms)
        # What the search itself takes where a fact of the scope is about an operation on this size.
        lows, highs = zip(*[_times(_bound_term(scope, t), c) for t, c in polynomial.items()], strict=True)
        scope.bounds[size.key] = sum(lows), sum(highs)
        lower = _Search(scope, polynomial).lower_bound()
        upper = -_Search(scope, {t: -c for t, c in polynomial.items()}).lower_bound()
        known = scope.bounds[size.key] = lower, upper
    return known  # type: ignore[no-any-return]


class _Search:
    """The search for a lower bound of one polynomial."""

    def __init__(self, scope: Any, polynomial: _Polynomial, splits: int = _SPLITS, *known: _Polynomial) -> None:
        self.scope, self.polynomial, self.left, self.splits, self.known = scope, polynomial, _SEARCHED, splits, known
        self.facts = [*_find_operation_facts(polynomial), *known, *scope.facts]

    def lower_bound(self) -> Any:
        return max(self._search(self.polynomial, _DEPTH), self._bound_cases())

    def _bound_cases(self) -> Any:
        """Return the smaller bound of two cases: the first maximum or minimum equals one operand, or the other."""
        factors = [f for term in self.polynomial for f, _ in term if f.operands and f.name in ("max", "min")]
        if not factors or not self.splits:
            return -_INFINITY
        sign = 1 if factors[0].name == "max" else -1
        lows = []
        for one, other in (factors[0].operands, factors[0].operands[::-1]):
            case = _replace(self.polynomial, factors[0], one)
            search = _Search(self.scope, case, self.splits - 1, *self.known, _sum((one, sign), (other, -sign)))
            lows.append(search.lower_bound())
        return min(lows)

    def _search(self, polynomial: _Polynomial, depth: int) -> Any:
        self.left -= 1
        lows = {term: _times(_bound_term(self.scope, term), c)[0] for term, c in polynomial.items()}
        best = sum(lows.values())
        if depth == 0 or self.left <= 0:
            return best
        unbounded = [term for term, low in lows.items() if low == -_INFINITY]
        # One fact may improve a finite bound. An infinite one needs a fact for each term without a bound.
        depth = depth - 1 if unbounded else 0
        for term in unbounded or [term for term in polynomial if term]:
            for fact in (*self.facts, *_find_product_facts(self.scope, polynomial, term, self.facts)):
                share = fact.get(term, 0)
                if share * polynomial[term] <= 0:
                    continue
                # scale * p = rest + weight * fact, and the fact is at least 0.
                scale, weight = abs(share), abs(polynomial[term])
                rest = {t: scale * c for t, c in polynomial.items()}
                for t, c in fact.items():
                    rest[t] = rest.get(t, 0) - weight * c
                low = self._search({t: c for t, c in rest.items() if c}, depth)
                if low != -_INFINITY:
                    best = max(best, -(-low // scale))
        return best


def _find_product_facts(
    scope: Any, polynomial: _Polynomial, term: Term, facts: Iterable[_Polynomial]
) -> Iterator[_Polynomial]:
    """Yield facts with `term`: products of facts and terms that are at least 0."""
    for other, _ in list(polynomial.items()):
        for larger, smaller in ((other, term), (term, other)):
            rest = divide_terms(larger, smaller) if smaller and larger != smaller else None
            if rest is None or _bound_term(scope, smaller)[0] < 0:
                continue
            low, high = _bound_term(scope, rest)
            if low > 0 and low != _INFINITY:
                yield {larger: 1, smaller: -low}
            if high != _INFINITY:
                yield {larger: -1, smaller: high}
    for fact in facts:
        for each in fact:
            rest = divide_terms(term, each) if each and each != term else None
            if rest and _bound_term(scope, rest)[0] >= 0:
                yield {multiply_terms(t, rest): c for t, c in fact.items()}


def _find_operation_facts(polynomial: _Polynomial) -> Iterator[_Polynomial]:
    """Yield the facts that follow from the meaning of the operations in `polynomial`."""
    factors: dict[Factor, None] = {}
    pending = [factor for term in polynomial for factor, _ in term]
    while pending:
        factor = pending.pop()
        if factor.operands and factor not in factors:
            factors[factor] = None
            pending += [f for x in factor.operands for term, _ in get_terms(x) for f, _ in term]
    for factor in factors:
        x, y = factor.operands
        own: _Polynomial = {((factor, 1),): 1}
        if factor.name in ("max", "min"):
            sign = 1 if factor.name == "max" else -1
            for operand in (x, y):
                yield _sum((own, sign), (operand, -sign))
            continue
        least = find_bounds(y)[0]
        if least < 1:
            continue
        is_natural = find_bounds(x)[0] >= 0
        if factor.name == "mod":
            yield _sum((y, 1), (1, -1), (own, -1))
        else:
            multiple = {multiply_terms(((factor, 1),), term): c for term, c in get_terms(y)}
            yield _sum((x, 1), (multiple, -1))
            yield _sum((multiple, 1), (x, -1), (y, 1), (1, -1))
        if is_natural:
            yield _sum((x, 1), (own, -1))


def _sum(*parts: tuple[Any, int]) -> _Polynomial:
    total: _Polynomial = {}
    for part, factor in parts:
        for term, coefficient in part.items() if isinstance(part, dict) else get_terms(part):
            total[term] = total.get(term, 0) + factor * coefficient
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def _replace(polynomial: _Polynomial, factor: Factor, operand: Any) -> _Polynomial:
    """Return the polynomial with an operand in the place of a factor."""
    parts: list[tuple[Any, int]] = []
    for term, coefficient in polynomial.items():
        product = {tuple([pair for pair in term if pair[0] != factor]): 1}
        for _ in range(dict(term).get(factor, 0)):
            product = _sum(*[({multiply_terms(t, u): c for t, c in product.items()}, d) for u, d in get_terms(operand)])
        parts.append((product, coefficient))
    return _sum(*parts)


# Interval arithmetic


def _bound_term(scope: Any, term: Term) -> _Interval:
    result: _Interval = (1, 1)
    for factor, power in term:
        interval = _bound_factor(scope, factor)
        for _ in range(power):
            result = _product(result, interval)
    return result


def _times(interval: _Interval, factor: int) -> _Interval:
    return _product(interval, (factor, factor))


def _product(x: _Interval, y: _Interval) -> _Interval:
    # An infinite bound stands for large numbers, so 0 times it is 0.
    corners = [a * b if a and b else 0 for a in x for b in y]
    return min(corners), max(corners)


def _bound_factor(scope: Any, factor: Factor) -> _Interval:
    if not factor.operands:
        return scope.variable_bounds.get(factor.name, (1, _INFINITY))  # type: ignore[no-any-return]
    (low, high), (least, most) = [find_bounds(x) for x in factor.operands]
    if factor.name == "max":
        return max(low, least), max(high, most)
    if factor.name == "min":
        return min(low, least), min(high, most)
    if factor.name == "mod":
        if least >= 1:
            return 0, min(most - 1, high) if low >= 0 else most - 1
        return (least + 1, 0) if most <= -1 else (-_INFINITY, _INFINITY)
    if least >= 1:
        return _floor(low, most if low >= 0 else least), _floor(high, least if high >= 0 else most)
    if most <= -1:
        return _floor(-high, -least if high <= 0 else -most), _floor(-low, -most if low <= 0 else -least)
    return -_INFINITY, _INFINITY


def _floor(x: Any, y: Any) -> Any:
    """Return the quotient of a bound and a positive bound, rounded down."""
    if x in (_INFINITY, -_INFINITY):
        return x
    if y == _INFINITY:
        return 0 if x >= 0 else -1
    return x // y
