"""Quasi-Newton methods: BFGS, and L-BFGS, which stores the last few steps instead of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.api.differentiation.grad import value_and_grad
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace.numpy.arrays.creation import eye, ones_like, zeros
from xtrace.numpy.elementwise.complex_parts import conj
from xtrace.numpy.elementwise.ufuncs import minimum
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg.norms import norm as norm_of
from xtrace.numpy.manipulation.rearrangement import roll
from xtrace.numpy.products.contraction import matmul, outer
from xtrace.scipy.optimize.line_search import FOUND, UNBOUNDED, inner_product, line_search


class State(NamedTuple):
    """The state of a method: `gradient` points uphill, and `memory` represents the inverse Hessian."""

    x: Array
    value: Array
    gradient: Array
    memory: Any
    before: Array
    steps: RealLike
    evaluations: RealLike
    status: RealLike
    going: Array


def _make_evaluation(function: Callable[[Any], Any]) -> Callable[[Any], tuple[Array, Array]]:
    """Return a function from a point to the value, strongly typed, and the direction of steepest ascent."""
    both = value_and_grad(function)

    def evaluate(x: ArrayLike) -> tuple[Array, Array]:
        value, gradient = both(x)
        return value.astype(value.dtype), conj(gradient)

    return evaluate


def _invert_or_zero(x: Array) -> Array:
    return where(x == 0, 0, 1 / where(x == 0, 1, x))


def bfgs(
    function: Callable[[Any], Any], x: Array, *, maxiter: int | None = None, norm: float = math.inf,
    gtol: RealLike = 1e-5, line_search_maxiter: int = 10,
) -> State:
    """Minimize by BFGS until the `norm` of the gradient is below `gtol`; the memory estimates the inverse Hessian.

    The status is 0 for success, 1 after `maxiter` steps (None: 200 for each element of `x`), and 3 or 5 after a line
    search whose phase is `EXHAUSTED` or `UNBOUNDED`.

    Nocedal and Wright, Numerical Optimization (2006), algorithm 6.1; equation 3.60 gives the first trial step.
    """
    limit = 200 * x.size if maxiter is None else maxiter
    evaluate = _make_evaluation(function)
    identity = eye(x.size, dtype=x.dtype)

    def advance(state: State) -> State:
        inverse, gradient = state.memory, state.gradient
        direction = -matmul(inverse, gradient, precision="highest")
        # Rounding can make the estimate of a badly scaled function indefinite: start again from the identity.
        descends = inner_product(direction, gradient) < 0
        direction, inverse = where(descends, direction, -gradient), where(descends, inverse, identity)
        slope = inner_product(direction, gradient).astype(state.value.dtype)
        first = minimum(1, 2.02 * (state.value - state.before) / slope)
        first = where(first > 0, first, 1)
        search = line_search(evaluate, state.x, direction, state.value, gradient, first, line_search_maxiter)
        ended = search.phase == FOUND
        # After a small decrease the first trial step may be too small: then search again from step 1.
        again = (search.phase == UNBOUNDED) & (first < 1) & (state.steps > 0)
        step = search.step.astype(direction.dtype) * direction
        change = search.gradient - gradient
        curvature = inner_product(change, step)
        factor = _invert_or_zero(curvature).astype(direction.dtype)
        reduced = identity - factor * outer(step, conj(change))
        updated = matmul(matmul(reduced, inverse, precision="highest"), conj(reduced.T), precision="highest")
        inverse = where(ended & (curvature > 0), updated + factor * outer(step, conj(step)), inverse)
        converged = norm_of(search.gradient, norm) < gtol
        steps = state.steps + where(again, 0, 1)
        status = where(ended | again, 0, where(search.phase == UNBOUNDED, 5, 3))
        status = where(converged, 0, where(steps >= limit, 1, status))
        return State(
            state.x + step, search.value, search.gradient, inverse, where(again, math.inf, state.value), steps,
            state.evaluations + search.growths + search.zooms, status, (ended | again) & ~converged & (steps < limit),
        )

    value, gradient = evaluate(x)
    before = value + (norm_of(gradient) / 2).astype(value.dtype)
    converged = norm_of(gradient, norm) < gtol
    status = where(converged, 0, 1 if limit <= 0 else 0)
    start = State(x, value, gradient, identity, before, 0, 1, status, ~converged & (limit > 0))
    return while_loop(lambda state: state.going, advance, start)


def _compute_direction(gradient: Array, memory: tuple[Array, ...]) -> Array:
    """Return minus the inverse Hessian times the gradient, by the two-loop recursion over the stored steps."""
    steps, changes, factors, scale = memory

    def back(vector: Array, kept: tuple[Array, ...]) -> tuple[Array, Array]:
        step, change, factor = kept
        weight = factor * inner_product(step, vector)
        return vector - weight.astype(vector.dtype) * change, weight

    def forth(vector: Array, kept: tuple[Array, ...]) -> tuple[Array, None]:
        step, change, factor, weight = kept
        weight = weight - factor * inner_product(change, vector)
        return vector + weight.astype(vector.dtype) * step, None

    vector, weights = scan(back, gradient, (steps, changes, factors), reverse=True)
    vector, _ = scan(forth, scale.astype(vector.dtype) * vector, (steps, changes, factors, weights))
    return -vector


def _push(kept: Array, newest: Array) -> Array:
    return roll(kept, -1, 0).at[-1].set(newest)


def limited_bfgs(
    function: Callable[[Any], Any], x: Array, *, maxiter: int | None = None, norm: float = math.inf, maxcor: int = 10,
    ftol: RealLike = 2.220446049250313e-09, gtol: RealLike = 1e-5, maxfun: RealLike = math.inf,
    maxgrad: RealLike = math.inf, maxls: int = 20,
) -> State:
    """Minimize by L-BFGS with `maxcor` stored steps until the `norm` of the gradient is below `gtol`.

    The status is 0 for success, 1 after `maxiter` steps, 2 after `maxfun` values, 3 after `maxgrad` gradients, 4 for a
    decrease below `ftol`, and 5 for a failed line search of at most `maxls` doublings.

    Nocedal and Wright, Numerical Optimization (2006), algorithms 7.4 and 7.5.
    """
    limit = 200 * x.size if maxiter is None else maxiter
    evaluate = _make_evaluation(function)

    def advance(state: State) -> State:
        steps, changes, factors, _ = state.memory
        direction = _compute_direction(state.gradient, state.memory)
        first = ones_like(state.value)
        search = line_search(evaluate, state.x, direction, state.value, state.gradient, first, maxls)
        step = search.step.astype(direction.dtype) * direction
        change = search.gradient - state.gradient
        curvature, square = inner_product(change, step), inner_product(change, change)
        memory = (
            _push(steps, step), _push(changes, change), _push(factors, _invert_or_zero(curvature)),
            where(curvature > 0, curvature * _invert_or_zero(square), 1),
        )
        status = where(state.value - search.value < ftol, 4, 0)
        status = where(state.evaluations >= maxgrad, 3, status)
        status = where(state.evaluations >= maxfun, 2, status)
        status = where(state.steps >= limit, 1, status)
        status = where(search.phase == FOUND, status, 5)
        converged = norm_of(search.gradient, norm) < gtol
        return State(
            state.x + step, search.value, search.gradient, memory, state.value, state.steps + 1,
            state.evaluations + search.growths + search.zooms, where(converged, 0, status), ~converged & (status == 0),
        )

    value, gradient = evaluate(x)
    kept, real_dtype = zeros((maxcor, x.size), x.dtype), inner_product(x, x).dtype
    memory = (kept, kept, zeros(maxcor, real_dtype), zeros((), real_dtype) + 1)
    start = State(x, value, gradient, memory, value, 0, 1, 0, ~(norm_of(gradient, norm) < gtol))
    return while_loop(lambda state: state.going, advance, start)
