"""`export` and calls of what it gives: members, types, derivatives, platforms, checks, and errors in words."""

import os
import pickle
import subprocess
import sys

import jax
import jax.export
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.architecture.source_tree import ROOT
from xtrace import export
from xtrace._src.export.checks import GUARANTEED_TARGETS

X = np.linspace(-1, 1, 3, dtype=np.float32)
STRUCT = xtrace.ShapeDtypeStruct((3,), "float32")
Check = export.DisabledSafetyCheck


def sine(**options):
    return export.export(xtrace.jit(jnp.sin), **options)(X)


def weighted(P):
    return lambda x, unused, *, w: {"sum": (P.numpy.sin(x) * w).sum(), "n": x.shape[0] * P.numpy.int32(1)}


# Members


def test_the_members_are_jaxs():
    mine = export.export(xtrace.jit(weighted(xtrace)))(X, 1.0, w=X)
    other = jax.export.export(jax.jit(weighted(jax)))(X, 1.0, w=X)
    assert [n for n in dir(other) if not n.startswith("__") and n not in dir(mine)] == []
    for name in (
        "fun_name", "platforms", "nr_devices", "ordered_effects", "unordered_effects", "module_kept_var_idx",
        "uses_global_constants", "calling_convention_version", "in_shardings_hlo", "out_shardings_hlo",
        "disabled_safety_checks", "_has_named_shardings", "_in_named_shardings", "_out_named_shardings",
    ):
        # Newer jax has named shardings always, and does not say so.
        assert getattr(mine, name) == getattr(other, name, True), name
    for name in ("in_tree", "out_tree", "in_avals", "out_avals"):
        assert str(getattr(mine, name)) == str(getattr(other, name)), name
    assert str(mine) == repr(mine) == str(other)
    assert mine.has_vjp() and mine.mlir_module_serialized.startswith(b"ML\xefR")
    with pytest.raises(AttributeError):
        mine.fun_name = "other"


def test_the_constants_are_jaxs():
    for name in ("default_export_platform",):
        assert getattr(export, name)() == getattr(jax.export, name)()
    for name in ("minimum_supported_calling_convention_version", "maximum_supported_calling_convention_version"):
        assert getattr(export, name) == getattr(jax.export, name)
    assert repr(Check.custom_call("f")) == repr(jax.export.DisabledSafetyCheck.custom_call("f"))
    assert Check.custom_call("f") == Check.custom_call("f") != Check.platform()
    assert Check.custom_call("f").is_custom_call() == "f" and Check.platform().is_custom_call() is None


def test_the_module_is_text_or_an_mlir_module():
    exported = sine()
    assert "stablehlo.sine" in exported.mlir_module() and 'loc("x")' in exported.mlir_module()
    assert "stablehlo.sine" in str(exported.mlir_module(serialized=False))


# Calls


def test_a_call_is_part_of_other_programs():
    exported = export.export(xtrace.jit(weighted(xtrace)))(X, 1.0, w=X)
    expected = weighted(xtrace)(X, 1.0, w=X)["sum"]
    for call in (exported.call, xtrace.jit(exported.call)):
        np.testing.assert_allclose(np.asarray(call(X, 1.0, w=X)["sum"]), expected, 1e-6)
    _, sums = xtrace.lax.scan(lambda c, _: (c, exported.call(c, 1.0, w=X)["sum"]), X, None, length=2)
    np.testing.assert_allclose(np.asarray(sums), [expected] * 2, 1e-6)
    text = xtrace.jit(exported.call).lower(X, 1.0, w=X).as_text()
    assert text.count("func.func private @call_exported_") == 1
    assert "exported=Exported(fun_name=<lambda>, ...)" in str(
        xtrace.make_jaxpr(lambda x: exported.call(x, 1.0, w=x))(X)
    )


@pytest.mark.parametrize("restore", [lambda e: e, lambda e: export.deserialize(e.serialize(vjp_order=2))])
def test_derivatives_in_reverse(restore):
    exported = restore(export.export(xtrace.jit(weighted(xtrace)))(X, 1.0, w=X))

    def first(x):
        return xtrace.grad(lambda x: exported.call(x, 1.0, w=X)["sum"])(x)

    np.testing.assert_allclose(np.asarray(first(X)), np.cos(X) * X, 1e-6)
    np.testing.assert_allclose(np.asarray(xtrace.jit(xtrace.checkpoint(first))(X)), np.cos(X) * X, 1e-6)
    second = xtrace.grad(lambda x: first(x).sum())(X)
    np.testing.assert_allclose(np.asarray(second), -np.sin(X) * X, 1e-6)


