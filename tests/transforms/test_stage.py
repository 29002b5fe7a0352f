"""Staging: what is recorded, what becomes a constant, what leaks, and that nothing is left behind."""

import contextvars
import gc
import sys
import threading

import jax
import numpy as np
import pytest

import xtrace
from tests.support import programs
from tests.support.cost import calls_while
from tests.support.names import stable_name
from tests.support.programs import SCALAR, VECTOR
from xtrace import lax
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.garbage_collection import collection_paused
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.trace import base_trace, current_trace


def traced(function, *args):
    return xtrace.make_jaxpr(function)(*args)


def line_of(function, offset=0):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


# What is recorded


def test_every_operation_is_recorded_also_on_constants_only():
    closed = traced(lambda: lax.add(lax.sin(1.0), lax.cos(VECTOR)))
    assert [e.primitive.name for e in closed.eqns] == ["sin", "cos", "add"]


def test_an_operation_on_a_value_of_an_enclosing_trace_is_recorded_in_the_inner_one():
    inner = []

    def function(x):
        inner.append(traced(lambda y: lax.add(lax.sin(x), y), VECTOR))
        return x

    outer = traced(function, VECTOR)
    assert outer.eqns == [] and [e.primitive.name for e in inner[0].eqns] == ["sin", "add"]


def test_effects_are_recorded(new_primitive):
    prints = Effect("prints")
    primitive = new_primitive("p", abstract=lambda x: x, emit=lambda b, x: x, effects=lambda: frozenset([prints]))
    closed = traced(lambda x: primitive.bind(lax.sin(x)), VECTOR)
    assert closed.effects == {prints} and [e.effects for e in closed.eqns] == [frozenset(), {prints}]


def test_several_results_are_recorded_in_order(new_primitive):
    primitive = new_primitive("p", abstract=lambda x: [x, x], emit=lambda b, x: [x, x], multiple_results=True)
    closed = traced(lambda x: primitive.bind(x)[::-1], VECTOR)
    assert closed.eqns[0].outvars == closed.jaxpr.outvars[::-1]


def test_what_abstract_refuses_is_not_recorded(new_primitive):
    def function(x):
        with pytest.raises(TypeError) as caught:
            lax.add(x, lax.neg(np.arange(3)))
        errors.append(caught.value)
        return lax.sin(x)

    errors = []
    assert [e.primitive.name for e in traced(function, VECTOR).eqns] == ["neg", "sin"]
    assert errors[0].__notes__ == [f"operation add on (f32[3], i32[3]), called at {line_of(function, 2)} (function)"]


@pytest.mark.parametrize("operand", [[1.0, 2.0], None, "text", {"a": 1}, object()], ids=stable_name)
def test_an_operand_that_is_no_array_is_named(operand):
    with pytest.raises(TypeError, match=r"add: argument 1: .* is not a valid JAX type: expected an array"):
        traced(lambda x: lax.add(x, operand), VECTOR)
    with pytest.raises(TypeError, match=r"add: argument 1: .* is not a valid JAX type: expected an array"):
        lax.add(VECTOR, operand)


def test_a_tracer_shows_its_type():
    seen = []

    def inner(y):
        seen.append(repr(y))
        return y

    def function(x):
        seen.extend([repr(x), str(x), f"{x}"])
        with pytest.raises(TypeError, match="the format '>70' needs a value, and the traced array JitTracer"):
            format(x, ">70")
        return xtrace.jit(inner)(x)

    traced(function, 1.0)
    shown = "JitTracer(~float32[])"
    assert seen == [shown] * 4


# Constants


def test_a_constant_is_one_variable_however_often_it_is_used():
    array, other = np.arange(3.0, dtype=np.float32), np.arange(3.0, dtype=np.float32)
    closed = traced(lambda x: (lax.add(x, array), lax.mul(array, lax.add(x, other)), array), VECTOR)
    assert len(closed.consts) == 2 and len(closed.jaxpr.constvars) == 2
    assert closed.jaxpr.outvars[2] is closed.jaxpr.constvars[0]
    np.testing.assert_array_equal(closed.consts[0], array)


def test_a_device_array_is_kept_as_it_is():
    array = xtrace.device_put(VECTOR)
    closed = traced(lambda x: lax.add(x, array), VECTOR)
    assert closed.consts[0] is array


def test_temporaries_do_not_share_a_variable_by_their_id():
    closed = traced(lambda x: [lax.add(x, np.full(3, i, np.float32)) for i in range(100)], VECTOR)
    assert [int(c[0]) for c in closed.consts] == list(range(100))


