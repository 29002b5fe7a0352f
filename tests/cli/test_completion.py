"""``python -m xtrace completion``: what the shells complete is what the parser accepts."""

import shutil
import subprocess

import pytest

from xtrace.cli.main import main


def script(shell, capsys):
    """The script for a shell."""
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("bash"), reason="bash runs the script")
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["c"], ["cache", "completion"]),
        (["inspect", "--s"], ["--static", "--sharding", "--stage"]),
        (["inspect", "a.py:f", "--stage", "c"], ["cost", "compile-time"]),
        (["completion", "f"], ["fish"]),
        (["run", ""], []),
    ],
)
def test_bash_completes(words, completions, capsys, tmp_path):
    (tmp_path / "script").write_text(script("bash", capsys))
    line = ["python", "-m", "xtrace", *words]
    program = f"""source {tmp_path}/script; COMP_WORDS=({' '.join(repr(word) for word in line)})
COMP_CWORD={len(line) - 1}; _xtrace_complete; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-uc", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == completions and not done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_name_every_command_and_option(shell, capsys):
    text = script(shell, capsys)
    for word in ("demo", "epochs", "inspect", "sharding", "cache", "verify", "completion", "run", "stablehlo"):
        assert word in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_an_unknown_shell(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["completion", "tcsh"])
    assert caught.value.code == 2 and "bash" in capsys.readouterr().err
