"""Loops: values, types, jaxprs as jax prints them, programs that are found again, errors."""

import re

import jax
import jax.extend
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same
from tests.support.rules import OURS, THEIRS
from xtrace import lax
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.while_loop import while_p

X = np.arange(10, dtype=np.float32).reshape(5, 2) / 8
H = np.array([0.5, -1], np.float32)


def _agree(check, rounding=8):
    (got, tree), (expected, other) = xtrace.tree.flatten(check(OURS)), jax.tree.flatten(check(THEIRS))
    assert str(tree) == str(other)
    assert_same(got, expected, rounding)


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize(
    "options",
    [{}, {"reverse": True}, {"unroll": 2}, {"unroll": 2, "reverse": True}, {"unroll": True}, {"unroll": 7},
     {"unroll": 5, "reverse": True}, {"unroll": 0}, {"unroll": 4, "reverse": True}],
    ids=str,
)
def test_scan_in_any_direction_and_number_of_steps(options, length):
    def check(library):
        xs = library.array(X[:length])
        return library.lax.scan(lambda c, x: (c * 2 + x, (c, x * 3)), library.array(H), xs, **options)

    _agree(check)


VALUES = {
    "weak carry, strong elements": lambda L: L.lax.scan(lambda c, x: (c + x, c * 2), 0.0, L.array(X[:, 0])),
    "an integer carry becomes floating": lambda L: L.lax.scan(lambda c, x: (c + x, None), 0, L.array(X[:, 0])),
    "an integer weakly typed result": lambda L: L.lax.fori_loop(0, 3, lambda i, c: 1.0, L.array(np.float32(2))),
    "a pair in a list": lambda L: tuple(L.lax.scan(lambda c, x: [c + x, c * 2], 0.0, L.array(X[:, 0]))),
    "length only": lambda L: L.lax.scan(lambda c, _: (c + 1, c), 0, None, length=3),
    "length is a quotient": lambda L: L.lax.scan(lambda c, _: (c + 1, c), 0, None, length=1.5 / 0.5),
    "length and elements": lambda L: L.lax.scan(lambda c, x: (c + x, c), 0.0, L.array(X[:, 0]), length=5),
    "numpy elements": lambda L: L.lax.scan(lambda c, x: (c + x, c), np.zeros(2, np.float32), X),
    "the pair is a list": lambda L: L.lax.scan(lambda c, x: [c + x, c * 2], L.array(H), L.array(X)),
    "no carry": lambda L: L.lax.scan(lambda c, x: ((), x * 2), (), L.array(X)),
    "pytrees": lambda L: L.lax.scan(
        lambda c, x: ({"a": c["b"], "b": c["a"] + x[0]}, [x[1]["k"], None]),
        {"a": L.array(H), "b": L.array(H) * 2}, (L.array(X), {"k": L.array(X * 2)})),
    "bool and integer results": lambda L: L.lax.scan(
        lambda c, x: (c + 1, (x > 3, c)), L.array(np.int8(3)), L.array(np.arange(6, dtype=np.int16))),
    "while_loop": lambda L: L.lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2, c[1] + c[0]), (1, 0.0)),
    "while_loop that never starts": lambda L: L.lax.while_loop(lambda c: c < 0, lambda c: c + 1, 5),
    "while_loop becomes strong": lambda L: L.lax.while_loop(lambda c: c < 3.0, lambda c: c + L.array(np.float32(1)), 0),
    "while_loop over a pytree": lambda L: L.lax.while_loop(
        lambda c: L.np.sum(c["x"]) < 10, lambda c: {"x": c["x"] * 2, "n": c["n"] + 1}, {"x": L.array(X), "n": 0}),
    "fori_loop": lambda L: L.lax.fori_loop(2, 6, lambda i, c: c + i, 0),
    "fori_loop, no steps": lambda L: L.lax.fori_loop(6, 2, lambda i, c: c * i, L.array(H)),
    "fori_loop over int16": lambda L: L.lax.fori_loop(np.int16(1), np.int16(4), lambda i, c: c * i, L.array(H)),
    "fori_loop, traced bound": lambda L: L.api.jit(lambda n: L.lax.fori_loop(0, n, lambda i, c: c + i, 0))(5),
    "fori_loop, traced int16 bound": lambda L: L.api.jit(
        lambda n: L.lax.fori_loop(1, n, lambda i, c: c + i, L.array(np.int16(0))))(L.array(np.int16(5))),
    "fori_loop, traced lower bound": lambda L: L.api.jit(lambda n: L.lax.fori_loop(n, 9, lambda i, c: c + i, 0))(5),
    "fori_loop, array bounds": lambda L: L.lax.fori_loop(
        L.array(np.int32(1)), L.array(np.int32(3)), lambda i, c: c * i, 1.0),
    "fori_loop, unrolled": lambda L: L.lax.fori_loop(0, 5, lambda i, c: c * i + 1, L.array(H), unroll=2),
    "fori_loop indexes": lambda L: L.lax.fori_loop(0, 5, lambda i, c: c + L.array(X)[i], L.array(H)),
    "map": lambda L: L.lax.map(lambda x: (x * 2, x[0]), L.array(X)),
    "map of a pytree": lambda L: L.lax.map(lambda x: x["a"] + x["b"], {"a": L.array(X), "b": L.array(X[:, :1])}),
    "map in batches": lambda L: L.lax.map(lambda x: (x * 2, x[0]), L.array(X), batch_size=2),
    "map in whole batches": lambda L: L.lax.map(lambda x: (x * 2, 1.5), L.array(X), batch_size=5),
    "map in a batch too large": lambda L: L.lax.map(lambda x: x * 2, L.array(X), batch_size=7),
    "map one by one": lambda L: L.lax.map(lambda x: x * 2, L.array(X), batch_size=1),
    "associative_scan": lambda L: L.lax.associative_scan(L.np.maximum, L.array(np.array([3, 1, 4, 1, 5], np.int32))),
    "associative_scan, other axis": lambda L: L.lax.associative_scan(L.np.add, L.array(X), axis=-1),
    "associative_scan, reversed": lambda L: L.lax.associative_scan(L.np.subtract, L.array(X), reverse=True),
    "associative_scan of booleans": lambda L: L.lax.associative_scan(L.np.logical_or, L.array(X[:, 0] > 0.3)),
    "associative_scan of a pytree": lambda L: L.lax.associative_scan(
        lambda p, q: {"m": p["m"] * q["m"], "c": p["c"] * q["m"] + q["c"]}, {"m": L.array(X), "c": L.array(X + 1)}),
    "associative_scan of one": lambda L: L.lax.associative_scan(L.np.add, L.array(X[:1])),
    "associative_scan of complex": lambda L: L.lax.associative_scan(L.np.multiply, L.array(X[:, 0] + 1j)),
    "jit in the body": lambda L: L.api.jit(
        lambda h, xs: L.lax.scan(lambda c, x: (L.api.jit(lambda a, b: L.np.sin(a) + b)(c, x), c), h, xs)
    )(L.array(H), L.array(X)),
    "sort in the body": lambda L: L.lax.scan(lambda c, x: (L.lax.sort(L.lax.neg(c)), x), L.array(H), L.array(X)),
    "loops in loops": lambda L: L.lax.fori_loop(
        0, 3, lambda i, c: L.lax.while_loop(lambda d: d < i * 5, lambda d: d + 2, c), 0),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", VALUES)
