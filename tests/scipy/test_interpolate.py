"""Interpolation on grids: the values, derivatives and types of jax's RegularGridInterpolator."""

from __future__ import annotations

import jax
import jax.scipy.interpolate
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from xtrace.scipy.interpolate import RegularGridInterpolator

BOTH = (
    (xtrace, RegularGridInterpolator, ours), (jax, jax.scipy.interpolate.RegularGridInterpolator, theirs)
)
X, Y, Z = (np.array(points, np.float32) for points in ([0, 1, 3, 4], [-1, 0, 2], [2, 2.5]))
VALUES = finite_values(np.float32, (4, 3, 2), 0)
# Points of the grid, between them, on its boundary, half way, outside, and unknown.
POINTS = np.array(
    [[0.5, 0.5], [1, 0], [4, 2], [5, 0], [0.5, -2], [2, 1], [0.5, 1], [0, -1], [3.7, 1.9], [np.nan, 0]], np.float32
)


def rows(*columns):
    return np.stack(np.broadcast_arrays(*columns), -1).astype(np.float32)


CASES = {
    "two axes": ((X, Y), VALUES[:, :, 0], POINTS),
    "values with a further axis": ((X, Y), VALUES, POINTS[:5]),
    "values with further axes": ((X,), VALUES, POINTS[:5, :1]),
    "one axis": ((X,), VALUES[:, 0, 0], POINTS[:, :1]),
    "a vector of points of one axis": ((X,), VALUES[:, 0, 0], POINTS[:, 0]),
    "a vector of coordinates": ((X, Y), VALUES, POINTS[0]),
    "several points in a vector": ((X, Y), VALUES, POINTS[:2].ravel()),
    "three axes": ((X, Y, Z), VALUES, rows([0.3, 2.5, 9.0], [0.1, 1.9, 0.0], [2.1, 2.5, 2.2])),
    "points by coordinate": ((X, Y), VALUES, (POINTS[:3, :1], POINTS[:4, 1])),
    "scalars": ((X, Y), VALUES[:, :, 0], (0.5, 1.5)),
    "axes of points": ((X, Y), VALUES[:, :, 0], POINTS.reshape(2, 5, 2)),
    "no points": ((X, Y), VALUES, POINTS[:0]),
    "integers": ((np.array([0, 1, 3]), np.array([1, 2])), np.arange(6).reshape(3, 2), np.array([[1, 1], [2, 2]])),
    "halves": ((X.astype(np.float16), Y), VALUES[:, :, 0].astype(np.float16), POINTS),
    "complex values": ((X, Y), VALUES[:, :, 0] + 1j * VALUES[:, :, 1], POINTS),
    "an axis with one point": ((X[:1], Y), VALUES[:1], rows([0, 1], [0.5, 0.5])),
}


