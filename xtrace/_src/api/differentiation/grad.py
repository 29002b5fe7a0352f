"""Derivatives of Python functions of pytrees: `jvp`, `linearize`, `vjp`, `grad`, `value_and_grad`."""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import reshard_as
from xtrace._src.algebra.vector_space import broadcast_in_dim, materialize_literal, zeros
from xtrace._src.api.differentiation.argnums import find_positions, read_argnums, restrict
from xtrace._src.api.differentiation.pullback import find_mesh_place, make_pullback, put_on_place, saveable_leaves
from xtrace._src.api.jit.argument_paths import defer_argument_paths, list_argument_paths
from xtrace._src.api.jit.static_arguments import NO_STATIC
from xtrace._src.api.tracing import explain_pytrees
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of, high_types, is_array_like, is_high
from xtrace._src.core.callables import check_callable, function_name, make_debug_info, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import DebugInfo, Literal
from xtrace._src.core.pytrees import key_paths, pytree, pytree_registration
from xtrace._src.core.references import Reference
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.core.tangents import UndefinedPrimal, cotangent_avals, is_differentiable, tangent_aval
from xtrace._src.core.trace import current_trace
from xtrace._src.runtime.transfer import as_value
from xtrace._src.transforms.backward import backward
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jvp import JVPTrace, JVPTracer
from xtrace._src.transforms.jvp import jvp as jvp_of_flat
from xtrace._src.transforms.linearize import LinearMap
from xtrace._src.transforms.linearize import linearize as linearize_flat
from xtrace._src.transforms.scopes import JVP, TRANSPOSE, scope

with late_modules(globals()):
    from xtrace._src.api.differentiation.reference_pullback import make_vjp_with_references
    from xtrace._src.core.pytrees import pytree_differences

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Aux = TypeVar("_Aux")

_NOTHING, _NO_NAMED = pytree.tree_structure(None), pytree.tree_structure({})


