"""Functions with rules of the user's own, under stacks of transformations as in jax; what rules get and must return."""

import functools
import itertools

import jax.custom_batching
import jax.custom_derivatives
import numpy as np
import pytest

import xtrace
import xtrace.custom_batching
import xtrace.custom_derivatives
import xtrace.scipy.special
from tests.support.operands import assert_same
from tests.support.rules import OURS, THEIRS
from xtrace._src.core.dtypes import float0
from xtrace.errors import UnexpectedTracerError

X = (np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2) / 8).astype(np.float32)


def of_custom_jvp(library):
    """Twice the true derivative, so that a rule that is passed over shows; the rule calls the function."""
    np_, api = library.np, library.api

    @api.custom_jvp
    def f(x, y):
        return np_.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        x, y = primals
        return f(x, y), 2 * tangents[0] * np_.cos(x) * y + tangents[1] * np_.sin(x) * 3

    return lambda x: f(x, x * 2)


def of_symbolic_zeros(library):
    np_, api = library.np, library.api
    symbolic = (xtrace if library is OURS else jax).custom_derivatives.SymbolicZero

    @api.custom_jvp
    def f(x, y, n):
        return {"first": np_.sin(x) * y * n, "second": y}

    def rule(primals, tangents):
        x, y, n = primals
        tx, ty, tn = tangents
        assert isinstance(tn, symbolic)
        moved = 2 * np_.cos(x) * y * n * tx
        if not isinstance(ty, symbolic):
            moved = moved + 5 * ty
        return f(x, y, n), {"first": moved, "second": ty}

    f.defjvp(rule, symbolic_zeros=True)

    def function(x):
        one, both = f(x, np_.cos(np.float32(2)), 3), f(x, x, 2)
        return one["first"] + both["first"] * both["second"]

    return function


def of_defjvps(library):
    np_, api = library.np, library.api

    @functools.partial(api.custom_jvp, nondiff_argnums=())
    def f(x, y, z):
        return x * np_.cos(y) + z

    f.defjvps(lambda t, result, x, y, z: 3 * t + result * 0, lambda t, result, x, y, z: np_.sin(y) * t * x, None)
    return lambda x: f(x, x, z=x * x)


def of_nondiff_jvp(library):
    api = library.api

    @functools.partial(api.custom_jvp, nondiff_argnums=(0,), nondiff_argnames="scale")
    def apply(function, x, scale=2.0):
        return function(x) * scale

    apply.defjvp(lambda function, scale, primals, tangents: (function(primals[0]) * scale, tangents[0] * scale * 7))
    return lambda x: apply(library.np.sin, x, scale=3.0) + apply(library.np.cos, x)


def of_closure(library):
    np_, api = library.np, library.api

    def function(x):
        constant = api.lax.stop_gradient(np_.exp(x))

        @api.custom_jvp
        def f(y):
            return y * constant

        f.defjvp(lambda p, t: (f(p[0]), 10 * t[0] * constant))
        return f(x)

    return function


def of_jitted_rule(library):
    np_, api = library.np, library.api

    @api.custom_jvp
    @api.jit
    def f(x):
        return np_.sin(x), x * 2

    @f.defjvp
    @api.jit
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return (np_.sin(x), x * 2), (2 * t * np_.cos(x), 5 * t)

    return lambda x: f(x)[0] * f(x)[1]


def of_custom_vjp(library):
    np_, api = library.np, library.api

    @api.custom_vjp
    def f(tree, y):
        return np_.sin(tree["x"]) * y, tree["n"]

    def fwd(tree, y):
        return (np_.sin(tree["x"]) * y, tree["n"]), (tree["x"], {"y": y})

    def bwd(residuals, cotangent):
        x, rest = residuals
        ct, integer = cotangent
        assert integer.dtype == float0
        return {"x": 2 * ct * np_.cos(x) * rest["y"], "n": None}, 3 * ct * np_.sin(x)

    f.defvjp(fwd, bwd)
    return lambda x: f({"x": x, "n": 3}, x * 2)[0]


def of_recursive_vjp(library):
    np_, api = library.np, library.api

    @api.custom_vjp
    def f(x, y):
        return np_.sin(x) * y

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda saved, ct: (2 * ct * np_.cos(saved[0]) * saved[1], None))
    return lambda x: f(x, np_.sum(x))


def of_shared_argument(library):
    np_, api = library.np, library.api

    @api.custom_vjp
    def f(x, shared):
        return x * shared

    f.defvjp(lambda x, s: (x * s, (x, s)), lambda saved, ct: (ct * saved[1], (2 * ct * saved[0]).sum()))

    def function(x):
        def loss(shared):
            return np_.sum(f(x, shared)) if not x.ndim else np_.sum(api.vmap(f, (0, None))(x.reshape(-1), shared))

        return x * api.grad(loss)(np_.float32(2))

    return function


