"""Short programs on meshes: results, types, texts and errors are as jax's."""

import re

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS, describe

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def evaluate(lib, expression):
    """The value of an expression of arrays on a mesh of the compiler's axes, `m`, and on one of explicit axes, `n`."""
    kinds = {"m": lib.mesh("x4y2"), "n": lib.mesh("x4y2", kind="Explicit")}

    def named(mesh, *entries):
        return lib.sharding.NamedSharding(mesh, lib.P(*entries))

    def pieces(function, given=None, wanted=None, mesh=kinds["m"], **options):
        given, wanted = [spec if spec is not None else lib.P("x", "y") for spec in (given, wanted)]
        return lib.module.shard_map(function, mesh=mesh, in_specs=given, out_specs=wanted, **options)

    def within(mesh, function):
        with lib.module.set_mesh(mesh):
            return function()

    def image(*entries, y=1):
        values = X[:, :, None] if y == 8 else X[None, None]
        return lib.put(values, named(kinds["n"], *entries))

    names = kinds | {
        "X": X, "P": lib.P, "N": named, "jit": lib.jit, "lax": lib.lax, "np": lib.np, "j": lib.module, "lib": lib,
        "pieces": pieces, "within": within, "image": image, "e": lib.put(X, named(kinds["n"], "x")),
        "r": lib.mesh("x4y2", reverse=True), "b": lib.put(X, lib.named("x4y2", "x", reverse=True)),
        "a": lib.put(X, named(kinds["m"], "x")),
        "text": lambda f, *args: str(lib.module.make_jaxpr(f)(*args)),
    }
    return eval(expression, names)


ARRAYS = [
    "jit(lambda x, y: x + y, in_shardings=[N(m, 'x'), N(m, 'y')])(X, X)",
    "jit(lambda x: x.T * 2, in_shardings=N(n, 'x', 'y'))(X)",
    "jit(lambda x: x.sum(0), in_shardings=N(n, None, 'y'))(X)",
    "jit(lambda x: x, in_shardings=N(n, 'x'), out_shardings=N(n, 'y'))(X)",
    "j.vmap(lambda r: r * 2, spmd_axis_name='x')(e)",
    "j.make_array_from_process_local_data(N(m, 'x'), {'b': X}, {'b': (8, 8)})['b']",
    "j.make_array_from_process_local_data(N(m, 'x'), [X, X])[1]", "j.device_put(X, j.memory.Space.Host)",
    "j.device_put(np.array(X), j.memory.Space.Host)", "j.device_put(np.array(X), j.memory.Space.Device)",
    "j.device_put(np.array(X), m.devices[1, 1])", "j.device_put(j.device_put(X, N(m, 'x')), j.memory.Space.Host)",
]


