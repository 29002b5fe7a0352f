"""Pullbacks that add gradients to references instead of returning them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from xtrace._src.core.avals import array_type, aval_of
from xtrace._src.core.pytrees import pytree_registration
from xtrace._src.core.references import Reference
from xtrace._src.ops.references.binding import add_to_reference, write_reference
from xtrace._src.xla.pytree_registry import PyTreeDef


class Marker:
    """Stands for a gradient or for a request; all instances of a class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradRef(Marker):
    """Returned in place of a gradient that was added to a reference."""

    __slots__ = ()


class GradValue(Marker):
    """Given in place of a reference: return the gradient."""

    __slots__ = ()


class DontWant(Marker):
    """Given in place of a reference: the gradient is not wanted."""

    __slots__ = ()


class DidntWant(Marker):
    """Returned in place of a gradient that was not wanted."""

    __slots__ = ()


def register_without_leaves(cls: type[Marker]) -> None:
    """Register a class as a pytree without leaves."""
    pytree_registration.register_pytree_node(cls, lambda _: ((), ()), lambda _, __: cls())


register_without_leaves(GradRef)
register_without_leaves(DidntWant)

ad = SimpleNamespace(DidntWant=DidntWant, DontWant=DontWant, GradRef=GradRef, GradValue=GradValue)


def read_wishes(in_tree: PyTreeDef, refs: tuple[Any, ...]) -> list[Any]:
    """Return the wish about each leaf's gradient; ValueError unless `refs` are trees of the arguments'."""
    try:
        return in_tree.flatten_up_to(refs)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "with_refs takes a reference, GradValue() or DontWant() for each argument, in the structure of these"
            f", {in_tree}: {error}"
        ) from None


def is_wanted(wish: Any) -> bool:
    """Whether a gradient is to be computed."""
    return type(wish) is not DontWant


def fulfil(wishes: Sequence[Any], gradients: Sequence[Any], replaced: Collection[int] = ()) -> list[Any]:
    """Return what stands in the place of each gradient; those with references are added to these.

    At the positions in `replaced` they replace what the references hold.
    """
    for wish, gradient in zip(wishes, gradients, strict=True):  # before anything is written
        if isinstance(wish, Reference) and array_type(aval_of(wish.target)).shape != np.shape(gradient):
            raise ValueError(
                f"with_refs: a gradient of shape {np.shape(gradient)} was to be added to the reference of type "
                f"{aval_of(wish.target)}; a reference has the shape of its argument"
            )
    results: list[Any] = []
    for position, (wish, gradient) in enumerate(zip(wishes, gradients, strict=True)):
        if isinstance(wish, Reference):
            (write_reference if position in replaced else add_to_reference)(wish, gradient)
            results.append(GradRef())
        else:
            results.append(gradient if is_wanted(wish) else DidntWant())
    return results
