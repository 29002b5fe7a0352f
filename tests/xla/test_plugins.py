"""Finding PJRT plugins and devices on disk, and what the user reads when something is missing."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from xtrace._src.xla.custom_calls import cuda_kernels
from xtrace._src.xla.plugins import plugins

ROOT = Path(__file__).parents[2]
CUDA12 = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
CUDA13 = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
RUNTIME12 = "nvidia/cuda_runtime/lib/libcudart.so.12"
RUNTIME13 = "nvidia/cu13/lib/libcudart.so.13"
ROCM = "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
TPU = "libtpu/libtpu.so"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that puts empty files into site folders, which are all that ``sys.path`` names."""
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(plugins.sys, "path", [str(tmp_path / "site"), str(tmp_path / "other")])
    # Without the machine's own CUDA.
    real = os.path.exists
    monkeypatch.setattr(plugins.os.path, "exists", lambda p: str(tmp_path) in str(p) and real(p))
    monkeypatch.setenv("LD_LIBRARY_PATH", "")

    def put(*names, folder="site"):
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        return tmp_path / folder

    return put


@pytest.fixture
def every_device(monkeypatch):
    monkeypatch.setattr(plugins, "device_present", lambda platform: True)


@pytest.mark.parametrize("platform", plugins.PLATFORMS)
def test_no_plugin(site, platform):
    assert plugins.find_library(platform) is None


@pytest.mark.parametrize(("platform", "file"), [("cuda", CUDA12), ("cuda", CUDA13), ("rocm", ROCM), ("tpu", TPU)])
@pytest.mark.parametrize("folder", ["site", "other"])
def test_a_plugin_is_found_by_its_file(site, platform, file, folder):
    path = site(file, folder=folder) / file
    assert plugins.find_library(platform) == str(path)


def test_the_named_tpu_library_goes_first(site, monkeypatch):
    site(TPU)
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/elsewhere/libtpu.so")
    assert plugins.find_library("tpu") == "/elsewhere/libtpu.so"


@pytest.mark.parametrize(
    ("runtimes", "driver", "expected"),
    [
        ((), 580, CUDA13),
        ((), 570, CUDA12),
        ((), None, CUDA13),
        ((RUNTIME12,), 580, CUDA12),
        ((RUNTIME13,), 580, CUDA13),
        ((RUNTIME12, RUNTIME13), 580, CUDA13),
        ((RUNTIME12, RUNTIME13), 535, CUDA12),
    ],
)
def test_of_two_cuda_plugins_the_one_that_can_run(site, monkeypatch, runtimes, driver, expected):
    folder = site(CUDA12, CUDA13, *runtimes)
    monkeypatch.setattr(plugins, "_cuda_driver", lambda: driver)
    assert plugins.find_library("cuda") == str(folder / expected)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), []),
        ((CUDA12,), []),  # the extra `aot`: a compiler without CUDA
        ((CUDA12, RUNTIME12), ["cuda"]),
        ((CUDA13, RUNTIME13), ["cuda"]),
        ((CUDA12, RUNTIME13), []),
        ((ROCM,), ["rocm"]),
        ((TPU,), ["tpu"]),
        ((TPU, CUDA12, RUNTIME12), ["cuda", "tpu"]),
    ],
)
def test_available_where_the_devices_are(site, every_device, files, expected):
    site(*files)
    assert plugins.available_platforms() == expected


def test_cuda_of_the_system_serves_a_plugin_without_wheels(site, every_device, monkeypatch):
    folder = site(CUDA12, "lib64/libcudart.so.12")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{os.pathsep}{folder / 'lib64'}")
    assert plugins.available_platforms() == ["cuda"]


def test_without_devices_no_library_is_searched(monkeypatch):
    monkeypatch.setattr(plugins, "device_present", lambda platform: False)
    monkeypatch.setattr(plugins, "find_library", lambda platform: pytest.fail("searched"))
    assert plugins.available_platforms() == []


