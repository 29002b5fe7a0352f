"""Functions and files that are hard to show: the data says what is missing, and the page stays whole."""

import functools
import html.parser
import json
import linecache
import pickle
import re
import warnings

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp

ATTACK = "</script><img src=x onerror=alert(1)><!--"


def program_of(function, *args):
    explored = xtrace.explore(function, *args)
    check_page(explored.html())
    data = explored.to_json()
    return data, data["programs"][0]


class _Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.reading = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.reading = tag == "script"
        if self.reading:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.reading = False

    def handle_data(self, data):
        if self.reading:
            self.scripts[-1] += data


def check_page(text):
    """The page has the elements of its template only, and its data is intact."""
    elements = _Elements()
    elements.feed(text)
    tags = [tag for tag, _ in elements.tags]
    assert " ".join(tags) == "html head meta meta meta title style body noscript div script script"
    names = [name for _, attributes in elements.tags for name in attributes]
    assert not [name for name in names if name.startswith(("on", "src", "href"))]
    json.loads(elements.scripts[0])
    text.encode()


def write(tmp_path, text, name="program.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    namespace = {"__name__": "program"}
    exec(compile(text, str(path), "exec"), namespace)
    return path, namespace


def test_code_that_was_executed_from_a_string():
    namespace = {}
    exec("def f(x):\n    return x * 2", namespace)
    data, program = program_of(namespace["f"], 1.0)
    (file,) = data["files"]
    assert file["lines"] is None and "executed from a string" in file["missing"]
    # The lines of its places are known all the same.
    assert [span[1] for span in program["spans"]] == [2, 1]


def test_a_file_that_is_gone(tmp_path):
    path, namespace = write(tmp_path, "def f(x):\n    return x * 2\n")
    path.unlink()
    linecache.clearcache()
    data, _ = program_of(namespace["f"], 1.0)
    assert data["files"][0]["missing"] == "the file is gone"


def test_a_file_that_was_changed_since(tmp_path):
    path, namespace = write(tmp_path, "def f(x):\n    return x * 2\n")
    assert program_of(namespace["f"], 1.0)[0]["files"][0]["changed"] == ""
    path.write_text("# a new line\ndef f(x):\n    return x * 3\n")
    assert "changed since" in program_of(namespace["f"], 1.0)[0]["files"][0]["changed"]


def test_a_file_that_compiles_with_warnings_is_unchanged(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, namespace = write(tmp_path, "def f(x):\n    return x * 2\n\nPATTERN = '\\d'\n")
    assert program_of(namespace["f"], 1.0)[0]["files"][0]["changed"] == ""


def test_a_change_elsewhere_in_the_file_is_none(tmp_path):
    path, namespace = write(tmp_path, "def f(x):\n    return x * 2\n")
    path.write_text("def f(x):\n    return x * 2\n\ndef g(x):\n    return x\n")
    assert program_of(namespace["f"], 1.0)[0]["files"][0]["changed"] == ""


def test_several_functions_on_one_line():
    f, g = lambda x: jnp.sin(x) * 2, lambda x: jnp.cos(x) * 3
    _, program = program_of(lambda x: f(x) + g(x), 1.0)
    columns = {o["name"]: program["spans"][o["span"]][2] for o in program["origins"] if o["kind"] == "equation"}
    assert columns["sin"] < columns["cos"]


def test_decorated_functions():
    def twice(function):
        @functools.wraps(function)
        def call(*args):
            return function(*args) * 2

        return call

    @twice
    @xtrace.jit
    def f(x):
        return jnp.sin(x)

    _, program = program_of(f, 1.0)
    assert {o["name"] for o in program["origins"] if o["kind"] == "equation"} >= {"sin", "mul"}


@pytest.mark.parametrize("text", [ATTACK, "\u2028\u2029", "ünï\N{SNOWMAN}", "'\"\\", "\x00\x07", "\ud800"])
def test_names_and_scopes_are_text(text):
    def f(x):
        with xtrace.named_scope(text.replace("\x00", "").replace("\ud800", "") or "scope"):
            return jnp.sin(x["k" + text])

    _, program = program_of(f, {"k" + text: 1.0})
    assert program["arguments"][0]["path"] == f"x[{'k' + text!r}]"


def test_names_of_functions_and_files_are_text(tmp_path):
    _, namespace = write(tmp_path, f"# {ATTACK}\ndef f(x):\n    return x * 2  # {ATTACK}\n", "a&<b>'.py")
    function = namespace["f"]
    function.__name__ = function.__qualname__ = ATTACK
    data, program = program_of(function, 1.0)
    assert program["name"] == ATTACK and ATTACK in data["files"][0]["lines"][0]


def test_a_megabyte_of_constants_is_left_out(tmp_path):
    text = f"import xtrace.numpy as jnp\ndef f(x):\n    return x + jnp.asarray([{'1.0, ' * 30000}])\n"
    _, namespace = write(tmp_path, text)
    explored = xtrace.explore(namespace["f"], 1.0)
    page = explored.html()
    check_page(page)
    assert len(page) < 300_000
    assert "characters left out" in explored.to_json()["files"][0]["lines"][2]
    big = np.ones(1 << 18, np.float32)
    assert len(xtrace.explore(lambda x: x + big, 1.0).html()) < 300_000


def test_functions_of_no_equations_and_of_no_results():
    for function in (lambda x: x, lambda x: (), lambda: 1.0):
        _, program = program_of(function, *([1.0] if function.__code__.co_argcount else []))
        assert program["jaxpr"]["lines"]


def test_functions_without_python_code():
    _, program = program_of(jnp.sin, 1.0)
    assert any("sine" in line for line in program["stablehlo"]["lines"])
    _, program = program_of(functools.partial(jnp.add, 2.0), 1.0)
    assert program["hlo"]["lines"]


def test_a_program_that_does_not_compile_says_why():
    mesh = xtrace.sharding.AbstractMesh((2,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    sharding = xtrace.NamedSharding(mesh, xtrace.P("x"))
    _, program = program_of(lambda x: x * 2, xtrace.ShapeDtypeStruct((4,), "float32", sharding=sharding))
    assert "AbstractMesh" in program["hlo"]["missing"] and program["cost"] is None
    assert program["stablehlo"]["lines"]


def test_a_target_that_is_unknown_is_an_error():
    with pytest.raises(ValueError, match="unknown target"):
        xtrace.lower(jnp.sin, 1.0).explore(target="abacus")


def test_a_program_that_was_loaded_says_where_to_explore():
    loaded = pickle.loads(pickle.dumps(xtrace.lower(jnp.sin, 1.0).compile()))
    with pytest.raises(ValueError, match=r"explore: sin is a program that was loaded.*xtrace\.explore\(f, \*args\)"):
        loaded.explore()
    with pytest.raises(TypeError, match="explore: name is what the page calls the program, a string; got 3"):
        xtrace.lower(jnp.sin, 1.0).explore(name=3)


def test_references_and_callbacks():
    def counts(x):
        total = xtrace.new_ref(0.0)
        total[...] += x
        xtrace.debug.print("{x}", x=x)
        return total[...]

    _, program = program_of(counts, 1.0)
    assert any("custom_call" in line for line in program["stablehlo"]["lines"])


def test_the_pages_policy_names_its_own_script_and_style():
    text = xtrace.explore(jnp.sin, 1.0).html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text.split('<script type="application/json"')[0])


def test_notebooks_get_a_frame_that_shares_nothing():
    text = xtrace.explore(lambda x: x * 2, 1.0)._repr_html_()
    elements = _Elements()
    elements.feed(text)
    (tag, attributes), = elements.tags
    assert tag == "iframe" and attributes["sandbox"] == "allow-scripts"
    check_page(attributes["srcdoc"])
