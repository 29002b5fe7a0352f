"""What the README shows is what happens: its example's output, its commands and its paths."""

import contextlib
import io
import os
import re
import subprocess
import sys

import pytest

from tests.architecture.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The README's first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def numbers(line: str) -> list[float]:
    """The numbers of a printed array."""
    return [float(text) for text in line.strip("[]").split()]


def test_the_example_prints_what_is_shown():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block("python"), "README.md", "exec"), {})
    # The array comes first; its last digit depends on the CPU's instructions.
    (found, *printed), (expected, *shown) = out.getvalue().rstrip().splitlines(), block("text").splitlines()
    assert numbers(found) == pytest.approx(numbers(expected), rel=1e-6)
    assert printed == shown


def words(line: str) -> list[float | str]:
    """What a printed line says: its numbers, and its words."""
    parts = re.sub(r"[\[\]]", " ", line).split()
    return [float(part) if re.fullmatch(r"-?\d+\.?\d*(e-?\d+)?", part) else part for part in parts]


def test_the_programs_print_what_stands_beside_them():
    scope: dict[str, object] = {}
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(programs) == 6
    for program in programs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(program, "README.md", "exec"), scope)
        shown = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
        # The output of the first one has a block of its own.
        if not shown:
            assert program == block("python")
            continue
        for line, expected in zip(out.getvalue().splitlines(), shown, strict=True):
            for found, wanted in zip(words(line), words(expected), strict=True):
                same = found == pytest.approx(wanted, rel=1e-5) if isinstance(wanted, float) else found == wanted
                assert same, f"{line} is shown as {expected}"


def test_the_wrong_program_prints_what_is_shown(tmp_path):
    program, shown = re.search(r"```py\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    (tmp_path / "wrong.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XTRACE_TRACEBACK_FILTERING": "auto"}
    ran = subprocess.run([sys.executable, "wrong.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    # Python 3.13 marks expressions in tracebacks otherwise; the message is xtrace's.
    found = [line for line in ran.stderr.replace(f"{tmp_path}{os.sep}", "").splitlines() if set(line) - set(" ~^")]
    assert found == [line for line in shown.splitlines() if set(line) - set(" ~^")]


@pytest.mark.parametrize(("extra", "run"), [("demo", "xtrace demo"), ("test", "pytest -n auto")])
def test_each_command_is_one_line_that_does_all(extra, run):
    install = f".venv/bin/python -m pip install -q -e '.[{extra}]'"
    assert f"\npython3 -m venv .venv && {install} && .venv/bin/python -m {run}\n" in README


def test_the_paths_it_names_are_there():
    table = README.partition("## Where things are")[2].partition("\n## ")[0]
    paths = [path for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for path in re.findall(r"`(.*?)`", row)]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
