"""Long short-term memories: the numbers and derivatives of jax's reference, which jax can run without a GPU."""

from __future__ import annotations

import jax
import jax.experimental.rnn as jax_rnn
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from xtrace.experimental import rnn

# Sizes of input and hidden state, layers, directions.
SIZES = {
    "one layer": (3, 4, 1, False), "two directions": (3, 4, 1, True), "deep": (2, 3, 3, False),
    "deep in both": (3, 2, 2, True),
}
BATCH, TIME = 3, 4


def arguments(sizes):
    """Return x, h_0, c_0, the vector of weights, and the lengths."""
    input_size, hidden_size, layers, both = sizes
    states = (layers * (1 + both), BATCH, hidden_size)
    count = jax_rnn.get_num_params_in_lstm(*sizes)
    shapes = [(BATCH, TIME, input_size), states, states, (count,)]
    values = [finite_values(np.float32, shape, i) / 4 for i, shape in enumerate(shapes)]
    return [*values, np.array([TIME, 2, 1], np.int32)]


def run(package, library, sizes, name):
    """Return a function of x, h_0, c_0, weights and lengths."""
    both = sizes[3]

    def function(x, h_0, c_0, weights, lengths):
        if name == "lstm":
            return library.lstm(x, h_0, c_0, weights, lengths, *sizes[:3], dropout=0.0, bidirectional=both)
        unpacked = library.unpack_lstm_weights(weights, *sizes)
        return library.lstm_ref(x, h_0, c_0, *unpacked, lengths, *sizes[:3], 0.0, both)

    return function


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_weights(sizes):
    assert rnn.get_num_params_in_lstm(*sizes) == jax_rnn.get_num_params_in_lstm(*sizes)
    drawn = [
        library.init_lstm_weight(package.random.key(2), *sizes) for package, library in ((xtrace, rnn), (jax, jax_rnn))
    ]
    assert_same(*drawn)
    vector = np.arange(len(drawn[0]), dtype=np.float32)
    for name in ("unpack_lstm_weights", "swap_lstm_gates"):
        found = getattr(rnn, name)(ours(vector), *sizes), getattr(jax_rnn, name)(theirs(vector), *sizes)
        assert_same(*found, where=name)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", ["lstm", "lstm_ref"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_values_and_gradients_are_those_of_the_reference(sizes, name):
    values = arguments(sizes)
    results = []
    for package, library, convert, which in ((xtrace, rnn, ours, name), (jax, jax_rnn, theirs, "lstm_ref")):
        function = run(package, library, sizes, which)

        def loss(*operands, function=function, package=package):
            return sum(package.numpy.sum(package.numpy.sin(3 * out)) for out in function(*operands))

        operands = [convert(v) for v in values]
        gradients = package.jit(package.grad(loss, (0, 1, 2, 3)))(*operands)
        results.append((package.jit(function)(*operands), gradients))
    (mine, g), (other, h) = results
    # A state is a few roundings for each gate, layer and step; a gradient is a sum over all of them.
    assert_same(mine, other, 200, name, floor=1)
    assert_same(g, h, 1000, f"{name}, gradients", floor=1)


def test_a_sequence_ends_where_its_length_says():
    sizes = SIZES["deep in both"]
    x, h_0, c_0, weights, _ = arguments(sizes)
    function = run(xtrace, rnn, sizes, "lstm")
    lengths = np.array([0, 2, 3], np.int32)
    y, h_n, c_n = function(x, h_0, c_0, weights, lengths)
    assert_same(h_n[:, 0], ours(h_0)[:, 0])
    for row, length in enumerate(lengths):
        assert not np.any(y[row, length:])
        if length:
            short = function(x[row : row + 1, :length], h_0[:, row : row + 1], c_0[:, row : row + 1], weights,
                             np.array([length], np.int32))
            assert_same((y[row, :length], h_n[:, row], c_n[:, row]), (short[0][0], short[1][:, 0], short[2][:, 0]), 64)


def test_forward_mode_double_precision_and_batches():
    sizes = SIZES["two directions"]
    with xtrace.enable_x64(True), jax.enable_x64(True):
        values = [v.astype(np.float64) if v.dtype == np.float32 else v for v in arguments(sizes)]
        found = run(xtrace, rnn, sizes, "lstm")(*values)
        assert found[0].dtype == np.float64
        assert_same(found, run(jax, jax_rnn, sizes, "lstm_ref")(*map(theirs, values)), 200, floor=1)
        *operands, lengths = values
        tangents = [np.ones_like(v) for v in operands]
        _, along = xtrace.jvp(lambda *a: run(xtrace, rnn, sizes, "lstm")(*a, lengths), operands, tangents)
        _, wanted = jax.jvp(lambda *a: run(jax, jax_rnn, sizes, "lstm_ref")(*a, lengths), operands, tangents)
        assert_same(along, wanted, 4000, floor=1)
    values = arguments(sizes)
    stacked = [np.stack([v, v / 2]) if v.dtype == np.float32 else np.stack([v, v]) for v in values]
    function = run(xtrace, rnn, sizes, "lstm")
    mapped = xtrace.vmap(function)(*stacked)
    for i in range(2):
        assert_same(tuple(out[i] for out in mapped), function(*[v[i] for v in stacked]), 64, floor=1)


def test_the_precision_of_products_is_in_the_program():
    sizes = SIZES["one layer"]
    function = lambda *a: rnn.lstm(*a, 3, 4, 1, 0.0, False, "highest")  # noqa: E731
    assert "precision = [HIGHEST, HIGHEST]" in xtrace.lower(function, *arguments(sizes)).as_text()


def test_mistakes():
    sizes = SIZES["two directions"]
    x, h, c, weights, lengths = arguments(sizes)

    def call(x=x, h=h, c=c, weights=weights, lengths=lengths, dropout=0.0):
        return rnn.lstm(x, h, c, weights, lengths, *sizes[:3], dropout, sizes[3])

    with pytest.raises(NotImplementedError, match=r"lstm: dropout=0.5 is not supported"):
        call(dropout=0.5)
    with pytest.raises(ValueError, match=r"x must have the shape \(batch, time, input_size=3\), got \(3, 4\)"):
        call(x=x[:, :, 0])
    with pytest.raises(ValueError, match=r"h_0 must have the shape \(2, 3, 4\), got \(1, 3, 4\)"):
        call(h=h[:1])
    with pytest.raises(ValueError, match=r"c_0 must have the shape \(2, 3, 4\), got \(\)"):
        call(c=1.0)
    with pytest.raises(ValueError, match=r"seq_lengths must have the shape \(3,\)"):
        call(lengths=lengths[:2])
    with pytest.raises(ValueError, match=r"weights must have the shape \(288,\) for these sizes, got \(287,\)"):
        call(weights=weights[1:])
    unpacked = list(rnn.unpack_lstm_weights(weights, *sizes))
    with pytest.raises(ValueError, match=r"b_ih has no weights of the pseudo-layers \[1\]; it has \[0\]"):
        rnn.lstm_ref(x, h, c, *unpacked[:2], {0: unpacked[2][0]}, unpacked[3], lengths, *sizes[:3], 0.0, True)
