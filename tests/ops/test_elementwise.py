"""Elementwise operations of lax against jax's: one table row each, expanded to values, types, jaxprs and errors."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import warnings
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.elementwise_operations import LAX, NamedOperation, in_jax
from tests.support.names import stable_name
from tests.support.operands import (
    ALL,
    COMPLEX,
    FLOAT,
    FLOAT8,
    aligned_shapes,
    assert_same,
    ours,
    random_values,
    seeds,
    theirs,
)
from xtrace import lax
from xtrace._src.algebra.families import Elementwise
from xtrace._src.core.primitive import all_primitives

SHAPE = (3, 5)


# The public functions, without the primitives that are bound.
FUNCTIONS = [row for row in LAX if not row.name.endswith("_p")]
PRIMITIVES = {name: p for name in {row.name for row in LAX} if isinstance(p := getattr(lax, name), Elementwise)}
# Where jax accepts what the hardware has no instruction for, both stop in XLA; these dtypes are not tried.
UNTRIED = {"atan2": COMPLEX, "clamp": [np.dtype(bool), *COMPLEX], "eq_to_p": COMPLEX}
# Operations that are more than one array of a dtype in and one out, tested on their own below.
OTHERS = {"select_n", "convert_element_type", "bitcast_convert_type", "optimization_barrier"}
# Operations with loops, which take long to compile, have tests of their own in test_special; what only other operations
# and derivatives use is tested with these. jax 0.10.2 lacks the last two: test_polynomials.
ELSEWHERE = {"igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta"} | {
    "add_any", "logaddexp", "random_gamma_grad_by_a",
} | {"log2", "one_minus_square"}


def values_for(row: NamedOperation, dtype: Any, shapes: Any = None, seed: int = 1) -> list[np.ndarray[Any, Any]]:
    """Return NumPy operands for a row."""
    shapes = [SHAPE] * row.operands if shapes is None else shapes
    return [random_values(dtype, s, seed + 97 * i, row.low, row.high) for i, s in enumerate(shapes)]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("row", LAX, ids=str)
def test_values_and_types_agree(row):
    # One program holds all dtypes: compiling is what takes the time.
    values = [values_for(row, dtype) for dtype in row.dtypes]
    expected = jax.jit(lambda all_values: [row.call(jax.lax, *xs) for xs in all_values])(theirs(values))
    got = xtrace.jit(lambda all_values: [row.call(lax, *xs) for xs in all_values])(ours(values))
    assert_same(got, expected, row.rounding, "jit")
    # Eagerly one dtype, another one for each row.
    i = LAX.index(row) % len(row.dtypes)
    assert_same(row.call(lax, *ours(values[i])), expected[i], row.rounding, f"eager, {row.dtypes[i].name}")


def without_literal_types(jaxpr: Any) -> list[str]:
    """Return the words of a jaxpr of jax's; ours do not print the types of literals."""
    return re.sub(r"(?<=\w):\w+\[\](?= )", "", str(jaxpr)).split()


@pytest.mark.parametrize("row", in_jax(LAX), ids=str)
def test_jaxprs_read_as_jax_prints_them(row):
    values = values_for(row, row.dtypes[0])
    expected = jax.make_jaxpr(lambda *xs: row.call(jax.lax, *xs))(*values)
    assert str(xtrace.make_jaxpr(lambda *xs: row.call(lax, *xs))(*values)).split() == without_literal_types(expected)


@pytest.mark.parametrize("row", LAX, ids=str)
def test_other_dtypes_are_refused_with_their_name(row):
    for dtype in ALL:
        if dtype in row.dtypes or dtype in UNTRIED.get(row.name, []):
            continue
        values = values_for(row, dtype, [()] * row.operands)
        with pytest.raises(TypeError):
            row.call(jax.lax, *theirs(values))
        with pytest.raises(TypeError, match=dtype.name):
            row.call(lax, *ours(values))


SCALARS = (True, 3, -2, 2.5, 1 + 2j)


