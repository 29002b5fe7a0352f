"""Staging of loop bodies and branches, Python functions of pytrees; cached jaxprs lead to cached programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import convert_element_type
from xtrace._src.core import type_promotion
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.callables import describe_leaf_paths, make_debug_info, positional_names
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, Var
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.settings import config
from xtrace._src.core.tables import Table, memoize_by_owner
from xtrace._src.core.trace import Tracer, axis_environment, current_trace
from xtrace._src.ops.references.binding import check_results, unwrap, wrap
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.stage import StagingTrace, stage
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.core.pytrees import pytree_differences
    from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs


class Body(NamedTuple):
    """A staged function: a jaxpr without constvars whose leading inputs are `consts`, and the tree of its result."""

    jaxpr: ClosedJaxpr
    consts: list[Any]
    out_tree: PyTreeDef

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the result's leaves."""
        return self.jaxpr.out_avals


_interned = Table()

# How operations call a function, for the error of one that takes other arguments.
_CALLS = {
    "cond": "cond calls each of its functions with the operands",
    "switch": "switch calls each of its functions with the operands",
    "scan": "scan calls its function with the carry and a row of xs, which is None without xs",
    "map": "map calls its function with one argument, a row of xs",
    "fori_loop": "fori_loop calls body_fun with the number of the step and the value",
    "while_loop": "while_loop calls body_fun with the value",
    "while_cond": "while_loop calls cond_fun with the value",
}


def stage_body(
    transformation: str, function: Callable[..., Any], in_tree: PyTreeDef, in_avals: Sequence[ShapedArray]
) -> Body:
    """Return ``function(*args)`` staged on leaves of the types `in_avals`; `in_tree` is the tree of the tuple `args`.

    The constants are the arrays and tracers that the function closes over. The same function on the same types gives
    the same jaxpr object; outside of jit, so do functions with equal equations, so that an eager loop compiles once.
    TypeError, with the path, if a leaf of the result is no array.
    """
    # A callable object may change between two calls, so only plain functions are cached.
    stage_once = _stage if type(function) is FunctionType else inspect.unwrap(_stage)
    settings = config.cache_key(), axis_environment(current_trace.get())
    return stage_once(function, transformation, in_tree, tuple(in_avals), settings)


def _closes_over_no_tracer(body: Body) -> bool:
    return not any(isinstance(c, Tracer) for c in body.consts)


@memoize_by_owner(limit=256, when=_closes_over_no_tracer)
def _stage(
    function: Callable[..., Any], transformation: str, in_tree: PyTreeDef, in_avals: tuple[ShapedArray, ...],
    _settings: object,
) -> Body:
    names = positional_names(function, len(in_tree.children()))
    info = make_debug_info(transformation, function, lambda: describe_leaf_paths(names, in_tree.children()))
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        args = pytree.tree_unflatten(in_tree, wrap(leaves, in_avals))
        try:
            result = function(*args)
        except TypeError as error:
            is_from_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
            if is_from_call and transformation in _CALLS:
                error.args = (f"{error}: {_CALLS[transformation]}",)
            raise
        results, out_tree = pytree.tree_flatten(result)
        check_results(results, result, lambda: info)
        return results

    jaxpr, consts = stage(flat, in_avals, info)
    closed = ClosedJaxpr(jaxpr.with_constants_as_inputs() if jaxpr.constvars else jaxpr, [])
    # Equal jaxprs of eager calls share one program, unless debug checks have to name the lines of each function. A
    # staged equation keeps the jaxpr of its own function, because it is printed.
    staging = any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in current_trace.get().enclosing())
    return Body(closed if staging or config.checks_numbers() else intern_jaxpr(closed), consts, out_tree)


