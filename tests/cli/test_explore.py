"""``python -m xtrace explore``: pages of one and of several programs, their data, and readable words for faults."""

import json

import pytest

from xtrace.cli.main import main

MODEL = """
import xtrace.numpy as jnp

def loss(w, x, *, scale):
    return ((jnp.tanh(x @ w) * scale) ** 2).sum()

def other(w, x, *, scale):
    return ((jnp.sin(x @ w) * scale) ** 2).sum()

def broken(w, x, *, scale):
    return w @ x
"""
CALL = ["--arg", "f32[4,3]", "--arg", "f32[2,4]", "--static", "scale=2"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_a_page_is_written(model, capsys):
    assert main(["explore", "model.py:loss", *CALL]) == 0
    assert capsys.readouterr().out == "loss.html: loss\n"
    assert (model / "loss.html").read_text().startswith("<!DOCTYPE html>")


def test_stages_of_transformations_and_other_functions(model, capsys):
    words = ["--transform", "grad", "--transform", "vmap", "--batch", "5", "--beside", "model.py:other"]
    words += ["--out", "p.html"]
    assert main(["explore", "model.py:loss", *CALL, *words]) == 0
    names = "loss, grad(loss), vmap(grad(loss)), other, grad(other), vmap(grad(other))"
    assert capsys.readouterr().out == f"p.html: {names}\n"


def test_the_data_goes_to_the_terminal_or_to_a_file(model, capsys):
    assert main(["explore", "model.py:loss", *CALL, "--json", "--transform", "vmap"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [a["type"] for a in data["programs"][1]["arguments"]] == ["f32[8,4,3]", "f32[8,2,4]"]
    assert main(["explore", "model.py:loss", *CALL, "--json", "--out", "data"]) == 0
    assert json.loads((model / "data").read_text())["format"] == "xtrace-explorer"


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["model.py:broken", *CALL], 1, "tracing broken failed"),
        (["model.py:loss", *CALL, "--out", "no/such/folder.html"], 1, "cannot write no/such/folder.html"),
        (["model.py:loss", *CALL, "--beside", "model.py:missing"], 2, "missing"),
        (["model.py:loss", *CALL, "--target", "abacus"], 2, "unknown target"),
        (["model.py:loss", *CALL, "--sharding", "w=x"], 2, "give the mesh, too"),
        (["model.py:loss", *CALL, "--mesh", "x=1", "--transform", "vmap"], 2, "does not go with --mesh"),
    ],
)
def test_faults_are_told(model, capsys, words, code, expected):
    assert main(["explore", *words]) == code
    assert expected in capsys.readouterr().err
