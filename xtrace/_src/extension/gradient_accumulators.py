"""What the backward rules of users' operations add cotangents to, one for each leaf of the arguments."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.families import add_cotangents
from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.core.avals import ShapedArray
from xtrace._src.ops.references.binding import add_to_reference, make_reference, read_reference

__all__ = ["GradAccum", "NullAccum", "RefAccum", "ValAccum"]


class GradAccum:
    """Takes the cotangents of an argument.

    Args:
        aval: their type.

    Example:
        >>> issubclass(xtrace.experimental.hijax.ValAccum, xtrace.experimental.hijax.GradAccum)
        True
    """

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent; a `Zero` or None adds nothing."""
        raise NotImplementedError

    def freeze(self) -> Any:
        """Return the sum, a `Zero` if nothing was added."""
        raise NotImplementedError


class ValAccum(GradAccum):
    """Adds cotangents up in an array.

    Args:
        aval: their type.
        val: the sum so far; None for zero.

    Example:
        >>> total = xtrace.experimental.hijax.ValAccum(xtrace.typeof(1.0))
        >>> total.accum(jnp.float32(2.0)), total.accum(jnp.float32(3.0))
        (None, None)
        >>> total.freeze()
        Array(5., dtype=float32)
    """

    def __init__(self, aval: ShapedArray, val: Any = None) -> None:
        super().__init__(aval)
        self.val = val

    def accum(self, x: Any) -> None:
        """Add a cotangent; a `Zero` or None adds nothing."""
        if x is not None and not isinstance(x, Zero):
            self.val = x if self.val is None else add_cotangents(self.val, x)

    def freeze(self) -> Any:
        """Return the sum, a `Zero` if nothing was added."""
        return Zero(self.aval) if self.val is None else self.val


class RefAccum(GradAccum):
    """Adds cotangents up in a reference, which a rule may also write to in part.

    Args:
        aval: their type.
        ref: the reference; None for a new one of zeros, made when it is needed.

    Example:
        >>> ref = xtrace.new_ref(jnp.zeros(2))
        >>> total = xtrace.experimental.hijax.RefAccum(xtrace.typeof(jnp.zeros(2)), ref)
        >>> total.accum(jnp.ones(2)); total.ref[0] += 1.0
        >>> ref
        Ref([2., 1.], dtype=float32)
    """

    def __init__(self, aval: ShapedArray, ref: Any = None) -> None:
        super().__init__(aval)
        self.ref = ref

    def inst(self) -> RefAccum:
        """Make the reference if there is none, and return the accumulator itself."""
        if self.ref is None:
            self.ref = make_reference(Zero(self.aval).instantiate())
        return self

    def accum(self, x: Any) -> None:
        """Add a cotangent; a `Zero` or None adds nothing."""
        if x is not None and not isinstance(x, Zero):
            add_to_reference(self.inst().ref, x)

    def freeze(self) -> Any:
        """Return the sum, a `Zero` if nothing was added."""
        return Zero(self.aval) if self.ref is None else read_reference(self.ref)


class NullAccum(GradAccum):
    """Stands for a cotangent that is not wanted: it takes all and keeps nothing.

    Args:
        aval: their type.

    Example:
        >>> xtrace.experimental.hijax.NullAccum(xtrace.typeof(1.0)).accum(2.0)
    """

    def accum(self, x: Any) -> None:
        """Leave a cotangent alone."""

    def freeze(self) -> Any:
        """Return a `Zero`."""
        return Zero(self.aval)