@pytest.mark.parametrize("expression", ARRAYS)
def test_arrays(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert str(xtrace.typeof(ours)) == str(jax.typeof(theirs))
    assert describe(ours.sharding) == describe(theirs.sharding)
    assert ours.committed == theirs.committed
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


TEXTS = [
    "text(lambda x: lax.with_sharding_constraint(x, N(m, 'x')), X)",
    "text(j.vmap(lambda x: lax.with_sharding_constraint(x, N(m, 'x'))), X)",
    "text(pieces(lambda x: lax.all_gather(x, 'x', tiled=True)), X)",
    "text(pieces(lambda x: lax.psum_scatter(x, 'y', tiled=True)), X)",
    "text(pieces(lambda x: lax.all_to_all(x, 'y', 0, 1, tiled=True)), X)",
    "text(pieces(lambda x: lax.psum(x, 'x'), wanted=P(None, 'y'), check_vma=False), X)",
    "text(pieces(lambda x: lax.pmax(x, 'x'), wanted=P(None, 'y')), X)",
    "text(jit(np.sin, in_shardings=N(m, 'x')), X)", "text(jit(np.sin, out_shardings=N(m, 'x')), X)",
    "text(jit(lambda x, y: (x * y, y), in_shardings=(N(m, 'x'), None), out_shardings=(None, N(m, 'y'))), X, X)",
    "text(jit(np.sin, in_shardings=N(n, 'x')), X)", "text(jit(np.sin, out_shardings=N(n, 'y')), e)",
    "text(jit(np.sin, in_shardings=N(n, 'y')), e)", "within(m, lambda: text(jit(np.sin), X))",
    "within(m, lambda: text(jit(np.sin, in_shardings=P('x')), X))", "within(n, lambda: text(jit(np.sin), e))",
    "within(n, lambda: text(jit(np.sin, out_shardings=P('x')), X))",
    "text(j.vmap(jit(np.sin, in_shardings=N(m, 'x'), out_shardings=N(m, 'y'))), X)",
    "text(j.vmap(jit(np.sin, in_shardings=N(m, 'x')), spmd_axis_name='y'), X)",
    "text(lambda x: j.jvp(jit(np.sin, in_shardings=N(m, 'x'), out_shardings=N(m, 'y')), (x,), (x,)), X)",
    "text(lambda x: j.vjp(jit(np.sin, in_shardings=N(m, 'x'), out_shardings=N(m, 'y')), x)[1](x), X)",
    "text(lambda x: j.linearize(jit(np.sin, in_shardings=N(m, 'x'), out_shardings=N(m, 'y')), x)[1](x), X)",
    "text(jit(lambda x: np.sin(jit(np.cos, in_shardings=N(m, 'x'), out_shardings=N(m, 'y'))(x))), X)",
    "str(j.make_jaxpr(jit(np.sin, in_shardings=N(m, 'x')))(X).eqns[0].params['in_shardings'])",
    "text(j.vmap(pieces(lambda x: lax.psum(x, 'y'), P('y'), P()), spmd_axis_name='x'), X)",
    "text(j.vmap(pieces(np.sin, P('y'), P('y')), spmd_axis_name='x'), X)",
    "text(j.vmap(pieces(np.sin, P('y'), P('y'), check_vma=False), spmd_axis_name='x'), X)",
    "text(j.vmap(pieces(np.sin, P('y'), P('y')), 1, spmd_axis_name='x'), X)",
    "text(j.vmap(pieces(np.sin, P('y'), P('y'), n)), j.device_put(X, N(n, 'x', 'y')))",
    "text(j.vmap(pieces(np.sin, P('y'), P('y'), n), spmd_axis_name='x'), j.device_put(X, N(n, None, 'y')))",
]


@pytest.mark.parametrize("expression", TEXTS)
def test_texts(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert ours == theirs


# The mesh `r` has the devices of `m` in another order, and `b` is split over it.
REORDERED = [
    "jit(lambda x: x * 2, in_shardings=N(r, 'x'))(a)", "jit(lambda x: x * 2, in_shardings=N(m, 'x'))(b)",
    "jit(lambda x, y: x + y, in_shardings=(N(r, 'x'), N(r, 'x')))(a, b)", "jit(lambda x: x + b)(a)",
    "jit(lambda x, y: x + y, in_shardings=(N(r, 'x'), None))(a, b)", "jit(lambda x: x + a)(b)",
    "jit(lambda x: x + b, in_shardings=N(r, 'x'))(a)", "jit(lambda x: x + b, in_shardings=N(m, 'x'))(a)",
    "jit(lambda x: x * 2, in_shardings=N(m, 'x'), donate_argnums=0)(j.device_put(X, N(r, 'x')))",
    "jit(lambda x: x * 2, in_shardings=N(m, 'x', None))(a)", "jit(lambda x: x * 2, in_shardings=N(m))(b[:4, 0])",
    "jit(lambda x: x.T, in_shardings=N(r, 'x'))(e)", "jit(lambda x: x * 2, in_shardings=N(n, 'x'))(a)",
    "j.device_put(a, N(r, 'x'))",
]


@pytest.mark.parametrize("expression", REORDERED)
def test_arrays_are_moved_to_the_same_devices_in_another_order(expression):
    test_arrays(expression)


def test_arrays_are_moved_at_every_call():
    # jax ends the process at the second call.
    double = xtrace.jit(lambda x: x * 2, in_shardings=OURS.named("x4y2", "x", reverse=True))
    x = OURS.put(X, OURS.named("x4y2", "x"))
    for _ in range(6):
        np.testing.assert_array_equal(double(x), X * 2)


# An image that is split over explicit axes along its rows, its columns, both, and its batch.
WINDOWS = [
    "lax.conv(image(None, None, 'x'), np.ones((1, 1, 3, 3)), (1, 1), 'SAME')",
    "lax.conv(image(None, None, None, 'x'), np.ones((1, 1, 3, 3)), (1, 1), 'SAME')",
    "lax.conv(image(None, None, 'x', 'y'), np.ones((1, 1, 3, 3)), (1, 1), 'SAME')",
    "lax.conv(image(None, None, 'x'), np.ones((1, 1, 1, 3)), (1, 1), 'VALID')",
    "lax.conv(image(None, None, 'x'), np.ones((1, 1, 3, 3)), (2, 1), 'SAME')",
    "lax.conv(image(None, None, 'x'), np.ones((2, 1, 3, 3)), (1, 1), 'SAME')",
    "j.vmap(lambda x: lax.conv(x[None, None], np.ones((1, 1, 3)), (1,), 'SAME'))(j.device_put(X, N(n, None, 'x')))",
    "lax.reduce_window(e, 0., lax.add, (2, 1), (1, 1), 'SAME')", "j.vmap(np.cumsum)(e)",
    "lax.reduce_window(e, 0., lax.add, (2, 2), (2, 2), 'SAME')",
    "lax.reduce_window(e, 0., lambda a, b: a + b * 1., (1, 2), (1, 2), 'SAME')",
    "lax.reduce_window(e, 0., lax.add, (1, 2), (1, 1), ((4, 0), (0, 0)))",
    "lax.reduce_window(e, -np.inf, lax.max, (2, 1), (1, 1), 'SAME')",
    "lax.reduce_window(e, np.inf, lax.min, (1, 2), (2, 1), 'SAME')",
    "within(n, lambda: j.jvp(lambda e: lax.reduce_window(e, -np.inf, lax.max, (2, 2), (1, 1), 'SAME'), (e,), (e,))[1])",
    "within(n, lambda: j.grad(lambda e: lax.conv(e, np.ones((1, 1, 3, 3)), (1, 1), 'SAME').sum())"
    "(image(None, None, 'x')))",
    "within(n, lambda: j.grad(lambda e: lax.reduce_window(e, 0., lax.add, (1, 2), (1, 1), 'SAME').sum())(e))",
    "within(n, lambda: j.grad(lambda e: lax.reduce_window(e, -np.inf, lax.max, (2, 2), (2, 2), 'VALID').sum())(e))",
    "within(n, lambda: jit(j.grad(lambda w: lax.conv(image('x', y=8), w, (1,), 'SAME').sum()))(np.ones((8, 8, 3))))",
    "within(n, lambda: j.grad(lambda w: (e @ w).sum())(X))",
]


@pytest.mark.parametrize("expression", WINDOWS)
def test_windows_over_split_axes(expression):
    test_arrays(expression)


@pytest.mark.parametrize(("expression", "text"), [
    ("lax.conv(image(None, None, 'x'), np.ones((1, 1, 3, 3)), (1, 1), 'VALID')", "sharded dims where"),
    ("np.convolve(j.device_put(X[0], N(n, 'x')), np.ones(3))", "sharded dims where"),
    ("lax.conv(image(None, 'x', y=8), np.ones((8, 8, 1)), (1,), 'SAME')", "specify the output sharding via"),
])
def test_windows_that_need_a_sharding(expression, text):
    for lib in (OURS, THEIRS):
        with pytest.raises(Exception, match=text) as raised:
            evaluate(lib, expression)
        assert type(raised.value).__name__ == "ShardingTypeError"


@pytest.mark.parametrize("entries", [(None, None, "x"), (None, None, "x", "y"), ("y", None, None, "x")])
def test_gradients_of_convolutions_are_those_of_whole_arrays(entries):
    # jax's of the kernel is too large by the size of a mesh axis.
    image, weights = np.stack([X, X + 1])[:, None], np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    placed = OURS.put(image, OURS.named("x4y2", *entries, kind="Explicit"))

    def loss(image, weights):
        return (xtrace.lax.conv(image, weights, (1, 1), "SAME") ** 2).sum()

    for transform in (lambda f: f, xtrace.jit):
        gradients = transform(xtrace.grad(loss, (0, 1)))
        for ours, whole in zip(gradients(placed, weights), gradients(image, weights), strict=True):
            np.testing.assert_allclose(ours, whole, rtol=1e-5)


def test_arrays_of_linear_programs_are_where_their_types_say():
    place = OURS.named("x4y2", "x", kind="Explicit")
    gradient = xtrace.grad(lambda x: (2 * x).sum())(OURS.put(X, place))
    assert (gradient.sharding.mesh, str(xtrace.typeof(gradient))) == (place.mesh, "float32[8@x,8]")
    (cotangent,) = xtrace.vjp(lambda x: x * 2, OURS.put(X, place))[1](X)
    assert (cotangent.sharding.mesh, str(xtrace.typeof(cotangent))) == (place.mesh, "float32[8@x,8]")


# What vmap maps over stays split as the type says.
MAPPED = [
    "j.vmap(jit(lambda r: r * 2))(e)", "jit(j.vmap(jit(lambda r: r * 2)))(e)", "j.vmap(j.checkpoint(np.sin))(e)",
    "j.vmap(lambda r: lax.scan(lambda c, _: (c * 2, None), r, None, length=2)[0])(e)",
    "j.vmap(lambda r: lax.map(lambda x: x * 2, r))(e)", "j.vmap(lambda r: r[2:4])(e)", "j.vmap(j.nn.softmax)(e)",
    "j.vmap(lambda r: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, r))(e)", "j.vmap(np.linalg.norm)(e)",
    "j.vmap(lambda r: lax.cond(True, lambda r: r, lambda r: r * 2, r))(e)", "j.vmap(np.sort)(e)",
    "j.vmap(lambda r: lax.cond(r.sum() > 0, lambda: r, lambda: np.zeros(8)))(e)", "j.vmap(j.nn.relu)(e)",
    "j.vmap(j.vmap(jit(np.sin)), 1)(j.device_put(X, N(n, 'x', 'y')))",
    "j.vmap(jit(np.sin), 1, 1)(j.device_put(X, N(n, 'x', 'y')))", "j.jacrev(np.sin)(j.device_put(X[0], N(n, 'x')))",
    "j.vmap(lambda k: j.random.normal(k, (3,)))(j.device_put(j.random.split(j.random.key(0), 8), N(n, 'x')))",
    "j.vmap(lambda r: np.linalg.qr(np.eye(8) + r)[1])(e)", "j.vmap(lambda r: np.linalg.det(np.eye(8) + r))(e)",
    "j.vmap(lambda r: lax.linalg.tridiagonal_solve(r * 0, r + 1, r * 0, r[:, None]))(e)",
    "j.vmap(pieces(lambda x: x * 2, P('y'), P('y'), n))(j.device_put(X, N(n, 'x', 'y')))",
    "j.vmap(pieces(np.sin, P('y'), P('y')), spmd_axis_name='x')(X)",
]


@pytest.mark.parametrize("expression", MAPPED)
def test_mapped_axes_stay_split(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert str(xtrace.typeof(ours)) == str(jax.typeof(theirs))
    assert describe(ours.sharding) == describe(theirs.sharding)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-3)


# jax knows no mesh here; the results are those on the mesh that is in force.
CONSTANTS = [
    "j.vmap(lambda r: lax.scan(lambda c, _: (c + r, None), np.zeros(8), None, length=2)[0])(e)",
    "j.vmap(lambda r: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * r), (0, np.ones(8)))[1])(e)",
    "j.vmap(lambda r: np.concatenate([r, np.ones(8)]))(e)", "j.vmap(j.grad(lambda r: np.sin(r).sum()))(e)",
    "j.vmap(lambda r: r.at[0].set(1.))(e)", "j.vmap(lambda r: np.ones(3))(e)", "jit(j.vmap(lambda r: np.ones(3)))(e)",
    "j.vmap(lambda r: np.linalg.solve(2 * np.eye(8), r))(e)",
]


@pytest.mark.parametrize("expression", CONSTANTS)
def test_constants_are_split_as_mapped_axes(expression):
    ours = evaluate(OURS, expression)
    theirs = evaluate(THEIRS, f"within(n, lambda: {expression})")
    assert str(xtrace.typeof(ours)) == str(jax.typeof(theirs))
    assert describe(ours.sharding) == describe(theirs.sharding)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)


def test_calls_say_how_values_are_split_inside_of_programs():
    for lib in (OURS, THEIRS):
        inner = lib.jit(lib.np.sin, in_shardings=lib.named("x4y2", "x"), out_shardings=lib.named("x4y2", "y"))
        for function in (inner, lib.module.checkpoint(inner), lib.module.vmap(inner)):
            outer = lib.jit(lambda x, function=function: function(x) + 1)
            text = outer.lower(X).as_text()
            assert text.count("sdy.sharding_constraint") == 2, text
            np.testing.assert_allclose(outer(X), np.sin(X) + 1, rtol=1e-5, atol=1e-6)
        with lib.module.set_mesh(lib.mesh("x4y2")):
            assert lib.jit(lambda x, inner=inner: inner(x))(X).sharding.spec == lib.P("y")
        gradient = lib.jit(lib.module.grad(lambda x, inner=inner: inner(x).sum()))(X)
        np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-5, atol=1e-6)
        assert gradient.sharding.spec == lib.P("x")


