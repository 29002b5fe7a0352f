"""Primitives of users: their rules, in JAX's conventions, under all transformations; the same programs run on jax."""

import functools
import importlib
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operations import plain_text


def library(package):
    modules = [f"interpreters.{name}" for name in ("ad", "batching", "mlir", "partial_eval", "xla")]
    loaded = {name.rpartition(".")[2]: importlib.import_module(f"{package.__name__}.{name}")
              for name in [*modules, "extend.core", "extend.core.primitives", "extend.linear_util", "api_util"]}
    return SimpleNamespace(package=package, np=package.numpy, lax=package.lax, **loaded)


OURS, THEIRS = library(xtrace), library(jax)


@functools.cache
def multiply_add(package):
    """The primitive of JAX's tutorial on primitives: x * y + z with all its rules."""
    lib = library(package)
    p = lib.core.Primitive("multiply_add")
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    p.def_abstract_eval(lambda x, y, z: x)
    lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def jvp(primals, tangents):
        (x, y, z), (xt, yt, zt) = primals, tangents
        zero = lib.ad.instantiate_zeros
        result = p.bind(x, y, z)
        return result, p.bind(zero(xt), y, p.bind(x, zero(yt), zero(zt)))

    def transpose(ct, x, y, z):
        if not lib.ad.is_undefined_primal(x):
            return None, None if not lib.ad.is_undefined_primal(y) else p.bind(ct, x, lib.np.zeros_like(ct)), ct
        return p.bind(ct, y, lib.np.zeros_like(ct)), None, ct

    lib.ad.primitive_jvps[p] = jvp
    lib.ad.primitive_transposes[p] = transpose

    def batch(operands, axes):
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        together = [lib.batching.bdim_at_front(x, a, size) for x, a in zip(operands, axes, strict=True)]
        return p.bind(*together), 0

    lib.batching.primitive_batchers[p] = batch
    return lambda x, y, z: p.bind(x, y, z)


@pytest.mark.parametrize("transform", [
    lambda package, f: package.jvp(f, (X, X), (X, X))[1],
    lambda package, f: package.jit(package.grad(lambda x: f(x, X).sum()))(X),
    lambda package, f: package.vmap(package.grad(lambda x, y: f(x, y).sum()))(X.reshape(2, 3), X.reshape(2, 3)),
], ids=["jvp", "jit-grad", "vmap-grad"])
def test_rules_are_given_tuples_as_jaxs_are(transform):
    results = []
    for lib in (OURS, THEIRS):
        p, types = lib.core.Primitive("product_of_two"), set()
        p.multiple_results = True
        p.def_impl(lambda x, y: [x * y])
        p.def_abstract_eval(lambda x, y: [x])
        lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x, y: [x * y], multiple_results=True))

        def jvp(primals, tangents, lib=lib, types=types):
            types.add(("jvp", type(primals), type(tangents)))
            return primals[0] * primals[1], lib.package.vmap(
                lambda xs, ts: xs[0] * ts[1] + xs[1] * ts[0], in_axes=((0, 0), (0, 0))
            )(primals, tuple(map(lib.ad.instantiate_zeros, tangents)))

        def wrapped_jvp(primals, tangents, jvp=jvp):
            result, tangent = jvp(primals, tangents)
            return [result], [tangent]

        def batch(operands, axes, p=p, types=types):
            types.add(("batch", type(operands), type(axes)))
            return p.bind(*operands), [axes[0]]

        lib.ad.primitive_jvps[p] = wrapped_jvp
        lib.batching.primitive_batchers[p] = batch
        results.append((np.asarray(transform(lib.package, lambda x, y, p=p: p.bind(x, y)[0])), types))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("name", ["Zero", "UndefinedPrimal"])
def test_marks_of_types_are_nodes_without_leaves(name):
    results = []
    for lib in (OURS, THEIRS):
        mark = getattr(lib.ad, name)(lib.package.typeof(X))
        leaves, structure = lib.package.tree.flatten(mark)
        mapped = lib.package.vmap(lambda x, kept: (x, kept), in_axes=(0, None))(X, mark)[1]
        compiled = lib.package.jit(lambda x, kept: (x, kept))(X, mark)[1]
        results.append((leaves, str(structure), repr(structure.unflatten([])), repr(mapped), repr(compiled)))
    assert results[0] == results[1]


