"""Errors as values: a table of programs with what jax finds in them, then messages, and what only we do."""

import functools
import inspect

import jax
import jax.experimental.checkify
import numpy as np
import pytest

import xtrace
import xtrace.experimental.checkify
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace._src.core import primitive
from xtrace.experimental import checkify

VECTOR = np.arange(3, dtype=np.float32)
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
ONE, TWO, LARGE = np.float32(1), np.int32(2), np.int32(9)


class Library:
    """A library as the programs below use it."""

    def __init__(self, root):
        self.root, self.jnp, self.lax, self.checkify = root, root.numpy, root.lax, root.experimental.checkify

    def above(self, bound):
        """A function that states a check."""

        def function(x):
            self.checkify.check(x > bound, "{x} must be above {}", self.jnp.asarray(bound), x=x)
            return x + 1

        return function


OURS, THEIRS = Library(xtrace), Library(jax)


def _loop_with_checks(m, x):
    def goes_on(x):
        m.checkify.check(x < 7, "cond {}", x)
        return x < 4

    def step(x):
        m.checkify.check(x < 9, "body {}", x)
        return x + 1

    return m.lax.while_loop(goes_on, step, x)


def _scan(m, xs):
    def step(carry, x):
        m.checkify.check(carry < 2, "carry {} at {}", carry, x)
        return carry + x, carry

    return m.lax.scan(step, 0.0, xs)


def _switch(m, i, x):
    return m.lax.switch(i, [m.above(5.0), lambda x: x, lambda x: m.jnp.log(x - 3)], x)


def _custom_jvp(m, x):
    function = m.root.custom_jvp(m.above(5.0))

    @function.defjvp
    def rule(primals, tangents):
        m.checkify.check(primals[0] > 6, "rule {}", primals[0])
        return function(*primals), tangents[0]

    return function


def _closing_over(m, x):
    def scaled(scale):
        function = m.root.custom_jvp(lambda x: m.above(5.0)(x) * scale)
        function.defjvp(lambda primals, tangents: (m.jnp.log(*primals), tangents[0] / primals[0]))
        return function(x) + m.root.grad(function)(x)

    return m.root.jit(scaled)(x)


def _custom_vjp(m, x):
    function = m.root.custom_vjp(m.above(5.0))

    def backward(residual, cotangent):
        m.checkify.check(residual > 7, "backward {}", residual)
        return (cotangent,)

    function.defvjp(lambda x: (function(x), x), backward)
    return function


def _inner(m, x):
    error, y = m.checkify.checkify(m.above(3.0))(x)
    m.checkify.check_error(error)
    return y * 2


