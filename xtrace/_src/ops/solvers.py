"""Custom solvers: users' solvers of equations, differentiated through the exact solution and not the solver's steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from xtrace._src.algebra.families import add_any, neg
from xtrace._src.algebra.vector_space import convert_to, zeros
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.jaxprs.effects import Effects
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Var
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tangents import UndefinedPrimal, tangent_aval
from xtrace._src.ops.control_flow.bodies import Body, check_function, flatten_argument, same_type, stage_body
from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call
from xtrace._src.ops.custom_rules.rule import Rule, to_user_operand
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import batch_jaxpr, move_constants_to_inputs, transpose_jaxpr
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.lower import emit_jaxpr
from xtrace._src.transforms.scopes import JVP, TRANSPOSE, call_in_scopes, get_program_scopes, program_scopes, scope
from xtrace._src.xla.pytree_registry import PyTreeDef

_Tree = TypeVar("_Tree")
_Value = TypeVar("_Value")


class LinearSolve(NamedTuple, Generic[_Value]):
    """One value for each function of a linear system, and of its transpose: jaxprs, constants or their numbers.

    The jaxprs of the transpose, `vecmat` and `transpose_solve`, are None if it was not given.
    """

    matvec: _Value
    vecmat: _Value
    solve: _Value
    transpose_solve: _Value

    def transpose(self) -> LinearSolve[_Value]:
        """Return the values for the transposed system."""
        return LinearSolve(self.vecmat, self.matvec, self.transpose_solve, self.solve)

_Consts = LinearSolve[list[Any]]
_Jaxprs = LinearSolve[ClosedJaxpr]


def split_operands(lengths: LinearSolve[int], operands: Sequence[Any]) -> tuple[_Consts, list[Any]]:
    """Split operands into the constants of each function, whose numbers are `lengths`, and the right-hand side."""
    parts, start = [], 0
    for length in lengths:
        parts.append(list(operands[start : start + length]))
        start += length
    return LinearSolve(*parts), list(operands[start:])


def _bind(consts: _Consts, jaxprs: _Jaxprs, right: Sequence[Any]) -> list[Any]:
    lengths = LinearSolve(*map(len, consts))
    operands = [*[c for part in consts for c in part], *right]
    return linear_solve.bind_positional(operands, (lengths, jaxprs))


def _abstract(*avals: ShapedArray, const_lengths: LinearSolve[int], jaxprs: _Jaxprs) -> list[ShapedArray]:
    """Return the solution of a linear system, and the auxiliary results of the solver."""
    consts, right = split_operands(const_lengths, avals)
    expected = jaxprs.solve.in_avals
    operands = [*consts.solve, *right]
    if len(operands) != len(expected) or not all(map(same_type, operands, expected)):
        raise TypeError(f"custom_linear_solve: the solver takes {expected}, it was called with {operands}")
    return jaxprs.solve.out_avals


def _emit(builder: FunctionBuilder, *values: Value, const_lengths: LinearSolve[int], jaxprs: _Jaxprs) -> list[Value]:
    consts, right = split_operands(const_lengths, values)
    results = builder.results
    emitted = emit_jaxpr(builder, jaxprs.solve.jaxpr, [*consts.solve, *right])
    builder.results = results
    return emitted


def _effects(*, jaxprs: _Jaxprs, **_: object) -> Effects:
    return jaxprs.solve.effects


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, const_lengths: LinearSolve[int], jaxprs: _Jaxprs
) -> tuple[list[Any], list[Any]]:
    # A x = b: dx = A⁻¹ (db - dA x), where dA x is the tangent of matvec at a fixed x.
    consts, right = split_operands(const_lengths, primals)
    dconsts, dright = split_operands(const_lengths, tangents)
    results = _bind(consts, jaxprs, right)
    count = len(right)
    solution = results[:count]
    change: Sequence[Any] = [None] * count
    if any(t is not None for t in dconsts.matvec):
        change = _push_forward(jaxprs.matvec, [*consts.matvec, *solution], [*dconsts.matvec, *[None] * count])
    with program_scopes(below=True):
        moved = [_subtract_tangents(t, c) for t, c in zip(dright, change, strict=True)]
    if all(t is None for t in moved):
        return results, [None] * len(results)
    filled = _instantiate_zeros(moved, list(map(aval_of, right)))
    return results, [*_bind(consts, jaxprs, filled)[:count], *[None] * (len(results) - count)]


def _push_forward(closed: ClosedJaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Return the tangents of the results of `closed`."""
    def function(*args: Any) -> list[Any]:
        with scope(JVP):
            return evaluate(closed.jaxpr, closed.consts, args)

    return call_in_scopes(jvp, function, primals, tangents)[1]