def test_values_and_types(name):
    check = VALUES[name]
    _agree(check, 64)


@pytest.mark.parametrize(
    "name", ["pytrees", "fori_loop, unrolled", "map in batches", "while_loop", "associative_scan", "loops in loops"]
)
def test_the_same_without_jit(name):
    expected = VALUES[name](THEIRS)
    with xtrace.disable_jit():
        got = VALUES[name](OURS)
    leaves = zip(xtrace.tree.leaves(got), jax.tree.leaves(expected), strict=True)
    for one, other in leaves:
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


def test_without_jit_the_body_runs_for_each_step():
    seen = []
    with xtrace.disable_jit():
        lax.scan(lambda c, x: (seen.append(float(x)) or c, x), 0.0, np.arange(3.0), reverse=True)
        lax.fori_loop(0, 2, lambda i, c: seen.append(i) or c, 0.0)
        lax.while_loop(lambda c: c < 2, lambda c: seen.append(int(c)) or c + 1, 0)
    assert seen == [2, 1, 0, 0, 1, 0, 1]


def _jaxpr(library, function, *args):
    """The words of the jaxpr; jax writes the types of literals, which here follow from the operations."""
    text = str(library.api.make_jaxpr(lambda *a: function(library, *a))(*args))
    return re.sub(r"(\d|False|True):\w+\[\]", r"\1", text).split()


