"""Tangents and cotangents of integers, which are NumPy arrays of float0, go wherever arrays go: outcomes are jax's."""

import random

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy
from tests.support.outcomes import assert_outcomes_equal
from tests.support.sampling import number_of_draws

FLOAT0 = np.dtype([("float0", "V")])
NONE, ONE = np.zeros(2, FLOAT0), np.zeros((), FLOAT0)
NUMBERS, VECTOR = np.arange(2, dtype=np.int32), np.array([1.0, 2.0], np.float32)

CASES = {
    # Made, copied and moved
    "zeros": lambda api, lax, jnp: (jnp.zeros(2, FLOAT0), jnp.zeros((), FLOAT0), jnp.ones(2, FLOAT0)),
    "full": lambda api, lax, jnp: (jnp.full(2, 0, FLOAT0), jnp.empty(2, FLOAT0), lax.full((2,), 0, FLOAT0)),
    "zeros_like": lambda api, lax, jnp: (jnp.zeros_like(NONE), jnp.ones_like(NONE), jnp.zeros_like(VECTOR, FLOAT0)),
    "full_like": lambda api, lax, jnp: (jnp.full_like(NONE, 0), jnp.empty_like(NONE), lax.full_like(VECTOR, 0, FLOAT0)),
    "asarray": lambda api, lax, jnp: (jnp.asarray(NONE), jnp.array(NONE), jnp.copy(NONE), jnp.asarray(VECTOR, FLOAT0)),
    "astype": lambda api, lax, jnp: (jnp.astype(VECTOR, FLOAT0), lax.convert_element_type(NONE, np.float32)),
    "device_put": lambda api, lax, jnp: api.block_until_ready(api.device_put({"a": NONE, "b": VECTOR})),
    "shapes": lambda api, lax, jnp: [jnp.reshape(NONE, (1, 2)), jnp.stack([NONE, NONE]), jnp.broadcast_to(NONE, (3, 2)),
                                     jnp.ravel(NONE), jnp.where(True, NONE, NONE), jnp.asarray(NONE)[0]],
    "sums are refused": lambda api, lax, jnp: lax.add(NONE, NONE),
    "functions are refused": lambda api, lax, jnp: jnp.sin(NONE),
    # Through transformations
    "jit": lambda api, lax, jnp: api.jit(lambda z, x: (z, np.zeros(x.shape, FLOAT0), ONE, x))(NONE, VECTOR),
    "jit again": lambda api, lax, jnp: [api.jit(lambda z, x: (z, x))(NONE, VECTOR) for _ in range(3)],
    "jit in jit": lambda api, lax, jnp: api.jit(lambda z: api.jit(lambda z: z)(z))(NONE),
    "an argument that is not read": lambda api, lax, jnp: api.jit(lambda z, x: x, donate_argnums=0)(NONE, VECTOR),
    "lower": lambda api, lax, jnp: api.jit(lambda z, x: (z, x)).lower(NONE, VECTOR).compile()(NONE, VECTOR),
    "types": lambda api, lax, jnp: [str(f(lambda z, x: (z, x), *given)) for given in [(NONE, VECTOR)]
                                    for f in (lambda g, *a: api.eval_shape(g, *a),
                                              lambda g, *a: api.make_jaxpr(g)(*a))],
    "vmap": lambda api, lax, jnp: api.jit(api.vmap(lambda z, x: (z, ONE, x)))(NONE, VECTOR),
    "vmap of a constant": lambda api, lax, jnp: api.vmap(lambda z, x: z, (None, 0))(ONE, VECTOR),
    "vmap to another axis": lambda api, lax, jnp: api.vmap(lambda z: z, out_axes=1)(np.zeros((2, 3), FLOAT0)),
    "cond": lambda api, lax, jnp: lax.cond(True, lambda z: (NONE, z, 1.0), lambda z: (z, NONE, 2.0), NONE),
    "while_loop": lambda api, lax, jnp: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, NONE)),
    "fori_loop": lambda api, lax, jnp: lax.fori_loop(0, 2, lambda i, c: c, NONE),
    "carry of scan": lambda api, lax, jnp: lax.scan(lambda c, x: (c, 2 * x), NONE, VECTOR),
    "checkpoint": lambda api, lax, jnp: api.jit(api.checkpoint(lambda z, x: (z, x * 2)))(NONE, VECTOR),
    "trees": lambda api, lax, jnp: api.tree.map(lambda x: (x.dtype == FLOAT0, x.shape), {"a": NONE, "b": [ONE]}),
    "callbacks": lambda api, lax, jnp: api.pure_callback(
        lambda z: VECTOR, api.ShapeDtypeStruct((2,), np.float32), NONE),
    "stop_gradient": lambda api, lax, jnp: lax.stop_gradient(NONE),
    # Derivatives
    "jit of grad": lambda api, lax, jnp: [api.jit(api.grad(lambda n: jnp.sum(n * 1.5), allow_int=True))(n)
                                          for n in (NUMBERS, 3, np.True_)],
    "jit of value_and_grad": lambda api, lax, jnp: [
        api.jit(api.value_and_grad(lambda t: (t["n"] * t["x"]).sum(), allow_int=True))({"n": NUMBERS, "x": VECTOR})
        for _ in range(3)],
    "jvp": lambda api, lax, jnp: api.jit(lambda n, x, z: api.jvp(lambda n, x: (n, n * x), (n, x), (z, x)))(
        NUMBERS, VECTOR, NONE),
    "vjp": lambda api, lax, jnp: api.jit(lambda n, x, z: api.vjp(lambda n, x: (n, n * x), n, x)[1]((z, x)))(
        NUMBERS, VECTOR, NONE),
    "linearize": lambda api, lax, jnp: api.jit(lambda n, x, z: api.linearize(lambda n, x: (n, n * x), n, x)[1](z, x))(
        NUMBERS, VECTOR, NONE),
    "vmap of jvp": lambda api, lax, jnp: api.vmap(lambda n, x, z: api.jvp(lambda n, x: n * x, (n, x), (z, x)))(
        NUMBERS, VECTOR, NONE),
    "vmap of vjp": lambda api, lax, jnp: api.vmap(lambda n, x, z: api.vjp(lambda n, x: (n, n * x), n, x)[1]((z, x)))(
        NUMBERS, VECTOR, NONE),
    "jvp inside scan": lambda api, lax, jnp: lax.scan(
        lambda c, x: (c + 1, api.jvp(lambda n, x: (n, n * x), x, (ONE, x[1]))), 0, (NUMBERS, VECTOR))[1],
    "grad inside cond": lambda api, lax, jnp: lax.cond(
        True, *[api.grad(lambda n, s=s: n * s, allow_int=True) for s in (1.5, 2.5)], 3),
    "grad through scan": lambda api, lax, jnp: api.jit(api.grad(
        lambda n, x: lax.scan(lambda c, t: (c * t[0] + t[1], None), 1.0, (x, n))[0], (0, 1), allow_int=True,
    ))(NUMBERS, VECTOR),
    "grad of checkpoint": lambda api, lax, jnp: api.jit(
        api.grad(api.checkpoint(lambda n, x: (n * x).sum()), (0, 1), allow_int=True))(NUMBERS, VECTOR),
    "a tangent of another shape": lambda api, lax, jnp: api.jvp(lambda n, x: n * x, (NUMBERS, VECTOR), (ONE, VECTOR)),
    "a cotangent of another shape": lambda api, lax, jnp: api.vjp(lambda n: n * 2, NUMBERS)[1](ONE),
    "a tangent of the integer's type": lambda api, lax, jnp: api.jvp(lambda n: n * 2, (NUMBERS,), (NUMBERS,)),
}


