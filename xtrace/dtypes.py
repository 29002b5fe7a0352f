"""Dtype functions under JAX's ``dtypes`` names, for the current setting of ``jax_enable_x64``."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.core import config
from xtrace._src.core import dtypes as _core
from xtrace._src.core.dtypes import (
    TypePromotionError,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    scalar_type_of,
)
from xtrace._src.core.function_names import copy_with_name as _renamed
from xtrace._src.core.late import make_public as _make_public

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype",
    "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]

bfloat16 = _core.bfloat16.type
itemsize_bits = _renamed(_core.bit_width, "itemsize_bits")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype[Any]:
    """Return the dtype an array gets when `dtype` is asked for; None means float, as in NumPy.

    A TypeError says what is accepted; a ValueError that an extended dtype (a random key's) is not, unless allowed.
    """
    found = _core.canonicalize(float if dtype is None else dtype, config.enable_x64.value)
    if isinstance(found, _core.ExtendedDType) and not allow_extended_dtype:
        raise ValueError(f"{found} is an extended dtype; pass allow_extended_dtype=True to accept it")
    return found


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Return the dtype of an operation on `args`, arrays, scalars and dtypes; with the flag, (dtype, whether weak).

    Raises TypePromotionError where they have no common dtype, TypeError for an argument that has none.
    """
    x64, mode, wide = config.promotion()
    if not args:
        raise ValueError("result_type of nothing; give at least one array or dtype")
    pairs = tuple((_core.default_float(x64), False) if x is None else _core.dtype_and_weak(x, x64, wide) for x in args)
    dtype, weak = _core.promote(pairs, x64, mode, wide)
    return (dtype, weak) if return_weak_type_flag else dtype


_make_public(globals(), __all__)