class Flat:
    """A function of pytrees as a function of leaves; each call sets `out_tree`, and `aux` to the auxiliary data."""

    def __init__(
        self, transformation: str, fun: Callable[..., Any], args: tuple[Any, ...], has_aux: bool,
        numbers: Sequence[int] | None = None,
    ) -> None:
        check_callable(fun, function=transformation)
        # The positions of `args` among the arguments of the user's function, for messages.
        self.numbers = range(len(args)) if numbers is None else numbers
        self.transformation, self.fun, self.has_aux = transformation, fun, has_aux
        self.leaves, self.in_tree = pytree.tree_flatten(args)
        # Values of high types by position; `leaves` holds zeros of their tangent types in their places.
        self.high: dict[int, Any] = {}
        if high_types:
            self.high = {i: x for i, x in enumerate(self.leaves) if is_high(x)}
            for i, x in self.high.items():
                self.leaves[i] = zeros(_get_array_tangent(transformation, aval_of(x)))
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.high:
            leaves = tuple([self._with_tangent(i, x) if i in self.high else x for i, x in enumerate(leaves)])
        result = self.fun(*pytree.tree_unflatten(self.in_tree, leaves))
        if self.has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(
                    f"{self.transformation}: with has_aux, {self.name} must return a pair (result, auxiliary data); "
                    f"it returned {'a single array' if is_array_like(result) else type(result).__name__}"
                )
            result, aux = result
            # The transformation's trace is still active; the auxiliary data must outlive it.
            trace = current_trace.get()
            assert isinstance(trace, JVPTrace)
            values, aux_tree = pytree.tree_flatten(aux)
            self.aux = pytree.tree_unflatten(aux_tree, trace.split(values)[0])
        results, self.out_tree = pytree.tree_flatten(result)
        for position, leaf in enumerate(results):
            if not is_array_like(leaf):
                path = key_paths.keystr(pytree.tree_flatten_with_path(result)[0][position][0])
                raise TypeError(
                    f"{self.transformation}: {self.name} returned {abbreviate(leaf)} of type {type(leaf)}"
                    f"{' at ' + path if path else ''}, which is not an array; auxiliary data goes with has_aux=True"
                )
        return results

    def _with_tangent(self, position: int, leaf: Any) -> Any:
        """Return the value of a high type at a position, with the tangent of its leaf."""
        value = self.high[position]
        return JVPTracer(leaf.owner, value, leaf.tangent) if type(leaf) is JVPTracer else value

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return function_name(self.fun)

    @property
    def info(self) -> DebugInfo:
        """The debug information of the linear jaxpr."""
        paths = [defer_argument_paths(self.fun, NO_STATIC, tree) for tree in self._calls()]
        return make_debug_info(
            self.transformation, self.fun, lambda: [path for p in paths for path in p()]
        )

    def _calls(self) -> list[Any]:
        """For each argument, the structure of a call ``(args, kwargs)`` with this argument only, at its position."""
        trees = zip(self.numbers, self.in_tree.children(), strict=True)
        return [
            pytree.treedef_tuple((pytree.treedef_tuple((*[_NOTHING] * number, tree)), _NO_NAMED))
            for number, tree in trees
        ]

    def release(self) -> Any:
        """Drop the arguments and the auxiliary data, and return the latter: derivatives keep residuals only."""
        self.leaves, aux, self.aux = [], self.aux, None
        return aux

    def path(self, position: int) -> str:
        """The user's expression for the leaf at `position`, such as ``x['w'][0]``."""
        paths = [path for tree in self._calls() for path in list_argument_paths(self.fun, NO_STATIC, tree)]
        return paths[position]

    def results(self, leaves: Sequence[Any]) -> Any:
        """Return flat results in the structure of the function's result."""
        return pytree.tree_unflatten(self.out_tree, leaves)

    def avals(self) -> list[ShapedArray]:
        """Return the types of the leaves; TypeError names a leaf that is no array."""
        avals = []
        for position, leaf in enumerate(self.leaves):
            try:
                avals.append(aval_of(leaf))
            except TypeError as error:
                path = self.path(position)
                raise TypeError(
                    f"{self.transformation}: argument {path} of {self.name}: {error}.{explain_pytrees(leaf)}"
                ) from None
        return avals


def _get_array_tangent(transformation: str, aval: Any) -> ShapedArray:
    """Return the tangent type of a high type; NotImplementedError if it is no type of arrays."""
    tangent = aval.to_tangent_aval()
    if not isinstance(tangent, ShapedArray):
        raise NotImplementedError(
            f"{transformation}: tangents of values of the type {aval} are of the type {tangent}, which is none of "
            "arrays; differentiate by the arrays that hold the value"
        )
    return tangent


def make_zero_tangent(aval: ShapedArray) -> Any:
    """Return the zero tangent of a value of type `aval`; for integers, a NumPy array of float0."""
    if is_differentiable(aval):
        return reshard_as(zeros(aval), aval)
    if has_symbolic(aval.shape):
        nothing = Literal(False, ShapedArray((), dtypes.float0))
        return broadcast_in_dim.bind_positional((nothing,), (aval.shape, (), None))
    return np.zeros(aval.shape, dtypes.float0)


@overload
def jvp(
    fun: Callable[..., _Result], primals: Sequence[Any], tangents: Sequence[Any], has_aux: typing.Literal[False] = False
) -> tuple[_Result, _Result]: ...


@overload
def jvp(
    fun: Callable[..., tuple[_Result, _Aux]], primals: Sequence[Any], tangents: Sequence[Any],
    has_aux: typing.Literal[True],
) -> tuple[_Result, _Result, _Aux]: ...