def test_without_device_files_neither_pci_nor_driver_is_read(monkeypatch):
    asked = []
    monkeypatch.setattr(plugins.os.path, "exists", lambda path: asked.append(path))
    monkeypatch.setattr(plugins, "_read", lambda path: pytest.fail(f"read {path}"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert plugins.available_platforms() == []
    assert len(asked) <= 5


@pytest.mark.parametrize(
    ("visible", "expected"), [(None, True), ("0", True), ("0,1", True), ("", False), ("-1", False)]
)
def test_hidden_gpus_are_absent(monkeypatch, visible, expected):
    monkeypatch.setattr(plugins.os.path, "exists", lambda path: path == "/dev/nvidiactl")
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert plugins.device_present("cuda") is expected


@pytest.mark.parametrize(
    ("vendor", "device", "expected"),
    [("0x1ae0", "0x0063", True), ("0x1ae0", "0x0042", False), ("0x10de", "0x0063", False)],
    ids=["v5e", "other-google", "other-vendor"],
)
def test_a_tpu_is_known_by_its_pci_ids(tmp_path, monkeypatch, vendor, device, expected):
    (tmp_path / "vendor").write_text(vendor + "\n")
    (tmp_path / "device").write_text(device + "\n")
    monkeypatch.setattr(plugins.os.path, "exists", lambda path: path == "/dev/vfio")
    monkeypatch.setattr(plugins.glob, "iglob", lambda pattern: iter([str(tmp_path / "vendor")]))
    assert plugins.device_present("tpu") is expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("nvidia/cuda_nvcc/bin/ptxas",), "nvidia/cuda_nvcc"),
        (("nvidia/cu13/bin/ptxas",), "nvidia/cu13"),
        (("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", CUDA12), "nvidia/cuda_nvcc"),
        (("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas", CUDA13), "nvidia/cu13"),
    ],
)
def test_data_directory_is_that_of_the_plugin(site, files, expected):
    folder = site(*files)
    assert plugins.cuda_data_directory() == str(folder / expected)


def test_no_data_directory(site):
    assert plugins.cuda_data_directory() is None


def test_cuda_libraries_of_another_site_are_loaded_runtime_first(site):
    library = site(CUDA12) / CUDA12
    names = ["cudnn/lib/libcudnn.so.9", "cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12"]
    names = [f"nvidia/{name}" for name in names]
    other = site(RUNTIME12, *names, folder="other")
    found = plugins._foreign_libraries(str(library))
    assert found == [str(other / name) for name in (RUNTIME12, names[2], names[1], names[0])]
    site(RUNTIME12)
    assert plugins._foreign_libraries(str(library)) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), []),
        ((CUDA12,), []),
        ((CUDA12, "jax_cuda12_plugin/cuda_plugin_extension.so"), ["jax_cuda12_plugin"]),
        ((CUDA13, "jax_cuda13_plugin/cuda_plugin_extension.so"), ["jax_cuda13_plugin"]),
        ((CUDA12, "jax_cuda13_plugin/cuda_plugin_extension.so"), []),
    ],
)
def test_kernels_are_those_of_the_plugin_and_nothing_is_imported_without_them(site, monkeypatch, files, expected):
    asked = []
    monkeypatch.setattr(cuda_kernels, "register_hybrid", asked.append)
    site(*files)
    plugins.prepare_hybrid_kernels()
    assert asked == expected


