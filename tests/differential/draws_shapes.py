"""Rows of functions that change shapes, join, split, take and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import (
    ARRAYS,
    EVERY,
    FORMS,
    INTEGERS,
    MATRICES,
    PAIRS,
    PLAIN,
    REAL,
    SHAPES,
    VECTORS,
    axis,
    family,
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

_ANY = operand(kind="any")
_ARRAY = operand(kind="any", forms=ARRAYS)
_DTYPES = sampled(np.float32, "int8", bool, complex, float, np.float16)


def one(*more: Any, **choices: Any) -> Row:
    """Return the row of a function of an operand, further arguments and keywords."""
    return Row(given_as(_ANY, *more, **choices))


@st.composite
def with_axes(draw: Any, *makers: Any, optional: str = "", **choices: Any) -> Any:
    """Draw an operand, and further arguments by functions of its rank, the keywords `optional` too."""
    x = draw(_ARRAY)
    rank = rank_of(x)
    keywords = {name: axis(rank) for name in optional.split()}
    return (x, *[draw(make(rank)) for make in makers]), draw(options(**keywords, **choices))


@st.composite
def reshaped(draw: Any) -> Any:
    """Draw an operand and a shape for its elements, mostly."""
    # jax leaves NumPy's arrays to their own method, which returns NumPy's.
    x = draw(operand(kind="any", forms=[*PLAIN, "weak"]))
    size = int(np.prod(shape_of(x)))
    shape = draw(sampled((size,), -1, (-1, 1), (1, size, 1), [size], size, (2, -1), (5, -1), (0, -1)))
    return (x, shape), draw(options(order=sampled("C", "F", "A", "K")))


@st.composite
def sequence(draw: Any, dtypes: Sequence[Any] = EVERY, alike: bool = True, **choices: Any) -> Any:
    """Draw a sequence of operands, mostly of one shape, as a list, a tuple or one array."""
    shape = draw(st.sampled_from(SHAPES))
    others = [shape] if alike else SHAPES
    found = [draw(operand(dtypes, [shape], forms=FORMS))]
    found += [draw(operand(dtypes, draw(st.sampled_from([[shape], others])))) for _ in range(draw(st.integers(0, 2)))]
    given = draw(sampled(list, tuple))(found)
    if draw(st.integers(0, 7)) == 0:
        given = found[0]
    return (given,), draw(options(**choices))


@st.composite
def split(draw: Any, any_axis: bool = True) -> Any:
    """Draw an operand, sections or places to cut it at, and mostly an axis."""
    x = draw(_ARRAY)
    places = draw(sampled(1, 2, 3, [1], [0, 2], (1, 5), np.array([1, 2])))
    return (x, places), draw(options(axis=axis(rank_of(x)))) if any_axis else {}


@st.composite
def padded(draw: Any) -> Any:
    """Draw an operand, widths and a mode with its own keywords."""
    x = draw(_ARRAY)
    rank = rank_of(x)
    width = draw(sampled(1, 0, 2, (1, 2), [(1, 2)] * max(rank, 1), ((0, 1),) * max(rank, 1), [(1, 2, 3)], -1))
    mode = draw(sampled("constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
                        "symmetric", "wrap", "empty", "other"))
    own: dict[str, Any] = {
        "constant": {"constant_values": sampled(1, 2.5, (1, 2))}, "linear_ramp": {"end_values": sampled(1, (1, 2))},
        "maximum": {"stat_length": sampled(1, 2)}, "mean": {"stat_length": sampled(2, (1, 2))},
        "reflect": {"reflect_type": sampled("even", "odd")}, "symmetric": {"reflect_type": sampled("even", "odd")},
    }.get(mode, {})
    return (x, width, mode), draw(options(**own))


@st.composite
def taken(draw: Any, along: bool = False) -> Any:
    """Draw an operand, indices into an axis of it, and how those out of range are taken."""
    x = draw(_ARRAY)
    rank, shape = rank_of(x), shape_of(x)
    dtype = draw(st.sampled_from(INTEGERS))
    found = draw(options(mode=sampled("clip", "wrap", "fill", "other"), fill_value=sampled(0, 7)))
    chosen = draw(axis(rank, none=True))
    own = draw(st.sampled_from([(2,), (), (1, 2), (0,)]))
    if along:
        found.pop("mode") if found.get("mode") == "wrap" else None
        own = tuple([2 if i == (chosen or 0) % max(rank, 1) else n for i, n in enumerate(shape)])
        own = (4,) if chosen is None else own
    low = 0 if dtype.kind == "u" else -3
    indices = np.random.default_rng(draw(seeds)).integers(low, 4, own).astype(dtype)
    given = draw(sampled(Operand(indices), Operand(indices), indices))
    if along:
        return (x, given, chosen), found
    return (x, given), found if chosen is None else {**found, "axis": chosen}


@st.composite
def repeated(draw: Any) -> Any:
    """Draw an operand, how often, and mostly an axis and the length of the result."""
    x = draw(_ARRAY)
    repeats = draw(sampled(2, 0, 1, [1, 2, 0], np.array([2, 1, 3]), [2], Operand(np.array([1, 0, 2], np.int32)), -1))
    found = draw(options(axis=axis(rank_of(x), none=True), total_repeat_length=sampled(0, 3, 6)))
    if isinstance(repeats, int) and (0 in shape_of(x) or "total_repeat_length" in found):
        # Of no elements, and where the length is given, jax takes negative numbers.
        repeats = abs(repeats)
    return (x, repeats), found


def values_for(x: Any, shapes: Sequence[tuple[int, ...]]) -> st.SearchStrategy[Any]:
    """Return a strategy for what is put into an operand: with others jax takes large integers through floats."""
    own = np.asarray(x.value if isinstance(x, Operand) else x).dtype
    return operand([own] if own.kind in "iu" else EVERY, shapes, forms=ARRAYS)


@st.composite
def placed(draw: Any) -> Any:
    """Draw an operand, positions, values and a mode."""
    x = draw(_ARRAY)
    indices = numbers(draw(st.sampled_from(INTEGERS)), draw(st.sampled_from([(2,), (), (3,)])), draw(seeds))
    values = draw(values_for(x, [(), (2,), (3,)]))
    return (x, Operand(indices), values), {"inplace": False, **draw(options(mode=sampled("clip", "wrap", "other")))}


@st.composite
def placed_along(draw: Any) -> Any:
    """Draw an operand, indices along an axis of it, and values for them."""
    (x, indices, chosen), found = draw(taken(along=True))
    values = draw(operand(shapes=[(), shape_of(indices)], forms=ARRAYS))
    # Of no places jax takes any mode.
    wanted = {k: v for k, v in found.items() if k == "mode" and 0 not in shape_of(indices)}
    return (x, indices, values, chosen), {"inplace": False, **wanted}


@st.composite
def inserted(draw: Any, delete: bool = False) -> Any:
    """Draw an operand, places in it, what to insert there, and mostly an axis."""
    x = draw(operand(forms=ARRAYS))
    where = draw(sampled(0, 1, -1, [0, 2], [1], slice(0, 2), np.array([0, 1]), slice(None, None, 2), 9,
                         Operand(np.array(1, np.int32)), Operand(np.array([0, 1], np.int32))))
    found = draw(options(axis=axis(rank_of(x), none=True)))
    if delete:
        return (x, where), found
    return (x, where, draw(operand(shapes=[(), (), (2,), (1,), (3,)]))), found


@st.composite
def masked(draw: Any) -> Any:
    """Draw a condition and an operand of its shape, with a size for what is taken."""
    x = draw(_ARRAY)
    condition = draw(operand([np.dtype(bool), np.dtype(np.int32)], [shape_of(x)], forms=ARRAYS))
    return (condition, x), draw(options(size=sampled(0, 2, 9), fill_value=sampled(0, 7)))


@st.composite
def place_arguments(draw: Any) -> Any:
    """Draw an operand, a mask of its shape and the values for the places."""
    (condition, x), _ = draw(masked())
    return (x, condition, draw(values_for(x, [(2,), (1,), (), (3,)]))), {"inplace": False}


@st.composite
def compressed(draw: Any) -> Any:
    """Draw a condition for an axis, and an operand."""
    x = draw(_ARRAY)
    condition = draw(st.one_of(sampled([True, False], [True, True, False], [1, 0]), operand([np.dtype(bool)], VECTORS)))
    found = draw(options(axis=axis(rank_of(x)), size=sampled(1, 3), fill_value=sampled(0, 5)))
    return (condition, x), found


@st.composite
def chosen_from(draw: Any) -> Any:
    """Draw indices and the arrays to choose from."""
    shapes = draw(st.sampled_from(PAIRS))
    indices = np.random.default_rng(draw(seeds)).integers(-1, 4, shapes[0]).astype(np.int32)
    choices = [draw(operand(shapes=[shapes[1]], forms=ARRAYS)) for _ in range(draw(st.integers(1, 3)))]
    return (Operand(indices), choices), draw(options(mode=sampled("wrap", "clip", "raise", "other")))


@st.composite
def selected(draw: Any) -> Any:
    """Draw conditions and as many arrays, mostly."""
    shapes, count = draw(st.sampled_from(PAIRS)), draw(st.integers(1, 3))
    conditions = [Operand(numbers(bool, shapes[0], draw(seeds))) for _ in range(count)]
    choices = [draw(operand(shapes=[shapes[1]])) for _ in range(count + (draw(st.integers(0, 9)) == 0))]
    return (conditions, choices), draw(options(default=sampled(0, 1.5, -1)))


@st.composite
def rolled(draw: Any) -> Any:
    """Draw an operand, shifts and mostly axes."""
    x = draw(_ARRAY)
    rank = rank_of(x)
    if draw(st.integers(0, 2)):
        shift = draw(st.one_of(st.integers(-4, 4), st.just(Operand(np.array(2, np.int32)))))
        return (x, shift), draw(options(axis=axis(rank, none=True)))
    return (x, draw(sampled((1, 2), (1,), (-1, 3)))), {"axis": draw(sampled((0, 1), 0, (-1, 0)))}


_shapes = sampled((2, 3), (3,), (), (4, 2, 3), 3, (2, 2, 3), (0,), (2, 0), (1, 3), (-1, 3), [2, 3])
_PAST_THE_END = "places to split at past the end, as in NumPy"
_moves = sampled((0, 1), (0, -1), ((0, 1), (1, 0)), ((0,), (2,)), ((0, 1), (0,)), (1, 5))

NUMPY: dict[str, Row] = {
    **family("atleast_1d atleast_2d atleast_3d", one()),
    "broadcast_arrays": Row(paired()),
    "broadcast_to": Row(given_as(_ANY, _shapes)),
    "broadcast_shapes": Row(given_as(_shapes, _shapes), modes=("value",)),
    **family("reshape", Row(reshaped(), errors="jax divides by the number of none")),
    "ravel": one(order=sampled("C", "F", "A", "K")),
    "resize": Row(given_as(_ANY, _shapes), wider="shapes as lists"),
    "transpose": Row(with_axes(axes=sampled((1, 0), (0,), (2, 0, 1), None, (-1, 0), (0, 0)))),
    "permute_dims": Row(with_axes(lambda rank: st.permutations(range(rank)).map(tuple))),
    "matrix_transpose": one(),
    "swapaxes": Row(with_axes(axis, axis)),
    "moveaxis": Row(st.tuples(_ARRAY, _moves).map(lambda a: ((a[0], *a[1]), {}))),
    "rollaxis": Row(with_axes(axis, optional="start")),
    "expand_dims": Row(with_axes(lambda rank: sampled(0, -1, rank, -rank - 1, (0, 1), (0, -1), (0, 0), rank + 2))),
    "squeeze": Row(with_axes(axis=sampled(0, 1, -1, (0,), (0, 1), None, ()))),
    "flip": Row(with_axes(axis=sampled(0, 1, -1, (0,), (0, 1), None, ()))),
    **family("fliplr flipud", one()),
    "rot90": Row(with_axes(k=sampled(0, 1, 2, 3, -1, 5), axes=sampled((0, 1), (1, 0), (0, -1), (0, 0), (1, 2)))),
    "roll": Row(rolled()),
    "tile": Row(given_as(_ANY, sampled(2, (2,), (1, 2), (2, 1, 1), 0, (), [2, 2], (0, 1)))),
    "repeat": Row(repeated()),
    "concatenate": Row(sequence(axis=sampled(0, -1, 1, None, 5), dtype=_DTYPES)),
    "concat": Row(sequence(axis=sampled(0, -1, 1, None, 5))),
    "stack": Row(sequence(axis=sampled(0, -1, 1, 5), dtype=_DTYPES)),
    **family("hstack vstack dstack", Row(sequence(alike=False, dtype=_DTYPES))),
    "column_stack": Row(sequence()),
    "block": Row(sequence()),
    "append": Row(st.tuples(paired(), options(axis=sampled(0, -1, None))).map(lambda a: (a[0][0], a[1]))),
    **family("split array_split", Row(split(), wider=_PAST_THE_END)),
    **family("hsplit vsplit dsplit", Row(split(any_axis=False), wider=_PAST_THE_END)),
    "unstack": Row(with_axes(optional="axis")),
    "pad": Row(padded(), floor=4.0, wider="ramps of no elements"),
    "take": Row(taken()),
    "take_along_axis": Row(taken(along=True)),
    "put": Row(placed(), wider="values for a scalar, as in NumPy", errors="of several faults jax names another"),
    "put_along_axis": Row(placed_along(), wider="no places in arrays of none"),
    "place": Row(place_arguments(), modes=("value",)),
    "insert": Row(inserted()),
    "delete": Row(inserted(delete=True)),
    "extract": Row(masked()),
    "compress": Row(compressed(), wider="a size, where there is no condition"),
    "choose": Row(chosen_from()),
    "select": Row(selected()),
    "diag": one(k=sampled(0, 1, -1, 5)),
    "diagflat": one(k=sampled(0, 1, -1)),
    **family("diagonal trace", Row(with_axes(optional="axis1 axis2", offset=sampled(0, 1, -1, 7)), floor=4.0)),
    **family("tril triu", one(k=sampled(0, 1, -1, 5))),
    "fill_diagonal": Row(_ARRAY.flatmap(lambda x: given_as(
        st.just(x), values_for(x, [(), (), (2,)]), wrap=st.booleans())).map(
            lambda a: (a[0], {**a[1], "inplace": False}))),
    "vander": Row(given_as(operand(shapes=[*VECTORS, (2, 3), ()]), N=sampled(0, 2, 4), increasing=st.booleans()),
                  wider="booleans"),
    # jax looks at the real parts only.
    "trim_zeros": Row(given_as(operand(REAL, VECTORS), trim=sampled("fb", "f", "b")), modes=("value",)),
    "packbits": Row(given_as(operand([np.dtype(bool), *INTEGERS, *EVERY[:1]], forms=ARRAYS),
                             axis=sampled(0, -1, 1, None), bitorder=sampled("big", "little")), wider="scalars"),
    "unpackbits": Row(given_as(operand([np.dtype(np.uint8)] * 4 + REAL, forms=ARRAYS), axis=sampled(0, -1, None),
                               bitorder=sampled("big", "little"), count=sampled(0, 3, 9, -2)),
                      wider="no bytes"),
    "tril_indices_from": Row(given_as(operand(shapes=MATRICES, forms=ARRAYS), k=sampled(0, 1, -1)), modes=("value",)),
    "triu_indices_from": Row(given_as(operand(shapes=MATRICES, forms=ARRAYS), k=sampled(0, 1, -1)), modes=("value",)),
    "diag_indices_from": Row(given_as(operand(shapes=MATRICES, forms=ARRAYS)), modes=("value",)),
    "astype": Row(given_as(operand(kind="quarters"), _DTYPES)),
    "copy": one(order=sampled("K", "C"))._replace(wider="order 'C', which every array is in"),
    "array_equal": Row(given_as(_ANY, _ANY, equal_nan=st.booleans()), modes=("value", "vmap")),
    "array_equiv": Row(given_as(_ANY, _ANY), modes=("value", "vmap"), wider="NumPy's answer where none broadcast"),
    "allclose": Row(given_as(_ANY, _ANY, rtol=sampled(0.5), atol=sampled(0.1), equal_nan=st.booleans())),
    "interp": Row(given_as(operand(REAL), st.just(Operand(np.array([-1, 0.25, 2], np.float32))),
                           operand(EVERY, [(3,), (3,), (4,)]), left=sampled(-5, 1.5), right=sampled(7),
                           period=sampled(2.5)), floor=8.0),
    "piecewise": Row(given_as(_ARRAY, sampled([True], [False]), sampled([1, 2], [3], [1.5, -2.5]))),
    # jax takes fractions, and gives them back.
    "unravel_index": Row(given_as(
        operand(INTEGERS, kind="positive", forms=ARRAYS), sampled((2, 3), (6,), (), (4, 2, 3), 5)),
        modes=("value", "vmap")),
    "ravel_multi_index": Row(given_as(
        st.tuples(*[operand(INTEGERS, [(3,)], "positive")] * 2), sampled((5, 6), (2, 3)),
        mode=sampled("raise", "wrap", "clip"), order=sampled("C", "F")), modes=("value", "vmap"), wider="booleans"),
}
