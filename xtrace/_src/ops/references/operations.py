"""The operations on references.

While a jaxpr is staged, a reference is a tracer of an `AbstractRef`, and equations make, read and write it. Otherwise
it is a `Cell`, which holds an array or a tracer; operations on the cell act on its content. A cell that a program
closes over is one of its constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import add_cotangents
from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractRef, ShapedArray, aval_of, aval_rules, own_aval
from xtrace._src.core.errors import ReferenceIndexError
from xtrace._src.core.jaxprs.effects import REFERENCE_EFFECT, Effects
from xtrace._src.core.jaxprs.ir import DropVar, JaxprEqn
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.trace import Tracer, current_trace
from xtrace._src.ops.references.binding import innermost_stage
from xtrace._src.ops.references.indexing import RefIndexer, add_at, indexed_type, read_at, write_at
from xtrace._src.runtime.transfer import to_array
from xtrace._src.transforms.batch import BatchTrace
from xtrace._src.transforms.jaxpr_transforms import cast_weak_type

Indexers = tuple[RefIndexer, ...]


class Cell:
    """A reference outside of jaxprs; it holds an array or a tracer of the traces in force when it was made.

    stage: the staging trace around the place where it was made, or None. is_shared: whether a user may hold the array,
    too; compiled programs write to the memory of others in place.
    """

    __slots__ = ("array", "aval", "trace", "stage", "is_shared", "__weakref__")

    def __init__(self, array: Any) -> None:
        self.array, self.aval = array, AbstractRef(aval_of(array))
        self.trace = current_trace.get()
        self.stage = innermost_stage()
        self.is_shared = True

    def own(self) -> Any:
        """Return the array, in memory that nobody else reads."""
        if self.is_shared:
            self.replace(self.array.copy())
        return self.array

    def replace(self, array: Any) -> None:
        """Hold an array that a program has computed."""
        self.array, self.is_shared = array, False

    def store(self, array: Any) -> None:
        """Replace the array by one of the same type."""
        if isinstance(array, Tracer) and array.owner not in self.trace.enclosing():
            raise ValueError(_inner_value(self.aval, array))
        # A NumPy array may be written to afterwards.
        self.array = array if isinstance(array, Array) else to_array(array)
        self.is_shared = True


aval_rules[Cell] = own_aval


def _inner_value(aval: AbstractRef, value: Tracer) -> str:
    """Return the message for a value of an inner transformation that would escape through a reference."""
    if isinstance(value.owner, BatchTrace):
        return (
            f"a vmapped value was written to the reference of type {aval}, which was made outside of the mapped "
            "function: it would have another value for each example. Make the reference inside of the function, or "
            "pass it as a mapped argument"
        )
    return (
        f"a differentiated value was written to the reference of type {aval}, which was made outside of the "
        "differentiated function: it would lose its derivative. Make the reference inside of the function, or write "
        "xtrace.lax.stop_gradient of the value"
    )


def holds_directly(target: Any) -> bool:
    """Whether operations on a reference act on its array: it is a cell of the current staging trace."""
    return type(target) is Cell and target.stage is innermost_stage()


def _format_index(indexers: Indexers, names: Sequence[str]) -> str:
    left, shown = list(names), ""
    for indexer in indexers:
        shown += indexer.show(left[: indexer.traced_count])
        del left[: indexer.traced_count]
    return shown or "[...]"


def _check_value(name: str, part: ShapedArray, value: ShapedArray, ref: AbstractRef) -> None:
    if value.shape != part.shape:
        raise ReferenceIndexError(
            f"{name}: a value of shape {value.shape} was written to a part of shape {part.shape} of the reference of "
            f"type {ref}. Values are not broadcast: write jnp.broadcast_to(value, {part.shape}), or jnp.full"
        )
    if value.dtype != part.dtype:
        raise ValueError(
            f"{name}: a value of dtype {value.dtype.name} was written to the reference of type {ref}. Convert it with "
            f"astype({part.dtype.name!s})"
        )


def _check_varying(name: str, ref: AbstractRef, operands: Sequence[ShapedArray]) -> None:
    """Raise ValueError if an operand varies along manual mesh axes along which the reference is invariant."""
    axes = frozenset().union(*[a.varying for a in operands]) - ref.varying
    if axes:
        shown = ", ".join(sorted(map(repr, axes)))
        raise ValueError(
            f"{name}: a value that varies along the mesh axes {shown} was written to the reference of type {ref}, "
            f"which is the same along them. Write xtrace.lax.psum(x, {shown}), or name them in the reference's in_specs"
        )


def _reference_type(name: str, aval: ShapedArray) -> AbstractRef:
    if not isinstance(aval, AbstractRef):
        raise ValueError(f"{name} takes a reference, got an array of type {aval.str_short(True)}; see xtrace.new_ref")
    return aval


def _new_abstract(init: ShapedArray, **_: object) -> ShapedArray:
    """Return a reference to an array."""
    if isinstance(init, AbstractRef):
        raise TypeError(f"new_ref: a reference cannot hold another one, of type {init}")
    return AbstractRef(init)


def _empty_abstract(*, ty: ShapedArray, **_: object) -> ShapedArray:
    """Return a reference to an array with unspecified elements."""
    return AbstractRef(ty)


def _get_abstract(ref: ShapedArray, *places: ShapedArray, transforms: Indexers) -> ShapedArray:
    """Return the part of a reference's array at an index."""
    part = indexed_type(_reference_type("get", ref).inner_aval, transforms)
    return part.update(varying=part.varying.union(*[a.varying for a in places])) if places else part


