"""Arrays that lie in memory in layouts that users ask for, compared with jax."""

import copy
import gc
import itertools
import pickle
import re
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.experimental.serialize_executable as serialize_executable
from tests.sharding.meshes import OURS, THEIRS
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace.experimental.compilation_cache.compilation_cache import reset_cache

pytestmark = pytest.mark.thorough

X = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(64, dtype=np.float32).reshape(8, 8)


def order(array):
    """The axes of an array, the slowest first, and where it is."""
    return array.format.layout.major_to_minor, repr(array.sharding)


def heads(text):
    """What the entry function of a module says of layouts and donations."""
    line = next(line for line in text.splitlines() if "@main(" in line)
    sides = line.split(" -> ")
    words = r'mhlo\.layout_mode = "[^"]*"|tf\.aliasing_output = \d+|jax\.buffer_donor = true|tensor<[^>]*>'
    return [re.findall(words, side) for side in sides]


def names(lib):
    """The names that rows use, for one library."""
    module = lib.module
    layout = module.experimental.layout
    one = module.sharding.SingleDeviceSharding(lib.devices[0])
    t = layout.Layout((1, 0))
    return {
        "j": module, "jnp": lib.np, "lax": lib.lax, "jit": lib.jit, "put": lib.put, "np": np, "X": X, "B": B,
        "copy": copy, "order": order, "heads": heads, "S": one, "other": lib.devices[1], "T": t, "F": layout.Format,
        "L": layout.Layout, "constrain": layout.with_layout_constraint, "N": lambda *p: lib.named("x4y2", *p),
        "x": lib.put(X, layout.Format(t, one)), "b": lib.put(B, layout.Format(t, lib.named("x4y2", "x", "y"))),
        "formats": lambda c: repr((c.input_formats, c.output_formats)), "pickle": pickle,
        "keys": module.random.split(module.random.key(0), 6).reshape(2, 3),
        "AUTO": layout.Layout.AUTO, "SDS": module.ShapeDtypeStruct,
    }


