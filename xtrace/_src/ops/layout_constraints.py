"""The layouts that values have inside of programs."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import linear
from xtrace._src.core import pytree
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.memory_layout import Layout, check_default_order
from xtrace._src.core.sharding_rules import same
from xtrace._src.core.sum_rules import linear_in_all
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


def _abstract(operand: ShapedArray, *, layout: Layout) -> ShapedArray:
    """Return the operand, if the layout has its axes."""
    layout.check_compatible_aval(operand.shape)
    return operand


def _emit(builder: FunctionBuilder, x: Value, *, layout: Layout) -> Value:
    rank = len(layout.major_to_minor)
    order = f"[dense<{list(reversed(layout.major_to_minor))}> : tensor<{rank}xindex>]"
    return builder.line(
        f'stablehlo.custom_call @LayoutConstraint({x.name}) {{backend_config = "", operand_layouts = {order}, '
        f"result_layouts = {order}}} : ({x.type}) -> {x.type}",
        builder.results[0],
    )


def _transpose(cotangent: Array, operand: object, *, layout: Layout) -> Array:
    return layout_constraint.bind(cotangent, layout=layout)


def _batch(mapped: MappedAxis, operands: Any, axes: Any, *, layout: Layout) -> tuple[Any, int]:
    (x,), (axis,) = operands, axes
    inner = [i + (i >= axis) for i in layout.major_to_minor]
    return layout_constraint.bind(x, layout=layout.update(major_to_minor=(axis, *inner))), axis


@linear(
    "layout_constraint", ("layout",), sharding=same, sums=linear_in_all,
    abstract=_abstract, emit=_emit, transpose=_transpose, batch=_batch
)
def layout_constraint(x: Array, layout: Layout) -> Array:
    """Return `x`, which lies in memory as `layout` says."""
    return layout_constraint.bind(x, layout=layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return a tree with its arrays in given layouts, inside of a traced function.

    Args:
        x: a pytree of arrays.
        layouts: the `Layout` of each array, or a tree prefix of these. Outside of traced functions only the default
            one, with the axes in order.

    Returns:
        A pytree of the same structure.

    Raises:
        NotImplementedError: outside of traced functions, for another order of axes.
        ValueError: `layouts` is no Layout or no tree prefix of `x`, or does not have the axes of the array.

    Example:
        >>> layout = xtrace.experimental.layout.Layout((1, 0))
        >>> transposed = lambda x: xtrace.experimental.layout.with_layout_constraint(x.T, layout)
        >>> xtrace.jit(transposed)(jnp.ones((2, 3))).shape
        (3, 2)
    """
    leaves, tree = pytree.tree_flatten(x)
    try:
        given = pytree.broadcast_prefix(layouts, x)
    except ValueError as error:
        raise ValueError(f"with_layout_constraint: layouts must be a tree prefix of x: {error}") from None
    results = []
    for leaf, layout in zip(leaves, given, strict=True):
        if not isinstance(layout, Layout):
            raise ValueError(f"with_layout_constraint: layouts must be of type Layout, got {abbreviate(layout)}")
        try:
            layout.check_compatible_aval(aval_of(leaf).shape)
        except ValueError as error:
            raise ValueError(f"with_layout_constraint: {error}") from None
        if current_trace.get() is base_trace and not isinstance(leaf, Tracer):
            check_default_order("layouts", layout)
            results.append(leaf)
        else:
            results.append(layout_constraint.bind(leaf, layout=layout))
    return pytree.tree_unflatten(tree, results)