def _swap_abstract(ref: ShapedArray, value: ShapedArray, *places: ShapedArray, transforms: Indexers) -> ShapedArray:
    """Replace the part at an index, and return the old part."""
    ref = _reference_type("swap", ref)
    part = indexed_type(ref.inner_aval, transforms)
    _check_value("swap", part, value, ref)
    _check_varying("swap", ref, (value, *places))
    return part


def _add_abstract(
    ref: ShapedArray, value: ShapedArray, *places: ShapedArray, transforms: Indexers
) -> list[ShapedArray]:
    """Add to the part at an index."""
    ref = _reference_type("addupdate", ref)
    _check_varying("addupdate", ref, (value, *places))
    _check_value("addupdate", indexed_type(ref.inner_aval, transforms), value, ref)
    return []


def _freeze_abstract(ref: ShapedArray) -> ShapedArray:
    """Return the array of a reference and end the reference."""
    return _reference_type("freeze", ref).inner_aval


def _free_abstract(ref: ShapedArray) -> list[ShapedArray]:
    """End a reference."""
    _reference_type("free_ref", ref)
    return []


# Discharge rules: ``rule(keys, operands, **parameters)`` returns, for each operand, the new array of a reference that
# is written to, or None, and the results. Each operand that is a reference is replaced by its array.


def _pass_discharge(_: object, operands: Sequence[Any], **__: object) -> tuple[list[Any], list[Any]]:
    return [None], list(operands)


def _empty_discharge(_: object, __: object, *, ty: ShapedArray, **___: object) -> tuple[list[Any], list[Any]]:
    return [], [zeros(ty)]


def _get_discharge(_: object, operands: Sequence[Any], *, transforms: Indexers) -> tuple[list[Any], list[Any]]:
    x, *traced = operands
    return [None] * len(operands), [read_at(x, transforms, traced)]


def _swap_discharge(_: object, operands: Sequence[Any], *, transforms: Indexers) -> tuple[list[Any], list[Any]]:
    x, value, *traced = operands
    if not transforms:
        return [value, *[None] * (1 + len(traced))], [x]
    written = write_at(x, transforms, traced, value)
    return [written, *[None] * (1 + len(traced))], [read_at(x, transforms, traced)]


def _add_discharge(_: object, operands: Sequence[Any], *, transforms: Indexers) -> tuple[list[Any], list[Any]]:
    x, value, *traced = operands
    return [_add_to(x, transforms, traced, value), *[None] * (1 + len(traced))], []


def _add_to(x: Any, transforms: Indexers, traced: Sequence[Any], value: Any) -> Any:
    return add_at(x, transforms, traced, value) if transforms else add_cotangents(x, value)


def _free_discharge(*_: object) -> tuple[list[Any], list[Any]]:
    return [None], []


def _get_printed(printer: Any, equation: JaxprEqn) -> str:
    ref, *names = [printer.atom(x) for x in equation.invars]
    return f"{printer.binder(equation.outvars[0])} <- {ref}{_format_index(equation.params['transforms'], names)}"


def _swap_printed(printer: Any, equation: JaxprEqn) -> str:
    ref, value, *names = [printer.atom(x) for x in equation.invars]
    place = f"{ref}{_format_index(equation.params['transforms'], names)}"
    (before,) = equation.outvars
    if isinstance(before, DropVar):
        return f"{place} <- {value}"
    return f"{printer.binder(before)}, {place} <- {place}, {value}"


