"""Dimension numbers, padding and shapes of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

from xtrace._src.core.diagnostics.abbreviation import abbreviate

Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """The order of the axes of a convolution.

    Args:
        lhs_spec: the positions of batch, features and spatial axes of lhs.
        rhs_spec: the positions of output features, input features and spatial axes of rhs.
        out_spec: the positions of batch, features and spatial axes of the result.

    Example:
        >>> lax.conv_dimension_numbers((1, 5, 5, 3), (2, 2, 3, 4), ("NHWC", "HWIO", "NHWC"))
        ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """

    lhs_spec: Ints
    rhs_spec: Ints
    out_spec: Ints


ConvGeneralDilatedDimensionNumbers = Union[tuple[str, str, str], ConvDimensionNumbers, None]  # noqa: UP007


# The letters of batch and feature axes for lhs, rhs and result; every other letter is a spatial axis.
_LETTERS = ("NC", "OI", "NC")


def conv_dimension_numbers(lhs_shape: Any, rhs_shape: Any, dimension_numbers: Any) -> ConvDimensionNumbers:
    """Return the order of axes as a `ConvDimensionNumbers`.

    Args:
        lhs_shape, rhs_shape: the shapes of the operands.
        dimension_numbers: strings for lhs, rhs and result, such as ``("NHWC", "HWIO", "NHWC")``; None for the order
            batch, feature, spatial and, in rhs, out, in, spatial; a `ConvDimensionNumbers` is returned unchanged.

    Returns:
        A `ConvDimensionNumbers`.

    Raises:
        TypeError: the strings have other letters or lengths, or `dimension_numbers` has another form.

    Example:
        >>> lax.conv_dimension_numbers((1, 5, 3), (2, 3, 4), ("NHC", "HIO", "NHC")).lhs_spec
        (0, 2, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {ndim} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(ndim))] * 3)
    if not isinstance(dimension_numbers, (tuple, list)):
        raise TypeError(
            f"convolution dimension_numbers must be a tuple of three strings, a lax.ConvDimensionNumbers or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}.")
    if not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError(
            f"convolution dimension_numbers elements must be strings, got {tuple(map(type, dimension_numbers))}."
        )
    for i, text in enumerate(dimension_numbers):
        if len(text) != ndim:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, got "
                f"{abbreviate(text)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Return the axes of lhs, rhs and result that strings describe, spatial axes in the order of the kernel.

    Args:
        dimension_numbers: strings for lhs, rhs and result, such as ``("NHWC", "HWIO", "NHWC")``.

    Returns:
        A triple of tuples of axes.

    Raises:
        TypeError: a string lacks one of its letters or has it twice, or the spatial letters differ.

    Example:
        >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    spatial: list[str] = []
    for i, (text, letters) in enumerate(zip(dimension_numbers, _LETTERS, strict=True)):
        first, second = letters[0], letters[1]
        if text.count(first) != 1 or text.count(second) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{first}' and '{second}' exactly "
                f"once, got {text}."
            )
        if len(set(text)) != len(text):
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {text}.")
        spatial.append("".join([c for c in text if c not in (first, second)]))
    if len({frozenset(s) for s in spatial}) > 1:
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial characters, got "
            f"{tuple(dimension_numbers)}."
        )
    lhs, rhs, out = [
        tuple([text.index(c) for c in letters + spatial[1]])
        for text, letters in zip(dimension_numbers, _LETTERS, strict=True)
    ]
    return lhs, rhs, out


# Sizes along an axis

def dilated_size(size: int, dilation: int) -> int:
    """Return the size of an axis after dilation."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def _count_positions(size: int, window: int, stride: int) -> int:
    return (size - window) // stride + 1 if size >= window else 0


def dilated_sizes(sizes: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return the sizes of axes after dilation."""
    return [dilated_size(n, d) for n, d in zip(sizes, dilation, strict=True)]


