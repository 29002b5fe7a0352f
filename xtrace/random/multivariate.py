"""Random vectors and matrices: multivariate normal vectors and orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import canonical_shape, convert_to
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import to_integer
from xtrace._src.ops.elementwise import elementwise as lax
from xtrace.numpy.linalg import cholesky, eigh, qr, svd
from xtrace.numpy.manipulation.rearrangement import diagonal
from xtrace.numpy.products.einstein_sums import einsum
from xtrace.random.continuous import draw_normal
from xtrace.random.keys import check_key
from xtrace.random.sampling import broadcast_parameters, draw, get_parameter_shape, sampler, to_float_dtype

_METHODS = ("cholesky", "eigh", "svd")


@sampler
def _multivariate_normal(
    key: Array, mean: ArrayLike, cov: ArrayLike, *, shape: tuple[int, ...], dtype: np.dtype[Any], method: str
) -> Array:
    own = common_dtype((mean, cov), as_inexact)[1]
    mean, cov = convert_to(mean, own), convert_to(cov, own)
    if method == "cholesky":
        factor = cholesky(cov)
    else:
        sizes, vectors = eigh(cov) if method == "eigh" else svd(cov)[1::-1]
        factor = vectors * lax.sqrt(sizes[..., None, :])
    # If `dtype` is not the parameters' dtype, the sum below promotes.
    drawn = draw_normal(key, shape=(*shape, aval_of(mean).shape[-1]), dtype=dtype)
    return broadcast_to_shape(mean, aval_of(drawn).shape) + einsum("...ij,...j->...i", factor, drawn)


def multivariate_normal(
    key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None,
    method: str = "cholesky", *, out_sharding: object = None,
) -> Array:
    """Draw normal vectors of a given mean and covariance.

    Args:
        key: a random key, typed or legacy.
        mean: the mean along the last axis.
        cov: the covariance matrix in the last two axes.
        shape: the shape of the result without its last axis; None for the broadcast shape of mean and covariance.
        dtype: the floating dtype of the result; None for the default floating dtype.
        method: the factorization of the covariance: "cholesky", "eigh" or "svd".
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape, followed by the length of the vectors.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, shapes do not fit, or `method` or `dtype` is unknown.

    Example:
        >>> random.multivariate_normal(random.key(0), jnp.zeros(2), jnp.eye(2)).shape
        (2,)

    Reference:
        Golub and Van Loan, "Matrix Computations": a factor of the covariance times independent normal numbers.
    """
    if out_sharding is not None:
        return with_out_sharding(multivariate_normal, out_sharding, key, mean, cov, shape, dtype, method)
    if method not in _METHODS:
        raise ValueError(f"multivariate_normal: method must be one of {', '.join(_METHODS)}; got {abbreviate(method)}")
    check_key(key)
    means = get_parameter_shape("mean", mean)
    covariances = get_parameter_shape("cov", cov)
    if not means:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    n = means[-1]
    if covariances[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {covariances}."
        )
    if dtype is None:
        dtype = common_dtype((mean, cov), as_inexact)[1]
    dtype = to_float_dtype(dtype)
    own = {"mean without its last axis": means[:-1], "cov without its last two": covariances[:-2]}
    batch_shape = broadcast_parameters(own)
    if shape is not None:
        batch_shape = canonical_shape(shape)
        if broadcast_parameters({**own, "shape": batch_shape}) != batch_shape:
            raise ValueError(
                f"multivariate_normal: mean {means} and cov {covariances} do not broadcast to {batch_shape}"
            )
    return _multivariate_normal(key, mean, cov, shape=batch_shape, dtype=dtype, method=method)


@sampler
def _orthogonal(key: Array, *, n: int, m: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    # Mezzadri, "How to generate random matrices from the classical compact groups" (2007): the signs of the diagonal
    # make the factor of a normal matrix uniformly distributed.
    drawn = draw_normal(key, shape=(*shape, max(n, m), min(n, m)), dtype=dtype)
    q, r = qr(drawn)
    q = q * lax.sign(diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return q.mT if n < m else q


def orthogonal(
    key: ArrayLike, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Array:
    """Draw orthogonal matrices, or unitary ones of a complex dtype, uniformly from the group.

    Args:
        key: a random key, typed or legacy.
        n: the number of rows.
        shape: leading axes of the result.
        dtype: the floating or complex dtype of the result; None for the default floating dtype.
        m: the number of columns; None for `n`.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of the shape, followed by `n` and `m`.

    Raises:
        TypeError: `key` is not a random key.
        ValueError: `key` holds several keys, a size is negative, or `dtype` is neither floating nor complex.

    Example:
        >>> random.orthogonal(random.key(0), 2).shape
        (2, 2)

    Reference:
        Mezzadri, "How to generate random matrices from the classical compact groups" (2007).
    """
    rows = to_integer("n", n)
    columns = rows if m is None else to_integer("m", m)
    if rows < 0 or columns < 0:
        raise ValueError(f"orthogonal: negative dimensions are not allowed, got {n} and {m}")
    return draw(
        lambda k, **s: _orthogonal(k, n=rows, m=columns, **s), key, shape, dtype, out_sharding, complex_too=True
    )
