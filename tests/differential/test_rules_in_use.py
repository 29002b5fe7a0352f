"""Calls of rules and transformations that were met in use, with those like them: outcomes are those of jax."""

import numpy as np
import pytest

import xtrace
import xtrace.custom_batching
import xtrace.numpy
from tests.support.operands import assert_same
from tests.support.outcomes import assert_outcomes_equal

VECTOR = np.array([1.0, 2.0, 3.0], np.float32)
MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]], np.float32)
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@pytest.mark.parametrize("name", CASES)
def test_outcomes_are_those_of_jax(name):
    assert_outcomes_equal(CASES[name])


@case
def a_jitted_product_inside_a_rule(api, lax, jnp):
    # A staging trace above a tape is no tape.
    inner = api.custom_jvp(lambda x: x * 2)
    inner.defjvp(lambda p, t: (inner(*p), inner(*t)))
    product = api.jit(lambda x, v: api.jvp(inner, (x,), (v,))[1])
    outer = api.custom_jvp(lambda a: a)
    outer.defjvp(lambda p, t: (outer(*p), product(p[0], t[0])))
    return api.grad(outer)(1.0), api.jit(api.grad(outer))(1.0), api.vmap(api.grad(outer))(VECTOR)


@case
def custom_root_whose_tangent_solve_closes_over_the_argument(api, lax, jnp):
    def root(a):
        twice = jnp.sqrt(a) * 2
        return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / twice)

    return (api.grad(root)(2.0), api.jit(api.grad(root))(2.0), api.grad(api.grad(root))(2.0),
            api.jvp(root, (2.0,), (1.0,)), api.vmap(api.grad(root))(VECTOR))  # fmt: skip


@case
def custom_linear_solve_whose_transpose_closes_over_the_system(api, lax, jnp):
    def total(a, b):
        scale = 2.0 * a.sum()
        return lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, y: jnp.linalg.solve(a, y),
            lambda _, y: jnp.linalg.solve(a.T, y) * scale / scale,
        ).sum()  # fmt: skip

    b = VECTOR[:2]
    return api.grad(total, (0, 1))(MATRIX, b), api.grad(lambda a: api.grad(total)(a, b).sum())(MATRIX)


@case
def results_of_cond_that_every_branch_forwards(api, lax, jnp):
    def choice(p, x, y):
        return lax.cond(p, lambda x, y: (x, y), lambda x, y: (x + 1, y), x, y)

    which = np.array([True, False, True])
    return (
        api.vmap(choice, (0, 0, None), out_axes=(0, None))(which, VECTOR, 2.0),
        api.vmap(api.jit(choice), (0, 0, None), out_axes=(0, None))(which, VECTOR, 2.0),
        api.grad(lambda y: choice(True, 1.0, y)[1])(2.0),
    )


@case
def results_of_switch_that_every_branch_forwards(api, lax, jnp):
    def choice(i, x, y):
        return lax.switch(i, [lambda: (x, y, x), lambda: (x + 1, y, x), lambda: (x * 2, y, x)])

    indices = np.arange(3, dtype=np.int32)
    return api.vmap(choice, (0, None, 0), out_axes=(0, 0, None))(indices, VECTOR, VECTOR), choice(1, 1, 2.0)


@case
def cond_takes_the_weak_type_of_the_first_branch(api, lax, jnp):
    def weak_first(p, b):
        return lax.cond(p, lambda: jnp.float32(1.0), lambda: 2.0) * b

    def strong_first(p, b):
        return lax.cond(p, lambda: 1.0, lambda: jnp.float32(2.0)) * b

    b = jnp.ones(2, jnp.bfloat16)
    return [(f(p, b), api.jit(f)(p, b)) for f in (weak_first, strong_first) for p in (True, False)]


@case
def switch_takes_the_weak_type_of_the_first_branch(api, lax, jnp):
    branches = [lambda: 1, lambda: jnp.int32(2), lambda: 3]
    found = [lax.switch(i, branches) for i in range(3)] + [lax.switch(i, branches[1:]) for i in range(2)]
    return found, api.jit(lambda i: lax.switch(i, branches))(1)


@case
def cond_of_a_weak_operand_and_a_strong_one(api, lax, jnp):
    def choice(x):
        return lax.cond(True, lambda x: jnp.float32(2.0), lambda x: x, x)

    return choice(1.0), api.jit(choice)(1.0), api.jvp(choice, (1.0,), (1.0,)), api.vmap(choice)(VECTOR)


def _sum(api, lax):
    total = api.custom_jvp(lambda x: lax.psum(x, "i"))
    total.defjvp(lambda p, t: (total(*p), lax.psum(t[0], "i")))
    return api.jit(total)


@case
def a_custom_jvp_of_a_collective_is_not_mapped(api, lax, jnp):
    mapped = api.vmap(_sum(api, lax), axis_name="i", out_axes=None)
    return mapped(VECTOR), api.jit(mapped)(VECTOR), api.jvp(mapped, (VECTOR,), (VECTOR,)), api.grad(mapped)(VECTOR)


