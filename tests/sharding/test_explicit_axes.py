"""Shardings in types: on explicit mesh axes each operation's split follows by a rule, as jax's, or is refused."""

import itertools

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from xtrace.errors import ShardingTypeError

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def operands(lib):
    """Arrays named by the axes of their dimensions."""

    def place(*entries):
        return lib.named("x4y2", *entries, kind="Explicit")

    specs = {"a": ("x",), "b": ("y",), "c": (None, "y"), "d": ("x", "y"), "e": (), "k": (("x", "y"),)}
    made = {name: lib.put(X, place(*spec)) for name, spec in specs.items()}
    made["v"] = lib.put(X[0], place("x"))
    made["i"] = lib.put(np.arange(8), place("x"))
    return made | {"X": X, "lib": lib, "np": lib.np, "lax": lib.lax, "nn": lib.module.nn, "N": place, "m": lib.module}


RESULTS = [
    "a + c", "a + e", "a + v[:, None]", "a * 2", "a > e", "np.sin(d)", "np.where(a > 1, a, 0)", "np.clip(d, 0, 1)",
    "a @ c", "a @ e", "e @ c", "np.einsum('ij,kj->ik', a, e)", "np.tensordot(a, e, 1)", "np.dot(a, e)", "v @ e",
    "a.T", "a.sum(0)", "a.sum(1)", "a.max()", "a.mean(1)", "a.sum(1, keepdims=True)", "np.argmax(a, 0)",
    "np.argmax(a, 1)", "a.reshape(8, 4, 2)", "a.reshape(8, 8, 1)", "a.reshape(1, 8, 8)", "a.reshape(4, 2, 8)",
    "a.reshape(64)", "k.reshape(4, 2, 8)", "k.reshape(64)", "c.reshape(8, 2, 4)", "a[:, 0]", "a[:, :3]", "a[:, None]",
    "e[m.numpy.array([0, 1])]", "a[:, m.numpy.array([0, 1])]", "np.concatenate([a, a])", "np.concatenate([a, a], 1)",
    "np.stack([a, a])", "np.cumsum(a, 1)", "np.sort(a, 1)", "np.broadcast_to(v, (3, 8))", "np.expand_dims(a, 0)",
    "np.pad(a, ((0, 0), (1, 1)))", "np.squeeze(a[:, :1])", "np.flip(a, 0)", "np.split(a, 2)[0]", "np.split(a, 2, 1)[0]",
    "lax.dynamic_slice(a, (0, 0), (8, 2))", "lax.dynamic_slice(a, (0, 0), (4, 2))", "nn.softmax(a, 1)",
    "nn.softmax(a, 0)", "nn.relu(d)", "nn.one_hot(i, 4)", "m.vmap(np.sin)(a)", "m.vmap(lambda r: r.sum())(a)",
    "m.vmap(lambda r, s: r @ s, (0, None))(a, e)", "lax.top_k(a, 2)[0]", "np.unstack(a, axis=1)[3]",
    "m.jit(m.grad(lambda a: (np.stack([a, a], 2) ** 2).sum()))(a)", "a.astype('int32')", "np.linalg.norm(a)",
    "m.jit(lambda a: lax.scan(lambda c, _: (c * 2, c), a, None, 3)[1])(a)", "m.jit(lambda a: a.sum(0) * 2)(a)",
    "m.reshard(a, N(None, 'x'))", "m.reshard(a, N('y'))", "m.jit(lambda a: a.sum(0), out_shardings=N('x'))(a)",
    "np.tile(a, (1, 2))", "np.tile(a, (3, 1, 1))", "m.vmap(lambda r: np.tile(r, 2))(a)",
    "m.jvp(np.sin, (a,), (a,))[1]", "np.exp(d).sum(1)", "a ** 2", "np.maximum(a, c)", "-a", "np.tile(e, (2, 1))",
    "np.fft.fft(d, axis=0)", "np.fft.fft2(d)", "np.fft.irfft(c + 0j)", "np.fft.rfft(a)",
    "a - a.mean(1, keepdims=True)", "d.reshape(64)", "d.reshape(8, 4, 2)", "d.T.reshape(64)",
    "m.shard_map(lambda b: b * 2, mesh=d.sharding.mesh, in_specs=P('x'), out_specs=P('x'), axis_names={'x'})(d)",
]

