"""Cumulative sums and products."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.elementwise.comparisons import ne
from xtrace._src.ops.reductions.cumulative import cumprod as cumprod_of_axis
from xtrace._src.ops.reductions.cumulative import cumsum as cumsum_of_axis
from xtrace.numpy.arrays.creation import full, warn_of_lost_part
from xtrace.numpy.operands import refuse, scalar_of
from xtrace.numpy.reductions.reductions import dtype_of_sum, to_strong


def accumulate(
    a: ArrayLike, axis: Axes, dtype: DTypeLike, name: str, promote: bool = False, initial: bool = False
) -> Array:
    """Check the arguments and return the cumulative results of lax's operation `name`."""
    aval = operand_aval(a, 0)
    wanted = dtype_of_sum(a, dtype, promote)
    warn_of_lost_part(aval.dtype, wanted)
    # A scalar is treated as a vector of one element.
    along = None if axis is None else canonical_axis(axis, aval.ndim or 1)
    along = along if aval.ndim else None
    if dtypes.is_boolean(wanted):
        # For a boolean result, nonzero elements are counted, and the counts converted back.
        a, compute = ne(a, scalar_of(0, aval.dtype)), dtypes.default_int(config.enable_x64.value)
    else:
        compute = wanted
    a = to_strong(a, compute)
    if along is None:
        a, along = reshape(a, (a.size,)), 0
    totals = (cumsum_of_axis if name == "cumsum" else cumprod_of_axis)(a, along)
    if initial:
        first = full((*a.shape[:along], 1, *a.shape[along + 1 :]), 0 if name == "cumsum" else 1, compute)
        totals = concatenate([first, totals], along)
    return to_strong(totals, wanted)


@inline_jit(static=("axis", "dtype", "out"), public=True)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the running sums along an axis.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
    """
    refuse(out=out)
    return accumulate(a, axis, dtype, "cumsum")


@inline_jit(static=("axis", "dtype", "out"), public=True)
def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Return the running products along an axis.

    Args:
        a: an array or a scalar.
        axis: the axis, an integer; None for the flattened array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.

    Returns:
        An array of the shape of `a`, of its dtype; booleans count as the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.cumprod(jnp.array([1, 2, 3]))
        Array([1, 2, 6], dtype=int32)
    """
    refuse(out=out)
    return accumulate(a, axis, dtype, "cumprod")


def _resolve_axis(x: ArrayLike, axis: int | None) -> Any:
    rank = operand_aval(x, 0).ndim
    if rank == 0:
        raise ValueError(f"{called_function()}: the array must have at least one axis, got a scalar")
    if axis is None and rank > 1:
        raise ValueError(
            f"{called_function()}: The input array has rank {rank}, however axis was not set to an explicit value"
        )
    return 0 if axis is None else axis


@inline_jit(static=("axis", "include_initial"), public=True)
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the running sums along an axis.

    Args:
        x: an array of at least one axis.
        axis: the axis; None only for a vector.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        include_initial: whether the result begins with a 0 and is one element longer.

    Returns:
        An array of the dtype of `x`; small integers become the default integer.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is None and `x` is not a vector, or `x` has no such axis.

    Example:
        >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
        Array([0, 1, 3, 6], dtype=int32)
    """
    along = _resolve_axis(x, axis)
    return accumulate(x, along, dtype, "cumsum", True, bool(include_initial))


@inline_jit(static=("axis", "include_initial"), public=True)
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the running products along an axis.

    Args:
        x: an array of at least one axis.
        axis: the axis; None only for a vector.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        include_initial: whether the result begins with a 1 and is one element longer.

    Returns:
        An array of the dtype of `x`; booleans become the default integer.

    Raises:
        TypeError: `x` is not an array.
        ValueError: `axis` is None and `x` is not a vector, or `x` has no such axis.

    Example:
        >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
        Array([1, 1, 2, 6], dtype=int32)
    """
    along = _resolve_axis(x, axis)
    return accumulate(x, along, dtype, "cumprod", False, bool(include_initial))
