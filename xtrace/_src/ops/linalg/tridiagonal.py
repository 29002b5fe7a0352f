"""Tridiagonal systems in plain operations: Gaussian elimination with partial pivoting, as a loop over rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.families import mul, neg
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reduce_sum, transpose, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.calls.lower_fun import repeat_while
from xtrace._src.ops.elementwise.comparisons import eq, ge, lt
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import abs, add, div, max, sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions.reductions import reduce_max


def _row(x: Array, position: ArrayLike) -> Array:
    return squeeze(dynamic_slice_in_dim(x, position, 1, 0, allow_negative_indices=False), (0,))


def _replace_row(x: Array, row: Array, position: ArrayLike) -> Array:
    shape = aval_of(row).shape
    row = broadcast_in_dim(row, (1, *shape), range(1, len(shape) + 1))
    return dynamic_update_slice_in_dim(x, row, position, 0, allow_negative_indices=False)


def _as_factor(x: Array) -> Array:
    """Return one number for each matrix, with an axis for the right-hand sides."""
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (*shape, 1), range(len(shape)))


def _enlarge_pivot(pivot: Array, smallest: Array) -> Array:
    """Return the pivot, enlarged to the size `smallest` if it is smaller."""
    replaced = convert_to(smallest, aval_of(pivot).dtype)
    if not dtypes.is_complex(aval_of(pivot).dtype):
        replaced = select_n(lt(pivot, constants_like(pivot, 0)), replaced, neg(replaced))
    return select_n(lt(abs(pivot), smallest), pivot, replaced)


def _eliminate(threshold: Array | None, dl: object, d: Any, du: Any, b: Any) -> list[Any]:
    """Return U's three diagonals and the right-hand sides, on a leading axis of rows; L is not returned.

    Each step pivots between the current row and the next, by the larger leading element (LAPACK's gtsv). threshold: the
    least size of pivots for each matrix, or None.
    """
    size = aval_of(d).shape[0]

    def step(
        count: Any, smallest: Any, dl: Any, d: Any, du: Any, b: Any, pivots: Any, upper: Array, second: Array,
        right: Array, p: Array, q: Array, r: Array,
    ) -> list[Any]:
        # The current row is (p, q) from the diagonal on, the next row (low, m, n); r and s are their right-hand sides.
        following = add(count, np.int32(1))
        m, n, s = _row(d, following), _row(du, following), _row(b, following)
        low = _row(dl, following)
        stays = ge(abs(p), abs(low))
        pivot = select_n(stays, low, p)
        if threshold is not None:
            pivot = _enlarge_pivot(pivot, smallest)
        divisor = select_n(eq(pivot, constants_like(pivot, 0)), pivot, constants_like(pivot, 1))
        factor = div(select_n(stays, p, low), divisor)
        none = zeros(aval_of(q))
        above, beyond = select_n(stays, m, q), select_n(stays, n, none)
        wide = broadcast_in_dim(stays, aval_of(r).shape, range(aval_of(stays).ndim))
        chosen = select_n(wide, s, r)
        p = sub(select_n(stays, q, m), mul(factor, above))
        q = sub(select_n(stays, none, n), mul(factor, beyond))
        r = sub(select_n(wide, r, s), mul(_as_factor(factor), chosen))
        moved = [
            _replace_row(x, row, count)
            for x, row in zip((pivots, upper, second, right), (pivot, above, beyond, chosen), strict=True)
        ]
        return [following, smallest, dl, d, du, b, *moved, p, q, r]

    smallest = zeros(aval_of(abs(_row(d, np.int32(0))))) if threshold is None else threshold
    first = [_row(x, np.int32(0)) for x in (d, du, b)]
    state = [np.int32(0), smallest, dl, d, du, b, d, du, zeros(aval_of(du)), b, *first]
    final = repeat_while(lambda count, *_: lt(count, np.int32(size - 1)), step, state)
    pivots, upper, second, right, p, _, r = final[6:]
    last = np.int32(size - 1)
    if threshold is not None:
        p = _enlarge_pivot(p, smallest)
    return [_replace_row(pivots, p, last), upper, second, _replace_row(right, r, last)]


def _substitute_back(pivots: Any, upper: ArrayLike, second: ArrayLike, right: Any) -> Array:
    """Return the solution of an upper triangular system with three diagonals, by back substitution."""
    size = aval_of(pivots).shape[0]

    def step(count: Any, pivots: Any, upper: Any, second: Any, right: Any, next_row: Any, after_next: Any) -> list[Any]:
        known = add(mul(_as_factor(_row(upper, count)), next_row), mul(_as_factor(_row(second, count)), after_next))
        row = div(sub(_row(right, count), known), _as_factor(_row(pivots, count)))
        return [sub(count, np.int32(1)), pivots, upper, second, _replace_row(right, row, count), row, next_row]

    none = zeros(aval_of(_row(right, np.int32(0))))
    state = [np.int32(size - 1), pivots, upper, second, right, none, none]
    return repeat_while(lambda count, *_: ge(count, np.int32(0)), step, state)[4]


def solve_by_elimination(dl: Any, d: Any, du: Any, b: Array, *, perturb_singular: bool) -> Array:
    """Return the result of `tridiagonal_solve`; NaN for singular matrices, unless `perturb_singular`.

    `perturb_singular` enlarges pivots to at least the precision times the largest element, which changes the matrix by
    no more than rounding.
    """
    if 0 in aval_of(b).shape:
        return b
    ndim = aval_of(d).ndim
    axes = (ndim - 1, *range(ndim - 1))
    dl, d, du = transpose(_zero_outside(dl, 0), axes), transpose(d, axes), transpose(_zero_outside(du, -1), axes)
    right = transpose(b, (ndim - 1, *range(ndim - 1), ndim))
    smallest = None
    if perturb_singular:
        largest = max(max(abs(dl), abs(d)), abs(du))
        info = dtypes.finfo(aval_of(largest).dtype)
        largest = reduce_max(largest, (0,))
        least = constants_like(largest, float(info.tiny / info.eps))
        smallest = max(mul(largest, constant_like(largest, info.eps)), least)
    pivots, upper, second, right = _eliminate(smallest, dl, d, du, right)
    singular = eq(pivots, constants_like(pivots, 0))
    solved = _substitute_back(select_n(singular, pivots, constants_like(pivots, 1)), upper, second, right)
    bad = lt(np.int32(0), reduce_sum(convert_to(singular, dtypes.int32), (0,)))
    mask = broadcast_in_dim(bad, aval_of(solved).shape, range(1, ndim))
    solved = select_n(mask, solved, constants_like(solved, math.nan))
    return transpose(solved, (*range(1, ndim), 0, ndim))


def _zero_outside(x: Array, outside: int) -> Array:
    """Return a diagonal with zero for the element outside of the matrix, at position 0 or -1."""
    aval = aval_of(x)
    last, size = aval.ndim - 1, aval.shape[-1]
    none = zeros(ShapedArray((*aval.shape[:-1], 1), aval.dtype))
    if outside == 0:
        return concatenate([none, slice_in_dim(x, 1, size, 1, last)], last)
    return concatenate([slice_in_dim(x, 0, size - 1, 1, last), none], last)
