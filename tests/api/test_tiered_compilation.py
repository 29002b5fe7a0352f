"""Programs that run before they are compiled fully, and programs that are compiled before they run."""

import functools
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.cost import calls_while
from xtrace import NamedSharding, P, ShapeDtypeStruct, jit
from xtrace._src.api.compilation import tiered_compilation
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime import execute
from xtrace._src.xla.executables import compile_threads
from xtrace._src.xla.executables.compile_threads import CompileThreads, Task
from xtrace.experimental.compilation_cache.compilation_cache import reset_cache


def tiered(function, **options):
    """Return the function jitted; each time another one, with a cache of its own."""
    return jit(functools.wraps(function)(lambda *args: function(*args)), compilation="tiered", **options)


@pytest.fixture(autouse=True)
def all_in_tiers(monkeypatch):
    """Small programs are compiled in tiers, too; return how many lines programs have that are, without this."""
    fewest = tiered_compilation._MIN_LINES
    monkeypatch.setattr(tiered_compilation, "_MIN_LINES", 0)
    return fewest


@pytest.fixture
def compiled(monkeypatch):
    """Return the list of the options that programs are compiled with, not of those that XLA refuses."""
    options = []
    compile_text = execute.executables.compile_text

    def record(text, devices, compiler_options, *arguments):
        made = compile_text(text, devices, compiler_options, *arguments)
        options.append(dict(compiler_options or {}))
        return made

    monkeypatch.setattr(execute.executables, "compile_text", record)
    return options


@pytest.fixture
def tasks(monkeypatch):
    """Return the list of compilations in the background, which `run` does."""
    made = []

    def start(work):
        made.append(weakref.ref(task := Task(work)))
        return task

    monkeypatch.setattr(tiered_compilation.background, "start", start)
    return made


def run(tasks):
    for task in tasks:
        task().run()
    tasks.clear()


def is_quick(options):
    return options.get("xla_backend_optimization_level") == 0


def step(x):
    return jnp.tanh(x @ x.T).sum(0), {"norm": jnp.sqrt((x * x).sum())}


X = np.arange(12, dtype=np.float32).reshape(3, 4) / 10


def assert_near(got, expected):
    for one, other in zip(xtrace.tree.leaves(got), xtrace.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape, one.weak_type) == (other.dtype, other.shape, other.weak_type)
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_program_runs_at_once_and_fully_compiled_later(compiled, tasks):
    f, expected = tiered(step), jit(lambda x: step(x))(X)
    compiled.clear()
    for _ in range(6):
        assert_near(f(X), expected)
    assert list(map(is_quick, compiled)) == [True] and len(tasks) == 1
    assert not f.wait_for_compilation(timeout=0.01)
    run(tasks)
    assert list(map(is_quick, compiled)) == [True, False]
    for _ in range(6):
        assert [a.tobytes() for a in map(np.asarray, xtrace.tree.leaves(f(X)))] == [
            a.tobytes() for a in map(np.asarray, xtrace.tree.leaves(expected))
        ]
    assert f.wait_for_compilation() and f.wait_for_compilation(timeout=0)
    assert len(compiled) == 2
    (entry,) = f.cache_info().entries
    assert entry.is_specialised and f.cache_info().misses == 1 and f.cache_info().hits >= 8


@pytest.mark.parametrize("way", ["full", "tiered", "quick"])
def test_setting_and_argument_choose_the_way(compiled, tasks, way):
    def chosen(function):
        compiled.clear(), tasks.clear()
        function(X)
        return "tiered" if tasks else "quick" if is_quick(compiled[0]) else "full"

    assert chosen(jit(lambda x: x + 1, compilation=way)) == way
    with xtrace.compilation(way):
        assert chosen(jit(lambda x: x + 1)) == way
        assert chosen(jit(lambda x: x + 1, compilation="quick")) == "quick"


def test_the_environment_chooses_the_way():
    program = "import xtrace; print(xtrace.config.xtrace_compilation)"
    environment = os.environ | {"XTRACE_COMPILATION": "tiered"}
    assert subprocess.check_output([sys.executable, "-c", program], env=environment, text=True) == "tiered\n"


def test_another_way_is_an_error():
    with pytest.raises(ValueError, match=r"jit: compilation is 'full', 'tiered', 'quick', or None .* got 'fast'"):
        jit(step, compilation="fast")
    with pytest.raises(ValueError, match="xtrace_compilation: the setting accepts 'full', 'tiered', 'quick'"):
        xtrace.config.update("xtrace_compilation", "fast")


