"""Solvers that only multiply by the matrix, against exact solutions and jax.scipy.sparse.linalg."""

import jax
import jax.scipy.sparse.linalg
import numpy as np
import pytest

import xtrace
from xtrace.scipy.sparse.linalg import bicgstab, cg, gmres

MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], np.float32)
RIGHT = np.array([1.0, -2.0, 3.0], np.float32)
START = np.array([0.5, 0.5, 0.5], np.float32)
# The residual relative to the right-hand side that is asked for, times the matrix's condition (below 4).
CLOSE = {"rtol": 0, "atol": 4 * 1e-5 * float(np.linalg.norm(RIGHT))}


@pytest.mark.slow
def test_solution():
    expected = np.linalg.solve(MATRIX.astype(float), RIGHT)
    for options in ({}, {"x0": START}, {"M": np.diag(1 / np.diag(MATRIX))}):
        found, info = cg(MATRIX, RIGHT, **options)
        theirs, _ = jax.scipy.sparse.linalg.cg(MATRIX, RIGHT, **options)
        assert info is None and (found.dtype, found.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(found, expected, **CLOSE)
        np.testing.assert_allclose(found, theirs, **CLOSE)
    found, _ = xtrace.jit(lambda a, b: cg(lambda tree: {"x": a @ tree["x"]}, {"x": b}))(MATRIX, RIGHT)
    np.testing.assert_allclose(found["x"], expected, **CLOSE)


SKEWED = np.array([[4.0, 1.0, 0.5], [-1.0, 3.0, -1.0], [1.5, 0.0, 5.0]], np.float32)


@pytest.mark.slow
def test_any_regular_matrix():
    turned = (SKEWED + 1j * MATRIX).astype(np.complex64)
    for matrix in (SKEWED, turned):
        for options in ({}, {"x0": START.astype(matrix.dtype)}, {"M": np.diag(1 / np.diag(matrix))}):
            found, info = bicgstab(matrix, RIGHT.astype(matrix.dtype), **options)
            assert info is None and (found.dtype, found.shape) == (matrix.dtype, (3,))
            np.testing.assert_allclose(found, np.linalg.solve(matrix.astype(complex), RIGHT), **CLOSE)
    theirs = jax.scipy.sparse.linalg.bicgstab(SKEWED, RIGHT)[0]
    np.testing.assert_allclose(bicgstab(SKEWED, RIGHT)[0], theirs, **CLOSE)
    gradient = xtrace.grad(lambda b: bicgstab(SKEWED, b)[0][0])(RIGHT)
    np.testing.assert_allclose(gradient, np.linalg.inv(SKEWED.astype(float))[0], rtol=0, atol=4e-5)


@pytest.mark.slow
def test_steps_are_limited():
    for steps in (0, 1, 2):
        theirs = jax.scipy.sparse.linalg.cg(MATRIX, RIGHT, maxiter=steps)[0]
        np.testing.assert_allclose(cg(MATRIX, RIGHT, maxiter=steps)[0], theirs, rtol=64 * 2.0**-23, atol=2.0**-20)


@pytest.mark.slow
def test_derivatives_are_those_of_the_solution():
    gradient = xtrace.grad(lambda b: cg(MATRIX, b)[0][0])(RIGHT)
    np.testing.assert_allclose(gradient, np.linalg.inv(MATRIX.astype(float))[0], rtol=0, atol=4e-5)
    gradient = xtrace.grad(lambda a: cg(a, RIGHT)[0][0])(MATRIX)
    exact = -np.outer(np.linalg.inv(MATRIX.astype(float))[0], np.linalg.solve(MATRIX.astype(float), RIGHT))
    np.testing.assert_allclose(gradient, exact, rtol=0, atol=2e-4)


def test_mistakes():
    with pytest.raises(ValueError, match=r"square matrix or a function, got shape \(3,\)"):
        cg(RIGHT, RIGHT)
    with pytest.raises(ValueError, match="same tree and shapes"):
        cg(MATRIX, RIGHT, x0=RIGHT[:2])


def _general(seed):
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(6, 6)) + 3 * np.eye(6)
    return matrix.astype(np.float32), generator.normal(size=6).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["batched", "incremental"])
