"""Abstract values: the shape, dtype and weak type of a value while tracing.

Avals are interned: equal ones are one object, so equality is identity and caches hash them by address.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.manual_axis_type import ManualAxisType
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.mesh import context_abstract_mesh, naming_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, explicit_part
from xtrace._src.core.shardings.sums import NO_SUMS, Sums, format_axes
from xtrace._src.core.sizes import to_sizes

# An attribute of an enumeration takes longer to read.
_DEVICE = MemorySpace.Device


class AbstractValue:
    """The type of a value in a program: `ShapedArray` for arrays, `HiType` for types that users define.

    Example:
        >>> isinstance(xtrace.typeof(1.0), xtrace.core.AbstractValue)
        True
    """

    __slots__ = ()
    __module__ = "xtrace.core"

    # is_high: a user defines the type. has_qdd: its values are mutable.
    is_high = has_qdd = False

    def at_least_vspace(self: Any) -> Any:
        """Return the type of tangents: an older name of ``to_tangent_aval``."""
        return self.to_tangent_aval()


class ShapedArray(AbstractValue):
    """The type of an array; instances are immutable, and equal ones are one object.

    Args:
        shape: a sequence of integers.
        dtype: a NumPy dtype, or an extended dtype such as that of random keys.
        weak_type: whether the dtype gives way in promotion, as a Python scalar's does.
        sharding: the placement over explicit mesh axes, or None.
        memory_space: the kind of memory.
        varying: the manual mesh axes along which devices may hold different values.
        manual_sums: the manual mesh axes along which the value is unreduced or reduced.

    Raises:
        TypeError: `dtype` is no dtype, or `shape` no sequence of integers.

    Example:
        >>> xtrace.core.ShapedArray((2, 3), jnp.float32)
        ShapedArray(float32[2,3])
    """

    __slots__ = (
        "shape", "dtype", "weak_type", "explicit_sharding", "memory_space", "varying", "manual_sums", "is_placed",
        "ndim", "size", "_mlir_type", "__weakref__",
    )

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    # The sharding over explicit mesh axes, or None.
    explicit_sharding: Any
    memory_space: MemorySpace
    varying: frozenset[Any]
    manual_sums: Sums
    # Whether the type has a sharding, another memory than the device's own, or manual axes.
    is_placed: bool
    ndim: int
    size: int
    _mlir_type: str | None

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, sharding: Any = None, memory_space: MemorySpace = _DEVICE,
        varying: frozenset[Any] = frozenset(), manual_sums: Sums = NO_SUMS,
    ) -> ShapedArray:
        if type(shape) is not tuple:
            shape = tuple(shape)
        # Enumerations hash slowly, and nearly all arrays are in the device's memory.
        place = sharding
        if manual_sums is not NO_SUMS and not any(manual_sums):
            manual_sums = NO_SUMS
        if memory_space is not _DEVICE or varying or manual_sums is not NO_SUMS:
            place = (sharding, memory_space, varying, manual_sums)
        key = (shape, dtype, weak_type, place)
        known = _interned.get(key)
        if known is not None:
            return known
        if not isinstance(dtype, (np.dtype, dtypes.ExtendedDType)):
            return cls(shape, np.dtype(dtype), weak_type, sharding, memory_space, varying, manual_sums)
        try:
            shape = tuple(map(operator.index, shape))
        except InconclusiveDimensionOperation:
            shape = to_sizes(shape)
        if shape and dtypes.token == dtype:
            raise TypeError(f"a token has no axes: it cannot have the shape {shape}, nor be mapped or stacked")
        made = object.__new__(AbstractToken if dtypes.token == dtype else ShapedArray)
        fields = {
            "shape": shape, "dtype": dtype, "weak_type": bool(weak_type), "explicit_sharding": sharding,
            "memory_space": memory_space, "varying": varying, "manual_sums": manual_sums,
            "is_placed": place is not None, "ndim": len(shape), "size": math.prod(shape), "_mlir_type": None,
        }
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        with _lock:
            return _interned.setdefault((shape, dtype, bool(weak_type), place), made)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ShapedArray is immutable; make a new one with update({name}=...)")

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapedArray, (
            self.shape, self.dtype, self.weak_type, self.explicit_sharding, self.memory_space, self.varying,
            self.manual_sums,
        )

    @property
    def sharding(self) -> NamedSharding:
        """The sharding over explicit mesh axes; without one, the sharding of a whole array on the mesh in force."""
        return self.explicit_sharding or NamedSharding(context_abstract_mesh(), PartitionSpec(*[None] * self.ndim))

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """The manual mesh axes along which the value varies, is unreduced or is reduced."""
        return ManualAxisType(varying=self.varying, **self.manual_sums._asdict())

    @property
    def sums(self) -> Sums:
        """The mesh axes, explicit and manual, along which the value is unreduced or reduced."""
        if self.explicit_sharding is None:
            return self.manual_sums
        return self.explicit_sharding.sums.join(self.manual_sums)  # type: ignore[no-any-return]

    def update(self, **changes: Any) -> ShapedArray:
        """Return the aval with the given fields changed."""
        fields = {
            "shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type, "sharding": self.explicit_sharding,
            "memory_space": self.memory_space, "varying": self.varying, "manual_sums": self.manual_sums,
        }
        if "shape" in changes and "sharding" not in changes and self.explicit_sharding is not None:
            fields["sharding"] = None
        return ShapedArray(**(fields | changes))

    def to_tangent_aval(self) -> ShapedArray:
        """Return the type of the tangents of values of this type: its own, or float0 if it is not differentiable."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return self if dtype is self.dtype else ShapedArray(self.shape, dtype)

    def to_ct_aval(self) -> ShapedArray:
        """Return the type of the cotangents of values of this type, or float0 if it is not differentiable."""
        return self.to_cotangent_aval().to_tangent_aval()

    def to_cotangent_aval(self) -> ShapedArray:
        """Return this type with unreduced axes reduced and the reverse; integers stay: `linear_transpose` has them."""
        if self.is_placed and any(self.sums):
            own = self.explicit_sharding
            sharding = own.update(spec=own.spec.to_ct_spec()) if own is not None else None
            return self.update(sharding=sharding, manual_sums=self.manual_sums.of_cotangents())
        return self

    def lo_ty(self) -> list[ShapedArray]:
        """Return the types of the arrays that hold a value of this type: the type itself."""
        return [self]

    def lower_val(self, value: Any) -> list[Any]:
        """Return the arrays that hold a value of this type: the value itself."""
        return [value]

    def raise_val(self, value: Any) -> Any:
        """Return the value of this type that an array holds: the array itself."""
        return value

    def normalize(self) -> ShapedArray:
        """Return the type that programs distinguish: this one, strongly typed."""
        return self.strip_weak_type()

    def strip_weak_type(self) -> ShapedArray:
        """Return the same aval, strongly typed."""
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def mlir_type(self) -> str:
        """The StableHLO type, such as ``tensor<3x4xf32>``; an extended dtype gives its physical type.

        Raises ValueError for a size that `check_size` refuses.
        """
        text = self._mlir_type
        if text is None:
            check_size(self)
            stored = physical_aval(self)
            dimensions = "".join(f"{n:d}x" for n in stored.shape)
            text = f"tensor<{dimensions}{dtypes.mlir_name(stored.dtype)}>"
            object.__setattr__(self, "_mlir_type", text)
        return text

    def str_short(self, short_dtypes: bool = False) -> str:
        """The type as jaxprs print it: ``f32[3,4]``, or ``float32[3,4]``; ``f32<host>[3,4]`` in the host's memory."""
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.full_name(self.dtype)
        memory = "" if self.memory_space is _DEVICE else f"<{self.memory_space.name.lower()}>"
        entries = self.explicit_sharding.spec if self.explicit_sharding is not None else ()
        sizes = [f"{n}{_format_split(entry)}" for n, entry in itertools.zip_longest(self.shape, entries)]
        return f"{name}{memory}[{','.join(sizes)}]{format_axes(self.varying, self.sums)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short(short_dtypes=False)}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized (rank 0) array; x.size is how many elements any array has")
        return self.shape[0]


