"""`closure_convert`: a closure with its captured values as arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.control_flow.bodies import stage_body
from xtrace._src.ops.custom_rules.rule import to_user_operand
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask


def closure_convert(fun: Callable[..., Any], *example_args: object) -> tuple[Callable[..., Any], list[Any]]:
    """Convert a function that closes over traced values to a function that takes them as arguments.

    Args:
        fun: a function of pytrees of arrays.
        example_args: arguments with the structure and types of later calls.

    Returns:
        A pair of a function and a list of the captured floating values. The function takes the arguments of `fun`
        followed by these values.

    Raises:
        TypeError: `fun` is not callable, or a leaf of an argument is no array.

    Example:
        >>> g, values = xtrace.closure_convert(lambda x: 2.0 * x, jnp.ones(2))
        >>> g(jnp.ones(2), *values)
        Array([2., 2.], dtype=float32)
    """
    check_callable(fun)
    leaves, in_tree = pytree.tree_flatten(example_args)
    body = stage_body("closure_convert", fun, in_tree, [aval_of(x) for x in leaves])
    hoisted = [isinstance(c, Tracer) and is_differentiable(aval_of(c)) for c in body.consts]

    def converted_fun(*args: object) -> Any:
        count = sum(hoisted)
        given_args, values = args[: len(args) - count], iter(args[len(args) - count :])
        leaves, tree = pytree.tree_flatten(given_args)
        if tree != in_tree:
            raise TypeError(
                f"The inputs to the closure produced by closure_convert must have the same structure as the example "
                f"arguments of {function_name(fun)}, {in_tree}, followed by {count} values; got {tree}"
            )
        consts = [next(values) if h else c for h, c in zip(hoisted, body.consts, strict=True)]
        results = evaluate(body.jaxpr.jaxpr, [], [*consts, *leaves])
        return pytree.tree_unflatten(body.out_tree, map(to_user_operand, results))

    return converted_fun, filter_by_mask(body.consts, hoisted)
