"""Specification, section 3: the errors `jit` alone can raise, with their types and texts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import xtrace as jax
import xtrace.numpy as jnp
from xtrace import jit, lax
from xtrace.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)


def _place(function) -> str:
    return f"{function.__name__} at {__file__}:{inspect.getsourcelines(function)[1]} for jit."


def test_a_condition_on_a_traced_value() -> None:
    def f(x):
        return x if x > 0 else 2 * x

    with pytest.raises(TracerBoolConversionError) as caught:
        jit(f)(10)
    assert isinstance(caught.value, ConcretizationTypeError) and isinstance(caught.value, TypeError)
    text = str(caught.value)
    assert "Attempted boolean conversion of traced array with shape bool[]." in text
    assert f"The error occurred while tracing the function {_place(f)}" in text
    assert "This concrete value was not available in Python because it depends on the value of the argument x." in text
    line = inspect.getsourcelines(f)[1] + 1
    assert f"\n  {__file__}:{line} (f)\n    return x if x > 0 else 2 * x\n                ^^^^^\n" in text
    assert "\nTo fix it: jnp.where(x > 0, x, 2 * x)\n" in text
    assert 'make x static with jit(f, static_argnames=["x"])' in text


def test_a_loop_on_a_traced_value() -> None:
    def g(x, n):
        i = 0
        while i < n:
            i += 1
        return x + i

    with pytest.raises(TracerBoolConversionError) as caught:
        jit(g)(10, 20)
    assert f"The error occurred while tracing the function {_place(g)}" in str(caught.value)
    assert "it depends on the value of the argument n." in str(caught.value)
    assert "    while i < n:\n          ^^^^^\n" in str(caught.value)
    assert "To fix it: i = lax.while_loop(lambda i: i < n, lambda i: i + 1, i)\n" in str(caught.value)


def test_a_mask_under_jit() -> None:
    with pytest.raises(NonConcreteBooleanIndexError) as caught:
        jit(lambda x: x[x < 0])(np.zeros(10, np.float32))
    assert isinstance(caught.value, IndexError)
    assert "Array boolean indices must be concrete; got ShapedArray(bool[10])" in str(caught.value)
    assert "jit(lambda x: x[x < 0])" in str(caught.value)
    assert "To fix it: jnp.where(x < 0, x, fill)" in str(caught.value)


def test_a_traced_shape() -> None:
    def f(x):
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(TypeError) as caught:
        jit(f)(jnp.ones((2, 3)))
    text = str(caught.value)
    start = "Shapes must be 1D sequences of concrete values of integer type, got [JitTracer(int32[])"
    assert text.startswith(start)
    assert "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions." in text
    assert "This value became a tracer due to xtrace operations on these lines:" in text
    assert f"from line {__file__}:{inspect.getsourcelines(f)[1] + 1} (f)" in text
    assert "operation a:i32[] = reduce_prod[axes=(0,)] b" in text
    assert "(f): jnp.array(x.shape).prod()\n" in text
    assert "To fix it: x.reshape(np.prod(x.shape)): shapes are known while tracing" in text


def test_item_assignment() -> None:
    x = jnp.arange(10)
    with pytest.raises(TypeError) as caught:
        x[0] = 10
    assert "object does not support item assignment" in str(caught.value)
    assert "Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method" in str(caught.value)
    assert str(caught.value).endswith("\n    x[0] = 10\n    ^^^^\nTo fix it: x = x.at[0].set(10)")


@pytest.mark.parametrize(
    ("x", "y", "names"), [(jnp.float32(1), jnp.int32(1), "float32, int32"), (1, 1.0, "int32, float32")]
)
def test_mixed_dtypes_in_lax(x, y, names) -> None:
    with pytest.raises(TypeError) as caught:
        lax.add(x, y)
    assert names in str(caught.value) and "numpy.add" in str(caught.value)


def test_a_scalar_of_the_same_kind_in_lax() -> None:
    assert repr(lax.add(jnp.float32(1), 1.0)) == "Array(2., dtype=float32)"


@pytest.mark.parametrize(
    ("use", "error", "words"),
    [
        (int, ConcretizationTypeError, "`int` function"),
        (float, ConcretizationTypeError, "`float` function"),
        (complex, ConcretizationTypeError, "`complex` function"),
        (np.asarray, TracerArrayConversionError, "__array__"),
        (np.sin, TracerArrayConversionError, "__array__"),
        (range, TracerIntegerConversionError, "__index__"),
        (lambda x: [1, 2, 3][x], TracerIntegerConversionError, "__index__"),
        (lambda x: x.item(), ConcretizationTypeError, "`item` function"),
        (lambda x: x.tolist(), ConcretizationTypeError, "`tolist` function"),
    ],
)
def test_python_and_numpy_asking_for_values(use, error, words) -> None:
    def asking(params):
        return use(params["n"][0])

    with pytest.raises(error) as caught:
        jit(asking)({"n": [3]})
    text = str(caught.value)
    assert words in text and "depends on the value of the argument params['n'][0]." in text


def test_a_tracer_kept_after_its_trace() -> None:
    kept = []

    def leaking(x):
        kept.append(jnp.sin(x))
        return x

    jit(leaking)(1.0)
    line = inspect.getsourcelines(leaking)[1] + 1
    for use in (lambda: kept[0] + 1, lambda: jit(lambda x: x + kept[0])(1.0), lambda: jnp.cos(kept[0])):
        with pytest.raises(UnexpectedTracerError) as caught:
            use()
        assert f"{__file__}:{line} (leaking)" in str(caught.value)
        assert f"the function {_place(leaking).removesuffix('.')}" in str(caught.value)
        assert "    kept.append(jnp.sin(x))\n                ^^^^^^^^^^\n" in str(caught.value)


def test_the_leak_checker_finds_it_at_the_source() -> None:
    kept = []

    def leaking(x):
        kept.append(jnp.sin(x))
        return x

    with jax.check_tracer_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        jit(leaking)(1.0)
    assert "leaking leaked it: it is item 0 of a list, the variable kept of test_the_leak_checker" in str(caught.value)
    kept.clear()
    with jax.checking_leaks():
        assert jit(lambda x: x * 2)(3.0) == 6
