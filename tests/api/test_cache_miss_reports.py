"""What jit says of its caches: why it compiled again, how long that took, and when it is too often."""

import functools
import logging
import re
import threading
import warnings

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import config, jit
from xtrace.errors import RecompilationWarning


@pytest.fixture
def messages(caplog):
    """What has been logged since this was last called."""

    def since():
        found = [record.getMessage() for record in caplog.records if record.name == "xtrace"]
        caplog.clear()
        return found

    with caplog.at_level(logging.WARNING):
        yield since


@pytest.fixture
def limit():
    """A function that sets how often a function may be compiled."""
    before = config.xtrace_recompilation_limit
    yield lambda number: config.update("xtrace_recompilation_limit", number)
    config.update("xtrace_recompilation_limit", before)


class Model:
    """A class with a method to be jitted, whose objects can be called."""

    def apply(self, x):
        return x

    def __call__(self, x):
        return x


def make_step():
    def step(x):
        return x

    return step


def ones(*shape):
    return np.ones(shape, np.float32)


def test_why_a_signature_is_new(messages):
    @functools.partial(jit, static_argnames="n")
    def f(x, y=1.0, n=3):
        return x

    cases = [
        (lambda: f(1.0), "never seen function f defined at"),
        (lambda: f(ones(3)), "* argument x: f32[] weakly typed (as Python's float) -> f32[3]"),
        (lambda: f(ones(4)), "* argument x: f32[3] -> f32[4]"),
        (lambda: f(ones(4).astype(np.int32)), "* argument x: f32[4] -> i32[4]"),
        (lambda: f(jnp.float32(1)), "* argument x is no longer weakly typed: f32[] of an array; before of a Python fl"),
        (lambda: f(1), "* argument x: f32[] weakly typed (as Python's float) -> i32[] weakly typed (as Python's int)"),
        (lambda: f(True), "* argument x: f32[] -> bool[]"),
        (lambda: f({"a": 1.0}), "* pytree of x: an array -> a dict"),
        (lambda: f({"a": 1.0, "b": (1.0, None)}), "* pytree of x: key 'b' appeared"),
        (lambda: f({"a": 1.0, "b": (1.0, 2.0)}), "* pytree of x['b'][1]: None -> an array"),
        (lambda: f({"a": 1.0, "b": (1.0,)}), "* pytree of x['b']: length 2 -> 1"),
        (lambda: f({"b": (1.0,)}), "* pytree of x: key 'a' disappeared"),
        (lambda: f(1.0, y=2.0), "* argument y appeared"),
        (lambda: f(1.0, 2.0), "* argument y: given by name -> by position"),
        (lambda: f(1.0, n=4), "* static n: not given -> 4"),
        (lambda: f(1.0, n=5), "* static n: 4 -> 5"),
        (lambda: f(1.0, n=True), "* static n: 5 -> True"),
        (lambda: f(1.0, 2.0, 5), "* static n: not given -> 5"),
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
        assert "* setting jax_enable_x64: False -> True" in said
    f(ones(9))
    assert messages() == []


def test_the_weak_type_and_the_place_of_an_array(messages):
    f = jit(lambda x: x + 1)
    with xtrace.explain_cache_misses():
        f(jnp.float32(1))
        messages()
        f(1.0)
        assert "* argument x became weakly typed: f32[] of a Python float" in messages()[0]
        f(jnp.ones(3))
        messages()
        f(xtrace.device_put(ones(3), xtrace.devices()[0]))
        (said,) = messages()
    assert said.startswith("COMPILATION CACHE MISS at ")
    assert f"* argument x: wherever data goes by default -> put on {xtrace.devices()[0]}" in said


def test_static_values_that_are_never_equal(messages):
    f = jit(lambda x, n: x, static_argnums=1)
    cases = [
        (make_step, f"(a new function object: the nested function step defined at {__file__}:"),
        (lambda: functools.partial(ones, 2), f"(a new function object: a partial of ones defined at {__file__}:"),
        (Model, "(another Model, a class without __eq__ and __hash__: no two are equal)"),
    ]
    with xtrace.explain_cache_misses():
        for make, words in cases:
            f(1.0, make())
            messages()
            f(1.0, make())
            assert words in messages()[0]
    assert f.cache_info().misses == 6


def test_a_function_made_again_in_a_loop(messages):
    def nested(x):
        return x

    kinds = [
        (lambda: lambda x: x + 1, f"a lambda defined at {__file__}:"),
        (lambda: functools.partial(nested), f"a partial of nested defined at {__file__}:"),
        (lambda: Model().apply, f"the method apply defined at {__file__}:"),
        (lambda: Model(), f"a new Model defined at {__file__}:"),
        (make_step, f"the nested function step defined at {__file__}:"),
    ]
    with xtrace.explain_cache_misses():
        for make, words in kinds:
            jit(make())(1.0)
            jit(make())(1.0)
            first, second = messages()
            assert "never seen function" in first and "a new function object" not in first
            assert f"a new function object each call: {words}" in second and second.endswith("; define it once")


def test_a_function_whose_traces_are_gone(messages):
    def f(x):
        return x

    with xtrace.explain_cache_misses():
        jitted = jit(f)
        jitted(1.0)
        jitted.clear_cache()
        jitted(1.0)
        jit(f, static_argnums=0)(1.0)
        outer = jit(lambda y: jit(lambda x: x * y)(2.0))
        outer(1.0)
    said = messages()
    assert "its caches were cleared since it was last called" in said[1]
    assert "it was called through a jit with other options" in said[2]


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


def test_axes_around_a_call_are_explained(messages):
    f = jit(lambda x: x * 2)
    with xtrace.explain_cache_misses():
        for name in "ij":
            xtrace.make_jaxpr(xtrace.vmap(f, axis_name=name))(ones(3))
    assert "* mapped axes around the call, as (name, size): (('i', 3),) -> (('j', 3),)" in messages()[-1]


def test_steps_of_compiling_are_timed(messages):
    f = jit(lambda x, n: x * n, static_argnums=1)
    with xtrace.log_compiles():
        f(1.0, 3)
        tracing, compiling, *others = messages()
        assert compiling == "Compiling <lambda> for x: f32[] weakly typed (as Python's float), static n=3"
        steps = [text.rsplit(" in ", 1) for text in [tracing, *others]]
        assert [text for text, _ in steps] == [
            "Finished tracing of <lambda>", "Finished lowering of <lambda>",
            "Finished XLA compilation of jit(<lambda>)",
        ]
        assert all(0 <= float(seconds.removesuffix(" s")) < 60 for _, seconds in steps)
        for _ in range(7):
            f(1.0, 3)
        assert messages() == []
        xtrace.lax.tan(ones(2, 7, 1))
        assert [text.rsplit(" in ", 1)[0] for text in messages()] == ["Finished XLA compilation of jit(tan)"]


# What the cache holds


def test_what_an_entry_is_keyed_on():
    @functools.partial(jit, static_argnums=1)
    def f(params, n, *rest):
        return params["w"]

    assert repr(f.cache_info()).endswith(": 0 entries, 0 hits, 0 misses")
    device = xtrace.devices()[0]
    f({"w": ones(3)}, 2)
    f({"w": ones(3)}, 2)
    f({"w": xtrace.device_put(ones(3), device)}, (1, 2), 1.0)
    with xtrace.default_matmul_precision("highest"):
        f.lower({"w": ones(3)}, 2)
    info = f.cache_info()
    assert (info.hits, info.misses, len(info.entries)) == (1, 2, 3)
    one, two, three = info.entries
    assert one.arguments == {"params['w']": "f32[3]"} and one.static == {"n": 2} and one.settings == {}
    assert (one.calls, one.is_specialised) == (2, False)
    assert two.arguments == {"params['w']": f"f32[3] on {device}", "rest[0]": "f32[] weakly typed (as Python's float)"}
    assert two.static == {"n": (1, 2)} and two.calls == 1
    assert three.settings == {"jax_default_matmul_precision": "highest"}
    assert three.calls == 0 and three.compile_seconds is None
    assert all(0 < s < 60 for s in (one.trace_seconds, one.lower_seconds, one.compile_seconds, three.trace_seconds))
    table = repr(info).splitlines()
    assert re.fullmatch(rf"f at {__file__}:\d+: 3 entries, 1 hit, 2 misses", table[0])
    assert table[1].split() == ["calls", "trace", "lower", "compile", "keyed", "on"] and len(table) == 5
    assert table[2].endswith(" ms  params['w']: f32[3], static n=2")
    assert table[4].endswith(" -        -  params['w']: f32[3], static n=2, jax_default_matmul_precision='highest'")


def test_calls_are_counted_until_they_run_code_of_their_own():
    f = jit(lambda x: x + 1)
    for _ in range(9):
        f(1.0)
    info = f.cache_info()
    assert (info.hits, info.misses) == (3, 1)
    assert info.entries[0].calls == 4 and info.entries[0].is_specialised
    assert " 3+ hits" in repr(info) and "    4+  " in repr(info)
    xtrace.clear_caches()
    assert f.cache_info()[1:] == ((), 0, 0)
    f(1.0)
    assert f.cache_info().entries[0].calls == 1 and not f.cache_info().entries[0].is_specialised


def test_a_call_that_finds_a_program_of_lower_and_compile_is_a_hit():
    f = jit(lambda x: x + 1)
    f.lower(1.0).compile()
    f(1.0)
    info = f.cache_info()
    assert (info.hits, info.misses) == (1, 0) and repr(info).partition(": ")[2].startswith("1 entry, 1 hit, 0 misses")
    assert info.entries[0].compile_seconds is info.entries[0].lower_seconds is None


def test_a_failed_trace_is_no_entry():
    f = jit(lambda x, fails: 1 / 0 if fails else x, static_argnums=1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(1.0, True)
    f(1.0, False)
    info = f.cache_info()
    assert (len(info.entries), info.hits, info.misses) == (1, 0, 1)


def test_misses_are_counted_once_by_threads():
    f = jit(lambda x, n: x * n, static_argnums=1)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        for n in range(8):
            f(1.0, n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    info = f.cache_info()
    assert info.misses == len(info.entries) == 8 and 8 <= info.hits <= 24


# The warning


def test_a_function_compiled_too_often_is_warned_of_once(limit):
    limit(3)
    f = jit(lambda x, n=0: x, static_argnames="n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(1, 9):
            f(ones(i))
    (warning,) = caught
    assert warning.category is RecompilationWarning and warning.filename == __file__
    text = str(warning.message)
    assert text.startswith(f"<lambda> at {__file__}:")
    assert "was compiled 4 times, and 0 calls found a program" in text
    assert "argument x changed its shape in 3 of 3 compilations (lately argument x: f32[3] -> f32[4])" in text
    assert "pad the array to a few sizes" in text


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([(1.0, i) for i in range(4)], "static n changed its value in 3 of 3 compilations (lately static n: 2 -> 3)"),
        ([({str(i): 1.0}, 0) for i in range(4)], "argument x changed its structure in 3 of 3 compilations (lately "
         "pytree of x: key '3' appeared, key '2' disappeared)"),
        ([(1.0, 0), (1.0, 1), (ones(2), 1), (ones(3), 1)], "argument x changed its shape in 2 of 3 compilations"),
        ([(ones(2).astype(t), 0) for t in "fihe"], "argument x changed its dtype in 3 of 3 compilations"),
    ],
)
def test_the_reason_that_recurs(calls, words, limit):
    limit(3)
    f = jit(lambda x, n: x, static_argnums=1)
    for arguments in calls[:3]:
        f(*arguments)
    with pytest.warns(RecompilationWarning, match=re.escape(words)):
        f(*calls[3])


def test_a_function_whose_programs_are_called_again_is_not_warned_of(limit):
    limit(3)
    f = jit(lambda x: x)
    for i in range(1, 9):
        for _ in range(3):
            f(ones(i))
    assert f.cache_info().misses == 8
    for never in (0, None):
        limit(never)
        g = jit(lambda x: x)
        for i in range(1, 5):
            g(ones(i))


def test_new_functions_with_one_program_are_warned_of(limit):
    limit(3)

    def step(x, scale=2.0):
        return x * scale

    for _ in range(3):
        jit(lambda x: step(x))(1.0)
    # Other programs for functions of one place are what the user wants.
    for function in (jnp.sin, jnp.cos) * 3:
        jit(lambda x, function=function: function(x), static_argnames="function")(1.0)
    words = "the same program, but for constants, was compiled 4 times, for a new function object each time: a lambda"
    with pytest.warns(RecompilationWarning, match=words) as caught:
        for i in range(6):
            jit(lambda x: step(x, float(i)))(1.0)  # noqa: B023
    (warning,) = caught
    assert f"a lambda defined at {__file__}:" in str(warning.message)
