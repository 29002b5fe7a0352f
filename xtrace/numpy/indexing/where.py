"""`where`: elements of two arrays by a condition, or the positions of a condition's true elements."""

from __future__ import annotations

from typing import Any, overload

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import select_where
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array

with late_modules(globals()):
    from xtrace.numpy.indexing import nonzero_elements

_select_where = inline_jit(select_where)


@inline_jit(public=True)
def _where(condition: object, x: ArrayLike, y: ArrayLike) -> Array:
    for position, operand in enumerate((condition, x, y)):
        operand_aval(operand, position)
    return _select_where(condition, x, y)


@overload
def where(
    condition: Any, x: None = ..., y: None = ..., /, *, size: int | None = ..., fill_value: object = ...
) -> tuple[Array, ...]: ...


@overload
def where(
    condition: Any, x: Any, y: Any, /, *, size: int | None = ..., fill_value: object = ...
) -> Array: ...


def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: object = None
) -> Array | tuple[Array, ...]:
    """Return the elements of `x` where `condition` holds, of `y` elsewhere; of a condition alone, its positions.

    Args:
        condition: an array or a scalar; it holds where it is true or not zero.
        x, y: arrays or scalars that broadcast against `condition`; both or neither.
        size: the number of positions, which must be known while tracing: more are left out, and missing ones filled.
        fill_value: fills missing positions; None for 0.

    Returns:
        An array of the broadcast shape and the promoted dtype of `x` and `y`. Without them, a tuple of arrays of
        integers, one for each axis of `condition`.

    Raises:
        ConcretizationTypeError: the positions of a traced condition are asked for without `size`.
        TypeError: an operand is no array and no scalar, or only one of `x` and `y` is given.
        ValueError: the shapes do not broadcast, or `size` or `fill_value` is given beside `x` and `y`.

    Example:
        >>> jnp.where(jnp.array([True, False]), 1, jnp.array([5, 6]))
        Array([1, 6], dtype=int32)
        >>> jnp.where(jnp.array([0, 3, 0, 4]))
        (Array([1, 3], dtype=int32),)
    """
    if x is None and y is None:
        # It has loops, which load late.
        return nonzero_elements.nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the form with a condition only; leave them out")
    if x is None or y is None:
        raise TypeError(f"where: {'x' if x is None else 'y'} is None; give both x and y, or neither for the positions")
    return _where(condition, x, y)
