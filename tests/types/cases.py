"""What type checkers see of the public names; `test_types.py` runs the checkers on this file, which never runs itself.

An ignored error is expected: both checkers report a comment that ignores none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import xtrace
import xtrace.numpy as jnp
from xtrace import Array, lax
from xtrace.typing import ArrayLike


def loss(x: Array, scale: float) -> Array:
    return (x * scale).sum()


def with_aux(x: Array) -> tuple[Array, int]:
    return x.sum(), 1


@xtrace.jit
def compiled(x: Array, scale: float = 1.0) -> Array:
    return x * scale


@xtrace.jit(static_argnames="count")
def repeated(x: Array, *, count: int) -> tuple[Array, int]:
    return x, count


class Model:
    @xtrace.jit
    def apply(self, x: Array) -> Array:
        return x

    @xtrace.jit(static_argnums=0)
    def count(self, x: Array) -> int:
        return 1


@xtrace.custom_jvp
def own_jvp(x: Array, y: float) -> Array:
    return x


@xtrace.custom_vjp
def own_vjp(x: Array) -> Array:
    return x


def decorators(x: Array) -> None:
    assert_type(compiled(x), Array)
    assert_type(compiled(x, scale=2.0), Array)
    assert_type(repeated(x, count=2), tuple[Array, int])
    assert_type(Model().apply(x), Array)
    assert_type(Model().count(x), int)
    assert_type(compiled.lower(x).as_text(), str)
    assert_type(compiled.clear_cache(), None)
    assert_type(xtrace.value_and_grad(loss)(x, 1.0), tuple[Array, Any])
    assert_type(xtrace.grad(with_aux, has_aux=True)(x), tuple[Any, int])
    assert_type(xtrace.vmap(loss)(x, 1.0), Array)
    assert_type(xtrace.checkpoint(loss)(x, 1.0), Array)
    assert_type(xtrace.jvp(with_aux, (x,), (x,), has_aux=True), tuple[Array, Array, int])
    assert_type(xtrace.jvp(loss, (x, 1.0), (x, 1.0)), tuple[Array, Array])
    assert_type(xtrace.linearize(loss, x, 1.0), tuple[Array, Callable[..., Array]])
    assert_type(xtrace.vjp(loss, x, 1.0), tuple[Array, Callable[..., Any]])
    assert_type(own_jvp(x, 1.0), Array)
    assert_type(own_vjp(x), Array)


def wrong_calls(x: Array) -> None:
    compiled()  # type: ignore[call-arg]
    compiled(x, skale=2.0)  # type: ignore[call-arg]
    repeated(x, count="two")  # type: ignore[arg-type]
    xtrace.grad(loss)(x)  # type: ignore[call-arg]
    xtrace.vmap(loss)(x, "a")  # type: ignore[arg-type]
    own_jvp(x)  # type: ignore[call-arg]
    x.no_such_method()  # type: ignore[attr-defined]
    x + "a"  # type: ignore[operator]
    jnp.sum(x, keepdimension=True)  # type: ignore[call-arg]
    jnp.einsum()  # type: ignore[call-arg]
    xtrace.nn.softmax(x, axxis=0)  # type: ignore[call-arg]
    lax.dot_general(x)  # type: ignore[call-arg]


def arrays(x: Array, like: ArrayLike) -> None:
    assert_type(x + 1, Array)
    assert_type(2.0 * x, Array)
    assert_type(x @ x, Array)
    assert_type(x == x, Array)
    assert_type(-x, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type(x[0, ...], Array)
    assert_type(x.T, Array)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.sum(axis=0, keepdims=True), Array)
    assert_type(x.reshape(2, -1), Array)
    assert_type(x.astype("int32"), Array)
    assert_type(x.nonzero(), tuple[Array, ...])
    assert_type(x.block_until_ready(), Array)
    assert_type(float(x), float)
    assert_type(next(iter(x)), Array)



def functions(x: Array, key: Array) -> None:
    assert_type(jnp.zeros((2, 3), dtype=jnp.float32), Array)
    assert_type(jnp.ones(3, dtype=np.int32), Array)
    assert_type(jnp.dot(x, 2.0), Array)
    assert_type(jnp.kron(x, np.ones(3)), Array)
    assert_type(jnp.identity(3, dtype="float32"), Array)
    assert_type(lax.scan(lambda carry, _: (carry, None), x, None, length=2), tuple[Any, None])
    assert_type(jnp.maximum(x, 0), Array)
    assert_type(jnp.abs(x), Array)
    assert_type(jnp.where(x > 0, x, 0), Array)
    assert_type(jnp.where(x > 0), tuple[Array, ...])
    assert_type(jnp.unique(x), Array)
    assert_type(lax.mul(x, 2.0), Array)
    assert_type(lax.select(x > 0, x, x), Array)
    assert_type(lax.while_loop(lambda y: y < 3, jnp.negative, x), Array)
    xtrace.random.normal(key, (2, 3), jnp.float32)
    jnp.linalg.norm(x, axis=(0, 1))
    xtrace.scipy.special.gammaln(1.5)
    jnp.dot(x, [1.0])  # type: ignore[arg-type]
    jnp.zeros(3, dtype=1.0)  # type: ignore[arg-type]
    xtrace.nn.relu("x")  # type: ignore[arg-type]


def real_functions(x: Array) -> None:
    stats = xtrace.scipy.stats
    linalg = xtrace.scipy.linalg
    assert_type(stats.norm.logpdf(x, loc=1.0), Array)
    assert_type(stats.norm.cdf(np.float32(1.0)), Array)
    assert_type(xtrace.scipy.special.gamma(2.0), Array)
    assert_type(linalg.lu_factor(x), tuple[Array, Array])
    assert_type(xtrace.scipy.signal.welch(x, window=("kaiser", 2.0)), tuple[Array, Array])
    xtrace.scipy.sparse.linalg.cg(lambda v: v, {"a": x}, maxiter=3)
    xtrace.image.resize(x, (2, 2), "linear")
    assert_type(stats.chi2.sf(x, df=2.0), Array)
    stats.norm.cdf(1j)  # type: ignore[arg-type]
    stats.cauchy.logcdf(x, mean=1.0)  # type: ignore[call-arg]
    stats.norm.logpdf(1j)  # type: ignore[arg-type]
    stats.norm.logpdf(x, mean=1.0)  # type: ignore[call-arg]
    xtrace.scipy.special.betaln(1j, 2.0)  # type: ignore[arg-type]


def flags(x: Array) -> None:
    assert_type(jnp.linspace(0, 1, 3), Array)
    assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
    mat = xtrace.experimental.sparse.BCOO.fromdense(x)
    assert_type(mat.sum_duplicates(), xtrace.experimental.sparse.BCOO)
