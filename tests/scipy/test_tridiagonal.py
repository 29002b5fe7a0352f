"""Eigenvalues and eigenvectors of tridiagonal matrices: what they satisfy, and jax's values."""

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same_type
from xtrace.scipy.linalg import eigh_tridiagonal

EPS = 2.0**-23


def _matrix(d, e):
    return np.diag(d) + np.diag(e, 1) + np.diag(np.conj(e), -1)


def _random(seed, size=6, dtype=np.float32):
    generator = np.random.default_rng(seed)
    return generator.normal(size=size).astype(dtype), generator.normal(size=size - 1).astype(dtype)


def _check(d, e, values, vectors):
    matrix, values = _matrix(d, e).astype(np.complex128), np.asarray(values, float)
    size, count = np.abs(matrix).sum(0).max(), len(values)
    # Bisection and each row of a product round some ten times, in units of the matrix's norm.
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[:count], rtol=0, atol=16 * EPS * size)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, rtol=0, atol=16 * EPS * size)
    np.testing.assert_allclose(np.conj(vectors).T @ vectors, np.eye(count), rtol=0, atol=16 * EPS)


@pytest.mark.slow
def test_values_and_types_are_those_of_jax():
    d, e = _random(0)
    found, theirs = eigh_tridiagonal(d, e), jax.scipy.linalg.eigh_tridiagonal(d, e)
    for one, other in zip(found, theirs, strict=True):
        assert_same_type(one, other)
    size = np.abs(_matrix(d, e)).sum(0).max()
    np.testing.assert_allclose(found[0], theirs[0], rtol=0, atol=16 * EPS * size)
    _check(d, e, *found)
    some = {"select": "i", "select_range": (1, 3), "eigvals_only": True}
    chosen = xtrace.jit(lambda d, e: eigh_tridiagonal(d, e, **some))(d, e)
    assert_same_type(chosen, jax.scipy.linalg.eigh_tridiagonal(d, e, **some))
    np.testing.assert_allclose(chosen, found[0][1:4], rtol=0, atol=16 * EPS * size)
    rough = eigh_tridiagonal(d, e, eigvals_only=True, tol=0.1)
    np.testing.assert_allclose(rough, found[0], rtol=0, atol=0.1)


@pytest.mark.slow
def test_what_makes_methods_fail():
    d, e = _random(1)
    wilkinson = np.abs(np.arange(-3, 3)).astype(np.float32)
    program = xtrace.jit(eigh_tridiagonal)
    for a, b in (
        (0 * d, 0 * e), (d * 1e30, e * 1e30), (d, 0 * e), (0 * d + 1, 0 * e), (wilkinson, 0 * e - 1),
        (wilkinson, np.array([1, 0, 1, 0, 1], np.float32)),
    ):
        _check(a, b, *program(a, b))
    assert np.isnan(program(d * np.nan, e)[0]).all()
    values, vectors = eigh_tridiagonal(d[:1], e[:0])
    np.testing.assert_allclose(values, d[:1], rtol=4 * EPS)
    assert vectors.tolist() == [[1.0]]
    assert eigh_tridiagonal(d[:0], e[:0], eigvals_only=True).shape == (0,)


@pytest.mark.slow
def test_complex_matrices():
    d, e = _random(2)
    turned = (e * np.exp(1j * np.arange(5))).astype(np.complex64)
    values, vectors = eigh_tridiagonal(d.astype(np.complex64), turned, select="i", select_range=(0, 3))
    assert (values.dtype, vectors.dtype) == (np.float32, np.complex64)
    _check(d, turned, values, vectors)
    np.testing.assert_allclose(values, eigh_tridiagonal(d, e, eigvals_only=True)[:4], rtol=0, atol=64 * EPS)


@pytest.mark.slow
def test_derivatives_and_batches():
    with xtrace.enable_x64(True):
        (d, e), (dd, de) = _random(3, 5, np.float64), _random(4, 5, np.float64)

        def whole(t):
            values, vectors = eigh_tridiagonal(d + t * dd, e + t * de)
            # Without the signs, which mean nothing.
            return values, vectors * vectors[0]

        program = xtrace.jit(lambda t: xtrace.jvp(whole, (t,), (xtrace.numpy.ones_like(t),)))
        step = 2.0**-13
        exact, ahead, behind = program(0.0)[1], program(step)[0], program(-step)[0]
        for found, one, other in zip(exact, ahead, behind, strict=True):
            # The third derivatives are below 1e3 for these gaps.
            np.testing.assert_allclose(found, (one - other) / (2 * step), rtol=0, atol=1e3 * step**2)
        slopes = xtrace.grad(lambda e: eigh_tridiagonal(d, e, eigvals_only=True)[0])(e)
        vector = np.linalg.eigh(_matrix(d, e))[1][:, 0]
        np.testing.assert_allclose(slopes, 2 * vector[1:] * vector[:-1], rtol=0, atol=1e-12)
        stacked = xtrace.vmap(lambda d: eigh_tridiagonal(d, e)[0])(np.stack([d, dd]))
        np.testing.assert_allclose(stacked[1], np.linalg.eigvalsh(_matrix(dd, e)), rtol=0, atol=1e-12)


def test_mistakes():
    d, e = _random(5)
    for options, error, words in (
        ({"select": "v", "select_range": (0, 1)}, NotImplementedError, "select='v'.* is not implemented"),
        ({"select": "x"}, ValueError, "select must have a value in .*'a', 'i', 'v'.*got 'x'"),
        ({"select": "i"}, ValueError, "select_range must be specified"),
        ({"select": "i", "select_range": (3, 1)}, ValueError, "empty index range"),
        ({"select": "i", "select_range": (3, 6)}, ValueError, "out of bounds for 6 eigenvalues"),
        ({"select": "i", "select_range": (0, 1, 2)}, ValueError, r"must be \(first, last\)"),
    ):
        with pytest.raises(error, match=words):
            eigh_tridiagonal(d, e, **options)
    with pytest.raises(ValueError, match=r"n and n - 1 elements, got shapes \(6,\) and \(4,\)"):
        eigh_tridiagonal(d, e[:4])
    with pytest.raises(TypeError, match="must have same dtype, got float16 and float32"):
        eigh_tridiagonal(d.astype(np.float16), e)
    with pytest.raises(TypeError, match="supported by eigh_tridiagonal, got int32"):
        eigh_tridiagonal(d.astype(np.int32), e.astype(np.int32))