def padtype_to_pads(in_shape: Any, window_shape: Any, window_strides: Any, padding: str) -> list[tuple[int, int]]:
    """Return the pairs of pads for a kind of padding.

    Args:
        in_shape: the sizes of the axes.
        window_shape: the sizes of the window.
        window_strides: the strides of the window.
        padding: ``"VALID"`` for none; ``"SAME"`` for a result of ceil(size / stride) positions, with an odd pad at the
            end; or ``"SAME_LOWER"``, with an odd pad at the beginning.

    Returns:
        A list of pairs (low, high).

    Raises:
        RuntimeError: `padding` is another string.
        TypeError: `padding` is no string.
        ValueError: the lengths differ.

    Example:
        >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
        [(0, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {abbreviate(padding)}; expected 'VALID', 'SAME' or 'SAME_LOWER'.")
    kind = padding.upper()
    if kind not in ("SAME", "SAME_LOWER", "VALID"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    lengths = len(in_shape), len(window_shape), len(window_strides)
    if len(set(lengths)) > 1:
        raise ValueError(
            f"in_shape, window_shape and window_strides must have the same length, got {in_shape}, {window_shape} and "
            f"{window_strides}."
        )
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        less = total // 2
        pads.append((less, total - less) if kind == "SAME" else (total - less, less))
    return pads


def conv_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, strides: Any, pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """Return the shape of a convolution with axes batch, feature, spatial.

    Args:
        lhs_shape, rhs_shape: the shapes of the operands.
        strides: the strides of the spatial axes.
        pads: a string such as ``"SAME"``, or pairs (low, high).
        batch_group_count: the number of groups of the batch axis.

    Returns:
        A tuple of integers.

    Raises:
        TypeError: the number of pads is wrong.
        ValueError: the number of strides is wrong.

    Example:
        >>> lax.conv_shape_tuple((1, 3, 5), (4, 3, 2), (1,), "VALID")
        (1, 4, 4)
    """
    space, window = tuple(lhs_shape[2:]), tuple(rhs_shape[2:])
    if isinstance(pads, str):
        pads = padtype_to_pads(space, window, strides, pads)
    if len(pads) != len(space):
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(space)}, got {len(pads)}.")
    padded = [n + low + high for n, (low, high) in zip(space, pads, strict=True)]
    counts = [_count_positions(n, w, s) for n, w, s in zip(padded, window, strides, strict=True)]
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *counts)


def conv_general_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: object, padding: object, dimension_numbers: Any
) -> tuple[int, ...]:
    """Return the shape of a convolution with any order of axes.

    Args:
        lhs_shape, rhs_shape: the shapes of the operands.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or pairs (low, high).
        dimension_numbers: strings for lhs, rhs and result.

    Returns:
        A tuple of integers.

    Raises:
        TypeError: the strings or the padding have another form.
        ValueError: the number of strides is wrong.

    Example:
        >>> lax.conv_general_shape_tuple((1, 5, 3), (2, 3, 4), (1,), "VALID", ("NHC", "HIO", "NHC"))
        (1, 4, 4)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    left, right = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    return reorder_sizes(out, conv_shape_tuple(left, right, window_strides, padding))


def conv_transpose_shape_tuple(
    lhs_shape: Any, rhs_shape: Any, window_strides: Any, padding: Any, dimension_numbers: Any
) -> tuple[int, ...]:
    """Return the shape of a transposed convolution.

    Args:
        lhs_shape, rhs_shape: the shapes of the operands.
        window_strides: the strides of the spatial axes.
        padding: ``"SAME"``, ``"VALID"``, or the pairs (low, high) of the convolution to transpose.
        dimension_numbers: strings for lhs, rhs and result.

    Returns:
        A tuple of integers.

    Raises:
        TypeError: the strings or the padding have another form.

    Example:
        >>> lax.conv_transpose_shape_tuple((1, 2, 1), (2, 1, 1), (2,), "VALID", ("NHC", "HIO", "NHC"))
        (1, 4, 1)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    space, window = [lhs_shape[i] for i in lhs[2:]], [rhs_shape[i] for i in rhs[2:]]
    if isinstance(padding, str):
        pads = [transposed_pads(w, s, padding) for w, s in zip(window, window_strides, strict=True)]
    else:
        pads = [(w - 1 - low, w - 1 - high) for w, (low, high) in zip(window, padding, strict=True)]
    ordered = [lhs_shape[lhs[0]], lhs_shape[lhs[1]], *dilated_sizes(space, window_strides)]
    ones = (1,) * len(space)
    return reorder_sizes(out, conv_shape_tuple(ordered, [rhs_shape[i] for i in rhs], ones, pads))


def reorder_sizes(spec: Ints, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with ``sizes[i]`` at axis ``spec[i]``."""
    return tuple([sizes[i] for i in sorted(range(len(spec)), key=spec.__getitem__)])


# Transposed convolutions and patches

def transposed_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding of an axis for the transpose of a convolution with this stride and padding."""
    kind = padding.upper()
    if kind == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif kind == "VALID":
        total, low = window + stride - 2 + max(window - stride, 0), window - 1
    else:
        raise ValueError(
            f"conv_transpose: padding must be 'SAME', 'VALID' or (low, high) pairs, got {abbreviate(padding)}"
        )
    return low, total - low
