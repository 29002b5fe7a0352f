"""Caches: once per entry under threads, bounded, weak, and whole after errors and interruptions."""

import functools
import gc
import random
import signal
import sys
import threading
import time
import weakref
from contextvars import ContextVar

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import jit
from xtrace._src.api.function_caches import OnceTable, find_table
from xtrace._src.api.jit import dispatch
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.execute import Program
from xtrace._src.transforms.scopes import current_scopes


@pytest.fixture
def quick_switches():
    """Threads that take turns often."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def together(*functions):
    """Run the functions in threads that start at once, and return what they return or raise."""
    barrier, results = threading.Barrier(len(functions)), [None] * len(functions)

    def run(i, function):
        barrier.wait()
        try:
            results[i] = function()
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a thread waits for ever"
    return results


# The table


def test_an_entry_is_made_once():
    table, made = OnceTable(), []
    assert [table.get_or_make("key", lambda: made.append(1) or "value") for _ in range(3)] == ["value"] * 3
    assert len(made) == 1
    table.clear()
    table.get_or_make("key", lambda: made.append(1) or "value")
    assert len(made) == 2


def test_values_that_are_false_are_entries():
    table, made = OnceTable(), []
    for _ in range(3):
        assert table.get_or_make("key", lambda: made.append(1) or 0) == 0
    assert len(made) == 1


def test_an_entry_is_made_by_one_of_many_threads():
    table, made = OnceTable(), []

    def make():
        time.sleep(0.05)
        made.append(1)
        return object()

    results = together(*[lambda: table.get_or_make("key", make)] * 8)
    assert len(made) == 1 and len(set(results)) == 1


def test_when_making_fails_the_next_thread_makes():
    table, made = OnceTable(), []

    def make():
        time.sleep(0.01)
        made.append(1)
        if len(made) < 4:
            raise LookupError
        return "value"

    results = together(*[lambda: table.get_or_make("key", make)] * 8)
    assert [type(r) for r in results].count(LookupError) == 3 and results.count("value") == 5
    assert table.entries == {"key": "value"} and not table._in_progress


def test_different_entries_are_made_at_the_same_time():
    table, meeting = OnceTable(), threading.Barrier(2)
    results = together(*[functools.partial(table.get_or_make, i, lambda: meeting.wait(10) or "met") for i in range(2)])
    assert len(results) == 2 and not any(isinstance(r, BaseException) for r in results)


def test_a_thread_that_needs_what_it_is_making_does_not_wait_for_itself():
    table = OnceTable()
    assert table.get_or_make("key", lambda: table.get_or_make("key", lambda: "inner") and "outer") == "outer"
    assert not table._in_progress


def test_keys_may_use_the_table_in_their_comparison():
    table = OnceTable()

    class Key:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            table.get_or_make("other", lambda: 1)
            return self is other

    one, other = Key(), Key()
    assert [table.get_or_make(k, lambda: "value") for k in (one, other, one)] == ["value"] * 3


def test_the_oldest_entries_go():
    table = OnceTable(limit=3)
    for i in range(10):
        table.get_or_make(i, lambda i=i: str(i))
    assert list(table.entries) == [7, 8, 9]


# Whose caches they are


def test_caches_go_with_their_function():
    def make():
        big = jnp.asarray(np.arange(1000, dtype=np.float32))

        def f(x, flag=True):
            return {"sum": (x + big).sum(), "x": [x]}

        return f, weakref.ref(big)

    f, big = make()
    jitted = jit(f, static_argnames="flag")
    for x in (1.0, np.ones(1000, np.float32), jnp.ones(1000)):
        for _ in range(6):
            jitted(x)
            jitted(x, flag=False)
    with pytest.raises(TypeError):
        jitted("text")
    str(xtrace.make_jaxpr(jit(f, inline=True))(1.0))
    lowered = jitted.lower(1.0)
    references = [weakref.ref(f), weakref.ref(jitted), weakref.ref(jitted._xtrace_jitted.cache), big]
    del f, jitted, lowered
    gc.collect()
    assert [r() for r in references] == [None] * 4


def test_caches_go_at_once_without_the_collector():
    def f(x):
        return x + 1

    jitted = jit(f)
    for _ in range(6):
        jitted(1.0)
        jitted(jnp.ones(2))
    references = [weakref.ref(f), weakref.ref(jitted._xtrace_jitted.cache)]
    gc.collect()
    gc.disable()
    try:
        del f, jitted
        assert [r() for r in references] == [None] * 2
    finally:
        gc.enable()


def test_caches_of_a_bound_method_go_with_the_object():
    class Model:
        def __init__(self):
            self.weights = jnp.ones(1000)

        def apply(self, x):
            return (self.weights * x).sum()

    model = Model()
    for _ in range(6):
        jit(model.apply)(2.0)
    weights, reference = weakref.ref(model.weights), weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None and weights() is None


def test_results_do_not_keep_what_made_them():
    def make():
        weights = jnp.ones(1000)
        f, results = jit(lambda x, y: weights[:3] * x + y), []
        for step in range(8):
            results += [f(2.0, jnp.ones(3)), f(float(step), np.ones(3))]
        return results, weakref.ref(weights)

    results, reference = make()
    gc.collect()
    assert reference() is None and len(results) == 16


def test_caches_of_a_callable_object_and_of_a_partial_go_with_them():
    class Scale:
        def __call__(self, x):
            return x * 2

    for make in (Scale, lambda: functools.partial(lambda x, y: x + y, 1.0), lambda: lambda x: x):
        owner = make()
        jitted = jit(owner)
        for _ in range(6):
            jitted(2.0)
        reference = weakref.ref(owner)
        del owner, jitted
        gc.collect()
        assert reference() is None


def test_objects_without_weak_references_work_without_a_lasting_cache():
    class Slotted:
        __slots__ = ()

        def __call__(self, x):
            return x * 2

        def apply(self, x):
            return x * 3

    slotted = Slotted()
    f, g = jit(slotted), jit(slotted.apply)
    for _ in range(6):
        assert (float(f(1.0)), float(g(1.0))) == (2, 3)
    assert f._cache_size() == g._cache_size() == 1
    with pytest.raises(TypeError, match="argument x of Slotted"):
        f("text")


def test_an_object_that_is_equal_to_another_has_a_cache_of_its_own():
    class Equal:
        def __init__(self, by):
            self.by = by

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

        def apply(self, x):
            return x * self.by

    one, other = Equal(2.0), Equal(3.0)
    for _ in range(6):
        assert (float(jit(one.apply)(1.0)), float(jit(other.apply)(1.0))) == (2, 3)


def test_an_unhashable_object_may_own_a_cache():
    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x + 1

        def apply(self, x):
            return x + 2

    one = Unhashable()
    for _ in range(6):
        assert (float(jit(one)(1.0)), float(jit(one.apply)(1.0))) == (2, 3)
    assert find_table(one.apply) is find_table(one.apply)


def test_two_wrappers_of_one_function_share_what_was_compiled():
    traces = []

    def f(x):
        traces.append(1)
        return x + 1

    one, other = jit(f), jit(f)
    for _ in range(8):
        assert float(one(1.0)) == float(other(1.0)) == 2
    assert len(traces) == 1
    one.clear_cache()
    assert float(other(1.0)) == 2 and len(traces) == 2


def test_clear_caches():
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return x + 1

    class Model:
        @functools.partial(jit, static_argnums=0)
        def apply(self, x):
            traces.append(2)
            return x

        def plain(self, x):
            traces.append(3)
            return x

    model = Model()
    for _ in range(2):
        for _ in range(6):
            f(1.0), model.apply(1.0), jit(model.plain)(1.0)
        xtrace.clear_caches()
        assert f._cache_size() == 0
    assert sorted(traces) == [1, 1, 2, 2, 3, 3]


def test_clearing_frees_what_was_compiled():
    big = jnp.asarray(np.arange(1000, dtype=np.float32))
    f = jit(lambda x: x + big)
    for _ in range(6):
        f(1.0)
        f(jnp.ones(1000))

    def living():
        return [p for p in gc.get_objects() if type(p) is Program and any(b is big.buffer for b in p.hidden)]

    assert len(living()) == 2
    f.clear_cache()
    gc.collect()
    assert living() == []
    assert float(f(1.0)[1]) == 2


def test_specialised_code_is_bounded(monkeypatch):
    monkeypatch.setattr(dispatch, "_MAX_SIGNATURES", 4)
    f = jit(lambda x: x * 2)
    for size in range(1, 20):
        for _ in range(6):
            assert f(np.ones(size, np.float32)).shape == (size,)
            assert f(jnp.ones(size)).shape == (size,)
        assert len(f._xtrace_jitted.cache.call_shapes) <= 4


# Threads


def test_two_threads_and_one_signature_make_one_trace():
    traces = []

    @jit
    def f(x):
        traces.append(threading.get_ident())
        time.sleep(0.05)
        return x + 1

    results = together(*[lambda: float(f(1.0))] * 6)
    assert results == [2.0] * 6 and len(traces) == 1


def test_threads_trace_independently():
    @jit
    def inner(x, n):
        time.sleep(0.001)
        return x * n

    def work(n):
        f = jit(lambda x: inner(x, float(n)) + inner(x + n, 1.0))
        return [float(f(float(k))) for k in range(8)]

    results = together(*[functools.partial(work, n) for n in range(6)])
    assert results == [[k * n + k + n for k in range(8)] for n in range(6)]


def test_settings_of_one_thread_do_not_reach_another():
    f = jit(lambda x: x + 1)

    def work(x64):
        dtypes = set()
        for _ in range(30):
            with xtrace.enable_x64(x64):
                dtypes.add(f(np.float64(1)).dtype.name)
        return dtypes

    assert together(*[functools.partial(work, i % 2 == 1) for i in range(4)]) == [{"float32"}, {"float64"}] * 2


def test_calling_while_another_thread_clears(quick_switches):
    f = jit(lambda a, k=1.0: (a * 2 + k, {"a": a}))
    arrays = [jnp.ones(i + 1) for i in range(5)]
    end = time.monotonic() + 2

    def call(seed):
        choose = random.Random(seed)
        while time.monotonic() < end:
            a, k = choose.choice(arrays), choose.choice([2.0, 3])
            result, tree = f(a, k)
            assert result.shape == tree["a"].shape == a.shape
            assert np.asarray(result)[-1] == 2 + k

    def clear():
        while time.monotonic() < end:
            f.clear_cache()
            time.sleep(0.001)

    assert together(*[functools.partial(call, i) for i in range(3)], clear) == [None] * 4


def test_jitting_in_many_threads(quick_switches):
    def f(x):
        return x + 1

    def work():
        return [float(jit(f)(float(i))) for i in range(50)]

    assert together(*[work] * 4) == [[i + 1.0 for i in range(50)]] * 4


def test_weak_tables_under_threads(quick_switches):
    def work():
        for i in range(300):
            function = lambda x: x  # noqa: E731
            find_table(function)["key"] = i
            assert find_table(function)["key"] == i
        return "done"

    assert together(*[work] * 4) == ["done"] * 4


# Interruptions


# Python prints an interrupt that falls into a finaliser or a callback of the collector (jax has one), and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no timers")
def test_ctrl_c_anywhere_leaves_everything_whole():
    """Interrupt at times spread over tracing, lowering, compiling, specialising and calling."""
    choose = random.Random(0)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted, x = 0, jnp.asarray(np.arange(3, dtype=np.float32))
    for offset in (0.5, 1.5):  # the first is slow for other reasons
        start = time.perf_counter()
        jit(lambda a, b, by=offset: (a * b + by, {"d": a - b}))(x, 2.0)
        span = time.perf_counter() - start
    try:
        for i in range(60):
            f = jit(lambda a, b, i=i: (a * b + i, {"d": a - b}))
            try:
                signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-5, span * 1.2))
                for _ in range(8):
                    f(x, 2.0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert current_trace.get() is base_trace and gc.isenabled()
            for _ in range(8):
                product, rest = f(x, 2.0)
            np.testing.assert_array_equal(product, np.arange(3) * 2 + i)
            np.testing.assert_array_equal(rest["d"], np.arange(3) - 2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 10


@pytest.mark.parametrize("make", [lambda: "first", lambda: 1 / 0], ids=["made", "given up"])
def test_ctrl_c_while_an_entry_is_made_or_given_up_lets_other_threads_make_it(make):
    class Key:
        """A key whose `count`-th hashing is interrupted."""

        def __init__(self, count):
            self.count = count

        def __hash__(self):
            self.count -= 1
            if self.count == 0:
                raise KeyboardInterrupt
            return 1

        def __eq__(self, other):
            return isinstance(other, Key)

    def run(count):
        table, made = OnceTable(), []
        try:
            table.get_or_make(Key(count), make)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        except ZeroDivisionError:
            interrupted = False
        other = threading.Thread(target=lambda: made.append(table.get_or_make(Key(0), lambda: "second")), daemon=True)
        other.start()
        other.join(30)
        assert made == ["first" if "first" in table.entries.values() else "second"]
        return interrupted

    count = 1
    while run(count):
        count += 1
    assert count > 6  # looked up twice, found missing, announced, (stored,) found, and no longer announced


def interrupt_after(count, function):
    """Run `function` until the call of that number of gc or of a ContextVar returns, which raises; whether it did."""
    calls = 0

    def profile(frame, event, argument):
        nonlocal calls
        if event == "c_return" and (argument.__self__ is gc or isinstance(argument.__self__, ContextVar)):
            calls += 1
            if calls == count:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


def test_ctrl_c_after_a_call_that_changes_the_state_undoes_it():
    """An interrupt comes after the call of a function in C, before its result is stored."""
    x, scopes = np.arange(3, dtype=np.float32), current_scopes()

    def run(count):
        @jit
        @xtrace.vmap
        @xtrace.grad
        def f(a):
            with xtrace.named_scope("inner"):
                return jnp.sin(a) * count

        f.lower(x).as_text()

    count = 1
    while interrupt_after(count, lambda: run(count)):  # noqa: B023
        state = current_trace.get(), current_scopes(), gc.isenabled()
        current_trace.set(base_trace)
        assert state == (base_trace, scopes, True), f"call {count}"
        count += 1
    assert count > 30


def test_ctrl_c_in_one_thread_while_another_waits():
    started, go_on, traces = threading.Event(), threading.Event(), []

    @jit
    def f(x):
        traces.append(1)
        if len(traces) == 1:
            started.set()
            go_on.wait(10)
            raise KeyboardInterrupt
        return x + 1

    def second():
        started.wait(10)
        threading.Timer(0.05, go_on.set).start()
        return float(f(1.0))

    first, other = together(lambda: f(1.0), second)
    assert isinstance(first, KeyboardInterrupt) and other == 2.0


def test_clear_caches_forgets_traces_of_checkpoint():
    traces = []

    @xtrace.checkpoint
    def f(x):
        traces.append(x)
        return xtrace.numpy.sin(x)

    for count in (1, 1):
        f(1.0)
        assert len(traces) == count
    xtrace.clear_caches()
    f(1.0)
    assert len(traces) == 2
