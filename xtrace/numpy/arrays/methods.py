"""NumPy's methods and attributes of arrays, given to tracers and concrete arrays alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xtrace import numpy as _numpy
from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import convert_to, list_shape_entries
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import is_array_like, not_an_array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.dtypes import DType
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise.comparisons import ne
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import array_from_host
from xtrace._src.xla import guards

with late_modules(globals()):
    from xtrace._src.api.devices import device_put
    from xtrace._src.ops.arrays.concatenation import unstack
    from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice_in_dim
    from xtrace._src.ops.elementwise import complex_numbers
    from xtrace._src.ops.elementwise.reinterpretation import bitcast_convert_type
    from xtrace.numpy.arrays import conversion
    from xtrace.numpy.indexing import indexed_updates, indexing

# The rows that one program returns at most: a longer program takes more time to compile than it saves.
_ROWS_PER_PROGRAM = 16


def _reshape(self: Array, *args: Array, order: str = "C", out_sharding: object = None) -> Array:
    """Return the elements in a new shape, given as integers or as one tuple; one of them may be -1."""
    try:
        shape = args[0] if len(args) == 1 else args
        return _numpy.reshape(self, shape, order, out_sharding=out_sharding)
    except BaseException as error:
        hide_frames(error)
        raise


def _flatten(self: Array, order: str = "C", *, out_sharding: object = None) -> Array:
    """Return the elements as a 1-D array."""
    return _numpy.ravel(self, order, out_sharding=out_sharding)


def _transpose(self: Array, *args: ArrayLike) -> Array:
    """Return the array with its axes in the given order, integers or one tuple; reversed without one."""
    if not args or args[0] is None:
        return _numpy.transpose(self)
    return _numpy.transpose(self, list_shape_entries(args[0]) if len(args) == 1 else args)


def _astype(self: Array, dtype: DType, copy: bool = False, device: object = None) -> Array:
    """Return the array with elements of type `dtype` (None: float)."""
    return conversion.convert_array(self, dtype, copy, device, function="astype")


def _copy(self: Array) -> Array:
    """Return a copy in memory of its own."""
    return _numpy.copy(self)


def _view(self: Array, dtype: DType | None = None, type: None = None) -> Array:
    """Return the same bits as elements of `dtype`; the last axis grows or shrinks if the sizes differ.

    ValueError if its bits are not a whole number of elements.
    """
    if type is not None:
        raise NotImplementedError("view: `type` is not supported; arrays have one class")
    wanted = requested_dtype(dtype, function="view")
    if wanted is None or wanted == self.dtype:
        return self
    if dtypes.is_boolean(self.dtype):
        self = self.astype("uint8")
        if wanted == dtypes.uint8:
            return self
    own, target = dtypes.bit_width(self.dtype), dtypes.bit_width(wanted)
    has_complex = dtypes.is_complex(self.dtype) or dtypes.is_complex(wanted)
    if own == target and not dtypes.is_boolean(wanted) and not has_complex:
        return bitcast_convert_type(self, wanted)
    if self.ndim == 0:
        raise ValueError("view: a scalar can only be seen as a dtype of the same size")
    if (self.shape[-1] * own) % target:
        raise ValueError(
            f"view: the last axis of shape {self.shape} holds {self.shape[-1] * own} bits, not a multiple of the "
            f"{target} of {wanted.name}"
        )
    if dtypes.is_complex(self.dtype):
        pairs = _numpy.stack([complex_numbers.real(self), complex_numbers.imag(self)], -1)
        return _view(pairs.reshape(*self.shape[:-1], -1), wanted)
    if dtypes.is_complex(wanted):
        part = dtypes.real_part_dtype(wanted)
        pairs = _view(self, part).reshape(*self.shape[:-1], -1, 2)
        return complex_numbers.complex(pairs[..., 0], pairs[..., 1])
    if dtypes.is_boolean(wanted):
        return ne(_view(self, dtypes.uint8), _numpy.zeros((), "uint8"))
    if own < target:
        self = self.reshape(*self.shape[:-1], -1, target // own)
        return bitcast_convert_type(self, wanted)
    viewed = bitcast_convert_type(self, wanted)
    return viewed.reshape(*viewed.shape[:-2], -1) if own > target else viewed


def _to_device(self: Array, device: object, *, stream: object = None) -> Array:
    """Return the array on `device`."""
    if stream is not None:
        raise NotImplementedError("to_device: `stream` is not supported")
    return device_put(self, device)


def _dot(self: Array, b: Array, *, precision: object = None, preferred_element_type: object = None) -> Array:
    """Return ``dot(self, b)``."""
    return _numpy.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _nonzero(self: Array, *, fill_value: Array | None = None, size: int | None = None) -> tuple[Any, ...]:
    """Return the positions of nonzero elements; a traced array needs `size`."""
    return _numpy.nonzero(self, size=size, fill_value=fill_value)


def _choose(self: Array, choices: list[Array], out: None = None, mode: str = "raise") -> Array:
    """Return for each integer the element of the choice with that number."""
    return _numpy.choose(self, choices, out, mode)


def _argpartition(self: Array, kth: int, axis: int = -1) -> Array:
    """Return the positions that partition the array at `kth` along `axis`."""
    return _numpy.argpartition(self, kth, axis)


def _searchsorted(
    self: Array, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Return where `v` belongs in this sorted 1-D array; see ``xtrace.numpy.searchsorted``."""
    return _numpy.searchsorted(self, v, side, sorter, method=method)


