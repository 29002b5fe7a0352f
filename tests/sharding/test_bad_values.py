"""Wrong values in the place of each argument about meshes end with xtrace's own error, and leave nothing behind."""

import threading

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.core.shardings.mesh import context_abstract_mesh, context_mesh
from xtrace._src.core.trace import base_trace, current_trace
from xtrace.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
    auto_axes,
    reshard,
    set_mesh,
    use_abstract_mesh,
)
from xtrace.sharding import PartitionSpec as P

MESH = xtrace.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = xtrace.make_mesh((4, 2), ("x", "y"))
SHARDING = NamedSharding(MESH, P("x"))
ON_EXPLICIT = NamedSharding(EXPLICIT, P("x"))


class Unshown:
    """An object whose repr fails."""

    def __repr__(self):
        raise RuntimeError("the repr was taken")


VALUES = {
    "None": None, "text": "z", "empty text": "", "integer": 3, "negative": -1, "huge": 10**30, "float": 1.5, "list": [],
    "tuple": (), "dict": {}, "set": {"z"}, "object": object(), "type": int, "bytes": b"x",
    "empty array": np.zeros((0, 2)),
    "mesh": MESH, "no devices": Mesh(np.empty(0, object), ("",)), "axes": MESH.abstract_mesh, "unknown axis": P("z"),
    "number in a spec": P(0), "long spec": P("x", "y", None), "sharding": ON_EXPLICIT, "abstract sharding":
    NamedSharding(MESH.abstract_mesh, P("x")), "names": ("x", "x"), "nested": [[["a"]]], "unshown": Unshown(),
    "many": tuple(f"a{i}" for i in range(100)), "many sizes": (2,) * 70,
}


def put():
    return xtrace.device_put(np.arange(8.0), SHARDING)


def put_on_explicit():
    return xtrace.device_put(np.arange(8.0), ON_EXPLICIT)


def mapped(function, **changes):
    """A function of the pieces of an array, with something else in the place of an argument of shard_map."""
    return xtrace.shard_map(function, **({"mesh": MESH, "in_specs": P("x"), "out_specs": P("x")} | changes))(put())


CALLS = {
    "entry": lambda v: NamedSharding(MESH, P(v)), "entry in a tuple": lambda v: P((v, "y")),
    "unreduced": lambda v: P(unreduced=v), "mesh": lambda v: NamedSharding(v, P("x")),
    "spec": lambda v: NamedSharding(MESH, v), "shape": lambda v: SHARDING.shard_shape(v),
    "shape of indices": lambda v: SHARDING.devices_indices_map(v),
    "device of a sharding": lambda v: SingleDeviceSharding(v), "devices": lambda v: Mesh(v, ("x",)),
    "axis names": lambda v: Mesh(xtrace.devices(), v),
    "axis types": lambda v: Mesh(xtrace.devices(), ("x",), axis_types=v),
    "abstract sizes": lambda v: AbstractMesh(v, ("x",)), "abstract names": lambda v: AbstractMesh((4,), v),
    "abstract device": lambda v: AbstractMesh((4,), ("x",), abstract_device=v),
    "changed types": lambda v: MESH.abstract_mesh.update_axis_types(v),
    "sizes of make_mesh": lambda v: xtrace.make_mesh(v, ("x",)),
    "names of make_mesh": lambda v: xtrace.make_mesh((8,), v),
    "devices of make_mesh": lambda v: xtrace.make_mesh((1,), ("x",), devices=v),
    "set_mesh": lambda v: set_mesh(v).__exit__(), "use_abstract_mesh": lambda v: with_axes(v),
    "device_put": lambda v: xtrace.device_put(np.ones(8), v), "value put": lambda v: xtrace.device_put(v, SHARDING),
    "constraint": lambda v: lax.with_sharding_constraint(np.ones(8), v),
    "reshard": lambda v: reshard(put_on_explicit(), v),
    "in_shardings": lambda v: xtrace.jit(lambda a: a, in_shardings=v)(np.ones(8)),
    "out_shardings": lambda v: xtrace.jit(lambda a: a, out_shardings=v)(np.ones(8)),
    "in_specs": lambda v: mapped(lambda a: a, in_specs=v), "out_specs": lambda v: mapped(lambda a: a, out_specs=v),
    "mesh of shard_map": lambda v: mapped(lambda a: a, mesh=v),
    "axis_names": lambda v: mapped(lambda a: a, axis_names=v),
    "result": lambda v: mapped(lambda a: v), "axis of psum": lambda v: mapped(lambda a: lax.psum(a, v), out_specs=P()),
    "axis of axis_index": lambda v: mapped(lambda a: a + lax.axis_index(v)),
    "pairs of ppermute": lambda v: mapped(lambda a: lax.ppermute(a, "x", v)),
    "axes of auto_axes": lambda v: auto_axes(lambda a: a, axes=v, out_sharding=P("x"))(put_on_explicit()),
    "in_axes": lambda v: xtrace.pmap(lambda a: a, in_axes=v)(np.ones((8, 2))),
    "out_axes": lambda v: xtrace.pmap(lambda a: a, out_axes=v)(np.ones((8, 2))),
    "devices of pmap": lambda v: xtrace.pmap(lambda a: a, devices=v)(np.ones((8, 2))),
    "static arguments": lambda v: xtrace.pmap(lambda a: a, static_broadcasted_argnums=v)(np.ones((8, 2))),
    "in_axes of smap": lambda v: xtrace.smap(lambda a: a, in_axes=v, out_axes=0, axis_name="x")(put()),
    "axis of smap": lambda v: xtrace.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=v)(put()),
    "device of zeros": lambda v: jnp.zeros(8, device=v),
}


