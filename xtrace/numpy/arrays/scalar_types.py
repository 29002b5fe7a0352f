"""Scalar types such as ``float32``, callable and usable as dtypes; questions about dtypes, shapes and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace import dtypes as public_dtypes
from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.docstrings import write_docstring
from xtrace._src.core.dtypes import DType
from xtrace._src.core.settings import config
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.operands import axes_of


class ScalarType(type):
    """The class of ``float32`` and the other scalar types, which are dtypes and convert to arrays when called."""

    dtype: Any

    def __new__(
        cls, name: str, bases: tuple[type, ...], contents: dict[str, Any], *, dtype: DType | None = None
    ) -> ScalarType:
        """Complete the docstring, a sentence on the numbers, by the sections on the conversion.

        A class of a user's that extends a scalar type stays as it is, and has the dtype of its base.
        """
        if dtype is None:
            return super().__new__(cls, name, bases, contents)
        contents |= {
            "dtype": dtype, "__module__": "xtrace.numpy", "__qualname__": dtype.name, "__slots__": (),
            "__doc__": write_docstring(
                contents["__doc__"], {"x": "an array, a scalar or nested lists of numbers."},
                f"An array of dtype {dtype.name}.", {"TypeError": "`x` does not convert to an array."},
                (f"str(jnp.{dtype.name}.dtype)", f"'{dtype.name}'"),
            ),
        }
        return super().__new__(cls, dtype.name, bases, contents)

    def __init__(
        cls, name: str, bases: tuple[type, ...], contents: dict[str, Any], *, dtype: DType | None = None
    ) -> None:
        super().__init__(name, bases, contents)

    def __call__(cls, x: Any) -> Array:
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.dtype.type == other or cls.dtype == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: Array) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'jax.numpy.{cls.__name__}'>"


class bool_(metaclass=ScalarType, dtype=dtypes.bool_):
    """Truth values, of one byte each."""


class int2(metaclass=ScalarType, dtype=dtypes.int2):
    """Integers of 2 bits, from -2 to 1."""


class int4(metaclass=ScalarType, dtype=dtypes.int4):
    """Integers of 4 bits, from -8 to 7."""


class int8(metaclass=ScalarType, dtype=dtypes.int8):
    """Integers of 8 bits, from -128 to 127."""


class int16(metaclass=ScalarType, dtype=dtypes.int16):
    """Integers of 16 bits, from -32768 to 32767."""


class int32(metaclass=ScalarType, dtype=dtypes.int32):
    """Integers of 32 bits, from -2147483648 to 2147483647."""


class int64(metaclass=ScalarType, dtype=dtypes.int64):
    """Integers of 64 bits; without the setting `enable_x64`, arrays of them have dtype int32."""


class uint2(metaclass=ScalarType, dtype=dtypes.uint2):
    """Integers of 2 bits without a sign, from 0 to 3."""


class uint4(metaclass=ScalarType, dtype=dtypes.uint4):
    """Integers of 4 bits without a sign, from 0 to 15."""


class uint8(metaclass=ScalarType, dtype=dtypes.uint8):
    """Integers of 8 bits without a sign, from 0 to 255."""


class uint16(metaclass=ScalarType, dtype=dtypes.uint16):
    """Integers of 16 bits without a sign, from 0 to 65535."""


class uint32(metaclass=ScalarType, dtype=dtypes.uint32):
    """Integers of 32 bits without a sign, from 0 to 4294967295."""


class uint64(metaclass=ScalarType, dtype=dtypes.uint64):
    """Integers of 64 bits without a sign; without the setting `enable_x64`, arrays of them have dtype uint32."""


class float4_e2m1fn(metaclass=ScalarType, dtype=dtypes.float4_e2m1fn):
    """Floating-point numbers of 4 bits, 2 for the exponent and 1 for the mantissa, without infinities and NaN."""


class float6_e2m3fn(metaclass=ScalarType, dtype=dtypes.float6_e2m3fn):
    """Floating-point numbers of 6 bits, 2 for the exponent and 3 for the mantissa, without infinities and NaN."""


class float6_e3m2fn(metaclass=ScalarType, dtype=dtypes.float6_e3m2fn):
    """Floating-point numbers of 6 bits, 3 for the exponent and 2 for the mantissa, without infinities and NaN."""


class float8_e3m4(metaclass=ScalarType, dtype=dtypes.float8_e3m4):
    """Floating-point numbers of 8 bits, 3 for the exponent and 4 for the mantissa, with infinities and NaN."""


class float8_e4m3(metaclass=ScalarType, dtype=dtypes.float8_e4m3):
    """Floating-point numbers of 8 bits, 4 for the exponent and 3 for the mantissa, with infinities and NaN."""


class float8_e4m3b11fnuz(metaclass=ScalarType, dtype=dtypes.float8_e4m3b11fnuz):
    """Floating-point numbers of 8 bits, 4 for the exponent and 3 for the mantissa; bias 11, one NaN, no infinities."""


class float8_e4m3fn(metaclass=ScalarType, dtype=dtypes.float8_e4m3fn):
    """Floating-point numbers of 8 bits, 4 for the exponent and 3 for the mantissa, with NaN and without infinities."""


class float8_e4m3fnuz(metaclass=ScalarType, dtype=dtypes.float8_e4m3fnuz):
    """Floating-point numbers of 8 bits, 4 for the exponent and 3 for the mantissa; bias 8, one NaN, no infinities."""


class float8_e5m2(metaclass=ScalarType, dtype=dtypes.float8_e5m2):
    """Floating-point numbers of 8 bits, 5 for the exponent and 2 for the mantissa, with infinities and NaN."""


class float8_e5m2fnuz(metaclass=ScalarType, dtype=dtypes.float8_e5m2fnuz):
    """Floating-point numbers of 8 bits, 5 for the exponent and 2 for the mantissa; bias 16, one NaN, no infinities."""


class float8_e8m0fnu(metaclass=ScalarType, dtype=dtypes.float8_e8m0fnu):
    """Powers of two in 8 bits, and NaN: an exponent without sign and mantissa."""


class bfloat16(metaclass=ScalarType, dtype=dtypes.bfloat16):
    """Floating-point numbers of 16 bits with the range of float32: 8 for the exponent and 7 for the mantissa."""


class float16(metaclass=ScalarType, dtype=dtypes.float16):
    """Floating-point numbers of 16 bits (IEEE 754 binary16)."""


class float32(metaclass=ScalarType, dtype=dtypes.float32):
    """Floating-point numbers of 32 bits (IEEE 754 binary32)."""


class float64(metaclass=ScalarType, dtype=dtypes.float64):
    """Floating-point numbers of 64 bits (binary64); without the setting `enable_x64`, arrays of them are float32."""


class complex64(metaclass=ScalarType, dtype=dtypes.complex64):
    """Complex numbers whose parts are float32."""


class complex128(metaclass=ScalarType, dtype=dtypes.complex128):
    """Complex numbers whose parts are float64; without the setting `enable_x64`, arrays of them are complex64."""


# Only ml_dtypes 0.6 and newer have the one-bit integers.
if "int1" in dtypes.all_dtypes:

    class int1(metaclass=ScalarType, dtype=dtypes.all_dtypes["int1"]):
        """Integers of one bit, -1 and 0."""

    class uint1(metaclass=ScalarType, dtype=dtypes.all_dtypes["uint1"]):
        """Integers of one bit without a sign, 0 and 1."""


# Aliases from C and older NumPy.
single, double, float_ = float32, float64, float64
csingle, cdouble, complex_ = complex64, complex128, complex128
int_, uint = int64, uint64

pi, e, inf, nan, euler_gamma, newaxis = math.pi, math.e, math.inf, math.nan, float(np.euler_gamma), None


def result_type(*args: object) -> np.dtype[Any]:
    """Return the dtype of the results of operations on the operands.

    Args:
        args: arrays, scalars and dtypes, one or more.

    Returns:
        A NumPy dtype. 64-bit dtypes become 32-bit ones unless `enable_x64` is set.

    Raises:
        TypeError: an operand has no dtype.
        ValueError: there is no operand.

    Example:
        >>> jnp.result_type(jnp.int8, jnp.float16)
        dtype('float16')
    """
    return public_dtypes.result_type(*args)


def promote_types(a: ArrayLike, b: ArrayLike) -> np.dtype[Any]:
    """Return the dtype that values of two dtypes promote to.

    Args:
        a, b: dtypes, or Python's int, float or complex, which are weak. 64-bit dtypes are kept.

    Returns:
        A NumPy dtype.

    Raises:
        TypeError: an argument is not a dtype.
        TypePromotionError: the setting `numpy_dtype_promotion` forbids the promotion.

    Example:
        >>> jnp.promote_types(jnp.int8, jnp.uint8)
        dtype('int16')
    """
    pairs = tuple(dtypes.dtype_and_weak(x, True) for x in (a, b))
    return type_promotion.promote(pairs, True, config.numpy_dtype_promotion.value)[0]


def can_cast(from_: Any, to: object, casting: str = "safe") -> bool:
    """Return whether one dtype casts to another under one of NumPy's rules.

    Args:
        from_: a dtype, or an array of it.
        to: a dtype.
        casting: ``"no"``, ``"equiv"``, ``"safe"``, ``"same_kind"`` or ``"unsafe"``.

    Returns:
        A Python bool.

    Raises:
        TypeError: an argument is not a dtype.
        ValueError: `casting` has another value.

    Example:
        >>> jnp.can_cast(jnp.float32, jnp.int32)
        False
    """
    if isinstance(from_, (type, np.dtype)) or not hasattr(from_, "shape"):
        own = dtypes.resolve(from_)
    else:
        own = from_.dtype
    return bool(np.can_cast(own, _resolve(to), casting=casting))  # type: ignore[arg-type]


def _resolve(dtype: Any) -> Any:
    """Return a dtype; that of an array, as NumPy's functions that ask for a dtype do."""
    return dtypes.resolve(dtype.dtype if isinstance(dtype, Array) else dtype)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": dtypes.is_boolean, "real floating": dtypes.is_floating, "complex floating": dtypes.is_complex,
    "integral": dtypes.is_integer, "signed integer": lambda d: dtypes.is_integer(d) and dtypes.is_signed(d),
    "unsigned integer": lambda d: dtypes.is_integer(d) and not dtypes.is_signed(d),
    "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
}


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: a dtype, or an array of it.
        kind: a dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
            ``"complex floating"``, ``"numeric"``, or a tuple of alternatives.

    Returns:
        A Python bool.

    Raises:
        TypeError: `dtype` is not a dtype.
        ValueError: `kind` is none of these.

    Example:
        >>> jnp.isdtype(jnp.int8, ("bool", "integral"))
        True
    """
    own = _resolve(dtype)
    for candidate in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(candidate, str) and candidate in _KINDS:
            if _KINDS[candidate](own):
                return True
        else:
            try:
                if own == _resolve(candidate):
                    return True
            except TypeError:
                raise ValueError(
                    f"isdtype: kind must be a dtype or one of {', '.join(_KINDS)}; got {abbreviate(candidate)}"
                ) from None
    return False


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype or scalar class equals another one, or lies below it in NumPy's hierarchy.

    Args:
        arg1, arg2: dtypes or scalar classes; `bfloat16` and the other small types have their places in the hierarchy.

    Returns:
        A Python bool.

    Raises:
        TypeError: an argument is neither a dtype nor a scalar class.

    Example:
        >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
        True
    """
    return dtypes.issubdtype(arg1, arg2)


