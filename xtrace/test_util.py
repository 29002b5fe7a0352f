"""Checks of derivatives against finite differences, for tests (``jax.test_util``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.api.differentiation.grad import jvp, vjp
from xtrace._src.core import dtypes
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees.pytree import tree_flatten, tree_leaves, tree_map
from xtrace._src.core.settings import config
from xtrace._src.core.tangents import is_differentiable

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_EPS = 1e-4

# The relative and absolute tolerance of a derivative against a difference over a step of `_EPS`, by the bits of a real
# number. Rounding of f(x) changes the difference by about its precision / eps.
_TOLERANCES = {64: 1e-5, 32: 2e-3, 16: 1e-2}
_TOLERANCE_OF_NARROW_TYPES = 1e-1


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int, modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None, rtol: float | None = None, eps: float | None = None,
) -> None:
    """Check the derivatives of a function against central differences along random directions.

    Args:
        f: a function of floating or complex arrays, or trees of them.
        args: a sequence of its arguments.
        order: the highest order of derivatives.
        modes: ``"fwd"`` to check `jvp`, ``"rev"`` to check `vjp`; higher orders check the results of each mode by all
            modes.
        atol, rtol: tolerances; None for the defaults of the dtype.
        eps: the step; None for 1e-4, or more for 16-bit dtypes.

    Raises:
        AssertionError: the derivatives differ.
        TypeError: an argument is neither floating nor complex.
        ValueError: there is no such mode.

    Example:
        >>> xtrace.test_util.check_grads(jnp.sin, (1.0,), order=2)
    """
    modes = [modes] if isinstance(modes, str) else list(modes)
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown:
        raise ValueError(f'check_grads: modes are "fwd" and "rev"; got {abbreviate(unknown[0])}')
    args = tuple(args)
    if eps is None:
        eps = _choose_step(args)
    random = np.random.RandomState(order)
    if "fwd" in modes:
        check_jvp(f, lambda primals, tangents: jvp(f, primals, tangents), args, atol, rtol, eps, "JVP")
        tangents = _draw_direction(random, args)
        if order > 1:
            check_grads(lambda *xs: jvp(f, xs, tangents), args, order - 1, modes, atol, rtol, eps)
    if "rev" in modes:
        check_vjp(f, lambda *primals: vjp(f, *primals), args, atol, rtol, eps, "VJP")
        cotangents = _draw_direction(random, f(*args))

        def value_and_pullback(*xs: object) -> Any:
            y, pullback = vjp(f, *xs)
            return y, pullback(cotangents)

        if order > 1:
            check_grads(value_and_pullback, args, order - 1, modes, atol, rtol, eps)


def check_jvp(
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
    rtol: float | None = None, eps: float = _EPS, err_msg: str = "",
) -> None:
    """Check a JVP: compare the value and the tangent with a central difference along a random direction.

    Args:
        f: a function of floating or complex arrays, or trees of them.
        f_jvp: a function of arguments and tangents that returns a value and its tangent.
        args: a sequence of arguments.
        atol, rtol: tolerances; None for the defaults of the dtype.
        eps: the step.
        err_msg: the beginning of the error message.

    Raises:
        AssertionError: the value or the tangent differs.

    Example:
        >>> import functools
        >>> xtrace.test_util.check_jvp(jnp.sin, functools.partial(xtrace.jvp, jnp.sin), (1.0,))
    """
    args = tuple(args)
    tangents = _draw_direction(np.random.RandomState(0), args)
    value, tangent = f_jvp(args, tangents)
    _assert_close(value, f(*args), atol, rtol, f"{err_msg} primal".strip())
    _assert_close(tangent, _compute_difference(f, args, tangents, eps), atol, rtol, f"{err_msg} tangent".strip())


def check_vjp(
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
    rtol: float | None = None, eps: float = _EPS, err_msg: str = "",
) -> None:
    """Check a VJP: compare the value and the pullback with a central difference along a random direction.

    Args:
        f: a function of floating or complex arrays, or trees of them.
        f_vjp: a function of arguments that returns a value and its pullback.
        args: a sequence of arguments.
        atol, rtol: tolerances; None for the defaults of the dtype.
        eps: the step.
        err_msg: the beginning of the error message.

    Raises:
        AssertionError: the value or the pullback differs.

    Example:
        >>> import functools
        >>> xtrace.test_util.check_vjp(jnp.sin, functools.partial(xtrace.vjp, jnp.sin), (1.0,))
    """
    args = tuple(args)
    random = np.random.RandomState(0)
    tangents = _draw_direction(random, args)
    value, pullback = f_vjp(*args)
    _assert_close(value, f(*args), atol, rtol, f"{err_msg} primal".strip())
    cotangents = _draw_direction(random, value)
    forward = _compute_inner_product(_compute_difference(f, args, tangents, eps), cotangents)
    backward = _compute_inner_product(tangents, pullback(cotangents))
    kind = _find_narrowest_dtype(args, value)
    _assert_close(backward.astype(kind), forward.astype(kind), atol, rtol, f"{err_msg} cotangent projection".strip())


def _draw_direction(random: np.random.RandomState, tree: object) -> Any:
    """Draw standard normal numbers like `tree`; TypeError for leaves without tangents."""

    def normal(leaf: object) -> Any:
        aval = aval_of(leaf)
        if not is_differentiable(aval):
            raise TypeError(
                f"derivatives can be checked by floating and complex values only, got {aval.str_short(True)}; close "
                "over values of other types, and return none"
            )
        drawn = random.standard_normal(aval.shape)
        if dtypes.is_complex(aval.dtype):
            drawn = drawn + 1j * random.standard_normal(aval.shape)
        return np.asarray(drawn).astype(aval.dtype)

    return tree_map(normal, tree)


def _compute_difference(f: Callable[..., Any], args: tuple[Any, ...], tangents: object, eps: float) -> Any:
    """Return (f(x + eps t) - f(x - eps t)) / 2 eps, the derivative along t up to O(eps²)."""

    def evaluate_at(step: float) -> Any:
        return f(*tree_map(lambda x, t: (_widen(x) + step * _widen(t)).astype(t.dtype), args, tangents))

    return tree_map(
        lambda above, below: ((_widen(above) - _widen(below)) / (2 * eps)).astype(aval_of(above).dtype),
        evaluate_at(eps), evaluate_at(-eps),
    )


def _widen(value: object) -> Any:
    """Return a value as a NumPy array of double precision."""
    return np.asarray(value).astype(np.complex128 if dtypes.is_complex(aval_of(value).dtype) else np.float64)


def _compute_inner_product(a: object, b: object) -> Any:
    """Return the real part of the sum of the products of two trees' leaves."""
    pairs = zip(tree_leaves(a), tree_leaves(b), strict=True)
    return np.asarray(sum(np.sum(_widen(x) * _widen(y)).real for x, y in pairs))


