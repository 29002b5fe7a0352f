"""`pmap` and `smap`, functions over other types of axes, and `pcast`, compared with jax."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.test_shard_map import compare
from xtrace import lax
from xtrace.sharding import PartitionSpec as P

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)


def run_both(function, exact=False):
    compare(function(OURS), function(THEIRS), exact=exact)


PMAPS = {
    "elementwise": lambda lib: lib.module.pmap(lambda a: a * 2)(X),
    "collective": lambda lib: lib.module.pmap(lambda a: a - lib.lax.pmean(a, "i"), axis_name="i")(X),
    "index": lambda lib: lib.module.pmap(lambda a: a + lib.lax.axis_index("i"), axis_name="i")(X),
    "in_axes": lambda lib: lib.module.pmap(lambda a, b: a @ b, in_axes=(0, None))(X, np.ones((4, 2), "f")),
    "in_axes_1": lambda lib: lib.module.pmap(lambda a: a.sum(), in_axes=1)(X),
    "out_axes": lambda lib: lib.module.pmap(lambda a: a * 2, out_axes=1)(X),
    "out_axes_none": lambda lib: lib.module.pmap(lambda a: lib.lax.psum(a, "i"), axis_name="i", out_axes=None)(X),
    "tree": lambda lib: lib.module.pmap(lambda d, n=None: {"a": d["x"] + d["y"], "b": n})({"x": X, "y": X}, n=X),
    "static": lambda lib: lib.module.pmap(lambda a, n: a**n, static_broadcasted_argnums=1)(X, 3),
    "grad": lambda lib: lib.module.grad(lambda a: lib.module.pmap(lib.np.sin)(a).sum())(X),
    "of_grad": lambda lib: lib.module.pmap(lib.module.grad(lambda a: lib.lax.psum(a, "i").sum()), axis_name="i")(X),
    "two_devices": lambda lib: lib.module.pmap(lambda a: a * 2, devices=lib.devices[:2].tolist())(X[:2]),
    "donated": lambda lib: lib.module.pmap(lambda a: a * 2, donate_argnums=0)(lib.np.asarray(X)),
    "jitted": lambda lib: lib.jit(lib.module.pmap(lambda a: a.sum()))(X),
}


@pytest.mark.parametrize("name", PMAPS)
def test_pmap(name):
    run_both(PMAPS[name])


def test_the_size_of_an_axis_that_no_argument_has():
    """jax wants a mapped argument all the same."""
    got = xtrace.pmap(lambda a: a * lax.axis_index("i"), "i", in_axes=None, axis_size=8)(X[0])
    np.testing.assert_allclose(got, X[0] * np.arange(8)[:, None], rtol=1e-6)


def test_pmap_is_compiled_once():
    traced = []
    f = xtrace.pmap(lambda a: traced.append(1) or a * 2)
    for _ in range(5):
        np.testing.assert_array_equal(f(X), X * 2)
    assert len(traced) == 1
    assert len(f(X).addressable_shards) == 8


BAD = [
    (lambda: xtrace.pmap(lambda a, b: a)(X, X[:4]), ValueError, r"inconsistent sizes.*\[4, 8\]"),
    (lambda: xtrace.pmap(lambda a: a)(np.ones(9)), ValueError, "has the size 9, but only 8 devices are available"),
    (lambda: xtrace.pmap(lambda a: a, in_axes=None)(X), ValueError, "no argument of <lambda> is mapped"),
    (lambda: xtrace.pmap(lambda a: a, in_axes=2)(X), ValueError, "in_axes 2 is no axis of an argument of shape"),
    (lambda: xtrace.pmap(lambda a: a, in_axes=(0, 0))(X), ValueError, "an entry for each of 1 arguments"),
    (lambda: xtrace.pmap(xtrace.pmap(lambda a: a))(np.ones((2, 2))), NotImplementedError, "inside of another pmap"),
    (lambda: xtrace.pmap(3), TypeError, "callable"),
    (lambda: xtrace.pmap(lambda a, n: a * n, static_broadcasted_argnums=1)(X, n=2), ValueError,
     "must be passed positionally"),
    (lambda: xtrace.shard_map(lambda a: lax.pcast(a, "x", to="same"), mesh=OURS.mesh("x8"), in_specs=P(),
                              out_specs=P())(X), ValueError, "to must be 'varying', 'reduced' or 'unreduced'"),
    (lambda: xtrace.sharding.auto_axes(lambda a: a)(X), TypeError, "Missing required keyword argument: 'out_sharding'"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (1, 1)])
def test_smap(axes):
    def run(lib):
        with lib.module.set_mesh(lib.mesh("x4y2")):
            def f(a):
                return lib.lax.pcast(a, "x", to="varying") * 2 if axes[0] is None else a * 2

            return lib.jit(lib.module.smap(f, in_axes=axes[0], out_axes=axes[1], axis_name="x"))(X)

    run_both(run)


@pytest.mark.parametrize("jitted", [False, True])
def test_auto_axes(jitted):
    def run(lib):
        place = lib.named("x4y2", "x", kind="Explicit")
        a = lib.put(np.arange(64.0, dtype="f").reshape(8, 8), lib.named("x4y2", None, "y", kind="Explicit"))
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            f = lib.sharding.auto_axes(lambda a: a @ a.T, out_sharding=place)
            return (lib.jit(f) if jitted else f)(a)

    run_both(run)


def test_explicit_axes():
    def run(lib):
        with lib.module.set_mesh(lib.mesh("x4y2")):
            types = []
            f = lib.sharding.explicit_axes(lambda a: types.append(lib.module.typeof(a * 2)) or a * 2,
                                           in_sharding=lib.P("x"))
            result = f(X)
        assert types[0].sharding.spec == lib.P("x", None)
        return np.asarray(result) * 1

    np.testing.assert_array_equal(run(OURS), run(THEIRS))
