"""Convolutions of every form against jax.lax."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import ALL, assert_same, finite_values, ours, random_values, theirs
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from xtrace import lax

# lhs shape, rhs shape, strides, padding, other arguments.
FORMS = {
    "plain": ((2, 3, 8), (4, 3, 3), (1,), "SAME", {}),
    "positional numbers": ((2, 3, 8), (4, 3, 3), (2,), "VALID", {}),
    "lower padding": ((2, 3, 8), (4, 3, 2), (2,), "SAME_LOWER", {}),
    "lower case": ((2, 3, 7), (4, 3, 4), (2,), "same", {}),
    "no spatial axis": ((2, 3), (4, 3), (), "SAME", {}),
    "explicit": ((2, 3, 8), (4, 3, 3), [2], [[1, 2]], {"lhs_dilation": [2], "rhs_dilation": np.array([2])}),
    "cropped": ((2, 3, 8), (4, 3, 3), (1,), [(-1, -2)], {}),
    "dilated same": ((2, 3, 8), (4, 3, 3), (1,), "SAME", {"rhs_dilation": (2,)}),
    "features last": ((2, 6, 5, 3), (2, 3, 3, 4), (2, 1), "SAME", {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}),
    "any letters": ((6, 3, 2, 5), (3, 3, 4, 2), (1, 2), [(1, 0), (2, 1)],
                    {"dimension_numbers": ("aCNb", "bIOa", "CbaN"), "lhs_dilation": (2, 1)}),
    "three axes": ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), (1, 2, 1), "SAME", {}),
    "feature groups": ((2, 6, 5), (4, 3, 2), (1,), "SAME", {"feature_group_count": 2}),
    "depthwise": ((2, 3, 5), (6, 1, 2), (1,), "SAME", {"feature_group_count": 3}),
    "batch groups": ((4, 3, 5), (6, 3, 2), (1,), "SAME", {"batch_group_count": 2}),
    "precision": ((2, 3, 5), (4, 3, 2), (1,), "SAME", {"precision": "highest"}),
    "two precisions": ((2, 3, 5), (4, 3, 2), (1,), "SAME", {"precision": ("high", "default")}),
    "no room": ((2, 3, 2), (4, 3, 5), (1,), [(0, 0)], {}),
    "no element": ((2, 3, 0), (4, 3, 3), (1,), [(1, 1)], {}),
    "no batch": ((0, 3, 5), (4, 3, 3), (1,), "SAME", {}),
    "no feature": ((2, 0, 5), (4, 0, 3), (1,), "SAME", {}),
}


def form(strides, padding, others):
    return lambda module, x, y: module.conv_general_dilated(x, y, strides, padding, **others)


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    left, right, strides, padding, others = FORMS[name]
    x, y = finite_values(np.float32, left, 1), finite_values(np.float32, right, 2)
    operation = form(strides, padding, others)
    check_values(operation, x, y, rounding=400)
    check_types(operation, (left, np.float32), (right, np.float32))
    if name != "explicit":
        # There jax shows the numbers of NumPy's that it was given.
        check_jaxpr(operation, x, y)


def test_the_sum_of_products():
    """Against the definition, element by element."""
    x, y = finite_values(np.float64, (2, 4, 5, 6), 1), finite_values(np.float64, (4, 2, 2, 3), 2)
    strides, pads, dilation = (2, 1), ((1, 2), (0, 1)), (1, 2)
    with xtrace.enable_x64(True):
        got = np.asarray(lax.conv_general_dilated(x, y, strides, pads, rhs_dilation=dilation, feature_group_count=2))
    padded = np.pad(x, ((0, 0), (0, 0), *pads))
    for n, o, i, j in np.ndindex(*got.shape):
        channels = padded[n, 2 * (o // 2) : 2 * (o // 2) + 2]
        window = channels[:, 2 * i : 2 * i + 2, j : j + 5 : 2]
        assert abs(got[n, o, i, j] - np.sum(window * y[o])) < 1e-12


@pytest.mark.parametrize("dtype", [d for d in ALL if np.dtype(d).itemsize < 8 or np.dtype(d) == np.complex64], ids=str)
def test_dtypes(dtype):
    x, y = random_values(dtype, (2, 3, 5), 1, -2, 2), random_values(dtype, (4, 3, 2), 2, -2, 2)
    check_values(form((1,), "SAME", {}), x, y, rounding=64)
    check_types(form((1,), "SAME", {}), ((2, 3, 5), dtype), ((4, 3, 2), dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.complex128], ids=lambda d: d.__name__)
def test_64_bits(dtype):
    x, y = random_values(dtype, (2, 3, 5), 1, -2, 2), random_values(dtype, (4, 3, 2), 2, -2, 2)
    with xtrace.enable_x64(True), jax.enable_x64(True):
        assert_same(lax.conv(ours(x), ours(y), (1,), "SAME"), jax.lax.conv(theirs(x), theirs(y), (1,), "SAME"), 64)


NARROW = [np.dtype(d) for d in (ml_dtypes.float8_e4m3fn, ml_dtypes.int4)]


def test_preferred_element_types():
    """The same combinations are accepted, with the same types."""
    names = [d for d in [*ALL, *NARROW] if np.dtype(d).itemsize < 8 or np.dtype(d) == np.complex64]
    for dtype, preferred in itertools.product(names, names):
        x, y = (ours(np.ones(s).astype(dtype)) for s in ((1, 1, 2), (1, 1, 2)))
        a, b = (theirs(np.ones(s).astype(dtype)) for s in ((1, 1, 2), (1, 1, 2)))
        operation = form((1,), "VALID", {"preferred_element_type": preferred})
        try:
            expected = jax.eval_shape(lambda a, b, operation=operation: operation(jax.lax, a, b), a, b)
        except TypeError:
            with pytest.raises(TypeError, match="preferred_element_type"):
                xtrace.eval_shape(lambda x, y, operation=operation: operation(lax, x, y), x, y)
            continue
        found = xtrace.eval_shape(lambda x, y, operation=operation: operation(lax, x, y), x, y)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [(np.int8, np.int32), (np.int8, np.float32), (np.uint8, np.int32), (np.float16, np.float32),
     (ml_dtypes.bfloat16, np.float32), (np.complex64, np.complex64), (NARROW[0], np.float32)],
    ids=str,
)
def test_values_of_preferred_element_types(dtype, preferred):
    x, y = random_values(dtype, (2, 3, 5), 1, 0, 3), random_values(dtype, (4, 3, 2), 2, 0, 3)
    operation = form((1,), "SAME", {"preferred_element_type": preferred})
    check_values(operation, x, y, rounding=64)
    check_jaxpr(operation, x, y)


def test_other_platforms():
    """A TPU multiplies complex numbers itself; modules of the other platforms read as jax's."""
    x, y = np.ones((1, 2, 4), np.complex64), np.ones((3, 2, 2), np.complex64)
    jitted = xtrace.jit(lambda x, y: lax.conv(x, y, (1,), "SAME"))
    other = jax.jit(lambda x, y: jax.lax.conv(x, y, (1,), "SAME"))
    for platform, count in (("tpu", 1), ("cuda", 3)):
        text = jitted.trace(x, y).lower(lowering_platforms=(platform,)).as_text()
        assert text.count("stablehlo.convolution") == count
        theirs = other.trace(x, y).lower(lowering_platforms=(platform,)).as_text()
        assert theirs.count("stablehlo.convolution") == count


