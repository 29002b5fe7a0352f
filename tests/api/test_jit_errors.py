"""Wrong calls of jit: each error names the argument, says what to do, and leaves nothing behind."""

import functools
import gc
import traceback
import types

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.names import stable_name
from xtrace import jit
from xtrace._src.core.trace import base_trace, current_trace

# Wrong uses of jit itself


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"static_argnums": 5}, ValueError, r"static_argnums=\(5,\), but only accepts 2 positional arguments: f\("),
        ({"static_argnums": (0, -3)}, ValueError, r"static_argnums=\(0, -3\), but only accepts 2 positional"),
        ({"donate_argnums": 2}, ValueError, r"donate_argnums=\(2,\), but only accepts 2"),
        ({"static_argnums": "n"}, TypeError, "static_argnums must be an integer or a sequence of integers, got 'n'"),
        ({"static_argnums": 1.5}, TypeError, "static_argnums must be an integer or a sequence of integers, got 1.5"),
        ({"donate_argnums": [None]}, TypeError, r"donate_argnums must be an integer .* got \[None\]"),
        ({"static_argnames": 3}, TypeError, "static_argnames must be a string or a sequence of strings, got 3"),
        ({"static_argnames": ["n", 3]}, TypeError, r"static_argnames must be .* got \['n', 3\]"),
        ({"static_argnames": "k"}, ValueError, r"invalid argnames \{'k'\} in static_argnames.*f\(x, n\)"),
        ({"donate_argnames": ["x", "k"]}, ValueError, r"invalid argnames \{'k'\} in donate_argnames"),
        ({"static_argnames": "x", "donate_argnums": 0}, ValueError, "static and donated arguments of f cannot"),
        ({"static_argnums": 1, "donate_argnames": "n"}, ValueError, "cannot intersect; 'n' is in both"),
        ({"device": "cpu"}, TypeError, "device must be one of xtrace.devices\\(\\), got 'cpu'"),
        ({"backend": 3}, TypeError, "backend must be the name of a platform"),
        ({"backend": "abacus"}, RuntimeError, "there is no platform 'abacus'; the platforms are cpu"),
        ({"device": "d", "backend": "cpu"}, ValueError, "cannot both be given"),
        ({"in_shardings": "x"}, TypeError, "in_shardings leaf specifications are .* or x.sharding.* got 'x'"),
        ({"out_shardings": (None, 3)}, TypeError, "out_shardings leaf specifications are .* got 3"),
        ({"compiler_options": "fast"}, TypeError, "compiler_options must be a dict of XLA's options"),
        ({"compiler_options": {1: 2}}, TypeError, r"compiler_options\[1\] is 2; expected an option's name"),
        ({"compiler_options": {"a": [1]}}, TypeError, r"compiler_options\['a'\] is \[1\]"),
        ({"static_numbers": 1}, TypeError, "unexpected keyword argument 'static_numbers'"),
    ],
)
def test_wrong_options(options, error, words):
    def f(x, n):
        return x

    with pytest.raises(error, match=words):
        jit(f, **options)
    with pytest.raises(error, match=words):
        jit(**options)(f)


@pytest.mark.parametrize("value", ["x", 3, None, [len], np.ones(3), classmethod(len)], ids=stable_name)
def test_what_cannot_be_called_cannot_be_jitted(value):
    with pytest.raises(TypeError, match="jit: Expected a callable value, got"):
        jit(value)


def _generate(x):
    yield x


@pytest.mark.parametrize("transform", [jit, xtrace.grad, xtrace.vmap, xtrace.checkpoint, xtrace.jacfwd])
@pytest.mark.parametrize(
    ("function", "words"), [(staticmethod(len), "staticmethod arguments are not"), (_generate, "a generator function")]
)
def test_static_methods_and_generator_functions_are_no_functions(transform, function, words):
    with pytest.raises(TypeError, match=words):
        transform(function)


def test_options_are_by_name_only():
    with pytest.raises(TypeError):
        jit(len, 0)


@pytest.mark.parametrize(("name", "value"), [("no_such_option", 1), ("xla_cpu_enable_fast_math", "maybe")])
def test_compiler_options_xla_does_not_know(name, value):
    f = jit(lambda x: x, compiler_options={name: value})
    for _ in range(2):
        with pytest.raises(xtrace.errors.JaxRuntimeError, match=name) as caught:
            f(1.0)
        assert "compiler_options was" in caught.value.__notes__[0]
    assert f._cache_size() == 0


def test_compiler_options_inside_another_function():
    inner = jit(lambda x: x * 2, compiler_options={"xla_cpu_enable_fast_math": True})
    with pytest.raises(ValueError, match=r"<lambda> has compiler_options=.*give the options to the outermost jit"):
        jit(lambda x: inner(x))(1.0)
    assert float(inner(2.0)) == 4