@functools.cache
def add_mean(package):
    """Primitives that add the mean of the rows, or of the numbers: one with each of JAX's rules for a mapped axis."""
    lib = library(package)
    seen = []

    def make(name, registry, rule):
        p = lib.core.Primitive(name)
        p.def_impl(lambda x: x + lib.np.mean(x))
        p.def_abstract_eval(lambda x: x)
        lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x: x + lib.np.mean(x), multiple_results=False))
        registry[p] = rule
        return p.bind

    def batch_named(size, name, trace_type, operands, axes):
        seen.append((size, name if isinstance(name, str) else None, trace_type, axes))
        mapped = package.vmap(lambda x: x + lib.np.mean(x), axes, axis_name=name, axis_size=size)
        return mapped(*operands), 0

    def batch_of_axis(axis, operands, axes):
        return batch_named(axis.size, axis.name, None, operands, axes)

    named = make("add_mean_named", lib.batching.axis_primitive_batchers, batch_named)
    return named, make("add_mean", lib.batching.fancy_primitive_batchers, batch_of_axis), seen


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("call", [
    lambda lib, f: lib.package.vmap(f)(X.reshape(2, 3)),
    lambda lib, f: lib.package.jit(lib.package.vmap(f, in_axes=1, axis_name="rows"))(X.reshape(2, 3)),
    lambda lib, f: lib.package.vmap(lib.package.vmap(f), in_axes=2)(X.reshape(1, 2, 3)),
], ids=["vmap", "jit-vmap-named", "vmap-vmap"])
def test_rules_that_are_given_the_mapped_axis(call, number):
    results = []
    for lib in (OURS, THEIRS):
        *primitives, seen = add_mean(lib.package)
        seen.clear()
        results.append((np.asarray(call(lib, primitives[number])), list(seen)))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    assert results[0][1] == results[1][1] != []


X = np.linspace(-1, 1, 6, dtype=np.float32)


@pytest.mark.parametrize("call", [
    lambda lib, f: f(X, X + 1, X),
    lambda lib, f: lib.package.jit(f)(X, X + 1, X),
    lambda lib, f: lib.package.jvp(f, (X, X + 1, X), (X, X, X)),
    lambda lib, f: lib.package.jvp(lambda x: f(x, X, X), (X,), (X,)),
    lambda lib, f: lib.package.grad(lambda x, z: f(x, X, z).sum(), (0, 1))(X, X),
    lambda lib, f: lib.package.jit(lib.package.grad(lambda x, z: f(x, X, z).sum(), (0, 1)))(X, X),
    lambda lib, f: lib.package.vmap(f, (0, None, 0))(lib.np.ones((3, 6)), X, lib.np.ones((3, 6))),
    lambda lib, f: lib.package.jit(lib.package.vmap(lib.package.grad(lambda x: f(x, X, X).sum())))(np.ones((3, 6))),
    lambda lib, f: lib.lax.scan(lambda c, x: (f(c, x, c), c), X[0], X)[1],
    lambda lib, f: lib.package.grad(lambda x: lib.lax.scan(lambda c, x: (f(c, x, c), None), x[0], X)[0])(X),
])
def test_the_tutorials_primitive(call):
    ours, theirs = (call(lib, multiply_add(lib.package)) for lib in (OURS, THEIRS))
    for mine, other in zip(xtrace.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-6)