def _count_bits(dtype: np.dtype[Any]) -> int:
    """Return the bits of a number of `dtype`, or of its real part."""
    return dtypes.bit_width(dtypes.real_part_dtype(dtype) if dtypes.is_complex(dtype) else dtype)


def _find_narrowest_dtype(*trees: object) -> np.dtype[Any]:
    """Return the real dtype with the fewest digits among the leaves of `trees`."""
    own = [a.dtype for a in map(aval_of, tree_leaves(trees)) if is_differentiable(a)]
    real = [dtypes.real_part_dtype(d) if dtypes.is_complex(d) else d for d in own]
    return max(real, key=lambda d: float(dtypes.finfo(d).eps), default=dtypes.default_float(config.enable_x64.value))


def _choose_step(args: object) -> float:
    """Return the step for the dtypes of `args`: the cube root of the precision balances truncation and rounding."""
    precision = float(dtypes.finfo(_find_narrowest_dtype(args)).eps)
    return _EPS if precision < 1e-6 else float(np.cbrt(precision))


def _assert_close(actual: object, expected: object, atol: float | None, rtol: float | None, message: str) -> None:
    """Raise AssertionError unless two trees of arrays are close, by default within the tolerance of their dtypes."""
    (ours, our_tree), (theirs, their_tree) = tree_flatten(actual), tree_flatten(expected)
    if our_tree != their_tree:
        raise AssertionError(f"{message}: the trees differ: {our_tree} against {their_tree}")
    for x, y in zip(ours, theirs, strict=True):
        if np.shape(x) != np.shape(y):
            raise AssertionError(f"{message}: the shapes differ: {np.shape(x)} against {np.shape(y)}")
        tolerance = max(_find_tolerance(x), _find_tolerance(y))
        np.testing.assert_allclose(
            _widen(x), _widen(y), tolerance if rtol is None else rtol, tolerance if atol is None else atol,
            err_msg=message,
        )


def _find_tolerance(value: object) -> float:
    dtype = aval_of(value).dtype
    if not dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    precise = float(dtypes.finfo(dtype).eps) < 2e-3
    return _TOLERANCES[_count_bits(dtype)] if precise else _TOLERANCE_OF_NARROW_TYPES


_make_public(globals(), __all__)
