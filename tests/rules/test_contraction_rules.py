"""dot_general in types that need care: derivatives, transposes and batched forms, against jax."""

import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours
from tests.support.rules import check_rules
from xtrace import lax

MATRIX = (((1,), (0,)), ((), ()))
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16


def values(shape, seed, dtype=np.float32):
    found = np.random.default_rng(seed).uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * np.random.default_rng(seed + 1).uniform(-1, 1, shape)
    return found.astype(dtype)


def dot(numbers=MATRIX, **options):
    return lambda lax, x, y: lax.dot_general(x, y, numbers, **options)


# dtypes of lhs and rhs, the preferred one.
TYPES = [
    (BF16, BF16, np.float32), (np.float16, np.float16, np.float32), (BF16, BF16, None), (BF16, np.float32, None),
    (np.float32, np.float16, None), (np.float32, np.float32, BF16), (np.complex64, np.complex64, np.complex64),
    (np.complex64, np.float32, None), (np.float32, np.complex64, None), (E4M3, E4M3, np.float32),
    (E4M3, E5M2, np.float32), (E5M2, E4M3, BF16), (E4M3, E4M3, None), (E5M2, BF16, np.float32),
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("left", "right", "preferred"), TYPES, ids=[" ".join(map(str, t)) for t in TYPES])
def test_types(left, right, preferred):
    def product(lax, x, y):
        # Finite differences are of higher precision, and products of complex numbers must not become narrower.
        chosen = np.result_type(x.dtype, preferred) if preferred is np.complex64 else preferred
        return lax.dot_general(x, y, MATRIX, preferred_element_type=chosen)

    check_rules(
        product, values((2, 3), 1, left), values((3, 4), 3, right), rounding=64,
        second=np.dtype(left).itemsize > 1,
        apart="XLA leaves out roundings to bfloat16 in between" if left is np.float32 and preferred is BF16 else "",
    )


@pytest.mark.parametrize("preferred", [np.int32, np.float32])
def test_integers(preferred):
    x, y = (np.arange(n, dtype=np.int8).reshape(s) for n, s in ((6, (2, 3)), (12, (3, 4))))
    check_rules(dot(preferred_element_type=preferred), x, y)


NUMBERS = {
    "batch": ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 2)),
    "outer": ((((), ()), ((), ())), (2,), (3,)),
    "batch alone": ((((), ()), ((0, 1), (1, 0))), (2, 3), (3, 2)),
    "everything": ((((0, 1), (1, 0)), ((), ())), (2, 3), (3, 2)),
    "batch apart": ((((1,), (0,)), ((2,), (1,))), (2, 3, 4), (3, 4, 2)),
    "no element summed": (MATRIX, (2, 0), (0, 3)),
    "no element": (MATRIX, (0, 2), (2, 3)),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", NUMBERS)
def test_dimension_numbers(name):
    numbers, left, right = NUMBERS[name]
    check_rules(dot(numbers), values(left, 1), values(right, 2), rounding=64)


@pytest.mark.parametrize("precision", [("high", "default"), "highest", "F32_F32_F32", "BF16_BF16_F32"])
def test_precision(precision):
    rounded = "the algorithm rounds doubles" if isinstance(precision, str) and "F32" in precision else ""
    check_rules(dot(precision=precision), values((2, 3), 1), values((3, 4), 2), rounding=64, not_smooth=rounded)


def test_the_precision_of_an_operand_goes_with_it():
    """The cotangent takes the place of the operand whose cotangent is asked for."""
    call = dot(precision=("high", "highest"))

    def pulled(x, y, t):
        return xtrace.vjp(lambda x, y: call(lax, x, y), x, y)[1](t)

    text = str(xtrace.make_jaxpr(pulled)(values((2, 3), 1), values((3, 4), 2), values((2, 4), 3)))
    assert text.count("precision=(Precision.HIGH, Precision.HIGHEST)") == 2
    assert text.count("precision=(Precision.HIGHEST, Precision.HIGH)") == 1


def test_cotangents_have_the_types_of_operands():
    x, y = ours(values((2, 3), 1, BF16)), ours(values((3, 4), 2, np.float16))
    result, pullback = xtrace.vjp(lambda x, y: dot(preferred_element_type=np.float32)(lax, x, y), x, y)
    assert [a.dtype for a in (result, *pullback(result))] == [np.float32, BF16, np.float16]
    weak = ours(np.ones((3,), np.float32), weak_type=True)
    found = xtrace.grad(lambda x: lax.dot(x, weak))(weak)
    assert_same(found, weak)