def test_the_exported_derivative_has_jaxs_types():
    def f(x, n):
        return x * n, n

    mine = export.export(xtrace.jit(f))(X, 2).vjp()
    other = jax.export.export(jax.jit(f))(X, 2).vjp()
    assert str([a.update(weak_type=False) for a in mine.in_avals]) == str(
        [a.update(weak_type=False) for a in other.in_avals]
    )
    assert [(a.shape, a.dtype) for a in mine.out_avals] == [(a.shape, a.dtype) for a in other.out_avals]
    assert mine.module_kept_var_idx == other.module_kept_var_idx and str(mine.in_tree) == str(other.in_tree)
    np.testing.assert_array_equal(np.asarray(xtrace.grad(lambda x: export.export(xtrace.jit(f))(X, 2).call(
        x, 2)[0].sum())(X)), [2.0] * 3)


def test_what_is_not_differentiated_so():
    saved = export.deserialize(sine().serialize())
    assert not saved.has_vjp()
    for differentiate in (lambda: saved.vjp(), lambda: xtrace.grad(lambda x: saved.call(x).sum())(X)):
        with pytest.raises(ValueError, match=r"No VJP is available: sin .*serialize\(vjp_order=1\)"):
            differentiate()
    with pytest.raises(ValueError, match="No VJP is available"):
        saved.serialize(vjp_order=1)
    with pytest.raises(TypeError, match="forward-mode"):
        xtrace.jvp(sine().call, (X,), (X,))


@pytest.mark.parametrize("is_saved", [False, True])
def test_calls_are_mapped_in_a_loop(is_saved):
    # jax refuses to map them.
    exported = sine()
    call = export.deserialize(exported.serialize(vjp_order=2)).call if is_saved else exported.call
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    for mapped in (xtrace.vmap(call), xtrace.jit(xtrace.vmap(call)), xtrace.pmap(call)):
        np.testing.assert_array_equal(mapped(rows), [call(x) for x in rows])
    transposed = xtrace.vmap(call, 1, 1)(rows.T)
    np.testing.assert_array_equal(transposed.T, xtrace.vmap(call)(rows))
    nested = xtrace.vmap(xtrace.vmap(call))(rows.reshape(1, 2, 3))
    np.testing.assert_array_equal(nested[0], xtrace.vmap(call)(rows))
    slopes = xtrace.vmap(xtrace.grad(lambda x: call(x).sum()))(rows)
    np.testing.assert_allclose(slopes, np.cos(rows), 1e-5)
    np.testing.assert_allclose(xtrace.jacrev(call)(X), np.diag(np.cos(X)), 1e-6)
    hessian = xtrace.jacrev(xtrace.grad(lambda x: call(x).sum()))(X)
    np.testing.assert_allclose(hessian, np.diag(-np.sin(X)), 1e-6)
    mesh = xtrace.make_mesh((2,), ("i",), axis_types=(xtrace.sharding.AxisType.Auto,))
    parts = xtrace.sharding.PartitionSpec("i")
    sharded = xtrace.shard_map(xtrace.vmap(call), mesh=mesh, in_specs=parts, out_specs=parts)
    np.testing.assert_array_equal(sharded(rows), xtrace.vmap(call)(rows))


def test_constants_are_in_the_program():
    large = jnp.arange(5000.0)
    saved = export.export(xtrace.jit(
        lambda x: xtrace.lax.scan(lambda c, _: (c + large, None), x * large, None, length=2)[0][-1]
    ))(1.0).serialize()
    assert float(export.deserialize(saved).call(1.0)) == 3 * 4999


def test_arguments_and_results_of_jit():
    assert float(export.export(xtrace.jit(lambda x, n: x * n, static_argnums=1))(1.0, 2).call(3.0)) == 6.0
    kept = export.export(xtrace.jit(lambda x, y: x, keep_unused=True))(1.0, 2.0)
    assert kept.module_kept_var_idx == (0, 1) and float(kept.call(1.0, 2.0)) == 1.0
    donated = export.export(xtrace.jit(lambda x: x + 1, donate_argnums=0))(STRUCT)
    assert "tf.aliasing_output" in donated.mlir_module()
    x = jnp.ones(3)
    np.testing.assert_array_equal(np.asarray(donated.call(x) + donated.call(x)), [4.0] * 3)
    key = xtrace.random.key(0)
    keys = export.deserialize(export.export(xtrace.jit(xtrace.random.split))(key).serialize())
    assert (xtrace.random.key_data(keys.call(key)) == xtrace.random.key_data(xtrace.random.split(key))).all()


