"""Compiling StableHLO text for devices, and running the result."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxlib import _jax, xla_client

from xtrace._late_imports import late_modules
from xtrace._src.xla import buffers, clients, versions
from xtrace._src.xla.clients import Client, Device
from xtrace._src.xla.custom_calls import lapack
from xtrace._src.xla.executables.compile_threads import compile_interruptibly
from xtrace._src.xla.processes import distributed

with late_modules(globals()):
    from xtrace._src.xla.executables import environments
    from xtrace._src.xla.executables.stripped_executables import StrippedExecutable
    from xtrace._src.xla.mlir import modules

CompileError = _jax.JaxRuntimeError
LoadedExecutable: TypeAlias = _jax.LoadedExecutable

# Arrays with more axes than YNNPACK reduces safely. Any array counts, because XLA moves reshapes past reductions.
_MANY_AXES = r"tensor<(?:\d+x){7,}b?f(?:16|32)>"


def compile_text(
    text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callable[..., Any]] = (), partitioned: Partitioned | None = None,
    shared: distributed.SharedProgram | None = None,
) -> LoadedExecutable:
    """Compile a module for devices and load it; it calls the Python functions `callbacks` by position.

    shared: the program if its processes have agreed on it; otherwise they do so here.
    Raises TypeError for a dtype that the runtime lacks, and JaxRuntimeError with XLA's message for other failures, such
    as an unknown compiler option.
    """
    clients.check_threads("a program cannot be compiled")
    if "xf6E" in text or "<f6E" in text:
        # Some of these programs abort XLA.
        raise buffers.unstorable_error("float6_e2m3fn or float6_e3m2fn")
    device = devices[0]
    program = shared or distributed.agree_on_program(text, devices).program
    options = _make_text_options(text, devices, compiler_options, partitioned)
    try:
        device_list = _jax.DeviceList(tuple(devices))
        if callbacks:
            # jaxlib takes callbacks with a parsed module only. Few programs have some, and MLIR's bindings load slowly.
            module = modules.parse(text)
            calls = [_wrap_transfer(device.client, c) for c in callbacks]
            loaded = compile_interruptibly(
                device.client.compile_and_load, module, device_list, options, host_callbacks=calls
            )
        else:
            loaded = compile_interruptibly(device.client.compile_and_load, text, device_list, options)
    except CompileError as error:
        if compiler_options and "option" in str(error):
            error.add_note(
                f"compiler_options was {dict(compiler_options)}; the names are those of XLA's debug options, as in "
                "{'xla_cpu_enable_fast_math': True}"
            )
        raise
    distributed.remember_program(loaded, program)
    return loaded


def describe_compilation(
    text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None, partitioned: Partitioned | None
) -> bytes:
    """Return the bytes of all that determines a compiled program besides its text: compiler, devices, options."""
    options = _make_text_options(text, devices, compiler_options, partitioned)
    overrides = sorted(options.env_option_overrides)
    options.env_option_overrides = []
    described = (
        environments.describe_environment(devices[0]), len(devices),
        [os.environ.get(name, "") for name in _COMPILER_VARIABLES], overrides,
    )
    return repr(described).encode() + options.SerializeAsString()


# The environment variables that XLA's compilers read.
_COMPILER_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")


def serialize_executable(executable: LoadedExecutable) -> bytes:
    """Return a compiled program as bytes for `load_executable`; JaxRuntimeError if the runtime cannot serialize it."""
    return executable.client.serialize_executable(executable)


def load_executable(
    payload: bytes, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None,
    partitioned: Partitioned | None, callbacks: Sequence[Callable[..., Any]] = (),
) -> LoadedExecutable:
    """Load a program, compiled for these devices and options, from the bytes of `serialize_executable`.

    The options are those of `with_safe_fusions`. The program calls the Python functions `callbacks` by position, as
    many as it was compiled with. The bytes are code, so they must come from this user. Raises JaxRuntimeError if the
    runtime refuses them.
    """
    # Lowering registers LAPACK's routines, but this process may not have lowered the program.
    if b"lapack_" in payload:
        lapack.register()
    options = options_for(devices, compiler_options, partitioned)
    client, device_list = devices[0].client, _jax.DeviceList(tuple(devices))
    if callbacks:
        return client.deserialize_executable(payload, device_list, options, list(callbacks))
    return client.deserialize_executable(payload, device_list, options)


def _make_text_options(
    text: str, devices: Sequence[Device], compiler_options: Mapping[str, Any] | None, partitioned: Partitioned | None
) -> xla_client.CompileOptions:
    return options_for(devices, with_safe_fusions(text, devices[0], compiler_options), partitioned)


def with_safe_fusions(
    text: str, device: Device, compiler_options: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the compiler options, without fused reductions where these abort the process; users' options stay."""
    if not versions.HAS_UNSAFE_YNN_FUSIONS or device.platform != "cpu":
        return compiler_options
    if "stablehlo.reduce" not in text or "stablehlo.multiply" not in text or not re.search(_MANY_AXES, text):
        return compiler_options
    return {"xla_cpu_experimental_ynn_fusion_type": "", **(compiler_options or {})}


