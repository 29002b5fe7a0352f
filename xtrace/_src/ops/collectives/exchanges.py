"""Collectives that move data along mapped axes: gathers, scatters, exchanges and permutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.varying import vary
from xtrace._src.algebra.vector_space import (
    LINEAR,
    broadcast_in_dim,
    canonical_axis,
    move_axis,
    operand_aval,
    reduce_sum,
    reshape,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED, scalar_literal
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings import sharding_rules
from xtrace._src.core.shardings.sums import Sums
from xtrace._src.core.trace import checked_axes, current_trace
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.collectives.collectives import (
    axis_index,
    axis_names,
    axis_size,
    canonical_index_groups,
    canonical_pairs,
    device_groups,
    make_axis_effects,
    map_leaves,
    psum,
    scale,
)
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

# Data movement along the axis

class _Exchange(Primitive):
    """A collective that moves data along the mapped axis `axis_name`.

    `axes` are the parameters that hold an axis of the operand. ``across(mapped, x, place, **parameters)`` is the batch
    rule along an axis that the collective names; None for collectives of mesh axes only.
    """

    def __init__(
        self, name: str, parameters: Sequence[str], operation: Any, abstract: Any, emit: Any, axes: Sequence[str] = (),
        across: Callable[..., tuple[Any, int | None]] | None = None, **rules: Any,
    ) -> None:
        groups = {"axis_index_groups": ALWAYS_PRINTED} if "axis_index_groups" in parameters else None
        super().__init__(
            name, parameters, abstract=abstract, emit=emit, operation=operation, jvp=LINEAR, batch=self._batch,
            effects=make_axis_effects("axis_name"), memoised=False, unprinted=groups, **rules,
        )
        self.axes, self.across = axes, across

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], **parameters: Any
    ) -> tuple[Any, int | None]:
        (x,), (place,) = operands, places
        if self.across is not None and mapped.name in axis_names(parameters["axis_name"]):
            return self.across(mapped, x, place, **parameters)
        place = place or 0
        if self.axes:
            x, place = move_axis(x, place, 0), 0
        moved = {name: value + 1 if name in self.axes else value for name, value in parameters.items()}
        return self.bind_positional((x,), tuple(moved.values())), place

    def apply_checked(self, x: object, parameters: tuple[Any, ...]) -> Any:
        """Bind after checking sizes, which batch rules do not check."""
        self.infer_types((operand_aval(x, "x", function=self.name),), parameters)
        return self.apply(x, parameters)

    def apply(self, x: object, parameters: tuple[Any, ...]) -> Any:
        """Bind on a value that varies along the axis."""
        names = axis_names(parameters[self.parameters.index("axis_name")])
        return self.bind_positional((vary(x, names),), parameters)


def _exchange_split(removed: str = "", added: str = "") -> sharding_rules.Rule:
    """Return the sharding rule of a collective that removes and adds dimensions unless it is tiled.

    `removed` and `added` are the parameters that hold the dimensions.
    """
    find_entries = sharding_rules.whole_along(removed) if removed else sharding_rules.same

    def rule(
        name: str, operands: Sequence[sharding_rules.Split], result: ShapedArray, *, tiled: bool, **parameters: Any
    ) -> sharding_rules.Entries:
        if tiled or parameters.get(removed) == parameters.get(added):
            return tuple(sharding_rules.resize(name, operands, result))
        entries = list(find_entries(name, operands, result, **parameters))
        if removed:
            del entries[parameters[removed]]
        if added:
            entries.insert(parameters[added], None)
        return tuple(entries)

    return rule


def _check_one_axis(axis_name: object, name: str) -> None:
    """Raise NotImplementedError if a collective along a vmapped axis names others, too."""
    names = axis_names(axis_name)
    if len(names) > 1:
        raise NotImplementedError(
            f"{name} over the axes {names}, one of them vmapped, is not supported; use one after the other"
        )


def _gathered_shape(x: ShapedArray, dimension: int, size: int, tiled: bool) -> tuple[int, ...]:
    if tiled:
        return (*x.shape[:dimension], x.shape[dimension] * size, *x.shape[dimension + 1 :])
    return (*x.shape[:dimension], size, *x.shape[dimension:])


def _all_gather_abstract(
    x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: object
) -> ShapedArray:
    """Return the operands of all indices, stacked or concatenated."""
    return x.update(shape=_gathered_shape(x, all_gather_dimension, axis_size, tiled))


def _all_gather_emit(
    builder: FunctionBuilder, x: Value, *, all_gather_dimension: int, axis_name: object, axis_size: int, tiled: bool,
    axis_index_groups: Any = None,
) -> Value:
    groups = device_groups(builder, axis_name, axis_index_groups)
    result, dimension = builder.results[0], all_gather_dimension
    if not tiled:
        shape = (*x.aval.shape[:dimension], 1, *x.aval.shape[dimension:])
        x = builder.broadcast(x, shape, [i + (i >= dimension) for i in range(len(x.aval.shape))])
    return builder.collective(
        "all_gather", x, groups, result, use_global_device_ids="unit", all_gather_dim=f"{dimension} : i64"
    )


def _gather_across(
    mapped: MappedAxis, x: Array, place: int | None, *, all_gather_dimension: int, axis_index_groups: Any,
    axis_name: object, axis_size: int, tiled: bool,
) -> tuple[Any, int | None]:
    _check_one_axis(axis_name, "all_gather")
    x = mapped.place(x, place)
    if axis_index_groups is not None:
        parts = {i: [slice_in_dim(x, j, j + 1) for j in g] for g in axis_index_groups for i in g}
        rows = [_place_gathered(concatenate(parts[i], 0), all_gather_dimension, tiled) for i in range(mapped.size)]
        return concatenate([broadcast_in_dim(r, (1, *r.shape), range(1, r.ndim + 1)) for r in rows], 0), 0
    return _place_gathered(x, all_gather_dimension, tiled), None


def _place_gathered(x: Array, dimension: int, tiled: bool) -> Array:
    """Return `x` with axis 0, the index axis, moved to `dimension`, and merged with the axis there if tiled."""
    size, *rest = aval_of(x).shape
    x = move_axis(x, 0, dimension)
    if not tiled:
        return x
    return reshape(x, (*rest[:dimension], size * rest[dimension], *rest[dimension + 1 :]))


def _all_gather_transpose(
    cotangent: Array, x: Array, *, all_gather_dimension: int, axis_index_groups: object, axis_name: object,
    axis_size: int, tiled: bool,
) -> list[Any]:
    parameters = (axis_index_groups, axis_name, axis_size, all_gather_dimension, tiled)
    return [reduce_scatter_p.bind_positional((cotangent,), parameters)]


def all_gather(
    x: Any, axis_name: object, *, axis_index_groups: object = None, axis: int = 0, tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather the values of all indices of a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of indices that together hold each index once: each group has its own result.
        axis: the position of the new axis.
        tiled: whether to concatenate the values along `axis` instead of stacking them.
        to: the type of the result along mesh axes of a `shard_map`: "varying", "invarying" or "reduced".

    Returns:
        An array, or a tree, of the same dtypes.

    Raises:
        NameError: there is no such axis.
        TypeError: the groups are no lists of integers.
        ValueError: the groups do not hold each index once, or `to` is another value.

    Example:
        >>> xtrace.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2))
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    if to not in ("varying", "invarying", "reduced"):
        raise ValueError(f"all_gather: to must be 'varying', 'invarying' or 'reduced', got {abbreviate(to)}")
    names = axis_names(axis_name)
    if not names:
        return map_leaves(lambda leaf: leaf, "all_gather", x)
    groups = canonical_index_groups("all_gather", axis_index_groups, names, equal=True)
    size = axis_size(names) if groups is None else len(groups[0])
    checked = checked_axes(current_trace.get()).issuperset(names)
    if to != "varying" and groups is not None and checked:
        raise NotImplementedError(f"all_gather: with axis_index_groups results differ, they cannot be {abbreviate(to)}")

    def gather_leaf(leaf: object) -> Any:
        ndim = operand_aval(leaf, "x").ndim
        dimension = canonical_axis(axis, ndim + (not tiled))
        if to == "invarying" and checked:
            return all_gather_invariant_p.apply(leaf, (dimension, names, size, bool(tiled)))
        if to == "reduced" and checked:
            return all_gather_reduced_p.apply(leaf, (dimension, names, size, bool(tiled)))
        return all_gather_p.apply(leaf, (dimension, groups, names, size, bool(tiled)))

    return map_leaves(gather_leaf, "all_gather", x)


all_gather_p = _Exchange(
    "all_gather", ("all_gather_dimension", "axis_index_groups", "axis_name", "axis_size", "tiled"), all_gather,
    _all_gather_abstract, _all_gather_emit, ("all_gather_dimension",), _gather_across, transpose=_all_gather_transpose,
    sharding=_exchange_split(added="all_gather_dimension"),
)


def _invariant_transpose(
    cotangent: Array, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_size: int, tiled: bool
) -> list[Any]:
    # The cotangent is invariant: each device takes its own part.
    own = x.aval.shape
    length = own[all_gather_dimension] if tiled else 1
    start = scale(axis_index(axis_name), length)
    part = dynamic_slice_in_dim(vary(cotangent, axis_name), start, length, all_gather_dimension)
    return [part if tiled else reshape(part, own)]


all_gather_invariant_p = _Exchange(
    "all_gather_invariant", ("all_gather_dimension", "axis_name", "axis_size", "tiled"), None,
    _all_gather_abstract, _all_gather_emit, ("all_gather_dimension",), transpose=_invariant_transpose,
    sharding=_exchange_split(added="all_gather_dimension"),
    varying=lambda varying, *, axis_name, **_: varying - frozenset(axis_name),
)


def _gather_reduced_transpose(
    cotangent: Array, x: Any, *, all_gather_dimension: int, axis_name: Any, axis_size: int, tiled: bool
) -> list[Any]:
    return [
        unreduced_reduce_scatter_p.bind_positional((cotangent,), (axis_name, axis_size, all_gather_dimension, tiled))
    ]


all_gather_reduced_p = _Exchange(
    "all_gather_reduced", ("all_gather_dimension", "axis_name", "axis_size", "tiled"), None,
    _all_gather_abstract, _all_gather_emit, ("all_gather_dimension",), transpose=_gather_reduced_transpose,
    sharding=_exchange_split(added="all_gather_dimension"),
    varying=lambda varying, *, axis_name, **_: varying - frozenset(axis_name),
    manual_sums=lambda sums, *, axis_name, **_: Sums(sums.unreduced, sums.reduced | frozenset(axis_name)),
)


def _reduce_scatter_abstract(
    x: ShapedArray, *, axis_size: int, scatter_dimension: int, tiled: bool, **_: object
) -> ShapedArray:
    """Return one part of the sum over all indices."""
    shape, length = list(x.shape), x.shape[scatter_dimension]
    if tiled:
        if length % axis_size:
            raise ValueError(
                f"psum_scatter: axis {scatter_dimension} of size {length} cannot be split into {axis_size} equal parts"
            )
        shape[scatter_dimension] = length // axis_size
    else:
        if length != axis_size:
            raise ValueError(
                f"psum_scatter: axis {scatter_dimension} must have the size {axis_size} of the mapped axis, it has "
                f"{length}; with tiled=True it may be a multiple"
            )
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


def _reduce_scatter_emit(
    builder: FunctionBuilder, x: Value, *, axis_name: object, axis_size: int, scatter_dimension: int, tiled: bool,
    axis_index_groups: Any = None,
) -> Value:
    result, shape = builder.results[0], list(x.aval.shape)
    shape[scatter_dimension] //= axis_size
    groups = device_groups(builder, axis_name, axis_index_groups)
    scattered = builder.reduce_scatter(x, groups, result.update(shape=tuple(shape)), scatter_dimension)
    return scattered if tiled else builder.cast("reshape", scattered, result)


def _reduce_scatter_across(
    mapped: MappedAxis, x: Array, place: int | None, *, axis_index_groups: object, axis_name: object, axis_size: int,
    scatter_dimension: int, tiled: bool,
) -> tuple[Any, int]:
    _check_one_axis(axis_name, "psum_scatter")
    if axis_index_groups is not None:
        raise NotImplementedError("psum_scatter: axis_index_groups are not supported along an axis of vmap")
    total = scale(x, mapped.size) if place is None else reduce_sum(x, (place,))
    if tiled:
        shape = aval_of(total).shape
        parts = (axis_size, shape[scatter_dimension] // axis_size)
        total = reshape(total, (*shape[:scatter_dimension], *parts, *shape[scatter_dimension + 1 :]))
    return total, scatter_dimension


def _reduce_scatter_transpose(
    cotangent: Array, x: Array, *, axis_index_groups: object, axis_name: object, axis_size: int, scatter_dimension: int,
    tiled: bool,
) -> list[Any]:
    return [
        all_gather_p.bind_positional((cotangent,), (scatter_dimension, axis_index_groups, axis_name, axis_size, tiled))
    ]


def psum_scatter(
    x: Any, axis_name: object, *, scatter_dimension: int = 0, axis_index_groups: object = None, tiled: bool = False
) -> Any:
    """Sum over a mapped axis, and scatter the sum: each index keeps its part.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        scatter_dimension: the axis to scatter; it has the size of the mapped axis and goes away, unless `tiled`.
        axis_index_groups: lists of indices that together hold each index once: each group has its own sum.
        tiled: whether the axis stays; its size is a multiple of the mapped axis' size.

    Returns:
        An array, or a tree, of the same dtypes.

    Raises:
        NameError: there is no such axis.
        ValueError: the sizes do not agree.

    Example:
        >>> xtrace.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.arange(4).reshape(2, 2))
        Array([2, 4], dtype=int32)
    """
    names = axis_names(axis_name)
    if not names:
        return map_leaves(lambda leaf: leaf, "psum_scatter", x)
    groups = canonical_index_groups("psum_scatter", axis_index_groups, names, equal=True)
    size = axis_size(names) if groups is None else len(groups[0])

    def scatter_leaf(leaf: object) -> Any:
        aval = operand_aval(leaf, "x")
        dimension = canonical_axis(scatter_dimension, aval.ndim)
        if groups is None and aval.manual_sums.unreduced.issuperset(names):
            parameters = (names, size, dimension, bool(tiled))
            unreduced_reduce_scatter_p.infer_types((aval,), parameters)
            return unreduced_reduce_scatter_p.bind_positional((leaf,), parameters)
        return reduce_scatter_p.apply_checked(leaf, (groups, names, size, dimension, bool(tiled)))

    return map_leaves(scatter_leaf, "psum_scatter", x)


reduce_scatter_p = _Exchange(
    "reduce_scatter", ("axis_index_groups", "axis_name", "axis_size", "scatter_dimension", "tiled"), psum_scatter,
    _reduce_scatter_abstract, _reduce_scatter_emit, ("scatter_dimension",), _reduce_scatter_across,
    transpose=_reduce_scatter_transpose, sharding=_exchange_split("scatter_dimension"),
)


def _scatter_terms_transpose(
    cotangent: Array, x: object, *, axis_name: Any, axis_size: int, scatter_dimension: int, tiled: bool
) -> list[Any]:
    return [all_gather_reduced_p.bind_positional((cotangent,), (scatter_dimension, axis_name, axis_size, tiled))]


unreduced_reduce_scatter_p = _Exchange(
    "unreduced_reduce_scatter", ("axis_name", "axis_size", "scatter_dimension", "tiled"), None,
    _reduce_scatter_abstract, _reduce_scatter_emit, ("scatter_dimension",), transpose=_scatter_terms_transpose,
    sharding=_exchange_split("scatter_dimension"),
    varying=lambda varying, *, axis_name, **_: varying | frozenset(axis_name),
    manual_sums=lambda sums, *, axis_name, **_: Sums(sums.unreduced - frozenset(axis_name), sums.reduced),
)


def _all_to_all_abstract(
    x: ShapedArray, *, axis_index_groups: Any, axis_name: Any, concat_axis: int, split_axis: int, tiled: bool
) -> ShapedArray:
    """Exchange the parts along one axis between the indices, and concatenate them along another axis."""
    size = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    shape = list(x.shape)
    if tiled:
        if shape[split_axis] % size:
            raise ValueError(
                f"all_to_all: axis {split_axis} of size {shape[split_axis]} cannot be split into {size} equal parts"
            )
        shape[split_axis] //= size
        shape[concat_axis] *= size
    else:
        if shape[split_axis] != size:
            raise ValueError(
                f"all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are "
                f"{size} and {shape[split_axis]} respectively; with tiled=True it may be a multiple"
            )
        shape.insert(concat_axis, shape.pop(split_axis))
    return x.update(shape=tuple(shape))


def _all_to_all_emit(
    builder: FunctionBuilder, x: Value, *, axis_index_groups: Any, axis_name: object, concat_axis: int, split_axis: int,
    tiled: bool,
) -> Value:
    result, groups = builder.results[0], device_groups(builder, axis_name, axis_index_groups)
    joined = concat_axis if tiled else split_axis
    exchanged = builder.collective(
        "all_to_all", x, groups, result if tiled else x.aval, split_dimension=f"{split_axis} : i64",
        concat_dimension=f"{joined} : i64", split_count=f"{len(groups[0])} : i64",
    )
    if tiled or split_axis == concat_axis:
        return exchanged
    # The axis of senders replaces the axis of parts; it moves to `concat_axis`.
    order = [i for i in range(len(result.shape)) if i != split_axis]
    order.insert(concat_axis, split_axis)
    return builder.cast("transpose", exchanged, result, f", dims = {order}")


def _exchange_across(
    mapped: MappedAxis, x: Array, place: int | None, *, axis_index_groups: object, axis_name: object, concat_axis: int,
    split_axis: int, tiled: bool,
) -> tuple[Any, int]:
    names = axis_names(axis_name)
    if axis_index_groups is not None:
        raise NotImplementedError("all_to_all: axis_index_groups are not supported along an axis of vmap")
    x = mapped.place(x, place)
    if tiled:
        shape = aval_of(x).shape
        count = mapped.size * axis_size([n for n in names if n != mapped.name])
        parts = (count, shape[split_axis + 1] // count)
        x = reshape(x, (*shape[: split_axis + 1], *parts, *shape[split_axis + 2 :]))
    x = _exchange_parts(mapped, move_axis(x, split_axis + 1, 1), names)
    x = move_axis(x, 1, concat_axis + 1)
    if tiled:
        shape = aval_of(x).shape
        joined = shape[concat_axis + 1] * shape[concat_axis + 2]
        x = reshape(x, (*shape[: concat_axis + 1], joined, *shape[concat_axis + 3 :]))
    return x, 0


def _exchange_parts(mapped: MappedAxis, x: Array, names: tuple[Any, ...]) -> Array:
    """Return `x`, mapped at axis 0, with the parts along axis 1 exchanged over the named axes."""
    shape, place = aval_of(x).shape, names.index(mapped.name)
    before, after = names[:place], names[place + 1 :]
    x = reshape(x, (mapped.size, axis_size(before), mapped.size, axis_size(after), *shape[2:]))
    # The axis of parts becomes the mapped axis, and the mapped axis becomes the axis of senders.
    x = move_axis(move_axis(x, 2, 0), 1, 2)
    if before or after:
        x = reshape(move_axis(x, 2, 1), (mapped.size, mapped.size, shape[1] // mapped.size, *shape[2:]))
        x = all_to_all_p.bind_positional((x,), (None, (*before, *after), 2, 2, False))
        x = move_axis(reshape(x, (mapped.size, mapped.size, axis_size(before), axis_size(after), *shape[2:])), 1, 2)
    return reshape(x, shape)


def _all_to_all_transpose(
    cotangent: Array, x: Array, *, axis_index_groups: object, axis_name: object, concat_axis: int, split_axis: int,
    tiled: bool,
) -> list[Any]:
    return [all_to_all_p.bind_positional((cotangent,), (axis_index_groups, axis_name, split_axis, concat_axis, tiled))]


def all_to_all(
    x: Any, axis_name: object, split_axis: int, concat_axis: int, *, axis_index_groups: object = None,
    tiled: bool = False,
) -> Any:
    """Exchange parts: index i of the mapped axis gets part i of each value.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        split_axis: the axis to split; it has the size of the mapped axis and goes away, unless `tiled`.
        concat_axis: the position of the new axis, or with `tiled` the axis along which to concatenate parts.
        axis_index_groups: lists of indices that exchange parts among themselves.
        tiled: whether both axes stay.

    Returns:
        An array, or a tree, of the same dtypes.

    Raises:
        NameError: there is no such axis.
        ValueError: the sizes do not agree.

    Example:
        >>> xtrace.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    groups = canonical_index_groups("all_to_all", axis_index_groups, axis_names(axis_name), equal=True)
    axis_size(axis_name)

    def exchange_leaf(leaf: object) -> Any:
        ndim = operand_aval(leaf, "x").ndim
        split, joined = (canonical_axis(a, ndim) for a in (split_axis, concat_axis))
        return all_to_all_p.apply_checked(leaf, (groups, axis_name, joined, split, bool(tiled)))

    return map_leaves(exchange_leaf, "all_to_all", x)


