"""Attributes for XLA in programs: `set_xla_metadata`, `compute_on`, `scheduling_group`, compared with jax's texts."""

from __future__ import annotations

import importlib
import re

import jax
import numpy as np
import pytest

import xtrace
import xtrace.memory
from tests.support.operands import assert_same, finite_values
from xtrace._src.stablehlo.frontend_attributes import annotate, find_operation
from xtrace.experimental.compute_on import compute_on, compute_on2
from xtrace.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from xtrace.experimental.xla_metadata import set_xla_metadata

X = finite_values(np.float32, (3, 3), 0)
HOST = {"_xla_compute_type": "host"}


def attributes_of(line):
    """Return the frontend attributes of a line of text, by key."""
    found = re.search(r"mhlo\.frontend_attributes = \{(.*?)\}", line)
    return dict(re.findall(r'([\w.]+) = "([^"]*)"', found[1])) if found else {}


def operations(text):
    """Return the operations of a module and their attributes, but constants and broadcasts, sorted."""
    found, open_operations = [], []
    for line in text.splitlines():
        name = re.match(r'\s*(?:%[\w#:]+ = )?"?(?:func\.)?(stablehlo\.\w+|call|chlo\.\w+)', line)
        if name and name[1] not in ("stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.return"):
            if line.endswith("({"):
                open_operations.append(name[1])
            else:
                found.append((name[1], sorted(attributes_of(line).items())))
        elif line.lstrip().startswith("})"):
            # The attributes of an operation with regions stand behind these.
            found.append((open_operations.pop(), sorted(attributes_of(line).items())))
    return sorted(found)


def both(function):
    """Return the operations of a program that `function` makes of each package, by the function that is lowered."""
    return [
        operations(package.jit(function(package)).lower(X).as_text().replace("stablehlo.custom_call @annotate", "#"))
        for package in (xtrace, jax)
    ]


def module(package, name):
    return importlib.import_module(f"{package.__name__}.experimental.{name}")


def metadata(package):
    return module(package, "xla_metadata").set_xla_metadata


def place(package):
    return module(package, "compute_on").compute_on


def in_blocks(context, **options):
    """Return a program with a block, a jitted function in it, and blocks in blocks."""
    def make(package):
        around, jnp = context(package), package.numpy

        def function(x):
            with around(**options):
                y = package.jit(lambda z: jnp.sin(z) * 2)(x)
                with around(**options):
                    y = jnp.cos(y)
            return y + jnp.tan(x)
        return function
    return make


def inner_blocks(package):
    """Return a program with blocks that override the attributes of the block around them, and take some away."""
    around, jnp = metadata(package), package.numpy

    def function(x):
        with around(a="b", c="d"):
            with around(a="e"):
                x = jnp.sin(x)
            with around(a=None):
                x = jnp.cos(x)
            with around(a=None, c=None):
                return package.lax.optimization_barrier(jnp.tan(x)), jnp.exp(x)
    return function


