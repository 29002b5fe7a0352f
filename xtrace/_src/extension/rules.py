"""The rules of primitives in JAX's conventions: mappings that convert to and from xtrace's rules.

JAX's rules represent a zero tangent or cotangent by a `Zero`, which has a type; xtrace's use None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import Primitive, all_primitives
from xtrace._src.core.tangents import UndefinedPrimal, tangent_aval
from xtrace._src.runtime.transfer import to_constant
from xtrace._src.transforms.batch import MappedAxis

_Rule = Callable[..., Any]
_BatchingRule = Callable[..., tuple[Any, Any]]


def _is_zero(value: Any) -> bool:
    return value is None or type(value) is Zero or getattr(value, "dtype", None) == dtypes.float0


def _drop_zeros(values: Any, several: bool) -> Any:
    """Replace zero tangents by None."""
    if not several:
        return None if _is_zero(values) else values
    return [None if _is_zero(x) else x for x in values]


def _fill_zeros(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Replace None by a `Zero` of the tangent's type."""
    return [Zero(tangent_aval(a)) if x is None else x for x, a in zip(values, avals, strict=True)]


def _to_arrays(values: Sequence[Any]) -> list[Any]:
    """Convert literals to arrays, as users' rules expect."""
    return [to_constant(x) if type(x) is Literal else x for x in values]


def from_jax_jvp(primitive: Primitive, rule: _Rule) -> _Rule:
    """Convert a jvp rule from JAX's convention to xtrace's."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **named: Any) -> tuple[Any, Any]:
        # Tuples, because rules pass them to `vmap` with tuples as ``in_axes``.
        primals = tuple(_to_arrays(primals))
        given = tuple(_fill_zeros(_to_arrays(tangents), [aval_of(x) for x in primals]))
        results, moved = rule(primals, given, **primitive.given_parameters(named))
        several = primitive.multiple_results
        return (list(results) if several else results), _drop_zeros(moved, several)

    return jvp


def _to_jax_jvp(primitive: Primitive, rule: _Rule) -> _Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        results, moved = rule(list(primals), _drop_zeros(tangents, True), **_order_parameters(primitive, parameters))
        if primitive.multiple_results:
            return results, _fill_zeros(moved, [aval_of(x) for x in results])
        return results, Zero.from_primal_value(results) if moved is None else moved

    return jvp


def _from_jax_transpose(primitive: Primitive, rule: _Rule) -> _Rule:
    def transpose(cotangents: Any, *operands: Any, **named: Any) -> list[Any]:
        given = primitive.given_parameters(named)
        operands = tuple(_to_arrays(operands))
        if primitive.multiple_results:
            avals = primitive.infer_types(tuple(map(aval_of, operands)), primitive.pack_parameters(given))
            cotangents = _fill_zeros(_to_arrays(cotangents), avals)
        else:
            (cotangents,) = _to_arrays([cotangents])
        results = rule(cotangents, *operands, **given)
        return list(_drop_zeros(results, True)) if results is not None else [None] * len(operands)

    return transpose


def _to_jax_transpose(primitive: Primitive, rule: _Rule) -> _Rule:
    def transpose(cotangents: Any, *operands: Any, **parameters: Any) -> list[Any]:
        if not primitive.multiple_results and type(cotangents) is Zero:
            results: Sequence[Any] = [None] * len(operands)
        else:
            given = _drop_zeros(cotangents, primitive.multiple_results)
            results = rule(given, *operands, **_order_parameters(primitive, parameters))
        linear = [type(x) is UndefinedPrimal for x in operands]
        return [
            Zero(tangent_aval(x.aval)) if r is None and is_linear else r
            for r, x, is_linear in zip(results, operands, linear, strict=True)
        ]

    return transpose


def from_jax_axis_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    """Convert a batching rule of the mapped axis from JAX's convention to xtrace's."""

    def batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[Any], **named: Any) -> tuple[Any, Any]:
        results, where = rule(mapped, tuple(_to_arrays(operands)), tuple(axes), **primitive.given_parameters(named))
        return (list(results), list(where)) if primitive.multiple_results else (results, where)

    return batch


def _to_jax_axis_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    def batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        return rule(mapped, list(operands), list(axes), **_order_parameters(primitive, parameters))

    return batch


def _from_jax_named_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    """Convert a batching rule of the axis' size and name, and a trace's type, from JAX's convention to xtrace's."""

    def axis_rule(mapped: MappedAxis, *given: Any, **parameters: Any) -> tuple[Any, Any]:
        # The type is None in JAX as well.
        return rule(mapped.size, mapped.name, None, *given, **parameters)

    return from_jax_axis_batcher(primitive, axis_rule)


def _to_jax_named_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    axis_rule = _to_jax_axis_batcher(primitive, rule)

    def batch(size: int, name: Any, _trace_type: Any, operands: Any, axes: Any, **parameters: Any) -> tuple[Any, Any]:
        return axis_rule(MappedAxis(size, name), operands, axes, **parameters)

    return batch


def _from_jax_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    def axis_rule(_mapped: MappedAxis, *given: Any, **parameters: Any) -> tuple[Any, Any]:
        return rule(*given, **parameters)

    return from_jax_axis_batcher(primitive, axis_rule)


def _to_jax_batcher(primitive: Primitive, rule: _BatchingRule) -> _BatchingRule:
    axis_rule = _to_jax_axis_batcher(primitive, rule)

    def batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        size = next(aval_of(x).shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
        return axis_rule(MappedAxis(size), operands, axes, **parameters)

    return batch


def _order_parameters(primitive: Primitive, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call in the order of a built-in primitive's parameters."""
    if primitive.is_users:
        return parameters
    return {name: parameters.get(name) for name in primitive.parameters}


