"""vectorize, apply_along_axis and apply_over_axes, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same, ours, random_values, theirs

CALLS = [
    "jnp.vectorize(lambda a, b: a + b)(x, v)", "jnp.vectorize(jnp.dot, signature='(n),(n)->()')(x, v)",
    "jnp.vectorize(lambda a, b: a[:, None] * b, signature='(n),(m)->(n,m)')(x, v)",
    "jnp.vectorize(lambda a: a[None], signature='()->(k)')(x)",
    "jnp.vectorize(lambda a, b: a * b, excluded=(1,))(x, 3)",
    "jnp.vectorize(lambda a, b: a * b, excluded={'b'})(x, b=3)", "jnp.vectorize(lambda a: a.ndim)(x)",
    "jnp.vectorize(lambda a: (a, 2 * a))(v)", "jnp.vectorize(lambda a: [a, 2 * a])(v)",
    "jnp.vectorize(lambda a: {'a': a}['a'])(v)", "jnp.vectorize(lambda a: a)([1, 2])",
    "jnp.vectorize(lambda a: a)(2)",
    "jnp.vectorize(lambda a: a, signature='(3)->(3)')(x[:, :3])",
    "jnp.vectorize(lambda a, b: a + b)(x[:, :1], x[:1])",
    "jnp.vectorize(lambda a, b: a + b)(x[:1, :1], x[:1, :1])", "jnp.vectorize(lambda a, b: a + b)(y[:, :1], x[:, :1])",
    "jnp.vectorize(lambda a, b=None: a if b is None else a + b)(x)",
    "jnp.vectorize(lambda a, b=None: a, signature='(n),()->(n)')(x, None)",
    "jnp.vectorize(lambda a, b: (a @ b, a.sum()), signature='(n,m),(m)->(n),()')(y, v)",
    "jnp.vectorize(lambda a: a)(z)", "jnp.vectorize(lambda a: a + 1)(w)", "jnp.vectorize(lambda a: a).__name__",
    "jnp.apply_along_axis(jnp.sum, 0, x)", "jnp.apply_along_axis(lambda a: a[:2], -1, x)",
    "jnp.apply_along_axis(lambda a, b, c=1: a * b * c, 1, x, 2, c=3)",
    "jnp.apply_along_axis(lambda a: jnp.outer(a, a), 0, y)", "jnp.apply_along_axis(lambda a: jnp.outer(a, a), 1, y)",
    "jnp.apply_along_axis(lambda a: a[:2], 2, y)", "jnp.apply_along_axis(lambda a: (a, a.sum()), 1, y)",
    "jnp.apply_over_axes(jnp.sum, y, [0, 2])", "jnp.apply_over_axes(jnp.cumsum, y, [-1])",
    "jnp.apply_over_axes(jnp.sum, x, [])",
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("text", CALLS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=CALLS)


def test_jitted_values_are_those_of_jax():
    check_jitted(CALLS)


ERRORS = [
    ("jnp.vectorize(jnp.dot, signature='(n),(n)->()')(x, x[0, :3])", ValueError, "core dimension 'n': 3 vs 4"),
    ("jnp.vectorize(jnp.dot, signature='n,n->')", ValueError, "signature must look like"),
    ("jnp.vectorize(jnp.dot, signature='(n),(n)->()')(x)", TypeError, "expected 2, got 1"),
    ("jnp.vectorize(lambda a: (a, a), signature='(n)->(n)')(x)", TypeError, "output arguments.*expected 1, got 2"),
    ("jnp.vectorize(lambda a: a, signature='(n)->(n),()')(x)", TypeError, "output must be a tuple"),
    ("jnp.vectorize(lambda a: a.sum(), signature='(n)->(n)')(x)", ValueError, r"output shape \(\) does not match"),
    ("jnp.vectorize(lambda a: a, signature='(n,m)->(n,m)')(x[0])", ValueError, r"shape \(4,\) does not have enough"),
    ("jnp.vectorize(abs, excluded=(1.5,))", TypeError, "can only exclude integer or string"),
    ("jnp.vectorize(abs, excluded=(-1,))", ValueError, "negative"),
    ("jnp.vectorize(lambda a, b: a)(x, b=3)", TypeError, "'b'.*by position"),
    ("jnp.vectorize(lambda a, b: a)(x, x[0, :3])", ValueError, r"vectorize.*\(3, 4\), \(3,\)"),
    ("jnp.vectorize(abs)('a')", TypeError, "str"),
    ("jnp.vectorize(lambda a, b: a)(x, None)", ValueError, "None is not a valid value"),
    ("jnp.vectorize(lambda a, b: b)(None, x)", ValueError, "None is not a valid value"),
    ("jnp.apply_along_axis(jnp.sum, 5, x)", ValueError, "apply_along_axis: axis 5 is out of bounds"),
    ("jnp.apply_along_axis(jnp.sum, 0, [1])", TypeError, "apply_along_axis requires"),
    ("jnp.apply_over_axes(jnp.sum, x, 0)", TypeError, "int"),
    ("jnp.apply_over_axes(lambda a, axis: a[0, 0], x, [0])", ValueError, r"made \(\) of the shape \(3, 4\)"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 4))})


def test_a_gradient_goes_through():
    x = random_values(np.float32, (3, 4), 5, -2, 2)

    def of(package, numpy):
        function = numpy.vectorize(lambda a, b: numpy.sin(a) @ b, signature="(n),(n)->()")
        return package.grad(lambda x: function(x, x[0]).sum() + numpy.apply_along_axis(numpy.prod, 0, x).sum())

    assert_same(of(xtrace, jnp)(ours(x)), of(jax, jax.numpy)(theirs(x)), 16)
