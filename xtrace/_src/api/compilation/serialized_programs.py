"""Compiled programs as bytes: `serialize`, `deserialize_and_load`.

The bytes are a head in JSON, with the program's types, shardings and machine, followed by XLA's executable; a checksum
detects damage. Nothing is unpickled, but XLA's part is code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.api.jit import static_arguments
from xtrace._src.api.jit.stages import Compiled, Partition
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.effects import NO_EFFECTS
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr, JaxprEqn, Var
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.shardings.memory_layout import Layout, Layouts
from xtrace._src.core.shardings.mesh import AbstractDevice, AbstractMesh, AxisType, BaseMesh, Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, TiledSharding, Tiles
from xtrace._src.runtime.arrays import ConcreteArray, mesh_sharding
from xtrace._src.runtime.checked_bytes import Format, WrongBytesError
from xtrace._src.runtime.compilation_cache import KeptCode
from xtrace._src.runtime.execute import Assignment, Program, request_partitioning
from xtrace._src.runtime.transfer import array_from_host, put_at
from xtrace._src.xla import clients
from xtrace._src.xla.executables import environments, executables
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.ops.random import keys

_Part = TypeVar("_Part")

_FORMAT = Format(b"xtrace\x00e", 3, "serialized executable")

_DTYPES: dict[str, Any] = {dtypes.short_name(dtype): dtype for dtype in [*dtypes.all_dtypes.values(), dtypes.float0]}
_AGAIN = "Compile it here, with xtrace.jit(f).lower(...).compile(), and serialize that"


@boundary
def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Return a compiled function as bytes, and the structures of its arguments and results.

    Processes with the same jaxlib on an equal machine can load them: `deserialize_and_load` names differences.
    `xtrace.export` writes files for other machines.

    Args:
        compiled: the result of ``xtrace.jit(f).lower(...).compile()``.

    Returns:
        The bytes, the structure of ``(args, kwargs)`` and the structure of the result; both can be pickled.

    Raises:
        TypeError: `compiled` is no compiled function.
        ValueError: it was compiled for absent devices, takes references, or the runtime cannot write its program.
        NotImplementedError: it calls Python functions, or runs in several processes.

    Example:
        >>> from xtrace.experimental.serialize_executable import deserialize_and_load, serialize
        >>> compiled = xtrace.jit(lambda x: x + 1).lower(0.0).compile()
        >>> deserialize_and_load(*serialize(compiled))(2.0)
        Array(3., dtype=float32, weak_type=True)
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize: compiled must be the result of xtrace.jit(f).lower(...).compile(), got {abbreviate(compiled)}"
        )
    name, program, traced = compiled.fun_name, compiled._program, compiled._traced
    if program is None:
        raise ValueError(f"serialize: {name} was compiled for a device that is not here. {_AGAIN}")
    _check_contents(compiled, program)
    assignment = compiled._partition.assignment
    record, constants = record_program(name, program, assignment, traced)
    code = _get_code(name, program).encode()
    head = record | {
        "environment": environments.describe_environment(assignment.device), "paths": list(compiled._paths()),
        "donated": list(compiled.donate_argnums), "code": len(code),
    }
    return _FORMAT.encode(json.dumps(head).encode(), code + constants), compiled.in_tree, compiled.out_tree


def record_program(
    name: str, program: Program, assignment: Assignment, traced: TracedFunction
) -> tuple[dict[str, Any], bytes]:
    """Return a JSON record for calls of a program, and the data of the arrays that it closes over.

    Raises NotImplementedError for a dtype that was defined in this process.
    """
    hidden = list(map(_read_constant, program.constants))
    record = {
        "name": name, "devices": [d.id for d in assignment.devices], "committed": assignment.committed,
        "in_avals": list(map(record_aval, traced.jaxpr.in_avals)),
        "out_avals": list(map(record_aval, traced.out_avals)),
        "kept": None if program.kept is None else list(program.kept),
        "mesh": None if assignment.mesh is None else record_mesh(assignment.mesh),
        "inputs": list(map(record_sharding, program.inputs or ())),
        "results": list(map(record_sharding, program.results or ())),
        "layouts": _record_layouts(program.layouts),
        "hidden": [record for record, _ in hidden],
    }
    return record, b"".join([content for _, content in hidden])


def _get_code(name: str, program: Program) -> KeptCode:
    if program.kept_code is not None:
        return program.kept_code
    try:
        return KeptCode.of_executable(program.executable)
    except executables.CompileError as error:
        raise ValueError(f"serialize: the runtime cannot write the program of {name}: {error}") from None


def _check_contents(compiled: Compiled, program: Program) -> None:
    """Raise an error for a program that needs more than its bytes: ValueError for one that uses references."""
    name = compiled.fun_name
    if program.callbacks:
        raise NotImplementedError(
            f"serialize: {name} calls Python functions (by a callback, or a print), which its bytes cannot hold. "
            "Leave the calls out, or return their operands"
        )
    if compiled._around is not None:
        raise ValueError(
            f"serialize: {name} takes references or closes over them, which belong to this process. Compile a function "
            "of their arrays that returns the last ones"
        )
    if len({d.process_index for d in compiled._partition.assignment.devices}) > 1:
        raise NotImplementedError(f"serialize: {name} runs in several processes, which compile it together")


@boundary
def deserialize_and_load(
    serialized: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef, backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Return the compiled function in the bytes of `serialize`.

    The bytes are code that runs with the rights of this process: load them only from a source that you trust.

    Args:
        serialized: the bytes.
        in_tree: the structure of ``(args, kwargs)``.
        out_tree: the structure of the result.
        backend: the platform's name or client; None for the program's platform.
        execution_devices: the devices to run on, as many as the program was compiled for; None for the devices with
            the same numbers.

    Returns:
        The compiled function. Its jaxpr is a single opaque equation.

    Raises:
        TypeError: `serialized` is not made of bytes, or a structure is no PyTreeDef.
        ValueError: the bytes are no compiled function or are damaged; they were written for another jaxlib, platform,
            device or processor; there are too few devices; a structure does not fit.

    Example:
        >>> from xtrace.experimental.serialize_executable import deserialize_and_load, serialize
        >>> data, in_tree, out_tree = serialize(xtrace.jit(jnp.sin).lower(0.0).compile())
        >>> deserialize_and_load(data, in_tree, out_tree)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    function = "deserialize_and_load"
    if not isinstance(serialized, (bytes, bytearray, memoryview)):
        raise TypeError(
            f"{function}: serialized must be bytes, such as serialize returns; got {abbreviate(serialized)}"
        )
    for argument, tree in (("in_tree", in_tree), ("out_tree", out_tree)):
        if not isinstance(tree, PyTreeDef):
            raise TypeError(
                f"{function}: {argument} must be a treedef, such as serialize returns; got {abbreviate(tree)}"
            )
    try:
        encoded, payload = _FORMAT.decode(bytes(serialized))
    except WrongBytesError as error:
        raise ValueError(f"{function}: serialized cannot be used: {error}. {_AGAIN}") from None
    head = _parse_head(lambda: _check_head(json.loads(encoded)))
    for argument, tree, avals in (("in_tree", in_tree, head["in_avals"]), ("out_tree", out_tree, head["out_avals"])):
        if tree.num_leaves != len(avals):
            raise ValueError(
                f"{function}: {argument} has {tree.num_leaves} leaves, and {head['name']} has {len(avals)}; pass the "
                "structures that serialize returned with these bytes"
            )
    devices = _devices(head, backend, execution_devices)
    different = _parse_head(lambda: environments.describe_incompatibilities(head["environment"], devices[0]))
    if different:
        raise ValueError(f"{function}: {head['name']} was compiled elsewhere: {'; '.join(different)}. {_AGAIN}")
    return _load(RecordReader(head, devices, execution_devices is not None), payload, in_tree, out_tree)


# The entries of the head and their types.
_PARTS: dict[str, Any] = {
    "environment": dict, "name": str, "devices": list, "committed": bool, "in_avals": list, "paths": list,
    "out_avals": list, "donated": list, "kept": (list, type(None)), "mesh": (dict, type(None)), "inputs": list,
    "results": list, "layouts": (list, type(None)), "hidden": list, "code": int,
}


def _check_head(head: dict[str, Any]) -> dict[str, Any]:
    """Return the head; KeyError, TypeError or ValueError if `serialize` cannot have written it."""
    for name, kind in _PARTS.items():
        if not isinstance(head[name], kind):
            raise TypeError(f"{name} is {abbreviate(head[name])}")
    count = len(head["in_avals"])
    for name, numbers in (("kept", head["kept"] or []), ("donated", head["donated"])):
        if sorted(set(numbers)) != numbers or any(n not in range(count) for n in numbers):
            raise ValueError(f"{name} is {abbreviate(numbers)}, of {count} arguments")
    if len(head["paths"]) != count or not all(isinstance(path, str) for path in head["paths"]):
        raise ValueError(f"paths are {abbreviate(head['paths'])}, of {count} arguments")
    devices = head["devices"]
    if not all(type(n) is int for n in devices) or not devices or len(set(devices)) < len(devices):
        raise ValueError(f"devices are {abbreviate(devices)}")
    if not isinstance(head["environment"].get("platform"), str):
        raise ValueError("it names no platform")
    return head


def _parse_head(read: Callable[[], _Part]) -> _Part:
    """Return ``read()``; ValueError if it fails because another release, or another program, wrote the head."""
    try:
        return read()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"deserialize_and_load: the head of serialized is not one that this release writes: "
            f"{type(error).__name__}: {error}. {_AGAIN}"
        ) from None


def _devices(head: Mapping[str, Any], backend: Any, given: Sequence[Any] | None) -> list[Any]:
    """Return the devices to run on; ValueError if their number is not the program's."""
    function, name, numbers = "deserialize_and_load", head["name"], head["devices"]
    if given is None:
        platform = head["environment"]["platform"]
        try:
            known = {d.id: d for d in clients.client(platform if backend is None else backend).devices()}
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"{function}: {name} was compiled for the platform {platform}, which does not start here: {error}. "
                f"{_AGAIN}"
            ) from None
        missing = [number for number in numbers if number not in known]
        if not missing:
            return [known[number] for number in numbers]
        raise ValueError(
            f"{function}: {name} was compiled for the devices {numbers}, and here are {sorted(known)}; pass "
            f"execution_devices, {len(numbers)} devices"
        )
    devices = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(d, clients.Device) for d in devices):
        raise TypeError(
            f"{function}: execution_devices must be devices such as xtrace.devices(), got {abbreviate(given)}"
        )
    if len(devices) != len(numbers):
        raise ValueError(
            f"{function}: execution_devices has {len(devices)} devices, and {name} was compiled for {len(numbers)}"
        )
    if backend is not None and devices[0].platform != clients.client(backend).platform:
        raise ValueError(f"{function}: the execution_devices are no devices of the backend {abbreviate(backend)}")
    return devices