def _wrap_transfer(client: Client, callback: Any) -> Any:
    """Return the runtime's object for a function that transfers call; other functions are returned unchanged."""
    if callback.channels is None:
        return callback
    shapes = [[xla_client.Shape.array_shape(np.dtype(a.dtype), a.shape) for a in avals] for avals in callback.types()]
    return client.make_python_callback_from_host_send_and_recv(callback, *shapes, *callback.channels, _not_elsewhere)


def _not_elsewhere(callback: Any) -> bytes:
    raise TypeError(f"{callback.name} is a function of this process: a program that calls it cannot go to another one")


class Partitioned(NamedTuple):
    """The flags of a partitioned program: for each parameter and result, whether XLA chooses its split."""

    free_parameters: Sequence[bool]
    free_results: Sequence[bool]


def options_for(
    devices: Sequence[Device], compiler_options: Mapping[str, Any] | None = None, partitioned: Partitioned | None = None
) -> xla_client.CompileOptions:
    """Return the compile options of a program on one device, or of a program that is partitioned over devices."""
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    numbers = np.array([[d.id for d in devices]], np.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(numbers)
    if partitioned is not None:
        build = options.executable_build_options
        build.num_replicas, build.num_partitions = 1, len(devices)
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.device_assignment = options.device_assignment
        build.allow_spmd_sharding_propagation_to_parameters = list(partitioned.free_parameters)
        build.allow_spmd_sharding_propagation_to_output = list(partitioned.free_results)
    if compiler_options:
        _set_options(options, compiler_options)
    return options


def options_for_copies(
    replicas: int, partitions: int, devices: Any, compiler_options: Mapping[str, Any], profile: bytes | None,
    detailed_logging: bool,
) -> xla_client.CompileOptions:
    """Return the compile options of a program in `replicas`, each split into `partitions`.

    devices: an array of devices or their numbers, with a row for each replica; None for the runtime's choice.
    """
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for each in (options, build):
        each.num_replicas, each.num_partitions = replicas, partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    if devices is not None:
        numbers = np.array([[getattr(d, "id", d) for d in row] for row in devices], np.int32)
        options.device_assignment = build.device_assignment = xla_client.DeviceAssignment.create(numbers)
    if profile is not None:
        build.fdo_profile = profile
    build.debug_options.xla_detailed_logging = detailed_logging
    _set_options(options, compiler_options)
    return options


def _set_options(options: xla_client.CompileOptions, values: Mapping[str, Any]) -> None:
    """Set compiler options by name; ValueError for one that this jaxlib lacks."""
    overrides = []
    for name, value in values.items():
        if not isinstance(value, (bool, int, float, str)):
            raise TypeError(f"compiler option {name!r} is {value!r}; expected a bool, int, float or string")
        if name in _BUILD_OPTIONS:
            if not hasattr(options.executable_build_options, name):
                raise ValueError(
                    f"jaxlib {versions.JAXLIB_VERSION_TEXT} has no compiler option {name}; it has optimization_level "
                    "and memory_fitting_level"
                )
            setattr(options.executable_build_options, name, _LEVELS.get(value, value))
        else:
            overrides.append((name, value))
    options.env_option_overrides = overrides


# The options of a compilation that are not among XLA's debug options, and the numbers of levels of effort.
_BUILD_OPTIONS = frozenset(
    ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level", "memory_fitting_level")
)
_LEVELS: dict[Any, int] = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}


