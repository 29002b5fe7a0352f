"""Layers: the shapes, parameters, outputs and gradients of jax's stax for the same keys."""

from __future__ import annotations

import jax
import jax.example_libraries.stax as jax_stax
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from xtrace.example_libraries import stax

BOTH = ((xtrace, stax, ours), (jax, jax_stax, theirs))
IMAGE, MATRIX = (2, 8, 7, 3), (4, 5)
NCHW = ("NCHW", "OIHW", "NCHW")

# The layer, the shape of its input, and the number of terms in a sum that its elements are.
LAYERS = {
    "Dense": (lambda s: s.Dense(3), MATRIX, 5),
    "Dense, initializers": (lambda s: s.Dense(3, W_init=s.randn(0.5), b_init=s.ones), MATRIX, 5),
    "Dense of three axes": (lambda s: s.Dense(3), (2, 3, 5), 5),
    "Conv": (lambda s: s.Conv(4, (3, 2)), IMAGE, 18),
    "Conv, strides": (lambda s: s.Conv(4, (3, 2), strides=(2, 1), padding="SAME"), IMAGE, 18),
    "Conv, pairs": (lambda s: s.Conv(4, (3, 2), padding=((1, 0), (0, 2)), b_init=s.normal(1.0)), IMAGE, 18),
    "GeneralConv": (lambda s: s.GeneralConv(NCHW, 4, (3, 2), W_init=s.glorot(1, 0)), IMAGE, 48),
    "ConvTranspose": (lambda s: s.ConvTranspose(4, (3, 2)), IMAGE, 18),
    "ConvTranspose, strides": (lambda s: s.ConvTranspose(4, (3, 2), (2, 2), "SAME"), IMAGE, 18),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,)), (2, 7, 3), 9),
    "GeneralConvTranspose": (lambda s: s.GeneralConvTranspose(NCHW, 4, (3, 2), (1, 2)), IMAGE, 48),
    "BatchNorm": (lambda s: s.BatchNorm(), IMAGE, 112),
    "BatchNorm, one axis": (lambda s: s.BatchNorm(axis=0, epsilon=1e-2), MATRIX, 4),
    "BatchNorm, without center": (lambda s: s.BatchNorm((0,), center=False, gamma_init=s.randn(1.0)), MATRIX, 4),
    "BatchNorm, without scale": (lambda s: s.BatchNorm((0,), scale=False, beta_init=s.randn(1.0)), MATRIX, 4),
    "BatchNorm, neither": (lambda s: s.BatchNorm((0, 1), scale=False, center=False), MATRIX, 20),
    "MaxPool": (lambda s: s.MaxPool((2, 3)), IMAGE, 1),
    "MaxPool, strides": (lambda s: s.MaxPool((2, 3), (2, 2), "SAME"), IMAGE, 1),
    "SumPool": (lambda s: s.SumPool((2, 3), (2, 2), "SAME"), IMAGE, 6),
    "SumPool, spec": (lambda s: s.SumPool((2, 3), spec="NCHW"), (2, 3, 8, 7), 6),
    "SumPool, batch inside": (lambda s: s.SumPool((2, 3), (2, 1), spec="WHNC"), (8, 7, 2, 3), 6),
    "AvgPool": (lambda s: s.AvgPool((2, 3)), IMAGE, 6),
    "AvgPool, counts": (lambda s: s.AvgPool((2, 3), (1, 2), padding="SAME"), IMAGE, 6),
    "Flatten": (lambda s: s.Flatten, IMAGE, 1),
    "elementwise": (lambda s: s.elementwise(lambda x, y: x * y, y=2.0), MATRIX, 1),
    **{name: (lambda s, name=name: getattr(s, name), MATRIX, 16) for name in (
        "Tanh", "Relu", "Exp", "LogSoftmax", "Softmax", "Softplus", "Sigmoid", "Elu", "LeakyRelu", "Selu", "Gelu",
        "Identity",
    )},
    "FanOut": (lambda s: s.FanOut(3), MATRIX, 1),
    "FanInSum": (lambda s: s.FanInSum, [MATRIX, MATRIX, (1, 5)], 3),
    "FanInConcat": (lambda s: s.FanInConcat(), [(4, 2), (4, 1)], 1),
    "FanInConcat, axis 0": (lambda s: s.FanInConcat(0), [(4, 2), (1, 2)], 1),
    "Dropout": (lambda s: s.Dropout(0.7), MATRIX, 1),
    "Dropout of a test": (lambda s: s.Dropout(0.7, mode="test"), MATRIX, 1),
    "serial": (lambda s: s.serial(s.Dense(6), s.Relu, s.Dropout(0.5), s.Dropout(0.9), s.Dense(2), s.Tanh), MATRIX, 30),
    "parallel": (lambda s: s.parallel(s.Dense(2), s.Dropout(0.5), s.Dense(3)), [MATRIX, (3,), (2, 2)], 5),
    "residual": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.serial(s.Dense(5), s.Relu), s.Identity), s.FanInSum), MATRIX, 10
    ),
    "shape_dependent": (lambda s: s.serial(s.shape_dependent(lambda shape: s.Dense(2 * shape[-1]))), MATRIX, 5),
    "network": (
        lambda s: s.serial(
            s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), (2, 2)), s.Flatten, s.Dense(3),
            s.LogSoftmax,
        ), IMAGE, 200
    ),
}