SHORT = {
    "conv": lambda m, x, y: m.conv(x, y, (2,), "SAME", precision="high", preferred_element_type=np.float32),
    "conv_with_general_padding": lambda m, x, y: m.conv_with_general_padding(x, y, (1,), [(1, 0)], (2,), None),
    "general padding by name": lambda m, x, y: m.conv_with_general_padding(x, y, (1,), "VALID", None, (2,)),
    "patches": lambda m, x, y: m.conv_general_dilated_patches(x, (3,), (2,), "SAME"),
    "patches, precise": lambda m, x, y: m.conv_general_dilated_patches(x, (2,), (1,), [(1, 0)],
                                                                       precision=m.Precision.HIGH),
    "local": lambda m, x, y: m.conv_general_dilated_local(
        x, m.broadcast_in_dim(y, (4, 3, 3, 6), (0, 1, 2)).reshape(4, 9, 6), (1,), "VALID", (3,), precision="highest"),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_forms(name):
    x, y = finite_values(np.float32, (2, 3, 8), 1), finite_values(np.float32, (4, 3, 3), 2)
    check_values(SHORT[name], x, y, rounding=400)
    if "patches" not in name and name != "local":
        check_jaxpr(SHORT[name], x, y)


def test_patches_and_local_with_other_axes():
    x, y = finite_values(np.float32, (2, 3, 4, 3), 1), finite_values(np.float32, (2, 18, 2, 4), 2)
    numbers = ("NCHW", "HIWO", "HNCW")
    check_values(lambda m, x: m.conv_general_dilated_patches(x, (3, 2), (1, 2), "SAME", dimension_numbers=numbers), x)
    check_values(
        lambda m, x, y: m.conv_general_dilated_local(x, y, (1, 1), "VALID", (3, 2), dimension_numbers=numbers), x, y,
        rounding=400,
    )
    check_values(lambda m, x: m.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"), x.astype(np.int32))


@pytest.mark.parametrize("window", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2),), ((0, 0),)], ids=str)
def test_conv_transpose(padding, window):
    for stride, dilation, consistent in itertools.product((1, 2, 3, 5), (1, 2), (False, True)):

        def operation(m, x, y, s=stride, d=dilation, c=consistent):
            return m.conv_transpose(x, y, (s,), padding, rhs_dilation=(d,), use_consistent_padding=c)

        operands = (np.ones((2, 4, 3), np.float32), np.ones((window, 3, 2), np.float32))
        check_jaxpr(operation, *operands)
    check_values(operation, *[finite_values(np.float32, x.shape, 1) for x in operands], rounding=200)


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_conv_transpose_of_every_rank(rank):
    x = finite_values(np.float32, (2, *(3, 4, 2)[: rank - 2], 3), 1)
    y = finite_values(np.float32, (*(2, 3, 1)[: rank - 2], 3, 3), 2)
    for transposed in (False, True):

        def operation(m, x, y, transposed=transposed):
            return m.conv_transpose(x, y, (2, 1, 2)[: rank - 2], "SAME", transpose_kernel=transposed, precision="high")

        check_values(operation, x, y, rounding=200)
        # jax reverses one axis after the other.
        if not transposed or rank == 3:
            check_jaxpr(operation, x, y)


