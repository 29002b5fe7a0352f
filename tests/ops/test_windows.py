"""Operations on windows, against jax.lax."""

import importlib

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    assert_same,
    finite_values,
    ours,
    random_values,
    seeds,
    theirs,
)
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from xtrace import lax
from xtrace._src.core import dtypes

NUMBER = [*INTEGER, *FLOAT, *COMPLEX]
ROWS = [("add", d) for d in NUMBER] + [(name, d) for name in ("max", "min") for d in [*BOOL, *NUMBER]]


def start_of(name, dtype):
    """Return the neutral element."""
    if name == "add":
        return dtype.type(0)
    sign = -1 if name == "max" else 1
    if dtype.kind == "b":
        return np.bool_(sign > 0)
    if dtypes.is_integer(dtype):
        return dtype.type(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)
    return dtype.type(sign * np.inf)


def window(name, dtype, *arguments, **details):
    start = start_of(name, np.dtype(dtype))
    return lambda module, x: module.reduce_window(x, start, getattr(module, name), *arguments, **details)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize(("name", "dtype"), ROWS, ids=str)
def test_monoids(name, dtype):
    values = random_values(dtype, (4, 5), 1)
    operation = window(name, dtype, (2, 3), (1, 2), ((1, 0), (0, 1)))
    check_values(operation, values)
    check_jaxpr(operation, values)
    check_types(window(name, dtype, (2, 2)), ((3, 2), dtype))


FORMS = {
    "same": ((3, 2), (2, 2), "SAME"),
    "same lower": ((3, 2), (2, 2), "same_lower"),
    "valid": ((3, 2), None, "VALID"),
    "dilated same": ((3, 2), (2, 1), "SAME", (2, 1), (1, 2)),
    "dilated base": ((2, 2), (1, 3), ((1, 1), (0, 2)), (3, 2)),
    "negative padding": ((2, 2), (1, 1), ((-1, 1), (0, -2))),
    "larger than the operand": ((9, 9), (1, 1), "VALID"),
    "padding only": ((1, 1), (1, 1), ((2, 0), (0, 2))),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    for name in ("add", "max"):
        check_values(window(name, np.float32, *FORMS[form]), finite_values(np.float32, (4, 5), 2), rounding=12)
    check_types(window("min", np.float32, *FORMS[form]), ((4, 5), np.float32))
    check_values(window("add", np.float32, *FORMS[form]), np.zeros((0, 5), np.float32))


@given(data=st.data(), seed=seeds)
@settings(max_examples=25)
def test_random_windows(data, seed):
    name, dtype = data.draw(st.sampled_from(ROWS))
    rank = data.draw(st.integers(0, 3))

    def numbers(low, high):
        return tuple(data.draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank)))

    shape, pads = numbers(0, 4), list(zip(numbers(-1, 2), numbers(0, 2), strict=True))
    padding = data.draw(st.sampled_from(["VALID", "SAME", "SAME_LOWER", pads]))
    operation = window(name, dtype, numbers(1, 3), numbers(1, 3), padding, numbers(1, 2), numbers(1, 2))
    values = random_values(dtype, shape, seed)
    expected = jax.jit(lambda x: operation(jax.lax, x))(theirs(values))
    assert_same(xtrace.jit(lambda x: operation(lax, x))(ours(values)), expected, 32)


def test_any_reducer():
    x, n = finite_values(np.float32, (3, 4), 3), random_values(np.int32, (3, 4), 4)
    for start, name in [(1.0, "mul"), (2.0, "add"), (0.0, "max")]:
        operation = lambda m, x, start=start, name=name: m.reduce_window(x, start, getattr(m, name), (2, 2), (1, 2))  # noqa: E731
        check_values(operation, x, rounding=12)
        check_jaxpr(operation, x)
    bits = lambda m, x: m.reduce_window(x, -1, m.bitwise_and, (2, 1), (1, 1), "SAME")  # noqa: E731
    check_values(bits, n)
    check_jaxpr(bits, n)
    check_types(lambda m, x: m.reduce_window(x, 1.0, m.mul, (2,)), ((4,), np.float32))


def test_trees_and_positions():
    def largest_with_position(m, x):
        def better(a, b):
            first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return m.select(first, a[0], b[0]), m.select(first, a[1], b[1])

        positions = m.iota(np.int32, 6)
        return list(m.reduce_window((x, positions), (-np.inf, np.int32(99)), better, (3,), (2,), "SAME"))

    check_values(largest_with_position, np.array([1, 5, 5, 2, 0, 7], np.float32))

    def of_dict(m, x):
        found = m.reduce_window({"a": x}, {"a": 1.0}, lambda p, q: {"a": p["a"] * q["a"]}, (2, 2))
        return found["a"]

    check_values(of_dict, finite_values(np.float32, (3, 4), 5))


