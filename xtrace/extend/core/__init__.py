"""Jaxprs from outside: their classes, functions that walk and run them, as ``jax.extend.core`` has them."""

from __future__ import annotations

import functools
import typing as _typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xtrace._src.api.tracing import eval_jaxpr
from xtrace._src.core import dtypes
from xtrace._src.core.avals import AbstractToken, ShapedArray, is_array_like
from xtrace._src.core.check import check_jaxpr
from xtrace._src.core.effects import NO_EFFECTS as no_effects
from xtrace._src.core.effects import Effect, Effects
from xtrace._src.core.errors import InconclusiveDimensionOperation, JaxprTypeError
from xtrace._src.core.ir import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Var, jaxprs_of
from xtrace._src.core.late import late_names as _late_names
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import tangent_aval
from xtrace._src.core.trace import Trace, axis_environment, current_trace
from xtrace._src.transforms.batch import BatchTrace
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.stage import StagingTrace

__all__ = [
    "AbstractToken", "ClosedJaxpr", "DebugInfo", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation",
    "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Primitive", "Var", "array_types", "check_jaxpr", "gensym",
    "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype", "subjaxprs", "unmapped_aval", "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE", "valid_jaxtype",
]

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.extend.core import primitives as primitives

_, __getattr__, __dir__ = _late_names("xtrace.extend.core", {}, submodules=("primitives",))

# The classes of NumPy's arrays and scalars that are operands.
array_types: set[type] = {np.ndarray, *(d.type for d in dtypes.all_dtypes.values())}


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]]:
    """Return the function that a jaxpr is: of its inputs after `args`, giving a list of its results."""
    return functools.partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """Yield the jaxprs among the parameters of an equation, closed ones opened."""
    yield from jaxprs_of(tuple(params.values()))


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the jaxprs that the equations of `jaxpr` hold, not those inside of these."""
    for equation in jaxpr.eqns:
        yield from jaxprs_of(equation.parameters)


def new_jaxpr_eqn(
    invars: Sequence[Any], outvars: Sequence[Var], primitive: Primitive, params: dict[str, Any], effects: Effects,
    source_info: Any = None, ctx: Any = None,
) -> JaxprEqn:
    """Return an equation. TypeError unless `params` are the parameters of the primitive."""
    if params.keys() != set(primitive.parameters):
        raise TypeError(
            f"new_jaxpr_eqn: {primitive} has the parameters ({', '.join(primitive.parameters)}); "
            f"got ({', '.join(params)})"
        )
    values = tuple([params[name] for name in primitive.parameters])
    return JaxprEqn(list(invars), list(outvars), primitive, values, effects, source_info)


def gensym() -> Callable[[ShapedArray], Var]:
    """Return a function that makes a new variable of a type each time."""
    return Var


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return the type of one of `size` elements of `aval` along `axis`; ValueError if it has not that many."""
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval.str_short()} has size {aval.shape[axis]}, not {size}")
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """Return the type of `size` values of type `aval` along a new axis `axis`."""
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """Return the dtype of the tangents of values of `primal_dtype`: float0 for integers and booleans."""
    return tangent_aval(ShapedArray((), dtypes.resolve(primal_dtype))).dtype


def valid_jaxtype(x: Any) -> bool:
    """Return whether `x` is an array, or a value that operations take for one."""
    return is_array_like(x)


def _traces() -> Iterator[Trace]:
    return current_trace.get().enclosing()


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Return whether a mapped axis that is in scope has a name."""
    return bool(axis_environment(current_trace.get()))


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the mapped axes in scope, outermost first."""
    return [name for name, _ in reversed(axis_environment(current_trace.get()))]


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Return whether what is done now is recorded in a jaxpr."""
    return any(isinstance(t, StagingTrace) and not isinstance(t, Tape) for t in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Return whether what is done now is done for all indices of a mapped axis."""
    return any(isinstance(t, BatchTrace) for t in _traces())


_make_public(globals(), __all__)
