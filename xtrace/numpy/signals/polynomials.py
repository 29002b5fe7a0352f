"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    check_broadcast,
    convert_to,
    operand_aval,
    reshape,
    transpose,
)
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import add, equal, less, multiply, not_equal, power, subtract, true_divide
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings import config
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import split
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_or
from xtrace._src.ops.elementwise.reinterpretation import optimization_barrier
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import full, ones_like, zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.indexing.indexing import getitem, take
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg.factorizations import eigvals
from xtrace.numpy.linalg.solutions import inv, lstsq
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.rearrangement import roll
from xtrace.numpy.operands import broadcast_operand_to
from xtrace.numpy.products.contraction import matmul, outer
from xtrace.numpy.reductions.reductions import any as any_of
from xtrace.numpy.reductions.reductions import argmax
from xtrace.numpy.reductions.reductions import sum as sum_over
from xtrace.numpy.signals.convolution import convolve
from xtrace.numpy.sorting.sorts import argsort

# From this number of coefficients on, the steps of Horner's rule are a loop; below it, they are unrolled.
_MIN_LOOP_LENGTH = 33


def _to_vectors(*operands: object) -> list[Any]:
    """Return operands as vectors of their common inexact dtype; ValueError for other ranks."""
    avals, dtype, weak = common_dtype(operands, as_inexact)
    for i, aval in enumerate(avals):
        if aval.ndim != 1:
            raise ValueError(
                f"{called_function()}: coefficients must be a 1-D array; argument {i} has shape {aval.shape}"
            )
    return [convert_to(to_array_operand(x, i), dtype, weak) for i, x in enumerate(operands)]


def _to_count(argument: str, value: Any) -> int:
    """Return a nonnegative integer; TypeError for other types, ValueError for negative numbers."""
    number = to_integer(argument, value)
    if number < 0:
        raise ValueError(f"{called_function()}: {argument} must be nonnegative, got {number}")
    return number


def _require_concrete(argument: str, x: Array) -> np.ndarray[Any, Any]:
    if isinstance(x, Tracer):
        raise explain.concretization(x, f"numpy.{called_function()} with {argument}=True; pass {argument}=False")
    return np.asarray(x)


def _pad_to_one_shape(*operands: ArrayLike) -> list[Any]:
    """Return operands in their common dtype and the longer one's shape, padded with zeros in front."""
    avals, dtype, weak = common_dtype(operands)
    for i, aval in enumerate(avals):
        if not aval.ndim:
            raise ValueError(
                f"{called_function()}: coefficients are along the first axis, and argument {i} has no axes"
            )
    arrays = [convert_to(to_array_operand(x, i), dtype, weak) for i, x in enumerate(operands)]
    short = int(arrays[0].shape[0] >= arrays[1].shape[0])
    x, (length, *others) = arrays[short], arrays[1 - short].shape
    x = broadcast_operand_to(x, x.shape, (x.shape[0], *others))
    filling = convert_to(zeros((length - x.shape[0], *others), dtype), dtype, weak)
    arrays[short] = concatenate([filling, x]) if filling.size else x
    return arrays


