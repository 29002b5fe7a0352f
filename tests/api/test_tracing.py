"""make_jaxpr, eval_shape and eval_jaxpr against jax's."""

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support import programs
from tests.support.names import stable_name
from tests.support.operands import ours
from tests.support.programs import MATRIX, SCALAR, VECTOR
from xtrace import lax
from xtrace._src.api.tracing import eval_jaxpr
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.jaxprs.ir import ClosedJaxpr


def structs(module):
    """Arguments that are no arrays, of `module` jax or xtrace."""
    return module.ShapeDtypeStruct((3,), "float32")


class Duck:
    """Something with a shape and a dtype."""

    shape, dtype = (3,), np.dtype(np.float32)


# make_jaxpr


@pytest.mark.parametrize(
    "arguments",
    [
        lambda m: (VECTOR, 2.0), lambda m: (structs(m), 2), lambda m: (m.numpy.asarray(VECTOR), True),
        lambda m: (np.float64(1), 1j), lambda m: ([VECTOR, (MATRIX,)], {"b": 1, "a": SCALAR}), lambda m: (None, Duck()),
        lambda m: (VECTOR.astype(np.float64), np.arange(3)),
    ],
)
def test_inputs_are_typed_as_jax_s(arguments):
    found = xtrace.make_jaxpr(lambda x, y: (y, x))(*arguments(xtrace))
    expected = jax.make_jaxpr(lambda x, y: (y, x))(*arguments(jax))
    assert isinstance(found, ClosedJaxpr) and str(found) == str(expected)
    assert [a.weak_type for a in found.in_avals] == [a.weak_type for a in expected.in_avals]


def test_keyword_arguments_are_inputs_in_the_order_of_their_names():
    closed = xtrace.make_jaxpr(lambda x, *, b, a: (x, a, b))(VECTOR, b=SCALAR, a=MATRIX)
    assert str(closed) == str(jax.make_jaxpr(lambda x, *, b, a: (x, a, b))(VECTOR, b=SCALAR, a=MATRIX))


@pytest.mark.parametrize("static_argnums", [0, (0,), [0], -2])
def test_static_arguments_are_passed_as_they_are(static_argnums):
    seen = []

    def function(n, x):
        seen.append(n)
        return lax.mul(x, float(n))

    closed = xtrace.make_jaxpr(function, static_argnums=static_argnums)(3, VECTOR)
    assert seen == [3] and str(closed) == "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0 in (b,) }"


def test_static_arguments_around_a_traced_one():
    closed = xtrace.make_jaxpr(lambda n, x, m=1: lax.mul(x, float(n * m)), static_argnums=(0, 2))(3, VECTOR, 5)
    assert closed.eqns[0].invars[1].val == 15.0


def test_an_unhashable_static_argument():
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        xtrace.make_jaxpr(lambda n, x: x, static_argnums=0)([3], VECTOR)


def test_return_shape_gives_the_tree_of_results():
    closed, shapes = xtrace.make_jaxpr(lambda x: {"a": lax.sin(x), "b": (1.0, None)}, return_shape=True)(VECTOR)
    _, expected = jax.make_jaxpr(lambda x: {"a": jax.lax.sin(x), "b": (1.0, None)}, return_shape=True)(VECTOR)
    assert isinstance(closed, ClosedJaxpr)
    assert repr(shapes) == repr(expected)


def test_the_maker_is_named_after_the_function():
    def function(x):
        """What it does."""
        return x

    maker = xtrace.make_jaxpr(function)
    assert maker.__name__ == "make_jaxpr(function)" and maker.__wrapped__ is function
    assert maker.__qualname__ == jax.make_jaxpr(function).__qualname__ and maker.__doc__ == "What it does."


class Callable:
    def __call__(self, x):
        return lax.sin(x)

    def method(self, x):
        return lax.cos(x)


@pytest.mark.parametrize(
    "function, operation",
    [(Callable(), "sin"), (Callable().method, "cos"), (functools.partial(lambda s, x: lax.tanh(x), 1), "tanh"),
     (lax.exp, "exp"), (jnp.negative, "neg")],
)
def test_everything_that_can_be_called_can_be_traced(function, operation):
    assert xtrace.make_jaxpr(function)(VECTOR).eqns[0].primitive.name == operation


def test_a_jitted_function_is_a_call_of_it():
    closed = xtrace.make_jaxpr(xtrace.jit(lambda x: lax.sin(x)))(VECTOR)
    assert [e.primitive.name for e in closed.eqns] == ["jit"]


def test_tracing_inside_a_trace_leaves_no_equation_outside():
    inner = []
    outer = xtrace.make_jaxpr(lambda x: inner.append(xtrace.make_jaxpr(lax.sin)(x)) or x)(VECTOR)
    assert outer.eqns == [] and [e.primitive.name for e in inner[0].eqns] == ["sin"]


