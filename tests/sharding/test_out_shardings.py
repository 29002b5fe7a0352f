"""``out_sharding=`` of functions that make arrays or change shapes: values and shardings as in jax."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS

X = np.arange(64, dtype=np.float32).reshape(8, 8)
I = np.array([0, 3, 2, 3, 1, 7, 7, 0])  # noqa: E741

# name: a function of (lib, array sharded along its first axis, sharding of a vector, of a matrix)
FUNCTIONS = {
    "broadcast_to": lambda lib, x, v, m: lib.np.broadcast_to(lib.np.arange(8.0), (8, 8), out_sharding=m),
    "lax.broadcast": lambda lib, x, v, m: lib.lax.broadcast(lib.np.arange(8), (8,), out_sharding=m),
    "repeat": lambda lib, x, v, m: lib.np.repeat(x, 2, axis=1, total_repeat_length=16, out_sharding=m),
    "bincount": lambda lib, x, v, m: lib.np.bincount(lib.np.asarray(I), length=8, out_sharding=lib.P()),
    "randint": lambda lib, x, v, m: lib.module.random.randint(key(lib), (8, 8), 0, 9, out_sharding=m),
    "bernoulli": lambda lib, x, v, m: lib.module.random.bernoulli(key(lib), 0.5, (8, 8), out_sharding=m),
    "rademacher": lambda lib, x, v, m: lib.module.random.rademacher(key(lib), (8, 8), out_sharding=m),
    "uniform": lambda lib, x, v, m: lib.module.random.uniform(key(lib), (8, 8), out_sharding=m),
    "bits": lambda lib, x, v, m: lib.module.random.bits(key(lib), (8, 8), out_sharding=m),
    "normal": lambda lib, x, v, m: lib.module.random.normal(key(lib), (8, 8), out_sharding=m),
    "geometric": lambda lib, x, v, m: lib.module.random.geometric(key(lib), 0.5, (8,), out_sharding=v),
    "zeros": lambda lib, x, v, m: lib.module.nn.initializers.zeros(None, (8, 8), out_sharding=m),
    "ones": lambda lib, x, v, m: lib.module.nn.initializers.ones(None, (8, 8), out_sharding=m),
    "numbers": lambda lib, x, v, m: lib.np.ones((8, 8), out_sharding=v),
    "no numbers": lambda lib, x, v, m: lib.np.zeros((8, 8), out_sharding=lib.P()),
    "full": lambda lib, x, v, m: lib.np.full((8, 8), lib.np.arange(8.0), out_sharding=v),
    "like": lambda lib, x, v, m: lib.np.full_like(lib.np.zeros((8, 8)), 2.0, out_sharding=v),
    "array": lambda lib, x, v, m: lib.np.array([[1.0, 2.0]] * 4, out_sharding=v),
    "initializer": lambda lib, x, v, m: lib.module.nn.initializers.he_normal()(key(lib), (8, 8), out_sharding=m),
}


def key(lib):
    return lib.module.random.key(3)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_shardings(name, jitted):
    results = []
    for lib in (OURS, THEIRS):
        mesh = lib.mesh("x4y2", "Explicit")
        with lib.module.set_mesh(mesh):
            x = lib.put(X, lib.sharding.NamedSharding(mesh, lib.P("x")))

            def f(x, lib=lib):
                return FUNCTIONS[name](lib, x, lib.P("y"), lib.P("y", "x"))

            made = (lib.jit(f) if jitted else f)(x)
            place = repr(made.sharding)
            results.append((np.asarray(made), str(lib.module.typeof(made)), place))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    assert results[0][1:] == results[1][1:]


def test_errors():
    with pytest.raises(TypeError, match="broadcast_to: out_sharding leaf specifications"):
        xtrace.numpy.broadcast_to(1, (2,), out_sharding=3)
    with pytest.raises(ValueError, match="requires a non-empty mesh"):
        xtrace.numpy.repeat(X, 2, out_sharding=OURS.P("x"))
