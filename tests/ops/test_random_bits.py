"""Random bits against jax's, bit for bit, and their rules."""

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, theirs
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from tests.support.rules import check_rules
from xtrace import lax

KEY = np.arange(1, 5, dtype=np.uint32)
ALGORITHMS = ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"]


def bits(shape, dtype=np.uint32, algorithm="RNG_DEFAULT"):
    return lambda module, key: module.rng_bit_generator(key, shape, dtype, module.RandomAlgorithm[algorithm])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bits(dtype, algorithm):
    check_values(bits((3, 2), dtype, algorithm), KEY)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0), (1, 2, 3)])
def test_shapes(shape):
    check_values(bits(shape), KEY)
    check_jaxpr(bits(shape), KEY)
    check_types(bits(shape), ((4,), np.uint32))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_64_bits(algorithm):
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for key in (KEY, KEY[:2].astype(np.uint64)):
            operation = bits((3,), np.uint64, algorithm)
            assert_same(list(operation(lax, ours(key))), list(operation(jax.lax, theirs(key))))


def test_one_size():
    assert_same(list(lax.rng_bit_generator(KEY, 5)), list(jax.lax.rng_bit_generator(theirs(KEY), 5)))


def test_algorithms():
    mine, other = list(lax.RandomAlgorithm), list(jax.lax.RandomAlgorithm)
    assert [(a.name, a.value, str(a), repr(a)) for a in mine] == [(a.name, a.value, str(a), repr(a)) for a in other]
    by_name = lax.rng_bit_generator(KEY, (2,), algorithm="RNG_PHILOX")
    assert_same(list(lax.rng_bit_generator(KEY, (2,), algorithm=2)), list(by_name))


def test_successive_keys_give_other_bits():
    key, first = lax.rng_bit_generator(KEY, (4,))
    _, second = lax.rng_bit_generator(key, (4,))
    assert np.asarray(key).tolist() != KEY.tolist()
    assert np.asarray(first).tolist() != np.asarray(second).tolist()


def test_rules():
    check_rules(bits((2, 3)), KEY)
    keys = np.arange(12, dtype=np.uint32).reshape(3, 4)
    mapped = [
        m.vmap(m.vmap(lambda k, module=module: module.rng_bit_generator(k, (2,))))(a)
        for m, module, a in ((xtrace, lax, ours(np.stack([keys] * 2))), (jax, jax.lax, theirs(np.stack([keys] * 2))))
    ]
    assert_same(list(mapped[0]), list(mapped[1]))


def test_no_keys():
    keys, found = xtrace.vmap(lambda k: lax.rng_bit_generator(k, (2,)))(np.zeros((0, 4), np.uint32))
    assert keys.shape == (0, 4)
    assert found.shape == (0, 2)


def test_bits_have_no_derivative():
    def scaled(x):
        _, found = lax.rng_bit_generator(lax.bitcast_convert_type(x, np.uint32), (4,))
        return lax.reduce_sum(x * lax.convert_element_type(found, np.float32), (0,))

    x = np.ones(4, np.float32)
    _, found = lax.rng_bit_generator(x.view(np.uint32), (4,))
    assert_same(xtrace.grad(scaled)(x), ours(np.asarray(found).astype(np.float32)))


@pytest.mark.parametrize(
    ("key", "dtype"),
    [(KEY[:2], np.uint32), (KEY[:3], np.uint32), (KEY.astype(np.int32), np.uint32), (KEY.reshape(2, 2), np.uint32),
     (KEY, np.int32), (KEY, np.float32), (KEY, ml_dtypes.uint4)],
)
def test_errors(key, dtype):
    check_error(lambda m, k: m.rng_bit_generator(k, (3,), dtype), TypeError, ["rng_bit_generator"], key)


def test_unknown_algorithms():
    for algorithm in ("RNG_FOO", 7):
        check_error(
            lambda m, k, a=algorithm: m.rng_bit_generator(k, (3,), algorithm=a), ValueError, ["RNG_PHILOX"], KEY
        )


# What rng_uniform gives depends on what was drawn before.


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint32])
def test_uniform(dtype):
    low, high = np.asarray(2, dtype), np.asarray(5, dtype)
    found = lax.rng_uniform(low, high, (200,))
    numbers = np.asarray(found).astype(np.float64)
    assert (found.shape, found.dtype) == ((200,), np.dtype(dtype))
    # A number may be rounded up to the bound.
    assert numbers.min() >= 2
    assert numbers.max() <= 5 if np.dtype(dtype).kind != "i" else numbers.max() < 5
    assert len(set(numbers.tolist())) >= 3
    check_types(lambda m, a, b: m.rng_uniform(a, b, (3, 2)), ((), dtype), ((), dtype))
    check_jaxpr(lambda m, a, b: m.rng_uniform(a, b, (3, 2)), low, high)


def test_uniform_of_python_numbers():
    found = lax.rng_uniform(0.0, 1.0, ())
    assert (found.shape, found.dtype, found.weak_type) == ((), np.float32, True)


def test_uniform_errors():
    one = np.float32(1)
    check_error(lambda m, a: m.rng_uniform(a, 1, (3,)), ValueError, ["identical dtypes", "int32"], one)
    check_error(lambda m, a: m.rng_uniform(a, a, (3,)), ValueError, ["scalars"], np.ones(3, np.float32))
    for dtype in (bool, np.uint8, np.int16, np.complex64, ml_dtypes.float8_e5m2):
        # XLA aborts on most of these.
        with pytest.raises(TypeError, match="rng_uniform does not support the dtype"):
            lax.rng_uniform(np.asarray(0, dtype), np.asarray(1, dtype), (3,))


def test_uniform_has_no_rules():
    with pytest.raises(NotImplementedError, match="Batching rule for 'rng_uniform'"):
        xtrace.vmap(lambda a: lax.rng_uniform(a, 1.0, (3,)))(np.ones(2, np.float32))
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'rng_uniform'"):
        xtrace.grad(lambda a: lax.rng_uniform(a, 1.0, ()))(0.0)
