"""Medians, percentiles and quantiles, compared with jax."""

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import FLOAT, INTEGER, assert_same, dtypes_in, ours, random_values, seeds, shapes, theirs
from tests.support.rules import check_rules

METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]
# Every case compiles a sort twice or more, so there are few.
MEDIANS = [
    *[f"jnp.median({case})" for case in ("x", "h", "i", "w", "q", "y, (2, 0), keepdims=True")],
    *[f"jnp.nanmedian({case})" for case in ("b", "q", "x * q, axis=0")],
]
QUANTILES = [f"jnp.quantile(x * q, v / 3, axis=1, method='{method}')" for method in METHODS] + [
    f"jnp.nanquantile(y * q, v[1:] / 3, axis=(0, 2), keepdims=True, method='{method}')" for method in METHODS
]
OTHERS = [
    f"jnp.{name}({case})"
    for name in ("quantile", "nanquantile")
    for case in ("f16, v / 5", "jnp.zeros((0, 3)), 0.5, axis=1", "2.0, v / 3", "x, 2.0", "z, v[:0], axis=0")
]
WEIGHTED = [
    f"jnp.{name}({case}, method='inverted_cdf')"
    for name in ("quantile", "nanquantile")
    for case in ("x * q, v / 3, 1, weights=v + 1", "x, v / 3, weights=x + 4, keepdims=True",
                 "x, 0.3, axis=1, weights=x", "y, 0.4, axis=(1, 2), weights=x + 5")
]
PERCENTILES = ["jnp.percentile(x, 30, axis=1)", "jnp.percentile(x, n * 10, axis=1)", "jnp.nanpercentile(x, 33.3)"]
CASES = [*MEDIANS, *QUANTILES, *OTHERS, *WEIGHTED, *PERCENTILES]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4])


@given(st.data(), shapes(1, 3, 1, 4), dtypes_in([*FLOAT, *INTEGER]), seeds)
@settings(max_examples=4)
def test_shapes_dtypes_and_axes(data, shape, dtype, seed):
    axes = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
    shares = data.draw(st.sampled_from([np.float32(0.4), np.array([0.0, 1.0, 0.6], np.float32)]))
    keywords = {"axis": axes, "method": data.draw(st.sampled_from(METHODS)), "keepdims": data.draw(st.booleans())}
    # jax multiplies float32 by the array's dtype there, and raises.
    assume(keywords["method"] != "inverted_cdf" or np.dtype(dtype).itemsize > 2 or np.dtype(dtype).kind in "iu")
    value = random_values(dtype, shape, seed)
    for name in ("quantile", "nanquantile"):
        expected = getattr(jax.numpy, name)(theirs(value), theirs(shares), **keywords)
        assert_same(getattr(jnp, name)(ours(value), ours(shares), **keywords), expected, 16, name)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, 3.0], [0.5, 2.0, -1.0]], np.float32)

    def several(lax, x, q):
        library = modules[lax]
        return [library.median(x, 0), library.nanquantile(x, q, 1), library.quantile(x, q, 1, method="nearest")]

    check_rules(several, x, np.array([0.3, 0.8], np.float32), second=False, rounding=32,
                not_smooth="a NaN makes NaN of the median and the quantile")


ERRORS = [
    ("jnp.median([1, 2])", TypeError, "median requires ndarray or scalar arguments; argument 0"),
    ("jnp.quantile(x, [0.5])", TypeError, "quantile requires ndarray or scalar arguments; argument 1"),
    ("jnp.quantile(x, 1)", TypeError, "quantile: q must be a float"),
    ("jnp.percentile(x, 1j)", TypeError, "percentile: q must be a float"),
    ("jnp.quantile(x, x)", ValueError, "quantile: q must have rank <= 1, got shape \\(3, 4\\)"),
    ("jnp.quantile(x + 1j, 0.5)", ValueError, "quantile: complex numbers have no order"),
    ("jnp.quantile(x, 0.5, method='foo')", ValueError, "method must be one of 'linear'.* got 'foo'"),
    ("jnp.quantile(x, 0.5, axis=2)", ValueError, "quantile: axis 2 is out of bounds"),
    ("jnp.nanmedian(x, axis=(0, 0))", ValueError, "nanmedian: duplicate value in axis"),
    ("jnp.median(jnp.zeros(0))", ValueError, "median: no elements along axis None"),
    ("jnp.median(x, out=x)", ValueError, "median: out and overwrite_input are not supported"),
    ("jnp.percentile(x, 5, overwrite_input=True)", ValueError, "percentile: out and overwrite_input"),
    ("jnp.quantile(x, 0.5, weights=x)", NotImplementedError, "only 'inverted_cdf' does"),
    ("jnp.quantile(x, 0.5, weights=x[0], method='inverted_cdf')", ValueError, "axis is None"),
    ("jnp.quantile(x, 0.5, 0, weights=x[0], method='inverted_cdf')", ValueError, "shape \\(4,\\) fit neither"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "x": jnp.ones((3, 4))})
