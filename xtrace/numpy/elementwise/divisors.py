"""Greatest common divisors and least common multiples."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import check_broadcast, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import common_dtype, promote, promote_dtypes
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.ops.elementwise.elementwise import rem
from xtrace.numpy.arrays.conversion import to_array_operand
from xtrace.numpy.elementwise.ufuncs import abs
from xtrace.numpy.indexing.where import where
from xtrace.numpy.operands import broadcast_operand_to
from xtrace.numpy.reductions import reductions


def _check_integers(x1: ArrayLike, x2: ArrayLike) -> None:
    avals, dtype, _ = common_dtype((x1, x2))
    if not dtypes.is_integer(dtype):
        raise ValueError(
            f"{called_function()}: arguments must be integers, got dtypes {avals[0].dtype.name} and "
            f"{avals[1].dtype.name}"
        )
    check_broadcast([a.shape for a in avals])


def _broadcast_magnitudes(x1: ArrayLike, x2: ArrayLike) -> list[Any]:
    _, values = promote_dtypes((to_array_operand(x1), to_array_operand(x2)))
    sizes = [abs(x) for x in values]
    shape = check_broadcast([x.shape for x in sizes])
    # As in jax, only scalars stay weakly typed.
    weak = sizes[0].weak_type and not shape
    return [convert_to(broadcast_operand_to(x, x.shape, shape), x.dtype, weak) for x in sizes]


@inline_jit(public=True)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisors of integers, never negative; 0 for two zeros.

    Args:
        x1, x2: arrays or scalars of integers whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: an operand has no integers, or the shapes do not broadcast.

    Example:
        >>> jnp.gcd(jnp.array([12, -8]), 18)
        Array([6, 2], dtype=int32)
    """
    _check_integers(x1, x2)

    # Euclid's algorithm, for all elements until the last one is done.
    def step(pair: tuple[Array, ...]) -> tuple[Array, ...]:
        x, y = pair
        done = y == 0
        return where(done, x, y), where(done, y, rem(x, where(done, 1, y)))

    return while_loop(lambda pair: reductions.any(pair[1] != 0), step, tuple(_broadcast_magnitudes(x1, x2)))[0]


@inline_jit(public=True)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiples of integers, never negative; 0 if one of them is zero.

    Args:
        x1, x2: arrays or scalars of integers whose shapes broadcast.

    Returns:
        An array of the broadcast shape and the promoted dtype.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: an operand has no integers, or the shapes do not broadcast.

    Example:
        >>> jnp.lcm(jnp.array([12, -8]), 18)
        Array([36, 72], dtype=int32)
    """
    _check_integers(x1, x2)
    x1, x2 = _broadcast_magnitudes(*promote(to_array_operand(x1), to_array_operand(x2)))
    divisor = gcd(x1, x2)
    return where(divisor == 0, 0, x1 * (x2 // where(divisor == 0, 1, divisor)))