@pytest.mark.parametrize("size", [3, 1000], ids=["text", "hidden argument"])
def test_writing_to_a_numpy_array_after_tracing_changes_nothing(size):
    array, x = np.zeros(size, np.float32), np.ones(size, np.float32)
    inner = xtrace.jit(lambda x: lax.add(x, array))
    closed, compiled = traced(lambda x: inner(x), x), xtrace.jit(lambda x: lax.mul(inner(x), array))
    lowered = xtrace.lower(compiled, x)
    compiled(x), inner(x)
    array[:] = 7
    assert not closed.consts[0].any()
    np.testing.assert_array_equal(compiled(x), np.zeros(size))
    np.testing.assert_array_equal(lowered.compile()(x), np.zeros(size))
    np.testing.assert_array_equal(inner(x), x)


def test_writing_to_a_numpy_array_while_tracing_is_seen_by_later_operations():
    def function(x):
        array = np.zeros(3, np.float32)
        y = lax.add(x, array)
        array += 1
        z = lax.add(y, array)
        return lax.add(z, array)

    np.testing.assert_array_equal(xtrace.jit(function)(VECTOR), function(VECTOR))
    assert len(traced(function, VECTOR).consts) == 2


def test_numpy_constants_take_the_dtype_of_the_settings():
    values = np.array([1e300, 0.1, np.nan])
    closed = traced(lambda: values)
    assert closed.consts[0].dtype == np.float32
    np.testing.assert_array_equal(closed.consts[0], np.array([np.inf, 0.1, np.nan], np.float32))
    assert traced(lambda: np.float64(1e300)).jaxpr.outvars[0].val == np.inf
    with xtrace.enable_x64(True):
        np.testing.assert_array_equal(traced(lambda: values).consts[0], values)


@pytest.mark.parametrize(
    "value, expected, weak",
    [
        (2.5, 2.5, True), (3, 3, True), (True, True, False), (1j, 1j, True), (np.float32(0.1), np.float32(0.1), False),
        (np.array(3, np.int8), np.int8(3), False), (np.float64(0.5), np.float32(0.5), False),
    ],
)
def test_scalars_become_literals(value, expected, weak):
    closed = traced(lambda: value)
    (literal,) = closed.jaxpr.outvars
    assert isinstance(literal, Literal) and closed.consts == []
    assert literal.value == expected and type(literal.value) is type(expected) and literal.aval.weak_type is weak


def test_rank_0_arrays_become_constants_like_others():
    """A jaxpr then has the same constants whether these are concrete, or tracers, as in the body of a loop."""
    def number_of_constants(library):
        scalar, array = library.numpy.float32(2.5), library.numpy.zeros(1)

        def count(x, y):
            return len(library.make_jaxpr(library.linearize(lambda t: (t * x * x).sum() + y, array)[1])(array).consts)

        counts = [count(scalar, array), count(scalar, scalar), count(np.float32(2), np.zeros(()))]
        library.jit(lambda x, y: counts.append(count(x, y)))(scalar, array)
        return counts, [type(x) for x in library.make_jaxpr(lambda: scalar)().consts] == [type(scalar)]

    assert number_of_constants(xtrace) == number_of_constants(jax)
    array = xtrace.device_put(np.float32(2.5))
    closed = traced(lambda x: lax.add(x, array), SCALAR)
    assert closed.consts == [array] and closed.eqns[0].invars[1] is closed.jaxpr.constvars[0]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 10**30])
def test_an_int_that_does_not_fit_is_an_error(value):
    for function in (lambda: value, lambda: lax.add(np.int32(1), value)):
        with pytest.raises(OverflowError, match=rf"Python int {value} too large to convert to int32; set xtrace"):
            xtrace.jit(function)()
    assert traced(lambda: (2**31 - 1, -(2**31))).jaxpr.outvars[0].val == 2**31 - 1
    with xtrace.enable_x64(True):
        assert abs(value) > 2**63 or traced(lambda: value).jaxpr.outvars[0].val == value


def test_a_deleted_array_cannot_be_compiled():
    array = xtrace.device_put(np.float32(1))
    array.delete()
    assert traced(lambda: array).consts == [array]
    with pytest.raises(RuntimeError, match="deleted"):
        xtrace.jit(lambda: array)()


# Closures over enclosing traces


def test_a_jitted_function_may_close_over_a_tracer():
    def function(x, y):
        z = lax.mul(x, y)
        return xtrace.jit(lambda w: lax.add(lax.add(w, z), z))(x)

    closed = traced(function, VECTOR, VECTOR)
    call = closed.eqns[1]
    assert call.invars == [closed.eqns[0].outvars[0], closed.jaxpr.invars[0]]
    assert call.params["jaxpr"].jaxpr.constvars == []
    np.testing.assert_array_equal(xtrace.jit(function)(VECTOR, 2 * VECTOR), 5 * VECTOR)


