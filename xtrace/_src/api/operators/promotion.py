"""NumPy's implicit conversions of operands to a common dtype and rank; Python scalars become literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, check_broadcast, convert, operand_aval
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, scalar_aval
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.dtypes import DType
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config
from xtrace._src.core.tables import Table
from xtrace._src.runtime.transfer import scalar_to_host

_SCALARS = frozenset((bool, int, float, complex))

# Maps the operands' avals (scalar avals for Python scalars) to the common dtype and weak type.
_plans = Table(16384)


def common_dtype(
    operands: Sequence[Any], adjust: Callable[[Any, bool], tuple[Any, bool]] | None = None, *, function: str = ""
) -> tuple[list[ShapedArray], Any, bool]:
    """Return the operands' avals, and their common dtype and weak type, changed by `adjust`.

    Raises TypePromotionError if the settings forbid the promotion.
    """
    avals = [
        scalar_aval(type(x)) if type(x) in _SCALARS else operand_aval(x, i, function=function)
        for i, x in enumerate(operands)
    ]
    key = (config.cache_key(), adjust, *avals)
    promoted = _plans.get(key)
    if promoted is None:
        pairs = tuple((a.dtype, a.weak_type) for a in avals)
        promoted = type_promotion.promote(pairs, *config.promotion_settings())
        if len(avals) == 1:
            # Promotion has no weak booleans; a single operand keeps its weak type.
            promoted = (promoted[0], avals[0].weak_type)
        if adjust is not None:
            promoted = adjust(*promoted)
        _plans.remember(key, promoted)
    return avals, promoted[0], promoted[1]


def find_common_dtype(*values: object) -> np.dtype[Any]:
    """Return the common dtype of `values` in the library's own arithmetic, which ignores forbidden promotions."""
    pairs = tuple([(aval.dtype, aval.weak_type) for aval in map(aval_of, values)])
    return type_promotion.promote(pairs, config.enable_x64.value, wide=config.keeps_wide_dtypes())[0]


def as_inexact(dtype: np.dtype[Any], weak: bool) -> tuple[np.dtype[Any], bool]:
    """Return an inexact dtype unchanged; for integers the floating dtype of their results, 64-bit for 64-bit ones."""
    # The operation itself refuses values that are no numbers.
    if dtypes.is_inexact(dtype) or isinstance(dtype, dtypes.ExtendedDType) or dtype == dtypes.float0:
        return dtype, weak
    return dtypes.float64 if dtypes.bit_width(dtype) == 64 else dtypes.float32, weak


def cast(value: ArrayLike, aval: ShapedArray, dtype: DType, weak: bool) -> Any:
    """Return an operand, of type `aval`, in the dtype `dtype`; a Python scalar becomes a literal."""
    if type(value) in _SCALARS:
        return Literal(scalar_value(value, dtype), ShapedArray((), dtype, weak))
    if aval.dtype == dtype and aval.weak_type == weak:
        return value
    if isinstance(value, (np.ndarray, np.generic)) and not weak:
        return cast_constant(value, aval, dtype)
    return convert.bind_positional((value,), (dtype, weak, None))


def cast_constant(value: Any, aval: ShapedArray, dtype: Any) -> Any:
    """Return a NumPy value in the dtype `dtype`; `aval` is its type as an array.

    It is first converted to the dtype of `aval`, which may have fewer bits: integers then wrap around.
    """
    if dtypes.canonicalize(dtype, config.enable_x64.value) != dtype:
        return convert.bind_positional((value,), (dtype, False, None))
    return dtypes.cast(dtypes.cast(value, aval.dtype), dtype)


def scalar_value(value: Any, dtype: np.dtype[Any]) -> bool | int | float | complex:
    """Return a Python scalar in the Python type of `dtype`; an int out of the range of `dtype` wraps around.

    Raises OverflowError for an int out of the range of the default integer dtype.
    """
    if dtypes.is_integer(dtype):
        number = int(value)
        bounds = dtypes.iinfo(dtype)
        if bounds.min <= number <= bounds.max:
            return number
        default = ShapedArray((), dtypes.default_int(config.enable_x64.value))
        return int(scalar_to_host(number, default).astype(dtype))
    if dtypes.is_floating(dtype):
        return float(value)
    return complex(value) if dtypes.is_complex(dtype) else bool(value)


def promote(
    *operands: object, adjust: Callable[[Any, bool], tuple[Any, bool]] | None = None, function: str = ""
) -> list[Any]:
    """Return the operands of an elementwise operation in their common dtype, all but scalars in their common rank.

    Raises TypeError for an operand that is no array, and ValueError for shapes that do not broadcast.
    """
    avals, values = promote_dtypes(operands, adjust, function=function)
    return align_ranks(values, [a.shape for a in avals], function=function)


def promote_dtypes(
    operands: Sequence[Any], adjust: Callable[[Any, bool], tuple[Any, bool]] | None = None, *, function: str = ""
) -> tuple[list[ShapedArray], list[Array]]:
    """Return the operands' avals, and the operands in their common dtype; TypeError for an operand that is no array."""
    avals, dtype, weak = common_dtype(operands, adjust, function=function)
    return avals, [cast(x, a, dtype, weak) for x, a in zip(operands, avals, strict=True)]


def align_ranks(values: list[Any], shapes: Sequence[tuple[int, ...]], *, function: str = "") -> list[Any]:
    """Give operands of lower rank, except scalars, leading axes of size 1; ValueError if shapes do not broadcast."""
    first = shapes[0]
    if all(s == first or not s for s in shapes):
        return values
    rank = max(map(len, shapes))
    check_broadcast(shapes, function=function)
    if len({len(s) for s in shapes if s}) > 1:
        report_rank_promotion(shapes, function=function)
        for i, shape in enumerate(shapes):
            if shape and len(shape) < rank:
                missing = rank - len(shape)
                values[i] = broadcast_in_dim.bind_positional(
                    (values[i],), ((1,) * missing + shape, tuple(range(missing, rank)), None)
                )
    return values


def check_mapped_ranks(shapes: Sequence[tuple[int, ...]], cores: Sequence[int], *, function: str = "") -> None:
    """Apply jax_numpy_rank_promotion to operands, except scalars, with different numbers of axes before the core."""
    if len({len(shape) - core for shape, core in zip(shapes, cores, strict=True) if shape}) > 1:
        report_rank_promotion(shapes, function=function)


def report_rank_promotion(shapes: Sequence[tuple[int, ...]], *, function: str = "") -> None:
    """Raise ValueError or warn about operands of different ranks, as jax_numpy_rank_promotion says."""
    mode = config.numpy_rank_promotion.value
    if mode == "allow":
        return
    message = (
        f"Operands could not be broadcast together: {function or called_function()} of shapes "
        f"{', '.join(map(str, shapes))} needs rank "
        f"promotion, and jax_numpy_rank_promotion is {mode!r}. Add the axes with x[None] or reshape"
    )
    if mode == "raise":
        raise ValueError(message)
    warn_user(message)
