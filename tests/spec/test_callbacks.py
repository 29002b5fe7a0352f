"""Section 7 of the specification: looking inside a compiled function, and calling Python from it."""

import numpy as np

import xtrace as jax
import xtrace.numpy as jnp
from xtrace.experimental import io_callback


def test_7_debug_print(capsys) -> None:
    @jax.jit
    def f(x):
        jax.debug.print("x = {x}, half = {half:.2f}", x=x, half=x / 2)
        return x + 1

    assert f(3.0) == 4
    jax.effects_barrier()
    assert capsys.readouterr().out == "x = 3.0, half = 1.50\n"


def test_7_io_callback() -> None:
    lines = []

    @jax.jit
    def f(n):
        def body(i, total):
            io_callback(lambda i, total: lines.append(f"step {i}: {total}"), None, i, total, ordered=True)
            return total + i

        return jax.lax.fori_loop(0, n, body, 0)

    assert f(4) == 6
    jax.effects_barrier()
    assert lines == ["step 0: 0", "step 1: 0", "step 2: 1", "step 3: 3"]


def test_7_pure_callback() -> None:
    @jax.jit
    def f(x):
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jnp.sum(jax.pure_callback(np.sort, shape, x, vmap_method="sequential")[:2])

    x = np.array([3.0, 1.0, 2.0], np.float32)
    assert f(x) == 3
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([x, x + 1])), [3, 5])
