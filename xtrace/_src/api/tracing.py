"""Tracing a Python function of pytrees into a jaxpr; `make_jaxpr`, `eval_shape` and `eval_jaxpr`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.api.jit import static_arguments
from xtrace._src.api.jit.argument_paths import defer_argument_paths, list_argument_paths
from xtrace._src.api.jit.static_arguments import Selection, Static
from xtrace._src.core import monitoring
from xtrace._src.core.avals import (
    AbstractRef,
    AbstractToken,
    ShapedArray,
    ShapeDtypeStruct,
    aval_of,
    high_types,
    int_aval,
    is_array_like,
)
from xtrace._src.core.callables import check_callable, function_name, make_debug_info, wraps
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo, Jaxpr, Literal, walk_equations
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.memory_layout import Format
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.core.trace import use_named_axes
from xtrace._src.ops.references.binding import bind_with_references, check_results, unwrap, wrap
from xtrace._src.transforms import dead_code
from xtrace._src.transforms.discharge import discharge_jaxpr, has_references
from xtrace._src.transforms.stage import stage
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.core.high_types.high_values import lower_result
    from xtrace._src.key_reuse import check as key_reuse
    from xtrace._src.ops.calls import calls
    from xtrace._src.transforms.evaluate import evaluate
    from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs


_MAY_FAIL = frozenset(("pure_callback", "io_callback", "debug_callback", "debug_print", "ffi_call"))


class TracedFunction:
    """The result of tracing a function for one signature: its jaxpr and constants, and the structure of its result.

    `seconds` is the time of tracing.
    """

    __slots__ = ("jaxpr", "consts", "in_tree", "out_tree", "debug_info", "seconds", "takes_references", "closed")

    def __init__(
        self, jaxpr: Jaxpr, consts: list[Any], in_tree: PyTreeDef, out_tree: Any, debug_info: DebugInfo
    ) -> None:
        self.jaxpr, self.consts, self.in_tree, self.out_tree = jaxpr, consts, in_tree, out_tree
        self.debug_info = debug_info
        self.seconds = 0.0
        # The jaxpr with its constants.
        self.closed = ClosedJaxpr(jaxpr, consts)
        # Whether references are among its inputs and constants.
        self.takes_references = AbstractRef in map(type, [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)])

    def is_reference(self, position: int) -> bool:
        """Whether the input at a position is a reference."""
        return type(self.jaxpr.invars[position].aval) is AbstractRef

    def locate_references(self) -> list[int]:
        """Return the positions of the references among the constants and inputs."""
        variables = [*self.jaxpr.constvars, *self.jaxpr.invars]
        return [i for i, v in enumerate(variables) if type(v.aval) is AbstractRef]

    def donated_arrays(self, flags: Sequence[bool]) -> list[int]:
        """Return the positions of the donated arguments of `make_array_function`: of the leaves, those in `flags`.

        The arrays of references are donated, too: the program writes to them in place.
        """
        count = len(self.consts)
        chosen = [count + i for i, flag in enumerate(flags) if flag and not self.is_reference(i)]
        return [*self.locate_references(), *chosen] if self.donates_references() else chosen

    def discharge(self) -> TracedFunction:
        """Return the trace without references; none may be an input or a constant."""
        if not has_references(self.jaxpr):
            return self
        pure = discharge_jaxpr(self.closed)
        return TracedFunction(pure.jaxpr, pure.consts, self.in_tree, self.out_tree, self.debug_info)

    def donates_references(self) -> bool:
        """Whether a call may write in place: a program that fails while it runs would leave references without arrays.

        Programs that call Python functions, or code of users, may fail.
        """
        return not any(e.primitive.name in _MAY_FAIL for e in walk_equations(self.jaxpr.eqns))

    def make_array_function(self, name: str) -> tuple[Callable[..., list[Any]], int]:
        """Return the trace as a function of arrays, and the number of its constants, which are the first arguments.

        The function takes the arrays in references, and returns their final arrays after the results.
        """
        pure = discharge_jaxpr(move_constants_to_inputs(self.closed))

        def function(*arrays: Any) -> list[Any]:
            return evaluate(pure.jaxpr, pure.consts, arrays)

        function.__name__ = function.__qualname__ = name
        return function, len(self.consts)

    def is_unfused(self, fusion_level: int) -> bool:
        """Whether it has at most one operation, and this is not compiled on its own at this `Trace.fusion_level`."""
        equations = self.jaxpr.eqns
        return not equations or (len(equations) == 1 and fusion_level < equations[0].primitive.fusion_level)

    @property
    def out_info(self) -> Any:
        """The result as a tree of ShapeDtypeStructs."""
        return self.describe_results(())

    def describe_results(self, places: Sequence[Sharding | Format | None]) -> Any:
        """Return the result as a tree of ShapeDtypeStructs; `places` are their shardings or formats, or empty."""
        leaves = list(map(make_struct, self.jaxpr.out_avals))
        for i, place in enumerate(places):
            if place is not None:
                leaves[i] = leaves[i].update(sharding=place)
        return pytree.tree_unflatten(self.out_tree, leaves)

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The results' types."""
        return self.jaxpr.out_avals


