"""Spherical linear interpolation between rotations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.trace import Tracer
from xtrace.numpy.elementwise.ufuncs import clip
from xtrace.numpy.reductions.differences import diff
from xtrace.numpy.sorting.ordering import searchsorted
from xtrace.scipy.spatial.transform.rotations import Rotation, to_real


class Slerp(NamedTuple):
    """An interpolator of rotations: between neighbours the rate and the axis are constant. A pytree of its arrays.

    `Slerp.init` makes one, and a call with times returns rotations.

    Attributes:
        times: the times of the rotations.
        timedelta: the differences of the times.
        rotations: the rotations without the last one.
        rotvecs: the rotation vectors from each rotation to the next.

    Example:
        >>> transform = scipy.spatial.transform
        >>> rotations = transform.Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
        >>> slerp = transform.Slerp.init([0.0, 1.0], rotations)
        >>> slerp(0.5).as_rotvec(degrees=True)
        Array([ 0.,  0., 45.], dtype=float32)

    Reference:
        Shoemake, "Animating rotation with quaternion curves", 1985.
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    @boundary
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Return the interpolator of rotations at times, a vector that increases strictly."""
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp: rotations must be a Rotation instance, got {abbreviate(rotations)}")
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp: rotations must be a sequence of at least 2 rotations")
        moments = to_real(times, "times", function="Slerp")
        if moments.ndim != 1:
            raise ValueError(f"Slerp: Expected times to be a vector, got {moments.ndim} dimensions")
        if len(moments) != len(rotations):
            raise ValueError(
                "Slerp: Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {len(moments)} timestamps"
            )
        # Traced values cannot be checked.
        if not isinstance(moments, Tracer) and not np.all(np.greater(np.diff(np.asarray(moments)), 0)):
            raise ValueError(f"Slerp: times must increase strictly, got {abbreviate(times)}")
        starts, ends = (Rotation(rotations.quat[part]) for part in (slice(None, -1), slice(1, None)))
        return cls(moments, diff(moments), starts, (starts.inv() * ends).as_rotvec())

    @boundary
    def __call__(self, times: Any) -> Rotation:
        """Return the rotation at each of the times, a scalar or a vector.

        Outside the given times the first and the last motion continue.
        """
        moments = to_real(times, "times", function="Slerp")
        if moments.ndim > 1:
            raise ValueError(f"Slerp: times must be at most 1-dimensional, got {moments.ndim} dimensions")
        index = clip(searchsorted(self.times, moments) - 1, 0, len(self.timedelta) - 1)
        share = (moments - self.times[index]) / self.timedelta[index]
        start: Rotation = self.rotations[index]
        return start * Rotation.from_rotvec(share[..., None] * self.rotvecs[index])