def test_a_reducer_is_traced_once():
    calls = []

    def product(x, y):
        calls.append(1)
        return x * y

    x = ours(finite_values(np.float32, (3, 4), 6))
    for _ in range(3):
        lax.reduce_window(x, 1.0, product, (2, 2))
        lax.reduce(x, 1.0, product, (0,))
    assert len(calls) == 2
    assert len(lax.reduce_window_p.programs) < 40


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("preferred", ["ge", "le"])
@pytest.mark.parametrize("dtype", FLOAT, ids=str)
def test_selection(preferred, dtype):
    # Few distinct values, so that there are ties.
    operand = random_values(np.int8, (4, 5), 7, 0, 3).astype(dtype)
    tangents, source = finite_values(dtype, (4, 5), 8), finite_values(dtype, (3, 3), 9)
    shape = {"window_dimensions": (2, 2), "window_strides": (2, 2), "padding": ((1, 1), (0, 1))}

    def scatter(m, source, operand):
        return m.select_and_scatter_add_p.bind(source, operand, select_prim=getattr(m, f"{preferred}_p"), **shape)

    def gather(m, tangents, operand):
        return m.select_and_gather_add_p.bind(
            tangents, operand, select_prim=getattr(m, f"{preferred}_p"), **shape, base_dilation=(1, 1),
            window_dilation=(1, 1),
        )

    # Windows of padding only add to no element, up to four windows to one.
    check_values(scatter, source, operand, rounding=16)
    check_values(gather, tangents, operand)
    for operation, first in ((scatter, source), (gather, tangents)):
        check_jaxpr(operation, first, operand)
        check_types(operation, (first.shape, dtype), (operand.shape, dtype))


def test_select_and_scatter():
    internal = importlib.import_module("jax._src.lax.windowed_reductions")._select_and_scatter
    operand, source = finite_values(np.float32, (4, 6), 10), finite_values(np.float32, (3, 2), 11)

    def apply(m, operand, source, start=0, combine="add"):
        function = internal if m is jax.lax else lax.select_and_scatter_p
        begin = np.float32(start)
        return function(operand, m.ge, (2, 3), (1, 3), ((0, 0), (0, 0)), source, begin, getattr(m, combine))

    check_values(apply, operand, source, rounding=8)
    check_values(lambda m, x, y: apply(m, x, y, -np.inf, "max"), operand, source)
    check_jaxpr(apply, operand, source)
    check_types(apply, ((4, 6), np.float32), ((3, 2), np.float32))
    stacked = [np.stack([v, -v]) for v in (operand, source)]
    got = xtrace.vmap(lambda x, y: apply(lax, x, y))(*ours(stacked))
    for i in range(2):
        assert_same(got[i], apply(lax, *ours([v[i] for v in stacked])))


def test_shapes():
    cases = [
        ((5, 6), (2, 3), (1, 2), ((0, 0), (1, 1))), ((5, 6), (2, 3), (1, 2), ((0, 0), (-1, 1))),
        ((0, 6), (2, 3), (1, 2), ((0, 0), (-1, 1)), (2, 2)), ((5, 6), (2, 3), (2, 2), ((1, 0), (2, 2)), (1, 3), (2, 2)),
        ((), (), (), ()),
    ]
    for case in cases:
        assert lax.reduce_window_shape_tuple(*case) == jax.lax.reduce_window_shape_tuple(*case)


def of(*arguments, start=0.0, computation="add", **details):
    return lambda m, x: m.reduce_window(x, start, getattr(m, computation), *arguments, **details)


