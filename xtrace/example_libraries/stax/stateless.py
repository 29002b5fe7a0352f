"""Layers without parameters: functions of each element, reductions over windows, and changes of shape."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.ops.elementwise.elementwise import max as maximum
from xtrace._src.ops.reductions.windows import reduce_window, reduce_window_shape_tuple
from xtrace.example_libraries.stax.layers import Function, Layer, build_layer, find_rank, get_first_shape
from xtrace.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from xtrace.nn.normalization import log_softmax, softmax
from xtrace.numpy.arrays.creation import ones_like
from xtrace.numpy.arrays.scalar_types import shape
from xtrace.numpy.elementwise.ufuncs import exp, tanh
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import reshape
from xtrace.random import bernoulli


def elementwise(fun: Function, **fun_kwargs: Any) -> Layer:
    """Build a layer that applies a function to each element.

    Args:
        fun: a function of an array that keeps the shape.
        fun_kwargs: keyword arguments of the function.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        TypeError: fun cannot be called.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> stax.elementwise(jnp.clip, max=2.0)[1]((), jnp.array([1.0, 3.0]))
        Array([1., 2.], dtype=float32)
    """
    check_callable(fun)
    return build_layer(
        lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)
    )


Elu, Gelu, LeakyRelu, Relu, Selu = (elementwise(function) for function in (elu, gelu, leaky_relu, relu, selu))
Exp, Sigmoid, Softplus, Tanh = (elementwise(function) for function in (exp, sigmoid, softplus, tanh))
LogSoftmax, Softmax = (elementwise(function, axis=-1) for function in (log_softmax, softmax))
Identity = elementwise(lambda x: x)


def _build_pooling(
    name: str, reducer: Any, initial: float, window_shape: Any, strides: Any, padding: Any, spec: str | None,
    takes_mean: bool = False,
) -> Layer:
    """Build a layer that reduces windows, and with `takes_mean` divides by their numbers of elements."""
    spatial = tuple(window_shape)
    strides = tuple(strides or (1,) * len(spatial))
    # Without a spec the batch axis is the first and the channel axis the last.
    axes = tuple(range(1, 1 + len(spatial))) if spec is None else tuple(i for i, n in enumerate(spec) if n not in "NC")
    if len(axes) != len(spatial) or len(strides) != len(spatial):
        raise ValueError(
            f"{name}: window_shape, strides and the spatial axes of spec must agree in number, got "
            f"{abbreviate(window_shape)}, {abbreviate(strides)} and {abbreviate(spec)}"
        )
    window, steps = [1] * (len(axes) + 2), [1] * (len(axes) + 2)
    for axis, size, step in zip(axes, spatial, strides, strict=True):
        window[axis], steps[axis] = size, step

    def init_fun(rng: Any, input_shape: Any) -> Any:
        if find_rank(name, input_shape) != len(window):
            raise ValueError(
                f"{name}: the input must have {len(window)} axes, the batch, {len(axes)} of the window and the "
                f"channels; got the shape {abbreviate(input_shape)}"
            )
        # The size of the batch may be unknown.
        batch = 0 if spec is None else spec.find("N")
        known = [1 if axis == batch else size for axis, size in enumerate(input_shape)]
        pooled = reduce_window_shape_tuple(known, window, steps, padding)
        return tuple([input_shape[axis] if axis == batch else size for axis, size in enumerate(pooled)]), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        pooled = reduce_window(inputs, initial, reducer, window, steps, padding)
        if takes_mean:
            return pooled / reduce_window(ones_like(inputs), initial, reducer, window, steps, padding)
        return pooled

    return build_layer(init_fun, apply_fun)


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Build a layer that takes the maximum of each window.

    Args:
        window_shape: the sizes of a window along the spatial axes.
        strides: the strides of windows along these axes; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs (low, high) for all axes.
        spec: a string with a letter for each axis, N for the batch and C for the channels; None for N first and C last.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        ValueError: the arguments, or the input shape given to init_fun, differ in the number of axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.MaxPool((2,), (2,))
        >>> apply_fun((), jnp.array([1.0, 2.0, 5.0, 3.0]).reshape(1, 4, 1)).ravel()
        Array([2., 5.], dtype=float32)
    """
    return _build_pooling("MaxPool", maximum, -math.inf, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Build a layer that takes the sum of each window.

    Args:
        window_shape: the sizes of a window along the spatial axes.
        strides: the strides of windows along these axes; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs (low, high) for all axes.
        spec: a string with a letter for each axis, N for the batch and C for the channels; None for N first and C last.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        ValueError: the arguments, or the input shape given to init_fun, differ in the number of axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.SumPool((2,), (2,))
        >>> apply_fun((), jnp.array([1.0, 2.0, 5.0, 3.0]).reshape(1, 4, 1)).ravel()
        Array([3., 8.], dtype=float32)
    """
    return _build_pooling("SumPool", add, 0.0, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: str | None = None
) -> Layer:
    """Build a layer that takes the mean of each window without the padding.

    Args:
        window_shape: the sizes of a window along the spatial axes.
        strides: the strides of windows along these axes; None for 1.
        padding: ``"VALID"``, ``"SAME"``, or pairs (low, high) for all axes.
        spec: a string with a letter for each axis, N for the batch and C for the channels; None for N first and C last.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        ValueError: the arguments, or the input shape given to init_fun, differ in the number of axes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.AvgPool((2,), (2,), "SAME")
        >>> apply_fun((), jnp.array([1.0, 2.0, 5.0]).reshape(1, 3, 1)).ravel()
        Array([1.5, 5. ], dtype=float32)
    """
    return _build_pooling("AvgPool", add, 0.0, window_shape, strides, padding, spec, takes_mean=True)


def _flatten_shape(rng: Any, input_shape: Any) -> Any:
    find_rank("Flatten", input_shape)
    return (input_shape[0], math.prod(input_shape[1:])), ()


Flatten = build_layer(_flatten_shape, lambda params, inputs, **kwargs: reshape(inputs, (shape(inputs)[0], -1)))


def FanOut(num: int) -> Layer:
    """Build a layer that repeats its input, for `parallel`.

    Args:
        num: the number of repeats.

    Returns:
        The pair (init_fun, apply_fun); the parameters are (), the output is a list.

    Raises:
        TypeError: num is not an integer.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Exp), stax.FanInSum)
        >>> shape, params = init_fun(random.key(0), (1,))
        >>> apply_fun(params, jnp.zeros(1))
        Array([1.], dtype=float32)
    """
    count = operator.index(num)
    return build_layer(
        lambda rng, input_shape: ([input_shape] * count, ()), lambda params, inputs, **kwargs: [inputs] * count
    )


def _sum_shape(rng: Any, input_shape: Any) -> Any:
    return get_first_shape("FanInSum", input_shape), ()


FanInSum = build_layer(_sum_shape, lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """Build a layer that concatenates its inputs along an axis.

    Args:
        axis: the axis.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        TypeError: the input shape, given to init_fun, is not a sequence of shapes.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.FanInConcat()
        >>> init_fun(random.key(0), [(-1, 2), (-1, 3)])
        ((-1, 5), ())
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        first = list(get_first_shape("FanInConcat", input_shape))
        first[axis] = sum(s[axis] for s in input_shape)
        return tuple(first), ()

    return build_layer(init_fun, lambda params, inputs, **kwargs: concatenate(inputs, axis))


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Build a layer that drops elements at random, and divides the kept elements by the probability to keep them.

    Its `apply_fun` needs the keyword `rng`, a random key.

    Args:
        rate: the probability that an element is kept.
        mode: "train"; in any other mode the layer does nothing.

    Returns:
        The pair (init_fun, apply_fun); the parameters are ().

    Raises:
        ValueError: apply_fun is called without rng.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.Dropout(0.5)
        >>> apply_fun((), jnp.ones(4), rng=random.key(1))
        Array([2., 0., 2., 2.], dtype=float32)
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        key = kwargs.get("rng")
        if key is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a random key; instead of apply_fun(params, inputs) "
                "write apply_fun(params, inputs, rng=xtrace.random.key(seed))"
            )
        if mode != "train":
            return inputs
        return where(bernoulli(key, rate, shape(inputs)), inputs / rate, 0)

    return build_layer(lambda rng, input_shape: (input_shape, ()), apply_fun)
