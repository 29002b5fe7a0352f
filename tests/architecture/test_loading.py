"""What a fresh process loads: `import xtrace` stays light, and nothing that runs imports jax."""

import importlib
import importlib.util
import inspect
import json
import pickle
import pkgutil
import subprocess
import sys

import pytest

import xtrace
from tests.architecture.source_tree import ROOT
from tests.architecture.test_layers import LATE

HEAVY = ("jax", "jaxlib.mlir", "jaxlib._profiler", "matplotlib", "sklearn", "rich", "hypothesis")

RUN = """
import numpy as np
import xtrace
import xtrace.numpy as jnp

def f(x, y):
    return {"out": jnp.where(x > 0, x, jnp.exp(y)) @ jnp.ones((3, 2))}

x = np.arange(6, dtype=np.float32).reshape(2, 3)
eager = f(jnp.asarray(x), jnp.asarray(x))
jitted = xtrace.jit(f)
assert np.array_equal(np.asarray(jitted(x, x)["out"]), np.asarray(eager["out"]))
print_nothing = [repr(eager), str(xtrace.make_jaxpr(f)(x, x)), xtrace.lower(f, x, x).as_text()]
half = jnp.asarray(x).astype(jnp.bfloat16)
np.asarray(half), float(jnp.sum(half)), jnp.asarray(x)[1:, 0], list(jnp.arange(3))
xtrace.block_until_ready(xtrace.device_put(x)), xtrace.device_get(half), xtrace.devices()
compiled = xtrace.lower(f, x, x).compile()
compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis(), compiled(x, x)
import tempfile
with xtrace.profiler.trace(tempfile.mkdtemp(), create_perfetto_trace=True), xtrace.profiler.TraceAnnotation("block"):
    jitted(x, x)["out"].block_until_ready()
xtrace.profiler.device_memory_profile(), xtrace.live_arrays(), xtrace.print_environment_info(return_string=True)
"""


def modules_after(code: str) -> set[str]:
    """The modules that a fresh process has loaded after running `code`."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded(modules: set[str], name: str) -> list[str]:
    """The modules called `name` or inside it."""
    return sorted(m for m in modules if m == name or m.startswith(f"{name}."))


@pytest.fixture(scope="module")
def after_import():
    return modules_after("import xtrace, xtrace.numpy, xtrace.lax, xtrace.random, xtrace.nn, xtrace.tree_util")


@pytest.mark.parametrize("name", ["numpy", "jaxlib", "ml_dtypes", "xtrace._src", "xtrace.cli"])
def test_import_does_not_load(name, after_import):
    assert loaded(after_import, name) == []


@pytest.fixture(scope="module")
def after_first_use():
    return modules_after("import xtrace; xtrace.jit(abs)(1.0)")


@pytest.mark.parametrize("name", [*HEAVY, "xtrace.numpy", "xtrace.cli"])
def test_the_first_use_does_not_load(name, after_first_use):
    assert loaded(after_first_use, name) == []


def test_the_first_use_loads_what_it_needs(after_first_use):
    # Plugins may have the default device, and the tests check jaxprs, in the words of errors.
    of_tests = {"jaxprs.check", "jaxprs.printer", "diagnostics.rule_error_notes", "diagnostics"}
    allowed = {"xtrace._src.xla.plugins.plugins", *(f"xtrace._src.core.{name}" for name in of_tests)}
    assert after_first_use & LATE.keys() <= allowed


def test_the_first_use_collects_nothing_that_it_loads():
    code = """
import gc, json, numpy, xtrace
collected = []
gc.callbacks.append(lambda phase, info: collected.append(gc.get_count()[0]) if phase == "start" else None)
xtrace.jit
print(json.dumps(max(collected, default=0)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout) < 10_000, done.stderr


FIRST_USES = {
    "an array of a pickle": "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()) + 1.0)",
    "threads": """
import threading, xtrace, xtrace.numpy as jnp
barrier, results = threading.Barrier(8), []
def use(n):
    barrier.wait()
    results.append(float((xtrace.jit(lambda x: jnp.sin(x) * n) if n % 2 else lambda x: jnp.cos(x) + n)(0.0)))
threads = [threading.Thread(target=use, args=(n,)) for n in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(sorted(results))
""",
    "a class": "import xtrace; print(issubclass(xtrace.Array, object), xtrace.Array.__add__ is not None)",
    "a setting": "import xtrace; xtrace.config.update('jax_enable_x64', True); print(xtrace.numpy.ones(1).dtype)",
    "a private module": "from xtrace._src.ops.elementwise.elementwise import exp; print(exp(0.0) + 1)",
}
RESULTS = {
    "an array of a pickle": "[2. 3.]", "threads": "[0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 5.0, 7.0]", "a class": "True True",
    "a setting": "float64", "a private module": "2.0",
}


@pytest.mark.parametrize("name", FIRST_USES)
def test_the_first_use_may_be(name):
    command, given = [sys.executable, "-c", FIRST_USES[name]], pickle.dumps(xtrace.numpy.array([1.0, 2.0]))
    done = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, timeout=120)
    assert done.stdout.decode().strip() == RESULTS[name], done.stderr.decode()


def test_running_does_not_load_jax():
    assert importlib.util.find_spec("jax"), "the claim is about a machine that has it"
    assert loaded(modules_after(RUN), "jax") == []


def packages():
    """Every package whose names users read, and the modules below it."""
    found = [xtrace, *[importlib.import_module(m.name) for m in pkgutil.walk_packages(xtrace.__path__, "xtrace.")
                       if m.ispkg and not m.name.startswith("xtrace.cli")]]
    return [(p, {m.name for m in pkgutil.iter_modules(p.__path__)}) for p in found if hasattr(p, "__all__")]


def test_no_function_is_called_like_a_module_beside_it():
    # Importing the module would put it in the place of the function.
    clashes = [
        f"{package.__name__}.{name}"
        for package, modules in packages()
        for name in modules.intersection(package.__all__)
        if not inspect.ismodule(getattr(package, name))
    ]
    assert clashes == []
