"""Rules of users inside of each other, with leaves of every kind, and what is wrong with them: all as in jax."""

from functools import partial

import numpy as np
import pytest

from tests.support.outcomes import assert_outcomes_equal

x, v = np.float32(1.5), np.array([1.0, 2.0, 3.0], np.float32)
n, z = np.int32(3), np.complex64(1 + 2j)
CASES = {}


def case(function, marks=()):
    CASES[function.__name__] = pytest.param(function, id=function.__name__, marks=marks)
    return function


def slow_case(function):
    return case(function, pytest.mark.slow)


@case
def custom_jvp_int_arg_tangent_type(api, lax, jnp):
    seen = []

    @api.custom_jvp
    def f(x, n):
        return x * n

    def rule(p, t):
        seen.append((str(t[1].dtype), t[1].shape))
        return f(*p), t[0] * p[1]

    f.defjvp(rule)
    api.grad(f)(x, n)
    return seen


@case
def custom_jvp_int_jit(api, lax, jnp):
    seen = []

    @api.custom_jvp
    def f(x, n):
        return x * n

    def rule(p, t):
        seen.append((str(t[1].dtype), t[1].shape))
        return f(*p), t[0] * p[1]

    f.defjvp(rule)
    api.jit(api.grad(f))(x, n)
    return seen


