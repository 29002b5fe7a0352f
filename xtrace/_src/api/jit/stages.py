"""The stages of compilation ahead of time: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xtrace._late_imports import late_modules
from xtrace._src.api.compilation.compilation import check_execution, compile_module, explain_errors, run_program
from xtrace._src.api.jit.dispatch import CALLS_BEFORE_SPECIALISING, CallShapes, count_call, specialise
from xtrace._src.api.jit.reference_programs import call_on_arrays
from xtrace._src.api.jit.static_arguments import Static, flatten, freeze_compiler_options
from xtrace._src.api.tracing import TracedFunction, abstract_leaves, make_struct
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, array_type, aval_of_value
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary, hide_frames
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.core.trace import Tracer
from xtrace._src.core.value_objects import EqualByKey, Immutable
from xtrace._src.ops.references.binding import unwrap
from xtrace._src.runtime.arrays import ConcreteArray, single_device_sharding
from xtrace._src.runtime.execute import Assignment, Program, find_shardings, request_partitioning
from xtrace._src.runtime.transfer import committed_layout, committed_sharding
from xtrace._src.transforms import dead_code
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.xla.clients import is_compile_only
from xtrace._src.xla.executables import executables

with late_modules(globals()):
    from xtrace._src.api.compilation import serialized_programs
    from xtrace._src.api.pages import explore, notebook_views
    from xtrace._src.api.reports import memory_reports, partition_reports
    from xtrace._src.debug_nans import search as debug_nans
    from xtrace._src.xla.mlir import modules
    from xtrace._src.xla.plugins import absent_devices

if TYPE_CHECKING:
    from xtrace._src.api.jit.jitted import Jitted
    from xtrace._src.api.pages.explore import Explored
    from xtrace._src.api.reports.memory_reports import Fit, MemoryReport
    from xtrace._src.api.reports.partition_reports import PartitionReport


class ArgInfo(EqualByKey):
    """The type of an argument, and whether it is donated.

    Args:
        aval: the type.
        donated: whether the argument's memory is given to the results.

    Example:
        >>> xtrace.jit(jnp.sin).lower(1.0).args_info[0][0].shape
        ()
    """

    __slots__ = ("aval", "donated")

    def __init__(self, aval: ShapedArray, donated: bool) -> None:
        self.aval, self.donated = aval, donated

    def __repr__(self) -> str:
        return f"ArgInfo(aval={self.aval!r}, donated={self.donated})"

    def _key(self) -> Any:
        return self.aval, self.donated

    @property
    def shape(self) -> tuple[int, ...]:
        """The argument's shape."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The argument's dtype."""
        return self.aval.dtype


class Stage(Immutable):
    """A stage of compilation: it has the function's name, and the structures and types of arguments and results."""

    def __init__(self, jitted: Jitted, static: Static, traced: TracedFunction) -> None:
        self._jitted, self._static, self._traced = jitted, static, traced

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._jitted.name

    @property
    def in_tree(self) -> Any:
        """The structure of ``(args, kwargs)``, without static arguments."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._traced.out_tree

    @property
    def out_info(self) -> Any:
        """The result as a tree of ShapeDtypeStructs, with the shardings in ``out_shardings``."""
        return self._jitted.out_info(self._traced)

    @property
    def in_avals(self) -> Any:
        """The arguments' types, as ``(args, kwargs)``."""
        return pytree.tree_unflatten(self.in_tree, self._traced.jaxpr.in_avals)

    @property
    def out_avals(self) -> Any:
        """The results' types, in the structure of the result."""
        return pytree.tree_unflatten(self.out_tree, self._traced.out_avals)

    @property
    def args_info(self) -> Any:
        """The `ArgInfo` of each argument, as ``(args, kwargs)``."""
        donated = self._jitted.flag_donated_leaves(self._static, self.in_tree)
        infos = [ArgInfo(aval, flag) for aval, flag in zip(self._traced.jaxpr.in_avals, donated, strict=True)]
        return pytree.tree_unflatten(self.in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions of donated leaves."""
        flags = self._jitted.flag_donated_leaves(self._static, self.in_tree)
        return tuple(i for i, flag in enumerate(flags) if flag)

    @boundary
    def explore(self, *, target: str | None = None, name: str | None = None) -> Explored:
        """Return a page of the function's source, jaxpr, StableHLO and optimised HLO, as `xtrace.explore` does.

        Args:
            target: a device that need not be present, such as "h200"; None for the devices of the arguments or of the
                program.
            name: the name of the program on the page; None for the function's name.

        Returns:
            An `Explored`; notebooks show it, and `save` writes it to a file.

        Raises:
            ValueError: `target` is unknown.

        Example:
            >>> xtrace.jit(jnp.sin).trace(1.0).explore(name="sine").to_json()["programs"][0]["name"]
            'sine'
        """
        return explore.explore_stage(self, target=target, name=name)  # type: ignore[arg-type]

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the leaves of arguments, with or without the static ones; TypeError for another structure."""
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        leaves = unwrap(leaves)
        if in_tree == self.in_tree:
            return leaves
        with contextlib.suppress(ValueError):
            static, rest, rest_in_tree = flatten(self._jitted.fun, self._jitted.static, args, kwargs)
            if static == self._static and rest_in_tree == self.in_tree:
                return rest
            if static != self._static and rest_in_tree == self.in_tree:
                raise TypeError(
                    f"{self.fun_name} was compiled for other static arguments; leave them out of the call, or lower "
                    "and compile for these"
                )
        raise TypeError(
            f"{self.fun_name} was compiled for arguments (args, kwargs) of structure {self.in_tree} and called with "
            f"{in_tree}; static arguments are left out of the call"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.fun_name}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a {type(self).__name__}, here of {self.fun_name}, cannot be pickled: it holds Python code. "
            "Pickle the compiled function, .lower(...).compile(), or write the function with xtrace.export"
        )

    def _repr_html_(self) -> str:
        """Return the stage as HTML for notebooks: its name, the types of arguments and results, and its text."""
        return notebook_views.write_stage_html(self)


