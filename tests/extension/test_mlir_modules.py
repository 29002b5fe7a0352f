"""Programs in MLIR outside of xtrace: jaxlib's modules under jax's names, portable artifacts, shardings of XLA's."""

import importlib
import types

import jax
import jax.extend.lowering
import jax.extend.mlir
import jax.extend.sharding
import numpy as np
import pytest

import xtrace
import xtrace.extend.mlir.dialects.func as func_dialect
from tests.support.jax_modules import import_jax_module
from xtrace.extend import lowering, mlir, sharding
from xtrace.extend.mlir import ir, passmanager
from xtrace.extend.mlir.dialects import stablehlo

X = np.linspace(-1, 1, 6, dtype=np.float32)
DIALECTS = xtrace.extend.mlir.dialects.__dir__()


@pytest.mark.parametrize("name", ["ir", "passmanager", *[f"dialects.{d}" for d in DIALECTS]])
def test_modules_have_jaxlibs_names(name):
    mine = importlib.import_module(f"xtrace.extend.mlir.{name}")
    other = import_jax_module(f"jax.extend.mlir.{name}")
    names = {n for n in vars(other) if not n.startswith("_")}
    listed = {n for n in names if not isinstance(getattr(other, n), types.ModuleType)}
    assert set(mine.__all__) == listed == set(dir(mine))
    assert all(getattr(mine, n) is getattr(other, n) for n in names)
    with pytest.raises(AttributeError):
        mine.no_such_name  # noqa: B018


def test_a_module_is_built_with_them_and_written():
    with xtrace.interpreters.mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.create()
        kind = ir.RankedTensorType.get([6], ir.F32Type.get())
        with ir.InsertionPoint(module.body):
            @func_dialect.FuncOp.from_py_func(kind, name="main")
            def main(x):
                return stablehlo.multiply(stablehlo.sine(x), x)
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        artifact = mlir.serialize_portable_artifact(module, "1.9.0")
    assert artifact == jax.extend.mlir.serialize_portable_artifact(module, "1.9.0")
    again = mlir.deserialize_portable_artifact(artifact)
    assert str(again) == str(module)


def test_programs_of_xla_become_modules():
    lowered = xtrace.jit(lambda x: xtrace.numpy.sin(x) * 2).lower(X)
    program = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    bytecode = mlir.hlo_to_stablehlo(program)
    assert bytecode == jax.extend.mlir.hlo_to_stablehlo(program)
    assert "stablehlo.sine" in str(ir.Module.parse(bytecode, xtrace.interpreters.mlir.make_ir_context()))


