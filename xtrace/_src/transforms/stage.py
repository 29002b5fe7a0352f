"""Staging: running a Python function on tracers and recording its operations as a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import reshard_p
from xtrace._src.core import dtypes
from xtrace._src.core.aligned_arrays import aligned_array
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import (
    AbstractRef,
    ShapedArray,
    ShapeDtypeStruct,
    aval_of,
    aval_rules,
    int_aval,
    own_aval,
    scalar_aval,
)
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.positions import Position, Scopes, add_scopes, user_position
from xtrace._src.core.garbage_collection import collection_paused
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, REFERENCE_EFFECT, Effects
from xtrace._src.core.jaxprs.ir import Atom, DebugInfo, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import MixedSums, MixedVarying, Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.sums import Sums
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.transforms.equation_templates import EquationTemplate

with late_modules(globals()):
    from xtrace._src.algebra import varying
    from xtrace._src.core.jaxprs.check import check_jaxpr

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.provenance import Provenance


class StagedTracer(Tracer):
    """A value in a program that is being recorded: a variable of the future jaxpr, or a literal.

    Args:
        trace: its trace.
        aval: its type.
        variable: the variable or the literal.

    Example:
        >>> kinds = []
        >>> _ = xtrace.make_jaxpr(lambda x: kinds.append(type(x)) or x)(1.0)
        >>> kinds[0] is xtrace.interpreters.partial_eval.DynamicJaxprTracer
        True
    """

    __slots__ = ("variable",)
    # The public name, which messages show.
    __module__, __qualname__ = "xtrace.interpreters.partial_eval", "DynamicJaxprTracer"

    def __init__(self, trace: StagingTrace, aval: ShapedArray, variable: Atom) -> None:
        self.owner = trace
        self.aval = aval
        self.variable = variable

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"


aval_rules[StagedTracer] = own_aval


class StagingTrace(Trace):
    """Records every primitive that is bound under it as an equation.

    Values from outside become constants: Python scalars, and NumPy's arrays of rank 0, become literals, other arrays
    and outer tracers constvars.
    """

    __slots__ = ("inputs", "equations", "constants", "captured", "effects", "debug_info", "checked", "scopes", "stack")

    def __init__(self, parent: Trace, debug_info: DebugInfo) -> None:
        super().__init__(parent)
        self.debug_info = debug_info
        self.inputs: list[Var] = []
        self.equations: list[JaxprEqn] = []
        self.constants: list[tuple[Var, Any]] = []
        # Maps the `_identity` of a value from outside to its variable, the constant in the program, and the value,
        # which stays alive so that no other value gets the same identity.
        self.captured: dict[Any, tuple[Var, Any, Any]] = {}
        self.effects: Effects = NO_EFFECTS
        # The scopes of the equations that are recorded now.
        self.scopes: Scopes = ()
        self.checked = config.check_tracer_leaks.value
        # The `TraceStack` of this trace alone, made at its first replay.
        self.stack: Any = None

    def end(self) -> None:
        self.stack = None
        super().end()

    def new_input(self, aval: ShapedArray) -> StagedTracer:
        """Add an input of type `aval`."""
        if type(aval) is AbstractRef:
            self.effects |= {REFERENCE_EFFECT}
        variable = Var(aval)
        self.inputs.append(variable)
        return StagedTracer(self, aval, variable)

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        if self.ended:
            raise RuntimeError(f"the trace of {self.debug_info} has ended; nothing can be recorded in it")
        try:
            invars: list[Atom] = [
                x.variable if type(x) is StagedTracer and x.owner is self else self.capture(x) for x in operands
            ]
        except TypeError:
            explain.check_operands(primitive.__name__, operands)
            raise
        try:
            types = primitive.infer_types(tuple([v.aval for v in invars]), parameters)
        except (MixedVarying, MixedSums):
            invars, types = self._unify_operands(primitive, invars, parameters)
        effects = NO_EFFECTS
        if primitive.effects is not None:
            effects = primitive.find_effects(parameters, [v.aval for v in invars])
            self.effects |= effects
        source = user_position(2)
        if self.scopes:
            source = add_scopes(self.scopes, source)
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in types]
            self.equations.append(JaxprEqn(invars, outvars, primitive, parameters, effects, source))
            return [StagedTracer(self, v.aval, v) for v in outvars]
        variable = Var(types)
        self.equations.append(JaxprEqn(invars, [variable], primitive, parameters, effects, source))
        return StagedTracer(self, types, variable)

    def _unify_operands(
        self, primitive: Primitive, invars: list[Atom], parameters: tuple[Any, ...]
    ) -> tuple[list[Atom], Any]:
        """Return operands that vary, or are reduced, along the same mesh axes, and the types of the results."""
        while True:
            try:
                return invars, primitive.infer_types(tuple([v.aval for v in invars]), parameters)
            except MixedVarying as mixed:
                invars = [self._vary(x, mixed.varying) for x in invars]
            except MixedSums as mixed:
                invars = [self._reduce_scalar(x, mixed) if mixed.concerns(x.aval) else x for x in invars]

    def _apply(self, primitive: Primitive, atom: Atom, parameter: Any) -> Any:
        return self.process(primitive, [StagedTracer(self, atom.aval, atom)], (parameter,)).variable

    def _vary(self, atom: Atom, axes: frozenset[Any]) -> Atom:
        """Return an operand, cast to vary along all of `axes`."""
        missing = axes - atom.aval.varying
        if not missing:
            return atom
        if type(atom) is Literal:
            return Literal(atom.value, atom.aval.update(varying=axes))
        formed = missing & atom.aval.manual_sums.reduced
        for primitive, names in ((varying.reduced_vary_cast, formed), (varying.pvary, missing - formed)):
            if names:
                atom = self._apply(primitive, atom, tuple(sorted(names, key=str)))
        return atom

    def _reduce_scalar(self, atom: Atom, mixed: MixedSums) -> Atom:
        """Return a scalar, cast to be reduced along mesh axes."""
        if mixed.sharding is not None:
            atom = self._apply(reshard_p, atom, mixed.sharding)
        if mixed.manual and type(atom) is Literal:
            return Literal(atom.value, atom.aval.update(manual_sums=Sums(reduced=mixed.manual)))
        if mixed.manual:
            atom = self._apply(varying.preduced, atom, tuple(sorted(mixed.manual, key=str)))
        return atom

    def append(self, template: EquationTemplate, inputs: list[Atom], source: Position | None) -> Sequence[Atom]:
        """Append the equations of a template, applied to `inputs`, and return the outputs."""
        return template.instantiate(self, inputs, source)

    def constant(self, value: Any, aval: ShapedArray) -> StagedTracer:
        """Return a NumPy array, or a concrete array, as a tracer of a constant of type `aval`."""
        if is_symbolic(value):
            return StagedTracer(self, aval, Literal(value, aval))
        if not aval.shape:
            scalar = dtypes.cast(value, aval.dtype)
            return StagedTracer(self, aval, Literal(scalar.item() if aval.dtype.isbuiltin == 1 else scalar[()], aval))
        identity = _identity(value)
        captured = self.captured.get(identity)
        if captured is not None and captured[0].aval is aval and _is_unchanged(value, captured[1]):
            return StagedTracer(self, aval, captured[0])
        kept = _copy(value, aval.dtype) if type(value) is np.ndarray else value
        return StagedTracer(self, aval, self._add_constant(identity, aval, kept, value))

    def capture(self, value: Any) -> Atom:
        """Return the atom of a value from outside this trace.

        Raises OverflowError for a Python int that the default integer dtype cannot hold, and TypeError for a value that
        is no array.
        """
        kind = type(value)
        if kind is Literal:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return Literal(value, int_aval(value))
        if kind is float or kind is bool or kind is complex:
            return Literal(value, scalar_aval(kind))
        identity = _identity(value)
        captured = self.captured.get(identity)
        if captured is not None and _is_unchanged(value, captured[1]):
            return captured[0]
        aval = aval_of(value)
        if type(aval) is AbstractRef:
            self.effects |= {REFERENCE_EFFECT}
        if isinstance(value, Tracer):
            self._check_in_scope(value)
            kept: Any = value
        elif kind is ShapeDtypeStruct or type(aval) is AbstractRef:
            kept = value
        elif is_symbolic(value):
            return Literal(value, aval)
        elif not aval.shape and isinstance(aval.dtype, np.dtype) and not isinstance(value, Array):
            return Literal(dtypes.cast(value, aval.dtype)[()], aval)
        elif isinstance(value, (np.ndarray, np.generic)):
            # The caller may write to the array later; the program keeps the present value.
            kept = _copy(value, aval.dtype)
        else:
            kept = value
        return self._add_constant(identity, aval, kept, value)

    def _add_constant(self, identity: Any, aval: ShapedArray, kept: Any, value: Any) -> Var:
        """Add the constant `kept`, in the place of `value` from outside, and return its variable."""
        variable = Var(aval)
        self.constants.append((variable, kept))
        self.captured[identity] = (variable, kept, value)
        return variable

    def _check_in_scope(self, tracer: Tracer) -> None:
        if tracer.owner.ended or tracer.owner not in self.enclosing():
            raise explain.unexpected_tracer(tracer)

    def atom(self, value: object) -> Atom:
        """Return the atom of any value, inside or outside this trace."""
        if type(value) is StagedTracer and value.owner is self:
            return value.variable
        return self.capture(value)

    def find_provenance(self, tracer: Tracer) -> Provenance:
        """Return the provenance of the tracer, for messages."""
        assert isinstance(tracer, StagedTracer)
        return self.provenance_in(self.equations, tracer.variable)

    def provenance_in(self, equations: list[JaxprEqn], variable: Atom) -> Provenance:
        """Return the provenance of a variable in `equations`, the equations of the trace."""
        outer = [(v, value) for v, value in self.constants if isinstance(value, Tracer)]
        return explain.Provenance.of(variable, self.inputs, equations, self.debug_info, outer)

    def find_origin(self, tracer: Tracer) -> Position | None:
        """Return the position of the equation that made `tracer`; None for an input."""
        assert isinstance(tracer, StagedTracer)
        for equation in self.equations:
            if tracer.variable in equation.outvars:
                return equation.source
        return None

    def __repr__(self) -> str:
        level = sum(isinstance(t, StagingTrace) for t in self.enclosing())
        return f"DynamicJaxprTrace(level={level}/0)"


# The number of bytes that are compared at a time. Copies of at least this size are aligned, so that CPU programs can
# share their memory.
_CHUNK = 1 << 20

# Maps the bytes of an element to an integer dtype of this size, to compare bits.
_INTEGERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _identity(value: object) -> Any:
    """Return a key that is equal for two objects of one array: NumPy makes a new object for each view."""
    if type(value) is np.ndarray:
        return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype
    return id(value)


def _copy(value: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return a copy of a NumPy array as an array of `dtype`."""
    if value.size * np.dtype(dtype).itemsize < _CHUNK or value.dtype == dtypes.float0:
        return dtypes.cast(value, dtype)
    kept = aligned_array(value.shape, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        kept[...] = value
    return kept


def _is_unchanged(value: object, kept: Any) -> bool:
    """Return whether a captured value still equals its copy `kept`; only NumPy arrays can change."""
    if type(value) is not np.ndarray:
        return True
    array = value if value.dtype == kept.dtype else dtypes.cast(value, kept.dtype)
    if array.nbytes < _CHUNK:
        return bool(array.tobytes() == kept.tobytes())
    if not array.flags.c_contiguous:
        # Bits are compared, because NaN is not equal to itself.
        bits = _INTEGERS.get(array.itemsize)
        return bits is not None and np.array_equal(array.view(bits), kept.view(bits))
    one, other = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (array, kept)]
    end = one.size // _CHUNK * _CHUNK
    chunks = zip(*[x[:end].view(np.uint64).reshape(-1, _CHUNK // 8) for x in (one, other)], strict=True)
    return one[end:].tobytes() == other[end:].tobytes() and all(np.array_equal(a, b) for a, b in chunks)


def stage(
    function: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], debug_info: DebugInfo
) -> tuple[Jaxpr, list[Any]]:
    """Run ``function(*tracers)``, which returns a flat sequence of arrays, and return its jaxpr and its constants.

    A constant may be a tracer of an enclosing trace. Raises TypeError for a result that is no array.
    """
    if config.no_tracing.value:
        raise RuntimeError(
            f"{debug_info.function} would be traced for {debug_info.transformation}, and the setting jax_no_tracing "
            "forbids that; call it with arguments of these types before, or outside the block"
        )
    trace = StagingTrace(current_trace.get(), debug_info)
    try:
        with use_trace(trace), collection_paused():
            tracers = [trace.new_input(aval) for aval in in_avals]
            results = function(*tracers)
            outvars = [trace.atom(x) for x in results]
    finally:
        trace.end()
    constvars, consts = [v for v, _ in trace.constants], [kept for _, kept in trace.constants]
    jaxpr = Jaxpr(constvars, trace.inputs, outvars, trace.equations, trace.effects, debug_info)
    if config.enable_checks.value:
        check_jaxpr(jaxpr)
    if config.check_tracer_leaks.value:
        del tracers, results
        explain.check_leaks(trace)
    return jaxpr, consts
