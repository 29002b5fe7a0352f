"""Sharding rules: the split of an operation's result over explicit mesh axes, inferred from the operands' splits.

A rule is ``rule(name, operands, result, **parameters) -> entries``. An operand is a `Split`: its type and the entry of
each dimension. The rule returns the entries of the result, or a list of these for several results. It raises
ShardingTypeError if the split does not follow from the operands, or needs communication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.errors import ShardingTypeError
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.partition_spec import get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding, count_parts, insert_entry
from xtrace._src.core.shardings.sums import NO_SUMS, Sums, format_axes

Entries = tuple[Any, ...]
Rule = Callable[..., Any]


class Split(NamedTuple):
    """The type of an operand without its split, the entry of each dimension, and the mesh, or None.

    `sums` are its unreduced and reduced axes, `varying` the axes along which devices hold different values.
    `is_placed`: whether its type has a mesh; an operand without one is a constant, and all devices have it.
    """

    aval: ShapedArray
    entries: Entries
    mesh: Any
    sums: Sums = NO_SUMS
    varying: frozenset[Any] = frozenset()
    is_placed: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether no dimension is split."""
        return not any(self.entries)

    def parts(self, dimension: int) -> int:
        """Return the number of parts of a dimension."""
        return count_parts(self.entries[dimension], self.mesh)

    def show(self) -> str:
        """Return the text of the type in messages."""
        sizes = [f"{n}{_format_entry(p)}" for n, p in zip(self.aval.shape, self.entries, strict=True)]
        return f"{self.aval.dtype.name}[{','.join(sizes)}]{format_axes(self.varying, self.sums)}"


def _format_entry(entry: Any) -> str:
    axes = get_entry_axes(entry)
    return "" if not axes else f"@{axes[0]}" if len(axes) == 1 else f"@({','.join(map(str, axes))})"


_RESHARD = "Split it otherwise with xtrace.reshard(x, xtrace.P(...)) first"


def different_meshes(name: str, operands: Sequence[tuple[str, BaseMesh]]) -> ShardingTypeError:
    """Return the error of an operation with operands on different meshes; each is a description and its mesh."""
    shown = "".join([f"\n  * {text} on {mesh.abstract_mesh.update(abstract_device=None)}" for text, mesh in operands])
    return ShardingTypeError(
        f"{name}: Mesh for all inputs should be equal, got{shown}\nMove one to the mesh of the other with "
        "xtrace.device_put(x, xtrace.NamedSharding(mesh, xtrace.P(...))) first"
    )


def whole(name: str, operands: Sequence[Split], result: Any, **_: object) -> Any:
    """The rule of an operation whose operands must be whole."""
    for position, x in enumerate(operands):
        if not x.is_whole:
            raise ShardingTypeError(
                f"{name}: operand {position}, {x.show()}, must not be split over explicit mesh axes. {_RESHARD}"
            )
    if isinstance(result, list):
        return [(None,) * r.ndim for r in result]
    return (None,) * result.ndim


def join(name: str, operands: Sequence[Split], result: ShapedArray, **_: object) -> Entries:
    """The rule of elementwise operations: a dimension is split as in the operands that split it, which must agree."""
    entries: list[Any] = [None] * result.ndim
    for x in operands:
        if x.aval.ndim != result.ndim:
            continue
        for i, (size, entry) in enumerate(zip(x.aval.shape, x.entries, strict=True)):
            if entry is None or (size == 1 and result.shape[i] != 1):
                continue
            if entries[i] is not None and entries[i] != entry:
                shown = ", ".join([y.show() for y in operands])
                raise ShardingTypeError(
                    f"{name} got incompatible shardings for broadcasting: {shown} are split differently along axis "
                    f"{i}. {_RESHARD}"
                )
            entries[i] = entry
    return _distinct(name, operands, tuple(entries))


def _distinct(name: str, operands: Sequence[Split], entries: Entries) -> Entries:
    """Return entries that use each mesh axis once; ShardingTypeError if one is used twice."""
    used = [axis for entry in entries for axis in get_entry_axes(entry)]
    for axis in used:
        if used.count(axis) > 1:
            shown = ", ".join([x.show() for x in operands])
            raise ShardingTypeError(
                f"{name} operation with inputs {shown} produces an illegally sharded result: two dimensions would be "
                f"split over the mesh axis {axis!s}. {_RESHARD}"
            )
    return entries


def same(name: str, operands: Sequence[Split], result: Any, **_: object) -> Any:
    """The rule of operations whose results have the split of their first operand."""
    return [operands[0].entries] * len(result) if isinstance(result, list) else operands[0].entries


