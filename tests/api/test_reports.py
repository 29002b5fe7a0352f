"""What jit says of itself in the log: why it traced again, and how long compiling took."""

import functools
import logging

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import jit


@pytest.fixture
def messages(caplog):
    """What has been logged since this was last called."""

    def since():
        found = [record.getMessage() for record in caplog.records if record.name == "xtrace"]
        caplog.clear()
        return found

    with caplog.at_level(logging.WARNING):
        yield since


def test_why_a_signature_is_new(messages):
    @functools.partial(jit, static_argnames="n")
    def f(x, y=1.0, n=3):
        return x

    structure = "* structure of (args, kwargs): at key path"
    cases = [
        (lambda: f(1.0), "never seen function f defined at"),
        (lambda: f(np.ones(3)), "* argument x, now ShapedArray(float32[3]) and before ShapedArray(float32[]"),
        (lambda: f({"a": 1.0}), f"{structure} [0][0]: dict with keys ['a'] against a leaf"),
        (lambda: f(1.0, y=2.0), f"{structure} [1]: dict with keys ['y'] against one without"),
        (lambda: f(1.0, n=4), "* static argument n, only now"),
        (lambda: f(1.0, n=5), "* static argument n, now 5 and before 4"),
        (lambda: f(1.0, n=True), "* static argument n, now True and before"),
    ]
    with xtrace.explain_cache_misses():
        for call, words in cases:
            for _ in range(7):
                call()
            (said,) = messages()
            assert said.startswith("TRACING CACHE MISS at ") and f"{__file__}:" in said and words in said
        with xtrace.enable_x64():
            f(1.0)
        (said,) = messages()
        assert "* setting jax_enable_x64, now True and before False" in said
    f(np.ones(9))
    assert messages() == []


def test_a_function_made_again_in_a_loop(messages):
    with xtrace.explain_cache_misses():
        for _ in range(2):
            jit(lambda x: x + 1)(1.0)
    first, second = messages()
    assert "never seen function <lambda>" in first and "defined on the same line" not in first
    assert "one defined on the same line" in second and "define it once, outside the loop" in second


def test_many_differences_are_cut_short(messages):
    f = jit(lambda *args: args[0])
    with xtrace.explain_cache_misses():
        f(*[1.0] * 9)
        f(*[1] * 9)
    assert messages()[-1].endswith("* and 4 more")


def test_functions_of_xtrace_are_not_explained(messages):
    with xtrace.explain_cache_misses():
        jnp.linspace(0, 1, 17) + jnp.arange(17)
        jnp.std(jnp.ones((3, 19)))
    assert messages() == []


def test_steps_of_compiling_are_timed(messages):
    f = jit(lambda x: x * 2)
    with xtrace.log_compiles():
        f(1.0)
        said = messages()
        assert [text.rsplit(" in ")[0] for text in said] == [
            f"Finished {step} of <lambda>" for step in ("tracing", "lowering", "compilation")
        ]
        assert all(0 <= float(text.split(" in ")[1].removesuffix(" s")) < 60 for text in said)
        for _ in range(7):
            f(1.0)
        assert messages() == []