# The words that programs match with regular expressions.
ERRORS = [
    ("jit(lambda x: x, out_shardings=N(m, P.UNCONSTRAINED, 'y'))(X)",
     "Unconstrained dims are not allowed when passed to"),
    ("lax.with_sharding_constraint(np.ones(6), N(m, 'x'))",
     "axis 0 is partitioned 4 times, but the dimension size is 6"),
    ("pieces(lambda x: x, P(P.UNCONSTRAINED))(X)", "in_specs refers to"),
    ("pieces(lambda x: lax.pcast(x, 'x', to='varying'))(X)", "Unsupported pcast from=varying, to='varying'"),
    ("pieces(lambda x: pieces(lambda y: y, P('y'), P('y'), axis_names={'y'})(x), P('x'), P('x'), axis_names={'x'})(X)",
     "The context mesh .* should match the mesh passed to shard_map"),
    ("pieces(lambda x: x, P('x'), P('x'), n)(X)",
     "in_specs passed to shard_map.*does not match the specs of the input"),
    ("jit(pieces(lambda x: x, P('x'), P('x'), n))(X)", "in_specs passed to shard_map.*does not match the specs of the"),
    ("j.device_put(X, j.experimental.layout.Format(j.experimental.layout.Layout.AUTO, N(m, 'x')))",
     "should be concrete"),
    ("lax.map(lambda r: r * 2, e)", "0th dimension of all xs should be replicated. Got P.'x', None"),
    ("lax.scan(lambda c, r: (c, r), 0., e)", "0th dimension of all xs should be replicated"),
    ("jit(lambda e: lax.scan(lambda c, r: (c, r), 0., e))(e)", "0th dimension of all xs should be replicated"),
    ("jit(lambda x: x * 2, in_shardings=N(r, 'y'))(a)", "Sharding passed to jit does not match the sharding on"),
    ("jit(lambda x: x * 2, in_shardings=N(m, 'x'))(j.device_put(X, m.devices[0, 0]))", "Sharding passed to jit"),
    ("jit(lambda x, y: x + y, in_shardings=(None, N(r, 'x')))(a, b)", "incompatible devices for jitted computation"),
    ("jit(lambda x: x * 2, out_shardings=N(r, 'x'))(a)", "incompatible devices for jitted computation"),
    ("lib.sharding.set_mesh(3)", "Expected mesh of type"), ("lib.sharding.use_abstract_mesh(m)",
     "Expected mesh of type"),
    ("j.device_put(X, n.devices.ravel().tolist())", "device_put device specification must be a tree prefix of the"),
    ("j.device_put(np.ones(8), m.devices[0, 0], donate=True, may_alias=True)",
     "may_alias and donate cannot be True at"),
    ("j.make_array_from_callback((8,), N(m, 'x'), lambda i: X)",
     "Expected shard shape .* doesn't match the single device"),
    ("pieces(lambda x: x, P('x'), P())(X)", "which require replication which can't be statically inferred"),
    ("pieces(lambda x: x, P('x', 'y', None))(X)", "in_specs entry which is too long to be compatible"),
    ("pieces(lambda x: x.sum())(X)", "out_specs entry which is too long to be compatible"),
    ("pieces(lambda x: x, P('x'), P('x'))(np.ones(6))",
     "axis sizes that are not evenly divisible by the corresponding"),
    ("pieces(lambda x, y: x, (P('x'),))(X, X)", "pytree structure error"),
    ("jit(lambda x: (x, x), out_shardings=(N(m),))(X)", "pytree structure error"),
    ("j.vmap(pieces(lambda x: x, P('x'), P('x')), spmd_axis_name='x')(X)", "spmd_axis_name"),
    ("j.vmap(pieces(lambda x: lax.psum(x, 'x'), P('y'), P('y')), spmd_axis_name='x')(X)", "'x'"),
    ("jit(lambda x: x, in_shardings=N(m, 'x', 'y'))(X[0])",
     "One of pjit arguments with pytree key path x is incompatible"),
]


