"""The current trace, and what tracers do as Python objects."""

import copy
import threading

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import ours
from tests.support.programs import MATRIX, SCALAR, VECTOR
from xtrace import lax
from xtrace._src.core.arrays import Array
from xtrace._src.core.trace import Trace, base_trace, current_trace, use_trace


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


def printed_tracers(package):
    """Return how tracers of each transformation, and of several of them, are printed."""
    x, found = package.numpy.arange(3.0), []

    def note(x):
        found.extend([repr(x), str(x), f"{x}"])
        return x * 2.0

    def add_up(x):
        return note(x).sum()

    package.jit(note)(x)
    package.jit(note)(1.0)
    package.jit(note)(x.astype("bfloat16"))
    package.jit(lambda key: note(package.random.key_data(key)) is None)(package.random.key(0))
    package.grad(add_up)(x)
    package.grad(package.grad(note))(1.0)
    package.jit(package.grad(note))(1.0)
    package.vmap(note, in_axes=1)(package.numpy.ones((2, 3)))
    package.vmap(package.grad(note))(x)
    package.jit(package.vmap(note))(x)
    package.grad(lambda x: package.vmap(note)(x).sum())(x)
    package.jvp(note, (x,), (x,))
    package.jvp(package.grad(note), (1.0,), (1.0,))
    package.linearize(note, x)
    package.lax.scan(lambda c, x: (note(c), x), 1.0, x)
    package.jit(lambda xs: found.append(f"{xs}"))([x, 1, {"a": True}])
    return found


def test_tracers_are_printed_as_jax_prints_them():
    assert printed_tracers(xtrace) == printed_tracers(jax)


def test_variables_are_printed_as_jax_prints_them():
    found = [repr(p.make_jaxpr(lambda x: x)(np.ones(3, np.float32)).jaxpr.invars[0]) for p in (xtrace, jax)]
    assert found[0].partition(":")[2] == found[1].partition(":")[2] == "float32[3]"
