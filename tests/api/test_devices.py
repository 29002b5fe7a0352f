"""Devices, and moving trees of data between them and the host: on one device here, on two in a process of its own."""

import os
import re
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same

DEVICE = xtrace.devices()[0]


# Which there are


def test_devices_and_counts_agree_with_jax():
    assert [str(d) for d in xtrace.devices()] == [str(d) for d in jax.devices()]
    assert repr(xtrace.devices("cpu")) == repr(jax.devices("cpu")) and repr(DEVICE) == repr(jax.devices()[0])
    for backend in (None, "cpu", "CPU"):
        assert xtrace.device_count(backend) == xtrace.local_device_count(backend) == len(xtrace.devices(backend))
        assert xtrace.local_devices(backend=backend) == xtrace.devices(backend)
    assert xtrace.local_devices(process_index=0) == xtrace.local_devices(host_id=0) == xtrace.devices()
    with pytest.raises(ValueError, match=r"there is no process 7; the processes are \[0\]"):
        xtrace.local_devices(process_index=7)
    assert (xtrace.process_index(), xtrace.process_count()) == (jax.process_index(), jax.process_count()) == (0, 1)
    assert xtrace.default_backend() == jax.default_backend() == "cpu"
    assert isinstance(DEVICE, xtrace.Device) and xtrace.devices()[0] is DEVICE


@pytest.mark.parametrize("call", [xtrace.devices, xtrace.device_count, lambda b: xtrace.local_devices(backend=b)])
def test_platforms_that_are_not_there(call):
    with pytest.raises(RuntimeError, match="there is no platform 'abacus'; the platforms are cpu, cuda"):
        call("abacus")
    with pytest.raises(TypeError, match="a platform is named by a string, such as 'cpu', got 3"):
        call(3)


def test_what_a_bug_report_needs(capsys):
    text = xtrace.print_environment_info(return_string=True)
    assert xtrace.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"
    for name in ("jaxlib", "numpy", "python", "devices", "processes"):
        assert re.search(rf"^{name}: +\S", text, re.MULTILINE)
    assert "\nXTRACE_ENABLE_CHECKS=" in text


def test_arrays_in_memory():
    x = xtrace.device_put(np.ones((3, 5), np.float32))
    assert sum(found is x for found in xtrace.live_arrays()) == 1
    assert sum(found is x for found in xtrace.live_arrays("cpu")) == 1
    x.delete()
    assert not any(found is x for found in xtrace.live_arrays())
    with pytest.raises(RuntimeError, match="there is no platform 'abacus'"):
        xtrace.live_arrays("abacus")


# device_put


def test_a_tree_becomes_arrays():
    tree = {"a": [1, 2.5, None], "b": (np.ones(2), np.float32(3), True), "c": jnp.ones(3)}
    put, theirs = xtrace.device_put(tree), jax.device_put({**tree, "c": np.ones(3, np.float32)})
    assert repr(put) == repr(theirs)
    assert_same(xtrace.tree.leaves(put), jax.tree.leaves(theirs))
    assert put["c"] is tree["c"]
    assert xtrace.device_put(None) is None and xtrace.device_put([]) == []


def test_given_a_device_arrays_are_committed():
    for device in (DEVICE, jnp.ones(()).sharding):
        put = xtrace.device_put({"a": 1.0, "b": np.ones(2), "c": jnp.ones(3)}, device)
        assert all(x.committed and x.devices() == {DEVICE} for x in xtrace.tree.leaves(put))
    assert not any(x.committed for x in xtrace.tree.leaves(xtrace.device_put({"a": 1.0, "b": np.ones(2)})))
    committed = xtrace.device_put(1.0, DEVICE)
    assert xtrace.device_put(committed).committed
    assert (committed + 1).committed and xtrace.jit(lambda x: x)(committed).committed
    assert not (jnp.ones(()) + 1).committed


