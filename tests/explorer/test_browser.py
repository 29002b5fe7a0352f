"""The page in a browser: what is marked is what the data says, and nothing leaves the page."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

import xtrace
import xtrace.numpy as jnp
from tests.architecture.source_tree import ROOT

pytestmark = [pytest.mark.thorough, pytest.mark.slow]
PANES = ("python", "jaxpr", "stablehlo", "hlo")


def dense(parameters, x):
    return x @ parameters["w"] + parameters["b"]


def network(layers, x):
    for layer in layers[:-1]:
        x = jnp.tanh(dense(layer, x))
    return dense(layers[-1], x)


def loss(layers, x, y):
    return jnp.mean((network(layers, x) - y) ** 2)


LAYERS = [{"w": jnp.ones((m, n)), "b": jnp.zeros(n)} for m, n in ((6, 8), (8, 8), (8, 3))]
ARGUMENTS = LAYERS, jnp.ones((4, 6)), jnp.ones((4, 3))
DIMENSIONS = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def explored():
    gradient = xtrace.jit(xtrace.grad(loss)).lower(*ARGUMENTS).explore(name="grad(loss)")
    return xtrace.explore(loss, *ARGUMENTS).beside(gradient)


@pytest.fixture(scope="module")
def file(explored, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    explored.save(path)
    return path


class Session:
    """A page, all that it said and asked for, and what it marks."""

    def __init__(self, browser, address, **options):
        self.page = browser.new_page(viewport=DIMENSIONS, **options)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = address
        self.page.goto(address)
        self.page.wait_for_selector(".line")

    def marked(self, kind):
        return self.page.evaluate(f"xtraceExplorer.marked('{kind}')")

    def line(self, pane, number):
        """The element of a line, scrolled into sight."""
        self.page.evaluate(f"xtraceExplorer.app.panes['{pane}'].reveal({number})")
        self.page.wait_for_timeout(80)
        return self.page.locator(f"#{pane}-0-{number}")

    def point_at(self, pane, number, text=None):
        """Point at a line, or at a text in it; returns the column."""
        box = self.line(pane, number).locator(".code").bounding_box()
        content = self.page.evaluate(f"xtraceExplorer.app.panes['{pane}'].texts[0][{number}]")
        column = content.index(text) if text else len(content) - len(content.lstrip())
        width = self.page.evaluate(
            "(id) => { const r = document.createRange(); r.selectNodeContents(document.querySelector(id + ' .code'));"
            " return r.getBoundingClientRect().width }", f"#{pane}-0-{number}",
        ) / max(len(content), 1)
        self.page.mouse.move(box["x"] + (column + 0.5) * width, box["y"] + 8)
        self.page.wait_for_timeout(60)
        return column

    def visible(self, pane, kind):
        """The numbers of the drawn lines that have a mark."""
        return self.page.evaluate(
            f"[...document.querySelectorAll('.pane[data-pane={pane}] .line.{kind}')].map((e) => Number(e.dataset.line))"
        )


@pytest.fixture
def session(browser, file):
    made = Session(browser, file.as_uri())
    yield made
    assert made.said == []
    assert [url.partition("#")[0] for url in made.asked] == [made.address.partition("#")[0]]
    made.page.close()


def lines_of(program, pane, origins):
    """The lines that the data links to origins, as the page is to mark them."""
    if pane != "python":
        return [n for n, own in enumerate(program[pane]["origins"]) if set(own) & origins]
    spans = {program["origins"][i]["span"] for i in origins if "span" in program["origins"][i]}
    return sorted({n - 1 for s in spans for n in range(program["spans"][s][1], program["spans"][s][3] + 1)})


def source_line(text):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines) if text in line)


def innermost(program, line, column):
    """The origins of the smallest expression at a place of the source."""
    around = [
        (s, span) for s, span in enumerate(program["spans"])
        if span[1] == span[3] == line + 1 and span[2] <= column < span[4]
    ]
    size = min(span[4] - span[2] for _, span in around)
    chosen = {s for s, span in around if span[4] - span[2] == size}
    return {i for i, origin in enumerate(program["origins"]) if origin.get("span") in chosen}


@pytest.mark.parametrize("text", ["x @ parameters", "+ parameters", "tanh", "** 2", "mean"])
def test_pointing_at_an_expression_marks_what_the_data_says(session, explored, text):
    program = explored.to_json()["programs"][0]
    line = next(
        n for n, content in enumerate(pathlib.Path(__file__).read_text().splitlines())
        if text in content and n < source_line("LAYERS =")
    )
    column = session.point_at("python", line, text)
    origins = innermost(program, line, column)
    assert origins
    expected = {pane: lines_of(program, pane, origins) for pane in PANES}
    assert {pane: sorted(lines[0]) for pane, lines in session.marked("hovered").items()} == expected
    for pane in PANES:
        shown = session.visible(pane, "hover")
        assert set(shown) <= set(expected[pane])
    session.page.mouse.move(5, 5)
    session.page.wait_for_timeout(60)
    assert not any(lines[0] for lines in session.marked("hovered").values())


@pytest.mark.parametrize("pane", ["jaxpr", "stablehlo", "hlo"])
def test_pointing_at_any_line_marks_what_shares_an_origin(session, explored, pane):
    program = explored.to_json()["programs"][0]
    linked = [n for n, own in enumerate(program[pane]["origins"]) if own]
    for number in linked[:: max(1, len(linked) // 8)]:
        session.point_at(pane, number)
        origins = set(program[pane]["origins"][number])
        expected = {p: lines_of(program, p, origins) for p in PANES}
        assert {p: sorted(lines[0]) for p, lines in session.marked("hovered").items()} == expected
        assert number in session.visible(pane, "hover")


def test_a_click_pins_a_line_and_shows_what_belongs_to_it(session, explored):
    program = explored.to_json()["programs"][0]
    number = next(row[0] for row in program["hlo"]["instructions"] if row[2] == "fusion")
    session.line("hlo", number).click(position={"x": 300, "y": 8})
    session.page.mouse.move(5, 5)
    session.page.wait_for_timeout(120)
    expected = lines_of(program, "stablehlo", set(program["hlo"]["origins"][number]))
    assert sorted(session.marked("pinned")["stablehlo"][0]) == expected
    for pane in PANES:
        assert session.visible(pane, "pinned"), f"nothing of {pane} is in sight"
    session.page.keyboard.press("Escape")
    assert not any(lines[0] for lines in session.marked("pinned").values())


def test_deep_links_go_both_ways(browser, file, explored, session):
    program = explored.to_json()["programs"][0]
    row = next(row for row in program["hlo"]["instructions"] if row[2] == "fusion")
    session.line("hlo", row[0]).click(position={"x": 300, "y": 8})
    assert session.page.evaluate("location.hash") == f"#hlo:{row[1]}"
    for address, pane, line in (
        (f"#hlo:{row[1]}", "hlo", row[0]), ("#jaxpr:3", "jaxpr", 2),
        (f"#python:{pathlib.Path(__file__).name}:{source_line('return x @') + 1}", "python", source_line("return x @")),
    ):
        other = Session(browser, file.as_uri() + address)
        other.page.wait_for_timeout(150)
        assert line in other.marked("pinned")[pane][0]
        assert line in other.visible(pane, "pinned")
        assert other.said == []
        other.page.close()
    session.page.evaluate("location.hash = '#2/jaxpr:4'")
    session.page.wait_for_timeout(150)
    assert session.page.get_by_role("tab", name="grad(loss)").get_attribute("aria-selected") == "true"


def test_search_marks_lines_of_all_panes_and_goes_through_them(session, explored):
    program = explored.to_json()["programs"][0]
    session.page.keyboard.press("/")
    session.page.keyboard.type("tanh")
    session.page.wait_for_timeout(100)
    expected = [(p, n) for p in PANES for n, line in enumerate(
        explored.to_json()["files"][0]["lines"] if p == "python" else program[p]["lines"]
    ) if "tanh" in line.lower()]
    assert session.page.locator(".results").text_content() == f"{len(expected)} found"
    session.page.keyboard.press("Enter")
    session.page.wait_for_timeout(100)
    assert expected[0][1] in session.visible("python", "found")
    session.page.keyboard.press("Escape")
    assert session.page.locator(".results").text_content() == ""
    session.page.keyboard.press("/")
    session.page.keyboard.type("zq" * 4)
    assert session.page.locator(".results").text_content() == "nothing found"


def test_the_tab_of_the_program_that_is_shown_is_in_sight(browser, tmp_path):
    first, *others = [xtrace.explore(lambda x, n=n: x * n, 1.0) for n in range(16)]
    first.beside(*others).save(tmp_path / "page.html")
    session = Session(browser, f"{(tmp_path / 'page.html').as_uri()}#16/jaxpr:1")
    tabs, tab = [session.page.locator(name).bounding_box() for name in (".programs", ".programs .tab:last-child")]
    assert tabs["x"] <= tab["x"] and tab["x"] + tab["width"] <= tabs["x"] + tabs["width"] + 1
    session.page.close()


@pytest.mark.parametrize("address", ["hlo:gone.12", "9/jaxpr:1", "python:gone.py:1", "jaxpr:99999"])
def test_a_link_to_what_is_gone_says_so(browser, file, address):
    session = Session(browser, f"{file.as_uri()}#{address}")
    assert f"names {address}, which is not on this page" in session.page.locator(".status").text_content()
    assert session.said == []
    session.page.close()


def test_search_goes_to_other_files(browser, tmp_path):
    (tmp_path / "layers_of_a_search.py").write_text("def scale(x):\n    return x * 3  # needle\n")
    sys.path.insert(0, str(tmp_path))
    try:
        layers = importlib.import_module("layers_of_a_search")
    finally:
        sys.path.remove(str(tmp_path))
    xtrace.explore(lambda x: layers.scale(x) + 1, 1.0).save(tmp_path / "page.html")
    session = Session(browser, (tmp_path / "page.html").as_uri())
    first = session.page.locator(".tabs .tab[aria-pressed=true]").text_content()
    session.page.keyboard.press("/")
    session.page.keyboard.type("# NEEDLE" if first == "layers_of_a_search.py" else "needle")
    session.page.keyboard.press("Enter")
    session.page.wait_for_timeout(150)
    texts = [session.page.evaluate("(f) => xtraceExplorer.app.data.files[f].name", row[3])
             for row in session.page.evaluate("xtraceExplorer.app.found") if row[0] == "python"]
    assert any(text.endswith("layers_of_a_search.py") for text in texts)
    while session.page.locator(".tabs .tab[aria-pressed=true]").text_content() != "layers_of_a_search.py":
        session.page.keyboard.press("Enter")
        session.page.wait_for_timeout(50)
    session.page.wait_for_timeout(150)
    assert session.visible("python", "found") == [1] and session.said == []
    session.page.close()


def test_a_page_that_opens_says_what_to_do(session):
    assert "Point at a line" in session.page.locator(".status").text_content()


def test_the_keyboard_reaches_everything(session):
    page = session.page
    page.keyboard.press("2")
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    page.wait_for_timeout(100)
    assert session.marked("hovered")["jaxpr"][0]
    assert page.evaluate("document.activeElement.dataset.pane") == "jaxpr"
    page.keyboard.press("Enter")
    pinned = session.marked("pinned")
    assert pinned["jaxpr"][0] and pinned["hlo"][0]
    page.keyboard.press("]")
    assert page.evaluate("document.activeElement.dataset.pane") == "stablehlo"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("p")
    assert page.get_by_role("tab", name="grad(loss)").get_attribute("aria-selected") == "true"
    for key, sheet in (("g", ".graph"), ("c", ".costs"), ("?", ".help")):
        page.keyboard.press(key)
        assert page.locator(f"dialog{sheet}[open]").count() == 1
        page.keyboard.press("Escape")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_differences_are_aligned(session, explored):
    session.page.keyboard.press("d")
    session.page.wait_for_timeout(150)
    assert session.page.locator(".pane.two").count() == 4
    first, second = [p["jaxpr"]["lines"] for p in explored.to_json()["programs"]]
    pairs = session.page.evaluate("xtraceExplorer.app.panes.jaxpr.rows")
    assert [a for a, _ in pairs if a >= 0] == list(range(len(first)))
    assert [b for _, b in pairs if b >= 0] == list(range(len(second)))
    # The forward pass of the gradient stands beside that of the function.
    beside = dict(pairs)
    tanh = next(n for n, line in enumerate(first) if "= tanh" in line)
    assert "= tanh" in second[beside[tanh]]
    assert session.page.locator(".pane[data-pane=python] .count").text_content() == "no difference"
    assert session.page.locator(".pane[data-pane=jaxpr] .pair.added").count() > 0
    facts = session.page.locator(".facts").text_content()
    assert "left | right loss | grad(loss)" in facts and "operations " in facts.partition(" | ")[2]
    session.page.keyboard.press("d")
    assert session.page.locator(".pane.two").count() == 0


def test_both_sides_of_a_difference_scroll_to_the_ends_of_their_lines(session):
    session.page.keyboard.press("d")
    session.page.wait_for_timeout(150)
    session.page.evaluate("xtraceExplorer.app.panes.hlo.scroll.scrollLeft = 1e6")
    session.page.wait_for_timeout(150)
    # The end of the longest line that is drawn lies within its column.
    ends = session.page.evaluate("""[0, 1].map((side) => Math.max(...[...document.querySelectorAll(
        `.pane[data-pane=hlo] .line[data-side="${side}"] .code`)].map((code) => {
            const range = document.createRange();
            range.selectNodeContents(code);
            return range.getBoundingClientRect().right - code.getBoundingClientRect().right;
        })))""")
    assert max(ends) <= 0, ends
    numbers = session.page.locator(".pane[data-pane=hlo] .pair .number").first.bounding_box()
    pane = session.page.locator(".pane[data-pane=hlo]").bounding_box()
    assert pane["x"] <= numbers["x"] < pane["x"] + 60


def test_panes_scroll_to_the_ends_of_their_lines_and_no_further(session):
    widths = session.page.evaluate("""Object.values(xtraceExplorer.app.panes).map((pane) =>
        [pane.scroll.scrollWidth, 8 * (pane.width + 20)])""")
    assert all(width <= 900 or width <= longest for width, longest in widths), widths


def test_folds_hide_lines_and_links_unfold_them(session, explored):
    program = explored.to_json()["programs"][1]
    session.page.keyboard.press("p")
    computation = program["hlo"]["computations"][0]
    session.line("hlo", computation["line"]).locator(".fold").click()
    session.page.wait_for_timeout(80)
    assert session.page.locator(f"#hlo-0-{computation['line'] + 1}").count() == 0
    session.page.evaluate(f"xtraceExplorer.app.goTo({{pane: 'hlo', line: {computation['line'] + 1}}})")
    session.page.wait_for_timeout(120)
    assert session.page.locator(f"#hlo-0-{computation['line'] + 1}").count() == 1


def test_panes_collapse(session):
    session.page.get_by_role("button", name="Jaxpr", exact=False).first.click()
    assert session.page.locator(".pane.collapsed").count() == 1
    session.page.keyboard.press("2")
    assert session.page.locator(".pane.collapsed").count() == 0


def test_the_graph_goes_into_fusions_and_back(session, explored):
    program = explored.to_json()["programs"][0]
    session.page.keyboard.press("g")
    entry = next(i for i, c in enumerate(program["hlo"]["computations"]) if c["entry"])
    shown = {
        row[1] for row in program["hlo"]["instructions"]
        if row[3] == entry and row[2] not in ("parameter", "constant", "get-tuple-element", "tuple", "bitcast")
    }
    names = session.page.locator("dialog.graph .node .name").all_text_contents()
    assert {name.removeprefix("⊞ ").rstrip("…")[:25] for name in names} == {name[:25] for name in shown}
    # What is pinned is marked there.
    session.page.keyboard.press("Escape")
    pinned = next(row for row in program["hlo"]["instructions"] if row[1] in shown and row[2] == "fusion")
    session.page.evaluate(f"xtraceExplorer.app.goTo({{pane: 'hlo', line: {pinned[0]}}})")
    session.page.keyboard.press("g")
    marked = session.page.locator("dialog.graph .node.marked .name").all_text_contents()
    assert any(pinned[1].startswith(name.removeprefix("⊞ ").rstrip("…")) for name in marked), (pinned, marked)
    width = session.page.locator("dialog.graph svg").bounding_box()["width"]
    session.page.get_by_role("button", name="Larger").click()
    assert abs(session.page.locator("dialog.graph svg").bounding_box()["width"] - 1.25 * width) < 2
    session.page.locator("dialog.graph .node.holds").first.focus()
    assert session.page.locator("dialog.graph .edge.lit").count() > 0
    session.page.keyboard.press("Enter")
    assert session.page.locator(".crumbs button").count() == 2
    session.page.locator(".crumbs button").first.click()
    assert session.page.locator(".crumbs button").count() == 1
    session.page.locator("dialog.graph .node").first.click()
    assert any(lines[0] for lines in session.marked("pinned").values())


def test_costs_name_lines_and_go_to_them(session, explored):
    program = explored.to_json()["programs"][0]
    worst = max(program["lines"], key=lambda row: row[4])
    session.page.keyboard.press("c")
    first = session.page.locator("dialog.costs tbody tr").first
    assert f":{worst[1]}" in first.locator("td").first.text_content()
    first.locator("button").click()
    assert session.page.locator("dialog.costs[open]").count() == 0
    assert worst[1] - 1 in session.marked("pinned")["python"][0]


def test_memory_names_arrays_and_goes_to_their_lines(session, explored):
    memory = explored.to_json()["programs"][0]["memory"]
    session.page.keyboard.press("c")
    text = session.page.locator("dialog.costs").inner_text()
    assert all(b["name"] in text for b in memory["buffers"])
    box = session.page.locator(".timeline").bounding_box()
    share = (memory["fullest"] + 0.5) / len(memory["timeline"])
    session.page.mouse.move(box["x"] + share * box["width"], box["y"] + 60)
    assert f"step {memory['fullest'] + 1} of" in session.page.locator(".about").text_content()


def test_a_card_tells_the_type_of_the_name_pointed_at(session, explored):
    lines = explored.to_json()["programs"][0]["jaxpr"]["lines"]
    number = next(n for n, line in enumerate(lines) if "= tanh" in line)
    session.point_at("jaxpr", number, "tanh")
    session.page.wait_for_timeout(450)
    text = session.page.locator(".card").inner_text()
    assert "tanh" in text and "test_browser.py:" in text
    session.point_at("python", source_line("x = jnp.tanh"), "jnp.tanh")
    session.page.wait_for_timeout(450)
    text = session.page.locator(".card").inner_text().replace("\n", " ")
    assert "gives f32[4,8]" in text
    session.point_at("jaxpr", number, lines[number].strip()[0])
    session.page.wait_for_timeout(450)
    assert "f32[4,8]" in session.page.locator(".card").inner_text()


def test_printing_shows_all_lines(session, explored):
    session.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    count = session.page.locator(".pane[data-pane=hlo] .line").count()
    assert count == len(explored.to_json()["programs"][0]["hlo"]["lines"])
    session.page.evaluate("dispatchEvent(new Event('afterprint'))")


LONG = """
import sys
import xtrace
from benchmarks.programs import straightline
program = straightline(xtrace, 10_000)
explored = xtrace.explore(program.function, *program.arguments)
explored.save(sys.argv[1])
explored.save(sys.argv[2])
"""


def test_a_program_of_ten_thousand_equations(browser, tmp_path):
    """The page stays small, and only the lines in sight are elements."""
    path, data = tmp_path / "page.html", tmp_path / "data.json"
    # The compiler has too small a stack for it in a process with the flags of the tests.
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    command = [sys.executable, "-c", LONG, str(path), str(data)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300)
    assert path.stat().st_size < 15e6
    program = json.loads(data.read_text())["programs"][0]
    assert len(program["jaxpr"]["lines"]) > 10_000
    session = Session(browser, path.as_uri())
    assert session.page.locator(".line").count() < 600
    session.point_at("jaxpr", 7_000)
    expected = lines_of(program, "hlo", set(program["jaxpr"]["origins"][7_000]))
    assert expected and sorted(session.marked("hovered")["hlo"][0]) == expected
    assert session.said == []
    session.page.close()


ATTACK = "<img src=x onerror=window.broken=1></script><script>window.broken=1</script>"


def test_names_and_text_that_look_like_elements_are_text(browser, tmp_path):
    def f(x):
        with xtrace.named_scope(ATTACK):
            return jnp.sin(x[ATTACK])  # <script>window.broken=1</script>

    path = tmp_path / "page.html"
    f.__name__ = ATTACK
    xtrace.explore(f, {ATTACK: 1.0}).save(path)
    session = Session(browser, path.as_uri())
    session.point_at("jaxpr", 1)
    session.page.wait_for_timeout(450)
    for key in "gc?":
        session.page.keyboard.press(key)
        session.page.keyboard.press("Escape")
    assert session.page.evaluate("window.broken") is None
    assert session.page.locator("img").count() == 0
    assert session.said == [] and len(session.asked) == 1


def test_the_page_works_within_a_cell(browser, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><html><body>{xtrace.explore(jnp.sin, 1.0)._repr_html_()}</body></html>")
    page = browser.new_page(viewport=DIMENSIONS)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".pane[data-pane=jaxpr] .line").nth(1).click(position={"x": 200, "y": 8})
    assert frame.locator(".line.pinned").count() > 1
    assert said == []
    page.close()


@pytest.mark.drawn(0.5)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sheet", ["", "g", "c", "?", "d"])
def test_the_page_is_accessible(browser, file, theme, sheet):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed (extra `test`)")
    session = Session(browser, file.as_uri(), color_scheme=theme, reduced_motion="reduce")
    if sheet:
        session.page.keyboard.press(sheet)
    session.page.wait_for_timeout(150)
    results = axe.Axe().run(session.page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
    faults = [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in results.response["violations"]]
    assert faults == [], json.dumps(faults, indent=1)
    session.page.close()