@overload
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]: ...


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Return ``fun(*primals)`` and its derivative in the direction `tangents`: forward mode.

    Args:
        fun: a function of pytrees of arrays.
        primals: the arguments, a tuple or a list.
        tangents: the tangents of the arguments, of their structure, shapes and dtypes; for integers the dtype is
            float0.
        has_aux: whether `fun` returns a pair of a result and auxiliary data; the latter are a third result.

    Returns:
        A pair of the result of `fun` and its tangent, of one structure; with `has_aux` also the auxiliary data.

    Raises:
        TypeError: structures, shapes or dtypes of primals and tangents do not agree, or `primals` is no sequence.

    Example:
        >>> xtrace.jvp(jnp.square, (3.0,), (1.0,))
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                "primal and tangent arguments to jvp must be tuples or lists; "
                f"found {name} of type {type(given).__name__}"
            )
    flat = Flat("jvp", fun, tuple(primals), has_aux)
    moved, tree = pytree.tree_flatten(tuple(tangents))
    if tree != flat.in_tree or type(primals) is not type(tangents):
        raise TypeError(
            f"jvp: the primals and tangents of {flat.name} must have one structure; they have "
            f"{pytree.tree_structure(primals)} and {pytree.tree_structure(tangents)}, which differ "
            f"{pytree_differences.structure_difference(primals, tangents, prefix=False)}"
        )
    avals = flat.avals()
    checked = check_each(lambda i: _check_tangent("jvp", flat, i, avals[i], moved[i]), len(avals))
    with scope(JVP):
        results, out_tangents = jvp_of_flat(flat, flat.leaves, checked, lambda: flat.info)
    out = [make_zero_tangent(aval_of(x)) if t is None else t for x, t in zip(results, out_tangents, strict=True)]
    pair = flat.results(results), flat.results(out)
    return (*pair, flat.aux) if has_aux else pair


def check_each(check: Callable[[int], Any], count: int) -> list[Any]:
    """Return ``check(position)`` for each position below `count`.

    If it fails at several positions, one error of the class of the first lists them all. The messages of `check` must
    begin with the function's name and a colon.
    """
    results, errors = [], []
    for position in range(count):
        try:
            results.append(check(position))
        except (TypeError, ValueError) as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        name = str(errors[0]).partition(": ")[0]
        faults = [str(error).removeprefix(f"{name}: ") for error in errors]
        raise type(errors[0])(f"{name}: {len(errors)} arguments are wrong:\n{pytree_differences.list_faults(faults)}")
    return results


def check_cotangents(
    flat: Flat, avals: Sequence[ShapedArray], given: Sequence[Any], named: Collection[str]
) -> list[Any]:
    """Return the checked leaves of the only argument of a pullback; `avals` are the types of the function's results.

    TypeError for another number of arguments, or for keywords; ValueError, in `linear_transpose` TypeError, for another
    structure.
    """
    if len(given) != 1 or named:
        shown = f"{len(given)} by position" + (f" and {', '.join(named)} by name" if named else "")
        raise TypeError(
            f"{flat.transformation}: the function of cotangents of {flat.name} takes one argument by position, of the "
            f"structure of its result, {flat.out_tree}; got {shown}. Several cotangents are given as one tuple or list"
        )
    leaves, tree = pytree.tree_flatten(given[0])
    if tree != flat.out_tree:
        raise (TypeError if flat.transformation == "linear_transpose" else ValueError)(
            f"{flat.transformation}: the cotangent must have the structure of the result of {flat.name}, "
            f"{flat.out_tree}; got {tree}, which differs {pytree_differences.treedef_difference(flat.out_tree, tree)}"
        )
    return check_each(lambda i: _check_cotangent(flat, i, avals[i], leaves[i]), len(avals))