def of_symbolic_vjp(library):
    np_, api = library.np, library.api
    module = (xtrace if library is OURS else jax).custom_derivatives

    @functools.partial(api.custom_vjp, nondiff_argnums=(1,))
    def f(x, scale, y):
        return x * scale, y * 2, y

    def fwd(x, scale, y):
        assert x.perturbed
        kept = x.value if y.perturbed else None
        x, y = module.custom_vjp_primal_tree_values((x, y))
        return (x * scale, y * 2, y), kept

    def bwd(scale, kept, cotangent):
        first, _, third = cotangent
        assert isinstance(third, module.SymbolicZero) and third.shape == first.shape
        return 2 * first * scale + (0 if kept is None else kept), None

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return lambda x: f(x, 3.0, np_.ones_like(x))[0] + f(x, 4.0, x)[0]


def of_custom_gradient(library):
    np_, api = library.np, library.api

    @api.custom_gradient
    def f(x, y):
        return np_.sin(x) * y, lambda ct: (2 * ct * np_.cos(x) * y, ct * np_.sin(x))

    @api.custom_gradient
    def clipped(x):
        return x, lambda ct: np_.minimum(ct, 0.5)

    return lambda x: clipped(f(x, x * 2))


def of_linear_call(library):
    np_, module = library.np, (xtrace if library is OURS else jax).custom_derivatives

    def function(x):
        scale = library.api.lax.stop_gradient(np_.exp(x))

        def forward(residual, tree):
            return {"out": tree["a"] * residual + tree["b"] * scale}

        def transpose(residual, cotangent):
            return {"a": cotangent["out"] * residual * 7, "b": cotangent["out"] * 2}

        return module.linear_call(forward, transpose, np_.float32(3), {"a": x, "b": x * x})["out"]

    return function


JVP = {"symbolic zeros": of_symbolic_zeros, "defjvps": of_defjvps,
       "nondiff": of_nondiff_jvp, "jitted rule": of_jitted_rule}
VJP = {"recursive": of_recursive_vjp, "symbolic": of_symbolic_vjp, "custom_gradient": of_custom_gradient}


def transformed(library, function, stack):
    """Return `function` under the transformations, the last one outermost; each keeps the shape of what it maps."""
    api, np_ = library.api, library.np
    for name in stack:
        inner = function
        if name == "jit":
            function = api.jit(inner)
        elif name == "grad":
            function = api.grad(lambda x, inner=inner: np_.sum(inner(x)))
        elif name == "vmap":
            function = api.vmap(inner, 1, 1)
        else:
            function = functools.partial(lambda inner, x: api.jvp(inner, (x,), (x * 0.5 + 1,))[1], inner)
    return function


def check(make, stack, **options):
    got, expected = (transformed(lib, make(lib), stack)(lib.array(X)) for lib in (OURS, THEIRS))
    assert_same(got, expected, 64, f"{stack}", **options)


STACKS = [s for n in (0, 1, 2) for s in itertools.product(("jit", "grad", "vmap", "jvp"), repeat=n)]
FEW = [(), ("jit",), ("jvp",), ("jit", "grad"), ("grad", "jit"), ("grad", "vmap"), ("vmap", "grad"), ("jvp", "vmap"),
       ("vmap", "jvp"), ("grad", "grad"), ("vmap", "jit", "grad")]
DEEP = [("grad", "vmap", "jit"), ("vmap", "jit", "grad"), ("jit", "vmap", "grad"), ("vmap", "grad", "grad")]


# A rule that closes over a tracer of a jitted function does not outlive that.
WITHIN_JIT = [s for s in STACKS + DEEP if ("jit" not in s[:-1] and "grad" in s) or len(s) == 1]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("stack", STACKS + DEEP, ids="-".join)
def test_custom_jvp_under_transformations(stack):
    check(of_custom_jvp, stack)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", JVP)
@pytest.mark.parametrize("stack", FEW, ids="-".join)
def test_kinds_of_custom_jvp(name, stack):
    check(JVP[name], stack)


@pytest.mark.parametrize("stack", WITHIN_JIT, ids="-".join)
def test_rules_may_close_over_tracers(stack):
    check(of_closure, stack)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("stack", [s for s in STACKS + DEEP if "jvp" not in s], ids="-".join)
def test_custom_vjp_under_transformations(stack):
    check(of_custom_vjp, stack)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", VJP)
@pytest.mark.parametrize("stack", [s for s in FEW if "jvp" not in s], ids="-".join)
def test_kinds_of_custom_vjp(name, stack):
    check(VJP[name], stack)