# In the context of the mesh, as jax wants it.
WANTED = [
    "a[:0].reshape(0, 1, 8)", "a[:0, 0][None]", "np.squeeze(a[:0, :1])", "m.grad(lambda a: a[:0, 0].sum())(a)",
    "np.einsum('ij,jk->ik', c, b, out_sharding=P())", "np.einsum('ij,jk->ik', c, b, out_sharding=P('x'))",
    "np.dot(c, b, out_sharding=P('x'))", "np.matmul(c, b, out_sharding=P(None, 'x'))", "m.reshard(a, P(None, 'x'))",
    "np.reshape(a, (64,), out_sharding=P('y'))", "a.reshape(2, 32, out_sharding=P('y'))",
    "a.at[m.numpy.array([0, 1])].get(out_sharding=P())", "a.at[0].get(out_sharding=P('x'))",
    "np.ones((8, 2), out_sharding=P('x'))", "np.zeros(8, out_sharding=P('y'))",
    "np.full((8,), 3., out_sharding=P('x'))",
    "np.arange(8, out_sharding=P('x'))", "np.zeros_like(e, out_sharding=P('x'))", "np.ones(8)",
    "m.random.uniform(m.random.key(0), (8,), out_sharding=P('x'))",
    "m.random.normal(m.random.key(0), (8, 4), out_sharding=P('x', 'y'))",
    "lax.dot_general(c, b, (((1,), (0,)), ((), ())), out_sharding=P('x'))", "m.device_put(e, P('x'))",
    "m.jit(lambda c, b: np.einsum('ij,jk->ik', c, b, out_sharding=P('x')).sum(1))(c, b)",
    "m.grad(lambda c: np.einsum('ij,jk->ik', c, b, out_sharding=P('x')).sum())(c)",
    "m.jit(m.grad(lambda c: np.einsum('ij,jk->ik', c, b, out_sharding=P('x')).sum()))(c)",
    "lax.reshape(a, (4, 16), out_sharding=P('y', 'x'))", "lax.reshape(a, (64,), (1, 0), out_sharding=P(('x', 'y')))",
    "lax.broadcast_in_dim(v, (8, 4), (0,), out_sharding=P('y', 'x'))",
    "lax.empty((8, 4), 'int32', out_sharding=P('x'))*0",
    "lax.broadcasted_iota('int32', (8, 4), 0, out_sharding=P('x', 'y'))",
    "lax.reduce_sum(d, (0,), out_sharding=P('x'))",
    "lax.reduce(a, np.float32(0), lax.add, (0,), out_sharding=P('y'))", "np.ravel(a, out_sharding=P('y'))",
    "lax.rng_bit_generator(np.zeros(4, 'uint32'), (8, 4), out_sharding=P('x', 'y'))[1] * 0",
    "lax.conv_general_dilated(a[:, None], np.ones((4, 1, 3)), (1,), 'SAME', out_sharding=P('y', 'x'))",
    "a.at[np.array([1, 2])].set(3., out_sharding=P('y'))", "a.at[:, 1].add(v, out_sharding=P(None, 'x'))",
    "d.at[0].multiply(2., out_sharding=P('x', 'y'))", "np.percentile(e, 50., axis=1)",
    "m.vmap(lambda r: lax.reshape(r, (4, 2), out_sharding=P('y')))(a)",
    "m.vmap(lambda r: lax.broadcast_in_dim(r, (8, 2), (0,), out_sharding=P('y')))(a)",
    "m.vmap(lambda r: lax.reduce_sum(r, (0,), out_sharding=P('y')))(a.reshape(8, 2, 4))",
    "m.grad(lambda a: (lax.reshape(a, (4, 16), out_sharding=P('y', 'x')) ** 2).sum())(a)",
    "m.jit(m.grad(lambda a: (lax.reshape(a, (64,), (1, 0), out_sharding=P('y')) ** 2).sum()))(a)",
    "m.grad(lambda a: (lax.reduce_sum(a, (0,), out_sharding=P('y')) ** 2).sum())(a)",
    "m.grad(lambda a: (a.at[0].set(1., out_sharding=P('y')) ** 2).sum())(a)",
    "m.jit(lambda: np.zeros((8, 4), out_sharding=P('x')) + np.arange(8., out_sharding=P('x'))[:, None])()",
    "m.jvp(lambda s: np.concatenate([s, a > 1], 1), (a,), (a,))[1]", "m.jvp(lambda s: a - s, (1.,), (1.,))[1]",
    "m.vmap(lambda r: np.sin(r) * 2)(a)", "m.jit(m.grad(lambda a: (a @ c).sum()))(a)",
    "m.shard_map(lambda b: b * 2, out_specs=P('x'), axis_names={'x'})(d)",
    "m.jit(m.shard_map(lambda b: b * 2, out_specs=P(None, 'y'), axis_names={'y'}))(d)",
    "m.grad(lambda d: m.shard_map(lambda b: b * 2, out_specs=P('x'), axis_names={'x'})(d).sum())(d)",
    "m.shard_map(lambda b: b * 2, out_specs=P('x'), axis_names={'x'})(k)", "np.array(X, out_sharding=P('x'))",
    "np.zeros((8, 2), device=N('x'))", "np.full_like(a, 2, out_sharding=P('y'))",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("expression", WANTED)
def test_the_split_that_is_asked_for(expression):
    results = []
    for lib in (OURS, THEIRS):
        names = operands(lib) | {"P": lib.P}
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            results.append(eval(expression, names))
    ours, theirs = results
    assert xtrace.typeof(ours).str_short(True) == jax.typeof(theirs).str_short(short_dtypes=True)
    assert repr(ours.sharding.spec) == repr(theirs.sharding.spec)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-5)


