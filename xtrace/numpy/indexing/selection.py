"""Elements selected by conditions and by indices: select, piecewise, choose, compress, take_along_axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    check_broadcast,
    convert_to,
    operand_aval,
    reshape,
)
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.api.operators.operators import truth
from xtrace._src.api.operators.promotion import cast, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.trace import Tracer
from xtrace._src.ops.arrays.concatenation import stack
from xtrace._src.ops.arrays.creation import full
from xtrace._src.ops.arrays.gather_scatter import gather
from xtrace._src.ops.arrays.index_vectors import GatherDimensionNumbers, GatherScatterMode
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.control_flow.cond import switch
from xtrace._src.ops.elementwise import selection
from xtrace._src.ops.elementwise.selection import select_n
from xtrace._src.ops.reductions import reductions
from xtrace.numpy.arrays.conversion import asarray, to_array_operand
from xtrace.numpy.arrays.creation import zeros
from xtrace.numpy.arrays.ranges import arange
from xtrace.numpy.indexing.indexing import getitem, take, to_position
from xtrace.numpy.indexing.nonzero_elements import flatnonzero
from xtrace.numpy.operands import broadcast_operand_to, only_axis, refuse, scalar_of, wrap_indices
from xtrace.numpy.vectorization import vectorize


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Return the elements of the first choice whose condition holds.

    Args:
        condlist: a sequence of arrays of booleans.
        choicelist: a sequence of arrays, one for each condition.
        default: the elements where no condition holds, an array or a scalar.

    Returns:
        An array of the operands' broadcast shape, and the promoted dtype of choices and default.

    Raises:
        TypeError: an operand is neither an array nor a scalar.
        ValueError: the sequences are empty or of different lengths, or the shapes do not broadcast.

    Example:
        >>> x = jnp.array([1, 2, 3])
        >>> jnp.select([x > 2, x > 1], [x, 10 * x])
        Array([ 0, 20,  3], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("select: condlist must be non-empty")
    for i, x in enumerate((*condlist, *choicelist, default)):
        operand_aval(x, i)
    return _select(*condlist, *choicelist, default)


# Up to this many conditions become a chain of selects, which XLA fuses into one loop and runs a hundred times faster.
_MAX_CHAIN = 64


@inline_jit
def _select(*operands: ArrayLike) -> Array:
    count = len(operands) // 2
    conditions, cases = operands[:count], operands[count:]
    avals, dtype, weak = common_dtype(cases)
    shape = check_broadcast([*[operand_aval(x, 0).shape for x in conditions], *[a.shape for a in avals]])
    values = [
        broadcast_operand_to(cast(x, aval, dtype, weak), aval.shape, shape)
        for x, aval in zip(cases, avals, strict=True)
    ]
    masks = [broadcast_operand_to(truth(x), operand_aval(x, 0).shape, shape) for x in conditions]
    if count > _MAX_CHAIN:
        # A chain of thousands of selects would crash XLA's compiler.
        rows = stack([*masks, full(shape, True)])
        return select_n(reductions.argmax(rows, 0, np.int32), *values)
    result = values.pop()
    for mask, value in zip(reversed(masks), reversed(values), strict=True):
        result = select_n(mask, result, value)
    return result


def piecewise(x: object, condlist: Any, funclist: list[Any], *args: object, **kw: Any) -> Array:
    """Evaluate for each element of `x` the function that conditions select.

    Args:
        x: an array or a scalar.
        condlist: a sequence of arrays of booleans of the shape of `x`; the last one that holds decides.
        funclist: functions of one number, or numbers, one for each condition; a further one applies where no condition
            holds, by default 0.
        args, kw: further arguments of the functions.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        ValueError: there are no conditions, or another number of functions.

    Example:
        >>> x = jnp.array([-1.0, 2.0])
        >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: 10 * v])
        Array([ 1., 20.], dtype=float32)
    """
    x = to_array_operand(x)
    conditions, count = list(condlist), len(condlist)
    if not count:
        raise ValueError("piecewise: condlist must not be empty")
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"piecewise: with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(funclist)}"
        )
    chosen = list(funclist) if len(funclist) > count else [*funclist, 0]
    index = _find_last_true(*[asarray(c) for c in conditions], shape=x.shape)

    def branch(function: object) -> Callable[[Any], Any]:
        if callable(function):
            return lambda value: asarray(function(value, *args, **kw)).astype(value.dtype)
        return lambda value: asarray(function).astype(value.dtype)

    branches = [branch(f) for f in (chosen[-1], *chosen[:-1])]
    evaluate: Callable[[Array, Array], Array] = vectorize(lambda place, value: switch(place, branches, value))
    return evaluate(index, x)


@inline_jit
def _find_last_true(*conditions: Array, shape: tuple[int, ...]) -> Array:
    """Return the number, from 1, of the last true condition; 0 if all are false."""
    position = broadcast_in_dim(scalar_of(0, dtypes.int32), shape, ())
    for i, condition in enumerate(conditions):
        mask = broadcast_operand_to(truth(condition), condition.shape, shape)
        position = select_n(mask, position, broadcast_in_dim(scalar_of(i + 1, dtypes.int32), shape, ()))
    return position


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Select for each element of `a` the element of the choice with that number.

    Args:
        a: an array of integers below the number of choices, from 0.
        choices: a sequence of arrays, or an array of them along the first axis.
        out: not supported; leave it at None.
        mode: the treatment of numbers out of range: ``"raise"`` raises ValueError, and needs a concrete `a`;
            ``"wrap"`` takes them modulo the number of choices; ``"clip"`` moves them to the nearest number in range.

    Returns:
        An array of the broadcast shape of `a` and the choices, and the promoted dtype of the choices.

    Raises:
        ConcretizationTypeError: `a` is traced and `mode` is ``"raise"``.
        NotImplementedError: `out` is given.
        ValueError: `a` is not integer or out of range, there is no choice, `mode` has another value, or the
            shapes do not broadcast.

    Example:
        >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), 10])
        Array([ 1, 10,  3], dtype=int32)
    """
    refuse(out=out)
    aval = operand_aval(a, 0)
    if not dtypes.is_integer(aval.dtype):
        raise ValueError(f"choose: a must be an array of integers, got {aval.dtype.name}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode={abbreviate(mode)} not understood. Must be 'raise', 'wrap', or 'clip'")
    cases = list(choices)
    if not cases:
        raise ValueError("choose: choices must not be empty")
    if mode == "raise":
        if isinstance(a, Tracer):
            raise explain.concretization(a, "numpy.choose with mode='raise'; use mode='wrap' or mode='clip'")
        values = np.asarray(a)
        if ((values < 0) | (values >= len(cases))).any():
            raise ValueError(f"choose: invalid entry in choice array: there are {len(cases)} choices")
    for i, x in enumerate(cases):
        operand_aval(x, 1 + i)
    return _choose(a, *cases, mode=mode)


