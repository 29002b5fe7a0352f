"""Jaxprs for other libraries: their classes, and functions that walk and run them (``jax.extend.core``)."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xtrace._late_imports import late_imports as _late_imports
from xtrace._src.api.tracing import eval_jaxpr
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractToken, ShapedArray, is_array_like
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.errors import InconclusiveDimensionOperation, JaxprTypeError
from xtrace._src.core.jaxprs.check import check_jaxpr
from xtrace._src.core.jaxprs.effects import NO_EFFECTS as no_effects
from xtrace._src.core.jaxprs.effects import Effect, Effects
from xtrace._src.core.jaxprs.ir import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    find_jaxprs,
    pack_given_parameters,
)
from xtrace._src.core.jaxprs.source_info import get_position
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.tangents import tangent_aval
from xtrace._src.core.trace import Trace, Tracer, axis_environment, base_trace, current_trace, use_trace
from xtrace._src.ops.calls.call_primitives import CallPrimitive, call_impl
from xtrace._src.transforms.batch import BatchTrace
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.stage import StagingTrace

__all__ = [
    "AbstractToken", "CallPrimitive", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects",
    "InconclusiveDimensionOperation", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "Token",
    "TraceTag", "Var", "array_types", "call_impl", "check_jaxpr",
    "concrete_or_error", "find_top_trace", "gensym", "get_opaque_trace_state", "jaxpr_as_fun", "jaxprs_in_params",
    "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype",
    "set_current_trace", "subjaxprs", "take_current_trace", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]


# The classes of NumPy's arrays and scalars with dtypes of operands.
array_types: set[type] = {np.ndarray, *(d.type for d in dtypes.all_dtypes.values())}


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: object) -> Callable[..., list[Any]]:
    """Convert a closed jaxpr to a Python function.

    Args:
        closed_jaxpr: a `ClosedJaxpr`.
        args: the first arguments; the function takes the rest.

    Returns:
        A function of arrays that returns the list of the jaxpr's results.

    Raises:
        TypeError: `closed_jaxpr` is not a closed jaxpr.

    Example:
        >>> xtrace.extend.core.jaxpr_as_fun(xtrace.make_jaxpr(jnp.sin)(1.0))(0.0)
        [Array(0., dtype=float32, weak_type=True)]
    """
    return functools.partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Iterate over the jaxprs among the parameters of an equation.

    Args:
        params: a dict of parameters.

    Yields:
        Jaxprs; for a closed jaxpr the jaxpr inside.

    Raises:
        AttributeError: `params` is not a dict.

    Example:
        >>> equation = xtrace.make_jaxpr(xtrace.jit(lambda x: x + 1))(1.0).eqns[0]
        >>> [len(j.eqns) for j in xtrace.extend.core.jaxprs_in_params(equation.params)]
        [1]
    """
    yield from find_jaxprs(tuple(params.values()))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Iterate over the jaxprs in the equations of a jaxpr.

    Args:
        jaxpr: a `Jaxpr`.

    Yields:
        Jaxprs; jaxprs nested in these are left out.

    Raises:
        AttributeError: `jaxpr` is not a jaxpr.

    Example:
        >>> jaxpr = xtrace.make_jaxpr(xtrace.jit(lambda x: x + 1))(1.0).jaxpr
        >>> len(list(xtrace.extend.core.subjaxprs(jaxpr)))
        1
    """
    for equation in jaxpr.eqns:
        yield from find_jaxprs(equation.parameters)


def new_jaxpr_eqn(
    invars: Sequence[Any], outvars: Sequence[Var], primitive: Primitive, params: dict[str, Any], effects: Effects,
    source_info: Any = None, ctx: object = None,
) -> JaxprEqn:
    """Make an equation of a jaxpr.

    Args:
        invars: the operands, variables and literals.
        outvars: the variables of the results.
        primitive: the operation.
        params: a dict of its parameters.
        effects: a set of effects.
        source_info: its place, the `source_info` of another equation; None if it is unknown.
        ctx: not used; leave it at None.

    Returns:
        A `JaxprEqn`.

    Raises:
        TypeError: `params` are not the parameters of the primitive.

    Example:
        >>> x, y = map(xtrace.extend.core.gensym(), [xtrace.typeof(1.0)] * 2)
        >>> xtrace.extend.core.new_jaxpr_eqn([x], [y], lax.neg_p, {}, frozenset())
        a:f32[] = neg b
    """
    values = pack_given_parameters("new_jaxpr_eqn", primitive, params)
    return JaxprEqn(list(invars), list(outvars), primitive, values, effects, get_position(source_info))


def gensym() -> Callable[[ShapedArray], Var]:
    """Return a function that makes variables.

    Returns:
        A function of a type; each call returns a new `Var` of the type.

    Example:
        >>> new_variable = xtrace.extend.core.gensym()
        >>> new_variable(xtrace.typeof(1.0)).aval
        ShapedArray(float32[], weak_type=True)
    """
    return Var


def _check_axis(axis: int, ndim: int) -> None:
    if not 0 <= axis < ndim:
        raise ValueError(f"{called_function()}: axis {axis} must be from 0 to {ndim - 1}, counted from the front")


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of the elements along an axis.

    Args:
        size: the length of the axis.
        axis: the number of the axis, or None to return `aval`.
        aval: the type of an array.

    Returns:
        The type without the axis.

    Raises:
        ValueError: the axis is negative or out of bounds, or has another length.

    Example:
        >>> xtrace.extend.core.mapped_aval(3, 0, xtrace.typeof(jnp.ones((3, 2))))
        ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    _check_axis(axis, aval.ndim)
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval.str_short(True)} has size {aval.shape[axis]}, not {size}")
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: object = None) -> ShapedArray:
    """Return the type of several values along a new axis.

    Args:
        size: the number of values.
        axis: the position of the new axis, or None to return `aval`.
        aval: the type of one value.
        explicit_mesh_axis: must be None.

    Returns:
        The type with the axis.

    Raises:
        NotImplementedError: `explicit_mesh_axis` is given.
        ValueError: the axis is negative or out of bounds.

    Example:
        >>> xtrace.extend.core.unmapped_aval(3, 0, xtrace.typeof(jnp.ones(2)))
        ShapedArray(float32[3,2])
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError("unmapped_aval: explicit_mesh_axis is not supported; leave it at None")
    if axis is None:
        return aval
    _check_axis(axis, aval.ndim + 1)
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike) -> Any:
    """Return the dtype of the tangents of values.

    Args:
        primal_dtype: the dtype of the values.

    Returns:
        The same dtype if it is floating or complex; float0 for integers and booleans.

    Raises:
        TypeError: `primal_dtype` is not a dtype.

    Example:
        >>> xtrace.extend.core.primal_dtype_to_tangent_dtype(np.dtype("int32"))
        dtype([('float0', 'V')])
    """
    return tangent_aval(ShapedArray((), dtypes.resolve(primal_dtype))).dtype


