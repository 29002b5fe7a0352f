"""Rotations in three dimensions, kept as unit quaternions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.operators.promotion import as_inexact, promote_dtypes
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import ones
from xtrace.numpy.elementwise.ufuncs import deg2rad, rad2deg
from xtrace.numpy.manipulation.broadcasting import broadcast_arrays, broadcast_to
from xtrace.numpy.manipulation.joins_and_splits import concatenate
from xtrace.numpy.manipulation.shapes import atleast_1d, atleast_2d
from xtrace.random.continuous import normal
from xtrace.scipy.spatial.transform import quaternions
from xtrace.scipy.spatial.transform.euler_angles import make_euler_angles, parse_sequence


def to_real(value: Any, argument: str, *, function: str = "") -> Array:
    """Return real numbers, or lists of these, as a floating array of a strong type."""
    array = asarray(value)
    if dtypes.is_complex(operand_aval(array, argument, function=function).dtype):
        raise TypeError(
            f"{function or called_function()}: {argument} must be real, got "
            f"{operand_aval(array, argument, function=function)}"
        )
    floating = promote_dtypes((array,), as_inexact, function=function)[1][0]
    return convert_to(floating, floating.dtype)


def _to_vectors(value: Any, argument: str, size: int) -> Array:
    array = to_real(value, argument)
    if not array.ndim or array.shape[-1] != size:
        raise ValueError(
            f"{called_function()}: the last axis of {argument} must have the size {size}, got the shape {array.shape}"
        )
    return array


def _to_rotation(name: str, value: object) -> Rotation:
    if not isinstance(value, Rotation):
        raise TypeError(f"{name}: expected a Rotation, got {abbreviate(value)} of type {type(value)}")
    return value


class Rotation(NamedTuple):
    """A rotation in three dimensions, or an array of rotations; a pytree of its quaternions.

    `p * q` is the rotation q followed by p. An array of rotations has a length and can be indexed. All functions work
    under `jit`, `vmap` and `grad`.

    Attributes:
        quat: unit quaternions (x, y, z, w), of shape (4,) or (..., 4). The class stores them unchanged;
            `from_quat` divides them by their norm.

    Example:
        >>> Rotation = scipy.spatial.transform.Rotation
        >>> r = Rotation.from_rotvec([0.0, 0.0, 90.0], degrees=True)
        >>> r.apply(jnp.array([1.0, 2.0, 3.0]))
        Array([-1.9999999,  1.       ,  3.       ], dtype=float32)
        >>> (r * r).as_euler("xyz", degrees=True)
        Array([  0.,   0., 180.], dtype=float32)

    Reference:
        Diebel, "Representing attitude: Euler angles, unit quaternions, and rotation vectors", 2006.
    """

    quat: Any

    # From other representations

    @classmethod
    @boundary
    def from_quat(cls, quat: Any) -> Rotation:
        """Return rotations from quaternions (x, y, z, w), divided by their norm."""
        return cls(quaternions.normalize(_to_vectors(quat, "quat", 4)))

    @classmethod
    @boundary
    def from_matrix(cls, matrix: Any) -> Rotation:
        """Return rotations from matrices of shape (..., 3, 3); they should be orthogonal (unchecked)."""
        array = to_real(matrix, "matrix")
        if array.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation.from_matrix: the last two axes must have the size 3, got shape {array.shape}")
        return cls(quaternions.convert_matrices(array))

    @classmethod
    @boundary
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """Return rotations from vectors along the axes; their lengths are the angles, in radians or degrees."""
        vector = _to_vectors(rotvec, "rotvec", 3)
        return cls(quaternions.convert_rotation_vectors(deg2rad(vector) if degrees else vector))

    @classmethod
    @boundary
    def from_mrp(cls, mrp: Any) -> Rotation:
        """Return rotations from modified Rodrigues parameters: vectors along the axes of length tan(angle / 4)."""
        return cls(quaternions.convert_rodrigues(_to_vectors(mrp, "mrp", 3)))

    @classmethod
    @boundary
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Return successive rotations about one to three axes.

        seq: the axes, letters of "xyz" for extrinsic rotations or of "XYZ" for intrinsic ones (about the body's axes).
        angles: an array whose last axis has an angle for each letter, or a scalar for one letter. degrees: whether
        angles are in degrees.
        """
        axes, intrinsic = parse_sequence(seq)
        array = atleast_1d(to_real(angles, "angles"))
        if array.shape[-1] != len(axes):
            raise ValueError(
                f"Rotation.from_euler: the last axis of angles must have the size {len(axes)}, one angle for each "
                f"axis in {abbreviate(seq)}; got the shape {array.shape}"
            )
        if degrees:
            array = deg2rad(array)
        return cls(quaternions.convert_euler_angles(array, axes=axes, intrinsic=intrinsic))

    @classmethod
    @boundary
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """Return the identity rotation, or an array of `num` of them."""
        quat = asarray([0, 0, 0, 1], dtype=dtype)
        return cls(quat if num is None else broadcast_to(quat, (num, 4)))

    @classmethod
    @boundary
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Draw a rotation, or an array of `num` rotations, from the uniform distribution on all rotations."""
        # A vector of independent normal numbers has a uniform direction.
        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    @boundary
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Return an array of the rotations in a sequence of rotations and arrays of rotations."""
        if isinstance(rotations, Rotation) or not isinstance(rotations, Sequence):
            raise TypeError(
                f"Rotation.concatenate: expected a list or tuple of Rotations, got {abbreviate(rotations)}"
            )
        if not rotations:
            raise ValueError("Rotation.concatenate: expected at least one rotation, got none")
        return cls(concatenate([atleast_2d(_to_rotation("Rotation.concatenate", r).quat) for r in rotations]))

    # To other representations

    @boundary
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return unit quaternions (x, y, z, w).

        canonical: choose q or -q so that the first nonzero component of (w, x, y, z) is positive.
        scalar_first: give (w, x, y, z).
        """
        quat = quaternions.make_canonical(self.quat) if canonical else asarray(self.quat)
        return concatenate([quat[..., 3:], quat[..., :3]], -1) if scalar_first else quat

    @boundary
    def as_matrix(self) -> Array:
        """Return matrices of shape (..., 3, 3)."""
        return quaternions.make_matrices(self.quat)

    @boundary
    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return vectors along the axes; their lengths are the angles, from 0 to π, or to 180 degrees."""
        vector = quaternions.make_rotation_vectors(self.quat)
        return rad2deg(vector) if degrees else vector

    @boundary
    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters: vectors along the axes of length tan(angle / 4), at most 1."""
        return quaternions.make_rodrigues(self.quat)

    @boundary
    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return the angles about three axes; `seq` and `degrees` are as in `from_euler`.

        Angles lie between -π and π; the middle one lies between -π/2 and π/2, or between 0 and π if the first and the
        last axis are equal. At the ends of this range the outer angles are not unique, and the third is 0.
        """
        axes, intrinsic = parse_sequence(seq)
        if len(axes) != 3:
            raise ValueError(f"Rotation.as_euler: Expected 3 axes, got {seq}")
        angles = make_euler_angles(self.quat, axes=axes, intrinsic=intrinsic)
        return rad2deg(angles) if degrees else angles

    # Application and statistics

    @boundary
    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Return vectors, of shape (..., 3), rotated; with `inverse`, by the inverse rotations."""
        array = _to_vectors(vectors, "vectors", 3)
        rotation = self.inv() if inverse else self
        return quaternions.rotate_vectors(*_broadcast_leading(rotation.quat, array))

    @boundary
    def inv(self) -> Rotation:
        """Return the inverse rotations."""
        return Rotation(quaternions.invert(self.quat))

    @boundary
    def magnitude(self) -> Array:
        """Return the angles of the rotations in radians, from 0 to π."""
        return quaternions.measure_angles(self.quat)

    @boundary
    def mean(self, weights: Any = None) -> Rotation:
        """Return the mean rotation: its matrix is nearest to the weighted mean of the matrices.

        weights: a number for each rotation; None for equal ones.

        Reference: Markley, Cheng, Crassidis and Oshman, "Averaging quaternions", 2007.
        """
        quat = atleast_2d(self.quat)
        if weights is None:
            return Rotation(quaternions.average(quat, ones(len(quat), quat.dtype)))
        array = to_real(weights, "weights")
        if array.shape != quat.shape[:1]:
            raise ValueError(
                "Rotation.mean: Expected weights to have number of values equal to number of rotations, got the shape "
                f"{array.shape} for {len(quat)} rotations"
            )
        return Rotation(quaternions.average(quat, array))

    @property
    def single(self) -> bool:
        """Whether this is one rotation instead of an array of rotations."""
        return len(self.quat.shape) == 1

    @boundary
    def __mul__(self, other: Any) -> Rotation:
        second = _to_rotation("Rotation.__mul__", other)
        return Rotation(quaternions.compose(*_broadcast_leading(self.quat, second.quat)))

    @boundary
    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    @boundary
    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])


def _broadcast_leading(quat: Any, other: Any) -> tuple[Array, Array]:
    """Broadcast the leading axes of quaternions and vectors."""
    first, second = quat[..., :1], other[..., :1]
    if first.shape == second.shape:
        return quat, other
    shape = broadcast_arrays(first, second)[0].shape[:-1]
    return broadcast_to(quat, (*shape, 4)), broadcast_to(other, (*shape, other.shape[-1]))
