"""Checks of the differentiation and batching rules of an operation against jax's, and against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import xtrace
import xtrace.lax
import xtrace.numpy
from tests.support.differences import check_differences
from tests.support.operands import assert_same, ours, theirs
from tests.support.values import is_smooth, like
from xtrace._src.core import dtypes


class Library:
    """One of the two packages under the names that cases use: ``api.grad``, ``lax.sin``, ``np.sum``."""

    def __init__(self, api: Any, lax: Any, numpy: Any, array: Callable[[Any], Any]) -> None:
        self.api, self.lax, self.np, self.array = api, lax, numpy, array

    def staged(self) -> Library:
        """Return this library with arrays, equal ones once, that XLA does not compute with before it runs."""
        made: dict[Any, Any] = {}

        def array(x: Any) -> Any:
            key = x.shape, x.dtype, x.tobytes()
            if key not in made:
                made[key] = self.lax.optimization_barrier(self.array(x))
            return made[key]

        return Library(self.api, self.lax, self.np, array)


OURS = Library(xtrace, xtrace.lax, xtrace.numpy, ours)
THEIRS = Library(jax, jax.lax, jax.numpy, theirs)

# Checks that are evaluated eagerly too.
_EAGERLY = {"value", "vjp", "vmap"}


def check_rules(
    function: Callable[..., Any],
    *operands: Any,
    rounding: float = 16,
    derivatives: bool = True,
    reverse: bool = True,
    second: bool = True,
    batching: bool = True,
    not_smooth: str = "",
    apart: str = "",
) -> None:
    """Assert that ``function(library.lax, *operands)`` has jax's value, derivatives and batched forms.

    The operands are NumPy arrays. derivatives, reverse, second, batching: what to check besides the value: jvp, vjp,
    the jvp of the vjp, and vmap over each operand and all, alone and of the vjp. rounding: how many units of the
    dtype's spacing values may be apart; it follows from the number of operations. not_smooth: why finite differences
    do not give the derivatives, where they do not: the function jumps or turns at these values, or rounds.

    All checks are one program on each side: operations one by one would be a program each. In ours each is there twice,
    of the function and of the function under jit, of which the compiler removes what is common. Evaluated eagerly are
    only those of _EAGERLY: what the others need besides is more operations of the same kinds. apart: why all operations
    are programs of their own instead.
    """
    operands = tuple(map(np.asarray, operands))
    checks = _checks(operands, derivatives, reverse, second, batching)
    if apart:
        for check in checks:
            assert_same(check(OURS, function), check(THEIRS, function), rounding, check.__name__)
    else:
        _check_together(function, checks, rounding)
    if derivatives and not not_smooth:
        check_differences(lambda *a: function(xtrace.lax, *a), operands, rounding, reverse)


def _check_together(function: Callable[..., Any], checks: Sequence[Callable[..., Any]], rounding: float) -> None:
    expected = _staged(THEIRS, checks, lambda library, check: check(library, function))

    def under_jit(lax: Any, *operands: Any) -> Any:
        return xtrace.jit(lambda *a: function(lax, *a))(*operands)

    got = _staged(OURS, checks, lambda library, check: (check(library, function), check(library, under_jit)))
    for check, (direct, jitted), wanted in zip(checks, got, expected, strict=True):
        assert_same(direct, wanted, rounding, check.__name__)
        assert_same(jitted, wanted, rounding, f"{check.__name__} under jit")
        if check.__name__ in _EAGERLY:
            assert_same(check(OURS, function), wanted, rounding, f"{check.__name__}, eagerly")


def _staged(library: Library, checks: Sequence[Callable[..., Any]], run: Callable[..., Any]) -> list[Any]:
    """Return ``run(library, check)`` for all `checks` as one program gives it."""
    staged = library.staged()
    return library.api.jit(lambda: [run(staged, check) for check in checks])()  # type: ignore[no-any-return]


def _checks(
    operands: Sequence[Any], derivatives: bool, reverse: bool, second: bool, batching: bool
) -> list[Callable[..., Any]]:
    smooth = [i for i, x in enumerate(operands) if is_smooth(x)]
    tangents = [like(x, 100 + i) for i, x in enumerate(operands)]

    def of_smooth(library: Library, function: Any, given: Sequence[Any] = operands) -> Any:
        arrays = [library.array(x) for x in given]

        def call(*values: Any) -> Any:
            full = list(arrays)
            for i, x in zip(smooth, values, strict=True):
                full[i] = x
            return function(library.lax, *full)

        return call, [arrays[i] for i in smooth]

    def cotangent(library: Library, result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return type(result)([cotangent(library, x) for x in result])
        if not is_smooth(result):
            return np.zeros(result.shape, dtypes.float0)
        return library.array(like(result, 7))

    def pulled_back(library: Library, call: Any, values: Sequence[Any]) -> Any:
        result, pullback = library.api.vjp(call, *values)
        return pullback(cotangent(library, result))

    def value(library: Library, function: Any) -> Any:
        return function(library.lax, *[library.array(x) for x in operands])

    def jvp(library: Library, function: Any) -> Any:
        call, values = of_smooth(library, function)
        result, moved = library.api.jvp(call, tuple(values), tuple([library.array(tangents[i]) for i in smooth]))
        return _without_float0((result, moved))

    def vjp(library: Library, function: Any) -> Any:
        return pulled_back(library, *of_smooth(library, function))

    def jvp_of_vjp(library: Library, function: Any) -> Any:
        call, values = of_smooth(library, function)
        result = _without_float0(call(*values))
        given = cotangent(library, result)

        def gradient(*inner: Any) -> Any:
            return library.api.vjp(lambda *a: _without_float0(call(*a)), *inner)[1](given)

        return library.api.jvp(gradient, tuple(values), tuple([library.array(tangents[i]) for i in smooth]))

    def mapped(library: Library, function: Any, axes: Sequence[int | None], inner: Any) -> Any:
        given = []
        for x, axis in zip(operands, axes, strict=True):
            rolled = x if axis is None else np.stack([x, np.roll(x, 1), x[..., ::-1] if x.ndim else x], axis)
            given.append(library.array(np.asarray(rolled, order="C")))
        return library.api.vmap(inner, tuple(axes))(*given)

    def vmap_over(axes: Sequence[int | None]) -> Callable[..., Any]:
        def vmap(library: Library, function: Any) -> Any:
            return mapped(library, function, axes, lambda *a: function(library.lax, *a))

        if list(axes) != [0] * len(operands):
            vmap.__name__ = f"vmap over {axes}"
        return vmap

    def vmap_of_vjp(library: Library, function: Any) -> Any:
        def inner(*values: Any) -> Any:
            full = list(values)

            def call(*chosen: Any) -> Any:
                for i, x in zip(smooth, chosen, strict=True):
                    full[i] = x
                return _without_float0(function(library.lax, *full))

            result, pullback = library.api.vjp(call, *[values[i] for i in smooth])
            ones = [library.np.ones_like(x) for x in result] if isinstance(result, (list, tuple)) else None
            return pullback(library.np.ones_like(result) if ones is None else type(result)(ones))

        return mapped(library, function, [0] * len(operands), inner)

    found: list[Callable[..., Any]] = [value]
    if derivatives and smooth:
        found.append(jvp)
        if reverse:
            found.append(vjp)
            if second:
                found.append(jvp_of_vjp)
    if batching and operands:
        count = len(operands)
        found.append(vmap_over([0] * count))
        found.append(vmap_over([x.ndim for x in operands]))
        if count > 1:
            found += [vmap_over([(0 if x.ndim == 0 else 1) if i == j else None for j, x in enumerate(operands)])
                      for i in range(count)]
        if derivatives and smooth and reverse:
            found.append(vmap_of_vjp)
    return found


def _without_float0(tree: Any) -> Any:
    """Return `tree` with lists and tuples rid of leaves of integer, boolean or float0 dtype."""
    if isinstance(tree, (list, tuple)):
        kept = [_without_float0(x) for x in tree]
        return type(tree)([x for x in kept if x is not None])
    return tree if is_smooth(tree) else None