def _subtract_tangents(x: Array | None, y: Array | None) -> Any:
    if y is None:
        return x
    return neg(y) if x is None else add_any(x, neg(y))


def _transpose(
    cotangents: Sequence[Any], *operands: Array, const_lengths: LinearSolve[int], jaxprs: _Jaxprs
) -> list[Any]:
    consts, right = split_operands(const_lengths, operands)
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of custom_linear_solve; pass it, or "
            "symmetric=True for a symmetric system"
        )
    if any(type(c) is UndefinedPrimal for part in consts for c in part):
        raise NotImplementedError("custom_linear_solve is linear in its right-hand side only, not in the system")
    filled = _instantiate_zeros(cotangents[: len(right)], list(map(aval_of, right)))
    in_cotangents = _bind(consts.transpose(), jaxprs.transpose(), filled)[: len(right)]
    return [*[None] * sum(const_lengths), *in_cotangents]


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, const_lengths: LinearSolve[int],
    jaxprs: _Jaxprs,
) -> tuple[list[Any], list[int]]:
    consts, right = split_operands(const_lengths, operands)
    where, places = split_operands(const_lengths, axes)
    new_consts: list[Any] = []
    new_jaxprs: list[Any] = []
    for closed, own, at in zip(jaxprs, consts, where, strict=True):
        if closed is None:
            new_consts.append([])
            new_jaxprs.append(None)
            continue
        batched, _ = batch_jaxpr(closed, mapped, (*at, *[0] * len(right)), (True,) * len(closed.out_avals))
        new_consts.append([*batched.consts, *own])
        new_jaxprs.append(move_constants_to_inputs(batched))
    right = [mapped.place(x, i) for x, i in zip(right, places, strict=True)]
    results = _bind(LinearSolve(*new_consts), LinearSolve(*new_jaxprs), right)
    return results, [0] * len(results)


linear_solve = ListPrimitive(
    "custom_linear_solve", ("const_lengths", "jaxprs"), holds_jaxprs=True, abstract=_abstract, emit=_emit,
    effects=_effects, jvp=_jvp,
    transpose=_transpose, batch=_batch, multiple_results=True, memoised=False,
)


def _check_like(
    function: str, argument: str, body: Body, tree: PyTreeDef, avals: Sequence[ShapedArray], has_aux: bool
) -> Any:
    """Raise an error unless `body` returns `tree` of types `avals`; return the tree of the auxiliary result, if any."""
    out_tree, aux = body.out_tree, None
    if has_aux:
        parts = out_tree.children() if out_tree is not None else []
        if len(parts) != 2:
            raise ValueError(f"{function}: {argument} must return a pair with has_aux=True, it returned {out_tree}")
        out_tree, aux = parts
    if out_tree != tree:
        raise TypeError(
            f"{function}: {argument} must return the structure {tree} of its argument, it returned {out_tree}"
        )
    out_avals = body.out_avals[: len(avals)]
    if not all(map(same_type, out_avals, avals)):
        raise ValueError(
            f"{function}: {argument} output shapes and dtypes must match its argument, got "
            f"{[a.str_short(True) for a in out_avals]} and {[a.str_short(True) for a in avals]}"
        )
    return aux


def _reuse_staged(
    function: Callable[..., Any], body: Body, tree: PyTreeDef, avals: Sequence[ShapedArray]
) -> Callable[..., Any]:
    """Return a function that evaluates `body` for arguments of its types, and calls `function` for others.

    Otherwise the number of traces would be exponential in the depth of nested solvers.
    """

    def call(x: ArrayLike) -> Any:
        leaves, own_tree = pytree.tree_flatten(x)
        if own_tree != tree or [aval_of(leaf) if is_array_like(leaf) else None for leaf in leaves] != list(avals):
            return function(x)
        results = evaluate(body.jaxpr.jaxpr, body.jaxpr.consts, [*body.consts, *leaves])
        return pytree.tree_unflatten(body.out_tree, map(to_user_operand, results))

    return call


