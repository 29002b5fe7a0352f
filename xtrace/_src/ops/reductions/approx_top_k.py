"""Approximate top-k: the largest elements along an axis; TPUs may miss some, and are much faster so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import FLOAT, is_kind
from xtrace._src.algebra.monoids import highest, lowest
from xtrace._src.algebra.vector_space import canonical_axis, operand_aval
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr
from xtrace._src.core.primitive import primitive
from xtrace._src.core.tables import memoize
from xtrace._src.ops.arrays.sorting import take_positions
from xtrace._src.ops.elementwise.comparisons import gt, lt
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.lower import emit_private_function
from xtrace._src.transforms.stage import stage
from xtrace._src.xla.custom_calls.approx_top_k import count_top_k_candidates


def _abstract(
    operand: ShapedArray, *, k: int, reduction_dimension: int, recall_target: float, is_max_k: bool,
    reduction_input_size_override: int, aggregate_to_topk: bool,
) -> list[ShapedArray]:
    name = "approx_max_k" if is_max_k else "approx_min_k"
    if not is_kind(operand.dtype, (FLOAT,)):
        raise ValueError(f"{name}: operand must be of a floating dtype, got {operand.dtype.name}; use top_k")
    axis = canonical_axis(reduction_dimension, operand.ndim, function=name)
    size = operand.shape[axis]
    if not 0 < k <= size:
        raise ValueError(f"{name}: k must be from 1 to the size {size} of axis {axis} of the operand, got {k}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"{name}: recall_target must be above 0 and at most 1, got {recall_target}")
    if not aggregate_to_topk:
        k = count_top_k_candidates(size, operand.ndim, k, recall_target, reduction_input_size_override)
    shape = (*operand.shape[:axis], k, *operand.shape[axis + 1 :])
    # The positions have the weak type of the values, as in JAX.
    return [ShapedArray(shape, operand.dtype, operand.weak_type), ShapedArray(shape, dtypes.int32, operand.weak_type)]


@memoize(64)
def _comparator(dtype: np.dtype[Any], is_max_k: bool) -> Jaxpr:
    value, position = ShapedArray((), dtype), ShapedArray((), dtypes.int32)
    better = gt if is_max_k else lt
    info = DebugInfo("emission", "comparator", None, None)
    return stage(lambda x, y, i, j: [better(x, y)], [value, value, position, position], info)[0]


def _emit(
    builder: FunctionBuilder, x: Value, *, k: int, reduction_dimension: int, recall_target: float, is_max_k: bool,
    reduction_input_size_override: int, aggregate_to_topk: bool,
) -> list[Value]:
    results, dtype = builder.results, x.aval.dtype
    axis = reduction_dimension % x.aval.ndim
    name = f"top_k_{'gt' if is_max_k else 'lt'}_{dtypes.mlir_name(dtype)}_comparator"
    comparator = emit_private_function(builder, _comparator(dtype, is_max_k), name, takes_sizes=False).name
    positions = ShapedArray(x.aval.shape, dtypes.int32)
    counted = builder.iota(positions, axis)
    start = builder.constant((lowest if is_max_k else highest)(dtype), ShapedArray((), dtype))
    operands = [x, counted, start, builder.constant(-1, ShapedArray((), dtypes.int32))]
    # Only TPUs have an approximate algorithm; other platforms sort.
    fallback = "" if builder.platform == "tpu" else "is_fallback = true, "
    options = (
        f"aggregate_to_topk = {'true' if aggregate_to_topk else 'false'}, {fallback}"
        f"recall_target = {recall_target:e} : f32, reduction_dim = {axis} : i64, "
        f"reduction_input_size_override = {reduction_input_size_override} : i64, top_k = {k} : i64"
    )
    names, types = [", ".join(texts) for texts in ([v.name for v in operands], [v.type for v in operands])]
    outputs = ", ".join(a.mlir_type for a in results)
    return builder.line_of_many(
        f"stablehlo.custom_call @ApproxTopK({names}) {{backend_config = {attributes.string('')}, "
        f"called_computations = [@{comparator}], mhlo.backend_config = {{{options}}}}} : ({types}) -> ({outputs})",
        results,
    )


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, reduction_dimension: int, **others: Any
) -> tuple[list[Any], list[Any]]:
    results = approx_top_k.bind(*primals, reduction_dimension=reduction_dimension, **others)
    axis = reduction_dimension % aval_of(primals[0]).ndim
    return results, [take_positions(tangents[0], results[1], axis), None]


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int], *, reduction_dimension: int, **others: Any
) -> tuple[list[Any], list[int]]:
    axis = reduction_dimension % (aval_of(operands[0]).ndim - 1)
    shifted = axis + (axis >= axes[0])
    return approx_top_k.bind(*operands, reduction_dimension=shifted, **others), [axes[0]] * 2


@primitive(
    ("k", "reduction_dimension", "recall_target", "is_max_k", "reduction_input_size_override", "aggregate_to_topk"),
    abstract=_abstract, emit=_emit, jvp=_jvp, batch=_batch, multiple_results=True,
)
def approx_top_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, is_max_k: bool = True,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> list[Any]:
    """Return approximately the `k` largest or smallest elements along an axis, in order, and their positions."""
    function = "approx_max_k" if is_max_k else "approx_min_k"
    operand_aval(operand, function=function)
    axis = to_integer("reduction_dimension", reduction_dimension, function=function)
    override = to_integer("reduction_input_size_override", reduction_input_size_override, function=function)
    k = to_integer("k", k, function=function)
    parameters = (k, axis, float(recall_target), is_max_k, override, bool(aggregate_to_topk))
    return list(approx_top_k.bind_positional((operand,), parameters))


def approx_max_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> Sequence[Any]:
    """Return most of the largest elements along an axis, largest first, and their positions.

    Args:
        operand: a floating array.
        k: the number of elements.
        reduction_dimension: the axis.
        recall_target: the share of them that a TPU finds on average; other platforms find all.
        reduction_input_size_override: the size to count on where `operand` is a part of a larger array; -1 for its own.
        aggregate_to_topk: whether the candidates are sorted and cut to `k`.

    Returns:
        A pair of arrays with `k` elements along the axis, the elements and their int32 positions.

    Raises:
        TypeError: `k` is no integer.
        ValueError: the dtype is not floating, `k` is not from 1 to the size of the axis, or the target not in (0, 1].

    Example:
        >>> lax.approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)[0]
        Array([3., 2.], dtype=float32)
    """
    return approx_top_k(
        operand, k, reduction_dimension, recall_target, True, reduction_input_size_override, aggregate_to_topk
    )


def approx_min_k(
    operand: ArrayLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> Sequence[Any]:
    """Return most of the smallest elements along an axis, smallest first, and their positions.

    Args:
        operand: a floating array.
        k: the number of elements.
        reduction_dimension: the axis.
        recall_target: the share of them that a TPU finds on average; other platforms find all.
        reduction_input_size_override: the size to count on where `operand` is a part of a larger array; -1 for its own.
        aggregate_to_topk: whether the candidates are sorted and cut to `k`.

    Returns:
        A pair of arrays with `k` elements along the axis, the elements and their int32 positions.

    Raises:
        TypeError: `k` is no integer.
        ValueError: the dtype is not floating, `k` is not from 1 to the size of the axis, or the target not in (0, 1].

    Example:
        >>> lax.approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)[0]
        Array([1., 2.], dtype=float32)
    """
    return approx_top_k(
        operand, k, reduction_dimension, recall_target, False, reduction_input_size_override, aggregate_to_topk
    )
