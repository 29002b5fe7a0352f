"""Compiled programs as bytes: loaded in this process and others, on one device and several, and refused in words."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tools.fuzz_files import mutate
from xtrace import P
from xtrace._src.api.compilation import serialized_programs
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace.experimental.serialize_executable import deserialize_and_load, serialize

X = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
Point = namedtuple("Point", ["x", "y"])


def compile_(f, *args, **options):
    return xtrace.jit(f, **options).lower(*args).compile()


def factorize(x):
    return jnp.linalg.cholesky(x), jnp.linalg.eigh(x)[0], jnp.linalg.solve(x, jnp.ones(3))


def load_changed(change):
    """Load a program whose head `change` has changed."""
    data, *trees = serialize(compile_(jnp.sin, 1.0))
    head, payload = serialized_programs._FORMAT.decode(data)
    record = json.loads(head)
    change(record)
    return deserialize_and_load(serialized_programs._FORMAT.encode(json.dumps(record).encode(), payload), *trees)


@pytest.mark.parametrize(("f", "args"), [
    (lambda x, y: {"sum": x + y, "list": [x * 2, y]}, (X, 2.0)),
    (lambda p: Point(p.y, p.x * 2), (Point(1.0, X),)),
    (lambda x, y: x * 2, (X, X)),
    (factorize, (X,)),
    (lambda key: xtrace.random.split(key), (xtrace.random.key(3),)),
    (lambda x: x + X @ jnp.arange(9.0).reshape(3, 3), (X,)),
    (lambda x: (), (X,)),
    (lambda x: (x.astype("bfloat16"), x > 1, x.astype("int4")), (X,)),
    (lambda x: xtrace.lax.fori_loop(0, 5, lambda i, x: x * i + 1, x), (X,)),
])
def test_a_loaded_program_computes_the_same(f, args):
    compiled = compile_(f, *args)
    loaded = deserialize_and_load(*serialize(compiled))
    assert isinstance(loaded, xtrace.stages.Compiled)
    for given, expected in zip(xtrace.tree.leaves(loaded(*args)), xtrace.tree.leaves(compiled(*args)), strict=True):
        assert given.aval == expected.aval and given.sharding == expected.sharding
        np.testing.assert_array_equal(given.physical_array(), expected.physical_array())
    for name in ("fun_name", "in_tree", "out_tree", "in_avals", "out_avals", "args_info", "out_info", "donate_argnums",
                 "input_shardings", "output_shardings", "input_formats"):
        assert getattr(loaded, name) == getattr(compiled, name), name
    assert loaded.cost_analysis() == compiled.cost_analysis()
    assert "HloModule" in loaded.as_text() and loaded.report() is not None
    # A loaded program is written again as it was read.
    again = deserialize_and_load(*serialize(loaded))
    assert xtrace.tree.structure(again(*args)) == compiled.out_tree


def test_constants_that_the_program_takes_go_with_it():
    large, keys = jnp.arange(100_000.0), xtrace.random.split(xtrace.random.key(0), 50_000)
    compiled = compile_(lambda x: (large + x, xtrace.random.key_data(keys)[-1]), 1.0)
    assert len(compiled._program.constants) == 2
    total, last = pickle.loads(pickle.dumps(compiled))(2.0)
    np.testing.assert_array_equal(total, large + 2)
    np.testing.assert_array_equal(last, xtrace.random.key_data(keys)[-1])


def test_donation_stays():
    loaded = pickle.loads(pickle.dumps(compile_(lambda x, y: x + y, X, X, donate_argnums=0)))
    x = jnp.asarray(X)
    assert loaded.donate_argnums == (0,)
    with pytest.raises(xtrace.errors.JaxRuntimeError, match=r"same array is passed to <lambda> as x and y, and"):
        loaded(x, x)
    loaded(x, X)
    assert x.is_deleted()


def test_arguments_are_checked():
    def scale(x, *, factor):
        return x * factor

    loaded = pickle.loads(pickle.dumps(xtrace.jit(scale).lower(X, factor=2.0).compile()))
    np.testing.assert_array_equal(loaded(X, factor=3.0), X * 3)
    with pytest.raises(TypeError, match=r"argument x of scale was compiled with float32\[3,3\] and called"):
        loaded(X[:2], factor=3.0)
    with pytest.raises(TypeError, match=r"scale was compiled for arguments \(args, kwargs\) of structure"):
        loaded(X)
    with pytest.raises(TypeError, match=r"argument .* of scale as an abstract array"):
        loaded("a", factor=1.0)
    with pytest.raises(TypeError, match="scale is compiled and cannot become part of another program"):
        xtrace.jit(loaded)(X, factor=1.0)
    with xtrace.debug_nans(), pytest.raises(FloatingPointError, match="scale was loaded from bytes and is compiled"):
        loaded(X, factor=np.nan)


def test_static_arguments_are_part_of_the_program():
    compiled = xtrace.jit(lambda x, n: x * n, static_argnums=1).lower(X, 3).compile()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(compiled))(X), X * 3)


def test_several_devices():
    auto = (xtrace.sharding.AxisType.Auto,) * 2
    mesh = xtrace.make_mesh((2, 2), ("a", "b"), axis_types=auto, devices=xtrace.devices()[:4])
    x = xtrace.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), xtrace.NamedSharding(mesh, P("a", "b")))
    compiled = compile_(lambda x: (x @ x, x.sum(), x.T), x)
    for devices in (None, mesh.flat_devices, xtrace.devices()[4:8], xtrace.devices()[3::-1]):
        loaded = deserialize_and_load(*serialize(compiled), execution_devices=devices)
        here = mesh if devices is None else mesh.update(devices=np.array(devices).reshape(2, 2))
        given = xtrace.device_put(x, xtrace.NamedSharding(here, P("a", "b")))
        for one, other in zip(loaded(given), compiled(x), strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.sharding == other.sharding if devices is None else one.sharding.devices == tuple(devices)
    with pytest.raises(ValueError, match=r"compiled for input shardings that disagree"):
        deserialize_and_load(*serialize(compiled))(xtrace.device_put(x, xtrace.NamedSharding(mesh, P("b"))))


def test_explicit_axes_and_captured_arrays_on_a_mesh():
    mesh = xtrace.make_mesh((4,), ("x",), axis_types=(xtrace.sharding.AxisType.Explicit,), devices=xtrace.devices()[:4])
    with xtrace.set_mesh(mesh):
        split = xtrace.NamedSharding(mesh, P("x"))
        weights = xtrace.device_put(np.arange(40_000, dtype=np.float32), split)
        x = xtrace.device_put(np.ones(40_000, np.float32), split)
        compiled = compile_(lambda x: x + weights, x)
        loaded = pickle.loads(pickle.dumps(compiled))
        assert loaded.in_avals == compiled.in_avals and loaded(x).aval == compiled(x).aval
        np.testing.assert_array_equal(loaded(x), compiled(x))


def test_another_device():
    compiled = compile_(factorize, X)
    loaded = deserialize_and_load(*serialize(compiled), execution_devices=xtrace.devices()[2:3])
    assert loaded(X)[0].devices() == {xtrace.devices()[2]}
    np.testing.assert_array_equal(loaded(X)[0], compiled(X)[0])


def test_a_program_from_the_compilation_cache(tmp_path):
    with cache_settings.directory(str(tmp_path / "programs")), cache_settings.min_compile_seconds(0.0):
        xtrace.clear_caches()
        compiled = compile_(factorize, X)
        xtrace.clear_caches()
        found = compile_(factorize, X)
        assert found._program.kept_code is not None
        for path in (tmp_path / "programs").glob("*.program"):
            path.unlink()
        loaded = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(loaded(X)[0], compiled(X)[0])
        assert loaded.cost_analysis() == compiled.cost_analysis()


LOADER = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    compiled = pickle.load(file)
print([np.asarray(x).tolist() for x in compiled(np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32))])
"""


