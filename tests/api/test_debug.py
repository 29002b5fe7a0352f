"""debug.print and debug.log: what is printed, and what is wrong with formats, as in jax."""

import logging

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.debug
import xtrace.numpy
import xtrace.random

PAIRS = ((xtrace, xtrace.numpy), (jax, jax.numpy))

# Arguments of debug.print, given a library, its numpy, a scalar and an array.
FORMATS = {
    "plain": lambda m, np_, s, a: (("{}", s), {}),
    "several": lambda m, np_, s, a: (("{} {y} {}", s, a), {"y": s + 1}),
    "numbered": lambda m, np_, s, a: (("{1} {0} {0!r}", s, a), {}),
    "specification": lambda m, np_, s, a: (("{:.2f} {x:>8.3e}", s), {"x": s}),
    "nested specification": lambda m, np_, s, a: (("{x:{w}}",), {"x": s, "w": "10.2f"}),
    "attribute": lambda m, np_, s, a: (("{x.shape} {x.dtype} {y[w]}",), {"x": a, "y": {"w": s}}),
    "tree": lambda m, np_, s, a: (("{}", {"a": a, "b": (s, 2, None)}), {}),
    "no placeholder": lambda m, np_, s, a: (("hello",), {}),
    "other values": lambda m, np_, s, a: (("{} {} {!r} {}", "text", None, "quoted", True), {}),
    "conversion": lambda m, np_, s, a: (("{!r} {!s} {!a}", a, a, s), {}),
    "types": lambda m, np_, s, a: (
        ("{} {} {} {} {}", a > 1, a.astype("bfloat16"), a.astype("int8"), a * (1 + 2j), a[:0]), {}
    ),
    "integers": lambda m, np_, s, a: (("{:d} {:5d} {:x}", np_.int32(7), np_.uint8(3), np_.int32(255)), {}),
    "empty": lambda m, np_, s, a: (("",), {}),
    "ordered": lambda m, np_, s, a: (("{}", s), {"ordered": True}),
    "unchecked": lambda m, np_, s, a: (("{}", s, a), {"skip_format_check": True}),
}


@pytest.mark.parametrize("how", ["jit", "eager"])
def test_prints_what_jax_prints(how, capsys):
    printed = []
    for m, np_ in PAIRS:

        def program(s, a, m=m, np_=np_):
            for case in FORMATS.values():
                args, kwargs = case(m, np_, s, a)
                m.debug.print(*args, **{"ordered": True} | kwargs)

        (m.jit(program) if how == "jit" else program)(np_.float32(1.25), np_.arange(3.0))
        m.effects_barrier()
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == len(FORMATS)


def test_print_options_are_those_of_the_trace(capsys):
    x = xtrace.numpy.ones(2) / 3
    f = xtrace.jit(lambda x: xtrace.debug.print("{}", x))
    with np.printoptions(precision=3):
        f(x)
    f(x)
    assert capsys.readouterr().out == "[0.333 0.333]\n" * 2


def test_keys_and_braces(capsys):
    for call in (lambda f: f, xtrace.jit):
        call(lambda k: xtrace.debug.print("{{}} {}", k))(xtrace.random.key(3))
        xtrace.effects_barrier()
    assert capsys.readouterr().out == "{} Array((), dtype=key<fry>) overlaying:\n[0 3]\n" * 2


def test_nothing_is_printed_while_tracing(capsys):
    def f(x):
        xtrace.debug.print("{}", x, ordered=True)
        return x

    xtrace.make_jaxpr(f)(1.0), xtrace.eval_shape(f, 1.0), xtrace.jit(f).lower(1.0).compile()
    assert capsys.readouterr().out == ""
    assert xtrace.jit(f).lower(1.0).compile()(1.0) == 1
    xtrace.effects_barrier()
    assert capsys.readouterr().out == "1.0\n"


def test_functions_with_options_set(capsys):
    for m, _ in PAIRS:
        seen = []
        m.jit(lambda x, m=m: m.debug.print(ordered=True)("{}", x))(1.0)
        m.jit(lambda x, m=m, seen=seen: m.debug.callback(ordered=True)(seen.append, x))(2.0)
        m.effects_barrier()
        assert [float(x) for x in seen] == [2]
    assert capsys.readouterr().out == "1.0\n" * 2


def test_log_names_the_line(caplog):
    def f(x):
        xtrace.debug.log("value {}", x)

    with caplog.at_level(logging.INFO):
        xtrace.jit(f)(1.0)
        xtrace.effects_barrier()
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == ("xtrace.debug", "INFO", "value 1.0")
    assert (record.filename, record.lineno) == ("test_debug.py", f.__code__.co_firstlineno + 1)


WRONG = {
    "too few": (("{} {}",), {}, "refers to more positional arguments than the 1 given"),
    "missing name": (("{a}",), {}, "refers to 'a', which is not among the arguments"),
    "too many": (("{}", 2), {}, "Unused positional arguments"),
    "unused name": (("{}",), {"y": 1}, r"Unused keyword arguments to `debug.print`: \['y'\].*f-string"),
    "no placeholder": (("hello",), {}, "Unused positional arguments"),
    "single brace": (("{",), {}, "Single '{' encountered"),
    "no attribute": (("{0.nothing}",), {}, "nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_formats_are_errors_of_the_call(case):
    (fmt, *more), named, words = WRONG[case]
    errors = []
    for m, np_ in PAIRS:
        with pytest.raises(Exception) as caught:
            m.jit(lambda x, m=m: m.debug.print(fmt, x, *more, **named))(np_.float32(1))
        errors.append(caught)
    assert errors[0].type is errors[1].type
    errors[0].match(words)


@pytest.mark.parametrize(
    ("fmt", "kind", "words"),
    [
        ("{:d}", ValueError, "Unknown format code 'd'"), ("{1:.2f}", TypeError, "'.2f' is for numbers.* float32.3."),
        ("{!x}", ValueError, "conversion"), (3, TypeError, "a string; got int 3"),
    ],
)
def test_formats_that_do_not_fit_are_found_while_tracing(fmt, kind, words):
    with pytest.raises(kind, match=words):
        xtrace.make_jaxpr(lambda x: xtrace.debug.print(fmt, x, np.ones(3, np.float32)))(1.0)


def test_names_of_effects():
    assert issubclass(xtrace.debug.OrderedDebugEffect, xtrace.debug.DebugEffect)
    (effect,) = xtrace.make_jaxpr(lambda x: xtrace.debug.print("{}", x, ordered=True))(1.0).effects
    assert type(effect) is xtrace.debug.OrderedDebugEffect