def with_axes(axes):
    with use_abstract_mesh(axes):
        pass


def raised_on_purpose(error):
    """Whether the innermost frame is xtrace's and raises: no attribute was looked for in vain, and jaxlib is silent."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_code.co_filename
    with open(name) as file:
        line = file.read().splitlines()[traceback.tb_lineno - 1]
    return "/xtrace/" in name and line.strip().startswith("raise")


@pytest.mark.parametrize("name", CALLS)
def test_wrong_values(name):
    wrong = []
    for kind, value in VALUES.items():
        try:
            CALLS[name](value)
        except Exception as error:
            if not raised_on_purpose(error) or not str(error) or len(str(error)) > 2000:
                wrong.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
        assert current_trace.get() is base_trace and context_mesh().empty and context_abstract_mesh().empty
    assert wrong == [], "\n".join(wrong)


def test_an_error_in_a_mapped_function_leaves_no_axis_behind():
    def fails(a):
        raise KeyError("mine")

    for run in (lambda: mapped(fails), lambda: xtrace.pmap(fails)(np.ones((8, 2)))):
        with pytest.raises(KeyError, match="mine"):
            run()
        with pytest.raises(NameError, match="unbound axis name: x"):
            lax.axis_index("x")
        assert context_abstract_mesh().empty
    np.testing.assert_array_equal(mapped(lambda a: a + 1), np.arange(8.0) + 1)


def test_a_call_that_failed_does_not_change_the_next_one():
    double = xtrace.jit(lambda params: params["w"] * 2, in_shardings=SHARDING)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"params\['w'\].*dimension size is 6"):
            double({"w": np.ones(6)})
        np.testing.assert_array_equal(double({"w": np.ones(8)}), np.full(8, 2.0))


def test_threads_have_meshes_of_their_own():
    seen, ready = {}, threading.Barrier(2)

    def look(name, mesh):
        with xtrace.set_mesh(mesh):
            ready.wait(60)
            seen[name] = xtrace.device_put(np.arange(8.0), P("x")).sharding.mesh
            ready.wait(60)

    threads = [threading.Thread(target=look, args=pair) for pair in (("auto", MESH), ("explicit", EXPLICIT))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert seen == {"auto": MESH, "explicit": EXPLICIT} and context_mesh().empty


def test_a_generator_that_is_dropped_leaves_its_block():
    def inside():
        with xtrace.set_mesh(MESH):
            yield xtrace.device_put(np.arange(8.0), P("x"))

    steps = inside()
    assert next(steps).sharding.mesh is MESH
    steps.close()
    assert context_mesh().empty


def test_arrays_on_explicit_axes_are_no_constants_of_mapped_functions():
    x = put_on_explicit()
    with pytest.raises(NotImplementedError, match=r"float32\[8@x\].*Make it an argument"):
        xtrace.shard_map(lambda a: x, mesh=EXPLICIT, in_specs=P("x"), out_specs=P("x"))(put_on_explicit())
    with pytest.raises(NotImplementedError, match=r"float32\[8@x\].*Make it an argument"):
        xtrace.pmap(lambda a: x)(np.ones((8, 2)))


def test_collectives_over_no_axis():
    """An index along no axis is 0, and devices that are sent nothing get zeros."""
    np.testing.assert_array_equal(mapped(lambda a: a + lax.axis_index(())), np.arange(8.0))
    assert mapped(lambda a: a.astype("int8") + lax.axis_index(())).dtype == np.int8
    np.testing.assert_array_equal(mapped(lambda a: lax.ppermute(a, "x", [])), np.zeros(8))
    with pytest.raises(ValueError, match="names 'x' twice"):
        mapped(lambda a: lax.psum(a, ("x", "x")), out_specs=P())


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a,b", '{"x"}', "<5C>", "é", "日"])
def test_axes_have_any_names(name):
    # XLA ends the process at some characters in names of axes.
    mesh = xtrace.make_mesh((2, 2), (name, "y"), axis_types=(AxisType.Auto,) * 2)
    split = NamedSharding(mesh, P(name, "y"))
    x = xtrace.device_put(np.arange(8.0).reshape(4, 2), split)
    assert xtrace.jit(lambda x: lax.with_sharding_constraint(x + 1, split))(x).sharding == split
    total = xtrace.jit(xtrace.shard_map(lambda x: lax.psum(x, name), mesh=mesh, in_specs=P(name), out_specs=P()))(x)
    np.testing.assert_array_equal(total, [[4.0, 6.0], [8.0, 10.0]])
