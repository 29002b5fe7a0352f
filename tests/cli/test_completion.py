"""``python -m xtrace completion``: what the shells complete is what the parser accepts."""

import os
import shutil
import subprocess

import pytest

from xtrace.cli.main import main

_PATH = {"PATH": os.environ["PATH"]}


def script(shell, capsys):
    """The script for a shell."""
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


_COMPLETIONS = [
    (["c"], ["cache", "completion"]),
    (["inspect", "--s"], ["--static", "--sharding", "--stage"]),
    (["inspect", "a.py:f", "--stage", "c"], ["cost", "compile-time"]),
    (["completion", "f"], ["fish"]),
]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash runs the script")
@pytest.mark.parametrize(
    ("words", "completions"), [*_COMPLETIONS, (["run", "f.bin", "--a"], ["--arg"]), (["run", ""], [])]
)
def test_bash_completes(words, completions, capsys, tmp_path):
    (tmp_path / "script").write_text(script("bash", capsys))
    line = ["python", "-m", "xtrace", *words]
    program = f"""source {tmp_path}/script; COMP_WORDS=({' '.join(repr(word) for word in line)})
COMP_CWORD={len(line) - 1}; _xtrace_complete; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-uc", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == completions and not done.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="fish runs the script")
@pytest.mark.parametrize(("words", "completions"), _COMPLETIONS)
def test_fish_completes(words, completions, capsys, tmp_path):
    (tmp_path / "script").write_text(script("fish", capsys))
    program = f'source {tmp_path}/script; complete -C "{" ".join(["python", "-m", "xtrace", *words])}"'
    done = subprocess.run(
        ["fish", "-N", "-c", program], capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)} | _PATH
    )
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == set(completions)


# Completes a line in an interactive shell, as its user would.
_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -Uz compinit; compinit -u -D; source $1; LISTMAX=0; print -r -- READY"
zpty -r shell output "*READY*READY*"
zpty -n -w shell "$2"$'\\t\\t'
for attempt in {1..100}; do
    while zpty -rt shell output; do print -rn -- "$output"; done
    sleep 0.02
done
zpty -d shell
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh runs the script")
@pytest.mark.parametrize(("words", "completions"), _COMPLETIONS)
def test_zsh_completes(words, completions, capsys, tmp_path):
    (tmp_path / "script").write_text(script("zsh", capsys))
    line = " ".join(["python", "-m", "xtrace", *words])
    done = subprocess.run(
        ["zsh", "-fc", _ZSH, "zsh", str(tmp_path / "script"), line], capture_output=True, text=True, check=True,
        env={"HOME": str(tmp_path), "TERM": "dumb"} | _PATH,
    )
    assert all(word in done.stdout for word in completions), done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_name_every_command_and_option(shell, capsys):
    text = script(shell, capsys)
    for word in ("demo", "epochs", "inspect", "sharding", "cache", "verify", "completion", "run", "stablehlo"):
        assert word in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_an_unknown_shell(capsys):
    assert main(["completion", "tcsh"]) == 2 and "bash" in capsys.readouterr().err
