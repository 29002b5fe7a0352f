"""Collectives: operations along an axis that a function is mapped over, known to it by name only.

Along an axis of `vmap` they are ordinary operations on the batched array, which the batch rules say. An axis name is
any hashable value; several axes are given as a tuple of names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import add_any, mul
from xtrace._src.algebra.kinds import make_signature
from xtrace._src.algebra.vector_space import (
    LINEAR,
    broadcast_in_dim,
    canonical_axis,
    converted,
    move_axis,
    operand_aval,
    reduce_sum,
    reshape,
    with_axis,
    zeros,
)
from xtrace._src.core import dtypes, pytree
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.docstrings import docstring
from xtrace._src.core.effects import Effects, named_axis
from xtrace._src.core.integers import integer_rows, integer_tuple
from xtrace._src.core.ir import Literal
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.trace import axis_environment, current_trace
from xtrace._src.ops import elementwise
from xtrace._src.ops.arrays.shape import concatenate, iota
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.reductions import reduce_max, reduce_min
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

__all__ = [
    "all_gather", "all_gather_p", "all_to_all", "all_to_all_p", "axis_index", "axis_index_p", "axis_size",
    "pbroadcast", "pmax", "pmean", "pmin", "ppermute", "ppermute_p", "pshuffle", "psum", "psum_scatter",
    "pswapaxes", "reduce_scatter_p",
]


def size_of_axis(name: Any) -> int:
    """Return the size of the mapped axis called `name`; NameError if none in scope is called so."""
    environment = axis_environment(current_trace.get())
    for own, size in environment:
        if own == name:
            return size
    shown = name if isinstance(name, str) else abbreviated(name)
    known = ", ".join(repr(n) for n, _ in environment) or "none"
    raise NameError(
        f"Found an unbound axis name: {shown}. Mapped axes in scope: {known}. Name one where the function is mapped, "
        f"vmap(f, axis_name={abbreviated(name)})"
    )


def axis_size(axis_name: Any) -> int:
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
    return math.prod(size_of_axis(n) for n in _names(axis_name))


def _names(axis_name: Any) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def _groups(name: str, groups: Any, axes: Sequence[Any]) -> Any:
    """Return `axis_index_groups` as a tuple of tuples that holds each index once; ValueError if it does not."""
    if groups is None:
        return None
    rows = integer_rows(name, "axis_index_groups", groups)
    size = axis_size(tuple(axes))
    if sorted(i for row in rows for i in row) != list(range(size)):
        raise ValueError(f"{name}: axis_index_groups must hold each index from 0 to {size - 1} once, got {rows}")
    return rows


def _effects_of(parameter: str) -> Callable[..., Effects]:
    def effects(**parameters: Any) -> Effects:
        return frozenset(named_axis(n) for n in _names(parameters[parameter]) if not isinstance(n, int))

    return effects


def _not_mapped(builder: FunctionBuilder, *values: Value, **_: Any) -> Value:
    raise NotImplementedError("a collective reached the compiler: its axis is mapped by no vmap around the program")


def _tree_map(function: Callable[[Any], Any], name: str, tree: Any) -> Any:
    for leaf in pytree.tree_leaves(tree):
        operand_aval(name, leaf, "x")
    return pytree.tree_map(function, tree)


# Reductions over the axis


class AxisReduction(Primitive):
    """The sum, the largest or the smallest over mapped axes: every index has the same result.

    across reduces an array over one of its axes, repeated gives the result where all indices have the same operand.
    """

    def __init__(
        self, name: str, contract: str, printed: str, across: Any, repeated: Any, **rules: Any
    ) -> None:
        super().__init__(
            name, ("axes", "axis_index_groups"), abstract=self._abstract, emit=_not_mapped, batch=self._batch,
            effects=_effects_of("axes"), operation=self._public, **rules,
        )
        self.across, self.repeated = across, repeated
        self.__name__ = self.__qualname__ = name
        arguments = {
            "x": "an array or a tree of arrays.", "axis_name": "the name of a mapped axis, or a sequence of names.",
            "axis_index_groups": "lists of indices that together hold each index once: each group has its own result.",
        }
        errors = {
            "NameError": "no mapped axis has the name.",
            "TypeError": "a leaf of `x` is no array of a dtype that the reduction accepts.",
            "ValueError": "the groups do not hold each index once.",
        }
        example = f"xtrace.vmap(lambda x: lax.{name}(x, 'i'), axis_name='i')(jnp.array([1, 2, 3]))"
        returns = "A tree of the structure of `x` with arrays of the same shapes and dtypes."
        self.__doc__ = docstring(contract, arguments, returns, errors, (example, f"Array([{printed}], dtype=int32)"))
        self.__signature__ = make_signature(["x", "axis_name", "axis_index_groups"], {"axis_index_groups": None})

    def _public(self, x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        axes = _names(axis_name)
        for n in axes:
            size_of_axis(n)
        groups = _groups(self.name, axis_index_groups, axes)

        def one(leaf: Any) -> Any:
            if self.name == "psum" and type(leaf) in (bool, int, float, complex) and groups is None:
                # A number that is known is summed here: psum(1, name) is the size of the axis.
                return leaf * axis_size(axes)
            return self.bind_positional((leaf,), (axes, groups))

        return _tree_map(one, self.name, x)

    def _abstract(self, x: ShapedArray, **_: Any) -> ShapedArray:
        return x

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axes: Any,
        axis_index_groups: Any,
    ) -> tuple[Any, int | None]:
        (x,), (place,) = operands, places
        rest = tuple([n for n in axes if n != mapped.name])
        if axis_index_groups is not None:
            if mapped.name not in axes:
                return self.bind_positional((x,), (axes, axis_index_groups)), place
            if rest:
                raise NotImplementedError(f"{self.name}: axis_index_groups over several axes of which one is vmapped")
            return self._in_groups(with_axis(x, place, mapped.size), axis_index_groups), 0
        if mapped.name in axes:
            x = self.repeated(x, mapped.size) if place is None else self.across(x, (place,))
            place = None
        return (self.bind_positional((x,), (rest, None)) if rest else x), place

    def _in_groups(self, x: Any, groups: Sequence[Sequence[int]]) -> Any:
        by_index: dict[int, Any] = {}
        for group in groups:
            total = self.across(concatenate([slice_in_dim(x, i, i + 1) for i in group], 0), (0,))
            by_index.update(dict.fromkeys(group, broadcast_in_dim(total, (1, *aval_of(total).shape), range(1, x.ndim))))
        return concatenate([by_index[i] for i in range(aval_of(x).shape[0])], 0)


def _times(x: Array, size: int) -> Array:
    aval = aval_of(x)
    return mul(x, Literal(dtypes.scalar_type_of(aval.dtype)(size), ShapedArray((), aval.dtype, aval.weak_type)))


def _psum_transpose(cotangent: Array, operand: Any, *, axes: Any, axis_index_groups: Any) -> list[Any]:
    return [psum.bind_positional((cotangent,), (axes, axis_index_groups))]


psum = AxisReduction(
    "psum", "Return the sum over mapped axes; of a Python number, a Python number.", "6, 6, 6", reduce_sum, _times,
    jvp=LINEAR, transpose=_psum_transpose,
)


def _of_best(primitive: AxisReduction, primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    """The tangent of the extreme element, or the mean of those of several equal ones."""
    result = primitive.bind_positional(primals, tuple(parameters.values()))
    chosen = converted(elementwise.eq(primals[0], result), aval_of(result).dtype)
    moved = psum.bind_positional((mul(tangents[0], chosen),), tuple(parameters.values()))
    return result, elementwise.div(moved, psum.bind_positional((chosen,), tuple(parameters.values())))


pmax: AxisReduction = AxisReduction(
    "pmax", "Return the largest elements over mapped axes.", "3, 3, 3", reduce_max, lambda x, n: x,
    jvp=lambda *a, **k: _of_best(pmax, *a, **k),
)
pmin: AxisReduction = AxisReduction(
    "pmin", "Return the smallest elements over mapped axes.", "1, 1, 1", reduce_min, lambda x, n: x,
    jvp=lambda *a, **k: _of_best(pmin, *a, **k),
)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Return the mean over a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of indices that together hold each index once: each group has its own mean.

    Returns:
        An array, or a tree, of the shapes of `x`; of integers it is floating.

    Raises:
        NameError: there is no such axis.
        TypeError: the groups are no lists of integers.
        ValueError: the groups do not hold each index once.

    Example:
        >>> xtrace.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    axes = _names(axis_name)
    groups = _groups("pmean", axis_index_groups, axes)
    count = axis_size(axes) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        return psum(leaf, axes, axis_index_groups=axis_index_groups) / count

    return _tree_map(one, "pmean", x)


# Data moved along the axis


class _Moved(Primitive):
    """A collective that moves data along one mapped axis, which its parameter `axis_name` names."""

    def __init__(self, name: str, parameters: Sequence[str], operation: Any, abstract: Any, **rules: Any) -> None:
        super().__init__(
            name, parameters, abstract=abstract, emit=_not_mapped, operation=operation,
            effects=_effects_of("axis_name"), memoised=False, **rules,
        )

    def apply_checked(self, x: Any, parameters: tuple[Any, ...]) -> Any:
        """Bind; wrong sizes are found here, since a batch rule would not look at them."""
        self.abstract_eval((operand_aval(self.name, x, "x"),), parameters)
        return self.bind_positional((x,), parameters)


def _elsewhere(mapped: MappedAxis, axis_name: Any, name: str) -> bool:
    """Whether the operation is along another axis than the one that is batched."""
    names = _names(axis_name)
    if mapped.name in names and len(names) > 1:
        raise NotImplementedError(f"{name} over several axes {names} of which one is vmapped; use one after the other")
    return mapped.name not in names


def _gathered_shape(x: ShapedArray, dimension: int, size: int, tiled: bool) -> tuple[int, ...]:
    if tiled:
        return (*x.shape[:dimension], x.shape[dimension] * size, *x.shape[dimension + 1 :])
    return (*x.shape[:dimension], size, *x.shape[dimension:])


def _all_gather_abstract(
    x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: Any
) -> ShapedArray:
    """The operands of all indices, one after the other."""
    return x.update(shape=_gathered_shape(x, all_gather_dimension, axis_size, tiled))


def _all_gather_batch(
    mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, all_gather_dimension: int,
    axis_index_groups: Any, axis_name: Any, axis_size: int, tiled: bool,
) -> tuple[Any, int | None]:
    (x,), (place,) = operands, places
    if _elsewhere(mapped, axis_name, "all_gather"):
        x = move_axis(x, place or 0, 0)
        return all_gather_p.bind_positional(
            (x,), (all_gather_dimension + 1, axis_index_groups, axis_name, axis_size, tiled)
        ), 0
    x = with_axis(x, place, mapped.size)
    if axis_index_groups is not None:
        parts = {i: [slice_in_dim(x, j, j + 1) for j in g] for g in axis_index_groups for i in g}
        rows = [_joined(concatenate(parts[i], 0), all_gather_dimension, tiled) for i in range(mapped.size)]
        return concatenate([broadcast_in_dim(r, (1, *r.shape), range(1, r.ndim + 1)) for r in rows], 0), 0
    return _joined(x, all_gather_dimension, tiled), None


def _joined(x: Array, dimension: int, tiled: bool) -> Array:
    """Return `x` with axis 0, which counts the indices, at `dimension`, joined with the one there if tiled."""
    size, *rest = aval_of(x).shape
    x = move_axis(x, 0, dimension)
    if not tiled:
        return x
    return reshape(x, (*rest[:dimension], size * rest[dimension], *rest[dimension + 1 :]))


def _all_gather_transpose(
    cotangent: Array, x: Any, *, all_gather_dimension: int, axis_index_groups: Any, axis_name: Any, axis_size: int,
    tiled: bool,
) -> list[Any]:
    parameters = (axis_index_groups, axis_name, axis_size, all_gather_dimension, tiled)
    return [reduce_scatter_p.bind_positional((cotangent,), parameters)]


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """Gather the values of all indices of a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of indices that together hold each index once: each group has its own result.
        axis: the position of the new axis.
        tiled: whether the values are joined along `axis` instead of stacked.
        to: the kind of the result under ``shard_map``; it changes nothing here.

    Returns:
        An array, or a tree, of the same dtypes.

    Raises:
        NameError: there is no such axis.
        TypeError: the groups are no lists of integers.
        ValueError: the groups do not hold each index once.

    Example:
        >>> xtrace.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.arange(2))
        Array([[0, 1],
               [0, 1]], dtype=int32)
    """
    names = _names(axis_name)
    groups = _groups("all_gather", axis_index_groups, names)
    size = axis_size(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        ndim = operand_aval("all_gather", leaf, "x").ndim
        dimension = canonical_axis("all_gather", axis, ndim + (not tiled))
        return all_gather_p.bind_positional((leaf,), (dimension, groups, names, size, bool(tiled)))

    return _tree_map(one, "all_gather", x)


all_gather_p = _Moved(
    "all_gather", ("all_gather_dimension", "axis_index_groups", "axis_name", "axis_size", "tiled"), all_gather,
    _all_gather_abstract, jvp=LINEAR, transpose=_all_gather_transpose, batch=_all_gather_batch,
)


def _reduce_scatter_abstract(
    x: ShapedArray, *, axis_size: int, scatter_dimension: int, tiled: bool, **_: Any
) -> ShapedArray:
    """The sum over all indices, of which each keeps one part."""
    shape, length = list(x.shape), x.shape[scatter_dimension]
    if tiled:
        if length % axis_size:
            raise ValueError(f"psum_scatter: axis {scatter_dimension} of size {length} has no {axis_size} equal parts")
        shape[scatter_dimension] = length // axis_size
    else:
        if length != axis_size:
            raise ValueError(
                f"psum_scatter: axis {scatter_dimension} must have the size {axis_size} of the mapped axis, it has "
                f"{length}; with tiled=True it may be a multiple"
            )
        del shape[scatter_dimension]
    return x.update(shape=tuple(shape))


def _reduce_scatter_batch(
    mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axis_index_groups: Any,
    axis_name: Any, axis_size: int, scatter_dimension: int, tiled: bool,
) -> tuple[Any, int]:
    (x,), (place,) = operands, places
    if _elsewhere(mapped, axis_name, "psum_scatter"):
        x = move_axis(x, place or 0, 0)
        return reduce_scatter_p.bind_positional(
            (x,), (axis_index_groups, axis_name, axis_size, scatter_dimension + 1, tiled)
        ), 0
    if axis_index_groups is not None:
        raise NotImplementedError("psum_scatter with axis_index_groups along an axis of vmap")
    total = _times(x, mapped.size) if place is None else reduce_sum(x, (place,))
    if tiled:
        shape = aval_of(total).shape
        parts = (axis_size, shape[scatter_dimension] // axis_size)
        total = reshape(total, (*shape[:scatter_dimension], *parts, *shape[scatter_dimension + 1 :]))
    return total, scatter_dimension


def _reduce_scatter_transpose(
    cotangent: Array, x: Any, *, axis_index_groups: Any, axis_name: Any, axis_size: int, scatter_dimension: int,
    tiled: bool,
) -> list[Any]:
    return [
        all_gather_p.bind_positional((cotangent,), (scatter_dimension, axis_index_groups, axis_name, axis_size, tiled))
    ]


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sum over a mapped axis, and scatter the sum: each index keeps its part.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        scatter_dimension: the axis of which each index keeps a part; it has the size of the mapped axis and goes away,
            unless `tiled`.
        axis_index_groups: lists of indices that together hold each index once: each group has its own sum.
        tiled: whether the axis stays; its size is a multiple of the mapped one's.

    Returns:
        An array, or a tree, of the same dtypes.

    Raises:
        NameError: there is no such axis.
        ValueError: the sizes do not agree.

    Example:
        >>> xtrace.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.arange(4).reshape(2, 2))
        Array([2, 4], dtype=int32)
    """
    names = _names(axis_name)
    groups = _groups("psum_scatter", axis_index_groups, names)
    size = axis_size(names) if groups is None else len(groups[0])

    def one(leaf: Any) -> Any:
        dimension = canonical_axis("psum_scatter", scatter_dimension, operand_aval("psum_scatter", leaf, "x").ndim)
        return reduce_scatter_p.apply_checked(leaf, (groups, names, size, dimension, bool(tiled)))

    return _tree_map(one, "psum_scatter", x)