def test_a_fresh_process_loads_linear_algebra_first(tmp_path):
    compiled = compile_(factorize, X)
    (tmp_path / "program").write_bytes(pickle.dumps(compiled))
    ran = subprocess.run(
        [sys.executable, "-c", LOADER, str(tmp_path / "program")], capture_output=True, text=True, check=False,
        env={**os.environ, "XLA_FLAGS": ""},
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [np.asarray(x).tolist() for x in compiled(X)]


@pytest.mark.parametrize(("change", "words"), [
    (lambda head: head["environment"].update(jaxlib="0.9.0"), r"its jaxlib is 0\.9\.0, and here it is 0\.1"),
    (lambda head: head["environment"].update(runtime="other"), "its runtime is other, and here it is"),
    (lambda head: head["environment"].update(machine="riscv"), "its machine is riscv, and here it is"),
    (lambda head: head["environment"].update({"device kind": "other"}), "its device kind is other, and here"),
    (lambda head: head["environment"]["features"].append("avx2048"), "the processor's instructions avx2048, which"),
    (lambda head: head["environment"].update(platform="tpu"), "for the platform tpu, which does not start here"),
    (lambda head: head.update(devices=[77]), r"compiled for the devices \[77\], and here are \[0, .*execution_devices"),
    (lambda head: head.update(code=20), "XLA refuses the program of sin"),
])
def test_what_differs_is_said(change, words):
    with pytest.raises(ValueError, match=words):
        load_changed(change)


def test_a_head_that_is_nested_too_deep_is_refused():
    data, *trees = serialize(compile_(jnp.sin, 1.0))
    _, payload = serialized_programs._FORMAT.decode(data)
    with pytest.raises(ValueError, match=r"the head of serialized is not one that this release writes: RecursionError"):
        deserialize_and_load(serialized_programs._FORMAT.encode(b"[" * 100_000, payload), *trees)


def test_other_system_features_of_the_processor_do_not_matter():
    assert load_changed(lambda head: head["environment"]["features"].append("constant_tsc2"))(0.0) == 0
    assert load_changed(lambda head: head["environment"].update(processor="another"))(0.0) == 0


def test_wrong_arguments():
    data, in_tree, out_tree = serialize(compile_(lambda x, y: x + y, 1.0, 2.0))
    with pytest.raises(TypeError, match=r"serialize: compiled must be the result of xtrace.jit\(f\).lower"):
        serialize(xtrace.jit(jnp.sin))
    with pytest.raises(TypeError, match="serialized must be bytes"):
        deserialize_and_load("text", in_tree, out_tree)
    with pytest.raises(TypeError, match="out_tree must be a treedef"):
        deserialize_and_load(data, in_tree, 3)
    with pytest.raises(ValueError, match=r"in_tree has 1 leaves, and <lambda> has 2; pass the structures that"):
        deserialize_and_load(data, out_tree, in_tree)
    with pytest.raises(ValueError, match="execution_devices has 2 devices, and <lambda> was compiled for 1"):
        deserialize_and_load(data, in_tree, out_tree, execution_devices=xtrace.devices()[:2])
    for devices in ([0], 0):
        with pytest.raises(TypeError, match="execution_devices must be devices"):
            deserialize_and_load(data, in_tree, out_tree, execution_devices=devices)
    assert deserialize_and_load(data, in_tree, out_tree, backend="cpu")(1.0, 2.0) == 3


def test_what_bytes_cannot_hold_is_refused():
    def printing(x):
        xtrace.debug.print("{x}", x=x)
        return x

    with pytest.raises(NotImplementedError, match=r"serialize: printing calls Python functions \(by a callback"):
        serialize(compile_(printing, 1.0))
    with pytest.raises(NotImplementedError, match="calls Python functions"):
        pickle.dumps(compile_(lambda x: xtrace.pure_callback(np.sin, x, x), jnp.float32(1)))
    with pytest.raises(ValueError, match="takes references or closes over them"):
        serialize(compile_(lambda ref: ref[...] * 2, xtrace.new_ref(jnp.ones(2))))


def test_damage_is_found_before_anything_is_loaded():
    draws, (data, *trees) = random.Random(0), serialize(compile_(factorize, X))
    places = [*range(64), 0, 1, 2]
    wrong = [data[:n] for n in places] + [mutate(data, draws) for _ in range(500)]
    for content in wrong:
        with pytest.raises(ValueError, match=r"deserialize_and_load: serialized cannot be used: .* Compile it here"):
            deserialize_and_load(content, *trees)
