"""Checking jaxprs: each variable is bound once, before its use, and types agree with the primitives' rules."""

from __future__ import annotations

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.rule_error_notes import format_source
from xtrace._src.core.errors import JaxprTypeError
from xtrace._src.core.jaxprs.effects import NamedAxis
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, find_jaxprs
from xtrace._src.core.jaxprs.printer import format_equation
from xtrace._src.core.sizes import is_symbolic


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Check that a jaxpr, and the jaxprs inside it, keep the rules of the IR.

    Args:
        jaxpr: a `Jaxpr` or `ClosedJaxpr`.

    Raises:
        JaxprTypeError: a rule is broken; the message shows the equation.

    Example:
        >>> xtrace.extend.core.check_jaxpr(xtrace.make_jaxpr(jnp.sin)(1.0))
    """
    if isinstance(jaxpr, ClosedJaxpr):
        for variable, value in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True):
            if aval_of(value) is not variable.aval:
                raise JaxprTypeError(f"the constant of {abbreviate(variable)} has the type {aval_of(value)}")
        jaxpr = jaxpr.jaxpr
    _check(jaxpr, set())


def _check(jaxpr: Jaxpr, checked: set[Jaxpr]) -> None:
    """Check `jaxpr`, and those inside it that are not in `checked` yet."""
    checked.add(jaxpr)
    bound: set[Var] = set()
    for variable in [*jaxpr.constvars, *jaxpr.invars]:
        _bind(bound, variable, "the jaxpr's binders")
    for equation in jaxpr.eqns:
        try:
            _check_equation(equation, bound, checked)
        except JaxprTypeError as error:
            where = f", at\n{format_source(equation.source)}" if equation.source is not None else ""
            error.add_note(f"in the equation {format_equation(equation)}{where}")
            raise
    for atom in jaxpr.outvars:
        _check_use(bound, atom, "the jaxpr's outputs")
    effects = frozenset().union(*(e.effects for e in jaxpr.eqns))
    if not effects <= jaxpr.effects:
        raise JaxprTypeError(f"equations have the effects {set(effects)}, the jaxpr declares {set(jaxpr.effects)}")


def _check_equation(equation: JaxprEqn, bound: set[Var], checked: set[Jaxpr]) -> None:
    primitive, parameters = equation.primitive, equation.parameters
    for atom in equation.invars:
        _check_use(bound, atom, primitive.name)
    if len(parameters) != len(primitive.parameters):
        raise JaxprTypeError(
            f"{primitive.name} has {len(primitive.parameters)} parameters, the equation {len(parameters)}"
        )
    for inner in find_jaxprs(parameters):
        if inner.constvars:
            raise JaxprTypeError(f"the inner jaxpr of {primitive.name} has constvars: they must be operands")
        if inner not in checked:
            _check(inner, checked)
    if any(type(effect) is NamedAxis for effect in equation.effects) and not find_jaxprs(parameters):
        # The type of a collective depends on the axes in scope, and the jaxpr does not record these.
        for variable in equation.outvars:
            _bind(bound, variable, primitive.name)
        return
    try:
        types = primitive.infer_types(tuple(a.aval for a in equation.invars), parameters)
        effects = primitive.find_effects(parameters, [a.aval for a in equation.invars])
    except (TypeError, ValueError) as error:
        raise JaxprTypeError(f"{primitive.name} does not accept its operands or parameters: {error}") from error
    types = list(types) if primitive.multiple_results else [types]
    bound_types = [v.aval for v in equation.outvars]
    if types != bound_types:
        raise JaxprTypeError(f"{primitive.name} gives {types}, the equation binds {bound_types}")
    if effects != equation.effects:
        raise JaxprTypeError(f"{primitive.name} has the effects {set(effects)}, the equation {set(equation.effects)}")
    for variable in equation.outvars:
        _bind(bound, variable, primitive.name)


def _bind(bound: set[Var], variable: Var, where: str) -> None:
    if variable in bound:
        raise JaxprTypeError(f"{abbreviate(variable)} is bound twice, the second time by {where}")
    # No equation can use a DropVar.
    if not isinstance(variable, DropVar):
        bound.add(variable)


def _check_use(bound: set[Var], atom: Atom, where: str) -> None:
    if isinstance(atom, Literal):
        _check_literal(atom, where)
    elif atom not in bound:
        raise JaxprTypeError(f"{where} uses {abbreviate(atom)}, which is not in scope")


def _check_literal(literal: Literal, where: str) -> None:
    value, aval = literal.value, literal.aval
    if aval.shape:
        raise JaxprTypeError(f"{where} uses the literal {abbreviate(literal)}, which is not a scalar")
    if isinstance(value, np.generic):
        agrees = value.dtype == aval.dtype
    elif aval.dtype == dtypes.float0:
        agrees = value is False
    elif is_symbolic(value):
        agrees = dtypes.is_integer(aval.dtype) or dtypes.is_inexact(aval.dtype)
    else:
        extended = isinstance(aval.dtype, dtypes.ExtendedDType)
        agrees = type(value) in (int, float) if extended else type(value) is dtypes.scalar_type_of(aval.dtype)
    if not agrees:
        raise JaxprTypeError(
            f"{where} uses the literal {abbreviate(literal)} as {aval.str_short(True)}, its value is of type "
            f"{type(value)}"
        )
