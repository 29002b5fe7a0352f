"""Convolutions, and the gathering of patches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.families import BILINEAR
from xtrace._src.algebra.kinds import check_same_dtype
from xtrace._src.algebra.resharding import compute_resharded, with_out_sharding
from xtrace._src.algebra.vector_space import (
    broadcast_in_dim,
    convert_to,
    move_axis,
    operand_aval,
    reshape,
    transpose,
    zeros,
)
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.primitive import primitive
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings import sharding_rules
from xtrace._src.core.shardings.sum_rules import nonlinear
from xtrace._src.core.sizes import has_symbolic, is_known_to_exceed
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.arrays.slicing import write_cropped
from xtrace._src.ops.contractions.contraction import Precision, canonical_precision, dot_general, move_axes
from xtrace._src.ops.contractions.convolution_shapes import (
    ConvDimensionNumbers,
    Ints,
    Pads,
    conv_dimension_numbers,
    conv_shape_tuple,
    dilated_sizes,
    padtype_to_pads,
    reorder_sizes,
    transposed_pads,
)
from xtrace._src.ops.elementwise.comparisons import eq
from xtrace._src.stablehlo import attributes, symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis, remove_axis


def _explicit_pads(name: str, padding: Any) -> Pads:
    try:
        return tuple([(low, high) for low, high in [integer_tuple("padding", pair, function=name) for pair in padding]])
    except (TypeError, ValueError):
        raise ValueError(
            f"padding argument to {name} should be a string or a sequence of (low, high) pairs, got "
            f"{abbreviate(padding)}"
        ) from None


def _check_groups(lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, groups: int, batches: int) -> None:
    name = "conv_general_dilated"
    for argument, count in (("feature_group_count", groups), ("batch_group_count", batches)):
        if count <= 0:
            raise ValueError(f"{name} {argument} must be a positive integer, got {count}.")
    if batches > 1 and groups > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batches} and feature_group_count={groups}"
        )
    features, wanted = lhs.shape[numbers.lhs_spec[1]], rhs.shape[numbers.rhs_spec[1]]
    batch, out = lhs.shape[numbers.lhs_spec[0]], rhs.shape[numbers.rhs_spec[0]]
    if features % groups:
        raise ValueError(
            f"{name} feature_group_count must divide lhs feature dimension size, but {groups} does not divide "
            f"{features}."
        )
    if features // groups != wanted:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs input feature "
            f"dimension size, but {features} // {groups} != {wanted}."
        )
    if batch % batches:
        raise ValueError(
            f"{name} batch_group_count must divide lhs batch dimension size, but {batches} does not divide {batch}."
        )
    for argument, count in (("feature_group_count", groups), ("batch_group_count", batches)):
        if out % count:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of {argument}, but {out} is not a "
                f"multiple of {count}."
            )


def _check_preferred(dtype: np.dtype[Any], preferred: np.dtype[Any]) -> None:
    if dtypes.is_boolean(dtype) or dtype == preferred:
        return
    kinds = [(dtypes.is_integer(d), dtypes.is_floating(d), dtypes.is_complex(d)) for d in (dtype, preferred)]
    if kinds[0] != kinds[1] and not (kinds[0][0] and kinds[1][1]):
        raise TypeError(
            f"conv_general_dilated: operands of {dtype.name} cannot give preferred_element_type {preferred.name}; the "
            "compatible combinations are (integral, integral), (integral, floating), (floating, floating), "
            "(complex, complex)."
        )
    if kinds[1][0] and dtypes.is_signed(dtype) and not dtypes.is_signed(preferred):
        raise TypeError(
            f"conv_general_dilated: preferred_element_type {preferred.name} must have the same signedness as the "
            f"operands' {dtype.name}."
        )
    if preferred.itemsize < dtype.itemsize:
        raise TypeError(
            f"conv_general_dilated: preferred_element_type {preferred.name} must not be narrower than the operands' "
            f"{dtype.name}."
        )


def _check_steps(name: str, rank: int, **steps: Ints) -> None:
    """Raise an error unless each of `steps`, strides or dilations, has `rank` entries, all positive."""
    for argument, values in steps.items():
        if len(values) != rank:
            raise ValueError(
                f"{name} window and {argument} must have the same number of dimensions, but got {rank} and "
                f"{len(values)}"
            )
        if any(n < 1 for n in values):
            kind = ValueError if argument == "window_strides" else TypeError
            raise kind(f"{name}: all {argument} must be positive, got {values}.")


def _conv_abstract(
    lhs: ShapedArray, rhs: ShapedArray, *, window_strides: Ints, padding: Pads, lhs_dilation: Ints,
    rhs_dilation: Ints, dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
    preferred_element_type: np.dtype[Any] | None, **_: object,
) -> ShapedArray:
    name = "conv_general_dilated"
    check_same_dtype(name, (lhs, rhs))
    if isinstance(lhs.dtype, dtypes.ExtendedDType):
        raise TypeError(f"{name}: lhs and rhs must have a numeric dtype, got {lhs.dtype.name}")
    if lhs.ndim != rhs.ndim:
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {lhs.ndim} and {rhs.ndim}.")
    for field, spec in zip(dimension_numbers._fields, dimension_numbers, strict=True):
        if sorted(spec) != list(range(lhs.ndim)) or lhs.ndim < 2:
            raise TypeError(
                f"{name}: dimension_numbers.{field} must name each axis once, two of them not spatial; got {spec} for "
                f"operands of shapes {lhs.shape} and {rhs.shape}"
            )
    _check_groups(lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
    space = [lhs.shape[i] for i in dimension_numbers.lhs_spec[2:]]
    window = [rhs.shape[i] for i in dimension_numbers.rhs_spec[2:]]
    if any(n == 0 for n in window):
        raise ValueError(f"{name}: the window, the spatial axes of rhs, must have no size 0, got {tuple(window)}")
    _check_steps(
        name, len(space), window_strides=window_strides, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation
    )
    if preferred_element_type is not None:
        _check_preferred(lhs.dtype, preferred_element_type)
    ordered = [lhs.shape[dimension_numbers.lhs_spec[0]], 0, *dilated_sizes(space, lhs_dilation)]
    kernel = [rhs.shape[dimension_numbers.rhs_spec[0]], 0, *dilated_sizes(window, rhs_dilation)]
    shape = conv_shape_tuple(ordered, kernel, window_strides, padding, batch_group_count)
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return ShapedArray(reorder_sizes(dimension_numbers.out_spec, shape), dtype, lhs.weak_type and rhs.weak_type)


def _layout(spec: Ints, letters: str) -> str:
    names = [*list(letters), *map(str, range(len(spec) - 2))]
    return f"[{', '.join([names[spec.index(i)] for i in range(len(spec))])}]"


def _conv_emit(
    builder: FunctionBuilder, lhs: Value, rhs: Value, *, window_strides: Ints, padding: Pads, lhs_dilation: Ints,
    rhs_dilation: Ints, dimension_numbers: ConvDimensionNumbers, feature_group_count: int, batch_group_count: int,
    precision: object, **_: object,
) -> Value:
    result = builder.results[0]
    if not result.size:
        return builder.broadcast_operand(builder.constant(0, result.update(shape=())), result.shape)
    spatial = dimension_numbers.lhs_spec[2:]
    configuration = [(0, 0, 0)] * lhs.aval.ndim
    for axis, (low, high), dilation in zip(spatial, padding, lhs_dilation, strict=True):
        configuration[axis] = (low, high, dilation - 1)
    # XLA handles negative padding at the end, common in gradients, without a copy, unless it removes a whole axis.
    sizes = [lhs.aval.shape[axis] for axis in spatial]
    if not any(map(has_symbolic, padding)) and any(
        low < 0 or is_known_to_exceed(1 - high, n) for n, (low, high) in zip(sizes, padding, strict=True)
    ):
        lhs, configuration = write_cropped(builder, lhs, configuration)
        padding = tuple([configuration[axis][:2] for axis in spatial])
    layouts = [_layout(s, letters) for s, letters in zip(dimension_numbers, ("bf", "oi", "bf"), strict=True)]
    windows = [
        f"stride = {attributes.list_text(window_strides)}", f"pad = [{', '.join(map(attributes.list_text, padding))}]",
        f"lhs_dilate = {attributes.list_text(lhs_dilation)}", f"rhs_dilate = {attributes.list_text(rhs_dilation)}",
    ]
    pair = precision if isinstance(precision, tuple) else (Precision.DEFAULT,) * 2
    precisions = ", ".join([f"#stablehlo<precision {p.name}>" for p in pair])
    tail = (
        f"dim_numbers = {layouts[0]}x{layouts[1]}->{layouts[2]}, window = {{{', '.join(windows)}}} "
        f"{{batch_group_count = {batch_group_count} : i64, feature_group_count = {feature_group_count} : i64, "
        f"precision_config = [{precisions}]}}"
    )
    generic = ", ".join([
        f"window_strides = {attributes.integers(window_strides)}",
        f"lhs_dilation = {attributes.integers(lhs_dilation)}",
        f"rhs_dilation = {attributes.integers(rhs_dilation)}",
        f"dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>",
        f"batch_group_count = {batch_group_count} : i64", f"feature_group_count = {feature_group_count} : i64",
        f"precision_config = [{precisions}]",
    ])

    def convolution(x: Value, y: Value, aval: ShapedArray) -> Value:
        types = f"({x.aval.mlir_type}, {y.aval.mlir_type}) -> {aval.mlir_type}"
        # XLA adds replicas of an operand as if they were shards: along window axes, and contracted axes of groups.
        contracted = slice(1 if feature_group_count * batch_group_count > 1 else 2, None)
        x = builder.gather_along(x, dimension_numbers.lhs_spec[contracted], partial=True)
        y = builder.gather_along(y, dimension_numbers.rhs_spec[contracted], partial=True)
        if any(map(has_symbolic, padding)):
            return symbolic_sizes.write_convolution(builder, x, y, aval, padding, generic)
        product = builder.line(f"stablehlo.convolution({x.name}, {y.name}) {tail} : {types}", aval)
        return builder.gather_along(product, dimension_numbers.out_spec[2:], partial=True)

    if not dtypes.is_complex(lhs.aval.dtype) or builder.platform == "tpu":
        return convolution(lhs, rhs, result)
    # (a + ib)(c + id) from three products: (a + b)c, a(d - c) and b(c + d).
    part = result.update(dtype=dtypes.real_part_dtype(result.dtype))
    op = builder.elementwise
    (a, b), (c, d) = builder.real_and_imaginary(lhs), builder.real_and_imaginary(rhs)
    first = convolution(op("add", a, b), c, part)
    second = convolution(a, op("subtract", d, c), part)
    third = convolution(b, op("add", c, d), part)
    real, imaginary = op("subtract", first, third), op("add", first, second)
    complex_result = result.update(dtype=dtypes.complex128 if part.dtype == dtypes.float64 else dtypes.complex64)
    return builder.convert(builder.complex(real, imaginary, complex_result), result.dtype)


# Axes split into (groups, rest) and merged, for the rules of grouped convolutions

def _split(x: Array, axis: int, groups: int) -> Array:
    shape = aval_of(x).shape
    return reshape.bind_positional(
        (x,), ((*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]), None, None)
    )


def _merge(x: Array, source: int, destination: int) -> Array:
    """Merge axis `source` into another one, as its outer part; `destination` is counted without `source`."""
    x = move_axis(x, source, destination)
    shape = aval_of(x).shape
    merged = (*shape[:destination], shape[destination] * shape[destination + 1], *shape[destination + 2 :])
    return reshape.bind_positional((x,), (merged, None, None))


def _move_groups(x: Array, source: int, destination: int, groups: int) -> Array:
    """Make the groups of one axis the outer part of another."""
    if groups == 1:
        return x
    return _merge(_split(x, source, groups), source, destination)


def _swap_first_two(spec: Ints) -> Ints:
    return (spec[1], spec[0], *spec[2:])


def _conv_transpose(
    cotangent: Array, lhs: Array | UndefinedPrimal, rhs: Array, *, window_strides: Ints, padding: Pads,
    lhs_dilation: Ints, rhs_dilation: Ints, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
    batch_group_count: int, precision: object, preferred_element_type: object, out_sharding: object,
) -> list[Any]:
    left = type(lhs) is UndefinedPrimal
    wanted, known = (lhs.aval, rhs) if left else (rhs.aval, lhs)
    if not aval_of(cotangent).size or not wanted.size:
        return [zeros(wanted), None] if left else [None, zeros(wanted)]
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    shapes = aval_of(lhs).shape, aval_of(rhs).shape, aval_of(cotangent).shape
    space, window, positions = [
        [shape[i] for i in spec[2:]] for shape, spec in zip(shapes, dimension_numbers, strict=True)
    ]
    # For each axis: the extents of the dilated lhs, of the dilated kernel and of the window positions, and the padding.
    extents = list(zip(
        dilated_sizes(space, lhs_dilation), dilated_sizes(window, rhs_dilation),
        dilated_sizes(positions, window_strides), padding, strict=True,
    ))
    known = convert_to(known, aval_of(cotangent).dtype)
    pads: list[tuple[int, int]] = []

    def convolve(x: Array, y: Array) -> Array:
        return conv_general_dilated.bind_positional((x, y), parameters)

    if left:
        # The cotangent, dilated by the strides, is convolved with the reversed kernel, its feature axes swapped.
        for own, kernel, reach, (low, _) in extents:
            before = kernel - 1 - low
            pads.append((before, own + kernel - 1 - reach - before))
        groups = max(feature_group_count, batch_group_count)
        flipped = rev(_move_groups(known, rhs_spec[0], rhs_spec[1], groups), rhs_spec[2:])
        numbers = ConvDimensionNumbers(out_spec, _swap_first_two(rhs_spec), lhs_spec)
        parameters = (
            lhs_dilation, tuple(pads), window_strides, rhs_dilation, numbers, groups, 1, precision,
            preferred_element_type, None,
        )
        of_operand = compute_resharded(wanted, convolve, cotangent, flipped)
        of_operand = _move_groups(of_operand, lhs_spec[1], lhs_spec[0], batch_group_count)
        return [convert_to(of_operand, wanted.dtype, wanted.weak_type), None]
    # The lhs is convolved with the cotangent as kernel and summed over the batch instead of the features.
    for own, kernel, reach, (low, _) in extents:
        pads.append((low, reach + kernel - 1 - own - low))
    numbers = ConvDimensionNumbers(_swap_first_two(lhs_spec), _swap_first_two(out_spec), _swap_first_two(rhs_spec))
    parameters = (
        rhs_dilation, tuple(pads), lhs_dilation, window_strides, numbers, batch_group_count, feature_group_count,
        precision, preferred_element_type, None,
    )
    of_operand = compute_resharded(wanted, convolve, known, cotangent)
    return [None, convert_to(of_operand, wanted.dtype, wanted.weak_type)]


def _conv_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, **others: object,
) -> tuple[Any, int]:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    (lhs, rhs), (left, right), size = operands, axes, mapped.size
    groups = max(feature_group_count, batch_group_count)
    window_strides, padding, lhs_dilation, rhs_dilation, *rest = others.values()

    def convolve(
        x: ArrayLike, y: ArrayLike, features: int = feature_group_count, batches: int = batch_group_count
    ) -> Array:
        parameters = (window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, features, batches, *rest)
        return conv_general_dilated.bind_positional((x, y), parameters)

    if not size:
        plain = [a if i is None else remove_axis(a, i) for a, i in zip(map(aval_of, operands), axes, strict=True)]
        aval = conv_general_dilated.abstract(
            *plain, dimension_numbers=dimension_numbers, feature_group_count=feature_group_count,
            batch_group_count=batch_group_count, **others,
        )
        return zeros(aval.update(shape=(0, *aval.shape))), 0
    if left is not None and right is not None:
        # The mapped axis multiplies the number of batch groups if there are any, else the number of feature groups.
        batched = batch_group_count > 1
        counts = (1, size * groups) if batched else (size * groups, 1)
        place = lhs_spec[0] if batched else lhs_spec[1]
        product = convolve(_merge(lhs, left, place), _merge(rhs, right, rhs_spec[0]), *counts)
        return _split(product, out_spec[1], size), out_spec[1]
    if left is not None:
        batch = lhs_spec[0]
        if batch_group_count == 1:
            product = convolve(_merge(lhs, left, batch), rhs)
        else:
            # Batch groups must be the outermost part of the batch axis, so the mapped axis goes inside of them.
            lhs = _split(move_axis(lhs, left, 0), batch + 1, batch_group_count)
            lhs = _merge(lhs, 0, batch + 1)
            product = convolve(_merge(lhs, batch, batch), rhs)
        return _split(product, out_spec[0], size), out_spec[0]
    assert right is not None
    out, features = rhs_spec[0], out_spec[1]
    if groups == 1:
        return _split(convolve(lhs, _merge(rhs, right, out)), features, size), features
    rhs = _merge(_split(move_axis(rhs, right, 0), out + 1, groups), 0, out + 1)
    product = _split(_split(convolve(lhs, _merge(rhs, out, out)), features, groups), features + 1, size)
    return _merge(product, features, features + 1), features


@primitive(
    (
        "window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers", "feature_group_count",
        "batch_group_count", "precision", "preferred_element_type", "out_sharding",
    ),
    sharding=sharding_rules.convolve, sums=nonlinear,
    abstract=_conv_abstract, emit=_conv_emit, jvp=BILINEAR, transpose=_conv_transpose,
    batch=_conv_batch,
)
def conv_general_dilated(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: ShapeLike, padding: object, lhs_dilation: ShapeLike | None = None,
    rhs_dilation: ShapeLike | None = None, dimension_numbers: object = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: object = None, preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Convolve an array with a kernel: sum their products over each window's spatial axes and input features.

    The kernel is not reversed, as in a correlation.

    Args:
        lhs: an array with a batch axis, a feature axis and spatial axes.
        rhs: a kernel of the same dtype, with axes of output features, input features and spatial axes.
        window_strides: for each spatial axis the step from window to window.
        padding: "SAME", "SAME_LOWER", "VALID", or for each spatial axis (low, high), the numbers of zeros to add;
            negative numbers remove elements.
        lhs_dilation: for each spatial axis the dilation of `lhs`; None for 1.
        rhs_dilation: for each spatial axis the dilation of the kernel; None for 1.
        dimension_numbers: the order of axes, as for `conv_dimension_numbers`.
        feature_group_count: the number of groups of features, each with its own kernels.
        batch_group_count: the number of groups of the batch, each with its own kernels.
        precision: a `Precision`, a name, a pair of these, or None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the operands' dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array with axes in the order of `dimension_numbers`.

    Raises:
        TypeError: the dtypes differ, or an argument has another form.
        ValueError: the shapes, strides, dilations or counts do not agree.
        RuntimeError: `padding` is an unknown name.

    Example:
        >>> lax.conv_general_dilated(jnp.array([[[1.0, 2.0, 4.0]]]), jnp.array([[[-1.0, 1.0]]]), (1,), "VALID")
        Array([[[1., 2.]]], dtype=float32)
    """
    name = "conv_general_dilated"
    if out_sharding is not None:
        return with_out_sharding(
            conv_general_dilated, out_sharding, lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
            dimension_numbers, feature_group_count, batch_group_count, precision, preferred_element_type,
        )
    left, right = operand_aval(lhs, "lhs"), operand_aval(rhs, "rhs")
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    ones = (1,) * (left.ndim - 2)
    strides = integer_tuple("window_strides", window_strides)
    lhs_dilation = ones if lhs_dilation is None else integer_tuple("lhs_dilation", lhs_dilation)
    rhs_dilation = ones if rhs_dilation is None else integer_tuple("rhs_dilation", rhs_dilation)
    if isinstance(padding, str):
        if lhs_dilation != ones:
            raise ValueError(
                f"{name}: padding {abbreviate(padding)} is defined for lhs_dilation 1 only: give (low, high) "
                "pairs, or use conv_transpose."
            )
        window = [right.shape[i] for i in numbers.rhs_spec[2:]]
        _check_steps(name, len(window), window_strides=strides, rhs_dilation=rhs_dilation)
        space = [left.shape[i] for i in numbers.lhs_spec[2:]]
        pads = tuple(padtype_to_pads(space, dilated_sizes(window, rhs_dilation), strides, padding))
    else:
        pads = _explicit_pads(name, padding)
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type)
    parameters = (
        strides, pads, lhs_dilation, rhs_dilation, numbers, feature_group_count, batch_group_count,
        canonical_precision(precision), preferred_element_type, None,
    )
    return conv_general_dilated.bind_positional((lhs, rhs), parameters)


