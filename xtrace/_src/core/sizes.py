"""Sizes of arrays: integers, or symbolic dimensions, where a function is exported for sizes that are not known."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeGuard

from xtrace._src.core.errors import InconclusiveDimensionOperation

# What a size is taken to be where that must be guessed.
_USUAL = 32

# How many bits symbolic sizes have in programs.
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
    """Return an integer in the place of a size, where it only decides how fast a program is."""
    return size.evaluate(dict.fromkeys(size.variables(), _USUAL)) if is_symbolic(size) else size  # type: ignore[no-any-return]


def bit_length(size: Any) -> int:
    """Return how often a range of that many is halved until none is left; for symbolic sizes, enough for all."""
    return _SYMBOLIC_BITS if is_symbolic(size) else size.bit_length()


def largest(x: Any, y: Any) -> Any:
    """Return the larger of two sizes, an expression where that cannot be decided."""
    if is_symbolic(x):
        return x.max(y)
    return y.max(x) if is_symbolic(y) else max(x, y)


def smallest(x: Any, y: Any) -> Any:
    """Return the smaller of two sizes, an expression where that cannot be decided."""
    if is_symbolic(x):
        return x.min(y)
    return y.min(x) if is_symbolic(y) else min(x, y)


def is_known_to_exceed(size: Any, limit: Any) -> bool:
    """Whether a size is larger than a limit, which symbolic ones, of 32 bits in programs, are not unless they must."""
    try:
        return bool(size > limit)
    except InconclusiveDimensionOperation:
        return False


def range_length(start: Any, stop: Any, step: int = 1) -> Any:
    """Return ``len(range(start, stop, step))`` of sizes; `step` is positive."""
    try:
        return len(range(start, stop, step))
    except InconclusiveDimensionOperation:
        return largest((stop - start + step - 1) // step, 0)
