"""Shared checks of matrices, and their conversion to a floating dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.api.operators.promotion import as_inexact, cast, common_dtype
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.errors import MatrixShapeError

Result = TypeVar("Result")


def matrix_type(a: ArrayLike, position: int = 0, *, square: bool = False) -> ShapedArray:
    """Return the type of an operand that holds matrices in its last two axes.

    TypeError for other objects, MatrixShapeError for fewer than two axes, or for matrices that are not `square`.
    """
    aval = operand_aval(a, position)
    if aval.ndim < 2 or (square and aval.shape[-1] != aval.shape[-2]):
        form = "[..., n, n]" if square else "[..., m, n]"
        raise MatrixShapeError(f"Argument {position} to {called_function()} must have shape {form}, got {aval.shape}")
    return aval


def promote_to_inexact(*operands: ArrayLike, function: str = "") -> list[Array]:
    """Return the operands in their common dtype, for integers and booleans the default floating dtype."""
    avals, dtype, weak = common_dtype(operands, as_inexact, function=function)
    return [cast(x, aval, dtype, weak) for x, aval in zip(operands, avals, strict=True)]


def for_each_matrix(function: Callable[..., Result], *operands: ArrayLike) -> Result:
    """Apply a function of matrices to each element of batches of one shape."""
    for _ in range(aval_of(operands[0]).ndim - 2):
        function = vmap(function)
    return function(*operands)