@pytest.mark.parametrize("row", FUNCTIONS, ids=str)
def test_python_scalars_are_weak_and_not_converted(row):
    for scalar in SCALARS:
        operands = [scalar] * row.operands
        try:
            expected = jax.eval_shape(lambda: row.call(jax.lax, *operands))  # noqa: B023
        except TypeError:
            with pytest.raises(TypeError):
                row.call(lax, *operands)
        else:
            got = xtrace.eval_shape(lambda: row.call(lax, *operands))  # noqa: B023
            assert (got.shape, got.dtype, got.weak_type) == (expected.shape, expected.dtype, expected.weak_type), scalar


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("row", [row for row in FUNCTIONS if row.operands > 1], ids=str)
def test_a_python_scalar_goes_with_an_array_of_its_default_dtype(row):
    dtype, scalar = (np.float32, 2.5) if np.dtype(np.float32) in row.dtypes else (np.int32, 2)
    # The operand of clamp gives the shape.
    positions = [i for i in range(row.operands) if (row.name, i) != ("clamp", 1)]
    values = values_for(row, dtype)

    def every_position(package: Any, values: Any) -> Any:
        return [row.call(package, *[scalar if i == p else v for i, v in enumerate(values)]) for p in positions]

    expected = jax.jit(lambda xs: every_position(jax.lax, xs))(theirs(values))
    assert_same(xtrace.jit(lambda xs: every_position(lax, xs))(ours(values)), expected, row.rounding)
    assert_same(every_position(lax, ours(values))[0], expected[0], row.rounding, "eager")


FLOAT_LAX = [row for row in FUNCTIONS if set(FLOAT) <= set(row.dtypes)]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("row", FLOAT_LAX, ids=str)
def test_eight_bit_floats_agree(row):
    if row.name in ("nextafter", "mul"):
        return
    # One of the two, by turns: with infinities and without.
    values = values_for(row, FLOAT8[LAX.index(row) % 2])
    try:
        expected = row.call(jax.lax, *theirs(values))
    except jax.errors.JaxRuntimeError:
        return  # XLA has no such operation
    assert_same(row.call(lax, *ours(values)), expected, row.rounding)


# Shapes


@settings(max_examples=25)
@given(st.data())
def test_shapes_broadcast_as_in_jax(data):
    row = data.draw(st.sampled_from(LAX), label="operation")
    if row.name == "clamp":
        return
    dtype = data.draw(st.sampled_from(row.dtypes), label="dtype")
    shapes = data.draw(aligned_shapes(row.operands), label="shapes")
    values = values_for(row, dtype, shapes, data.draw(seeds))
    expected = row.call(jax.lax, *theirs(values))
    assert_same(row.call(lax, *ours(values)), expected, row.rounding)
    traced = xtrace.eval_shape(lambda *xs: row.call(lax, *xs), *ours(values))
    assert (traced.shape, traced.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 4), (2, 3, 2)])
def test_clamp_takes_bounds_that_are_scalars_or_of_the_operands_shape(shape):
    x = random_values(np.float32, shape, 1)
    low, high = random_values(np.float32, shape, 2), np.float32(1.5)
    for bounds in ((low, high), (np.float32(-1), high), (high, low), (-1.0, 1.0)):
        expected = jax.lax.clamp(theirs(bounds[0]), theirs(x), theirs(bounds[1]))
        assert_same(lax.clamp(ours(bounds[0]), ours(x), ours(bounds[1])), expected)


_CLAMP_OF_BOOLEANS = """
import itertools
import xtrace.numpy as jnp
from xtrace import lax
for low, x, high in itertools.product((False, True), repeat=3):
    assert bool(lax.clamp(jnp.bool_(low), jnp.bool_(x), jnp.bool_(high))) is min(max(low, x), high)
"""


def test_clamp_of_booleans():
    # XLA has it only with the code generation that users get.
    subprocess.run([sys.executable, "-c", _CLAMP_OF_BOOLEANS], env={**os.environ, "XLA_FLAGS": ""}, check=True)


@given(st.data())
@settings(max_examples=30)
def test_shapes_that_do_not_broadcast_are_all_listed(data):
    n = data.draw(st.integers(2, 4))
    shapes = data.draw(st.sampled_from([((n,), (n + 1,)), ((n, 1), (n + 1, 3)), ((n,), (1, n)), ((2, n), (n,))]))
    x, y = [ours(np.zeros(s, np.float32)) for s in shapes]
    with pytest.raises(TypeError) as caught:
        lax.add(x, y)
    for shape in shapes:
        assert str(shape) in str(caught.value)
    with pytest.raises(TypeError):
        jax.lax.add(np.zeros(shapes[0], np.float32), np.zeros(shapes[1], np.float32))