@pytest.mark.parametrize("stack", [("grad", "jvp"), ("jit", "grad", "jvp"), ("grad", "vmap", "jvp")], ids="-".join)
def test_forward_over_reverse_differentiates_the_rules(stack):
    check(of_custom_vjp, stack)
    check(of_symbolic_vjp, stack)


BATCHED = [(), ("jit",), ("vmap",), ("grad",), ("vmap", "grad"), ("grad", "vmap"), ("jit", "grad", "vmap"),
           ("vmap", "jit", "grad")]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("stack", BATCHED, ids="-".join)
def test_the_cotangent_of_a_shared_argument_is_summed(stack):
    check(of_shared_argument, stack)


@pytest.mark.parametrize("stack", [(), ("jit",), ("grad",), ("jvp",), ("jit", "grad"), ("grad", "jit")], ids="-".join)
def test_linear_call(stack):
    check(of_linear_call, stack)


@pytest.mark.parametrize("stack", BATCHED, ids="-".join)
def test_linear_call_is_batched(stack):
    # jax cannot, so what is expected is its result without vmap: the function works element by element.
    got = transformed(OURS, of_linear_call(OURS), stack)(OURS.array(X))
    expected = transformed(THEIRS, of_linear_call(THEIRS), [s for s in stack if s != "vmap"])(THEIRS.array(X))
    assert_same(got, expected, 64)


def test_linear_call_is_transposed_by_what_it_was_given():
    for library, module in ((OURS, xtrace.custom_derivatives), (THEIRS, jax.custom_derivatives)):
        call = functools.partial(module.linear_call, lambda r, x: x * r, lambda r, ct: ct * r * 7, np.float32(3))
        transpose = library.api.linear_transpose
        x = np.float32(1)
        once = lambda y: transpose(call, x)(y)[0]  # noqa: B023, E731
        assert [float(call(x)), float(once(x)), float(transpose(once, x)(x)[0])] == [3, 21, 3]
    call = xtrace.custom_derivatives.linear_call
    with pytest.raises(NotImplementedError, match="residual_args"):
        xtrace.grad(lambda r: call(lambda r, x: x * r, lambda r, x: x, r, r))(1.0)
    with pytest.raises(TypeError, match="must return what has the structure and types of the linear arguments"):
        xtrace.grad(lambda x: call(lambda r, x: x, lambda r, x: (x, x), 1.0, x))(1.0)


def test_closure_convert():
    def make(library):
        np_, api = library.np, library.api

        def function(x):
            f, consts = api.closure_convert(lambda y: {"y": y * np_.sin(x) * X}, x)
            assert len(consts) == 1
            return np_.sum(f(x * 2, *[c * 3 for c in consts])["y"])

        return [api.grad(function), api.jit(function), api.jit(api.grad(function)), api.grad(api.jit(function))]

    for ours, theirs in zip(make(OURS), make(THEIRS), strict=True):
        assert_same(ours(OURS.array(X)), theirs(THEIRS.array(X)), 64)
    assert xtrace.closure_convert(lambda y: y * X, 1.0)[1] == []
    with pytest.raises(TypeError, match="same structure as the example arguments"):
        xtrace.closure_convert(lambda y: y, 1.0)[0]((1.0, 2.0))


def within(library, kind):
    """A function whose loop, branch or checkpoint has both kinds of rules inside."""
    np_, api = library.np, library.api

    @api.custom_jvp
    def bent(x):
        return np_.where(x > 0.5, x, 0.5 * x)

    bent.defjvp(lambda p, t: (bent(*p), t[0] * np_.where(p[0] > 0.5, 3.0, 0.1).astype(np.float32)))

    @api.custom_vjp
    def f(x, y):
        return np_.sin(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)), lambda saved, c: (2 * c * np_.cos(saved[0]) * saved[1], c * np_.sin(saved[0]))
    )

    def step(c, a):
        c = bent(f(c, a)) + c
        return c, f(c, c)

    def function(x):
        if kind == "scan":
            c, ys = api.lax.scan(step, x * 0, np_.stack([x, x * 2, x * 3]))
            return c + np_.sum(ys, 0)
        if kind == "fori_loop":
            return api.lax.fori_loop(0, 3, lambda i, c: step(c, x)[0], x)
        if kind == "cond":
            return api.lax.cond(np_.sum(x) > 1, lambda x: step(x, x)[0], lambda x: f(x, 3 * x), x)
        if kind == "map":
            return np_.sum(api.lax.map(lambda a: step(a, x)[0], np_.stack([x, x * 2])), 0)
        return api.checkpoint(lambda x: step(x, x)[1])(x)

    return function


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("kind", ["scan", "fori_loop", "cond", "map", "checkpoint"])
@pytest.mark.parametrize("stack", [(), ("grad",), ("vmap", "jit", "grad"), ("grad", "vmap")], ids="-".join)
def test_rules_inside_control_flow(kind, stack):
    check(functools.partial(within, kind=kind), stack)