# A program, its arguments; an argument that is a tuple has those of several calls, of which only some fail.
PROGRAMS = {
    "check": (lambda m, x: m.above(2.0)(x), (ONE, np.float32(3))),
    "two checks": (lambda m, x: m.above(1.0)(m.above(0.0)(x)), (-ONE, -ONE * 0.5, ONE)),
    "check of a number": (lambda m, x: (m.checkify.check(False, "no"), x)[1], ONE),
    "format": (lambda m, x: (m.checkify.check(x.sum() < 0, "{:.2f} of {a}", x[0], a=x), x)[1], VECTOR),
    "debug_check": (lambda m, x: m.checkify.debug_check(x > 1, "small"), (ONE, ONE * 2)),
    "check_error": (_inner, (ONE, ONE * 4)),
    "nan": (lambda m, x: m.jnp.sin(x), (np.float32(np.inf), ONE)),
    "nan of several": (lambda m, x: m.jnp.log(x - 1) * 2, (VECTOR, VECTOR + 1)),
    "nan of a copy": (lambda m, x: m.jnp.where(x > 0, x, x)[::-1].reshape(3, 1), np.float32([1, np.nan, 2])),
    "nan of a sum": (lambda m, x: m.jnp.sum(x), np.float32([np.inf, -np.inf])),
    "division": (lambda m, x, y: x / y, ONE, (np.float32(0), ONE)),
    "division of zeros": (lambda m, x, y: x / y, np.float32(0), np.float32(0)),
    "division of integers": (lambda m, x, y: m.lax.div(x, y), TWO, (np.int32(0), TWO)),
    "division of complex numbers": (lambda m, x, y: x / y, np.complex64(1j), np.complex64(0)),
    "remainder": (lambda m, x, y: m.lax.rem(x, y), ONE, (np.float32(0), ONE)),
    "infinity": (lambda m, x: m.jnp.log(x) + 1 / (x + 1), np.float32(0)),
    "index": (lambda m, x, i: x[i], VECTOR, (LARGE, np.int32(-7), TWO, np.int32(-3))),
    "index known": (lambda m, x: x[1, 7] + x[-9, 0], MATRIX),
    "index of a narrow type": (lambda m, x, i: x[i], VECTOR, np.uint8([200])),
    "indices": (lambda m, x, i: x[1, i], MATRIX, (np.int32([1, 9, 8]), np.int32([1, -4]))),
    "pairs of indices": (lambda m, x, i, j: x[i, j], MATRIX, np.int32([2, 2]), (np.int32([3, 4]), np.int32([3, 0]))),
    "index filled": (lambda m, x, i: x.at[i].get(mode="fill"), VECTOR, (LARGE, TWO)),
    "take": (lambda m, x, i: m.jnp.take(x, i, axis=1), MATRIX, (np.int32([4]), TWO)),
    "update": (lambda m, x, i: x.at[i].set(1.0), VECTOR, (LARGE, np.int32(-1))),
    "update of a row": (lambda m, x, i: x.at[i, 1:3].add(x[0, :2]), MATRIX, (np.int32([1, 5]), np.int32([1, 2]))),
    "dynamic_slice": (lambda m, x, i: m.lax.dynamic_slice(x, (0, i), (2, 2)), MATRIX, (np.int32(3), TWO)),
    "dynamic_update_slice": (
        lambda m, x, i: m.lax.dynamic_update_slice(x, x[:2], (i,)), VECTOR, (TWO, np.int32(1))),
    "jit": (lambda m, x: m.root.jit(lambda x: m.root.jit(m.above(2.0))(x) - 1)(x), (ONE, ONE * 3)),
    "cond": (lambda m, p, x: m.lax.cond(p > 1, m.above(2.0), lambda x: x, x), (TWO, np.int32(0)), ONE),
    "switch": (_switch, (np.int32(0), np.int32(1), TWO), ONE),
    "while_loop": (_loop_with_checks, (ONE, np.float32(7.5), np.float32(9), np.float32(-1))),
    "while_loop body": (
        lambda m, x: m.lax.while_loop(lambda x: x < 4, lambda x: m.above(2.0)(x) + 0, x), (ONE, ONE * 3)),
    "fori_loop": (lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c + x[i + 1], 0.0), VECTOR),
    "scan": (_scan, (np.ones(4, np.float32), np.zeros(4, np.float32))),
    "map": (lambda m, x: m.lax.map(m.above(1.5), x), (VECTOR, VECTOR + 2)),
    "checkpoint": (
        lambda m, x: m.root.grad(m.root.checkpoint(lambda x: m.jnp.sin(m.above(2.0)(x))))(x), (ONE, ONE * 3)),
    "grad": (lambda m, x: m.root.grad(m.above(2.0))(x), (ONE, ONE * 3)),
    "grad of sqrt": (lambda m, x: m.root.grad(m.jnp.sqrt)(x), (np.float32(0), ONE)),
    "custom_jvp": (lambda m, x: _custom_jvp(m, x)(x), (ONE, ONE * 6)),
    "grad of custom_jvp": (lambda m, x: m.root.grad(_custom_jvp(m, x))(x), (ONE, ONE * 7)),
    "custom_jvp that closes over": (_closing_over, (ONE, ONE * -6, ONE * 6)),
    "custom_vjp": (lambda m, x: _custom_vjp(m, x)(x), (ONE, ONE * 6)),
    "grad of custom_vjp": (lambda m, x: m.root.grad(_custom_vjp(m, x))(x), (ONE, ONE * 7, ONE * 8)),
    "vmap": (lambda m, x: m.root.vmap(m.above(0.5))(x), (VECTOR, VECTOR + 2)),
    "vmap of an index": (
        lambda m, x, i: m.root.vmap(lambda x, i: m.lax.dynamic_slice(x, (i,), (1,)))(x, i),
        MATRIX, (np.int32([1, 9, 2]), np.int32([0, 1, 3]))),
}


def _calls(arguments):
    """Return the arguments of each call."""
    count = max([len(a) for a in arguments if isinstance(a, tuple)], default=1)
    return [[a[i] if isinstance(a, tuple) else a for a in arguments] for i in range(count)]


