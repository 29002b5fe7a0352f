"""debug.breakpoint: commands are read while a compiled function runs, and see the values it has then."""

import contextlib
import io

import numpy as np
import pytest

import xtrace
import xtrace.debug
import xtrace.errors
import xtrace.numpy as jnp

CONSTANT = 7


def _inner(y, commands, out, name="text", **options):
    z = {"twice": y * 2, "known": 3}
    xtrace.debug.breakpoint(stdin=io.StringIO(commands), stdout=out, **options)
    return z["twice"]


def session(*commands, run=lambda f: xtrace.jit(f)(1.0), **options):
    """Return what each command shows, when `run` runs a function that stops."""
    out = io.StringIO()

    def function(x):
        outer = x + 1
        return _inner(outer, "\n".join([*commands, "c"] * 3), out, **options)

    run(function)
    xtrace.effects_barrier()
    greeting, *shown = out.getvalue().split("(xdb) ")
    assert greeting == "Entering xdb; help lists the commands:\n"
    return [x.removesuffix("\n") for x in shown[: len(commands)]]


def test_values_and_frames():
    listed, up, outer, twice, top, constant, down, trace = session(
        "l", "u", "p outer", "outer * 2 + x", "p z", "p CONSTANT", "d", "bt"
    )
    assert "(_inner" not in listed and listed.splitlines()[0].endswith(" _inner")
    assert any(line.startswith("-> ") and "xtrace.debug.breakpoint(" in line for line in listed.splitlines())
    assert up.splitlines()[0].endswith(" function")
    assert (outer, twice, constant) == ("Array(2., dtype=float32)", "Array(5., dtype=float32)", "7")
    assert top == "*** NameError: name 'z' is not defined"
    assert down == listed
    assert trace.startswith("Traceback:") and ", in session" in trace and "->File" in trace


def test_other_values_are_themselves():
    tree, name, shown, wrong, nothing = session("pp z", "p name", "locals", "p y +", "d")
    assert tree == "{'known': 3, 'twice': Array(4., dtype=float32)}"
    assert name == "'text'"
    assert "y = Array(2., dtype=float32)" in shown.splitlines()
    assert wrong == "*** SyntaxError: invalid syntax"
    assert nothing == "At bottommost frame."


@pytest.mark.parametrize(
    ("run", "values"),
    [
        (lambda f: f(1.0), ["2.0"]), (lambda f: xtrace.vmap(f)(np.arange(2.0)), ["1.0", "2.0"]),
        (lambda f: xtrace.jit(xtrace.grad(f))(2.0), ["3.0"]),
        (lambda f: xtrace.lax.map(lambda x: f(x), jnp.arange(2.0)), ["1.0", "2.0"]),
    ],
)
def test_under_transformations(run, values):
    out = io.StringIO()

    def function(x):
        y = x + 1
        xtrace.debug.breakpoint(stdin=io.StringIO("p float(y)\nc\n" * 3), stdout=out)
        return y

    run(function)
    xtrace.effects_barrier()
    assert [part.split("\n")[0] for part in out.getvalue().split("(xdb) ")[1::2]] == values


def test_numbers_of_frames_and_tokens():
    assert session("u", num_frames=1) == ["At topmost frame."]
    assert session("p y", ordered=True) == ["Array(2., dtype=float32)"]

    def with_token(x):
        return xtrace.debug.breakpoint(token=x, stdin=io.StringIO("c\n"), stdout=io.StringIO())

    assert xtrace.jit(with_token)(3.0) == 3
    assert xtrace.grad(lambda x: x * with_token(2.0))(1.0) == 2


def test_quitting_and_the_end_of_the_commands():
    with pytest.raises(SystemExit):
        session("q")
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="there are no more commands"):
        xtrace.jit(lambda: xtrace.debug.breakpoint(stdin=io.StringIO(), stdout=io.StringIO()))()


def test_arguments():
    with pytest.raises(ValueError, match="the backend is 'cli', got 'web'"):
        xtrace.debug.breakpoint(backend="web")
    with pytest.raises(TypeError, match="takes no argument 'color'"):
        xtrace.debug.breakpoint(color=True)


def _free_levels():
    """Return how many calls deep a function can go."""
    count = 0

    def deeper():
        nonlocal count
        count += 1
        deeper()

    with contextlib.suppress(RecursionError):
        deeper()
    return count


def test_variables_that_are_no_trees_cost_no_levels_of_recursion():
    nested = {1: "keys", "that": "have no order"}
    for _ in range(50):
        nested = [nested]
    before = _free_levels()
    xtrace.debug.breakpoint(stdin=io.StringIO("continue\n"), stdout=io.StringIO())
    xtrace.effects_barrier()
    assert _free_levels() == before and len(nested) == 1
