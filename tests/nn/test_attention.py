"""dot_product_attention against jax.nn's."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import HALF, assert_same, ours, theirs
from xtrace import nn

BATCH, QUERIES, KEYS, HEADS, SIZE = 2, 3, 5, 4, 8


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def operands(groups=HEADS, dtype=np.float32):
    return [normal((BATCH, QUERIES, HEADS, SIZE), 1, dtype)] + [
        normal((BATCH, KEYS, groups, SIZE), seed, dtype) for seed in (2, 3)
    ]


BIAS, MASK = normal((1, HEADS, QUERIES, KEYS), 4), normal((BATCH, HEADS, QUERIES, KEYS), 5) > -0.5
LENGTHS = {"query_seq_lengths": np.array([1, 3], np.int32), "key_value_seq_lengths": np.array([0, 4], np.int32)}
OPTIONS = {
    "plain": {},
    "bias, mask, causal, scale": {"bias": BIAS, "mask": MASK, "is_causal": True, "scale": 0.3},
    "broadcast": {"bias": BIAS[:, :1, :, :1], "mask": MASK[:1, :, :1]},
    "low rank": {"bias": BIAS[0, 0], "mask": MASK[0, 0]},
    "lengths": LENGTHS,
    "lists": {name: x.tolist() for name, x in LENGTHS.items()} | {"bias": BIAS[0, 0].tolist()},
    "lengths and mask": {"mask": MASK[:, :1], **LENGTHS},
    "window": {"local_window_size": (1, 2)},
    "even window, causal": {"local_window_size": 1, "is_causal": True, "implementation": "xla"},
    "residual": {"return_residual": True, "mask": MASK},
}


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_options(groups):
    given = operands(groups)

    def case(library, *x):
        return {name: library.nn.dot_product_attention(*x, **options) for name, options in OPTIONS.items()}

    expected = jax.jit(lambda *x: case(jax, *x))(*map(theirs, given))
    # Sums of 5 products of weights with values up to 3, which cancel by up to 2 ** 10.
    assert_same(xtrace.jit(lambda *x: case(xtrace, *x))(*map(ours, given)), expected, 8192)


def test_derivatives():
    def case(library, numpy, *x):
        def of(options):
            def scalar(*x):
                return numpy.sum(numpy.sin(library.nn.dot_product_attention(*x, **options)))

            return library.grad(scalar, (0, 1, 2))(*x)

        return {name: of(options) for name, options in OPTIONS.items() if name != "residual"}

    given = operands(2)
    expected = jax.jit(lambda *x: case(jax, jax.numpy, *x))(*map(theirs, given))
    got = xtrace.jit(lambda *x: case(xtrace, jnp, *x))(*map(ours, given))
    for name in expected:
        for one, other in zip(got[name], expected[name], strict=True):
            # Each is a sum of some tens of terms of size 1, which may cancel.
            np.testing.assert_allclose(one, other, rtol=0, atol=64 * 2.0**-23, err_msg=name)


def test_a_query_that_sees_nothing():
    """Its result is the mean of the values, and no derivative is NaN."""
    query, key, value = operands()
    found = nn.dot_product_attention(query, key, value, mask=np.zeros((1, 1, QUERIES, KEYS), bool))
    np.testing.assert_allclose(found, np.broadcast_to(value.mean(1, keepdims=True), found.shape), atol=8 * 2.0**-23)
    slopes = xtrace.grad(lambda q: jnp.sum(nn.dot_product_attention(q, key, value, mask=np.zeros((3, 5), bool))))(query)
    assert np.isfinite(np.asarray(slopes)).all()


def test_ranks_and_dtypes():
    for dtype in (HALF[0], np.dtype(np.float32)):
        given = operands(2, dtype)
        expected = jax.jit(jax.nn.dot_product_attention)(*map(theirs, given))
        assert_same(nn.dot_product_attention(*map(ours, given)), expected, 512)
    # jax refuses float16 on CPUs.
    half = operands(2, np.float16)
    found = nn.dot_product_attention(*map(ours, half))
    assert found.dtype == np.float16
    exact = jax.nn.dot_product_attention(*[theirs(x.astype(np.float32)) for x in half])
    # Weights up to 1 and the sum of 5 values up to 3 are rounded to float16.
    np.testing.assert_allclose(np.asarray(found, np.float32), exact, atol=16 * 2.0**-10)
    one = [x[0] for x in operands()]
    expected = jax.nn.dot_product_attention(*map(theirs, one), BIAS[0], return_residual=True)
    assert_same(nn.dot_product_attention(*map(ours, one), BIAS[0], return_residual=True), expected, 512)
    mapped = xtrace.vmap(nn.dot_product_attention)(*map(ours, operands()))
    assert_same(mapped, jax.vmap(jax.nn.dot_product_attention)(*map(theirs, operands())), 8192)


def test_sums_of_exponentials_are_of_the_dtype_of_the_operands():
    x = np.linspace(-1, 1, 48).reshape(2, 4, 3, 2)
    for dtype in (np.float16, jax.numpy.bfloat16):
        operands = [x.astype(dtype)] * 3
        got, expected = [p.nn.dot_product_attention(*operands, return_residual=True) for p in (xtrace, jax)]
        assert_same(got, expected, 4)


def test_no_more_equations_than_jax():
    given = operands(2)
    for options in OPTIONS.values():
        count = [
            str(trace(lambda *x, n=library, o=options: n.dot_product_attention(*x, **o))(*given)).count(" = ")
            for library, trace in ((nn, xtrace.make_jaxpr), (jax.nn, jax.make_jaxpr))
        ]
        assert count[0] <= count[1]


def test_errors():
    query, key, value = operands()
    cases = [
        (ValueError, "value shape should be", (query, key, value[:, :3]), {}),
        (ValueError, "multiple of key/value heads, but got 4 vs 3", (query, key[:, :, :3], value[:, :, :3]), {}),
        (ValueError, "query shape should agree", (query, key[..., :5], value[..., :5]), {}),
        (ValueError, "query shape should agree", (query, key[:1], value[:1]), {}),
        (ValueError, r"axes \(T, N, H\).*, but got query .*, key .*, value ", (query, key[0], value[0]), {}),
        (ValueError, "key dtype should be float32", (query, key.astype(np.float16), value), {}),
        (ValueError, "mask dtype should be bool", (query, key, value, None, BIAS), {}),
        (ValueError, r"bias must broadcast to \(batch, heads, queries, keys\)", (query, key, value, BIAS[..., :4]), {}),
        (ValueError, "ndim should be 1", (query, key, value), {"key_value_seq_lengths": 3}),
        (ValueError, "dtype should be int32", (query, key, value), {"query_seq_lengths": np.ones(2, np.float32)}),
        (ValueError, r"shape should be \[2\]", (query, key, value), {"query_seq_lengths": np.ones(3, np.int32)}),
        (ValueError, "Unsupported implementation option: 'foo'", (query, key, value), {"implementation": "foo"}),
        (RuntimeError, "cuDNN is not detected", (query, key, value), {"implementation": "cudnn"}),
        (ValueError, "local_window_size", (query, key, value), {"local_window_size": (1, 2, 3)}),
        (TypeError, "local_window_size", (query, key, value), {"local_window_size": 1.5}),
        (TypeError, "dot_product_attention", ({}, key, value), {}),
        (ValueError, r"axes \(T, N, H\)", ([1.0], key, value), {}),
    ]
    for error, words, positional, keywords in cases:
        with pytest.raises(error, match=words):
            nn.dot_product_attention(*positional, **keywords)
