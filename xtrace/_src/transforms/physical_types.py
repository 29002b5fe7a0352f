"""Operations on arrays of an extended dtype, written on arrays of their physical types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.stage import stage


def stage_on_physical_types(primitive: Primitive, parameters: tuple[Any, ...], avals: Sequence[ShapedArray]) -> Jaxpr:
    """Return the jaxpr of `primitive`, which only moves elements, on the physical types of extended operands.

    A physical type has ordinary elements, and the axes of one extended element last. The operation does the same at
    each position along these axes, so it is the operation on ordinary elements, batched over them.
    """
    (sizes,) = {a.dtype.trailing_shape for a in avals if isinstance(a.dtype, ExtendedDType)}
    extended = [isinstance(a.dtype, ExtendedDType) for a in avals]

    def apply(*values: object) -> list[Any]:
        result = primitive.bind_positional(values, parameters)
        return list(result) if primitive.multiple_results else [result]

    function: Callable[..., list[Any]] = apply
    for size in sizes:
        function = _map_over_elements(function, MappedAxis(size), extended)
    info = DebugInfo("emission", primitive.name, None, None)
    return stage(function, [physical_aval(a) for a in avals], info)[0]


def _map_over_elements(
    function: Callable[..., list[Any]], mapped: MappedAxis, extended: Sequence[bool]
) -> Callable[..., list[Any]]:
    """Return `function`, mapped over the last axis of its extended operands; it is the last axis of results, too."""

    def call(*values: Any) -> list[Any]:
        axes = [x.ndim - 1 if last else None for x, last in zip(values, extended, strict=True)]
        results, places = batch(function, mapped, values, axes)
        return [mapped.place(x, i, x.ndim - (i is not None)) for x, i in zip(results, places, strict=True)]

    return call
