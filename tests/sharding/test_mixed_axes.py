"""Meshes with an explicit axis and one that is the compiler's: types say the one, and results are split over both."""

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS

X = np.arange(64, dtype=np.float32).reshape(8, 8) / 8


def evaluate(lib, expression):
    """The value on a mesh whose axis x is explicit: `x` is split over it, `y` over both axes."""
    kinds = lib.sharding.AxisType
    mesh = lib.sharding.Mesh(lib.devices.reshape(4, 2), ("x", "y"), axis_types=(kinds.Explicit, kinds.Auto))

    def named(*entries):
        return lib.sharding.NamedSharding(mesh, lib.P(*entries))

    with lib.module.set_mesh(mesh):
        names = {
            "np": lib.np, "lax": lib.lax, "m": lib.module, "P": lib.P, "N": named, "jit": lib.jit, "X": X,
            "x": lib.put(X, named("x")), "y": lib.put(X, named("x", "y")), "lib": lib,
        }
        return eval(expression, names)


RESULTS = [
    "m.device_put(X, N('y'))", "m.device_put(X, N(('y', 'x')))", "x + 1", "np.sin(x)", "x.T", "y + 1", "np.sin(y)",
    "y.T", "y.sum(0)", "y * x", "x.sum(0)", "m.reshard(x, P())", "m.reshard(x, P(None, 'x'))",
    "m.reshard(y, P(None, 'x'))", "jit(lambda y: m.reshard(y, P(None, 'x')))(y)",
    "jit(lambda x: lax.with_sharding_constraint(x, N(None, 'y')))(x)", "jit(lambda y, x: y * x)(y, x)",
    "jit(m.grad(lambda y: np.sin(y).sum()))(y)", "np.where(y > 0, y, x)", "y.astype('bfloat16')",
    "jit(lambda x: x, out_shardings=P('x', 'y'))(x)", "jit(lambda a: a + x, in_shardings=N('x', 'y'))(X)",
    "m.shard_map(lambda x: x, in_specs=P('x', 'y'), out_specs=P('x', 'y'))(x)",
    "lib.sharding.explicit_axes(lambda x: x + 1, axes='y', in_sharding=P('x', 'y'))(x)",
    "lax.scan(lambda c, _: (np.sin(c), None), y, None, length=2)[0]", "m.vmap(lambda v: v * 2)(x)",
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("expression", RESULTS)
def test_results_are_split_as_jaxs(expression):
    ours, theirs = [evaluate(lib, expression) for lib in (OURS, THEIRS)]
    assert xtrace.typeof(ours).str_short(True) == jax.typeof(theirs).str_short(short_dtypes=True)
    assert repr(ours.sharding.spec) == repr(theirs.sharding.spec)
    np.testing.assert_allclose(np.asarray(ours, "f"), np.asarray(theirs, "f"), rtol=1e-5)


REFUSED = [
    ("m.reshard(x, P('y'))", "y is no explicit axis.*with_sharding_constraint"),
    ("m.reshard(x, P(('x', 'y')))", "passed to reshard cannot contain axis names that are of type Auto"),
    ("jit(lambda x: m.reshard(x, N('y')))(x)", "passed to reshard cannot contain"),
    ("np.ones((8, 8), out_sharding=P('x', 'y'))", "out_sharding cannot contain"),
    ("lax.with_sharding_constraint(x, P('x'))", "can only refer to Auto axes.*x is an explicit axis"),
    ("jit(lambda x: lax.with_sharding_constraint(x, P('x', 'y')))(x)", "can only refer to Auto axes"),
    ("m.vmap(lambda v: v * 2, spmd_axis_name='y')(x)", "only one of spmd_axis_name or arrays sharded on Explicit"),
    ("m.vmap(lambda a, b: a + b)(x, X)", "should be split the same.*split over 'x' along axis 0"),
    ("m.vmap(lambda a, b: a + b)(x, m.reshard(x, P()))", r"split the same.*xtrace.reshard\(x, xtrace.P"),
]


@pytest.mark.parametrize(("expression", "text"), REFUSED)
def test_refusals(expression, text):
    with pytest.raises(ValueError, match=f"(?s){text}"):
        evaluate(OURS, expression)
    with pytest.raises(ValueError, match=r"Auto|spmd_axis_name|sharded the same"):
        evaluate(THEIRS, expression)


@pytest.mark.parametrize("spec", [xtrace.P("y"), xtrace.P(unreduced={"y"})])
def test_reshard_is_for_explicit_axes(spec):
    with pytest.raises(ValueError, match="passed to reshard cannot contain axis names that are of type Auto"):
        xtrace.reshard(X, xtrace.NamedSharding(OURS.mesh("x4y2"), spec))
