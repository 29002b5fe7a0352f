"""The fix that an error suggests, in the user's own words, and whose function, transformation and argument it names."""

import itertools
import linecache
import math
import textwrap

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax

X = np.ones(4, np.float32)
TABLE, FUNCTIONS, KEYED = np.arange(10.0), [jnp.sin, jnp.cos], {0: jnp.sin, 1: jnp.cos}
STATIC_N = 'make n static with xtrace.jit(f, static_argnames=["n"]), if it takes few values: each one is compiled anew'
_number = itertools.count()


def written(source):
    """The function f of a file with this text."""
    name = f"advice_{next(_number)}.py"
    text = textwrap.dedent(source).strip("\n") + "\n"
    linecache.cache[name] = (1, None, text.splitlines(keepends=True), name)
    known = {"np": np, "jnp": jnp, "lax": lax, "xtrace": xtrace, "math": math, "__name__": "user"}
    namespace = known | {"TABLE": TABLE, "FUNCTIONS": FUNCTIONS, "KEYED": KEYED}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def message(source, *args, transform=xtrace.jit):
    """The text of the error of the function in `source`."""
    with pytest.raises((TypeError, IndexError, ValueError)) as caught:
        transform(written(source))(*args)
    return str(caught.value)


def fixes(text):
    """The suggestions at the end of a message."""
    return text.partition("To fix it: ")[2].split("\n  or ")


@pytest.mark.parametrize(
    ("expression", "args", "first"),
    [
        ("max(x, 0.)", [1.0], "jnp.maximum(x, 0.)"),
        ("min(x, 1., y)", [1.0, 2.0], "jnp.minimum(jnp.minimum(x, 1.), y)"),
        ("any([x > 0, y > 0])", [1.0, 2.0], "jnp.any(jnp.array([x > 0, y > 0]))"),
        ("any(abs(v) > 1 for v in list(x))", [X], "jnp.any(jnp.array([abs(v) > 1 for v in list(x)]))"),
        ("all([v > 0 for v in (x, y)])", [1.0, 2.0], "jnp.all(jnp.array([v > 0 for v in (x, y)]))"),
        ("sorted(x)", [X], "jnp.sort(x)"),
        ("0 < x < 1", [1.0], "jnp.logical_and(0 < x, x < 1)"),
        ("not (x > 0 or y > 0)", [1.0, 2.0], "jnp.logical_not(jnp.logical_or(x > 0, y > 0))"),
        ("x in (1., 2.)", [1.0], "jnp.isin(x, jnp.array((1.0, 2.0)))"),
        ("[v for v in x if v > 0]", [X], "keep every item, and jnp.where(v > 0, item, 0)"),
        ("int(x + 1)", [1.0], "(x + 1).astype(int), which stays an array"),
        ("x.item()", [1.0], "leave out .item(): x can be used as it is"),
        ("math.sqrt(x)", [1.0], "jnp.sqrt(x)"),
        ("math.factorial(x)", [3], "xtrace.scipy.special.factorial(x)"),
        ("np.linalg.norm(x)", [X], "jnp.linalg.norm(x), which can be traced"),
        ("np.float32(x)", [1.0], "x.astype(jnp.float32)"),
        ("TABLE[x]", [1], "jnp.asarray(TABLE)[x]"),
        ("[1, 2, 3][x]", [1], "jnp.array([1, 2, 3])[x]"),
        ("FUNCTIONS[x](1.)", [1], "lax.switch(x, FUNCTIONS, *operands)"),
        ("KEYED[x](1.)", [1], "lax.switch(x, list(KEYED.values()), *operands)"),
        ("x[x < 0]", [X], "jnp.where(x < 0, x, fill), which keeps the shape"),
        ("x[x < 0].sum()", [X], "jnp.sum(x, where=x < 0)"),
        ("jnp.max(x[x < 0])", [X], "jnp.max(x, where=x < 0, initial=...)"),
        ("x[y:y + 3]", [X, 1], "lax.dynamic_slice_in_dim(x, y, 3)"),
        ("x[y - 2:y]", [X, 1], "lax.dynamic_slice_in_dim(x, y - 2, 2)"),
        ("x[:, y:y + 1]", [np.ones((2, 3)), 1], "lax.dynamic_slice_in_dim(x, y, 1, axis=1)"),
        ("x[:y]", [X, 1], "jnp.where(jnp.arange(len(x)) < y, x, 0), which keeps the shape"),
        ("x.at[y:y + 2].set(0.)", [X, 1], "lax.dynamic_update_slice_in_dim(x, values, y, axis=0)"),
        ("jnp.nonzero(x)", [X], "jnp.nonzero(x, size=N) with a fixed number N of results"),
        ("jnp.unique(x)", [X], "jnp.unique(x, size=N) with a fixed number N of results"),
        ("x.reshape(jnp.array(x.shape).prod())", [X], "x.reshape(np.prod(x.shape))"),
        ("jnp.zeros(jnp.prod(jnp.array(x.shape)))", [X], "jnp.zeros(np.prod(x.shape))"),
        ("f'{x:.2f} of {y}'", [1.0, 2.0], 'xtrace.debug.print("{:.2f} of {}", x, y)'),
        ("'%.1f%s' % (x, y)", [1.0, 2.0], 'xtrace.debug.print("{:.1f}{:s}", x, y)'),
        ("'{:.2f}'.format(x)", [1.0], 'xtrace.debug.print("{:.2f}", x)'),
    ],
)
def test_an_expression(expression, args, first):
    text = message(f"def f(x, y=None):\n    return {expression}", *args)
    assert fixes(text)[0].startswith(first), text


