"""Lowering rules that build MLIR, with all that jax.interpreters.mlir offers them; the same rules run on jax."""

import importlib
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import xtrace
from tests.support.jax_modules import import_jax_module
from xtrace.extend.mlir import ir
from xtrace.extend.mlir.dialects import func, stablehlo
from xtrace.interpreters import mlir

X = np.linspace(-1, 1, 6, dtype=np.float32)


def library(package):
    name = package.__name__
    load = import_jax_module if package is jax else importlib.import_module
    return SimpleNamespace(
        package=package, np=package.numpy, lax=package.lax, mlir=load(f"{name}.interpreters.mlir"),
        core=load(f"{name}.extend.core"), ffi=load(f"{name}.ffi"),
    )


OURS, THEIRS = library(xtrace), library(jax)


def primitive(lib, name, rule, abstract=lambda x, **_: x, several=False):
    p = lib.core.Primitive(name)
    p.multiple_results = several
    p.def_abstract_eval(abstract)
    lib.mlir.register_lowering(p, lambda ctx, *args, **parameters: rule(lib, ctx, *args, **parameters))
    return p


def waves(lib):
    """A jaxpr with a constant, a call and a loop."""
    def function(x):
        def body(carry, y):
            return carry * 0.5 + y, carry

        inner = lib.package.jit(lambda x: lib.np.sin(x) * np.arange(6, dtype=np.float32))
        return inner(x) + lib.lax.scan(body, 0.0, inner(x))[1]

    return lib.package.make_jaxpr(function)(X)


def expected():
    y, carry, carries = np.sin(X) * np.arange(6), 0.0, []
    for each in y:
        carries.append(carry)
        carry = carry * 0.5 + each
    return y + np.array(carries)


def by_call(lib, ctx, x):
    return lib.mlir.core_call_lowering(ctx, x, name="waves", call_jaxpr=waves(lib))


def by_function(lib, ctx, x):
    closed = waves(lib)
    made = [
        lib.mlir.lower_jaxpr_to_fun(ctx.module_context, "waves", closed, [], num_const_args=0, in_avals=closed.in_avals)
        for _ in range(2)
    ]
    assert len({f.name.value for f in made}) == 2 and made[0].name.value == "waves"
    assert made[1].name.value in ctx.module_context.symbol_table
    return func.CallOp(made[1], [x]).results


def inlined(lib, ctx, x):
    closed = waves(lib)
    results, tokens = lib.mlir.jaxpr_subcomp(
        ctx.module_context, closed.jaxpr, ctx.name_stack, ctx.tokens_in,
        [lib.mlir.ir_constant(c) for c in closed.consts], x, dim_var_values=ctx.dim_var_values,
        const_lowering=ctx.const_lowering, outer_traceback=None,
    )
    assert tokens.effects() == set()
    return results


def by_tracing(lib, ctx, x):
    closed = waves(lib)
    return lib.mlir.lower_fun(lib.core.jaxpr_as_fun(closed))(ctx, x)


