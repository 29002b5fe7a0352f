"""`linear_call`: linear functions with a custom transpose."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Var
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.control_flow.bodies import stage_body
from xtrace._src.ops.custom_rules.linear_call import linear_call as linear_call_primitive
from xtrace._src.ops.custom_rules.rule import Rule


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: object, linear_args: object
) -> Any:
    """Call a function that is linear in its second argument, with a custom transpose.

    Args:
        fun: a function of two pytrees, linear in the second one.
        fun_transpose: a function of `residual_args` and a cotangent; it returns a tree in the structure of
            `linear_args`.
        residual_args: the first argument.
        linear_args: the second argument.

    Returns:
        ``fun(residual_args, linear_args)``.

    Raises:
        TypeError: the result of `fun_transpose` has another structure or type.

    Example:
        >>> divide = lambda r, x: x / r
        >>> xtrace.custom_derivatives.linear_call(divide, divide, 2.0, 6.0)
        Array(3., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    check_callable(fun_transpose)
    residuals, residual_tree = pytree.tree_flatten(residual_args)
    values, linear_tree = pytree.tree_flatten(linear_args)
    avals, residual_avals = [aval_of(x) for x in values], [aval_of(x) for x in residuals]
    body = stage_body("linear_call", fun, _make_pair(residual_tree, linear_tree), [*residual_avals, *avals])
    consts, out_avals, tree = body.consts, body.out_avals, _make_pair(residual_tree, body.out_tree)
    const_avals, name = [aval_of(c) for c in consts], function_name(fun)

    @functools.cache
    def transposed() -> tuple[ClosedJaxpr, list[Any]]:
        back = stage_body("linear_call", fun_transpose, tree, [*residual_avals, *out_avals])
        if back.out_tree != linear_tree or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(back.out_avals, avals, strict=True)
        ):
            raise TypeError(
                f"linear_call: {function_name(fun_transpose)} must return what has the structure and types of the "
                f"linear arguments of {name}, {linear_tree} of {[a.str_short(True) for a in avals]}; it "
                f"returned {back.out_tree} of {[a.str_short(True) for a in back.out_avals]}"
            )
        jaxpr, count = back.jaxpr.jaxpr, len(back.consts)
        unused = [Var(a) for a in const_avals]
        invars = [*jaxpr.invars[:count], *unused, *jaxpr.invars[count:]]
        return ClosedJaxpr(jaxpr.replace(invars=invars), []), back.consts

    results = linear_call_primitive.bind_positional(
        [*consts, *residuals, *values],
        (body.jaxpr, Rule(transposed, function_name(fun_transpose)), len(consts) + len(residuals)),
    )
    return pytree.tree_unflatten(body.out_tree, results)


def _make_pair(first: Any, second: Any) -> Any:
    return pytree.treedef_tuple((first, second))
