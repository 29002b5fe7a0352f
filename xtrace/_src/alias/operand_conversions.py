"""Checks and conversions of operands, under the names of ``jax._src.numpy.util``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.alias import private_names
from xtrace._src.api.operators import promotion
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.settings import config
from xtrace._src.runtime.transfer import to_array

_Adjust = Callable[[Any, bool], tuple[Any, bool]]


def _as_numeric(dtype: Any, weak: bool) -> tuple[Any, bool]:
    return (dtypes.default_int(config.enable_x64.value), weak) if dtype == dtypes.bool_ else (dtype, weak)


def _as_complex(dtype: Any, weak: bool) -> tuple[Any, bool]:
    return private_names.to_complex_dtype(dtype), weak


def _promote(operands: tuple[Any, ...], adjust: _Adjust | None, function: str) -> list[Array]:
    return [to_array(x) for x in promotion.promote_dtypes(operands, adjust, function=function)[1]] if operands else []


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """Return arrays of the common dtype."""
    return _promote(args, None, "promote_dtypes")


def promote_dtypes_inexact(*args: ArrayLike) -> list[Array]:
    """Return arrays of the common dtype, which is floating for integers."""
    return _promote(args, promotion.as_inexact, "promote_dtypes_inexact")


def promote_dtypes_numeric(*args: ArrayLike) -> list[Array]:
    """Return arrays of the common dtype, which is the default integer dtype for booleans."""
    return _promote(args, _as_numeric, "promote_dtypes_numeric")


def promote_dtypes_complex(*args: ArrayLike) -> list[Array]:
    """Return arrays of the common dtype, made complex."""
    return _promote(args, _as_complex, "promote_dtypes_complex")


def promote_shapes(fun_name: str, *args: ArrayLike) -> list[Array]:
    """Return arrays of the same rank by leading axes of size 1; scalars stay if the others have one rank."""
    arrays: list[Any] = [to_array(x) for x in args]
    ranks = {x.ndim for x in arrays if x.ndim}
    if len(ranks) < 2:
        return arrays
    aligned = promotion.align_ranks(arrays, [x.shape for x in arrays], function=fun_name)
    return [x if x.ndim else x.reshape((1,) * max(ranks)) for x in aligned]


def promote_args(fun_name: str, *args: ArrayLike) -> list[Array]:
    """Return arrays of the common dtype and rank."""
    return promote_shapes(fun_name, *_promote(args, None, fun_name))


def promote_args_inexact(fun_name: str, *args: ArrayLike) -> list[Array]:
    """Return arrays of the common rank and dtype, which is floating for integers."""
    return promote_shapes(fun_name, *_promote(args, promotion.as_inexact, fun_name))


def promote_args_numeric(fun_name: str, *args: ArrayLike) -> list[Array]:
    """Return arrays of the common rank and dtype, which is the default integer dtype for booleans."""
    return promote_shapes(fun_name, *_promote(args, _as_numeric, fun_name))


def promote_args_complex(fun_name: str, *args: ArrayLike) -> list[Array]:
    """Return arrays of the common rank and dtype, made complex."""
    return promote_shapes(fun_name, *_promote(args, _as_complex, fun_name))


def check_arraylike(fun_name: str, *args: Any, emit_warning: bool = False, stacklevel: int = 3) -> None:
    """Raise TypeError for an argument that is neither an array nor a number."""
    for i, x in enumerate(args):
        operand_aval(x, i, function=fun_name)


def check_arraylike_or_none(fun_name: str, *args: Any) -> None:
    """Raise TypeError for an argument that is neither an array nor a number nor None."""
    check_arraylike(fun_name, *[x for x in args if x is not None])


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Return the arguments as arrays: one, or a tuple of several."""
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays


def ensure_arraylike_tuple(fun_name: str, tup: Any) -> tuple[Array, ...]:
    """Return a tuple of arrays."""
    check_arraylike(fun_name, *tup)
    return tuple([to_array(x) for x in tup])
