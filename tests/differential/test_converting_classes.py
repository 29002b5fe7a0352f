"""Registered classes that convert or check their children: what jax takes is taken, with the same results.

jax makes objects of such classes with placeholders for children in a few functions, and refuses there; nothing in ours
does, so that more is taken.
"""

import jax
import jax.flatten_util
import numpy as np
import pytest

import xtrace
import xtrace.flatten_util
import xtrace.numpy
from tests.support.operands import assert_close

VECTOR = np.arange(3, dtype=np.float32)


def _checked(accepted, error):
    def check(jnp, a, b):
        if not accepted(a, b):
            raise error
        return a, b

    return check


# What classes do with the children they are made of: an array of shape (3,) and a number.
CONVERSIONS = {
    "array": lambda jnp, a, b: (jnp.asarray(a), jnp.asarray(b)),
    "product": lambda jnp, a, b: (a * 1.0, b),
    "dtype conversion": lambda jnp, a, b: (a.astype("float32"), b),
    "slice": lambda jnp, a, b: (a[:], b),
    "shape": _checked(lambda a, b: a.shape == (3,), ValueError("the shape")),
    "dtype": _checked(lambda a, b: a.dtype == np.float32, TypeError("the dtype")),
    "length": _checked(lambda a, b: len(a) == 3, ZeroDivisionError("the length")),
    "class": _checked(lambda a, b: isinstance(a, (jax.Array, xtrace.Array, np.ndarray)), TypeError("no array")),
    "not None": _checked(lambda a, b: a is not None, ValueError("None")),
    "no object": _checked(lambda a, b: type(a) is not object, TypeError("an object")),
    "rank": _checked(lambda a, b: np.shape(a) in ((3,), (2, 3), ()), TypeError("the rank")),
}


def _class(m, conversion):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = CONVERSIONS[conversion](m.numpy, a, b)

    m.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    return Pair


def _number(pair):
    return (pair.a**2).sum() * pair.b


def _custom(m, pair_class, rule):
    if rule == "custom_jvp":
        function = m.custom_jvp(_number)
        function.defjvp(lambda primals, tangents: (_number(primals[0]), tangents[0].a.sum()))
    else:
        function = m.custom_vjp(_number)
        function.defvjp(lambda q: (_number(q), q), lambda q, ct: (pair_class(q.a * ct, q.b * ct),))
    return m.grad(function)


# module, class, a pair, a function of pairs to pairs, one of arrays to pairs -> results
USES = {
    "jit": lambda m, P, p, f, h: m.jit(f)(p),
    "lower": lambda m, P, p, f, h: m.jit(f).lower(p).as_text()[:0],
    "compile": lambda m, P, p, f, h: m.jit(f).lower(p).compile()(p),
    "donate": lambda m, P, p, f, h: m.jit(f, donate_argnums=0)(p),
    "eval_shape": lambda m, P, p, f, h: len(m.tree_util.tree_leaves(m.eval_shape(f, p))),
    "grad": lambda m, P, p, f, h: m.grad(_number)(p),
    "jit of grad": lambda m, P, p, f, h: m.jit(m.value_and_grad(_number))(p),
    "grad with aux": lambda m, P, p, f, h: m.grad(lambda q: (_number(q), f(q)), has_aux=True)(p),
    "vmap of grad": lambda m, P, p, f, h: m.vmap(m.grad(_number))(P(np.ones((2, 3), np.float32), np.ones(2))),
    "jvp": lambda m, P, p, f, h: m.jvp(f, (p,), (p,)),
    "vjp": lambda m, P, p, f, h: m.vjp(f, p)[1](p),
    "linearize": lambda m, P, p, f, h: m.linearize(f, p)[1](p),
    "jacrev": lambda m, P, p, f, h: (m.jacrev(_number)(p), m.jacrev(h)(VECTOR)),
    "jacrev of pairs": lambda m, P, p, f, h: m.jacrev(f)(p),
    "jacfwd": lambda m, P, p, f, h: (m.jacfwd(_number)(p), m.jacfwd(h)(VECTOR)),
    "jacfwd of pairs": lambda m, P, p, f, h: m.jacfwd(f)(p),
    "hessian": lambda m, P, p, f, h: m.hessian(_number)(p),
    "vmap": lambda m, P, p, f, h: m.vmap(h)(np.ones((2, 3), np.float32)),
    "scan": lambda m, P, p, f, h: m.lax.scan(lambda c, _: (f(c), None), p, None, length=2)[0],
    "while_loop": lambda m, P, p, f, h: m.lax.while_loop(lambda c: c.b < 8, f, p),
    "cond": lambda m, P, p, f, h: m.lax.cond(True, f, lambda q: q, p),
    "checkpoint": lambda m, P, p, f, h: m.grad(lambda q: _number(m.checkpoint(f)(q)))(p),
    "custom_jvp": lambda m, P, p, f, h: _custom(m, P, "custom_jvp")(p),
    "custom_vjp": lambda m, P, p, f, h: _custom(m, P, "custom_vjp")(p),
    "closure_convert": lambda m, P, p, f, h: m.closure_convert(f, p)[0](p),
    "ravel_pytree": lambda m, P, p, f, h: m.flatten_util.ravel_pytree(p)[1](m.numpy.ones(4)),
    "gradient of a pair": lambda m, P, p, f, h: m.grad(f)(p),
    "gradient by integers": lambda m, P, p, f, h: m.grad(_number)(P(np.arange(3), 1)),
    "a pair in place of a carry": lambda m, P, p, f, h: m.lax.scan(lambda c, _: (c.a, None), p, None, length=2),
}


