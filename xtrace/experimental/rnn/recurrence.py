"""Long short-term memories of several layers and both directions."""

from __future__ import annotations

from typing import Any

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import promote_dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.ops.control_flow.scan import scan
from xtrace.experimental.rnn.weights import GATES, Weights, unpack_lstm_weights
from xtrace.nn import sigmoid
from xtrace.numpy import arange, concatenate, expand_dims, matmul, moveaxis, split, stack, tanh, where


def _check_arguments(
    x: Any, h_0: Any, c_0: Any, seq_lengths: Any, input_size: int, hidden_size: int, num_layers: int,
    dropout: Any, bidirectional: bool,
) -> None:
    """Raise an error for dropout, and for shapes that do not agree with the sizes."""
    if dropout:
        raise NotImplementedError(
            f"{called_function()}: dropout={abbreviate(dropout)} is not supported, since its masks are cuDNN's own; "
            "pass dropout=0.0, and drop elements of x"
        )
    shape = operand_aval(x, "x").shape
    if len(shape) != 3 or shape[2] != input_size:
        raise ValueError(
            f"{called_function()}: x must have the shape (batch, time, input_size={input_size}), got {shape}"
        )
    batch, layers = shape[0], num_layers * (2 if bidirectional else 1)
    for state, argument in ((h_0, "h_0"), (c_0, "c_0")):
        own = operand_aval(state, argument).shape
        if own[1:] != (batch, hidden_size) or own[0] < layers:
            raise ValueError(
                f"{called_function()}: {argument} must have the shape {(layers, batch, hidden_size)}, got {own}"
            )
    lengths = operand_aval(seq_lengths, "seq_lengths").shape
    if lengths != (batch,):
        raise ValueError(
            f"{called_function()}: seq_lengths must have the shape ({batch},), one length for each row; got {lengths}"
        )


def _run_direction(
    x: Array, state: tuple[Array, Array], weights: tuple[Any, ...], inside: Array, reverse: bool, precision: Any
) -> tuple[tuple[Array, Array], Array]:
    """Return the last state of one pseudo-layer, and its outputs, from `x` with time as first axis."""
    w_ih, w_hh, b_ih, b_hh = weights

    def step(state: Any, values: Any) -> Any:
        h, c = state
        entering, valid = values
        entering = matmul(entering, w_ih.T, precision=precision) + b_ih
        gates = split(entering + matmul(h, w_hh.T, precision=precision) + b_hh, GATES, axis=-1)
        input_gate, forget_gate, output_gate = (sigmoid(gates[i]) for i in (0, 1, 3))
        new_c = forget_gate * c + input_gate * tanh(gates[2])
        new_h = output_gate * tanh(new_c)
        # Beyond its end a sequence keeps its state. The reverse direction reads these elements first.
        return (where(valid, new_h, h), where(valid, new_c, c)), where(valid, new_h, 0)

    return scan(step, state, (x, inside), reverse=reverse)


@inline_jit
def _run_layers(
    x: Array, h_0: Array, c_0: Array, seq_lengths: Array, weights: Any, *, num_layers: int, bidirectional: bool,
    precision: Any,
) -> tuple[Array, Array, Array]:
    y = moveaxis(x, 1, 0)
    inside = expand_dims(arange(y.shape[0])[:, None] < seq_lengths, 2)
    directions = 2 if bidirectional else 1
    hidden, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            own = tuple(kind[number] for kind in weights)
            (h, c), out = _run_direction(y, (h_0[number], c_0[number]), own, inside, direction == 1, precision)
            hidden.append(h)
            cells.append(c)
            outputs.append(out)
        y = concatenate(outputs, axis=-1)
    return moveaxis(y, 0, 1), stack(hidden), stack(cells)


def _promote_operands(x: Any, h_0: Any, c_0: Any, weights: Any) -> Any:
    """Return the operands as arrays of one dtype."""
    numbers = [sorted(kind) for kind in weights]
    flat = [kind[n] for kind, order in zip(weights, numbers, strict=True) for n in order]
    x, h_0, c_0, *flat = promote_dtypes((x, h_0, c_0, *flat))[1]
    rest = iter(flat)
    return x, h_0, c_0, tuple({n: next(rest) for n in order} for order in numbers)


