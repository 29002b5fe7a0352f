"""Objects with ``__jax_array__``, and masked arrays of NumPy: where they are taken, and where refused."""

import operator

import numpy as np
import pytest

import xtrace
from xtrace import lax, random
from xtrace import numpy as jnp


class StandIn:
    """Stands for an array, and has nothing else of one."""

    def __init__(self, values):
        self.array = jnp.asarray(values)

    def __jax_array__(self):
        return self.array


X = jnp.array([1.0, 2.0, 3.0])
OBJECT = StandIn(X)
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, divmod,
]


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_operators_take_objects_on_either_side(function):
    expected = function(X, X)
    for found in (
        function(X, OBJECT), function(OBJECT, X), xtrace.jit(lambda x: function(x, OBJECT))(X),
        xtrace.jit(lambda x: function(OBJECT, x))(X), xtrace.jit(lambda x: function(x, StandIn(x)))(X),
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: X[StandIn([2, 0])], [3, 1]), (lambda: X.at[StandIn([0])].set(StandIn([7.0])), [7, 2, 3]),
        (lambda: X[1:][StandIn(0)], 2), (lambda: jnp.stack([OBJECT, X])[0], X),
        (lambda: jnp.sum(a=OBJECT), 6), (lambda: X.dot(OBJECT), 14), (lambda: lax.neg(OBJECT), -X),
        (lambda: lax.concatenate((OBJECT, X), dimension=0)[:3], X), (lambda: jnp.add.reduce(OBJECT), 6),
        (lambda: jnp.vectorize(lambda x: 2 * x)(OBJECT), 2 * X), (lambda: xtrace.nn.relu(OBJECT), X),
        (lambda: random.uniform(random.key(0), (3,), minval=OBJECT, maxval=OBJECT), X),
        (lambda: jnp.linalg.norm(OBJECT, 1), 6), (lambda: jnp.reshape(OBJECT, (3,)), X),
        (lambda: jnp.where(StandIn([True, False, True]), OBJECT, OBJECT), X),
    ],
)
def test_functions_and_methods_take_objects(call, expected):
    np.testing.assert_allclose(call(), expected, rtol=1e-6)
    np.testing.assert_allclose(xtrace.jit(call)(), expected, rtol=1e-6)


def test_derivatives_go_through_objects():
    assert xtrace.grad(lambda x: jnp.sum(StandIn(x) * jnp.sin(StandIn(x))))(X).tolist() == pytest.approx(
        (jnp.sin(X) + X * jnp.cos(X)).tolist(), rel=1e-6
    )


@pytest.mark.parametrize(
    "value", [OBJECT, np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.masked], ids=["object", "masked array", "masked"]
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: xtrace.jit(lambda y: y)(x), lambda x: xtrace.grad(lambda y: jnp.sum(y))(x),
        lambda x: xtrace.vmap(lambda y: y)(x), lambda x: xtrace.jvp(jnp.sin, (x,), (x,)),
        lambda x: xtrace.vjp(jnp.sin, x), lambda x: xtrace.vjp(jnp.sin, X)[1](x), lambda x: xtrace.device_put(x),
        lambda x: xtrace.make_jaxpr(jnp.sin)(x), lambda x: lax.scan(lambda c, y: (c, y), 0.0, x),
        lambda x: lax.cond(True, lambda y: y, lambda y: y, x), lambda x: lax.fori_loop(0, 2, lambda i, y: y, x),
        lambda x: xtrace.jit(lambda: x)(), lambda x: lax.switch(0, [jnp.sin, jnp.cos], x),
        lambda x: xtrace.checkpoint(jnp.sin)(x), lambda x: xtrace.linearize(jnp.sin, x),
        lambda x: xtrace.jacrev(jnp.sin)(x), lambda x: xtrace.jit(jnp.sin).lower(x),
    ],
)
def test_transformations_refuse_them(value, call):
    with pytest.raises(ValueError, match=r"__jax_array__|masked array"):
        call(value)


@pytest.mark.parametrize(
    "call",
    [
        jnp.asarray, jnp.array, lambda m: jnp.array([m, m]), lambda m: X[:2] + m, lambda m: m * X[:2], jnp.sin, lax.neg,
        lambda m: jnp.zeros(2).at[:].set(m), lambda m: jnp.stack([m, m]), lambda m: jnp.full(2, m),
        lambda m: jnp.where(m > 1, 1, 2), lambda m: X[m.astype(int)], lambda m: xtrace.nn.softmax(m),
        lambda m: jnp.zeros(2).at[m.astype(int)].get(), lambda m: jnp.linspace(0, m, 2), lambda m: jnp.append(X, m),
    ],
)
def test_masked_arrays_are_refused(call):
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    for function in (call, lambda m: xtrace.jit(lambda: call(m))()):
        with pytest.raises(ValueError, match=r"masked array.*filled"):
            function(masked)


def test_an_object_that_stands_for_another_one_is_refused():
    with pytest.raises(TypeError, match="must return an array"):
        jnp.sin(type("Nested", (), {"__jax_array__": lambda self: self})())


def test_the_error_of_the_array_is_raised():
    with pytest.raises(ValueError, match="axis") as caught:
        jnp.sum(OBJECT, axis=3)
    assert caught.value.__context__ is None