def _format_split(entry: Any) -> str:
    """Return the mesh axes of a dimension as types show them: ``@x``, or ``@(x,y)``."""
    if entry is None:
        return ""
    return f"@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"@{entry}"


class AbstractToken(ShapedArray):
    """The type of tokens, which order operations and hold no data; there is one.

    Example:
        >>> xtrace.extend.core.AbstractToken()
        AbstractToken()
    """

    __slots__ = ()

    def __new__(cls) -> ShapedArray:  # type: ignore[misc]
        return ShapedArray((), dtypes.token)

    @property
    def mlir_type(self) -> str:
        """The StableHLO type."""
        return "!stablehlo.token"

    def str_short(self, short_dtypes: bool = False) -> str:
        """The type as jaxprs print it."""
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"

    __str__ = __repr__


class AbstractRef(ShapedArray):
    """The type of a reference; instances are immutable, and equal ones are one object.

    Args:
        inner_aval: the type of the array in the reference.

    Example:
        >>> xtrace.typeof(xtrace.new_ref(jnp.zeros(3)))
        Ref{float32[3]}
    """

    __slots__ = ("inner_aval",)
    __module__ = "xtrace.ref"

    inner_aval: ShapedArray

    def __new__(cls, inner_aval: ShapedArray) -> AbstractRef:
        known = _interned_references.get(inner_aval)
        if known is not None:
            return known
        made = object.__new__(cls)
        for name in ShapedArray.__slots__:
            if name != "__weakref__":
                object.__setattr__(made, name, getattr(inner_aval, name))
        object.__setattr__(made, "inner_aval", inner_aval)
        with _lock:
            return _interned_references.setdefault(inner_aval, made)

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractRef, (self.inner_aval,)

    def update(self, **changes: Any) -> AbstractRef:
        """Return the type with the given fields of the array's type changed."""
        return AbstractRef(self.inner_aval.update(**changes))

    def to_tangent_aval(self) -> AbstractRef:
        """Return the type of a reference to tangents."""
        return AbstractRef(self.inner_aval.to_tangent_aval())

    def str_short(self, short_dtypes: bool = False) -> str:
        """The type as jaxprs print it: ``Ref{f32[3]}``."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)

    __str__ = __repr__


def array_type(aval: ShapedArray) -> ShapedArray:
    """Return the type of the array in a reference; any other type is returned unchanged."""
    return aval.inner_aval if isinstance(aval, AbstractRef) else aval


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Return the type of the array in which the runtime stores a value of type `aval`."""
    dtype = aval.dtype
    if not isinstance(dtype, dtypes.ExtendedDType):
        return aval if dtype != dtypes.float0 else aval.update(dtype=dtypes.bool_)
    return ShapedArray(
        aval.shape + dtype.trailing_shape, dtype.physical, memory_space=aval.memory_space, varying=aval.varying,
        manual_sums=aval.manual_sums,
    )