all_to_all_p = _Exchange(
    "all_to_all", ("axis_index_groups", "axis_name", "concat_axis", "split_axis", "tiled"), all_to_all,
    _all_to_all_abstract, _all_to_all_emit, ("concat_axis", "split_axis"), _exchange_across,
    transpose=_all_to_all_transpose, sharding=_exchange_split("split_axis", "concat_axis"),
)


def pswapaxes(x: ArrayLike, axis_name: object, axis: int, *, axis_index_groups: object = None) -> Any:
    """Swap a mapped axis with an axis of the value.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis: the axis of `x`, which has the size of the mapped axis.
        axis_index_groups: lists of indices that swap among themselves.

    Returns:
        An array, or a tree, like `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: the sizes do not agree.

    Example:
        >>> xtrace.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
        Array([[0, 2],
               [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _ppermute_abstract(x: ShapedArray, **_: object) -> ShapedArray:
    """Return another index's operand."""
    return x


def _ppermute_emit(builder: FunctionBuilder, x: Value, *, axis_name: object, perm: Any) -> Value:
    rows = device_groups(builder, axis_name)
    pairs = [(row[source], row[target]) for row in rows for source, target in perm]
    return builder.collective_permute(x, pairs, builder.results[0])


def _permute_across(
    mapped: MappedAxis, x: Array, place: int | None, *, axis_name: object, perm: Any
) -> tuple[Any, int]:
    _check_one_axis(axis_name, "ppermute")
    x = mapped.place(x, place)
    source = {destination: origin for origin, destination in perm}
    nothing = zeros(aval_of(x).update(shape=(1, *aval_of(x).shape[1:]))) if len(source) < mapped.size else None
    parts = [slice_in_dim(x, source[i], source[i] + 1) if i in source else nothing for i in range(mapped.size)]
    return concatenate(parts, 0), 0