def _check_tangent(function: str, flat: Flat, position: int, aval: ShapedArray, tangent: Any) -> Any:
    """Return `tangent`, checked against the type of its leaf, `aval`; None for a tangent of float0.

    Raises TypeError for another dtype and ValueError for another shape; in `linearize`, ValueError for both.
    """
    wanted = tangent_aval(aval)
    dtype = getattr(tangent, "dtype", None)
    if not is_differentiable(aval):
        if dtype == dtypes.float0 and np.shape(tangent) == aval.shape:
            return None
    elif is_array_like(tangent):
        own = aval_of(tangent)
        if own.shape == wanted.shape and own.dtype == wanted.dtype:
            return tangent
        dtype = own.dtype
    known = isinstance(dtype, np.dtype)
    shown = f"{abbreviate(tangent)} of type {type(tangent)}"
    if known:
        shown = ShapedArray(np.shape(tangent), dtype).str_short(True)
    given = known or is_array_like(tangent)
    error = ValueError if given and (function == "linearize" or dtype == wanted.dtype) else TypeError
    raise error(
        f"{function}: the tangent of argument {flat.path(position)} of {flat.name}, which is {aval.str_short(True)}, "
        f"must be {wanted.str_short(True)}; got {shown}"
    )


def _linearize(flat: Flat, keeps_calls: bool = False) -> tuple[list[Any], LinearMap]:
    differentiated = [is_differentiable(a) for a in flat.avals()]
    with scope(JVP):
        values = [as_value(x) for x in flat.leaves]
        return linearize_flat(flat, values, differentiated, flat.info, keeps_calls, (JVP,))


@overload
def linearize(
    fun: Callable[..., _Result], *primals: Any, has_aux: typing.Literal[False] = False
) -> tuple[_Result, Callable[..., _Result]]: ...


@overload
def linearize(
    fun: Callable[..., tuple[_Result, _Aux]], *primals: Any, has_aux: typing.Literal[True]
) -> tuple[_Result, Callable[..., _Result], _Aux]: ...


@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]: ...


