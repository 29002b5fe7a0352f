"""Functions of logarithms, with their limits at 0: entropies, logits and power transformations."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import ArrayLike, Axes, RealLike
from xtrace._src.core.arrays import Array
from xtrace.nn import normalization
from xtrace.numpy.elementwise.ufuncs import expm1, log, log1p
from xtrace.scipy.special.primitive import refuse_complex, to_operands, with_strong_results


@custom_jvp
@inline_jit(public=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x * log(y)``; 0 for x = 0 unless y is NaN.

    Args:
        x, y: arrays of numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.xlogy(0.0, 0.0)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        Cover and Thomas, Elements of Information Theory, 2nd ed. (2006), section 2.1: the convention at 0.
    """
    x, y = to_operands(x, y)
    return select_where((x != 0) | (y != y), x * log(y), 0.0)


@xlogy.defjvp
def _xlogy_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = to_operands(*primals)
    tangent = tangents[0] * log(y) + tangents[1] * x / y
    return xlogy(x, y), convert_to(tangent, tangent.dtype)


@custom_jvp
@inline_jit(public=True)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Return ``x * log(1 + y)``, accurate for small y; 0 for x = 0 unless y is NaN.

    Args:
        x, y: arrays of numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.xlog1py(0.0, -1.0)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        Cover and Thomas, Elements of Information Theory, 2nd ed. (2006), section 2.1: the convention at 0.
    """
    x, y = to_operands(x, y)
    return select_where((x != 0) | (y != y), x * log1p(y), 0.0)


@xlog1py.defjvp
def _xlog1py_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = to_operands(*primals)
    tangent = tangents[0] * log1p(y) + tangents[1] * x / (1 + y)
    return xlog1py(x, y), convert_to(tangent, tangent.dtype)


@custom_jvp
@inline_jit(public=True)
def _xlogx(x: Array) -> Array:
    return xlogy(x, x)


_xlogx.defjvps(lambda t, y, x: t * (log(x) + 1))


@inline_jit(public=True)
def entr(x: RealLike) -> Array:
    """Compute the entropy of elements, ``-x * log(x)``; 0 at 0, -inf for negative numbers.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: it is complex.

    Example:
        >>> scipy.special.entr(0.5)
        Array(0.3465736, dtype=float32, weak_type=True)

    Reference:
        Cover and Thomas, Elements of Information Theory, 2nd ed. (2006), section 2.1.
    """
    refuse_complex(x)
    (x,) = to_operands(x)
    return select_where(x < 0, -math.inf, -_xlogx(x))


@inline_jit(public=True)
@with_strong_results
def rel_entr(p: RealLike, q: RealLike) -> Array:
    """Compute the relative entropy of elements, ``p * log(p / q)``; 0 for p = 0 and q >= 0, inf where it is undefined.

    Args:
        p, q: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.rel_entr(2.0, 1.0)
        Array(1.3862944, dtype=float32, weak_type=True)

    Reference:
        Cover and Thomas, Elements of Information Theory, 2nd ed. (2006), section 2.3.
    """
    refuse_complex(p, q)
    p, q = to_operands(p, q)
    positive, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    # The unselected branch must have a finite derivative.
    inner_p, inner_q = select_where(positive, p, 1), select_where(positive, q, 1)
    return select_where(positive, _xlogx(inner_p) - xlogy(inner_p, inner_q), select_where(zero, 0.0, math.inf))


@inline_jit(public=True)
def kl_div(p: RealLike, q: RealLike) -> Array:
    """Compute the Kullback-Leibler divergence of elements, ``p * log(p / q) - p + q``; inf where it is undefined.

    Args:
        p, q: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: an operand is complex, or the shapes do not broadcast.

    Example:
        >>> scipy.special.kl_div(2.0, 1.0)
        Array(0.38629436, dtype=float32, weak_type=True)

    Reference:
        Boyd and Vandenberghe, Convex Optimization (2004), section 3.1.5.
    """
    refuse_complex(p, q)
    p, q = to_operands(p, q)
    return rel_entr(p, q) - p + q


@custom_jvp
@inline_jit(public=True)
@with_strong_results
def logit(x: ArrayLike) -> Array:
    """Return the inverse of `expit`, ``log(x / (1 - x))``.

    Args:
        x: an array of numbers.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.

    Example:
        >>> scipy.special.logit(0.5)
        Array(0., dtype=float32, weak_type=True)

    Reference:
        Cramer, "The origins of logistic regression" (2002).
    """
    (x,) = to_operands(x)
    return log(x / (1 - x))


@logit.defjvps
def _logit_tangent(t: Array, y: Array, x: Array) -> Array:
    (x,) = to_operands(x)
    return t / (x * (1 - x))


def _transform_by_power(logarithm: Array, exponent: Array) -> Array:
    zero = exponent == 0
    divisor = select_where(zero, 1.0, exponent)
    return select_where(zero, logarithm, expm1(divisor * logarithm) / divisor)


@inline_jit(public=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute the Box-Cox transform ``(x**lmbda - 1) / lmbda``; log(x) for lmbda = 0.

    Args:
        x, lmbda: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.boxcox(2.0, 2.0)
        Array(1.5, dtype=float32, weak_type=True)

    Reference:
        Box and Cox, "An analysis of transformations" (1964).
    """
    x, exponent = to_operands(x, lmbda)
    return _transform_by_power(log(x), exponent)


@inline_jit(public=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute the Box-Cox transform of ``1 + x``, ``((1 + x)**lmbda - 1) / lmbda``; log1p(x) for lmbda = 0.

    Args:
        x, lmbda: arrays of real numbers.

    Returns:
        An array of the broadcast shape and the promoted floating dtype.

    Raises:
        TypeError: an operand is not an array or number.
        ValueError: the shapes do not broadcast.

    Example:
        >>> scipy.special.boxcox1p(1.0, 2.0)
        Array(1.5, dtype=float32, weak_type=True)

    Reference:
        Box and Cox, "An analysis of transformations" (1964).
    """
    x, exponent = to_operands(x, lmbda)
    return _transform_by_power(log1p(x), exponent)


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute ``exp(x)`` divided by its sum along axes, without overflow.

    Args:
        x: an array of numbers.
        axis: an axis, or several; None for all.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: there is no such axis.

    Example:
        >>> scipy.special.softmax(jnp.zeros(2))
        Array([0.5, 0.5], dtype=float32)

    Reference:
        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. (2002), section 27.1: scaling by the
        maximum.
    """
    return normalization.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute the logarithm of `softmax`, without underflow.

    Args:
        x: an array of numbers.
        axis: an axis, or several; None for all.

    Returns:
        An array of the shape of `x` and a floating dtype.

    Raises:
        TypeError: `x` is not an array or number.
        ValueError: there is no such axis.

    Example:
        >>> scipy.special.log_softmax(jnp.array([0.0, 100.0]))
        Array([-100.,    0.], dtype=float32)

    Reference:
        N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. (2002), section 27.1: scaling by the
        maximum.
    """
    return normalization.log_softmax(x, axis=axis)
