"""High types: types that users define; arrays of lower types hold their values.

A value of a high type is a user's object. While a program is traced, its arrays are tracers. Types of mutable objects
have *quasi-dynamic data*: the parts of the type that may change while a program is traced, such as the structure of the
tree of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.core.avals import AbstractValue, aval_rules, high_types
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import EffectTypes

__all__ = [
    "AvalMutableQDD", "AvalQDD", "HiPspec", "HiType", "MutableHiType", "aval_method", "aval_property",
    "control_flow_allowed_effects", "register_hitype",
]


class _UsersType(AbstractValue):
    """The base class of types that users define."""

    is_high = True

    def to_tangent_aval(self) -> Any:
        """Return the type of tangents of values of this type."""
        raise _missing(self, "to_tangent_aval", "returns the type of tangents")

    def to_ct_aval(self) -> Any:
        """Return the type of cotangents of values of this type: that of tangents."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False, **_: object) -> str:
        """Return the type as jaxprs print it."""
        return str(self)


class HiType(_UsersType):
    """The base class of types that users define for immutable values.

    A subclass is hashable and has the methods `lo_ty`, `lower_val`, `raise_val` and, for derivatives,
    `to_tangent_aval`.

    Example:
        >>> issubclass(xtrace.experimental.hijax.HiType, xtrace.core.AbstractValue)
        True
    """

    __module__ = "xtrace.experimental.hijax"

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that hold a value."""
        raise _missing(self, "lo_ty", "returns the types of the arrays that hold a value")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """Return the arrays that hold a value."""
        raise _missing(self, "lower_val", "returns the arrays that hold a value")

    def raise_val(self, *lo_vals: Any) -> Any:
        """Return the value with the given arrays."""
        raise _missing(self, "raise_val", "returns the value with the given arrays")

    def vspace_zero(self) -> Any:
        """Return the zero of the vector space with this tangent type."""
        raise _missing(self, "vspace_zero", "returns the zero tangent")

    def vspace_add(self, *values: Any) -> Any:
        """Return the sum of values of the vector space with this tangent type."""
        raise _missing(self, "vspace_add", "returns the sum of tangents")


class MutableHiType(_UsersType):
    """The base class of types that users define for mutable values.

    A subclass is hashable and has the methods `lo_ty_qdd`, `new_from_loval`, `read_loval` and `update_from_loval`,
    which take the quasi-dynamic data of a value; the value has a method `cur_qdd`, which returns it.

    Example:
        >>> issubclass(xtrace.experimental.hijax.MutableHiType, xtrace.core.AbstractValue)
        True
    """

    __module__ = "xtrace.experimental.hijax"
    has_qdd = True

    def lo_ty_qdd(self, state: Any) -> list[Any]:
        """Return the types of the arrays that hold a value with the quasi-dynamic data `state`."""
        raise _missing(self, "lo_ty_qdd", "returns the types of the arrays that hold a value")

    def new_from_loval(self, state: Any, *lo_vals: Any) -> Any:
        """Return a new value with the given arrays."""
        raise _missing(self, "new_from_loval", "returns a new value with the given arrays")

    def read_loval(self, state: Any, value: Any) -> list[Any]:
        """Return the arrays that hold a value."""
        raise _missing(self, "read_loval", "returns the arrays that hold a value")

    def update_from_loval(self, state: Any, value: Any, *lo_vals: Any) -> None:
        """Give a value the given arrays, in place."""
        raise _missing(self, "update_from_loval", "gives a value the given arrays, in place")


def _missing(aval: AbstractValue, method: str, contract: str) -> NotImplementedError:
    name = type(aval).__name__
    return NotImplementedError(f"the high type {name} has no method {method}; define {name}.{method}, which {contract}")


class HiPspec:
    """The base class of partition specifications of high types; `to_lo` returns the specifications of the arrays.

    Example:
        >>> class Spec(xtrace.experimental.hijax.HiPspec):
        ...     def to_lo(self): return [xtrace.P("x")]
        >>> Spec().to_tangent_spec().to_lo()
        [P('x',)]
    """

    __module__ = "xtrace.experimental.hijax"

    def to_lo(self) -> list[Any]:
        """Return the specifications of the arrays that hold a value."""
        raise NotImplementedError(f"define {type(self).__name__}.to_lo, which returns the arrays' specifications")

    def to_tangent_spec(self) -> Any:
        """Return the specification of tangents: this one."""
        return self

    def to_ct_spec(self) -> Any:
        """Return the specification of cotangents: that of tangents."""
        return self.to_tangent_spec()


class AvalQDD:
    """A high type and the quasi-dynamic data of a value of it.

    Args:
        aval: the type.
        qdd: the data, or None.

    Example:
        >>> xtrace.experimental.hijax.AvalQDD(xtrace.typeof(1.0), None).to_tangent_aval().qdd is None
        True
    """

    __module__ = "xtrace.experimental.hijax"

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval, self.qdd = aval, qdd

    @property
    def is_high(self) -> bool:
        """Whether the type is a high one."""
        return bool(self.aval.is_high)

    @property
    def has_qdd(self) -> bool:
        """Whether values of the type have quasi-dynamic data."""
        return bool(self.aval.has_qdd)

    def lo_ty(self) -> list[Any]:
        """Return the types of the arrays that hold a value."""
        return list(self.aval.lo_ty_qdd(self.qdd) if self.has_qdd else self.aval.lo_ty())

    def read_loval(self, value: Any) -> list[Any]:
        """Return the arrays that hold a value."""
        return list(self.aval.read_loval(self.qdd, value))

    def new_from_loval(self, *lo_vals: Any) -> Any:
        """Return a new value with the given arrays."""
        return self.aval.new_from_loval(self.qdd, *lo_vals)

    def to_tangent_aval(self) -> AvalQDD:
        """Return the type of tangents, with their quasi-dynamic data."""
        return AvalQDD(self.aval.to_tangent_aval(), None if self.qdd is None else self.qdd.to_tangent_qdd())


class AvalMutableQDD:
    """A high type and quasi-dynamic data that an operation may replace, with ``mutable_qdd.update(data)``.

    Args:
        aval: the type.
        mutable_qdd: an object with a method `update`.

    Example:
        >>> xtrace.experimental.hijax.AvalMutableQDD(xtrace.typeof(1.0), None).aval
        ShapedArray(float32[], weak_type=True)
    """

    __module__ = "xtrace.experimental.hijax"

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval, self.mutable_qdd = aval, mutable_qdd


class aval_method(NamedTuple):
    """A method of a high type that is also a method of traced values of the type.

    Args:
        fun: a function of the value and more arguments.

    Example:
        >>> xtrace.experimental.hijax.aval_method(len).fun([1, 2])
        2
    """

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """A property of a high type that is also a property of traced values of the type.

    Args:
        fget: a function of the value.

    Example:
        >>> xtrace.experimental.hijax.aval_property(len).fget([1, 2])
        2
    """

    fget: Callable[..., Any]


# The effects that loops and branches may have. Tracing turns operations on high types into operations on arrays, so
# their effects are never refused.
control_flow_allowed_effects = EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register a class whose objects are values of a high type.

    Args:
        val_cls: the class.
        typeof_fn: a function from a value to its type.

    Raises:
        TypeError: `val_cls` is no class, or `typeof_fn` is not callable.

    Example:
        >>> class Pair(tuple): pass
        >>> class PairType(xtrace.experimental.hijax.HiType): pass
        >>> xtrace.experimental.hijax.register_hitype(Pair, lambda pair: PairType())
        >>> isinstance(xtrace.typeof(Pair()), PairType)
        True
    """
    if not isinstance(val_cls, type) or not callable(typeof_fn):
        raise TypeError(
            "register_hitype takes a class and a function from its objects to their types, got "
            f"{abbreviate(val_cls)} and {abbreviate(typeof_fn)}"
        )
    high_types[val_cls] = typeof_fn
    aval_rules[val_cls] = typeof_fn


def cur_qdd(x: Any) -> Any:
    """Return the quasi-dynamic data of a value of a mutable high type.

    Args:
        x: the value.

    Returns:
        The result of its method `cur_qdd`.

    Example:
        >>> class Box:
        ...     def cur_qdd(self): return "empty"
        >>> xtrace.experimental.cur_qdd(Box())
        'empty'
    """
    return x.cur_qdd()
