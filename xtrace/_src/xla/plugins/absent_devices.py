"""Compiling for a TPU or an NVIDIA GPU that is not present, with the compilers of the PJRT plugins.

The extra ``aot`` installs the plugins: libtpu, the CUDA plugin without CUDA's libraries, and nvcc for ptxas and
libdevice. Only compile-only devices are made here; their executables can be inspected, but not run.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxlib import _jax

from xtrace._src.xla import clients
from xtrace._src.xla.executables import executables
from xtrace._src.xla.mlir import modules
from xtrace._src.xla.plugins import plugins

_INSTALL = "pip install 'xtrace[aot]'"
# More than the largest machine of any target has; without a limit, a mistyped topology could fill the memory.
_MAX_DEVICES = 16384
_DYNAMIC_TYPE = re.compile(r"[<x]\?x")
_DEVICE_NUMBERS = re.compile(r'(?P<name>replica_groups|source_target_pairs) = dense<(?P<numbers>[^>"]*)>')
# Without sizes of 0, by which libtpu would divide.
_TOPOLOGY = re.compile(r"[1-9][0-9]{0,4}(x[1-9][0-9]{0,4})*")


class _Tpu(NamedTuple):
    """A TPU generation: libtpu's name, the rank of its network, the kind of its devices, and their memory.

    configuration: the configuration of the chip; None for libtpu's default.
    """

    name: str
    rank: int
    kind: str
    memory: int
    configuration: str | None = None


class _Gpu(NamedTuple):
    """The properties of a GPU that XLA's compiler needs; sizes in bytes."""

    name: str
    capability: int
    accelerated: bool
    cores: int
    units_per_core: int
    shared_memory_per_core: int
    shared_memory_per_block: int
    bandwidth: int
    l2_cache: int
    clock_ghz: float
    memory: int


# A v4 chip is one device with two cores; without the configuration, libtpu makes two devices of it. The sizes of memory
# are from Google Cloud's pages on each version.
_TPUS = {
    "tpu-v4": _Tpu("v4", 3, "TPU v4", 32 << 30, "megacore"), "tpu-v5e": _Tpu("v5e", 2, "TPU v5 lite", 16 << 30),
    "tpu-v5p": _Tpu("v5p", 3, "TPU v5", 95 << 30), "tpu-v6e": _Tpu("v6e", 2, "TPU v6 lite", 32 << 30),
}

# The SXM boards, from NVIDIA's data sheets and the tuning guides of Ampere and Hopper.
_GPUS = {
    "a100": _Gpu(
        "NVIDIA A100-SXM4-80GB", 8, False, 108, 64, 167936, 166912, 2_039_000_000_000, 40 << 20, 1.41, 85_100_068_864
    ),
    "h100": _Gpu(
        "NVIDIA H100 80GB HBM3", 9, True, 132, 128, 233472, 232448, 3_352_000_000_000, 50 << 20, 1.98, 84_942_979_072
    ),
    "h200": _Gpu("NVIDIA H200", 9, True, 132, 128, 233472, 232448, 4_800_000_000_000, 50 << 20, 1.98, 151_397_597_184),
}

_MEMORY = {
    **{tpu.kind: tpu.memory for tpu in _TPUS.values()}, **{gpu.name: gpu.memory for gpu in _GPUS.values()},
}

TARGETS: tuple[str, ...] = (*sorted(_GPUS), *sorted(_TPUS))

_topologies: dict[str, tuple[Any, tuple[Any, ...]]] = {}
_lock = threading.RLock()


