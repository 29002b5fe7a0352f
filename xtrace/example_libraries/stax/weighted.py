"""Layers with parameters."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.ops.contractions.convolution import conv_general_dilated, conv_transpose
from xtrace._src.ops.contractions.convolution_shapes import conv_general_shape_tuple, conv_transpose_shape_tuple
from xtrace.example_libraries.stax.layers import Function, Layer, build_layer, find_rank
from xtrace.nn.initializers import glorot_normal, normal, ones, zeros
from xtrace.nn.normalization import standardize
from xtrace.numpy.manipulation.shapes import expand_dims
from xtrace.numpy.products.contraction import matmul
from xtrace.random import split

# The default initializers of weights and biases.
_WEIGHTS, _BIASES, _SMALL_BIASES = glorot_normal(), normal(), normal(1e-6)


def Dense(out_dim: int, W_init: Function = _WEIGHTS, b_init: Function = _BIASES) -> Layer:
    """Build a layer that multiplies the last axis by a matrix and adds a vector.

    Args:
        out_dim: the size of the last axis of the output.
        W_init: the initializer of the matrix.
        b_init: the initializer of the vector.

    Returns:
        The pair (init_fun, apply_fun); the parameters are (matrix, vector).

    Raises:
        ValueError: the input shape, given to init_fun, has no axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.Dense(4)
        >>> shape, params = init_fun(random.key(0), (-1, 3))
        >>> shape, apply_fun(params, jnp.ones((2, 3))).shape
        ((-1, 4), (2, 4))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        find_rank("Dense", input_shape)
        weights_key, bias_key = split(rng)
        weights = W_init(weights_key, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (weights, b_init(bias_key, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return matmul(inputs, weights) + bias

    return build_layer(init_fun, apply_fun)


def _build_convolution(
    name: str, convolve: Function, shape_tuple: Function, dimension_numbers: Any, out_chan: int, filter_shape: Any,
    strides: Any, padding: Any, W_init: Function | None, b_init: Function,
) -> Layer:
    """Build the layer of ``convolve(x, weights, strides, padding, dimension_numbers=...)``."""
    _, weights_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    if W_init is None:
        W_init = glorot_normal(weights_spec.index("I"), weights_spec.index("O"))
    in_channels = dimension_numbers[0].index("C")
    bias_shape = tuple(out_chan if letter == "C" else 1 for letter in out_spec)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        if find_rank(name, input_shape) != len(out_spec):
            raise ValueError(
                f"{name}: the input must have the {len(out_spec)} axes {dimension_numbers[0]}, got the shape "
                f"{abbreviate(input_shape)}"
            )
        window = iter(filter_shape)
        sizes = {"O": out_chan, "I": input_shape[in_channels]}
        weights_shape = tuple(sizes[letter] if letter in sizes else next(window) for letter in weights_spec)
        out_shape = shape_tuple(input_shape, weights_shape, strides, padding, dimension_numbers)
        weights_key, bias_key = split(rng)
        return out_shape, (W_init(weights_key, weights_shape), b_init(bias_key, bias_shape))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, bias = params
        return convolve(inputs, weights, strides, padding, dimension_numbers=dimension_numbers) + bias

    return build_layer(init_fun, apply_fun)


def GeneralConv(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: Any = "VALID", W_init: Function | None = None, b_init: Function = _SMALL_BIASES,
) -> Layer:
    """Build a layer that convolves and adds a bias per channel; `Conv` is this layer with axes in the order NHWC.

    Args:
        dimension_numbers: strings for the axes of input, filter and output, such as ``("NHWC", "HWIO", "NHWC")``.
        out_chan: the number of channels of the output.
        filter_shape: the sizes of the filter along the spatial axes.
        strides: the strides along the spatial axes; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs (low, high).
        W_init: the initializer of the filter; None for `glorot_normal` over its channels.
        b_init: the initializer of the bias.

    Returns:
        The pair (init_fun, apply_fun); the parameters are (filter, bias).

    Raises:
        ValueError: the input shape, given to init_fun, has another number of axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 8, (3, 3), padding="SAME")
        >>> shape, (weights, bias) = init_fun(random.key(0), (-1, 3, 28, 28))
        >>> shape, weights.shape, bias.shape
        ((-1, 8, 28, 28), (8, 3, 3, 3), (1, 8, 1, 1))
    """
    return _build_convolution(
        "GeneralConv", conv_general_dilated, conv_general_shape_tuple, dimension_numbers, out_chan, filter_shape,
        strides, padding, W_init, b_init,
    )


def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Sequence[int] | None = None,
    padding: Any = "VALID", W_init: Function | None = None, b_init: Function = _SMALL_BIASES,
) -> Layer:
    """Build a layer of a transposed convolution, and a bias per channel.

    `ConvTranspose` is this layer with axes in the order NHWC, and `Conv1DTranspose` with axes in the order NHC.

    Args:
        dimension_numbers: strings for the axes of input, filter and output, such as ``("NHWC", "HWIO", "NHWC")``.
        out_chan: the number of channels of the output.
        filter_shape: the sizes of the filter along the spatial axes.
        strides: the strides along the spatial axes; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs (low, high).
        W_init: the initializer of the filter; None for `glorot_normal` over its channels.
        b_init: the initializer of the bias.

    Returns:
        The pair (init_fun, apply_fun); the parameters are (filter, bias).

    Raises:
        ValueError: the input shape, given to init_fun, has another number of axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.GeneralConvTranspose(("NHC", "HIO", "NHC"), 8, (3,), (2,), "SAME")
        >>> init_fun(random.key(0), (-1, 14, 3))[0]
        (-1, 28, 8)
    """
    return _build_convolution(
        "GeneralConvTranspose", conv_transpose, conv_transpose_shape_tuple, dimension_numbers, out_chan, filter_shape,
        strides, padding, W_init, b_init,
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True, scale: bool = True,
    beta_init: Function = zeros, gamma_init: Function = ones,
) -> Layer:
    """Build a layer that normalizes to mean 0 and variance 1 over axes, and then scales and shifts.

    Args:
        axis: the axes of the mean and the variance.
        epsilon: a number added to the variance.
        center: whether to add a parameter, beta.
        scale: whether to multiply by a parameter, gamma.
        beta_init: the initializer of beta.
        gamma_init: the initializer of gamma.

    Returns:
        The pair (init_fun, apply_fun); the parameters are (beta, gamma), with () for an unused parameter.

    Raises:
        ValueError: the input shape, given to init_fun, lacks one of the axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.BatchNorm(axis=0)
        >>> shape, params = init_fun(random.key(0), (2, 1))
        >>> apply_fun(params, jnp.array([[1.0], [3.0]]))
        Array([[-0.999995],
               [ 0.999995]], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        find_rank("BatchNorm", input_shape, 1 + max(axes, default=-1))
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        beta_key, gamma_key = split(rng)
        return input_shape, (
            beta_init(beta_key, shape) if center else (), gamma_init(gamma_key, shape) if scale else ()
        )

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        result = standardize(x, axes, epsilon=epsilon)
        if scale:
            result = result * expand_dims(gamma, axes)
        return result + expand_dims(beta, axes) if center else result

    return build_layer(init_fun, apply_fun)
