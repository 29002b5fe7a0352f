"""Rounding, and whole and fractional parts of numbers."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.kinds import BOOL, COMPLEX, INTEGER
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators import operators
from xtrace._src.api.operators.elementwise_functions import REAL_NUMBERS, elementwise_function, identity
from xtrace._src.api.operators.operators import round_decimals, select_where
from xtrace._src.api.operators.promotion import as_inexact, promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.selection import select
from xtrace.numpy.operands import apply_to_parts, refuse

# Rounding

_UNROUNDED = {BOOL: identity, INTEGER: identity}


@elementwise_function(lax.floor, cases=_UNROUNDED, domain=REAL_NUMBERS)
def floor(x: ArrayLike, /) -> Array:
    """Return the largest integers not above the elements.

    Example:
        >>> jnp.floor(-1.5)
        Array(-2., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(lax.ceil, cases=_UNROUNDED, domain=REAL_NUMBERS)
def ceil(x: ArrayLike, /) -> Array:
    """Return the smallest integers not below the elements.

    Example:
        >>> jnp.ceil(-1.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(
    lambda x: select(operators.less(x, 0), lax.ceil(x), lax.floor(x)), cases=_UNROUNDED, domain=REAL_NUMBERS
)
def trunc(x: ArrayLike) -> Array:
    """Return the elements rounded towards zero.

    Example:
        >>> jnp.trunc(-1.5)
        Array(-1., dtype=float32, weak_type=True)
    """
    ...


def _round_half_to_even(x: Array) -> Array:
    return lax.round.bind_positional((x,), (lax.RoundingMethod.TO_NEAREST_EVEN,))


def _as_float(x: Array) -> Array:
    return convert_to(x, dtypes.default_float(config.enable_x64.value))


@elementwise_function(
    _round_half_to_even, cases={BOOL: _as_float, INTEGER: _as_float, COMPLEX: apply_to_parts(_round_half_to_even)},
    returns="the promoted dtype, for integers and booleans the default floating dtype",
)
def rint(x: ArrayLike, /) -> Array:
    """Return the elements rounded to integers, halves to even.

    Example:
        >>> jnp.rint(2.5)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


@inline_jit(static=("decimals", "out"), public=True)
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to even.

    Args:
        a: an array or a scalar of numbers.
        decimals: the number of decimals, a Python integer; a negative number rounds digits before the point.
        out: not supported; leave it at None.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `out` is given, or `a` has integers and `decimals` is negative.
        TypeError: `decimals` is not a Python integer, or `a` is neither an array nor a scalar.
        ValueError: `a` has booleans.

    Example:
        >>> jnp.round(jnp.array([0.5, 2.75]), 1)
        Array([0.5, 2.8], dtype=float32)
    """
    refuse(out=out)
    return round_decimals(a, decimals=to_integer("decimals", decimals))


@inline_jit(static=("decimals", "out"), public=True)
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to even; another name of `round`.

    Args:
        a: an array or a scalar of numbers.
        decimals: the number of decimals, a Python integer; a negative number rounds digits before the point.
        out: not supported; leave it at None.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `out` is given, or `a` has integers and `decimals` is negative.
        TypeError: `decimals` is not a Python integer, or `a` is neither an array nor a scalar.
        ValueError: `a` has booleans.

    Example:
        >>> jnp.around(jnp.array([0.5, 2.75]), 1)
        Array([0.5, 2.8], dtype=float32)
    """
    return round(a, decimals, out)


@inline_jit
def _modf(x: ArrayLike) -> tuple[Any, Any]:
    (x,) = promote(x, adjust=as_inexact)
    whole = select_where(operators.greater_equal(x, 0), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


@inline_jit(static=("out",), public=True)
def modf(x: ArrayLike, /, out: None = None) -> tuple[Any, Any]:
    """Return the fractional and the integer parts of elements, both with the sign of `x`.

    Args:
        x: an array or a scalar of real numbers or booleans.
        out: not supported; leave it at None.

    Returns:
        Two arrays of the shape of `x` and its dtype, floating for integers and booleans.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `x` is complex, or neither an array nor a scalar.

    Example:
        >>> jnp.modf(-2.5)
        (Array(-0.5, dtype=float32, weak_type=True), Array(-2., dtype=float32, weak_type=True))
    """
    refuse(out=out)
    return _modf(x)