class Traced(Stage):
    """A function traced for one signature; ``jit(f).trace`` returns it, users do not call the class.

    Args:
        jitted, static, traced, assignment: the parts of a trace.

    Example:
        >>> xtrace.jit(jnp.sin).trace(1.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    def __init__(self, jitted: Jitted, static: Static, traced: TracedFunction, assignment: Assignment) -> None:
        super().__init__(jitted, static, traced)
        self._assignment = assignment

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr with its constants."""
        return ClosedJaxpr(dead_code.name_dropped(self._traced.jaxpr), self._traced.consts)

    @boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lower the trace to StableHLO.

        Args:
            lowering_platforms: a tuple of one platform, such as ``("cuda",)``; None for the platform of the arguments.

        Returns:
            A `Lowered`.

        Raises:
            ValueError: there are several platforms, or one is unknown.

        Example:
            >>> xtrace.jit(jnp.sin).trace(1.0).lower().fun_name
            'sin'
        """
        if lowering_platforms is not None and len(lowering_platforms) != 1:
            raise ValueError(f"lower: one platform at a time; got {tuple(lowering_platforms)}")
        if self._traced.takes_references:
            return self._lower_without_references(lowering_platforms)
        platform = lowering_platforms[0] if lowering_platforms else self._assignment.platform
        return Lowered(self._jitted, self._static, self._traced, platform, self._assignment)

    def _lower_without_references(self, platforms: Sequence[str] | None) -> Lowered:
        """Lower the function of arrays; the compiled function still takes references."""
        traced = self._traced
        function: Any = self._jitted.jit_array_function(traced, self._static)
        avals = [array_type(v.aval) for v in (*traced.jaxpr.constvars, *traced.jaxpr.invars)]
        lowered: Lowered = function.trace(*map(make_struct, avals)).lower(lowering_platforms=platforms)
        lowered._around = self
        return lowered


class ExportedTrace(NamedTuple):
    """A trace, its devices, a module for each platform, and the positions of the modules' inputs, None for all."""

    traced: TracedFunction
    assignment: Assignment
    modules: list[LoweredModule]
    kept: Sequence[int] | None


def lower_for_export(traced: Traced, platforms: Sequence[str]) -> ExportedTrace:
    """Lower a trace to StableHLO for each platform, with all constants in the modules."""
    function, modules, kept = traced._traced, [], None
    if function.takes_references:
        raise NotImplementedError(
            f"export: {traced.fun_name} takes references or closes over them, which other processes do not have; "
            "export a function of their arrays that returns the last ones"
        )
    for platform in platforms:
        module, kept = traced._jitted.lower_module(
            function, traced._static, platform, assignment=traced._assignment, hides_constants=False
        )
        modules.append(module)
    return ExportedTrace(function, traced._assignment, modules, kept)


