"""Derivatives, transposes and batched forms of the elementwise operations, against jax's."""

import re

import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.elementwise_operations import LAX, in_jax
from tests.support.operands import assert_same, ours, random_values, theirs
from tests.support.reference import IS_REFERENCE
from tests.support.rules import OURS, THEIRS, check_rules
from xtrace import lax

SHAPE = (2, 3)
PART = np.dtype(np.float32)
BITS = random_values(np.int32, SHAPE, 1), random_values(np.int32, SHAPE, 2, 0, 20)


def real(low, high, seed=1, dtype=np.float32, shape=SHAPE):
    return random_values(dtype, shape, seed, low, high)


def row(name, **keywords):
    return lambda lax, *operands: getattr(lax, name)(*operands, **keywords)


# Of a derivative, and of batched forms alone, one row an operation.
ROWS = {r.name: r for r in reversed(LAX) if not r.keywords and not r.name.endswith("_p")}
UNARY = [name for name, r in ROWS.items() if r.operands == 1 and r.differentiated]
SEVERAL = [name for name, r in ROWS.items() if r.operands > 1 and r.differentiated]
# Derivatives that subtract two series of some twenty terms each; the second ones cancel all but a few digits.
SUBTRACTING = {"bessel_i0e", "bessel_i1e"}


def operands_of(name):
    """Return numbers of the intervals in which derivatives are compared; else any numbers of the operation's types."""
    r = ROWS[name]
    if not r.differentiated and PART not in r.dtypes:
        return BITS[: r.operands]
    any_numbers = [(-3, 3), (0.5, 3)] if r.low is None else [(r.low, r.high)] * r.operands
    return [real(low, high, 1 + i) for i, (low, high) in enumerate((r.differentiated or any_numbers)[: r.operands])]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    rounding, second = (64, False) if name in SUBTRACTING else (16, True)
    check_rules(ROWS[name].call, *operands_of(name), rounding=rounding, reverse=not ROWS[name].flat, second=second)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", [name for name, r in ROWS.items() if r.complex])
def test_complex(name):
    z = real(0.2, 0.9) + 1j * real(-0.9, 0.9, 2)
    constant = "the tangent is zero, as jax has it, though the direction of z turns" if name == "sign" else ""
    check_rules(ROWS[name].call, z.astype(np.complex64), second=False, not_smooth=constant)


# Of exp2 jax computes the logarithm of 2 at run time; of truth values it makes no zeros; the others are shorter here.
OTHER_EXPRESSIONS = {"exp2", "is_finite", "clamp", "rem"}


SAME_EXPRESSIONS = [r.name for r in in_jax(ROWS.values()) if r.differentiated and r.name not in OTHER_EXPRESSIONS]


@pytest.mark.skipif(not IS_REFERENCE, reason="newer jax writes some derivatives in other operations")
@pytest.mark.parametrize("name", [*SAME_EXPRESSIONS, "igamma", "igammac"])
def test_derivatives_are_the_expressions_of_jax(name):
    values = [np.ones(SHAPE, np.float32)] * (ROWS[name].operands if name in ROWS else 2)

    def text(library):
        function = getattr(library.lax, name)
        jaxpr = library.api.make_jaxpr(lambda xs, ts: library.api.jvp(function, xs, ts))(tuple(values), tuple(values))
        # Ours do not print the types of literals.
        return re.sub(r":\w+\[\](?= |$)", "", str(jaxpr), flags=re.MULTILINE).split()

    assert text(OURS) == text(THEIRS)