def test_gmres_takes_the_steps_of_jax(method):
    matrix, right = _general(0)

    def program(library):
        return lambda a, b, n: library.scipy.sparse.linalg.gmres(a, b, restart=3, maxiter=n, solve_method=method)

    found, theirs = xtrace.jit(program(xtrace)), jax.jit(program(jax))
    # Each space takes some 30 products of 6 elements; the matrix's condition is below 8.
    close = {"rtol": 0, "atol": 8 * 30 * 2.0**-24}
    for steps in (0, 1, 2, 3, 60):
        (x, info), (wanted, _) = found(matrix, right, steps), theirs(matrix, right, steps)
        np.testing.assert_allclose(x, wanted, **close)
        assert (x.dtype, info, info.dtype, info.weak_type) == (np.float32, 0, np.int32, True)
    # In the space of one vector there is nothing else to find, and without a right-hand side nothing at all.
    np.testing.assert_allclose(found(2 * np.eye(6, dtype=np.float32), right, 1)[0], right / 2, **close)
    np.testing.assert_array_equal(found(matrix, 0 * right, 5)[0], np.zeros(6))
    assert found(0 * matrix, right, 5)[1] == -1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["batched", "incremental"])
def test_gmres_of_trees_its_derivatives_and_batches(method):
    matrix, right = _general(1)
    rotated = (matrix * (1 + 0.5j)).astype(np.complex64)

    def solved(a, b, **options):
        return gmres(lambda x: {"x": a @ x["x"]}, {"x": b}, solve_method=method, **options)[0]["x"]

    @xtrace.jit
    def program(a, b, c):
        return (
            solved(c, b.astype(c.dtype), x0={"x": c[0]}),
            solved(a, b, M=lambda x: {"x": 100 * x["x"]}, restart=2, tol=1e-3),
            xtrace.grad(lambda a: solved(a, b)[0])(a),
            xtrace.vmap(solved, (None, 0))(a, np.eye(6, dtype=np.float32)),
        )

    turned, preconditioned, gradient, inverse = program(matrix, right, rotated)
    exact = np.linalg.inv(matrix.astype(float))
    # The residual that is asked for, times the norm of the inverse.
    norm = np.linalg.norm(exact, 2)
    error = 1e-5 * norm * np.linalg.norm(right)
    np.testing.assert_allclose(turned, exact @ right / (1 + 0.5j), rtol=0, atol=error)
    # The tolerance is of the residual itself, whatever the preconditioner's scale.
    assert np.linalg.norm(matrix @ preconditioned - right) <= 1.01e-3 * np.linalg.norm(right)
    np.testing.assert_allclose(gradient, -np.outer(exact[0], exact @ right), rtol=0, atol=4 * error * norm)
    np.testing.assert_allclose(inverse, exact.T, rtol=0, atol=1e-5 * norm)


def test_mistakes_with_gmres():
    with pytest.raises(ValueError, match="invalid solve_method other, must be either 'incremental' or 'batched'"):
        gmres(MATRIX, RIGHT, solve_method="other")
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        gmres(MATRIX, RIGHT, restart=0)
    with pytest.raises(TypeError, match="integer"):
        gmres(MATRIX, RIGHT, restart=2.5)
    with pytest.raises(ValueError, match=r"operator M must be a square matrix or a function, got shape \(1, 3\)"):
        gmres(MATRIX, RIGHT, M=MATRIX[:1])
    with pytest.raises(ValueError, match=r"the same tree and shapes, got .*\{'x': \*\}.* and "):
        gmres(MATRIX, RIGHT, x0={"x": RIGHT})
