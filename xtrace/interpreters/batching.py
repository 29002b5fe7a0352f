"""Batching rules of primitives, and their registration (``jax.interpreters.batching``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import move_axis, with_axis
from xtrace._src.api.mapping.mapped_classes import MappedClass, mapped_classes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.rules import axis_primitive_batchers, fancy_primitive_batchers, primitive_batchers

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer", "defvectorized",
    "fancy_primitive_batchers", "primitive_batchers", "register_vmappable", "unregister_vmappable",
]

# The batch axis of an unmapped operand.
not_mapped = None


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any) -> Array:
    """Repeat an array along a new axis.

    Args:
        x: an array.
        sz: the size of the axis.
        axis: its position in the result.
        mesh_axis: not used.

    Returns:
        An array.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> xtrace.interpreters.batching.broadcast(jnp.ones(2), 3, 0, None).shape
        (3, 2)
    """
    return with_axis(x, None, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Array:
    """Move the mapped axis of an operand to the front, or repeat an operand without one.

    Args:
        x: an array.
        bdim: the position of the mapped axis; None if there is none.
        size: its size.
        mesh_axis: not used.

    Returns:
        An array.

    Raises:
        TypeError: `x` is not an array.

    Example:
        >>> xtrace.interpreters.batching.bdim_at_front(jnp.ones((2, 3)), 1, 3).shape
        (3, 2)
    """
    return with_axis(x, bdim, size)


def defvectorized(prim: Primitive) -> None:
    """Register an elementwise primitive: all operands and results have the mapped axis at the same position.

    Args:
        prim: an elementwise primitive.

    Raises:
        TypeError: `prim` is not a primitive.

    Example:
        >>> from xtrace.interpreters import batching
        >>> twice_p = xtrace.extend.core.Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: x * 2)
        >>> batching.defvectorized(twice_p)
        >>> xtrace.vmap(twice_p.bind)(jnp.ones(3))
        Array([2., 2., 2.], dtype=float32)
    """

    def rule(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        results = prim.bind(*operands, **parameters)
        return results, [axes[0]] * len(results) if prim.multiple_results else axes[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Register an elementwise primitive whose operands are mapped or not, each on its own.

    Args:
        prim: an elementwise primitive.

    Raises:
        TypeError: `prim` is not a primitive.

    Example:
        >>> from xtrace.interpreters import batching
        >>> plus_p = xtrace.extend.core.Primitive("plus")
        >>> _ = plus_p.def_impl(lambda x, y: x + y)
        >>> batching.defbroadcasting(plus_p)
        >>> xtrace.vmap(plus_p.bind, (0, None))(jnp.ones(3), 1.0)
        Array([2., 2., 2.], dtype=float32)
    """

    def rule(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        size = next(aval_of(x).shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        together = [with_axis(x, a, size) for x, a in zip(operands, axes, strict=True)]
        rank = max(aval_of(x).ndim for x in together)
        aligned = [x if aval_of(x).ndim == rank else _pad_rank(x, rank) for x in together]
        results = prim.bind(*aligned, **parameters)
        return results, [0] * len(results) if prim.multiple_results else 0

    primitive_batchers[prim] = rule


def _pad_rank(x: Any, rank: int) -> Any:
    """Insert axes of size 1 after the first axis of `x`."""
    shape = aval_of(x).shape
    return x.reshape((shape[0], *[1] * (rank - len(shape)), *shape[1:]))


def defreducer(prim: Primitive) -> None:
    """Register a reduction of one operand over its parameter ``axes``.

    Args:
        prim: the primitive.

    Raises:
        TypeError: `prim` is not a primitive.

    Example:
        >>> from xtrace.interpreters import batching
        >>> total_p = xtrace.extend.core.Primitive("total")
        >>> _ = total_p.def_impl(lambda x, axes: x.sum(axes))
        >>> batching.defreducer(total_p)
        >>> xtrace.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3)))
        Array([3., 3.], dtype=float32)
    """

    def rule(
        operands: Sequence[Any], where: Sequence[int], *, axes: Sequence[int], **parameters: Any
    ) -> tuple[Any, Any]:
        x = move_axis(operands[0], where[0], 0)
        return prim.bind(x, axes=tuple([a + 1 for a in axes]), **parameters), 0

    primitive_batchers[prim] = rule


def register_vmappable(
    data_type: type, spec_type: type, axis_size_type: type, to_elt: Callable[..., Any], from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Register a class whose objects `vmap` maps by functions of the class, not by the axes of their leaves.

    Args:
        data_type: the class.
        spec_type: the class of its specifications in ``in_axes`` and ``out_axes``, beside int.
        axis_size_type: the class of the sizes of mapped axes; int.
        to_elt: is called with ``take, indices, x, axis``, and returns the element of an object that stands for all;
            ``take(array, axis)`` does so for an array, and ``indices()`` returns the index of the element.
        from_elt: is called with ``join, size, element, axis``, and returns an object with all elements;
            ``join(size, array, axis)`` does so for an array.
        make_iota: not used; indices are of int32.

    Raises:
        NotImplementedError: `axis_size_type` is not int.

    Example:
        >>> class Pair(list): pass
        >>> xtrace.interpreters.batching.register_vmappable(
        ...     Pair, int, int, lambda take, _, x, axis: [take(y, axis) for y in x],
        ...     lambda join, size, x, axis: Pair([join(size, y, axis) for y in x]), None)
        >>> xtrace.vmap(lambda x: x[0] * x[1], axis_size=3)(Pair([jnp.arange(3), jnp.ones(3)]))
        Array([0., 1., 2.], dtype=float32)
        >>> xtrace.interpreters.batching.unregister_vmappable(Pair)
    """
    if axis_size_type is not int:
        raise NotImplementedError(
            f"register_vmappable: sizes of mapped axes are integers; got axis_size_type {axis_size_type.__name__} for "
            f"{data_type.__name__}. Pass int"
        )
    mapped_classes[data_type] = MappedClass(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Remove a class that `register_vmappable` registered.

    Args:
        data_type: a class; nothing happens if it is not registered.

    Example:
        >>> xtrace.interpreters.batching.unregister_vmappable(list)
    """
    mapped_classes.pop(data_type, None)


_make_public(globals(), __all__)