def test_kernels_reach_the_plugin_that_was_loaded(monkeypatch):
    """Also what was registered before: XLA's client keeps that until there is a handler."""
    handlers, targets = {}, []
    extension = types.SimpleNamespace(
        register_custom_call_target=lambda *arguments: targets.append(arguments), register_custom_type=lambda *_: None
    )
    libraries = {
        "wheel.cuda_plugin_extension": extension,
        "wheel._solver": types.SimpleNamespace(registrations=lambda: {"solve": "a"}),
        "wheel._linalg": types.SimpleNamespace(registrations=lambda: {"exchange": "b"}),
        "wheel._sparse": types.SimpleNamespace(registrations=dict),
    }
    client = types.SimpleNamespace(
        register_custom_call_handler=handlers.__setitem__,
        register_custom_type_handler=lambda platform, handler: None,
        register_custom_call_target=lambda name, function, platform, api_version: handlers[platform](
            name, function, platform, api_version, 0
        ),
    )
    monkeypatch.setattr(cuda_kernels, "xla_client", client)
    monkeypatch.setattr(cuda_kernels.importlib, "import_module", libraries.__getitem__)
    cuda_kernels.register("wheel", "plugin")
    assert targets == [("plugin", "solve", "a", "CUDA", 1, 0), ("plugin", "exchange", "b", "CUDA", 1, 0)]


def test_data_directory_reaches_xla_unless_the_user_says_otherwise(site, monkeypatch):
    folder = site(CUDA12, "nvidia/cuda_nvcc/bin/ptxas")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    plugins._prepare_cuda(str(folder / CUDA12))
    assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=/tmp/x --xla_gpu_cuda_data_dir={folder}/nvidia/cuda_nvcc"
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/mine")
    plugins._prepare_cuda(str(folder / CUDA12))
    assert os.environ["XLA_FLAGS"] == "--xla_gpu_cuda_data_dir=/mine"


def test_tpu_variables_last_as_long_as_the_loading(monkeypatch):
    monkeypatch.setattr(plugins, "_tpu_present", lambda: False)
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "0")
    before = dict(os.environ)
    with plugins._tpu_environment("tpu"):
        assert os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] == "1"
        assert os.environ["TPU_SKIP_MDS_QUERY"] == "0"
    assert dict(os.environ) == before
    for platform, present in (("cuda", False), ("tpu", True)):
        monkeypatch.setattr(plugins, "_tpu_present", lambda present=present: present)
        with plugins._tpu_environment(platform):
            assert dict(os.environ) == before


class Clients:
    """Stands for jaxlib's client functions and remembers what it was asked for."""

    def __init__(self, monkeypatch, error=None):
        self.asked, self.error = [], error
        monkeypatch.setattr(plugins.xla_client, "make_c_api_client", self.make)
        monkeypatch.setattr(plugins, "initialize", lambda platform: None)

    def make(self, platform, options, distributed_client):
        if self.error is not None:
            raise self.error
        self.asked.append((platform, options, distributed_client))
        return "client"


def test_cuda_client_takes_its_options_from_the_environment(monkeypatch, every_device):
    clients = Clients(monkeypatch)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".25")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    monkeypatch.setenv("JAX_CUDA_VISIBLE_DEVICES", "2,3")
    assert plugins.load("cuda", node_id=1, num_nodes=2, distributed_client="d") == "client"
    [(platform, options, distributed)] = clients.asked
    assert (platform, distributed) == ("cuda", "d")
    expected = {
        "platform_name": "cuda", "preallocate": False, "memory_fraction": 0.25, "allocator": "platform",
        "visible_devices": [2, 3], "node_id": 1, "num_nodes": 2,
    }
    assert {name: options[name] for name in expected} == expected
    monkeypatch.setenv("XTRACE_CUDA_VISIBLE_DEVICES", "all")
    monkeypatch.delenv("JAX_CUDA_VISIBLE_DEVICES")
    plugins.load("cuda")
    assert "visible_devices" not in clients.asked[-1][1]
    plugins.load("cuda", visible_devices=(0,))
    assert clients.asked[-1][1]["visible_devices"] == [0]