def test_devices_may_be_a_tree():
    tree = {"a": 1.0, "b": [2.0, (3.0, 4)]}
    put = xtrace.device_put(tree, {"a": DEVICE, "b": None})
    assert [x.committed for x in xtrace.tree.leaves(put)] == [True, False, False, False]
    put = xtrace.device_put(tree, {"a": None, "b": [DEVICE, (DEVICE, None)]})
    assert [x.committed for x in xtrace.tree.leaves(put)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("x", "options", "error", "words"),
    [
        ({"a": ["text"]}, {}, TypeError, r"device_put: x\['a'\]\[0\]: 'text' of type <class 'str'> is not a"),
        ([1, object()], {}, TypeError, r"device_put: x\[1\]: <object"),
        (np.array(["a"]), {}, TypeError, "device_put: x: .*<U1"),
        (np.ma.array([1.0]), {}, ValueError, "device_put: x: a masked array"),
        (1.0, {"device": "cpu"}, ValueError, "device must be a device .* or None. Received invalid value: 'cpu'"),
        (1.0, {"device": 0}, ValueError, "device must be a device .* invalid value: 0"),
        ((1.0, 2.0), {"device": (DEVICE,)}, ValueError, "device specification must be a tree prefix .*th 1 "),
        ((1.0, 2.0), {"device": (DEVICE, "x")}, ValueError, "invalid value: 'x'"),
        ((1.0, 2.0), {"donate": (True,)}, ValueError, "donate specification must be a tree prefix .* Give a bool"),
        (1.0, {"donate": True, "may_alias": True}, ValueError, "may_alias and donate cannot be True.*, for x"),
        ([1.0], {"donate": [True], "may_alias": True}, ValueError, r"cannot be True at the same time, for x\[0\]"),
        (2**40, {}, OverflowError, "Python int 1099511627776 too large"),
    ],
)
def test_what_cannot_be_put(x, options, error, words):
    with pytest.raises(error, match=words):
        xtrace.device_put(x, **options)


def test_a_deleted_leaf_is_named():
    gone = jnp.ones(3)
    gone.delete()
    for device in (None, DEVICE):
        with pytest.raises(RuntimeError, match=r"device_put: x\['k'\]\[1\]: Array has been deleted with shape=float32"):
            xtrace.device_put({"k": [1.0, gone]}, device)


def test_sharing_and_not_sharing():
    x = jnp.ones(3)
    shared, own = xtrace.device_put(x, DEVICE), xtrace.device_put(x, DEVICE, may_alias=False)
    donated = xtrace.device_put(x, DEVICE, donate=True)
    assert not x.is_deleted(), "it did not move"
    x.delete()
    assert shared.is_deleted() and donated.is_deleted() and np.asarray(own).tolist() == [1, 1, 1]


def test_under_a_trace_values_stay_traced():
    assert float(xtrace.jit(lambda x: xtrace.device_put(x) + xtrace.device_put(x, DEVICE))(1.0)) == 2
    assert float(xtrace.jit(lambda x: x + xtrace.device_put(2.0))(1.0)) == 3


# device_get and waiting


def test_a_tree_comes_back():
    tree = {"a": [jnp.ones(2), 3], "b": (np.float32(2), "text", None), "c": jnp.ones(2, jnp.bfloat16)}
    back = xtrace.device_get(tree)
    assert type(back["a"][0]) is np.ndarray and back["a"][1] == 3 and back["b"][1:] == ("text", None)
    assert back["c"].dtype.name == "bfloat16" and not back["a"][0].flags.writeable
    assert type(back["b"][0]) is np.ndarray


@pytest.mark.parametrize("module", [xtrace, jax], ids=["xtrace", "jax"])
def test_traced_values_stay_in_the_program(module):
    assert float(module.jit(lambda x: module.device_get({"a": x})["a"] + 1)(1.0)) == 2.0
    assert float(module.grad(lambda x: module.device_get(x) * 3)(1.0)) == 3.0


def test_waiting_for_trees():
    tree = {"a": jnp.ones(3) @ jnp.ones(3), "b": ["text", 1, None]}
    assert xtrace.block_until_ready(tree) is tree and xtrace.copy_to_host_async(tree) is tree
    assert tree["a"].is_ready()


def test_the_type_of_a_value():
    assert repr(xtrace.typeof(1.0)) == "ShapedArray(float32[], weak_type=True)" == repr(jax.typeof(1.0))
    assert repr(xtrace.typeof(np.ones((2, 3)))) == "ShapedArray(float32[2,3])"
    inside = []
    xtrace.jit(lambda x: inside.append(xtrace.typeof(x)) or x)(jnp.ones(2))
    assert repr(inside[0]) == "ShapedArray(float32[2])"
    with pytest.raises(TypeError, match="'text' of type <class 'str'> is not a valid JAX type"):
        xtrace.typeof("text")


def test_default_device():
    for value in (DEVICE, "cpu"):
        with xtrace.default_device(value):
            assert jnp.ones(3).devices() == {DEVICE} and xtrace.jit(lambda: 1.0)().devices() == {DEVICE}
    xtrace.config.update("jax_default_device", DEVICE)
    try:
        assert not jnp.ones(3).committed
    finally:
        xtrace.config.update("jax_default_device", None)


# Two devices

