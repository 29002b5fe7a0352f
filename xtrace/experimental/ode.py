"""Initial value problems of ordinary differential equations, differentiated by the adjoint equation."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.api.custom_rules.closures import closure_convert
from xtrace._src.api.custom_rules.custom_vjp import custom_vjp
from xtrace._src.api.differentiation.grad import vjp
from xtrace._src.api.jit.jit import jit
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import fori_loop, while_loop
from xtrace.flatten_util import ravel_pytree
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import zeros_like
from xtrace.numpy.elementwise.complex_parts import real
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import clip, maximum, minimum, sqrt
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.joins_and_splits import concatenate, stack
from xtrace.numpy.operands import cast_to
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.reductions import sum as total
from xtrace.numpy.reductions.statistics import mean

__all__ = ["odeint"]

# Dormand and Prince's tableau (Hairer, Nørsett and Wanner, table II.5.2); the last row has the weights of order 5.
_TABLEAU = np.array([
    [0, 0, 0, 0, 0, 0, 0], [1 / 5, 0, 0, 0, 0, 0, 0], [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
])
_NODES = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_WEIGHTS = _TABLEAU[-1]
# The error estimate: the weights of order 5 minus those of an embedded formula of order 4. Any multiple of Dormand and
# Prince's difference gives one; Shampine ("Some practical Runge-Kutta formulas", 1986) takes two thirds of it.
_ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]) * 2 / 3
# The highest term of the continuous solution of order 4 (section II.6, and the program DOPRI5 in the appendix).
_DENSE = np.array([
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072, 701980252875 / 199316789632,
    -1453857185 / 822651844, 69997945 / 29380423,
])
_STAGES = len(_NODES)
# A new step is 0.2 to 10 times the last one; it aims at 0.9 times the step that the error allows.
_GROWTH, _SHRINKAGE, _SAFETY = 10.0, 0.2, 0.9


class _Limits(NamedTuple):
    """The relative and the absolute tolerance of a step, and the largest number and length of steps."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


def _combine_slopes(weights: Sequence[Any] | np.ndarray, slopes: Array) -> Array:
    return matmul(asarray(weights, slopes.dtype), slopes, precision="highest")


def _compute_norm(x: Array) -> Array:
    return sqrt(total(x**2))


def _choose_first_step(
    slope: Callable[[Any, Any], Any], t: Array, y: Array, f: Array, rtol: float, atol: float
) -> Array:
    """Return the length of the first step (section II.4, "Starting step size"), for a method of error order 4."""
    scale = atol + absolute(y) * rtol
    size, speed = _compute_norm(absolute(y) / scale), _compute_norm(absolute(f) / scale)
    small = (size < 1e-5) | (speed < 1e-5)
    trial = where(small, 1e-6, 0.01 * size / where(small, 1, speed))
    moved = slope(y + trial.astype(y.dtype) * f, t + trial.astype(t.dtype))
    bend = _compute_norm(absolute(moved - f) / scale) / trial
    largest = maximum(speed, bend)
    flat = largest <= 1e-15
    step = where(flat, maximum(1e-6, trial * 1e-3), (0.01 / where(flat, 1, largest)) ** 0.2)
    return minimum(100 * trial, step).astype(t.dtype)


def _evaluate_stages(slope: Callable[[Any, Any], Any], t: Array, y: Array, f: Array, step: Array) -> tuple[Any, Any]:
    """Return y after `step`, and the slopes of all stages. The last slope is the slope at the new y."""
    length = step.astype(y.dtype)
    tableau, nodes = asarray(_TABLEAU, y.dtype), asarray(_NODES, t.dtype)

    def stage(i: Array, state: tuple[Array, ...]) -> tuple[Array, Array]:
        slopes, _ = state
        moved = y + length * matmul(tableau[i], slopes, precision="highest")
        return slopes.at[i].set(slope(moved, t + nodes[i] * step)), moved

    slopes = concatenate([f[None], zeros_like(f, shape=(_STAGES - 1, *f.shape))])
    slopes, after = fori_loop(1, _STAGES, stage, (slopes, y))
    return after, slopes


def _fit_polynomial(before: Array, after: Array, slopes: Array, step: Array) -> Array:
    """Return the coefficients, the highest first, of the continuous solution in θ, the fraction of the step.

    In DOPRI5's form it is y + θ(d + (1 - θ)(b + θ(r + (1 - θ)q))), with d = y' - y, b = h f - d, r = d - h f' - b.
    """
    length = step.astype(before.dtype)
    d = after - before
    b = length * slopes[0] - d
    r = d - length * slopes[-1] - b
    q = length * _combine_slopes(_DENSE, slopes)
    return stack([q, -(r + 2 * q), r + q - b, d + b, before])


