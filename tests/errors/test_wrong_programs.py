"""Wrong programs end with the right error, which says the right things, at the right place, and how to put it right."""

import os
import subprocess
import sys

import jax
import pytest

import xtrace
from tests.errors import table
from tests.errors.wrong_program import failure, for_jax, run

BY_NAME = pytest.mark.parametrize("program", table.ALL, ids=lambda program: program.name)


def test_there_are_enough_of_them_and_names_are_their_own():
    assert len({program.name for program in table.ALL}) == len(table.ALL) >= 120
    assert all(program.fix and program.says for program in table.ALL)


@BY_NAME
def test_error(program):
    found = failure(program)
    assert found.kind.__name__ == program.error
    for part in (*program.says, program.fix):
        assert part in found.message
    if program.in_message:
        assert found.in_message == program.marked
    else:
        assert found.in_message is None and found.in_traceback == program.marked


@BY_NAME
def test_the_corrected_program_works(program, tmp_path):
    run(program.corrected, tmp_path / f"{program.name}.py")


@BY_NAME
def test_handlers_of_jax_errors_catch_ours(program, tmp_path):
    path = tmp_path / f"{program.name}.py"
    ours = failure(program).kind
    if program.jax == "None":
        run(for_jax(program.source), path)
        return
    with pytest.raises(BaseException) as caught:
        run(for_jax(program.source), path)
    theirs = caught.type
    if program.jax != "same":
        assert theirs.__name__ == program.jax and program.why
        return
    built_in = next(kind for kind in theirs.__mro__ if kind.__module__ == "builtins")
    assert issubclass(ours, built_in)
    if getattr(jax.errors, theirs.__name__, None) is theirs:
        assert issubclass(ours, getattr(xtrace.errors, theirs.__name__))


def test_the_page_is_current():
    """``python -m tests.errors`` writes it."""
    written = table.sections_of(table.PAGE.read_text())
    assert list(written) == [program.name.replace("_", " ") for program in table.ALL]
    for program in table.ALL:
        assert written[program.name.replace("_", " ")] == table.section(program), program.name


def in_a_process(*arguments):
    """What Python prints, run as users run it: the tests' own settings show all frames."""
    settings = {**os.environ, "XTRACE_TRACEBACK_FILTERING": "auto", "PYTHONPATH": str(table.PAGE.parents[1])}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, env=settings)


@pytest.mark.slow
def test_as_a_user_runs_it(tmp_path):
    """The traceback of a real process shows the user's lines, the excerpt and the fix, and no line of xtrace's."""
    path = tmp_path / "program.py"
    path.write_text(next(p for p in table.ALL if p.name == "if_on_an_argument").source)
    done = in_a_process(str(path))
    assert done.returncode == 1
    assert f'File "{path}", line 13, in <module>\n    f(10)' in done.stderr
    assert "    if x > 0:\n       ^^^^^\n" in done.stderr
    assert "To fix it: return jnp.where(x > 0, x, 2 * x)" in done.stderr
    assert "xtrace/core" not in done.stderr and "xtrace/api" not in done.stderr


@pytest.mark.slow
def test_in_ipython(tmp_path):
    """In a notebook's cell the excerpt and the fix are those of a file."""
    program = next(p for p in table.ALL if p.name == "if_on_an_argument")
    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"shell.run_cell({program.source!r})\n"
    )
    done = in_a_process("-c", script)
    printed = done.stdout + done.stderr
    assert "if x > 0:" in printed and "^^^^^" in printed
    assert "To fix it: return jnp.where(x > 0, x, 2 * x)" in printed
