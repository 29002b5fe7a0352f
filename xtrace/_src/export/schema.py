"""The tables of a file of jax.export: their fields with slots, and the numbers of enumerations."""

from __future__ import annotations

from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.shardings.mesh import AxisType
from xtrace._src.export.flatbuffers import Number, OptionalNumber, Table, Text, Vector
from xtrace._src.ops.random.keys import generators

_BYTE, _SHORT, _INT = Number("b"), Number("H"), Number("I")
_BYTES, _TEXT, _TEXTS = Vector("B"), Text(), Vector(Text())

# The version of written files, and the newest readable version.
VERSION, NEWEST_VERSION = 3, 12

LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)

TREE = Table({"kind": (0, _BYTE), "children_names": (2, _TEXTS), "custom_name": (3, _TEXT), "auxdata": (4, _BYTES)})
TREE.fields["children"] = (1, Vector(TREE))

AVAL = Table({"kind": (0, _BYTE), "shape": (1, _TEXTS), "dtype": (2, _BYTE), "memory_space": (3, _BYTE)})
ABSTRACT_VALUE_ARRAY = 0

DEVICE = Table({"device_kind": (0, _TEXT), "num_cores": (1, OptionalNumber("I")), "platform": (2, _TEXT)})

MESH = Table({
    "axis_sizes": (0, Vector("I")), "axis_names": (1, _TEXTS), "axis_types": (2, Vector("b")), "device": (3, DEVICE),
})

_ENTRY = Table({"axes": (0, _TEXTS)})
SPEC = Table({
    "partitions": (0, Vector(_ENTRY)), "reduced": (1, _TEXTS), "unreduced": (2, _TEXTS),
})

NAMED_SHARDING = Table({
    "mesh": (0, MESH), "spec": (1, SPEC), "memory_kind": (2, _TEXT), "mesh_number": (3, _INT),
})

SHARDING = Table({"kind": (0, _BYTE), "hlo_sharding": (1, _BYTES), "named_sharding": (2, NAMED_SHARDING)})
HLO_SHARDING = 1

EFFECT = Table({"type_name": (0, _TEXT)})

CHECK = Table({"kind": (0, _BYTE), "target": (1, _TEXT)})
PLATFORM_CHECK, CUSTOM_CALL_CHECK, SHAPE_CHECK = range(3)

# A file has its types, shardings and meshes twice: as lists of all, and as numbers of the unique ones.
EXPORTED = Table({
    "serialization_version": (0, _SHORT), "fun_name": (1, _TEXT), "in_tree": (2, TREE), "in_avals": (3, Vector(AVAL)),
    "out_tree": (4, TREE), "out_avals": (5, Vector(AVAL)), "nr_devices_short": (6, Number("h")),
    "in_shardings": (7, Vector(SHARDING)), "out_shardings": (8, Vector(SHARDING)), "platforms": (9, _TEXTS),
    "ordered_effects": (10, Vector(EFFECT)), "unordered_effects": (11, Vector(EFFECT)),
    "disabled_checks": (12, Vector(CHECK)), "module": (13, _BYTES), "calling_convention_version": (14, _SHORT),
    "kept": (15, Vector("H")), "uses_global_constants": (16, Number("?")), "nr_devices": (18, _INT),
    "unique_avals": (19, Vector(AVAL)), "unique_meshes": (20, Vector(MESH)),
    "unique_shardings": (21, Vector(NAMED_SHARDING)), "in_aval_numbers": (22, Vector("I")),
    "out_aval_numbers": (23, Vector("I")), "in_sharding_numbers": (24, Vector("I")),
    "out_sharding_numbers": (25, Vector("I")),
})
EXPORTED.fields["vjp"] = (17, EXPORTED)

DTYPES: dict[int, Any] = dict(enumerate((
    dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.uint32,
    dtypes.uint64, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
    dtypes.bfloat16, dtypes.int4, dtypes.uint4, dtypes.float8_e4m3b11fnuz, dtypes.float8_e4m3fn,
    dtypes.float8_e4m3fnuz, dtypes.float8_e5m2, dtypes.float8_e5m2fnuz, dtypes.float0, dtypes.float8_e4m3,
    dtypes.float8_e3m4, dtypes.float8_e8m0fnu, dtypes.float4_e2m1fn, generators["threefry2x32"].dtype,
    generators["rbg"].dtype, generators["unsafe_rbg"].dtype,
)))
NUMBERS_OF_DTYPES = {dtype: number for number, dtype in DTYPES.items()}

MEMORY_SPACES = {1: MemorySpace.Device, 2: MemorySpace.Host, 3: MemorySpace.Any}
AXIS_TYPES = {1: AxisType.Auto, 2: AxisType.Explicit, 3: AxisType.Manual}