reduce_scatter_p = _Moved(
    "reduce_scatter", ("axis_index_groups", "axis_name", "axis_size", "scatter_dimension", "tiled"), psum_scatter,
    _reduce_scatter_abstract, jvp=LINEAR, transpose=_reduce_scatter_transpose, batch=_reduce_scatter_batch,
)


def _all_to_all_abstract(
    x: ShapedArray, *, axis_index_groups: Any, axis_name: Any, concat_axis: int, split_axis: int, tiled: bool
) -> ShapedArray:
    """What is split along one axis here is joined along another there."""
    size = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    shape = list(x.shape)
    if tiled:
        if shape[split_axis] % size:
            raise ValueError(f"all_to_all: axis {split_axis} of size {shape[split_axis]} has no {size} equal parts")
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


def _all_to_all_batch(
    mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axis_index_groups: Any,
    axis_name: Any, concat_axis: int, split_axis: int, tiled: bool,
) -> tuple[Any, int]:
    (x,), (place,) = operands, places
    names = _names(axis_name)
    if mapped.name not in names:
        x = move_axis(x, place or 0, 0)
        return all_to_all_p.bind_positional(
            (x,), (axis_index_groups, axis_name, concat_axis + 1, split_axis + 1, tiled)
        ), 0
    if axis_index_groups is not None:
        raise NotImplementedError("all_to_all with axis_index_groups along an axis of vmap")
    x = with_axis(x, place, mapped.size)
    if tiled:
        shape = aval_of(x).shape
        count = mapped.size * axis_size([n for n in names if n != mapped.name])
        parts = (count, shape[split_axis + 1] // count)
        x = reshape(x, (*shape[: split_axis + 1], *parts, *shape[split_axis + 2 :]))
    x = _exchanged(mapped, move_axis(x, split_axis + 1, 1), names)
    x = move_axis(x, 1, concat_axis + 1)
    if tiled:
        shape = aval_of(x).shape
        joined = shape[concat_axis + 1] * shape[concat_axis + 2]
        x = reshape(x, (*shape[: concat_axis + 1], joined, *shape[concat_axis + 3 :]))
    return x, 0


def _exchanged(mapped: MappedAxis, x: Array, names: tuple[Any, ...]) -> Array:
    """Return `x`, mapped at its axis 0, with the parts along its axis 1 exchanged over the named axes."""
    shape, place = aval_of(x).shape, names.index(mapped.name)
    before, after = names[:place], names[place + 1 :]
    x = reshape(x, (mapped.size, axis_size(before), mapped.size, axis_size(after), *shape[2:]))
    # The axis of the parts becomes the mapped one, and the mapped one that of what comes from each index.
    x = move_axis(move_axis(x, 2, 0), 1, 2)
    if before or after:
        x = reshape(move_axis(x, 2, 1), (mapped.size, mapped.size, shape[1] // mapped.size, *shape[2:]))
        x = all_to_all_p.bind_positional((x,), (None, (*before, *after), 2, 2, False))
        x = move_axis(reshape(x, (mapped.size, mapped.size, axis_size(before), axis_size(after), *shape[2:])), 1, 2)
    return reshape(x, shape)


def _all_to_all_transpose(
    cotangent: Any, x: Any, *, axis_index_groups: Any, axis_name: Any, concat_axis: int, split_axis: int, tiled: bool
) -> list[Any]:
    return [all_to_all_p.bind_positional((cotangent,), (axis_index_groups, axis_name, split_axis, concat_axis, tiled))]


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Exchange parts: index i of the mapped axis gets part i of each value.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        split_axis: the axis that is split; it has the size of the mapped axis and goes away, unless `tiled`.
        concat_axis: the position of the new axis, or with `tiled` the axis along which parts are joined.
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
    groups = _groups("all_to_all", axis_index_groups, _names(axis_name))
    axis_size(axis_name)

    def one(leaf: Any) -> Any:
        ndim = operand_aval("all_to_all", leaf, "x").ndim
        split, joined = (canonical_axis("all_to_all", a, ndim) for a in (split_axis, concat_axis))
        return all_to_all_p.apply_checked(leaf, (groups, axis_name, joined, split, bool(tiled)))

    return _tree_map(one, "all_to_all", x)


all_to_all_p = _Moved(
    "all_to_all", ("axis_index_groups", "axis_name", "concat_axis", "split_axis", "tiled"), all_to_all,
    _all_to_all_abstract, jvp=LINEAR, transpose=_all_to_all_transpose, batch=_all_to_all_batch,
)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap a mapped axis with an axis of the value.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis: the axis of `x`, of the size of the mapped one.
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


def _ppermute_abstract(x: ShapedArray, **_: Any) -> ShapedArray:
    """The operand of another index."""
    return x


def _ppermute_batch(
    mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axis_name: Any, perm: Any
) -> tuple[Any, int]:
    (x,), (place,) = operands, places
    if _elsewhere(mapped, axis_name, "ppermute"):
        return ppermute_p.bind_positional((x,), (axis_name, perm)), place or 0
    x = with_axis(x, place, mapped.size)
    source = {destination: origin for origin, destination in perm}
    nothing = zeros(aval_of(x).update(shape=(1, *aval_of(x).shape[1:]))) if len(source) < mapped.size else None
    parts = [slice_in_dim(x, source[i], source[i] + 1) if i in source else nothing for i in range(mapped.size)]
    return concatenate(parts, 0), 0


def _ppermute_transpose(cotangent: Array, x: Any, *, axis_name: Any, perm: Any) -> list[Any]:
    return [ppermute_p.bind_positional((cotangent,), (axis_name, tuple([(there, here) for here, there in perm])))]


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Move values from index to index of a mapped axis.

    Args:
        x: an array or a tree of arrays.
        axis_name: the name of the mapped axis, or a tuple of names.
        perm: pairs (source, destination), each index at most once on each side.

    Returns:
        An array, or a tree, like `x`; zeros at indices that are no destination.

    Raises:
        NameError: there is no such axis.
        TypeError: `perm` does not hold pairs of integers.
        ValueError: an index is a source or a destination twice, or does not exist.

    Example:
        >>> xtrace.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(1, 4))
        Array([0, 1, 2], dtype=int32)
    """
    names = _names(axis_name)
    size = axis_size(names)
    pairs = integer_rows("ppermute", "perm", perm, 2)
    for kind, indices in zip(("sources", "destinations"), zip(*pairs, strict=True), strict=False):
        if len(set(indices)) != len(indices) or any(not 0 <= i < size for i in indices):
            raise ValueError(f"ppermute {kind} must be different indices from 0 to {size - 1}, got {pairs}")
    return _tree_map(lambda leaf: ppermute_p.bind_positional((leaf,), (names, pairs)), "ppermute", x)


ppermute_p = _Moved(
    "ppermute", ("axis_name", "perm"), ppermute, _ppermute_abstract,
    jvp=LINEAR, transpose=_ppermute_transpose, batch=_ppermute_batch,
)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Exchange the values along a mapped axis: index i gets that of index ``perm[i]``.

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
    order = integer_tuple("pshuffle", "perm", perm)
    size = axis_size(axis_name)
    if sorted(order) != list(range(size)):
        raise ValueError(f"pshuffle: perm must be a permutation of the indices 0 to {size - 1}, got {order}")
    return ppermute(x, axis_name, list(zip(order, range(size), strict=True)))


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
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

    def one(leaf: Any) -> Any:
        here = elementwise.eq(axis_index(axis_name), Literal(source, ShapedArray((), dtypes.int32)))
        return psum(elementwise.select(here, leaf, zeros(operand_aval("pbroadcast", leaf, "x"))), axis_name)

    return _tree_map(one, "pbroadcast", x)


# Where on the axis


def _axis_index_abstract(*, axis_name: Any) -> ShapedArray:
    """The index along a mapped axis."""
    size_of_axis(axis_name)
    return ShapedArray((), dtypes.int32)


def _axis_index_batch(mapped: MappedAxis, operands: Any, places: Any, *, axis_name: Any) -> tuple[Any, int]:
    return iota(np.int32, mapped.size), 0


def axis_index(axis_name: Any) -> Any:
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
    names = _names(axis_name)
    total, index = 1, None
    for n in reversed(names):
        own = axis_index_p.bind_positional((), (n,))
        own = own if total == 1 else _times(own, total)
        index = own if index is None else add_any(own, index)
        total *= size_of_axis(n)
    return index


axis_index_p = Primitive(
    "axis_index", ("axis_name",), abstract=_axis_index_abstract, emit=_not_mapped, operation=axis_index,
    effects=_effects_of("axis_name"), jvp=no_rule("axis_index has no operand to differentiate by"),
    batch=_axis_index_batch, memoised=False,
)