PROGRAMS = {
    "a place": in_blocks(place, compute_type="device_host"),
    "the device": in_blocks(place, compute_type="device"),
    "a part of the device": in_blocks(place, compute_type="tpu_sparsecore"),
    "a stream": in_blocks(place, compute_type="gpu_stream:3"),
    "metadata": in_blocks(metadata, a="b", number=3, flag=True, ratio=1.5, none=None),
    "values": lambda p: lambda x: metadata(p)({"a": p.numpy.sin(x), "b": p.numpy.cos(x)}, k="v"),
    "a value twice": lambda p: lambda x: metadata(p)(metadata(p)(p.numpy.sin(x), a="b"), c="d"),
    "an argument": lambda p: lambda x: metadata(p)(x, k="v") + 1,
    "a decorator": lambda p: metadata(p)(a="b")(lambda x: p.numpy.sin(x)),
    "a place as a decorator": lambda p: place(p)("device_host")(lambda x: p.numpy.sin(x)),
    "an inner place": lambda p: place(p)("device_host")(place(p)("device")(lambda x: p.numpy.sin(x))),
    "metadata at a place": lambda p: place(p)("device_host")(metadata(p)(a="b")(lambda x: p.numpy.sin(x))),
    "inner metadata": lambda p: inner_blocks(p),
    "a derivative": lambda p: p.grad(lambda x: in_blocks(metadata, a="b")(p)(x).sum()),
    "a derivative at a place": lambda p: p.grad(lambda x: in_blocks(place, compute_type="device_host")(p)(x).sum()),
    "a batch": lambda p: p.vmap(in_blocks(metadata, a="b")(p)),
    "a derivative of a value": lambda p: p.grad(lambda x: metadata(p)(p.numpy.sin(x), a="b").sum()),
    "a batch of values": lambda p: p.vmap(lambda x: metadata(p)(p.numpy.sin(x), a="b")),
    "a group": lambda p: module(p, "scheduling_groups").scheduling_group("first")(lambda x: p.numpy.sin(x) * 2),
    "a call": lambda p: module(p, "scheduling_groups").xla_metadata_call(a="b")(lambda x: p.numpy.sin(x) * 2),
    "a batch of a group": lambda p: p.vmap(PROGRAMS["a group"](p)),
    "a unit": lambda p: module(p, "compute_on").compute_on2(
        lambda x: p.numpy.sin(x) * 2, compute_type="device_host", out_memory_spaces=p.memory.Space.Device
    ),
    "a unit of the device": lambda p: module(p, "compute_on").compute_on2(
        lambda x: p.numpy.sin(x) * 2, compute_type="device", out_memory_spaces=p.memory.Space.Device
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_have_the_attributes_of_jax(name):
    mine, other = both(PROGRAMS[name])
    # jax writes a move to the device after a unit also where the CPU is both.
    other = [each for each in other if each != ("stablehlo.custom_call", [("_xla_buffer_placement", "device")])]
    assert mine == other
    assert any(attributes for _, attributes in mine) != (name == "an argument" or name == "a derivative of a value")


def test_the_derivative_of_a_group_is_two_groups():
    text = xtrace.jit(xtrace.grad(lambda x: PROGRAMS["a group"](xtrace)(x).sum())).lower(X).as_text()
    calls = [line for line in text.splitlines() if " call @" in line]
    assert [attributes_of(line) for line in calls] == 2 * [{"scheduling_group": "first"}]


@pytest.mark.parametrize("space", ["Device", "Host"])
def test_results_of_units_are_placed(space):
    found = []
    for package in (xtrace, jax):
        unit = module(package, "compute_on").compute_on2(
            lambda x, package=package: package.numpy.sin(x) * 2, compute_type="device_host",
            out_memory_spaces=getattr(package.memory.Space, space),
        )
        # The text alone: there is no GPU.
        found.append([
            operations(package.jit(function).trace(X).lower(lowering_platforms=("cuda",)).as_text())
            for function in (unit, package.vmap(unit))
        ])
    assert found[0] == found[1]
    gradient = xtrace.jit(xtrace.grad(lambda x: compute_on2(
        xtrace.numpy.sin, compute_type="device_host", out_memory_spaces=getattr(xtrace.memory.Space, space)
    )(x).sum()))
    assert_same(gradient(X), xtrace.numpy.cos(X))


def test_keys_that_are_annotated_are_not_used():
    with xtrace.debug_key_reuse(True):
        key = xtrace.random.key(0)
        draw = xtrace.jit(lambda key: xtrace.random.normal(set_xla_metadata(key, k="v")))
        assert draw(key) == xtrace.random.normal(xtrace.random.key(0))
        with pytest.raises(xtrace.errors.KeyReuseError):
            draw(key)


# Functions whose operations are written in every form.
FORMS = {
    "elementwise": lambda jnp, lax, x: (jnp.exp(x) + x, jnp.where(x > 0, x, 1), x.astype(int), jnp.clip(x, -1, 1)),
    "reductions": lambda jnp, lax, x: (x.sum(0), x.max(), jnp.argmax(x, 1), jnp.any(x > 0), jnp.cumsum(x, 0)),
    "products": lambda jnp, lax, x: (x @ x, jnp.einsum("ij,kj->ik", x, x)),
    "convolutions": lambda jnp, lax, x: lax.conv(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),
    "windows": lambda jnp, lax, x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID"),
    "shapes": lambda jnp, lax, x: (x.T, x.reshape(9), jnp.pad(x, 1), jnp.concatenate([x, x]), x[::2, 1:], x[::-1]),
    "indices": lambda jnp, lax, x: (x[jnp.array([0, 2])], x.at[0].set(1.0), lax.dynamic_slice(x, (1, 0), (2, 2))),
    "sorting": lambda jnp, lax, x: (jnp.sort(x, 0), jnp.argsort(x), lax.top_k(x, 2)),
    "loops": lambda jnp, lax, x: (
        lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x), lax.scan(lambda c, y: (c + y, c * y), x[0], x),
        lax.while_loop(lambda y: y.sum() < 1e3, lambda y: jnp.exp(y) + 1, x),
    ),
    "branches": lambda jnp, lax, x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "linear algebra": lambda jnp, lax, x: (jnp.linalg.qr(x), jnp.linalg.solve(x + 9 * jnp.eye(3), x)),
    "transforms": lambda jnp, lax, x: jnp.fft.fft(x),
    "random numbers": lambda jnp, lax, x: xtrace.random.normal(xtrace.random.key(0), (3,)) + x,
    "constants": lambda jnp, lax, x: (jnp.arange(3) + x, jnp.eye(3)),
    "remat": lambda jnp, lax, x: xtrace.grad(xtrace.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum()))(x),
    "callbacks": lambda jnp, lax, x: xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((3, 3), np.float32), x),
    "complex numbers": lambda jnp, lax, x: (jnp.abs(x + 1j * x), (x + 2j).real),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_operation_of_a_block_has_the_attribute(name):
    function = lambda x: FORMS[name](xtrace.numpy, xtrace.lax, x)  # noqa: E731

    def inside(x):
        with compute_on("device_host"):
            return function(x)

    program = xtrace.jit(inside).lower(X)
    found = operations(program.as_text())
    assert found and all(dict(attributes).items() >= HOST.items() for _, attributes in found), program.as_text()
    if name == "callbacks":
        return  # XLA has no host to move a call of the host to.
    # XLA reads the text, and the attribute changes no number.
    mine, other = xtrace.tree.leaves(program.compile()(X)), xtrace.tree.leaves(xtrace.jit(function)(X))
    assert_same(mine, other, 64, name, floor=8)