@pytest.mark.parametrize("rule", [by_call, by_function, inlined, by_tracing], ids=lambda rule: rule.__name__)
def test_jaxprs_in_rules(rule):
    found = []
    for lib in (OURS, THEIRS):
        p = primitive(lib, f"jaxpr_{rule.__name__}", rule)
        found.append(np.asarray(lib.package.jit(lambda x, p=p: p.bind(x) + p.bind(x * 2) * 0)(X)))
    np.testing.assert_allclose(found[0], expected(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_what_rules_are_told():
    seen = []
    for lib in (OURS, THEIRS):
        def rule(lib, ctx, x, scale, seen=seen):
            module = ctx.module_context
            assert isinstance(module.context, ir.Context)
            assert isinstance(module.module, ir.Module) and module.ip is not None and module.symbol_table is not None
            assert module.new_channel() < module.new_channel() and module.get_backend(optional=True) is not None
            assert module.replace(platforms=("cuda",)).platforms == ("cuda",)
            assert ctx.replace(platforms=("cpu",)).platforms == ("cpu",)
            module.add_keepalive(object())
            module.add_host_callback(object())
            assert len(module.keepalives) == len(module.host_callbacks) == 1
            del module.host_callbacks[:]
            seen.append((
                tuple(module.platforms), str(ctx.primitive), [a.shape for a in ctx.avals_in],
                [a.dtype.name for a in ctx.avals_out], ctx.tokens_in.effects(), ctx.tokens_out, ctx.is_forward_compat(),
                tuple(ctx.dim_var_values), module.lowering_parameters == lib.mlir.LoweringParameters(), scale,
                type(module.axis_context).__name__, module.axis_context.num_devices,
                module.shape_poly_state.uses_dim_vars, module.all_default_mem_kind,
            ))
            return [x]

        p = primitive(lib, "told", rule)

        def function(x, p=p, lib=lib):
            with lib.package.named_scope("inside"):
                return p.bind(x, scale=3)

        np.testing.assert_array_equal(lib.package.jit(function)(X), X)
    assert seen[0] == seen[1]


def test_rules_call_python():
    found = []
    for lib in (OURS, THEIRS):
        calls = []

        def callback(x, calls=calls):
            calls.append(np.asarray(x).copy())
            return np.sort(np.asarray(x))[::-1], np.int32(len(calls))

        def rule(lib, ctx, x, callback=callback):
            results, token, keepalive = lib.mlir.emit_python_callback(
                ctx, callback, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
            )
            assert token is None
            ctx.module_context.add_keepalive(keepalive)
            return results

        number = lib.package.core.ShapedArray((), np.dtype("int32"))
        p = primitive(lib, "python", rule, lambda x, number=number: [x, number], several=True)
        function = lib.package.jit(lambda x, p=p: p.bind(x + 1))
        found.append([np.asarray(r).tolist() for x in (X, X * 2) for r in function(x)])
        assert len(calls) == 2
    assert found[0] == found[1]


def test_python_is_called_in_order_with_tokens():
    # jax 0.10.2 ends the process here.
    calls = []

    def rule(lib, ctx, x):
        token = stablehlo.create_token()
        for number in range(3):
            _, token, keepalive = mlir.emit_python_callback(
                ctx, lambda x, number=number: calls.append((number, float(x[0]))) or (), token, [x], ctx.avals_in, [],
                has_side_effect=True,
            )
            ctx.module_context.add_keepalive(keepalive)
            assert token.type == mlir.token_type()
        return [x]

    xtrace.block_until_ready(xtrace.jit(primitive(OURS, "ordered_python", rule).bind)(X))
    xtrace.effects_barrier()
    assert calls == [(0, -1.0), (1, -1.0), (2, -1.0)]


def test_a_callback_of_wrong_results_fails():
    for given, message in (((X, X), "returned 2 arrays, and must return 1"), ((X[:2],), r"the shape \(2,\)")):
        def rule(lib, ctx, x, given=given):
            return lib.mlir.emit_python_callback(
                ctx, lambda x: given, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
            )[0]

        with pytest.raises(Exception, match=message):
            xtrace.block_until_ready(xtrace.jit(primitive(OURS, "wrong_python", rule).bind)(X))


def test_lowered_functions_in_rules_may_print(capsys):
    def function(x):
        xtrace.debug.print("value {}", x[0])
        return x * 2

    inner = mlir.lower_fun(function, multiple_results=False)
    p = primitive(OURS, "printing", lambda lib, ctx, x: inner(ctx, x))
    np.testing.assert_array_equal(xtrace.jit(p.bind)(X), X * 2)
    xtrace.effects_barrier()
    assert capsys.readouterr().out == "value -1.0\n"


def test_modules_of_jaxprs():
    texts = []
    for lib in (OURS, THEIRS):
        closed = lib.package.make_jaxpr(lambda x, y, lib=lib: (lib.np.sin(x), y * x))(X, X)
        given = {
            "num_const_args": 0, "in_avals": closed.in_avals, "ordered_effects": [], "platforms": ["cpu"],
            "backend": None, "axis_context": lib.mlir.ShardingContext(1), "donated_args": [False, True],
            "lowering_parameters": lib.mlir.LoweringParameters(), "result_names": ["a", "b"],
        }
        made = lib.mlir.lower_jaxpr_to_module("waves", closed, **given)
        assert isinstance(made, lib.mlir.LoweringResult) and not made.host_callbacks and not made.keepalive
        assert made.shape_poly_state.dim_vars == ()
        texts.append(str(made.module))
        with pytest.raises((ValueError, AssertionError)):
            lib.mlir.lower_jaxpr_to_module("waves", closed, **given | {"donated_args": [False]})
        target = ir.Module.parse("module { func.func @waves() { return } }", made.module.context)
        with target.context:
            name = lib.mlir.merge_mlir_modules(target, "waves", made.module)
        assert name.startswith("waves_") and f"func.func private @{name}(%arg0" in str(target)
        assert "func.func @waves()" in str(target) and target.operation.verify()
    assert texts[0] == texts[1]
    for change, error, message in (
        ({"platforms": ["cpu", "cuda"]}, NotImplementedError, "several platforms"),
        ({"platforms": []}, ValueError, "platforms must be names"),
        ({"in_layouts": [None]}, NotImplementedError, "layouts are not supported"),
        ({"num_const_args": 1}, NotImplementedError, "constant arguments"),
        ({"in_avals": []}, TypeError, r"in_avals are \(\), and jaxpr takes \(f32"),
        ({"result_names": ["a"]}, ValueError, "result_names must have 2 entries"),
        ({"lowering_parameters": mlir.LoweringParameters(override_lowering_rules=((xtrace.lax.sin_p, len),))},
         NotImplementedError, "use register_lowering"),
    ):
        closed = xtrace.make_jaxpr(lambda x, y: (x, y))(X, X)
        given |= {"in_avals": closed.in_avals, "axis_context": mlir.ShardingContext(1),
                  "lowering_parameters": mlir.LoweringParameters()}
        with pytest.raises(error, match=message):
            mlir.lower_jaxpr_to_module("waves", closed, **given | change)


def test_a_module_for_several_devices():
    mesh = xtrace.make_mesh((2,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    split = xtrace.sharding.NamedSharding(mesh, xtrace.P("x"))
    closed = xtrace.make_jaxpr(lambda x: x * 2)(X)
    made = mlir.lower_jaxpr_to_module(
        "double", closed, num_const_args=0, in_avals=closed.in_avals, ordered_effects=[], platforms=["cpu"],
        backend=None, axis_context=mlir.SPMDAxisContext(mesh), donated_args=[False], num_partitions=2,
        arg_shardings=[split], result_shardings=[None], lowering_parameters=mlir.LoweringParameters(),
    )
    text = str(made.module)
    assert "mhlo.num_partitions = 2" in text and '#sdy.sharding<mesh<["x"=2]>, [{"x"}]>' in text


# Values, types, tokens


@pytest.mark.parametrize("value", [
    True, 3, np.int8(3), 2.5, "text", b"bytes", [1, 2.0, "a"], (1, 2), {"a": 1, "b": [True]}, np.float32(2),
    np.float64(1), np.bool_(True), np.arange(3), np.ones((2, 2), np.float32), np.array([True, False]),
    np.zeros(0, np.int32), np.dtype("int32"), np.dtype("float32"),
], ids=repr)
def test_attributes(value):
    texts = []
    for lib in (OURS, THEIRS):
        with lib.mlir.make_ir_context(), ir.Location.unknown():
            texts.append(str(lib.mlir.ir_attribute(value)))
            kept = ir.UnitAttr.get()
            assert lib.mlir.ir_attribute(kept) == kept
    assert texts[0] == texts[1]


@pytest.mark.filterwarnings("ignore:jax.interpreters.mlir:DeprecationWarning")
def test_trees_of_types_and_values():
    for lib in (OURS, THEIRS):
        with lib.mlir.make_ir_context():
            number, token = ir.F32Type.get(), lib.mlir.token_type()
            assert lib.mlir.flatten_ir_types([number, (token, [number])]) == [number, token, number]
            assert lib.mlir.ir_tree_registry.flatten([1, (2, [3]), None, {"a": 2}])[0] == [1, 2, 3, None, {"a": 2}]
            found = lib.mlir.unflatten_ir_values_like_types([1, 2, 3], [number, (token, number)])
            assert found == [1, (2, 3)]
            for values in ([1, 2], [1, 2, 3, 4]):
                with pytest.raises(ValueError):
                    lib.mlir.unflatten_ir_values_like_types(values, [number, (token, number)])
    kinds = mlir.aval_to_ir_types(None, xtrace.core.ShapedArray((2,), np.dtype("float32")))
    assert [str(k) for k in kinds] == ["tensor<2xf32>"]
    assert str(mlir.aval_to_ir_type(None, xtrace.ffi.abstract_token)) == "!stablehlo.token"
    with pytest.raises(TypeError, match="3 is not an array type"):
        mlir.aval_to_ir_type(None, 3)


def test_types_of_users():
    class Pair:
        pass

    mlir.ir_type_handlers[Pair] = lambda pair: (mlir.dtype_to_ir_type("float32"), mlir.dtype_to_ir_type("int32"))
    try:
        assert len(mlir.aval_to_ir_types(None, Pair())) == 2
        with pytest.raises(TypeError, match="have 2 MLIR types"):
            mlir.aval_to_ir_type(None, Pair())
    finally:
        del mlir.ir_type_handlers[Pair]


def test_constants_of_users():
    class Scale:
        factor = np.float32(3)

    found = []
    for lib in (OURS, THEIRS):
        lib.mlir.register_constant_handler(Scale, lambda scale, aval, lib=lib: lib.mlir.ir_constant(scale.factor))

        def rule(lib, ctx, x):
            (value,) = lib.mlir.ir_constants(Scale())
            with pytest.raises(TypeError, match="No constant handler for type"):
                lib.mlir.ir_constant(object())
            return [stablehlo.multiply(x, lib.mlir.ir_constant(Scale())), stablehlo.add(x, value)]

        p = primitive(lib, "scaled", rule, lambda x: [x, x], several=True)
        found.append([float(x) for x in lib.package.jit(p.bind)(2.0)])
    assert found == [[6.0, 5.0], [6.0, 5.0]]
    for given in ((3, len), (Scale, 3)):
        with pytest.raises(TypeError, match="register_constant_handler"):
            mlir.register_constant_handler(*given)


@pytest.mark.parametrize("sizes", [(), (2,), (2, 3), (np.int64(2), 3)])
def test_vectors_of_sizes(sizes):
    found = []
    for lib in (OURS, THEIRS):
        aval = lib.package.core.ShapedArray((len(sizes) + bool(sizes),), np.dtype("int32"))

        def rule(lib, ctx, x, sizes=sizes):
            given = [int(s) if lib is THEIRS else s for s in sizes]
            return lib.mlir.shape_tensor(ctx.module_context, [*given, x] if sizes else [])

        p = primitive(lib, "sizes", rule, lambda x, aval=aval: aval)
        found.append(np.asarray(lib.package.jit(p.bind)(np.int32(7))).tolist())
    assert found[0] == found[1] == [*sizes, *[7] * bool(sizes)]
    with pytest.raises(TypeError, match="a size must be an integer or an MLIR value, got 'a'"):
        mlir.shape_tensor(None, ["a"])


def test_sets_of_tokens():
    for lib in (OURS, THEIRS):
        class Mine(lib.core.Effect):
            pass

        first, second = Mine(), Mine()
        with lib.mlir.make_ir_context(), ir.Location.unknown():
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                tokens = lib.mlir.TokenSet.create([first, second])
                assert len(tokens) == 2 and tokens.effects() == {first, second}
                assert [e for e, _ in tokens.items()] == [first, second]
                assert tokens.subset([second]).effects() == {second}
                new = lib.mlir.TokenSet({second: stablehlo.create_token()})
                updated = tokens.update_tokens(new)
                assert updated.get(second) == new.get(second) != tokens.get(second)
                assert updated.get(first) == tokens.get(first) and isinstance(tokens.get(first), lib.mlir.Token)
                for call in (lambda t=tokens: t.get(Mine()), lambda t=tokens: t.subset([Mine()])):
                    with pytest.raises(KeyError):
                        call()
    assert not len(mlir.TokenSet())


def test_contexts_of_devices_are_values():
    assert (mlir.DEVICE_TO_DEVICE_TYPE, mlir.SEND_TO_HOST_TYPE, mlir.RECV_FROM_HOST_TYPE) == (1, 2, 3)
    for lib in (OURS, THEIRS):
        mesh = lib.package.make_mesh((2,), ("x",))
        assert isinstance(mesh, lib.mlir.Mesh)
        assert lib.mlir.SPMDAxisContext(mesh) == lib.mlir.SPMDAxisContext(mesh, frozenset())
        assert lib.mlir.SPMDAxisContext(mesh) != lib.mlir.SPMDAxisContext(mesh, frozenset({"x"}))
        assert isinstance(lib.mlir.ShardingContext(2), lib.mlir.AxisContext.__args__)
        state = lib.mlir.ShapePolyLoweringState(("a",), ("cpu", "cuda"))
        assert state.has_platform_index_argument and state.dim_vars == ("_platform_index", "a") and state.uses_dim_vars
    with pytest.raises(NotImplementedError, match="several platforms, cpu, cuda"):
        mlir.ModuleContext(platforms=("cpu", "cuda")).get_backend()
    assert mlir.ModuleContext(platforms=("cpu", "cuda")).get_backend(optional=True) is None
    assert mlir.ModuleContext(platforms=("nowhere",)).get_backend(optional=True) is None
    with pytest.raises(RuntimeError, match="nowhere"):
        mlir.ModuleContext(platforms=("nowhere",)).get_backend()


# Effects


def effectful(lib, effect, rule):
    p = lib.core.Primitive("effectful")
    p.def_effectful_abstract_eval(lambda x: (x, {effect}))
    lib.mlir.register_lowering(p, rule)
    return lib.package.jit(lambda x: (p.bind(x), 2.0)[1]), p


def test_effects_of_users_are_kept_and_allowed():
    for lib in (OURS, THEIRS):
        class Mine(lib.core.Effect):
            def __init__(self):
                pass

        effect = Mine()
        function, p = effectful(lib, effect, lambda ctx, x: [stablehlo.negate(x)])
        jaxpr = lib.package.make_jaxpr(lambda x, p=p: (p.bind(x), 2.0)[1])(1.0)
        assert jaxpr.effects == {effect} and jaxpr.eqns[0].effects == {effect}
        assert not lib.mlir.lowerable_effects.contains(effect)
        assert lib.mlir.lowerable_effects.filter_not_in([effect]) == [effect]
        with pytest.raises(ValueError, match="Cannot lower jaxpr with effects"):
            function(1.0)
        lib.mlir.lowerable_effects.add_type(Mine)
        assert lib.mlir.lowerable_effects.filter_in([effect]) == [effect]
        assert "stablehlo.negate" in function.lower(1.0).as_text() and function(1.0) == 2.0
    with pytest.raises(TypeError, match="must be a class derived from"):
        mlir.lowerable_effects.add_type(3)


def test_ordered_effects_hand_tokens_on():
    class Ordered(xtrace.extend.core.Effect):
        ordered = True

        def __init__(self):
            pass

    effect, calls = Ordered(), []
    mlir.lowerable_effects.add_type(Ordered)

    def rule(ctx, x):
        note = ctx.primitive.name
        _, token, keepalive = mlir.emit_python_callback(
            ctx, lambda x: calls.append((note, float(x))) or (), ctx.tokens_in.get(effect), [x], ctx.avals_in, [],
            has_side_effect=True,
        )
        ctx.module_context.add_keepalive(keepalive)
        ctx.set_tokens_out(mlir.TokenSet({effect: token}))
        return [x]

    _, p = effectful(OURS, effect, rule)
    function = xtrace.jit(lambda x: sum(p.bind(x + i) for i in range(3)))
    xtrace.block_until_ready(function(1.0))
    xtrace.effects_barrier()
    assert calls == [("effectful", 1.0), ("effectful", 2.0), ("effectful", 3.0)]
    forgetful, _ = effectful(OURS, effect, lambda ctx, x: [x])
    with pytest.raises(ValueError, match=r"must call ctx\.set_tokens_out"):
        forgetful(1.0)
    with pytest.raises(TypeError, match="tokens_out must be a TokenSet, got 3"):
        mlir.LoweringRuleContext(None, None, None, None, (), (), mlir.TokenSet(), None, {}).set_tokens_out(3)


# Wrong rules


@pytest.mark.parametrize(("rule", "message"), [
    (lambda ctx, x: [x, x],
     r"returned values of types \(tensor<6xf32>, tensor<6xf32>\).*have the types \(tensor<6xf32>"),
    (lambda ctx, x: [], r"returned values of types \(\), and the primitive's results"),
    (lambda ctx, x: None, "must return an MLIR value, or a sequence of MLIR values, .*got None"),
    (lambda ctx, x: [3], r"must return an MLIR value.*got \[3\]"),
    (lambda ctx, x: "text", "must return an MLIR value.*got 'text'"),
    (lambda ctx: [], r"rule of wrong is called with a context, values of types \(f32\[6\]\): .*takes 1 positional"),
    (lambda ctx, x: [mlir.ir_constant(np.zeros(6, np.int32))], r"types \(tensor<6xi32>\), and the primitive's"),
])
def test_rules_that_return_something_else(rule, message):
    p = xtrace.extend.core.Primitive("wrong")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, rule)
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            xtrace.jit(p.bind)(X)
    mlir.register_lowering(p, lambda ctx, x: [x])
    np.testing.assert_array_equal(xtrace.jit(p.bind)(X), X)


def test_errors_in_rules_are_the_users():
    p = xtrace.extend.core.Primitive("failing")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [stablehlo.add(x)])
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        xtrace.jit(p.bind)(X)
    other = xtrace.extend.core.Primitive("no_function")
    other.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        with ctx.module_context.ip:
            stablehlo.constant(ir.DenseElementsAttr.get(np.zeros(1, np.float32)))
        return [x]

    mlir.register_lowering(other, rule)
    with pytest.raises(NotImplementedError, match=r"added the operation stablehlo.constant .* only functions"):
        xtrace.jit(other.bind)(X)
    for given in (("sin", len), (other, 3)):
        with pytest.raises(TypeError, match="register_lowering"):
            mlir.register_lowering(*given)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda ctx, x: mlir.core_call_lowering(ctx, x, x, name="f", call_jaxpr=waves(OURS)), TypeError,
     "the jaxpr has 1 inputs, and was given 2 values"),
    (lambda ctx, x: mlir.core_call_lowering(ctx, x, name="f", call_jaxpr=3), TypeError, "must be a ClosedJaxpr, got 3"),
    (lambda ctx, x: mlir.lower_fun(lambda x: x)(ctx, x, x), TypeError, "was given 2 values"),
    (lambda ctx, x: mlir.jaxpr_subcomp(
        ctx.module_context, 3, None, None, (), x, dim_var_values=(), const_lowering={}, outer_traceback=None
    ), TypeError, "jaxpr must be a Jaxpr, got 3"),
    (lambda ctx, x: mlir.emit_python_callback(ctx, 3, None, [x], [], [], has_side_effect=False), TypeError,
     "callback must be a function, got 3"),
    (lambda ctx, x: mlir.emit_python_callback(ctx, len, None, [x], [], [], has_side_effect=False), TypeError,
     "there are 1 operands, and operand_avals has 0 types"),
    (lambda ctx, x: mlir.merge_mlir_modules(3, "f", ctx.module_context.module), TypeError,
     "dst_module must be an MLIR"),
    (lambda ctx, x: mlir.merge_mlir_modules(ctx.module_context.module, "f", ctx.module_context.module), ValueError,
     "src_module has no function called main"),
])
def test_wrong_calls_in_rules(call, error, message):
    p = xtrace.extend.core.Primitive("wrong_call")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, call)
    with pytest.raises(error, match=message):
        xtrace.jit(p.bind)(X)


