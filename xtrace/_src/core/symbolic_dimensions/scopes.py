"""Scopes of symbolic dimensions: the namespaces of variables, with the constraints on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.source import describe, user_position
from xtrace._src.core.symbolic_dimensions.bounds import find_bounds
from xtrace._src.core.symbolic_dimensions.dimensions import SymbolicDimension, build
from xtrace._src.core.symbolic_dimensions.terms import Term, divide_terms, get_terms, multiply_terms
from xtrace._src.core.symbolic_dimensions.texts import parse_constraint


class SymbolicScope:
    """The namespace of the variables of symbolic shapes, with constraints on them.

    The shapes of all arguments of a function must have one scope.

    Args:
        constraints_str: constraints such as ``"a >= 2 * b"``, ``"a <= 100"`` or ``"mod(a, 8) == 0"``.

    Raises:
        ValueError: `constraints_str` is no sequence of strings, one of them cannot be read, or no sizes satisfy all.

    Example:
        >>> scope = xtrace.export.SymbolicScope(["mod(n, 8) == 0"])
        >>> xtrace.export.symbolic_shape("n, mod(n, 8), 8 * floordiv(n, 8)", scope=scope)
        (n, 0, n)
    """

    __module__ = "xtrace.export"

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str) or not isinstance(constraints_str, Sequence):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings, such as ['a >= 2']. Got "
                f"{abbreviate(constraints_str)}"
            )
        self.constraints: list[str] = []
        # Replacements, from equalities: a term, its coefficient, and the size that replaces their product.
        self.rules: list[tuple[Term, int, Any]] = []
        # Polynomials that are at least 0.
        self.facts: list[dict[Term, int]] = []
        self.variable_bounds: dict[str, tuple[Any, Any]] = {}
        # The constraints for the checks in programs: two sizes, the sign between them, and the text.
        self.checks: list[tuple[Any, str, Any, str]] = []
        # The known bounds of dimensions, by their keys.
        self.bounds: dict[Any, tuple[Any, Any]] = {}
        self.place = describe(user_position())
        for constraint in constraints_str:
            self._add(constraint)

    def __str__(self) -> str:
        constraints = "".join([f"\n  {text}" for text in self.constraints])
        return f"{id(self)} created at {self.place}{' with constraints:' if constraints else ''}{constraints}"

    __repr__ = __str__

    def _add(self, constraint: object) -> None:
        if not isinstance(constraint, str):
            raise ValueError(f"SymbolicScope constraint must be a string: got {abbreviate(constraint)}")
        left, sign, right = parse_constraint(constraint, self)
        self.constraints.append(constraint)
        if not isinstance(left - right, SymbolicDimension):
            difference = left - right
            if not {"==": difference == 0, ">=": difference >= 0, "<=": difference <= 0}[sign]:
                raise self._unsatisfiable(constraint)
            return
        self.checks.append((left, sign, right, constraint))
        if sign == "==":
            self._add_equality(left, right)
        difference = right - left if sign == "<=" else left - right
        self._add_fact(difference, constraint)
        if sign == "==":
            self._add_fact(-difference, constraint)
        self.bounds.clear()
        for fact in self.facts:
            size = build(fact.items(), self)
            if find_bounds(size)[1] < 0:
                raise self._unsatisfiable(constraint)

    def _unsatisfiable(self, constraint: str) -> ValueError:
        others = [text for text in self.constraints if text != constraint]
        together = f" together with {', '.join(others)} and" if others else ", with"
        return ValueError(
            f"Unsatisfiable explicit constraint: {constraint}. No sizes satisfy it{together} variables that are 1 or "
            "more; leave it out or change it"
        )

    def _add_fact(self, size: Any, constraint: str) -> None:
        """Record that a size is at least 0."""
        fact = dict(get_terms(size))
        self.facts.append(fact)
        variables = [term for term in fact if term]
        if len(variables) != 1 or len(variables[0]) != 1:
            return
        ((factor, power),) = variables[0]
        if power != 1 or factor.operands:
            return
        low, high = self.variable_bounds.get(factor.name, (1, math.inf))
        coefficient, constant = fact[variables[0]], fact.get((), 0)
        if coefficient > 0:
            low = max(low, -(constant // coefficient))
        else:
            high = min(high, constant // -coefficient)
        if low > high:
            raise self._unsatisfiable(constraint)
        self.variable_bounds[factor.name] = low, high

    def _add_equality(self, left: Any, right: Any) -> None:
        """Record an equality as a rule that replaces a multiple of a term, if one side is such a multiple."""
        for size, other in ((left, right), (right, left)):
            terms = get_terms(size)
            if len(terms) != 1 or not terms[0][0]:
                continue
            ((term, coefficient),) = terms
            if any(divide_terms(t, term) is not None for t, _ in get_terms(other)):
                continue
            self._add_rule(term, coefficient, other)
            ((factor, power), *more) = term
            if factor.name == "mod" and power == 1 and not more and coefficient == 1:
                # y * floordiv(x, y) == x - mod(x, y).
                x, y = factor.operands
                quotient = x // y
                divisors = get_terms(y)
                if isinstance(quotient, SymbolicDimension) and len(divisors) == 1 and len(quotient.terms) == 1:
                    (whole, one), (divisor, multiple) = quotient.terms[0], divisors[0]
                    self._add_rule(multiply_terms(whole, divisor), one * multiple, x - other)
            return

    def _add_rule(self, term: Term, coefficient: int, size: Any) -> None:
        if coefficient < 0:
            coefficient, size = -coefficient, -size
        self.rules.append((term, coefficient, size))
        self.rules[:] = [(t, c, build(get_terms(s), self)) for t, c, s in self.rules]
        self.facts[:] = [dict(get_terms(build(fact.items(), self))) for fact in self.facts]
        self.bounds.clear()