def iterable(y: Any) -> bool:
    """Return whether an object can be iterated over.

    Args:
        y: any object.

    Returns:
        A Python bool.

    Example:
        >>> jnp.iterable(jnp.ones(3)), jnp.iterable(1.0)
        (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def isscalar(element: ArrayLike | None) -> bool:
    """Return whether an object is a scalar: a Python or NumPy scalar, or an array of rank 0.

    Args:
        element: any object.

    Returns:
        A Python bool.

    Example:
        >>> jnp.isscalar(1.0), jnp.isscalar(jnp.ones(1))
        (True, False)
    """
    if np.isscalar(element):
        return True
    try:
        return aval_of(element).ndim == 0
    except TypeError:
        return False


def shape(a: Any) -> tuple[int, ...]:
    """Return the length of every axis.

    Args:
        a: an array, a scalar, or nested lists of numbers; also an array of another library, or of strings.

    Returns:
        A tuple of integers; () for an object without elements, such as None.

    Raises:
        ValueError: nested lists have different lengths.

    Example:
        >>> jnp.shape([[1, 2, 3]])
        (1, 3)
    """
    return operand_aval(a, 0).shape if hasattr(a, "__jax_array__") else np.shape(a)


def ndim(a: Any) -> int:
    """Return the number of axes.

    Args:
        a: an array, a scalar, or nested lists of numbers.

    Returns:
        A Python int; 0 for an object without elements, such as None.

    Raises:
        ValueError: nested lists have different lengths.

    Example:
        >>> jnp.ndim([[1, 2, 3]])
        2
    """
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements.

    Args:
        a: an array, a scalar, or nested lists of numbers.
        axis: an axis or several, whose lengths are multiplied; None for all axes.

    Returns:
        A Python int.

    Raises:
        ValueError: `a` has no such axis, or nested lists have different lengths.

    Example:
        >>> jnp.size(jnp.ones((2, 3)))
        6
    """
    lengths = shape(a)
    return math.prod([lengths[i] for i in axes_of(axis, len(lengths))])