def test_small_programs_and_functions_of_the_library_are_compiled_fully(compiled, tasks, monkeypatch, all_in_tiers):
    monkeypatch.setattr(tiered_compilation, "_MIN_LINES", all_in_tiers)

    def sine_of_sine(x):
        for _ in range(all_in_tiers):
            x = jnp.sin(x)
        return x

    tiered(step)(X)
    assert not tasks and not is_quick(compiled[-1])
    f = tiered(sine_of_sine)
    f(X)
    assert len(tasks) == 1 and is_quick(compiled[-1])
    monkeypatch.setattr(tiered_compilation, "_MIN_LINES", 0)
    tasks.clear(), compiled.clear(), xtrace.clear_caches()
    with xtrace.compilation("tiered"):
        xtrace.nn.softmax(jnp.asarray(X))
    assert not tasks and not any(map(is_quick, compiled))


def test_ahead_of_time_programs_are_compiled_fully(compiled, tasks):
    f = tiered(step)
    assert_near(f.lower(X).compile()(X), f.trace(X).lower().compile()(X))
    assert not tasks and not any(map(is_quick, compiled))


def test_options_of_the_user_are_kept(compiled, tasks):
    f = tiered(step, compiler_options={"xla_cpu_parallel_codegen_split_count": 3})
    f(X)
    assert compiled[-1]["xla_cpu_parallel_codegen_split_count"] == 3 and is_quick(compiled[-1])
    run(tasks)
    assert compiled[-1] == {"xla_cpu_parallel_codegen_split_count": 3}


def test_settings_are_those_of_the_call(compiled, tasks):
    f = tiered(step)
    f(X)
    before = xtrace.config.jax_exec_time_optimization_effort
    xtrace.config.update("jax_exec_time_optimization_effort", 0.5)
    try:
        run(tasks)
    finally:
        xtrace.config.update("jax_exec_time_optimization_effort", before)
    assert compiled[-1] == {}


def test_a_failure_is_reported_once(tasks, monkeypatch):
    f = tiered(step)
    expected = f(X)
    compile_text = execute.executables.compile_text

    def fail(*arguments):
        raise RuntimeError("no more memory")

    monkeypatch.setattr(execute.executables, "compile_text", fail)
    run(tasks)
    monkeypatch.setattr(execute.executables, "compile_text", compile_text)
    message = r"step was compiled quickly, and stays so.*RuntimeError: no more memory"
    with pytest.warns(UserWarning, match=message) as seen:
        assert_near(f(X), expected)
    assert len(seen) == 1 and seen[0].filename == __file__
    for _ in range(6):
        assert_near(f(X), expected)
    assert f.wait_for_compilation()


def test_options_that_xla_lacks_are_left_out(compiled, tasks, monkeypatch):
    options = {"xla_no_such_option": True, **tiered_compilation._QUICK}
    monkeypatch.setattr(tiered_compilation, "_QUICK", options)
    f = tiered(step)
    assert_near(f(X), jit(lambda x: step(x))(X))
    assert "xla_no_such_option" not in options and is_quick(options) and len(tasks) == 1


def test_a_program_that_xla_refuses_to_compile_quickly_is_compiled_fully(compiled, tasks, monkeypatch):
    monkeypatch.setattr(tiered_compilation, "_QUICK", {"xla_backend_optimization_level": "none"})
    assert_near(tiered(step)(X), jit(lambda x: step(x))(X))
    assert not tasks


def test_an_error_of_the_compiler_is_that_of_full_compilation(tasks):
    with pytest.raises(Exception, match=r"No such compile option: 'xla_no_such_option'"):
        tiered(step, compiler_options={"xla_no_such_option": True})(X)
    assert not tasks


def test_the_waiting_caller_is_told_of_a_failure(tasks, monkeypatch):
    f = tiered(lambda x: x * 3)
    f(X)
    monkeypatch.setattr(execute.executables, "compile_text", None)
    run(tasks)
    with pytest.warns(UserWarning, match="full compilation failed with TypeError"):
        assert f.wait_for_compilation()


