"""Prefixes of results: parameters such as out_axes build no object of a user's class with wrong leaves."""

import jax
import numpy as np
import pytest

import xtrace

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def make_class(package):
    """Return a pytree class of `package` whose leaf must be an array with a last axis of size 3."""

    @package.tree_util.register_pytree_node_class
    class Triples:
        def __init__(self, x):
            assert x.shape[-1] == 3
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    return Triples


def map_shards(package, triples):
    mesh, spec = package.make_mesh((1,), ("x",)), package.P()
    return package.shard_map(lambda t: (t, t), mesh=mesh, in_specs=spec, out_specs=(spec, spec))(triples)


CALLS = {
    "vmap": lambda package, t: package.vmap(type(t), in_axes=1)(t.x.T),
    "vmap, in_axes": lambda package, t: package.vmap(lambda t, y: t, in_axes=(0, None))(t, t),
    "vmap, out_axes": lambda package, t: package.vmap(lambda x: (type(t)(x), x), out_axes=(0, 1))(t.x),
    "jit": lambda package, t: package.jit(
        lambda t: (t, t), out_shardings=(package.sharding.SingleDeviceSharding(package.devices()[0]), None))(t),
    "pmap": lambda package, t: package.pmap(lambda t: (t, t), out_axes=(0, 0))(package.tree.map(lambda x: x[:1], t)),
    "shard_map": map_shards,
}


@pytest.mark.parametrize("name", CALLS)
def test_prefixes_build_no_objects(name):
    def call(package):
        return package.tree.leaves(CALLS[name](package, make_class(package)(package.numpy.asarray(X))))

    for ours, theirs in zip(call(xtrace), call(jax), strict=True):
        np.testing.assert_array_equal(ours, theirs)