def _load(reader: RecordReader, payload: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef) -> Compiled:
    head = reader.head
    described = _parse_head(lambda: reader.program(payload[head["code"] :]))
    assignment = described.assignment
    try:
        code = KeptCode.decode(payload[: head["code"]])
        executable = code.load(assignment.devices, None, described.partitioned)
    except (executables.CompileError, WrongBytesError) as error:
        raise ValueError(
            f"deserialize_and_load: XLA refuses the program of {head['name']}: {error}. {_AGAIN}"
        ) from None
    program = _parse_head(lambda: described.load(executable, code))
    traced = described.trace(in_tree, out_tree, lambda: head["paths"])
    function: Any = _LoadedFunction(head["name"], head["donated"], head["paths"])
    partition = Partition(assignment, program.kept, program.inputs, program.results)
    return Compiled(function, static_arguments.NO_STATIC, traced, executable, partition, program)


class _LoadedFunction:
    """The function of a loaded program; it takes the place of a `Jitted`."""

    is_loaded = True

    def __init__(self, name: str, donated: Sequence[int], paths: Sequence[str]) -> None:
        self.name, self._donated, self._paths = name, frozenset(donated), paths
        self.fun, self.static = _as_function(name), static_arguments.Selection("static", _as_function(name), None, None)

    def flag_donated_leaves(self, static: Any, in_tree: PyTreeDef) -> list[bool]:
        """Return a flag for each leaf: whether it is donated."""
        return [i in self._donated for i in range(in_tree.num_leaves)]

    def out_info(self, traced: TracedFunction) -> Any:
        """Return the results as a tree of ShapeDtypeStruct."""
        return traced.out_info

    def check_donation(self, flags: Sequence[bool], static: Any, leaves: Sequence[Any], in_tree: PyTreeDef) -> None:
        """Raise ValueError if a donated array is passed twice."""
        static_arguments.check_donation(self.name, flags, leaves, lambda: self._paths)


