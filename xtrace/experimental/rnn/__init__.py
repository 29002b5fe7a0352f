"""Recurrent networks of long short-term memories (``jax.experimental.rnn``).

The functions take the weights of all layers as one vector, in cuDNN's order, or as dictionaries by pseudo-layer:
layer 1 forward, layer 1 reverse, layer 2 forward, and so on. All layers are programs of XLA, on every
platform; cuDNN itself is not called.
"""
# ruff: noqa: I001

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.experimental.rnn.recurrence import lstm, lstm_ref
from xtrace.experimental.rnn.weights import (
    get_num_params_in_lstm, init_lstm_weight, swap_lstm_gates, unpack_lstm_weights,
)

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights",
]

_make_public(globals(), __all__)
