"""Calls of rules and transformations that were met in use, with those like them: outcomes are those of jax."""

import jax
import jax.custom_batching
import jax.custom_derivatives
import jax.scipy.sparse.linalg
import numpy as np
import pytest

import xtrace
import xtrace.custom_batching
import xtrace.custom_derivatives
import xtrace.numpy
import xtrace.scipy.sparse.linalg
from tests.support.operands import assert_same
from tests.support.outcomes import assert_outcomes_equal

pytestmark = pytest.mark.thorough

VECTOR = np.array([1.0, 2.0, 3.0], np.float32)
MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]], np.float32)
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


@pytest.mark.drawn(0.15)
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


@pytest.mark.parametrize("call", ["jit", "checkpoint", "scan", "cond"])
def test_a_recomputed_product_of_a_call_inside_a_rule(call):
    # What is transposed computes the call's value together with its tangent.
    def differentiated(api, lax, jnp):
        calls = {
            "jit": api.jit(jnp.sin), "checkpoint": api.checkpoint(jnp.sin),
            "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=2)[0],
            "cond": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
        }
        inner = lambda x: jnp.tanh(calls[call](x))  # noqa: E731
        product = api.checkpoint(lambda x, v: api.jvp(inner, (x,), (v,))[1])
        outer = api.custom_jvp(inner)
        outer.defjvp(lambda p, t: (outer(*p), product(p[0], t[0])))
        gradient = api.grad(outer)
        return [api.jit(f)(1.5) for f in (gradient, api.grad(gradient), lambda x: api.jvp(gradient, (x,), (x,)))]

    assert_outcomes_equal(differentiated)


@case
def custom_root_whose_tangent_solve_closes_over_the_argument(api, lax, jnp):
    def root(a):
        twice = jnp.sqrt(a) * 2
        return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / twice)

    return (api.grad(root)(2.0), api.jit(api.grad(root))(2.0), api.grad(api.grad(root))(2.0),
            api.jvp(root, (2.0,), (1.0,)), api.vmap(api.grad(root))(VECTOR))


@case
def custom_linear_solve_whose_transpose_closes_over_the_system(api, lax, jnp):
    def total(a, b):
        scale = 2.0 * a.sum()
        return lax.custom_linear_solve(
            lambda x: a @ x, b, lambda _, y: jnp.linalg.solve(a, y),
            lambda _, y: jnp.linalg.solve(a.T, y) * scale / scale,
        ).sum()

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
            for names in (("i", "j"), ("j", "i"))]


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


# Complex systems: pulled back, and pushed forward

HERMITIAN = np.array([[3, 1 + 1j], [1 - 1j, 4]], np.complex64)
GENERAL = np.array([[3, 1 + 1j], [0.5j, 4]], np.complex64)


def _solutions(api, function, matrix, right, cotangent):
    value, pullback = api.vjp(function, matrix, right)
    return value, pullback(cotangent), api.jvp(function, (matrix, right), (matrix * matrix, 2 * right))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("solver", ["cg", "bicgstab", "gmres"])
def test_derivatives_of_iterative_solvers(solver, dtype):
    matrix = HERMITIAN if solver == "cg" else GENERAL
    matrix, right, cotangent = (np.real(x).astype(dtype) if dtype == np.float32 else x
                                for x in (matrix, np.array([1, 2j], dtype=np.complex64),
                                          np.array([1 + 2j, 3 - 1j], np.complex64)))
    for api in (xtrace, jax):

        def solution(a, b, api=api):
            return getattr(api.scipy.sparse.linalg, solver)(a, b, tol=1e-7)[0]

        found = _solutions(api, solution, matrix, right, cotangent)
        expected = _solutions(api, api.numpy.linalg.solve, matrix, right, cotangent)
        for x, y in zip(api.tree.leaves(found), api.tree.leaves(expected), strict=True):
            # The tolerance is that of the residual, and a derivative solves a second system.
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-5)
    if solver == "cg" and dtype == np.complex64:
        np.testing.assert_allclose(xtrace.vjp(lambda b: solution(matrix, b, xtrace), right)[1](cotangent)[0],
                                   [0.2 + 1.2j, 1 - 0.6j], atol=1e-5)


