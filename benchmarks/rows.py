"""The rows of the table and the targets they have to meet (the issue's "How fast")."""

import gc
import importlib
import os
import tempfile
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import sharded
from benchmarks.applications import APPLICATIONS, build_any
from benchmarks.compiled import instructions, temporary_bytes
from benchmarks.measure import Fresh, Row, Sampler
from benchmarks.programs import Library, build, uniform

IMPORT = """
import time
start = time.perf_counter()
{imports}
print(time.perf_counter() - start)
"""

# A stage in a new process. The times of new processes have the import in them, because xtrace loads at first use.
COLD = """
import time
from benchmarks.programs import build, load
start = time.perf_counter()
library = load("{library}")
function, arguments = build(library, "{program}")
{stage}
print(time.perf_counter() - start)
"""

# What a script does before its first call of a jitted function.
SET_UP = """
import time
start = time.perf_counter()
import {library}, {library}.numpy as np
keys = {library}.random.split({library}.random.key(0), 3)
sizes = (8, 16, 16, 4)
weights = [np.ones(s) / np.sqrt(s[0]) for s in zip(sizes, sizes[1:])]
biases = [np.zeros(n) for n in sizes[1:]]
noise = [{library}.random.bits({library}.random.fold_in(key, 1), (4, n)) for key, n in zip(keys, sizes[1:])]
x = np.arange(80).reshape(10, 8).astype(np.float32) / 80
batches = [x[:5], x[5:], x.T, np.concatenate([x, x]), np.where(x > 0.5, x, 0.0), np.eye(4), x + 1, x * x, -x]
{library}.block_until_ready((weights, biases, noise, batches))
print(time.perf_counter() - start)
"""

# From the start of a process to the first result.
START = """
import time
start = time.perf_counter()
from benchmarks import applications, programs
library = programs.load("{library}")
function, arguments = applications.build_any(library, "{program}")
library.root.block_until_ready(library.root.jit(function)(*arguments))
print(time.perf_counter() - start)
"""

# The same, with what earlier processes kept on disk.
WARM_START = """
import os, subprocess, sys
from benchmarks.rows import START, warm_start_folder
folder = warm_start_folder(os.getppid(), "{library}")
names = {
    "JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "XTRACE_TRACE_CACHE": "{traces}",
}
script = START.replace("{library" + "}", "{library}").replace("{program" + "}", "{program}")
def run():
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=os.environ | names, capture_output=True, text=True, check=True).stdout
mark = os.path.join(folder, "{program}".replace(" ", "_").replace(",", "") + "{traces}")
if not os.path.exists(mark):
    run()
    open(mark, "w").close()
print(run())
"""

MEMORY = """
import resource, sys
import {library}, {library}.numpy as np
{library}.jit(lambda x: np.exp(x) + 1)(np.ones(1000)).block_until_ready()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""

# Bytes of resident memory a call keeps, and one more, so that a row without growth has a ratio.
GROWTH = """
import gc, os
import numpy
import {library}, {library}.numpy as np
page = os.sysconf("SC_PAGE_SIZE")
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * page
x = np.ones(8)
host = numpy.ones(8, numpy.float32)
{setup}
def run(count):
    for _ in range(count):
        result = {statement}
    {library}.block_until_ready(result)
