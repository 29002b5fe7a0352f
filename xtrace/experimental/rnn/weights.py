"""The weights of long short-term memories, as one vector and by pseudo-layer."""

from __future__ import annotations

import math
from typing import Any

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.core.arrays import Array
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.manipulation.joins_and_splits import concatenate, split
from xtrace.numpy.manipulation.shapes import ravel, reshape
from xtrace.random import uniform

# The input, forget, cell and output gate.
GATES = 4

Weights = dict[int, Any]


def _list_shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[list[Any]]:
    """Return the shapes of W_ih, W_hh, b_ih and b_hh, each for all pseudo-layers."""
    directions = 2 if bidirectional else 1
    rows = GATES * hidden_size
    inputs = [input_size if layer == 0 else hidden_size * directions for layer in range(num_layers)]
    pseudo_layers = [n for n in inputs for _ in range(directions)]
    alike = [[shape] * len(pseudo_layers) for shape in ((rows, hidden_size), (rows,), (rows,))]
    return [[(rows, n) for n in pseudo_layers], *alike]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """Count the weights of all layers.

    Args:
        input_size: the size of an element of the input sequence.
        hidden_size: the size of a hidden state.
        num_layers: the number of layers.
        bidirectional: whether each layer runs in both directions, each with its own weights.

    Returns:
        The length of the vector of weights.

    Raises:
        TypeError: a size is not an integer.

    Example:
        >>> from xtrace.experimental import rnn
        >>> rnn.get_num_params_in_lstm(3, 4, 1, bidirectional=False)
        144
    """
    shapes = _list_shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for kind in shapes for shape in kind)


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Array:
    """Draw the weights of all layers uniformly from ±1 / sqrt(hidden_size).

    Args:
        rng: a random key.
        input_size: the size of an element of the input sequence.
        hidden_size: the size of a hidden state.
        num_layers: the number of layers.
        bidirectional: whether each layer runs in both directions.

    Returns:
        A vector of `get_num_params_in_lstm` numbers.

    Raises:
        TypeError: rng is not a key, or a size is not an integer.

    Example:
        >>> from xtrace.experimental import rnn
        >>> rnn.init_lstm_weight(random.key(0), 3, 4, 1, False).shape
        (144,)
    """
    bound = math.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return uniform(rng, (count,), minval=-bound, maxval=bound)


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """Split the vector of weights into matrices and biases by pseudo-layer.

    Each has rows for the input, forget, cell and output gate, in this order.

    Args:
        weights: a vector of `get_num_params_in_lstm` numbers.
        input_size: the size of an element of the input sequence.
        hidden_size: the size of a hidden state.
        num_layers: the number of layers.
        bidirectional: whether each layer runs in both directions.

    Returns:
        W_ih, W_hh, b_ih and b_hh: each a dictionary from the number of a pseudo-layer to an array.

    Raises:
        ValueError: the vector has another length.

    Example:
        >>> from xtrace.experimental import rnn
        >>> W_ih, W_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.ones(144), 3, 4, 1, False)
        >>> W_ih[0].shape, W_hh[0].shape, b_ih[0].shape
        ((16, 3), (16, 4), (16,))
    """
    shapes = _list_shapes(input_size, hidden_size, num_layers, bidirectional)
    count = sum(math.prod(shape) for kind in shapes for shape in kind)
    shape = operand_aval(weights, "weights").shape
    if shape != (count,):
        raise ValueError(f"unpack_lstm_weights: weights must have the shape ({count},) for these sizes, got {shape}")
    weights, position = asarray(weights), 0
    unpacked: tuple[Weights, Weights, Weights, Weights] = ({}, {}, {}, {})
    # The matrices of all pseudo-layers come first, then the biases.
    for pair in ((0, 1), (2, 3)):
        for layer in range(len(shapes[0])):
            for kind in pair:
                shape = shapes[kind][layer]
                size = math.prod(shape)
                unpacked[kind][layer] = reshape(weights[position : position + size], shape)
                position += size
    return unpacked


def swap_lstm_gates(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Swap the rows of the cell gate and the output gate in all weights: the order of other libraries.

    Args:
        weights: a vector of `get_num_params_in_lstm` numbers.
        input_size: the size of an element of the input sequence.
        hidden_size: the size of a hidden state.
        num_layers: the number of layers.
        bidirectional: whether each layer runs in both directions.

    Returns:
        A vector of the same length.

    Raises:
        ValueError: the vector has another length.

    Example:
        >>> from xtrace.experimental import rnn
        >>> rnn.swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)
        Array([ 0,  1,  3,  2,  4,  5,  7,  6,  8,  9, 11, 10, 12, 13, 15, 14],      dtype=int32)
    """
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    parts = []
    for pair in (unpacked[:2], unpacked[2:]):
        for layer in range(len(unpacked[0])):
            for kind in pair:
                input_gate, forget_gate, cell_gate, output_gate = split(kind[layer], GATES)
                parts += [ravel(gate) for gate in (input_gate, forget_gate, output_gate, cell_gate)]
    return concatenate(parts)
