"""Slices at fixed and at computed positions, against jax.lax."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import ALL, COMPLEX, FLOAT, INTEGER, assert_same, finite_values, ours, random_values, seeds
from tests.support.operations import check_error, check_jaxpr, check_types, check_values, values_of
from xtrace import lax

STATIC = [
    ("slice", lambda m, x: m.slice(x, (0, 1), (2, 4))),
    ("slice with strides", lambda m, x: m.slice(x, (0, 1), (3, 4), (2, 2))),
    ("slice of nothing", lambda m, x: m.slice(x, (1, 4), (1, 4))),
    ("slice of all", lambda m, x: m.slice(x, (0, 0), (3, 4), (1, 1))),
    ("slice_in_dim", lambda m, x: m.slice_in_dim(x, 1, 3)),
    ("slice_in_dim from the end", lambda m, x: m.slice_in_dim(x, -2, None, axis=1)),
    ("slice_in_dim to the end", lambda m, x: m.slice_in_dim(x, None, -1, 2, axis=-1)),
    ("index_in_dim", lambda m, x: m.index_in_dim(x, 1)),
    ("index_in_dim from the end", lambda m, x: m.index_in_dim(x, -1, 1)),
    ("index_in_dim without the axis", lambda m, x: m.index_in_dim(x, 2, 0, keepdims=False)),
]
DYNAMIC = [
    ("dynamic_slice", lambda m, x, i: m.dynamic_slice(x, (i, 0), (2, 2))),
    ("dynamic_slice twice", lambda m, x, i: m.dynamic_slice(x, (i, i), (1, 4))),
    ("dynamic_slice, a negative number", lambda m, x, i: m.dynamic_slice(x, (i, -2), (2, 1))),
    ("dynamic_slice from the front", lambda m, x, i: m.dynamic_slice(x, (i, 0), (2, 2), allow_negative_indices=False)),
    ("dynamic_slice, one of two",
     lambda m, x, i: m.dynamic_slice(x, (i, -1), (2, 2), allow_negative_indices=(False, True))),
    ("dynamic_slice of nothing", lambda m, x, i: m.dynamic_slice(x, (i, 0), (0, 4))),
    ("dynamic_slice_in_dim", lambda m, x, i: m.dynamic_slice_in_dim(x, i, 2, 1)),
    ("dynamic_slice_in_dim, last axis", lambda m, x, i: m.dynamic_slice_in_dim(x, i, 3, -1)),
    ("dynamic_update_slice", lambda m, x, i: m.dynamic_update_slice(x, m.slice(x, (1, 1), (3, 3)), (i, 0))),
    ("dynamic_update_slice, all", lambda m, x, i: m.dynamic_update_slice(x, m.rev(x, (0,)), (i, -1))),
    ("dynamic_update_slice_in_dim",
     lambda m, x, i: m.dynamic_update_slice_in_dim(x, m.slice(x, (0, 0), (2, 4)), i, 0)),
]
# These are calls of jitted functions in jax's jaxprs.
CALLED = [
    ("dynamic_index_in_dim", lambda m, x, i: m.dynamic_index_in_dim(x, i, 1)),
    ("dynamic_index_in_dim without the axis", lambda m, x, i: m.dynamic_index_in_dim(x, i, 0, False)),
    ("dynamic_index_in_dim from the front", lambda m, x, i: m.dynamic_index_in_dim(x, i, allow_negative_indices=False)),
    ("dynamic_update_index_in_dim",
     lambda m, x, i: m.dynamic_update_index_in_dim(x, m.index_in_dim(x, 0, 1), i, 1)),
    ("dynamic_update_index_in_dim without the axis",
     lambda m, x, i: m.dynamic_update_index_in_dim(x, m.index_in_dim(x, 0, 0, False), i, 0)),
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("call", [row[1] for row in STATIC], ids=[row[0] for row in STATIC])
def test_static(call):
    for dtype in (FLOAT[0], COMPLEX[0]):
        check_values(call, random_values(dtype, (3, 4), 1))
    for dtype in ALL:
        check_types(call, ((3, 4), dtype))
    check_jaxpr(call, finite_values(np.float32, (3, 4), 1))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("call", [row[1] for row in DYNAMIC + CALLED], ids=[row[0] for row in DYNAMIC + CALLED])
def test_dynamic(call):
    values = random_values(np.float32, (3, 4), 2)
    check_values(call, values, np.int32(-1))
    traced = xtrace.jit(lambda x, i: call(lax, x, i))
    expected = jax.jit(lambda x, i: call(jax.lax, x, i))
    # Also indices far outside, which are moved inside.
    for index in (-100, -4, -3, 0, 2, 3, 100):
        assert_same(traced(ours(values), np.int32(index)), expected(values, np.int32(index)))
    for dtype in ALL:
        check_types(call, ((3, 4), dtype), ((), np.int32))


@pytest.mark.parametrize("call", [row[1] for row in DYNAMIC], ids=[row[0] for row in DYNAMIC])
def test_jaxprs_of_dynamic_slices(call):
    check_jaxpr(call, finite_values(np.float32, (3, 4), 1), np.int32(1))
    check_jaxpr(call, finite_values(np.float32, (3, 4), 1), 1)


@pytest.mark.parametrize("dtype", INTEGER, ids=str)
def test_dtypes_of_indices(dtype):
    values = finite_values(np.float32, (3, 4), 3)
    for call in (
        lambda m, x, i: m.dynamic_slice(x, (i, i), (2, 2)),
        lambda m, x, i: m.dynamic_update_slice(x, m.full((2, 2), 0.0, np.float32), (i, i)),
        lambda m, x, i: m.dynamic_slice_in_dim(x, i, 1),
    ):
        check_values(call, values, np.array(1, dtype))
        check_jaxpr(call, values, np.array(1, dtype))


def test_an_index_type_too_narrow_for_the_axis():
    values = np.arange(300, dtype=np.float32)
    for index in (-1, 5, 127, -128):
        (got,) = np.asarray(lax.dynamic_slice(ours(values), (ours(np.int8(index)),), (1,)))
        assert got == values[index]
        (got,) = np.asarray(xtrace.jit(lambda x, i: lax.dynamic_slice_in_dim(x, i, 1))(values, np.int8(index)))
        assert got == values[index]


def test_indices_as_a_vector():
    values = finite_values(np.float32, (3, 4), 4)
    check_values(lambda m, x, i: m.dynamic_slice(x, i, (2, 2)), values, np.array([-1, 7], np.int32))
    check_values(lambda m, x: m.dynamic_slice(x, np.array([-1, 2]), (2, 2)), values)
    check_jaxpr(lambda m, x: m.dynamic_slice(x, np.array([-1, 2]), (2, 2)), values)
    check_values(lambda m, x: m.dynamic_slice(x, [np.int8(0), np.int8(-1)], (2, 2)), values)


def test_scalars_have_slices():
    check_values(lambda m, x: m.slice(x, (), ()), np.float32(1))
    check_values(lambda m, x: m.dynamic_slice(x, (), ()), np.float32(1))
    check_values(lambda m, x: m.dynamic_update_slice(x, 2.0, ()), np.float32(1))


def test_weak_types():
    check_types(lambda m, x, u: m.dynamic_update_slice(x, u, (0,)), ((3,), np.float32), ((2,), np.float32))
    check_types(lambda m, x, i: m.dynamic_slice(x, (i,), (2,)), ((3,), np.int32), ((), np.int32))
    check_types(lambda m, x, i: m.dynamic_index_in_dim(x, i, 0, False), ((3,), np.int32), ((), np.int32))


@given(data=st.data(), seed=seeds)
@settings(max_examples=30)
def test_random_slices(data, seed):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
    starts = [data.draw(st.integers(0, n)) for n in shape]
    limits = [data.draw(st.integers(a, n)) for a, n in zip(starts, shape, strict=True)]
    strides = data.draw(st.none() | st.lists(st.integers(1, 3), min_size=len(shape), max_size=len(shape)))
    sizes = [data.draw(st.integers(0, n)) for n in shape]
    index = data.draw(st.integers(-6, 6))
    values = random_values(np.float32, shape, seed)

    def call(m, x, i):
        part = m.dynamic_slice(x, [i] * len(shape), sizes)
        return m.slice(x, starts, limits, strides), part, m.dynamic_update_slice(x, part, [i] * len(shape))

    got = xtrace.jit(lambda x, i: call(lax, x, i))(ours(values), np.int32(index))
    assert_same(values_of(got), values_of(jax.jit(lambda x, i: call(jax.lax, x, i))(values, np.int32(index))))


F = np.ones((2, 3), np.float32)
ERRORS = [
    (lambda m, x: m.slice(x, (0,), (1,)), TypeError, ["slice", "start_indices", "2 axes", "(0,)"]),
    (lambda m, x: m.slice(x, (0, 0), (3, 3)), TypeError, ["slice", "limit_indices (3, 3)", "axis 0", "size 2"]),
    (lambda m, x: m.slice(x, (2, 0), (1, 3)), TypeError, ["slice", "start_indices (2, 0)", "axis 0"]),
    (lambda m, x: m.slice(x, (0, 0), (1, 1), (0, 1)), TypeError, ["slice", "strides", "(0, 1)", "rev"]),
    (lambda m, x: m.slice(x, (0, 0), (1, 1), (1,)), TypeError, ["slice", "strides", "(1,)"]),
    (lambda m, x: m.slice(x, 0, 1), TypeError, ["slice", "start_indices", "got 0"]),
    (lambda m, x: m.slice_in_dim(x, 0, 9), TypeError, ["slice", "(9, 3)", "size 2"]),
    (lambda m, x: m.slice_in_dim(x, -9, None), TypeError, ["slice", "start_indices (-7, 0)"]),
    (lambda m, x: m.slice_in_dim(x, 0, 2, -1), TypeError, ["slice", "strides", "(-1, 1)"]),
    (lambda m, x: m.slice_in_dim(x, 0, 1, axis=4), ValueError, ["slice_in_dim", "axis 4"]),
    (lambda m, x: m.index_in_dim(x, 2), IndexError, ["index_in_dim", "index 2", "axis 0", "size 2"]),
    (lambda m, x: m.index_in_dim(x, -4, 1), IndexError, ["index_in_dim", "index -4", "size 3"]),
    (lambda m, x: m.index_in_dim(x, 1.5), TypeError, ["index_in_dim", "1.5", "dynamic_index_in_dim"]),
    (lambda m, x: m.dynamic_slice(x, (0,), (1, 1)), ValueError, ["dynamic_slice", "start_indices", "got 1"]),
    (lambda m, x: m.dynamic_slice(x, 0, (1, 1)), TypeError, ["dynamic_slice", "start_indices", "0"]),
    (lambda m, x: m.dynamic_slice(x, (0, 0), (1,)), TypeError, ["dynamic_slice", "slice_sizes", "(1,)"]),
    (lambda m, x: m.dynamic_slice(x, (0, 0), (3, 1)), TypeError, ["dynamic_slice", "slice_sizes", "(3, 1)"]),
    (lambda m, x: m.dynamic_slice(x, (0, 0), (-1, 1)), TypeError, ["dynamic_slice", "slice_sizes", "(-1, 1)"]),
    (lambda m, x: m.dynamic_slice(x, (0.0, 0), (1, 1)), TypeError, ["start_indices", "float32, int32"]),
    (lambda m, x: m.dynamic_slice(x, (0, True), (1, 1)), TypeError, ["start_indices", "int32, bool"]),
    (lambda m, x: m.dynamic_slice(x, (np.uint8(0), 0), (1, 1)), TypeError, ["start_indices", "uint8, int32"]),
    (lambda m, x: m.dynamic_slice(x, (x, x), (1, 1)), TypeError, ["start_indices", "scalars", "(2, 3)"]),
    (lambda m, x: m.dynamic_slice(x, (0, -1), (1, 1), allow_negative_indices=False), ValueError,
     ["index -1", "size 3", "allow_negative_indices"]),
    (lambda m, x: m.dynamic_index_in_dim(x, 0, 2), ValueError, ["dynamic_index_in_dim", "axis 2"]),
    (lambda m, x: m.dynamic_update_slice(x, m.full((1, 1), 0), (0, 0)), TypeError, ["float32, int32"]),
    (lambda m, x: m.dynamic_update_slice(x, 1.0, (0, 0)), TypeError, ["update", "rank", "() and (2, 3)"]),
    (lambda m, x: m.dynamic_update_slice(x, m.full((3, 3), 0.0), (0, 0)), TypeError, ["update", "(3, 3)"]),
    (lambda m, x: m.dynamic_update_slice(x, x, (0,)), ValueError, ["dynamic_update_slice", "start_indices"]),
    (lambda m, x: m.dynamic_update_index_in_dim(x, 1.0, 0, 0), TypeError, ["update", "axis 0", "()"]),
]


@pytest.mark.parametrize(("operation", "kind", "words"), ERRORS)
def test_errors(operation, kind, words):
    check_error(operation, kind, words, F)
