"""Linear solves, inverses and determinants."""

from __future__ import annotations

import numpy as np

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.linalg import lu as lu_forms
from xtrace._src.ops.linalg.matrices import as_column, conj_if_complex, product
from xtrace._src.ops.linalg.triangular import triangular_solve
from xtrace._src.ops.solvers import custom_linear_solve
from xtrace.numpy import linalg
from xtrace.numpy.arrays.conversion import from_sequence
from xtrace.numpy.linalg.operands import matrix_type, promote_to_inexact
from xtrace.numpy.manipulation.broadcasting import broadcast_to
from xtrace.scipy.linalg.factorizations import cholesky

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_triangular"]


@inline_jit(static=("overwrite_a", "check_finite"), public=True)
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        An array of the leading axes.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.det(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array(16., dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.2.
    """
    return linalg.det(a)


@inline_jit(static=("overwrite_a", "check_finite"), public=True)
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        overwrite_a: without effect.
        check_finite: without effect.

    Returns:
        An array of the shape of `a`.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
        Array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4: LU factors with partial
        pivoting.
    """
    return linalg.inv(a)


def _broadcast_system(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, bool]:
    """Broadcast matrices and right-hand sides; return them as matrices, and whether the latter were vectors."""
    left, right = operand_aval(a, 0), operand_aval(b, 1)
    a, b = promote_to_inexact(a, b)
    vector = _are_vectors(left, right)
    if vector:
        b = as_column(b)
    batch = np.broadcast_shapes(left.shape[:-2], aval_of(b).shape[:-2])
    a, b = [broadcast_to(x, (*batch, *aval_of(x).shape[-2:])) for x in (a, b)]
    return a, b, vector


def _are_vectors(left: ShapedArray, right: ShapedArray) -> bool:
    """Return whether right-hand sides are one vector, or one vector for each matrix."""
    return right.ndim == 1 or right.shape == left.shape[:-1]


def _check_system(a: ArrayLike, b: ArrayLike) -> None:
    left, right = matrix_type(a, square=True), operand_aval(b, 1)
    core = 1 if _are_vectors(left, right) else 2
    if right.ndim < core or right.shape[-core] != left.shape[-1]:
        raise ValueError(
            f"{called_function()}: b must have as many rows as the matrix; got shapes {left.shape} and {right.shape}"
        )
    try:
        np.broadcast_shapes(left.shape[:-2], right.shape[: right.ndim - core])
    except ValueError:
        raise ValueError(
            f"{called_function()}: the leading axes do not broadcast; got shapes {left.shape} and {right.shape}"
        ) from None


def _restore_vectors(x: Array, vector: bool) -> Array:
    return squeeze(x, (aval_of(x).ndim - 1,)) if vector else x


@inline_jit
def _cho_solve(c: Array, b: ArrayLike, *, lower: bool) -> Array:
    c, b, vector = _broadcast_system(c, b)
    x = triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    x = triangular_solve(c, x, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)
    return _restore_vectors(x, vector)


def cho_solve(
    c_and_lower: tuple[Array, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve ``a @ x = b`` with the factor of `cho_factor`.

    Args:
        c_and_lower: the result of `cho_factor`.
        b: an array of right-hand sides.
        overwrite_b: without effect.
        check_finite: without effect.

    Returns:
        An array of the shape of `b`.

    Raises:
        ValueError: the shapes do not agree.

    Example:
        >>> scipy.linalg.cho_solve(scipy.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]])), jnp.array([4.0, 2.0]))
        Array([1., 0.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 4.2.
    """
    c, lower = c_and_lower
    c, b = map(from_sequence, (c, b))
    _check_system(c, b)
    return _cho_solve(c, b, lower=bool(lower))


@inline_jit(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a"), public=True)
def solve(
    a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    debug: bool = False, check_finite: bool = True, assume_a: str = "gen",
) -> Array:
    """Solve ``a @ x = b``.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        b: an array of right-hand sides.
        lower: whether the lower triangle is read, where ``"pos"`` is assumed.
        overwrite_a, overwrite_b, debug: without effect.
        check_finite: without effect.
        assume_a: ``"gen"``, ``"sym"``, ``"her"``, or ``"pos"`` for positive definite matrices.

    Returns:
        An array of the shape of `b`.

    Raises:
        ValueError: there is no such assumption, or the shapes do not agree.

    Example:
        >>> scipy.linalg.solve(jnp.array([[4.0, 2.0], [2.0, 5.0]]), jnp.array([4.0, 2.0]))
        Array([1., 0.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), sections 3.4 and 4.2.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got {abbreviate(assume_a)}")
    if assume_a != "pos":
        return linalg.solve(a, b)
    a, b = map(from_sequence, (a, b))
    _check_system(a, b)
    return _solve_positive(a, b, lower=bool(lower))


@inline_jit
def _solve_positive(a: ArrayLike, b: ArrayLike, *, lower: bool) -> Array:
    a, b, vector = _broadcast_system(a, b)
    factor = cholesky(stop_gradient(a), lower)

    def forwards(_: object, right: Array) -> Array:
        return _cho_solve(factor, right, lower=lower)

    def backwards(_: object, right: ArrayLike) -> Array:
        # The transposed system is the conjugate of this one.
        return conj_if_complex(forwards(None, conj_if_complex(right)))

    # The solver reads one triangle, but the derivative is with respect to all elements.
    return _restore_vectors(custom_linear_solve(lambda x: product(a, x), b, forwards, backwards), vector)


@inline_jit(static=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"), public=True)
def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: bool | None = None, check_finite: bool = True,
) -> Array:
    """Solve ``op(a) @ x = b`` for triangular matrices.

    Args:
        a: an array of square matrices, of shape (..., n, n); integers become floats.
        b: an array of right-hand sides.
        trans: 0 or ``"N"`` for a, 1 or ``"T"`` for its transpose, 2 or ``"C"`` for its adjoint.
        lower: whether the lower triangle is read.
        unit_diagonal: whether the diagonal counts as ones.
        overwrite_b, debug: without effect.
        check_finite: without effect.

    Returns:
        An array of the shape of `b`.

    Raises:
        ValueError: there is no such `trans`, or the shapes do not agree.

    Example:
        >>> scipy.linalg.solve_triangular(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 4.0]))
        Array([1.5, 1. ], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.1.
    """
    forms = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    if trans not in forms:
        raise ValueError(
            f"solve_triangular: Invalid 'trans' value {abbreviate(trans)}; it is 0, 1, 2, 'N', 'T' or 'C'"
        )
    a, b = map(from_sequence, (a, b))
    _check_system(a, b)
    a, b, vector = _broadcast_system(a, b)
    form = forms[trans]
    x = triangular_solve(
        a, b, left_side=True, lower=bool(lower), transpose_a=form > 0, conjugate_a=form == 2,
        unit_diagonal=bool(unit_diagonal),
    )
    return _restore_vectors(x, vector)


@inline_jit
def _lu_solve(factors: Array, pivots: Array, b: ArrayLike, *, trans: int) -> Array:
    permutation = lu_forms.lu_pivots_to_permutation(pivots, aval_of(factors).shape[-1])
    factors, b, vector = _broadcast_system(factors, b)
    permutation = broadcast_to(permutation, aval_of(factors).shape[:-1])
    b = conj_if_complex(b) if trans == 1 else b
    x = lu_forms.lu_solve(factors, permutation, b, adjoint=trans > 0)
    return _restore_vectors(conj_if_complex(x) if trans == 1 else x, vector)


def lu_solve(
    lu_and_piv: tuple[Array, Array], b: ArrayLike, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve ``op(a) @ x = b`` with the factors of `lu_factor`.

    Args:
        lu_and_piv: the result of `lu_factor`.
        b: an array of right-hand sides.
        trans: 0 for a, 1 for its transpose, 2 for its adjoint.
        overwrite_b: without effect.
        check_finite: without effect.

    Returns:
        An array of the shape of `b`.

    Raises:
        ValueError: there is no such `trans`, or the shapes do not agree.

    Example:
        >>> scipy.linalg.lu_solve(scipy.linalg.lu_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]])), jnp.array([4.0, 2.0]))
        Array([1., 0.], dtype=float32)

    Reference:
        G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed. (2013), section 3.4.
    """
    factors, pivots = lu_and_piv
    factors, b = map(from_sequence, (factors, b))
    _check_system(factors, b)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: 'trans' value must be 0, 1, or 2, got {trans}")
    return _lu_solve(factors, pivots, b, trans=int(trans))
