"""Programs for symbolic shapes: what to compute, the shapes, and sizes to call them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_SIZES = ({"b": 3, "n": 4}, {"b": 5, "n": 2})


class Program(NamedTuple):
    """A function of arrays whose shapes are texts such as ``int32: b, n``, and values of their variables."""

    name: str
    function: Callable[..., Any]
    shapes: Sequence[str]
    constraints: Sequence[str] = ()
    sizes: Sequence[Mapping[str, int]] = _SIZES
    has_gradient: bool = True

    def specs(self, P: Any) -> list[Any]:
        """Return the descriptions of the arguments, made by the package P."""
        scope = P.export.SymbolicScope(self.constraints)
        return [
            P.ShapeDtypeStruct(P.export.symbolic_shape(text, scope=scope), dtype)
            for dtype, text in map(_dtype_and_shape, self.shapes)
        ]

    def arguments(self, sizes: Mapping[str, int]) -> list[Any]:
        """Return arrays of some sizes."""
        random = np.random.default_rng(0)
        arrays: list[Any] = []
        for dtype, text in map(_dtype_and_shape, self.shapes):
            shape = [eval(size, {}, dict(sizes)) for size in text.split(",")]
            drawn = random.normal(size=shape) if dtype == "float32" else random.integers(0, 2, shape)
            arrays.append(drawn.astype(dtype))
        return arrays

    def gradient(self, P: Any, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """Return the gradient of the sum of a function's inexact results by its inexact arguments."""

        def loss(*arrays: Any) -> Any:
            leaves = P.tree.leaves(function(*arrays))
            inexact = [x for x in leaves if P.numpy.issubdtype(x.dtype, P.numpy.inexact)]
            return sum([P.numpy.real(x).sum() for x in inexact])

        return P.grad(loss, [i for i, x in enumerate(arguments) if x.dtype == np.float32])(*arguments)


def _dtype_and_shape(text: str) -> tuple[str, str]:
    dtype, _, shape = text.rpartition(": ")
    return dtype or "float32", shape


