"""Random operands, dtypes and tolerances of ``jax._src.test_util``, for tests of libraries that use them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.api.operators.promotion import find_common_dtype
from xtrace._src.core import dtypes as core_dtypes
from xtrace._src.core.settings import config

_Draw = Callable[[Any, Any], Any]


class ScalarShape:
    """The class of markers that stand for the shape of a scalar."""

    def __len__(self) -> int:
        return 0


class _NumpyScalar(ScalarShape):
    """Marks operands that are scalars of NumPy."""


class _PythonScalar(ScalarShape):
    """Marks operands that are numbers of Python."""


NUMPY_SCALAR_SHAPE, PYTHON_SCALAR_SHAPE = _NumpyScalar(), _PythonScalar()


def dtype_str(dtype: Any) -> str:
    """Return the name of a dtype."""
    return str(np.dtype(dtype).name)


def format_shape_dtype_string(shape: Any, dtype: Any) -> str:
    """Return a name such as ``float32[2,3]``."""
    if shape is NUMPY_SCALAR_SHAPE:
        return dtype_str(dtype)
    if shape is PYTHON_SCALAR_SHAPE:
        return f"py{dtype_str(dtype)}"
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    text = ",".join(str(size).replace(" ", "") for size in sizes)
    return f"{dtype_str(dtype)}[{text}{',' if len(sizes) == 1 else ''}]"


# Dtypes


def canonicalize_dtype(dtype: Any) -> Any:
    """Return the dtype that arrays of `dtype` have under the setting of 64 bits."""
    return core_dtypes.canonicalize(dtype, config.enable_x64.value)


class _Dtypes:
    """The dtypes that arrays may have, by kind; those of 64 bits if the setting allows them."""

    @staticmethod
    def supported(candidates: Sequence[Any]) -> list[Any]:
        """Return those of the dtypes that arrays may have."""
        return [d for d in candidates if canonicalize_dtype(d) == np.dtype(d)]

    custom_floats = property(lambda self: [core_dtypes.bfloat16.type])
    floating = property(lambda self: self.supported([np.float32, np.float64]))
    all_floating = property(lambda self: [*self.custom_floats, np.float16, *self.floating])
    integer = property(lambda self: self.supported([np.int32, np.int64]))
    all_integer = property(lambda self: self.supported([np.int8, np.int16, np.int32, np.int64]))
    unsigned = property(lambda self: self.supported([np.uint32, np.uint64]))
    all_unsigned = property(lambda self: self.supported([np.uint8, np.uint16, np.uint32, np.uint64]))
    complex = property(lambda self: self.supported([np.complex64, np.complex128]))
    boolean = property(lambda self: [np.bool_])
    inexact = property(lambda self: self.floating + self.complex)
    all_inexact = property(lambda self: self.all_floating + self.complex)
    numeric = property(lambda self: self.floating + self.integer + self.unsigned + self.complex)
    all = property(lambda self: self.all_floating + self.all_integer + self.all_unsigned + self.complex + self.boolean)


dtypes = _Dtypes()


def supported_dtypes() -> set[Any]:
    """Return the dtypes that arrays may have."""
    return {np.dtype(d).type for d in dtypes.all}


def promote_like_jnp(fun: Callable[..., Any], inexact: bool = False) -> Callable[..., Any]:
    """Return a function of NumPy on operands that are promoted as those of `xtrace.numpy` are."""

    @functools.wraps(fun)
    def promoted(*operands: Any, **options: Any) -> Any:
        dtype = find_common_dtype(*operands)
        if inexact and not core_dtypes.issubdtype(dtype, np.inexact):
            dtype = core_dtypes.default_float(config.enable_x64.value)
        return fun(*[np.asarray(x).astype(dtype) for x in operands], **options)

    return promoted


# Tolerances

_Tolerance = float | Mapping[Any, float] | None
_EXACT: dict[Any, float] = dict.fromkeys(
    [np.dtype(name) for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")] + [core_dtypes.float0], 0.0
)
_HALVES = {np.dtype(np.float16): 1e-3, core_dtypes.bfloat16: 1e-2}
_SINGLES, _DOUBLES = [np.dtype("f4"), np.dtype("c8")], [np.dtype("f8"), np.dtype("c16")]
_ROUNDED: dict[Any, float] = _HALVES | dict.fromkeys(_SINGLES, 1e-6) | dict.fromkeys(_DOUBLES, 1e-15)
default_gradient_tolerance: dict[Any, float] = {
    **dict.fromkeys(_SINGLES, 1e-3), **dict.fromkeys(_DOUBLES, 1e-5), **{d: 10 * tol for d, tol in _HALVES.items()},
}
# For numbers of eight bits and fewer.
_OF_NARROW_TYPES = 1e-1


def default_tolerance() -> dict[Any, float]:
    """Return the tolerance of each dtype."""
    return _EXACT | _ROUNDED


def tolerance(dtype: Any, tol: _Tolerance = None) -> float:
    """Return the tolerance of a dtype: `tol`, its entry there, or the default."""
    if isinstance(tol, (int, float)):
        return tol
    given = {np.dtype(d): value for d, value in (tol or {}).items()}
    return given.get(np.dtype(dtype), default_tolerance().get(np.dtype(dtype), _OF_NARROW_TYPES))


def join_tolerance(tol1: _Tolerance, tol2: _Tolerance) -> dict[Any, float]:
    """Return the larger of two tolerances, for each dtype."""
    named = [np.dtype(d) for tol in (tol1, tol2) if isinstance(tol, Mapping) for d in tol]
    return {d: max(tolerance(d, tol1), tolerance(d, tol2)) for d in {*default_tolerance(), *named}}


# Draws: each function takes a generator, and returns a function of a shape and a dtype.


def _cast_to_shape(value: Any, shape: Any, dtype: Any) -> Any:
    if shape is NUMPY_SCALAR_SHAPE:
        return np.dtype(dtype).type(value)
    if shape is PYTHON_SCALAR_SHAPE:
        return np.asarray(value).item()
    return np.asarray(value, dtype).reshape(shape)


def _sizes(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, ScalarShape):
        return ()
    return tuple(shape) if isinstance(shape, Sequence) else (shape,)


def _rand_dtype(
    rand: Callable[..., Any], shape: Any, dtype: Any, scale: float = 1.0, post: Callable[[Any], Any] = lambda x: x
) -> Any:
    """Return ``rand(*shape)`` times `scale`, converted to a dtype by `post` and NumPy."""
    sizes = _sizes(shape)
    values: Any = np.asarray(scale * np.asarray(rand(*sizes)))
    if core_dtypes.issubdtype(dtype, np.complexfloating):
        values = values + 1j * scale * np.asarray(rand(*sizes))
    elif core_dtypes.issubdtype(dtype, np.unsignedinteger):
        values = abs(values)
    return _cast_to_shape(np.asarray(post(values.astype(dtype)), dtype), shape, dtype)


def rand_default(rng: Any, scale: float = 3) -> _Draw:
    """Draw normal numbers."""
    return functools.partial(_rand_dtype, rng.randn, scale=scale)


def rand_small(rng: Any) -> _Draw:
    """Draw normal numbers near 0."""
    return functools.partial(_rand_dtype, rng.randn, scale=1e-3)


def rand_not_small(rng: Any, offset: float = 10.0) -> _Draw:
    """Draw normal numbers that are moved away from 0 by `offset`."""
    return functools.partial(
        _rand_dtype, rng.randn, scale=3, post=lambda x: x + np.where(x > 0, offset, -offset).astype(x.dtype)
    )


def rand_small_positive(rng: Any) -> _Draw:
    """Draw positive numbers near 0."""
    return functools.partial(_rand_dtype, rng.rand, scale=2e-5)


def rand_positive(rng: Any) -> _Draw:
    """Draw numbers above 1."""
    return functools.partial(_rand_dtype, lambda *sizes: rng.rand(*sizes) + 1)


def rand_nonzero(rng: Any) -> _Draw:
    """Draw normal numbers other than 0."""
    return functools.partial(_rand_dtype, rng.randn, scale=3, post=lambda x: np.where(x == 0, np.ones_like(x), x))


def rand_uniform(rng: Any, low: float = 0.0, high: float = 1.0) -> _Draw:
    """Draw numbers that are uniform in an interval."""
    return functools.partial(_rand_dtype, lambda *sizes: rng.rand(*sizes) * (high - low) + low)


def rand_bool(rng: Any) -> _Draw:
    """Draw zeros and ones."""
    return lambda shape, dtype: _cast_to_shape(np.asarray(rng.rand(*_sizes(shape)) < 0.5).astype(dtype), shape, dtype)


def rand_int(rng: Any, low: int = 0, high: int | None = None) -> _Draw:
    """Draw integers in an interval."""

    def draw(shape: Any, dtype: Any) -> Any:
        if high is None and not core_dtypes.issubdtype(dtype, np.integer):
            raise ValueError(f"rand_int requires an explicit `high` value for non-integer types, such as {dtype}")
        bound = np.iinfo(np.int32).max if high is None else high
        return _cast_to_shape(rng.randint(low, bound, size=_sizes(shape)).astype(dtype), shape, dtype)

    return draw


def rand_unique_int(rng: Any, high: int | None = None) -> _Draw:
    """Draw distinct integers from 0 to `high`."""

    def draw(shape: Any, dtype: Any) -> Any:
        size = int(np.prod(_sizes(shape)))
        drawn = rng.choice(np.arange(size if high is None else high), size=_sizes(shape), replace=False)
        return _cast_to_shape(np.asarray(drawn).astype(dtype), shape, dtype)

    return draw


def _replacing(rng: Any, *values: float) -> _Draw:
    """Draw normal numbers, about a third of them replaced by `values`, if the dtype has these."""

    def draw(shape: Any, dtype: Any) -> Any:
        drawn = rand_default(rng)(_sizes(shape), dtype)
        if np.all(np.isfinite(values)) or core_dtypes.issubdtype(dtype, np.inexact):
            others = rng.choice(np.asarray(values), drawn.shape)
            drawn = np.where(rng.rand(*drawn.shape) < 1 / 3, np.asarray(others).astype(dtype), drawn)
        return _cast_to_shape(drawn, shape, dtype)

    return draw


def rand_some_zero(rng: Any) -> _Draw:
    """Draw normal numbers, some of them 0."""
    return _replacing(rng, 0.0)


def rand_some_inf(rng: Any) -> _Draw:
    """Draw normal numbers, some of them infinite."""
    return _replacing(rng, np.inf, -np.inf)


def rand_some_nan(rng: Any) -> _Draw:
    """Draw normal numbers, some of them NaN."""
    return _replacing(rng, np.nan)


def rand_some_inf_and_nan(rng: Any) -> _Draw:
    """Draw normal numbers, some of them infinite or NaN."""
    return _replacing(rng, np.inf, -np.inf, np.nan)


def rand_some_equal(rng: Any) -> _Draw:
    """Draw normal numbers, some of them the same."""

    def draw(shape: Any, dtype: Any) -> Any:
        drawn = _rand_dtype(rng.randn, _sizes(shape), dtype, scale=100.0)
        return _cast_to_shape(np.where(rng.rand(*drawn.shape) < 0.5, drawn.reshape(-1)[:1].sum(), drawn), shape, dtype)

    return draw


def rand_fullrange(rng: Any, standardize_nans: bool = False) -> _Draw:
    """Draw numbers with arbitrary bits."""

    def draw(shape: Any, dtype: Any) -> Any:
        size, width = int(np.prod(_sizes(shape))), np.dtype(dtype).itemsize
        drawn = np.frombuffer(rng.bytes(size * width), np.uint8 if dtype == np.bool_ else dtype)
        drawn = drawn % 2 == 1 if dtype == np.bool_ else drawn
        if standardize_nans and core_dtypes.issubdtype(dtype, np.inexact):
            drawn = np.where(np.isnan(drawn), np.nan, drawn)
        return _cast_to_shape(drawn.astype(dtype), shape, dtype)

    return draw


def count_cases() -> int:
    """Return how many cases are drawn from the products of test parameters."""
    return int(os.environ.get("JAX_NUM_GENERATED_CASES", "10"))
