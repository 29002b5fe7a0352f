"""ufuncs and their methods, compared with jax."""

import operator
import pickle

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same, ours, random_values, seeds, theirs

UFUNCS = [
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract",
]
OF_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
BINARY = [name for name in UFUNCS if name != "negative"]
IDENTITIES = [name for name in BINARY if getattr(jnp, name).identity is not None]


def test_the_same_functions_are_ufuncs_as_in_jax():
    found = [name for name in dir(jnp) if isinstance(getattr(jnp, name), jnp.ufunc)]
    assert found == [name for name in dir(jax.numpy) if isinstance(getattr(jax.numpy, name), jax.numpy.ufunc)] == UFUNCS
    for name in UFUNCS:
        one, other = getattr(jnp, name), getattr(jax.numpy, name)
        for attribute in ("__name__", "nin", "nout", "nargs", "identity"):
            assert getattr(one, attribute) == getattr(other, attribute)
    assert not isinstance(jnp.sin, jnp.ufunc) and not isinstance(3, jnp.ufunc)


def operand(name):
    return "i" if name in OF_BITS else "x"


# jax keeps the operand's type in reduceat of the logical ones; NumPy gives booleans, as reduce does.
CALLS = [
    text.replace("NAME", name).replace("OF", operand(name))
    for name in BINARY
    for text in (
        "jnp.NAME.reduce(OF)",
        "jnp.NAME.reduce(OF, axis=None, keepdims=True)",
        "jnp.NAME.accumulate(OF, axis=1)",
        "jnp.NAME.at(OF, np.array([0, 0]), OF[2, 0], inplace=False)",
        "jnp.NAME.reduceat(OF, np.array([0, 2, 1, 3, 2]), axis=1)",
    )
    if not (name.startswith("logical") and "reduceat" in text)
]
CALLS += [f"jnp.{name}.reduce({operand(name)}, 1, where=b)" for name in IDENTITIES]
MORE = [
    "jnp.add.reduce(x, axis=(0, 1))", "jnp.logaddexp.reduce(i, axis=(0, 1))", "jnp.bitwise_or.reduce(i, axis=(0, 1))",
    "jnp.add.reduce(i)", "jnp.add.reduce(x, dtype=int)", "jnp.subtract.reduce(i, dtype='float32')",
    "jnp.bitwise_or.reduce(i, dtype='int32')", "jnp.add.reduce(x[:0])", "jnp.logical_or.reduce(x[:0])",
    "jnp.logaddexp.reduce(x, initial=np.float32(3))", "jnp.logaddexp2.reduce(x, where=b, initial=np.float32(3))",
    "jnp.maximum.reduce(x, where=b, initial=1)", "jnp.subtract.reduce(x, where=b, initial=1)",
    "jnp.bitwise_and.reduce(i, initial=2)", "jnp.logical_xor.reduce(x, where=b, keepdims=True)",
    "jnp.logical_and.reduce(x, initial=0)", "jnp.multiply.outer(x, i[0])", "jnp.logaddexp.outer(2, 3)",
    "jnp.logaddexp.reduce(-np.inf * jnp.ones(3))", "jnp.add.accumulate(b)",
    "jnp.subtract.accumulate(i, dtype='float32')", "jnp.subtract.accumulate(x[:0])", "jnp.maximum.accumulate(x[:0])",
    "jnp.negative.at(x, 0, inplace=False)", "jnp.negative.at(x, (0, np.array([1, 1])), inplace=False)",
    "jnp.maximum.at(i, 0, 2.5, inplace=False)", "jnp.bitwise_or.at(i, np.array([0, 0]), 8, inplace=False)",
    "jnp.add.at(b, np.array([0, 0]), -2.0, inplace=False)", "jnp.multiply.at(b, 1, b[0], inplace=False)",
    "jnp.add.at(v, np.array([0, 0]), [1, 2], inplace=False)",
    "jnp.subtract.at(v, np.array([0, 1]), (1.5, s), inplace=False)",
    "jnp.logaddexp.at(x, np.array([0, 9]), 2.0, inplace=False)",
    "jnp.add.reduceat(x, np.array([0, 2, 9, 1]), axis=1)", "jnp.add.reduceat(x, np.zeros(0, int))",
    "jnp.maximum.reduceat(i, np.array([0, 1]))", "jnp.bitwise_and.reduce(u, where=u > 1)",
    "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)(x, 1)", "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).reduce(x)",
    "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).accumulate(x, axis=1)",
    "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).outer(x, v)",
    "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).reduceat(x, np.array([0, 2, 1]))",
    "jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1).at(x, np.array([0, 0, -1, 7]), 2, inplace=False)",
    "jnp.frompyfunc(lambda x, y: x + 0.5 * y, 2, 1).at(i, 0, 3, inplace=False)",
    "jnp.frompyfunc(lambda x, y: x + 0.5 * y, 2, 1).reduce(i)",
    "jnp.frompyfunc(lambda x, y: x + 0.5 * y, 2, 1).reduce(i, initial=2.5)",
    "jnp.frompyfunc(lambda x, y: x < y, 2, 1).accumulate(x)", "jnp.frompyfunc(lambda x: (x, 2 * x), 1, 2)(x)",
    "jnp.frompyfunc(lambda x, y, z: x + y * z, 3, 1)(x, 2, v)",
    "jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0).reduce(x[:0])",
    "jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1, identity=2).reduce(x)",
    "jnp.frompyfunc(lambda x, y: x, 2, 1).__name__", "jnp.ufunc(lambda x: x, 1, 1, nargs=3, name='f').nargs",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("texts", [CALLS[i : i + 40] for i in range(0, len(CALLS), 40)] + [MORE])
@pytest.mark.slow
def test_jitted_values_are_those_of_jax(texts):
    check_jitted(texts, rounding=32)


@pytest.mark.parametrize("text", MORE[::3])
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, rounding=32, among=MORE)


