"""The explorer's data: what each line comes from, and what it costs, compared with what XLA itself says."""

import json
import pathlib
import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from benchmarks.programs import build, load
from xtrace._src.explorer import costs
from xtrace._src.explorer.data import column_in_utf16
from xtrace._src.xla.hlo import hlo_text
from xtrace._src.xla.hlo.hlo_frames import Frames


def layer(x, w):
    return jnp.tanh(x @ w + 1.0)


def network(weights, x):
    for w in weights:
        x = layer(x, w)
    return (x**2).sum()


def loop(x):
    return xtrace.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) @ y, x)


WEIGHTS, X = [jnp.ones((8, 8))] * 2, jnp.ones((4, 8))


@pytest.fixture(scope="module")
def explored():
    return xtrace.explore(xtrace.grad(network), WEIGHTS, X)


@pytest.fixture(scope="module")
def program(explored):
    return explored.to_json()["programs"][0]


def line_of(text):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if text in line)


def origins_on(program, line):
    """The numbers of the origins whose expression begins on a line of this file."""
    return {
        i for i, origin in enumerate(program["origins"])
        if "span" in origin and program["spans"][origin["span"]][1] == line and origin["kind"] != "argument"
    }


def lines_with(pane, origins):
    return [line for line, own in zip(pane["lines"], pane["origins"], strict=True) if origins & set(own)]


def test_the_data_is_json(explored):
    data = explored.to_json()
    assert json.loads(json.dumps(data)) == data
    assert data["format"] == "xtrace-explorer"


def test_the_description_names_every_key(explored):
    text = pathlib.Path(__file__).parents[2].joinpath("docs", "explorer_data.md").read_text()
    data = explored.to_json()
    program = data["programs"][0]
    for key in (*data, *program, *data["files"][0], *program["device"], *program["memory"], "instructions"):
        assert f"`{key}`" in text or f".{key}`" in text, key


def test_the_pane_of_the_optimised_program_is_what_xla_says():
    lowered = xtrace.lower(network, WEIGHTS, X)
    shown = xtrace.explore(network, WEIGHTS, X).to_json()["programs"][0]["hlo"]["lines"]
    text = lowered.compile().as_text()
    start = text.index("\n%")
    expected = [hlo_text.without_metadata(line) for line in text[start + 1 :].splitlines()]
    assert shown[2:] == expected
    assert not any("metadata=" in line for line in shown)


def test_a_line_is_linked_to_its_equations_and_operations(program):
    origins = origins_on(program, line_of("return (x**2).sum()"))
    # Its only tangent of 1 is known, so the sum itself is not computed.
    assert re.search(r" = (integer_pow|mul)\b", lines_with(program["jaxpr"], origins)[0])
    assert any("stablehlo.multiply" in line for line in lines_with(program["stablehlo"], origins))


def test_each_call_of_a_line_has_origins_of_its_own(program):
    """The two dots of the loop in `network` are apart in all panes, though line and name are the same."""
    number = line_of("return jnp.tanh(x @ w + 1.0)")
    dots = [i for i in origins_on(program, number) if program["origins"][i]["name"] == "dot_general"]
    forward = [i for i in dots if not program["origins"][i]["scope"].startswith("transpose")]
    assert len(forward) == 2
    for origin in forward:
        assert len(lines_with(program["jaxpr"], {origin})) == 1
        assert len(lines_with(program["stablehlo"], {origin})) == 1
    assert lines_with(program["stablehlo"], {forward[0]}) != lines_with(program["stablehlo"], {forward[1]})
    rows = [set(program["hlo"]["origins"][row[0]]) for row in program["hlo"]["instructions"] if row[2] == "dot"]
    assert {frozenset(row & set(forward)) for row in rows if row & set(forward)} == {frozenset([i]) for i in forward}


def test_fusions_have_the_origins_of_all_that_is_inside(program):
    pane = program["hlo"]
    computations = {c["name"]: number for number, c in enumerate(pane["computations"])}
    checked = 0
    for line, _, opcode, *_ in pane["instructions"]:
        if opcode != "fusion":
            continue
        called = computations[re.search(r"calls=%([\w.-]+)", pane["lines"][line])[1]]
        inner = [r for r in pane["instructions"] if r[3] == called and r[4] == "metadata"]
        expected = {origin for row in inner for origin in pane["origins"][row[0]]}
        assert expected <= set(pane["origins"][line])
        checked += len(expected) > 1
    assert checked


@pytest.mark.parametrize("is_compiled", [False, True], ids=["numbered", "compiled before"])
def test_links_agree_with_the_metadata_of_xla(is_compiled):
    """The line in an instruction's own metadata is a line of one of its origins."""
    lowered = xtrace.lower(xtrace.grad(network), WEIGHTS, X)
    stage = lowered.compile() if is_compiled else lowered
    program = stage.explore().to_json()["programs"][0]
    rows = {row[1]: row for row in program["hlo"]["instructions"]}
    text = lowered.compile().as_text()
    frames, checked = Frames(text), 0
    for computation in hlo_text.read_computations(text.splitlines()):
        for name, instruction in computation.instructions.items():
            file, line = frames.place(instruction.attributes)
            if file is None:
                continue
            origins = [program["origins"][i] for i in program["hlo"]["origins"][rows[name][0]]]
            assert line in [program["spans"][o["span"]][1] for o in origins if "span" in o], name
            checked += 1
    assert checked > 20


