"""`custom_jvp`: functions with a custom rule for tangents."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from xtrace._late_imports import late_modules
from xtrace._src.api.custom_rules.custom_function import CustomFunction, Expected, check_pair
from xtrace._src.api.custom_rules.nondiff_arguments import Call, Same
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.tangents import is_differentiable, tangent_aval
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call
    from xtrace._src.ops.custom_rules.rule import Rule, make_zero, to_rule_operand
    from xtrace._src.ops.custom_rules.symbolic_zeros import SymbolicZero, symbolic_zero

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class custom_jvp(CustomFunction[_Arguments, _Result]):
    """Return a function with a derivative rule, which `defjvp` or `defjvps` sets.

    Outside transformations a call runs `fun` itself.

    Args:
        fun: a function of pytrees of arrays.
        nondiff_argnums: the positions of arguments without derivatives; they are the first arguments of the rule.
        nondiff_argnames: the names of such arguments.

    Raises:
        AttributeError: the function is called before a rule is set.
        TypeError: `fun` is not callable, or the result of a rule does not fit the function.

    Example:
        >>> f = xtrace.custom_jvp(jnp.sin)
        >>> rule = f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0]))
        >>> xtrace.grad(f)(0.0)
        Array(2., dtype=float32, weak_type=True)
    """

    kind = "custom_jvp"
    jvp: Callable[..., Any] | None = None
    symbolic_zeros = False

    @boundary
    def __init__(
        self, fun: Callable[_Arguments, _Result], nondiff_argnums: Shape = (), nondiff_argnames: Any = ()
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp, self.symbolic_zeros = None, False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule ``jvp(*nondiff, primals, tangents) -> (result, tangent)`` and return it.

        primals, tangents: tuples with an entry for each argument. A zero tangent is an array of zeros, or a
        `SymbolicZero` with `symbolic_zeros`; the tangent of an integer has dtype float0.
        """
        check_callable(jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument; ``rule(tangent, result, *args)`` returns its term of the tangent, None is 0."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``. Use defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise ValueError(
                    f"{self.name} was given {len(jvps)} rules by defjvps and {len(primals)} arguments; give a rule, or "
                    "None, for each argument"
                )
            result = cast(Any, self)(*primals)
            terms = [rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            return result, pytree.tree_map(_sum_terms, result, *terms)

        self.defjvp(jvp)

    def _check_defined(self) -> None:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.name} using defjvp. Set one: @{self.name}.defjvp"
            )

    def _fix_argument(self, position: int, value: object) -> Any:
        return pytree.tree_map(lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, value)

    def _apply(
        self, call: Call, call_jaxpr: Any, expected: Expected | None, operands: list[Any], num_consts: int,
        trees: list[Any],
    ) -> list[Any]:
        rule, symbolic_zeros = self.jvp, self.symbolic_zeros
        assert rule is not None
        name, nondiff = function_name(rule), list(call.fixed.values())

        def zero(value: Any) -> Any:
            return symbolic_zero(aval_of(value)) if symbolic_zeros else make_zero(aval_of(value))

        def flat(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            values = [to_rule_operand(x) for x in primals]
            moved = [zero(x) if t is None else to_rule_operand(t) for x, t in zip(values, tangents, strict=True)]
            args, directions = (pytree.tree_unflatten(call.in_tree, x) for x in (values, moved))
            outputs = rule(*nondiff, args, directions)
            result, tangent = check_pair(outputs, lambda: (
                f"Custom JVP rule {name} for function {self.name} must produce a pair (list or tuple of length two) "
                f"representing primal and tangent outputs, but got {outputs}."
            ))
            leaves = self._flatten_result("rule", name, result, trees)
            self._check_primal_out(name, "Custom JVP rule", result, leaves, trees, expected)
            return leaves, self._tangents_out(name, result, leaves, trees[0], tangent)

        key = None
        if expected is not None:
            same = tuple(map(Same, nondiff))
            key = (self, rule, symbolic_zeros, same, call.in_tree, expected.out_tree, tuple(expected.out_avals))
        return custom_jvp_call.bind_positional(
            operands, (self.name, call_jaxpr, Rule(flat, name, key), num_consts, symbolic_zeros)
        )

    def _tangents_out(
        self, rule: str, result: object, leaves: list[Any], tree: PyTreeDef, tangent: object
    ) -> list[Any]:
        moved, found_tree = pytree.tree_flatten(tangent)
        if found_tree != tree:
            raise TypeError(
                f"Custom JVP rule {rule} for function {self.name} must produce primal and tangent outputs with equal "
                f"container (pytree) structures, but got {tree} and {found_tree} respectively."
            )
        out: list[Any] = []
        for position, (x, t) in enumerate(zip(leaves, moved, strict=True)):
            aval = aval_of(x)
            if isinstance(t, SymbolicZero):
                out.append(None)
                continue
            expected = tangent_aval(aval)
            own = aval_of(t) if is_array_like(t) else None
            if own is None or own.shape != expected.shape or own.dtype != expected.dtype:
                path = key_paths.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"Custom JVP rule {rule} for function {self.name} must produce primal and tangent outputs with "
                    f"corresponding shapes and dtypes, but at output{path} got: primal {aval.str_short(True)} with "
                    f"tangent {type(t).__name__ if own is None else own.str_short(True)}, expecting tangent "
                    f"{expected.str_short(True)}"
                )
            out.append(t if is_differentiable(aval) else None)
        return out


def _sum_terms(result: Array, *terms: Array) -> Any:
    if not is_differentiable(aval_of(result)) or not terms:
        return make_zero(aval_of(result))
    return functools.reduce(operator.add, terms)
