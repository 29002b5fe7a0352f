"""Values and shapes of dense linear algebra against jax, in every dtype; failures, empty matrices, errors, text."""

import itertools
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, ours, theirs
from xtrace import lax
from xtrace._src.core import dtypes

ROOT = Path(__file__).parents[2]
DTYPES = ("float32", "float64", "complex64", "complex128")
# Single matrices, batches, one element, none, no matrix at all.
SQUARE = ((3, 3), (2, 3, 3), (2, 2, 2, 2), (1, 1), (0, 0), (0, 2, 2))
ANY = (*SQUARE, (4, 3), (2, 3, 5), (0, 3), (3, 0), (2, 0, 2))
# LAPACK's results come back as they are: all that may differ is how XLA fuses what is around them.
ROUNDING = 16


def matrices(dtype, shape, seed=0):
    random = np.random.default_rng(seed)
    found = random.normal(size=shape)
    if "complex" in dtype:
        found = found + 1j * random.normal(size=shape)
    return found.astype(dtype)


def definite(dtype, shape):
    x = matrices(dtype, shape)
    return (x @ x.swapaxes(-1, -2).conj() + np.eye(shape[-1])).astype(dtype)


def compare(function, *operands, rounding=ROUNDING):
    """Assert that `function(linalg, *arrays)`, a list of results, gives the same for both packages, each jitted."""
    with xtrace.enable_x64(), jax.enable_x64(True):
        expected = jax.jit(lambda *arrays: flat(function(jax.lax.linalg, *arrays)))(*map(theirs, operands))
        found = xtrace.jit(lambda *arrays: flat(function(lax.linalg, *arrays)))(*map(ours, operands))
        assert_same(found, expected, rounding)


def flat(results):
    """The arrays in nested lists and tuples."""
    return [x for r in results for x in flat(r)] if isinstance(results, (list, tuple)) else [results]


def options(**choices):
    """Every combination of the choices."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


EITHER = (False, True)
OF_SQUARE = {
    "cholesky": options(symmetrize_input=EITHER),
    "eigh": options(lower=EITHER, symmetrize_input=EITHER),
    "eig": options(compute_left_eigenvectors=EITHER, compute_right_eigenvectors=EITHER),
    "schur": options(compute_schur_vectors=EITHER),
}
OF_ANY = {
    "lu": [{}],
    "qr": options(full_matrices=EITHER, pivoting=EITHER),
    "svd": options(full_matrices=EITHER, compute_uv=EITHER),
}
NOT_EMPTY = {"hessenberg": [{}], "tridiagonal": options(lower=EITHER)}
SHAPES = (
    [(name, shape) for name in OF_SQUARE for shape in SQUARE]
    + [(name, shape) for name in OF_ANY for shape in ANY]
    + [(name, shape) for name in NOT_EMPTY for shape in SQUARE if shape[-1]]
)
# Every dtype for each operation, and one of them, in turn, for each other shape.
CASES = [
    (name, shape, dtype)
    for i, (name, shape) in enumerate(SHAPES)
    for dtype in (DTYPES if shape == SQUARE[0] else (DTYPES[i % 4],))
]


@pytest.fixture(scope="module", autouse=True)
def every_kernel_returns():
    """Each LAPACK kernel is called in a child process first: a wrong call would end the one it is made in."""
    done = subprocess.run([sys.executable, "-c", EVERY_KERNEL], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("all returned")


EVERY_KERNEL = """
import sys
import numpy as np
import xtrace
from xtrace import lax

linalg = lax.linalg
xtrace.config.update("jax_enable_x64", True)

@xtrace.jit
def every(x, wide, column, row):
    packed, taus = linalg.geqrf_p(x)
    return [
        linalg.cholesky(x), linalg.lu(x), linalg.lu(wide), linalg.lu(column), linalg.qr(wide), linalg.qr(column),
        linalg.qr(x, pivoting=True), linalg.ormqr(packed, taus, x), linalg.eigh(x), linalg.eig(x), linalg.schur(x),
        linalg.hessenberg(x), linalg.tridiagonal(x), linalg.tridiagonal_solve(row, row, row, x),
        linalg.svd(wide), linalg.svd(column, full_matrices=False), linalg.svd(x, compute_uv=False),
        linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), linalg.triangular_solve(x, x),
    ]

