"""Functions with derivatives of the user's own: `custom_jvp`, `custom_vjp`, and what is made of them."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import converted
from xtrace._src.api import call_arguments
from xtrace._src.api.call_arguments import signature_of
from xtrace._src.core import dtypes, pytree
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.array_protocol import operation
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.ir import ClosedJaxpr, Var
from xtrace._src.core.tangents import is_differentiable, tangent_aval
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.ops.control_flow.bodies import stage_body
from xtrace._src.ops.custom_rules import Rule, custom_jvp_call, custom_vjp_call, given, is_recorded, zero_of
from xtrace._src.ops.custom_rules import linear_call as linear_call_primitive
from xtrace._src.ops.stop_gradient import stop_gradient
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import cast_weak_type

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class SymbolicZero:
    """Stands for a tangent or cotangent that is zero, in rules defined with ``symbolic_zeros=True``."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return "SymbolicZero"

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """Return the zero tangent of `value`."""
        return _symbolic_zero(aval_of(value))


def _symbolic_zero(aval: ShapedArray) -> SymbolicZero:
    return SymbolicZero(aval if is_differentiable(aval) else ShapedArray(aval.shape, dtypes.float0))


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangent of `val`, an array or a tree of them; of integers it is of dtype float0."""
    zero = _symbolic_zero if symbolic_zeros else zero_of
    return pytree.tree_map(lambda x: zero(aval_of(x)), val)


class CustomVJPPrimal:
    """What fwd rules get for each leaf with ``symbolic_zeros=True``: its `value`, and whether it is `perturbed`."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return `tree` with the values in place of the `CustomVJPPrimal` leaves that fwd rules get."""
    return pytree.tree_map(lambda x: x.value if isinstance(x, CustomVJPPrimal) else x, tree)


