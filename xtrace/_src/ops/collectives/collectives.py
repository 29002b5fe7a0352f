"""Reductions over mapped axes, and the size and index of an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import add_any, mul
from xtrace._src.algebra.varying import (
    preduced,
    psum_invariant,
    pvary,
    reduced_vary_cast,
    unreduced_psum,
    vary,
    vary_unreduced_cast,
)
from xtrace._src.algebra.vector_space import LINEAR, broadcast_in_dim, convert_to, operand_aval, reduce_sum
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Axes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.name_suggestions import suggest_name
from xtrace._src.core.integers import integer_rows
from xtrace._src.core.jaxprs.effects import Effects, named_axis
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED, scalar_literal
from xtrace._src.core.primitive import Derived, Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings import sharding_rules
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.trace import axis_environment, checked_axes, current_trace
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.reductions.reductions import reduce_max, reduce_min
from xtrace._src.ops.values import stage
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.xla.pytree_registry import PyTreeDef


def find_axis_size(name: object) -> int:
    """Return the size of the mapped axis `name`; NameError if it is not in scope."""
    environment = axis_environment(current_trace.get())
    (name,) = name_tuple("axis_size", "axis_name", (name,))
    for own, size in environment:
        if own == name:
            return size
    shown = name if isinstance(name, str) else abbreviate(name)
    known = ", ".join(repr(n) for n, _ in environment) or "none"
    in_scope = f"In its place {suggest_name(name, [n for n, _ in environment])}, or name" if environment else "Name"
    raise NameError(
        f"Found an unbound axis name: {shown}. Mapped axes in scope: {known}. {in_scope} one where the function is "
        f"mapped, vmap(f, axis_name={abbreviate(name)}), or call it in shard_map over a mesh with this axis"
    )


def axis_size(axis_name: object) -> int:
    """Return the size of a mapped axis.

    Args:
        axis_name: the name of the mapped axis, or a tuple of names, whose sizes are multiplied.

    Returns:
        An int.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> xtrace.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.ones(2))
        Array([0.5, 0.5], dtype=float32)
    """
    return math.prod(find_axis_size(n) for n in axis_names(axis_name))


def axis_names(axis_name: object) -> tuple[Any, ...]:
    """Return the names of mapped axes as a tuple."""
    names = name_tuple("collective", "axis_name", axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,))
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"axis_name {names} of a collective names {abbreviate(name)} twice; name each mapped axis once"
            )
    return names


def canonical_index_groups(name: str, groups: object, axes: Sequence[Any], *, equal: bool = False) -> Any:
    """Return `axis_index_groups` as a tuple of tuples, or None.

    ValueError unless each index is in one group and, with `equal`, all groups have one size.
    """
    if groups is None:
        return None
    rows = integer_rows("axis_index_groups", groups, function=name)
    size = axis_size(tuple(axes))
    if sorted(i for row in rows for i in row) != list(range(size)):
        raise ValueError(
            f"{name}: axis_index_groups must cover all indices exactly once, those from 0 to {size - 1}, got {rows}"
        )
    if equal and len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name}: axis_index_groups must have one size, since the result's shape has it, got {rows}")
    return rows


def canonical_pairs(axis_name: object, perm: object) -> tuple[Any, Any]:
    """Return the names of mapped axes and `perm` as pairs (source, destination).

    ValueError for an index that is out of bounds, or twice a source or twice a destination.
    """
    names = axis_names(axis_name)
    size, pairs = axis_size(names), integer_rows("perm", perm, 2)
    for kind, indices in zip(("sources", "destinations"), zip(*pairs, strict=True), strict=False):
        if len(set(indices)) != len(indices) or any(not 0 <= i < size for i in indices):
            raise ValueError(f"{called_function()}: {kind} must be different indices from 0 to {size - 1}, got {pairs}")
    return names, pairs


def make_axis_effects(parameter: str) -> Callable[..., Effects]:
    """Return the effects rule of a collective whose axes are the value of `parameter`."""
    def effects(**parameters: Any) -> Effects:
        return frozenset(named_axis(n) for n in axis_names(parameters[parameter]) if not isinstance(n, int))

    return effects


def device_groups(builder: FunctionBuilder, axes: object, groups: Any = None) -> list[list[int]]:
    """Return the groups of devices of a collective over mesh axes, as `ModuleBuilder.device_groups` does."""
    if builder.module.manual_mesh is None:
        raise NotImplementedError("a collective reached the compiler, but no vmap around the program maps its axis")
    return builder.module.device_groups(axis_names(axes), groups)


def map_leaves(function: Callable[[Any], Any], name: str, tree: PyTreeDef) -> Any:
    """Return the tree of ``function(leaf)``; a leaf that is no array raises a TypeError that names `name`."""
    for leaf in pytree.tree_leaves(tree):
        operand_aval(leaf, "x", function=name)
    return pytree.tree_map(function, tree)


# Reductions over the axis

class AxisReduction(Primitive):
    """A reduction over mapped axes, whose result is the same for every index.

    across: the reduction of an array over some of its axes. repeated: a function of an unmapped operand and the axis
    size that returns the reduction of equal operands. elementwise: the StableHLO operation.
    """

    def __init__(
        self, function: Callable[..., Any], across: Any, repeated: Any, elementwise: str, **rules: Any
    ) -> None:
        super().__init__(
            function.__name__, ("axes", "axis_index_groups"), abstract=self._abstract, emit=self._emit,
            batch=self._batch, unprinted={"axis_index_groups": ALWAYS_PRINTED},
            effects=make_axis_effects("axes"), operation=self._public, varying=self._varying,
            sharding=sharding_rules.same, **rules,
        )
        self.elementwise = elementwise
        self.across, self.repeated = across, repeated
        arguments = {
            "x": "an array or a tree of arrays.", "axis_name": "the name of a mapped axis, or a sequence of names.",
            "axis_index_groups": "lists of indices that together hold each index once: each group has its own result.",
        }
        errors = {
            "NameError": "no mapped axis has the name.",
            "TypeError": "a leaf of `x` is no array of a dtype that the reduction accepts.",
            "ValueError": "the groups do not hold each index once.",
        }
        returns = "A tree of the structure of `x` with arrays of the same shapes and dtypes."
        self.declare(function, arguments, returns, errors)

    def _public(self, x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        axes = axis_names(axis_name)
        for n in axes:
            find_axis_size(n)
        groups, is_sum = canonical_index_groups(self.name, axis_index_groups, axes), self.name == "psum"

        def reduce_leaf(leaf: Any) -> Any:
            if is_sum and dtypes.is_boolean(aval_of(leaf).dtype):
                # As in JAX, a sum counts the elements that are True.
                leaf = convert_to(leaf, dtypes.int32)
            if is_sum and type(leaf) in (int, float, complex) and groups is None:
                # Python numbers are summed while tracing: psum(1, name) is the axis size as a Python number.
                return leaf * axis_size(axes)
            if is_sum and not axes:
                return leaf
            checked = checked_axes(current_trace.get())
            manual = tuple([n for n in axes if n in checked])
            terms = aval_of(leaf).manual_sums.unreduced.intersection(manual)
            if terms and is_sum and groups is None:
                leaf = unreduced_psum.bind_positional((leaf,), (tuple([n for n in manual if n in terms]),))
                manual = tuple([n for n in manual if n not in terms])
                if len(terms) == len(axes):
                    return leaf
            leaf = vary(leaf, manual)
            if not is_sum or not manual or groups is not None:
                return self.bind_positional((leaf,), (axes, groups))
            rest = tuple([n for n in axes if n not in checked])
            leaf = self.bind_positional((leaf,), (rest, None)) if rest else leaf
            return psum_invariant.bind_positional((leaf,), (manual,))

        return map_leaves(reduce_leaf, self.name, x)

    def _emit(self, builder: FunctionBuilder, x: Value, *, axes: Sequence[Any], axis_index_groups: Any) -> Value:
        if not axes:
            return x
        groups = device_groups(builder, axes, axis_index_groups)
        return builder.all_reduce(x, self.elementwise, groups, builder.results[0])

    def _varying(self, varying: frozenset[Any], *, axes: Sequence[Any], axis_index_groups: Any) -> frozenset[Any]:
        return varying - frozenset(axes) if axis_index_groups is None else varying

    def _abstract(self, x: ShapedArray, **_: Any) -> ShapedArray:
        return x

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axes: Sequence[int],
        axis_index_groups: Any,
    ) -> tuple[Any, int | None]:
        (x,), (place,) = operands, places
        rest = tuple([n for n in axes if n != mapped.name])
        if axis_index_groups is not None:
            if mapped.name not in axes:
                return self.bind_positional((x,), (axes, axis_index_groups)), place
            if rest:
                raise NotImplementedError(f"{self.name}: axis_index_groups need a single axis under vmap, got {axes}")
            return self._reduce_groups(mapped.place(x, place), axis_index_groups), 0
        if mapped.name in axes:
            x = self.repeated(x, mapped.size) if place is None else self.across(x, (place,))
            place = None
        return (self.bind_positional((x,), (rest, None)) if rest else x), place

    def _reduce_groups(self, x: Any, groups: Sequence[Sequence[int]]) -> Any:
        by_index: dict[int, Any] = {}
        for group in groups:
            total = self.across(concatenate([slice_in_dim(x, i, i + 1) for i in group], 0), (0,))
            by_index.update(dict.fromkeys(group, broadcast_in_dim(total, (1, *aval_of(total).shape), range(1, x.ndim))))
        return concatenate([by_index[i] for i in range(aval_of(x).shape[0])], 0)


def scale(x: Array, factor: float) -> Array:
    """Return the product of an array and a number, in the array's type."""
    aval = aval_of(x)
    return mul(x, scalar_literal(factor, aval.dtype, aval.weak_type))


