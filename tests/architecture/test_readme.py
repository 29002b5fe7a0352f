"""What the README shows is what happens: its example's output, its commands and its paths."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT
from tests.documentation.pages import blocks, run_page
from tests.support.reader_environment import reader_environment

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_its_programs_print_what_is_shown(tmp_path):
    programs = re.sub(r"```(sh|py)\n.*?```(\n\n```text\n.*?```)?", "", README, flags=re.DOTALL)
    assert len([block for block in blocks(programs) if block.language == "python"]) > 5
    run_page(programs, tmp_path)


def test_the_wrong_program_prints_what_is_shown(tmp_path):
    program, shown = re.search(r"```py\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    (tmp_path / "wrong.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XTRACE_TRACEBACK_FILTERING": "auto"}
    ran = subprocess.run([sys.executable, "wrong.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    # Python 3.13 marks expressions in tracebacks otherwise; the message is xtrace's.
    found = [line for line in ran.stderr.replace(f"{tmp_path}{os.sep}", "").splitlines() if set(line) - set(" ~^")]
    assert found == [line for line in shown.splitlines() if set(line) - set(" ~^")]


def test_the_reports_print_what_is_shown(tmp_path):
    section = README.partition("## What it will need")[2].partition("\n## ")[0]
    model, use = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    (command,) = re.findall(r"```sh\npython (.*?)```", section, re.DOTALL)
    (tmp_path / "model.py").write_text(model)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    for arguments, shown in zip(
        (shlex.split(command), ["-c", use]), re.findall(r"\n```\n(\S.*?)```", section, re.DOTALL), strict=True
    ):
        ran = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        # How many instructions XLA makes depends on its version.
        printed, expected = [re.sub(r"(\d+)( after them|    model)", r"N\2", text) for text in (ran.stdout, shown)]
        assert [line for line in expected.splitlines() if line != "  ..." and line not in printed.splitlines()] == []


@pytest.mark.parametrize(("extra", "run"), [("demo", "xtrace demo"), ("test", "pytest -n auto")])
def test_each_command_is_one_line_that_does_all(extra, run):
    install = f".venv/bin/python -m pip install -q -e '.[{extra}]'"
    assert f"\npython3 -m venv .venv && {install} && .venv/bin/python -m {run}\n" in README


def test_the_transformers_page_is_three_commands_away(tmp_path):
    (commands,) = re.findall(r"```sh\n(python3 -m venv .*\n.* -m xtrace explore .*\nxdg-open .*\n)```", README)
    install, explore, show = [shlex.split(line) for line in commands.splitlines()]
    assert install[-3:] == ["-q", "-e", "."] and show[1] == explore[-1]
    words = [sys.executable, *explore[1:-1], str(tmp_path / show[1])]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, env=reader_environment())
    assert done.stdout.endswith(f"{show[1]}: loss, grad(loss)\n")
    assert "def attend" in (tmp_path / show[1]).read_text(encoding="utf-8")


def test_the_paths_it_names_are_there():
    table = README.partition("## Where things are")[2].partition("\n## ")[0]
    paths = [path for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for path in re.findall(r"`(.*?)`", row)]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