def valid_jaxtype(x: object) -> bool:
    """Return whether operations accept a value as an array.

    Args:
        x: any object.

    Returns:
        A bool.

    Example:
        >>> xtrace.extend.core.valid_jaxtype(1.0), xtrace.extend.core.valid_jaxtype("a")
        (True, False)
    """
    return is_array_like(x)


class _TokenType(type):
    """The metaclass of `Token`. The tokens of operations, arrays without data, are instances, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (
            isinstance(instance, Array) and type(getattr(instance, "aval", None)) is AbstractToken
        )


class Token(metaclass=_TokenType):
    """A value without data, which is ready after the operations before it.

    Args:
        buf: a token or an array that depends on these operations.

    Example:
        >>> isinstance(lax.create_token(), xtrace.extend.core.Token)
        True
        >>> xtrace.extend.core.Token(lax.create_token()).block_until_ready()
    """

    __slots__ = ("_buf",)

    def __init__(self, buf: Any) -> None:
        if not callable(getattr(buf, "block_until_ready", None)):
            raise TypeError(f"Token: buf must be a token or an array, got {abbreviate(buf)}")
        self._buf = buf

    def block_until_ready(self) -> None:
        """Wait until the operations before it have run."""
        self._buf.block_until_ready()


class TraceTag:
    """A tag shared by the traces of one transformation.

    Example:
        >>> xtrace.extend.core.TraceTag() == xtrace.extend.core.TraceTag()
        False
    """


class _OpaqueTraceState:
    """Identifies the current trace: states of the same trace are equal."""

    __slots__ = ("_trace",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace) -> None:
        self._trace = weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OpaqueTraceState) and self._trace() is not None and self._trace() is other._trace()


def get_opaque_trace_state(convention: str | None = None) -> Any:
    """Return an object that identifies the current trace: objects of the same trace are equal.

    Args:
        convention: not used.

    Returns:
        An object without a hash.

    Example:
        >>> from xtrace.extend import core
        >>> state = core.get_opaque_trace_state()
        >>> inside = []
        >>> _ = xtrace.jit(lambda x: inside.append(core.get_opaque_trace_state()) or x)(1.0)
        >>> state == core.get_opaque_trace_state(), state == inside[0]
        (True, False)
    """
    return _OpaqueTraceState(current_trace.get())


def find_top_trace(_: object) -> Trace:
    """Return the current trace.

    Args:
        _: not used.

    Returns:
        A trace.

    Example:
        >>> isinstance(xtrace.extend.core.find_top_trace(()), xtrace.core.Trace)
        True
    """
    return current_trace.get()


@contextlib.contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Give the current trace to a block, which may replace it by `set_current_trace`.

    Yields:
        The trace.

    Example:
        >>> with xtrace.extend.core.take_current_trace() as trace: isinstance(trace, xtrace.core.Trace)
        True
    """
    yield current_trace.get()


