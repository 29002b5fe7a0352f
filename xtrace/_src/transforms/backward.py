"""Reverse mode: a linear jaxpr is transposed, from its last equation to its first."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.families import BILINEAR, add_cotangents
from xtrace._src.algebra.resharding import cast_to_auto, reshard_as
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.positions import call_at
from xtrace._src.core.diagnostics.rule_error_notes import note_rule
from xtrace._src.core.errors import ShardingTypeError
from xtrace._src.core.jaxprs.ir import Atom, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import Trace, current_trace
from xtrace._src.transforms.dead_code import eliminate_dead_code
from xtrace._src.transforms.replay import TraceStack


def backward(
    jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Any], cotangents: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Return the cotangents of the inputs of `jaxpr` whose operand is `UndefinedPrimal`, given the outputs' cotangents.

    `consts` and the other operands are known values; the jaxpr may be nonlinear in them. None is a zero cotangent.
    Cotangents of inputs that are not `wanted` may be left out.
    """
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Atom] = set()
    for variable, operand in zip(jaxpr.invars, operands, strict=True):
        if isinstance(operand, UndefinedPrimal):
            linear.add(variable)
        else:
            values[variable] = operand
    pending = _evaluate_known(jaxpr, values, linear)
    cotangents_of: dict[Var, Any] = {}
    for atom, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if cotangent is not None and atom in linear:
            before = cotangents_of.get(atom)  # type: ignore[arg-type]
            cotangents_of[atom] = cotangent if before is None else add_cotangents(before, cotangent)  # type: ignore[index]
    if any(e.primitive.transposes_zeros for e in pending):
        read = set(map(id, eliminate_dead_code(jaxpr)[0].eqns))
        pending = [e for e in pending if id(e) in read]
    if wanted is not None and not all(wanted):
        pending = _equations_that_depend_on(pending, [v for v, w in zip(jaxpr.invars, wanted, strict=True) if w])
    stack = TraceStack.below(current_trace.get())
    for equation in reversed(pending):
        _transpose(equation, values, linear, cotangents_of, stack)
    return [cotangents_of.get(v) for v in jaxpr.invars]


def _equations_that_depend_on(equations: Sequence[JaxprEqn], variables: Sequence[Var]) -> list[JaxprEqn]:
    reached: set[Atom] = set(variables)
    kept = []
    for equation in equations:
        if any(x in reached for x in equation.invars):
            reached.update(equation.outvars)
            kept.append(equation)
    return kept


def _evaluate_known(jaxpr: Jaxpr, values: dict[Var, Any], linear: set[Atom]) -> list[JaxprEqn]:
    """Evaluate the equations that depend on no linear input, and return the others."""
    trace, pending = current_trace.get(), []
    for equation in jaxpr.eqns:
        for x in equation.invars:
            if x in linear:
                pending.append(equation)
                linear.update(equation.outvars)
                break
        else:
            operands = [x if isinstance(x, Literal) else values[x] for x in equation.invars]
            result = call_at(equation, trace.process, equation.primitive, operands, equation.parameters)
            results = result if equation.primitive.multiple_results else [result]
            values.update(zip(equation.outvars, results, strict=True))
    return pending


def _transpose(
    equation: JaxprEqn, values: dict[Var, Any], linear: set[Atom], cotangents_of: dict[Var, Any],
    stack: TraceStack | None
) -> None:
    primitive = equation.primitive
    given: Any
    if primitive.multiple_results:
        given = [cotangents_of.pop(v, None) for v in equation.outvars]
        if not primitive.transposes_zeros and all(c is None for c in given):
            return
    else:
        given = cotangents_of.pop(equation.outvars[0], None)
        if given is None:
            return
    operands = [
        x if isinstance(x, Literal) else UndefinedPrimal(x.aval.to_cotangent_aval()) if x in linear else values[x]
        for x in equation.invars
    ]
    bilinear = getattr(primitive.jvp, "func", None) is BILINEAR.make
    if bilinear and all(type(x) is UndefinedPrimal for x in operands):
        raise NotImplementedError(
            f"Transpose of '{primitive.name}': both operands depend on the argument, so the product is not linear in "
            "it; hold one of them fixed"
        )
    try:
        results = _replay(stack, equation, given, operands) if stack is not None and primitive.replayable else None
        if results is None:
            rule = functools.partial(primitive.rule("transpose"), **equation.params)
            results = call_at(equation, rule, given, *operands)
            for x, cotangent in zip(equation.invars, results, strict=True):
                if cotangent is not None:
                    assert aval_of(cotangent).shape == x.aval.shape, (primitive, aval_of(cotangent), x.aval)
    except Exception as error:
        note_rule(error, "transpose", primitive, equation.invars, equation.source)
        raise
    for x, cotangent in zip(equation.invars, results, strict=True):
        if cotangent is not None and x in linear:
            if x.aval.is_placed:
                cotangent = _match_sharding(cotangent, x.aval.to_cotangent_aval(), primitive)
            elif (own := aval_of(cotangent).explicit_sharding) is not None and own.spec.unreduced:
                cotangent = cast_to_auto(cotangent)
            before = cotangents_of.get(x)  # type: ignore[arg-type]
            if before is not None:
                cotangent = call_at(equation, add_cotangents, before, cotangent)
            cotangents_of[x] = cotangent  # type: ignore[index]


def _match_sharding(cotangent: Any, wanted: ShapedArray, primitive: Primitive) -> Any:
    """Return a cotangent with the sharding of the type `wanted`; ShardingTypeError if its manual sums differ."""
    own = aval_of(cotangent)
    if own.manual_sums != wanted.manual_sums:
        raise ShardingTypeError(
            f"{primitive.name}: the cotangent of the operand of type {wanted.to_cotangent_aval().str_short(True)} "
            f"should have the type {wanted.str_short(True)}, and it is {own.str_short(True)}: the other operands are "
            "the same on all devices. Cast the operand to='varying' with xtrace.lax.pcast first"
        )
    return reshard_as(cotangent, wanted)


def _replay(stack: TraceStack, equation: JaxprEqn, given: Any, operands: Sequence[Any]) -> list[Any] | None:
    """Return the results of an equation's transpose rule, replayed; None if the rule cannot be replayed."""
    primitive, parameters = equation.primitive, equation.parameters
    # Whether each cotangent is zero; no flags for an operation with one result.
    zero: tuple[bool, ...] = ()
    known: list[Any] = [given]
    types: list[Any] = []
    if primitive.multiple_results:
        zero, known = tuple([c is None for c in given]), [c for c in given if c is not None]
    for x in operands:
        if type(x) is UndefinedPrimal:
            types.append(x.aval)
        else:
            types.append(None)
            known.append(x)
    linear = tuple(types)

    def by_rule(top: Trace, *values: object) -> tuple[Any, None]:
        left = iter(values)
        cotangents = [None if z else next(left) for z in zero] if primitive.multiple_results else next(left)
        rest = [next(left) if aval is None else UndefinedPrimal(aval) for aval in linear]
        return primitive.rule("transpose")(cotangents, *rest, **equation.params), None

    head = ("transpose", parameters, zero, linear)
    replayed = stack.replay(primitive.subprograms, head, by_rule, known, equation.source)
    return None if replayed is None else replayed[0]