def lstm(
    x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int,
    hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, precision: Any = None,
) -> tuple[Array, Array, Array]:
    """Evaluate a long short-term memory (LSTM) of several layers, with the weights in one vector.

    Args:
        x: the inputs, of shape (batch, time, input_size).
        h_0: the first hidden states, of shape (layers * directions, batch, hidden_size).
        c_0: the first cell states, of the same shape.
        weights: a vector of `get_num_params_in_lstm` numbers.
        seq_lengths: the length of each sequence, of shape (batch,); later elements are not used.
        input_size: the size of an element of the input.
        hidden_size: the size of a state.
        num_layers: the number of layers.
        dropout: must be 0.0.
        bidirectional: whether each layer runs in both directions.
        precision: the precision of the matrix products, as for `jnp.matmul`.

    Returns:
        The outputs, of shape (batch, time, hidden_size * directions) and 0 after the end of a sequence, and the last
        hidden and cell states.

    Raises:
        NotImplementedError: dropout is not 0.
        ValueError: a shape does not agree with the sizes.

    Example:
        >>> from xtrace.experimental import rnn
        >>> weights = rnn.init_lstm_weight(random.key(0), 3, 4, 2, True)
        >>> x, state, lengths = jnp.ones((1, 5, 3)), jnp.zeros((4, 1, 4)), jnp.array([5])
        >>> y, h_n, c_n = rnn.lstm(x, state, state, weights, lengths, 3, 4, 2, 0.0, True)
        >>> y.shape, h_n.shape
        ((1, 5, 8), (4, 1, 4))

    Reference:
        Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers, Schmidhuber and Cummins, "Learning to
        forget", 2000.
    """
    _check_arguments(x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)
    unpacked = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    x, h_0, c_0, unpacked = _promote_operands(x, h_0, c_0, unpacked)
    return _run_layers(
        x, h_0, c_0, seq_lengths, unpacked, num_layers=num_layers, bidirectional=bool(bidirectional),
        precision=precision,
    )


def lstm_ref(
    x: Any, h_0: Any, c_0: Any, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights,
    seq_lengths: Any, input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Evaluate a long short-term memory (LSTM) of several layers, with the weights by pseudo-layer.

    A pseudo-layer is one direction of one layer; its number is ``layer * directions + direction``.

    Args:
        x: the inputs, of shape (batch, time, input_size).
        h_0: the first hidden states, of shape (layers * directions, batch, hidden_size).
        c_0: the first cell states, of the same shape.
        W_ih: the matrices for the inputs, by the number of the pseudo-layer.
        W_hh: the matrices for the hidden states.
        b_ih: the biases added to the first products.
        b_hh: the biases added to the second products.
        seq_lengths: the length of each sequence, of shape (batch,); later elements are not used.
        input_size: the size of an element of the input.
        hidden_size: the size of a state.
        num_layers: the number of layers.
        dropout: must be 0.0.
        bidirectional: whether each layer runs in both directions.

    Returns:
        The outputs, of shape (batch, time, hidden_size * directions) and 0 after the end of a sequence, and the last
        hidden and cell states.

    Raises:
        NotImplementedError: dropout is not 0.
        ValueError: a shape does not agree with the sizes, or a pseudo-layer has no weights.

    Example:
        >>> from xtrace.experimental import rnn
        >>> weights = rnn.unpack_lstm_weights(jnp.ones(16), 1, 1, 1, False)
        >>> x, state = jnp.ones((1, 2, 1)), jnp.zeros((1, 1, 1))
        >>> y, h_n, c_n = rnn.lstm_ref(x, state, state, *weights, jnp.array([1]), 1, 1, 1, 0.0, False)
        >>> y.ravel()
        Array([0.7037754, 0.       ], dtype=float32)

    Reference:
        Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers, Schmidhuber and Cummins, "Learning to
        forget", 2000.
    """
    _check_arguments(x, h_0, c_0, seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional)
    needed = range(num_layers * (2 if bidirectional else 1))
    for argument, kind in (("W_ih", W_ih), ("W_hh", W_hh), ("b_ih", b_ih), ("b_hh", b_hh)):
        absent = [n for n in needed if n not in kind]
        if absent:
            raise ValueError(
                f"lstm_ref: {argument} has no weights of the pseudo-layers {absent}; it has {sorted(kind)}"
            )
    weights = tuple({n: kind[n] for n in needed} for kind in (W_ih, W_hh, b_ih, b_hh))
    x, h_0, c_0, weights = _promote_operands(x, h_0, c_0, weights)
    return _run_layers(
        x, h_0, c_0, seq_lengths, weights, num_layers=num_layers, bidirectional=bool(bidirectional), precision=None
    )
