"""Elementwise selection among arrays: `select_n`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.families import add_any
from xtrace._src.algebra.kinds import ANY, check_kind, check_same_dtype
from xtrace._src.algebra.vector_space import LINEAR, broadcast_in_dim, broadcast_like, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import primitive
from xtrace._src.core.shardings.sharding_rules import join
from xtrace._src.core.shardings.sum_rules import linear_after_first
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.elementwise.comparisons import bitwise_and, gt, lt
from xtrace._src.ops.elementwise.constants import constant, constants_like
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

with late_modules(globals()):
    from xtrace._src.transforms.batch import MappedAxis


def _select_abstract(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise ValueError("select_n() must have at least one case")
    if not (dtypes.is_boolean(which.dtype) or dtypes.is_integer(which.dtype)):
        raise TypeError(f"select `which` must be boolean or integer type, got {which.dtype.name}.")
    count = len(cases)
    if dtypes.is_boolean(which.dtype) and count > 2:
        raise TypeError(f"select with boolean `which` cannot have > 2 cases, got {count}.")
    shapes = [c.shape for c in cases]
    if len(set(shapes)) > 1:
        raise TypeError(
            f"select cases must have the same shapes, got {shapes}. xtrace.numpy.where broadcasts; in lax, use "
            "broadcast_in_dim."
        )
    if which.shape and which.shape != shapes[0]:
        raise TypeError(
            f"select `which` must be scalar or have the same shape as cases, got `which` shape {which.shape} but case "
            f"shape {shapes[0]}."
        )
    check_same_dtype("select", cases, "where")
    return ShapedArray(shapes[0], cases[0].dtype, all(c.weak_type for c in cases))


def _select_emit(builder: FunctionBuilder, which: Value, *cases: Value) -> Value:
    if dtypes.is_boolean(which.aval.dtype):
        return cases[0] if len(cases) == 1 else builder.select(which, cases[1], cases[0])
    return _select_between(builder, which, cases, 0)


def _select_between(builder: FunctionBuilder, which: Value, cases: tuple[Value, ...], first: int) -> Value:
    """Write the selection among `cases`, for the indices from `first` on, as a binary tree."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    below = builder.compare("LT", which, constant(builder, first + middle, which))
    chosen = builder.select(
        below, _select_between(builder, which, cases[:middle], first),
        _select_between(builder, which, cases[middle:], first + middle),
    )
    return builder.keep_terms(chosen, builder.results[0])


def _select_transpose(cotangent: Array, which: object, *cases: Array | UndefinedPrimal) -> list[Any]:
    zero = zeros(aval_of(cotangent))
    return [
        None,
        *[
            select_n(which, *[cotangent if j == i else zero for j in range(len(cases))])
            if type(x) is UndefinedPrimal
            else None
            for i, x in enumerate(cases)
        ],
    ]


def _select_batch(mapped: Any, operands: Array, axes: Sequence[int]) -> tuple[Any, int]:
    which, *cases = operands
    if axes[0] is None and not aval_of(which).shape:
        place = next(i for i in axes if i is not None)
        cases = [mapped.place(x, i, place) for x, i in zip(cases, axes[1:], strict=True)]
        return select_n(which, *cases), place
    cases = [mapped.place(x, i) for x, i in zip(cases, axes[1:], strict=True)]
    which, own = mapped.place(which, axes[0]), aval_of(which).ndim - (axes[0] is not None)
    if not own:
        which = broadcast_in_dim(which, aval_of(cases[0]).shape, (0,))
    elif all(i is None and not aval_of(x).shape for x, i in zip(operands[1:], axes[1:], strict=True)):
        # As in JAX, `vmap` spreads scalar cases that it does not map; programs use this.
        cases = [broadcast_in_dim(x, aval_of(which).shape, ()) for x in operands[1:]]
    return select_n(which, *cases), 0


