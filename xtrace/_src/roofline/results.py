"""The results of rooflines, and the arguments of rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings.mesh import BaseMesh


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and the dtype of an operand or a result.

    Args:
        shape: the sizes of the dimensions.
        dtype: the dtype.

    Example:
        >>> from xtrace.experimental.roofline import RooflineShape
        >>> RooflineShape(shape=(2, 3), dtype=jnp.dtype("float32")).bytes
        24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: ShapedArray) -> RooflineShape:
        """Return the shape and the dtype of `aval`."""
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"RooflineShape.from_aval: expected the type of an array, got {abbreviate(aval)}")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return count_bytes(ShapedArray(self.shape, self.dtype))

    @classmethod
    def total_bytes(cls, avals: Iterable[ShapedArray]) -> int:
        """Return the number of bytes of values of several types."""
        return sum([cls.from_aval(a).bytes for a in avals])


def count_bytes(aval: ShapedArray) -> int:
    """Return the number of bytes of a value of type `aval`; a token has none."""
    if not isinstance(aval, ShapedArray):
        return 0
    physical = physical_aval(aval)
    return int(math.prod(physical.shape) * physical.dtype.itemsize)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """The equation and the options of a rule's call.

    Args:
        name_stack: the named scopes of the equation.
        primitive: its operation.
        avals_in: the types of its operands.
        avals_out: the types of its results.
        jaxpr_eqn_ctx: None; JAX has settings of the equation there.
        mesh: the mesh of the devices, or None.
        pin_lhs_in_vmem: whether left operands of contractions are in fast memory already.
        pin_rhs_in_vmem: whether right operands of contractions are in fast memory already.

    Example:
        >>> from xtrace.experimental import roofline
        >>> double_p = xtrace.extend.core.Primitive("double_for_roofline")
        >>> _ = double_p.def_abstract_eval(lambda x: x)
        >>> @roofline.register_roofline(double_p)
        ... def rule(context, x):
        ...     return roofline.RooflineResult(flops=context.avals_out[0].size)
        >>> roofline.roofline(double_p.bind)(jnp.ones(3))[1].flops
        3
    """

    name_stack: Any
    primitive: Primitive
    avals_in: Any
    avals_out: Any
    jaxpr_eqn_ctx: Any
    mesh: BaseMesh | None
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """The work and the traffic of a program on one device; results may be added, and multiplied by numbers.

    Args:
        flops: the number of floating-point operations of contractions, which run on matrix units.
        unfused_flops: the number of floating-point operations of all operations.
        ici_bytes: for each mesh axis the number of bytes on its links.
        ici_latency: for each mesh axis the number of consecutive hops.
        hbm_bytes: the number of bytes read and written if all operations but contractions are fused.
        peak_hbm_bytes: the largest number of bytes in use at one time; a sum has the larger peak.
        unfused_hbm_bytes: the number of bytes read and written without fusion.

    Example:
        >>> from xtrace.experimental.roofline import RooflineResult
        >>> total = RooflineResult(flops=3, ici_bytes={"x": 4}) + RooflineResult(flops=1) * 2
        >>> total.flops, total.ici_bytes
        (5, {'x': 4})
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    # The traffic of the memory, with fusion.
    hbm_bytes: int = 0
    # The largest number of bytes in use at one time.
    peak_hbm_bytes: int = 0
    # The traffic of the memory, without fusion.
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """Return the result of an empty program."""
        return cls()

    def __add__(self, other: object) -> Any:
        if not isinstance(other, RooflineResult):
            return NotImplemented
        return RooflineResult(
            flops=self.flops + other.flops, unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=_add_by_axis(self.ici_bytes, other.ici_bytes),
            ici_latency=_add_by_axis(self.ici_latency, other.ici_latency), hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )

    def __mul__(self, factor: Any) -> Any:
        if not isinstance(factor, (int, float)):
            return NotImplemented
        fields: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            by_axis = isinstance(value, dict)
            fields[field.name] = {axis: factor * x for axis, x in value.items()} if by_axis else factor * value
        return RooflineResult(**fields)

    __rmul__ = __mul__


def _add_by_axis(first: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {axis: first.get(axis, 0) + other.get(axis, 0) for axis in (*first, *[a for a in other if a not in first])}
