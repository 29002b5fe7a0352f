"""The IR's classes: what they hold, how they are changed, and the jaxprs inside equations."""

import typing

import jax
import jax.core
import ml_dtypes
import numpy as np
import pytest

import xtrace
import xtrace.core
from tests.support.programs import SCALAR, VECTOR
from xtrace import lax
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.ir import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    called_jaxpr,
    find_jaxprs,
)

F32 = ShapedArray((), "float32")
I32 = ShapedArray((), "int32")


def test_variables_are_equal_only_to_themselves():
    one, other = Var(F32), Var(F32)
    assert one != other and len({one, other, one}) == 2 and repr(one).endswith(":float32[]")
    assert isinstance(DropVar(F32), Var)


def test_an_equation_gives_its_parameters_by_name():
    equation = xtrace.make_jaxpr(lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)))(VECTOR).eqns[0]
    assert equation.primitive is lax.broadcast_in_dim
    assert equation.params == {"shape": (2, 3), "broadcast_dimensions": (1,), "sharding": None}
    assert list(equation.params) == list(equation.primitive.parameters)
    assert equation.parameters == ((2, 3), (1,), None)


def test_replace_changes_the_given_fields_of_a_copy():
    closed = xtrace.make_jaxpr(lambda x: lax.sin(x))(SCALAR)
    (equation,), jaxpr = closed.eqns, closed.jaxpr
    changed = equation.replace(primitive=lax.cos)
    assert changed.primitive is lax.cos and equation.primitive is lax.sin
    assert changed.invars is equation.invars and changed.source is equation.source
    other = jaxpr.replace(eqns=[changed])
    assert other.eqns == [changed] and jaxpr.eqns == [equation] and other.debug_info is jaxpr.debug_info
    with pytest.raises(TypeError, match="operation"):
        equation.replace(operation=lax.cos)


def test_replace_takes_the_fields_of_jax():
    (equation,) = xtrace.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(np.ones((2, 3))).eqns
    (other,) = xtrace.make_jaxpr(xtrace.named_call(lax.sin, name="wave"))(1.0).eqns
    changed = equation.replace(
        params=equation.params | {"axes": (1,)}, source_info=other.source_info, ctx=equation.ctx
    )
    assert changed.params["axes"] == (1,) and equation.params["axes"] == (0,)
    assert str(changed.source_info.name_stack) == "wave" and changed.source == other.source
    with pytest.raises(TypeError, match=r"JaxprEqn.replace: reduce_sum has the parameters \(axes.*; got \(places\)"):
        equation.replace(params={"places": (0,)})


def test_a_call_of_a_jitted_function_shows_one_entry_for_each_operand_and_result():
    closed = xtrace.make_jaxpr(xtrace.jit(lambda x, y: (lax.sin(x) * y, y, x)))(1.0, 2.0)
    (equation,) = closed.eqns
    unspecified = equation.params["in_shardings"][0]
    expected = {
        "donated_invars": (False,) * 2, "in_shardings": (unspecified,) * 2, "out_shardings": (unspecified,) * 3,
        "in_layouts": (None,) * 2, "out_layouts": (None,) * 3,
    }
    assert {name: equation.params[name] for name in expected} == expected
    # A program that adds a result, as those do that collect intermediate values, extends the rows of results.
    called = equation.params["jaxpr"].jaxpr
    sine = called.eqns[0].outvars[0]
    wider = ClosedJaxpr(called.replace(outvars=[*called.outvars, sine]), [])
    grown = equation.params | {"jaxpr": wider} | {
        name: equation.params[name] + equation.params[name][:1] for name in ("out_shardings", "out_layouts")
    }
    added = Var(sine.aval)
    changed = equation.replace(params=grown, outvars=[*equation.outvars, added])
    outer = ClosedJaxpr(closed.jaxpr.replace(eqns=[changed], outvars=[*closed.jaxpr.outvars, added]), [])
    function = xtrace.extend.core.jaxpr_as_fun(outer)
    for run in (function, xtrace.jit(function)):
        np.testing.assert_allclose(run(1.0, 2.0)[3], np.sin(np.float32(1)), rtol=1e-6)
    # Rows of defaults are not printed, and an equation that was taken apart equals its like.
    assert "out_shardings" not in str(changed)
    assert equation.replace(params=equation.params).parameters == equation.parameters


def test_a_jaxpr_keeps_lists_of_its_own():
    x = Var(F32)
    inputs, outputs = [x], [x]
    jaxpr = Jaxpr([], inputs, outputs, [])
    inputs.append(Var(F32))
    outputs.append(x)
    assert jaxpr.invars == [x] and jaxpr.outvars == [x]


def test_avals_of_inputs_and_outputs():
    x, y = Var(F32), Var(I32)
    closed = ClosedJaxpr(Jaxpr([Var(F32)], [x, y], [y, Literal(1.0, F32)], []), [SCALAR])
    for one in (closed, closed.jaxpr):
        assert one.in_avals == [F32, I32] and one.out_avals == [I32, F32]
    assert closed.eqns == [] and closed.effects == frozenset() and closed.literals is closed.consts == [SCALAR]