@case
def custom_jvp_int_out(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x * 2, jnp.int32(3)

    f.defjvp(lambda p, t: (f(*p), (t[0] * 2, np.zeros((), api.dtypes.float0))))
    return api.jvp(f, (x,), (x,))


@case
def custom_jvp_int_out_int_tangent(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x * 2, jnp.int32(3)

    f.defjvp(lambda p, t: (f(*p), (t[0] * 2, jnp.int32(0))))
    return api.jvp(f, (x,), (x,))


@case
def custom_jvp_none(api, lax, jnp):
    @api.custom_jvp
    def f(x, y):
        return x

    f.defjvp(lambda p, t: (f(*p), t[0]))
    return api.grad(f)(x, None)


@case
def custom_jvp_dict(api, lax, jnp):
    @api.custom_jvp
    def f(d):
        return {"a": d["a"] * d["b"][0], "c": [None, d["b"][0]]}

    f.defjvp(lambda p, t: (f(*p), {"a": t[0]["a"] * 3 * p[0]["b"][0], "c": [None, t[0]["b"][0]]}))
    return api.jvp(f, ({"a": x, "b": (v,)},), ({"a": x, "b": (v,)},)), api.vjp(f, {"a": x, "b": (v,)})[1](
        {"a": v, "c": [None, v]}
    )


@case
def custom_jvp_wrong_struct(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x, x

    f.defjvp(lambda p, t: (f(*p), t[0]))
    return api.grad(lambda x: f(x)[0])(x)


@case
def custom_jvp_wrong_dtype(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (f(*p), t[0].astype(np.float16)))
    return api.jvp(f, (x,), (x,))


@case
def custom_jvp_wrong_shape(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (f(*p), jnp.stack([t[0], t[0]])))
    return api.jvp(f, (x,), (x,))


@case
def custom_jvp_primal_diff(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (p[0] * 2, t[0]))
    return f(x), api.jvp(f, (x,), (x,)), api.value_and_grad(f)(x)


@slow_case
def custom_jvp_nondiff(api, lax, jnp):
    @partial(api.custom_jvp, nondiff_argnums=(0, 2))
    def f(g, x, k):
        return g(x) * k

    f.defjvp(lambda g, k, p, t: (f(g, p[0], k), t[0] * k))
    return (
        api.grad(lambda x: f(jnp.sin, x, 3))(x),
        api.vmap(lambda x: f(jnp.sin, x, 3))(v),
        api.jit(api.grad(lambda x: f(jnp.sin, x, 3)))(x),
    )


@case
def custom_jvp_nondiff_tracer(api, lax, jnp):
    @partial(api.custom_jvp, nondiff_argnums=(1,))
    def f(x, k):
        return x * k

    f.defjvp(lambda k, p, t: (f(p[0], k), t[0] * k))
    return api.jit(lambda x, k: api.grad(f)(x, k))(x, 2.0)


@case
def custom_jvp_nondiff_differentiated(api, lax, jnp):
    @partial(api.custom_jvp, nondiff_argnums=(1,))
    def f(x, k):
        return x * k

    f.defjvp(lambda k, p, t: (f(p[0], k), t[0] * k))
    return api.grad(f, argnums=1)(x, x)


@slow_case
def custom_jvp_defjvps(api, lax, jnp):
    @api.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda t, o, x, y: t * y, None)
    return api.grad(f, (0, 1))(x, x)


@slow_case
def custom_jvp_empty(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x * 2

    f.defjvp(lambda p, t: (f(*p), t[0] * 3))
    return (
        api.jvp(f, (np.zeros((0,), "f"),), (np.zeros((0,), "f"),)),
        api.vmap(f)(np.zeros((3, 0), "f")),
        api.grad(lambda x: f(x).sum())(np.zeros((0,), "f")),
    )


@slow_case
def custom_jvp_complex(api, lax, jnp):
    @api.custom_jvp
    def f(x):
        return x * x

    f.defjvp(lambda p, t: (f(*p), t[0] * 3))
    return api.jvp(f, (z,), (z,)), api.grad(lambda x: jnp.real(f(x)))(z), api.grad(f, holomorphic=True)(z)


@case
def custom_vjp_int_grad_wrong(api, lax, jnp):
    @api.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (f(x, n), n), lambda n, g: (g * n, jnp.int32(0)))
    return api.grad(f)(x, n)


@case
def custom_vjp_float0(api, lax, jnp):
    @api.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (f(x, n), n), lambda n, g: (g * n, np.zeros((), api.dtypes.float0)))
    return api.grad(f, (0, 1), allow_int=True)(x, n)


@case
def custom_vjp_dict_none(api, lax, jnp):
    @api.custom_vjp
    def f(d):
        return d["a"] * d["b"]

    f.defvjp(lambda d: (f(d), d), lambda d, g: ({"a": g * d["b"], "b": None},))
    return api.grad(f)({"a": x, "b": x})


@case
def custom_vjp_wrong_struct(api, lax, jnp):
    @api.custom_vjp
    def f(d):
        return d["a"]

    f.defvjp(lambda d: (f(d), d), lambda d, g: ({"b": g},))
    return api.grad(f)({"a": x})


@case
def custom_vjp_not_tuple(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda d: (f(d), d), lambda d, g: g)
    return api.grad(f)(x)


@case
def custom_vjp_wrong_shape(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x.sum()

    f.defvjp(lambda d: (f(d), d), lambda d, g: (g,))
    return api.grad(f)(v)


@case
def custom_vjp_fwd_one(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda d: f(d), lambda d, g: (g,))
    return api.grad(f)(x)


@case
def custom_vjp_jvp_err(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda d: (d, None), lambda d, g: (g,))
    return api.jvp(f, (x,), (x,))


@slow_case
def custom_vjp_none_res_vmap_jit(api, lax, jnp):
    @api.custom_vjp
    def f(x, y):
        return {"o": x * y}

    f.defvjp(lambda x, y: (f(x, y), (None, {"y": y, "k": 3})), lambda r, g: (g["o"] * r[1]["y"], g["o"] * r[1]["k"]))

    def h(x, y):
        return f(x, y)["o"]

    return (
        api.vmap(api.grad(h, (0, 1)))(v, v),
        api.jit(api.vmap(api.grad(h, (0, 1)), (0, None)))(v, x),
        api.grad(lambda v: api.vmap(h, (0, None))(v, x).sum())(v),
    )


@case
def custom_vjp_nondiff(api, lax, jnp):
    @partial(api.custom_vjp, nondiff_argnums=(0,))
    def f(g, x):
        return g(x)

    f.defvjp(lambda g, x: (f(g, x), x), lambda g, r, c: (c * 7,))
    return api.grad(lambda x: f(jnp.cos, x))(x), api.vmap(api.grad(lambda x: f(jnp.cos, x)))(v)


@case
def custom_vjp_closure(api, lax, jnp):
    def outer(y):
        @api.custom_vjp
        def f(x):
            return x * y

        f.defvjp(lambda x: (x * y, None), lambda r, g: (g * 2,))
        return f(y)

    return outer(x), api.jit(outer)(x)


@case
def custom_vjp_closure_grad(api, lax, jnp):
    def outer(y):
        @api.custom_vjp
        def f(x):
            return x * y

        f.defvjp(lambda x: (x * y, None), lambda r, g: (g * 2,))
        return f(y)

    return api.grad(outer)(x)


@slow_case
def custom_vjp_scan(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), x), lambda r, g: (g * r,))

    def h(x):
        return lax.scan(lambda c, _: (f(c), f(c)), x, None, length=3)

    return (
        api.grad(lambda x: h(x)[0])(x),
        api.jit(api.grad(lambda x: h(x)[1].sum()))(x),
        api.vmap(api.grad(lambda x: h(x)[0]))(v),
    )


