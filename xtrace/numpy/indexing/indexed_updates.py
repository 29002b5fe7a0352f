"""``x.at[index]``: elements read, and copies of an array with elements changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from xtrace._src.algebra.resharding import cast_to_auto, reshard_result
from xtrace._src.algebra.vector_space import broadcast_in_dim, check_broadcast, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import power, true_divide
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.docstrings import write_docstring
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.ops.arrays import gather_scatter, gather_scatter_variants, index_vectors
from xtrace._src.ops.arrays import shape as shapes
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.creation import iota
from xtrace._src.ops.arrays.gather_scatter import Scatter
from xtrace._src.ops.elementwise import elementwise
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.arrays.creation import ones_like, warn_of_lost_part, zeros
from xtrace.numpy.indexing.index_plans import Plan, read_index
from xtrace.numpy.indexing.indexing import Options, get_at, to_position
from xtrace.numpy.operands import broadcast_operand_to, scalar_of


class _Target:
    """The axes of the updates of a plan, and their division into batch dimensions and windows of a scatter.

    axes: the operand's axis for each axis of the updates, None for the index arrays' block. batch: positions in `axes`
    of the block and of axes with a stride; index vectors run over these. windows: positions of the other axes.
    """

    def __init__(self, plan: Plan, rank: int, block: tuple[int, ...]) -> None:
        gathered = plan.gathered or ()
        sliced: list[int | None] = [i for i in range(rank) if i not in gathered]
        self.axes = [*sliced[: plan.block], *[None] * len(block), *sliced[plan.block :]]
        self.strided = [i for i in range(rank) if i not in gathered and plan.strides[i] > 1]
        sizes = iter(block)
        self.shape = tuple([next(sizes) if i is None else -(-plan.sizes[i] // plan.strides[i]) for i in self.axes])
        self.batch = [n for n, i in enumerate(self.axes) if i is None or i in self.strided]
        self.windows = [n for n in range(len(self.axes)) if n not in self.batch]
        self.inserted = sorted([*gathered, *self.strided])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of index vectors."""
        return tuple([self.shape[n] for n in self.batch])

    def find_positions(self, axis: int | None) -> list[int]:
        """Return the positions in `batch_shape` of an axis of the operand, or of the block for None."""
        return [k for k, n in enumerate(self.batch) if self.axes[n] == axis]


def _make_index_vectors(
    shape: tuple[int, ...], operands: Any, plan: Plan, options: Options, target: _Target, block: tuple[int, ...]
) -> tuple[Any, tuple[int, ...]]:
    """Return the index vectors of a scatter, along the last axis, and the operand axes of their entries."""
    avals = [operand_aval(i, 0, function="indexing") for i in operands]
    wide = config.enable_x64.value and any(a.dtype.itemsize == 8 for a in avals)
    dtype = dtypes.int64 if wide else dtypes.int32
    whole = target.batch_shape
    vectors: dict[int, Any] = {}
    for index, aval, axis in zip(operands, avals, plan.gathered or (), strict=True):
        position = to_position(index, shape[axis], options.wrap and dtypes.is_signed(aval.dtype), dtype)
        position = broadcast_operand_to(position, aval.shape, block, function="indexing")
        vectors[axis] = broadcast_in_dim(position, whole, target.find_positions(None))
    for axis, start in enumerate(plan.starts):
        if axis in target.strided:
            count = target.shape[target.axes.index(axis)]
            steps = elementwise.mul(iota(dtype, count), scalar_of(plan.strides[axis], dtype))
            steps = elementwise.add(steps, scalar_of(start, dtype))
            vectors[axis] = broadcast_in_dim(steps, whole, target.find_positions(axis))
        elif axis not in vectors and plan.sizes[axis] != shape[axis]:
            vectors[axis] = broadcast_in_dim(scalar_of(start, dtype), whole, ())
    axes = tuple(sorted(vectors))
    columns = [shapes.expand_dims(vectors[axis], (-1,)) for axis in axes]
    if not columns:
        return broadcast_in_dim(scalar_of(0, dtype), (*whole, 0), ()), axes
    return (columns[0] if len(columns) == 1 else concatenate(columns, len(whole))), axes