@case
def custom_linear_solve_of_a_complex_system(api, lax, jnp):
    def solution(b):
        return lax.custom_linear_solve(
            lambda x: GENERAL @ x, b, lambda _, y: jnp.linalg.solve(GENERAL, y),
            lambda _, y: jnp.linalg.solve(GENERAL.T, y),
        )

    b = np.array([1, 2j], np.complex64)
    return api.vjp(solution, b)[1](b + 1), api.jit(lambda b: api.vjp(solution, b)[1](b + 1))(b)


class Operator:
    shape = (2, 2)

    def __matmul__(self, x):
        return 2 * x


@case
def iterative_solvers_of_objects_with_a_shape_and_a_product(api, lax, jnp):
    linalg = api.scipy.sparse.linalg
    solvers = (linalg.cg, linalg.gmres, linalg.bicgstab)
    return [(s(Operator(), VECTOR[:2]), s(lambda x: 4 * x, VECTOR[:2], M=Operator())) for s in solvers]


@case
def iterative_solvers_of_scalars_of_python(api, lax, jnp):
    linalg = api.scipy.sparse.linalg
    solvers = (linalg.cg, linalg.gmres, linalg.bicgstab)
    return [(s(lambda x: 2 * x, 1.0)[0], s(lambda x: [2 * x[0], 3 * x[1]], [1.0, 2.0])[0]) for s in solvers]


# Python values


def _looking_at_residuals(api):
    seen = []
    function = api.custom_vjp(lambda x: x * 2)

    def bwd(residuals, ct):
        seen.append([type(x) is bool for x in residuals])
        return (ct * 2 if residuals[0] else ct,)

    function.defvjp(lambda x: (function(x), (True, 3, 2.5, x, False)), bwd)
    return function, seen


@case
def booleans_among_the_residuals(api, lax, jnp):
    function, seen = _looking_at_residuals(api)
    results = [api.grad(function)(1.0), api.jit(api.grad(function))(1.0), api.grad(api.jit(function))(1.0),
               api.vmap(api.grad(function))(VECTOR),
               api.grad(lambda x: lax.scan(lambda c, _: (function(c), None), x, None, length=2)[0])(1.0)]
    return results, sorted(set(map(tuple, seen)))


@case
def arguments_of_classes_that_look_at_their_leaves(api, lax, jnp):
    class Pair:
        def __init__(self, first, second):
            if isinstance(first, int):
                raise RuntimeError("no integers")
            self.first, self.second = first, second

    api.tree_util.register_pytree_node(
        Pair, lambda p: ((p.first, p.second) if not isinstance(p.first, str) else (p.second,), None),
        lambda _, children: Pair(*children),
    )
    pair = Pair(1.0, 2.0)
    return (api.jit(lambda p, x: x)(pair, 3.0), api.jit(lambda p, x: p.first * x)(pair, 3.0),
            api.jit(lambda p, x: 2 * x, donate_argnums=1)(pair, 3.0), api.grad(lambda x, p: x * 2)(3.0, pair),
            api.lax.cond(True, lambda p: p.first, lambda p: p.second, pair))


@case
def eval_shape_of_types(api, lax, jnp):
    struct = api.ShapeDtypeStruct((2,), np.float32)
    return [str(x) for x in api.tree.leaves((
        api.eval_shape(lambda x: {"a": x, "b": struct}, 1.0),
        api.eval_shape(lambda x: api.eval_shape(jnp.sin, x), VECTOR),
    ))]


@case
def types_are_no_results_of_jit(api, lax, jnp):
    return api.jit(lambda x: api.ShapeDtypeStruct((2,), np.float32))(1.0)


def test_a_vmap_rule_of_a_function_that_closes_over_an_array():
    # All operands of a branch are mapped where the condition is; an assertion of jax's own fails there.
    closed_over = xtrace.numpy.asarray(VECTOR)
    function = xtrace.custom_batching.custom_vmap(lambda x: x * closed_over.sum())
    function.def_vmap(lambda size, batched, x: (x * closed_over.sum(), batched[0]))
    looped = lambda x: xtrace.lax.fori_loop(0, 2, lambda i, y: function(y), x)  # noqa: E731
    mapped = xtrace.vmap(lambda x: xtrace.lax.cond(x > 1.5, looped, lambda x: x, x))
    expected = np.where(VECTOR > 1.5, 36 * VECTOR, VECTOR)
    for found in (mapped(VECTOR), xtrace.jit(mapped)(VECTOR), *xtrace.jvp(mapped, (VECTOR,), (VECTOR,))):
        assert_same(found, expected)


