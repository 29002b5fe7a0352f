"""Errors of rules, of MLIR's parser and of XLA name the operation, its equation and the user's line."""

import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.algebra.vector_space import LINEAR
from xtrace._src.core.primitive import no_rule

X = np.ones(3, np.float32)


def wrong(*_, **__):
    raise ValueError("the rule is wrong")


def program(primitive):
    """A function that uses the primitive, and the text of its call."""

    def f(x):
        return primitive.bind(jnp.sin(x)).sum()

    return f, f.__code__.co_firstlineno + 1


def notes(error):
    return "\n".join(getattr(error, "__notes__", ()))


def shown(text):
    """The source text that carets are under, on one line."""
    lines = text.split("\n")
    marked = next(i for i, line in enumerate(lines) if set(line.strip()) == {"^"})
    first = lines[marked].index("^")
    return lines[marked - 1][first : len(lines[marked])]


@pytest.mark.parametrize(
    ("rule", "transformation"),
    [("abstract", xtrace.jit), ("emit", xtrace.jit), ("jvp", xtrace.grad), ("batch", xtrace.vmap)],
)
@pytest.mark.parametrize("jitted", [False, True])
def test_errors_of_rules_name_operation_rule_types_and_line(rule, transformation, jitted, new_primitive):
    rules = {"abstract": lambda x: x, "emit": lambda builder, x: x, rule: wrong}
    f, line = program(new_primitive("odd", (), memoised=False, **rules))
    called = transformation(xtrace.jit(f) if jitted else f)
    with pytest.raises(ValueError, match="the rule is wrong") as caught:
        called(np.ones((2, 3), np.float32) if rule == "batch" else X)
    text = notes(caught.value)
    assert "operation odd on (f32[3])" in text and f"{__file__}:{line} (f)" in text
    assert f"in the {rule} rule of" in text or rule == "abstract"


def test_errors_of_transpose_rules_show_the_line(new_primitive):
    def transpose(cotangent, x):
        raise ValueError("the rule is wrong")

    odd = new_primitive("odd", (), abstract=lambda x: x, emit=lambda builder, x: x, jvp=LINEAR, transpose=transpose)
    f, line = program(odd)
    for function in (xtrace.grad(f), xtrace.jit(xtrace.grad(f))):
        with pytest.raises(ValueError, match="the rule is wrong") as caught:
            function(X)
        text = notes(caught.value)
        assert "in the transpose rule of the operation odd on (f32[3])" in text
        assert f"{__file__}:{line} (f)" in text and shown(text) == "primitive.bind(jnp.sin(x))"


def test_a_missing_rule_says_which_call_needs_it(new_primitive):
    f, line = program(new_primitive("odd", (), abstract=lambda x: x, emit=None, jvp=no_rule("odd is not smooth")))
    with pytest.raises(NotImplementedError, match="odd is not smooth") as caught:
        xtrace.grad(f)(X)
    assert f"the operation odd on (f32[3]), called at {__file__}:{line} (f)" in notes(caught.value)


# What the emit rule of the operation writes, and what the note says of it.
REFUSED = {
    "unknown operation": ("stablehlo.nonsense {0} : {1}", "is not valid"),
    "verifier": ('"stablehlo.reverse"({0}) <{{dimensions = array<i64: 4>}}> : ({1}) -> {1}', "is not valid"),
    "syntax": ('"stablehlo.add"({0}, {0} : ({1}) -> {1}', "is not valid"),
    "result type": ('"stablehlo.reshape"({0}) : ({1}) -> tensor<7xf32>', "is not valid"),
    "shape inference": ('"stablehlo.cholesky"({0}) <{{lower = true}}> : ({1}) -> {1}', "is not valid"),
    "foreign function": (
        "stablehlo.custom_call @nosuch({0}) : ({1}) -> {1}",
        "for cpu:0. It calls nosuch, and no kernel of that name is registered for cpu.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["jit", "stages", "eager", "inner"])
def test_what_xla_refuses_is_named(name, how, new_primitive):
    template, said = REFUSED[name]
    odd = new_primitive(
        "odd", (), abstract=lambda x: x, emit=lambda b, x: b.line(template.format(x.name, x.type), x.aval)
    )
    f, line = program(odd)
    run = {
        "jit": lambda: xtrace.jit(f)(X),
        "stages": lambda: xtrace.jit(f).lower(X).compile(),
        "eager": lambda: odd.bind(X),
        "inner": lambda: xtrace.jit(lambda x: xtrace.lax.fori_loop(0, 2, lambda i, c: c + xtrace.jit(f)(c), x))(X),
    }[how]
    with pytest.raises(RuntimeError) as caught:
        run()
    text = notes(caught.value)
    assert said in text and re.search(r"\w:f32\[3\] = odd \w", text)
    if how != "eager":
        assert f"{__file__}:{line} (f)" in text and shown(text) == "primitive.bind(jnp.sin(x))"


def test_an_error_that_names_no_operation_names_the_program():
    with pytest.raises(RuntimeError) as caught:
        xtrace.jit(jnp.sin, compiler_options={"xla_no_such_option": True})(X)
    assert "the program jit_sin for" in notes(caught.value) and "XTRACE_DUMP_IR_TO" in notes(caught.value)


def test_out_of_memory_names_the_largest_result():
    def f(x):
        y = jnp.sin(x)
        return y * jnp.ones((1 << 20, 1 << 22), "float32")

    jitted = xtrace.jit(f)
    for call in (jitted, jitted.lower(np.float32(1)).compile()):
        with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED") as caught:
            call(np.float32(1))
        text = notes(caught.value)
        assert "takes 17592186044416 bytes" in text and f"{__file__}:{f.__code__.co_firstlineno + 2} (f)" in text
        assert 'jnp.ones((1 << 20, 1 << 22), "float32")' in shown(text)