def test_second_derivatives_of_rules_in_a_loop_are_those_of_the_unrolled_one():
    f = xtrace.custom_jvp(lambda x: xtrace.numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), 2 * t[0] * f(*p)))

    def second(loop):
        return xtrace.grad(xtrace.grad(loop))(np.float32(0.7))

    unrolled = second(lambda x: f(f(f(x))))
    assert_same(second(lambda x: xtrace.lax.fori_loop(0, 3, lambda i, c: f(c), x)), unrolled)


# custom_vmap


def of_custom_vmap(library):
    np_ = library.np
    batching = (xtrace if library is OURS else jax).custom_batching

    @batching.custom_vmap
    def f(x, tree):
        return {"out": np_.sin(x) * tree["y"], "y": tree["y"]}

    @f.def_vmap
    def rule(size, in_batched, x, tree):
        assert size == 2 and in_batched[0] and x.shape[0] == 2
        batched = in_batched[1]["y"]
        y = tree["y"] if batched else np_.broadcast_to(tree["y"], (2, *tree["y"].shape))
        return {"out": np_.cos(x) * y, "y": tree["y"]}, {"out": True, "y": batched}

    def function(x):
        found = f(x, {"y": x * 2})["out"] + f(x, tree={"y": np.ones(x.shape, np.float32)})["out"]
        return found

    return function


# jax has no reverse mode here.
@pytest.mark.parametrize("stack", [s for s in STACKS if "grad" not in s and ("vmap" in s or len(s) < 2)], ids="-".join)
def test_custom_vmap(stack):
    check(of_custom_vmap, stack)


def test_custom_vmap_differentiated_in_reverse_is_its_function():
    f = of_custom_vmap(OURS)
    x = OURS.array(X)
    np.testing.assert_allclose(
        xtrace.grad(lambda x: xtrace.numpy.sum(f(x)))(x), (2 * X + 1) * np.cos(X) + 2 * np.sin(X), rtol=1e-5
    )
    _, slope = xtrace.vmap(xtrace.vmap(xtrace.vmap(xtrace.value_and_grad(f))))(x)
    np.testing.assert_allclose(slope, (2 * X + 1) * np.cos(X) + 2 * np.sin(X), rtol=1e-5)


def test_sequential_vmap():
    def make(library):
        batching = (xtrace if library is OURS else jax).custom_batching
        f = batching.sequential_vmap(lambda x, y: (library.np.sin(x) * y["y"], y))
        return library.api.vmap(f, (1, None)), library.api.jit(library.api.vmap(lambda x: f(x, {"y": x})))

    for which in (0, 1):
        got, expected = (
            make(lib)[which](*[lib.array(X), {"y": lib.array(X[0])}][: 2 - which]) for lib in (OURS, THEIRS)
        )
        assert_same(got, expected)


BAD_VMAP = {
    "must return a pair": lambda size, batched, x: x,
    "output batching specification": lambda size, batched, x: (x, (True, True)),
    "does not match that of original": lambda size, batched, x: ((x, x), (True, True)),
    "returned f32\\[\\] as batched": lambda size, batched, x: (x[0], True),
}


@pytest.mark.parametrize("message", BAD_VMAP)
def test_a_wrong_batching_rule_is_named(message):
    f = xtrace.custom_batching.custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="No batching rule defined"):
        f(1.0)
    f.def_vmap(BAD_VMAP[message])
    with pytest.raises(ValueError, match=message):
        xtrace.vmap(f)(np.ones(3, np.float32))


# Values that Python sees


def test_functions_and_rules_branch_on_values():
    def make(api):
        @api.custom_jvp
        def f(x):
            return x * 2 if x > 0 else -x

        f.defjvp(lambda p, t: (f(p[0]), t[0] * (10 if p[0] > 0 else 20)))

        @api.custom_vjp
        def g(x, flag):
            return x * 3 if x > 0 and flag > 0 else -x

        g.defvjp(lambda x, flag: (g(x, flag), x), lambda x, ct: (ct * (30 if x > 0 else 40), None))
        return lambda x: g(f(x) * 1.5, 3)

    f, reference = make(xtrace), make(jax)
    for x in (1.5, -2.0):
        assert float(f(x)) == float(reference(x))
        assert float(xtrace.grad(f)(x)) == float(jax.grad(reference)(x))
    shared = xtrace.vmap(lambda x: f(2.0) * x)(np.ones(2, np.float32))
    assert shared.tolist() == [float(reference(2.0))] * 2


