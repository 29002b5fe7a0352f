"""Solvers of linear equations that only multiply by the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace.api.promotion import as_inexact, common_dtype
from xtrace.core import pytree
from xtrace.core.avals import aval_of
from xtrace.numpy.arguments import cast_to
from xtrace.numpy.contraction import matmul, vdot
from xtrace.numpy.creation import zeros_like
from xtrace.numpy.ufuncs import maximum, real, where
from xtrace.ops.control_flow.while_loop import while_loop
from xtrace.ops.solvers import custom_linear_solve

__all__ = ["bicgstab", "cg"]


def _inner(x: Any, y: Any) -> Any:
    """Return the inner product of two trees, the first one conjugated."""
    pairs = zip(pytree.tree_leaves(x), pytree.tree_leaves(y), strict=True)
    return sum(vdot(a, b, precision="highest") for a, b in pairs)


def _product(x: Any, y: Any) -> Any:
    """Return the real part of the inner product of two trees."""
    return real(_inner(x, y))


def _plus(x: Any, factor: Any, y: Any) -> Any:
    return pytree.tree_map(lambda a, b: a + factor.astype(a.dtype) * b, x, y)


def _multiplier(function: str, name: str, matrix: Any) -> Callable[[Any], Any]:
    """Return what multiplies by a matrix, or by the function that is given for one."""
    if callable(matrix):
        return matrix  # type: ignore[no-any-return]
    shape = aval_of(matrix).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{function}: linear operator {name} must be a square matrix or a function, got shape {shape}")
    return lambda x: matmul(matrix, x, precision="highest")


def _leaves_like(function: str, tree: Any) -> Any:
    """Return a tree with arrays of a floating or complex dtype as leaves."""

    def leaf(x: Any) -> Any:
        (aval,), dtype, _ = common_dtype(function, (x,), as_inexact)
        return cast_to(x, aval, dtype)

    return pytree.tree_map(leaf, tree)


def _system(function: str, A: Any, b: Any, x0: Any, M: Any, maxiter: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the right-hand side, the start, what multiplies by `A` and by `M`, and the number of steps allowed."""
    b = _leaves_like(function, b)
    x0 = pytree.tree_map(zeros_like, b) if x0 is None else _leaves_like(function, x0)
    shapes = [[aval_of(x).shape for x in pytree.tree_leaves(tree)] for tree in (x0, b)]
    if pytree.tree_structure(x0) != pytree.tree_structure(b) or shapes[0] != shapes[1]:
        raise ValueError(f"{function}: x0 and b must have the same tree and shapes, got {shapes[0]} and {shapes[1]}")
    multiply = _multiplier(function, "A", A)
    precondition = (lambda x: x) if M is None else _multiplier(function, "M", M)
    limit = 10 * sum(aval_of(x).size for x in pytree.tree_leaves(b)) if maxiter is None else maxiter
    return b, x0, multiply, precondition, limit


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """Solve ``A x = b`` for a Hermitian positive definite `A`; return x and None.

    A: a matrix, or a function from trees like `b` to such trees. The steps end when the residual's norm is at most
    ``max(tol * |b|, atol)``, or after `maxiter` (None: ten times the size of `b`). x0: where to start (None: 0). M: an
    approximate inverse of `A`. Derivatives are those of the exact solution, in both modes. ValueError for a matrix that
    is not square and an `x0` unlike `b`.

    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).
    """
    b, x0, multiply, precondition, limit = _system("cg", A, b, x0, M, maxiter)

    def solve(multiply: Callable[[Any], Any], b: Any) -> Any:
        square = _product(b, b)
        bound = maximum(square * tol**2, atol**2)

        def going(state: Any) -> Any:
            _, residual, _, _, step = state
            return (_product(residual, residual) > bound) & (step < limit)

        def advance(state: Any) -> Any:
            x, residual, direction, gamma, step = state
            image = multiply(direction)
            length = gamma / _product(direction, image)
            x, residual = _plus(x, length, direction), _plus(residual, -length, image)
            corrected = precondition(residual)
            following = _product(residual, corrected)
            return x, residual, _plus(corrected, following / gamma, direction), following, step + 1

        residual = pytree.tree_map(lambda x, y: x - y, b, multiply(x0))
        corrected = precondition(residual)
        return while_loop(going, advance, (x0, residual, corrected, _product(residual, corrected), 0))[0]

    return custom_linear_solve(multiply, b, solve=solve, transpose_solve=solve, symmetric=True), None


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None, M: Any = None
) -> tuple[Any, None]:
    """Solve ``A x = b`` for any regular `A`; return x and None. Arguments, derivatives and errors are those of `cg`.

    Van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG" (1992).
    """
    b, x0, multiply, precondition, limit = _system("bicgstab", A, b, x0, M, maxiter)

    def solve(multiply: Callable[[Any], Any], b: Any) -> Any:
        bound = maximum(_product(b, b) * tol**2, atol**2)
        shadow = residual = pytree.tree_map(lambda x, y: x - y, b, multiply(x0))
        one = _inner(b, b) * 0 + 1

        def going(state: Any) -> Any:
            return (_product(state[1], state[1]) > bound) & (state[-1] < limit)

        def advance(state: Any) -> Any:
            x, residual, direction, image, rho, alpha, omega, step = state
            following = _inner(shadow, residual)
            beta = following / rho * (alpha / omega)
            direction = _plus(residual, beta, _plus(direction, -omega, image))
            corrected = precondition(direction)
            image = multiply(corrected)
            alpha = following / _inner(shadow, image)
            half = _plus(residual, -alpha, image)
            smoothed = precondition(half)
            change = multiply(smoothed)
            length = _inner(change, change)
            # Nothing is left to smooth where the half step is the solution.
            omega = where(length == 0, 0, _inner(change, half) / where(length == 0, 1, length))
            x = _plus(_plus(x, alpha, corrected), omega, smoothed)
            return x, _plus(half, -omega, change), direction, image, following, alpha, omega, step + 1

        nothing = pytree.tree_map(zeros_like, b)
        return while_loop(going, advance, (x0, residual, nothing, nothing, one, one, one, 0))[0]

    return custom_linear_solve(multiply, b, solve=solve, transpose_solve=solve), None
