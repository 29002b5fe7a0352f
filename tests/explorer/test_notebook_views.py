"""What notebooks show of jaxprs, stages, caches and arrays on several devices."""

import html.parser
import linecache
import sys
import types

import pytest

import xtrace
import xtrace.numpy as jnp


class _Text(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.text, self.titles, self.tags = "", [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.titles += [value for name, value in attributes if name == "title"]

    def handle_data(self, data):
        self.text += data


def test_a_jaxpr_shows_its_text_with_types_and_places():
    closed = xtrace.make_jaxpr(lambda x: jnp.tanh(x) * 2)(jnp.ones(3))
    shown = _Text(closed._repr_html_())
    # Each equation has a line of its own, also where all would fit on one.
    joined = " ".join(shown.text.split())
    assert joined.replace(" c:", "; c:") == str(closed)
    assert "f32[3]" in shown.titles and any("test_notebook_views.py" in title for title in shown.titles)
    assert _Text(closed.jaxpr._repr_html_()).text == shown.text


def test_names_in_jaxprs_are_text():
    def f(x):
        return jnp.sin(x)

    f.__name__ = "<b>f</b>"
    shown = _Text(xtrace.make_jaxpr(lambda x: xtrace.jit(f)(x))(1.0)._repr_html_())
    assert "b" not in shown.tags and "<b>f</b>" in shown.text


def test_long_jaxprs_are_cut():
    def f(x):
        for _ in range(3000):
            x = x + 1
        return x

    assert "more lines" in xtrace.make_jaxpr(f)(1.0)._repr_html_()


@pytest.mark.parametrize(
    ("stage", "word"), [("trace", "tanh a"), ("lower", "stablehlo.tanh"), ("compile", "HloModule")]
)
def test_stages_show_their_arguments_and_their_text(stage, word):
    traced = xtrace.jit(lambda p: jnp.tanh(p["w"])).trace({"w": jnp.ones(3)})
    shown = {"trace": lambda: traced, "lower": traced.lower, "compile": lambda: traced.lower().compile()}[stage]()
    text = _Text(shown._repr_html_()).text
    assert "p['w']" in text and "float32[3]" in text and word in text


def test_cache_information_is_a_table():
    f = xtrace.jit(lambda x: x + 1)
    f(1.0), f(jnp.ones(2))
    shown = _Text(f.cache_info()._repr_html_())
    assert "2 misses" in shown.text and "f32[2]" in shown.text and "tr" in shown.tags


def test_arrays_on_several_devices_show_which_holds_what():
    mesh = xtrace.make_mesh((4, 2), ("x", "y"))
    x = xtrace.device_put(jnp.ones((8, 4)), xtrace.NamedSharding(mesh, xtrace.P("x", "y")))
    shown = _Text(x._repr_html_())
    assert "CPU 7" in shown.text and repr(x) in shown.text
    # One on a single device is shown as text.
    assert jnp.ones(3)._repr_html_() is None


def test_cells_have_the_names_that_the_notebook_shows(monkeypatch):
    file, source = "/tmp/ipykernel_1/42.py", "def f(x):\n    if x > 0:\n        return x\n"
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(
        format_code_name=lambda name: ("Cell", "In[3]") if name == file else None
    ))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(True), file))
    names = {}
    exec(compile(source, file, "exec"), names)
    with pytest.raises(xtrace.errors.TracerBoolConversionError) as raised:
        xtrace.jit(names["f"])(1.0)
    assert "  In[3]:2 (f)\n    if x > 0:" in str(raised.value) and "function f at In[3]:1" in str(raised.value)
    assert repr(xtrace.jit(names["f"]).cache_info()).startswith("f at In[3]:1: ")
    exec(compile("def g(x):\n    return x * 2\n", file, "exec"), names)
    explored = xtrace.explore(names["g"], 1.0).to_json()
    assert [each["name"] for each in explored["files"]] == ["In[3]"]
    assert "In[3]:2 (g)" in xtrace.make_jaxpr(names["g"])(1.0).jaxpr._repr_html_()


def test_reports_print_as_tables():
    report = xtrace.lower(lambda x: x @ x, jnp.ones((32, 32))).compile().report()
    assert repr(report) == str(report) and "65,536 flops" in repr(report)
