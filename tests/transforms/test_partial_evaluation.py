"""Partial evaluation: operations that hold jaxprs, given known values and tangents at once, are split between both."""

import gc
import types

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import xtrace
import xtrace.ad_checkpoint
import xtrace.lax
import xtrace.numpy
from tests.support.operands import assert_same
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.while_loop import while_p

OURS, JAX = (types.SimpleNamespace(api=x, np=x.numpy, lax=x.lax) for x in (xtrace, jax))
X = np.array([0.2, 0.5, 0.9], np.float32)


def formula(library):
    """A value and its tangent, which depends on what the value is made of."""
    np_ = library.np

    def both(x, t):
        s = np_.exp(np_.sin(x))
        return np_.tanh(s), t * s * np_.cos(s)

    return both


def in_scan(library, **options):
    def both(x, t):
        def body(carry, v):
            known, moved, same = carry
            after = library.np.sin(known) * v * library.np.exp(same)
            return (after, moved * library.np.cos(known), same), (known, moved)

        start = (x, t, library.np.cos(x))
        (x, t, _), (xs, ts) = library.lax.scan(body, start, library.np.arange(1.0, 4.0), **options)
        return x * xs[1] + xs[0], t * library.np.exp(x) + ts.sum(0) * xs[2]

    return both


def in_scan_over_tangents(library):
    def both(x, t):
        xs, ts = library.np.stack([x, 2 * x]), library.np.stack([t, 3 * t])

        def body(n, v):
            return n + 1, (library.np.sin(v[0]) * n, v[1] * v[0] * n)

        _, (ys, moved) = library.lax.scan(body, 1, (xs, ts))
        return ys.sum(0), moved.sum(0)

    return both


def in_cond(library):
    def both(x, t):
        np_ = library.np
        return library.lax.cond(
            x.sum() > 0, lambda x, t: (np_.sin(x), t * np_.cos(np_.exp(x))), lambda x, t: (x * x, 2 * x * t), x, t
        )

    return both


def in_switch_without_a_tangent(library):
    def both(x, t):
        branches = [lambda x, t: (x, t * 0), lambda x, t: (library.np.sin(x), library.np.zeros_like(t)),
                    lambda x, t: (library.np.exp(x), t * library.np.exp(x))]
        return library.lax.switch(library.np.int32(2) + 0 * (x.sum() > 0), branches, x, t)

    return both


def in_while(library):
    def both(x, t):
        def body(carry):
            i, x, t = carry
            return i + 1, library.np.sin(x) * 1.5, t

        _, x, t = library.lax.while_loop(lambda c: c[0] < 3, body, (0, x, t))
        return x, t * x

    return both


def in_fori_loop(library):
    def both(x, t):
        return library.lax.fori_loop(0, 3, lambda i, c: (library.np.sin(c[0]) + i, c[1] * library.np.cos(c[0])), (x, t))

    return both


def with_own_derivative(kind):
    def helper(library):
        f = getattr(library.api, kind)(formula(library))
        if kind == "custom_jvp":
            f.defjvp(lambda p, t: (f(*p), t))
        else:
            f.defvjp(lambda x, t: (f(x, t), None), lambda _, cts: cts)
        return f

    return helper


HELPERS = {
    "jit": lambda library: library.api.jit(formula(library)),
    "jit in jit": lambda library: library.api.jit(library.api.jit(formula(library))),
    "vmap of jit": lambda library: library.api.vmap(library.api.jit(formula(library))),
    "named call": lambda library: library.api.named_call(formula(library), name="rule"),
    "checkpoint": lambda library: library.api.checkpoint(formula(library)),
    "checkpoint with a policy": lambda library: library.api.checkpoint(
        formula(library), policy=library.api.checkpoint_policies.everything_saveable
    ),
    "checkpoint of jit": lambda library: library.api.checkpoint(library.api.jit(formula(library))),
    "scan": in_scan,
    "scan backwards": lambda library: in_scan(library, reverse=True, unroll=2),
    "scan over tangents": in_scan_over_tangents,
    "jit of scan": lambda library: library.api.jit(in_scan(library)),
    "cond": in_cond,
    "jit of cond": lambda library: library.api.jit(in_cond(library)),
    "switch": in_switch_without_a_tangent,
    "while_loop": in_while,
    "fori_loop": in_fori_loop,
    "custom_jvp": with_own_derivative("custom_jvp"),
    "custom_vjp": with_own_derivative("custom_vjp"),
}


def function_with_rule(library, name):
    """A function whose rule passes the value and the tangent through one helper, and goes on with the results."""
    helper = HELPERS[name](library)

    @library.api.custom_jvp
    def f(x):
        y, _ = helper(x, library.np.zeros_like(x))
        return y * y

    @f.defjvp
    def rule(primals, tangents):
        y, moved = helper(primals[0], tangents[0])
        return y * y, 2 * y * moved

    return f


def transformed(library, f):
    def loss(x):
        return library.np.sum(f(x))

    gradient = library.api.grad(loss)
    return {
        "value": f,
        "gradient": gradient,
        "second": library.api.grad(lambda x: library.np.sum(gradient(x) ** 2)),
        "mapped": lambda x: library.api.vmap(gradient)(library.np.stack([x, -x])),
        "moved": lambda x: library.api.jvp(gradient, (x,), (x * x,)),
        "forward": lambda x: library.api.jvp(f, (x,), (x * x,)),
    }


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize("name", HELPERS)
def test_rules_may_pass_values_and_tangents_through_one_helper(name):
    ours = transformed(OURS, function_with_rule(OURS, name))
    # jax refuses a custom_vjp function here; the derivatives are those of what it computes.
    theirs = transformed(JAX, function_with_rule(JAX, "jit" if name == "custom_vjp" else name))
    if name == "while_loop":
        del ours["second"], theirs["second"], ours["moved"], theirs["moved"]
    expected = jax.jit(lambda x: {k: f(x) for k, f in theirs.items()})(X)
    assert_same(xtrace.jit(lambda x: {k: f(x) for k, f in ours.items()})(X), expected, 64)
    assert_same(ours["gradient"](X), expected["gradient"], 64)