# Choice


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_select_by_a_boolean_or_a_number(dtype):
    cases = [random_values(dtype, SHAPE, i) for i in range(5)]
    choices = [
        (random_values(bool, SHAPE, 1), 2), (np.bool_(True), 2), (np.bool_(False), 1), (np.int32(1), 2),
        (random_values(np.int32, SHAPE, 2, -1, 6), 5), (random_values(np.uint8, SHAPE, 2, 0, 6), 3),
    ]
    which = [index for index, _ in choices]

    def chosen(package: Any, which: Any, cases: Any) -> Any:
        picked = [package.select_n(w, *cases[:n]) for w, (_, n) in zip(which, choices, strict=True)]
        return [*picked, package.select(which[0], *cases[:2])]

    expected = jax.jit(lambda *xs: chosen(jax.lax, *xs))(theirs(which), theirs(cases))
    assert_same(xtrace.jit(lambda *xs: chosen(lax, *xs))(ours(which), ours(cases)), expected)
    assert_same(lax.select_n(ours(which[4]), *ours(cases)), expected[4])


@pytest.mark.parametrize("transform", [lambda lib, f: f, lambda lib, f: lib.jit(f), lambda lib, f: lib.vmap(f, 1, 1)])
def test_vmap_spreads_scalar_cases_that_it_does_not_map(transform):
    which = np.array([[[0, 2, 1]], [[5, 0, -1]]], np.int32)

    def select(lib, first):
        cases = [first, *(lib.numpy.float32(i) for i in range(2))]
        f = lib.vmap(lambda w: (lib.lax.select_n(w, *cases), lib.lax.select(w > 1, 3, 4)))
        return transform(lib, f)(which)

    assert_same(select(xtrace, np.float32(7)), select(jax, np.float32(7)))
    with pytest.raises(TypeError, match=r"`which` shape .*\(2, 1\)|cases must have the same shapes"):
        select(xtrace, np.ones(1, np.float32))


def test_select_weak_types_and_errors():
    assert_same(lax.select(True, 1.0, 2.0), jax.lax.select(True, 1.0, 2.0))
    assert_same(lax.select(1, 1, 2), jax.lax.select(1, 1, 2))
    x, mask = ours(np.zeros(3, np.float32)), ours(np.ones(3, bool))
    with pytest.raises(ValueError, match="at least one case"):
        lax.select_n(mask)
    with pytest.raises(TypeError, match=r"float32, int32.*xtrace\.numpy\.where"):
        lax.select_n(mask, x, ours(np.zeros(3, np.int32)))
    with pytest.raises(TypeError, match=r"\(3,\), \(4,\)"):
        lax.select_n(mask, x, ours(np.zeros(4, np.float32)))
    with pytest.raises(TypeError, match=r"`which` shape \(4,\).*\(3,\)"):
        lax.select(ours(np.ones(4, bool)), x, x)
    with pytest.raises(TypeError, match="boolean or integer type, got float32"):
        lax.select(x, x, x)
    with pytest.raises(TypeError, match="> 2 cases"):
        lax.select_n(mask, x, x, x)
    with pytest.raises(TypeError, match=r"min\.shape=\(4,\)"):
        lax.clamp(ours(np.zeros(4, np.float32)), x, 1.0)
    with pytest.raises(TypeError, match="int32, float32, int32"):
        lax.clamp(0, x, 1)


# Conversion

