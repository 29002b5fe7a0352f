"""Rules of LU and QR factorisation, against jax."""

import numpy as np
import pytest

from tests.support.matrices import complex_, well
from tests.support.rules import check_rules


def factors_only(lax, x):
    """The floating results of `lu`, of the squares of elements: no second derivative is zero."""
    return lax.linalg.lu(x * x)[0]


def qr(**options):
    """Factors of the squares of elements, without the zeros of R: nothing is zero up to rounding errors."""

    def factors(lax, x):
        q, r = lax.linalg.qr(x * x, **options)[:2]
        return [q, r * np.triu(np.ones(r.shape, r.dtype))]

    return factors


FACTORED = {
    "lu": (factors_only, well(3, 3)),
    "lu of a tall matrix": (factors_only, well(3, 2)),
    "lu of a wide complex matrix": (factors_only, well(2, 3) + complex_(2, 3) / 4),
    "qr": (qr(), well(3, 3)),
    "qr of a batch": (qr(full_matrices=False), well(2, 2, 2)),
    "qr of a wide complex matrix": (qr(), well(2, 3) + complex_(2, 3) / 4),
    "qr, completed": (qr(), well(3, 2)),
    "qr, columns in order": (qr(pivoting=True, full_matrices=False), well(3, 2)),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", FACTORED)
def test_factorisations(name):
    function, *operands = FACTORED[name]
    check_rules(function, *operands, rounding=2048)
