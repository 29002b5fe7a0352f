"""Sums along manual mesh axes, in the function of a `shard_map`: `pcast`, the collectives on terms, their adjoints."""

import re

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from xtrace.errors import ShardingTypeError

RNG = np.random.default_rng(1)
X, W = [RNG.normal(size=(8, 8)).astype("f") for _ in range(2)]


def run(lib, expression, outs, how):
    """The result, the types in the function, and the jaxpr: `x` is split over x, `w` whole, `r` reduced, `u` terms."""
    P = lib.P
    mesh = lib.mesh("x4y2", "Explicit")
    with lib.module.set_mesh(mesh):
        place = lib.sharding.NamedSharding
        x, w = lib.put(X, place(mesh, P("x"))), lib.put(W, place(mesh, P()))
        r, u = [lib.module.reshard(w, P(**{kind: {"x"}})) for kind in ("reduced", "unreduced")]
        names = {
            "np": lib.np, "lax": lib.lax, "m": lib.module, "P": P, "vjp": lib.module.vjp, "grad": lib.module.grad,
            "cast": lambda v, to, axis="x": lib.lax.pcast(v, axis, to=to),
        }
        types = []

        def of_pieces(*pieces):
            result = eval(expression, names | dict(zip("xwru", pieces, strict=True)))
            types.append(lib.module.typeof(result).str_short(True))
            return result

        function = lib.module.shard_map(of_pieces, mesh=mesh, out_specs=eval(outs, {"P": P}))
        text = re.sub(r"mesh=[^\n]*", "", str(lib.module.make_jaxpr(function)(x, w, r, u)))
        return how(lib)(function)(x, w, r, u), types, text.replace(" out_sharding=None", "")


TERMS = "cast(x, 'unreduced')"
RESULTS = [
    (TERMS, "P(unreduced={'x'})"), ("x", "P(unreduced={'x'})"), (f"lax.psum({TERMS}, 'x')", "P()"),
    ("cast(w, 'reduced')", "P(reduced={'x'})"), ("cast(cast(w, 'varying'), 'unreduced')", "P(unreduced={'x'})"),
    ("cast(r, 'varying') @ x.T", "P('x')"), ("lax.psum(u, 'x')", "P()"), ("u + u", "P(unreduced={'x'})"),
    ("lax.psum_scatter(u, 'x', tiled=True)", "P('x')"),
    (f"lax.psum_scatter({TERMS}, 'x', scatter_dimension=1, tiled=True)", "P(None, 'x')"),
    ("lax.all_gather(x, 'x', to='reduced', tiled=True)", "P(reduced={'x'})"),
    ("lax.all_gather(x, 'x', axis=1, to='reduced')", "P(reduced={'x'})"), ("r + r", "P(reduced={'x'})"),
    ("np.sin(r).sum(0)", "P(reduced={'x'})"), ("u * r", "P(unreduced={'x'})"), ("u.sum(0)", "P(unreduced={'x'})"),
    ("r.T", "P(reduced={'x'})"), ("x @ r", "P('x')"), ("x + r[:2]", "P('x')"), ("r @ w", "P()"),
    ("vjp(lambda q: cast(q, 'varying'), r)[1](cast(w, 'varying'))[0]", "P(unreduced={'x'})"),
    ("vjp(lambda q: cast(q, 'reduced'), w)[1](u)[0]", "P()"),
    ("vjp(lambda q: cast(q, 'unreduced'), cast(w, 'varying'))[1](r)[0]", "P('x')"),
    ("vjp(lambda q: lax.psum(q, 'x'), u)[1](w)[0]", "P(reduced={'x'})"),
    ("vjp(lambda q: lax.psum_scatter(q, 'x', tiled=True), u)[1](x)[0]", "P(reduced={'x'})"),
    ("vjp(lambda q: lax.all_gather(q, 'x', to='reduced', tiled=True), x)[1](u)[0]", "P('x')"),
    ("grad(lambda q: lax.psum((x @ q).sum(), 'x'))(r)", "P(unreduced={'x'})"),
    ("grad(lambda q: lax.psum(np.sin(cast(cast(q, 'reduced'), 'varying')), 'x').sum())(w)", "P()"),
    ("lax.psum(grad(lambda q: lax.psum(np.sin(x @ q).sum(), 'x'))(r), 'x')", "P()"),
    ("m.jvp(lambda q: lax.psum(q, 'x'), (u,), (u,))[1]", "P()"), ("lax.psum(lax.psum(u, 'x'), 'y')", "P()"),
    ("lax.psum_scatter(u * r, 'x', tiled=True)", "P('x')"), ("lax.cond(True, lambda u: u + u, lambda u: u, u)",
    "P(unreduced={'x'})"), ("lax.scan(lambda c, _: (c + u, None), u, None, length=3)[0]", "P(unreduced={'x'})"),
    ("cast(r, 'reduced', 'y')", "P(reduced={'x', 'y'})"), ("cast(x, 'reduced', 'y')", "P('x', reduced={'y'})"),
]

HOW = {"eager": lambda lib: lambda f: f, "jit": lambda lib: lib.jit}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("expression", "outs"), RESULTS)
def test_values_types_and_jaxprs(expression, outs, how):
    (ours, types, text), (theirs, their_types, their_text) = [
        run(lib, expression, outs, HOW[how]) for lib in (OURS, THEIRS)
    ]
    assert types[0] == their_types[0]
    assert xtrace.typeof(ours).str_short(True) == jax.typeof(theirs).str_short(short_dtypes=True)
    pieces = [[np.asarray(s.data) for s in x.addressable_shards] for x in (ours, theirs)]
    np.testing.assert_allclose(*pieces, rtol=1e-4, atol=1e-4)
    # Newer jax writes the suffix of some of these.
    names = r"\w*(?:reduced|unreduced|psum|scatter|gather)\w*?(?=(?:_p)?\[)"
    casts = [re.findall(names, t) for t in (text, their_text)]
    assert sorted(casts[0]) == sorted(casts[1])


