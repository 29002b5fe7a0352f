"""Rotations: the values and derivatives of jax's Rotation and Slerp, and the right ones where jax fails."""

from __future__ import annotations

import inspect

import jax
import jax.scipy.spatial.transform as jax_transform
import numpy as np
import pytest
import scipy.spatial.transform as scipy_transform

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from xtrace.scipy.spatial import transform
from xtrace.scipy.spatial.transform import Rotation, Slerp

BOTH = ((xtrace, transform, ours), (jax, jax_transform, theirs))
QUATS = finite_values(np.float32, (5, 4), 1)
VECTORS = finite_values(np.float32, (5, 3), 2)
ANGLES = finite_values(np.float32, (5, 3), 3) / 4
HALF_TURNS = [np.diag(signs) for signs in ([1, -1, -1], [-1, 1, -1], [-1, -1, 1])]
MATRICES = np.stack([np.eye(3), *HALF_TURNS]).astype(np.float32)
TIMES = np.array([0, 1, 2.5, 3, 5], np.float32)

# What the functions do, written for a package's Rotation and an array for each letter.
VALUES = {
    "from_quat": lambda R, q: R.from_quat(q).quat,
    "from_quat of a matrix": lambda R, q: R.from_quat(q[0]).quat,
    "from_quat of integers": lambda R, i: R.from_quat(i).as_rotvec(),
    "from_matrix": lambda R, q: R.from_matrix(R.from_quat(q).as_matrix()).quat,
    "from_matrix of half turns": lambda R, m: R.from_matrix(m).quat,
    "from_matrix of no rotation": lambda R, v: R.from_matrix(v[:3]).quat,
    "from_rotvec": lambda R, v: R.from_rotvec(v).quat,
    "from_rotvec in degrees": lambda R, v: R.from_rotvec(30 * v, degrees=True).quat,
    "from_rotvec of small angles": lambda R, v: R.from_rotvec(1e-4 * v).quat,
    "from_mrp": lambda R, v: R.from_mrp(v).quat,
    **{f"from_euler {seq}": lambda R, a, seq=seq: R.from_euler(seq, a[:, : len(seq)]).quat
       for seq in ("xyz", "XYZ", "zxz", "YXY", "zy", "XZ", "y", "Z")},
    "from_euler in degrees": lambda R, a: R.from_euler("zyx", 100 * a, True).quat,
    "from_euler of a scalar": lambda R, a: R.from_euler("x", a[0, 0]).quat,
    "from_euler of a number": lambda R, a: R.from_euler("x", 0.5).quat,
    "as_quat, scalar first": lambda R, q: R.from_quat(q).as_quat(scalar_first=True),
    "as_quat, canonical": lambda R, q: R.from_quat(q).as_quat(canonical=True),
    "as_quat, canonical and scalar first": lambda R, q: R.from_quat(q[0]).as_quat(True, True),
    "as_matrix": lambda R, q: R.from_quat(q).as_matrix(),
    "as_rotvec": lambda R, q: R.from_quat(q).as_rotvec(),
    "as_rotvec in degrees": lambda R, q: R.from_quat(q).as_rotvec(degrees=True),
    "as_rotvec of small angles": lambda R, v: R.from_rotvec(1e-4 * v).as_rotvec(),
    "as_mrp": lambda R, q: R.from_quat(q).as_mrp(),
    **{f"as_euler {seq}": lambda R, q, seq=seq: R.from_quat(q).as_euler(seq)
       for seq in ("xyz", "XYZ", "zyx", "ZYX", "yxz", "zxz", "XYX", "yzy", "ZYZ")},
    "as_euler in degrees": lambda R, q: R.from_quat(q[0]).as_euler("xyz", degrees=True),
    "inv": lambda R, q: R.from_quat(q).inv().quat,
    "magnitude": lambda R, q: R.from_quat(q).magnitude(),
    "mean": lambda R, q: R.from_quat(q).mean().as_matrix(),
    "mean with weights": lambda R, q, v: R.from_quat(q).mean(v[:, 0] ** 2).as_matrix(),
    "apply to an array": lambda R, q, v: R.from_quat(q).apply(v),
    "apply to one vector": lambda R, q, v: R.from_quat(q).apply(v[0]),
    "apply one rotation": lambda R, q, v: R.from_quat(q[0]).apply(v),
    "apply inverse": lambda R, q, v: R.from_quat(q).apply(v, inverse=True),
    "products": lambda R, q: (R.from_quat(q) * R.from_quat(q[::-1])).quat,
    "products with one": lambda R, q: (R.from_quat(q) * R.from_quat(q[0])).quat,
    "products of one": lambda R, q: (R.from_quat(q[0]) * R.from_quat(q)).quat,
    "items": lambda R, q: (R.from_quat(q)[1].quat, R.from_quat(q)[1:3].quat, R.from_quat(q)[np.array([0, 2])].quat),
    "concatenate": lambda R, q: R.concatenate([R.from_quat(q), R.from_quat(q[:2])]).quat,
    "identity": lambda R, q: R.identity().quat,
    "identity in half precision": lambda R, q: R.identity(dtype=np.float16).quat,
}
OPERANDS = {"q": QUATS, "v": VECTORS, "a": ANGLES, "m": MATRICES, "i": np.array([1, -2, 3, 4])}


