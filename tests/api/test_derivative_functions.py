"""The functions that `vjp` and `linearize` return: pytrees of their residuals, which keep nothing else alive."""

import gc
import weakref

import jax
import numpy as np

import xtrace
import xtrace.numpy as jnp


def f(x):
    return jnp.sin(x) * x


def test_pullbacks_go_in_and_out_of_jitted_functions():
    value, pullback = xtrace.jit(lambda x: xtrace.vjp(f, x))(2.0)
    expected = jax.grad(lambda x: jax.numpy.sin(x) * x)(2.0)
    np.testing.assert_allclose(pullback(1.0)[0], expected, rtol=4 * 1.2e-7)
    np.testing.assert_allclose(xtrace.jit(lambda g, ct: g(ct))(pullback, 2.0)[0], 2 * expected, rtol=8 * 1.2e-7)
    _, linear = xtrace.jit(lambda x: xtrace.linearize(f, x))(2.0)
    np.testing.assert_allclose(linear(1.0), expected, rtol=4 * 1.2e-7)
    assert all(isinstance(x, xtrace.Array) for x in xtrace.tree.leaves(pullback)) and float(value) == float(f(2.0))


def test_only_what_the_backward_pass_reads_is_kept():
    x = jnp.arange(3.0)
    held = weakref.ref(x)
    result, pullback = xtrace.vjp(lambda x: (x + 1).sum(), x)
    del x
    gc.collect()
    assert held() is None and not xtrace.tree.leaves(pullback)
    assert pullback(1.0)[0].tolist() == [1, 1, 1] and float(result) == 6
