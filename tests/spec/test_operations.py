"""Specification, section 4: the operations behind the functions."""

import xtrace.numpy as jnp
from xtrace import lax


def test_4_3_convolve_and_conv_general_dilated():
    x, y = jnp.array([1, 2, 1]), jnp.ones(10)
    expected = [1, 3, 4, 4, 4, 4, 4, 4, 4, 4, 3, 1]
    assert jnp.convolve(x, y).tolist() == expected
    found = lax.conv_general_dilated(
        x.reshape(1, 1, 3).astype(float), y.reshape(1, 1, 10), window_strides=(1,), padding=[(len(y) - 1, len(y) - 1)]
    )
    assert found[0, 0].tolist() == expected
