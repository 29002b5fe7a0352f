"""xtrace.scipy.linalg against jax.scipy.linalg."""

import jax
import jax.scipy.linalg
import numpy as np
import pytest

import xtrace
import xtrace.scipy.linalg as scl
from tests.support.matrices import complex_, real, well
from tests.support.operands import assert_same_type, epsilon, ours, theirs

POSITIVE = np.array([[4, 1.5, 0], [1, 3, 1], [0.3, 1, 2]], np.float32)
GENERAL = np.array([[1, 2, 0], [0, 3, 1], [1, 0, 2]], np.float32)
COMPLEX = complex_(3, 3) + 2 * np.eye(3, dtype=np.complex64)
VECTOR = np.array([1, 2, 3], np.float32)


def leaves(tree):
    return [x for part in tree for x in leaves(part)] if isinstance(tree, (list, tuple)) else [tree]


def both(call, *operands, rounding=64, jitted=False):
    """Assert that ``call(linalg, *operands)`` agrees in both packages, within spacings of the largest element."""
    expected = leaves(call(jax.scipy.linalg, *[theirs(x) for x in operands]))
    mine = [ours(x) for x in operands]
    results = [call(scl, *mine)]
    if jitted:
        results.append(xtrace.jit(lambda *x: call(scl, *x))(*mine))
    for got in map(leaves, results):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same_type(one, other)
            one, other = np.asarray(one), np.asarray(other)
            size = float(np.abs(other[np.isfinite(other)]).max(initial=1))
            np.testing.assert_allclose(one, other, rtol=0, atol=rounding * epsilon(one.dtype) * size)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", ["circulant", "companion", "fiedler", "fiedler_companion", "hankel", "toeplitz"])
def test_of_a_vector(name):
    for x in (VECTOR, np.array([1, 2, 4], np.int32), VECTOR * (1 + 1j), real(2, 3) + 2, real(6) + 2):
        both(lambda la, x: getattr(la, name)(x), x)


def test_of_two_vectors():
    for name in ("toeplitz", "hankel"):
        both(lambda la, c, r, n=name: getattr(la, n)(c, r), VECTOR, real(2), jitted=True)
        both(lambda la, c, r, n=name: getattr(la, n)(c, r), np.array([1, 2], np.int32), VECTOR)
        both(lambda la, c, r, n=name: getattr(la, n)(c, r), real(2, 3), real(2, 2))
    for mode in ("full", "same", "valid"):
        for n in (1, 2, 5):
            both(lambda la, a, n=n, m=mode: la.convolution_matrix(a, n, m), VECTOR)
    both(lambda la, f, s: la.leslie(f, s), VECTOR, real(2))
    both(lambda la, f, s: la.leslie(f, s), real(2, 3), real(2, 2))
    both(lambda la, *x: la.block_diag(*x), np.ones((1, 2), np.float32), np.array([3, 4], np.int32), np.int32(5))
    both(lambda la: la.block_diag())


def test_of_a_size():
    for n in (0, 1, 2, 3, 5):
        for name in ("dft", "hilbert", "invhilbert", "pascal", "invpascal"):
            # jax computes the integers with gamma functions.
            both(lambda la, f=name, n=n: getattr(la, f)(n), rounding=256)
    for kind in ("lower", "upper", "symmetric"):
        both(lambda la, k=kind: la.pascal(4, k), rounding=256)
        both(lambda la, k=kind: la.invpascal(4, k), rounding=256)
    for full in (True, False):
        both(lambda la, f=full: la.helmert(4, f))
    for dtype in (int, np.float32):
        both(lambda la, d=dtype: la.hadamard(8, d))
    for scale in ("sqrtn", "n"):
        both(lambda la, s=scale: la.dft(5, s))
    np.testing.assert_array_equal(scl.pascal(9).astype(int) @ scl.invpascal(9).astype(int), np.eye(9))


RIGHT = [VECTOR, real(3, 2), real(2, 3, 2)]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("a", [POSITIVE, np.stack([POSITIVE, POSITIVE + 1])], ids=["one", "batch"])
@pytest.mark.parametrize("b", RIGHT, ids=["vector", "matrix", "matrices"])
def test_systems(a, b):
    for lower in (True, False):
        both(lambda la, a, b, low=lower: la.cho_solve(la.cho_factor(a, low), b), a, b)
        both(lambda la, a, b, low=lower: la.solve_triangular(a, b, lower=low, unit_diagonal=low), a, b)
    for trans in (0, 1, 2):
        both(lambda la, a, b, t=trans: la.lu_solve(la.lu_factor(a), b, t), a, b)
        both(lambda la, a, b, t=trans: la.solve_triangular(a, b, t), a, b)


