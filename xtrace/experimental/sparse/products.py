"""Products of BCOO arrays: elementwise products, contractions and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.api.operators.promotion import promote_dtypes
from xtrace._src.api.tracing import eval_shape
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapeDtypeStruct
from xtrace._src.core.integers import integer_tuple
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.contractions.convolution_shapes import conv_dimension_numbers, padtype_to_pads
from xtrace._src.sparse import index_rows
from xtrace._src.sparse.batch_axes import map_over_batch
from xtrace._src.sparse.bcoo_primitives import bcoo_fromdense_p
from xtrace._src.sparse.contractions import (
    Numbers,
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_spdot_general_p,
    merge_rows,
    product_rows,
)
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage, check_coordinates
from xtrace.experimental.sparse.layout_changes import bcoo_update_layout, refuse_sharding
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.indexing.where import where

__all__ = [
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
]


def resolve_contraction(lhs: Any, rhs: Any, dimension_numbers: Any, dtype: Any) -> tuple[Numbers, Any]:
    """Return canonical dimension numbers and the result's type; raise dense arrays' TypeError for wrong ones."""
    numbers: Any = tuple([tuple([integer_tuple("dimension_numbers", x, function="dot_general") for x in pair])
                          for pair in dimension_numbers])
    common = np.promote_types(lhs.dtype, rhs.dtype) if dtype is None else dtype
    types = [ShapeDtypeStruct(x.shape, common) for x in (lhs, rhs)]
    result = eval_shape(lambda x, y: dot_general(x, y, numbers), *types)
    ranks = len(lhs.shape), len(rhs.shape)
    numbers = tuple([
        tuple([tuple([i % n for i in axes]) for axes, n in zip(pair, ranks, strict=True)]) for pair in numbers
    ])
    return numbers, result


def find_swap_permutation(numbers: Numbers, lhs_rank: int, rhs_rank: int) -> tuple[int, ...]:
    """Return the permutation of axes from ``dot_general(rhs, lhs)`` to ``dot_general(lhs, rhs)``."""
    (lhs_contracted, rhs_contracted), (lhs_batch, _) = numbers
    batch = len(lhs_batch)
    lhs_free = lhs_rank - len(lhs_contracted) - batch
    rhs_free = rhs_rank - len(rhs_contracted) - batch
    return (
        *range(batch), *range(batch + rhs_free, batch + rhs_free + lhs_free), *range(batch, batch + rhs_free)
    )


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None, preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Any:
    """Multiply two arrays, at least one of them a BCOO array, and sum over pairs of axes.

    Args:
        lhs, rhs: BCOO arrays, or one of them and a dense array.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, sequences of axes. Of two
            sparse arrays, contracting axes must be sparse axes, and batch axes must be batch axes.
        precision: without effect.
        preferred_element_type: the dtype of the result; None for the common one.
        out_sharding: must be None.

    Returns:
        A BCOO array of two BCOO arrays, else a dense array. The axes are the batch axes, then the others of `lhs`, then
        the others of `rhs`.

    Raises:
        NotImplementedError: the layouts of two sparse arrays do not allow the product.
        TypeError: neither operand is a BCOO array, or axes and sizes do not agree.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
        >>> sparse.bcoo_dot_general(mat, jnp.array([1.0, 3.0]), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([6., 1.], dtype=float32)
    """
    refuse_sharding(out_sharding)
    sparse = [isinstance(x, CoordinateStorage) for x in (lhs, rhs)]
    if not any(sparse):
        raise TypeError("bcoo_dot_general: neither operand is a BCOO array; use lax.dot_general")
    lhs, rhs = (x if is_sparse else asarray(x) for x, is_sparse in zip((lhs, rhs), sparse, strict=True))
    for x, is_sparse in zip((lhs, rhs), sparse, strict=True):
        if is_sparse:
            x.layout()
    numbers, result = resolve_contraction(lhs, rhs, dimension_numbers, preferred_element_type)
    dtype = np.dtype(result.dtype)
    if all(sparse):
        data, indices = bcoo_spdot_general_p.bind(
            *lhs._bufs, *rhs._bufs, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info, dimension_numbers=numbers,
            preferred_element_type=dtype,
        )
        return lhs.remake(data, indices, result.shape)
    if sparse[0]:
        return bcoo_dot_general_p.bind(
            *lhs._bufs, rhs, dimension_numbers=numbers, preferred_element_type=dtype, lhs_spinfo=lhs._info
        )
    contracted, batch = numbers
    swapped = bcoo_dot_general_p.bind(
        *rhs._bufs, lhs, dimension_numbers=(contracted[::-1], batch[::-1]), preferred_element_type=dtype,
        lhs_spinfo=rhs._info,
    )
    return swapped.transpose(find_swap_permutation(numbers, len(lhs.shape), len(rhs.shape)))


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: Any) -> Array:
    """Compute elements of a product of two dense arrays, at the indices of a BCOO array.

    Args:
        A, B: dense arrays.
        indices: the indices of a BCOO array of the shape of the product.
        dimension_numbers: ``((A_contracting, B_contracting), (A_batch, B_batch))``, sequences of axes.

    Returns:
        The data of the BCOO array with these indices.

    Raises:
        TypeError: axes and sizes do not agree.
        ValueError: `indices` do not fit the shape of the product.

    Example:
        >>> from xtrace.experimental import sparse
        >>> numbers = (((1,), (0,)), ((), ()))
        >>> indices = jnp.array([[0, 1]])
        >>> sparse.bcoo_dot_general_sampled(jnp.eye(2), jnp.ones((2, 2)), indices, dimension_numbers=numbers)
        Array([1.], dtype=float32)
    """
    _, (left, right) = promote_dtypes((asarray(A), asarray(B)))
    rows = asarray(indices)
    numbers, result = resolve_contraction(left, right, dimension_numbers, None)
    if rows.ndim < 2 or rows.ndim - 2 + rows.shape[-1] > len(result.shape):
        raise ValueError(
            f"bcoo_dot_general_sampled: indices of shape {rows.shape} do not fit a product of shape {result.shape}"
        )
    return bcoo_dot_general_sampled_p.bind(left, right, rows, dimension_numbers=numbers)


def bcoo_multiply_dense(sp_mat: Any, v: ArrayLike) -> Array:
    """Multiply a BCOO array elementwise by a dense array, which is broadcast to its shape.

    Args:
        sp_mat: a BCOO array.
        v: a dense array, which broadcasts to the shape of `sp_mat`.

    Returns:
        The data of the product, which has the indices of `sp_mat`.

    Raises:
        NotImplementedError: `v` does not broadcast to the shape of `sp_mat`.
        TypeError: `sp_mat` is not a BCOO array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.bcoo_multiply_dense(sparse.BCOO.fromdense(jnp.array([0.0, 2.0])), jnp.array([5.0, 7.0]))
        Array([14.], dtype=float32)
    """
    mat, dense = check_coordinates(sp_mat, "sp_mat"), asarray(v)
    layout = mat.layout()
    pad = mat.ndim - dense.ndim
    if pad < 0 or any(n not in (1, size) for n, size in zip(dense.shape, mat.shape[max(pad, 0) :], strict=True)):
        raise NotImplementedError(
            f"bcoo_multiply_dense: the product of a sparse array of shape {mat.shape} and a dense one of shape "
            f"{dense.shape} is larger than the sparse array, or does not exist; convert with todense() if that is what "
            "you want"
        )
    _, (data, dense) = promote_dtypes((mat.data, dense))
    dense = dense.reshape((1,) * pad + dense.shape)
    sizes = [mat.shape[i] for i in layout.sparse_axes]

    def multiply(data: Array, rows: Array, v: Array) -> Array:
        long = [i for i in range(layout.n_sparse) if v.shape[i] == sizes[i] and sizes[i] != 1]
        v = v.squeeze(tuple([i for i in range(layout.n_sparse) if i not in long]))
        if long:
            v = index_rows.gather_axes(v, index_rows.select_columns(rows, long), range(len(long)))
        return data * v

    return map_over_batch(multiply, mat.shape[: layout.n_batch], data, mat.indices, dense)


def bcoo_multiply_sparse(lhs: Any, rhs: Any) -> Any:
    """Multiply two BCOO arrays elementwise.

    Args:
        lhs, rhs: BCOO arrays with the same numbers of axes and of dense axes; axes of size 1 are broadcast.

    Returns:
        A BCOO array with one stored element for each pair of stored elements.

    Raises:
        NotImplementedError: the operands have different numbers of dense axes.
        TypeError: an operand is not a BCOO array, or they have different numbers of axes.
        ValueError: the shapes do not broadcast together.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.array([0.0, 2.0]))
        >>> sparse.bcoo_multiply_sparse(mat, mat).todense()
        Array([0., 4.], dtype=float32)
    """
    lhs, rhs = check_coordinates(lhs, "lhs"), check_coordinates(rhs, "rhs")
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            f"bcoo_multiply_sparse: the operands must have as many axes; they have shapes {lhs.shape} and {rhs.shape}"
        )
    if any(m != n and 1 not in (m, n) for m, n in zip(lhs.shape, rhs.shape, strict=True)):
        raise ValueError(f"bcoo_multiply_sparse: the shapes {lhs.shape} and {rhs.shape} do not broadcast together")
    if lhs.layout().n_dense != rhs.layout().n_dense:
        raise NotImplementedError(
            f"bcoo_multiply_sparse: the operands {lhs} and {rhs} have different numbers of dense axes; update_layout "
            "changes them"
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch) for x in (lhs, rhs))
    shape = tuple([n if m == 1 else m for m, n in zip(lhs.shape, rhs.shape, strict=True)])
    axes = range(n_batch, n_batch + lhs.n_sparse)
    sizes = [lhs.shape[i] for i in axes], [rhs.shape[i] for i in axes]
    common = [shape[i] for i in axes]
    equal = [i for i, (m, n) in enumerate(zip(*sizes, strict=True)) if m == n]
    # The result's index columns from the left operand, and from the right one.
    left = [i for i, n in enumerate(common) if sizes[0][i] == n]
    right = [i for i in range(len(common)) if i not in left]
    order = [(*left, *right).index(i) for i in range(len(common))]
    nse = lhs.nse * rhs.nse

    def multiply(*buffers: Array) -> tuple[Array, Array]:
        data, rows = product_rows(buffers[:2], buffers[2:], sizes, (equal, equal), (left, right))  # type: ignore[arg-type]
        return merge_rows(data, index_rows.select_columns(rows, order), common, nse)

    _, elements = promote_dtypes((lhs.data, rhs.data))
    buffers = elements[0], lhs.indices, elements[1], rhs.indices
    data, indices = map_over_batch(multiply, shape[:n_batch], *buffers)
    return lhs.remake(data, indices, shape)


def _store_all(x: ArrayLike, like: CoordinateStorage) -> Any:
    """Convert a dense array to a sparse array of the class of `like`, with all elements stored."""
    dense = asarray(x)
    data, indices = bcoo_fromdense_p.bind(
        dense, nse=dense.size, n_batch=0, n_dense=0, index_dtype=np.dtype(like.indices.dtype)
    )
    return like.remake(data, indices, dense.shape)


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: None = None, preferred_element_type: Any = None, out_sharding: None = None,
) -> Any:
    """Convolve a signal with a kernel; at least one of them is a BCOO array.

    Args:
        lhs: an array of shape ``(1, 1, width)``.
        rhs: an array of shape ``(1, 1, window)``.
        window_strides: must be ``(1,)``.
        padding: ``"SAME"``, ``"VALID"``, or one pair: the numbers of zeros before and after the signal.
        lhs_dilation, rhs_dilation: None, or ``(1,)``.
        dimension_numbers: the order of the axes as in `lax.conv_general_dilated`; None for this order.
        feature_group_count, batch_group_count: must be 1.
        precision: without effect.
        preferred_element_type: the dtype of the result; None for the common one.
        out_sharding: must be None.

    Returns:
        A BCOO array of shape ``(1, 1, positions)``.

    Raises:
        NotImplementedError: the operands have other shapes, or strides, dilation or groups are given.
        TypeError: neither operand is a BCOO array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> signal = sparse.BCOO.fromdense(jnp.array([[[1.0, 0.0, 2.0]]]))
        >>> kernel = sparse.BCOO.fromdense(jnp.array([[[1.0, 3.0]]]))
        >>> sparse.bcoo_conv_general_dilated(signal, kernel, window_strides=(1,), padding="VALID").todense()
        Array([[[1., 6.]]], dtype=float32)
    """
    refuse_sharding(out_sharding)
    if not isinstance(lhs, CoordinateStorage):
        lhs, rhs = _store_all(lhs, check_coordinates(rhs, "rhs")), rhs
    elif not isinstance(rhs, CoordinateStorage):
        rhs = _store_all(rhs, lhs)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    plain = all(x is None or set(x) <= {1} for x in (window_strides, lhs_dilation, rhs_dilation))
    grouped = (feature_group_count, batch_group_count) != (1, 1)
    in_order = all(spec == (0, 1, 2) for spec in numbers)
    if not plain or grouped or not in_order or lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError(
            "bcoo_conv_general_dilated: sparse arrays are convolved only if they have shapes (1, 1, width) and (1, 1, "
            f"window), without strides, dilation and groups; got shapes {lhs.shape} and {rhs.shape}"
        )
    width, window = lhs.shape[2], rhs.shape[2]
    if isinstance(padding, str):
        padding = padtype_to_pads((width,), (window,), (1,), padding)
    ((before, after),) = (integer_tuple("padding", pair) for pair in padding)
    count = max(width + before + after - window + 1, 0)
    lhs, rhs = (bcoo_update_layout(x, n_batch=2, n_dense=0) for x in (lhs, rhs))
    _, elements = promote_dtypes((lhs.data, rhs.data))
    if preferred_element_type is not None:
        elements = [x.astype(preferred_element_type) for x in elements]

    def convolve(x: Array, places: Array, y: Array, offsets: Array) -> tuple[Array, Array]:
        sizes = (width,), (window,)
        product, pairs = product_rows((x, places), (y, offsets), sizes, ((), ()), ((0,), (0,)))
        positions = pairs[:, :1] - pairs[:, 1:] + before
        inside = (positions >= 0) & (positions < count) & ~index_rows.outside(pairs, (width, window))[:, None]
        return index_rows.mask_rows(product, inside[:, 0]), where(inside, positions, count)

    data, indices = map_over_batch(convolve, (1, 1), elements[0], lhs.indices, elements[1], rhs.indices)
    return lhs.remake(data, indices, (1, 1, count))