@primitive(
    sharding=join, sums=linear_after_first, abstract=_select_abstract, emit=_select_emit,
    jvp=LINEAR, transpose=_select_transpose, batch=_select_batch, moves_elements=True,
)
def select_n(which: Any, *cases: object) -> Array:
    """Select each element from the case with the index `which`.

    Args:
        which: indices, a scalar or an array of the cases' shape; integers, or booleans for at most two cases. Integers
            out of range are clamped to the first or the last case.
        cases: arrays of one shape and one dtype, at least one.

    Returns:
        An array of the cases' shape and dtype.

    Raises:
        TypeError: `which` has another dtype or shape, or the cases differ in shape or dtype.
        ValueError: there are no cases.

    Example:
        >>> lax.select_n(jnp.array([2, 0]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
        Array([5, 2], dtype=int32)
    """
    return select_n.bind_positional((which, *cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """Select elements of `on_true` where `pred` holds, and of `on_false` elsewhere.

    Args:
        pred: a boolean, or an array of booleans of the shape of the other operands.
        on_true, on_false: arrays of one shape and one dtype.

    Returns:
        An array of the shape and dtype of `on_true`.

    Raises:
        TypeError: `pred` has another dtype or shape, or `on_true` and `on_false` differ in shape or dtype.

    Example:
        >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
        Array([1, 4], dtype=int32)
    """
    return select_n.bind_positional((pred, on_false, on_true))


def _clamp_abstract(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got {name}.shape={bound.shape}, "
                f"operand.shape={x.shape}."
            )
    check_kind("clamp", (x,), (ANY,))
    check_same_dtype("clamp", (low, x, high), "clip")
    return ShapedArray(x.shape, x.dtype, low.weak_type and x.weak_type and high.weak_type)


def _clamp_emit(builder: FunctionBuilder, low: Value, x: Value, high: Value) -> Value:
    types = x.type if low.type == x.type == high.type else f"({low.type}, {x.type}, {high.type}) -> {x.type}"
    return builder.line(f"stablehlo.clamp {low.name}, {x.name}, {high.name} : {types}", builder.results[0])


# The tangent is that of x inside the bounds, that of the bound outside, and 0 where x equals a bound.
def _clamp_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    low, x, high = primals
    result, total = clamp.bind_positional(primals), None
    conditions: tuple[Callable[[], Array], ...] = (
        lambda: bitwise_and(gt(low, x), lt(low, high)), lambda: bitwise_and(gt(x, low), lt(x, high)),
        lambda: lt(high, x),
    )
    for condition, tangent in zip(conditions, tangents, strict=True):
        if tangent is not None:
            tangent = broadcast_like(tangent, result)
            term = select(broadcast_like(condition(), result), tangent, constants_like(result, 0))
            total = term if total is None else add_any(total, term)
    return result, total


def _clamp_batch(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[Any, int]:
    low, x, high = operands
    bounds = []
    x, rank = mapped.place(x, axes[1]), aval_of(x).ndim - (axes[1] is not None)
    for bound, axis in ((low, axes[0]), (high, axes[2])):
        if axis is not None and aval_of(bound).ndim == 1 and rank:
            bound = broadcast_in_dim(bound, aval_of(x).shape, (0,))
        elif axis is not None or aval_of(bound).shape:
            bound = mapped.place(bound, axis)
        bounds.append(bound)
    return clamp(bounds[0], x, bounds[1]), 0


@primitive(sharding=join, abstract=_clamp_abstract, emit=_clamp_emit, jvp=_clamp_jvp, batch=_clamp_batch)
def clamp(min: object, x: ArrayLike, max: object) -> Array:
    """Clip each element to an interval.

    Args:
        min: lower bounds, a scalar or an array of the shape of `x`.
        x: an array of numbers or booleans.
        max: upper bounds, a scalar or an array of the shape of `x`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: a bound has another shape, or the dtypes differ.

    Example:
        >>> lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return clamp.bind_positional((min, x, max))