@slow_case
def custom_vjp_cond_remat(api, lax, jnp):
    @api.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), x), lambda r, g: (g * r,))

    def h(x):
        return lax.cond(x > 0, api.checkpoint(lambda y: f(y) * y), lambda y: y, x)

    return api.grad(h)(x), api.grad(h)(-x), api.vmap(api.grad(h))(v - 2), api.jit(api.grad(h))(x)


@case
def custom_vmap_basic(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(size, batched, x, y):
        return x * y + size, batched[0] or batched[1]

    return api.vmap(f, (0, None))(v, x), api.vmap(f)(v, v), f(x, x), api.jit(api.vmap(f, (None, 0)))(x, v)


@slow_case
def custom_vmap_tree(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(d):
        return {"o": d["a"] + 1, "n": d["n"]}

    @f.def_vmap
    def rule(size, batched, d):
        return {"o": d["a"] + 2, "n": d["n"]}, {"o": True, "n": batched[0]["n"]}

    return api.vmap(f, ({"a": 0, "n": None},))({"a": v, "n": n})


@case
def custom_vmap_wrong_struct(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(x):
        return x

    @f.def_vmap
    def rule(size, batched, x):
        return (x,), (True,)

    return api.vmap(f)(v)


@case
def custom_vmap_wrong_batched(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(x):
        return x

    @f.def_vmap
    def rule(size, batched, x):
        return x, (True, True)

    return api.vmap(f)(v)


@case
def custom_vmap_norule(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(x):
        return x

    return api.vmap(f)(v)


@slow_case
def custom_vmap_scan(api, lax, jnp):
    @api.custom_batching.custom_vmap
    def f(x):
        return x + 1

    @f.def_vmap
    def rule(size, batched, x):
        return x + 100, True

    return api.vmap(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, length=2))(v)


@slow_case
def custom_vjp_of_custom_vmap(api, lax, jnp):
    @api.custom_vjp
    @api.custom_batching.custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def rule(size, batched, x, y):
        return jnp.cos(x) * y, True

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, t: (t * kept[1], t * kept[0]))
    return api.vmap(f)(v, v), api.grad(f)(x, x), api.jit(api.vmap(api.grad(f)))(v, v)


@case
def vmap_of_numbers_that_are_not_mapped(api, lax, jnp):
    def f(x, n, k):
        return x + jnp.zeros(n), isinstance(n, int), n // 2, k * 2.0

    return api.vmap(f, in_axes=(0, None, None), out_axes=(0, None, None, None))(v, 3, 1.5)


@case
def remat_int_bool(api, lax, jnp):
    f = api.checkpoint(lambda x, n, b: (jnp.where(b, jnp.sin(x) * n, x), n + 1, ~b))
    return (
        f(x, n, np.bool_(True)),
        api.grad(lambda x: f(x, n, np.bool_(True))[0])(x),
        api.jvp(lambda x: f(x, n, np.bool_(True)), (x,), (x,)),
    )


@case
def scan_promote_err(api, lax, jnp):
    return lax.scan(lambda c, a: (c + a, c), np.int32(0), v)


@case
def scan_none(api, lax, jnp):
    return lax.scan(lambda c, a: ({"k": c["k"], "n": None}, None), {"k": x, "n": None}, None, length=2)


@case
def scan_empty(api, lax, jnp):
    return (
        lax.scan(lambda c, a: (c, a * 2), (), np.zeros((0, 2), "f")),
        lax.scan(lambda c, a: (c + a, a), x, np.zeros((0,), "f")),
        api.grad(lambda x: lax.scan(lambda c, a: (c * a, a), x, np.zeros((0,), "f"))[0])(x),
    )


@case
def scan_len_mismatch(api, lax, jnp):
    return lax.scan(lambda c, a: (c, a), x, (v, np.zeros(2, "f")))


@case
def scan_struct(api, lax, jnp):
    return lax.scan(lambda c, a: ((c, c), a), x, v)


@slow_case
def scan_int_grad(api, lax, jnp):
    def f(x, n):
        return lax.scan(lambda c, a: ((c[0] * a, c[1] + 1), c[1]), (x, n), v)

    return api.grad(lambda x: f(x, n)[0][0])(x), api.jvp(lambda x: f(x, n), (x,), (x,))


@slow_case
def scan_vmap_axes(api, lax, jnp):
    def f(c, xs):
        return lax.scan(lambda c, a: (c + a.sum(), a * c), c, xs)

    return api.vmap(f, (None, 1), (0, 2))(x, np.arange(12, dtype="f").reshape(3, 4)[..., None] * np.ones(2, "f"))


@slow_case
def cond_weak(api, lax, jnp):
    return lax.cond(True, lambda: 1.0, lambda: 2.0), api.jit(
        lambda p: lax.cond(p, lambda: 1.0, lambda: jnp.float32(2))
    )(True)


@case
def cond_mismatch(api, lax, jnp):
    return api.jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 1))(True)


@case
def cond_struct(api, lax, jnp):
    return api.jit(lambda p: lax.cond(p, lambda: (1.0,), lambda: [1.0]))(True)


@case
def cond_nonscalar(api, lax, jnp):
    return lax.cond(np.array([True]), lambda: 1.0, lambda: 2.0)


@case
def cond_none_dict(api, lax, jnp):
    return lax.cond(
        True, lambda d: {"a": d["a"], "n": None}, lambda d: {"a": d["a"] * 2, "n": None}, {"a": x, "q": None}
    )


@slow_case
def cond_vmap_grad(api, lax, jnp):
    def f(p, x):
        return lax.cond(p, lambda x: jnp.sin(x), lambda x: x * 0 + 1.0, x)

    return api.vmap(api.grad(f, 1))(np.array([True, False, True]), v), api.vmap(f, (0, None))(
        np.array([True, False]), x
    )


@case
def while_dict(api, lax, jnp):
    return lax.while_loop(
        lambda d: d["i"] < 3, lambda d: {"i": d["i"] + 1, "x": d["x"] * 2, "n": None}, {"i": 0, "x": x, "n": None}
    )


@case
def while_batched_pred(api, lax, jnp):
    return api.vmap(lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] * 2, c[1] + 1), (x, 0)))(v)