def test_solve():
    for assumed in ("gen", "sym", "her", "pos"):
        both(lambda la, a, b, s=assumed: la.solve(a, b, assume_a=s), POSITIVE, VECTOR, jitted=True)
    both(lambda la, a, b: la.solve(a, b, lower=True, assume_a="pos"), POSITIVE, VECTOR)
    both(lambda la, a, b: la.lu_solve(la.lu_factor(a), b, 1), COMPLEX, VECTOR)
    both(lambda la, a: (la.det(a), la.inv(a)), POSITIVE)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("x", [GENERAL, COMPLEX, GENERAL[:2], GENERAL[:, :2]], ids=["real", "complex", "wide", "tall"])
def test_factorisations(x):
    both(lambda la, x: (la.lu(x), la.lu(x, permute_l=True), la.lu_factor(x)), x)
    for mode in ("full", "r", "economic"):
        for pivoting in (True, False):
            both(lambda la, x, m=mode, p=pivoting: la.qr(x, mode=m, pivoting=p), x)
    both(lambda la, x: la.svd(x, False, lapack_driver="gesvd"), x)
    both(lambda la, x: la.svd(x, compute_uv=False), x)
    both(lambda la, x: (la.polar(x, method="svd"), la.polar(x, "left", method="svd")), x)
    side = "right" if x.shape[0] >= x.shape[1] else "left"
    both(lambda la, x: la.polar(x, side), x, rounding=256)


def test_products_with_q():
    for operands, arguments in (((GENERAL, VECTOR), ("right",)), ((GENERAL, VECTOR), ("left",)),
                                ((GENERAL, POSITIVE), ("right", True)), ((COMPLEX, POSITIVE), ("left", False, True)),
                                ((GENERAL[:, :2], POSITIVE), ("right",))):
        both(lambda la, a, c, s=arguments: la.qr_multiply(a, c, *s), *operands)


def test_unitary_reductions():
    for lower in (True, False):
        both(lambda la, x, low=lower: la.eigh(x @ x.T, lower=low), POSITIVE)
        both(lambda la, x, low=lower: la.eigh(x @ x.T, lower=low, eigvals_only=True), POSITIVE)
    assert type(scl.schur(GENERAL)) is type(jax.scipy.linalg.schur(GENERAL))
    for output in ("real", "complex"):
        both(lambda la, x, o=output: la.schur(x, o), GENERAL)
    for x in (GENERAL, COMPLEX, real(2, 5, 5)):
        both(lambda la, x: la.hessenberg(x, calc_q=True), x)
    both(lambda la, x: la.hessenberg(x), GENERAL)


def test_complex_schur_form():
    """The order of eigenvalues within a block is free, so the form is checked by what it is."""
    for size in (1, 2, 5, 6):
        x = real(size, size, seed=3)
        form, vectors = map(np.asarray, scl.rsf2csf(*scl.schur(x)))
        np.testing.assert_array_equal(form, np.triu(form))
        tolerance = 64 * size * epsilon(np.float32)
        np.testing.assert_allclose(vectors @ form @ vectors.conj().T, x, rtol=0, atol=tolerance)
        np.testing.assert_allclose(vectors @ vectors.conj().T, np.eye(size), rtol=0, atol=tolerance)
    batch = np.stack([x, 2 * x])[:, None]
    forms, vectors = map(np.asarray, scl.rsf2csf(*scl.schur(batch)))
    np.testing.assert_array_equal(forms, np.triu(forms))
    np.testing.assert_allclose(vectors @ forms @ vectors.conj().swapaxes(2, 3), batch, rtol=0, atol=2 * tolerance)


def test_polar_decompositions_of_a_batch():
    for x in (real(2, 4, 3), real(2, 1, 3, 3)):
        both(lambda la, x: la.polar(x), x, rounding=64)
    both(lambda la, x: la.polar(x, side="left"), real(2, 3, 4), rounding=64)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("x", [POSITIVE, COMPLEX, np.zeros((3, 3), np.float32), 3 * real(2, 4, 4), 1e9 * GENERAL],
                         ids=["real", "complex", "zero", "batch", "too large"])
def test_exponential(x):
    # Every squaring doubles the error; there are at most four.
    both(lambda la, x: la.expm(x), x, rounding=1024, jitted=True)


def test_exponential_of_other_matrices():
    both(lambda la, x: la.expm(x, upper_triangular=True), np.triu(GENERAL))
    with xtrace.enable_x64(True), jax.enable_x64(True):
        both(lambda la, x: la.expm(x), POSITIVE.astype(np.float64), rounding=1024)
    both(lambda la, x, e: la.expm_frechet(x, e), GENERAL, POSITIVE, rounding=512)
    both(lambda la, x, e: la.expm_frechet(x, e, compute_expm=False), GENERAL, POSITIVE, rounding=512)


