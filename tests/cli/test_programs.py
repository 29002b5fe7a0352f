"""``python -m xtrace run FILE.py``: programs that cannot be started, and errors of programs."""

import gc
import os
import subprocess
import sys

import pytest

import xtrace
from tests.architecture.source_tree import ROOT
from xtrace.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to run programs in, by a process that stays as it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(xtrace, "as_jax", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", sys.path[:])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "content", "code", "text"),
    [
        ([], b"", 2, "name a Python file"), (["-m"], b"", 2, "name a Python file"), (["-m", ""], b"", 2, "name a"),
        (["absent.py"], b"", 2, "there is no file"), (["."], b"", 2, "can't find '__main__'"),
        (["a_program.py"], b"x = 1\xff", 2, "save it as UTF-8"), (["a_program.py"], b"a\0b", 2, "null characters"),
        (["a_program.py"], b"# -*- coding: none -*-", 2, "unknown encoding"),
        (["a_program.py"], b"def f(:", 1, "SyntaxError: invalid syntax"), (["-m", "absent"], b"", 2, "No module named"),
        (["-m", "a_program"], b"def f(:", 1, "SyntaxError: invalid syntax"), (["/proc/self/mem"], b"", 2, "error"),
    ],
)
def test_programs_that_cannot_be_started(words, content, code, text, folder, capsys):
    (folder / "a_program.py").write_bytes(content)
    assert main(["run", *words]) == code
    err = capsys.readouterr().err
    assert err.startswith("xtrace run: ") and text in err and "runpy" not in err, err


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("import absent_module", ImportError), ("open('absent')", OSError), ("eval('1 +')", SyntaxError),
        ("import runpy; runpy.run_path('absent')", OSError),
    ],
)
def test_errors_of_a_program_are_its_own(content, error, folder):
    (folder / "a_program.py").write_text(content)
    with pytest.raises(error):
        main(["run", "a_program.py"])


def test_an_error_of_a_program_is_printed_without_the_frames_that_lead_there(folder):
    (folder / "a_program.py").write_text("def f():\n    raise ValueError('mine')\nf()\n")
    for words in (["a_program.py"], ["-m", "a_program"]):
        done = subprocess.run(
            [sys.executable, "-m", "xtrace", "run", *words], capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        lines = [line.split('"')[1] for line in done.stderr.splitlines() if line.startswith("  File ")]
        assert done.returncode == 1 and lines == [str(folder / "a_program.py")] * 2, done.stderr


def test_a_program_knows_its_file_after_the_folder_changes(folder, capsys):
    (folder / "a_program.py").write_text("import os\nos.chdir('/')\nprint(os.path.exists(__file__), __file__)")
    main(["run", "a_program.py"])
    assert capsys.readouterr().out == f"True {folder / 'a_program.py'}\n"