def test_rocm_client_takes_its_devices_from_the_environment(monkeypatch, every_device):
    clients = Clients(monkeypatch)
    monkeypatch.setenv("JAX_ROCM_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("JAX_CUDA_VISIBLE_DEVICES", "2")
    plugins.load("rocm")
    [(platform, options, _)] = clients.asked
    assert (platform, options["platform_name"], options["visible_devices"]) == ("rocm", "ROCM", [1])


def test_tpu_client_has_no_options_of_cuda(monkeypatch, every_device):
    clients = Clients(monkeypatch)
    plugins.load("tpu")
    assert clients.asked == [("tpu", {}, None)]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "half", "XLA_PYTHON_CLIENT_MEM_FRACTION is 'half'"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "-1", "XLA_PYTHON_CLIENT_MEM_FRACTION is '-1'"),
        ("XLA_CLIENT_MEM_FRACTION", "nan", "XLA_CLIENT_MEM_FRACTION is 'nan'"),
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "mine", "XLA_PYTHON_CLIENT_ALLOCATOR"),
        ("XTRACE_CUDA_VISIBLE_DEVICES", "0;1", "XTRACE_CUDA_VISIBLE_DEVICES is '0;1'"),
        ("JAX_CUDA_VISIBLE_DEVICES", "first", "JAX_CUDA_VISIBLE_DEVICES is 'first'"),
    ],
)
def test_malformed_variables_are_named(monkeypatch, every_device, variable, value, message):
    clients = Clients(monkeypatch)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=message):
        plugins.load("cuda")
    assert clients.asked == []


@pytest.mark.parametrize("function", [plugins.load, plugins.initialize, plugins.find_library, plugins.device_present])
def test_unknown_platform(function):
    with pytest.raises(ValueError, match="no plugin for the platform 'metal'; there are those for cuda, rocm, tpu"):
        function("metal")


@pytest.mark.parametrize(
    ("platform", "command"),
    [("cuda", "'xtrace[cuda12]'"), ("rocm", "jax-rocm7-pjrt"), ("tpu", "'xtrace[tpu]'")],
)
def test_what_is_missing_is_named_with_the_pip_command(site, monkeypatch, platform, command):
    monkeypatch.setattr(plugins._jax, "pjrt_plugin_loaded", lambda name: False)
    monkeypatch.setattr(plugins, "device_present", lambda name: False)
    with pytest.raises(RuntimeError, match="this machine shows no") as caught:
        plugins.load(platform)
    assert f"pip install {command}" in str(caught.value)
    monkeypatch.setattr(plugins, "device_present", lambda name: True)
    with pytest.raises(RuntimeError, match=f"the PJRT plugin of {platform} is not installed") as caught:
        plugins.load(platform)
    assert f"pip install {command}" in str(caught.value)
    with pytest.raises(ImportError, match="is not installed"):
        plugins.initialize(platform)


def test_a_client_that_does_not_start_says_why(monkeypatch, every_device):
    Clients(monkeypatch, plugins._jax.JaxRuntimeError("FAILED_PRECONDITION: No visible GPU devices."))
    message = r"the cuda client did not start: FAILED_PRECONDITION: No visible GPU devices\. Look"
    with pytest.raises(RuntimeError, match=message):
        plugins.load("cuda")


@pytest.mark.parametrize(("platform", "file"), [("cuda", CUDA12), ("tpu", TPU)])
def test_a_broken_library_is_an_error(tmp_path, platform, file):
    library = tmp_path / file
    library.parent.mkdir(parents=True)
    library.write_bytes(b"not a library")
    code = (
        "import sys\n"
        "from xtrace._src.xla.plugins import plugins\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "for _ in range(2):\n"
        "    try:\n"
        f"        plugins.initialize({platform!r})\n"
        "    except RuntimeError as error:\n"
        "        print('did not load' in str(error), 'pip install' in str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 4


def test_the_clients_of_present_devices_start():
    for platform in plugins.available_platforms():
        code = f"from xtrace._src.xla.plugins import plugins; print(len(plugins.load({platform!r}).devices()) > 0)"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.stdout.strip().endswith("True"), done.stderr
