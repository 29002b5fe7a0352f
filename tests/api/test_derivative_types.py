"""Types that derivatives accept and give: complex inputs, integers that are transposed, weak types."""

from __future__ import annotations

import functools
import itertools
import re

import jax
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest

import xtrace
import xtrace.scipy.special
import xtrace.scipy.stats
from tests.support.operands import assert_same, ours, theirs
from tests.support.operations import plain_text
from xtrace import lax

COMPLEX = np.array([1 + 2j, 3 - 1j], np.complex64)


# Complex arguments


@pytest.mark.parametrize("part", ["real", "imag", "abs"])
def test_real_functions_of_complex_arguments_have_gradients(part):
    def function(lax, z):
        return lax.reduce_sum(getattr(lax, part)(z * z), (0,))

    for name in ("grad", "value_and_grad", "jacrev"):
        got = getattr(xtrace, name)(lambda z: function(lax, z))(ours(COMPLEX))
        expected = getattr(jax, name)(lambda z: function(jax.lax, z))(theirs(COMPLEX))
        assert_same(got, expected, 16, name)
    got = xtrace.jit(xtrace.jacrev(lambda z: lax.real(z)))(ours(COMPLEX))
    assert_same(got, jax.jacrev(lambda z: jax.lax.real(z))(theirs(COMPLEX)))


@pytest.mark.parametrize(
    ("name", "function", "operand", "keywords", "message"),
    [
        ("grad", lambda z: z, 2 + 1j, {}, "requires real-valued outputs .* returned complex64"),
        ("grad", lambda x: x, 2.0, {"holomorphic": True}, "requires inputs with complex dtype, but argument x of"),
        ("grad", abs, 2 + 1j, {"holomorphic": True}, "requires outputs with complex dtype, but got float32"),
        ("jacrev", lambda x: x * 1j, 2.0, {}, "requires real-valued outputs .* returned complex64"),
        ("jacrev", abs, 2 + 1j, {"holomorphic": True}, "requires outputs with complex dtype, but got float32"),
        ("jacrev", lambda x: x, 2, {}, "requires real- or complex-valued inputs .* argument x of .* is i32.* a point"),
        ("grad", lambda x: x[0], np.arange(2), {}, r"argument x of .* is i32\[2\].* convert it with astype\(float\)"),
        ("grad", lambda x: x, 2.0, {"argnums": 2.5}, r"argnums must be an int .* as in grad\(f\)\(x\)"),
        ("jacrev", lambda x: x > 1, 2.0, {}, "requires real-valued outputs .* returned bool"),
        ("jacfwd", abs, 2 + 1j, {}, "requires inputs of floating dtype, .* has c64"),
        ("jacfwd", abs, 2 + 1j, {"holomorphic": True}, "requires outputs of complex dtype, .* has f32"),
        ("jacfwd", lambda x: x, 2.0, {"holomorphic": True}, "requires inputs of complex dtype, .* has f32"),
        ("jacfwd", lambda x: x, np.arange(2), {}, r"requires inputs of floating dtype, .* has i32\[2\]. Convert"),
        ("grad", lambda x: 1.0, np.random.default_rng(0), {}, "not a valid JAX type.* registered as a pytree"),
        ("hessian", abs, 2 + 1j, {}, "requires inputs of floating dtype, .* has c64"),
    ],
)
def test_types_that_have_no_derivatives_are_refused(name, function, operand, keywords, message):
    with pytest.raises(TypeError):
        getattr(jax, name)(function, **keywords)(operand)
    with pytest.raises(TypeError, match=message):
        getattr(xtrace, name)(function, **keywords)(operand)


# Integers


