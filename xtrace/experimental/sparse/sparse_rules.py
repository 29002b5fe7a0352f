"""The rules of operations on sparse arrays. Operands and results can be sparse or dense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.elementwise.elementwise import div
from xtrace.experimental.sparse.conversions import bcoo_sum_duplicates, bcoo_todense, bcoo_transpose
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage
from xtrace.experimental.sparse.indexing import (
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_rev,
    bcoo_slice,
)
from xtrace.experimental.sparse.layout_changes import (
    bcoo_broadcast_in_dim,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_squeeze,
)
from xtrace.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from xtrace.experimental.sparse.row_functions import bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general
from xtrace.experimental.sparse.row_storage import RowStorage
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate

Rule = Callable[..., Any]

# Functions that map zero to zero. They apply to the stored elements alone.
ZERO_PRESERVING = (
    "abs", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cbrt", "ceil", "conj", "convert_element_type", "copy",
    "erf", "erf_inv", "expm1", "floor", "imag", "log1p", "neg", "real", "reduce_precision", "round", "sign", "sin",
    "sinh", "sqrt", "square", "stop_gradient", "tan", "tanh",
)
# The linear functions among them also apply to duplicates.
_LINEAR = frozenset(("conj", "copy", "imag", "neg", "real", "stop_gradient"))
# Functions that do not map zero to zero.
DENSE_RESULTS = (
    "acos", "acosh", "bessel_i0e", "cos", "cosh", "digamma", "eq", "erfc", "exp", "exp2", "ge", "gt", "is_finite", "le",
    "lgamma", "log", "logistic", "lt", "ne", "not", "rsqrt",
)


def refuse_dense_result(primitive: Primitive) -> NotImplementedError:
    """Return the error for an operation with a dense result."""
    return NotImplementedError(
        f"sparse rule for {primitive.name} is not implemented because it would result in dense output. If this is your "
        "intent, use sparse.todense() to convert your arguments to dense arrays."
    )


def apply_to_data(primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
    """Apply an operation that maps zero to zero to the stored elements."""
    mat = operands[0] if primitive.name in _LINEAR else _sum_duplicates(operands[0])
    return mat.with_data(primitive.bind_positional((mat.data,), parameters))


def _sum_duplicates(mat: Any) -> Any:
    """Sum duplicates unless there are none: nonlinear functions need unique indices."""
    return mat if mat.unique_indices else bcoo_sum_duplicates(mat, mat.nse)


def _is_sparse(x: object) -> bool:
    return isinstance(x, JAXSparse)


def _have_same_pattern(x: Any, y: Any) -> bool:
    return x.pattern is not None and x.pattern is y.pattern


def _multiply(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        if _have_same_pattern(x, y) and x.unique_indices:
            return x.with_data(x.data * y.data)
        return bcoo_multiply_sparse(x, y)
    mat, v = (x, y) if _is_sparse(x) else (y, x)
    return mat.with_data(bcoo_multiply_dense(mat, v))


def _divide(x: Any, y: Any) -> Any:
    if _is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. If this is your "
            "intent, use sparse.todense() to convert your arguments to dense arrays."
        )
    y = asarray(y)
    if y.ndim:
        # Elements out of bounds are divided by 1, not by 0.
        ones = x.with_data((x.data == x.data) | True)
        inside = bcoo_multiply_dense(ones, broadcast_to(asarray(True), x.shape))
        y = where(inside, bcoo_multiply_dense(x.with_data(inside), y.astype(x.dtype)), 1)
    return x.with_data(div(x.data, broadcast_to(asarray(y, dtype=x.dtype), x.data.shape)))


def _add(x: Any, y: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y):
        return _add_sparse(x, y)
    mat, dense = (x, y) if _is_sparse(x) else (y, x)
    if tuple(dense.shape) != mat.shape:
        raise NotImplementedError(
            f"Addition of a sparse array of shape {mat.shape} and a dense one of shape {tuple(dense.shape)} would make "
            "a dense array that is larger than the dense operand. If this is your intent, use sparse.todense() to "
            "convert the sparse array"
        )
    return bcoo_todense(mat) + dense


def _add_sparse(x: Any, y: Any) -> Any:
    if x.shape != y.shape:
        raise NotImplementedError(
            f"Addition of sparse arrays of different shapes, {x.shape} and {y.shape}; broadcast one first"
        )
    if _have_same_pattern(x, y):
        return x.with_data(x.data + y.data)
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        raise NotImplementedError(
            f"Addition of sparse arrays with different batch or dense axes, {x} and {y}; change one with update_layout"
        )
    batch = x.n_batch

    def join(first: Array, second: Array) -> Array:
        lead = [max(m, n) for m, n in zip(first.shape[:batch], second.shape[:batch], strict=True)]
        return concatenate([broadcast_to(b, (*lead, *b.shape[batch:])) for b in (first, second)], batch)

    return x.remake(join(x.data, y.data), join(x.indices, y.indices.astype(x.indices.dtype)))


def _subtract(x: Any, y: Any) -> Any:
    return _add(x, y.with_data(-y.data) if _is_sparse(y) else -y)


def _integer_power(x: Any, *, y: int) -> Any:
    if y <= 0:
        raise NotImplementedError(
            f"sparse rule for integer_pow with non-positive exponent {y} is not implemented because it would result in "
            "dense output. If this is your intent, use sparse.todense() to convert your argument to a dense array."
        )
    x = _sum_duplicates(x)
    return x.with_data(x.data**y)


def _contract(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: object) -> Any:
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


def _contract_rows(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: object) -> Any:
    return bcsr_dot_general(x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type)


def _sum(x: Any, *, axes: Sequence[int], **_: object) -> Any:
    result = bcoo_reduce_sum(x, axes=axes)
    return result if result.ndim else bcoo_todense(result)


def _stack(*operands: Any, axis: int) -> Any:
    ndim = operands[0].ndim + 1
    shape = (*operands[0].shape[:axis], 1, *operands[0].shape[axis:])
    kept = [i for i in range(ndim) if i != axis]
    wide = [bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=kept) for x in operands]
    return bcoo_concatenate(wide, dimension=axis)


def _split(x: Any, *, sizes: Sequence[int], axis: int) -> list[Any]:
    parts, start = [], 0
    for size in sizes:
        starts, limits = [0] * x.ndim, list(x.shape)
        starts[axis], limits[axis] = start, start + size
        parts.append(bcoo_slice(x, start_indices=starts, limit_indices=limits))
        start += size
    return parts


def _concatenate(*operands: Any, dimension: int) -> Any:
    if not all(map(_is_sparse, operands)):
        raise NotImplementedError(
            "Concatenation of sparse and dense arrays; convert the dense ones with sparse.BCOO.fromdense"
        )
    return bcoo_concatenate(operands, dimension=dimension)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return bcoo_slice(x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Sequence[int]) -> Any:
    return bcoo_dynamic_slice(x, starts, slice_sizes)


def _gather(x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any, **_: object
            ) -> Any:
    if _is_sparse(indices):
        raise NotImplementedError("gather with sparse indices; convert them with sparse.todense()")
    return bcoo_gather(x, indices, dimension_numbers, slice_sizes, mode=mode, fill_value=fill_value)


def _convolve(x: Any, y: Any, *, window_strides: Any, padding: Any, **keywords: Any) -> Any:
    names = ("lhs_dilation", "rhs_dilation", "dimension_numbers", "feature_group_count", "batch_group_count",
             "preferred_element_type")
    given = {n: keywords[n] for n in names}
    return bcoo_conv_general_dilated(x, y, window_strides=window_strides, padding=padding, **given)


# The rules of operations on BCOO arrays and on BCSR arrays, by the name of the operation.
COORDINATE_RULES: dict[str, Rule] = {
    "mul": _multiply, "div": _divide, "add": _add, "add_any": _add, "sub": _subtract, "integer_pow": _integer_power,
    "dot_general": _contract, "stack": _stack, "split": _split, "concatenate": _concatenate, "slice": _slice,
    "dynamic_slice": _dynamic_slice, "gather": _gather, "conv_general_dilated": _convolve,
    "transpose": lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    "reshape": lambda x, *, new_sizes, dimensions, sharding: bcoo_reshape(
        x, new_sizes=new_sizes, dimensions=dimensions, sharding=sharding
    ),
    "broadcast_in_dim": lambda x, *, shape, broadcast_dimensions, sharding: bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    ),
    "squeeze": lambda x, *, dimensions: bcoo_squeeze(x, dimensions=dimensions),
    "rev": lambda x, *, dimensions: bcoo_rev(x, dimensions),
    "reduce_sum": _sum,
}
ROW_RULES: dict[str, Rule] = {
    "dot_general": _contract_rows,
    "concatenate": lambda *operands, dimension: bcsr_concatenate(operands, dimension=dimension),
    "broadcast_in_dim": lambda x, *, shape, broadcast_dimensions, sharding: bcsr_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    ),
}


def find_rule(primitive: Primitive, operands: Sequence[Any]) -> Rule | None:
    """Return the rule of an operation: a function of the operands, with the parameters as keywords."""
    rows = any(isinstance(x, RowStorage) for x in operands)
    if rows and any(isinstance(x, CoordinateStorage) for x in operands):
        raise NotImplementedError(
            f"sparse rule for {primitive.name} of BCOO and BCSR arrays together is not implemented; convert with "
            "to_bcoo()"
        )
    return (ROW_RULES if rows else COORDINATE_RULES).get(primitive.name)
