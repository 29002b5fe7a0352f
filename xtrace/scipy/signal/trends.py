"""Trends of signals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, cast, common_dtype
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import moveaxis
from xtrace.numpy.operands import refuse
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.statistics import mean


def _subtract_line(x: Array) -> Array:
    """Subtract the least-squares line along the last axis, by projection on an orthonormal basis of lines."""
    n = x.shape[-1]
    lines = np.stack([np.ones(n), np.arange(n) - (n - 1) / 2])
    norms = np.sqrt(np.sum(lines * lines, -1, keepdims=True))
    basis = (lines / np.where(norms == 0, 1, norms)).astype(x.dtype)
    straight = x - matmul(matmul(x, basis.T, precision="highest"), basis, precision="highest")
    return convert_to(straight, x.dtype, x.weak_type)


@inline_jit
def _subtract_lines(x: Array, *, axis: int, breaks: tuple[int, ...] | None) -> Array:
    if breaks is None:
        return x - mean(x, axis, keepdims=True)
    moved = moveaxis(x, axis, -1)
    parts = [_subtract_line(moved[..., a:b]) for a, b in itertools.pairwise(breaks)]
    return moveaxis(concatenate(parts, -1), -1, axis)


def detrend(
    data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] | ArrayLike = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the least-squares line, or the mean, along an axis.

    Args:
        data: an array.
        axis: the axis of the samples.
        type: ``"linear"`` or ``"constant"``.
        bp: the positions at which a new line begins.
        overwrite_data: without effect.

    Returns:
        An array of the shape of `data` and a floating dtype.

    Raises:
        TypeError: `data` is not an array.
        ValueError: there is no such type, or a position is beyond the axis.

    Example:
        >>> scipy.signal.detrend(jnp.array([1.0, 2.0, 3.0])).round()
        Array([0., 0., 0.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.3.
    """
    refuse(overwrite_data=overwrite_data)
    data = from_sequence(data)
    (aval,), dtype, weak = common_dtype((data,), as_inexact)
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant', got {abbreviate(type)}")
    along = canonical_axis(axis, aval.ndim)
    n = aval.shape[along]
    breaks = None
    if type == "linear":
        breaks = tuple(sorted({0, n, *np.atleast_1d(np.asarray(bp)).tolist()}))
        if breaks[0] < 0 or breaks[-1] > n:
            raise ValueError(f"detrend: breakpoints must lie within the axis of {n} elements, got {bp}")
    return _subtract_lines(cast(data, aval, dtype, weak), axis=along, breaks=breaks)