FILLED = [(name, np.nan) for name in CASES] + [
    (name, fill) for name in ("two axes", "values with a further axis", "integers") for fill in (None, 7)
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("name, fill", FILLED)
def test_values_are_those_of_jax(name, method, fill):
    points, values, xi = CASES[name]
    results = []
    for package, cls, convert in BOTH:
        made = cls(convert(points), convert(values), method=method, fill_value=fill)
        results.append(made(convert(xi)) if fill == 7 else package.jit(made)(convert(xi)))
    # Sums of at most eight terms, each a product of four; the sizes of cells differ by a rounding.
    assert_same(*results, 64, name, floor=4)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_derivatives_are_those_of_jax(method):
    found = []
    for package, cls, convert in BOTH:
        def total(x, y, values, fill, xi, package=package, cls=cls):
            return package.numpy.sum(package.numpy.sin(cls((x, y), values, method, fill_value=fill)(xi)))

        operands = convert([X, Y, VALUES, np.float32(2), POINTS[[0, 3, 8]]])
        found.append(package.grad(total, tuple(range(5)))(*operands))
    assert_same(*found, 64, floor=32)


def test_an_interpolator_is_a_pytree():
    made, other = [cls(convert((X, Y)), convert(VALUES)) for _, cls, convert in BOTH]
    leaves = xtrace.tree.leaves(made)
    assert_same(leaves, jax.tree.leaves(other))
    assert str(xtrace.tree.structure(made)) == str(jax.tree.structure(other))
    again = xtrace.jit(lambda f: xtrace.tree.map(lambda x: 2 * x, f))(made)
    assert (again.method, again.bounds_error) == (made.method, made.bounds_error) == ("linear", False)
    assert_same(again((2 * X[1:3], 2 * Y[1])), 2 * made((X[1:3], Y[1])), 16)
    stacked = xtrace.vmap(lambda f, x: f(x), (None, 0))(made, POINTS)
    assert_same(stacked[:, 0], made(POINTS), 16)


def test_a_method_may_be_given_with_the_points():
    made, other = [cls(convert((X, Y)), convert(VALUES)) for _, cls, convert in BOTH]
    assert_same(made(POINTS, method="nearest"), other(POINTS, method="nearest"))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", ["values", "points", "xi", "nothing"])
def test_the_widest_operand_gives_the_dtype(name):
    with xtrace.enable_x64(True), jax.enable_x64(True):
        operands = {"values": VALUES, "points": X, "xi": POINTS[:, :1]}
        if name in operands:
            operands[name] = operands[name].astype(np.float64)
        found = [cls((convert(operands["points"]),), convert(operands["values"]))(convert(operands["xi"]))
                 for _, cls, convert in BOTH]
        assert_same(*found, 64, floor=4)


MISTAKES = {
    "method": (lambda: RegularGridInterpolator((X, Y), VALUES, "cubic"), ValueError, "method 'cubic' is not defined"),
    "method of a call": (lambda: RegularGridInterpolator((X,), VALUES)(X, "foo"), ValueError, "method 'foo'"),
    "bounds": (lambda: RegularGridInterpolator((X, Y), VALUES, bounds_error=True), NotImplementedError, "fill_value"),
    "too many axes": (lambda: RegularGridInterpolator((X, Y), X), ValueError, "are 2 point arrays, but values has 1"),
    "lengths": (lambda: RegularGridInterpolator((Y, X), VALUES), ValueError, r"lengths \(3, 4\), and values has"),
    "falling": (lambda: RegularGridInterpolator((X[::-1],), VALUES), ValueError, r"points\[0\] must increase strictly"),
    "repeated": (lambda: RegularGridInterpolator((X * 0,), VALUES), ValueError, "must increase strictly"),
    "matrix": (lambda: RegularGridInterpolator((X, Y[None]), VALUES), ValueError, r"points\[1\] must be a vector"),
    "list": (lambda: RegularGridInterpolator(([0, 1],), VALUES), TypeError, r"points\[0\]: .* not a valid JAX type"),
    "values": (lambda: RegularGridInterpolator((X,), [0, 1, 2, 3]), TypeError, "values: .* is not a valid JAX type"),
    "fill": (lambda: RegularGridInterpolator((X,), VALUES, fill_value=1j), ValueError, "got complex64 for float32"),
    "dimension": (
        lambda: RegularGridInterpolator((X, Y), VALUES)(POINTS[:, :1]), ValueError,
        "sample points xi have dimension 1, but this interpolator has dimension 2",
    ),
    "coordinates": (lambda: RegularGridInterpolator((X, Y), VALUES)((1, 2, 3)), ValueError, "xi have dimension 3"),
    "scalar": (lambda: RegularGridInterpolator((X,), VALUES)(1.5), ValueError, "last axis of xi has the coordinates"),
    "points as a list": (lambda: RegularGridInterpolator((X,), VALUES)([1.5]), TypeError, "xi: .* valid JAX type"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert not any("it is a bug" in note for note in getattr(caught.value, "__notes__", ()))
