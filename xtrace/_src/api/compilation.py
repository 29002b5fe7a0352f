"""Compiling lowered modules: written to files if that is asked for, and errors that name operations and lines."""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core import config, monitoring
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.ir import ClosedJaxpr
from xtrace._src.core.mesh import PlannedDevice
from xtrace._src.runtime.execute import Assignment, Program, compile_program
from xtrace._src.transforms.lower import LoweredModule


def compile_module(
    module: LoweredModule, text: str, closed: ClosedJaxpr, assignment: Assignment,
    compiler_options: Mapping[str, Any] | None = None, *, kept: Sequence[int] | None = None,
) -> Program:
    """Compile `module`, whose text is `text`; `closed` is the jaxpr that it was lowered from, on devices `assignment`.

    `kept` are those of `Program`. Errors of the compiler say which equation they are about. Where the
    setting ``jax_dump_ir_to`` names a directory, the jaxpr, the module and the optimised program are written to files.
    """
    if isinstance(assignment.device, PlannedDevice):
        raise NoMeshError(
            f"{module.builder.name}: the mesh {assignment.mesh} of the arguments' shardings is an AbstractMesh, which "
            "has no devices to compile for. Give shardings on a Mesh, write with xtrace.set_mesh(mesh):, or compile "
            'for a machine that is not here with .lower(...).compile(target="tpu-v5e:4x4")'
        )
    if module.builder.variables:
        raise ValueError(
            f"{module.builder.name}: its arguments have the symbolic sizes {', '.join(module.builder.variables)}, and "
            "programs are compiled for known ones. Call export.export(jit(f))(...).call(x), which compiles it for the "
            "sizes of x, or lower it for those"
        )
    # Neither is needed by most programs.
    directory = config.dump_ir_to.value
    files = importlib.import_module("xtrace._src.api.dump").Files(directory, module.builder.name) if directory else None
    if files is not None:
        files.write_source(closed, module)
    start = time.perf_counter()
    options = options_of_settings() | dict(compiler_options or {})
    with explain_errors(closed, module, assignment.devices):
        program = compile_program(
            text, assignment.keep(kept), closed.out_avals, options, hidden=module.hidden, kept=kept,
            callbacks=module.callbacks, effects=module.effects,
        )
    monitoring.record_step(monitoring.COMPILING, time.perf_counter() - start, module.builder.functions[0].scope)
    if files is not None:
        files.write_program(program.executable)
    return program


@contextlib.contextmanager
def explain_errors(closed: ClosedJaxpr, module: LoweredModule, devices: Sequence[Any]) -> Iterator[None]:
    """Let errors of the compiler say which equation of `closed` they are about, or what takes the memory."""
    try:
        yield
    except Exception as error:
        importlib.import_module("xtrace._src.api.xla_errors").explain_compilation(error, closed, module, devices)
        raise


_EFFORTS = (
    config.exec_time_optimization_effort, config.memory_fitting_effort, config.optimization_level,
    config.memory_fitting_level,
)


def options_of_settings() -> dict[str, Any]:
    """Return the compiler options that the settings say."""
    options = {s.name.removeprefix("jax_"): s.value for s in _EFFORTS if s.value != s.default}
    if config.disable_most_optimizations.value:
        options |= {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    if not config.compiler_enable_remat_pass.value:
        options["xla_disable_hlo_passes"] = "rematerialization"
    return options


def check_execution(function: str) -> None:
    """Raise a RuntimeError where the settings forbid that programs run."""
    if config.no_execution.value:
        raise RuntimeError(f"{function} would run, and the setting jax_no_execution forbids that")


def run_program(
    run: Callable[..., Any], leaves: Sequence[Any], names: Callable[[], Sequence[str]], traced: TracedFunction
) -> Any:
    """Return ``run(leaves, names)``, a program's results; an error of insufficient memory says what takes it."""
    try:
        return run(leaves, names)
    except Exception as error:
        program = run if isinstance(run, Program) else None
        importlib.import_module("xtrace._src.api.xla_errors").explain_run(error, traced, program)
        raise