def test_rules_get_numbers_that_know_their_dtype():
    def run(api, wrapper):
        seen = []

        @api.custom_jvp
        def f(x, n, y):
            return x * n + y

        f.defjvp(lambda p, t: (seen.append((p, t)), (f(*p), t[0]))[1])
        assert float(wrapper(api)(api.grad(lambda x: f(x, 3, 2.0)))(1.0)) == 1
        (_, n, y), (_, tn, ty) = seen[0]
        assert tn.dtype == float0 and tn.shape == () and ty.dtype == np.float32
        return [(repr(x), x + 1, x.dtype, x.aval.weak_type) for x in (n, y)]

    for wrapper in (lambda api: lambda f: f, lambda api: api.jit):
        assert run(xtrace, wrapper) == run(jax, wrapper)


@pytest.mark.parametrize("make", [
    lambda api: api.custom_jvp, lambda api: api.custom_vjp, lambda api: api.custom_batching.custom_vmap,
    lambda api: api.custom_batching.sequential_vmap,
], ids=["jvp", "vjp", "vmap", "sequential"])
def test_functions_that_are_called_alone_get_values_with_a_dtype(make):
    def run(api):
        seen = []

        def function(x, tree):
            leaves = [x, *tree["pair"]]
            seen.append([str(v.dtype) for v in leaves])
            return x, 3, tree["pair"][0] * 2

        f = make(api)(function)
        for name in ("defjvp", "def_vmap"):
            if hasattr(f, name):
                getattr(f, name)(lambda *args: None)
        if hasattr(f, "defvjp"):
            f.defvjp(lambda *args: None, lambda *args: None)
        results = f(1.0, {"pair": (2, np.arange(2.0))})
        return seen, [(float(r), str(getattr(r, "dtype", "int"))) for r in results]

    assert run(xtrace) == run(jax)


def test_numbers_stay_numbers_in_functions_with_rules():
    def values(api):
        f = api.custom_jvp(lambda x, y: x**2 + y)
        f.defjvp(lambda p, t: (f(*p), t[0] ** 2))
        yield api.jvp(f, (2.0, 3.0), (1.0, 3.0))
        yield api.jvp(lambda x: f(x, 3.0), (2.0,), (3.0,))
        yield api.jvp(lambda x: f(x, 3), (np.float32(2.0),), (np.float32(3.0),))[0]
        same = api.custom_jvp(lambda x: x)
        same.defjvp(lambda p, t: (p[0], t[0]))
        yield api.jvp(same, (2.0,), (3.0,))
        # Inside of jit a number is an array; in jax a tracer.
        shaped = api.custom_jvp(lambda x, y: x * y)
        shaped.defjvp(lambda p, t: (shaped(*p), t[0] * p[1] + float(p[1].ndim)))
        yield api.jit(api.grad(lambda x: api.jit(lambda y: shaped(y, 3.0))(x)))(2.0)
        g = api.custom_vjp(lambda x, y: x * y)
        g.defvjp(
            lambda x, y: (x * y, (x, y, y.dtype.itemsize)), lambda saved, ct: (ct * saved[1], ct * saved[0] * saved[2])
        )
        yield api.grad(lambda x: g(x, 3.0))(2.0)
        yield api.jit(api.grad(g, 1))(2.0, 3.0), api.jit(lambda: api.grad(g, 1)(2.0, 3.0))()

    for got, expected in zip(values(xtrace), values(jax), strict=True):
        assert repr(got) == repr(expected)

    def overflow(api):
        f = api.custom_jvp(lambda x, n: x * n)
        f.defjvp(lambda p, t: (f(*p), t[0]))
        return api.jit(lambda x: f(x, 2**40))(1.0)

    for api in (xtrace, jax):
        with pytest.raises(OverflowError):
            overflow(api)


def test_integer_arguments_have_no_gradient():
    def make(api):
        f = api.custom_vjp(lambda x, n: x * n)
        f.defvjp(lambda x, n: (x * n, (x, n)), lambda saved, ct: (ct * saved[1], np.zeros((), float0)))
        return api.grad(f, argnums=(0, 1), allow_int=True)

    got, expected = make(xtrace)(2.0, 3), make(jax)(2.0, 3)
    assert float(got[0]) == float(expected[0]) == 3
    assert got[1].dtype == expected[1].dtype == float0


# Text


