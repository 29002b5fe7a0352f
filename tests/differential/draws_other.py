"""Rows of creation, sets, histograms, dtypes, nn, special functions, images and segments."""

from __future__ import annotations

from typing import Any

import jax.numpy
import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import (
    ARRAYS,
    EVERY,
    FLOATS,
    FORMS,
    INTEGERS,
    PLAIN,
    REAL,
    SHAPES,
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

_VALUE = ("value",)
_BATCHED = ("value", "vmap")
_DTYPES = sampled(np.float32, "int8", bool, complex, float, int, np.float16, jax.numpy.bfloat16, np.int64, "uint8")
_SHAPES = sampled((2, 3), (), 3, (0,), [2, 1], (-1,), np.int32(2))
_NUMBERS = sampled(0, 1, 5, -2, 2.5, True, 3)
_ANY = operand(kind="any", forms=[*FORMS, "list"])


@st.composite
def ranges(draw: Any) -> Any:
    """Draw the ends and the step of a range."""
    count = draw(st.integers(1, 3))
    numbers_ = sampled(0, 1, 5, -2, 2.5, 7, 3) if count < 3 else sampled(1, 2, -1, 0.5, 5, 9)
    return tuple(draw(numbers_) for _ in range(count)), draw(options(dtype=sampled(np.float32, np.int8, float, int)))


@st.composite
def spaced(draw: Any, positive: bool = False) -> Any:
    """Draw the ends and the number of spaced values."""
    kind = "positive" if positive else "quarters"
    ends = [draw(operand(shapes=[(), (), (3,)], kind=kind)) for _ in range(2)]
    found = draw(options(num=sampled(1, 0, 5, 7), endpoint=st.booleans(), axis=sampled(0, -1),
                         dtype=sampled(np.float32, np.float16, "int32")))
    return tuple(ends), found


@st.composite
def like(draw: Any, fill: bool = False) -> Any:
    """Draw an array, what to fill with, a dtype and a shape."""
    x = draw(_ANY)
    more = (draw(operand(shapes=[(), (3,)])),) if fill else ()
    return (x, *more), draw(options(dtype=_DTYPES, shape=sampled((2, 3), 3, ())))


@st.composite
def sets(draw: Any, count: int = 2, **choices: Any) -> Any:
    """Draw operands with repeated values, and a size for the result."""
    found = tuple(draw(operand(shapes=[(3,), (4,), (2, 3), (0,), ()], forms=ARRAYS)) for _ in range(count))
    return found, draw(options(size=sampled(0, 2, 9), fill_value=sampled(0, -1, 3), **choices))


@st.composite
def histograms(draw: Any, edges: bool = False) -> Any:
    """Draw values, bins, a range and weights."""
    x = draw(operand(REAL, [(3,), (2, 3), (4,), ()], forms=ARRAYS))
    own: dict[str, Any] = {} if edges else {"density": st.booleans()}
    found = draw(options(bins=sampled(1, 4, [0, 1, 2], np.array([-1, 0, 0.5, 3])), range=sampled((-1, 2), (0.5, 1)),
                         weights=operand(FLOATS, [shape_of(x)], "positive", PLAIN), **own))
    return (x,), found


@st.composite
def normalized(draw: Any, where: bool = True, keepdims: bool = False, b: bool = False) -> Any:
    """Draw an operand, axes, and which elements count."""
    # The exponentials of differences that wrap are not finite.
    x = draw(operand([d for d in EVERY if d.kind != "u"]))
    rank, shape = rank_of(x), shape_of(x)
    found = draw(options(axis=axes(rank)))
    if where and draw(st.integers(0, 3)) == 0:
        found["where"] = Operand(numbers(bool, shape, draw(seeds)))
    if keepdims:
        found |= draw(options(keepdims=st.booleans()))
    if b:
        found |= draw(options(b=operand(FLOATS, [shape, ()], "positive"), return_sign=st.booleans()))
    return (x,), found


@st.composite
def attention(draw: Any) -> Any:
    """Draw query, key and value, and what is masked."""
    dtype = draw(st.sampled_from(FLOATS))
    heads = draw(sampled(2, 1))
    q, k, v = (Operand(numbers(dtype, s, draw(seeds))) for s in ((2, 3, 2, 4), (2, 4, heads, 4), (2, 4, heads, 4)))
    mask = st.builds(lambda s: Operand(numbers(bool, (2, 2, 3, 4), s) | (np.arange(4) == 0)), seeds)
    found = draw(options(mask=mask, is_causal=st.booleans(), scale=sampled(0.5, 1.0),
                         local_window_size=sampled(1, (1, 2)),
                         bias=operand([dtype], [(1, 2, 3, 4), (3, 4)], forms=PLAIN)))
    return (q, k, v), found


@st.composite
def segments(draw: Any) -> Any:
    """Draw values and the segments they belong to."""
    x = draw(operand(shapes=[(3,), (4,), (3, 2), (0,), (2, 3)], forms=ARRAYS))
    rank = draw(st.integers(1, max(rank_of(x), 1)))
    own = shape_of(x)[: draw(sampled(1, rank))]
    dtype = draw(st.sampled_from(INTEGERS))
    ids = np.random.default_rng(draw(seeds)).integers(0 if dtype.kind == "u" else -1, 4, own).astype(dtype)
    given = Operand(ids) if draw(st.booleans()) else ids
    return (x, given), draw(options(num_segments=sampled(2, 5, 4), mode=sampled("clip", "drop"),
                                    bucket_size=sampled(2, 3)))


@st.composite
def images(draw: Any, translated: bool = False) -> Any:
    """Draw an image, a size for it, and a method."""
    method = draw(sampled("linear", "bilinear", "cubic", "lanczos3", "linear" if translated else "nearest", "other"))
    shape = draw(st.sampled_from([(3, 4), (2, 3, 4)]))
    x = draw(operand([*FLOATS, np.dtype(np.int32)], [shape], forms=PLAIN))
    new = draw(sampled((5, 2), (3, 4), (1, 6), (0, 3), (2,)))
    new = (*shape[:-2], *new)
    found = draw(options(antialias=st.booleans()))
    if not translated:
        return (x, new, method), found
    values = draw(sampled(([0.5, 2], [0.25, -1]), ([1, 1.5], [0, 0.5])))
    scale, moved = (Operand(np.array(v, np.float32)) for v in values)
    return (x, new, (len(shape) - 2, len(shape) - 1), scale, moved, method), found


@st.composite
def hot(draw: Any) -> Any:
    """Draw indices and the number of classes."""
    x = draw(operand([*INTEGERS, *FLOATS[:1]], kind="quarters"))
    return (x, draw(sampled(0, 1, 3, 5))), draw(options(dtype=_DTYPES, axis=axis(rank_of(x) + 1)))


def points(*kinds: str, dtypes: Any = FLOATS, **changes: Any) -> Row:
    """Return the row of a function of operands of one shape, each with values of a kind."""
    operands = sampled(*SHAPES[:4]).flatmap(lambda s: st.tuples(*[operand(dtypes, [s], k, PLAIN) for k in kinds]))
    return Row(operands.map(lambda a: (a, {})), **changes)


def every(names: str, *kinds: str, **changes: Any) -> dict[str, Row]:
    """Return that row under each of the names."""
    return family(names, points(*kinds, **changes))


NUMPY: dict[str, Row] = {
    "arange": Row(ranges(), modes=_VALUE),
    **family("zeros ones empty", Row(given_as(_SHAPES, dtype=_DTYPES), modes=_VALUE)),
    "full": Row(given_as(_SHAPES, operand(shapes=[(), (3,)]), dtype=_DTYPES)),
    **family("zeros_like ones_like empty_like", Row(like(), modes=_BATCHED)),
    "full_like": Row(like(fill=True)),
    "eye": Row(given_as(sampled(3, 0, 2, -1), M=sampled(2, 4, None), k=sampled(0, 1, -1, 7), dtype=_DTYPES),
               modes=_VALUE),
    "identity": Row(given_as(sampled(3, 0, 1, -1), dtype=_DTYPES), modes=_VALUE),
    "tri": Row(given_as(sampled(3, 0, 2), M=sampled(2, 4, None), k=sampled(0, 1, -1), dtype=_DTYPES), modes=_VALUE),
    **family("tril_indices triu_indices", Row(given_as(sampled(3, 0, 2), k=sampled(0, 1, -1), m=sampled(2, 4)),
                                              modes=_VALUE)),
    "diag_indices": Row(given_as(sampled(3, 0, -1), ndim=sampled(1, 2, 3)), modes=_VALUE),
    "indices": Row(given_as(sampled((2, 3), (3,), ()), dtype=sampled(np.int8, float), sparse=st.booleans()),
                   modes=_VALUE),
    "linspace": Row(spaced(), floor=4.0),
    "logspace": Row(spaced(), rounding=64, floor=16.0),
    "geomspace": Row(spaced(positive=True), rounding=64, floor=16.0),
    **family("bartlett blackman hamming hanning", Row(given_as(sampled(0, 1, 2, 5, 8)), modes=_VALUE, floor=1.0)),
    "kaiser": Row(given_as(sampled(0, 1, 2, 5), sampled(0, 2.5, 14)), modes=_VALUE, floor=1.0),
    "meshgrid": Row(st.tuples(st.lists(operand(shapes=[(3,), (2,), (), (0,)]), max_size=3).map(tuple),
                              options(indexing=sampled("xy", "ij", "zz"), sparse=st.booleans()))),
    "ix_": Row(st.tuples(st.lists(operand(REAL, [(3,), (2,), (2, 3)], forms=ARRAYS), max_size=3).map(tuple),
                         st.just({})), modes=_BATCHED),
    **family("array asarray", Row(given_as(_ANY, dtype=_DTYPES))),
    "unique": Row(sets(1, return_index=st.booleans(), return_inverse=st.booleans(), return_counts=st.booleans(),
                       axis=sampled(0, None, 5)), modes=_BATCHED),
    **family("unique_all unique_counts unique_inverse unique_values", Row(sets(1), modes=_BATCHED)),
    # Of no elements and a size jax fills with an element of the other operand.
    "intersect1d": Row(sets(return_indices=st.booleans()).filter(
        lambda a: "size" not in a[1] or 0 not in shape_of(a[0][0]) + shape_of(a[0][1])), modes=_BATCHED,
        wider="a result of size 0"),
    **family("setdiff1d setxor1d union1d", Row(sets(), modes=_BATCHED, wider="a result of size 0")),
    "isin": Row(given_as(operand(), operand(), invert=st.booleans(),
                         method=sampled("auto", "compare_all", "binary_search", "sort")), modes=_BATCHED),
    # Widths of bins are differences of numbers some thirty times as large.
    "histogram": Row(histograms(), modes=_BATCHED, floor=1.0, rounding=64),
    "histogram_bin_edges": Row(histograms(edges=True), modes=_BATCHED, floor=4.0),
    "histogram2d": Row(given_as(operand(REAL, [(4,)], forms=PLAIN), operand(REAL, [(4,)], forms=PLAIN),
                                bins=sampled(2, [0, 1, 2]), density=st.booleans()), modes=_VALUE, floor=4.0),
    # Of no multiples of 1/4, which may be the edges of bins.
    "histogramdd": Row(given_as(operand(FLOATS, [(4, 2), (3, 1)], "unit", PLAIN), bins=sampled(2, 3)), modes=_VALUE,
                       floor=4.0),
    "mask_indices": Row(given_as(sampled(0, 2, 3), sampled(np.triu, np.tril), k=sampled(0, 1)), modes=_VALUE),
    "issubdtype": Row(given_as(sampled(np.float32, "int8", bool, np.floating),
                               sampled(np.floating, np.integer, float, np.number)), modes=_VALUE),
    "isdtype": Row(given_as(sampled(np.dtype("float32"), np.dtype("int8"), np.dtype(bool)),
                            sampled("real floating", "integral", "numeric", "bool", ("bool", "integral"), "other")),
                   modes=_VALUE),
    "can_cast": Row(given_as(sampled(np.float32, "int8", bool, complex), sampled(np.float32, "int16", float),
                             casting=sampled("safe", "same_kind", "unsafe", "no")), modes=_VALUE),
    "promote_types": Row(given_as(_DTYPES, _DTYPES), modes=_VALUE),
    "result_type": Row(st.tuples(st.lists(st.one_of(_DTYPES, operand()), min_size=1, max_size=3).map(tuple),
                                 st.just({})), modes=_VALUE),
    "iterable": Row(given_as(_ANY), modes=_VALUE),
}
NN: dict[str, Row] = {
    **family("relu relu6 sigmoid silu swish softplus sparse_plus sparse_sigmoid soft_sign log_sigmoid mish selu tanh "
             "hard_sigmoid hard_silu hard_swish hard_tanh identity", Row(given_as(operand()), floor=1.0)),
    "log1mexp": points("positive"),
    **family("celu elu", Row(given_as(operand(), alpha=sampled(1, 0.5)))),
    "gelu": Row(given_as(operand(), approximate=st.booleans()), floor=1.0),
    "leaky_relu": Row(given_as(operand(), negative_slope=sampled(0.5, 0))),
    "squareplus": Row(given_as(operand(), b=sampled(1, 2.5))),
    "glu": Row(given_as(operand(shapes=[(4,), (2, 3, 4), (2, 4), (3,)], forms=ARRAYS), axis=sampled(0, -1, 1))),
    **family("softmax log_softmax", Row(normalized(), floor=1.0)),
    "logsumexp": Row(normalized(keepdims=True, b=True), floor=4.0),
    "logmeanexp": Row(normalized(keepdims=True), floor=4.0),
    "standardize": Row(normalized(), rounding=64, floor=4.0),
    "one_hot": Row(hot(), modes=_BATCHED),
    "dot_product_attention": Row(attention(), rounding=64, floor=4.0, wider="float16 under jit, on CPUs too"),
}
SPECIAL: dict[str, Row] = {
    **family("erf erfc expit", Row(given_as(operand()))),
    # At 0 jax's slope is 1.
    **every("i0", "quarters", modes=_BATCHED, rounding=64),
    **every("i0e i1 i1e ndtr log_ndtr entr", "quarters", rounding=64),
    **every("gammaln loggamma digamma gamma factorial", "positive", rounding=256, floor=1.0),
    **every("gammasgn", "quarters"),
    **every("erfinv", "unit", rounding=64),
    # At 1 the slope is infinite, in jax 0.
    **every("logit", "positive", rounding=64), **every("ndtri", "quarters", modes=_BATCHED, rounding=64),
    **every("zeta", "positive", "positive", modes=_VALUE, rounding=64, floor=1.0),
    **every("betainc", "positive", "positive", "unit", modes=_VALUE, rounding=512, floor=1.0),
    "multigammaln": Row(given_as(operand(FLOATS, kind="positive", forms=PLAIN), sampled(1, 2)), modes=_BATCHED,
                        rounding=256, floor=4.0),
    "polygamma": Row(given_as(sampled(0, 1, 2), operand(FLOATS, kind="positive", forms=PLAIN)), modes=_BATCHED,
                     rounding=256, floor=4.0),
    **every("beta betaln poch comb boxcox boxcox1p gammainc gammaincc", "positive", "positive", modes=_BATCHED,
            rounding=512, floor=1.0),
    **every("kl_div rel_entr xlogy xlog1py", "positive", "positive", rounding=64, floor=4.0),
    **every("dawsn erfcx fresnel spence", "quarters", modes=_VALUE, rounding=64, floor=1.0),
    # Of float16 jax gives NaN.
    **every("exp1", "positive", dtypes=FLOATS[:3], modes=_VALUE, rounding=64, floor=1.0),
    **every("owens_t", "quarters", "quarters", modes=_VALUE, rounding=256, floor=1.0),
    **every("hyp1f1", "positive", "positive", "quarters", modes=_VALUE, rounding=256, floor=1.0),
    **family("softmax log_softmax", Row(normalized(where=False), floor=1.0)),
    "logsumexp": Row(normalized(keepdims=True, b=True), floor=4.0),
}
IMAGE: dict[str, Row] = {
    "resize": Row(images(), rounding=128, floor=16.0),
    "scale_and_translate": Row(images(translated=True), rounding=256, floor=16.0),
}
OPS: dict[str, Row] = family(
    "segment_max segment_min segment_prod segment_sum",
    Row(segments(), floor=16.0, wider="NumPy's segments without their number under jit, whose number is known"),
)