def conv(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: ShapeLike, padding: str, precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Compute a convolution with the default order of axes.

    Args:
        lhs: an array with axes batch, feature and spatial.
        rhs: a kernel of the same dtype with axes output feature, input feature and spatial.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"``.
        precision: a `Precision`, its name, a pair, or None.
        preferred_element_type: the dtype of sums and result; None for the operands' dtype.

    Returns:
        An array with axes batch, feature and spatial.

    Raises:
        TypeError: the dtypes or the features do not agree.
        ValueError: the ranks or the number of strides do not agree.

    Example:
        >>> lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID")
        Array([[[2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: ShapeLike, padding: Any, lhs_dilation: ShapeLike, rhs_dilation: Any,
    precision: Any = None, preferred_element_type: Any = None,
) -> Array:
    """Compute a convolution with the default order of axes, any padding, and dilations.

    Args:
        lhs, rhs: an array and a kernel, as in `conv`.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or pairs (low, high).
        lhs_dilation, rhs_dilation: the dilations of `lhs` and of the kernel; None for 1.
        precision: a `Precision`, its name, a pair, or None.
        preferred_element_type: the dtype of sums and result; None for the operands' dtype.

    Returns:
        An array with axes batch, feature and spatial.

    Raises:
        TypeError: the dtypes or the features do not agree.
        ValueError: the ranks or lengths do not agree.

    Example:
        >>> lax.conv_with_general_padding(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), [(1, 0)], (1,), (1,))
        Array([[[1., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )


# The default dimension numbers of conv_transpose by rank, with features last.
_TRANSPOSED_NUMBERS = {
    2: ("NC", "IO", "NC"), 3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv_transpose(
    lhs: ArrayLike, rhs: ArrayLike, strides: ShapeLike, padding: object, rhs_dilation: object = None,
    dimension_numbers: object = None, transpose_kernel: bool = False, precision: object = None,
    preferred_element_type: Any = None, use_consistent_padding: bool = False,
) -> Array:
    """Compute a transposed convolution: `lhs` is dilated by the strides and convolved with the kernel.

    Args:
        lhs, rhs: arrays of one dtype.
        strides: the dilations of `lhs`, the strides of the convolution to transpose.
        padding: ``"SAME"``, ``"VALID"``, or pairs (low, high) for the dilated `lhs`.
        rhs_dilation: the dilations of the kernel; None for 1.
        dimension_numbers: the order of axes; None for features last, with up to three spatial axes.
        transpose_kernel: whether to reverse the kernel and exchange its feature axes, as the exact gradient does.
        precision: a `Precision`, its name, a pair, or None.
        preferred_element_type: the dtype of sums and result; None for the operands' dtype.
        use_consistent_padding: whether explicit pads belong to the convolution to transpose.

    Returns:
        An array.

    Raises:
        TypeError: the dtypes or features do not agree.
        ValueError: the padding or the rank is not supported.

    Example:
        >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "VALID")[0, :, 0]
        Array([1., 1., 1., 1.], dtype=float32)
    """
    name = "conv_transpose"
    left, right = operand_aval(lhs, "lhs"), operand_aval(rhs, "rhs")
    if left.ndim != right.ndim or left.ndim < 2:
        raise ValueError(
            f"{name}: lhs and rhs must have the same rank, at least 2; got shapes {left.shape} and {right.shape}"
        )
    if dimension_numbers is None:
        dimension_numbers = _TRANSPOSED_NUMBERS.get(left.ndim)
        if dimension_numbers is None:
            raise ValueError(f"{name}: give dimension_numbers: there is no default for operands of rank {left.ndim}")
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    window = [right.shape[i] for i in numbers.rhs_spec[2:]]
    ones = (1,) * len(window)
    strides = integer_tuple("strides", strides)
    dilation = ones if rhs_dilation is None else integer_tuple("rhs_dilation", rhs_dilation)
    for argument, values in (("strides", strides), ("rhs_dilation", dilation)):
        if len(values) != len(window):
            raise ValueError(f"{name}: {argument} must have one entry for each of {len(window)} axes, got {values}")
    sizes = dilated_sizes(window, dilation)
    if isinstance(padding, str):
        pads = tuple([transposed_pads(n, s, padding) for n, s in zip(sizes, strides, strict=True)])
    else:
        pads = _explicit_pads(name, padding)
        if len(pads) != len(sizes):
            raise ValueError(f"{name}: padding must have one pair for each of {len(sizes)} axes, got {pads}")
        if use_consistent_padding:
            pads = tuple([(n - 1 - low, n - 1 - high) for n, (low, high) in zip(sizes, pads, strict=True)])
    if transpose_kernel:
        order = list(range(right.ndim))
        out, feature = numbers.rhs_spec[:2]
        order[out], order[feature] = feature, out
        rhs = transpose(rev(rhs, numbers.rhs_spec[2:]), order)
    return conv_general_dilated(
        lhs, rhs, ones, pads, strides, dilation, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _lhs_precision(name: str, precision: object) -> Any:
    """Return the precision for an exact kernel of zeros and ones: only the precision of `lhs` matters."""
    canonical = canonical_precision(precision, function=name)
    return (canonical[0], Precision.DEFAULT) if isinstance(canonical, tuple) else canonical


def conv_general_dilated_patches(
    lhs: ArrayLike, filter_shape: ShapeLike, window_strides: ShapeLike, padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, precision: Any = None, preferred_element_type: Any = None,
) -> Array:
    """Gather the elements of the window at each position, as features.

    Args:
        lhs: an array.
        filter_shape: the sizes of the window.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or pairs (low, high).
        lhs_dilation, rhs_dilation: the dilations of `lhs` and of the window; None for 1.
        dimension_numbers: the order of axes, as in `conv_general_dilated`.
        precision: a `Precision`, its name, a pair, or None.
        preferred_element_type: the dtype of the result; None for the dtype of `lhs`.

    Returns:
        An array with features ordered by feature of `lhs`, then by element of the window.

    Raises:
        TypeError: `lhs` is neither floating nor complex nor an integer, or an argument has another form.
        ValueError: the ranks or lengths do not agree.

    Example:
        >>> lax.conv_general_dilated_patches(jnp.arange(3.0).reshape(1, 1, 3), (2,), (1,), "VALID")
        Array([[[0., 1.],
                [1., 2.]]], dtype=float32)
    """
    name = "conv_general_dilated_patches"
    aval = operand_aval(lhs, "lhs")
    window = integer_tuple("filter_shape", filter_shape)
    rank = (0,) * (len(window) + 2)
    numbers = conv_dimension_numbers(aval.shape, rank, dimension_numbers)
    size, features = math.prod(window), aval.shape[numbers.lhs_spec[1]]
    rows = broadcasted_iota(dtypes.int32, (size, size), 0)
    unit = convert_to(eq(rows, broadcasted_iota(dtypes.int32, (size, size), 1)), aval.dtype)
    kernel = reshape(broadcast_in_dim(unit, (features, size, size), (1, 2)), (features * size, 1, *window))
    kernel = move_axes(kernel, numbers.rhs_spec)
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers, features,
        precision=_lhs_precision(name, precision), preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: ShapeLike, padding: object, filter_shape: ShapeLike,
    lhs_dilation: object = None, rhs_dilation: object = None, dimension_numbers: object = None,
    precision: object = None,
) -> Array:
    """Compute a convolution with a separate kernel for each position of the window.

    Args:
        lhs: the array to convolve.
        rhs: the kernels: the spatial axes have the result's sizes, and the axis of input features has the elements of a
            patch in the order of `conv_general_dilated_patches`.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or pairs (low, high).
        filter_shape: the sizes of the window.
        lhs_dilation, rhs_dilation: the dilations of `lhs` and of the window; None for 1.
        dimension_numbers: the order of axes, as in `conv_general_dilated`.
        precision: a `Precision`, its name, a pair, or None.

    Returns:
        An array.

    Raises:
        TypeError: the sizes do not agree.
        ValueError: the ranks or lengths do not agree.

    Example:
        >>> kernels = jnp.arange(4.0).reshape(1, 2, 2)
        >>> lax.conv_general_dilated_local(jnp.ones((1, 1, 3)), kernels, (1,), "VALID", (2,))
        Array([[[2., 4.]]], dtype=float32)
    """
    left, right = operand_aval(lhs, "lhs"), operand_aval(rhs, "rhs")
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    (_, _, *space), (out_batch, out_feature, *positions) = numbers.rhs_spec, numbers.out_spec
    contracting = (out_feature,), (numbers.rhs_spec[1],)
    product = dot_general(patches, rhs, (contracting, (tuple(positions), tuple(space))), precision)
    return move_axes(product, (*positions, out_batch, out_feature))
