"""Sizes of arrays: integers, or symbolic dimensions in a function that is exported for unknown sizes."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np

from xtrace._src.core.errors import InconclusiveDimensionOperation

# The value of a symbolic variable where a size must be guessed.
_USUAL = 32

# The number of bits of symbolic sizes in programs.
_SYMBOLIC_BITS = 32


def is_symbolic(size: Any) -> TypeGuard[Any]:
    """Whether a size is a `SymbolicDimension`, whose module most processes never load."""
    return getattr(type(size), "is_symbolic_dimension", False)


def to_size(value: Any) -> Any:
    """Return an integer as ``operator.index`` does; symbolic dimensions are sizes, too."""
    try:
        return operator.index(value)
    except InconclusiveDimensionOperation:
        return value


def to_count(value: Any) -> Any:
    """Return a whole floating number, such as the quotient ``1.0 / 0.01``, as an integer, and others as they are."""
    return int(value) if isinstance(value, (float, np.floating)) and value.is_integer() else value


def to_sizes(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return integers as a tuple, as ``operator.index`` makes them; symbolic dimensions are sizes, too."""
    values = tuple(values)
    try:
        return tuple(map(operator.index, values))
    except InconclusiveDimensionOperation:
        return tuple(map(to_size, values))


def has_symbolic(sizes: Iterable[Any]) -> bool:
    """Whether one of the sizes is symbolic."""
    return any(map(is_symbolic, sizes))


def guess(size: Any) -> int:
    """Return an integer in the place of a size, for choices that change only the speed of a program."""
    return size.evaluate(dict.fromkeys(size.variables(), _USUAL)) if is_symbolic(size) else size  # type: ignore[no-any-return]


def bit_length(size: Any) -> int:
    """Return ``size.bit_length()``, the number of halvings to zero; an upper bound, 32, for a symbolic size."""
    return _SYMBOLIC_BITS if is_symbolic(size) else size.bit_length()


def largest(x: Any, y: Any) -> Any:
    """Return the larger of two sizes; a symbolic maximum if neither is known to be larger."""
    if is_symbolic(x):
        return x.max(y)
    return y.max(x) if is_symbolic(y) else max(x, y)


def smallest(x: Any, y: Any) -> Any:
    """Return the smaller of two sizes; a symbolic minimum if neither is known to be smaller."""
    if is_symbolic(x):
        return x.min(y)
    return y.min(x) if is_symbolic(y) else min(x, y)


def is_known_to_exceed(size: Any, limit: Any) -> bool:
    """Whether a size is larger than a limit for all values of its variables; symbolic sizes rarely are."""
    try:
        return bool(size > limit)
    except InconclusiveDimensionOperation:
        return False


def range_length(start: Any, stop: Any, step: int = 1) -> Any:
    """Return ``len(range(start, stop, step))`` for sizes; `step` is positive."""
    try:
        return len(range(start, stop, step))
    except InconclusiveDimensionOperation:
        return largest((stop - start + step - 1) // step, 0)
