"""`deserialize`: exported functions from the bytes of files, also of jax.export. Reading runs no code of the file."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.shardings.mesh import AbstractDevice, AbstractMesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.symbolic_dimensions.bounds import find_bounds
from xtrace._src.core.symbolic_dimensions.scopes import SymbolicScope
from xtrace._src.core.symbolic_dimensions.texts import parse_dimension
from xtrace._src.export import schema
from xtrace._src.export.checks import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.export.exported import Exported
from xtrace._src.export.flatbuffers import DamagedFileError, Record, decode
from xtrace._src.export.serialization import DIGEST_MARK, DIGEST_SIZE, IDENTIFIER
from xtrace._src.export.trees import read_tree
from xtrace._src.xla import shardings

# The largest number of characters of a symbolic dimension in files.
_MAX_SIZE_LENGTH = 1000


def deserialize(blob: bytes | bytearray | memoryview) -> Exported:
    """Return the exported function in the bytes of a file.

    The file contains a program and the names of registered classes of its arguments, but no code of Python. A file of
    xtrace has a digest that reveals damage. The program of another file is read in a separate process at its first use.

    Args:
        blob: the result of `Exported.serialize`, of xtrace or of jax.export.

    Returns:
        An `Exported`. Its order of differentiation is the `vjp_order` of its serialization.

    Raises:
        TypeError: `blob` is not made of bytes.
        ValueError: the bytes are no file of an exported function, are damaged, or are of a newer version; a class or a
            name in it is not registered here.

    Example:
        >>> exported = xtrace.export.export(xtrace.jit(jnp.sin))(0.0)
        >>> xtrace.export.deserialize(exported.serialize()).fun_name
        'sin'
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize: blob must be bytes, such as serialize() returns; got {abbreviate(blob)}")
    data = bytes(blob)
    try:
        is_intact = _check_digest(data)
        return _read_exported(decode(schema.EXPORTED, data), is_intact)
    except DamagedFileError as error:
        raise ValueError(
            f"deserialize: blob, of {len(data)} bytes, is no exported function, or is damaged: {error}"
        ) from None


def _check_digest(data: bytes) -> bool:
    """Return whether a file has a digest; DamagedFileError if the digest is wrong or missing."""
    content, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
    if not content.endswith(DIGEST_MARK):
        if data[4:8] == IDENTIFIER:
            raise DamagedFileError("its end is no SHA-256, as files of xtrace have")
        return False
    if not hmac.compare_digest(hashlib.sha256(content).digest(), digest):
        raise DamagedFileError("its bytes do not have the SHA-256 at its end")
    return True


