"""Making, spreading, joining, splitting, padding and sorting arrays, against jax.lax."""

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT,
    FLOAT8,
    INTEGER,
    assert_same,
    assert_same_type,
    finite_values,
    ours,
    random_values,
    seeds,
    theirs,
)
from tests.support.operations import check_error, check_jaxpr, check_types, check_values, plain_text, values_of
from xtrace import lax

# Operations of one array: name, call, shapes to try.
ONE = [
    ("broadcast", lambda m, x: m.broadcast(x, (2, 0)), [(3,), (), (0, 2)]),
    ("broadcast nothing", lambda m, x: m.broadcast(x, ()), [(3,), ()]),
    ("broadcast_in_dim", lambda m, x: m.broadcast_in_dim(x, (2, 3, 4), (0, 2)), [(2, 4), (1, 4), (2, 1)]),
    ("broadcast_in_dim reordered", lambda m, x: m.broadcast_in_dim(x, (3, 2), (1, 0)), [(2, 3)]),
    ("broadcast_in_dim unchanged", lambda m, x: m.broadcast_in_dim(x, (2, 3), (0, 1)), [(2, 3)]),
    ("broadcast_to_rank", lambda m, x: m.broadcast_to_rank(x, 3), [(), (2,), (2, 0, 3), (1, 2, 3, 4)]),
    ("full_like", lambda m, x: m.full_like(x, 2), [(2, 3), (), (0,)]),
    ("full_like shape", lambda m, x: m.full_like(x, 1, shape=(2, 2)), [(3,)]),
    ("full_like dtype", lambda m, x: m.full_like(x, 1, np.float16), [(3,)]),
    ("full_like array", lambda m, x: m.full_like(x, m.index_in_dim(x, 0, 0, False)), [(3,)]),
    ("reshape", lambda m, x: m.reshape(x, (3, 2)), [(6,), (2, 3), (1, 6)]),
    ("reshape to one size", lambda m, x: m.reshape(x, 6), [(2, 3), (6,)]),
    ("reshape of none", lambda m, x: m.reshape(x, (0, 5)), [(0,), (2, 0)]),
    ("reshape permuted", lambda m, x: m.reshape(x, (3, 4), (2, 0, 1)), [(2, 3, 2)]),
    ("reshape in order", lambda m, x: m.reshape(x, (3, 4), (0, 1)), [(2, 6)]),
    ("transpose", lambda m, x: m.transpose(x, (2, 0, 1)), [(2, 3, 4), (0, 1, 2)]),
    ("transpose in order", lambda m, x: m.transpose(x, (0, 1)), [(2, 3)]),
    ("squeeze", lambda m, x: m.squeeze(x, (0, -1)), [(1, 3, 1), (1, 1)]),
    ("squeeze nothing", lambda m, x: m.squeeze(x, ()), [(1, 3)]),
    ("expand_dims", lambda m, x: m.expand_dims(x, (0, -1)), [(2, 3), (), (0,)]),
    ("expand_dims by nothing", lambda m, x: m.expand_dims(x, ()), [(2,)]),
    ("collapse", lambda m, x: m.collapse(x, 1), [(2, 3, 4), (2, 3), (2,)]),
    ("collapse part", lambda m, x: m.collapse(x, 0, -1), [(2, 3, 4), (0, 3, 4)]),
    ("concatenate", lambda m, x: m.concatenate([x, x, x], 1), [(2, 3), (0, 3), (2, 0)]),
    ("concatenate one", lambda m, x: m.concatenate((x,), 0), [(2, 3)]),
    ("stack", lambda m, x: m.stack([x, x], -1), [(2, 3), (), (0,)]),
    ("unstack", lambda m, x: m.unstack(x, 1), [(2, 3), (0, 2)]),
    ("split", lambda m, x: m.split(x, (1, 0, 2), -1), [(2, 3), (0, 3)]),
    ("tile", lambda m, x: m.tile(x, (2, 3)), [(2, 3), (1, 2), (0, 2)]),
    ("tile by nothing", lambda m, x: m.tile(x, (1, 0)), [(2, 3)]),
    ("rev", lambda m, x: m.rev(x, (0, 2)), [(2, 3, 4), (0, 1, 2)]),
    ("rev nothing", lambda m, x: m.rev(x, ()), [(2, 3)]),
    ("pad", lambda m, x: m.pad(x, m.full_like(x, 1, shape=()), ((1, 2, 0), (-1, 0, 2))), [(2, 3), (0, 3), (2, 1)]),
    ("pad away", lambda m, x: m.pad(x, m.full_like(x, 0, shape=()), ((-1, -1, 0),)), [(2,), (5,)]),
    ("pad between", lambda m, x: m.pad(x, m.full_like(x, 0, shape=()), ((0, -2, 3),)), [(3,)]),
    ("sort", lambda m, x: m.sort(x, dimension=0), [(5, 2), (0, 2), (1,)]),
    ("sort last", lambda m, x: m.sort(x), [(2, 5)]),
]
DIFFERENT = [FLOAT[0], INTEGER[0], COMPLEX[0], FLOAT[1], BOOL[0]]
ONE_IDS = [row[0] for row in ONE]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("call", "shapes"), [row[1:] for row in ONE], ids=ONE_IDS)
def test_values(call, shapes):
    for dtype, shape in zip(DIFFERENT, shapes, strict=False):
        check_values(call, random_values(dtype, shape, 1))