# Foreign functions


def factor(lib, build):
    """A primitive that factors a matrix, by LAPACK's function."""
    p = lib.core.Primitive("factor")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, **_: [x, lib.package.core.ShapedArray((), np.dtype("int32"))])
    layouts = {"operand_layouts": [(0, 1)], "result_layouts": [(0, 1), ()], "operand_output_aliases": {0: 0}}
    if build:
        call = lib.ffi.build_ffi_lowering_function("lapack_spotrf_ffi", **layouts)
        lib.mlir.register_lowering(p, lambda ctx, x, uplo: call(ctx, x, uplo=ir.IntegerAttr.get(
            ir.IntegerType.get_unsigned(8), int(uplo))).results)
    else:
        lib.mlir.register_lowering(p, lib.ffi.ffi_lowering("lapack_spotrf_ffi", **layouts))
    return p


@pytest.mark.parametrize("build", [True, False])
def test_rules_call_foreign_functions(build):
    matrix = np.array([[4, 1], [1, 3]], np.float32)
    jax.jit(jax.numpy.linalg.cholesky)(matrix)
    xtrace.jit(xtrace.numpy.linalg.cholesky)(matrix)
    found = []
    for lib in (OURS, THEIRS):
        p = factor(lib, build)
        x, status = lib.package.jit(lambda x, p=p: p.bind(x, uplo=np.uint8(ord("L"))))(matrix)
        assert int(status) == 0
        found.append(np.tril(x))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], np.linalg.cholesky(matrix), rtol=1e-6)


