"""Linear algebra in plain operations, as a TPU has it: run on the CPU, against LAPACK's results and definitions."""

import numpy as np
import pytest

import xtrace
from tests.ops.test_linalg import DTYPES, EITHER, matrices
from xtrace import lax
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.linalg import reflections, spectral, tridiagonal
from xtrace._src.xla.mlir import modules

# Loops take XLA a second to compile: each shape has one dtype, and all of them occur.
SHAPES = ((2, 5, 3), (3, 5), (4, 4), (2, 1, 2, 2), (1, 1))
CASES = list(zip(SHAPES, (*DTYPES, "float32"), strict=True))
NONE = no_rule("a form is emitted only")


def run(form, like, *operands, **parameters):
    """What a form, which is emitted in an operation's place, computes; its results have the types of `like`."""
    types = [ShapedArray(x.shape, x.dtype) for x in like]
    emit = lower_fun(lambda *x: flat(form(*x, **parameters)))
    rules = {"jvp": NONE, "transpose": NONE, "batch": NONE, "multiple_results": True, "memoised": False}
    primitive = Primitive(form.__name__, (), abstract=lambda *_: types, emit=emit, **rules)
    return [np.asarray(x) for x in xtrace.jit(lambda *x: primitive.bind(*x))(*operands)]


def flat(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


def close(found, expected, roundings):
    """Assert that results differ by so many roundings of the largest element of each."""
    for x, y in zip(found, map(np.asarray, expected), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if y.size and y.dtype.kind in "fc":
            assert np.abs(x - y).max() <= roundings * np.finfo(y.dtype).eps * np.abs(y).max()
        else:
            np.testing.assert_array_equal(x, y)


@pytest.fixture(autouse=True)
def double_precision():
    with xtrace.enable_x64():
        yield


@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_pivoted_qr(shape, dtype):
    x = matrices(dtype, shape)
    pivots = np.zeros((*shape[:-2], shape[-1]), np.int32)
    # The last column is to stay in front.
    pivots[..., -1] = shape[-1] > 2
    close(run(reflections.pivoted_qr, expected := lax.linalg.geqp3_p(x, pivots), x, pivots), expected, 64)


def test_pivoted_qr_of_dependent_columns_and_of_extreme_scales():
    x = matrices("float32", (4, 2))[:, [0, 1, 0]]
    for matrix in (x, x * np.float32(1e-30), x * np.float32(1e30), np.zeros_like(x)):
        pivots = np.zeros(3, np.int32)
        like = lax.linalg.geqp3_p(matrix, pivots)
        packed, order, taus = run(reflections.pivoted_qr, like, matrix, pivots)
        q = np.asarray(lax.linalg.householder_product(packed, taus))
        r = np.triu(packed)[:3]
        eps = np.finfo(np.float32).eps
        assert np.abs(q.T @ q - np.eye(3)).max() < 32 * eps
        assert np.abs(q @ r - matrix[:, order]).max() <= 32 * eps * np.abs(matrix).max()
        assert abs(r[2, 2]) <= 32 * eps * np.abs(matrix).max()


@pytest.mark.parametrize(("shape", "dtype"), [c for c in CASES if c[0][-2] >= c[0][-1]])
def test_apply_reflections(shape, dtype):
    a, taus = matrices(dtype, shape), matrices(dtype, (*shape[:-2], shape[-1]))
    c = matrices(dtype, (*shape[:-2], shape[-2], shape[-2]))
    every = [{"left": left, "transpose": transpose} for left in EITHER for transpose in EITHER]
    expected = [lax.linalg.ormqr(a, taus, c, **options) for options in every]

    def forms(*operands):
        return [reflections.apply_reflections(*operands, **options) for options in every]

    # These reflections are no unitary ones: each may multiply what there is.
    close(run(forms, expected, a, taus, c), expected, 256)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "dtype"), [c for c in CASES if c[0][-2] == c[0][-1]])
def test_reductions(shape, dtype):
    x = matrices(dtype, shape)
    close(run(reflections.hessenberg_form, expected := lax.linalg.hessenberg(x), x), expected, 64)
    for lower in EITHER:
        # Only one triangle, and of its diagonal the real part, is read.
        expected = lax.linalg.tridiagonal(x, lower=lower)
        found = run(reflections.tridiagonal_form, expected, x, lower=lower)
        triangle = (np.tril if lower else np.triu)(np.ones(shape[-2:]))
        packed = [np.asarray(y) * triangle.astype(dtype) for y in (found[0], expected[0])]
        close([packed[0], *found[1:]], [packed[1], *expected[1:]], 64)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4, 2), "float32"), ((2, 7, 1), "complex128"), ((1, 2), "float64"), ((0, 2), "float32"), ((2, 3, 0), "float32")],
)
def test_elimination(shape, dtype):
    diagonals = [matrices(dtype, shape[:-1], seed) for seed in range(3)]
    b = matrices(dtype, shape, 3)
    a = sum(np.eye(shape[-2], k=k, dtype=dtype) * x[..., None] for k, x in zip((-1, 0, 1), diagonals, strict=True))
    for perturbed in EITHER:
        (x,) = run(tridiagonal.solve_by_elimination, [b], *diagonals, b, perturb_singular=perturbed)
        if x.size:
            # Backward stable, unlike elimination without exchanges.
            residual = np.abs(a @ x - b).max()
            scale = np.abs(a).max() * np.abs(x).max() + np.abs(b).max()
            assert residual <= 32 * np.finfo(dtype).eps * scale


