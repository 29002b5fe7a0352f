"""xtrace.lower(f, *args), the short form: with arguments, the last call's, and those the signature describes."""

import functools

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import ShapeDtypeStruct, jit, lower

MATRIX = ShapeDtypeStruct((4, 3), "float32")
VECTOR = ShapeDtypeStruct((3,), "int32")


def body(text):
    """The types of the arguments of a module's main function."""
    start = text.index("@main(")
    arguments = text[start : text.index("->", start)].split("%")[1:]
    return [part.split(":")[1].split("{")[0].strip(" ),") for part in arguments]


def types(function, *args, **kwargs):
    return body(lower(function, *args, **kwargs).as_text())


# With arguments


def test_plain_and_jitted_functions_with_arguments():
    def f(x, y=1.0, *, z=2):
        return x * y + z

    for function in (f, jit(f)):
        assert types(function, jnp.ones(3)) == ["tensor<3xf32>"]
        assert types(function, MATRIX, 2.0, z=3) == ["tensor<4x3xf32>", "tensor<f32>", "tensor<i32>"]
        assert types(function, x=MATRIX) == ["tensor<4x3xf32>"]
        assert lower(function, MATRIX).as_text().startswith("module @jit_f ")


def test_everything_callable():
    class Model:
        def __init__(self):
            self.by = 2.0

        def apply(self, x):
            return x * self.by

        def __call__(self, x):
            return x + self.by

    model = Model()
    for function in (model.apply, model, functools.partial(Model.apply, model), jnp.sin, xtrace.lax.neg, abs):
        assert types(function, MATRIX) == ["tensor<4x3xf32>"]


def test_options_of_the_jitted_function_hold():
    f = jit(lambda x, n: x * n, static_argnames="n", donate_argnums=0)
    text = lower(f, MATRIX, 3).as_text()
    assert body(text) == ["tensor<4x3xf32>"] and "tf.aliasing_output" in text


def test_a_bound_method_that_is_jitted_in_its_class():
    class Model:
        by = 2.0

        @functools.partial(jit, static_argnums=0)
        def apply(self, x):
            return x * self.by

    assert types(Model().apply, MATRIX) == ["tensor<4x3xf32>"]


def test_a_wrapper_around_a_jitted_function_is_itself():
    @jit
    def inner(x):
        return x * 2

    @functools.wraps(inner)
    def outer(x):
        return inner(x) + 100

    text = lower(outer, 1.0).as_text()
    assert "stablehlo.add" in text and "func.func private @inner" in text
    assert "stablehlo.add" not in lower(inner, 1.0).as_text()


# Without


def test_a_function_without_parameters():
    assert types(lambda: jnp.ones(3)) == []
    assert types(jit(lambda: 1.0)) == []
    assert types(lambda *args, **kwargs: 1.0) == []
    assert types(lambda x=1.0: x) == []


def test_the_last_call_of_a_jitted_function():
    @jit
    def f(x, y=2.0):
        return x * y

    for call, expected in [
        (lambda: f(1.0), ["tensor<f32>"]),
        (lambda: f(np.ones((2, 2), np.float32)), ["tensor<2x2xf32>"]),
        (lambda: f(jnp.ones(5), y=3), ["tensor<5xf32>", "tensor<i32>"]),
        (lambda: [f(jnp.ones(6)) for _ in range(8)], ["tensor<6xf32>"]),
    ]:
        call()
        assert types(f) == expected
    f.clear_cache()
    with pytest.raises(TypeError, match="has not been called"):
        lower(f)


def test_the_last_call_holds_its_static_arguments_and_tree():
    f = jit(lambda tree, n: tree["a"] * n + tree["b"][0], static_argnums=1)
    f({"a": jnp.ones(3), "b": [1.0]}, 7)
    lowered = lower(f)
    assert body(lowered.as_text()) == ["tensor<3xf32>", "tensor<f32>"]
    np.testing.assert_array_equal(lowered.compile()({"a": jnp.ones(3), "b": [1.0]}), [8, 8, 8])


def test_the_last_call_through_another_wrapper_or_a_trace():
    def f(x):
        return x + 1

    jit(f)(jnp.ones(3))
    assert types(jit(f)) == types(f) == ["tensor<3xf32>"]
    g = jit(lambda x: x * 2)
    jit(lambda x: g(x) + 1)(jnp.ones(4))
    assert types(g) == ["tensor<4xf32>"]


def test_the_last_call_of_a_bound_method():
    class Model:
        def apply(self, x):
            return x * 2

    model = Model()
    jit(model.apply)(jnp.ones(3))
    assert types(jit(model.apply)) == ["tensor<3xf32>"]


def test_a_failed_call_is_not_the_last():
    f = jit(lambda x: x + 1)
    f(jnp.ones(3))
    with pytest.raises(TypeError):
        f("text")
    assert types(f) == ["tensor<3xf32>"]


# Described by the signature


def annotated(x: MATRIX, y: VECTOR):
    return x + y


def in_text(x: "MATRIX", y: "ShapeDtypeStruct((3,), 'int32')"):
    return x + y


def with_defaults(x=MATRIX, /, y=VECTOR, *, z: MATRIX = None, w=1.0):
    return x + y + z


def unknown_name(x: "MATRIX", y: "NoSuchName" = 2.0):  # noqa: F821
    return x * y


def test_annotations_and_defaults_describe_arguments():
    for function in (annotated, in_text, jit(annotated), jit(in_text)):
        assert types(function) == ["tensor<4x3xf32>", "tensor<3xi32>"]
    assert types(with_defaults) == ["tensor<4x3xf32>", "tensor<3xi32>", "tensor<4x3xf32>"]
    assert types(unknown_name) == ["tensor<4x3xf32>"]
    assert types(functools.partial(annotated, y=jnp.ones(3, np.int32))) == ["tensor<4x3xf32>"]


def test_positional_only_parameters_may_be_described():
    def f(x: MATRIX, n=3.0, y: MATRIX = None, /):
        return x * n + y

    assert types(f) == ["tensor<4x3xf32>", "tensor<f32>", "tensor<4x3xf32>"]


def test_a_call_comes_before_a_description():
    jitted = jit(lambda x: x + 1)
    jitted.__wrapped__.__annotations__["x"] = MATRIX
    assert types(jitted) == ["tensor<4x3xf32>"]
    jitted(1)
    assert types(jitted) == ["tensor<i32>"]


# What cannot be known


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (lambda x: x, "x"),
        (lambda x, y=1, *, z: x, "x, z"),
        (jit(lambda a, b: a), "a, b"),
        (lambda x, y=MATRIX: x, "x"),
        (min, "its signature cannot be read"),
    ],
)
def test_a_function_that_must_be_told(function, missing):
    with pytest.raises(TypeError) as caught:
        lower(function)
    text = str(caught.value)
    assert "has not been called, so the types of its arguments are unknown" in text and f"({missing})" in text
    assert "xtrace.ShapeDtypeStruct((128, 128), 'float32')" in text and "annotation or default" in text


@pytest.mark.parametrize("value", ["text", 3, None, [len]])
def test_what_is_no_function(value):
    with pytest.raises(TypeError, match="lower: Expected a callable value, got"):
        lower(value)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="Error interpreting argument x of f as an abstract array"):

        def f(x):
            return x

        lower(f, "text")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        lower(lambda x, y: x, 1.0)