def test_donated_arrays_are_gone_in_either_program(tasks):
    f = tiered(lambda x: x + 1, donate_argnums=0)
    values = []
    for number in range(12):
        x = jnp.full((100,), number)
        values.append(float(f(x)[0]))
        assert x.is_deleted()
        with pytest.raises(RuntimeError, match=r"deleted|donated"):
            f(x)
        if number == 4:
            run(tasks)
    assert values == [n + 1 for n in range(12)]


def test_references_are_written_by_either_program(tasks):
    total = xtrace.new_ref(jnp.zeros(3))

    @tiered
    def accumulate(ref, x):
        ref[...] += x
        return ref[0]

    for number in range(1, 9):
        assert accumulate(total, jnp.ones(3)) == number
        if number == 4:
            assert not accumulate.wait_for_compilation(timeout=0.01)
            run(tasks)
            assert accumulate.wait_for_compilation()


def test_callbacks_are_called_in_order_by_either_program(tasks):
    seen = []

    @tiered
    def f(x):
        xtrace.debug.callback(lambda v: seen.append(int(v)), x, ordered=True)
        return xtrace.pure_callback(lambda v: v * 2, x, x)

    for number in range(8):
        assert f(jnp.int32(number)) == 2 * number
        if number == 4:
            run(tasks)
    xtrace.effects_barrier()
    assert seen == list(range(8))


def test_errors_are_the_same_in_either_program(tasks):
    @tiered
    def f(x):
        def check(value):
            if value < 0:
                raise ValueError("below zero")
            return value

        return xtrace.pure_callback(check, x, x)

    for number in range(8):
        assert f(jnp.float32(number)) == number
        with pytest.raises(Exception, match="below zero"):
            f(jnp.float32(-1)).block_until_ready()
        with pytest.raises(TypeError):
            f("text")
        if number == 4:
            run(tasks)


def test_several_devices(tasks):
    mesh = xtrace.make_mesh((4,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    x = xtrace.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P("x")))
    f = tiered(lambda x: (x @ x.T).sum(0) + x.sum())
    results = []
    for number in range(10):
        results.append(f(x))
        if number == 4:
            run(tasks)
    assert {r.sharding for r in results} == {results[0].sharding}
    for one in results:
        np.testing.assert_allclose(one, results[0], rtol=1e-5)


def test_results_of_a_call_are_of_one_program():
    def f(x):
        y = jnp.sin(x) * 1.1
        return y, y + 0

    jitted, x, failures, end = tiered(f), jnp.linspace(0, 9, 1000), [], threading.Event()

    def call():
        while not end.is_set():
            one, other = jitted(x)
            if not np.array_equal(one, other):
                failures.append(one)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while not (jitted._cache_size() and jitted.wait_for_compilation(timeout=1)):
        assert time.monotonic() < deadline
    time.sleep(0.1)
    end.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert [c.upgrade for c in jitted._xtrace_jitted.cache.compiled.entries.values()] == [None]


def test_numbers_are_checked_without_tiers(tasks):
    with xtrace.debug_nans(True):
        f = tiered(lambda x: jnp.log(x))
        f(1.0)
        with pytest.raises(FloatingPointError):
            f(-1.0)
    assert not tasks


def test_a_steady_call_costs_what_it_does_without_tiers(tasks):
    def steady(jitted):
        x = jnp.asarray(X)
        for _ in range(6):
            jitted(x)
        run(tasks)
        for _ in range(6):
            jitted(x)
        # Garbage collections call functions, too.
        return min(calls_while(lambda: [jitted(x) for _ in range(50)]) for _ in range(5))

    assert steady(tiered(step)) == steady(jit(lambda x: step(x)))


@pytest.mark.parametrize("forget", [lambda f: xtrace.clear_caches(), lambda f: f.clear_cache(), None])
def test_what_waits_is_forgotten_with_the_program(tasks, forget):
    def function(x):
        return x * 2

    f = jit(function, compilation="tiered")
    f(X)
    assert tasks[0]() is not None
    if forget is None:
        gone = weakref.ref(function)
        del f, function
        gc.collect()
        assert gone() is None
    else:
        forget(f)
    assert tasks[0]() is None


def test_few_threads_work_and_end():
    threads = CompileThreads(2)
    lock, running, most = threading.Lock(), [0], [0]

    def work():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.01)
        with lock:
            running[0] -= 1
        return threading.current_thread()

    tasks = [threads.start(work) for _ in range(10)]
    lost = threads.start(lambda: most.append("begun"))
    del lost
    assert all(task.wait(10) for task in tasks)
    assert most == [2] and CompileThreads(0).limit == 1
    for task in tasks:
        task.result.join(10)
        assert not task.result.is_alive()
    assert threads.start(lambda: 3).wait(10)
    compile_threads._all.remove(threads)