run({calls} // 10)
before = resident()
run({calls})
print((resident() - before) / {calls} + 1)
"""

TEXT = "library.root.jit(function).trace(*arguments).lower().as_text()"
FIRST_CALL = "library.root.jit(function)(*arguments).block_until_ready()"


def imports(statement: str) -> Fresh:
    return Fresh(IMPORT.replace("{imports}", statement))


def cold(program: str, stage: str) -> Fresh:
    return Fresh(COLD.replace("{program}", program).replace("{stage}", stage))


def warm_start_folder(process: int, library: str) -> str:
    """The folder of compiled programs that the rows of one run of the benchmarks share, by its process."""
    return os.path.join(tempfile.gettempdir(), f"xtrace_benchmarks_{process}_{library}")


def cold_start(program: str, target: float, tiered: bool = False) -> Row:
    script = START.replace("{program}", program)
    if tiered:
        script = f"import os\nos.environ['XTRACE_COMPILATION'] = 'tiered'\n{script}"
    return Row(f"cold start{', tiered' if tiered else ''}: {program}", Fresh(script), target, unit="ms")


def warm_start(program: str, traces: bool = True) -> Row:
    script = WARM_START.replace("{program}", program).replace("{traces}", str(int(traces)))
    what = "warm start, traces kept" if traces else "warm start"
    return Row(f"{what}: {program}", Fresh(script), 0.3 if traces else None, unit="ms")


def kept_memory(name: str, statement: str, setup: str, calls: int) -> Row:
    script = GROWTH.replace("{calls}", str(calls)).replace("{statement}", statement).replace("{setup}", setup)
    return Row(f"memory kept by a call, and 1 byte: {name}", Fresh(script), target=2.0, unit="B")


def trace(jit: Callable[..., Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    jit(function).trace(*arguments)


def text(jit: Callable[..., Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    jit(function).trace(*arguments).lower().as_text()


def first_call(jit: Callable[..., Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    jit(function)(*arguments).block_until_ready()


def staged(library: Library, program: str, stage: Callable[..., None], equations: int = 1) -> Sampler:
    """Time a stage, each time on a function object never seen before."""
    arguments = library.root.device_put(build_any(library, program).arguments)

    def run_stage(count: int) -> float:
        return seconds_of(stage, library, [build_any(library, program).function for _ in range(count)], arguments)

    return Sampler(run_stage, equations)


def seconds_of(stage: Callable[..., None], library: Library, functions: list[Any], arguments: Any) -> float:
    """Time a stage on each of the functions: by this thread's clock, except where XLA works in others."""
    gc.collect()
    timer = timeit.Timer(
        "for function in functions: stage(jit, function, arguments)",
        "gc.enable()",
        time.perf_counter if stage is first_call else time.thread_time,
        globals={"gc": gc, "stage": stage, "jit": library.root.jit, "functions": functions, "arguments": arguments},
    )
    return timer.timeit(1)


def nested_gradients(library: Library, depth: int) -> Callable[..., Any]:
    """A derivative of order `depth`, that of a function of one number."""
    jnp = library.numpy

    def function(x: Any) -> Any:
        return jnp.sin(x) * jnp.exp(-0.5 * x) + jnp.tanh(x)

    for _ in range(depth):
        function = library.root.grad(function)
    return function


def nested_maps(library: Library, depth: int) -> Callable[..., Any]:
    """A function of a vector mapped over `depth` axes of a larger array."""
    jnp = library.numpy

    def function(x: Any) -> Any:
        return jnp.dot(jnp.exp(x - jnp.max(x)), x) + jnp.sum(jnp.where(x > 0, x, 0.1 * x))

    for _ in range(depth):
        function = library.root.vmap(function)
    return function


NESTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (nested_gradients, (np.float32(0.3),)),
    "vmap": (nested_maps, (uniform(*(2,) * 7),)),
}


def nested(library: Library, kind: str, depth: int) -> Sampler:
    """Time tracing and lowering under `depth` transformations."""
    make, arguments = NESTED[kind]
    return Sampler(lambda count: seconds_of(text, library, [make(library, depth) for _ in range(count)], arguments))


def growth(library: Library, kind: str, depth: int) -> Sampler:
    """Return how many times as long tracing and lowering under `depth` transformations takes as under one."""
    deep, shallow = nested(library, kind, depth), nested(library, kind, 1)

    def run_growth(count: int) -> float:
        return count * min(deep.run(1) for _ in range(2)) / min(shallow.run(2) / 2 for _ in range(4))

    return Sampler(run_growth)


def size(library: Library, program: str, measure: Callable[[Any], int]) -> Sampler:
    """A number above zero that is read from the lowered program, the same each time."""
    function, arguments = build_any(library, program)
    found = measure(library.root.jit(function).lower(*arguments))
    return Sampler(lambda count: float(count * found))


