"""Unit quaternions (x, y, z, w) and conversions to other representations of rotations, with any leading axes."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import absolute
from xtrace._src.core.arrays import Array
from xtrace.numpy.elementwise.ufuncs import arctan2, cos, sin, sqrt, square
from xtrace.numpy.indexing.selection import take_along_axis
from xtrace.numpy.indexing.where import where
from xtrace.numpy.linalg import eigh
from xtrace.numpy.manipulation.joins_and_splits import concatenate, stack
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.reductions import argmax
from xtrace.numpy.reductions.reductions import sum as total

# Below this angle a Taylor series is exact to double precision, and a quotient of small numbers is not.
_SMALL = 1e-3


def norm(x: Array) -> Array:
    """Return the length of vectors along the last axis, which is kept with size 1."""
    return sqrt(total(square(x), -1, keepdims=True))


@inline_jit
def normalize(quat: Array) -> Array:
    """Return quaternions divided by their norm."""
    return quat / norm(quat)


def _split(quat: Array) -> tuple[Array, Array]:
    """Return the vector part and the scalar part, both with the last axis."""
    return quat[..., :3], quat[..., 3:]


@inline_jit
def invert(quat: Array) -> Array:
    """Return the conjugate quaternions."""
    vector, scalar = _split(quat)
    return concatenate([-vector, scalar], -1)


@inline_jit
def compose(p: Array, q: Array) -> Array:
    """Return the products p q, the rotation q followed by p."""
    x, y, z, w = (p[..., i] for i in range(4))
    a, b, c, d = (q[..., i] for i in range(4))
    return stack([
        w * a + d * x + (y * c - z * b), w * b + d * y + (z * a - x * c), w * c + d * z + (x * b - y * a),
        w * d - x * a - y * b - z * c,
    ], -1)


def _negate_where(condition: Array, quat: Array) -> Array:
    return where(condition, -quat, quat)


@inline_jit
def make_canonical(quat: Array) -> Array:
    """Choose q or -q so that the first nonzero component of (w, x, y, z) is positive."""
    negative = reduce(
        # From the last component to the first: a nonzero component overrides those after it.
        lambda later, i: (quat[..., i] < 0) | ((quat[..., i] == 0) & later), (1, 0, 3), quat[..., 2] < 0
    )
    return _negate_where(negative[..., None], quat)


@inline_jit
def make_matrices(quat: Array) -> Array:
    """Return rotation matrices."""
    x, y, z, w = (quat[..., i] for i in range(4))
    xx, yy, zz, ww = (square(part) for part in (x, y, z, w))
    rows = (
        (xx - yy - zz + ww, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), -xx + yy - zz + ww, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), -xx - yy + zz + ww),
    )
    return stack([stack(row, -1) for row in rows], -2)


@inline_jit
def convert_matrices(matrix: Array) -> Array:
    """Return the quaternions of rotation matrices, by the largest component, which is safe to divide by."""
    diagonal = [matrix[..., i, i] for i in range(3)]
    trace = reduce(operator.add, diagonal)
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        # Four times the products of component i with the four components.
        parts = {
            i: 1 - trace + 2 * diagonal[i], j: matrix[..., j, i] + matrix[..., i, j],
            k: matrix[..., k, i] + matrix[..., i, k], 3: matrix[..., k, j] - matrix[..., j, k],
        }
        candidates.append(stack([parts[n] for n in range(4)], -1))
    turns = [matrix[..., (i + 2) % 3, (i + 1) % 3] - matrix[..., (i + 1) % 3, (i + 2) % 3] for i in range(3)]
    candidates.append(stack([*turns, 1 + trace], -1))
    choice = argmax(stack([*diagonal, trace], -1), -1)
    picked = take_along_axis(stack(candidates, -2), choice[..., None, None], -2)
    return normalize(picked[..., 0, :])


@inline_jit
def convert_rotation_vectors(vector: Array) -> Array:
    """Return the quaternions of rotations about vectors, by their length in radians."""
    squared = total(square(vector), -1, keepdims=True)
    small = squared <= _SMALL**2
    # The root has no derivative at zero; the series is used there.
    angle = sqrt(where(small, 1, squared))
    scale = where(small, 0.5 - squared / 48 + square(squared) / 3840, sin(angle / 2) / angle)
    scalar = where(small, 1 - squared / 8 + square(squared) / 384, cos(angle / 2))
    return concatenate([scale * vector, scalar], -1)


@inline_jit
def make_rotation_vectors(quat: Array) -> Array:
    """Return rotation vectors of at most π in length."""
    vector, scalar = _split(_negate_where(quat[..., 3:] < 0, quat))
    squared = total(square(vector), -1, keepdims=True)
    small = squared <= square(_SMALL / 2 * scalar)
    angle = 2 * arctan2(sqrt(where(small, 1, squared)), scalar)
    # A small angle has the square 4 tan² (1 - 2 tan² / 3), for the tangent of half the angle.
    tangent = squared / where(small, square(scalar), 1)
    near = 4 * tangent * (1 - 2 * tangent / 3)
    return where(small, 2 + near / 12 + 7 * square(near) / 2880, angle / sin(angle / 2)) * vector


@inline_jit
def convert_rodrigues(vector: Array) -> Array:
    """Return the quaternions of modified Rodrigues parameters."""
    squared = total(square(vector), -1, keepdims=True)
    return concatenate([2 * vector, 1 - squared], -1) / (1 + squared)


@inline_jit
def make_rodrigues(quat: Array) -> Array:
    """Return modified Rodrigues parameters of at most 1 in length."""
    vector, scalar = _split(_negate_where(quat[..., 3:] < 0, quat))
    return vector / (1 + scalar)


@inline_jit
def measure_angles(quat: Array) -> Array:
    """Return the angles of rotations, from 0 to π."""
    vector, scalar = _split(quat)
    return (2 * arctan2(norm(vector), absolute(scalar)))[..., 0]


@inline_jit
def rotate_vectors(quat: Array, vectors: Array) -> Array:
    """Rotate vectors."""
    return total(make_matrices(quat) * vectors[..., None, :], -1)


@inline_jit
def average(quat: Array, weights: Array) -> Array:
    """Return the unit quaternion q that maximizes the weighted sum of (q · quat[i])²."""
    _, vectors = eigh(matmul((weights[:, None] * quat).T, quat, precision="highest"))
    return normalize(vectors[:, -1])


def _rotate_about(axis: int, angle: Any) -> Array:
    """Return the quaternions of rotations about an axis."""
    half = angle / 2
    turning = sin(half)
    return stack([turning if i == axis else turning * 0 for i in range(3)] + [cos(half)], -1)


@inline_jit
def convert_euler_angles(angles: Array, *, axes: tuple[int, ...], intrinsic: bool) -> Array:
    """Return the quaternions of successive rotations about axes; intrinsic ones also turn the later axes."""
    turns = [_rotate_about(axis, angles[..., i]) for i, axis in enumerate(axes)]
    return reduce((lambda p, q: compose(p, q)) if intrinsic else (lambda p, q: compose(q, p)), turns)
