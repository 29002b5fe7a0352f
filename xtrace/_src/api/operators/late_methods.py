"""NumPy's methods of arrays, loaded at first use: they need most of ``xtrace.numpy``, which is imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.core.array_protocol import array_boundary

# The names that ``xtrace.numpy.arrays.methods`` installs; Python looks up the special ones on the class only.
ATTRIBUTES = frozenset(
    (
        "T", "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "at", "byteswap", "choose", "clip",
        "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten", "imag", "itemsize",
        "mT", "max", "mean", "min", "nbytes", "nonzero", "prod", "ptp", "ravel", "real", "repeat", "reshape", "round",
        "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "to_device", "trace", "transpose", "var",
        "view",
    )
)
SPECIAL = (
    "__array_namespace__", "__contains__", "__getitem__", "__iter__", "__matmul__", "__rmatmul__", "__round__",
    "__setitem__",
)


class LateAttribute:
    """An attribute that calls ``load(name)``, which replaces it by the real attribute, and then reads that.

    There is one for each name: a ``__getattr__`` would slow down the lookup of every attribute.
    """

    __slots__ = ("name", "load")

    def __init__(self, name: str, load: Callable[[str], Any]) -> None:
        self.name, self.load = name, load

    def __get__(self, instance: object, owner: type) -> Any:
        self.load(self.name)
        return getattr(owner if instance is None else instance, self.name)


def install_late_methods(load: Callable[[str], Any], *classes: type) -> None:
    """Give the array classes methods that call ``load(name)``, which installs the real method, and then call that."""
    for cls in classes:
        for name in ATTRIBUTES - vars(cls).keys():
            setattr(cls, name, LateAttribute(name, load))
        # NumPy's operators defer to a class with a higher priority.
        cls.__array_priority__ = 100  # type: ignore[attr-defined]
        for name in SPECIAL:
            setattr(cls, name, _late(name, load))


def _late(name: str, load: Callable[[str], Any]) -> Callable[..., Any]:
    def method(self: object, *args: object, **kwargs: object) -> Any:
        load(name)
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = name
    return array_boundary(method)
