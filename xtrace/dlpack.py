"""Arrays shared with other libraries (``jax.dlpack``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.numpy.arrays.conversion import from_dlpack as _from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]

# The dtypes of whole bytes with a name in the protocol that XLA reads.
_SUPPORTED = frozenset(map(np.dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
))) | {np.dtype(dtypes.bfloat16)}


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """Convert an object with the DLPack protocol to an array.

    Nobody may write to shared memory during the life of the array: arrays are constant.

    Args:
        external_array: an object with ``__dlpack__`` and ``__dlpack_device__``, such as an array of another library.
        device: the device or the sharding of the result; None for the device of the memory.
        copy: whether to copy the memory; None to copy only memory that XLA cannot use.

    Returns:
        An array that shares memory with the object, or a copy.

    Raises:
        BufferError: the dtype is not known.
        TypeError: the object does not have the protocol.
        ValueError: the memory is on an unknown device, or `copy` is False and a copy is needed.

    Example:
        >>> xtrace.dlpack.from_dlpack(np.array([1.0, 2.0], np.float32))
        Array([1., 2.], dtype=float32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Return whether arrays of a dtype can be shared with other libraries.

    Args:
        dtype: a dtype, or a name or scalar class of one.

    Returns:
        A Python bool.

    Raises:
        TypeError: `dtype` is not a dtype of NumPy.

    Example:
        >>> xtrace.dlpack.is_supported_dtype("bfloat16"), xtrace.dlpack.is_supported_dtype("int4")
        (True, False)
    """
    return np.dtype(dtype) in _SUPPORTED


_make_public(globals(), __all__)