@inline_jit
def _scatter(
    x: Array, values: Any, *operands: ArrayLike, plan: Plan, options: Options, dtype: np.dtype[Any], write: Any,
    apply: Any,
) -> Array:
    """Return a copy of `x` with `values` written by the operation `write` where a plan reads, or `apply` applied.

    Both are combined as elements of type `dtype`; the result has the type of `x`.
    """
    given, own = x, operand_aval(x, 0, function="ndarray.at")
    x = shapes.expand_dims(convert_to(x, dtype, own.weak_type and own.dtype == dtype), plan.inserted)
    block = check_broadcast([operand_aval(i, 0, function="indexing").shape for i in operands], function="indexing")
    target = _Target(plan, x.ndim, block)
    indices, axes = _make_index_vectors(x.shape, operands, plan, options, target, block)
    numbers = index_vectors.ScatterDimensionNumbers(tuple(target.windows), tuple(target.inserted), axes)
    # Without index arrays, the index vectors of slices are sorted and unique.
    flags = {
        "indices_are_sorted": options.sorted or not block, "unique_indices": options.unique or not block,
        "mode": options.mode,
    }
    if apply is None:
        shape = list(target.shape)
        for axis in plan.new_axes:
            shape.insert(axis, 1)
        values = convert_to(values, dtype, values.aval.weak_type)
        values = reshape(broadcast_operand_to(values, values.shape, tuple(shape), function="ndarray.at"), target.shape)
    if 0 in target.shape:
        return given
    if apply is not None:
        x = gather_scatter_variants.scatter_apply(x, indices, apply, numbers, update_shape=target.shape, **flags)
    else:
        backward = [target.axes.index(axis) for axis in plan.reversed]
        x = write(x, indices, shapes.rev(values, backward) if backward else values, numbers, **flags)
    return convert_to(reshape(x, own.shape), own.dtype, own.weak_type)


def _update(
    x: Array, index: Array, values: object, write: Scatter | None, indices_are_sorted: bool, unique_indices: bool,
    mode: object, wrap_negative_indices: bool, apply: object = None,
) -> Array:
    """Return a copy of `x` with values, cast to its dtype, written at an index."""
    reading = read_index(x.aval.shape, index, False, True)
    options = Options(
        index_vectors.GatherScatterMode.from_any(mode), None, bool(indices_are_sorted), bool(unique_indices),
        bool(wrap_negative_indices),
    )
    if apply is not None:
        values = zeros((), x.dtype)
    elif not isinstance(values, Array):
        # An integer outside the range of int32 takes the dtype of `x`.
        own = x.dtype if type(values) is int and not -0x80000000 <= values <= 0x7FFFFFFF else None
        values = asarray(values, own)
    dtype = x.dtype if apply is not None else find_common_dtype(x, values)
    return _scatter(
        x, values, *reading.operands, plan=reading.plan, options=options, dtype=dtype, write=write, apply=apply
    )


def find_common_dtype(x: Array, values: Any) -> np.dtype[Any]:
    """Return the common dtype of values and elements of `x`; FutureWarning unless it is the dtype of `x`.

    Raises TypePromotionError if the settings forbid the conversion of `values`.
    """
    dtype: np.dtype[Any] = common_dtype((x, values))[1]
    if dtype != x.dtype:
        warn_user(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={values.dtype.name} to "
            f"dtype={x.dtype.name} with jax_numpy_dtype_promotion={config.numpy_dtype_promotion.value}. Convert the "
            "value with astype; this will be an error",
            FutureWarning,
        )
        warn_of_lost_part(values.dtype, x.dtype)
    return dtype