@pytest.mark.parametrize(("expression", "text"), ERRORS)
def test_errors(expression, text):
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError, match=f"(?s){text}"):
            evaluate(lib, expression)


# `a` is split over the compiler's axes, `e` over explicit ones.
EQUAL, IN_FORCE = "Mesh for all inputs should be equal", "context mesh .* should match the aval mesh"
MIXED = [
    ("a + e", EQUAL), ("e @ a", EQUAL), ("jit(lambda x, y: x + y)(a, e)", EQUAL), ("lax.select(a > 0, e, e)", EQUAL),
    ("jit(lambda x: x + e)(a)", EQUAL), ("jit(lambda x: x + a)(e)", EQUAL), ("e + j.device_put(X, N(m))", EQUAL),
    ("jit(lambda x: lax.with_sharding_constraint(x, N(m, 'x')) + e)(X)", EQUAL),
    ("jit(lambda x, y: jit(lambda x, y: x @ y)(x * 2, y + 1))(a, e)", EQUAL),
    ("jit(lambda x, y: lax.scan(lambda c, _: (c + y, None), x, None, length=2)[0])(a, e)", EQUAL),
    ("jit(lambda x, y: lax.while_loop(lambda c: (c + y).sum() < 0, lambda c: c, x))(a, e)", EQUAL),
    ("jit(lambda x, y: lax.cond(x.sum() > 0, lambda: x, lambda: y * x))(a, e)", EQUAL),
    ("j.grad(lambda x, y: (x * y).sum())(a, e)", EQUAL), ("jit(lambda x, y: x.sum() * y)(a, e)", EQUAL),
    ("j.device_put(X, N(lib.mesh('x8', kind='Explicit'), 'x')) + e", EQUAL),
    ("within(n, lambda: jit(lambda x: x * 2)(a))", IN_FORCE), ("within(m, lambda: jit(lambda x: x * 2)(e))", IN_FORCE),
    ("within(lib.mesh('x8', kind='Explicit'), lambda: jit(lambda x: jit(np.sin)(x))(e))", IN_FORCE),
]


