"""Functions on the host that programs on meshes call: whole arrays on the first device, pieces on each."""

import jax
import numpy as np
import pytest
from jax.experimental import io_callback as theirs

import xtrace
from tests.sharding.meshes import OURS
from tests.sharding.test_arrays import MATRIX, compare
from xtrace.sharding import PartitionSpec as P

io_callback = {xtrace: xtrace.experimental.io_callback, jax: theirs}
MESH = OURS.mesh("x4y2")


def _double(x):
    return np.asarray(x) * 2


@pytest.mark.parametrize("kind", ["pure", "io", "ordered_io", "loop", "branch"])
def test_results_and_their_shardings(kind):
    def run(lib):
        def call(x):
            result = lib.module.ShapeDtypeStruct(x.shape, x.dtype)
            if kind == "pure":
                return lib.module.pure_callback(_double, result, x)
            return io_callback[lib.module](_double, result, x, ordered=kind == "ordered_io")

        def function(x):
            if kind == "loop":
                return lib.lax.fori_loop(0, 3, lambda i, x: call(x) + i, x)
            if kind == "branch":
                return lib.lax.cond(x.sum() > 0, call, lambda x: x, x)
            return call(x) + 1

        return lib.jit(function)(lib.put(MATRIX, lib.named("x4y2", "x", "y")))

    compare(run)


def test_each_device_calls_with_its_piece_in_shard_map():
    shapes = []

    def mapped(x):
        xtrace.debug.callback(lambda x: shapes.append(x.shape), x)
        return xtrace.pure_callback(_double, x, x)

    matrix = OURS.put(MATRIX, OURS.named("x4y2", "x", "y"))
    function = xtrace.jit(xtrace.shard_map(mapped, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y")))
    np.testing.assert_array_equal(function(matrix), MATRIX * 2)
    xtrace.effects_barrier()
    assert shapes == [(MATRIX.shape[0] // 4, MATRIX.shape[1] // 2)] * 8


@pytest.mark.parametrize("partitioned", [False, True])
def test_whole_arrays_and_pieces_in_jit(partitioned, capfd):
    seen = []
    rows, columns = MATRIX.shape

    def function(x):
        xtrace.debug.callback(lambda x: seen.append(np.asarray(x)), x, partitioned=partitioned)
        xtrace.debug.callback(lambda: seen.append(None), partitioned=partitioned)
        xtrace.debug.print("{}", x[0, 0] * 0, partitioned=partitioned)
        return x

    xtrace.jit(function)(OURS.put(MATRIX, OURS.named("x4y2", "x", "y")))
    xtrace.effects_barrier()
    count = 8 if partitioned else 1
    arrays = [x for x in seen if x is not None]
    assert len(arrays) == count == len(seen) - len(arrays)
    assert sum(x.sum() for x in arrays) == MATRIX.sum()
    assert {x.shape for x in arrays} == {(rows // 4, columns // 2) if partitioned else (rows, columns)}
    assert capfd.readouterr().out == "0.0\n" * count


def test_calls_in_order_of_programs():
    seen = []

    def function(x):
        xtrace.experimental.io_callback(lambda x: seen.append(float(x)), None, x.sum(), ordered=True)
        return x + 1

    x = OURS.put(np.zeros((8, 8), "f"), OURS.named("x4y2", "x", "y"))
    step = xtrace.jit(function)
    for _ in range(20):
        x = step(x)
    xtrace.effects_barrier()
    assert seen == [64.0 * i for i in range(20)]


def test_refusals():
    x = OURS.put(MATRIX, OURS.named("x4y2", "x", "y"))

    def both(x):
        xtrace.debug.callback(print, x, partitioned=True, ordered=True)

    with pytest.raises(NotImplementedError, match="have no order among each other"):
        xtrace.jit(both)(x)

    def ordered(x):
        xtrace.debug.print("{}", x, ordered=True)
        return x

    with pytest.raises(ValueError, match="devices that run it at the same time have no order"):
        xtrace.shard_map(ordered, mesh=MESH, in_specs=P("x"), out_specs=P("x"))(x)

    def unordered(x):
        xtrace.debug.print("{}", x)
        return x

    with pytest.raises(NotImplementedError, match="needs all axes of the mesh to be manual"):
        xtrace.jit(xtrace.shard_map(unordered, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def test_errors_name_the_function_and_its_place():
    def fail(x):
        raise ValueError("no")

    x = OURS.put(MATRIX, OURS.named("x4y2", "x", "y"))
    message = r"the callback fail .*test_callbacks.py.* raised ValueError"
    with pytest.raises(xtrace.errors.JaxRuntimeError, match=message):
        xtrace.jit(lambda x: xtrace.pure_callback(fail, x, x))(x).block_until_ready()
