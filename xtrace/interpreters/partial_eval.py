"""Partial evaluation and elimination of dead code (``jax.interpreters.partial_eval``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._late_imports import late_imports as _late_imports
from xtrace._late_imports import late_modules
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr, JaxprEqn
from xtrace._src.core.linear_functions import WrappedFun
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.partial_evaluation import PartialVal, custom_partial_eval_rules, partially_evaluate
from xtrace._src.extension.partial_rules import partial_eval_jaxpr_custom_rules
from xtrace._src.transforms import dead_code
from xtrace._src.transforms.stage import StagedTracer, stage

with late_modules(globals()):
    from xtrace._src.extension import dead_code_rules

__all__ = [
    "DynamicJaxprTracer", "PartialVal", "Val", "custom_partial_eval_rules", "dce_jaxpr", "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]

DynamicJaxprTracer = StagedTracer
Val = Any


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Evaluate a function on partly known arrays: run operations on known values, and record the others.

    Args:
        fun: a `WrappedFun` of arrays that returns a sequence of arrays.
        pvals: a `PartialVal` for each argument.
        instantiate: whether known results are results of the jaxpr, too: one flag, or one for each.

    Returns:
        A jaxpr of the unknown arguments, a `PartialVal` for each result, and the values of the jaxpr's constants.

    Raises:
        TypeError: a result is not an array.

    Example:
        >>> from xtrace.extend import linear_util
        >>> from xtrace.interpreters import partial_eval as pe
        >>> given = [pe.PartialVal.known(2.0), pe.PartialVal.unknown(xtrace.typeof(1.0))]
        >>> jaxpr, results, _ = pe.trace_to_jaxpr_nounits(linear_util.wrap_init(lambda x, y: [x + 1, y * 2]), given)
        >>> results[0].get_known(), len(jaxpr.eqns)
        (3.0, 1)
    """
    return partially_evaluate(fun.call_wrapped, pvals, instantiate)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray], *, keep_inputs: list[bool] | None = None, lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """Record a function of arrays as a jaxpr.

    Args:
        fun: a `WrappedFun` of arrays that returns a sequence of arrays.
        in_avals: the types of its arguments.
        keep_inputs: must be None.
        lower: not used.
        auto_dce: whether to eliminate operations without an effect on the results.

    Returns:
        A jaxpr, the types of its results, and the values of its constants.

    Raises:
        NotImplementedError: `keep_inputs` is given.
        TypeError: a result is not an array.

    Example:
        >>> from xtrace.extend import linear_util
        >>> from xtrace.interpreters import partial_eval as pe
        >>> pe.trace_to_jaxpr_dynamic(linear_util.wrap_init(lambda x: [x + 1.0]), [xtrace.typeof(1.0)])[0]
        { lambda ; a:f32[]. let b:f32[] = add a 1.0 in (b,) }
    """
    if keep_inputs is not None:
        raise NotImplementedError("trace_to_jaxpr_dynamic: keep_inputs is not supported; leave it at None")
    debug_info = fun.debug_info or DebugInfo("partial_eval", fun.__name__, None, None)
    jaxpr, constants = stage(lambda *xs: list(fun.call_wrapped(*xs)), list(in_avals), debug_info)
    if auto_dce:
        jaxpr = dead_code.eliminate_dead_code(jaxpr)[0]
    return jaxpr, [v.aval for v in jaxpr.outvars], constants


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Eliminate dead code: the equations and inputs of a jaxpr that its used results do not need.

    Args:
        jaxpr: a jaxpr without constants.
        used_outputs: a flag for each result, True for a used result; or one flag for all.
        instantiate: a flag for each input, True to keep an unused input; or one flag for all.

    Returns:
        The jaxpr of the used results, and a flag for each input, True if it remains.

    Raises:
        ValueError: there are more or fewer flags than results or inputs.

    Example:
        >>> jaxpr = xtrace.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 1.0).jaxpr
        >>> xtrace.interpreters.partial_eval.dce_jaxpr(jaxpr, [False, True])
        ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0 in (b,) }, [False, True])
    """
    smaller, _, used = dead_code_rules.eliminate(jaxpr, *_parse_flags(jaxpr, used_outputs, instantiate))
    return smaller, used


def _parse_flags(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[list[bool], list[bool]]:
    used = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else list(used_outputs)
    always = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    if len(used) != len(jaxpr.outvars) or len(always) != len(jaxpr.invars):
        raise ValueError(
            f"used_outputs has {len(used)} flags and instantiate {len(always)}; the jaxpr has {len(jaxpr.outvars)} "
            f"results and {len(jaxpr.invars)} inputs"
        )
    return used, always


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Eliminate dead code: the equations, constants and inputs of a jaxpr that its used results do not need.

    Args:
        jaxpr: a jaxpr.
        used_outputs: a flag for each result, True for a used result.
        instantiate: a flag for each input, True to keep an unused input; or one flag for all inputs and constants.

    Returns:
        The jaxpr of the used results, and flags for the constants and for the inputs, True for those that remain.

    Raises:
        ValueError: there are more or fewer flags than results or inputs.

    Example:
        >>> jaxpr = xtrace.make_jaxpr(lambda x, y: (x * np.ones(2), y * 2.0))(1.0, 1.0).jaxpr
        >>> xtrace.interpreters.partial_eval.dce_jaxpr_consts(jaxpr, [False, True])
        ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0 in (b,) }, [False], [False, True])
    """
    smaller, read, used = dead_code_rules.eliminate(jaxpr, *_parse_flags(jaxpr, used_outputs, instantiate))
    read = [is_read or instantiate is True for is_read in read]
    return smaller.replace(constvars=[v for v, stays in zip(jaxpr.constvars, read, strict=True) if stays]), read, used


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Eliminate dead code in a call of a jaxpr.

    Args:
        used_outputs: a flag for each result, True for a used result.
        eqn: the equation, with the jaxpr as parameter ``call_jaxpr``.

    Returns:
        A flag for each operand, True if it is needed, and the remaining equation, or None.

    Raises:
        KeyError: the equation has no parameter ``call_jaxpr``.

    Example:
        >>> from xtrace.extend import core
        >>> from xtrace.interpreters import partial_eval
        >>> closed = xtrace.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 1.0)
        >>> equation = xtrace.make_jaxpr(
        ...     lambda x, y: core.primitives.closed_call_p.bind(x, y, call_jaxpr=closed))(1.0, 1.0).eqns[0]
        >>> partial_eval.dce_jaxpr_call_rule([True, False], equation)[0]
        [True, False]
    """
    return dead_code_rules.eliminate_in_call(used_outputs, eqn, "call_jaxpr")


def dce_jaxpr_closed_call_rule(used_outputs: list[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """Eliminate dead code in a call of a closed jaxpr; the same as `dce_jaxpr_call_rule`.

    Args:
        used_outputs: a flag for each result, True for a used result.
        eqn: the equation, with the jaxpr as parameter ``call_jaxpr``.

    Returns:
        A flag for each operand, True if it is needed, and the remaining equation, or None.

    Raises:
        KeyError: the equation has no parameter ``call_jaxpr``.

    Example:
        >>> callable(xtrace.interpreters.partial_eval.dce_jaxpr_closed_call_rule)
        True
    """
    return dead_code_rules.eliminate_in_call(used_outputs, eqn, "call_jaxpr")


_make_public(globals(), __all__)
JaxprTracer = DynamicJaxprTracer
__all__ = sorted([*__all__, "JaxprTracer"])

# The rules load at their first use, together with loops and rematerialization.
with _late_imports(globals()):
    from xtrace._src.extension.dead_code_rules import dce_rules as dce_rules