def lines_of_text(lowered: Any) -> int:
    return len(lowered.as_text().splitlines())


def compiled_instructions(lowered: Any) -> int:
    return instructions(lowered.compile())


def compiled_memory(lowered: Any) -> int:
    # One byte more, so that programs that need none have a ratio.
    return temporary_bytes(lowered.compile()) + 1


def repeated(
    library: Library, statement: str, names: Callable[[Library], dict[str, Any]], clock: Callable[[], float]
) -> Sampler:
    """Time an expression in a loop of its own code object, as `timeit` does, but with the garbage collector on.

    `clock` is this thread's for small operations, whose cost is the library's, and the wall's for XLA's own work.
    """
    latest = [None]
    timer = timeit.Timer(
        f"latest[0] = {statement}", "gc.enable()", clock, globals=names(library) | {"gc": gc, "latest": latest}
    )

    def run_loop(count: int) -> float:
        seconds = timer.timeit(count)
        result: Any = latest[0]
        result.block_until_ready()
        return seconds

    return Sampler(run_loop)


def total(*arrays: Any) -> Any:
    result = arrays[0]
    for array in arrays[1:]:
        result = result + array
    return result


# What functions are called with in turn, where they are called with more than one type of argument.
SHAPES = ((8,), (4, 8), (16,), (2, 3))


def jitted_sum(library: Library, count: int = 2) -> dict[str, Any]:
    """A jitted sum of `count` arrays of 8 numbers: little work, every argument used."""
    jit = library.root.jit
    arrays = [library.root.device_put(uniform(8, seed=seed)) for seed in range(count)]
    return {
        "f": jit(total) if count > 1 else jit(lambda x: -x),
        "a": arrays[0],
        "b": arrays[-1],
        "arrays": arrays,
        "host": uniform(8),
        "double": uniform(8).astype(np.float64),
        "compiled": jit(total).lower(arrays[0], arrays[-1]).compile(),
        "jit": jit,
        "total": total,
        "static": jit(lambda x, n: x * n, static_argnums=1),
        "mixed": [library.root.device_put(uniform(*shape)) for shape in SHAPES],
    }


def jitted_tree(library: Library, leaves: int) -> dict[str, Any]:
    """Jitted functions of a dict of many small arrays, one to a sum and one to a dict like it."""
    jit = library.root.jit
    tree = library.root.device_put({f"leaf{index:03}": uniform(8, seed=index) for index in range(leaves)})
    return {
        "f": jit(lambda tree: total(*tree.values())),
        "scale": jit(lambda tree: {key: -value for key, value in tree.items()}),
        "tree": tree,
    }


def eager_names(library: Library) -> dict[str, Any]:
    arrays = {
        "a": uniform(8),
        "b": uniform(8, seed=1),
        "matrix": uniform(8, 8),
        "mask": np.arange(8) % 2 == 0,
        "index": np.array([3, 1, 2]),
        "mixed": [uniform(*shape) for shape in SHAPES],
    }
    modules = {name: importlib.import_module(f"{library.root.__name__}.{name}") for name in ("nn", "random")}
    key = library.root.random.PRNGKey(0)
    return {"jnp": library.numpy, **modules, "key": key, "host": uniform(8), **library.root.device_put(arrays)}


def jitted_program(library: Library, program: str) -> dict[str, Any]:
    function, arguments = build(library, program)
    arguments = library.root.device_put(arguments)
    return {"f": library.root.jit(function), "function": function, "arguments": arguments}


def dispatch(name: str, statement: str, names: Callable[..., dict[str, Any]], target: float | None = None) -> Row:
    return Row(f"dispatch {name}", partial(repeated, statement=statement, names=names, clock=time.thread_time), target)


def eager(statement: str, target: float | None = None) -> Row:
    return Row(
        f"eager {statement}", partial(repeated, statement=statement, names=eager_names, clock=time.thread_time), target
    )


