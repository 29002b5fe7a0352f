"""Jacobians and Hessians: `jacfwd`, `jacrev`, `hessian`; and `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, materialize_literal, reshape, zeros
from xtrace._src.api.differentiation import grad
from xtrace._src.api.differentiation.argnums import find_positions, read_argnums, restrict
from xtrace._src.api.jit.static_arguments import NO_STATIC
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.api.tracing import abstract_leaf, abstract_leaves
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.pytrees import pytree, pytree_registration
from xtrace._src.core.tangents import UndefinedPrimal, cotangent_avals, is_differentiable
from xtrace._src.ops.arrays.concatenation import split
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.transforms.backward import backward
from xtrace._src.transforms.scopes import TRANSPOSE, scope
from xtrace._src.transforms.stage import stage

_Arguments = ParamSpec("_Arguments")


def _make_standard_basis(leaves: Sequence[Any]) -> list[Any]:
    """Return the standard basis of the space of all leaves: for each leaf an array with a leading axis of its size."""
    avals = [aval_of(x) for x in leaves]
    total = sum(a.size for a in avals)
    rows = broadcast_in_dim(iota(dtypes.int32, total), (total, total), (0,))
    columns = broadcast_in_dim(iota(dtypes.int32, total), (total, total), (1,))
    same = eq(rows, columns)
    blocks = _cut_in_parts(same, 1, avals)
    return [
        reshape(convert_to(block, aval.dtype, aval.weak_type), (total, *aval.shape))
        for block, aval in zip(blocks, avals, strict=True)
    ]


def _cut_in_parts(x: Array, axis: int, avals: Sequence[ShapedArray]) -> Sequence[Any]:
    """Return `x` cut along `axis` into parts of the sizes of `avals`."""
    return [x] if len(avals) == 1 else split(x, [a.size for a in avals], axis)


def _split(x: Array, axis: int, leaves: Sequence[Any]) -> list[Any]:
    """Return `x` cut along `axis` into a part for each leaf; the leaf's axes replace `axis`."""
    avals = list(map(aval_of, leaves))
    return [
        reshape(part, (*part.shape[:axis], *aval.shape, *part.shape[axis + 1 :]))
        for part, aval in zip(_cut_in_parts(x, axis, avals), avals, strict=True)
    ]


def _instantiate_integers(tangent: Array, value: object) -> Array:
    """Return `tangent`; for an integer `value`, zeros of its dtype, because Jacobians have no float0."""
    return zeros(aval_of(value)) if getattr(tangent, "dtype", None) == dtypes.float0 else tangent


def _check_forward(name: str, leaves: Sequence[Any], holomorphic: bool, kind: str) -> None:
    """Raise TypeError for leaves of a dtype without Jacobian in forward mode; `kind` is "input" or "output"."""
    wanted, accepted = ("complex", dtypes.is_complex) if holomorphic else ("floating", dtypes.is_floating)
    for leaf in leaves:
        aval = aval_of(leaf)
        if not accepted(aval.dtype):
            is_complex = dtypes.is_complex(aval.dtype)
            rest = ". For holomorphic differentiation, pass holomorphic=True" if is_complex else ". Convert with astype"
            raise TypeError(
                f"jacfwd with holomorphic={holomorphic} requires {kind}s of {wanted} dtype, {name} has "
                f"{aval.str_short(True)}{rest}"
            )


