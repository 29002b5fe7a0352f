"""Operands for differential tests: strategies for shapes, dtypes and values, and the comparison with jax.

A test draws a NumPy value, makes of it one array of ours and one of jax's, and compares the two results:

    values = data.draw(arrays(np.float32, (2, 3)))
    assert_same(jnp.sin(ours(values)), jax.numpy.sin(theirs(values)))
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.runtime.transfer import array_from_host

BOOL = [np.dtype(bool)]
SIGNED = [np.dtype(t) for t in (np.int8, np.int16, np.int32)]
UNSIGNED = [np.dtype(t) for t in (np.uint8, np.uint16, np.uint32)]
INTEGER = [*SIGNED, *UNSIGNED]
HALF = [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)]
FLOAT = [np.dtype(np.float32), *HALF]
FLOAT8 = [np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]
COMPLEX = [np.dtype(np.complex64)]
ALL = [*BOOL, *INTEGER, *FLOAT, *COMPLEX]


# Values


def random_values(
    dtype: Any, shape: Sequence[int], seed: int, low: float | None = None, high: float | None = None
) -> np.ndarray[Any, Any]:
    """Return values of `dtype` in [low, high]; without bounds, over the dtype's usual range.

    Integers reach the ends of their type; where neither bound is given, floats include zeros of both signs,
    infinities and NaN.
    """
    dtype, generator = np.dtype(dtype), np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtypes.is_integer(dtype):
        bounds = dtypes.iinfo(dtype)
        first = int(bounds.min) if low is None else max(int(low), int(bounds.min))
        last = int(bounds.max) if high is None else min(int(high), int(bounds.max))
        found = generator.integers(first, last, shape, dtype=np.int64, endpoint=True)
        small = generator.integers(max(first, -5), min(last, 5), shape, dtype=np.int64, endpoint=True)
        # Small values are where operations on integers differ in kind, so half are small.
        return np.where(generator.integers(0, 2, shape) == 1, found, small).astype(dtype)
    if dtypes.is_complex(dtype):
        parts = [random_values(dtypes.real_part_dtype(dtype), shape, seed + i, low, high) for i in range(2)]
        return (parts[0] + 1j * np.where(np.isfinite(parts[1]), parts[1], 1)).astype(dtype)
    found = generator.uniform(-4 if low is None else low, 4 if high is None else high, shape)
    if low is None and high is None:
        special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 100.0])
        found = np.where(generator.integers(0, 4, shape) == 0, generator.choice(special, shape), found)
    with np.errstate(all="ignore"):
        return np.asarray(found).astype(dtype)


def finite_values(dtype: Any, shape: Sequence[int], seed: int) -> np.ndarray[Any, Any]:
    """Return values in [-4, 4], without infinities and NaN."""
    return random_values(dtype, shape, seed, -4, 4)


# Strategies

seeds = st.integers(0, 2**16)


def sides(low: int = 0, high: int = 3) -> st.SearchStrategy[int]:
    """Return a strategy for the length of an axis."""
    return st.integers(low, high)


def shapes(min_rank: int = 0, max_rank: int = 3, min_side: int = 0, max_side: int = 3) -> st.SearchStrategy[Any]:
    """Return a strategy for shapes, those with no element included."""
    return st.lists(sides(min_side, max_side), min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcastable_shapes(draw: Any, count: int, max_rank: int = 3, max_side: int = 3) -> list[tuple[int, ...]]:
    """Draw `count` shapes that broadcast against each other by NumPy's rule."""
    whole = draw(shapes(0, max_rank, 0, max_side))
    found = []
    for _ in range(count):
        rank = draw(st.integers(0, len(whole)))
        kept = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
        found.append(tuple(n if keep else 1 for n, keep in zip(whole[len(whole) - rank :], kept, strict=True)))
    return found


@st.composite
def aligned_shapes(draw: Any, count: int, max_rank: int = 3, max_side: int = 3) -> list[tuple[int, ...]]:
    """Draw `count` shapes as lax broadcasts them: scalars, or of one rank with equal sizes or 1."""
    whole = draw(shapes(0, max_rank, 0, max_side))
    found: list[tuple[int, ...]] = []
    for _ in range(count):
        kept = draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole)))
        scalar = draw(st.booleans())
        found.append(() if scalar else tuple(n if k else 1 for n, k in zip(whole, kept, strict=True)))
    return found


