"""`custom_vjp` and `custom_gradient`: functions with custom reverse-mode derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.custom_rules.custom_function import CustomFunction, Expected, check_pair
from xtrace._src.api.custom_rules.nondiff_arguments import Call, Same
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractRef, ShapedArray, aval_of, is_array_like
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.pytrees import pytree, pytree_registration
from xtrace._src.core.references import Reference
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.control_flow.bodies import stage_body
from xtrace._src.ops.custom_rules.custom_vjp import custom_vjp_call
from xtrace._src.ops.custom_rules.rule import Rule, make_zero, to_rule_operand, to_user_operand
from xtrace._src.ops.custom_rules.symbolic_zeros import SymbolicZero, symbolic_zero
from xtrace._src.ops.references.binding import wrap
from xtrace._src.transforms.evaluate import evaluate

with late_modules(globals()):
    from xtrace._src.ops.custom_rules import remat_opt

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class CustomVJPPrimal:
    """A leaf of the arguments of ``fwd`` rules with ``symbolic_zeros=True``.

    Args:
        value: the array.
        perturbed: whether the function is differentiated with respect to it.

    Example:
        >>> xtrace.custom_derivatives.CustomVJPPrimal(1.0, True).perturbed
        True
    """

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: object) -> Any:
    """Replace each `CustomVJPPrimal` in a tree by its value.

    Args:
        tree: a pytree of arguments of a ``fwd`` rule with ``symbolic_zeros=True``.

    Returns:
        A tree of values.

    Raises:
        TypeError: a leaf is no `CustomVJPPrimal`.

    Example:
        >>> primal = xtrace.custom_derivatives.CustomVJPPrimal(1.0, True)
        >>> xtrace.custom_derivatives.custom_vjp_primal_tree_values([primal])
        [1.0]
    """
    return pytree.tree_map(_get_primal_value, tree)


def _get_primal_value(leaf: object) -> Any:
    if not isinstance(leaf, CustomVJPPrimal):
        raise TypeError(
            f"custom_vjp_primal_tree_values: unexpected leaf type {type(leaf)} of {abbreviate(leaf)}; all leaves must "
            "be CustomVJPPrimal, which fwd rules get with symbolic_zeros=True"
        )
    return leaf.value


class custom_vjp(CustomFunction[_Arguments, _Result]):
    """Return a function with two rules for reverse mode, which `defvjp` sets.

    Args:
        fun: a function of pytrees of arrays. It may take references, which have no derivatives: both rules can read and
            write them, and `bwd` those that `fwd` returns among the residuals.
        nondiff_argnums: the positions of arguments without derivatives; they cannot be traced. ``fwd`` takes them in
            their positions, ``bwd`` takes them first.
        nondiff_argnames: the names of such arguments.

    Raises:
        AttributeError: the function is called before rules are set.
        TypeError: `fun` is not callable, forward mode is applied, or the result of a rule does not fit the function.
        ValueError: a cotangent has another shape than its argument.

    Example:
        >>> f = xtrace.custom_vjp(jnp.sin)
        >>> f.defvjp(lambda x: (f(x), None), lambda residuals, cotangent: (2.0 * cotangent,))
        >>> xtrace.grad(f)(0.0)
        Array(2., dtype=float32, weak_type=True)
    """

    kind = "custom_vjp"
    _takes_references = True

    @boundary
    def __init__(
        self, fun: Callable[_Arguments, _Result], nondiff_argnums: Shape = (), nondiff_argnames: Any = ()
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules ``fwd(*args) -> (result, residuals)``, ``bwd(*nondiff, residuals, cotangent) -> cotangents``.

        `bwd` returns a tuple with an entry for each argument; None stands for zero, and is allowed for integers. With
        `symbolic_zeros`, the leaves of `fwd` are `CustomVJPPrimal`, and zero cotangents in `bwd` are `SymbolicZero`.
        With `optimize_remat`, a program that calls `fwd` and does not read the residuals calls the function itself.
        """
        check_callable(fwd)
        check_callable(bwd)
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                f"remat optimization for custom_vjp does not support symbolic zeros: call {self.name}.defvjp with one "
                "of symbolic_zeros=True and optimize_remat=True"
            )
        self.fwd, self.bwd, self.symbolic_zeros, self.optimize_remat = fwd, bwd, symbolic_zeros, optimize_remat

    def _check_defined(self) -> None:
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.name} using defvjp. "
                f"Set one: {self.name}.defvjp(fwd, bwd)"
            )

    def _fix_argument(self, position: int, value: object) -> Any:
        if any(isinstance(x, Tracer) for x in pytree.tree_leaves(value)):
            raise UnexpectedTracerError(
                f"Found a traced array passed as argument {position} to the custom_vjp function {self.name}, a "
                "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed as "
                "non-differentiable arguments to custom_vjp functions; nondiff_argnums is for arguments that can't be "
                "or contain tracers, e.g. function-valued ones. Pass the array as an ordinary argument and return None "
                "for its cotangent"
            )
        return value

    def _apply(
        self, call: Call, call_jaxpr: Any, expected: Expected | None, operands: list[Any], num_consts: int,
        trees: list[Any],
    ) -> list[Any]:
        fwd, bwd, symbolic_zeros = self.fwd, self.bwd, self.symbolic_zeros
        assert fwd is not None and bwd is not None
        name, backward_name = function_name(fwd), function_name(bwd)
        forward, nondiff = call.of(fwd), list(call.fixed.values())

        def flat(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Rule]:
            in_avals = [aval_of(x) for x in primals]
            values = [to_rule_operand(x) for x in wrap(primals, in_avals)]
            if symbolic_zeros:
                values = [CustomVJPPrimal(x, bool(n)) for x, n in zip(values, nonzero, strict=True)]
            outputs = forward(*pytree.tree_unflatten(call.in_tree, values))
            result, residuals = check_pair(outputs, lambda: (
                f"Custom VJP fwd rule {name} for function {self.name} must produce a pair (list or tuple of length two)"
                " where the first element represents the primal output (equal to those of the custom_vjp-decorated "
                f"function {self.name}) and the second element represents residuals (i.e. values stored from the "
                "forward pass for use on the backward pass), but instead of a pair the fwd rule "
                f"{name} produced {outputs}."
            ))
            leaves = self._flatten_result("fwd rule", name, result, trees)
            self._check_primal_out(name, "Custom VJP fwd rule", result, leaves, trees, expected)
            out_tree, out_avals = trees[0], [aval_of(x) for x in leaves]
            kept, residual_tree = pytree.tree_flatten(residuals)
            # References stay references, and Python booleans Python values: the backward rule may branch on them.
            known = {i: x for i, x in enumerate(kept) if type(x) is bool or isinstance(x, Reference)}
            self._check_references(name, known.values(), primals)
            count, kept = len(kept), [x for i, x in enumerate(kept) if i not in known]
            self._check_results("residuals of fwd rule", name, kept, residuals)

            def back(saved: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
                zero = symbolic_zero if symbolic_zeros else make_zero
                full = [
                    zero(a) if c is None else to_user_operand(c) for c, a in zip(cotangents, out_avals, strict=True)
                ]
                rest = map(to_rule_operand, saved)
                in_cotangents = bwd(
                    *nondiff,
                    pytree.tree_unflatten(
                        residual_tree, [known[i] if i in known else next(rest) for i in range(count)]
                    ),
                    pytree.tree_unflatten(out_tree, full),
                )
                return self._cotangents_in(backward_name, call, in_avals, in_cotangents)

            return leaves, kept, Rule(back, backward_name)

        def in_one_equation(primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], Rule]:
            rules: list[Rule] = []

            def rule(*values: Any) -> tuple[list[Any], list[Any]]:
                results, residuals, backward = flat(values, nonzero)
                rules[:] = [backward]
                return results, residuals

            def function(*values: Any) -> list[Any]:
                return pytree.tree_leaves(call.of(self.fun)(*pytree.tree_unflatten(call.in_tree, values)))

            results, residuals = remat_opt.call_forward_rule(rule, function, primals)
            return results, residuals, Rule(rules[0].function, backward_name)

        key, forward_rule = None, in_one_equation if self.optimize_remat else flat
        if expected is not None:
            same = tuple(map(Same, nondiff))
            key = (
                self, fwd, bwd, symbolic_zeros, self.optimize_remat, same, call.in_tree, expected.out_tree,
                tuple(expected.out_avals),
            )
        return custom_vjp_call.bind_positional(
            operands, (self.name, call_jaxpr, Rule(forward_rule, name, key), backward_name, num_consts, symbolic_zeros)
        )

    def _check_references(self, rule: str, values: Iterable[Any], primals: Sequence[Any]) -> None:
        """Raise ValueError for a residual that is a reference, but none of the arguments."""
        for x in values:
            if isinstance(x, Reference) and not any(x.target is y for y in primals):
                raise ValueError(
                    f"Custom VJP fwd rule {rule} for function {self.name} returned, among the residuals, a reference "
                    f"of type {aval_of(x.target)} that is none of its arguments; return its array, ref[...]"
                )

    def _cotangents_in(self, rule: str, call: Call, avals: Sequence[ShapedArray], returned: object) -> list[Any]:
        """Return the result of `rule` as cotangents of the leaves of the arguments, None for zero."""
        returned = tuple(returned) if isinstance(returned, list) else returned
        cotangents, tree = pytree.tree_flatten(returned)
        if tree != call.in_tree:
            # A cotangent in place of a container applies to each leaf in the container.
            full = pytree.tree_unflatten(call.in_tree, [object()] * len(avals))
            try:
                cotangents = pytree.broadcast_prefix(returned, full, is_leaf=lambda x: x is None)
            except (KeyError, TypeError, ValueError):
                cotangents = []
        if not isinstance(returned, tuple) or len(cotangents) != len(avals):
            raise TypeError(
                f"Custom VJP bwd rule {rule} of {self.name} must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must produce a tuple of length "
                f"equal to the number of arguments to the primal function, but got bwd output structure {tree} for "
                f"primal input structure {call.in_tree}."
            )
        return [
            self._cotangent_in(rule, call, position, aval, c)
            for position, (c, aval) in enumerate(zip(cotangents, avals, strict=True))
        ]

    def _cotangent_in(
        self, rule: str, call: Call, position: int, aval: ShapedArray, cotangent: Array | None
    ) -> Array | None:
        if cotangent is None or not is_differentiable(aval) or type(aval) is AbstractRef:
            return None
        if isinstance(cotangent, SymbolicZero) and cotangent.shape == aval.shape:
            return None
        own = aval_of(cotangent) if is_array_like(cotangent) else getattr(cotangent, "aval", None)
        if own is not None and own.dtype == dtypes.float0:
            return None
        fits = own is not None and own.shape == aval.shape
        if own is not None and fits and (not dtypes.is_complex(own.dtype) or dtypes.is_complex(aval.dtype)):
            return convert_to(cotangent, aval.dtype, own.weak_type and aval.weak_type)
        start = (
            f"Custom VJP bwd rule {rule} of {self.name} must produce an output with the same type as the args tuple of "
            f"the primal function, but for argument {self._paths(call.fixed, call.in_tree)[position]} the bwd rule "
            "produced "
        )
        if own is None:
            raise TypeError(f"{start}{abbreviate(cotangent)} of type {type(cotangent)}, which is no array")
        if not fits:
            raise ValueError(
                f"{start}an output of type {own.str_short(True)} corresponding to an input of type "
                f"{aval.str_short(True)}, so the shapes do not match"
            )
        raise TypeError(f"{start}{own.str_short(True)} for an input of type {aval.str_short(True)}; take its real part")


