"""Symbolic dimensions: sizes that are integer polynomials in unknown sizes, which are at least 1.

A dimension is a sum of terms with integer coefficients. A term is a product of powers of factors; a factor is a
variable, or one of the operations floordiv, mod, max and min. Terms are sorted, and the rules of the scope are applied,
so two dimensions are equal if their terms are. A constant is an int.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_rules, scalar_aval
from xtrace._src.core.diagnostics.source import describe, user_position
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.symbolic_dimensions.bounds import find_bounds
from xtrace._src.core.symbolic_dimensions.terms import (
    Factor,
    Term,
    divide_terms,
    get_terms,
    multiply_terms,
    polynomial_key,
    term_key,
)
from xtrace._src.core.trace import current_trace

# How often the rules of a scope are applied to their own results.
_ROUNDS = 8


class SymbolicDimension:
    """An unknown size: a polynomial with integer coefficients in at least one variable.

    `terms` are pairs of a term and its coefficient, the largest first. `scope` is the scope of its variables.
    """

    __slots__ = ("terms", "scope", "key", "_hash")

    is_symbolic_dimension = True
    # NumPy's arrays and scalars leave operators to this class.
    __array_ufunc__ = None

    def __init__(self, terms: tuple[tuple[Term, int], ...], scope: Any) -> None:
        self.terms, self.scope = terms, scope
        self.key = polynomial_key(terms)
        self._hash = hash((self.key, id(scope)))

    def to_array(self) -> Array:
        """Return the value as an array of the program being traced; NotImplementedError outside of an export."""
        array: Array | None = current_trace.get().constant(self, self.aval)
        if array is None:
            raise NotImplementedError(
                f"the symbolic dimension {self} has a value only in functions that are traced for export, where it is "
                "part of the program. Use it in a function that is given to export(jit(f))"
            )
        return array

    # Properties

    @property
    def aval(self) -> ShapedArray:
        """The type of its value in programs."""
        return scalar_aval(int)

    def variables(self) -> set[str]:
        """Return the names of its variables."""
        return {factor.name for factor in self.factors() if not factor.operands}

    def factors(self) -> set[Factor]:
        """Return its factors, and those inside of operations."""
        inside: set[Factor] = set()
        for term, _ in self.terms:
            for factor, _ in term:
                inside.add(factor)
                for x in factor.operands:
                    if isinstance(x, SymbolicDimension):
                        inside |= x.factors()
        return inside

    def __str__(self) -> str:
        texts = []
        for i, (term, coefficient) in enumerate(self.terms):
            product = "*".join([f"{factor}^{power}" if power > 1 else str(factor) for factor, power in term])
            size = abs(coefficient)
            text = str(size) if not product else product if size == 1 else f"{size}*{product}"
            sign = "- " if coefficient < 0 else "+ " if i else ""
            texts.append(sign + text)
        return " ".join(texts)

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        if specification == "d":  # a size in an MLIR type, where unknown sizes are question marks
            return "?"
        return format(str(self), specification)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> Any:
        if type(other) is SymbolicDimension:
            return self is other or (self.scope is other.scope and self.key == other.key)
        return _apply_to_value("__eq__", self, other) if isinstance(other, (Array, np.ndarray)) else False

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else _apply_to_value("__ne__", self, other)

    def __reduce__(self) -> Any:
        return SymbolicDimension, (self.terms, self.scope)

    def __deepcopy__(self, memo: object) -> SymbolicDimension:
        # A copy of the scope would be another scope.
        return self

    # Conversions to numbers

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant, at {describe(user_position())}: "
            "its value is known only when the exported program is called. Operations of xtrace.numpy and xtrace.lax "
            "take it as a size; for a loop over it use lax.fori_loop or lax.scan"
        )

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        if not is_size(other):
            return _apply_to_value("__add__", self, other)
        return combine([(self, 1), (other, 1)], self.scope)

    def __sub__(self, other: Any) -> Any:
        if not is_size(other):
            return _apply_to_value("__sub__", self, other)
        return combine([(self, 1), (other, -1)], self.scope)

    def __rsub__(self, other: Any) -> Any:
        if not is_size(other):
            return _apply_to_value("__rsub__", self, other)
        return combine([(self, -1), (other, 1)], self.scope)

    def __neg__(self) -> Any:
        return combine([(self, -1)], self.scope)

    def __pos__(self) -> SymbolicDimension:
        return self

    def __mul__(self, other: Any) -> Any:
        if not is_size(other):
            return _apply_to_value("__mul__", self, other)
        if not isinstance(other, SymbolicDimension):
            return combine([(self, int(other))], self.scope)
        check_scopes(self.scope, other)
        products = itertools.product(self.terms, other.terms)
        return build([(multiply_terms(t, s), c * d) for (t, c), (s, d) in products], self.scope)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, power: Any, modulo: object = None) -> Any:
        if not is_integer(power):
            return _apply_to_value("__pow__", self, power)
        if power < 0:
            raise ValueError(
                f"Symbolic dimension cannot be raised to negative powers: '{self}' ** {power}; make it an array first, "
                "with xtrace.numpy.asarray"
            )
        result: Any = 1
        for _ in range(int(power)):
            result = result * self
        return result

    def __rpow__(self, other: Any) -> Any:
        return _apply_to_value("__rpow__", self, other)

    def __floordiv__(self, other: Any) -> Any:
        return divide(self, other)[0] if is_size(other) else _apply_to_value("__floordiv__", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return divide(other, self)[0] if is_size(other) else _apply_to_value("__rfloordiv__", self, other)

    def __mod__(self, other: Any) -> Any:
        return divide(self, other)[1] if is_size(other) else _apply_to_value("__mod__", self, other)

    def __rmod__(self, other: Any) -> Any:
        return divide(other, self)[1] if is_size(other) else _apply_to_value("__rmod__", self, other)

    def __divmod__(self, other: Any) -> Any:
        return divide(self, other) if is_size(other) else _apply_to_value("__divmod__", self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return divide(other, self) if is_size(other) else _apply_to_value("__rdivmod__", self, other)

    def __truediv__(self, other: Any) -> Any:
        return _apply_to_value("__truediv__", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply_to_value("__rtruediv__", self, other)

    def max(self, other: Any) -> Any:
        """Return the larger of this and another size."""
        return choose("max", self, other)

    def min(self, other: Any) -> Any:
        """Return the smaller of this and another size."""
        return choose("min", self, other)

    # Comparison

    def __ge__(self, other: Any) -> Any:
        return _compare(self, other, ">=", "__ge__")

    def __gt__(self, other: Any) -> Any:
        return _compare(self, other, ">", "__gt__")

    def __le__(self, other: Any) -> Any:
        return _compare(self, other, "<=", "__le__")

    def __lt__(self, other: Any) -> Any:
        return _compare(self, other, "<", "__lt__")

    # Values

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Return the value of the polynomial for the given values of the variables: integers, or other sizes."""
        total: Any = 0
        for term, coefficient in self.terms:
            product: Any = coefficient
            for factor, power in term:
                value = _evaluate_factor(factor, values)
                for _ in range(power):
                    product = product * value
            total = total + product
        return total


