"""The rules of gather and of the scatters, and of NumPy's indexing made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import finite_values, ours, seeds
from tests.support.rules import check_rules
from xtrace import lax

# Operand shape, indices shape, dimension numbers, slice sizes, the shape of the updates of a scatter.
WINDOWS = {
    "rows": ((4, 3), (3, 1), ((1,), (0,), (0,)), (1, 3), (3, 3)),
    "elements, swapped": ((4, 3), (5, 2), ((), (0, 1), (1, 0)), (1, 1), (5,)),
    "windows": ((4, 5), (3, 2), ((0, 2), (), (0, 1)), (2, 3), (2, 3, 3)),
    "windows in the middle": ((4, 3, 2), (2, 2, 1), ((1, 3), (1,), (1,)), (4, 1, 2), (2, 4, 2, 2)),
    "one window": ((4, 5), (1,), ((0, 1), (), (1,)), (4, 2), (4, 2)),
    "no index": ((4, 3), (2, 0), ((1, 2), (), ()), (4, 3), (2, 4, 3)),
    "batched": ((4, 2, 3), (3, 2, 1), ((2,), (0,), (0,), (1,), (1,)), (1, 1, 3), (3, 2, 3)),
}
MODES = {"rows": "fill", "windows": "clip", "elements, swapped": "promise_in_bounds"}


def indices_of(name, low=0, high=3):
    return np.random.default_rng(3).integers(low, high, WINDOWS[name][1]).astype(np.int32)


def reading(name, **options):
    numbers, sizes = WINDOWS[name][2:4]
    return lambda m, x, i: m.gather(x, i, m.GatherDimensionNumbers(*numbers), sizes, **options)


def writing(function, name, **options):
    numbers = WINDOWS[name][2]
    return lambda m, x, i, u: getattr(m, function)(x, i, u, m.ScatterDimensionNumbers(*numbers), **options)


def operand(name, dtype=np.float32):
    return finite_values(dtype, WINDOWS[name][0], 1)


def updates(name, dtype=np.float32):
    return finite_values(dtype, WINDOWS[name][4], 2)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", WINDOWS)
def test_gather(name):
    check_rules(reading(name, mode=MODES.get(name, "clip")), operand(name), indices_of(name))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_gather_out_of_bounds(mode):
    check_rules(reading("rows", mode=mode), operand("rows"), np.array([[1], [9], [-1]], np.int32),
                not_smooth="rows outside are NaN" if mode == "fill" else "")


def test_gather_with_a_fill_value():
    check_rules(reading("rows", mode="fill", fill_value=2), operand("rows"), np.array([[1], [9], [0]], np.int32))
    check_rules(reading("rows", mode="fill"), operand("rows", np.int32), np.array([[1], [9], [0]], np.int32))


def test_gather_of_complex():
    check_rules(reading("rows", mode="fill"), operand("rows", np.complex64), indices_of("rows"))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", WINDOWS)
def test_scatter_add(name):
    call = writing("scatter_add", name, mode=MODES.get(name, "clip"))
    check_rules(call, operand(name), indices_of(name), updates(name), rounding=32)


@pytest.mark.parametrize("name", ["windows", "elements, swapped", "batched"])
def test_scatter(name):
    call = writing("scatter", name, mode=MODES.get(name, "clip"))
    check_rules(call, operand(name), indices_of(name), updates(name), rounding=32)


REPEATED = np.array([[1], [1], [3]], np.int32)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("function", ["scatter", "scatter_sub", "scatter_min", "scatter_max"])
def test_repeated_indices(function):
    check_rules(writing(function, "rows"), operand("rows"), REPEATED, updates("rows"), rounding=32)


@pytest.mark.parametrize("function", ["scatter_min", "scatter_max"])
def test_equal_values_share_the_derivative(function):
    values, new = np.ones((4, 3), np.float32), np.ones((3, 3), np.float32)
    new[0, 0], values[1, 1] = 2, -3
    turning = "turns where values are equal"
    check_rules(writing(function, "rows"), values, REPEATED, new, batching=False, not_smooth=turning)


@pytest.mark.parametrize("function", ["scatter", "scatter_mul", "scatter_max"])
def test_unique_indices(function):
    indices = np.array([[2], [0], [9]], np.int32)
    call = writing(function, "rows", unique_indices=True)
    check_rules(call, operand("rows"), indices, updates("rows"), rounding=32)


def test_scatter_of_complex():
    indices = np.array([[2], [0], [3]], np.int32)
    for function in ("scatter_add", "scatter_mul"):
        call = writing(function, "rows", unique_indices=True)
        new = updates("rows", np.complex64)
        check_rules(call, operand("rows", np.complex64), indices, new, rounding=32)


@pytest.mark.parametrize("function", ["scatter", "scatter_mul"])
def test_of_the_operand_alone(function):
    new = updates("rows")

    def call(m, x, i):
        return writing(function, "rows")(m, x, i, m.mul(2.0, new.astype(x.dtype)))

    check_rules(call, operand("rows"), REPEATED)


def test_scatter_mul_of_repeated_updates():
    def call(updates):
        return writing("scatter_mul", "rows")(lax, ours(operand("rows")), ours(REPEATED), updates).sum()

    with pytest.raises(NotImplementedError, match=r"scatter_mul: .* unique_indices=True"):
        xtrace.grad(call)(ours(updates("rows")))


@pytest.mark.parametrize("function", ["scatter", "scatter_mul"])
def test_one_index_vector_is_unique(function):
    def call(x, u):
        return writing(function, "one window")(lax, x, ours(indices_of("one window")), u)

    values = [ours(f("one window")) for f in (operand, updates)]
    text = str(xtrace.make_jaxpr(lambda *xs: xtrace.vjp(call, *xs)[1](xs[0]))(*values))
    assert "unique_indices=True" in text and "unique_indices=False" not in text and "iota" not in text


@pytest.mark.parametrize("function", ["scatter", "scatter_min", "scatter_max"])
def test_what_is_dropped_has_no_derivative(function):
    # The window that is dropped would, moved inside, tie with the operand.
    def call(x, u):
        return writing(function, "rows")(lax, x, ours(np.array([[1], [9], [1]], np.int32)), u).sum()

    x, u = np.ones((4, 3), np.float32), np.full((3, 3), 2 if function != "scatter_min" else -2, np.float32)
    u[1] = 1
    of_x, of_u = xtrace.grad(call, (0, 1))(ours(x), ours(u))
    np.testing.assert_array_equal(np.asarray(of_x)[:, 0], [1, 0, 1, 1])
    np.testing.assert_array_equal(np.asarray(of_u)[1], 0)
    np.testing.assert_array_equal(np.asarray(of_u).sum(0), 1)


def test_transpose_of_repeated_updates():
    def call(u):
        return writing("scatter", "rows")(lax, ours(np.zeros((4, 3), np.float32)), ours(REPEATED), u)

    with pytest.raises(NotImplementedError, match=r"scatter: .* unique_indices=True"):
        xtrace.linear_transpose(call, ours(updates("rows")))(ours(operand("rows")))


def test_scatter_apply():
    def call(m, x, i):
        numbers = m.ScatterDimensionNumbers((1,), (0,), (0,))
        return m.scatter_apply(x, i, lambda x: m.mul(x, 2.0), numbers, update_shape=(3, 3))

    check_rules(call, operand("rows"), REPEATED[[0, 2, 2]], derivatives=False)
    with pytest.raises(NotImplementedError, match=r"scatter_apply .* has no derivative"):
        xtrace.grad(lambda x: call(lax, x, ours(REPEATED)).sum())(ours(operand("rows")))


def test_empty():
    check_rules(reading("rows", mode="fill"), operand("rows"), np.zeros((0, 1), np.int32), second=False)
    check_rules(writing("scatter_add", "rows"), operand("rows"), np.zeros((0, 1), np.int32),
                np.zeros((0, 3), np.float32), second=False)


def test_index_take():
    rows, columns = np.array([0, -1, 3], np.int32), np.array([2, -2, 1], np.int32)
    check_rules(lambda m, x, i, j: m.index_take(x, (i, j), (0, 1)), operand("rows"), rows, columns)


@st.composite
def gathers(draw):
    """Draw the shapes of an operand and of indices, and dimension numbers and slice sizes that go with them."""
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple))
    axes = range(len(shape))
    batch = draw(st.lists(st.sampled_from(axes), unique=True, max_size=1))
    collapsed = [a for a in axes if a not in batch and draw(st.booleans())]
    positioned = draw(st.permutations([a for a in axes if a not in batch and draw(st.booleans())]))
    window = [draw(st.integers(1, n)) for n in shape]
    sizes = [1 if a in batch or a in collapsed else n for a, n in enumerate(window)]
    outer = draw(st.lists(st.integers(1, 3), max_size=2))
    places = [draw(st.integers(0, len(outer)))] if batch else []
    for place, axis in zip(places, batch, strict=True):
        outer.insert(place, shape[axis])
    kept = len(shape) - len(batch) - len(collapsed)
    rank = len(outer) + kept
    offset = sorted(draw(st.permutations(range(rank)))[:kept])
    numbers = tuple(map(tuple, (offset, collapsed, positioned, batch, places)))
    return shape, (*outer, len(positioned)), numbers, tuple(sizes)


@pytest.mark.drawn(0.3)
@given(case=gathers(), mode=st.sampled_from(["clip", "fill"]), data=st.data(), seed=seeds)
@settings(max_examples=20, deadline=None)
def test_random_batches_are_what_a_loop_gives(case, mode, data, seed):
    shape, indices_shape, numbers, sizes = case
    operands = [((2,), shape, np.float32), ((2,), indices_shape, np.int32)]
    chosen = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    random = np.random.default_rng(seed)
    values, axes = [], []
    for (extra, own, dtype), mapped in zip(operands, chosen, strict=True):
        axes.append(data.draw(st.integers(0, len(own))) if mapped else None)
        full = own if axes[-1] is None else (*own[: axes[-1]], *extra, *own[axes[-1] :])
        values.append(random.integers(-1, 4, full).astype(dtype))

    def read(x, i):
        return lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), sizes, mode=mode)

    def write(x, i):
        found = read(x, i)
        given = lax.add(found, lax.full_like(found, 1))
        return lax.scatter_add(x, i, given, lax.ScatterDimensionNumbers(*numbers), mode=mode)

    for function in (read, write):
        one = xtrace.jit(function)
        parts = [[np.take(x, k, a) if a is not None else x for x, a in zip(values, axes, strict=True)] for k in (0, 1)]
        expected = np.stack([np.asarray(one(*map(ours, p))) for p in parts])
        got = xtrace.jit(xtrace.vmap(function, tuple(axes)))(*map(ours, values))
        np.testing.assert_array_equal(np.asarray(got), expected)
