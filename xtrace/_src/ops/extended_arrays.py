"""Arrays of extended dtypes from the arrays of their storage, and dtypes whose tangents have a dtype of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.values import EqualByKey
from xtrace._src.ops.random.keys import random_wrap
from xtrace._src.runtime.arrays import ConcreteArray, Placement, new_array, placement


class _ExtendedArrays(type):
    def __instancecheck__(cls, value: object) -> bool:
        return (
            type(value) is ConcreteArray and isinstance(value.dtype, dtypes.ExtendedDType)
            and not dtypes.issubdtype(value.dtype, dtypes.prng_key)
        )


class EArray(ConcreteArray, metaclass=_ExtendedArrays):
    """An array of an extended dtype, made of the array of its storage, with which it shares memory.

    Every concrete array of such a dtype is an instance, but for random keys: those are the result for their dtype.

    Args:
        aval: the type of the array.
        data: an array of the type of the storage.

    Raises:
        TypeError: `aval` is no type of an extended dtype, or `data` is no concrete array of the type of its storage.

    Example:
        >>> dtype = xtrace.experimental.primal_tangent_dtype("float16", "float32")
        >>> x = xtrace.experimental.EArray(xtrace.core.ShapedArray((2,), dtype), jnp.ones(2, "float16"))
        >>> lax.convert_element_type(x, "float16")
        Array([1., 1.], dtype=float16)
    """

    __module__ = "xtrace.experimental"
    __slots__ = ()

    def __new__(cls, aval: ShapedArray, data: Array) -> Array:  # type: ignore[misc]
        """Return the array of type `aval`."""
        dtype = getattr(aval, "dtype", None)
        if not isinstance(dtype, dtypes.ExtendedDType):
            raise TypeError(
                f"EArray: aval is the type of an array of an extended dtype, got {abbreviate(aval)}; arrays of other "
                "dtypes have no storage of another type"
            )
        stored = physical_aval(aval)
        if type(data) is not ConcreteArray or (data.shape, data.dtype) != (stored.shape, stored.dtype):
            raise TypeError(
                f"EArray: an array of type {aval.str_short(True)} is stored in a concrete array of type "
                f"{stored.str_short(True)}, got {abbreviate(data)} for data; traced arrays are converted with "
                "lax.convert_element_type"
            )
        if isinstance(dtype, dtypes.StoredDType):
            return random_wrap.bind_positional((data,), (dtype.maker,))
        place = data.signature
        if type(place) is Placement:
            place = placement(aval, place.place, place.committed, place.layout)
        else:
            place = aval
        return new_array(aval, data.buffer, place)


class primal_tangent_scalar(dtypes.extended):
    """Abstract scalar class of `PrimalTangentDType`, for `issubdtype`; it has no instances."""


class PrimalTangentDType(dtypes.ExtendedDType, EqualByKey):
    """An extended dtype that is stored as `primal_dtype`, and whose tangents are numbers of `tangent_dtype`.

    Two are equal when both dtypes and the names are.
    """

    __slots__ = ("primal_dtype", "tangents", "name", "_rules")

    type = primal_tangent_scalar

    def __init__(self, primal_dtype: Any, tangents: Any, name: str) -> None:
        self.primal_dtype, self.tangents, self.name = primal_dtype, tangents, name
        self._rules = SimpleNamespace(
            physical_element_aval=lambda dtype: ShapedArray((), dtype.primal_dtype),
            tangent_dtype=lambda dtype: dtype.tangents,
            full=lambda shape, value, dtype: convert_to(convert_to(value, dtype.primal_dtype), dtype),
            allow_conversion=True,
        )

    def _key(self) -> tuple[Any, ...]:
        return self.primal_dtype, self.tangents, self.name


def primal_tangent_dtype(primal_dtype: DTypeLike, tangent_dtype: DTypeLike, name: str | None = None) -> Any:
    """Return an extended dtype that is stored as one dtype and has tangents of another.

    Arrays become arrays of it, and are read again, by `lax.convert_element_type` from and to the dtype of the storage.
    Tangents and cotangents pass at the precision of theirs.

    Args:
        primal_dtype: the dtype of the storage.
        tangent_dtype: the dtype of tangents.
        name: the name; by default one of both dtypes' names.

    Returns:
        An extended dtype, equal to others of the same arguments.

    Raises:
        TypeError: an argument is no dtype.

    Example:
        >>> xtrace.experimental.primal_tangent_dtype("float8_e4m3fn", "bfloat16")
        PrimalTangentDType{f8_e4m3fn/bf16}
    """
    primal, tangents = dtypes.resolve(primal_dtype), dtypes.resolve(tangent_dtype)
    default = f"PrimalTangentDType{{{dtypes.short_name(primal)}/{dtypes.short_name(tangents)}}}"
    return PrimalTangentDType(primal, tangents, default if name is None else name)