def test_arguments_are_linked_by_their_paths(program):
    argument = next(i for i, o in enumerate(program["origins"]) if o["name"] == "weights[1]")
    assert lines_with(program["stablehlo"], {argument})[0].strip() == "%arg1: tensor<8x8xf32>,"
    assert any("parameter(1)" in line for line in lines_with(program["hlo"], {argument}))
    assert "b:f32[8,8]" in lines_with(program["jaxpr"], {argument})[0]


def test_inside_loops_lines_are_linked_and_costs_are_counted_for_each_step():
    program = xtrace.explore(loop, jnp.ones((16, 16))).to_json()["programs"][0]
    number = line_of("return xtrace.lax.fori_loop")
    origins = origins_on(program, number)
    assert any(" dot(" in line for line in lines_with(program["hlo"], origins))
    # Five products of 16 by 16 matrices, and five times 256 sines.
    assert program["cost"]["flops"] >= 5 * 2 * 16**3
    assert program["cost"]["flops"] < 5 * 2 * 16**3 * 1.2


@pytest.mark.parametrize("function", [network, xtrace.grad(network)], ids=["f", "grad"])
def test_operations_are_those_that_xla_counts(function):
    lowered = xtrace.lower(function, WEIGHTS, X)
    cost = lowered.explore().to_json()["programs"][0]["cost"]
    assert cost["flops"] == pytest.approx(lowered.compile().cost_analysis()["flops"], rel=0.15)


def test_memory_is_that_of_the_report():
    compiled = xtrace.lower(xtrace.grad(network), WEIGHTS, X).compile()
    memory = compiled.explore().to_json()["programs"][0]["memory"]
    report = compiled.memory_analysis()
    assert memory["peak"] == report.peak and memory["timeline"] == report.timeline
    assert len(memory["steps"]) == len(memory["timeline"])
    assert {b["name"] for b in memory["buffers"]} >= {"weights[0]", "weights[1]", "x"}
    places = [memory["places"][n] for n in memory["steps"]]
    assert [__file__, line_of("return jnp.tanh(x @ w + 1.0)")] in places


def test_costs_of_lines_are_those_of_the_program(program):
    assert sum(row[4] for row in program["lines"]) == pytest.approx(program["cost"]["seconds"], rel=1e-3)
    assert sum(row[5] for row in program["lines"]) == pytest.approx(1, rel=1e-3)


def test_programs_beside_one_another_share_files_and_have_names_of_their_own():
    one, two = xtrace.explore(network, WEIGHTS, X), xtrace.explore(network, WEIGHTS, jnp.ones((2, 8)))
    both = one.beside(two, xtrace.jit(layer).lower(X, WEIGHTS[0]).explore(name="a layer"))
    assert both.names == ("network (1)", "network (2)", "a layer")
    assert [f["name"] for f in both.to_json()["files"]] == [__file__]
    with pytest.raises(TypeError, match="beside"):
        one.beside("page.html")


@pytest.mark.parametrize("stage", ["trace", "lower", "compile"])
def test_every_stage_explores_itself(stage):
    traced = xtrace.jit(network).trace(WEIGHTS, X)
    explored = {"trace": lambda: traced, "lower": traced.lower, "compile": lambda: traced.lower().compile()}[stage]()
    program = explored.explore().to_json()["programs"][0]
    assert program["cost"]["flops"] and program["stablehlo"]["lines"][0].startswith("module @jit_network")


def test_a_stage_stays_as_it_was():
    lowered = xtrace.lower(network, WEIGHTS, X)
    text, debug_text = lowered.as_text(), lowered.as_text(debug_info=True)
    lowered.explore()
    assert (lowered.as_text(), lowered.as_text(debug_info=True)) == (text, debug_text)
    assert "origins>" not in lowered.compile().as_text()


def test_unused_arguments_and_closed_over_arrays():
    table = np.arange(4000.0, dtype=np.float32)

    def lookup(unused, i):
        return jnp.asarray(table)[i]

    program = xtrace.explore(lookup, 1.0, 3).to_json()["programs"][0]
    argument = next(i for i, o in enumerate(program["origins"]) if o["name"] == "i")
    assert lines_with(program["stablehlo"], {argument}) == ["      %arg1: tensor<i32>"]


def test_columns_are_those_of_browsers():
    line = "x = 'ü𝄞' + y"
    assert column_in_utf16(line, len("x = 'ü𝄞' + ".encode())) == 12
    assert column_in_utf16("plain", 3) == 3


def test_save_writes_the_page_or_the_data(explored, tmp_path):
    explored.save(tmp_path / "page.html")
    explored.save(tmp_path / "data.json")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "data.json").read_text()) == explored.to_json()


@pytest.mark.parametrize("name", ["selu", "mlp", "column norm", "log2", "matmul", "mlp, batch 256"])
def test_nearly_all_instructions_have_a_line(name):
    program = build(load("xtrace"), name)
    coverage = xtrace.explore(program.function, *program.arguments).to_json()["programs"][0]["coverage"]
    linked = sum(n for how, n in coverage.items() if not how.startswith("none"))
    assert linked >= 0.95 * sum(coverage.values()), coverage


def test_what_runs_in_the_background_counts_once():
    (computation,) = hlo_text.read_computations([
        "ENTRY %main (p: f32[256]) -> f32[256] {",
        "  %p = f32[256]{0} parameter(0)",
        "  %start = (f32[256]{0:S(1)}, f32[256]{0}, u32[]{:S(2)}) copy-start(%p)",
        "  ROOT %done = f32[256]{0:S(1)} copy-done(%start)",
        "}",
    ])
    types = {i.name: i.type for i in computation.instructions.values()}
    moved = {name: costs.count_bytes(i, types) for name, i in computation.instructions.items()}
    assert moved == {"p": 0, "start": 2 * 1024 + 4, "done": 0}
