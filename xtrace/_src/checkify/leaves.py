"""The leaves of an error, arrays that programs carry along: its number, and the values in its message.

The number is 0 for no error, else the number of the first failed check, from 1 on. The values in messages are stored
in slots. A slot is an array of one type; all checks share the slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import convert_to, reshape, zeros
from xtrace._src.checkify.errors import Slot
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_index_in_dim
from xtrace._src.ops.elementwise.comparisons import bitwise_or, ne
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.random.keys import random_unwrap
from xtrace._src.ops.reductions.reductions import argmax, reduce_or

NUMBER = ShapedArray((), dtypes.int32)
NO_ERROR = Literal(0, NUMBER)


def make_empty(slot: Slot) -> Any:
    """Return the value of a slot without an error, zeros."""
    aval = slot[0]
    return zeros(aval) if aval.shape else Literal(dtypes.scalar_type_of(aval.dtype)(0), aval)


def assign_slots(leaves: Sequence[Any]) -> dict[Slot, Any]:
    """Return a slot for each value, with the value."""
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


def any_flag(flags: Sequence[Any]) -> Array:
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
    position = find_first(flags)
    return dynamic_index_in_dim(reshape(values, (aval.size,)), position, 0, False, allow_negative_indices=False)


def find_first(flags: Array) -> Array:
    """Return the position of the first true element among the elements of `flags` in a row."""
    row = reshape(convert_to(flags, dtypes.int32), (aval_of(flags).size,))
    return argmax(row, 0, dtypes.int32)


def select_first_error(*errors: Sequence[Any]) -> list[Any]:
    """Return the leaves of the first error of `errors`, which have one type and the order of their checks."""
    *before, first = [list(e) for e in errors]
    for error in reversed(before):
        failed = ne(error[0], NO_ERROR)
        first = [select_n(failed, later, own) for own, later in zip(error, first, strict=True)]
    return first
