"""Operations that newer jax added: polynomials, 1 - x² and logarithms to base 2, by rules and at hard values."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.newer import newer
from tests.support.operands import assert_same, epsilon, ours, random_values, theirs
from tests.support.rules import check_rules
from xtrace import lax

X = np.array([[0.25, -1.5, 0.75], [1.25, 0.5, -0.375]], np.float32)
ROW, COLUMN = X[:1], X[:, :1]


def horner(x, coeffs, *, unroll=None):
    *lower, total = coeffs
    for coefficient in reversed(lower):
        total = total * x + coefficient
    return total


def polynomial(library, x, coeffs, **options):
    # jax 0.12 has no jvp where shapes differ.
    if library is jax.lax and len({np.shape(c) for c in (x, *coeffs) if np.shape(c)}) > 1:
        return horner(x, coeffs)
    return newer(library, "polynomial", horner)(x, coeffs, **options)


# Each row: a function of lax and operands, and the operands.
CASES = {
    "numbers": (lambda lax, x: polynomial(lax, x, [0.5, -1.0, 2.0, 0.25]), X),
    "arrays": (lambda lax, x, a, b: polynomial(lax, x, [a, b, a]), X, X + 1, X - 2),
    "spread": (lambda lax, x, a, b: polynomial(lax, x, [a, 2.0, b]), COLUMN, ROW, COLUMN),
    "scalar coefficient": (lambda lax, x, a: polynomial(lax, x, [1.0, a, a]), X, X[0, 0]),
    "linear": (lambda lax, x, a: polynomial(lax, x, [a, 3.0]), X, X),
    "loop": (lambda lax, x, a: polynomial(lax, x, [a, 0.5] * 5), X, X),
    "loop asked for": (lambda lax, x, a: polynomial(lax, x, [0.5, a, 2.0], unroll=1), X, X),
    "no loop": (lambda lax, x, a: polynomial(lax, x, [a, 0.5] * 5, unroll=9), X, X),
    "complex": (lambda lax, x, a: polynomial(lax, x, [a, 2.0, a]), X + 1j * X[::-1], X * 1j),
    "one_minus_square": (
        lambda lax, x: newer(lax, "one_minus_square", lambda x: (1 + x) * (1 - x))(x), X
    ),
    "one_minus_square of complex numbers": (
        lambda lax, x: newer(lax, "one_minus_square", lambda x: (1 + x) * (1 - x))(x), X + 1j * X[::-1]
    ),
    "log2": (lambda lax, x: newer(lax, "log2", lambda x: lax.log(x) / np.log(2).astype(np.float32))(x), abs(X)),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("case", CASES)
def test_rules(case):
    function, *operands = CASES[case]
    check_rules(function, *[np.asarray(x) for x in operands], rounding=64)


def test_a_polynomial_is_one_equation_and_so_is_its_derivative():
    def function(x):
        return lax.polynomial(x, [1.0, 5.0, 2.0])

    assert str(xtrace.make_jaxpr(function)(3.0)).count("polynomial") == 1
    gradient = xtrace.make_jaxpr(xtrace.grad(function))(3.0)
    names = [e.primitive.name for e in gradient.jaxpr.eqns]
    assert names.count("polynomial") <= 2 and not {"add", "integer_pow"} & set(names)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32", "uint8", "complex64"])
def test_the_result_has_the_dtype_of_the_operand(dtype):
    x = np.asarray(ours(np.arange(4.0)).astype(dtype))
    given = [1, np.float32(2), np.int8(3)]
    got = lax.polynomial(ours(x), given)
    expected = horner(x, [np.asarray(c).astype(x.dtype) for c in given])
    np.testing.assert_array_equal(np.asarray(got), expected)
    assert got.dtype == x.dtype and not got.weak_type


def test_weak_types():
    assert lax.polynomial(2.0, [1.0, 2.0]).weak_type and lax.polynomial(2.0, [np.float32(1), 2.0]).weak_type
    assert not lax.polynomial(2.0, [jnp.ones(3), 2.0]).weak_type
    assert not lax.polynomial(np.float32(2), [1.0, 2.0]).weak_type


def test_polynomials_without_terms():
    assert_same(lax.polynomial(X, []), np.zeros_like(X))
    assert_same(lax.polynomial(X, [2.0]), np.full_like(X, 2))
    assert_same(lax.polynomial(COLUMN, [ROW]), np.broadcast_to(ROW, (2, 3)))
    assert lax.polynomial(2.0, [3.0]) == 3


def test_powers_of_two_have_exact_logarithms():
    exponents = np.arange(-120, 121, 8)
    got = np.asarray(lax.log2(np.exp2(exponents).astype(np.float32)))
    np.testing.assert_allclose(got, exponents, rtol=2 * epsilon(np.float32))


def test_logarithms_at_the_ends_of_the_domain():
    x = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(np.asarray(lax.log2(x)), [-np.inf, -np.inf, np.nan, np.inf, np.nan, np.nan])
    infinite = np.asarray(lax.log2(np.array([complex(np.inf, 1), complex(-np.inf, 0)], np.complex64)))
    np.testing.assert_allclose(infinite.imag, [0, np.pi / np.log(2)], rtol=1e-6)
    assert np.all(infinite.real == np.inf)


def test_logarithms_take_an_accuracy():
    x = random_values(np.float32, (7,), 0, 0.5, 4)
    assert_same(lax.log2(x, accuracy=lax.AccuracyMode.HIGHEST), np.log2(x))
    text = xtrace.jit(lambda x: lax.log2(x, accuracy=lax.Tolerance(rtol=1e-3))).lower(x).as_text()
    assert "result_accuracy<atol" in text


@pytest.mark.parametrize("near", [-1, 1])
def test_one_minus_square_keeps_its_precision(near):
    x = (near * (1 - np.arange(1, 9) * 2.0**-24)).astype(np.float32)
    got = np.asarray(lax.one_minus_square(x))
    np.testing.assert_allclose(got, 1 - x.astype(np.float64) ** 2, rtol=2 * epsilon(np.float32))


def test_one_minus_square_of_integers():
    for dtype in ("int8", "uint8", "int32"):
        x = np.array([0, 1, 3, 7], dtype)
        np.testing.assert_array_equal(np.asarray(lax.one_minus_square(x)), 1 - x * x)


WRONG = {
    "text": (lambda: lax.polynomial("a", [1.0]), TypeError, "polynomial: x: 'a'"),
    "a text among the coefficients": (lambda: lax.polynomial(1.0, [1.0, "a"]), TypeError, r"coeffs\[1\]: 'a'"),
    "no sequence": (lambda: lax.polynomial(1.0, 3.0), TypeError, "a sequence of coefficients, got 3.0"),
    "ranks": (lambda: lax.polynomial(X, [1.0, X[0]]), TypeError, "same number of dimensions"),
    "shapes": (lambda: lax.polynomial(X[0], [1.0, X[:, 0]]), TypeError, "incompatible shapes"),
    "booleans": (lambda: lax.polynomial(True, [1, 1]), TypeError, "does not accept dtype bool"),
    "one of booleans": (lambda: lax.polynomial(True, [1]), TypeError, "does not accept dtype bool"),
    "complex": (lambda: lax.polynomial(1.0, [1.0, 1j]), TypeError, r"coeffs\[1\] is complex and x is"),
    "unroll": (lambda: lax.polynomial(1.0, [1.0], unroll=-1), ValueError, "unroll must not be negative, got -1"),
    "unroll of no integer": (lambda: lax.polynomial(1.0, [1.0], unroll=1.5), TypeError, "unroll must be an integer"),
    "log2 of integers": (lambda: lax.log2(3), TypeError, "log2 does not accept dtype int32"),
    "one_minus_square of booleans": (lambda: lax.one_minus_square(True), TypeError, "does not accept dtype bool"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()


def test_theirs_has_the_same_bits_where_it_has_the_name():
    found = [polynomial(p, convert(X), [0.5, 1.0, -2.0]) for p, convert in ((lax, ours), (jax.lax, theirs))]
    assert_same(*found, 2)