class RuleRegistry(MutableMapping[Primitive, Any]):
    """The rules of one kind for all primitives, in JAX's convention.

    It contains the rules of built-in primitives. A stored rule becomes the rule of its primitive.

    Args:
        name: the name of the registry.
        kind: the attribute of a primitive with the rule.
        from_jax: ``from_jax(primitive, rule)`` converts a rule from JAX's convention to xtrace's.
        to_jax: ``to_jax(primitive, rule)`` converts a rule from xtrace's convention to JAX's.

    Example:
        >>> from xtrace.interpreters import ad
        >>> lax.sin_p in ad.primitive_jvps
        True
    """

    def __init__(
        self, name: str, kind: str, from_jax: Callable[[Primitive, _Rule], _Rule],
        to_jax: Callable[[Primitive, _Rule], _Rule],
    ) -> None:
        self.name, self.kind, self._from_jax, self._to_jax = name, kind, from_jax, to_jax
        self._given: dict[Primitive, _Rule | None] = {}

    def __getitem__(self, primitive: Primitive) -> _Rule:
        given = self._given.get(primitive)
        if given is not None:
            return given
        rule = getattr(primitive, self.kind, None)
        if rule is None:
            raise KeyError(primitive)
        return self._to_jax(primitive, rule)

    def __setitem__(self, primitive: Primitive, rule: _Rule | None) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(
                f"{self.name}: a rule is registered for a primitive such as xtrace.extend.core.Primitive('name'), got "
                f"{abbreviate(primitive)}"
            )
        if rule is not None and not callable(rule):
            raise TypeError(f"{self.name}: the rule of {primitive} must be a function, got {abbreviate(rule)}")
        self._given[primitive] = rule
        # None states that there is no rule.
        primitive.set_rule(self.kind, None if rule is None else self._from_jax(primitive, rule))

    def __delitem__(self, primitive: Primitive) -> None:
        self[primitive]
        self._given.pop(primitive, None)
        primitive.set_rule(self.kind, None)

    def __iter__(self) -> Iterator[Primitive]:
        known = {p: None for p in all_primitives() if getattr(p, self.kind, None) is not None}
        return iter(known | dict.fromkeys(self._given))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and getattr(primitive, self.kind, None) is not None

    def __repr__(self) -> str:
        return f"<{self.name}: rules of {len(self)} primitives>"


primitive_jvps = RuleRegistry("primitive_jvps", "jvp", from_jax_jvp, _to_jax_jvp)
primitive_transposes = RuleRegistry("primitive_transposes", "transpose", _from_jax_transpose, _to_jax_transpose)
primitive_batchers = RuleRegistry("primitive_batchers", "batch", _from_jax_batcher, _to_jax_batcher)
axis_primitive_batchers = RuleRegistry(
    "axis_primitive_batchers", "batch", _from_jax_named_batcher, _to_jax_named_batcher
)
fancy_primitive_batchers = RuleRegistry(
    "fancy_primitive_batchers", "batch", from_jax_axis_batcher, _to_jax_axis_batcher
)