def run(program: str) -> Row:
    names = partial(jitted_program, program=program)
    measure = partial(repeated, statement="f(*arguments).block_until_ready()", names=names, clock=time.perf_counter)
    return Row(f"run {program}", measure, against_spread=True)


PRIMITIVE_STATEMENTS = ("jnp.exp(a)", "jnp.where(mask, a, b)", "jnp.sum(a)", "matrix.reshape(64)")
COMPOSITE_STATEMENTS = (
    "nn.softmax(matrix)", "a[1:3]", "a[index]", "a.at[0].set(1.0)", "jnp.concatenate([a, b])",
    "jnp.einsum('ij,jk->ik', matrix, matrix)", "random.normal(key, (8,))", "jnp.std(matrix, axis=0)",
)
MIXED_STATEMENTS = (
    "[jnp.exp(x) for x in mixed][0]", "[jnp.sum(x, axis=0) for x in mixed][0]", "[x + x for x in mixed][0]",
    "jnp.clip(a, 0.1, 0.9)", "list(matrix)[0]", "jnp.median(a)", "jnp.arange(8)",
)
SMALL = ("selu", "log2", "mlp")
WARM = ("selu", "mlp", "trained perceptron", "gradient of a transformer, 12 layers")
GRADIENTS = ("gradient of a transformer, 12 layers", "gradient of a transformer, 48 layers")
EQUATIONS = {"straightline 1,000": 1_000, "straightline 5,000": 5_000, "straightline 20,000": 20_000}
SIZED = ("mlp", "gradient of a transformer, 12 layers", *APPLICATIONS)
SIZES = (
    ("lines of text", lines_of_text, 1.0, "lines"),
    ("compiled instructions", compiled_instructions, 1.05, "instr"),
    ("temporary memory", compiled_memory, 1.05, "kB"),
)
PLURAL = ", ".join(["{library}", *(f"{{library}}.{name}" for name in ("numpy", "lax", "random", "nn", "tree_util"))])