JAXPRS = {
    "scan": (lambda L, c, xs: L.lax.scan(lambda c, x: (c + x, c * 2), c, xs), np.float32(1), X[:, 0]),
    "scan with a constant": (
        lambda L, c, w: L.lax.scan(lambda c, x: (L.lax.sin(c) @ w, None), c, None, length=3),
        H, np.ones((2, 2), np.float32),
    ),
    "scan of an array that is closed over": (
        lambda L, c: L.lax.scan(lambda c, x: (L.lax.sin(c) * H, None), c, None, length=3, reverse=True, unroll=2), H
    ),
    "scan with a promoted carry": (lambda L, c, xs: L.lax.scan(lambda c, x: (c + x, None), c, xs), 0, X[:, 0]),
    "fori_loop": (lambda L, x: L.lax.fori_loop(0, 10, lambda i, c: c * i, x), np.float32(0)),
    "fori_loop with a traced bound": (
        lambda L, x, n: L.lax.fori_loop(0, n, lambda i, c: c * i + n, x), np.float32(0), np.int32(3)
    ),
    "fori_loop with an int16 bound": (
        lambda L, x, n: L.lax.fori_loop(np.int16(0), n, lambda i, c: c + i, x), np.float32(0), 3
    ),
    "while_loop": (
        lambda L, x: L.lax.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + 1, c[1] * 2), (x, 1)), np.float32(0)
    ),
    "while_loop with constants": (
        lambda L, x, k: L.lax.while_loop(lambda c: c < k, lambda c: c * 2 + k, x), np.float32(0), np.float32(3)
    ),
    "vmap of while_loop": (
        lambda L, x: L.api.vmap(lambda x: L.lax.while_loop(lambda c: c < 3.0, lambda c: c * 2, x))(x), X[:, 0]
    ),
    "map": (lambda L, x: L.lax.map(lambda a: a * 2, x), X[:, 0]),
    "nested": (
        lambda L, x: L.lax.fori_loop(0, 2, lambda i, c: L.lax.scan(lambda c, y: (c + y, None), c, X)[0], x), H
    ),
}


@pytest.mark.parametrize("name", JAXPRS)
def test_jaxprs(name):
    function, *args = JAXPRS[name]
    assert _jaxpr(OURS, function, *args) == _jaxpr(THEIRS, function, *args)


def test_parameters_are_those_of_jax():
    (equation,) = xtrace.make_jaxpr(lambda c, xs: lax.scan(lambda c, x: (c + x, x), c, xs))(H, X).eqns
    (theirs,) = jax.make_jaxpr(lambda c, xs: jax.lax.scan(lambda c, x: (c + x, x), c, xs))(H, X).eqns
    assert set(equation.params) == set(theirs.params)
    for name in set(theirs.params) - {"jaxpr"}:
        assert equation.params[name] == theirs.params[name]
    (equation,) = xtrace.make_jaxpr(lambda c: lax.while_loop(lambda c: c < 3, lambda c: c + 1, c))(1).eqns
    assert set(equation.params) == {"cond_nconsts", "cond_jaxpr", "body_nconsts", "body_jaxpr"}


def test_a_body_may_close_over_tracers_of_any_trace():
    def check(library):
        def f(a, b):
            def step(c, x):
                return library.lax.fori_loop(0, 2, lambda i, d: d * a + x + i, c) * b, a

            return library.np.sum(library.lax.scan(step, b, library.array(X[:, 0]))[0])

        gradients = library.api.grad(f, (0, 1))(0.5, 0.25)
        mapped = library.api.vmap(library.api.jit(f), (0, None))(library.array(H), 0.25)
        return gradients, mapped

    _agree(check, 64)