NUMBERS = np.array([0.0, -0.0, 0.5, -0.5, 1.7, -1.7, 2.5, 127.6, 300.0, -300.0, 3e9, -3e9, np.nan, np.inf, -np.inf])


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("source", [*ALL, *FLOAT8], ids=lambda d: d.name)
def test_conversion_between_all_dtypes(source):
    with np.errstate(all="ignore"):
        x = NUMBERS.astype(source) if source.kind not in "biu" else random_values(source, (15,), 1)
    targets = [*ALL, *FLOAT8, np.dtype(ml_dtypes.int4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        expected = jax.jit(lambda x: [jax.lax.convert_element_type(x, d) for d in targets])(theirs(x))
        got = xtrace.jit(lambda x: [lax.convert_element_type(x, d) for d in targets])(ours(x))
    for one, other, target in zip(got, expected, targets, strict=True):
        assert_same(one, other, 0, f"{source.name} to {target.name}")


@pytest.mark.parametrize("scalar", [True, 1, 300, -1, 2**40, 1.5, 1j, np.float64(2.5), np.int64(7)], ids=stable_name)
@pytest.mark.parametrize("dtype", [bool, int, float, complex, np.int8, "uint8", ml_dtypes.bfloat16, np.float32])
def test_conversion_of_scalars_and_names_of_dtypes(scalar, dtype):
    if isinstance(scalar, complex) and dtype is not complex:
        if np.dtype(dtype) != np.bool_:
            with pytest.raises(TypeError, match="does not convert"):
                lax.convert_element_type(scalar, dtype)
        return
    if scalar == 2**40 and np.dtype(dtype).kind not in "bfcV":
        return  # out of range of the integer: NumPy wraps it, and jax converts with NumPy
    assert_same(lax.convert_element_type(scalar, dtype), jax.lax.convert_element_type(scalar, dtype))


def test_conversion_to_what_is_no_dtype():
    x = ours(np.zeros(3, np.float32))
    assert lax.convert_element_type(x, np.float32) is x
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        lax.convert_element_type(ours(np.array([1j], np.complex64)), np.float32)
    for wrong in ("str", "foo", object):
        with pytest.raises(TypeError, match="convert_element_type"):
            lax.convert_element_type(x, wrong)
    with pytest.raises(ValueError, match="dtype must be specified"):
        lax.convert_element_type(x, None)
    with pytest.raises(TypeError):
        lax.convert_element_type([1, 2], np.float32)
    weak = ours(np.zeros(3, np.float32), True)
    assert not lax.convert_element_type(weak, np.float32).weak_type


@pytest.mark.parametrize(
    ("source", "shape", "target"),
    [
        ("float32", (3,), "int32"), ("float32", (3,), "uint8"), ("float32", (2, 3), "int16"),
        ("int8", (3, 4), "float32"), ("int8", (4,), "uint32"), ("uint8", (3, 2), "bfloat16"),
        ("float16", (0, 2), "int32"), ("int32", (), "float32"), ("bool", (3,), "bool"),
        ("complex64", (3,), "complex64"),
    ],
)
def test_bits_read_as_another_dtype(source, shape, target):
    x = random_values(source, shape, 1)
    expected = jax.lax.bitcast_convert_type(theirs(x), target)
    got = lax.bitcast_convert_type(ours(x), target)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()


def test_bits_that_do_not_make_whole_elements():
    x = ours(np.zeros((3, 3), np.int8))
    with pytest.raises(ValueError, match=r"float32 have 32 bits.*\(3, 3\) holds 3 \* 8"):
        lax.bitcast_convert_type(x, np.float32)
    with pytest.raises(TypeError, match="int8 and bool"):
        lax.bitcast_convert_type(x, bool)


def test_optimization_barrier_gives_the_tree_back():
    tree = {"a": np.arange(3, dtype=np.float32), "b": (np.int32(2), 1.5)}
    assert_same(lax.optimization_barrier(ours(tree)), jax.lax.optimization_barrier(theirs(tree)))
    assert lax.optimization_barrier(()) == ()
    text = xtrace.jit(lambda x, y: lax.optimization_barrier((x, y))).lower(1.0, 2.0).as_text()
    assert "stablehlo.optimization_barrier %arg0, %arg1 : tensor<f32>, tensor<f32>" in text


# Accuracy

ACCURATE = [
    row.name for row in in_jax(FUNCTIONS) if "accuracy" in inspect.signature(getattr(jax.lax, row.name)).parameters
]


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy_is_an_attribute_of_the_operation(name):
    function = getattr(lax, name)
    x = ours(np.array([0.3, 0.7], np.float32))
    for accuracy, text in (
        (lax.AccuracyMode.HIGHEST, "result_accuracy_mode<HIGHEST>"),
        (lax.Tolerance(atol=1e-3, rtol=0.5, ulps=2), "atol = 1.000000e-03, rtol = 5.000000e-01, ulps = 2"),
    ):
        lowered = xtrace.jit(lambda x, a=accuracy: function(x, accuracy=a)).lower(x)
        assert text in lowered.as_text()
    assert_same(function(x, accuracy=lax.AccuracyMode.DEFAULT), function(x))
    with pytest.raises(TypeError, match="AccuracyMode"):
        function(x, accuracy=3)


def test_accuracy_that_cannot_be():
    with pytest.raises(TypeError, match="accuracy"):
        lax.sinh(1.0, accuracy=lax.AccuracyMode.HIGHEST)
    with pytest.raises(ValueError, match="negative"):
        lax.Tolerance(atol=-1.0)
    assert lax.Tolerance(ulps=2) == lax.Tolerance(ulps=2) != lax.Tolerance(ulps=3)


# Errors


@pytest.mark.parametrize("row", [row for row in FUNCTIONS if row.operands == 2], ids=str)
def test_mixed_dtypes_are_named_with_the_function_that_promotes(row):
    if len(row.dtypes) < 2 or row.name == "pow":
        return
    first, second = row.dtypes[0], row.dtypes[-1]
    x, y = ours(np.zeros(2, first)), ours(np.zeros(2, second))
    with pytest.raises(TypeError) as caught:
        row.call(lax, x, y)
    message = str(caught.value)
    assert f"got {first.name}, {second.name}" in message and f"lax.{row.name} requires" in message
    if hasattr(jax.numpy, str(getattr(lax, row.name).promoting)):
        assert f"xtrace.numpy.{getattr(lax, row.name).promoting} is" in message


@pytest.mark.parametrize(
    ("x", "y"),
    [(np.float32(1), np.int32(1)), (1, 1.0), (np.float32(1), 1), (np.int8(1), 1), (np.float16(1), 1.0), (1.0, 1j)],
)
def test_python_scalars_do_not_promote(x, y):
    for package in (jax.lax, lax):
        with pytest.raises(TypeError, match="requires arguments to have the same dtypes"):
            package.add(x, y)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32])
