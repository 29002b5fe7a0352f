"""The call of a function with a custom batching rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import with_axis
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED, ClosedJaxpr
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.calls.calls import jit_call, make_call_rules
from xtrace._src.ops.custom_rules.calls import emit_inline, transpose_inline
from xtrace._src.ops.custom_rules.rule import Rule, make_zero
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.jaxpr_transforms import (
    cast_weak_type,
    filter_by_mask,
    jvp_jaxpr,
    move_constants_to_inputs,
    scatter_by_mask,
)
from xtrace._src.transforms.jvp import jvp


def _custom_vmap_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[Any]]:
    nonzero = [t is not None for t in tangents]
    smooth = tuple([is_differentiable(a) for a in call.out_avals])
    both, _ = jvp_jaxpr(call, tuple(nonzero), smooth)
    count, split = len(call.out_avals), len(primals)

    def moved_rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        own, moved = list(batched[:split]), scatter_by_mask(batched[split:], nonzero)
        if any(b and m for b, m in zip(own, moved, strict=True)):
            return call_with_mask(size, [b or bool(m) for b, m in zip(own, moved, strict=True)], batched, values)
        # No operand has both a batched primal and a batched tangent: map the rule itself, called with nothing batched.
        mapped = MappedAxis(size)

        def each(*inner: ArrayLike) -> list[Any]:
            results, where = call_with_mask(size, [False] * split, [False] * len(values), inner)
            return [index_in_dim(x, 0, 0, False) if b else x for x, b in zip(results, where, strict=True)]

        results, where = batch(each, mapped, values, [0 if b else None for b in batched])
        return (
            [x if i is None else mapped.place(x, i) for x, i in zip(results, where, strict=True)],
            [i is not None for i in where],
        )

    def call_with_mask(
        size: int, told: Sequence[bool], batched: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        """Return the rule's results, their tangents, and the mask of batched ones; `told` is the mask for operands."""
        wanted = [*told, *filter_by_mask(told, nonzero)]
        values = [with_axis(x, 0 if b else None, size) if w else x
                  for x, b, w in zip(values, batched, wanted, strict=True)]
        out_batched: list[bool] = []

        def function(*inner: Any) -> Any:
            results, out_batched[:] = rule.function(size, told, inner)
            return results

        results, out_tangents = jvp(function, values[:split], scatter_by_mask(values[split:], nonzero))
        pairs = [(x, t) for x, t, s in zip(results, out_tangents, smooth, strict=True) if s]
        dense = [make_zero(aval_of(x)) if t is None else t for x, t in pairs]
        return [*results, *dense], [*out_batched, *filter_by_mask(out_batched, smooth)]

    operands = [*primals, *filter_by_mask(tangents, nonzero)]
    consts = len(both.consts)
    if consts:
        operands = [*both.consts, *operands]
        whole = moved_rule

        def moved_rule(size: int, batched: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            return whole(size, batched[consts:], values[consts:])

    results = custom_vmap_call.bind_positional(
        operands, (name, move_constants_to_inputs(both), rule.batched(moved_rule))
    )
    return results[:count], scatter_by_mask(results[count:], smooth)


def _custom_vmap_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[Any]]:
    # The custom rule computes the results; it may have no transpose, so the function itself computes the tangents.
    assert jit_call.linearize is not None
    _, moved = jit_call.linearize(primals, tangents, name=name, jaxpr=call, compiler_options=None)
    return custom_vmap_call.bind_positional(primals, (name, call, rule)), moved


def _custom_vmap_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, call: ClosedJaxpr, rule: Rule, name: str
) -> tuple[list[Any], list[int | None]]:
    batched = [i is not None for i in axes]
    values = [x if i is None else mapped.place(x, i) for x, i in zip(operands, axes, strict=True)]
    results, where = rule.function(mapped.size, batched, values)
    for x, b, aval in zip(results, where, call.out_avals, strict=True):
        shape = (mapped.size, *aval.shape) if b else aval.shape
        own = aval_of(x)
        if own.shape != shape or own.dtype != aval.dtype:
            raise ValueError(
                f"the custom vmap rule {rule} of {name} returned {own.str_short(True)} "
                f"{'as batched' if b else 'as not batched'}; the result of {name} is {aval.str_short(True)}, so "
                f"{aval.update(shape=shape).str_short(True)} was expected"
            )
    results = [cast_weak_type(x, a) for x, a in zip(results, call.out_avals, strict=True)]
    return results, [0 if b else None for b in where]


def _custom_vmap_transpose(
    cotangents: Sequence[Any], *operands: Array, call: ClosedJaxpr, name: str, **_: object
) -> list[Any]:
    return transpose_inline(cotangents, *operands, call_jaxpr=call, name=name)


custom_vmap_call = ListPrimitive(
    "custom_vmap_call", ("name", "call", "rule"), emit=emit_inline("call"), jvp=_custom_vmap_jvp,
    linearize=_custom_vmap_linearize, transpose=_custom_vmap_transpose, batch=_custom_vmap_batch,
    unprinted={"name": NEVER_PRINTED}, **make_call_rules("call", "Call a function with a custom batching rule."),
)