def test_eager_loops_compile_once():
    weights = xtrace.numpy.ones(2)

    def run(scale):
        first, _ = lax.scan(lambda c, x: (c * weights + x, None), xtrace.numpy.zeros(2), xtrace.numpy.ones((3, 2)))
        second = lax.while_loop(lambda c: c < 100.0, lambda c: c * 2.5, first[0] * scale)
        third = xtrace.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x))(second)
        fourth = lax.fori_loop(0, 2, lambda i, c: lax.cond(c > 5, lambda: c - 1, lambda: c * 2), third)
        return fourth + lax.associative_scan(lambda a, b: a + b, first)[0]

    run(1.0)
    counts = len(scan_p.programs), len(while_p.programs)
    for scale in (2.0, 3.0):
        run(scale)
    assert (len(scan_p.programs), len(while_p.programs)) == counts


def test_functions_that_differ_are_not_taken_for_one_another():
    def scaled(constant):
        return float(lax.fori_loop(0, 1, lambda i, c: c * constant + constant, 3.0))

    def filled(constant):
        return np.copysign(1, float(lax.fori_loop(0, 1, lambda i, c: constant, 3.0)))

    def inside(constant):
        return float(lax.fori_loop(0, 1, lambda i, c: lax.cond(c > 0, lambda: c * constant, lambda: c), 3.0))

    def reversed_along(axis):
        return lax.map(lambda x: lax.rev(x, (axis,)), np.arange(8.0).reshape(2, 2, 2))

    assert [scaled(c) for c in (1, 1.0, 2.0, True, 1)] == [4, 4, 8, 4, 4]
    assert [filled(c) for c in (0.0, -0.0, 0.0)] == [1, -1, 1]
    assert [inside(c) for c in (1.0, 2.0, 1.0)] == [3, 6, 3]
    assert [reversed_along(i)[0].tolist() for i in (0, 1)] == [[[2, 3], [0, 1]], [[1, 0], [3, 2]]]


def test_a_traced_body_is_traced_once():
    calls = []

    def body(i, c):
        calls.append(i)
        return c + i

    for start in (0, 1, 2):
        assert lax.fori_loop(0, 3, body, start) == start + 3
    assert len(calls) == 1
    lax.fori_loop(0, 3, body, 0.5)
    assert len(calls) == 2
    xtrace.clear_caches()
    lax.fori_loop(0, 3, body, 0.5)
    assert len(calls) == 3


def test_more_steps_do_not_make_a_longer_program():
    def f(x):
        return lax.scan(lambda c, _: (lax.sin(c), c), x, None, length=1000)[1]

    short = xtrace.jit(lambda x: lax.scan(lambda c, _: (lax.sin(c), c), x, None, length=10)[1]).lower(H).as_text()
    assert len(xtrace.jit(f).lower(H).as_text()) < len(short) + 100


