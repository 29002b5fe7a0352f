"""PJRT plugins: clients of CUDA, ROCm, TPU and others from the wheels that JAX's users install, loaded without jax.

No Python code of the wheels runs: shared libraries are found below the folders of ``sys.path``. Looking for devices
takes a few system calls, microseconds on a machine without any.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jaxlib import _jax, xla_client

from xtrace._src.xla.clients import Client
from xtrace._src.xla.custom_calls import cuda_kernels
from xtrace._src.xla.plugins import installed_plugins

# The platforms that are handled here; plugins of other makers have the names under which they are installed.
PLATFORMS = ("cuda", "rocm", "tpu")

_TPU_LIBRARY = "libtpu/libtpu.so"
_CUDA_LIBRARY = "jax_plugins/xla_cuda{major}/xla_cuda_plugin.so"
_ROCM_LIBRARY = "jax_plugins/xla_rocm*/xla_rocm_plugin.so"
# CUDA releases, newest first, with the oldest driver that runs each.
_CUDA_RELEASES = ((13, 580), (12, 525))
# The places of libraries of the CUDA 12 and 13 wheels, below a site folder.
_CUDA_RUNTIMES = {12: "nvidia/cuda_runtime/lib/libcudart.so.12", 13: "nvidia/cu13/lib/libcudart.so.13"}
_CUDA_LIBRARIES = {12: "nvidia/*/lib/lib*.so.*", 13: "nvidia/cu13/lib/lib*.so.*"}
_CUDA_TOOLS = {12: "nvidia/cuda_nvcc", 13: "nvidia/cu13"}

_GOOGLE_PCI_VENDOR = "0x1ae0"
# v2 and v3, v4, v5p, v5e, v6e, 7x; from Google's tpu-info.
_TPU_PCI_DEVICES = {"0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}

# Without these, libtpu asks the cloud's metadata server for minutes, and locks out other processes.
_TPU_WITHOUT_DEVICE = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-1", "TPU_MIN_LOG_LEVEL": "3",
    "TPU_SKIP_MDS_QUERY": "1", "TPU_STDERR_LOG_LEVEL": "3", "TPU_WORKER_HOSTNAMES": "localhost",
}

_lock = threading.RLock()


def available_platforms() -> list[str]:
    """Return the platforms whose device is present and whose plugin can run on it, those of other makers first.

    Every installed plugin of another maker counts; it finds its devices itself.
    """
    others = [name for name, library in _other_libraries().items() if library.path is not None]
    return others + [name for name in PLATFORMS if device_present(name) and _is_runnable(name)]


def is_known(platform: str) -> bool:
    """Return whether a platform of this name is handled here, or has an installed plugin."""
    return platform in PLATFORMS or platform in _other_libraries()


def _other_libraries() -> dict[str, installed_plugins.Library]:
    return installed_plugins.libraries(_search_folders())


def load(
    platform: str, *, visible_devices: tuple[int, ...] | None = None, node_id: int = 0, num_nodes: int = 1,
    distributed_client: Any = None, more_options: str | None = None,
) -> Client:
    """Return a new PJRT client of a platform. A client owns its devices' memory, so the caller must keep it.

    The environment configures a GPU's client: XLA_PYTHON_CLIENT_PREALLOCATE, XLA_PYTHON_CLIENT_MEM_FRACTION,
    XLA_PYTHON_CLIENT_ALLOCATOR, and XTRACE_CUDA_VISIBLE_DEVICES or JAX_CUDA_VISIBLE_DEVICES unless `visible_devices`
    names the devices. `more_options` of the client are written ``name:value;name:value``.

    Raises RuntimeError with the missing part and the pip command for it, and ValueError for an unknown platform or a
    malformed variable.
    """
    _check_platform(platform)
    if platform in PLATFORMS and not device_present(platform):
        raise RuntimeError(f"Backend '{platform}' failed to initialize: {_NO_DEVICE[platform]}. {_INSTALL[platform]}")
    options = {}
    if platform in ("cuda", "rocm"):
        options = _gpu_options(platform, visible_devices, node_id, num_nodes)
    options |= _parse_options(more_options or "")
    try:
        initialize(platform)
    except ImportError as error:
        raise RuntimeError(str(error)) from error
    try:
        return xla_client.make_c_api_client(platform, options, distributed_client)
    except _jax.JaxRuntimeError as error:
        raise RuntimeError(
            f"the {platform} client did not start: {_read_message(error)}. {_start_advice(platform)}"
        ) from error


def initialize(platform: str) -> None:
    """Load and initialise the plugin of `platform`, once in a process; a device need not be present.

    Raises ImportError with the pip command if there is no plugin, and RuntimeError if it does not load.
    """
    _check_platform(platform)
    with _lock:
        if _jax.pjrt_plugin_loaded(platform) and _jax.pjrt_plugin_initialized(platform):
            return
        library = find_library(platform)
        if library is None:
            raise ImportError(f"the PJRT plugin of {platform} is not installed. {_advice(platform)}", name=platform)
        if not os.path.isfile(library):
            raise RuntimeError(f"the PJRT plugin {library} did not load: there is no such file. {_advice(platform)}")
        if platform == "cuda":
            _prepare_cuda(library)
        with _tpu_environment(platform):
            try:
                plugin = None
                if not _jax.pjrt_plugin_loaded(platform):
                    plugin = xla_client.load_pjrt_plugin_dynamically(platform, library)
                if not _jax.pjrt_plugin_initialized(platform):
                    _jax.initialize_pjrt_plugin(platform)
            except _jax.JaxRuntimeError as error:
                why = f"the PJRT plugin {library} did not load: {_read_message(error)}"
                raise RuntimeError(f"{why}. {_advice(platform)}") from error
        package = _cuda_kernels() if platform == "cuda" else None
        # If another library, such as jax, loaded the plugin before, it has registered the kernels.
        if package is not None and plugin is not None:
            cuda_kernels.register(package, plugin)


def prepare_hybrid_kernels() -> None:
    """Register the CUDA kernels of `eig` and `geqp3`, which also compute on the host, if a wheel has them."""
    package = _cuda_kernels()
    if package is not None:
        cuda_kernels.register_hybrid(package)


def find_library(platform: str) -> str | None:
    """Return the path of the plugin's shared library, or None if no wheel has it.

    For a TPU, the variable TPU_LIBRARY_PATH takes precedence. Of two CUDA plugins, one whose CUDA libraries are
    installed takes precedence, then one that the driver runs, then the newer one.
    """
    _check_platform(platform)
    if platform == "tpu":
        return os.environ.get("TPU_LIBRARY_PATH") or _find(_TPU_LIBRARY)
    if platform == "rocm":
        patterns = (os.path.join(glob.escape(folder), _ROCM_LIBRARY) for folder in _search_folders())
        # The newest release of those in one folder.
        return next((max(paths) for paths in map(glob.glob, patterns) if paths), None)
    if platform != "cuda":
        return _other_libraries()[platform].path
    releases = [major for major, _ in _CUDA_RELEASES if _find(_CUDA_LIBRARY.format(major=major))]
    if len(releases) > 1:
        driver = _cuda_driver()
        newest = dict(_CUDA_RELEASES)
        releases.sort(key=lambda major: (_cuda_runtime(major) is None, driver is not None and driver < newest[major]))
    return _find(_CUDA_LIBRARY.format(major=releases[0])) if releases else None


def device_present(platform: str) -> bool:
    """Return whether this machine has a device of `platform`, by its device files and, for a TPU, its PCI ids."""
    _check_platform(platform)
    present = {"cuda": _nvidia_present, "rocm": _amd_present, "tpu": _tpu_present}
    return platform not in present or present[platform]()


def cuda_data_directory() -> str | None:
    """Return the folder with CUDA's ``bin/ptxas`` and ``nvvm/libdevice`` in the wheel of nvcc, or None.

    The CUDA release of the plugin takes precedence.
    """
    library = find_library("cuda")
    releases = [major for major, _ in _CUDA_RELEASES]
    if library is not None:
        releases.sort(key=lambda major: f"xla_cuda{major}" not in library)
    for major in releases:
        ptxas = _find(_CUDA_TOOLS[major] + "/bin/ptxas")
        if ptxas is not None:
            return os.path.dirname(os.path.dirname(ptxas))
    return None


_INSTALL = {
    "cuda": "What a GPU needs comes with pip install 'xtrace[cuda12]' ('xtrace[cuda13]' with a driver from 580 on)",
    "rocm": "What an AMD GPU needs beside ROCm comes with pip install jax-rocm7-pjrt",
    "tpu": "What a TPU needs comes with pip install 'xtrace[tpu]'",
}
_NO_DEVICE = {
    "cuda": "this machine shows no NVIDIA GPU: there is no /dev/nvidia*, or CUDA_VISIBLE_DEVICES hides it",
    "rocm": "this machine shows no AMD GPU: there is no /dev/kfd, or ROCR_VISIBLE_DEVICES hides it",
    "tpu": "this machine shows no TPU: there is no /dev/accel* or /dev/vfio with a TPU's PCI id",
}
_START_ADVICE = {
    "cuda": f"Look at nvidia-smi and CUDA_VISIBLE_DEVICES. {_INSTALL['cuda']}",
    "rocm": f"Look at rocm-smi and ROCR_VISIBLE_DEVICES. {_INSTALL['rocm']}",
    "tpu": f"Look whether another process holds the TPU. {_INSTALL['tpu']}",
}


def _advice(platform: str) -> str:
    """Return advice about a plugin: the packages of a platform that is handled here, else the source of its name."""
    if platform in PLATFORMS:
        return _INSTALL[platform]
    path, source = _other_libraries()[platform]
    lacking = "" if path is not None else ", which has no shared library with a function GetPjrtApi"
    return f"It is named by {source}{lacking}; {installed_plugins.VARIABLE} can name another library"


def _start_advice(platform: str) -> str:
    return _START_ADVICE.get(platform) or _advice(platform)


def _read_message(error: Exception) -> str:
    return str(error).strip().rstrip(".")


def _check_platform(platform: str) -> None:
    if not is_known(platform):
        names = ", ".join([*PLATFORMS, *_other_libraries()])
        raise ValueError(f"there is no plugin for the platform {platform!r}; there are those for {names}")


def _cuda_kernels() -> str | None:
    """Return the package with the kernels that go with the CUDA plugin, or None."""
    library = find_library("cuda")
    major = None if library is None else 13 if "xla_cuda13" in library else 12
    package = f"jax_cuda{major}_plugin"
    return package if major and _find(f"{package}/cuda_plugin_extension.so") else None


def _search_folders() -> Iterator[str]:
    return (os.path.abspath(folder) for folder in sys.path)


def _find(relative: str) -> str | None:
    for folder in _search_folders():
        path = os.path.join(folder, relative)
        if os.path.isfile(path):
            return path
    return None


def _is_runnable(platform: str) -> bool:
    library = find_library(platform)
    if library is None or platform != "cuda":
        return library is not None
    # The extra `aot` installs the plugin as a compiler, without the libraries for running on a GPU.
    return any(_cuda_runtime(major) for major, _ in _CUDA_RELEASES if f"xla_cuda{major}" in library)


def _cuda_runtime(major: int) -> str | None:
    """Return the CUDA runtime library of a release: a wheel's, or the system's."""
    wheel = _find(_CUDA_RUNTIMES[major])
    if wheel is not None:
        return wheel
    name = f"libcudart.so.{major}"
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    folders += [f"/usr/local/cuda-{major}/lib64", "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
    for folder in folders:
        path = os.path.join(folder, name)
        if folder and os.path.exists(path):
            return path
    return None


def _cuda_driver() -> int | None:
    """Return the major version of the NVIDIA driver, such as 580, or None where the kernel does not say."""
    text = _read("/sys/module/nvidia/version").partition(".")[0]
    return int(text) if text.isdigit() else None


def _nvidia_present() -> bool:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and (not visible.strip() or visible.strip().startswith("-1")):
        return False
    # The second file is for the Windows subsystem for Linux.
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/usr/lib/wsl/lib/libcuda.so.1")


def _amd_present() -> bool:
    visible = os.environ.get("ROCR_VISIBLE_DEVICES", os.environ.get("HIP_VISIBLE_DEVICES"))
    if visible is not None and (not visible.strip() or visible.strip().startswith("-1")):
        return False
    return os.path.exists("/dev/kfd")


def _tpu_present() -> bool:
    if not (os.path.exists("/dev/accel0") or os.path.exists("/dev/vfio")):
        return False
    for vendor in glob.iglob("/sys/bus/pci/devices/*/vendor"):
        if _read(vendor) == _GOOGLE_PCI_VENDOR:
            device = os.path.join(os.path.dirname(vendor), "device")
            if _read(device) in _TPU_PCI_DEVICES:
                return True
    return False


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _gpu_options(
    platform: str, visible_devices: tuple[int, ...] | None, node_id: int, num_nodes: int
) -> dict[str, Any]:
    _check_fraction("XLA_PYTHON_CLIENT_MEM_FRACTION")
    _check_fraction("XLA_CLIENT_MEM_FRACTION")
    try:
        options = dict(xla_client.generate_pjrt_gpu_plugin_options())
    except ValueError as error:
        raise ValueError(f"an XLA_PYTHON_CLIENT_* variable of the environment is malformed: {error}") from None
    options["platform_name"] = {"cuda": "cuda", "rocm": "ROCM"}[platform]
    options["node_id"] = node_id
    options["num_nodes"] = num_nodes
    devices = visible_devices if visible_devices is not None else _visible_devices(platform, os.environ)
    if devices is not None:
        options["visible_devices"] = list(devices)
    return options


def _check_fraction(variable: str) -> None:
    text = os.environ.get(variable)
    if not text:
        return
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not fraction > 0:
        raise ValueError(f"{variable} is {text!r}; expected the part of the GPU's memory to use, such as .75")


def _visible_devices(platform: str, environment: Mapping[str, str]) -> tuple[int, ...] | None:
    for variable in [f"{prefix}_{platform.upper()}_VISIBLE_DEVICES" for prefix in ("XTRACE", "JAX")]:
        numbers = device_numbers(variable, environment.get(variable, ""))
        if numbers is not None:
            return numbers
    return None


def device_numbers(name: str, text: str | None) -> tuple[int, ...] | None:
    """Return the numbers in comma-separated `text`, None for "all" or nothing; ValueError, with `name`, for others."""
    text = (text or "").strip()
    if not text or text == "all":
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{name} is {text!r}; expected device numbers such as 0,1 or all") from None


def _parse_options(text: str) -> dict[str, Any]:
    """Return the options in ``name:value;name:value``; integers, true and false are converted."""
    options: dict[str, Any] = {}
    for part in filter(None, text.split(";")):
        name, separator, value = part.partition(":")
        if not separator:
            raise ValueError(f"jax_pjrt_client_create_options is {text!r}; expected name:value;name:value")
        options[name] = int(value) if value.lstrip("-").isdigit() else {"true": True, "false": False}.get(value, value)
    return options


def _prepare_cuda(library: str) -> None:
    """Let XLA find ptxas and libdevice, and load the CUDA libraries of another site folder."""
    data = cuda_data_directory()
    flags = os.environ.get("XLA_FLAGS", "")
    if data is not None and "--xla_gpu_cuda_data_dir" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_cuda_data_dir={data}".strip()
    for path in _foreign_libraries(library):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        except OSError:
            # If XLA needs the library, its error names it.
            continue


def _foreign_libraries(library: str) -> list[str]:
    """Return the CUDA libraries outside of the plugin's own search path, which is its site folder."""
    site = library.partition(os.sep + "jax_plugins")[0]
    major = 13 if "xla_cuda13" in library else 12
    runtime = _find(_CUDA_RUNTIMES[major])
    if runtime is None or runtime.startswith(site + os.sep):
        return []
    # The runtime first, then the libraries that others link to.
    first = ("libcudart", "libnvJitLink", "libcublasLt", "libcublas", "libcusparse")
    paths = glob.glob(os.path.join(runtime[: -len(_CUDA_RUNTIMES[major])], _CUDA_LIBRARIES[major]))

    def order(path: str) -> tuple[int, str]:
        name = os.path.basename(path).partition(".")[0]
        return (first.index(name) if name in first else len(first), name)

    return sorted(paths, key=order)


@contextmanager
def _tpu_environment(platform: str) -> Iterator[None]:
    """While libtpu loads on a machine without a TPU, keep it from waiting, locking and logging."""
    added = {}
    if platform == "tpu" and not _tpu_present():
        added = {name: value for name, value in _TPU_WITHOUT_DEVICE.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