@pytest.mark.parametrize(("expression", "text"), MIXED)
def test_explicit_axes_and_others_do_not_meet_in_an_operation(expression, text):
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError, match=f"(?s){text}"):
            evaluate(lib, expression)


def test_operands_on_different_meshes_are_named():
    lines = (
        r"add: Mesh .*, got\n  \* argument x of <lambda>, float32\[8,8\] on Abs.*Auto, Auto\)\)"
        r"\n  \* argument y of <lambda>, float32\[8@x,8\] on .*\nMove one .*device_put"
    )
    with pytest.raises(ValueError, match=lines) as raised:
        evaluate(OURS, "jit(lambda x, y: x + y)(a, e)")
    assert "<string>:1" in str(raised.value.__notes__)


# These operations take arrays from one mesh to another, or leave them where they are.
ALLOWED = [
    "jit(lambda x, y: (x * 2, y))(a, e)[0]", "jit(lambda x, y: j.device_put(x, N(n, 'x')) + y)(a, e)",
    "jit(lambda x, y: j.reshard(x, N(n, 'x')) + y)(a, e)", "e + np.ones((8, 8))", "jit(np.add)(np.sin(e), X)",
    "jit(lambda x: x, out_shardings=N(n, 'x'))(a)", "jit(lambda x: x, out_shardings=N(m, 'x'))(e)",
    "a + j.device_put(X, N(lib.mesh('x8'), 'x'))", "within(n, lambda: j.device_put(a, P('x')))",
    "within(n, lambda: j.reshard(a, P('x')))", "jit(lambda x: lax.with_sharding_constraint(x, N(n)))(X)",
    "jit(lambda x, y: (x * 2, y * 2))(e, j.device_put(X, N(lib.mesh('x8', kind='Explicit'), 'x')))[1]",
    "jit(lambda x, y: (x * 2, y * 2))(e, j.device_put(X, N(lib.mesh('x8'), 'x')))[1]", "pieces(lambda x: x)(e)",
    "jit(lambda x: lax.with_sharding_constraint(x, N(m, 'y')))(e)", "jit(lambda x, y: (x, np.sin(y)))(e, a)[0]",
    "jit(lambda x: np.sin(lax.with_sharding_constraint(x, N(m, 'x'))))(e)",
]