def dtypes_in(choices: Iterable[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for one of the given dtypes."""
    return st.sampled_from([np.dtype(d) for d in choices])


@st.composite
def arrays(
    draw: Any, dtype: Any, shape: Sequence[int], low: float | None = None, high: float | None = None
) -> np.ndarray[Any, Any]:
    """Draw a NumPy array of `dtype` and `shape` with values as `random_values` gives them."""
    return random_values(dtype, shape, draw(seeds), low, high)


def weak_scalars(
    kinds: Sequence[type] = (int, float, complex), low: int = -5, high: int = 5
) -> st.SearchStrategy[int | float | complex]:
    """Return a strategy for Python scalars, which are weakly typed."""
    numbers = st.integers(low, high)
    made = {
        bool: st.booleans(),
        int: numbers,
        float: numbers.map(lambda n: n / 2),
        complex: st.tuples(numbers, numbers).map(lambda pair: complex(*pair)),
    }
    return st.one_of(*[made[kind] for kind in kinds])


# Arrays of both packages


def ours(value: Any, weak_type: bool = False) -> Any:
    """Return `value` as an array of ours; a Python scalar, a list or a dict stays what it is, its leaves converted."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return array_from_host(array, ShapedArray(array.shape, array.dtype, weak_type))
    return _mapped(ours, value, weak_type)


def theirs(value: Any, weak_type: bool = False) -> Any:
    """Return `value` as an array of jax's, as `ours` does."""
    if isinstance(value, (np.ndarray, np.generic)):
        if not weak_type:
            # asarray gives the same, and compiles a program for each shape and dtype.
            return jax.device_put(value)
        array = np.asarray(value)
        return _weak_array(array.reshape(-1).tolist() or [array.dtype.type(0).item()], array.shape)
    return _mapped(theirs, value, weak_type)


@functools.partial(jax.jit, static_argnums=1)
def _weak_array(values: list[Any], shape: tuple[int, ...]) -> Any:
    """Return Python scalars, which are all that jax makes weak arrays of, as one."""
    stacked = jax.numpy.stack([jax.numpy.asarray(v) for v in values])
    return stacked.reshape(shape) if 0 not in shape else jax.numpy.broadcast_to(stacked[0], shape)


def _mapped(convert: Any, value: Any, weak_type: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([convert(v, weak_type) for v in value])
    if isinstance(value, dict):
        return {key: convert(v, weak_type) for key, v in value.items()}
    return value


# Comparison


def epsilon(dtype: Any) -> float:
    """Return the spacing of `dtype` at 1; zero for integers and booleans, the real part's for complex."""
    dtype = dtypes.real_part_dtype(np.dtype(dtype))
    return float(dtypes.finfo(dtype).eps) if dtypes.is_floating(dtype) else 0.0


def assert_same(got: Any, expected: Any, rounding: float = 4, where: str = "", floor: float = 0.0) -> None:
    """Assert that two results, or trees of them, agree in structure, shape, dtype, weak type and value.

    Integers and booleans agree exactly; floats to `rounding` units of their dtype's spacing (the number of roundings
    on the way to a value, beyond a few), complex numbers so relative to their modulus. NaN agrees with NaN. floor: what
    is added to the size of a value: the size of the terms that cancel on the way to it.
    """
    if isinstance(expected, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(expected), f"{where}: {got!r} against {expected!r}"
        for i, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same(one, other, rounding, f"{where}[{i}]", floor)
        return
    if isinstance(expected, dict):
        assert isinstance(got, dict) and set(got) == set(expected), f"{where}: {got!r} against {expected!r}"
        for key in expected:
            assert_same(got[key], expected[key], rounding, f"{where}[{key!r}]", floor)
        return
    assert_same_type(got, expected, where)
    assert_close(np.asarray(got), np.asarray(expected), rounding, where, floor)


def assert_same_type(got: Any, expected: Any, where: str = "") -> None:
    """Assert that two results agree in shape, dtype and weak type."""
    found = tuple(got.shape), np.dtype(got.dtype), bool(getattr(got, "weak_type", False))
    wanted = tuple(expected.shape), np.dtype(expected.dtype), bool(getattr(expected, "weak_type", False))
    assert found == wanted, f"{where}: (shape, dtype, weak type) is {found}, jax has {wanted}"


def assert_close(
    got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], rounding: float = 4, where: str = "", floor: float = 0.0
) -> None:
    """Assert that NumPy arrays of one dtype agree to `rounding` units of the spacing at their size plus `floor`."""
    dtype = expected.dtype
    assert got.shape == expected.shape, f"{where}: {got.shape} against {expected.shape}"
    eps = epsilon(dtype)
    if not eps:
        np.testing.assert_array_equal(got, expected, err_msg=where)
        return
    wide = np.complex128 if dtypes.is_complex(dtype) else np.float64
    with np.errstate(all="ignore"):
        one, other = got.astype(wide), expected.astype(wide)
        finite = np.isfinite(other)
        if wide is np.complex128:
            for part in ("real", "imag"):
                a, b = getattr(one, part)[~finite], getattr(other, part)[~finite]
                settled = ~np.isfinite(b)
                np.testing.assert_array_equal(a[settled], b[settled], err_msg=where)
        else:
            np.testing.assert_array_equal(one[~finite], other[~finite], err_msg=where)
        a, b = one[finite], other[finite]
        smallest = float(dtypes.finfo(dtypes.real_part_dtype(dtype)).tiny)
        allowed = rounding * (eps * (np.maximum(np.abs(a), np.abs(b)) + floor) + smallest)
        wrong = ~(np.abs(a - b) <= allowed)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise AssertionError(
            f"{where}: {int(wrong.sum())} of {wrong.size} finite elements of {dtype.name} differ by more than "
            f"{rounding} spacings; the first is {a[at]!r}, jax has {b[at]!r}"
        )
