"""The identity whose derivative is zero."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import IN_PLACE, ZERO_DERIVATIVE
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.primitive import ArrayPrimitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.sum_rules import linear_in_all
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.stablehlo.builder import FunctionBuilder, Value


def _abstract(x: ShapedArray) -> ShapedArray:
    """Return the operand; its derivative is zero."""
    return x


def _emit(builder: FunctionBuilder, x: Value) -> Value:
    return x


def _transpose(cotangent: Array, operand: Array) -> list[Any]:
    # Under vmap, cond also applies this to tangents of branches that are not selected: their cotangent is zero.
    return [None]


stop_gradient_of_one = ArrayPrimitive(
    "stop_gradient", sharding=same, sums=linear_in_all,
    abstract=_abstract, emit=_emit, jvp=ZERO_DERIVATIVE, transpose=_transpose, batch=IN_PLACE,
)


def stop_gradient(x: ArrayLike) -> Any:
    """Return arrays as constants for differentiation: their derivative is zero.

    Args:
        x: an array, or a pytree of arrays.

    Returns:
        A pytree of the structure of `x`.

    Raises:
        TypeError: a leaf is no array.

    Example:
        >>> xtrace.grad(lambda x: x * lax.stop_gradient(x))(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    if current_trace.get() is base_trace:
        if type(x) is not ConcreteArray:
            for leaf in pytree.tree_leaves(x):
                aval_of(leaf)
        return x
    return pytree.tree_map(_stop_leaf, x)


def _stop_leaf(leaf: Any) -> Array:
    return stop_gradient_of_one.bind_positional((leaf,)) if is_differentiable(aval_of(leaf)) else leaf
