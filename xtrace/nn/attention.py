"""Attention: softmax of scaled products of queries and keys, times values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval, reshape, transpose
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.runtime.transfer import to_array
from xtrace.nn.normalization import logsumexp, softmax
from xtrace.numpy.arrays.conversion import from_sequence


def _add_batch_axes(x: ArrayLike, aval: ShapedArray) -> Array:
    """Return `x` with axes of size 1 in front, four axes in all."""
    x = to_array(x)
    return reshape(x, (1,) * (4 - aval.ndim) + aval.shape) if aval.ndim < 4 else x


def _group_heads(x: Array, heads: int, groups: int) -> Array:
    """Reshape (B, N, T, S), where any axis may have size 1, to the axes of the scores: (B, K, T, G, S)."""
    batch, own, queries, keys = x.shape
    if heads == groups:
        return x
    if own == 1:
        return reshape(x, (batch, 1, queries, 1, keys))
    return transpose(reshape(x, (batch, groups, heads // groups, queries, keys)), (0, 1, 3, 2, 4))


def _mask_by_position(queries: int, keys: int, causal: bool, window: tuple[int, int] | None) -> Array | None:
    """Return the mask (T, S) that causality and the window allow; None if they allow all keys."""
    if not causal and window is None:
        return None
    query = broadcasted_iota(dtypes.int32, (queries, keys), 0)
    key = broadcasted_iota(dtypes.int32, (queries, keys), 1)
    near = query >= key if causal else None
    if window is not None:
        inside = (query <= key + window[0]) & (query >= key - window[1])
        near = inside if near is None else near & inside
    return near


def _mask_by_length(lengths: Array, count: int, shape: tuple[int, ...], axis: int) -> Array:
    """Return the mask of positions below each sequence's length along `axis`; other axes have size 1."""
    own = tuple(count if i == axis else 1 for i in range(4))
    return broadcasted_iota(lengths.dtype, own, axis) < reshape(lengths, shape)


def _widen_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of scores: float32, or the keys' dtype if it is wider."""
    return dtype if dtypes.bit_width(dtype) > 32 else dtypes.float32