@slow_case
def fori_neg(api, lax, jnp):
    return lax.fori_loop(5, 2, lambda i, c: c + i, 0), lax.fori_loop(
        np.int8(0), np.int8(3), lambda i, c: c + i, np.int8(0)
    )


@case
def fori_mixed(api, lax, jnp):
    return api.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, jnp.float32(0)))(np.int16(3))


@slow_case
def associative_scans(api, lax, jnp):
    return (
        lax.associative_scan(jnp.add, v),
        lax.associative_scan(
            lambda a, b: {"k": a["k"] * b["k"], "m": jnp.maximum(a["m"], b["m"])},
            {"k": v, "m": np.array([3, 1, 2], np.int32)},
            reverse=True,
        ),
        lax.associative_scan(jnp.add, np.zeros((0,), "f")),
        api.grad(lambda v: lax.associative_scan(jnp.multiply, v)[-1])(v),
        api.vmap(lambda v: lax.associative_scan(jnp.add, v))(np.ones((2, 3), "f")),
    )


@case
def assoc_err(api, lax, jnp):
    return lax.associative_scan(jnp.add, (v, np.zeros(2, "f")))


@slow_case
def closure_convert_of_a_trace(api, lax, jnp):
    def f(y):
        g, consts = api.closure_convert(lambda x: jnp.sin(x) * y * n, x)
        return g(x, *consts)

    return api.grad(f)(x), f(x), api.jit(api.grad(f))(x)