def test_programs_that_run_in_a_block():
    jitted = xtrace.jit(lambda x: xtrace.numpy.sin(x) * 2)
    before = jitted.lower(X).as_text()
    with set_xla_metadata(a="b"):
        inside = jitted.lower(X).as_text()
        assert_same(jitted(X), xtrace.numpy.sin(X) * 2)
    assert "frontend_attributes" not in before and before == jitted.lower(X).as_text()
    assert [dict(attributes) for _, attributes in operations(inside)] == 2 * [{"a": "b"}]
    with pytest.raises(KeyError), set_xla_metadata(a="b"):
        raise KeyError
    assert before == jitted.lower(X).as_text()
    assert jitted._cache_size() <= 2


def test_eager_values_and_calls():
    assert_same(set_xla_metadata(xtrace.numpy.asarray(X), k="v"), xtrace.numpy.asarray(X))
    assert set_xla_metadata(3) == 3 and set_xla_metadata(3, k="v") == 3
    assert_same(scheduling_group("a")(lambda x, *, y: x + y)(X, y=1.0), xtrace.numpy.asarray(X) + 1)
    spaces = {"a": xtrace.memory.Space.Device, "b": xtrace.memory.Space.Host}
    unit = compute_on2(
        lambda x: {"a": x + 1, "b": (x, 2 * x)}, compute_type="device_host", out_memory_spaces=spaces
    )
    results = unit(X)
    assert_same(np.asarray(results["a"]), X + 1)
    assert [x.aval.memory_space for x in (results["a"], *results["b"])] == [
        xtrace.memory.Space.Device, xtrace.memory.Space.Host, xtrace.memory.Space.Host
    ]
    text = xtrace.jit(compute_on2(
        lambda x: x + 1, compute_type="device_host", out_memory_spaces=spaces["a"], compiler_options={"x": "}"}
    )).lower(X).as_text()
    assert 'backend_config = "{\\"x\\": \\"}\\"}"' in text and "func.func private @compute_on(" in text