def test_the_operation_of_a_foreign_call():
    texts = []
    for lib in (OURS, THEIRS):
        call = lib.ffi.build_ffi_lowering_function("target", has_side_effect=True, backend_config={
            "a": ir.StringAttr.get("text", ir.Context()) if lib is None else "text"} if lib is OURS else None)
        given = {} if lib is OURS else {"a": "text"}

        def rule(lib, ctx, x, call=call, given=given):
            operation = call(ctx, x, b=2, **given)
            assert operation.operation.name == "stablehlo.custom_call"
            texts.append(str(operation).partition(" = ")[2])
            return operation.results

        lib.package.jit(primitive(lib, "foreign", rule).bind).lower(X)
    assert texts[0] == texts[1]
    with pytest.raises(TypeError, match=r"build_ffi_lowering_function takes api_version, .*; got colour"):
        xtrace.ffi.build_ffi_lowering_function("target", colour=1)
    with pytest.raises(TypeError, match="call_target_name must be a string, got 3"):
        xtrace.ffi.build_ffi_lowering_function(3)
    for arguments, details, error, message in (
        (2, {}, TypeError, "was given 2 values, and ctx.avals_in has 1"),
        (1, {"operand_layouts": [(0,), (0,)]}, ValueError, "has 1 arrays, but 2 layouts were given"),
    ):
        call = xtrace.ffi.build_ffi_lowering_function("target", **details)
        p = primitive(OURS, "wrong_foreign", lambda lib, ctx, x, c=call, n=arguments: c(ctx, *[x] * n).results)
        with pytest.raises(error, match=message):
            xtrace.jit(p.bind).lower(X)
