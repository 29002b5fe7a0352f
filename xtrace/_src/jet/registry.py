"""The rules of primitives for `jet`, in JAX's convention: derivatives of order k are divided by k!."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import Primitive, all_primitives
from xtrace._src.extension.rules import RuleRegistry
from xtrace._src.jet.rules import has_series
from xtrace._src.jet.series import Series, get_value
from xtrace._src.jet.trace import JetTrace
from xtrace._src.jet.transformation import jet, scale_terms, zero_series, zero_term
from xtrace._src.runtime.transfer import to_constant


def _from_jax(primitive: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def expand_operation(
        _trace: JetTrace, order: int, operands: Sequence[Series], **named: Any
    ) -> tuple[list[Any], list[list[Any]]]:
        values = [to_constant(x) if type(x) is Literal else x for x in map(get_value, operands)]
        given = [
            scale_terms([zeros(s.aval) if t is None else t for t in s.terms(order)], lambda k: 1 / math.factorial(k))
            for s in operands
        ]
        results, series = rule(tuple(values), given, **primitive.given_parameters(named))
        if not primitive.multiple_results:
            results, series = [results], [series]
        terms = []
        for own in series:
            listed = [zero_term] * order if own is zero_series else list(own)
            if len(listed) != order:
                raise ValueError(
                    f"jet: the rule of {primitive} returned {len(listed)} coefficients of a result, for operands with "
                    f"{order}: it must return the same number, or zero_series"
                )
            terms.append(scale_terms([None if t is zero_term else t for t in listed], math.factorial))
        return list(results), terms

    return expand_operation


def _to_jax(primitive: Primitive, _: Any) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], series: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        def operation(*operands: Any) -> Any:
            return primitive.bind(*operands, **parameters)

        return jet(operation, tuple(primals), tuple(series), factorial_scaled=False)

    return rule


class _SeriesRules(RuleRegistry):
    """The rules of `jet`: users' rules, and the rule of each primitive with a Taylor series."""

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        given = self._given.get(primitive)
        if given is not None:
            return given
        if primitive not in self:
            raise KeyError(primitive)
        return _to_jax(primitive, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter({p: None for p in all_primitives() if p in self} | dict.fromkeys(self._given))

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and (primitive in self._given or has_series(primitive))


jet_rules = _SeriesRules("jet_rules", "series", _from_jax, _to_jax)
