"""Rules of differentiation, as programs that add primitives register them: ``jax.interpreters.ad``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.families import add_any
from xtrace._src.algebra.vector_space import zeros
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.extension.rules import Zero, primitive_jvps, primitive_transposes
from xtrace._src.transforms.jvp import JVPTrace, JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "add_tangents", "defbilinear",
    "defjvp", "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros",
    "is_undefined_primal", "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]

add_jaxvals_p = add_any


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the sum of two values of one type.

    Args:
        x: an array.
        y: an array of the same shape and dtype.

    Returns:
        An array.

    Raises:
        TypeError: an operand is no array.

    Example:
        >>> xtrace.interpreters.ad.add_jaxvals(jnp.ones(2), jnp.ones(2))
        Array([2., 2.], dtype=float32)
    """
    return add_any.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, of which one or both may be a `Zero`.

    Args:
        x: an array or a `Zero`.
        y: an array or a `Zero` of the same type.

    Returns:
        An array or a `Zero`.

    Raises:
        TypeError: an operand is no array.

    Example:
        >>> from xtrace.interpreters import ad
        >>> ad.add_tangents(ad.Zero.from_primal_value(1.0), jnp.array(2.0))
        Array(2., dtype=float32, weak_type=True)
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent as an array.

    Args:
        tangent: an array or a `Zero`.

    Returns:
        An array.

    Raises:
        TypeError: the type of the `Zero` is none of arrays.

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
        TypeError: the type is none of arrays.

    Example:
        >>> xtrace.interpreters.ad.zeros_like_aval(xtrace.typeof(jnp.ones(2)))
        Array([0., 0.], dtype=float32)
    """
    return zeros(aval)


def is_undefined_primal(x: object) -> bool:
    """Return whether an operand of a transpose rule is one that the operation is linear in.

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
        NotImplementedError: it has none.

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


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register the derivative of a primitive of one result, as a function for each operand.

    Args:
        primitive: the primitive.
        jvprules: for each operand ``rule(tangent, *primals, **parameters)``, which returns its part of the tangent of
            the result; None where that is zero.

    Raises:
        TypeError: `primitive` is no primitive.

    Example:
        >>> from xtrace.interpreters import ad
        >>> twice_p = xtrace.extend.core.Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: x * 2)
        >>> ad.defjvp(twice_p, lambda t, x: t * 2)
        >>> xtrace.jvp(twice_p.bind, (3.0,), (1.0,))[1]
        Array(2., dtype=float32, weak_type=True)
    """
    defjvp2(primitive, *[rule and _without_result(rule) for rule in jvprules])


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tangent, _result, *primals, **parameters: rule(tangent, *primals, **parameters)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register the derivative of a primitive, as a function for each operand, which gets the result too.

    Args:
        primitive: the primitive, of one result.
        jvprules: for each operand ``rule(tangent, result, *primals, **parameters)``; None for zero.

    Raises:
        TypeError: `primitive` is no primitive.

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
        TypeError: `primitive` is no primitive.

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
    """Register a primitive as linear, with a transpose rule that gets the operands.

    Args:
        primitive: the primitive.
        transpose_rule: ``rule(cotangent, *operands, **parameters)`` returns the cotangent of each operand.

    Raises:
        TypeError: `primitive` is no primitive.

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
        TypeError: `prim` is no primitive.

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