def _checked(library, program, errors):
    checked = library.checkify.checkify(functools.partial(program, library), getattr(library.checkify, errors))
    return library.root.jit(checked)


def assert_same_errors(program, arguments, errors="all_checks"):
    """Assert that jax finds the same first error, with all that its message says, and computes the same."""
    ours, theirs = _checked(OURS, program, errors), _checked(THEIRS, program, errors)
    for values in _calls(arguments):
        (error, found), (expected, wanted) = ours(*values), theirs(*values)
        message = expected.get()
        if message is None:
            assert error.get() is None, values
            error.throw()
        else:
            assert error.get().startswith(message.strip()), values
            assert type(error.get_exception()).__name__ == type(expected.get_exception()).__name__
            assert f"line {__file__}:" in error.get()
        if wanted is not None:
            assert_same(jax.tree.leaves(found), jax.tree.leaves(wanted))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_and_results_are_those_of_jax(name):
    program, *arguments = PROGRAMS[name]
    assert_same_errors(program, arguments)


@pytest.mark.parametrize("errors", ["user_checks", "nan_checks", "index_checks", "div_checks", "float_checks",
                                    "automatic_checks"])
def test_only_what_is_asked_for_is_found(errors):
    def program(m, x, y, i):
        x = m.jnp.log(x) / y + x[i]
        m.checkify.check(m.jnp.all(x > 5), "small")
        return x

    assert_same_errors(program, [-VECTOR - 1, np.float32(0), LARGE], errors)


def test_wide_types():
    with xtrace.enable_x64(True), jax.enable_x64(True):
        for name in ("two checks", "pairs of indices", "update", "while_loop"):
            program, *arguments = PROGRAMS[name]
            wide = [tuple(map(_widened, a)) if isinstance(a, tuple) else _widened(a) for a in arguments]
            assert_same_errors(program, wide)


def _widened(x):
    return x.astype({"f": np.float64, "i": np.int64}[x.dtype.kind])


# Mapped errors


def _message(error):
    """The message of an error without the places in it."""
    text = error.get()
    return text if text is None else [line.split(", on line")[0].split(" On line")[0] for line in text.splitlines()]


@pytest.mark.parametrize(
    "program",
    [
        lambda m, x: m.above(0.5)(x),
        lambda m, x: m.lax.cond(x > 0, m.above(1.5), lambda x: x, x),
        lambda m, x: m.lax.fori_loop(0, 2, lambda i, y: m.above(1.5)(y), x),
    ],
    ids=["check", "cond", "fori_loop"],
)
def test_mapped_errors_are_those_of_jax(program):
    assert_same_mapped_errors(program, nested=False)


def assert_same_mapped_errors(program, nested):
    """Assert that jax finds the same errors at the same indices."""
    found = []
    for m in (OURS, THEIRS):
        checked = m.root.vmap(m.checkify.checkify(functools.partial(program, m)))
        checked = m.root.jit(m.root.vmap(checked) if nested else checked)
        x = np.stack([VECTOR, VECTOR + 1]) if nested else VECTOR
        error, y = checked(x)
        found.append((_message(error), y))
        assert checked(x + 5)[0].get() is None
    assert found[0][0] == found[1][0]
    assert_same(found[0][1], found[1][1])


def test_errors_mapped_twice_are_those_of_jax():
    assert_same_mapped_errors(lambda m, x: m.above(0.5)(x), nested=True)


def test_mapped_loops():
    # jax raises an internal error here; the examples whose loop has ended must not report what is computed of them.
    def count(x):
        def step(x):
            checkify.check(x < 2, "{}", x)
            return x + 1

        return xtrace.lax.while_loop(lambda x: x < 3, step, x)

    error, y = xtrace.jit(xtrace.vmap(checkify.checkify(count)))(np.float32([0, 5, 1]))
    assert _message(error) == ["at mapped index 0: 2.0 (`check` failed)", "at mapped index 2: 2.0 (`check` failed)"]
    np.testing.assert_array_equal(y, [3, 5, 3])
    with pytest.raises(ValueError, match=r"write xtrace\.vmap\(checkify\.checkify\(f\)\) for"):
        checkify.checkify(xtrace.vmap(count))(VECTOR)


