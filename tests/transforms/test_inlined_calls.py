"""Inlined calls: a sub-program on a tape is transposed as a whole, with the numbers and errors of its parts."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace import lax
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.trace import base_trace, use_trace
from xtrace._src.transforms import backward
from xtrace._src.transforms.equation_templates import EquationTemplate
from xtrace._src.transforms.inlined_calls import inlined_call
from xtrace._src.transforms.stage import StagingTrace

X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)


@inline_jit
def two_results(x, y):
    """Results of which a function may use one, an operand that is passed on, and a constant."""
    return jnp.sin(x) * y + x, x * 3 * y, y, jnp.ones_like(x)


@xtrace.custom_jvp
def with_constant_tangent(x):
    """The tangent does not depend on the one that is given."""
    return x * 1


with_constant_tangent.defjvp(lambda primals, tangents: (primals[0] * 1, jnp.full_like(primals[0], 2)))

FUNCTIONS = {
    "first result": lambda x: two_results(x, x)[0].sum(),
    "second result": lambda x: two_results(x, X)[1].sum(),
    "all results": lambda x: sum(r.sum() for r in two_results(x, jnp.cos(x))),
    "passed on": lambda x: two_results(X, x)[2].sum(),
    "constant result": lambda x: two_results(x, x)[3].sum() + x[0, 0],
    "same operand": lambda x: (jnp.var(x, axis=0) @ jnp.var(x, axis=0)) * jnp.mean(x),
    "used twice": lambda x: (lambda v: (v * v + jnp.sin(v)).sum())(jnp.var(x, axis=1, keepdims=True) * x),
    "unused": lambda x: (jnp.std(x), x.sum())[1],
    "constant tangents": lambda x: two_results(with_constant_tangent(x), x)[0].sum(),
    "constant tangents only": lambda x: jnp.var(with_constant_tangent(x)) + 0 * x.sum(),
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y + jnp.var(y, axis=0), x).sum(),
    "mapped": lambda x: xtrace.vmap(lambda row: jnp.var(row) * row)(x).sum(),
    "gradient inside": lambda x: (xtrace.grad(lambda y: two_results(y, X)[0].sum())(x) * x).sum(),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_without_calls(name):
    function = FUNCTIONS[name]
    # A pullback, and what runs on values, is transposed one operation at a time.
    expected = xtrace.grad(function)(X)
    pulled_back = xtrace.jit(lambda x: xtrace.vjp(function, x)[1](np.float32(1))[0])(X)
    for _ in range(2):
        found = xtrace.jit(xtrace.grad(lambda x: function(x)))(X)
        assert_same(found, expected, 16, floor=1.0)
        assert_same(found, pulled_back, 16, floor=1.0)


def test_an_inlined_call_is_transposed_once_for_operands_of_given_types(monkeypatch):
    calls = []
    original = backward._transpose
    monkeypatch.setattr(backward, "_transpose", lambda *args: calls.append(1) or original(*args))

    @inline_jit
    def function(x):
        return jnp.sin(x) * jnp.cos(x) * x

    gradient = xtrace.grad(lambda x: function(x).sum() + function(2 * x).sum())
    xtrace.make_jaxpr(gradient)(X)
    first = len(calls)
    calls.clear()
    xtrace.make_jaxpr(lambda x: gradient(x))(X)
    assert len(calls) < first


def test_errors_name_the_operations_in_an_inlined_call():
    @xtrace.custom_jvp
    def looked_at(x):
        return x

    @looked_at.defjvp
    def rule(primals, tangents):
        return primals[0], tangents[0] * float(tangents[0])

    def function(x):
        spread = jnp.var(x)
        return looked_at(spread)

    with pytest.raises(xtrace.errors.ConcretizationTypeError) as caught:
        xtrace.jit(xtrace.grad(function))(X)
    message = str(caught.value)
    assert "jnp.var(x)" in message and "select_n" in message and " inlined_call" not in message


def template_of(function, *avals):
    """The equations of a function of arrays, as a template."""
    trace = StagingTrace(base_trace, DebugInfo("test", "function", None, None))
    with use_trace(trace):
        results = function(*[trace.new_input(a) for a in avals])
    return EquationTemplate(trace, trace.inputs, trace.constants, [trace.atom(x) for x in results])


def test_an_inlined_call_has_the_rules_of_its_equations():
    def function(x, y):
        return [jnp.sin(x) * y + np.arange(3, dtype=np.float32), y * 2]

    aval = ShapedArray((2, 3), np.dtype(np.float32))
    template = template_of(function, aval, aval)

    def called(x, y):
        return inlined_call.bind(x, y, template=template)

    y = jnp.cos(X)
    for transform in (
        lambda f: f,
        lambda f: lambda x, y: xtrace.jvp(f, (x, y), (y, x)),
        lambda f: xtrace.grad(lambda x, y: sum((r * r).sum() for r in f(x, y)), (0, 1)),
        lambda f: lambda x, y: xtrace.vmap(f, (0, None))(jnp.stack([x, 2 * x]), y),
        lambda f: xtrace.hessian(lambda x, y: f(x, y)[0].sum()),
    ):
        for whole in (lambda f: f, xtrace.jit):
            got, expected = (whole(transform(f))(X, y) for f in (called, function))
            assert_same(got, expected, 16, floor=1.0)
    assert "inlined_call" in str(xtrace.make_jaxpr(called)(X, y))


def test_a_caught_error_leaves_the_gradient_as_it_is():
    def function(x):
        y = jnp.var(x) * x
        with pytest.raises(TypeError):
            hash(y)
        return (y + jnp.var(x)).sum()

    expected = xtrace.grad(lambda x: (jnp.var(x) * x + jnp.var(x)).sum())(X)
    for _ in range(2):
        assert_same(xtrace.jit(xtrace.grad(lambda x: function(x)))(X), expected, 16, floor=1.0)
