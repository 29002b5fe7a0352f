"""Running compiled programs on concrete arrays."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.errors import IndivisibleError
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effects, has_side_effects
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.core.shardings.memory_layout import Format, Layout, Layouts
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, full_entries
from xtrace._src.core.shardings.shardings import (
    NamedSharding,
    Sharding,
    TiledSharding,
    explicit_part,
    sharding_with_tiles,
)
from xtrace._src.runtime import transfer
from xtrace._src.runtime.arrays import (
    ConcreteArray,
    deleted_message,
    describe_types,
    device_sharding,
    explain_failure,
    get_layout,
    known_layout,
    mesh_sharding,
    new_array,
    placement,
    single_device_sharding,
)
from xtrace._src.xla import buffers, shardings
from xtrace._src.xla.clients import Device, lowering_platform
from xtrace._src.xla.executables import executables

with late_modules(globals()):
    from xtrace._src.runtime import callbacks, compilation_cache


class Assignment(NamedTuple):
    """The devices of a program, and whether an input was put there explicitly.

    A program on a mesh is partitioned over its devices. `inputs` and `results` are the shardings of the jaxpr's inputs
    and results, None where XLA chooses. `ranks` are the inputs' numbers of axes. `depending` says of each result
    whether it depends on an input with a sharding. `apart` has the mesh of each result on another mesh, None for
    `mesh`. `layouts` is None if all inputs and results have the default layout.
    """

    devices: tuple[Device, ...]
    committed: bool = False
    mesh: Mesh | None = None
    inputs: tuple[Sharding | None, ...] = ()
    results: tuple[Sharding | None, ...] = ()
    ranks: tuple[int, ...] = ()
    depending: tuple[bool, ...] = ()
    apart: tuple[Mesh | None, ...] = ()
    layouts: Layouts | None = None

    @property
    def device(self) -> Device:
        """The first device."""
        return self.devices[0]

    @property
    def platform(self) -> str:
        """The platform for which the program is lowered."""
        return lowering_platform(self.devices[0])

    def move(self, devices: Sequence[Device]) -> Assignment:
        """Return the same partition over other devices, as many as before."""
        assert self.mesh is not None
        mesh = self.mesh.update(devices=np.array([*devices, None], object)[:-1].reshape(self.mesh.axis_sizes))

        def moved(sharding: Sharding | None) -> Sharding | None:
            if sharding is None or isinstance(sharding, NamedSharding):
                return sharding and NamedSharding(mesh, sharding.spec)
            return TiledSharding(mesh.flat_devices, sharding.tiles(0))

        inputs, results = [tuple(map(moved, row)) for row in (self.inputs, self.results)]
        return self._replace(devices=tuple(devices), mesh=mesh, inputs=inputs, results=results, apart=())

    def keep(self, kept: Sequence[int] | None) -> Assignment:
        """Return the assignment of a program with only the inputs at the positions `kept`; None keeps all."""
        layouts = self.layouts.keep(kept) if self.layouts is not None else None
        if kept is None or self.mesh is None:
            return self._replace(layouts=layouts)
        inputs, ranks = tuple([self.inputs[i] for i in kept]), tuple([self.ranks[i] for i in kept])
        return self._replace(inputs=inputs, ranks=ranks, layouts=layouts)


class Program:
    """An executable with the data for calling it.

    `inputs` and `results` are the shardings on a mesh, None for a program on one device. `layouts` is None if all
    inputs and results have the default layout. `kept` are the positions of the inputs that the program reads; None if
    it reads all. `hidden` are the buffers of `constants`, passed before the inputs. `run` takes the arrays of the kept
    inputs and returns a list of results. `callbacks` are the Python functions that it calls, `effects` their side
    effects. `kept_code` is the code of a loaded executable, which the runtime cannot serialize again; None for one that
    was compiled.
    """

    __slots__ = (
        "executable", "device", "out_avals", "hidden", "kept", "committed", "callbacks", "effects", "run", "handlers",
        "inputs", "results", "layouts", "execute", "constants", "kept_code",
    )

    def __init__(
        self, executable: Any, assignment: Assignment, out_avals: Sequence[ShapedArray], *, hidden: Sequence[Any] = (),
        kept: Sequence[int] | None = None, callbacks: Sequence[Callable[..., Any]] = (), effects: Effects = NO_EFFECTS,
        kept_code: compilation_cache.KeptCode | None = None,
    ) -> None:
        """Make the program; `assignment` has only the kept inputs."""
        self.callbacks, self.effects, self.kept_code = callbacks, effects, kept_code
        self.executable, self.device, self.out_avals = executable, assignment.device, list(out_avals)
        self.kept, self.committed = kept, assignment.committed
        self.inputs: list[Sharding] | None = None
        self.results: list[Sharding] | None = None
        places: Sequence[Any] = [self.device] * len(self.out_avals)
        if assignment.mesh is None:
            # A type may have a mesh without known devices; the array itself is on no mesh.
            self.out_avals = [a if a.explicit_sharding is None else a.update(sharding=None) for a in self.out_avals]
            self.constants = [transfer.constant_on(x, self.device) for x in hidden]
        else:
            formats = [Format(None, get_constant_sharding(x, assignment.mesh)) for x in hidden]
            self.constants = list(map(transfer.put_in_format, hidden, formats))
            self.inputs, self.results = find_shardings(executable, assignment, hidden, self.out_avals)
            places = [device_sharding(sharding) for sharding in self.results]
            meshes = [assignment.mesh, *[s.mesh for s in self.results if isinstance(s, NamedSharding)]]
            if any(mesh.explicit_axes for mesh in meshes):
                # The types of results on explicit axes have their split.
                pairs = zip(self.out_avals, self.results, strict=True)
                self.out_avals = [transfer.place_type(aval, sharding) for aval, sharding in pairs]
        self.hidden = [x.buffer for x in self.constants]
        self.handlers = [
            buffers.result_handler(physical_aval(aval), place)
            for aval, place in zip(self.out_avals, places, strict=True)
        ]
        self.layouts = self._read_layouts(assignment.layouts) if assignment.layouts is not None else None
        self.execute = executables.executor(executable)
        self.run = self._runner()

    def with_commitment(self, committed: bool) -> Program:
        """Return the program with the same executable, whose results are on their device explicitly if `committed`."""
        if committed == self.committed:
            return self
        other = copy.copy(self)
        other.committed = committed
        other.run = other._runner()
        return other

    def list_result_signatures(self) -> list[Any]:
        """Return the `signature` of each result: committed if an input is, or if the program is on a mesh."""
        layouts: Sequence[Any] = [None] * len(self.out_avals) if self.layouts is None else self.layouts.results
        if self.results is not None:
            rows = zip(self.out_avals, self.results, layouts, strict=True)
            return [placement(aval, sharding, layout=layout) for aval, sharding, layout in rows]
        pairs = zip(self.out_avals, layouts, strict=True)
        return [transfer.signature_on(aval, self.device, self.committed, layout) for aval, layout in pairs]

    def _read_layouts(self, given: Layouts) -> Layouts:
        """Return the layouts of the kept inputs and of the results, in which XLA's choices replace `Layout.AUTO`."""
        inputs, results = executables.get_layouts(self.executable)

        def read(chosen: Sequence[Any], given: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
            rows = zip(chosen, given, avals, strict=True)
            return tuple([None if g is None else known_layout(c, a.shape, a.dtype, self.device) for c, g, a in rows])

        taken = read(inputs[len(self.constants) :], given.inputs, given.types)
        return Layouts(taken, read(results, given.results, self.out_avals), given.types)

    def _runner(self) -> Callable[[Sequence[ConcreteArray]], list[ConcreteArray]]:
        execute = self.execute
        if self.callbacks and has_side_effects(self.effects):
            ordered = any(e.ordered for e in self.effects)
            execute = callbacks.wrap_execution(executables.executor_with_end(self.executable), ordered)
        handlers, collect_garbage = self.handlers, buffers.collect_garbage
        results = list(zip(self.out_avals, self.list_result_signatures(), strict=True))
        hidden = self.hidden
        float0 = [aval for aval in self.out_avals if aval.dtype == dtypes.float0]
        if len(results) == 1 and not hidden and not float0:
            ((only_aval, only_signature),) = results

            def run_one(arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
                (buffer,) = execute([x.buffer for x in arrays]).consume_with_handlers(handlers)
                collect_garbage()
                array = ConcreteArray()
                array.aval, array.buffer, array.signature = only_aval, buffer, only_signature
                return [array]

            return run_one

        def run(arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
            out = execute([*hidden, *[x.buffer for x in arrays]]).consume_with_handlers(handlers)
            collect_garbage()
            return [new_array(aval, b, signature) for (aval, signature), b in zip(results, out, strict=True)]

        def run_with_float0(arrays: Sequence[ConcreteArray]) -> list[Any]:
            return [x if x.aval not in float0 else np.zeros(x.shape, dtypes.float0) for x in run(arrays)]

        return run_with_float0 if float0 else run

    def __call__(self, values: Sequence[Any], names: Callable[[], Sequence[str]] | None = None) -> list[ConcreteArray]:
        """Call with all inputs, in any form that `to_concrete` takes; `names` returns their names for errors."""
        if self.kept is not None:
            values = [values[i] for i in self.kept]
        device = self.device
        for position, value in enumerate(values):
            if type(value) is ConcreteArray and value.is_deleted():
                raise RuntimeError(f"argument {self._name(position, names)}: {deleted_message(value.aval)}")
        if any(buffer.is_deleted() for buffer in self.hidden):
            raise RuntimeError(
                "an array that the function closes over has been deleted, by delete() or by a donation "
                "(donate_argnums). Pass it as an argument, or keep it"
            )
        arrays = []
        for position, value in enumerate(values):
            try:
                arrays.append(self._put(position, value))
            except (OverflowError, IndivisibleError) as error:
                raise type(error)(f"argument {self._name(position, names)}: {error}") from None
        try:
            return self.run(arrays)
        except Exception as error:
            name = self.executable.hlo_modules()[0].name
            explain_failure(
                error, f"the program {name} on {device}, whose results are {describe_types(self.out_avals)}"
            )
            raise

    def get_input_sharding(self, position: int) -> Sharding:
        """Return the sharding in which the program takes an input; `position` counts kept inputs."""
        return self.inputs[position] if self.inputs is not None else single_device_sharding(self.device)

    def get_input_layout(self, position: int) -> Layout | None:
        """Return the layout in which the program takes an input, None for the default; as `get_input_sharding`."""
        return self.layouts.inputs[position] if self.layouts is not None else None

    def takes(self, arrays: Sequence[ConcreteArray]) -> bool:
        """Return whether all arrays have the places and layouts of the program's kept inputs."""
        if any(get_layout(x) != self.get_input_layout(i) for i, x in enumerate(arrays)):
            return False
        if self.inputs is None:
            return all(x._place is self.device for x in arrays)
        return all(
            x.sharding.is_equivalent_to(sharding, x.ndim) for x, sharding in zip(arrays, self.inputs, strict=True)
        )

    def _put(self, position: int, value: Any) -> ConcreteArray:
        """Return a value as an array in the place and layout of the kept input at `position`."""
        wanted = self.inputs[position] if self.inputs is not None else None
        if wanted is None:
            array = transfer.to_input(value, self.device)
            array = array if array._place is self.device else transfer.put_on(array, self.device)
        elif type(value) is ConcreteArray and mesh_sharding(value) is wanted:
            array = value
        else:
            array = transfer.put_at(value, wanted)
        layout = self.get_input_layout(position)
        return array if get_layout(array) == layout else transfer.in_layout(array, layout)

    def _name(self, position: int, names: Callable[[], Sequence[str]] | None) -> str:
        index = self.kept[position] if self.kept is not None else position
        return names()[index] if names is not None else str(index)


class Origin(enum.Enum):
    """The source of a program: the folder of compiled programs, the compiler, or both in turn."""

    FOLDER_OR_COMPILER = "compile_or_load"
    FOLDER = "load"
    COMPILER = "compile_and_keep"
    COMPILER_ALONE = ""


def compile_program(
    text: str, assignment: Assignment, out_avals: Sequence[ShapedArray],
    compiler_options: Mapping[str, Any] | None = None, *, callbacks: Sequence[Callable[..., Any]] = (),
    hidden: Sequence[Any] = (), origin: Origin = Origin.FOLDER_OR_COMPILER, **details: Any,
) -> Program | None:
    """Compile StableHLO text, which calls `callbacks` by position, for the devices of `assignment`.

    Returns None if the program should come from the folder of compiled programs, and is not there.
    """
    partitioned = request_partitioning(assignment, len(hidden))
    compilation = text, assignment.devices, compiler_options, callbacks, partitioned
    code: compilation_cache.KeptCode | None = None
    if cache_settings.directory.value is not None and cache_settings.enabled.value and origin.value:
        find = getattr(compilation_cache, origin.value)
        executable, code = find(*compilation)
    else:
        executable = None if origin is Origin.FOLDER else executables.compile_text(*compilation)
    if executable is None:
        return None
    return Program(
        executable, assignment, out_avals, callbacks=callbacks, hidden=hidden, kept_code=code, **details
    )


def request_partitioning(assignment: Assignment, hidden: int) -> executables.Partitioned | None:
    """Return the inputs and results whose sharding XLA chooses, after `hidden` inputs; None for one device."""
    if assignment.mesh is None:
        return None
    free = [*[False] * hidden, *[s is None for s in assignment.inputs]]
    return executables.Partitioned(free, [s is None for s in assignment.results])


def get_constant_sharding(constant: object, mesh: Mesh) -> Sharding:
    """Return the sharding of an array that a program on `mesh` closes over: its own if its devices are the mesh's.

    An array on an equal mesh of other devices, or in another order, keeps its specification. Any other array is
    replicated.
    """
    own = mesh_sharding(constant) if type(constant) is ConcreteArray else None
    if own is not None and own.devices == mesh.flat_devices:
        return own
    is_reordered = isinstance(own, NamedSharding) and own.mesh.shape_tuple == mesh.shape_tuple
    return NamedSharding(mesh, own.spec if is_reordered else PartitionSpec())  # type: ignore[union-attr]


def _in_memory(sharding: Sharding, aval: ShapedArray) -> Sharding:
    """Return the sharding with the pieces in the memory of the type `aval`."""
    kind = aval.memory_space.kind
    return sharding if sharding.memory_kind == kind else sharding.with_memory_kind(kind)


def _split_as_type(aval: ShapedArray, mesh: Mesh, parts: tuple[int, ...], numbers: tuple[int, ...]) -> Sharding:
    """Return the sharding of a result whose type has its split over the explicit axes of the mesh.

    XLA's tiles are kept if they agree with the type.
    """
    own = aval.explicit_sharding
    mesh = mesh.update(axis_types=own.mesh.axis_types)
    chosen = sharding_with_tiles(mesh, parts, numbers)
    if isinstance(chosen, NamedSharding):
        chosen = chosen.update(spec=PartitionSpec(*full_entries(chosen.spec, aval.ndim)))
    fits = isinstance(chosen, NamedSharding) and explicit_part(chosen, aval.ndim) == own
    return chosen if fits else NamedSharding(mesh, own.spec)


def find_shardings(
    executable: Any, assignment: Assignment, hidden: Sequence[Any], out_avals: Sequence[ShapedArray]
) -> tuple[list[Sharding], list[Sharding]]:
    """Return the shardings of a compiled program's inputs and results: the given ones, and XLA's choices."""
    mesh, inputs, results = assignment.mesh, assignment.inputs, assignment.results
    assert mesh is not None
    # As in JAX, a result with the tiles of the first input, which depends on a sharded input, has the same sharding.
    first, rank = next(zip(inputs, assignment.ranks, strict=True), (None, 0))

    def choose(parts: tuple[int, ...], numbers: tuple[int, ...], ndim: int, depends: bool, on: Mesh) -> Sharding:
        whole = parts + (1,) * (ndim - len(parts))
        is_alike = depends and on is mesh and ndim == rank
        if is_alike and isinstance(first, NamedSharding) and first.tiles(ndim) == (whole, numbers):
            return first
        return sharding_with_tiles(on, parts, numbers)

    # XLA returns no shardings for a program on a mesh of one device.
    whole: tuple[tuple[int, ...], tuple[int, ...]] = (), tuple(range(mesh.size))
    if None in inputs:
        tiles = shardings.read_parameter_tiles(executable, mesh.size)[len(hidden) :] or [whole] * len(inputs)
        inputs = tuple([s or sharding_with_tiles(mesh, *t) for s, t in zip(inputs, tiles, strict=True)])
    if None in results:
        tiles = shardings.read_result_tiles(executable, mesh.size) or [whole] * len(results)
        ranks = [physical_aval(aval).ndim for aval in out_avals]
        meshes = [other or mesh for other in assignment.apart or (None,) * len(results)]
        rows = zip(results, tiles, ranks, assignment.depending, meshes, strict=True)
        placed = [
            s or (choose(*t, n, depends, m) if a.explicit_sharding is None else _split_as_type(a, mesh, *t))
            for (s, t, n, depends, m), a in zip(rows, out_avals, strict=True)
        ]
        results = tuple([_in_memory(s, aval) for s, aval in zip(placed, out_avals, strict=True)])
    return [s for s in inputs if s is not None], [s for s in results if s is not None]
