"""`custom_partitioning` and `shard_alike`, compared with jax on eight CPU devices."""

import functools
import importlib

import jax.experimental.custom_partitioning as theirs
import numpy as np
import pytest

import xtrace
import xtrace.experimental.custom_partitioning as ours
from tests.sharding.meshes import OURS, THEIRS
from xtrace.experimental.shard_alike import shard_alike

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
MODULES = {id(OURS): ours, id(THEIRS): theirs}


def partitioned(lib, function, rule, one_device=None, arguments=None, result=None, static_argnums=(), **options):
    """A function partitioned as XLA proposes, with other specifications where these are given."""
    calls = []

    def partition(*given):
        *static, mesh, args, out = given
        calls.append((static, mesh, args, out))

        def places(types, specs):
            if specs is not None:
                return lib.module.tree.map(lambda a: lib.sharding.NamedSharding(mesh, lib.P(*specs)), types)
            return lib.module.tree.map(lambda a: a.sharding, types)

        inner = functools.partial(one_device or function, lib)
        return mesh, lambda *x: inner(*static, *x), places(out, result), places(args, arguments)

    f = MODULES[id(lib)].custom_partitioning(functools.partial(function, lib), static_argnums)
    f.def_partition(partition, sharding_rule=rule(lib) if callable(rule) else rule, **options)
    return f, calls


# name: (function, rule, specifications of the arguments, options of `partitioned`)
CASES = {
    "elementwise": (lambda lib, x, y: lib.np.sin(x) + y, "i j, i j -> i j", [("x",), ("x",)], {}),
    "elementwise one": (lambda lib, x, y: lib.np.sin(x) + y, "i j, i j -> i j", [(None, "x"), ()],
                        {"arguments": (None, "x"), "result": (None, "x")}),
    "batching": (
        lambda lib, x: lib.np.fft.fft(x).real, "... i -> ... i", [("x",)], {"need_replication_factors": ("i",)}),
    "batching refused": (
        lambda lib, x: lib.np.fft.fft(x).real, "... i -> ... i", [(None, "x")], {"need_replication_factors": ("i",)}),
    "other specifications": (lambda lib, x: x.sum(1), "i j -> i", [("x",)], {"arguments": (), "result": ()}),
    "a tree": (lambda lib, d: {"a": d["a"] * 2, "b": d["b"][0]}, "i j, k l -> i j, l", [("x",), ()], {}),
    "several results": (lambda lib, x: (x + 1, x.sum(1)), "i j -> i j, i", [("x",)], {}),
    "compound": (lambda lib, x: x.reshape(-1, 2, 4), "i (j k) -> i j k", [("x",)], {}),
    "rule object": (
        lambda lib, x: x * 3, lambda lib: MODULES[id(lib)].SdyShardingRule(
            (MODULES[id(lib)].ArrayMapping(MODULES[id(lib)].BATCHING, "j"),),
            (MODULES[id(lib)].ArrayMapping(MODULES[id(lib)].BATCHING, "j"),)), [("x",)], {}),
    "a function of the types": (
        lambda lib, x: x * 3, lambda lib: lambda mesh, args, result: (
            f"i{mesh.axis_names.index('x')} j -> i{len(result) - 1} j", {"need_replication_factors": ("j",)}),
        [("x",)], {}),
    "collective": (
        lambda lib, x, y: x @ y, "i k, k j -> i j", [(None, "x"), ("x",)],
        {"one_device": lambda lib, x, y: lib.lax.psum(x @ y, "x"), "reduction_factors": ("k",)}),
    "no rule": (lambda lib, x: x * 3, None, [("x",)], {"arguments": ("x",), "result": ("x",)}),
}


def arguments_of(lib, name):
    specs = CASES[name][2]
    arrays = [lib.put(X + i, lib.named("x8", *spec)) for i, spec in enumerate(specs)]
    return ({"a": arrays[0], "b": arrays[1]},) if name == "a tree" else arrays


