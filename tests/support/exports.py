"""Programs that are exported by xtrace and by jax, and read by the other: each of the package and its arguments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import xtrace
from tests.support.operands import assert_close


def assert_equal(one: Any, other: Any, rounding: int) -> None:
    """Both are the same trees of arrays, up to the roundings of two compilations, of sums and of decompositions."""
    one, other = xtrace.tree.leaves(one), jax.tree.leaves(other)
    assert len(one) == len(other)
    for x, y in zip(one, other, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        assert_close(x, y, rounding=rounding, floor=1.0)


GOLDEN = Path(__file__).parents[1] / "export" / "golden"


def read_golden(name: str) -> bytes:
    """The file of an exported function that jax wrote."""
    return (GOLDEN / f"{name}.bin").read_bytes()


X = np.linspace(-1.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
V = np.array([0.5, -0.25, 2.0, 1.0], np.float32)
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], np.float32)
N = np.array([3, 1, 2, 0], np.int32)


def _network(P: Any) -> Callable[..., Any]:
    def loss(weights: Any, x: Any) -> Any:
        for layer in weights:
            x = P.nn.relu(x @ layer["w"] + layer["b"])
        return P.numpy.mean(x**2)

    return loss


WEIGHTS = [{"w": X.T @ X / 3, "b": V}, {"w": X.T, "b": np.ones(3, np.float32)}]

# The name, the function of the package, and the arguments.
PROGRAMS: list[tuple[str, Callable[[Any], Callable[..., Any]], tuple[Any, ...]]] = [
    ("elementwise", lambda P: lambda x: P.numpy.sin(x) * P.numpy.exp(-x), (X,)),
    ("two results", lambda P: lambda x: (x * 2.0, P.numpy.tanh(x)), (V,)),
    ("trees", lambda P: lambda t: {"a": t["x"][0] * t["y"], "b": [t["x"][1], None]}, ({"x": (V, N), "y": 2.0},)),
    ("ordered dict", lambda P: lambda t: t["z"] - t["a"], (OrderedDict(z=V, a=V * 2),)),
    ("unused", lambda P: lambda x, y, z: x + z, (V, X, V)),
    ("no arguments", lambda P: lambda: P.numpy.arange(3.0), ()),
    ("constant", lambda P: lambda x: x + 1.0 * P.numpy.asarray(WEIGHTS[0]["w"]), (V,)),
    ("large constant", lambda P: lambda x: x + P.numpy.asarray(np.arange(4000, dtype=np.float32)).reshape(-1, 4), (V,)),
    ("product", lambda P: lambda x: x @ x.T, (X,)),
    ("contraction", lambda P: lambda x, y: P.numpy.einsum("ij,kj->ki", x, y), (X, X + 1)),
    ("reductions", lambda P: lambda x: (x.sum(0), x.max(1), P.numpy.var(x), x.argmin()), (X,)),
    ("softmax", lambda P: lambda x: P.nn.softmax(x, axis=1), (X,)),
    ("special functions", lambda P: lambda x: (
        P.scipy.special.erf(x), P.scipy.special.erfinv(x / 2), P.scipy.special.gammaln(x + 2), P.numpy.arcsinh(x)
    ), (X,)),
    ("top_k", lambda P: lambda x: P.lax.top_k(x, 2), (X,)),
    ("sorting", lambda P: lambda x: P.numpy.sort(x, axis=0), (X,)),
    ("cumulative", lambda P: lambda x: P.numpy.cumsum(x, axis=1), (X,)),
    ("indexing", lambda P: lambda x, n: x[n % 3] + x[:, ::-1][0], (X, N)),
    ("scatter", lambda P: lambda x, n: x.at[n].add(2.0), (V, N)),
    ("padding", lambda P: lambda x: P.numpy.pad(x, ((1, 0), (0, 2))), (X,)),
    ("concatenation", lambda P: lambda x: P.numpy.concatenate([x, x * 2], axis=0), (X,)),
    ("where", lambda P: lambda x: P.numpy.where(x > 0, x, -3.0 * x), (X,)),
    ("integers", lambda P: lambda n: (n // 2, n << 1, n.astype("float32")), (N,)),
    ("bfloat16", lambda P: lambda x: (x.astype("bfloat16") * 2).astype("float32"), (X,)),
    ("complex", lambda P: lambda x: P.numpy.abs(P.numpy.exp(1j * x)), (X,)),
    ("fourier", lambda P: lambda x: P.numpy.fft.irfft(P.numpy.fft.rfft(x)), (X,)),
    ("convolution", lambda P: lambda x: P.numpy.convolve(x, x[:2]), (V,)),
    ("scan", lambda P: lambda x: P.lax.scan(lambda c, a: (c * 0.5 + a, c), x[0], x), (X,)),
    ("fori_loop", lambda P: lambda x: P.lax.fori_loop(0, 3, lambda i, c: P.numpy.sin(c), x), (X,)),
    ("while_loop", lambda P: lambda x: P.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2 + 1, x * x), (V,)),
    ("cond", lambda P: lambda n, x: P.lax.cond(n > 0, P.numpy.sin, P.numpy.cos, x), (np.int32(1), V)),
    ("cholesky", lambda P: lambda x: P.numpy.linalg.cholesky(x @ x.T), (S,)),
    ("solve", lambda P: lambda x, y: P.numpy.linalg.solve(x, y), (S, V[:3])),
    ("eigenvalues", lambda P: lambda x: P.numpy.linalg.eigvalsh(x + x.T), (S,)),
    ("random", lambda P: lambda n: P.random.uniform(P.random.key(n), (3,)), (np.int32(3),)),
    ("vmap", lambda P: P.vmap(lambda a: P.numpy.dot(a, a)), (X,)),
    ("custom_jvp", lambda P: P.nn.gelu, (V,)),
    ("checkpoint", lambda P: P.checkpoint(lambda x: P.numpy.sin(P.numpy.sin(x))), (X,)),
    ("inner jit", lambda P: lambda x: P.jit(P.numpy.tanh)(x) + P.jit(P.numpy.tanh)(x * 2), (X,)),
    ("gradient", lambda P: P.grad(lambda x: (x**3).sum()), (X,)),
    ("network", _network, (WEIGHTS, X)),
]
WITHOUT_GRADIENT = {"no arguments", "integers", "random", "while_loop"}


def cotangent_sum(P: Any, tree: Any) -> Any:
    """The sum of the results' real elements, which is differentiated."""
    leaves = [x for x in P.tree.leaves(tree) if P.numpy.issubdtype(x.dtype, np.floating)]
    return sum([x.sum() for x in leaves])


def gradient(P: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The gradient of the sum of the results of a function with respect to its floating leaves."""
    leaves, tree = P.tree.flatten(args)
    places = [i for i, x in enumerate(leaves) if P.numpy.issubdtype(P.numpy.asarray(x).dtype, np.floating)]

    def of_floats(floats: Any) -> Any:
        given = list(leaves)
        for i, x in zip(places, floats, strict=True):
            given[i] = x
        return cotangent_sum(P, function(*P.tree.unflatten(tree, given)))

    return P.grad(of_floats)([leaves[i] for i in places])