@pytest.mark.parametrize("expression", ALLOWED)
def test_arrays_go_from_one_mesh_to_another(expression):
    test_arrays(expression)


@pytest.mark.parametrize("expression", [
    "lax.with_sharding_constraint(X, N(n, 'x'))", "jit(lambda x: lax.with_sharding_constraint(x, N(n, 'x')))(a)",
    "lax.with_sharding_constraint(e, N(n, 'x'))", "jit(lambda x: lax.with_sharding_constraint(x, N(n, 'y')))(e)",
])
def test_constraints_name_no_explicit_axes(expression):
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError, match="passed to with_sharding_constraint can only refer to Auto axes"):
            evaluate(lib, expression)


@pytest.mark.parametrize("expression", [
    "jit(pieces(lambda x: lax.with_sharding_constraint(x, P('y'))))(X)",
    "jit(pieces(lambda x: lax.with_sharding_constraint(x, P('x')), P('x'), P('x'), axis_names={'x'}))(X)",
])
def test_constraints_are_on_axes_of_the_compiler(expression):
    for lib in (OURS, THEIRS):
        refused = pytest.raises(ValueError, match="passed to with_sharding_constraint can only refer to Auto axes")
        with lib.module.set_mesh(lib.mesh("x4y2")), refused:
            evaluate(lib, expression)