def test_elimination_of_singular_matrices():
    one, b = np.ones((2, 2)), np.ones((2, 2, 1))
    d = np.array([[1.0, 1.0], [3.0, 2.0]])
    (x,) = run(tridiagonal.solve_by_elimination, [b], one, d, one, b, perturb_singular=False)
    assert np.isnan(x[0]).all()
    np.testing.assert_allclose(x[1, :, 0], [0.2, 0.4], rtol=1e-15)
    (x,) = run(tridiagonal.solve_by_elimination, [b], one, d, one, b * [[1], [2]], perturb_singular=True)
    assert np.isfinite(x).all() and np.abs(x[0]).min() > 1e14


MATRICES = {
    "tall": matrices("complex64", (2, 5, 3)),
    "wide": matrices("float64", (3, 5)),
    "square": matrices("complex128", (2, 4, 4)),
    "one element": matrices("complex64", (1, 1)),
    "zero": np.zeros((4, 2), "float32"),
    "of rank 1": matrices("float32", (5, 1)) @ matrices("float32", (1, 4)),
    "badly conditioned": matrices("float32", (6, 6)) * np.logspace(0, -20, 6, dtype="float32"),
    "with equal values": np.eye(4, dtype="float32"),
    "small": matrices("float32", (4, 3)) * np.float32(1e-25),
}


@pytest.mark.drawn(0.3)
@pytest.mark.slow
@pytest.mark.parametrize("name", MATRICES)
def test_singular_values(name):
    x = MATRICES[name]
    dtype, inner = x.dtype, min(x.shape[-2:])
    for full in EITHER if name in ("tall", "wide") else (False,):
        u, s, vh = lax.linalg.svd(x, full_matrices=full)
        values, left, right = run(spectral._polar_svd, [s, u, vh], x, full_matrices=full, compute_uv=True)
        roundings = 32 * np.finfo(dtype).eps
        largest = np.asarray(s).max()
        assert np.abs(values - np.asarray(s)).max() <= roundings * largest
        assert (np.diff(values) <= 0).all() and (values >= 0).all()
        rebuilt = (left[..., :inner] * values[..., None, :]) @ right[..., :inner, :]
        assert np.abs(rebuilt - x).max() <= roundings * largest
        for gram in (left.swapaxes(-1, -2).conj() @ left, right @ right.swapaxes(-1, -2).conj()):
            assert np.abs(gram - np.eye(gram.shape[-1])).max() <= roundings
    (alone,) = run(spectral._polar_svd, [s], x, full_matrices=True, compute_uv=False)
    assert np.abs(alone - values).max() <= roundings * largest


def real(x):
    return lax.real(x) if x.dtype.kind == "c" else x


X = np.ones((2, 3, 3), np.float32)
EVERY = {
    "cholesky": lambda x: lax.linalg.cholesky(x),
    "cholesky_update": lambda x: lax.linalg.cholesky_update(real(x), real(x)[..., 0]),
    "eig": lambda x: lax.linalg.eig(x),
    "eigh": lambda x: lax.linalg.eigh(x, subset_by_index=(0, 2)),
    "hessenberg": lambda x: lax.linalg.hessenberg(x),
    "householder_product": lambda x: lax.linalg.householder_product(x, x[..., 0]),
    "lu": lambda x: lax.linalg.lu(x),
    "qr": lambda x: lax.linalg.qr(x),
    "qr in order": lambda x: lax.linalg.qr(x, pivoting=True),
    "ormqr": lambda x: lax.linalg.ormqr(x, x[..., 0], x, transpose=True),
    "qdwh": lambda x: lax.linalg.qdwh(x.reshape(-1, 3)),
    "svd": lambda x: lax.linalg.svd(x),
    "svd of a wide one": lambda x: lax.linalg.svd(x[..., :2, :], algorithm=lax.linalg.SvdAlgorithm.POLAR),
    "singular values": lambda x: lax.linalg.svd(x[..., :2], compute_uv=False),
    "a part of the svd": lambda x: lax.linalg.svd(x, full_matrices=False, subset_by_index=(0, 2)),
    "symmetric_product": lambda x: lax.linalg.symmetric_product(real(x), real(x), beta=1.0),
    "triangular_solve": lambda x: lax.linalg.triangular_solve(x, x, transpose_a=True, conjugate_a=True),
    "tridiagonal": lambda x: lax.linalg.tridiagonal(x, lower=False),
    "tridiagonal_solve": lambda x: lax.linalg.tridiagonal_solve(*[x[..., 0]] * 3, x),
    "perturbed": lambda x: lax.linalg.tridiagonal_solve(*[real(x)[..., 0]] * 3, real(x), perturb_singular=True),
}
# The operations that a platform refuses, in test_linalg.test_what_a_platform_lacks.
REFUSED = {("eig", "tpu")}


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", EVERY)
def test_modules_for_other_platforms_are_valid(name, platform):
    if (name, platform) in REFUSED:
        with pytest.raises(NotImplementedError, match=platform):
            xtrace.jit(EVERY[name]).trace(X).lower(lowering_platforms=(platform,))
        return
    for x in (X, X[0].astype(np.complex64)):
        text = xtrace.jit(EVERY[name]).trace(x).lower(lowering_platforms=(platform,)).as_text()
        modules.parse(text)