@pytest.mark.drawn(1 / 4)
@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("use", USES)
def test_what_jax_takes_is_taken(use, conversion):
    def outcome(m):
        pair_class = _class(m, conversion)
        pair = pair_class(m.numpy.asarray(VECTOR), m.numpy.float32(2))
        functions = lambda q: pair_class(q.a * q.b, q.b * 2), lambda x: pair_class(x * 2, x.sum())
        return m.tree_util.tree_leaves(USES[use](m, pair_class, pair, *functions))

    try:
        expected = outcome(jax)
    except Exception as error:
        # The class refuses what it is made of, or the function what it is given: never is it an error of our own.
        try:
            outcome(xtrace)
        except Exception as found:
            classes = type(error), ValueError, ZeroDivisionError, *type(error).__mro__[:-3]
            assert isinstance(found, (*classes, TypeError, AttributeError))
        return
    for one, other in zip(outcome(xtrace), expected, strict=True):
        if isinstance(other, (str, int)):
            assert one == other
        else:
            assert_close(np.asarray(one), np.asarray(other), 16)


@pytest.mark.parametrize("conversion", ["shape", "class", "slice"])
def test_messages_about_results_make_no_objects(conversion):
    pair = _class(xtrace, conversion)
    with pytest.raises(TypeError, match="Gradient only defined for scalar-output functions"):
        xtrace.grad(lambda x: pair(x, x.sum()))(VECTOR)
    with pytest.raises(TypeError, match="scan body output must be a pair"):
        xtrace.lax.scan(lambda c, _: pair(c, c), VECTOR, None, length=2)


def test_cotangents_that_backward_rules_return():
    tree = {"a": VECTOR, "b": (VECTOR, None, ()), "c": [1.0]}
    full = {"a": VECTOR, "b": (2 * VECTOR, None, ()), "c": [3.0]}
    for given, fits in [
        (full, True), (None, True), ({**full, "b": None}, True), ({**full, "b": (None, None, None)}, True),
        ({**full, "b": (VECTOR, VECTOR, ())}, True), ({**full, "b": (VECTOR, None, VECTOR)}, True),
        ({**full, "b": VECTOR}, True), ({"a": VECTOR}, False), ({**full, "c": (3.0,)}, False), (VECTOR, False),
    ]:
        found = []
        for m in (xtrace, jax):
            function = m.custom_vjp(lambda t: t["a"].sum())
            # Where there is nothing to differentiate by, anything may stand.
            function.defvjp(lambda t: (t["a"].sum(), None), lambda _, ct, given=given: (given,))
            try:
                leaves = m.tree_util.tree_leaves(m.grad(function)(m.tree_util.tree_map(m.numpy.asarray, tree)))
                found.append([np.asarray(x).tolist() for x in leaves])
            except Exception as error:
                found.append(type(error).__name__)
        assert found[0] == found[1]
        assert fits == isinstance(found[0], list)
