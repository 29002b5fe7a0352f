"""Rules of solutions of equations, which do not depend on how they are found, against jax."""

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy
from tests.support.matrices import complex_, real, well
from tests.support.rules import check_rules
from xtrace import lax


def times(lax, a, x, transposed=False):
    return lax.dot_general(a, x, (((0 if transposed else 1,), (0,)), ((), ())))


def triangular_system(lax, a, b):
    """A system whose matrix is `a` with ones added on the diagonal and zeros below it."""
    upper = a * np.triu(np.ones(a.shape, a.dtype))

    def solve(matvec, b):
        return lax.linalg.triangular_solve(upper, b, left_side=True)

    def transpose_solve(vecmat, b):
        return lax.linalg.triangular_solve(upper, b, left_side=True, transpose_a=True)

    return lax.custom_linear_solve(lambda x: times(lax, upper, x), b, solve, transpose_solve)


def symmetric_system(lax, d, b):
    """A diagonal system of a pytree, solved by what matvec does to ones."""

    def solve(matvec, b):
        ones = matvec({"x": lax.full_like(b["x"], 1), "y": lax.full_like(b["y"], 1)})
        return {"x": b["x"] / ones["x"], "y": b["y"] / ones["y"]}

    found = lax.custom_linear_solve(
        lambda t: {"x": d * t["x"], "y": d * d * t["y"]}, {"x": b, "y": b * b}, solve, symmetric=True
    )
    return [found["x"], found["y"]]


def system_with_more(lax, d, b):
    def solve(matvec, b):
        return b / d, b[:1]

    return lax.custom_linear_solve(lambda x: d * x, b, solve, solve, has_aux=True)[0]


def square_root(lax, a):
    return lax.custom_root(
        lambda x: x * x - a, lax.full_like(a, 1), lambda f, x: lax.sqrt(a), lambda g, y: y / g(lax.full_like(y, 1))
    )


def newton(lax, a):
    """A root found by steps that cannot be differentiated in reverse, with their number."""

    def solve(f, x):
        def step(state):
            x, count = state
            return x - f(x) / (3 * x * x), count + 1

        # A float, since jax refuses integers here.
        return lax.while_loop(lambda state: state[1] < 8, step, (x, np.float32(0)))

    found, _ = lax.custom_root(
        lambda x: x * x * x - a, lax.full_like(a, 1), solve, lambda g, y: y / g(lax.full_like(y, 1)), has_aux=True
    )
    return found


POSITIVE = np.abs(real(3)) + np.float32(0.5)
SYSTEMS = {
    "triangular": (triangular_system, well(2, 2), real(2, 1)),
    "triangular and complex": (triangular_system, well(2, 2) + complex_(2, 2) / 4, complex_(2, 1)),
    "symmetric": (symmetric_system, POSITIVE, real(3)),
    "with more results": (system_with_more, POSITIVE, real(3)),
    "square root": (square_root, POSITIVE),
    "newton": (newton, POSITIVE),
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", SYSTEMS)
def test_solutions(name):
    function, *operands = SYSTEMS[name]
    check_rules(function, *operands, rounding=256)


B = np.ones(2, np.float32)


def solved(x):
    return lax.custom_linear_solve(lambda x: 2 * x, x, lambda _, b: b / 2)


BAD = {
    "no transpose": (lambda: xtrace.grad(lambda x: solved(x).sum())(B), TypeError, "transpose_solve required"),
    "another shape": (
        lambda: lax.custom_linear_solve(lambda x: x[:1], B, lambda _, b: b), ValueError, "matvec output shapes",
    ),
    "another structure": (
        lambda: lax.custom_linear_solve(lambda x: (x, x), B, lambda _, b: b), TypeError, "matvec must return",
    ),
    "no pair": (
        lambda: lax.custom_linear_solve(lambda x: x, B, lambda _, b: b, has_aux=True), ValueError, "return a pair",
    ),
    "no function": (lambda: lax.custom_linear_solve(1, B, lambda _, b: b), TypeError, "matvec"),
    "another root": (
        lambda: lax.custom_root(lambda x: x, B, lambda f, x: x[:1], lambda g, y: y), ValueError, "solve output shapes",
    ),
    "another tangent": (
        lambda: xtrace.jvp(
            lambda a: lax.custom_root(lambda x: x - a, a, lambda f, x: x, lambda g, y: y[:1]), (B,), (B,)
        ),
        TypeError, "tangent_solve must return",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_functions(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


def test_what_the_solver_also_returns():
    x, steps = lax.custom_linear_solve(lambda x: 2 * x, B, lambda _, b: (b / 2, {"steps": 3}), has_aux=True)
    assert np.array_equal(x, B / 2) and int(steps["steps"]) == 3


def test_the_equation_reads_as_in_jax():
    def names(library, api):
        def system(a, b):
            return library.custom_linear_solve(lambda x: a * x, b, lambda _, b: b / a, symmetric=True)

        (equation,) = api.make_jaxpr(system)(B, B).eqns
        return equation.primitive.name, list(equation.params), list(map(int, equation.params["const_lengths"]))

    assert names(lax, xtrace) == names(jax.lax, jax)