def test_a_while_loop_of_tangents_is_refused_in_reverse_mode_only():
    def both(library):
        @library.api.custom_jvp
        def f(x):
            return library.np.sin(x) * 3

        @f.defjvp
        def rule(primals, tangents):
            def body(carry):
                i, x, t = carry
                return i + 1, library.np.sin(x), t * library.np.cos(x)

            _, y, t = library.lax.while_loop(lambda c: c[0] < 2, body, (0, *primals, *tangents))
            return y * y, t * y

        return f

    results = [library.api.linearize(both(library), X) for library in (OURS, JAX)]
    assert_same(results[0][0], results[1][0], 16)
    assert_same(results[0][1](X), results[1][1](X), 16)
    with pytest.raises(ValueError, match="Reverse-mode"):
        xtrace.grad(lambda x: both(OURS)(x).sum())(X)


def calls(jaxpr, name):
    return [e for e in jaxpr.eqns if e.primitive.name == name]


def test_what_is_known_stays_one_call_and_is_computed_once():
    def gradient(library, helper):
        @library.api.custom_jvp
        def f(x):
            return x

        f.defjvp(lambda p, t: helper(*p, *t))
        return library.api.make_jaxpr(library.api.grad(lambda x: f(x).sum()))(X).jaxpr

    found = calls(gradient(OURS, OURS.api.jit(formula(OURS))), "jit")
    # The value with the residual, and the transposed tangent: nothing is computed twice.
    assert [[e.primitive.name for e in c.params["jaxpr"].eqns] for c in found] == [
        ["sin", "exp", "tanh", "cos"], ["mul", "mul"],
    ]
    found = calls(gradient(OURS, in_scan(OURS)), "scan")
    assert ["sin" in [e.primitive.name for e in c.params["jaxpr"].eqns] for c in found] == [True, False]
    found = calls(gradient(OURS, OURS.api.checkpoint(formula(OURS))), "remat2")
    assert len(found) == 1 and "exp" in [e.primitive.name for e in found[0].params["jaxpr"].eqns]


def loop(library, which, **options):
    """The jaxpr of the gradient of a loop with invariants: a constant and a carry that no step changes."""

    def f(constant, x, xs):
        def body(carry, v):
            y, same = carry
            return (y * library.np.sin(constant) * library.np.exp(same) * v, same), None

        (y, _), _ = library.lax.scan(body, (x, constant), xs, **options)
        return y.sum()

    operands = np.ones(3, np.float32), np.ones(3, np.float32), np.ones((5, 3), np.float32)
    return library.api.make_jaxpr(library.api.grad(f, which))(*operands).jaxpr


@pytest.mark.parametrize("which", [0, 1, 2, (0, 1, 2)])
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"_split_transpose": True}])
def test_what_no_step_changes_is_computed_once_as_in_jax(which, options):
    def described(jaxpr):
        outside = sorted(e.primitive.name for e in jaxpr.eqns if e.primitive.name != "broadcast_in_dim")
        scans = [(sorted(v.aval.shape for v in e.invars), sorted(v.aval.shape for v in e.outvars),
                  sorted(i.primitive.name for i in e.params["jaxpr"].eqns)) for e in calls(jaxpr, "scan")]
        return outside, scans

    assert described(loop(OURS, which, **options)) == described(loop(JAX, which, **options))


def test_loops_hand_on_what_they_do_not_change():
    x = xtrace.numpy.arange(3.0)

    def body(carry, v):
        total, same = carry
        return (total + v, same), (v, same)

    carry, ys = xtrace.lax.scan(body, (0.0, np.float32(2)), x)
    assert_same((carry, ys), jax.lax.scan(body, (0.0, np.float32(2)), np.arange(3.0, dtype="f")))
    assert ys[0] is x
    assert xtrace.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x))[1] is x
    assert xtrace.lax.fori_loop(0, 3, lambda i, c: c, x) is x


def test_loops_of_new_functions_under_transformations_compile_once_and_keep_nothing():
    x, steps = xtrace.numpy.arange(4.0), xtrace.numpy.arange(3.0)
    np_, scan, while_loop = xtrace.numpy, xtrace.lax.scan, xtrace.lax.while_loop

    def once():
        xtrace.vmap(lambda v: scan(lambda c, e: (np_.sin(c) * e, c), v, steps)[0])(x)
        xtrace.jvp(lambda v: scan(lambda c, e: (np_.sin(c) * e, c), v, steps)[0], (x,), (x,))
        xtrace.grad(lambda v: scan(lambda c, e: (np_.sin(c) * e, c), v, steps)[0].sum())(x)
        xtrace.vmap(lambda v: while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, np_.cos(c[1])), (0, v)))(x)

    def held():
        gc.collect()
        return len(scan_p.programs), len(while_p.programs), len(gc.get_objects())

    for _ in range(3):
        once()
    before = held()
    for _ in range(20):
        once()
    after = held()
    assert after[:2] == before[:2]
    # A new body kept at each call would be hundreds of objects a time.
    assert after[2] < before[2] + 100
