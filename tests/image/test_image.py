"""Resampling against jax.image."""

import jax
import jax.image
import numpy as np
import pytest

import xtrace
import xtrace.image
import xtrace.numpy as jnp
from tests.support.operands import finite_values

IMAGE = finite_values(np.float32, (5, 6), 1)
METHODS = ["nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area"]
SCALE, TRANSLATION = np.array([0.5, 1.7], np.float32), np.array([0.7, -2.0], np.float32)


def close(got, expected):
    for key in expected:
        assert got[key].dtype == expected[key].dtype and got[key].shape == expected[key].shape
        # Up to twelve weights from sines of arguments up to 20, on values up to 4.
        np.testing.assert_allclose(got[key], expected[key], atol=256 * 2.0**-23, err_msg=str(key))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("shape", [(5, 6), (3, 6), (9, 4), (1, 13), (0, 6), (7, 2)])
def test_resize(shape):
    def case(package):
        def resized(x):
            return {f"{m} {a}": package.image.resize(x, shape, m, antialias=a) for m in METHODS for a in (True, False)}

        return resized

    close(xtrace.jit(case(xtrace))(IMAGE), jax.jit(case(jax))(IMAGE))


def test_scale_and_translate():
    def case(package):
        def moved(x, scale, translation):
            function = package.image.scale_and_translate
            return {
                f"{m} {a}": function(x, (4, 9), (0, -1), scale, translation, m, antialias=a)
                for m in METHODS[1:] for a in (True, False)
            } | {"one axis": function(x, (5, 3), (1,), scale[:1], translation[:1], "linear")}

        return moved

    given = IMAGE, SCALE, TRANSLATION
    close(xtrace.jit(case(xtrace))(*given), jax.jit(case(jax))(*given))


def test_derivatives():
    def case(package):
        def scalar(x, scale, translation):
            moved = package.image.scale_and_translate(x, (4, 9), (0, 1), scale, translation, "cubic")
            return (moved**2).sum() / 64

        return package.jit(package.grad(scalar, (0, 1, 2)))

    for got, expected in zip(*[case(p)(IMAGE, SCALE, TRANSLATION) for p in (xtrace, jax)], strict=True):
        # Sums of some hundred terms up to 10.
        np.testing.assert_allclose(got, expected, atol=4096 * 2.0**-23)


def test_dtypes():
    for method, dtype, found in (("linear", np.int32, np.float32), ("nearest", np.int8, np.int8),
                                 ("linear", np.float16, np.float16)):
        x = np.arange(6).astype(dtype)
        got, expected = [library.resize(x, (4,), method) for library in (xtrace.image, jax.image)]
        assert got.dtype == expected.dtype == found
        np.testing.assert_allclose(np.asarray(got, float), np.asarray(expected, float), atol=32 * 2.0**-10)
    assert {m.name: m.value for m in xtrace.image.ResizeMethod} == {m.name: m.value for m in jax.image.ResizeMethod}


def test_errors():
    x = jnp.ones((3, 4))
    with pytest.raises(ValueError, match='Unknown resize method "foo"; use one of nearest'):
        xtrace.image.resize(x, (2, 2), "foo")
    with pytest.raises(ValueError, match=r"resize: shape must have length.*\(2,\) vs \(3, 4\)"):
        xtrace.image.resize(x, (2,), "linear")
    with pytest.raises(ValueError, match="Nearest neighbor resampling"):
        xtrace.image.scale_and_translate(x, (3, 4), (0,), np.ones(1), np.ones(1), "nearest")
    with pytest.raises(ValueError, match=r"scale must have shape \(1,\), got \(2,\)"):
        xtrace.image.scale_and_translate(x, (3, 4), (0,), np.ones(2), np.ones(1), "linear")
    for position, vectors in ((3, (None, np.ones(1))), (4, (np.ones(1), None))):
        with pytest.raises(TypeError, match=f"argument {position}: None"):
            xtrace.image.scale_and_translate(x, (3, 4), (0,), *vectors, "linear")
    with pytest.raises(TypeError, match="resize"):
        xtrace.image.resize([1.0], (2,), "linear")