# Wrong arguments

BAD_LEAVES = [
    "text", b"bytes", object(), {1, 2}, np.array(["a"]), np.array([object()]), np.array(["2020"], "M8[D]"),
    np.zeros(2, [("a", "f4")]), np.array([1], np.longdouble), np.str_("a"), int, print, np.float32,
    types.SimpleNamespace(), slice(1), Ellipsis, np.ma.array([1.0, 2.0], mask=[0, 1]),
]


@pytest.mark.parametrize("leaf", BAD_LEAVES, ids=stable_name)
def test_an_argument_that_is_no_array(leaf):
    def f(first, tree, *rest, key=None):
        return first

    jitted, x = jit(f), jnp.ones(3)
    for _ in range(6):
        jitted(x, {"a": [x]})
    for call, name in [
        (lambda: jitted(leaf, {"a": [x]}), "first"),
        (lambda: jitted(x, {"a": [leaf]}), r"tree\['a'\]\[0\]"),
        (lambda: jitted(x, x, x, (x, leaf)), r"rest\[1\]\[1\]"),
        (lambda: jitted(x, x, key={"k": leaf}), r"key\['k'\]"),
    ]:
        kind = ValueError if isinstance(leaf, np.ma.MaskedArray) else TypeError
        with pytest.raises(kind, match=f"Error interpreting argument {name} of f as an abstract") as caught:
            call()
        assert "static_argnums" in str(caught.value)
    assert jitted._cache_size() == 1
    jitted(x, {"a": [x]})


def test_the_number_and_names_of_arguments_are_pythons_to_check():
    def f(x, y):
        return x

    jitted = jit(f)
    for _ in range(6):
        jitted(1.0, 2.0)
    for call, words in [
        (lambda: jitted(1.0), r"f\(\) missing 1 required positional argument: 'y'"),
        (lambda: jitted(1.0, 2.0, 3.0), r"f\(\) takes 2 positional arguments but 3 were given"),
        (lambda: jitted(1.0, 2.0, z=3.0), r"f\(\) got an unexpected keyword argument 'z'"),
        (lambda: jitted(1.0, x=3.0), r"f\(\) got multiple values for argument 'x'"),
    ]:
        with pytest.raises(TypeError, match=words):
            call()


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, np.ones(2), ([1],), {1}], ids=stable_name)
def test_an_unhashable_static_argument(value):
    f = jit(lambda x, n: x, static_argnames="n")
    for call, where in [(lambda: f(1.0, value), "1"), (lambda: f(1.0, n=value), "'n'")]:
        with pytest.raises(ValueError, match=f"Non-hashable static arguments are not .* Static argument {where} of"):
            call()
    with pytest.raises(ValueError, match="Use a hashable equivalent"):
        f.lower(1.0, value)


def test_a_static_argument_that_cannot_be_compared():
    class Incomparable:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise KeyError("inside")

    f = jit(lambda x, n: x, static_argnums=1)
    f(1.0, Incomparable())
    with pytest.raises(ValueError, match=r"comparable using __eq__, and that raised KeyError: 'inside'.*Incomparable"):
        f(1.0, Incomparable())


def test_a_tracer_as_a_static_argument():
    f = jit(lambda x, n: x * n, static_argnums=1)
    with pytest.raises(ValueError, match=r"Static argument 1 of <lambda> is of type .*Tracer.*not hashable"):
        jit(lambda x: f(x, x))(1.0)


def test_a_negative_number_beyond_the_call():
    f = jit(lambda *args: args[0], static_argnums=-2)
    assert int(f(1, 2)) == 1
    with pytest.raises(ValueError, match=r"static_argnums=-2 counts from the end .*has 1 of them; give"):
        f(1)


def test_python_integers_beyond_the_type():
    f = jit(lambda tree: tree["n"] + 1)
    for value in (2**31, -(2**31) - 1, 2**64, 10**30):
        for _ in range(6):
            f({"n": 5})
        with pytest.raises(OverflowError, match=rf"argument tree\['n'\]: Python int {value} too large to convert"):
            f({"n": value})
        with xtrace.enable_x64():
            if abs(value) < 2**63:
                assert int(f({"n": value})) == value + 1
            else:
                with pytest.raises(OverflowError):
                    f({"n": value})
    assert int(f({"n": 2**31 - 2})) == 2**31 - 1


