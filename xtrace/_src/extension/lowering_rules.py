"""Lowering rules of users: they build operations with jaxlib's MLIR objects, while xtrace's own rules write text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effects
from xtrace._src.core.primitive import Parameters, Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.extension.lowering_contexts import LoweringRuleContext, lowerable_effects
from xtrace._src.ops.calls import lower_fun as lowered
from xtrace._src.stablehlo.builder import FunctionBuilder, Value, symbol

with late_modules(globals()):
    from xtrace._src.extension import mlir_functions

# The platforms of a name for several.
_PLATFORMS = {"gpu": ("cuda", "rocm")}


class TextRule:
    """A lowering rule that writes text; called with a context and MLIR values, it builds MLIR operations."""

    def __init__(self, emit: Callable[..., Any], name: str) -> None:
        self.emit, self.name = emit, name

    def __call__(self, ctx: LoweringRuleContext | FunctionBuilder, *values: Any, **parameters: Any) -> Any:
        if isinstance(ctx, FunctionBuilder):
            return self.emit(ctx, *values, **parameters)
        return mlir_functions.call_text(
            lambda builder, operands: self.emit(builder, *operands, **parameters), ctx, self.name, values
        )


class LoweredFunction(TextRule):
    """A lowering rule that traces a function of arrays."""

    def __init__(self, function: Callable[..., Any], multiple_results: bool) -> None:
        self.function, self.multiple_results = function, multiple_results

        def flat(*arrays: Any, **parameters: Any) -> Any:
            results = function(*arrays, **parameters)
            return pytree.tree_leaves(results) if multiple_results else results

        flat.__name__ = getattr(function, "__name__", "function")
        super().__init__(lowered.lower_fun(flat), symbol(flat.__name__))


class LoweringRules:
    """The lowering rules of one primitive: a default, and rules for single platforms."""

    def __init__(self, primitive: Primitive) -> None:
        self.primitive, self.by_platform = primitive, dict[str, Callable[..., Any]]()
        # The rule of a built-in primitive, or the error of a primitive without a rule.
        self.fallback = primitive.emit

    def emit(self, builder: FunctionBuilder, *values: Value, **named: Any) -> Any:
        """Write the operation by the rule for the module's platform."""
        rule = self.by_platform.get(builder.platform, self.by_platform.get(""))
        if rule is None:
            return self.fallback(builder, *values, **named)
        parameters = self.primitive.given_parameters(named)
        effects = self._check_effects(values, parameters)
        if isinstance(rule, TextRule):
            results = rule.emit(builder, *values, **parameters)
        else:
            results = mlir_functions.emit_by_rule(builder, self.primitive, rule, values, parameters, effects)
        if self.primitive.multiple_results:
            return results if isinstance(results, list) else [results]
        return results[0] if isinstance(results, list) else results

    def _check_effects(self, values: Sequence[Value], parameters: dict[str, Any]) -> Effects:
        """Return the effects of the operation; ValueError if one is not in `lowerable_effects`."""
        if not self.primitive.is_users or self.primitive.effects is None:
            return NO_EFFECTS
        effects = self.primitive.find_effects((Parameters(parameters),), [v.aval for v in values])
        unknown = [e for e in effects if not lowerable_effects.contains(e)]
        if unknown:
            raise ValueError(
                f"Cannot lower jaxpr with effects: {{{', '.join(map(str, unknown))}}} of {self.primitive}; allow them "
                f"with xtrace.interpreters.mlir.lowerable_effects.add_type({type(unknown[0]).__name__})"
            )
        return effects


_rules: dict[Primitive, LoweringRules] = {}


def register(primitive: Primitive, rule: Callable[..., Any], platform: str | None) -> None:
    """Register a lowering rule of a primitive, for one platform or for all."""
    rules = _rules.get(primitive)
    if rules is None:
        rules = _rules[primitive] = LoweringRules(primitive)
    for name in _PLATFORMS.get(platform or "", (platform or "",)):
        rules.by_platform[name] = rule
    primitive.set_rule("emit", rules.emit)
