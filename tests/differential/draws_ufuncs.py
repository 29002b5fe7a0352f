"""Rows of the methods of ufuncs, NumPy's and those of Python functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import (
    ARRAYS,
    EVERY,
    FORMS,
    INTEGER,
    PLAIN,
    REAL,
    axes,
    axis,
    given_as,
    operand,
    options,
    rank_of,
    sampled,
    shape_of,
)
from tests.differential.draws_elementwise import paired
from tests.support.draws import Operand, Row, numbers
from tests.support.operands import seeds

METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")
# Loops are compiled for most of them, so there are few shapes.
_SHAPES = [(3,), (2, 3), (0,), (), (2, 3, 2)]
_RESULTS = sampled(np.float32, "int32", np.float16)
_HIGH = [np.dtype(np.float32), np.dtype(np.float16)]
_WHOLE = [np.dtype(bool), *INTEGER]


@st.composite
def reduced(draw: Any, dtypes: Any, several: bool, typed: bool) -> Any:
    """Draw an operand, axes, an initial value, and which elements count."""
    x = draw(operand(dtypes, _SHAPES, forms=ARRAYS))
    rank, shape = rank_of(x), shape_of(x)
    found = draw(options(axis=axes(rank) if several else axis(rank, none=True), keepdims=st.booleans()))
    if typed and draw(st.integers(0, 4)) == 0:
        found["dtype"] = draw(_RESULTS)
    # jax wants those of logaddexp in the type of the operand.
    if dtypes is not _HIGH and draw(st.integers(0, 3)) == 0:
        found["initial"] = draw(sampled(0, 2, True))
    if draw(st.integers(0, 3)) == 0:
        found["where"] = Operand(numbers(bool, shape, draw(seeds)))
    return (x,), found


@st.composite
def accumulated(draw: Any, dtypes: Any, typed: bool) -> Any:
    """Draw an operand, and mostly an axis."""
    x = draw(operand(dtypes, _SHAPES, forms=ARRAYS))
    return (x,), draw(options(axis=axis(rank_of(x)), **({"dtype": _RESULTS} if typed else {})))


@st.composite
def updated(draw: Any, dtypes: Any, count: int = 2) -> Any:
    """Draw an operand, places in it that may repeat or lie outside, and values for them."""
    x = draw(operand(dtypes, [(3,), (4,), (2, 3)], forms=PLAIN))
    places = draw(st.one_of(sampled(0, -1, slice(0, 2)), st.lists(st.integers(-3, 4), max_size=3).map(
        lambda found: Operand(np.array(found, np.int32)))))
    values = (draw(operand(dtypes, [()], forms=ARRAYS)),) if count == 2 else ()
    return (x, places, *values), {"inplace": False}


@st.composite
def in_parts(draw: Any, dtypes: Any, forms: Any) -> Any:
    """Draw an operand, where its parts start, and mostly an axis."""
    x = draw(operand(dtypes, [(3,), (4,), (2, 3)], forms=forms))
    starts = np.array(draw(st.lists(st.integers(0, 3), max_size=4)), np.int32)
    return (x, Operand(starts)), draw(options(axis=axis(rank_of(x))))


def methods(
    dtypes: Any, several: bool = True, typed: bool = False, parts: Any = None, modes: Any = ("value", "vjp", "vmap")
) -> dict[str, Row]:
    """Return the rows of the methods of a function of two operands; jax heeds types of results where `typed`."""
    # Of truth values and weakly typed numbers jax makes weakly typed truth values.
    forms = FORMS if parts is None else PLAIN
    row = Row(st.nothing(), modes=modes, rounding=32, floor=16.0)
    return {
        "reduce": row._replace(arguments=reduced(dtypes, several, typed)),
        "accumulate": row._replace(arguments=accumulated(dtypes, typed), wider="scalars as vectors"),
        "at": row._replace(arguments=updated(dtypes), wider="results of another type, no places"),
        "reduceat": row._replace(arguments=in_parts(parts or dtypes, ARRAYS if parts is None else PLAIN)),
        "outer": row._replace(arguments=given_as(*[operand(dtypes, [(3,), (2,), (), (2, 3)], forms=forms)] * 2)),
    }


def mixed(x: Any, y: Any) -> Any:
    """Return a combination in which order matters."""
    return x + 2 * y


_FAMILIES = {
    "add multiply": methods(EVERY, typed=True),
    "maximum minimum": methods(EVERY),
    "subtract": methods(EVERY, several=False, typed=True),
    "logaddexp logaddexp2": methods(_HIGH),
    "bitwise_and bitwise_or bitwise_xor": methods(_WHOLE, modes=("value", "vmap")),
    # Of complex numbers jax reduces the real parts, and reduceat keeps types where NumPy gives booleans.
    "logical_and logical_or logical_xor": methods(REAL, parts=[np.dtype(bool)], modes=("value", "vmap")),
}
NUMPY: dict[str, Row] = {
    f"{name}.{method}": row
    for names, rows in _FAMILIES.items()
    for name in names.split()
    for method, row in rows.items()
}
NUMPY["negative.at"] = Row(updated(EVERY, 1), wider="no places")
NUMPY |= {
    f"frompyfunc.{method}": row._replace(
        function=lambda package, method=method: getattr(package.numpy.frompyfunc(mixed, 2, 1), method))
    for method, row in methods(EVERY, several=False, typed=True).items()
}
NUMPY["frompyfunc"] = Row(paired(EVERY), function=lambda package: package.numpy.frompyfunc(mixed, 2, 1))