@pytest.mark.parametrize(("call", "shapes"), [row[1:] for row in ONE], ids=ONE_IDS)
def test_types(call, shapes):
    for dtype in ALL:
        for shape in shapes:
            check_types(call, (shape, dtype))


@pytest.mark.parametrize(("call", "shapes"), [row[1:] for row in ONE], ids=ONE_IDS)
def test_jaxprs(call, shapes):
    for shape in shapes[:2]:
        check_jaxpr(call, finite_values(np.float32, shape, 1))


@pytest.mark.parametrize("dtype", [*FLOAT8, np.dtype(ml_dtypes.int4), np.dtype(np.float16)], ids=str)
def test_narrow_dtypes_move_unchanged(dtype):
    values = finite_values(dtype, (2, 3), 2)
    turned = lambda m, x: m.transpose(x, (1, 0))  # noqa: E731
    padded = lambda m, x: m.pad(x, m.full_like(x, 1, shape=()), ((1, 0, 0),) * 2)  # noqa: E731
    for call in (turned, padded):
        assert_same(call(lax, ours(values)), call(jax.lax, theirs(values)))


MADE = [
    ("iota", lambda m: m.iota(np.int32, 5)),
    ("iota of none", lambda m: m.iota(np.float32, 0)),
    ("iota wraps", lambda m: m.iota(np.uint8, 300)),
    ("iota by name", lambda m: m.iota("bfloat16", 4)),
    ("iota of Python's float", lambda m: m.iota(float, 4)),
    ("iota complex", lambda m: m.iota(np.complex64, 3)),
    ("broadcasted_iota", lambda m: m.broadcasted_iota(np.int16, (2, 3), 1)),
    ("full weak", lambda m: m.full((2, 3), 1.5)),
    ("full weak integer", lambda m: m.full((2,), 3)),
    ("full bool", lambda m: m.full((2,), True)),
    ("full complex", lambda m: m.full((2,), 1j)),
    ("full scalar", lambda m: m.full((), 2)),
    ("full dtype", lambda m: m.full((2,), 1.7, np.int32)),
    ("full wraps", lambda m: m.full((2,), 300, np.uint8)),
    ("full too wide", lambda m: m.full((2,), 2**40)),
    ("full numpy scalar", lambda m: m.full((2,), np.float16(1.5))),
    ("full of a number", lambda m: m.full((0, 2), 1, np.complex64)),
    ("full nan", lambda m: m.full((2,), np.nan)),
    ("full one size", lambda m: m.full((3,), 1, bool)),
]


@pytest.mark.parametrize("call", [row[1] for row in MADE], ids=[row[0] for row in MADE])
def test_made_arrays(call):
    check_values(call)
    check_jaxpr(call)


