"""Kinds of dtype that operations accept, and checks of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.dtypes import DType

FLOAT, COMPLEX, INTEGER, BOOL = "floating", "complexfloating", "integer", "bool"
# Elements that are no numbers: random keys.
EXTENDED = "extended"
SIGNED, UNSIGNED, FLOAT32, FLOAT64 = "signedinteger", "unsignedinteger", "float32", "float64"
NUMBER = (INTEGER, FLOAT, COMPLEX)
INEXACT = (FLOAT, COMPLEX)
REAL = (INTEGER, FLOAT)
ORDERED = (INTEGER, FLOAT, BOOL)
BITS = (INTEGER, BOOL)
ANY = (INTEGER, FLOAT, COMPLEX, BOOL)
# The parts that complex numbers can have.
PART = (FLOAT32, FLOAT64)

_kind_tests: dict[str, Callable[[Any], bool]] = {
    FLOAT: dtypes.is_floating, COMPLEX: dtypes.is_complex, INTEGER: dtypes.is_integer, BOOL: dtypes.is_boolean,
    SIGNED: lambda dtype: dtypes.is_integer(dtype) and dtypes.is_signed(dtype),
    UNSIGNED: lambda dtype: dtypes.is_integer(dtype) and not dtypes.is_signed(dtype),
    EXTENDED: lambda dtype: isinstance(dtype, dtypes.ExtendedDType),
    FLOAT32: lambda dtype: bool(dtype == dtypes.float32), FLOAT64: lambda dtype: bool(dtype == dtypes.float64),
}

_KIND_NAMES = {
    FLOAT: "real floating numbers", COMPLEX: "complex numbers", INTEGER: "integers", BOOL: "booleans",
    EXTENDED: "random keys", SIGNED: "signed integers", UNSIGNED: "unsigned integers", FLOAT32: "float32",
    FLOAT64: "float64",
}


def kind_names(kinds: Sequence[str]) -> str:
    """Return the names of `kinds` as documentation lists them: ``integers or booleans``."""
    *others, last = [_KIND_NAMES[kind] for kind in kinds]
    return f"{', '.join(others)} or {last}" if others else last


def is_kind(dtype: DType, kinds: Sequence[str]) -> bool:
    """Whether `dtype` is of one of the `kinds`."""
    return any(_kind_tests[kind](dtype) for kind in kinds)


def check_kind(name: str, avals: Sequence[ShapedArray], kinds: Sequence[Sequence[str]]) -> None:
    """Raise TypeError if an operand's dtype is not of the kinds its position accepts."""
    for position, (aval, accepted) in enumerate(zip(avals, kinds, strict=True)):
        if not is_kind(aval.dtype, accepted):
            where = f" at position {position}" if len(avals) > 1 else ""
            raise TypeError(
                f"{name} does not accept dtype {aval.dtype.name}{where}. Accepted dtypes{where} are subtypes of "
                f"{', '.join(accepted)}. Convert with x.astype(...) first."
            )


def check_same_dtype(name: str, avals: Sequence[ShapedArray], promoting: str | None = None) -> None:
    """Raise TypeError if operands differ in dtype.

    promoting: the name of the function of xtrace.numpy that promotes, for the message.
    """
    if len({a.dtype for a in avals}) > 1:
        dtype_names = ", ".join(a.dtype.name for a in avals)
        tip = f" (Tip: xtrace.numpy.{promoting} is a similar function that does automatic type promotion on inputs)."
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got {dtype_names}.{tip if promoting else ''}"
        )


def broadcast_shapes(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape of scalars and of shapes of one rank whose sizes are equal or 1; TypeError if none."""
    ranked = [s for s in shapes if s]
    if not ranked:
        return ()
    first = ranked[0]
    if all(s == first for s in ranked):
        return first
    if len({len(s) for s in ranked}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got {', '.join(map(str, shapes))}. "
            "xtrace.numpy's functions broadcast ranks; in lax, add the axes with expand_dims or broadcast_in_dim."
        )
    common = []
    for axis, sizes in enumerate(zip(*ranked, strict=True)):
        different = {n for n in sizes if n != 1}
        if len(different) > 1:
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}; "
                f"axis {axis} has the sizes {', '.join(map(str, sizes))}."
            )
        common.append(different.pop() if different else 1)
    return tuple(common)