def each_same(name: str, operands: Sequence[Split], result: list[ShapedArray], **_: object) -> list[Entries]:
    """The rule of operations whose results have the splits of the operands, one by one."""
    return [x.entries for x in operands]


def drop(parameter: str) -> Rule:
    """Return the rule of operations that remove the dimensions in the parameter `parameter`."""

    def rule(name: str, operands: Sequence[Split], result: ShapedArray, **parameters: Any) -> Entries:
        axes = parameters[parameter]
        return tuple([p for i, p in enumerate(operands[0].entries) if i not in axes])

    return rule


def whole_along(parameter: str) -> Rule:
    """Return the rule of operations along the dimension in the parameter `parameter`, which must be whole."""

    def rule(name: str, operands: Sequence[Split], result: Any, **parameters: Any) -> Any:
        axis = parameters[parameter]
        for x in operands:
            if x.aval.ndim and x.entries[axis] is not None:
                raise ShardingTypeError(
                    f"{name}: the operand {x.show()} should be unsharded along axis {axis}. {_RESHARD}"
                )
        entries = join(name, operands, operands[0].aval)
        return [entries] * len(result) if isinstance(result, list) else entries

    return rule


def unstack(name: str, operands: Sequence[Split], result: list[ShapedArray], *, axis: int, **_: object) -> Any:
    """The rule of `unstack`: it removes a dimension, which must be whole."""
    (x,) = operands
    if x.entries[axis] is not None:
        raise ShardingTypeError(f"{name}: the operand {x.show()} should be unsharded along axis {axis}. {_RESHARD}")
    return [(*x.entries[:axis], *x.entries[axis + 1 :])] * len(result)


def leading(*kept: int) -> Rule:
    """Return the rule of operations on the last dimensions of operands, which must be whole; the others are batches.

    kept: the number of last dimensions for each operand; the last number is also for further operands.
    """

    def rule(name: str, operands: Sequence[Split], result: Any, **_: object) -> Any:
        own = [*kept, *kept[-1:] * len(operands)][: len(operands)]
        batches = [x.entries[: max(x.aval.ndim - count, 0)] for x, count in zip(operands, own, strict=True)]
        for position, (x, batch, count) in enumerate(zip(operands, batches, own, strict=True)):
            if any(x.entries[len(batch) :]):
                raise ShardingTypeError(
                    f"{name}: operand {position}, {x.show()}, must be unsharded along its last {count} axes. {_RESHARD}"
                )
        longest = max(batches, key=len)
        batch = tuple([
            next((b[i] for b in batches if len(b) > i and b[i] is not None), None) for i in range(len(longest))
        ])

        def get_entries(aval: ShapedArray) -> Entries:
            return batch[: aval.ndim] + (None,) * (aval.ndim - len(batch))

        return [get_entries(r) for r in result] if isinstance(result, list) else get_entries(result)

    return rule


def resize(name: str, operands: Sequence[Split], result: Any, **_: object) -> Any:
    """The rule of slices, pads and windows: a dimension stays split if its number of parts divides its new size."""
    if isinstance(result, list):
        return [resize(name, operands, r) for r in result]
    x = operands[0]
    for i, size in enumerate(result.shape):
        _check_size(name, x, i, size)
    return x.entries


def _check_size(name: str, x: Split, axis: int, size: int) -> None:
    """Raise ShardingTypeError if the number of parts of an axis does not divide its new size."""
    if x.aval.shape[axis] != size and size % x.parts(axis):
        raise ShardingTypeError(
            f"{name} on sharded dims where the size is not divisible by mesh axes: axis {axis} of {x.show()} would "
            f"have the size {size}, which its {x.parts(axis)} parts do not divide. {_RESHARD}"
        )


def tile(name: str, operands: Sequence[Split], result: ShapedArray, *, reps: Sequence[int], **_: object) -> Entries:
    """The rule of `tile`: a dimension that is repeated must be whole."""
    x = operands[0]
    for axis, count in enumerate(reps):
        if count != 1 and x.entries[axis] is not None:
            raise ShardingTypeError(
                f"{name}: axis {axis} of {x.show()} is split, and would be repeated {count} times. {_RESHARD}"
            )
    return x.entries


def broadcast(
    name: str, operands: Sequence[Split], result: ShapedArray, *, broadcast_dimensions: Sequence[int], **_: object
) -> Entries:
    """The rule of `broadcast_in_dim`."""
    entries: list[Any] = [None] * result.ndim
    x = operands[0]
    for i, place in enumerate(broadcast_dimensions):
        if x.aval.shape[i] == result.shape[place]:
            entries[place] = x.entries[i]
    return tuple(entries)