def test_full_converts_floats_as_the_device_does():
    # Traced, jax leaves it to NumPy, which warns and gives what the processor does.
    for value, dtype in ((1e10, np.int32), (-1e10, np.int32), (np.nan, np.int8), (300.7, np.uint8), (-1.5, np.int16)):
        assert_same(lax.full((2,), value, dtype), jax.lax.full((2,), jax.numpy.float32(value), dtype))


def test_full_of_traced_values():
    for dtype in (None, np.int32, np.float32):
        call = lambda m, x, dtype=dtype: m.full((2, 2), x, dtype)  # noqa: E731
        check_types(call, ((), np.float32))
        check_jaxpr(call, np.float32(1.5))


def test_empty_and_shape_as_value():
    got, expected = lax.empty((2, 3), np.int16), jax.lax.empty((2, 3), np.int16)
    assert_same_type(got, expected)
    assert_same(lax.shape_as_value((3, 4)), jax.lax.shape_as_value((3, 4)))


def test_broadcast_shapes_and_broadcast_like():
    for shapes in ([(3, 1), (1, 4)], [(2,), (3, 1), ()], [(0, 1), (1, 5)], [()], [(2, 1, 3), (4, 1)]):
        assert lax.broadcast_shapes(*shapes) == jax.lax.broadcast_shapes(*shapes)
    check_values(lambda m, x, y: m.broadcast_like(x, y), np.ones(3, np.float32), np.ones((2, 3), np.int32))


@pytest.mark.parametrize(("left", "right"), [((2, 3), (2, 0)), ((2, 3), (2, 4))])
def test_joining_different_sizes(left, right):
    for call in (lambda m, x, y: m.concatenate([x, y], 1), lambda m, x, y: m.concatenate([y, x, y], 1)):
        check_values(call, finite_values(np.float32, left, 1), finite_values(np.float32, right, 2))
        check_types(call, (left, np.float32), (right, np.float32))


@pytest.mark.parametrize("count", [1, 2])
def test_the_dimension_of_concatenate_is_an_integer(count):
    x = np.ones((2, 3), np.float32)
    assert lax.concatenate([x] * count, np.array(0)).shape == (2 * count, 3)
    with pytest.raises(TypeError, match=r"concatenate: dimension must be an integer, got 1\.5"):
        lax.concatenate([x] * count, 1.5)


def test_weak_types_of_two_operands():
    check_types(lambda m, x, y: m.stack([x, y]), ((2,), np.float32), ((2,), np.float32))
    check_types(lambda m, x, y: m.pad(x, y, ((1, 0, 0),)), ((2,), np.int32), ((), np.int32))
    check_types(lambda m, x, y: m.sort((x, y)), ((2,), np.int32), ((2,), np.float32))
    check_types(lambda m, x: m.pad(x, 0.0, ((1, 0, 0),)), ((2,), np.float32))


def test_copy_is_an_array_of_its_own():
    x = ours(np.arange(3.0, dtype=np.float32))
    copied = lax.copy_p.bind(x)
    assert_same(copied, jax.lax.copy_p.bind(theirs(np.arange(3.0, dtype=np.float32))))
    assert copied is not x


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("dtype", [*FLOAT, *COMPLEX, *INTEGER, *BOOL], ids=str)
def test_sort_of_special_values_and_ties(dtype):
    keys = random_values(dtype, (3, 40), 3)
    order = np.broadcast_to(np.arange(40, dtype=np.int32), (3, 40)).copy()
    check_values(lambda m, k, v: m.sort_key_val(k, v), keys, order)
    check_values(lambda m, k, v: m.sort((k, v), dimension=0, num_keys=2, is_stable=False), keys, order)


def test_sort_puts_zeros_together_and_nans_last():
    values = np.array([0.0, np.nan, -0.0, -np.nan, -np.inf, np.inf, 0.0, -0.0], np.float32)
    check_values(lambda m, k, v: m.sort_key_val(k, v), values, np.arange(8, dtype=np.int32))
    got = np.asarray(lax.sort_key_val(ours(values), ours(np.arange(8, dtype=np.int32)))[0])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.asarray(jax.lax.sort(values))))


