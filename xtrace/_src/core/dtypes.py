"""Element types: the dtypes of arrays, their names and kinds, and promotion.

These are pure functions of dtypes. Whether 64-bit dtypes are kept is an argument, `x64`; no setting is read here.
"""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np

from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import StaticArgumentError, refusal_class
from xtrace._src.core.value_objects import EqualByKey

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo

DType = np.dtype[Any]

bool_: DType = np.dtype(np.bool_)
int2: DType = np.dtype(ml_dtypes.int2)
int4: DType = np.dtype(ml_dtypes.int4)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
uint2: DType = np.dtype(ml_dtypes.uint2)
uint4: DType = np.dtype(ml_dtypes.uint4)
uint8: DType = np.dtype(np.uint8)
uint16: DType = np.dtype(np.uint16)
uint32: DType = np.dtype(np.uint32)
uint64: DType = np.dtype(np.uint64)
float4_e2m1fn: DType = np.dtype(ml_dtypes.float4_e2m1fn)
float6_e2m3fn: DType = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn: DType = np.dtype(ml_dtypes.float6_e3m2fn)
float8_e3m4: DType = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3: DType = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: DType = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: DType = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: DType = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: DType = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: DType = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: DType = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
float16: DType = np.dtype(np.float16)
float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
complex64: DType = np.dtype(np.complex64)
complex128: DType = np.dtype(np.complex128)

# The unsigned integer dtypes by their numbers of bits.
unsigned_dtypes: dict[int, DType] = {8: uint8, 16: uint16, 32: uint32, 64: uint64}

# The tangent type of integers and booleans: an element without storage.
float0: DType = np.dtype([("float0", np.void, 0)])

SIGNED_INTEGERS: list[DType] = [int2, int4, int8, int16, int32, int64]
UNSIGNED_INTEGERS: list[DType] = [uint2, uint4, uint8, uint16, uint32, uint64]
# Only ml_dtypes 0.6 and newer have the one-bit integers.
if hasattr(ml_dtypes, "int1"):
    SIGNED_INTEGERS.insert(0, np.dtype(ml_dtypes.int1))
    UNSIGNED_INTEGERS.insert(0, np.dtype(ml_dtypes.uint1))
SMALL_FLOATS: list[DType] = [
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn,
    float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
]
FLOATS: list[DType] = [*SMALL_FLOATS, bfloat16, float16, float32, float64]
COMPLEX: list[DType] = [complex64, complex128]

# Every dtype that an array may have, by its full name.
all_dtypes: dict[str, DType] = {d.name: d for d in [bool_, *SIGNED_INTEGERS, *UNSIGNED_INTEGERS, *FLOATS, *COMPLEX]}

# Maps a dtype to NumPy's abstract class of its kind.
families: dict[DType, type[np.generic]] = {
    bool_: np.bool_,
    **dict.fromkeys(SIGNED_INTEGERS, np.signedinteger), **dict.fromkeys(UNSIGNED_INTEGERS, np.unsignedinteger),
    **dict.fromkeys(FLOATS, np.floating), **dict.fromkeys(COMPLEX, np.complexfloating),
}
# In NumPy, the scalar classes of ml_dtypes have no abstract base class but np.generic.
_family_of_class: dict[type, type[np.generic]] = {d.type: family for d, family in families.items()}
_boolean = frozenset([bool_])
_integers = frozenset([*SIGNED_INTEGERS, *UNSIGNED_INTEGERS])
_signed = frozenset([*SIGNED_INTEGERS, *FLOATS, *COMPLEX])
_floats = frozenset(FLOATS)
_complex = frozenset(COMPLEX)


class extended(np.generic):
    """Abstract scalar class of all extended dtypes, for `issubdtype`; it has no instances.

    Example:
        >>> xtrace.dtypes.issubdtype(random.key(0).dtype, xtrace.dtypes.extended)
        True
    """

    __module__ = "xtrace.dtypes"


class prng_key(extended):
    """Abstract scalar class of random keys, for `issubdtype`; it has no instances.

    Example:
        >>> xtrace.dtypes.issubdtype(random.key(0).dtype, xtrace.dtypes.prng_key)
        True
    """

    __module__ = "xtrace.dtypes"


