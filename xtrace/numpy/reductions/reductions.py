"""Sums, products, extrema and truth values along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import canonical_axis, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, Axes, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, bitwise_or, ne
from xtrace._src.ops.reductions import reductions
from xtrace.numpy.arrays.creation import warn_of_lost_part
from xtrace.numpy.operands import cast_to, refuse, scalar_of, select_or_fill
from xtrace.numpy.reductions.axes import array_axes, keep_axes, reduce_axes, reduced_axes

with late_modules(globals()):
    from xtrace._src.ops.arrays.shape import expand_dims
    from xtrace.numpy.arrays.conversion import to_array_operand


class _Reduction(NamedTuple):
    """A reduction of lax, the operation that joins two of its results, and the identity of the operation."""

    reduce: Callable[..., Any]
    join: Callable[[Any, Any], Any]
    identity: Callable[[Any], Any]


def lowest_value(dtype: np.dtype[Any]) -> Any:
    """Return the smallest value of a real dtype: -inf for floats, False for bool."""
    if dtypes.is_boolean(dtype):
        return False
    return int(dtypes.iinfo(dtype).min) if dtypes.is_integer(dtype) else -math.inf


def highest_value(dtype: np.dtype[Any]) -> float:
    """Return the largest value of a real dtype: inf for floats, True for bool."""
    if dtypes.is_boolean(dtype):
        return True
    return int(dtypes.iinfo(dtype).max) if dtypes.is_integer(dtype) else math.inf


_REDUCTIONS = {
    "sum": _Reduction(reductions.reduce_sum, elementwise.add, lambda dtype: 0),
    "prod": _Reduction(reductions.reduce_prod, elementwise.mul, lambda dtype: 1),
    "max": _Reduction(reductions.reduce_max, elementwise.max, lowest_value),
    "min": _Reduction(reductions.reduce_min, elementwise.min, highest_value),
    "any": _Reduction(reductions.reduce_or, bitwise_or, lambda dtype: False),
    "all": _Reduction(reductions.reduce_and, bitwise_and, lambda dtype: True),
}


def to_strong(value: object, dtype: np.dtype[Any]) -> Array:
    """Return an operand as a strongly typed one with element type `dtype`."""
    if isinstance(value, (np.ndarray, np.generic)):
        return cast_to(value, operand_aval(value, 0, function="convert"), dtype)
    return convert_to(value, dtype, False)


def _reduce(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any = None, mask: Any = None, *,
    widen: bool = False,
) -> Array:
    """Check the arguments and reduce; `dtype` is the dtype of the result, None for the dtype of the operand."""
    refuse(out=out)
    aval = operand_aval(a, 0)
    axes = reduced_axes(axis, aval.ndim)
    dtype = aval.dtype if dtype is None else dtype
    warn_of_lost_part(aval.dtype, dtype)
    check_mask(mask)
    if initial is not None:
        start = operand_aval(initial, 1)
        if start.shape:
            raise ValueError(f"{called_function()}: initial must be a scalar; got shape {start.shape}")
        warn_of_lost_part(start.dtype, dtype)
    compute = accumulator_dtype(aval.dtype, dtype) if widen else dtype
    operation, a = _REDUCTIONS[name], to_strong(a, compute)
    if mask is not None:
        a = select_or_fill(mask, a, operation.identity(compute))
    result = reduce_axes(operation.reduce, a, axes)
    if initial is not None:
        result = operation.join(to_strong(initial, compute), result)
    return to_strong(keep_axes(result, axes, a.shape) if keepdims else result, dtype)


def accumulator_dtype(own: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the accumulator: at least float32 for narrower floating operands."""
    if dtypes.is_floating(own) and own.itemsize < 4 and dtypes.is_floating(dtype) and dtype.itemsize < 4:
        return dtypes.float32
    return dtype


def dtype_of_sum(a: ArrayLike, dtype: Any, promote_integers: bool) -> Any:
    """Return the dtype of a sum: narrow integers and booleans become the default integer dtype."""
    wanted = requested_dtype(dtype)
    own = operand_aval(a, 0).dtype
    x64 = config.enable_x64.value
    if wanted is not None:
        return wanted
    if dtypes.is_boolean(own):
        return dtypes.default_int(x64)
    if promote_integers and dtypes.is_integer(own):
        default = dtypes.default_int(x64) if dtypes.is_signed(own) else dtypes.default_uint(x64)
        return default if dtypes.bit_width(own) < dtypes.bit_width(default) else own
    return dtypes.canonicalize(own, config.keeps_wide_dtypes())