def test_an_exported_function_inside_another_one():
    inner = export.export(xtrace.jit(jnp.sin), platforms=["cpu", "tpu"])(1.0)
    outer = export.export(xtrace.jit(lambda x: inner.call(x) * 2), platforms=["tpu", "cpu"])(1.0)
    np.testing.assert_allclose(np.asarray(export.deserialize(outer.serialize()).call(1.0)), 2 * np.sin(1.0), 1e-6)


CALL_IN_ANOTHER_PROCESS = """
import sys
import numpy as np
import xtrace
exported = xtrace.export.deserialize(sys.stdin.buffer.read())
x = np.linspace(-1, 1, 3, dtype=np.float32)
gradient = xtrace.grad(lambda x: exported.call(x).sum())
print(*np.asarray(exported.call(x)), *np.asarray(xtrace.jit(gradient)(x)))
assert "jax" not in sys.modules
"""


def test_a_call_in_another_process():
    ran = subprocess.run(
        [sys.executable, "-c", CALL_IN_ANOTHER_PROCESS], input=sine().serialize(vjp_order=1), cwd=ROOT,
        capture_output=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    np.testing.assert_allclose([float(x) for x in ran.stdout.split()], [*np.sin(X), *np.cos(X)], 1e-6)


# Platforms


def by_platform(x):
    return xtrace.lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x * 5, default=lambda x: x * 3)


def test_a_program_for_several_platforms_takes_their_number():
    same = sine(platforms=["tpu", "cpu", "cuda"])
    assert same.platforms == ("tpu", "cpu", "cuda") and same.uses_global_constants
    text = same.mlir_module()
    assert 'jax.global_constant = "_platform_index"' in text and "stablehlo.case" not in text
    other = export.export(xtrace.jit(by_platform), platforms=["tpu", "cpu", "cuda"])(2.0)
    assert "stablehlo.case" in other.mlir_module()
    for exported in (other, export.deserialize(other.serialize(1))):
        assert float(exported.call(2.0)) == 3.0 and float(xtrace.grad(exported.call)(2.0)) == 1.0
    for exported in (same, jax.export.export(jax.jit(jax.numpy.sin), platforms=["tpu", "cpu", "cuda"])(X)):
        assert exported.mlir_module().count("tensor<i32>") >= 1


def test_a_call_on_another_platform():
    with pytest.raises(ValueError, match=r"sin was exported for the platforms tpu, and is called on cpu"):
        sine(platforms=["tpu"]).call(X)
    exported = sine(platforms=["tpu"], disabled_checks=[Check.platform()])
    np.testing.assert_allclose(np.asarray(exported.call(X)), np.sin(X), 1e-6)
    assert export.deserialize(exported.serialize()).disabled_safety_checks == (Check.platform(),)
    assert sine(platforms=["GPU"]).platforms[0] in ("cuda", "rocm") and sine(platforms=[]).platforms == ("cpu",)


# Custom calls


def foreign(x):
    return xtrace.ffi.ffi_call("example_target", xtrace.ShapeDtypeStruct(x.shape, x.dtype))(x)


def test_custom_calls_without_a_guarantee_are_refused():
    with pytest.raises(ValueError, match="no compatibility guarantees: foreign calls example_target") as caught:
        export.export(xtrace.jit(foreign))(X)
    check = "export.DisabledSafetyCheck.custom_call('example_target')"
    assert f"disabled_checks=[{check}]" in str(caught.value)
    exported = export.export(xtrace.jit(foreign), disabled_checks=[eval(check)])(X)
    restored = export.deserialize(exported.serialize())
    assert exported.disabled_safety_checks == restored.disabled_safety_checks == (eval(check),)


@pytest.mark.parametrize("target", [*sorted(GUARANTEED_TARGETS)[::5], "unknown", "lapack_sgeqp3_ffi", "mhlo.topk"])
def test_the_guarantees_are_jaxs(target):
    def call(x):
        return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((3,), np.float32))(x)

    try:
        jax.export.export(jax.jit(call))(X)
    except ValueError:
        assert target not in GUARANTEED_TARGETS
    else:
        assert target in GUARANTEED_TARGETS


