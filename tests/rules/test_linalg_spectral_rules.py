"""Rules of eigenvalues and singular values, against jax."""

import numpy as np
import pytest

import xtrace
from tests.support.matrices import complex_, real
from tests.support.rules import check_rules
from xtrace import lax

APART = np.diag(np.array([1, 3, 6], np.float32))
COMPLEX = np.diag(np.array([1, 4], np.complex64))


def eigh(lax, x):
    """Vectors up to their phases, which are the library's choice: |V|² and the values."""
    vectors, values = lax.linalg.eigh(x + x.conj().swapaxes(-1, -2))
    return [lax.real(vectors * vectors.conj()) if vectors.dtype == np.complex64 else vectors, values]


def svd(**options):
    return lambda lax, x: list(lax.linalg.svd(x, **options))


def values_only(lax, x):
    return lax.linalg.svd(x, compute_uv=False)


def svd_of_complex(lax, x):
    """The value of matrices of one row and the product of the vectors, which does not depend on phases."""
    u, values, vh = lax.linalg.svd(x, full_matrices=False)
    return [values, u * vh]


def eigenvalues(lax, x):
    return lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigenvectors(lax, x):
    return list(lax.linalg.eig(x, enable_eigvec_derivs=True))


SPECTRAL = {
    "eigh": (eigh, APART + real(3, 3) / 2),
    "eigh of complex": (eigh, COMPLEX + complex_(2, 2) / 2),
    "svd": (svd(), APART + real(3, 3) / 2),
    "svd of a tall matrix": (svd(full_matrices=False), APART[:, :2] + real(3, 2) / 2),
    "svd of a wide complex matrix": (svd_of_complex, COMPLEX[:1] + complex_(1, 2) / 2),
    "singular values": (values_only, APART + real(3, 3) / 2),
    "eigenvalues": (eigenvalues, APART + real(3, 3) / 2),
    "eigenvalues of complex": (eigenvalues, COMPLEX + complex_(2, 2) / 2),
    "eigenvectors": (eigenvectors, APART[:2, :2] + real(2, 2) / 2),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", SPECTRAL)
def test_spectral(name):
    function, *operands = SPECTRAL[name]
    # jax has no second derivatives of eigenvalues alone; those of complex singular vectors take long to compile.
    second = function not in (eigenvalues, svd_of_complex)
    phases = "the derivative keeps the phases of vectors, LAPACK chooses them anew" if "eigh of c" in name else ""
    check_rules(function, *operands, rounding=4096, second=second, not_smooth=phases)


def test_second_derivative_of_eigenvalues():
    """The larger eigenvalue of [[t, 1], [1, 0]] is t/2 + sqrt(t²/4 + 1), its second derivative 2 / (t² + 4)^(3/2)."""

    def larger(t):
        rows = [lax.stack([t, lax.full_like(t, 1)]), lax.stack([lax.full_like(t, 1), lax.full_like(t, 0)])]
        return lax.reduce_max(lax.real(eigenvalues(lax, lax.stack(rows))), (0,))

    found = xtrace.grad(xtrace.grad(larger))(np.float32(1.5))
    assert abs(float(found) - 2 / (1.5**2 + 4) ** 1.5) < 64 * np.finfo(np.float32).eps
