"""Casts of values along manual mesh axes between invariant, varying, reduced and unreduced types, and the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import IN_PLACE, LINEAR
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.sums import Sums
from xtrace._src.core.trace import checked_axes, current_trace
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

_Names = tuple[Any, ...]


def _vary_abstract(x: ShapedArray, *, axes: _Names) -> ShapedArray:
    """The operand, as a value that varies along manual mesh axes."""
    return x.update(varying=x.varying | frozenset(axes))


def _sum_abstract(x: ShapedArray, **_: object) -> ShapedArray:
    """The sum along manual mesh axes, the same on all devices along these."""
    return x


def _pvary_transpose(cotangent: Array, operand: object, *, axes: _Names) -> list[Any]:
    return [psum_invariant.bind_positional((cotangent,), (axes,))]


def _sum_transpose(cotangent: Array, operand: object, *, axes: _Names) -> list[Any]:
    return [pvary.bind_positional((cotangent,), (axes,))]


def _emit_identity(builder: FunctionBuilder, x: Value, **_: object) -> Value:
    return x.bitcast(builder.results[0])


def _emit_sum(builder: FunctionBuilder, x: Value, *, axes: _Names) -> Value:
    return builder.all_reduce(x, "add", builder.module.device_groups(axes), builder.results[0])


pvary = Primitive(
    "pvary", ("axes",), sharding=same, abstract=_vary_abstract, emit=_emit_identity, jvp=LINEAR,
    transpose=_pvary_transpose, batch=IN_PLACE, varying=lambda varying, *, axes: varying | frozenset(axes),
    moves_elements=True,
)
psum_invariant = Primitive(
    "psum_invariant", ("axes",), sharding=same, abstract=_sum_abstract, emit=_emit_sum, jvp=LINEAR,
    transpose=_sum_transpose, batch=IN_PLACE, varying=lambda varying, *, axes: varying - frozenset(axes),
)


class _Cast(Primitive):
    """An operation that changes the `manual_sums` in the type of a value along manual mesh axes.

    adjoint: the name of its transpose. sums: whether it adds the devices' values; otherwise it is the identity.
    """

    def __init__(self, name: str, adjoint: str, doc: str, *, sums: bool = False, **rules: Any) -> None:
        super().__init__(
            name, ("axes",), sharding=same, abstract=self._abstract, emit=_emit_sum if sums else _emit_identity,
            jvp=LINEAR, transpose=self._transpose, batch=IN_PLACE, moves_elements=not sums, **rules,
        )
        self.adjoint, self.__doc__ = adjoint, doc

    def _abstract(self, x: ShapedArray, *, axes: _Names) -> ShapedArray:
        assert self.manual_sums is not None
        return x.update(manual_sums=self.manual_sums(x.manual_sums, axes=axes))

    def _transpose(self, cotangent: Array, operand: object, *, axes: _Names) -> list[Any]:
        return [CASTS[self.adjoint].bind_positional((cotangent,), (axes,))]


# From an invariant value to a reduced one, and the adjoint.
preduced = _Cast(
    "preduced", "unreduced_psum", "The operand as a reduced value; its cotangents are unreduced.",
    manual_sums=lambda sums, *, axes: Sums(sums.unreduced, sums.reduced | frozenset(axes)),
)
unreduced_psum = _Cast(
    "unreduced_psum", "preduced", "The sum of the devices' terms.", sums=True,
    manual_sums=lambda sums, *, axes: Sums(sums.unreduced - frozenset(axes), sums.reduced),
)
# From a reduced value to a varying one, and the adjoint.
reduced_vary_cast = _Cast(
    "reduced_vary_cast_p", "vary_unreduced_cast_p", "A reduced value as a varying one.",
    varying=lambda varying, *, axes: varying | frozenset(axes),
    manual_sums=lambda sums, *, axes: Sums(sums.unreduced, sums.reduced - frozenset(axes)),
)
vary_unreduced_cast = _Cast(
    "vary_unreduced_cast_p", "reduced_vary_cast_p", "A varying value as an unreduced one, the terms of a sum.",
    varying=lambda varying, *, axes: varying - frozenset(axes),
    manual_sums=lambda sums, *, axes: Sums(sums.unreduced | frozenset(axes), sums.reduced),
)
CASTS = {cast.name: cast for cast in (preduced, unreduced_psum, reduced_vary_cast, vary_unreduced_cast)}


def vary(x: Any, axes: Sequence[Any]) -> Any:
    """Return `x` as a value that varies along `axes`; axes that types do not track are ignored.

    ValueError if it is unreduced or reduced along one of them.
    """
    checked = checked_axes(current_trace.get())
    aval = aval_of(x)
    missing = tuple([a for a in axes if a in checked and a not in aval.varying])
    summed = aval.manual_sums
    if not summed.unreduced.isdisjoint(missing) or not summed.reduced.isdisjoint(missing):
        shown = tuple(sorted(map(str, missing)))
        advice = (
            f"form it with xtrace.lax.psum(x, {shown})" if not summed.unreduced.isdisjoint(missing)
            else f"write xtrace.lax.pcast(x, {shown}, to='varying')"
        )
        raise ValueError(
            f"pvary cannot accept args which are unreduced or reduced, got {aval.str_short(True)}; {advice}"
        )
    return pvary.bind_positional((x,), (missing,)) if missing else x