def test_conv_transpose_is_the_gradient():
    x, y = finite_values(np.float32, (2, 8, 3), 1), finite_values(np.float32, (3, 3, 4), 2)
    numbers = ("NHC", "HIO", "NHC")
    result, pullback = xtrace.vjp(lambda x: lax.conv_general_dilated(x, y, (2,), "VALID", dimension_numbers=numbers), x)
    found = lax.conv_transpose(result, y, (2,), "VALID", dimension_numbers=numbers, transpose_kernel=True)
    # The last element of x takes no part.
    assert_same(found, ours(np.asarray(pullback(result)[0])[:, :7]), 400)


def check_facts(name, *arguments, **keywords):
    """Assert that a function of shapes gives what jax's gives."""
    got, expected = getattr(lax, name)(*arguments, **keywords), getattr(jax.lax, name)(*arguments, **keywords)
    assert repr(got) == repr(expected).replace("np.int64(", "").replace("))", ")") or tuple(got) == tuple(expected)


def test_functions_of_shapes():
    for numbers in (None, ("NHC", "HIO", "CNH")):
        check_facts("conv_dimension_numbers", (2, 3, 8), (4, 3, 3), numbers)
    for numbers in (("NHWC", "WHIO", "NHWC"), ("NHWC", "HWIO", "NWHC")):
        check_facts("conv_dimension_numbers", (2, 3, 8, 1), (4, 3, 3, 1), numbers)
        check_facts("conv_general_permutations", numbers)
    own = lax.ConvDimensionNumbers((0, 1), (1, 0), (0, 1))
    assert lax.conv_dimension_numbers((2, 3), (4, 3), own) is own
    assert repr(own) == repr(jax.lax.ConvDimensionNumbers((0, 1), (1, 0), (0, 1)))
    for padding in ("SAME", "VALID", "SAME_LOWER", [(1, 2)]):
        check_facts("conv_shape_tuple", (2, 3, 8), (4, 3, 3), (2,), padding)
        check_facts("conv_shape_tuple", (4, 3, 2), (4, 3, 7), (2,), padding, batch_group_count=2)
        check_facts("conv_general_shape_tuple", (2, 8, 3), (3, 3, 4), (2,), padding, ("NHC", "HIO", "CNH"))
    for padding in ("SAME", "VALID", [(1, 1)], [(2, 0)]):
        check_facts("conv_transpose_shape_tuple", (2, 8, 3), (3, 3, 4), (2,), padding, ("NHC", "HIO", "CNH"))
    for padding, size in itertools.product(("SAME", "VALID", "SAME_LOWER", "valid"), (0, 7, 8)):
        check_facts("padtype_to_pads", (8, size), (3, 2), (2, 3), padding)