INTEGERS = {
    "mul": lambda p, x: x * 2,
    "sum": lambda p, x: p.numpy.sum(x),
    "cumsum": lambda p, x: p.numpy.cumsum(x),
    "index": lambda p, x: x[1:3],
    "gather": lambda p, x: x[np.array([0, 0, 2])],
    "pad": lambda p, x: p.numpy.pad(x, (1, 2)),
    "twice": lambda p, x: (x * 2, x * 3),
    "jit": lambda p, x: p.jit(lambda x: x + x)(x),
    "vmap": lambda p, x: p.vmap(lambda x: x * 2)(x),
    "scan": lambda p, x: p.lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0],
    "cond": lambda p, x: p.lax.cond(True, lambda x: x * 2, lambda x: x, x),
    "part": lambda p, x: p.numpy.concatenate([x, x * 3]),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_linear_functions_of_integers_have_transposes(name):
    x = np.arange(4, dtype=np.int32)
    results = []
    for package, convert in ((xtrace, ours), (jax, theirs)):
        function = lambda x, package=package: INTEGERS[name](package, x)  # noqa: E731
        leaves, tree = package.tree.flatten(package.eval_shape(function, x))
        given = [np.arange(np.prod(s.shape), dtype=np.int32).reshape(s.shape) + 1 for s in leaves]
        cotangent = package.tree.unflatten(tree, list(convert(given)))
        transposed = package.linear_transpose(function, x)
        results.append((transposed(cotangent), package.jit(transposed)(cotangent)))
    assert_same(*results)


def test_the_transpose_of_a_function_of_integers_keeps_weak_types():
    for function in (lambda x: x * 2, lambda p: p):
        assert_same(xtrace.linear_transpose(xtrace.jit(function), 3)(4), jax.linear_transpose(jax.jit(function), 3)(4))
    # What the function does not read has a zero of its tangent type.
    found = xtrace.linear_transpose(lambda x, y: x, np.arange(3), np.arange(2))(np.arange(3, dtype=np.int32))
    assert found[1].dtype == xtrace.dtypes.float0


def test_transposes_where_jax_fails():
    x = np.arange(4, dtype=np.int32)
    checkpointed = xtrace.linear_transpose(xtrace.checkpoint(lambda x: x * 2), x)
    np.testing.assert_array_equal(np.asarray(checkpointed(x)[0]), 2 * x)
    sliced = xtrace.linear_transpose(lambda x: lax.dynamic_slice(x, (1,), (2,)), x)
    np.testing.assert_array_equal(np.asarray(sliced(x[:2])[0]), [0, 0, 1, 0])


@pytest.mark.parametrize(
    ("function", "primal", "cotangent"),
    [
        (lambda x: x.astype(np.float32), np.arange(3), np.ones(3, np.float32)),
        (lambda x: x.astype(np.int32), np.ones(3, np.float32), np.arange(3)),
        (lambda x: x, np.ones(3, bool), np.ones(3, bool)),
        (lambda x: x * 2, 3, 4.0),
    ],
    ids=["to float", "to integer", "bool", "cotangent"],
)
def test_mixed_types_are_not_transposed(function, primal, cotangent):
    with pytest.raises(TypeError):
        jax.linear_transpose(function, primal)(cotangent)
    with pytest.raises(TypeError, match="linear_transpose"):
        xtrace.linear_transpose(function, primal)(cotangent)


# Weak types

STRONG, WEAK = np.float32(2), 2.0
BASES = {
    "operator": lambda p, x: x**2.5,
    "power": lambda p, x: p.numpy.power(x, 2.5),
    "jitted": lambda p, x: p.jit(lambda y: y**2.5)(x),
    "pow": lambda p, x: p.lax.pow(x, 2.5),
    "integer": lambda p, x: p.lax.pow(x, 3),
}


@pytest.mark.parametrize("operand", [STRONG, WEAK], ids=["strong", "weak"])
@pytest.mark.parametrize("name", BASES)
def test_powers_of_weak_numbers_have_strong_derivatives(name, operand):
    def of(package):
        return lambda x: BASES[name](package, x)

    assert_same(xtrace.grad(of(xtrace))(operand), jax.grad(of(jax))(operand), 8)
    assert_same(xtrace.jvp(of(xtrace), (operand,), (operand,)), jax.jvp(of(jax), (operand,), (operand,)), 8)
    if name not in ("integer", "jitted"):
        mine, other = (p.make_jaxpr(p.grad(of(p)))(operand) for p in (xtrace, jax))
        assert plain_text(str(mine)) == plain_text(str(other))


