"""Ragged contractions, by groups of rows, and contractions of operands with scales."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import BILINEAR, mul
from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    convert_element_type,
    convert_to,
    move_axis,
    operand_aval,
    reshape,
    transpose,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.dtypes import DType
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.primitive import no_rule, primitive
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.sum_rules import nonlinear
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.contractions.contraction import (
    AxisPairs,
    Precision,
    canonical_axis_pairs,
    canonical_precision,
    dot_general,
    move_axes,
)
from xtrace._src.ops.elementwise.comparisons import bitwise_and, le, lt
from xtrace._src.ops.elementwise.elementwise import sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.cumulative import cumsum
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.lower import emit_private_function
from xtrace._src.transforms.stage import stage

_Axes = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The axes of a `ragged_dot_general`.

    Args:
        dot_dimension_numbers: the axes of the contraction, as in `dot_general`.
        lhs_ragged_dimensions: the axis of lhs that is split into groups, a sequence of one.
        rhs_group_dimensions: the group axis of rhs, a sequence of one, or of none if rhs has no groups.

    Example:
        >>> lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0]).lhs_ragged_dimensions
        (0,)
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Any
    rhs_group_dimensions: Any

    def __post_init__(self) -> None:
        pairs = canonical_axis_pairs(self.dot_dimension_numbers, function="RaggedDotDimensionNumbers")
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple([int(i) for i in getattr(self, name)]))


class _Arrangement:
    """The axes of a ragged product by role, for operands of given ranks."""

    def __init__(self, lhs_ndim: int, rhs_ndim: int, numbers: RaggedDotDimensionNumbers) -> None:
        (self.lhs_summed, self.rhs_summed), (self.lhs_batch, self.rhs_batch) = numbers.dot_dimension_numbers
        self.group = numbers.rhs_group_dimensions
        self.ragged = numbers.lhs_ragged_dimensions[0]
        self.lhs_free = tuple([i for i in range(lhs_ndim) if i not in (*self.lhs_summed, *self.lhs_batch)])
        taken = (*self.rhs_summed, *self.rhs_batch, *self.group)
        self.rhs_free = tuple([i for i in range(rhs_ndim) if i not in taken])
        # The role of the ragged axis.
        self.summed, self.batched = self.ragged in self.lhs_summed, self.ragged in self.lhs_batch
        self.kind = self.lhs_summed if self.summed else self.lhs_batch if self.batched else self.lhs_free
        self.place = self.kind.index(self.ragged)

    def outer(self) -> _Axes:
        """Return the axes of lhs that correspond to the leading axes of `group_sizes`."""
        return self.kind[: self.place] if self.batched else (*self.lhs_batch, *self.kind[: self.place])


def _span(start: int, count: int) -> _Axes:
    return tuple(range(start, start + count))


def _ragged_abstract(
    lhs: ShapedArray, rhs: ShapedArray, group_sizes: ShapedArray, *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, preferred_element_type: object, **_: object,
) -> ShapedArray:
    name, numbers = "ragged_dot_general", ragged_dot_dimension_numbers
    pairs, ragged, group = numbers.dot_dimension_numbers, numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if not dtypes.is_integer(group_sizes.dtype):
        raise TypeError(f"{name} requires that group_sizes are integers, got {group_sizes.dtype.name}.")
    if len(ragged) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension, got {ragged}.")
    if not 0 <= ragged[0] < lhs.ndim:
        raise TypeError(
            f"{name} requires lhs ragged dimension numbers to be axes of the lhs, counted from the front, got "
            f"{ragged[0]} for lhs of rank {lhs.ndim}."
        )
    (summed, rhs_summed), (batch, rhs_batch) = pairs
    free = ragged[0] not in (*summed, *batch)
    if free and len(group) != 1:
        raise TypeError(
            f"{name} requires exactly one rhs group dimension when lhs ragged dimension is noncontracting, got {group}."
        )
    if not free and group:
        raise TypeError(
            f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is contracting or batch, got "
            f"{group}."
        )
    if any(not 0 <= i < rhs.ndim for i in group):
        raise TypeError(f"{name} requires rhs group dimensions to be axes of the rhs, got {group} for rank {rhs.ndim}.")
    if any(i in (*rhs_summed, *rhs_batch) for i in group):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and batch dimensions, got "
            f"{group}."
        )
    # Without its group axis, rhs is an operand of dot_general.
    plain = rhs.update(shape=tuple([n for i, n in enumerate(rhs.shape) if i not in group]))
    shifted = [tuple([i - sum(g < i for g in group) for i in axes]) for axes in (rhs_summed, rhs_batch)]
    product = dot_general.infer_types(
        (lhs, plain), (((summed, shifted[0]), (batch, shifted[1])), None, preferred_element_type, None)
    )
    if not group_sizes.ndim:
        raise TypeError(f"{name}: expected rank of group_sizes to be >=1, got a scalar.")
    outer = tuple([lhs.shape[i] for i in _Arrangement(lhs.ndim, rhs.ndim, numbers).outer()])
    count = group_sizes.shape[-1]
    if group_sizes.ndim > 1 and group_sizes.shape[:-1] != outer:
        raise TypeError(
            f"{name}: expected group_sizes to have shape {(*outer, count)} or {(count,)}, got {group_sizes.shape}."
        )
    if free and rhs.shape[group[0]] != count:
        raise TypeError(f"{name}: expected rhs group dimension size to be {count}, got {rhs.shape[group[0]]}.")
    grouped = ragged[0] in summed
    weak = lhs.weak_type and rhs.weak_type and group_sizes.weak_type
    return ShapedArray((count, *product.shape) if grouped else product.shape, product.dtype, weak)


def _mask_groups(x: Array, sizes: Array, place: int) -> Array:
    """Return a copy of `x` for each group, along a new first axis, with zeros outside of the group on axis `place`.

    The last axis of `sizes` is the group axis; the others are the leading axes of `x`.
    """
    shape, aval = aval_of(x).shape, aval_of(sizes)
    count = aval.shape[-1]
    outer = shape[:place]
    if aval.ndim == 1 and outer:
        sizes = broadcast_in_dim(sizes, (*outer, count), (place,))
    sizes = convert_to(sizes, dtypes.int64 if dtypes.bit_width(aval.dtype) == 64 else dtypes.int32)
    ends = cumsum(sizes, place)
    whole = (*outer, count, shape[place])
    rows = broadcasted_iota(aval_of(ends).dtype, whole, place + 1)
    starts, ends = [broadcast_in_dim(v, whole, _span(0, place + 1)) for v in (sub(ends, sizes), ends)]
    inside = move_axis(bitwise_and(le(starts, rows), lt(rows, ends)), place, 0)
    inside = broadcast_in_dim(inside, (count, *shape), _span(0, place + 2))
    repeated = broadcast_in_dim(x, (count, *shape), _span(1, len(shape)))
    return select_n(inside, zeros(aval_of(repeated)), repeated)


def _ragged_formula(
    lhs: Array, rhs: Array, sizes: Array, *, ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: object,
    preferred_element_type: object, **_: object,
) -> Array:
    numbers = ragged_dot_dimension_numbers
    if numbers.lhs_ragged_dimensions[0] in numbers.dot_dimension_numbers[1][0]:
        # The product does not depend on the groups of batch indices.
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, precision, preferred_element_type)
    a = _Arrangement(lhs.ndim, rhs.ndim, numbers)
    count = len(a.lhs_batch)
    if a.summed:
        left = _mask_groups(transpose(lhs, (*a.lhs_batch, *a.lhs_summed, *a.lhs_free)), sizes, count + a.place)
        right = _mask_groups(transpose(rhs, (*a.rhs_batch, *a.rhs_summed, *a.rhs_free)), sizes, count + a.place)
        batch, summed = _span(0, count + 1), _span(count + 1, len(a.lhs_summed))
        return dot_general(left, right, ((summed, summed), (batch, batch)), precision, preferred_element_type)
    left = _mask_groups(transpose(lhs, (*a.lhs_batch, *a.lhs_free, *a.lhs_summed)), sizes, count + a.place)
    summed = _span(1 + count + len(a.lhs_free), len(a.lhs_summed))
    pairs = ((*summed, 0), (*a.rhs_summed, *a.group)), (_span(1, count), a.rhs_batch)
    return dot_general(left, rhs, pairs, precision, preferred_element_type)


def _ragged_emit(
    builder: FunctionBuilder, lhs: Value, rhs: Value, sizes: Value, *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: object, **others: object,
) -> Value:
    numbers, result = ragged_dot_dimension_numbers, builder.results[0]
    # XLA compiles all forms of the operation only for TPUs; for GPUs it refuses groups of batches.
    if builder.platform != "tpu":
        return lower_fun(_ragged_formula)(
            builder, lhs, rhs, sizes, ragged_dot_dimension_numbers=numbers, precision=precision, **others
        )
    if lhs.aval.dtype != rhs.aval.dtype:
        lhs, rhs = builder.convert(lhs, result.dtype), builder.convert(rhs, result.dtype)
    (summed, rhs_summed), (batch, rhs_batch) = numbers.dot_dimension_numbers
    fields = {
        "lhs_batching_dimensions": batch, "rhs_batching_dimensions": rhs_batch,
        "lhs_contracting_dimensions": summed, "rhs_contracting_dimensions": rhs_summed,
        "lhs_ragged_dimensions": numbers.lhs_ragged_dimensions, "rhs_group_dimensions": numbers.rhs_group_dimensions,
    }
    text = ", ".join([f"{key} = {attributes.list_text(axes)}" for key, axes in fields.items() if axes])
    pair = precision if isinstance(precision, tuple) else (Precision.DEFAULT,) * 2
    return builder.op(
        "chlo.ragged_dot", lhs, rhs, sizes,
        precision_config=f"[{', '.join([f'#chlo<precision {p.name}>' for p in pair])}]",
        ragged_dot_dimension_numbers=f"#chlo.ragged_dot<{text}>",
    )


def _ragged_transpose(
    cotangent: Array, lhs: Any, rhs: Array, sizes: ArrayLike, *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: object, preferred_element_type: object,
    **_: object
) -> list[Any]:
    numbers, left = ragged_dot_dimension_numbers, type(lhs) is UndefinedPrimal
    a = _Arrangement(aval_of(lhs).ndim, aval_of(rhs).ndim, numbers)
    if a.batched:
        of_operands = dot_general.rule("transpose")(
            cotangent, lhs, rhs, dimension_numbers=numbers.dot_dimension_numbers, precision=precision,
            preferred_element_type=preferred_element_type, out_sharding=None,
        )
        return [*of_operands, None]
    wanted = lhs.aval if left else rhs.aval
    batch, free, others, summed = len(a.lhs_batch), len(a.lhs_free), len(a.rhs_free), len(a.lhs_summed)
    # Below, b stands for batch axes, m and n for the free axes of lhs and rhs, k for summed axes, g for the group axis.
    swapped = precision[::-1] if isinstance(precision, tuple) else precision
    pairs: AxisPairs
    group: _Axes
    if left and not a.summed:
        # [b m n] with [g b k n] gives [b m k].
        known = transpose(rhs, (*a.group, *a.rhs_batch, *a.rhs_summed, *a.rhs_free))
        operands, order = (cotangent, known), precision
        pairs = (_span(batch + free, others), _span(1 + batch + summed, others)), (_span(0, batch), _span(1, batch))
        ragged, group, placed = batch + a.place, (0,), (*a.lhs_batch, *a.lhs_free, *a.lhs_summed)
    elif left:
        # [b k n] with [g b m n] gives [b k m].
        known = transpose(rhs, (*a.rhs_batch, *a.rhs_summed, *a.rhs_free))
        operands, order = (known, cotangent), swapped
        pairs = (_span(batch + summed, others), _span(1 + batch + free, others)), (_span(0, batch), _span(1, batch))
        ragged, group, placed = batch + a.place, (0,), (*a.lhs_batch, *a.lhs_summed, *a.lhs_free)
    elif not a.summed:
        # [b m k] with [b m n] gives [g b k n].
        known = transpose(lhs, (*a.lhs_batch, *a.lhs_free, *a.lhs_summed))
        operands, order = (known, cotangent), precision
        pairs = (_span(batch, free), _span(batch, free)), (_span(0, batch), _span(0, batch))
        ragged, group, placed = batch + a.place, (), (*a.group, *a.rhs_batch, *a.rhs_summed, *a.rhs_free)
    else:
        # [b k m] with [g b m n] gives [b k n].
        known = transpose(lhs, (*a.lhs_batch, *a.lhs_summed, *a.lhs_free))
        operands, order = (known, cotangent), precision
        pairs = (_span(batch + summed, free), _span(1 + batch, free)), (_span(0, batch), _span(1, batch))
        ragged, group, placed = batch + a.place, (0,), (*a.rhs_batch, *a.rhs_summed, *a.rhs_free)
    of_operand = ragged_dot_general.bind_positional(
        (*operands, sizes),
        (RaggedDotDimensionNumbers(pairs, (ragged,), group), order, preferred_element_type, None, None),
    )
    of_operand = convert_to(move_axes(of_operand, placed), wanted.dtype, wanted.weak_type)
    return [of_operand, None, None] if left else [None, of_operand, None]


def _batch_group_sizes(mapped: MappedAxis, sizes: Array, axis: int | None, outer: _Axes, place: int) -> Array:
    """Return group sizes with the mapped axis at `place`; `outer` has the sizes of the other leading axes."""
    own = aval_of(sizes).ndim - (axis is not None)
    if axis is None and own == 1:
        return sizes
    sizes = mapped.place(sizes, axis)
    if own == 1 and outer:
        count = aval_of(sizes).shape[-1]
        sizes = broadcast_in_dim(sizes, (mapped.size, *outer, count), (0, 1 + len(outer)))
    return move_axis(sizes, 0, place)


def _shift(axes: _Axes) -> _Axes:
    return tuple([i + 1 for i in axes])


def _ragged_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, **others: object,
) -> tuple[Any, int]:
    numbers, (lhs, rhs, sizes), (left, right, sized) = ragged_dot_dimension_numbers, operands, axes
    shape = list(aval_of(lhs).shape)
    if left is not None:
        del shape[left]
    a = _Arrangement(len(shape), aval_of(rhs).ndim - (right is not None), numbers)
    outer = tuple([shape[i] for i in a.outer()])
    batch, free = len(a.lhs_batch), not (a.summed or a.batched)

    def product(x: ArrayLike, y: ArrayLike, sizes: ArrayLike, pairs: AxisPairs, ragged: int, group: _Axes) -> Any:
        numbers = RaggedDotDimensionNumbers(pairs, (ragged,), group)
        return ragged_dot_general.bind_positional((x, y, sizes), (numbers, *others.values()))

    if free and right is not None and left is None and sized is None:
        # The mapped axis is a free axis of rhs.
        rhs = move_axis(rhs, right, 0)
        pairs = (a.lhs_summed, _shift(a.rhs_summed)), (a.lhs_batch, _shift(a.rhs_batch))
        return product(lhs, rhs, sizes, pairs, a.ragged, _shift(a.group)), batch + len(a.lhs_free)
    lhs = mapped.place(lhs, left)
    if free and right is None:
        # The mapped axis is a free axis of lhs, outside of the ragged one, so that rhs is not repeated.
        sizes = _batch_group_sizes(mapped, sizes, sized, outer, batch)
        pairs = (_shift(a.lhs_summed), a.rhs_summed), (_shift(a.lhs_batch), a.rhs_batch)
        return product(lhs, rhs, sizes, pairs, a.ragged + 1, a.group), batch
    rhs = mapped.place(rhs, right)
    sizes = _batch_group_sizes(mapped, sizes, sized, outer, 0)
    pairs = (_shift(a.lhs_summed), _shift(a.rhs_summed)), ((0, *_shift(a.lhs_batch)), (0, *_shift(a.rhs_batch)))
    return product(lhs, rhs, sizes, pairs, a.ragged + 1, _shift(a.group)), 1 if a.summed else 0


@primitive(
    ("ragged_dot_dimension_numbers", "precision", "preferred_element_type", "group_offset", "out_sharding"),
    sums=nonlinear, abstract=_ragged_abstract, emit=_ragged_emit, jvp=BILINEAR,
    transpose=_ragged_transpose, batch=_ragged_batch,
)
def ragged_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object = None, preferred_element_type: object = None, group_offset: object = None,
    out_sharding: object = None,
) -> Array:
    """Multiply two arrays as `dot_general` does, with an axis of `lhs` split into consecutive groups.

    If the ragged axis is free, each group has its own part of `rhs`, and elements of no group give zeros. If it is
    contracted, each group has its own sum, on a new first axis of the result. Groups of a batch axis have no effect.

    Args:
        lhs, rhs: arrays.
        group_sizes: integers, the sizes of the groups along the last axis; the axes before it, if any, are the batch
            axes and the axes of the ragged axis's kind before it.
        ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.
        precision: a `Precision`, a name, a pair of these, or None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the more precise of the operands' dtypes.
        group_offset: must be None.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array with the axes of `dot_general`'s result, after the group axis if the ragged axis is contracted.

    Raises:
        TypeError: axes and sizes do not agree, or `group_sizes` are no integers.
        NotImplementedError: `group_offset` or `out_sharding` is given.

    Example:
        >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
        >>> lax.ragged_dot_general(jnp.eye(2), jnp.ones((2, 2, 1)), jnp.array([1, 1]), numbers)
        Array([[1.],
               [1.]], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            ragged_dot_general, out_sharding, lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision,
            preferred_element_type, group_offset,
        )
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset is not supported; leave it at None")
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        raise TypeError(
            "ragged_dot_general: ragged_dot_dimension_numbers must be a lax.RaggedDotDimensionNumbers, got "
            f"{abbreviate(ragged_dot_dimension_numbers)}"
        )
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type)
    parameters = (
        ragged_dot_dimension_numbers, canonical_precision(precision), preferred_element_type, None, None
    )
    return ragged_dot_general.bind_positional((lhs, rhs, group_sizes), parameters)


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: object = None,
    preferred_element_type: object = None, group_offset: object = None, out_sharding: object = None,
) -> Array:
    """Multiply consecutive groups of rows, each group by its own matrix.

    Args:
        lhs: a matrix (M, K).
        rhs: an array (G, K, N), a matrix for each group.
        group_sizes: an integer vector (G,), the number of rows of each group.
        precision: a `Precision`, its name, a pair, or None.
        preferred_element_type: the dtype of sums and result; None for the operands' dtype.
        group_offset: not supported; leave it at None.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array (M, N), with zeros for rows after the last group.

    Raises:
        NotImplementedError: `group_offset` is given.
        TypeError: the shapes do not agree.

    Example:
        >>> lax.ragged_dot(jnp.ones((3, 1)), jnp.array([[[1.0]], [[2.0]]]), jnp.array([1, 2]))
        Array([[1.],
               [2.],
               [2.]], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type, group_offset, out_sharding
    )


# Operands with scales


def _scaled_abstract(
    lhs: ShapedArray, rhs: ShapedArray, lhs_scale: ShapedArray, rhs_scale: ShapedArray, *, dimension_numbers: AxisPairs,
    preferred_element_type: np.dtype[Any],
) -> ShapedArray:
    ranks = [x.ndim for x in (lhs, rhs, lhs_scale, rhs_scale)]
    if len(set(ranks)) > 1:
        raise TypeError(
            f"scaled_dot: lhs, rhs, lhs_scale and rhs_scale must have the same rank, got {', '.join(map(str, ranks))}"
        )
    product = dot_general.infer_types((lhs, rhs), (dimension_numbers, None, preferred_element_type, None))
    contracting, _ = dimension_numbers
    for side, x, scale, summed in zip(("lhs", "rhs"), (lhs, rhs), (lhs_scale, rhs_scale), contracting, strict=True):
        for axis, (size, part) in enumerate(zip(x.shape, scale.shape, strict=True)):
            if axis not in summed:
                if size != part:
                    raise TypeError(
                        f"scaled_dot: axis {axis} of {side}_scale must have the size {size} of {side}, got {part}"
                    )
            elif part == 0 or size % part or size // part < 2:
                raise TypeError(
                    f"scaled_dot: axis {axis} of {side}_scale is contracted: its size must divide the size {size} of "
                    f"{side} and leave at least two elements for each scale, got {part}"
                )
    return ShapedArray(product.shape, product.dtype)


def _apply_scale(x: Array, scale: Array, dtype: DType) -> Array:
    """Return the product of `x` and its scales in `dtype`; each scale applies to a block of an axis."""
    own, shape = aval_of(scale).shape, aval_of(x).shape
    blocks = [n for size, part in zip(shape, own, strict=True) for n in (part, size // part if part else 1)]
    scale = reshape(broadcast_in_dim(scale, blocks, _span(0, 2 * len(own))[::2]), shape)
    return mul(convert_to(x, dtype), convert_to(scale, dtype))


def _scaled_formula(
    lhs: Array, rhs: Array, lhs_scale: Array, rhs_scale: Array, *, dimension_numbers: AxisPairs,
    preferred_element_type: np.dtype[Any],
) -> Array:
    dtype = preferred_element_type
    left, right = _apply_scale(lhs, lhs_scale, dtype), _apply_scale(rhs, rhs_scale, dtype)
    return dot_general(left, right, dimension_numbers, preferred_element_type=dtype)


def _scaled_emit(
    builder: FunctionBuilder, *values: Value, dimension_numbers: AxisPairs, preferred_element_type: np.dtype[Any]
) -> Value:
    """Write a composite operation, which backends may implement, with its decomposition."""
    result = builder.results[0]
    jaxpr, _ = stage(
        lambda *xs: [
            _scaled_formula(*xs, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)
        ],
        [x.aval.strip_weak_type() for x in values],
        DebugInfo("emission", "scaled_dot", None, None),
    )
    function = emit_private_function(builder, jaxpr, "xla.scaled_dot")
    pairs = ", ".join([f"[{', '.join(map(attributes.list_text, pair))}]" for pair in dimension_numbers])
    names, types = ", ".join(x.name for x in values), ", ".join(x.aval.mlir_type for x in values)
    return builder.line(
        f'stablehlo.composite "xla.scaled_dot" {names} {{composite_attributes = {{dimension_numbers = [{pairs}], '
        f"preferred_element_type = {dtypes.mlir_name(preferred_element_type)}}}, decomposition = @{function.name}}} : "
        f"({types}) -> {result.mlir_type}",
        result,
    )


def _scaled_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, dimension_numbers: AxisPairs,
    preferred_element_type: np.dtype[Any],
) -> tuple[Any, int]:
    operands = [mapped.place(x, i) for x, i in zip(operands, axes, strict=True)]
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    pairs = (_shift(lhs), _shift(rhs)), ((0, *_shift(lhs_batch)), (0, *_shift(rhs_batch)))
    return scaled_dot.bind_positional(operands, (pairs, preferred_element_type)), 0


@primitive(
    ("dimension_numbers", "preferred_element_type"), abstract=_scaled_abstract, emit=_scaled_emit,
    jvp=no_rule("Differentiation rule for 'scaled_dot' not implemented: scale the operands and use dot_general"),
    batch=_scaled_batch,
)
def scaled_dot(
    lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: object = None, rhs_scale: object = None,
    dimension_numbers: object = None, preferred_element_type: object = None,
) -> Array:
    """Multiply narrow operands times their block scales; each scale applies to a block of a contracted axis.

    Args:
        lhs, rhs: floating arrays.
        lhs_scale, rhs_scale: arrays of the operand's rank and sizes, except that sizes of contracted axes divide the
            operand's sizes; None for ones.
        dimension_numbers: the axes, as in `dot_general`; None for the product of matrices in the last two axes.
        preferred_element_type: the dtype of sums and result; None for bfloat16.

    Returns:
        An array. It has no derivative.

    Raises:
        TypeError: the ranks or sizes do not agree.

    Example:
        >>> x = jnp.ones((1, 2, 4))
        >>> lax.scaled_dot(x, x.swapaxes(1, 2), lhs_scale=jnp.full((1, 2, 1), 2.0)).dtype
        dtype(bfloat16)
    """
    left, right = operand_aval(lhs, "lhs"), operand_aval(rhs, "rhs")
    if left.ndim < 2 or right.ndim < 2:
        raise TypeError(f"scaled_dot: lhs and rhs must have at least 2 axes, got {left.shape} and {right.shape}")
    if dimension_numbers is None:
        batch = _span(0, left.ndim - 2)
        dimension_numbers = (((left.ndim - 1,), (left.ndim - 2,)), (batch, batch))
    pairs = canonical_axis_pairs(dimension_numbers)
    if preferred_element_type is None:
        preferred_element_type = dtypes.bfloat16
    dtype = requested_dtype(preferred_element_type)
    scales = [
        _ones(aval, summed) if scale is None else scale
        for aval, scale, summed in zip((left, right), (lhs_scale, rhs_scale), pairs[0], strict=True)
    ]
    return scaled_dot.bind_positional((lhs, rhs, *scales), (pairs, dtype))


def _ones(aval: ShapedArray, summed: _Axes) -> Array:
    shape = tuple([1 if i in summed else n for i, n in enumerate(aval.shape)])
    one = convert_element_type(1.0, dtypes.bfloat16)
    return convert_element_type(broadcast_in_dim(one, shape, ()), "float8_e8m0fnu")