def test_the_folder_keeps_full_programs(tmp_path, compiled, tasks):
    def compute():
        xtrace.clear_caches()
        return float(tiered(lambda x: jnp.sqrt(x * 8) * 5 + x)(np.float32(2)))

    with cache_settings.directory(str(tmp_path / "kept")), cache_settings.min_compile_seconds(0.0):
        reset_cache()
        before, made = xtrace.cache_info(), len(compiled)
        f = tiered(lambda x: jnp.sqrt(x * 8) * 5 + x)
        assert float(f(np.float32(2))) == 22
        assert xtrace.cache_info().stored == before.stored
        run(tasks)
        after = xtrace.cache_info()
        assert (after.stored, after.misses) == (before.stored + 1, before.misses + 1)
        assert list(map(is_quick, compiled[made:])) == [True, False]
        assert compute() == 22 and not tasks
        assert xtrace.cache_info().hits > after.hits and xtrace.cache_info().stored == after.stored


def child(text, **environment):
    """Run a program in a process of its own; its output, after a normal end."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"XTRACE_COMPILATION": "tiered"} | environment,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


LARGE = """
import os, sys, xtrace, xtrace.numpy as jnp
def large(number):
    def f(x):
        for i in range(60):
            x = jnp.tanh(x @ x) + jnp.sort(x * i + number, axis=0)
        return x
    return f
