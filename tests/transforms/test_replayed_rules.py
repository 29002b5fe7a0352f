"""Rules run once for operands of given types while programs are traced; their equations are copied afterwards."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as xnp
from xtrace import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def scaled(new_primitive):
    """An operation that multiplies by its parameter, and the list of what its batch rule was asked."""
    asked = []

    def batch(mapped, operands, axes, *, factor):
        asked.append((mapped.size, axes[0], factor))
        return primitive.bind(operands[0], factor=factor), axes[0]

    def jvp(primals, tangents, *, factor):
        asked.append(("jvp", factor))
        return primitive.bind(primals[0], factor=factor), primitive.bind(tangents[0], factor=factor)

    def transpose(cotangent, _, *, factor):
        asked.append(("transpose", factor))
        return [primitive.bind(cotangent, factor=factor)]

    def emit(builder, x, *, factor):
        y = builder.constant(np.asarray(factor, x.aval.dtype), x.aval)
        return builder.line(f"stablehlo.multiply {x.name}, {y.name} : {x.type}", x.aval)

    primitive = new_primitive(
        "scaled", ("factor",), abstract=lambda aval, *, factor: aval, emit=emit, jvp=jvp, transpose=transpose,
        batch=batch,
    )
    return primitive, asked


def test_a_batch_rule_runs_once_per_types_and_parameters(scaled):
    primitive, asked = scaled
    once = xtrace.make_jaxpr(xtrace.vmap(lambda x: primitive.bind(x, factor=2)))(X)
    again = xtrace.make_jaxpr(xtrace.vmap(lambda x: primitive.bind(primitive.bind(x, factor=2), factor=2)))(X)
    assert asked == [(2, 0, 2)]
    assert str(once) == "{ lambda ; a:f32[2,3]. let b:f32[2,3] = scaled[factor=2] a in (b,) }"
    assert [e.primitive for e in again.eqns] == [primitive, primitive]
    xtrace.make_jaxpr(xtrace.vmap(lambda x: primitive.bind(x, factor=3)))(X)
    xtrace.make_jaxpr(xtrace.vmap(lambda x: primitive.bind(x, factor=3), in_axes=1))(X)
    xtrace.make_jaxpr(xtrace.vmap(lambda x: primitive.bind(x, factor=3)))(X.T.copy())
    assert asked[1:] == [(2, 0, 3), (3, 1, 3), (3, 0, 3)]


def test_derivative_rules_run_once_per_types_and_parameters(scaled):
    primitive, asked = scaled
    gradient = xtrace.grad(lambda x: primitive.bind(primitive.bind(x, factor=2), factor=2).sum())
    assert [e.primitive for e in xtrace.make_jaxpr(gradient)(X).eqns].count(primitive) == 4
    assert asked == [("jvp", 2), ("transpose", 2)]


def test_a_rule_is_asked_each_time_outside_of_traces(scaled):
    primitive, asked = scaled
    for _ in range(2):
        np.testing.assert_array_equal(xtrace.vmap(lambda x: primitive.bind(x, factor=2))(X), 2 * X)
    assert asked == [(2, 0, 2)] * 2


def test_copies_have_the_position_of_their_own_line():
    def f(x):
        a = lax.sin(x)
        return lax.sin(a)

    (code, first), (other, second) = [e.source[:2] for e in xtrace.make_jaxpr(xtrace.vmap(f))(X).eqns]
    assert code is other is f.__code__ and first < second


def test_copied_batch_rules_take_literals_and_values_from_outside():
    outside = xnp.arange(3.0)
    f = xtrace.jit(xtrace.vmap(lambda x, y: 2 * x + outside * y + 1, in_axes=(0, None)))
    for _ in range(2):
        np.testing.assert_allclose(f(X, 4.0), 2 * X + 4 * np.arange(3) + 1)
    nested = xtrace.jit(xtrace.vmap(xtrace.vmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(1, 0)))
    np.testing.assert_allclose(nested(X, X[0]), X.T * X[0][:, None])


def test_an_outer_tracer_that_a_rule_does_not_get_is_no_constant_of_a_copy():
    def outer(y):
        return xtrace.jit(lambda x: xtrace.vmap(lambda r: r * y)(x))(X)

    for value in (2.0, 3.0):
        np.testing.assert_allclose(xtrace.jit(outer)(value), value * X)
