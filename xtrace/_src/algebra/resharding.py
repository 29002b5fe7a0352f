"""Resharding: the identity with another sharding over explicit mesh axes in the result's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xtrace._src.algebra.vector_space import LINEAR
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings import sharding_rules
from xtrace._src.core.shardings.mesh import AbstractMesh, AxisType, BaseMesh, Mesh, context_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, full_entries
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.shardings.shardings import NamedSharding, explicit_part, open_dimensions
from xtrace._src.runtime.arrays import ConcreteArray, get_layout, mesh_sharding, new_array, placement
from xtrace._src.runtime.transfer import put_at
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla import guards

_Result = TypeVar("_Result")


def _abstract(operand: ShapedArray, *, dst_sharding: NamedSharding) -> ShapedArray:
    """Return the operand, with a sharding over explicit mesh axes."""
    dst_sharding.check_compatible_aval(operand.shape)
    dst_sharding.check_divisible(operand.shape)
    return operand.update(sharding=explicit_part(dst_sharding, operand.ndim))


def _emit(builder: FunctionBuilder, x: Value, *, dst_sharding: NamedSharding) -> Value:
    if dst_sharding.mesh.explicit_axes:
        if dst_sharding.spec.unreduced and x.aval.explicit_sharding is None:
            # Otherwise the partitioner takes a constant for one term per device, and the sum counts it several times.
            whole = dst_sharding.update(spec=PartitionSpec())
            x = builder.constrain(x, whole, open_dimensions(whole, x.aval.ndim))
        x = builder.constrain(x, dst_sharding, open_dimensions(dst_sharding, x.aval.ndim))
    return x.bitcast(builder.results[0])


def _evaluate(array: ConcreteArray, *, dst_sharding: NamedSharding) -> Array:
    mesh, own = dst_sharding.mesh, mesh_sharding(array)
    entries = full_entries(dst_sharding.spec, array.ndim)
    dst_sharding = dst_sharding.update(spec=dst_sharding.spec.update(partitions=entries))
    if not mesh.explicit_axes:
        if own is not None:
            aval = array.aval.update(sharding=None)
            return new_array(aval, array.buffer, placement(aval, own, layout=get_layout(array)))
        if array.committed or not isinstance(mesh, Mesh):
            return array
    if not isinstance(mesh, Mesh):
        mesh = own.mesh if isinstance(own, NamedSharding) else context_mesh()
        if mesh.empty:
            if own is None and not array.ndim:
                # A scalar on no mesh goes with any mesh.
                return array
            raise NoMeshError(
                f"reshard: {dst_sharding.spec} names no devices. Write with xtrace.set_mesh(mesh):, or give a "
                "NamedSharding(mesh, spec)"
            )
        dst_sharding = NamedSharding(mesh.update(axis_types=dst_sharding.mesh.axis_types), dst_sharding.spec)
    with guards.lift_guards():
        return put_at(array, dst_sharding)


def _transpose(cotangent: Array, operand: Any, *, dst_sharding: NamedSharding) -> list[Any]:
    return [cast_to_auto(cotangent) if operand.aval.explicit_sharding is None else reshard_as(cotangent, operand.aval)]


def _batch(mapped: Any, operands: Any, axes: Any, *, dst_sharding: NamedSharding) -> tuple[Any, int]:
    (x,), (axis,) = operands, axes
    if not dst_sharding.mesh.explicit_axes:
        return reshard_p.bind_positional(operands, (dst_sharding,)), axis
    target = sharding_rules.batch(mapped, x, axis, axis, dst_sharding, x.ndim - 1)
    return reshard_p.bind_positional((x,), (target,)), axis


reshard_p = ArrayPrimitive(
    "reshard", ("dst_sharding",), holds_jaxprs=True, abstract=_abstract, emit=_emit, evaluate=_evaluate, jvp=LINEAR,
    transpose=_transpose, batch=_batch, moves_elements=True, unprinted={"dst_sharding": NEVER_PRINTED},
)


def cast_to(x: Any, mesh: AbstractMesh) -> Any:
    """Return `x` with its type's sharding restricted to the explicit axes of `mesh`, a mesh of the same axes."""
    own = aval_of(x).explicit_sharding
    if own is None or own.mesh is mesh:
        return x
    # Without explicit axes the type holds no sharding, so any specification will do.
    target = NamedSharding(mesh, own.spec if mesh.explicit_axes else PartitionSpec())
    return reshard_p.bind_positional((x,), (explicit_part(target, aval_of(x).ndim) or target,))


def cast_to_auto(x: Any) -> Any:
    """Return `x` without a sharding in its type; the compiler chooses one."""
    own = aval_of(x).explicit_sharding
    if own is None:
        return x
    if own.spec.unreduced:
        x = reshard_p.bind_positional((x,), (own.update(spec=PartitionSpec(*own.spec.partitions)),))
    return cast_to(x, own.mesh.update_axis_types(dict.fromkeys(own.mesh.explicit_axes, AxisType.Auto)))


def reshard_result(result: Array, sharding: NamedSharding | None) -> Array:
    """Return `result` with a sharding that a user requested; None for no request."""
    if sharding is None:
        return result
    shape = aval_of(result).shape
    sharding.check_compatible_aval(shape)
    spec = sharding.spec.update(partitions=full_entries(sharding.spec, len(shape)))
    if spec.unreduced and aval_of(result).explicit_sharding == explicit_part(sharding.update(spec=spec), len(shape)):
        return result
    return reshard_p.bind_positional((result,), (sharding.update(spec=spec),))


def with_out_sharding(function: Callable[..., _Result], out_sharding: object, *args: Any, **kwargs: Any) -> _Result:
    """Return ``function(*args, **kwargs)`` in the sharding `out_sharding`; the compiler chooses the operands'."""
    sharding = requested_out_sharding(out_sharding, function=function.__name__)
    args, kwargs = pytree.tree_map(lambda x: cast_to_auto(x) if isinstance(x, Array) else x, (args, kwargs))
    results = function(*args, **kwargs)
    return pytree.tree_map(lambda x: reshard_result(x, sharding), results)  # type: ignore[no-any-return]


def compute_resharded(wanted: ShapedArray, function: Callable[..., Any], *operands: Any) -> Any:
    """Return ``function(*operands)`` in the sharding of the type `wanted`; the compiler chooses the operands'."""
    if all(aval_of(x).explicit_sharding is None for x in operands):
        return function(*operands)
    return reshard_as(function(*map(cast_to_auto, operands)), wanted)


def knows_devices(x: Any, mesh: BaseMesh) -> bool:
    """Whether `mesh` has known devices at a use of `x`: an abstract mesh has none for an array that is on no mesh."""
    return type(x) is not ConcreteArray or isinstance(mesh, Mesh) or mesh_sharding(x) is not None or (
        not context_mesh().empty
    )


def reshard_as(x: Any, aval: ShapedArray) -> Any:
    """Return `x` with the sharding of the type `aval` over explicit mesh axes."""
    if aval.explicit_sharding is None or aval_of(x).explicit_sharding == aval.explicit_sharding:
        return x
    if not knows_devices(x, aval.explicit_sharding.mesh):
        return x
    return reshard_p.bind_positional((x,), (aval.explicit_sharding,))