@pytest.mark.parametrize(
    ("body", "args", "first"),
    [
        ("if x > 0:\n    return x\nreturn y", [1.0, 2.0], "return jnp.where(x > 0, x, y)"),
        ("if x > 0:\n    y = x\nreturn y", [1.0, 2.0], "y = jnp.where(x > 0, x, y)"),
        ("if x > 0:\n    y += x\nelse:\n    y = 0.\nreturn y", [1.0, 2.0], "y = jnp.where(x > 0, y + x, 0.0)"),
        (
            "if x > 1:\n    r = 1.\nelif x > 0:\n    r = 2.\nelse:\n    r = 3.\nreturn r",
            [1.0, 2.0],
            "r = jnp.where(x > 1, 1.0, jnp.where(x > 0, 2.0, 3.0))",
        ),
        (
            "if x > 0:\n    a, b = x, y\nelse:\n    a, b = y, x\nreturn a",
            [1.0, 2.0],
            "a, b = lax.cond(x > 0, lambda: (x, y), lambda: (y, x))",
        ),
        ("if x > 0 and not y > 0:\n    pass", [1.0, 2.0], "lax.cond(jnp.logical_and(x > 0, jnp.logical_not(y > 0)), "),
        ("if x < 0:\n    raise ValueError('negative')", [1.0, 2.0],
         "xtrace.experimental.checkify.check(jnp.logical_not(x < 0), 'negative')"),
        ("assert x > 0, 'sign'", [1.0, 2.0], "xtrace.experimental.checkify.check(x > 0, 'sign')"),
        ("while x > y:\n    x = x / 2\nreturn x", [1.0, 2.0],
         "x = lax.while_loop(lambda x: x > y, lambda x: x / 2, x)"),
        (
            "e = 1.\nwhile x > e:\n    x = x - 1\n    e = e / 2\nreturn x",
            [1.0, 2.0],
            "x, e = lax.while_loop(condition, body, (x, e)), where condition and body take that tuple, condition "
            "returns x > e, and body the new x, e",
        ),
        ("while True:\n    x = x - 1\n    if x < 0:\n        break\nreturn x", [1.0, 2.0],
         "write the loop with lax.while_loop, whose condition is jnp.logical_not(x < 0)"),
        ("t = np.zeros(3)\nt[x] = y\nreturn t", [1, 2.0], "t = jnp.asarray(t).at[x].set(y)"),
        ("x[0] = 10\nreturn x", [X, 2.0], "x = x.at[0].set(10)"),
        ("x[1:] -= x[0] * 2\nreturn x", [X, 1], "x = x.at[1:].add(-(x[0] * 2))"),
        ("x[0] //= 2\nreturn x", [X, 1], "x = x.at[0].set(x[0] // 2)"),
        ("for i in x:\n    y = y + i\nreturn y", [2, 1], "y = lax.fori_loop(0, x, lambda i, y: y + i, y)"),
    ],
)
def test_a_statement(body, args, first):
    text = message("def f(x, y):\n" + textwrap.indent(body, "    "), *args)
    assert fixes(text)[0].startswith(first), text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x, n):\n    for i in range(n):\n        x = x + i\n    return x",
         [STATIC_N, "x = lax.fori_loop(0, n, lambda i, x: x + i, x)"]),
        ("def f(x, n):\n    for i in range(1, n):\n        y = x * i\n        x = x + 1\n    return x + y",
         [STATIC_N, "y, x = lax.fori_loop(1, n, body, (y, x)), where body(i, (y, x)) returns the new y, x"]),
        ("def f(x, n):\n    return jnp.zeros(n + 1)",
         [STATIC_N, "give it a fixed size, and mask what lies behind with jnp.where"]),
        ("def f(x, n):\n    return jnp.repeat(x, n)",
         ["jnp.repeat(x, n, total_repeat_length=N) with a fixed number N of results, which fills or cuts", STATIC_N]),
    ],
)
def test_the_argument_that_could_be_static(source, expected):
    assert fixes(message(source, 1.0, 3)) == expected