def regrouped(lib, sizes, names, entry, back=None):
    """A function that works on other axes of the same devices, and moves its result back to `back`."""
    explicit = (lib.sharding.AxisType.Explicit,) * len(names)

    def function(x):
        with lib.sharding.use_abstract_mesh(lib.sharding.AbstractMesh(sizes, names, explicit)):
            x = (lib.sharding.reshard(x, lib.P(entry)) * 2).sum(1)
        return x if back is None else lib.sharding.reshard(x, lib.P(back))

    return function


@pytest.mark.parametrize("changed", [((8,), ("z",), "z"), ((2, 4), ("z", "w"), "w"), ((2, 4), ("z", "w"), ("w", "z"))])
def test_functions_work_on_other_axes_of_the_mesh(changed):
    rows = []
    for lib in (OURS, THEIRS):
        d = operands(lib)["d"]
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            there, back = regrouped(lib, *changed), regrouped(lib, *changed, back="x")
            loss = lib.module.grad(lambda x, lib=lib, back=back: lib.sharding.reshard(back(x), lib.P()).sum())
            results = [lib.jit(f)(d) for f in (there, back, loss)] + [lib.jit(lib.module.vmap(back))(d[None])]
        places = [x.sharding.devices_indices_map(x.shape) for x in results]
        rows.append([
            (lib.module.typeof(x).str_short(True), np.asarray(x).tolist(), [str(place[v]) for v in lib.devices])
            for x, place in zip(results, places, strict=True)
        ])
    assert rows[0] == rows[1]


@pytest.mark.parametrize("entries", [(None, None), ("x", None), ("x", None, None), ("x", "y"), (None, "x")])
def test_reshard_drops_axes_that_are_not_there(entries):
    types = []
    for lib in (OURS, THEIRS):
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            try:
                types.append(lib.module.typeof(lib.sharding.reshard(lib.np.ones(8), lib.P(*entries))).str_short(True))
            except (AssertionError, ValueError):
                types.append("refused")
    assert types[0] == types[1]


def test_reshard_takes_the_mesh_in_force():
    for lib in (OURS, THEIRS):
        d = operands(lib)["d"]
        with lib.module.set_mesh(lib.module.make_mesh((8,), ("z",))):
            assert lib.module.typeof(lib.sharding.reshard(d, lib.P("z"))).str_short(True) == "f32[8@z,8]"
            with pytest.raises(ValueError, match="is not found in mesh"):
                lib.sharding.reshard(d, lib.P("x"))
    assert xtrace.typeof(xtrace.reshard(operands(OURS)["d"], xtrace.P("y"))).str_short(True) == "f32[8@y,8]"


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("expression", RESULTS)
def test_the_split_of_results(expression):
    ours, theirs = [eval(expression, operands(lib) | {"P": lib.P}) for lib in (OURS, THEIRS)]
    assert xtrace.typeof(ours).str_short(True) == jax.typeof(theirs).str_short(short_dtypes=True)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-5)
    assert ours.sharding.devices_indices_map(ours.shape) == dict(
        zip(ours.sharding.devices, theirs.sharding.devices_indices_map(theirs.shape).values(), strict=True)
    )


