"""The call of a function with custom fwd and bwd rules, and the linear operation with the transpose bwd."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED
from xtrace._src.core.linear_functions import WrappedFun
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees.pytree import tree_structure
from xtrace._src.core.tangents import UndefinedPrimal, is_differentiable, tangent_aval
from xtrace._src.ops.custom_rules.calls import (
    SHARED_RULES,
    CustomDerivativeCall,
    batch_call,
    cast_results,
    drop_closed_over,
)
from xtrace._src.ops.custom_rules.rule import Rule, call_rule, make_zero, to_user_operand
from xtrace._src.ops.custom_rules.symbolic_zeros import is_zero, symbolic_zero
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.jaxpr_transforms import filter_by_mask, scatter_by_mask
from xtrace._src.transforms.scopes import program_scopes


def _refuse_jvp(*_: Array, name: str, **__: object) -> Any:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function. "
        f"{name} has a rule for reverse mode only: use grad or vjp, or define it with custom_jvp"
    )


def _custom_vjp_linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, name: str, call_jaxpr: Any, fwd: Rule, num_consts: int, **_: Any
) -> tuple[list[Any], list[Any]]:
    primals, tangents = drop_closed_over(name, primals, tangents, num_consts)
    nonzero = tuple([t is not None for t in tangents])
    results, residuals, bwd = call_rule(fwd, primals, nonzero)
    results = cast_results(results, call_jaxpr)
    avals = tuple(map(aval_of, results))
    operands = [*residuals, *filter_by_mask(tangents, nonzero)]
    with program_scopes():
        moved = custom_lin.bind_positional(operands, (name, bwd, nonzero, len(residuals), avals))
    return results, scatter_by_mask(moved, [is_differentiable(a) for a in avals])


def _custom_vjp_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, call_jaxpr: object,
    fwd: Rule, bwd: str, num_consts: int, symbolic_zeros: bool,
) -> tuple[list[Any], list[int | None]]:
    call, values, in_order, places = batch_call(mapped, call_jaxpr, operands, axes)
    mapping, explicit = fwd.mapping(mapped), list(axes[num_consts:])

    def forward(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Rule]:
        rules: list[Any] = []

        def both(*inner: Array) -> list[Any]:
            results, residuals, backward = fwd.function(inner, nonzero)
            rules[:] = [len(results), backward]
            return [*results, *residuals]

        outputs, where = mapping(both, primals, explicit)
        count, backward = rules
        results = in_order(outputs[:count], where[:count])
        return results, outputs[count:], _batch_backward(mapped, backward, where[count:], places(), explicit)

    outputs = custom_vjp_call.bind_positional(
        values, (name, call, fwd.batched(forward), bwd, num_consts + len(values) - len(operands), symbolic_zeros)
    )
    return outputs, places()


def _batch_backward(
    mapped: MappedAxis, backward: Rule, residual_axes: Sequence[int | None], out_axes: Sequence[int | None],
    in_axes: Sequence[int | None],
) -> Rule:
    """Return the batched bwd rule for residuals, cotangents and inputs with these mapped axes."""
    residual_axes, out_axes = list(residual_axes), list(out_axes)

    def batched(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        nonzero = [c is not None for c in cotangents]
        split = len(residuals)
        found_nonzero: list[bool] = []

        def each(*inner: ArrayLike) -> list[Any]:
            in_cotangents = backward.function(inner[:split], scatter_by_mask(inner[split:], nonzero))
            found_nonzero[:] = [c is not None for c in in_cotangents]
            return filter_by_mask(in_cotangents, found_nonzero)

        values = [*residuals, *filter_by_mask(cotangents, nonzero)]
        in_cotangents, where = batch(each, mapped, values, residual_axes + filter_by_mask(out_axes, nonzero))
        in_cotangents, where = scatter_by_mask(in_cotangents, found_nonzero), scatter_by_mask(where, found_nonzero)
        each_input = zip(in_cotangents, where, in_axes, strict=True)
        return [None if c is None else _align_with_input(c, i, j, mapped) for c, i, j in each_input]

    return backward.batched(batched)


def _align_with_input(cotangent: Array, axis: int | None, in_axis: int | None, mapped: MappedAxis) -> Array:
    """Return a cotangent with the input's mapped axis, or summed over the mapped axis if the input is unmapped."""
    if in_axis is not None:
        return mapped.place(cotangent, axis, in_axis)
    return cotangent if axis is None else add_elements(cotangent, (axis,))


