"""`dtype` and `stage`: what an operation makes of values from outside."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, theirs
from tests.support.operations import check_jaxpr
from xtrace import lax
from xtrace._src.core.trace import Tracer

WITH_DTYPE = [
    1, 1.0, 1j, True, int, float, bool, "int32", np.float32, np.ones(2, np.int8), np.float16(1), np.ones(2),
    np.int64(3), ml_dtypes.bfloat16, np.dtype("uint8"), np.float64(1),
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("value", WITH_DTYPE, ids=repr)
def test_dtypes_are_those_of_jax(value, x64):
    with jax.enable_x64(x64), xtrace.enable_x64(x64):
        assert lax.dtype(value) == jax.lax.dtype(value)


def test_dtype_of_arrays_and_tracers():
    assert lax.dtype(xtrace.numpy.ones(3, "bfloat16")) == ml_dtypes.bfloat16
    assert xtrace.jit(lambda x: lax.full((), 1, lax.dtype(x)))(np.int8(1)).dtype == np.int8


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, ValueError, "x is None"),
        ([1], TypeError, r"Cannot determine dtype of \[1\]"),
        ("text", TypeError, "Cannot determine dtype of 'text'"),
        (object, TypeError, "is not a dtype that arrays can have"),
        (np.array(["a"]), TypeError, "is not a dtype that arrays can have"),
    ],
    ids=str,
)
def test_what_has_no_dtype_is_named(value, error, message):
    with pytest.raises(error):
        jax.lax.dtype(value)
    with pytest.raises(error, match=message):
        lax.dtype(value)


def test_staged_values_belong_to_the_program():
    check_jaxpr(lambda lax, x: (lax.stage(x), lax.stage(np.ones(2, np.float32)), lax.stage(3)), np.float32(1))

    @xtrace.jit
    def function(x):
        assert isinstance(lax.stage(2.0), Tracer)
        assert isinstance(lax.stage(outside), Tracer)
        return lax.stage(2.0) * x + lax.stage(outside), lax.stage(rank_0)

    outside, rank_0 = xtrace.numpy.ones(3), xtrace.numpy.float32(7)
    assert_same(function(1.0), theirs((np.full(3, 3, np.float32), np.float32(7))))


def test_outside_a_trace_values_become_arrays():
    array = xtrace.numpy.ones(3)
    assert lax.stage(array) is array
    assert_same(lax.stage(1.0), jax.lax.stage(1.0))
    source = np.ones(3, np.float32)
    staged = lax.stage(source)
    source[0] = 7
    assert_same(staged, jax.numpy.ones(3))


def test_stage_is_transparent_to_transformations():
    function = lambda lax, x: lax.stage(x) * lax.stage(2.0)  # noqa: E731
    assert_same(xtrace.grad(lambda x: function(lax, x))(1.0), jax.grad(lambda x: function(jax.lax, x))(1.0))
    xs = np.ones(3, np.float32)
    assert_same(xtrace.vmap(lambda x: function(lax, x))(xs), jax.vmap(lambda x: function(jax.lax, x))(xs))
    # Bound as a primitive it is the identity.
    bound = xtrace.linear_transpose(lambda x: xtrace.vmap(lax.stage_p.bind)(x), xs)
    assert_same(bound(xs), jax.linear_transpose(lambda x: jax.vmap(jax.lax.stage_p.bind)(x), xs)(xs))
    module = xtrace.jit(lax.stage_p.bind).lower(1.0).as_text()
    assert "return %arg0" in module


@pytest.mark.parametrize("value", [[1, 2], "text", None, np.array(["a"])], ids=str)
def test_what_is_no_array_cannot_be_staged(value):
    with pytest.raises(TypeError):
        jax.lax.stage(value)
    with pytest.raises(TypeError, match=r"^stage: .* is not a valid JAX type"):
        lax.stage(value)


def test_an_integer_that_does_not_fit():
    with pytest.raises(OverflowError):
        jax.lax.stage(2**40)
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        lax.stage(2**40)