def test_mesh_axes_of_size_one():
    sizes = ("x", 4), ("o", 1), ("y", 2)
    specs = [("o", "y"), (("x", "o"), "y"), ("y", "o"), ("o", None), (("o", "x"), None)]
    expressions = ["a", "a.reshape(64)", "a.reshape(2, 4, 8)", "a.reshape(4, 2, 8)", "a.reshape(1, 8, 8)", "a.T",
                   "a + a", "a.reshape(8, 8, 1)", "a.sum(0)", "np.sort(a, 1)", "np.concatenate([a, a])"]
    types = []
    for lib in (OURS, THEIRS):
        mesh = lib.sharding.AbstractMesh(*zip(*[(n, a) for a, n in sizes], strict=True),
                                         axis_types=(lib.sharding.AxisType.Explicit,) * 3)
        rows = []
        for spec, expression in itertools.product(specs, expressions):
            a = lib.module.ShapeDtypeStruct((8, 8), "float32", sharding=lib.sharding.NamedSharding(mesh, lib.P(*spec)))
            try:
                result = lib.module.eval_shape(lambda a, e=expression, lib=lib: eval(e, {"a": a, "np": lib.np}), a)
                rows.append(f"{spec} {expression} {result.sharding.spec}")
            except Exception:
                rows.append(f"{spec} {expression} refused")
        types.append(rows)
    assert types[0] == types[1]


@pytest.mark.parametrize("reshape", [
    ((4, 4, 4), (64,)), ((4, 4, 4), (4, 16)), ((2, 4, 4), (32,)), ((4, 1, 4), (16,)), ((4, 4, 4), (4, 1, 4, 4)),
    ((4, 4, 4), (2, 2, 4, 4)), ((4, 4, 1), (16,)), ((4, 4, 4), (16, 2, 2)),
])
def test_reshapes_that_jax_has_a_rule_for(reshape):
    """Ours has rules for some more."""
    shape, new_sizes = reshape
    entries = [None, "x", "y", "z", ("x", "y"), ("y", "x")]
    for spec in itertools.product(entries, repeat=3):
        named = [axis for entry in spec if entry for axis in entry]
        if len(named) != len({*named}):
            continue
        types = []
        for lib in (THEIRS, OURS):
            place = lib.named("x2y2z2", *spec, kind="Explicit")
            try:
                a = lib.module.ShapeDtypeStruct(shape, "float32", sharding=place)
                result = lib.module.eval_shape(lambda a, lib=lib: lib.np.reshape(a, new_sizes), a)
                types.append(str(result.sharding.spec))
            except Exception:
                types.append("refused")
        assert types[0] in ("refused", types[1]), spec


def test_the_compiler_has_no_choice_on_explicit_axes():
    for lib in (OURS, THEIRS):
        with pytest.raises(ValueError, match=r"cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`"):
            lib.named("x4y2", lib.P.UNCONSTRAINED, kind="Explicit")


REFUSED = [
    ("a + b", "incompatible shardings for broadcasting"), ("a + v", r"illegally sharded result.*mesh axis x"),
    ("c @ b", "ambiguous how the output should be sharded"), ("c @ a", "consistent sharding"),
    ("d @ d", "consistent sharding"), ("a.reshape(2, 4, 8)", "without communication"), ("a[0]", "axis 0"),
    ("a[m.numpy.array([0, 1])]", "axis 0, which is indexed"), ("np.cumsum(a, 0)", "unsharded along axis 0"),
    ("np.sort(a, 0)", "unsharded along axis 0"), ("np.pad(a, 1)", "4 parts do not divide"),
    ("np.tile(a, (2, 1))", "would be repeated 2 times"), ("np.fft.rfft(c)", "2 parts do not divide"),
    ("np.roll(a, 1, 0)", "do not divide"), ("np.concatenate([a, c])", "same sharding"),
    ("np.linalg.qr(a)", "unsharded along its last 2 axes"),
    ("lax.dynamic_update_slice(a, np.ones((2, 2)), (0, 0))", "must be equal to update sharding"),
]


@pytest.mark.parametrize(("expression", "text"), REFUSED)
def test_refusals(expression, text):
    with pytest.raises(ShardingTypeError, match=text):
        eval(expression, operands(OURS))
    with pytest.raises(Exception, match=r"shard|spec"):
        eval(expression, operands(THEIRS))