def check_size(aval: ShapedArray, function: str = "") -> None:
    """Raise a ValueError, which names `function` if given, for an array of 2**57 bytes or more.

    No processor addresses more. XLA aborts the process when a product of leading sizes, or the memory of a whole
    program, passes 2**63.
    """
    stored = physical_aval(aval)
    total = stored.dtype.itemsize
    for n in stored.shape:
        total *= n
        try:
            is_too_large = total >= 2**57
        except InconclusiveDimensionOperation:
            return
        if is_too_large:
            raise ValueError(
                f"{function + ': ' if function else ''}an array of type {aval.str_short(True)} would have 2**57 bytes "
                "or more, which no device can address; give a smaller shape"
            )


_interned: WeakValueDictionary[tuple[Any, ...], ShapedArray] = WeakValueDictionary()
_interned_references: WeakValueDictionary[ShapedArray, AbstractRef] = WeakValueDictionary()
_lock = threading.Lock()


class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist: results of `eval_shape`, arguments of `lower`.

    Args:
        shape: a sequence of integers.
        dtype: a dtype that arrays can have. A 64-bit one is kept, also without ``jax_enable_x64``.
        sharding: the placement: a `Sharding`, a `PartitionSpec` on the mesh in force at its use, a `Format` with a
            layout as well, or None.
        weak_type: whether the dtype gives way in promotion, as a Python scalar's does.
        manual_axis_type: a `ManualAxisType`, the manual mesh axes along which devices hold different values, or None.
        is_ref: whether it describes a reference to such an array.

    Raises:
        TypeError: `dtype` is no dtype, or `shape` no sequence of integers.
        ValueError: `sharding` is another object, or has more entries than the array has axes.

    Example:
        >>> xtrace.eval_shape(lambda x: x @ x, xtrace.ShapeDtypeStruct((2, 2), jnp.float32))
        ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "_place", "_layout", "weak_type", "manual_axis_type", "is_ref")

    @boundary
    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False, manual_axis_type: Any = None,
        is_ref: bool = False,
    ) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified")
        try:
            self.shape = to_sizes(shape)
        except TypeError:
            message = f"ShapeDtypeStruct: shape must be a sequence of integers, got {abbreviate(shape)}"
            raise TypeError(message) from None
        self.dtype = dtypes.canonicalize(dtype, True)
        place: Any = sharding.sharding if isinstance(sharding, Format) else sharding
        self._layout: Any = sharding.layout if isinstance(sharding, Format) else None
        if self._layout is Layout.AUTO:
            raise TypeError(
                f"ShapeDtypeStruct: sharding must not say Layout.AUTO, got {abbreviate(sharding)}: an array has a "
                "known layout. Where XLA is to choose, give the Format to jit, as in_shardings"
            )
        if not (place is None or isinstance(place, (Sharding, PartitionSpec))):
            raise ValueError(
                "ShapeDtypeStruct: sharding should be an instance of Sharding, such as xtrace.NamedSharding(mesh, "
                f"spec), a PartitionSpec or a Format, got {abbreviate(place)}"
            )
        if isinstance(place, Sharding):
            place.check_compatible_aval(self.shape)
        self._place, self.weak_type = place, weak_type
        if manual_axis_type is not None and not isinstance(manual_axis_type, ManualAxisType):
            raise TypeError(
                "ShapeDtypeStruct: manual_axis_type must be an xtrace.sharding.ManualAxisType or None, got "
                f"{abbreviate(manual_axis_type)}"
            )
        self.manual_axis_type, self.is_ref = manual_axis_type, is_ref

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def aval(self) -> ShapedArray:
        """The described abstract value; a 64-bit dtype becomes its 32-bit form where the settings have none."""
        dtype = dtypes.canonicalize(self.dtype, config.keeps_wide_dtypes())
        aval = ShapedArray(self.shape, dtype, self.weak_type)
        manual = self.manual_axis_type
        if manual is not None:
            aval = aval.update(varying=manual.varying, manual_sums=Sums(manual.unreduced, manual.reduced))
        place = None if self._place is None else self.sharding
        if place is not None:
            memory_space = find_memory_space(place.memory_kind)
            aval = aval.update(sharding=explicit_part(place, self.ndim), memory_space=memory_space)
        return AbstractRef(aval) if self.is_ref else aval

    @property
    def format(self) -> Format:
        """The layout, or None, and the sharding: the counterpart of ``x.format`` of an array."""
        return Format(self._layout, self.sharding)

    @property
    def sharding(self) -> Sharding | None:
        """The placement, or None; a `PartitionSpec` is completed by the mesh in force, TypeError without one."""
        if not isinstance(self._place, PartitionSpec):
            return self._place
        mesh = naming_mesh()
        if mesh.empty:
            raise TypeError(
                f"ShapeDtypeStruct: {self._place} is a place on a mesh, and none is in force. Write with "
                f"xtrace.set_mesh(mesh):, or give xtrace.NamedSharding(mesh, {self._place})"
            )
        return NamedSharding(mesh, self._place)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Return the description of an array, traced or not, of a scalar, or of an object with a shape and a dtype.

        An array that is committed to a device keeps its sharding. Raises TypeError for any other object.
        """
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = aval_of(x)
        committed = not hasattr(x, "owner") and getattr(x, "committed", False)
        return cls(aval.shape, aval.dtype, sharding=x.format if committed else None, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Return a copy with the given fields changed."""
        place = self._place if self._layout is None else self.format
        if self._layout is not None and isinstance(changes.get("sharding"), (Sharding, PartitionSpec)):
            raise ValueError(
                f"ShapeDtypeStruct.update: the description has the layout {self._layout}, and sharding="
                f"{abbreviate(changes['sharding'])} says none; give a Format with both"
            )
        names = ("shape", "dtype", "weak_type", "manual_axis_type", "is_ref")
        fields: dict[str, Any] = {"sharding": place, **{name: getattr(self, name) for name in names}, **changes}
        return ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), **fields)

    def __len__(self) -> int:
        return len(self.aval)

    def __repr__(self) -> str:
        place = self._place if naming_mesh().empty else self.sharding
        sharding = f", sharding={place}" if place is not None else ""
        sharding += f", format={self._layout}" if self._layout is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        manual = f", manual_axis_type={self.manual_axis_type}" if self.manual_axis_type is not None else ""
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak}{manual}{ref})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and hash(self) == hash(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self._place, self._layout, self.weak_type, self.manual_axis_type, self.is_ref


def scalar_aval(scalar_type: type) -> ShapedArray:
    """Return the aval of a Python scalar of type `scalar_type`: weakly typed, but strongly typed for a bool."""
    key = (scalar_type, config.enable_x64.value)
    aval = _scalar_avals.get(key)
    if aval is None:
        dtype = dtypes.canonicalize(scalar_type, key[1])
        aval = _scalar_avals[key] = ShapedArray((), dtype, scalar_type is not bool)
    return aval


_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def int_aval(value: int) -> ShapedArray:
    """Return the aval of a Python int; OverflowError if the default integer dtype cannot hold it."""
    aval = scalar_aval(int)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        check_fits(value, aval.dtype)
    return aval


def check_truth(aval: ShapedArray) -> None:
    """Raise ValueError unless an array of type `aval` has exactly one element: its truth value is ambiguous."""
    if aval.size != 1:
        raise ValueError(
            f"The truth value of an array of shape {aval.shape} is ambiguous. Use x.any() or x.all(), and "
            "conditions of elements as (x > 0) & (x < 1), in parentheses"
            if aval.size else "The truth value of an empty array is ambiguous. Use `array.size > 0`"
        )


def check_fits(value: int, dtype: np.dtype[Any]) -> None:
    """Raise OverflowError if the integer type `dtype` cannot hold `value`."""
    bounds = dtypes.iinfo(dtype)
    if not bounds.min <= value <= bounds.max:
        raise OverflowError(
            f"Python int {abbreviate(value)} too large to convert to {dtype.name}; set "
            'xtrace.config.update("jax_enable_x64", True), or use a float'
        )


def _numpy_aval(value: Any) -> ShapedArray:
    return ShapedArray(value.shape, dtypes.canonicalize(value.dtype, config.enable_x64.value))


def _python_scalar_aval(value: object) -> ShapedArray:
    return scalar_aval(type(value))


# The rule of classes whose instances hold their aval.
own_aval: Callable[[Any], ShapedArray] = operator.attrgetter("aval")

# Maps a class to the function that returns the aval of its instances; the runtime and the tracers add their classes.
aval_rules: dict[type, Callable[[Any], ShapedArray]] = {
    bool: _python_scalar_aval, int: _python_scalar_aval, float: _python_scalar_aval, complex: _python_scalar_aval,
    np.ndarray: _numpy_aval, ShapeDtypeStruct: own_aval,
}


# Maps a class of values with a user-defined type to the function that returns a value's type.
high_types: dict[type, Callable[[Any], Any]] = {}


def is_high(value: Any) -> bool:
    """Whether a value, traced or not, has a type that users define."""
    return type(value) in high_types or getattr(getattr(value, "aval", None), "is_high", False) is True


def aval_of(value: Any) -> ShapedArray:
    """Return the aval of an array, tracer, NumPy value, Python scalar or ShapeDtypeStruct.

    Raises ValueError for a value that needs a conversion: a masked array, or an object with ``__jax_array__``. Raises
    TypeError, which names the value, for any other.
    """
    rule = aval_rules.get(type(value))
    if rule is None:
        # np.float64 is also a Python float, but strongly typed.
        if isinstance(value, np.generic):
            return _numpy_aval(value)
        rule = next((inherited for base, inherited in aval_rules.items() if isinstance(value, base)), None)
        if rule is None:
            raise (ValueError if hasattr(value, "__jax_array__") else TypeError)(not_an_array(value))
        if rule is _numpy_aval:
            check_unmasked(value)
        if rule is _python_scalar_aval:
            return scalar_aval(next(t for t in (bool, int, float, complex) if isinstance(value, t)))
    return rule(value)


def aval_of_value(value: object) -> ShapedArray:
    """Return the aval of an argument of a program; TypeError for a ShapeDtypeStruct. Raises the errors of `aval_of`."""
    if type(value) is ShapeDtypeStruct:
        raise TypeError(
            f"{value} describes an array and has no value. Functions that use it can be traced (make_jaxpr, "
            "eval_shape, jit(f).trace), not run; pass an array, such as xtrace.numpy.zeros_like of it"
        )
    return aval_of(value)


def check_unmasked(value: object) -> None:
    """Raise ValueError for a masked array of NumPy."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(
            "a masked array of NumPy has elements that are missing, which arrays cannot have: "
            "give them a value with x.filled(value)"
        )


def is_array_like(value: object) -> bool:
    """Whether `value` can be an operand: an array, a tracer, a NumPy value with a supported dtype, a Python scalar.

    While a function is traced, a ShapeDtypeStruct stands for an array; programs do not run on one (`aval_of_value`).
    Raises ValueError for a value that needs a conversion, as `aval_of` does.
    """
    try:
        aval_of(value)
    except TypeError:
        return False
    return True


def short_repr(value: object) -> str:
    """Return the start of a value's repr, for messages."""
    text = abbreviate(value)
    return text if len(text) <= 60 else text[:57] + "..."


def not_an_array(value: object) -> str:
    """Return the message for a `value` that is no operand of operations, with the correction."""
    advice = next((text for kind, text in CONVERSIONS.items() if isinstance(value, kind)), "")
    if hasattr(value, "__jax_array__"):
        advice = "; call __jax_array__() on it, or make an array of it with xtrace.numpy.asarray"
    return (
        f"{short_repr(value)} of type {type(value)} is not a valid JAX type: "
        f"expected an array, a NumPy array or scalar, or a Python bool, int, float or complex{advice}"
    )


# Maps a class of objects that are no arrays to the advice for making an array of one; other modules add their classes.
CONVERSIONS: dict[Any, str] = {
    (list, tuple): "; make an array of it with xtrace.numpy.array",
    range: "; make an array of it with xtrace.numpy.arange", str: "; arrays hold numbers only",
    type(None): "; a number that is missing is xtrace.numpy.nan",
}
