"""Arrays filled with a value, and triangles of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import reshard_as
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_shape, convert_to, operand_aval
from xtrace._src.api.devices import device_put
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import add
from xtrace._src.api.operators.promotion import cast_constant
from xtrace._src.api.tracing import abstract_leaf
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.elementwise.comparisons import eq, ge
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.runtime.transfer import sharding_like
from xtrace.numpy.operands import broadcast_operand_to, place_of, to_known_integer

with late_modules(globals()):
    from xtrace._src.algebra.varying import vary
    from xtrace._src.ops.arrays.creation import broadcasted_iota, fill_operand, scalar_operand

SCALARS = frozenset((bool, int, float, complex))


def python_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a Python scalar in the class of `dtype`; TypeError for a complex number and a real dtype."""
    if dtypes.is_boolean(dtype):
        return bool(value)
    if dtypes.is_complex(dtype):
        return complex(value)
    if isinstance(value, complex):
        raise TypeError(f"{called_function()}: the complex number {value} cannot become {dtype.name}; take its .real")
    return int(value) if dtypes.is_integer(dtype) else float(value)


def fill_array(shape: tuple[int, ...], value: ArrayLike, dtype: np.dtype[Any], weak: bool, device: object) -> Array:
    """Return an array filled with a Python scalar, which an extended dtype converts itself."""
    is_extended = isinstance(dtype, dtypes.ExtendedDType)
    aval = ShapedArray((), dtype, weak)
    scalar = scalar_operand(value, aval) if is_extended else Literal(value, aval)
    if isinstance(device, NamedSharding):
        return fill_operand(scalar, shape, device)
    result = broadcast_in_dim.bind_positional((scalar,), (shape, (), None))
    return result if device is None else device_put(result, device)


def read_shape(shape: ShapeLike) -> tuple[int, ...]:
    """Return a shape; TypeError for an iterator, which NumPy's functions of arrays of a shape refuse."""
    return canonical_shape((shape,) if isinstance(shape, Iterator) else shape)


def _fill_number(number: int, shape: ShapeLike, dtype: object, device: object, out_sharding: object) -> Array:
    sizes = read_shape(shape)
    device = place_of(device, out_sharding, len(sizes))
    wanted = requested_dtype(float if dtype is None else dtype)
    return fill_array(sizes, python_value(number, wanted), wanted, False, device)


