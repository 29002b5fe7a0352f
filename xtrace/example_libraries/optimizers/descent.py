"""Gradient descent, and its variants that use past gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace.example_libraries.optimizers.schedules import make_schedule
from xtrace.example_libraries.optimizers.states import optimizer
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import zeros, zeros_like
from xtrace.numpy.elementwise.ufuncs import abs, maximum, minimum, sqrt, square
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.shapes import atleast_1d, expand_dims, reshape
from xtrace.numpy.reductions.reductions import max as greatest

__all__ = ["adagrad", "adam", "adamax", "momentum", "nesterov", "rmsprop", "rmsprop_momentum", "sgd", "sm3"]

_Triple = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


def _get_parameter(state: Any) -> Any:
    """Return the parameter, the first entry of a state."""
    return state[0]


def _inverse_sqrt(x: Any) -> Any:
    """Return 1 / sqrt(x), and 0 where x is 0."""
    return where(x > 0, 1.0 / sqrt(x), 0.0)


def _sum_weights(factor: Any, i: Any, mean: Any) -> Any:
    """Return the sum of the weights of steps 0 to i in a moving mean, in the dtype of the mean."""
    return 1 - asarray(factor, mean.dtype) ** (i + 1)


@optimizer
def sgd(step_size: Any) -> _Triple:
    """Build the optimizer of plain gradient descent: x - step_size * g.

    Args:
        step_size: a positive number, or a function of the number of the step.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.sgd(0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.array([1.0, -2.0]), opt.init_fn(jnp.ones(2))))
        Array([0.5, 2. ], dtype=float32)
    """
    schedule = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - schedule(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: Any) -> _Triple:
    """Build the optimizer of gradient descent with momentum: v = mass * v + g, and x - step_size * v.

    Args:
        step_size: a positive number, or a function of the number of the step.
        mass: the weight of the last step.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.momentum(0.5, 0.5)
        >>> state = opt.update_fn(0, jnp.ones(1), opt.init_fn(jnp.zeros(1)))
        >>> opt.params_fn(opt.update_fn(1, jnp.ones(1), state))
        Array([-1.25], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * velocity, velocity

    return (lambda x: (x, zeros_like(x))), update, _get_parameter


@optimizer
def nesterov(step_size: Any, mass: Any) -> _Triple:
    """Build the optimizer of gradient descent with Nesterov's momentum.

    With v = mass * v + g, the step is x - step_size * (mass * v + g).

    Args:
        step_size: a positive number, or a function of the number of the step.
        mass: the weight of the last step.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.nesterov(0.5, 0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.ones(1), opt.init_fn(jnp.zeros(1))))
        Array([-0.75], dtype=float32)
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * (mass * velocity + g), velocity

    return (lambda x: (x, zeros_like(x))), update, _get_parameter


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> _Triple:
    """Build the optimizer Adagrad, which divides a gradient by the root of the sum of all squared gradients.

    Args:
        step_size: a positive number, or a function of the number of the step.
        momentum: the weight of the past in the mean of these quotients.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.adagrad(0.5, momentum=0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.array([2.0, 0.0]), opt.init_fn(jnp.zeros(2))))
        Array([-0.25,  0.  ], dtype=float32)

    Reference:
        Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization", 2011.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + square(g)
        mean = (1.0 - momentum) * (g * _inverse_sqrt(squares)) + momentum * mean
        return x - schedule(i) * mean, squares, mean

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _get_parameter


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> _Triple:
    """Build the optimizer RMSProp, which divides a gradient by the root of the mean of squared gradients.

    Args:
        step_size: a positive number, or a function of the number of the step.
        gamma: the weight of the past in the mean.
        eps: a number added to the mean.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.rmsprop(0.5, gamma=0.75)
        >>> opt.params_fn(opt.update_fn(0, jnp.ones(1), opt.init_fn(jnp.zeros(1))))
        Array([-1.], dtype=float32)

    Reference:
        Tieleman and Hinton, "Lecture 6.5: RMSProp", Neural networks for machine learning, 2012.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + square(g) * (1.0 - gamma)
        return x - schedule(i) * g / sqrt(squares + eps), squares

    return (lambda x: (x, zeros_like(x))), update, _get_parameter


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> _Triple:
    """Build the optimizer RMSProp with momentum.

    Args:
        step_size: a positive number, or a function of the number of the step.
        gamma: the weight of the past in the mean of squared gradients.
        eps: a number added to the mean.
        momentum: the weight of the last step.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.rmsprop_momentum(0.5, gamma=0.75)
        >>> opt.params_fn(opt.update_fn(0, jnp.ones(1), opt.init_fn(jnp.zeros(1))))
        Array([-1.], dtype=float32)

    Reference:
        Tieleman and Hinton, "Lecture 6.5: RMSProp", Neural networks for machine learning, 2012.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, step = state
        squares = squares * gamma + square(g) * (1.0 - gamma)
        step = momentum * step + schedule(i) * g / sqrt(squares + eps)
        return x - step, squares, step

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _get_parameter


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> _Triple:
    """Build the optimizer Adam, which divides the mean gradient by the root of the mean squared gradient.

    Args:
        step_size: a positive number, or a function of the number of the step.
        b1: the weight of the past in the mean of gradients.
        b2: the weight of the past in the mean of squared gradients.
        eps: a number added to the root.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.adam(0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.array([0.0, 0.0]), opt.init_fn(jnp.ones(2))))
        Array([1., 1.], dtype=float32)

    Reference:
        Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * square(g) + b2 * squares
        unbiased = mean / _sum_weights(b1, i, mean)
        unbiased_squares = squares / _sum_weights(b2, i, squares)
        return x - schedule(i) * unbiased / (sqrt(unbiased_squares) + eps), mean, squares

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _get_parameter


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> _Triple:
    """Build the optimizer AdaMax, which divides the mean gradient by the greatest recent gradient.

    Args:
        step_size: a positive number, or a function of the number of the step.
        b1: the weight of the past in the mean of gradients.
        b2: the factor by which the greatest gradient shrinks in each step.
        eps: a number added to the divisor.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.adamax(0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.array([0.0, 0.0]), opt.init_fn(jnp.ones(2))))
        Array([1., 1.], dtype=float32)

    Reference:
        Kingma and Ba, "Adam: a method for stochastic optimization", 2015, section 7.1.
    """
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, size = state
        mean = (1 - b1) * g + b1 * mean
        size = maximum(b2 * size, abs(g))
        return x - (schedule(i) / _sum_weights(b1, i, mean)) * mean / (size + eps), mean, size

    return (lambda x: (x, zeros_like(x), zeros_like(x))), update, _get_parameter


def _expand_along(x: Any, axis: int, ndim: int) -> Any:
    """Return a vector as an array of `ndim` axes that varies along one of them."""
    return expand_dims(x, [i for i in range(ndim) if i != axis])


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> _Triple:
    """Build the optimizer SM3: Adagrad with a sum for each index along each axis instead of each element.

    Args:
        step_size: a positive number, or a function of the number of the step.
        momentum: the weight of the past in the mean of the scaled gradients.

    Returns:
        An `Optimizer`.

    Raises:
        TypeError: step_size is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> opt = optimizers.sm3(0.5, momentum=0.5)
        >>> opt.params_fn(opt.update_fn(0, jnp.array([2.0, 0.0]), opt.init_fn(jnp.zeros(2))))
        Array([-0.25,  0.  ], dtype=float32)

    Reference:
        Anil, Gupta, Koren and Singer, "Memory-efficient adaptive optimization", 2019, algorithm SM3-II.
    """
    schedule = make_schedule(step_size)

    def init(x: Any) -> Any:
        elements = atleast_1d(x)
        bounds = [zeros(n, elements.dtype) for n in elements.shape]
        return elements, zeros_like(elements), bounds, getattr(x, "shape", ())

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, bounds, shape = state
        ndim = x.ndim
        g = atleast_1d(g)
        # A bound applies to all elements with its index. The least bound of an element is the tightest.
        squares = functools.reduce(minimum, [_expand_along(v, axis, ndim) for axis, v in enumerate(bounds)]) + square(g)
        mean = (1.0 - momentum) * (g * _inverse_sqrt(squares)) + momentum * mean
        bounds = [greatest(squares, [i for i in range(ndim) if i != axis]) for axis in range(ndim)]
        return x - schedule(i) * mean, mean, bounds, shape

    def get_params(state: Any) -> Any:
        x, _, _, shape = state
        # Inside jit the sizes in the state are traced. The number of sizes is static.
        return x if shape else reshape(x, ())

    return init, update, get_params
