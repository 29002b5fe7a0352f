"""Sharding groups: arrays that the compiler shards alike."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import move_axis, operand_aval, zeros
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import ListPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.sharding_rules import Entries, Split
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

_GROUPS = "sharding groups"


def _abstract(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    """Return both operands."""
    return [x, y]


def _own_entries(name: str, operands: Sequence[Split], result: Any) -> list[Entries]:
    return [x.entries for x in operands]


def _emit(builder: FunctionBuilder, *values: Value) -> list[Value]:
    module = builder.module
    if module.mesh is not None:
        number = next(module.memo.setdefault(_GROUPS, itertools.count()))
        for x in values:
            builder.line_of_many(f"sdy.sharding_group {x.name} group_id={number} : {x.type}", [])
    return list(values)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    moved = [zeros(aval_of(x)) if t is None else t for x, t in zip(primals, tangents, strict=True)]
    return _bind(*primals), _bind(*moved)


def _transpose(cotangents: Sequence[Any], x: Any, y: Any) -> list[Any]:
    given = [zeros(operand.aval) if c is None else c for c, operand in zip(cotangents, (x, y), strict=True)]
    return _bind(*given)


def _batch(mapped: MappedAxis, operands: Sequence[Any], places: Sequence[int | None]) -> tuple[list[Any], list[Any]]:
    x, y = operands
    if None in places:
        return [x, y], list(places)
    return _bind(move_axis(x, places[0] or 0, 0), move_axis(y, places[1] or 0, 0)), [0, 0]


def _bind(x: Any, y: Any) -> list[Any]:
    return shard_alike_p.bind_positional((x, y), ())


shard_alike_p = ListPrimitive(
    "shard_alike", sharding=_own_entries, abstract=_abstract, emit=_emit, jvp=_jvp, transpose=_transpose, batch=_batch,
    multiple_results=True, moves_elements=True, memoised=False,
)


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two arrays, or trees of arrays, that the compiler shards alike.

    Args:
        x: an array or a tree of arrays.
        y: a tree of the same structure with arrays of the same shapes.

    Returns:
        A pair of trees like `x` and `y`.

    Raises:
        TypeError: a leaf is no array.
        ValueError: the structures or the shapes differ.

    Example:
        >>> from xtrace.experimental.shard_alike import shard_alike
        >>> shard_alike(jnp.arange(2), jnp.ones(2))
        (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    left, tree = pytree.tree_flatten(x)
    right, other = pytree.tree_flatten(y)
    if tree != other:
        raise ValueError(f"shard_alike: x and y must have the same structure, got {tree} and {other}")
    pairs = []
    for a, b in zip(left, right, strict=True):
        shapes = operand_aval(a, "x").shape, operand_aval(b, "y").shape
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"shard_alike: the leaves of x and y must have the same shape, got {shapes[0]} and {shapes[1]}; shard "
                "arrays of different shapes with xtrace.lax.with_sharding_constraint"
            )
        pairs.append(_bind(a, b))
    return pytree.tree_unflatten(tree, [p[0] for p in pairs]), pytree.tree_unflatten(tree, [p[1] for p in pairs])