for dtype in ("float32", "float64", "complex64", "complex128"):
    for batch in ((), (2,), (0,)):
        for n in (1, 3):
            x = np.ones((*batch, n, n), dtype) + np.eye(n, dtype=dtype)
            wide = np.ones((*batch, n, n + 2), dtype)
            xtrace.block_until_ready(every(x, wide, wide.swapaxes(-1, -2), x[..., 0]))
assert "jax" not in sys.modules
print("all returned")
"""


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("name", "shape", "dtype"), CASES)
def test_factorisation(name, shape, dtype):
    x = definite(dtype, shape) if name == "cholesky" else matrices(dtype, shape)
    every = {**OF_SQUARE, **OF_ANY, **NOT_EMPTY}[name]
    compare(lambda linalg, x: [getattr(linalg, name)(x, **chosen) for chosen in every], x)


@pytest.mark.parametrize("name", [*OF_SQUARE, *OF_ANY, *NOT_EMPTY])
def test_eager_factorisation(name):
    x = definite("float32", (3, 3))
    assert_same(flat(getattr(lax.linalg, name)(ours(x))), flat(getattr(jax.lax.linalg, name)(theirs(x))), ROUNDING)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve(dtype):
    every = options(left_side=EITHER, lower=EITHER, transpose_a=EITHER, conjugate_a=EITHER, unit_diagonal=EITHER)
    a, b = definite(dtype, (2, 3, 3)), matrices(dtype, (2, 3, 3))
    compare(lambda linalg, a, b: [linalg.triangular_solve(a, b, **chosen) for chosen in every], a, b)
    shapes = (((3, 3), (3,)), ((2, 2), (2, 0)), ((0, 0), (0, 2)), ((1, 1), (1, 3)))
    operands = [(definite(dtype, shape), matrices(dtype, right)) for shape, right in shapes]
    flattened = [x for pair in operands for x in pair]

    def solved(linalg, *x):
        return [linalg.triangular_solve(a, b, left_side=True) for a, b in zip(x[::2], x[1::2], strict=True)]

    compare(solved, *flattened)


def test_triangular_solve_in_a_dtype_that_lapack_lacks():
    a = np.eye(2, dtype=dtypes.bfloat16) * 2
    compare(lambda linalg, a: linalg.triangular_solve(a, a), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(dtype):
    a, taus = matrices(dtype, (2, 4, 3)), matrices(dtype, (2, 3))

    def every(linalg, a, taus, c):
        found = [linalg.householder_product(a, taus), linalg.householder_product(a, taus[:, :1])]
        for transpose in EITHER:
            found.append(linalg.ormqr(a, taus, c, transpose=transpose))
            found.append(linalg.ormqr(a, taus, c.swapaxes(-1, -2), left=False, transpose=transpose))
        return found

    compare(every, a, taus, matrices(dtype, (2, 4, 5)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_solve(dtype):
    for shape in ((4, 2), (2, 3, 1), (1, 2), (0, 2)):
        diagonals = [matrices(dtype, shape[:-1], seed) for seed in range(3)]
        diagonals[1] = diagonals[1] + np.asarray(4, dtype)
        forms = EITHER if "float" in dtype else (False,)
        compare(
            lambda linalg, *x, forms=forms: [linalg.tridiagonal_solve(*x, perturb_singular=form) for form in forms],
            *diagonals, matrices(dtype, shape, 3),
        )


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_updates(dtype):
    for size in (0, 1, 4):
        factor, vector = np.triu(definite(dtype, (size, size))), matrices(dtype, (size,))
        vector[1:2] = 0
        whole = np.triu(np.ones_like(factor))
        # Below the diagonal there are rounding errors.
        compare(lambda linalg, r, w, whole=whole: linalg.cholesky_update(r, w) * whole, factor, vector)
    a, c = matrices(dtype, (2, 3, 2)), matrices(dtype, (2, 3, 3))
    compare(
        lambda linalg, a, c: [
            linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=chosen) for chosen in EITHER
        ],
        a, c,
    )


@pytest.mark.parametrize(("dtype", "shape"), [("float32", (5, 3)), ("float64", (3, 3)), ("complex64", (2, 2))])
def test_polar_decomposition(dtype, shape):
    compare(lambda linalg, x: linalg.qdwh(x), matrices(dtype, shape), rounding=256)
    compare(lambda linalg, x: linalg.qdwh(x, max_iterations=2), matrices(dtype, shape), rounding=256)
    compare(lambda linalg, x: linalg.qdwh(x)[:2], np.zeros(shape, dtype))


def test_polar_decomposition_of_a_part():
    x = matrices("float32", (4, 3))
    whole = np.asarray(lax.linalg.qdwh(x, dynamic_shape=(3, 2))[0])
    assert np.abs(whole[:3, :2] - np.asarray(lax.linalg.qdwh(x[:3, :2])[0])).max() < 64 * np.finfo(np.float32).eps
    assert not whole[3:].any() and not whole[:, 2:].any()


def test_permutations_of_pivots():
    for pivots, size in (([[2, 1, 2], [0, 1, 2]], 3), ([[1, 1, 3], [4, 3, 2]], 5), ([0], 1), ([], 2)):
        pivots = np.array(pivots, np.int32)
        compare(lambda linalg, p, size=size: linalg.lu_pivots_to_permutation(p, size), pivots)


def test_matrices_are_recovered():
    """Not against jax: the factors multiply to the matrix, for a size at which LAPACK works in blocks."""
    x = matrices("float32", (200, 120))
    tolerance = 200 * np.finfo(np.float32).eps * np.abs(x).max() * 20
    u, s, vh = map(np.asarray, lax.linalg.svd(x, full_matrices=False))
    q, r = map(np.asarray, lax.linalg.qr(x, full_matrices=False))
    factors, _, permutation = map(np.asarray, lax.linalg.lu(x))
    lower, upper = np.tril(factors, -1) + np.eye(200, 120), np.triu(factors)[:120]
    for found, expected in ((u * s @ vh, x), (q @ r, x), (lower @ upper, x[permutation])):
        assert np.abs(found - expected).max() < tolerance


def test_what_fails_is_nan():
    """An indefinite matrix spoils its own factor only; a singular matrix has an LU, a NaN none."""
    x = np.stack([np.eye(2), -np.eye(2)]).astype(np.float32)
    compare(lambda linalg, x: linalg.cholesky(x), x)
    assert np.isnan(np.asarray(lax.linalg.cholesky(x))[1]).any()
    compare(lambda linalg, x: linalg.lu(x), np.zeros((2, 2), np.float32))
    compare(lambda linalg, x: linalg.tridiagonal_solve(x, x, x, x[:, None]), np.ones(2, np.float32))


def test_parts_of_the_spectrum():
    """On every platform, unlike in jax 0.10, where the CPU computes all or nothing."""
    x = matrices("float32", (4, 4))
    whole, part = lax.linalg.eigh(x), lax.linalg.eigh(x, subset_by_index=(1, 3))
    assert_same([*part], [whole[0][:, 1:3], whole[1][1:3]], 0)
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    assert_same([*lax.linalg.svd(x, full_matrices=False, subset_by_index=(0, 2))], [u[:, :2], s[:2], vh[:2]], 0)


X = np.ones((3, 3), np.float32)
BAD = {
    "not square": (lambda linalg: linalg.cholesky(X[:2]), ValueError, r"square matrix. Got shape \(2, 3\)"),
    "a vector": (lambda linalg: linalg.lu(X[0]), TypeError, r"rank at least 2, but got shape=\(3,\)"),
    "integers": (lambda linalg: linalg.qr(X.astype(int)), TypeError, "does not accept dtype int"),
    "a dtype LAPACK lacks": (lambda linalg: linalg.svd(X.astype(np.float16)), NotImplementedError, "float16.*astype"),
    "two dtypes": (lambda linalg: linalg.triangular_solve(X, X.astype(complex)), TypeError, "same dtypes"),
    "sizes that disagree": (lambda linalg: linalg.triangular_solve(X, X[:, :2]), ValueError, "as many columns"),
    "batches that disagree": (
        lambda linalg: linalg.triangular_solve(np.stack([X, X]), np.stack([X])), ValueError, "leading axes",
    ),
    "a lone batch": (lambda linalg: linalg.triangular_solve(np.stack([X]), np.stack([[X]])), ValueError, "leading"),
    "more columns than rows": (
        lambda linalg: linalg.householder_product(X[:2], X[0, :2]), ValueError, "as many rows as columns",
    ),
    "too many reflections": (
        lambda linalg: linalg.householder_product(X[:, :2], X[0]), ValueError, "must not have more rows",
    ),
    "another height": (lambda linalg: linalg.ormqr(X[:, :2], X[0, :2], X[:2]), ValueError, "number of rows"),
    "pivots that are floats": (lambda linalg: linalg.lu_pivots_to_permutation(X[0], 3), TypeError, "int32"),
    "more pivots than rows": (
        lambda linalg: linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2), ValueError, "size 2",
    ),
    "uneven diagonals": (lambda linalg: linalg.tridiagonal_solve(X[0, :2], X[0], X[0], X), TypeError, "same shape"),
    "another number of rows": (lambda linalg: linalg.tridiagonal_solve(X[0], X[0], X[0], X[:2]), TypeError, "as many"),
    "a vector on the right": (lambda linalg: linalg.tridiagonal_solve(X[0], X[0], X[0], X[0]), TypeError, "rank"),
    "an empty tridiagonal": (lambda linalg: linalg.tridiagonal(X[:0, :0]), ValueError, "not empty"),
    "an update of another size": (lambda linalg: linalg.cholesky_update(X, X[0, :2]), ValueError, "square matrix"),
    "complex symmetric": (
        lambda linalg: linalg.symmetric_product(X.astype(complex), X.astype(complex)), TypeError, "complex",
    ),
    "a wide matrix": (lambda linalg: linalg.qdwh(X[:2]), ValueError, "M >= N"),
    "no iterations": (lambda linalg: linalg.qdwh(X, max_iterations=0), ValueError, "at least 1"),
    "sorted eigenvalues": (lambda linalg: linalg.schur(X, sort_eig_vals=True), NotImplementedError, "sort"),
    "an unknown algorithm": (lambda linalg: linalg.svd(X, algorithm="QR"), TypeError, "SvdAlgorithm.QR"),
    "an algorithm for GPUs": (
        lambda linalg: linalg.svd(X, algorithm=linalg.SvdAlgorithm.JACOBI), NotImplementedError, "CPU",
    ),
    "a library for GPUs": (lambda linalg: linalg.eig(X, use_magma=True), ValueError, "LAPACK"),
    "part and whole": (lambda linalg: linalg.svd(X, subset_by_index=(0, 1)), ValueError, "cannot both be set"),
    "a part beyond the end": (lambda linalg: linalg.eigh(X, subset_by_index=(0, 4)), ValueError, "stop <= 3"),
    "a part that is no pair": (lambda linalg: linalg.eigh(X, subset_by_index=1), TypeError, "pair of integers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(lax.linalg)


def tangent_of(function):
    return lambda: xtrace.jvp(function, (X,), (X,))


UNDIFFERENTIABLE = {
    "schur": tangent_of(lambda x: lax.linalg.schur(x)),
    "tridiagonal": tangent_of(lambda x: lax.linalg.tridiagonal(x)),
    "full matrices": tangent_of(lambda x: lax.linalg.svd(x[:2])),
    "partial": tangent_of(lambda x: lax.linalg.eigh(x, subset_by_index=(0, 1))),
    "enable_eigvec_derivs": tangent_of(lambda x: lax.linalg.eig(x)),
}


@pytest.mark.parametrize("name", UNDIFFERENTIABLE)
def test_what_has_no_derivative_says_so(name):
    with pytest.raises(NotImplementedError, match=name):
        UNDIFFERENTIABLE[name]()


def calls_in(text):
    """The custom calls of a module, from the target's name on, without source locations."""
    return [line.split("stablehlo.custom_call ")[1] for line in text.splitlines() if "stablehlo.custom_call" in line]


