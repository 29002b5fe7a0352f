"""Differentiation rules of primitives, and their registration (``jax.interpreters.ad``)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import add_any
from xtrace._src.algebra.vector_space import zeros
from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import DebugInfo, Var
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.tangents import UndefinedPrimal, is_differentiable, tangent_aval
from xtrace._src.extension.rules import primitive_jvps, primitive_transposes
from xtrace._src.transforms.jvp import JVPTrace, JVPTracer
from xtrace._src.transforms.jvp import jvp as _jvp
from xtrace._src.transforms.linearize import linearize as _linearize
from xtrace._src.transforms.scopes import JVP, scope

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "defbilinear",
    "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "jvp", "linearize", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]

add_jaxvals_p = add_any


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Array:
    """Add two arrays of one type.

    Args:
        x: an array.
        y: an array of the same shape and dtype.

    Returns:
        An array.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> xtrace.interpreters.ad.add_jaxvals(jnp.ones(2), jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    return add_any.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """Add two tangents; each may be a `Zero`.

    Args:
        x: an array or a `Zero`.
        y: an array or a `Zero` of the same type.

    Returns:
        An array or a `Zero`.

    Raises:
        TypeError: an operand is not an array.

    Example:
        >>> from xtrace.interpreters import ad
        >>> ad.add_tangents(ad.Zero.from_primal_value(1.0), jnp.array(2.0))
        Array(2., dtype=float32, weak_type=True)
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def instantiate_zeros(tangent: Any) -> Any:
    """Convert a tangent to an array.

    Args:
        tangent: an array or a `Zero`.

    Returns:
        An array.

    Raises:
        TypeError: the type of the `Zero` is not an array type.

    Example:
        >>> from xtrace.interpreters import ad
        >>> ad.instantiate_zeros(ad.Zero(xtrace.typeof(jnp.ones(2))))
        Array([0., 0.], dtype=float32)
    """
    return tangent.instantiate() if type(tangent) is Zero else tangent


def zeros_like_aval(aval: ShapedArray) -> Array:
    """Return an array of zeros.

    Args:
        aval: its type.

    Returns:
        An array.

    Raises:
        TypeError: the type is not an array type.

    Example:
        >>> xtrace.interpreters.ad.zeros_like_aval(xtrace.typeof(jnp.ones(2)))
        Array([0., 0.], dtype=float32)
    """
    return zeros(aval)


def is_undefined_primal(x: object) -> bool:
    """Return whether an operand of a transpose rule is a linear operand.

    Args:
        x: an operand.

    Returns:
        True for an `UndefinedPrimal`.

    Example:
        >>> xtrace.interpreters.ad.is_undefined_primal(1.0)
        False
    """
    return type(x) is UndefinedPrimal


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """Return the transpose rule of a primitive.

    Args:
        p: the primitive.

    Returns:
        A function of the cotangent, the operands and the parameters.

    Raises:
        NotImplementedError: the primitive has no transpose rule.

    Example:
        >>> callable(xtrace.interpreters.ad.get_primitive_transpose(lax.neg_p))
        True
    """
    if p not in primitive_transposes:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented; register one in "
            "xtrace.interpreters.ad.primitive_transposes"
        )
    return primitive_transposes[p]


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False,
    instantiate: bool | Sequence[bool] = True, transform_stack: bool = True,
) -> Any:
    """Return the results of a function and their tangents; zero tangents may stay a `Zero`.

    Args:
        fun: a function of trees of arrays, or a `WrappedFun`.
        primals: its arguments.
        tangents: a tangent for each array, in the structure of `primals`; a `Zero` is a zero tangent.
        has_aux: whether the function returns a pair of differentiable results and others.
        instantiate: whether to convert zero tangents to arrays, one flag or one for each array of the results.
        transform_stack: whether the names of operations include ``jvp``.

    Returns:
        The results and their tangents, and the other results with `has_aux`.

    Raises:
        TypeError: `fun` is not a function, or the tangents have another structure than the primals.
        ValueError: there are more or fewer flags than results.

    Example:
        >>> from xtrace.interpreters import ad
        >>> ad.jvp(jnp.sin, (0.0,), (2.0,))
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    leaves, tree = pytree.tree_flatten(tuple(primals))
    moved, tangent_tree = pytree.tree_flatten(tuple(tangents), is_leaf=lambda x: type(x) is Zero)
    if tree != tangent_tree:
        raise TypeError(f"jvp: primals and tangents must have one structure; they have {tree} and {tangent_tree}")
    flat = _FlatFunction("jvp", fun, tree, has_aux)
    given = [None if type(t) is Zero else t for t in moved]
    with scope(JVP) if transform_stack else contextlib.nullcontext():
        results, out = _jvp(flat, leaves, given)
    count = flat.out_tree.num_leaves
    flags = [instantiate] * count if isinstance(instantiate, bool) else list(instantiate)
    if len(flags) != count:
        raise ValueError(f"jvp: instantiate has {len(flags)} flags, and the function {count} results")
    zeros_out = [Zero.from_primal_value(x) if t is None else t for x, t in zip(results, out, strict=True)]
    out = [instantiate_zeros(t) if flag else t for t, flag in zip(zeros_out[:count], flags, strict=True)]
    return flat.unflatten(results, out)


def linearize(
    traceable: Callable[..., Any], primals_ft: Sequence[Any], has_aux: bool = False, is_vjp: bool = False
) -> Any:
    """Evaluate a function, and return its results and the linear map of tangents as a jaxpr.

    Args:
        traceable: a function of trees of arrays, or a `WrappedFun`.
        primals_ft: its arguments.
        has_aux: whether the function returns a pair of differentiable results and others.
        is_vjp: not used.

    Returns:
        The results; a flag for each array of the results, True for a zero tangent; the jaxpr from the tangents of the
        arguments to the nonzero tangents; the values of its constants; and the other results with `has_aux`.

    Raises:
        TypeError: `traceable` is not a function.

    Example:
        >>> from xtrace.interpreters import ad
        >>> result, zero, jaxpr, constants = ad.linearize(lambda x: x * x * 3.0, (2.0,))
        >>> result, zero, xtrace.core.eval_jaxpr(jaxpr, constants, 1.0)
        (Array(12., dtype=float32, weak_type=True), [False], [Array(12., dtype=float32, weak_type=True)])
    """
    leaves, tree = pytree.tree_flatten(tuple(primals_ft))
    flat = _FlatFunction("linearize", traceable, tree, has_aux)
    differentiated = [is_differentiable(aval_of(x)) for x in leaves]
    with scope(JVP):
        info = DebugInfo("linearize", getattr(traceable, "__name__", "function"), None, None)
        results, linear = _linearize(flat, leaves, differentiated, info)
    count = flat.out_tree.num_leaves
    tangents = iter(linear.jaxpr.invars)
    inputs = [
        next(tangents) if moves else Var(tangent_aval(aval_of(x)))
        for x, moves in zip(leaves, differentiated, strict=True)
    ]
    # The other results have no tangents.
    kept = sum(linear.nonzero[:count])
    jaxpr = linear.jaxpr.replace(invars=inputs, outvars=linear.jaxpr.outvars[:kept])
    zero = [not nonzero for nonzero in linear.nonzero[:count]]
    values, _, *aux = flat.unflatten(results, ())
    return (values, zero, jaxpr, linear.consts, *aux)


class _FlatFunction:
    """A function of leaves, made from a function of pytrees. It returns the leaves of the results, then of the rest."""

    def __init__(self, name: str, function: Callable[..., Any], in_tree: Any, has_aux: bool) -> None:
        self.call = getattr(function, "call_wrapped", function)
        if not callable(self.call):
            raise TypeError(f"{name} takes a function, got {abbreviate(function)}")
        self.name, self.in_tree, self.has_aux = name, in_tree, has_aux

    def __call__(self, *leaves: Any) -> list[Any]:
        result, aux = self.call(*pytree.tree_unflatten(self.in_tree, leaves)), None
        if self.has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError(f"{self.name}: with has_aux the function returns a pair, got {abbreviate(result)}")
            result, aux = result
        arrays, self.out_tree = pytree.tree_flatten(result)
        rest, self.aux_tree = pytree.tree_flatten(aux)
        return [*arrays, *rest]

    def unflatten(self, results: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Return the trees of the results and the tangents, and the other results with `has_aux`."""
        count = self.out_tree.num_leaves
        moved = pytree.tree_unflatten(self.out_tree, tangents) if len(tangents) == count else None
        pair = pytree.tree_unflatten(self.out_tree, results[:count]), moved
        return (*pair, pytree.tree_unflatten(self.aux_tree, results[count:])) if self.has_aux else pair


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register the derivatives of a primitive with one result, one function for each operand.

    Args:
        primitive: the primitive.
        jvprules: for each operand ``rule(tangent, *primals, **parameters)``, which returns its term of the tangent of
            the result; None for zero.

    Raises:
        TypeError: `primitive` is not a primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> twice_p = xtrace.extend.core.Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: x * 2)
        >>> ad.defjvp(twice_p, lambda t, x: t * 2)
        >>> xtrace.jvp(twice_p.bind, (3.0,), (1.0,))[1]
        2.0
    """
    defjvp2(primitive, *[rule and _drop_result(rule) for rule in jvprules])


def _drop_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tangent, _result, *primals, **parameters: rule(tangent, *primals, **parameters)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register the derivatives of a primitive, one function of the result and the operands for each operand.

    Args:
        primitive: the primitive, of one result.
        jvprules: for each operand ``rule(tangent, result, *primals, **parameters)``; None for zero.

    Raises:
        TypeError: `primitive` is not a primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> grow_p = xtrace.extend.core.Primitive("grow")
        >>> _ = grow_p.def_impl(jnp.exp)
        >>> ad.defjvp2(grow_p, lambda t, result, x: t * result)
        >>> xtrace.jvp(grow_p.bind, (0.0,), (3.0,))[1]
        Array(3., dtype=float32, weak_type=True)
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        result = primitive.bind(*primals, **parameters)
        parts = [
            each(t, result, *primals, **parameters)
            for each, t in zip(jvprules, tangents, strict=True) if each is not None and type(t) is not Zero
        ]
        return result, functools.reduce(add_tangents, parts, Zero.from_primal_value(result))

    primitive_jvps[primitive] = rule


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Register a primitive as linear in all its operands.

    Args:
        primitive: the primitive.
        transpose_rule: ``rule(cotangent, **parameters)`` returns the cotangent of each operand.

    Raises:
        TypeError: `primitive` is not a primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> triple_p = xtrace.extend.core.Primitive("triple")
        >>> _ = triple_p.def_impl(lambda x: x * 3), triple_p.def_abstract_eval(lambda x: x)
        >>> ad.deflinear(triple_p, lambda ct: [ct * 3])
        >>> xtrace.grad(triple_p.bind)(1.0)
        Array(3., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda cotangent, *_, **parameters: transpose_rule(cotangent, **parameters))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Register a primitive as linear, with a transpose rule that takes the operands.

    Args:
        primitive: the primitive.
        transpose_rule: ``rule(cotangent, *operands, **parameters)`` returns the cotangent of each operand.

    Raises:
        TypeError: `primitive` is not a primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> half_p = xtrace.extend.core.Primitive("half")
        >>> _ = half_p.def_impl(lambda x: x / 2), half_p.def_abstract_eval(lambda x: x)
        >>> ad.deflinear2(half_p, lambda ct, x: [ct / 2])
        >>> xtrace.grad(half_p.bind)(1.0)
        Array(0.5, dtype=float32, weak_type=True)
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        results = primitive.bind(*primals, **parameters)
        if all(type(t) is Zero for t in tangents):
            given = results if primitive.multiple_results else [results]
            none = [Zero.from_primal_value(x) for x in given]
            return results, none if primitive.multiple_results else none[0]
        return results, primitive.bind(*map(instantiate_zeros, tangents), **parameters)

    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Register a primitive of two operands as linear in each of them.

    Args:
        prim: the primitive.
        lhs_rule: ``rule(cotangent, x, y, **parameters)`` returns the cotangent of the first operand.
        rhs_rule: the same for the second.

    Raises:
        TypeError: `prim` is not a primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> times_p = xtrace.extend.core.Primitive("times")
        >>> _ = times_p.def_impl(lambda x, y: x * y), times_p.def_abstract_eval(lambda x, y: x)
        >>> ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)
        >>> xtrace.grad(times_p.bind)(2.0, 5.0)
        Array(5., dtype=float32, weak_type=True)
    """

    def transpose(cotangent: Any, x: Any, y: Any, **parameters: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [Zero(x.aval) if type(cotangent) is Zero else lhs_rule(cotangent, x, y, **parameters), None]
        return [None, Zero(y.aval) if type(cotangent) is Zero else rhs_rule(cotangent, x, y, **parameters)]

    defjvp(
        prim, lambda t, _, y, **parameters: prim.bind(t, y, **parameters),
        lambda t, x, _, **parameters: prim.bind(x, t, **parameters),
    )
    primitive_transposes[prim] = transpose


_make_public(globals(), __all__)
