"""convolve and correlate against jax.numpy."""

import itertools

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import ALL, assert_same, finite_values, ours, random_values, theirs
from tests.support.rules import check_rules

NAMES = ["convolve", "correlate"]


def both(name, x, y, *arguments, rounding=16, **keywords):
    """Assert that both packages agree, eagerly and jitted."""
    expected = getattr(jax.numpy, name)(theirs(x), theirs(y), *arguments, **keywords)
    function = getattr(jnp, name)
    assert_same(function(ours(x), ours(y), *arguments, **keywords), expected, rounding)
    jitted = xtrace.jit(lambda x, y: function(x, y, *arguments, **keywords))
    assert_same(jitted(ours(x), ours(y)), expected, rounding)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", NAMES)
def test_lengths(name, mode):
    for first, second in itertools.product(range(1, 6), range(1, 6)):
        x, y = finite_values(np.float32, (first,), first), finite_values(np.float32, (second,), 9 + second)
        both(name, x, y, mode, rounding=100)
        with_numpy = getattr(np, name)(x.astype(np.float64), y.astype(np.float64), mode)
        # At most five products of numbers below four.
        np.testing.assert_allclose(getattr(jnp, name)(x, y, mode), with_numpy, atol=80 * 2.0**-22)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name):
    for dtype in ALL:
        x, y = random_values(dtype, (4,), 1, 0, 3), random_values(dtype, (2,), 2, 0, 3)
        both(name, x, y, rounding=16)
    both(name, np.ones(3, np.int32), np.ones(2, np.float16))
    both(name, np.ones(3, bool), np.ones(2, np.complex64))
    x, y = finite_values(np.complex64, (3,), 1), finite_values(np.complex64, (5,), 2)
    for first, second in ((x, y), (y, x)):
        both(name, first, second, "full", rounding=64)


@pytest.mark.parametrize("name", NAMES)
def test_types(name):
    both(name, np.arange(3, dtype=np.int8), np.arange(2, dtype=np.int8), preferred_element_type=np.int32)
    both(name, np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int8), preferred_element_type="float32")
    both(name, np.ones(3, np.float16), np.ones(2, np.float16), preferred_element_type=np.float32, precision="high")
    x = ours(np.ones(3, np.float32), weak_type=True)
    assert getattr(jnp, name)(x, x).weak_type
    assert getattr(jnp, name)(np.ones(3), np.ones(2)).dtype == np.float32
    with pytest.raises(TypeError, match="narrower"):
        getattr(jnp, name)(x, x, preferred_element_type=np.float16)


@pytest.mark.parametrize("name", NAMES)
def test_rules(name):
    x, y = finite_values(np.float32, (3,), 1), finite_values(np.float32, (4,), 2)
    # check_rules hands over lax; the functions are those of numpy.
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    check_rules(lambda lax, x, y: getattr(modules[lax], name)(x, y, "full"), x, y, rounding=100)


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    function = getattr(jnp, name)
    for operands, words in (((np.ones((2, 2)), np.ones(2)), "1-dimensional"), ((np.ones(0), np.ones(2)), "empty"),
                            ((1.0, 2.0), "1-dimensional")):
        with pytest.raises(ValueError, match=f"{name}.*{words}"):
            function(*operands)
    for mode in ("foo", 1, None):
        with pytest.raises(ValueError, match="mode must be one of"):
            function(np.ones(3), np.ones(2), mode)
    with pytest.raises(TypeError, match=name):
        function([1.0, 2.0], np.ones(2))