ROWS = [
    Row("import", imports("import {library}"), target=0.27, unit="ms"),
    Row("import with five modules", imports(f"import {PLURAL}"), target=0.27, unit="ms"),
    Row(
        "import of numpy, jaxlib and ml_dtypes alone",
        imports("import numpy, ml_dtypes; from jaxlib import xla_client, _jax"),
        baseline=imports("import {library}"),
        unit="ms",
    ),
    Row("memory peak after import and a call", Fresh(MEMORY), target=1.0, unit="MB"),
    kept_memory("jitted", "f(x, x)", "f = {library}.jit(lambda a, b: a + b)", 300_000),
    kept_memory("jitted, NumPy argument", "f(x, host)", "f = {library}.jit(lambda a, b: a + b)", 200_000),
    kept_memory("jitted gradient", "f(x)", "f = {library}.jit({library}.grad(lambda a: np.sin(a).sum()))", 300_000),
    kept_memory("compiled ahead of time", "f(x)", "f = {library}.jit(lambda a: a * 2).lower(x).compile()", 100_000),
    kept_memory("callback", "f(x)", "f = {library}.jit(lambda a: {library}.pure_callback(lambda v: v, a, a))", 50_000),
    kept_memory("eager", "x + x", "", 300_000),
    kept_memory("eager, indexing", "x[1]", "", 100_000),
    *(Row(f"trace {program}", partial(staged, program=program, stage=trace)) for program in SMALL),
    *(
        Row(f"trace {program}, per equation", partial(staged, program=program, stage=trace, equations=equations))
        for program, equations in EQUATIONS.items()
    ),
    Row(
        "trace growth per equation, 1,000 to 20,000",
        partial(staged, program="straightline 20,000", stage=trace, equations=20_000),
        target=1.25,
        baseline=partial(staged, program="straightline 1,000", stage=trace, equations=1_000),
        within_subject=True,
    ),
    *(
        Row(f"trace+lower {program}", partial(staged, program=program, stage=text), target=0.06)
        for program in (*SMALL, "straightline 5,000", "straightline 20,000", *GRADIENTS, *APPLICATIONS)
    ),
    *(
        Row(f"trace+lower nested {kind}, depth 6", partial(nested, kind=kind, depth=6), target=0.12, unit="ms")
        for kind in NESTED
    ),
    *(
        Row(
            f"growth of trace+lower, nested {kind}, depth 1 to 6",
            partial(growth, kind=kind, depth=6),
            target=1.0,
            unit="times",
        )
        for kind in NESTED
    ),
    *(
        Row(f"{what} {program}", partial(size, program=program, measure=measure), target=target, unit=unit)
        for what, measure, target, unit in SIZES
        for program in SIZED
    ),
    *(
        Row(f"cold trace+lower {program}", cold(program, TEXT), target=0.12, unit="ms")
        for program in (*SMALL, "straightline 5,000", "straightline 20,000")
    ),
    *(Row(f"first call {program}", partial(staged, program=program, stage=first_call), unit="ms") for program in SMALL),
    Row("first call straightline 1,000", partial(staged, program="straightline 1,000", stage=first_call), unit="ms"),
    *(Row(f"cold first call {program}", cold(program, FIRST_CALL), unit="ms") for program in SMALL),
    Row("cold set-up without jit", Fresh(SET_UP), target=0.3, unit="ms"),
    cold_start("selu", 0.3),
    cold_start("trained perceptron", 0.4),
    cold_start("trained perceptron", 0.4, tiered=True),
    *(warm_start(program, traces) for program in WARM for traces in (False, True)),
    dispatch("1 array", "f(a)", partial(jitted_sum, count=1), target=0.95),
    dispatch("2 arrays", "f(a, b)", jitted_sum, target=0.95),
    dispatch("10 arrays", "f(*arrays)", partial(jitted_sum, count=10), target=0.95),
    dispatch("100 arrays", "f(*arrays)", partial(jitted_sum, count=100), target=0.7),
    dispatch("200-leaf dict", "f(tree)", partial(jitted_tree, leaves=200), target=0.6),
    dispatch("200-leaf dict in and out", "scale(tree)['leaf000']", partial(jitted_tree, leaves=200), target=0.9),
    dispatch("compiled ahead of time", "compiled(a, b)", jitted_sum, target=1.0),
    dispatch("NumPy argument", "f(a, host)", jitted_sum, target=1.0),
    dispatch("2 NumPy arguments", "f(host, host)", jitted_sum, target=1.0),
    dispatch("NumPy argument of float64", "f(a, double)", jitted_sum, target=1.0),
    dispatch("Python scalar argument", "f(a, 2.0)", jitted_sum, target=0.95),
    dispatch("static argument", "static(a, 3)", jitted_sum, target=0.95),
    dispatch("through a new jit", "jit(total)(a, b)", jitted_sum, target=0.95),
    dispatch("4 shapes in turn", "[f(x) for x in mixed][0]", partial(jitted_sum, count=1), target=0.95),
    *(eager(statement, target=0.8) for statement in ("a + b", "a + 1.0", "-a", "a > b", "jnp.exp(host)")),
    *(eager(statement, target=0.8) for statement in PRIMITIVE_STATEMENTS),
    *(eager(statement, target=0.4) for statement in COMPOSITE_STATEMENTS),
    *(eager(statement, target=1.0) for statement in MIXED_STATEMENTS),
    *(eager(statement, target=0.8) for statement in ("matrix @ a", "a.astype(jnp.int32)")),
    *(run(program) for program in ("selu of 1,000,000", "mlp, batch 256", "column norm", "matmul")),
    Row(
        "run selu of 1,000,000, jitted over op by op",
        partial(
            repeated,
            statement="f(*arguments).block_until_ready()",
            names=partial(jitted_program, program="selu of 1,000,000"),
            clock=time.perf_counter,
        ),
        target=0.5,
        baseline=partial(
            repeated,
            statement="function(*arguments).block_until_ready()",
            names=partial(jitted_program, program="selu of 1,000,000"),
            clock=time.perf_counter,
        ),
        within_subject=True,
    ),
    *sharded.ROWS,
]