def custom_rules(api, lax, jnp):
    product = api.custom_vjp(lambda x, n: (x * n, n))
    product.defvjp(lambda x, n: (product(x, n), n), lambda n, ct: (ct[0] * n, ct[1]))
    gradient = api.grad(lambda x, n: product(x, n)[0], (0, 1), allow_int=True)
    double = api.custom_jvp(lambda z, x: x * 2)
    double.defjvp(lambda p, t: (double(*p), t[1] * 2))
    return (gradient(2.0, 3), api.jit(gradient)(2.0, 3), api.jit(double)(NONE, VECTOR),
            api.jit(api.grad(lambda x: double(NONE, x).sum()))(VECTOR))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", [*CASES, "custom rules"])
def test_outcomes_are_those_of_jax(name):
    assert_outcomes_equal(CASES.get(name, custom_rules))


def test_scan_over_one():
    # jax refuses it.
    total, none = xtrace.lax.scan(lambda c, x: (c + x[0], x[1]), 0.0, (VECTOR, NONE))
    assert float(total) == 3 and none.dtype == FLOAT0 and none.shape == (2,)
    assert xtrace.lax.map(lambda z: z, NONE).dtype == FLOAT0


# Public functions of integers and floats: how each is called with i, an integer, and x, a float
FUNCTIONS = {
    "add": lambda jnp, i, x: jnp.add(i, x),
    "multiply": lambda jnp, i, x: jnp.multiply(x, i),
    "divide": lambda jnp, i, x: jnp.divide(x, 5 + i),
    "power": lambda jnp, i, x: jnp.power(x, abs(i)),
    "ldexp": lambda jnp, i, x: jnp.ldexp(x, i),
    "maximum": lambda jnp, i, x: jnp.maximum(x, i + 0.125),
    "where": lambda jnp, i, x: jnp.where(i > 0, x, i),
    "take": lambda jnp, i, x: jnp.take(x, i, mode="wrap"),
    "take_along_axis": lambda jnp, i, x: jnp.take_along_axis(x.ravel(), i.ravel() % x.size, 0),
    "choose": lambda jnp, i, x: jnp.choose(i % 2, [x, 2 * x], mode="clip"),
    "indexing": lambda jnp, i, x: x.ravel()[i],
    "update": lambda jnp, i, x: x.ravel().at[i].add(2.0),
    "integer update": lambda jnp, i, x: i.ravel().at[0].set(1) * x.ravel(),
    "dot": lambda jnp, i, x: jnp.dot(i.ravel(), x.ravel()),
    "tensordot": lambda jnp, i, x: jnp.tensordot(x, i, 0),
    "einsum": lambda jnp, i, x: jnp.einsum("...,...->...", i, x),
    "outer": lambda jnp, i, x: jnp.outer(i, x),
    "sum": lambda jnp, i, x: (jnp.sum(i), jnp.sum(x * i)),
    "mean": lambda jnp, i, x: (jnp.mean(i), jnp.mean(x)),
    "cumsum": lambda jnp, i, x: jnp.cumsum(i) * jnp.cumsum(x),
    "sort": lambda jnp, i, x: (jnp.sort(i.ravel()), x),
    "argsort": lambda jnp, i, x: (jnp.argsort(x.ravel()), x * i),
    "concatenate": lambda jnp, i, x: jnp.concatenate([i.ravel(), x.ravel()]),
    "stack": lambda jnp, i, x: jnp.stack([x, i]),
    "clip": lambda jnp, i, x: jnp.clip(x, i - 0.125, i + 4.25),
    "searchsorted": lambda jnp, i, x: (jnp.searchsorted(jnp.arange(4.0), x), i + x),
    "bincount": lambda jnp, i, x: jnp.bincount(i.ravel() % 3, x.ravel(), length=3),
    "convert": lambda jnp, i, x: (i.astype(np.float32), x.astype(np.int32)),
    "floor_divide": lambda jnp, i, x: (i // 2, x % 3),
    "sign": lambda jnp, i, x: (jnp.sign(i), jnp.abs(i), jnp.abs(x)),
    "exp": lambda jnp, i, x: (jnp.exp(i), jnp.sqrt(jnp.abs(i) + 1), x),
    "matmul": lambda jnp, i, x: jnp.matmul(x.reshape(1, -1), i.reshape(-1, 1)),
    "prod": lambda jnp, i, x: (jnp.prod(i), jnp.prod(x)),
    "repeat": lambda jnp, i, x: jnp.repeat(x, 2) * jnp.repeat(i, 2),
    "roll": lambda jnp, i, x: jnp.roll(x.ravel(), i.ravel()[0]),
}
_DTYPES = [np.int8, np.int16, np.int32, np.uint8, np.uint32, np.bool_]
_DRAWN = 9


def _derivatives(api, jnp, function, number, shape):
    """Every derivative of a function of an integer and a float."""
    randoms = np.random.default_rng(number)
    dtype = _DTYPES[number % len(_DTYPES)] if function not in ("ldexp", "sign") else np.int32
    i = randoms.integers(0, 2 if dtype is np.bool_ else 4, shape).astype(dtype)
    x, moved = (randoms.normal(size=shape).astype(np.float32) for _ in range(2))
    none = np.zeros(shape, FLOAT0)

    def call(i, x):
        i, x = jnp.asarray(i, np.int32 if dtype is np.bool_ else None), jnp.asarray(x)
        return FUNCTIONS[function](jnp, i, x)

    def pulled(i, x):
        results, pullback = api.vjp(call, i, x)
        of_floats = api.tree.map(
            lambda y: jnp.ones_like(y) if jnp.issubdtype(y.dtype, jnp.floating) else np.zeros(y.shape, FLOAT0), results
        )
        return pullback(of_floats)

    def total(i, x):
        return sum(y.sum() for y in api.tree.leaves(call(i, x)) if jnp.issubdtype(y.dtype, jnp.floating)) + 0 * x.sum()

    def strong(tree):
        # Which of jax's rules keep weak types is no contract.
        return api.tree.map(lambda y: y if y.dtype == FLOAT0 else api.lax.convert_element_type(y, y.dtype), tree)

    jitted = api.jit(lambda i, x, none: (
        api.jvp(call, (i, x), (none, moved)), api.jvp(lambda x: call(i, x), (x,), (moved,)), pulled(i, x),
        api.grad(total, (0, 1), allow_int=True)(i, x), api.grad(total, 0, allow_int=True)(i, x),
        api.linearize(call, i, x)[1](none, moved),
    ))(i, x, none)
    return strong((jitted, api.jvp(call, (i, x), (none, moved)), pulled(i, x)))


def test_drawn_derivatives_with_integers(pytestconfig):
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    whole = pytestconfig.getoption("whole_tables")
    for name in sorted(FUNCTIONS) if whole else random.Random(number).sample(sorted(FUNCTIONS), _DRAWN):
        # Always the same calls of a function.
        randoms = random.Random(name)
        drawn, shape = randoms.randrange(1000), randoms.choice([(), (3,), (2, 2)])
        try:
            found = assert_outcomes_equal(lambda api, _, jnp: _derivatives(api, jnp, name, drawn, shape))  # noqa: B023
            assert isinstance(found, list), found
        except AssertionError as error:
            error.add_note(f"{name} of shape {shape}, draw {drawn}; XTRACE_DRAWS_SEED={number}")
            raise
    assert jax.dtypes.float0 == xtrace.dtypes.float0
