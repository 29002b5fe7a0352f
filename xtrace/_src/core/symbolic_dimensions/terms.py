"""Terms of symbolic dimensions: products of variables and operations."""

from __future__ import annotations

from typing import Any


class Factor:
    """A variable, which has only a name, or an operation with its operands; equal factors have equal keys."""

    __slots__ = ("name", "operands", "key", "_hash")

    def __init__(self, name: str, operands: tuple[Any, ...] = ()) -> None:
        self.name, self.operands = name, operands
        keys = tuple([make_sort_key(x) for x in operands])
        self.key = (1 + sum(key[0] for key in keys), name, keys)
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Factor and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        # Hashes of names differ between processes, so an unpickled factor hashes anew.
        return Factor, (self.name, self.operands)

    def __str__(self) -> str:
        texts = [f"- {-x}" if isinstance(x, int) and x < 0 else str(x) for x in self.operands]
        return f"{self.name}({', '.join(texts)})" if texts else self.name


# The factors of a product in their order, each with its power; the term of the constant has none.
Term = tuple[tuple[Factor, int], ...]


def term_key(term: Term) -> tuple[Any, ...]:
    """Return the sort key of a term: about the length of its text, then its factors."""
    flat = tuple([factor.key for factor, power in term for _ in range(power)])
    return sum([1 + factor.key[0] * power for factor, power in term]), flat


def polynomial_key(terms: tuple[tuple[Term, int], ...]) -> tuple[Any, ...]:
    """Return the sort key of a sum of terms: about the length of its text, then its terms."""
    keys = tuple([(term_key(term), coefficient) for term, coefficient in terms])
    return sum([1 + abs(coefficient) * key[0] for key, coefficient in keys]), keys


def get_terms(size: Any) -> tuple[tuple[Term, int], ...]:
    """Return the terms of an integer or a symbolic dimension, with their coefficients."""
    terms: tuple[tuple[Term, int], ...] | None = getattr(size, "terms", None)
    if terms is not None:
        return terms
    return (((), int(size)),) if size else ()


def make_sort_key(size: Any) -> tuple[Any, ...]:
    """Return the sort key of an integer or a symbolic dimension."""
    key = getattr(size, "key", None)
    return key if key is not None else polynomial_key((((), int(size)),))


def multiply_terms(x: Term, y: Term) -> Term:
    """Return the product of two terms."""
    if not x or not y:
        return x or y
    powers = dict(x)
    for factor, power in y:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def divide_terms(x: Term, y: Term) -> Term | None:
    """Return the quotient of two terms; None if `y` does not divide `x`."""
    powers = dict(x)
    for factor, power in y:
        if powers.get(factor, 0) < power:
            return None
        powers[factor] -= power
    return tuple([(factor, power) for factor, power in powers.items() if power])