@pytest.mark.parametrize("wrong", ["text", 3, None, [len]])
def test_what_cannot_be_called(wrong):
    for transform in (xtrace.make_jaxpr, xtrace.eval_shape):
        with pytest.raises(TypeError, match="Expected a callable value, got"):
            transform(wrong)


@pytest.mark.parametrize("wrong", ["text", object(), np.array(["a"]), np.zeros(2, object), len], ids=stable_name)
def test_an_argument_that_is_no_array_is_named(wrong):
    def function(x, tree):
        return x

    for transformed in (xtrace.make_jaxpr(function), functools.partial(xtrace.eval_shape, function)):
        with pytest.raises(TypeError, match=r"Error interpreting argument tree\['a'\]\[1\] of function"):
            transformed(VECTOR, {"a": [VECTOR, wrong]})


def test_an_int_that_does_not_fit_is_named():
    with pytest.raises(OverflowError, match="argument y: Python int 1099511627776 too large to convert to int32"):
        xtrace.make_jaxpr(lambda x, y: x)(VECTOR, 2**40)


@pytest.mark.parametrize(
    "result, where", [("text", ""), (len, ""), ({"a": [1.0, object()]}, r" at output component \['a'\]\[1\]")]
)
def test_a_result_that_is_no_array_is_named(result, where):
    def function(x):
        return result

    with pytest.raises(
        TypeError, match=rf"function function at .*{where}, which is not a valid JAX type: return arrays"
    ):
        xtrace.make_jaxpr(function)(VECTOR)


def test_axis_env_names_axes():
    closed = xtrace.make_jaxpr(lambda x: xtrace.lax.psum(x, "i"), axis_env=[("i", 2)])(1.0)
    assert "b:f32[] = psum[axes=('i',) axis_index_groups=None] a" in str(closed)


# eval_shape


def results(m):
    def function(x, y, *, scale=1.0):
        return {"sum": m.numpy.add(x, y), "scale": scale, "pair": (m.lax.sin(x), None), "int": 3, "flag": x > 0}

    return function


@pytest.mark.parametrize("second", [2.0, 2, True, SCALAR, np.float64(2), MATRIX[:, :1]], ids=stable_name)
def test_shapes_of_results_are_jax_s(second):
    found = xtrace.eval_shape(results(xtrace), structs(xtrace), second, scale=2)
    assert repr(found) == repr(jax.eval_shape(results(jax), structs(jax), second, scale=2))


DESCRIPTIONS = {
    "alone": lambda m, x: structs(m),
    "beside an array": lambda m, x: {"a": x, "b": structs(m)},
    "weak": lambda m, x: (m.ShapeDtypeStruct((3,), "float32", weak_type=True), x),
    "of rank 0": lambda m, x: m.ShapeDtypeStruct((), "int32"),
    "of eval_shape": lambda m, x: m.eval_shape(m.numpy.sin, x),
    "of an inner jit": lambda m, x: m.jit(lambda y: structs(m))(x),
    "of a loop": lambda m, x: m.lax.scan(lambda c, _: (c, structs(m)), x, None, length=2),
    "of a branch": lambda m, x: m.lax.cond(True, lambda: structs(m), lambda: structs(m)),
    "of a checkpointed function": lambda m, x: m.checkpoint(lambda y: structs(m))(x),
    "of a mapped function": lambda m, x: m.vmap(lambda y: structs(m))(x),
    "as an operand": lambda m, x: m.lax.add(x, m.numpy.sin(structs(m))),
    "as an operand of an operator": lambda m, x: x + structs(m),
}
STEPS = {
    "eval_shape": lambda m, f: m.eval_shape(f, VECTOR),
    "jit and eval_shape": lambda m, f: (m.jit(f).eval_shape(VECTOR), m.eval_shape(m.jit(f), VECTOR)),
    "make_jaxpr": lambda m, f: (m.make_jaxpr(f, return_shape=True)(VECTOR)[1], m.make_jaxpr(f)(VECTOR).out_avals),
    "trace": lambda m, f: (m.jit(f).trace(VECTOR).out_info, m.jit(f).trace(VECTOR).jaxpr.in_avals),
    "lower": lambda m, f: m.jit(f).lower(VECTOR),
    "call": lambda m, f: m.jit(f)(VECTOR),
    "vjp": lambda m, f: m.eval_shape(lambda x: m.vjp(f, x)[0], VECTOR),
    "jvp": lambda m, f: m.eval_shape(lambda x: m.jvp(f, (x,), (x,))[0], VECTOR),
    "vmap": lambda m, f: m.eval_shape(m.vmap(f), MATRIX),
    "linearize": lambda m, f: m.eval_shape(lambda x: m.linearize(f, x)[0], VECTOR),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("described", DESCRIPTIONS)
def test_descriptions_of_arrays_are_traced_and_not_run(described, step):
    def outcome(module):
        try:
            return repr(STEPS[step](module, lambda x: DESCRIPTIONS[described](module, x)))
        except TypeError:
            return "TypeError"

    assert outcome(xtrace) == outcome(jax)


def test_programs_take_no_descriptions():
    doubled = xtrace.jit(lambda x: 2 * x)
    for _ in range(6):
        doubled(VECTOR)
    calls = [doubled, doubled.lower(VECTOR).compile(), lax.sin, jnp.sin, xtrace.vmap(lax.sin), xtrace.device_put]
    for call in calls:
        with pytest.raises(TypeError, match="has no value"):
            call(structs(xtrace))


def test_eval_shape_computes_nothing():
    huge = xtrace.ShapeDtypeStruct((1 << 40,), np.float32)
    assert xtrace.eval_shape(lambda x: lax.sin(x), huge).shape == (1 << 40,)


# eval_jaxpr


@pytest.mark.parametrize(
    "name", ["chain of 27", "shared", "nested", "many constants", "same operand twice", "no result"]
)
def test_evaluating_a_jaxpr_gives_what_the_function_gives(name):
    program, args = programs.ALIKE[name]
    function = program(lax, xtrace.jit)
    closed, shapes = xtrace.make_jaxpr(function, return_shape=True)(*args)
    found = eval_jaxpr(closed.jaxpr, closed.consts, *map(ours, args))
    expected = xtrace.tree.leaves(function(*map(ours, args)))
    assert len(found) == len(expected) == len(xtrace.tree.leaves(shapes))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_jaxpr_evaluated_while_tracing_is_recorded_again():
    closed = xtrace.make_jaxpr(lambda x: lax.add(lax.sin(x), programs.CONSTANTS[0]))(VECTOR)
    again = xtrace.make_jaxpr(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x))(VECTOR)
    assert str(again) == str(closed)


