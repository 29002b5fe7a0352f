"""Functions of logarithms, with their limits at 0: entropies, logits and power transformations."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.api.custom_rules.custom_jvp import custom_jvp
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.operators import choose
from xtrace._src.core.annotations import ArrayLike, Axes
from xtrace._src.core.arrays import Array
from xtrace.nn import normalization
from xtrace.numpy.ufuncs import expm1, log, log1p
from xtrace.scipy.special.primitive import operands, refuse_complex, with_strong_results


@custom_jvp
@inline_jit(public=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), and 0 for x = 0 unless y is NaN."""
    x, y = operands("xlogy", x, y)
    return choose((x != 0) | (y != y), x * log(y), 0.0)


@xlogy.defjvp
def _xlogy_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = operands("xlogy", *primals)
    return xlogy(x, y), tangents[0] * log(y) + tangents[1] * x / y


@custom_jvp
@inline_jit(public=True)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), exact for small y, and 0 for x = 0 unless y is NaN."""
    x, y = operands("xlog1py", x, y)
    return choose((x != 0) | (y != y), x * log1p(y), 0.0)


@xlog1py.defjvp
def _xlog1py_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    x, y = operands("xlog1py", *primals)
    return xlog1py(x, y), tangents[0] * log1p(y) + tangents[1] * x / (1 + y)


@custom_jvp
@inline_jit(public=True)
def _xlogx(x: Array) -> Array:
    return xlogy(x, x)


_xlogx.defjvps(lambda t, y, x: t * (log(x) + 1))


@inline_jit(public=True)
def entr(x: Any) -> Array:
    """-x log(x), 0 at 0, -inf for negative numbers. ValueError for complex ones."""
    refuse_complex("entr", x)
    (x,) = operands("entr", x)
    return choose(x < 0, -math.inf, -_xlogx(x))


@inline_jit(public=True)
@with_strong_results
def rel_entr(p: Any, q: Any) -> Array:
    """p log(p / q), 0 for p = 0 and q >= 0, inf where that is undefined. ValueError for complex numbers."""
    refuse_complex("rel_entr", p, q)
    p, q = operands("rel_entr", p, q)
    positive, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    # What is not used must have a finite derivative.
    inner_p, inner_q = choose(positive, p, 1), choose(positive, q, 1)
    return choose(positive, _xlogx(inner_p) - xlogy(inner_p, inner_q), choose(zero, 0.0, math.inf))


@inline_jit(public=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q, inf where that is undefined. ValueError for complex numbers."""
    refuse_complex("kl_div", p, q)
    p, q = operands("kl_div", p, q)
    return rel_entr(p, q) - p + q


@custom_jvp
@inline_jit(public=True)
@with_strong_results
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`."""
    (x,) = operands("logit", x)
    return log(x / (1 - x))


@logit.defjvps
def _logit_tangent(t: Array, y: Array, x: Array) -> Array:
    (x,) = operands("logit", x)
    return t / (x * (1 - x))


def _power_transformed(logarithm: Array, exponent: Array) -> Array:
    zero = exponent == 0
    divisor = choose(zero, 1.0, exponent)
    return choose(zero, logarithm, expm1(divisor * logarithm) / divisor)


@inline_jit(public=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """(x**lmbda - 1) / lmbda, log(x) for lmbda = 0."""
    x, exponent = operands("boxcox", x, lmbda)
    return _power_transformed(log(x), exponent)


@inline_jit(public=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """((1 + x)**lmbda - 1) / lmbda, log1p(x) for lmbda = 0."""
    x, exponent = operands("boxcox1p", x, lmbda)
    return _power_transformed(log1p(x), exponent)


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Any:
    """exp(x) over its sum along `axis` (None: all axes), without overflow."""
    return normalization.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Any:
    """The logarithm of `softmax`, computed without it."""
    return normalization.log_softmax(x, axis=axis)
