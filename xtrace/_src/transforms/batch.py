"""Batching: values carry an axis that the function does not see; batch rules say where it is in the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xtrace._src.algebra.resharding import knows_devices
from xtrace._src.algebra.vector_space import with_axis
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, aval_rules, own_aval
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.rule_error_notes import note_rule
from xtrace._src.core.jaxprs.effects import Effects, NamedAxis
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, explicit_part, insert_entry
from xtrace._src.core.tables import memoize
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.transforms.replay import StackedTrace, TraceStack

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.provenance import Provenance


class MappedAxis(NamedTuple):
    """The axis over which a function is mapped.

    `name` is its name, or None. `spmd_name` is the mesh axis over which the compiler splits it, or None. `split` is the
    sharding of the arguments along it over explicit mesh axes; None if they are whole.
    """

    size: int
    name: Any = None
    spmd_name: Any = None
    split: NamedSharding | None = None

    def place(self, x: Any, axis: int | None, destination: int = 0) -> Array:
        """Return `x` with its mapped axis at `destination`; an operand without one (`axis` is None) is repeated."""
        if axis is not None or self.split is None or not knows_devices(x, self.split.mesh):
            return with_axis(x, axis, self.size, destination)
        return with_axis(x, axis, self.size, destination, self._insert_split(aval_of(x), destination))

    def stack(self, aval: ShapedArray, axis: int) -> ShapedArray:
        """Return the type of values of type `aval` stacked along the mapped axis."""
        stacked = insert_axis(aval, axis, self.size)
        if self.split is None:
            return stacked
        return stacked.update(sharding=explicit_part(self._insert_split(aval, axis), stacked.ndim))

    def _insert_split(self, aval: ShapedArray, axis: int) -> NamedSharding:
        assert self.split is not None
        own = aval.explicit_sharding.spec if aval.explicit_sharding is not None else PartitionSpec()
        return insert_entry(self.split.update(spec=own), aval.ndim, axis, self.split.spec[0])


@memoize(4096)
def remove_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    """Return the type of one slice of a value of type `aval` along an axis."""
    shape, sharding = aval.shape, aval.explicit_sharding
    if sharding is not None:
        spec = sharding.spec
        sharding = sharding.update(spec=spec.update(partitions=spec[:axis] + spec[axis + 1 :]))
    return aval.update(shape=shape[:axis] + shape[axis + 1 :], sharding=sharding)


def insert_axis(aval: ShapedArray, axis: int, size: int) -> ShapedArray:
    """Return the type of values of type `aval` stacked along a new axis."""
    shape, sharding = aval.shape, aval.explicit_sharding
    if sharding is not None:
        sharding = insert_entry(sharding, aval.ndim, axis, None)
    return aval.update(shape=(*shape[:axis], size, *shape[axis:]), sharding=sharding)


class BatchTracer(Tracer):
    """A value for each index of the mapped axis: one array, with this axis at position `axis`."""

    __slots__ = ("value", "axis")

    def __init__(self, trace: BatchTrace, value: Any, axis: int) -> None:
        self.owner, self.value, self.axis = trace, value, axis
        self.aval = remove_axis(aval_of(value), axis)

    def get_referent(self) -> Any:
        return self.value.get_referent() if isinstance(self.value, Tracer) else self.value

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={aval_of(self.value)})"


aval_rules[BatchTracer] = own_aval


class BatchTrace(StackedTrace):
    """Applies batch rules, under its parent, to operations on its tracers, and to operations along its named axis."""

    __slots__ = ("mapped", "named_axis", "described")

    def __init__(self, parent: Trace, mapped: MappedAxis, described: Callable[[], DebugInfo] | None = None) -> None:
        super().__init__(parent)
        self.described = described
        self.mapped = mapped
        self.stack = TraceStack.below(self)
        self.named_axis = None if mapped.name is None else (mapped.name, mapped.size)

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        values: list[Any] = []
        axes: list[int | None] = []
        owned = False
        for x in operands:
            if type(x) is BatchTracer and x.owner is self:
                owned = True
                values.append(x.value)
                axes.append(x.axis)
            else:
                values.append(x)
                axes.append(None)
        if not owned and (primitive.effects is None or not self._works_along(primitive.find_effects(parameters))):
            return self.parent.process(primitive, operands, parameters)
        try:
            if owned and self.stack is not None and primitive.replayable:
                made = self.stack.process(primitive, operands, parameters)
                if made is not None:
                    return made
            named = dict(zip(primitive.parameters, parameters)) if parameters else {}
            rule = primitive.batch or primitive.rule("batch")
            outer = current_trace.get()
            try:
                current_trace.set(self.parent)
                results, where = rule(self.mapped, values, axes, **named)
            finally:
                current_trace.set(outer)
        except Exception as error:
            note_rule(error, "batch", primitive, operands)
            raise
        if primitive.multiple_results:
            return self._tracers(results, where)
        return results if where is None else BatchTracer(self, results, where)

    def owns_any(self, values: Sequence[Any]) -> bool:
        for x in values:  # noqa: SIM110 - a generator would be another frame for each operation
            if type(x) is BatchTracer and x.owner is self:
                return True
        return False

    @property
    def signature(self) -> MappedAxis:
        return self.mapped

    def copy_above(self, parent: Trace) -> BatchTrace:
        made = BatchTrace(parent, self.mapped)
        made.stack = None
        return made

    def flatten_tracer(self, tracer: Any) -> tuple[Any, tuple[Any, ...]]:
        return tracer.axis, (tracer.value,)

    def unflatten_tracer(self, label: Any, *values: Any) -> BatchTracer:
        return BatchTracer(self, values[0], label)

    def _tracers(self, results: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
        return [x if i is None else BatchTracer(self, x, i) for x, i in zip(results, axes, strict=True)]

    def _works_along(self, effects: Effects) -> bool:
        return any(isinstance(e, NamedAxis) and e.axis == self.mapped.name for e in effects)

    def find_provenance(self, tracer: Tracer) -> Provenance:
        """Return the provenance of the tracer, for messages."""
        assert isinstance(tracer, BatchTracer)
        note = f"The value is mapped by vmap: it stands for {self.mapped.size} values at once."
        return explain.provenance_under(self, "vmap", (tracer.value,), note)

    def __repr__(self) -> str:
        return f"BatchTrace(level={sum(isinstance(t, BatchTrace) for t in self.enclosing())})"


def batch(
    function: Callable[..., Sequence[Any]], mapped: MappedAxis, values: Sequence[Any], axes: Sequence[int | None],
    described: Callable[[], DebugInfo] | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Return the results of `function`, a flat sequence, for all indices of the axis, and its position in each result.

    The position is None for a result that is the same for all indices. `described` returns a description of the user's
    function, for messages.
    """
    trace = BatchTrace(current_trace.get(), mapped, described)
    try:
        with use_trace(trace):
            results = function(
                *[x if i is None else BatchTracer(trace, x, i) for x, i in zip(values, axes, strict=True)]
            )
    finally:
        trace.end()
    own = [type(x) is BatchTracer and x.owner is trace for x in results]
    values_out = [x.value if mine else x for x, mine in zip(results, own, strict=True)]
    places = [x.axis if mine else None for x, mine in zip(results, own, strict=True)]
    if config.check_tracer_leaks.value:
        del results
        explain.check_leaks(trace)
    return values_out, places