@inline_jit
def _choose(a: ArrayLike, *cases: ArrayLike, mode: str) -> Array:
    avals, dtype, _ = common_dtype(cases)
    own = operand_aval(a, 0).shape
    shape = check_broadcast([own, *[aval.shape for aval in avals]])
    index = convert_to(a, dtypes.int32, False)
    if mode == "wrap":
        index = wrap_indices(index, len(cases))
    elif mode == "clip":
        index = selection.clamp(scalar_of(0, dtypes.int32), index, scalar_of(len(cases) - 1, dtypes.int32))
    values = [broadcast_operand_to(cast(x, v, dtype, False), v.shape, shape) for x, v in zip(cases, avals, strict=True)]
    return values[0] if len(values) == 1 else select_n(broadcast_operand_to(index, own, shape), *values)


def fromfunction(
    function: Callable[..., Array], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: object
) -> Array:
    """Return the array whose elements are a function of their indices.

    Args:
        function: a function of as many numbers as there are axes; it is traced once and mapped by `vmap`.
        shape: the lengths of the axes.
        dtype: the dtype of the indices.
        kwargs: further arguments of the function.

    Returns:
        An array of `shape`, with further axes if the function returns arrays.

    Raises:
        TypeError: `shape` does not consist of integers.

    Example:
        >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int)
        Array([[ 0,  1],
               [10, 11]], dtype=int32)
    """
    sizes = canonical_shape(shape)
    kind = requested_dtype(dtype)

    def of_indices(*indices: ArrayLike) -> Array:
        return function(*indices, **kwargs)

    for i in reversed(range(len(sizes))):
        of_indices = vmap(of_indices, in_axes=tuple([0 if i == j else None for j in range(len(sizes))]))
    return of_indices(*[arange(n, dtype=kind) for n in sizes])


