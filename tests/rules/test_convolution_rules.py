"""Convolutions: derivatives, transposes and batched forms in every arrangement, against jax."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import assert_same
from tests.support.rules import check_rules
from xtrace import lax


def values(shape, seed, dtype=np.float32):
    found = np.random.default_rng(seed).uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * np.random.default_rng(seed + 1).uniform(-1, 1, shape)
    return found.astype(dtype)


# lhs shape, rhs shape, strides, padding, other arguments.
CASES = {
    "plain": ((2, 3, 5), (4, 3, 3), (1,), "SAME", {}),
    "no spatial axis": ((2, 3), (4, 3), (), "VALID", {}),
    "strides and dilation": ((2, 3, 5), (2, 3, 2), (2,), [(1, 2)], {"lhs_dilation": (2,), "rhs_dilation": (3,)}),
    "an unused end": ((1, 2, 6), (2, 2, 2), (3,), [(0, 0)], {}),
    "negative padding": ((1, 2, 6), (2, 2, 2), (1,), [(-1, -2)], {}),
    "other axes": ((5, 2, 3), (2, 3, 4), (1,), "SAME_LOWER", {"dimension_numbers": ("HNC", "HIO", "CHN")}),
    "two axes": ((2, 4, 3, 2), (2, 3, 2, 3), (2, 1), "SAME", {"dimension_numbers": ("NHWC", "HWIO", "NWHC")}),
    "three axes": ((1, 2, 2, 3, 2), (2, 2, 1, 2, 2), (1, 2, 1), [(0, 0), (1, 0), (0, 1)], {}),
    "feature groups": ((2, 4, 4), (6, 2, 2), (2,), [(1, 0)], {"feature_group_count": 2}),
    "depthwise": ((2, 4, 3), (2, 1, 6), (1,), "SAME",
                  {"feature_group_count": 3, "dimension_numbers": ("NHC", "HIO", "NHC")}),
    "batch groups": ((4, 3, 4), (4, 3, 2), (1,), [(1, 0)], {"batch_group_count": 2}),
    "batch groups, other axes": ((4, 3, 4), (2, 3, 4), (2,), "SAME",
                                 {"batch_group_count": 2, "dimension_numbers": ("NCH", "HIO", "HNC")}),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    left, right, strides, padding, others = CASES[name]
    check_rules(
        lambda lax, x, y: lax.conv_general_dilated(x, y, strides, padding, **others),
        values(left, 1), values(right, 2), rounding=64,
    )


def test_complex():
    check_rules(
        lambda lax, x, y: lax.conv_general_dilated(x, y, (2,), [(1, 0)], feature_group_count=2),
        values((2, 4, 4), 1, np.complex64), values((2, 2, 2), 3, np.complex64), rounding=128,
    )


def test_a_wider_element_type():
    check_rules(
        lambda lax, x, y: lax.conv_general_dilated(x, y, (1,), "SAME", preferred_element_type=np.float32),
        values((2, 3, 4), 1, np.float16), values((2, 3, 2), 2, np.float16), rounding=64,
    )


def test_conv_transpose():
    check_rules(
        lambda lax, x, y: lax.conv_transpose(x, y, (2,), "SAME", transpose_kernel=True),
        values((2, 3, 3), 1), values((3, 2, 3), 2), rounding=64,
    )


def test_local():
    check_rules(
        lambda lax, x, y: lax.conv_general_dilated_local(x, y, (1,), "VALID", (2,)),
        values((2, 3, 4), 1), values((2, 6, 3), 2), rounding=64,
    )


def test_patches():
    check_rules(
        lambda lax, x: lax.conv_general_dilated_patches(x, (2, 2), (1, 2), "SAME"), values((2, 3, 3, 4), 1), rounding=64
    )


def test_integers_are_batched():
    x, y = np.arange(30, dtype=np.int32).reshape(2, 3, 5), np.arange(18, dtype=np.int32).reshape(3, 3, 2)
    check_rules(lambda lax, x, y: lax.conv_general_dilated(x, y, (1,), "SAME"), x, y, derivatives=False)


def gradients(left, right, strides, padding, **others):
    """Return the shapes and values of the gradients of a sum over a convolution."""

    def total(x, y):
        return lax.reduce_sum(lax.conv_general_dilated(x, y, strides, padding, **others), (0, 1, 2))

    return xtrace.grad(total, (0, 1))(values(left, 1), values(right, 2))


@pytest.mark.parametrize(
    ("left", "right", "strides", "padding"),
    [((2, 3, 1), (4, 3, 3), (1,), [(0, 0)]), ((0, 3, 4), (4, 3, 3), (1,), "SAME"), ((2, 0, 4), (4, 0, 3), (1,), "SAME"),
     ((2, 3, 4), (0, 3, 3), (1,), "SAME"), ((2, 3, 0), (4, 3, 3), (1,), [(2, 2)])],
)
def test_gradients_of_nothing_are_zeros(left, right, strides, padding):
    for found, shape in zip(gradients(left, right, strides, padding), (left, right), strict=True):
        assert found.shape == shape
        assert not np.asarray(found).any() or left[2] == 0


def test_vmap_over_no_element():
    for axes in ((0, 0), (0, None), (None, 0)):
        x = np.ones((0, 2, 3, 4), np.float32) if axes[0] == 0 else np.ones((2, 3, 4), np.float32)
        y = np.ones((0, 4, 3, 2), np.float32) if axes[1] == 0 else np.ones((4, 3, 2), np.float32)
        found = xtrace.vmap(lambda x, y: lax.conv_general_dilated(x, y, (1,), "SAME"), axes)(x, y)
        assert found.shape == (0, 2, 4, 4)


def test_a_pulled_back_sum_agrees_with_differences():
    """Along a direction, the derivative of a sum is its difference: the function is linear in each operand."""
    x, y, t = values((2, 4, 5), 1), values((4, 2, 3), 2), values((2, 4, 5), 3)

    def total(x):
        return lax.reduce_sum(lax.conv_general_dilated(x, y, (2,), [(2, 1)], rhs_dilation=(2,), feature_group_count=2),
                              (0, 1, 2))

    slope = float(np.sum(np.asarray(xtrace.grad(total)(x)) * t))
    assert abs(slope - float(total(x + t) - total(x))) < 200 * np.finfo(np.float32).eps


@st.composite
def convolutions(draw):
    """Draw shapes of operands and the arguments of a convolution that has at least one position."""
    rank = draw(st.integers(0, 2))
    some = st.integers(1, 3)
    features, batches = draw(st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2)]))
    space = [draw(st.integers(1, 6)) for _ in range(rank)]
    window = [draw(some) for _ in range(rank)]
    strides, spread, dilation = ([draw(some) for _ in range(rank)] for _ in range(3))
    pads = []
    for size, own, a, b in zip(space, window, spread, dilation, strict=True):
        short = max((own - 1) * b + 1 - ((size - 1) * a + 1), 0)
        low = draw(st.integers(-1 if short == 0 and size > own * b + 1 else 0, 3))
        pads.append((low, max(short - max(low, 0), 0) + draw(st.integers(0, 2))))
    channels = draw(some)
    orders = [draw(st.permutations(range(rank + 2))) for _ in range(3)]
    canonical = [
        (draw(some) * batches, channels * features, *space), (draw(some) * features * batches, channels, *window),
    ]
    left, right = (
        tuple([shape[order.index(i)] for i in range(rank + 2)])
        for shape, order in zip(canonical, orders[:2], strict=True)
    )
    numbers = lax.ConvDimensionNumbers(*map(tuple, orders))
    return left, right, (tuple(strides), tuple(pads), tuple(spread), tuple(dilation), numbers, features, batches)


@pytest.mark.drawn(0.3)
@given(convolutions(), st.integers(0, 100))
@settings(max_examples=25)
def test_any_convolution(convolution, seed):
    """The value is jax's, the gradients are adjoint to it, and mapping is a loop."""
    left, right, arguments = convolution
    x, y = values(left, seed), values(right, seed + 1)
    numbers = jax.lax.ConvDimensionNumbers(*arguments[4])
    expected = jax.lax.conv_general_dilated(x, y, *arguments[:4], numbers, *arguments[5:])

    def call(x, y):
        return lax.conv_general_dilated(x, y, *arguments)

    def size_of_terms(x, y):
        # Terms that cancel leave roundings of their own size.
        return float(np.max(np.asarray(call(abs(x), abs(y))), initial=0))

    result, pullback = xtrace.vjp(call, x, y)
    assert_same(result, expected, 16, floor=size_of_terms(x, y))
    cotangent = values(result.shape, seed + 2)
    scale = 64 * np.finfo(np.float32).eps * (1 + np.sum(np.abs(np.asarray(result) * cotangent)))
    for operand, found in zip((x, y), pullback(cotangent), strict=True):
        assert found.shape == operand.shape
        assert abs(np.sum(np.asarray(found) * operand) - np.sum(np.asarray(result) * cotangent)) <= scale
    both = xtrace.vmap(call, (1, 0))(np.stack([x, -x], 1), np.stack([y, y[::-1]]))
    for i, (a, b) in enumerate(((x, y), (-x, np.ascontiguousarray(y[::-1])))):
        assert_same(both[i], call(a, b), 16, floor=size_of_terms(a, b))