NUMBERS = {
    "ranks": ((4, 3, 3, 3), None, TypeError, "ndim to be equal, got 3 and 4"),
    "tuples": ((4, 3, 3), ((0, 1, 2),) * 3, TypeError, "must be strings"),
    "length": ((4, 3, 3), ("NH", "HIO", "CNH"), TypeError, "[0] must have len equal"),
    "letters": ((4, 3, 3), ("NHD", "HIO", "CNH"), TypeError, "'N' and 'C' exactly once, got NHD"),
    "twice": ((4, 3, 3), ("NHC", "HIO", "NNC"), TypeError, "[2] must contain"),
    "two": ((4, 3, 3), ("NHC", "HIO"), TypeError, "length 3, got 2"),
    "other letters": ((4, 3, 3), ("NCW", "HIO", "CNH"), TypeError, "same set of spatial characters"),
    "an integer": ((4, 3, 3), 3, TypeError, "int"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_errors_of_dimension_numbers(name):
    shape, numbers, error, words = NUMBERS[name]
    operands = np.ones((2, 3, 8), np.float32), np.ones(shape, np.float32)
    check_error(form((1,), "SAME", {"dimension_numbers": numbers}), error, [words], *operands)


def test_a_spatial_letter_twice():
    with pytest.raises(TypeError, match="duplicate characters, got NHHC"):
        lax.conv_dimension_numbers((1, 1, 1, 1), (1, 1, 1, 1), ("NHHC", "HWIO", "NHWC"))


ERRORS = {
    "number of pads": ((4, 3, 3), (1,), [(1, 1), (1, 1)], {}, TypeError, "expected 1, got 2"),
    "pads": ((4, 3, 3), (1,), [1], {}, ValueError, "(low, high) pairs, got [1]"),
    "name of padding": ((4, 3, 3), (1,), "FULL", {}, RuntimeError, "FULL"),
    "number of strides": ((4, 3, 3), (1, 1), "SAME", {}, ValueError, "but got 1 and 2"),
    "explicit strides": ((4, 3, 3), (1, 1), [(0, 0)], {}, ValueError, "but got 1 and 2"),
    "dilation": ((4, 3, 3), (1,), [(0, 0)], {"rhs_dilation": (0,)}, TypeError, "(0,)"),
    "same of dilated": ((4, 3, 3), (1,), "SAME", {"lhs_dilation": (2,)}, ValueError, "conv_transpose"),
    "features": ((4, 2, 3), (1,), "SAME", {}, ValueError, "3 // 1 != 2"),
    "groups": ((4, 3, 3), (1,), "SAME", {"feature_group_count": 2}, ValueError, "2 does not divide 3"),
    "no groups": ((4, 3, 3), (1,), "SAME", {"feature_group_count": 0}, ValueError, "positive integer, got 0"),
    "groups of out": ((4, 1, 3), (1,), "SAME", {"feature_group_count": 3}, ValueError, "4 is not a multiple of 3"),
    "batches": ((4, 3, 3), (1,), "SAME", {"batch_group_count": 3}, ValueError, "3 does not divide 2"),
    "batches of out": ((3, 3, 3), (1,), "SAME", {"batch_group_count": 2}, ValueError, "3 is not a multiple of 2"),
    "both": ((6, 1, 3), (1,), "SAME", {"batch_group_count": 2, "feature_group_count": 3}, ValueError, "At most one"),
    "precision": ((4, 3, 3), (1,), "SAME", {"precision": "foo"}, ValueError, "foo"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    shape, strides, padding, others, error, words = ERRORS[name]
    operands = np.ones((2, 3, 8), np.float32), np.ones(shape, np.float32)
    check_error(form(strides, padding, others), error, [words], *operands)


def test_errors_that_jax_leaves_to_the_compiler():
    x = np.ones((2, 3, 8), np.float32)
    with pytest.raises(ValueError, match="window_strides must be positive"):
        lax.conv_general_dilated(x, np.ones((4, 3, 3), np.float32), (0,), [(0, 0)])
    for others, words in (({"rhs": np.ones((4, 3, 0), np.float32)}, "no size 0"),
                          ({"lhs_dilation": (0,)}, "lhs_dilation must be positive"),
                          ({"lhs_dilation": (1, 1)}, "lhs_dilation must have the same number")):
        arguments = {"lhs": x, "rhs": np.ones((4, 3, 3), np.float32), "window_strides": (1,), "padding": [(0, 0)]}
        with pytest.raises((TypeError, ValueError), match=words):
            lax.conv_general_dilated(**(arguments | others))


def test_operands_of_different_dtypes():
    for dtype in (np.int32, np.float16, np.complex64):
        operands = np.ones((2, 3, 8), np.float32), np.ones((4, 3, 3), dtype)
        check_error(form((1,), "SAME", {}), TypeError, ["same dtypes, got float32", np.dtype(dtype).name], *operands)


def test_what_is_no_array():
    with pytest.raises(TypeError, match="lhs"):
        lax.conv_general_dilated([[1.0]], np.ones((1, 1), np.float32), (), "SAME")


def test_conv_transpose_errors():
    x, y = np.ones((2, 4, 3), np.float32), np.ones((3, 3, 2), np.float32)
    for padding in ("SAME_LOWER", "FULL"):
        check_error(lambda m, x, y, p=padding: m.conv_transpose(x, y, (2,), p), ValueError, [padding], x, y)
    check_error(lambda m, x, y: m.conv_transpose(x, y, (1,), [(1, 1)] * 2), ValueError, ["one pair"], x, y)
    check_error(lambda m, x, y: m.conv_transpose(x, y, (1, 1), "SAME"), ValueError, ["strides"], x, y)
    six = np.ones((1,) * 6, np.float32)
    check_error(lambda m, x, y: m.conv_transpose(x, y, (1,) * 4, "SAME"), ValueError, ["rank 6"], six, six)


def test_local_errors():
    x = np.ones((2, 3, 8), np.float32)
    for shape in ((4, 8, 6), (4, 9, 5)):
        check_error(
            lambda m, x, y: m.conv_general_dilated_local(x, y, (1,), "VALID", (3,)), TypeError, ["same shape"], x,
            np.ones(shape, np.float32),
        )


def test_numpy_operands():
    x, y = np.ones((2, 3, 5), np.float32), np.ones((4, 3, 2), np.float32)
    assert_same(lax.conv(x, y, (1,), "SAME"), jax.lax.conv(x, y, (1,), "SAME"), 16)