def call(name, package, library, convert):
    """Return a function of arrays, and these."""
    function = VALUES[name]
    letters = [n for n in inspect.signature(function).parameters if n in OPERANDS]
    return (lambda *arrays: function(library.Rotation, *arrays)), [convert(OPERANDS[n]) for n in letters]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_jax(name):
    found = []
    for package, library, convert in BOTH:
        function, operands = call(name, package, library, convert)
        found.append(package.jit(function)(*operands))
    # Angles in degrees are up to 180; a rounding of sums that cancel is as one of their terms, which are below 8.
    assert_same(*found, 64, name, floor=180 if "degrees" in name else 8)


# Where jax has NaN, and where a derivative is exact to the conditioning of an eigenvector only.
NO_DERIVATIVE = {"from_quat of integers", "from_matrix of half turns", "identity", "identity in half precision",
                 "from_matrix of no rotation", "mean", "mean with weights", "items", "from_euler of a scalar",
                 "from_euler of a number"}


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VALUES.keys() - NO_DERIVATIVE))
def test_gradients_are_those_of_jax(name):
    found = []
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for package, library, convert in BOTH:
            function, operands = call(name, package, library, convert)

            def loss(*arrays, function=function, package=package):
                return sum(package.numpy.sum(package.numpy.sin(y)) for y in package.tree.leaves(function(*arrays)))

            operands = [x.astype(np.float64) for x in operands]
            found.append(package.jit(package.grad(loss, tuple(range(len(operands)))))(*operands))
    # Small angles, 1e-4, are the quotient of numbers with this many digits less.
    assert_same(*found, 1e5 if "small" in name else 4096, name, floor=64)


def test_derivatives_at_no_rotation():
    # The limits: half the vector beside 1, and back.
    one = np.eye(3, dtype=np.float32)
    at = np.zeros(3, np.float32)
    jacobian = xtrace.jacobian(lambda v: Rotation.from_rotvec(v).quat)(at)
    assert_same(jacobian, ours(np.concatenate([one / 2, np.zeros((1, 3), np.float32)])))
    for there in (lambda r: r.as_rotvec(), lambda r: 4 * r.as_mrp()):
        assert_same(xtrace.jacobian(lambda v, there=there: there(Rotation.from_rotvec(v)))(at), ours(one))


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "yxz", "zxz", "XYX"])
@pytest.mark.parametrize("end", [0, 1])
def test_angles_that_are_not_unique(seq, end):
    middle = [[-np.pi / 2, np.pi / 2], [0, np.pi]][seq[0] == seq[2]][end]
    with xtrace.enable_x64(True):
        rotation = Rotation.from_euler(seq, np.array([0.3, middle, 0.4]))
        angles = rotation.as_euler(seq)
        # Here the matrix knows the sum or the difference of the two angles alone.
        assert_same(rotation.as_matrix(), Rotation.from_euler(seq, angles).as_matrix(), 64, floor=1)
        assert abs(float(angles[1]) - middle) < 1e-7
        assert angles[2] == 0


