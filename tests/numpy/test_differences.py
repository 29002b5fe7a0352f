"""Differences, gradients, integrals, unwrapping and interpolation, compared with jax."""

import jax
import numpy as np
import pytest

import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.rules import check_rules

CASES = [
    "jnp.interp(x, v, v * v)", "jnp.interp(n, n, n)", "jnp.interp(2, u, u)", "jnp.interp(x, v, v, period=3.)",
    "jnp.interp(x, v, v * v, left='extrapolate')", "jnp.interp(x, v, v * v, right='extrapolate', left=2)",
    "jnp.interp(x, v, c[0, 0] * v)", "jnp.interp(x, v, v, left=1j)", "jnp.interp(x, v[::-1], v, period=-2.)",
    "jnp.interp(f16, f16, f16)", "jnp.interp(q, v, v)", "jnp.interp(x, v * 0, v)", "jnp.trapezoid(u)",
    "jnp.trapezoid(x, axis=0)", "jnp.trapezoid(x, axis=(0,))",
    "jnp.trapezoid(x, v)", "jnp.trapezoid(x, dx=2)", "jnp.trapezoid(x, x * x)",
    "jnp.trapezoid(h)", "jnp.trapezoid(c)", "jnp.trapezoid(y, y * y, axis=1)", "jnp.gradient(u)", "jnp.gradient(x)",
    "jnp.gradient(x, 2, axis=0)", "jnp.gradient(x * x, v * v, axis=1)", "jnp.gradient(2)",
    "jnp.gradient(y, axis=(1, 0))", "jnp.gradient(b, axis=1)", "jnp.gradient(h)", "jnp.gradient(v, 2j)",
    "jnp.gradient(x, 2, v)", "jnp.gradient(v[:2])", "jnp.gradient(v[:2], v[:2])", "jnp.gradient(w * v, w)",
    "jnp.diff(u, 2)", "jnp.diff(x, axis=0)", "jnp.diff(x, n=0)", "jnp.diff(b, 2)", "jnp.diff(v, prepend=0)",
    "jnp.diff(x, prepend=1, append=x)", "jnp.diff(v, 5)", "jnp.diff(n, prepend=1.5)",
    "jnp.diff(v, prepend=jnp.ones(2), append=2)", "jnp.diff(z)", "jnp.ediff1d(x)",
    "jnp.ediff1d(n, to_begin=x, to_end=2)", "jnp.ediff1d(n, to_end=2.5)", "jnp.ediff1d(2)", "jnp.ediff1d(z, 1, 1)",
    "jnp.ediff1d(w)", "jnp.unwrap(v * 3)", "jnp.unwrap(n)", "jnp.unwrap(n, period=3)",
    "jnp.unwrap(n * 4, period=6.5)", "jnp.unwrap(x * 2, axis=0)", "jnp.unwrap(v * 3, discont=2)", "jnp.unwrap(h * 3)",
    "jnp.unwrap(z, axis=0)", "jnp.unwrap(i, period=3)", "jnp.unwrap(b)", "jnp.unwrap(n, 3.5, period=5)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 64, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 64)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, -3.0, 2.5], [0.5, 3.0, -1.0, 7.0]], np.float32)

    def several(lax, x, f):
        library = modules[lax]
        return [
            library.gradient(x, axis=1),
            library.diff(x),
            library.trapezoid(x, x[0] * 2),
            library.unwrap(x),
            library.interp(x, f, f * f),
        ]

    check_rules(several, x, np.arange(3, dtype=np.float32), second=False, rounding=64)


ERRORS = [
    ("jnp.interp(v, v, v, left='foo')", ValueError, "left must be a number or 'extrapolate', got 'foo'"),
    ("jnp.interp(v, v, n)", ValueError, "interp: xp and fp must be one-dimensional arrays of equal size"),
    ("jnp.interp(c, c, c)", ValueError, "interp: complex x values are not supported"),
    ("jnp.interp(v, v, v, period=v)", ValueError, "interp: period must be a scalar"),
    ("jnp.interp(v, v[:0], v[:0])", ValueError, "interp: xp and fp have no points"),
    ("jnp.trapezoid(2)", ValueError, "trapezoid: axis -1 is out of bounds"),
    ("jnp.trapezoid(x, axis=(0, 1))", ValueError, r"trapezoid: axis must be one axis, got 2 of them: \(0, 1\)"),
    ("jnp.trapezoid(jnp.ones(0))", IndexError, "trapezoid: axis 0 .* has no samples"),
    ("jnp.gradient(x, 2, 3, 4)", TypeError, "gradient: invalid number of spacing arguments, 3 for 2 axes"),
    ("jnp.gradient(v[:1])", ValueError, "at least 2 elements are required"),
    ("jnp.gradient(x, v)", ValueError, "gradient: spacing arrays must be scalars or as long as the axis"),
    ("jnp.gradient(x, axis=5)", ValueError, "gradient: axis 5 is out of bounds"),
    ("jnp.gradient(v, edge_order=2)", NotImplementedError, "'edge_order' argument to xtrace.numpy.gradient"),
    ("jnp.diff(x, -1)", ValueError, "diff: order must be non-negative"),
    ("jnp.diff(2)", ValueError, "at least one dimensional"),
    ("jnp.diff(v, n=1.5)", TypeError, "diff: n must be an integer, got 1.5"),
    ("jnp.ediff1d(v > 1)", TypeError, "ediff1d: truth values have no difference"),
    ("jnp.unwrap(2.0)", IndexError, "unwrap: a scalar has no axis"),
    ("jnp.unwrap(c)", ValueError, "unwrap: complex numbers have no order"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})


def test_interpolation_of_wide_integers():
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for values, places in (("int64", "float32"), ("int32", "float32"), ("int64", "int32")):
            points = np.arange(3, dtype=places)
            ours, theirs = (api.numpy.interp(points, points, np.arange(3, dtype=values)) for api in (xtrace, jax))
            assert ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist()
