"""Rules of users that split an equation into a known and an unknown part, in JAX's convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, are_cacheable
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import Table
from xtrace._src.extension.rules import RuleRegistry
from xtrace._src.ops.call_primitives import closed_call_p
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask, partial_evaluate_jaxpr

# The primitives whose parts are being bound; these parts are not split again.
_being_bound: ContextVar[tuple[Primitive, ...]] = ContextVar("primitives whose unknown part is bound", default=())


def _from_jax(primitive: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    # Flags and parameters of equations that the rule did not change: splitting them again would not terminate.
    left = Table()

    def partial_evaluate(unknown: tuple[bool, ...], **named: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
        packed = primitive.pack_parameters(primitive.given_parameters(named))
        if primitive in _being_bound.get() or (are_cacheable(packed) and (unknown, packed) in left):
            return None

        def compute(operands: Sequence[Any]) -> list[Any]:
            equation = equation_of(primitive, [aval_of(x) for x in operands], primitive.given_parameters(named))
            split = rule(_save_all, list(unknown), list(unknown), equation)
            if not isinstance(split, tuple) or len(split) != 5:
                raise TypeError(
                    f"the rule of {primitive} in partial_eval_jaxpr_custom_rules must return five values: the known "
                    "and the unknown equation, flags of unknown results and of the unknown equation's, and residuals"
                )
            values = dict(zip(equation.invars, operands, strict=True))
            rest = split[1]
            if rest is not None and rest.primitive is primitive and are_cacheable(rest.parameters):
                known = set(filter_by_mask(equation.invars, [not u for u in unknown]))
                known.update(split[0].outvars if split[0] is not None else ())
                flags = tuple([not isinstance(x, Literal) and x not in known for x in rest.invars])
                left.remember((flags, rest.parameters), True)
            token = _being_bound.set((*_being_bound.get(), primitive))
            try:
                for part in split[:2]:
                    if part is not None:
                        given = [x.val if isinstance(x, Literal) else values[x] for x in part.invars]
                        results = part.primitive.bind(*given, **part.params)
                        values.update(zip(part.outvars, _to_list(part.primitive, results), strict=True))
            finally:
                _being_bound.reset(token)
            return [values[v] for v in equation.outvars]

        return compute

    return partial_evaluate


def _save_all(*_: object, **__: object) -> bool:
    return True


def _to_list(primitive: Primitive, results: Any) -> list[Any]:
    return list(results) if primitive.multiple_results else [results]


def equation_of(primitive: Primitive, avals: Sequence[Any], parameters: dict[str, Any]) -> JaxprEqn:
    """Return an equation of a primitive on variables of the types `avals`."""
    packed = primitive.pack_parameters(parameters)
    types = _to_list(primitive, primitive.abstract_eval(tuple(avals), packed))
    effects = primitive.effects_of(packed, avals)
    return JaxprEqn([Var(a) for a in avals], [Var(a) for a in types], primitive, packed, effects, None)


def _to_jax(primitive: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    def split(
        saveable: Any, unks_in: Sequence[bool], inst_in: Sequence[bool], eqn: JaxprEqn
    ) -> tuple[JaxprEqn | None, JaxprEqn | None, list[bool], list[bool], list[Var]]:
        unknown = tuple(unks_in)
        if not any(unknown):
            flags = [False] * len(eqn.outvars)
            return eqn, None, flags, list(flags), []
        if rule(unknown, **eqn.params) is None:
            flags = [True] * len(eqn.outvars)
            held = [v for v, there in zip(eqn.invars, inst_in, strict=True) if not there and isinstance(v, Var)]
            return None, eqn, flags, list(flags), held
        inputs = [Var(v.aval) for v in eqn.invars]
        one = Jaxpr([], inputs, eqn.outvars, [eqn.replace(invars=inputs)], eqn.effects)
        parts = partial_evaluate_jaxpr(ClosedJaxpr(one, []), unknown)
        known_in = filter_by_mask(eqn.invars, [not u for u in unknown])
        saved = [Var(a) for a in parts.known.out_avals[parts.results :]]
        known_out = filter_by_mask(eqn.outvars, [not u for u in parts.unknown_results])
        first = _make_call(parts.known, known_in, [*known_out, *saved], eqn)
        residuals = parts.gather(known_in, first.outvars)
        pending = filter_by_mask(eqn.outvars, parts.unknown_results)
        second = _make_call(parts.unknown, [*residuals, *filter_by_mask(eqn.invars, unknown)], pending, eqn)
        there = {v for v, i in zip(eqn.invars, inst_in, strict=True) if i}
        held = [v for v in dict.fromkeys(residuals) if isinstance(v, Var) and v not in there]
        return first, second, list(parts.unknown_results), list(parts.unknown_results), held

    return split


def _make_call(closed: ClosedJaxpr, invars: Sequence[Any], outvars: Sequence[Any], around: JaxprEqn) -> JaxprEqn:
    return JaxprEqn(list(invars), list(outvars), closed_call_p, (closed,), closed.effects, around.source)


partial_eval_jaxpr_custom_rules = RuleRegistry(
    "partial_eval_jaxpr_custom_rules", "partial_evaluate", _from_jax, _to_jax
)