def _as_function(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        """Stand for the function that was compiled."""

    function.__name__ = function.__qualname__ = name
    return function


def _abstract(*avals: ShapedArray, name: str, out_avals: tuple[ShapedArray, ...]) -> list[ShapedArray]:
    """Stands for a whole program that was loaded from bytes."""
    return list(out_avals)


def _refuse(builder: Any, *values: Any, name: str, out_avals: tuple[ShapedArray, ...]) -> Any:
    raise NotImplementedError(f"{name} was loaded from bytes and is compiled: its operations are not known")


_no_rule = no_rule("a compiled program cannot become part of another one; call the jitted function instead")
# The primitive of the single equation in the jaxpr of a loaded program.
serialized_executable = Primitive(
    "serialized_executable", ("name", "out_avals"), multiple_results=True, abstract=_abstract, emit=_refuse,
    jvp=_no_rule, batch=_no_rule, memoised=False,
)


class DescribedProgram(NamedTuple):
    """A program as read from a record, without its code."""

    name: str
    assignment: Assignment
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    constants: list[Any]
    kept: Sequence[int] | None

    @property
    def partitioned(self) -> executables.Partitioned | None:
        """The request to XLA to choose shardings; None if there is nothing to choose."""
        return request_partitioning(self.assignment, len(self.constants))

    def load(self, executable: Any, code: KeptCode) -> Program:
        """Return the program with its loaded executable; ValueError if that takes or returns another number of arrays.
        """
        count = len(self.in_avals)
        kept = range(count) if self.kept is None else self.kept
        described = len(self.constants) + len(kept), len(self.out_avals)
        actual = tuple(map(len, executables.get_layouts(executable)))
        if described != actual or any(type(n) is not int or not 0 <= n < count for n in kept):
            raise ValueError(f"it is described as a program of {described} inputs and results, and has {actual}")
        return Program(
            executable, self.assignment, self.out_avals, hidden=self.constants, kept=self.kept, kept_code=code
        )

    def trace(self, in_tree: PyTreeDef, out_tree: PyTreeDef, paths: Callable[[], Sequence[str]]) -> TracedFunction:
        """Return the trace of a function that only calls the program."""
        invars, outvars = [list(map(Var, side)) for side in (self.in_avals, self.out_avals)]
        parameters = (self.name, tuple(self.out_avals))
        call = JaxprEqn([*invars], outvars, serialized_executable, parameters, NO_EFFECTS, None)
        info = DebugInfo("jit", self.name, None, None, paths)
        return TracedFunction(Jaxpr([], invars, [*outvars], [call], debug_info=info), [], in_tree, out_tree, info)


# Records of the head


def record_aval(aval: ShapedArray) -> list[Any]:
    """Return a JSON record of a type."""
    own = aval.explicit_sharding
    return [
        aval.shape, _name_dtype(aval.dtype), aval.weak_type, aval.memory_space.value,
        None if own is None else record_sharding(own),
    ]


def _find_dtype(name: str) -> Any:
    """Return the dtype of this name that all processes have, or None."""
    if name in _DTYPES:
        return _DTYPES[name]
    of_keys: list[Any] = [generator.dtype for generator in keys.generators.values()]
    return next((dtype for dtype in of_keys if dtypes.short_name(dtype) == name), None)


def _name_dtype(dtype: Any) -> str:
    name = dtypes.short_name(dtype)
    if _find_dtype(name) != dtype:
        raise NotImplementedError(
            f"serialize: an argument or result has the dtype {name}, which was defined in this process; compile a "
            "function of the arrays that hold it"
        )
    return name


def record_mesh(mesh: BaseMesh) -> dict[str, Any]:
    """Return a JSON record of a mesh."""
    device = None if isinstance(mesh, Mesh) else mesh.abstract_mesh.abstract_device
    return {
        "sizes": mesh.axis_sizes, "names": mesh.axis_names, "types": [t.name for t in mesh.axis_types],
        "devices": [d.id for d in mesh.flat_devices] if isinstance(mesh, Mesh) else None,
        "abstract device": None if device is None else device._asdict(),
    }


def _record_layouts(layouts: Layouts | None) -> list[list[bool]] | None:
    """Return flags of the inputs and results with a layout of their own, or None; the code contains the layouts."""
    if layouts is None:
        return None
    return [[layout is not None for layout in row] for row in (layouts.inputs, layouts.results)]


def record_sharding(sharding: Sharding) -> dict[str, Any]:
    """Return a JSON record of a sharding."""
    record: dict[str, Any] = {"memory": sharding.memory_kind}
    if isinstance(sharding, NamedSharding):
        spec = sharding.spec
        entries = [[*get_entry_axes(entry)] for entry in spec]
        sums = {"unreduced": sorted(spec.unreduced), "reduced": sorted(spec.reduced)}
        return record | {"mesh": record_mesh(sharding.mesh), "spec": entries} | sums
    return record | {"devices": [d.id for d in sharding.devices], "tiles": sharding.tiles(0)}


def _read_constant(array: ConcreteArray) -> tuple[list[Any], bytes]:
    """Return the JSON record and the data of an array that a program closes over."""
    own = mesh_sharding(array)
    data = array.physical_array().tobytes()
    return [record_aval(array.aval), None if own is None else record_sharding(own), len(data)], data


class RecordReader:
    """A reader of the records in the head of a program's bytes; the program runs on `devices`."""

    def __init__(self, head: Mapping[str, Any], devices: Sequence[Any], committed: bool) -> None:
        self.head, self._devices, self._committed = head, tuple(devices), committed
        self._by_number = dict(zip(head["devices"], devices, strict=True))

    def program(self, data: bytes) -> DescribedProgram:
        """Return the program in the records; `data` is the data of the arrays that it closes over."""
        head, assignment = self.head, self._assignment()
        arguments, results = [list(map(self._aval, head[side])) for side in ("in_avals", "out_avals")]
        return DescribedProgram(head["name"], assignment, arguments, results, self._constants(data), head["kept"])

    def _assignment(self) -> Assignment:
        head = self.head
        committed = head["committed"] or self._committed
        if head["mesh"] is None:
            if len(self._devices) != 1:
                raise ValueError(f"{len(self._devices)} devices without a mesh")
            return Assignment(self._devices, committed, layouts=self._layouts())
        inputs, results = [tuple(map(self._sharding, head[side])) for side in ("inputs", "results")]
        counts = len(head["in_avals"] if head["kept"] is None else head["kept"]), len(head["out_avals"])
        if (len(inputs), len(results)) != counts:
            raise ValueError(f"{(len(inputs), len(results))} shardings of {counts} inputs and results")
        return Assignment(
            self._devices, committed, self._mesh(head["mesh"]), inputs, results, ranks=(0,) * len(inputs),
            depending=(False,) * len(results), layouts=self._layouts(),
        )

    def _layouts(self) -> Layouts | None:
        head = self.head
        if head["layouts"] is None:
            return None
        kept = range(len(head["in_avals"])) if head["kept"] is None else head["kept"]
        types = tuple([self._aval(head["in_avals"][i]) for i in kept])
        inputs, results = [tuple([Layout.AUTO if own else None for own in row]) for row in head["layouts"]]
        if (len(inputs), len(results)) != (len(types), len(head["out_avals"])):
            raise ValueError(f"{(len(inputs), len(results))} layouts of {len(types)} inputs and their results")
        return Layouts(inputs, results, types)

    def _aval(self, record: Sequence[Any]) -> ShapedArray:
        shape, name, weak, memory, own = record
        sharding = None if own is None else self._sharding(own)
        dtype = _find_dtype(name)
        if dtype is None:
            raise KeyError(name)
        return ShapedArray(shape, dtype, weak, sharding, MemorySpace(memory))

    def _constants(self, data: bytes) -> list[Any]:
        arrays, start = [], 0
        for record, own, size in self.head["hidden"]:
            aval = self._aval(record)
            stored = physical_aval(aval)
            value = np.frombuffer(data[start : start + size], stored.dtype).reshape(stored.shape)
            array = array_from_host(value, aval, self._devices[0])
            arrays.append(array if own is None else put_at(array, self._sharding(own)))
            start += size
        return arrays

    def _mesh(self, record: Mapping[str, Any]) -> Any:
        names, types = tuple(record["names"]), tuple([AxisType[name] for name in record["types"]])
        if record["devices"] is not None:
            grid = np.array([*[self._by_number[n] for n in record["devices"]], None], object)[:-1]
            return Mesh(grid.reshape(record["sizes"]), names, types)
        device = record["abstract device"]
        return AbstractMesh(
            tuple(record["sizes"]), names, types, abstract_device=device and AbstractDevice(**device)
        )

    def _sharding(self, record: Mapping[str, Any]) -> Sharding:
        if "tiles" in record:
            parts, numbers = map(tuple, record["tiles"])
            devices = tuple([self._by_number[n] for n in record["devices"]])
            return TiledSharding(devices, Tiles(parts, numbers), record["memory"])
        entries = [tuple(axes) if len(axes) > 1 else axes[0] if axes else None for axes in record["spec"]]
        spec = PartitionSpec(
            *entries, unreduced=frozenset(record["unreduced"]), reduced=frozenset(record["reduced"])
        )
        return NamedSharding(self._mesh(record["mesh"]), spec, record["memory"])
