"""Activation functions against jax.nn: values, types, and derivatives where the formulas are delicate."""

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import HALF, assert_same, ours, random_values, theirs
from xtrace import nn

SMOOTH = ["celu", "elu", "gelu", "identity", "log_sigmoid", "mish", "selu", "soft_sign", "softplus", "squareplus",
          "tanh"]
FLOATING = ["glu", "sigmoid", "silu", "swish"]
KINKED = ["hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "relu", "relu6", "sparse_plus",
          "sparse_sigmoid"]
OF_ANY = [*SMOOTH, *KINKED, "log1mexp"]
NAMES = [*OF_ANY, *FLOATING]


def all_of(library, names):
    return lambda x: {name: getattr(library, name)(x) for name in names}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), *HALF, np.dtype(np.int8), np.dtype(np.int32), np.dtype(bool)])
def test_values_and_types(dtype):
    names = NAMES if dtype.kind not in "bi" else OF_ANY
    if dtype.kind == "b":
        names = [n for n in OF_ANY if n not in ("log_sigmoid", "log1mexp")]
    x = random_values(dtype, (3, 4), 1)
    expected = jax.jit(all_of(jax.nn, names))(theirs(x))
    assert_same(xtrace.jit(all_of(nn, names))(ours(x)), expected, 16)
    if dtype in (np.float32, np.int32):
        assert_same(all_of(nn, names)(ours(x)), all_of(jax.nn, names)(theirs(x)), 16)


def test_scalars_are_weak():
    for value in (2.0, -3):
        names = OF_ANY if isinstance(value, int) else [n for n in NAMES if n != "glu"]
        expected = jax.jit(lambda v, names=names: {n: getattr(jax.nn, n)(v) for n in names})(value)
        assert_same(xtrace.jit(all_of(nn, names))(value), expected, 16)


def test_options():
    x, slopes = random_values(np.float32, (2, 3), 5), np.array([0.5, 0.0, 2.0], np.float32)

    def options(library):
        return lambda x, a: [
            library.gelu(x, approximate=False), library.leaky_relu(x, a), library.elu(x, alpha=a),
            library.celu(x, a + 1), library.squareplus(x, b=a), library.glu(x[:, :2], axis=0),
        ]

    expected = jax.jit(options(jax.nn))(theirs(x), theirs(slopes))
    assert_same(xtrace.jit(options(nn))(ours(x), ours(slopes)), expected, 16)


POINTS = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 1e-4, -1e-4, 0.5, -0.5, 40.0, -40.0, 300.0, -300.0]


@pytest.mark.parametrize("names", [SMOOTH, ["sigmoid", "silu"], KINKED], ids=["smooth", "gated", "kinked"])
def test_derivatives(names):
    """First and second derivatives, at kinks and far out; 1 - sigmoid(6) loses eight bits."""

    def derivatives(library, api):
        def of(name):
            first = api.grad(getattr(library, name))
            return api.vmap(lambda x: (first(x), api.grad(first)(x)))

        return lambda x: {name: of(name)(x) for name in names}

    x = np.array(POINTS, np.float32)
    expected = jax.jit(derivatives(jax.nn, jax))(theirs(x))
    assert_same(xtrace.jit(derivatives(nn, xtrace))(ours(x)), expected, 2048)


def test_known_derivatives():
    """softplus is convex at 0, and neither it nor log1mexp loses its derivative far out."""
    first = xtrace.grad(nn.softplus)
    assert float(first(0.0)) == 0.5 and float(xtrace.grad(first)(0.0)) == 0.25
    assert [float(first(v)) for v in (np.inf, -np.inf, 1000.0, -1000.0)] == [1.0, 0.0, 1.0, 0.0]
    slope = xtrace.grad(nn.log1mexp)
    for point in (1e-6, 0.5, 3.0, 30.0):
        assert float(slope(point)) == pytest.approx(1 / np.expm1(point), rel=4 * 2.0**-23)
    assert float(xtrace.grad(nn.relu)(0.0)) == 0.0 and float(xtrace.grad(nn.relu6)(6.0)) == 0.0


def test_recorded_as_in_jax():
    text = str(xtrace.make_jaxpr(nn.relu)(1.0))
    assert "custom_jvp_call[" in text and "name=relu" in text and "max" in text
    for name in NAMES:
        x = np.ones((2, 4), np.float32)
        equations = [str(trace(getattr(library, name))(x)).count(" = ")
                     for library, trace in ((nn, xtrace.make_jaxpr), (jax.nn, jax.make_jaxpr))]
        assert equations[0] <= equations[1], name


def test_errors():
    for name in ("sigmoid", "silu", "glu"):
        with pytest.raises(TypeError, match="logistic"):
            getattr(nn, name)(np.ones((2, 2), np.int32))
    with pytest.raises(TypeError, match="relu requires ndarray or scalar"):
        nn.relu([1.0])
    with pytest.raises(ValueError, match="glu: the size along axis 0 must be divisible by 2"):
        nn.glu(np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"glu.*out of bounds"):
        nn.glu(np.ones(4, np.float32), axis=2)
    with pytest.raises(ValueError, match="sparse_sigmoid: complex"):
        nn.sparse_sigmoid(np.ones(2, np.complex64))