def test_jaxprs_show_the_primitive_and_its_parameters():
    texts = []
    for lib in (OURS, THEIRS):
        p = lib.core.Primitive("shift")
        p.multiple_results = True
        p.def_abstract_eval(lambda x, by, twice: [x, x])
        closed = lib.package.make_jaxpr(lambda x, p=p: p.bind(x, by=2, twice=(1, "a")))(X)
        equation = closed.eqns[0]
        assert equation.primitive is p and equation.params == {"by": 2, "twice": (1, "a")}
        assert p.get_bind_params(equation.params) == {"by": 2, "twice": (1, "a")}
        texts.append(plain_text(str(closed)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("value", [3, 2.5, 2j, True, np.float64(1.5), np.arange(2), np.float32(2)])
def test_a_users_evaluation_is_given_numbers_and_arrays_of_numpy_with_their_dtypes(value):
    results = []
    for lib in (OURS, THEIRS):
        p, given = lib.core.Primitive("twice"), []
        p.def_impl(lambda *operands, given=given: given.extend(operands) or 2 * operands[0])
        result = p.bind(value, lib.np.ones(2))
        assert isinstance(given[1], lib.package.Array)
        results.append((type(result), np.result_type(result), np.array(result).tolist(), getattr(given[0], "dtype", 0)))
    assert results[0] == results[1]


def test_methods_of_a_subclass_are_rules():
    seen = []
    for lib in (OURS, THEIRS):
        class Scaled(lib.core.Primitive):
            multiple_results = True

            def impl(self, x, *, by):
                return [x * by, x + by]

            def abstract_eval(self, x, *, by):
                return [x] * by, set()

        scaled = Scaled("scaled")
        lib.mlir.register_lowering(scaled, lambda context, x, by: [x] * by)
        seen.append([
            str(lib.package.make_jaxpr(functools.partial(scaled.bind, by=2))(X)), str(scaled.bind(X, by=2)),
            str(lib.package.jit(functools.partial(scaled.bind, by=2))(X)), scaled.multiple_results,
            [str(t) for t in scaled.abstract_eval(lib.package.typeof(X), by=3)[0]],
            str(lib.primitives.sin_p.abstract_eval(lib.package.typeof(X), accuracy=None)),
        ])
    assert seen[0] == seen[1]


def test_rules_that_are_not_there_say_how_to_register_them():
    p = xtrace.extend.core.Primitive("bare")
    with pytest.raises(NotImplementedError, match=r"Abstract evaluation for 'bare' not implemented.*def_abstract_eval"):
        xtrace.make_jaxpr(p.bind)(X)
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match=r"primitive 'bare' not found.*register_lowering"):
        xtrace.jit(p.bind)(X)
    with pytest.raises(NotImplementedError, match=r"Differentiation rule for 'bare' not implemented.*primitive_jvps"):
        xtrace.jvp(p.bind, (X,), (X,))
    with pytest.raises(NotImplementedError, match=r"Batching rule for .bare. not implemented.*primitive_batchers"):
        xtrace.vmap(p.bind)(X)
    for registry in (OURS.ad.primitive_jvps, OURS.ad.primitive_transposes, OURS.batching.primitive_batchers):
        with pytest.raises(KeyError):
            registry[p]
        assert p not in registry and registry.get(p) is None
        with pytest.raises(TypeError, match="registered for a primitive"):
            registry["sin"] = lambda *_: None
        with pytest.raises(TypeError, match="must be a function"):
            registry[p] = 3


def test_none_states_that_there_is_no_rule():
    primitive = xtrace.extend.core.Primitive("without_transpose")
    primitive.def_abstract_eval(lambda x: x)
    rules = xtrace.interpreters.ad.primitive_transposes
    rules[primitive] = None
    assert primitive not in rules
    with pytest.raises(NotImplementedError, match="for 'without_transpose' not implemented"):
        xtrace.linear_transpose(primitive.bind, 1.0)(1.0)


def test_built_in_rules_are_found_and_replaced():
    rule = OURS.ad.primitive_jvps[xtrace.lax.sin_p]
    value, tangent = rule((X,), (OURS.ad.Zero.from_primal_value(X),))
    np.testing.assert_allclose(value, np.sin(X), rtol=1e-6)
    assert type(tangent) is OURS.ad.Zero and tangent.aval.shape == (6,)
    np.testing.assert_allclose(rule((X,), (X,))[1], np.cos(X) * X, rtol=1e-6)
    (cotangent,) = OURS.ad.primitive_transposes[xtrace.lax.neg_p](X, OURS.ad.UndefinedPrimal(xtrace.typeof(X)))
    np.testing.assert_array_equal(cotangent, -X)
    assert OURS.batching.primitive_batchers[xtrace.lax.sin_p]((np.ones((2, 6)),), (1,))[1] == 1
    assert OURS.batching.axis_primitive_batchers[xtrace.lax.sin_p](6, "i", None, (np.ones((2, 6)),), (1,))[1] == 1
    assert len(OURS.ad.primitive_jvps) > 100 and xtrace.lax.sin_p in {*OURS.ad.primitive_jvps}


def test_a_rule_that_builds_mlir():
    results = []
    for lib in (OURS, THEIRS):
        p = lib.core.Primitive("mlir_sum")
        p.def_abstract_eval(lambda x, y, scale: x)

        def rule(ctx, x, y, *, scale, lib=lib):
            assert [a.shape for a in ctx.avals_in] == [(6,), (6,)] and ctx.avals_out[0].shape == (6,)
            from jaxlib.mlir.dialects import stablehlo

            total = stablehlo.add(x, y)
            factor = lib.mlir.ir_constant(np.full(6, scale, np.float32))
            return [stablehlo.multiply(total, factor)]

        lib.mlir.register_lowering(p, rule)
        function = lib.package.jit(lambda x, y, p=p: p.bind(x, p.bind(y, y, scale=3.0), scale=0.5) + 1)
        results.append(np.asarray(function(X, X)))
    np.testing.assert_array_equal(*results)


def test_a_rule_of_a_wrong_type_is_found_before_xla_sees_it():
    p = xtrace.extend.core.Primitive("wrong_type")
    p.def_abstract_eval(lambda x: xtrace.core.ShapedArray((3,), x.dtype))
    OURS.mlir.register_lowering(p, lambda ctx, x: [x])
    with pytest.raises(TypeError, match=r"rule of wrong_type returned .* types \(tensor<6xf32>\).*tensor<3xf32>"):
        xtrace.jit(p.bind)(X)


def test_a_rule_may_use_a_lowered_function():
    p = xtrace.extend.core.Primitive("both")
    p.def_abstract_eval(lambda x: x)
    inner = OURS.mlir.lower_fun(lambda x: xtrace.numpy.tanh(x) * 2, multiple_results=False)
    OURS.mlir.register_lowering(p, lambda ctx, x: inner(ctx, x))
    np.testing.assert_allclose(xtrace.jit(lambda x: p.bind(p.bind(x)))(X), 2 * np.tanh(2 * np.tanh(X)), rtol=1e-5)


def test_a_rule_for_one_platform():
    p = xtrace.extend.core.Primitive("placed")
    p.def_abstract_eval(lambda x: x)
    OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x: x * 3, multiple_results=False), platform="gpu")
    with pytest.raises(NotImplementedError, match="primitive 'placed' not found"):
        xtrace.jit(p.bind)(X)
    OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x: x * 2, multiple_results=False), platform="cpu")
    np.testing.assert_array_equal(xtrace.jit(p.bind)(X), X * 2)


