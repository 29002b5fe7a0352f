"""Contractions of the buffers of BCOO arrays with dense arrays and with each other.

Each axis has a label. The label of a left axis is its position. A right axis has the label of its left partner, or a
new one. Batch axes are mapped, sparse axes are gathered and scattered, and dense axes are contracted for each stored
element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reduce_sum, reshape, transpose
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core.arrays import Array
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq
from xtrace._src.ops.reductions.reductions import reduce_and
from xtrace._src.sparse import index_rows
from xtrace._src.sparse.batch_axes import map_over_batch
from xtrace._src.sparse.formula_primitives import formula_primitive
from xtrace._src.sparse.layouts import SparseInfo, coordinate_layout

__all__ = ["bcoo_dot_general_p", "bcoo_dot_general_sampled_p", "bcoo_spdot_general_p"]

# ((left contracting axes, right contracting axes), (left batch axes, right batch axes)).
Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
Labels = tuple[int, ...]


def _label(left_rank: int, right_rank: int, numbers: Numbers) -> tuple[Labels, Labels]:
    """Return the labels of the right operand's axes, and of the result's axes in order."""
    (left_contracted, right_contracted), (left_batch, right_batch) = numbers
    right = [left_rank + i for i in range(right_rank)]
    for i, j in zip((*left_contracted, *left_batch), (*right_contracted, *right_batch), strict=True):
        right[j] = i
    free = [i for i in range(left_rank) if i not in (*left_contracted, *left_batch)]
    return tuple(right), (*left_batch, *free, *[i for i in right if i >= left_rank])


def contract_elements(x: Array, x_labels: Labels, y: Array, y_labels: Labels, kept: Labels) -> tuple[Array, Labels]:
    """Contract two arrays over their common labels, except those `kept`; return the result and its labels."""
    common = [i for i in x_labels if i in y_labels]
    batch, contracted = [i for i in common if i in kept], [i for i in common if i not in kept]
    numbers = tuple([
        (tuple(map(x_labels.index, labels)), tuple(map(y_labels.index, labels))) for labels in (contracted, batch)
    ])
    free = [i for labels in (x_labels, y_labels) for i in labels if i not in common]
    result, labels = dot_general(x, y, numbers), (*batch, *free)
    alone = [i for i, label in enumerate(labels) if label not in kept]
    return reduce_sum(result, alone), tuple([label for label in labels if label in kept])


def order_axes(x: Array, labels: Labels, wanted: Labels) -> Array:
    """Return `x` with its labelled axes in the order `wanted`."""
    return transpose(x, tuple(map(labels.index, wanted)))


# The label of the axis of stored elements.
_STORED = -1


def _dot_general(
    lhs_data: Array, lhs_indices: Array, rhs: Array, *, dimension_numbers: Numbers, preferred_element_type: Any,
    lhs_spinfo: SparseInfo,
) -> Array:
    """Contract a BCOO array with a dense array."""
    shape = lhs_spinfo.shape
    layout = coordinate_layout(lhs_data, lhs_indices, shape, function="bcoo_dot_general")
    rhs_labels, result_labels = _label(len(shape), rhs.ndim, dimension_numbers)
    dtype = np.result_type(lhs_data.dtype, rhs.dtype) if preferred_element_type is None else preferred_element_type
    lhs_data, rhs = convert_to(lhs_data, dtype), convert_to(rhs, dtype)
    sparse = tuple(layout.sparse_axes)
    dense = tuple(range(layout.n_batch + layout.n_sparse, len(shape)))
    labels: list[Labels] = []

    def contract(data: Array, rows: Array, rhs: Array, rhs_labels: Labels) -> Array:
        gathered = tuple([i for i in sparse if i in rhs_labels])
        scattered = tuple([i for i in sparse if i in result_labels])
        if gathered:
            at = index_rows.select_columns(rows, [i - layout.n_batch for i in gathered])
            rhs = index_rows.gather_axes(rhs, at, [rhs_labels.index(i) for i in gathered])
            rhs_labels = (_STORED, *[i for i in rhs_labels if i not in gathered])
        kept = (_STORED, *result_labels) if scattered else result_labels
        product, product_labels = contract_elements(data, (_STORED, *dense), rhs, rhs_labels, kept)
        if not scattered:
            labels.append(product_labels)
            return product
        rest = tuple([i for i in product_labels if i != _STORED])
        product = order_axes(product, product_labels, (_STORED, *rest))
        labels.append((*scattered, *rest))
        at = index_rows.select_columns(rows, [i - layout.n_batch for i in scattered])
        return index_rows.add_at_rows(product, at, [shape[i] for i in scattered])

    def map_axis(axis: int, data: Array, rows: Array, rhs: Array, rhs_labels: Labels) -> Array:
        if axis == layout.n_batch:
            return contract(data, rows, rhs, rhs_labels)
        axes: list[int | None] = []
        operands = []
        for x in (data, rows):
            shared = x.shape[0] == 1 != shape[axis]
            operands.append(squeeze(x, (0,)) if shared else x)
            axes.append(None if shared else 0)
        axes.append(rhs_labels.index(axis) if axis in rhs_labels else None)
        rest = tuple([i for i in rhs_labels if i != axis])

        def inner(data: Array, rows: Array, rhs: Array) -> Array:
            return map_axis(axis + 1, data, rows, rhs, rest)

        result = vmap(inner, tuple(axes), axis_size=shape[axis])(operands[0], operands[1], rhs)
        if axis not in result_labels:
            return reduce_sum(result, (0,))
        labels.append((axis, *labels.pop()))
        return result

    result = map_axis(0, lhs_data, lhs_indices, rhs, rhs_labels)
    return order_axes(result, labels[-1], result_labels)


bcoo_dot_general_p = formula_primitive(
    "bcoo_dot_general", ("dimension_numbers", "preferred_element_type", "lhs_spinfo"), _dot_general
)


def _dot_general_sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: Numbers) -> Array:
    """Contract dense arrays, and return the elements of the product at the indices of a BCOO array."""
    b_labels, result_labels = _label(A.ndim, B.ndim, dimension_numbers)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    mapped, sampled = result_labels[:n_batch], result_labels[n_batch : n_batch + n_sparse]
    dense = result_labels[n_batch + n_sparse :]

    def sample(x: Array, labels: Labels, rows: Array) -> tuple[Array, Labels]:
        gathered = [i for i in sampled if i in labels]
        if not gathered:
            return x, labels
        at = index_rows.select_columns(rows, [sampled.index(i) for i in gathered])
        taken = index_rows.gather_axes(x, at, [labels.index(i) for i in gathered])
        return taken, (_STORED, *[i for i in labels if i not in gathered])

    def contract(A: Array, a_labels: Labels, B: Array, b_labels: Labels, rows: Array) -> Array:
        A, a_labels = sample(A, a_labels, rows)
        B, b_labels = sample(B, b_labels, rows)
        product, labels = contract_elements(A, a_labels, B, b_labels, (_STORED, *dense))
        if _STORED not in labels:
            product = broadcast_in_dim(product, (rows.shape[0], *product.shape), tuple(range(1, product.ndim + 1)))
            labels = (_STORED, *labels)
        return order_axes(product, labels, (_STORED, *dense))

    def map_axis(axis: int, A: Array, a_labels: Labels, B: Array, b_labels: Labels, rows: Array) -> Array:
        if axis == n_batch:
            return contract(A, a_labels, B, b_labels, rows)
        label = mapped[axis]
        axes = tuple([labels.index(label) if label in labels else None for labels in (a_labels, b_labels)])
        (size,) = {x.shape[i] for x, i in zip((A, B), axes, strict=True) if i is not None}
        shared = rows.shape[0] == 1 != size
        a_rest, b_rest = (tuple([i for i in labels if i != label]) for labels in (a_labels, b_labels))
        inner = lambda A, B, rows: map_axis(axis + 1, A, a_rest, B, b_rest, rows)  # noqa: E731
        rows = squeeze(rows, (0,)) if shared else rows
        return vmap(inner, (*axes, None if shared else 0))(A, B, rows)

    return map_axis(0, A, tuple(range(A.ndim)), B, b_labels, indices)


bcoo_dot_general_sampled_p = formula_primitive(
    "bcoo_dot_general_sampled", ("dimension_numbers",), _dot_general_sampled
)


def product_rows(
    left: tuple[Array, Array], right: tuple[Array, Array], sizes: tuple[Sequence[int], Sequence[int]],
    equal: tuple[Sequence[int], Sequence[int]], kept: tuple[Sequence[int], Sequence[int]],
) -> tuple[Array, Array]:
    """Return the products of all pairs of stored elements with equal indices in the `equal` columns, and their indices.

    left, right: data with one axis, and rows of indices. sizes: the bounds of the indices. kept: the columns of each
    that are indices of the result. Pairs that do not agree get indices out of bounds.
    """
    counts = left[1].shape[0], right[1].shape[0]
    shape = counts[0] * counts[1]

    def repeat(x: Array, side: int) -> Array:
        wide = broadcast_in_dim(x, (*counts, *x.shape[1:]), (side, *range(2, x.ndim + 1)))
        return reshape(wide, (shape, *x.shape[1:]))

    rows = [repeat(x[1], side) for side, x in enumerate((left, right))]
    data = repeat(left[0], 0) * repeat(right[0], 1)
    keys = [index_rows.select_columns(r, columns) for r, columns in zip(rows, equal, strict=True)]
    agree = reduce_and(eq(keys[0], convert_to(keys[1], keys[0].dtype)), (1,))
    for r, size in zip(rows, sizes, strict=True):
        agree = bitwise_and(agree, ~index_rows.outside(r, size))
    parts = [convert_to(index_rows.select_columns(r, c), rows[0].dtype) for r, c in zip(rows, kept, strict=True)]
    indices = concatenate(parts, 1)
    outer = [size[i] for size, columns in zip(sizes, kept, strict=True) for i in columns]
    return index_rows.mask_rows(data, agree), index_rows.put_outside(indices, ~agree, outer)


def merge_rows(data: Array, rows: Array, sizes: Sequence[int], nse: int) -> tuple[Array, Array]:
    """Sum the data of equal rows of indices; return sums and distinct rows, in rising order."""
    rows, order, groups = index_rows.group_rows(rows, sizes)
    summed = index_rows.add_at_rows(index_rows.take_rows(data, order), reshape(groups, (groups.size, 1)), (nse,))
    return summed, index_rows.take_group_rows(rows, groups, nse, sizes)


def _spdot_general(
    lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *, lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo, dimension_numbers: Numbers, preferred_element_type: Any,
) -> tuple[Array, Array]:
    """Contract two BCOO arrays, and return the buffers of the result."""
    (left_contracted, right_contracted), (left_batch, right_batch) = dimension_numbers
    left = coordinate_layout(lhs_data, lhs_indices, lhs_spinfo.shape, function="bcoo_dot_general")
    right = coordinate_layout(rhs_data, rhs_indices, rhs_spinfo.shape, function="bcoo_dot_general")
    if left.n_dense or right.n_dense:
        raise NotImplementedError(
            "bcoo_dot_general: two sparse arrays are contracted only if they have no dense axes; "
            "update_layout(n_dense=0) makes these sparse"
        )
    for name, layout, contracted, batch in (
        ("left", left, left_contracted, left_batch), ("right", right, right_contracted, right_batch)
    ):
        if any(i >= layout.n_batch for i in batch) or any(i < layout.n_batch for i in contracted):
            raise NotImplementedError(
                "bcoo_dot_general: of two sparse arrays, batch dimensions must be batch axes and contracting "
                f"dimensions sparse axes; the {name} operand has {layout.n_batch} batch axes, and the numbers are "
                f"{dimension_numbers}. update_layout changes the kinds of axes"
            )
    others = [i for i in range(right.n_batch) if i not in right_batch]
    shapes = lhs_spinfo.shape, rhs_spinfo.shape
    equal = [i - left.n_batch for i in left_contracted], [i - right.n_batch for i in right_contracted]
    kept = tuple([
        [i for i in range(layout.n_sparse) if i not in columns]
        for layout, columns in zip((left, right), equal, strict=True)
    ])
    if others and kept[0]:
        raise ValueError(
            f"bcoo_dot_general: the batch axes {others} of the right operand would follow sparse axes of the left one "
            "in the result; make them sparse with update_layout first"
        )
    sizes = tuple([
        [shape[i] for i in layout.sparse_axes] for shape, layout in zip(shapes, (left, right), strict=True)
    ])
    outer = [size[i] for size, columns in zip(sizes, kept, strict=True) for i in columns]
    nse = min(int(np.prod(outer)), left.nse * right.nse)
    dtype = preferred_element_type or np.result_type(lhs_data.dtype, rhs_data.dtype)
    # The batch axes of the result: common axes, axes of the left operand only, axes of the right operand only.
    own = [i for i in range(left.n_batch) if i not in left_batch]
    batch = (*[shapes[0][i] for i in (*left_batch, *own)], *[shapes[1][i] for i in others])

    def align(x: Array, order: Sequence[int], before: int, after: int) -> Array:
        n_batch = len(order)
        x = transpose(x, (*order, *range(n_batch, x.ndim)))
        common = len(left_batch)
        shape = (*x.shape[:common], *[1] * before, *x.shape[common:n_batch], *[1] * after, *x.shape[n_batch:])
        return reshape(x, shape)

    def multiply(ld: Array, li: Array, rd: Array, ri: Array) -> tuple[Array, Array]:
        data, rows = product_rows((ld, li), (rd, ri), (sizes[0], sizes[1]), equal, (kept[0], kept[1]))
        return merge_rows(data, rows, outer, nse)

    buffers = [align(x, (*left_batch, *own), 0, len(others)) for x in (convert_to(lhs_data, dtype), lhs_indices)]
    buffers += [align(x, (*right_batch, *others), len(own), 0) for x in (convert_to(rhs_data, dtype), rhs_indices)]
    return map_over_batch(multiply, batch, *buffers)


bcoo_spdot_general_p = formula_primitive(
    "bcoo_spdot_general", ("lhs_spinfo", "rhs_spinfo", "dimension_numbers", "preferred_element_type"), _spdot_general,
    multiple_results=True,
)
