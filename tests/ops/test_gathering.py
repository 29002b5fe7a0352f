"""gather and the scatter family against jax.lax."""

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
    INTEGER,
    assert_same,
    finite_values,
    ours,
    random_values,
    seeds,
)
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from xtrace import lax

MODES = [None, "clip", "fill", "promise_in_bounds"]
SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]

# Operand shape, indices shape, dimension numbers of a gather, slice sizes; `scattered` makes scatters of them.
READS = {
    "rows": ((4, 3), (2, 1), ((1,), (0,), (0,)), (1, 3)),
    "columns": ((4, 3), (2, 1), ((0,), (1,), (1,)), (4, 1)),
    "elements": ((4, 3), (2, 5, 2), ((), (0, 1), (0, 1)), (1, 1)),
    "elements, swapped": ((4, 3), (5, 2), ((), (0, 1), (1, 0)), (1, 1)),
    "windows": ((4, 5), (3, 2), ((1, 2), (), (0, 1)), (2, 3)),
    "one window": ((4, 5), (1,), ((0, 1), (), (1,)), (4, 2)),
    "windows in the middle": ((4, 3, 2), (2, 6, 1), ((1, 3), (1,), (1,)), (4, 1, 2)),
    "no index": ((4, 3), (2, 0), ((1, 2), (), ()), (4, 3)),
    "no rows asked for": ((4, 3), (0, 1), ((1,), (0,), (0,)), (1, 3)),
    "batched": ((2, 4, 3), (2, 5, 1), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),
    "batched apart": ((4, 2, 3), (5, 2, 1), ((2,), (0,), (0,), (1,), (1,)), (1, 1, 3)),
}


def reading(name, **options):
    _, _, numbers, sizes = READS[name]
    return lambda m, x, i: m.gather(x, i, m.GatherDimensionNumbers(*numbers), sizes, **options)


def writing(function, name, **options):
    numbers = READS[name][2]
    return lambda m, x, i, u: getattr(m, function)(x, i, u, m.ScatterDimensionNumbers(*numbers), **options)


def indices_of(name, seed, low=-2, high=6, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, READS[name][1]).astype(dtype)


def updates_shape(name):
    operand, indices, _, _ = READS[name]
    spec = [jax.ShapeDtypeStruct(operand, np.float32), jax.ShapeDtypeStruct(indices, np.int32)]
    return jax.eval_shape(lambda x, i: reading(name)(jax.lax, x, i), *spec).shape


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("mode", MODES[1:3])
@pytest.mark.parametrize("name", READS)
def test_gather(name, mode):
    check_values(reading(name, mode=mode), finite_values(np.float32, READS[name][0], 1), indices_of(name, 2))


@pytest.mark.parametrize("name", READS)
def test_gather_in_bounds_and_jaxprs(name):
    values, indices = finite_values(np.int32, READS[name][0], 1), indices_of(name, 2, 0, 2)
    for mode in (None, "promise_in_bounds"):
        check_values(reading(name, mode=mode, indices_are_sorted=False, unique_indices=False), values, indices)
    for mode in MODES:
        check_jaxpr(reading(name, mode=mode), values, indices)
    check_jaxpr(reading(name, indices_are_sorted=True, unique_indices=True), values, indices)
    check_jaxpr(lambda m, x, i: reading(name, mode=m.GatherScatterMode.CLIP)(m, x, i), values, indices)


@pytest.mark.parametrize("dtype", [*ALL, np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.float8_e5m2)], ids=str)
def test_what_is_read_outside(dtype):
    values = random_values(dtype, (4, 3), 3)
    check_values(reading("rows", mode="fill"), values, np.array([[7], [-1]], np.int32))
    check_types(reading("rows", mode="fill"), ((4, 3), dtype), ((2, 1), np.int32))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.float32, 3), (np.float32, -np.inf), (np.int8, 5), (bool, False), (np.complex64, 1j)],
    ids=str,
)
def test_fill_value(dtype, value):
    values = random_values(dtype, (4, 3), 3)
    check_values(reading("rows", mode="fill", fill_value=value), values, np.array([[7], [1]], np.int32))
    check_jaxpr(reading("rows", mode="fill", fill_value=value), values, np.array([[7], [1]], np.int32))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("dtype", INTEGER, ids=str)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_dtypes_of_indices(dtype, mode):
    indices = np.array([[0], [3], [100], [-1 if dtype.kind == "i" else 200]]).astype(dtype)
    values = finite_values(np.float32, (4, 3), 4)
    check_values(reading("rows", mode=mode), values, indices)
    check_values(writing("scatter_add", "rows", mode=mode), values, indices, finite_values(np.float32, (4, 3), 5))


def test_indices_too_narrow_for_the_axis():
    values = np.arange(300, dtype=np.float32)[:, None]
    indices = np.array([[127], [5], [-1]], np.int8)
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    got = np.asarray(lax.gather(ours(values), ours(indices), numbers, (1, 1), mode="fill"))
    np.testing.assert_array_equal(got[:, 0], [127, 5, np.nan])
    got = np.asarray(lax.gather(ours(values), ours(indices), numbers, (1, 1), mode="clip"))
    np.testing.assert_array_equal(got[:, 0], [127, 5, 0])