def test_interpreters_of_jaxprs_run():
    """The inverse of JAX's documentation on interpreters."""

    def inverse(lib, function):
        inverses = {lib.lax.exp_p: lib.np.log, lib.lax.tanh_p: lib.np.arctanh}

        def inverted(*args):
            jaxpr = lib.package.make_jaxpr(function)(*args)
            environment = dict(zip(jaxpr.jaxpr.outvars, args, strict=True))
            for equation in jaxpr.eqns[::-1]:
                (out,) = equation.outvars
                environment[equation.invars[0]] = inverses[equation.primitive](environment[out])
            return environment[jaxpr.jaxpr.invars[0]]

        return inverted

    for lib in (OURS, THEIRS):
        def function(x, lib=lib):
            return lib.np.exp(lib.np.tanh(x))

        np.testing.assert_allclose(inverse(lib, function)(function(1.0)), 1.0, rtol=1e-5)


def test_partial_evaluation_computes_with_what_is_known():
    calls = []
    for lib in (OURS, THEIRS):
        def function(x, y, lib=lib):
            calls.append(float(x))
            return [x + 1, lib.np.sin(x) * y, y * 2]

        names = lib.api_util.debug_info("test", function, (1.0, 2.0), {})
        wrapped = lib.linear_util.wrap_init(function, debug_info=names)
        given = [lib.partial_eval.PartialVal.known(2.0),
                 lib.partial_eval.PartialVal.unknown(lib.package.core.ShapedArray((3,), np.dtype("float32")))]
        jaxpr, results, constants = lib.partial_eval.trace_to_jaxpr_nounits(wrapped, given)
        assert [r.is_known() for r in results] == [True, False, False] and results[0].get_known() == 3.0
        assert results[1].get_aval().shape == (3,)
        values = lib.package.core.eval_jaxpr(jaxpr, constants, np.ones(3, np.float32))
        np.testing.assert_allclose(values[0], np.sin(np.float32(2)) * np.ones(3), rtol=1e-6)
    assert calls == [2.0, 2.0]


