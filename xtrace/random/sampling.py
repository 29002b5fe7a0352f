"""Argument checks of the distributions, and the helpers that run their programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from xtrace._src.algebra.resharding import reshard_result
from xtrace._src.algebra.vector_space import canonical_shape, check_broadcast, convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import broadcast_to_shape
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, not_an_array
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.random.keys import random_split
from xtrace._src.ops.reductions.reductions import reduce_or
from xtrace.random.keys import check_key, to_typed

_Result = TypeVar("_Result")


def sampler(sample: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return the program of ``sample(key, *parameters, **static)``, which takes either form of key.

    `sample` gets a typed key.
    """

    @functools.wraps(sample)
    def run(key: Array, *parameters: Array, **static: object) -> _Result:
        return sample(to_typed(key), *parameters, **static)

    return inline_jit(run)


def to_float_dtype(dtype: Any, complex_too: bool = False) -> Any:
    """Return the requested floating dtype, or the default one for None; ValueError for another kind of dtype."""
    if dtype is None:
        return dtypes.default_float(config.enable_x64.value)
    requested = requested_dtype(dtype)
    if not (dtypes.is_floating(requested) or (complex_too and dtypes.is_complex(requested))):
        raise ValueError(
            f"dtype argument to `{called_function()}` must be a float{' or complex' if complex_too else ''} dtype, got "
            f"{dtypes.full_name(requested)}"
        )
    return requested


def to_int_dtype(dtype: DTypeLike, error: type[Exception] = ValueError) -> Any:
    """Return the requested integer dtype, or the default one for None; `error` for another kind of dtype."""
    if dtype is None:
        return dtypes.default_int(config.enable_x64.value)
    requested = requested_dtype(dtype)
    if not dtypes.is_integer(requested):
        raise error(f"dtype argument to `{called_function()}` must be an int dtype, got {dtypes.full_name(requested)}")
    return requested


def get_parameter_shape(name: str, value: object) -> tuple[int, ...]:
    """Return the shape of a parameter; TypeError unless it is an array or a scalar."""
    try:
        return aval_of(value).shape
    except TypeError:
        raise TypeError(
            f"{called_function()} requires ndarray or scalar arguments: {name}: {not_an_array(value)}"
        ) from None


def broadcast_parameters(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape of parameters; ValueError names them and their shapes if there is none."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except InconclusiveDimensionOperation:
        return check_broadcast(list(shapes.values()))
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{called_function()}: Incompatible shapes for broadcasting: {listed}") from None


def find_result_shape(shape: ShapeLike, **parameters: object) -> tuple[int, ...]:
    """Return the requested shape, or the common shape of the parameters for None.

    ValueError if the parameters do not broadcast to it, TypeError unless they are arrays.
    """
    shapes = {name: get_parameter_shape(name, value) for name, value in parameters.items()}
    if shape is None:
        return broadcast_parameters(shapes)
    wanted = canonical_shape(shape)
    if any(shapes.values()) and broadcast_parameters({**shapes, "shape": wanted}) != wanted:
        listed = ", ".join(f"{name} {own}" for name, own in shapes.items())
        raise ValueError(
            f"{called_function()}: parameters of shapes {listed} do not broadcast to the argument shape {wanted}"
        )
    return wanted


def draw(
    run: Callable[..., Array], key: ArrayLike, shape: ShapeLike, dtype: Any, out_sharding: Any = None, /,
    *, complex_too: bool = False, **parameters: Any,
) -> Array:
    """Check the arguments of a distribution of floating numbers, and run its program."""
    sharding = requested_out_sharding(out_sharding)
    dtype = to_float_dtype(dtype, complex_too)
    check_key(key)
    if parameters:
        shape = find_result_shape(shape, **parameters)
        for name, value in parameters.items():
            if dtypes.is_complex(aval_of(value).dtype) and not dtypes.is_complex(dtype):
                raise type_promotion.TypePromotionError(
                    f"{called_function()}: {name} is complex and does not convert to {dtype.name}"
                )
    else:
        shape = canonical_shape(shape)
    drawn = run(key, *parameters.values(), shape=shape, dtype=dtype)
    return drawn if sharding is None else reshard_result(drawn, sharding)


def is_any_true(mask: Array) -> Array:
    """Return whether any element of a mask is true, as a scalar."""
    return reduce_or(mask, tuple(range(aval_of(mask).ndim)))


def fit_parameter(value: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return a parameter as an array of `dtype` broadcast to `shape`."""
    return broadcast_to_shape(convert_to(value, dtype), shape)


def split_key(key: ArrayLike, count: int) -> list[Any]:
    """Split a typed key into `count` typed keys."""
    keys = random_split.bind_positional((key,), ((count,),))
    return [index_in_dim(keys, i, 0, keepdims=False) for i in range(count)]