class Lowered(Stage):
    """A function lowered to StableHLO for one signature and platform; ``jit(f).lower`` returns it.

    Args:
        jitted, static, traced, platform, assignment: the parts of a lowering; users do not call the class.

    Example:
        >>> lowered = xtrace.jit(lambda x: x + 1).lower(jnp.ones(2))
        >>> "stablehlo.add" in lowered.as_text()
        True
    """

    def __init__(
        self, jitted: Jitted, static: Static, traced: TracedFunction, platform: str, assignment: Assignment
    ) -> None:
        super().__init__(jitted, static, traced)
        self._platform, self._assignment = platform, assignment
        # Whether calls of the jitted function may run the program of this stage, and the other way round.
        self._shares_program = platform == assignment.platform
        # The trace of the user's function with references, if this stage is the function of their arrays.
        self._around: Traced | None = None
        self._module, self._kept = jitted.lower_module(traced, static, platform, assignment=assignment)

    @property
    def out_info(self) -> Any:
        """The result as a tree of ShapeDtypeStructs; shardings in types or ``out_shardings`` are on its devices."""
        leaves, tree = pytree.tree_flatten(super().out_info)
        places = self._assignment.results or (None,) * len(leaves)
        given = zip(leaves, places, strict=True)
        return pytree.tree_unflatten(
            tree, [x if s is None or x.sharding is None else x.update(sharding=_like(x, s)) for x, s in given]
        )

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the module's text.

        Args:
            dialect: "stablehlo", or "hlo" for HLO before XLA's passes; None means "stablehlo".
            debug_info: whether the text has the user's lines.

        Returns:
            The text.

        Raises:
            ValueError: `dialect` is another one.

        Example:
            >>> "sine(" in xtrace.jit(jnp.sin).lower(1.0).as_text("hlo")
            True
        """
        if dialect in (None, "stablehlo"):
            return self._module.text(debug_info)
        if dialect == "hlo":
            return executables.unoptimised_hlo_text(self._module.text(debug_info), metadata=debug_info)
        raise ValueError(f"as_text: unknown dialect {abbreviate(dialect)}; the dialects are 'stablehlo' and 'hlo'")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the module as an object of jaxlib.

        Args:
            dialect: "stablehlo" for a module of MLIR, "hlo" for an XlaComputation; None means "stablehlo".

        Returns:
            The object.

        Raises:
            ValueError: `dialect` is another one.

        Example:
            >>> type(xtrace.jit(jnp.sin).lower(1.0).compiler_ir("hlo")).__name__
            'XlaComputation'
        """
        if dialect in (None, "stablehlo"):
            return modules.parse(self._module.text(debug_info=True))
        if dialect == "hlo":
            return executables.unoptimised_hlo(self._module.text(debug_info=True))
        raise ValueError(f"compiler_ir: unknown dialect {abbreviate(dialect)}; the dialects are 'stablehlo' and 'hlo'")

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the module's cost, before XLA's passes.

        Returns:
            A dictionary of numbers, such as "flops" and "bytes accessed".

        Example:
            >>> xtrace.jit(lambda x: x + 1).lower(jnp.ones(8)).cost_analysis()["flops"]
            8.0
        """
        return executables.estimate_cost(self._module.text())

    @boundary
    def compile(self, compiler_options: dict[str, Any] | None = None, *, target: str | None = None) -> Compiled:
        """Compile the module with XLA.

        Args:
            compiler_options: options of XLA by name; they take precedence over the options of `jit`.
            target: a device that need not be present, such as "h200" or "tpu-v5e:4x4". The result can then be inspected
                but not called. None for the devices of the lowering.

        Returns:
            A `Compiled`.

        Raises:
            ValueError: the target has another number of devices than the program's mesh, or is unknown.
            ImportError: the compiler of the target is not installed; the message has the command.

        Example:
            >>> xtrace.jit(jnp.cos).lower(0.0).compile()(0.0)
            Array(1., dtype=float32, weak_type=True)
        """
        options = dict([*self._jitted.options.compiler_options, *freeze_compiler_options("compile", compiler_options)])
        if target is not None:
            return self._compile_for(target, options)
        if is_compile_only(self._assignment.device):
            return self._compile_on(self._assignment, self._module, self._kept, options)

        def compile_now() -> Program:
            text = self._module.text(debug_info=True)
            return compile_module(self._module, text, self._traced.closed, self._assignment, options, kept=self._kept)

        shared, place = self._jitted.cache, (self._traced, self._assignment, options.items())
        program = shared.compile(*place, compile_now) if self._shares_program else compile_now()
        partition = Partition(self._assignment, program.kept, program.inputs, program.results)
        compiled = Compiled(self._jitted, self._static, self._traced, program.executable, partition, program)
        compiled._around = self._around
        return compiled

    def _compile_for(self, target: str, options: dict[str, Any]) -> Compiled:
        """Compile for a target: for its first device, or for all if the program is partitioned."""
        devices, platform = absent_devices.compile_only_devices(target), absent_devices.get_platform(target)
        mesh = self._assignment.mesh
        if mesh is None:
            assignment = Assignment(devices[:1])
        elif mesh.size != len(devices):
            raise ValueError(
                f"compile: the target {target} has {len(devices)} devices, and {self.fun_name} is partitioned over "
                f"{mesh}, {mesh.size} devices. Make a mesh of as many, with other axis sizes, or name another topology"
            )
        else:
            assignment = self._assignment.move(devices)
        module, kept = self._module, self._kept
        if platform != self._platform:
            module, kept = self._jitted.lower_module(
                self._traced, self._static, platform, assignment=assignment if mesh is not None else None
            )
        return self._compile_on(assignment, module, kept, options)

    def _compile_on(
        self, assignment: Assignment, module: LoweredModule, kept: Sequence[int] | None, options: dict[str, Any]
    ) -> Compiled:
        """Compile a module for absent devices."""
        text, taken = module.text(debug_info=True), assignment.keep(kept)
        partitioned = request_partitioning(taken, len(module.hidden))
        with explain_errors(self._traced.closed, module, assignment.devices):
            executable = absent_devices.compile(text, assignment.devices, options, partitioned)
        inputs, results = None, None
        if assignment.mesh is not None:
            inputs, results = find_shardings(executable, taken, module.hidden, self._traced.jaxpr.out_avals)
        partition = Partition(assignment, kept, inputs, results)
        return Compiled(self._jitted, self._static, self._traced, executable, partition, None)


class Partition(NamedTuple):
    """The devices of a compiled program, the positions of its inputs (None for all), and its shardings on a mesh."""

    assignment: Assignment
    kept: Sequence[int] | None
    inputs: Sequence[Sharding] | None
    results: Sequence[Sharding] | None


def _like(described: ShapeDtypeStruct, sharding: Sharding) -> Sharding | Format:
    """Return a sharding with the layout in the description of the result."""
    layout = described.format.layout
    return sharding if layout is None else Format(layout, sharding)


def _call_compiled(stage: weakref.ref[Compiled], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    compiled: Any = stage()
    around = compiled._around
    if around is None:
        return compiled._call_on_arrays(*args, **kwargs)
    return call_on_arrays(around._traced, compiled._call_on_arrays, around._leaves(args, kwargs))


class Compiled(Stage):
    """A function compiled for one signature; ``Lowered.compile`` returns it, users do not call the class.

    Args:
        jitted, static, traced, executable, partition, program: the parts of a compilation.

    Example:
        >>> compiled = xtrace.jit(jnp.sin).lower(0.0).compile()
        >>> compiled(0.0)
        Array(0., dtype=float32, weak_type=True)
    """

    def __init__(
        self, jitted: Jitted, static: Static, traced: TracedFunction, executable: Any, partition: Partition,
        program: Program | None,
    ) -> None:
        super().__init__(jitted, static, traced)
        self._executable, self._partition, self._program = executable, partition, program
        # The trace of the user's function with references, if this stage is the function of their arrays.
        self._around: Traced | None = None
        # Frequent types of leaves get specialised code; it refers to this stage weakly.
        self._calls: dict[tuple[type, ...], int] = {}
        self._call_shapes = CallShapes()
        self._run = self._call_shapes.entry_point(functools.partial(_call_compiled, weakref.ref(self)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with arguments of the compiled types, without the static ones; TypeError if a type differs."""
        try:
            return self._run(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    def _call_on_arrays(self, *args: Any, **kwargs: Any) -> Any:
        if self._program is None:
            raise RuntimeError(f"{self.fun_name} was compiled for a device that is not here; it cannot be called")
        leaves = self._leaves(args, kwargs)
        donated = self._jitted.flag_donated_leaves(self._static, self.in_tree)
        if True in donated:
            self._jitted.check_donation(donated, self._static, leaves, self.in_tree)
        avals = abstract_leaves(self._jitted.fun, self._static, leaves, self.in_tree, aval_of_value)
        for i, (aval, expected) in enumerate(zip(avals, self._traced.jaxpr.in_avals, strict=True)):
            if aval.shape != expected.shape or aval.dtype != expected.dtype:
                raise TypeError(
                    "Argument types differ from the types for which this computation was compiled: argument "
                    f"{self._paths()[i]} of {self.fun_name} was compiled with {expected.str_short()} and called "
                    f"with {aval.str_short()}. Convert it, or lower and compile for its type"
                )
            if isinstance(leaves[i], Tracer):
                raise TypeError(
                    f"{self.fun_name} is compiled and cannot become part of another program: argument "
                    f"{self._paths()[i]} is a traced {leaves[i].aval.str_short(True)}. Call the jitted function instead"
                )
        self._check_places(leaves)
        check_execution(self.fun_name)
        run: Callable[..., Any] = self._program
        if config.checks_numbers():
            run = debug_nans.check_results(run, self._traced.closed, self.fun_name, self.out_tree)
        results = run_program(run, leaves, self._paths, self._traced)
        if run is self._program:
            self._specialise(args, kwargs, leaves, donated)
        for leaf in [x for x, gone in zip(leaves, donated, strict=True) if gone and isinstance(x, ConcreteArray)]:
            leaf.note_deletion()
        return pytree.tree_unflatten(self.out_tree, results)

    def _specialise(self, args: Any, kwargs: dict[str, Any], leaves: Sequence[Any], donated: Sequence[bool]) -> None:
        """Count a call; specialise calls with leaves of these types if they are frequent."""
        assert self._program is not None
        if count_call(self._calls, leaves) == CALLS_BEFORE_SPECIALISING and not self._program.callbacks:
            static, settings, forget = Static((), ()), config.cache_key(), self._calls.clear
            code = specialise(args, kwargs, static, donated, self._program, self.out_tree, settings, forget)
            if code is not None:
                self._call_shapes.add(args, kwargs, code)

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """Raise ValueError for arguments committed to other shardings or layouts than the program's."""
        assert self._program is not None
        kept = range(len(leaves)) if self._program.kept is None else self._program.kept
        faults: dict[str, list[str]] = {}
        for number, i in enumerate(kept):
            own, wanted = committed_sharding(leaves[i]), self._program.get_input_sharding(number)
            if own is not None and not own.is_equivalent_to(wanted, leaves[i].ndim):
                fault = f"argument {self._paths()[i]} is on {own}, and the program takes it from {wanted}"
                faults.setdefault("shardings", []).append(fault)
            elif own is not None and committed_layout(leaves[i]) != self._program.get_input_layout(number):
                faults.setdefault("layouts", []).append(f"argument {self._paths()[i]} is in {leaves[i].format.layout}")
        for kind, lines in faults.items():
            raise ValueError(
                f"{self.fun_name} was compiled for input {kind} that disagree with the {kind} of arguments passed to "
                f"it: {'; '.join(lines)}. Move it with xtrace.device_put(x, compiled.input_formats[0][i])"
            )

    def _paths(self) -> Sequence[str]:
        return self._traced.debug_info.argument_paths()

    call = __call__

    def __reduce__(self) -> Any:
        return serialized_programs.deserialize_and_load, serialized_programs.serialize(self)

    @property
    def out_info(self) -> Any:
        """The result as a tree of ShapeDtypeStructs, with their shardings and layouts."""
        leaves, tree = pytree.tree_flatten(super().out_info)
        places = pytree.tree_leaves(self.output_formats)
        return pytree.tree_unflatten(tree, [x.update(sharding=s) for x, s in zip(leaves, places, strict=True)])

    def as_text(self) -> str:
        """Return XLA's optimised HLO.

        Returns:
            The text.

        Example:
            >>> xtrace.jit(jnp.sin).lower(1.0).compile().as_text().split(",")[0]
            'HloModule jit_sin'
        """
        return executables.hlo_text(self._executable)

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the program's cost.

        Returns:
            A dictionary of numbers, such as "flops" and "bytes accessed".

        Example:
            >>> xtrace.jit(lambda x: x + 1).lower(jnp.ones(8)).compile().cost_analysis()["flops"]
            8.0
        """
        analysis = self._executable.cost_analysis()
        return dict(analysis[0] if isinstance(analysis, (list, tuple)) else analysis)

    def memory_analysis(self) -> MemoryReport:
        """Return the program's memory on a device and its arrays; printed, a table.

        Returns:
            A `MemoryReport`. It also has XLA's statistics under their names in JAX, such as ``temp_size_in_bytes``.

        Example:
            >>> xtrace.jit(lambda x: x + 1).lower(jnp.ones(8)).compile().memory_analysis().output_size_in_bytes
            32
        """
        partition = self._partition
        around = self._around._traced if self._around is not None else None
        source = memory_reports.make_source(self._traced, partition.kept, self._jitted.fun, around)
        # A loaded program has no function to compile again.
        compile_for = None if self._jitted.is_loaded else self._compile_again
        return memory_reports.report_executable(
            self.fun_name, self._executable, source, partition.assignment.devices, compile_for
        )

    def _compile_again(self, target: str) -> Compiled:
        """Compile the function for a target, which need not be present."""
        assignment = self._partition.assignment
        lowered = Lowered(self._jitted, self._static, self._traced, assignment.platform, assignment)
        return lowered.compile(target=target)

    def report(self) -> PartitionReport:
        """Return the costs on each device: memory, replicated arguments, collectives, operations; printed, a table.

        Returns:
            A `PartitionReport`.

        Example:
            >>> len(xtrace.jit(lambda x: x + 1).lower(jnp.ones(8)).compile().report().collectives)
            0
        """
        partition = self._partition
        device = partition.assignment.device
        count = len(self._traced.jaxpr.in_avals)
        kept = range(count) if partition.kept is None else partition.kept
        paths, avals = self._paths(), self._traced.jaxpr.in_avals
        return partition_reports.make_report(
            self.fun_name, self._executable, device.device_kind, partition.assignment.mesh,
            absent_devices.get_device_memory(device.device_kind), [paths[i] for i in kept], [avals[i] for i in kept],
            partition.inputs if partition.inputs is not None else [None] * len(kept),
        )

    def fits(self, target: str | int | None = None) -> Fit:
        """Return whether the program fits into a device's memory; printed, a sentence.

        Args:
            target: a device that need not be present, such as "h200", or a number of bytes; None for the program's
                device.

        Returns:
            A `Fit`, which is true if the program fits.

        Raises:
            ValueError: `target` is an unknown name, or negative.

        Example:
            >>> bool(xtrace.jit(lambda x: x + 1).lower(jnp.ones(8)).compile().fits(1000))
            True
        """
        return self.memory_analysis().fits(target)

    def runtime_executable(self) -> Any:
        """Return jaxlib's executable.

        Returns:
            An object whose members depend on the release of jaxlib.

        Example:
            >>> executable = xtrace.jit(jnp.sin).lower(1.0).compile().runtime_executable()
        """
        return self._executable

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, as ``(args, kwargs)``; None for an argument that the program does not read."""
        return pytree.tree_map(lambda one: one.sharding, self.input_formats)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result."""
        return pytree.tree_map(lambda one: one.sharding, self.output_formats)

    @property
    def input_formats(self) -> Any:
        """The format of each argument, as ``(args, kwargs)``; empty for an argument that the program does not read.

        For absent devices it has shardings only; for one absent device it is empty.
        """
        kept, places = self._partition.kept, self._partition.inputs
        formats = [Format(None, None)] * self.in_tree.num_leaves
        positions = range(len(formats)) if kept is None else kept
        for i, one in zip(positions, self._formats(0, places, len(positions)), strict=True):
            formats[i] = one
        return pytree.tree_unflatten(self.in_tree, formats)

    @property
    def output_formats(self) -> Any:
        """The format of each result."""
        return pytree.tree_unflatten(self.out_tree, self._formats(1, self._partition.results, self.out_tree.num_leaves))

    def _formats(self, side: int, shardings: Sequence[Sharding] | None, count: int) -> list[Format]:
        """Return the formats of the program's inputs (`side` 0) or results (`side` 1)."""
        if self._program is None:
            return [Format(None, sharding) for sharding in shardings] if shardings else [Format()] * count
        layouts = executables.get_layouts(self._executable)[side]
        places = shardings or [single_device_sharding(self._program.device)] * count
        taken = layouts[len(layouts) - count :]
        return [Format(Layout.from_pjrt_layout(x), place) for x, place in zip(taken, places, strict=True)]