def test_a_mapped_branch_of_tangents_is_transposed():
    # jax has no transpose rule for the branch that is not taken.
    function = xtrace.custom_jvp(xtrace.numpy.sin)
    chosen = lambda x, t: xtrace.lax.cond(x > 0, lambda x, t: xtrace.numpy.cos(x) * t, lambda x, t: t, x, t)  # noqa: E731
    product = lambda x, t: xtrace.vmap(chosen)(x[None], t[None])[0]  # noqa: E731
    function.defjvp(lambda p, t: (function(*p), xtrace.jit(product)(p[0], t[0])))
    for x, slope in ((0.5, np.cos(np.float32(0.5))), (-0.5, np.float32(1))):
        np.testing.assert_allclose(xtrace.jit(xtrace.grad(function))(x), slope, rtol=1e-6)
        np.testing.assert_allclose(xtrace.grad(function)(x), slope, rtol=1e-6)


@case
def zero_from_primal_of_trees(api, lax, jnp):
    return api.custom_derivatives.zero_from_primal({"a": VECTOR, "b": 3, "c": (1.0, None)})


ACCURATE = ["cbrt", "exp", "expm1", "log", "log1p", "rsqrt", "sqrt", "tan", "tanh"]


@case
def primitives_bound_without_their_accuracy(api, lax, jnp):
    return [getattr(lax, f"{name}_p").bind(VECTOR / 8) for name in ACCURATE], lax.reduce_sum_p.bind(VECTOR, axes=(0,))


BOUND = {
    "mul": ((VECTOR, VECTOR), {}), "conj": ((VECTOR * np.complex64(1j),), {}), "conj of a real number": ((VECTOR,), {}),
    "svd": ((MATRIX,), {"full_matrices": False, "compute_uv": True, "subset_by_index": None}),
    "dce_sink": ((VECTOR,), {}), "reduce_sum": ((MATRIX,), {"axes": (0,)}),
}


@pytest.mark.parametrize("name", BOUND)
def test_primitives_bound_without_their_optional_parameters(name):
    # In jax a few of these cannot be compiled or transposed then.
    operands, parameters = BOUND[name]
    results = []
    for api in (xtrace, jax):
        lax, kind = api.lax, name.split()[0]
        primitive = getattr(lax, f"{kind}_p", None) or getattr(lax.linalg, f"{kind}_p")
        found = primitive.bind(*operands, **parameters)
        results.append(found if isinstance(found, (list, tuple)) else [found])
    for one, other in zip(*results, strict=True):
        assert_same(np.asarray(one), np.asarray(other))
    if name in ("svd", "dce_sink"):
        return
    function = getattr(xtrace.lax, kind)
    full = (lambda *x: function(x[0], (0,))) if kind == "reduce_sum" else function
    bound = getattr(xtrace.lax, f"{kind}_p")
    given = [lambda *x: bound.bind(*x, **parameters), full]
    for one, other in zip(*[
        [xtrace.jit(f)(*operands), xtrace.vmap(f)(*[np.stack([x, x], -1) for x in operands]),
         *xtrace.jvp(f, operands, operands), *(lambda y, pull: pull(y))(*xtrace.vjp(f, *operands))]
        for f in given
    ], strict=True):
        assert_same(np.asarray(one), np.asarray(other))


INTEGERS, FLAGS = np.array([[1, 2], [3, 4]], np.int32), MATRIX > 2