class ExtendedDType:
    """An element type that NumPy does not have: each element is stored as a small array of a NumPy dtype.

    `name` is printed in jaxprs, and `type` is the abstract scalar class. A library derives its own dtypes from this
    class, with hash and equality. `_rules` is an object with functions of the dtype: `physical_element_aval` returns
    the type of the array that stores an element; `convert_from` and `convert_to` say whether a conversion is allowed,
    or the boolean `allow_conversion` says it for both; `tangent_dtype` returns the dtype of tangents, `add` the sum of
    two of them, `zero` their zero; `full` fills an array with a number.
    """

    __slots__ = ()

    name: str
    type: type[extended]
    _rules: Any

    @property
    def physical(self) -> DType:
        """The dtype of the storage."""
        stored: DType = self._rules.physical_element_aval(self).dtype
        return stored

    @property
    def trailing_shape(self) -> tuple[int, ...]:
        """The shape of one element in the storage."""
        return tuple(self._rules.physical_element_aval(self).shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.physical.itemsize * math.prod(self.trailing_shape)

    def tangent_dtype(self) -> Any:
        """Return the dtype of tangents."""
        return self._rules.tangent_dtype(self)

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum of two tangents or cotangents."""
        return self._rules.add(self, x, y)

    def zero(self) -> Any:
        """Return the zero of tangents and cotangents, a scalar."""
        return self._rules.zero(self)

    def fill(self, value: Any) -> Any:
        """Return a number as a scalar of this dtype."""
        return self._rules.full((), value, self)

    def __repr__(self) -> str:
        return self.name


class StoredDType(ExtendedDType, EqualByKey):
    """An extended dtype of xtrace itself, for tokens and random keys; its elements have no tangents.

    `maker` is the object that makes the elements, such as a generator of random keys. Two dtypes are equal if their
    five fields are.
    """

    __slots__ = ("name", "physical", "trailing_shape", "type", "maker")

    physical: DType
    trailing_shape: tuple[int, ...]

    def __init__(
        self, name: str, physical: DType, trailing_shape: tuple[int, ...] = (), type: type[extended] = extended,
        maker: Any = None,
    ) -> None:
        self.name = name
        self.physical = physical
        self.trailing_shape = trailing_shape
        self.type = type
        self.maker = maker

    def tangent_dtype(self) -> DType:
        """Return float0: every tangent is zero."""
        return float0

    def _key(self) -> tuple[Any, ...]:
        return self.name, self.physical, self.trailing_shape, self.type, self.maker


# The element type of tokens, which order operations and hold no data. The runtime stores an empty array of booleans.
token = StoredDType("token", bool_, (0,))


def _plain_name(dtype: DType) -> str:
    return dtype.name.replace("float", "f").replace("uint", "u").replace("int", "i").replace("complex", "c")


_short_names: dict[Any, str] = {d: _plain_name(d) for d in all_dtypes.values()} | {float0: "float0"}

_mlir_names: dict[Any, str] = {
    bool_: "i1",
    float0: "i1",
    # Not the one-bit integers: i1 is the boolean.
    **{d: _plain_name(d) for d in SIGNED_INTEGERS if d.name != "int1"},
    **{d: _plain_name(d).replace("u", "ui") for d in UNSIGNED_INTEGERS if d.name != "uint1"},
    **{d: _plain_name(d) for d in (bfloat16, float16, float32, float64)},
    # float8_e4m3fn is f8E4M3FN.
    **{d: "f" + _plain_name(d)[1:].replace("_", "").upper() for d in SMALL_FLOATS},
    complex64: "complex<f32>",
    complex128: "complex<f64>",
}

# From the first number in the name, because NumPy counts storage: an int4 takes a byte there.
_bit_widths: dict[DType, int] = {
    d: 8 if d == bool_ else int(re.findall(r"\d+", d.name)[0]) for d in all_dtypes.values()
}


def short_name(dtype: np.dtype[Any]) -> str:
    """Return the name that jaxprs print: ``f32``, ``bool``, ``bf16``, ``f8_e4m3fn``; an extended dtype's own name."""
    known = _short_names.get(dtype)
    return known if known is not None else str(dtype.name)


def full_name(dtype: Any) -> str:
    """Return the full name: ``float32``, ``float0``; an extended dtype's own name."""
    return "float0" if dtype == float0 else str(dtype.name)


def mlir_name(dtype: np.dtype[Any]) -> str:
    """Return the StableHLO element type: ``f32``, ``ui8``, ``i1``, ``f8E4M3FN``, ``complex<f32>``.

    An extended dtype gives the type of its storage, and float0 gives ``i1``. Raises TypeError for any other dtype, and
    for one-bit integers, which arrays may have and programs may not.
    """
    if isinstance(dtype, ExtendedDType):
        dtype = dtype.physical
    known = _mlir_names.get(dtype)
    if known is None:
        if dtype in all_dtypes.values():
            raise TypeError(
                f"no operation takes or gives {dtype.name}: the narrowest integers in XLA's programs have two bits. "
                "Convert before, in NumPy: np.asarray(x).astype(np.int8)"
            )
        raise _refusal(dtype)
    return known


def bit_width(dtype: Any) -> int:
    """Return the number of bits of one element.

    Args:
        dtype: a dtype.

    Returns:
        An int: 4 for int4, 8 for bool, 64 for complex64.

    Raises:
        TypeError: `dtype` is no dtype.
        ValueError: `dtype` is float0 or an extended dtype, which have no bits of their own.

    Example:
        >>> xtrace.dtypes.itemsize_bits(jnp.int4)
        4
    """
    resolved = resolve(dtype)
    width = _bit_widths.get(resolved)
    if width is None:
        raise ValueError(f"{full_name(resolved)} has no bit width; its elements are not stored as numbers")
    return width


def is_boolean(dtype: object) -> bool:
    """Whether `dtype` is bool."""
    return dtype in _boolean


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a signed or unsigned integer (bool is not one)."""
    return dtype in _integers


def is_signed(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` has negative values: signed integers, floats and complex numbers."""
    return dtype in _signed


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` is a real floating-point type."""
    return dtype in _floats


def is_complex(dtype: Any) -> bool:
    """Whether `dtype` is complex."""
    return dtype in _complex


def is_inexact(dtype: object) -> bool:
    """Whether `dtype` is floating-point or complex."""
    return dtype in _floats or dtype in _complex


def tangent_dtype(dtype: Any) -> Any:
    """Return the dtype of tangents: a floating or complex dtype itself, float0 where every tangent is zero."""
    if dtype in _floats or dtype in _complex:
        return dtype
    return dtype.tangent_dtype() if isinstance(dtype, ExtendedDType) else float0


def converts(source: Any, target: Any) -> bool:
    """Whether arrays of the dtype `source` can be converted to `target`; the rules of an extended dtype decide."""
    extended, other = (target, source) if isinstance(target, ExtendedDType) else (source, target)
    if not isinstance(extended, ExtendedDType) or extended == other:
        return True
    # From and to the dtype of the storage only: a conversion writes no operation.
    if isinstance(extended, StoredDType) or extended.trailing_shape or extended.physical != other:
        return False
    rules = extended._rules
    allows = getattr(rules, "convert_to" if extended is target else "convert_from", None)
    return bool(rules.allow_conversion if allows is None else allows(source, target))


def real_part_dtype(dtype: object) -> Any:
    """Return the dtype of the real part: float32 for complex64; a real dtype is returned unchanged."""
    return float32 if dtype == complex64 else float64 if dtype == complex128 else dtype


def issubdtype(a: DTypeLike, b: DTypeLike) -> bool:
    """Return whether a dtype or scalar class equals another one, or is a subclass of it.

    Args:
        a: a dtype or scalar class.
        b: a dtype or scalar class; abstract classes such as ``np.floating``, `extended` and `prng_key` too.

    Returns:
        A bool.

    Raises:
        TypeError: an argument is no dtype.

    Example:
        >>> xtrace.dtypes.issubdtype(jnp.bfloat16, np.floating)
        True
    """
    if isinstance(b, ExtendedDType):
        return bool(a == b)
    lower, upper = _scalar_class(a), _scalar_class(b)
    return issubclass(lower, upper) or issubclass(_family_of_class.get(lower, lower), upper)


def _scalar_class(dtype: Any) -> type:
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        return dtype.type
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    wrapped = getattr(dtype, "dtype", None)
    if isinstance(wrapped, np.dtype):
        return wrapped.type
    try:
        resolved: DType = np.dtype(dtype)
    except Exception:
        # NumPy's message holds the whole repr.
        raise TypeError(f"Cannot interpret {abbreviate(dtype)} as a data type") from None
    return resolved.type


_python_scalars: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_narrowed: dict[DType, DType] = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


def _refusal(dtype: object) -> TypeError:
    text = abbreviate(dtype)
    sizes = f"; the sizes of several axes are one argument, a tuple such as (2, {text})" if type(dtype) is int else ""
    return refusal_class(dtype)(
        f"{text if len(text) <= 80 else text[:77] + '...'} is not a dtype that arrays can have{sizes}. Accepted are "
        f"{', '.join(all_dtypes)} by name or as NumPy dtype or scalar class, and Python's bool, int, float and complex"
    )


def resolve(dtype: Any) -> Any:
    """Return the NumPy dtype (native byte order) or ExtendedDType that `dtype` means, 64-bit types kept.

    Accepts dtypes, their names, NumPy and ml_dtypes scalar classes, Python's bool, int, float and complex, and classes
    with a ``dtype``. A TypeError lists the accepted dtypes for any other one, such as object or str.
    """
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, np.dtype):
        resolved = dtype
    elif isinstance(dtype, type) and dtype in _python_scalars:
        return _python_scalars[dtype]
    elif dtype is None:
        raise TypeError("dtype is None; name the dtype, for example float32")
    elif isinstance(wrapped := getattr(dtype, "dtype", None), (np.dtype, ExtendedDType)):
        if hasattr(dtype, "shape") and not isinstance(dtype, (type, np.generic)):
            raise StaticArgumentError("an array was given where a dtype belongs; write x.dtype")
        return resolve(wrapped)
    else:
        try:
            resolved = np.dtype(dtype)
        except Exception:
            # NumPy's own message holds the whole repr.
            raise _refusal(dtype) from None
    # One object for equal dtypes: newbyteorder makes new ones, which do not count as built in.
    native = _own.get(resolved.newbyteorder("="))
    if native is None:
        raise _refusal(dtype)
    return native


_own: dict[Any, Any] = {d: d for d in (*families, float0)}
_canonical: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})


def canonicalize(dtype: Any, x64: bool) -> Any:
    """Return the dtype that arrays get when `dtype` is asked for: 64-bit types become 32-bit unless `x64`.

    Accepts the same arguments as `resolve`, and raises its TypeError.
    """
    try:
        return _canonical[x64][dtype]
    except (KeyError, TypeError):
        canonical = resolve(dtype)
    if isinstance(canonical, ExtendedDType):
        return canonical
    if not x64:
        canonical = _narrowed.get(canonical, canonical)
    # NumPy scalars of different types can be equal, so they are no keys.
    if not isinstance(dtype, np.generic):
        _canonical[x64][dtype] = canonical
    return canonical


def default_int(x64: bool) -> DType:
    """Return the dtype of a Python int."""
    return int64 if x64 else int32


def default_uint(x64: bool) -> DType:
    """Return the default unsigned dtype."""
    return uint64 if x64 else uint32


def default_float(x64: bool) -> DType:
    """Return the dtype of a Python float."""
    return float64 if x64 else float32


def default_complex(x64: bool) -> DType:
    """Return the dtype of a Python complex."""
    return complex128 if x64 else complex64


def dtype_and_weak(value: object, x64: bool, wide: bool | None = None) -> tuple[Any, bool]:
    """Return the canonical dtype of `value` and whether it is weak.

    `value` is an array or tracer, which has ``dtype`` and ``weak_type``, a NumPy value, a Python scalar, or an argument
    of `resolve`; the classes int, float and complex are weak like their instances. Raises TypeError for other values.
    wide: whether 64-bit dtypes that are given by name are kept; by default `x64`.
    """
    wide = x64 if wide is None else wide
    kind = value if isinstance(value, type) else type(value)
    own = _python_scalars.get(kind)
    if own is not None:
        return canonicalize(own, x64), kind is not bool
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, (np.dtype, ExtendedDType)):
        kept = x64 if isinstance(value, (np.ndarray, np.generic)) else wide
        return canonicalize(dtype, kept), bool(getattr(value, "weak_type", False))
    if not isinstance(value, type):
        for base, own in _python_scalars.items():
            if isinstance(value, base):
                return canonicalize(own, x64), False
    try:
        return canonicalize(value, wide), False
    except TypeError:
        raise TypeError(f"neither a dtype nor a value that has one: {_refusal(value)}") from None


# As a decorator `errstate` takes half of the time that it takes in a with statement.
@np.errstate(over="ignore", invalid="ignore")
def cast(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return a copy of `value`, an array or number, as a NumPy array of `dtype`.

    There are no warnings. A number beyond the range of a floating dtype becomes infinite, as in XLA; one beyond the
    range of an integer dtype is converted as NumPy does. An array of float0, which has no data, gives zeros.
    """
    if getattr(value, "dtype", None) == float0:
        return np.zeros(np.shape(value), dtype)
    return np.array(np.asarray(value), dtype)


@np.errstate(over="ignore", invalid="ignore")
def cast_into(array: np.ndarray[Any, Any], value: Any) -> None:
    """Replace the elements of `array` by those of `value`, which has its shape, converted as `cast` does."""
    array[...] = value


def scalar_type_of(x: np.dtype[Any]) -> type:
    """Return the class of Python scalars for the elements of a value or a dtype.

    Args:
        x: an array, a scalar or a dtype.

    Returns:
        bool, int, float or complex.

    Raises:
        TypeError: `x` has no dtype.

    Example:
        >>> xtrace.dtypes.scalar_type_of(np.dtype("uint8"))
        <class 'int'>
    """
    dtype, _ = dtype_and_weak(x, True)
    family = families.get(dtype)
    if family is None:
        raise TypeError(f"elements of dtype {full_name(dtype)} have no Python scalar type")
    return _scalar_of_family[family]


_scalar_of_family: dict[type[np.generic], type] = {
    np.bool_: bool, np.signedinteger: int, np.unsignedinteger: int, np.floating: float, np.complexfloating: complex,
}