ERRORS = {
    "window of another rank": (of((2,)), TypeError, ["window_dimensions", "2 axes", "(4, 5)"]),
    "strides of another rank": (of((2, 2), (1,)), TypeError, ["window_strides", "(1,)"]),
    "empty window": (of((0, 2)), TypeError, ["window_dimensions must be positive", "(0, 2)"]),
    "no step": (of((2, 2), (0, 1)), TypeError, ["window_strides must be positive"]),
    "no dilation": (of((2, 2), base_dilation=(0, 1)), TypeError, ["base_dilation must be positive"]),
    "negative dilation": (of((2, 2), window_dilation=(1, -1)), TypeError, ["window_dilation must be positive"]),
    "unknown padding": (of((2, 2), (1, 1), "FULL"), RuntimeError, ["FULL", "SAME_LOWER"]),
    "padding of another rank": (of((2, 2), (1, 1), ((0, 0),)), TypeError, ["padding", "2 axes"]),
    "padding of triples": (of((2, 2), (1, 1), ((0, 0, 0), (0, 0, 0))), TypeError, ["pair (before, after)"]),
    "no padding at all": (of((2, 2), (1, 1), 3), TypeError, ["padding", "3"]),
    "window of floats": (of(("a", 2)), TypeError, ["window_dimensions must be a sequence of integers"]),
    "start of another dtype": (
        of((2, 2), start=np.int32(0), computation="mul"), TypeError, ["init_value[0]", "float32", "i32[]"],
    ),
    "start that is no scalar": (
        of((2, 2), start=np.zeros(2, np.float32)), TypeError, ["init_value[0]", "scalar", "[2]"],
    ),
    "another structure": (of((2, 2), start=(0.0, 1.0)), ValueError, ["one structure"]),
    "no operand": (lambda m, x: m.reduce_window((), (), m.add, (2, 2)), ValueError, ["one structure"]),
    "reducer of another structure": (
        lambda m, x: m.reduce_window(x, 0.0, lambda a, b: (a, b), (2, 2)), ValueError, ["computation must return"],
    ),
    "batched start": (
        lambda m, x: (jax if m is jax.lax else xtrace).vmap(lambda i: m.reduce_window(x, i, m.mul, (2, 2)))(x[0]),
        NotImplementedError, ["cannot be mapped over init_value"],
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    operation, kind, words = ERRORS[name]
    check_error(operation, kind, words, finite_values(np.float32, (4, 5), 12))


def test_operands_of_several_shapes():
    x = finite_values(np.float32, (4, 5), 13)
    with pytest.raises(TypeError, match="operands must have one shape"):
        lax.reduce_window((ours(x), ours(x[:2])), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 2))


def test_sums_of_booleans():
    check_error(of((2, 2), start=False), TypeError, ["reduce_window_sum", "bool"], np.ones((3, 3), bool))


def test_reverse_mode_that_is_not_there():
    x = ours(finite_values(np.float32, (4, 5), 14))
    with pytest.raises(NotImplementedError, match="reverse-mode derivative only"):
        xtrace.vjp(lambda x: lax.reduce_window(x, 1.0, lax.mul, (2, 2)), x)
    with pytest.raises(NotImplementedError, match="without dilation"):
        xtrace.vjp(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), window_dilation=(1, 2)), x)[1](x[:3, :3])


def test_source_of_another_shape():
    x = ours(finite_values(np.float32, (4, 5), 15))
    with pytest.raises(TypeError, match="source must have one element for each window"):
        lax.select_and_scatter_p(x, lax.ge, (2, 2), (2, 2), ((0, 0), (0, 0)), x, 0.0, lax.add)
    with pytest.raises(TypeError, match="select must return a boolean"):
        lax.select_and_scatter_p(x, lax.add, (2, 2), (2, 2), ((0, 0), (0, 0)), x, 0.0, lax.add)


def test_windows_that_take_away_only():
    # XLA aborts on these as jax writes them.
    x = finite_values(np.float32, (3, 4), 16)
    for name in ("add", "max"):
        found = window(name, np.float32, (1, 1), (1, 1), ((-1, 0), (0, -1)))(lax, ours(x))
        np.testing.assert_array_equal(found, x[1:, :-1])
    found = lax.reduce_window(ours(x), 1.0, lax.mul, (1, 1), (1, 1), ((0, -2), (0, 0)), (2, 1))
    np.testing.assert_array_equal(found, np.stack([x[0], np.ones(4, np.float32), x[1]]))


def test_extremes_in_reverse_where_xla_aborts():
    x = finite_values(np.float32, (3, 4), 17)

    def pulled_back(x, *arguments):
        operation = of(*arguments, start=-np.inf, computation="max")
        result, pullback = xtrace.vjp(lambda x: operation(lax, x), ours(x))
        return pullback(ours(np.ones(result.shape, np.float32)))[0]

    assert pulled_back(x[0, 0], ()) == 1
    expected = np.zeros_like(x)
    np.testing.assert_array_equal(pulled_back(x, (2, 2), (1, 1), ((-4, 0), (0, 0))), expected)
    expected[1:, :-1] = 1
    np.testing.assert_array_equal(pulled_back(x, (1, 1), (1, 1), ((-1, 0), (0, -1))), expected)


def test_select_and_scatter_where_xla_aborts():
    x = ours(finite_values(np.float32, (3, 4), 18))
    scalar = ours(np.float32(3))
    assert lax.select_and_scatter_p(scalar, lax.ge, (), (), (), scalar, np.float32(1), lax.add) == 4
    with pytest.raises(TypeError, match="padding must not be negative"):
        lax.select_and_scatter_p(x, lax.ge, (2, 2), (2, 2), ((-1, 0), (0, 0)), x, 0.0, lax.add)