class CompileOnlyExecutable:
    """A program compiled for a device that is not present: its HLO, costs and memory; it cannot run."""

    __slots__ = ("_executable", "_text", "target")

    def __init__(self, executable: Any, text: str, target: str) -> None:
        self._executable, self._text = executable, text
        self.target = target

    def hlo_modules(self) -> list[Any]:
        """Return the optimised HLO modules."""
        return list(self._executable.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's counts for the optimised program: ``flops``, ``bytes accessed``, ``transcendentals`` and more.

        Without a GPU, the GPU plugin has no counts. Then XLA's general model counts the optimised HLO; calls of
        libraries, which the model cannot count, count as the operations that they replace.
        """
        try:
            return dict(self._executable.cost_analysis())
        except _jax.JaxRuntimeError as error:
            if "UNIMPLEMENTED" not in str(error):
                raise
        counts = _counts(self._executable.hlo_modules()[0])
        if min(counts.values(), default=0.0) < 0:
            # A call of a library counts as -1.
            plain = _counts(_jax.mlir.mlir_module_to_xla_computation(self._text).get_hlo_module())
            counts = {name: plain.get(name, 0.0) if n < 0 else n for name, n in counts.items()}
            counts.pop("optimal_seconds", None)
        return counts

    def get_parameter_shardings(self) -> Any:
        """Return XLA's shardings of the parameters, None on one device."""
        return self._executable.get_parameter_shardings()

    def get_output_shardings(self) -> Any:
        """Return XLA's shardings of the results, None on one device."""
        return self._executable.get_output_shardings()

    def get_compiled_memory_stats(self) -> Any:
        """Return the bytes of arguments, results, temporaries and code."""
        return self._executable.get_compiled_memory_stats()


def compile_only_device(target: str) -> Any:
    """Return the first device of `target`; see `compile_only_devices`."""
    return compile_only_devices(target)[0]


def compile_only_devices(target: str) -> tuple[Any, ...]:
    """Return the devices of a target, in topology order, for `compile`.

    A target is one of `TARGETS`, alone for a single chip, or followed by a topology: chips in each dimension of a
    TPU's network, as in ``tpu-v5e:2x2`` or ``tpu-v4:2x2x1``; GPUs, or hosts by GPUs, as in ``h200:8`` or ``h200:2x8``.

    Raises ValueError for an unknown target or an impossible topology, and ImportError with the pip command if the
    compiler is not installed.
    """
    name, sizes = _parse_target(target)
    key = name + ":" + "x".join(map(str, sizes))
    with _lock:
        if key not in _topologies:
            topology = _tpu_topology(name, sizes) if name in _TPUS else _gpu_topology(name, sizes)
            # The devices do not keep their topology alive.
            _topologies[key] = (topology, tuple(topology._make_compile_only_devices()))
        return _topologies[key][1]


def get_platform(target: str) -> str:
    """Return ``tpu`` or ``cuda``; ValueError for an unknown target."""
    return "tpu" if _parse_target(target)[0] in _TPUS else "cuda"


def get_device_kind(target: str) -> str:
    """Return the kind of the devices of a target; ValueError for an unknown target."""
    name = _parse_target(target)[0]
    return _TPUS[name].kind if name in _TPUS else _GPUS[name].name


def get_device_memory(device_kind: str) -> int | None:
    """Return the bytes of memory of a target's device of a kind; None for an unknown kind."""
    return _MEMORY.get(device_kind)


def compile(
    module: object, devices: clients.Device | Sequence[clients.Device], options: Mapping[str, Any] | None = None,
    partitioned: executables.Partitioned | None = None,
) -> CompileOnlyExecutable:
    """Compile a module, given as text or parsed, for one compile-only device or a sequence of them.

    For several devices, one program is partitioned by its Shardy annotations; `partitioned` says which shardings XLA
    chooses, none by default. `options` are XLA's compiler options by name.

    Raises InvalidModuleError, a ValueError, for a module that is invalid, has dynamic shapes, or names a device that is
    not among `devices`, and JaxRuntimeError with XLA's message for a module that the compiler refuses.
    """
    several = tuple(devices) if isinstance(devices, Sequence) else (devices,)
    if not several or not all(isinstance(device, _jax.Device) for device in several):
        raise TypeError(f"devices are what compile_only_devices returns, at least one; got {devices!r}")
    if isinstance(module, (str, bytes)):
        parsed = modules.parse(module)
        text = module if isinstance(module, str) else module.decode()
    else:
        parsed, text = module, modules.write_text(module, debug_info=True)
    _check_survivable(text, parsed, len(several))
    client = several[0].client
    executable = client.compile(parsed, _jax.DeviceList(several), _options(several, options, partitioned))
    return CompileOnlyExecutable(executable, text, several[0].device_kind)


def _check_survivable(text: str, module: object, devices: int) -> None:
    """Raise InvalidModuleError for a module that would abort a compiler, and with it the process."""
    if "?" not in text and "replica_groups" not in text and "source_target_pairs" not in text:
        return
    printed = modules.write_text(module)
    if _DYNAMIC_TYPE.search(printed):
        raise modules.InvalidModuleError("the module has a dynamic shape (tensor<?x...>); give every type its sizes")
    for match in _DEVICE_NUMBERS.finditer(printed):
        numbers = [int(number) for number in re.findall(r"-?\d+", match["numbers"])]
        if numbers and not max(numbers) < devices:
            raise modules.InvalidModuleError(
                f"{match['name']} = {numbers} names device {max(numbers)}, and the program is compiled for {devices}"
            )


def _options(
    devices: tuple[Any, ...], compiler_options: Mapping[str, Any] | None, partitioned: executables.Partitioned | None
) -> Any:
    named = dict(compiler_options or {})
    data = plugins.cuda_data_directory() if devices[0].platform == "gpu" else None
    if data is not None:
        named.setdefault("xla_gpu_cuda_data_dir", data)
    if partitioned is None and len(devices) > 1:
        partitioned = executables.Partitioned([False], [False])
    return executables.options_for(devices, named, partitioned)


def _counts(module: Any) -> dict[str, float]:
    return dict(_jax.hlo_module_cost_analysis(clients.client("cpu"), module))


def _parse_target(target: str) -> tuple[str, tuple[int, ...]]:
    """Return a target's name and the sizes of its topology, checked, because a wrong one can abort the process."""
    if not isinstance(target, str):
        raise TypeError(f"a target is a string such as 'tpu-v5e', not {target!r}")
    name, colon, topology = target.strip().lower().partition(":")
    if name not in _TPUS and name not in _GPUS:
        raise ValueError(
            f"unknown target {target!r}; the targets are {', '.join(TARGETS)}, "
            "alone or with a topology such as tpu-v5e:2x2 or h200:8"
        )
    if not colon:
        return name, (1,) * _rank(name)
    sizes = tuple(map(int, topology.split("x"))) if _TOPOLOGY.fullmatch(topology) else ()
    if name in _GPUS and len(sizes) == 1:
        sizes = (1, *sizes)
    if name in _TPUS and _rank(name) == 2 and sizes[2:] == (1,):
        sizes = sizes[:2]
    if len(sizes) != _rank(name) or math.prod(sizes) > _MAX_DEVICES:
        tpu = f"{name}:{'2x2' if _rank(name) == 2 else '2x2x1'} for chips in each dimension"
        example = f"{name}:8 for GPUs of one host or {name}:2x8 for two hosts" if name in _GPUS else tpu
        raise ValueError(f"the target {target!r} has no topology {topology!r}; write {example}")
    return name, sizes


def _rank(name: str) -> int:
    return _TPUS[name].rank if name in _TPUS else 2


def _tpu_topology(name: str, sizes: tuple[int, ...]) -> Any:
    tpu = _TPUS[name]
    bounds = (*sizes, 1)[:3]
    options: dict[str, Any] = {}
    if tpu.configuration is not None:
        options["chip_config_name"] = tpu.configuration
    # A host has 2x2 chips; older releases of libtpu do not shrink it to a smaller topology themselves.
    host = (min(2, bounds[0]), min(2, bounds[1]), 1)
    if host != (2, 2, 1):
        options["chips_per_host_bounds"] = list(host)
    return _topology("tpu", name, f"{tpu.name}:{'x'.join(map(str, bounds))}", options)


def _gpu_topology(name: str, sizes: tuple[int, ...]) -> Any:
    if plugins.find_library("cuda") is not None and not _has_ptxas():
        raise ImportError(f"compiling for {name} needs ptxas and libdevice: {_INSTALL}", name="nvidia.cuda_nvcc")
    hosts, devices = sizes
    options = {"topology": f"1x{hosts}x{devices}", "target_config": _target_config(_GPUS[name])}
    return _topology("cuda", name, "", options)


def _topology(platform: str, target: str, topology: str, options: dict[str, Any]) -> Any:
    if plugins.find_library(platform) is None:
        raise ImportError(f"compiling for {target} needs a compiler that is not installed: {_INSTALL}", name=platform)
    plugins.initialize(platform)
    try:
        # By the plugin's name, because the oldest jaxlib does not return the API object of a loaded plugin.
        return _jax.get_default_c_api_topology(platform, topology, options)
    except _jax.JaxRuntimeError as error:
        raise ValueError(f"the compiler has no such topology of {target}: {error}") from error


def _has_ptxas() -> bool:
    if plugins.cuda_data_directory() is not None or shutil.which("ptxas") is not None:
        return True
    return any(os.path.isfile(os.path.join(folder, "bin/ptxas")) for folder in ("/usr/local/cuda", "/opt/cuda"))


def _target_config(gpu: _Gpu) -> str:
    """Return XLA's ``stream_executor.GpuTargetConfigProto`` of a GPU in protobuf text form."""
    extension = " feature_extension: ACCELERATED_FEATURES" if gpu.accelerated else ""
    device = {
        "name": f'"{gpu.name}"', "threads_per_block_limit": 1024, "threads_per_warp": 32,
        "threads_per_core_limit": 2048, "thread_dim_limit_x": 1024, "thread_dim_limit_y": 1024,
        "thread_dim_limit_z": 64, "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535, "shared_memory_per_block": 49152,
        "shared_memory_per_core": gpu.shared_memory_per_core,
        "shared_memory_per_block_optin": gpu.shared_memory_per_block, "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536, "core_count": gpu.cores, "fpus_per_core": gpu.units_per_core,
        "clock_rate_ghz": gpu.clock_ghz, "memory_bandwidth": gpu.bandwidth, "l2_cache_size": gpu.l2_cache,
        "device_memory_size": gpu.memory, "driver_version": '"13.0.0"', "runtime_version": '"12.8.0"',
        "compile_time_toolkit_version": '"12.8.0"', "dnn_version": '"9.10.0"',
    }
    lines = [f"  {field}: {value}" for field, value in device.items()]
    lines.append(f"  cuda_compute_capability {{ major: {gpu.capability}{extension} }}")
    body = "\n".join(lines)
    return f'gpu_device_info {{\n{body}\n}}\nplatform_name: "CUDA"\ndevice_description_str: "{gpu.name}"\n'
