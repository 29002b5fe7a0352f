"""Strategies for the arguments of families of functions: operands, and the tables of rows that use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support.draws import Operand, numbers
from tests.support.operands import ALL, COMPLEX, FLOAT, INTEGER, seeds

# Few, so that what was compiled for one call serves another.
SHAPES = [(3,), (2, 3), (), (0,), (2, 3, 4), (1, 3), (2, 0), (2, 1, 3, 2)]
VECTORS = [(3,), (4,), (1,), (0,)]
MATRICES = [(3, 3), (2, 2), (4, 2), (2, 3), (2, 3, 3), (0, 0), (1, 1)]
# Pairs of shapes that broadcast, and one that does not.
PAIRS = [
    ((3,), (3,)), ((2, 3), (3,)), ((), (2, 3)), ((2, 3), ()), ((2, 1), (1, 3)), ((0,), (1,)), ((2, 3), (2, 3)),
    ((), ()), ((2, 1, 3, 2), (1, 2)), ((3,), (4,)),
]
WIDE = [np.dtype(t) for t in (np.float64, np.int64, np.complex128, np.uint64)]
EVERY = [*FLOAT[:1] * 4, *INTEGER[2:3], *ALL, *WIDE]
REAL = [d for d in EVERY if d.kind != "c"]
INTEGERS = [*INTEGER, np.dtype(np.int64)]
INEXACT = [*FLOAT[:1] * 3, *FLOAT, *COMPLEX, np.dtype(np.float64), np.dtype(np.complex128)]
FLOATS = [d for d in INEXACT if d.kind != "c"]
# In what form an operand comes: mostly an array.
FORMS = ["array"] * 8 + ["weak", "weak", "numpy", "scalar", "generic"]
ARRAYS = ["array"] * 8 + ["weak", "numpy"]
PLAIN = ["array"]


@st.composite
def operand(
    draw: Any,
    dtypes: Sequence[Any] = EVERY,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    kind: str = "quarters",
    forms: Sequence[str] = FORMS,
) -> Any:
    """Draw an argument: an array, one weakly typed, a NumPy array or scalar, a Python scalar, a list."""
    dtype, shape, form = draw(st.sampled_from(dtypes)), draw(st.sampled_from(shapes)), draw(st.sampled_from(forms))
    if form == "scalar":
        return draw(st.sampled_from(_SCALARS[kind if kind in _SCALARS else "quarters"]))
    value = numbers(dtype, () if form == "generic" else shape, draw(seeds), kind)
    if form == "weak":
        weak = {"b": np.int32, "i": np.int32, "u": np.int32, "c": np.complex64}.get(value.dtype.kind, np.float32)
        with np.errstate(all="ignore"):
            return Operand(value.astype(weak), True)
    if form == "numpy":
        return value
    if form == "generic":
        return value[()]
    return value.tolist() if form == "list" else Operand(value)


_SCALARS: dict[str, list[Any]] = {
    "quarters": [2, 1.5, True, 0, -3, -0.25, 1 + 2j],
    "positive": [2, 1.5, True, 3],
    "unit": [0.5, -0.25, 0],
}


@st.composite
def options(draw: Any, **choices: Any) -> dict[str, Any]:
    """Draw keyword arguments, each left out more often than not."""
    return {
        key: draw(c if isinstance(c, st.SearchStrategy) else st.sampled_from(c))
        for key, c in choices.items()
        if draw(st.integers(0, 2)) == 0
    }


def given_as(*arguments: Any, **choices: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for positional arguments, each by its own, and keywords that may be left out."""
    return st.tuples(st.tuples(*arguments), options(**choices))


def sampled(*values: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for one of the values."""
    return st.sampled_from(values)


def family(names: str, row: Any, **changes: Any) -> dict[str, Any]:
    """Return the row under each of the names."""
    return {name: row._replace(**changes) for name in names.split()}


def rank_of(x: Any) -> int:
    """Return the rank of an operand in any form."""
    return np.ndim(x.value) if isinstance(x, Operand) else np.ndim(x)


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an operand in any form."""
    return np.shape(x.value) if isinstance(x, Operand) else np.shape(x)


def axis(rank: int, none: bool = False) -> st.SearchStrategy[Any]:
    """Return a strategy for an axis, sometimes out of range."""
    inside = st.integers(-rank, rank - 1) if rank else st.just(0)
    found = st.one_of(inside, inside, inside, inside, st.integers(-rank - 1, rank))
    return st.one_of(st.none(), found, found) if none else found


def axes(rank: int, none: bool = True) -> st.SearchStrategy[Any]:
    """Return a strategy for what reductions take as axes: None, one, several, sometimes a wrong one."""
    several = st.lists(st.integers(0, max(rank - 1, 0)), max_size=rank, unique=True)
    signed = several.flatmap(lambda a: st.tuples(*[st.sampled_from([i, i - max(rank, 1)]) for i in a]))
    return st.one_of(axis(rank, none), axis(rank, none), signed)


Strategy = Callable[..., st.SearchStrategy[Any]]
