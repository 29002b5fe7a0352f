"""Threads that call one function, with good input and with bad: no error disturbs another call, or stays behind."""

import threading
import time

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.core.trace import base_trace, current_trace

THREADS = 6


def together(work):
    """Run ``work(i)`` in several threads that start at once; return their results, or the errors, in order."""
    barrier, found = threading.Barrier(THREADS), [None] * THREADS

    def run(i):
        barrier.wait()
        try:
            found[i] = work(i)
        except Exception as error:
            found[i] = error
        # Whatever happened, the thread is outside of any trace again.
        if current_trace.get() is not base_trace:
            found[i] = AssertionError("a trace was left in force")

    workers = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


GOOD, BAD = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)


def product(x):
    """A function that accepts matrices of three columns only; it gives other threads time to come in between."""
    y = x @ jnp.ones((3, 2))
    time.sleep(0.005)
    return jnp.sin(y) + 1


TRANSFORMS = {
    "jit": xtrace.jit,
    "vmap": lambda f: xtrace.jit(xtrace.vmap(f)),
    "grad": lambda f: xtrace.jit(xtrace.grad(lambda x: f(x).sum())),
    "checkpoint": xtrace.checkpoint,
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_good_and_bad_calls_at_once(transform):
    function = transform(product)
    expected = None
    for _ in range(3):
        for i, found in enumerate(together(lambda i: np.asarray(function(BAD if i % 2 else GOOD)))):
            if i % 2:
                assert isinstance(found, TypeError) and "3" in str(found) and "4" in str(found), found
            else:
                assert isinstance(found, np.ndarray), found
                expected = found if expected is None else expected
                np.testing.assert_array_equal(found, expected)


def test_only_what_was_traced_to_the_end_is_kept():
    traces = []

    @xtrace.jit
    def function(x):
        traces.append(x.shape)
        return product(x)

    found = together(lambda i: function(BAD if i % 2 else GOOD))
    assert [isinstance(x, Exception) for x in found] == [bool(i % 2) for i in range(THREADS)]
    # The good signature was traced once, for all threads; the bad one each time, and nothing is known of it.
    assert traces.count(GOOD.shape) == 1 and traces.count(BAD.shape) == THREADS // 2
    assert function._cache_size() == 1
    with pytest.raises(TypeError):
        function(BAD)
    assert function._cache_size() == 1 and traces.count(GOOD.shape) == 1
    assert function(GOOD).shape == (2, 2)


def test_threads_trace_different_signatures_at_once():
    function = xtrace.jit(lambda x: product(x) * x.shape[0])
    found = together(lambda i: float(function(np.ones((i + 1, 3), np.float32))[0, 0]))
    assert found == pytest.approx([(np.sin(3.0) + 1) * (i + 1) for i in range(THREADS)], rel=1e-6)
    assert function._cache_size() == THREADS


def test_a_tracer_of_another_thread_is_refused():
    leaked, taken, given = [], threading.Event(), threading.Event()

    def function(x):
        leaked.append(x)
        given.set()
        taken.wait(10)
        return x + 1

    worker = threading.Thread(target=lambda: leaked.append(xtrace.jit(function)(np.float32(1))))
    worker.start()
    assert given.wait(10)
    with pytest.raises(xtrace.errors.UnexpectedTracerError):
        xtrace.jit(lambda y: leaked[0] + y)(np.float32(2))
    taken.set()
    worker.join()
    # What the other thread did leaves the trace as it was.
    assert leaked[1] == 2


def test_eager_operations_and_settings_do_not_mix():
    def work(i):
        with xtrace.enable_x64(bool(i % 2)):
            for _ in range(5):
                assert (jnp.arange(3.0) * 2).dtype == (np.float64 if i % 2 else np.float32)
            with pytest.raises(TypeError):
                jnp.add("a", 1)
        return jnp.ones(2).dtype

    assert together(work) == [np.float32] * THREADS
