"""Promotion of dtypes: the join in a lattice of dtypes, as JAX's documentation describes it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from xtrace._src.core.dtypes import (
    COMPLEX,
    FLOATS,
    SIGNED_INTEGERS,
    SMALL_FLOATS,
    UNSIGNED_INTEGERS,
    DType,
    all_dtypes,
    bit_width,
    canonicalize,
    complex128,
    families,
    float0,
    float64,
    full_name,
    int64,
    uint64,
)
from xtrace._src.core.tables import Table


class TypePromotionError(ValueError):
    """Values of these dtypes do not promote to a common dtype. Convert one of them with ``astype``."""

    __module__ = "xtrace.dtypes"


class ExtendedPromotionError(TypePromotionError, TypeError):
    """Random keys do not promote with another dtype. Both bases: JAX raises one or the other, by function."""


class _Lattice:
    """A partial order of names, given by its upward edges; the join of names is their least common upper bound.

    Each name is represented by the set (a bit mask) of all names at or above it. The common upper bounds of several
    names are the intersection of their sets. The least of these is the name whose set is this intersection.
    """

    def __init__(self, edges: dict[str, str]) -> None:
        above: dict[str, set[str]] = {}

        def climb(name: str) -> set[str]:
            if name not in above:
                above[name] = {name}.union(*(climb(upper) for upper in edges.get(name, "").split()))
            return above[name]

        names = sorted({*edges, *" ".join(edges.values()).split()})
        bit = {name: 1 << position for position, name in enumerate(names)}
        self.mask = {name: sum(bit[upper] for upper in climb(name)) for name in names}
        self.name_of = {mask: name for name, mask in self.mask.items()}

    def join(self, names: Iterable[str]) -> str | None:
        """Return the least upper bound of `names`, None where there is none."""
        return self.name_of.get(reduce(and_, [self.mask[name] for name in names]))


def _names(dtypes: Iterable[DType]) -> str:
    return " ".join(d.name for d in dtypes)


# int*, float* and complex* are weak scalars: below the dtypes of their kind and above the dtypes of the kind before.
# Narrow integers and small floats have nothing above them. So narrow integers join with bool and int* only, and small
# floats with everything below float*, such as the ordinary integers.
_standard = _Lattice(
    {
        "bool": "int*", "int*": _names(d for d in SIGNED_INTEGERS + UNSIGNED_INTEGERS if d.itemsize == 1),
        "uint8": "uint16 int16", "uint16": "uint32 int32", "uint32": "uint64 int64", "uint64": "float*",
        "int8": "int16", "int16": "int32", "int32": "int64", "int64": "float*",
        "float*": f"complex* float16 bfloat16 {_names(SMALL_FLOATS)}",
        "float16": "float32", "bfloat16": "float32", "float32": "float64 complex64", "float64": "complex128",
        "complex*": "complex64", "complex64": "complex128",
    }
)

# In strict mode a weak scalar becomes any dtype of its kind or a later one, and no dtype becomes another.
_strict = _Lattice(
    {
        "bool": "", "int*": f"float* {_names(SIGNED_INTEGERS + UNSIGNED_INTEGERS)}",
        "float*": f"complex* {_names(FLOATS)}", "complex*": _names(COMPLEX),
    }
)

_weak_names = {
    np.bool_: "bool", np.signedinteger: "int*", np.unsignedinteger: "int*",
    np.floating: "float*", np.complexfloating: "complex*",
}
_weak_results = {"int*": int64, "float*": float64, "complex*": complex128}
_widest = {np.signedinteger: int64, np.unsignedinteger: uint64, np.floating: float64, np.complexfloating: complex128}

_promotions = Table(10_000)


def promote(
    dtypes_and_weak: tuple[tuple[Any, bool], ...], x64: bool, mode: str = "standard", wide: bool | None = None
) -> tuple[np.dtype[Any], bool]:
    """Return the dtype, and whether it is weak, of an operation on values of the given dtypes and weakness.

    In the mode 'strict' only weak scalars change their dtype. wide: whether strong results may have 64 bits; by default
    `x64`. Raises TypePromotionError if there is no common dtype. The rule is the join in a lattice of dtypes (JAX's
    documentation, "Type promotion semantics").
    """
    wide = x64 if wide is None else wide
    key = (dtypes_and_weak, x64, mode, wide)
    promoted = _promotions.get(key)
    if promoted is None:
        if not dtypes_and_weak:
            raise ValueError("promotion of no values; give at least one array or dtype")
        promoted = _promote(dtypes_and_weak, x64, mode, wide)
        _promotions.remember(key, promoted)
    return promoted


def _promote(given: tuple[tuple[Any, bool], ...], x64: bool, mode: str, wide: bool) -> tuple[Any, bool]:
    pairs = {(canonicalize(dtype, wide), weak) for dtype, weak in given}
    dtypes = {dtype for dtype, _ in pairs}
    if not dtypes <= families.keys():
        if len(dtypes) > 1:
            raise ExtendedPromotionError(_no_promotion(dtypes, pairs, mode))
        return dtypes.pop(), False
    if all(weak for _, weak in pairs) and (mode != "strict" or len(given) == 1):
        # Weak values alone promote as strong ones would, and the result is the default dtype of its kind.
        name = _standard.join(d.name for d in dtypes)
        weak = name != "bool"
    else:
        lattice = _strict if mode == "strict" else _standard
        name = lattice.join(_weak_names[families[d]] if weak else d.name for d, weak in pairs)
        weak = name in _weak_results
    if name is None:
        raise TypePromotionError(_no_promotion(dtypes, pairs, mode))
    dtype = _weak_results[name] if name in _weak_results else all_dtypes[name]
    return (canonicalize(_widest[families[dtype]], x64), True) if weak else (canonicalize(dtype, wide), False)


def _no_promotion(dtypes: set[Any], pairs: set[tuple[Any, bool]], mode: str) -> str:
    shown = " and ".join(sorted(full_name(d) + (" (weak)" if weak else "") for d, weak in pairs))
    if not dtypes <= families.keys():
        if float0 in dtypes:
            meant = "float0 is the derivative by an integer, and holds nothing; differentiate by a float"
        else:
            meant = "random keys combine only with their own dtype; fold_in(key, n) makes another key of a number"
        return f"{shown} have no common dtype; {meant}"
    target = max((d for d, _ in pairs), key=lambda d: (bit_width(d), d.name))
    advice = f"convert one explicitly, for example x.astype('{target.name}')"
    if mode == "strict":
        return f"{shown} differ, and jax_numpy_dtype_promotion is 'strict'; {advice}, or set it to 'standard'"
    return f"{shown} have no common dtype; integers and floats of few bits promote to no other; {advice}"
