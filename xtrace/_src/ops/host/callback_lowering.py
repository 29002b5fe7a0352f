"""Calls of Python from programs: a custom call of the runtime on CPUs and GPUs, transfers to the host on TPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.runtime.callbacks import HostCallback
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.effect_tokens import TOKEN, get_tokens, with_tokens

_Function = Callable[..., Sequence[np.ndarray[Any, Any]]]

# The runtimes' handlers for calls of Python, by platform. Partitioned ones take shards and no token.
_TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": "xla_ffi_python_gpu_callback"}
_PARTITIONED_TARGETS = {
    "cpu": "xla_ffi_partitioned_python_cpu_callback", "cuda": "xla_ffi_partitioned_python_gpu_callback",
}

# The type of the dummy value to transfer if there are no operands or no results.
_NUMBER = ShapedArray((), np.dtype(np.float32))


def emit_host_call(
    builder: FunctionBuilder, values: Sequence[Value], key: object, name: str, function: _Function,
    effect: Effect | None, *, partitioned: bool = False,
) -> list[Value]:
    """Write a call of `function`, which takes arrays and returns a list of NumPy arrays of the results' types.

    Calls with equal `key`, source position and types share one registered function. On a mesh the first device makes
    the call, with whole arrays; if `partitioned` and inside of `shard_map`, each device makes a call with its shards.
    NotImplementedError if programs for the platform cannot call Python, or if only some axes of a mesh are manual.
    """
    effects = [effect] if effect is not None and effect.ordered else []
    if builder.platform == "tpu":
        return _emit_transfers(builder, values, name, function, effects)
    if builder.platform not in _TARGETS:
        raise NotImplementedError(
            f"{name}: programs for {builder.platform} cannot call Python functions; programs for cpu, cuda and tpu "
            "can. Run it with jax_platforms='cpu', or return the values from the function and use them outside of it"
        )
    partitioned = partitioned and builder.module.num_partitions > 1 and builder.module.manual_mesh is None
    if partitioned and effects:
        raise NotImplementedError(
            f"{name}: calls by the devices of a mesh have no order among each other; leave ordered= or partitioned= out"
        )
    if effect is not None and not effects and not partitioned:
        # XLA may reorder independent calls: a token keeps the calls of one program in the order of the equations.
        if effect not in builder.tokens:
            builder.tokens[effect] = builder.create_token(TOKEN)
        effects = [effect]
    operands = [*get_tokens(builder, effects), *[x.to_physical() for x in values]]
    in_avals, out_avals = _strong_types(values), list(builder.results)
    place = builder.place[0] if builder.place is not None else None
    callback_key = (key, name, tuple(in_avals), tuple(out_avals), place)
    try:
        hash(callback_key)
    except TypeError:
        callback_key = (object(),)  # type: ignore[assignment]
    number = builder.module.callback(
        callback_key,
        lambda: HostCallback(function, in_avals, out_avals, ordered=bool(effects), name=name, place=place),
    )
    results = [*[TOKEN] * len(effects), *out_avals]
    attributes = [
        "api_version = 4 : i32", f"backend_config = {{index = {number} : ui64}}",
        *["has_side_effect = true"] * (effect is not None),
        f"operand_layouts = [{', '.join([_layout(x.aval) for x in operands])}]",
        f"result_layouts = [{', '.join([_layout(a) for a in results])}]", *_sharding(builder, name, results),
    ]
    target = (_PARTITIONED_TARGETS if partitioned else _TARGETS)[builder.platform]
    names = ", ".join([x.name for x in operands])
    call = f"stablehlo.custom_call @{target}({names}) {{{', '.join(attributes)}}}"
    kind = builder.function_type(operands, results)
    return with_tokens(builder, effects, builder.line_of_many(f"{call} : {kind}", results))


def _strong_types(values: Sequence[Value]) -> list[ShapedArray]:
    return [x.aval.update(weak_type=False) for x in values]


def _sharding(builder: FunctionBuilder, name: str, results: Sequence[ShapedArray]) -> list[str]:
    """Return the attribute for the devices of a mesh that make a call."""
    module = builder.module
    if module.num_partitions == 1:
        return []
    if module.axis_indices:
        raise NotImplementedError(
            f"{name}: a call of Python inside of shard_map needs all axes of the mesh to be manual; leave axis_names= "
            "out, or call it outside of the mapped function"
        )
    ranks = [0 if a is TOKEN else a.ndim for a in results]
    return [module.meshes.attribute_on_device(ranks, None if module.manual_mesh is not None else 0)]


def _layout(aval: ShapedArray) -> str:
    """Return the row-major layout, as NumPy arrays have it."""
    rank = 0 if aval is TOKEN else aval.ndim
    numbers = ", ".join(map(str, reversed(range(rank))))
    return f"dense<{f'[{numbers}]' if rank else ''}> : tensor<{rank}xindex>"


def _emit_transfers(
    builder: FunctionBuilder, values: Sequence[Value], name: str, function: _Function, effects: Sequence[Effect]
) -> list[Value]:
    """Write a chain of sends of the operands and receives of the results.

    At least one value is transferred each way, because the program waits for the host by receiving.
    """
    avals, module = list(builder.results), builder.module
    place = builder.place[0] if builder.place is not None else None
    operands = [x.to_physical() for x in values] or [builder.constant(0, _NUMBER)]
    received = avals or [_NUMBER]
    if effects:
        (token,) = get_tokens(builder, effects)
    else:
        token = builder.create_token(TOKEN)
    sends, receives = [module.channel() for _ in operands], [module.channel() for _ in received]

    def call(*arrays: ArrayLike) -> Sequence[np.ndarray[Any, Any]]:
        results = function(*arrays[: len(values)])
        return results if avals else [np.zeros((), np.float32)]

    types, channels = _strong_types(values) or [_NUMBER], (sends, receives)
    called = HostCallback(call, types, received, ordered=False, name=name, place=place, channels=channels)
    module.callback(object(), lambda: called)
    for channel, x in zip(sends, operands, strict=True):
        head = f'"stablehlo.send"({x.name}, {token.name}) {_transfer(channel, 2)}'
        token = builder.line(f"{head} : ({x.type}, !stablehlo.token) -> !stablehlo.token", TOKEN)
    results = []
    for channel, aval in zip(receives, received, strict=True):
        head = f'"stablehlo.recv"({token.name}) {_transfer(channel, 3)}'
        result, token = builder.line_of_many(
            f"{head} : (!stablehlo.token) -> ({aval.mlir_type}, !stablehlo.token)", [aval, TOKEN]
        )
        results.append(result)
    return with_tokens(builder, effects, [*[token] * len(effects), *results[: len(avals)]])


def _transfer(channel: int, kind: int) -> str:
    """Return the attributes of a transfer to the host (kind 2) or from it (kind 3)."""
    return (
        f"<{{channel_handle = #stablehlo.channel_handle<handle = {channel}, type = {kind}>, is_host_transfer = true}}> "
        '{mhlo.frontend_attributes = {_xla_host_transfer_handler_name = "pjrt_rendezvous", '
        f'_xla_host_transfer_rendezvous = "{channel}"}}}}'
    )