@inline_jit
def _attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, scale: ArrayLike, bias: Any, mask: Any, query_lengths: Any,
    key_lengths: Any, *, causal: bool, window: tuple[int, int] | None, residual: bool,
) -> Any:
    query, key, value = [_add_batch_axes(x, aval_of(x)) for x in (query, key, value)]
    (batch, queries, heads, size), (keys, groups) = query.shape, key.shape[1:3]
    grouped = heads != groups
    split = reshape(query, (batch, queries, groups, heads // groups, size)) if grouped else query
    # Scores (B, N, T, S); with several query heads per key head (B, K, T, G, S).
    pairs = ((split.ndim - 1,), (3,)), ((0, 2), (0, 2))
    scores = dot_general(split, key, pairs, preferred_element_type=_widen_dtype(key.dtype))
    scores = scores * convert_to(to_array(scale), scores.dtype)
    if bias is not None:
        scores = scores + _group_heads(_add_batch_axes(bias, aval_of(bias)), heads, groups)
    scores = convert_to(scores, dtypes.float32)
    visible = []
    near = _mask_by_position(queries, keys, causal, window)
    if near is not None:
        visible.append(reshape(near, (1, 1, queries, keys)))
    if mask is not None:
        visible.append(_add_batch_axes(mask, aval_of(mask)))
    column = (batch, 1, 1, 1)
    inside = None if query_lengths is None else _mask_by_length(to_array(query_lengths), queries, column, 2)
    if inside is not None:
        visible.append(inside)
    if key_lengths is not None:
        visible.append(_mask_by_length(to_array(key_lengths), keys, column, 3))
    if visible:
        mask = _group_heads(visible[0], heads, groups)
        for more in visible[1:]:
            mask = mask & _group_heads(more, heads, groups)
        # Far below any score, and finite: a query that sees nothing gives the mean of the values, not NaN.
        scores = select_where(mask, scores, -0.7 * float(dtypes.finfo(dtypes.float32).max))
    weights = convert_to(softmax(scores), key.dtype)
    # (B, K, T, G, H), or (B, N, T, H).
    mixed = dot_general(
        weights, value, (((weights.ndim - 1,), (1,)), ((0, 1), (0, 2))), preferred_element_type=key.dtype
    )
    attended = reshape(transpose(mixed, (0, 2, 1, *range(3, mixed.ndim))), query.shape)
    if inside is not None:
        attended = attended * reshape(convert_to(inside, attended.dtype), (batch, queries, 1, 1))
    if not residual:
        return attended
    logs = convert_to(logsumexp(scores, axis=-1), key.dtype)
    logs = reshape(transpose(logs, (0, 2, 1, *range(3, logs.ndim))), (batch, queries, heads))
    return attended, stop_gradient(logs)


def _check_operands(query: ShapedArray, key: ShapedArray, value: ShapedArray) -> None:
    avals = {"query": query, "key": key, "value": value}
    for name, aval in avals.items():
        if aval.ndim not in (3, 4) or aval.ndim != query.ndim:
            raise ValueError(
                f"{called_function()}: query, key and value must all have the axes (T, N, H), or all (B, T, N, H), but "
                "got " + ", ".join([f"{name} {aval.str_short(True)}" for name, aval in avals.items()])
            )
        if aval.dtype != query.dtype:
            raise ValueError(
                f"{called_function()}: {name} dtype should be {query.dtype.name}, like query, but got {aval.dtype.name}"
            )
    if value.shape != key.shape:
        raise ValueError(f"{called_function()}: value shape should be {key.shape}, like key, but got {value.shape}")
    if query.shape[:-3] != key.shape[:-3] or query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"{called_function()}: query shape should agree with key's in the batch and the size of a head, but got "
            f"{query.shape} and {key.shape}"
        )
    if key.shape[-2] == 0 or query.shape[-2] % key.shape[-2]:
        raise ValueError(
            f"{called_function()}: The number of query heads must be a multiple of key/value heads, but got "
            f"{query.shape[-2]} vs {key.shape[-2]}"
        )


def _check_scores(name: str, aval: ShapedArray, whole: tuple[int, ...]) -> None:
    own = (1,) * (4 - aval.ndim) + aval.shape
    if len(own) > 4 or any(n not in (1, m) for n, m in zip(own, whole, strict=True)):
        raise ValueError(
            f"{called_function()}: {name} must broadcast to (batch, heads, queries, keys) = {whole}, but got shape "
            f"{aval.shape}"
        )
    if name == "mask" and not dtypes.is_boolean(aval.dtype):
        raise ValueError(f"{called_function()}: mask dtype should be bool, but got {aval.dtype.name}")


def _check_lengths(name: str, aval: ShapedArray, batch: int) -> None:
    if aval.ndim != 1:
        raise ValueError(
            f"{called_function()}: {name} ndim should be 1, one length for a sequence, but got {aval.ndim}"
        )
    if aval.dtype != dtypes.int32:
        raise ValueError(f"{called_function()}: {name} dtype should be int32, but got {aval.dtype.name}")
    if aval.shape != (batch,):
        raise ValueError(f"{called_function()}: {name} shape should be [{batch}], but got {aval.shape}")


def _parse_window(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    if isinstance(size, int):
        return (size, size)
    if not isinstance(size, tuple) or not all(isinstance(n, int) for n in size):
        raise TypeError(
            f"{called_function()}: local_window_size must be an int or a pair of them, got {abbreviate(size)}"
        )
    if len(size) != 2:
        raise ValueError(f"{called_function()}: local_window_size must be (left, right), got {abbreviate(size)}")
    return size


def dot_product_attention(
    query: ArrayLike, key: ArrayLike, value: ArrayLike, bias: ArrayLike | None = None, mask: ArrayLike | None = None, *,
    scale: ArrayLike | None = None, is_causal: bool = False, query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None, local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None, return_residual: bool = False,
) -> Any:
    """Compute attention, ``softmax(scale * query @ key.T + bias) @ value``, for each head; the softmax is in float32.

    Args:
        query: an array (B, T, N, H): batch, sequence, heads, features; all operands may lack B.
        key, value: arrays (B, S, K, H) of the dtype of `query`; K divides N, and each of their heads serves N / K
            query heads.
        bias: an array that broadcasts to (B, N, T, S), added to the scores.
        mask: a boolean array that broadcasts to (B, N, T, S); where it is False, scores count as -infinity.
        scale: a number; None for ``1 / sqrt(H)``.
        is_causal: whether queries ignore later keys.
        query_seq_lengths, key_value_seq_lengths: int32 vectors (B,), the lengths of the sequences; beyond them the
            result is 0.
        local_window_size: the number of keys visible to the left and to the right of a query, or a pair of both; None
            for all.
        implementation: None or ``"xla"``.
        return_residual: whether to return a pair, with the logarithms of the softmax's denominators, (B, T, N).

    Returns:
        An array (B, T, N, H) of the dtype of `query`, or a pair.

    Raises:
        RuntimeError: `implementation` is ``"cudnn"``.
        TypeError: an operand is not an array.
        ValueError: the shapes or dtypes do not agree.

    Example:
        >>> x = jnp.ones((1, 2, 1, 4))
        >>> nn.dot_product_attention(x, x, x).shape
        (1, 2, 1, 4)
    """
    if implementation == "cudnn":
        raise RuntimeError(
            f"{called_function()}: cuDNN is not detected: xtrace has no calls of cuDNN's kernels. Leave "
            "implementation at None"
        )
    if implementation not in (None, "xla"):
        raise ValueError(
            f"{called_function()}: Unsupported implementation option: {abbreviate(implementation)}. Use None or 'xla'"
        )
    query, key, value, bias, mask = map(from_sequence, (query, key, value, bias, mask))
    query_seq_lengths, key_value_seq_lengths = map(from_sequence, (query_seq_lengths, key_value_seq_lengths))
    avals = [operand_aval(x, i) for i, x in enumerate((query, key, value))]
    _check_operands(*avals)
    queries, keys = avals[0].shape, avals[1].shape
    batch = 1 if len(queries) == 3 else queries[0]
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None:
            _check_scores(name, operand_aval(x, 3), (batch, queries[-2], queries[-3], keys[-3]))
    for name, x in (("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths)):
        if x is not None:
            _check_lengths(name, operand_aval(x, 4), batch)
    results = _attention(
        query, key, value, 1 / math.sqrt(queries[-1]) if scale is None else scale, bias, mask, query_seq_lengths,
        key_value_seq_lengths, causal=bool(is_causal), window=_parse_window(local_window_size),
        residual=bool(return_residual),
    )
    if len(queries) == 4:
        return results
    return (results[0][0], results[1][0]) if return_residual else results[0]
