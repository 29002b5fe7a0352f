"""The forms of what commands print: JSON for programs, colours for terminals, plain text for all others."""

import io
import json
import re
import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT
from xtrace.cli import colours
from xtrace.cli.main import main

ANSI = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture
def model(tmp_path):
    """A file with a function, and one that prints."""
    path = tmp_path / "model.py"
    path.write_text(
        "import xtrace.numpy as jnp\nprint('loaded')\n\ndef f(w, x):\n    print('traced')\n    return jnp.tanh(x @ w)\n"
    )
    return f"{path}:f"


def as_json(capsys, *words):
    """The exit code of a command, and the JSON that it prints, alone."""
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


ARGUMENTS = ("--arg", "f32[4,2]", "--arg", "f32[8,4]")


@pytest.mark.parametrize(
    ("stage", "key"),
    [("jaxpr", "text"), ("stablehlo", "text"), ("hlo", "text"), ("cost", "cost"), ("memory", "memory"),
     ("report", "report")],
)
def test_inspect_as_json(stage, key, model, capsys):
    code, data = as_json(capsys, "inspect", model, *ARGUMENTS, "--stage", stage)
    assert code == 0 and data["stage"] == stage and data["function"] == model and data["target"] is None
    assert data[key] and "\x1b" not in str(data)
    if stage == "cost":
        assert data["cost"]["flops"] >= 2 * 8 * 4 * 2
    if stage == "report":
        assert data["report"]["memory"]["arguments"] == 4 * (4 * 2 + 8 * 4) and data["report"]["fits"] is None


def test_a_report_of_a_mesh_as_json(model):
    mesh = ("--mesh", "data=4,model=2", "--sharding", "x=data,model", "--sharding", "w=model")
    # In a process of its own, since the number of devices may be fixed in this one.
    command = [sys.executable, "-m", "xtrace", "inspect", model, *ARGUMENTS, *mesh, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (collective,) = json.loads(done.stdout)["report"]["collectives"]
    assert collective["kind"] == "all-reduce" and collective["axes"] == ["model"]


def test_errors_as_json(model, capsys):
    code, data = as_json(capsys, "inspect", model)
    assert code == data["exit_code"] == 2 and "nothing is given for w, x" in data["error"]
    for words, text in ((["inspect", "--what"], "arguments are required"), (["train"], "'train'")):
        code, data = as_json(capsys, *words)
        assert code == data["exit_code"] == 2 and text in data["error"]


def test_the_cache_as_json(tmp_path, capsys):
    (tmp_path / "cache").mkdir(mode=0o700)
    directory = ("--directory", str(tmp_path / "cache"))
    assert as_json(capsys, "cache", *directory) == (0, {
        "directory": str(tmp_path / "cache"), "programs": 0, "bytes": 0, "traces": 0, "set_aside": 0, "verified": False,
    })
    assert as_json(capsys, "cache", *directory, "--clear")[1]["deleted"] == 0


def test_a_cache_that_is_not_there(tmp_path, capsys):
    assert main(["cache", "--directory", str(tmp_path / "absent")]) == 0
    assert "absent: there is no such folder yet, 0 programs" in capsys.readouterr().out


def test_the_demo_as_json(capsys):
    code, data = as_json(capsys, "demo", "--epochs", "1")
    assert code == 0 and data["epochs"] == 1 and 0 < data["accuracy"] <= 1 and data["seconds_jitted"] > 0


def test_a_script_as_json(capsys):
    assert as_json(capsys, "completion", "bash")[1]["shell"] == "bash"


def test_the_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and re.fullmatch(r"xtrace \d+\.\d+\.\d+\n", capsys.readouterr().out)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "coloured"),
    [
        (Terminal(), {}, True), (io.StringIO(), {}, False), (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True), (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True), (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_for_terminals(stream, variables, coloured, monkeypatch):
    for name, value in ({"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm"} | variables).items():
        monkeypatch.setenv(name, value)
    assert colours.has_colours(stream) == coloured
    assert ("\x1b" in colours.colour_error("xtrace inspect: no", stream)) == coloured


@pytest.mark.parametrize("stage", ["jaxpr", "stablehlo", "hlo"])
def test_colours_change_no_text(stage, model, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = []
    for force in ("", "1"):
        monkeypatch.setenv("FORCE_COLOR", force)
        assert main(["inspect", model, *ARGUMENTS, "--stage", stage]) == 0
        shown.append(capsys.readouterr().out)
    assert "\x1b" not in shown[0] and ANSI.sub("", shown[1]) == shown[0]
    assert len(ANSI.findall(shown[1])) > 8


@pytest.mark.parametrize(
    ("text", "coloured"),
    [
        ("    b:f32[3] = log a", "b:\x1b[36mf32[3]\x1b[0m = \x1b[33mlog\x1b[0m a"),
        ("%0 = stablehlo.tanh %arg0 : tensor<3xf32>", "\x1b[33mstablehlo.tanh\x1b[0m"),
        ('%a = f32[3]{0} tanh(%b), metadata={op_name="x"}', '\x1b[2m, metadata={op_name="x"}\x1b[0m'),
        ('name="let"', '\x1b[32m"let"\x1b[0m'),
    ],
)
def test_parts_have_their_colours(text, coloured, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured in colours.colour_program(text, Terminal())