@slow_case
def linear_solve(api, lax, jnp):
    A = np.array([[2.0, 1.0, 0], [1.0, 3.0, 0], [0, 0, 4]], "f")

    def s(A, b):
        return lax.custom_linear_solve(lambda x: A @ x, b, lambda mv, b: jnp.linalg.solve(A, b), symmetric=True)

    return (
        s(A, v),
        api.grad(lambda b: s(A, b).sum())(v),
        api.grad(lambda A: s(A, v).sum())(A),
        api.vmap(s, (None, 0))(A, np.ones((2, 3), "f")),
        api.jvp(lambda b: s(A, b), (v,), (v,)),
    )


@case
def linear_solve_notranspose(api, lax, jnp):
    A = np.eye(3, dtype="f") * 2
    return api.grad(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, lambda mv, b: b / 2).sum())(v)


@case
def linear_solve_tree(api, lax, jnp):
    return lax.custom_linear_solve(
        lambda d: {"a": d["a"] * 2, "b": d["b"] * 4},
        {"a": v, "b": x},
        lambda mv, b: {"a": b["a"] / 2, "b": b["b"] / 4},
        symmetric=True,
    )


@case
def linear_solve_wrong(api, lax, jnp):
    return lax.custom_linear_solve(lambda d: d, v, lambda mv, b: b[0])


@slow_case
def custom_root(api, lax, jnp):
    def r(a):
        return lax.custom_root(lambda y: y * y - a, 1.0, lambda f, y0: jnp.sqrt(a), lambda g, y: y / g(1.0))

    return r(x), api.grad(r)(x), api.vmap(api.grad(r))(v), api.jit(api.grad(api.grad(r)))(x)


@case
def custom_root_wrong(api, lax, jnp):
    return lax.custom_root(lambda y: y * y - 2, 1.0, lambda f, y0: (1.0, 1.0), lambda g, y: y / g(1.0))


@case
def grad_allow_int_tree(api, lax, jnp):
    return api.grad(lambda d: d["x"] * d["n"], allow_int=True)({"x": x, "n": n, "b": np.bool_(1)})


@case
def jvp_float0_on_float(api, lax, jnp):
    return api.jvp(jnp.sin, (x,), (np.zeros((), api.dtypes.float0),))


@slow_case
def gradient_given(api, lax, jnp):
    @api.custom_gradient
    def f(x, y):
        return x * y, lambda g: (g * 10, g * 20)

    return api.grad(f, (0, 1))(x, x), f(x, x), api.vmap(api.grad(f))(v, v)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("function", CASES.values())
def test_outcomes_are_those_of_jax(function):
    assert_outcomes_equal(function)
