"""The current trace of each thread, and the tracers that stand for values while it is in force."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import numpy as np

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_rules, own_aval
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import Literal

if TYPE_CHECKING:
    from xtrace._src.core.primitive import ArrayPrimitive, Primitive


_Function = TypeVar("_Function")

# Fusion levels: the functions of the library that a trace evaluates as one compiled program each. One program rounds
# differently from its operations one by one. 0: none, because operations are recorded. FUSES_SEVERAL: functions of two
# or more operations. FUSES_NONLINEAR: also single nonlinear operations, under differentiation. FUSES_ALL: all.
FUSES_SEVERAL, FUSES_NONLINEAR, FUSES_ALL = 1, 2, 3


class Trace:
    """The interpreter of operations: it evaluates, records or transforms each operation that is bound under it.

    A user's subclass defines `process_primitive`, which gets the parameters of an operation by name, and can define
    ``process_custom_jvp_call(primitive, fun, jvp, tracers, *, symbolic_zeros)``, which gets the call of a function with
    a custom rule as functions of flat values, and ``process_custom_vjp_call(primitive, fun, fwd, bwd, tracers, *,
    out_trees, symbolic_zeros)``.

    Args:
        parent: the current trace before this one; operations without tracers of this trace go there.

    Example:
        >>> with xtrace.core.eval_context() as trace: isinstance(trace, xtrace.core.Trace)
        True
    """

    __slots__ = ("parent", "ended", "__weakref__")

    # The name and the size of the mapped axis, if it has a name.
    named_axis: tuple[Any, int] | None = None

    # Whether it records linear operations only.
    is_tape = False

    # One of the levels above.
    fusion_level = 0

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.ended = False

    @overload
    def process(
        self, primitive: ArrayPrimitive, operands: Sequence[Any], parameters: tuple[Any, ...]
    ) -> Array: ...

    @overload
    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any: ...

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        """Apply `primitive`; return one value, or a list if the primitive has multiple results."""
        if type(self).process_primitive is Trace.process_primitive:
            name = type(self).__name__
            raise NotImplementedError(f"{name} must define process_primitive(primitive, tracers, params)")
        named = dict(zip(primitive.parameters, parameters, strict=True))
        # Literals go between the traces of xtrace only; a user's gets numbers.
        values = [x.val if type(x) is Literal else x for x in operands]
        return primitive.process_by_users_trace(self, values, named)

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply `primitive`, given its parameters by name."""
        return self.process(primitive, tracers, primitive.pack_parameters(params))

    def constant(self, value: object, aval: ShapedArray) -> Any:
        """Return a NumPy array of type `aval` as a constant of the program being traced; None if no trace records."""
        return None if self.parent is None else self.parent.constant(value, aval)

    def end(self) -> None:
        """Close the trace; later uses of its tracers are errors."""
        self.ended = True

    def full_raise(self, x: Any) -> Any:
        """Return `x` itself: operations take values of other traces."""
        return x

    @property
    def main(self) -> Trace:
        """The trace itself, for programs written for earlier releases of JAX."""
        return self

    def enclosing(self) -> Iterator[Trace]:
        """Yield this trace and the ones around it, innermost first."""
        trace: Trace | None = self
        while trace is not None:
            yield trace
            trace = trace.parent


def axis_environment(trace: Trace) -> tuple[tuple[Any, int], ...]:
    """Return the names and sizes of the mapped axes in scope, innermost first."""
    return tuple([t.named_axis for t in trace.enclosing() if t.named_axis is not None])


class NamedAxisTrace(Trace):
    """Defines an axis name while a program is traced; the program is mapped over the axis later."""

    __slots__ = ("named_axis",)

    def __init__(self, parent: Trace, name: Any, size: int) -> None:
        super().__init__(parent)
        self.named_axis = (name, size)

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        return self.parent.process(primitive, operands, parameters)


class ManualAxisTrace(NamedAxisTrace):
    """Defines the name of a manual mesh axis while the function of a `shard_map` is traced.

    checked: whether types record the axes along which values vary.
    """

    __slots__ = ("name", "checked")

    def __init__(self, parent: Trace, name: Any, size: int, checked: bool) -> None:
        super().__init__(parent, name, size)
        self.name, self.checked = name, checked


def checked_axes(trace: Trace) -> frozenset[Any]:
    """Return the manual mesh axes in scope for which types record whether values vary."""
    return frozenset([t.name for t in trace.enclosing() if isinstance(t, ManualAxisTrace) and t.checked])


