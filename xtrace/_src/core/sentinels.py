"""Objects that stand for the absence of a value."""

from typing import Any


class Sentinel:
    """An object that is compared by identity; it is a variable of the module of its class, and pickled by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


class Unspecified(Sentinel):
    """The value of a parameter that was not given, where None is an argument, or an error."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = Unspecified("UNSPECIFIED")

# The result of a specialised call whose arguments are not of its signature, and an argument that a call leaves out.
MISS: Any = Sentinel("MISS")
MISSING: Any = Sentinel("MISSING")
