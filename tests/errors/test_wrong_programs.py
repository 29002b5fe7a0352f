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


@pytest.mark.drawn(0.2)
@BY_NAME
def test_the_corrected_program_works(program, tmp_path):
    run(program.corrected, tmp_path / f"{program.name}.py")


def run_by_jax(program, path):
    """Run the program written for jax, and put jax's settings back."""
    before = dict(jax.config.values)
    try:
        run(for_jax(program.source), path)
    finally:
        for name, value in before.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)


@pytest.mark.drawn(0.2)
@BY_NAME
def test_handlers_of_jax_errors_catch_ours(program, tmp_path):
    path = tmp_path / f"{program.name}.py"
    ours = failure(program).kind
    if program.jax == "None":
        run_by_jax(program, path)
        return
    with pytest.raises(BaseException) as caught:
        run_by_jax(program, path)
    theirs = caught.type
    if program.jax != "same":
        assert theirs.__name__ in program.jax.split(" or ") and program.why
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


# The programs that fail in the tutorials that xtrace was built from, and what is marked in each.
OF_THE_SEEDS = [
    "if_on_an_argument", "while_on_two_arguments", "item_set_in_place", "elements_below_zero",
    "flatten_by_a_product_of_the_shape", "addition_of_python_numbers_of_two_kinds",
]


def program_called(name):
    return next(program for program in table.ALL if program.name == name)


@pytest.mark.slow
def test_as_a_user_runs_it(tmp_path):
    """The traceback of a real process shows the user's lines, the excerpt and the fix, and no line of xtrace's."""
    path = tmp_path / "program.py"
    path.write_text(program_called("if_on_an_argument").source)
    done = in_a_process(str(path))
    assert done.returncode == 1
    assert f'File "{path}", line 13, in <module>\n    f(10)' in done.stderr
    assert "    if x > 0:\n       ^^^^^\n" in done.stderr
    assert "To fix it: return jnp.where(x > 0, x, 2 * x)" in done.stderr
    assert "xtrace/core" not in done.stderr and "xtrace/api" not in done.stderr


@pytest.mark.slow
def test_in_ipython():
    """In a notebook's cell the excerpts and the fixes are those of a file."""
    programs = [program_called(name) for name in OF_THE_SEEDS]
    script = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        "shell.run_line_magic('xmode', 'Context')\n"
        f"for source in {[program.source for program in programs]!r}:\n"
        "    print('CELL')\n"
        "    shell.run_cell(source)\n"
    )
    cells = in_a_process("-c", script).stdout.split("CELL\n")[1:]
    for program, printed in zip(programs, cells, strict=True):
        assert program.error in printed and program.fix in printed, printed
        if program.in_message:
            assert f"\n    {table.marked_line(program)}\n" in printed, printed
        assert "xtrace/core" not in printed and "xtrace/api" not in printed, printed