def zeros(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of zeros.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is traced or not an integer, or `dtype` is not a dtype.

    Example:
        >>> jnp.zeros(2)
        Array([0., 0.], dtype=float32)
    """
    return _fill_number(0, shape, dtype, device, out_sharding)


def ones(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: object = None, out_sharding: object = None
) -> Array:
    """Return an array of ones.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is traced or not an integer, or `dtype` is not a dtype.

    Example:
        >>> jnp.ones(2)
        Array([1., 1.], dtype=float32)
    """
    return _fill_number(1, shape, dtype, device, out_sharding)


def empty(
    shape: ShapeLike, dtype: DTypeLike | None = None, *, device: object = None, out_sharding: object = None
) -> Array:
    """Return an array of zeros, since there are no uninitialised arrays.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: a length is traced or not an integer, or `dtype` is not a dtype.

    Example:
        >>> jnp.empty(2)
        Array([0., 0.], dtype=float32)
    """
    return _fill_number(0, shape, dtype, device, out_sharding)


def full(
    shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: object = None,
    out_sharding: object = None,
) -> Array:
    """Return an array of one value.

    Args:
        shape: the lengths of the axes, integers, or one integer.
        fill_value: the value, a scalar or an array that broadcasts to `shape`.
        dtype: the dtype; None for the dtype of the value, which keeps its weak type.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array of `shape`.

    Raises:
        TypeError: a length is traced or not an integer, or `dtype` is not a dtype.
        ValueError: `fill_value` does not broadcast to `shape`.

    Example:
        >>> jnp.full((2, 2), 7)
        Array([[7, 7],
               [7, 7]], dtype=int32, weak_type=True)
    """
    sizes = read_shape(shape)
    device = place_of(device, out_sharding, len(sizes))
    aval = operand_aval(fill_value, 1)
    wanted = requested_dtype(dtype)
    # As in JAX, an array made on a `device` is strongly typed.
    weak = wanted is None and aval.weak_type and (out_sharding is not None or not isinstance(device, Sharding))
    return _fill(sizes, fill_value, aval, wanted or aval.dtype, weak, device)


def _fill(
    shape: tuple[int, ...], value: ArrayLike, aval: ShapedArray, dtype: np.dtype[Any], weak: bool,
    device: object,
) -> Array:
    if type(value) in SCALARS:
        literal = _to_scalar_of(value, dtype)
        if literal is not None:
            return fill_array(shape, literal, dtype, weak, device)
    if aval.dtype != dtype or aval.weak_type != weak:
        warn_of_lost_part(aval.dtype, dtype)
        if isinstance(value, np.ndarray) and aval.shape:
            value = cast_constant(value, aval, dtype)
        value = convert_to(value, dtype, weak)
    result = broadcast_operand_to(value, aval.shape, shape)
    return result if device is None else device_put(result, device)


def _to_scalar_of(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a Python scalar in the class of `dtype`, integers modulo its range; None if that loses digits or parts."""
    if dtypes.is_integer(dtype) and isinstance(value, int):
        if config.enable_x64.value or -(2**63) <= value < 2**63:
            bits = dtypes.bit_width(dtype)
            value = int(value) & (2**bits - 1)
            return value - 2**bits if dtypes.is_signed(dtype) and value >> (bits - 1) else value
        raise OverflowError(f"{called_function()}: Python int {value} too large to convert to {dtype.name}")
    if dtypes.is_integer(dtype) or (isinstance(value, complex) and dtypes.is_floating(dtype)):
        return None
    return python_value(value, dtype)


def warn_of_lost_part(own: object, wanted: object) -> None:
    """Warn if complex numbers are converted to a real dtype."""
    if dtypes.is_complex(own) and not dtypes.is_complex(wanted) and not dtypes.is_boolean(wanted):
        warn_user("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def _fill_like(
    a: ArrayLike, value: ArrayLike, dtype: object, shape: Shape | None, device: object,
    out_sharding: object,
) -> Array:
    try:
        model = abstract_leaf(a)
    except TypeError:
        model = operand_aval(a, 0)
    wanted = requested_dtype(dtype)
    size = model.shape if shape is None else read_shape(shape)
    device = place_of(device, out_sharding, len(size))
    fill = operand_aval(value, 1)
    weak = wanted is None and model.weak_type and not fill.shape
    if device is None and not fill.shape:
        device = sharding_like(a, size, weak)
    filled = _fill(size, value, fill, wanted or model.dtype, weak, device)
    if device is not None or not isinstance(a, Tracer):
        return filled
    result: Array = vary(reshard_as(filled, a.aval) if size == model.shape else filled, tuple(a.aval.varying))
    return result


def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of zeros in the shape and dtype of another one.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for the dtype of `a`.
        shape: the shape; None for the shape of `a`.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: `a` has another type, or `dtype` or `shape` is invalid.

    Example:
        >>> jnp.zeros_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return _fill_like(a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Return an array of ones in the shape and dtype of another one.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for the dtype of `a`.
        shape: the shape; None for the shape of `a`.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: `a` has another type, or `dtype` or `shape` is invalid.

    Example:
        >>> jnp.ones_like(jnp.array([1, 2]))
        Array([1, 1], dtype=int32)
    """
    return _fill_like(a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None) -> Array:
    """Return an array of zeros, since there are no uninitialised arrays, in the shape and dtype of another one.

    Args:
        prototype: an array, a scalar or a `ShapeDtypeStruct`.
        dtype: the dtype; None for the dtype of `prototype`.
        shape: the shape; None for the shape of `prototype`.
        device: the device or its position; None for the default device.

    Returns:
        An array.

    Raises:
        TypeError: `prototype` has another type, or `dtype` or `shape` is invalid.

    Example:
        >>> jnp.empty_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return _fill_like(prototype, 0, dtype, shape, device, None)


def full_like(
    a: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None
) -> Array:
    """Return an array of one value in the shape and dtype of another array.

    Args:
        a: an array, a scalar or a `ShapeDtypeStruct`.
        fill_value: the value, a scalar or an array that broadcasts to the shape.
        dtype: the dtype; None for the dtype of `a`.
        shape: the shape; None for the shape of `a`.
        device: the device or its position; None for the default device.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: `a` has another type, or `dtype` or `shape` is invalid.
        ValueError: `fill_value` does not broadcast to the shape.

    Example:
        >>> jnp.full_like(jnp.array([1, 2]), 7)
        Array([7, 7], dtype=int32)
    """
    return _fill_like(a, fill_value, dtype, shape, device, out_sharding)


def to_size(name: str, value: object) -> int:
    """Return a length as an integer; ConcretizationTypeError if it is traced, ValueError if it is negative."""
    number = to_known_integer(name, value)
    if number < 0:
        raise ValueError(f"{called_function()}: {name} must not be negative, got {number}")
    return number


def _to_diagonal_offset(name: str, value: ArrayLike) -> Any:
    """Return the number of a diagonal as a Python int or an integer array; TypeError for other values."""
    if isinstance(value, Array) and not value.shape and dtypes.is_integer(value.dtype):
        return value
    return to_integer(name, value)


@inline_jit
def diagonal_mask(offset: ArrayLike, *, rows: int, columns: int, below: bool) -> Array:
    """Return whether column - row equals `offset` or, with `below`, is at most `offset`."""
    row = broadcasted_iota(dtypes.int32, (rows, columns), 0)
    column = broadcasted_iota(dtypes.int32, (rows, columns), 1)
    return (ge if below else eq)(add(row, offset), column)


@inline_jit
def _make_diagonal_ones(offset: ArrayLike, *, rows: int, columns: int, below: bool, dtype: np.dtype[Any]) -> Array:
    return convert_to(diagonal_mask(offset, rows=rows, columns=columns, below=below), dtype)


def eye(
    N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: object = None
) -> Array:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; None for `N`.
        k: the diagonal, above the main one if positive; it may be traced.
        dtype: the dtype; None for the default floating dtype.
        device: the device or its position; None for the default device.

    Returns:
        An array of shape (N, M).

    Raises:
        TypeError: a size is not an integer, or `dtype` is not a dtype.
        ValueError: a size is negative.

    Example:
        >>> jnp.eye(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    wanted = requested_dtype(float if dtype is None else dtype)
    rows = to_size("N", N)
    columns = rows if M is None else to_size("M", M)
    result = _make_diagonal_ones(_to_diagonal_offset("k", k), rows=rows, columns=columns, below=False, dtype=wanted)
    return result if device is None else device_put(result, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Return an identity matrix.

    Args:
        n: the number of rows and columns.
        dtype: the dtype; None for the default floating dtype.

    Returns:
        An array of shape (n, n).

    Raises:
        TypeError: `n` is not an integer, or `dtype` is not a dtype.
        ValueError: `n` is negative.

    Example:
        >>> jnp.identity(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    size = to_size("n", n)
    wanted = requested_dtype(float if dtype is None else dtype)
    return _make_diagonal_ones(0, rows=size, columns=size, below=False, dtype=wanted)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on and below a diagonal, and zeros above.

    Args:
        N: the number of rows.
        M: the number of columns; None for `N`.
        k: the diagonal, above the main one if positive.
        dtype: the dtype; None for float32.

    Returns:
        An array of shape (N, M).

    Raises:
        TypeError: a size is not an integer, or `dtype` is not a dtype.

    Example:
        >>> jnp.tri(2)
        Array([[1., 0.],
               [1., 1.]], dtype=float32)
    """
    wanted = dtypes.float32 if dtype is None else requested_dtype(dtype)
    rows = to_size("N", N)
    columns = rows if M is None else to_size("M", M)
    return _make_diagonal_ones(_to_diagonal_offset("k", k), rows=rows, columns=columns, below=True, dtype=wanted)


def _keep_triangle(m: ArrayLike, k: ArrayLike, lower: bool) -> Array:
    aval, offset = operand_aval(m, 0), to_integer("k", k)
    if aval.ndim < 2:
        raise ValueError(f"Argument to xtrace.numpy.{called_function()} must be at least 2D, got shape {aval.shape}")
    mask = diagonal_mask(offset if lower else offset - 1, rows=aval.shape[-2], columns=aval.shape[-1], below=True)
    if aval.ndim > 2:
        mask = broadcast_in_dim(mask, aval.shape, (aval.ndim - 2, aval.ndim - 1))
    zero = fill_array(aval.shape, python_value(0, aval.dtype), aval.dtype, aval.weak_type, None)
    return select_n(mask, zero, m) if lower else select_n(mask, m, zero)


@inline_jit(static=("k",), public=True)
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with zeros above a diagonal.

    Args:
        m: an array of at least two axes; the last two are matrices.
        k: the diagonal, above the main one if positive.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` has fewer than two axes.

    Example:
        >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _keep_triangle(m, k, True)


@inline_jit(static=("k",), public=True)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return matrices with zeros below a diagonal.

    Args:
        m: an array of at least two axes; the last two are matrices.
        k: the diagonal, above the main one if positive.

    Returns:
        An array of the shape and dtype of `m`.

    Raises:
        TypeError: `m` is not an array.
        ValueError: `m` has fewer than two axes.

    Example:
        >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return _keep_triangle(m, k, False)