def _flatten_rules(named: dict[str, Any]) -> tuple[list[Callable[..., Any]], dict[str, Any]]:
    """Return ``fwd(x, has_tangent, ...) -> [*residuals, *results]`` and ``bwd(*residuals, *cotangents)``.

    ``out_trees()``, called after ``fwd``, gives the trees of the results and of the residuals, and, for each residual,
    the position of the argument that stands for it, or None.
    """
    name, num_consts = named["name"], named["num_consts"]
    called: list[Any] = []

    def forward(*pairs: Any) -> list[Any]:
        values, flags = pairs[::2], [flag or None for flag in pairs[1::2]]
        primals, nonzero = drop_closed_over(name, values, flags, num_consts)
        results, residuals, rule = call_rule(named["fwd"], primals, tuple([flag is not None for flag in nonzero]))
        called[:] = [rule, list(map(aval_of, values)), len(results), len(residuals)]
        return [*residuals, *results]

    def backward(*values: Any) -> list[Any]:
        rule, avals, _, count = called
        cotangents = [None if is_zero(x) else x for x in values[count:]]
        in_cotangents = [None] * num_consts + call_rule(rule, values[:count], cotangents)
        return [Zero(tangent_aval(a)) if x is None else x for x, a in zip(in_cotangents, avals, strict=True)]

    def out_trees() -> tuple[Any, Any, list[None]]:
        *_, results, residuals = called
        return tree_structure([0] * results), tree_structure([0] * residuals), [None] * residuals

    return [forward, backward], {"out_trees": out_trees}


def _unflatten_rules(
    rules: Sequence[WrappedFun], is_staged: bool, *, symbolic_zeros: bool, out_trees: Callable[[], tuple[Any, Any, Any]]
) -> tuple[Rule, str]:
    """Return the parameters ``fwd`` and ``bwd`` for rules as `_flatten_rules` returns them."""
    forward, backward = rules
    make = symbolic_zero if symbolic_zeros else make_zero

    def fwd(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Rule]:
        forward.reset_stores()
        operands = list(map(to_user_operand, primals))
        values = iter(forward.call_wrapped(*itertools.chain(*zip(operands, nonzero, strict=True))))
        residuals = [next(values) if i is None else operands[i] for i in out_trees()[2]]
        if is_staged:
            forward.reset_stores()
        results = list(values)
        avals = list(map(aval_of, results))

        def bwd(saved: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            given = [make(a) if c is None else c for a, c in zip(avals, cotangents, strict=True)]
            backward.reset_stores()
            return [None if is_zero(x) else x for x in backward.call_wrapped(*saved, *given)]

        return results, residuals, Rule(bwd, backward.__name__)

    return Rule(fwd, forward.__name__), backward.__name__


custom_vjp_call = CustomDerivativeCall(
    "custom_vjp_call", ("call_jaxpr", "fwd", "bwd"), _flatten_rules, _unflatten_rules, jvp=_refuse_jvp,
    linearize=_custom_vjp_linearize, batch=_custom_vjp_batch, unprinted={"num_consts": NEVER_PRINTED}, **SHARED_RULES,
)


def _lin_abstract(*_: ShapedArray, out_avals: Sequence[ShapedArray], **__: object) -> list[ShapedArray]:
    """Return the tangents of a custom_vjp function's results; only the transpose, bwd, is defined."""
    return [a for a in out_avals if is_differentiable(a)]


def _lin_transpose(
    cotangents: Sequence[Any], *operands: object, bwd: Rule, in_nonzero: Sequence[bool], num_res: int,
    out_avals: Sequence[ShapedArray], **_: Any,
) -> list[Any]:
    residuals = operands[:num_res]
    assert not any(type(x) is UndefinedPrimal for x in residuals)
    in_cotangents = call_rule(bwd, residuals, scatter_by_mask(cotangents, [is_differentiable(a) for a in out_avals]))
    return [None] * num_res + filter_by_mask(in_cotangents, in_nonzero)


def _lin_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, name: str, bwd: Rule,
    in_nonzero: Sequence[bool], num_res: int, out_avals: Sequence[ShapedArray],
) -> tuple[list[Any], list[int | None]]:
    tangents = [mapped.place(t, i) for t, i in zip(operands[num_res:], axes[num_res:], strict=True)]
    in_axes = [0] * len(in_nonzero)
    rule = _batch_backward(mapped, bwd, axes[:num_res], [0] * len(out_avals), in_axes)
    avals = tuple([mapped.stack(a, 0) for a in out_avals])
    outputs = custom_lin.bind_positional([*operands[:num_res], *tangents], (name, rule, in_nonzero, num_res, avals))
    return outputs, [0] * len(outputs)


custom_lin = Primitive(
    "custom_lin", ("name", "bwd", "in_nonzero", "num_res", "out_avals"), holds_jaxprs=True, abstract=_lin_abstract,
    emit=_refuse_jvp, evaluate=_refuse_jvp, jvp=_refuse_jvp, transpose=_lin_transpose, transposes_zeros=True,
    batch=_lin_batch, multiple_results=True, memoised=False, unprinted={"out_avals": NEVER_PRINTED},
)
