"""The operation that moves arrays to a device, to a sharding, or between device and host memory."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import IN_PLACE
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.primitive import ListPrimitive, Primitive
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, explicit_part
from xtrace._src.ops.shardings.layout_constraints import batch_layout
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import in_memory, put_at, put_in_format, put_on
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import BatchTracer, MappedAxis
from xtrace._src.transforms.jvp import JVPTracer
from xtrace._src.xla import clients


class CopySemantics(enum.Enum):
    """Whether the result may share the operand's memory, must be a copy, or takes over the memory."""

    REUSE_INPUT = 0
    ALWAYS_COPY = 1
    DONATE_INPUT = 2

    def __repr__(self) -> str:
        return f"ArrayCopySemantics.{self.name}"


def _sharding_in(target: Any) -> Any:
    """Return the sharding of a `Format`, whose layout has no effect inside of a program; other targets unchanged."""
    return target.sharding if isinstance(target, Format) else target


def _target_memory(target: object, aval: ShapedArray) -> MemorySpace:
    """Return the memory space of a value of type `aval` after it is put on `target`."""
    if isinstance(target, MemorySpace):
        return target
    target = _sharding_in(target)
    if isinstance(target, Sharding):
        return find_memory_space(target.memory_kind)
    return aval.memory_space


def _abstract(*avals: ShapedArray, devices: Sequence[Any], **_: Any) -> list[ShapedArray]:
    """Return the operands, each on its device, with its sharding or in its memory space."""
    return [_put_type(a, d) for a, d in zip(avals, devices, strict=True)]


def _put_type(aval: ShapedArray, target: object) -> ShapedArray:
    """Return the type of a value of type `aval` after it is put on `target`."""
    if isinstance(target, Format) and isinstance(target.layout, Layout):
        target.layout.check_compatible_aval(aval.shape)
    target = _sharding_in(target)
    split = explicit_part(target, aval.ndim) if isinstance(target, NamedSharding) else aval.explicit_sharding
    return aval.update(memory_space=_target_memory(target, aval), sharding=split)


def _emit(builder: FunctionBuilder, *values: Value, devices: Sequence[Any], **_: Any) -> list[Value]:
    # A program runs on the devices of its arguments; only shardings over them and memory spaces can change.
    put = [
        builder.constrain(x, target) if isinstance(target, NamedSharding) else x
        for x, target in zip(values, map(_sharding_in, devices), strict=True)
    ]
    return [_emit_one(builder, x, aval) for x, aval in zip(put, builder.results, strict=True)]


def _emit_one(builder: FunctionBuilder, x: Value, aval: ShapedArray) -> Value:
    stays = x.aval.memory_space is aval.memory_space is MemorySpace.Device
    return x.bitcast(aval) if stays else _emit_placement(builder, x, aval)


def _emit_placement(builder: FunctionBuilder, x: Value, aval: ShapedArray) -> Value:
    if builder.platform == "cpu":
        return x.bitcast(aval)
    return builder.line(
        f'stablehlo.custom_call @annotate_device_placement({x.name}) {{backend_config = "", has_side_effect = true, '
        f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{aval.memory_space.kind}"}}}} '
        f": ({x.type}) -> {aval.mlir_type}",
        aval,
    )


def _evaluate(*arrays: ConcreteArray, devices: Sequence[Any], **_: object) -> list[ConcreteArray]:
    return [_evaluate_one(x, target) for x, target in zip(arrays, devices, strict=True)]


def _evaluate_one(array: ConcreteArray, target: object) -> ConcreteArray:
    space = _target_memory(target, array.aval)
    if isinstance(target, Format):
        return put_in_format(array, target)
    if isinstance(target, Sharding):
        return put_at(array, target)
    if isinstance(target, clients.Device):
        return put_on(array, target)
    if space is not array.aval.memory_space:
        return in_memory(array, space, True)
    return put_on(array, array._place) if isinstance(target, MemorySpace) and not array.committed else array


def _find_sharding(value: Array) -> Any:
    """Return the sharding of a value, also under differentiation and vmap; None for traced values."""
    while isinstance(value, (JVPTracer, BatchTracer)):
        value = value.primal if isinstance(value, JVPTracer) else value.value
    return value.sharding if type(value) is ConcreteArray else None


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[list[Any], list[Any]]:
    results = device_put_p.bind_positional(primals, tuple(parameters.values()))
    # Record the sharding of the operand: cotangents are put back there.
    sources = zip(primals, parameters["srcs"], strict=True)
    parameters["srcs"] = tuple([_find_sharding(x) if source is None else source for x, source in sources])
    moved = [i for i, t in enumerate(tangents) if t is not None]
    chosen = tuple([tuple([values[i] for i in moved]) for values in parameters.values()])
    by_position = dict(zip(moved, device_put_p.bind_positional([tangents[i] for i in moved], chosen), strict=True))
    return results, [by_position.get(i) for i in range(len(tangents))]


