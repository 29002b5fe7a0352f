"""Reductions over axes, and positions of extreme elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.algebra import vector_space
from xtrace._src.algebra.families import mul
from xtrace._src.algebra.kinds import (
    ANY,
    BITS,
    NUMBER,
    ORDERED,
    check_kind,
    kind_names,
)
from xtrace._src.algebra.monoids import (
    AND,
    MAXIMUM,
    MINIMUM,
    OR,
    PRODUCT,
    SUM,
    XOR,
    Reduction,
    canonical_axes,
    lowest,
)
from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import (
    ZERO_DERIVATIVE,
    broadcast_in_dim,
    convert_to,
    operand_aval,
    reshape,
    with_axis,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.callables import check_callable
from xtrace._src.core.jaxprs.ir import DebugInfo, Jaxpr
from xtrace._src.core.primitive import ArrayPrimitive, Derived, Primitive, primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings.sharding_rules import drop, whole
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.trace import Tracer, current_trace
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.ops.elementwise.constants import strong_scalar
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.stage import stage
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.ops.arrays.shape import squeeze
    from xtrace._src.ops.arrays.slicing import pad, slice_in_dim
    from xtrace._src.transforms.batch import MappedAxis, batch
    from xtrace._src.transforms.element_functions import emit_element_function
    from xtrace._src.transforms.jvp import jvp

# An elementwise function of two lists of arrays, all of one shape.
_Combination = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def pad_axis(x: Array, value: object, axis: int, configuration: tuple[int, int, int]) -> Array:
    """Return `x` padded with a scalar along one axis."""
    return pad(x, value, [configuration if i == axis else (0, 0, 0) for i in range(aval_of(x).ndim)])


def known_size(size: Any) -> int:
    """Return a size; NotImplementedError if it is symbolic."""
    if is_symbolic(size):
        raise NotImplementedError(
            "a reduction by a user's function, and the derivatives of products and cumulative extremes, are unrolled; "
            f"they cannot reduce an axis of the symbolic size {size}; write a lax.scan"
        )
    return int(size)


def _reduce_by_halves(
    combine: _Combination, operands: Sequence[Any], initial: Sequence[Any], axes: Sequence[int]
) -> Sequence[Any]:
    """Return the reduction of `operands` over `axes`, combining halves until one element is left.

    The shorter half is padded with `initial`.
    """
    shape = aval_of(operands[0]).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    order, sizes = (*axes, *kept), [shape[i] for i in kept]
    size = known_size(math.prod([shape[i] for i in axes]))
    if not size:
        return [broadcast_in_dim(start, sizes, ()) for start in initial]
    operands = [reshape(x, (size, *sizes), order) for x in operands]
    while size > 1:
        half = (size + 1) // 2
        first = [slice_in_dim(x, 0, half) for x in operands]
        second = [slice_in_dim(x, half, size) for x in operands]
        if size % 2:
            second = [pad_axis(x, start, 0, (0, 1, 0)) for x, start in zip(second, initial, strict=True)]
        operands, size = combine(first, second), half
    return [squeeze(x, (0,)) for x in operands]


def _extreme_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]
) -> tuple[Any, Any]:
    # The tangent is the mean of the tangents of the elements that equal the result.
    (x,), (tangent,) = primals, tangents
    result = primitive.bind_positional((x,), (axes,))
    kept = reshape(result, [1 if i in axes else n for i, n in enumerate(aval_of(x).shape)])
    mask = convert_to(eq(x, kept), aval_of(x).dtype)
    return result, elementwise.div(reduce_sum(mul(tangent, mask), axes), reduce_sum(mask, axes))


def _product_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[int, ...]) -> tuple[Any, Any]:
    one = [strong_scalar(primals[0], 1)]
    results, moved = jvp(lambda x: _reduce_by_halves(lambda a, b: [mul(a[0], b[0])], [x], one, axes), primals, tangents)
    # The product of no elements is constant.
    return results[0], zeros(aval_of(results[0])) if moved[0] is None else moved[0]


reduce_sum = vector_space.reduce_sum


@Reduction.define(PRODUCT, NUMBER, jvp=_product_jvp)
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the product over axes.

    Example:
        >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0,))
        Array([3, 8], dtype=int32)
    """
    ...


