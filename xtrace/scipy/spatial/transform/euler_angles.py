"""Euler angles: their sequences of axes, and the angles of a rotation."""

from __future__ import annotations

import itertools
import math

from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import absolute
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace.numpy.elementwise.ufuncs import arctan2, hypot
from xtrace.numpy.indexing.where import where
from xtrace.numpy.manipulation.joins_and_splits import stack

# The tolerance for gimbal lock, where only the sum or the difference of the outer angles is determined.
_DEGENERATE = 1e-7


def parse_sequence(seq: object) -> tuple[tuple[int, ...], bool]:
    """Return the numbers of the axes, and whether rotations are intrinsic (capital letters)."""
    if not isinstance(seq, str):
        raise TypeError(f"{called_function()}: seq must be a string such as 'xyz', got {abbreviate(seq)}")
    if not 1 <= len(seq) <= 3:
        raise ValueError(
            f"{called_function()}: Expected axis specification to be a non-empty string of upto 3 characters, got "
            f"{abbreviate(seq)}"
        )
    intrinsic = set(seq) <= set("XYZ")
    if not intrinsic and not set(seq) <= set("xyz"):
        raise ValueError(
            f"{called_function()}: Expected axes from seq to be from 'x', 'y', 'z' for fixed axes, or from 'X', 'Y', "
            f"'Z' for axes that turn with the body, got {abbreviate(seq)}"
        )
    if any(first == second for first, second in itertools.pairwise(seq)):
        raise ValueError(f"{called_function()}: Expected consecutive axes to be different, got {abbreviate(seq)}")
    return tuple("xyz".index(letter) for letter in seq.lower()), intrinsic


def _wrap(angle: Array) -> Array:
    """Wrap angles between -2π and 2π to the range from -π to π."""
    return where(angle < -math.pi, angle + 2 * math.pi, where(angle > math.pi, angle - 2 * math.pi, angle))


@inline_jit
def make_euler_angles(quat: Array, *, axes: tuple[int, ...], intrinsic: bool) -> Array:
    """Return three angles about the axes; the third is 0 if they are not unique.

    Bernardes and Viollet, "Quaternion to Euler angles conversion: a direct, general and computationally efficient
    method", 2022, for extrinsic rotations; intrinsic ones reverse the order.
    """
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    parity = (i - j) * (j - k) * (k - i) // 2
    x, y, z = (quat[..., n] for n in (i, j, k))
    w = quat[..., 3]
    a, b, c, d = (w, x, y, z * parity) if symmetric else (w - y, x + z * parity, y + w, z * parity - x)
    middle = 2 * arctan2(hypot(c, d), hypot(a, b))
    at_zero, at_pi = absolute(middle) <= _DEGENERATE, absolute(middle - math.pi) <= _DEGENERATE
    half_sum, half_difference = arctan2(b, a), arctan2(d, c)
    first, third = half_sum - half_difference, half_sum + half_difference
    if not symmetric:
        third, middle = third * parity, middle - math.pi / 2
    # Intrinsic rotations have the angles in reverse order.
    first, third = (third, first) if intrinsic else (first, third)
    turned = 2 * half_difference * (1 if intrinsic else -1)
    first = where(at_zero, 2 * half_sum, where(at_pi, turned, first))
    if not symmetric and intrinsic:
        first = where(at_zero | at_pi, first * parity, first)
    third = where(at_zero | at_pi, 0, third)
    return stack([_wrap(angle) for angle in (first, middle, third)], -1)
