"""The call of a linear function with a custom transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import UndefinedPrimal, cotangent_avals
from xtrace._src.ops.calls.calls import make_call_rules
from xtrace._src.ops.custom_rules.calls import emit_inline
from xtrace._src.ops.custom_rules.rule import Rule, make_zero
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.jaxpr_transforms import batch_jaxpr, move_constants_to_inputs


def _linear_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, callee: ClosedJaxpr, transpose: Rule, num_res: int
) -> tuple[list[Any], list[Any]]:
    if any(t is not None for t in tangents[:num_res]):
        raise NotImplementedError(
            "linear_call cannot be differentiated with respect to its residual_args, only its linear_args; write the "
            "derivative with custom_jvp"
        )
    parameters = (callee, transpose, num_res)
    residuals = primals[:num_res]
    linear = zip(primals[num_res:], tangents[num_res:], strict=True)
    moved = [make_zero(aval_of(x)) if t is None else t for x, t in linear]
    return linear_call.bind_positional(primals, parameters), linear_call.bind_positional(
        [*residuals, *moved], parameters
    )


def _linear_transpose(
    cotangents: Sequence[Any], *operands: Array | UndefinedPrimal, callee: ClosedJaxpr, transpose: Rule, num_res: int
) -> list[Any]:
    avals = cotangent_avals(callee.out_avals)
    given_cotangents = [zeros(a) if c is None else c for c, a in zip(cotangents, avals, strict=True)]
    transposed, consts = transpose.function()
    back = Rule(lambda: (callee, []), "transpose")
    residuals = [*consts, *operands[:num_res]]
    if consts:
        skipped = len(consts)
        back = Rule(lambda: (_add_unused_inputs(callee, skipped, transposed), []), "transpose")
    in_cotangents = linear_call.bind_positional([*residuals, *given_cotangents], (transposed, back, len(residuals)))
    return [None] * num_res + [
        c if type(x) is UndefinedPrimal else None for c, x in zip(in_cotangents, operands[num_res:], strict=True)
    ]


def _add_unused_inputs(callee: ClosedJaxpr, count: int, other: ClosedJaxpr) -> ClosedJaxpr:
    """Return `callee` with the first `count` inputs of `other` added as unused leading inputs."""
    jaxpr = callee.jaxpr
    return ClosedJaxpr(jaxpr.replace(invars=[*other.jaxpr.invars[:count], *jaxpr.invars]), [])


def _linear_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, callee: ClosedJaxpr, transpose: Rule,
    num_res: int,
) -> tuple[list[Any], list[int | None]]:
    count = len(callee.out_avals)
    residual_axes = tuple(axes[:num_res])
    moved = [mapped.place(x, i) for x, i in zip(operands[num_res:], axes[num_res:], strict=True)]

    def batch_all(closed: ClosedJaxpr, leading: Sequence[int | None]) -> tuple[ClosedJaxpr, list[Any]]:
        places = (*leading, *[0] * (len(closed.in_avals) - len(leading)))
        batched, _ = batch_jaxpr(closed, mapped, places, (True,) * len(closed.out_avals))
        return move_constants_to_inputs(batched), list(batched.consts)

    def transposed() -> tuple[ClosedJaxpr, list[Any]]:
        closed, consts = transpose.function()
        batched, more = batch_all(closed, [*[None] * len(consts), *residual_axes])
        return batched, [*more, *consts]

    batched, consts = batch_all(callee, residual_axes)
    operands = [*consts, *operands[:num_res], *moved]
    if consts:
        skipped, inner = len(consts), transposed

        def transposed() -> tuple[ClosedJaxpr, list[Any]]:
            closed, more = inner()
            jaxpr, place = closed.jaxpr, len(more)
            invars = [*jaxpr.invars[:place], *batched.jaxpr.invars[:skipped], *jaxpr.invars[place:]]
            return ClosedJaxpr(jaxpr.replace(invars=invars), []), more

    rule = transpose.batched(transposed)
    return linear_call.bind_positional(operands, (batched, rule, num_res + len(consts))), [0] * count


linear_call = Primitive(
    "linear_call", ("callee", "transpose", "num_res"), holds_jaxprs=True, emit=emit_inline("callee"), jvp=_linear_jvp,
    transpose=_linear_transpose, batch=_linear_batch,
    **make_call_rules("callee", "Call a linear function with a custom transpose."),
)