def draw(shape):
    """Return values of a shape, or of each of several."""
    if isinstance(shape, list):
        return [finite_values(np.float32, s, i) for i, s in enumerate(shape)]
    return finite_values(np.float32, shape, 1)


def plain(shape):
    """Return a shape, or a sequence of shapes, with integers of Python; jax's are NumPy's in part."""
    return type(shape)(plain(n) for n in shape) if isinstance(shape, (tuple, list)) else int(shape)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_jax(name):
    make, input_shape, terms = LAYERS[name]
    results = []
    for package, library, convert in BOTH:
        init_fun, apply_fun = make(library)
        key = package.random.key(3)
        shape, params = init_fun(key, input_shape)
        x = convert(draw(input_shape))
        call = package.jit(lambda params, x, key=key, apply_fun=apply_fun: apply_fun(params, x, rng=key))
        out = call(params, x)

        def loss(params, x, package=package, call=call):
            return sum(package.numpy.sum(package.numpy.sin(y)) for y in package.tree.leaves(call(params, x)))

        gradients = package.tree.leaves(package.grad(loss, (0, 1))(params, x))
        results.append((package.tree.leaves(params), out, plain(shape), gradients))
    (params, y, shape, g), (other_params, z, other_shape, h) = results
    assert shape == other_shape
    assert_same(params, other_params)
    # Sums of so many terms of sizes up to some tens cancel.
    assert_same(y, z, terms, name, floor=32)
    assert_same(g, h, 8 * terms, f"{name}, gradients", floor=64)


def test_initializers_keep_the_size_of_the_batch_open():
    init_fun, _ = stax.serial(
        stax.Conv(4, (3, 3)), stax.ConvTranspose(2, (3, 3)), stax.MaxPool((2, 2)), stax.BatchNorm(), stax.Flatten,
        stax.Dense(5), stax.FanOut(2), stax.parallel(stax.Relu, stax.Dense(1)), stax.FanInConcat(),
    )
    assert init_fun(xtrace.random.key(0), (-1, 8, 8, 3))[0] == (-1, 6)


def test_networks_can_be_mapped_and_sampled():
    _, apply_fun = layer = stax.serial(stax.Dense(6), stax.Dropout(0.5))
    _, params = layer[0](xtrace.random.key(0), (3,))
    keys = xtrace.random.split(xtrace.random.key(1), 4)
    found = xtrace.vmap(lambda key: apply_fun(params, np.ones(3, np.float32), rng=key))(keys)
    for key, row in zip(keys, found, strict=True):
        assert_same(row, apply_fun(params, np.ones(3, np.float32), rng=key), 8)


def test_functions_that_jax_has_in_this_module_too():
    for name, of in {"randn": "normal", "glorot": "glorot_normal", "logsoftmax": "log_softmax"}.items():
        assert getattr(stax, name) is getattr(stax, of)
    for name in ("elu", "gelu", "leaky_relu", "log_softmax", "relu", "selu", "sigmoid", "softmax", "softplus"):
        assert getattr(stax, name) is getattr(xtrace.nn, name)
    assert stax.standardize is xtrace.nn.standardize and stax.zeros is xtrace.nn.initializers.zeros


MISTAKES = {
    "no key": (lambda: stax.Dropout(0.5)[1]((), np.ones(3)), ValueError, r"apply_fun\(params, inputs, rng="),
    "no key of a layer": (
        lambda: stax.serial(stax.Relu, stax.Dropout(0.5))[1]([(), ()], np.ones(3)), ValueError, "with a random key"
    ),
    "no layers": (stax.serial, ValueError, "serial: give at least one layer"),
    "no parallel layers": (stax.parallel, ValueError, "parallel: give at least one layer"),
    "not called": (lambda: stax.serial(stax.Dense), TypeError, "layer 0, .*, is a function that builds layers; call"),
    "no pair": (lambda: stax.serial(stax.Relu, 3), TypeError, "layer 1, 3, is no such pair"),
    "parameters": (lambda: stax.serial(stax.Relu)[1]([(), ()], 1.0), ValueError, "1 layers need as many parameters"),
    "inputs": (lambda: stax.parallel(stax.Relu)[1]([()], [1.0, 2.0]), ValueError, "1 layers need as many inputs"),
    "shapes": (
        lambda: stax.parallel(stax.Relu)[0](xtrace.random.key(0), (3,)), TypeError, r"sequence of shapes, got \(3,\)"
    ),
    "no shapes": (lambda: stax.FanInSum[0](None, ()), ValueError, "there must be at least one input"),
    "axes of a convolution": (
        lambda: stax.Conv(2, (3, 3))[0](xtrace.random.key(0), (8, 8, 3)), ValueError, "must have the 4 axes NHWC"
    ),
    "axes of a window": (lambda: stax.MaxPool((2, 2))[0](None, (8, 8, 3)), ValueError, "the input must have 4 axes"),
    "spec": (lambda: stax.AvgPool((2, 2), spec="NCW"), ValueError, r"must agree in number, got \(2, 2\), .* 'NCW'"),
    "scalar": (lambda: stax.Dense(2)[0](xtrace.random.key(0), ()), ValueError, "at least 1 axes"),
    "several": (lambda: stax.Flatten[0](None, [(2, 3)]), TypeError, "must be a tuple of integers"),
    "function": (lambda: stax.elementwise(3), TypeError, "callable"),
    "maker": (lambda: stax.shape_dependent(stax.Relu), TypeError, "callable"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert not any("it is a bug" in note for note in getattr(caught.value, "__notes__", ()))
