"""Dead-code elimination: what nothing needs goes, everything else stays in its order."""

import numpy as np
import pytest

import xtrace
from tests.support import programs
from tests.support.programs import VECTOR
from xtrace import lax
from xtrace._src.api.tracing import eval_jaxpr
from xtrace._src.core.jaxprs.check import check_jaxpr
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.jaxprs.ir import DropVar, Jaxpr
from xtrace._src.transforms.dead_code import eliminate_dead_code, name_dropped


def staged(function, *args):
    """The jaxpr as tracing makes it, its constants apart."""
    closed = xtrace.make_jaxpr(function)(*args)
    return closed.jaxpr, closed.consts


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def test_what_no_output_needs_is_dropped():
    def function(x, y):
        dead = lax.sin(x)
        lax.cos(dead)
        live = lax.exp(y)
        lax.neg(live)
        return lax.tanh(live)

    jaxpr, _ = staged(function, VECTOR, VECTOR)
    kept, read = eliminate_dead_code(jaxpr)
    assert names(kept) == ["exp", "tanh"] and read == [False, True]
    assert kept.invars == jaxpr.invars and kept.outvars == jaxpr.outvars and kept.debug_info is jaxpr.debug_info
    assert len(jaxpr.eqns) == 5
    check_jaxpr(kept)


def test_a_jaxpr_without_dead_code_is_returned_as_it_is():
    jaxpr, _ = staged(programs.chain(5)(lax, xtrace.jit), VECTOR)
    kept, read = eliminate_dead_code(jaxpr)
    assert kept is jaxpr and read == [True]


def test_inputs_returned_or_used_by_effects_are_read(new_primitive):
    prints = frozenset([Effect("prints")])
    primitive = new_primitive(
        "p", abstract=lambda x: [], emit=lambda b, x: [], effects=lambda: prints, multiple_results=True
    )

    def function(returned, printed, used_for_the_print, unused):
        primitive.bind(printed)
        primitive.bind(lax.sin(used_for_the_print))
        lax.sin(unused)
        return returned

    jaxpr, _ = staged(function, *[VECTOR] * 4)
    kept, read = eliminate_dead_code(jaxpr)
    assert names(kept) == ["p", "sin", "p"] and read == [True, True, True, False]
    assert kept.effects == prints


def test_an_equation_stays_whole_if_one_of_its_results_is_needed():
    pair = xtrace.jit(lambda x: (lax.sin(x), lax.cos(x)))
    jaxpr, _ = staged(lambda x: pair(x)[1], VECTOR)
    kept, _ = eliminate_dead_code(jaxpr)
    assert names(kept) == ["jit"] and len(kept.eqns[0].outvars) == 2


def test_constvars_stay():
    array = np.ones(3, np.float32)

    def function(x):
        lax.add(x, array)
        return x

    jaxpr, consts = staged(function, VECTOR)
    kept, read = eliminate_dead_code(jaxpr)
    assert kept.eqns == [] and kept.constvars == jaxpr.constvars and len(consts) == 1 and read == [True]


@pytest.mark.parametrize("seed", range(20))
def test_results_are_the_same_without_dead_code(seed):
    jaxpr, consts = staged(programs.random_calls(seed)(lax, xtrace.jit), VECTOR)
    kept, _ = eliminate_dead_code(jaxpr)
    again, _ = eliminate_dead_code(kept)
    assert again is kept
    # Every equation that is left is needed: its results reach an output.
    reaching = set(kept.outvars)
    for equation in reversed(kept.eqns):
        assert reaching.intersection(equation.outvars)
        reaching.update(equation.invars)
    for one, other in zip(eval_jaxpr(kept, consts, VECTOR), eval_jaxpr(jaxpr, consts, VECTOR), strict=True):
        np.testing.assert_array_equal(one, other)


def test_unread_results_become_drop_variables():
    def function(x):
        lax.sin(x)
        return xtrace.jit(lambda x: (lax.sin(x), lax.cos(x)))(x)[1]

    plain, _ = xtrace.jit(function).trace(VECTOR).jaxpr.jaxpr, None
    jaxpr = name_dropped(plain)
    assert [[type(v) is DropVar for v in e.outvars] for e in jaxpr.eqns] == [[True], [True, False]]
    assert [v.aval for e in jaxpr.eqns for v in e.outvars] == [v.aval for e in plain.eqns for v in e.outvars]
    check_jaxpr(jaxpr)


def test_an_empty_jaxpr():
    empty = Jaxpr([], [], [], [])
    assert eliminate_dead_code(empty) == (empty, []) and name_dropped(empty).eqns == []