def _psum_transpose(cotangent: Array, operand: Array, *, axes: Axes, axis_index_groups: object) -> list[Any]:
    return [psum.bind_positional((cotangent,), (axes, axis_index_groups))]


@AxisReduction.define(reduce_sum, scale, "add", jvp=LINEAR, transpose=_psum_transpose)
def psum(x: Any, axis_name: object, *, axis_index_groups: object = None) -> Any:
    """Return the sum over mapped axes; of a Python number, a Python number.

    Example:
        >>> xtrace.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.array([1, 2, 3]))
        Array([6, 6, 6], dtype=int32)
    """
    ...


def _extremum_jvp(
    primitive: AxisReduction, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Axes,
    axis_index_groups: object,
) -> Any:
    # The tangent is the mean of the tangents of the elements that equal the result.
    result = primitive.bind_positional(primals, (axes, axis_index_groups))
    chosen = convert_to(eq(primals[0], result), aval_of(result).dtype)
    moved, count = [
        psum(x, axes, axis_index_groups=axis_index_groups) for x in (mul(tangents[0], chosen), chosen)
    ]
    return result, elementwise.div(moved, count)


@AxisReduction.define(reduce_max, lambda x, n: x, "maximum", jvp=Derived(_extremum_jvp))
def pmax(x: Any, axis_name: object, *, axis_index_groups: object = None) -> Any:
    """Return the largest elements over mapped axes.

    Example:
        >>> xtrace.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 2, 3]))
        Array([3, 3, 3], dtype=int32)
    """
    ...