def test_jaxprs_read_as_in_jax():
    def make(api, np_):
        @api.custom_jvp
        def f(x, y):
            return np_.sin(x) * y

        @f.defjvp
        def f_jvp(p, t):
            return f(*p), t[0]

        @api.custom_vjp
        def g(x):
            return x * x

        def forward(x):
            return g(x), x

        def backward(saved, ct):
            return (ct * saved,)

        g.defvjp(forward, backward)
        return [f, api.vmap(f), lambda x, y: g(x), lambda x, y: api.lax.stop_gradient(x) * y]

    x = np.ones(3, np.float32)
    for ours, theirs in zip(make(xtrace, xtrace.numpy), make(jax, jax.numpy), strict=True):
        assert str(xtrace.make_jaxpr(ours)(x, x)) == str(jax.make_jaxpr(theirs)(x, x))


def test_rules_leave_no_trace_in_the_program():
    f = xtrace.custom_jvp(lambda x: xtrace.numpy.sin(x))
    f.defjvp(lambda p, t: (p[0], t[0]))
    text = xtrace.lower(lambda x: f(xtrace.lax.stop_gradient(x)), np.float32(1)).as_text()
    assert "stablehlo.sine" in text and "call" not in text


# Errors


def test_calls_before_rules_are_defined():
    for kind in (xtrace.custom_jvp, xtrace.custom_vjp):
        with pytest.raises(AttributeError, match=f"defined for {kind.__name__} function <lambda> using def"):
            kind(lambda x: x)(1.0)


def test_forward_mode_through_custom_vjp_is_refused():
    g = xtrace.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, None), lambda saved, ct: (ct,))
    for f in (g, xtrace.jit(g)):
        with pytest.raises(TypeError, match="can't apply forward-mode autodiff \\(jvp\\) to a custom_vjp function"):
            xtrace.jvp(f, (1.0,), (1.0,))
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        xtrace.linearize(g, 1.0)[1](1.0)
    with pytest.raises(TypeError, match="can't apply forward-mode autodiff"):
        xtrace.jit(lambda x: xtrace.linearize(g, x)[1](x))(1.0)


def test_closed_over_values_are_not_differentiated():
    def outer(kind, x):
        f = kind(lambda y: y * x)
        if kind is xtrace.custom_jvp:
            f.defjvp(lambda p, t: (f(p[0]), t[0] * x))
        else:
            f.defvjp(lambda y: (y * x, None), lambda saved, ct: (ct * 2,))
        return f(2.0)

    for kind in (xtrace.custom_jvp, xtrace.custom_vjp):
        for wrap in (lambda f: f, xtrace.jit):
            with pytest.raises(UnexpectedTracerError, match="with respect to a closed-over value"):
                xtrace.grad(wrap(functools.partial(outer, kind)))(1.0)


def test_traced_arguments_cannot_be_nondiff_in_custom_vjp():
    f = xtrace.custom_vjp(lambda c, x: c * x, nondiff_argnums=(0,))
    f.defvjp(lambda c, x: (c * x, None), lambda c, saved, ct: (ct,))
    for call in (xtrace.grad(f), xtrace.jit(f), xtrace.vmap(f)):
        with pytest.raises(UnexpectedTracerError, match="argument 0 to the custom_vjp function <lambda>, a position"):
            call(np.ones(2, np.float32) if call.__name__ != "gradient" else 1.0, np.ones(2, np.float32))


def test_traced_nondiff_arguments_of_custom_jvp_are_constants():
    def make(api):
        f = api.custom_jvp(lambda c, x: c * x, nondiff_argnums=(0,))
        f.defjvp(lambda c, p, t: (c * p[0], t[0] * c * 3))
        return api.grad(f, (0, 1)), api.jit(api.grad(f, (0, 1)))

    for ours, theirs in zip(make(xtrace), make(jax), strict=True):
        assert [float(g) for g in ours(2.0, 3.0)] == [float(g) for g in theirs(2.0, 3.0)] == [0, 6]


def test_arguments_are_resolved():
    f = xtrace.custom_jvp(lambda x, *, k=2: x * k)
    f.defjvp(lambda p, t: (p[0], t[0]))
    assert float(f(3.0)) == 6 and float(xtrace.jit(f)(3.0)) == 6
    with pytest.raises(TypeError, match="could not be resolved to positions: k"):
        f(3.0, k=1)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        xtrace.jit(lambda: f())()
    with pytest.raises(ValueError, match="nondiff_argnames has 'z'; the parameters of <lambda> are x, y"):
        xtrace.custom_vjp(lambda x, y: x, nondiff_argnames="z")
    g = xtrace.custom_jvp(lambda x, tree: x)
    g.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match=r"argument tree\['name'\] of <lambda>: 'text' of type .* is no array; mark it"):
        xtrace.grad(lambda x: g(x, {"name": "text"}))(1.0)
    g.defjvps(lambda t, out, x, tree: t)
    with pytest.raises(ValueError, match="1 rules by defjvps and 2 arguments"):
        xtrace.grad(g)(1.0, 2.0)