def test_literals_and_inputs_may_be_results():
    closed = xtrace.make_jaxpr(lambda x: (x, 2.5, lax.add(x, 1.0)))(VECTOR)
    found = eval_jaxpr(closed.jaxpr, closed.consts, VECTOR)
    assert found[0] is VECTOR and found[1] == 2.5
    np.testing.assert_array_equal(found[2], VECTOR + 1)


def test_a_wrong_number_of_values():
    closed = xtrace.make_jaxpr(lambda x: lax.add(x, programs.CONSTANTS[0]))(VECTOR)
    with pytest.raises(ValueError, match="takes 1 constants and 1 arguments; got 0 and 2"):
        eval_jaxpr(closed.jaxpr, [], VECTOR, VECTOR)
    with pytest.raises(
        TypeError, match=r"eval_jaxpr takes a Jaxpr and its constants; .* closed\.jaxpr, closed\.consts"
    ):
        eval_jaxpr(closed, [], VECTOR)


def test_a_leaked_tracer_cannot_be_evaluated_on():
    kept = []
    xtrace.make_jaxpr(lambda x: kept.append(x))(VECTOR)
    closed = xtrace.make_jaxpr(lax.sin)(VECTOR)
    with pytest.raises(UnexpectedTracerError):
        eval_jaxpr(closed.jaxpr, closed.consts, kept[0])


def test_mapping_over_a_jaxpr_of_20_000_equations():
    closed = xtrace.make_jaxpr(programs.chain(20_000)(lax, xtrace.jit))(VECTOR)
    again = xtrace.make_jaxpr(lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x))(VECTOR)
    assert len(again.eqns) == 20_000


def test_both_numpy_modules_agree_on_weak_types():
    for function in (lambda m: lambda x: x * 2, lambda m: lambda x: m.numpy.add(x, 1.5)):
        for value in (1, 1.0, True, SCALAR):
            found, expected = (m.eval_shape(function(m), value) for m in (xtrace, jax))
            assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)


def test_shapes_of_functions_around_jitted_ones():
    """functools.wraps copies the attributes of the jitted function; a user's object may have an eval_shape, too."""
    single = xtrace.jit(lambda x: x)

    @functools.wraps(single)
    def triple(x):
        return xtrace.numpy.stack([single(x)] * 3)

    class Model:
        def __call__(self, x):
            return xtrace.numpy.stack([x] * 2)

        def eval_shape(self, x):
            raise AssertionError("this is the user's own")

    assert xtrace.eval_shape(triple, 1.0).shape == (3,) and xtrace.eval_shape(single, 1.0).shape == ()
    assert xtrace.eval_shape(Model(), 1.0).shape == (2,)
