"""References in `shard_map`: the devices read and write pieces of their arrays."""

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS

X = np.arange(64, dtype=np.float32).reshape(8, 8) / 8


def accumulate(lib, ref, x):
    ref[...] += x
    return x * 2


def add(lib, ref, x):
    lib.module.ref.addupdate(ref, slice(None), x)
    return x


def write_row(lib, ref, x):
    ref[0] = x[0]
    return x


def write_constant(lib, ref, x):
    ref[...] = lib.np.zeros(ref.shape)
    ref[...] += x
    return ref[...]


def double(lib, ref, x):
    lib.lax.fori_loop(0, 3, lambda i, c: (ref.__setitem__(Ellipsis, ref[...] * 2), c)[1], 0)
    return x


def total(lib, ref, x):
    ref[...] += lib.lax.psum(x.sum(0), "x")
    return x


def read_at_own_index(lib, ref, x):
    return x + ref[lib.lax.axis_index("x")]


# A function of pieces of a reference to X and of X, the reference's specification, and how the array is given.
FUNCTIONS = [
    (accumulate, "x", "m"), (accumulate, "x", "n"), (add, "x", "m"), (write_row, "x", "m"),
    (double, "x", "n"), (double, None, "m"), (total, None, "m"),
]


def run(lib, function, axis, kind, call):
    mesh = lib.mesh("x4y2", kind="Explicit" if kind == "n" else "Auto")
    place = lib.sharding.NamedSharding(mesh, lib.P(axis))
    spec = lib.P("x")
    mapped = lib.module.shard_map(
        lambda ref, x: function(lib, ref, x), mesh=mesh, in_specs=(lib.P(axis), spec), out_specs=spec
    )
    x = lib.put(X, lib.sharding.NamedSharding(mesh, spec))
    if call == "inside":
        def whole(array, x):
            ref = lib.module.new_ref(array)
            return mapped(ref, x), ref[...]

        return lib.jit(whole)(lib.put(X if function is not total else X[0], place), x)
    ref = lib.module.new_ref(lib.put(X if function is not total else X[0], place))
    result = (lib.jit(mapped) if call == "jitted" else mapped)(ref, x)
    return result, ref[...]


@pytest.mark.parametrize("call", ["inside", "jitted"])
@pytest.mark.parametrize(("function", "axis", "kind"), FUNCTIONS)
def test_arguments(function, axis, kind, call):
    pairs = zip(*[run(lib, function, axis, kind, call) for lib in (OURS, THEIRS)], strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)
        assert ours.sharding.is_fully_replicated == theirs.sharding.is_fully_replicated
        assert str(xtrace.typeof(ours)) == str(jax.typeof(theirs))


@pytest.mark.parametrize(("function", "axis", "kind"), FUNCTIONS)
def test_functions_that_are_not_jitted(function, axis, kind):
    # jax asserts here.
    pairs = zip(*[run(OURS, function, axis, kind, call) for call in ("eager", "jitted")], strict=True)
    for eager, jitted in pairs:
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(jitted))
        assert eager.sharding == jitted.sharding


def test_values_that_vary_otherwise():
    # jax refuses them: a constant written to a piece, and a piece read at an index that differs among devices.
    for call in ("inside", "jitted"):
        for kind in ("m", "n"):
            result, array = run(OURS, write_constant, "x", kind, call)
            np.testing.assert_array_equal(result, X)
            np.testing.assert_array_equal(array, X)
        result, array = run(OURS, read_at_own_index, None, "m", call)
        np.testing.assert_array_equal(result, X + np.repeat(X[:4], 2, axis=0))


def test_text():
    texts = []
    for lib in (OURS, THEIRS):
        ref = lib.module.new_ref(lib.np.zeros(8))
        mapped = lib.module.shard_map(
            lambda r, x: r.__setitem__(Ellipsis, x), mesh=lib.mesh("x4y2"), in_specs=(lib.P("x"), lib.P("x")),
            out_specs=None,
        )
        texts.append(str(lib.module.make_jaxpr(mapped)(ref, np.arange(8, dtype=np.float32))))
    assert texts[0] == texts[1]


def test_vmap():
    results = []
    for lib in (OURS, THEIRS):
        def whole(x, lib=lib):
            ref = lib.module.new_ref(lib.np.zeros((4, 8)))
            mapped = lib.module.shard_map(
                lambda r, x: accumulate(lib, r, x), mesh=lib.mesh("x4y2"), in_specs=(lib.P("x"), lib.P("x")),
                out_specs=lib.P("x"),
            )
            return lib.module.vmap(mapped)(ref, x), ref[...]

        results.append([np.asarray(x) for x in lib.jit(whole)(X[:4])])
    np.testing.assert_array_equal(results[0], results[1])


def test_closures_and_derivatives():
    # jax allows neither.
    mesh, spec = OURS.mesh("x4y2"), xtrace.P("x")

    def closed_over(x):
        ref = xtrace.new_ref(xtrace.numpy.zeros(8))

        def piece(x):
            ref[...] += xtrace.lax.psum(x.sum(0), "x")
            return x + ref[0]

        return xtrace.shard_map(piece, mesh=mesh, in_specs=spec, out_specs=spec)(x), ref[...]

    result, total = xtrace.jit(closed_over)(X)
    np.testing.assert_allclose(total, X.sum(0), rtol=1e-6)
    np.testing.assert_allclose(result, X + X.sum(0)[0], rtol=1e-6)

    def loss(x):
        ref = xtrace.new_ref(xtrace.numpy.zeros((8, 8)))

        def piece(ref, x):
            ref[...] = xtrace.numpy.sin(x)
            ref[...] += x * ref[...]
            return ref[...]

        return xtrace.shard_map(piece, mesh=mesh, in_specs=(spec, spec), out_specs=spec)(ref, x).sum()

    np.testing.assert_allclose(xtrace.grad(loss)(X), np.cos(X) + np.sin(X) + X * np.cos(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("write", [
    lambda ref, x: ref.__setitem__(Ellipsis, ref[...] + x.sum()),
    lambda ref, x: xtrace.ref.addupdate(ref, (), xtrace.numpy.full(8, x.sum())),
    lambda ref, x: ref.__setitem__(xtrace.lax.axis_index("x"), 1.0),
])
def test_a_reference_that_is_whole_takes_no_values_that_vary(write):
    mapped = xtrace.shard_map(
        write, mesh=OURS.mesh("x4y2"), in_specs=(xtrace.P(), xtrace.P("x")), out_specs=None
    )
    with pytest.raises(ValueError, match=r"along the mesh axes 'x' .* reference of type Ref\{float32\[8\]\}.*psum"):
        mapped(xtrace.new_ref(xtrace.numpy.zeros(8)), X)


def test_references_are_not_returned():
    mapped = xtrace.shard_map(
        lambda ref: ref, mesh=OURS.mesh("x4y2"), in_specs=xtrace.P("x"), out_specs=xtrace.P("x")
    )
    with pytest.raises(ValueError, match="references cannot be returned"):
        mapped(xtrace.new_ref(xtrace.numpy.zeros(8)))
