"""Linear systems and eigenvalues of sparse matrices."""

import jax
import jax.experimental.sparse.linalg
import numpy as np
import pytest

import xtrace
from xtrace._src.sparse.band_solver import find_narrow_order, solve_sparse
from xtrace.experimental import sparse
from xtrace.experimental.sparse import linalg


def system(size, share, seed=0, dtype=np.float64):
    """Return a matrix that needs pivots, and a right side."""
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(size, size)) * (generator.random((size, size)) < share)
    matrix[np.arange(size), generator.permutation(size)] += 2
    return matrix.astype(dtype), generator.normal(size=size).astype(dtype)


def by_rows(matrix):
    rows, columns = np.nonzero(matrix)
    return matrix[rows, columns], columns, np.searchsorted(rows, np.arange(len(matrix) + 1))


@pytest.mark.parametrize(("size", "share"), [(1, 1.0), (5, 0.5), (40, 0.05), (30, 1.0), (7, 0.9)])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("reorder", [False, True])
def test_elimination(size, share, transpose, reorder):
    matrix, right = system(size, share)
    found = solve_sparse(*by_rows(matrix), right, transpose, reorder)
    matrix = matrix.T if transpose else matrix
    # The error of elimination with pivots is a small multiple of the condition number.
    tolerance = 100 * size * np.linalg.cond(matrix) * np.finfo(float).eps
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=tolerance, atol=tolerance)


def test_elements_are_near_the_diagonal():
    generator = np.random.default_rng(0)
    place = generator.permutation(50)
    rows, columns = place[np.arange(49)], place[np.arange(1, 50)]
    order = find_narrow_order(rows, columns, 50)
    at = np.argsort(order)
    assert sorted(order) == list(range(50)) and np.abs(at[rows] - at[columns]).max() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_solutions_and_derivatives(dtype):
    matrix, right = system(6, 0.4, 1, dtype)
    data, columns, pointers = by_rows(matrix)
    rows = np.repeat(np.arange(6), np.diff(pointers))

    def loss(solution, library):
        return (library.numpy.abs(solution) ** 2).sum()

    def ours(data, right):
        return loss(linalg.spsolve(data, columns, pointers, right), xtrace)

    def dense(data, right):
        return loss(jax.numpy.linalg.solve(jax.numpy.zeros((6, 6), dtype).at[rows, columns].set(data), right), jax)

    tolerance = 1000 * np.linalg.cond(matrix) * np.finfo(dtype).eps
    found, expected = (f(data, right) for f in (ours, dense))
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    found, expected = xtrace.jit(xtrace.grad(ours, (0, 1)))(data, right), jax.grad(dense, (0, 1))(data, right)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    several = xtrace.vmap(lambda b: linalg.spsolve(data, columns, pointers, b))(np.stack([right, 2 * right]))
    np.testing.assert_allclose(several[1], 2 * several[0], rtol=tolerance)


def test_singular_systems_and_padding():
    assert np.isnan(linalg.spsolve(np.zeros(2, np.float32), [0, 1], [0, 1, 2], np.ones(2, np.float32))).all()
    padded = sparse.CSR.fromdense(np.eye(3, dtype=np.float32) * 2, nse=5)
    found = linalg.spsolve(padded.data, padded.indices, padded.indptr, np.ones(3, np.float32), reorder=0)
    np.testing.assert_array_equal(found, np.full(3, 0.5))


def symmetric(size, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(size, size)).astype(np.float32)
    return matrix + matrix.T


START = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)


@pytest.mark.parametrize("form", ["dense", "function", "sparse"])
def test_eigenvalues(form):
    matrix = symmetric(40)
    operator = {"dense": xtrace.numpy.array(matrix), "function": lambda x: matrix @ x,
                "sparse": sparse.BCOO.fromdense(matrix)}[form]
    values, vectors, _ = linalg.lobpcg_standard(operator, START)
    expected, _, _ = jax.experimental.sparse.linalg.lobpcg_standard(jax.numpy.array(matrix), START)
    tolerance = 40 * np.finfo(np.float32).eps
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:3], rtol=tolerance)
    np.testing.assert_allclose(values, expected, rtol=tolerance)
    # With a loose tolerance the number of steps does not depend on the roundings of one machine.
    steps = linalg.lobpcg_standard(operator, START, tol=1e-4)[2]
    other_steps = jax.experimental.sparse.linalg.lobpcg_standard(jax.numpy.array(matrix), START, tol=1e-4)[2]
    assert int(steps) == int(other_steps)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=tolerance)
    residual = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert (residual <= 2 * np.finfo(np.float32).eps * 10 * 40 * 2 * np.abs(values)).all()


def test_eigenvalues_of_hard_matrices():
    # All eigenvalues are equal and negative, or there are fewer that are not zero than are wanted.
    values, _, _ = linalg.lobpcg_standard(-np.eye(40, dtype=np.float32), START)
    np.testing.assert_allclose(values, -np.ones(3), rtol=1e-5)
    column = START[:, :1] / np.linalg.norm(START[:, :1])
    values, _, _ = linalg.lobpcg_standard(column @ column.T, START)
    np.testing.assert_allclose(values, [1, 0, 0], atol=1e-5)
    assert int(linalg.lobpcg_standard(symmetric(40), START, m=2)[2]) == 2
    loose, _, few = linalg.lobpcg_standard(symmetric(40), START, tol=1e-4)
    assert 2 < int(few) < 15 and abs(float(loose[0]) - np.linalg.eigvalsh(symmetric(40))[-1]) < 0.1


def test_matrices_of_a_narrow_dtype():
    narrow = symmetric(40).astype(np.float16)
    values = linalg.lobpcg_standard(narrow, START)[0]
    other = jax.experimental.sparse.linalg.lobpcg_standard(jax.numpy.array(narrow), START)[0]
    np.testing.assert_allclose(values, other, rtol=40 * np.finfo(np.float32).eps)


ERRORS = [
    (lambda: linalg.spsolve(np.ones(2), [0, 1], [0, 1, 2], np.ones((2, 1))), ValueError, "must be vectors"),
    (lambda: linalg.spsolve(np.ones(2), [0, 1], [0, 1, 2], np.ones(3)), ValueError, "one entry more than b"),
    (lambda: linalg.spsolve(np.ones(2), [0, 1], [0, 1, 2], np.ones(2, int)), ValueError, "one inexact dtype"),
    (lambda: linalg.spsolve(np.ones(2), [0.0, 1], [0, 1, 2], np.ones(2)), TypeError, "must be integers"),
    (lambda: linalg.spsolve(np.ones(2), [0, 1], [0, 1, 2], np.ones(2), reorder=9), ValueError, "reorder must be one"),
    (lambda: linalg.lobpcg_standard(symmetric(40), START[:, :0]), ValueError, "between 1 and 7 columns"),
    (lambda: linalg.lobpcg_standard(symmetric(15), START[:15]), ValueError, "between 1 and 2 columns"),
    (lambda: linalg.lobpcg_standard(symmetric(39), START), ValueError, "must have shape"),
    (lambda: linalg.lobpcg_standard(lambda x: (2 * x).astype("float16"), START), ValueError, "must have one dtype"),
    (lambda: linalg.lobpcg_standard(lambda x: x[:5], START), ValueError, "A X the shape of X"),
    (lambda: linalg.lobpcg_standard(3, START), TypeError, "must be a matrix or a function"),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors(function, kind, message):
    with pytest.raises(kind, match=message):
        function()
