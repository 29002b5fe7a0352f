"""Elementwise functions over hard values, compared with jax bit for bit: values and cotangents jitted, values eager.

Infinities, NaN, zeros of both signs, the smallest and largest numbers of every dtype, integers at the ends of their
types and complex numbers of all of these. An ordinary run takes one function in `PARTS`, another one for each commit;
--whole-tables takes all.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy
import jax.scipy.special
import numpy as np
import pytest

import xtrace
from tests.support.elementwise_operations import LAX, NUMPY, in_jax, plain_names
from tests.support.operands import ALL
from tests.support.sampling import number_of_draws
from xtrace._src.core import dtypes

pytestmark = pytest.mark.thorough

PARTS = 2
_TOGETHER = 6
_FINITE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, 2.5, -2.5, 3.0, np.pi, 10.0, -10.0, 88.0, -89.0, 1e3, 2.0**31]
_PARTS_OF_COMPLEX = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e38, 1e-40]


def _names(functions: dict[str, str]) -> list[str]:
    return [f"{module}.{name}" for module, names in functions.items() for name in names.split()]


def _elementwise(operands: int) -> list[str]:
    """Return the functions of numpy, and the operations of lax that are none of these."""
    only_lax = [row for row in in_jax(LAX) if not row.numpy]
    return [f"numpy.{name}" for name in plain_names(in_jax(NUMPY), operands)] + [
        f"lax.{name}" for name in plain_names(only_lax, operands)
    ]


# jax's parts of subnormal numbers are off, and its logistic function of 16 bits is rounded after each step.
_OTHERWISE = {"numpy.frexp", "lax.logistic"}
UNARY = [name for name in _elementwise(1) if name not in _OTHERWISE] + _names(
    {
        "lax": "integer_pow",
        "nn": "relu relu6 leaky_relu hard_tanh hard_sigmoid hard_silu elu celu selu soft_sign squareplus "
        "sparse_plus sparse_sigmoid",
        "scipy.special": "entr gammasgn logit",
    }
)
BINARY = _elementwise(2) + _names({"scipy.special": "xlogy xlog1py"})
# Of complex numbers these are other formulas than jax's.
_REAL = {"numpy.logaddexp", "numpy.logaddexp2"}
# Several operations, which jax evaluates one by one where nothing is jitted.
_JITTED = {"scipy.special.xlogy", "scipy.special.xlog1py"}


def hard_values(dtype: Any) -> np.ndarray[Any, Any]:
    """Return the values of `dtype` that operations treat in a way of their own."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtypes.is_complex(dtype):
        return np.array([complex(a, b) for a in _PARTS_OF_COMPLEX for b in _PARTS_OF_COMPLEX]).astype(dtype)
    if dtypes.is_integer(dtype):
        bounds = dtypes.iinfo(dtype)
        low, high = int(bounds.min), int(bounds.max)
        near = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 33, high // 2, high // 2 + 1, high - 1, high]
        return np.array([x for x in near if low <= x <= high], dtype)
    info = dtypes.finfo(dtype)
    ends = [float(x) for x in (info.max, info.tiny, info.smallest_subnormal, info.eps)]
    found = [*_FINITE, np.inf, -np.inf, np.nan, *ends, *[-x for x in ends], 1 + ends[-1], 1 - ends[-1], ends[1] / 2]
    with np.errstate(all="ignore"):
        return np.array(found).astype(dtype)


def _operands(name: str, dtype: Any) -> list[np.ndarray[Any, Any]]:
    values = hard_values(dtype)
    if name not in BINARY:
        return [values]
    return [x.ravel() for x in np.meshgrid(values[::2] if len(values) > 50 else values, values)]


def _function(package: Any, name: str) -> Any:
    function = pkgutil.resolve_name(f"{package.__name__}.{name}")
    return functools.partial(function, y=-2) if name == "lax.integer_pow" else function


