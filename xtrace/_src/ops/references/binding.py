"""References at the boundaries of functions: as arguments, and in operations that hold functions.

Every program passes here, so the modules that only references need are loaded at the first reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.avals import AbstractRef, ShapedArray, aval_of, is_array_like
from xtrace._src.core.jaxprs.effects import OWN_DERIVATIVE_EFFECT, REFERENCE_EFFECT, Effects
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.references import Reference
from xtrace._src.core.trace import Trace, Tracer, current_trace
from xtrace._src.transforms.discharge import apply_rule
from xtrace._src.transforms.replay import StackedTrace
from xtrace._src.transforms.stage import StagingTrace

with late_modules(globals()):
    from xtrace._src.ops.references import operations
    from xtrace._src.ops.references import reference as references
    from xtrace._src.transforms.linearize import Tape


def innermost_stage() -> Trace | None:
    """Return the innermost staging trace in force, or None."""
    for trace in current_trace.get().enclosing():
        if isinstance(trace, StagingTrace) and not isinstance(trace, Tape):
            return trace
    return None


def unwrap(leaves: list[Any]) -> list[Any]:
    """Return the leaves of arguments with users' references replaced by their targets."""
    for x in leaves:
        if isinstance(x, Reference):
            return [x.whole_target() if isinstance(x, Reference) else x for x in leaves]  # type: ignore[attr-defined]
    return leaves


def wrap(leaves: Sequence[Any], avals: Sequence[ShapedArray]) -> Sequence[Any]:
    """Return the leaves of a traced function's arguments with targets of references wrapped as users' references."""
    if AbstractRef not in map(type, avals):
        return leaves
    return [references.Ref(x) if type(a) is AbstractRef else x for x, a in zip(leaves, avals, strict=True)]


def make_reference(array: Any) -> Any:
    """Return a new reference to an array."""
    return references.new_ref(array)


def read_reference(reference: Any) -> Any:
    """Return the array of a reference."""
    return operations.get(reference.whole_target())


def write_reference(reference: Any, array: Any) -> None:
    """Replace the array of a reference."""
    operations.set_whole(reference.whole_target(), array)


def add_to_reference(reference: Any, array: Any) -> None:
    """Add to the array of a reference."""
    references.addupdate(reference, None, array)


def bind_with_references(
    primitive: ListPrimitive, operands: Sequence[Any], parameters: tuple[Any, ...], effects: Effects
) -> list[Any]:
    """Bind a primitive that holds functions with the given `effects`.

    Outside of staging, transformations must not see references, so the primitive is discharged first.
    """
    if OWN_DERIVATIVE_EFFECT in effects and isinstance(current_trace.get(), StackedTrace):
        raise NotImplementedError(
            f"{primitive.name} holds a function with an operation on a high type, or with a custom_vjp function of "
            "references, whose own derivative would be lost: differentiate or map inside of the function, or jit the "
            "whole"
        )
    if REFERENCE_EFFECT not in effects or current_trace.get() is innermost_stage():
        return primitive.bind_positional(operands, parameters)
    keys = [x if type(aval_of(x)) is AbstractRef else None for x in operands]
    arrays = [x if key is None else operations.get(key) for x, key in zip(operands, keys, strict=True)]
    updates, results = apply_rule(primitive, keys, arrays, parameters)
    for key, old, update in zip(keys, arrays, updates, strict=True):
        if update is not None and update is not old:
            operations.set_whole(key, update)
    return results


def check_results(leaves: Sequence[Any], result: object, describe: Callable[[], object]) -> None:
    """Raise TypeError for a leaf of a function's `result` that is no array, ValueError for a reference.

    describe: returns the description of the function for messages.
    """
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, Tracer) or is_array_like(leaf):
            continue
        info = describe()
        if isinstance(leaf, Reference):
            raise ValueError(
                f"function {info} returned a reference of type {aval_of(leaf.target)}; references cannot be returned "
                "from traced functions. Return its array, ref[...] or xtrace.freeze(ref), or let the function write to "
                "a reference that it is given"
            )
        path, _ = pytree.tree_flatten_with_path(result)[0][position]
        where = f" at output component {key_paths.keystr(path)}" if path else ""
        raise TypeError(
            f"function {info} returned a value of type {type(leaf)}{where}, which is not a valid JAX type: return "
            "arrays or numbers, or None for nothing"
        )


def check_distinct(targets: Sequence[Any], names: Sequence[str], function: str) -> None:
    """Raise ValueError if a reference occurs twice among `targets`; `names` are the targets' names in messages."""
    first: dict[int, int] = {}
    for i, target in enumerate(targets):
        j = first.setdefault(id(target), i) if type(aval_of(target)) is AbstractRef else i
        if j != i:
            raise ValueError(
                f"{function}: the same reference, of type {aval_of(target)}, is passed as {names[j]} and as {names[i]};"
                " a write to one would have to show in the other. Pass it once"
            )
