"""The base class of functions with custom rules: their arguments, their calls, and the checks of rules' results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from xtrace._late_imports import late_modules
from xtrace._src.api.custom_rules.nondiff_arguments import Call, find_positions, list_positions
from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.jit.static_arguments import Static
from xtrace._src.core.annotations import Shape
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import AbstractRef, ShapedArray, aval_of, is_array_like
from xtrace._src.core.callables import POSITIONAL, check_callable, find_signature, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import OWN_DERIVATIVE_EFFECT
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.references import Reference
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.core.typed_numbers import with_dtype
from xtrace._src.ops.references.binding import unwrap, wrap
from xtrace._src.transforms.batch import BatchTrace
from xtrace._src.transforms.replay import StackedTrace
from xtrace._src.transforms.stage import StagingTrace
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.core.pytrees import pytree_differences
    from xtrace._src.ops.control_flow.bodies import stage_body
    from xtrace._src.ops.custom_rules.rule import Rule, is_recorded

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Expected(NamedTuple):
    """The structure and types of the result of the staged function; its rules must return the same."""

    out_tree: Any
    out_avals: list[ShapedArray]


class CustomFunction(Generic[_Arguments, _Result]):
    """A function with custom rules; fixed arguments (``nondiff``) have no derivatives and bypass the rules."""

    kind = "custom"
    _takes_references = False

    def __init__(self, fun: Callable[_Arguments, _Result], nondiff_argnums: Shape, nondiff_argnames: Any) -> None:
        check_callable(fun, function=self.kind)
        wraps(fun)(self)
        self.fun: Callable[..., _Result] = fun
        self.name, self.signature = function_name(fun), find_signature(fun)
        self.nondiff_argnums = find_positions(self.kind, self.name, self.signature, nondiff_argnums, nondiff_argnames)
        kinds = [p.kind for p in self.signature.parameters.values()] if self.signature is not None else []
        # The number of parameters, if all are positional.
        self.arity = len(kinds) if all(k in POSITIONAL for k in kinds) and kinds else None

    def __getattr__(self, name: str) -> Any:
        # In nested custom functions, such as a custom_vjp of a custom_vmap, the outer one has the inner one's methods.
        inner = self.__dict__.get("fun")
        if isinstance(inner, CustomFunction) and hasattr(inner, name):
            return getattr(inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A function in a module is pickled and copied by its name, as Python's functions are; other processes do not
        # have the functions in `__main__`.
        module = sys.modules.get(self.__module__) if self.__module__ != "__main__" else None
        own_name: str = getattr(self, "__qualname__", "")
        named: Any = module
        for name in own_name.split("."):
            named = getattr(named, name, None)
        return own_name if named is self else super().__reduce_ex__(protocol)

    @array_boundary
    def __call__(self, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        self._check_defined()
        concrete = current_trace.get() is base_trace
        if concrete and not kwargs and all(isinstance(x, Array) for x in args):
            return self.fun(*args)
        positional = self._positional(args, kwargs)
        if concrete:
            return self.fun(*self._with_dtypes(positional))
        call, leaves = self._split(positional)
        if isinstance(current_trace.get(), BatchTrace) and AbstractRef in map(type, map(aval_of, leaves)):
            return self._call_without_rules(positional)
        if is_recorded(leaves):
            body = stage_body(self.kind, call.of(self.fun), call.in_tree, [aval_of(x) for x in leaves])
            expected = Expected(body.out_tree, body.out_avals)
            results = self._apply(call, body.jaxpr, expected, [*body.consts, *leaves], len(body.consts), [])
            return pytree.tree_unflatten(body.out_tree, results)  # type: ignore[no-any-return]
        trees: list[Any] = []
        function = call.of(self.fun)

        def flat(*leaves: object) -> list[Any]:
            values = wrap(leaves, [aval_of(x) for x in leaves])
            result = function(*pytree.tree_unflatten(call.in_tree, values))
            return self._flatten_result("function", self.name, result, trees)

        results = self._apply(call, Rule(flat, self.name), None, leaves, 0, trees)
        return pytree.tree_unflatten(trees[0], results)  # type: ignore[no-any-return]

    def _with_dtypes(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arguments whose numbers have a `dtype`, as tracers have, which the function may ask for."""
        fixed = list_positions(self.kind, self.name, self.nondiff_argnums, len(args))
        return tuple([x if i in fixed else pytree.tree_map(with_dtype, x) for i, x in enumerate(args)])

    def _call_without_rules(self, args: tuple[Any, ...]) -> _Result:
        """Call the function itself in `vmap`, which has no rule for references that are written to backward."""
        for trace in current_trace.get().enclosing():
            if isinstance(trace, StackedTrace) and type(trace) is not BatchTrace:
                raise NotImplementedError(
                    f"{self.kind}: {self.name} of references is mapped inside of a function that is differentiated; "
                    "differentiate inside of vmap: xtrace.vmap(xtrace.grad(f))"
                )
            if isinstance(trace, StagingTrace) and not trace.is_tape:
                trace.effects |= {OWN_DERIVATIVE_EFFECT}
        return self.fun(*args)

    def _check_defined(self) -> None:
        raise NotImplementedError

    def _apply(
        self, call: Call, call_jaxpr: Any, expected: Expected | None, operands: list[Any], num_consts: int,
        trees: list[Any],
    ) -> list[Any]:
        raise NotImplementedError

    def _fix_argument(self, position: int, value: object) -> Any:
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
        # Keyword-only parameters keep their defaults; only given ones are an error.
        named = [n for n in bound.kwargs if n in kwargs]
        if named:
            raise TypeError(
                f"The input arguments to the {self.kind}-decorated function {self.name} could not be resolved to "
                "positional-only arguments. The following keyword arguments could not be resolved to positions: "
                f"{', '.join(named)}. Make them positional parameters"
            )
        return bound.args

    def _split(self, args: tuple[Any, ...]) -> tuple[Call, list[Any]]:
        numbers = list_positions(self.kind, self.name, self.nondiff_argnums, len(args))
        fixed = {n: self._fix_argument(n, args[n]) for n in numbers}
        rest = tuple([a for i, a in enumerate(args) if i not in fixed])
        leaves, in_tree = pytree.tree_flatten(rest)
        for position, leaf in enumerate(leaves):
            if not is_array_like(leaf) and not (self._takes_references and isinstance(leaf, Reference)):
                raise TypeError(
                    f"{self.kind}: argument {self._paths(fixed, in_tree)[position]} of {self.name}: "
                    f"{abbreviate(leaf)} of type {type(leaf)} is no array; mark it with nondiff_argnums or "
                    "nondiff_argnames"
                )
        return Call(fixed, len(args), in_tree), [with_dtype(x) for x in unwrap(leaves)]

    def _paths(self, fixed: dict[int, Any], in_tree: PyTreeDef) -> list[str]:
        """Return the users' expressions for the leaves of the arguments that are not fixed."""
        static = Static(tuple([(n, None) for n in sorted(fixed)]), ())
        tree = pytree.treedef_tuple((in_tree, pytree.tree_structure({})))
        return list_argument_paths(self.fun, static, tree)

    def _flatten_result(self, role: str, name: str, result: object, trees: list[Any]) -> list[Any]:
        """Return the leaves of a result of the function or of a rule, and set `trees` to its structure."""
        leaves, tree = pytree.tree_flatten(result)
        self._check_results(role, name, leaves, result)
        trees[:] = [tree]
        return leaves

    def _check_results(self, role: str, name: str, leaves: Sequence[Any], result: object) -> None:
        """Raise TypeError for a leaf of a rule's result that is no array."""
        for leaf in leaves:
            if not is_array_like(leaf):
                path = next(key_paths.keystr(p) for p, x in pytree.tree_flatten_with_path(result)[0] if x is leaf)
                raise TypeError(
                    f"{self.kind} {role} {name}: {abbreviate(leaf)} of type {type(leaf)} at output{path} is not an "
                    "array"
                )

    def _check_primal_out(
        self, rule: str, what: str, result: object, leaves: list[Any], trees: list[Any], expected: Expected | None
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
                f"container/pytree structure:\n    {_describe_types(trees[0], leaves)}\nwhile {self.name} had output "
                f"container/pytree structure:\n    {_describe_types(expected.out_tree, expected.out_avals)}."
            )
        for position, (leaf, aval) in enumerate(zip(leaves, expected.out_avals, strict=True)):
            actual = aval_of(leaf)
            if actual.shape != aval.shape or actual.dtype != aval.dtype:
                path = key_paths.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"{start}with leaves of the same shape/dtype), but at output{path} it is {actual.str_short(True)}, "
                    f"while {self.name} returned {aval.str_short(True)}"
                )


def _describe_types(tree: Any, leaves: Sequence[Any]) -> str:
    types = [x if isinstance(x, ShapedArray) else aval_of(x) for x in leaves]
    return str(pytree_differences.describe_leaves(tree, [a.str_short(True) for a in types])).replace("'", "")


def check_pair(result: object, message: Callable[[], str]) -> Any:
    """Return `result` if it is a pair; TypeError with the text ``message()`` otherwise."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(message())
    return result
