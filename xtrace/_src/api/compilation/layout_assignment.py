"""The layouts of a program's arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.jaxprs.ir import Jaxpr
from xtrace._src.core.shardings.memory_layout import Layout, Layouts, is_default, is_met
from xtrace._src.ops.shardings.layout_constraints import layout_constraint
from xtrace._src.ops.shardings.sharding_constraints import sharding_constraint_p
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import committed_layout, has_layout

_Names = Callable[[], Sequence[str]]
_CONSTRAINTS = frozenset((layout_constraint, sharding_constraint_p))


def assign_layouts(
    values: Sequence[Any], function: str, jaxpr: Jaxpr, in_layouts: Sequence[Any], out_layouts: Sequence[Any],
    names: _Names | None, out_names: _Names | None,
) -> Layouts | None:
    """Return the layouts of a program's inputs and results; None if all are default layouts.

    in_layouts, out_layouts: the user's layouts, or empty. The other parameters are described at
    `device_assignment.assign`. Raises ValueError for a layout of other axes, and for an argument that is committed to
    another layout than the user's.
    """
    types = tuple([v.aval for v in jaxpr.invars])
    inputs = [committed_layout(value) for value in values]
    for i, given in enumerate(in_layouts):
        if given is not None:
            if _is_elsewhere(values[i], given):
                raise _mismatch(given, values[i], types[i], f"{_name('arguments', names, i)} of {function}")
            inputs[i] = given
    results = list(out_layouts) or [None] * len(jaxpr.outvars)
    if any(e.primitive in _CONSTRAINTS for e in jaxpr.eqns):
        constrained = {e.outvars[0] for e in jaxpr.eqns if _constrains_layout(e)}
        pairs = zip(results, jaxpr.outvars, strict=True)
        results = [Layout.AUTO if layout is None and v in constrained else layout for layout, v in pairs]
    inputs = _normalize(inputs, types, "arguments", names)
    results = _normalize(results, [v.aval for v in jaxpr.outvars], "outputs", out_names)
    if all(layout is None for layout in (*inputs, *results)):
        return None
    return Layouts(tuple(inputs), tuple(results), types)


def _constrains_layout(equation: Any) -> bool:
    """Whether an equation determines the layout of its result."""
    if equation.primitive is sharding_constraint_p:
        return equation.params["layout"] is not None
    return equation.primitive is layout_constraint


def _name(kind: str, names: _Names | None, position: int) -> str:
    return f"One of jit {kind} with pytree key path {position if names is None else names()[position]}"


def _normalize(layouts: Sequence[Any], avals: Sequence[ShapedArray], kind: str, names: _Names | None) -> list[Any]:
    """Return layouts with None for default ones and for random keys; ValueError for a layout of other axes."""
    results = []
    for i, (layout, aval) in enumerate(zip(layouts, avals, strict=True)):
        try:
            if isinstance(layout, Layout):
                layout.check_compatible_aval(aval.shape)
        except ValueError as error:
            raise ValueError(
                f"{_name(kind, names, i)} is incompatible with its layout annotation {layout}: {error}"
            ) from None
        is_free = layout is None or isinstance(aval.dtype, ExtendedDType)
        results.append(None if is_free or (isinstance(layout, Layout) and is_default(layout)) else layout)
    return results


def _is_elsewhere(value: Any, given: Any) -> bool:
    """Whether an argument is committed to another layout than the user's."""
    if isinstance(value, ShapeDtypeStruct):
        described: Any = value.format.layout
        return described is not None and (given is Layout.AUTO or not is_met(given, described))
    if type(value) is not ConcreteArray or not value.committed or isinstance(value.dtype, ExtendedDType):
        return False
    return given is Layout.AUTO or not has_layout(value, given)


def _mismatch(given: Any, value: Any, aval: ShapedArray, name: str) -> ValueError:
    advice = "Move the array with xtrace.device_put(x, format), or leave in_shardings out for it"
    if given is Layout.AUTO:
        advice = (
            "Trace with a ShapeDtypeStruct in its place, where XLA is to choose: lower(...).compile().input_formats "
            "says what it chose"
        )
    return ValueError(
        f"Layout passed to jit does not match the layout on the respective arg. Got jit layout: {given}, arg layout: "
        f"{value.format.layout} for arg type: {aval.str_short(short_dtypes=False)}. {name} is in memory already. "
        f"{advice}"
    )
