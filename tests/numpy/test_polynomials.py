"""Polynomials, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same, ours, theirs

CALLS = [
    "jnp.poly(n)", "jnp.poly(c[0])", "jnp.poly(z[:, 0])", "jnp.poly(2.0)", "jnp.poly(f16[:3])",
    "jnp.polyadd(v, n)", "jnp.polyadd(n, n)", "jnp.polyadd(s[None], v)", "jnp.polysub(n, v)", "jnp.polysub(u, u[:2])",
    "jnp.polyadd(jnp.full(3, 1.0), jnp.full(2, 1.0))", "jnp.polyder(v)", "jnp.polyder(v, 2)", "jnp.polyder(n, 0)",
    "jnp.polyder(v, 9)", "jnp.polyder(c[1])", "jnp.polyder(i[0])", "jnp.polyint(v)", "jnp.polyint(v, 2)",
    "jnp.polyint(v, 2, n[:2])", "jnp.polyint(v, 2, k=3)", "jnp.polyint(v, 0)", "jnp.polyint(n)", "jnp.polyint(i[0], 3)",
    "jnp.polyint(c[0], 1, k=c[1, :1])", "jnp.polyint(z[:, 0])", "jnp.polydiv(x[1], x[2, :2])", "jnp.polydiv(n, n[:2])",
    "jnp.polydiv(n[:2], n)", "jnp.polymul(v, n)", "jnp.polymul(n, n)",
    "jnp.polymul(c[0], v)", "jnp.polymul(z[:, 0], v)", "jnp.polyval(v, x)", "jnp.polyval(n, 2)", "jnp.polyval(n, n)",
    "jnp.polyval(i[0], 3)", "jnp.polyval(n, c)", "jnp.polyval(z[:, 0], v)", "jnp.polyval(x[:, :1], v[:3])",
    "jnp.polyval(jnp.ones(40), v / 8, unroll=3)",
    "jnp.polyadd(x[:1], x)", "jnp.polysub(x, x[:2].astype('float16'))", "jnp.polyadd(x, x[:2, :1])",
    "jnp.polysub(v[:1], y)",
    "jnp.roots(jnp.array([0.0, 0, 1, 2]), strip_zeros=False)", "jnp.roots(jnp.array([2, 1, 0, 0]), strip_zeros=False)",
    "jnp.roots(jnp.zeros(3), strip_zeros=False)", "abs(jnp.sort(jnp.roots(x[2], strip_zeros=False)))",
    "jnp.vander(n)", "jnp.vander(v, 2)", "jnp.vander(v, increasing=True)", "jnp.vander(n, 0)", "jnp.vander(u)",
    "jnp.vander(z[:, 0])",
    "jnp.polyfit(v, x[1] ** 2 + v % 2, 1)", "jnp.polyfit(v, x[1] ** 2, 2, w=v + 1)", "jnp.polyfit(v, x.T, 1)",
]
EAGER = [
    "jnp.polydiv(np.array([0, 0, 1.0, 2]), v[1:3], trim_leading_zeros=True)",
    "jnp.polymul(v, v, trim_leading_zeros=True)",
    "jnp.polymul(z[:, 0], v, trim_leading_zeros=True)", "jnp.polydiv(v[1:], v[1:], trim_leading_zeros=True)",
    "jnp.roots(x[2])", "jnp.roots(np.array([0, 0, 1.0, 2, 0]))", "jnp.roots(jnp.zeros(3))", "jnp.roots(s)",
    "jnp.roots(np.array([1.0, -3, 2]))",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CALLS[::2] + EAGER)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, rounding=64, among=CALLS)


@pytest.mark.slow
def test_jitted_values_are_those_of_jax():
    check_jitted(CALLS, rounding=64)


CONCRETE = xtrace.errors.ConcretizationTypeError
ERRORS = [
    ("jnp.poly(x)", ValueError, r"poly: input must be .* \(3, 4\)"),
    ("jnp.polyadd(x, v)", ValueError, r"polyadd: Cannot broadcast .*arr_shape=\(3, 4\) shape=\(3,\)"),
    ("jnp.polysub(v, 2)", ValueError, "polysub: .*argument 1 has no axes"),
    ("jnp.polyadd(x[:2], x[:, :3])", ValueError, r"polyadd: .*shape \(2, 4\) does not broadcast to \(2, 3\)"),
    ("jnp.polyadd([1], v)", TypeError, "polyadd requires"),
    ("jnp.polyder(v, -1)", ValueError, "polyder: m must be nonnegative, got -1"),
    ("jnp.polyder(v, 1.5)", TypeError, "polyder: m must be an integer, got 1.5"),
    ("jnp.polyint(v, -1)", ValueError, "polyint: m must be nonnegative"),
    ("jnp.polyint(v, 1, k=v)", ValueError, r"polyint: k must be .* m=1; got shape \(4,\)"),
    ("jnp.polydiv(v, v[:0])", ValueError, "divisor v has no coefficients"),
    ("xtrace.jit(lambda p: jnp.polymul(p, p, trim_leading_zeros=True))(v)", CONCRETE, "trim_leading_zeros=False"),
    ("xtrace.jit(lambda p: jnp.polydiv(p, p, trim_leading_zeros=True))(v)", CONCRETE, "trim_leading_zeros=False"),
    ("jnp.polyval(2, v)", ValueError, "polyval: coefficients must have at least one axis"),
    ("jnp.polyval(x, jnp.ones(3))", ValueError, r"polyval: .*\(4,\), \(3,\)"),
    ("jnp.roots(x)", ValueError, "roots: coefficients must be a 1-D array"),
    ("xtrace.jit(jnp.roots)(v)", CONCRETE, "strip_zeros=False"),
    ("jnp.vander(x)", ValueError, r"one-dimensional array, got shape \(3, 4\)"),
    ("jnp.vander(v, -1)", ValueError, "vander: N must be nonnegative"),
    ("jnp.vander(v, 2.5)", TypeError, "vander: N must be an integer"),
    ("jnp.polyfit(v, v, -1)", ValueError, "polyfit: deg must be nonnegative"),
    ("jnp.polyfit(x, v, 1)", TypeError, "expected 1D vector for x"),
    ("jnp.polyfit(v[:0], v[:0], 1)", TypeError, "expected non-empty vector"),
    ("jnp.polyfit(v, v[:3], 1)", TypeError, "same length"),
    ("jnp.polyfit(v, jnp.ones((4, 1, 1)), 1)", TypeError, "1D or 2D array for y"),
    ("jnp.polyfit(v, v, 1, w=x)", TypeError, "1-d array for weights"),
    ("jnp.polyfit(v, v, 1, w=v[:2])", TypeError, "w and y to have the same length"),
    ("jnp.polyfit(v, v, 3, cov=True)", ValueError, "number of data points must exceed order"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "xtrace": xtrace, "x": jnp.ones((3, 4)), "v": jnp.ones(4)})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"full": True}, {"cov": True}, {"cov": "unscaled"}, {"full": True, "rcond": 0.3}])
def test_what_polyfit_says_besides(options):
    x, y = np.arange(5, dtype=np.float32), np.array([1, 3, 2, 5, 4], np.float32)
    got = jnp.polyfit(ours(x), ours(y), 2, **options)
    # Sums of fifth powers, and a quotient: a few hundred roundings.
    assert_same(got, jax.numpy.polyfit(theirs(x), theirs(y), 2, **options), 512)


def test_a_gradient_of_polyval_is_that_of_jax():
    p, x = np.array([1.0, -3, 2], np.float32), np.array([0.5, 2.0], np.float32)
    got = xtrace.grad(lambda p, x: jnp.polyval(p, x).sum(), (0, 1))(ours(p), ours(x))
    assert_same(got, jax.grad(lambda p, x: jax.numpy.polyval(p, x).sum(), (0, 1))(theirs(p), theirs(x)), 16)
