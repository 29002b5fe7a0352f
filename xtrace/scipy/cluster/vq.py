"""Vector quantization."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.linalg import norm
from xtrace.numpy.operands import cast_to
from xtrace.numpy.reductions.reductions import argmin, min

__all__ = ["vq"]


@inline_jit(static=("check_finite",), public=True)
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Any, Any]:
    """Find the nearest row of a code book for each row.

    Args:
        obs: a matrix of observations, or a vector of numbers.
        code_book: a matrix of codes, or a vector.
        check_finite: without effect.

    Returns:
        A pair of vectors: the number of the nearest code, and the distance to it.

    Raises:
        TypeError: the rows have different lengths.
        ValueError: the ranks differ, or are not 1 or 2.

    Example:
        >>> scipy.cluster.vq.vq(jnp.array([[0.0], [5.0]]), jnp.array([[1.0], [4.0]]))
        (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))

    Reference:
        A. Gersho and R. M. Gray, Vector Quantization and Signal Compression (1992), section 10.4.
    """
    avals, dtype, _ = common_dtype((obs, code_book), as_inexact)
    shapes = [x.shape for x in avals]
    if avals[0].ndim != avals[1].ndim:
        raise ValueError(f"vq: obs and code_book should have the same rank, got shapes {shapes[0]} and {shapes[1]}")
    if avals[0].ndim not in (1, 2):
        raise ValueError(f"vq: obs and code_book must have rank 1 or 2, got shapes {shapes[0]} and {shapes[1]}")
    if avals[0].ndim == 2 and shapes[0][1] != shapes[1][1]:
        raise TypeError(f"vq: rows of obs and code_book must be equally long, got shapes {shapes[0]} and {shapes[1]}")
    observations, codes = [cast_to(x, aval, dtype) for x, aval in zip((obs, code_book), avals, strict=True)]
    if observations.ndim == 1:
        observations, codes = observations[:, None], codes[:, None]
    distances = norm(observations[:, None, :] - codes[None], axis=-1)
    return argmin(distances, axis=-1), min(distances, axis=-1)


_make_public(globals(), __all__)