# Errors


REFUSED = [
    (lambda: export.export(jnp.sin.__wrapped__)(X), ValueError, r"must be the result of jit.*xtrace.jit\(f\)"),
    (lambda: export.export(3), ValueError, "must be the result of jit, got 3"),
    (lambda: sine(platforms="cpu"), TypeError, r"platforms must be a sequence of names such as \['cpu', 'tpu'\]"),
    (lambda: sine(platforms=[3]), TypeError, r"platforms must be a sequence of names.*got \[3\]"),
    (lambda: sine(platforms=["cpu", "cpu"]), ValueError, "platforms names one twice"),
    (lambda: sine(disabled_checks=["platform"]), TypeError, "disabled_checks must be checks.*got 'platform'"),
    (lambda: sine(_override_lowering_rules=[]), NotImplementedError, "leave it None"),
    (lambda: Check.custom_call(3), TypeError, "target_name must be a string, got 3"),
    (lambda: sine().call(), ValueError, "same pytree structure as when the function was exported"),
    (lambda: sine().call(x=X), ValueError, "same pytree structure"),
    (lambda: sine().call(X[:2]), ValueError, r"Shape mismatch for args\[0\] of sin.*float32\[3\].*float32\[2\]"),
    (lambda: sine().call(X.astype(int)), ValueError, r"Dtype mismatch for args\[0\] of sin.*Convert it"),
    (lambda: export.export(xtrace.jit(lambda *, t: t["a"][0]))(t={"a": [X]}).call(t={"a": [1.0]}), ValueError,
     r"Shape mismatch for kwargs\['t'\]\['a'\]\[0\]"),
    (lambda: sine().call(object()), TypeError, "object"),
    (lambda: sine().serialize("1"), TypeError, "vjp_order must be an integer"),
    (lambda: sine().serialize(-1), ValueError, "vjp_order must be 0 or more, got -1"),
    (lambda: sine().serialize(11), ValueError, "vjp_order must be at most 10, got 11: .*each order about doubles"),
    (lambda: sine().in_shardings_jax(3), TypeError, "mesh must be a Mesh"),
    (lambda: export.export(xtrace.jit(lambda x: xtrace.pure_callback(np.sin, x, x)))(X), NotImplementedError,
     "calls Python.*serialization of host_callbacks"),
    (lambda: export.export(xtrace.jit(lambda x: (xtrace.debug.print("{}", x, ordered=True), x)[1]))(X),
     NotImplementedError, "calls Python"),
    (lambda: export.export(xtrace.jit(lambda r: r[...]))(xtrace.new_ref(X)), NotImplementedError, "references"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_bad_calls_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_functions_of_the_library_are_jitted():
    for package, exporter in ((xtrace, export), (jax, jax.export)):
        exported = exporter.export(package.numpy.sin)(X)
        assert exported.fun_name == "sin" and exported.platforms == (exporter.default_export_platform(),)
        np.testing.assert_allclose(exported.call(X), np.sin(X), 1e-6)


def test_nothing_is_pickled_into_files():
    class Payload:
        def __reduce__(self):
            return (pytest.fail, ("it was unpickled",))

    with pytest.raises(ValueError, match="is no exported function, or is damaged"):
        export.deserialize(pickle.dumps(Payload()))


def test_programs_for_several_platforms_have_locations():
    def scaled(x, y):
        return jnp.linalg.cholesky(x) + jnp.cumsum(jnp.sin(y))

    alike = export.export(xtrace.jit(lambda x: jnp.sin(x)), platforms=["cpu", "tpu"])(1.0)
    unlike = export.export(xtrace.jit(scaled), platforms=["cpu", "cuda", "tpu"])(np.eye(3, dtype=np.float32), X)
    for exported, names in ((alike, "x"), (unlike, "xy")):
        for again in (exported, export.deserialize(exported.serialize())):
            text = again.mlir_module()
            assert f'"{__file__}":' in text and all(f'loc("{name}")' in text for name in names)
            assert "jit(<lambda>)/sin" in text or "jit(scaled)/" in text
    np.testing.assert_allclose(
        unlike.call(np.eye(3, dtype=np.float32), X), np.eye(3) + np.cumsum(np.sin(X)), 1e-6
    )
