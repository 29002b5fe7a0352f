"""What compiling takes time for: lines, repeated functions and loops, and large constants."""

import json
import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.core.settings import compilation_cache_settings as cache_settings

TABLE = np.ones((64, 64), np.float32)
X = np.ones((8, 64), np.float32)
WEIGHTS = [np.ones((64, 64), np.float32)] * 12


def layer(w, x):
    y = jnp.tanh(x @ w)
    return y * 2 + x


def net(weights, x):
    for w in weights:
        x = layer(w, x)  # the call
    return x.sum()


def line_of(function, text):
    """The line of a function's source that has a text."""
    start = function.__code__.co_firstlineno
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return next(i for i in range(start, len(lines) + 1) if text in lines[i - 1])


def test_a_function_that_is_called_again_and_again():
    report = xtrace.explain_compile_time(net, WEIGHTS, X)
    (one,) = report.repetitions
    assert (one.what, one.times, one.operations, one.of_all) == ("layer is called", 12, 4, 48)
    assert (one.place.file, one.place.line, one.place.function) == (__file__, line_of(net, "# the call"), "net")
    assert report.operations == 49
    assert f"layer is called 12 times, in {one.place}, with the same 4 operations" in str(report)
    assert "\n  lax.scan over stacked parameters would compile these operations once\n" in str(report)


def test_derivatives_belong_to_the_function():
    report = xtrace.explain_compile_time(xtrace.value_and_grad(net), WEIGHTS, X)
    (one,) = report.repetitions
    assert (one.what, one.times) == ("layer is called", 12)
    assert one.times * one.operations < one.of_all <= report.operations


def test_a_scan_repeats_nothing():
    def scanned(weights, x):
        return lax.scan(lambda x, w: (layer(w, x), None), x, weights)[0].sum()

    assert xtrace.explain_compile_time(scanned, np.stack(WEIGHTS), X).repetitions == []
    assert "repeated: nothing" in str(xtrace.explain_compile_time(jnp.sin, X))


def test_a_loop_without_a_function():
    def f(x):
        for _ in range(9):
            x = jnp.sin(x)
            x = x * 3.0 + 1.0
        return x

    (one,) = xtrace.explain_compile_time(f, X).repetitions
    start = f.__code__.co_firstlineno + 2
    assert one.what == f"lines {start} to {start + 1} of f run"
    assert (one.times, one.operations, one.of_all, one.place.line) == (9, 3, 27, start)


def test_a_jitted_function_is_compiled_for_each_call():
    jitted = xtrace.jit(layer)

    def f(weights, x):
        for w in weights:
            x = jitted(w, x)
        return x

    for function in (f, xtrace.jit(f)):
        (one,) = xtrace.explain_compile_time(function, WEIGHTS, X).repetitions
        assert (one.what, one.times, one.operations, one.of_all) == ("layer is called", 12, 4, 48)


def test_layers_of_other_shapes_are_no_repetition():
    weights = [np.ones((i, i + 1), np.float32) for i in range(1, 9)]

    def f(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w) * 2 + 1
        return x

    assert xtrace.explain_compile_time(f, weights, np.ones((8, 1), np.float32)).repetitions == []


def test_lines_count_instructions_before_and_after_the_compiler():
    report = xtrace.explain_compile_time(net, WEIGHTS, X)
    lines = {one.place.line: one for one in report.lines}
    product, rest = lines[line_of(layer, "jnp.tanh")], lines[line_of(layer, "y * 2")]
    assert (product.operations, rest.operations) == (24, 24)
    assert product.before >= 24 and product.after >= 12 and product.place.function == "layer"
    assert sum(one.operations for one in report.lines) == report.operations
    assert set(report.seconds) == {"tracing", "lowering", "compiling"} and min(report.seconds.values()) > 0


def test_large_constants_have_the_variable_and_the_line():
    class Model:
        def __init__(self):
            self.weights = {"out": jnp.ones((64, 32))}

        def apply(self, x):
            return x @ self.weights["out"]

    model, inner = Model(), np.ones((64, 64), np.float32) * 2

    def f(x, n):
        for _ in range(n):
            x = x @ TABLE + x @ inner
        return model.apply(x)  # reads it

    report = xtrace.explain_compile_time(xtrace.jit(f, static_argnames="n"), X, n=2)
    constants = {one.name: one for one in report.constants}
    assert list(constants) == ["TABLE", "inner", "model.weights['out']"]
    assert constants["TABLE"].size == 64 * 64 * 4 and constants["TABLE"].place.function == "f"
    assert constants["model.weights['out']"].place.function == "apply"
    assert re.search(rf"16 KiB +f32\[64,64\] +TABLE +{re.escape(str(constants['TABLE'].place))}", str(report))
    read = json.loads(report.to_json())
    assert [one["name"] for one in read["constants"]] == list(constants) and read["name"] == "f"


def test_the_folder_of_compiled_programs_is_left_alone(tmp_path):
    tmp_path.chmod(0o700)
    with cache_settings.directory(str(tmp_path)), cache_settings.min_compile_seconds(0.0):
        xtrace.explain_compile_time(net, WEIGHTS, X)
        assert not list(tmp_path.iterdir())
        xtrace.jit(net).lower(WEIGHTS, X).compile()
        assert list(tmp_path.iterdir())


def test_an_error_of_the_function_is_the_users():
    with pytest.raises(ZeroDivisionError):
        xtrace.explain_compile_time(lambda x: x / (1 // 0), X)
    with pytest.raises(TypeError, match="explain_compile_time"):
        xtrace.explain_compile_time(3)


@pytest.mark.parametrize("read", [
    lambda x, a: x @ a + x @ a, lambda x, a: x + jnp.asarray(a).sum() + jnp.asarray(a).sum(),
    lambda x, a: x * a + a * x, lambda x, a: x @ a.T + a.T @ x, lambda x, a: jnp.where(x > 0, x @ a, a @ x),
])
def test_a_numpy_array_that_is_read_several_times_is_one_constant(read):
    table, x = np.ones((512, 512), np.float32), np.ones((512, 512), np.float32)
    traced = xtrace.jit(lambda x: read(x, table)).trace(x)
    (constant,) = traced.jaxpr.consts
    assert constant is not table and not np.shares_memory(constant, table)
    compiled = traced.lower().compile()
    # The program takes it as it is, without another copy.
    assert np.shares_memory(np.asarray(compiled._program.constants[0]), constant)
    assert np.allclose(compiled(x), read(x, table), rtol=1e-5)


@pytest.mark.parametrize("side", [4, 1024, 1025])
def test_an_array_that_changes_between_two_reads_is_two_constants(side):
    table = np.ones((side, side), np.float32)

    def f(x):
        first = x @ jnp.asarray(table)
        table[-1, -1] = 5
        return first, x @ jnp.asarray(table)

    traced = xtrace.jit(f).trace(np.ones((side, side), np.float32))
    assert [x[-1, -1] for x in traced.jaxpr.consts] == [1, 5]
