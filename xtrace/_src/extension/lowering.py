"""Lowering rules of users, which build operations with jaxlib's MLIR objects, beside xtrace's text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.core import pytree
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops import lower_fun as lowered
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

# The platforms of each name that users write.
_PLATFORMS = {"gpu": ("cuda", "rocm")}


class ModuleContext(NamedTuple):
    """The module that a lowering rule writes into.

    Args:
        platforms: the platforms that the module is for.
        num_partitions: the number of devices that it is partitioned over.

    Example:
        >>> xtrace.interpreters.mlir.ModuleContext(("cpu",), 1).platforms
        ('cpu',)
    """

    platforms: tuple[str, ...]
    num_partitions: int


class LoweringRuleContext(NamedTuple):
    """The equation that a lowering rule writes.

    Args:
        module_context: the module.
        primitive: the operation.
        avals_in: the types of the operands.
        avals_out: the types of the results.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> context = mlir.LoweringRuleContext(mlir.ModuleContext(("cpu",), 1), lax.sin_p, (), ())
        >>> context.replace(primitive=lax.cos_p).primitive
        cos
    """

    module_context: ModuleContext
    primitive: Primitive | None
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return the context with some fields changed."""
        return self._replace(**changes)


class LoweredFunction:
    """A lowering rule that traces a function of arrays; called with a context and MLIR values, it is one of MLIR's."""

    def __init__(self, function: Callable[..., Any], multiple_results: bool) -> None:
        self.function, self.multiple_results = function, multiple_results

        def flat(*arrays: Any, **parameters: Any) -> Any:
            results = function(*arrays, **parameters)
            return pytree.tree_leaves(results) if multiple_results else results

        flat.__name__ = getattr(function, "__name__", "function")
        self.emit = lowered.lower_fun(flat)

    def __call__(self, ctx: LoweringRuleContext, *values: Any, **parameters: Any) -> Any:
        return modules().call_text(
            lambda builder, operands: self.emit(builder, *operands, **parameters), ctx, values
        )


def modules() -> Any:
    """Return the module of MLIR objects, which takes 30 ms to load."""
    return importlib.import_module("xtrace._src.extension.mlir_functions")


class LoweringRules:
    """The lowering rules of one primitive: one for any platform, and others for some."""

    def __init__(self, primitive: Primitive) -> None:
        self.primitive, self.by_platform = primitive, dict[str, Callable[..., Any]]()
        # It holds where no other does: that of a built-in primitive, or the error of one without a rule.
        self.own = primitive.emit

    def emit(self, builder: FunctionBuilder, *values: Value, **named: Any) -> Any:
        """Write the operation by the rule for the module's platform."""
        rule = self.by_platform.get(builder.platform, self.by_platform.get(""))
        if rule is None:
            return self.own(builder, *values, **named)
        parameters = self.primitive.given_parameters(named)
        if isinstance(rule, LoweredFunction):
            results = rule.emit(builder, *values, **parameters)
        else:
            results = modules().emit_by_rule(builder, self.primitive, rule, values, parameters)
        if self.primitive.multiple_results:
            return results if isinstance(results, list) else [results]
        return results[0] if isinstance(results, list) else results


_rules: dict[Primitive, LoweringRules] = {}


def register(primitive: Primitive, rule: Callable[..., Any], platform: str | None) -> None:
    """Register a lowering rule of a primitive, for one platform or for all."""
    rules = _rules.get(primitive)
    if rules is None:
        rules = _rules[primitive] = LoweringRules(primitive)
    for name in _PLATFORMS.get(platform or "", (platform or "",)):
        rules.by_platform[name] = rule
    primitive.set_rule("emit", rules.emit)
