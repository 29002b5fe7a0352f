"""debug_nans and debug_infs: which operation made the first bad number, in which step of a loop, and on which line."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import jit, lax


def values(*numbers):
    return jnp.asarray(np.array(numbers, np.float32))


def step(carry, x):
    return carry + jnp.sqrt(x), carry


@xtrace.custom_vjp
def ill(x):
    return x * 2


ill.defvjp(lambda x: (ill(x), x), lambda x, ct: (ct / x * 0.0,))
XS = np.array([1, 2, -1, 3, -4], np.float32)
NANS = np.full(1000, np.nan, np.float32)

# A call, the operation, the rest of the message, and the expression that is marked.
CASES = [
    (lambda: values(1, 0) / values(1, 0), "div", "div of (f32[2], f32[2]) made it: its operands have none, they are "
     "(0.0, 0.0) at [1].", "values(1, 0) / values(1, 0)"),
    (lambda: jit(lambda x: jnp.log(x) + 1)(-1.0), "log", "they are (-1.0). It reaches the result of <lambda>.",
     "jnp.log(x)"),
    (lambda: jit(lambda x: (x, [x / x]))(0.0), "div", "It reaches result[1][0] of <lambda>.", "x / x"),
    (lambda: jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0) + jnp.sqrt(x))(-1.0), "sqrt", "(-1.0)", "jnp.sqrt(x)"),
    (lambda: jit(lambda x: x / x)(0j), "div", "div of (c64[], c64[]) made it", "x / x"),
    (lambda: jit(lambda x: x / x)(jnp.zeros(2, jnp.bfloat16)), "div", "div of (bf16[2], bf16[2]) made it", "x / x"),
    (lambda: jit(lambda x: x - NANS[0])(1.0), "<lambda>", "No operation made it first: the constant nan, f32[], has",
     None),
    (lambda: jit(lambda x: x - NANS)(1.0), "<lambda>", "an array that the function closes over, f32[1000], has", None),
    (lambda: jit(lambda p: p["w"][1] * 2)({"w": (1.0, np.nan)}), "<lambda>", "argument p['w'][1], f32[], has it alr",
     None),
    (lambda: lax.neg(NANS), "neg", "argument 0, f32[1000], has it already at [0], and the result of neg depends", None),
    (lambda: jit(lambda xs: lax.scan(step, 0.0, xs)[0])(XS), "sqrt", "made it in iteration 2 of scan:", "jnp.sqrt(x)"),
    (lambda: lax.scan(step, 0.0, XS, reverse=True)[1], "sqrt", "made it in iteration 0 of scan:", "jnp.sqrt(x)"),
    (lambda: lax.map(lambda x: jnp.log(x), XS), "log", "made it in iteration 2 of scan: its", "jnp.log(x)"),
    (lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, v: v / (i - 3), 0.0))(9), "div",
     "made it in iteration 3 of while_loop", "v / (i - 3)"),
    (lambda: lax.scan(lambda c, x: (c + lax.scan(step, c, XS - x)[0], x), 0.0, np.array([-9, 0], np.float32)), "sqrt",
     "made it in iteration 2 of scan, in iteration 1 of scan:", "jnp.sqrt(x)"),
    (lambda: xtrace.vmap(lambda x: lax.while_loop(lambda v: v[0] < 5, lambda v: (v[0] + 1, jnp.log(v[1])), (x, x)))(
        values(4.5, 0.5)), "log", "log of (f32[2]) made it in iteration 1 of while_loop: its operands have none, they "
     "are (-0.6931472) at [1].", "jnp.log(v[1])"),
    (lambda: jit(lambda i, x: lax.switch(i, [lambda x: x, lambda x: x / x], x))(1, 0.0), "div", "(0.0, 0.0)", "x / x"),
    (lambda: xtrace.grad(lambda x: jnp.sqrt(x) * 0.0)(0.0), "mul", "they are (0.0, inf)", "jnp.sqrt(x)"),
    (lambda: xtrace.grad(jit(lambda x: jnp.sqrt(x) * 0.0))(0.0), "mul", "they are (0.0, inf)", "jnp.sqrt(x)"),
    (lambda: jit(xtrace.grad(xtrace.checkpoint(lambda x: jnp.sin(jnp.sqrt(x) * 0.0))))(0.0), "mul", "(0.0, inf)",
     "jnp.sqrt(x)"),
    (lambda: xtrace.vmap(lambda x: jnp.log(x))(values(1, -1)), "log", "they are (-1.0) at [1].", "jnp.log(x)"),
    (lambda: xtrace.grad(ill)(0.0), "mul", "they are (inf, 0.0).", "ct / x * 0.0"),
    (lambda: jnp.mean(np.zeros(0, np.float32)), "div", "(0.0, 0.0)", "jnp.mean(np.zeros(0, np.float32))"),
    (lambda: jnp.linalg.inv(np.zeros((2, 2), np.float32)), "", "f32[2,2]",
     "jnp.linalg.inv(np.zeros((2, 2), np.float32))"),
    (lambda: jit(lambda x: x / x, donate_argnums=0)(values(0)), "div", "(0.0, 0.0) at [0].", "x / x"),
    (lambda: jit(lambda x: x / x).lower(0.0).compile()(0.0), "div", "It reaches the result of <lambda>.", "x / x"),
]


def marked(text):
    """The expression that a message marks."""
    *_, line, marks = text.splitlines()
    return line[marks.index("^") : marks.rindex("^") + 1]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("call", "operation", "words", "expression"), CASES, ids=range(len(CASES)))
def test_the_operation_that_made_a_nan(call, operation, words, expression):
    with xtrace.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(f"invalid value (nan) encountered in {operation}"), text
    assert words in text and f"  {__file__}:" in text, text
    assert expression is None or marked(text) == expression, text


def test_infinities():
    cases = [
        (lambda: jit(lambda x: 1 / x)(0.0), "div of (f32[], f32[]) made it: its operands have none, they are (1.0, "),
        (lambda: jit(lambda x: jnp.exp(x) * 2)(1e3), "exp of (f32[]) made it: its operands have none, they are (1000"),
        (lambda: lax.neg(np.float32(np.inf)), "argument 0, f32[], has it already"),
    ]
    for call, words in cases:
        with xtrace.debug_infs(True), pytest.raises(FloatingPointError, match=r"^invalid value \(inf\)") as caught:
            call()
        assert words in str(caught.value)
        call()
    with xtrace.debug_infs(True):
        assert np.isnan(jit(lambda x: x / x)(0.0)) and float(jit(lambda x: 1 / (1 / x))(0.0)) == 0
    with xtrace.debug_nans(True), xtrace.debug_infs(True), pytest.raises(FloatingPointError, match="made it: its oper"):
        jit(lambda x: x - x)(1.0) / values(0)


# The same cases in jax, which raises the same class, and says the operation.
@pytest.mark.parametrize(
    "program",
    [
        lambda lib, np_, x: lib.jit(lambda x: np_.log(x))(x - 1),
        lambda lib, np_, x: lib.jit(lambda x: np_.where(x > 0, np_.log(x), 0.0))(x - 1),
        lambda lib, np_, x: (x / x)[0:1],
        lambda lib, np_, x: lib.jit(lambda x: (x, x / x))(x),
        lambda lib, np_, x: lib.lax.scan(lambda c, x: (c / x, c), 0.0, x)[0],
        lambda lib, np_, x: lib.grad(lambda x: np_.sqrt(x))(0.0),
        lambda lib, np_, x: lib.grad(lambda x: np_.where(x > 0, x / x, 0.0))(0.0),
        lambda lib, np_, x: lib.vmap(lambda x: np_.log(x))(x - 1),
        lambda lib, np_, x: lib.lax.cond(True, lambda x: x / x, lambda x: x, x),
        lambda lib, np_, x: lib.jit(lambda x: x * np_.nan)(x),
        lambda lib, np_, x: np_.full(3, np_.nan),
        lambda lib, np_, x: lib.jit(lambda x: x / x, donate_argnums=0)(x + 1),
        lambda lib, np_, x: lib.random.normal(lib.random.key(0), (3,)) + x,
    ],
)
def test_what_raises_raises_in_jax(program):
    def outcome(lib, np_):
        with lib.debug_nans(True):
            try:
                return "results", jax.tree.map(np.asarray, program(lib, np_, np_.zeros(1, np_.float32)))
            except FloatingPointError as error:
                return str(error).partition("encountered in")[0]

    ours, theirs = outcome(xtrace, jnp), outcome(jax, jax.numpy)
    assert type(ours) is type(theirs) and (type(ours) is tuple or ours == theirs)


def test_programs_are_checked_while_the_setting_is_on():
    f = jit(lambda x: x / x)
    for _ in range(6):
        assert np.isnan(f(0.0))
    for _ in range(6):
        with xtrace.debug_nans(True), pytest.raises(FloatingPointError):
            f(0.0)
        assert np.isnan(f(0.0))
    with xtrace.debug_nans(True):
        assert f(2.0) == 1
    assert not [e for e in f.cache_info().entries if "jax_debug_nans" in e.settings and e.is_specialised]


def test_donated_arguments_are_kept_until_results_are_good():
    f = jit(lambda x: x / x, donate_argnums=0)
    bad, good = values(0), values(2)
    with xtrace.debug_nans(True):
        with pytest.raises(FloatingPointError):
            f(bad)
        assert not bad.is_deleted() and float(f(good)[0]) == 1 and good.is_deleted()
        with pytest.raises(RuntimeError, match="has been deleted"):
            f(good)
        compiled = f.lower(values(1)).compile()
        with pytest.raises(FloatingPointError, match="the arguments were donated"):
            compiled(values(0))


def test_what_a_program_calls_is_not_called_again():
    calls = []

    def f(x):
        calls.append(1)
        return jnp.log(x)

    with xtrace.debug_nans(True), pytest.raises(FloatingPointError):
        jit(f)(-1.0)
    assert len(calls) == 1


def test_keys_and_integers_have_no_bad_numbers():
    with xtrace.debug_nans(True), xtrace.debug_infs(True):
        keys = jit(lambda k: xtrace.random.split(k))(xtrace.random.key(0))
        assert keys.shape == (2,) and int(jit(lambda x: x + 1)(1)) == 2
        assert jnp.isnan(jnp.asarray(np.float32(np.nan)))


def test_a_constant_inside_of_a_library_function_is_no_result():
    matrix = np.array([[3.0, 0.5], [0.25, 2.0]], np.float32)
    with xtrace.debug_infs(True):
        # The logarithm of a determinant of 0 is -inf, which is not chosen here.
        out, pullback = xtrace.vjp(lambda a: jnp.linalg.slogdet(a, method="lu"), jnp.asarray(matrix))
        (found,) = pullback(type(out)(*map(jnp.ones_like, out)))
    np.testing.assert_allclose(found, np.linalg.inv(matrix).T, rtol=1e-6)