TWO_DEVICES = """
    import copy, sys, warnings
    import numpy as np, xtrace, xtrace.numpy as jnp
    from xtrace import jit
    warnings.filterwarnings("ignore", "backend and device argument on jit is deprecated")

    CALLS = 8
    first, second = xtrace.devices()
    assert xtrace.device_count() == 2 and first is not second and (first.id, second.id) == (0, 1)
    host = np.ones(3, np.float32)

    def raises(call, error, *words):
        try:
            call()
        except error as caught:
            assert all(w in str(caught) for w in words), caught
        else:
            raise AssertionError("no error")

    # Uncommitted data goes to the default device, and computations take it to theirs.
    f = jit(lambda x: x + 1)
    with xtrace.default_device(second):
        uncommitted = jnp.ones(3)
        assert uncommitted.devices() == {second} and not uncommitted.committed
        put = xtrace.device_put
        for make in (lambda: put(host), lambda: put(2.0), lambda: uncommitted + 1, lambda: f(host)):
            for _ in range(CALLS):
                assert make().devices() == {second} and not make().committed
    for _ in range(CALLS):
        assert f(uncommitted).devices() == {first} and not f(uncommitted).committed
        assert (uncommitted + 1).devices() == {first} and (uncommitted + jnp.ones(3)).devices() == {first}
        assert f(host).devices() == {first} and f(jnp.ones(3)).devices() == {first}
    with xtrace.default_device(second):
        for _ in range(CALLS):
            for x in (jnp.ones(3), uncommitted, host, 2.0):
                assert f(x).devices() == {second}
    for _ in range(CALLS):
        for x in (jnp.ones(3), uncommitted, host, 2.0):
            assert f(x).devices() == {first}

    # Committed data stays where it is.
    one, other = xtrace.device_put(host, first), xtrace.device_put(host, second)
    add = jit(lambda x, y: x + y)
    for _ in range(CALLS):
        for x in (uncommitted, host, 1.0, jnp.ones(3), other):
            for result in (add(other, x), add(x, other), other + x, jnp.add(x, other)):
                assert result.devices() == {second} and result.committed and np.asarray(result).tolist() == [2, 2, 2]
        assert add(one, 1.0).devices() == {first} and add(one, 1.0).committed
        assert jit(lambda x: (x, 3.0, x.sum()))(other)[1].devices() == {second}

    # Two commitments that differ are an error that names both.
    for _ in range(2):
        raises(lambda: add(one, other), ValueError, "argument x of <lambda>, float32[3] on cpu:0",
               "argument y of <lambda>, float32[3] on cpu:1", "xtrace.device_put(x, device)")
        raises(lambda: jit(lambda p, q: (p, q))({"w": [one]}, other), ValueError, "argument p['w'][0] of", "argument q")
        raises(lambda: one + other, ValueError, "on cpu:0", "on cpu:1")
        raises(lambda: xtrace.lax.add(one, other), ValueError, "argument 0 of add", "argument 1 of add")
        raises(lambda: add.lower(one, other), ValueError, "argument x of <lambda>")
    assert add(one, one).devices() == {first}
    # An argument that the program does not read has no say.
    assert jit(lambda p, q: q + 1)({"w": [one]}, other).devices() == {second}

    # jit's own device wins.
    double = lambda x: x * 2
    placed = jit(double, out_shardings=other.sharding)
    for g in (jit(double, device=second), jit(double, in_shardings=other.sharding), placed):
        for x in (1.0, host, other, uncommitted, jnp.ones(3), *[one] * (g is not placed)):
            for _ in range(CALLS):
                assert g(x).devices() == {second} and g(x).committed
    raises(lambda: placed(one), ValueError, "argument x of <lambda>, float32[3] on cpu:0, and out_shardings on cpu:1")
    both = jit(lambda p, q: p + q["a"][0], in_shardings=(one.sharding, {"a": [other.sharding]}))
    raises(lambda: both(1.0, {"a": [2.0]}), ValueError, "in_shardings on cpu:0, and in_shardings on cpu:1")
    two = jit(double, in_shardings=one.sharding, out_shardings=other.sharding)
    raises(lambda: two(1.0), ValueError, "in_shardings on cpu:0, and out_shardings on cpu:1")
    raises(lambda: jit(double, in_shardings=one.sharding, device=first), ValueError, "leave out device and backend")

    # Moving.
    moved = xtrace.device_put((1.0, {"a": [one, host]}), (first, {"a": second}))
    assert [x.device for x in xtrace.tree.leaves(moved)] == [first, second, second]
    assert xtrace.device_put(1.0, other.sharding).device is second
    assert xtrace.device_put(one, second, src=first).device is second
    assert other.sharding != one.sharding and other.sharding == xtrace.device_put(2.0, second).sharding
    assert str(other.sharding) == "SingleDeviceSharding(device=CpuDevice(id=1), memory_kind=device)"
    kept, given = jnp.ones(3), jnp.ones(3)
    there = xtrace.device_put(kept, second)
    kept.delete()
    assert not there.is_deleted()
    there = xtrace.device_put(given, second, donate=True)
    assert not given.is_deleted() and np.asarray(there).tolist() == [1, 1, 1], "jax's stays as well"
    for dtype in ("bfloat16", "float8_e4m3fn", "int4", "bool", "complex64"):
        x = jnp.ones(5, dtype)
        there = xtrace.device_put(x, second)
        assert there.device is second and np.asarray(there).tobytes() == np.asarray(x).tobytes()
        assert np.asarray(xtrace.device_put(there, first)).tobytes() == np.asarray(x).tobytes()
    weak = xtrace.device_put(xtrace.device_put(2.5), second)
    assert weak.weak_type and copy.deepcopy(weak).device is second and copy.deepcopy(weak).committed

    # Donation, constants, deletion away from the first device.
    h = jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(CALLS):
        x = xtrace.device_put(host, second)
        assert h(x).devices() == {second} and x.is_deleted()
        x = xtrace.device_put(host, second)
        with xtrace.default_device(second):
            y = jnp.ones(3)
        assert h(y).devices() == {first}
    big = xtrace.device_put(np.arange(1000, dtype=np.float32), second)
    closed = jit(lambda x: x + big)
    for _ in range(CALLS):
        assert closed(1.0).devices() == {first} and closed(other[:1]).devices() == {second}
    other.delete()
    raises(lambda: add(other, 1.0), RuntimeError, "argument x of <lambda>", "has been deleted")

    # Ahead of time.
    there = xtrace.device_put(2.0, second)
    lowered = jit(lambda x: x + 1).lower(there)
    compiled = lowered.compile()
    for x in (there, 2.0, jnp.ones(())):
        assert compiled(x).devices() == {second}
    try:
        compiled(xtrace.device_put(2.0, first))
    except ValueError as error:
        assert "argument x is on SingleDeviceSharding(device=CpuDevice(id=0)" in str(error)
    else:
        raise AssertionError
    assert compiled.input_shardings[0][0].device_set == {second}
    assert jit(lambda x: x + 1, device=second).lower(2.0).compile()(2.0).devices() == {second}

    # Settings.
    xtrace.config.update("jax_default_device", second)
    assert jnp.ones(2).device is second and f(host).device is second and xtrace.jit(lambda: 1)().device is second
    xtrace.config.update("jax_default_device", None)
    assert jnp.ones(2).device is first and f(host).device is first
    assert not [m for m in sys.modules if m == "jax" or m.startswith("jax.")]
"""