def _add_printed(printer: Any, equation: JaxprEqn) -> str:
    ref, value, *names = [printer.atom(x) for x in equation.invars]
    return f"{ref}{_format_index(equation.params['transforms'], names)} += {value}"


def _effects(**_: object) -> Effects:
    return frozenset((REFERENCE_EFFECT,))


_DISCHARGED = no_rule("programs with references are discharged before they are transformed")


def _define(name: str, parameters: Sequence[str] = (), **rules: Any) -> Primitive:
    return Primitive(
        name, parameters, effects=_effects, emit=_DISCHARGED, jvp=_DISCHARGED, transpose=_DISCHARGED, batch=_DISCHARGED,
        evaluate=_DISCHARGED, memoised=False, holds_jaxprs=True, **rules,
    )


new_ref_p = _define("new_ref", ("memory_space", "kind"), abstract=_new_abstract, discharge=_pass_discharge)
empty_ref_p = _define("empty_ref", ("ty", "memory_space"), abstract=_empty_abstract, discharge=_empty_discharge)
get_p = _define("get", ("transforms",), abstract=_get_abstract, discharge=_get_discharge, printed=_get_printed)
swap_p = _define("swap", ("transforms",), abstract=_swap_abstract, discharge=_swap_discharge, printed=_swap_printed)
addupdate_p = _define(
    "addupdate", ("transforms",), abstract=_add_abstract, discharge=_add_discharge, printed=_add_printed,
    multiple_results=True,
)
freeze_p = _define("freeze", abstract=_freeze_abstract, discharge=_pass_discharge)
free_ref_p = _define("free_ref", abstract=_free_abstract, discharge=_free_discharge, multiple_results=True)


def is_staged() -> bool:
    """Whether a reference that is made now belongs to a jaxpr that is being staged."""
    return current_trace.get() is innermost_stage()


def make_reference(array: Any, memory_space: Any = None, kind: str | None = None) -> Any:
    """Return a new reference to an array: a tracer while a jaxpr is staged, otherwise a cell."""
    if is_staged():
        return new_ref_p.bind(array, memory_space=memory_space, kind=kind)
    return Cell(array)


def get(target: Any, indexers: Indexers = (), traced: Sequence[Any] = ()) -> Any:
    """Return the part of a reference's array at an index."""
    if holds_directly(target):
        target.is_shared = True
        return read_at(target.array, indexers, traced)
    if not _needs_rules(traced):
        return get_p.bind_positional((target, *traced), (indexers,))
    return read_at(get(target), indexers, traced)


def swap(target: Any, value: Any, indexers: Indexers = (), traced: Sequence[Any] = ()) -> Any:
    """Replace the part at an index, and return the old part."""
    if not holds_directly(target) and not _needs_rules((value, *traced)):
        return swap_p.bind_positional((target, value, *traced), (indexers,))
    array = get(target)
    _check_value("swap", indexed_type(aval_of(array), indexers), aval_of(value), AbstractRef(aval_of(array)))
    set_whole(target, write_at(array, indexers, traced, value) if indexers else value)
    return read_at(array, indexers, traced)


def addupdate(target: Any, value: Any, indexers: Indexers = (), traced: Sequence[Any] = ()) -> None:
    """Add to the part at an index."""
    if not holds_directly(target) and not _needs_rules((value, *traced)):
        addupdate_p.bind_positional((target, value, *traced), (indexers,))
        return
    array = get(target)
    _check_value("addupdate", indexed_type(aval_of(array), indexers), aval_of(value), AbstractRef(aval_of(array)))
    set_whole(target, _add_to(array, indexers, traced, value))


def set_whole(target: Any, array: Any) -> None:
    """Replace the array of a reference."""
    if holds_directly(target):
        target.store(cast_weak_type(array, target.aval.inner_aval))
    elif _needs_rules((array,)):
        raise ValueError(_inner_value(aval_of(target), array))  # type: ignore[arg-type]
    else:
        swap_p.bind_positional((target, array), ((),))


def freeze(target: Any) -> Any:
    """Return the array of a reference and end it."""
    if not holds_directly(target):
        return freeze_p.bind_positional((target,))
    return target.array


def free(target: Any) -> None:
    """End a reference."""
    if not holds_directly(target):
        free_ref_p.bind_positional((target,))


def _needs_rules(values: Sequence[Any]) -> bool:
    """Whether a value is a tracer of a transformation inside of the current staging trace."""
    stage = innermost_stage()
    inner = []
    for trace in current_trace.get().enclosing():
        if trace is stage:
            break
        inner.append(trace)
    return any(isinstance(x, Tracer) and x.owner in inner for x in values)