def plain(value):
    """A result as text or NumPy's data, equal for equal ones of either library."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return np.asarray(value).tolist()
    return value if isinstance(value, (str, bool, int, type(None))) else repr(value)


def evaluate(lib, source):
    return plain(eval(source, names(lib)))


SAME = [
    # What arrays say, and where they go.
    "order(x), x, x.format, x.aval, j.typeof(x), np.asarray(x).strides, j.device_get(x).strides",
    "order(put(x, S)), order(put(x, S.device_set.pop())), order(put(x)), order(put(x, F(None, S)))",
    "order(put(x, other)), put(x, other), order(put(b, b.sharding))",
    "order(put(x, F(L((0, 1)), S))), put(x, F(L((0, 1)), S))",
    "order(put(x, x.format)), put(x, x.format)",
    "order(put(X, F(L((1, 0), ((2, 2),)), S))), put(X, F(L((1, 0), ((2, 2),)), S))",
    "order(put(X, F(L((0, 1), ((2, 2),)), S))), put(X, F(L((0, 1), ((2, 2),)), S)) + 1",
    "order(put({'a': X}, {'a': F(T, S)})['a']), order(put(3.0, F(L(()), S)))",
    "order(copy.copy(x)), order(copy.deepcopy(x)), order(x.copy()), order(jnp.copy(x)), order(jnp.array(x))",
    "copy.copy(x), copy.deepcopy(x), x.copy(), jnp.array(x), order(jnp.asarray(x))",
    "order(pickle.loads(pickle.dumps(x))), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(b))",
    "np.from_dlpack(x).strides, np.from_dlpack(x), order(jnp.from_dlpack(x)), jnp.from_dlpack(x) + 1",
    "jnp.from_dlpack(np.asfortranarray(X))",
    "order(x.addressable_shards[0].data), order(x.addressable_data(0)), order(x.to_device(F(T, S)))",
    "x.tobytes() == X.tobytes(), x.item(1, 2), list(x)[1], x.nbytes, x.on_device_size_in_bytes()",
    "order(put(x, may_alias=False)), order(put(x, S, may_alias=False)), order(put(x, F(T, S), may_alias=False))",
    "(lambda y: (order(put(y, F(L((0, 1)), S), donate=True)), y.is_deleted()))(put(X, F(T, S)))",
    "SDS.like(x), SDS((2, 3), np.float32, sharding=F(T, S))",
    # Operations.
    "order(x + 1), x + 1, order(jnp.sin(x)), order(x.T), x.T, x.sum(0), order(x[0]), x[0], x[:, 1]",
    "x.reshape(3, 2), x.at[0, 1].set(9), x == X, jnp.concatenate([x, x]), jnp.dot(x, x.T), order(jnp.zeros_like(x))",
    "j.vmap(lambda r: r * 2)(x), order(j.vmap(lambda r: r * 2)(x)), lax.scan(lambda c, r: (c, r * 2), 0, x)[1]",
    "j.grad(lambda a: (a ** 2).sum())(x), order(j.grad(lambda a: (a ** 2).sum())(x))",
    "j.jvp(jnp.sin, (x,), (x,)), order(lax.optimization_barrier(x))",
    "jit(lambda a: a + x)(X), heads(jit(lambda a: a + x).lower(X).as_text())",
    "j.export.export(jit(lambda a: a * 2))(x).call(x)",
    # Programs.
    "[f(x), f(put(X, S)), f(X), f._cache_size()] if (f := jit(lambda a: a * 2)) else 0",
    "order(jit(lambda a: a)(x)), order(jit(lambda a: (a, a + 1))(x)[0])",
    "heads(jit(lambda a: a * 2).lower(x).as_text()), formats(jit(lambda a: a * 2).lower(x).compile())",
    "jit(lambda a: a * 2).lower(x).compile()(x), jit(lambda a: a * 2).lower(x).compile()(X)",
    "jit(lambda a: a * 2).lower(x).compile()(jnp.asarray(X)), jit(lambda a: a * 2).lower(X).compile()(X)",
    "heads(jit(lambda a: a * 2, in_shardings=F(AUTO), out_shardings=F(AUTO)).lower(X).as_text())",
    "heads(jit(lambda a, b: (a * 2, b), in_shardings=(F(T, S), None)).lower(X, X).as_text())",
    "heads(jit(lambda a, b: b * 2, in_shardings=(None, F(T, S))).lower(X, X).as_text())",
    "heads(jit(lambda a: a * 2, in_shardings=F(AUTO, S), out_shardings=F(T, S)).lower(X).as_text())",
    "heads(jit(lambda a: a * 2, out_shardings=F(L((0, 1)), S)).lower(X).as_text())",
    "heads(jit(lambda a: a * 2, out_shardings=F(L((1, 0), ((2, 2),)), S)).lower(X).as_text())",
    "heads(jit(lambda a: a * 2).lower(SDS((2, 3), np.float32, sharding=F(T, S))).as_text())",
    "order(jit(lambda a: a * 2, out_shardings=F(T, S))(X)), jit(lambda a: a * 2, out_shardings=F(T, S))(X)",
    "jit(lambda a: (a * 2, a), out_shardings=(F(T, S), None))(X), order(jit(lambda: X, out_shardings=F(T, S))())",
    "order(jit(lambda a: a * 2, in_shardings=F(T, S))(x)), order(jit(lambda a: a * 2, in_shardings=F(T, S))(X))",
    "jit(lambda a: a * 2, in_shardings=F(T, S))(jnp.asarray(X)), jit(lambda a: a * 2, in_shardings=S)(x)",
    "jit(lambda a, n: a * n, in_shardings=F(T, S), static_argnums=1)(X, 2)",
    "formats(jit(lambda a, b: a.T * 2, in_shardings=F(AUTO), out_shardings=F(AUTO)).lower(X, X).compile())",
    "formats(jit(lambda a, b: a @ b, in_shardings=(F(T, S), F(AUTO, S))).lower(X, X.T).compile())",
    "(lambda u: (order(u), u.committed, u))(jit(lambda a: a.T, out_shardings=F(AUTO))(X))",
    "[repr(jit(lambda a: a * 2, out_shardings=F(o, S)).lower(X).out_info) for o in (T, L((0, 1)), AUTO, None)]",
    "repr(jit(lambda a: a * 2, out_shardings=F(T, S)).eval_shape(X)), repr(jit(lambda a: a * 2).eval_shape(x))",
    "repr(j.eval_shape(jit(lambda a: a * 2, out_shardings=F(T, S)), X)), repr(j.eval_shape(lambda a: a * 2, x))",
    "[repr(jit(lambda a: a * 2, out_shardings=F(o, S)).lower(X).compile().out_info) for o in (T, AUTO, None)]",
    "order(jit(jit(lambda a: a * 2, out_shardings=F(T, S)))(X)), jit(jit(lambda a: a * 2, in_shardings=F(T, S)))(X)",
    "order(jit(lambda a: put(a * 2, F(T, S)))(X)), j.grad(lambda a: (put(a * 2, F(T, S)) ** 2).sum())(X)",
    "[order(y) for y in j.jvp(jit(jnp.sin, out_shardings=F(T, S)), (x,), (x,))]",
    "[order(y) for f in [j.linearize(jit(jnp.sin, out_shardings=F(T, S)), x)] for y in (f[0], f[1](x))]",
    "[order(y) for f in [j.vjp(jit(jnp.sin, in_shardings=F(T, S)), x)] for y in (f[0], f[1](jnp.ones((2, 3)))[0])]",
    "j.checkpoint(jit(jnp.sin, out_shardings=F(T, S)))(x), SDS((2, 3), 'f4', sharding=F(T, S)).update(shape=(3, 2))",
    "formats(jit(lambda a: a, in_shardings=F(AUTO, S)).lower(SDS((2, 3), 'f4', sharding=S)).compile())",
    "formats(jit(lambda a: a, in_shardings=F(T, S)).lower(SDS((2, 3), 'f4', sharding=F(T, S))).compile())",
    # Donation.
    "[heads(jit(lambda a: a * 2, donate_argnums=0, **o).lower(x).as_text()) for o in ({}, {'out_shardings': S})]",
    "heads(jit(lambda a: a * 2, donate_argnums=0, in_shardings=F(T, S), out_shardings=F(T, S)).lower(X).as_text())",
    "heads(jit(lambda a: a * 2, donate_argnums=0, in_shardings=F(AUTO), out_shardings=F(AUTO)).lower(X).as_text())",
    "heads(jit(lambda a: a * 2, donate_argnums=0, out_shardings=F(T, S)).lower(X).as_text())",
    "heads(jit(lambda a, b: (a, b * 2), donate_argnums=(0, 1), in_shardings=F(T, S), "
    "out_shardings=(F(L((0, 1)), S), F(T, S))).lower(X, X).as_text())",
    "(lambda y: (jit(lambda a: a * 2, donate_argnums=0)(y), y.is_deleted()))(put(X, F(T, S)))",
    "(lambda y: (order(jit(lambda a: a * 2, donate_argnums=0, out_shardings=F(T, S))(y)), y.is_deleted()))"
    "(put(X, F(T, S)))",
    # Constraints.
    "order(constrain(jnp.asarray(X), T)), order(constrain(x, L((0, 1)))), constrain(x, L((0, 1)))",
    "order(jit(lambda a: constrain(a, T))(X)), heads(jit(lambda a: constrain(a, T)).lower(X).as_text())",
    "heads(jit(lambda a: constrain(a, L((0, 1)))).lower(X).as_text())",
    "heads(jit(lambda a: constrain(a, T) + 1).lower(X).as_text())",
    "heads(jit(lambda a: jit(lambda b: constrain(b, T))(a)).lower(X).as_text())",
    "heads(jit(lambda a: constrain(a, T), out_shardings=S).lower(X).as_text())",
    "order(jit(lambda a: constrain(a, T), out_shardings=F(AUTO))(X))",
    "order(j.grad(lambda a: constrain(a, T).sum())(jnp.asarray(X)))",
    "order(j.vmap(lambda a: constrain(a, L((0,))), in_axes=1)(jnp.asarray(X)))",
    "order(jit(lambda a: lax.with_sharding_constraint(a, F(T, S)))(X))",
    "order(lax.with_sharding_constraint(B, F(T, N('x', 'y')))), lax.with_sharding_constraint(B, F(T, N('x', 'y')))",
    "heads(jit(lambda a: lax.with_sharding_constraint(a, F(T, N('x')))).lower(B).as_text())",
    # Meshes.
    "order(b), b, np.asarray(b).strides, order(b.addressable_shards[3].data), b.addressable_shards[3].data",
    "order(b + 1), b + 1, order(put(b, N('y', 'x'))), put(b, N('y', 'x')), order(put(b, N())), order(put(b, S))",
    "put(b, S), order(put(b, F(T, N('y', 'x')))), put(b, F(T, N('y', 'x'))), order(put(b, F(None, N('x', 'y'))))",
    "order(put(x, N())), put(x, N()), order(put(put(B, F(T, S)), N('x'))), put(put(B, F(T, S)), N('x'))",
    "heads(jit(lambda a: a * 2).lower(b).as_text()), formats(jit(lambda a: a * 2).lower(b).compile())",
    "order(jit(lambda a: a * 2, out_shardings=F(T, N('y', 'x')))(b)), jit(lambda a: a, out_shardings=F(T, N('y')))(b)",
    "formats(jit(lambda a: a, in_shardings=F(T, N('y', 'x')), out_shardings=F(AUTO)).lower(B).compile())",
    "jit(lambda a: a * 2).lower(b).compile()(B), jit(lambda a: a * 2).lower(b).compile()(b)",
    "jit(lambda a: a * 2, in_shardings=F(T, N('x', 'y')))(b), jit(lambda a: a * 2, in_shardings=N('x', 'y'))(b)",
    "jit(lambda a: a * 2, in_shardings=F(T, N('x', 'y')))(jnp.asarray(B)), order(copy.copy(b)), copy.copy(b)",
    "order(j.make_array_from_callback((8, 8), F(T, N('x', 'y')), lambda i: B[i]))",
    "order(j.make_array_from_single_device_arrays((8, 8), b.sharding, [s.data for s in b.addressable_shards]))",
    "j.make_array_from_single_device_arrays((8, 8), b.sharding, [s.data for s in b.addressable_shards]) + 1",
    # Keys have the default layout, whatever is asked for.
    "j.random.key_data(put(keys, F(T, S))), formats(jit(lambda a: a, out_shardings=F(T, S)).lower(keys).compile())",
    "j.random.key_data(jit(lambda a: a, in_shardings=F(T, S), out_shardings=F(T, S))(keys))",
    "j.random.key_data(j.random.wrap_key_data(put(j.random.key_data(keys), F(L((2, 1, 0)), S))))",
]


@pytest.mark.parametrize("source", SAME)
def test_layouts_are_as_in_jax(source):
    assert evaluate(OURS, source) == evaluate(THEIRS, source)


JAXPRS = [
    "jit(lambda a: a * a, in_shardings=F(T, S))",
    "jit(lambda a: a * a, in_shardings=F(AUTO), out_shardings=F(T, S))",
    "lambda a: put(a * a, F(T, S))",
    "lambda a: lax.with_sharding_constraint(a, F(T, N()))",
    "lambda a: constrain(a, T)",
    "lambda a: j.jvp(jit(jnp.cos, in_shardings=F(T, S), out_shardings=F(T, S)), (a,), (a,))",
    "lambda a: j.vjp(jit(jnp.cos, in_shardings=F(T, S), out_shardings=F(AUTO, S)), a)[1](a)",
    "j.linearize(jit(jnp.cos, in_shardings=F(T, S), out_shardings=F(T, S)), X)[1]",
]


@pytest.mark.parametrize("source", JAXPRS)
def test_jaxprs_say_layouts(source):
    texts = [str(lib.module.make_jaxpr(eval(source, names(lib)))(X)) for lib in (OURS, THEIRS)]
    assert texts[0] == texts[1]


# Calls that both libraries refuse, and what xtrace says.
REFUSED = [
    ("put(X, F(AUTO, S))", ValueError, "should be concrete"),
    ("put(X, T)", ValueError, "a Format or None"),
    ("put(X, F(L((0,)), S))", ValueError, r"device, of x: major_to_minor of .*each axis of the array once, 0 to 1"),
    ("put([X, X], F(L((1, 0, 2)), S))", ValueError, r"device, of x\[0\]: major_to_minor of"),
    ("jit(lambda a: a, in_shardings=T)", ValueError, r"in_shardings does not take layouts alone.*write Format\("),
    ("jit(lambda a: a, out_shardings=AUTO)", ValueError, "out_shardings does not take layouts alone"),
    ("jit(lambda a: a, in_shardings=F(L((0,)), S))(X)", ValueError,
     "One of jit arguments with pytree key path a is incompatible with its layout annotation"),
    ("jit(lambda a: {'r': a}, out_shardings=F(L((0,)), S))(X)", ValueError,
     r"One of jit outputs with pytree key path result\['r'\] is incompatible with its layout annotation"),
    ("jit(lambda a: a, in_shardings=F(L((0, 1)), S))(x)", ValueError,
     "does not match the layout on the respective.*key path a of <lambda>.*device_put"),
    ("jit(lambda a: a, in_shardings=F(T, S))(put(X, S))", ValueError, "does not match the layout on the respective"),
    ("jit(lambda a: a, in_shardings=F(AUTO))(x)", ValueError, "Got jit layout: AUTO.*ShapeDtypeStruct"),
    ("jit(lambda a: a, in_shardings=F(AUTO, S)).lower(put(X, S))", ValueError, "Got jit layout: AUTO"),
    ("jit(lambda a: a * 2).lower(X).compile()(x)", ValueError, "compiled for input layouts that disagree.*argument a"),
    ("jit(lambda a: a * 2).lower(x).compile()(put(X, S))", ValueError, "compiled for input layouts that disagree"),
    ("jit(lambda a: a * 2).lower(b).compile()(put(B, N('x', 'y')))", ValueError, "input layouts that disagree"),
    ("jit(lambda a: a * 2).lower(b).compile()(put(B, F(T, N('y'))))", ValueError, "input shardings that disagree"),
    ("SDS((2, 3), np.float32, sharding=F(T, S)).update(sharding=S)", ValueError, "give a Format with both"),
    ("jit(lambda a: a, in_shardings=F(T, S)).lower(SDS((2, 3), np.float32, sharding=F(L((0, 1)), S)))", ValueError,
     "does not match the layout on the respective"),
    ("jit(lambda a: a, in_shardings=F(AUTO, S)).lower(SDS((2, 3), np.float32, sharding=F(T, S)))", ValueError,
     "Got jit layout: AUTO"),
    ("SDS((2, 3), np.float32, sharding=F(AUTO, S))", TypeError, "must not say Layout.AUTO"),
    ("jit(lambda a: a, donate_argnums=0, out_shardings=F(AUTO)).lower(x)", ValueError,
     "Input layout being donated was .* while output layout was AUTO.*in_shardings"),
    ("jit(lambda a: a, donate_argnums=0, in_shardings=F(AUTO)).lower(X)", ValueError,
     "Input layout being donated was AUTO while output layout was None.*out_shardings"),
    ("constrain(jnp.asarray(X), L((0,)))", ValueError, "each axis of the array once"),
    ("lax.with_sharding_constraint(X, F(L((0,)), N()))", ValueError, "each axis of the array once"),
    ("jnp.zeros((2, 3), out_sharding=F(T, S))", (TypeError, ValueError), "out_sharding takes a sharding"),
]


@pytest.mark.parametrize(("source", "kind", "text"), REFUSED)
def test_what_both_refuse(source, kind, text):
    with pytest.raises(kind, match=text):
        eval(source, names(OURS))
    with pytest.raises(kind):
        eval(source, names(THEIRS))


# jax leaves these to XLA, whose error names no argument, or to an AttributeError.
@pytest.mark.parametrize("wrong", [(0, 2), (0, 0), (1, -1)])
def test_orders_that_are_no_permutations(wrong):
    layout = xtrace.experimental.layout.Layout(wrong)
    scope = names(OURS) | {"W": layout}
    for source in ("put(X, F(W, S))", "jit(lambda a: a, in_shardings=F(W, S))(X)", "constrain(jnp.asarray(X), W)"):
        with pytest.raises(ValueError, match="each axis of the array once, 0 to 1"):
            eval(source, scope)


def test_moves_that_jax_refuses():
    """jax moves an array to other devices, or to another layout, and not both at once."""
    scope = names(OURS)
    for source, expected in (("put(b, F(T, S))", B), ("put(put(B, F(T, S)), F(T, N('x')))", B)):
        moved = eval(source, scope)
        assert moved.format.layout.major_to_minor == (1, 0)
        np.testing.assert_array_equal(moved, expected)


def test_transformed_calls_in_layouts():
    """jax refuses vmap of a jitted function with layouts, and some gradients; what they ask for is on its values."""
    scope = names(OURS)
    f = scope["jit"](lambda a: a * 2, in_shardings=scope["F"](scope["T"], scope["S"]))
    np.testing.assert_array_equal(xtrace.vmap(f)(np.stack([X, X])), np.stack([X, X]) * 2)
    g = scope["jit"](lambda a: a * 2, out_shardings=scope["F"](scope["T"], scope["S"]))
    np.testing.assert_array_equal(xtrace.grad(lambda a: (g(a) ** 2).sum())(X), X * 8)
    put = xtrace.vmap(lambda a: xtrace.device_put(a, scope["F"](scope["T"], scope["S"])))
    np.testing.assert_array_equal(put(np.stack([X, X])), np.stack([X, X]))
    given = scope["F"](scope["L"]((0,)), scope["N"]())
    np.testing.assert_array_equal(xtrace.vmap(lambda a: xtrace.lax.with_sharding_constraint(a, given))(X), X)


def test_moves_between_devices_keep_values():
    """A CPU device's copy from another one has the default layout, which jaxlib does not say: jax reads it wrongly."""
    scope = names(OURS)
    there = xtrace.device_put(scope["x"], OURS.devices[1])
    assert there.format.layout == scope["x"].format.layout
    np.testing.assert_array_equal(there + 1, X + 1)
    np.testing.assert_array_equal(xtrace.jit(lambda a: a.T)(there), X.T)
    turned = OURS.named("x4y2", "x", "y", reverse=True)
    moved = xtrace.device_put(scope["b"], turned)
    np.testing.assert_array_equal(moved, B)
    np.testing.assert_array_equal(moved + 1, B + 1)
    host = xtrace.device_put(scope["x"], xtrace.memory.Space.Host)
    np.testing.assert_array_equal(host, X)


