"""Sums along explicit mesh axes that are not formed (`unreduced`), and those that are (`reduced`), in types."""

import jax
import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from xtrace.errors import ShardingTypeError

RNG = np.random.default_rng(0)
DATA = {name: RNG.normal(size=(8, 8)).astype("f") for name in ("w", "v", "a", "b", "u", "t", "r")}


def operands(lib):
    """Arrays: `u` and `t` are unreduced along y, `r` and `q` reduced; the others are split."""
    def place(name, *entries, **sums):
        x = lib.put(DATA[name], lib.sharding.NamedSharding(lib.mesh("x4y2", "Explicit"), lib.P(*entries)))
        return lib.module.reshard(x, lib.P(*entries, **sums)) if sums else x

    made = {
        "w": place("w", "x", "y"), "v": place("v", "y"), "a": place("a", "x"), "b": place("b"), "d": place("a", "y"),
        "u": place("u", unreduced={"y"}), "t": place("t", "x", unreduced={"y"}), "r": place("r", reduced={"y"}),
        "q": place("r", "x", reduced={"y"}), "z": place("b", unreduced={"x", "y"}),
        "k": place("b", reduced={"x", "y"}), "s": lib.np.float32(3),
    }
    names = {"np": lib.np, "lax": lib.lax, "m": lib.module, "P": lib.P, "form": lib.module.reshard, "N": np}
    return made, names | {"whole": lambda x: lib.module.reshard(x, lib.P()), "grad": lib.module.grad}


def evaluate(lib, expression, run):
    """Return the value of an expression of the operands, at once or in a compiled program."""
    with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
        made, names = operands(lib)
        used = [name for name in made if name in compile(expression, "", "eval").co_names or name in _inner(expression)]
        return run(lib)(lambda *values: eval(expression, names | dict(zip(used, values, strict=True))))(
            *[made[n] for n in used]
        )


def _inner(expression):
    """Return the names in the lambdas of an expression."""
    found, codes = set(), [compile(expression, "", "eval")]
    while codes:
        code = codes.pop()
        found |= {*code.co_names, *code.co_freevars}
        codes += [c for c in code.co_consts if hasattr(c, "co_names")]
    return found


RUNS = {"eager": lambda lib: lambda f: f, "jit": lambda lib: lib.jit}

PRODUCT = "np.einsum('ij,jk->ik', w, v, out_sharding=P('x', None, unreduced={'y'}))"

