"""Construction, parts and conjugates of complex numbers."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.families import Binary, Elementwise, Unary, neg
from xtrace._src.algebra.kinds import COMPLEX, PART
from xtrace._src.algebra.vector_space import LINEAR, unbroadcast
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import Literal, scalar_literal
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.elementwise.constants import constants_like
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

# Complex numbers

def _part(name: str) -> Any:
    def emit(builder: FunctionBuilder, x: Value) -> Value:
        return builder.cast(name, x, builder.results[0])

    return emit


def _make_complex(part: object, *_: Array, **parameters: object) -> Any:
    return dtypes.complex128 if part in (dtypes.float64, dtypes.complex128) else dtypes.complex64


def _complex(builder: FunctionBuilder, x: Value, y: Value) -> Value:
    return builder.complex(x, y, ShapedArray(x.aval.shape, _make_complex(x.aval.dtype)))


@lower_fun
def _conj(x: Array, *, input_dtype: object) -> Array:
    is_complex = dtypes.is_complex(aval_of(x).dtype)
    return complex(real(x), -imag(x)) if is_complex else complex(x, constants_like(x, 0))


# Transposes are those of real linear maps with respect to the pairing Re(cotangent * value).

def _complex_transpose(cotangent: Array, x: Array | UndefinedPrimal, y: Array | UndefinedPrimal) -> list[Any]:
    return [
        unbroadcast(real(cotangent), x.aval) if type(x) is UndefinedPrimal else None,
        unbroadcast(imag(neg(cotangent)), y.aval) if type(y) is UndefinedPrimal else None,
    ]


@Binary.define(
    _complex, PART, result=_make_complex, jvp=LINEAR, transpose=_complex_transpose,
    returns="the dtype complex64 or complex128",
)
def complex(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the complex numbers x + iy.

    Example:
        >>> lax.complex(1.0, 2.0)
        Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    ...


# The cotangent of a complex number is strongly typed even if that of its part is weakly typed, as in JAX.
def _strong_zero(ct: object) -> Literal:
    return scalar_literal(0.0, aval_of(ct).dtype)


@Unary.define(
    _part("real"), (COMPLEX,), result=dtypes.real_part_dtype, jvp=LINEAR,
    transpose=lambda ct, x: [complex(ct, _strong_zero(ct))], returns="the dtype of the parts",
)
def real(x: ArrayLike | Literal) -> Array:
    """Return the real part of each element.

    Example:
        >>> lax.real(1 + 2j)
        Array(1., dtype=float32, weak_type=True)
    """
    ...


@Unary.define(
    _part("imag"), (COMPLEX,), result=dtypes.real_part_dtype, jvp=LINEAR,
    transpose=lambda ct, x: [complex(_strong_zero(ct), neg(ct))], returns="the dtype of the parts",
)
def imag(x: ArrayLike | Literal) -> Array:
    """Return the imaginary part of each element.

    Example:
        >>> lax.imag(1 + 2j)
        Array(2., dtype=float32, weak_type=True)
    """
    ...


def _conj_transpose(cotangent: Array, x: Array, *, input_dtype: object) -> list[Any]:
    return [conj(cotangent) if dtypes.is_complex(x.aval.dtype) else real(cotangent)]


@Elementwise.define(
    _conj, (*PART, COMPLEX), has_body=True, parameters=("input_dtype",), result=_make_complex, jvp=LINEAR,
    transpose=_conj_transpose,
)
def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate of each element.

    Args:
        x: an array or a scalar of complex numbers, or of float32 or float64 numbers, whose imaginary part is 0.

    Returns:
        An array of the shape of `x` and the dtype complex64 or complex128.

    Raises:
        TypeError: `x` is no array or scalar of an accepted dtype.

    Example:
        >>> lax.conj(1 + 2j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    return conj.bind_positional((x,), (aval_of(x).dtype,))