def test_integer_division_of_constants_by_zero(dtype):
    # XLA on CPU would fold it with the processor's division, which ends the process; jax lets it.
    x, zero = np.array([5, 1], dtype), np.array([0, 0], dtype)
    results = xtrace.jit(lambda: [lax.div(x, zero), lax.rem(x, zero), lax.div(dtype(5), dtype(0))])()
    expected = [jax.lax.div(theirs(x), theirs(zero)), jax.lax.rem(theirs(x), theirs(zero))]
    assert_same(results, [*expected, expected[0][0]])


def test_power_takes_an_integer_exponent_and_names_other_mixtures():
    x, n = ours(np.array([1.5, 2.0, -3.0], np.float32)), ours(np.array([2, -1, 3], np.int8))
    assert_same(lax.pow(x, n), jax.lax.pow(theirs(np.asarray(x)), theirs(np.asarray(n))))
    assert_same(lax.pow(2.0, 3), jax.lax.pow(2.0, 3))
    with pytest.raises(TypeError, match=r"float32 and float16.*xtrace\.numpy\.power"):
        lax.pow(x, ours(np.zeros(3, np.float16)))
    with pytest.raises(TypeError, match="int8"):
        lax.pow(n, x)
    with pytest.raises(TypeError, match=r"negative powers.*int8, -1"):
        lax.integer_pow(n, -1)
    for exponent in (2.5, x, "2"):
        with pytest.raises(TypeError, match="must be an integer"):
            lax.integer_pow(x, exponent)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], "text", None, {}, np.array(["a"])], ids=stable_name)
def test_operands_that_are_no_arrays_are_named(wrong):
    for function in (lax.add, xtrace.jit(lambda x: lax.add(x, wrong))):
        with pytest.raises(TypeError, match=r"is not a valid JAX type|not a dtype"):
            function(1.0, wrong) if function is lax.add else function(1.0)


def test_wrong_numbers_of_arguments_and_wrong_parameters():
    x = ours(np.zeros(2, np.float32))
    for wrong in (
        lambda: lax.add(x), lambda: lax.add(x, x, x), lambda: lax.sin(), lambda: lax.sin(x, y=x),
        lambda: lax.clamp(x, x), lambda: lax.nextafter(x), lambda: lax.bitwise_not(x, y=1),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="RoundingMethod"):
        lax.round(x, 2)
    with pytest.raises(ValueError, match="exponent_bits must be positive"):
        lax.reduce_precision(x, 0, 4)
    with pytest.raises(ValueError, match="mantissa_bits must be non-negative"):
        lax.reduce_precision(x, 5, -1)


def test_operands_by_keyword():
    x = ours(np.ones(2, np.float32))
    assert_same(lax.sub(y=x, x=x), lax.sub(x, x))
    assert_same(lax.nextafter(x1=x, x2=x), x)
    assert_same(lax.select(pred=True, on_true=x, on_false=x), x)
    for row in in_jax(FUNCTIONS):
        names = [list(inspect.signature(getattr(package, row.name)).parameters) for package in (lax, jax.lax)]
        assert names[0] == names[1], row.name


# Coverage


def test_every_elementwise_primitive_has_a_row():
    tested = {p.name for p in PRIMITIVES.values()} | OTHERS
    defined = {p.name for p in all_primitives() if isinstance(p, Elementwise) and p.__module__ == "xtrace.lax"}
    assert not defined - tested - ELSEWHERE, "give each a row in tests/support/elementwise_operations.py"
    assert tested <= {p.name for p in all_primitives()}


def test_primitives_have_their_public_aliases():
    of_jax = {row.name for row in in_jax(LAX)}
    for name, p in PRIMITIVES.items():
        assert getattr(lax, f"{p.name}_p") is p
        if name in of_jax:
            assert p.name == str(getattr(jax.lax, f"{p.name}_p"))
