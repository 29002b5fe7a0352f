"""Iterative solvers of linear equations, which only multiply by the matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Union

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.control_flow.while_loop import fori_loop, while_loop
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.ops.solvers import custom_linear_solve
from xtrace.flatten_util import ravel_pytree
from xtrace.numpy.arrays.creation import eye, zeros, zeros_like
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.elementwise.complex_parts import conj, real
from xtrace.numpy.elementwise.floating_point import isfinite
from xtrace.numpy.elementwise.ufuncs import abs as absolute
from xtrace.numpy.elementwise.ufuncs import maximum, minimum, sqrt
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg.factorizations import qr
from xtrace.numpy.operands import cast_to
from xtrace.numpy.products.contraction import matmul, vdot

__all__ = ["bicgstab", "cg", "gmres"]


class _Matrix(Protocol):
    """An object with a shape that multiplies vectors by ``@``, such as a sparse matrix."""

    @property
    def shape(self) -> Sequence[int]:
        """The numbers of rows and columns."""
        ...

    def __matmul__(self, vector: Any, /) -> Any: ...


# An array or a tree of arrays, and an operator on it.
_Tree = Any
_Operator = Union[ArrayLike, _Matrix, Callable[[_Tree], _Tree]]  # noqa: UP007
_Multiply = Callable[[Array], Array]


def _inner_product(x: _Tree, y: _Tree) -> Any:
    """Return the inner product of two trees, the first one conjugated."""
    pairs = zip(pytree.tree_leaves(x), pytree.tree_leaves(y), strict=True)
    return sum(vdot(a, b, precision="highest") for a, b in pairs)


def _real_inner_product(x: _Tree, y: _Tree) -> Array:
    """Return the real part of the inner product of two trees."""
    return real(_inner_product(x, y))


def _add_scaled(x: _Tree, factor: Array, y: _Tree) -> _Tree:
    return pytree.tree_map(lambda a, b: a + factor.astype(a.dtype) * b, x, y)


def _make_multiplier(name: str, matrix: Any) -> Any:
    """Return `matrix` if it is a function, and otherwise a function that multiplies by it."""
    if callable(matrix):
        return matrix
    operator = not is_array_like(matrix) and hasattr(matrix, "shape") and hasattr(matrix, "__matmul__")
    shape = tuple(matrix.shape) if operator else aval_of(matrix).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{called_function()}: linear operator {name} must be a square matrix or a function, got shape {shape}"
        )
    return (lambda x: matrix @ x) if operator else (lambda x: matmul(matrix, x, precision="highest"))


def _promote_leaves(tree: _Tree) -> _Tree:
    """Convert the leaves of a tree to arrays of a floating or complex dtype."""

    def leaf(x: ArrayLike) -> Array:
        (aval,), dtype, _ = common_dtype((x,), as_inexact)
        return cast_to(x, aval, dtype)

    return pytree.tree_map(leaf, tree)


def _prepare_system(
    A: _Operator, b: _Tree, x0: _Tree, M: _Operator | None, maxiter: ArrayLike | None
) -> tuple[_Tree, _Tree, Callable[[_Tree], _Tree], Callable[[_Tree], _Tree], ArrayLike]:
    """Return the right-hand side, the initial guess, functions that multiply by `A` and `M`, and the step limit."""
    b = _promote_leaves(b)
    x0 = pytree.tree_map(zeros_like, b) if x0 is None else _promote_leaves(x0)
    shapes = [[aval_of(x).shape for x in pytree.tree_leaves(tree)] for tree in (x0, b)]
    trees = [pytree.tree_structure(tree) for tree in (x0, b)]
    if trees[0] != trees[1] or shapes[0] != shapes[1]:
        raise ValueError(
            f"{called_function()}: x0 and b must have the same tree and shapes, got {trees[0]} of {shapes[0]} and "
            f"{trees[1]} of {shapes[1]}"
        )
    multiply = _make_multiplier("A", A)
    precondition = (lambda x: x) if M is None else _make_multiplier("M", M)
    limit = 10 * sum(aval_of(x).size for x in pytree.tree_leaves(b)) if maxiter is None else maxiter
    return b, x0, multiply, precondition, limit


def _match_weak_types(x: _Tree, b: _Tree, x0: _Tree) -> _Tree:
    """Return the solution, weakly typed where both the right-hand side and the initial guess are."""

    def leaf(value: Array, one: ArrayLike, other: ArrayLike) -> Array:
        return convert_to(value, aval_of(value).dtype, aval_of(one).weak_type and aval_of(other).weak_type)

    return pytree.tree_map(leaf, x, b, x0)


@inline_jit(trees=True)
def cg(
    A: _Operator, b: _Tree, x0: _Tree = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0,
    maxiter: ArrayLike | None = None, M: _Operator | None = None,
) -> tuple[_Tree, None]:
    """Solve ``A x = b`` for a Hermitian positive definite operator by conjugate gradients.

    Derivatives are those of the exact solution, not of the iteration.

    Args:
        A: a square matrix, an object with ``shape`` and ``@``, or a linear function of trees like `b`.
        b: an array or a tree of arrays.
        x0: the first approximation; None for 0.
        tol, atol: the tolerances: the iteration ends when the norm of the residual is at most ``max(tol * |b|, atol)``.
        maxiter: the largest number of steps; None for ten times the size of `b`.
        M: a preconditioner, an approximate inverse of `A` of the same kinds; None for none.

    Returns:
        A pair of the solution and None.

    Raises:
        TypeError: `A` is not an operator, or an operand is not an array.
        ValueError: the matrix is not square, or `x0` is unlike `b`.

    Example:
        >>> scipy.sparse.linalg.cg(jnp.array([[4.0, 0.0], [0.0, 2.0]]), jnp.array([4.0, 2.0]))[0].round(3)
        Array([1., 1.], dtype=float32)

    Reference:
        M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).
    """
    b, x0, multiply, precondition, limit = _prepare_system(A, b, x0, M, maxiter)

    def solve(multiply: Callable[[_Tree], _Tree], b: _Tree) -> _Tree:
        square = _real_inner_product(b, b)
        bound = maximum(square * tol**2, atol**2)

        def is_unfinished(state: tuple[_Tree, _Tree, _Tree, Array, Array]) -> Array:
            _, residual, _, _, step = state
            return (_real_inner_product(residual, residual) > bound) & (step < limit)

        def advance(state: tuple[_Tree, ...]) -> tuple[_Tree, ...]:
            x, residual, direction, gamma, step = state
            image = multiply(direction)
            length = gamma / _real_inner_product(direction, image)
            x, residual = _add_scaled(x, length, direction), _add_scaled(residual, -length, image)
            corrected = precondition(residual)
            following = _real_inner_product(residual, corrected)
            return x, residual, _add_scaled(corrected, following / gamma, direction), following, step + 1

        residual = pytree.tree_map(lambda x, y: x - y, b, multiply(x0))
        corrected = precondition(residual)
        start = (x0, residual, corrected, _real_inner_product(residual, corrected), 0)
        return while_loop(is_unfinished, advance, start)[0]

    # The transpose of a complex Hermitian matrix is its conjugate, not itself.
    symmetric = not any(dtypes.is_complex(aval_of(x).dtype) for x in pytree.tree_leaves(b))
    return custom_linear_solve(multiply, b, solve=solve, transpose_solve=solve, symmetric=symmetric), None


@inline_jit(trees=True)
def bicgstab(
    A: _Operator, b: _Tree, x0: _Tree = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0,
    maxiter: ArrayLike | None = None, M: _Operator | None = None,
) -> tuple[_Tree, None]:
    """Solve ``A x = b`` for a nonsingular operator by the stabilized biconjugate gradient method.

    Derivatives are those of the exact solution, not of the iteration.

    Args:
        A: a square matrix, an object with ``shape`` and ``@``, or a linear function of trees like `b`.
        b: an array or a tree of arrays.
        x0: the first approximation; None for 0.
        tol, atol: the tolerances: the iteration ends when the norm of the residual is at most ``max(tol * |b|, atol)``.
        maxiter: the largest number of steps; None for ten times the size of `b`.
        M: a preconditioner, an approximate inverse of `A` of the same kinds; None for none.

    Returns:
        A pair of the solution and None.

    Raises:
        TypeError: `A` is not an operator, or an operand is not an array.
        ValueError: the matrix is not square, or `x0` is unlike `b`.

    Example:
        >>> scipy.sparse.linalg.bicgstab(jnp.array([[4.0, 0.0], [0.0, 2.0]]), jnp.array([4.0, 2.0]))[0].round(3)
        Array([1., 1.], dtype=float32)

    Reference:
        H. A. van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG" (1992).
    """
    b, x0, multiply, precondition, limit = _prepare_system(A, b, x0, M, maxiter)

    def solve(multiply: Callable[[_Tree], _Tree], b: _Tree) -> _Tree:
        bound = maximum(_real_inner_product(b, b) * tol**2, atol**2)
        shadow = residual = pytree.tree_map(lambda x, y: x - y, b, multiply(x0))
        one = _inner_product(b, b) * 0 + 1

        def is_unfinished(state: tuple[_Tree, _Tree, _Tree, _Tree, Array, Array, Array, Array]) -> Array:
            _, residual, *_, step = state
            return (_real_inner_product(residual, residual) > bound) & (step < limit)

        def advance(state: tuple[_Tree, ...]) -> tuple[_Tree, ...]:
            x, residual, direction, image, rho, alpha, omega, step = state
            following = _inner_product(shadow, residual)
            beta = following / rho * (alpha / omega)
            direction = _add_scaled(residual, beta, _add_scaled(direction, -omega, image))
            corrected = precondition(direction)
            image = multiply(corrected)
            alpha = following / _inner_product(shadow, image)
            half = _add_scaled(residual, -alpha, image)
            smoothed = precondition(half)
            change = multiply(smoothed)
            length = _inner_product(change, change)
            # The half step is the solution if `change` is zero: no smoothing.
            omega = where(length == 0, 0, _inner_product(change, half) / where(length == 0, 1, length))
            x = _add_scaled(_add_scaled(x, alpha, corrected), omega, smoothed)
            return x, _add_scaled(half, -omega, change), direction, image, following, alpha, omega, step + 1

        nothing = pytree.tree_map(zeros_like, b)
        return while_loop(is_unfinished, advance, (x0, residual, nothing, nothing, one, one, one, 0))[0]

    return _match_weak_types(custom_linear_solve(multiply, b, solve=solve, transpose_solve=solve), b, x0), None


# GMRES: all leaves of a tree form one vector; the rows of `basis` are an orthonormal basis of the Krylov space.


def _compute_norm(x: Array) -> Array:
    return sqrt(real(vdot(x, x, precision="highest")))


def _extend_basis(product: _Multiply, basis: Array, step: Array) -> tuple[Array, Array]:
    """Return the basis with one more row, and the next column of the Hessenberg matrix.

    Two Gram-Schmidt projections make the rows orthogonal to rounding (Giraud, Langou and Rozložník 2005). Once the
    space is complete, new rows are zero and new columns are unit vectors.
    """
    vector = basis[step]
    image = product(vector)
    negligible = dtypes.finfo(image.dtype).eps * _compute_norm(image)
    column = zeros_like(basis[:, 0])
    for _ in range(2):
        parts = matmul(conj(basis), image, precision="highest")
        image = image - matmul(parts, basis, precision="highest")
        column = column + parts
    length = _compute_norm(image)
    ends = length <= negligible
    basis = basis.at[step + 1].set(where(ends, 0, image / where(ends, 1, length)))
    below = where(_compute_norm(vector) == 0, 1, where(ends, 0, length))
    return basis, column.at[step + 1].set(below.astype(column.dtype))


def _solve_by_qr(product: _Multiply, first: Array, size: Array, width: int, _: Array) -> Array:
    """Return the step in the Krylov space with the least residual, by one QR factorization."""

    def extend(step: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        basis, columns = state
        basis, column = _extend_basis(product, basis, step)
        return basis, columns.at[step].set(column)

    basis = zeros((width + 1, *first.shape), first.dtype).at[0].set(first)
    basis, columns = fori_loop(0, width, extend, (basis, zeros((width, width + 1), first.dtype)))
    q, r = qr(columns.T)
    right = (conj(q[0]) * size.astype(q.dtype))[:, None]
    weights = triangular_solve(r, right, left_side=True)[:, 0]
    return matmul(weights, basis[:width], precision="highest")


def _rotate(cosine: Array, sine: Array, first: Array, second: Array) -> tuple[Array, Array]:
    return conj(cosine) * first + sine * second, cosine * second - sine * first


def _solve_by_rotations(product: _Multiply, first: Array, size: Array, width: int, bound: Array) -> Array:
    """Return the step with the least residual by Givens rotations; stop when its norm is at most `bound`.

    A rotation by (c, s) takes (a, b) to (c̄ a + s b, c b - s a); s is real. Rows of `triangle` are columns of R.
    """

    def is_unfinished(state: tuple[Array, ...]) -> Array:
        *_, right, step = state
        return (step < width) & ((step == 0) | (absolute(right[step]) > bound))

    def extend(state: tuple[Array, ...]) -> tuple[Array, ...]:
        basis, triangle, cosines, sines, right, step = state
        basis, column = _extend_basis(product, basis, step)

        def rotate(i: Array, column: Array) -> Array:
            upper, lower = _rotate(cosines[i], sines[i], column[i], column[i + 1])
            return column.at[i].set(upper).at[i + 1].set(lower)

        column = fori_loop(0, step, rotate, column)
        a, b = column[step], column[step + 1]
        radius = sqrt(real(a * conj(a)) + real(b * conj(b))).astype(a.dtype)
        none = radius == 0
        cosine, sine = where(none, 1, a / where(none, 1, radius)), where(none, 0, b / where(none, 1, radius))
        column = column.at[step].set(radius).at[step + 1].set(0)
        upper, lower = _rotate(cosine, sine, right[step], right[step + 1])
        triangle = triangle.at[step].set(column[:width])
        cosines, sines = cosines.at[step].set(cosine), sines.at[step].set(sine)
        return basis, triangle, cosines, sines, right.at[step].set(upper).at[step + 1].set(lower), step + 1

    dtype = first.dtype
    basis = zeros((width + 1, *first.shape), dtype).at[0].set(first)
    right = zeros(width + 1, dtype).at[0].set(size.astype(dtype))
    start = (basis, eye(width, dtype=dtype), zeros(width, dtype), zeros(width, dtype), right, 0)
    basis, triangle, _, _, right, steps = while_loop(is_unfinished, extend, start)
    right = where(arange(width) < steps, right[:width], 0)[:, None]
    weights = triangular_solve(triangle, right, left_side=True, lower=True, transpose_a=True)[:, 0]
    return matmul(weights, basis[:width], precision="highest")


_METHODS = {"batched": _solve_by_qr, "incremental": _solve_by_rotations}


@inline_jit(static=("restart", "solve_method"), trees=True)
def gmres(
    A: _Operator, b: _Tree, x0: _Tree = None, *, tol: ArrayLike = 1e-5, atol: ArrayLike = 0.0, restart: int = 20,
    maxiter: ArrayLike | None = None, M: _Operator | None = None, solve_method: str = "batched",
) -> tuple[_Tree, Array]:
    """Solve ``A x = b`` for a nonsingular operator by GMRES: minimal residuals in Krylov spaces.

    Derivatives are those of the exact solution, not of the iteration.

    Args:
        A: a square matrix, an object with ``shape`` and ``@``, or a linear function of trees like `b`.
        b: an array or a tree of arrays.
        x0: the first approximation; None for 0.
        tol, atol: the tolerances: the iteration ends when the norm of the residual is at most ``max(tol * |b|, atol)``.
        restart: the dimension of a Krylov space, at most the size of `b`.
        maxiter: the largest number of Krylov spaces; None for ten times the size of `b`.
        M: a preconditioner, an approximate inverse of `A` of the same kinds, applied from the left; None for none.
            The tolerances apply to the residual without `M`.
        solve_method: ``"batched"`` solves once for each space, which suits GPUs; ``"incremental"`` after each product.

    Returns:
        A pair of the solution, and 0, or -1 if the solution holds NaN.

    Raises:
        TypeError: `A` is not an operator, or an operand is not an array.
        ValueError: there is no such method, `restart` is below 1, the matrix is not square, or `x0` is unlike `b`.

    Example:
        >>> scipy.sparse.linalg.gmres(jnp.array([[4.0, 0.0], [0.0, 2.0]]), jnp.array([4.0, 2.0]))[0].round(3)
        Array([1., 1.], dtype=float32)

    Reference:
        Y. Saad and M. H. Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear
        systems" (1986).
    """
    b, x0, multiply, precondition, limit = _prepare_system(A, b, x0, M, maxiter)
    if solve_method not in _METHODS:
        raise ValueError(
            f"gmres: invalid solve_method {solve_method}, must be either 'incremental' or 'batched'; the second is the "
            "default"
        )
    size = sum(aval_of(x).size for x in pytree.tree_leaves(b))
    width = min(to_integer("restart", restart), max(size, 1))
    if width < 1:
        raise ValueError(f"gmres: restart is the dimension of the Krylov spaces and must be at least 1, got {restart}")
    best = _METHODS[solve_method]

    def solve(multiply: Callable[[_Tree], _Tree], b: _Tree) -> _Tree:
        right, tree_of = ravel_pytree(b)

        def product(x: Array) -> Array:
            return ravel_pytree(multiply(tree_of(x)))[0]

        def precondition_vector(x: Array) -> Array:
            return ravel_pytree(precondition(tree_of(x)))[0]

        bound = maximum(tol * _compute_norm(right), atol)
        # Preconditioned residuals have the same bound, relative to the preconditioned right-hand side.
        share = minimum(1, bound / where(_compute_norm(right) == 0, 1, _compute_norm(right)))
        inner = share * _compute_norm(precondition_vector(right))

        def is_unfinished(state: tuple[Array, ...]) -> Array:
            _, residual, count = state
            return (_compute_norm(residual) > bound) & (count < limit)

        def advance(state: tuple[Array, ...]) -> tuple[Array, ...]:
            x, residual, count = state
            residual = precondition_vector(residual)
            length = _compute_norm(residual)
            first = residual / where(length == 0, 1, length)
            x = x + best(lambda v: precondition_vector(product(v)), first, length, width, inner)
            return x, right - product(x), count + 1

        start = ravel_pytree(x0)[0]
        return tree_of(while_loop(is_unfinished, advance, (start, right - product(start), 0))[0])

    x = _match_weak_types(custom_linear_solve(multiply, b, solve=solve, transpose_solve=solve), b, x0)
    return x, where(isfinite(_compute_norm(ravel_pytree(x)[0])), 0, -1)


_make_public(globals(), __all__)