def linearize(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``fun(*primals)`` and the derivative of `fun` at `primals` as a function of tangents.

    This call does the nonlinear operations once. Each call of the second result does linear operations only.

    Args:
        fun: a function of pytrees of arrays.
        primals: its arguments.
        has_aux: whether `fun` returns a pair of a result and auxiliary data; the latter are a third result.

    Returns:
        A pair of the result of `fun` and the linear function; with `has_aux` also the auxiliary data.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.

    Example:
        >>> y, derivative = xtrace.linearize(jnp.square, 3.0)
        >>> y, derivative(1.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    flat = Flat("linearize", fun, primals, has_aux)
    avals = flat.avals()
    results, linear = _linearize(flat)
    out_avals = [aval_of(x) for x in results]

    aux = flat.release()
    jaxpr, nonzero = linear.jaxpr, linear.nonzero

    @boundary
    def linear_function(residuals: Sequence[Any], *tangents: object) -> Any:
        moved, tree = pytree.tree_flatten(tangents)
        if tree != flat.in_tree:
            raise TypeError(
                f"linearize: the linear function takes tangents of the structure of the arguments of {flat.name}, "
                f"{flat.in_tree}; got {tree}, which differs {pytree_differences.treedef_difference(flat.in_tree, tree)}"
            )
        given = check_each(lambda i: _check_tangent("linearize", flat, i, avals[i], moved[i]), len(avals))
        out_tangents = iter(evaluate(jaxpr, residuals, [t for t in given if t is not None]))
        out = [next(out_tangents) if n else make_zero_tangent(a) for n, a in zip(nonzero, out_avals, strict=True)]
        return flat.results([materialize_literal(x) for x in out])

    # A pytree of the residuals: jitted functions can take and return it.
    pair = flat.results(results), pytree_registration.Partial(linear_function, linear.consts)
    return (*pair, aux) if has_aux else pair


def _compute_gradients(
    linear: LinearMap, in_avals: Sequence[ShapedArray], cotangents: Sequence[Any], wanted: Sequence[bool] | None = None
) -> list[Any]:
    """Return the cotangents of all arguments, given the results' cotangents; unwanted ones are zeros."""
    given = [c for c, n in zip(cotangents, linear.nonzero, strict=True) if n]
    with scope(TRANSPOSE):
        undefined = [UndefinedPrimal(a) for a in cotangent_avals(linear.jaxpr.in_avals)]
        if wanted is not None:
            wanted = [w for w, a in zip(wanted, in_avals, strict=True) if is_differentiable(a)]
        in_cotangents = iter(backward(linear.jaxpr, linear.consts, undefined, given, wanted))
    out = []
    for aval in in_avals:
        cotangent = next(in_cotangents) if is_differentiable(aval) else None
        out.append(make_zero_tangent(aval.to_cotangent_aval()) if cotangent is None else materialize_literal(cotangent))
    return out


@overload
def vjp(
    fun: Callable[..., _Result], *primals: Any, has_aux: typing.Literal[False] = False,
    reduce_axes: Sequence[Any] = (), saveable_args: Any = True,
) -> tuple[_Result, Callable[..., Any]]: ...


@overload
def vjp(
    fun: Callable[..., tuple[_Result, _Aux]], *primals: Any, has_aux: typing.Literal[True],
    reduce_axes: Sequence[Any] = (), saveable_args: Any = True,
) -> tuple[_Result, Callable[..., Any], _Aux]: ...


@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
) -> Any: ...


def vjp(
    fun: Callable[..., Any], *primals: object, has_aux: bool = False, reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
) -> Any:
    """Return ``fun(*primals)`` and the pullback, which maps cotangents of the result to cotangents of the arguments.

    Args:
        fun: a function of pytrees of arrays.
        primals: its arguments.
        has_aux: whether `fun` returns a pair of a result and auxiliary data; the latter are a third result.
        reduce_axes: not supported; leave it empty.
        saveable_args: a bool, or a tuple of these for each argument, nested as its containers: where it is False the
            pullback does not keep the argument, and it must be put into the pullback's ``args_res`` before a call.

    Returns:
        A pair of the result of `fun` and the pullback; with `has_aux` also the auxiliary data. The pullback takes a
        cotangent of the structure, shapes and dtypes of the result, and returns a tuple with a cotangent for each
        argument; the cotangents of integers have dtype float0.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.
        ValueError: `saveable_args` has another structure than the arguments.
        NotImplementedError: `reduce_axes` is given.

    Example:
        >>> y, pullback = xtrace.vjp(jnp.multiply, 3.0, 4.0)
        >>> pullback(1.0)
        (Array(4., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    refuse_reduce_axes("vjp", reduce_axes)
    flat = Flat("vjp", fun, primals, has_aux)
    if any(isinstance(x, Reference) for x in flat.leaves):
        return make_vjp_with_references(vjp, fun, primals, has_aux, saveable_args)
    saveable = saveable_leaves(saveable_args, flat.in_tree)
    avals = flat.avals()
    if not all(saveable):  # A residual is found among the arguments by its identity.
        flat.leaves = [x if may_keep else as_value(x) for x, may_keep in zip(flat.leaves, saveable, strict=True)]
    leaves = flat.leaves
    results, linear = _linearize(flat, keeps_calls=True)
    out_avals = [aval_of(x) for x in results]
    out_tree = flat.out_tree
    aux = flat.release()
    jaxpr, nonzero = linear.jaxpr, linear.nonzero
    places = list(map(find_mesh_place, results))

    def pullback(residuals: list[Any], wanted: Any, *cotangents: object, **named: object) -> Any:
        checked = list(map(put_on_place, places, check_cotangents(flat, out_avals, cotangents, named)))
        map_of_tangents = LinearMap(jaxpr, residuals, nonzero)
        return pytree.tree_unflatten(flat.in_tree, _compute_gradients(map_of_tangents, avals, checked, wanted))

    # A pytree of the residuals: it can go in and out of jitted functions.
    vjp_function = make_pullback(pullback, jaxpr, linear.consts, flat.in_tree, out_tree, leaves, saveable)
    pair = flat.results(results), vjp_function
    return (*pair, aux) if has_aux else pair


def _check_cotangent(flat: Flat, position: int, aval: ShapedArray, cotangent: object) -> Any:
    """Return `cotangent`, checked against the type of its result, `aval`; ValueError if the types disagree.

    The cotangent of an integer is None, except in `linear_transpose`.
    """
    linear = flat.transformation == "linear_transpose"
    wanted = aval if linear else tangent_aval(aval)
    own = aval_of(cotangent) if is_array_like(cotangent) else None
    if not is_differentiable(aval) and not linear and own is not None and own.shape == wanted.shape:
        return None
    if not linear:
        wanted = wanted.to_cotangent_aval()
    if own is None or own.shape != wanted.shape or own.dtype != wanted.dtype or own.sums != wanted.sums:
        name = key_paths.keystr(pytree.leaf_paths(flat.out_tree)[position])
        where = f" at {name}" if name else ""
        error = TypeError if own is None or linear else ValueError
        raise error(
            f"{flat.transformation}: the cotangent{where} must have the type of the result of {flat.name}, "
            f"{wanted.str_short(True)}; got {abbreviate(cotangent) if own is None else own.str_short(True)}"
        )
    return None if own.dtype == dtypes.float0 else as_value(cotangent)


def value_and_grad(
    fun: Callable[_Arguments, _Result], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_Arguments, tuple[_Result, Any]]:
    """Return a function that computes the value and the gradient of `fun`.

    Args:
        fun: a function whose result is a real scalar.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of the scalar and auxiliary data.
        holomorphic: whether arguments and result are complex, and `fun` is holomorphic.
        allow_int: whether integer arguments are accepted; their gradients have dtype float0.
        reduce_axes: not supported; leave it empty.

    Returns:
        A function of the arguments of `fun` that returns a pair (value, gradient), or ((value, auxiliary data),
        gradient) with `has_aux`. The gradient has the structure of the argument, and is a tuple of these for several
        `argnums`.

    Raises:
        TypeError: `fun` is not callable. The returned function raises it if a position is out of range, the result of
            `fun` is no real scalar, or an argument to differentiate with respect to is not of a real floating dtype.
        NotImplementedError: `reduce_axes` is given.

    Example:
        >>> xtrace.value_and_grad(lambda x: (x ** 2).sum())(jnp.array([1.0, 2.0]))
        (Array(5., dtype=float32), Array([2., 4.], dtype=float32))
    """
    check_callable(fun)
    refuse_reduce_axes("grad", reduce_axes)
    numbers, several = read_argnums(argnums)

    @boundary
    @wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = find_positions(fun, numbers, len(args), TypeError)

        flat = Flat("grad", restrict(fun, chosen, args, kwargs), tuple([args[n] for n in chosen]), has_aux, chosen)
        avals = flat.avals()
        for position, aval in enumerate(avals):
            check_input("grad", flat, position, aval, holomorphic, allow_int)
        results, linear = _linearize(flat, keeps_calls=True)
        _check_scalar(flat, results, holomorphic)
        one = aval_of(results[0])
        seed: Any = Literal(dtypes.scalar_type_of(one.dtype)(1), one)
        if any(one.sums):
            seed = reshard_as(Literal(seed.value, one.update(sharding=None)), one.to_cotangent_aval())
        else:
            seed = put_on_place(find_mesh_place(results[0]), seed)
        out = _compute_gradients(linear, avals, [seed])
        gradients = pytree.tree_unflatten(flat.in_tree, out)
        value = flat.results(results)
        return ((value, flat.aux) if has_aux else value), (gradients if several else gradients[0])

    return value_and_gradient


@overload
def grad(
    fun: Callable[_Arguments, Any], argnums: int | Sequence[int] = 0, has_aux: typing.Literal[False] = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_Arguments, Any]: ...


@overload
def grad(
    fun: Callable[_Arguments, tuple[Any, _Aux]], argnums: int | Sequence[int] = 0, *, has_aux: typing.Literal[True],
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_Arguments, tuple[Any, _Aux]]: ...


@overload
def grad(
    fun: Callable[_Arguments, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[_Arguments, Any]: ...


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Return a function that computes the gradient of `fun`: reverse mode.

    Args:
        fun: a function whose result is a real scalar.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of the scalar and auxiliary data.
        holomorphic: whether arguments and result are complex, and `fun` is holomorphic.
        allow_int: whether integer arguments are accepted; their gradients have dtype float0.
        reduce_axes: not supported; leave it empty.

    Returns:
        A function of the arguments of `fun` that returns the gradient, or a pair (gradient, auxiliary data) with
        `has_aux`. The gradient has the structure of the argument, and is a tuple of these for several `argnums`.

    Raises:
        TypeError: `fun` is not callable. The returned function raises it if a position is out of range, the result of
            `fun` is no real scalar, or an argument to differentiate with respect to is not of a real floating dtype.
        NotImplementedError: `reduce_axes` is given.

    Example:
        >>> xtrace.grad(jnp.sin)(0.0)
        Array(1., dtype=float32, weak_type=True)
        >>> xtrace.grad(lambda w, x: jnp.dot(w, x))(jnp.ones(2), jnp.array([3.0, 4.0]))
        Array([3., 4.], dtype=float32)
    """
    check_callable(fun)
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @boundary
    @wraps(fun)
    def gradient(*args: object, **kwargs: object) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def refuse_reduce_axes(function: str, reduce_axes: Sequence[Any]) -> None:
    """Raise NotImplementedError if `reduce_axes` is not empty; JAX removed the parameter, too."""
    if reduce_axes:
        raise NotImplementedError(
            f"{function}: reduce_axes is deprecated and must be (); sum gradients with xtrace.lax.psum"
        )


def check_input(
    function: str, flat: Flat, position: int, aval: ShapedArray, holomorphic: bool, allow_int: bool
) -> None:
    """Raise TypeError if reverse mode cannot differentiate with respect to the leaf at `position`, of type `aval`."""
    if dtypes.is_complex(aval.dtype) if holomorphic else is_differentiable(aval) or allow_int:
        return
    where = f"argument {flat.path(position)} of {flat.name} is {aval.str_short(True)}"
    if holomorphic:
        raise TypeError(f"{function} with holomorphic=True requires inputs with complex dtype, but {where}")
    raise TypeError(
        f"{function} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), "
        f"but {where}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to True; "
        f"or {'convert it with astype(float)' if aval.shape else 'write the number with a point, 2.0'}"
    )


def check_output(function: str, name: str, aval: ShapedArray, holomorphic: bool) -> None:
    """Raise TypeError if reverse mode cannot differentiate a result of type `aval` of the function called `name`."""
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{function} with holomorphic=True requires outputs with complex dtype, but got {aval.dtype.name}"
        )
    if not holomorphic and not dtypes.is_floating(aval.dtype):
        advice = (
            "Return its real part or abs of it; for holomorphic differentiation, pass holomorphic=True; for "
            "differentiation of other functions with complex outputs, use vjp"
            if dtypes.is_complex(aval.dtype)
            else "Conditions and whole numbers have no slope: return a float, such as where(condition, x, y)"
        )
        raise TypeError(
            f"{function} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but "
            f"{name} returned {aval.dtype.name}. {advice}"
        )


def _check_scalar(flat: Flat, results: Sequence[Any], holomorphic: bool) -> None:
    if not pytree.is_one_leaf(flat.out_tree):
        shown = pytree_differences.describe_leaves(flat.out_tree, [aval_of(x).str_short(True) for x in results])
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output of {flat.name} was {shown}. Return one number; "
            "what else there is to return goes second, in a pair, with has_aux=True"
        )
    aval = aval_of(results[0])
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output of {flat.name} had shape: {aval.shape}. "
            "Sum it, or use jacrev"
        )
    check_output("grad", flat.name, aval, holomorphic)
