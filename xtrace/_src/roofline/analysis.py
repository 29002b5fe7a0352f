"""`roofline`: the work and the memory traffic of a function, counted from its jaxpr."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xtrace._src.api.differentiation.grad import make_zero_tangent
from xtrace._src.api.differentiation.grad import vjp as vjp_of
from xtrace._src.api.mapping.shard_map import shard_map
from xtrace._src.api.tracing import make_jaxpr
from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.ops.collectives.shard_map import shard_map_p
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.control_flow.while_loop import while_p
from xtrace._src.ops.solvers import linear_solve
from xtrace._src.roofline.results import RooflineResult, RooflineRuleContext, RooflineShape, count_bytes
from xtrace._src.roofline.rules import RULES, Rule, count_nothing
from xtrace._src.transforms.dead_code import eliminate_dead_code

# Operations with jaxprs that run an unknown number of times.
_UNCOUNTED = frozenset((cond_p, while_p, linear_solve))

_user_rules: dict[Primitive, Rule] = {}


@dataclasses.dataclass(frozen=True)
class _Counting:
    """Counts the work of a program; the fields are options for all equations."""

    mesh: BaseMesh | None
    pin_lhs: bool
    pin_rhs: bool

    def count(self, jaxpr: Jaxpr, kept: Iterable[Var] = ()) -> RooflineResult:
        """Return the sum over the equations, with the peak memory; the inputs `kept` stay in use."""
        last: dict[Atom, int] = {}
        for i, equation in enumerate(jaxpr.eqns):
            last.update(dict.fromkeys(equation.invars, i))
        last.update(dict.fromkeys((*jaxpr.outvars, *kept), len(jaxpr.eqns)))
        live = {v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
        total, peak = RooflineResult(), _sum_bytes(live)
        for i, equation in enumerate(jaxpr.eqns):
            result = self.count_equation(equation, [last.get(x, -1) > i for x in equation.invars])
            operands = {x for x in equation.invars if not isinstance(x, Literal)}
            peak = max(peak, _sum_bytes(live - operands) + result.peak_hbm_bytes)
            live = {v for v in (*live, *equation.outvars) if last.get(v, -1) > i}
            peak = max(peak, _sum_bytes(live))
            total += result
        return dataclasses.replace(total, peak_hbm_bytes=peak)

    def count_equation(self, equation: JaxprEqn, kept: Sequence[bool]) -> RooflineResult:
        """Return the result of an equation, by a rule or by its jaxpr.

        kept: for each operand, whether it is in use after the equation.
        """
        primitive = equation.primitive
        rule = _user_rules.get(primitive) or RULES.get(primitive)
        if rule is None:
            jaxprs = [p.jaxpr for p in equation.parameters if isinstance(p, ClosedJaxpr)]
            if len(jaxprs) == 1 and primitive not in _UNCOUNTED:
                mesh = equation.params["mesh"] if primitive is shard_map_p else self.mesh
                inputs = [v for v, k in zip(jaxprs[0].invars, kept, strict=False) if k]
                return dataclasses.replace(self, mesh=mesh).count(jaxprs[0], inputs)
            return RooflineResult()
        operands, results = [x.aval for x in equation.invars], [v.aval for v in equation.outvars]
        context = RooflineRuleContext(
            name_stack=equation.source_info.name_stack, primitive=primitive, avals_in=operands, avals_out=results,
            jaxpr_eqn_ctx=None, mesh=self.mesh, pin_lhs_in_vmem=self.pin_lhs, pin_rhs_in_vmem=self.pin_rhs,
        )
        result = rule(context, *map(RooflineShape.from_aval, operands), **equation.params)
        if not isinstance(result, RooflineResult):
            raise TypeError(f"roofline: the rule of {primitive} must return a RooflineResult, got {abbreviate(result)}")
        return result


def _sum_bytes(values: set[Any]) -> int:
    return sum([count_bytes(v.aval) for v in values])


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the roofline rule of a primitive.

    Args:
        prim: the primitive.

    Returns:
        A decorator of a rule ``rule(context, *shapes, **parameters)``. The rule gets a `RooflineRuleContext` and a
        `RooflineShape` for each operand, and returns a `RooflineResult`.

    Raises:
        TypeError: `prim` is no primitive.

    Example:
        >>> from xtrace.experimental import roofline
        >>> triple_p = xtrace.extend.core.Primitive("triple")
        >>> _ = triple_p.def_abstract_eval(lambda x: x)
        >>> _ = roofline.register_roofline(triple_p)(lambda context, x: roofline.RooflineResult(flops=3 * x.size))
        >>> roofline.roofline(triple_p.bind)(jnp.ones(5))[1].flops
        15
    """
    _check_primitive(prim)

    def register(rule: Rule) -> Rule:
        _user_rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Register a rule without any work for a primitive, such as one that is fused with others.

    Args:
        prim: the primitive.

    Raises:
        TypeError: `prim` is no primitive.

    Example:
        >>> from xtrace.experimental import roofline
        >>> roofline.register_standard_roofline(xtrace.extend.core.Primitive("fused"))
    """
    _check_primitive(prim)
    _user_rules[prim] = count_nothing


def _check_primitive(prim: object) -> None:
    if not isinstance(prim, Primitive):
        raise TypeError(
            f"{called_function()}: prim must be a primitive, such as xtrace.extend.core.Primitive('name') or "
            f"xtrace.lax.sin_p; got {abbreviate(prim)}"
        )


def roofline(
    f: Callable[..., Any], mesh: BaseMesh | None = None, in_specs: Any = None, out_specs: Any = None, *,
    pin_lhs_in_vmem: bool = False, pin_rhs_in_vmem: bool = False, vjp: bool = False, print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """Return a function that counts the operations, memory traffic and communication of `f` on one device.

    Nothing runs. Contractions count as they are; all other operations count as fused. The body of a scan counts once;
    branches and loops of unknown length do not count.

    Args:
        f: a function of pytrees of arrays.
        mesh: the devices. With a mesh and specifications, `f` is a function of shards, as for `shard_map`.
        in_specs: a `PartitionSpec` for each argument, or a tree prefix.
        out_specs: a `PartitionSpec` for each result, or a tree prefix.
        pin_lhs_in_vmem: whether left operands of contractions are in fast memory already.
        pin_rhs_in_vmem: whether right operands of contractions are in fast memory already.
        vjp: whether to count the gradient of `f`, a function from the arguments to their cotangents; with a mesh only
            its backward part.
        print_jaxpr: whether to print the jaxpr.

    Returns:
        A function of the arguments, or of their `ShapeDtypeStruct`, that returns a pair: the `ShapeDtypeStruct` of each
        result, and a `RooflineResult`.

    Raises:
        TypeError: `f` cannot be called, or its arguments or results are no arrays.

    Example:
        >>> from xtrace.experimental.roofline import roofline
        >>> shapes, result = roofline(jnp.matmul)(jnp.ones((4, 6)), jnp.ones((6, 5)))
        >>> shapes.shape, result.flops, result.hbm_bytes
        ((4, 5), 240, 296)

    Reference:
        S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual performance model (2009).
    """
    check_callable(f)
    function = f
    if mesh is not None and in_specs is not None and out_specs is not None:
        function = shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)

    @boundary
    def count(*args: Any) -> tuple[Any, RooflineResult]:
        closed, shapes = make_jaxpr(_make_gradient(function) if vjp else function, return_shape=True)(*args)
        if print_jaxpr:
            print(closed)
        jaxpr = closed.jaxpr if vjp else eliminate_dead_code(closed.jaxpr)[0]
        if function is not f:
            jaxpr = _find_function_of_shards(jaxpr)
        return shapes, _Counting(mesh, pin_lhs_in_vmem, pin_rhs_in_vmem).count(jaxpr)

    return count


def _make_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function from arguments to their cotangents, for zero cotangents of the results."""

    def gradient(*args: Any) -> Any:
        results, pullback = vjp_of(f, *args)
        return pullback(pytree.tree_map(lambda x: make_zero_tangent(aval_of(x)), results))

    return gradient


