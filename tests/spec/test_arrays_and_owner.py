"""Specification, section 4.1 (arrays), what of 4.4 is here, and section 8 (the owner's words)."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import xtrace as jax
import xtrace.numpy as jnp

matplotlib.use("Agg")


def test_4_1_arrays_are_immutable_and_updates_make_copies() -> None:
    x = jnp.arange(10)
    with pytest.raises(TypeError):
        x[0] = 10
    y = x.at[0].set(10)
    assert str(x) == "[0 1 2 3 4 5 6 7 8 9]"
    assert str(y) == "[10  1  2  3  4  5  6  7  8  9]"


def test_4_1_printing() -> None:
    assert repr(jnp.array([1.0, 2.5])) == "Array([1. , 2.5], dtype=float32)"
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(jnp.add(1, 1.0)) == "Array(2., dtype=float32, weak_type=True)"


def test_4_1_numpy_takes_them() -> None:
    x = jnp.linspace(0, 1, 5)
    assert isinstance(x, jax.Array)
    assert type(np.asarray(x)) is np.ndarray and np.asarray(x).dtype == np.float32
    np.testing.assert_allclose(np.sin(x), np.sin(np.linspace(0, 1, 5, dtype=np.float32)), rtol=1e-6)


def test_4_1_matplotlib_plots_them() -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    x = jnp.linspace(0, 10, 1000)
    (line,) = axes.plot(x, 2 * jnp.sin(x) * jnp.cos(x))
    axes.scatter(x[::100], x[::100])
    axes.imshow(jnp.ones((4, 4)))
    figure.canvas.draw()
    np.testing.assert_array_equal(line.get_xdata(), np.asarray(x))
    pyplot.close(figure)


def test_4_4_a_big_product() -> None:
    x = jax.device_put(np.ones((500, 500), np.float32))
    assert float(jnp.dot(x, x).block_until_ready()[0, 0]) == 500


def test_8_jit_is_a_drop_in_decorator_and_lower_shows_the_ir() -> None:
    @jax.jit
    def f(x):
        return jnp.sin(x) + 1

    f(jnp.ones(3))
    text = jax.lower(f).as_text()
    assert "module @jit_f" in text and "stablehlo.sine" in text and "tensor<3xf32>" in text
    assert jax.lower(f, jnp.ones(3)).as_text() == text


def test_8_nothing_imports_jax() -> None:
    program = (
        "import sys, numpy as np, xtrace, xtrace.numpy as jnp\n"
        "x = xtrace.jit(lambda x: jnp.tanh(x) @ x.T + 1)(np.ones((3, 4)))\n"
        "print(x, x.astype(jnp.bfloat16), repr(x[0]), x.sum(), np.asarray(x))\n"
        "xtrace.lower(jnp.sin, x).compile().as_text()\n"
        "assert not [m for m in sys.modules if m == 'jax' or m.startswith('jax.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