def with_jvp(rule):
    f = xtrace.custom_jvp(lambda x, y: {"a": x * y, "b": x})
    f.defjvp(rule)
    return lambda x, y: f(x, y)["a"]


BAD_JVP = [
    ("must produce a pair", lambda p, t: p[0]),
    ("equal container \\(pytree\\) structures", lambda p, t: ({"a": p[0], "b": p[0]}, (t[0], t[0]))),
    ("equal container \\(pytree\\) structures", lambda p, t: ({"a": p[0], "b": p[0]}, None)),
    (r"at output\['b'\] got: primal f32\[\] with tangent f32\[3\]",
     lambda p, t: ({"a": p[0], "b": p[0]}, {"a": t[0], "b": np.ones(3, np.float32)})),
    (r"at output\['b'\] got: primal f32\[\] with tangent i32\[\]",
     lambda p, t: ({"a": p[0], "b": p[0]}, {"a": t[0], "b": np.int32(1)})),
    (r"rule <lambda>: 'text' of type <class 'str'> at output\['a'\] is not an array",
     lambda p, t: ({"a": "text", "b": p[0]}, {"a": t[0], "b": t[0]})),
]


@pytest.mark.parametrize("message, rule", BAD_JVP)
def test_a_wrong_jvp_rule_is_named(message, rule):
    for wrap in (lambda f: f, xtrace.jit):
        with pytest.raises(TypeError, match=message):
            xtrace.grad(wrap(with_jvp(rule)))(1.0, 2.0)


def test_rules_return_what_the_function_does():
    for rule, message in (
        (lambda p, t: ((p[0], p[0]), (t[0], t[0])), "of the same container/pytree structure"),
        (lambda p, t: ({"a": p[0], "b": np.ones(3, np.float32)}, {"a": t[0], "b": np.ones(3, np.float32)}),
         r"at output\['b'\] it is f32\[3\], while <lambda> returned f32\[\]"),
    ):
        with pytest.raises(TypeError, match=message):
            xtrace.grad(xtrace.jit(with_jvp(rule)))(1.0, 2.0)
        f = xtrace.custom_vjp(lambda x, y: {"a": x * y, "b": x})
        f.defvjp(lambda x, y, rule=rule: (rule((x, y), (x, y))[0], None), lambda saved, ct: (None, None))
        with pytest.raises(TypeError, match=message):
            xtrace.grad(xtrace.jit(lambda x, y, f=f: f(x, y)["a"]))(1.0, 2.0)


BAD_VJP = [
    (TypeError, "must produce a pair .* but instead of a pair the fwd rule", lambda x, y: y, None),
    (TypeError, r"residuals of fwd rule <lambda>: 'text' of type <class 'str'> at output\[1\] is not an array",
     lambda x, y: (x[0] * y, (y, "text")), None),
    (TypeError, "a tuple of length equal to the number of arguments", None, lambda r, ct: ([ct, ct],)),
    (TypeError, "a tuple of length equal to the number of arguments", None, lambda r, ct: ct),
    (TypeError, "a tuple of length equal to the number of arguments", None, lambda r, ct: ({"a": ct}, ct)),
    (ValueError, r"for argument x\[1\] the bwd rule produced an output of type f32\[3\].*so the shapes do not match",
     None, lambda r, ct: ([ct, np.ones(3, np.float32)], ct)),
    (TypeError, r"for argument y the bwd rule produced 'text'", None, lambda r, ct: (None, "text")),
    (TypeError, r"for argument y the bwd rule produced c64\[\] .*take its real part", None,
     lambda r, ct: (None, ct * np.complex64(1j))),
]


@pytest.mark.parametrize("error, message, fwd, bwd", BAD_VJP)
def test_a_wrong_vjp_rule_is_named(error, message, fwd, bwd):
    f = xtrace.custom_vjp(lambda x, y: x[0] * y)
    f.defvjp(fwd or (lambda x, y: (x[0] * y, None)), bwd or (lambda r, ct: (None, None)))
    for wrap in (lambda f: f, xtrace.jit):
        with pytest.raises(error, match=message):
            xtrace.grad(wrap(lambda x, y: f(x, y)), argnums=(0, 1))([1.0, 2.0], 3.0)


def test_a_rule_that_outlives_what_it_closes_over_is_named():
    def outer(x):
        c = xtrace.numpy.exp(x)
        f = xtrace.custom_jvp(lambda y: y)

        @f.defjvp
        def rule(p, t):
            return p[0] * c, t[0]

        return f(x)

    with pytest.raises(UnexpectedTracerError) as caught:
        xtrace.grad(xtrace.jit(outer))(1.0)
    assert "while the custom rule rule was called" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("make", [of_custom_jvp, of_custom_vjp, of_custom_vmap, of_linear_call, of_custom_gradient])
