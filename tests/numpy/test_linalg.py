"""xtrace.numpy.linalg, cross and kron against jax.numpy."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.matrices import complex_, real, well
from tests.support.operands import assert_same_type, epsilon, ours, theirs
from tests.support.reference import IS_REFERENCE

ONE, TWO, THREE, FOUR = (well(n, n) for n in (1, 2, 3, 4))
BATCH, TALL, COMPLEX = well(2, 4, 4), real(4, 3), complex_(4, 4) + 3 * np.eye(4, dtype=np.complex64)
HERMITIAN = np.asarray(FOUR + FOUR.T)
POSITIVE = np.asarray(FOUR @ FOUR.T)
INTEGERS = np.array([[3, -1, 0], [1, 4, 2], [0, 1, 5]], np.int32)
ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


def leaves(tree):
    return [x for part in tree for x in leaves(part)] if isinstance(tree, (list, tuple)) else [tree]


def assert_near(got, expected, rounding=64, where=""):
    """Assert equal types, and values within `rounding` spacings of the largest element (or of 1)."""
    got, expected = leaves(got), leaves(expected)
    assert len(got) == len(expected), where
    for one, other in zip(got, expected, strict=True):
        assert_same_type(one, other, where)
        one, other = np.asarray(one), np.asarray(other)
        size = float(np.abs(other[np.isfinite(other)]).max(initial=1))
        if one.dtype == np.float16:
            one, other = one.astype(np.float32), other.astype(np.float32)
            size *= epsilon(np.float16) / epsilon(np.float32)
        np.testing.assert_allclose(one, other, rtol=0, atol=rounding * epsilon(one.dtype) * size, err_msg=where)


def both(function, *operands, rounding=64, jitted=False):
    """Assert that ``function(numpy, *operands)`` is the same in both packages, eagerly or under jit."""
    expected = function(jax.numpy, *[theirs(x) for x in operands])
    mine = [ours(x) for x in operands]
    got = function(jnp, *mine)
    assert getattr(type(got), "_fields", None) == getattr(type(expected), "_fields", None)
    assert_near(got, expected, rounding)
    if jitted:
        assert_near(xtrace.jit(lambda *x: function(jnp, *x))(*mine), expected, rounding)


UNARY = [
    "cond", "det", "diagonal", "eigvals", "inv", "matrix_norm", "matrix_rank", "matrix_transpose", "norm", "pinv",
    "slogdet", "svdvals", "trace", "vector_norm",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", UNARY)
def test_of_one_matrix(name):
    for x in (ONE, TWO, THREE, FOUR, BATCH, COMPLEX, INTEGERS, INTEGERS > 0, INTEGERS.astype(np.int8)):
        both(lambda np_, x: getattr(np_.linalg, name)(x), x, rounding=256, jitted=x is BATCH)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_of_hermitian_matrices(name):
    for x in (POSITIVE, np.stack([POSITIVE, POSITIVE + np.eye(4, dtype=np.float32)]), INTEGERS @ INTEGERS.T,
              COMPLEX @ COMPLEX.conj().T):
        both(lambda np_, x: getattr(np_.linalg, name)(x), x)


def test_triangles():
    upper = np.triu(POSITIVE) - np.tril(np.ones_like(POSITIVE), -1)
    for triangle in ("U", "L", None):
        both(lambda np_, x, t=triangle: np_.linalg.eigh(x, t), POSITIVE)
        both(lambda np_, x, t=triangle: np_.linalg.eigh(x, t, symmetrize_input=False), upper)
        both(lambda np_, x, t=triangle: np_.linalg.eigvalsh(x, t), POSITIVE)
    both(lambda np_, x: np_.linalg.cholesky(x, upper=True), COMPLEX @ COMPLEX.conj().T)
    both(lambda np_, x: np_.linalg.cholesky(x, symmetrize_input=False), upper.T)
    assert np.isnan(np.asarray(jnp.linalg.cholesky(-POSITIVE))[0, 0])


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("x", [TALL, TALL.T.copy(), COMPLEX, BATCH, INTEGERS], ids=str)
def test_factorisations(x):
    for mode in ("reduced", "complete", "r", "raw", "full"):
        both(lambda np_, x, m=mode: np_.linalg.qr(x, m), x)
    for full, vectors in itertools.product((True, False), (True, False)):
        both(lambda np_, x, f=full, v=vectors: np_.linalg.svd(x, f, v), x)
    both(lambda np_, x: np_.linalg.pinv(x), x)
    both(lambda np_, x: np_.linalg.pinv(x, rtol=0.3), x)


def test_hermitian_forms():
    for x in (HERMITIAN, -POSITIVE, COMPLEX + COMPLEX.conj().T):
        both(lambda np_, x: np_.linalg.svd(x, hermitian=True), x)
        both(lambda np_, x: np_.linalg.svd(x, compute_uv=False, hermitian=True), x)
        both(lambda np_, x: np_.linalg.pinv(x, hermitian=True), x, rounding=256)
        both(lambda np_, x: np_.linalg.matrix_rank(x, hermitian=True), x)
    # jax gives zeros for the vectors of eigenvalue 0.
    u, s, vh = jnp.linalg.svd(np.diag(np.array([0, -2, 1], np.float32)), hermitian=True)
    np.testing.assert_array_equal(u @ np.diag(s) @ vh, np.diag([0, -2, 1]))
    np.testing.assert_array_equal(np.abs(vh @ vh.T), np.eye(3))


def test_subset():
    u, s, vh = jnp.linalg.svd(TALL, full_matrices=False)
    part = jnp.linalg.svd(TALL, full_matrices=False, subset_by_index=(0, 2))
    assert_near(part, (u[:, :2], s[:2], vh[:2]), 8)


@pytest.mark.parametrize("method", ["lu", "qr", None])
def test_slogdet_methods(method):
    for x in (ONE, FOUR, BATCH, -BATCH[:, ::-1], np.zeros((4, 4), np.float32), np.zeros((0, 0), np.float32)):
        both(lambda np_, x: np_.linalg.slogdet(x, method=method), x)


def test_determinants_of_singular_matrices():
    both(lambda np_, x: np_.linalg.slogdet(x), np.zeros((2, 4, 4), np.complex64))
    both(lambda np_, x: np_.linalg.det(x), np.zeros((4, 4), np.float32))
    both(lambda np_, x: np_.linalg.slogdet(x), np.full((4, 4), np.nan, np.float32))


def cofactors(x):
    rows = range(x.shape[0])
    minors = [[np.delete(np.delete(x.astype(np.float64), i, 0), j, 1) for j in rows] for i in rows]
    return np.array([[(-1) ** (i + j) * np.linalg.det(minors[i][j]) for j in rows] for i in rows])


SINGULAR = {
    "zero": np.zeros((4, 4)),
    "nilpotent": np.diag(np.ones(3), 1),
    "first": np.diag([0, 1, 2, 3]),
    "last": np.diag([1, 1, 2, 0]),
    "rank 2": np.diag([0, 1, 0, 3]),
    "two pivots": [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 0, 3]],
    "rank 3": [[1, 2, 3, 4], [2, 4, 6, 8], [1, 0, 1, 0], [0, 1, 0, 2]],
    "regular": FOUR,
}


def test_derivatives_of_determinants_are_the_cofactors():
    # jax gives zeros for "first" and "two pivots".
    gradient = xtrace.jit(xtrace.vmap(xtrace.grad(jnp.linalg.det)))
    stacked = np.stack([np.asarray(x, np.float32) for x in SINGULAR.values()])
    for name, x, found in zip(SINGULAR, stacked, gradient(stacked), strict=True):
        expected = cofactors(x)
        size = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=64 * epsilon(np.float32) * size, err_msg=name)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_norms_of_matrices(order):
    for x in (TALL, COMPLEX, INTEGERS):
        both(lambda np_, x: np_.linalg.norm(x, order, (0, 1)), x)
    cube = real(2, 3, 4)
    for axes, keep in itertools.product(((0, 2), (2, 0), (-1, 1)), (True, False)):
        both(lambda np_, x, a=axes, k=keep: np_.linalg.norm(x, order, a, k), cube)
    both(lambda np_, x: np_.linalg.matrix_norm(x, ord=order, keepdims=True), cube)
    for x in (FOUR, BATCH, np.zeros((3, 3), np.float32)):
        both(lambda np_, x: np_.linalg.cond(x, order), x, rounding=1024)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf, np.nan], ids=str)
def test_norms_of_vectors(order):
    for x in (real(5), complex_(5), np.zeros(3, np.float32), np.arange(4, dtype=np.int8), real(3).astype(np.float16)):
        both(lambda np_, x: np_.linalg.norm(x, order), x)
    for axes, keep in itertools.product((0, -1, (0, 2), None), (True, False)):
        both(lambda np_, x, a=axes, k=keep: np_.linalg.vector_norm(x, axis=a, keepdims=k, ord=order), real(2, 3, 2))
    # jax leaves integers be here, and fails for some orders.
    assert jnp.linalg.vector_norm(INTEGERS, ord=order).dtype == np.float32
    if order not in (-np.inf,):
        both(lambda np_, x: np_.linalg.norm(x, order), np.zeros((0,), np.float32))


def test_ranks():
    x = np.stack([np.diag(np.array([3, 2, 1], np.float32)), np.diag(np.array([3, 1e-9, 0], np.float32))])
    both(lambda np_, x: np_.linalg.matrix_rank(x), x)
    both(lambda np_, x: np_.linalg.matrix_rank(x, tol=1.5), x)
    both(lambda np_, x, t: np_.linalg.matrix_rank(x, t), x, np.array([2.5, 5], np.float32))
    for vector in (real(3), np.zeros(3, np.float32), np.float32(2)):
        both(lambda np_, x: np_.linalg.matrix_rank(x), vector)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (FOUR, real(4)), (FOUR, real(4, 2)), (FOUR, real(3, 4, 2)), (BATCH, real(4, 2)), (BATCH, real(2, 4, 2)),
        (BATCH[None], real(3, 1, 4, 2)), (BATCH[:1], real(3, 4, 2)), (BATCH, real(4)), (INTEGERS, INTEGERS[0]),
        (COMPLEX, real(4)), (np.zeros((0, 0), np.float32), np.zeros((0, 2), np.float32)),
        (FOUR, np.zeros((0, 4, 1), np.float32)),
    ],
    ids=lambda x: f"{x.dtype}{x.shape}",
)
def test_solve(a, b):
    both(lambda np_, a, b: np_.linalg.solve(a, b), a, b, jitted=True)


def test_least_squares():
    for a, b in ((TALL, real(4)), (TALL, real(4, 2)), (TALL.T.copy(), real(3)), (INTEGERS, INTEGERS[0]),
                 (TALL, complex_(4, 2)), (np.zeros((0, 3), np.float32), np.zeros(0, np.float32)),
                 (np.zeros((3, 0), np.float32), real(3))):
        both(lambda np_, a, b: np_.linalg.lstsq(a, b), a, b)
        both(lambda np_, a, b: np_.linalg.lstsq(a, b, numpy_resid=True), a, b)
    for bound in (-1, 0.5):
        both(lambda np_, a, b, r=bound: np_.linalg.lstsq(a, b, r), TALL, real(4))
    with pytest.raises(xtrace.errors.TracerBoolConversionError):
        xtrace.jit(lambda a, b: jnp.linalg.lstsq(a, b, numpy_resid=True))(TALL, real(4))


def test_tensors():
    both(lambda np_, a: np_.linalg.tensorinv(a), well(6, 6).reshape(2, 3, 6))
    both(lambda np_, a: np_.linalg.tensorinv(a, ind=1), well(6, 6).reshape(6, 2, 3))
    both(lambda np_, a, b: np_.linalg.tensorsolve(a, b), well(6, 6).reshape(2, 3, 6), real(2, 3))
    both(lambda np_, a, b: np_.linalg.tensorsolve(a, b, axes=(0, 2)), real(3, 6, 2), real(6), rounding=512)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("power", [0, 1, 2, 3, 5, 6, 8, -1, -3])
def test_powers(power):
    for x in (FOUR, BATCH, INTEGERS):
        both(lambda np_, x: np_.linalg.matrix_power(x, power), x, rounding=256)


def test_chains():
    v, m, tall = real(3), THREE, TALL
    for chain in ((v, v), (v, m, v), (m, tall.T.copy(), tall), (tall, m, v), (INTEGERS, INTEGERS), (COMPLEX, tall),
                  (real(5, 2), real(2, 9), real(9, 1), real(1, 4))):
        both(lambda np_, *x: np_.linalg.multi_dot(x), *chain)
    traced = str(xtrace.make_jaxpr(lambda *x: jnp.linalg.multi_dot(x))(real(9, 1), real(1, 9), real(9, 1)))
    assert "[9,9]" not in traced


def test_products():
    x, y = real(4, 3), real(4, 3, seed=1)
    for function in (
        lambda np_, x, y: np_.linalg.cross(x, y), lambda np_, x, y: np_.linalg.cross(x.T, y.T, axis=0),
        lambda np_, x, y: np_.linalg.outer(x[0], y[1]), lambda np_, x, y: np_.linalg.vecdot(x, y, axis=0),
        lambda np_, x, y: np_.linalg.matmul(x, y.T), lambda np_, x, y: np_.linalg.tensordot(x, y, axes=2),
        lambda np_, x, y: np_.linalg.trace(x, offset=1), lambda np_, x, y: np_.linalg.diagonal(x, offset=-1),
        lambda np_, x, y: np_.cross(x.T, y.T, axis=(0,)),
        lambda np_, x, y: np_.cross(x.T, y.T, axisa=0, axisb=0, axisc=0), lambda np_, x, y: np_.cross(x, y[0]),
        lambda np_, x, y: np_.kron(x, y[0]), lambda np_, x, y: np_.kron(2, y), lambda np_, x, y: np_.kron(x[0, 0], y),
    ):
        both(function, x, y, jitted=True)
    both(lambda np_, x, y: np_.cross(x, y), INTEGERS, COMPLEX[:3, :3])
    both(lambda np_, x, y: np_.kron(x, y), INTEGERS > 1, INTEGERS)


@pytest.mark.skipif(not IS_REFERENCE, reason="newer jax refuses vectors of 2 elements")
def test_cross_products_of_vectors_of_2_elements():
    x, y = real(4, 3), real(4, 3, seed=1)
    both(lambda np_, x, y: np_.cross(x[:, :2], y), x, y, jitted=True)
    both(lambda np_, x, y: np_.cross(x[:, :2], y[:, :2]), x, y, jitted=True)
    both(lambda np_: np_.kron(2, 3.0))


@settings(max_examples=25)
@given(
    left=st.lists(st.integers(0, 3), max_size=3), right=st.lists(st.integers(0, 3), max_size=3),
    dtypes=st.sampled_from([(np.float32, np.float32), (np.int8, np.float16), (np.int32, np.complex64)]),
)
def test_kron_of_any_shapes(left, right, dtypes):
    operands = [np.asarray(4 * real(*shape)).astype(d) for shape, d in zip((left, right), dtypes, strict=True)]
    both(lambda np_, x, y: np_.kron(x, y), *operands)


@settings(max_examples=25)
@given(
    batch=st.lists(st.integers(0, 2), max_size=2), rows=st.integers(1, 4), columns=st.integers(1, 4),
    name=st.sampled_from(["qr", "svdvals", "pinv", "matrix_norm", "diagonal", "trace", "matrix_transpose"]),
)
def test_any_matrices(batch, rows, columns, name):
    both(lambda np_, x: getattr(np_.linalg, name)(x), well(*batch, rows, columns))


@pytest.mark.parametrize("name", ["det", "slogdet", "inv", "cholesky", "eigvals", "qr", "svd", "pinv", "norm"])
def test_empty_matrices(name):
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        both(lambda np_, x: getattr(np_.linalg, name)(x), np.zeros(shape, np.float32))


DERIVATIVES = {
    "det": (lambda la, x: la.det(x), FOUR),
    "det of batch": (lambda la, x: la.det(x), BATCH),
    "complex det": (lambda la, x: la.det(x), COMPLEX),
    "det of 3": (lambda la, x: la.det(x), THREE),
    "slogdet": (lambda la, x: tuple(la.slogdet(x)), BATCH),
    "complex slogdet": (lambda la, x: tuple(la.slogdet(x)), COMPLEX),
    "slogdet by qr": (lambda la, x: tuple(la.slogdet(x, method="qr")), FOUR),
    "inv": (lambda la, x: la.inv(x), BATCH),
    "complex inv": (lambda la, x: la.inv(x), COMPLEX),
    "pinv": (lambda la, x: la.pinv(x), well(5, 3)),
    "complex pinv": (lambda la, x: la.pinv(x), COMPLEX[:, :3]),
    "hermitian pinv": (lambda la, x: la.pinv(x + x.T, hermitian=True), FOUR),
    "solve": (lambda la, a, b: la.solve(a, b), FOUR, real(4)),
    "solve of batch": (lambda la, a, b: la.solve(a, b), BATCH, real(4, 2)),
    "solve of one": (lambda la, a, b: la.solve(a, b), FOUR, real(2, 4, 2)),
    "complex solve": (lambda la, a, b: la.solve(a, b), COMPLEX, complex_(4, 2)),
    "lstsq": (lambda la, a, b: la.lstsq(a, b)[0], well(5, 3), real(5)),
    "residuals": (lambda la, a, b: la.lstsq(a, b)[1], well(5, 3), real(5, 2)),
    "cond": (lambda la, x: (la.cond(x), la.cond(x, 1)), FOUR),
    "norms": (lambda la, x: tuple([la.norm(x, o) for o in ORDERS]), FOUR),
    "norms of vectors": (lambda la, x: tuple([la.norm(x, o, 0) for o in (1, 2, 3, 0.5, -1, np.inf)]), FOUR),
    "norm of nothing": (lambda la, x: (la.norm(x), la.norm(x, 3)), np.zeros(3, np.float32)),
    "power": (lambda la, x: la.matrix_power(x, -3), FOUR),
    "tensorinv": (lambda la, x: la.tensorinv(x, 1), well(6, 6).reshape(6, 2, 3)),
    "cholesky": (lambda la, x: la.cholesky(x, upper=True), POSITIVE),
    "hermitian svd": (lambda la, x: tuple(la.svd(x, hermitian=True)), HERMITIAN),
    "eigh": (lambda la, x: la.eigvalsh(x), POSITIVE),
    "eigvals": (lambda la, x: la.eigvals(x), np.diag(np.arange(4, dtype=np.float32)) + real(4, 4) / 9),
}


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("case", DERIVATIVES.values(), ids=DERIVATIVES)
def test_derivatives(case):
    function, *operands = case

    def everything(api, linalg, *values):
        def call(*x):
            return function(linalg, *x)

        moved = [v * 0.5 + 0.25 for v in values]
        result, tangent = api.jvp(call, tuple(values), tuple(moved))
        pulled, pullback = api.vjp(call, *values)
        stacked = [v[None] * 0.5 + v[None] for v in values]
        return result, tangent, pullback(pulled), api.vmap(call)(*stacked)

    got = xtrace.jit(lambda *x: everything(xtrace, jnp.linalg, *x))(*operands)
    expected = jax.jit(lambda *x: everything(jax, jax.numpy.linalg, *x))(*operands)
    # The matrices' condition numbers are below ten, and derivatives of inverses have them squared.
    assert_near(got, expected, rounding=1024)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["det", "solve", "inv"])
def test_second_derivatives(name):
    def total(np_, x):
        found = np_.linalg.solve(x, x[0] * x[1]) if name == "solve" else getattr(np_.linalg, name)(x)
        return np_.sum(np_.sin(found / 9))

    got = xtrace.jit(xtrace.hessian(lambda x: total(jnp, x)))(FOUR)
    expected = jax.jit(jax.hessian(lambda x: total(jax.numpy, x)))(FOUR)
    assert_near(got, expected, rounding=1024)


def test_factors_are_used_again():
    """The gradient of `solve` factorises once, as its value does."""
    traced = str(xtrace.make_jaxpr(xtrace.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b))))(FOUR, real(4)))
    assert traced.count("= lu") == 1


FLAT = real(3)
ERRORS = [
    *[(lambda name=name: getattr(jnp.linalg, name)(TALL[0]), kind, rf"{name} must have shape .*got \(3,\)")
      for name in ("inv", "eigh", "cholesky", "svd", "qr") for kind in (np.linalg.LinAlgError, TypeError)],
    (lambda: jnp.linalg.det(TALL), ValueError, r"det must have shape \[..., n, n\], got \(4, 3\)"),
    (lambda: jnp.linalg.inv(FLAT), ValueError, r"inv .* got \(3,\)"),
    (lambda: jnp.linalg.cholesky([[1.0]]), TypeError, "cholesky requires ndarray"),
    (lambda: jnp.linalg.solve(FOUR, FLAT), ValueError, r"\(4, 4\), \(3,\)"),
    (lambda: jnp.linalg.solve(np.ones((2, 3, 3)), np.ones((2, 3))), ValueError, r"b\[..., None\]"),
    (lambda: jnp.linalg.solve(np.ones((2, 3, 3)), np.ones((4, 3, 3))), ValueError, r"\(2,\), \(4,\)"),
    (lambda: jnp.linalg.solve(FLAT, FLAT), ValueError, "solve"),
    (lambda: jnp.linalg.lstsq(TALL, FLAT), ValueError, r"leading.*\(4, 3\) and \(3,\)"),
    (lambda: jnp.linalg.lstsq(FOUR, np.ones((4, 1, 1))), TypeError, "lstsq"),
    (lambda: jnp.linalg.lstsq(FLAT, FLAT), ValueError, "lstsq"),
    (lambda: jnp.linalg.norm(FLAT, "fro"), ValueError, "norm: Invalid order 'fro' for vector norm"),
    (lambda: jnp.linalg.norm(FOUR, 3), ValueError, "norm: Invalid order 3.0 for matrix norm"),
    (lambda: jnp.linalg.norm(FLAT, [1]), ValueError, "Invalid order"),
    (lambda: jnp.linalg.norm(BATCH, 1), ValueError, "Improper number of axes"),
    (lambda: jnp.linalg.norm(BATCH, axis=5), ValueError, "norm: axis 5 is out of bounds"),
    (lambda: jnp.linalg.norm(BATCH, axis=(0, 0)), ValueError, "duplicate"),
    (lambda: jnp.linalg.norm(FLAT, axis="x"), TypeError, "norm"),
    (lambda: jnp.linalg.matrix_norm(FLAT), ValueError, "matrix_norm"),
    (lambda: jnp.linalg.vector_norm(FLAT, ord="nuc"), ValueError, "vector_norm: Invalid order"),
    (lambda: jnp.linalg.norm(np.zeros((0, 3)), -np.inf), ValueError, "no identity|empty|zero-size"),
    (lambda: jnp.linalg.cond(FLAT), ValueError, "at least 2D"),
    (lambda: jnp.linalg.cond(np.ones((0, 0))), ValueError, "must not be empty"),
    (lambda: jnp.linalg.cond(TALL, 1), ValueError, "must be square"),
    (lambda: jnp.linalg.cond(FOUR, "x"), ValueError, "Invalid order 'x'"),
    (lambda: jnp.linalg.matrix_rank(FOUR, 0.1, tol=0.1), ValueError, "only one of"),
    (lambda: jnp.linalg.matrix_rank(np.ones((0, 3))), ValueError, "empty"),
    (lambda: jnp.linalg.pinv(FOUR, 0.1, rcond=0.1), ValueError, "only one of"),
    (lambda: jnp.linalg.pinv(TALL, hermitian=True), ValueError, "pinv"),
    (lambda: jnp.linalg.qr(FOUR, "x"), ValueError, "mode 'x'"),
    (lambda: jnp.linalg.svd(TALL, subset_by_index=(0, 1)), ValueError, "full_matrices=False"),
    (lambda: jnp.linalg.svd(TALL, False, subset_by_index=(0, 9)), ValueError, r"\(0, 9\)"),
    (lambda: jnp.linalg.svd(FLAT), ValueError, "svd"),
    (lambda: jnp.linalg.eigh(FOUR, "l"), ValueError, "UPLO must be one of None, 'L', or 'U', got 'l'"),
    (lambda: jnp.linalg.eigvalsh(FOUR, "x"), ValueError, "eigvalsh: UPLO"),
    (lambda: jnp.linalg.slogdet(FOUR, method="x"), ValueError, "method 'x'"),
    (lambda: jnp.linalg.slogdet(COMPLEX, method="qr"), NotImplementedError, "complex"),
    (lambda: jnp.linalg.matrix_power(TALL, 2), TypeError, "square"),
    (lambda: jnp.linalg.matrix_power(FOUR, 1.5), TypeError, "integer, got 1.5"),
    (lambda: jnp.linalg.multi_dot([FLAT]), ValueError, "at least two"),
    (lambda: jnp.linalg.multi_dot([TALL, FLAT, FLAT]), ValueError, "two-dimensional"),
    (lambda: jnp.linalg.multi_dot([THREE, TALL]), ValueError, "must match"),
    (lambda: jnp.linalg.tensorinv(FOUR, 0), ValueError, "positive"),
    (lambda: jnp.linalg.tensorinv(np.ones((2, 3, 5))), ValueError, r"\(2, 3, 5\) with ind=2"),
    (lambda: jnp.linalg.tensorsolve(np.ones((2, 3, 6)), np.ones((3, 2))), ValueError, "leading axes"),
    (lambda: jnp.linalg.tensorsolve(np.ones((2, 3, 5)), np.ones((2, 3))), ValueError, "as many elements"),
    (lambda: jnp.linalg.tensorsolve(FOUR, FLAT, axes=(5,)), ValueError, "axis 5"),
    (lambda: jnp.linalg.outer(FOUR, FLAT), ValueError, "one-dimensional"),
    (lambda: jnp.linalg.cross(FOUR, FOUR), ValueError, "3-dimensional"),
    (lambda: jnp.linalg.trace(FLAT), ValueError, "trace"),
    (lambda: jnp.cross(FOUR, FOUR), ValueError, "3 elements"),
    (lambda: jnp.cross(np.ones((2, 3)), np.ones((3, 3))), ValueError, r"\(2,\), \(3,\)"),
    (lambda: jnp.cross(FLAT, np.float32(1)), ValueError, "axis -1"),
    (lambda: jnp.cross(np.ones(3, bool), np.ones(3, bool)), TypeError, "cross"),
    (lambda: jnp.kron(np.ones(3, bool), np.ones(3, bool)), TypeError, "kron"),
    (lambda: jnp.kron([1], FLAT), TypeError, "kron"),
    (lambda: jnp.linalg.det(FOUR.astype(np.float16)), NotImplementedError, "float16"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    call, error, words = ERRORS[number]
    with pytest.raises(error, match=words):
        call()


def test_64_bits():
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for name in ("det", "inv", "slogdet", "matrix_rank", "norm", "svdvals"):
            x = FOUR.astype(np.float64)
            assert_near(getattr(jnp.linalg, name)(x), getattr(jax.numpy.linalg, name)(x))
        assert_near(jnp.linalg.det(INTEGERS), jax.numpy.linalg.det(INTEGERS))