def _integrate(slope: Callable[[Any, Any], Any], y: Array, times: Array, limits: _Limits) -> Array:
    """Return the vectors y at `times`, given y at the first time."""
    rtol, atol, mxstep, hmax = limits

    def advance(state: tuple[Array, ...]) -> tuple[Any, ...]:
        count, y, f, t, step, start, polynomial = state
        after, slopes = _evaluate_stages(slope, t, y, f, step)
        allowed = atol + rtol * maximum(absolute(y), absolute(after))
        error = step * sqrt(mean((absolute(_combine_slopes(_ERROR, slopes)) / allowed) ** 2)).astype(step.dtype)
        accepted = error <= 1
        least = where(accepted, 1.0, _SHRINKAGE)
        factor = where(error == 0, _GROWTH, clip(_SAFETY * where(error == 0, 1, error) ** -0.2, least, _GROWTH))
        moved = (after, slopes[-1], t + step, t, _fit_polynomial(y, after, slopes, step))
        y, f, t, start, polynomial = [
            where(accepted, new, old) for new, old in zip(moved, (y, f, t, start, polynomial), strict=True)
        ]
        return count + 1, y, f, t, minimum(step * factor, hmax).astype(step.dtype), start, polynomial

    def reach(state: tuple[Array, ...], target: Array) -> tuple[Any, Any]:
        def is_unfinished(state: tuple[Array, ...]) -> Array:
            count, _, _, t, step, *_ = state
            return (t < target) & (count < mxstep) & (step > 0)

        _, *reached = while_loop(is_unfinished, advance, (0, *state))
        _, _, t, _, start, polynomial = reached
        # At the start of the last step the fraction is 0, even if that step has length 0.
        share = where(target == start, 0, (target - start) / (t - start)).astype(y.dtype)
        value = polynomial[0]
        for coefficient in polynomial[1:]:
            value = value * share + coefficient
        return tuple(reached), value

    first = times[0]
    f = slope(y, first)
    step = minimum(_choose_first_step(slope, first, y, f, rtol, atol), hmax).astype(times.dtype)
    constant = concatenate([zeros_like(y, shape=(4, *y.shape)), y[None]])
    _, result = scan(reach, (y, f, first, step, first, constant), times[1:])
    return concatenate([y[None], result])


def _cast_slope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return `func` with its result cast to the dtypes of y; TypeError if its tree or shapes differ from y's."""

    def slope(y: object, t: Array, *args: object) -> Any:
        dy = func(y, t, *args)
        trees, leaves = [pytree.tree_structure(x) for x in (y, dy)], [pytree.tree_leaves(x) for x in (y, dy)]
        avals = [[aval_of(x) for x in flat] for flat in leaves]
        shapes = [[a.shape for a in flat] for flat in avals]
        if trees[0] != trees[1] or shapes[0] != shapes[1]:
            raise TypeError(
                "odeint: func must return the time derivative of y, with its tree and shapes "
                f"{trees[0]} of {shapes[0]}; it returned {trees[1]} of {shapes[1]}"
            )
        for own, result in zip(*avals, strict=True):
            if dtypes.is_complex(result.dtype) and not dtypes.is_complex(own.dtype):
                raise TypeError(
                    f"odeint: func returned {result.str_short(True)} for a y of {own.str_short(True)}; make y0 complex"
                )
        cast = [cast_to(x, a, own.dtype) for x, a, own in zip(leaves[1], avals[1], avals[0], strict=True)]
        return pytree.tree_unflatten(trees[0], cast)

    return slope


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(func: Callable[..., Any], limits: _Limits, y0: Any, times: Array, *args: Array) -> Any:
    vector, unravel = ravel_pytree(y0)

    def slope(x: Array, t: Array) -> Array:
        return ravel_pytree(func(unravel(x), t, *args))[0].astype(vector.dtype)

    return vmap(unravel)(_integrate(slope, vector.astype(vector.dtype), times, limits))


def _forward(func: Callable[..., Any], limits: _Limits, y0: Any, times: Array, *args: Array) -> tuple[Any, Any]:
    ys = _solve(func, limits, y0, times, *args)
    return ys, (ys, times, args)


def _take_row(tree: Any, i: int) -> Any:
    return pytree.tree_map(lambda x: x[i], tree)


def _is_differentiable(x: Array) -> bool:
    return is_differentiable(aval_of(x))


def _list_parameters(args: Sequence[Any]) -> list[Any]:
    """Return the differentiable leaves of the arguments."""
    return [x for x in pytree.tree_leaves(args) if _is_differentiable(x)]


def _replace_parameters(
    args: Sequence[Any], captured: Sequence[Any], others: Callable[[Any], Any] = lambda x: x
) -> tuple[Array, ...]:
    """Replace the differentiable leaves of `args` by `captured`, and apply `others` to the other leaves."""
    leaves, tree = pytree.tree_flatten(args)
    values = iter(captured)
    restored = [next(values) if _is_differentiable(x) else others(x) for x in leaves]
    return tuple(pytree.tree_unflatten(tree, restored))


