"""`sparsify`: functions of dense arrays applied to sparse arrays, operation by operation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import materialize_literal
from xtrace._src.core.avals import ShapedArray, aval_of, aval_rules, own_aval
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo, Literal, called_jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.ops.control_flow.cond import switch
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.ops.control_flow.while_loop import while_loop
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.stage import stage
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage
from xtrace.experimental.sparse.indexing import forget_order
from xtrace.experimental.sparse.row_storage import RowStorage
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.experimental.sparse.sparse_rules import (
    DENSE_RESULTS,
    ZERO_PRESERVING,
    apply_to_data,
    find_rule,
    refuse_dense_result,
)
from xtrace.numpy.arrays.conversion import asarray

__all__ = ["SparseTracer", "sparsify"]


class SparseTracer(Tracer):
    """A sparse array in place of a dense array, inside of a function under `sparsify`.

    Args:
        trace: its trace.
        spvalue: the sparse array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> kinds = []
        >>> _ = sparse.sparsify(lambda x: kinds.append(type(x)) or x, use_tracer=True)(sparse.eye(2))
        >>> kinds[0] is sparse.SparseTracer
        True
    """

    __slots__ = ("spvalue",)
    __module__ = "xtrace.experimental.sparse"

    def __init__(self, trace: Trace, *, spvalue: Any) -> None:
        self.owner, self.spvalue = trace, spvalue
        self.aval = ShapedArray(spvalue.shape, spvalue.dtype)

    @property
    def spenv(self) -> Trace:
        """The trace of the operations on it."""
        return self.owner

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval.str_short(True)}>"


aval_rules[SparseTracer] = own_aval


class SparseTrace(Trace):
    """Applies operations to sparse arrays by their rules; operations on dense arrays alone go to its parent."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        if not any(type(x) is SparseTracer and x.owner is self for x in operands):
            return self.parent.process(primitive, operands, parameters)
        with use_trace(self.parent):
            results = self._apply(primitive, [self.lower(x) for x in operands], parameters)
        return [self.lift(x) for x in results] if primitive.multiple_results else self.lift(results)

    def lower(self, x: Any) -> Any:
        """Return the sparse array of a tracer, and other values unchanged."""
        if type(x) is SparseTracer and x.owner is self:
            return x.spvalue
        return materialize_literal(x) if isinstance(x, Literal) else x

    def lift(self, x: Any) -> Any:
        """Return a tracer of a sparse array, and other values unchanged."""
        return SparseTracer(self, spvalue=x) if isinstance(x, JAXSparse) else x

    def _apply(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        named = dict(zip(primitive.parameters, parameters, strict=True))
        if primitive.name in _CALLS:
            return _CALLS[primitive.name](operands, **named)
        if primitive.name == "todense":
            return operands[0].todense()
        rule = find_rule(primitive, operands)
        if rule is not None:
            return rule(*operands, **named)
        if primitive.name in DENSE_RESULTS:
            raise refuse_dense_result(primitive)
        if primitive.name in ZERO_PRESERVING and isinstance(operands[0], CoordinateStorage):
            return apply_to_data(primitive, operands, parameters)
        called = called_jaxpr(primitive, parameters, [aval_of(self.lift(x)) for x in operands])
        if called is not None and primitive.multiple_results:
            return apply_jaxpr(called, operands)
        raise NotImplementedError(
            f"sparse rule for {primitive.name} is not implemented; convert the sparse operands with sparse.todense()"
        )


def apply_jaxpr(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Evaluate a jaxpr of dense arrays on operands of which some are sparse."""
    trace = SparseTrace(current_trace.get())
    try:
        with use_trace(trace):
            results = evaluate(closed.jaxpr, closed.consts, [trace.lift(x) for x in operands])
    finally:
        trace.end()
    return [trace.lower(x) for x in results]


def _forget_orders(values: Sequence[Any]) -> list[Any]:
    """Forget the orders of indices, which can differ among the results of loops and branches."""
    return [forget_order(x) if _is_operand(x) else asarray(x) for x in values]


def _while(
    operands: Sequence[Any], *, cond_nconsts: int, cond_jaxpr: ClosedJaxpr, body_nconsts: int, body_jaxpr: ClosedJaxpr
) -> list[Any]:
    cond_consts, body_consts = operands[:cond_nconsts], operands[cond_nconsts : cond_nconsts + body_nconsts]
    state = _forget_orders(operands[cond_nconsts + body_nconsts :])
    return while_loop(
        lambda state: apply_jaxpr(cond_jaxpr, [*cond_consts, *state])[0],
        lambda state: _forget_orders(apply_jaxpr(body_jaxpr, [*body_consts, *state])), state,
    )


def _cond(operands: Sequence[Any], *, branches: Sequence[ClosedJaxpr], branches_platforms: object) -> list[Any]:
    which, *rest = operands
    chosen = [functools.partial(_evaluate_branch, branch) for branch in branches]
    return list(switch(which.astype("int32"), chosen, rest))


def _evaluate_branch(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    return _forget_orders(apply_jaxpr(closed, operands))


def _scan(
    operands: Sequence[Any], *, jaxpr: ClosedJaxpr, length: int, reverse: bool, unroll: int, num_consts: int,
    num_carry: int,
) -> list[Any]:
    consts, state = operands[:num_consts], _forget_orders(operands[num_consts : num_consts + num_carry])

    def step(state: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        results = _forget_orders(apply_jaxpr(jaxpr, [*consts, *state, *x]))
        return results[:num_carry], results[num_carry:]

    state, stacked = scan(step, state, list(operands[num_consts + num_carry :]), length, reverse, unroll)
    return [*state, *stacked]


_CALLS: dict[str, Callable[..., list[Any]]] = {"while": _while, "cond": _cond, "scan": _scan}


def _is_operand(x: object) -> bool:
    """Return whether a leaf is a sparse array with rules; other sparse arrays are trees of buffers."""
    return isinstance(x, CoordinateStorage | RowStorage)


def _give_pattern(x: Any) -> Any:
    """Return a sparse argument with a pattern of its own."""
    if not _is_operand(x):
        return x
    children, info = x.tree_flatten()
    copied = type(x).tree_unflatten(info, children)
    copied.pattern = object()
    return copied


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that applies `f`, a function of dense arrays, to sparse ones as well.

    Args:
        f: a function of pytrees of arrays.
        use_tracer: whether to call `f` on `SparseTracer` objects, so that Python can branch on known dense values; by
            default `f` is traced first.

    Returns:
        A function of the same arguments, each a dense, BCOO or BCSR array. The rules of the operations decide which
        results are sparse. Operations on a sparse array with a dense result, such as the cosine, raise an error.

    Raises:
        TypeError: `f` is not callable, or an argument is not an array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.arange(12).reshape(3, 4))
        >>> sparse.sparsify(lambda m, v: 2 * m.T @ v)(mat, jnp.array([3, 4, 2]))
        Array([ 64,  82, 100, 118], dtype=int32)
    """
    check_callable(f)

    @boundary
    @wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = pytree.tree_flatten((args, kwargs), is_leaf=_is_operand)
        leaves = [_give_pattern(x) for x in leaves]
        out_tree: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            inner_args, inner_kwargs = pytree.tree_unflatten(in_tree, values)
            results, out_tree = pytree.tree_flatten(f(*inner_args, **inner_kwargs), is_leaf=_is_operand)
            return results

        results = _apply_function(flat, leaves) if use_tracer else _apply_staged(flat, leaves, function_name(f))
        return pytree.tree_unflatten(out_tree, results)

    return sparsified


def _apply_function(flat: Callable[..., list[Any]], leaves: Sequence[Any]) -> list[Any]:
    trace = SparseTrace(current_trace.get())
    try:
        with use_trace(trace):
            results = flat(*[trace.lift(x) if _is_operand(x) else asarray(x) for x in leaves])
    finally:
        trace.end()
    return [trace.lower(x) for x in results]


def _apply_staged(flat: Callable[..., list[Any]], leaves: Sequence[Any], name: str) -> list[Any]:
    avals = [ShapedArray(x.shape, x.dtype) if _is_operand(x) else aval_of(x) for x in leaves]
    trees: list[Any] = []

    def function(*tracers: Any) -> list[Any]:
        results = flat(*tracers)
        parts = [pytree.tree_flatten(x) for x in results]
        trees.extend([tree for _, tree in parts])
        return [leaf for each, _ in parts for leaf in each]

    jaxpr, consts = stage(function, avals, DebugInfo("sparsify", name, None, None))
    values = iter(apply_jaxpr(ClosedJaxpr(jaxpr, consts), leaves))
    return [pytree.tree_unflatten(tree, [next(values) for _ in range(tree.num_leaves)]) for tree in trees]
