"""What errors about traced values say: whose trace, which arguments or operations, which line, what to write."""

import re

import numpy as np
import pytest

import xtrace
from tests.support.programs import VECTOR
from xtrace import lax
from xtrace._src.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

SCALAR = np.float32(1)


def message(error, function, *args, transform=xtrace.jit, **kwargs):
    """The text of the error that calling the transformed function raises."""
    with pytest.raises(error) as caught:
        transform(function)(*args, **kwargs)
    return str(caught.value)


def head_of(function):
    return f"The error occurred while tracing the function {function.__name__} at {line_of(function)} for "


def line_of(function, offset=0):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def depends_on(text):
    found = re.search(r"depends on the values? of the arguments? (.*)\.$", text, re.MULTILINE)
    return found[1] if found else None


# Which argument


def test_one_argument():
    def function(x, y):
        if lax.gt(x, 0.0):
            return y

    text = message(TracerBoolConversionError, function, SCALAR, VECTOR)
    assert text.startswith("Attempted boolean conversion of traced array with shape bool[].\n")
    assert (
        head_of(function)
        + "jit. This concrete value was not available in Python because it depends on the value of the argument x.\n"
        in text
    )
    assert text.endswith(
        "To fix it: lax.cond(lax.gt(x, 0.0), if_true, if_false, *operands), where if_true and if_false are "
        "functions of the operands that return the same types\n"
        '  or make x static with xtrace.jit(function, static_argnames=["x"]), if it takes few values: each one is '
        "compiled anew"
    )


def test_several_arguments_in_their_order():
    def function(x, y, z, w):
        bool(lax.add(lax.add(z, x), lax.mul(w, x)))

    text = message(TracerBoolConversionError, function, *[SCALAR] * 4)
    assert "because it depends on the values of the arguments x, z and w.\n" in text


def test_paths_into_arguments():
    def function(x, *rest, scale, **options):
        chosen = lax.add(lax.add(x["weights"][0], rest[1]["b"]), lax.add(scale, options["c"]))
        bool(chosen)

    x = {"bias": SCALAR, "weights": [SCALAR, SCALAR]}
    text = message(TracerBoolConversionError, function, x, SCALAR, {"b": SCALAR}, scale=SCALAR, c=SCALAR, d=SCALAR)
    assert depends_on(text) == "x['weights'][0], rest[1]['b'], kwargs['c'] and scale" or (
        depends_on(text) == "x['weights'][0], rest[1]['b'], options['c'] and scale"
    )


def test_static_arguments_do_not_shift_the_names():
    def function(n, x, y):
        bool(lax.add(y, float(n)))

    jitted = lambda f: xtrace.jit(f, static_argnums=0)  # noqa: E731
    assert depends_on(message(TracerBoolConversionError, function, 3, SCALAR, SCALAR, transform=jitted)) == "y"


def test_an_argument_itself():
    def function(x, y):
        bool(y)

    assert depends_on(message(TracerBoolConversionError, function, SCALAR, SCALAR)) == "y"


def test_the_transformation_is_named():
    def function(x):
        bool(x)

    assert head_of(function) + "make_jaxpr." in message(
        TracerBoolConversionError, function, 1.0, transform=xtrace.make_jaxpr
    )
    shapes = lambda f: lambda *args: xtrace.eval_shape(f, *args)  # noqa: E731
    assert head_of(function) + "eval_shape." in message(TracerBoolConversionError, function, 1.0, transform=shapes)


def test_a_nested_jit_names_its_own_function_and_arguments():
    def inner(p, q):
        bool(lax.sin(q))

    def function(x):
        return xtrace.jit(inner)(x, lax.cos(x))

    text = message(TracerBoolConversionError, function, SCALAR)
    assert head_of(inner) + "jit." in text and depends_on(text) == "q" and "function function" not in text


def test_a_value_from_a_call_depends_on_what_the_call_got():
    inner = xtrace.jit(lambda p: lax.sin(p))

    def function(x, y):
        inner(x)
        bool(inner(y))

    assert depends_on(message(TracerBoolConversionError, function, SCALAR, SCALAR)) == "y"


# Which operations, where no argument is to blame


def test_constants_only_list_the_operations_with_their_lines():
    def function(x):
        a = lax.sin(2.0)
        b = lax.add(a, 1.0)
        lax.cos(b)
        bool(b)

    text = message(TracerBoolConversionError, function, SCALAR)
    assert depends_on(text) is None
    assert (
        "This value became a tracer due to xtrace operations on these lines:\n"
        "  operation a:f32[] = sin 2.0\n"
        f"    from line {line_of(function, 1)} (function): lax.sin(2.0)\n"
        "  operation b:f32[] = add a 1.0\n"
        f"    from line {line_of(function, 2)} (function): lax.add(a, 1.0)\n"
    ) in text
    assert "cos" not in text