def _read_exported(record: Record, is_intact: bool, scope: SymbolicScope | None = None) -> Exported:
    """Return the function of a record; the function and its derivatives share a scope of symbolic dimensions."""
    _check_versions(record)
    # Shardings contain their meshes; the list of meshes is only checked.
    for each in record["unique_meshes"] or []:
        _read_mesh(each)
    in_tree, out_tree = read_tree(record["in_tree"]), read_tree(record["out_tree"])
    scope = SymbolicScope() if scope is None else scope
    in_avals, out_avals = [_read_avals(record, side, scope) for side in ("in", "out")]
    in_shardings, out_shardings = [_read_shardings(record, side) for side in ("in", "out")]
    devices = record["nr_devices"] or record["nr_devices_short"]
    if devices < 1:
        raise DamagedFileError(f"it is for {devices} devices")
    in_tiles, out_tiles = [
        _read_tiles(record, side, len(named), devices) for side, named in (("in", in_shardings), ("out", out_shardings))
    ]
    for word, tree, avals, named in (
        ("arguments", in_tree, in_avals, in_shardings), ("results", out_tree, out_avals, out_shardings)
    ):
        if not tree.num_leaves == len(avals) == len(named):
            raise DamagedFileError(
                f"its {word} are {tree.num_leaves} leaves with {len(avals)} types and {len(named)} shardings"
            )
    kept = tuple(record["kept"] or ())
    if list(kept) != sorted(set(kept)) or any(i >= len(in_avals) for i in kept):
        raise DamagedFileError(f"its program takes the arguments {kept} of {len(in_avals)}")
    platforms = tuple(record["platforms"] or ())
    if not platforms or len(set(platforms)) < len(platforms):
        raise DamagedFileError(f"its platforms are {platforms}")
    vjp = None if record["vjp"] is None else _read_exported(record["vjp"], is_intact, scope)
    if vjp is not None:
        _check_derivative(in_avals, out_avals, vjp)
    return Exported(
        fun_name=record["fun_name"] or "", in_tree=in_tree, in_avals=in_avals, out_tree=out_tree, out_avals=out_avals,
        _has_named_shardings=not any(
            tiles is not None and named is None
            for tiles, named in zip((*in_tiles, *out_tiles), (*in_shardings, *out_shardings), strict=True)
        ),
        _in_named_shardings=in_shardings, _out_named_shardings=out_shardings,
        in_shardings_hlo=in_tiles, out_shardings_hlo=out_tiles, nr_devices=devices,
        platforms=platforms, ordered_effects=(), unordered_effects=(),
        disabled_safety_checks=tuple([_read_check(each) for each in record["disabled_checks"] or []]),
        mlir_module_serialized=record["module"] or b"",
        calling_convention_version=record["calling_convention_version"], module_kept_var_idx=kept,
        uses_global_constants=bool(record["uses_global_constants"]), _get_vjp=None if vjp is None else lambda _: vjp,
        _is_intact=is_intact,
    )


def _check_versions(record: Record) -> None:
    version, calling = record["serialization_version"], record["calling_convention_version"]
    if not 1 <= version <= schema.NEWEST_VERSION:
        raise DamagedFileError(
            f"it has version {version} of the format, and this release reads 1 to {schema.NEWEST_VERSION}; save it by "
            "an older release, or read it by a newer one"
        )
    lowest, highest = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    if not lowest <= calling <= highest:
        raise DamagedFileError(
            f"it has calling convention {calling}, and this release supports {lowest} to {highest}"
        )
    effects = [e["type_name"] for e in (*(record["ordered_effects"] or []), *(record["unordered_effects"] or []))]
    if effects:
        raise ValueError(f"deserialize: the function has the effects {', '.join(map(str, effects))}, unknown here")


def _check_derivative(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], vjp: Exported) -> None:
    """Raise DamagedFileError unless a derivative has the types of the function's arguments and cotangents."""
    cotangents = [[_type_key(aval.to_tangent_aval()) for aval in avals] for avals in (in_avals, out_avals)]
    takes, returns = [[_type_key(aval) for aval in avals] for avals in (vjp.in_avals, vjp.out_avals)]
    if takes != [*map(_type_key, in_avals), *cotangents[1]] or returns != cotangents[0]:
        raise DamagedFileError("its derivative takes or returns other types than the function has")


def _type_key(aval: ShapedArray) -> tuple[Any, Any]:
    return aval.shape, aval.dtype


def _read_avals(record: Record, side: str, scope: SymbolicScope) -> tuple[ShapedArray, ...]:
    """Return the types of one side, from the numbers of unique types, or from the list of all types in older files."""
    numbers = record[f"{side}_aval_numbers"]
    if numbers is None:
        return tuple([_read_aval(each, scope) for each in record[f"{side}_avals"] or []])
    return _pick([_read_aval(each, scope) for each in record["unique_avals"] or []], numbers, f"{side}_avals")


def _pick(objects: Sequence[Any], numbers: Sequence[int], name: str) -> tuple[Any, ...]:
    if any(n >= len(objects) for n in numbers):
        raise DamagedFileError(f"its {name} have the numbers {tuple(numbers)} of {len(objects)}")
    return tuple([objects[n] for n in numbers])