def test_groups_of_different_sizes_have_no_common_result():
    with pytest.raises(ValueError, match="axis_index_groups must have one size"):
        evaluate(
            OURS, "pieces(lambda x: lax.all_gather(x, 'x', axis_index_groups=[[0, 1, 2], [3]]), check_vma=False)(X)"
        )


def test_no_mesh_is_put_in_force():
    with xtrace.set_mesh(OURS.mesh("x8")), xtrace.set_mesh(None):
        assert xtrace.sharding.get_mesh().empty
    assert re.match("Mesh", repr(xtrace.sharding.get_mesh()))


def test_the_older_context_of_a_mesh_warns():
    for lib in (OURS, THEIRS):
        with pytest.warns(DeprecationWarning, match="`with mesh:`"), lib.mesh("x8"):
            pass


# Where arrays are made and what they are, with and without a mesh in force.
MADE = [
    "within(n, lambda: np.array(X))", "within(m, lambda: np.array(X))", "within(n, lambda: np.asarray([1., 2.]))",
    "within(n, lambda: np.array(a))", "within(n, lambda: np.array([np.ones(2), np.ones(2)]))",
    "within(n, lambda: np.array(3.))", "jit(lambda: np.array(3.))()",
    "within(n, lambda: np.full((8,), 2, out_sharding=P('x')))", "np.full((8,), 2., device=N(n, 'x'))",
    "within(n, lambda: np.full((8,), 2, 'float32', out_sharding=P('x')))", "lax.full((8,), 2., sharding=N(n, 'x'))",
    "np.full((8,), 2.)", "lax.full((8,), 2)",
]


