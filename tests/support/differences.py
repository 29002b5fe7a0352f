"""Derivatives in double precision against finite differences.

For f and a direction t, D(h) = (f(x + h t) - f(x - h t)) / 2h is the derivative of f along t up to h^2/6 times the
third one along t. Extrapolated from two steps, (4 D(h/2) - D(h)) / 3, it is so up to the order h^4 (Richardson), which
at the step used here is below the rounding of f divided by h; and the change from D(h) to D(h/2) bounds both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xtrace
from tests.support.operands import epsilon, ours
from tests.support.values import is_smooth, like
from xtrace._src.core import dtypes

_STEP = 2.0**-13
_DIRECTIONS = 2

# Operands of lower precision than these become what these become.
_SINGLE = 1e-6


def check_differences(
    function: Callable[..., Any], operands: Sequence[np.ndarray[Any, Any]], rounding: float, reverse: bool
) -> None:
    """Assert that the jvp of `function` at `operands` is its difference quotient, and the vjp the jvp's transpose.

    Floating and complex operands are taken in double precision; where all are of half precision nothing is checked,
    since their rows would repeat those of single precision. rounding: how many roundings, in units of the result's
    spacing, a value may be from the exact one. reverse: whether there is a vjp.
    """
    smooth = [i for i, x in enumerate(operands) if is_smooth(x) and x.size]
    if not any(epsilon(operands[i].dtype) < _SINGLE for i in smooth):
        return
    wide = [_doubled(x) if is_smooth(x) else x for x in operands]
    with xtrace.enable_x64(True):
        fixed = [ours(x) for x in wide]

        def call(*values: Any) -> list[Any]:
            full = list(fixed)
            for i, x in zip(smooth, values, strict=True):
                full[i] = x
            return [y for y in xtrace.tree_util.tree_leaves(function(*full)) if is_smooth(y)]

        def pulled_back(values: Sequence[Any]) -> Any:
            results, pullback = xtrace.vjp(call, *values)
            cotangents = [ours(like(y, 7 + i)) for i, y in enumerate(results)]
            return cotangents, pullback(cotangents)

        @xtrace.jit
        def program(values: list[Any], tangents: list[Any]) -> Any:
            return *xtrace.jvp(call, values, tangents), pulled_back(values) if reverse else None

        point = [wide[i] for i in smooth]
        for seed in range(_DIRECTIONS):
            tangents = [like(x, 100 * seed + i) for i, x in enumerate(point)]

            def moved(by: float, tangents: Sequence[Any] = tangents) -> list[np.ndarray[Any, Any]]:
                at = [np.asarray(x + by * t) for x, t in zip(point, tangents, strict=True)]
                return [np.asarray(y) for y in program(at, list(tangents))[0]]

            values, derivatives, transposed = program(point, tangents)
            rows = zip(values, derivatives, *map(moved, (_STEP, -_STEP, _STEP / 2, -_STEP / 2)), strict=True)
            for number, row in enumerate(rows):
                _assert_quotient(*map(np.asarray, row), rounding=rounding, where=f"direction {seed}, result {number}")
            if transposed is not None:
                _assert_transposed(derivatives, transposed[0], transposed[1], tangents, rounding)


def _doubled(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)


def _assert_quotient(
    value: Any, derivative: Any, after: Any, before: Any, half_after: Any, half_before: Any, rounding: float, where: str
) -> None:
    accuracy = rounding * epsilon(value.dtype)
    whole, half = (_doubled(after) - before) / (2 * _STEP), (_doubled(half_after) - half_before) / _STEP
    extrapolated = (4 * half - whole) / 3
    noise = accuracy * (np.abs(_doubled(value)) / _STEP + np.abs(derivative) + 1 / _STEP)
    truncation = np.abs(whole - half)
    size = np.max(np.abs(extrapolated), initial=1.0)
    assert np.all(truncation <= 0.01 * size + noise), (
        f"{where}: the difference quotients at two steps differ by {np.max(truncation)}, so the function is not smooth "
        f"here; a row at such values says why (not_smooth=)"
    )
    apart = np.abs(extrapolated - _doubled(derivative))
    assert np.all(apart <= truncation + noise), (
        f"{where}: the jvp is {derivative}, finite differences give {extrapolated}, {np.max(apart)} apart"
    )


def _assert_transposed(derivatives: Any, cotangents: Any, gradients: Any, tangents: Any, rounding: float) -> None:
    # <ct, J t> = <J^T ct, t> over the reals, of which a complex number is two.
    forward, size = _paired(cotangents, derivatives)
    backward, other = _paired(gradients, tangents)
    coarsest = max((epsilon(y.dtype) for y in derivatives), default=0.0)
    assert abs(forward - backward) <= rounding * coarsest * (size + other), (
        f"the cotangents times the jvp are {forward}, the vjp times the tangents {backward}"
    )


def _paired(left: Any, right: Any) -> tuple[float, float]:
    """Return the real part of the sum of products, and the sum of their moduli."""
    products = [_doubled(np.asarray(x)) * _doubled(np.asarray(y)) for x, y in zip(left, right, strict=True)]
    return sum(float(np.sum(p.real)) for p in products), sum(float(np.sum(np.abs(p))) for p in products)
