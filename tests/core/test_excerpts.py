"""Excerpts of the user's source: which lines they show, and under which expression the marker stands."""

import linecache
import sys
import textwrap

import pytest

from xtrace._src.core.diagnostics.excerpts import excerpt, expression_text
from xtrace._src.core.diagnostics.source import user_position


class Asked(Exception):
    """Raised where Python asks the value below for something."""


class Value:
    """Stands for a traced value: raises, with the position, when Python needs to know it."""

    def refuse(self, *_):
        frame = sys._getframe(1)
        raise Asked((frame.f_code, frame.f_lasti, ()))

    __bool__ = __index__ = __float__ = __iter__ = __hash__ = __format__ = __setitem__ = __getitem__ = refuse

    def __gt__(self, other):
        return self


def position_of(source, name="a_file_of_a_test.py"):
    """Where a function with this body asked its argument x for its value."""
    lines = ["def f(x, y=1):", *textwrap.indent(textwrap.dedent(source).strip("\n"), "    ").split("\n")]
    linecache.cache[name] = (1, None, [f"{line}\n" for line in lines], name)
    namespace = {}
    exec(compile("\n".join(lines), name, "exec"), namespace)
    with pytest.raises(Asked) as caught:
        namespace["f"](Value())
    return caught.value.args[0]


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        ("if x > 0: pass", "   ^^^^^"),
        ("if x: pass", "   ^"),
        ("while x > 0: pass", "      ^^^^^"),
        ("while not x: pass", "          ^"),
        ("z = not x", "        ^"),
        ("z = x and 1", "    ^"),
        ("z = 1 and x > 0 and 2", "          ^^^^^"),
        ("z = y and x or y", "          ^"),
        ("if y and x: pass", "         ^"),
        ("assert x, 'no'", "       ^"),
        ("assert x > 0", "       ^^^^^"),
        ("z = y if x else 2", "         ^"),
        ("return y if x else 2", "            ^"),
        ("z = [i for i in [1] if i if x]", "                            ^"),
        ("z = {i: y for i in x}", "                   ^"),
        ("for i in range(x): pass", "         ^^^^^^^^"),
        ("for i in x: pass", "         ^"),
        ("a, b = x", "       ^"),
        ("z = [1, 2][x]", "    ^^^^^^^^^"),
        ("x[0] = 10", "^^^^"),
        ("z = {x: 1}", "    ^^^^^^"),
        ("z = f'{x:.2f}'", "    ^^^^^^^^^^"),
        ("z = float(x) + 1", "    ^^^^^^^^"),
        ("é = '日本'; z = 'ß' if x else 1", "                       ^"),
        ("if\ty and\tx: pass", "  \t     \t^"),
    ],
)
def test_the_marker_stands_under_the_expression(source, marked):
    assert excerpt(position_of(source)) == f"  a_file_of_a_test.py:2 (f)\n    {source}\n    {marked}"


def test_an_expression_over_several_lines():
    text = excerpt(position_of("z = [1, 2][\n  x\n  ]"), "")
    assert text.split("\n") == [
        "a_file_of_a_test.py:2 (f)",
        "  z = [1, 2][",
        "      ^^^^^^^",
        "    x",
        "    ^",
        "    ]",
        "    ^",
    ]


def test_a_long_expression_shows_its_first_lines_and_its_last():
    text = excerpt(position_of("z = float(\n" + "#\n" * 20 + "x\n)"), "")
    assert text.split("\n")[1:] == ["  z = float(", "      ^^^^^^", "  #", "  ^", "  #", "  ^", "  ...", "  )", "  ^"]


def test_a_condition_over_several_lines_marks_its_own_part():
    text = excerpt(position_of("if (\n    y and\n    x\n):\n    pass"), "")
    assert text == "a_file_of_a_test.py:4 (f)\n  x\n  ^"


def test_a_long_line_is_cut_around_the_expression():
    text = excerpt(position_of(f"z = [{'1, ' * 200}float(x), {'1, ' * 200}]"), "")
    _, line, marker = text.split("\n")
    start = marker.index("^")
    assert line[start : start + 8] == "float(x)" and len(line) < 180 and marker.strip() == "^" * 8


def test_without_source_the_place_alone():
    namespace = {}
    exec("def f(x):\n    return [1, 2][x]", namespace)
    with pytest.raises(Asked) as caught:
        namespace["f"](Value())
    assert excerpt(caught.value.args[0]) == "  <string>:2 (f)"
    assert excerpt(None) == "  an unknown place"
    assert expression_text(None) is None


def test_a_file_that_has_changed_shows_no_wrong_marker():
    position = position_of("z = [1, 2, 3][x]", "changed.py")
    linecache.cache["changed.py"] = (1, None, ["def f(x):\n", "  y\n"], "changed.py")
    assert excerpt(position) == "  changed.py:2 (f)\n    y"
    linecache.cache["changed.py"] = (1, None, [], "changed.py")
    assert excerpt(position) == "  changed.py:2 (f)"


def test_this_file_itself():
    position = user_position()
    assert excerpt(position).split("\n")[1:] == ["    position = user_position()", "               ^^^^^^^^^^^^^^^"]
    assert expression_text(position) == "user_position()"
