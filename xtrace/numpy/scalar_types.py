"""Scalar types such as ``float32``, callable and usable as dtypes; questions about dtypes, shapes and sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace import dtypes as public_dtypes
from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.core import config, dtypes
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.docstrings import docstring
from xtrace._src.core.dtypes import DType
from xtrace.numpy.conversion import asarray
from xtrace.numpy.operands import axes_of

__all__ = [
    "bfloat16", "bool_", "can_cast", "cdouble", "complex128", "complex64", "complex_", "csingle", "double", "e",
    "euler_gamma", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn",
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "inf", "int16", "int2", "int32", "int4", "int64", "int8", "int_",
    "isdtype", "isscalar", "issubdtype", "iterable", "nan", "ndim", "newaxis", "pi", "promote_types", "result_type",
    "shape", "single", "size", "uint", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8",
]


class ScalarType(type):
    """The class of ``float32`` and the other scalar types, which are dtypes and convert to arrays when called."""

    dtype: Any

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


def _define_scalar_class(dtype: DType) -> ScalarType:
    contents = {
        "dtype": dtype, "__module__": "xtrace.numpy", "__slots__": (),
        "__doc__": docstring(
            f"A dtype, and the conversion of arrays to it: {dtype.name}.",
            {"x": "an array, a scalar or nested lists of numbers."}, f"An array of dtype {dtype.name}.",
            {"TypeError": "`x` does not convert to an array."}, (f"str(jnp.{dtype.name}.dtype)", f"'{dtype.name}'"),
        ),
    }
    return ScalarType(dtype.name, (), contents)


bool_ = _define_scalar_class(dtypes.bool_)
int2 = _define_scalar_class(dtypes.int2)
int4 = _define_scalar_class(dtypes.int4)
int8 = _define_scalar_class(dtypes.int8)
int16 = _define_scalar_class(dtypes.int16)
int32 = _define_scalar_class(dtypes.int32)
int64 = _define_scalar_class(dtypes.int64)
uint2 = _define_scalar_class(dtypes.uint2)
uint4 = _define_scalar_class(dtypes.uint4)
uint8 = _define_scalar_class(dtypes.uint8)
uint16 = _define_scalar_class(dtypes.uint16)
uint32 = _define_scalar_class(dtypes.uint32)
uint64 = _define_scalar_class(dtypes.uint64)
float4_e2m1fn = _define_scalar_class(dtypes.float4_e2m1fn)
float6_e2m3fn = _define_scalar_class(dtypes.float6_e2m3fn)
float6_e3m2fn = _define_scalar_class(dtypes.float6_e3m2fn)
float8_e3m4 = _define_scalar_class(dtypes.float8_e3m4)
float8_e4m3 = _define_scalar_class(dtypes.float8_e4m3)
float8_e4m3b11fnuz = _define_scalar_class(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _define_scalar_class(dtypes.float8_e4m3fn)
float8_e4m3fnuz = _define_scalar_class(dtypes.float8_e4m3fnuz)
float8_e5m2 = _define_scalar_class(dtypes.float8_e5m2)
float8_e5m2fnuz = _define_scalar_class(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _define_scalar_class(dtypes.float8_e8m0fnu)
bfloat16 = _define_scalar_class(dtypes.bfloat16)
float16 = _define_scalar_class(dtypes.float16)
float32 = _define_scalar_class(dtypes.float32)
float64 = _define_scalar_class(dtypes.float64)
complex64 = _define_scalar_class(dtypes.complex64)
complex128 = _define_scalar_class(dtypes.complex128)
# Only ml_dtypes 0.6 and newer have the one-bit integers.
one_bit_types: dict[str, Any] = {
    name: _define_scalar_class(dtypes.all_dtypes[name]) for name in ("int1", "uint1") if name in dtypes.all_dtypes
}
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
    return dtypes.promote(pairs, True, config.numpy_dtype_promotion.value)[0]


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
    return bool(np.can_cast(own, dtypes.resolve(to), casting=casting))  # type: ignore[arg-type]


_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": dtypes.is_boolean, "real floating": dtypes.is_floating, "complex floating": dtypes.is_complex,
    "integral": dtypes.is_integer, "signed integer": lambda d: dtypes.is_integer(d) and dtypes.is_signed(d),
    "unsigned integer": lambda d: dtypes.is_integer(d) and not dtypes.is_signed(d),
    "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
}


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Return whether a dtype is of a kind.

    Args:
        dtype: a dtype.
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
    own = dtypes.resolve(dtype)
    for candidate in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(candidate, str) and candidate in _KINDS:
            if _KINDS[candidate](own):
                return True
        else:
            try:
                if own == dtypes.resolve(candidate):
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
