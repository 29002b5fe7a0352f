"""Reductions, cumulative operations and positions of extremes, against jax.lax."""

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import (
    BOOL,
    COMPLEX,
    FLOAT,
    FLOAT8,
    INTEGER,
    assert_same,
    finite_values,
    ours,
    random_values,
    seeds,
    shapes,
    theirs,
)
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from xtrace import lax

NUMBER = [*INTEGER, *FLOAT, *COMPLEX]
REDUCTIONS = {
    "reduce_sum": NUMBER,
    "reduce_prod": NUMBER,
    "reduce_max": [*BOOL, *NUMBER],
    "reduce_min": [*BOOL, *NUMBER],
    "reduce_and": [*BOOL, *INTEGER],
    "reduce_or": [*BOOL, *INTEGER],
    "reduce_xor": [*BOOL, *INTEGER],
}
ROWS = [(name, dtype) for name, dtypes in REDUCTIONS.items() for dtype in dtypes]
CUMULATIVE = dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), NUMBER) | {"cumlogsumexp": [*FLOAT, *COMPLEX]}
CUMULATIVE_ROWS = [(name, dtype) for name, dtypes in CUMULATIVE.items() for dtype in dtypes]


def reduction(name, axes):
    return lambda module, x: getattr(module, name)(x, axes)


def cumulative(name, axis, reverse):
    return lambda module, x: getattr(module, name)(x, axis, reverse=reverse)


def position(name, axis, dtype=np.int32):
    return lambda module, x: getattr(module, name)(x, axis, dtype)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("name", "dtype"), ROWS, ids=str)
def test_reduction(name, dtype):
    values = random_values(dtype, (3, 4, 2), 1)
    check_values(reduction(name, (0, 2)), values, rounding=6)


@pytest.mark.parametrize("axes", [(), (1,), (1, 0), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 3, 2), (2, 3, 1)])
def test_axes_and_empty_reductions(shape, axes):
    for name, dtypes in REDUCTIONS.items():
        dtype = dtypes[-1]
        check_types(reduction(name, axes), (shape, dtype))
    check_values(reduction("reduce_max", axes), finite_values(np.float32, shape, 2))
    check_values(reduction("reduce_prod", axes), finite_values(np.int16, shape, 2))


@pytest.mark.parametrize("dtype", [*FLOAT8, np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)], ids=str)
def test_neutral_elements_of_narrow_dtypes(dtype):
    values = np.zeros((0, 2), dtype)
    for name in ("reduce_max", "reduce_min"):
        got, expected = (getattr(m, name)(x, (0,)) for m, x in ((lax, ours(values)), (jax.lax, theirs(values))))
        assert_same(got, expected)


@pytest.mark.parametrize(("name", "dtype"), ROWS, ids=str)
def test_types_of_reductions(name, dtype):
    check_types(reduction(name, (1,)), ((2, 3), dtype))
    check_types(reduction(name, ()), ((), dtype))


@given(data=st.data(), seed=seeds)
@settings(max_examples=40)
def test_random_reductions(data, seed):
    name, dtype = data.draw(st.sampled_from(ROWS))
    shape = data.draw(shapes(0, 4, 0, 4))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    values = random_values(dtype, shape, seed)
    count = int(np.prod([shape[a] for a in axes]))
    expected = jax.jit(lambda x: reduction(name, axes)(jax.lax, x))(theirs(values))
    assert_same(xtrace.jit(lambda x: reduction(name, axes)(lax, x))(ours(values)), expected, 4 + count)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_accumulates_as_jax_does(dtype):
    values = random_values(dtype, (2, 5000), 3, 0, 1)
    for name in ("reduce_sum", "cumsum"):
        operation = reduction(name, (1,)) if name == "reduce_sum" else cumulative(name, 1, False)
        got, expected = operation(lax, ours(values)), operation(jax.lax, theirs(values))
        np.testing.assert_array_equal(np.asarray(got).astype(np.float32), np.asarray(expected).astype(np.float32))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("name", "dtype"), CUMULATIVE_ROWS, ids=str)
