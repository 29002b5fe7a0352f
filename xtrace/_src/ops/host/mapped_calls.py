"""Batching of calls to opaque functions, by ``vmap_method``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, move_axis, with_axis
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.primitive import Primitive
from xtrace._src.ops.control_flow.scan import scan
from xtrace._src.transforms.batch import MappedAxis

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def check_method(method: object) -> None:
    """Raise ValueError unless `method` is a vmap_method or None."""
    if method is not None and method not in METHODS:
        raise ValueError(
            f"{called_function()}: vmap_method must be one of {', '.join(map(repr, METHODS))}, got {abbreviate(method)}"
        )


def call_in_turn(
    call: Callable[..., Sequence[Any]], operands: Sequence[Any], axes: Sequence[int | None], unroll: bool = False
) -> list[Any]:
    """Return the stacked results of ``call(*operands)``, one call for each index of the mapped axis."""
    moved = [x if i is None else move_axis(x, i, 0) for x, i in zip(operands, axes, strict=True)]

    def step(carry: Array, elements: list[Array]) -> tuple[Any, list[Any]]:
        given = iter(elements)
        return carry, list(call(*[x if i is None else next(given) for x, i in zip(moved, axes, strict=True)]))

    _, results = scan(step, (), [x for x, i in zip(moved, axes, strict=True) if i is not None], unroll=unroll)
    return list(results)


def put_axis_first(method: str, operands: Sequence[Any], axes: Sequence[int | None], size: int) -> list[Any]:
    """Return the operands of one call for all indices, with the mapped axis at 0.

    An unmapped operand gets an axis of size 1 ("expand_dims"), is repeated ("broadcast_all"), or stays unchanged
    ("legacy_vectorized").
    """
    arrays = []
    for x, axis in zip(operands, axes, strict=True):
        if axis is not None or method == "broadcast_all":
            x = with_axis(x, axis, size)
        elif method == "expand_dims":
            shape = aval_of(x).shape
            x = broadcast_in_dim(x, (1, *shape), range(1, len(shape) + 1))
        arrays.append(x)
    return arrays


def batch_by_method(
    primitive: Primitive, described: str, function: str, mapped: MappedAxis, operands: Sequence[Any],
    axes: Sequence[int | None], parameters: dict[str, Any], vectorized: Mapping[str, Any] | None = None,
) -> tuple[list[Any], list[int]]:
    """Return the results of calls of an opaque function for all indices, by its parameter ``vmap_method``.

    described, function: the call, and the public function that takes the method, for messages. vectorized: the
    parameters of one call for all indices that differ from `parameters`.
    """
    method, avals = parameters["vmap_method"], parameters["result_avals"]
    if method is None:
        raise NotImplementedError(
            f"vmap of {described}: give {function} one of {', '.join(map(repr, METHODS))}; got None"
        )
    if method.startswith("sequential"):
        bind = functools.partial(primitive.bind, **parameters)
        results = call_in_turn(bind, operands, axes, unroll=method == "sequential_unrolled")
    else:
        stacked = tuple([a.update(shape=(mapped.size, *a.shape)) for a in avals])
        parameters |= {"result_avals": stacked, **(vectorized or {})}
        results = primitive.bind(*put_axis_first(method, operands, axes, mapped.size), **parameters)
    return results, [0] * len(avals)