def test_slerp_is_that_of_jax():
    queries = np.array([0.5, 0, 1, 1.25, 4.9, 5], np.float32)
    made = []
    for _, library, convert in BOTH:
        made.append(library.Slerp.init(convert(TIMES), library.Rotation.from_quat(convert(QUATS))))
    assert_same(xtrace.tree.leaves(made[0]), jax.tree.leaves(made[1]), 64, floor=4)
    assert str(xtrace.tree.structure(made[0])) == str(jax.tree.structure(made[1]))
    # Of jax's operations each is a program outside of jit.
    in_jax = jax.jit(lambda one, times: (one(times).as_matrix(), jax.grad(lambda t: one(t).as_quat().sum())(1.25)))
    for times in (queries, 0.7):
        matrices, slope = in_jax(made[1], times)
        assert_same(made[0](times).as_matrix(), matrices, 64, floor=4)
    assert_same(xtrace.grad(lambda t: made[0](t).as_quat().sum())(1.25), slope, 64, floor=4)
    assert_same(xtrace.vmap(made[0])(queries).quat, made[0](queries).quat, 64, floor=4)
    # The first and the last motion go on beyond the ends.
    before, first, after = (made[0](t) for t in (-1.0, 0.0, 1.0))
    assert_same((first * before.inv()).as_matrix(), (after * first.inv()).as_matrix(), 64, floor=4)


def test_rotations_are_pytrees():
    r = Rotation.from_quat(QUATS)
    assert str(xtrace.tree.structure(r)) == str(jax.tree.structure(jax_transform.Rotation.from_quat(QUATS)))
    assert len(r) == 5 and not r.single and r[0].single
    inverses = xtrace.jit(lambda r: r.inv())(r)
    assert isinstance(inverses, Rotation)
    assert_same(xtrace.vmap(lambda r: r.as_rotvec())(r), r.as_rotvec(), 64, floor=4)
    assert_same((r * inverses).magnitude() < 1e-3, ours(np.ones(5, bool)))


def test_what_jax_lacks():
    assert_same(Rotation.identity(2).quat, ours(np.array([[0, 0, 0, 1]] * 2, np.float32)))
    one = Rotation.from_quat(QUATS[0])
    assert Rotation.concatenate([one, one, Rotation.identity(3)]).quat.shape == (5, 4)
    assert_same(one.mean().as_matrix(), one.as_matrix(), 64, floor=1)
    draws = Rotation.random(xtrace.random.key(0), 4000)
    assert Rotation.random(xtrace.random.key(0)).single
    # Of uniform rotations an element of the matrix has mean 0 and variance 1/3, and a product with another mean 0.
    elements = np.asarray(draws.as_matrix()).reshape(-1, 9)
    np.testing.assert_allclose(elements.T @ elements / 4000, np.eye(9) / 3, atol=5 / np.sqrt(4000))
    np.testing.assert_allclose(elements.mean(0), 0, atol=5 / np.sqrt(3 * 4000))


@pytest.mark.parametrize("seq", ["xyz", "ZXZ", "zyx"])
def test_conventions_are_those_of_scipy(seq):
    with xtrace.enable_x64(True):
        other = scipy_transform.Rotation.from_euler(seq, ANGLES)
        mine = Rotation.from_euler(seq, ANGLES.astype(np.float64))
        for found, wanted in ((mine.as_matrix(), other.as_matrix()), (mine.as_mrp(), other.as_mrp()),
                              (mine.apply(VECTORS), other.apply(VECTORS)), (mine.as_rotvec(), other.as_rotvec()),
                              ((mine * mine[::-1]).as_matrix(), (other * other[::-1]).as_matrix()),
                              (mine.mean().as_matrix(), other.mean().as_matrix())):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-12)