def calls_of_operations(lax, x):
    """Calls of operations that hold no programs: in jax the last equation of each says the parameters."""
    return [
        lambda: lax.integer_pow(x, 3), lambda: lax.exp(x), lambda: lax.reshape(x, (4,)), lambda: lax.rev(x, (0,)),
        lambda: lax.transpose(x, (1, 0)), lambda: lax.squeeze(x[None], (0,)), lambda: lax.concatenate([x, x], 0),
        lambda: lax.broadcast_in_dim(VECTOR, (2, 3), (1,)), lambda: lax.pad(x, 0.0, [(1, 1, 0), (0, 0, 1)]),
        lambda: lax.slice(x, (0, 0), (2, 1), (1, 2)), lambda: lax.dynamic_slice(x, (1, 1), (2, 1)),
        lambda: lax.split(x, (1, 1)), lambda: lax.iota(np.int32, 5), lambda: lax.dot(x, x, precision="highest"),
        lambda: lax.reduce_precision(x, 5, 3), lambda: lax.convert_element_type(x, np.int32),
        lambda: lax.bitcast_convert_type(x, np.int32), lambda: lax.reduce_max(x, (0,)), lambda: lax.reduce_sum(x, (0,)),
        lambda: lax.reduce_and(FLAGS, (0,)), lambda: lax.reduce_xor(INTEGERS, (0,)), lambda: lax.argmax(x, 0, np.int32),
        lambda: lax.cumsum(x), lambda: lax.cumlogsumexp(x, 1, True), lambda: lax.sort((VECTOR, VECTOR), num_keys=2),
        lambda: lax.top_k(x, 2), lambda: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"),
        lambda: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "SAME"), lambda: lax.clamp(0.0, x, 1.0),
        lambda: lax.select(FLAGS, x, x), lambda: lax.optimization_barrier((x, VECTOR)), lambda: lax.mul(x, x),
        lambda: lax.approx_max_k(VECTOR, 2), lambda: lax.linalg.cholesky(x), lambda: lax.linalg.qr(x),
        lambda: lax.linalg.lu(x), lambda: lax.linalg.triangular_solve(x, x, left_side=True), lambda: lax.conj(x),
        lambda: lax.linalg.svd(x, compute_uv=False), lambda: lax.linalg.householder_product(x, VECTOR[:2]),
        lambda: lax.complex(x, x), lambda: lax.expand_dims(x, (1,)), lambda: lax.rem(x, x), lambda: lax.clz(INTEGERS),
    ]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("number", range(44))
def test_primitives_are_bound_with_the_parameters_of_jax(number):
    calls = calls_of_operations(jax.lax, MATRIX)
    assert len(calls) == 44
    (*_, equation) = jax.make_jaxpr(calls[number])().jaxpr.eqns
    draw = np.random.default_rng(0)
    operands = []
    for x in equation.invars:
        values = draw.uniform(0.5, 2.5, x.aval.shape)
        square = x.aval.shape == (2, 2) and x.aval.dtype == np.float32
        operands.append((values @ values.T + np.eye(2) if square else values).astype(x.aval.dtype))
    name, found = equation.primitive.name, []
    for api in (xtrace, jax):
        lax, parameters = api.lax, dict(equation.params)
        if api is xtrace and parameters.get("precision") is not None:
            parameters["precision"] = tuple([lax.Precision[p.name] for p in parameters["precision"]])
        primitive = getattr(lax, f"{name}_p", None) or getattr(lax.linalg, f"{name}_p")
        results = primitive.bind(*operands, **parameters)
        found.append(results if isinstance(results, (list, tuple)) else [results])
    for one, other in zip(*found, strict=True):
        assert_same(np.asarray(one), np.asarray(other))


@case
def fori_loop_with_float_bounds(api, lax, jnp):
    return (
        lax.fori_loop(0.0, 3.0, lambda i, c: c + i, 0), lax.fori_loop(0.5, 3.0, lambda i, c: c + i, 0.0),
        api.jit(lambda n: lax.fori_loop(0.0, n, lambda i, c: c + i, 0.0))(2.5),
        api.grad(lambda x: lax.fori_loop(0.0, 3.0, lambda i, c: c * x, 1.0))(2.0),
    )


@pytest.mark.parametrize("bounds", [(0, 3.0), (0.0, 3), (np.float32(0), 3), (0, 3j)])
def test_bounds_of_two_kinds(bounds):
    assert_outcomes_equal(lambda api, lax, jnp: lax.fori_loop(*bounds, lambda i, c: c + 1, 0))


