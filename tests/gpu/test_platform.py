"""The parts of xtrace that each platform carries out in its own way, on the first device of any platform."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import export
from xtrace.experimental import io_callback

SCALAR = xtrace.ShapeDtypeStruct((), np.float32)
RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((5, 5)).astype(np.float32)
SYMMETRIC = SQUARE @ SQUARE.T + 5 * np.eye(5, dtype=np.float32)
# Each factor of a backward stable factorisation of a 5 x 5 matrix is off by a few n eps of its norm.
BOUND = 20 * 5 * np.finfo(np.float32).eps

RECOVERED = {
    "cholesky": lambda a: (lambda c: c @ c.T)(jnp.linalg.cholesky(a)),
    "eig": lambda a: (lambda w, v: (v * w) @ jnp.linalg.inv(v))(*jnp.linalg.eig(a)).real,
    "eigh": lambda a: (lambda w, v: (v * w) @ v.T)(*jnp.linalg.eigh(a)),
    "lu": lambda a: (lambda p, lower, upper: p @ lower @ upper)(*xtrace.scipy.linalg.lu(a)),
    "qr": lambda a: (lambda q, r: q @ r)(*jnp.linalg.qr(a)),
    "solve": lambda a: a @ jnp.linalg.solve(a, a),
    "svd": lambda a: (lambda u, s, v: (u * s) @ v)(*jnp.linalg.svd(a)),
}


@pytest.mark.parametrize("name", RECOVERED)
def test_factorisations_recover_the_matrix(name):
    with xtrace.default_matmul_precision("float32"):
        recovered = xtrace.jit(RECOVERED[name])(SYMMETRIC)
    norm = np.linalg.norm(SYMMETRIC, 2)
    np.testing.assert_allclose(np.asarray(recovered), SYMMETRIC, rtol=0, atol=BOUND * norm * np.linalg.cond(SYMMETRIC))


LOADER = """
import pickle, sys
import numpy as np
compiled = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(np.asarray(compiled(pickle.load(sys.stdin.buffer)))))
"""


@pytest.mark.parametrize("name", ["cholesky", "eigh", "qr", "svd"])
def test_compiled_programs_are_loaded_by_another_process(name):
    """Its first program has the platform's linear algebra, whose routines nothing has made known yet."""
    compiled = xtrace.jit(RECOVERED[name]).lower(SYMMETRIC).compile()
    saved = pickle.dumps(compiled)
    np.testing.assert_array_equal(pickle.loads(saved)(SYMMETRIC), compiled(SYMMETRIC))
    read = subprocess.run(
        [sys.executable, "-c", LOADER], input=saved + pickle.dumps(SYMMETRIC), capture_output=True, check=False
    )
    assert read.returncode == 0, read.stderr.decode()
    np.testing.assert_array_equal(pickle.loads(read.stdout), compiled(SYMMETRIC))


def test_programs_call_python():
    """A callback gets the device's values, keeps its order, and its result goes on."""
    seen = []

    def note(x):
        seen.append(float(x))
        return np.float32(2 * x)

    def program(x):
        y = xtrace.pure_callback(lambda v: np.sin(v), x, x)
        for k in range(3):
            y = y + io_callback(note, SCALAR, x[k], ordered=True)
        return y

    x = np.arange(3, dtype=np.float32)
    result = xtrace.jit(program)(x)
    xtrace.effects_barrier()
    np.testing.assert_allclose(result, np.sin(x) + 6, rtol=4 * np.finfo(np.float32).eps)
    assert seen == [0.0, 1.0, 2.0]


def test_errors_of_callbacks_arrive():
    def refuse(x):
        raise ValueError("not this value")

    call = xtrace.jit(lambda x: xtrace.pure_callback(refuse, SCALAR, x))
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="not this value"):
        call(1.0).block_until_ready()


def test_memory_is_shared_through_dlpack():
    x = jnp.arange(64, dtype=jnp.float32)
    shared = xtrace.dlpack.from_dlpack(x)
    assert shared.devices() == x.devices() == {xtrace.devices()[0]}
    assert shared.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    copied = xtrace.dlpack.from_dlpack(x, copy=True)
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(copied, np.arange(64))


def test_memory_is_shared_with_torch():
    torch = pytest.importorskip("torch")
    place = "cuda" if xtrace.default_backend() == "gpu" else "cpu"
    theirs = torch.arange(64, dtype=torch.float32, device=place) * 2
    ours = xtrace.dlpack.from_dlpack(theirs)
    assert ours.devices() == {xtrace.devices()[0]} and ours.unsafe_buffer_pointer() == theirs.data_ptr()
    np.testing.assert_array_equal(ours, 2 * np.arange(64))
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr() and back.device == theirs.device


def test_arrays_move_to_the_memory_of_the_host():
    x = jnp.arange(8.0)
    on_host = xtrace.device_put(x, xtrace.memory.Space.Host)
    assert on_host.sharding.memory_kind in ("pinned_host", "unpinned_host")
    np.testing.assert_array_equal(xtrace.device_put(on_host, xtrace.memory.Space.Device) + 1, np.arange(8) + 1)


def test_programs_are_exported_and_called():
    exported = export.export(xtrace.jit(lambda x: jnp.linalg.solve(x, jnp.ones(5))))(SYMMETRIC)
    restored = export.deserialize(exported.serialize())
    result = restored.call(SYMMETRIC)
    bound = BOUND * np.linalg.cond(SYMMETRIC)
    np.testing.assert_allclose(SYMMETRIC @ np.asarray(result), np.ones(5), rtol=0, atol=bound)
