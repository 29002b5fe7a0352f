"""NumPy arguments of specialised calls, which are copied into memory that is used again: no call sees another's."""

import threading

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.api.test_dispatch import CALLS
from xtrace import lax
from xtrace._src.core.avals import ShapedArray
from xtrace._src.runtime import staging_memory

FLOAT32 = np.dtype(np.float32)


def stacks_of(jitted):
    """The stacks of staging memory in the code of a jitted function."""
    shapes = jitted._xtrace_jitted.cache.call_shapes._call_shapes.values()
    rows = [row for shape in shapes for row in shape.table.values()]
    return [part for row in rows for part in row if type(part) is list and part and type(part[0]) is tuple]


def warmed(function, *args, **options):
    jitted = xtrace.jit(function, **options)
    for _ in range(CALLS):
        jitted(*args)
    return jitted


FUNCTIONS = {
    "identity": lambda x: x,
    "itself twice": lambda x: (x, x),
    "sum": lambda x: x + 1,
    "reshape": lambda x: x.reshape(2, 4),
    "view of the bits": lambda x: lax.bitcast_convert_type(x, jnp.int32),
    "slice": lambda x: x[2:],
    "loop": lambda x: lax.fori_loop(0, 50, lambda i, y: y + x, x),
    "sort": jnp.sort,
    "product": lambda x: jnp.outer(x, x) @ jnp.outer(x, x),
    "without effect": lambda x: lax.optimization_barrier(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_stay_when_the_memory_is_used_again(name):
    function = FUNCTIONS[name]
    x = np.zeros(8, np.float32)
    jitted = warmed(function, x)
    # The runtime computes products of matrices in another thread, so their results may be late.
    assert stacks_of(jitted) or name == "product"
    inputs = [np.arange(8, dtype=np.float32) + i for i in range(20)]
    results = [jitted(x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        expected = xtrace.jit(function)(x)
        for got, wanted in zip(xtrace.tree.leaves(result), xtrace.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_results_that_are_not_ready_keep_their_memory():
    """A call with results that take long returns before they are there; the next call may not write its argument."""
    x = np.ones((100, 100), np.float32)

    def slow(x):
        return lax.fori_loop(0, 30, lambda i, y: (y @ x) / 100, x)

    jitted = warmed(slow, x)
    inputs = [x * (1 + i / 100) for i in range(12)]
    results = [jitted(x) for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(result, xtrace.jit(slow)(jnp.asarray(x)))


def test_threads_do_not_share_memory():
    jitted = warmed(lambda x, y: (x * 2, y, x + y), np.zeros(64, np.float32), np.zeros(64))
    failures = []

    def call(number):
        x, y = np.full(64, number, np.float32), np.full(64, -2.0 * number)
        for _ in range(300):
            doubled, same, total = jitted(x, y)
            if not ((np.asarray(doubled) == 2 * x).all() and (np.asarray(same) == y).all()
                    and (np.asarray(total) == -x).all()):
                failures.append(number)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(stacks_of(jitted)[0]) <= 1


def test_a_callback_that_calls_the_function_again():
    inner = []

    @xtrace.jit
    def function(x):
        return xtrace.pure_callback(call_again, xtrace.ShapeDtypeStruct((3,), np.float32), x) + x

    def call_again(x):
        if x[0] > 0:
            inner.append(np.asarray(function(np.asarray(x) - 1)))
        return np.asarray(x)

    for _ in range(CALLS):
        function(np.zeros(3, np.float32))
    assert np.asarray(function(np.full(3, 2, np.float32))).tolist() == [4, 4, 4]
    assert [x.tolist() for x in inner] == [[0, 0, 0], [2, 2, 2]]


def test_donated_arguments_have_no_staging_memory():
    jitted = warmed(lambda x: x + 1, np.zeros(4, np.float32), donate_argnums=0)
    assert not stacks_of(jitted)
    assert np.asarray(jitted(np.full(4, 2, np.float32))).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.array([1e300, -1e300, np.nan, 0.1]), np.array([np.inf, -np.inf, np.nan, 0.1], np.float32)),
        (np.array([1e300j, 1 + 1e-300j]), np.array([np.inf * 1j, 1], np.complex64)),
        (np.array([2**40 + 3, -1]), np.array([3, -1], np.int32)),
        (np.array([2**63, 5], np.uint64), np.array([0, 5], np.uint32)),
        (np.array([True, False]), np.array([True, False])),
        (np.arange(6.0).reshape(2, 3).T, np.arange(6, dtype=np.float32).reshape(2, 3).T),
        (np.arange(12, dtype=np.int8)[::-3], np.arange(12, dtype=np.int8)[::-3]),
        (np.array(7.5), np.array(7.5, np.float32)),
        (np.float64(1e300), np.array(np.inf, np.float32)),
        (np.int16(-3), np.array(-3, np.int16)),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_values_are_converted_as_in_the_first_call(value, wanted):
    jitted = xtrace.jit(lambda x: x)
    first = jitted(value)
    for _ in range(CALLS):
        jitted(value)
    assert stacks_of(jitted)
    result = jitted(value)
    assert result.dtype == first.dtype == wanted.dtype and result.weak_type == first.weak_type
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(result), np.asarray(first))
    if wanted.dtype.kind != "c":
        np.testing.assert_array_equal(np.asarray(result), wanted)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4"])
def test_dtypes_that_numpy_lacks_have_no_staging_memory(dtype):
    value = np.arange(4).astype(jnp.dtype(dtype))
    jitted = warmed(lambda x: x, value)
    assert not stacks_of(jitted)
    np.testing.assert_array_equal(np.asarray(jitted(value)).astype(np.float32), value.astype(np.float32))


def test_memory_for_large_arguments_is_not_kept():
    device = xtrace.devices()[0]
    small = ShapedArray((staging_memory.MOST_BYTES // 8,), FLOAT32)
    large = ShapedArray((staging_memory.MOST_BYTES,), FLOAT32)
    assert staging_memory.can_stage(small, device) and not staging_memory.can_stage(large, device)
    assert not staging_memory.can_stage(ShapedArray((0,), FLOAT32), device)
    assert len(staging_memory.allocate([small, small], device)) == 1
    assert staging_memory.allocate([small, small, small], device) == []


def test_buffers_share_the_staging_memory():
    ((array, buffer),) = staging_memory.allocate([ShapedArray((5,), FLOAT32)], xtrace.devices()[0])
    array[...] = [1, 2, 3, 4, 5]
    assert np.asarray(buffer).tolist() == [1, 2, 3, 4, 5]


def test_a_program_without_results_has_no_staging_memory():
    seen = []
    jitted = warmed(lambda x: xtrace.debug.callback(lambda y: seen.append(float(y)), x), np.float32(1))
    assert not stacks_of(jitted)
    jitted(np.float32(5))
    xtrace.effects_barrier()
    assert seen[-1] == 5


def test_guards_see_the_transfers():
    jitted, x = warmed(lambda x: x + 1, np.ones(4, np.float32)), np.zeros(4, np.float32)
    with xtrace.transfer_guard_host_to_device("disallow"):
        with pytest.raises(RuntimeError, match="isallowed host-to-device transfer"):
            jitted(x)
        with xtrace.transfer_guard("allow"):
            assert np.asarray(jitted(x)).tolist() == [1, 1, 1, 1]
    assert not staging_memory.guarded_threads
    for _ in range(CALLS):
        jitted(x)
    assert stacks_of(jitted)
