"""References as users hold them, and the functions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import convert_to, zeros
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import CONVERSIONS, AbstractRef, ShapedArray, ShapeDtypeStruct, aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.source import describe, user_position
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.references import Reference
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.references import operations
from xtrace._src.ops.references.indexing import RefIndexer, indexed_type, parse_index
from xtrace._src.runtime.arrays import ConcreteArray, new_array
from xtrace._src.runtime.transfer import to_array

__all__ = ["Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


class Ref(Reference):
    """A reference to an array: a mutable array, or with `at` a part of one.

    `new_ref` makes a reference. ``ref[index]`` reads, ``ref[index] = value`` writes; an index has integers, slices,
    `ds` and arrays of integers, and values are not broadcast. Compiled functions read and write references that are
    their arguments, that they close over, or that they make. Functions under `grad` and `vmap` may make references, and
    read references from outside.

    Args:
        target: the reference in traces, a tracer or a cell.

    Example:
        >>> ref = xtrace.new_ref(jnp.zeros(3))
        >>> ref[1] = 2.0
        >>> ref
        Ref([0., 2., 0.], dtype=float32)
    """

    __slots__ = ("_ended",)
    __module__ = "xtrace"

    # The index of a part.
    _indexers: tuple[RefIndexer, ...] = ()
    _traced: tuple[Any, ...] = ()

    def __init__(self, target: Any) -> None:
        self.target = target
        # A description of how and where the reference was ended, for messages.
        self._ended: str | None = None

    @property
    def aval(self) -> AbstractRef:
        """Its type."""
        aval = aval_of(self.target)
        assert isinstance(aval, AbstractRef)
        return aval

    @property
    def _part(self) -> ShapedArray:
        return indexed_type(self.aval.inner_aval, self._indexers)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, or of the part."""
        return self._part.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the array."""
        return self._part.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._part.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._part.size

    @property
    def sharding(self) -> Any:
        """The placement of the array."""
        return self._array.sharding

    @property
    def format(self) -> Any:
        """The layout and the placement of the array."""
        return self._array.format

    @property
    def committed(self) -> bool:
        """Whether the array is committed to its devices."""
        return self._array.committed

    @property
    def _array(self) -> ConcreteArray:
        """The current array of a reference outside of traced functions."""
        self._check_alive()
        array = self.target.array if type(self.target) is operations.Cell else None
        if not isinstance(array, ConcreteArray):
            raise TypeError(f"the reference of type {self.aval} is traced and has no data; read ref[...]")
        return array

    def whole_target(self) -> Any:
        """Return the target; TypeError for a part, ValueError for a reference that was frozen or freed."""
        self._check_alive()
        if self._indexers:
            raise TypeError(
                f"a part of a reference of type {self.aval} was passed to a traced function; pass the whole reference, "
                "and take the part there with .at"
            )
        return self.target

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the array's memory, in which compiled functions write in place."""
        self._check_alive()
        array = self.target.own() if type(self.target) is operations.Cell else self._array
        return int(array.unsafe_buffer_pointer())

    @property
    def at(self) -> _PartMaker:
        """The maker of references to parts: ``ref.at[index]``."""
        return _PartMaker(self)

    def _check_alive(self) -> None:
        """Raise ValueError if the reference was frozen or freed."""
        if self._ended is not None:
            raise ValueError(f"the reference of type {self.aval} was {self._ended} and cannot be used any more")

    def _end(self, how: str) -> None:
        """End the reference: every later use raises an error that tells `how` and where it ended."""
        self._ended = f"{how} at {describe(user_position())}"

    def _resolve(self, index: Any) -> tuple[Any, tuple[RefIndexer, ...], tuple[Any, ...]]:
        """Return the target, and the indexers and traced parts of `index` within this part."""
        self._check_alive()
        indexers, traced = parse_index(self.shape, index)
        return self.target, self._indexers + indexers, (*self._traced, *traced)

    @boundary
    def __getitem__(self, index: Any) -> Any:
        return operations.get(*self._resolve(index))

    @boundary
    def __setitem__(self, index: Any, value: Any) -> None:
        _swap("set", self, index, value)

    def get(self) -> Any:
        """Return the value."""
        return self[...]

    def set(self, value: ArrayLike) -> None:
        """Replace the value by another one of the same shape and dtype."""
        self[...] = value

    @boundary
    def swap(self, value: ArrayLike) -> Any:
        """Replace the value by another one of the same shape and dtype, and return the old value."""
        return _swap("swap", self, None, value)

    @boundary
    def addupdate(self, value: ArrayLike) -> None:
        """Add an array of the same shape and dtype."""
        addupdate(self, None, value)

    def __len__(self) -> int:
        return len(self._part)

    def __repr__(self) -> str:
        if self._ended is not None:
            return f"<{self.aval} {self._ended}>"
        shown = "" if self._indexers else getattr(self.target, "array", None)
        if shown is None or isinstance(shown, (str, Tracer)):
            return f"Ref({self._part.str_short(short_dtypes=False)})"
        if type(shown) is ConcreteArray:
            # An array keeps its values that were shown, and its memory with them.
            shown = new_array(shown.aval, shown.buffer, shown.signature)
        return f"Ref{repr(shown).removeprefix('Array')}"


