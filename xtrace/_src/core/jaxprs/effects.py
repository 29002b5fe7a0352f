"""Effects: the side effects of an equation (printing, calling back, drawing in order …)."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate


class Effect:
    """A kind of effect; dead-code elimination keeps equations that have one.

    Args:
        name: its name.
        ordered: whether the effects of this kind take place in the program's order.

    Example:
        >>> xtrace.extend.core.Effect("Log")
        Log
    """

    # Defaults for subclasses of users that do not call __init__.
    name, ordered = "Effect", False

    def __init__(self, name: str = "Effect", ordered: bool = False) -> None:
        self.name, self.ordered = name, ordered

    def __repr__(self) -> str:
        return self.name


class EffectTypes:
    """A set of classes of effects.

    Example:
        >>> class Logged(xtrace.extend.core.Effect): pass
        >>> xtrace.interpreters.mlir.lowerable_effects.add_type(Logged)
        >>> xtrace.interpreters.mlir.lowerable_effects.contains(Logged())
        True
    """

    def __init__(self, types: Iterable[type[Effect]] = ()) -> None:
        self._types = set(types)

    def add_type(self, effect_type: type[Effect]) -> None:
        """Add a class of effects."""
        if not (isinstance(effect_type, type) and issubclass(effect_type, Effect)):
            raise TypeError(
                "add_type: effect_type must be a class derived from xtrace.extend.core.Effect, got "
                f"{abbreviate(effect_type)}"
            )
        self._types.add(effect_type)

    def contains(self, eff: object) -> bool:
        """Return whether an effect is of one of the classes, or one of the library's own effects."""
        return type(eff) is Effect or isinstance(eff, tuple(self._types))

    __contains__ = contains

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return the effects of these classes."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return the effects of other classes."""
        return [e for e in effects if not self.contains(e)]


class NamedAxis(Effect):
    """Marks an operation along a mapped axis with a name; it has no effect on the world. One object for each name."""

    __slots__ = ("axis",)

    def __init__(self, axis: Hashable) -> None:
        super().__init__(f"NamedAxis({axis!r})")
        self.axis = axis


@functools.cache  # interned
def named_axis(axis: Hashable) -> NamedAxis:
    """Return the effect of working along the axis called `axis`."""
    return NamedAxis(axis)


class DebugEffect(Effect):
    """The effect of showing values, in any order.

    Args:
        name: its name.
        ordered: whether effects of this kind take place in the program's order.

    Example:
        >>> xtrace.debug.DebugEffect()
        Debug
    """

    __slots__ = ()

    def __init__(self, name: str = "Debug", ordered: bool = False) -> None:
        super().__init__(name, ordered)


class OrderedDebugEffect(DebugEffect):
    """The effect of showing values in the program's order.

    Example:
        >>> xtrace.debug.OrderedDebugEffect()
        OrderedDebug
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("OrderedDebug", ordered=True)


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()
DEBUG_EFFECTS = frozenset((debug_effect, ordered_debug_effect))
io_effect = Effect("IO")
ordered_io_effect = Effect("OrderedIO", ordered=True)
# An equation with this effect makes, reads or writes a reference, or holds a program that does.
REFERENCE_EFFECT = Effect("Reference")
# Not an effect on the world: the program has an operation whose own derivative is lost where types that users define or
# references become arrays.
OWN_DERIVATIVE_EFFECT = Effect("OwnDerivative")
IO_EFFECTS = frozenset((io_effect, ordered_io_effect))

Effects = frozenset[Effect]
NO_EFFECTS: Effects = frozenset()


def ordered_effects(effects: Effects) -> list[Effect]:
    """Return the ordered effects, sorted by name; each passes a token from call to call."""
    return sorted([e for e in effects if e.ordered], key=repr) if effects else []


def join_effects(equations: Iterable[Any]) -> Effects:
    """Return the union of the effects of equations."""
    return NO_EFFECTS.union(*[e.effects for e in equations if e.effects])


def has_side_effects(effects: Effects) -> bool:
    """Whether an equation with these effects must run although nothing reads its results."""
    return any(type(e) is not NamedAxis and e is not OWN_DERIVATIVE_EFFECT for e in effects)