def test_sort_by_several_keys():
    keys = [random_values(np.int8, (30,), s, 0, 3) for s in (1, 2)]
    check_values(lambda m, a, b, c: m.sort((a, b, c), num_keys=2), *keys, finite_values(np.float32, (30,), 4))
    check_jaxpr(lambda m, a, b, c: m.sort((a, b, c), num_keys=2), *keys, finite_values(np.float32, (30,), 4))


@pytest.mark.parametrize("dtype", [*FLOAT, *INTEGER, *BOOL], ids=str)
def test_top_k(dtype):
    values = random_values(dtype, (4, 7), 5)
    check_values(lambda m, x: m.top_k(x, 3), values)
    check_types(lambda m, x: m.top_k(x, 1, axis=0), ((2, 3), dtype))


def test_top_k_along_other_axes():
    values = finite_values(np.float32, (2, 5, 3), 6)
    for k, axis in ((2, 1), (0, 0), (3, -1), (2, 0)):
        check_values(lambda m, x, k=k, axis=axis: m.top_k(x, k, axis=axis), values)
        check_jaxpr(lambda m, x, k=k, axis=axis: m.top_k(x, k, axis=axis), values)


@given(data=st.data(), seed=seeds)
@settings(max_examples=30)
def test_random_pads(data, seed):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
    config = []
    for n in shape:
        interior = data.draw(st.integers(0, 2))
        size = n + max(n - 1, 0) * interior
        low = data.draw(st.integers(-size, 3))
        config.append((low, data.draw(st.integers(-(size + low), 3)), interior))
    values = random_values(np.float32, shape, seed)
    got = xtrace.jit(lambda x: lax.pad(x, 1.0, config))(ours(values))
    assert_same(got, jax.jit(lambda x: jax.lax.pad(x, 1.0, config))(values))


@given(data=st.data(), seed=seeds)
@settings(max_examples=30)
def test_random_reshapes_and_transposes(data, seed):
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4).map(tuple))
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    target = data.draw(st.permutations(shape))
    values = random_values(np.int32, shape, seed)

    def call(m, x):
        return m.reshape(m.transpose(x, order), target), m.reshape(x, target, order)

    got, expected = xtrace.jit(lambda x: call(lax, x))(ours(values)), jax.jit(lambda x: call(jax.lax, x))(values)
    assert_same(values_of(got), values_of(expected))
    assert plain_text(str(xtrace.make_jaxpr(lambda x: call(lax, x))(values))) == plain_text(
        str(jax.make_jaxpr(lambda x: call(jax.lax, x))(values))
    )