# Marks, callbacks and prints


def _attributes(api, **attributes):
    function = api.lax.composite(lambda x, **_: x * 2, "my.op")
    lines = api.jit(lambda x: function(x, **attributes)).lower(VECTOR).as_text().splitlines()
    (line,) = [line for line in lines if "stablehlo.composite" in line]
    return line.partition("composite_attributes = ")[2].partition(", decomposition")[0].replace('"', "")


@pytest.mark.parametrize("attributes", [
    {"a": np.ones(2, np.float32)}, {"a": np.arange(4).reshape(2, 2), "b": np.array(3.0), "c": np.array([True, False])},
    {"a": np.dtype(np.float32)}, {"a": None}, {"a": None, "b": "x"}, {"a": b"y"}, {"a": {"b": np.int8(1)}},
    {"a": np.float32(1.5), "b": 1.5, "c": np.float16(2), "d": np.int8(3), "e": 3, "f": True, "g": np.bool_(False)},
    {"a": float("inf"), "b": -0.0, "c": 1e300, "d": np.uint8(3)}, {"a": object()}, {"a": 1j}, {"a": np.float32},
], ids=lambda given: ", ".join(type(x).__name__ for x in given.values()))
def test_attributes_of_composites(attributes):
    assert_outcomes_equal(lambda api, lax, jnp: _attributes(api, **attributes))


def test_sequences_among_attributes_of_composites():
    # jax writes them without their types, which are the same.
    assert _attributes(xtrace, a=(1, 2), b=[]) == "{a = [1 : i64, 2 : i64], b = []}"


@case
def composites_have_no_derivative(api, lax, jnp):
    return api.jvp(lax.composite(lambda x: x * 2, "my.op"), (VECTOR,), (VECTOR,))


@case
def a_traced_attribute(api, lax, jnp):
    return api.jit(lambda x: lax.composite(lambda x, **_: x, "my.op")(x, k=x))(1.0)


def test_a_sink_that_stays_in_the_program():
    assert float(xtrace.jit(lambda x: (xtrace.lax.dce_sink(2 * x, prevent_mlir_dce=True), x)[1])(1.0)) == 1
    assert xtrace.lax.dce_sink(VECTOR, prevent_mlir_dce=True) is None


STRUCT = jax.ShapeDtypeStruct((3,), np.float32)


@pytest.mark.parametrize("returned", [lambda x: [x, x], lambda x: {"a": x, "b": x}, lambda x: (x, [x]), lambda x: x,
                                      lambda x: (x, x, x)])
def test_containers_that_callbacks_return(returned):
    def called(api, lax, jnp):
        try:
            return (api.pure_callback(returned, (STRUCT, STRUCT), VECTOR),
                    api.jit(lambda x: api.pure_callback(returned, (STRUCT, STRUCT), x))(VECTOR))
        except Exception as error:
            # jax raises a class of its own outside of programs.
            raise RuntimeError from error

    assert_outcomes_equal(called)


NESTINGS = {
    "vmap": lambda api, f: api.vmap(f),
    "vmap of jit": lambda api, f: api.vmap(api.jit(f)),
    "jit of vmap of jit": lambda api, f: api.jit(api.vmap(api.jit(f))),
    "grad of vmap of jit": lambda api, f: api.grad(lambda x: api.vmap(api.jit(f))(x).sum()),
    "vmap of grad of jit": lambda api, f: api.vmap(api.grad(api.jit(f))),
    "vmap of scan": lambda api, f: api.vmap(lambda x: api.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]),
    "jit of vmap of scan of jit": lambda api, f: api.jit(
        api.vmap(lambda x: api.lax.scan(lambda c, _: (api.jit(f)(c), None), x, None, length=2)[0])
    ),
    "vmap of fori_loop": lambda api, f: api.vmap(lambda x: api.lax.fori_loop(0, 2, lambda i, c: f(c), x)),
    "vmap of cond": lambda api, f: api.vmap(lambda x: api.lax.cond(True, f, f, x)),
    "vmap of checkpoint": lambda api, f: api.vmap(api.checkpoint(f)),
}


