"""Cosine transforms, convolutions, trends, interpolation and quantization of samples against jax.scipy."""

import importlib

import numpy as np
import pytest

import xtrace
from tests.support.operands import epsilon, finite_values, ours, theirs

F32, C64 = np.float32, np.complex64
WHOLE = np.arange(12, dtype=np.int32).reshape(3, 4)


def x(*shape, dtype=F32, seed=3):
    """Return finite numbers below four."""
    return finite_values(dtype, shape, seed)


# Module, name, operands, keywords. Each is a sum of at most 60 products of two numbers below four.
CASES = [
    *[("fft", name, (x(3, n),), {"norm": norm}) for name in ("dct", "idct") for n, norm in ((1, None), (5, "ortho"))],
    *[("fft", name, (x(3, 6, dtype=d),), {"n": 4, "axis": 0})
      for name, d in (("dct", C64), ("idct", C64), ("dct", np.float16))],
    *[("fft", name, (x(3, 4),), kw) for name in ("dctn", "idctn")
      for kw in ({"axes": 0}, {"s": 3}, {"s": (2, 5)}, {"s": (2,), "axes": (0, 1)}, {"s": (2, 3), "axes": 1},
                 {"s": np.int64(3)})],
    ("fft", "dct", (x(3, 4),), {"n": 3.0}),
    *[("signal", name, (x(5), x(3, seed=4)), {"mode": mode}) for name in ("convolve", "correlate")
      for mode in ("full", "same", "valid")],
    *[("signal", name, (x(3), x(5, seed=4)), {"mode": "valid"}) for name in ("convolve", "correlate")],
    *[("signal", name, (x(3, 4), x(2, 2, seed=4)), {"mode": "same"}) for name in ("convolve", "correlate2d")],
    *[("signal", name, (x(3, 4), x(2, 2, seed=4)), {"method": "fft"}) for name in ("convolve", "correlate")],
    ("signal", "correlate", (x(4, dtype=C64), x(3, dtype=C64, seed=4)), {}),
    ("signal", "convolve", (np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int8)), {}),
    ("signal", "convolve", (x(), x(seed=4)), {}),
    ("signal", "correlate2d", (x(2, 3), x(4, 6, seed=4)), {"mode": "same"}),
    ("signal", "convolve2d", (x(3, 4), x(2, 2, seed=4)), {"mode": "valid"}),
    ("signal", "fftconvolve", (x(4, 3), x(2, 3, seed=4)), {"axes": 0, "mode": "valid"}),
    ("signal", "fftconvolve", (x(4), x(7, seed=4)), {"mode": "same"}), ("signal", "fftconvolve", (x(0), x(3)), {}),
    ("signal", "detrend", (x(5, 6),), {"axis": 0}), ("signal", "detrend", ([1.0, 2.0, 4.0],), {}),
    ("signal", "detrend", (x(6),), {"bp": [1, 4]}),
    ("signal", "detrend", (x(5, 6),), {"type": "constant"}),
    *[("ndimage", "map_coordinates", (x(3), [x(7, seed=4) * 4]), {"order": order, "mode": mode})
      for order in (0, 1) for mode in ("constant", "nearest", "wrap", "mirror", "reflect")],
    *[("ndimage", "map_coordinates", (np.array([0, 1, 2, 3, 7, 4], np.int32), [np.arange(-3, 9, 0.5, np.float32)]),
       {"order": order, "mode": mode, "cval": 2.5})
      for order in (0, 1) for mode in ("constant", "nearest", "wrap", "mirror", "reflect")],
    ("ndimage", "map_coordinates", (WHOLE, [x(7), x(2, 7, seed=4)]), {"order": 1, "cval": 2.0}),
    ("ndimage", "map_coordinates", (x(1), [np.arange(-2, 3, dtype=np.int32)]), {"order": 1, "mode": "mirror"}),
    ("ndimage", "map_coordinates", ([[1.0, 2.0], [3.0, 5.0]], [[0.5, 0.25], (1.0, 0.5)]), {"order": 1}),
    ("cluster.vq", "vq", (x(5, 3), x(2, 3, seed=4)), {}), ("cluster.vq", "vq", (x(5), x(2, seed=4)), {}),
    ("integrate", "trapezoid", (x(3, 4),), {"dx": 0.5, "axis": 0}),
]


def both(module, name):
    """Return the function of both packages."""
    return [getattr(importlib.import_module(f"{root}.scipy.{module}"), name) for root in ("xtrace", "jax")]