def batch(
    mapped: Any, operand: Any, own: int, axis: int, sharding: NamedSharding | None, ndim: int
) -> NamedSharding | None:
    """Return the user's sharding of a result, with an entry for the batch dimension.

    Args:
        mapped: the mapped axis.
        operand: the batched operand; the batch dimension of the result is split as its batch dimension.
        own: the batch dimension of the operand.
        axis: the batch dimension of the result.
        sharding: the user's sharding of one result, or None.
        ndim: the rank of one result.
    """
    if sharding is None:
        return None
    of_operand = aval_of(operand).explicit_sharding
    return insert_entry(sharding, ndim, axis, of_operand.spec[own] if of_operand is not None else mapped.spmd_name)


def permute(
    name: str, operands: Sequence[Split], result: ShapedArray, *, permutation: Sequence[int], **_: object
) -> Entries:
    """The rule of `transpose`."""
    return tuple([operands[0].entries[i] for i in permutation])


def reshape(
    name: str, operands: Sequence[Split], result: ShapedArray, *, dimensions: object = None, **_: object
) -> Entries:
    """The rule of `reshape`: merged or divided dimensions may be split only from the slowest one on."""
    (x,) = operands
    if x.is_whole:
        return (None,) * result.ndim
    refusal = ShardingTypeError(
        f"{name}: {x.show()} cannot take the shape {result.shape} without communication. Specify the sharding of the "
        f"output with out_sharding=, or split the operand otherwise with xtrace.reshard first"
    )
    if dimensions is not None:
        raise refusal
    entries: list[Any] = [None] * result.ndim
    if not x.aval.size:
        # For an empty array, only dimensions of size 1 may be added or removed.
        sizes, places = ([i for i, n in enumerate(aval.shape) if n != 1] for aval in (x.aval, result))
        if [x.aval.shape[i] for i in sizes] != [result.shape[i] for i in places]:
            raise refusal
        for i, place in zip(sizes, places, strict=True):
            entries[place] = x.entries[i]
        return tuple(entries)
    for before, after in _groups(x.aval.shape, result.shape):
        split = [i for i in before if x.entries[i] is not None]
        if not split:
            continue
        sizes = [i for i in before if x.aval.shape[i] != 1 or i in split]
        places = [i for i in after if result.shape[i] != 1] or after
        if split != sizes[: len(split)]:
            raise refusal
        # If several split dimensions are divided again, each but the last must be in parts of size 1.
        if len(places) > 1 and any(x.aval.shape[i] != x.parts(i) for i in split[:-1]):
            raise refusal
        axes = [axis for i in split for axis in get_entry_axes(x.entries[i])]
        for place in places:
            size, last = result.shape[place], place == places[-1]
            own: list[Any] = []
            while axes and size % (count_parts(tuple(own), x.mesh) * x.mesh.shape[axes[0]]) == 0:
                if not last and own and count_parts(tuple(own), x.mesh) == size:
                    break
                own.append(axes.pop(0))
            if own:
                entries[place] = own[0] if len(own) == 1 else tuple(own)
            if axes and count_parts(tuple(own), x.mesh) != size:
                raise refusal
        if axes:
            raise refusal
    return tuple(entries)


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return pairs of the shortest runs of dimensions that have the same number of elements in both shapes.

    Dimensions of size 1 belong to the run before them.
    """
    groups = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = i, j
        one = other = 1
        while one != other or (left == i and right == j) or one == 1:
            if i < len(before) and (one <= other or j == len(after)):
                one, i = one * before[i], i + 1
            elif j < len(after):
                other, j = other * after[j], j + 1
            else:
                break
        while i < len(before) and before[i] == 1:
            i += 1
        while j < len(after) and after[j] == 1:
            j += 1
        groups.append((list(range(left, i)), list(range(right, j))))
    return groups


def contract(
    name: str, operands: Sequence[Split], result: ShapedArray, *, dimension_numbers: Any, **_: object
) -> Entries:
    """The rule of `dot_general`."""
    left, right = operands[0], operands[1]
    (left_contracting, right_contracting), (left_batch, right_batch) = dimension_numbers
    pairs = [(left.entries[i], right.entries[j]) for i, j in zip(left_contracting, right_contracting, strict=True)]
    shown = f"{left.show()} and {right.show()}"
    for one, other in pairs:
        if one is not None and other is not None and one != other:
            raise ShardingTypeError(
                f"{name} requires contracting dimensions to have consistent sharding, got {shown}. {_RESHARD}"
            )
    if any(one is not None and other is not None for one, other in pairs):
        raise ShardingTypeError(
            f"{name}: Contracting dimensions are sharded and it is ambiguous how the output should be sharded, got "
            f"{shown}. Specify it with out_sharding="
        )
    batch = []
    for i, j in zip(left_batch, right_batch, strict=True):
        one, other = left.entries[i], right.entries[j]
        if one is not None and other is not None and one != other:
            raise ShardingTypeError(
                f"{name} requires batch dimensions to have consistent sharding, got {shown}. {_RESHARD}"
            )
        batch.append(one if one is not None else other)
    rest = [p for i, p in enumerate(left.entries) if i not in left_batch and i not in left_contracting]
    rest += [p for i, p in enumerate(right.entries) if i not in right_batch and i not in right_contracting]
    return _distinct(name, operands, (*batch, *rest))


def convolve(
    name: str, operands: Sequence[Split], result: ShapedArray, *, dimension_numbers: Any, **_: object
) -> Entries:
    """The rule of convolutions: batches, spatial axes and output features may be split."""
    left, right = operands[0], operands[1]
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    if left.entries[lhs_spec[1]] or any(right.entries[i] for i in rhs_spec[1:]):
        raise ShardingTypeError(
            f"{name}: only the batch and the spatial axes of {left.show()}, and the output features of {right.show()}, "
            "may be split. Please specify the output sharding via the `out_sharding` parameter of "
            "conv_general_dilated, or split them otherwise with xtrace.reshard(x, xtrace.P(...)) first"
        )
    entries: list[Any] = [None] * result.ndim
    entries[out_spec[1]] = right.entries[rhs_spec[0]]
    for own, place in zip((lhs_spec[0], *lhs_spec[2:]), (out_spec[0], *out_spec[2:]), strict=True):
        entries[place] = left.entries[own]
        _check_size(name, left, own, result.shape[place])
    return _distinct(name, operands, tuple(entries))


def concatenate(name: str, operands: Sequence[Split], result: ShapedArray, **_: object) -> Entries:
    """The rule of `concatenate`: all operands must have the same split."""
    first = operands[0]
    for x in operands:
        if x.entries != first.entries:
            raise ShardingTypeError(
                f"{name}: All operands should have the same sharding, got {', '.join([y.show() for y in operands])}. "
                f"{_RESHARD}"
            )
    return resize(name, operands, result)  # type: ignore[no-any-return]


def stack(name: str, operands: Sequence[Split], result: ShapedArray, *, axis: int, **_: object) -> Entries:
    """The rule of `stack`."""
    entries = list(join(name, operands, operands[0].aval))
    entries.insert(axis, None)
    return tuple(entries)


def update_slice(name: str, operands: Sequence[Split], result: ShapedArray, **_: object) -> Entries:
    """The rule of `dynamic_update_slice`: the update must have the split of the operand."""
    operand, update = operands[0], operands[1]
    if operand.entries != update.entries:
        raise ShardingTypeError(
            f"{name}: operand sharding must be equal to update sharding, got {operand.show()} and {update.show()}. "
            f"{_RESHARD}"
        )
    return operand.entries


def gather(
    name: str, operands: Sequence[Split], result: ShapedArray, *, dimension_numbers: Any, slice_sizes: Sequence[int],
    **_: object,
) -> Entries:
    """The rule of `gather`: whole slices keep the split of their dimension, and so do the dimensions of the indices."""
    operand, indices = operands[0], operands[1]
    numbers = dimension_numbers
    collapsed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    for i, entry in enumerate(operand.entries):
        if entry is not None and slice_sizes[i] != operand.aval.shape[i] and i not in numbers.operand_batching_dims:
            raise ShardingTypeError(
                f"{name}: the out sharding could not be resolved unambiguously: {operand.show()} is split along axis "
                f"{i}, which is indexed. Use `.at[...].get(out_sharding=)`, or split it otherwise with xtrace.reshard"
            )
    offsets = iter([p for i, p in enumerate(operand.entries) if i not in collapsed])
    batches = iter(indices.entries[:-1])
    entries = [next(offsets) if i in numbers.offset_dims else next(batches) for i in range(result.ndim)]
    for i, j in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        places = [k for k in range(result.ndim) if k not in numbers.offset_dims]
        if entries[places[j]] is None:
            entries[places[j]] = operand.entries[i]
    return _distinct(name, operands, tuple(entries))


def append_axes(name: str, operands: Sequence[Split], result: ShapedArray, **_: object) -> Entries:
    """The rule of operations whose result has further dimensions after those of the operand."""
    entries = operands[0].entries[: result.ndim]
    return entries + (None,) * (result.ndim - len(entries))