@pytest.mark.parametrize(
    ("source", "args"),
    [
        ("def f(x):\n    if x['n'] > 0: return 1", [{"n": 3}]),
        ("def f(x):\n    if x.sum() > 0: return 1", [X]),
        ("def f(x, y):\n    if x > y: return 1", [1, 2]),
        ("def f(x):\n    y = jnp.sin(x)\n    if y > 0: return 1", [1.0]),
    ],
)
def test_arguments_that_could_not(source, args):
    assert "static" not in message(source, *args)


def test_other_transformations_have_no_static_arguments():
    source = "def f(c, x):\n    if c['a'] > 0: return c, x\n    return c, x"
    text = message(source, transform=lambda f: lambda: lax.scan(f, {"a": 0.0}, X))
    assert "the function f at advice_" in text and "for scan. " in text and "the argument c['a'].\n" in text
    assert "static" not in text


@pytest.mark.parametrize(
    ("transform", "args", "name"),
    [
        (xtrace.vmap, ({"w": X}, X), "vmap"),
        (lambda f: xtrace.jit(xtrace.vmap(f)), ({"w": X}, X), "jit"),
        (lambda f: xtrace.jit(xtrace.grad(f)), ({"w": 1.0}, 1.0), "jit"),
    ],
)
def test_values_of_vmap_and_grad_explain_themselves(transform, args, name):
    source = "def f(x, y):\n    t = jnp.sin(x['w'])\n    u = t + 1\n    if u > 0:\n        return t\n    return y"
    text = message(source, *args, transform=transform)
    assert f"the function f at advice_{next(_number) - 1}.py:1 for {name}." in text
    assert "depends on the value of the argument x['w']." in text
    assert text.count("jnp.sin(x['w'])") == 1 and text.index("jnp.sin(x['w'])") < text.index("t + 1")
    assert "    if u > 0:\n       ^^^^^\n" in text
    assert fixes(text)[0] == "return jnp.where(u > 0, t, y)"


@pytest.mark.parametrize("transform", [lambda f: xtrace.grad(f, argnums=1), lambda f: lambda x, y: xtrace.jvp(
    f, (x, y), (x, y))])
def test_a_value_being_differentiated(transform):
    text = message("def f(a, x):\n    y = x * 2\n    return a * np.sin(y)", 1.0, 2.0, transform=transform)
    assert "depends on the value of the argument x. The value is being differentiated" in text
    assert "xtrace.lax.stop_gradient(x)" in text and fixes(text) == ["jnp.sin(y), which can be traced"]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: xtrace.vmap(xtrace.vmap(f)),
        lambda f: lambda x: xtrace.vmap(xtrace.vmap(xtrace.grad(f)))(x),
        lambda f: lambda x: xtrace.grad(lambda y: xtrace.vmap(xtrace.vmap(f))(y).sum())(x),
    ],
)
def test_values_of_several_transformations(transform):
    text = message("def f(x):\n    return x * 2 if x > 0 else x", np.ones((2, 3), np.float32), transform=transform)
    assert "depends on the value of the argument x. The value is mapped by vmap: it stands for 3 values at" in text
    assert text.count("2 values at once") == 1 and fixes(text)[0] == "jnp.where(x > 0, x * 2, x)"


def test_a_constant_is_computed_with_numpy():
    text = message("def f():\n    n = jnp.arange(3).sum()\n    return 1 if n > 2 else 2")
    assert "    from line " in text and fixes(text)[-1] == "compute it with numpy, whose values are known while tracing"


def test_a_value_of_several_elements():
    text = message("def f(x):\n    return 1 if x > 0 else 2", X)
    assert text.startswith("The truth value of an array of shape (4,) is ambiguous. Use x.any() or x.all()")
    assert "    return 1 if x > 0 else 2\n                ^^^^^\n" in text
    assert fixes(text) == ["jnp.where(x > 0, 1, 2)", "x.any() or x.all(), to ask about all elements at once"]


def test_the_place_is_the_users_and_not_that_of_a_library():
    text = message("def f(x):\n    import colorsys\n    return colorsys.rgb_to_hsv(x, 0, 0)", 1.0)
    assert "    return colorsys.rgb_to_hsv(x, 0, 0)\n           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n" in text
    text = message("def f(x):\n    return np.linalg.norm(x)", X)
    assert "    return np.linalg.norm(x)\n           ^^^^^^^^^^^^^^^^^\n" in text


def test_without_source_there_is_general_advice():
    function = written("def f(x):\n    if x > 0: return 1")
    linecache.cache.pop(function.__code__.co_filename)
    with pytest.raises(TypeError) as caught:
        xtrace.jit(function)(X[0])
    assert f"\n  {function.__code__.co_filename}:2 (f)\nThe error occurred" in str(caught.value)
    assert fixes(str(caught.value))[0].startswith("choose with jnp.where(condition, x, y) or lax.cond, loop with")


def test_names_are_those_of_the_module():
    with pytest.raises(TypeError) as caught:
        xtrace.jit(lambda x: np.tanh(x))(1.0)
    assert fixes(str(caught.value)) == ["jnp.tanh(x), which can be traced"]