def test_a_jaxpr_is_closed_over_as_many_values_as_it_has_constvars():
    with pytest.raises(ValueError, match="1 constvars was closed over 2 values"):
        ClosedJaxpr(Jaxpr([Var(F32)], [], [], []), [1.0, 2.0])


def test_the_jaxprs_among_parameters():
    a, b, c = (Jaxpr([], [], [], []) for _ in range(3))
    assert find_jaxprs((1, a, "x", ClosedJaxpr(b, []), None, (c, [a], 2))) == [a, b, c, a]
    assert find_jaxprs(((1, 2), [])) == []


def test_the_jaxpr_that_an_equation_calls_is_its_only_closed_one():
    closed = xtrace.make_jaxpr(lambda x: lax.sin(x))(SCALAR)
    assert called_jaxpr(lax.sin, (1, closed, "name"), [F32]) is closed
    assert called_jaxpr(lax.sin, (1, closed.jaxpr, (closed.jaxpr,)), [F32]) is None
    for parameters in ((closed, closed), ((closed,),), (closed, (closed,))):
        with pytest.raises(TypeError, match="sin holds jaxprs that are not called on its operands"):
            called_jaxpr(lax.sin, parameters, [F32])
    with pytest.raises(TypeError, match="sin holds jaxprs that are not called on its operands"):
        called_jaxpr(lax.sin, (closed,), [VECTOR])


def test_debug_info_says_whose_jaxpr_it_is():
    calls = []
    info = DebugInfo("jit", "f", "file.py", 3, lambda: calls.append(1) or ["x", "y[0]"])
    assert str(info) == "f at file.py:3 for jit" and not calls
    assert info.argument_paths() == ["x", "y[0]"]
    assert (
        str(DebugInfo("jit", "f", None, None)) == "f for jit"
        and DebugInfo("jit", "f", None, None).argument_paths() == ()
    )


def test_tracing_records_whose_jaxpr_it_is():
    def function(x, pair):
        return x

    info = xtrace.make_jaxpr(function)(SCALAR, {"a": SCALAR, "b": [SCALAR]}).jaxpr.debug_info
    assert (info.transformation, info.function, info.file) == ("make_jaxpr", "function", __file__)
    assert info.line == function.__code__.co_firstlineno
    assert list(info.argument_paths()) == ["x", "pair['a']", "pair['b'][0]"]


def test_an_equation_is_small():
    # A program of 20,000 operations has as many equations.
    assert not hasattr(JaxprEqn([], [], lax.sin, (), frozenset(), None), "__dict__")
    assert not hasattr(Var(F32), "__dict__")


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("constant", "dtype"), [
    (3.0, np.float32), (3, np.int32), (1.5, ml_dtypes.bfloat16), (2j, np.complex64), (np.float32(2), np.float32),
])
def test_values_of_literals_have_their_dtype_for_interpreters(x64, constant, dtype):
    with xtrace.enable_x64(x64):
        jaxpr = xtrace.make_jaxpr(lambda x: x + constant)(np.ones(1, dtype)).jaxpr
        (equation,) = jaxpr.eqns
        assert equation.invars[1].val.dtype == dtype
        # As an interpreter that inverts functions binds them.
        result = xtrace.lax.sub_p.bind(np.ones(1, dtype), equation.invars[1].val)
    assert result.dtype == dtype and equation.invars[1].val == constant


def test_values_of_weak_and_boolean_literals_are_those_of_python():
    jaxpr = xtrace.make_jaxpr(lambda x: (x + 3j, x > 2, True))(1.0).jaxpr
    weak = next(v for e in jaxpr.eqns for v in e.invars if type(getattr(v, "value", None)) is complex)
    assert weak.val == 3j and type(weak.val) is complex and weak.aval.weak_type
    assert jaxpr.outvars[2].val is True


def test_an_atom_is_a_variable_or_a_literal():
    kinds = []
    for api in (xtrace, jax):
        jaxpr = api.make_jaxpr(lambda x: x + 1.0)(1.0).jaxpr
        atoms = [*jaxpr.eqns[0].invars, *jaxpr.outvars, jaxpr, 1.0]
        parts = [part.__name__ for part in typing.get_args(api.core.Atom)]
        kinds.append((typing.get_origin(api.core.Atom), parts, [isinstance(x, api.core.Atom) for x in atoms]))
    assert kinds[0] == kinds[1]


def test_debug_info_has_the_names_of_jax():
    def weigh(w, b):
        return w["a"] + b

    got, expected = [api.make_jaxpr(weigh)({"a": 1.0}, 2.0).jaxpr.debug_info for api in (xtrace, jax)]
    for name in ("func_name", "func_src_info", "arg_names"):
        assert getattr(got, name) == getattr(expected, name)
    assert got.traced_for == "make_jaxpr"