def test_cumulative(name, dtype):
    values = random_values(dtype, (3, 5), 4)
    # A sum of logarithms of exponentials takes a few operations for each element.
    check_values(cumulative(name, 1, False), values, rounding=30)
    check_values(cumulative(name, 0, True), values, rounding=30)


@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_types_and_empty_axes(name):
    for dtype in CUMULATIVE[name]:
        check_types(cumulative(name, 0, False), ((2, 3), dtype))
    for shape in ((0, 3), (3, 0), (1, 2)):
        check_values(cumulative(name, 0, True), finite_values(np.float32, shape, 5))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [*BOOL, *INTEGER, *FLOAT], ids=str)
def test_positions(name, dtype):
    # Few distinct values, so that there are ties; floats include NaN.
    values = random_values(dtype, (4, 7), 6)
    values[1] = values[1, 0]
    check_values(position(name, 1), values)
    check_types(position(name, 0, np.int8), ((2, 3), dtype))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_special_values(name):
    nan, inf = np.nan, np.inf
    rows = [[1, nan, nan, 2], [-inf, -inf, -inf, -inf], [inf, inf, -inf, inf], [0.0, -0.0, 0.0, -0.0]]
    values = np.array(rows, np.float32)
    check_values(position(name, 1), values)
    check_values(position(name, 1, np.uint8), values)
    check_types(position(name, 1), ((0, 3), np.float32))
    check_values(position(name, 1, np.int8), np.arange(300, dtype=np.float32)[None] % 299)


def test_reduce_recognises_monoids():
    x = finite_values(np.float32, (3, 4), 7)
    pairs = [("add", 0.0), ("mul", 1.0), ("max", -np.inf), ("min", np.inf)]
    for name, start in pairs:
        check_jaxpr(lambda m, x, name=name, start=start: m.reduce(x, start, getattr(m, name), (0,)), x)
        check_values(lambda m, x, name=name, start=start: m.reduce(x, start, getattr(m, name), (0,)), x)
    bits = random_values(np.int32, (3, 4), 7)
    for name, start in [("bitwise_and", -1), ("bitwise_or", 0), ("bitwise_xor", 0)]:
        check_jaxpr(lambda m, x, name=name, start=start: m.reduce(x, start, getattr(m, name), (1,)), bits)


def test_reduce_with_any_computation():
    x, y = finite_values(np.float32, (3, 4), 8), finite_values(np.int32, (3, 4), 9)
    check_values(lambda m, x: m.reduce(x, 1.0, m.add, (0,)), x)
    check_values(lambda m, x: m.reduce(x, 1.0, lambda a, b: m.mul(m.abs(a), m.abs(b)), (0, 1)), x, rounding=12)

    def both(m, x, y):
        def larger(a, b):
            first = m.gt(a[0], b[0])
            return m.select(first, a[0], b[0]), m.select(first, a[1], b[1])

        return m.reduce((x, y), (np.float32(-np.inf), np.int32(0)), larger, (1,))

    check_values(both, x, y)
    check_types(lambda m, x: m.reduce(x, 1.0, m.add, (0,)), ((3, 4), np.float32))