RESULTS = [
    "u", "t", "r", "q", "z", "k", PRODUCT, f"form({PRODUCT}, P('x'))", f"form({PRODUCT}, P('x', 'y'))",
    f"form({PRODUCT}, P())", f"form({PRODUCT}, P(('x', 'y')))", f"form({PRODUCT}, P(None, 'y'))",
    "np.dot(w, v, out_sharding=P('x', unreduced={'y'}))", "np.matmul(w, v, out_sharding=P('x', unreduced={'y'}))",
    "lax.dot(w, v, out_sharding=P('x', unreduced={'y'}))",
    "np.tensordot(w, v, 1, out_sharding=P('x', unreduced={'y'}))",
    "lax.dot_general(v, d, (((0,), (0,)), ((), ())), out_sharding=P(None, None, unreduced={'y'}))",
    "np.einsum('ij,jk->ki', w, v, out_sharding=P(None, 'x', unreduced={'y'}))",
    "lax.reduce_sum(a, (0,), out_sharding=P(None, unreduced={'x'}))",
    "np.dot(r, b, out_sharding=P('x', reduced={'y'}))",
    "u + u", "t + u", "u * r", "r * u", "t * r", "u.T", "u.sum(0)", "u.sum(1, keepdims=True)", "u.sum()",
    "u.astype('bfloat16')", "np.concatenate([u, u])", "lax.split(u, (4, 4))[1]", "u[:, None]",
    "np.broadcast_to(u, (2, 8, 8))", "np.pad(u, 1)", "lax.select(b > 0, u, u + u)", "lax.stop_gradient(u)",
    "lax.dynamic_update_slice(u, u, (0, 0))", "lax.optimization_barrier(u)", "lax.reduce_precision(u, 8, 10)",
    "r * 2.", "r + 1", "s * r", "np.sin(r)", "r + r", "r / r", "r > 1", "np.maximum(r, r)", "r.T", "r.sum(0)", "r @ b",
    "b @ r", "a @ r", "d @ r", "r @ r", "lax.select(b > 0, r, r)", "r.astype('int32')", "np.concatenate([r, r])",
    "lax.dynamic_slice(r, (0, 0), (4, 8))", "z + z", "z * k",
    "form(u, P())", "form(u, P('y'))", "form(u, P('x', 'y'))", "form(u, P(reduced={'y'}))", "form(z, P('x', 'y'))",
    "form(z, P(unreduced={'y'}))", "form(b, P(unreduced={'y'}))", "form(a, P('x', reduced={'y'}))", "form(r, P())",
    "form(a, P(reduced={'x'}))", "form(r, P('y'))", "m.device_put(r, P())",
    f"grad(lambda w, v: np.sin(form({PRODUCT}, P('x'))).sum(), (0, 1))(w, v)[0]",
    f"grad(lambda w, v: np.sin(form({PRODUCT}, P('x', 'y'))).sum(), (0, 1))(w, v)[1]",
    "grad(lambda r: np.sin(d @ r).sum())(r)", "grad(lambda r: np.sin(d @ form(r * 2., P(reduced={'y'}))).sum())(b)",
    "grad(lambda r: whole(np.sin(r) * r).sum())(r)", "grad(lambda r: r.sum())(r)", "grad(lambda u: u.sum())(u)",
    "grad(lambda b: np.sin(form(form(b, P('x', unreduced={'y'})), P('y'))).sum())(b)",
    "grad(lambda u: np.sin(whole(u + u)).sum())(u)", "grad(lambda s: whole(s * r).sum())(s)",
    "grad(lambda a: np.sin(whole(lax.reduce_sum(a, (0,), out_sharding=P(None, unreduced={'x'})))).sum())(a)",
    "grad(lambda r: whole(lax.scan(lambda c, x: (c * x, c), r[0], r)[0]).sum())(r)",
    "grad(lambda r: whole(m.checkpoint(np.sin)(r)).sum())(r)", "grad(lambda r: whole(m.jit(np.sin)(r)).sum())(r)",
    "grad(lambda r: whole(np.concatenate([r, r])).sum())(r)", "grad(lambda r: whole(r[:2]).sum())(r)",
    "grad(lambda r: (np.zeros(8) + 1).sum())(r)", "grad(lambda u: (np.zeros(8) + 1).sum())(u)",
    "m.jvp(lambda u: whole(u + u), (u,), (u,))[1]", "m.linearize(whole, u)[1](u)", "m.vjp(lambda u: u + u, u)[1](r)[0]",
    "lax.cond(True, lambda u: u + u, lambda u: u, u)",
    "np.zeros_like(r)", "np.ones_like(a)", "np.full_like(w, 3)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("expression", RESULTS)
def test_types_and_terms(expression, how):
    """The types, and the sum over all devices, are those of jax."""
    ours, theirs = [evaluate(lib, expression, RUNS[how]) for lib in (OURS, THEIRS)]
    ours, theirs = [x[0] if isinstance(x, (list, tuple)) else x for x in (ours, theirs)]
    assert xtrace.typeof(ours).str_short(True) == jax.typeof(theirs).str_short(short_dtypes=True)
    for part in ("partitions", "unreduced", "reduced"):
        assert getattr(ours.sharding.spec, part) == getattr(theirs.sharding.spec, part)
    totals = [sum(np.asarray(s.data, "f") for s in x.addressable_shards) for x in (ours, theirs)]
    np.testing.assert_allclose(*totals, rtol=1e-4, atol=1e-4)


# What jax has no rule for, or is wrong about (`stack`, and loops that close over terms); values are those of whole
# arrays.
FURTHER = [
    "-u", "u - t", "u / r", "u / 2.", "u * 3.", "s * u", "u.reshape(64)", "form(u.reshape(4, 16), P('x'))", "u[::-1]",
    "u[:2]", "u[1]", "lax.dynamic_slice(u, (1, 0), (4, 8))", "lax.cumsum(u, 0)", "u[N.array([0, 1])]", "u.mean(0)",
    "m.vmap(lambda v: v + v)(u)", "m.vmap(lambda v: v.sum())(u)", "np.stack([u, t], 1)", "np.stack([u, u])",
    "np.unstack(u)[3]",
    "lax.dynamic_update_slice(u, u[:2], (1, 0))", "u.at[N.array([1, 2])].add(u[:2])",
    "u.at[N.array([1, 2])].set(u[:2])", "np.real(lax.complex(u, t))", "np.imag(lax.conj(lax.complex(u, t)))",
    "lax.pad(u, N.float32(0), ((1, -2, 0), (0, 1, 1)))", "m.checkpoint(lambda v: v.T + v)(u)",
    "lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + u), (0, u))[1]",
    "lax.fori_loop(0, 3, lambda i, c: c + u, u)", "lax.fori_loop(0, 3, lambda i, c: c * 2. + u, u)",
    "lax.scan(lambda c, x: (c + x, c * 3.), u[0], u)[0]",
    "lax.scan(lambda c, x: (c + x, c * 3.), u[0], u)[1]",
    "lax.scan(lambda c, x: (c + x, c * 3.), u[0], u, unroll=3)[1]",
    "lax.scan(lambda c, x: (c + x, c * 3.), u[0], u, unroll=2, reverse=True)[1]", "lax.map(lambda v: v * 2., u)",
    "lax.cond(b[0, 0] > 0, lambda v: v.T, lambda v: v * 2., u)", "np.zeros_like(u) + u", "np.ones_like(u) * r",
    "lax.fft(u, 'FFT', (8,)).real", "lax.select_n(N.arange(64, dtype='i').reshape(8, 8) % 3, u, u + u, u * 3.)",
    "u.at[N.array([0, 3, 9])].get(mode='fill', fill_value=0)", "lax.cumsum(np.tile(r, (1, 64)), 1)",
    "np.roll(u, 3, 0)", "np.mean(u, 1)", "np.repeat(u, 2, 0)", "np.diagonal(u)", "np.concatenate([u] * 20)",
    "np.where(b > 0, u, t)", "m.device_put(u, P('x'))", "r.reshape(64)", "r.max(0)",
    "m.nn.softmax(r)", "r ** 2", "np.var(r, 0)", "np.linalg.norm(r)", "np.sort(r, 0)", "r @ b",
    "grad(lambda r: whole(-r / 3.).sum())(r)", "grad(lambda r: whole(m.nn.softmax(r))[:, 0].sum())(r)",
    "grad(lambda r: whole(r.max(0)).sum())(r)", "grad(lambda r: whole(r ** 3).sum())(r)",
    "grad(lambda r: np.sin(r @ b).sum())(r)", "grad(lambda r: whole(lax.cond(True, np.sin, np.cos, r)).sum())(r)",
    "grad(lambda r: whole(r[N.array([1, 2])]).sum())(r)", "grad(lambda r: whole(r.reshape(64)).sum())(r)",
    "grad(lambda r: whole(m.nn.relu(r) * m.nn.gelu(r)).sum())(r)", "grad(lambda r: whole(np.unstack(r)[1]).sum())(r)",
    "grad(lambda r: whole(np.clip(r, -1, 1).mean(0)).sum())(r)", "grad(lambda r: whole(np.var(r, 0)).sum())(r)",
    "grad(lambda r: whole(np.sort(r, 0) * r).sum())(r)", "grad(lambda r: whole(np.cumsum(r, 0) * r).sum())(r)",
    "grad(lambda r: whole(r.at[0].set(2.) * r).sum())(r)", "grad(lambda r: whole(lax.split(r, (4, 4))[1]).sum())(r)",
    "grad(lambda r: whole(np.tanh(r) * np.abs(r) + np.exp(r) - np.log1p(r * r)).sum())(r)",
    "grad(lambda r: np.sin(m.jit(lambda a, r: a @ r)(d, r)).sum())(r)",
    "grad(m.checkpoint(lambda r: np.sin(np.sin(d @ r)).sum()))(r)",
    "grad(lambda r: m.vmap(lambda a: np.sin(a @ r).sum())(d).sum())(r)",
    "grad(lambda r: lax.scan(lambda c, _: (np.sin(c @ r), c.sum()), d, None, length=3)[0].sum())(r)",
    "m.jvp(lambda r: whole(np.sin(r)), (r,), (r,))[1]",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("how", RUNS)
@pytest.mark.parametrize("expression", FURTHER)
def test_more_operations_on_terms(expression, how):
    with xtrace.set_mesh(OURS.mesh("x4y2", "Explicit")):
        result = xtrace.reshard(evaluate(OURS, expression, RUNS[how]), xtrace.P())
    whole = {n: DATA[k] for n, k in [(n, n) for n in DATA] + [("d", "a"), ("q", "r"), ("z", "b"), ("k", "b")]}
    names = operands_names()
    expected = eval(expression, names | {n: xtrace.numpy.asarray(x) for n, x in whole.items()} | {"s": 3.0})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def operands_names():
    """The names that expressions on one device use: nothing is split there."""
    return {
        "np": xtrace.numpy, "lax": xtrace.lax, "P": xtrace.P, "N": np, "form": lambda x, _: x, "whole": lambda x: x,
        "grad": xtrace.grad,
        "m": type("m", (), {n: staticmethod(getattr(xtrace, n)) for n in ("vmap", "jit", "checkpoint", "jvp")} | {
            "nn": xtrace.nn, "device_put": staticmethod(lambda x, _: x),
        }),
    }


@pytest.mark.parametrize("vector", [False, True])
def test_products_under_vmap(vector):
    """A mapped product leaves its sum to be formed, and so does its derivative."""
    with xtrace.set_mesh(OURS.mesh("x4y2", "Explicit")):
        made, _ = operands(OURS)
        w, v = made["w"], made["v"]

        def product(row):
            return xtrace.numpy.dot(row, v, out_sharding=xtrace.P(unreduced={"y"}))

        rows = xtrace.vmap(product)(w) if vector else product(xtrace.reshard(w, xtrace.P(None, "y")))
        assert xtrace.typeof(rows).str_short(True) == ("f32[8@x,8]{U:y}" if vector else "f32[8,8]{U:y}")
        np.testing.assert_allclose(xtrace.reshard(rows, xtrace.P()), DATA["w"] @ DATA["v"], rtol=1e-4, atol=1e-4)
        moved = xtrace.grad(lambda w: xtrace.reshard(xtrace.vmap(product)(w), xtrace.P("x")).sum())(w)
        np.testing.assert_allclose(moved, np.broadcast_to(DATA["v"].sum(1), (8, 8)), rtol=1e-4, atol=1e-4)


REFUSED = [
    ("u + b", ShardingTypeError, "unreduced along the same mesh axes.*Form it first with xtrace.reshard"),
    ("u + 1.", ShardingTypeError, "unreduced along the same"), ("u + form(b, P(unreduced={'x'}))",
    ShardingTypeError, "same mesh axes"),
    ("u * u", ShardingTypeError, "mul is bilinear"), ("u * b", ShardingTypeError, "should be reduced along.*axes y"),
    ("u * a", ShardingTypeError, r"reduced=\{'y'\}"), ("np.sin(u)", NotImplementedError, "unreduced rule for sin"),
    ("u > 1", NotImplementedError, r"reshard\(x, xtrace.P\(None, None\)\)"), ("u.max()",
    NotImplementedError, "reduce_max"),
    ("u @ b", ShardingTypeError, "operands cannot be unreduced"), ("b @ u", ShardingTypeError, "cannot be unreduced"),
    ("r + b", ShardingTypeError, "replicated along the mesh axes y"), ("r * a", ShardingTypeError, "replicated along"),
    ("r + d", ShardingTypeError, "split along the mesh axes y"), ("k + r",
    ShardingTypeError, "along the same mesh axes"),
    ("np.dot(a, b, out_sharding=P('x', unreduced={'y'}))", ShardingTypeError, "Split these with"),
    ("np.dot(w, b, out_sharding=P('x', unreduced={'y'}))", ShardingTypeError, "split identically"),
    ("np.dot(w, v, out_sharding=P(unreduced={'x'}))", ShardingTypeError, r"Write unreduced=\{'y'\}"),
    ("lax.reduce_sum(a, (1,), out_sharding=P(None, unreduced={'x'}))", ShardingTypeError, "summed dimensions"),
    ("np.concatenate([u, b])", ShardingTypeError, "unreduced along"), ("np.where(w > 0, u, u)",
    ShardingTypeError, "sum"),
    ("u.at[N.array([0, 9])].get(mode='fill', fill_value=1)", NotImplementedError, "unreduced rule for gather"),
    ("np.tile(u, (2, 1))", NotImplementedError, "unreduced rule for tile"),
    ("lax.with_sharding_constraint(u, P())", AssertionError, "the array's type has the spec"),
    ("m.vjp(lambda u: u + u, u)[1](u)", ValueError, r"f32\[8,8\]\{R:y\}; got f32\[8,8\]\{U:y\}"),
    ("m.vjp(lambda r: r + r, r)[1](b)", ValueError, r"f32\[8,8\]\{U:y\}; got f32\[8,8\]"),
]


@pytest.mark.parametrize(("expression", "error", "text"), REFUSED)
def test_refusals(expression, error, text):
    with pytest.raises(error, match=text):
        evaluate(OURS, expression, RUNS["jit"])
    with pytest.raises(Exception, match=r"reduc|shard|out_sharding|pspec|type"):
        evaluate(THEIRS, expression, RUNS["jit"])


def test_jaxprs_say_sums():
    """Scalars beside a reduced operand are reduced, as jax does it, and cotangents of reduced values are unreduced."""
    texts = []
    for lib in (OURS, THEIRS):
        with lib.module.set_mesh(lib.mesh("x4y2", "Explicit")):
            made, names = operands(lib)
            text = str(lib.module.make_jaxpr(lambda r, whole=names["whole"]: whole(r * 2.))(made["r"]))
            texts.append(text.replace(":f32[] ", " ").replace(":f32[]\n", "\n"))
    assert texts[0] == texts[1]
    with xtrace.set_mesh(OURS.mesh("x4y2", "Explicit")):
        made, _ = operands(OURS)
        text = str(xtrace.make_jaxpr(xtrace.grad(lambda r, d: (d @ r).sum()))(made["r"], made["d"]))
        assert "f32[8,8]{U:y} = dot_general[" in text
        lowered = xtrace.jit(lambda w, v: xtrace.numpy.dot(w, v, out_sharding=xtrace.P("x", unreduced={"y"}))).lower(
            made["w"], made["v"]
        )
    assert '<@mesh, [{"x"}, {}], unreduced={"y"}>' in lowered.as_text()
    assert "all-reduce" not in lowered.compile().as_text()


def test_a_step_forms_sums_of_gradients_once():
    """Gradients of several batches are added as terms; one all-reduce forms their sum."""
    with xtrace.set_mesh(OURS.mesh("x4y2", "Explicit")):
        weights = OURS.put(DATA["w"], OURS.named("x4y2", kind="Explicit"))
        batches = [OURS.put(DATA[n], OURS.named("x4y2", "x", kind="Explicit")) for n in ("a", "b", "v")]

        def step(w, *batches):
            w = xtrace.reshard(w, xtrace.P(reduced={"x"}))
            gradients = [xtrace.grad(lambda w, x=x: xtrace.numpy.sin(x @ w).sum())(w) for x in batches]
            return xtrace.reshard(gradients[0] + gradients[1] + gradients[2], xtrace.P())

        compiled = xtrace.jit(step).lower(weights, *batches).compile()
        assert compiled.as_text().count(" all-reduce(") == 1
        expected = sum(DATA[n].T @ np.cos(DATA[n] @ DATA["w"]) for n in ("a", "b", "v"))
        np.testing.assert_allclose(compiled(weights, *batches), expected, rtol=1e-4, atol=1e-4)
