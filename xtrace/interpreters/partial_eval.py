"""Partial evaluation and dead code: ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.ir import DebugInfo, Jaxpr
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.extension.linear_functions import WrappedFun
from xtrace._src.extension.partial_evaluation import PartialVal, partially_evaluate
from xtrace._src.transforms import dce
from xtrace._src.transforms.stage import StagedTracer, stage

__all__ = [
    "DynamicJaxprTracer", "PartialVal", "Val", "dce_jaxpr", "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]

DynamicJaxprTracer = StagedTracer
Val = Any


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Call a function of arrays of which some are known; operations on these are computed, the others recorded.

    Args:
        fun: a `WrappedFun` of arrays that returns a sequence of arrays.
        pvals: a `PartialVal` for each argument.
        instantiate: whether results that are known are results of the jaxpr too, one flag or one for each.

    Returns:
        A jaxpr with constants of the arguments that are not known, a `PartialVal` for each result, and the values
        of the constants.

    Raises:
        TypeError: a result is no array.

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
        auto_dce: whether operations without an effect on the results are left out.

    Returns:
        A jaxpr, the types of its results, and the values of its constants.

    Raises:
        NotImplementedError: `keep_inputs` is given.
        TypeError: a result is no array.

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
        jaxpr = dce.eliminate_dead_code(jaxpr)[0]
    return jaxpr, [v.aval for v in jaxpr.outvars], constants


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return a jaxpr without the equations and inputs that its wanted results do not need.

    Args:
        jaxpr: a jaxpr without constants.
        used_outputs: for each result whether it is wanted, or one flag for all.
        instantiate: for each input whether it stays even if it is not read, or one flag for all.

    Returns:
        The jaxpr of the wanted results, and for each input whether it stayed.

    Raises:
        AttributeError: `jaxpr` is no jaxpr.

    Example:
        >>> jaxpr = xtrace.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 1.0).jaxpr
        >>> xtrace.interpreters.partial_eval.dce_jaxpr(jaxpr, [False, True])
        ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0 in (b,) }, [False, True])
    """
    wanted = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else list(used_outputs)
    always = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    kept = jaxpr.replace(outvars=[v for v, use in zip(jaxpr.outvars, wanted, strict=True) if use])
    smaller, read = dce.eliminate_dead_code(kept)
    used = [is_read or keep for is_read, keep in zip(read, always, strict=True)]
    return smaller.replace(invars=[v for v, use in zip(jaxpr.invars, used, strict=True) if use]), used


_make_public(globals(), __all__)
JaxprTracer = DynamicJaxprTracer
__all__ = sorted([*__all__, "JaxprTracer"])