def test_names_of_the_arguments_of_a_trace():
    def function(x, y, *rest, key, **others):
        return x

    args = (1, {"a": 2}, 3, (4, 5))
    for lib in (OURS, THEIRS):
        def paths(*numbers, lib=lib, **options):
            kwargs = {"key": [6], "z": 7}
            return lib.api_util.debug_info("test", function, args, kwargs, static_argnums=numbers, **options).arg_names

        assert paths() == ("x", "y['a']", "rest[0]", "rest[1][0]", "rest[1][1]", "key[0]", "others['z']")
        assert paths(0, static_argnames=("z",))[0] == "y['a']"
        info = lib.api_util.debug_info("test", function, (), {})
        place = info.func_name, info.func_filename, info.func_lineno
        assert place == ("function", __file__, function.__code__.co_firstlineno)


def test_positions_of_donated_arguments_are_counted_once():
    for lib in (OURS, THEIRS):
        assert lib.api_util.rebase_donate_argnums((3, 3, 2), (0, 1)) == (0, 1)


def test_functions_of_leaves():
    for lib in (OURS, THEIRS):
        def function(x, y):
            return {"sum": x + y["a"]}

        leaves, tree = lib.package.tree.flatten(((1, {"a": 2}), {}))
        names = lib.api_util.debug_info("test", function, (1, {"a": 2}), {})
        flat, out_tree = lib.api_util.flatten_fun(lib.linear_util.wrap_init(function, debug_info=names), tree)
        assert flat.call_wrapped(*leaves) == [3]
        assert out_tree() == lib.package.tree.structure({"sum": 0})


def test_the_trace_in_force():
    for lib in (OURS, THEIRS):
        states = []
        state = lib.core.get_opaque_trace_state(convention="test")
        lib.package.jit(lambda x, lib=lib, s=states: s.append(lib.core.get_opaque_trace_state()) or x)(1.0)
        assert state == lib.core.get_opaque_trace_state() and state != states[0]
        with lib.core.take_current_trace() as trace, lib.core.set_current_trace(trace):
            assert state == lib.core.get_opaque_trace_state()
        assert lib.core.concrete_or_error(int, np.int32(3)) == 3


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("mapped", [False, True])
def test_interpreters_bind_and_call_functions_with_custom_rules(kind, mapped):
    """An interpreter of a jaxpr keeps the rules if it binds an equation, and calls the function through `subfuns`."""
    found = []
    for lib in (OURS, THEIRS):
        function = getattr(lib.package, f"custom_{kind}")(lib.np.sin)
        if kind == "jvp":
            function.defjvp(lambda primals, tangents, lib=lib: (lib.np.sin(primals[0]), 3.0 * tangents[0]))
        else:
            function.defvjp(lambda x, lib=lib: (lib.np.sin(x), None), lambda _, ct: (3.0 * ct,))
        x = np.arange(3, dtype=np.float32) if mapped else np.float32(0.5)
        (equation,) = lib.package.make_jaxpr(lib.package.vmap(function) if mapped else function)(x).eqns
        given = equation.primitive.get_bind_params(equation.params)
        assert equation.primitive is getattr(lib.core.primitives, f"custom_{kind}_call_p")
        assert "call_jaxpr" not in given and len(given["subfuns"]) == (2 if kind == "jvp" else 3)
        called = given["subfuns"][0].call_wrapped

        def bound(x, equation=equation, given=given):
            return equation.primitive.bind(x, **given)[0]

        rule = lib.package.vjp(bound, x)[1](np.ones_like(x))
        own = lib.package.vjp(lambda x, called=called: called(x)[0], x)[1](np.ones_like(x))
        text = plain_text(str(lib.package.make_jaxpr(lambda x, called=called: called(x))(x)))
        found.append([bound(x), called(x), rule, own, text])
    assert found[0][-1] == found[1][-1]
    for ours, theirs in zip(*map(xtrace.tree.leaves, (found[0][:-1], found[1][:-1])), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