def intern_jaxpr(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return the interned jaxpr that has the equations and source line of `closed`, a jaxpr without constvars."""
    try:
        key = _key(closed.jaxpr)
    except TypeError:  # an unhashable parameter
        return closed
    known: ClosedJaxpr | None = _interned.get(key)
    if known is None:
        _interned.remember(key, closed)
    return closed if known is None else known


def _key(jaxpr: Jaxpr) -> Any:
    """Return a key that is equal for jaxprs that differ in their variables only."""
    numbers: dict[Var, int] = {v: i for i, v in enumerate(jaxpr.invars)}

    def atom(x: Atom) -> Any:
        if isinstance(x, Var):
            return numbers[x]
        value = x.value.tobytes() if isinstance(x.value, np.generic) else repr(x.value)
        return type(x.value), value, x.aval

    # The key includes the source line, which messages name; a closure that is made for each call keeps its line.
    info = jaxpr.debug_info
    parts: list[Any] = [None if info is None else (info.file, info.line), tuple(jaxpr.in_avals)]
    for equation in jaxpr.eqns:
        operands = tuple([atom(x) for x in equation.invars])
        for v in equation.outvars:
            numbers[v] = len(numbers)
        parameters, kinds = _parameter_key(equation.parameters), tuple(map(type, equation.parameters))
        parts.append((equation.primitive, parameters, kinds, operands, len(equation.outvars)))
    parts.append(tuple([atom(x) for x in jaxpr.outvars]))
    key = tuple(parts)
    hash(key)
    return key


def _parameter_key(value: object) -> Any:
    # The body of an inner loop is a new jaxpr in each trace of the outer body.
    if isinstance(value, ClosedJaxpr) and not value.consts:
        return _key(value.jaxpr)
    return tuple(map(_parameter_key, value)) if isinstance(value, tuple) else value


def flatten_argument(argument: str, tree: Any, *, function: str = "") -> tuple[list[Any], Any, list[ShapedArray]]:
    """Return an argument's leaves, tree and types; TypeError, with the path, for a leaf that is no array."""
    leaves, structure = pytree.tree_flatten(tree)
    leaves = unwrap(leaves)
    avals = []
    for position, leaf in enumerate(leaves):
        try:
            avals.append(aval_of(leaf))
        except TypeError as error:
            path = key_paths.keystr(pytree.tree_flatten_with_path(tree)[0][position][0])
            raise TypeError(f"{function or called_function()}: {argument}{path}: {error}") from None
    return leaves, structure, avals


def same_type(one: ShapedArray, other: ShapedArray) -> bool:
    """Return whether two types are equal, apart from weak types and from a sharding that only one of them has."""
    return not describe_type_differences(one, other)


def describe_type_differences(one: ShapedArray, other: ShapedArray) -> list[str]:
    """Return the plural names of the fields in which two types differ, apart from weak types."""
    named = (("dtypes", "dtype"), ("shapes", "shape"), ("memories", "memory_space"))
    differences = [words for words, field in named if getattr(one, field) != getattr(other, field)]
    shardings = one.explicit_sharding, other.explicit_sharding
    if not differences and None not in shardings and shardings[0] != shardings[1]:
        differences = ["shardings"]
    return differences


def check_function(argument: str, value: object) -> None:
    """Raise TypeError if an argument is not callable."""
    if not callable(value):
        raise TypeError(f"lax.{called_function()}: {argument} argument should be a callable, got {abbreviate(value)}")


def open_jaxpr(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """Return the jaxpr with the constants of `closed` as leading inputs, and the constants."""
    return move_constants_to_inputs(closed).jaxpr, closed.consts


def promote_carry(
    values: Sequence[Any], avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
) -> list[Any] | None:
    """Return the initial carry with weakly typed leaves promoted to the body's result dtypes; None if none changes."""
    carry, changed = list(values), False
    for i, (aval, out) in enumerate(zip(avals, out_avals, strict=True)):
        if aval.weak_type and not same_type(aval, out):
            pairs = ((aval.dtype, True), (out.dtype, out.weak_type))
            dtype, _ = type_promotion.promote(pairs, *config.promotion_settings())
            if dtype != aval.dtype:
                carry[i], changed = convert_element_type(values[i], dtype), True
    return carry if changed else None


def check_carry(
    name: str, tree: PyTreeDef, avals: Sequence[ShapedArray], out_tree: PyTreeDef,
    out_avals: Sequence[ShapedArray],
) -> None:
    """Raise TypeError, with paths, if the structures or types of the input and the output carry differ.

    name: the body's parameter for the carry.
    """
    if out_tree != tree:
        raise TypeError(
            f"{called_function()} body function carry input and carry output must have the same pytree structure, "
            f"but they differ {pytree_differences.treedef_difference(tree, out_tree)}.\n\nRevise the function so that "
            f"the carry output, {out_tree}, has the structure of the carry input {name}, {tree}."
        )
    paths = describe_leaf_paths([name], [tree])
    wrong = []
    for path, aval, out in zip(paths, avals, out_avals, strict=True):
        if not same_type(aval, out):
            what = " and ".join([f"the {words} do not match" for words in describe_type_differences(aval, out)])
            wrong.append(
                f"the input carry {path} has type {aval.str_short()} but the corresponding output carry "
                f"component has type {out.str_short()}, so {what}"
            )
    if wrong:
        raise TypeError(
            f"{called_function()} body function carry input and carry output must have equal types, but they "
            "differ:\n\n"
            + pytree_differences.list_faults(wrong)
            + "\n\nRevise the function so that all output types match the corresponding input types; convert a dtype "
            "with astype, and a sharding with xtrace.reshard."
        )