@pytest.mark.parametrize("expression", MADE)
def test_arrays_are_made_as_jaxs(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert (ours.weak_type, str(xtrace.typeof(ours))) == (theirs.weak_type, str(jax.typeof(theirs)))
    test_arrays(expression)


@pytest.mark.parametrize("expression", [
    "jit(lambda x: x * 2).lower(e).out_info", "jit(lambda x: x * 2).lower(a).out_info",
    "jit(lambda x: x * 2, out_shardings=N(m, 'x')).lower(X).out_info", "jit(lambda x: x * 2).lower(X).out_info",
    "jit(lambda x: x * 2).trace(e).out_info", "jit(lambda x: x * 2).lower(e).compile().out_info",
    "jit(lambda x: x * 2).lower(a).compile().out_info", "jit(lambda x: x * 2).lower(X).compile().out_info",
])
def test_descriptions_of_results(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert repr(ours.sharding) == repr(theirs.sharding)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


# jax warns where it keeps a donated array.
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize(("place", "target"), [
    ("N(m, 'x')", "N(r, 'x')"), ("N(m, 'x')", "N(m, 'y')"), ("N(m, 'x')", "N(m, 'x')"), ("N(m)", "m.devices[0, 0]"),
    ("N(m)", "N(m, 'x')"), ("m.devices[0, 0]", "N(m, 'x')"), ("m.devices[0, 0]", "m.devices[1, 1]"),
    ("m.devices[0, 0]", "None"), ("m.devices[0, 0]", "j.memory.Space.Host"), ("N(n, 'x')", "N(n, 'y')"),
])
def test_donated_arrays_are_gone_where_pieces_move_as_they_are(place, target):
    gone = []
    for lib in (OURS, THEIRS):
        x = evaluate(lib, f"j.device_put(X, {place})")
        moved = lib.put(x, evaluate(lib, target), donate=True)
        np.testing.assert_array_equal(np.asarray(moved), X)
        gone.append(x.is_deleted())
    assert gone[0] == gone[1]


def test_the_older_context_is_none_for_jit_and_device_put():
    for lib in (OURS, THEIRS):
        with pytest.warns(DeprecationWarning), lib.mesh("x4y2"):
            assert evaluate(lib, "lax.with_sharding_constraint(X, P('x'))").sharding.spec == lib.P("x")
            for expression in ("jit(lambda x: x, in_shardings=P('x'))(X)", "jit(lambda x: x, out_shardings=P('x'))(X)"):
                with pytest.raises(RuntimeError, match="jit requires a non-empty mesh in context"):
                    evaluate(lib, expression)
            with pytest.raises(ValueError, match="set_mesh"):
                evaluate(lib, "j.device_put(X, P('x'))")


def test_devices_of_jit_are_deprecated():
    for lib in (OURS, THEIRS):
        for options in ({"device": lib.devices[1]}, {"backend": "cpu"}):
            with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated") as caught:
                double = lib.jit(lambda x: x * 2, **options)
            assert caught[0].filename == __file__
            assert len(double(X).devices()) == 1


@pytest.mark.parametrize("entries", [("x",), (None, "y"), ("x", "y")])
def test_random_bits_are_made_where_they_are_needed(entries):
    x = OURS.put(np.zeros((16, 12), np.uint32), OURS.named("x4y2", *entries))
    bits = OURS.jit(lambda x: xtrace.random.bits(xtrace.random.key(0), x.shape) + x)
    text = bits.lower(x).compile().as_text()
    assert not re.search(r"\[16,12\]|all-gather|all-reduce|collective-permute", text)
    np.testing.assert_array_equal(bits(x), jax.random.bits(jax.random.key(0), (16, 12)))


def test_a_mesh_without_axes_has_no_devices():
    for lib in (OURS, THEIRS):
        mesh = lib.sharding.Mesh(np.empty((), object), ())
        assert (mesh.empty, mesh.size, mesh.abstract_mesh.size) == (True, 0, 0)


@pytest.mark.parametrize("expression", [
    "j.device_put(X, S)", "j.jit(np.sin, out_shardings=S)(X)", "j.jit(np.sin, in_shardings=S)(X)",
    "j.shard_map(np.sin, mesh=S.mesh, in_specs=P(), out_specs=P())(X)", "j.reshard(X, S)",
    "j.make_array_from_callback(X.shape, S, lambda index: X[index])",
    "j.jit(lambda x: lax.with_sharding_constraint(x, S))(X)",
])
def test_a_mesh_without_axes_has_the_device_it_was_made_of(expression):
    def run(lib):
        sharding = lib.sharding.NamedSharding(lib.sharding.Mesh(lib.devices[1], ()), lib.P())
        names = {"j": lib.module, "S": sharding, "P": lib.P, "X": X, "np": lib.np, "lax": lib.lax}
        return eval(expression, names)

    ours, theirs = run(OURS), run(THEIRS)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    for array in (ours, theirs):
        assert [d.id for d in array.devices()] == [1]


def test_uncommitted_arrays_are_replicated_over_auto_axes_by_reshard():
    for lib in (OURS, THEIRS):
        whole = lib.module.reshard(X, lib.named("x4y2"))
        assert whole.committed and whole.is_fully_replicated and len(whole.devices()) == 8
