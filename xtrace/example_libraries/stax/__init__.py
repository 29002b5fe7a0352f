"""Neural networks as pairs of functions (``jax.example_libraries.stax``).

A layer is a pair ``(init_fun, apply_fun)``. ``init_fun(key, input_shape)`` returns the shape of the layer's output and
its parameters; ``apply_fun(params, inputs, **kwargs)`` returns the output. A layer of several inputs takes a sequence
of shapes and a sequence of arrays. The keyword ``rng`` of ``apply_fun`` is a random key, which `Dropout` needs.
"""

# ruff: noqa: I001

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.example_libraries.stax.combinators import parallel, serial, shape_dependent
from xtrace.example_libraries.stax.stateless import (
    AvgPool, Dropout, Elu, Exp, FanInConcat, FanInSum, FanOut, Flatten, Gelu, Identity, LeakyRelu, LogSoftmax, MaxPool,
    Relu, Selu, Sigmoid, Softmax, Softplus, SumPool, Tanh, elementwise,
)
from xtrace.example_libraries.stax.weighted import (
    BatchNorm, Conv, Conv1DTranspose, ConvTranspose, Dense, GeneralConv, GeneralConvTranspose,
)
from xtrace.nn import (
    elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize,
)
from xtrace.nn.initializers import glorot_normal, normal, ones, zeros

# Other names of these functions in jax's module.
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax

# Functions of other modules are public already.
_others = [
    "elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "randn",
    "relu", "selu", "sigmoid", "softmax", "softplus", "standardize", "zeros",
]
_layers = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp",
    "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity",
    "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh",
    "elementwise", "parallel", "serial", "shape_dependent",
]

_make_public(globals(), _layers)
__all__ = sorted([*_layers, *_others])
