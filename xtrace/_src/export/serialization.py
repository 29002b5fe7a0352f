"""Exported functions as records and as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.integers import to_integer
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.partition_spec import get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.export import schema
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.export.flatbuffers import Record, encode
from xtrace._src.export.trees import make_tree_record

# The fifth to eighth bytes of xtrace's files, which have a digest.
IDENTIFIER = b"XTRC"
# The end of the record, where readers of the format stop; the SHA-256 of all bytes up to here follows.
DIGEST_MARK = b"xtrace export, SHA-256: "
DIGEST_SIZE = hashlib.sha256().digest_size
# Each order makes the file of 2 * x half as large again, and that of x * tanh(x) 2.5 times as large: 2.4 MB at 10.
_MAXIMUM_VJP_ORDER = 10


def serialize(exported: Any, vjp_order: int) -> bytearray:
    """Return the bytes of a file with an `Exported` and its derivatives up to `vjp_order`."""
    order = to_integer("vjp_order", vjp_order)
    if order < 0:
        raise ValueError(f"serialize: vjp_order must be 0 or more, got {order}")
    if order > _MAXIMUM_VJP_ORDER:
        raise ValueError(
            f"serialize: vjp_order must be at most {_MAXIMUM_VJP_ORDER}, got {order}: the arguments of each derivative "
            "are the arguments and results of the one before, so each order about doubles the file and the time"
        )
    try:
        data = encode(schema.EXPORTED, _make_exported_record(exported, order), IDENTIFIER)
    except RecursionError:
        raise ValueError(f"serialize: the arguments or results of {exported.fun_name} are nested too deep") from None
    data += bytes(-len(data) % 4) + DIGEST_MARK
    return data + hashlib.sha256(data).digest()


def _make_exported_record(exported: Any, vjp_order: int) -> Record:
    if exported.ordered_effects or exported.unordered_effects:
        effects = ", ".join(map(str, (*exported.ordered_effects, *exported.unordered_effects)))
        raise NotImplementedError(
            f"serialize: {exported.fun_name} has the effects {effects}, which have no form in files"
        )
    if not exported._has_named_shardings:
        raise ValueError(
            f"serialize: {exported.fun_name} is from a file of an older release, whose shardings have no mesh; keep "
            "that file, or export the function again"
        )
    in_shardings, out_shardings = exported._in_named_shardings, exported._out_named_shardings
    unique_shardings = _number([s for s in (*in_shardings, *out_shardings) if s is not None])
    unique_meshes = _number([s.mesh for s in unique_shardings])
    placed_inputs = list(zip(map(_strip_aval, exported.in_avals), in_shardings, strict=True))
    placed_results = list(zip(map(_strip_aval, exported.out_avals), out_shardings, strict=True))
    unique_avals = _number([*placed_inputs, *placed_results])
    shardings = {s: _make_sharding_record(s, unique_meshes) for s in unique_shardings}

    def number_shardings(given: Sequence[NamedSharding | None]) -> list[int]:
        return [0 if s is None else 1 + unique_shardings[s] for s in given]

    def make_sharding_records(given: Sequence[NamedSharding | None]) -> list[Record]:
        return [{} if s is None else {"named_sharding": shardings[s]} for s in given]

    return {
        "serialization_version": schema.VERSION, "fun_name": exported.fun_name,
        "in_tree": make_tree_record(exported.in_tree), "out_tree": make_tree_record(exported.out_tree),
        "in_avals": [_make_aval_record(aval) for aval, _ in placed_inputs],
        "out_avals": [_make_aval_record(aval) for aval, _ in placed_results],
        "unique_avals": [_make_aval_record(aval) for aval, _ in unique_avals],
        "in_aval_numbers": [unique_avals[pair] for pair in placed_inputs],
        "out_aval_numbers": [unique_avals[pair] for pair in placed_results],
        "in_shardings": make_sharding_records(in_shardings), "out_shardings": make_sharding_records(out_shardings),
        "unique_shardings": list(shardings.values()), "unique_meshes": list(map(_make_mesh_record, unique_meshes)),
        "in_sharding_numbers": number_shardings(in_shardings), "out_sharding_numbers": number_shardings(out_shardings),
        "nr_devices": exported.nr_devices, "platforms": exported.platforms, "ordered_effects": [],
        "unordered_effects": [], "disabled_checks": list(map(_make_check_record, exported.disabled_safety_checks)),
        "module": exported.mlir_module_serialized, "calling_convention_version": exported.calling_convention_version,
        "kept": exported.module_kept_var_idx, "uses_global_constants": exported.uses_global_constants,
        "vjp": _make_exported_record(exported.vjp(), vjp_order - 1) if vjp_order else None,
    }


def _number(objects: Sequence[Any]) -> dict[Any, int]:
    """Return the unique objects in order, each with its number."""
    return {each: i for i, each in enumerate(dict.fromkeys(objects))}


def _strip_aval(aval: ShapedArray) -> ShapedArray:
    """Return a type without weak type and sharding: types in files have neither."""
    return ShapedArray(aval.shape, aval.dtype, memory_space=aval.memory_space)


def _make_aval_record(aval: ShapedArray) -> Record:
    number = schema.NUMBERS_OF_DTYPES.get(aval.dtype)
    if number is None:
        raise ValueError(
            f"serialize: an argument or result is {aval.str_short()}, and files of jax.export have no number for "
            "that dtype; convert it, inside of the function, from and to another one"
        )
    return {"dtype": number, "shape": list(map(str, aval.shape)), "memory_space": aval.memory_space.value}


def _make_sharding_record(sharding: NamedSharding, meshes: dict[Any, int]) -> Record:
    spec = sharding.spec
    return {
        "mesh": _make_mesh_record(sharding.mesh), "mesh_number": meshes[sharding.mesh],
        "memory_kind": sharding.memory_kind,
        "spec": {
            "partitions": [{"axes": list(get_entry_axes(entry))} for entry in spec],
            "reduced": sorted(spec.reduced), "unreduced": sorted(spec.unreduced),
        },
    }


def _make_mesh_record(mesh: BaseMesh) -> Record:
    numbers = {axis_type: number for number, axis_type in schema.AXIS_TYPES.items()}
    device = mesh.abstract_mesh.abstract_device
    return {
        "axis_sizes": mesh.axis_sizes, "axis_names": list(mesh.axis_names),
        "axis_types": [numbers[axis_type] for axis_type in mesh.axis_types],
        "device": None if device is None else device._asdict(),
    }


def _make_check_record(check: DisabledSafetyCheck) -> Record:
    target = check.is_custom_call()
    if target is not None:
        return {"kind": schema.CUSTOM_CALL_CHECK, "target": target}
    return {"kind": schema.PLATFORM_CHECK if check == DisabledSafetyCheck.platform() else schema.SHAPE_CHECK}
