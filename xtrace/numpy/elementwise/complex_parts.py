"""Parts, conjugates and angles of complex numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import COMPLEX
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.elementwise_functions import elementwise_function, identity
from xtrace._src.api.operators.operators import scalar_like
from xtrace._src.api.operators.promotion import promote
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.settings import config
from xtrace._src.ops.elementwise import complex_numbers, trigonometry
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace._src.ops.elementwise.comparisons import eq, ne
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.operands import fill_as


def _make_zero_part(x: Array) -> Array:
    return fill_as(x, 0, weak=aval_of(x).weak_type)


@elementwise_function(identity, cases={COMPLEX: lambda x: complex_numbers.conj(x)})
def conjugate(x: ArrayLike, /) -> Array:
    """Return the complex conjugates of elements.

    Example:
        >>> jnp.conjugate(1.0 + 2.0j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    ...


@elementwise_function(identity, cases={COMPLEX: lambda x: complex_numbers.conj(x)})
def conj(x: ArrayLike, /) -> Array:
    """Return the complex conjugates of elements; another name of `conjugate`.

    Example:
        >>> jnp.conj(1.0 + 2.0j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    ...


@elementwise_function(
    identity, cases={COMPLEX: complex_numbers.real},
    returns="the promoted dtype; for complex numbers the dtype of their parts",
)
def real(val: ArrayLike, /) -> Array:
    """Return the real parts of elements.

    Example:
        >>> jnp.real(1.0 + 2.0j)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@elementwise_function(
    _make_zero_part, cases={COMPLEX: complex_numbers.imag},
    returns="the promoted dtype; for complex numbers the dtype of their parts",
)
def imag(val: ArrayLike, /) -> Array:
    """Return the imaginary parts of elements, zero for real numbers.

    Example:
        >>> jnp.imag(1.0 + 2.0j)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


def _as_default_float(dtype: np.dtype[Any], weak: bool) -> tuple[Any, bool]:
    return (dtype, weak) if dtypes.is_inexact(dtype) else (dtypes.default_float(config.enable_x64.value), weak)


@inline_jit
def _angle(z: ArrayLike, *, deg: bool) -> Array:
    (x,) = promote(z, adjust=_as_default_float)
    if dtypes.is_complex(aval_of(x).dtype):
        angle = trigonometry.atan2(complex_numbers.imag(x), complex_numbers.real(x))
    else:
        given = aval_of(z)
        if given.shape:
            angle = trigonometry.atan2(fill_as(x, 0.0, weak=given.weak_type and dtypes.is_inexact(given.dtype)), x)
        else:  # As in JAX, the 0 for a single number has the default dtype.
            default = dtypes.default_float(config.enable_x64.value)
            wider = max(aval_of(x).dtype, default, key=dtypes.bit_width)
            angle = trigonometry.atan2(fill_as(x, 0.0, wider), convert_to(x, wider))
    return lax.mul(angle, scalar_like(angle, 180 / math.pi)) if deg else angle


@inline_jit(static=("deg",), public=True)
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angles of complex numbers; of real numbers, 0 or π.

    Args:
        z: an array or a scalar of numbers or booleans.
        deg: whether the angles are in degrees instead of radians.

    Returns:
        An array of the shape of `z`, of the floating dtype of its parts.

    Raises:
        TypeError: `z` is neither an array nor a scalar.

    Example:
        >>> jnp.angle(1.0j, deg=True)
        Array(90., dtype=float32, weak_type=True)
    """
    return _angle(z, deg=bool(deg))


def iscomplexobj(x: ArrayLike) -> bool:
    """Return whether the dtype of an object is complex.

    Args:
        x: an array, a scalar, a list of numbers or one of the scalar types; for None and text the result is False.

    Returns:
        A Python bool.

    Raises:
        TypeError: `x` is another object.

    Example:
        >>> jnp.iscomplexobj(1j)
        True
    """
    if x is None or isinstance(x, str):
        return False
    own = getattr(x, "dtype", None)
    return dtypes.is_complex(own if isinstance(own, np.dtype) else asarray(x).dtype)


def isrealobj(x: ArrayLike) -> bool:
    """Return whether the dtype of an object is not complex.

    Args:
        x: an array, a scalar, a list of numbers or one of the scalar types; for None and text the result is True.

    Returns:
        A Python bool.

    Raises:
        TypeError: `x` is another object.

    Example:
        >>> jnp.isrealobj(1j)
        False
    """
    return not iscomplexobj(x)


@inline_jit
def iscomplex(x: ArrayLike) -> Array:
    """Return which elements have a nonzero imaginary part.

    Args:
        x: an array or a scalar of numbers or booleans.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.iscomplex(jnp.array([1.0, 1.0j]))
        Array([False,  True], dtype=bool)
    """
    part = imag(x)
    return ne(part, scalar_like(part, 0))


@inline_jit
def isreal(x: ArrayLike) -> Array:
    """Return which elements have an imaginary part of zero.

    Args:
        x: an array or a scalar of numbers or booleans.

    Returns:
        An array of the shape of `x` and dtype bool.

    Raises:
        TypeError: `x` is neither an array nor a scalar.

    Example:
        >>> jnp.isreal(jnp.array([1.0, 1.0j]))
        Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return eq(part, scalar_like(part, 0))