def test_index_take():
    values = finite_values(np.float32, (4, 3, 2), 6)
    rows, columns = np.array([0, -1, 9], np.int32), np.array([2, -4, 1], np.int32)
    check_values(lambda m, x, i: m.index_take(x, (i,), (1,)), values, rows)
    check_values(lambda m, x, i, j: m.index_take(x, (i, j), (0, 2)), values, rows, columns)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize("name", READS)
def test_scatter_add(name, mode):
    values = finite_values(np.float32, READS[name][0], 7)
    updates = finite_values(np.float32, updates_shape(name), 8)
    check_values(writing("scatter_add", name, mode=mode), values, indices_of(name, 9), updates, rounding=16)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("function", SCATTERS)
def test_scatters(function):
    kinds = [*INTEGER[:4], *FLOAT, *COMPLEX]
    if function in ("scatter", "scatter_min", "scatter_max"):
        kinds += BOOL
    indices = np.array([[2], [0], [9]], np.int32)
    for dtype in kinds:
        values, updates = (random_values(dtype, s, 10, -3, 3) for s in ((4, 3), (3, 3)))
        check_values(writing(function, "rows"), values, indices, updates, rounding=8)
    for dtype in kinds:
        check_types(writing(function, "rows"), ((4, 3), dtype), ((3, 1), np.int32), ((3, 3), dtype))
    values, updates = finite_values(np.float32, (4, 3), 1), finite_values(np.float32, (3, 3), 2)
    for mode in MODES:
        check_jaxpr(writing(function, "rows", mode=mode), values, indices, updates)
    check_jaxpr(writing(function, "rows", indices_are_sorted=True, unique_indices=True), values, indices, updates)


def test_repeated_indices():
    indices = np.array([[1], [1], [1], [3]], np.int32)
    for function in SCATTERS[1:]:
        values, updates = finite_values(np.int32, (4, 3), 11), finite_values(np.int32, (4, 3), 12)
        check_values(writing(function, "rows"), values, indices, updates)


def test_scatter_into_nothing_and_of_nothing():
    check_values(writing("scatter_add", "rows"), np.ones((0, 3), np.float32), np.zeros((2, 1), np.int32),
                 np.ones((2, 3), np.float32))
    check_values(writing("scatter", "rows"), np.ones((4, 3), np.float32), np.zeros((0, 1), np.int32),
                 np.ones((0, 3), np.float32))


@pytest.mark.parametrize(
    ("shape", "numbers"), [((), ((), (), ())), ((3,), ((), (0,), ())), ((2,), ((), (), (), (0,), (0,)))]
)
def test_scatter_at_empty_index_vectors_adds_every_update(shape, numbers):
    # Compared with numbers: XLA adds one update or fails, and jax with it.
    indices, updates = ours(np.zeros((2, 3, 0), np.int32)), ours(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = lax.scatter_add(ours(np.ones(shape, np.float32)), indices, updates, lax.ScatterDimensionNumbers(*numbers))
    expected = {(): 16, (3,): [16, 1, 1], (2,): [4, 13]}[shape]
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected, np.float32))


def test_scatter_apply():
    values, indices = finite_values(np.float32, (4, 3), 13), np.array([[1], [3]], np.int32)

    def call(m, x, i, function=lambda m, x: m.mul(m.sin(x), 2.0)):
        numbers = m.ScatterDimensionNumbers((1,), (0,), (0,))
        return m.scatter_apply(x, i, lambda x: function(m, x), numbers, update_shape=(2, 3))

    check_values(call, values, indices)
    with pytest.raises(TypeError, match=r"scatter_apply: func must map f32\[\] .* bool\[\]"):
        call(lax, ours(values), ours(indices), lambda m, x: m.gt(x, 0.0))


@given(data=st.data(), seed=seeds)
@settings(max_examples=25)
def test_random_elements(data, seed):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    count = data.draw(st.integers(0, 4))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    mode = data.draw(st.sampled_from(["clip", "fill"]))
    indices = np.random.default_rng(seed).integers(-2, 6, (count, len(axes))).astype(np.int32)
    values = random_values(np.float32, shape, seed)
    kept = [i for i in range(len(shape)) if i not in axes]
    window = tuple(range(1, len(kept) + 1))
    sizes = [n if i in kept else 1 for i, n in enumerate(shape)]
    numbers = (window, tuple(sorted(axes)), tuple(axes))

    def call(m, x, i):
        found = m.gather(x, i, m.GatherDimensionNumbers(*numbers), sizes, mode=mode)
        return [found, m.scatter_max(x, i, found, m.ScatterDimensionNumbers(*numbers), mode=mode)]

    got = xtrace.jit(lambda x, i: call(lax, x, i))(ours(values), ours(indices))
    assert_same(got, jax.jit(lambda x, i: call(jax.lax, x, i))(values, indices))