@contextlib.contextmanager
def set_current_trace(trace: Trace, check_leaks: bool = False) -> Iterator[None]:
    """Make a trace the current trace for a block.

    Args:
        trace: the trace.
        check_leaks: not used; the setting ``jax_check_tracer_leaks`` decides.

    Yields:
        None.

    Raises:
        TypeError: `trace` is not a trace.

    Example:
        >>> from xtrace.extend import core
        >>> with core.take_current_trace() as trace, core.set_current_trace(trace): jnp.sin(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"set_current_trace: trace must be a trace, got {abbreviate(trace)}")
    if trace.parent is None and trace is not base_trace:
        trace.parent = current_trace.get()
    with use_trace(trace):
        yield


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """Convert a concrete value to a class; raise an error for a traced value.

    Args:
        force: the class, such as ``int``; None to return the value unchanged.
        val: the value.
        context: the reason, for the error message.

    Returns:
        ``force(val)``.

    Raises:
        ConcretizationTypeError: the value is traced.

    Example:
        >>> xtrace.extend.core.concrete_or_error(int, jnp.array(3))
        3
    """
    if isinstance(val, Tracer):
        raise explain.concretization(val, context or "a value that must be known")
    return val if force is None else force(val)


def _list_traces() -> Iterator[Trace]:
    return current_trace.get().enclosing()


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return whether a mapped axis in scope has a name.

    Returns:
        A bool.

    Example:
        >>> xtrace.extend.core.nonempty_axis_env_DO_NOT_USE()
        False
    """
    return bool(axis_environment(current_trace.get()))


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """List the names of the mapped axes in scope.

    Returns:
        A list, outermost first.

    Example:
        >>> xtrace.extend.core.unsafe_get_axis_names_DO_NOT_USE()
        []
    """
    return [name for name, _ in reversed(axis_environment(current_trace.get()))]


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return whether operations are currently recorded in a jaxpr.

    Returns:
        A bool.

    Example:
        >>> xtrace.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE()
        False
    """
    return any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in _list_traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return whether operations are currently mapped over an axis.

    Returns:
        A bool.

    Example:
        >>> xtrace.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
        False
    """
    return any(isinstance(t, BatchTrace) for t in _list_traces())


_make_public(globals(), __all__)

# These load at their first use.
with _late_imports(globals()):
    from xtrace.extend.core import primitives as primitives