class _Problem(NamedTuple):
    """A user's equation and solver, staged on the type of the solution."""

    tree: PyTreeDef
    avals: Sequence[ShapedArray]
    equation: Body
    solver: Body
    aux_tree: Any

    def unflatten(self, results: Sequence[Any], has_aux: bool) -> Any:
        """Return the solution, or the pair of the solution and the auxiliary result."""
        count = len(self.avals)
        x = pytree.tree_unflatten(self.tree, results[:count])
        return (x, pytree.tree_unflatten(self.aux_tree, results[count:])) if has_aux else x


def _stage_problem(
    name: str, argument: str, function: Callable[..., Any], solve: Callable[..., Any], tree: PyTreeDef,
    avals: Sequence[ShapedArray], has_aux: bool,
) -> _Problem:
    """Stage `function`, which `name` calls `argument`, and its solver; both must return `tree` of types `avals`."""
    in_tree = pytree.treedef_tuple([tree])
    equation = stage_body(name, function, in_tree, avals)
    _check_like(name, argument, equation, tree, avals, False)
    staged = _reuse_staged(function, equation, tree, avals)

    def solution(x: Array) -> Any:
        return solve(staged, x)

    solver = stage_body(name, solution, in_tree, avals)
    return _Problem(tree, avals, equation, solver, _check_like(name, "solve", solver, tree, avals, has_aux))


@overload
def custom_linear_solve(
    matvec: Callable[..., Any], b: _Tree, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = ...,
    symmetric: bool = ..., has_aux: Literal[False] = ...,
) -> _Tree: ...


@overload
def custom_linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = ...,
    symmetric: bool = ..., has_aux: bool = ...,
) -> Any: ...