ERRORS = {
    "dtype": (
        lambda: lax.scan(lambda c, x: ({"a": c["a"], "b": lax.convert_element_type(c["b"], int)}, None),
                         {"a": 1.0, "b": H}, X),
        TypeError, [r"scan body function", r"c\['b'\] has type float32\[2\]", r"int32\[2\]", "dtypes do not match"]),
    "shape": (lambda: lax.scan(lambda c, x: (c[:1], None), H, X),
              TypeError, [r"input carry c has type float32\[2\]", r"float32\[1\]", "shapes do not match"]),
    "structure": (lambda: lax.scan(lambda c, x: ({"a": c["a"]}, None), {"a": 1.0, "b": H}, X),
                  TypeError, ["same pytree structure", "'b'"]),
    "no pair": (lambda: lax.scan(lambda c, x: c, 1.0, X), TypeError, ["must be a pair", r"f32\[\]"]),
    "result is no array": (lambda: lax.scan(lambda c, x: (c, "a"), 1.0, X), TypeError, [r"component \[1\]", "str"]),
    "init is no array": (lambda: lax.scan(lambda c, x: (c, x), {"k": "a"}, X), TypeError, [r"init\['k'\]"]),
    "lengths": (lambda: lax.scan(lambda c, x: (c, None), 1.0, {"p": X, "q": X[:4]}),
                ValueError, ["different leading axis sizes: 4, 5", r"xs\['p'\] has leading axis size 5",
                             r"xs\['q'\] has leading axis size 4"]),
    "length disagrees": (lambda: lax.scan(lambda c, x: (c, None), 1.0, X, length=4),
                         ValueError, [r"`length` argument of 4 which disagrees with leading axis sizes \[5\]"]),
    "no length": (lambda: lax.scan(lambda c, x: (c, None), 1.0, None), ValueError, ["`length` not provided"]),
    "negative length": (lambda: lax.scan(lambda c, x: (c, None), 1.0, None, -1), ValueError, ["negative"]),
    "length is no integer": (lambda: lax.scan(lambda c, x: (c, None), 1.0, None, 2.5), TypeError, ["length", "2.5"]),
    "no leading axis": (lambda: lax.scan(lambda c, x: (c, None), 1.0, (X, 2.0)), ValueError, [r"xs\[1\]"]),
    "f": (lambda: lax.scan(3, 1.0, X), TypeError, ["f argument should be a callable"]),
    "unroll": (lambda: lax.scan(lambda c, x: (c, x), 1.0, X, unroll=-1), ValueError, ["unroll", "-1"]),
    "predicate's dtype": (lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0), TypeError,
                          [r"must return a boolean scalar, but got output type f32\[\]"]),
    "predicate's shape": (lambda: lax.while_loop(lambda c: c > 0, lambda c: c, H), TypeError,
                          ["boolean scalar", r"bool\[2\]", "any"]),
    "predicate's structure": (lambda: lax.while_loop(lambda c: (True,), lambda c: c, 1.0), TypeError,
                              ["boolean scalar, but got pytree"]),
    "while_loop's carry": (lambda: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0], c[1] > 0), (1.0, H)), TypeError,
                           ["while_loop body function", r"c\[1\] has type float32\[2\]", r"bool\[2\]"]),
    "while_loop's structure": (lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 1.0), TypeError,
                               ["same pytree structure"]),
    "fori_loop's carry": (lambda: lax.fori_loop(0, 3, lambda i, carry: {"x": carry["x"][0]}, {"x": H}), TypeError,
                          ["fori_loop body function", r"carry\['x'\]"]),
    "bounds": (lambda: lax.fori_loop(0, 1.0, lambda i, c: c, 1.0), TypeError, ["equal types, got int32 and float32"]),
    "complex bounds": (lambda: lax.fori_loop(0, 1j, lambda i, c: c, 1.0), TypeError, ["upper must be", "c64"]),
    "bound's shape": (lambda: lax.fori_loop(np.zeros(2, int), 1, lambda i, c: c, 1.0), TypeError, ["lower", "scalar"]),
    "bounds' dtypes": (lambda: lax.fori_loop(np.int16(0), np.int32(1), lambda i, c: c, 1.0), TypeError,
                       ["must have equal types, got int16 and int32"]),
    "unroll of a traced bound": (
        lambda: xtrace.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2))(3), ValueError,
        ["unroll", "statically known"]),
    "map's sizes": (lambda: lax.map(lambda x: x, (X, X[:2])), ValueError, ["map got", r"xs\[0\]", r"xs\[1\]"]),
    "map's batch_size": (lambda: lax.map(lambda x: x, X, batch_size=-1), ValueError, ["batch_size"]),
    "associative_scan's axis": (lambda: lax.associative_scan(lax.add, X, axis=2), ValueError, ["axis 2"]),
    "associative_scan's sizes": (lambda: lax.associative_scan(lambda a, b: a, {"p": X, "q": X[:2]}), ValueError,
                                 ["the same first dimension:", r"elems\['p'\] has size 5", r"elems\['q'\] has size 2"]),
    "associative_scan, axis": (
        lambda: lax.associative_scan(lax.add, [X, X[:, :1]], axis=1), ValueError, ["the same size along axis 1"]),
    "associative_scan's structure": (lambda: lax.associative_scan(lambda a, b: (a, b), X), TypeError, ["structure"]),
    "associative_scan's function": (lambda: lax.associative_scan(3, X), TypeError, ["callable"]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, error, patterns = ERRORS[name]
    with pytest.raises(error) as caught:
        call()
    for pattern in patterns:
        assert re.search(pattern, str(caught.value)), str(caught.value)


def test_a_carry_that_is_the_same_for_all_lanes_stays_so():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)

    def loops(library):
        lax, start = library.lax, np.float32(0)

        def steps(x):
            def body(carry):
                return carry[0] + 1, lax.psum(x.sum(), "i") + carry[1], carry[2] + x.sum()

            return lax.while_loop(lambda carry: carry[0] < 3, body, (0, start, start))

        def scanned(x):
            def body(carry, _):
                return (lax.psum(x.sum(), "i") + carry[0], carry[1] + x.sum()), lax.psum(x[0], "i")

            return lax.scan(body, (start, start), None, length=3)

        return (
            library.vmap(steps, axis_name="i", out_axes=(None, None, 0))(values),
            library.vmap(scanned, axis_name="i", out_axes=((None, 0), None))(values),
        )

    assert_same(loops(xtrace), loops(jax), 8)