def _ppermute_transpose(cotangent: Array, x: Array, *, axis_name: Any, perm: Any) -> list[Any]:
    return [ppermute_p.bind_positional((cotangent,), (axis_name, tuple([(there, here) for here, there in perm])))]


def ppermute(x: Any, axis_name: object, perm: Sequence[tuple[int, int]]) -> Any:
    """Move values from index to index of a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        perm: pairs (source, destination), each index at most once on each side.

    Returns:
        An array, or a tree, like `x`; an index that is no destination gets zeros.

    Raises:
        NameError: there is no such axis.
        TypeError: `perm` does not hold pairs of integers.
        ValueError: an index is a source or a destination twice, or does not exist.

    Example:
        >>> xtrace.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(1, 4))
        Array([0, 1, 2], dtype=int32)
    """
    names, pairs = canonical_pairs(axis_name, perm)
    return map_leaves(lambda leaf: ppermute_p.apply(leaf, (names, pairs)), "ppermute", x)


ppermute_p = _Exchange(
    "ppermute", ("axis_name", "perm"), ppermute, _ppermute_abstract, _ppermute_emit, across=_permute_across,
    transpose=_ppermute_transpose, sharding=sharding_rules.same,
)


def pshuffle(x: ArrayLike, axis_name: object, perm: Sequence[int]) -> Any:
    """Permute the values along a mapped axis: index i gets the value of index ``perm[i]``.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis.
        perm: a permutation of the indices.

    Returns:
        An array, or a tree, like `x`.

    Raises:
        NameError: there is no such axis.
        TypeError: `perm` is no sequence of integers.
        ValueError: `perm` is no permutation.

    Example:
        >>> xtrace.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3))
        Array([2, 0, 1], dtype=int32)
    """
    order = integer_tuple("perm", perm)
    size = axis_size(axis_name)
    if sorted(order) != list(range(size)):
        raise ValueError(f"pshuffle: perm must be a permutation of the indices 0 to {size - 1}, got {order}")
    return ppermute(x, axis_name, list(zip(order, range(size), strict=True)))


def pbroadcast(x: Any, axis_name: object, source: int) -> Any:
    """Copy the value of one index of a mapped axis to all.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis.
        source: the index.

    Returns:
        An array, or a tree, like `x`.

    Raises:
        NameError: there is no such axis.
        ValueError: there is no such index.

    Example:
        >>> xtrace.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3))
        Array([1, 1, 1], dtype=int32)
    """
    size = axis_size(axis_name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast: source must be an index from 0 to {size - 1}, got {source}")

    def broadcast_leaf(leaf: object) -> Any:
        here = eq(axis_index(axis_name), scalar_literal(source, dtypes.int32))
        return psum(select(here, leaf, zeros(operand_aval(leaf, "x"))), axis_name)

    return map_leaves(broadcast_leaf, "pbroadcast", x)
