"""The leaves of an error, arrays that programs carry along: its number, and the values in its message.

The number is 0 for no error, and otherwise that of the check that failed first, from 1 on. The values in messages are
kept in slots, each an array of some type, which all checks share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import convert_to, reshape, zeros
from xtrace._src.checkify.errors import Slot
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.ir import Literal
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_index_in_dim
from xtrace._src.ops.comparisons import bitwise_or, ne
from xtrace._src.ops.random.keys import random_unwrap
from xtrace._src.ops.reductions import argmax, reduce_or
from xtrace._src.ops.selection import select_n

NUMBER = ShapedArray((), dtypes.int32)
NO_ERROR = Literal(0, NUMBER)


def make_empty(slot: Slot) -> Any:
    """Return the content of a slot without an error."""
    aval = slot[0]
    return zeros(aval) if aval.shape else Literal(dtypes.scalar_type_of(aval.dtype)(0), aval)


def place_in_slots(leaves: Sequence[Any]) -> dict[Slot, Any]:
    """Return values by the slots that they are put into."""
    placed: dict[Slot, Any] = {}
    for x in leaves:
        aval = aval_of(x)
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            x = random_unwrap(x)
            aval = aval_of(x)
        kind = ShapedArray(aval.shape, aval.dtype)
        placed[kind, sum(a is kind for a, _ in placed)] = convert_to(x, aval.dtype)
    return placed


def any_element(flags: Array) -> Array:
    """Return whether one of the elements of `flags` holds."""
    rank = aval_of(flags).ndim
    return reduce_or(flags, tuple(range(rank))) if rank else flags


def any_of(flags: Sequence[Any]) -> Array:
    """Return whether one of several flags holds."""
    either: Array = flags[0]
    for flag in flags[1:]:
        either = bitwise_or(either, flag)
    return either


def first_element(flags: Array, values: Array) -> Array:
    """Return the element of `values` at the first true element of `flags`."""
    aval = aval_of(flags)
    if aval.size == 1:
        return reshape(values, ()) if aval.shape else values
    position = position_of_first(flags)
    return dynamic_index_in_dim(reshape(values, (aval.size,)), position, 0, False, allow_negative_indices=False)


def position_of_first(flags: Array) -> Array:
    """Return where, of all elements in a row, the first of `flags` holds."""
    row = reshape(convert_to(flags, dtypes.int32), (aval_of(flags).size,))
    return argmax(row, 0, dtypes.int32)


def first_error(*errors: Sequence[Any]) -> list[Any]:
    """Return the leaves of the first error, of several of one type in the order in which they may have occurred."""
    *before, first = [list(e) for e in errors]
    for error in reversed(before):
        failed = ne(error[0], NO_ERROR)
        first = [select_n(failed, later, own) for own, later in zip(error, first, strict=True)]
    return first