class CompileTimeTrace(Trace):
    """Evaluates operations on concrete values at once, also while a program is traced."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        known = not any(isinstance(x, Tracer) for x in operands)
        return (base_trace if known else self.parent).process(primitive, operands, parameters)

    def constant(self, value: object, aval: ShapedArray) -> None:
        return None


class Evaluator(Protocol):
    """Computes a primitive on concrete values."""

    def __call__(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any: ...


class BaseTrace(Trace):
    """The bottom trace: primitives are evaluated on concrete values by the runtime."""

    __slots__ = ("process",)

    fusion_level = FUSES_SEVERAL

    def __init__(self) -> None:
        super().__init__(None)

    def __reduce__(self) -> str:
        return "base_trace"


base_trace = BaseTrace()
current_trace: ContextVar[Trace] = ContextVar("xtrace_current_trace", default=base_trace)
# For generated code: a module can be pickled, and this method cannot.
get_current_trace = current_trace.get


def set_base_trace(evaluate: Evaluator) -> None:
    """Bind the evaluator of concrete values; ``_src/__init__.py`` does so once."""
    base_trace.process = evaluate  # type: ignore[method-assign]


@contextlib.contextmanager
def use_trace(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one inside the block."""
    outer = current_trace.get()
    try:
        current_trace.set(trace)
        yield trace
    finally:
        current_trace.set(outer)


@contextlib.contextmanager
def use_named_axes(axes: Sequence[tuple[Any, int]]) -> Iterator[None]:
    """Name axes with these sizes inside the block, as if functions were mapped over them."""
    with contextlib.ExitStack() as blocks:
        for name, size in axes:
            blocks.enter_context(use_trace(NamedAxisTrace(current_trace.get(), name, size)))
        yield


class _ConcreteAttribute:
    """A method or an attribute of concrete arrays that tracers do not have; its use raises an error with the reason."""

    __slots__ = ("name", "kind", "called")

    def __init__(self, name: str, kind: str, called: bool) -> None:
        self.name, self.kind, self.called = name, kind, called

    def make_error(self, tracer: Tracer, what: str) -> Any:
        return getattr(explain, self.kind)(tracer, what)

    def __get__(self, instance: Tracer | None, owner: type) -> Any:
        if instance is None:
            return self
        if not self.called:
            raise self.make_error(instance, f"attribute {abbreviate(self.name)}")

        def refuse(*args: object, **kwargs: object) -> Any:
            raise self.make_error(instance, f"method {self.name}()")

        return refuse


class Tracer(Array, abstract=True):
    """A value of a trace: it has a type, and may have no data yet.

    Args:
        trace: the trace that the value belongs to.
        aval: its type.

    Example:
        >>> xtrace.eval_shape(lambda x: jnp.asarray(isinstance(x, xtrace.core.Tracer)), 1.0).shape
        ()
    """

    __slots__ = ("owner", "aval", "__weakref__")

    owner: Trace
    aval: ShapedArray

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self.owner, self.aval = trace, aval

    @property
    def _trace(self) -> Trace:
        # Programs that use JAX's internals find, or set, the trace of a tracer here.
        return self.owner

    @_trace.setter
    def _trace(self, trace: Trace) -> None:
        self.owner = trace

    # JAX's attribute for tracers of symbolic sizes, which do not exist here.
    dimension_as_value = None

    def full_lower(self) -> Tracer:
        """Return the tracer itself: no transformation here wraps a value without need."""
        return self

    def get_referent(self) -> Any:
        """Return the object that identifies the tracer's value through all transformations around it."""
        return self

    def to_concrete_value(self) -> Any:
        """Return the value if it is known while tracing, else None."""
        return None

    def __hash__(self) -> int:
        raise explain.unhashable(self)

    def __len__(self) -> int:
        return len(self.aval)

    def __bool__(self) -> bool:
        raise explain.boolean_conversion(self) if self.aval.size == 1 else explain.ambiguous_truth(self)

    def __int__(self) -> int:
        raise explain.concretization(self, "int")

    def __float__(self) -> float:
        raise explain.concretization(self, "float")

    def __complex__(self) -> complex:
        raise explain.concretization(self, "complex")

    def __index__(self) -> int:
        raise explain.integer_conversion(self)

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Any:
        raise explain.array_conversion(self)

    def item(self, *indices: int) -> Any:
        """Raise ConcretizationTypeError: a traced array has no value yet."""
        raise explain.concretization(self, "item")

    def tolist(self) -> Any:
        """Raise ConcretizationTypeError: a traced array has no values yet."""
        raise explain.concretization(self, "tolist")

    def __format__(self, specification: str) -> str:
        if specification:
            raise explain.format_specification(self, specification)
        return repr(self)

    def __reduce__(self) -> Any:
        raise explain.no_data(self, "method __reduce__(), which pickle calls,")

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: object) -> Tracer:
        return self


# Tracers of users' traces inherit this rule.
aval_rules[Tracer] = own_aval


# The error classes are JAX's: a ConcretizationTypeError for names that need the data or its place, an AttributeError
# for others.
for _name in (
    "addressable_shards", "committed", "global_shards", "is_fully_addressable", "is_fully_replicated", "traceback",
):
    setattr(Tracer, _name, _ConcreteAttribute(_name, "no_data", False))
for _name in (
    "__dlpack__", "addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes", "tobytes",
    "unsafe_buffer_pointer",
):
    setattr(Tracer, _name, _ConcreteAttribute(_name, "no_data", True))
for _name in ("block_until_ready", "copy_to_host_async", "device", "is_ready", "sharding"):
    setattr(Tracer, _name, _ConcreteAttribute(_name, "no_such_attribute", False))
