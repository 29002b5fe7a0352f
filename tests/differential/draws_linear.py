"""Rows of contractions, linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy
import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import (
    ARRAYS,
    EVERY,
    FLOATS,
    FORMS,
    INEXACT,
    MATRICES,
    PLAIN,
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
from tests.support.draws import Operand, Row, numbers
from tests.support.operands import seeds

_SINGLE = [np.dtype(np.float32)] * 3 + [np.dtype(np.complex64), np.dtype(np.float64), np.dtype(np.complex128)]
_PRODUCTS = [
    ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 1)), ((3,), (3, 2)),
    ((), (3,)), ((0,), (0,)), ((2, 0), (0, 3)), ((2, 3), (2, 3)), ((), ()), ((1, 2, 3), (2, 3, 2)),
]
_SUMMED = [((3,), (4,)), ((3,), (3,)), ((1,), (2,)), ((0,), (2,)), ((), (2,)), ((1, 3), (2, 3)), ((2, 3), (1,))]
_TYPES = sampled(np.float32, np.float64, np.int32, np.complex64)
_PRECISIONS = sampled("highest", None, jax.lax.Precision.HIGH.name.lower())


@st.composite
def contracted(draw: Any, forms: Any = FORMS, shapes: Any = _PRODUCTS, more: Any = (), **choices: Any) -> Any:
    """Draw two operands that may be multiplied, mostly, further arguments and keywords."""
    one, two = draw(st.sampled_from(shapes))
    first = draw(st.sampled_from(EVERY))
    dtypes = [first] if draw(st.booleans()) else EVERY
    x, y = draw(operand([first], [one], forms=forms)), draw(operand(dtypes, [two], forms=forms))
    return (x, y, *[draw(m) for m in more]), safe((x, y), draw(options(**choices)))


def safe(operands: Sequence[Any], found: dict[str, Any]) -> dict[str, Any]:
    """Leave out the type of the result where a constant is complex: of converting it XLA ends jax's process."""
    if any(not isinstance(x, Operand) and np.iscomplexobj(x) for x in operands):
        found.pop("preferred_element_type", None)
    return found


@st.composite
def einsums(draw: Any) -> Any:
    """Draw subscripts, and operands of the shapes they want, mostly."""
    text, *shapes = draw(st.sampled_from([
        ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->ji", (2, 3)),
        ("...i,...i->...", (2, 3), (3,)), ("i,j->ij", (3,), (2,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)), ("ij->", (2, 3)), ("ij,ij->i", (2, 3), (2, 3)), ("i,i->", (0,), (0,)),
        ("ij,jk->ik", (2, 3), (2, 3)), ("ij->k", (2, 3)), ("...ij->...ji", (2, 3, 4)), (",ij->ij", (), (2, 3)),
    ]))
    operands = [draw(operand(shapes=[s], forms=ARRAYS)) for s in shapes]
    found = draw(options(optimize=sampled("optimal", "greedy", False), preferred_element_type=_TYPES))
    return (text, *operands), safe(operands, found)


