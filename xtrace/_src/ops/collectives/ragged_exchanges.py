"""The ragged all-to-all collective, and point-to-point send and receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.varying import vary
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    convert_to,
    move_axis,
    operand_aval,
    reduce_sum,
    reshape,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractToken, ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import checked_axes, current_trace
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import full, iota
from xtrace._src.ops.arrays.gather_scatter_variants import index_take
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.collectives import collectives
from xtrace._src.ops.collectives.exchanges import all_gather_p, all_to_all_p
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.ops.reductions.reductions import reduce_max
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

_RANGES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


def _abstract(
    operand: ShapedArray, output: ShapedArray, *ranges: ShapedArray, axis_index_groups: Any, axis_name: Any
) -> ShapedArray:
    """Return `output` with the received slices written into it."""
    name = "ragged_all_to_all"
    if operand.dtype != output.dtype or not operand.shape or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            f"{name}: operand and output must have the same dtype and the same axes after the first, got "
            f"{operand.str_short(True)} and {output.str_short(True)}"
        )
    for argument, aval in zip(_RANGES, ranges, strict=True):
        if not dtypes.is_integer(aval.dtype):
            raise ValueError(f"{name} {argument} must be integer type, got {aval.str_short(True)}")
        if aval.ndim != 1 or not aval.size:
            raise ValueError(
                f"{name} {argument} must be rank 1 with positive dimension size, but got shape {aval.shape}"
            )
        if aval.shape != ranges[0].shape or aval.dtype != ranges[0].dtype:
            raise ValueError(
                f"{name}: {', '.join(_RANGES)} must have the same shape and dtype, got "
                f"{', '.join([a.str_short(True) for a in ranges])}"
            )
    size = collectives.axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    if ranges[0].shape[0] % size:
        raise ValueError(
            f"{name}: the number of slices, {ranges[0].shape[0]}, must be a multiple of the number of indices that "
            f"exchange them, {size}; each sends the same number to each"
        )
    return output


def _broadcast_along(x: Any, shape: Sequence[int], axis: int) -> Any:
    return broadcast_in_dim(x, tuple(shape), (axis,))


def _find_slice_of_rows(count: int, starts: Any, sizes: Any) -> Any:
    """Return, for each of `count` rows, the index of the last slice that contains it, or -1."""
    shape = count, aval_of(starts).shape[0]
    rows = _broadcast_along(iota(dtypes.int32, count), shape, 0)
    inside = (rows >= _broadcast_along(starts, shape, 1)) & (rows < _broadcast_along(starts + sizes, shape, 1))
    return reduce_max(
        select(inside, _broadcast_along(iota(dtypes.int32, shape[1]), shape, 1), full(shape, -1, np.int32)), (1,)
    )


def _select_rows(slices: Any, inside: Any, outside: Any) -> Array:
    """Return the rows of `inside` that a slice contains, and the other rows of `outside`."""
    return select(_broadcast_along(slices >= 0, aval_of(outside).shape, 0), inside, outside)


def _receive(operands: Any, output: Any, input_offsets: Any, output_offsets: Any, sizes: Any) -> Array:
    """Return one index's `output` with the slices that it receives written into it.

    operands: the operands of all indices, stacked. input_offsets, output_offsets, sizes: the slices, sender by sender,
    the same number from each.
    """
    senders, length, *rest = aval_of(operands).shape
    input_offsets, output_offsets, sizes = (_narrow(x) for x in (input_offsets, output_offsets, sizes))
    count = aval_of(sizes).shape[0]
    sources = reshape(_broadcast_along(iota(dtypes.int32, senders), (senders, count // senders), 0), (count,))
    slices = _find_slice_of_rows(aval_of(output).shape[0], output_offsets, sizes)
    moves = index_take(sources * length + input_offsets - output_offsets, [slices], (0,))
    rows = iota(dtypes.int32, aval_of(output).shape[0]) + moves
    return _select_rows(slices, index_take(reshape(operands, (senders * length, *rest)), [rows], (0,)), output)


def _narrow(x: Any) -> Any:
    return convert_to(x, np.dtype("int32"))


def _gather_and_receive(
    operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any, recv_sizes: Any, index: Any, *,
    axis_index_groups: Any, axis_name: Any, size: int,
) -> Array:
    """Exchange slices by gathering all operands; `index` is the device's index along the axes."""
    def gather(x: Any) -> Any:
        return all_gather_p.bind_positional((x,), (0, axis_index_groups, axis_name, size, False))

    if axis_index_groups is not None:
        positions = np.zeros(sum(map(len, axis_index_groups)), np.int32)
        for group in axis_index_groups:
            positions[list(group)] = range(len(group))
        index = index_take(positions, [reshape(index, (1,))], (0,))

    def gather_mine(x: Any) -> Any:
        count = aval_of(x).shape[0]
        parts = reshape(gather(x), (size, size, count // size))
        here = _broadcast_along(iota(dtypes.int32, size) == reshape(index, (1,)), (size, size, count // size), 1)
        return reshape(reduce_sum(select(here, parts, zeros(aval_of(parts))), (1,)), (count,))

    return _receive(gather(operand), output, gather_mine(input_offsets), gather_mine(output_offsets), recv_sizes)


_emit_gathers = lower_fun(_gather_and_receive)


def _format_rows(rows: Sequence[Sequence[int]]) -> str:
    return f"{attributes.dense(np.array(rows))} : tensor<{len(rows)}x{len(rows[0])}xi64>"


def _emit(builder: FunctionBuilder, *values: Value, axis_index_groups: Any, axis_name: Any) -> Value:
    groups, result = collectives.device_groups(builder, axis_name, axis_index_groups), builder.results[0]
    if builder.platform == "cpu":
        # XLA's runtime on CPUs has no such collective.
        scalar = ShapedArray((), dtypes.int32)
        index = builder.constant(0, scalar)
        assert builder.module.manual_mesh is not None
        for axis in axis_name:
            size = builder.constant(builder.module.manual_mesh.shape[axis], scalar)
            outer = builder.elementwise("multiply", index, size)
            index = builder.elementwise("add", outer, builder.axis_index(axis, scalar))
        return _emit_gathers(
            builder, *values, index, axis_name=axis_name, axis_index_groups=axis_index_groups, size=len(groups[0])
        )
    channel = builder.module.channel()
    details = f"channel_id = {channel} : i64, replica_groups = {_format_rows(groups)}"
    operands, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
    return builder.line(
        f"stablehlo.custom_call @ragged_all_to_all({operands}) {{api_version = 4 : i32, backend_config = "
        f"{{{details}}}}} : ({types}) -> {result.mlir_type}", result,
    )


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    given = tuple(parameters.values())
    result = ragged_all_to_all_p.bind_positional(primals, given)
    if tangents[0] is None and tangents[1] is None:
        return result, None
    moved = [zeros(aval_of(x)) if t is None else t for x, t in zip(primals[:2], tangents, strict=False)]
    return result, ragged_all_to_all_p.bind_positional([*moved, *primals[2:]], given)


def _transpose(
    cotangent: Array, operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any,
    recv_sizes: Any, *, axis_index_groups: Any, axis_name: Any,
) -> list[Any]:
    def exchange(x: Any) -> Any:
        return all_to_all_p.bind_positional((x,), (axis_index_groups, axis_name, 0, 0, True))

    written = exchange(output_offsets)
    results: list[Any] = [None] * 6
    if isinstance(operand, UndefinedPrimal):
        nothing = vary(zeros(operand.aval), axis_name)
        back = [cotangent, nothing, written, recv_sizes, exchange(input_offsets), send_sizes]
        results[0] = ragged_all_to_all_p.bind_positional(back, (axis_index_groups, axis_name))
    if isinstance(output, UndefinedPrimal):
        slices = _find_slice_of_rows(aval_of(cotangent).shape[0], _narrow(written), _narrow(recv_sizes))
        results[1] = _select_rows(slices, zeros(aval_of(cotangent)), cotangent)
    return results


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None], *, axis_index_groups: Any, axis_name: Any
) -> tuple[Any, int]:
    parameters, size = (axis_index_groups, axis_name), mapped.size
    if mapped.name in axis_name:
        if len(axis_name) > 1 or axis_index_groups is not None:
            raise NotImplementedError(
                "ragged_all_to_all along an axis of vmap takes one name and no axis_index_groups; use a shard_map"
            )
        stacked, outputs, *ranges = [mapped.place(x, p) for x, p in zip(operands, places, strict=True)]
        count = aval_of(ranges[0]).shape[1]
        # Axis 0 becomes the axis of receivers.
        starts, _, offsets = [
            reshape(move_axis(reshape(x, (size, size, count // size)), 1, 0), (size, count)) for x in ranges[:3]
        ]
        each = [
            _receive(stacked, *[_element(x, i) for x in (outputs, starts, offsets, ranges[3])]) for i in range(size)
        ]
        return _stack(each), 0
    if all(p is None for p in places[2:]):
        moved = [mapped.place(x, p, 1) for x, p in zip(operands[:2], places, strict=False)]
        return ragged_all_to_all_p.bind_positional([*moved, *operands[2:]], parameters), 1
    all_mapped = [mapped.place(x, p) for x, p in zip(operands, places, strict=True)]
    each = [ragged_all_to_all_p.bind_positional([_element(x, i) for x in all_mapped], parameters) for i in range(size)]
    return _stack(each), 0


def _element(x: Any, index: int) -> Any:
    return reshape(slice_in_dim(x, index, index + 1), aval_of(x).shape[1:])


def _stack(arrays: Sequence[Any]) -> Any:
    return concatenate([reshape(x, (1, *aval_of(x).shape)) for x in arrays], 0)


def ragged_all_to_all(
    operand: Any, output: Any, input_offsets: Any, send_sizes: Any, output_offsets: Any, recv_sizes: Any, *,
    axis_name: Any, axis_index_groups: Any = None,
) -> Any:
    """Exchange slices of different numbers of rows between the indices of a mapped axis.

    Each index sends the same number of slices to each receiver; the first ones go to index 0. On CPUs, whose runtime
    lacks the collective, all operands are gathered. The gradient with respect to `operand` assumes that the slices sent
    do not overlap.

    Args:
        operand: an array of rows to send.
        output: an array to write received rows into.
        input_offsets: a vector of integers, the first row in `operand` of each slice to send.
        send_sizes: the number of rows of each slice to send.
        output_offsets: for each slice to send, its first row in the receiver's `output`.
        recv_sizes: the number of rows of each slice to receive.
        axis_name: the name of the mapped axis, or a tuple of names.
        axis_index_groups: lists of indices that exchange slices among themselves.

    Returns:
        An array like `output`, with the received slices written into it.

    Raises:
        NameError: there is no such axis.
        ValueError: shapes or dtypes do not agree, or the number of slices is no multiple of the number of indices.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("i",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> f = lambda x, n: lax.ragged_all_to_all(x, jnp.zeros(4), 0 * n, n, n, n, axis_name="i")
        >>> f = xtrace.shard_map(f, mesh=mesh, in_specs=(xtrace.P("i"), xtrace.P("i")), out_specs=xtrace.P("i"))
        >>> f(jnp.arange(1.0, 4.0), jnp.array([2]))
        Array([0., 0., 1., 2.], dtype=float32)
    """
    names = collectives.axis_names(axis_name)
    collectives.axis_size(names)
    groups = collectives.canonical_index_groups("ragged_all_to_all", axis_index_groups, names)
    operands = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    named = zip(("operand", "output", *_RANGES), operands, strict=True)
    avals = tuple([operand_aval(x, argument) for argument, x in named])
    # Batch rules do not check sizes.
    _abstract(*avals, axis_name=names, axis_index_groups=groups)
    return ragged_all_to_all_p.bind_positional([vary(x, names) for x in operands], (groups, names))


ragged_all_to_all_p = Primitive(
    "ragged_all_to_all", ("axis_index_groups", "axis_name"), abstract=_abstract, emit=_emit,
    operation=ragged_all_to_all, effects=collectives.make_axis_effects("axis_name"), jvp=_jvp, transpose=_transpose,
    batch=_batch, memoised=False, unprinted={"axis_index_groups": ALWAYS_PRINTED},
)


# Sending and receiving

def _pairs_text(builder: FunctionBuilder, name: str, axis_name: Any, perm: Any) -> str:
    if builder.platform not in ("cuda", "rocm", "gpu"):
        raise NotImplementedError(
            f"{name} is for GPUs, and the program is for {builder.platform}; lax.ppermute moves values on all platforms"
        )
    groups = collectives.device_groups(builder, axis_name)
    pairs = [[row[source], row[target]] for row in groups for source, target in perm]
    builder.module.channel()
    return (
        "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = "
        f"{_format_rows(pairs)}"
    )


def _send_abstract(x: ShapedArray, **_: object) -> ShapedArray:
    """Return a token."""
    return AbstractToken()


def _send_emit(builder: FunctionBuilder, x: Value, *, axis_name: Any, perm: Any) -> Value:
    pairs, result = _pairs_text(builder, "psend", axis_name, perm), builder.results[0]
    token = builder.create_token(result)
    return builder.line(
        f'"stablehlo.send"({x.name}, {token.name}) <{{{pairs}}}> : ({x.type}, {token.type}) -> {token.type}', result
    )


def _receive_abstract(token: ShapedArray, *, axis_name: Any, out_shape: ShapedArray, perm: Any) -> ShapedArray:
    """Return the received value."""
    if type(token) is not AbstractToken:
        raise TypeError(f"precv: token must be a token of lax.psend or lax.create_token, got {token.str_short(True)}")
    return out_shape


def _receive_emit(
    builder: FunctionBuilder, token: Value, *, axis_name: Any, out_shape: ShapedArray, perm: Any
) -> Value:
    pairs = _pairs_text(builder, "precv", axis_name, perm)
    return builder.line_of_many(
        f'"stablehlo.recv"({token.name}) <{{{pairs}}}> : ({token.type}) -> ({out_shape.mlir_type}, {token.type})',
        [out_shape, token.aval],
    )[0]


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send a value from index to index of a mapped axis, for `precv` to return, on GPUs.

    Args:
        x: an array.
        axis_name: the name of the mapped axis, or a tuple of names.
        perm: pairs (source, destination), each index at most once on each side.

    Returns:
        A token, which `precv` takes.

    Raises:
        NameError: there is no such axis.
        NotImplementedError: the program is compiled for another platform.
        TypeError: `x` is no array.
        ValueError: an index is a source or a destination twice, or does not exist.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("i",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> f = lambda x: lax.precv(lax.psend(x, "i", [(0, 0)]), xtrace.typeof(x), "i", [(0, 0)])
        >>> f = xtrace.shard_map(f, mesh=mesh, in_specs=xtrace.P("i"), out_specs=xtrace.P("i"), check_vma=False)
        >>> xtrace.eval_shape(f, jnp.ones(2)).shape
        (2,)
    """
    operand_aval(x, "x")
    names, pairs = collectives.canonical_pairs(axis_name, perm)
    return psend_p.bind_positional((x,), (names, pairs))


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Return the value that another index of a mapped axis sends with `psend`, on GPUs.

    Args:
        token: the token of a `psend` or of `create_token`, which precedes the receive.
        out_shape: an object with the shape and dtype of the value, such as a `ShapeDtypeStruct`.
        axis_name: the name of the mapped axis, or a tuple of names.
        perm: the pairs (source, destination) of the `psend`.

    Returns:
        An array.

    Raises:
        NameError: there is no such axis.
        NotImplementedError: the program is compiled for another platform.
        TypeError: `token` is no token, or `out_shape` has no shape and dtype.
        ValueError: an index is a source or a destination twice, or does not exist.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("i",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> f = lambda x: lax.precv(lax.create_token(), xtrace.typeof(x), "i", [(0, 0)])
        >>> f = xtrace.shard_map(f, mesh=mesh, in_specs=xtrace.P("i"), out_specs=xtrace.P("i"), check_vma=False)
        >>> xtrace.eval_shape(f, jnp.ones(2)).dtype
        dtype('float32')
    """
    if not hasattr(out_shape, "shape") or not hasattr(out_shape, "dtype"):
        raise TypeError(
            f"precv: out_shape must have a shape and a dtype, as ShapeDtypeStruct has, got {abbreviate(out_shape)}"
        )
    aval = ShapedArray(tuple(out_shape.shape), np.dtype(out_shape.dtype))
    names, pairs = collectives.canonical_pairs(axis_name, perm)
    return precv_p.bind_positional((token,), (names, aval, pairs))


_NO_DERIVATIVE = no_rule("psend and precv have no derivative; lax.ppermute has one", NotImplementedError)
_NOT_MAPPED = no_rule("psend and precv work between devices only; lax.ppermute works along an axis of vmap")

psend_p = Primitive(
    "psend", ("axis_name", "perm"), abstract=_send_abstract, emit=_send_emit, operation=psend,
    effects=collectives.make_axis_effects("axis_name"), jvp=_NO_DERIVATIVE, batch=_NOT_MAPPED, memoised=False,
    varying=lambda varying, **_: frozenset(),
)
precv_p = Primitive(
    "precv", ("axis_name", "out_shape", "perm"), abstract=_receive_abstract, emit=_receive_emit, operation=precv,
    effects=collectives.make_axis_effects("axis_name"), jvp=_NO_DERIVATIVE, batch=_NOT_MAPPED, memoised=False,
    varying=lambda varying, *, axis_name, **_: checked_axes(current_trace.get()).intersection(axis_name),
)
