"""``python -m xtrace memory``: the report of a user's function, as text and JSON, for the device at hand and others."""

import json
import sys

import pytest

from xtrace.cli.main import main

MODEL = """
import numpy as np, xtrace
import xtrace.numpy as jnp

table = np.ones((512, 1024), "float32")

def forward(params, x, depth=2):
    for _ in range(depth):
        x = jnp.tanh(x @ params["w"])
    return x @ table

def broken(x):
    raise KeyError("the user's own")

def loss(x):
    return jnp.sin(x).sum()

gradient = xtrace.grad(loss)
"""
ARGUMENTS = ("--arg", '{"w": f32[512,512]}', "--arg", "f32[4096,512]")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The path of a user's file, forgotten after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("xtrace._src.xla.plugins.plugins.find_library", lambda platform: None)
    path = tmp_path / "memory_model.py"
    path.write_text(MODEL)
    yield path
    sys.modules.pop("memory_model", None)


@pytest.fixture
def run(capsys):
    """Run the command; returns the exit code, what it printed and what it complained about."""

    def run(command, *arguments):
        code = main([command, *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_report(model, run):
    code, out, err = run("memory", f"{model}:forward", *ARGUMENTS, "--static", "depth=3")
    assert code == 0 and out.startswith("forward on cpu: ") and "  arguments   11 MiB\n" in out
    assert "params['w']" in out and f"{model}:9" in out
    assert err == (
        f"note: closed over, and part of the program: table: f32[512,1024], 2 MiB, read in {model}:10 (forward)\n"
    )


def test_a_target_without_its_compiler(model, run):
    code, out, _ = run("memory", f"{model}:forward", *ARGUMENTS, "--target", "tpu-v5e")
    assert code == 0 and out.startswith("forward on cpu: ")
    last = out.splitlines()[-1]
    assert last.startswith("forward takes ") and "on TPU v5 lite, which has 16 GiB: fits" in last
    assert "as compiled for cpu" in last
    large = ("--arg", '{"w": f32[512,512]}', "--arg", "f32[16777216,512]")
    assert "DOES NOT FIT" in run("memory", f"{model}:forward", *large, "--target", "tpu-v5e")[1].splitlines()[-1]


def test_report_and_answer_have_one_name(model, run):
    _, out, _ = run("memory", f"{model}:gradient", "--arg", "f32[8]", "--target", "tpu-v5e")
    assert out.startswith("loss on cpu: ") and out.splitlines()[-1].startswith("loss takes ")


def test_json(model, run):
    code, out, _ = run("memory", f"{model}:forward", *ARGUMENTS, "--json")
    read = json.loads(out)
    assert (code, read["name"], read["device"], read["fits"]) == (0, "forward", "cpu", True)
    read = json.loads(run("memory", f"{model}:forward", *ARGUMENTS, "--json", "--target", "h200")[1])
    assert read["fits"] is True and read["target"]["device"] == "NVIDIA H200"


def test_what_goes_wrong(model, run):
    assert "KeyError" in run("memory", f"{model}:broken", "--arg", "f32[]")[2]
    code, _, err = run("memory", f"{model}:forward", *ARGUMENTS, "--target", "h2000")
    assert code == 2 and "unknown target 'h2000'" in err
    assert run("memory", f"{model}:forwrd")[0] == 2


def test_the_stage_of_compile_times(model, run):
    code, out, _ = run("inspect", f"{model}:forward", *ARGUMENTS, "--static", "depth=12", "--stage", "compile-time")
    assert code == 0 and out.startswith("forward on cpu: tracing ")
    assert "line 9 of forward runs 12 times" in out and f"table     {model}:10" in out