def test_trees_that_cannot_be_taken_apart():
    cyclic = []
    cyclic.append(cyclic)
    f = jit(lambda x, tree: x)
    for tree, error, words in [
        ({1: 1.0, "a": 2.0}, ValueError, "cannot be sorted"),
        (cyclic, RecursionError, "nested too deeply, or contains itself"),
    ]:
        with pytest.raises(error, match=words) as caught:
            f(1.0, tree)
        assert "while flattening argument tree of <lambda>" in caught.value.__notes__
        with pytest.raises(error, match=words) as caught:
            f(1.0, tree=tree)
        assert "while flattening argument tree of <lambda>" in caught.value.__notes__


# Wrong functions


@pytest.mark.parametrize("value", ["text", object(), np.array(["a"]), {1}, len], ids=stable_name)
def test_a_result_that_is_no_array(value):
    def f(x):
        return {"good": x, "bad": (x, value)}

    words = r"function f at .*:\d+ for jit returned a value of type .* at output component \['bad'\]\[1\]"
    with pytest.raises(TypeError, match=words):
        jit(f)(1.0)


def test_a_tree_of_results_that_cannot_be_taken_apart():
    with pytest.raises(ValueError, match="cannot be sorted"):
        jit(lambda x: {1: x, "a": x})(1.0)


def test_an_error_in_the_function_is_the_users_and_shows_their_line():
    def f(x):
        raise LookupError("mine")

    jitted = jit(f)
    for _ in range(3):
        with pytest.raises(LookupError, match="mine") as caught:
            jitted(1.0)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "f"
    assert jitted._cache_size() == 0
    assert current_trace.get() is base_trace and gc.isenabled()


def test_errors_after_many_good_calls_carry_no_foreign_context():
    f = jit(lambda x, flag: x if flag else -x, static_argnums=1)
    for _ in range(6):
        f(1.0, True)
        f(jnp.ones(2), True)
    deleted = jnp.ones(2)
    deleted.delete()
    for call in (lambda: f("text", True), lambda: f(1.0), lambda: f(1.0, [1]), lambda: f(deleted, True)):
        with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
            call()
        assert "MISS" not in "".join(traceback.format_exception(caught.value))
        assert not isinstance(caught.value.__context__, (AttributeError, KeyError))


@pytest.mark.parametrize("raised", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_whatever_is_raised_while_tracing_leaves_nothing(raised):
    fail = [True]

    @jit
    def inner(x):
        if fail[0]:
            raise raised
        return x + 1

    @jit
    def outer(x):
        return inner(x * 2)

    for _ in range(2):
        with pytest.raises(raised):
            outer(1.0)
        assert current_trace.get() is base_trace and gc.isenabled()
        assert outer._cache_size() == inner._cache_size() == 0
    fail[0] = False
    for _ in range(6):
        assert float(outer(1.0)) == 3


def test_endless_recursion():
    @jit
    def f(x):
        return f(x)

    with pytest.raises(RecursionError):
        f(1.0)
    assert current_trace.get() is base_trace and gc.isenabled()
    assert float(jit(lambda x: x + 1)(1.0)) == 2


def test_deleted_arrays_everywhere():
    gone, x = jnp.ones(3), jnp.ones(3)
    gone.delete()
    f = jit(lambda a, tree: a + tree["k"][0])
    for _ in range(6):
        f(x, {"k": [x]})
    for call, name in [
        (lambda: f(gone, {"k": [x]}), "argument a of <lambda>"),
        (lambda: f(x, {"k": [gone]}), r"argument tree\['k'\]\[0\] of <lambda>"),
        (lambda: gone + 1, "argument"),
        (lambda: jit(lambda: gone + 1)(), ""),
        (lambda: jit(lambda a: f(a, {"k": [gone]}))(x), ""),
        (lambda: f.lower(x, {"k": [x]}).compile()(gone, {"k": [x]}), "argument a"),
    ]:
        for _ in range(2):
            with pytest.raises(RuntimeError, match=rf"{name}.*Array has been deleted with shape=float32\[3\]"):
                call()
    np.testing.assert_array_equal(f(x, {"k": [x]}), [2, 2, 2])


def test_too_large_a_program_says_what_to_do():
    f = jit(lambda x: jnp.broadcast_to(x, (2**40,)) + jnp.broadcast_to(x, (2**40,)))
    with pytest.raises(xtrace.errors.JaxRuntimeError) as caught:
        f(jnp.ones((), np.float32)).block_until_ready()
    message = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "emory" in message
    assert float(jit(lambda x: x + 1)(1.0)) == 2


def test_partial_functions_name_their_arguments():
    def f(x, y, z):
        return x

    with pytest.raises(TypeError, match="Error interpreting argument y of f"):
        jit(functools.partial(f, 1.0))("text", 2.0)
    with pytest.raises(TypeError, match="Error interpreting argument z of f"):
        jit(functools.partial(f, y=2.0))(1.0, z="text")