def test_derivatives_are_split_as_their_arguments():
    given = operands(OURS)
    loss = xtrace.value_and_grad(lambda a, c: (np.float32(0.5) * (a @ c)).sum(), argnums=(0, 1))
    for function in (loss, xtrace.jit(loss)):
        _, (left, right) = function(given["a"], given["c"])
        assert [xtrace.typeof(x).str_short(True) for x in (left, right)] == ["f32[8@x,8]", "f32[8,8@y]"]
        np.testing.assert_allclose(left, np.broadcast_to(0.5 * X.sum(1), (8, 8)), rtol=1e-5)
    gradient = xtrace.grad(lambda a: (a.sum(0) ** 2).sum())(given["a"])
    assert xtrace.typeof(gradient).str_short(True) == "f32[8@x,8]"


def test_types_are_printed_with_their_axes():
    given = operands(OURS)
    text = str(xtrace.make_jaxpr(lambda a: a * 2 + a.sum(1, keepdims=True))(given["a"]))
    assert "a:f32[8@x,8]" in text
    assert repr(xtrace.typeof(given["k"])) == "ShapedArray(float32[8@(x,y),8])"
    lowered = xtrace.jit(lambda a: a * 2).lower(given["a"]).as_text()
    assert 'sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>' in lowered


def test_make_mesh_has_explicit_axes_by_default():
    mesh = xtrace.make_mesh((4, 2), ("data", "model"))
    with xtrace.set_mesh(mesh):
        x = xtrace.device_put(X, xtrace.P("data", "model"))
        assert xtrace.typeof(x).str_short(True) == "f32[8@data,8@model]"
        assert xtrace.typeof(xtrace.reshard(x, xtrace.P(None, "model"))).str_short(True) == "f32[8,8@model]"
    described = xtrace.eval_shape(lambda x: x.T, x)
    assert described.shape == (8, 8)


def test_a_sharded_network_trains():
    """A data- and tensor-parallel network: types say every split, and the weights are those of one device."""
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(size=(8, 16)).astype("f") / 4, rng.normal(size=(16, 4)).astype("f") / 4
    x, y = rng.normal(size=(32, 8)).astype("f"), rng.normal(size=(32, 4)).astype("f")
    mesh = xtrace.make_mesh((4, 2), ("data", "model"))

    def loss(ws, x, y, hidden=None, out=None):
        h = xtrace.numpy.tanh(xtrace.numpy.dot(x, ws[0], out_sharding=hidden))
        return ((xtrace.numpy.dot(h, ws[1], out_sharding=out) - y) ** 2).mean()

    def put(v, *spec):
        return xtrace.device_put(v, xtrace.NamedSharding(mesh, xtrace.P(*spec)))

    given = [put(w1, None, "model"), put(w2, "model")], put(x, "data"), put(y, "data")
    with xtrace.set_mesh(mesh):
        step = xtrace.jit(xtrace.grad(lambda *a: loss(*a, hidden=xtrace.P("data", "model"), out=xtrace.P("data"))))
        got = step(*given)
    expected = xtrace.grad(loss)([w1, w2], x, y)
    for g, e, spec in zip(got, expected, ("f32[8,16@model]", "f32[16@model,4]"), strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-6)
        assert xtrace.typeof(g).str_short(True) == spec


def test_constraints_assert_on_explicit_axes():
    x = OURS.put(np.arange(8.0), OURS.named("x4y2", "x", kind="Explicit"))
    same, other = OURS.named("x4y2", "x", kind="Explicit"), OURS.named("x4y2", "y", kind="Explicit")
    constrain = xtrace.lax.with_sharding_constraint
    with xtrace.set_mesh(same.mesh):
        assert xtrace.jit(lambda x: constrain(x, same))(x).sharding == same
    for run in (xtrace.jit, lambda function: function):
        message = r"the array's type has the spec P\('x',\) instead of P\('y',\)"
        with xtrace.set_mesh(same.mesh), pytest.raises(AssertionError, match=message):
            run(lambda x: constrain(x, other))(x)