def sum_or_multiply(
    name: str, a: ArrayLike, axis: Axes, dtype: object, out: object, keepdims: bool, initial: object,
    where: object, promote_integers: bool = True,
) -> Array:
    """Check the arguments and return the sum or product, by `name`."""
    sum_dtype = dtype_of_sum(a, dtype, promote_integers)
    if dtypes.is_boolean(sum_dtype):
        name = {"sum": "any", "prod": "all"}[name]
        return _reduce(name, a, axis, sum_dtype, out, keepdims, initial, where)
    return _reduce(name, a, axis, sum_dtype, out, keepdims, initial, where, widen=dtype is None)


@inline_jit(static=("axis", "dtype", "out", "keepdims", "promote_integers"), public=True)
def sum(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:
    """Return the sums of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        promote_integers: whether small integers and booleans become the default integer.

    Returns:
        An array of the remaining axes, of the dtype of `a` if `promote_integers` does not change it.
        float16 and bfloat16 are added or multiplied in float32.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([4, 6], dtype=int32)
    """
    return sum_or_multiply("sum", a, axis, dtype, out, keepdims, initial, where, promote_integers)


@inline_jit(static=("axis", "dtype", "out", "keepdims", "promote_integers"), public=True)
def prod(
    a: ArrayLike, axis: Axes = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Array:
    """Return the products of elements over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        dtype: the dtype of the computation and the result; None for the dtype under Returns.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.
        promote_integers: whether small integers and booleans become the default integer.

    Returns:
        An array of the remaining axes, of the dtype of `a` if `promote_integers` does not change it.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 8], dtype=int32)
    """
    return sum_or_multiply("prod", a, axis, dtype, out, keepdims, initial, where, promote_integers)


def find_extremum(
    name: str, a: object, axis: Axes, out: object, keepdims: bool, initial: object, mask: object
) -> Array:
    """Check the arguments and return the largest or smallest element, by `name`."""
    aval = operand_aval(a, 0)
    if initial is None:
        if mask is not None:
            raise ValueError(
                f"{called_function()}: to use a where mask one has to specify 'initial', since {name} has no identity"
            )
        if 0 in [aval.shape[i] for i in array_axes(reduced_axes(axis, aval.ndim))]:
            raise ValueError(
                f"zero-size array to reduction operation {name} which has no identity: shape {aval.shape}, axis "
                f"{axis}; pass initial="
            )
    return _reduce(name, a, axis, None, out, keepdims, initial, mask)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def max(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Return the largest elements over axes; NaN if an element is NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.max(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 4], dtype=int32)
    """
    return find_extremum("max", a, axis, out, keepdims, initial, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def min(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the smallest elements over axes; NaN if an element is NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.min(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    return find_extremum("min", a, axis, out, keepdims, initial, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def minmax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: ArrayLike | None = None,
) -> tuple[Any, Any]:
    """Return the smallest and the largest elements over axes; NaN if an element is NaN.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of both reductions, or a pair of values for the smallest and the largest element;
            None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        A tuple of two arrays of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis; without `initial`, `a` is empty or `where` is given; or `initial` is a
            tuple of another length.

    Example:
        >>> jnp.minmax(jnp.array([[1, 2], [3, 4]]), axis=0)
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    pair = initial if isinstance(initial, tuple) else (initial, initial)
    if len(pair) != 2:
        raise ValueError(f"minmax: initial must be a value or a pair of values, got a tuple of {len(pair)}")
    smallest, largest = [
        find_extremum(name, a, axis, out, keepdims, start, where)
        for start, name in zip(pair, ("min", "max"), strict=True)
    ]
    return smallest, largest


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def amax(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: object = None,
    where: object = None,
) -> Array:
    """Return the largest elements over axes; another name of `max`.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.amax(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([3, 4], dtype=int32)
    """
    return find_extremum("max", a, axis, out, keepdims, initial, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def amin(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the smallest elements over axes; another name of `min`.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        initial: the initial value of the reduction; None for none.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis, or, without `initial`, `a` is empty or `where` is given.

    Example:
        >>> jnp.amin(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 2], dtype=int32)
    """
    return find_extremum("min", a, axis, out, keepdims, initial, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def any(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return whether any element is true or nonzero, over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.any(jnp.array([[1, 2], [3, 4]]) > 1, axis=1)
        Array([ True,  True], dtype=bool)
    """
    return _reduce("any", a, axis, dtypes.bool_, out, keepdims, None, where)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def all(
    a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Return whether all elements are true or nonzero, over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several; None for all.
        out: not supported; leave it at None.
        keepdims: whether the reduced axes stay, with size 1.
        where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

    Returns:
        An array of the remaining axes, of dtype bool.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.all(jnp.array([[1, 2], [3, 4]]) > 1, axis=1)
        Array([False,  True], dtype=bool)
    """
    return _reduce("all", a, axis, dtypes.bool_, out, keepdims, None, where)


def check_divides(dtype: DTypeLike) -> None:
    """Raise TypeError if the dtype of a mean or variance is bool."""
    if dtypes.is_boolean(dtype):
        raise TypeError(f"{called_function()}: dtype must be one of numbers, since bool has no division; got bool")


def check_mask(mask: ArrayLike | None) -> None:
    """Raise ValueError if a mask is given and is not boolean."""
    if mask is not None and not dtypes.is_boolean(operand_aval(mask, 1).dtype):
        raise ValueError(f"{called_function()}: where must be None or a boolean array; got {operand_aval(mask, 1)}")


def find_position(name: str, a: ArrayLike, axis: Axes, out: Any, keepdims: bool | None) -> Array:
    """Check the arguments and return the index of an extremum by lax's operation `name`."""
    refuse(out=out)
    aval = operand_aval(a, 0)
    if dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{called_function()}: complex numbers have no order; got {aval.dtype.name}. Take abs(x) or x.real"
        )
    along = None if axis is None else canonical_axis(axis, aval.ndim)
    if (aval.size if along is None else aval.shape[along]) == 0:
        raise ValueError(f"attempt to get {called_function()} of an empty sequence: shape {aval.shape}, axis {axis}")
    if along is None:
        a, along = reshape(a, (aval.size,)), 0
        dropped = tuple(range(aval.ndim))
    else:
        dropped = (along,)
    position: Array = getattr(reductions, name)(a, along, dtypes.default_int(config.enable_x64.value))
    return expand_dims(position, dropped) if keepdims else position


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first largest element along an axis, or of the first NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or neither an array nor a scalar.
        ValueError: `a` has no such axis, or `a` is empty.

    Example:
        >>> jnp.argmax(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([1, 1], dtype=int32)
    """
    return find_position("argmax", a, axis, out, keepdims)


@inline_jit(static=("axis", "out", "keepdims"), public=True)
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Return the index of the first smallest element along an axis, or of the first NaN.

    Args:
        a: an array or a scalar of real numbers.
        axis: the axis, an integer; None for the flattened array.
        out: not supported; leave it at None.
        keepdims: whether the axis stays, with size 1.

    Returns:
        An array of the default integer.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: `a` is complex, or neither an array nor a scalar.
        ValueError: `a` has no such axis, or `a` is empty.

    Example:
        >>> jnp.argmin(jnp.array([[1, 2], [3, 4]]), axis=0)
        Array([0, 0], dtype=int32)
    """
    return find_position("argmin", a, axis, out, keepdims)


@inline_jit(static=("axis", "keepdims"), public=True)
def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count the elements that are true or nonzero, over axes.

    Args:
        a: an array or a scalar.
        axis: the axis to reduce, or several, or names of mapped axes; None for all of the array.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        An array of the remaining axes, of the default integer.

    Raises:
        TypeError: `a` is neither an array nor a scalar.
        ValueError: `a` has no such axis.

    Example:
        >>> jnp.count_nonzero(jnp.array([0, 3, 0, 4]))
        Array(2, dtype=int32)
    """
    aval = operand_aval(a, 0)
    axes = reduced_axes(axis, aval.ndim)
    nonzero = convert_to(ne(a, scalar_of(0, aval.dtype)), dtypes.default_int(config.enable_x64.value))
    count = reduce_axes(reductions.reduce_sum, nonzero, axes)
    return keep_axes(count, axes, aval.shape) if keepdims else count


def to_initial(initial: ArrayLike) -> Array | None:
    """Return the initial value of a reduction without NaN as an array, which the program converts, as in jax."""
    return None if initial is None else to_array_operand(initial, 1)
