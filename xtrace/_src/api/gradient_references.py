"""Pullbacks that add gradients to references instead of returning them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from xtrace._src.core import pytree
from xtrace._src.core.avals import array_type, aval_of
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.references import Reference
from xtrace._src.ops.references.binding import add_to_reference
from xtrace._src.xla.pytree_registry import PyTreeDef


class _Marker:
    """Stands for a gradient or for a request; all instances of a class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradRef(_Marker):
    """Returned in place of a gradient that was added to a reference."""

    __slots__ = ()


class GradValue(_Marker):
    """Given in place of a reference: return the gradient."""

    __slots__ = ()


class DontWant(_Marker):
    """Given in place of a reference: the gradient is not wanted."""

    __slots__ = ()


class DidntWant(_Marker):
    """Returned in place of a gradient that was not wanted."""

    __slots__ = ()


ad = SimpleNamespace(DidntWant=DidntWant, DontWant=DontWant, GradRef=GradRef, GradValue=GradValue)


def add_gradients(pullback: Callable[..., Any], in_tree: PyTreeDef, refs: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a pullback that adds the gradients of the arguments to `refs`, references in the arguments' structure."""
    try:
        wishes = in_tree.flatten_up_to(refs)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "with_refs takes a reference, GradValue() or DontWant() for each argument, in the structure of these"
            f", {in_tree}: {error}"
        ) from None

    @boundary
    def adding(*out_ct: Any, **named: Any) -> Any:
        gradients = in_tree.flatten_up_to(pullback(*out_ct, **named))
        for wish, gradient in zip(wishes, gradients, strict=True):  # before anything is written
            if isinstance(wish, Reference) and array_type(aval_of(wish.target)).shape != np.shape(gradient):
                raise ValueError(
                    f"with_refs: a gradient of shape {np.shape(gradient)} was to be added to the reference of type "
                    f"{aval_of(wish.target)}; a reference has the shape of its argument"
                )
        results = [_apply_wish(wish, gradient) for wish, gradient in zip(wishes, gradients, strict=True)]
        return pytree.tree_unflatten(in_tree, results)

    return adding


def _apply_wish(wish: Any, gradient: Any) -> Any:
    if isinstance(wish, Reference):
        add_to_reference(wish, gradient)
        return GradRef()
    return DidntWant() if type(wish) is DontWant else gradient
