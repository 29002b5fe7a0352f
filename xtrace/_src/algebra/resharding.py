"""The identity that splits a value otherwise over explicit mesh axes, as its type then says."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import LINEAR
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.mesh import Mesh, context_mesh
from xtrace._src.core.partition_spec import full_entries
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings import NamedSharding, explicit_part
from xtrace._src.runtime.arrays import ConcreteArray, mesh_sharding, new_array, placement
from xtrace._src.runtime.transfer import put_at
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla import guards

__all__ = ["reshard_p", "unsplit_p"]


def _reshard_abstract(operand: ShapedArray, *, dst_sharding: NamedSharding) -> ShapedArray:
    """The operand, with the split over explicit mesh axes that `dst_sharding` says."""
    dst_sharding.check_compatible_aval(operand.shape)
    dst_sharding.check_divisible(operand.shape)
    return operand.update(sharding=explicit_part(dst_sharding, operand.ndim))


def _split_of_reshard(name: str, operands: Any, result: ShapedArray, *, dst_sharding: NamedSharding) -> Any:
    return full_entries(dst_sharding.spec, result.ndim)


def _reshard_emit(builder: FunctionBuilder, x: Value, *, dst_sharding: NamedSharding) -> Value:
    return builder.constrain(x, dst_sharding).bitcast(builder.results[0])


def _reshard_evaluate(array: ConcreteArray, *, dst_sharding: NamedSharding) -> Array:
    mesh = dst_sharding.mesh
    if not isinstance(mesh, Mesh):
        own = mesh_sharding(array)
        mesh = own.mesh if isinstance(own, NamedSharding) else context_mesh()
        if mesh.empty:
            raise NoMeshError(
                f"reshard: {dst_sharding.spec} says no devices. Write with xtrace.set_mesh(mesh):, or give a "
                "NamedSharding(mesh, spec)"
            )
        dst_sharding = NamedSharding(mesh, dst_sharding.spec)
    with guards.lifted():
        return put_at(array, dst_sharding)


def _reshard_transpose(cotangent: Array, operand: Any, *, dst_sharding: NamedSharding) -> list[Any]:
    return [split_as(cotangent, operand.aval) if operand.aval.sharding is not None else unsplit(cotangent)]


def _reshard_batch(mapped: Any, operands: Any, axes: Any, *, dst_sharding: NamedSharding) -> tuple[Any, int]:
    (x,), (axis,) = operands, axes
    own = aval_of(x).sharding
    entries = list(full_entries(dst_sharding.spec, x.ndim - 1))
    entries.insert(axis, own.spec[axis] if own is not None else mapped.spmd_name)
    spec = dst_sharding.spec.update(partitions=tuple(entries))
    return reshard_p.bind_positional((x,), (dst_sharding.update(spec=spec),)), axis


reshard_p = Primitive(
    "reshard", ("dst_sharding",), sharding=_split_of_reshard, abstract=_reshard_abstract, emit=_reshard_emit,
    evaluate=_reshard_evaluate, jvp=LINEAR, transpose=_reshard_transpose, batch=_reshard_batch, moves_elements=True,
)


def _unsplit_abstract(operand: ShapedArray) -> ShapedArray:
    """The operand, whose split over explicit mesh axes is the compiler's matter from here on."""
    return operand.update(sharding=None)


def _unsplit_evaluate(array: ConcreteArray) -> Array:
    own = mesh_sharding(array)
    aval = array.aval.update(sharding=None)
    return array if own is None else new_array(aval, array.buffer, placement(aval, own))


def _unsplit_transpose(cotangent: Array, operand: Any) -> list[Any]:
    return [split_as(cotangent, operand.aval)]


def _unsplit_batch(mapped: Any, operands: Any, axes: Any) -> tuple[Any, int]:
    return unsplit_p.bind_positional(operands), axes[0]


unsplit_p = Primitive(
    "unsplit", holds_jaxprs=True, abstract=_unsplit_abstract, emit=lambda builder, x: x.bitcast(builder.results[0]),
    evaluate=_unsplit_evaluate, jvp=LINEAR, transpose=_unsplit_transpose, batch=_unsplit_batch, moves_elements=True,
)


def unsplit(x: Any) -> Any:
    """Return `x` without the split over explicit mesh axes in its type: the compiler chooses how it is used."""
    return x if aval_of(x).sharding is None else unsplit_p.bind_positional((x,))


def split_result(result: Any, sharding: NamedSharding | None) -> Any:
    """Return a result that a user wants split as `sharding` says, None for as it is."""
    if sharding is None:
        return result
    sharding.check_compatible_aval(aval_of(result).shape)
    return reshard_p.bind_positional((result,), (sharding,))


def split_as(x: Any, aval: ShapedArray) -> Any:
    """Return `x` with the split over explicit mesh axes that the type `aval` says."""
    if aval.sharding is None or aval_of(x).sharding == aval.sharding:
        return x
    if type(x) is ConcreteArray and mesh_sharding(x) is None and context_mesh().empty:
        # It is on no mesh, and which devices the axes have is not known here.
        return x
    return reshard_p.bind_positional((x,), (aval.sharding,))
