"""Plugins of other makers: found by the environment and on disk, loaded without jax, and named if they do not load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xtrace._src.xla.plugins import installed_plugins, plugins

ROOT = Path(__file__).parents[2]
# What a library is known by; jaxlib refuses to load these bytes.
LIBRARY = b"no ELF file, but with the name GetPjrtApi in it"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that is all that ``sys.path`` names."""
    monkeypatch.setattr(plugins.sys, "path", [str(tmp_path)])
    monkeypatch.delenv(installed_plugins.VARIABLE, raising=False)

    def put(**files):
        for name, content in files["contents"].items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path

    return put


ENTRY_POINTS = b"[console_scripts]\nx = y:z\n\n[jax_plugins]\nMetal = makers.metal:initialize\n"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({}, {}),
        ({"jax_plugins/moon/lib/moon.so.1": LIBRARY}, {"moon": "jax_plugins/moon/lib/moon.so.1"}),
        # The first library that is a plugin, not any.
        ({"jax_plugins/moon/a.so": b"other", "jax_plugins/moon/b.so": LIBRARY}, {"moon": "jax_plugins/moon/b.so"}),
        ({"jax_plugins/moon/__init__.py": b"import jax"}, {"moon": None}),
        ({"jax_plugins/moon/empty.so": b""}, {"moon": None}),
        ({"m.dist-info/entry_points.txt": ENTRY_POINTS, "makers/metal/x.so": LIBRARY}, {"metal": "makers/metal/x.so"}),
        # xtrace's own names.
        ({"jax_plugins/xla_cuda12/x.so": LIBRARY, "jax_plugins/xla_rocm7/x.so": LIBRARY}, {}),
    ],
)
def test_plugins_are_found_by_packages(site, contents, expected):
    """Packages below jax_plugins and those of entry points are searched for a library, without running them."""
    folder = site(contents=contents)
    found = {name: library.path for name, library in installed_plugins.libraries([str(folder)]).items()}
    assert found == {name: path and str(folder / path) for name, path in expected.items()}
    assert plugins.available_platforms() == [name for name, path in expected.items() if path]


def test_the_environment_names_plugins_first(site, monkeypatch):
    """PJRT_NAMES_AND_LIBRARY_PATHS names several plugins, and overrides a package's."""
    site(contents={"jax_plugins/moon/moon.so": LIBRARY})
    monkeypatch.setenv(installed_plugins.VARIABLE, "Moon:/opt/moon.so,sun:/opt/sun.so")
    assert plugins.find_library("moon") == "/opt/moon.so" and plugins.find_library("sun") == "/opt/sun.so"
    assert plugins.available_platforms() == ["moon", "sun"]


@pytest.mark.parametrize("value", ["moon", "moon:", ":/opt/moon.so", "sun:/opt/sun.so,moon"])
def test_a_malformed_variable_is_named(monkeypatch, value):
    """Parts without a name or a path are refused with the form that is expected."""
    monkeypatch.setenv(installed_plugins.VARIABLE, value)
    with pytest.raises(ValueError, match=r"PJRT_NAMES_AND_LIBRARY_PATHS has '.*'; expected name:path"):
        installed_plugins.named_libraries()


def run(code, **environment):
    """Run Python code in a process of its own, and return its output and its warnings."""
    clean = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XTRACE_PLATFORMS")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=clean | environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


FIRST_DEVICE = """
import sys, xtrace
try:
    print(xtrace.devices())
except RuntimeError as error:
    print("error:", error)
assert "jax" not in sys.modules
"""


def test_a_plugin_that_does_not_load_gives_path_and_reason(tmp_path):
    """It is an error for the platform that is asked for, and a warning for one that is only there."""
    broken, missing = tmp_path / "broken.so", tmp_path / "missing.so"
    broken.write_bytes(LIBRARY)
    out, _ = run(FIRST_DEVICE, PJRT_NAMES_AND_LIBRARY_PATHS=f"moon:{broken}", XTRACE_PLATFORMS="moon")
    assert f"error: the PJRT plugin {broken} did not load:" in out and "file too short" in out
    assert "It is named by the environment variable PJRT_NAMES_AND_LIBRARY_PATHS" in out
    out, _ = run(FIRST_DEVICE, PJRT_NAMES_AND_LIBRARY_PATHS=f"moon:{missing}", JAX_PLATFORMS="moon,cpu")
    assert f"error: the PJRT plugin {missing} did not load: there is no such file" in out
    out, warned = run(FIRST_DEVICE, PJRT_NAMES_AND_LIBRARY_PATHS=f"moon:{broken}")
    assert "CpuDevice" in out
    assert "the platform moon is there but does not start" in warned and str(broken) in warned


def test_a_package_without_a_library_is_named(site, monkeypatch):
    """A package whose folder has no library with a plugin's function says so."""
    folder = site(contents={"jax_plugins/moon/__init__.py": b""})
    with pytest.raises(ImportError, match="the PJRT plugin of moon is not installed") as caught:
        plugins.initialize("moon")
    assert f"the package {folder / 'jax_plugins/moon'}, which has no shared library" in str(caught.value)


DEVICES = "import xtrace; print(len(xtrace.devices()), xtrace.default_backend())"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, "3 cpu"),
        ({"JAX_NUM_CPU_DEVICES": "2"}, "2 cpu"),
        ({"XTRACE_NUM_CPU_DEVICES": "4", "JAX_NUM_CPU_DEVICES": "2", "XTRACE_PLATFORMS": "cpu"}, "4 cpu"),
        # The setting says more than XLA's flag.
        ({"JAX_NUM_CPU_DEVICES": "2", "XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, "2 cpu"),
    ],
)
def test_the_environment_sets_the_number_of_cpu_devices(monkeypatch, environment, expected):
    """Devices of a CPU are as many as the setting says, else as XLA's flag says."""
    for name in ("JAX_NUM_CPU_DEVICES", "XTRACE_NUM_CPU_DEVICES", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    assert run(DEVICES, **environment)[0].strip() == expected


def test_a_platform_that_is_not_there_is_an_error():
    """A name that no plugin has is refused, with the platforms that there are."""
    out, _ = run(FIRST_DEVICE, JAX_PLATFORMS="moon")
    assert "error: there is no platform 'moon'; the platforms are cpu, cuda (or gpu), rocm, tpu, and those" in out
