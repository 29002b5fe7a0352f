"""`checkpoint` (`remat`): saves memory by recomputing intermediate values in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from xtrace._src.api.function_caches import OnceTable, find_table
from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.jit.static_arguments import NO_STATIC, Static
from xtrace._src.api.tracing import TracedFunction, abstract_leaves, trace
from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable, find_signature, make_debug_info, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Literal
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.sentinels import MISSING
from xtrace._src.core.settings import config
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.references.binding import unwrap
from xtrace._src.ops.remat.rematerialization import bind_remat, describe_origins
from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs
from xtrace._src.transforms.linearize import linearize
from xtrace._src.transforms.stage import stage
from xtrace._src.xla.pytree_registry import PyTreeDef

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_TRANSFORMATION = "checkpoint / remat"


def checkpoint(
    fun: Callable[_Arguments, _Result], *, prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., Any] | None = None, static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (), concrete: object = MISSING,
) -> Callable[_Arguments, _Result]:
    """Return `fun` as a function whose intermediate values are recomputed when its derivative needs them.

    Args:
        fun: a function of pytrees of arrays.
        prevent_cse: whether to keep the compiler from merging the second computation with the first one, which would
            keep the values after all; this is not needed inside of loops. Also a tuple with a boolean, or a tree prefix
            of booleans, for each positional argument.
        policy: selects values that are saved: one of `checkpoint_policies`, or a function ``policy(primitive, *avals,
            **parameters)``; None saves none.
        static_argnums: positions of arguments that stay Python values.
        static_argnames: names of arguments that stay Python values.
        concrete: not supported; leave it out.

    Returns:
        A function with the arguments and results of `fun`.

    Raises:
        TypeError: `fun` is not callable.
        ValueError: a position is out of range.
        NotImplementedError: `concrete` is given.

    Example:
        >>> xtrace.grad(xtrace.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    check_callable(fun)
    if concrete is not MISSING and concrete:
        raise NotImplementedError(
            "checkpoint: there is no option concrete; mark the arguments that Python needs with static_argnums"
        )
    if policy is not None and not callable(policy):
        raise TypeError(
            f"checkpoint: policy must be a function or None, got {abbreviate(policy)}; see checkpoint_policies"
        )
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    if not all(isinstance(n, int) for n in numbers) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            "checkpoint: static_argnums takes integers and static_argnames strings, got "
            f"{abbreviate(static_argnums)} and {abbreviate(static_argnames)}"
        )

    @boundary
    @wraps(fun)
    def checkpointed(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        traced, leaves, flags = _trace(fun, numbers, names, prevent_cse, args, kwargs)
        closed: ClosedJaxpr = move_constants_to_inputs(traced.closed)
        if not isinstance(flags, bool):
            flags = (*(True,) * len(traced.consts), *flags)
        results = bind_remat(closed, [*traced.consts, *leaves], flags, False, policy)
        return pytree.tree_unflatten(traced.out_tree, results)

    return checkpointed


def remat(
    fun: Callable[..., Any], *, prevent_cse: bool | Sequence[Any] = True, policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (), concrete: object = MISSING,
) -> Callable[..., Any]:
    """Return `fun` as a function whose intermediate values are recomputed; another name of `checkpoint`.

    Args:
        fun: a function of pytrees of arrays.
        prevent_cse: whether to keep the compiler from merging the two computations.
        policy: selects values that are saved; None saves none.
        static_argnums: positions of arguments that stay Python values.
        concrete: not supported; leave it out.

    Returns:
        A function with the arguments and results of `fun`.

    Raises:
        TypeError: `fun` is not callable.

    Example:
        >>> xtrace.grad(xtrace.remat(jnp.sin))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    return checkpoint(fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums, concrete=concrete)


def print_saved_residuals(f: Callable[..., Any], *args: object, **kwargs: object) -> None:
    """Print the values that the gradient of a function keeps from its forward pass, one a line, with their origins.

    Literals and constants come first, then arguments, then results of operations, in the program's order.

    Args:
        f: a function of arrays or trees of them.
        args, kwargs: its arguments.

    Raises:
        TypeError: `f` cannot be called with the arguments, or returns something other than arrays.

    Example:
        >>> xtrace.ad_checkpoint.print_saved_residuals(lambda x, y: x * y, 2.0, 3.0)
        f32[] from the argument x
        f32[] from the argument y
    """
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    avals = _avals(f, NO_STATIC, leaves, in_tree)
    paths = list_argument_paths(f, NO_STATIC, in_tree)
    info = make_debug_info("print_saved_residuals", f, lambda: paths)

    def call(*inner: Any) -> list[Any]:
        inner_args, inner_kwargs = pytree.tree_unflatten(in_tree, inner)
        return pytree.tree_leaves(f(*inner_args, **inner_kwargs))

    def residuals(*inner: Any) -> list[Any]:
        return linearize(call, inner, [is_differentiable(a) for a in avals], info)[1].consts

    jaxpr, _ = stage(residuals, avals, info)
    known: dict[Atom, str] = dict.fromkeys(jaxpr.constvars, "from a constant")
    known |= {v: f"from the argument {path}" for v, path in zip(jaxpr.invars, paths, strict=True)}
    known |= describe_origins(jaxpr)
    kept = set(jaxpr.outvars)
    for atom in kept:
        if isinstance(atom, Literal):
            print(f"{atom.aval.str_short(True)} from a literal")
    for atom, origin in known.items():
        if atom in kept:
            print(f"{atom.aval.str_short(True)} {origin}")


def _trace(
    fun: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...], prevent_cse: bool | Sequence[Any],
    args: tuple[Any, ...], kwargs: dict[str, Any],
) -> tuple[TracedFunction, list[Any], bool | tuple[bool, ...]]:
    """Return the trace of `fun` for these arguments, the leaves of traced arguments, and `prevent_cse` for each."""
    static_positions = _positions(fun, numbers, names, args)
    positional = tuple([(i, args[i]) for i in static_positions])
    named = tuple([(n, kwargs[n]) for n in names if n in kwargs])
    rest = tuple([x for i, x in enumerate(args) if i not in static_positions])
    rest_named = {n: x for n, x in kwargs.items() if n not in names}
    leaves, in_tree = pytree.tree_flatten((rest, rest_named))
    leaves = unwrap(leaves)
    flags = _barriers(prevent_cse, rest, rest_named)
    try:
        static = Static(positional, named) if positional or named else NO_STATIC
    except TypeError:
        # Without hashes there is no cache, so the function is traced at every call.
        bound = _bind_arguments(fun, dict(positional), dict(named))
        avals = _avals(bound, NO_STATIC, leaves, in_tree)
        return trace(_TRANSFORMATION, bound, NO_STATIC, in_tree, avals), leaves, flags
    avals = _avals(fun, static, leaves, in_tree)
    table: OnceTable[TracedFunction] = find_table(fun).setdefault("checkpoint", OnceTable())
    key = (config.cache_key(), static, in_tree, *avals)
    traced = table.entries.get(key)
    if traced is None:
        traced = trace(_TRANSFORMATION, fun, static, in_tree, avals)
        # A trace with an outer tracer as a constant is not reusable: the next call has another tracer.
        if not any(isinstance(c, Tracer) for c in traced.consts):
            made = traced
            traced = table.get_or_make(key, lambda: made)
    return traced, leaves, flags


def _avals(fun: Callable[..., Any], static: Static, leaves: Sequence[Any], in_tree: PyTreeDef) -> list[Any]:
    return abstract_leaves(fun, static, leaves, in_tree, aval_of)


def _positions(
    fun: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...], args: tuple[Any, ...]
) -> list[int]:
    """Return the positions of static arguments in `args`."""
    count = len(args)
    if not all(-count <= n < count for n in numbers):
        raise ValueError(
            "the `static_argnums` argument to `checkpoint` / `remat` can only take integer values greater than or "
            f"equal to `-len(args)` and less than `len(args)`, but got {numbers}, while `len(args)` = {count}"
        )
    positions = {n % count for n in numbers}
    if names:
        signature = find_signature(fun)
        parameters = list(signature.parameters) if signature is not None else []
        positions |= {i for i, name in enumerate(parameters[:count]) if name in names}
    return sorted(positions)


def _bind_arguments(fun: Callable[..., Any], positional: dict[int, Any], named: dict[str, Any]) -> Callable[..., Any]:
    @wraps(fun)
    def call(*rest: Any, **rest_named: Any) -> Any:
        remaining = iter(rest)
        full = [positional[i] if i in positional else next(remaining) for i in range(len(rest) + len(positional))]
        return fun(*full, **rest_named, **named)

    return call


def _barriers(prevent_cse: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | tuple[bool, ...]:
    """Return `prevent_cse` for each leaf of the arguments, or its one value for all."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    try:
        flags = pytree.broadcast_prefix(tuple(prevent_cse), args)
    except (ValueError, TypeError) as error:
        raise type(error)(
            "checkpoint: prevent_cse must be a boolean, or a tuple with an entry for each positional argument that is "
            f"not static: {error}"
        ) from None
    return (*map(bool, flags), *(True,) * len(pytree.tree_leaves(kwargs)))
