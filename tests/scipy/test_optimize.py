"""Minimization against jax's steps where those succeed, and against minima that are known."""

import jax
import jax.scipy.optimize
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace.scipy.optimize import OptimizeResults, minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
METHODS = ["BFGS", LIMITED]


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_steps_are_those_of_jax(method):
    def results(library, **options):
        def program(x):
            return library.scipy.optimize.minimize(himmelblau, x, method=method, options=options)

        # In single precision rounding decides about the last steps.
        with library.enable_x64(True):
            return library.jit(program)(np.array([1.0, 1.0]))

    for options in ({}, {"maxiter": 2, "norm": 1}):
        found, theirs = results(xtrace, **options), results(jax, **options)
        assert type(found) is OptimizeResults and found._fields == theirs._fields
        for name in ("success", "status", "nfev", "njev", "nit"):
            assert_same(getattr(found, name), getattr(theirs, name), where=name)
        # In each of 8 steps rounding grows by the Hessian's condition, which is below 10.
        for name in ("x", "fun", "jac"):
            np.testing.assert_allclose(getattr(found, name), getattr(theirs, name), rtol=1e-9, atol=1e-9, err_msg=name)
        if method == "BFGS":
            np.testing.assert_allclose(found.hess_inv, theirs.hess_inv, rtol=1e-9, atol=1e-9)
        else:
            assert found.hess_inv is None


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_minima(method):
    # jax stops with the status 3 or 5 on the way to the first of them.
    def program(x, shift):
        options = {"maxcor": 4} if method == LIMITED else {}
        return minimize(lambda x, a: rosenbrock(x - a), x, (shift,), method=method, options=options)

    with xtrace.enable_x64(True):
        starts, shifts = np.array([[-1.2, 1.0], [0.0, 2.0]]), np.array([0.0, 1.0])
        found = xtrace.jit(xtrace.vmap(program))(starts, shifts)
        # The gradient is at most 1e-5, or the last decrease 2.2e-9; the Hessian's least eigenvalue there is 0.4.
        np.testing.assert_allclose(found.x, 1 + shifts[:, None] + np.zeros((2, 2)), rtol=0, atol=1e-4)
        assert (found.fun < 1e-8).all() and set(np.asarray(found.status).tolist()) <= {0, 4}
        alone = program(starts[1], shifts[1])
        np.testing.assert_array_equal(alone.nit, found.nit[1])


@pytest.mark.slow
def test_complex_arguments_and_what_has_no_minimum():
    goal = np.array([1 + 2j, -0.5j], np.complex64)
    for method in METHODS:
        found = minimize(lambda x: (jnp.abs(x - goal) ** 2).sum(), np.zeros(2, np.complex64), method=method)
        np.testing.assert_allclose(found.x, goal, rtol=0, atol=1e-5)
        assert found.success and found.x.dtype == np.complex64
    falling = minimize(lambda x: x.sum(), np.zeros(2, np.float32), method="bfgs", options={"line_search_maxiter": 4})
    assert (falling.status, falling.success, falling.nfev, falling.nit) == (5, False, 5, 1)
    np.testing.assert_array_equal(falling.x, np.zeros(2))
    nowhere = minimize(lambda x: x.sum() * np.nan, np.zeros(2, np.float32), method=LIMITED)
    assert (nowhere.status, nowhere.success) == (5, False)


@pytest.mark.slow
@pytest.mark.parametrize("x64", [False, True])
def test_badly_scaled_functions(x64):
    """BFGS ends at a minimum, also where rounding spoils its estimate of the Hessian and jax stops."""
    scales = np.array([1.0, 1e3, 1e6], np.float32)
    start = [1.0, 2.0, -3.0]
    cases = [(lambda x: ((1e4 * x) ** 2).mean(), start), (lambda x: ((1e3 * x) ** 2).mean(), start),
             (lambda x: (scales * x**2).sum(), [1.0, 1.0, 1.0]), (lambda x: 1e3 * rosenbrock(x), [-1.2, 1.0]),
             (lambda x: (1e2 * x**4).sum(), start), (lambda x: jnp.sqrt(1 + x**2).sum(), [30.0, -3.0])]
    with xtrace.enable_x64(x64):
        for function, start in cases:
            found = minimize(function, np.array(start, np.float64 if x64 else np.float32), method="BFGS")
            assert found.success and np.abs(found.jac).max() < 1e-5


def test_mistakes():
    start = np.zeros(2, np.float32)
    with pytest.raises(TypeError, match=r"must be a tuple, got 1.0; write \(args,\)"):
        minimize(himmelblau, start, 1.0, method="BFGS")
    with pytest.raises(ValueError, match="Method newton not recognized by minimize; write 'BFGS' or 'l-bfgs"):
        minimize(himmelblau, start, method="newton")
    with pytest.raises(TypeError, match="unexpected option 'maxls'; it takes maxiter, norm, gtol"):
        minimize(himmelblau, start, method="BFGS", options={"maxls": 3})
    with pytest.raises(ValueError, match=r"x0 must be a vector, got f32\[2,2\]"):
        minimize(himmelblau, np.zeros((2, 2), np.float32), method="BFGS")
    with pytest.raises(TypeError, match=r"a floating or complex dtype .* got i32\[2\]"):
        minimize(himmelblau, np.zeros(2, np.int32), method="BFGS")
    with pytest.raises(TypeError, match="callable"):
        minimize(3, start, method="BFGS")
    with pytest.raises(TypeError, match="scalar"):
        minimize(lambda x: x, start, method="BFGS")
