"""Solvers that only multiply by the matrix, against exact solutions and jax.scipy.sparse.linalg."""

import jax
import jax.scipy.sparse.linalg
import numpy as np
import pytest

import xtrace
from xtrace.scipy.sparse.linalg import bicgstab, cg

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
