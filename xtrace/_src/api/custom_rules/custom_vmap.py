"""Functions with custom batching: `custom_vmap` with a rule, and `sequential_vmap` with a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from xtrace._src.api.custom_rules.custom_function import CustomFunction
from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.core.typed_numbers import with_dtype
from xtrace._src.ops.control_flow.bodies import stage_body
from xtrace._src.ops.control_flow.mapping import map as map_over
from xtrace._src.ops.custom_rules.custom_vmap import custom_vmap_call
from xtrace._src.ops.custom_rules.rule import Rule, to_user_operand
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.xla.pytree_registry import PyTreeDef

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class custom_vmap(CustomFunction[_Arguments, _Result]):
    """Return a function with a batching rule, which `def_vmap` sets.

    Under vmap the rule computes the result; reverse mode differentiates the function itself.

    Args:
        fun: a function of pytrees of arrays.

    Raises:
        AttributeError: the function is called before a rule is set.
        TypeError: `fun` is not callable.
        ValueError: the result of the rule does not fit.

    Example:
        >>> f = xtrace.custom_batching.custom_vmap(jnp.sin)
        >>> rule = f.def_vmap(lambda axis_size, in_batched, x: (x + axis_size, True))
        >>> xtrace.vmap(f)(jnp.zeros(2))
        Array([2., 2.], dtype=float32)
    """

    kind = "custom_vmap"

    @boundary
    def __init__(self, fun: Callable[_Arguments, _Result]) -> None:
        super().__init__(fun, (), ())
        self.vmap_rule: Callable[..., Any] | None = None

    @boundary
    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule ``vmap_rule(axis_size, in_batched, *args) -> (result, out_batched)`` and return it.

        in_batched: a list with a tree of booleans for each argument, in its structure: whether a leaf has the mapped
        axis, which is axis 0. out_batched is the same for the result.
        """
        check_callable(vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule = self.vmap_rule
        if rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.name} using def_vmap. "
                f"Set one: @{self.name}.def_vmap"
            )
        call, leaves = self._split(self._positional(args, kwargs))
        body = stage_body(self.kind, self.fun, call.in_tree, [aval_of(x) for x in leaves])
        if current_trace.get() is base_trace:
            results = evaluate(body.jaxpr.jaxpr, [], [*body.consts, *leaves])
            return pytree.tree_unflatten(body.out_tree, map(with_dtype, results))
        count, out_tree, name = len(body.consts), body.out_tree, function_name(rule)
        # Captured arrays are the same for all indices, even if an outer operation gave them the mapped axis; tracers
        # are not.
        traced = [isinstance(x, Tracer) for x in body.consts]

        def flat(size: int, batched: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            if any(b and t for b, t in zip(batched, traced)):
                raise ValueError(
                    f"custom_vmap: {self.name} closes over a value that is mapped; its rule {name} is about explicit "
                    "arguments only. Pass the value as an argument"
                )
            in_batched = list(pytree.tree_unflatten(call.in_tree, batched[count:]))
            result = rule(size, in_batched, *pytree.tree_unflatten(call.in_tree, map(to_user_operand, values[count:])))
            return self._check_result(name, result, out_tree)

        key = self, rule, call.in_tree, out_tree, count
        results = custom_vmap_call.bind_positional(
            [*body.consts, *leaves], (self.name, body.jaxpr, Rule(flat, name, key))
        )
        return pytree.tree_unflatten(out_tree, results)

    def _check_result(self, rule: str, returned: object, out_tree: PyTreeDef) -> tuple[list[Any], list[bool]]:
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise ValueError(
                f"the custom vmap rule {rule} of {self.name} must return a pair (result, which parts of it are "
                f"batched); it returned {abbreviate(returned)}"
            )
        result, out_batched = returned
        trees: list[Any] = []
        leaves = self._flatten_result("rule", rule, result, trees)
        flags, flag_tree = pytree.tree_flatten(out_batched)
        if flag_tree != trees[0]:
            raise ValueError(
                f"structure of output value and output batching specification returned by custom vmap rule ({rule}) of "
                f"{self.name} do not match.\nOutput values: {trees[0]}\nBatching spec: {flag_tree}"
            )
        if trees[0] != out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({rule}) does not match that of original "
                f"custom-vmapped function {self.name}.\nOriginal output: {out_tree}\nRule output: {trees[0]}"
            )
        return leaves, [bool(b) for b in flags]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap[..., Any]:
    """Return a function that vmap calls in a loop, once for each index.

    Args:
        f: a function of pytrees of arrays.

    Returns:
        A function with the arguments and results of `f`.

    Raises:
        TypeError: `f` is not callable.

    Example:
        >>> xtrace.vmap(xtrace.custom_batching.sequential_vmap(jnp.sin))(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
    """
    check_callable(f)
    mapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: list[Any], *args: object) -> tuple[Any, Any]:
        leaves, tree = pytree.tree_flatten(args)
        flags = pytree.tree_leaves(in_batched)
        batched = [x for x, b in zip(leaves, flags, strict=True) if b]

        def one(values: list[Any]) -> Any:
            rest = iter(values)
            full = [next(rest) if b else x for x, b in zip(leaves, flags, strict=True)]
            return mapped(*pytree.tree_unflatten(tree, full))

        result = map_over(one, batched)
        return result, pytree.tree_map(lambda _: True, result)

    mapped.def_vmap(rule)
    return mapped
