"""Arrays to and from files, buffers and text, and how NumPy prints them."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy import get_printoptions, printoptions
from numpy.exceptions import ComplexWarning

from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import is_array_like
from xtrace._src.core.diagnostics.messages import called_function
from xtrace.numpy.arrays.conversion import asarray

__all__ = ["ComplexWarning", "get_printoptions", "printoptions"]


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how NumPy, and so arrays, print numbers.

    Args:
        args, kwargs: the arguments of ``numpy.set_printoptions``.

    Raises:
        TypeError: NumPy knows no such option.

    Example:
        >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def array_repr(arr: ArrayLike, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """Return the text that `repr` of an array shows.

    Args:
        arr: an array.
        max_line_width: the largest number of columns; None for NumPy's setting.
        precision: the number of digits; None for NumPy's setting.
        suppress_small: whether numbers near zero are shown as zero; None for NumPy's setting.

    Returns:
        A text.

    Raises:
        TypeError: `arr` is not an array, or an option has another type.

    Example:
        >>> jnp.array_repr(jnp.array([1.5, 2.0]))
        'Array([1.5, 2. ], dtype=float32)'
    """
    return "A" + np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)[1:]


def array_str(a: ArrayLike, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """Return the text that `str` of an array shows.

    Args:
        a: an array.
        max_line_width: the largest number of columns; None for NumPy's setting.
        precision: the number of digits; None for NumPy's setting.
        suppress_small: whether numbers near zero are shown as zero; None for NumPy's setting.

    Returns:
        A text.

    Raises:
        TypeError: `a` is not an array, or an option has another type.

    Example:
        >>> jnp.array_str(jnp.array([1.5, 2.0]))
        '[1.5 2. ]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's npy format.

    Args:
        file: a path, or a file open for binary writing.
        arr: an array, or another object, which NumPy pickles.
        allow_pickle: whether objects may be pickled.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> import io; file = io.BytesIO()
        >>> jnp.save(file, jnp.array([1, 2])); file.seek(0)
        0
        >>> jnp.load(file)
        Array([1, 2], dtype=int32)
    """
    np.save(file, arr, allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one file in NumPy's npz format.

    Args:
        file: a path, or a file open for binary writing.
        args: arrays, named arr_0, arr_1 and so on.
        allow_pickle: whether objects may be pickled.
        kwds: arrays with their names.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> import io; file = io.BytesIO()
        >>> jnp.savez(file, x=jnp.array([1, 2])); file.seek(0)
        0
        >>> jnp.load(file)["x"]
        array([1, 2], dtype=int32)
    """
    np.savez(file, *args, allow_pickle=allow_pickle, **kwds)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an npy or npz file.

    Args:
        file: a path, or a file open for binary reading.
        args, kwargs: further arguments of ``numpy.load``.

    Returns:
        The array of an npy file, a NumPy array if the dtype is unsupported; for an npz file NumPy's mapping of names
        to arrays.

    Raises:
        OSError: the file cannot be read.

    Example:
        >>> import io; file = io.BytesIO()
        >>> jnp.save(file, jnp.array([1, 2])); file.seek(0)
        0
        >>> jnp.load(file)
        Array([1, 2], dtype=int32)
    """
    data = np.load(file, *args, **kwargs)
    if not isinstance(data, np.ndarray):
        return data
    if data.dtype == np.dtype("V2"):
        # NumPy's format lacks a name for bfloat16; jax, too, reads elements of two bytes as bfloat16.
        data = data.view(dtypes.bfloat16)
    return asarray(data) if is_array_like(data) else data


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Return the numbers in a string.

    Args:
        string: numbers, separated by `sep`.
        dtype: the dtype of the result.
        count: how many numbers to read; -1 for all.
        sep: the separator of the numbers.

    Returns:
        A vector.

    Raises:
        ValueError: the string contains something else.

    Example:
        >>> jnp.fromstring("1, 2, 3", dtype=int, sep=",")
        Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """Return a copy of the elements in a buffer of bytes.

    Args:
        buffer: an object with the buffer protocol.
        dtype: the dtype of the elements.
        count: the number of elements; -1 for all.
        offset: the first byte.

    Returns:
        A vector.

    Raises:
        TypeError: `buffer` lacks the protocol.
        ValueError: the buffer is too short.

    Example:
        >>> jnp.frombuffer(b"abc", dtype=jnp.uint8)
        Array([97, 98, 99], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def _refuse() -> NoReturn:
    name = called_function()
    raise NotImplementedError(
        f"{name} is not supported: it reads external data, which a traced function must not do. Write "
        f"xtrace.numpy.asarray(numpy.{name}(...))"
    )


def fromfile(*args: ArrayLike, **kwargs: object) -> NoReturn:
    """Raise NotImplementedError: a traced function must not read files; convert the result of ``numpy.fromfile``.

    Args:
        args, kwargs: any arguments.

    Raises:
        NotImplementedError: always.

    Example:
        >>> jnp.array(np.arange(2))
        Array([0, 1], dtype=int32)
    """
    _refuse()


def fromiter(*args: ArrayLike, **kwargs: object) -> NoReturn:
    """Raise NotImplementedError: tracing uses iterators up; convert the result of ``numpy.fromiter``.

    Args:
        args, kwargs: any arguments.

    Raises:
        NotImplementedError: always.

    Example:
        >>> jnp.array(np.fromiter([1, 2], int))
        Array([1, 2], dtype=int32)
    """
    _refuse()