@pytest.mark.parametrize("name", CASES)
def test_results_and_proposals(name):
    function, rule, _, options = CASES[name]
    outcomes = []
    for lib in (OURS, THEIRS):
        f, calls = partitioned(lib, function, rule, **options)
        result = lib.jit(f)(*arguments_of(lib, name))
        leaves = lib.module.tree.leaves(result)
        outcomes.append((leaves, [repr(x.sharding) for x in leaves], repr(calls)))
    assert len(outcomes[0][2]) > 10
    for x, y in zip(outcomes[0][0], outcomes[1][0], strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-5)
    assert outcomes[0][1:] == outcomes[1][1:]


@pytest.mark.parametrize("name", CASES)
def test_rules_reach_xla_as_jax_writes_them(name):
    function, rule, _, options = CASES[name]
    written = []
    for lib in (OURS, THEIRS):
        f, _ = partitioned(lib, function, rule, **options)
        text = lib.jit(f).lower(*arguments_of(lib, name)).as_text()
        written.append([line.partition("sharding_rule")[2].partition(">}")[0] for line in text.splitlines()
                        if "custom_call" in line])
    assert written[0] == written[1]


def test_collective_ran_in_the_partition():
    function, rule, _, options = CASES["collective"]
    f, calls = partitioned(OURS, function, rule, **options)
    compiled = xtrace.jit(f).lower(*arguments_of(OURS, "collective")).compile()
    assert len(calls) == 1
    assert "all-reduce" in compiled.as_text() and "all-gather" not in compiled.as_text()


def test_static_arguments_come_first():
    f, calls = partitioned(
        OURS, lambda lib, n, x: x * n, "i j -> i j", static_argnums=(0,), one_device=lambda lib, n, x: x * n + 1
    )
    x = OURS.put(X, OURS.named("x8", "x"))
    np.testing.assert_allclose(xtrace.jit(lambda x: f(3, x))(x), X * 3 + 1, rtol=1e-6)
    assert calls[0][0] == [3]
    np.testing.assert_allclose(xtrace.jit(lambda x: f(4, x))(x), X * 4 + 1, rtol=1e-6)


def test_outside_of_jit_on_one_device_and_in_a_shard_map():
    f, calls = partitioned(OURS, lambda lib, x: x * 2, "i j -> i j", one_device=lambda lib, x: x * 4)
    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(
        xtrace.shard_map(f, mesh=OURS.mesh("x8"), in_specs=OURS.P("x"), out_specs=OURS.P("x"))(X), X * 2)
    assert not calls
    np.testing.assert_array_equal(f(OURS.put(X, OURS.named("x8", "x"))), X * 4)


def test_in_a_scan():
    f, _ = partitioned(OURS, lambda lib, x: x * 2, "i j -> i j", one_device=lambda lib, x: x * 3)
    x = OURS.put(X, OURS.named("x8", "x"))
    got = xtrace.jit(lambda x: xtrace.lax.scan(lambda c, _: (f(c), None), x, None, 3)[0])(x)
    np.testing.assert_allclose(got, X * 27, rtol=1e-5)