F = np.ones((2, 3), np.float32)
ONE_BY_THREE = np.ones((1, 3), np.float32)
ERRORS = [
    (lambda m, x: m.broadcast(x, (-1,)), TypeError, ["broadcast", "(-1,)", "negative"], F),
    (lambda m, x: m.broadcast(x, 2), TypeError, ["broadcast", "sizes"], F),
    (lambda m, x: m.broadcast_in_dim(x, (2,), (0,)), TypeError, ["broadcast_dimensions", "(0,)", "2 axes"], F),
    (lambda m, x: m.broadcast_in_dim(x, (2, 4), (0, 1)), TypeError, ["axis 1", "size 3", "(2, 4)"], F),
    (lambda m, x: m.broadcast_in_dim(x, (2, 3), (0, 2)), TypeError, ["broadcast_dimensions", "(0, 2)"], F),
    (lambda m, x: m.broadcast_in_dim(x, (2, 3), (0, 0)), TypeError, ["broadcast_dimensions", "distinct"], F),
    (lambda m, x: m.iota(np.int32, -1), TypeError, ["iota", "(-1,)"], F),
    (lambda m, x: m.iota(np.int32, 2.5), TypeError, ["iota", "2.5"], F),
    (lambda m, x: m.iota(bool, 3), TypeError, ["iota", "bool"], F),
    (lambda m, x: m.broadcasted_iota(np.int32, (3,), 1), ValueError, ["iota", "dimension 1", "(3,)"], F),
    (lambda m, x: m.broadcasted_iota("integer", (3,), 0), TypeError, ["'integer'", "not a dtype"], F),
    (lambda m, x: m.full((-1,), 0), TypeError, ["full", "(-1,)"], F),
    (lambda m, x: m.full((2,), x), TypeError, ["full", "fill_value", "(2, 3)"], F),
    (lambda m, x: m.full((2,), "a"), TypeError, ["full", "fill_value", "'a'"], F),
    (lambda m, x: m.full((2,), 1j, np.float32), TypeError, ["full", "1j", "float32"], F),
    (lambda m, x: m.full_like("a", 1), TypeError, ["full_like", "x", "'a'"], F),
    (lambda m, x: m.reshape(x, (5,)), TypeError, ["reshape", "6 elements", "(5,) has 5"], F),
    (lambda m, x: m.reshape(x, (-1,)), TypeError, ["reshape", "(-1,)"], F),
    (lambda m, x: m.reshape(x, (6,), (0,)), TypeError, ["reshape", "dimensions (0,)", "permutation"], F),
    (lambda m, x: m.reshape(x, (2.0, 3)), TypeError, ["reshape", "2.0"], F),
    (lambda m, x: m.transpose(x, (0,)), TypeError, ["transpose", "permutation (0,)", "(2, 3)"], F),
    (lambda m, x: m.transpose(x, (-1, 0)), TypeError, ["transpose", "permutation (-1, 0)"], F),
    (lambda m, x: m.transpose(x, 1), TypeError, ["transpose", "permutation", "got 1"], F),
    (lambda m, x: m.squeeze(x, (0,)), ValueError, ["squeeze", "(2, 3)", "dimensions (0,)"], F),
    (lambda m, x: m.squeeze(x, (2,)), ValueError, ["squeeze", "axis 2"], F),
    (lambda m, x: m.squeeze(x, (0, 0)), ValueError, ["squeeze", "not unique"], ONE_BY_THREE),
    (lambda m, x: m.squeeze(x, 0), TypeError, ["squeeze", "dimensions"], ONE_BY_THREE),
    (lambda m, x: m.expand_dims(x, (0, 0)), ValueError, ["expand_dims", "repeated"], F),
    (lambda m, x: m.expand_dims(x, (5,)), ValueError, ["expand_dims", "axis 5"], F),
    (lambda m, x: m.expand_dims(x, 0), TypeError, ["expand_dims", "dimensions"], F),
    (lambda m, x: m.collapse(x, 1, 0), ValueError, ["collapse", "start_dimension 1", "stop_dimension 0"], F),
    (lambda m, x: m.concatenate([], 0), ValueError, ["concatenate", "non-empty"], F),
    (lambda m, x: m.concatenate([x, x], 2), TypeError, ["concatenate", "dimension 2", "(2, 3), (2, 3)"], F),
    (lambda m, x: m.concatenate([x, x], -1), TypeError, ["concatenate", "dimension -1"], F),
    (lambda m, x: m.concatenate([x, m.full((2, 2), 0.0)], 0), TypeError, ["concatenate", "(2, 3), (2, 2)"], F),
    (lambda m, x: m.concatenate([x, m.full((2,), 0.0)], 0), TypeError, ["same number of dimensions"], F),
    (lambda m, x: m.concatenate([x, m.full((2, 3), 0)], 0), TypeError, ["float32, int32", "numpy.concatenate"], F),
    (lambda m, x: m.concatenate(3, 0), TypeError, ["concatenate", "sequence of arrays", "3"], F),
    (lambda m, x: m.stack([x, m.full((3, 2), 0.0)]), ValueError, ["stack", "(2, 3), (3, 2)"], F),
    (lambda m, x: m.stack([x, m.full((2, 3), 0)]), TypeError, ["stack", "float32, int32"], F),
    (lambda m, x: m.stack([x], 5), ValueError, ["stack", "axis 5"], F),
    (lambda m, x: m.unstack(x, 5), ValueError, ["unstack", "axis 5"], F),
    (lambda m, x: m.split(x, (1, 2)), ValueError, ["split", "(1, 2) is 3", "size 2 of axis 0"], F),
    (lambda m, x: m.split(x, (-1, 3)), ValueError, ["split", "non-negative", "(-1, 3)"], F),
    (lambda m, x: m.split(x, (1, 1), 5), ValueError, ["split", "axis 5"], F),
    (lambda m, x: m.split(x, 3), TypeError, ["split", "sizes"], F),
    (lambda m, x: m.tile(x, (2,)), TypeError, ["tile", "reps", "2 axes", "(2,)"], F),
    (lambda m, x: m.tile(x, (-1, 2)), TypeError, ["tile", "non-negative"], F),
    (lambda m, x: m.tile(x, 2), TypeError, ["tile", "reps"], F),
    (lambda m, x: m.rev(x, (0, 0)), TypeError, ["rev", "distinct", "(0, 0)"], F),
    (lambda m, x: m.rev(x, (-1,)), TypeError, ["rev", "(-1,)", "from 0 to 1"], F),
    (lambda m, x: m.pad(x, 0, ((0, 0, 0),) * 2), TypeError, ["pad", "padding_value", "float32 and int32"], F),
    (lambda m, x: m.pad(x, x, ((0, 0, 0),) * 2), ValueError, ["pad", "padding_value must be a scalar"], F),
    (lambda m, x: m.pad(x, 0.0, ((0, 0, 0),)), ValueError, ["pad", "padding_config", "2 axes"], F),
    (lambda m, x: m.pad(x, 0.0, ((0, 0),) * 2), ValueError, ["pad", "(low, high, interior)"], F),
    (lambda m, x: m.pad(x, 0.0, 0), TypeError, ["pad", "padding_config", "got 0"], F),
    (lambda m, x: m.pad(x, 0.0, ((0, 0, -1),) * 2), ValueError, ["pad", "interior", "non-negative"], F),
    (lambda m, x: m.pad(x, 0.0, ((-2, -1, 0), (0, 0, 0))), ValueError, ["pad", "(-1, 3)", "(2, 3)"], F),
    (lambda m, x: m.sort(x, dimension=2), ValueError, ["sort", "axis 2"], F),
    (lambda m, x: m.sort(()), TypeError, ["sort", "at least one operand"], F),
    (lambda m, x: m.sort((x, x), num_keys=3), ValueError, ["sort", "num_keys=3", "2"], F),
    (lambda m, x: m.sort((x, m.full((3,), 1.0))), TypeError, ["sort", "equal shapes", "(2, 3), (3,)"], F),
    (lambda m, x: m.top_k(x, 5), ValueError, ["top_k", "size 3 of axis 1", "got 5"], F),
    (lambda m, x: m.top_k(x, -1), ValueError, ["top_k", "got -1"], F),
    (lambda m, x: m.top_k(x, 1, axis=2), ValueError, ["top_k", "axis 2"], F),
    (lambda m, x: m.top_k(x, 1), ValueError, ["top_k", "complex"], np.ones(3, np.complex64)),
]


@pytest.mark.parametrize(("operation", "kind", "words", "operand"), ERRORS)
def test_errors(operation, kind, words, operand):
    check_error(operation, kind, words, operand)


def test_broadcast_shapes_says_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\); axis -1 has the sizes 2, 3"):
        lax.broadcast_shapes((2,), (3,))
    with pytest.raises(TypeError, match="'a'"):
        lax.broadcast_shapes((2,), "a")
    with pytest.raises(ValueError, match="no shapes"):
        lax.broadcast_shapes()


def test_arrays_of_keys_are_filled_with_a_key_or_a_number():
    key = xtrace.random.key(3)
    for found, words in (
        (lax.full_like(key, 1), [1, 1]), (lax.full_like(key, key), [0, 3]), (lax.full((2,), key), [[0, 3], [0, 3]]),
    ):
        assert found.dtype == key.dtype and xtrace.random.key_data(found).tolist() == words