MISTAKES = {
    "quaternion": (lambda: Rotation.from_quat(np.ones(3)), ValueError, r"last axis of quat must have the size 4"),
    "complex": (lambda: Rotation.from_quat(np.ones(4) + 1j), TypeError, r"quat must be real, got complex64\[4\]"),
    "text": (lambda: Rotation.from_quat("x"), TypeError, "not a valid JAX type"),
    "matrix": (lambda: Rotation.from_matrix(np.ones((2, 3))), ValueError, "the last two axes must have the size 3"),
    "vector": (lambda: Rotation.from_rotvec(1.0), ValueError, r"rotvec must have the size 3, got the shape \(\)"),
    "parameters": (lambda: Rotation.from_mrp(np.ones(4)), ValueError, "mrp must have the size 3"),
    "mixed axes": (lambda: Rotation.from_euler("xYz", np.ones(3)), ValueError, "turn with the body, got 'xYz'"),
    "too many axes": (lambda: Rotation.from_euler("xyzx", np.ones(4)), ValueError, "upto 3 characters, got 'xyzx'"),
    "no axes": (lambda: Rotation.from_euler("", np.ones(0)), ValueError, "non-empty string"),
    "repeated axes": (lambda: Rotation.from_euler("xx", np.ones(2)), ValueError, "consecutive axes to be different"),
    "angles": (lambda: Rotation.from_euler("xyz", np.ones(2)), ValueError, "angles must have the size 3, one angle"),
    "number for axes": (lambda: Rotation.from_euler(3, 1.0), TypeError, "seq must be a string such as 'xyz', got 3"),
    "two axes": (lambda: Rotation.identity().as_euler("xy"), ValueError, "Expected 3 axes, got xy"),
    "factor": (lambda: Rotation.identity() * 3, TypeError, "expected a Rotation, got 3"),
    "lengths": (lambda: Rotation.identity(2) * Rotation.identity(3), ValueError, "Incompatible shapes"),
    "vectors": (lambda: Rotation.identity().apply(np.ones(2)), ValueError, "vectors must have the size 3"),
    "weights": (lambda: Rotation.identity(2).mean(np.ones(3)), ValueError, r"got the shape \(3,\) for 2 rotations"),
    "length of one": (lambda: len(Rotation.identity()), TypeError, r"Single rotation has no len\(\)"),
    "item of one": (lambda: Rotation.identity()[0], TypeError, "Single rotation is not subscriptable"),
    "none": (lambda: Rotation.concatenate([]), ValueError, "expected at least one rotation"),
    "no rotations": (lambda: Rotation.concatenate([1]), TypeError, "expected a Rotation, got 1"),
    "no sequence": (lambda: Rotation.concatenate(Rotation.identity(2)), TypeError, "expected a list or tuple"),
    "slerp of one": (lambda: Slerp.init([0.0], Rotation.identity()), ValueError, "at least 2 rotations"),
    "slerp of numbers": (lambda: Slerp.init([0.0], 3), TypeError, "must be a Rotation instance, got 3"),
    "slerp times": (lambda: Slerp.init(TIMES, Rotation.identity(2)), ValueError, "got 2 rotations and 5 timestamps"),
    "slerp matrix": (lambda: Slerp.init(ANGLES, Rotation.identity(5)), ValueError, "times to be a vector, got 2 dim"),
    "slerp falling": (lambda: Slerp.init(-TIMES, Rotation.identity(5)), ValueError, "times must increase strictly"),
    "slerp queries": (
        lambda: Slerp.init(TIMES, Rotation.identity(5))(ANGLES), ValueError, "at most 1-dimensional, got 2"
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    function, error, message = MISTAKES[name]
    with pytest.raises(error, match=message) as caught:
        function()
    assert not any("it is a bug" in note for note in getattr(caught.value, "__notes__", ()))