def test_two_devices_in_one_process():
    code = "\n".join(line[4:] if line.startswith("    ") else line for line in TWO_DEVICES.split("\n"))
    environment = {**os.environ, "XTRACE_NUM_CPU_DEVICES": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_the_number_of_devices_may_come_from_jaxs_name_or_be_wrong():
    code = "import xtrace; print(len(xtrace.devices()))"
    for name, value, expected in [("JAX_NUM_CPU_DEVICES", "3", "3"), ("XTRACE_NUM_CPU_DEVICES", "many", None)]:
        environment = {**os.environ, name: value}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if expected is not None:
            assert (done.stdout.strip(), done.stderr) == (expected, "")
        else:
            assert done.returncode and "XTRACE_NUM_CPU_DEVICES" in done.stderr


def test_a_process_that_does_everything_is_silent_and_never_imports_jax():
    code = """
        import sys
        import numpy as np, xtrace, xtrace.numpy as jnp
        f = xtrace.jit(lambda x, n: {"y": jnp.tanh(x) @ x.T * n, "x": x}, static_argnums=1, donate_argnums=0)
        for n in (1, 2, 2.0):
            for _ in range(8):
                f(np.ones((3, 4)), n), f(jnp.ones((3, 4)), n)
        tree = xtrace.device_put({"a": np.ones(3), "b": [1, 2.0]}, xtrace.devices()[0])
        xtrace.device_get(tree), xtrace.block_until_ready(tree), xtrace.copy_to_host_async(tree)
        xtrace.print_environment_info(True), xtrace.default_backend(), xtrace.clear_caches()
        jnp.ones(3).astype(jnp.bfloat16).tolist(), np.asarray(jnp.ones(3, jnp.int4)), np.from_dlpack(jnp.ones(3))
        with xtrace.enable_x64(), xtrace.disable_jit():
            f(np.ones((3, 4)), 2)
        xtrace.lower(jnp.sin, 1.0).compile().as_text()
        assert not [m for m in sys.modules if m == "jax" or m.startswith("jax.")]
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
