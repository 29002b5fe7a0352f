"""Rules of users, in JAX's convention, that split an equation into a known and an unknown part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, are_cacheable
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import Table
from xtrace._src.extension.rules import RuleRegistry
from xtrace._src.ops.calls.call_primitives import closed_call_p
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask, partial_evaluate_jaxpr

# The primitives of the parts that are being bound; these parts are not split again.
_binding_parts: ContextVar[tuple[Primitive, ...]] = ContextVar("binding the parts of primitives", default=())


def _from_jax(primitive: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    # The flags and parameters of equations that the rule returned unchanged; splitting them again would not terminate.
    unchanged = Table()

    def partial_evaluate(unknown: tuple[bool, ...], **named: Any) -> Callable[[Sequence[Any]], list[Any]] | None:
        packed = primitive.pack_parameters(primitive.given_parameters(named))
        if primitive in _binding_parts.get() or (are_cacheable(packed) and (unknown, packed) in unchanged):
            return None

        def compute(operands: Sequence[Any]) -> list[Any]:
            equation = make_equation(primitive, [aval_of(x) for x in operands], primitive.given_parameters(named))
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
                unchanged.remember((flags, rest.parameters), True)
            outer = _binding_parts.get()
            try:
                _binding_parts.set((*outer, primitive))
                for part in split[:2]:
                    if part is not None:
                        given = [x.val if isinstance(x, Literal) else values[x] for x in part.invars]
                        results = part.primitive.bind(*given, **part.params)
                        values.update(zip(part.outvars, _to_list(part.primitive, results), strict=True))
            finally:
                _binding_parts.set(outer)
            return [values[v] for v in equation.outvars]

        return compute

    return partial_evaluate


def _save_all(*_: object, **__: object) -> bool:
    return True


def _to_list(primitive: Primitive, results: Any) -> list[Any]:
    return list(results) if primitive.multiple_results else [results]


def make_equation(primitive: Primitive, avals: Sequence[Any], parameters: dict[str, Any]) -> JaxprEqn:
    """Return an equation of a primitive on new variables of the types `avals`."""
    packed = primitive.pack_parameters(parameters)
    types = _to_list(primitive, primitive.infer_types(tuple(avals), packed))
    effects = primitive.find_effects(packed, avals)
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
            residuals = [
                v for v, present in zip(eqn.invars, inst_in, strict=True) if not present and isinstance(v, Var)
            ]
            return None, eqn, flags, list(flags), residuals
        inputs = [Var(v.aval) for v in eqn.invars]
        one = Jaxpr([], inputs, eqn.outvars, [eqn.replace(invars=inputs)], eqn.effects)
        parts = partial_evaluate_jaxpr(ClosedJaxpr(one, []), unknown)
        known_in = filter_by_mask(eqn.invars, [not u for u in unknown])
        saved = [Var(a) for a in parts.known.out_avals[parts.results :]]
        known_out = filter_by_mask(eqn.outvars, [not u for u in parts.unknown_results])
        known = _make_call(parts.known, known_in, [*known_out, *saved], eqn)
        read = parts.gather(known_in, known.outvars)
        pending = filter_by_mask(eqn.outvars, parts.unknown_results)
        staged = _make_call(parts.unknown, [*read, *filter_by_mask(eqn.invars, unknown)], pending, eqn)
        present = {v for v, flag in zip(eqn.invars, inst_in, strict=True) if flag}
        residuals = [v for v in dict.fromkeys(read) if isinstance(v, Var) and v not in present]
        return known, staged, list(parts.unknown_results), list(parts.unknown_results), residuals

    return split


def _make_call(closed: ClosedJaxpr, invars: Sequence[Any], outvars: Sequence[Any], origin: JaxprEqn) -> JaxprEqn:
    return JaxprEqn(list(invars), list(outvars), closed_call_p, (closed,), closed.effects, origin.source)


partial_eval_jaxpr_custom_rules = RuleRegistry(
    "partial_eval_jaxpr_custom_rules", "partial_evaluate", _from_jax, _to_jax
)
