"""Functions of dtypes under the current setting of ``jax_enable_x64`` (``jax.dtypes``)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from xtrace._src.core import dtypes as _core
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.dtypes import (
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    scalar_type_of,
)
from xtrace._src.core.function_names import copy_with_name as _renamed
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.settings import config
from xtrace._src.core.type_promotion import TypePromotionError
from xtrace._src.core.type_promotion import promote as _promote

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]

bfloat16 = _core.bfloat16.type
itemsize_bits = _renamed(_core.bit_width, "itemsize_bits")


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """Return the dtype of an array that is created with a given dtype.

    Args:
        dtype: a dtype or scalar class; None for float.
        allow_extended_dtype: whether extended dtypes, such as the dtypes of random keys, are accepted.

    Returns:
        A dtype: 32-bit instead of 64-bit unless ``jax_enable_x64`` is set.

    Raises:
        TypeError: `dtype` is not a dtype that arrays can have.
        ValueError: `dtype` is an extended dtype, and allow_extended_dtype is False.

    Example:
        >>> xtrace.dtypes.canonicalize_dtype(float)
        dtype('float32')
    """
    canonical: np.dtype[Any] = _core.canonicalize(float if dtype is None else dtype, config.enable_x64.value)
    if isinstance(canonical, _core.ExtendedDType) and not allow_extended_dtype:
        raise ValueError(f"{canonical} is an extended dtype; pass allow_extended_dtype=True to accept it")
    return canonical


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = ...) -> np.dtype[Any]: ...


@overload
def result_type(*args: Any, return_weak_type_flag: bool) -> Any: ...


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype of an operation on arrays, scalars and dtypes.

    Args:
        args: the operands.
        return_weak_type_flag: whether to return a pair of the dtype and the flag of a weak type.

    Returns:
        A dtype, or a pair.

    Raises:
        TypeError: an operand has no dtype.
        TypePromotionError: the operands have no common dtype.
        ValueError: there are no operands.

    Example:
        >>> xtrace.dtypes.result_type(jnp.int8, 1.0)
        dtype('float32')
    """
    x64, mode, wide = config.promotion_settings()
    if not args:
        raise ValueError("result_type of nothing; give at least one array or dtype")
    pairs = tuple((_core.default_float(x64), False) if x is None else _core.dtype_and_weak(x, x64, wide) for x in args)
    dtype, weak = _promote(pairs, x64, mode, wide)
    return (dtype, weak) if return_weak_type_flag else dtype


_make_public(globals(), __all__)