@Reduction.define(MAXIMUM, ANY, jvp=Derived(_extreme_jvp))
def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the largest element over axes; NaN if there is one.

    Example:
        >>> lax.reduce_max(jnp.array([[1, 4], [3, 2]]), (0,))
        Array([3, 4], dtype=int32)
    """
    ...


@Reduction.define(MINIMUM, ANY, jvp=Derived(_extreme_jvp))
def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the smallest element over axes; NaN if there is one.

    Example:
        >>> lax.reduce_min(jnp.array([[1, 4], [3, 2]]), (0,))
        Array([1, 2], dtype=int32)
    """
    ...


@Reduction.define(AND, BITS, keeps_weak=False, jvp=ZERO_DERIVATIVE)
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the bits that are set in all elements over axes; of booleans, the conjunction.

    Example:
        >>> lax.reduce_and(jnp.array([7, 6, 12]), (0,))
        Array(4, dtype=int32)
    """
    ...


@Reduction.define(OR, BITS, keeps_weak=False, jvp=ZERO_DERIVATIVE)
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the bits that are set in any element over axes; of booleans, the disjunction.

    Example:
        >>> lax.reduce_or(jnp.array([1, 2, 8]), (0,))
        Array(11, dtype=int32)
    """
    ...


@Reduction.define(XOR, BITS, keeps_weak=False, jvp=ZERO_DERIVATIVE)
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the bits that are set in an odd number of elements over axes.

    Example:
        >>> lax.reduce_xor(jnp.array([1, 3, 8]), (0,))
        Array(10, dtype=int32)
    """
    ...


def to_axis(axis: object, function: str) -> int:
    """Return `axis` as an int; TypeError if it is no integer."""
    try:
        return operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        raise vector_space.axis_error(axis, function=function) from None


def check_axis(name: str, axis: int, operand: ShapedArray) -> None:
    """Raise ValueError if `operand` has no such axis, counted from the front."""
    if not 0 <= axis < operand.ndim:
        raise ValueError(
            f"{name}: axis {axis} is out of bounds for operand {operand.str_short(True)}; "
            f"the axes are 0 to {operand.ndim - 1}, counted from the front"
        )


class ExtremePosition(ArrayPrimitive):
    """The position of the first NaN along one axis, or of the first extreme element if there is none.

    direction: the comparison that prefers its left operand. neutral: the least extreme element of a dtype.
    """

    def __init__(self, function: Callable[..., Any], direction: str, neutral: Callable[[Any], Any]) -> None:
        super().__init__(
            function.__name__, ("axes", "index_dtype"), abstract=self._abstract, emit=self._emit, jvp=ZERO_DERIVATIVE,
            batch=self._batch, operation=self._operation, sharding=drop("axes"),
        )
        self.direction, self.neutral = direction, neutral
        arguments = {
            "operand": f"an array of {kind_names(ORDERED)}.", "axis": "an axis, counted from the front.",
            "index_dtype": "the dtype of the result, an integer one.",
        }
        errors = {
            "TypeError": "`operand` or `index_dtype` is another dtype, or `axis` is no integer.",
            "ValueError": "`axis` does not exist, or has no elements.",
        }
        returns = "An array of dtype `index_dtype` and the shape of `operand` without the axis."
        self.declare(function, arguments, returns, errors)

    def _operation(self, operand: Array, axis: int, index_dtype: Any) -> Array:
        axes, dtype = (to_axis(axis, self.name),), requested_dtype(index_dtype, function=self.name)
        return current_trace.get().process(self, (operand,), (axes, dtype))

    def _abstract(self, operand: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype[Any]) -> ShapedArray:
        check_kind(self.name, (operand,), (ORDERED,))
        (axis,) = axes
        check_axis(self.name, axis, operand)
        if not dtypes.is_integer(index_dtype):
            raise TypeError(f"{self.name}: index_dtype must be an integer type, got {index_dtype.name}")
        if operand.shape[axis] == 0:
            raise ValueError(
                f"{self.name}: axis {axis} of operand {operand.str_short(True)} has no elements and so no extreme; "
                "check the size before the call"
            )
        return ShapedArray(operand.shape[:axis] + operand.shape[axis + 1 :], index_dtype)

    def _emit(self, builder: FunctionBuilder, x: Value, *, axes: tuple[int, ...], index_dtype: np.dtype[Any]) -> Value:
        result, x = builder.results[0], builder.widen(x)
        positions = ShapedArray(x.aval.shape, index_dtype)
        counted = builder.iota(positions, axes[0])
        element, position = ShapedArray((), x.aval.dtype), ShapedArray((), index_dtype)
        start = [builder.constant(self.neutral(element.dtype), element), builder.constant(0, position)]
        inner = builder.region([element, position, element, position])
        a, i, b, j = inner.arguments
        # A NaN is more extreme than all numbers; among equal elements the first position wins.
        wins = inner.compare(self.direction, a, b)
        if dtypes.is_inexact(element.dtype):
            wins = inner.elementwise("or", wins, inner.compare("NE", a, a))
        tied = inner.elementwise("and", inner.compare("EQ", a, b), inner.compare("LT", i, j))
        returned = [inner.select(wins, a, b), inner.select(inner.elementwise("or", wins, tied), i, j)]
        values = result.update(dtype=element.dtype)
        return builder.op_with_regions(
            "stablehlo.reduce", [x, counted, *start], [(inner, returned)], [values, result],
            dimensions=attributes.integers(axes),
        )[1]

    def _batch(
        self, mapped: MappedAxis, operands: Sequence[Any], where: Sequence[int], *, axes: tuple[int, ...],
        index_dtype: np.dtype[Any],
    ) -> tuple[Any, int]:
        (axis,), place = axes, where[0]
        return self.bind_positional(operands, ((axis + (axis >= place),), index_dtype)), place - (axis < place)


@ExtremePosition.define("GT", lowest)
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the position of the first largest element along an axis, or of the first NaN.

    Example:
        >>> lax.argmax(jnp.array([1, 3, 2]), 0, jnp.int32)
        Array(1, dtype=int32)
    """
    ...


