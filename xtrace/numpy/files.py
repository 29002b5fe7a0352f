"""Arrays to and from files, buffers and text, and how NumPy prints them."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy import get_printoptions, printoptions
from numpy.exceptions import ComplexWarning

from xtrace._src.core import dtypes
from xtrace._src.core.avals import is_array_like
from xtrace.numpy.creation import asarray

__all__ = ["ComplexWarning", "get_printoptions", "printoptions"]


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how NumPy, and so the arrays here, print numbers; the arguments are NumPy's."""
    np.set_printoptions(*args, **kwargs)


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """Return what `repr` of an array shows, with NumPy's options for its numbers."""
    return "A" + np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)[1:]


def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """Return what `str` of an array shows, with NumPy's options for its numbers."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's npy format; float8 and the like come back as raw bytes, see `load`.

    Other objects are pickled, with `allow_pickle`, as NumPy does it.
    """
    np.save(file, arr, allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one file in NumPy's npz format, called arr_0, arr_1 … or by their keywords."""
    np.savez(file, *args, allow_pickle=allow_pickle, **kwds)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array in an npy file, or the contents of an npz file as NumPy gives them; arguments as NumPy's.

    What no array can hold, such as text, dates and pickled objects, is an array of NumPy's.
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype == np.dtype("V2"):
        # NumPy's format has no name for bfloat16, and jax reads such elements so.
        found = found.view(dtypes.bfloat16)
    return asarray(found) if is_array_like(found) else found


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """Return the numbers in a text, separated by `sep`, at most `count` of them; ValueError for other text."""
    return asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """Return the elements in a buffer of bytes from `offset` on, all or `count` of them, copied.

    ValueError for a buffer that is too short, TypeError for an object that is none.
    """
    return asarray(np.frombuffer(buffer, dtype=dtype, count=count, offset=offset))


def _refused(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} is not there: it reads from outside, which a traced function must not do. Write "
        f"xtrace.numpy.asarray(numpy.{name}(...))"
    )


def fromfile(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: a traced function must not read files; convert what `numpy.fromfile` reads."""
    _refused("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: iterators are used up by tracing; convert what `numpy.fromiter` gives."""
    _refused("fromiter")
