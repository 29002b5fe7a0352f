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
from xtrace.numpy.ufuncs import maximum, real
from xtrace.ops.control_flow.while_loop import while_loop
from xtrace.ops.solvers import custom_linear_solve

__all__ = ["cg"]


def _product(x: Any, y: Any) -> Any:
    """Return the real part of the inner product of two trees."""
    pairs = zip(pytree.tree_leaves(x), pytree.tree_leaves(y), strict=True)
    return sum(real(vdot(a, b, precision="highest")) for a, b in pairs)


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
    b = _leaves_like("cg", b)
    x0 = pytree.tree_map(zeros_like, b) if x0 is None else _leaves_like("cg", x0)
    shapes = [[aval_of(x).shape for x in pytree.tree_leaves(tree)] for tree in (x0, b)]
    if pytree.tree_structure(x0) != pytree.tree_structure(b) or shapes[0] != shapes[1]:
        raise ValueError(f"cg: x0 and b must have the same tree and shapes, got {shapes[0]} and {shapes[1]}")
    multiply = _multiplier("cg", "A", A)
    precondition = (lambda x: x) if M is None else _multiplier("cg", "M", M)
    limit = 10 * sum(aval_of(x).size for x in pytree.tree_leaves(b)) if maxiter is None else maxiter

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