@case
def a_derivative_of_a_collective_is_not_mapped(api, lax, jnp):
    total = _sum(api, lax)
    both = api.vmap(lambda x: api.jvp(total, (x,), (x * x,)), axis_name="i", out_axes=None)
    return both(VECTOR), api.vmap(api.grad(total), axis_name="i")(VECTOR)


@case
def a_custom_vjp_of_a_collective_is_not_mapped(api, lax, jnp):
    total = api.custom_vjp(lambda x: lax.psum(x, "i"))
    total.defvjp(lambda x: (total(x), None), lambda _, ct: (ct * 2,))
    mapped = api.vmap(api.jit(total), axis_name="i", out_axes=None)
    return mapped(VECTOR), api.grad(mapped)(VECTOR)


@case
def a_result_with_a_rule_that_does_not_depend_on_the_mapped_argument(api, lax, jnp):
    function = api.custom_jvp(lambda x: (x, jnp.float32(3.0)))
    function.defjvp(lambda p, t: (function(*p), (t[0], np.float32(0))))
    return api.vmap(api.jit(function), out_axes=(0, None))(VECTOR)


def test_a_tangent_that_is_mapped_makes_its_result_mapped():
    # jax returns arrays with the axis twice.
    constant = xtrace.custom_jvp(lambda x: xtrace.numpy.float32(3))
    constant.defjvp(lambda p, t: (constant(*p), 2 * t[0]))
    mapped = xtrace.vmap(xtrace.jit(constant))
    value, tangent = xtrace.jvp(mapped, (VECTOR,), (VECTOR,))
    assert_same(value, np.full(3, 3, np.float32))
    assert_same(tangent, 2 * VECTOR)
    assert_same(xtrace.grad(lambda x: mapped(x).sum())(VECTOR), np.full(3, 2, np.float32))


def _product(api):
    told = []
    product = api.custom_batching.custom_vmap(lambda x, y: x * y)

    @product.def_vmap
    def _(size, in_batched, x, y):
        told.append((size, tuple(map(bool, in_batched)), x.shape, y.shape))
        return x * y, any(in_batched)

    return product, told


@case
def a_vmap_rule_is_told_of_values_mapped_together_with_tangents(api, lax, jnp):
    product, told = _product(api)
    one, xs = np.float32(2), VECTOR
    results = [
        api.vmap(lambda x, y, t: api.jvp(product, (x, y), (t, one)), (0, None, None))(xs, one, one),
        api.vmap(lambda x, y, t: api.jvp(product, (x, y), (t, one)), (0, None, 0))(xs, one, xs),
        api.vmap(lambda x, y, t: api.jvp(product, (x, y), (t, t)), (0, 0, None))(xs, xs, one),
        api.vmap(lambda x, y: api.jvp(lambda x: product(x, y), (x,), (x,)), (None, 0))(one, xs),
    ]
    for wrap in (lambda f: f, api.jit):
        both = api.vmap(lambda x, t: api.jvp(product, (x, x), (t, t)), (None, 0), out_axes=(None, 0))
        results.append(wrap(both)(one, xs))
    return told, results


def test_a_vmap_rule_of_values_some_of_which_are_mapped_without_their_tangent():
    # jax returns products of all pairs.
    product, told = _product(xtrace)
    both = xtrace.vmap(lambda x, y: xtrace.jvp(lambda x: product(x, y), (x,), (x,)))
    for found in both(VECTOR, VECTOR):
        assert_same(found, VECTOR * VECTOR)
    assert told == [(3, (True, True), (3,), (3,))]


def _over_two(api, function):
    return api.vmap(api.vmap(function, axis_name="j"), axis_name="i")


GRID = np.arange(2 * 3 * 6 * 2, dtype=np.float32).reshape(2, 3, 6, 2)


@case
def all_to_all_over_two_names(api, lax, jnp):
    return [_over_two(api, lambda x, names=names: lax.all_to_all(x, names, 0, 1))(GRID)
            for names in (("i", "j"), ("j", "i"))]  # fmt: skip


@case
def all_to_all_over_two_names_tiled(api, lax, jnp):
    exchanged = _over_two(api, lambda x: lax.all_to_all(x, ("i", "j"), 0, 1, tiled=True))
    return exchanged(GRID), api.jit(api.grad(lambda x: (exchanged(x) ** 2).sum()))(GRID)


@case
def all_to_all_over_three_names(api, lax, jnp):
    def exchanged(x):
        return lax.all_to_all(x, ("i", "k", "j"), 0, 1)

    x = np.arange(2 * 3 * 2 * 12 * 3, dtype=np.float32).reshape(2, 3, 2, 12, 3)
    return _over_two(api, api.vmap(exchanged, axis_name="k"))(x)


@case
def pswapaxes_over_two_names(api, lax, jnp):
    return api.jit(_over_two(api, lambda x: lax.pswapaxes(x, ("i", "j"), 0)))(GRID)


@case
def all_to_all_of_another_size(api, lax, jnp):
    return _over_two(api, lambda x: lax.all_to_all(x, ("i", "j"), 0, 0))(GRID[:, :, :5])