def make_struct(aval: ShapedArray) -> Any:
    """Return an aval as a ShapeDtypeStruct; the aval of a token is returned unchanged."""
    if type(aval) is AbstractToken:
        return aval
    manual = aval.manual_axis_type if aval.varying or any(aval.manual_sums) else None
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, sharding=aval.explicit_sharding, weak_type=aval.weak_type, manual_axis_type=manual
    )


def abstract_leaf(value: Any) -> ShapedArray:
    """Return the aval of an argument, of a ShapeDtypeStruct, or of an object with a shape and a dtype."""
    if type(value) is int:
        return int_aval(value)
    if not is_array_like(value) and hasattr(value, "shape") and hasattr(value, "dtype"):
        return ShapeDtypeStruct(value.shape, value.dtype, weak_type=getattr(value, "weak_type", False)).aval
    return aval_of(value)


def abstract_leaves(
    function: Callable[..., Any], static: Static, leaves: Sequence[Any], in_tree: PyTreeDef,
    of: Callable[[Any], ShapedArray],
) -> list[ShapedArray]:
    """Return ``of(leaf)`` for each leaf; the error for a leaf that is no array, or too large, names the argument."""
    avals = []
    for position, leaf in enumerate(leaves):
        try:
            avals.append(of(leaf))
        except OverflowError as error:
            path = list_argument_paths(function, static, in_tree)[position]
            raise OverflowError(f"argument {path}: {error}") from None
        except (TypeError, ValueError) as error:
            path = list_argument_paths(function, static, in_tree)[position]
            name = function_name(function)
            advice = (
                f'mark the argument as static, with static_argnums or static_argnames=["{path}"]'
                if path.isidentifier()
                else "pass it on its own, marked as static with static_argnums or static_argnames"
            )
            raise (ValueError if isinstance(error, ValueError) else TypeError)(
                f"Error interpreting argument {path} of {name} as an abstract array: {error}. If the function needs "
                f"the value itself in Python, {advice}.{explain_pytrees(leaf)}"
            ) from None
    return avals


def explain_pytrees(leaf: object) -> str:
    """Return the last sentence of a message about a leaf that is no array: what an object of a user's class can be."""
    if type(leaf).__module__ == "builtins":
        return ""
    return (
        " An object that holds arrays can be registered as a pytree, with xtrace.tree_util.register_pytree_node or "
        "register_dataclass."
    )


def trace(
    transformation: str, function: Callable[..., Any], static: Static, in_tree: PyTreeDef,
    in_avals: Sequence[ShapedArray], finish: Callable[[list[Any], PyTreeDef], list[Any]] | None = None,
) -> TracedFunction:
    """Run `function` on tracers of the types `in_avals`, and return the trace.

    finish: a function of the results and their structure; it returns the results to record.
    """
    info = make_debug_info(
        transformation, function, defer_argument_paths(function, static, in_tree)
    )
    out_tree = None

    def flat(*leaves: object) -> list[Any]:
        nonlocal out_tree
        args, kwargs = pytree.tree_unflatten(in_tree, wrap(leaves, in_avals))
        args, kwargs = static_arguments.join(static, args, kwargs)
        result = function(*args, **kwargs)
        if high_types:
            result = lower_result(result)
        results, out_tree = pytree.tree_flatten(result)
        check_results(results, result, lambda: info)
        return results if finish is None else finish(results, out_tree)

    start = time.perf_counter()
    jaxpr, consts = stage(flat, in_avals, info)
    if config.debug_key_reuse.value:
        key_reuse.check(ClosedJaxpr(jaxpr.with_constants_as_inputs(), []))
    traced = TracedFunction(jaxpr, consts, in_tree, out_tree, info)
    traced.seconds = time.perf_counter() - start
    monitoring.record_step(monitoring.TRACING, traced.seconds, function_name(function))
    return traced