def test_a_long_history_shows_its_end():
    def function():
        value = lax.sin(1.0)
        for _ in range(100):
            value = lax.neg(lax.cos(value))
        bool(value)

    text = message(TracerBoolConversionError, function)
    assert text.count("operation ") == 5 and "sin" not in text and "(196 earlier ones, and then)" in text


def test_a_value_of_an_enclosing_trace_is_explained_by_that_trace():
    def function(x, y):
        @xtrace.jit
        def inner(z):
            bool(lax.gt(x, 0.0))

        @xtrace.jit
        def other(z):
            bool(x)

        return (inner if y.shape else other)(x)

    text = message(TracerBoolConversionError, function, SCALAR, VECTOR)
    assert f"the function inner at {line_of(function, 1)} for jit." in text
    assert depends_on(text) == f"x of the enclosing function function at {line_of(function)} for jit"
    text = message(TracerBoolConversionError, function, SCALAR, SCALAR)
    assert head_of(function) + "jit." in text and depends_on(text) == "x"


# Who asked


@pytest.mark.parametrize(
    "ask, name",
    [
        (int, "int"),
        (float, "float"),
        (complex, "complex"),
        (lambda x: x.item(), "item"),
        (lambda x: x.tolist(), "tolist"),
    ],
    ids=["int", "float", "complex", "item", "tolist"],
)
def test_a_value_that_python_asked_for(ask, name):
    def function(x):
        ask(lax.sin(x))

    text = message(ConcretizationTypeError, function, SCALAR)
    assert f"The problem arose with the `{name}` function." in text and depends_on(text) == "x"
    assert text.startswith("Abstract tracer value encountered where concrete value is expected: JitTracer(float32[])")


@pytest.mark.parametrize("ask", [range, lambda x: [1, 2][x], lambda x: "ab" * x, lambda x: (1, 2)[:x]])
def test_an_integer_that_python_asked_for(ask):
    def function(n):
        ask(lax.add(n, 1))

    text = message(TracerIntegerConversionError, function, np.int32(1))
    assert "The __index__() method was called on traced array with shape i32[]" in text and depends_on(text) == "n"
    assert 'make n static with xtrace.jit(function, static_argnames=["n"])' in text


@pytest.mark.parametrize("ask", [np.asarray, np.sin, lambda x: np.add(x, np.ones(3)), np.linalg.norm])
def test_an_array_that_numpy_asked_for(ask):
    def function(x):
        ask(lax.sin(x))

    text = message(TracerArrayConversionError, function, VECTOR)
    assert "__array__() was called on traced array with shape f32[3]" in text and depends_on(text) == "x"
    assert "xtrace.numpy" in text


@pytest.mark.parametrize(
    "condition",
    [lambda x: x and 1, lambda x: not x, lambda x: 1 if x else 2, lambda x: any([x]), lambda x: x == 1 or x == 2],
)
def test_every_use_as_a_condition(condition):
    assert depends_on(message(TracerBoolConversionError, lambda x: condition(x), SCALAR)) == "x"


def test_a_tracer_is_no_key():
    for use in (lambda x: {x: 1}, lambda x: {x}, hash):
        with pytest.raises(TypeError, match=r"unhashable type: StagedTracer\. A traced array cannot be a dict"):
            xtrace.jit(lambda x, use=use: use(x) and x)(VECTOR)


def test_a_shape_that_is_traced():
    def function(x):
        n = lax.add(np.int32(1), np.int32(2))
        return lax.broadcast_in_dim(x, (2, n), ())

    text = message(TypeError, function, SCALAR)
    assert "Shapes must be 1D sequences of concrete values of integer type, got [2, JitTracer(int32[])" in text
    assert "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions." in text
    assert f"operation a:i32[] = add 1 2\n    from line {line_of(function, 1)} (function)" in text


# Cost


def test_explaining_is_left_until_an_error_is_made(monkeypatch):
    from xtrace._src.core.diagnostics import explain

    monkeypatch.setattr(explain.Provenance, "of", lambda *a: pytest.fail("explained without an error"))
    xtrace.jit(lambda x, y: lax.add(lax.sin(x), y))(VECTOR, VECTOR)