def test_recorded_rules_hold_no_tracers(make):
    with xtrace.checking_leaks():
        xtrace.make_jaxpr(make(OURS))(X)


@pytest.mark.parametrize("library", [xtrace, jax], ids=["xtrace", "jax"])
def test_values_of_primals_need_primals(library):
    module = library.custom_derivatives
    x, y = module.CustomVJPPrimal(1.0, True), module.CustomVJPPrimal(2, False)
    assert module.custom_vjp_primal_tree_values([x, {"y": y}]) == [1.0, {"y": 2}]
    with pytest.raises(TypeError, match="unexpected leaf type <class 'float'>"):
        module.custom_vjp_primal_tree_values([x, 2.0])


def test_symbolic_zeros_and_zero_tangents():
    module = xtrace.custom_derivatives
    zero = module.SymbolicZero.from_primal_value(np.ones((2, 3), np.float32))
    assert (zero.shape, zero.dtype, zero.ndim, zero.size, repr(zero)) == ((2, 3), np.float32, 2, 6, "SymbolicZero")
    assert module.zero_from_primal(1).dtype == float0
    assert module.zero_from_primal(np.ones(3, np.float32)).tolist() == [0, 0, 0]
    assert module.zero_from_primal(2, symbolic_zeros=True).dtype == float0


_WRAPPED = [
    lambda lib, f: lib.jit(f),
    lambda lib, f: lib.checkpoint(f),
    lambda lib, f: lambda x: lib.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    lambda lib, f: lambda x: lib.lax.cond(x.sum() > 0, f, lambda y: y, x),
]


@pytest.mark.parametrize("wrap", _WRAPPED)
def test_rules_that_take_the_jvp_of_what_holds_jaxprs(wrap):
    def gradient(library):
        inner = wrap(library, lambda x: library.numpy.tanh(x * x))
        f = library.custom_jvp(inner)
        f.defjvp(lambda primals, tangents: library.jvp(lambda x: 2 * inner(x), primals, tangents))
        return library.jit(library.grad(lambda x: library.numpy.tanh(f(x)).sum()))(np.array([0.3, 0.7], np.float32))

    np.testing.assert_allclose(gradient(xtrace), gradient(jax), rtol=16 * 1.2e-7)


_VECTOR = np.linspace(0.2, 0.6, 3, dtype=np.float32)
# Functions of the library with rules of their own that jax differentiates as one program.
_OF_LIBRARY = {
    "logaddexp": (lambda: xtrace.numpy.logaddexp, 2), "logaddexp2": (lambda: xtrace.numpy.logaddexp2, 2),
    "softplus": (lambda: xtrace.nn.softplus, 1), "sici": (lambda: xtrace.scipy.special.sici, 1),
    "hyp1f1": (lambda: xtrace.scipy.special.hyp1f1, 3), "hyp2f1": (lambda: xtrace.scipy.special.hyp2f1, 4),
    "bessel_jn": (lambda: lambda z: xtrace.scipy.special.bessel_jn(z, v=3), 1),
    "pinv": (lambda: lambda x: xtrace.numpy.linalg.pinv(x[:, None]), 1),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", _OF_LIBRARY)
def test_differentiated_eagerly_a_function_of_the_library_hands_nothing_to_the_device(name):
    function, count = _OF_LIBRARY[name][0](), _OF_LIBRARY[name][1]
    operands = [xtrace.numpy.asarray(_VECTOR)] * count
    cotangents = xtrace.tree.map(xtrace.numpy.ones_like, function(*operands))
    with xtrace.transfer_guard_host_to_device("disallow"):
        _, pullback = xtrace.vjp(function, *operands)
        assert len(pullback(cotangents)) == count


@pytest.mark.parametrize("custom", [xtrace.custom_jvp, xtrace.custom_vjp])
@pytest.mark.parametrize(("positions", "error", "message"), [
    ((2,), IndexError, "nondiff_argnums has 2, but f has 2 positional parameters"),
    ((-3,), IndexError, "nondiff_argnums has -3, but f has 2 positional parameters"),
    ("ab", TypeError, "nondiff_argnums must be a sequence of positions"),
    ((0.5,), TypeError, "nondiff_argnums must be a sequence of positions"),
])
def test_positions_that_no_parameter_has_are_refused(custom, positions, error, message):
    def f(x, scale):
        return x * scale

    with pytest.raises(error, match=message):
        custom(f, nondiff_argnums=positions)
    # A function of any number of arguments has them all.
    assert custom(lambda *values: sum(values), nondiff_argnums=(2,)).nondiff_argnums == (2,)