def test_gradients_of_checked_functions():
    def loss(x):
        error, y = checkify.checkify(function, checkify.all_checks)(x)
        return y, error

    function = jnp.log
    slope, error = xtrace.grad(loss, has_aux=True)(np.float32(-4))
    assert (slope, _message(error)) == (-0.25, ["nan generated by primitive: log."])
    for wrap in (xtrace.custom_jvp, xtrace.custom_vjp):
        function = wrap(lambda x: (checkify.check(x > 2, "{}", x), x * 3)[1])
        if wrap is xtrace.custom_jvp:
            function.defjvp(lambda primals, tangents: (primals[0] * 3, tangents[0] * 7))
        else:
            function.defvjp(lambda x: (x * 3, None), lambda _, cotangent: (cotangent * 7,))
        for transformed in (xtrace.grad(loss, has_aux=True), xtrace.jit(xtrace.grad(loss, has_aux=True))):
            slope, error = transformed(np.float32(1))
            assert (slope, _message(error)) == (7, ["1.0 (`check` failed)"])
        slopes, error = xtrace.vmap(xtrace.grad(loss, has_aux=True))(VECTOR + 1)
        np.testing.assert_array_equal(slopes, [7, 7, 7])
        assert _message(error) == ["at mapped index 0: 1.0 (`check` failed)", "at mapped index 1: 2.0 (`check` failed)"]
    slopes = xtrace.grad(lambda x: checkify.checkify(functools.partial(_scan, OURS))(x)[1][0])(np.ones(3, np.float32))
    np.testing.assert_array_equal(slopes, [1, 1, 1])


def test_rules_of_mapped_functions_stay():
    function = xtrace.custom_batching.custom_vmap(lambda x: x * 2)
    function.def_vmap(lambda size, batched, x: (x * 3, True))
    error, y = xtrace.vmap(checkify.checkify(function, checkify.all_checks))(VECTOR)
    assert error.get() is None
    np.testing.assert_array_equal(y, VECTOR * 3)
    stating = xtrace.custom_batching.custom_vmap(lambda x: (checkify.check(x > 3, "{}", x), x * 2)[1])
    stating.def_vmap(lambda size, batched, x: (x * 3, True))
    assert _message(checkify.checkify(stating)(VECTOR[1])[0]) == ["1.0 (`check` failed)"]


def test_what_jax_does_not_look_at():
    singular = -np.eye(2, dtype=np.float32)
    for function, arguments, message in (
        (jnp.linalg.cholesky, [singular], "nan generated by primitive: cholesky."),
        (jnp.exp2, [np.float32(np.nan)], "nan generated by primitive: exp2."),
        (xtrace.lax.rem, [np.int32(1), np.int32(0)], "division by zero"),
        (lambda x: jnp.nonzero(x, size=4), [VECTOR], None),
    ):
        error, _ = checkify.checkify(function, checkify.all_checks)(*arguments)
        assert _message(error) == (None if message is None else [message])
    # Of traced positions jax reports those that are clipped on request.
    error, _ = checkify.checkify(lambda i: jnp.asarray(VECTOR).at[i].get(mode="clip"), checkify.all_checks)(LARGE)
    assert error.get() is None


# Without checkify, and eagerly


def test_checks_raise_where_they_can():
    function = OURS.above(2.0)
    place = f"{__file__}:{inspect.getsourcelines(Library.above)[1] + 4} (function)"
    with pytest.raises(checkify.JaxRuntimeError) as caught:
        function(ONE)
    assert str(caught.value) == f"1.0 must be above 2.0 (`check` failed), on line {place}"
    assert issubclass(checkify.JaxRuntimeError, ValueError)
    with pytest.raises(checkify.JaxRuntimeError, match=r"at mapped index 0: 0\.0 must be above"):
        xtrace.vmap(function)(VECTOR)
    with pytest.raises(checkify.JaxRuntimeError, match=r"1\.0 must be above"):
        xtrace.grad(function)(ONE)
    for compiled in (xtrace.jit(function), lambda x: xtrace.lax.map(function, x[None]), xtrace.jit(function).lower):
        with pytest.raises(ValueError, match=r"not functionalized: '\{x\} must be above \{\}' on line .*jit\(checkify"):
            compiled(ONE)
    xtrace.jit(lambda x: checkify.debug_check(x > 2, "small"))(ONE)
    checkify.debug_check(False, "no")


def test_python_sees_values_outside_of_jit():
    error, y = checkify.checkify(lambda x: jnp.log(x) if x < 0 else x, checkify.nan_checks)(-VECTOR[1])
    assert (_message(error), np.isnan(y)) == (["nan generated by primitive: log."], True)