@inline_jit(public=True)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the sums of polynomials.

    Args:
        a1, a2: arrays of coefficients, the highest power first, along the first axis; the other axes of the shorter
            one broadcast.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the other axes do not broadcast.

    Example:
        >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([1, 1]))
        Array([1, 3, 4], dtype=int32)
    """
    return add(*_pad_to_one_shape(a1, a2))


@inline_jit(public=True)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the differences of polynomials.

    Args:
        a1, a2: arrays of coefficients, the highest power first, along the first axis; the other axes of the shorter
            one broadcast.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the other axes do not broadcast.

    Example:
        >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([1, 1]))
        Array([1, 1, 2], dtype=int32)
    """
    return subtract(*_pad_to_one_shape(a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Return the product of two polynomials.

    Args:
        a1, a2: vectors of coefficients, the highest power first; an empty one is zero.
        trim_leading_zeros: whether to remove leading zeros, which needs concrete operands.

    Returns:
        A vector of a floating dtype.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, 3]))
        Array([1., 5., 6.], dtype=float32)
    """
    factors = _to_vectors(a1, a2)
    if trim_leading_zeros:
        starts = [np.flatnonzero(_require_concrete("trim_leading_zeros", x)) for x in factors]
        factors = [
            getitem(x, slice(int(at[0]) if at.size else x.size, None)) for x, at in zip(factors, starts, strict=True)
        ]
    first, second = [x if x.size else zeros(1, x.dtype) for x in factors]
    return convolve(first, second)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Any, Any]:
    """Return quotient and remainder of two polynomials.

    Args:
        u, v: vectors of coefficients, the highest power first.
        trim_leading_zeros: whether to remove leading zeros, which needs concrete operands.

    Returns:
        A pair of vectors of a floating dtype; the remainder is as long as `u`.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> jnp.polydiv(jnp.array([1, 5, 6]), jnp.array([1, 2]))
        (Array([1., 3.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    dividend, divisor = _to_vectors(u, v)
    if not divisor.size:
        raise ValueError("polydiv: the divisor v has no coefficients")
    quotient, rest = _divide(dividend, divisor)
    if trim_leading_zeros:
        values = _require_concrete("trim_leading_zeros", rest)
        large = np.flatnonzero(np.abs(values) > math.sqrt(float(dtypes.finfo(values.dtype).eps)))
        rest = getitem(rest, slice(int(large[0]) if large.size else rest.size, None))
    return quotient, rest


@inline_jit
def _divide(dividend: Array, divisor: Any) -> tuple[Any, Any]:
    count = dividend.size - divisor.size + 1
    if count < 1:
        return zeros(1, dividend.dtype), dividend
    leading = getitem(divisor, 0)

    def step(rest: Any, _: Any) -> tuple[Any, Any]:
        factor = true_divide(getitem(rest, 0), leading)
        reduced = subtract(getitem(rest, slice(0, divisor.size)), multiply(factor, divisor))
        # The eliminated coefficient is zero up to rounding, or NaN if a coefficient is not finite.
        eliminated = getitem(reduced, 0)
        reduced = getitem(reduced, slice(1, None))
        rest = concatenate([reduced, getitem(rest, slice(divisor.size, None)), zeros(1, rest.dtype)])
        return rest, (factor, eliminated)

    rest, (quotient, eliminated) = scan(step, dividend, None, length=count)
    remainder = concatenate([eliminated, getitem(rest, slice(0, divisor.size - 1))])
    return convert_to(quotient, dividend.dtype, False), convert_to(remainder, dividend.dtype, dividend.weak_type)


@inline_jit(static=("m",), public=True)
def polyder(p: Any, m: int = 1) -> Any:
    """Return a derivative of a polynomial.

    Args:
        p: a vector of coefficients, the highest power first.
        m: the order of the derivative.

    Returns:
        A vector of a floating dtype.

    Raises:
        TypeError: `p` is not an array.
        ValueError: `m` is negative.

    Example:
        >>> jnp.polyder(jnp.array([1, 2, 3]))
        Array([2., 2.], dtype=float32)
    """
    (p,) = _to_vectors(p)
    count = _to_count("m", m)
    if not count:
        return p
    powers = np.arange(p.size - 1, count - 1, -1)
    factors = np.asarray(np.prod([powers - i for i in range(count)], axis=0), p.dtype)
    left = getitem(p, slice(0, max(p.size - count, 0)))
    return elementwise.mul(convert_to(left, p.dtype, False), convert_to(factors, p.dtype, False))


@inline_jit(static=("m",), public=True)
def polyint(p: Any, m: int = 1, k: ArrayLike | None = None) -> Any:
    """Return an integral of a polynomial.

    Args:
        p: a vector of coefficients, the highest power first.
        m: the number of integrations.
        k: the integration constants, one or `m`, in the order of the integrations; None for 0.

    Returns:
        A vector of a floating dtype.

    Raises:
        TypeError: `p` is not an array.
        ValueError: `m` is negative, or the number of constants is neither 1 nor `m`.

    Example:
        >>> jnp.polyint(jnp.array([2, 1]))
        Array([1., 1., 0.], dtype=float32)
    """
    count = _to_count("m", m)
    constants = operand_aval(0 if k is None else k, 1)
    if constants.ndim > 1 or constants.size not in (1, count):
        raise ValueError(
            f"polyint: k must be a scalar or a rank-1 array of length 1 or m={count}; got shape {constants.shape}"
        )
    given = to_array_operand(0 if k is None else k)
    p, given = _to_vectors(p, reshape(given, (given.size,)))
    if not count:
        return p
    powers = np.arange(p.size - 1, -1, -1)
    divisors = [
        np.prod([powers + i + 1.0 for i in range(count)], axis=0),
        np.array([math.factorial(i) for i in range(count - 1, -1, -1)], float),
    ]
    if given.size != count:
        given = broadcast_in_dim(reshape(given, ()), (count,), ())
    # XLA multiplies by reciprocals of constant divisors, which rounds twice.
    parts = zip((p, given), [np.asarray(x, p.dtype) for x in divisors], strict=True)
    return concatenate([elementwise.div(x, optimization_barrier(convert_to(y, p.dtype))) for x, y in parts])


@inline_jit(static=("unroll",), public=True)
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial by Horner's rule.

    Args:
        p: an array of coefficients, the highest power first, along the first axis; further axes broadcast with `x`.
        x: an array or a scalar.
        unroll: the number of steps that are written out in the loop over long `p`.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `p` is a scalar.

    Example:
        >>> jnp.polyval(jnp.array([1, 2, 3]), 10)
        Array(123, dtype=int32)
    """
    aval = operand_aval(p, 0)
    if aval.ndim < 1:
        raise ValueError("polyval: coefficients must have at least one axis, got a scalar")
    avals, dtype, _ = common_dtype((p, x))
    shape = check_broadcast([aval.shape[1:], avals[1].shape])
    p, x = convert_to(p, dtype, False), broadcast_operand_to(convert_to(x, dtype, False), avals[1].shape, shape)
    total = full(shape, 0, dtype)
    booleans = dtypes.is_boolean(dtype)
    multiply = bitwise_and if booleans else elementwise.mul
    add = bitwise_or if booleans else elementwise.add

    def step(total: ArrayLike, coefficient: Array) -> tuple[Array, None]:
        return add(multiply(total, x), broadcast_operand_to(coefficient, coefficient.shape, shape)), None

    if p.shape[0] >= _MIN_LOOP_LENGTH:
        return scan(step, total, p, unroll=unroll)[0]
    for piece in split(p, [1] * p.shape[0], 0) if p.shape[0] else ():
        total = step(total, reshape(piece, p.shape[1:]))[0]
    return total


@inline_jit(public=True)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial with given zeros, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: a vector of the zeros, or a square matrix, whose eigenvalues are the zeros.

    Returns:
        A vector of coefficients, the highest power first, of a floating or complex dtype.

    Raises:
        TypeError: the operand is not an array.
        ValueError: it is neither a vector nor a square matrix.

    Example:
        >>> jnp.poly(jnp.array([1.0, 2.0]))
        Array([ 1., -3.,  2.], dtype=float32)
    """
    values = to_array_operand(seq_of_zeros)
    values = values if values.ndim else reshape(values, (1,))
    shape = values.shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        values = eigvals(values)
    elif len(shape) != 1:
        raise ValueError(f"poly: input must be 1d or non-empty square 2d array, got shape {shape}")
    if not values.size:
        return asarray(1.0, as_inexact(values.dtype, False)[0])
    return _expand_roots(*_to_vectors(values))


@inline_jit
def _expand_roots(roots: Any) -> Array:
    coefficients = full((1,), 1, roots.dtype)
    nothing = full((1,), 0, roots.dtype)
    for piece in split(roots, [1] * roots.size, 0):
        root = broadcast_in_dim(reshape(piece, ()), coefficients.shape, ())
        # The padding is not multiplied: an infinite zero would make it NaN.
        product = elementwise.mul(root, coefficients)
        coefficients = elementwise.sub(concatenate([coefficients, nothing]), concatenate([nothing, product]))
    return coefficients


def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """Compute the zeros of a polynomial, on CPU and GPU.

    Args:
        p: a vector of coefficients, the highest power first.
        strip_zeros: whether leading zeros are removed, which needs a concrete `p`; otherwise each of them gives a NaN
            at the end.

    Returns:
        A complex vector.

    Raises:
        ConcretizationTypeError: `p` is traced and `strip_zeros` is True.
        ValueError: `p` is not a vector.

    Example:
        >>> jnp.roots(jnp.array([1.0, 0.0, 0.0]))
        Array([0.+0.j, 0.+0.j], dtype=complex64)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 7.4: eigenvalues of the
        companion matrix.
    """
    if operand_aval(p, 0).ndim == 0:
        p = reshape(to_array_operand(p), (1,))
    (p,) = _to_vectors(p)
    trailing = 0
    if strip_zeros:
        places = np.flatnonzero(_require_concrete("strip_zeros", p))
        first, last = (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)
        trailing = p.size - last if places.size else 0
        p = getitem(p, slice(first, last))
    if p.size < 2:
        return zeros(trailing, np.result_type(p.dtype, np.complex64))
    if not strip_zeros:
        return _find_padded_roots(p)
    eigenvalues = eigvals(_make_companion(p))
    return concatenate([zeros(trailing, eigenvalues.dtype), eigenvalues]) if trailing else eigenvalues


@inline_jit
def _find_padded_roots(p: Array) -> Array:
    """Return the zeros of a polynomial; each leading coefficient of 0 gives a NaN at the end."""
    nonzero = not_equal(p, 0)
    in_front = where(any_of(nonzero), argmax(nonzero), p.size)
    moved = roll(where(equal(in_front, p.size), ones_like(p), p), elementwise.neg(in_front))
    eigenvalues = eigvals(_make_companion(moved))
    eigenvalues = take(eigenvalues, argsort(equal(eigenvalues, 0)))
    is_root = less(arange(eigenvalues.size), subtract(eigenvalues.size, in_front))
    return where(is_root, eigenvalues, complex(math.nan, math.nan))


@inline_jit
def _make_companion(p: Array) -> Array:
    """Return the matrix whose characteristic polynomial is `p`, up to a factor."""
    count = p.size - 1
    first = elementwise.neg(true_divide(getitem(p, slice(1, None)), getitem(p, 0)))
    below = asarray(np.eye(count - 1, count, dtype=p.dtype))
    return concatenate([reshape(first, (1, count)), below], 0)


@inline_jit(static=("N", "increasing"), public=True)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return the matrix of the powers of a vector.

    Args:
        x: a vector.
        N: the number of columns; None for the number of elements.
        increasing: whether the powers increase from 0; otherwise they decrease to 0.

    Returns:
        A matrix of the dtype of `x`, with a row for each element.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `x` is not a vector, or `N` is negative.

    Example:
        >>> jnp.vander(jnp.array([2, 3]), 3)
        Array([[4, 2, 1],
               [9, 3, 1]], dtype=int32)
    """
    aval = operand_aval(x, 0)
    if aval.ndim != 1:
        raise ValueError(f"vander: x must be a one-dimensional array, got shape {aval.shape}")
    count = aval.size if N is None else _to_count("N", N)
    exponents = arange(count) if increasing else arange(count - 1, -1, -1)
    kind = aval.dtype if dtypes.is_integer(aval.dtype) else exponents.dtype
    column = convert_to(reshape(x, (aval.size, 1)), aval.dtype, False)
    raised = elementwise.pow if dtypes.is_inexact(aval.dtype) else power
    return convert_to(raised(column, reshape(convert_to(exponents, kind), (1, count))), aval.dtype)


def polyfit(
    x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False, w: ArrayLike | None = None,
    cov: bool | str = False
) -> Any:
    """Fit a polynomial to points by least squares.

    Args:
        x: a vector of the abscissas.
        y: a vector of the ordinates, or a matrix with a column for each polynomial.
        deg: the degree, a Python integer.
        rcond: singular values below `rcond` times the largest one count as zero; None for the number of points
            times the machine epsilon.
        full: whether the sums of squares, the rank, the singular values and `rcond` are returned, too.
        w: a vector of the weights of the points; None for 1 each.
        cov: whether the covariance of the coefficients is returned, too; ``"unscaled"`` omits its factor, the variance
            of the residuals.

    Returns:
        An array of coefficients, the highest power first, or a tuple that begins with it.

    Raises:
        TypeError: an operand is not an array, or the shapes do not fit.
        ValueError: `deg` is negative, or there are too few points for `cov`.

    Example:
        >>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(2)
        Array([2., 1.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 5.5: least squares by singular
        values.
    """
    (abscissas, ordinates), dtype, _ = common_dtype((x, y), as_inexact)
    order = _to_count("deg", deg) + 1
    if abscissas.ndim != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, got shape {abscissas.shape}")
    if not abscissas.size:
        raise TypeError("polyfit: expected non-empty vector for x")
    if ordinates.ndim not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, got shape {ordinates.shape}")
    if abscissas.shape[0] != ordinates.shape[0]:
        raise TypeError(
            f"polyfit: expected x and y to have same length, got shapes {abscissas.shape} and "
            f"{ordinates.shape}"
        )
    # The powers of a weakly typed x are strongly typed.
    powers = common_dtype((x,), as_inexact)[1]
    pairs = (powers, False), (dtype, False)
    dtype = type_promotion.promote(pairs, config.enable_x64.value, wide=config.keeps_wide_dtypes())[0]
    x, y = [convert_to(to_array_operand(v, i), dtype, False) for i, v in enumerate((x, y))]
    if w is not None:
        weights = operand_aval(w, 5)
        if weights.ndim != 1:
            raise TypeError(f"polyfit: expected a 1-d array for weights, got shape {weights.shape}")
        if weights.shape[0] != ordinates.shape[0]:
            raise TypeError(f"polyfit: expected w and y to have the same length, got {weights.shape[0]}")
        w = convert_to(to_array_operand(w), dtype, False)
    if cov and cov != "unscaled" and not full and abscissas.size <= order:
        raise ValueError("polyfit: the number of data points must exceed order to scale the covariance matrix")
    limit = abscissas.size * float(dtypes.finfo(dtype).eps) if rcond is None else rcond
    coefficients, distance, rank, values, covariances = _fit(
        x, y, w, order=order, rcond=float(limit), covariance=bool(cov) and not full, scaled=cov != "unscaled"
    )
    if full:
        return coefficients, distance, rank, values, asarray(limit)
    return (coefficients, covariances) if cov else coefficients


@inline_jit
def _fit(
    x: Array, y: Array, w: Array | None, *, order: int, rcond: float, covariance: bool, scaled: bool
) -> list[Any]:
    left, right = vander(x, order), y
    if w is not None:
        left = multiply(left, reshape(w, (w.size, 1)))
        right = multiply(right, reshape(w, (w.size,) + (1,) * (y.ndim - 1)))
    scale = elementwise.sqrt(sum_over(elementwise.mul(left, left), 0))
    left = true_divide(left, reshape(scale, (1, order)))
    coefficients, distance, rank, values = lstsq(left, right, rcond)
    coefficients = true_divide(coefficients, reshape(scale, (order,) + (1,) * (y.ndim - 1)))
    covariances: Any = zeros(0)
    if covariance:
        covariances = true_divide(inv(matmul(transpose(left, (1, 0)), left)), outer(scale, scale))
        if y.ndim == 2:
            covariances = reshape(covariances, (order, order, 1))
        if scaled:
            factor = true_divide(distance, x.size - order)
            factor = reshape(factor, (1,) * (covariances.ndim - factor.ndim) + factor.shape)
            covariances = multiply(covariances, factor)
        elif y.ndim == 2:
            covariances = reshape(covariances, (order, order))
    return [coefficients, distance, rank, values, covariances]