@pytest.mark.slow
def test_gradient_of_exponential():
    got = xtrace.jit(xtrace.grad(lambda x: xtrace.numpy.sum(xtrace.numpy.sin(scl.expm(x)))))(GENERAL / 3)
    expected = jax.jit(jax.grad(lambda x: jax.numpy.sum(jax.numpy.sin(jax.scipy.linalg.expm(x)))))(GENERAL / 3)
    np.testing.assert_allclose(got, expected, rtol=0, atol=512 * epsilon(np.float32))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("x", [POSITIVE, COMPLEX, well(5, 5)], ids=["positive", "complex", "well"])
def test_functions_of_matrices(x):
    root = np.asarray(scl.sqrtm(x))
    np.testing.assert_allclose(root @ root, x, rtol=0, atol=64 * epsilon(np.float32) * np.abs(x).max())
    both(lambda la, x: la.sqrtm(x), x, rounding=256)
    # sin A = (exp iA - exp -iA) / 2i.
    wave = [np.asarray(scl.expm(s * 1j * x.astype(np.complex64))) for s in (1, -1)]
    found, error = scl.funm(x, xtrace.numpy.sin, disp=False)
    np.testing.assert_allclose(found, (wave[0] - wave[1]) / 2j, rtol=0, atol=2e4 * epsilon(np.float32))
    np.testing.assert_array_equal(found, scl.funm(x, xtrace.numpy.sin))
    assert 0 < error < 1e-3


@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester(method):
    for a, b, c in ((POSITIVE, well(3, 3), real(3, 3)), (COMPLEX, POSITIVE[:2, :2], real(3, 2))):
        found = np.asarray(scl.solve_sylvester(a, b, c, method=method))
        assert found.dtype == np.result_type(a, b, c)
        np.testing.assert_allclose(a @ found + found @ b, c, rtol=0, atol=512 * epsilon(np.float32))
    several = [np.stack([v, 2 * v, -v]).reshape(3, 1, *v.shape) for v in (POSITIVE, well(3, 3), real(3, 3))]
    found = np.asarray(scl.solve_sylvester(*several, method=method))
    np.testing.assert_allclose(several[0] @ found + found @ several[1], several[2], rtol=0, atol=2e-4)
    assert np.isnan(np.asarray(scl.solve_sylvester(np.eye(2), -np.eye(2), np.ones((2, 2)), method=method))).all()


SMALL = [[0.5, 0.1], [0.2, 0.3]]
LISTS = {
    "cholesky": lambda la, a, b: la.cholesky(a), "cho_solve": lambda la, a, b: la.cho_solve((a, True), b),
    "lu": lambda la, a, b: la.lu(a), "lu_factor": lambda la, a, b: la.lu_factor(a), "qr": lambda la, a, b: la.qr(a),
    "lu_solve": lambda la, a, b: la.lu_solve((a, np.arange(3, dtype=np.int32)), b),
    "svd": lambda la, a, b: la.svd(a)[1],
    "solve": lambda la, a, b: la.solve(a, b, assume_a="pos"), "polar": lambda la, a, b: la.polar(a),
    "solve_triangular": lambda la, a, b: la.solve_triangular(a, b),
    "eigh": lambda la, a, b: la.eigh(a, eigvals_only=True),
    "expm_frechet": lambda la, a, b: la.expm_frechet(SMALL, SMALL),
    "funm": lambda la, a, b: la.funm(a, abs), "solve_sylvester": lambda la, a, b: la.solve_sylvester(a, a, a),
}
REFUSING_LISTS = ["det", "inv", "expm", "schur", "toeplitz", "hankel", "circulant", "hessenberg"]


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_matrices(name):
    both(lambda la: LISTS[name](la, POSITIVE.tolist(), tuple(VECTOR)), rounding=256)


@pytest.mark.parametrize("name", REFUSING_LISTS)
def test_lists_that_jax_refuses_are_refused(name):
    for package in (scl, jax.scipy.linalg):
        with pytest.raises(TypeError):
            getattr(package, name)(POSITIVE.tolist())


