"""Source positions: the user's line and columns of every kind of expression, and no frame kept alive."""

import gc
import importlib.util
import textwrap
import weakref

import numpy as np
import pytest

import xtrace
from tests.support.programs import SCALAR, VECTOR
from xtrace import lax
from xtrace._src.core.diagnostics.source import describe, resolve, user_position


def places(function, *args):
    """The primitive's name and the resolved place of every equation, those of inner jaxprs included."""
    found = []

    def visit(jaxpr):
        for equation in jaxpr.eqns:
            found.append((equation.primitive.name, resolve(equation.source)))
            for value in equation.parameters:
                if hasattr(value, "jaxpr"):
                    visit(value.jaxpr)

    visit(xtrace.make_jaxpr(function)(*args).jaxpr)
    return found


def load(tmp_path, text, name="module_of_a_test"):
    """A module made of `text`, dedented, and the lines of its file."""
    path = tmp_path / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path.read_text().split("\n")


def shown(location, lines):
    """The text that a location spans."""
    if location.line == location.end_line:
        return lines[location.line - 1].encode()[location.column : location.end_column].decode()
    first, *between = lines[location.line - 1 : location.end_line]
    return "\n".join([first[location.column :], *between[:-1], between[-1][: location.end_column]])


def test_an_expression_over_several_lines(tmp_path):
    module, lines = load(
        tmp_path,
        """
        from xtrace import lax

        def function(x):
            y = lax.add(
                lax.sin(x),
                lax.cos(
                    x
                ),
            )
            return (
                y
                * lax.exp(x)
                - x
            )
        """,
    )
    found = places(module.function, VECTOR)
    assert [(name, location.line, shown(location, lines)) for name, location in found] == [
        ("sin", 6, "lax.sin(x)"),
        ("cos", 7, "lax.cos(\n            x\n        )"),
        ("add", 5, "lax.add(\n        lax.sin(x),\n        lax.cos(\n            x\n        ),\n    )"),
        ("exp", 13, "lax.exp(x)"),
        ("mul", 12, "y\n        * lax.exp(x)"),
        ("sub", 12, "y\n        * lax.exp(x)\n        - x"),
    ]
    assert {(location.file, location.function) for _, location in found} == {(module.__file__, "function")}


def test_several_operations_on_one_line_differ_in_columns(tmp_path):
    module, lines = load(
        tmp_path,
        """
        from xtrace import lax
        function = lambda x: lax.sin(x) + lax.cos(-x)
        """,
    )
    found = places(module.function, VECTOR)
    assert [(name, shown(location, lines)) for name, location in found] == [
        ("sin", "lax.sin(x)"), ("neg", "-x"), ("cos", "lax.cos(-x)"), ("add", "lax.sin(x) + lax.cos(-x)"),
    ]
    assert {location.function for _, location in found} == {"<lambda>"}


def test_comprehensions_and_generators(tmp_path):
    module, lines = load(
        tmp_path,
        """
        from xtrace import lax
        def function(x):
            listed = [
                lax.sin(x) for _ in range(2)
            ]
            return listed, list(
                lax.cos(y) for y in listed), {
                0: lax.exp(x) for _ in range(1)}
        """,
    )
    found = places(module.function, VECTOR)
    assert [(name, location.line) for name, location in found] == [
        ("sin", 5), ("sin", 5), ("cos", 8), ("cos", 8), ("exp", 9),
    ]
    assert shown(found[2][1], lines) == "lax.cos(y)"


def test_decorators_defaults_and_nested_functions(tmp_path):
    module, _ = load(
        tmp_path,
        """
        import functools
        import xtrace
        from xtrace import lax

        def decorated(function):
            @functools.wraps(function)
            def wrapper(*args):
                return lax.neg(function(*args))
            return wrapper

        @decorated
        @xtrace.jit
        def inner(x):
            return lax.sin(x)

        def function(x):
            return inner(
                x)
        """,
    )
    found = places(module.function, VECTOR)
    assert [(name, location.line, location.function) for name, location in found] == [
        ("jit", 9, "wrapper"), ("sin", 15, "inner"), ("neg", 9, "wrapper"),
    ]