@pytest.mark.parametrize("name", NESTINGS)
def test_values_are_printed_from_first_to_last(name, capfd):
    # jax leaves the order to XLA, which begins with the last of them in some of these.
    def shown(x):
        xtrace.debug.print("{}", x)
        return x

    xtrace.block_until_ready(NESTINGS[name](xtrace, shown)(VECTOR))
    xtrace.effects_barrier()
    printed = [float(line) for line in capfd.readouterr().out.split()]
    assert printed == [1.0, 2.0, 3.0] * (len(printed) // 3) and printed


# What is refused


@case
def stop_gradient_of_a_function(api, lax, jnp):
    return lax.stop_gradient(lambda x: x)


@case
def stop_gradient_of_text(api, lax, jnp):
    return lax.stop_gradient({"a": None, "b": "x"})


@case
def a_traced_length_of_scan(api, lax, jnp):
    return api.jit(lambda n: lax.scan(lambda c, _: (c, None), 0.0, None, length=n))(3)


@case
def a_traced_unroll_of_scan(api, lax, jnp):
    return api.jit(lambda n: lax.scan(lambda c, _: (c, None), 0.0, None, length=3, unroll=n))(3)


FOREIGN = [({"legacy_backend_config": "x"}, {}), ({"custom_call_api_version": 2}, {"a": 1}), ({}, {}),
           ({"custom_call_api_version": 2, "legacy_backend_config": 3}, {})]


@pytest.mark.parametrize(("options", "attributes"), FOREIGN, ids=str)
def test_foreign_calls(options, attributes):
    def lowered(api, lax, jnp):
        call = api.ffi.ffi_call("foo", api.ShapeDtypeStruct((3,), np.float32), **options)
        return api.jit(api.grad(lambda x: call(x, **attributes).sum())).lower(VECTOR)

    assert_outcomes_equal(lowered)


@pytest.mark.parametrize("returned", [np.ones(2, np.float32), 1.0, "a zero of another shape",
                                      np.ones((3, 1), np.float32)], ids=str)
def test_backward_rules_with_symbolic_zeros_that_return_another_shape(returned):
    def differentiated(api, lax, jnp):
        function = api.custom_vjp(lambda x: x * 2)
        zero = api.custom_derivatives.SymbolicZero.from_primal_value(np.ones(2, np.float32))
        wrong = zero if isinstance(returned, str) else returned
        function.defvjp(lambda x: (x.value * 2, None), lambda _, ct: (wrong,), symbolic_zeros=True)
        return api.grad(lambda x: function(x).sum())(VECTOR)

    assert_outcomes_equal(differentiated)


@case
def extremes_of_windows_with_base_dilation(api, lax, jnp):
    weights = np.arange(1, 17, dtype=np.float32).reshape(2, 8)

    def of(start, computation, dilation=(1, 2)):
        def total(x):
            found = lax.reduce_window(x, start, computation, (1, 2), (1, 1), "SAME", base_dilation=dilation)
            return (found * weights[:, : found.shape[1]]).sum()

        return total

    x = np.array([[1, 3, 2, 5], [4, 0, 7, 2]], np.float32)
    functions = of(-np.inf, lax.max), of(np.inf, lax.min)
    results = [(api.grad(f)(x), api.jit(api.grad(f))(x), api.jvp(f, (x,), (x * x,)), api.vmap(api.grad(f))(x[None]))
               for f in functions]
    return results, api.grad(of(jnp.array(-np.inf), lax.max, (1, 1)))(x)


@case
def windows_with_arrays_for_initial_values(api, lax, jnp):
    def sums(start):
        return lambda x: lax.reduce_window(x, start, lax.add, (2,), (1,), "SAME") * x

    return [sums(s)(VECTOR) for s in (jnp.float32(0), jnp.array(0.0), np.float32(2), 1.0)], api.grad(
        lambda x: sums(jnp.array(0.0))(x).sum()
    )(VECTOR)


def test_a_rule_that_calls_one_of_the_next_order_is_mapped():
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    for package in (xtrace, jax):
        sinc = package.numpy.sinc
        results = [package.vmap(package.jit(sinc))(x), package.vmap(package.jit(package.grad(package.grad(sinc))))(x)]
        if package is xtrace:
            got = results
    for one, other in zip(got, results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
