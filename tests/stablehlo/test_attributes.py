"""Attribute text: every constant exact to the bit, every string as MLIR reads it."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.stablehlo import attributes
from xtrace._src.xla.mlir import modules

ALL = list(dtypes.all_dtypes.values())
FLOATS = [d for d in ALL if dtypes.is_floating(d)]
INTEGERS = [d for d in ALL if dtypes.is_integer(d) and dtypes.bit_width(d) > 1]
# Booleans are packed in MLIR's raw form, and StableHLO has no other integers of one bit.
RAW = [d for d in ALL if d != np.bool_ and dtypes.bit_width(d) > 1]


def constants(texts_and_arrays):
    """Constants with the given texts as MLIR prints them, which distinguishes all bits, read from one module."""
    lines = [
        f"    %{i} = stablehlo.constant {text} : {ShapedArray(array.shape, array.dtype).mlir_type}"
        for i, (text, array) in enumerate(texts_and_arrays)
    ]
    body = "\n".join(lines)
    module = modules.parse(f"module {{\n  func.func @main() {{\n{body}\n    return\n  }}\n}}\n")
    operations = list(module.body.operations[0].regions[0].blocks[0].operations)
    return [str(operation).partition(" = ")[2] for operation in operations[:-1]]


def raw(array):
    """MLIR's own bit-exact text of an array."""
    if array.size == 0:
        return "dense<>"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def assert_exact(arrays):
    found = constants([(attributes.dense(a), a) for a in arrays])
    expected = constants([(raw(a), a) for a in arrays])
    for one, other, array in zip(found, expected, arrays, strict=True):
        assert one == other, (attributes.dense(array), array)


def every_value(dtype):
    """All values of a type of at most 16 bits."""
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    width = dtypes.bit_width(dtype)
    bits = np.arange(1 << width, dtype=np.uint8)
    return bits.view(dtype) if dtypes.is_floating(dtype) or width == 8 else bits.astype(np.int8).astype(dtype)


# Numbers


@pytest.mark.parametrize("dtype", [d for d in RAW if dtypes.bit_width(d) <= 8], ids=str)
def test_every_value_of_a_small_type_is_exact(dtype):
    values = every_value(dtype)
    assert_exact([values, *values[:, None]])


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16], ids=str)
def test_every_value_of_a_half_type_is_exact(dtype):
    values = every_value(dtype)
    quiet = np.isnan(values.astype(np.float32))
    assert_exact(list(values.reshape(64, -1)))
    assert quiet.sum() > 100


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_are_exact(dtype):
    info = np.finfo(dtype)
    values = [
        0.0,
        1.0,
        0.1,
        1 / 3,
        np.pi,
        1e-5,
        1e22,
        123456789.0,
        info.max,
        info.tiny,
        info.smallest_subnormal,
        np.inf,
    ]
    values = np.array([*values, *(info.tiny * f for f in (0.5, 0.3, 1 / 3))], dtype)
    with np.errstate(over="ignore"):
        values = np.concatenate([values, -values, np.nextafter(values, dtype(0)), np.nextafter(values, dtype(np.inf))])
    bits = np.uint32 if dtype is np.float32 else np.uint64
    one = bits(1) << bits(8 * values.itemsize - 1)
    quiet = np.array(np.nan, dtype).view(bits)
    # Quiet and signalling, of both signs, with and without payload.
    nans = np.array([quiet, quiet | one, quiet | bits(5), quiet - bits(1), (quiet - bits(1)) | one]).view(dtype)
    assert_exact([values, nans, *values[:, None], *nans[:, None], np.array(-0.0, dtype), np.array(nans[1])])


@given(st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=20))
def test_any_bits_are_exact(chunks):
    data = b"".join(chunks)
    assert_exact([np.frombuffer(data, dtype) for dtype in (np.float32, np.float64, np.float16, np.int64, np.uint64)])


def test_complex_parts_keep_their_signs_and_specials():
    parts = [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan]
    for dtype in (np.complex64, np.complex128):
        values = np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
        assert_exact([values, values.reshape(6, 6), *values[:, None]])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_ends_of_integer_types_are_exact(dtype):
    bounds = dtypes.iinfo(dtype)
    assert_exact([np.array([bounds.min, 0, 1, bounds.max], object).astype(dtype), np.array(bounds.max).astype(dtype)])


