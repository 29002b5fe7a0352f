"""Python numbers that know their dtype, which functions of users get in the place of a caller's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.core.avals import ShapedArray, aval_of, aval_rules, int_aval
from xtrace._src.core.jaxprs.ir import Literal


class _TypedNumber:
    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: np.dtype[Any]) -> Any:
        number = super().__new__(cls, value)  # type: ignore[call-arg]
        number.dtype = dtype
        return number

    @property
    def aval(self) -> ShapedArray:
        """The type of an array that holds the number."""
        return ShapedArray((), self.dtype, weak_type=True)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return type(self).__bases__[1](self), self.dtype

    def __repr__(self) -> str:
        number, dtype = self.__getnewargs__()
        return f"{type(self).__name__}({number}, dtype={dtype.name})"


class TypedInt(_TypedNumber, int):
    """A Python integer with a dtype."""


class TypedFloat(_TypedNumber, float):
    """A Python float with a dtype."""


class TypedComplex(_TypedNumber, complex):
    """A Python complex number with a dtype."""


_TYPED = {int: TypedInt, float: TypedFloat, complex: TypedComplex}
for _class in _TYPED.values():
    aval_rules[_class] = lambda number: number.aval


def with_dtype(value: Any) -> Any:
    """Return an operand as a user's function gets it: Python's and NumPy's values remain so, with the dtype in jax.

    OverflowError for an integer that its dtype cannot hold.
    """
    value = value.value if type(value) is Literal else value
    typed = _TYPED.get(type(value))
    if typed is not None:
        return typed(value, (int_aval if typed is TypedInt else aval_of)(value).dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value, aval_of(value).dtype)
    return value
