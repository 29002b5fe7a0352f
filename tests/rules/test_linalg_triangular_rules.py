"""Rules of Cholesky factorisation and of triangular systems, against jax."""

import pytest

from tests.support.matrices import complex_, gram, real, well
from tests.support.rules import check_rules


def solve(**options):
    return lambda lax, a, b: lax.linalg.triangular_solve(a, b, **options)


TRIANGULAR = {
    "cholesky": (lambda lax, x: lax.linalg.cholesky(gram(lax, x)), real(3, 3)),
    "cholesky of complex": (lambda lax, x: lax.linalg.cholesky(gram(lax, x)), complex_(2, 2)),
    "cholesky of a batch": (lambda lax, x: lax.linalg.cholesky(gram(lax, x), symmetrize_input=False), real(2, 2, 2)),
    "solve from the right": (solve(), well(3, 3), real(2, 3)),
    "solve from the left": (solve(left_side=True, lower=True), well(3, 3), real(3, 4)),
    "solve with the transpose": (solve(left_side=True, transpose_a=True), well(2, 3, 3), real(2, 3, 2)),
    "solve with the adjoint": (solve(lower=True, transpose_a=True, conjugate_a=True), well(2, 2) + complex_(2, 2) / 4,
                               complex_(2, 2)),
    "solve with the conjugate": (solve(left_side=True, conjugate_a=True), well(2, 2) + complex_(2, 2) / 4,
                                 complex_(2, 2)),
    "solve with a unit diagonal": (solve(left_side=True, lower=True, unit_diagonal=True), well(3, 3), real(3, 2)),
    "solve for a vector": (solve(left_side=True), well(3, 3), real(3)),
    "solve for a row": (solve(), well(3, 3), real(3)),
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", TRIANGULAR)
def test_triangular(name):
    function, *operands = TRIANGULAR[name]
    check_rules(function, *operands, rounding=512)