def _both(x, i):
    return x * 2, i + 1


def _custom_vmap(library):
    both = library.custom_batching.custom_vmap(lambda x, i: (x * 2, i + 1))
    both.def_vmap(lambda size, mapped, x, i: (_both(x, i), (True, False)))
    return both


def _custom_vjp(library):
    both = library.custom_vjp(_both)
    both.defvjp(lambda x, i: (_both(x, i), None), lambda _, cotangents: cotangents)
    return both


def _sum_of_lanes(library):
    p = library.extend.core.Primitive("sum_of_lanes")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    library.interpreters.batching.primitive_batchers[p] = lambda xs, axes: (xs[0].sum(axes[0]), None)
    return lambda x, i: (x + 1, i + p.bind(x).astype(int))


def _cond(library):
    return lambda x, i: library.lax.cond(i > 1, _both, lambda x, i: (x, i + 2), x, i)


STEPS_OF_PAIRS = {
    "jit": lambda library: library.jit(_both),
    "cond": _cond,
    "optimization_barrier": lambda library: lambda x, i: library.lax.optimization_barrier(_both(x, i)),
    "custom_vjp": _custom_vjp,
    "custom_vmap": _custom_vmap,
    "checkpoint": lambda library: library.checkpoint(_both),
    "fori_loop": lambda library: lambda x, i: library.lax.fori_loop(0, 2, lambda _, pair: _both(*pair), (x, i)),
    "a rule of a user": _sum_of_lanes,
}


@pytest.mark.parametrize("name", STEPS_OF_PAIRS)
def test_a_counter_beside_mapped_values_is_not_mapped(name):
    """It must not be for speed, too: a mapped predicate costs a select of each value in each step."""
    def loops(library):
        step = STEPS_OF_PAIRS[name](library)

        def run(x):
            counted = library.lax.while_loop(lambda pair: pair[1] < 4, lambda pair: step(*pair), (x, 0))
            return counted, library.lax.scan(lambda pair, _: (step(*pair), None), (x, 0), None, length=3)[0]

        return library.vmap(run, out_axes=((0, None), (0, None)))(X[:, 0])

    assert_same(loops(xtrace), loops(jax), 1)


def test_a_body_that_wraps_itself():
    def body(carry, x):
        return carry + x, x

    body.__wrapped__ = body
    assert lax.scan(body, 0.0, np.arange(3.0, dtype=np.float32))[0] == 3


@pytest.mark.parametrize("body", [
    lambda carry, x: ((carry[0] * x, carry[1]), None), lambda carry, x: ((carry[0] * 2, carry[1]), carry[0] * x),
    lambda carry, x: ((carry[1], carry[0] * x), None), lambda carry, x: ((carry[0] + x, carry[1] * 2), carry[1]),
], ids=["strong", "weak", "exchanged", "one of each"])
def test_cotangents_of_the_carry_have_the_types_of_its_results(body):
    def check(library):
        def run(first, second, xs):
            (end, _), ys = library.lax.scan(body, (first, second), xs)
            return end if ys is None else end + ys.sum()

        return library.api.grad(run, (0, 1, 2))(3.0, 2.0, library.array(X[:, 0]))

    _agree(check)