def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None, return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the jaxpr of `fun` for the types of its arguments.

    Args:
        fun: a function of pytrees of arrays.
        static_argnums: positions of arguments that stay Python values.
        axis_env: pairs of a name and a size of axes that collectives in `fun` may use.
        return_shape: whether the returned function returns a pair: the jaxpr, and ShapeDtypeStructs of the results.

    Returns:
        A function of the arguments of `fun`, or of ShapeDtypeStructs. It returns a ClosedJaxpr, and computes nothing.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.

    Example:
        >>> xtrace.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0 in (c,) }
    """
    check_callable(fun)
    chosen = Selection("static", fun, static_argnums, None)

    @boundary
    @wraps(fun)
    def jaxpr_maker(*args: object, **kwargs: object) -> Any:
        static, dynamic, named = static_arguments.split_static(fun, chosen, args, kwargs)
        leaves, in_tree = pytree.tree_flatten((dynamic, named))
        avals = abstract_leaves(fun, static, unwrap(leaves), in_tree, abstract_leaf)
        with use_named_axes(axis_env or ()):
            traced = trace("make_jaxpr", fun, static, in_tree, avals)
        closed = ClosedJaxpr(dead_code.name_dropped(traced.jaxpr), traced.consts)
        return (closed, traced.out_info) if return_shape else closed

    jaxpr_maker.__name__ = f"make_jaxpr({function_name(fun)})"
    jaxpr_maker.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', function_name(fun))})"
    return jaxpr_maker


def eval_shape(fun: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """Return the shapes and dtypes of the results of ``fun(*args, **kwargs)``, without computing them.

    Args:
        fun: a function of pytrees of arrays.
        args: its arguments: arrays, or objects with `shape` and `dtype` such as ShapeDtypeStructs.
        kwargs: its keyword arguments, likewise.

    Returns:
        ShapeDtypeStructs in the structure of the result of `fun`.

    Raises:
        TypeError: `fun` is not callable, or an argument has no shape and dtype.

    Example:
        >>> xtrace.eval_shape(jnp.matmul, jnp.ones((2, 3)), jnp.ones((3, 4)))
        ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    check_callable(fun)
    jitted = getattr(fun, "_xtrace_jitted", None)
    # functools.wraps copies the attribute to functions that do more than call this one.
    if jitted is not None and jitted.wrapper() is fun:  # it knows the shardings of its results
        return fun.eval_shape(*args, **kwargs)
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    avals = abstract_leaves(fun, static_arguments.NO_STATIC, unwrap(leaves), in_tree, abstract_leaf)
    return trace("eval_shape", fun, static_arguments.NO_STATIC, in_tree, avals).out_info


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: object, propagate_source_info: bool = True) -> list[Any]:
    """Evaluate a jaxpr on values under the current trace, equation by equation.

    Args:
        jaxpr: a `Jaxpr`.
        consts: the values of its constvars.
        args: the values of its inputs.
        propagate_source_info: whether recorded equations keep the source positions in the jaxpr.

    Returns:
        The list of results.

    Raises:
        TypeError: `jaxpr` is closed.
        ValueError: the number of constants or arguments is wrong.

    Example:
        >>> closed = xtrace.make_jaxpr(lambda x: x + 1)(1.0)
        >>> xtrace.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)
        [Array(3., dtype=float32, weak_type=True)]
    """
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(
            f"eval_jaxpr takes a Jaxpr and its constants; got {type(jaxpr)}. Of a closed one, pass closed.jaxpr, "
            "closed.consts, and then the arguments"
        )
    if len(consts) != len(jaxpr.constvars) or len(args) != len(jaxpr.invars):
        raise ValueError(
            f"the jaxpr takes {len(jaxpr.constvars)} constants and {len(jaxpr.invars)} arguments; "
            f"got {len(consts)} and {len(args)}"
        )
    if not propagate_source_info:
        jaxpr = jaxpr.replace(eqns=[e.replace(source=None) for e in jaxpr.eqns])
    if has_references(jaxpr):
        closed = move_constants_to_inputs(ClosedJaxpr(jaxpr, consts))
        operands = [*consts, *unwrap(list(args))]
        parameters = ("jaxpr", closed, (), False, None, True, *calls.NO_PLACES)
        return bind_with_references(calls.jit_call, operands, parameters, closed.effects)
    return [x.val if isinstance(x, Literal) else x for x in evaluate(jaxpr, consts, args)]


