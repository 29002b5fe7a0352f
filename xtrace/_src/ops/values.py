"""The dtype of a value, and the staging of a value as a constant of the traced program."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import linear
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, not_an_array, short_repr
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.trace import Tracer, current_trace
from xtrace._src.runtime.transfer import to_constant


def dtype(x: Any) -> Any:
    """Return the dtype of a value as an array.

    Args:
        x: an array, a scalar, a dtype or a scalar class.

    Returns:
        A dtype, of 64 bits only where ``jax_enable_x64`` is set.

    Raises:
        TypeError: `x` has no dtype that arrays can have.
        ValueError: `x` is None.

    Example:
        >>> lax.dtype(1.0)
        dtype('float32')
    """
    if x is None:
        raise ValueError("dtype: x is None; give an array, a scalar or a dtype")
    try:
        return dtypes.dtype_and_weak(x, config.enable_x64.value, config.keeps_wide_dtypes())[0]
    except TypeError as error:
        raise TypeError(f"dtype: Cannot determine dtype of {short_repr(x)}: {error}") from None


@linear(sharding=same, emit=lambda builder, x: x, transpose=lambda t, x: t, moves_elements=False)
def stage(x: ArrayLike, /) -> Array:
    """Record a value in the traced program, so that operations on it are recorded as well.

    Args:
        x: an array, a scalar or a traced value.

    Returns:
        A traced value; outside of a trace an array.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> lax.stage(1)
        Array(1, dtype=int32, weak_type=True)
    """
    if isinstance(x, Tracer):
        return x
    try:
        aval = aval_of(x)
    except TypeError:
        raise TypeError(f"stage: {not_an_array(x)}") from None
    value = x if isinstance(x, Array) else to_constant(x)
    # to_constant has copied a NumPy array, which the caller may write to.
    staged = current_trace.get().constant(np.asarray(value) if not aval.shape else value, aval)
    return value if staged is None else staged