@AxisReduction.define(reduce_min, lambda x, n: x, "minimum", jvp=Derived(_extremum_jvp))
def pmin(x: Any, axis_name: object, *, axis_index_groups: object = None) -> Any:
    """Return the smallest elements over mapped axes.

    Example:
        >>> xtrace.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 2, 3]))
        Array([1, 1, 1], dtype=int32)
    """
    ...


def pmean(x: Any, axis_name: object, *, axis_index_groups: object = None) -> Any:
    """Return the mean over a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of indices that together hold each index once: each group has its own mean.

    Returns:
        An array, or a tree, of the shapes of `x`; the mean of integers is floating.

    Raises:
        NameError: there is no such axis.
        TypeError: the groups are no lists of integers.
        ValueError: the groups do not hold each index once.

    Example:
        >>> xtrace.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    axes = axis_names(axis_name)
    groups = canonical_index_groups("pmean", axis_index_groups, axes)
    count = axis_size(axes) if groups is None else len(groups[0])
    return map_leaves(lambda leaf: psum(leaf, axes, axis_index_groups=axis_index_groups) / count, "pmean", x)


def pcast(x: Any, axis_name: object, *, to: str) -> Any:
    """Cast values to another type along manual mesh axes, inside of a `shard_map`.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of a manual mesh axis, or a tuple of names.
        to: ``"varying"``, for an invariant or reduced value; ``"reduced"``, for an invariant value, whose cotangents
            become unreduced; or ``"unreduced"``, for a varying value, which becomes the terms of a sum.

    Returns:
        A tree of the structure of `x`, of the new types.

    Raises:
        NameError: there is no such axis.
        ValueError: `to` is another value, or no type that `x` can have.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("i",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> f = lambda x: lax.pcast(x, "i", to="varying")
        >>> xtrace.shard_map(f, mesh=mesh, in_specs=xtrace.P(), out_specs=xtrace.P("i"))(jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(
            f"pcast: to must be 'varying', 'reduced' or 'unreduced', got {abbreviate(to)}; lax.psum makes a value the "
            "same everywhere"
        )
    names = axis_names(axis_name)
    axis_size(names)
    checked = checked_axes(current_trace.get())
    manual = tuple([n for n in names if n in checked])
    return map_leaves(lambda leaf: _cast(leaf, manual, to), "pcast", x)


_CASTS = {
    ("invarying", "varying"): pvary, ("invarying", "reduced"): preduced, ("reduced", "varying"): reduced_vary_cast,
    ("varying", "unreduced"): vary_unreduced_cast,
}


def _cast(x: Any, axes: tuple[Any, ...], to: str) -> Any:
    """Return `x` cast to the type `to` along manual axes; ValueError if there is no such cast."""
    aval = aval_of(x)
    kinds = aval.manual_axis_type
    own = {
        next((kind for kind in ("varying", "unreduced", "reduced") if axis in getattr(kinds, kind)), "invarying")
        for axis in axes
    }
    if not axes:
        return x
    cast = _CASTS.get((next(iter(own)), to)) if len(own) == 1 else None
    if cast is None:
        kind = " and ".join(sorted(own))
        advice = {
            "unreduced": "form the sum with lax.psum first",
            "varying": "make it the same everywhere with lax.psum first" if to != "varying" else "leave the cast out",
            "invarying": "cast it to='varying' first", "reduced": "cast it to='varying' first",
        }[min(own)]
        raise ValueError(
            f"Unsupported pcast from={kind}, to={abbreviate(to)} of {aval.str_short(True)} along {axes}; {advice}"
        )
    return cast.bind_positional((x,), (axes,))


# The index along the axis

def _axis_index_abstract(*, axis_name: object) -> ShapedArray:
    """Return the index along a mapped axis."""
    find_axis_size(axis_name)
    checked = axis_name in checked_axes(current_trace.get())
    return ShapedArray((), dtypes.int32, varying=frozenset([axis_name] if checked else []))


def _axis_index_emit(builder: FunctionBuilder, *, axis_name: object) -> Value:
    return builder.axis_index(axis_name, builder.results[0])


def _axis_index_batch(mapped: MappedAxis, operands: Array, places: object, *, axis_name: object) -> tuple[Any, int]:
    return iota(np.int32, mapped.size), 0


def axis_index(axis_name: object) -> Any:
    """Return the index along a mapped axis.

    Args:
        axis_name: the name of the mapped axis, or a tuple of names, counted in row-major order.

    Returns:
        An int32 scalar.

    Raises:
        NameError: there is no such axis.

    Example:
        >>> xtrace.vmap(lambda x: lax.axis_index("i"), axis_name="i")(jnp.ones(3))
        Array([0, 1, 2], dtype=int32)
    """
    names = axis_names(axis_name)
    total, index = 1, None
    for n in reversed(names):
        own = axis_index_p.bind_positional((), (n,))
        own = own if total == 1 else scale(own, total)
        index = own if index is None else add_any(own, index)
        total *= find_axis_size(n)
    return stage(0) if index is None else index


axis_index_p = Primitive(
    "axis_index", ("axis_name",), abstract=_axis_index_abstract, emit=_axis_index_emit, operation=axis_index,
    effects=make_axis_effects("axis_name"), jvp=no_rule("axis_index has no operand to differentiate by"),
    batch=_axis_index_batch, memoised=False,
)