ERRORS = [
    ("jnp.negative.reduce(x)", ValueError, "negative.reduce: reduce only supported for binary ufuncs"),
    ("jnp.frompyfunc(lambda x, y: (x, y), 2, 2).accumulate(x)", ValueError, "returning a single value"),
    ("jnp.negative.outer(x, x)", ValueError, "negative.outer"),
    ("jnp.subtract.reduce(x[:0])", ValueError, "zero-size array to reduction operation subtract"),
    ("jnp.maximum.reduce(x[:0])", ValueError, "zero-size array to reduction operation max"),
    ("jnp.maximum.reduce(x, where=x > 1)", ValueError, "'maximum' does not have an identity"),
    ("jnp.subtract.reduce(x, axis=(0, 1))", NotImplementedError, "subtract.reduce: a tuple of axes"),
    ("jnp.subtract.reduce(x, axis=5)", ValueError, "axis 5 is out of bounds for array of dimension 2"),
    ("jnp.subtract.accumulate(x, axis=None)", ValueError, "multiple axes"),
    ("jnp.maximum.accumulate(x, axis=None)", ValueError, "multiple axes"),
    ("jnp.add.reduce(x, out=x)", NotImplementedError, "add.reduce"),
    ("jnp.add.reduce([1, 2])", TypeError, "argument 0"),
    ("jnp.add.at(x, 0, 1)", NotImplementedError, "add.at cannot operate inplace"),
    ("jnp.add.at(x, 0, inplace=False)", TypeError, "takes 1 operand"),
    ("jnp.negative.at(x, 0, 1, inplace=False)", TypeError, "takes 0 operand"),
    ("jnp.add.reduceat(x, jnp.ones(2))", ValueError, "integer type, got float32"),
    ("jnp.add.reduceat(x, jnp.ones((2, 2), int))", ValueError, r"one-dimensional, got shape \(2, 2\)"),
    ("jnp.add.reduceat(x, jnp.ones(2, int), axis=None)", ValueError, "single integer axis"),
    ("jnp.add(x, x, out=x)", NotImplementedError, "'out' argument to xtrace.numpy.add"),
    ("jnp.negative(x, where=x)", NotImplementedError, "'where' argument to xtrace.numpy.negative"),
    ("jnp.add(x)", TypeError, r"add\(\) missing 1 required positional argument"),
    ("jnp.add(x, x, x)", TypeError, r"add\(\) takes 2 positional arguments but 3"),
    ("jnp.frompyfunc(3, 1, 1)", TypeError, "must be a function"),
    ("jnp.frompyfunc(abs, 'a', 1)", TypeError, "nin must be an integer"),
    ("jnp.frompyfunc(abs, 1, 1)(x, out=x)", NotImplementedError, "abs"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 4))})


def test_ufuncs_of_one_function_are_equal():
    assert jnp.frompyfunc(abs, 1, 1) == jnp.frompyfunc(abs, 1, 1) != jnp.frompyfunc(abs, 2, 1)
    assert len({jnp.frompyfunc(abs, 1, 1), jnp.frompyfunc(abs, 1, 1)}) == 1
    assert repr(jnp.frompyfunc(abs, 1, 1)) == "<xtrace.numpy.ufunc 'abs'>"


@pytest.mark.parametrize("name", ["add", "logaddexp", "maximum", "subtract"])
def test_gradients_of_reductions_are_those_of_jax(name):
    x = random_values(np.float32, (3, 4), 5, -2, 2)
    got = xtrace.grad(lambda x: (getattr(jnp, name).reduce(x) ** 2).sum())(ours(x))
    expected = jax.grad(lambda x: (getattr(jax.numpy, name).reduce(x) ** 2).sum())(theirs(x))
    assert_same(got, expected, 32)
    batched = xtrace.vmap(getattr(jnp, name).reduce)(ours(np.stack([x, 2 * x])))
    assert_same(batched, jax.vmap(getattr(jax.numpy, name).reduce)(theirs(np.stack([x, 2 * x]))), 32)


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(0, 1), seeds)
@settings(max_examples=6)
def test_reduceat_at_any_indices(indices, axis, seed):
    values = random_values(np.int32, (4, 4), seed, -9, 9)
    places = np.array(indices, int)
    got = jnp.subtract.reduceat(ours(values), places, axis=axis)
    assert_same(got, jax.numpy.subtract.reduceat(theirs(values), places, axis=axis))


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
@pytest.mark.parametrize("ufunc", [*UFUNCS, "made of a function"])
def test_the_numbers_of_a_ufunc_cannot_be_assigned(name, ufunc):
    for numpy in (jnp, jax.numpy):
        made = getattr(numpy, ufunc, None) or numpy.frompyfunc(lambda a, b: a + b, 2, 1, identity=0)
        before = getattr(made, name)
        with pytest.raises(AttributeError, match=f"property '{name}' of 'ufunc' object has no setter"):
            setattr(made, name, 3)
        assert getattr(made, name) == before


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_are_pickled(name):
    assert pickle.loads(pickle.dumps(getattr(jnp, name))) is getattr(jnp, name)
    made = jnp.ufunc(operator.add, 2, 1, name=name, identity=0)
    assert pickle.loads(pickle.dumps(made)) == made
