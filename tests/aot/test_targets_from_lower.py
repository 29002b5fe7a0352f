"""Compiling for devices that are not here, through the public stages: ``lower(...).compile(target=...)``."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace.cli import demo
from xtrace.lax import linalg

_HERE = all(importlib.util.find_spec(name) for name in ("libtpu", "jax_plugins"))
needs_extra = pytest.mark.skipif(not _HERE, reason="the compilers of the extra `aot` are not installed")


@needs_extra
@pytest.mark.aot
@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu-v5e", "h200"])
def test_the_demo_step_compiles_for_a_device_that_is_not_here(target: str) -> None:
    compiled = xtrace.lower(demo.update, *demo.step_arguments()).compile(target=target)
    text = compiled.as_text()
    assert "HloModule" in text and "ENTRY" in text
    # Two layers: three products forward and back in each, of 64 x 64 x 128 and 64 x 128 x 10 elements.
    assert compiled.cost_analysis()["flops"] > 2 * 2 * 64 * 64 * 128
    assert compiled.memory_analysis().argument_size_in_bytes > 4 * 2 * (64 * 128 + 128 * 10)
    with pytest.raises(RuntimeError, match="cannot be called"):
        compiled(*demo.step_arguments())


@needs_extra
@pytest.mark.aot
@pytest.mark.slow
def test_calls_of_python_compile_for_gpus_and_tpus() -> None:
    def f(x):
        xtrace.debug.callback(lambda: None)

        def step(carry, y):
            xtrace.debug.print("{}", carry, ordered=True)
            return carry + xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((), np.float32), y), None

        return xtrace.lax.scan(step, x, np.arange(3, dtype=np.float32))[0]

    lowered = xtrace.lower(f, 1.0)
    assert "xla_ffi_python_gpu_callback" in lowered.compile(target="h200").as_text()
    text = lowered.compile(target="tpu-v5e").as_text()
    assert all(f"{name}(" in text for name in ("send", "send-done", "recv", "recv-done"))


OF_MATRICES = {
    "cholesky": lambda x: linalg.cholesky(x),
    "cholesky_update": lambda x: linalg.cholesky_update(x, x[0]),
    "eigh": lambda x: linalg.eigh(x),
    "hessenberg": lambda x: linalg.hessenberg(x),
    "lu": lambda x: linalg.lu(x),
    "ormqr": lambda x: linalg.ormqr(x, x[0], x),
    "qr": lambda x: linalg.qr(x),
    "qr in order": lambda x: linalg.qr(x, pivoting=True),
    "svd": lambda x: linalg.svd(x),
    "triangular_solve": lambda x: linalg.triangular_solve(x, x),
    "tridiagonal": lambda x: linalg.tridiagonal(x),
    "tridiagonal_solve": lambda x: linalg.tridiagonal_solve(x[0], x[0], x[0], x),
    "tridiagonal_solve, perturbed": lambda x: linalg.tridiagonal_solve(x[0], x[0], x[0], x, perturb_singular=True),
}


@needs_extra
@pytest.mark.aot
@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu-v5e", "h200"])
@pytest.mark.parametrize("name", OF_MATRICES)
def test_linear_algebra_compiles(name: str, target: str) -> None:
    compiled = xtrace.lower(OF_MATRICES[name], np.ones((4, 4), np.float32)).compile(target=target)
    assert "ENTRY" in compiled.as_text()


@needs_extra
@pytest.mark.aot
def test_eigenvalues_of_general_matrices_are_for_gpus_only() -> None:
    lowered = xtrace.lower(lambda x: linalg.eig(x), np.ones((4, 4), np.float32))
    assert "cuhybrid_eig_real" in lowered.compile(target="h200").as_text()
    with pytest.raises(NotImplementedError, match="eig is not implemented on the platform tpu"):
        lowered.compile(target="tpu-v5e")


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="the compiler of TPUs is not installed")
@pytest.mark.aot
def test_offloaded_values_are_in_the_memory_of_the_host() -> None:
    policy = xtrace.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    layers = xtrace.checkpoint(lambda x, w: jnp.sin(jnp.sin(x @ w) @ w), policy=policy)
    x = np.ones((128, 128), np.float32)
    text = xtrace.lower(xtrace.grad(lambda x, w: layers(x, w).sum()), x, x).compile(target="tpu-v5e").as_text()
    # XLA's number of the host's memory; the device's own has none.
    assert re.search(r"f32\[128,128\]\{[^}]*S\(5\)\}", text)


@pytest.mark.skipif(_HERE, reason="the extra `aot` is installed")
def test_without_the_extra_the_error_names_the_command() -> None:
    lowered = xtrace.lower(lambda x: jnp.sin(x), np.ones(3, np.float32))
    for target in ("h200", "tpu-v5e"):
        with pytest.raises(ImportError, match=r"pip install 'xtrace\[aot\]'"):
            lowered.compile(target=target)


def test_an_unknown_target() -> None:
    with pytest.raises(ValueError, match=r"nonesuch.*h200.*tpu-v5e"):
        xtrace.lower(lambda x: x + 1, 1.0).compile(target="nonesuch")