def custom_gradient(fun: Callable[..., Any]) -> custom_vjp[..., Any]:
    """Return a differentiable function from a function that returns its result and its pullback.

    Args:
        fun: a function that returns a pair of its result and a function. The latter maps a cotangent of the result to
            a tuple of cotangents of the arguments, or to a single cotangent for a single argument.

    Returns:
        A function that returns the result only, differentiable in reverse mode.

    Raises:
        TypeError: `fun` is not callable, or the cotangents do not fit the arguments.

    Example:
        >>> f = xtrace.custom_gradient(lambda x: (x**2, lambda cotangent: 5.0 * cotangent))
        >>> xtrace.grad(f)(1.0)
        Array(5., dtype=float32, weak_type=True)
    """
    check_callable(fun)

    @custom_vjp
    @wraps(fun)
    def wrapped(*args: object) -> Any:
        result, _ = fun(*args)
        return result

    def fwd(*args: object) -> Any:
        result, backward = fun(*args)
        leaves, tree = pytree.tree_flatten((result,))
        body = stage_body("custom_gradient", backward, tree, [aval_of(x) for x in leaves])
        return result, _Backward(body.consts, (body.jaxpr, body.out_tree))

    def bwd(saved: _Backward, cotangent: Any) -> Any:
        closed, out_tree = saved.program
        cotangents = evaluate(closed.jaxpr, [], [*saved.consts, *pytree.tree_leaves(cotangent)])
        result = pytree.tree_unflatten(out_tree, map(to_user_operand, cotangents))
        return (result,) if pytree.treedef_is_leaf(out_tree) else result

    wrapped.defvjp(fwd, bwd)
    return wrapped


class _Backward:
    """A staged backward function as a pytree; the values in its closure are the leaves."""

    __slots__ = ("consts", "program")

    def __init__(self, consts: Any, program: Any) -> None:
        self.consts, self.program = consts, program


pytree_registration.register_pytree_node(
    _Backward, lambda x: (tuple(x.consts), x.program), lambda program, consts: _Backward(consts, program)
)
