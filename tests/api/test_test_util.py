"""check_grads, check_jvp and check_vjp: right derivatives pass and wrong ones do not, as with jax.test_util."""

from __future__ import annotations

import functools
import inspect

import jax
import jax.test_util
import numpy as np
import pytest

import xtrace
from xtrace.test_util import check_grads, check_jvp, check_vjp

BOTH = [xtrace, jax]


@pytest.mark.parametrize("name", ["check_grads", "check_jvp", "check_vjp"])
def test_parameters_are_jaxs(name):
    mine, other = (inspect.signature(getattr(p.test_util, name)).parameters.values() for p in BOTH)
    assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in other]


X = np.array([0.3, -1.2, 2.0], np.float32)
RIGHT = {
    "sin": (lambda p: p.numpy.sin, (1.0,)),
    "tree": (lambda p: lambda x, y: {"a": x["v"] * y, "b": p.numpy.sum(y**3)}, ({"v": X}, X)),
    "matmul": (lambda p: lambda w, x: p.numpy.tanh(w @ x), (np.eye(3, dtype=np.float32), X)),
    "complex": (lambda p: lambda z: z * p.numpy.conj(z) * z.real, (np.complex64(0.5 + 1j),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name):
    for package in BOTH:
        make, args = RIGHT[name]
        package.test_util.check_grads(make(package), args, 2, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_step_fits_narrow_types(dtype):
    # jax's step is too small for them: x + 1e-4 is x.
    check_grads(lambda x: x * x, (xtrace.numpy.asarray([1.0, -0.5], dtype),), 2)


def wrong(package, primal=1.0, factor=2.0):
    """Return the sine with a jvp that is wrong, in the value or in the derivative."""
    f = package.custom_jvp(package.numpy.sin)
    f.defjvp(lambda p, t: (primal * package.numpy.sin(p[0]), factor * package.numpy.cos(p[0]) * t[0]))
    return f


@pytest.mark.parametrize("modes", [["fwd"], ["rev"], "rev", ["fwd", "rev"]])
def test_wrong_derivatives_are_found(modes):
    said = "JVP tangent" if "fwd" in modes else "VJP cotangent projection"
    for package in BOTH:
        package.test_util.check_grads(wrong(package, factor=1.0), (1.0,), 1, modes)
        with pytest.raises(AssertionError, match=said):
            package.test_util.check_grads(wrong(package), (1.0,), 1, modes)
        package.test_util.check_grads(wrong(package), (1.0,), 1, modes, atol=10)


def test_wrong_second_derivatives_are_found():
    for package in BOTH:
        # The derivative is right, and its own derivative is that of something else.
        slope = package.custom_jvp(package.numpy.cos)
        slope.defjvp(lambda p, t: (package.numpy.cos(p[0]), 5 * t[0]))  # noqa: B023
        f = package.custom_jvp(package.numpy.sin)
        f.defjvp(lambda p, t: (package.numpy.sin(p[0]), slope(p[0]) * t[0]))  # noqa: B023
        package.test_util.check_grads(f, (1.0,), 1)
        for mode in ("fwd", "rev"):
            with pytest.raises(AssertionError):
                package.test_util.check_grads(f, (1.0,), 2, [mode])


def test_functions_of_derivatives():
    for package in BOTH:
        sin, cos = package.numpy.sin, package.numpy.cos
        check_jvp, check_vjp = package.test_util.check_jvp, package.test_util.check_vjp
        check_jvp(sin, functools.partial(package.jvp, sin), (X,))
        check_vjp(sin, functools.partial(package.vjp, sin), (X,))
        with pytest.raises(AssertionError, match="mine tangent"):
            check_jvp(sin, lambda p, t: (sin(*p), t[0]), (X,), err_msg="mine")  # noqa: B023
        with pytest.raises(AssertionError, match="mine primal"):
            check_jvp(sin, lambda p, t: (cos(*p), cos(*p) * t[0]), (X,), err_msg="mine")  # noqa: B023
        with pytest.raises(AssertionError, match="mine cotangent projection"):
            check_vjp(sin, lambda x: (sin(x), lambda c: (c,)), (X,), err_msg="mine")  # noqa: B023
        with pytest.raises((AssertionError, ValueError)):
            check_jvp(sin, lambda p, t: ([sin(*p)], t[0]), (X,))  # noqa: B023
        with pytest.raises(AssertionError):
            check_vjp(sin, lambda x: (package.numpy.ones(2), lambda c: (c,)), (X,))  # noqa: B023


def test_arguments_that_cannot_be_checked():
    with pytest.raises(TypeError, match="floating and complex"):
        check_grads(lambda x: x, (np.arange(3),), 1)
    with pytest.raises(ValueError, match="'forward'"):
        check_grads(lambda x: x, (1.0,), 1, modes=["forward"])
    with pytest.raises(TypeError, match="floating and complex"):
        check_jvp(lambda x: x, None, (3,))
    with pytest.raises(TypeError, match="floating and complex"):
        check_vjp(lambda x: x, None, (3,))