def _outcome(package: Any, name: str, operands: Sequence[Any], cotangents: bool) -> Any:
    """Return the flat results, or the cotangents of inexact operands for cotangents of 1; the class of an error."""
    function, leaves = _function(package, name), package.tree.leaves
    try:
        if not cotangents:
            return leaves(function(*operands))
        _, pullback = package.vjp(lambda *args: [y for y in leaves(function(*args)) if _is_inexact(y)], *operands)
        results = package.eval_shape(lambda *args: [y for y in leaves(function(*args)) if _is_inexact(y)], *operands)
        return list(pullback([package.numpy.ones(y.shape, y.dtype) for y in results]))
    except (TypeError, ValueError, NotImplementedError) as error:
        return type(error)


def _is_inexact(x: Any) -> bool:
    return dtypes.is_inexact(np.dtype(x.dtype))


def _outcomes(package: Any, calls: Sequence[tuple[str, Any, bool]]) -> list[Any]:
    """Return the outcomes of calls, which are one program."""
    traced: list[Any] = []

    def whole(all_operands: Any) -> Any:
        traced[:] = [_outcome(package, n, x, c) for (n, _, c), x in zip(calls, all_operands, strict=True)]
        return [[] if isinstance(found, type) else found for found in traced]

    results = package.jit(whole)([_operands(name, dtype) for name, dtype, _ in calls])
    return [t if isinstance(t, type) else found for t, found in zip(traced, results, strict=True)]


def _differences(got: Any, expected: Any, call: str, operands: Sequence[Any]) -> list[str]:
    if isinstance(expected, type) or isinstance(got, type):
        # Which of the classes a wrong dtype is, is no subject of this test.
        return [] if isinstance(expected, type) == isinstance(got, type) else [f"{call}: {got}, jax {expected}"]
    if len(got) != len(expected):
        return [f"{call}: {len(got)} results, jax has {len(expected)}"]
    found = []
    for one, other in zip(map(np.asarray, got), map(np.asarray, expected), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            found.append(f"{call}: {one.dtype}{one.shape}, jax has {other.dtype}{other.shape}")
            continue
        unequal = _bits(one) != _bits(other)
        if unequal.any():
            at = int(np.argmax(unequal.any(-1)))
            where = ", ".join(str(x[at]) for x in operands)
            found.append(f"{call}({where}) and {unequal.any(-1).sum() - 1} more: {one[at]}, jax has {other[at]}")
    return found


def _bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the bytes of each element; those of NaN are one NaN's."""
    parts = [x.real, x.imag] if np.iscomplexobj(x) else [x]
    if _is_inexact(x):
        parts = [np.where(part != part, np.asarray(np.nan, part.dtype), part) for part in parts]
    return np.stack([np.frombuffer(p.tobytes(), np.uint8).reshape(len(x), -1) for p in parts], -1).reshape(len(x), -1)


def _dtypes_of(name: str) -> list[Any]:
    return [d for d in ALL if not (name in _REAL and dtypes.is_complex(d))]


def _check(names: Sequence[str], eagerly: int) -> None:
    calls = [(name, dtype, c) for name in names for dtype in _dtypes_of(name) for c in (False, True)
             if not c or dtypes.is_inexact(dtype)]
    got, expected = (_outcomes(package, calls) for package in (xtrace, jax))
    found: list[str] = []
    for i, ((name, dtype, cotangents), one, other) in enumerate(zip(calls, got, expected, strict=True)):
        call, operands = f"{'vjp of ' if cotangents else ''}{name} {dtype.name}", _operands(name, dtype)
        found += _differences(one, other, call, operands)
        # Eager derivatives have tests of their own; of subnormal numbers jax's steps lose some.
        if not cotangents and name not in _JITTED and i % 11 == eagerly % 11:
            one, other = (
                _outcome(package, name, [package.numpy.asarray(x) for x in operands], False)
                for package in (xtrace, jax)
            )
            found += _differences(one, other, f"eager {call}", operands)
    assert not found, "\n".join(found)


NAMES = [*UNARY, *BINARY]


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(NAMES), _TOGETHER * PARTS), ids=lambda i: f"from {NAMES[i]}")
def test_hard_values_give_the_bits_that_they_give_in_jax(first: int, pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    parts = range(PARTS) if pytestconfig.getoption("whole_tables") else [number % PARTS]
    for part in parts:
        _check(NAMES[first + part : first + _TOGETHER * PARTS : PARTS], number)
