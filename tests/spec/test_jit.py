"""Specification, section 2: jit. Rows about time count traces, compilations and executions instead."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import xtrace as jax
import xtrace.numpy as jnp
from xtrace import jit


def f(x):
    if x > 0:
        return x
    return 2 * x


def g(x, n):
    i = 0
    while i < n:
        i += 1
    return x + i


def test_2_1_ways_to_write_jit() -> None:
    def scaled(x, n):
        return x * n

    assert jit(scaled)(2.0, 3) == 6

    @jit
    def decorated(x):
        return x + 1

    assert decorated(1) == 2

    @partial(jit, static_argnums=(1,))
    def with_partial(x, neg):
        return -x if neg else x

    assert repr(with_partial(1, True)) == "Array(-1, dtype=int32, weak_type=True)"
    assert repr(with_partial(1, False)) == "Array(1, dtype=int32, weak_type=True)"
    for options in ({"static_argnums": 1}, {"static_argnames": ["n"]}, {"static_argnames": "n"}):
        assert int(jit(g, **options)(10, 20)) == 30
        assert int(jit(g, **options)(10, n=20)) == 30


def _selu(x, alpha=1.67, lambda_=1.05):
    return lambda_ * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def test_2_2_same_results_as_without() -> None:
    x = jnp.arange(1000000)
    jitted = jit(_selu)
    result = jitted(x).block_until_ready()
    assert isinstance(result, jax.Array)
    # exp, a product, a difference, a product: a rounding each.
    np.testing.assert_allclose(result, _selu(x), rtol=8 * np.finfo(np.float32).eps)


def test_2_3_a_second_call_runs_neither_python_nor_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []
    compilations = _count_compilations(monkeypatch)

    @jit
    def h(x, y):
        traces.append(1)
        return jnp.dot(x + 1, y + 1)

    for seed in range(10):
        generator = np.random.default_rng(seed)
        h(generator.normal(size=(3, 4)), generator.normal(size=4))
    assert (len(traces), len(compilations)) == (1, 1)


def _count_compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from xtrace._src.runtime import execute

    texts: list[str] = []
    compile_text = execute.executables.compile_text

    def counting(text, *args, **kwargs):
        texts.append(text)
        return compile_text(text, *args, **kwargs)

    monkeypatch.setattr(execute.executables, "compile_text", counting)
    return texts


def test_2_4_a_new_signature_compiles_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = []

    @partial(jit, static_argnums=1)
    def h(tree, n):
        traces.append(n)
        return jax.tree_util.tree_map(lambda x: x * n, tree)

    x = np.ones(3, np.float32)
    compilations = _count_compilations(monkeypatch)
    signatures = [
        (x, 1), (x, 2), (np.ones(4, np.float32), 1), (np.ones(3, np.int32), 1), ({"a": x}, 1), ([x], 1), (1.0, 1),
        (1, 1),
    ]
    for _ in range(3):
        for arguments in signatures:
            h(*arguments)
    assert len(traces) == len(compilations) == len(signatures)


def test_2_4_an_unhashable_static_argument() -> None:
    with pytest.raises(ValueError, match=r"Non-hashable static arguments are not supported.*list.*\[1, 2\]"):
        jit(lambda x, n: x, static_argnums=1)(1.0, [1, 2])


def test_2_5_the_cache_belongs_to_the_function() -> None:
    traces = []

    def body(i):
        traces.append(1)
        return i + 1

    for _ in range(5):
        jit(body)(1)
    assert len(traces) == 1

    class Counter:
        def step(self, x):
            traces.append(1)
            return x + 1

    counter = Counter()
    traces.clear()
    for _ in range(5):
        jit(counter.step)(1)
    assert len(traces) == 1
    traces.clear()
    for _ in range(3):
        jit(partial(body))(1)
        jit(lambda x: body(x))(1)
    assert len(traces) == 6


def test_2_6_static_arguments_make_branches_possible() -> None:
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jit(f)(10)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jit(g)(10, 20)
    assert str(jit(f, static_argnums=0)(10)) == "10"
    assert str(jit(g, static_argnames=["n"])(10, 20)) == "30"


def test_2_7_only_the_loop_body_jitted() -> None:
    @jit
    def loop_body(prev_i):
        return prev_i + 1

    def g_inner_jitted(x, n):
        i = 0
        while i < n:
            i = loop_body(i)
        return x + i

    assert repr(g_inner_jitted(10, 20)) == "Array(30, dtype=int32, weak_type=True)"


def test_2_8_jitted_selu_is_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from xtrace._src.runtime import execute

    runs = []
    original = execute.Program.__call__
    monkeypatch.setattr(execute.Program, "__call__", lambda self, *a: runs.append(1) or original(self, *a))
    x = jnp.arange(100.0)
    runs.clear()
    jit(lambda x: _selu(x))(x)
    assert len(runs) == 1


def test_2_9_a_boolean_mask_works_op_by_op_only() -> None:
    x = jnp.array([-1.5, 2.0, -0.5, 3.0])
    negatives = lambda x: x[x < 0]  # noqa: E731
    np.testing.assert_array_equal(negatives(x), [-1.5, -0.5])
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jit(negatives)(x)


def test_2_10_column_normalisation() -> None:
    def norm(x):
        x = x - x.mean(0)
        return x / x.std(0)

    x = jnp.array(np.random.default_rng(1701).uniform(size=(10000, 10)))
    np.testing.assert_allclose(norm(x), jit(norm)(x), atol=1e-6)


def test_2_11_shapes_are_static() -> None:
    x = jnp.ones((2, 3))
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        jit(lambda x: x.reshape(jnp.array(x.shape).prod()))(x)
    assert repr(jit(lambda x: x.reshape((np.prod(x.shape),)))(x)) == "Array([1., 1., 1., 1., 1., 1.], dtype=float32)"