def _find_function_of_shards(jaxpr: Jaxpr) -> Jaxpr:
    """Return the last function of shards in a jaxpr: the function itself, or the backward part of its gradient."""
    functions = [e.params["jaxpr"].jaxpr for e in jaxpr.eqns if e.primitive is shard_map_p]
    return functions[-1] if functions else jaxpr


def roofline_and_grad(
    f: Callable[..., Any], mesh: BaseMesh, in_specs: Any, out_specs: Any, *, pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False, print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """Return a function that counts the work of `f` and of its gradient: `roofline` without and with ``vjp``.

    Args:
        f: a function of shards.
        mesh: the devices.
        in_specs: a `PartitionSpec` for each argument, or a tree prefix.
        out_specs: a `PartitionSpec` for each result, or a tree prefix.
        pin_lhs_in_vmem: whether left operands of contractions are in fast memory already.
        pin_rhs_in_vmem: whether right operands of contractions are in fast memory already.
        print_jaxpr: whether to print the jaxprs.

    Returns:
        A function of the arguments that returns the `ShapeDtypeStruct` of each result of `f`, the `RooflineResult` of
        `f`, and the `RooflineResult` of the backward part of its gradient.

    Raises:
        TypeError: `f` cannot be called, or its arguments or results are no arrays.

    Example:
        >>> from xtrace.experimental.roofline import roofline_and_grad
        >>> mesh = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> spec = xtrace.P("x")
        >>> _, forward, backward = roofline_and_grad(jnp.sin, mesh, spec, spec)(jnp.ones(8))
        >>> forward.unfused_flops, backward.unfused_flops
        (8, 8)
    """
    details = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem, "print_jaxpr": print_jaxpr}
    forward = roofline(f, mesh, in_specs, out_specs, **details)
    backward = roofline(f, mesh, in_specs, out_specs, vjp=True, **details)

    @boundary
    def count(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        return *forward(*args), backward(*args)[1]

    return count