LINES = {
    "%0 = stablehlo.sine %arg0 : tensor<f32>": '%0 = stablehlo.sine %arg0 {@{a = "b"}} : tensor<f32>',
    '%0 = "stablehlo.add"(%1, %2) <{x = 1 : i64}> : (tensor<f32>) -> tensor<f32>':
        '%0 = "stablehlo.add"(%1, %2) <{x = 1 : i64}> {@{a = "b"}} : (tensor<f32>) -> tensor<f32>',
    '%0 = stablehlo.custom_call @f(%1) {x = " : ", y = 2 : i64} : (tensor<f32>) -> tensor<f32>':
        '%0 = stablehlo.custom_call @f(%1) {x = " : ", y = 2 : i64, @{a = "b"}} : (tensor<f32>) -> tensor<f32>',
    '%0 = stablehlo.custom_call @f(%1) {@{c = "}", xa = "d"}} : (tensor<f32>) -> tensor<f32>':
        '%0 = stablehlo.custom_call @f(%1) {@{a = "b", c = "}", xa = "d"}} : (tensor<f32>) -> tensor<f32>',
    '%0 = stablehlo.sine %1 {@{}} : tensor<f32>': '%0 = stablehlo.sine %1 {@{a = "b"}} : tensor<f32>',
    "}) : (tensor<f32>) -> tensor<f32>": '}) {@{a = "b"}} : (tensor<f32>) -> tensor<f32>',
    "  }) : (tensor<f32>) -> tensor<f32>": '  }) {@{a = "b"}} : (tensor<f32>) -> tensor<f32>',
    **{line: line for line in (
        '%0 = stablehlo.sine %1 {@{c = "}", a = "d"}} : tensor<f32>', "stablehlo.return %0 : tensor<f32>",
        "%0 = stablehlo.constant dense<1> : tensor<i32>", "return %0 : tensor<f32>",
        "^bb0(%0: tensor<f32>):", "}, {", '%0 = "stablehlo.while"(%1) ({', "%1 = sdy.sharding_constraint %0 <@m> : x",
    )},
}


@pytest.mark.parametrize("line", LINES)
def test_attributes_are_written_into_lines(line):
    given, wanted = (text.replace("@{", "mhlo.frontend_attributes = {") for text in (line, LINES[line]))
    assert annotate(given, {"a": "b"}) == wanted


def test_keys_and_texts_are_quoted():
    line = annotate("%0 = a.b %1 : t", {"x-y": 'c"\n'})
    assert line == '%0 = a.b %1 {mhlo.frontend_attributes = {"x-y" = "c\\"\\0A"}} : t'
    assert find_operation(["%1 = a : t", "%2:2 = b({", "}) : t"], "%2#1") == 2
    assert find_operation(["%1 = a : t"], "%arg0") is None


def test_mistakes():
    for wrong in ("host", "gpu_stream", "device_1"):
        with pytest.raises(ValueError, match=f"compute_on: Invalid compute type '{wrong}'; it is one of 'device_host'"):
            compute_on(wrong)
    with pytest.raises(TypeError, match="compute_type must be a string, got 3"):
        compute_on(3)
    space = xtrace.memory.Space.Device
    with pytest.raises(ValueError, match="compute_on2: Invalid compute type 'x'"):
        compute_on2(np.sin, compute_type="x", out_memory_spaces=space)
    with pytest.raises(TypeError, match=r"out_memory_spaces must hold memory spaces, .* got 'device'"):
        compute_on2(np.sin, compute_type="device", out_memory_spaces="device")
    with pytest.raises(ValueError):
        compute_on2(lambda x: x, compute_type="device", out_memory_spaces=(space, space))(X)
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        scheduling_group("a")(3)
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        xla_metadata_call(3, a="b")
    with pytest.raises(TypeError, match="not a valid JAX type"):
        set_xla_metadata(np.sin, a="b")