def assert_near(got, expected):
    """Assert one type, and values that differ by 60 products of two numbers below four, rounded."""
    if isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            assert_near(one, other)
        return
    assert (got.shape, got.dtype, got.weak_type) == (expected.shape, expected.dtype, expected.weak_type)
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), atol=60 * 16 * epsilon(expected.dtype), rtol=0)


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "operands", "keywords"), CASES)
def test_values(module, name, operands, keywords):
    function, reference = both(module, name)
    expected = reference(*theirs(operands), **keywords)
    assert_near(function(*ours(operands), **keywords), expected)
    assert_near(xtrace.jit(lambda *arrays: function(*arrays, **keywords))(*ours(operands)), expected)


DERIVATIVES = [
    ("fft", "dct", (x(5),), {}), ("fft", "idct", (x(5),), {"norm": "ortho"}),
    ("signal", "convolve", (x(4), x(3, seed=4)), {}), ("signal", "fftconvolve", (x(4), x(3, seed=4)), {"mode": "same"}),
    ("signal", "detrend", (x(5),), {}),
]


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "operands", "keywords"), DERIVATIVES)
def test_linear_in_each_operand(module, name, operands, keywords):
    function, _ = both(module, name)
    for i, operand in enumerate(operands):
        step = x(*operand.shape, seed=9)

        def along(value, i=i):
            return function(*operands[:i], value, *operands[i + 1 :], **keywords)

        value, tangent = xtrace.jvp(along, (operand,), (step,))
        np.testing.assert_allclose(tangent, along(step), atol=60 * 16 * epsilon(F32))
        weights = x(*value.shape, seed=11)
        pulled = xtrace.grad(lambda v, along=along, weights=weights: (along(v) * weights).sum())(operand)
        np.testing.assert_allclose((pulled * step).sum(), (tangent * weights).sum(), atol=60 * 64 * epsilon(F32))
        mapped = xtrace.vmap(along)(np.stack([operand, step]))
        np.testing.assert_allclose(mapped[1], along(step), atol=60 * 16 * epsilon(F32))


MISTAKES = [
    ("fft", "dct", (x(3), 1), NotImplementedError, "type 2"), ("fft", "dct", (x(3), 2, 0), TypeError, "positive"),
    ("fft", "dct", (x(3), 2, None, -1, "forward"), ValueError, "norm must be"),
    ("fft", "dct", (x(3), 2, None, 1), ValueError, "axis 1"), ("fft", "dct", (x(),), ValueError, "axis -1"),
    ("fft", "dctn", (x(3, 2), 2, None, (0, 0)), ValueError, "duplicate"),
    ("fft", "idctn", (x(3, 2), 2, (3, 2, 1), 0), ValueError, r"s has 3 lengths, but x has shape \(3, 2\)"),
    ("signal", "convolve", (x(3), x(3, 2)), ValueError, r"number of dimensions, got shapes \(3,\)"),
    ("signal", "convolve", (x(3), x(3), "z"), ValueError, "mode must be one of"),
    ("signal", "convolve", (x(3), x(3), "full", "z"), ValueError, "method must be"),
    ("signal", "convolve", (x(3), x(0)), ValueError, "cannot be empty"),
    ("signal", "correlate", (x(3, 2), x(2, 3)), ValueError, "smaller than the other"),
    ("signal", "convolve2d", (x(3), x(3)), ValueError, "must have 2 dimensions"),
    ("signal", "convolve2d", (x(3, 3), x(3, 3), "full", "wrap"), NotImplementedError, "'wrap'"),
    ("signal", "fftconvolve", (x(4, 3), x(2, 2), "full", 0), ValueError, "must have equal sizes"),
    ("signal", "detrend", (x(3), -1, "z"), ValueError, "'linear' or 'constant'"),
    ("signal", "detrend", (x(3), -1, "linear", 9), ValueError, "breakpoints"),
    ("ndimage", "map_coordinates", (x(3), [x(2)], 2), NotImplementedError, "orders 0 and 1"),
    ("ndimage", "map_coordinates", (x(3), [x(2)], 1, "z"), NotImplementedError, "mode must be"),
    ("ndimage", "map_coordinates", (x(3), [x(2), x(2)], 1), ValueError, "length input.ndim = 1"),
    ("cluster.vq", "vq", (x(3), x(3, 2)), ValueError, "same rank"),
    ("cluster.vq", "vq", (x(2, 2, 2), x(2, 2, 2)), ValueError, "rank 1 or 2"),
    ("cluster.vq", "vq", (x(3, 2), x(3, 3)), TypeError, "equally long"),
]


@pytest.mark.parametrize(("module", "name", "arguments", "error", "words"), MISTAKES)
def test_mistakes(module, name, arguments, error, words):
    function, reference = both(module, name)
    with pytest.raises(error, match=words):
        function(*arguments)
    with pytest.raises(error):
        reference(*arguments)
