"""Covariance matrices and correlation coefficients."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, check_mapped_ranks, common_dtype
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise.complex_numbers import complex as of_parts
from xtrace._src.ops.elementwise.complex_numbers import conj
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.arrays.creation import full
from xtrace.numpy.elementwise.ufuncs import abs, clip, sqrt
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.rearrangement import diag
from xtrace.numpy.manipulation.shapes import atleast_2d, squeeze
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions import reductions


def _check_weights(name: str, weights: Array, count: int) -> None:
    aval = operand_aval(weights, 5)
    if name == "fweights" and not dtypes.is_integer(aval.dtype):
        raise TypeError(f"cov: fweights must be integers, got dtype {aval.dtype.name}")
    if aval.ndim > 1:
        raise RuntimeError(f"cov: cannot handle multidimensional {name}, got shape {aval.shape}")
    if aval.shape != (count,):
        raise RuntimeError(f"cov: incompatible numbers of samples and {name}: {count} and shape {aval.shape}")


@inline_jit(static=("rowvar", "bias", "ddof", "dtype"), public=True)
def cov(
    m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike | None = None,
) -> Array:
    """Return the covariances of variables.

    Args:
        m: the samples, a vector or a matrix.
        y: further variables, in the layout of `m`.
        rowvar: whether rows are variables and columns are samples; False for the opposite.
        bias: whether to divide by the number of samples n instead of n - 1.
        ddof: given, the sums are divided by the number of samples minus `ddof`.
        fweights: the number of times that each sample counts, a vector of integers.
        aweights: the weight of each sample, a vector of numbers.
        dtype: the dtype of the computation and the result.

    Returns:
        A matrix with a row and a column for each variable; of a single variable, an array of rank 0.

    Raises:
        RuntimeError: the weights are not vectors of the number of samples.
        TypeError: an operand is not an array, or `fweights` has no integers.
        ValueError: an operand has more than two axes.

    Example:
        >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    return _compute_covariances(m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _compute_covariances(
    m: Any, y: Any, rowvar: Any, bias: Any, ddof: Any, fweights: Any, aweights: Any, dtype: Any
) -> Array:
    operands = [m] if y is None else [m, y]
    avals, own, _ = common_dtype(operands, as_inexact)
    for name, aval in zip("my", avals, strict=False):
        if aval.ndim > 2:
            raise ValueError(f"{called_function()}: {name} has more than 2 dimensions, shape {aval.shape}")
    check_mapped_ranks([aval.shape for aval in avals], [0] * len(avals))
    wanted = requested_dtype(dtype)
    if wanted is not None and not dtypes.is_inexact(wanted):
        raise ValueError(f"{called_function()}: dtype must be a float or complex type; got {wanted.name}")
    samples = [a.shape[-1 if rowvar or a.ndim < 2 else 0] if a.ndim else 1 for a in avals]
    if len(set(samples)) > 1:
        shown = " and ".join(str(a.shape) for a in avals)
        raise ValueError(f"{called_function()}: m and y differ in the number of samples: shapes {shown}")
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            _check_weights(name, weights, samples[0])
            pairs = ((own, False), (dtypes.real_part_dtype(operand_aval(weights, 5).dtype), False))
            own = type_promotion.promote(pairs, *config.promotion_settings())[0]
    if ddof is None:
        ddof = 0 if bias else 1
    dtype = own if wanted is None else wanted
    parts = []
    for operand in operands:
        x = atleast_2d(convert_to(to_array_operand(operand), dtype, False))
        parts.append(x.T if not rowvar and operand_aval(operand, 0).ndim == 2 else x)
    x = concatenate(parts) if len(parts) > 1 else parts[0]
    # The weights are rows in the dtype of the data, so that no operand is promoted.
    real = dtypes.real_part_dtype(dtype)
    weights = [
        convert_to(abs(convert_to(to_array_operand(w), real, False)), dtype, False)[None]
        for w in (fweights, aweights) if w is not None
    ]
    if not weights:
        count = x.shape[1]
        x = x - reductions.sum(x, 1, keepdims=True) / full((), count, dtype)
        divisor = full((), max(count - ddof, 0) if count else 0, dtype)
        weighted = x
    else:
        weight = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = reductions.sum(weight)
        x = x - reductions.sum(x * weight, 1, keepdims=True) / total
        weighted = x * weight
        if aweights is None:
            divisor = total - ddof
        else:
            divisor = total - ddof * reductions.sum(weight * weights[-1]) / total
    covariance = matmul(x, conj(weighted.T) if dtypes.is_complex(dtype) else weighted.T) / divisor
    return squeeze(covariance)


@inline_jit(static=("rowvar", "dtype"), public=True)
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """Return Pearson's correlation coefficients of variables: covariances divided by both standard deviations.

    Args:
        x: the samples, a vector or a matrix.
        y: further variables, in the layout of `x`.
        rowvar: whether rows are variables and columns are samples; False for the opposite.
        dtype: the dtype of the computation and the result.

    Returns:
        A matrix with a row and a column for each variable; of a single variable, an array of rank 0.

    Raises:
        TypeError: an operand is not an array.
        ValueError: an operand has more than two axes.

    Example:
        >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 4.0], [3.0, 2.0, 0.0]])).round(3)
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    c = _compute_covariances(x, y, rowvar, False, None, None, None, dtype)
    if not c.ndim:
        return c / c
    # Two divisions, since the product of two standard deviations may underflow.
    deviations = convert_to(sqrt(diag(c).real), c.dtype, False)
    c = c / deviations[:, None] / deviations[None]
    if dtypes.is_complex(c.dtype):
        return of_parts(clip(c.real, -1, 1), clip(c.imag, -1, 1))
    return clip(c, -1, 1)
