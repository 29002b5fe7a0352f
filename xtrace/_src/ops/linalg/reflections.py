"""Householder reflections in plain operations, as loops over columns, for platforms without a library routine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.families import mul, neg
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, reduce_sum, zeros
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from xtrace._src.ops.arrays.shape import rev, squeeze
from xtrace._src.ops.arrays.slicing import slice_in_dim
from xtrace._src.ops.calls.lower_fun import repeat_while
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq, gt, lt, ne
from xtrace._src.ops.elementwise.complex_numbers import complex, imag
from xtrace._src.ops.elementwise.constants import constant_like, constants_like
from xtrace._src.ops.elementwise.elementwise import abs, add, div, sqrt, sub
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.linalg.matrices import (
    adjoint,
    as_column,
    conj_if_complex,
    diagonal,
    lower_triangle,
    product,
    real_part,
    upper_triangle,
)
from xtrace._src.ops.reductions.reductions import argmax, reduce_max


def _count(n: int) -> Any:
    return np.int32(n)


def _positions(aval: ShapedArray, axis: int) -> Array:
    return broadcasted_iota(np.int32, aval.shape, axis)


def _as_complex(x: Array, dtype: np.dtype[Any]) -> Array:
    return complex(x, zeros(aval_of(x))) if dtypes.is_complex(dtype) else x


def _reflection(column: Array, position: Array) -> tuple[Any, Any, Any]:
    """Return v, tau and beta: 1 - conj(tau) v vᴴ maps the elements of `column` from `position` on to (beta, 0, …).

    v is 1 at `position` and 0 before it. beta is real. tau is 0 if the elements have this form already (LAPACK's
    larfg).
    """
    aval = aval_of(column)
    last = aval.ndim - 1
    positions = _positions(aval, last)
    here, after = eq(positions, position), gt(positions, position)
    first = reduce_sum(select_n(here, zeros(aval), column), (last,))
    tail = select_n(after, zeros(aval), column)
    size, length = abs(tail), abs(first)
    rest = reduce_sum(mul(size, size), (last,))
    head = real_part(first)
    is_reduced = eq(rest, constant_like(rest, 0))
    if dtypes.is_complex(aval.dtype):
        turn = imag(first)
        is_reduced = bitwise_and(is_reduced, eq(turn, constant_like(turn, 0)))
    norm = sqrt(add(mul(length, length), rest))
    beta = select_n(is_reduced, select_n(lt(head, constant_like(head, 0)), neg(norm), norm), head)
    divisor = select_n(is_reduced, beta, constants_like(beta, 1))
    wide = _as_complex(beta, aval.dtype)
    tau = div(sub(wide, first), _as_complex(divisor, aval.dtype))
    tau = select_n(is_reduced, tau, zeros(aval_of(tau)))
    scale = sub(first, wide)
    scale = select_n(is_reduced, scale, constants_like(scale, 1))
    return add(div(tail, as_column(scale)), convert_to(here, aval.dtype)), tau, wide


def _reflect_left(x: Array, v: Array, tau: Array) -> Array:
    """Return (1 - tau v vᴴ) x."""
    column = as_column(v)
    return sub(x, product(mul(column, as_column(as_column(tau))), product(adjoint(column), x)))


def _reflect_right(x: Array, v: Array, tau: Array) -> Array:
    """Return x (1 - tau v vᴴ)."""
    column = as_column(v)
    return sub(x, product(product(x, column), adjoint(mul(column, as_column(as_column(conj_if_complex(tau)))))))


def _element(x: Array, step: Array) -> Array:
    """Return element `step` of each vector, on an axis of size 1."""
    return dynamic_slice_in_dim(x, step, 1, aval_of(x).ndim - 1, allow_negative_indices=False)


def _column(x: Array, step: Array) -> Array:
    return squeeze(_element(x, step), (aval_of(x).ndim - 1,))


def _replace_column(x: Array, column: Array, step: Array) -> Array:
    return dynamic_update_slice_in_dim(x, as_column(column), step, aval_of(x).ndim - 1, allow_negative_indices=False)


def _pack_column(old: Any, v: ArrayLike, beta: Any, position: Any) -> Array:
    """Return a packed column: old elements before `position`, beta at it, and elements of v after it."""
    aval = aval_of(old)
    positions = _positions(aval, aval.ndim - 1)
    beta = broadcast_in_dim(beta, aval.shape, range(aval.ndim - 1))
    return select_n(gt(positions, position), select_n(eq(positions, position), old, beta), v)


def apply_reflections(a: Any, taus: Any, c: Array, *, left: bool, transpose: bool) -> Array:
    """Return the result of `ormqr`: Q c if `left`, else c Q, with Qᴴ for Q if `transpose`."""
    steps = aval_of(taus).shape[-1]
    if not steps or 0 in aval_of(c).shape:
        return c
    # Q = H₀ H₁ …: Q c applies the last reflection first, Qᴴ c and c Q the first one.
    forward = left == transpose

    def step(count: Any, a: Any, taus: Any, c: Any) -> list[Any]:
        position = count if forward else sub(_count(steps - 1), count)
        column, tau = _column(a, position), _column(taus, position)
        aval = aval_of(column)
        positions = _positions(aval, aval.ndim - 1)
        v = select_n(gt(positions, position), convert_to(eq(positions, position), aval.dtype), column)
        tau = conj_if_complex(tau) if transpose else tau
        return [add(count, _count(1)), a, taus, (_reflect_left if left else _reflect_right)(c, v, tau)]

    return repeat_while(lambda count, *_: lt(count, _count(steps)), step, [_count(0), a, taus, c])[3]


def _scale_to_unit(x: Array) -> tuple[Any, Any]:
    """Return each matrix divided by its largest element, so that squares do not overflow, and the divisor."""
    aval = aval_of(x)
    scale = reduce_max(abs(x), (aval.ndim - 2, aval.ndim - 1))
    scale = select_n(eq(scale, constant_like(scale, 0)), scale, constants_like(scale, 1))
    scale = convert_to(as_column(as_column(scale)), aval.dtype)
    return div(x, scale), scale


def _exchange(x: Array, step: Array, chosen: Array) -> Array:
    """Exchange elements `step` and `chosen` along the last axis; `chosen` is a position for each matrix."""
    aval = aval_of(x)
    last = aval.ndim - 1
    positions = _positions(aval, last)
    own = tuple(range(aval_of(chosen).ndim))
    at_chosen = eq(positions, broadcast_in_dim(chosen, aval.shape, own))
    there = as_column(reduce_sum(select_n(at_chosen, zeros(aval), x), (last,)))
    moved = select_n(at_chosen, x, broadcast_in_dim(_element(x, step), aval.shape, range(last + 1)))
    return select_n(eq(positions, step), moved, broadcast_in_dim(there, aval.shape, range(last + 1)))


def pivoted_qr(x: Any, pivots: ArrayLike) -> list[Array]:
    """Return the results of `geqp3`, columns counted from 0: each step moves the longest remaining column to the front.

    Each step recomputes the lengths, which doubles its cost, since updates lose precision (Golub and Van Loan, Matrix
    Computations, 5.4.2). Columns with a positive pivot come before all others.
    """
    aval = aval_of(x)
    rows, columns = aval.shape[-2:]
    steps = min(rows, columns)
    batch = aval.shape[:-2]
    order = broadcasted_iota(np.int32, (*batch, columns), len(batch))
    taus = zeros(ShapedArray((*batch, steps), aval.dtype))
    if not steps:
        return [x, order, taus]
    work, scale = _scale_to_unit(x)
    row, column = aval.ndim - 2, aval.ndim - 1

    def step(count: Any, work: Any, order: Any, first: Any, taus: Any) -> list[Any]:
        own = aval_of(work)
        size = abs(select_n(lt(_positions(own, row), count), work, zeros(own)))
        lengths = reduce_sum(mul(size, size), (row,))
        positions = _positions(aval_of(lengths), row)
        lengths = select_n(ne(first, _count(0)), lengths, constants_like(lengths, math.inf))
        lengths = select_n(lt(positions, count), lengths, constants_like(lengths, -1))
        chosen = argmax(lengths, row, np.int32)
        order, first = _exchange(order, count, chosen), _exchange(first, count, chosen)
        work = _exchange(work, count, broadcast_in_dim(chosen, own.shape[:-1], range(row)))
        old = _column(work, count)
        v, tau, beta = _reflection(old, count)
        is_trailing = gt(_positions(own, column), count)
        work = select_n(is_trailing, work, _reflect_left(work, v, conj_if_complex(tau)))
        work = _replace_column(work, _pack_column(old, v, beta, count), count)
        return [add(count, _count(1)), work, order, first, _replace_column(taus, tau, count)]

    state = [_count(0), work, order, pivots, taus]
    _, work, order, _, taus = repeat_while(lambda count, *_: lt(count, _count(steps)), step, state)
    return [add(mul(upper_triangle(work), scale), lower_triangle(work, -1)), order, taus]


def hessenberg_form(a: Any) -> list[Array]:
    """Return the results of `hessenberg`: each step reflects from both sides to clear a column below the subdiagonal.

    Golub and Van Loan, Matrix Computations, 7.4.2.
    """
    aval = aval_of(a)
    size = aval.shape[-1]
    steps = max(size - 1, 0)
    taus = zeros(ShapedArray((*aval.shape[:-2], steps), aval.dtype))
    if not steps:
        return [a, taus]
    work, scale = _scale_to_unit(a)
    last = aval.ndim - 1

    def step(count: Any, work: Any, taus: Any) -> list[Any]:
        below = add(count, _count(1))
        old = _column(work, count)
        v, tau, beta = _reflection(old, below)
        is_trailing = gt(_positions(aval_of(work), last), count)
        work = select_n(is_trailing, work, _reflect_right(_reflect_left(work, v, conj_if_complex(tau)), v, tau))
        work = _replace_column(work, _pack_column(old, v, beta, below), count)
        return [below, work, _replace_column(taus, tau, count)]

    _, work, taus = repeat_while(lambda count, *_: lt(count, _count(steps)), step, [_count(0), work, taus])
    return [add(mul(upper_triangle(work, -1), scale), lower_triangle(work, -2)), taus]


def tridiagonal_form(a: ArrayLike, *, lower: bool) -> list[Array]:
    """Return the results of `tridiagonal`: the Hessenberg form of a Hermitian matrix is tridiagonal and real."""
    if not lower:
        # The upper form is the lower form of the matrix with rows and columns reversed.
        last = aval_of(a).ndim - 1
        packed, *vectors = tridiagonal_form(rev(a, (last - 1, last)), lower=True)
        return [rev(packed, (last - 1, last)), *[rev(x, (last - 1,)) for x in vectors]]
    size = aval_of(a).shape[-1]
    kept, below = lower_triangle(a), lower_triangle(a, -1)
    # Only the real part of the diagonal is used.
    doubled = add(kept, adjoint(kept))
    on_diagonal = lower_triangle(upper_triangle(doubled))
    packed, taus = hessenberg_form(add(add(below, adjoint(below)), div(on_diagonal, constant_like(a, 2))))
    last = aval_of(a).ndim - 1
    left_below = slice_in_dim(slice_in_dim(packed, 1, size, 1, last - 1), 0, size - 1, 1, last)
    below = real_part(diagonal(left_below))
    return [add(lower_triangle(packed), upper_triangle(a, 1)), real_part(diagonal(packed)), below, taus]