class Transform(NamedTuple):
    """The index of a part of a reference: its static form, and its traced parts."""

    indexer: RefIndexer
    traced: tuple[Any, ...]


class TransformedRef(Ref):
    """A reference to a part of a reference's array; ``ref.at[index]`` makes it.

    Args:
        ref: a `Ref`, which may be a part itself.
        transforms: the indices of the part, one after the other.

    Example:
        >>> ref = xtrace.new_ref(jnp.zeros((2, 2)))
        >>> ref.at[0][1] = 5.0
        >>> ref
        Ref([[0., 5.],
             [0., 0.]], dtype=float32)
    """

    __slots__ = ("ref", "transforms", "_indexers", "_traced")
    __module__ = "xtrace.experimental.hijax"

    def __init__(self, ref: Ref, transforms: Sequence[Transform]) -> None:
        super().__init__(ref.target)
        self.ref, self.transforms = ref, tuple(transforms)
        self._indexers = (*ref._indexers, *[t.indexer for t in self.transforms])
        self._traced = (*ref._traced, *[x for t in self.transforms for x in t.traced])

    def _check_alive(self) -> None:
        self.ref._check_alive()


CONVERSIONS[Ref] = "; read the array of a reference with ref[...]"


class _PartMaker:
    """The maker of references to parts of `ref`."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref

    @boundary
    def __getitem__(self, index: Any) -> TransformedRef:
        self.ref._check_alive()
        indexers, traced = parse_index(self.ref.shape, index)
        return TransformedRef(self.ref, [Transform(indexer, tuple(traced)) for indexer in indexers])


def _check_reference(ref: Any, *, function: str = "") -> Ref:
    if not isinstance(ref, Ref):
        raise TypeError(
            f"{function or called_function()} takes a reference, got {abbreviate(ref)} of type {type(ref)}; make one "
            "with xtrace.new_ref"
        )
    ref._check_alive()
    return ref


def _value(function: str, ref: Ref, value: Any) -> Any:
    if not is_array_like(value):
        raise TypeError(
            f"{function}: {abbreviate(value)} of type {type(value)} cannot be written to the reference of type "
            f"{ref.aval}: expected an array or a number"
        )
    return value


def _swap(function: str, ref: Ref, index: Any, value: Any) -> Any:
    target, indexers, traced = ref._resolve(index)
    return operations.swap(target, _value(function, ref, value), indexers, traced)


@boundary
def new_ref(init_val: ArrayLike, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Return a new reference to an array.

    Args:
        init_val: the initial array.
        memory_space: None, the memory of the array.
        kind: None.

    Returns:
        A `Ref`.

    Raises:
        TypeError: `init_val` is no array.
        NotImplementedError: `memory_space` or `kind` is given.

    Example:
        >>> total = xtrace.new_ref(jnp.zeros(()))
        >>> @xtrace.jit
        ... def add(x):
        ...     total[...] += x
        >>> add(3.0), add(4.0)
        (None, None)
        >>> total
        Ref(7., dtype=float32)
    """
    if memory_space is not None or kind is not None:
        raise NotImplementedError(
            "new_ref: references are in the memory of their array; leave memory_space and kind out, and move the array "
            "with xtrace.device_put"
        )
    if isinstance(init_val, Ref):
        raise TypeError(f"new_ref: a reference cannot hold another one, of type {init_val.aval}; pass ref[...]")
    if not is_array_like(init_val):
        raise TypeError(
            f"new_ref takes an array, got {abbreviate(init_val)} of type {type(init_val)}; for a pytree, make a "
            "reference of each leaf with xtrace.tree.map(xtrace.new_ref, tree)"
        )
    value: Any = init_val if isinstance(init_val, Array) else to_array(init_val)
    if is_newer() and not operations.is_staged():
        value = convert_to(value, aval_of(value).dtype)
    return Ref(operations.make_reference(value))


