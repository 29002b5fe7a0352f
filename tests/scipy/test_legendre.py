"""Associated Legendre functions against jax and, in double precision, scipy."""

import jax
import jax.scipy.special
import numpy as np
import pytest
import scipy.special

import xtrace
import xtrace.scipy.special as special
from tests.support.operands import assert_same, ours, theirs

POINTS = np.array([-1.0, -0.99, -0.3, 0.0, 0.25, 0.7, 1.0], np.float32)
USES = {
    "lpmn": lambda special, degree: lambda z: special.lpmn(degree, degree, z),
    "lpmn_values": lambda special, degree: lambda z: special.lpmn_values(degree, degree, z, False),
    "normalized": lambda special, degree: lambda z: special.lpmn_values(degree, degree, z, True),
}


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn")
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("use", USES)
def test_values_are_those_of_jax(use, degree):
    expected = USES[use](jax.scipy.special, degree)(theirs(POINTS))
    found = USES[use](special, degree)(ours(POINTS))
    scale = max(float(np.max(np.abs(x), where=np.isfinite(x), initial=1)) for x in jax.tree.leaves(expected))
    assert_same(found, expected, 16, floor=scale / 16)


@pytest.mark.filterwarnings("ignore:jax.scipy.special.lpmn")
def test_transformations():
    z = POINTS[1:-1]

    def results(library, special, z):
        f = USES["normalized"](special, 4)
        return library.jit(f)(z), library.grad(lambda z: (f(z) ** 2).sum())(z), library.vmap(f)(z[:, None])

    assert_same(results(xtrace, special, ours(z)), results(jax, jax.scipy.special, theirs(z)), 64, floor=1.0)


def test_double_precision():
    points = np.linspace(-0.95, 0.95, 7)
    with xtrace.enable_x64():
        values, derivatives = special.lpmn(6, 6, points)
    wanted = np.stack([np.stack(scipy.special.assoc_legendre_p_all(6, 6, z, diff_n=1)) for z in points], -1)
    np.testing.assert_allclose(values, wanted[0, :, :7].swapaxes(0, 1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(derivatives, wanted[1, :, :7].swapaxes(0, 1), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ((2, 3, POINTS), NotImplementedError, "m and n must be equal, got m=2 and n=3"),
    ((2, 2, POINTS.astype(np.float16)), TypeError, "float32 or float64, got float16"),
    ((2, 2, POINTS[:6].reshape(2, 3)), ValueError, r"one axis, got float32\[2,3\]"),
    ((-1, -1, POINTS), ValueError, "0 or more, got -1"),
    ((1.0, 1.0, POINTS), TypeError, "m must be an integer"),
])
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        special.lpmn(*arguments)
    with pytest.raises(error, match=f"lpmn_values: .*{message}"):
        special.lpmn_values(*arguments, True)