# Functions of one or two operands whose derivatives by weakly typed arrays have types of their own.
OTHERS = """
lax.sin; lax.sqrt; lax.rsqrt; lax.cbrt; lax.square; lax.reciprocal; lax.exp2; lax.tan; lax.asin; lax.acos; lax.atan
lax.acosh; lax.tanh; lax.logistic; lax.expm1; lax.erf; lax.erfc; lax.erf_inv; lax.digamma; lax.bessel_i1e
lax.add 2; lax.sub 2; lax.mul 2; lax.div 2; lax.rem 2; lax.max 2; lax.pow 2; lax.atan2 2; numpy.power 2
nn.logsumexp; nn.softplus; nn.silu; scipy.special.log_ndtr; scipy.special.ndtri; scipy.special.xlogy 2
scipy.special.xlog1py 2; scipy.special.entr; scipy.stats.norm.logcdf; scipy.stats.norm.logsf; scipy.stats.norm.pdf 2
"""
TANGENTS = [(name, int(count or 1)) for name, count in re.findall(r"([\w.]+)(?: (\d))?", OTHERS)]


@pytest.mark.parametrize(("name", "count"), TANGENTS, ids=lambda value: str(value))
def test_derivatives_are_weakly_typed_as_in_jax(name, count):
    def weak_types(package, avals):
        function = functools.reduce(getattr, name.split("."), package)
        moving = [range(count), *([i] for i in range(count) if count > 1)]

        def derivatives(*operands):
            found = []
            for which in moving:
                def part(*values, which=which):
                    rest = dict(zip(which, values, strict=True))
                    return function(*[rest.get(i, x) for i, x in enumerate(operands)])

                values = tuple(operands[i] for i in which)
                result, pullback = package.vjp(part, *values)
                found += [package.jvp(part, values, values)[1], *pullback(package.numpy.ones_like(result))]
            return found

        structs = [package.ShapeDtypeStruct(shape, np.float32, weak_type=weak) for shape, weak in avals]
        return [x.weak_type for x in package.eval_shape(derivatives, *structs)]

    for shape in ((), (2,)):
        for weak in itertools.product((True, False), repeat=count):
            avals = [(shape, w) for w in weak]
            assert weak_types(xtrace, avals) == weak_types(jax, avals), avals


@pytest.mark.parametrize("part", ["real", "imag"])
def test_cotangents_of_weak_complex_numbers_are_strong(part):
    mine, other = getattr(lax, part), getattr(jax.lax, part)
    for operand in (2 + 1j, np.complex64(2 + 1j)):
        for cotangent in (1.0, np.float32(1)):
            assert_same(xtrace.vjp(mine, operand)[1](cotangent), jax.vjp(other, operand)[1](cotangent))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize(("custom", "names"), [
    (False, ["jacrev"] * 2), (False, ["jacfwd", "jacrev"]), (True, ["jacrev"] * 3), (True, ["grad", "jacrev"]),
])
def test_nested_jacobians_keep_weak_types(custom, names):
    def derivative(package):
        sin, cos = package.lax.sin, package.lax.cos
        function = package.custom_vjp(lambda x: sin(x)) if custom else sin
        if custom:
            function.defvjp(lambda x: (sin(x), x), lambda x, cotangent: (cotangent * cos(x),))
        for name in names:
            function = getattr(package, name)(function)
        return function

    for operand in (WEAK, STRONG):
        assert_same(derivative(xtrace)(operand), derivative(jax)(operand), 8)


def test_jacobians_by_several_arguments():
    def function(p, x, y):
        return {"a": x * p.numpy.sum(y), "b": y}

    x, y = np.arange(3, dtype=np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)
    for name in ("jacrev", "jacfwd"):
        got = getattr(xtrace, name)(lambda x, y: function(xtrace, x, y), (0, 1))(x, y)
        assert_same(got, getattr(jax, name)(lambda x, y: function(jax, x, y), (0, 1))(x, y))


# Arguments that come back


@pytest.mark.parametrize("x", [2.0, 2j, np.float32(2), np.ones(2, np.float32), True, 3], ids=repr)
def test_forward_mode_gives_back_the_values_that_it_was_given(x):
    differentiable = type(x) not in (bool, int)
    tangent = x if differentiable else np.zeros((), jax.dtypes.float0)
    for package in (xtrace, jax):
        for function in (lambda x: x, lambda x, f=package.numpy.sin: (x, f(1.0 * x))[0]):
            result, moved, aux = package.jvp(lambda x, f=function: (f(x), x), (x,), (tangent,), has_aux=True)
            assert result is aux is x
            assert moved is tangent or not differentiable
        assert not differentiable or package.linearize(lambda x: x, x)[1](x) is x