def compress(
    condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
    fill_value: ArrayLike = 0, out: None = None
) -> Array:
    """Return the slices of `a` along `axis` where a condition holds.

    Args:
        condition: a vector of booleans, or of numbers, True where they are nonzero.
        a: an array.
        axis: the axis to compress; None for the flattened array.
        size: the number of slices, required under `jit`: further ones are dropped, missing ones filled.
        fill_value: the number that fills missing slices.
        out: not supported; leave it at None.

    Returns:
        An array of the dtype of `a`.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: an operand is not an array.
        ValueError: `condition` is not a vector, or holds beyond the end of `a`.

    Example:
        >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
        Array([1, 3], dtype=int32)
    """
    refuse(out=out)
    return _compress(condition, a, axis, size, fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """Return the elements of `arr` where a condition is nonzero, both flattened.

    Args:
        condition: an array of booleans or numbers.
        arr: an array of the same size.
        size: the number of elements, required under `jit`: further ones are dropped, missing ones filled.
        fill_value: the number that fills missing elements.

    Returns:
        A vector of the dtype of `arr`.

    Raises:
        TypeError: an operand is not an array.
        ValueError: `condition` holds beyond the end of `arr`.

    Example:
        >>> jnp.extract(jnp.array([[True], [True]]), jnp.array([[5], [6]]))
        Array([5, 6], dtype=int32)
    """
    condition, arr = to_array_operand(condition), to_array_operand(arr, 1)
    return _compress(reshape(condition, (condition.size,)), arr, None, size, fill_value)


def _compress(condition: Any, a: Any, axis: Any, size: Any, fill: Any) -> Array:
    condition, a = to_array_operand(condition), to_array_operand(a, 1)
    if condition.ndim != 1:
        raise ValueError(f"{called_function()}: condition must be a 1D array, got shape {condition.shape}")
    if axis is None:
        a, axis = reshape(a, (a.size,)), 0
    along = canonical_axis(only_axis(axis), a.ndim)
    length = a.shape[along]
    if condition.size > length and size is None:
        beyond = getitem(condition, slice(length, None))
        if not isinstance(condition, Tracer) and np.asarray(beyond).any():
            raise ValueError(
                f"{called_function()}: condition contains entries that are out of bounds: it has {condition.size} "
                f"elements for an axis of size {length}"
            )
    condition = getitem(condition, slice(0, length))
    if size is not None and not 0 <= size <= length:
        raise ValueError(
            f"{called_function()}: size must not be negative nor greater than the size of the array axis; got "
            f"size={size} for {length} elements"
        )
    places = flatnonzero(condition, size=size, fill_value=length)
    if not places.size:
        empty = zeros((*a.shape[:along], 0, *a.shape[along + 1 :]), a.dtype)
        return convert_to(empty, a.dtype, a.weak_type and size is None)
    elements = take(a, places, along, mode="fill", fill_value=fill)
    return convert_to(elements, a.dtype, a.weak_type and size is None)


@inline_jit(static=("axis", "mode", "fill_value", "wrap_negative_indices"), public=True)
def take_along_axis(
    arr: Any, indices: Any, axis: int | None = -1, mode: Any = None, fill_value: ArrayLike | None = None, *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Return the elements of `arr` at `indices` along an axis; along the other axes both broadcast.

    Args:
        arr: an array.
        indices: an array of integers of the rank of `arr`. Negative ones count from the end.
        axis: the axis to index; None for the flattened array.
        mode: the result for an index out of bounds: ``"fill"``, the default, gives `fill_value`; ``"clip"`` the
            nearest element; ``"promise_in_bounds"`` any element.
        fill_value: a number; None for NaN, the smallest signed or the largest unsigned integer.
        wrap_negative_indices: whether negative indices count from the end; None for all modes but a promise, and for
            that too where ``xtrace_jax_version`` is 0.12.

    Returns:
        An array of the broadcast shape and the dtype of `arr`.

    Raises:
        TypeError: `indices` has no integers.
        ValueError: the ranks differ, the other axes do not broadcast, or `arr` has no such axis.

    Example:
        >>> jnp.take_along_axis(jnp.array([[3, 1, 2]]), jnp.array([[1, 2, 0]]), axis=1)
        Array([[1, 2, 3]], dtype=int32)
    """
    aval = operand_aval(indices, 1)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"take_along_axis indices must be of integer type, got {aval.dtype.name}")
    arr = to_array_operand(arr)
    if axis is None:
        arr, axis = reshape(arr, (arr.size,)), 0
    if aval.ndim != arr.ndim:
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; {aval.ndim} vs. {arr.ndim}, "
            f"of shapes {aval.shape} and {arr.shape}"
        )
    along = canonical_axis(axis, arr.ndim)
    mode_of_gather = GatherScatterMode.FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode)
    if mode_of_gather is GatherScatterMode.ONE_HOT:
        mode_of_gather, fill_value = GatherScatterMode.FILL_OR_DROP, 0
    fill = None if fill_value is None else np.asarray(fill_value).item()
    wrap = wrap_negative_indices
    if wrap is None:
        wrap = is_newer() or mode_of_gather is not GatherScatterMode.PROMISE_IN_BOUNDS
    return _take_along(arr, indices, axis=along, mode=mode_of_gather, fill=fill, wrap=wrap)


@inline_jit
def _take_along(arr: Any, indices: Any, *, axis: int, mode: GatherScatterMode, fill: Any, wrap: bool) -> Array:
    shape, own = arr.shape, indices.shape
    whole = check_broadcast([tuple([1 if i == axis else n for i, n in enumerate(x)]) for x in (shape, own)])
    whole = tuple([own[i] if i == axis else n for i, n in enumerate(whole)])
    if 0 in whole or not shape[axis]:
        return zeros(whole, arr.dtype)
    # Axes of size 1 of the indices are windows, axes of size 1 of the array are dropped, others are batch
    # dimensions.
    kept = [i for i in range(len(own)) if i == axis or own[i] != 1]
    dropped = [i for i in kept if i != axis and shape[i] == 1]
    left = [i for i in range(len(shape)) if i not in dropped]
    together = [i for i in kept if i != axis and i not in dropped]
    aval = operand_aval(indices, 0)
    wide = config.enable_x64.value and aval.dtype.itemsize == 8
    places = to_position(
        indices, shape[axis], wrap and dtypes.is_signed(aval.dtype), dtypes.int64 if wide else dtypes.int32
    )
    numbers = GatherDimensionNumbers(
        offset_dims=tuple([i for i in range(len(shape)) if i not in kept]), collapsed_slice_dims=(left.index(axis),),
        start_index_map=(left.index(axis),), operand_batching_dims=tuple([left.index(i) for i in together]),
        start_indices_batching_dims=tuple([kept.index(i) for i in together]),
    )
    return gather(
        squeeze(arr, dropped) if dropped else arr, reshape(places, [*[own[i] for i in kept], 1]), numbers,
        [1 if i in kept else shape[i] for i in left], mode=mode, fill_value=fill,
    )