def _read_aval(record: Record, scope: SymbolicScope) -> ShapedArray:
    if record["kind"] != schema.ABSTRACT_VALUE_ARRAY:
        raise ValueError("deserialize: an argument or result is a token, which functions cannot be called with here")
    dtype = schema.DTYPES.get(record["dtype"])
    # Files before version 3 have no memory spaces.
    space = schema.MEMORY_SPACES.get(record["memory_space"] or 1)
    sizes = record["shape"] or []
    if dtype is None or space is None:
        raise DamagedFileError(f"a type in it has the unknown dtype {record['dtype']} or memory")
    return ShapedArray(tuple([_read_size(text, scope) for text in sizes]), dtype, memory_space=space)


def _read_size(text: str, scope: SymbolicScope) -> Any:
    if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        return int(text)
    try:
        if len(text) <= _MAX_SIZE_LENGTH and text.isascii():
            size = parse_dimension(text, scope)
            if find_bounds(size)[1] >= 0:
                return size
    except (ValueError, RecursionError):
        pass
    raise DamagedFileError(f"a type in it has the size {abbreviate(text)}")


def _read_shardings(record: Record, side: str) -> tuple[NamedSharding | None, ...]:
    numbers = record[f"{side}_sharding_numbers"]
    if numbers is None:
        given = [each["named_sharding"] for each in record[f"{side}_shardings"] or []]
        return tuple([None if each is None else _read_named_sharding(each) for each in given])
    unique = [None, *[_read_named_sharding(each) for each in record["unique_shardings"] or []]]
    return _pick(unique, numbers, f"{side}_shardings")


def _read_tiles(record: Record, side: str, count: int, devices: int) -> tuple[Any, ...]:
    """Return the shardings of one side in XLA's form, which files before version 9 of the format have."""
    records = record[f"{side}_shardings"] or [{"kind": 0}] * count
    if len(records) != count:
        raise DamagedFileError(f"its {side}_shardings are {len(records)} and {count}")
    try:
        return tuple([
            shardings.read_hlo_sharding(bytes(each["hlo_sharding"] or b""), devices)
            if each["kind"] == schema.HLO_SHARDING else None
            for each in records
        ])
    except ValueError as error:
        raise DamagedFileError(f"a sharding in it is invalid: {error}") from None


def _read_named_sharding(record: Record) -> NamedSharding:
    spec = record["spec"]
    if record["mesh"] is None or spec is None:
        raise DamagedFileError("a sharding in it has no mesh or no specification")
    entries = [tuple(each["axes"] or ()) for each in spec["partitions"] or []]
    try:
        return NamedSharding(_read_mesh(record["mesh"]), PartitionSpec(
            *[entry[0] if len(entry) == 1 else entry or None for entry in entries],
            unreduced=frozenset(spec["unreduced"] or ()), reduced=frozenset(spec["reduced"] or ()),
        ), record["memory_kind"])
    except (TypeError, ValueError) as error:
        raise DamagedFileError(f"a sharding in it is invalid: {error}") from None


def _read_mesh(record: Record) -> AbstractMesh:
    device, sizes, names = record["device"], record["axis_sizes"] or (), record["axis_names"] or []
    types = [schema.AXIS_TYPES.get(number) for number in record["axis_types"] or ()]
    if not len(sizes) == len(names) == len(types) or None in types or 0 in sizes:
        raise DamagedFileError("a mesh in it has sizes, names and types of axes that do not fit")
    try:
        return AbstractMesh(sizes, tuple(names), tuple(types), abstract_device=device and AbstractDevice(
            device["device_kind"] or "", device["num_cores"], device["platform"]
        ))
    except (TypeError, ValueError) as error:
        raise DamagedFileError(f"a mesh in it is invalid: {error}") from None


def _read_check(record: Record) -> DisabledSafetyCheck:
    kind = record["kind"]
    if kind == schema.CUSTOM_CALL_CHECK:
        return DisabledSafetyCheck.custom_call(record["target"] or "")
    if kind not in (schema.PLATFORM_CHECK, schema.SHAPE_CHECK):
        raise DamagedFileError(f"it has a disabled check of the unknown kind {kind}")
    return DisabledSafetyCheck.platform() if kind == schema.PLATFORM_CHECK else DisabledSafetyCheck("shape_assertions")