def normalised(call):
    """The call without the names of its operands, which number the values of the module."""
    target, rest = call.split("(", 1)
    return target + rest.split(")", 1)[1]


TEXTS = {
    "cholesky": (lambda linalg, x: linalg.cholesky(x), ("cpu", "cuda", "tpu")),
    "lu": (lambda linalg, x: linalg.lu(x), ("cpu", "cuda", "tpu")),
    "qr": (lambda linalg, x: linalg.qr(x), ("cpu", "cuda", "tpu")),
    "qr in order": (lambda linalg, x: linalg.qr(x, pivoting=True, full_matrices=False), ("cpu", "cuda")),
    "eigh": (lambda linalg, x: linalg.eigh(x, lower=False), ("cpu", "cuda", "tpu")),
    "svd": (lambda linalg, x: linalg.svd(x[..., :2], full_matrices=False), ("cpu", "cuda")),
    "svd by QR": (lambda linalg, x: linalg.svd(x[..., :2, :], algorithm=linalg.SvdAlgorithm.QR), ("cpu", "cuda")),
    "polar svd": (lambda linalg, x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.POLAR), ("cuda",)),
    "singular values": (lambda linalg, x: linalg.svd(x, full_matrices=False, compute_uv=False), ("cuda",)),
    "eig": (lambda linalg, x: linalg.eig(x), ("cpu", "cuda")),
    "schur": (lambda linalg, x: linalg.schur(x), ("cpu",)),
    "hessenberg": (lambda linalg, x: linalg.hessenberg(x), ("cpu",)),
    "tridiagonal": (lambda linalg, x: linalg.tridiagonal(x), ("cpu", "cuda")),
    "tridiagonal_solve": (lambda linalg, x: linalg.tridiagonal_solve(x[..., 0], x[..., 0], x[..., 0], x),
                          ("cpu", "cuda")),
    "perturbed": (lambda linalg, x: linalg.tridiagonal_solve(*[x.real[..., 0]] * 3, x.real, perturb_singular=True),
                  ("cpu", "cuda")),
    "ormqr": (lambda linalg, x: linalg.ormqr(x, x[..., 0], x), ("cpu", "cuda")),
    "triangular_solve": (lambda linalg, x: linalg.triangular_solve(x, x, lower=True), ("cpu", "cuda", "tpu")),
}


@pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="the text of newer jax differs")
@pytest.mark.parametrize(("name", "platform"), [(name, p) for name, (_, where) in TEXTS.items() for p in where])
def test_calls_are_written_as_jax_writes_them(name, platform):
    function, _ = TEXTS[name]
    for dtype, shape in (("float32", (2, 3, 3)), ("complex64", (3, 3))):
        x = np.ones(shape, dtype)
        mine = xtrace.jit(lambda x: function(lax.linalg, x)).trace(x).lower(lowering_platforms=(platform,)).as_text()
        other = jax.jit(lambda x: function(jax.lax.linalg, x)).trace(x)
        text = other.lower(lowering_platforms=(platform,)).as_text()
        assert sorted(map(normalised, calls_in(mine))) == sorted(map(normalised, calls_in(text)))


@pytest.mark.parametrize(("name", "platform"), [("schur", "cuda"), ("schur", "tpu"), ("eig", "tpu")])
def test_what_a_platform_lacks(name, platform):
    traced = xtrace.jit(lambda x: getattr(lax.linalg, name)(x)).trace(X)
    with pytest.raises(NotImplementedError, match=f"{name} is not implemented on the platform {platform}.*'cpu'"):
        traced.lower(lowering_platforms=(platform,))


@pytest.mark.parametrize("kind, function", [("EigImplementation", "eig"), ("EighImplementation", "eigh")])
def test_implementations_have_the_names_and_limits_of_jax(kind, function):
    mine, other = (getattr(package.lax.linalg, kind) for package in (xtrace, jax))
    assert [(i.name, i.value) for i in mine] == [(i.name, i.value) for i in other]
    x = np.array([[2, 1], [1, 3]], np.float32)
    for member in mine:
        try:
            expected = getattr(jax.lax.linalg, function)(x, implementation=other[member.name])
        except (NotImplementedError, ValueError) as error:
            with pytest.raises(type(error), match=function):
                getattr(lax.linalg, function)(x, implementation=member)
        else:
            for one, theirs_ in zip(getattr(lax.linalg, function)(x, implementation=member), expected, strict=True):
                np.testing.assert_array_equal(one, theirs_)
    with pytest.raises(TypeError, match=f"{function}: implementation must be None or one of {kind}"):
        getattr(lax.linalg, function)(x, implementation="other")