"""


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "del functions; sys.exit(0)"])
def test_a_process_ends_while_it_compiles(ending):
    text = LARGE + "functions = [xtrace.jit(large(n)) for n in range(4)]\n"
    text += "for f in functions: f(jnp.ones((8, 8)))\nprint('end', flush=True)\n" + ending
    assert child(text) == "end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_keeps_the_quick_program():
    text = LARGE + textwrap.dedent("""
        import warnings
        warnings.simplefilter("ignore")
        functions = [xtrace.jit(large(n)) for n in range(3)]
        for f in functions: f(jnp.ones((8, 8)))
        if os.fork() == 0:
            print([f.wait_for_compilation(timeout=20) for f in functions], flush=True)
            os._exit(0)
        print(os.wait()[1], [f.wait_for_compilation() for f in functions])
    """)
    assert child(text) == "[True, True, True]\n0 [True, True, True]\n"


# Before the first call


CALLS = {
    "description": ((ShapeDtypeStruct((3, 4), "float32"),), (jnp.asarray(X),)),
    "array": ((jnp.asarray(X),), (jnp.asarray(X) + 1,)),
    "NumPy": ((X,), (X + 1,)),
    "described NumPy": ((ShapeDtypeStruct((3, 4), "float32"),), (X,)),
    "number": ((2.0,), (3.0,)),
    "tree": (({"a": [ShapeDtypeStruct((3,), "int32"), 1.5]},), ({"a": [jnp.arange(3), 2.5]},)),
    "committed": (
        (ShapeDtypeStruct((3,), "float32", sharding=xtrace.sharding.SingleDeviceSharding(xtrace.devices()[1])),),
        (lambda: xtrace.device_put(np.ones(3, np.float32), xtrace.devices()[1]),),
    ),
    "committed to the first": (
        (ShapeDtypeStruct((3,), "float32", sharding=xtrace.sharding.SingleDeviceSharding(xtrace.devices()[0])),),
        (lambda: xtrace.device_put(np.ones(3, np.float32), xtrace.devices()[0]),),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_finds_what_was_warmed_up(compiled, name):
    described, arguments = CALLS[name]
    arguments = [a() if callable(a) else a for a in arguments]
    f = jit(lambda x: xtrace.tree.map(lambda leaf: leaf * 2, x))
    f.warm_up(*described)
    assert f.cache_info().misses == 1
    compiled.clear()
    f(*arguments)
    f.warm_up(*described)
    assert f.cache_info().misses == 1 and not compiled


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_sharded_calls_find_what_was_warmed_up(kind):
    mesh = xtrace.make_mesh((4,), ("x",), axis_types=(getattr(xtrace.sharding.AxisType, kind),))
    sharding = NamedSharding(mesh, P("x"))
    f = jit(lambda x: x * 2)
    f.warm_up(ShapeDtypeStruct((8,), "float32", sharding=sharding))
    assert f(xtrace.device_put(np.ones(8, np.float32), sharding)).sharding.spec == P("x")
    assert f.cache_info().misses == 1


def test_calls_on_another_default_device_find_what_was_warmed_up():
    f = jit(lambda x: x * 2)
    with xtrace.default_device(xtrace.devices()[1]):
        f.warm_up(ShapeDtypeStruct((3,), "float32"))
        assert f(jnp.ones(3)).device == xtrace.devices()[1]
    assert f.cache_info().misses == 1


def test_static_and_named_arguments_are_warmed_up():
    f = jit(lambda x, n, *, scale: x * n * scale, static_argnums=1)
    f.warm_up(ShapeDtypeStruct((3,), "float32"), 3, scale=2.0)
    np.testing.assert_array_equal(f(jnp.ones(3), 3, scale=4.0), [12, 12, 12])
    assert f.cache_info().misses == 1


def test_functions_of_references_are_warmed_up(compiled):
    total = xtrace.new_ref(jnp.zeros(3))

    @jit
    def accumulate(x):
        total[...] += x

    accumulate.warm_up(ShapeDtypeStruct((3,), "float32"))
    np.testing.assert_array_equal(total[...], 0)
    x = jnp.ones(3)
    compiled.clear()
    accumulate(x)
    assert not compiled
    np.testing.assert_array_equal(total[...], 1)


def test_signatures_are_warmed_up_at_the_same_time(compiled):
    f = jit(lambda x: step(x))
    f.warm_up_all([(ShapeDtypeStruct((n, 4), "float32"),) for n in (1, 2, 3, 2)])
    assert f.cache_info().misses == len(f.cache_info().entries) == 3
    compiled.clear()
    f(X)
    assert not compiled
    with pytest.raises(TypeError, match=r"dot_general|matmul|shapes"):
        jit(lambda x: x @ x).warm_up(ShapeDtypeStruct((2, 3), "float32"))


def test_nothing_is_quick_that_was_warmed_up(compiled, tasks):
    tiered(step).warm_up(X)
    assert not tasks and not any(map(is_quick, compiled))
    compiled.clear()
    jit(lambda x: step(x), compilation="quick").warm_up(X)
    assert list(map(is_quick, compiled)) == [True]


def test_programs_are_compiled_in_order():
    functions = [lambda x, n=n: x + n for n in range(5)]
    programs = xtrace.compile_all(xtrace.lower(f, 1.0) for f in functions)
    assert [float(p(1.0)) for p in programs] == [1, 2, 3, 4, 5]
    assert xtrace.compile_all([]) == []


def test_settings_hold_in_the_threads_that_compile(compiled):
    lowered = [xtrace.lower(lambda x, n=n: x * n, 1.0) for n in range(3)]
    with xtrace._src.core.settings.config.disable_most_optimizations(True):
        xtrace.compile_all(lowered)
    assert len(compiled) == 3 and all(map(is_quick, compiled))


def test_an_error_names_the_program():
    good = xtrace.lower(lambda x: x + 1, 1.0)
    bad = jit(lambda x: x - 1, compiler_options={"xla_no_such_option": True}).lower(1.0)
    with pytest.raises(Exception, match="xla_no_such_option") as caught:
        xtrace.compile_all([good, bad, good])
    assert any(re.search("compile_all: program 1, <lambda>", note) for note in caught.value.__notes__)
    with pytest.raises(TypeError, match=r"compile_all: program 1 is .*; give what jit\(f\).lower"):
        xtrace.compile_all([good, step])
    with pytest.raises(TypeError, match=r"compile_all: lowered is <Lowered <lambda>>; give a list of"):
        xtrace.compile_all(good)


@pytest.mark.parametrize(("signatures", "words"), [
    (3, "got 3"), (None, "got None"), (ShapeDtypeStruct((3,), "float32"), "got ShapeDtypeStruct"), ({"x": 1}, "got {"),
    ([ShapeDtypeStruct((3,), "float32")], "got signature 0 is Shape"), ([(1.0,), np.ones(2)], "got signature 1 is"),
    ("ab", "got 'ab'"), ([None], r"got \[None\]"),
])
def test_signatures_are_tuples(signatures, words):
    with pytest.raises(TypeError, match=rf"warm_up_all: signatures are tuples of positional arguments.*{words}"):
        jit(lambda x: x + 1).warm_up_all(signatures)