def test_modes_and_dimension_numbers_are_those_of_jax():
    assert [(m.name, m.value, str(m)) for m in lax.GatherScatterMode] == [
        (m.name, m.value, str(m)) for m in jax.lax.GatherScatterMode
    ]
    for name in ("clip", "fill", "drop", "promise_in_bounds", None):
        mine, other = lax.GatherScatterMode.from_any(name), jax.lax.GatherScatterMode.from_any(name)
        assert mine.name == other.name
    for kind in ("GatherDimensionNumbers", "ScatterDimensionNumbers"):
        mine, other = (getattr(m, kind)((1,), (0,), (0,)) for m in (lax, jax.lax))
        assert repr(mine) == repr(other)
        assert mine._fields == other._fields


X, ROWS, U = np.ones((4, 3), np.float32), np.zeros((2, 1), np.int32), np.ones((2, 3), np.float32)


def gathered(numbers, sizes=(1, 3), **options):
    return lambda m, x, i, u: m.gather(x, i, m.GatherDimensionNumbers(*numbers), sizes, **options)


def scattered(numbers, **options):
    return lambda m, x, i, u: m.scatter_add(x, i, u, m.ScatterDimensionNumbers(*numbers), **options)


GOOD = ((1,), (0,), (0,))
ERRORS = [
    (gathered(GOOD, (1,)), TypeError, ["gather", "slice_sizes", "(1,)", "(4, 3)"], X, ROWS, U),
    (gathered(GOOD, (1, 5)), TypeError, ["gather", "slice_sizes", "(1, 5)"], X, ROWS, U),
    (gathered(GOOD, (2, 3)), TypeError, ["gather", "slice_sizes must be 1", "(2, 3)"], X, ROWS, U),
    (gathered(((1,), (0,), (0, 1))), TypeError, ["gather", "start_index_map", "(0, 1)", "size 1"], X, ROWS, U),
    (gathered(((1,), (0,), (5,))), TypeError, ["gather", "start_index_map", "(5,)"], X, ROWS, U),
    (gathered(((1,), (5,), (0,))), TypeError, ["gather", "collapsed_slice_dims", "(5,)"], X, ROWS, U),
    (gathered(((1, 2), (0,), (0,))), TypeError, ["gather", "offset_dims", "1"], X, ROWS, U),
    (gathered(((7,), (0,), (0,))), TypeError, ["gather", "offset_dims", "(7,)"], X, ROWS, U),
    (gathered(((1,), (0,), (0,), (0,), (0,))), TypeError, ["gather", "operand_batching_dims"], X, ROWS, U),
    (gathered(GOOD), TypeError, ["gather", "indices must be integers", "float32"], X, ROWS.astype(np.float32), U),
    (gathered(GOOD), TypeError, ["gather", "indices", "scalar"], X, np.int32(0), U),
    (gathered(GOOD, mode="wrap"), ValueError, ["mode 'wrap'", "'clip'"], X, ROWS, U),
    (gathered(GOOD, mode="fill", fill_value="a"), TypeError, ["fill_value", "'a'"], X, ROWS, U),
    (gathered(GOOD, mode="one_hot"), ValueError, ["gather", "one_hot"], X, ROWS, U),
    (lambda m, x, i, u: m.gather(x, i, GOOD, (1, 3)), TypeError, ["dimension_numbers", "lax.Gather"], X, ROWS, U),
    (scattered(GOOD), TypeError, ["scatter_add", "float32, int32"], X, ROWS, U.astype(np.int32)),
    (scattered(GOOD), TypeError, ["scatter_add", "updates of shape (3, 3)", "(2,)"], X, ROWS, X[:3]),
    (scattered(GOOD), TypeError, ["scatter_add", "axis 1 of updates", "size 5"], X, ROWS, np.ones((2, 5), np.float32)),
    (scattered(GOOD), TypeError, ["scatter_add", "indices must be integers"], X, ROWS.astype(np.float32), U),
    (scattered(((1,), (), (0,))), TypeError, ["scatter_add", "update_window_dims", "2"], X, ROWS, U),
    (scattered(((1,), (5,), (0,))), TypeError, ["scatter_add", "inserted_window_dims", "(5,)"], X, ROWS, U),
    (scattered(((1,), (0,), (0, 1))), TypeError, ["scatter_dims_to_operand_dims", "(0, 1)"], X, ROWS, U),
    (scattered(GOOD, mode="wrap"), ValueError, ["mode 'wrap'"], X, ROWS, U),
    (scattered(GOOD), TypeError, ["scatter_add", "bool"], X > 0, ROWS, U > 0),
]


@pytest.mark.parametrize(("operation", "kind", "words", "operand", "indices", "updates"), ERRORS)
def test_errors(operation, kind, words, operand, indices, updates):
    check_error(operation, kind, words, operand, indices, updates)