def test_sizes_follow_from_those_of_the_inputs():
    text = b"""module {
      func.func public @main(%x: tensor<6xf32>) -> tensor<6xf32> {
        %y = call @sine(%x) : (tensor<6xf32>) -> tensor<?xf32>
        %z = stablehlo.convert %y : (tensor<?xf32>) -> tensor<6xf32>
        return %z : tensor<6xf32>
      }
      func.func private @sine(%x: tensor<6xf32>) -> tensor<?xf32> {
        %y = stablehlo.sine %x : (tensor<6xf32>) -> tensor<?xf32>
        return %y : tensor<?xf32>
      }
    }"""
    refined = mlir.refine_polymorphic_shapes(text)
    assert refined == jax.extend.mlir.refine_polymorphic_shapes(text)
    assert "?" not in str(ir.Module.parse(refined, xtrace.interpreters.mlir.make_ir_context()))
    unknown = b"""func.func @main(%x: tensor<6xf32>) -> tensor<?xf32> {
      %y = stablehlo.custom_call @f(%x) : (tensor<6xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }"""
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="dynamic shapes"):
        mlir.refine_polymorphic_shapes(unknown)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: mlir.serialize_portable_artifact(3, "1.9.0"), TypeError, "mlir_module must be an MLIR module.*got 3"),
    (lambda: mlir.serialize_portable_artifact("module {}", 1), TypeError, "target must be a version.*got 1"),
    (lambda: mlir.serialize_portable_artifact("module {}", "99.0"), xtrace.errors.JaxRuntimeError, "target version"),
    (lambda: mlir.serialize_portable_artifact("zz", "1.9.0"), xtrace.errors.JaxRuntimeError, "."),
    (lambda: mlir.deserialize_portable_artifact("zz"), TypeError, "mlir_module must be bytes, got 'zz'"),
    (lambda: mlir.deserialize_portable_artifact(b"zz"), xtrace.errors.JaxRuntimeError, "deserialize"),
    (lambda: mlir.hlo_to_stablehlo(None), TypeError, "computation must be bytes, got None"),
    (lambda: mlir.hlo_to_stablehlo(b"\xff"), xtrace.errors.JaxRuntimeError, "deserialize"),
    (lambda: mlir.hlo_to_stablehlo(b""), xtrace.errors.JaxRuntimeError, "program shape"),
    (lambda: mlir.refine_polymorphic_shapes("text"), TypeError, "mlir_module must be bytes"),
    (lambda: mlir.refine_polymorphic_shapes(b"text"), xtrace.errors.JaxRuntimeError, "parse"),
    (lambda: mlir.lower_with_sharding_in_types(None, None, 3), TypeError, "3 is not an array type"),
])
def test_wrong_modules(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_rule_splits_a_value_as_its_type_says():
    automatic, mesh = [
        xtrace.make_mesh((4,), ("x",), axis_types=(kind,))
        for kind in (xtrace.sharding.AxisType.Auto, xtrace.sharding.AxisType.Explicit)
    ]
    p = xtrace.extend.core.Primitive("split_sine")
    p.def_abstract_eval(lambda x: x)
    split = xtrace.sharding.NamedSharding(mesh, xtrace.P("x"))

    def rule(ctx, x):
        aval = xtrace.core.ShapedArray((8,), np.float32, sharding=split)
        return mlir.lower_with_sharding_in_types(ctx, stablehlo.sine(x), aval)

    xtrace.interpreters.mlir.register_lowering(p, rule)
    x = np.arange(8, dtype=np.float32)
    function = xtrace.jit(p.bind, in_shardings=xtrace.sharding.NamedSharding(automatic, xtrace.P()))
    result = function(x)
    np.testing.assert_allclose(result, np.sin(x), rtol=1e-6)
    assert "sdy.sharding_constraint" in function.lower(x).as_text() and result.sharding.is_equivalent_to(split, 1)


# Contexts


def test_contexts_load_the_dialects_that_are_asked_for():
    for package in (lowering, jax.extend.lowering):
        context = package.JaxIrContext()
        assert not context.is_registered_operation("arith.addi")
        context.append_dialect_registry(package.upstream_dialects)
        context.load_all_available_dialects()
        assert context.is_registered_operation("arith.addi") and not context.is_registered_operation("stablehlo.add")
    context = xtrace.interpreters.mlir.make_ir_context()
    assert isinstance(context, lowering.JaxIrContext) and context.is_registered_operation("stablehlo.add")
    assert lowering.LoweringRuleContext is xtrace.interpreters.mlir.LoweringRuleContext


# Shardings


def hlo_sharding(spec):
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return jax.sharding.NamedSharding(mesh, spec)._to_xla_hlo_sharding(2)


@pytest.mark.parametrize("spec", [jax.P(), jax.P("x"), jax.P(None, "x"), jax.P("y", "x"), jax.P(("x", "y"))])
def test_shardings_in_xlas_form(spec):
    given, found = hlo_sharding(spec), []
    for package in (xtrace, jax):
        module = import_jax_module("jax.extend.sharding") if package is jax else sharding
        proto = module.get_serialized_proto_from_hlo_sharding(given)
        assert module.get_hlo_sharding_from_serialized_proto(proto) == given
        message = module.get_op_sharding_from_serialized_proto(proto)
        made = module.GSPMDSharding(package.devices(), given)
        assert made == module.GSPMDSharding(package.devices(), message, memory_kind="device")
        assert hash(made) == hash(made.with_memory_kind("device"))
        same = package.sharding.NamedSharding(package.make_mesh((2, 4), ("x", "y")), package.P(*spec))
        assert made.is_equivalent_to(same, 2)
        x = package.device_put(np.arange(64.0, dtype=np.float32).reshape(8, 8), made)
        doubled = package.jit(lambda x: x * 2, in_shardings=made, out_shardings=made)(x)
        found.append((
            proto, repr(made), made.shard_shape((8, 8)), made.is_fully_replicated, made.num_devices,
            {d.id: index for d, index in made.devices_indices_map((8, 8)).items()},
            repr(module.GSPMDSharding.get_replicated(package.devices())), repr(x.sharding),
            [np.asarray(s.data).tolist() for s in doubled.addressable_shards],
        ))
    assert found[0] == found[1]


def test_wrong_shardings():
    given = hlo_sharding(jax.P("x"))
    made = sharding.GSPMDSharding(xtrace.devices(), given)
    with pytest.raises(xtrace.errors.IndivisibleError, match="partitioned 2 times, but the dimension size is 3"):
        made.shard_shape((3, 2))
    with pytest.raises(ValueError, match=r"only valid for values of rank at least 2, but was applied to .* rank 1"):
        xtrace.device_put(np.ones(4), made)
    with pytest.raises(ValueError, match="is for 8 devices, but devices has 2"):
        sharding.GSPMDSharding(xtrace.devices()[:2], given)
    with pytest.raises(TypeError, match="op_sharding must be jaxlib's HloSharding or OpSharding, got 3"):
        sharding.GSPMDSharding(xtrace.devices(), 3)
    for devices in (3, [], [3]):
        with pytest.raises(TypeError, match="devices must be a sequence of devices"):
            sharding.GSPMDSharding(devices, given)
    with pytest.raises(NotImplementedError, match="neither splits arrays nor copies them"):
        sharding.GSPMDSharding(xtrace.devices(), type(given).manual())
    with pytest.raises(ValueError, match="no memory of kind 'tape'"):
        made.with_memory_kind("tape")
    for function in (sharding.get_hlo_sharding_from_serialized_proto, sharding.get_op_sharding_from_serialized_proto):
        with pytest.raises(TypeError, match="sharding must be bytes, got 3"):
            function(3)
    with pytest.raises(TypeError, match="must be jaxlib's HloSharding, got 3"):
        sharding.get_serialized_proto_from_hlo_sharding(3)
