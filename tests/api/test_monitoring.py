"""`xtrace.monitoring`: listeners of events, and the events that compiling a function makes."""

import inspect

import jax
import numpy as np
import pytest

import xtrace
from xtrace import monitoring

KINDS = {
    "event": ("record_event", "register_event_listener", "unregister_event_listener", ()),
    "duration": (
        "record_event_duration_secs", "register_event_duration_secs_listener", "unregister_event_duration_listener",
        (2.5,),
    ),
    "time span": (
        "record_event_time_span", "register_event_time_span_listener", "unregister_event_time_span_listener",
        (1.0, 2.0),
    ),
    "scalar": ("record_scalar", "register_scalar_listener", "unregister_scalar_listener", (3,)),
}


@pytest.fixture(autouse=True)
def no_listeners_left():
    yield
    monitoring.clear_event_listeners()


@pytest.mark.parametrize("kind", KINDS)
def test_listeners_hear_their_kind_of_event_while_they_are_registered(kind):
    record, register, unregister, values = KINDS[kind]
    heard, other = [], []
    listener = lambda *args, **kwargs: heard.append((args, kwargs))  # noqa: E731
    getattr(monitoring, register)(listener)
    for name, (_, register_other, _, _) in KINDS.items():
        if name != kind:
            getattr(monitoring, register_other)(lambda *args, **kwargs: other.append(args))
    getattr(monitoring, record)("mine", *values, reason="test")
    assert heard == [(("mine", *values), {"reason": "test"})] and other == []
    getattr(monitoring, unregister)(listener)
    getattr(monitoring, record)("mine", *values)
    assert len(heard) == 1
    with pytest.raises(ValueError, match="not registered as a listener"):
        getattr(monitoring, unregister)(listener)
    with pytest.raises(TypeError, match="a listener is a function; got 3"):
        getattr(monitoring, register)(3)


def test_compiling_is_heard_as_in_jax():
    def steps(library):
        heard = []
        library.monitoring.register_event_duration_secs_listener(
            lambda event, seconds, **kwargs: heard.append((event, seconds > 0, kwargs))
        )
        library.jit(library.numpy.negative)(np.ones(3, np.float32))
        library.monitoring.clear_event_listeners()
        return heard

    mine, theirs = steps(xtrace), steps(jax)
    assert mine == theirs and len(mine) == 3


def test_time_spans_are_those_of_the_clock():
    spans = []
    monitoring.register_event_time_span_listener(lambda event, start, end, **_: spans.append((start, end)))
    xtrace.jit(lambda x: x + 1)(1.0)
    assert spans == sorted(spans) and all(start <= end for start, end in spans) and len(spans) == 3
    xtrace.make_jaxpr(lambda x: x)(1.0)
    assert len(spans) == 4


def test_parameters_are_those_of_jax():
    for name in monitoring.__all__:
        mine, theirs = (inspect.signature(getattr(m.monitoring, name)).parameters for m in (xtrace, jax))
        assert list(mine) == list(theirs)