@ExtremePosition.define("LT", MINIMUM.neutral)
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the position of the first smallest element along an axis, or of the first NaN.

    Example:
        >>> lax.argmin(jnp.array([1, 3, 2]), 0, jnp.int32)
        Array(0, dtype=int32)
    """
    ...


def add_elements(x: ArrayLike, axes: Sequence[int]) -> Array:
    """Return the sum of `x` over `axes`; floats of 16 bits are accumulated in float32, as in all sums of numpy."""
    aval = aval_of(x)
    if aval.dtype not in (dtypes.float16, dtypes.bfloat16):
        return vector_space.reduce_sum(x, axes)
    total = vector_space.reduce_sum(convert_to(x, dtypes.float32, aval.weak_type), axes)
    return convert_to(total, aval.dtype, aval.weak_type)


def _reduce_abstract(*avals: ShapedArray, dimensions: tuple[int, ...], jaxpr: Jaxpr, **_: object) -> list[ShapedArray]:
    count = len(avals) // 2
    operands, initial = avals[:count], avals[count:]
    if any(x.shape != operands[0].shape for x in operands):
        raise ValueError(f"reduce: operands must have one shape, got {', '.join(str(x.shape) for x in operands)}")
    for position, (x, start) in enumerate(zip(operands, initial, strict=True)):
        if start.shape or start.dtype != x.dtype:
            raise (ValueError if start.shape else TypeError)(
                f"reduce: init_values[{position}] must be a scalar of dtype {x.dtype.name}, got {start.str_short(True)}"
            )
    axes = canonical_axes("reduce", dimensions, operands[0], "dimensions")
    shape = tuple([n for i, n in enumerate(operands[0].shape) if i not in axes])
    return [
        ShapedArray(shape, x.dtype, x.weak_type and start.weak_type) for x, start in zip(operands, initial, strict=True)
    ]


def _reduce_emit(
    builder: FunctionBuilder, *values: Value, dimensions: tuple[int, ...], jaxpr: Jaxpr, **_: object
) -> list[Value]:
    inner = builder.region(jaxpr.in_avals)
    returned = emit_element_function(inner, jaxpr, "reduce")
    # XLA reduces across devices by few functions.
    values = tuple([builder.gather_along(x, dimensions) if x.aval.ndim else x for x in values])
    return builder.op_with_regions(
        "stablehlo.reduce", values, [(inner, returned)], builder.results, dimensions=attributes.integers(dimensions)
    )


def _evaluate_elementwise(jaxpr: Jaxpr, arrays: Sequence[Any]) -> Sequence[Any]:
    """Return the results of `jaxpr`, a function of scalars, on corresponding elements of arrays of one shape."""

    def function(*scalars: Any) -> Sequence[Any]:
        return evaluate(jaxpr, (), scalars)

    def map_axis(inner: Callable[..., Sequence[Any]], size: int) -> Callable[..., Sequence[Any]]:
        def outer(*values: Array) -> Sequence[Any]:
            results, axes = batch(inner, MappedAxis(size), values, [0] * len(values))
            return [with_axis(x, i, size) for x, i in zip(results, axes, strict=True)]

        return outer

    for size in reversed(aval_of(arrays[0]).shape):
        function = map_axis(function, size)
    return function(*arrays)


def _reduce_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, dimensions: tuple[int, ...], jaxpr: Jaxpr, **_: object
) -> tuple[Sequence[Any], Sequence[Any]]:
    count = len(primals) // 2
    initial = primals[count:]
    if any(t is not None for t in tangents[count:]):
        raise NotImplementedError(
            "reduce has no derivative in init_values: they must be neutral elements of the computation, which are "
            "constants. Combine with other values after the reduction"
        )

    def function(*operands: ArrayLike) -> Sequence[Any]:
        return _reduce_by_halves(lambda a, b: _evaluate_elementwise(jaxpr, [*a, *b]), operands, initial, dimensions)

    return jvp(function, primals[:count], tangents[:count])


def _reduce_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, computation: object,
    dimensions: tuple[int, ...], jaxpr: Jaxpr,
) -> tuple[list[Any], list[int]]:
    count = len(operands) // 2
    if any(i is not None for i in axes[count:]):
        raise NotImplementedError(
            "reduce cannot be mapped over init_values: they must be neutral elements of the computation, which are "
            "constants. Combine with other values after the reduction"
        )
    arrays = [mapped.place(x, i) for x, i in zip(operands[:count], axes[:count], strict=True)]
    shifted = tuple([d + 1 for d in dimensions])
    return reduce.bind_positional([*arrays, *operands[count:]], (computation, shifted, jaxpr)), [0] * count


# The reductions that compute the same as these computations, if init_values is their neutral element.
_MONOIDS: dict[str, tuple[Callable[..., Array], Callable[[Any], Any]]] = {
    "add": (reduce_sum, SUM.neutral), "mul": (reduce_prod, PRODUCT.neutral), "max": (reduce_max, MAXIMUM.neutral),
    "min": (reduce_min, MINIMUM.neutral), "and": (reduce_and, AND.neutral), "or": (reduce_or, OR.neutral),
    "xor": (reduce_xor, XOR.neutral),
}


@primitive(
    ("computation", "dimensions", "jaxpr"), abstract=_reduce_abstract, emit=_reduce_emit, jvp=_reduce_jvp,
    batch=_reduce_batch, multiple_results=True, sharding=whole,
)
def reduce(
    operands: ArrayLike, init_values: object, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
    out_sharding: object = None,
) -> Any:
    """Reduce axes by an associative and commutative function of two scalars.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: a scalar, or a tree of scalars, the neutral elements of the function.
        computation: a function from two scalars to one, or from two trees of scalars to one; it closes over no traced
            values.
        dimensions: the distinct axes, counted from the front.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array, or a tree of arrays, of the dtypes of `operands` without the axes.

    Raises:
        TypeError: a dtype is not accepted, or `dimensions` is no sequence of integers.
        ValueError: an axis does not exist, or shapes or structures do not agree.

    Example:
        >>> lax.reduce(jnp.array([1, 2, 3]), 0, lax.add, (0,))
        Array(6, dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(reduce, out_sharding, operands, init_values, computation, dimensions)
    arrays, tree = pytree.tree_flatten(operands)
    initial, initial_tree = pytree.tree_flatten(init_values)
    if not arrays:
        raise TypeError("reduce: operands holds no array; give at least one")
    if tree != initial_tree:
        raise ValueError(f"reduce: operands and init_values must have one structure, got {tree} and {initial_tree}")
    avals = [operand_aval(x, "operands") for x in arrays]
    axes = canonical_axes("reduce", dimensions, avals[0], "dimensions")
    monoid = _MONOIDS.get(computation.name) if isinstance(computation, Primitive) and len(arrays) == 1 else None
    if monoid is not None and is_value(initial[0], monoid[1](avals[0].dtype), avals[0].dtype):
        return monoid[0](arrays[0], axes)
    jaxpr = reducer_jaxpr("reduce", computation, tree, [ShapedArray((), a.dtype) for a in avals])
    return pytree.tree_unflatten(tree, reduce.bind_positional([*arrays, *initial], (computation, axes, jaxpr)))


def reducer_jaxpr(name: str, computation: object, tree: PyTreeDef, scalars: Sequence[ShapedArray]) -> Jaxpr:
    """Return the jaxpr of a function from two trees of `scalars` to one, cached with the function.

    The cache makes it the same object each time, as the cache of compiled programs needs. ValueError if the function
    returns other types, NotImplementedError if it closes over arrays.
    """
    check_callable(computation, function=name)
    return _stage_reducer(computation, name, tree, tuple(scalars), config.enable_x64.value)


@memoize_by_owner
def _stage_reducer(computation: Any, name: str, tree: PyTreeDef, scalars: tuple[ShapedArray, ...], _x64: bool) -> Jaxpr:
    out_tree, count = None, len(scalars)

    def flat(*leaves: ArrayLike) -> list[Any]:
        nonlocal out_tree
        pair = [pytree.tree_unflatten(tree, half) for half in (leaves[:count], leaves[count:])]
        results, out_tree = pytree.tree_flatten(computation(*pair))
        for result in results:
            operand_aval(result, "the result of computation", function=name)
        return results

    info = DebugInfo(name, getattr(computation, "__name__", "computation"), None, None)
    jaxpr, constants = stage(flat, [*scalars, *scalars], info)
    if constants:
        raise NotImplementedError(f"{name}: computation closes over arrays; close over scalars only")
    if out_tree != tree or any(a.shape or a.dtype != s.dtype for a, s in zip(jaxpr.out_avals, scalars, strict=True)):
        raise ValueError(
            f"{name}: computation must return the types of its arguments, {[s.str_short(True) for s in scalars]} in "
            "the "
            f"structure {tree}; it returned {[a.str_short(True) for a in jaxpr.out_avals]} in the structure {out_tree}"
        )
    return jaxpr


def is_value(given: ArrayLike, expected: object, dtype: DTypeLike) -> bool:
    """Return whether a scalar (Python, NumPy or a concrete array) equals the expected element of `dtype`."""
    if isinstance(given, Tracer) or not isinstance(given, (bool, int, float, complex, np.generic, np.ndarray, Array)):
        return False
    if getattr(given, "ndim", 0):
        return False
    with np.errstate(all="ignore"):
        return bool(np.asarray(given).astype(dtype) == np.asarray(expected).astype(dtype))