def jacfwd(
    fun: Callable[_Arguments, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[_Arguments, Any]:
    """Return a function that computes the Jacobian of `fun` column by column: forward mode.

    The cost grows with the number of elements of the argument; use `jacrev` if the result has far fewer.

    Args:
        fun: a function of pytrees of arrays.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of a result and auxiliary data.
        holomorphic: whether arguments and result are complex, and `fun` is holomorphic.

    Returns:
        A function of the arguments of `fun`. Its result has the structure of the result of `fun`; each leaf is a tree
        in the structure of the argument, with arrays of shape (*shape of the result, *shape of the argument). With
        `has_aux` it returns a pair of this result and the auxiliary data.

    Raises:
        TypeError: `fun` is not callable. The returned function raises it for arguments that are not of a real floating
            dtype, unless `holomorphic`.

    Example:
        >>> xtrace.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    check_callable(fun)
    numbers, several = read_argnums(argnums)

    @boundary
    @wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = find_positions(fun, numbers, len(args))
        restricted = restrict(fun, chosen, args, kwargs)
        primals = tuple([args[n] for n in chosen])
        leaves, tree = pytree.tree_flatten(primals)
        name = function_name(fun)
        # `avals` raises an error that names an argument that is no array.
        if not grad.Flat("jacfwd", restricted, primals, has_aux, chosen).avals():
            raise ValueError(f"jacfwd: argument {chosen[0]} of {name} has no arrays to differentiate by")
        _check_forward(name, leaves, holomorphic, "input")
        aux: Any = None

        def push_forward(tangents: tuple[Array, ...]) -> Any:
            nonlocal aux
            result, moved, *rest = grad.jvp(restricted, primals, tangents, has_aux=has_aux)
            aux = rest[0] if has_aux else None
            return pytree.tree_map(_instantiate_integers, moved, result)

        basis = pytree.tree_unflatten(tree, _make_standard_basis(leaves))
        columns = vmap(push_forward, out_axes=-1)(basis)
        if holomorphic:
            _check_forward(name, pytree.tree_leaves(columns), True, "output")

        def arrange(column: Any) -> Any:
            jacobians = pytree.tree_unflatten(tree, _split(column, column.ndim - 1, leaves))
            return jacobians if several else jacobians[0]

        jacobians = pytree.tree_map(arrange, columns)
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def jacrev(
    fun: Callable[_Arguments, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_Arguments, Any]:
    """Return a function that computes the Jacobian of `fun` row by row: reverse mode.

    The cost grows with the number of elements of the result.

    Args:
        fun: a function of pytrees of arrays.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of a result and auxiliary data.
        holomorphic: whether arguments and result are complex, and `fun` is holomorphic.
        allow_int: whether integer arguments are accepted; their derivatives have dtype float0.

    Returns:
        A function of the arguments of `fun`; its result is described at `jacfwd`.

    Raises:
        TypeError: `fun` is not callable. The returned function raises it for arguments or results that are not of a
            real floating dtype, unless `holomorphic` or `allow_int`.

    Example:
        >>> xtrace.jacrev(lambda x: x.sum() * x)(jnp.array([1.0, 2.0]))
        Array([[4., 1.],
               [2., 5.]], dtype=float32)
    """
    check_callable(fun)
    numbers, several = read_argnums(argnums)
    # As in JAX, the integer of another type is a sequence of one position here, unlike in `grad` and `jacfwd`.
    several = several or not isinstance(argnums, int)

    @boundary
    @wraps(fun)
    def jacobian(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        chosen = find_positions(fun, numbers, len(args))
        primals = tuple([args[n] for n in chosen])
        name = function_name(fun)
        restricted = restrict(fun, chosen, args, kwargs)
        # `avals` raises an error that names an argument that is no array.
        flat = grad.Flat("jacrev", restricted, primals, has_aux, chosen)
        for position, aval in enumerate(flat.avals()):
            grad.check_input("jacrev", flat, position, aval, holomorphic, allow_int)
        result, pullback, *aux = grad.vjp(restricted, *primals, has_aux=has_aux)
        leaves, tree = pytree.tree_flatten(result)
        if not leaves:
            raise ValueError(f"jacrev: {name} returned {abbreviate(result)}, which has no arrays to differentiate")
        for leaf in leaves:
            grad.check_output("jacrev", name, aval_of(leaf), holomorphic)

        def pull_back(cotangents: object) -> Any:
            return pytree.tree_map(_instantiate_integers, pullback(cotangents), primals)

        rows = vmap(pull_back)(pytree.tree_unflatten(tree, _make_standard_basis(leaves)))
        # Each column holds the derivatives of all leaves of the result by one leaf of the arguments.
        columns, below = pytree.tree_flatten(rows if several else rows[0])
        parts = zip(*[_split(column, 0, leaves) for column in columns], strict=True)
        jacobians = [pytree.tree_unflatten(below, part) for part in parts]
        tree_of_jacobians = pytree.tree_unflatten(tree, jacobians)
        return (tree_of_jacobians, *aux) if has_aux else tree_of_jacobians

    return jacobian


jacobian = copy_with_name(jacrev, "jacobian")


def hessian(
    fun: Callable[_Arguments, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[_Arguments, Any]:
    """Return a function that computes the matrix of second derivatives of `fun`: forward mode over reverse mode.

    Args:
        fun: a function of pytrees of arrays, mostly with a scalar result.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether `fun` returns a pair of a result and auxiliary data.
        holomorphic: whether arguments and result are complex, and `fun` is holomorphic.

    Returns:
        A function of the arguments of `fun`. For an array argument its result has the shape (*shape of the result,
        *shape of the argument, *shape of the argument).

    Raises:
        TypeError: `fun` is not callable, or an argument is not of a real floating dtype.

    Example:
        >>> xtrace.hessian(lambda x: x[0] * x[1])(jnp.array([1.0, 2.0]))
        Array([[0., 1.],
               [1., 0.]], dtype=float32)
    """
    check_callable(fun)
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def linear_transpose(fun: Callable[..., Any], *primals: object, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """Return the transpose of a linear function.

    Args:
        fun: a linear function of pytrees of arrays.
        primals: arrays or ShapeDtypeStructs of the types of its arguments: all floating or complex, or all integers.
        reduce_axes: not supported; leave it empty.

    Returns:
        A function that takes a cotangent of the result and returns a tuple of cotangents of the arguments.

    Raises:
        TypeError: `fun` is not callable, or types of arguments and results are mixed.
        NotImplementedError: an operation in `fun` is not linear, or `reduce_axes` is given.

    Example:
        >>> transposed = xtrace.linear_transpose(lambda x: 2.0 * x[:2], jnp.ones(3))
        >>> transposed(jnp.array([1.0, 2.0]))
        (Array([2., 4., 0.], dtype=float32),)
    """
    grad.refuse_reduce_axes("linear_transpose", reduce_axes)
    flat = grad.Flat("linear_transpose", fun, primals, False)
    avals = abstract_leaves(fun, NO_STATIC, flat.leaves, pytree.tree_structure((primals, {})), abstract_leaf)
    jaxpr, consts = stage(flat, avals, flat.info)
    out_avals = jaxpr.out_avals
    types = [*avals, *out_avals]
    if not all(map(is_differentiable, types)) and not all(dtypes.is_integer(a.dtype) for a in types):
        raise TypeError(
            "linear_transpose only supports functions of floating or complex arguments and results, or of integer ones "
            f"and integer results; {flat.name} takes ({', '.join(a.str_short(True) for a in avals)}) and returns "
            f"({', '.join(a.str_short(True) for a in out_avals)})"
        )

    @boundary
    def transposed(consts: Sequence[Any], *cotangents: object, **named: object) -> Any:
        checked = grad.check_cotangents(flat, out_avals, cotangents, named)
        with scope(TRANSPOSE):
            in_cotangents = backward(jaxpr, consts, [UndefinedPrimal(a) for a in cotangent_avals(avals)], checked)
        out = [
            grad.make_zero_tangent(a) if c is None else materialize_literal(c)
            for a, c in zip(avals, in_cotangents, strict=True)
        ]
        return pytree.tree_unflatten(flat.in_tree, out)

    # A pytree of the constants: jitted functions can take and return it.
    return pytree_registration.Partial(transposed, consts)
