"""custom_vjp with optimize_remat=True: a program that reads no residuals calls the function itself, as in jax."""

import jax
import jax.custom_derivatives
import jax.interpreters.partial_eval
import numpy as np
import pytest

import xtrace
import xtrace.custom_derivatives
import xtrace.interpreters.partial_eval
import xtrace.numpy

X, Y = np.float32(1.0), np.float32(2.0)


def make_function(api, residuals="computed"):
    """Return a function whose forward rule adds 1 to the result, so that a value shows which of both ran."""
    jnp = api.numpy

    @api.custom_vjp
    def function(x, y):
        return jnp.sin(x) * y

    def forward(x, y):
        saved = {"computed": (jnp.cos(x), y, jnp.sin(x)), "operands": (x, y, x)}[residuals]
        return jnp.sin(x) * y + 1.0, saved

    def backward(saved, g):
        first, y, second = saved
        return (g * first * y, g * second) if residuals == "computed" else (g * jnp.cos(first) * y, g * jnp.sin(second))

    function.defvjp(forward, backward, optimize_remat=True)
    return function


def closes_over(api):
    """Return a function of a scaled call: what its rule closes over is traced."""
    def scaled(x, y):
        scale = x + 1.0

        @api.custom_vjp
        def function(x, y):
            return x * y

        function.defvjp(lambda x, y: (x * y + 1.0, (x * scale, y)), lambda saved, g: (g * saved[1], g * saved[0]),
                        optimize_remat=True)
        return api.vjp(function, x, y)[0]

    return scaled


def both(api, f):
    return api.value_and_grad(f, (0, 1))


CALLS = {
    "value alone": lambda api, f: api.vjp(f, X, Y)[0],
    "value alone in a program": lambda api, f: api.jit(lambda x, y: api.vjp(f, x, y)[0])(X, Y),
    "gradients": lambda api, f: both(api, f)(X, Y),
    "gradients in a program": lambda api, f: api.jit(both(api, f))(X, Y),
    "checkpointed": lambda api, f: api.jit(both(api, api.checkpoint(lambda x, y: api.numpy.sin(f(x, y)))))(X, Y),
    "mapped": lambda api, f: api.jit(api.vmap(lambda x: api.vjp(f, x, Y)[0]))(np.ones(3, np.float32)),
    "gradients mapped": lambda api, f: api.jit(api.vmap(both(api, f)))(np.ones(3, np.float32), np.ones(3, np.float32)),
    "in a loop": lambda api, f: api.jit(both(api, lambda x, y: api.lax.scan(
        lambda c, _: (f(c, y), None), x, None, length=3)[0]))(X, Y),
}


@pytest.mark.parametrize("residuals", ["computed", "operands"])
@pytest.mark.parametrize("name", CALLS)
def test_the_rule_or_the_function_runs_as_in_jax(name, residuals):
    found, expected = [api.tree.leaves(CALLS[name](api, make_function(api, residuals))) for api in (xtrace, jax)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_rules_that_close_over_traced_values():
    found, expected = [np.asarray(api.jit(closes_over(api))(X, Y)) for api in (xtrace, jax)]
    assert found == expected


def test_equations_are_those_of_jax():
    described = []
    for api in (xtrace, jax):
        f = make_function(api)
        jaxpr = api.make_jaxpr(lambda x, y, f=f, api=api: api.vjp(f, x, y)[0])(X, Y).jaxpr
        equation = jaxpr.eqns[0]
        assert equation.primitive is api.custom_derivatives.remat_opt_p
        reduced, reads = api.interpreters.partial_eval.dce_jaxpr(jaxpr, [True])
        parameters = equation.params
        described.append((
            equation.primitive.name, sorted(parameters), parameters["num_consts"], parameters["num_res"],
            [str(e.primitive) for e in parameters["fwd_jaxpr"].eqns], [str(e.primitive) for e in reduced.eqns], reads,
        ))
    assert described[0] == described[1]


def test_second_derivatives():
    f = make_function(xtrace, "operands")
    second = xtrace.jit(xtrace.grad(xtrace.grad(lambda x: f(x, Y))))(X)
    np.testing.assert_allclose(second, -np.sin(X) * Y, rtol=1e-6)


def test_symbolic_zeros_are_refused_as_in_jax():
    for api in (xtrace, jax):
        f = api.custom_vjp(lambda x: x)
        with pytest.raises(NotImplementedError, match="does not support symbolic zeros"):
            f.defvjp(lambda x: (x, None), lambda _, g: (g,), symbolic_zeros=True, optimize_remat=True)