X, Y, Z = real(-3, 3), real(0.5, 3, 2), real(-1, 1, 3)
INTEGERS = np.array([[0, 1, 2], [-1, 3, -2]], np.int32)
TIES = np.array([[0, 1, -2], [-1, 3, 4]], np.float32), np.array([[0, 2, -2], [-1, -3, 5]], np.float32)
CASES = {
    **{name: (ROWS[name].call, *operands_of(name)) for name in SEVERAL},
    "atan2 of a scalar": (row("atan2"), X, Y[0, 0]),
    "rem of a row": (row("rem"), X, Y[:1]),
    "pow of a scalar": (row("pow"), Y[0, 0], X),
    "pow to a scalar": (row("pow"), Y, X[0, 0]),
    "pow to integers": (row("pow"), X, INTEGERS),
    "pow to a Python number": (lambda lax, x: lax.pow(x, 2.5), Y),
    "max of equal numbers": (row("max"), *TIES),
    "max with a scalar": (row("max"), X, Y[0, 0]),
    "min of equal numbers": (row("min"), *TIES),
    "polygamma": (lambda lax, x: lax.polygamma(2.0, x), Y),
    "complex of a scalar": (row("complex"), X, Y[0, 0]),
    "reduce_precision": (row("reduce_precision", exponent_bits=6, mantissa_bits=5), X),
    "clamp at the bounds": (row("clamp"), TIES[0], TIES[0], TIES[1]),
    "abs of zeros": (row("abs"), np.array([0.0, -0.0, 1.0], np.float32)),
    "abs of complex zeros": (row("abs"), np.array([0, 1j, 1 - 1j], np.complex64)),
    "integer_pow": (row("integer_pow", y=-2), Y),
    "integer_pow of complex numbers": (row("integer_pow", y=3), (X + 1j * Y).astype(np.complex64)),
    "first power": (row("integer_pow", y=1), X),
    "optimization_barrier": (lambda lax, x, y: lax.optimization_barrier((x, y)), X, Y),
    "optimization_barrier of integers": (lambda lax, x, y: lax.optimization_barrier((x, y)), X, INTEGERS),
    "pow of complex numbers": (row("pow"), (Y + 1j * Z).astype(np.complex64), (X + 1j).astype(np.complex64)),
    "max of complex numbers": (row("max"), (X + 1j).astype(np.complex64), (X[::-1] + 2j).astype(np.complex64)),
    "float16": (row("atan2"), X.astype(np.float16), Y.astype(np.float16)),
    "float16 constants": (row("cbrt"), Y.astype(np.float16)),
}
# Where no finite difference gives the derivative that the row is about.
NOT_SMOOTH = {
    "reduce_precision": "steps, whose tangent is that of the unrounded number",
    "clamp at the bounds": "turns at the bounds",
    "abs of zeros": "turns at zero",
    "abs of complex zeros": "turns at zero",
}
# Second derivatives of these are differences that the dtype's few digits, or division by the small number, cancel.
ONCE = {
    "bfloat16": (row("logistic"), X.astype(ml_dtypes.bfloat16)),
    "bfloat16 constants": (row("erf"), X.astype(ml_dtypes.bfloat16)),
    "bessel_i1e of small numbers": (row("bessel_i1e"), np.array([0.0, 1e-8, -1e-3], np.float32)),
}
# Operations without derivatives: bits and integers, and what has no floating-point result.
BATCHED = {
    **{name: (r.call, *operands_of(name)) for name, r in ROWS.items() if not r.differentiated and not r.complex},
    "bitcast to as many bits": (row("bitcast_convert_type", new_dtype=np.int32), X),
    "bitcast to fewer bits": (row("bitcast_convert_type", new_dtype=np.float16), X),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    check_rules(function, *operands, not_smooth=NOT_SMOOTH.get(name, ""))


@pytest.mark.parametrize("name", ONCE)
def test_first_derivatives_agree(name):
    function, *operands = ONCE[name]
    check_rules(function, *operands, second=False)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", BATCHED)
def test_batched_forms_agree(name):
    function, *operands = BATCHED[name]
    check_rules(function, *operands, derivatives=False)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 1, None), (0, 0, 0)])
def test_clamp_with_mapped_scalar_bounds(axes):
    low, high = np.array([-1, 0, 0.5], np.float32), np.array([1, 2, 3], np.float32)
    bounds = low if axes[0] is not None else low[0], high if axes[2] is not None else high[1]
    operands = [bounds[0], real(-3, 3, 5, shape=(3, 3)), bounds[1]]
    expected = THEIRS.api.vmap(THEIRS.lax.clamp, axes)(*theirs(operands))
    assert_same(OURS.api.vmap(lax.clamp, axes)(*ours(operands)), expected)


def test_clamp_with_scalar_bounds_has_the_derivatives_of_array_bounds():
    x, low, high = real(-3, 3), np.float32(-1), np.float32(1.5)
    result, pullback = xtrace.vjp(lax.clamp, ours(low), ours(x), ours(high))
    filled = [np.full(SHAPE, low), x, np.full(SHAPE, high)]
    expected, theirs_back = THEIRS.api.vjp(THEIRS.lax.clamp, *theirs(filled))
    assert_same(result, expected)
    given = real(-1, 1, 8)
    parts = [np.asarray(c) for c in theirs_back(theirs(given))]
    found = pullback(ours(given))
    assert_same(found[1], theirs(parts[1]))
    assert_same([found[0], found[2]], theirs([parts[0].sum(), parts[2].sum()]))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_bits_of_several_elements_mapped_over_each_axis(axis):
    x = np.moveaxis(real(-3, 3, dtype=np.float16, shape=(3, 4, 2)), 0, axis)
    found = xtrace.vmap(lambda y: lax.bitcast_convert_type(y, np.float32), axis)(ours(x))
    assert_same(found, THEIRS.lax.bitcast_convert_type(theirs(np.moveaxis(x, axis, 0)), np.float32))


def test_accuracy_holds_for_the_derivative_too():
    mode = lax.AccuracyMode.HIGHEST
    jaxpr = xtrace.make_jaxpr(xtrace.grad(lambda x: lax.sin(x, accuracy=mode)))(1.0)
    assert "cos[accuracy=AccuracyMode.HIGHEST]" in str(jaxpr)


def test_zeta_by_its_second_argument():
    # d/dq zeta(x, q) = -x zeta(x + 1, q); jax has no rule.
    x, q = real(2, 5), real(0.5, 3, 2)
    _, tangent = xtrace.jvp(lambda q: lax.zeta(ours(x), q), (ours(q),), (ours(np.ones(SHAPE, np.float32)),))
    assert_same(tangent, -theirs(x) * THEIRS.lax.zeta(theirs(x + 1), theirs(q)))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("nextafter", NotImplementedError, "nextafter has no derivative"),
        ("polygamma", ValueError, "with respect to m is not supported"),
        ("zeta", NotImplementedError, "with respect to x is not implemented"),
    ],
)
def test_derivatives_that_do_not_exist_are_named(name, error, message):
    x = np.float32(2.5)
    with pytest.raises(error):
        THEIRS.api.jvp(lambda y: getattr(THEIRS.lax, name)(y, x), (x,), (x,))
    with pytest.raises(error, match=message):
        xtrace.jvp(lambda y: getattr(lax, name)(y, x), (x,), (x,))
