"""Compiling lowered modules, dumping them to files on request, and explaining errors by operations and lines."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core import monitoring
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.mesh import PlannedDevice
from xtrace._src.runtime.execute import Assignment, Origin, Program, compile_program
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.xla import clients
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.api.compilation import dump, xla_errors


class Compilation:
    """Everything for compiling `module`, whose text is `text`, under the present settings, in any thread.

    closed: the jaxpr of the module. assignment: the devices. kept: the positions of kept inputs, as in `Program`.
    Errors of the compiler name the equation. If the setting ``jax_dump_ir_to`` names a directory, the jaxpr, the module
    and the optimised program are written to files.
    """

    __slots__ = ("module", "text", "closed", "assignment", "options", "kept", "_files")

    def __init__(
        self, module: LoweredModule, text: str, closed: ClosedJaxpr, assignment: Assignment,
        compiler_options: Mapping[str, Any] | None = None, *, kept: Sequence[int] | None = None,
    ) -> None:
        if isinstance(assignment.device, PlannedDevice):
            raise NoMeshError(
                f"{module.builder.name}: the mesh {assignment.mesh} of the arguments' shardings is an AbstractMesh, "
                "which has no devices to compile for. Give shardings on a Mesh, write with xtrace.set_mesh(mesh):, or "
                'compile for a machine that is not here with .lower(...).compile(target="tpu-v5e:4x4")'
            )
        if module.builder.variables:
            raise ValueError(
                f"{module.builder.name}: its arguments have the symbolic sizes {', '.join(module.builder.variables)}, "
                "and programs are compiled for known ones. Call export.export(jit(f))(...).call(x), which compiles it "
                "for the sizes of x, or lower it for those"
            )
        self.module, self.text, self.closed, self.assignment, self.kept = module, text, closed, assignment, kept
        self.options = get_compiler_options() | dict(compiler_options or {})
        directory = config.dump_ir_to.value
        self._files = None
        if directory:
            self._files = dump.Files(directory, module.builder.name)
            self._files.write_source(closed, module)

    def load(self) -> Program | None:
        """Return the program from the folder of compiled programs, None if it is not there."""
        return self._program(Origin.FOLDER, {})

    def compile(self, origin: Origin = Origin.FOLDER_OR_COMPILER) -> Program:
        """Return the program from its `origin`."""
        program = self._program(origin, {})
        assert program is not None
        if self._files is not None:
            self._files.write_program(program.executable)
        return program

    def compile_quickly(self, options: Mapping[str, Any]) -> Program:
        """Return the program compiled with further `options`, except those that the user gave; no folder stores it."""
        program = self._program(Origin.COMPILER_ALONE, options)
        assert program is not None
        return program

    def _program(self, origin: Origin, options: Mapping[str, Any]) -> Program | None:
        start = time.perf_counter()
        module = self.module
        with explain_errors(self.closed, module, self.assignment.devices):
            program = compile_program(
                self.text, self.assignment.keep(self.kept), self.closed.out_avals, {**options, **self.options},
                hidden=module.hidden, kept=self.kept, callbacks=module.callbacks, effects=module.effects, origin=origin,
            )
        if program is not None:
            seconds = time.perf_counter() - start
            monitoring.record_step(monitoring.COMPILING, seconds, module.builder.functions[0].scope)
        return program


def compile_module(
    module: LoweredModule, text: str, closed: ClosedJaxpr, assignment: Assignment,
    compiler_options: Mapping[str, Any] | None = None, *, kept: Sequence[int] | None = None,
) -> Program:
    """Compile a module at once; see `Compilation`."""
    return Compilation(module, text, closed, assignment, compiler_options, kept=kept).compile()


@contextlib.contextmanager
def explain_errors(closed: ClosedJaxpr, module: LoweredModule, devices: Sequence[Any]) -> Iterator[None]:
    """Add explanations to errors of the compiler: the equation of `closed`, or the values that take the memory."""
    try:
        yield
    except Exception as error:
        xla_errors.explain_compilation(error, closed, module, devices)
        raise


_EFFORTS = (
    config.exec_time_optimization_effort, config.memory_fitting_effort, config.optimization_level,
    config.memory_fitting_level,
)


def get_compiler_options() -> dict[str, Any]:
    """Return the compiler options of the settings."""
    options = {s.name.removeprefix("jax_"): s.value for s in _EFFORTS if s.value != s.default}
    if config.disable_most_optimizations.value:
        options |= {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    if not config.compiler_enable_remat_pass.value:
        options["xla_disable_hlo_passes"] = "rematerialization"
    return options


def evaluates_on_host(is_users: bool = False) -> bool:
    """Return whether NumPy may evaluate small programs: no setting shows compilations, checks or forbids execution.

    is_users: whether the program is a user's.
    """
    asked = config.log_compiles.value or config.dump_ir_to.value or config.debug_key_reuse.value
    asked = asked or (is_users and config.explain_cache_misses.value)
    return config.host_evaluation.value and not (asked or config.no_execution.value or config.checks_numbers())


def check_execution(function: str) -> None:
    """Raise RuntimeError if the settings forbid running programs, or this process cannot run them."""
    clients.check_threads(f"{function} cannot run")
    if config.no_execution.value:
        raise RuntimeError(f"{function} would run, and the setting jax_no_execution forbids that")


def _forbid_execution_in_fork() -> None:
    # The setting is part of the keys of all programs, so that even steady calls find none, and come to the check.
    if clients.note_fork():
        config.store.lock = threading.Lock()  # a thread of the parent may have held the other one
        config.no_execution.set(True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forbid_execution_in_fork)


def run_program(
    run: Callable[..., Any], leaves: Sequence[Any], names: Callable[[], Sequence[str]], traced: TracedFunction
) -> Any:
    """Return ``run(leaves, names)``, a program's results; explain an error of insufficient memory."""
    try:
        return run(leaves, names)
    except Exception as error:
        program = run if isinstance(run, Program) else None
        xla_errors.explain_run(error, traced, program)
        raise
