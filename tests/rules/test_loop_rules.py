"""Rules of loops: derivatives in both modes, batching, and what they leave for the backward pass."""

import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same
from tests.support.rules import OURS, THEIRS, check_rules
from xtrace import lax
from xtrace._src.core.jaxprs.ir import find_jaxprs

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
H = np.array([0.3, -0.2], np.float32)
W = np.array([[0.5, -0.3], [0.2, 0.4]], np.float32)
N = np.int32(4)


def _cell(lax, w, h, x):
    return lax.tanh(lax.add(lax.dot(h, w), x))


def _rnn(lax, w, h, xs, **options):
    def step(h, x):
        h = _cell(lax, w, h, x)
        return h, lax.mul(h, x)

    return lax.scan(step, h, xs, **options)


def _nested(lax, w, h, xs):
    def outer(h, x):
        def inner(carry, _):
            h, count = carry
            return (_cell(lax, w, h, x), count + 1), lax.sin(h)

        (h, _), ys = lax.scan(inner, (h, 0), None, length=2)
        return h, lax.reduce_sum(ys, (0,))

    return lax.scan(outer, h, xs)


def _linear(lax, w, h, xs):
    return lax.scan(lambda h, x: (lax.add(lax.dot(h, w), x), h), h, xs)[0]


def _from_zeros(lax, w, xs):
    """The carry has a tangent from the second step on only."""
    h, ys = lax.scan(lambda h, x: (_cell(lax, w, h, x), h), lax.full((2,), 0, xs.dtype), xs)
    return [h, ys]


def _tree(lax, h, xs):
    def step(carry, x):
        carry = {"sum": lax.add(carry["sum"], x["a"]), "last": x["b"], "count": carry["count"] + 1}
        return carry, (x["a"] * 2, None, lax.cos(carry["last"]))

    carry, (doubled, _, cosines) = lax.scan(
        step, {"sum": h, "last": h, "count": 0}, {"a": xs, "b": lax.neg(xs)}, reverse=True
    )
    return [carry["sum"], carry["last"], carry["count"], doubled, cosines]