class IndexedArray:
    """``x.at[index]``: reads with `get`, and returns changed copies of ``x`` with the other methods.

    Out of bounds, reading takes the nearest element and writing does nothing, unless `mode` is another: 'clip', 'fill'
    (for reading), 'drop', 'promise_in_bounds'. Values broadcast to the shape of ``x[index]``
    and are cast to the dtype of ``x``. Where index arrays name an element twice, `add` and the like use every value,
    and `set` one of them. `indices_are_sorted` and `unique_indices` are promises that can save time.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Array) -> None:
        self.array, self.index = array, index

    @array_boundary
    def get(
        self, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        fill_value: ArrayLike | None = None, out_sharding: Any = None, wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the elements at the index.

        Args:
            indices_are_sorted, unique_indices: promises about the index that can save time.
            mode: the result for indices out of bounds: ``"clip"``, the default, gives the nearest element; ``"fill"``
                `fill_value`; ``"promise_in_bounds"`` any element.
            fill_value: a number; None for NaN, the smallest signed or the largest unsigned integer.
            out_sharding: the sharding of the result over explicit mesh axes; None to infer it.
            wrap_negative_indices: whether negative indices count from the end.

        Returns:
            An array of the dtype of the indexed one.

        Raises:
            TypeError: the index holds another object than integers, slices, masks and arrays of integers.
            ValueError: there is no such mode.

        Example:
            >>> jnp.array([1.0, 2.0]).at[5].get(mode="fill", fill_value=0)
            Array(0., dtype=float32)
        """
        sharding = requested_out_sharding(out_sharding, function="ndarray.at.get")
        array = self.array if sharding is None else cast_to_auto(self.array)
        result = get_at(
            array, self.index, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
            fill_value=fill_value, wrap_negative_indices=wrap_negative_indices,
        )
        return result if sharding is None else reshard_result(result, sharding)

    @array_boundary
    def apply(
        self, func: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return a copy of the array with the elements at the index replaced by a function of them.

        Args:
            func: a function of a number of the array's dtype.
            indices_are_sorted, unique_indices: promises about the index that can save time.
            mode: the treatment of indices out of bounds: ``"drop"``, the default, writes nothing, ``"clip"`` writes to
                the nearest element.
            wrap_negative_indices: whether negative indices count from the end.

        Returns:
            An array of the same shape and dtype.

        Raises:
            TypeError: `func` is not a function, or the index is of another type.
            ValueError: there is no such mode.

        Example:
            >>> jnp.array([1.0, 4.0]).at[1].apply(jnp.sqrt)
            Array([1., 2.], dtype=float32)
        """
        return _update(
            self.array, self.index, None, None, indices_are_sorted, unique_indices, mode, wrap_negative_indices, func
        )

    def __repr__(self) -> str:
        return f"IndexedArray({self.array!r}, {self.index!r})"

    set: Any
    add: Any
    subtract: Any
    multiply: Any
    mul: Any
    divide: Any
    power: Any
    min: Any
    max: Any


_INDEX_OPTIONS = {
    "indices_are_sorted, unique_indices": "promises about the index that can save time.",
    "mode": "the treatment of indices out of bounds: ``\"drop\"``, the default, skips them; ``\"clip\"`` clips them.",
    "out_sharding": "the sharding of the result over explicit mesh axes; None to infer it.",
    "wrap_negative_indices": "whether negative indices count from the end.",
}


def _make_writer(name: str, write: Any, contract: str, example: str, combine: Any = None) -> Any:
    """Return the method of `IndexedArray` that writes by `write`; `example`: the elements of its example's result.

    With `combine`, `write` accumulates factors in an array of ones, which `combine` applies to ``x``.
    """

    def method(
        self: IndexedArray, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
        mode: Any = None, out_sharding: object = None, wrap_negative_indices: bool = True,
    ) -> Array:
        sharding = requested_out_sharding(out_sharding, function=f"ndarray.at.{name}")
        array = self.array if sharding is None else cast_to_auto(self.array)
        target = array if combine is None else ones_like(array)
        updated = _update(
            target, self.index, values, write, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )
        return reshard_result(updated if combine is None else combine(array, updated), sharding)

    method.__name__, method.__qualname__ = name, f"IndexedArray.{name}"
    method.__doc__ = write_docstring(
        contract,
        {"values": "an array or a scalar that broadcasts to the indexed elements; it is cast to the dtype."}
        | _INDEX_OPTIONS,
        "An array of the same shape and dtype.",
        {
            "TypeError": "the index or `values` is neither an array nor a scalar.",
            "ValueError": "the values do not broadcast, or there is no such mode.",
        },
        (f"jnp.array([1.0, 2.0]).at[0].{name}(3.0)", f"Array([{example}], dtype=float32)"),
    )
    return array_boundary(method)


for _name, _write, _contract, _result in (
    ("set", gather_scatter.scatter, "Return a copy of the array with other values at the index.", "3., 2."),
    ("add", gather_scatter.scatter_add, "Return a copy of the array with values added at the index.", "4., 2."),
    (
        "subtract", gather_scatter.scatter_sub, "Return a copy of the array with values subtracted at the index.",
        "-2.,  2.",
    ),
    ("multiply", gather_scatter.scatter_mul, "Return a copy of the array multiplied by values at the index.", "3., 2."),
    ("mul", gather_scatter.scatter_mul, "Return a copy of the array multiplied by values at the index.", "3., 2."),
    ("min", gather_scatter.scatter_min, "Return a copy of the array with the smaller numbers at the index.", "1., 2."),
    ("max", gather_scatter.scatter_max, "Return a copy of the array with the larger numbers at the index.", "3., 2."),
):
    setattr(IndexedArray, _name, _make_writer(_name, _write, _contract, _result))
IndexedArray.divide = _make_writer(
    "divide", gather_scatter.scatter_mul, "Return a copy of the array divided by values at the index.",
    "0.33333334, 2.        ", true_divide,
)
IndexedArray.power = _make_writer(
    "power", gather_scatter.scatter_mul, "Return a copy of the array raised to values at the index.", "1., 2.", power
)


class IndexUpdater:
    """``x.at``: ``x.at[index]`` has methods that read elements, or return changed copies of ``x``."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Array) -> IndexedArray:
        return IndexedArray(self.array, index)

    def __setitem__(self, index: int, value: Array) -> None:
        raise TypeError(
            "'x.at' object does not support item assignment. Arrays are immutable. Write x = x.at[idx].set(y), or "
            "x = x.at[idx].add(y) for +="
        )

    def __repr__(self) -> str:
        return f"IndexUpdater({self.array!r})"