def test_code_from_exec_and_eval():
    namespace = {"lax": lax}
    exec("def function(x):\n\n    return lax.sin(x)", namespace)
    ((name, location),) = places(namespace["function"], VECTOR)
    assert (name, location.file, location.line, location.function) == ("sin", "<string>", 3, "function")
    ((_, location),) = places(eval(compile("lambda x: lax.sin(x)", "a cell", "eval"), namespace), VECTOR)
    assert (location.file, location.line, location.column, location.end_column) == ("a cell", 1, 10, 20)


def test_columns_count_bytes(tmp_path):
    module, lines = load(tmp_path, "from xtrace import lax\nfunction = lambda größe: ('ß', lax.sin(größe))[1]\n")
    ((_, location),) = places(module.function, VECTOR)
    assert shown(location, lines) == "lax.sin(größe)"


def test_operations_that_run_inside_xtrace_belong_to_the_caller(tmp_path):
    # Operators and methods bind in frames of the package, which are not shown.
    found = places(lambda x: 2.0 - x, SCALAR)
    assert [location.file for _, location in found] == [__file__]


def test_generated_code_of_the_package_is_not_shown():
    namespace = {"user_position": user_position}
    exec(compile("def call():\n    return user_position()", "<xtrace generated>", "exec"), namespace)
    assert resolve(namespace["call"]()).file == __file__


def test_an_unknown_place():
    assert describe(None) == "an unknown place"


def test_a_place_reads_as_file_line_and_function():
    position = user_position()
    text = describe(position)
    line = test_a_place_reads_as_file_line_and_function.__code__.co_firstlineno + 1
    assert (
        text == str(resolve(position)) == f"{__file__}:{line} ({test_a_place_reads_as_file_line_and_function.__name__})"
    )


def test_code_without_positions_still_has_its_first_line():
    code = compile("\n\nlambda: 0", "a file", "eval").replace(co_linetable=b"", co_firstlineno=7)
    assert resolve((code, 2, ()))[:3] == ("a file", "<module>", 7)
    assert resolve((code, -1, ())).line == 7


# What tracing must not keep alive


class Local:
    """An object that can be watched."""


def test_no_local_of_the_traced_function_is_kept_alive():
    watched = []

    def function(x):
        local = Local()
        local.itself = local
        watched.append(weakref.ref(local))
        y = lax.sin(x)
        return xtrace.jit(lambda y: lax.cos(y))(y)

    closed = xtrace.make_jaxpr(function)(VECTOR)
    compiled = xtrace.jit(function)
    compiled(VECTOR)
    lowered = xtrace.lower(function, VECTOR)
    gc.collect()
    assert watched and all(reference() is None for reference in watched)
    assert all(equation.source is not None for equation in closed.eqns)
    assert "cosine" in lowered.as_text()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nor_when_the_traced_function_raises(error):
    watched = []

    def function(x):
        local = Local()
        watched.append(weakref.ref(local))
        lax.sin(x)
        raise error

    for transformed in (xtrace.make_jaxpr(function), xtrace.jit(function)):
        with pytest.raises(error):
            transformed(VECTOR)
    gc.collect()
    assert [reference() for reference in watched] == [None] * 2


def test_tracers_die_with_the_trace():
    watched = []

    def function(x):
        y = lax.sin(x)
        watched.extend([weakref.ref(x), weakref.ref(y), weakref.ref(y.owner)])
        return y

    # Without the collector: nothing of a trace is part of a cycle.
    gc.disable()
    try:
        closed = xtrace.make_jaxpr(function)(VECTOR)
        assert [reference() for reference in watched] == [None] * 3
    finally:
        gc.enable()
    assert len(closed.eqns) == 1


def test_a_closed_over_array_is_freed_with_the_jaxpr():
    def traced():
        array = xtrace.device_put(np.zeros(1000, np.float32))
        return weakref.ref(array), xtrace.make_jaxpr(lambda x: lax.add(x, array))(np.zeros(1000, np.float32))

    reference, closed = traced()
    gc.collect()
    assert reference() is closed.consts[0]
    del closed
    gc.collect()
    assert reference() is None