def test_programs_without_checks_are_the_same():
    def function(x):
        return xtrace.jit(lambda x: xtrace.lax.cond(x[0] > 0, jnp.sin, jnp.log, x) * 2)(x)

    checked = xtrace.make_jaxpr(lambda x: checkify.checkify(function)(x)[1])(VECTOR)
    assert str(checked) == str(xtrace.make_jaxpr(function)(VECTOR))


def test_errors_are_trees():
    error, _ = checkify.checkify(OURS.above(2.0))(ONE)
    assert isinstance(error, checkify.Error)
    assert _message(xtrace.jit(lambda e: e)(error)) == _message(error)
    with pytest.raises(checkify.JaxRuntimeError, match="must be above") as caught:
        error.throw()
    assert "self.checkify.check(x > bound" in caught.value.__notes__[0] and "^^^^" in caught.value.__notes__[0]
    assert "ShapeDtypeStruct" in str(xtrace.eval_shape(checkify.checkify(OURS.above(2.0)), ONE)[0])
    assert str(error) == repr(error) == f"Error({error.get()})"
    none = checkify.init_error
    assert (none.get(), none.get_exception(), xtrace.tree.leaves(none)) == (None, None, [])
    stacked = xtrace.lax.scan(lambda c, x: (c, checkify.checkify(OURS.above(1.0))(x)[0]), 0, VECTOR)[1]
    assert [line[:18] for line in stacked.get().splitlines()] == ["at mapped index 0:", "at mapped index 1:"]

    @xtrace.jit
    def looks(x):
        return checkify.checkify(OURS.above(2.0))(x)[0].get()

    with pytest.raises(xtrace.errors.TracerBoolConversionError):
        looks(ONE)


def test_keys_and_trees_in_messages():
    error, _ = checkify.checkify(
        lambda x, key: checkify.check(x > 2, "{} {}", {"a": (x, x)}, xtrace.random.key_data(key))
    )(ONE, xtrace.random.key(3))
    assert _message(error)[0].startswith("{'a': (Array(1., dtype=float32), Array(1., dtype=float32))} [0 3]")


def test_formats_that_do_not_fit_do_not_hide_the_error():
    error, _ = checkify.checkify(lambda x: checkify.check(x > 2, "{} {} {name}", x))(ONE)
    assert error.get().startswith("{} {} {name} [with the arguments (1.0), which the format does not fit:")


def test_words_of_errors():
    for call, words in (
        (lambda: checkify.check(VECTOR > 1, "no"), "check takes a scalar pred as argument, got .*numpy.all or any"),
        (lambda: checkify.check(1, "no"), "compare a number with another"),
        (lambda: checkify.check(True, 3), "msg must be a string"),
        (lambda: checkify.check(True, "{}", 3), "need to be PyTrees of arrays, but got 3 of type .*f-string"),
        (lambda: checkify.check_error("no"), "must be an Error, the first result of a checked function; got"),
        (lambda: checkify.checkify(3), "Expected a callable value"),
        (lambda: checkify.checkify(jnp.sin, errors="nan"), "a set of categories, such as checkify.index_checks"),
        (lambda: checkify.checkify(jnp.sin, errors=checkify.ErrorCategory), "a set of categories"),
        (lambda: checkify.checkify(lambda: "a")(), "returned 'a' of type .*which is not a valid JAX type"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_an_operation_without_a_rule_is_followed_into_the_jaxpr_that_it_calls(monkeypatch):
    monkeypatch.setattr(primitive, "_primitives", {})
    call = primitive.Primitive(
        "call_of_a_test", ("first", "second"), abstract=lambda *_, first, second: first.out_avals, emit=None,
        evaluate=lambda x, *, first, second: [2 * x], multiple_results=True,
    )
    jaxpr = xtrace.make_jaxpr(lambda x: (checkify.check(x > 2, "{} is small", x), x * 2)[1])(ONE)
    error, (y,) = checkify.checkify(lambda x: call.bind(x, first=jaxpr, second=None))(ONE)
    assert _message(error) == ["1.0 is small (`check` failed)"] and y == 2
    with pytest.raises(TypeError, match="holds jaxprs that are not called on its operands"):
        checkify.checkify(lambda x: call.bind(x, first=jaxpr, second=jaxpr))(ONE)
