"""Activation functions, with custom derivatives where differentiating the formula would be wrong or inexact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xtrace import numpy as jnp
from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import canonical_axis, convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.ops.arrays.concatenation import split
from xtrace._src.ops.elementwise.constants import constants_like
from xtrace._src.ops.elementwise.elementwise import logistic
from xtrace._src.ops.elementwise.selection import select
from xtrace._src.runtime.transfer import to_array

with late_modules(globals()):
    from xtrace._src.ops.elementwise.special import erfc


def to_operand(x: ArrayLike, adjust: Callable[[Any, bool], tuple[Any, bool]] | None = None) -> Array:
    """Convert an array or a scalar to an array, of the dtype that `adjust` returns; TypeError for anything else."""
    return to_array(promote(x, adjust=adjust)[0])


def _mask_tangent(condition: Array, tangent: Array) -> Array:
    return select(condition, tangent, constants_like(tangent, 0))


# Piecewise linear


@custom_jvp
@inline_jit(public=True)
def relu(x: ArrayLike) -> Array:
    """Return the maximum of `x` and 0; the slope at 0 is 0.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.relu(jnp.array([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    return jnp.maximum(to_operand(x), 0)


relu.defjvps(lambda t, y, x: _mask_tangent(to_operand(x) > 0, t))


@custom_jvp
@inline_jit(public=True)
def relu6(x: ArrayLike) -> Array:
    """Return `x` clipped to [0, 6]; the slope at both ends is 0.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.relu6(jnp.array([-1.0, 8.0]))
        Array([0., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(to_operand(x), 0), 6.0)


@relu6.defjvps
def _relu6_tangent(t: Array, y: Array, x: Array) -> Array:
    x = to_operand(x)
    return _mask_tangent((x > 0) & (x < 6), t)


@inline_jit(public=True)
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Return `x` where it is not negative, and ``negative_slope * x`` elsewhere.

    Args:
        x: an array of real numbers.
        negative_slope: the slope below 0.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.leaky_relu(jnp.array([-1.0, 2.0]))
        Array([-0.01,  2.  ], dtype=float32)
    """
    x = to_operand(x)
    return select_where(x >= 0, x, negative_slope * x)


@inline_jit(public=True)
def hard_tanh(x: ArrayLike) -> Array:
    """Return `x` clipped to [-1, 1].

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.hard_tanh(jnp.array([-1.0, 2.0]))
        Array([-1.,  1.], dtype=float32)
    """
    x = to_operand(x)
    return select_where(x > 1, 1, select_where(x < -1, -1, x))


@inline_jit(public=True)
def hard_sigmoid(x: ArrayLike) -> Array:
    """Return ``relu6(x + 3) / 6``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.hard_sigmoid(jnp.array([-1.0, 2.0]))
        Array([0.33333334, 0.8333334 ], dtype=float32)
    """
    return relu6(to_operand(x) + 3.0) / 6.0


@inline_jit(public=True)
def hard_silu(x: ArrayLike) -> Array:
    """Return ``x * hard_sigmoid(x)``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.hard_silu(jnp.array([-1.0, 2.0]))
        Array([-0.33333334,  1.6666667 ], dtype=float32)
    """
    x = to_operand(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@inline_jit(public=True)
def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 up to -1, ``(x + 1) ** 2 / 4`` between -1 and 1, and `x` from 1 on.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.sparse_plus(jnp.array([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    x = to_operand(x)
    return select_where(x <= -1.0, 0.0, select_where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@inline_jit(public=True)
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return ``(x + 1) / 2`` clipped to [0, 1].

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.
        ValueError: `x` is complex.

    Example:
        >>> nn.sparse_sigmoid(jnp.array([-1.0, 2.0]))
        Array([0., 1.], dtype=float32)
    """
    return 0.5 * jnp.clip(to_operand(x) + 1.0, 0.0, 2.0)


# Exponential formulas


@inline_jit(public=True)
def sigmoid(x: ArrayLike) -> Array:
    """Return ``1 / (1 + exp(-x))``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is an array of integers or booleans, or no array.

    Example:
        >>> nn.sigmoid(jnp.array([-1.0, 2.0]))
        Array([0.26894143, 0.880797  ], dtype=float32)
    """
    return logistic(x)


@inline_jit(public=True)
def silu(x: ArrayLike) -> Array:
    """Return ``x * sigmoid(x)``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is an array of integers or booleans, or no array.

    Example:
        >>> nn.silu(jnp.array([-1.0, 2.0]))
        Array([-0.26894143,  1.761594  ], dtype=float32)
    """
    x = to_operand(x)
    return x * logistic(x)


swish = silu


@inline_jit(public=True)
def softplus(x: ArrayLike) -> Array:
    """Return ``log(1 + exp(x))``, without overflow.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.softplus(jnp.array([-1.0, 2.0]))
        Array([0.3132617, 2.126928 ], dtype=float32)
    """
    return jnp.logaddexp(to_operand(x), 0)


@inline_jit(public=True)
def log_sigmoid(x: ArrayLike) -> Array:
    """Return ``log(sigmoid(x))``, without overflow.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.log_sigmoid(jnp.array([-1.0, 2.0]))
        Array([-1.3132617, -0.126928 ], dtype=float32)
    """
    return -softplus(-to_operand(x))


@inline_jit(public=True)
def mish(x: ArrayLike) -> Array:
    """Return ``x * tanh(softplus(x))``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.mish(jnp.array([-1.0, 2.0]))
        Array([-0.30340144,  1.943959  ], dtype=float32)
    """
    x = to_operand(x)
    return x * jnp.tanh(softplus(x))


@custom_jvp
@inline_jit(public=True)
def log1mexp(x: ArrayLike) -> Array:
    """Return ``log(1 - exp(-x))`` for positive `x`, exact near 0 and far from it.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.log1mexp(1.0)
        Array(-0.45867515, dtype=float32, weak_type=True)

    Reference:
        Mächler, "Accurately computing log(1 - exp(-|a|))" (2012).
    """
    x = to_operand(x)
    return select_where(x < math.log(2), jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


log1mexp.defjvps(lambda t, y, x: t / jnp.expm1(to_operand(x)))


@inline_jit(public=True)
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return `x` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        x: an array of real numbers.
        alpha: the negative of the limit at -infinity.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.elu(jnp.array([-1.0, 2.0]))
        Array([-0.63212055,  2.        ], dtype=float32)
    """
    x = to_operand(x)
    positive = x > 0
    # The unused branch must not overflow, or its derivative is NaN.
    return select_where(positive, x, alpha * jnp.expm1(select_where(positive, 0.0, x)))


@inline_jit(public=True)
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return ``max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1)``, whose derivative is continuous.

    Args:
        x: an array of real numbers.
        alpha: the negative of the limit at -infinity.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.celu(jnp.array([-1.0, 2.0]))
        Array([-0.63212055,  2.        ], dtype=float32)
    """
    x = to_operand(x)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


# The fixed point of mean 0 and variance 1 (Klambauer et al., Self-Normalizing Neural Networks, 2017).
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@inline_jit(public=True)
def selu(x: ArrayLike) -> Array:
    """Return a multiple of `elu`, with the constants for which mean 0 and variance 1 are a fixed point.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.selu(jnp.array([-1.0, 2.0]))
        Array([-1.1113307,  2.101402 ], dtype=float32)

    Reference:
        Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks" (2017).
    """
    return _SELU_SCALE * elu(to_operand(x), _SELU_ALPHA)


@inline_jit(static=("approximate",), public=True)
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Return `x` times the cumulative distribution function of the normal distribution.

    Args:
        x: an array of real numbers.
        approximate: whether to use the approximation by tanh.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is complex and not `approximate`, or no array.

    Example:
        >>> nn.gelu(jnp.array([-1.0, 2.0]))
        Array([-0.15880796,  1.9545977 ], dtype=float32)

    Reference:
        Hendrycks and Gimpel, "Gaussian error linear units" (2016).
    """
    x = to_operand(x, as_inexact)
    x = convert_to(x, aval_of(x).dtype)
    if not approximate:
        return 0.5 * x * erfc(-x * math.sqrt(0.5))
    return x * (0.5 * (1.0 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


@inline_jit(static=("axis",), public=True)
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Return the first half of `x` along an axis times the sigmoid of the second half.

    Args:
        x: an array of real numbers.
        axis: the axis.

    Returns:
        An array with half the length along the axis.

    Raises:
        TypeError: `x` is neither an array nor a number.
        ValueError: the length is odd, or there is no such axis.

    Example:
        >>> nn.glu(jnp.array([1.0, 2.0, 0.0, 0.0]))
        Array([0.5, 1. ], dtype=float32)
    """
    x = to_operand(x)
    axis = canonical_axis(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"glu: the size along axis {axis} must be divisible by 2 for two halves, got shape {x.shape}")
    left, right = split(x, (x.shape[axis] // 2,) * 2, axis)
    return left * logistic(right)


# Algebraic formulas


@inline_jit(public=True)
def soft_sign(x: ArrayLike) -> Array:
    """Return ``x / (abs(x) + 1)``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.soft_sign(jnp.array([-1.0, 2.0]))
        Array([-0.5      ,  0.6666667], dtype=float32)
    """
    x = to_operand(x)
    return x / (jnp.abs(x) + 1)


@inline_jit(public=True)
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Return ``(x + sqrt(x ** 2 + b)) / 2``, a smooth maximum of `x` and 0.

    Args:
        x: an array of real numbers.
        b: the smoothness; a positive number.

    Returns:
        An array of the shape of `x` and its floating dtype.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.squareplus(jnp.array([-1.0, 2.0]))
        Array([0.618034 , 2.4142137], dtype=float32)
    """
    x = to_operand(x)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def identity(x: ArrayLike) -> Array:
    """Return `x` as an array.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> nn.identity(jnp.array([-1.0, 2.0]))
        Array([-1.,  2.], dtype=float32)
    """
    return to_operand(x)