def programs(P: Any) -> list[Program]:
    """Return the programs, written with the package P."""
    jnp, lax, nn, linalg = P.numpy, P.lax, P.nn, P.numpy.linalg

    def network(x: Any, w1: Any, w2: Any) -> Any:
        centred = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return nn.softmax(nn.relu(centred @ w1) @ w2)

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / np.sqrt(3.0)
        mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
        return jnp.einsum("bqk,bkd->bqd", nn.softmax(jnp.where(mask, scores, -1e9)), v)

    def definite(x: Any) -> Any:
        return x @ jnp.swapaxes(x, -1, -2) + 3 * jnp.eye(3)

    def random(draw: Callable[..., Any]) -> Callable[..., Any]:
        return lambda words, *arrays: draw(P.random.wrap_key_data(words), *arrays)

    return [
        Program("network", network, ["b, 4", "4, 8", "8, 3"]),
        Program("mean by shape", lambda x: x.sum() / x.shape[0], ["b, 4"]),
        Program("arange", lambda x: jnp.arange(x.shape[0]) + x, ["b"]),
        Program("zeros", lambda x: jnp.zeros((x.shape[0], 3)) + x[:, None], ["b"]),
        Program("reshape m1", lambda x: jnp.sin(x.reshape((-1, 2))), ["b, 4"]),
        Program("reshape flat", lambda x: x.reshape(-1) * 2, ["b, n"]),
        Program("reshape dims", lambda x: x.reshape((x.shape[1], x.shape[0])), ["b, n"]),
        Program("ravel", lambda x: jnp.ravel(x), ["b, n"]),
        Program("concatenate", lambda x, y: jnp.concatenate([x, y, jnp.ones((2, 3))]), ["b, 3", "n, 3"]),
        Program("stack", lambda x: jnp.stack([x, x * 2], axis=1), ["b, n"]),
        Program("pad", lambda x: jnp.pad(x, ((1, 2), (0, 1))), ["b, n"]),
        Program("laxpad", lambda x: lax.pad(x, 0.0, ((1, x.shape[0], 0),)), ["b"]),
        Program("pad interior", lambda x: lax.pad(x, 0.0, ((1, 2, 1),)), ["b"]),
        Program("pad neg", lambda x: lax.pad(x, 0.0, ((-1, 2, 0),)), ["b + 1"]),
        Program("slice all but last", lambda x: x[:, :x.shape[1] - 1], ["b, n"]),
        Program("slice first", lambda x: x[0], ["b, n"]),
        Program("slice inner", lambda x: x[1:-1], ["n"], sizes=({"n": 5}, {"n": 1})),
        Program("slice inner later", lambda x: x[2:-1], ["n"], sizes=({"n": 5}, {"n": 1})),
        Program("index that may be outside", lambda x: (x[1], x[-3]), ["n"], sizes=({"n": 5}, {"n": 1})),
        Program("same constants", lambda x, y: (nn.relu(x), nn.relu(y)), ["n", "b"]),
        Program("same constants of squares", lambda x: (jnp.eye(x.shape[0]), jnp.eye(x.shape[1])), ["b, n"]),
        Program("nonzero", lambda x: x[jnp.nonzero(x > 0, size=x.shape[0])[0]], ["n"], has_gradient=False),
        Program("unique", lambda x: jnp.unique(x, size=3), ["n"], has_gradient=False),
        Program("slice last", lambda x: x[-1], ["b, n"]),
        Program("slice from1", lambda x: x[1:], ["b, n"]),
        Program("slice to m1", lambda x: x[:-1], ["b, n"]),
        Program("slice step", lambda x: x[::2], ["b"]),
        Program("reverse", lambda x: x[::-1], ["b, n"]),
        Program("slice half", lambda x: x[:x.shape[0] // 2], ["b + 1"]),
        Program("newaxis", lambda x: x[None, :, None], ["b"]),
        Program("broadcast to", lambda x: jnp.broadcast_to(x, (x.shape[0], x.shape[0])), ["b"]),
        Program("transpose", lambda x: x.T, ["b, n"]),
        Program("var std", lambda x: (x.var(), x.std(0)), ["b, n"]),
        Program("argmax", lambda x: (x.argmax(1), x.argmin()), ["b, n"], has_gradient=False),
        Program("dot", lambda x, y: x @ y, ["b, n", "n, 3"]),
        Program("matmul batched", lambda x, y: x @ y, ["b, 2, n", "b, n, 3"]),
        Program("einsum", lambda x, y: jnp.einsum("bnk,bmk->bnm", x, y), ["b, n, 3", "b, 2, 3"]),
        Program("outer", lambda x, y: jnp.outer(x, y), ["b", "n"]),
        Program("attention", attention, ["b, n, 3", "b, n, 3", "b, n, 3"]),
        Program("conv", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), ["b, 2, n + 3, 6", "3, 2, 3, 3"]),
        Program(
            "conv valid", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID"),
            ["b, 2, n + 3, 6", "3, 2, 3, 3"],
        ),
        Program(
            "conv stride", lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME"),
            ["b, 2, 2 * n + 4, 6", "3, 2, 3, 3"],
        ),
        Program("maxpool", lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "VALID"), ["b, 2 * n"]),
        Program("sumpool same", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"), ["b, n + 2"]),
        Program("take", lambda x, i: jnp.take(x, i, axis=0), ["b, 3", "int32: n"]),
        Program("index array", lambda x, i: x[i], ["b, 3", "int32: n"]),
        Program("embed", lambda i, w: w[i], ["int32: b, n", "7, 4"], has_gradient=False),
        Program("take along", lambda x, i: jnp.take_along_axis(x, i[:, None], axis=1), ["b, 3", "int32: b"]),
        Program("at set", lambda x: x.at[0].set(1.0), ["b, n"]),
        Program("at add", lambda x, i: x.at[i].add(1.0), ["b", "int32: n"]),
        Program("at slice", lambda x: x.at[1:].multiply(2.0), ["b"]),
        Program("dynamic slice", lambda x, i: lax.dynamic_slice(x, (i[0], 0), (1, x.shape[1])), ["b, n", "int32: 1"]),
        Program(
            "dynamic update", lambda x, i: lax.dynamic_update_slice(x, jnp.ones((1, x.shape[1])), (i[0], 0)),
            ["b, n", "int32: 1"],
        ),
        Program("dynamic index", lambda x, i: lax.dynamic_index_in_dim(x, i[0]), ["b, n", "int32: 1"]),
        Program("scan", lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(x.shape[1]), x), ["b, n"]),
        Program("scan reverse", lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x, reverse=True), ["b"]),
        Program("scan unroll", lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x, unroll=2), ["b"]),
        Program("scan length", lambda x: lax.scan(lambda c, _: (c * 1.5, c.sum()), x, None, length=x.shape[0]), ["b"]),
        Program("map", lambda x: lax.map(lambda r: jnp.sin(r).sum(), x), ["b, n"]),
        Program("cond", lambda x: lax.cond(x.sum() > 0, lambda y: y * x.shape[0], lambda y: y - 1, x), ["b"]),
        Program(
            "while", lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, jnp.abs(x)),
            ["b"], has_gradient=False,
        ),
        Program("fori", lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), ["b"], has_gradient=False),
        Program("sort", lambda x: jnp.sort(x, axis=0), ["b, n"]),
        Program("argsort", lambda x: jnp.argsort(x), ["b, n"], has_gradient=False),
        Program("cumsum", lambda x: jnp.cumsum(x, axis=0), ["b, n"]),
        Program("cumsum flat", lambda x: jnp.cumsum(x), ["b, n"]),
        Program("logsumexp", lambda x: nn.logsumexp(x, axis=-1), ["b, n"]),
        Program("softmax", lambda x: nn.softmax(x), ["b, n"]),
        Program("gelu", lambda x: nn.gelu(x), ["b, n"]),
        Program("one hot", lambda i: nn.one_hot(i, 5), ["int32: b"], has_gradient=False),
        Program("one hot dim", lambda x: nn.one_hot(jnp.arange(x.shape[0]), x.shape[0]), ["b"], has_gradient=False),
        Program(
            "random normal", random(lambda k, x: P.random.normal(k, x.shape) + x),
            ["uint32: 2", "b, n"], has_gradient=False,
        ),
        Program(
            "random uniform", random(lambda k, x: P.random.uniform(k, (x.shape[0],))),
            ["uint32: 2", "b"], has_gradient=False,
        ),
        Program(
            "random split", random(lambda k, x: P.random.key_data(P.random.split(k, x.shape[0]))),
            ["uint32: 2", "b"], has_gradient=False,
        ),
        Program(
            "bernoulli", random(lambda k, x: jnp.where(P.random.bernoulli(k, 0.5, x.shape), x, 0)),
            ["uint32: 2", "b, n"], has_gradient=False,
        ),
        Program(
            "categorical", random(lambda k, x: P.random.categorical(k, x)),
            ["uint32: 2", "b, n"], has_gradient=False,
        ),
        Program("grad inside", lambda x: P.grad(lambda y: (y ** 2).sum() / y.shape[0])(x), ["b, n"]),
        Program("vmap inside", lambda x, w: P.vmap(lambda r: r @ w)(x), ["b, 4", "4, 3"]),
        Program("vmap nested", lambda x, y: P.vmap(P.vmap(jnp.multiply, (None, 0)), (0, None))(x, y), ["b", "n"]),
        Program("jit inside", lambda x: P.jit(lambda y, n: y * n)(x, x.shape[0]), ["b"]),
        Program("jit inside2", lambda x: P.jit(lambda y: y / y.shape[0])(x), ["b"]),
        Program("where", lambda x: jnp.where(x > 0, x, jnp.arange(x.shape[0], dtype=x.dtype)), ["b"]),
        Program("tile", lambda x: jnp.tile(x, (2, 3)), ["b, n"]),
        Program("repeat", lambda x: jnp.repeat(x, 2, axis=0), ["b, n"]),
        Program("eye", lambda x: x @ jnp.eye(x.shape[1]), ["b, n"]),
        Program("tri", lambda x: jnp.tril(x), ["b, n"]),
        Program("linspace", lambda x: jnp.linspace(0, 1, x.shape[0]) * x, ["b"], constraints=["b>=2"]),
        Program("meshgrid", lambda x, y: jnp.meshgrid(x, y), ["b", "n"]),
        Program("split", lambda x: jnp.split(x, 2, axis=1), ["b, 2 * n"]),
        Program("squeeze", lambda x: x[:, None].squeeze(1), ["b"]),
        Program("swapaxes", lambda x: jnp.swapaxes(x, 0, 1).reshape(x.shape[1], -1), ["b, n, 2"]),
        Program("roll", lambda x: jnp.roll(x, 1, axis=0), ["b, n"]),
        Program("flip", lambda x: jnp.flip(x), ["b"]),
        Program("clip", lambda x: jnp.clip(x, 0, x.shape[0]), ["b"]),
        Program("max dim", lambda x: x * P.core.max_dim(x.shape[0], 3), ["b"]),
        Program("floordiv dim", lambda x: x.reshape(x.shape[0] // 2, 2).sum(1), ["2 * b"]),
        Program(
            "mod constraint", lambda x: x.reshape(x.shape[0] // 2, 2).sum(1),
            ["m"], constraints=["mod(m,2)==0"], sizes=({"m": 4}, {"m": 6}),
        ),
        Program("normalize", lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), ["b, n"]),
        Program(
            "cross entropy", lambda x, i: -jnp.take_along_axis(nn.log_softmax(x), i[:, None], 1).mean(),
            ["b, 3", "int32: b"],
        ),
        Program("top k", lambda x: lax.top_k(x, 2), ["b, n + 1"], has_gradient=False),
        Program(
            "top k of a size", lambda d, x: lax.top_k(x, d.shape[0]), ["k", "b, n + k"], has_gradient=False,
            sizes=({"b": 2, "n": 3, "k": 2}, {"b": 1, "n": 1, "k": 1}),
        ),
        Program("top k along the first axis", lambda x: lax.top_k(x, x.shape[0] - 1, axis=0), ["b + 1, n"],
                has_gradient=False),
        Program("array of dims", lambda x: jnp.array([x.shape[0], x.shape[1], 3]), ["b, n"], has_gradient=False),
        Program(
            "dim arith", lambda x: jnp.asarray(x.shape[0]) * 2 + x.shape[1] % 2 + x.shape[0] // 2,
            ["b, n"], has_gradient=False,
        ),
        Program("dim float", lambda x: x * (1.0 / x.shape[0]) + x.shape[0] ** 0.5 + 2 ** x.shape[0], ["b"]),
        Program("searchsorted", lambda x, y: jnp.searchsorted(x, y), ["b", "n"], has_gradient=False),
        Program("diff", lambda x: jnp.diff(x), ["b + 1"]),
        Program("associative scan", lambda x: lax.associative_scan(jnp.add, x), ["b"]),
        Program("checkpoint", lambda x, w: P.checkpoint(lambda y: jnp.tanh(y @ w))(x), ["b, 4", "4, 4"]),
        Program("cholesky solve", lambda x: jnp.linalg.inv(x + 4 * jnp.eye(3)), ["b, 3, 3"]),
        Program("size ndim", lambda x: x * x.size + x.ndim + len(x.shape), ["b, n"]),
        Program("int sum", lambda i: i.sum(), ["int32: b"], has_gradient=False),
        Program("median", lambda x: jnp.sort(x)[x.shape[0] // 2], ["b"]),
        Program("average", lambda x: jnp.average(x, axis=0), ["b, n"]),
        Program("bincount", lambda i: jnp.bincount(i, length=5), ["int32: b"], has_gradient=False),
        Program("segment sum", lambda x, i: P.ops.segment_sum(x, i, num_segments=4), ["b", "int32: b"]),
        Program(
            "rope",
            lambda x: jnp.concatenate([-x[..., 2:], x[..., :2]], -1) * jnp.cos(jnp.arange(x.shape[1])[:, None] * 0.1),
            ["b, n, 4"],
        ),
        Program("dropout mask", lambda x: x * jnp.ones_like(x)[:, :1], ["b, n"]),
        Program("vdot", lambda x, y: jnp.vdot(x, y), ["b", "b"]),
        Program("expand", lambda x: jnp.expand_dims(x, (0, 2)), ["b"]),
        Program("full like", lambda x: jnp.full_like(x, 3.0) + jnp.full((x.shape[0],), x[0]), ["b"]),
        Program("digitize", lambda x: jnp.nan_to_num(x) + jnp.isnan(x), ["b"]),
        Program("bf16", lambda x: (x.astype("bfloat16") * 2).astype("float32"), ["b"]),
        Program("complex", lambda x: jnp.abs(x + 1j * x), ["b"]),
        Program(
            "batchnorm",
            lambda x: (x - x.mean((0, 2), keepdims=True)) * lax.rsqrt(x.var((0, 2), keepdims=True) + 1e-05),
            ["b, 3, n"],
        ),
        Program("sdpa", lambda q: nn.dot_product_attention(q, q, q, is_causal=True), ["b, n, 2, 4"]),
        Program("cholesky", lambda x: linalg.cholesky(definite(x)), ["b, 3, 3"]),
        Program("solve", lambda x: linalg.solve(definite(x), x), ["b, 3, 3"]),
        Program("eigh", lambda x: linalg.eigh(definite(x))[0], ["b, 3, 3"]),
        Program("svd", lambda x: linalg.svd(x, compute_uv=False), ["b, 3, 3"]),
        Program("det", lambda x: linalg.det(x), ["b, 3, 3"]),
        Program("fft", lambda x: jnp.abs(jnp.fft.fft(x)), ["b, 4"]),
        Program(
            "conv same unknown", lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME"),
            ["b, 2, n, 6", "3, 2, 3, 3"], has_gradient=False,
        ),
        Program("gather rows mid", lambda x, i: x[:, i], ["b, 5, n", "int32: 3"]),
        Program("scatter rows", lambda x, i: x.at[:, i].set(0.0), ["b, 5, n", "int32: 3"]),
        Program("clip gather", lambda x, i: jnp.take(x, i, axis=0, mode="clip"), ["b, 3", "int32: n"]),
        Program(
            "nested scan",
            lambda x: lax.scan(lambda c, r: (c + lax.scan(lambda d, e: (d * e + 1, d), 0.0, r)[0], r.sum()), 0.0, x),
            ["b, n"],
        ),
        Program(
            "jit of jit",
            lambda x: P.jit(lambda y: P.jit(lambda z: z * z.shape[0] + jnp.arange(z.shape[0]))(y) + y.shape[0])(x),
            ["b"],
        ),
        Program("custom jvp", lambda x: nn.silu(x) + nn.relu(x) + nn.softplus(x), ["b, n"]),
        Program("remat scan", lambda x: lax.scan(P.checkpoint(lambda c, y: (jnp.sin(c) * y, c)), 1.0, x), ["b"]),
        Program("sub dims", lambda x, y: x[:y.shape[0]] * y, ["n + b", "n"]),
        Program(
            "triangular mask", lambda x: jnp.where(jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[0]), x, 0),
            ["b, b"],
        ),
        Program("trace diag", lambda x: (jnp.trace(x), jnp.diagonal(x)), ["b, b"]),
        Program("prod int", lambda i: jnp.prod(i), ["int32: b"], has_gradient=False),
        Program("all any", lambda x: ((x > 0).all(), (x > 0).any(1)), ["b, n"], has_gradient=False),
        Program(
            "avg pool dims", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4,
            ["b, 2 * n, 2 * n, 3"],
        ),
        Program("cumsum rev", lambda x: lax.cumsum(x, reverse=True), ["b"]),
        Program("cumlogsumexp", lambda x: lax.cumlogsumexp(x), ["b"], has_gradient=False),
        Program(
            "flatten batch",
            lambda x: (x.reshape(-1, x.shape[2]) @ jnp.ones((x.shape[2], 2))).reshape(*x.shape[:2], 2),
            ["b, n, 3"],
        ),
        Program("group", lambda x: x.reshape(x.shape[0], 2, -1).sum(-1), ["b, 2 * n"]),
        Program("bool dims", lambda x: x if x.shape[0] >= 1 else -x, ["b"]),
        Program("argsort take", lambda x: x[jnp.argsort(x)], ["b"], has_gradient=False),
        Program("where idx", lambda x: jnp.argmax(jnp.where(x > 0, x, -jnp.inf), axis=1), ["b, n"], has_gradient=False),
        Program("dot vec", lambda x, w: x.dot(w), ["b, 4", "4"]),
        Program("tensordot", lambda x, y: jnp.tensordot(x, y, axes=([1], [1])), ["b, n", "3, n"]),
        Program("outer sum", lambda x, y: x[:, None] + y[None, :], ["b", "n"]),
        Program("logsumexp all", lambda x: nn.logsumexp(x), ["b, n"]),
        Program("mixed dims arith", lambda x: jnp.zeros((x.shape[0] * 2 + x.shape[1],)) + x.sum(), ["b, n"]),
    ]
