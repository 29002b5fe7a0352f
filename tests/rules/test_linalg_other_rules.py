"""Rules of tridiagonal systems and symmetric products, and batched forms of what has no derivative, against jax."""

import jax
import numpy as np
import pytest

import xtrace
from tests.support.matrices import complex_, real, well
from tests.support.operands import assert_same, ours, theirs
from tests.support.rules import check_rules
from xtrace import lax


def tridiagonal(lax, dl, d, du, b):
    return lax.linalg.tridiagonal_solve(dl, d, du, b)


CASES = {
    "tridiagonal system": (tridiagonal, real(3), real(3, seed=1) + 4, real(3, seed=2), real(3, 2)),
    "complex tridiagonal system": (tridiagonal, complex_(2), complex_(2) + 4, complex_(2), complex_(2, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_tridiagonal_systems(name):
    function, *operands = CASES[name]
    check_rules(function, *operands, rounding=256)


def test_symmetric_product():
    """jax has no derivative of it: that of the same in other operations."""
    a, c = real(3, 2), real(3, 3)

    def directly(a, c):
        return lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5)

    def otherwise(a, c):
        return 2 * a @ a.T + 0.5 * c

    operands, tangents = (ours(a), ours(c)), (ours(real(3, 2, seed=1)), ours(real(3, 3, seed=1)))
    assert_same(xtrace.jvp(directly, operands, tangents), xtrace.jvp(otherwise, operands, tangents), 32)
    cotangent = ours(real(3, 3, seed=2))
    assert_same(xtrace.vjp(directly, *operands)[1](cotangent), xtrace.vjp(otherwise, *operands)[1](cotangent), 32)
    stacked = [np.stack([x, 2 * x], 1) for x in (a, c)]
    assert_same(
        xtrace.vmap(directly, (1, 1))(*map(ours, stacked)),
        jax.vmap(lambda a, c: jax.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), (1, 1))(*stacked), 32,
    )


MAPPED = {
    "eig": lambda linalg, x: list(linalg.eig(x)),
    "schur": lambda linalg, x: list(linalg.schur(x)),
    "hessenberg": lambda linalg, x: list(linalg.hessenberg(x)),
    "tridiagonal": lambda linalg, x: list(linalg.tridiagonal(x)),
    "lu": lambda linalg, x: list(linalg.lu(x)),
    "pivots": lambda linalg, x: linalg.lu_pivots_to_permutation(linalg.lu(x)[1], 4),
    "householder_product": lambda linalg, x: linalg.householder_product(x, x[0]),
    "ormqr": lambda linalg, x: linalg.ormqr(x, x[0], x),
}


@pytest.mark.parametrize("name", MAPPED)
def test_mapped(name):
    x = np.stack([well(3, 3), 2 * well(3, 3) + real(3, 3, seed=1)], 1)
    function = MAPPED[name]
    for axes in (1, 0):
        x = np.moveaxis(x, 1, axes) if axes == 0 else x
        found = xtrace.vmap(lambda x: function(lax.linalg, x), axes)(ours(x))
        assert_same(found, jax.vmap(lambda x: function(jax.lax.linalg, x), axes)(theirs(x)), 16)


def test_one_operand_of_two_is_mapped():
    a, taus = real(4, 2), np.stack([real(2), real(2, seed=1)])
    found = xtrace.vmap(lax.linalg.householder_product, (None, 0))(ours(a), ours(taus))
    assert_same(found, jax.vmap(jax.lax.linalg.householder_product, (None, 0))(a, taus), 16)