def change_axes(lib, name, axes):
    """Functions whose axes change type within, and the types that they see."""
    types = []

    def function(x):
        types.append((str(lib.module.typeof(x)), str(lib.sharding.get_abstract_mesh())))
        return lib.np.sin(x) + x.sum(0)

    if name == "auto_axes":
        return lib.sharding.auto_axes(function, axes=axes, out_sharding=lib.P("x", "y")), types
    return lib.sharding.explicit_axes(function, axes=axes, in_sharding=lib.P("x")), types


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", ["auto_axes", "explicit_axes"])
@pytest.mark.parametrize("axes", ["x", ("x",), ("x", "y"), None])
def test_some_axes_change_their_type(name, axes):
    seen = []
    for lib in (OURS, THEIRS):
        kind = "Explicit" if name == "auto_axes" else "Auto"
        if name == "explicit_axes" and axes is None:
            axes = ("x", "y")
        x = lib.put(np.arange(64, dtype="f").reshape(8, 8), lib.named("x4y2", "x", "y", kind=kind))
        function, types = change_axes(lib, name, axes)
        with lib.module.set_mesh(lib.mesh("x4y2", kind)):
            results = [function(x), lib.jit(function)(x), lib.module.grad(lambda x, f=function: f(x).sum())(x)]
            jaxpr = str(lib.module.make_jaxpr(function)(x)).replace(":f32[]", "").replace(" out_sharding=None", "")
        values, shardings = [np.asarray(r).tolist() for r in results], [str(r.sharding) for r in results[:2]]
        seen.append((values, shardings, types[0], jaxpr))
    ours, theirs = seen
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
    assert ours[1:] == theirs[1:]


def test_a_function_without_arguments_needs_no_in_sharding():
    types = []
    for lib in (OURS, THEIRS):
        function = lib.sharding.explicit_axes(
            lambda lib=lib: types.append(str(lib.sharding.get_abstract_mesh())) or lib.np.zeros(8)
        )
        with lib.module.set_mesh(lib.mesh("x4y2", "Auto")):
            types.append(str(function(in_sharding=None).sharding))
    assert types[:2] == types[2:]


def test_axes_of_another_type_are_in_the_mesh():
    x = OURS.put(np.arange(8.0), OURS.named("x4y2", "x", kind="Explicit"))
    with pytest.raises(ValueError, match=r"auto_axes: axes \['q'\] are not in the mesh, whose axes are \('x', 'y'\)"):
        xtrace.sharding.auto_axes(lambda x: x, axes="q", out_sharding=xtrace.P("x"))(x)
    with pytest.raises(ValueError, match="explicit_axes: there is no mesh"):
        xtrace.sharding.explicit_axes(lambda x: x, in_sharding=xtrace.P("x"))(np.ones(8))


ZEROS = {
    "grad": lambda m, x, y: m.grad(lambda x, y: x.sum(), argnums=(0, 1))(x, y),
    "jvp": lambda m, x, y: m.jvp(lambda x: y * 1, (x,), (x,)),
    "vjp": lambda m, x, y: m.vjp(lambda x, y: x * 2, x, y)[1](x),
}


@pytest.mark.parametrize("name", ZEROS)
def test_derivatives_that_are_zero_are_sharded_as_their_arguments(name):
    results = []
    for lib in (OURS, THEIRS):
        x, y = [lib.put(X, lib.named("x4y2", *spec, kind="Explicit")) for spec in (("x",), ("y", "x"))]
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            found = lib.jit(lambda x, y, lib=lib: ZEROS[name](lib.module, x, y))(x, y)
        results.append([(str(lib.module.typeof(v)), str(v.sharding)) for v in found])
    assert results[0] == results[1]


def test_results_that_read_no_argument_are_where_the_arguments_are():
    x = OURS.put(X, OURS.named("x4y2", "y", "x", kind="Explicit"))
    gradient = xtrace.jit(xtrace.grad(lambda x: (x.T.sum() * 0 + 1).astype("int32").astype("float32")))(x)
    assert xtrace.typeof(gradient).str_short(True) == "f32[8@y,8@x]"
    assert gradient.sharding == x.sharding


@pytest.mark.parametrize("name", ["fori_loop", "while_loop", "scan", "cond"])
def test_carries_and_branches_keep_their_sharding(name):
    for lib in (OURS, THEIRS):
        x = lib.put(np.arange(8.0), lib.named("x4y2", "x", kind="Explicit"))

        def move(x, lib=lib):
            return lib.module.reshard(x, lib.P("y"))

        run = {
            "fori_loop": lambda lib=lib, x=x, move=move: lib.lax.fori_loop(0, 3, lambda i, c: move(c), x),
            "while_loop": lambda lib=lib, x=x, move=move: lib.lax.while_loop(lambda c: c.sum() < 3, move, x),
            "scan": lambda lib=lib, x=x, move=move: lib.lax.scan(lambda c, _: (move(c), None), x, None, length=2),
            "cond": lambda lib=lib, x=x, move=move: lib.lax.cond(True, move, lambda c: c, x),
        }[name]
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")), pytest.raises(TypeError, match=r"8@x|8@y"):
            run()