def custom_linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Callable[..., Any], transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False, has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) = b`` with a user's solver, differentiated through the exact solution.

    Args:
        matvec: a linear function of trees like `b`.
        b: a tree of floating arrays.
        solve: a function of `matvec` and a right-hand side that returns the solution.
        transpose_solve: the same for the transposed system; reverse mode needs it.
        symmetric: whether the system is its own transpose.
        has_aux: whether the solvers return pairs of the solution and auxiliary results, which have no derivatives.

    Returns:
        The solution, a tree like `b`, or a pair.

    Raises:
        TypeError: a function returns a tree or types unlike `b`.
        ValueError: the shapes do not agree.

    Example:
        >>> lax.custom_linear_solve(lambda x: 2.0 * x, 6.0, lambda matvec, b: b / 2.0, symmetric=True)
        Array(3., dtype=float32, weak_type=True)
    """
    name = "custom_linear_solve"
    for argument, function in (("matvec", matvec), ("solve", solve)):
        check_function(argument, function)
    leaves, tree, avals = flatten_argument("b", b)
    problem = _stage_problem(name, "matvec", matvec, solve, tree, avals, has_aux)
    product, solver, count = problem.equation, problem.solver, len(leaves)
    vecmat: Any = None
    back: Any = None
    vecmat_consts: list[Any] = []
    back_consts: list[Any] = []
    if symmetric:
        vecmat, vecmat_consts, back, back_consts = product.jaxpr, product.consts, solver.jaxpr, solver.consts
    elif transpose_solve is not None:
        check_function("transpose_solve", transpose_solve)
        linear = (*(False,) * len(product.consts), *(True,) * count)
        transposed, _ = transpose_jaxpr(product.jaxpr, linear, (True,) * count, True)
        vecmat, vecmat_consts = move_constants_to_inputs(transposed), [*transposed.consts, *product.consts]
        closed, scopes = vecmat, (TRANSPOSE, *get_program_scopes())

        def times_transposed(x: Array) -> Any:
            leaves = zip(pytree.tree_leaves(x), avals, strict=True)
            values = [convert_to(to_user_operand(y), a.dtype) for y, a in leaves]
            with scope(*scopes):
                return pytree.tree_unflatten(tree, evaluate(closed.jaxpr, [], [*vecmat_consts, *values]))

        def transposed_solution(x: Array) -> Any:
            return transpose_solve(times_transposed, x)

        body = stage_body(name, transposed_solution, pytree.treedef_tuple([tree]), avals)
        _check_like(name, "transpose_solve", body, tree, avals, has_aux)
        back, back_consts = body.jaxpr, body.consts
    consts = LinearSolve(product.consts, vecmat_consts, solver.consts, back_consts)
    results = _bind(consts, LinearSolve(product.jaxpr, vecmat, solver.jaxpr, back), leaves)
    return problem.unflatten(results, has_aux)


def custom_root(
    f: Callable[..., Any], initial_guess: Any, solve: Callable[..., Any], tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of a function with a user's solver, differentiated through the exact root.

    Args:
        f: a function of trees like `initial_guess`.
        initial_guess: a tree of floating arrays; it has no derivative.
        solve: a function of `f` and a guess that returns the root.
        tangent_solve: a function of a linear g and y that solves ``g(x) = y``; use `custom_linear_solve` in it for
            reverse mode through an iterative solver.
        has_aux: whether `solve` returns a pair of the root and auxiliary results, which have no derivatives.

    Returns:
        The root, a tree like `initial_guess`, or a pair.

    Raises:
        TypeError: a function returns a tree or types unlike the guess.
        ValueError: the shapes do not agree.

    Example:
        >>> def root(a):
        ...     return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), lambda g, y: y / g(1.0))
        >>> root(4.0), xtrace.grad(root)(4.0)
        (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    name = "custom_root"
    for argument, function in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        check_function(argument, function)
    leaves, tree, avals = flatten_argument("initial_guess", initial_guess)
    problem = _stage_problem(name, "f", f, solve, tree, avals, has_aux)
    residual, solver, count = problem.equation, problem.solver, len(leaves)
    split = len(residual.consts)

    def linear_solution(at: object, y: Array) -> Any:
        point = [*residual.consts, *pytree.tree_leaves(at)]

        def linear(direction: object) -> Any:
            moved = [
                convert_to(to_user_operand(t), a.dtype)
                for t, a in zip(pytree.tree_leaves(direction), avals, strict=True)
            ]
            results = _push_forward(residual.jaxpr, point, [*[None] * split, *moved])
            return pytree.tree_unflatten(tree, _instantiate_zeros(results, avals))

        return tangent_solve(linear, y)

    directions = [tangent_aval(a) for a in avals]
    linear_solver = stage_body(name, linear_solution, pytree.treedef_tuple([tree, tree]), [*avals, *directions])
    if linear_solver.out_tree != tree or not all(map(same_type, linear_solver.out_avals, avals)):
        raise TypeError(
            f"custom_root: tangent_solve must return arrays like the initial guess, {tree} of "
            f"{[a.str_short(True) for a in avals]}; it returned {linear_solver.out_tree} of "
            f"{[a.str_short(True) for a in linear_solver.out_avals]}"
        )
    closed_over = [*residual.consts, *solver.consts, *linear_solver.consts]
    # The call takes all closed-over values: the derivative is with respect to f's, but depends on the others as well.
    opened = solver.jaxpr.jaxpr
    first, last = split + len(solver.consts), len(closed_over)
    inputs = [
        *[Var(a) for a in residual.jaxpr.in_avals[:split]], *opened.invars[: len(solver.consts)],
        *[Var(aval_of(c)) for c in linear_solver.consts], *opened.invars[len(solver.consts) :],
    ]
    call = ClosedJaxpr(opened.replace(invars=inputs), [])

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        # f(x, θ) = 0: ∂f/∂x dx = - ∂f/∂θ dθ.
        results = bind_root(primals)
        solution = results[:count]
        change = [None] * count
        if any(t is not None for t in tangents[:split]):
            change = _push_forward(residual.jaxpr, [*primals[:split], *solution], [*tangents[:split], *[None] * count])
        if all(t is None for t in change):
            return results, [None] * len(results)
        operands = [*primals[first:last], *solution, *_instantiate_zeros(change, avals)]
        tangents_of_root = evaluate(linear_solver.jaxpr.jaxpr, linear_solver.jaxpr.consts, operands)
        with program_scopes(below=True):
            tangents_of_root = [neg(t) for t in tangents_of_root]
        return results, [*tangents_of_root, *[None] * (len(results) - count)]

    def bind_root(values: Sequence[Any]) -> list[Any]:
        parameters = (name, call, Rule(rule, "root_jvp"), 0, False)
        return custom_jvp_call.bind_positional(values, parameters)

    return problem.unflatten(bind_root([*closed_over, *leaves]), has_aux)


def _instantiate_zeros(tangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [zeros(tangent_aval(a)) if t is None else t for t, a in zip(tangents, avals, strict=True)]