SCANS = {
    "rnn": (lambda lax, w, h, xs: _rnn(lax, w, h, xs), W, H, X),
    "rnn reversed, unrolled": (lambda lax, w, h, xs: _rnn(lax, w, h, xs, reverse=True, unroll=2), W, H, X),
    "nested": (_nested, W, H, X),
    "linear": (_linear, W, H, X),
    "from zeros": (_from_zeros, W, X),
    "tree": (_tree, H, X),
    "no steps": (lambda lax, h, xs: lax.scan(lambda h, x: (lax.mul(h, x), lax.sin(x)), h, xs), H, X[:0]),
    "constant carry": (lambda lax, w, h: lax.scan(lambda c, _: ((c[0], c[0] @ c[1]), None), (w, h), None, length=3)[0],
                       W, H),
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", SCANS)
def test_scan(name):
    function, *operands = SCANS[name]
    check_rules(function, *operands, rounding=256)


LOOPS = {
    "fori_loop": (lambda lax, x, w: lax.fori_loop(1, 4, lambda i, c: lax.sin(c @ w) * i, x), H, W),
    "fori_loop over a carry of several": (
        lambda lax, x, y: lax.fori_loop(0, 3, lambda i, c: (c[1] * y, lax.add(c[0], c[1])), (x, y)), H, H[::-1] * 2),
    "map": (lambda lax, x, w: lax.map(lambda row: lax.sin(row @ w), x), X, W),
    "map in batches": (lambda lax, x, w: lax.map(lambda row: lax.sin(row @ w), x, batch_size=2), X, W),
    "associative_scan": (lambda lax, x: lax.associative_scan(lax.mul, x), X),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_with_known_bounds(name):
    function, *operands = LOOPS[name]
    check_rules(function, *operands, rounding=256)


def _newton(lax, a, start):
    """Square root by Newton's method until it no longer moves, with the number of steps."""
    return lax.while_loop(
        lambda c: lax.gt(lax.abs(c[0] * c[0] - a), 1e-3), lambda c: ((c[0] + a / c[0]) / 2, c[1] + 1), (start, 0)
    )


WHILES = {
    "predicate of the operands": (_newton, np.float32(2.5), np.float32(1)),
    "counted": (lambda lax, x, n: lax.fori_loop(0, n, lambda i, c: lax.sin(c) * i, x), H, N),
    "tangents from the second step on": (
        lambda lax, x, n: lax.while_loop(
            lambda c: c[2] < n, lambda c: (x * 2, lax.cos(c[0]), c[2] + 1), (x * 0, lax.full_like(x, 0), 0)
        )[:2], H, N),
    "no tangents": (lambda lax, x: lax.add(x, lax.while_loop(lambda c: c < 3., lambda c: c + 1, 0.)), H),
}


@pytest.mark.parametrize("name", WHILES)
def test_while_loop(name):
    function, *operands = WHILES[name]
    check_rules(function, *operands, rounding=64, reverse=False)


def _sum_of_loop(library, x):
    return library.lax.while_loop(lambda c: c[1] < 3, lambda c: (library.np.sin(c[0]) * x, c[1] + 1), (x, 0))[0]


@pytest.mark.parametrize("check", [
    lambda library: library.api.linearize(lambda x: _sum_of_loop(library, x), 0.5)[1](2.0),
    lambda library: library.api.jvp(lambda x: library.api.jvp(lambda y: _sum_of_loop(library, y), (x,), (x,))[1],
                                    (0.5,), (1.0,)),
    lambda library: library.api.jvp(library.api.vmap(lambda x: _sum_of_loop(library, x)), (library.array(H),),
                                    (library.array(H),)),
], ids=["linearize", "second derivative", "jvp of vmap"])
def test_forward_mode_of_while_loop(check):
    assert_same(check(OURS), check(THEIRS), 16)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_lanes_that_have_ended_keep_their_values(axes):
    def check(library):
        def loop(x, bound):
            return library.lax.while_loop(lambda c: c[0] < bound, lambda c: (c[0] * 2, c[1] / x, c[2] + 1), (x, x, 0))

        bounds, xs = library.array(np.array([0, 5, 20], np.float32)), library.array(np.array([1, 2, 3], np.float32))
        return library.api.vmap(loop, axes)(xs if axes[0] == 0 else 1.5, bounds if axes[1] == 0 else 7.0)

    assert_same(check(OURS), check(THEIRS))


def test_a_loop_mapped_twice():
    def check(library):
        def loop(x, bound):
            return library.lax.while_loop(lambda c: c < bound, lambda c: c * x, x)

        inner = library.api.vmap(loop, (None, 0))
        both = library.api.vmap(inner, (0, None))
        xs, bounds = library.array(np.array([1.5, 3], np.float32)), library.array(np.array([1, 4, 9], np.float32))
        outer_only = library.api.vmap(lambda x: inner(1.5, bounds) + x)(xs)
        return both(xs, bounds), outer_only

    assert_same(check(OURS), check(THEIRS))


def test_an_unmapped_predicate_stays_a_plain_loop():
    def loop(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    (equation,) = xtrace.make_jaxpr(xtrace.vmap(loop))(X).eqns
    assert equation.params["cond_jaxpr"].out_avals[0].shape == ()
    assert [a.shape for a in equation.params["body_jaxpr"].out_avals] == [(), (3, 2)]


def test_reverse_mode_through_a_while_loop_is_refused():
    for loop in (lambda x: lax.while_loop(lambda c: c < 3, lambda c: c * 2, x),
                 lambda x: xtrace.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c * x, x))(3)):
        with pytest.raises(ValueError, match=r"does not work for lax.while_loop or lax.fori_loop with"):
            xtrace.grad(loop)(1.0)


def _scans(jaxpr):
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            found.append(equation)
        for inner in find_jaxprs(equation.parameters):
            found += _scans(inner)
    return found


def test_residuals_that_do_not_change_are_not_stacked():
    def loss(w, h, xs):
        # sin and cos of the weights are the same in every step; so are they in the backward pass.
        h, _ = lax.scan(lambda h, x: (lax.sin(w) * h + x, None), h, xs)
        return lax.reduce_sum(h, (0,))

    forward, backward = _scans(xtrace.make_jaxpr(xtrace.grad(loss))(H, H, X).jaxpr)
    assert forward.params["reverse"] is False and backward.params["reverse"] is True
    # The carry before each step is the only thing to keep.
    assert [v.aval.shape for v in forward.outvars] == [(2,), (3, 2)]
    assert all(e.primitive.name not in ("cos", "sin") for e in backward.params["jaxpr"].eqns)


def test_elements_are_residuals_as_they_are():
    def loss(h, xs):
        return lax.reduce_sum(lax.scan(lambda h, x: (h * x, None), h, xs)[0], (0,))

    forward, _ = _scans(xtrace.make_jaxpr(xtrace.grad(loss))(H, X).jaxpr)
    assert [v.aval.shape for v in forward.outvars] == [(2,)]


def test_gradients_of_closed_over_values():
    def check(library):
        def loss(params, xs):
            def step(h, x):
                h = library.np.tanh(x @ params["w"] + h * params["u"] + params["b"])
                return h, library.np.sum(h * h)

            h, losses = library.lax.scan(step, library.np.zeros(2), xs)
            return library.np.sum(losses) + library.np.sum(h)

        params = {"w": library.array(W), "u": library.array(H), "b": 0.5}
        value, gradient = library.api.value_and_grad(loss)(params, library.array(X))
        jitted = library.api.jit(library.api.grad(loss))(params, library.array(X))
        per_example = library.api.vmap(library.api.grad(loss), (None, 0))(params, library.array(np.stack([X, -X])))
        return value, gradient, jitted, per_example

    got, expected = check(OURS), check(THEIRS)
    assert_same(got, expected, 64)


def test_hessian_of_a_scan():
    def check(library):
        def loss(h):
            return library.np.sum(library.lax.scan(lambda h, x: (library.np.sin(h * x), h), h, library.array(X))[0])

        h = library.array(H)
        forward_over_reverse = library.api.jvp(library.api.grad(loss), (h,), (h,))
        reverse_over_reverse = library.api.grad(lambda h: library.np.sum(library.api.grad(loss)(h) ** 2))(h)
        reverse_over_forward = library.api.grad(lambda h: library.api.jvp(loss, (h,), (h,))[1])(h)
        return forward_over_reverse, reverse_over_reverse, reverse_over_forward

    assert_same(check(OURS), check(THEIRS), 64)


def test_linear_transpose_with_a_known_part_of_the_carry():
    def check(library):
        def linear(x):
            return library.lax.fori_loop(0, 3, lambda i, c: (c[0] * 2, c[1] * c[0] + c[1]), (1.5, x))[1]

        return library.api.linear_transpose(linear, 1.0)(2.0)

    assert_same(check(OURS), check(THEIRS))


def test_a_scan_maps_over_a_named_axis():
    def check(library):
        def mean_subtracted(h, xs):
            return library.lax.scan(lambda c, x: (c + library.lax.psum(x, "i"), c), h, xs)

        stacked = library.array(np.stack([X, X * 2]))
        return library.api.vmap(mean_subtracted, (None, 0), axis_name="i")(library.array(H), stacked)

    assert_same(check(OURS), check(THEIRS), 16)