def test_errors():
    x = OURS.put(X, OURS.named("x8", "x"))

    def defined(rule, partition=lambda mesh, args, result: 3, **options):
        f = ours.custom_partitioning(lambda x: x + 1)
        f.def_partition(partition, sharding_rule=rule, **options)
        return f

    for returned in (None, ("i j -> i j",), ("i j -> i j", 3)):
        with pytest.raises(TypeError, match="sharding_rule must"):
            xtrace.jit(defined(lambda *types: returned))(x)  # noqa: B023
    with pytest.raises(AttributeError, match="has no partition yet"):
        ours.custom_partitioning(lambda x: x)(X)
    for rule, options, message in [
        ("i j", {}, "There is no -> in rule"), ("i -> j -> k", {}, "There are several ->"),
        ("i% -> i", {}, "Unknown character '%'"), ("1i -> i", {}, "begin with a letter"),
        ("i ... -> i", {}, "it must be the first"), ("(i j) -> k", {}, "is in compound factors only"),
        ("(i -> i", {}, "without"), ("i) -> i", {}, "without"), ("((i j) k) -> i", {}, "nested"),
        ("i -> i", {"i": 3}, "is a whole dimension"), ("i -> i", {"k": 3}, "is in no dimension of the rule"),
        ("i -> i", {"reduction_factors": ("q",)}, "Factor q in reduction_factors"),
        ("i -> i", {"reduction_factors": ("i",), "permutation_factors": ("i",)}, "is of two kinds"),
    ]:
        with pytest.raises(ValueError, match=message):
            defined(rule, **options)
    with pytest.raises(TypeError, match="sharding_rule must be a text"):
        defined(3)
    with pytest.raises(TypeError, match="Expected a callable"):
        ours.custom_partitioning(3)
    for rule, message in [
        ("i, j -> i", "has 2 operands, but the operation has 1"), ("i -> i", "0th operand has rank 1"),
        ("i j -> i j k", "0th result has rank 3"), ("i j ... k -> i", "it must be the first"),
    ]:
        with pytest.raises(ValueError, match=message):
            xtrace.jit(defined(rule)).lower(x)
    with pytest.raises(ValueError, match="doesn't match the size"):
        xtrace.jit(defined("(i k) j -> i j", k=2)).lower(x)
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="must return \\(mesh, function"):
        xtrace.jit(defined("i j -> i j"))(x)
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="one device's shards"):
        xtrace.jit(defined("i j -> i j", lambda m, a, r: (m, lambda x: x[:, :3], r.sharding, (a[0].sharding,))))(x)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'custom_partitioning'"):
        xtrace.grad(lambda x: defined("i j -> i j")(x).sum())(X)
    with pytest.raises(NotImplementedError, match="Batching rule for 'custom_partitioning'"):
        xtrace.vmap(defined("i -> i"))(X)
    older = ours.custom_partitioning(lambda x: x + 1)
    older.def_partition(lambda *a: None, infer_sharding_from_operands=lambda *a: None)
    with pytest.raises(NotImplementedError, match="give def_partition a sharding_rule"):
        xtrace.jit(older)(x)


def test_rules_print_as_in_jax():
    printed = []
    for m in (ours, theirs):
        mapping = m.ArrayMapping("i", m.CompoundFactor("j", "k"))
        printed.append(str(m.SdyShardingRule((mapping,), (m.ArrayMapping("i", "j"),), k=2, reduction_factors=("i",))))
    assert printed[0] == printed[1]


def both_alike(lib, f):
    # Newer jax has no such module.
    alike = shard_alike if lib is OURS else importlib.import_module("jax.experimental.shard_alike").shard_alike
    x = lib.put(X, lib.named("x4y2", "x", "y"))
    return lib.jit(functools.partial(f, lib, alike))(x, X)


ALIKE = {
    "arrays": lambda lib, alike, x, y: alike(x, y * 2),
    # jax puts leaves of equal types into one group; here each pair has its own.
    "trees": lambda lib, alike, x, y: alike({"a": x, "b": x[:4].T}, {"a": y + 1, "b": y[:4].T * 2}),
    "gradient": lambda lib, alike, x, y: lib.module.grad(
        lambda x, y: (lib.np.sin(alike(x, y)[0]) * alike(x, y)[1]).sum(), (0, 1))(x, y),
    "jvp": lambda lib, alike, x, y: lib.module.jvp(alike, (x, y), (y, x)),
    "mapped": lambda lib, alike, x, y: lib.module.vmap(alike)(x, y),
    "mapped at others": lambda lib, alike, x, y: lib.module.vmap(alike, (0, 1))(x, y),
}


@pytest.mark.parametrize("name", ALIKE)
def test_shard_alike(name):
    got, expected = [both_alike(lib, ALIKE[name]) for lib in (OURS, THEIRS)]
    for x, y in zip(xtrace.tree.leaves(got), THEIRS.module.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-5)
        assert repr(x.sharding) == repr(y.sharding)


def test_shard_alike_outside_of_jit_and_its_errors():
    x = OURS.put(X, OURS.named("x8", "x"))
    assert [repr(a.sharding) for a in shard_alike(x, X)] == [repr(x.sharding)] * 2
    assert shard_alike(1, 2)[1] == 2
    with pytest.raises(ValueError, match="the same shape"):
        shard_alike(X, X[0])
    with pytest.raises(ValueError, match="the same structure"):
        shard_alike({"a": X}, X)
    with pytest.raises(TypeError):
        shard_alike("a", 1)
