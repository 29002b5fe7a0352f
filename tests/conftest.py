"""What every test runs under: checked jaxprs, the CPU, and Hypothesis without a clock."""

import gc
import importlib.metadata
import importlib.util
import os
import sys

# Read when the packages are imported, so set before they are.
os.environ.setdefault("XTRACE_ENABLE_CHECKS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
# Meshes need devices. Both libraries read this.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
# Processes that tests start would compile all modules of the package anew, which takes half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A failing test shows all frames.
os.environ.setdefault("XTRACE_TRACEBACK_FILTERING", "off")
# Tables of tests compile a function for many types on purpose.
os.environ.setdefault("XTRACE_RECOMPILATION_LIMIT", "256")
# Both packages behave as the jax that is installed.
if not importlib.metadata.version("jax").startswith("0.10."):
    os.environ.setdefault("XTRACE_JAX_VERSION", "0.12")
# Compiling is nine tenths of the suite's time, and how XLA generates code is no subject of it: these flags give the
# same values in a third of the time. Newer releases lack one of them, and a flag that a plugin lacks ends the process,
# so the repeat on Python 3.13 and accelerators run as users do, and so does all of it under `XLA_FLAGS= pytest`.
if importlib.metadata.version("jaxlib").startswith("0.10.") and not any(
    importlib.util.find_spec(plugin) for plugin in ("jax_plugins", "libtpu")
):
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        " --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_use_fusion_emitters=false",
    )

import jax
import pytest
from hypothesis import HealthCheck, settings

# jax refuses a plugin that is loaded already, and xtrace does not: on an accelerator jax starts first.
if os.environ["JAX_PLATFORMS"] != "cpu":
    jax.devices()

import xtrace
from tests.support import jax_modules, reference, sampling
from tests.support.sampling import default_seed, number_of_draws, sample_of
from xtrace._src.core import primitive
from xtrace._src.core.settings import config
from xtrace._src.core.trace import base_trace, current_trace

settings.register_profile("local", deadline=None, print_blob=True)
# The first example of a process pays for imports and clients, which is no fault of the test.
settings.register_profile(
    "ci", deadline=None, print_blob=True, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    """Let a run take a part of the tests, another one for each seed."""
    parser.addoption("--sample", type=float, default=1.0, help="the part of the tests to run, such as 0.3")
    parser.addoption("--sample-seed", default=default_seed(), help="what draws them; by default the commit")
    parser.addoption("--whole-tables", action="store_true", help="run all rows of costly tables, as of files by name")
    parser.addoption("--thorough", action="store_true", help="run the files marked thorough whole, as files by name")


def pytest_configure(config):
    """Let tests know how many of them there are: few do not share what is made for many."""
    sampling.part_run = config.getoption("sample")


def pytest_terminal_summary(terminalreporter, config):
    """Say which part of the tests was run; a header would not be seen under -q."""
    terminalreporter.write_line(str(sample_of(config)))


def pytest_report_header(config):
    """Name the seed that repeats this run's drawn calls."""
    return f"drawn calls: XTRACE_DRAWS_SEED={number_of_draws(config.getoption('sample_seed'))}"


def pytest_collection_modifyitems(config, items):
    """Keep the sample, and skip what jax has changed since the release whose behaviour xtrace follows."""
    sample = sample_of(config)
    left_out = [item for item in items if item not in sample]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in sample]
    for item in items:
        reason = reference.reason_to_skip(item.nodeid)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"jax changed after 0.10.2: {reason}"))


def pytest_collection_finish():
    """Keep what imports made, jax's too, out of garbage collections, which would look at it thousands of times."""
    jax_modules.share_contexts()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def settled():
    """Check every jaxpr that the test makes, and that the test leaves trace, settings and collector as they were."""
    # A global value: an override of this thread would keep dispatch off its fastest path.
    config.config.update("jax_enable_checks", True)
    before, collecting = dict(config.config.values), gc.isenabled()
    yield
    assert current_trace.get() is base_trace, "the test left a trace behind"
    assert config.config.values == before, "the test left a setting changed"
    assert gc.isenabled() == collecting, "the test left the garbage collector in another state"


@pytest.fixture(autouse=True, scope="module")
def programs_freed():
    """Free what a file's tests compiled: thousands of executables in one process use up the memory maps it may have.

    jax's stay longer, since many of its functions are programs of other functions' tests as well.
    """
    yield
    xtrace.clear_caches()
    if _memory_maps() > _ENOUGH_MAPS:
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        gc.unfreeze()
        gc.collect()
    # What is left is looked at again when much has come together: a collection of it takes a second.
    gc.freeze()


# Of the 65,530 that Linux allows; by then the programs take two to three gigabytes.
_ENOUGH_MAPS = 6_000


def _memory_maps() -> float:
    try:
        with open("/proc/self/maps") as maps:
            return sum(1 for _ in maps)
    except OSError:
        return float("inf")


@pytest.fixture
def new_primitive(monkeypatch):
    """The class Primitive, whose instances are forgotten with the test."""
    monkeypatch.setattr(primitive, "_primitives", dict(primitive._primitives))
    return primitive.Primitive