@st.composite
def vectors(draw: Any) -> Any:
    """Draw two stacks of vectors and mostly the axis they lie along."""
    (x, y), _ = draw(contracted(shapes=[((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((3, 2), (3, 2))]))
    return (x, y), draw(options(axis=axis(min(rank_of(x), rank_of(y)))))


@st.composite
def matrix(draw: Any, kind: str = "any", shapes: Any = MATRICES, dtypes: Any = _SINGLE, **choices: Any) -> Any:
    """Draw a stack of matrices: of any kind, far from singular, or symmetric positive definite."""
    shape, dtype = draw(st.sampled_from(shapes)), draw(st.sampled_from(dtypes))
    x = numbers(dtype, shape, draw(seeds)).astype(np.complex128 if dtype.kind == "c" else np.float64)
    if kind != "any" and len(shape) > 1:
        x = x / 4 + 3 * np.eye(*shape[-2:])
        if kind == "definite" and shape[-1] == shape[-2]:
            x = x + np.conj(np.swapaxes(x, -1, -2))
    return (Operand(x.astype(dtype)),), draw(options(**choices))


@st.composite
def equations(draw: Any) -> Any:
    """Draw a matrix far from singular and a right side."""
    (a,), _ = draw(matrix("regular", [(3, 3), (2, 2), (2, 3, 3), (2, 3)]))
    rows = shape_of(a)[-2]
    return (a, draw(operand(_SINGLE, [(rows,), (rows, 2), (2, rows, 1), (5,)], forms=PLAIN))), {}


@st.composite
def normed(draw: Any, of_matrix: bool = False, vector: bool = False) -> Any:
    """Draw an operand, the order of a norm, and axes."""
    x = draw(operand(INEXACT, MATRICES if of_matrix else SHAPES, forms=ARRAYS))
    orders = sampled("fro", "nuc", 1, -1, np.inf, -np.inf) if of_matrix else sampled(None, 1, 2, np.inf, -np.inf, 0, 3)
    chosen: dict[str, Any] = {} if of_matrix else {"axis": axis(rank_of(x), none=True)}
    return (x,), draw(options(ord=sampled(1, 2, np.inf, 0, 3) if vector else orders, keepdims=st.booleans(), **chosen))


@st.composite
def transformed(draw: Any, real: bool = False, several: bool = False) -> Any:
    """Draw an operand, lengths, axes and a normalization."""
    x = draw(operand([d for d in EVERY if d.kind != "c" or not real], forms=ARRAYS))
    found = draw(options(norm=sampled("ortho", "forward", "backward", "other")))
    if several:
        found |= draw(options(axes=sampled((0, 1), (-1,), (0, -1), (1, 0), (0, 0), (0, 9))))
        count = len(found.get("axes", (0, 1)))
        return (x,), {**found, **(draw(options(s=sampled((2, 3), (4, 1), (2,)))) if count == 2 else {})}
    return (x,), {**found, **draw(options(axis=axis(rank_of(x)), n=sampled(1, 2, 4, 5, 0)))}


_regular = matrix("regular", [(3, 3)], _SINGLE[:1]).map(lambda a: a[0][0])
# Values of a factorization are no differentiable function where they coincide, and vectors have free phases.
_once = ("value", "vmap")
# It calls the type of its own result narrower than that of an operand.
_PREFERRED = "integers of 32 bits and weak ones of 64 under x64, complex results of integers"

NUMPY: dict[str, Row] = {
    "dot": Row(contracted(preferred_element_type=_TYPES, precision=_PRECISIONS), floor=16.0, wider=_PREFERRED),
    "matmul": Row(contracted(preferred_element_type=_TYPES, precision=_PRECISIONS), floor=16.0, wider=_PREFERRED),
    "inner": Row(contracted(preferred_element_type=_TYPES), floor=16.0, wider=_PREFERRED),
    **family("outer kron vdot matvec vecmat", Row(contracted(), floor=16.0, wider=_PREFERRED)),
    "tensordot": Row(contracted(axes=sampled(0, 1, 2, ((1,), (0,)), ([0], [0]), (0, 1), ((0, 1), (0, 1)))), floor=32.0,
                     wider=_PREFERRED),
    "vecdot": Row(vectors(), floor=16.0, wider=_PREFERRED),
    "cross": Row(vectors(), floor=16.0, wider=_PREFERRED),
    "einsum": Row(einsums(), floor=64.0, wider=_PREFERRED),
    "convolve": Row(contracted(shapes=[((4,), (3,)), ((3,), (4,)), ((1,), (3,)), ((0,), (3,)), ((2, 3), (3,))],
                               mode=sampled("full", "same", "valid", "other")), floor=16.0, wider=_PREFERRED),
    "correlate": Row(contracted(shapes=[((4,), (3,)), ((3,), (4,)), ((1,), (3,)), ((0,), (3,)), ((2, 3), (3,))],
                                mode=sampled("full", "same", "valid", "other")), floor=16.0, wider=_PREFERRED),
    "cov": Row(given_as(operand(shapes=[(3,), (2, 3), (3, 4), ()], forms=ARRAYS), rowvar=st.booleans(),
                        bias=st.booleans(), ddof=sampled(0, 1)), floor=16.0),
    "corrcoef": Row(given_as(operand(shapes=[(3,), (2, 3), ()], forms=ARRAYS), rowvar=st.booleans()), modes=_once,
                    rounding=64),
    **family("polyadd polysub", Row(contracted(shapes=_SUMMED), floor=16.0, wider="no coefficients")),
    "polymul": Row(contracted(shapes=[((3,), (4,)), ((3,), (3,)), ((1,), (2,))]), floor=16.0),
    "polyval": Row(contracted(shapes=[((3,), (4,)), ((3,), ()), ((1,), (2, 3)), ((0,), (2,))]), floor=64.0),
    "polyder": Row(given_as(operand(shapes=VECTORS, forms=ARRAYS), m=sampled(0, 1, 2, 5)), floor=16.0),
    "polyint": Row(given_as(operand(shapes=VECTORS, forms=ARRAYS), m=sampled(0, 1, 2), k=sampled(1.5, 2)), floor=16.0),
    "poly": Row(given_as(operand(shapes=[(3,), (2,), (0,)], forms=ARRAYS)), modes=_once, floor=64.0),
    "polyfit": Row(given_as(st.just(Operand(np.arange(5, dtype=np.float32))), operand(FLOATS, [(5,)], forms=PLAIN),
                            sampled(0, 1, 2)), modes=_once, rounding=64, floor=16.0),
    "polydiv": Row(contracted(shapes=[((4,), (2,)), ((3,), (1,)), ((2,), (3,))], forms=PLAIN).map(
        lambda a: ((a[0][0], Operand(np.asarray(np.abs(a[0][1].value) + 1).astype(np.float32))), {})), floor=4096.0),
}
LINALG: dict[str, Row] = {
    "matmul": Row(contracted(preferred_element_type=_TYPES), floor=16.0, wider=_PREFERRED),
    "outer": Row(contracted(shapes=[((3,), (2,)), ((3,), (0,)), ((2, 3), (3,)), ((), (3,))])),
    "tensordot": Row(contracted(axes=sampled(0, 1, 2, ((1,), (0,)), (0, 1))), floor=32.0, wider=_PREFERRED),
    **family("vecdot cross", Row(vectors(), floor=16.0, wider=_PREFERRED)),
    "diagonal": Row(given_as(operand(), offset=sampled(0, 1, -1))),
    "trace": Row(given_as(operand(), offset=sampled(0, 1, -1)), floor=16.0),
    "matrix_transpose": Row(given_as(operand())),
    "norm": Row(normed(), floor=8.0, rounding=16),
    "vector_norm": Row(normed(vector=True), floor=8.0, rounding=16),
    "matrix_norm": Row(normed(of_matrix=True), modes=_once, floor=8.0, rounding=32),
    "det": Row(matrix("regular"), floor=64.0, rounding=32),
    "slogdet": Row(matrix("regular", method=sampled("lu", "qr")), floor=8.0, rounding=64),
    "inv": Row(matrix("regular"), floor=4.0, rounding=64),
    "pinv": Row(matrix("regular"), floor=4.0, rounding=256, modes=_once),
    "cholesky": Row(matrix("definite", upper=st.booleans(), symmetrize_input=st.booleans()), floor=4.0, rounding=64),
    "eigh": Row(matrix("definite", UPLO=sampled("L", "U")), modes=("value",), floor=16.0, rounding=64),
    "eigvalsh": Row(matrix("definite", UPLO=sampled("L", "U")), modes=_once, floor=16.0, rounding=64),
    "eigvals": Row(matrix("definite"), modes=("value",), floor=16.0, rounding=64),
    "eig": Row(matrix("definite"), modes=("value",), floor=16.0, rounding=128),
    "svd": Row(matrix("any", full_matrices=st.booleans(), compute_uv=st.booleans()), modes=("value",), floor=16.0,
               rounding=64),
    "svdvals": Row(matrix("any"), modes=_once, floor=16.0, rounding=64),
    "qr": Row(matrix("regular", mode=sampled("reduced", "complete", "r", "raw")), modes=_once, floor=8.0, rounding=64),
    "cond": Row(matrix("regular", p=sampled(1, 2, np.inf, "fro", -2)), modes=_once, floor=16.0, rounding=64),
    "matrix_rank": Row(matrix("regular"), modes=_once),
    "matrix_power": Row(matrix("regular").flatmap(
        lambda a: st.tuples(st.just(a[0]), sampled(0, 1, 2, 3, -1)).map(lambda b: ((*b[0], b[1]), {}))),
        floor=256.0, rounding=64),
    "multi_dot": Row(st.builds(lambda a, b, c: (([a, b, c],), {}), operand(_SINGLE, [(2, 3), (3,)], forms=PLAIN),
                               operand(_SINGLE, [(3, 3)], forms=PLAIN), operand(_SINGLE, [(3, 2), (3,), (2,)],
                                                                               forms=PLAIN)), floor=256.0),
    "solve": Row(equations(), floor=8.0, rounding=64),
    "lstsq": Row(equations(), modes=("value",), floor=8.0, rounding=512),
    "tensorinv": Row(given_as(_regular, ind=sampled(1)), floor=8.0, rounding=64),
    "tensorsolve": Row(given_as(_regular, operand(_SINGLE[:1], [(3,), (2,)], forms=PLAIN)), floor=8.0, rounding=64),
}
_NONE = "axes without elements, whose transforms jax lowers wrongly"
# Transforms add up to twelve terms of size 4.
FFT: dict[str, Row] = {
    **family("fft ifft hfft irfft", Row(transformed(), floor=16.0, wider=_NONE)),
    **family("rfft ihfft", Row(transformed(real=True), floor=16.0, wider=_NONE)),
    **family("fft2 ifft2 fftn ifftn irfft2 irfftn", Row(transformed(several=True), floor=64.0, wider=_NONE)),
    **family("rfft2 rfftn", Row(transformed(real=True, several=True), floor=64.0, wider=_NONE)),
    **family("fftfreq rfftfreq", Row(given_as(sampled(1, 4, 5, 8), d=sampled(0.5, 2)), modes=("value",))),
    **family("fftshift ifftshift", Row(given_as(operand(forms=ARRAYS), axes=sampled(0, -1, (0, 1), (0,), 5)))),
}