def _evaluate_factor(factor: Factor, values: Mapping[str, Any]) -> Any:
    if not factor.operands:
        return values[factor.name]
    x, y = [evaluate(operand, values) for operand in factor.operands]
    if factor.name in ("max", "min"):
        return choose(factor.name, x, y)
    quotient, remainder = divide(x, y)
    return quotient if factor.name == "floordiv" else remainder


def evaluate(size: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a size for the given values of the variables."""
    return size.evaluate(values) if isinstance(size, SymbolicDimension) else size


def list_variables(size: Any) -> set[str]:
    """Return the names of the variables in a size."""
    return size.variables() if isinstance(size, SymbolicDimension) else set()


def is_integer(x: Any) -> bool:
    """Whether `x` is an integer of Python or NumPy."""
    return isinstance(x, (int, np.integer))


def is_size(x: Any) -> bool:
    """Whether `x` is an integer or a symbolic dimension."""
    return isinstance(x, SymbolicDimension) or is_integer(x)


def check_scopes(scope: Any, other: Any) -> None:
    """Raise ValueError for a dimension of another scope."""
    if isinstance(other, SymbolicDimension) and other.scope is not scope:
        raise ValueError(
            f"Invalid mixing of symbolic scopes: '{other}' is of the scope {other.scope}, and the other dimension of "
            f"the scope {scope}. Give symbolic_shape the same scope=, for all shapes of a function"
        )


def combine(parts: Iterable[tuple[Any, int]], scope: Any) -> Any:
    """Return the sum of sizes, each times an integer."""
    pairs = []
    for size, factor in parts:
        check_scopes(scope, size)
        pairs += [(term, coefficient * factor) for term, coefficient in get_terms(size)]
    return build(pairs, scope)


def build(pairs: Iterable[tuple[Term, int]], scope: Any) -> Any:
    """Return the sum of terms with coefficients, in normal form; an int if it is constant."""
    coefficients: dict[Term, int] = {}
    for term, coefficient in pairs:
        coefficients[term] = coefficients.get(term, 0) + coefficient
    # The replacement of a term may contain a term of another rule, times other factors.
    for _ in range(_ROUNDS if scope.rules else 0):
        if sum([_apply_rule(rule, coefficients) for rule in scope.rules]) == 0:
            break
    kept = {term: coefficient for term, coefficient in coefficients.items() if coefficient}
    if not kept or (len(kept) == 1 and () in kept):
        return kept.get((), 0)
    ordered = sorted(kept.items(), key=lambda item: term_key(item[0]), reverse=True)
    return SymbolicDimension(tuple(ordered), scope)


def _apply_rule(rule: tuple[Term, int, Any], coefficients: dict[Term, int]) -> bool:
    """Replace terms by a rule; return whether a term was replaced."""
    rule_term, rule_factor, replacement = rule
    applied = False
    for term in list(coefficients):
        rest = divide_terms(term, rule_term) if term and coefficients[term] else None
        if rest is None or coefficients[term] % rule_factor:
            continue
        applied = True
        multiple = coefficients.pop(term) // rule_factor
        for other, coefficient in get_terms(replacement):
            product = multiply_terms(rest, other)
            coefficients[product] = coefficients.get(product, 0) + coefficient * multiple
    return applied


def variable(name: str, scope: Any) -> Any:
    """Return a variable of a scope, or the size by which the rules of the scope replace it."""
    return build([(((Factor(name), 1),), 1)], scope)


def _operation(name: str, x: Any, y: Any) -> Any:
    scope = x.scope if isinstance(x, SymbolicDimension) else y.scope
    check_scopes(scope, x)
    check_scopes(scope, y)
    return build([(((Factor(name, (x, y)), 1),), 1)], scope)


def choose(name: str, x: Any, y: Any) -> Any:
    """Return the larger ("max") or the smaller ("min") of two sizes."""
    if not isinstance(x, SymbolicDimension) and not isinstance(y, SymbolicDimension):
        return max(x, y) if name == "max" else min(x, y)
    low, high = find_bounds(x - y)
    if low >= 0:
        return x if name == "max" else y
    if high <= 0:
        return y if name == "max" else x
    return _operation(name, x, y)


def divide(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the quotient and the remainder of two sizes, like Python's divmod."""
    if not isinstance(x, SymbolicDimension) and not isinstance(y, SymbolicDimension):
        return divmod(int(x), int(y))
    if not isinstance(y, SymbolicDimension) and y == 0:
        raise ZeroDivisionError(f"division of the symbolic dimension '{x}' by zero")
    quotient: Any = 0
    rest: Any = x
    (leading, factor), *_ = get_terms(y)
    # Polynomial division, while leading terms divide.
    while isinstance(rest, SymbolicDimension):
        term, coefficient = rest.terms[0]
        scope = rest.scope
        if coefficient % factor:
            term, coefficient = _as_multiple(term, coefficient, factor, scope)
        part = divide_terms(term, leading)
        if part is None or coefficient % factor:
            break
        piece = build([(part, coefficient // factor)], scope)
        quotient = quotient + piece
        rest = rest - piece * y
        if len(get_terms(rest)) > 1 + len(get_terms(x)) + len(get_terms(y)):
            break
    if not isinstance(rest, SymbolicDimension):
        if not isinstance(y, SymbolicDimension):
            more, rest = divmod(rest, y)
            return quotient + more, rest
        if rest == 0 or (rest > 0 and find_bounds(y - rest)[0] >= 1):
            return quotient, rest
    return _operation("floordiv", x, y), _operation("mod", x, y)


def _as_multiple(term: Term, coefficient: int, factor: int, scope: Any) -> tuple[Term, int]:
    """Return a term and its coefficient as a multiple of `factor`, by a rule applied backwards, if there is one."""
    for rule_term, multiple, replacement in scope.rules:
        replaced = get_terms(replacement)
        rest = divide_terms(term, replaced[0][0]) if len(replaced) == 1 and replaced[0][1] == 1 else None
        if rest is not None and (coefficient * multiple) % factor == 0:
            return multiply_terms(rest, rule_term), coefficient * multiple
    return term, coefficient


def inconclusive_error(question: str, about: Any, constraint: str) -> InconclusiveDimensionOperation:
    """Return the error for a `question` about the size `about` that has no answer for all values of its variables."""
    return InconclusiveDimensionOperation(
        f"Symbolic dimension comparison is inconclusive: {question} depends on the values of "
        f"{', '.join(sorted(list_variables(about)))}, at {describe(user_position())}. If it always holds, say so where "
        f'the shapes are made: symbolic_shape(..., constraints=["{constraint}"])'
    )


def _compare(x: SymbolicDimension, y: Any, sign: str, method: str) -> Any:
    if not is_size(y):
        return _apply_to_value(method, x, y)
    check_scopes(x.scope, y)
    low, high = find_bounds(x - y)
    true, false = {
        ">=": (low >= 0, high < 0), ">": (low > 0, high <= 0), "<=": (high <= 0, low > 0), "<": (high < 0, low >= 0),
    }[sign]
    if true or false:
        return true
    need = {">=": f"{x} >= {y}", ">": f"{x} >= {y + 1}", "<=": f"{x} <= {y}", "<": f"{x} <= {y - 1}"}[sign]
    raise inconclusive_error(f"'{x}' {sign} '{y}'", x - y, need)


def _apply_to_value(method: str, x: SymbolicDimension, other: Any) -> Any:
    """Apply an operator to the array of a dimension in the traced program, and another value."""
    if isinstance(other, Array) or not isinstance(other, (int, float, complex, np.generic, np.ndarray, type(x))):
        # The operator of the other class, such as an array's, applies.
        return NotImplemented
    return getattr(x.to_array(), method)(other)


def _own_aval(x: SymbolicDimension) -> ShapedArray:
    return x.aval


aval_rules[SymbolicDimension] = _own_aval
