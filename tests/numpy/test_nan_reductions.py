"""Reductions that leave out NaN, compared with jax."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import COMPLEX, FLOAT, INTEGER, assert_same, dtypes_in, ours, random_values, shapes, theirs
from tests.support.operands import seeds as some_seeds
from tests.support.rules import check_rules

MASKED = ["nanmean", "nanvar", "nanstd"]
EXTREMES = ["nanmax", "nanmin"]
POSITIONS = ["nanargmax", "nanargmin"]
RUNNING = ["nancumsum", "nancumprod"]
# The first column has no number, and the second one.
HOLES = "jnp.array([[np.nan, 1, 3], [np.nan, np.nan, 2]])"
CASES = (
    [f"jnp.{f}({o})" for f in [*MASKED, *EXTREMES, *RUNNING] for o in ["x", "q", "f16", "c", "i", "b", "w", "2.0", "s"]]
    + [f"jnp.{f}({o})" for f in POSITIONS for o in ["x", "q", "h", "u", "2"]]
    + [f"jnp.{f}({HOLES}, axis={a})" for f in [*MASKED, *EXTREMES, *POSITIONS, *RUNNING] for a in (None, 0, 1)]
    + [f"jnp.{f}(x * q, 1, keepdims=True)" for f in [*MASKED, *EXTREMES, *POSITIONS]]
    + [f"jnp.{f}(x * q, axis={a}, where=b)" for f in MASKED for a in ("1", "(0, 1)")]
    + [f"jnp.{f}(q, dtype={d})" for f in ("nanmean", "nanvar", *RUNNING) for d in ("int", "jnp.bfloat16", "complex")]
    + [f"jnp.{f}({c})" for f in ("nanvar", "nanstd")
       for c in ("x * q, axis=1, ddof=1", "x * q, ddof=30", "x * q, axis=1, mean=x[:, :1]", "c * q[1]")]
    + [f"jnp.{f}({c})" for f in EXTREMES
       for c in ("x * q, axis=1, where=b, initial=2", "i, 1, initial=3, where=b", "z, 0, initial=3",
                 "x * np.nan, initial=-3", "x * np.nan, where=b, initial=0, keepdims=True")]
)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES)


@pytest.mark.drawn(0.3)
@given(st.data(), shapes(0, 3, 1, 4), dtypes_in([*FLOAT, *COMPLEX, *INTEGER]), some_seeds)
@settings(max_examples=8)
def test_shapes_dtypes_and_axes(data, shape, dtype, seed):
    axes = data.draw(st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True).map(tuple))
    axes = axes if shape else None
    # A sum of values of one sign has errors in proportion to itself.
    value = np.where(np.isnan(found := random_values(dtype, shape, seed)), found, abs(found)).astype(dtype)
    value[np.isinf(value.astype(complex))] = 1
    rounding = 8 * max(value.size, 1)
    names = ["nanmean", "nanmax", "nanmin"]
    for name in names:
        expected = getattr(jax.numpy, name)(theirs(value), axes)
        assert_same(getattr(jnp, name)(ours(value), axes), expected, rounding, name)
    axis = axes[0] if axes else None
    for name in [*RUNNING, *([] if dtype in COMPLEX else POSITIONS)]:
        expected = getattr(jax.numpy, name)(theirs(value), axis)
        assert_same(getattr(jnp, name)(ours(value), axis), expected, rounding, name)


MODULES = {xtrace.lax: jnp, jax.lax: jax.numpy}


@pytest.mark.parametrize("names", [["nanvar", "nanmax"], ["nanmean", "nancumprod"]])
@pytest.mark.slow
def test_rules(names):
    x = np.array([[1.5, np.nan, 3.0], [0.5, 2.0, -1.0]], np.float32)
    check_rules(lambda lax, x: [getattr(MODULES[lax], n)(x, 1) for n in names], x, second=False, rounding=32)


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_are_batched(name):
    x = np.array([[1, np.nan], [2, 0]], np.float32)
    got = xtrace.vmap(getattr(jnp, name), 1)(ours(x))
    assert_same(got, jax.vmap(getattr(jax.numpy, name), 1)(theirs(x)))


ERRORS = [
    ("jnp.nanmax([1, 2])", TypeError, "nanmax requires ndarray or scalar arguments; argument 0"),
    ("jnp.nanmean(x, where=[True])", TypeError, "nanmean requires ndarray"),
    ("jnp.nanmean(x, where=x)", ValueError, "nanmean: where must be None or a boolean array"),
    ("jnp.nanmax(x, where=x > 0)", ValueError, "nanmax: to use a where mask one has to specify 'initial'"),
    ("jnp.nanmin(jnp.zeros(0))", ValueError, "zero-size array to reduction operation min"),
    ("jnp.nanargmax(jnp.zeros(0))", ValueError, "attempt to get nanargmax of an empty sequence"),
    ("jnp.nanargmin(x + 1j)", TypeError, "nanargmin: complex numbers have no order"),
    ("jnp.nanvar(x, axis=2)", ValueError, "nanvar: axis 2 is out of bounds"),
    ("jnp.nanstd(x, ddof=x)", ValueError, "nanstd: ddof must be a scalar"),
    ("jnp.nancumsum(x, axis=5)", ValueError, "nancumsum: axis 5 is out of bounds"),
    ("jnp.nancumprod(x, dtype='nothing')", TypeError, "nancumprod: 'nothing' is not a dtype"),
    ("jnp.nanmean(x, out=x)", NotImplementedError, "'out' argument to xtrace.numpy.nanmean"),
    ("jnp.nancumsum(x, out=x)", NotImplementedError, "'out' argument to xtrace.numpy.nancumsum"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "x": jnp.ones((3, 4))})