def _transpose(
    cotangents: Sequence[Any], *operands: Array, devices: Sequence[Any], srcs: Sequence[Any], **_: object
) -> list[Any]:
    """Return the cotangents on the devices and in the memory of the operands."""
    given = [i for i, c in enumerate(cotangents) if c is not None]
    if not given:
        return [None] * len(operands)
    back = [_describe_source(devices[i], srcs[i], operands[i].aval) for i in given]
    in_cotangents = put([cotangents[i] for i in given], back, [devices[i] for i in given])
    results = dict(zip(given, in_cotangents, strict=True))
    return [results.get(i) for i in range(len(operands))]


def _describe_source(device: object, source: object, aval: ShapedArray) -> Any:
    """Return the source of an operand of type `aval` that was put on `device`: its sharding, or its memory space."""
    is_known = isinstance(source, Sharding) or _target_memory(device, aval) is aval.memory_space
    return source if is_known else aval.memory_space


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], Sequence[int | None]]:
    for row in ("devices", "srcs"):
        parameters[row] = tuple(map(_batch_target, parameters[row], axes))
    return device_put_p.bind_positional(operands, tuple(parameters.values())), tuple(axes)


def _batch_target(target: Any, axis: int | None) -> Any:
    """Return the target of values with a mapped axis at `axis`."""
    if axis is None or not isinstance(target, Format) or not isinstance(target.layout, Layout):
        return target
    return Format(batch_layout(target.layout, axis), target.sharding)


device_put_p = ListPrimitive(
    "device_put",
    ("devices", "srcs", "copy_semantics"),
    abstract=_abstract,
    emit=_emit,
    evaluate=_evaluate,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
    # The abstract rule returns complete types, shardings included.
    holds_jaxprs=True,
    # A device of None is printed as well.
    unprinted={"devices": (), "srcs": ()},
)


def put(
    values: Sequence[Any], devices: Sequence[Any], sources: Sequence[Any] | None = None,
    semantics: Sequence[CopySemantics] | None = None,
) -> list[Any]:
    """Return `values`, each put on its entry of `devices`: a device, a sharding or a `MemorySpace`, or None to stay.

    sources: the devices or shardings that hold the values, if known. semantics: by default, copy.
    """
    count = len(values)
    sources = (None,) * count if sources is None else tuple(sources)
    semantics = (CopySemantics.ALWAYS_COPY,) * count if semantics is None else tuple(semantics)
    return device_put_p.bind_positional(values, (tuple(devices), sources, semantics))


def _placed_abstract(aval: ShapedArray, *, memory_space: MemorySpace) -> ShapedArray:
    """Return the operand in a memory space."""
    return aval.update(memory_space=memory_space)


def _placed_emit(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    return _emit_placement(builder, x, builder.results[0])


def _placed_evaluate(array: ConcreteArray, *, memory_space: MemorySpace) -> ConcreteArray:
    return array if memory_space is array.aval.memory_space else in_memory(array, memory_space, array.committed)


def _placed_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, memory_space: MemorySpace) -> tuple[Any, Any]:
    moved = None if tangents[0] is None else place_result(tangents[0], memory_space)
    return place_result(primals[0], memory_space), moved


def _placed_transpose(cotangent: Array, operand: Any, **_: object) -> list[Any]:
    space = operand.aval.memory_space
    return [cotangent if cotangent.aval.memory_space is space else place_result(cotangent, space)]


place_result_p = Primitive(
    "place_result", ("memory_space",), abstract=_placed_abstract, emit=_placed_emit, evaluate=_placed_evaluate,
    jvp=_placed_jvp, transpose=_placed_transpose, batch=IN_PLACE, moves_elements=True, memoised=False,
)


def place_result(value: Any, memory_space: MemorySpace) -> Any:
    """Return a result in a memory space; unlike `put`, the program also names the device's own memory.

    XLA moves the results of computations on the host to the device only if the program asks for it.
    """
    return place_result_p.bind(value, memory_space=memory_space)