def _backward(
    func: Callable[..., Any], limits: _Limits, saved: tuple[Any, ...], cotangent: Array
) -> tuple[Array, ...]:
    """Return the cotangents of y0, the times and the arguments.

    The adjoint a of y solves a' = -(∂f/∂y)ᵀ a backwards in time; at each output time the cotangent is added. The
    cotangents of the arguments are integrals of (∂f/∂p)ᵀ a (Chen and others, "Neural ordinary differential equations",
    2018). All equations, and the equation of y, are integrated together in s = -t.
    """
    ys, times, args = saved

    def compute_augmented_slopes(state: tuple[Any, ...], s: Array, *args: object) -> tuple[Any, ...]:
        y, adjoint, *_ = state
        dy, pull = vjp(lambda y, t, *p: func(y, t, *_replace_parameters(args, p)), y, -s, *_list_parameters(args))
        moved, time_cotangent, *parameter_cotangents = pull(adjoint)
        return pytree.tree_map(lambda x: -x, dy), moved, time_cotangent, parameter_cotangents

    def integrate_back(carry: tuple[Any, ...], interval: tuple[Array, ...]) -> tuple[Any, Any]:
        adjoint, start_cotangent, sums = carry
        y, earlier, later, jump = interval
        # Moving an output time moves y there by f, and lengthens the interval before it.
        pairs = zip(pytree.tree_leaves(func(y, later, *args)), pytree.tree_leaves(jump), strict=True)
        time_cotangent = functools.reduce(operator.add, [real(total(f * g)) for f, g in pairs]).astype(times.dtype)
        adjoint = pytree.tree_map(lambda x, y: x + y, adjoint, jump)
        start = (y, adjoint, start_cotangent - time_cotangent, sums)
        solution = _solve(compute_augmented_slopes, limits, start, stack([-later, -earlier]), *args)
        return _take_row(solution, 1)[1:], time_cotangent

    sums = [zeros_like(x) for x in _list_parameters(args)]
    start = (_take_row(pytree.tree_map(zeros_like, ys), 0), zeros_like(times[0]), sums)
    later_ys, jumps = pytree.tree_map(lambda x: x[1:], (ys, cotangent))
    intervals = later_ys, times[:-1], times[1:], jumps
    (adjoint, start_cotangent, sums), time_cotangents = scan(integrate_back, start, intervals, reverse=True)
    y0_cotangent = pytree.tree_map(lambda x, y: x + y, adjoint, _take_row(cotangent, 0))
    times_cotangent = concatenate([start_cotangent[None], time_cotangents])
    return y0_cotangent, times_cotangent, *_replace_parameters(args, sums, lambda _: None)


_solve.defvjp(_forward, _backward)


# A call in other programs, so that eager derivatives reuse the programs compiled for `func`.
@functools.partial(jit, static_argnames=("func", "limits"))
def _solve_compiled(func: Callable[..., Any], limits: _Limits, y0: Any, times: Array, *args: Array) -> Any:
    converted, closed_over = closure_convert(_cast_slope(func), y0, times[0], *args)
    return _solve(converted, limits, y0, times, *args, *closed_over)


def odeint(
    func: Callable[..., Any], y0: Any, t: ArrayLike, *args: Any, rtol: float = 1.4e-8, atol: float = 1.4e-8,
    mxstep: float = math.inf, hmax: float = math.inf,
) -> Any:
    """Solve the differential equation ``dy/dt = func(y, t, *args)`` with ``y(t[0]) = y0``.

    Reverse mode solves the adjoint equation to the same tolerances. Forward mode is not supported.

    Args:
        func: a function of a tree like `y0`, a time and `args`; it returns a tree like `y0`.
        y0: a tree of floating or complex arrays.
        t: a vector of increasing times of a floating dtype; decreasing times give NaN.
        args: trees of arrays.
        rtol, atol: the relative and absolute error allowed in a step.
        mxstep: the largest number of steps between two times.
        hmax: the longest step.

    Returns:
        A tree like `y0` of arrays with a leading axis for the times.

    Raises:
        TypeError: `t` is not a vector of floats, `y0` has integers, or the result of `func` is not like `y0`.
        ValueError: `func` is not hashable.

    Example:
        >>> xtrace.experimental.ode.odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]))
        Array([1.       , 0.3678794], dtype=float32)

    Reference:
        E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed. (1993), sections II.4
        to II.6: Dormand and Prince's method of order 5(4) with its continuous solution of order 4.
    """
    check_callable(func)
    limits = _Limits(rtol, atol, mxstep, hmax)
    for name, value in limits._asdict().items():
        if not isinstance(value, (int, float, np.number)):
            raise ValueError(
                f"odeint: {name} is compiled into the program and must be a Python number, got {abbreviate(value)}"
            )
    for leaf in pytree.tree_leaves(args):
        if not is_array_like(leaf):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {leaf}. Let func close over it"
            )
    aval = aval_of(t) if is_array_like(t) else None
    if aval is None or not dtypes.is_floating(aval.dtype) or aval.ndim != 1 or not aval.size:
        raise TypeError(f"t must be an array of floats, with one axis and at least one time, but got {t}")
    for leaf in pytree.tree_leaves(y0):
        if not dtypes.is_inexact(aval_of(leaf).dtype):
            raise TypeError(
                f"odeint: y0 must have floating or complex dtypes, got {aval_of(leaf).str_short(True)}; write "
                "y0.astype(float)"
            )
    return _solve_compiled(func, limits, pytree.tree_map(asarray, y0), asarray(t), *args)


_make_public(globals(), __all__)