ERRORS = [
    (lambda: scl.expm(GENERAL.astype(np.float16)), TypeError, "expm: dtype float16 is not supported"),
    (lambda: scl.cholesky([[1.0, 2.0], [1.0]]), ValueError, "cholesky: a nested list must be rectangular"),
    (lambda: scl.det(GENERAL[:2]), ValueError, r"got \(2, 3\)"),
    (lambda: scl.svd(GENERAL, lapack_driver="x"), ValueError, "lapack_driver"),
    (lambda: scl.eigh(GENERAL, GENERAL), NotImplementedError, "b=None"),
    (lambda: scl.eigh(GENERAL, type=2), NotImplementedError, "type=1"),
    (lambda: scl.solve(GENERAL, VECTOR, assume_a="x"), ValueError, "assume_a.*'x'"),
    (lambda: scl.cho_solve((GENERAL, True), np.ones(2)), ValueError, r"cho_solve.*\(3, 3\) and \(2,\)"),
    (lambda: scl.lu_solve(scl.lu_factor(GENERAL), VECTOR, 3), ValueError, "0, 1, or 2, got 3"),
    (lambda: scl.solve_triangular(GENERAL, VECTOR, "x"), ValueError, "'trans' value 'x'"),
    (lambda: scl.solve_triangular(np.ones((2, 3, 3)), np.ones((4, 3, 1))), ValueError, "do not broadcast"),
    (lambda: scl.qr(GENERAL, mode="raw"), ValueError, "mode 'raw'"),
    (lambda: scl.qr_multiply(GENERAL, VECTOR, "x"), ValueError, "'right' or 'left'"),
    (lambda: scl.schur(GENERAL, "x"), ValueError, "output='x'"),
    (lambda: scl.rsf2csf(GENERAL, np.eye(2)), ValueError, "one size"),
    (lambda: scl.polar(GENERAL, "x"), ValueError, "side"),
    (lambda: scl.polar(GENERAL, method="x"), ValueError, "method"),
    (lambda: scl.polar(GENERAL[:2]), NotImplementedError, "method='svd'"),
    (lambda: scl.expm(VECTOR), ValueError, "expm"),
    (lambda: scl.expm_frechet(GENERAL, np.eye(2)), ValueError, "same shape"),
    (lambda: scl.expm_frechet(GENERAL, GENERAL, method="x"), ValueError, "SPS"),
    (lambda: scl.sqrtm(GENERAL, 2), NotImplementedError, "blocksize"),
    (lambda: scl.funm(np.ones((2, 2, 2)), abs), ValueError, "vmap"),
    (lambda: scl.solve_sylvester(GENERAL, GENERAL, np.ones((2, 3))), ValueError, r"\(2, 3\)"),
    (lambda: scl.solve_sylvester(GENERAL, GENERAL, GENERAL, method="x"), ValueError, "method"),
    (lambda: scl.toeplitz([1.0]), TypeError, "toeplitz"),
    (lambda: scl.toeplitz(np.ones((2, 3)), np.ones((3, 2))), ValueError, r"\(2, 3\), \(3, 2\)"),
    (lambda: scl.companion(VECTOR[:1]), ValueError, "at least 2"),
    (lambda: scl.convolution_matrix(VECTOR, 2, "x"), ValueError, "mode"),
    (lambda: scl.convolution_matrix(VECTOR, 0), ValueError, "positive"),
    (lambda: scl.convolution_matrix(VECTOR[:0], 2), ValueError, "at least one"),
    (lambda: scl.dft(3, "x"), ValueError, "scale"),
    (lambda: scl.dft(3, dtype=float), ValueError, "complex"),
    (lambda: scl.hadamard(3), ValueError, "power of 2"),
    (lambda: scl.hadamard(4, bool), TypeError, "booleans have no -1"),
    (lambda: scl.helmert(0), ValueError, "positive"),
    (lambda: scl.hilbert(2.5), TypeError, "integer"),
    (lambda: scl.pascal(3, "x"), ValueError, "kind"),
    (lambda: scl.leslie(VECTOR, VECTOR), ValueError, "Incorrect lengths"),
    (lambda: scl.block_diag(np.ones((1, 1, 1))), ValueError, "at most 2"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call, error, words = ERRORS[number]
    with pytest.raises(error, match=words):
        call()


def test_slopes_of_positive_systems_are_those_of_general_ones():
    """jax differentiates complex ones as if they were symmetric, so real ones are compared with it."""
    system, right = np.array([[3, 1j], [-1j, 2]], np.complex64), np.array([1, 2j], np.complex64)

    def slopes(library, assumption, system, right):
        return library.grad(
            lambda a, b: library.numpy.abs(library.scipy.linalg.solve(a, b, assume_a=assumption, lower=True)).sum(),
            (0, 1),
        )(system, right)

    def check(found, expected):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    real_system, real_right = np.abs(system), np.abs(right)
    check(slopes(xtrace, "pos", system, right), slopes(xtrace, "gen", system, right))
    check(slopes(xtrace, "pos", real_system, real_right), slopes(jax, "pos", real_system, real_right))
