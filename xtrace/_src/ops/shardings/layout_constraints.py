"""Constraints of values inside of programs to memory layouts."""

from __future__ import annotations

from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import linear
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.memory_layout import Layout
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.sum_rules import linear_in_all
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

with late_modules(globals()):
    from xtrace._src.transforms.batch import MappedAxis


def _abstract(operand: ShapedArray, *, layout: Layout) -> ShapedArray:
    """Return the operand, if the layout has its axes."""
    layout.check_compatible_aval(operand.shape)
    return operand


def _emit(builder: FunctionBuilder, x: Value, *, layout: Layout) -> Value:
    return emit_layout(builder, x, layout)


def emit_layout(builder: FunctionBuilder, x: Value, layout: Layout) -> Value:
    """Write the constraint of a value to a layout; the physical axes of an extended dtype are the most minor."""
    rank = physical_aval(x.aval).ndim
    axes = [*layout.major_to_minor, *range(len(layout.major_to_minor), rank)]
    order = f"[dense<{axes[::-1]}> : tensor<{rank}xindex>]"
    return builder.line(
        f'stablehlo.custom_call @LayoutConstraint({x.name}) {{backend_config = "", operand_layouts = {order}, '
        f"result_layouts = {order}}} : ({x.type}) -> {x.type}",
        builder.results[0],
    )


def _transpose(cotangent: Array, operand: object, *, layout: Layout) -> Array:
    return layout_constraint.bind(cotangent, layout=layout)


def _batch(mapped: MappedAxis, operands: Any, axes: Any, *, layout: Layout) -> tuple[Any, int]:
    (x,), (axis,) = operands, axes
    return layout_constraint.bind(x, layout=batch_layout(layout, axis)), axis


def batch_layout(layout: Layout, axis: int) -> Layout:
    """Return a layout with a mapped axis at position `axis`, as the most major axis."""
    inner = [i + (i >= axis) for i in layout.major_to_minor]
    return layout.update(major_to_minor=(axis, *inner))


@linear(
    ("layout",), sharding=same, sums=linear_in_all,
    abstract=_abstract, emit=_emit, transpose=_transpose, batch=_batch
)
def layout_constraint(x: Array, layout: Layout) -> Array:
    """Return `x` in the memory layout `layout`."""
    return layout_constraint.bind(x, layout=layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Return a tree of arrays constrained to memory layouts.

    Args:
        x: a pytree of arrays.
        layouts: the `Layout` of each array, or a tree prefix of these.

    Returns:
        A pytree of the same structure.

    Raises:
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
        results.append(layout_constraint.bind(leaf, layout=layout))
    return pytree.tree_unflatten(tree, results)
