"""The abstract array type: concrete arrays and tracers are both instances, as in the array API of JAX."""

from __future__ import annotations

from typing import Any

from xtrace._late_imports import jax_is_xtrace

# Attributes of concrete arrays and tracers that other modules read and users should not; `dir` leaves them out.
_INTERNAL = frozenset(
    (
        "buffer", "host", "key_uses", "note_deletion", "owner", "physical_array", "primal", "signature", "tangent",
        "variable",
    )
)

# xtrace's classes of arrays that have instances, with their full names where jax is xtrace.
_names_in_jax: dict[type, str] = {}


class Array:
    """An array: `shape`, `dtype`, NumPy's operators and methods; functions of ``xtrace.numpy`` make arrays.

    ``memoryview(x)`` and other users of the buffer protocol take a concrete array from Python 3.12 on. In Python 3.11 a
    class written in Python cannot offer its memory: write ``memoryview(np.asarray(x))``, a copy only off the CPU.

    Args:
        arguments, keywords: arrays are not made by calling the class; all are refused.

    Raises:
        TypeError: the class is called.

    Example:
        >>> x = jnp.arange(4.0)
        >>> isinstance(x, xtrace.Array), x.shape, (x + 1).sum()
        (True, (4,), Array(10., dtype=float32))
    """

    __slots__ = ()

    aval: Any

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        raise TypeError("Array is an abstract type; make one with xtrace.numpy.array(values)")

    def __init_subclass__(cls, *, abstract: bool = False, name_in_jax: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not abstract and cls.__module__.startswith("xtrace."):
            _names_in_jax[cls] = name_in_jax or f"jax.{cls.__module__.partition('.')[2]}.{cls.__qualname__}"
            if jax_is_xtrace():
                name_classes_as_jax()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _INTERNAL]

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
        return self.aval.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size  # type: ignore[no-any-return]

    @property
    def flat(self) -> Any:
        """Raise NotImplementedError: there are no views of arrays."""
        raise NotImplementedError("arrays have no iterator over a view, as x.flat is; use x.ravel() or x.flatten()")

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way in promotion, as a Python scalar's does."""
        return self.aval.weak_type  # type: ignore[no-any-return]


def _declare_property(name: str) -> property:
    def refuse(self: Array) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return property(refuse, doc="See the arrays that functions return.")


# Attributes of concrete arrays: programs look for them on the abstract class, too.
for _name in (
    "addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device", "devices", "format",
    "global_shards", "is_fully_addressable", "is_fully_replicated", "item", "sharding", "traceback",
):
    setattr(Array, _name, _declare_property(_name))


def name_classes_as_jax() -> None:
    """Let the classes of arrays have the names of jax's, in a process where jax is xtrace.

    Libraries for several array packages, such as autoray, find the package of an array by its class's module; programs
    that write arrays to files find arrays by the class's name.
    """
    for cls, name in _names_in_jax.items():
        cls.__module__, _, cls.__qualname__ = name.rpartition(".")
        cls.__name__ = cls.__qualname__