class Call(NamedTuple):
    """What rules know of a call: its fixed arguments, how many there are in all, and the tree of the others."""

    fixed: dict[int, Any]
    arity: int
    in_tree: Any

    def of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` of the arguments that are not fixed."""
        if not self.fixed:
            return function
        fixed, arity = self.fixed, self.arity

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            rest = iter(args)
            return function(*[fixed[i] if i in fixed else next(rest) for i in range(arity)])

        return call


class _Same:
    """Equal to what holds the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class Expected(NamedTuple):
    """What the function itself returned when it was staged; its rules must return the same."""

    out_tree: Any
    out_avals: list[ShapedArray]


class CustomFunction:
    """What functions with custom rules share: which arguments the rules are about, and calling them."""

    kind = "custom"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Any, nondiff_argnames: Any) -> None:
        check_callable(self.kind, fun)
        functools.update_wrapper(self, fun)
        self.fun, self.name, self.signature = fun, function_name(fun), signature_of(fun)
        names = list(self.signature.parameters) if self.signature is not None else []
        try:
            numbers = tuple(nondiff_argnums)
        except TypeError:
            raise TypeError(
                f"{self.kind}: nondiff_argnums must be a sequence of positions, such as (0,), got "
                f"{abbreviated(nondiff_argnums)}"
            ) from None
        chosen = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"{self.kind}: nondiff_argnames has {abbreviated(name)}; the parameters of {self.name} are "
                    f"{', '.join(names)}"
                )
        self.nondiff_argnums = tuple(sorted({*numbers, *map(names.index, chosen)}))
        kinds = [p.kind for p in self.signature.parameters.values()] if self.signature is not None else []
        # So many positional arguments are all there are.
        self.arity = len(kinds) if all(k in _POSITIONAL for k in kinds) and kinds else None

    def __getattr__(self, name: str) -> Any:
        # A function of several kinds, such as a custom_vjp of a custom_vmap, is given all its rules by its one name.
        inner = self.__dict__.get("fun")
        if isinstance(inner, CustomFunction) and hasattr(inner, name):
            return getattr(inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @operation
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._check_defined()
        concrete = current_trace.get() is base_trace
        if concrete and not kwargs:
            return self.fun(*args)
        args = self._positional(args, kwargs)
        if concrete:
            return self.fun(*args)
        call, leaves = self._split(args)
        if is_recorded(leaves):
            body = stage_body(self.kind, call.of(self.fun), call.in_tree, [aval_of(x) for x in leaves])
            expected = Expected(body.out_tree, body.out_avals)
            results = self._apply(call, body.jaxpr, expected, [*body.consts, *leaves], len(body.consts), [])
            return pytree.tree_unflatten(body.out_tree, results)
        trees: list[Any] = []
        function = call.of(self.fun)

        def flat(*leaves: Any) -> list[Any]:
            result = function(*pytree.tree_unflatten(call.in_tree, leaves))
            return self._flattened("function", self.name, result, trees)

        results = self._apply(call, Rule(flat, self.name), None, [given(x) for x in leaves], 0, trees)
        return pytree.tree_unflatten(trees[0], results)

    def _check_defined(self) -> None:
        raise NotImplementedError

    def _apply(
        self, call: Call, call_jaxpr: Any, expected: Expected | None, operands: list[Any], num_consts: int,
        trees: list[Any],
    ) -> list[Any]:
        raise NotImplementedError

    def _fixed(self, position: int, value: Any) -> Any:
        raise NotImplementedError

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, defaults included."""
        if not kwargs and len(args) == self.arity:
            return args
        if self.signature is None:
            if kwargs:
                raise TypeError(f"{self.kind}: the signature of {self.name} is not known; pass arguments by position")
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.kind}-decorated function {self.name}: {error}") from None
        bound.apply_defaults()
        # Keyword-only parameters at their defaults are what the function sees anyway.
        named = [n for n in bound.kwargs if n in kwargs]
        if named:
            raise TypeError(
                f"The input arguments to the {self.kind}-decorated function {self.name} could not be resolved to "
                "positional-only arguments. The following keyword arguments could not be resolved to positions: "
                f"{', '.join(named)}. Make them positional parameters"
            )
        return bound.args

    def _split(self, args: tuple[Any, ...]) -> tuple[Call, list[Any]]:
        fixed = {}
        for n in self.nondiff_argnums:
            if not -len(args) <= n < len(args):
                raise TypeError(
                    f"{self.kind}: {self.name} has nondiff_argnums={self.nondiff_argnums}, but was called with "
                    f"{len(args)} positional arguments"
                )
            fixed[n % len(args)] = self._fixed(n, args[n])
        rest = tuple([a for i, a in enumerate(args) if i not in fixed])
        leaves, in_tree = pytree.tree_flatten(rest)
        for position, leaf in enumerate(leaves):
            if not is_array_like(leaf):
                raise TypeError(
                    f"{self.kind}: argument {self._paths(fixed, in_tree)[position]} of {self.name}: "
                    f"{abbreviated(leaf)} of type {type(leaf)} is no array; mark it with nondiff_argnums or "
                    "nondiff_argnames"
                )
        return Call(fixed, len(args), in_tree), leaves

    def _paths(self, fixed: dict[int, Any], in_tree: Any) -> list[str]:
        """Return how users write the leaves of the arguments that are not fixed."""
        static = call_arguments.Static(tuple([(n, None) for n in sorted(fixed)]), ())
        tree = pytree.treedef_tuple((in_tree, pytree.tree_structure({})))
        return call_arguments.argument_paths(self.fun, static, tree)

    def _flattened(self, role: str, name: str, result: Any, trees: list[Any]) -> list[Any]:
        """Return the leaves of what the function or a rule returned, and note their tree."""
        leaves, tree = pytree.tree_flatten(result)
        for position, leaf in enumerate(leaves):
            if not is_array_like(leaf):
                path = pytree.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"{self.kind} {role} {name}: {abbreviated(leaf)} of type {type(leaf)} at output{path} is not an "
                    "array"
                )
        trees[:] = [tree]
        return leaves

    def _check_primal_out(
        self, rule: str, what: str, result: Any, leaves: list[Any], trees: list[Any], expected: Expected | None
    ) -> None:
        if expected is None:
            return
        start = (
            f"{what} {rule} for function {self.name} must produce a pair (list or tuple of length two) where the first "
            f"element represents the primal output (equal in value to the output of the {self.kind}-decorated function "
            f"{self.name}, and in particular "
        )
        if trees[0] != expected.out_tree:
            raise TypeError(
                f"{start}of the same container/pytree structure), but instead the rule output's first element had "
                f"container/pytree structure:\n    {_shown(trees[0], leaves)}\nwhile {self.name} had output "
                f"container/pytree structure:\n    {_shown(expected.out_tree, expected.out_avals)}."
            )
        for position, (leaf, aval) in enumerate(zip(leaves, expected.out_avals, strict=True)):
            found = aval_of(leaf)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                path = pytree.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"{start}with leaves of the same shape/dtype), but at output{path} it is {found.str_short()}, "
                    f"while {self.name} returned {aval.str_short()}"
                )


def _shown(tree: Any, leaves: Sequence[Any]) -> str:
    types = [x if isinstance(x, ShapedArray) else aval_of(x) for x in leaves]
    return str(pytree.described(tree, [a.str_short() for a in types])).replace("'", "")


def _pair(result: Any, message: Callable[[], str]) -> Any:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(message())
    return result


class custom_jvp(CustomFunction):
    """A function whose derivative is given by a rule, which `defjvp` or `defjvps` sets.

    nondiff_argnums, nondiff_argnames: arguments that the rule is not about; they go first to it, as they are. A
    function of arrays alone runs as it is outside of transformations. AttributeError on a call before a rule is set,
    TypeError if what the rule returns does not fit the function.
    """

    kind = "custom_jvp"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Any = (), nondiff_argnames: Any = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule ``jvp(*nondiff, primals, tangents) -> (result, tangent)`` and return it.

        primals, tangents: tuples with an entry for each argument. A zero tangent is an array of zeros, or a
        `SymbolicZero` with `symbolic_zeros`; that of an integer has dtype float0.
        """
        check_callable("defjvp", jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: ``rule(tangent, result, *args)`` gives its term of the tangent; None: zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``. Use defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise ValueError(
                    f"{self.name} was given {len(jvps)} rules by defjvps and {len(primals)} arguments; give a rule, or "
                    "None, for each argument"
                )
            result = self(*primals)
            terms = [rule(t, result, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            return result, pytree.tree_map(_sum_of_terms, result, *terms)

        self.defjvp(jvp)

    def _check_defined(self) -> None:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.name} using defjvp. Set one: @{self.name}.defjvp"
            )

    def _fixed(self, position: int, value: Any) -> Any:
        return pytree.tree_map(lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, value)

    def _apply(
        self, call: Call, call_jaxpr: Any, expected: Expected | None, operands: list[Any], num_consts: int,
        trees: list[Any],
    ) -> list[Any]:
        rule, symbolic_zeros = self.jvp, self.symbolic_zeros
        assert rule is not None
        name, nondiff = function_name(rule), list(call.fixed.values())

        def flat(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            zero = _symbolic_zero if symbolic_zeros else zero_of
            values = [given(x) for x in primals]
            moved = [zero(aval_of(x)) if t is None else given(t) for x, t in zip(values, tangents, strict=True)]
            args, directions = (pytree.tree_unflatten(call.in_tree, x) for x in (values, moved))
            found = rule(*nondiff, args, directions)
            result, tangent = _pair(found, lambda: (
                f"Custom JVP rule {name} for function {self.name} must produce a pair (list or tuple of length two) "
                f"representing primal and tangent outputs, but got {found}."
            ))
            leaves = self._flattened("rule", name, result, trees)
            self._check_primal_out(name, "Custom JVP rule", result, leaves, trees, expected)
            return leaves, self._tangents_out(name, result, leaves, trees[0], tangent)

        key = None
        if expected is not None:
            same = tuple(map(_Same, nondiff))
            key = (self, rule, symbolic_zeros, same, call.in_tree, expected.out_tree, tuple(expected.out_avals))
        return custom_jvp_call.bind_positional(
            operands, (self.name, call_jaxpr, Rule(flat, name, key), num_consts, symbolic_zeros)
        )

    def _tangents_out(self, rule: str, result: Any, leaves: list[Any], tree: Any, tangent: Any) -> list[Any]:
        moved, found_tree = pytree.tree_flatten(tangent)
        if found_tree != tree:
            raise TypeError(
                f"Custom JVP rule {rule} for function {self.name} must produce primal and tangent outputs with equal "
                f"container (pytree) structures, but got {tree} and {found_tree} respectively."
            )
        out: list[Any] = []
        for position, (x, t) in enumerate(zip(leaves, moved, strict=True)):
            aval = aval_of(x)
            if isinstance(t, SymbolicZero):
                out.append(None)
                continue
            expected = tangent_aval(aval)
            found = aval_of(t) if is_array_like(t) else None
            if found is None or found.shape != expected.shape or found.dtype != expected.dtype:
                path = pytree.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"Custom JVP rule {rule} for function {self.name} must produce primal and tangent outputs with "
                    f"corresponding shapes and dtypes, but at output{path} got: primal {aval.str_short()} with tangent "
                    f"{type(t).__name__ if found is None else found.str_short()}, expecting tangent "
                    f"{expected.str_short()}"
                )
            out.append(cast_weak_type(t, aval) if is_differentiable(aval) else None)
        return out


def _sum_of_terms(result: Any, *terms: Any) -> Any:
    if not is_differentiable(aval_of(result)) or not terms:
        return zero_of(aval_of(result))
    return functools.reduce(operator.add, terms)


class custom_vjp(CustomFunction):
    """A function whose reverse-mode derivative is given by two rules, which `defvjp` sets.

    nondiff_argnums, nondiff_argnames: arguments that the rules are not about: ``fwd`` gets them in their places,
    ``bwd`` first; they cannot be traced. Forward mode is a TypeError. AttributeError on a call before rules are set,
    TypeError if what a rule returns does not fit the function, ValueError for a cotangent of another shape.
    """

    kind = "custom_vjp"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Any = (), nondiff_argnames: Any = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules ``fwd(*args) -> (result, residuals)``, ``bwd(*nondiff, residuals, cotangent) -> cotangents``.

        `bwd` returns a tuple with an entry for each argument; None stands for zero, also of integer arguments. With
        `symbolic_zeros`, `fwd` gets `CustomVJPPrimal` leaves and `bwd` `SymbolicZero` for cotangents that are zero.
        optimize_remat: accepted, without effect; what is computed does not depend on it.
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def _check_defined(self) -> None:
        if self.fwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.name} using defvjp. "
                f"Set one: {self.name}.defvjp(fwd, bwd)"
            )

    def _fixed(self, position: int, value: Any) -> Any:
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
            values = [given(x) for x in primals]
            in_avals = [aval_of(x) for x in values]
            if symbolic_zeros:
                values = [CustomVJPPrimal(x, bool(n)) for x, n in zip(values, nonzero, strict=True)]
            found = forward(*pytree.tree_unflatten(call.in_tree, values))
            result, residuals = _pair(found, lambda: (
                f"Custom VJP fwd rule {name} for function {self.name} must produce a pair (list or tuple of length two)"
                " where the first element represents the primal output (equal to those of the custom_vjp-decorated "
                f"function {self.name}) and the second element represents residuals (i.e. values stored from the "
                "forward pass for use on the backward pass), but instead of a pair the fwd rule "
                f"{name} produced {found}."
            ))
            leaves = self._flattened("fwd rule", name, result, trees)
            self._check_primal_out(name, "Custom VJP fwd rule", result, leaves, trees, expected)
            out_tree, out_avals = trees[0], [aval_of(x) for x in leaves]
            residual_trees: list[Any] = []
            kept = self._flattened("residuals of fwd rule", name, residuals, residual_trees)
            # Booleans of Python's stay what they are: the backward rule may look at them.
            known = {i: x for i, x in enumerate(kept) if type(x) is bool}
            count, kept = len(kept), [x for x in kept if type(x) is not bool]

            def back(saved: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
                zero = _symbolic_zero if symbolic_zeros else zero_of
                full = [zero(a) if c is None else given(c) for c, a in zip(cotangents, out_avals, strict=True)]
                rest = map(given, saved)
                found = bwd(
                    *nondiff,
                    pytree.tree_unflatten(
                        residual_trees[0], [known[i] if i in known else next(rest) for i in range(count)]
                    ),
                    pytree.tree_unflatten(out_tree, full),
                )
                return self._cotangents_in(backward_name, call, in_avals, found)

            return leaves, kept, Rule(back, backward_name)

        key = None
        if expected is not None:
            same = tuple(map(_Same, nondiff))
            key = (self, fwd, bwd, symbolic_zeros, same, call.in_tree, expected.out_tree, tuple(expected.out_avals))
        return custom_vjp_call.bind_positional(
            operands, (self.name, call_jaxpr, Rule(flat, name, key), backward_name, num_consts, symbolic_zeros)
        )

    def _cotangents_in(self, rule: str, call: Call, avals: Sequence[ShapedArray], found: Any) -> list[Any]:
        """Return the cotangents of the leaves of the arguments that `rule` returned, None for zero."""
        found = tuple(found) if isinstance(found, list) else found
        leaves, tree = pytree.tree_flatten(found, is_leaf=lambda x: x is None)
        below = _structures_below(tree, call.in_tree) if isinstance(found, tuple) else None
        if below is None:
            shown = pytree.tree_structure(found)
            raise TypeError(
                f"Custom VJP bwd rule {rule} of {self.name} must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must produce a tuple of length "
                f"equal to the number of arguments to the primal function, but got bwd output structure {shown} for "
                f"primal input structure {call.in_tree}."
            )
        # In place of a container, a cotangent is that of each leaf in it.
        cotangents = [c for c, structure in zip(leaves, below, strict=True) for _ in range(structure.num_leaves)]
        return [
            self._cotangent_in(rule, call, position, aval, c)
            for position, (c, aval) in enumerate(zip(cotangents, avals, strict=True))
        ]

    def _cotangent_in(self, rule: str, call: Call, position: int, aval: ShapedArray, cotangent: Any) -> Any:
        if cotangent is None or not is_differentiable(aval):
            return None
        if isinstance(cotangent, SymbolicZero) and cotangent.shape == aval.shape:
            return None
        found = aval_of(cotangent) if is_array_like(cotangent) else getattr(cotangent, "aval", None)
        if found is not None and found.dtype == dtypes.float0:
            return None
        fits = found is not None and found.shape == aval.shape
        if found is not None and fits and (not dtypes.is_complex(found.dtype) or dtypes.is_complex(aval.dtype)):
            return converted(cotangent, aval.dtype, found.weak_type and aval.weak_type)
        start = (
            f"Custom VJP bwd rule {rule} of {self.name} must produce an output with the same type as the args tuple of "
            f"the primal function, but for argument {self._paths(call.fixed, call.in_tree)[position]} the bwd rule "
            "produced "
        )
        if found is None:
            raise TypeError(f"{start}{abbreviated(cotangent)} of type {type(cotangent)}, which is no array")
        if not fits:
            raise ValueError(
                f"{start}an output of type {found.str_short()} corresponding to an input of type {aval.str_short()}, "
                "so the shapes do not match"
            )
        raise TypeError(f"{start}{found.str_short()} for an input of type {aval.str_short()}; take its real part")


def _structures_below(prefix: Any, tree: Any) -> list[Any] | None:
    """Return the structures in `tree` at the leaves of the structure `prefix`, None if that is no prefix of it."""
    if prefix.num_nodes == prefix.num_leaves == 1:
        return [tree]
    inner, outer = prefix.children(), tree.children()
    if prefix.node_data() != tree.node_data() or len(inner) != len(outer):
        return None
    found: list[Any] = []
    for one, other in zip(inner, outer, strict=True):
        below = _structures_below(one, other)
        if below is None:
            return None
        found += below
    return found


def custom_gradient(fun: Callable[..., Any]) -> custom_vjp:
    """Return `fun`, which gives a pair (result, function from its cotangent to those of the arguments), differentiable.

    The second function's result is a cotangent for a single argument, or a tuple of them.
    """
    check_callable("custom_gradient", fun)

    @custom_vjp
    @functools.wraps(fun)
    def wrapped(*args: Any) -> Any:
        result, _ = fun(*args)
        return result

    def fwd(*args: Any) -> Any:
        result, backward = fun(*args)
        leaves, tree = pytree.tree_flatten((result,))
        body = stage_body("custom_gradient", backward, tree, [aval_of(x) for x in leaves])
        return result, _Backward(body.consts, (body.jaxpr, body.out_tree))

    def bwd(saved: _Backward, cotangent: Any) -> Any:
        closed, out_tree = saved.program
        found = evaluate(closed.jaxpr, [], [*saved.consts, *pytree.tree_leaves(cotangent)])
        result = pytree.tree_unflatten(out_tree, map(given, found))
        return (result,) if pytree.treedef_is_leaf(out_tree) else result

    wrapped.defvjp(fwd, bwd)
    return wrapped


class _Backward:
    """A staged backward function: what it closed over are residuals."""

    __slots__ = ("consts", "program")

    def __init__(self, consts: Any, program: Any) -> None:
        self.consts, self.program = consts, program


pytree.register_pytree_node(
    _Backward, lambda x: (tuple(x.consts), x.program), lambda program, consts: _Backward(consts, program)
)


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Return `fun` with the traced floating-point values that it closes over as extra arguments, and these values.

    The function takes arguments of the structure and types of `example_args`, then the values.
    """
    check_callable("closure_convert", fun)
    leaves, in_tree = pytree.tree_flatten(example_args)
    body = stage_body("closure_convert", fun, in_tree, [aval_of(x) for x in leaves])
    hoisted = [isinstance(c, Tracer) and is_differentiable(aval_of(c)) for c in body.consts]

    def converted_fun(*args: Any) -> Any:
        count = sum(hoisted)
        given_args, values = args[: len(args) - count], iter(args[len(args) - count :])
        found, tree = pytree.tree_flatten(given_args)
        if tree != in_tree:
            raise TypeError(
                f"The inputs to the closure produced by closure_convert must have the same structure as the example "
                f"arguments of {function_name(fun)}, {in_tree}, followed by {count} values; got {tree}"
            )
        consts = [next(values) if h else c for h, c in zip(hoisted, body.consts, strict=True)]
        results = evaluate(body.jaxpr.jaxpr, [], [*consts, *found])
        return pytree.tree_unflatten(body.out_tree, map(given, results))

    return converted_fun, [c for c, h in zip(body.consts, hoisted, strict=True) if h]


def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Return ``fun(residual_args, linear_args)``, linear in the second, whose transpose is `fun_transpose`.

    ``fun_transpose(residual_args, cotangent)`` returns what has the structure of `linear_args`; its own transpose is
    `fun`. TypeError if its result is of another structure or type.
    """
    check_callable("linear_call", fun)
    check_callable("linear_call", fun_transpose)
    residuals, residual_tree = pytree.tree_flatten(residual_args)
    values, linear_tree = pytree.tree_flatten(linear_args)
    avals, residual_avals = [aval_of(x) for x in values], [aval_of(x) for x in residuals]
    body = stage_body("linear_call", fun, _pair_of(residual_tree, linear_tree), [*residual_avals, *avals])
    consts, out_avals, tree = body.consts, body.out_avals, _pair_of(residual_tree, body.out_tree)
    const_avals, name = [aval_of(c) for c in consts], function_name(fun)

    @functools.cache
    def transposed() -> tuple[ClosedJaxpr, list[Any]]:
        back = stage_body("linear_call", fun_transpose, tree, [*residual_avals, *out_avals])
        if back.out_tree != linear_tree or any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(back.out_avals, avals, strict=True)
        ):
            raise TypeError(
                f"linear_call: {function_name(fun_transpose)} must return what has the structure and types of the "
                f"linear arguments of {name}, {linear_tree} of {[a.str_short() for a in avals]}; it "
                f"returned {back.out_tree} of {[a.str_short() for a in back.out_avals]}"
            )
        jaxpr, count = back.jaxpr.jaxpr, len(back.consts)
        unused = [Var(a) for a in const_avals]
        invars = [*jaxpr.invars[:count], *unused, *jaxpr.invars[count:]]
        return ClosedJaxpr(jaxpr.replace(invars=invars), []), back.consts

    results = linear_call_primitive.bind_positional(
        [*consts, *residuals, *values],
        (body.jaxpr, Rule(transposed, function_name(fun_transpose)), len(consts) + len(residuals)),
    )
    return pytree.tree_unflatten(body.out_tree, results)


def _pair_of(first: Any, second: Any) -> Any:
    return pytree.treedef_tuple((first, second))
