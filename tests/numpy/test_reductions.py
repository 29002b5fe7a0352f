"""Sums, extrema, statistics, positions and running sums, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT,
    HALF,
    INTEGER,
    arrays,
    assert_same,
    dtypes_in,
    finite_values,
    ours,
    random_values,
    seeds,
    shapes,
    theirs,
)

SUMS = [
    "x.sum()", "x.sum(0)", "jnp.sum(y, (0, 2))", "jnp.sum(x, axis=[0, 1])", "x.sum(-1, keepdims=True)", "i.sum()",
    "u.sum()", "b.sum()", "b.sum(0)", "h.sum()", "f16.sum()", "h.sum(dtype=jnp.float32)", "c.sum()", "jnp.sum(w)",
    "jnp.sum(wi)", "jnp.sum(2)", "jnp.sum(2.0)", "jnp.sum(True)", "jnp.sum(x, axis=())", "z.sum()", "z.sum(1)",
    "u.sum(promote_integers=False)", "b.sum(promote_integers=False)", "x.sum(dtype=int)", "x.sum(dtype=complex)",
    "x.sum(dtype=bool)", "x.sum(0, jnp.bfloat16)", "i.sum(dtype=jnp.bfloat16)", "jnp.sum(x, initial=2.0)",
    "jnp.sum(x, where=x > 0)", "jnp.sum(x, where=b, initial=1)", "jnp.sum(x, where=True)",
    "jnp.sum(x, where=b[0], axis=0)", "jnp.sum(n, initial=1.5)", "jnp.sum(h, initial=2, where=b)", "x.prod()",
    "i.prod(1)", "b.prod()", "u.prod()", "jnp.prod(w)", "f16.prod()", "jnp.prod(x, where=b, initial=2)", "c.prod(0)",
    "jnp.prod(z)", "x.prod(dtype=bool)", "jnp.nansum(q)", "jnp.nansum(i)", "jnp.nansum(q, initial=1, where=q > 0)",
    "jnp.nanprod(q)", "jnp.nansum(c, 0)", "jnp.count_nonzero(x)", "jnp.count_nonzero(x, axis=0, keepdims=True)",
    "jnp.count_nonzero(2)", "jnp.count_nonzero(c)", "jnp.count_nonzero(b, 1)",
]
EXTREMES = [
    "x.max()", "x.min(0)", "jnp.max(y, (0, 1), keepdims=True)", "q.max()", "q.min()", "b.max()", "b.min(1)",
    "i.max(1)", "u.min()", "h.max()", "jnp.max(w)", "jnp.min(2)", "c.max()", "jnp.max(z, axis=1)",
    "jnp.max(z, axis=0, initial=0)", "jnp.max(x, initial=3, where=x > 0)", "jnp.min(i, initial=3)",
    "jnp.max(n, initial=3.5)", "jnp.max(h, where=b, initial=-1)", "jnp.max(b, where=b, initial=False)",
    "jnp.amax(x, 0)", "jnp.amin(x, axis=1)", "jnp.ptp(x)", "x.ptp(0)", "jnp.ptp(y, axis=(0, 1), keepdims=True)",
    "jnp.ptp(w)", "x.any()", "x.any(axis=0)", "b.all(0)", "jnp.any(w)", "jnp.all(z)", "jnp.any(z)",
    "jnp.any(x, where=x > 0)", "jnp.all(b, where=b)", "jnp.all(x, keepdims=True)", "c.any()", "x.argmax()",
    "x.argmax(1)", "x.argmin(0, keepdims=True)", "jnp.argmax(x, keepdims=True)", "q.argmax()", "q.argmin()",
    "b.argmax()", "h.argmin(1)", "jnp.argmax(2)", "u.argmax()", "jnp.argmax(z, axis=1)", "i.argmin(-1)",
]
STATISTICS = [
    "x.mean()", "x.mean(0)", "x.mean(axis=0, keepdims=True)", "i.mean()", "b.mean()", "h.mean()", "f16.mean()",
    "c.mean()", "jnp.mean(w)", "jnp.mean(2)", "jnp.mean(n, dtype=int)", "jnp.mean(x, dtype=jnp.bfloat16)",
    "jnp.mean(x, axis=())", "jnp.mean(f16, dtype=jnp.float32)", "jnp.mean(z)", "jnp.mean(x, where=x > 0)",
    "jnp.mean(x, where=x > 50)", "jnp.mean(x, 0, where=b, keepdims=True)", "x.var()", "x.var(0)", "x.std()",
    "x.std(1, keepdims=True)", "h.var()", "f16.std()", "i.var()", "c.var()", "c.std(0)", "b.var()",
    "jnp.var(c, dtype=complex)", "jnp.var(2)",
    "jnp.var(x, dtype=int)", "jnp.nanvar(x, 0, dtype=int)", "jnp.var(x, dtype=jnp.bfloat16)",
    "jnp.var(v, dtype='float8_e4m3fn')", "jnp.std(v, dtype='float8_e5m2')", "jnp.nanvar(h[:1], dtype='float8_e4m3fn')",
    "jnp.var(w)", "jnp.var(h, dtype=jnp.float32)", "jnp.var(x, ddof=1)",
    "jnp.var(x, correction=1)", "jnp.std(x, 0, ddof=0.5)", "jnp.var(x, ddof=20)",
    "jnp.var(x, mean=jnp.ones((1, 4)), axis=0)", "jnp.var(x, where=x > 0, keepdims=True)",
    "jnp.std(x, where=b, axis=1)", "jnp.std(i, ddof=1)", "jnp.average(x)", "jnp.average(n)",
    "jnp.average(x, 0, weights=v[:3])", "jnp.average(x, weights=b + 1)", "jnp.average(x, returned=True)",
    "jnp.average(x, 0, weights=v[1:], returned=True, keepdims=True)",
    "jnp.average(y, (2, 0), weights=x.T[:, :2] + 9)",
]
RUNNING = [
    "x.cumsum()", "x.cumsum(0)", "i.cumsum(1)", "b.cumsum()", "h.cumsum(0)", "f16.cumsum()", "jnp.cumsum(w)",
    "jnp.cumsum(2)", "jnp.cumsum(i, dtype=int)", "jnp.cumsum(v, dtype=bool)", "c.cumsum(-1)", "x.cumprod(1)",
    "b.cumprod(0)", "u.cumprod()", "jnp.cumprod(x, dtype=jnp.bfloat16)", "z.cumsum(0)", "jnp.cumulative_sum(v)",
    "jnp.cumulative_sum(x, axis=1, include_initial=True)", "jnp.cumulative_sum(u)", "jnp.cumulative_prod(v + 1)",
    "jnp.cumulative_prod(u, include_initial=True)", "jnp.cumulative_sum(b[0])",
]
TABLES = {"sums": SUMS, "extremes": EXTREMES, "statistics": STATISTICS, "running": RUNNING}
IN_TABLES = [text for table in TABLES.values() for text in table]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", IN_TABLES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=IN_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_jitted_values_are_those_of_jax(table):
    check_jitted(TABLES[table])


ERRORS = [
    ("jnp.sum([1, 2])", TypeError, "sum requires ndarray or scalar arguments; argument 0"),
    ("jnp.sum('a')", TypeError, "sum requires ndarray"),
    ("jnp.sum(x, axis=5)", ValueError, "sum: axis 5 is out of bounds for array of dimension 2"),
    ("jnp.sum(x, axis=(0, 0))", ValueError, "sum: duplicate value in axis"),
    ("jnp.sum(x, axis=1.5)", TypeError, "sum: axis must be an integer, got 1.5"),
    ("jnp.sum(x, out=x)", NotImplementedError, "'out' argument to xtrace.numpy.sum is not supported"),
    ("jnp.sum(x, where=x)", ValueError, "sum: where must be None or a boolean array; got .*float32"),
    ("jnp.sum(x, where=jnp.ones(3, bool))", ValueError, "broadcasting"),
    ("jnp.sum(x, initial=x)", ValueError, "initial must be a scalar"),
    ("jnp.sum(x, dtype='nothing')", TypeError, "sum: 'nothing' is not a dtype"),
    ("jnp.max(jnp.zeros(0))", ValueError, "zero-size array to reduction operation max"),
    ("jnp.max(x, where=x > 0)", ValueError, "has to specify 'initial'"),
    ("jnp.ptp(jnp.zeros(0))", ValueError, "ptp: no elements"),
    ("jnp.mean(x, axis=2)", ValueError, "mean: axis 2 is out of bounds"),
    ("jnp.mean(x, where=x)", ValueError, "mean: where must be None or a boolean array"),
    ("jnp.var(x, dtype=bool)", TypeError, "var: dtype must be one of numbers"),
    ("jnp.nanmean(x, dtype=bool)", TypeError, "nanmean: dtype must be one of numbers"),
    ("jnp.var(x, ddof=1, correction=1)", ValueError, "simultaneously"),
    ("jnp.var(x + 1j, dtype=float)", ValueError, "float32 is real and the array is complex"),
    ("jnp.std(x, ddof=x)", ValueError, "std: ddof must be a scalar"),
    ("jnp.nansum(x, axis=5)", ValueError, "^nansum: axis 5 is out of bounds"),
    ("jnp.nanprod(x, axis=5)", ValueError, "^nanprod: axis 5 is out of bounds"),
    ("jnp.nansum(x, out=x)", NotImplementedError, "numpy.nansum is not supported"),
    ("jnp.argmax(x, axis=5)", ValueError, "argmax: axis 5 is out of bounds"),
    ("jnp.argmax(x, axis=(0, 1))", TypeError, "argmax: axis must be an integer"),
    ("jnp.argmax(jnp.zeros(0))", ValueError, "attempt to get argmax of an empty sequence"),
    ("jnp.argmin(x + 1j)", TypeError, "argmin: complex numbers have no order"),
    ("jnp.cumsum(x, axis=2)", ValueError, "cumsum: axis 2 is out of bounds"),
    ("jnp.cumulative_sum(x)", ValueError, "axis was not set"),
    ("jnp.cumulative_prod(2.0)", ValueError, "at least one axis"),
    ("jnp.average(x, weights=jnp.ones(3))", ValueError, "Axis must be specified"),
    ("jnp.average(x, 0, weights=jnp.ones(4))", ValueError, "Shape of weights"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "x": jnp.ones((3, 4))})


@st.composite
def reduced(draw, kinds, max_side=4):
    """Draw a shape, a dtype, axes and keepdims."""
    shape = draw(shapes(0, 3, 1, max_side))
    axes = draw(st.one_of(st.none(), st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True).map(tuple)))
    if axes and not shape:
        axes = None
    return shape, draw(dtypes_in(kinds)), axes, draw(st.booleans())


@pytest.mark.drawn(0.3)
@given(reduced(ALL), seeds)
@settings(max_examples=30)
def test_sums_and_means_of_any_type(case, seed):
    shape, dtype, axes, keepdims = case
    value = finite_values(dtype, shape, seed)
    rounding = 4 * max(value.size, 1)
    for name in ("sum", "mean", "prod"):
        got = getattr(jnp, name)(ours(value), axes, keepdims=keepdims)
        expected = getattr(jax.numpy, name)(theirs(value), axes, keepdims=keepdims)
        # Values of both signs cancel, so errors are in units of the sum of magnitudes.
        scale = np.abs(value.astype(np.complex128)).sum() if name != "prod" else 1
        assert_close_to_scale(got, expected, rounding, scale)


def assert_close_to_scale(got, expected, rounding, scale):
    """Assert agreement to `rounding` units at the size `scale`, and in type exactly."""
    if jax.numpy.issubdtype(expected.dtype, jax.numpy.inexact):
        shift = np.asarray(scale, np.asarray(expected).dtype)
        assert_same(got + shift, expected + shift, rounding)
        assert bool(got.weak_type) == bool(expected.weak_type)
    else:
        assert_same(got, expected)


@pytest.mark.drawn(0.3)
@given(reduced([*BOOL, *INTEGER, *FLOAT]), seeds)
@settings(max_examples=25)
def test_extremes_of_any_type(case, seed):
    shape, dtype, axes, keepdims = case
    value = random_values(dtype, shape, seed)
    mine, other = ours(value), theirs(value)
    for name in ("max", "min", "any", "all"):
        got = getattr(jnp, name)(mine, axes, keepdims=keepdims)
        assert_same(got, getattr(jax.numpy, name)(other, axes, keepdims=keepdims), where=name)
    axis = axes[0] if axes else None
    for name in ("argmax", "argmin"):
        assert_same(getattr(jnp, name)(mine, axis), getattr(jax.numpy, name)(other, axis), where=name)


@pytest.mark.drawn(0.3)
@given(reduced([*FLOAT, *COMPLEX, *INTEGER]), seeds, st.integers(0, 2))
@settings(max_examples=25)
def test_variances_of_any_type(case, seed, ddof):
    shape, dtype, axes, keepdims = case
    value = finite_values(dtype, shape, seed)
    mine, other = ours(value), theirs(value)
    for name in ("var", "std"):
        got = getattr(jnp, name)(mine, axes, ddof=ddof, keepdims=keepdims)
        expected = getattr(jax.numpy, name)(other, axes, ddof=ddof, keepdims=keepdims)
        # The mean's error reaches the distances at the size of the values, and a root is not exact near zero.
        assert_close_to_scale(got, expected, 8 * max(value.size, 1), 16 if name == "var" else 4)


@given(reduced([*BOOL, *INTEGER, *FLOAT]), seeds)
@settings(max_examples=20)
def test_running_sums_of_any_type(case, seed):
    shape, dtype, axes, _ = case
    value = finite_values(dtype, shape, seed)
    axis = axes[0] if axes else None
    for name in ("cumsum", "cumprod"):
        got, expected = getattr(jnp, name)(ours(value), axis), getattr(jax.numpy, name)(theirs(value), axis)
        assert_close_to_scale(got, expected, 8 * max(value.size, 1), 4 * max(value.size, 1) if name == "cumsum" else 1)


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=20)
def test_masks_and_initial_values(data):
    shape, dtype, axes, keepdims = data.draw(reduced([*INTEGER, *FLOAT]))
    value, mask = data.draw(arrays(dtype, shape, -4, 4)), data.draw(arrays(np.bool_, shape))
    initial = data.draw(st.integers(0, 3))
    for name in ("sum", "max", "min", "prod"):
        keywords = {"axis": axes, "keepdims": keepdims, "initial": initial}
        got = getattr(jnp, name)(ours(value), where=ours(mask), **keywords)
        expected = getattr(jax.numpy, name)(theirs(value), where=theirs(mask), **keywords)
        assert_close_to_scale(got, expected, 4 * max(value.size, 1), 4 * value.size if name == "sum" else 0)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_half_precision_adds_up_in_float32(dtype):
    ones = jnp.ones(5000, dtype)
    assert float(ones.sum()) == pytest.approx(5000, rel=float(jnp.finfo(dtype).eps))
    assert ones.sum().dtype == dtype and ones.mean().dtype == dtype
    text = str(xtrace.make_jaxpr(jnp.sum)(ones))
    assert "f32[5000] = convert_element_type" in text and "f32[] = reduce_sum" in text


def test_a_column_normalisation_agrees_with_its_jitted_form():
    """Spec 2.10."""

    def norm(x):
        x = x - x.mean(0)
        return x / x.std(0)

    value = jnp.array(np.random.default_rng(0).random((10000, 10)).astype(np.float32))
    assert np.allclose(norm(value), xtrace.jit(norm)(value), atol=1e-6)


def test_jaxprs_read_as_in_jax():
    def f(x):
        return x.sum(0), x.mean(), x.max(1), x.argmax(), x.cumsum(0), (x > 0).any()

    operations = [str(e.primitive) for e in xtrace.make_jaxpr(f)(jnp.ones((3, 4))).eqns]
    assert operations == [
        "reduce_sum", "reduce_sum", "div", "reduce_max", "reshape", "argmax", "cumsum",
        "gt", "reduce_or",
    ]


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_floats_of_integers_under_x64_are_as_wide_as_they(name):
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for dtype in (bool, np.int8, np.uint16, np.int32, np.uint32, np.int64):
            x = np.array([1, 0, 1], dtype)
            assert_same(getattr(jnp, name)(ours(x)), getattr(jax.numpy, name)(theirs(x)), 16)


CONSTANTS = {
    "a saturating conversion": lambda np_: np_.sum(np.array([-1.5, -2.75], np.float32), dtype="uint8"),
    "a wrapping one": lambda np_: np_.sum(np.array([2**40 + 3]), dtype=np.float32),
    "a number": lambda np_: np_.ptp(2), "scalars along an axis": lambda np_: np_.nancumsum(1.5, axis=-1),
    "a sum of letters": lambda np_: np_.einsum("ij->", np.ones((2, 3), np.uint8)),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_a_jitted_function_count_as_arrays(name):
    function = CONSTANTS[name]
    assert_same(xtrace.jit(lambda: function(jnp))(), jax.jit(lambda: function(jax.numpy))())


def test_means_of_numbers_in_integers_are_as_wide_as_asked_for():
    with xtrace.enable_x64(), jax.enable_x64():
        x = np.array([1.5, np.nan, 3])
        assert_same(jnp.nanmean(x, dtype="int32"), jax.numpy.nanmean(x, dtype="int32"))
        for x1, x2 in ((3, np.int32(1)), (np.ones((2, 3), np.float16), np.arange(3))):
            assert_same(jnp.ldexp(x1, x2), jax.numpy.ldexp(x1, x2))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("wanted", ["float16", "bfloat16", None])
@pytest.mark.parametrize("own", ["float16", "bfloat16", "float32", "int32"])
def test_small_floats_add_up_in_float32_unless_the_dtype_is_given(own, wanted):
    values = np.random.default_rng(3).uniform(0, 3, 4096).astype(np.float32)
    for name in ("sum", "mean", "nansum", "nanmean", "prod", "nanprod"):
        got, expected = (getattr(m, name)(m.asarray(values).astype(own), dtype=wanted) for m in (jnp, jax.numpy))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(expected, np.float64), err_msg=name)