def test_the_same_jitted_function_may_close_over_tracers_of_different_traces():
    closed_over = []
    inner = xtrace.jit(lambda w: lax.add(w, closed_over[-1]))

    def function(x):
        closed_over.append(lax.sin(x))
        return inner(x)

    for _ in range(2):
        np.testing.assert_allclose(xtrace.jit(lambda x: function(x))(VECTOR), VECTOR + np.sin(VECTOR), rtol=1e-6)


def test_a_closure_over_a_tracer_two_traces_up():
    def function(x):
        return xtrace.jit(lambda y: xtrace.jit(lambda z: lax.add(lax.add(x, y), z))(y))(lax.neg(x))

    np.testing.assert_array_equal(xtrace.jit(function)(VECTOR), -VECTOR)


# Leaks


def leak(value=VECTOR):
    """A tracer whose trace has ended, the function that let it go and the line where it was made."""
    kept = []

    def leaking(x):
        kept.append(lax.sin(x))
        return x

    traced(leaking, value)
    return kept[0], leaking, line_of(leaking, 1)


USES = {
    "eager operation": lambda t: lax.cos(t),
    "second operand": lambda t: lax.add(VECTOR, t),
    "operator": lambda t: t + 1,
    "reflected operator": lambda t: 1 - t,
    "another trace": lambda t: traced(lambda x: lax.add(x, t), VECTOR),
    "result of another trace": lambda t: traced(lambda x: t, VECTOR),
    "constant of a jitted function": lambda t: xtrace.jit(lambda x: lax.add(x, t))(VECTOR),
    "argument of a jitted function": lambda t: xtrace.jit(lambda x: x)(t),
    "argument of a jitted function inside another": lambda t: xtrace.jit(lambda: xtrace.jit(lambda x: x)(t))(),
    "in a tree": lambda t: xtrace.jit(lambda x: x)({"a": [t]}),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_leaked_tracer_is_found_where_it_is_used(use):
    tracer, leaking, line = leak()
    with pytest.raises(UnexpectedTracerError) as caught:
        use(tracer)
    text = str(caught.value)
    assert "f32[3]" in text and f"made on line {line} (leaking)" in text
    assert f"the trace of the function leaking at {line_of(leaking)} for make_jaxpr had ended" in text
    assert current_trace.get() is base_trace


def test_a_leaked_argument_is_found_too():
    kept = []

    def leaking(x):
        kept.append(x)

    traced(leaking, VECTOR)
    with pytest.raises(UnexpectedTracerError, match=r"the function leaking at .* for make_jaxpr had ended"):
        lax.sin(kept[0])


def test_a_tracer_cannot_go_to_a_thread_that_does_not_trace():
    found = []

    def function(x):
        def work():
            try:
                lax.sin(x)
            except Exception as error:
                found.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        return x

    traced(function, VECTOR)
    assert isinstance(found[0], UnexpectedTracerError)


def test_a_tracer_of_another_thread_s_trace_is_unexpected():
    handed, used = [], threading.Event()
    ready = threading.Event()

    def hands_over(x):
        handed.append(lax.sin(x))
        ready.set()
        assert used.wait(30)
        return x

    worker = threading.Thread(target=lambda: traced(hands_over, VECTOR))
    worker.start()
    assert ready.wait(30)
    try:
        with pytest.raises(UnexpectedTracerError, match="hands_over"):
            traced(lambda x: lax.add(x, handed[0]), VECTOR)
    finally:
        used.set()
        worker.join()


def test_the_leak_check_finds_the_leak_where_it_happens():
    kept = []

    def leaking(x):
        kept.append(lax.sin(x))
        return x

    with xtrace.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        xtrace.jit(leaking)(VECTOR)
    text = str(caught.value)
    assert f"made on line {line_of(leaking, 1)} (leaking)" in text and f"leaking at {line_of(leaking)} for jit" in text


def test_the_leak_check_finds_leaks_of_inner_functions():
    kept = []

    @xtrace.jit
    def inner(y):
        kept.append(y)
        return y

    with xtrace.checking_leaks(), pytest.raises(UnexpectedTracerError, match=r"inner at .* for jit"):
        traced(lambda x: inner(lax.sin(x)), VECTOR)


def test_the_leak_check_passes_what_does_not_leak():
    def function(x):
        # A cycle that only the collector frees is no leak.
        cycle = [lax.sin(x)]
        cycle.append(cycle)
        return xtrace.jit(lambda y: lax.add(y, cycle[0]))(x)

    with xtrace.checking_leaks():
        traced(function, VECTOR)
        xtrace.jit(function)(VECTOR)


# Nothing is left behind


@pytest.mark.parametrize("error", [ValueError("stop"), KeyboardInterrupt(), SystemExit(1)], ids=stable_name)
@pytest.mark.parametrize("collecting", [True, False])
def test_an_exception_restores_trace_and_collector(error, collecting):
    def raises(x):
        lax.sin(x)
        raise error

    def function(x):
        return xtrace.jit(raises)(x)

    was = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        for transformed in (
            xtrace.make_jaxpr(function),
            xtrace.jit(function),
            lambda x: xtrace.eval_shape(function, x),
        ):
            with pytest.raises(type(error)) as caught:
                transformed(VECTOR)
            assert caught.value is error
            assert current_trace.get() is base_trace and gc.isenabled() is collecting
    finally:
        (gc.enable if was else gc.disable)()


def test_an_exception_caught_inside_restores_the_enclosing_trace():
    def raises(x):
        lax.cos(x)
        raise ValueError

    def function(x):
        mine = current_trace.get()
        with pytest.raises(ValueError):
            xtrace.jit(raises)(x)
        assert current_trace.get() is mine
        return lax.sin(x)

    assert [e.primitive.name for e in traced(function, VECTOR).eqns] == ["sin"]


def test_a_failed_trace_is_tried_again():
    attempts = []

    @xtrace.jit
    def function(x):
        attempts.append(1)
        if len(attempts) == 1:
            raise KeyboardInterrupt
        return lax.sin(x)

    with pytest.raises(KeyboardInterrupt):
        function(VECTOR)
    function(VECTOR), function(VECTOR)
    assert len(attempts) == 2


def test_the_collector_is_off_while_tracing_and_on_afterwards():
    seen = []
    traced(lambda x: seen.append(gc.isenabled()) or x, VECTOR)
    assert seen == [False] and gc.isenabled()


def test_pauses_of_the_collector_nest_and_count_across_threads():
    inside, leave = threading.Event(), threading.Event()

    def work():
        with collection_paused():
            inside.set()
            assert leave.wait(30)

    worker = threading.Thread(target=work)
    with collection_paused():
        worker.start()
        assert inside.wait(30)
    assert not gc.isenabled()
    leave.set()
    worker.join()
    assert gc.isenabled()


def test_nothing_can_be_recorded_in_a_trace_that_ended():
    contexts = []
    traced(lambda x: contexts.append(contextvars.copy_context()) or x, VECTOR)
    with pytest.raises(RuntimeError, match=r"the trace of <lambda> at .* has ended"):
        contexts[0].run(lambda: lax.sin(1.0))


def test_threads_trace_at_once():
    threads, rounds = 6, 20
    found = [[] for _ in range(threads)]
    start = threading.Barrier(threads)
    shared = xtrace.jit(lambda x: lax.sin(lax.cos(x)))

    def work(mine):
        length = 5 * (mine + 1)
        start.wait()
        for i in range(rounds):
            x = np.ones(mine + i + 1, np.float32)
            found[mine].append(traced(lambda x: shared(programs.chain(length)(lax, xtrace.jit)(x)), x))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    for mine, closeds in enumerate(found):
        assert len(closeds) == rounds
        for i, closed in enumerate(closeds):
            assert len(closed.eqns) == 5 * (mine + 1) + 1 and closed.in_avals[0].shape == (mine + i + 1,)
            assert closed.consts == [] and closed.eqns[-1].primitive.name == "jit"
    assert gc.isenabled()


def test_a_generator_may_be_advanced_by_different_traces():
    def parts(x):
        yield lax.sin(x)
        yield lax.cos(x)

    def function(x):
        generator = parts(x)
        first = next(generator)
        return xtrace.jit(lambda y: lax.add(next(generator), y))(first)

    closed = traced(function, VECTOR)
    assert [e.primitive.name for e in closed.eqns] == ["sin", "jit"]


# Cost


def test_tracing_takes_time_in_proportion_to_the_number_of_operations():
    def cost(length):
        program = programs.chain(length)(lax, xtrace.jit)
        return calls_while(lambda: traced(program, VECTOR))

    with xtrace.enable_checks(False):
        cost(10)
        small, large = cost(1_000), cost(10_000)
    assert large < 10.5 * small
    assert large / 10_000 < 25


def test_a_trace_of_20_000_operations_is_whole():
    closed = traced(programs.chain(20_000)(lax, xtrace.jit), VECTOR)
    assert len(closed.eqns) == 20_000
    assert all(a.outvars == b.invars for a, b in zip(closed.eqns, closed.eqns[1:], strict=False))