# The end of the last execution with collectives on several CPU devices, and the lock for replacing it.
_last_on_devices: list[Any] = []
_turn = threading.Lock()


def executor(executable: LoadedExecutable) -> Callable[[Sequence[Any]], Any]:
    """Return the function from a program's inputs to its results; it takes turns like `executor_with_end`."""
    if not _takes_turns(executable):
        return distributed.make_execute(executable)
    execute = executor_with_end(executable)
    return lambda inputs: execute(inputs)[0]


def executor_with_end(executable: LoadedExecutable) -> Callable[[Sequence[Any]], tuple[Any, Any]]:
    """Return the function from a program's inputs to its results and its end, for `buffers.wait_for`.

    Programs with collectives on several CPU devices run one after another. Devices wait for one another in the threads
    of one pool, so concurrent programs can block all threads, and XLA aborts the process after 40 seconds (in JAX,
    too).
    """
    run, make_end = distributed.make_execute(executable), distributed.make_end(executable)

    def execute(inputs: Sequence[Any]) -> tuple[Any, Any]:
        results = run(inputs, with_tokens=True)
        return results, make_end(results.consume_token())

    def execute_in_turn(inputs: Sequence[Any]) -> tuple[Any, Any]:
        with _turn:
            for end in _last_on_devices:
                with contextlib.suppress(Exception):  # A wait for its results raises the error.
                    buffers.wait_for(end)
            _last_on_devices.clear()
            results, end = execute(inputs)
            _last_on_devices.append(end)
        return results, end

    return execute_in_turn if _takes_turns(executable) else execute


# The operations in which a device waits for others.
_COLLECTIVE = r" (all-reduce|all-gather|all-to-all|ragged-all-to-all|collective-|reduce-scatter)[\w-]*\("


def _takes_turns(executable: LoadedExecutable) -> bool:
    devices = executable.local_devices()
    if len(devices) < 2 or devices[0].platform != "cpu":
        return False
    # A stripped program has all of its collectives.
    running = executable.running if isinstance(executable, StrippedExecutable) else executable
    return any(re.search(_COLLECTIVE, module.to_string()) for module in running.hlo_modules())


def hlo_text(executable: LoadedExecutable) -> str:
    """Return the optimised HLO."""
    return "\n\n".join(module.to_string() for module in executable.hlo_modules())


def get_layouts(executable: LoadedExecutable) -> tuple[list[Any], list[Any]]:
    """Return the layouts of a program's parameters and results, for `buffers.read_layout`."""
    return executable.get_parameter_layouts(), executable.get_output_layouts()


def unoptimised_hlo(text: str) -> Any:
    """Return the HLO of a StableHLO module before optimisation, as jaxlib's XlaComputation."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def unoptimised_hlo_text(text: str, metadata: bool) -> str:
    """Return the text of the HLO before optimisation; metadata: whether operations have their names and lines."""
    computation = unoptimised_hlo(text)
    if not metadata:
        return str(computation.as_hlo_text())
    # The class is in the module of the computation's class, which differs between jaxlib's releases.
    options = sys.modules[type(computation).__module__].HloPrintOptions()
    options.print_metadata = True
    return str(computation.as_hlo_module().to_string(options))


def estimate_cost(text: str) -> dict[str, float]:
    """Return XLA's estimate of the cost of a StableHLO module, before any optimisation.

    It depends on shapes only, so the CPU client makes it: clients of plugins lack the analysis.
    """
    return dict(_jax.hlo_module_cost_analysis(clients.client("cpu"), unoptimised_hlo(text).get_hlo_module()))
