"""`ragged_all_to_all`, `psend` and `precv`: numbers against NumPy, programs and types against jax."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS, THEIRS
from xtrace import lax
from xtrace.sharding import PartitionSpec as P

DEVICES, EACH, ROWS, ROOM = 4, 2, 20, 16
SLICES = DEVICES * EACH


def draw(seed=0):
    """Operands, outputs and ranges of all devices, stacked, and the exchanged outputs by a loop."""
    random = np.random.default_rng(seed)
    operand = random.normal(size=(DEVICES, ROWS, 3)).astype(np.float32)
    output = random.normal(size=(DEVICES, ROOM, 3)).astype(np.float32)
    sizes = random.integers(0, 3, (DEVICES, SLICES)).astype(np.int32)
    starts = (np.cumsum(sizes, 1) - sizes + random.integers(0, 4, (DEVICES, 1))).astype(np.int32)
    received = sizes.reshape(DEVICES, DEVICES, EACH).swapaxes(0, 1).reshape(DEVICES, SLICES)
    places = np.cumsum(received, 1) - received
    offsets = places.reshape(DEVICES, DEVICES, EACH).swapaxes(0, 1).reshape(DEVICES, SLICES).astype(np.int32)
    expected = output.copy()
    for sender in range(DEVICES):
        for i in range(SLICES):
            size, place, start = sizes[sender, i], offsets[sender, i], starts[sender, i]
            expected[i // EACH, place : place + size] = operand[sender, start : start + size]
    return (operand, output, starts, sizes, offsets, received.astype(np.int32)), expected


def on_mesh(f, **options):
    mesh = xtrace.sharding.Mesh(np.array(xtrace.devices()[:DEVICES]), ("i",))
    pieces = lambda *x: f(*[a[0] for a in x])[None]  # noqa: E731
    return xtrace.shard_map(pieces, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)


def exchange(*operands):
    return lax.ragged_all_to_all(*operands, axis_name="i")


WAYS = {
    "shard_map": on_mesh(exchange), "unchecked": on_mesh(exchange, check_vma=False),
    "vmap": xtrace.vmap(exchange, axis_name="i"), "vmap jit": xtrace.vmap(xtrace.jit(exchange), axis_name="i"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, 1])
def test_values(way, seed):
    operands, expected = draw(seed)
    np.testing.assert_array_equal(xtrace.jit(WAYS[way])(*operands), expected)


@pytest.mark.parametrize("way", ["shard_map", "unchecked", "vmap"])
def test_derivatives(way):
    (operand, output, *ranges), expected = draw()

    def f(operand, output):
        return WAYS[way](operand, output, *ranges)

    # It is linear in the first two operands: its value is its derivative in their direction.
    moved = xtrace.jvp(f, (jnp.zeros_like(operand), jnp.zeros_like(output)), (operand, output))[1]
    np.testing.assert_array_equal(moved, expected)
    cotangent = np.cos(np.arange(expected.size, dtype=np.float32)).reshape(expected.shape)
    back = xtrace.jit(lambda c: xtrace.vjp(f, operand, output)[1](c))(cotangent)
    np.testing.assert_allclose(
        (expected * cotangent).sum(), (back[0] * operand).sum() + (back[1] * output).sum(), rtol=1e-4
    )


@pytest.mark.parametrize("ranges_mapped", [False, True])
def test_mapped_over_another_axis(ranges_mapped):
    (operand, output, *ranges), expected = draw()
    others = draw(1) if ranges_mapped else ((operand * 2, output, *ranges), None)
    several = xtrace.vmap(exchange, in_axes=(0, 0, *([0 if ranges_mapped else None] * 4)))
    if ranges_mapped:
        operands = [np.stack([a, b], 1) for a, b in zip((operand, output, *ranges), others[0], strict=True)]
    else:
        operands = [np.stack([operand, operand * 2], 1), np.stack([output, output], 1), *ranges]
    got = xtrace.jit(on_mesh(several))(*operands)
    np.testing.assert_array_equal(got[:, 0], expected)
    np.testing.assert_array_equal(got[:, 1], WAYS["vmap"](*others[0]))


def test_groups():
    (operand, output, starts, sizes, _, _), _ = draw()
    groups = [[0, 1], [2, 3]]
    sizes = sizes * 0 + 1
    f = on_mesh(lambda *x: lax.ragged_all_to_all(*x, axis_name="i", axis_index_groups=groups))
    # The rows of a receiver come from slices of both senders of its group.
    offsets = np.array([[(k % 4) + 4 * (d % 2) for k in range(SLICES)] for d in range(DEVICES)], np.int32)
    expected = output.copy()
    for group in groups:
        for sender in group:
            for i in range(SLICES):
                expected[group[i // 4], offsets[sender, i]] = operand[sender, starts[sender, i]]
    np.testing.assert_array_equal(xtrace.jit(f)(operand, output, starts, sizes, offsets, sizes), expected)


def both(function, *operands, **options):
    texts = []
    for lib in (OURS, THEIRS):
        mesh = lib.sharding.Mesh(lib.devices[:2], ("x",))
        f = lib.module.shard_map(
            lambda *x, lib=lib: function(lib, *x), mesh=mesh, in_specs=lib.P("x"), out_specs=lib.P("x"), **options
        )
        texts.append(str(lib.module.make_jaxpr(f)(*operands)))
    return [text.split() for text in texts]


def test_printed_as_jax_prints_it():
    (operand, output, *ranges), _ = draw()
    ours, theirs = both(lambda lib, *x: lib.lax.ragged_all_to_all(*x, axis_name="x"), operand[0], output[0],
                        *[r[0] for r in ranges])
    assert ours == theirs


def test_sending_is_printed_as_jax_prints_it():
    def f(lib, x):
        token = lib.lax.psend(x, "x", [(0, 1)])
        return lib.lax.precv(token, lib.module.ShapeDtypeStruct(x.shape, x.dtype), "x", [(0, 1)])

    ours, theirs = both(f, np.ones(4, np.float32), check_vma=False)
    assert ours == theirs


def test_programs_for_gpus():
    (operand, output, *ranges), _ = draw()

    def text(f, *operands):
        return xtrace.jit(f).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()

    assert "@ragged_all_to_all(" in text(WAYS["shard_map"], operand, output, *ranges)
    sent = text(on_mesh(lambda x: lax.precv(lax.psend(x, "i", [(0, 1)]), x, "i", [(0, 1)])), operand)
    assert '"stablehlo.send"' in sent and '"stablehlo.recv"' in sent and "dense<[[0, 1]]> : tensor<1x2xi64>" in sent


def test_errors():
    (operand, output, *ranges), _ = draw()
    with pytest.raises(ValueError, match="operand and output must have the same dtype"):
        WAYS["vmap"](operand, output.astype(np.float16), *ranges)
    with pytest.raises(ValueError, match="input_offsets must be integer type"):
        WAYS["vmap"](operand, output, ranges[0].astype(np.float32), *ranges[1:])
    with pytest.raises(ValueError, match="must be rank 1"):
        WAYS["vmap"](operand, output, ranges[0][..., None], *ranges[1:])
    with pytest.raises(ValueError, match="must have the same shape"):
        WAYS["vmap"](operand, output, ranges[0][:, :4], *ranges[1:])
    with pytest.raises(ValueError, match="must be a multiple of the number of indices"):
        WAYS["vmap"](operand, output, *[r[:, :7] for r in ranges])
    with pytest.raises(NameError, match="unbound axis name"):
        lax.ragged_all_to_all(operand[0], output[0], *[r[0] for r in ranges], axis_name="nowhere")
    with pytest.raises(NotImplementedError, match="psend is for GPUs"):
        xtrace.jit(on_mesh(lambda x: lax.precv(lax.psend(x, "i", [(0, 1)]), x, "i", [(0, 1)])))(operand)
    with pytest.raises(ValueError, match="psend: sources must be different"):
        on_mesh(lambda x: lax.precv(lax.psend(x, "i", [(0, 1), (0, 2)]), x, "i", [(0, 1)]))(operand)
    with pytest.raises(TypeError, match="precv: token must be"):
        on_mesh(lambda x: lax.precv(x, x, "i", [(0, 1)]))(operand)