@boundary
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Return a new reference to an array with unspecified elements; they are zeros.

    Args:
        ty: a type, or an object with a shape and a dtype.
        memory_space: None.

    Returns:
        A `Ref`.

    Raises:
        TypeError: `ty` has no shape and dtype.
        NotImplementedError: `memory_space` is given.

    Example:
        >>> xtrace.empty_ref(xtrace.ShapeDtypeStruct((3,), jnp.float32)).shape
        (3,)
    """
    if memory_space is not None:
        raise NotImplementedError("empty_ref: references are in the device's own memory; leave memory_space out")
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(
            f"empty_ref takes a type such as xtrace.ShapeDtypeStruct((3,), 'float32'), got {abbreviate(ty)}"
        )
    aval = ty if isinstance(ty, ShapedArray) else ShapeDtypeStruct(ty.shape, ty.dtype).aval
    if operations.is_staged():
        return Ref(operations.empty_ref_p.bind(ty=aval, memory_space=None))
    return Ref(operations.make_reference(zeros(aval)))


@boundary
def freeze(ref: Ref) -> Any:
    """Return the array that a reference holds, and end the reference.

    Args:
        ref: a `Ref`.

    Returns:
        The array.

    Raises:
        TypeError: `ref` is no reference.
        ValueError: it was frozen or freed before. Every later use of `ref` raises it, too.

    Example:
        >>> ref = xtrace.new_ref(jnp.zeros(2))
        >>> ref[0] = 1.0
        >>> xtrace.freeze(ref)
        Array([1., 0.], dtype=float32)
    """
    ref = _check_whole(ref)
    array = operations.freeze(ref.target)
    ref._end("frozen")
    return array


@boundary
def free_ref(ref: Ref) -> None:
    """End a reference and release its array.

    Args:
        ref: a `Ref`.

    Raises:
        TypeError: `ref` is no reference.
        ValueError: it was frozen or freed before. Every later use of `ref` raises it, too.

    Example:
        >>> xtrace.free_ref(xtrace.new_ref(0.0))
    """
    ref = _check_whole(ref)
    operations.free(ref.target)
    ref._end("freed")


def _check_whole(ref: Any) -> Ref:
    whole = _check_reference(ref)
    if whole._indexers:
        raise ValueError(
            f"{called_function()} ends a whole reference, not a part of one; give the reference before .at"
        )
    return whole


@boundary
def get(ref: Ref, idx: Any = None) -> Any:
    """Return the part of a reference's array at an index, as ``ref[idx]``.

    Args:
        ref: a `Ref`.
        idx: an index; None for all.

    Returns:
        An array. Traced indices out of bounds are clamped.

    Raises:
        TypeError: `ref` is no reference, or `idx` no index.
        IndexError: `idx` is out of bounds.

    Example:
        >>> xtrace.ref.get(xtrace.new_ref(jnp.arange(3.0)), 1)
        Array(1., dtype=float32)
    """
    return operations.get(*_check_reference(ref)._resolve(idx))


@boundary
def set(ref: Ref, idx: Any, value: ArrayLike) -> None:
    """Replace the part of a reference's array at an index, as ``ref[idx] = value``.

    Args:
        ref: a `Ref`.
        idx: an index; None for all.
        value: an array of the shape and dtype of the part. Entries of traced index arrays out of bounds are dropped.

    Raises:
        TypeError: `ref` is no reference, `idx` no index, or `value` no array.
        IndexError: `idx` is out of bounds, or the shapes differ.
        ValueError: the dtypes differ.

    Example:
        >>> ref = xtrace.new_ref(jnp.zeros(2))
        >>> xtrace.ref.set(ref, 0, 1.0)
        >>> ref
        Ref([1., 0.], dtype=float32)
    """
    _swap("set", _check_reference(ref), idx, value)


@boundary
def swap(ref: Ref, idx: Any, value: ArrayLike, _function_name: str = "swap") -> Any:
    """Replace the part of a reference's array at an index, and return the old part.

    Args:
        ref: a `Ref`.
        idx: an index; None for all.
        value: an array of the shape and dtype of the part.
        _function_name: the name in messages.

    Returns:
        The old part, an array.

    Raises:
        TypeError: `ref` is no reference, `idx` no index, or `value` no array.
        IndexError: `idx` is out of bounds, or the shapes differ.
        ValueError: the dtypes differ.

    Example:
        >>> xtrace.ref.swap(xtrace.new_ref(jnp.zeros(2)), 0, 1.0)
        Array(0., dtype=float32)
    """
    return _swap(_function_name, _check_reference(ref, function=_function_name), idx, value)


@boundary
def addupdate(ref: Ref, idx: Any, x: ArrayLike) -> None:
    """Add to the part of a reference's array at an index; equal indices add to an element several times.

    Args:
        ref: a `Ref`.
        idx: an index; None for all.
        x: an array of the shape and dtype of the part.

    Raises:
        TypeError: `ref` is no reference, `idx` no index, or `x` no array.
        IndexError: `idx` is out of bounds, or the shapes differ.
        ValueError: the dtypes differ.

    Example:
        >>> ref = xtrace.new_ref(jnp.ones(2))
        >>> xtrace.ref.addupdate(ref, 0, 1.0)
        >>> ref
        Ref([2., 1.], dtype=float32)
    """
    target, indexers, traced = _check_reference(ref)._resolve(idx)
    operations.addupdate(target, _value("addupdate", ref, x), indexers, traced)