def test_gradients_of_a_mapped_function():
    """A reduced argument has an unreduced gradient, whose terms no device has added up."""
    results = []
    for lib in (OURS, THEIRS):
        mesh = lib.mesh("x4y2", "Explicit")
        with lib.module.set_mesh(mesh):
            x = lib.put(X, lib.sharding.NamedSharding(mesh, lib.P("x")))
            w = lib.module.reshard(lib.put(W, lib.sharding.NamedSharding(mesh, lib.P())), lib.P(reduced={"x"}))
            mapped = lib.module.shard_map(lambda w, x, lib=lib: lib.np.sin(x @ w), out_specs=lib.P("x"))
            gradient = lib.jit(lib.module.grad(lambda w, x, mapped=mapped: mapped(w, x).sum()))
            results.append([gradient(w, x), lib.module.reshard(gradient(w, x), lib.P())])
    (terms, total), (their_terms, their_total) = results
    assert xtrace.typeof(terms).str_short(True) == jax.typeof(their_terms).str_short(True) == "f32[8,8]{U:x}"
    np.testing.assert_allclose(total, their_total, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(total, X.T @ np.cos(X @ W), rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(terms.addressable_shards, their_terms.addressable_shards, strict=True):
        np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-4, atol=1e-4)


# jax has no rule for scalars here, and none of `vmap`.
FURTHER = {
    "lax.psum(u * 2., 'x')": 2 * W, "cast(r * 2., 'varying')[:2] * 0 + x": X, "lax.psum(-u, 'x')": -W,
    "m.vmap(lambda v: lax.psum(v, 'x'))(u)": W, "m.vmap(lambda v: lax.psum_scatter(v, 'x', tiled=True))(u.T).T": W,
    "lax.psum(m.vmap(lambda v: cast(v, 'unreduced'))(cast(w, 'varying')), 'x')": 4 * W,
    "grad(lambda s: lax.psum(cast(s * r, 'varying').sum() * x[0, 0], 'x'))(np.float32(2))[None]": [
        W.sum() * X[::2, 0].sum()
    ],
    "m.vmap(lambda v: lax.all_gather(v, 'x', to='reduced', tiled=True))(x.T).T[:2] * 0 + x": X,
}


@pytest.mark.parametrize("expression", FURTHER)
def test_more_operations(expression):
    outs = "P()" if "psum(" in expression else "P('x')"
    result, _, _ = run(OURS, expression, outs, HOW["jit"])
    np.testing.assert_allclose(result, FURTHER[expression], rtol=1e-4, atol=1e-4)


REFUSED = [
    ("cast(x, 'reduced')", "P()", ValueError, "Unsupported pcast from=varying, to='reduced'"),
    ("cast(w, 'unreduced')", "P()", ValueError, "from=invarying, to='unreduced'.*to='varying' first"),
    ("cast(u, 'varying')", "P()", ValueError, "from=unreduced, to='varying'.*psum"),
    ("cast(r, 'reduced')", "P()", ValueError, "from=reduced, to='reduced'"),
    ("cast(w, 'foo')", "P()", ValueError, "to must be 'varying', 'reduced' or 'unreduced', got 'foo'"),
    ("lax.psum(r, 'x')", "P()", ValueError, r"cannot accept args.*pcast\(x, \('x',\), to='varying'\)"),
    ("r + w", "P()", ShardingTypeError, "replicated along"), ("u + w", "P()", ShardingTypeError, "psum"),
    ("u + x[:1]", "P()", ShardingTypeError, "psum"),
    ("np.sin(u)", "P()", NotImplementedError, r"lax.psum\(x, \('x',\)\)"),
    ("r", "P()", ValueError, r"Write P\(reduced=\{'x'\}\)"), ("u", "P()", ValueError, r"Write P\(unreduced=\{'x'\}\)"),
    ("w", "P(unreduced={'x'})", ValueError, "should have the unreduced and reduced axes of the result"),
    ("grad(lambda q: (q @ w).sum())(r)", "P(unreduced={'x'})", ShardingTypeError, "to='varying' with xtrace.lax.pcast"),
]


@pytest.mark.parametrize(("expression", "outs", "error", "text"), REFUSED)
def test_refusals(expression, outs, error, text):
    with pytest.raises(error, match=text):
        run(OURS, expression, outs, HOW["jit"])
    with pytest.raises(Exception, match=r"reduc|psum|pcast|type|replication|scalar|vary"):
        run(THEIRS, expression, outs, HOW["jit"])


def test_specifications_name_sums_on_explicit_axes_only():
    mesh = OURS.mesh("x4y2")
    for specs in ({"in_specs": xtrace.P(reduced={"x"}), "out_specs": xtrace.P()},
                  {"in_specs": xtrace.P("x"), "out_specs": xtrace.P(unreduced={"x"})}):
        with pytest.raises(ValueError, match="need a mesh whose axes are all explicit"):
            xtrace.shard_map(lambda x: x, mesh=mesh, **specs)(X)
    mapped = xtrace.shard_map(
        lambda x: xtrace.lax.psum(xtrace.lax.pcast(x, "x", to="unreduced"), "x"), mesh=mesh, in_specs=xtrace.P("x"),
        out_specs=xtrace.P(),
    )
    np.testing.assert_allclose(mapped(X), X.reshape(4, 2, 8).sum(0), rtol=1e-5)
