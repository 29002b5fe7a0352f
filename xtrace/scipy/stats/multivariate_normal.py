"""The normal distribution of vectors."""

from __future__ import annotations

import math

from xtrace._src.algebra.vector_space import check_broadcast, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.api.operators.promotion import as_inexact, cast, common_dtype
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.runtime.transfer import to_array
from xtrace.numpy.elementwise.ufuncs import exp, log, square
from xtrace.numpy.linalg import cholesky
from xtrace.numpy.manipulation.rearrangement import diagonal
from xtrace.numpy.reductions.reductions import sum

__all__ = ["logpdf", "pdf"]

_LOG_TURN = math.log(2 * math.pi)


def _whiten(differences: Array, factor: Array) -> Array:
    """Multiply rows by the inverse of the transposed `factor`; the batch axes broadcast."""
    n = differences.shape[-1]
    if factor.ndim == 2:
        rows = differences.reshape((math.prod(differences.shape[:-1]), n))
        return triangular_solve(factor, rows, lower=True, transpose_a=True).reshape(differences.shape)
    batch = check_broadcast([differences.shape[:-1], factor.shape[:-2]])
    rows = broadcast_to_shape(differences, (*batch, n))[..., None, :]
    return triangular_solve(broadcast_to_shape(factor, (*batch, n, n)), rows, lower=True, transpose_a=True)[..., 0, :]


@inline_jit
def _log_density(x: Array, mean: Array, cov: Array) -> Array:
    differences = x - mean
    if not mean.ndim:
        return -square(differences) / (2 * cov) - (_LOG_TURN + log(cov)) / 2
    n = mean.shape[-1]
    if not cov.ndim:
        logarithm = -sum(square(differences), -1) / (2 * cov) - n * (_LOG_TURN + log(cov)) / 2
        return convert_to(logarithm, x.dtype, x.weak_type)
    factor = cholesky(cov)
    distances = sum(square(_whiten(differences, factor)), -1)
    return -distances / 2 - n * _LOG_TURN / 2 - sum(log(diagonal(factor, axis1=-2, axis2=-1)), -1)


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Return the logarithm of the density of the multivariate normal distribution.

    Args:
        x: an array of vectors along the last axis.
        mean: an array of vectors; with a number, the distribution is elementwise.
        cov: positive definite matrices, or a number, which multiplies the identity.
        allow_singular: not supported; leave it at None.

    Returns:
        An array of the broadcast other axes; NaN where `cov` is not positive definite.

    Raises:
        NotImplementedError: `allow_singular` is given.
        TypeError: an operand is not an array.
        ValueError: the shapes do not agree.

    Example:
        >>> scipy.stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
        Array(-1.837877, dtype=float32)
    """
    name = "multivariate_normal.logpdf"
    if allow_singular is not None:
        raise NotImplementedError(f"{name}: allow_singular is not supported; the covariance must be positive definite")
    operands = (x, mean, cov)
    avals, dtype, weak = common_dtype(operands, as_inexact, function=name)
    mean_shape, cov_shape = avals[1].shape, avals[2].shape
    if mean_shape and cov_shape and (len(cov_shape) < 2 or cov_shape[-2:] != (mean_shape[-1], mean_shape[-1])):
        raise ValueError(
            f"{name}: cov must be a number or have shape (..., n, n), n = {mean_shape[-1]} being the length of the "
            f"mean; got shape {cov_shape} for a mean of shape {mean_shape}"
        )
    ready = [to_array(cast(value, aval, dtype, weak)) for value, aval in zip(operands, avals, strict=True)]
    return _log_density(*ready)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Return the density of the multivariate normal distribution.

    Args:
        x: an array of vectors along the last axis.
        mean: an array of vectors; with a number, the distribution is elementwise.
        cov: positive definite matrices, or a number, which multiplies the identity.

    Returns:
        An array of the broadcast other axes; NaN where `cov` is not positive definite.

    Raises:
        TypeError: an operand is not an array.
        ValueError: the shapes do not agree.

    Example:
        >>> scipy.stats.multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
        Array(0.15915495, dtype=float32)
    """
    return exp(logpdf(x, mean, cov))


_make_public(globals(), __all__)
