"""Products with a scale for each block, against definitions in NumPy: jax runs them on no CPU, but types them."""

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
import xtrace.nn
from tests.support.operands import assert_same_type
from xtrace.nn import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

EPS = 2.0**-23
LAST = (((2,), (2,)), ((0,), (0,)))


def _values(shape, seed):
    # Of few digits, so that no quotient comes close to the middle of two quantized values: without optimization XLA
    # rounds to float16 first.
    return (np.round(8 * np.random.default_rng(seed).normal(size=shape)) / 8).astype(np.float32)


def _quantized(x, mode, global_scale=1.0):
    """What `x` becomes by blocks along its last axis, in double precision."""
    size, largest, dtype = {"mxfp8": (32, 448.0, ml_dtypes.float8_e4m3fn), "nvfp4": (16, 6.0, ml_dtypes.float4_e2m1fn)}[
        mode
    ]
    blocks = x.astype(np.float64).reshape(*x.shape[:-1], -1, size) / global_scale
    scale = np.abs(blocks).max(-1, keepdims=True) / largest
    if mode == "mxfp8":
        scale = 2 ** np.ceil(np.log2(np.maximum(scale, 2.0**-127)))
    else:
        scale = np.minimum(scale, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    elements = (blocks / np.where(scale == 0, 1, scale)).astype(np.float32)
    stored = np.clip(elements, -largest, largest).astype(dtype).astype(np.float64)
    return (stored * scale * global_scale).reshape(x.shape)


def _close(found, expected, terms, size):
    # As many products are added as `terms`, each at most of `size`.
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=0, atol=4 * EPS * terms * size)


@pytest.mark.parametrize(
    ("elements", "scales", "count"),
    [("float8_e4m3fn", "float8_e8m0fnu", 2), ("float8_e5m2", "float32", 4), ("float32", "bfloat16", 1)],
)
def test_products(elements, scales, count):
    a, b = _values((2, 3, 64), 0).astype(elements), _values((2, 5, 64), 1).astype(elements)
    own_a, own_b = [(2.0 ** np.round(_values((2, n, count), n))).astype(scales) for n in (3, 5)]
    found = scaled_matmul(a, b, own_a, own_b)
    wide = [
        x.astype(np.float64) * np.repeat(s.astype(np.float64), 64 // count, -1) for x, s in ((a, own_a), (b, own_b))
    ]
    _close(found, np.einsum("bmk,bnk->bmn", *wide), 64, max(np.abs(x).max() for x in wide) ** 2)
    # The result's type is jax's, which has no program for it.
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int32):
        typed = jax.eval_shape(lambda *x, d=dtype: jax.nn.scaled_matmul(*x, d), a, b, own_a, own_b)
        assert_same_type(xtrace.eval_shape(lambda *x, d=dtype: scaled_matmul(*x, d), a, b, own_a, own_b), typed)


def _sample():
    a, b = 3 * _values((2, 32, 64), 2), _values((2, 64, 64), 3)
    a[0, 0, :32] = 0
    b[0, 1] *= 2.0**-100
    a[1, 2] *= 2.0**20
    return a, b


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "scale"), [("mxfp8", None), ("nvfp4", None), ("nvfp4", np.float32(512))])
def test_quantized_products_and_their_derivatives(mode, scale):
    a, b = _sample()
    weights = _values((2, 32, 64), 4)
    configs = [get_scaled_dot_general_config(mode, scale)] * 3
    factor = 1.0 if scale is None else float(scale)

    @xtrace.jit
    def program(a, b):
        def loss(a, b):
            found = scaled_dot_general(a, b, LAST, configs=configs)
            return (found * weights).sum(), found

        return xtrace.grad(loss, (0, 1), has_aux=True)(a, b)

    (of_a, of_b), found = program(a, b)
    stored = [_quantized(x, mode, factor) for x in (a, b)]
    _close(found, np.einsum("bmk,bnk->bmn", *stored), 64, np.abs(stored[0]).max() * np.abs(stored[1]).max())
    turned = [np.swapaxes(x, 1, 2) for x in (a, b, weights)]
    if mode == "mxfp8":
        exact_a = np.einsum("bmn,bkn->bmk", _quantized(weights, mode), _quantized(turned[1], mode))
        exact_b = np.einsum("bnm,bkm->bnk", _quantized(turned[2], mode), _quantized(turned[0], mode))
    else:
        # What is beyond the largest number that can be stored does not move the result.
        kept = [np.abs(x) <= factor * 6 * 448 for x in (a, b)]
        exact_a = np.einsum("bmn,bnk->bmk", weights.astype(float), b) * kept[0]
        exact_b = np.einsum("bmn,bmk->bnk", weights.astype(float), a) * kept[1]
        assert not kept[0].all()
    size = np.abs(weights).max()
    _close(of_a, exact_a, 64, size * np.abs(b).max())
    _close(of_b, exact_b, 32, size * np.abs(a).max())


