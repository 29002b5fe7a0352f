"""The checker accepts what tracing makes and catches each way in which a jaxpr can be broken."""

import numpy as np
import pytest

import xtrace
from tests.support import programs
from tests.support.cost import calls_while
from tests.support.programs import VECTOR
from xtrace import lax
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.errors import JaxprTypeError
from xtrace._src.core.jaxprs.check import check_jaxpr
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.ops.calls.calls import NO_PLACES, jit_call

F32 = ShapedArray((), "float32")
V32 = ShapedArray((3,), "float32")
WEAK = ShapedArray((), "float32", True)
I32 = ShapedArray((), "int32")
NONE = frozenset()

PRINTS = Effect("prints")


def equation(primitive, invars, outvars, parameters=(), effects=NONE):
    return JaxprEqn(invars, outvars, primitive, parameters, effects, None)


def sin(x, y):
    return equation(lax.sin, [x], [y], (None,))


def call(jaxpr, invars, outvars):
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])
    return equation(jit_call, invars, outvars, ("f", closed, (), False, None, False, *NO_PLACES))


def assert_broken(match, constvars, invars, outvars, eqns, effects=NONE):
    jaxpr = Jaxpr(constvars, invars, outvars, eqns, effects)
    with pytest.raises(JaxprTypeError, match=match) as caught:
        check_jaxpr(jaxpr)
    return caught.value


# What tracing makes


@pytest.mark.parametrize("name", ["chain of 60", "shared", "nested", "dropped", "many constants", "no result"])
def test_traced_programs_pass(name):
    program, args = programs.ALIKE[name]
    check_jaxpr(xtrace.make_jaxpr(program(lax, xtrace.jit))(*args))


def test_every_jaxpr_is_checked_while_the_setting_is_on(new_primitive):
    answers = []
    changing = new_primitive("changing", abstract=lambda x: answers.pop(), emit=lambda b, x: x, memoised=False)
    answers[:] = [V32, F32]
    with pytest.raises(JaxprTypeError, match="changing gives"):
        xtrace.make_jaxpr(lambda x: changing.bind(x))(VECTOR)
    answers[:] = [V32, F32]
    with xtrace.enable_checks(False):
        xtrace.make_jaxpr(lambda x: changing.bind(x))(VECTOR)


# Scope


def test_a_variable_out_of_scope():
    x, y = Var(F32), Var(F32)
    error = assert_broken("sin uses Var.*, which is not in scope", [], [], [y], [sin(x, y)])
    assert error.__notes__ == ["in the equation a:f32[] = sin b"]


def test_the_users_line_is_shown():
    def function(x):
        return xtrace.lax.sin(x) * 2

    jaxpr = xtrace.make_jaxpr(function)(np.float32(1)).jaxpr
    jaxpr.eqns[0].outvars[0] = Var(ShapedArray((4,), np.dtype("float32")))
    with pytest.raises(JaxprTypeError, match="sin gives") as caught:
        check_jaxpr(jaxpr)
    (note,) = caught.value.__notes__
    assert note.startswith("in the equation a:f32[4] = sin b, at\n")
    assert f"{__file__}:{function.__code__.co_firstlineno + 1} (function)\n" in note
    assert note.endswith("return xtrace.lax.sin(x) * 2\n           ^^^^^^^^^^^^^^^^^")


def test_an_output_out_of_scope():
    assert_broken("the jaxpr's outputs uses Var.*not in scope", [], [Var(F32)], [Var(F32)], [])


def test_a_use_before_the_binding():
    x, y, z = Var(F32), Var(F32), Var(F32)
    assert_broken("sin uses.*not in scope", [], [x], [z], [sin(y, z), sin(x, y)])


def test_a_variable_bound_by_two_equations():
    x, y = Var(F32), Var(F32)
    assert_broken("bound twice, the second time by sin", [], [x], [y], [sin(x, y), sin(x, y)])


def test_a_variable_bound_twice_among_the_inputs_or_constvars():
    x = Var(F32)
    assert_broken("bound twice, the second time by the jaxpr's binders", [], [x, x], [x], [])
    assert_broken("bound twice, the second time by the jaxpr's binders", [x], [x], [x], [])


def test_an_input_bound_again_by_an_equation():
    x = Var(F32)
    assert_broken("bound twice, the second time by sin", [], [x], [x], [sin(x, x)])


def test_a_dropped_variable_cannot_be_used():
    x, dropped = Var(F32), DropVar(F32)
    assert_broken("outputs uses.*not in scope", [], [x], [dropped], [sin(x, dropped)])


def test_an_inner_jaxpr_sees_only_its_own_variables():
    x, y, inner = Var(F32), Var(F32), Var(F32)
    jaxpr = Jaxpr([], [inner], [x], [])
    error = assert_broken("outputs uses.*not in scope", [], [x], [y], [call(jaxpr, [x], [y])])
    assert len(error.__notes__) == 1 and "jit[" in error.__notes__[0]


# Types


def test_an_equation_that_binds_another_type():
    x = Var(F32)
    for wrong in (V32, I32, WEAK):
        y = Var(wrong)
        assert_broken(r"sin gives \[ShapedArray\(float32\[\]\)\], the equation binds", [], [x], [y], [sin(x, y)])


def test_an_equation_with_another_number_of_results():
    x = Var(F32)
    assert_broken("sin gives", [], [x], [], [equation(lax.sin, [x], [], (None,))])
    assert_broken("sin gives", [], [x], [], [equation(lax.sin, [x], [Var(F32), Var(F32)], (None,))])


