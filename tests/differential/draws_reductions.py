"""Rows of reductions, running sums, sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy
import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import (
    ARRAYS,
    EVERY,
    FORMS,
    INEXACT,
    INTEGERS,
    REAL,
    SHAPES,
    VECTORS,
    axes,
    axis,
    family,
    given_as,
    operand,
    options,
    rank_of,
    sampled,
    shape_of,
)
from tests.support.draws import Operand, Row, numbers
from tests.support.operands import seeds

# For result dtypes: those that Python, NumPy and jax write.
_RESULTS = sampled(np.float32, "int32", np.float16, jax.numpy.bfloat16, float, int, complex, bool, "uint8", np.float64)


@st.composite
def reduction(
    draw: Any, keywords: str = "", dtypes: Sequence[Any] = EVERY, kind: str = "quarters", several: bool = True
) -> Any:
    """Draw the arguments of a reduction: an operand, axes, keepdims, and what else `keywords` names."""
    x = draw(operand(dtypes, kind=kind))
    rank, shape = rank_of(x), shape_of(x)
    found = draw(options(axis=axes(rank) if several else axis(rank, none=True), keepdims=st.booleans()))
    words = keywords.split()
    # Extrema of nothing want an initial value.
    if "where" in words and draw(st.integers(0, 3)) == 0:
        kept = shape[draw(st.integers(0, rank)) :]
        found["where"] = Operand(numbers(bool, kept, draw(seeds)))
        if "initial" in words and draw(st.integers(0, 2)):
            found["initial"] = draw(_initials)
    if "initial" in words and draw(st.integers(0, 5)) == 0:
        found["initial"] = draw(_initials)
    if "dtype" in words and draw(st.integers(0, 3)) == 0:
        found["dtype"] = draw(_RESULTS)
        # Of means of nothing: two zeros divided as integers, by XLA while it compiles, end jax's process.
        if "initial" not in words and 0 in shape and np.dtype(found["dtype"]).kind in "iu":
            del found["dtype"]
    if "ddof" in words and draw(st.integers(0, 2)) == 0:
        found["ddof"] = draw(sampled(0, 1, 2, 0.5))
    if "correction" in words and draw(st.integers(0, 4)) == 0:
        found["correction"] = draw(sampled(0, 1, 1.5))
    if "promote" in words and draw(st.integers(0, 4)) == 0:
        found["promote_integers"] = draw(st.booleans())
    if "method" in words and draw(st.integers(0, 1)) == 0:
        found["method"] = draw(sampled("linear", "lower", "higher", "midpoint", "nearest"))
    if "q" in words:
        shares = operand([np.float32], [(), (2,), (0,), (1, 2)], "positive")
        q = draw(st.one_of(shares, sampled(0, 1, 0.25, [0.5, 1.0])))
        return (x, q), found
    return (x,), found


_initials = st.one_of(sampled(0, 2, -1.5, True), st.builds(lambda s: Operand(numbers(np.float32, (), s)), seeds))


@st.composite
def along(draw: Any, dtypes: Sequence[Any] = EVERY, kind: str = "quarters", forms: Any = FORMS, **choices: Any) -> Any:
    """Draw an operand, mostly an axis, and keywords."""
    x = draw(operand(dtypes, kind=kind, forms=forms))
    return (x,), {**draw(options(axis=axis(rank_of(x), none=True))), **draw(options(**choices))}


@st.composite
def partitioned(draw: Any) -> Any:
    """Draw an operand, a position and mostly an axis."""
    x = draw(operand(kind="any", forms=ARRAYS))
    return (x, draw(st.integers(-3, 2))), draw(options(axis=axis(rank_of(x))))


@st.composite
def searched(draw: Any, right: bool = False) -> Any:
    """Draw a sorted vector and values to look for."""
    dtype = draw(st.sampled_from(REAL))
    sorted_ = np.sort(numbers(dtype, draw(st.sampled_from(VECTORS)), draw(seeds)))
    values = draw(operand([dtype, *REAL], SHAPES))
    method = draw(options(method=sampled("scan", "scan_unrolled", "sort", "compare_all", "default")))
    if right:
        return (values, Operand(sorted_)), {**method, **draw(options(right=st.booleans()))}
    return (Operand(sorted_), values), {**method, **draw(options(side=sampled("left", "right", "middle")))}


@st.composite
def averaged(draw: Any) -> Any:
    """Draw an operand, and weights of its shape or of its axis."""
    x = draw(operand(forms=ARRAYS))
    rank, shape = rank_of(x), shape_of(x)
    found = draw(options(axis=axes(rank), returned=st.booleans(), keepdims=st.booleans()))
    if draw(st.booleans()):
        of_axis = type(found.get("axis")) is int and -rank <= found["axis"] < rank
        own = (shape[found["axis"]],) if of_axis and draw(st.booleans()) else shape
        found["weights"] = Operand(numbers(draw(st.sampled_from(REAL)), own, draw(seeds), "positive"))
    return (x,), found


NUMPY: dict[str, Row] = {
    **family("sum prod", Row(reduction("where initial dtype promote"), floor=16.0)),
    **family("nansum nanprod", Row(reduction("where initial dtype", kind="any"), floor=400.0)),
    **family("max min amax amin nanmax nanmin", Row(reduction("where initial", kind="any"))),
    **family("any all", Row(reduction("where", kind="any"), modes=("value", "vmap"))),
    "ptp": Row(reduction()),
    "count_nonzero": Row(reduction(kind="any"), modes=("value", "vmap")),
    **family("mean nanmean", Row(reduction("where dtype"), floor=4.0)),
    **family("var std", Row(reduction("where dtype ddof correction"), rounding=16, floor=4.0)),
    **family("nanvar nanstd", Row(reduction("where dtype ddof"), rounding=16, floor=4.0)),
    **family("median nanmedian", Row(reduction(), floor=4.0)),
    **family("quantile nanquantile percentile nanpercentile", Row(reduction("q method"), rounding=16, floor=4.0)),
    **family("argmax argmin nanargmax nanargmin", Row(reduction(kind="any", several=False), modes=("value", "vmap"))),
    "average": Row(averaged(), floor=4.0),
    **family("cumsum cumprod nancumsum nancumprod", Row(along(dtype=_RESULTS), floor=16.0, wider="scalars as vectors")),
    **family("cumulative_sum cumulative_prod", Row(along(dtype=_RESULTS, include_initial=st.booleans()), floor=16.0)),
    "sort": Row(along(kind="any", descending=st.booleans(), stable=st.booleans())),
    "argsort": Row(along(kind="any", descending=st.booleans(), stable=st.booleans()), modes=("value", "vmap")),
    "sort_complex": Row(given_as(operand())),
    "lexsort": Row(along(kind="quarters", forms=ARRAYS), modes=("value", "vmap")),
    **family("partition argpartition", Row(partitioned(), wider="booleans under vmap")),
    "searchsorted": Row(searched(), modes=("value", "vmap")),
    "digitize": Row(searched(right=True), modes=("value", "vmap")),
    # Of no elements jax fills with zeros, whatever is asked for.
    **family("argwhere nonzero flatnonzero", Row(
        given_as(operand(kind="any"), size=sampled(0, 2, 7), fill_value=sampled(-1, 3)).filter(
            lambda a: 0 not in shape_of(a[0][0])), modes=("value", "vmap"))),
    "bincount": Row(given_as(
        operand(INTEGERS, VECTORS, "positive"), minlength=sampled(0, 6), length=sampled(0, 3, 8),
        weights=operand(REAL, VECTORS[:1], forms=ARRAYS)),
        wider="NumPy's values without length under jit, whose largest is known"),
    "trapezoid": Row(along(dx=sampled(0.5, 2), x=operand(REAL, [(3,)], forms=ARRAYS)), floor=16.0,
                     errors="of no samples jax names the index"),
    "diff": Row(along(n=sampled(0, 1, 2), prepend=sampled(0, 1.5), append=sampled(2))),
    "ediff1d": Row(given_as(operand(), to_begin=operand(shapes=VECTORS), to_end=operand(shapes=VECTORS))),
    "gradient": Row(along(INEXACT, edge_order=sampled(1)), floor=4.0),
    # Of integers, none of them, jax returns floats.
    "unwrap": Row(along(REAL, period=sampled(2, 3.5), discont=sampled(1.5)).filter(
        lambda a: 0 not in shape_of(a[0][0])), floor=16.0, errors="of scalars jax names the type"),
    **family("size", Row(along(), modes=("value", "vmap"))),
    **family("ndim shape", Row(given_as(operand(forms=[*FORMS, "list"])), modes=("value",))),
}