def test_uncommitted_arrays_in_chosen_layouts():
    """XLA chose the layout of a result that is on no device by the user's choice; jax reads it as another matrix."""
    result = xtrace.jit(lambda a: a.T, out_shardings=xtrace.experimental.layout.Format(AUTO))(X)
    assert result.format.layout.major_to_minor == (1, 0)
    assert not result.committed
    double, compiled = xtrace.jit(lambda a: a * 2), xtrace.jit(lambda a: a * 2).lower(X.T).compile()
    for _ in range(6):
        np.testing.assert_array_equal(result + 1, X.T + 1)
        np.testing.assert_array_equal(double(result), X.T * 2)
        np.testing.assert_array_equal(compiled(result), X.T * 2)
        np.testing.assert_array_equal(double(X.T), X.T * 2)
    there = xtrace.device_put(result, OURS.devices[1])
    np.testing.assert_array_equal(there + result, X.T * 2)


AUTO = xtrace.experimental.layout.Layout.AUTO
DTYPES = [
    np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4,
    ml_dtypes.float8_e4m3fn,
]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_values_in_random_layouts(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4), label="shape"))
    axes, dtype = range(len(shape)), data.draw(st.sampled_from(DTYPES), label="dtype")
    orders = [tuple(data.draw(st.permutations(axes), label=side)) for side in ("argument", "result")]
    values = (np.arange(np.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)
    seen = []
    for lib in (OURS, THEIRS):
        layout, one = lib.module.experimental.layout, lib.module.sharding.SingleDeviceSharding(lib.devices[0])
        formats = [layout.Format(layout.Layout(o), one) for o in orders]
        x = lib.put(values, formats[0])
        y = lib.jit(lambda a: a.T, out_shardings=formats[1])(x)
        seen.append([
            x.format.layout.major_to_minor, np.asarray(x).tolist(), y.format.layout.major_to_minor,
            np.asarray(y).tolist(), np.asarray(lib.put(y, formats[0])).tolist(), np.asarray(y == y).tolist(),
        ])
        assert np.asarray(x).dtype == values.dtype
    assert seen[0] == seen[1]
    assert seen[0][1] == values.tolist()
    assert seen[0][3] == values.T.tolist()


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_values_in_random_layouts_over_devices(data):
    specs = [("x",), ("x", "y"), (None, "x"), ("y", None, "x"), (("x", "y"),), ()]
    shape, values = (8, 8, 8), np.arange(512, dtype=np.float32).reshape(8, 8, 8)
    places = [
        (tuple(data.draw(st.permutations(range(3)))), data.draw(st.sampled_from(specs))) for _ in ("first", "second")
    ]
    layout = xtrace.experimental.layout
    first, second = [layout.Format(layout.Layout(o), OURS.named("x4y2", *spec)) for o, spec in places]
    x = xtrace.device_put(values, first)
    y = xtrace.device_put(x, second)
    z = xtrace.jit(lambda a: a * 2, out_shardings=second)(x)
    assert x.shape == y.shape == shape
    for array, (wanted, _), factor in ((x, places[0], 1), (y, places[1], 1), (z, places[1], 2)):
        assert array.format.layout.major_to_minor == wanted
        np.testing.assert_array_equal(array, values * factor)


def test_steady_calls_tell_layouts_apart():
    f = xtrace.jit(lambda a, b: a - 2 * b)
    layout = xtrace.experimental.layout
    one = xtrace.sharding.SingleDeviceSharding(OURS.devices[0])
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    plain_one = xtrace.device_put(square, one)
    turned = xtrace.device_put(square, layout.Format(layout.Layout((1, 0)), one))
    for _ in range(8):
        for a, b in itertools.product((plain_one, turned, square), repeat=2):
            np.testing.assert_array_equal(f(a, b), -square)
    compiled = xtrace.jit(lambda a: a + 1).lower(turned).compile()
    for _ in range(8):
        np.testing.assert_array_equal(compiled(turned), square + 1)
        np.testing.assert_array_equal(compiled(square), square + 1)
        with pytest.raises(ValueError, match="input layouts that disagree"):
            compiled(plain_one)


def test_warm_up_in_a_layout():
    scope, f = names(OURS), xtrace.jit(lambda a: a * 2)
    f.warm_up(xtrace.ShapeDtypeStruct((2, 3), np.float32, sharding=scope["F"](scope["T"], scope["S"])))
    np.testing.assert_array_equal(f(scope["x"]), X * 2)
    assert f._cache_size() == 1


@pytest.mark.parametrize("source", [
    "[r for r in [j.new_ref(x)] if jit(lambda r, y: r.__setitem__(..., r[...] * 2 + y))(r, x) is None][0][...] / 3",
    "j.shard_map(lambda a: a.T, mesh=b.sharding.mesh, in_specs=j.P('x', 'y'), out_specs=j.P('y', 'x'))(b).T",
    "j.reshard(put(B, F(T, OURS.named('x4y2', 'x', 'y', kind='Explicit'))), j.P('y', 'x')) + 0",
    "j.experimental.checkify.checkify(lambda a: a * 1)(x)[1]", "jit(lambda a: a * 1, compilation='tiered')(x)",
    "put(put(x, S.with_memory_kind('pinned_host')), S) + 0", "put(b, other) + 0", "put(put(x, N()), other) + 0",
    "j.vmap(lambda a, c: a @ c)(b.reshape(2, 4, 8), jnp.eye(8).reshape(8, 8)[None].repeat(2, 0)).reshape(8, 8)",
    "j.experimental.sparse.BCOO.fromdense(x).todense()", "jit(lambda: x * 1)()", "lax.map(lambda r: r * 1, x)",
    "j.export.deserialize(j.export.export(jit(lambda a: a * 1))(x).serialize()).call(x)",
])
def test_features_read_arrays_in_layouts(source):
    result = np.asarray(eval(source, names(OURS) | {"OURS": OURS}))
    np.testing.assert_array_equal(result, X if result.shape == X.shape else B)


def test_compiled_functions_in_layouts_are_written_and_read():
    layout = xtrace.experimental.layout
    given = layout.Format(layout.Layout((1, 0)), xtrace.sharding.SingleDeviceSharding(OURS.devices[0]))
    x = xtrace.device_put(X, given)
    compiled = xtrace.jit(lambda a, b: (a + b).T, out_shardings=layout.Format(AUTO)).lower(x, X).compile()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    for function in (compiled, again, pickle.loads(pickle.dumps(compiled))):
        result = function(x, X)
        assert function.input_formats[0][0].layout.major_to_minor == (1, 0)
        assert result.format == function.output_formats
        np.testing.assert_array_equal(result, 2 * X.T)
        np.testing.assert_array_equal(result + 1, 2 * X.T + 1)
        with pytest.raises(ValueError, match="input layouts that disagree"):
            function(xtrace.device_put(X, given.sharding), X)


def test_programs_in_layouts_are_kept_in_the_folder(tmp_path):
    scope = names(OURS)
    reset_cache()
    with cache_settings.directory(str(tmp_path)), cache_settings.min_compile_seconds(0.0):
        for hits in (0, 1):
            xtrace.clear_caches()
            result = xtrace.jit(lambda a: a * 3, out_shardings=scope["F"](scope["T"], scope["S"]))(scope["x"])
            assert result.format.layout.major_to_minor == (1, 0)
            np.testing.assert_array_equal(result, X * 3)
            assert xtrace.cache_info().hits == hits
    reset_cache()


def test_large_constants_in_layouts():
    values = np.arange(4096, dtype=np.float32).reshape(64, 64)
    scope = names(OURS)
    large = xtrace.device_put(values, scope["F"](scope["T"], scope["S"]))
    np.testing.assert_array_equal(xtrace.jit(lambda a: a + large)(values), 2 * values)
    spread = xtrace.device_put(values, scope["F"](scope["T"], OURS.named("x4y2", "x", "y")))
    np.testing.assert_array_equal(xtrace.jit(lambda a: a + spread)(values), 2 * values)


def test_callbacks_get_values():
    scope = names(OURS)
    got = []
    xtrace.debug.callback(lambda a: got.append(np.asarray(a)), scope["x"])
    result = xtrace.pure_callback(lambda a: np.asarray(a) * 2, xtrace.ShapeDtypeStruct((2, 3), np.float32), scope["x"])
    xtrace.effects_barrier()
    np.testing.assert_array_equal(got[0], X)
    np.testing.assert_array_equal(result, X * 2)


def test_arrays_in_the_default_layout_carry_nothing():
    array = xtrace.numpy.ones((2, 3))
    assert array.signature is array.aval
    given = xtrace.experimental.layout.Format(
        xtrace.experimental.layout.Layout((0, 1)), xtrace.sharding.SingleDeviceSharding(OURS.devices[0])
    )
    assert xtrace.device_put(X, given).signature is xtrace.device_put(X, given.sharding).signature
    turned = names(OURS)["x"]
    assert xtrace.device_put(turned, given).signature is xtrace.device_put(X, given).signature


def test_no_array_stays_alive():
    scope = names(OURS)
    moved = xtrace.device_put(scope["x"], scope["F"](scope["L"]((0, 1)), scope["S"]))
    double = xtrace.jit(lambda a: a * 2, out_shardings=scope["F"](scope["T"], scope["S"]))
    for _ in range(5):
        result = double(moved)
    seen = [weakref.ref(scope.pop("x")), weakref.ref(moved), weakref.ref(result)]
    del moved, result
    gc.collect()
    assert [one() for one in seen] == [None, None, None]


def test_no_call_more_for_layouts():
    """A steady call runs as much Python for arrays in a layout as for others."""
    scope, counts = names(OURS), []
    for argument in (xtrace.device_put(X, scope["S"]), scope["x"]):
        f = xtrace.jit(lambda a: a * 2)
        for _ in range(6):
            f(argument)
        calls: list[str] = []
        sys.setprofile(lambda frame, event, value, calls=calls: calls.append(event))
        f(argument)
        sys.setprofile(None)
        counts.append(calls.count("call"))
    assert counts[0] == counts[1]