F, WHOLE = np.ones((2, 3), np.float32), np.ones((2, 3), np.int32)
ERRORS = [
    (lambda m, x: m.reduce_sum(x, (0, 0)), ValueError, ["reduce_sum", "axes", "(0, 0)"], F),
    (lambda m, x: m.reduce_sum(x, (2,)), ValueError, ["reduce_sum", "axes", "f32[2,3]"], F),
    (lambda m, x: m.reduce_max(x, (-1,)), ValueError, ["reduce_max", "axes", "f32[2,3]"], F),
    (lambda m, x: m.reduce_sum(x, 0), TypeError, ["reduce_sum", "axes", "sequence"], F),
    (lambda m, x: m.reduce_min(x, ("a",)), TypeError, ["reduce_min", "axes", "integers"], F),
    (lambda m, x: m.reduce_and(x, (0,)), TypeError, ["reduce_and", "float32", "astype"], F),
    (lambda m, x: m.reduce_sum(m.gt(x, x), (0,)), TypeError, ["reduce_sum", "bool"], F),
    (lambda m, x: m.argmax(x, 2, np.int32), ValueError, ["argmax", "axis 2", "f32[2,3]"], F),
    (lambda m, x: m.argmax(x, -1, np.int32), ValueError, ["argmax", "axis -1"], F),
    (lambda m, x: m.argmax(x, (0,), np.int32), TypeError, ["argmax", "axis must be an integer"], F),
    (lambda m, x: m.argmin(x, 0, np.float32), TypeError, ["argmin", "index_dtype", "float32"], F),
    (lambda m, x: m.argmin(x, 0, np.int32), ValueError, ["argmin", "no elements"], np.ones((0, 3), np.float32)),
    (lambda m, x: m.argmax(x, 0, np.int32), TypeError, ["argmax", "complex64"], np.ones(3, np.complex64)),
    (lambda m, x: m.cumsum(x, 2), ValueError, ["cumsum", "axis 2"], F),
    (lambda m, x: m.cumprod(x, -1), ValueError, ["cumprod", "axis -1", "from the front"], F),
    (lambda m, x: m.cummax(m.gt(x, x)), TypeError, ["cummax", "bool"], F),
    (lambda m, x: m.cumlogsumexp(x), TypeError, ["cumlogsumexp", "int32"], WHOLE),
    (lambda m, x: m.reduce(x, 1, m.add, (0,)), TypeError, ["reduce", "init_values[0]", "float32"], F),
    (lambda m, x: m.reduce(x, 1.0, m.add, (5,)), ValueError, ["reduce", "dimensions", "(5,)"], F),
    (lambda m, x: m.reduce((x, x), 0.0, m.add, (0,)), ValueError, ["reduce", "init_values"], F),
    (lambda m, x: m.reduce((x, x[:1]), (0.0, 0.0), lambda p, q: p, (0,)), ValueError, ["reduce", "operands"], F),
    (lambda m, x: m.reduce(x, x[0], m.add, (0,)), ValueError, ["reduce", "scalar"], F),
    (lambda m, x: m.reduce(x, 0.0, m.gt, (0,)), ValueError, ["reduce", "computation", "bool[]"], F),
]


@pytest.mark.parametrize(("operation", "kind", "words", "operand"), ERRORS)
def test_errors(operation, kind, words, operand):
    check_error(operation, kind, words, operand)


def test_a_value_that_is_no_array_is_named():
    with pytest.raises(TypeError, match=r"reduce_sum.*'abc'"):
        lax.reduce_sum("abc", (0,))


def test_modules_read_as_a_person_would_write_them():
    x = ours(finite_values(np.float32, (3, 4), 0))

    def columns(x):
        return lax.add(lax.reduce_max(x, (0,)), lax.cumsum(lax.reduce_sum(x, (0,))))

    lowered = xtrace.jit(columns).lower(x)
    assert (
        lowered.as_text()
        == """\
module @jit_columns attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.maximum across dimensions = [0] : \
(tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.add across dimensions = [0] : \
(tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = "stablehlo.reduce_window"(%3, %2) <{window_dimensions = array<i64: 4>, \
window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, \
padding = dense<[[3, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = stablehlo.add %4, %5 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = stablehlo.add %1, %7 : tensor<4xf32>
    return %8 : tensor<4xf32>
  }
}
"""
    )


def test_jaxprs():
    x, i = finite_values(np.float32, (3, 4), 0), finite_values(np.int32, (3, 4), 0)
    for name in REDUCTIONS:
        check_jaxpr(reduction(name, (0,)), i)
    for name in CUMULATIVE:
        check_jaxpr(cumulative(name, 1, True), x)
    check_jaxpr(position("argmax", 1), x)
    check_jaxpr(position("argmin", 0, np.int8), x)


@pytest.mark.parametrize("start", [lambda m: 0, lambda m: np.zeros((), np.float32), lambda m: m.zeros(()),
                                   lambda m: m.int32(0)])
def test_reduction_of_a_known_operation_from_its_neutral_element(start):
    for package in (xtrace, jax):
        value = start(package.numpy)
        jaxpr = package.make_jaxpr(lambda x, p=package, v=value: p.lax.reduce(x, v, p.lax.add, (0,)))(F)
        assert [equation.primitive.name for equation in jaxpr.eqns] == ["reduce_sum"]
