"""The current trace, and what tracers do as Python objects."""

import copy
import threading

import numpy as np
import pytest

import xtrace
from tests.support.operands import ours
from tests.support.programs import MATRIX, SCALAR, VECTOR
from xtrace import lax
from xtrace.core.arrays import Array
from xtrace.core.trace import Trace, base_trace, current_trace, use_trace


def with_tracer(check, *args):
    """Run `check` on tracers and return what it gives."""
    found = []
    xtrace.make_jaxpr(lambda *tracers: found.append(check(*tracers)))(*args)
    return found[0]


def test_a_trace_is_current_inside_its_block_only():
    trace = Trace(base_trace)
    assert current_trace.get() is base_trace
    with pytest.raises(KeyError), use_trace(trace):
        assert current_trace.get() is trace and list(trace.enclosing()) == [trace, base_trace]
        raise KeyError
    assert current_trace.get() is base_trace


def test_a_trace_that_says_nothing_about_primitives_processes_none():
    with use_trace(Trace(base_trace)), pytest.raises(NotImplementedError):
        lax.sin(1.0)


def test_other_threads_have_the_base_trace():
    def check(x):
        found = []
        worker = threading.Thread(target=lambda: found.append((current_trace.get(), float(lax.sin(np.float32(0))))))
        worker.start()
        worker.join()
        return found[0]

    assert with_tracer(check, SCALAR) == (base_trace, 0.0)


def test_traces_enclose_each_other():
    def inner(y):
        return [type(t).__name__ for t in current_trace.get().enclosing()]

    assert with_tracer(lambda x: with_tracer(inner, x), SCALAR) == ["StagingTrace", "StagingTrace", "BaseTrace"]


def test_tracers_are_arrays_with_a_type():
    def check(x):
        assert isinstance(x, xtrace.Array) and isinstance(x, Array)
        return x.shape, x.dtype, x.ndim, x.size, x.weak_type, len(x)

    assert with_tracer(check, MATRIX) == ((3, 4), np.float32, 2, 12, False, 3)
    assert with_tracer(lambda x: x.weak_type, 1.0) is True
    assert isinstance(ours(VECTOR), xtrace.Array)


def test_a_scalar_tracer_has_no_length():
    with pytest.raises(TypeError, match=r"len\(\) of an unsized"):
        with_tracer(len, SCALAR)


def test_copies_of_a_tracer_are_the_tracer():
    assert with_tracer(lambda x: copy.copy(x) is x and copy.deepcopy([x])[0] is x, VECTOR)


def test_tracers_have_no_attributes_to_hang_things_on():
    with pytest.raises(AttributeError):
        with_tracer(lambda x: setattr(x, "note", 1), VECTOR)
    with pytest.raises(AttributeError):
        with_tracer(lambda x: x.missing, VECTOR)


def test_arrays_are_not_made_by_calling_the_class():
    with pytest.raises(TypeError, match=r"Array is an abstract type; make one with xtrace\.numpy\.array"):
        xtrace.Array([1, 2])