def test_operands_that_the_primitive_does_not_accept():
    x, y, z = Var(F32), Var(I32), Var(F32)
    error = assert_broken(
        "add does not accept its operands or parameters: ", [], [x, y], [z], [equation(lax.add, [x, y], [z])]
    )
    assert isinstance(error.__cause__, TypeError) and error.__notes__ == ["in the equation a:f32[] = add b c"]
    assert_broken("add does not accept", [], [x], [z], [equation(lax.add, [x], [z])])


def test_parameters_that_the_primitive_does_not_accept():
    x, y = Var(V32), Var(ShapedArray((2, 3), "float32"))
    wrong = equation(lax.broadcast_in_dim, [x], [y], ((2, 3), (2,), None))
    assert_broken("broadcast_in_dim does not accept its operands or parameters: ", [], [x], [y], [wrong])


def test_a_wrong_number_of_parameters():
    x, y = Var(F32), Var(F32)
    jaxpr = Jaxpr([], [x], [y], [equation(lax.sin, [x], [y], ())])
    with pytest.raises(JaxprTypeError, match="sin has 1 parameters, the equation 0"):
        check_jaxpr(jaxpr)


def test_a_call_whose_jaxpr_takes_something_else():
    x, y, inner = Var(F32), Var(V32), Var(V32)
    jaxpr = Jaxpr([], [inner], [inner], [])
    assert_broken("jit does not accept.*the jaxpr takes", [], [x], [y], [call(jaxpr, [x], [y])])
    assert_broken("jit does not accept.*the jaxpr takes", [], [], [y], [call(jaxpr, [], [y])])


def test_an_inner_jaxpr_with_constvars():
    x, y, c = Var(F32), Var(F32), Var(F32)
    jaxpr = ClosedJaxpr(Jaxpr([c], [y], [c], []), [np.float32(1)])
    assert_broken("the inner jaxpr of jit has constvars", [], [x], [y := Var(F32)], [call(jaxpr, [x], [y])])


def test_a_constant_of_another_type():
    x = Var(V32)
    check_jaxpr(ClosedJaxpr(Jaxpr([x], [], [x], []), [VECTOR]))
    with pytest.raises(JaxprTypeError, match=r"the constant of Var.* has the type int32\[3\]"):
        check_jaxpr(ClosedJaxpr(Jaxpr([x], [], [x], []), [VECTOR.astype(np.int32)]))


# Literals


@pytest.mark.parametrize(
    "value, aval",
    [(1.0, F32), (1.0, WEAK), (1, I32), (True, ShapedArray((), "bool")), (1j, ShapedArray((), "complex64")),
     (np.float32(1), F32), (np.int32(1), I32), (1.0, ShapedArray((), "bfloat16"))],
)
def test_literals_of_their_type(value, aval):
    check_jaxpr(Jaxpr([], [], [Literal(value, aval)], []))


@pytest.mark.parametrize(
    "value, aval", [(1, F32), (1.0, I32), (True, I32), (np.float64(1), F32), (np.int32(1), F32), (None, F32)]
)
def test_a_literal_of_another_type(value, aval):
    assert_broken("outputs uses the literal .*, its value is of type", [], [], [Literal(value, aval)], [])


def test_a_literal_that_is_no_scalar():
    assert_broken("is not a scalar", [], [], [Literal(VECTOR, V32)], [])


# Effects


@pytest.fixture
def printing(new_primitive):
    return new_primitive("printing", abstract=lambda x: x, emit=lambda b, x: x, effects=lambda: frozenset([PRINTS]))


def test_effects_that_the_jaxpr_does_not_declare(printing):
    x, y = Var(F32), Var(F32)
    one = equation(printing, [x], [y], (), frozenset([PRINTS]))
    check_jaxpr(Jaxpr([], [x], [y], [one], frozenset([PRINTS])))
    assert_broken("equations have the effects {prints}, the jaxpr declares set()", [], [x], [y], [one])


def test_an_equation_without_the_effects_of_its_primitive(printing):
    x, y = Var(F32), Var(F32)
    assert_broken("has the effects {prints}, the equation set()", [], [x], [y], [equation(printing, [x], [y])])


def test_traced_effects_pass(printing):
    closed = xtrace.make_jaxpr(lambda x: xtrace.jit(lambda x: printing.bind(x))(x))(VECTOR)
    check_jaxpr(closed)
    assert closed.effects == frozenset([PRINTS])


# Cost


def test_a_jaxpr_used_often_is_checked_once():
    # Each level calls the one below twice: checked at each use, it would take 2**60 steps.
    x = Var(F32)
    jaxpr = Jaxpr([], [x], [x], [])
    for _ in range(60):
        closed, (x, y, z) = ClosedJaxpr(jaxpr, []), (Var(F32) for _ in range(3))
        jaxpr = Jaxpr([], [x], [z], [call(closed, [x], [y]), call(closed, [y], [z])])
    check_jaxpr(jaxpr)
    assert str(jaxpr).count("let f") == 60


def test_checking_takes_time_in_proportion_to_the_number_of_equations():
    def cost(length):
        closed = xtrace.make_jaxpr(programs.chain(length)(lax, xtrace.jit))(VECTOR)
        return calls_while(lambda: check_jaxpr(closed))

    cost(10)
    small, large = cost(500), cost(5_000)
    assert large < 10.5 * small