def test_booleans():
    assert attributes.dense(np.array([True, False])) == "dense<[true, false]>"
    assert attributes.dense(np.array([True, True])) == attributes.dense(np.True_) == "dense<true>"
    assert constants([("dense<[true, false]>", np.zeros(2, bool))])


# Shapes


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 1, 1), (2, 1, 3), (0,), (0, 3), (2, 0)])
def test_every_shape(shape):
    for dtype in (np.float32, np.int8, np.complex64):
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        assert_exact([array, np.ones(shape, dtype)])


def test_the_order_of_memory_does_not_matter():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert attributes.dense(array.T) == attributes.dense(array.T.copy()) != attributes.dense(array)
    assert attributes.dense(array[:, ::-1]) == attributes.dense(array[:, ::-1].copy())


def test_equal_elements_are_written_once():
    assert attributes.dense(np.full((100, 3), 2.5, np.float32)) == "dense<2.500000e+00>"
    # Equal as numbers, but not in their bits.
    assert attributes.dense(np.array([0.0, -0.0], np.float32)) == "dense<[0.000000e+00, -0.000000e+00]>"


def test_numbers_are_written_as_a_person_would():
    for value, text in ((2.0, "2.000000e+00"), (-0.5, "-5.000000e-01"), (0.1, "0.1"), (1e30, "1.000000e+30")):
        assert attributes.dense(np.float64(value)) in (f"dense<{text}>", f"dense<{value:e}>")
    assert attributes.dense(np.float32(0.1)) == "dense<1.000000e-01>"
    assert attributes.dense(np.float32("nan")) == "dense<0x7FC00000>"
    assert attributes.dense(np.float32("-inf")) == "dense<0xFF800000>"
    assert attributes.dense(np.complex64(1 - 2j)) == "dense<(1.000000e+00, -2.000000e+00)>"
    assert attributes.dense(np.int8(-3)) == "dense<-3>"


# Scalars, which are remembered


SCALARS = [
    0.0, -0.0, 1.0, 0.1, float("inf"), float("-inf"), float("nan"), 0, 1, -1, True, False, 1j, complex(1, 0.0),
    complex(1, -0.0), complex(-0.0, 1), complex(0.0, 1), np.float32(0.1), np.float64(0.1), np.int8(1),
]


@pytest.mark.parametrize(
    "dtype", [np.float32, np.complex64, np.int32, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4], ids=str
)
def test_remembered_scalars_are_as_new_ones(dtype):
    dtype = np.dtype(dtype)
    for _ in range(2):
        for value in SCALARS:
            special = not np.isfinite(value) or isinstance(value, complex)
            if special and not dtypes.is_complex(dtype) and not (dtypes.is_floating(dtype) and type(value) is float):
                continue
            expected = attributes.dense(np.asarray(value).astype(dtype))
            assert attributes.scalar(value, dtype) == expected, value


def test_the_memory_of_scalars_is_bounded():
    for i in range(10_000):
        attributes.scalar(i + 0.5, np.dtype(np.float32))
    assert len(attributes._scalars) <= 4096


# Strings and lists


@pytest.mark.drawn(0.3)
@given(st.text(max_size=20))
def test_any_text_is_read_back(text):
    module = modules.parse(f"module attributes {{a.b = {attributes.string(text)}}} {{}}\n")
    # The attribute's own `value` decodes as UTF-8.
    assert module.operation.attributes["a.b"].value_bytes == text.encode()


def test_strings_are_readable_where_they_can_be():
    assert attributes.string("jit(f)/sin") == '"jit(f)/sin"'
    assert attributes.string('a "b" \\ c\n') == '"a \\"b\\" \\\\ c\\0A"'
    assert attributes.string("ß") == '"\\C3\\9F"'


def test_lists():
    assert attributes.integers([1, -2]) == "array<i64: 1, -2>" and attributes.integers([]) == "array<i64>"
    assert attributes.booleans([True, False]) == "array<i1: true, false>" and attributes.booleans([]) == "array<i1>"
    assert attributes.list_text((0, 1)) == "[0, 1]" and attributes.list_text(()) == "[]"
    text = ", ".join(f"a.{i} = {t}" for i, t in enumerate([attributes.integers([]), attributes.booleans([True])]))
    modules.verify(f"module attributes {{{text}}} {{}}\n")