def _byteswap(self: Any) -> Any:
    """Return the array with the bytes of each element reversed; of each part for complex numbers."""
    if dtypes.is_complex(self.dtype):
        return complex_numbers.complex(_byteswap(self.real), _byteswap(self.imag))
    if self.dtype.itemsize == 1:
        return self
    pieces = bitcast_convert_type(self, dtypes.uint8)
    return bitcast_convert_type(pieces[..., ::-1], self.dtype)


def _compress(
    self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None, size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Return the slices along `axis` where `condition` holds; `size` of them under jit."""
    return _numpy.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _matmul(self: Array, other: Array) -> Array:
    return _numpy.matmul(self, other) if _is_operand(other, "@") else NotImplemented


def _reflected_matmul(self: Array, other: Array) -> Array:
    return _numpy.matmul(other, self) if _is_operand(other, "@") else NotImplemented


def _is_operand(other: object, symbol: str) -> bool:
    """Return whether an object can be an operand of an operator; TypeError for containers."""
    if isinstance(other, Array) or is_array_like(other):
        return True
    if isinstance(other, (list, tuple, str, bytes, dict, set, type(None))):
        raise TypeError(
            f"unsupported operand for {symbol}: {not_an_array(other)}. Convert it with xtrace.numpy.asarray first."
        )
    return False


def _contains(self: Array, item: object) -> bool:
    """Return whether an element of a 1-D array equals `item`; TypeError unless that is an array or number."""
    if not _is_operand(item, "in"):
        raise TypeError(f"unsupported operand for in: {not_an_array(item)}")
    if self.ndim != 1:
        raise ValueError(f"`in` searches 1-D arrays; this one has shape {self.shape}. Write (x == item).any()")
    return bool(_numpy.any(self == item))


def _iterate(self: Array) -> Iterator[Any]:
    """Iterate over the first axis."""
    if not self.shape:
        raise explain.iteration(self)
    if not isinstance(self, ConcreteArray):
        return (indexing.getitem(self, i) for i in range(self.shape[0]))
    return _iterate_rows(self)


def _iterate_rows(array: ConcreteArray) -> Iterator[Any]:
    """Iterate over the first axis of a concrete array; one program returns many rows.

    Rows of an array sharded over devices are copied from the host to the default device, as in JAX.
    """
    length = len(array)
    if not array.is_fully_replicated and array.is_fully_addressable:
        row = array.aval.update(shape=array.shape[1:], sharding=None)
        for data in array.physical_array():
            with guards.mark_explicit("put"):
                element = array_from_host(np.asarray(data), row)
            yield element
        return
    for start in range(0, length, _ROWS_PER_PROGRAM):
        size = min(_ROWS_PER_PROGRAM, length - start)
        yield from unstack(array if size == length else dynamic_slice_in_dim(array, start, size))


def _getitem(self: Array, index: Array) -> Array:
    """Return ``self[index]`` as NumPy does; positions out of bounds are moved to the nearest end."""
    try:
        return indexing.getitem(self, index)
    except BaseException as error:
        hide_frames(error)
        raise


def _refuse_assignment(self: Array, index: Array, value: Array) -> None:
    """Raise TypeError: arrays are immutable."""
    raise explain.item_assignment(self)


def _round(self: Array, ndigits: int | None = None) -> Array:
    """Return ``round(self, ndigits)``; integers without `ndigits`, as for Python's numbers."""
    if ndigits is not None:
        return _numpy.round(self, ndigits)
    return convert_to(_numpy.round(self), dtypes.default_int(config.enable_x64.value))


def _array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Return ``xtrace.numpy``, which follows the array API standard."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"the array API version {abbreviate(api_version)} is not known")
    return _numpy


def _itemsize(self: Any) -> int:
    """The size of an element in bytes, as NumPy stores it."""
    return int(self.dtype.itemsize)


def _nbytes(self: Any) -> Any:
    """The size of the elements in bytes, as NumPy stores them."""
    return self.size * self.dtype.itemsize


# Methods by name; None stands for the function of `xtrace.numpy` with that name.
METHODS: dict[str, Callable[..., Any] | None] = {
    **dict.fromkeys((
        "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "conjugate", "cumprod", "cumsum", "diagonal",
        "max", "mean", "min", "prod", "ptp", "ravel", "repeat", "round", "sort", "squeeze", "std", "sum", "swapaxes",
        "take", "trace", "var",
    )),
    "reshape": _reshape, "flatten": _flatten, "transpose": _transpose, "astype": _astype, "copy": _copy, "view": _view,
    "to_device": _to_device, "dot": _dot, "nonzero": _nonzero,
    "choose": _choose, "compress": _compress, "argpartition": _argpartition, "searchsorted": _searchsorted,
    "byteswap": _byteswap,
    "__matmul__": _matmul, "__rmatmul__": _reflected_matmul, "__contains__": _contains, "__iter__": _iterate,
    "__getitem__": _getitem, "__setitem__": _refuse_assignment, "__round__": _round,
    "__array_namespace__": _array_namespace,
}

PROPERTIES: dict[str, Callable[[Any], Any] | str] = {
    "T": "transpose", "mT": "matrix_transpose", "real": "real", "imag": "imag", "at": "IndexUpdater",
    "itemsize": _itemsize, "nbytes": _nbytes,
}


def install_method(cls: type, name: str) -> None:
    """Set a method or an attribute of a class of arrays, in place of its loader."""
    if name in METHODS:
        setattr(cls, name, array_boundary(METHODS[name] or getattr(_numpy, name)))
    else:
        getter = PROPERTIES[name]
        home = indexed_updates if name == "at" else _numpy
        function = getattr(home, getter) if isinstance(getter, str) else getter
        setattr(cls, name, property(function, doc=function.__doc__))
