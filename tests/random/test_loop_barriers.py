"""Two ciphers in a loop that fits into one vector register compile, on every release of jaxlib."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import xtrace
from xtrace import random
from xtrace._src.stablehlo import loop_barriers

ROOT = Path(__file__).parents[2]
BARRIER = "stablehlo.optimization_barrier"

# Each is a function of the key and of P, xtrace or jax. XLA takes forever for most of them without barriers.
PROGRAMS = [
    *(f"P.vmap(P.random.uniform)(P.random.split(key, {n}))" for n in (2, 3, 4, 5, 8, 13, 16, 17)),
    "P.vmap(P.random.normal)(P.random.split(key, 4))",
    "P.vmap(P.vmap(P.random.uniform))(P.random.split(key, (4, 1)))",
    "P.vmap(lambda i: P.random.normal(P.random.fold_in(key, i)))(P.numpy.arange(8))",
    "P.vmap(lambda k: P.random.uniform(k, (), 'float16'))(P.random.split(key, 16))",
    "P.vmap(P.jit(lambda k: P.random.uniform(k)))(P.random.split(key, 8))",
    "P.vmap((lambda f: lambda k: P.random.uniform(f(f(k))))(P.jit(lambda k: P.random.fold_in(k, 1))))(key + "
    "P.numpy.arange(4, dtype='uint32')[:, None])",
    "P.lax.scan(lambda k, _: (k, P.vmap(P.random.uniform)(P.random.split(k, 4))), key, None, 3)[1]",
    "P.lax.scan(lambda k, _: (k, P.vmap(P.random.uniform)(P.random.split(k, 8)).sum() + P.numpy.ones(100)), key, "
    "None, 3)[1]",
    "P.shard_map(lambda k: P.vmap(P.random.uniform)(P.random.split(k, 8)), mesh=P.make_mesh((2,), ('i',)), "
    "in_specs=P.P(), out_specs=P.P('i'), check_vma=False)(key)",
]
WRITE = """
import sys
import numpy as np
import xtrace as P
key = np.array([1, 2], np.uint32)
values = [P.jit(eval("lambda key: " + text, {"P": P}))(key) for text in sys.argv[2:]]
np.savez(sys.argv[1], *values)
"""


def test_programs_compile_in_finite_time(tmp_path):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    file = str(tmp_path / "values.npz")
    subprocess.run([sys.executable, "-c", WRITE, file, *PROGRAMS], cwd=ROOT, env=environment, check=True, timeout=300)
    key = np.array([1, 2], np.uint32)
    with np.load(file) as values:
        for text, value in zip(PROGRAMS, values.values(), strict=True):
            expected = jax.jit(eval("lambda key: " + text, {"P": jax}))(key)
            np.testing.assert_allclose(value, expected, rtol=4 * np.finfo(value.dtype).eps, err_msg=text)


@pytest.fixture
def release(monkeypatch):
    monkeypatch.setattr(loop_barriers.versions, "VECTORIZES_IN_EXPONENTIAL_TIME", True)


def count_barriers(function, *arguments):
    return xtrace.lower(function, *arguments).as_text().count(BARRIER)


@pytest.mark.parametrize(("count", "barriers"), [(1, 0), (2, 0), (3, 1), (8, 1), (16, 1), (17, 0), (64, 0)])
def test_a_barrier_is_where_a_loop_may_fit_into_one_vector(release, count, barriers):
    def draw(key):
        return xtrace.vmap(random.uniform)(random.split(key, count))

    # The two ciphers are for a key and for several keys.
    assert count_barriers(draw, random.PRNGKey(0)) == 2 * barriers


def test_a_part_of_an_array_may_fit_into_one_vector(release):
    mesh = xtrace.make_mesh((4,), ("i",))
    key = xtrace.device_put(random.PRNGKey(0), xtrace.NamedSharding(mesh, xtrace.P()))
    for count, barriers in ((64, 2), (80, 0)):
        assert count_barriers(lambda key, n=count: xtrace.vmap(random.uniform)(random.split(key, n)), key) == barriers


def test_programs_without_such_loops_have_no_barrier(release):
    key = random.PRNGKey(0)
    assert not count_barriers(lambda key: random.normal(key, (8,)), key)
    assert not count_barriers(lambda key: random.normal(random.split(key)[0], (100,)), key)
    lowered = xtrace.jit(lambda k: random.normal(random.split(k)[0], (8,))).trace(key).lower(
        lowering_platforms=("cuda",)
    )
    assert BARRIER not in lowered.as_text()


def test_exported_programs_have_barriers_on_every_release(monkeypatch):
    monkeypatch.setattr(loop_barriers.versions, "VECTORIZES_IN_EXPONENTIAL_TIME", False)
    (size,) = xtrace.export.symbolic_shape("n")
    for count in (8, size):
        argument = xtrace.ShapeDtypeStruct((count,), np.float32)
        function = xtrace.jit(lambda x: xtrace.vmap(random.uniform)(random.split(random.PRNGKey(0), x.shape[0])))
        assert BARRIER in xtrace.export.export(function)(argument).mlir_module()
        assert BARRIER not in xtrace.lower(function, np.zeros(8, np.float32)).as_text()


@pytest.mark.parametrize("calls", [2, 3])
def test_functions_of_users_may_have_the_name_of_the_cipher(release, calls):
    seen = []

    @xtrace.jit
    def threefry2x32():
        xtrace.debug.callback(lambda: seen.append(1), ordered=True)

    @xtrace.jit
    def call(x):
        for _ in range(calls):
            threefry2x32()
        return x

    assert call(1) == 1
    xtrace.effects_barrier()
    assert len(seen) == calls
