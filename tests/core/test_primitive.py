"""Primitives as objects: binding, parameters, remembered result types, and what they look like to users."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import xtrace
from tests.support.programs import VECTOR
from xtrace import lax
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.primitive import all_primitives, primitive

V32 = ShapedArray((3,), "float32")


def same(x, **parameters):
    """The type of the operand."""
    return x


def emit(builder, x, **parameters):
    return x


# Binding


@pytest.mark.parametrize("parameters", [{}, {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}], ids=str)
def test_all_parameters_are_needed_and_no_other(parameters, new_primitive):
    two = new_primitive("two", ("a", "b"), abstract=same, emit=emit)
    with pytest.raises(TypeError, match=r"primitive two has the parameters \(a, b\); got \(") as caught:
        two.bind(VECTOR, **parameters)
    assert str(caught.value).endswith(f"got ({', '.join(parameters)})")


def test_a_parameter_that_is_none_may_be_one_of_another_operation():
    (equation,) = xtrace.make_jaxpr(lambda x: x * 2.0)(VECTOR).eqns
    np.testing.assert_array_equal(lax.div_p.bind(VECTOR, VECTOR, **equation.params), np.ones_like(VECTOR))
    with pytest.raises(TypeError, match="primitive div has the parameters"):
        lax.div_p.bind(VECTOR, VECTOR, out_dtype=np.float32)


def test_parameters_may_come_in_any_order(new_primitive):
    two = new_primitive("two", ("a", "b"), abstract=same, emit=emit)
    closed = xtrace.make_jaxpr(lambda x: (two.bind(x, b=2, a=1), two.bind_positional((x,), (1, 2)), two(x, a=1, b=2)))(
        VECTOR
    )
    assert [e.parameters for e in closed.eqns] == [(1, 2)] * 3


def test_a_public_operation_is_what_calling_runs(new_primitive):
    @primitive(("times",), name="doubled", abstract=same, emit=emit)
    def doubled(x, times=1):
        """Twice the operand."""
        return doubled.bind(x, times=2 * times)

    closed = xtrace.make_jaxpr(lambda x: doubled(x, times=3))(VECTOR)
    assert closed.eqns[0].params == {"times": 6}
    assert doubled.__name__ == "doubled" and doubled.__doc__ == "Twice the operand."
    assert str(inspect.signature(doubled)) == "(x, times=1)" and repr(doubled) == "doubled"


def test_binding_concrete_values_computes():
    result = lax.sin.bind(VECTOR, accuracy=None)
    np.testing.assert_allclose(result, np.sin(VECTOR), rtol=1e-6)


# Types of results


def test_the_abstract_rule_runs_once_for_each_signature(new_primitive):
    seen = []
    counted = new_primitive("counted", ("a",), abstract=lambda x, *, a: seen.append((x, a)) or x, emit=emit)
    other = ShapedArray((4,), "float32")
    for _ in range(3):
        for aval in (V32, other):
            for a in (1, "text"):
                assert counted.infer_types((aval,), (a,)) is aval
    assert seen == [(V32, 1), (V32, "text"), (other, 1), (other, "text")]


def test_unhashable_parameters_are_not_remembered(new_primitive):
    seen = []
    counted = new_primitive("counted", ("a",), abstract=lambda x, *, a: seen.append(a) or x, emit=emit)
    for _ in range(2):
        assert counted.infer_types((V32,), ([1],)) is V32
    assert seen == [[1], [1]]


def test_nothing_is_remembered_of_a_rule_that_raises(new_primitive):
    answers = [V32]

    def abstract(x):
        if not answers:
            return x
        answers.pop()
        raise ValueError("not yet")

    failing = new_primitive("failing", abstract=abstract, emit=emit)
    with pytest.raises(ValueError, match="not yet") as caught:
        failing.infer_types((V32,), ())
    assert len(caught.value.__notes__) == 1
    assert caught.value.__notes__[0].startswith(f"operation failing on (f32[3]), called at {__file__}:")
    assert failing.infer_types((V32,), ()) is V32


def test_the_memory_of_types_is_bounded(new_primitive):
    many = new_primitive("many", ("a",), abstract=same, emit=emit)
    for a in range(20_000):
        many.infer_types((V32,), (a,))
    assert len(many._types) <= 8192


# As objects


def test_primitives_are_themselves_however_copied():
    for one in all_primitives():
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one


def test_equations_with_primitives_can_be_pickled():
    closed = xtrace.make_jaxpr(lambda x: lax.add(lax.sin(x), 1.0))(VECTOR)
    kept = pickle.loads(pickle.dumps([(e.primitive, e.params) for e in closed.eqns]))
    assert kept == [(e.primitive, e.params) for e in closed.eqns]


@pytest.mark.parametrize("one", all_primitives(), ids=lambda p: p.name)
def test_every_primitive_has_distinct_parameters(one):
    assert len(set(one.parameters)) == len(one.parameters)
    assert set(one.unprinted) == set(one.parameters)