@pytest.mark.slow
def test_axes():
    config = get_scaled_dot_general_config("mxfp8")

    def quantized(library, own):
        def program(a, b):
            configs = [own] * 3
            return (
                library.nn.scaled_dot_general(a, b, (((3, 1), (1, 3)), ((0,), (2,))), configs=configs),
                library.nn.scaled_dot_general(a[0, 0], b[0, :, 0, :4], (((1,), (0,)), ((), ())), np.float16, configs),
                library.nn.scaled_dot_general(a, b, (((3, 1), (1, 3)), ((0,), (2,)))),
            )

        return program

    a, b = _values((2, 4, 3, 32), 5), _values((5, 32, 2, 4), 6)
    found = xtrace.jit(quantized(xtrace, config))(a, b)
    typed = jax.eval_shape(quantized(jax, jax.nn.get_scaled_dot_general_config("mxfp8")), a, b)
    for one, other in zip(found, typed, strict=True):
        assert_same_type(one, other)
    left = _quantized(a.transpose(0, 2, 3, 1).reshape(2, 3, 128), "mxfp8")
    right = _quantized(b.transpose(2, 0, 1, 3).reshape(2, 5, 128), "mxfp8")
    _close(found[0], np.einsum("bmk,bnk->bmn", left, right), 128, np.abs(left).max() * np.abs(right).max())
    _close(found[2], np.einsum("bkmc,nckb->bmn", a, b.transpose(0, 1, 3, 2)), 128, np.abs(a).max() * np.abs(b).max())
    mapped = xtrace.vmap(lambda x: scaled_dot_general(x, b[0], (((2,), (0,)), ((), ())), configs=[config] * 3))(a)
    assert mapped.shape == (2, 4, 3, 2, 4)


def test_configurations():
    for mode in ("mxfp8", "nvfp4"):
        ours, theirs = get_scaled_dot_general_config(mode), jax.nn.get_scaled_dot_general_config(mode)
        for name in ("mode", "block_size"):
            assert getattr(ours, name) == getattr(theirs, name)
        for name in ("data_type", "scale_type"):
            assert np.dtype(getattr(ours, name)) == np.dtype(getattr(theirs, name))
    assert get_scaled_dot_general_config("mxfp8", 2.0).global_scale is None
    assert float(get_scaled_dot_general_config("nvfp4").global_scale[0]) == 1.0


def test_mistakes():
    a, b, own_a, own_b = [np.ones(s, np.float32) for s in ((1, 2, 64), (1, 3, 64), (1, 2, 2), (1, 3, 2))]
    config = get_scaled_dot_general_config("mxfp8")
    for operands, words in (
        ((a[0], b[0], own_a[0], own_b[0]), "3-dimensional arrays"),
        ((a, b[:, :, :32], own_a, own_b), r"matching batch \(B\) and contract \(K\) dimensions.*\(1, 2, 64\) and"),
        ((a, b, own_a[:, :, :1], own_b), "scales to have matching batch"),
        ((a, b, own_a[:, :1], own_b), r"scales to match non-contract dimensions.*a_scales: \(1, 1, 2\)"),
        ((a[:, :, :63], b[:, :, :63], own_a, own_b), "2 scales in shape .* for 63 elements"),
    ):
        with pytest.raises(ValueError, match=words):
            scaled_matmul(*operands)
    with pytest.raises(ValueError, match="Unsupported mode: fp3; write 'nvfp4' or 'mxfp8'"):
        get_scaled_dot_general_config("fp3")
    with pytest.raises(ValueError, match=r"global_scale must be one number, got an array of shape \(2,\)"):
        get_scaled_dot_general_config("nvfp4", np.ones(2, np.float32))
    with pytest.raises(ValueError, match=r"configs must be three.*got 1"):
        scaled_dot_general(a, b, LAST, configs=[config])
    with pytest.raises(TypeError, match=r"Only support preferred_element_type in .* but got int32"):
        scaled_dot_general(a, b, LAST, np.int32, [config] * 3)
    with pytest.raises(ValueError, match=r"must be a multiple of 32.* but is 40"):
        scaled_dot_general(a[:, :, :40], b[:, :, :40], LAST, configs=[config] * 3)
    with pytest.raises(TypeError, match="contracting and batch dimensions to have the same shape"):
        scaled_dot_general(a, b[:, :, :32], LAST, configs=[config] * 3)
